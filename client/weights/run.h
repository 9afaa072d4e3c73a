/* run: the answers of many tensors, by threads of their own: each has a connection, to a daemon or in this process, and takes the
 * next piece of the next tensor. Pieces come in the order of the files, and no byte is read twice.
 *
 * Thread: weights_run() returns when its threads have ended; it calls `connect` and `look` on the caller's thread. Owner: the
 * answers are the caller's. */
#ifndef CURED_CLIENT_WEIGHTS_RUN_H
#define CURED_CLIENT_WEIGHTS_RUN_H

#include "client/weights/weights.h"

typedef struct weights_ask {
    const cured_op *ops; /* of tensors that cured reduces; those of its ops that a type has not are left out */
    size_t op_count;
    cured_op digest; /* of the others' bytes; 0: nothing is asked of them */
    /* nan (of what is no count and no digest), ddof, overflow, timeout_ms (of all), retries */
    const cured_options *call;
    uint32_t threads; /* in this process; 0: one for each core */
    /* A connection whose calls fold on its caller's thread, if in this process. */
    cured_status (*connect)(void *user, cured_conn **conn, cured_error *error);
    /* Every 200 ms: how many bytes are done; false: stop, with CANCELLED. NULL: nobody looks. */
    bool (*look)(void *user, uint64_t done, uint64_t total);
    void *user;
} weights_ask;

/* What a checkpoint is asked where nobody says more; their number. */
size_t weights_own_ops(cured_op out[CURED_MAX_OPS]);

/* One for each tensor, NULL where nothing was asked. */
typedef struct weights_answers {
    cured_values **values;
    /* Where NaNs are skipped: of the ops that are of all elements, counts and digests; else all NULL. */
    cured_values **whole;
    size_t count;
} weights_answers;

/* Whether such ops can be asked of tensors, which are read once, and one by one. INVALID_ARGUMENT otherwise. weights_run looks, too. */
cured_status weights_check_ops(const cured_op *ops, size_t op_count, cured_error *error);
cured_status weights_run(const weights *w, const weights_ask *ask, weights_answers *out, cured_error *error);
void weights_answers_free(weights_answers *a);
/* The answer of an op to a tensor; NULL: none. */
const cured_value *weights_answer(const weights_answers *a, size_t tensor, cured_op op);

/* The digest of all: of a text with a line for each tensor, sorted by names (docs/WEIGHTS.md). *out: NULL where a tensor has none. */
cured_status weights_digest(const weights *w, const weights_answers *a, const weights_ask *ask, cured_values **out,
                            cured_error *error);

#endif
