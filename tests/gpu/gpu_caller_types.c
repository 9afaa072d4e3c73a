/* gpu_caller_types: lists of arrays of several types are one array of the narrowest type that holds all elements: the answers are those of
 * the elements cast by C, one after the other, on the CPU.
 *
 * Thread: one. Owner: this file. */
#include <string.h>

#include "kernels/core/round.h"
#include "tests/gpu/gpu_caller.h"

enum { MOST_ARRAYS = 12, MOST_LENGTH = 20000 };

static uint8_t wide_host[MOST_ARRAYS * MOST_LENGTH * 8];

static bool is_float(cured_dtype dtype) { return dtype >= CURED_F16; }

static bool is_signed(cured_dtype dtype) {
    return dtype == CURED_I8 || dtype == CURED_I16 || dtype == CURED_I32 || dtype == CURED_I64;
}

/* Of two types that have one. */
static cured_dtype wider(cured_dtype a, cured_dtype b) {
    static const cured_dtype with_sign[] = {CURED_I8, CURED_I16, CURED_I32, CURED_I64};
    if (a == b) return a;
    if (is_float(a)) return a == CURED_F64 || b == CURED_F64 ? CURED_F64 : CURED_F32;
    if (is_signed(a) == is_signed(b)) return a > b ? a : b;
    const cured_dtype with = is_signed(a) ? a : b, without = is_signed(a) ? b : a;
    if (without == CURED_BOOL || cured_dtype_size(without) < cured_dtype_size(with)) return with;
    for (int i = 0; i < 4; i++)
        if (cured_dtype_size(with_sign[i]) > cured_dtype_size(without)) return with_sign[i];
    return without;
}

static void cast(uint8_t *to, cured_dtype wide, const uint8_t *from, cured_dtype dtype) {
    const size_t size = cured_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, from, size);
    if (dtype != wide && is_float(dtype)) {
        const double value = cr_float_value((cr_dtype)dtype, bits);
        const float single = (float)value;
        memcpy(to, wide == CURED_F64 ? (const void *)&value : &single, cured_dtype_size(wide));
        return;
    }
    if (dtype == CURED_BOOL) bits = bits != 0; /* any byte may stand there */
    if (is_signed(dtype)) bits = (uint64_t)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
    memcpy(to, &bits, cured_dtype_size(wide));
}

/* Arrays one after the other in device memory, each of a type of its own; the same elements, cast, in wide_host. */
static size_t make(cured_cuda_array *arrays, cured_dtype *wide, uint64_t *n) {
    const bool floats = caller_draw(2);
    const size_t count = 2 + caller_draw(MOST_ARRAYS - 1);
    uint8_t *host[MOST_ARRAYS], *next = caller_run.host;
    for (size_t i = 0; i < count; i++) {
        cured_cuda_array *a = &arrays[i];
        a->dtype = (cured_dtype)(floats ? CURED_F16 + caller_draw(6) : CURED_BOOL + caller_draw(7));
        if (a->dtype > CURED_F64) a->dtype += CURED_F8_E4M3 - CURED_F64 - 1;
        if (!floats && caller_draw(20) == 0) a->dtype = CURED_I64;
        a->count = caller_draw(3) ? caller_draw(300) : caller_draw(MOST_LENGTH);
        host[i] = next + caller_draw(8);
        case_fill(host[i], a->count, (cr_dtype)a->dtype, (enum cr_data_kind)caller_draw(DATA_KINDS), caller_run.seed);
        next = host[i] + a->count * cured_dtype_size(a->dtype);
        a->data = a->count != 0 ? caller_run.device + (host[i] - caller_run.host) : NULL;
        *wide = i == 0 ? a->dtype : wider(*wide, a->dtype);
    }
    caller_cuda(
        cudaMemcpy(caller_run.device, caller_run.host, (size_t)(next - caller_run.host), cudaMemcpyHostToDevice),
        "copy");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    *n = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < arrays[i].count; k++)
            cast(wide_host + (*n)++ * cured_dtype_size(*wide), *wide, host[i] + k * cured_dtype_size(arrays[i].dtype),
                 arrays[i].dtype);
    return count;
}

void caller_check_types(void) {
    static uint8_t bytes[CURED_PARTIAL_BYTES];
    cured_cuda_array arrays[MOST_ARRAYS];
    cured_dtype wide = CURED_BOOL;
    cured_op ops[8], some[8];
    cured_error error;
    cured_values *values;
    cured_cuda_call *call;
    size_t size = sizeof bytes, op_count = 0;
    uint64_t n;
    const size_t count = make(arrays, &wide, &n), drawn = caller_draw_ops(wide, ops, false);
    for (size_t k = 0; k < drawn; k++) /* prod of floats is for one type */
        if (ops[k] != CURED_OP_PROD || !is_float(wide)) some[op_count++] = ops[k];
    if (op_count == 0) some[op_count++] = CURED_OP_ARGMAX;
    cured_cuda_ask ask = caller_ask(arrays, count, some, op_count, NULL);
    if (caller_draw(2)) {
        caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "types");
    } else {
        caller_good(cured_cuda_start(&ask, &call, &error), &error, "start types");
        while (!cured_cuda_done(call)) {
        }
        caller_good(cured_cuda_finish(call, &values, &error), &error, "finish types");
    }
    caller_compare("types", wide, some, op_count, wide_host, n, NULL, values, count);
    cured_values_free(values);
    caller_good(cured_cuda_partial(&ask, bytes, &size, &error), &error, "partial of types");
    caller_good(cured_partial_finish(bytes, size, some, op_count, NULL, &values, &error), &error, "finish");
    caller_compare("partial of types", wide, some, op_count, wide_host, n, NULL, values, count);
    cured_values_free(values);
}
