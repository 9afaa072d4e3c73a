/* op: the operations, what each one's answer is made of, and the one predicate that says what exists for (op, dtype). Three lists:
 * op.def (ops), term.def (what they read) and family.def (the states that hold it).
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_OP_H
#define CURED_KERNELS_CORE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/dtype.h"

/* A family is a kind of partial state. */
typedef enum cr_family {
#define CR_FAMILY(symbol, bit) CR_FAMILY_##symbol = (bit),
#include "kernels/core/family.def"
#undef CR_FAMILY
} cr_family;
/* The same as bits of a mask. */
enum {
#define CR_FAMILY(symbol, bit) CR_FAM_##symbol = 1 << (bit),
#include "kernels/core/family.def"
#undef CR_FAMILY
#define CR_FAMILY(symbol, bit) CR_FAM_##symbol |
    CR_FAM_ALL =
#include "kernels/core/family.def"
#undef CR_FAMILY
        0,
};

/* The family of a mask that has one bit. */
static inline cr_family cr_family_of(uint32_t bit) { return (cr_family)__builtin_ctz(bit); }

/* Of CR_FAM_EXTREMA, what an answer is finished from: a mask. An index is never wanted without its value. */
enum { CR_WANTS_MIN = 1, CR_WANTS_MAX = 2, CR_WANTS_ARGMIN = 4, CR_WANTS_ARGMAX = 8, CR_WANTS_ALL = 15 };

typedef enum cr_op {
    CR_OP_NONE = 0,
#define CR_OP(symbol, id, ...) CR_OP_##symbol = (id),
#include "kernels/core/op.def"
#undef CR_OP
} cr_op;

typedef enum cr_term {
    CR_TERM_NONE,
#define CR_TERM(symbol, closing, result, int_needs, float_needs, wants) CR_TERM_##symbol,
#include "kernels/core/term.def"
#undef CR_TERM
} cr_term;
typedef enum cr_closing {
    CR_CLOSING_SUMS,
    CR_CLOSING_EXTREMA,
    CR_CLOSING_COUNTS,
    CR_CLOSING_BITS,
    CR_CLOSING_PRODUCT,
    CR_CLOSING_DIGEST,
    CR_CLOSING_ORDER
} cr_closing;
typedef enum cr_divisor_kind { CR_DIVISOR_ONE, CR_DIVISOR_COUNT, CR_DIVISOR_COUNT_LESS_DDOF } cr_divisor_kind;
typedef enum cr_root_kind { CR_ROOT_PLAIN, CR_ROOT_ROOT } cr_root_kind;
typedef enum cr_result {
    CR_RESULT_EXACT,     /* of integers an exact integer, of floats a float */
    CR_RESULT_FLOAT,     /* f64, or the float that is asked for */
    CR_RESULT_ELEMENT,   /* the input's type */
    CR_RESULT_MAGNITUDE, /* the type of its magnitudes */
    CR_RESULT_INDEX,     /* u64 */
    CR_RESULT_TRUTH,     /* bool */
    CR_RESULT_RESIDUES   /* CR_DIGEST */
} cr_result;
typedef enum cr_empty { CR_EMPTY_ZERO, CR_EMPTY_ONE, CR_EMPTY_BITS, CR_EMPTY_NAN, CR_EMPTY_NONE } cr_empty;

/* A row of op.def: the answer is root?(term / divisor), rounded once to result. */
typedef struct cr_op_row {
    const char *name;                           /* NULL: no op has this id */
    uint8_t term, divisor, root, result, empty; /* cr_term, … */
} cr_op_row;

enum { CR_OP_IDS = 64 }; /* ids stay below, so that a set of ops is a word */
/* By id; what is no id has a row without a name. */
extern const cr_op_row cr_op_rows[CR_OP_IDS];

/* The row of any number. */
static inline const cr_op_row *cr_op_row_of(uint32_t op) { return &cr_op_rows[op < CR_OP_IDS ? op : 0]; }
static inline cr_term cr_op_term(cr_op op) { return (cr_term)cr_op_row_of(op)->term; }
static inline cr_divisor_kind cr_op_divisor(cr_op op) { return (cr_divisor_kind)cr_op_row_of(op)->divisor; }
static inline bool cr_op_is_root(cr_op op) { return cr_op_row_of(op)->root == CR_ROOT_ROOT; }
static inline cr_result cr_op_result(cr_op op) { return (cr_result)cr_op_row_of(op)->result; }
static inline cr_empty cr_op_empty(cr_op op) { return (cr_empty)cr_op_row_of(op)->empty; }
/* Whether op's answer is an index into the input: it is of use only where the input's place is known. */
static inline bool cr_op_is_index(cr_op op) {
    return cr_op_term(op) == CR_TERM_LEAST_INDEX || cr_op_term(op) == CR_TERM_GREATEST_INDEX;
}

/* Whether an answer of integers that no 64 bits hold is a wider one. */
static inline bool cr_op_grows(cr_op op) {
    return cr_op_result(op) == CR_RESULT_EXACT && cr_op_term(op) != CR_TERM_PRODUCT;
}
/* Whether op is told a share of the way (options.parameters). */
static inline bool cr_op_takes_share(cr_op op) { return cr_op_term(op) == CR_TERM_QUANTILE; }

/* Whether op's answer on dtype depends on the order of elements: first indices do, products of floats and digests. */
bool cr_op_is_ordered(cr_op op, cr_dtype dtype);

/* A set of ops, by their ids. */
typedef uint64_t cr_ops;
/* The set of this op alone; the empty set for a number that is no id. */
static inline cr_ops cr_ops_of(uint32_t op) { return cr_op_row_of(op)->name ? (cr_ops)1 << op : 0; }
static inline bool cr_ops_has(cr_ops ops, uint32_t op) { return (ops & cr_ops_of(op)) != 0; }
/* The op after `op` by rising id, CR_OP_NONE after the last. From CR_OP_NONE it goes through all:
 *   for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) */
cr_op cr_op_next(cr_op op);

/* The first op whose answer is the term itself; CR_OP_NONE: none is. */
cr_op cr_op_of_term(cr_term term);

/* "count_nonzero"; "none" for a number outside the list. */
const char *cr_op_name(cr_op op);
cr_status cr_op_parse(const char *name, cr_op *op, cr_error *error);
/* CR_OK when op has a meaning for dtype; INVALID_ARGUMENT when it has none (bit_and of f32, an unknown dtype), UNIMPLEMENTED
 * for a number that is no op of this version. The sentence names both. */
cr_status cr_op_supports(cr_op op, cr_dtype dtype, cr_error *error);
/* op's share of CR_WANTS_...; 0 for the ops that need no extrema. */
uint32_t cr_op_wants(cr_op op);
/* The families that op's answer on dtype is finished from; 0 when the element count alone is enough. */
uint32_t cr_op_needs(cr_op op, cr_dtype dtype);
/* How many arrays op is of: 1 or 2. */
unsigned cr_op_inputs(cr_op op);
/* How op's term becomes a value. */
cr_closing cr_op_closing(cr_op op);

#endif
