/* op: names of the operations and the predicate over (op, dtype), all from op.def.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/op.h"

#include <string.h>

_Static_assert(CR_OP_LAST < 64, "every op has a bit in a set of ops");

const char *cr_op_name(cr_op op) {
    switch ((int)op) {
#define CR_OP(symbol, id, name, int_needs, float_needs, ...) \
    case id:                                                 \
        return name;
#include "kernels/core/op.def"
#undef CR_OP
    }
    return "none";
}

cr_status cr_op_parse(const char *name, cr_op *op, cr_error *error) {
    static const struct {
        const char *name;
        cr_op op;
    } names[] = {
#define CR_OP(symbol, id, name, int_needs, float_needs, ...) {name, CR_OP_##symbol},
#include "kernels/core/op.def"
#undef CR_OP
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i].name) == 0) {
            *op = names[i].op;
            return CR_OK;
        }
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "unknown op \"%.40s\"", name);
}

uint32_t cr_op_needs(cr_op op, cr_dtype dtype) {
    bool is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    switch ((int)op) {
#define CR_OP(symbol, id, name, int_needs, float_needs, ...) \
    case id:                                                 \
        return is_float ? (float_needs) : (int_needs);
#include "kernels/core/op.def"
#undef CR_OP
    }
    return 0;
}

uint32_t cr_op_wants(cr_op op) {
    switch ((int)op) {
        case CR_OP_MIN:
            return CR_WANTS_MIN;
        case CR_OP_MAX:
            return CR_WANTS_MAX;
        case CR_OP_ARGMIN:
            return CR_WANTS_MIN | CR_WANTS_ARGMIN;
        case CR_OP_ARGMAX:
            return CR_WANTS_MAX | CR_WANTS_ARGMAX;
        case CR_OP_NORMINF:
            return CR_WANTS_MIN | CR_WANTS_MAX;
        default:
            return 0;
    }
}

cr_status cr_op_supports(cr_op op, cr_dtype dtype, cr_error *error) {
    if ((int)op < 1) return cr_fail(error, CR_INVALID_ARGUMENT, "ops: %d is no op", (int)op);
    if ((int)op > CR_OP_LAST) return cr_fail(error, CR_UNIMPLEMENTED, "ops: op %d is not in this version", (int)op);
    if (!cr_dtype_is_input(dtype)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s: dtype %s (%d) cannot be an input", cr_op_name(op),
                       cr_dtype_name(dtype), (int)dtype);
    }
    bool is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    if (is_float && (op == CR_OP_BIT_AND || op == CR_OP_BIT_OR || op == CR_OP_BIT_XOR)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s has no meaning for dtype %s", cr_op_name(op),
                       cr_dtype_name(dtype));
    }
    return CR_OK;
}
