/* fold_table: what each instruction set's file offers to fold.c.
 *
 * Thread: any; constants. */
#ifndef CURED_KERNELS_CPU_FOLD_TABLE_H
#define CURED_KERNELS_CPU_FOLD_TABLE_H

#include "kernels/core/partial.h"

typedef struct cr_fold_isa {
    const char *name;
    void (*fold)(cr_partial *p, const uint8_t *data, uint64_t n, uint64_t index);
} cr_fold_isa;

extern const cr_fold_isa cr_fold_portable;
#if defined(__x86_64__)
extern const cr_fold_isa cr_fold_avx2, cr_fold_avx512;
#endif

#endif
