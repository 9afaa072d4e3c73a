/* run: a cursor over the pieces of all tensors, under one mutex; a partial of each piece, merged as it comes; and the values of a
 * tensor once its last piece is merged. A tensor that is turned on the way is one piece.
 *
 * Thread: the pool's threads, and the caller's, which waits for them. Owner: a tensor's partial is its state's until it is finished.
 * The mutex guards cursor, states and the first error. */
#include "client/weights/run.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/cli/npy.h"
#include "client/weights/reader.h"
#include "client/weights/table.h"
#include "kernels/core/op.h"

enum {
    PIECE_HERE = 8 << 20,    /* bytes; calls of up to so many are folded on the caller's thread alone */
    PIECE_THERE = 256 << 20, /* a daemon has threads of its own */
    CHUNK_BYTES = 256 * 1024,
    MOST_THREADS = 1024,
    CONNECTIONS = 8, /* to a daemon: as many tensors are in flight */
    LOOK_MS = 200,
};
_Static_assert(PIECE_HERE % 4096 == 0, "products of floats merge in whole blocks of elements");

/* A tensor that is under way. */
struct state {
    uint64_t left; /* bytes that are not merged yet */
    uint8_t *partial;
    size_t bytes;
};

struct pool {
    const weights *w;
    const weights_ask *ask;
    weights_answers *out;
    struct state *states;
    size_t *order; /* tensors by their place in the files */
    uint64_t piece, deadline_ns, total;
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a thread has */
    size_t next, running;
    uint64_t at, done;
    bool stop;
    cured_error error; /* the first; code CURED_OK: none */
};

struct piece {
    size_t tensor;
    uint64_t at, bytes;
};

struct worker {
    struct pool *pool;
    cured_conn *conn;
    pthread_t thread;
    uint8_t chunk[2][CHUNK_BYTES]; /* one is sent while the other is read */
    uint8_t merged[CURED_PARTIAL_BYTES];
};

static void keep_error(struct pool *p, const cured_error *error) {
    pthread_mutex_lock(&p->lock);
    if (p->error.code == CURED_OK) p->error = *error;
    p->stop = true;
    pthread_mutex_unlock(&p->lock);
}

/* Keeps what went wrong with a tensor, and names it. */
static void keep(struct pool *p, const weights_tensor *t, const cured_error *why) {
    cured_error named = *why;
    weights_refuse(p->w, t, &named, "%s", why->text);
    named.code = why->code;
    keep_error(p, &named);
}

/* What is asked of a tensor; their number. */
static size_t ops_of(const weights_ask *ask, const weights_tensor *t, cured_op out[CURED_MAX_OPS]) {
    size_t count = 0;
    if (!t->sized) return 0;
    if (t->dtype == CURED_DTYPE_DEFAULT) {
        out[0] = ask->digest;
        return ask->digest != 0;
    }
    for (size_t i = 0; i < ask->op_count; i++)
        if (cr_op_supports((cr_op)ask->ops[i], (cr_dtype)t->dtype, NULL) == CR_OK) out[count++] = ask->ops[i];
    return count;
}

/* Elements are reduced as this type; of what cured does not reduce the bytes are. */
static cured_dtype dtype_of(const weights_tensor *t) { return t->dtype != CURED_DTYPE_DEFAULT ? t->dtype : CURED_U8; }

static bool take(struct pool *p, struct piece *out) {
    cured_op ops[CURED_MAX_OPS];
    pthread_mutex_lock(&p->lock);
    while (p->next < p->w->count && ops_of(p->ask, &p->w->tensors[p->order[p->next]], ops) == 0) p->next++;
    const bool more = !p->stop && p->next < p->w->count;
    if (more) {
        const weights_tensor *t = &p->w->tensors[p->order[p->next]];
        const uint64_t left = t->bytes - p->at;
        *out = (struct piece){p->order[p->next], p->at, left};
        if (left > p->piece && !weights_is_turned(t)) out->bytes = p->piece;
        p->at += out->bytes;
        if (p->at == t->bytes) {
            p->next++;
            p->at = 0;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return more;
}

/* ---- One piece ---- */

static cured_status stream(struct worker *k, const struct piece *piece, const cured_op *ops, size_t op_count,
                           const cured_options *options, cured_call **call, cured_error *error) {
    const weights *w = k->pool->w;
    const weights_tensor *t = &w->tensors[piece->tensor];
    weights_reader *reader = NULL;
    size_t n = 1;
    cured_status status = weights_reader_begin(w, t, piece->at, piece->bytes, &reader, error);
    if (status == CURED_OK)
        status = cured_reduce_stream_begin(k->conn, dtype_of(t), ops, op_count, piece->bytes, options, call, error);
    for (unsigned i = 0; status == CURED_OK && n != 0 && !cured_call_done(*call); i ^= 1) {
        status = weights_reader_next(reader, k->chunk[i], CHUNK_BYTES, &n, error);
        if (status == CURED_OK) cured_stream_drain(*call, NULL); /* the chunk before */
        if (status == CURED_OK && n != 0) cured_stream_write(*call, k->chunk[i], n, NULL);
    }
    if (status == CURED_OK) {
        cured_stream_drain(*call, NULL);
        cured_stream_end(*call, NULL);
    }
    weights_reader_end(reader);
    return status; /* the call's own status says the rest */
}

/* Folds a piece to a partial, whose bytes are the call's. */
static cured_status fold(struct worker *k, const struct piece *piece, cured_call **call, cured_error *error) {
    struct pool *p = k->pool;
    const weights_tensor *t = &p->w->tensors[piece->tensor];
    const uint64_t size = cured_dtype_size(dtype_of(t));
    cured_op ops[CURED_MAX_OPS];
    cured_options options = *p->ask->call;
    const size_t op_count = ops_of(p->ask, t, ops);
    options.partial = true;
    options.nan = CURED_NAN_PROPAGATE; /* a partial has all, and finish() leaves out */
    options.first = piece->at / size;
    if (p->deadline_ns != 0) {
        const uint64_t now = cr_now_ns();
        options.timeout_ms = now < p->deadline_ns ? (uint32_t)((p->deadline_ns - now) / 1000000) + 1 : 1;
    }
    cured_status status;
    if (piece->bytes == 0)
        status = cured_reduce_buffer(k->conn, dtype_of(t), ops, op_count, k->chunk[0], 0, &options, call, error);
    else if (weights_is_turned(t) || !cured_passes_fd(k->conn))
        status = stream(k, piece, ops, op_count, &options, call, error);
    else
        status = cured_reduce_fd(k->conn, dtype_of(t), ops, op_count, p->w->files[t->file].fd, t->offset + piece->at,
                                 piece->bytes / size, &options, call, error);
    return status == CURED_OK ? cured_wait(*call, error) : status;
}

/* Whether an op is of all elements, NaNs too, whatever is asked of them. */
static bool is_of_all(cured_op op) {
    const cr_closing closing = cr_op_closing((cr_op)op);
    return closing == CR_CLOSING_COUNTS || closing == CR_CLOSING_DIGEST;
}

static cured_status finish(struct pool *p, size_t tensor, cured_error *error) {
    struct state *s = &p->states[tensor];
    cured_op ops[CURED_MAX_OPS], rest[CURED_MAX_OPS];
    const size_t op_count = ops_of(p->ask, &p->w->tensors[tensor], ops);
    size_t skipping = 0, all = 0;
    for (size_t i = 0; i < op_count; i++) {
        if (p->ask->call->nan == CURED_NAN_SKIP && is_of_all(ops[i]))
            rest[all++] = ops[i];
        else
            ops[skipping++] = ops[i];
    }
    cured_options plain = *p->ask->call;
    plain.nan = CURED_NAN_PROPAGATE;
    cured_status status = CURED_OK;
    if (skipping != 0)
        status =
            cured_partial_finish(s->partial, s->bytes, ops, skipping, p->ask->call, &p->out->values[tensor], error);
    if (status == CURED_OK && all != 0)
        status = cured_partial_finish(s->partial, s->bytes, rest, all, &plain, &p->out->whole[tensor], error);
    free(s->partial);
    s->partial = NULL;
    return status;
}

/* Puts a piece's partial to those of its tensor. Under the lock. */
static cured_status merge(struct worker *k, const struct piece *piece, const cured_call *call, cured_error *error) {
    struct pool *p = k->pool;
    struct state *s = &p->states[piece->tensor];
    size_t bytes, merged = sizeof k->merged;
    const void *partial = cured_call_partial(call, &bytes);
    const cured_bytes both[] = {{partial, bytes}, {s->partial, s->bytes}};
    cured_status status = cured_partial_merge(both, s->partial != NULL ? 2 : 1, k->merged, &merged, error);
    if (status != CURED_OK) return status;
    uint8_t *copy = realloc(s->partial, merged);
    if (copy == NULL) return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for its answers");
    memcpy(copy, k->merged, merged);
    s->partial = copy;
    s->bytes = merged;
    s->left -= piece->bytes;
    p->done += piece->bytes;
    return s->left == 0 ? finish(p, piece->tensor, error) : CURED_OK;
}

static void *work(void *user) {
    struct worker *k = user;
    struct pool *p = k->pool;
    struct piece piece;
    while (take(p, &piece)) {
        cured_call *call = NULL;
        cured_error error;
        cured_status status = fold(k, &piece, &call, &error);
        if (status == CURED_OK) {
            pthread_mutex_lock(&p->lock);
            status = merge(k, &piece, call, &error);
            pthread_mutex_unlock(&p->lock);
        }
        cured_call_free(call);
        if (status != CURED_OK) keep(p, &p->w->tensors[piece.tensor], &error);
    }
    pthread_mutex_lock(&p->lock);
    p->running--;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- The pool ---- */

static size_t cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/* Begins as many workers as there is work for. The first must connect; the others may be refused, by a limit. */
static cured_status begin(struct pool *p, struct worker **workers, size_t *count, cured_error *error) {
    cured_conn *conn;
    *count = 0;
    *workers = NULL;
    cured_status status = p->ask->connect(p->ask->user, &conn, error);
    if (status != CURED_OK) return status;
    const bool here = strncmp(cured_server(conn), "embedded/", 9) == 0;
    p->piece = here ? PIECE_HERE : PIECE_THERE;
    size_t most = !here ? CONNECTIONS : p->ask->threads != 0 ? p->ask->threads : cores();
    const uint64_t pieces = p->w->count + p->total / p->piece;
    if (most > pieces) most = pieces != 0 ? (size_t)pieces : 1;
    if (most > MOST_THREADS) most = MOST_THREADS;
    *workers = calloc(most, sizeof **workers);
    if (*workers == NULL) {
        cured_close(conn);
        return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for threads");
    }
    for (; *count < most; conn = NULL) {
        if (conn == NULL && p->ask->connect(p->ask->user, &conn, NULL) != CURED_OK) break;
        struct worker *k = &(*workers)[*count];
        k->pool = p;
        k->conn = conn;
        pthread_mutex_lock(&p->lock);
        p->running++;
        const bool good = pthread_create(&k->thread, NULL, work, k) == 0;
        p->running -= !good;
        pthread_mutex_unlock(&p->lock);
        if (!good) {
            cured_close(conn);
            break;
        }
        (*count)++;
    }
    return *count != 0 ? CURED_OK : npy_fail(error, CURED_RESOURCE_EXHAUSTED, "cannot start a thread");
}

/* Until all threads have ended. */
static void watch(struct pool *p) {
    struct timespec until;
    pthread_mutex_lock(&p->lock);
    while (p->running != 0) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (p->ask->look == NULL) {
            pthread_cond_wait(&p->ended, &p->lock);
        } else if (pthread_cond_timedwait(&p->ended, &p->lock, &until) != 0 && !p->stop) {
            const uint64_t done = p->done;
            pthread_mutex_unlock(&p->lock);
            const bool go_on = p->ask->look(p->ask->user, done, p->total);
            pthread_mutex_lock(&p->lock);
            if (!go_on && p->error.code == CURED_OK) npy_fail(&p->error, CURED_CANCELLED, "stopped");
            p->stop = p->stop || !go_on;
        }
    }
    pthread_mutex_unlock(&p->lock);
}

struct place {
    const weights_tensor *tensor;
    size_t index;
};
static int by_place(const void *a, const void *b) {
    const weights_tensor *x = ((const struct place *)a)->tensor, *y = ((const struct place *)b)->tensor;
    const uint64_t at[] = {x->packed ? x->member.offset : x->offset, y->packed ? y->member.offset : y->offset};
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return at[0] != at[1] ? at[0] < at[1] ? -1 : 1 : x < y ? -1 : x > y;
}

static bool put_in_order(struct pool *p) {
    struct place *places = malloc((p->w->count + 1) * sizeof *places);
    if (places == NULL) return false;
    for (size_t i = 0; i < p->w->count; i++) places[i] = (struct place){&p->w->tensors[i], i};
    qsort(places, p->w->count, sizeof *places, by_place);
    for (size_t i = 0; i < p->w->count; i++) p->order[i] = places[i].index;
    free(places);
    return true;
}

cured_status weights_check_ops(const cured_op *ops, size_t op_count, cured_error *error) {
    for (size_t i = 0; i < op_count; i++) {
        if (cr_op_closing((cr_op)ops[i]) == CR_CLOSING_ORDER)
            return npy_fail(error, CURED_INVALID_ARGUMENT,
                            "ops: %s is found in several reads, and tensors are read once: ask for it of an array",
                            cured_op_name(ops[i]));
        if (cr_op_inputs((cr_op)ops[i]) == 2)
            return npy_fail(error, CURED_INVALID_ARGUMENT, "ops: %s is of two arrays, and tensors are taken one by one",
                            cured_op_name(ops[i]));
    }
    return CURED_OK;
}

cured_status weights_run(const weights *w, const weights_ask *ask, weights_answers *out, cured_error *error) {
    struct pool p = {.w = w, .ask = ask, .out = out};
    struct worker *workers = NULL;
    size_t count = 0;
    *out = (weights_answers){calloc(w->count + 1, sizeof *out->values), calloc(w->count + 1, sizeof *out->whole),
                             w->count};
    p.states = calloc(w->count + 1, sizeof *p.states);
    p.order = calloc(w->count + 1, sizeof *p.order);
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.ended, NULL);
    cured_status status = weights_check_ops(ask->ops, ask->op_count, error);
    if (status == CURED_OK &&
        (out->values == NULL || out->whole == NULL || p.states == NULL || p.order == NULL || !put_in_order(&p)))
        status = npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for the answers");
    for (size_t i = 0; i < w->count && status == CURED_OK; i++) {
        p.states[i].left = w->tensors[i].bytes;
        p.total += w->tensors[i].bytes;
    }
    if (ask->call->timeout_ms != 0) p.deadline_ns = cr_now_ns() + ask->call->timeout_ms * UINT64_C(1000000);
    if (status == CURED_OK) status = begin(&p, &workers, &count, error);
    if (status == CURED_OK) watch(&p);
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        cured_close(workers[i].conn);
    }
    if (status == CURED_OK && p.error.code != CURED_OK) {
        if (error != NULL) *error = p.error;
        status = p.error.code;
    }
    for (size_t i = 0; p.states != NULL && i < w->count; i++) free(p.states[i].partial);
    free(p.states);
    free(p.order);
    free(workers);
    pthread_cond_destroy(&p.ended);
    pthread_mutex_destroy(&p.lock);
    if (status != CURED_OK) weights_answers_free(out);
    return status;
}
