/* wire_reply: the payloads of RESULT (ReduceResponse, InfoResponse), STATUS, PROGRESS and CREDIT between protobuf and plain structs;
 * packing of ReduceResponse and reading of a plain one are in wire_fast.c.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <math.h>
#include <string.h>

#include "proto/wire.h"
#include "proto/wire_internal.h"

bool cr_wire_has_feature(const char features[][CR_NAME_MAX_BYTES + 1], uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count && i < CR_WIRE_MAX_FEATURES; i++)
        if (strcmp(features[i], name) == 0) return true;
    return false;
}

static cr_status op_result_in(const Cured__V1__OpResult *p, cr_wire_op_result *m, cr_error *error) {
    if (p->value.len > sizeof m->value)
        return cr_fail(error, CR_INVALID_ARGUMENT, "OpResult.value has %zu bytes, limit is %d", p->value.len,
                       CR_WIRE_VALUE_BYTES);
    if (p->at.len > sizeof m->at)
        return cr_fail(error, CR_INVALID_ARGUMENT, "OpResult.at has %zu bytes, limit is %zu", p->at.len, sizeof m->at);
    m->op = (uint32_t)p->op;
    m->status = p->status;
    m->dtype = (uint32_t)p->dtype;
    m->value_len = (uint8_t)p->value.len;
    m->at_len = (uint8_t)p->at.len;
    m->inexact = p->inexact;
    /* Zeroes to the end: readers of a value may load a whole word. */
    memset(m->value, 0, sizeof m->value);
    memset(m->at, 0, sizeof m->at);
    if (p->value.len != 0) memcpy(m->value, p->value.data, p->value.len);
    if (p->at.len != 0) memcpy(m->at, p->at.data, p->at.len);
    cr_wire_copy_text(m->message, sizeof m->message, p->message);
    return CR_OK;
}

static cr_status unpack_any_result(const uint8_t *in, size_t len, cr_wire_result *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__ReduceResponse *p =
        cr_wire_parse(&scratch, &cured__v1__reduce_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    if (p->n_results > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ReduceResponse.results has %zu entries, limit is %d", p->n_results,
                       CR_CALL_MAX_OPS);
    m->count = p->count;
    m->timing = (cr_wire_timing){0, 0, 0};
    if (p->timing != NULL) m->timing = (cr_wire_timing){p->timing->queue_ns, p->timing->run_ns, p->timing->total_ns};
    m->result_count = (uint32_t)p->n_results;
    m->partial = NULL;
    m->partial_len = 0;
    m->written = p->written;
    cr_wire_field field;
    for (size_t at = 0; cr_wire_next_field(in, len, &at, &field);)
        if (field.number == 4 && field.bytes != NULL) m->partial = field.bytes, m->partial_len = (size_t)field.value;
    for (size_t i = 0; i < p->n_results; i++) {
        cr_status status = op_result_in(p->results[i], &m->results[i], error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

cr_status cr_wire_unpack_result(const uint8_t *in, size_t len, cr_wire_result *m, cr_error *error) {
    return cr_wire_read_plain_result(in, len, m) ? CR_OK : unpack_any_result(in, len, m, error);
}

static void held_out(const cr_wire_held *m, Cured__V1__Held *p) {
    cured__v1__held__init(p);
#define CR_USE(name) p->name = m->name;
#include "proto/use.def"
#undef CR_USE
}

static void held_in(const Cured__V1__Held *p, cr_wire_held *m) {
    *m = (cr_wire_held){0};
    if (p == NULL) return;
#define CR_USE(name) m->name = p->name;
#include "proto/use.def"
#undef CR_USE
}

size_t cr_wire_users_out(const cr_wire_user *users, uint32_t count, cr_wire_user_out *out, Cured__V1__User **pointers) {
    size_t n = count < CR_WIRE_MAX_USERS ? count : CR_WIRE_MAX_USERS;
    for (size_t i = 0; i < n; i++) {
        const cr_wire_user *user = &users[i];
        cured__v1__user__init(&out[i].user);
        held_out(&user->used, &out[i].used);
        held_out(&user->limit, &out[i].limit);
        out[i].user.name = (char *)(uintptr_t)user->name;
        out[i].user.own = user->own;
        out[i].user.used = &out[i].used;
        out[i].user.limit = &out[i].limit;
        pointers[i] = &out[i].user;
    }
    return n;
}

uint32_t cr_wire_users_in(Cured__V1__User *const *from, size_t count, cr_wire_user *users) {
    const uint32_t n = count < CR_WIRE_MAX_USERS ? (uint32_t)count : CR_WIRE_MAX_USERS;
    for (uint32_t i = 0; i < n; i++) {
        cr_wire_copy_text(users[i].name, sizeof users[i].name, from[i]->name);
        users[i].own = from[i]->own;
        held_in(from[i]->used, &users[i].used);
        held_in(from[i]->limit, &users[i].limit);
    }
    return n;
}

size_t cr_wire_pack_info(const cr_wire_info *m, uint8_t *out, size_t cap) {
    Cured__V1__LaneInfo lanes[CR_WIRE_MAX_LANES];
    Cured__V1__LaneInfo *lane_pointers[CR_WIRE_MAX_LANES];
    Cured__V1__Counter counters[CR_WIRE_MAX_COUNTERS];
    Cured__V1__Counter *counter_pointers[CR_WIRE_MAX_COUNTERS];
    Cured__V1__Limits limits;
    cr_wire_user_out users[CR_WIRE_MAX_USERS];
    Cured__V1__User *user_pointers[CR_WIRE_MAX_USERS];
    Cured__V1__InfoResponse p = CURED__V1__INFO_RESPONSE__INIT;
    p.version = (char *)(uintptr_t)m->version;
    p.backend = (char *)(uintptr_t)m->backend;
    p.backend_reason = (char *)(uintptr_t)m->backend_reason;
    p.uptime_ms = m->uptime_ms;
    p.n_lanes = m->lane_count < CR_WIRE_MAX_LANES ? m->lane_count : CR_WIRE_MAX_LANES;
    p.lanes = lane_pointers;
    for (size_t i = 0; i < p.n_lanes; i++) {
        cured__v1__lane_info__init(&lanes[i]);
        lanes[i].name = (char *)(uintptr_t)m->lanes[i].name;
        lanes[i].device = (char *)(uintptr_t)m->lanes[i].device;
        lanes[i].workers = m->lanes[i].workers;
        lanes[i].bytes_per_second = m->lanes[i].bytes_per_second;
        lane_pointers[i] = &lanes[i];
    }
    p.n_counters = m->counter_count < CR_WIRE_MAX_COUNTERS ? m->counter_count : CR_WIRE_MAX_COUNTERS;
    p.counters = counter_pointers;
    for (size_t i = 0; i < p.n_counters; i++) {
        cured__v1__counter__init(&counters[i]);
        counters[i].name = (char *)(uintptr_t)m->counters[i].name;
        counters[i].value = m->counters[i].value;
        counter_pointers[i] = &counters[i];
    }
    cr_wire_limits_out(&m->limits, &limits);
    p.limits = &limits;
    p.n_users = cr_wire_users_out(m->users, m->user_count, users, user_pointers);
    p.users = user_pointers;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_info(const uint8_t *in, size_t len, cr_wire_info *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__InfoResponse *p = cr_wire_parse(&scratch, &cured__v1__info_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    m->uptime_ms = p->uptime_ms;
    /* Lists are cut, not refused: a newer server may have more to tell. */
    m->lane_count = p->n_lanes < CR_WIRE_MAX_LANES ? (uint32_t)p->n_lanes : CR_WIRE_MAX_LANES;
    for (uint32_t i = 0; i < m->lane_count; i++) {
        const Cured__V1__LaneInfo *lane = p->lanes[i];
        cr_wire_copy_text(m->lanes[i].name, sizeof m->lanes[i].name, lane->name);
        cr_wire_copy_text(m->lanes[i].device, sizeof m->lanes[i].device, lane->device);
        m->lanes[i].workers = lane->workers;
        m->lanes[i].bytes_per_second = isfinite(lane->bytes_per_second) ? lane->bytes_per_second : 0;
    }
    m->counter_count = p->n_counters < CR_WIRE_MAX_COUNTERS ? (uint32_t)p->n_counters : CR_WIRE_MAX_COUNTERS;
    for (uint32_t i = 0; i < m->counter_count; i++) {
        cr_wire_copy_text(m->counters[i].name, sizeof m->counters[i].name, p->counters[i]->name);
        m->counters[i].value = p->counters[i]->value;
    }
    cr_wire_limits_in(p->limits, &m->limits);
    m->user_count = cr_wire_users_in(p->users, p->n_users, m->users);
    cr_wire_copy_text(m->version, sizeof m->version, p->version);
    cr_wire_copy_text(m->backend, sizeof m->backend, p->backend);
    cr_wire_copy_text(m->backend_reason, sizeof m->backend_reason, p->backend_reason);
    return CR_OK;
}

size_t cr_wire_pack_status(const cr_wire_status *m, uint8_t *out, size_t cap) {
    Cured__V1__Status p = CURED__V1__STATUS__INIT;
    p.code = (uint32_t)m->code;
    p.retry_after_ms = m->retry_after_ms;
    p.message = (char *)(uintptr_t)m->message;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_status(const uint8_t *in, size_t len, cr_wire_status *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__Status *p = cr_wire_parse(&scratch, &cured__v1__status__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    m->code = p->code <= CR_STATUS_MAX ? (cr_status)p->code : CR_UNKNOWN;
    m->retry_after_ms = p->retry_after_ms;
    cr_wire_copy_text(m->message, sizeof m->message, p->message);
    return CR_OK;
}

size_t cr_wire_pack_progress(const cr_wire_progress *m, uint8_t *out, size_t cap) {
    Cured__V1__Progress p = CURED__V1__PROGRESS__INIT;
    p.bytes_done = m->bytes_done;
    p.bytes_total = m->bytes_total;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_progress(const uint8_t *in, size_t len, cr_wire_progress *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__Progress *p = cr_wire_parse(&scratch, &cured__v1__progress__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    m->bytes_done = p->bytes_done;
    m->bytes_total = p->bytes_total;
    return CR_OK;
}

size_t cr_wire_pack_credit(uint64_t bytes, uint8_t *out, size_t cap) {
    Cured__V1__Credit p = CURED__V1__CREDIT__INIT;
    p.bytes = bytes;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_credit(const uint8_t *in, size_t len, uint64_t *bytes, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__Credit *p = cr_wire_parse(&scratch, &cured__v1__credit__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    *bytes = p->bytes;
    return CR_OK;
}
