/* fold: the CPU's folds of whole arrays. Each kernel has one source (family/, whole/), which is compiled once for each instruction
 * set; the set is chosen at run time.
 *
 * Thread: cr_cpu_select once before any fold; cr_cpu_fold from any thread. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FOLD_H
#define CURED_KERNELS_CPU_FOLD_H

#include "kernels/core/partial.h"
#include "kernels/core/quantile.h"
#include "kernels/core/view.h"

/* Chooses the instruction set: NULL or "auto" takes the best this machine has; "portable", "avx2", "avx512" force one
 * and fail with FAILED_PRECONDITION where the machine lacks it. Without a call, the first fold behaves as "auto". */
cr_status cr_cpu_select(const char *isa, cr_error *error);
/* The name of the instruction set in use. */
const char *cr_cpu_isa(void);

/* Folds n elements at data (any byte alignment; read only; n may be 0) into p, for all of p's families, in one pass.
 * index is the input's index of data[0]. Memory that another process changes meanwhile gives some answer, and never an
 * access outside [data, data + n·size) or an index outside [index, index + n). */
void cr_cpu_fold(cr_partial *p, const void *data, uint64_t n, uint64_t index);
/* The same of a view: of n elements those that its mask keeps. */
void cr_cpu_fold_view(cr_partial *p, const cr_view *view, uint64_t n, uint64_t index);
/* One read of quantiles: adds what of n elements of a view is to be counted to counts, cr_quantile_words(s) of them. */
void cr_cpu_quantile_fold(const cr_quantile *s, uint64_t *counts, const cr_view *view, uint64_t n);

#endif
