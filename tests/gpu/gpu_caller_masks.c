/* gpu_caller_masks: arrays of device memory under masks beside the elements that count, put side by side on the host.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "tests/gpu/gpu_caller.h"

/* Some ops that do not say where an element lies; how many. */
static size_t draw_ops(cured_dtype dtype, cured_op *ops) {
    static const cured_op all[] = {CURED_OP_SUM,           CURED_OP_MEAN,      CURED_OP_SUMSQ,     CURED_OP_NORM1,
                                   CURED_OP_NORM2,         CURED_OP_VAR,       CURED_OP_STD,       CURED_OP_COUNT,
                                   CURED_OP_COUNT_NONZERO, CURED_OP_COUNT_NAN, CURED_OP_COUNT_INF, CURED_OP_MIN,
                                   CURED_OP_MAX,           CURED_OP_NORMINF,   CURED_OP_PTP,       CURED_OP_ANY,
                                   CURED_OP_ALL,           CURED_OP_BIT_AND,   CURED_OP_BIT_OR,    CURED_OP_BIT_XOR};
    const size_t first = caller_draw(sizeof all / sizeof all[0]), wanted = 1 + caller_draw(3);
    size_t count = 0;
    for (size_t i = 0; i < wanted; i++) {
        const cr_finish_opts plain = {.ddof = 0};
        const cured_op op = all[(first + i) % (sizeof all / sizeof all[0])];
        if (dtype >= CURED_F8_E4M3 && cr_op_closing((cr_op)op) == CR_CLOSING_EXTREMA) continue; /* no kernel has them */
        if (cr_finish_check((cr_op)op, (cr_dtype)dtype, &plain, NULL) == CR_OK) ops[count++] = op;
    }
    if (count == 0) ops[count++] = CURED_OP_COUNT_NONZERO;
    return count;
}

size_t caller_draw_key_ops(cured_dtype dtype, bool plain, cured_op *ops) {
    enum { ANY = 1, FLOATS = 2, INTEGERS = 4, SQUARES = 8 };
    static const struct {
        cured_op op;
        int of;
    } all[] = {{CURED_OP_SUM, ANY},
               {CURED_OP_MEAN, ANY},
               {CURED_OP_NORM1, ANY},
               {CURED_OP_COUNT, ANY},
               {CURED_OP_COUNT_NONZERO, ANY},
               {CURED_OP_ANY, ANY},
               {CURED_OP_ALL, ANY},
               {CURED_OP_MIN, ANY},
               {CURED_OP_MAX, ANY},
               {CURED_OP_NORMINF, ANY},
               {CURED_OP_ARGMIN, ANY},
               {CURED_OP_ARGMAX, ANY},
               {CURED_OP_PTP, ANY},
               {CURED_OP_COUNT_NAN, FLOATS},
               {CURED_OP_COUNT_INF, FLOATS},
               {CURED_OP_SUMSQ, FLOATS | SQUARES},
               {CURED_OP_NORM2, FLOATS | SQUARES},
               {CURED_OP_VAR, FLOATS | SQUARES},
               {CURED_OP_STD, FLOATS | SQUARES},
               {CURED_OP_PROD, INTEGERS},
               {CURED_OP_BIT_AND, INTEGERS},
               {CURED_OP_BIT_OR, INTEGERS},
               {CURED_OP_BIT_XOR, INTEGERS}};
    const int of =
        (cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT ? ANY | FLOATS : ANY | INTEGERS) | (plain ? SQUARES : 0);
    const size_t there = sizeof all / sizeof all[0];
    size_t count = 0;
    for (size_t k = 0; k < there && count < 8; k++)
        if (caller_draw(5) == 0 && (all[k].of & of) != 0) ops[count++] = all[k].op;
    if (count == 0) ops[count++] = all[caller_draw(13)].op;
    return count;
}

size_t caller_draw_swath_ops(cured_dtype dtype, cured_op *ops) {
    static const cured_op all[] = {
        CURED_OP_SUMSQ,   CURED_OP_NORM2,     CURED_OP_VAR,     CURED_OP_STD, CURED_OP_PROD,  CURED_OP_SUM,
        CURED_OP_MEAN,    CURED_OP_COUNT,     CURED_OP_ANY,     CURED_OP_ALL, CURED_OP_NORM1, CURED_OP_BIT_OR,
        CURED_OP_BIT_AND, CURED_OP_COUNT_NAN, CURED_OP_NORMINF, CURED_OP_MIN, CURED_OP_MAX};
    const size_t there = sizeof all / sizeof all[0], first = caller_draw(there), wanted = 1 + caller_draw(8);
    const cr_finish_opts plain = {.ddof = 0};
    size_t count = 0;
    for (size_t i = 0; i < wanted; i++) {
        const cured_op op = all[(first + i) % there];
        if (dtype >= CURED_F16 && cr_op_closing((cr_op)op) == CR_CLOSING_PRODUCT) continue;
        if (cr_finish_check((cr_op)op, (cr_dtype)dtype, &plain, NULL) == CR_OK) ops[count++] = op;
    }
    if (count == 0) ops[count++] = CURED_OP_SUM;
    return count;
}

/* A mask of n elements at caller_run.beside; and to `kept` those of size bytes at host that count. Gives how many. */
static uint64_t make_mask(cured_mask *mask, uint64_t n, const uint8_t *host, size_t size, uint8_t *kept) {
    const uint64_t of = caller_draw(4), at = caller_draw(8), bytes = at + n + 16;
    uint64_t count = 0;
    uint8_t *own = calloc(1, bytes);
    *mask = (cured_mask){caller_run.beside + at, n, caller_draw(40), CURED_MASK_BYTES, caller_draw(2) != 0};
    if (caller_draw(2)) mask->kind = CURED_MASK_BITS;
    if (mask->first > 15) mask->first = 0;
    for (uint64_t i = 0; i < n; i++) {
        const bool set = of == 0   ? caller_draw(2) != 0
                         : of == 1 ? caller_draw(50) == 0
                         : of == 2 ? caller_draw(50) != 0
                                   : i / 900 % 2 != 0;
        const uint64_t place = mask->first + i;
        if (set && mask->kind == CURED_MASK_BYTES) own[at + place] = (uint8_t)(1 + caller_draw(255));
        if (set && mask->kind == CURED_MASK_BITS) own[at + place / 8] |= (uint8_t)(1 << place % 8);
        if (set != mask->leaves_out) memcpy(kept + size * count++, host + i * size, size);
    }
    caller_cuda(cudaMemcpy(caller_run.beside, own, bytes, cudaMemcpyHostToDevice), "copy");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    free(own);
    return count;
}

/* Its bytes are those of the CPU's partial of the elements that count; it has no position. */
static void check_partial(cured_cuda_ask ask, const uint8_t *kept, uint64_t left, uint64_t offset) {
    static cr_partial partial;
    static cr_share share;
    static uint8_t wanted[CURED_PARTIAL_BYTES], found[CURED_PARTIAL_BYTES];
    const cr_dtype dtype = (cr_dtype)ask.arrays->dtype;
    cured_options options = *ask.options;
    size_t bytes = sizeof found;
    uint32_t families = 0;
    cured_error error;
    cr_error ignored;
    options.unplaced = true;
    ask.options = &options;
    caller_good(cured_cuda_partial(&ask, found, &bytes, &error), &error, "partial under a mask");
    for (size_t k = 0; k < ask.op_count; k++) families |= cr_op_needs((cr_op)ask.ops[k], dtype);
    cr_partial_init(&partial, dtype, families);
    cr_cpu_fold(&partial, kept, left, 0);
    cr_share_make(&share, &partial, CR_UNPLACED, &ignored);
    caller_run.checks++;
    if (cr_share_pack(&share, wanted, sizeof wanted) != bytes || memcmp(wanted, found, bytes) != 0)
        caller_wrong("partial under a mask", ask.arrays->dtype, cured_op_name(ask.ops[0]), left, offset);
}

void caller_check_masked(void) {
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset;
    cured_error error;
    cured_values *values;
    cured_mask mask;
    cured_options options = CURED_OPTIONS_INIT, plain = CURED_OPTIONS_INIT;
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    const size_t size = cured_dtype_size(dtype), count = draw_ops(dtype, ops);
    uint8_t *kept = malloc(n * size + 1);
    const uint64_t left = make_mask(&mask, n, caller_run.host + offset, size, kept);
    options.mask = &mask;
    const cured_cuda_array array = {caller_run.device + offset, n, dtype};
    const cured_cuda_ask ask = caller_ask(&array, 1, ops, count, &options);
    caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "reduce under a mask");
    caller_compare(mask.kind == CURED_MASK_BITS ? "bits" : "bytes", dtype, ops, count, kept, left, &plain, values,
                   offset);
    if (caller_draw(3) == 0) check_partial(ask, kept, left, offset);
    cured_values_free(values);
    free(kept);
}
