/* op: the operations, and the one predicate that says what exists for (op, dtype). One list (op.def).
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_OP_H
#define CURED_KERNELS_CORE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/dtype.h"

/* A family is a kind of partial state; the fold knows families, not ops (docs/NUMERICS.md). Bits of a mask. */
enum {
    CR_FAM_SUM = 1 << 0,
    CR_FAM_SUMABS = 1 << 1,
    CR_FAM_SUMSQ = 1 << 2,
    CR_FAM_EXTREMA = 1 << 3, /* min, max, their lowest indices, the first NaN */
    CR_FAM_COUNTS = 1 << 4,  /* NaNs and non-zeros */
    CR_FAM_BITS = 1 << 5,
    CR_FAM_PROD = 1 << 6,
    CR_FAM_ALL = (1 << 7) - 1,
};

typedef enum cr_op {
    CR_OP_NONE = 0,
#define CR_OP(symbol, id, name, int_needs, float_needs, ...) CR_OP_##symbol = (id),
#include "kernels/core/op.def"
#undef CR_OP
    CR_OP_LAST = CR_OP_BIT_XOR,
} cr_op;

/* A set of ops, by their ids, which stay below 64. */
typedef uint64_t cr_ops;
/* The set of this op alone; the empty set for a number that is no id. */
static inline cr_ops cr_ops_of(uint32_t op) { return op > CR_OP_NONE && op < 64 ? (cr_ops)1 << op : 0; }
static inline bool cr_ops_has(cr_ops ops, uint32_t op) { return (ops & cr_ops_of(op)) != 0; }

/* "count_nonzero"; "none" for a number outside the list. */
const char *cr_op_name(cr_op op);
cr_status cr_op_parse(const char *name, cr_op *op, cr_error *error);
/* CR_OK when op has a meaning for dtype; INVALID_ARGUMENT when it has none (bit_and of f32, an unknown op or dtype). The
 * sentence names both. */
cr_status cr_op_supports(cr_op op, cr_dtype dtype, cr_error *error);
/* Of CR_FAM_EXTREMA, what an answer is finished from: a mask. */
enum { CR_WANTS_MIN = 1, CR_WANTS_MAX = 2, CR_WANTS_ARGMIN = 4, CR_WANTS_ARGMAX = 8, CR_WANTS_ALL = 15 };
/* op's share of it; 0 for the ops that need no extrema. An index is never wanted without its value. */
uint32_t cr_op_wants(cr_op op);
/* The families that op's answer on dtype is finished from; 0 when the element count alone is enough. */
uint32_t cr_op_needs(cr_op op, cr_dtype dtype);

#endif
