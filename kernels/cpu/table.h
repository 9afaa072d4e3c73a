/* table: what each instruction set's file offers to fold.c.
 *
 * Thread: any; constants. */
#ifndef CURED_KERNELS_CPU_TABLE_H
#define CURED_KERNELS_CPU_TABLE_H

#include "kernels/core/partial.h"
#include "kernels/core/quantile.h"
#include "kernels/core/view.h"

/* Of one array: keys as family/extrema.h forms them, whose lower bytes are the element's; indices only where they were asked for. */
typedef struct cr_array_extrema {
    bool some; /* false: nothing but NaNs, then the keys say nothing */
    int64_t min_key, max_key;
    uint64_t min_index, max_index, first_nan;
} cr_array_extrema;

typedef struct cr_fold_isa {
    const char *name;
    void (*fold)(cr_partial *p, const cr_view *view, uint64_t n, uint64_t index);
    /* Of n elements at p; wants as in a partial. Long rows take it. */
    void (*extrema)(cr_dtype dtype, uint32_t wants, const uint8_t *p, uint64_t n, cr_array_extrema *to);
    void (*quantile)(const cr_quantile *s, uint64_t *counts, const cr_view *view, uint64_t n);
} cr_fold_isa;

extern const cr_fold_isa cr_fold_portable;
#if defined(__x86_64__)
extern const cr_fold_isa cr_fold_avx2, cr_fold_avx512;
/* Whether this machine multiplies 52 bits in vectors, which not every one with AVX-512 does. */
bool cr_cpu_has_ifma(void);
#endif

#endif
