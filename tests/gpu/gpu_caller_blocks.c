/* gpu_caller_blocks: partials of blocks of a larger array, beside the CPU's: every type, of one axis to four, at any place, and at any address.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <string.h>

#include "kernels/core/serial.h"
#include "kernels/cpu/layout.h"
#include "tests/gpu/gpu_caller.h"

enum { DIMS = 4 };

/* A block of about so many elements at most, in an array that is wider along some axes; how many it has. */
static uint64_t draw_block(uint64_t most, uint64_t dims, uint64_t *shape, uint64_t *start, uint64_t *extent) {
    uint64_t count = 1;
    for (uint64_t i = 0; i < dims; i++) {
        const uint64_t left = count != 0 ? most / count : 0;
        extent[i] = left < 2 ? left
                             : 1 + caller_draw(i + 1 == dims || caller_draw(4) == 0 ? left
                                               : left < 9                           ? left
                                                                                    : 9);
        start[i] = caller_draw(2) ? caller_draw(99) : 0;
        shape[i] = start[i] + extent[i] + (caller_draw(2) ? caller_draw(99) : 0);
        count *= extent[i];
    }
    return count;
}

static size_t want(cured_dtype dtype, const cured_op *ops, size_t op_count, const cured_block *block, const void *data,
                   uint8_t *out) {
    static cr_partial partial;
    static cr_share share;
    cr_layout layout;
    cr_error error;
    uint32_t families = 0;
    for (size_t k = 0; k < op_count; k++) families |= cr_op_needs((cr_op)ops[k], (cr_dtype)dtype);
    cr_partial_init(&partial, (cr_dtype)dtype, families);
    if (cr_layout_make(&layout, block->dims, block->shape, block->start, block->extent, &error) != CR_OK) return 0;
    cr_cpu_fold_layout(&partial, &layout, data, layout.count, 0);
    return cr_share_make_block(&share, &partial, &layout, &error) == CR_OK
               ? cr_share_pack(&share, out, CURED_PARTIAL_BYTES)
               : 0;
}

void caller_check_block(void) {
    static uint8_t bytes[CURED_PARTIAL_BYTES], wanted[CURED_PARTIAL_BYTES];
    cured_dtype dtype;
    uint64_t offset, shape[DIMS], start[DIMS], extent[DIMS];
    cured_error error;
    cured_options options = CURED_OPTIONS_INIT;
    const uint64_t n = caller_make_array(&dtype, &offset, caller_draw(8) ? 65536 : caller_run.bytes / 16);
    const uint64_t dims = 1 + caller_draw(DIMS), count = draw_block(n, dims, shape, start, extent);
    const cured_block block = {(size_t)dims, shape, start, extent};
    cured_op ops[2] = {CURED_OP_DIGEST, caller_draw(2) ? CURED_OP_ARGMAX : CURED_OP_COUNT_NONZERO};
    const size_t op_count = 1 + caller_draw(2);
    size_t size = sizeof bytes;
    options.layout = &block;
    const cured_cuda_array array = {count != 0 ? caller_run.device + offset : NULL, count, dtype};
    const cured_cuda_ask ask = caller_ask(&array, 1, ops, op_count, &options);
    caller_good(cured_cuda_partial(&ask, bytes, &size, &error), &error, "partial of a block");
    const size_t length = want(dtype, ops, op_count, &block, caller_run.host + offset, wanted);
    caller_run.checks++;
    if (length != size || memcmp(bytes, wanted, size) != 0)
        caller_wrong("block", dtype, cured_op_name(ops[op_count - 1]), count, offset);
}
