/* answers: what came back for each tensor, and the digest of all.
 *
 * Thread: one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/npy.h"
#include "client/weights/run.h"

size_t weights_own_ops(cured_op out[CURED_MAX_OPS]) {
    static const char *const names[] = {"count_nan", "count_inf", "count_nonzero", "min",   "max",
                                        "mean",      "std",       "norm2",         "digest"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (cured_op_parse(names[i], &out[count], NULL) == CURED_OK) count++;
    return count;
}

void weights_answers_free(weights_answers *a) {
    for (size_t i = 0; a->values != NULL && i < a->count; i++) cured_values_free(a->values[i]);
    for (size_t i = 0; a->whole != NULL && i < a->count; i++) cured_values_free(a->whole[i]);
    free(a->values);
    free(a->whole);
    *a = (weights_answers){NULL, NULL, 0};
}

static const cured_value *find(const cured_values *values, cured_op op) {
    const cured_value *v = NULL;
    for (size_t i = 0; values != NULL && (v = cured_values_get(values, i)) != NULL; i++)
        if (cured_value_op(v) == op) return v;
    return NULL;
}

const cured_value *weights_answer(const weights_answers *a, size_t tensor, cured_op op) {
    const cured_value *v = find(a->values[tensor], op);
    return v != NULL ? v : find(a->whole[tensor], op);
}

/* Where this library has no kernels a daemon is asked. */
static cured_status digest_there(const weights_ask *ask, const void *text, size_t bytes, cured_values **out,
                                 cured_error *error) {
    cured_conn *conn;
    cured_call *call = NULL;
    cured_options options = *ask->call;
    options.partial = true;
    options.nan = CURED_NAN_PROPAGATE;
    cured_status status = ask->connect(ask->user, &conn, error);
    if (status != CURED_OK) return status;
    status = cured_reduce_buffer(conn, CURED_U8, &ask->digest, 1, text, bytes, &options, &call, error);
    if (status == CURED_OK) status = cured_wait(call, error);
    if (status == CURED_OK) {
        size_t length;
        const void *partial = cured_call_partial(call, &length);
        status = cured_partial_finish(partial, length, &ask->digest, 1, NULL, out, error);
    }
    cured_call_free(call);
    cured_close(conn);
    return status;
}

cured_status weights_digest(const weights *w, const weights_answers *a, const weights_ask *ask, cured_values **out,
                            cured_error *error) {
    char *text = NULL, shape[WEIGHTS_SHAPE_BYTES], value[CURED_TEXT_BYTES];
    size_t bytes = 0;
    bool whole = true;
    *out = NULL;
    FILE *f = open_memstream(&text, &bytes);
    for (size_t i = 0; f != NULL && i < w->count && whole; i++) {
        const weights_tensor *t = &w->tensors[i];
        const cured_value *v = weights_answer(a, i, ask->digest);
        whole = v != NULL && cured_value_text(v, value, sizeof value) == CURED_OK;
        weights_shape_text(t, shape);
        if (whole) fprintf(f, "%zu %s %s %s %s\n", strlen(t->name), t->name, t->type, shape, value);
    }
    if (f == NULL || fclose(f) != 0) {
        free(text);
        return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for the digest of all");
    }
    cured_status status =
        whole ? cured_reduce_here(CURED_U8, &ask->digest, 1, text, bytes, NULL, out, error) : CURED_OK;
    if (status == CURED_UNIMPLEMENTED) status = digest_there(ask, text, bytes, out, error);
    free(text);
    return status;
}
