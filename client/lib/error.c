/* error: how a status and its sentence reach the program, names, and the clock.
 *
 * Thread: any; nothing here holds state. */
#include "client/lib/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/core/op.h"
#include "proto/limits.h"

/* The public numbers are the wire's, and so are the internal ones: one table each. */
#define CR_STATUS(symbol, number, name) \
    _Static_assert((int)CURED_##symbol == (int)CR_##symbol, "cured_status agrees with status.def");
#include "proto/status.def"
#undef CR_STATUS
#define CR_DTYPE(symbol, id, ...) \
    _Static_assert((int)CURED_##symbol == (int)CR_##symbol, "cured_dtype agrees with dtype.def");
#include "kernels/core/dtype.def"
#undef CR_DTYPE
_Static_assert((int)CURED_I128 == (int)CR_I128 && (int)CURED_BIGINT == (int)CR_BIGINT &&
                   (int)CURED_DIGEST == (int)CR_DIGEST,
               "result types agree");
#define CR_OP(symbol, id, ...) \
    _Static_assert((int)CURED_OP_##symbol == (int)CR_OP_##symbol, "cured_op agrees with op.def");
#include "kernels/core/op.def"
#undef CR_OP
_Static_assert((int)CURED_MAX_OPS == (int)CR_CALL_MAX_OPS, "ops in a call");
_Static_assert((int)CURED_ERROR_BYTES == (int)CR_ERROR_TEXT, "length of a sentence");

cured_status cr_cl_give(cured_error *out, const cr_error *error, uint32_t retry_after_ms) {
    if (out != NULL) {
        out->code = (cured_status)error->code;
        out->retry_after_ms = retry_after_ms;
        out->text[0] = '\0';
        if (error->code != CR_OK) memcpy(out->text, error->text, sizeof out->text);
    }
    return (cured_status)error->code;
}

cured_status cr_cl_fail(cured_error *out, cr_status code, const char *format, ...) {
    if (out != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(out->text, sizeof out->text, format, args);
        va_end(args);
        out->code = (cured_status)code;
        out->retry_after_ms = 0;
    }
    return (cured_status)code;
}

cr_status cr_cl_broken(cr_error *error, const char *what, const char *detail) {
    return cr_fail(error, CR_INTERNAL, "the daemon broke the protocol: %s%s%s", what, detail[0] != '\0' ? ": " : "",
                   detail);
}

const char *cured_version(void) { return CURED_VERSION; }

const char *cured_status_name(cured_status status) {
    return (unsigned)status <= CR_STATUS_MAX ? cr_status_name((cr_status)status) : NULL;
}

const char *cured_dtype_name(cured_dtype dtype) {
    const cr_dtype d = (cr_dtype)dtype;
    return d == CR_BIGINT || cr_dtype_size(d) != 0 ? cr_dtype_name(d) : NULL;
}

const char *cured_op_name(cured_op op) { return cr_op_row_of((uint32_t)op)->name; }

const char *cured_op_list(size_t index) {
    cr_op op = cr_op_next(CR_OP_NONE);
    for (; op != CR_OP_NONE && index != 0; index--) op = cr_op_next(op);
    return cr_op_row_of(op)->name;
}

size_t cured_dtype_size(cured_dtype dtype) { return cr_dtype_size((cr_dtype)dtype); }

cured_status cured_dtype_parse(const char *name, cured_dtype *dtype, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_dtype parsed = CR_DTYPE_NONE;
    if (cr_dtype_parse(name, &parsed, &e) == CR_OK) *dtype = (cured_dtype)parsed;
    return cr_cl_give(error, &e, 0);
}

cured_status cured_op_parse(const char *name, cured_op *op, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_op parsed = CR_OP_NONE;
    if (cr_op_parse(name, &parsed, &e) == CR_OK) *op = (cured_op)parsed;
    return cr_cl_give(error, &e, 0);
}
