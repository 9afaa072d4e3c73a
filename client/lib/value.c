/* value: see value.h. Thread, owner: see there. */
#include "client/lib/value.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/error.h"
#include "kernels/core/dtype.h"

/* Of values that were made together. */
typedef struct shelf {
    atomic_size_t left; /* not freed yet */
} shelf;

struct cured_values {
    uint32_t count;
    shelf *shelf; /* NULL: these were made alone */
    struct cured_value values[];
};

void cr_cl_value_set(struct cured_value *to, const cr_value *v, uint8_t dtype) {
    to->op = (uint8_t)v->op;
    to->status = v->error.code;
    if (v->error.code != CR_OK) {
        to->message = strdup(v->error.text);
        return;
    }
    to->dtype = (uint8_t)v->dtype;
    to->len = v->len;
    memcpy(to->bytes, v->bytes, sizeof to->bytes);
    to->at_dtype = dtype;
    to->at_len = v->at_len;
    memcpy(to->at, v->at, sizeof to->at);
}

void cr_cl_value_set_bits(struct cured_value *to, uint8_t op, uint8_t result, uint64_t bits, uint8_t dtype) {
    to->op = op;
    to->dtype = result;
    to->at_dtype = dtype;
    to->len = (uint8_t)cr_dtype_size((cr_dtype)result);
    for (unsigned i = 0; i < sizeof bits; i++) to->bytes[i] = (uint8_t)(bits >> 8 * i); /* those beyond len are 0 */
}

static size_t bytes_of(size_t count) { return sizeof(cured_values) + count * sizeof(struct cured_value); }

static void begin(cured_values *v, size_t count, shelf *with) {
    v->count = (uint32_t)count;
    v->shelf = with;
    /* Not by calloc, which does not look at what its thread has just freed. */
    for (size_t i = 0; i < count; i++) v->values[i] = (struct cured_value){.message = NULL};
}

cured_values *cr_cl_values_new(size_t count) {
    cured_values *v = malloc(bytes_of(count));
    if (v != NULL) begin(v, count, NULL);
    return v;
}

void cr_cl_values_shelf(size_t count, size_t many, cured_values **out) {
    shelf *own = malloc(sizeof *own + many * bytes_of(count));
    if (own == NULL) return;
    atomic_init(&own->left, many);
    for (size_t i = 0; i < many; i++) {
        out[i] = (cured_values *)(void *)((uint8_t *)(own + 1) + i * bytes_of(count));
        begin(out[i], count, own);
    }
}

struct cured_value *cr_cl_values_at(cured_values *values, size_t index) {
    return &values->values[index];
}

const cured_value *cured_values_get(const cured_values *values, size_t index) {
    return index < values->count ? &values->values[index] : NULL;
}

void cured_values_free(cured_values *values) {
    if (values == NULL) return;
    shelf *with = values->shelf;
    for (uint32_t i = 0; i < values->count; i++) free(values->values[i].message);
    if (with == NULL)
        free(values);
    else if (atomic_fetch_sub_explicit(&with->left, 1, memory_order_acq_rel) == 1)
        free(with);
}

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
