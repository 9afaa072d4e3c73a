/* linear: partials in their linear form, by the code of kernels/core/linear.h.
 *
 * Thread: any; nothing here holds state. Owner: the caller, as cured.h says. */
#include <stdlib.h>

#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/partial.h"
#include "kernels/core/ask.h"
#include "kernels/core/linear.h"
#include "kernels/core/serial.h"

/* Whether a vector has the numbers that it should have. */
static cr_status check_count(const char *what, const int64_t *of, size_t given, size_t wanted, cr_error *error) {
    if (of == NULL && given != 0) return cr_fail(error, CR_INVALID_ARGUMENT, "%s is NULL with a count above 0", what);
    if (given == wanted) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %zu numbers, must be %zu", what, given, wanted);
}

static cr_status take_room(const char *what, const int64_t *to, size_t *count, size_t wanted, cr_error *error) {
    const size_t room = *count;
    *count = wanted;
    if (to == NULL || room >= wanted) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: room for %zu numbers, %zu are needed", what, room, wanted);
}

cured_status cured_partial_linear(const void *partial, size_t bytes, int64_t *sums, size_t *sum_count, int64_t *maxima,
                                  size_t *max_count, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_share *share = malloc(sizeof *share);
    int64_t *both = NULL;
    if (share == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    const cr_partial *p = &share->partial;
    cr_status status = cr_cl_check_partials(&(cured_bytes){partial, bytes}, 1, &e);
    if (status == CR_OK) status = cr_share_unpack(partial, bytes, share, &e);
    if (status == CR_OK) status = cr_linear_check(p->families, &e);
    const size_t adds = status == CR_OK ? cr_linear_sums((cr_dtype)p->dtype, p->families) : 0,
                 compares = status == CR_OK ? cr_linear_maxima(p->families) : 0;
    if (status == CR_OK) status = take_room("sums", sums, sum_count, adds, &e);
    if (status == CR_OK) status = take_room("maxima", maxima, max_count, compares, &e);
    if (status == CR_OK && (sums != NULL || maxima != NULL)) {
        both = malloc((adds + compares) * sizeof *both);
        if (both == NULL) status = cr_fail(&e, CR_RESOURCE_EXHAUSTED, "no memory for a linear form");
    }
    if (both != NULL) {
        cr_linear_write(p, both, both + adds);
        for (size_t i = 0; sums != NULL && i < adds; i++) sums[i] = both[i];
        for (size_t i = 0; maxima != NULL && i < compares; i++) maxima[i] = both[adds + i];
    }
    free(both);
    free(share);
    return cr_cl_give(error, &e, 0);
}

cr_status cr_cl_linear_families(cured_dtype dtype, const cured_op *ops, size_t op_count, uint32_t *families,
                                cr_error *error) {
    if (!cr_dtype_is_input((cr_dtype)dtype))
        return cr_fail(error, CR_INVALID_ARGUMENT, "dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)dtype);
    cr_status status = cr_cl_check_ops(ops, op_count, error);
    *families = 0;
    for (size_t i = 0; i < op_count && status == CR_OK; i++) {
        const cr_finish_opts plain = {.ddof = 0};
        status = cr_finish_check((cr_op)ops[i], (cr_dtype)dtype, &plain, error);
        if (status == CR_OK) *families |= cr_op_needs((cr_op)ops[i], (cr_dtype)dtype);
        if (status == CR_OK) status = cr_linear_check(*families, error);
        if (status == CR_OK) status = cr_share_unplaced_takes((cr_op)ops[i], (cr_dtype)dtype, error);
    }
    return status;
}

cured_status cured_linear_size(cured_dtype dtype, const cured_op *ops, size_t op_count, size_t *sum_count,
                               size_t *max_count, cured_error *error) {
    cr_error e = {CR_OK, ""};
    uint32_t families;
    if (cr_cl_linear_families(dtype, ops, op_count, &families, &e) == CR_OK) {
        *sum_count = cr_linear_sums((cr_dtype)dtype, families);
        *max_count = cr_linear_maxima(families);
    }
    return cr_cl_give(error, &e, 0);
}

/* A partial that says nothing impossible: packed, and read as what a stranger sends. */
static cr_status pack(const cr_partial *p, cr_share *share, uint8_t *out, size_t *out_bytes, cr_error *error) {
    cr_status status = cr_share_make(share, p, CR_UNPLACED, error);
    if (status != CR_OK) return status;
    const size_t room = *out_bytes;
    *out_bytes = cr_share_pack(share, out, room);
    if (*out_bytes == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "out: room for %zu bytes, %d are enough", room, CR_SERIAL_MAX_BYTES);
    return cr_share_unpack(out, *out_bytes, share, error);
}

cured_status cured_linear_partial(cured_dtype dtype, const cured_op *ops, size_t op_count, const int64_t *sums,
                                  size_t sum_count, const int64_t *maxima, size_t max_count, void *out,
                                  size_t *out_bytes, cured_error *error) {
    cr_error e = {CR_OK, ""};
    uint32_t families;
    cr_status status = cr_cl_linear_families(dtype, ops, op_count, &families, &e);
    if (status == CR_OK) status = check_count("sums", sums, sum_count, cr_linear_sums((cr_dtype)dtype, families), &e);
    if (status == CR_OK) status = check_count("maxima", maxima, max_count, cr_linear_maxima(families), &e);
    if (status != CR_OK) return cr_cl_give(error, &e, 0);
    struct {
        cr_partial partial;
        cr_share share;
    } *own = malloc(sizeof *own);
    if (own == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    status = cr_linear_read((cr_dtype)dtype, families, sums, maxima, &own->partial, &e);
    if (status == CR_OK) pack(&own->partial, &own->share, out, out_bytes, &e);
    free(own);
    return cr_cl_give(error, &e, 0);
}
