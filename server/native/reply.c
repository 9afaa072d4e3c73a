/* reply: packs frames straight into the reply buffer. Thread: the loop's. Owner: the connection. */
#include "server/native/reply.h"

#include <stdio.h>
#include <string.h>

enum {
    SMALL = 64, /* CREDIT, PROGRESS */
    STATUS_ROOM = CR_ERROR_TEXT + 32,
    WELCOME_ROOM = 4 * CR_NAME_MAX_BYTES + 128,
    PLAIN_ROOM = CR_HEAD_MAX_BYTES,
};

/* Room for a payload of up to cap bytes behind a header. */
static uint8_t *payload_room(cr_conn *conn, size_t cap) {
    uint8_t *room = cr_conn_room(conn, CR_FRAME_HEADER_BYTES + cap);
    return room ? room + CR_FRAME_HEADER_BYTES : NULL;
}

static bool send_frame(cr_conn *conn, uint8_t *payload, uint8_t type, uint16_t flags, uint32_t stream, size_t length) {
    cr_frame frame = {.type = type, .flags = flags, .stream = stream, .length = (uint32_t)length};
    cr_frame_put(payload - CR_FRAME_HEADER_BYTES, &frame);
    cr_conn_put(conn, CR_FRAME_HEADER_BYTES + length);
    return true;
}

bool cr_reply_welcome(cr_conn *conn, const cr_wire_hello *hello) {
    cr_wire_welcome m = {.version = CR_WIRE_VERSION_MAX};
    for (int i = 0; i < CR_WIRE_FEATURES; i++)
        if (cr_wire_has_feature(hello->features, hello->feature_count, cr_wire_features[i]))
            snprintf(m.features[m.feature_count++], sizeof m.features[0], "%s", cr_wire_features[i]);
    snprintf(m.server, sizeof m.server, "cured/%s", conn->native->calls->version);
    cr_answer_limits(conn->native->calls, &m.limits);
    uint8_t *payload = payload_room(conn, WELCOME_ROOM);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_WELCOME, 0, 0, cr_wire_pack_welcome(&m, payload, WELCOME_ROOM));
}

bool cr_reply_pong(cr_conn *conn, const uint8_t *bytes, uint32_t length) {
    uint8_t *payload = payload_room(conn, length);
    if (!payload) return false;
    memcpy(payload, bytes, length);
    return send_frame(conn, payload, CR_FRAME_PONG, 0, 0, length);
}

bool cr_reply_status(cr_conn *conn, uint32_t stream, const cr_error *error) {
    cr_wire_status m = {.code = error->code, .retry_after_ms = cr_answer_retry_ms(error)};
    snprintf(m.message, sizeof m.message, "%s", error->text);
    uint8_t *payload = payload_room(conn, STATUS_ROOM);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_STATUS, CR_FLAG_END, stream,
                      cr_wire_pack_status(&m, payload, STATUS_ROOM));
}

bool cr_reply_credit(cr_conn *conn, uint32_t stream, uint64_t bytes) {
    uint8_t *payload = payload_room(conn, SMALL);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_CREDIT, 0, stream, cr_wire_pack_credit(bytes, payload, SMALL));
}

bool cr_reply_progress(cr_conn *conn, uint32_t stream, const cr_wire_progress *progress) {
    uint8_t *payload = payload_room(conn, SMALL);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_PROGRESS, 0, stream, cr_wire_pack_progress(progress, payload, SMALL));
}

bool cr_reply_registered(cr_conn *conn, uint32_t stream, uint64_t bytes, bool read_only) {
    cr_wire_registered m = {bytes, read_only};
    uint8_t *payload = payload_room(conn, SMALL);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, cr_wire_pack_registered(&m, payload, SMALL));
}

bool cr_reply_reloaded(cr_conn *conn, uint32_t stream, const cr_reloaded *what) {
    static cr_wire_reloaded m; /* the loop's */
    m.changed_count = what->changed_count;
    m.restart_count = what->restart_count;
    for (uint32_t i = 0; i < m.changed_count; i++) snprintf(m.changed[i], CR_WIRE_OPTION_BYTES, "%s", what->changed[i]);
    for (uint32_t i = 0; i < m.restart_count; i++) snprintf(m.restart[i], CR_WIRE_OPTION_BYTES, "%s", what->restart[i]);
    uint8_t *payload = payload_room(conn, sizeof m);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream,
                      cr_wire_pack_reloaded(&m, payload, sizeof m));
}

bool cr_reply_unregistered(cr_conn *conn, uint32_t stream) {
    uint8_t *payload = payload_room(conn, 0);
    return payload && send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, 0);
}

bool cr_reply_plain(cr_conn *conn, uint32_t stream, cr_wire_kind kind) {
    uint8_t *payload = payload_room(conn, PLAIN_ROOM);
    if (!payload) return false;
    const size_t length = cr_answer_plain(conn->native->calls, &conn->peer, kind, payload, PLAIN_ROOM);
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, length);
}

bool cr_reply_answer(cr_conn *conn, uint32_t stream, const cr_answer *answer, const cr_wire_reduce *asked) {
    size_t bytes;
    const uint8_t *packed = cr_answer_pack(answer, asked, &bytes);
    uint8_t *payload = payload_room(conn, bytes);
    if (!payload) return false;
    memcpy(payload, packed, bytes);
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, bytes);
}

bool cr_reply_part(cr_conn *conn, uint32_t stream, const cr_part *part) {
    cr_wire_part m = {.op = part->op,
                      .first = part->first,
                      .values_len = part->bytes,
                      .statuses = part->statuses,
                      .statuses_len = part->status_count};
    const size_t room = CR_WIRE_PART_HEAD_BYTES + part->status_count;
    uint8_t *payload = payload_room(conn, room + part->bytes);
    if (!payload) return false;
    size_t head = cr_wire_pack_part_head(&m, payload, room);
    memcpy(payload + head, part->values, part->bytes);
    return send_frame(conn, payload, CR_FRAME_RESULT, 0, stream, head + part->bytes);
}
