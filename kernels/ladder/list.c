/* list: the names of the ladder and what can be asked of them. In every build, with CUDA or without: a request is checked before
 * anybody looks for a device.
 *
 * Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/ladder/ladder.h"

static const cr_ladder_row rows[] = {
#define CR_LADDER(name, what) {#name, what},
#include "kernels/ladder/ladder.def"
#undef CR_LADDER
};
enum { ROWS = sizeof rows / sizeof rows[0] };

uint32_t cr_ladder_count(void) { return ROWS; }

const cr_ladder_row *cr_ladder_at(uint32_t row) { return row < ROWS ? &rows[row] : NULL; }

uint32_t cr_ladder_find(const char *name) {
    uint32_t row = 0;
    while (row < ROWS && strcmp(rows[row].name, name) != 0) row++;
    return row;
}

static bool has_dtype(cr_dtype dtype) {
    return dtype == CR_I32 || dtype == CR_I64 || dtype == CR_F16 || dtype == CR_F32 || dtype == CR_F64;
}

static bool has_op(cr_op op) {
    return op == CR_OP_SUM || op == CR_OP_MIN || op == CR_OP_MAX || op == CR_OP_PROD || op == CR_OP_ANY ||
           op == CR_OP_ALL || op == CR_OP_COUNT_NONZERO;
}

cr_status cr_ladder_check(const char *name, cr_op op, cr_dtype dtype, cr_error *error) {
    if (cr_ladder_find(name) == ROWS)
        return cr_fail(error, CR_NOT_FOUND, "kernel: there is none of the name '%s'; docs/KERNELS.md lists them", name);
    if (!has_dtype(dtype))
        return cr_fail(error, CR_UNIMPLEMENTED, "kernel: %s is for i32, i64, f16, f32 and f64, not %s", name,
                       cr_dtype_name(dtype));
    if (!has_op(op))
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "kernel: %s is for sum, min, max, prod, any, all and count_nonzero, not %s", name,
                       cr_op_name(op));
    return CR_OK;
}

bool cr_ladder_exact(cr_op op, cr_dtype dtype) {
    return cr_dtype_kind(dtype) != CR_KIND_FLOAT || (op != CR_OP_SUM && op != CR_OP_PROD);
}
