/* close: the parts of an answer's closing that CPU and GPU share, so that each rule stands once: what NaNs and infinities decide, what
 * a sum is divided by, what a count counts. How a number is divided, its root taken and rounded is done in three widths:
 * finish_sums.c (any), kernels/cpu/axis/round.h (vectors), kernels/cuda/axis/round.cuh (GPU words).
 *
 * Thread: any; nothing here holds state. Plain C, and CUDA. */
#ifndef CURED_KERNELS_CORE_CLOSE_H
#define CURED_KERNELS_CORE_CLOSE_H

#include <stdbool.h>

#ifndef CURED_SUM_ALONE
#include "kernels/core/sum.h"
#endif

#ifdef __CUDACC__
#define CR_CLOSE static __host__ __device__ __forceinline__
#else
#define CR_CLOSE static inline
#endif

#ifndef CURED_SUM_ALONE
/* The terms that are sums with a sign, a bit each. */
enum {
    CR_SIGNED_TERMS = 0
#define CR_TERM(symbol, closing, result, int_needs, float_needs, wants) \
    | ((float_needs)&CR_FAM_SIGNED ? 1 << CR_TERM_##symbol : 0)
#include "kernels/core/term.def"
#undef CR_TERM
};

/* The terms of a closing, a bit each. */
enum {
#define CR_TERM(symbol, closing, result, int_needs, float_needs, wants) \
    | ((int)CR_CLOSING_##closing == (int)CR_CLOSING_COUNTS ? 1 << CR_TERM_##symbol : 0)
    CR_COUNT_TERMS = 0
#include "kernels/core/term.def"
#undef CR_TERM
#define CR_TERM(symbol, closing, result, int_needs, float_needs, wants) \
    | ((int)CR_CLOSING_##closing == (int)CR_CLOSING_BITS ? 1 << CR_TERM_##symbol : 0)
    ,
    CR_BITS_TERMS = 0
#include "kernels/core/term.def"
#undef CR_TERM
};
#endif

/* What decides an answer of a sum of floats. */
typedef enum cr_decided { CR_DECIDED_FINITE, CR_DECIDED_NAN, CR_DECIDED_PLUS, CR_DECIDED_MINUS } cr_decided;

/* Of a sum that has infinities of a sign, and no NaN that counts; those of a sum without a sign are positive. */
CR_CLOSE cr_decided cr_close_infinities(bool is_signed, bool plus, bool minus) {
    if (is_signed && plus && minus) return CR_DECIDED_NAN;
    return is_signed && minus ? CR_DECIDED_MINUS : CR_DECIDED_PLUS;
}

#ifndef CURED_SUM_ALONE
/* nan: one counts; plus, minus: there are infinities of that sign, which magnitudes and even powers make positive. */
CR_CLOSE cr_decided cr_close_specials(cr_term term, bool nan, bool plus, bool minus) {
    if (nan) return CR_DECIDED_NAN;
    if (!plus && !minus) return CR_DECIDED_FINITE;
    if (term == CR_TERM_SPREAD) return CR_DECIDED_NAN;
    return cr_close_infinities((CR_SIGNED_TERMS >> (unsigned)term & 1) != 0, plus, minus);
}

/* What the term of n elements is divided by; 0: nothing can be, the answer is NaN. A spread has been divided by n already. */
CR_CLOSE uint64_t cr_close_divisor(cr_divisor_kind divisor, uint64_t n, uint64_t ddof) {
    if (divisor == CR_DIVISOR_ONE) return 1;
    if (divisor == CR_DIVISOR_COUNT) return n;
    return n > ddof ? n - ddof : 0;
}

/* A term of CR_CLOSING_COUNTS, where n elements count, of which nonzero are not zero. nans: counted or not. Selections, because a GPU
 * jumps more slowly; finish_counts.c asserts that they know every such term. */
CR_CLOSE uint64_t cr_close_count(cr_term term, uint64_t n, uint64_t nonzero, uint64_t nans, uint64_t infinities) {
    return term == CR_TERM_NANS         ? nans
           : term == CR_TERM_INFINITIES ? infinities
           : term == CR_TERM_NONZERO    ? nonzero
           : term == CR_TERM_SOME       ? nonzero != 0
           : term == CR_TERM_EVERY      ? nonzero == n
                                        : n;
}

/* A term of CR_CLOSING_BITS; finish_bits.c asserts that these are all. */
CR_CLOSE uint64_t cr_close_bits(cr_term term, uint64_t all, uint64_t any, uint64_t odd) {
    return term == CR_TERM_BITS_AND ? all : term == CR_TERM_BITS_OR ? any : odd;
}
#endif

#endif
