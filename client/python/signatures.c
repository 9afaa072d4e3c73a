/* signatures: what `help` and `inspect.signature` show of the functions of ops: their arguments, from the rows of op.def. The stubs have the
 * same from scripts/op-lists; tests/python/test_editor.py holds one against the other.
 *
 * Thread: with the GIL, while the module is made. Owner: texts live as long as the process. */
#include <stdio.h>
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/op.h"

enum { TEXT_BYTES = 1024 };

typedef struct text {
    char bytes[TEXT_BYTES];
    size_t used;
} text;

static void add(text *t, bool wanted, const char *words) {
    const int n = wanted ? snprintf(t->bytes + t->used, TEXT_BYTES - t->used, "%s", words) : 0;
    t->used += n > 0 ? (size_t)n : 0;
    if (t->used >= TEXT_BYTES) t->used = TEXT_BYTES - 1; /* a test reads them all */
}

/* The arguments behind the array. */
static void add_arguments(text *t, cr_op op) {
    const cr_term term = cr_op_term(op);
    const bool digest = term == CR_TERM_DIGEST;
    const bool ranked = cr_op_closing(op) == CR_CLOSING_ORDER;
    const bool nans = cr_op_closing(op) == CR_CLOSING_BITS || term == CR_TERM_NANS || term == CR_TERM_INFINITIES;
    add(t, cr_op_takes_share(op), "q, ");
    add(t, true, "axis=None, *");
    add(t, cr_op_result(op) == CR_RESULT_EXACT || cr_op_result(op) == CR_RESULT_FLOAT, ", dtype=None");
    add(t, cr_op_divisor(op) == CR_DIVISOR_COUNT_LESS_DDOF, ", ddof=0, correction=0");
    add(t, true, ", keepdims=False");
    add(t, !digest, ", where=None");
    add(t, true, ", offsets=None");
    add(t, !digest, ", keys=None, groups=None, drop=False");
    add(t, cr_py_joining(op) != NULL, ", initial=None");
    add(t, !nans && !digest, ", nan='propagate'");
    add(t, term == CR_TERM_PRODUCT, ", overflow='error'");
    add(t, !digest, ", nulls='skip'");
    add(t, !digest && !ranked, ", min_count=0");
    add(t, cr_op_takes_share(op), ", method='linear'");
    add(t, true, ", out=None, client=None");
}

static void add_method_arguments(text *t, const char *name) {
    add(t, strcmp(name, "reduce") == 0,
        "axis=None, *, dtype=None, ddof=0, correction=0, nan='propagate', overflow='error', keepdims=False, "
        "where=None, offsets=None, keys=None, groups=None, drop=False, second=None, nulls='skip', min_count=0, "
        "out=None, "
        "client=None");
    add(t, strcmp(name, "describe") == 0,
        "*, axis=None, nan='propagate', keepdims=False, where=None, offsets=None, out=None, client=None");
    add(t, strcmp(name, "partial") == 0,
        "*, first=0, where=None, keys=None, groups=None, drop=False, second=None, shape=None, start=None, "
        "nulls='skip', client=None");
}

bool cr_py_sign(PyMethodDef *method, cr_py_owner owner, int op) {
    text t = {.used = 0};
    const bool several = strcmp(method->ml_name, "reduce") == 0 || strcmp(method->ml_name, "partial") == 0;
    add(&t, true, method->ml_name);
    add(&t, true, owner == CR_PY_OF_MODULE ? "($module, " : "($self, ");
    add(&t, owner != CR_PY_OF_FILE, "a, ");
    add(&t, op != 0 && cr_op_inputs((cr_op)op) == 2, "b, ");
    add(&t, several, "ops, ");
    add(&t, true, "/, ");
    if (op != 0)
        add_arguments(&t, (cr_op)op);
    else
        add_method_arguments(&t, method->ml_name);
    add(&t, true, ")\n--\n\n");
    add(&t, true, method->ml_doc);
    char *kept = PyMem_Malloc(t.used + 1);
    if (kept == NULL) return PyErr_NoMemory(), false;
    memcpy(kept, t.bytes, t.used + 1);
    method->ml_doc = kept;
    return true;
}
