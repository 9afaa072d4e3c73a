/* partial: partials in this process: merged, checked, and finished by the same code as the daemon's.
 *
 * Thread: any; nothing here holds state. Owner: the caller, as cured.h says. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/partial.h"
#include "client/lib/value.h"
#include "kernels/core/ask.h"
#include "kernels/core/serial.h"

_Static_assert((int)CURED_PARTIAL_BYTES == (int)CR_SERIAL_MAX_BYTES, "room for any partial");

struct merging {
    cr_share sum, next;
};

cr_status cr_cl_give_share(const cr_share *share, void *out, size_t *out_bytes, cr_error *error) {
    uint8_t *packed = malloc(CR_SERIAL_MAX_BYTES);
    cr_status status = CR_OK;
    if (packed == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    const size_t n = cr_share_pack(share, packed, CR_SERIAL_MAX_BYTES);
    if (n > *out_bytes)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "out has %zu bytes, %zu are needed", *out_bytes, n);
    else
        memcpy(out, packed, n);
    *out_bytes = n;
    free(packed);
    return status;
}

/* "partials[2]: elements from …": the sentence of one among several. */
static cured_status fail_at(cured_error *out, const cr_error *error, size_t index) {
    static const char prefix[] = "partial: ";
    const char *text = error->text;
    if (strncmp(text, prefix, sizeof prefix - 1) == 0) text += sizeof prefix - 1;
    return cr_cl_fail(out, error->code, "partials[%zu]: %.200s", index, text);
}

typedef struct place {
    uint64_t begins;
    size_t number;
} place;

static int compare(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->begins != y->begins) return x->begins < y->begins ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

cr_status cr_cl_check_partials(const cured_bytes *partials, size_t count, cr_error *error) {
    if (partials == NULL && count != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partials is NULL with a count above 0");
    for (size_t i = 0; i < count; i++)
        if (partials[i].data == NULL && partials[i].bytes != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "partials[%zu]: data is NULL with bytes above 0", i);
    return CR_OK;
}

size_t *cr_cl_merge_order(const cured_bytes *partials, size_t count) {
    if (count == SIZE_MAX) return NULL;
    place *places = calloc(count + 1, sizeof *places);
    size_t *order = places != NULL ? calloc(count + 1, sizeof *order) : NULL;
    for (size_t i = 0; order != NULL && i < count; i++)
        places[i] = (place){cr_share_begins(partials[i].data, partials[i].bytes), i};
    if (order != NULL) qsort(places, count, sizeof *places, compare);
    for (size_t i = 0; order != NULL && i < count; i++) order[i] = places[i].number;
    free(places);
    return order;
}

cured_status cured_partial_merge(const cured_bytes *partials, size_t count, void *out, size_t *out_bytes,
                                 cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_status status = CURED_OK;
    if (count == 0) return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is 0, must be at least 1");
    if (cr_cl_check_partials(partials, count, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    struct merging *m = malloc(sizeof *m);
    size_t *order = cr_cl_merge_order(partials, count);
    if (m == NULL || order == NULL) status = cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    for (size_t i = 0; i < count && status == CURED_OK; i++) {
        const cured_bytes *next = &partials[order[i]];
        cr_status s = cr_share_unpack(next->data, next->bytes, i == 0 ? &m->sum : &m->next, &e);
        if (s == CR_OK && i != 0) s = cr_share_merge(&m->sum, &m->next, &e);
        if (s != CR_OK) status = fail_at(error, &e, order[i]);
    }
    if (status == CURED_OK) cr_cl_give_share(&m->sum, out, out_bytes, &e);
    free(order);
    free(m);
    return status == CURED_OK ? cr_cl_give(error, &e, 0) : status;
}

cured_status cured_partial_check(const void *partial, size_t bytes, cured_dtype *dtype, uint64_t *count,
                                 cured_error *error) {
    cr_error e = {CR_OK, ""};
    if (cr_cl_check_partials(&(cured_bytes){partial, bytes}, 1, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    cr_share *share = malloc(sizeof *share);
    if (share == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    if (cr_share_unpack(partial, bytes, share, &e) == CR_OK) {
        if (dtype != NULL) *dtype = (cured_dtype)share->partial.dtype;
        if (count != NULL) *count = share->partial.n;
    }
    free(share);
    return cr_cl_give(error, &e, 0);
}

/* As the daemon does. */
static cr_status check_ops(const cr_share *share, const cured_op *ops, size_t op_count, const cr_finish_opts *opts,
                           cr_error *error) {
    uint32_t numbers[CURED_MAX_OPS];
    cr_needs needs;
    const cr_ask ask = {.dtype = (cr_dtype)share->partial.dtype,
                        .ops = numbers,
                        .op_count = (uint32_t)op_count,
                        .partial = true,
                        .folded = true,
                        .finish = *opts};
    for (size_t i = 0; i < op_count; i++) numbers[i] = (uint32_t)ops[i];
    cr_status status = cr_ask_ops(&ask, &needs, error);
    return status == CR_OK ? cr_share_answers(share, numbers, ask.op_count, true, error) : status;
}

static cr_status finish(const cr_share *share, const cured_op *ops, size_t op_count, const cured_options *o,
                        cured_values **values, cr_error *error) {
    const cr_finish_opts opts = {.nan = (cr_nan_policy)o->nan,
                                 .overflow = (cr_overflow)o->overflow,
                                 .result_dtype = (cr_dtype)o->result_dtype,
                                 .ddof = o->ddof};
    const cr_partial *p = &share->partial;
    cr_status status = check_ops(share, ops, op_count, &opts, error);
    if (status != CR_OK) return status;
    cured_values *v = cr_cl_values_new(op_count);
    if (v == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the values");
    for (size_t i = 0; i < op_count; i++) {
        cr_value value;
        const cr_finish_opts own = cr_finish_share((cr_op)ops[i], (cr_dtype)p->dtype, &opts, NULL);
        cr_partial_finish(p, (cr_op)ops[i], &own, &value);
        cr_cl_value_set(cr_cl_values_at(v, i), &value, p->dtype);
    }
    *values = v;
    return CR_OK;
}

cured_status cured_partial_finish(const void *partial, size_t bytes, const cured_op *ops, size_t op_count,
                                  const cured_options *options, cured_values **values, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *values = NULL;
    if (cr_cl_take_options(options, &o, &e) != CR_OK || cr_cl_check_ops(ops, op_count, &e) != CR_OK ||
        cr_cl_check_partials(&(cured_bytes){partial, bytes}, 1, &e) != CR_OK)
        return cr_cl_give(error, &e, 0);
    cr_share *share = malloc(sizeof *share);
    if (share == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    if (cr_share_unpack(partial, bytes, share, &e) == CR_OK) finish(share, ops, op_count, &o, values, &e);
    free(share);
    return cr_cl_give(error, &e, 0);
}
