/* answer: what a call that is done says: count, timing, values, the daemon's description of itself.
 *
 * Thread: the one that uses the connection. Owner: everything returned belongs to the call. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"
#include "kernels/core/dtype.h"

static bool answered(const cured_call *call) { return call->state == CALL_DONE && call->error.code == CR_OK; }

uint64_t cured_call_count(const cured_call *call) { return answered(call) ? call->count : 0; }

cured_timing cured_call_timing(const cured_call *call) { return call->timing; }

uint64_t cured_call_elapsed_ns(const cured_call *call) { return call->elapsed_ns; }

uint32_t cured_call_retries(const cured_call *call) { return call->retries; }

const cured_value *cured_call_value(const cured_call *call, size_t index) {
    bool has = answered(call) && call->array == NULL && call->partial == NULL;
    return has && index < call->value_count ? &call->values[index] : NULL;
}

const cured_value *cured_call_find(const cured_call *call, cured_op op) {
    for (size_t i = 0; i < call->value_count; i++)
        if (call->values[i].op == (unsigned)op) return cured_call_value(call, i);
    return NULL;
}

const void *cured_call_partial(const cured_call *call, size_t *bytes) {
    *bytes = answered(call) ? call->partial_bytes : 0;
    return *bytes != 0 ? call->partial : NULL;
}

const cured_reloaded *cured_call_reloaded(const cured_call *call) { return answered(call) ? call->reloaded : NULL; }
const char *cured_call_json(const cured_call *call) { return answered(call) ? call->json : NULL; }

const cured_server_info *cured_call_info(const cured_call *call) { return answered(call) ? call->info : NULL; }

cured_op cured_value_op(const cured_value *value) { return (cured_op)value->op; }

cured_status cured_value_status(const cured_value *value, cured_error *error) {
    return cr_cl_fail(error, value->status, "%s", value->message != NULL ? value->message : "");
}

cured_dtype cured_value_dtype(const cured_value *value) { return (cured_dtype)value->dtype; }

bool cured_value_exact(const cured_value *value) { return !value->inexact; }

const void *cured_value_bytes(const cured_value *value, size_t *bytes) {
    *bytes = value->len;
    return value->len != 0 ? value->bytes : NULL;
}

const void *cured_value_at(const cured_value *value, cured_dtype *dtype, size_t *bytes) {
    *dtype = (cured_dtype)value->at_dtype;
    *bytes = value->at_len;
    return value->at_len != 0 ? value->at : NULL;
}

/* Two's complement of any width widened to 16 bytes; false when it does not fit those. */
static bool widen(const cured_value *v, uint64_t *low, int64_t *high) {
    cr_kind kind = cr_dtype_kind((cr_dtype)v->dtype);
    bool is_signed = kind == CR_KIND_SINT || v->dtype == CR_I128 || v->dtype == CR_BIGINT;
    uint8_t fill = is_signed && (v->bytes[v->len - 1] & 0x80) != 0 ? 0xff : 0;
    uint8_t wide[CR_WIRE_VALUE_BYTES];
    memset(wide, fill, sizeof wide);
    memcpy(wide, v->bytes, v->len);
    for (size_t i = 16; i < sizeof wide; i++)
        if (wide[i] != fill) return false;
    if (v->len > 16 && (wide[15] ^ fill) & 0x80) return false;
    memcpy(low, wide, 8);
    memcpy(high, wide + 8, 8);
    return true;
}

static bool is_integer(const cured_value *v) {
    cr_kind kind = cr_dtype_kind((cr_dtype)v->dtype);
    return kind == CR_KIND_BOOL || kind == CR_KIND_UINT || kind == CR_KIND_SINT || v->dtype == CR_I128 ||
           v->dtype == CR_BIGINT;
}

cured_status cured_value_int64(const cured_value *value, int64_t *out) {
    uint64_t low;
    int64_t high;
    if (value->status != CR_OK) return (cured_status)value->status;
    if (!is_integer(value)) return CURED_INVALID_ARGUMENT;
    if (!widen(value, &low, &high)) return CURED_OUT_OF_RANGE;
    int64_t as_signed;
    memcpy(&as_signed, &low, sizeof low);
    if (high != (as_signed < 0 ? -1 : 0)) return CURED_OUT_OF_RANGE;
    *out = as_signed;
    return CURED_OK;
}

cured_status cured_value_uint64(const cured_value *value, uint64_t *out) {
    uint64_t low;
    int64_t high;
    if (value->status != CR_OK) return (cured_status)value->status;
    if (!is_integer(value)) return CURED_INVALID_ARGUMENT;
    if (!widen(value, &low, &high) || high != 0) return CURED_OUT_OF_RANGE;
    *out = low;
    return CURED_OK;
}
