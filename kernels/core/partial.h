/* partial: what a fold knows about the elements it has seen, and how such knowledge merges and becomes an answer.
 *
 * A partial is exact: merging is integer addition, a minimum, or a bitwise operation, so it is associative and
 * commutative, and the same elements give the same state whoever folded what, in any split and order. NaNs and
 * infinities are counted, never added. NaN policy, ddof, result type and overflow rule apply at finish only.
 *
 * Thread: a partial is a plain value (it may be copied with =) used by one thread at a time. Owner: whoever declared
 * it. Nothing here allocates. */
#ifndef CURED_KERNELS_CORE_PARTIAL_H
#define CURED_KERNELS_CORE_PARTIAL_H

#include <stdint.h>

#include "kernels/core/digest.h"
#include "kernels/core/limbs.h"
#include "kernels/core/op.h"
#include "kernels/core/sum.h"

/* Fixed-point superaccumulator (Kulisch and Miranker 1986; Neal 2015, arXiv:1505.05571). Integers use the same limbs. */
typedef struct cr_sum {
    cr_specials special;
    uint32_t pending; /* raw limb additions since the last carry pass */
    int64_t limbs[CR_SUM_LIMBS];
} cr_sum;

typedef struct cr_extremum {
    uint64_t key;   /* order-preserving unsigned key of the value */
    uint64_t index; /* lowest index that holds it; UINT64_MAX: no non-NaN element seen */
} cr_extremum;

/* The product of integers, exact as long as any result type could hold it, so that it merges in any order. */
enum { CR_INT_PROD_WORDS = 16 }; /* 1,024 bits: what is longer is an infinity even as f64 */
typedef struct cr_int_prod {
    uint64_t zeros;
    uint64_t wrap; /* of all elements, modulo 2^64 */
    bool negative, over;
    uint32_t words;                        /* in use; 0 once over */
    uint64_t magnitude[CR_INT_PROD_WORDS]; /* of the non-zero elements, lowest word first, the highest not 0 */
} cr_int_prod;

/* The product of floats, by the fixed tree of docs/NUMERICS.md. A node is the product of blocks [index·2^level, …) of 4,096
 * elements each, as (h + l)·2^exponent; missing elements, NaNs, zeros and infinities are ones in it. Siblings join when they
 * meet, so the nodes at hand follow from the blocks folded alone. */
enum { CR_PROD_BLOCK = 4096, CR_PROD_NODES = 128 };
typedef struct cr_prod_node {
    uint64_t place; /* (2·index + 1)·2^level: rises along the array */
    double h, l;    /* h in [1, 2), and h + l rounds to h; l is never −0 */
    int64_t exponent;
} cr_prod_node;
typedef struct cr_float_prod {
    uint64_t nans, zeros, infs;
    bool negative; /* an odd number of negative elements other than NaNs and zeros */
    bool lost;     /* there were more nodes than fit: no answer */
    uint32_t count;
    cr_prod_node nodes[CR_PROD_NODES]; /* by rising place */
} cr_float_prod;

typedef struct cr_partial {
    uint8_t dtype;     /* cr_dtype */
    uint8_t wants;     /* what folds find of the extrema: CR_WANTS_...; the others stay at what they were */
    uint32_t families; /* which members below are live; the others are not initialised */
    uint64_t n;        /* elements folded */
    /* CR_FAM_COUNTS */
    uint64_t nans, nonzero;
    /* CR_FAM_EXTREMA */
    cr_extremum min, max;
    uint64_t first_nan; /* UINT64_MAX: none */
    /* CR_FAM_BITS */
    uint64_t bit_and, bit_or, bit_xor;
    /* CR_FAM_DIGEST: the residues of the elements' bytes, each at its place in the input; and, once it is a share, the coverage */
    uint64_t digest[CR_DIGEST_PARTS], cover;
    /* CR_FAM_PROD of integers */
    cr_int_prod prod;
    /* CR_FAM_SUMS, by CR_AT_...; CR_FAM_PROD of floats, which no partial has beside sums of pairs */
    union {
        cr_sum sums[CR_SUMS];
        struct {
            cr_sum of_one[CR_AT_DOT];
            cr_float_prod float_prod;
        };
    };
} cr_partial;

typedef enum cr_nan_policy { CR_NAN_PROPAGATE = 0, CR_NAN_SKIP = 1 } cr_nan_policy;
typedef enum cr_overflow { CR_OVERFLOW_ERROR = 0, CR_OVERFLOW_WRAP = 1 } cr_overflow;

/* How to finish; all zero is the default of every field. */
typedef struct cr_finish_opts {
    cr_nan_policy nan;
    cr_overflow overflow;
    cr_dtype result_dtype; /* CR_DTYPE_NONE: the op's default */
    uint64_t ddof;
} cr_finish_opts;

/* One op's answer: a value, or a status and a sentence. */
typedef struct cr_value {
    cr_op op;
    cr_error error;    /* code CR_OK: the members below hold the value */
    cr_dtype dtype;    /* of bytes: an input type, CR_I128, CR_BIGINT or CR_DIGEST */
    uint8_t len;       /* bytes used; 32 at most */
    uint8_t bytes[32]; /* little-endian; integers in two's complement */
    /* argmin, argmax: the element at that index, in the input's type; at_len 0 for the other ops */
    uint8_t at_len;
    uint8_t at[8];
} cr_value;

/* Makes p the partial of no elements, for input type dtype and a mask of CR_FAM_*. */
void cr_partial_init(cr_partial *p, cr_dtype dtype, uint32_t families);
/* Of the extrema, the folds to come need only find these (a mask of CR_WANTS_...; 0 if no op has a share): no other may be
 * finished, nor the partial be handed on. cr_partial_init makes it all of them. */
void cr_partial_want(cr_partial *p, uint32_t wants);
/* Adds from to into. Both must have the same dtype and families, and have folded disjoint elements. A product of floats from ranges
 * this scattered may have more nodes than fit: finishing it is RESOURCE_EXHAUSTED. The other families always merge. */
void cr_partial_merge(cr_partial *into, const cr_partial *from);
/* Finishes one op, by its share of opts (cr_finish_share). p needs cr_op_needs(op, dtype) among its families. Does not
 * change p. */
void cr_partial_finish(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *value);
/* Checks that (op, dtype, opts) can be asked for: result_dtype fits the op and the input, ddof and overflow belong to
 * the op. Called before any data is read. */
cr_status cr_finish_check(cr_op op, cr_dtype dtype, const cr_finish_opts *opts, cr_error *error);
/* A request has one set of options for all its ops. This one's share of them: what op does not take is at its default, and
 * *taken (may be NULL) says which of the options that are not at their defaults it does take. */
enum { CR_OPT_OVERFLOW = 1, CR_OPT_RESULT_DTYPE = 2, CR_OPT_DDOF = 4 };
cr_finish_opts cr_finish_share(cr_op op, cr_dtype dtype, const cr_finish_opts *opts, uint32_t *taken);
/* Elements to which cuts between folds must be aligned for these families: 1, or 4,096 with CR_FAM_PROD of floats. */
uint64_t cr_partial_grain(cr_dtype dtype, uint32_t families);
/* Adds value·2^bit, in units of its grid, to one of a partial's sums. */
static inline void cr_partial_put(cr_partial *p, cr_sum_at at, __int128 value, unsigned bit) {
    cr_sum *sum = &p->sums[at];
    cr_limbs_put_signed(sum->limbs, cr_sum_limbs(at, (cr_dtype)p->dtype), &sum->pending, value, bit);
}

#endif
