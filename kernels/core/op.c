/* op: names of the operations and the predicate over (op, dtype), all from op.def and term.def.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/op.h"

#include <string.h>

#include "kernels/core/close.h"

const cr_op_row cr_op_rows[CR_OP_IDS] = {
#define CR_OP(symbol, id, name, term, divisor, root, result, empty, ...) \
    [id] = {name, CR_TERM_##term, CR_DIVISOR_##divisor, CR_ROOT_##root, CR_RESULT_##result, CR_EMPTY_##empty},
#include "kernels/core/op.def"
#undef CR_OP
};

/* An id that stands twice would hide a row, and one outside would have no bit in a set. */
#define CR_OP(symbol, id, ...) \
    _Static_assert((id) > CR_OP_NONE && (id) < CR_OP_IDS, "every op has a bit in a set of ops");
#include "kernels/core/op.def"
#undef CR_OP
enum {
#define CR_OP(symbol, ...) +1
    OPS = 0
#include "kernels/core/op.def"
#undef CR_OP
};
#define CR_OP(symbol, id, ...) | (uint64_t)1 << (id)
_Static_assert(__builtin_popcountll((uint64_t)0
#include "kernels/core/op.def"
                                    ) == OPS,
               "op.def: no id stands twice");
#undef CR_OP

/* A closing reads the columns that its rows may have. What it does not read must say nothing, or the row would be answered wrongly. */
enum {
#define CR_TERM(symbol, closing, result, int_needs, float_needs, wants) \
    CLOSING_OF_##symbol = CR_CLOSING_##closing, RESULT_OF_##symbol = CR_RESULT_##result,
#include "kernels/core/term.def"
#undef CR_TERM
};
#define IS(column, symbol, value) ((int)CR_##column##_##symbol == (int)CR_##column##_##value)
#define IS_SUM(term) ((int)CLOSING_OF_##term == (int)CR_CLOSING_SUMS)
#define IS_NEVER_NEGATIVE(term) (IS(TERM, term, SPREAD) || (CR_SIGNED_TERMS >> CR_TERM_##term & 1) == 0)
#define CR_OP(symbol, id, name, term, divisor, root, result, empty, ...)                                            \
    _Static_assert(                                                                                                 \
        (IS(DIVISOR, divisor, ONE) && IS(ROOT, root, PLAIN)) || (IS_SUM(term) && !IS(TERM, term, WEIGHTED)),        \
        "op.def, " name ": only a sum is divided or has its root taken, and an average is divided already");        \
    _Static_assert(IS(ROOT, root, PLAIN) || IS_NEVER_NEGATIVE(term),                                                \
                   "op.def, " name ": a root is taken of a term that is never negative");                           \
    _Static_assert((int)CR_RESULT_##result == (int)RESULT_OF_##term || (IS_SUM(term) && IS(RESULT, result, FLOAT)), \
                   "op.def, " name ": the result must be that of the term (term.def)");                             \
    _Static_assert(!IS(RESULT, result, EXACT) || (IS(DIVISOR, divisor, ONE) && IS(ROOT, root, PLAIN)),              \
                   "op.def, " name ": a quotient or a root is FLOAT, because it is rounded");
#include "kernels/core/op.def"
#undef CR_OP

static const struct {
    cr_closing closing;
    uint32_t int_needs, float_needs;
    uint8_t wants;
} terms[] = {
#define CR_TERM(symbol, closing, result, int_needs, float_needs, wants) \
    [CR_TERM_##symbol] = {CR_CLOSING_##closing, int_needs, float_needs, wants},
#include "kernels/core/term.def"
#undef CR_TERM
};

cr_op cr_op_next(cr_op op) {
    for (uint32_t next = (uint32_t)op + 1; next < CR_OP_IDS; next++)
        if (cr_op_rows[next].name) return (cr_op)next;
    return CR_OP_NONE;
}

cr_op cr_op_of_term(cr_term term) {
    cr_op op = cr_op_next(CR_OP_NONE);
    while (op != CR_OP_NONE && (cr_op_term(op) != term || cr_op_divisor(op) != CR_DIVISOR_ONE || cr_op_is_root(op)))
        op = cr_op_next(op);
    return op;
}

const char *cr_op_name(cr_op op) {
    const char *name = cr_op_row_of(op)->name;
    return name ? name : "none";
}

cr_status cr_op_parse(const char *name, cr_op *op, cr_error *error) {
    for (cr_op one = cr_op_next(CR_OP_NONE); one != CR_OP_NONE; one = cr_op_next(one)) {
        if (strcmp(name, cr_op_rows[one].name) == 0) {
            *op = one;
            return CR_OK;
        }
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "unknown op \"%.40s\"", name);
}

uint32_t cr_op_needs(cr_op op, cr_dtype dtype) {
    const cr_term term = cr_op_term(op);
    return cr_dtype_kind(dtype) == CR_KIND_FLOAT ? terms[term].float_needs : terms[term].int_needs;
}

uint32_t cr_op_wants(cr_op op) { return terms[cr_op_term(op)].wants; }

unsigned cr_op_inputs(cr_op op) { return terms[cr_op_term(op)].int_needs & CR_FAM_PAIRS ? 2 : 1; }

cr_closing cr_op_closing(cr_op op) { return terms[cr_op_term(op)].closing; }

bool cr_op_is_ordered(cr_op op, cr_dtype dtype) {
    if (cr_op_is_index(op) || cr_op_closing(op) == CR_CLOSING_DIGEST) return true;
    return cr_op_closing(op) == CR_CLOSING_PRODUCT && cr_dtype_kind(dtype) == CR_KIND_FLOAT;
}

cr_status cr_op_supports(cr_op op, cr_dtype dtype, cr_error *error) {
    if ((int)op < 1) return cr_fail(error, CR_INVALID_ARGUMENT, "ops: %d is no op", (int)op);
    if (!cr_op_row_of(op)->name) return cr_fail(error, CR_UNIMPLEMENTED, "ops: op %d is not in this version", (int)op);
    if (!cr_dtype_is_input(dtype)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s: dtype %s (%d) cannot be an input", cr_op_name(op),
                       cr_dtype_name(dtype), (int)dtype);
    }
    if (cr_op_closing(op) == CR_CLOSING_BITS && cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s has no meaning for dtype %s", cr_op_name(op),
                       cr_dtype_name(dtype));
    }
    return CR_OK;
}
