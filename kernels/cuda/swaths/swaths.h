/* swaths: answers along an axis under a mask, a swath of the array at a time: what the mask leaves out is written as an element that changes
 * no answer to memory that the L2 cache holds, where the kernels along an axis find it. So every op that they have is there under a mask,
 * too, and no kernel but one knows of it. How many elements of each output count is made of the mask by such a kernel as well, where an
 * answer depends on it.
 *
 *   hide: elements, mask ──▶ a swath, and a byte for each element ──▶ along the axis: counts, then answers ──▶ the next swath
 *   of extrema, when all is done: answers that may be of no element ──▶ whether one counts
 *
 * What they answer of some elements depends on the op (a product's are ones), so ops that agree are asked together.
 * Memory: a swath, its bytes, its counts, and the scratch of reductions along an axis, whose head the launch makes zero.
 * Thread: one at a time for a state. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_SWATHS_SWATHS_H
#define CURED_KERNELS_CUDA_SWATHS_SWATHS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/keys/groups.h"

/* ---- Of all that is asked: what swaths do not answer goes by cells (ways.c). As cr_keys_gpu_takes, _state and _enqueue ---- */

cr_status cr_ways_check(const cr_gpu_keys *keys, cr_error *error);
uint64_t cr_ways_state(const cr_gpu_keys *keys, uint32_t multiprocessors);
int cr_ways_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                    unsigned long long *wrong, void *stream);

/* ---- What is left out (fills.c) ---- */

/* The bits of what is no element to an op. */
uint64_t cr_fill_of(const cr_gpu_keys *keys, cr_op op);
/* Asks `axis` for the ops from number i on that have that op's fill, but for those that are done: ops and to have room for all, and out is
 * where the answers of all go. Gives which ops these are, a bit each. */
uint64_t cr_fill_ask(const cr_gpu_keys *keys, uint32_t i, uint64_t done, void *const *out, cr_gpu_axis *axis,
                     cr_op *ops, void **to);
/* Enqueues a look at which minima and maxima of `asked` are of no element, where that is what is left out became. */
int cr_fill_report_lacks(const cr_gpu_keys *keys, const cr_gpu_axis *asked, void *const *to, uint64_t fill,
                         uint32_t multiprocessors, unsigned long long *wrong, void *stream);

/* ---- By kernels that read the mask beside the array (masked.c) ---- */

/* Whether an answer of op depends on how many elements count. */
bool cr_masked_needs_count(cr_op op);
bool cr_masked_any_needs_count(const cr_gpu_axis *axis); /* of any of its ops */
/* Whether an array under a mask along an axis has such kernels for op, and is large enough for them. */
bool cr_masked_takes(const cr_gpu_keys *keys, cr_op op);
uint64_t cr_masked_state(const cr_gpu_keys *keys, uint32_t multiprocessors);
/* As cr_swaths_enqueue. */
int cr_masked_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                      unsigned long long *wrong, void *stream);
/* Of the most that a scratch is made for, by which is decided. */
enum { CR_MASKED_PROCESSORS = CR_AXIS_STATES / 32 };

/* ---- By swaths alone (swaths.c) ---- */

/* Whether an array under a mask along an axis (without keys and offsets) has swaths, and kernels for op. */
bool cr_swaths_takes(const cr_gpu_keys *keys, cr_op op);
/* Whether that is quicker than by cells (kernels/cuda/keys), if they take it. */
bool cr_swaths_pays(const cr_gpu_keys *keys, cr_op op);
/* Bytes of the state. */
uint64_t cr_swaths_state(const cr_gpu_keys *keys, uint32_t multiprocessors);
/* Enqueues all. wrong is 0, or has what is wrong of other ops. Gives a cudaError_t. */
int cr_swaths_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                      unsigned long long *wrong, void *stream);

/* ---- The kernel (hide.cu) ---- */

/* `lines` lines of `line` elements each, `stride` elements apart from element `first` on, of an array and of its mask. They are written
 * side by side. */
typedef struct cr_hide_args {
    const uint8_t *data;
    uint8_t *to, *kept; /* kept: a byte for each element, 1 where it counts; NULL: nobody asks */
    cr_mask mask;
    uint64_t first, lines, line, stride;
    uint64_t fill; /* the bits of what is left out */
    uint32_t size; /* of an element */
    uint32_t
        vectors; /* lines are of whole vectors of 16 bytes, at multiples of it; but for the end of one that is alone */
    uint32_t blocks, follows;
} cr_hide_args;

int cr_hide_launch(const cr_hide_args *args, void *stream);

/* Answers of a minimum or a maximum, of which those that are `bits` may be of no element: what is left out became that. */
typedef struct cr_lack_args {
    uint8_t *answers;
    cr_mask mask; /* of the whole array, whose shape is: */
    uint64_t n, inner, outputs;
    uint64_t bits;
    uint32_t size;             /* of an answer, as of an element */
    uint32_t op, result;       /* cr_op, cr_dtype */
    unsigned long long *wrong; /* as cr_keys_close_args has it */
} cr_lack_args;

/* Where no element counts the answer becomes 0, and that is told. */
int cr_lack_launch(const cr_lack_args *args, uint32_t multiprocessors, void *stream);

#ifdef __cplusplus
}
#endif
#endif
