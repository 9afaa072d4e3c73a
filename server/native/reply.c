/* reply: packs frames straight into the reply buffer. Thread: the loop's. Owner: the connection. */
#include "server/native/reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/metrics.h"

enum {
    SMALL = 64, /* CREDIT, PROGRESS */
    STATUS_ROOM = CR_ERROR_TEXT + 32,
    WELCOME_ROOM = 4 * CR_NAME_MAX_BYTES + 128,
    OP_ROOM = CR_ERROR_TEXT + CR_WIRE_VALUE_BYTES + 48, /* one OpResult at its longest */
    RESULT_ROOM = 64,
    INFO_ROOM = CR_HEAD_MAX_BYTES,
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

bool cr_reply_welcome(cr_conn *conn) {
    cr_wire_welcome m = {.version = CR_WIRE_VERSION_MAX};
    snprintf(m.server, sizeof m.server, "cured/%s", conn->native->version);
    cr_native_limits(conn->native, &m.limits);
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
    cr_wire_status m = {.code = error->code};
    if (error->code == CR_RESOURCE_EXHAUSTED || error->code == CR_UNAVAILABLE) m.retry_after_ms = CR_RETRY_AFTER_MS;
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

bool cr_reply_registered(cr_conn *conn, uint32_t stream, uint64_t bytes) {
    cr_wire_registered m = {bytes};
    uint8_t *payload = payload_room(conn, SMALL);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, cr_wire_pack_registered(&m, payload, SMALL));
}

bool cr_reply_unregistered(cr_conn *conn, uint32_t stream) {
    uint8_t *payload = payload_room(conn, 0);
    return payload && send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, 0);
}

static void fill_user(cr_wire_user *m, const cr_admission *a, const cr_user *user, const cr_user *own) {
    cr_peer_name(user->node.key, m->name, sizeof m->name);
    m->own = user == own;
#define CR_USE(name)                          \
    m->used.name = user->used[CR_USE_##name]; \
    m->limit.name = cr_admit_share(a, user, CR_USE_##name);
#include "proto/use.def"
#undef CR_USE
}

/* A client sees its own user, root and the daemon's user see everybody: their own first, then the oldest. */
static void fill_users(const cr_conn *conn, cr_wire_info *m) {
    const cr_admission *a = &conn->native->calls->admission;
    const cr_peer *peer = &conn->peer;
    const bool all = peer->has_uid && (peer->uid == 0 || peer->uid == geteuid());
    fill_user(&m->users[m->user_count++], a, peer->user, peer->user);
    for (const cr_list *node = a->by_age.next; all && node != &a->by_age; node = node->next) {
        const cr_user *user = cr_container(node, cr_user, link);
        if (m->user_count == CR_WIRE_MAX_USERS) break;
        if (user != peer->user) fill_user(&m->users[m->user_count++], a, user, peer->user);
    }
}

bool cr_reply_info(cr_conn *conn, uint32_t stream) {
    const cr_native *native = conn->native;
    const cr_lanes *lanes = &native->calls->lanes;
    static cr_wire_info m; /* 20 KiB; the loop's */
    memset(&m, 0, sizeof m);
    snprintf(m.version, sizeof m.version, "%s", native->version);
    snprintf(m.backend, sizeof m.backend, "%s", lanes->backend);
    snprintf(m.backend_reason, sizeof m.backend_reason, "%s", lanes->reason);
    m.uptime_ms = cr_now_ms() - native->started_ms;
    m.lane_count = lanes->count;
    for (uint32_t i = 0; i < m.lane_count; i++) {
        cr_lane_info info = lanes->types[i]->info(lanes->lanes[i]);
        snprintf(m.lanes[i].name, sizeof m.lanes[i].name, "%s", info.name);
        snprintf(m.lanes[i].device, sizeof m.lanes[i].device, "%s%s", info.lost ? "lost: " : "", info.device);
        m.lanes[i].workers = info.workers;
        m.lanes[i].bytes_per_second = info.bytes_per_second;
    }
    _Static_assert((int)CR_METRIC_COUNT <= (int)CR_WIRE_MAX_COUNTERS, "Info has room for every metric");
    m.counter_count = CR_METRIC_COUNT;
    for (uint32_t i = 0; i < CR_METRIC_COUNT; i++) {
        snprintf(m.counters[i].name, sizeof m.counters[i].name, "%s", cr_metric_name((cr_metric)i));
        m.counters[i].value = atomic_load_explicit(&cr_metrics[i], memory_order_relaxed);
    }
    cr_native_limits(native, &m.limits);
    fill_users(conn, &m);
    uint8_t *payload = payload_room(conn, INFO_ROOM);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, cr_wire_pack_info(&m, payload, INFO_ROOM));
}

static void fill_result(cr_wire_op_result *to, const cr_value *value) {
    to->op = (uint32_t)value->op;
    to->status = (uint32_t)value->error.code;
    to->dtype = 0;
    to->value_len = to->at_len = 0;
    to->inexact = false;
    to->message[0] = 0;
    if (value->error.code != CR_OK) {
        memcpy(to->message, value->error.text, sizeof to->message);
        return;
    }
    to->dtype = (uint32_t)value->dtype;
    to->value_len = value->len;
    memcpy(to->value, value->bytes, sizeof to->value);
    to->at_len = value->at_len;
    memcpy(to->at, value->at, sizeof to->at);
}

/* Sends m, whose first op_count results are filled, and read. */
static bool send_result(cr_conn *conn, uint32_t stream, const cr_wire_result *m) {
    size_t cap = RESULT_ROOM + (size_t)m->result_count * OP_ROOM;
    uint8_t *payload = payload_room(conn, cap);
    if (!payload) return false;
    size_t length = cr_wire_pack_result(m, payload, cap);
    assert(length);
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, length);
}

static void begin_result(cr_wire_result *m, uint64_t count, uint32_t op_count, const cr_wire_timing *timing) {
    m->count = count;
    m->timing = *timing;
    m->result_count = op_count;
    m->partial = NULL;
}

bool cr_reply_result(cr_conn *conn, uint32_t stream, const cr_partial *partial, const uint32_t *ops, uint32_t op_count,
                     const cr_finish_opts *finish, const cr_wire_timing *timing) {
    cr_wire_result m;
    begin_result(&m, partial->n, op_count, timing);
    for (uint32_t i = 0; i < op_count; i++) {
        cr_value value;
        cr_partial_finish(partial, (cr_op)ops[i], finish, &value);
        fill_result(&m.results[i], &value);
    }
    return send_result(conn, stream, &m);
}

bool cr_reply_values(cr_conn *conn, uint32_t stream, uint64_t count, const cr_value *values, const bool *exact,
                     uint32_t op_count, const cr_wire_timing *timing) {
    cr_wire_result m;
    begin_result(&m, count, op_count, timing);
    for (uint32_t i = 0; i < op_count; i++) {
        fill_result(&m.results[i], &values[i]);
        m.results[i].inexact = values[i].error.code == CR_OK && !exact[i];
    }
    return send_result(conn, stream, &m);
}

bool cr_reply_partial(cr_conn *conn, uint32_t stream, const cr_share *share, const cr_wire_timing *timing) {
    static uint8_t bytes[CR_SERIAL_MAX_BYTES]; /* the loop's */
    cr_wire_result m;
    m.count = share->partial.n;
    m.timing = *timing;
    m.result_count = 0;
    m.partial = bytes;
    m.partial_len = cr_share_pack(share, bytes, sizeof bytes);
    size_t cap = RESULT_ROOM + m.partial_len;
    uint8_t *payload = payload_room(conn, cap);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, cr_wire_pack_result(&m, payload, cap));
}

bool cr_reply_part(cr_conn *conn, uint32_t stream, const cr_part *part) {
    cr_wire_part m = {.op = part->op, .first = part->first, .values_len = part->bytes};
    uint8_t *payload = payload_room(conn, SMALL + part->bytes);
    if (!payload) return false;
    size_t head = cr_wire_pack_part_head(&m, payload, SMALL);
    memcpy(payload + head, part->values, part->bytes);
    return send_frame(conn, payload, CR_FRAME_RESULT, 0, stream, head + part->bytes);
}

bool cr_reply_array_end(cr_conn *conn, uint32_t stream, const cr_axis_spec *spec, const cr_wire_timing *timing) {
    cr_wire_result m;
    m.count = spec->shape.outer * spec->shape.n * spec->shape.inner;
    m.timing = *timing;
    m.partial = NULL;
    m.result_count = spec->op_count;
    for (uint32_t i = 0; i < spec->op_count; i++) {
        m.results[i].op = (uint32_t)spec->ops[i];
        m.results[i].status = CR_OK;
        m.results[i].dtype = (uint32_t)cr_axis_dtype(spec->ops[i], spec->dtype, &spec->finish);
        m.results[i].value_len = m.results[i].at_len = 0;
        m.results[i].inexact = false;
        m.results[i].message[0] = 0;
    }
    size_t cap = RESULT_ROOM + (size_t)spec->op_count * OP_ROOM;
    uint8_t *payload = payload_room(conn, cap);
    if (!payload) return false;
    return send_frame(conn, payload, CR_FRAME_RESULT, CR_FLAG_END, stream, cr_wire_pack_result(&m, payload, cap));
}
