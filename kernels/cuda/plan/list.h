/* list: what the host and the kernels share of a fold of many arrays in one launch, in plain C.
 *
 * The arrays are cut in rows of 4 KiB, each array's first row beginning where it begins; block b takes rows [b·per_block, …). So a
 * list costs what its bytes cost, however they are spread.
 * Thread: one at a time for a state, a slot and the descriptors. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_PLAN_LIST_H
#define CURED_KERNELS_CUDA_PLAN_LIST_H

#include "kernels/cuda/plan/fold.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CR_LIST_ROW = CR_GPU_THREADS * CR_GPU_VECTOR };
#define CR_LIST_ROWS ((uint64_t)1 << 31) /* 8 TB */

/* In device memory. After the last comes one with n 0, whose row is the number of all rows. */
typedef struct cr_list_array {
    const uint8_t *data;
    uint64_t n;
    uint32_t row;
} cr_list_array;

/* So many arrays travel with the launch, because a copy of their descriptors to device memory takes 3 µs. */
enum { CR_LIST_TOLD = 320 };

/* fold: of one of the arrays, for what is looked at before the others; its state and slot are the whole list's. */
typedef struct cr_list_args {
    cr_fold_args fold;
    const cr_list_array *arrays; /* NULL: the launch has them, in told */
    uint32_t rows, per_block;    /* CR_LIST_ROWS at most */
    uint32_t count;              /* 1 and more, none of them without elements */
    bool edges;                  /* some array does not begin and end at multiples of 16 bytes */
    cr_list_array told[CR_LIST_TOLD + 1];
} cr_list_args;

/* Launchers in fold.def's table take a cr_fold_args; those of lists take it for the beginning of a cr_list_args. NULL: lists of this type
 * and family have no kernel. */
cr_fold_launcher cr_list_launcher(cr_dtype dtype, uint32_t family);

/* Likewise of sums that make their answers: of a cr_answered_args (axis/answer.h). */
cr_fold_launcher cr_answered_launcher(cr_dtype dtype, uint32_t families);

/* n elements of size bytes, which are in memory. */
static inline uint64_t cr_list_rows(uint64_t n, uint32_t size) { return (n * size + CR_LIST_ROW - 1) / CR_LIST_ROW; }

#ifdef __cplusplus
}
#endif
#endif
