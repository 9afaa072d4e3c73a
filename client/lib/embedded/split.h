/* split: folds of arrays in memory, by the thread pool of the process where that helps (thread_pool.h), else by the caller alone. The bits are
 * the same.
 *
 * A short array is cut into a range for each thread. A thread folds its own range, a piece at a time, and then pieces of the others' ranges
 * that nobody has taken: so a range stays in the cache of one core from call to call. Of a long array all take pieces in its order. Either
 * way a worker that comes late is waited for by nobody. A product of floats, whose order counts, is the caller's alone.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_CLIENT_LIB_EMBEDDED_SPLIT_H
#define CURED_CLIENT_LIB_EMBEDDED_SPLIT_H

#include "kernels/core/partial.h"
#include "kernels/core/view.h"

/* As cr_cpu_fold_view. */
void cr_split_fold(cr_partial *into, const cr_view *view, uint64_t elements, uint64_t index);
/* Bytes that are worth being folded at once now, between two looks at deadlines: few while another call has the pool; 0: there is one thread. */
uint64_t cr_split_bytes(void);
/* For tests: so many for each thread; 0: as always. */
void cr_split_claims(uint64_t bytes);

#endif
