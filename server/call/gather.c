/* gather: see gather.h. Thread: the loop's; run: a files thread's. Owner: see there. */
#include "server/call/gather.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "engine/job_axis.h"
#include "engine/memory/bulk.h"
#include "server/call/check.h"

typedef unsigned long long ull;

enum {
    LENGTH_BYTES = 4,
    HEAD_BYTES = 32, /* of a partial by key */
    FIRST_PARTS = 16,
};

struct cr_gather {
    cr_keyed of;    /* of the first */
    uint64_t cells; /* of all: no more of them are left once they are merged */
    uint64_t bytes; /* of all */
    uint64_t held;  /* as state */
    cr_keyed_bytes *parts;
    size_t count, room;
    uint8_t head[LENGTH_BYTES + HEAD_BYTES];
    uint32_t head_used;
    uint32_t length; /* of the partial that is coming; 0: not known */
    uint8_t *record; /* it, once its head is there */
    uint64_t used;
    cr_held kept; /* by a job, where the call ends before END */
    /* Behind END: */
    cr_file_task task;
    cr_files *files;
    cr_queue *queue;
    cr_job *job;
    cr_merging *merging;
    bool over; /* it takes no more steps */
};

cr_gather *cr_gather_new(void) { return calloc(1, sizeof(cr_gather)); }

uint64_t cr_gather_cells(const cr_gather *g) { return g->of.groups * g->of.columns; }

/* Bytes of the head that are wanted before more is known. */
static uint32_t head_wanted(const cr_gather *g) {
    if (g->head_used < LENGTH_BYTES) return LENGTH_BYTES;
    return LENGTH_BYTES + (g->length < HEAD_BYTES ? g->length : HEAD_BYTES);
}

void cr_gather_room(cr_gather *g, uint8_t **at, size_t *room) {
    *at = g->record ? g->record + g->used : g->head + g->head_used;
    *room = g->record ? (size_t)(g->length - g->used) : head_wanted(g) - g->head_used;
}

/* ---- Memory ---- */

static uint64_t times(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

/* What the parts take, their places, who reads them, their merged partial, which grows by copies, and the answers: known before any of it
 * is taken. */
static uint64_t needs(const cr_call *call, uint64_t each) {
    const cr_gather *g = call->gather;
    const uint64_t answers = call->request.reduce.want_partial ? 0 : times(cr_gather_cells(g), each);
    const uint64_t others = g->bytes + g->room * sizeof g->parts[0] + cr_keyed_merger_bytes(g->count + 1) +
                            2 * cr_keyed_most(&g->of, g->cells);
    return answers > UINT64_MAX - others ? UINT64_MAX : answers + others;
}

/* Bytes of one answer of all ops. */
static uint64_t answer_bytes(const cr_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    uint64_t each = 0;
    for (uint32_t k = 0; k < r->op_count; k++)
        each += cr_dtype_size(cr_axis_dtype((cr_op)r->ops[k], call->dtype, &call->finish)) + r->statuses;
    return each;
}

/* With the partial whose head came. */
static cr_status admit(cr_call *call, cr_error *error) {
    const cr_config *c = call->calls->config;
    cr_gather *g = call->gather;
    const uint64_t most =
        c->max_state_bytes < c->max_state_bytes_per_connection ? c->max_state_bytes : c->max_state_bytes_per_connection;
    const bool packs = call->request.reduce.want_partial;
    const uint64_t each = answer_bytes(call), need = needs(call, each);
    const uint64_t sent = packs ? cr_keyed_most(&g->of, g->cells) : times(cr_gather_cells(g), each);
    if (sent > c->max_answer_bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partials: by key they may come to have %llu bytes of %s, which exceed max_answer_bytes, %llu",
                       (ull)sent, packs ? "one partial" : "answers", (ull)c->max_answer_bytes);
    if (need > most)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partials: by key they and what they may come to have are %llu bytes, which exceed "
                       "max_state_bytes_per_connection or max_state_bytes, %llu; merge some at a time",
                       (ull)need, (ull)most);
    if (need <= g->held) return CR_OK;
    const cr_status status = cr_call_hold_state(call, need - g->held, error);
    if (status == CR_OK) g->held = need;
    return status;
}

/* ---- Partials as they come ---- */

/* Of the first: whether the ops can be answered from it. */
static cr_status check_ops(cr_call *call, const cr_keyed *of, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    call->dtype = of->dtype;
    call->geometry = CR_GEOMETRY_KEYS;
    cr_status status = cr_check_ops(call, error);
    if (status == CR_OK) status = cr_keyed_answers(of, r->ops, r->op_count, error);
    for (uint32_t k = 0; k < r->op_count && status == CR_OK; k++) {
        const cr_finish_opts own = cr_finish_share((cr_op)r->ops[k], of->dtype, &call->finish, NULL);
        const cr_dtype result = cr_axis_dtype((cr_op)r->ops[k], of->dtype, &own);
        if (cr_dtype_size(result) == 0)
            status = cr_fail(error, CR_INVALID_ARGUMENT, "result_dtype: %s has no fixed size, as answers by key need",
                             cr_dtype_name(result));
    }
    return status;
}

/* The head of a partial is there, or all of a shorter record. */
static cr_status begin_record(cr_call *call, cr_error *error) {
    cr_gather *g = call->gather;
    cr_keyed_reader r;
    cr_status status = cr_keyed_open(&r, g->head + LENGTH_BYTES, g->length, error);
    if (status == CR_OK) status = g->count ? cr_keyed_alike(&g->of, &r.of, error) : check_ops(call, &r.of, error);
    if (status != CR_OK) return status;
    if (!g->count) g->of = r.of;
    if (g->count == g->room) {
        const size_t room = g->room ? 2 * g->room : FIRST_PARTS;
        cr_keyed_bytes *parts = realloc(g->parts, room * sizeof *parts);
        if (!parts) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
        g->parts = parts;
        g->room = room;
    }
    g->cells += r.of.cells;
    g->bytes += g->length;
    status = admit(call, error);
    if (status != CR_OK) return status;
    g->record = malloc(g->length);
    if (!g->record) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial of %u bytes", g->length);
    memcpy(g->record, g->head + LENGTH_BYTES, HEAD_BYTES);
    g->used = HEAD_BYTES;
    return CR_OK;
}

cr_status cr_gather_filled(cr_call *call, size_t bytes, cr_error *error) {
    cr_gather *g = call->gather;
    if (g->record) {
        g->used += bytes;
    } else {
        const bool had_length = g->head_used >= LENGTH_BYTES;
        g->head_used += (uint32_t)bytes;
        if (!had_length && g->head_used >= LENGTH_BYTES) {
            memcpy(&g->length, g->head, sizeof g->length);
            g->length = le32toh(g->length);
        }
        if (g->head_used < LENGTH_BYTES || g->head_used < head_wanted(g)) return CR_OK;
        const cr_status status = begin_record(call, error);
        if (status != CR_OK) return status;
    }
    if (g->used < g->length) return CR_OK;
    g->parts[g->count++] = (cr_keyed_bytes){g->record, g->length};
    g->record = NULL;
    g->head_used = g->length = 0;
    g->used = 0;
    call->calls->merged++;
    return CR_OK;
}

/* ---- The end ---- */

static void free_all(cr_gather *g) {
    while (cr_merging_free_parts(g->parts, &g->count)) continue;
    free(g->parts);
    free(g->record);
    free(g);
}

/* A step on a files thread. */
static void run(cr_file_task *task) {
    cr_gather *g = cr_container(task, cr_gather, task);
    cr_error error;
    bool more = false;
    if (!g->over && !cr_queue_stopped(g->queue, g->job)) {
        if (cr_merging_step(g->merging, g->queue, &more, &error) != CR_OK) {
            cr_queue_stop(g->queue, g->job, &error);
            more = false;
        }
    }
    g->over = !more;
    if (more || cr_merging_over_step(g->merging)) {
        cr_files_submit(g->files, task, task->pool);
        return;
    }
    cr_queue *queue = g->queue;
    cr_job *job = g->job;
    cr_merging_free(g->merging);
    free_all(g);
    cr_queue_unhold(queue, job);
}

static void submit(cr_call *call, cr_gather *g) {
    g->files = call->calls->files;
    g->task = (cr_file_task){.run = run,
                             .user = call->peer->owner,
                             .client = call->peer->client,
                             .bytes = CR_BULK_STEP_BYTES,
                             .large = true};
    cr_waiting_init(&g->task.waiting);
    cr_files_submit(g->files, &g->task, CR_FILES_LOCAL);
}

/* The job, whose hold is the task's. */
static cr_status make_job(cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_gather *g = call->gather;
    cr_axis_spec spec = {.dtype = call->dtype,
                         .shape = {cr_gather_cells(g), 0, 1},
                         .families = call->families,
                         .op_count = r->want_partial ? 0 : r->op_count,
                         .finish = call->finish,
                         .statuses = r->statuses};
    for (uint32_t k = 0; k < spec.op_count; k++) spec.ops[k] = (cr_op)r->ops[k];
    cr_job *job = call->job = cr_job_new(call->dtype, call->families);
    if (!job) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call");
    job->owner = call;
    job->user = call->peer->owner;
    job->client = call->peer->client;
    job->by_host = true;
    for (uint32_t k = 0; k < r->op_count; k++) job->ops |= cr_ops_of(r->ops[k]);
    return cr_job_axis_make_merged(job, &spec, error);
}

cr_status cr_gather_end(cr_call *call, cr_error *error) {
    cr_gather *g = call->gather;
    if (g && g->head_used) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: END came in the middle of one");
    if (!g || !g->count) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there was none to merge");
    const cr_status status = make_job(call, error);
    if (status != CR_OK) return status;
    g->merging = cr_merging_new(call->job, g->parts, g->count, error);
    if (!g->merging) return error->code;
    g->parts = NULL; /* which has them */
    g->count = 0;
    g->queue = call->calls->queue;
    g->job = call->job;
    call->gather = NULL;
    cr_call_move(call, CR_CLOSED, call->output);
    submit(call, g);
    return CR_OK;
}

/* ---- An end before END ---- */

static bool empty(cr_held *held) {
    cr_gather *g = cr_container(held, cr_gather, kept);
    if (cr_merging_free_parts(g->parts, &g->count)) return true;
    held->left = 0;
    return false;
}

static void job_lets_go(cr_held *held) { free_all(cr_container(held, cr_gather, kept)); }

/* The parts stay with a job, which gives them back as jobs give back what they read. Before END there is none: one is made that does no
 * more. */
void cr_gather_drop(cr_call *call) {
    cr_gather *g = call->gather;
    cr_job *job = call->job;
    call->gather = NULL;
    if (!g) return;
    if (g->record) g->parts[g->count++] = (cr_keyed_bytes){g->record, g->length}; /* there is room for it */
    g->record = NULL;
    if (!job) job = cr_job_new(call->dtype, call->families);
    if (!job) {
        free_all(g);
        return;
    }
    job->user = call->peer->owner;
    job->client = call->peer->client;
    g->kept = (cr_held){.next = job->held, .release = job_lets_go, .empty = empty, .left = g->bytes};
    job->held = &g->kept;
    call->job = job;
}
