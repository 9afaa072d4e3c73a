/* work: calls with jobs: made, fed, folded in bounded turns, answered, dropped.
 *
 * Thread: the one that uses the connection. Owner: embedded.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/lib/embedded/embedded.h"
#include "client/lib/embedded/split.h"
#include "kernels/core/keyed.h"

enum { PROGRESS_MIN_MS = 10 };

static void queue_wakes(void *argument) { cr_local_wake(argument); }

/* The line that fits an input of so many bytes, with a queue. NULL: no memory. */
static cr_line *line_for(cr_local *local, uint64_t bytes, cr_error *error) {
    bool beside = local->threads > 1 && bytes > CR_LOCAL_INLINE_BYTES;
    cr_line *line = beside ? &local->shared : &local->own;
    if (line->queue == NULL && cr_queue_new(queue_wakes, local, &line->queue, error) != CR_OK) return NULL;
    line->threads = beside ? local->threads : 1;
    line->worker.fold = local->pooled ? cr_split_fold : NULL;
    if (!beside || local->pool != NULL) return line;
    local->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (local->event < 0) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no descriptor to wait for the threads: %s", strerror(errno));
        return NULL;
    }
    local->pool = cr_local_pool_new(line->queue, local->threads - 1, local->threads);
    if (local->pool == NULL) {
        close(local->event);
        local->event = -1;
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %u threads", local->threads);
        return NULL;
    }
    local->calls->fd = local->event; /* the connection closes it */
    return line;
}

/* In this process memory is the caller's business: what cannot come in strips takes what it takes. */
static cr_status make_axis(cr_work *work, const cr_axis_spec *spec, cr_error *error) {
    const cr_job_axis_input input = cr_axis_is_uncut(spec)            ? CR_JOB_AXIS_PASSES
                                    : work->call->kind == KIND_STREAM ? CR_JOB_AXIS_STREAM
                                                                      : CR_JOB_AXIS_READ;
    const uint32_t threads = work->line->threads;
    cr_job *job = work->job;
    cr_status status = cr_job_axis_make(job, spec, threads, input, CR_LOCAL_STATE_BYTES, error);
    if (status == CR_OK || job->axis == NULL) return status;
    cr_job_axis_free(job->axis);
    job->axis = NULL;
    return cr_job_axis_make(job, spec, threads, CR_JOB_AXIS_PASSES, UINT64_MAX / 2, error);
}

/* An array of few rows in memory is one claim: then it is answered a few columns at a time, and no claim reads and writes the states
 * of all columns, which would take a quarter of the array's memory or more. Several threads wait for one only where the states would
 * take as much as the array. The call cannot end before the claim does. */
static void claim_all(cr_work *work, const cr_axis_spec *spec) {
    cr_job *job = work->job;
    if (spec->shape.outer != 1 || spec->shape.inner == 1 || cr_job_axis_in_strips(job)) return;
    const uint64_t bytes = job->axis->block * job->element;
    if (bytes < CR_LOCAL_CLAIM_LEAST_BYTES || bytes > CR_LOCAL_CLAIM_BYTES || job->in_order) return;
    if (cr_columns_bytes(spec) < bytes / (work->line->threads > 1 ? 1 : 4)) return;
    job->claim_bytes = bytes;
    job->claim_most = 0;
}

/* By offsets. Answers that all lie in memory are made where they lie. */
static cr_status make_segments(cr_work *work, const cr_axis_spec *spec, uint64_t from, cr_error *error) {
    void *places[CR_AXIS_PLACES];
    cr_job *job = work->job;
    cr_status status = cr_job_axis_make_by_offsets(job, spec, from, work->line->threads, UINT64_MAX / 2, error);
    if (status == CR_OK && !cr_job_axis_is_empty(job->axis) && cr_cl_array_places(work->call->array, places))
        cr_job_axis_place(job, places);
    return status;
}

static cr_status make_job(cr_work *work, bool in_memory, bool pooled, uint64_t from, cr_error *error) {
    const cured_call *call = work->call;
    const cr_ask ask = cr_local_ask(call);
    const bool again = work->rereads != NULL && work->rereads->state.read != 0;
    cr_job *job = work->job = cr_job_new(ask.dtype, again ? 0 : call->needs.families);
    if (job == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    work->feeding = true; /* a job has one hold */
    job->owner = work;
    job->wants = call->needs.wants;
    for (uint32_t i = 0; i < ask.op_count; i++) job->ops |= cr_ops_of(ask.ops[i]);
    job->base = ask.first;
    job->mask = cr_mask_from(call->mask, from);
    job->beside = cr_second_from(call->second.data, from * job->element);
    job->layout = call->block != NULL ? &call->block->at : NULL;
    if (work->rereads != NULL) {
        job->quantile = &work->rereads->state;
        job->counts = work->rereads->counts;
    }
    if (pooled && !job->in_order) job->claim_bytes = cr_split_bytes();
    work->split = job->claim_bytes != 0 && ask.geometry == CR_GEOMETRY_WHOLE;
    if (ask.geometry == CR_GEOMETRY_WHOLE) return CR_OK;
    const cr_axis_spec spec = cr_local_spec(call);
    if (ask.geometry == CR_GEOMETRY_KEYS)
        return cr_job_axis_make_by_keys(job, &spec, &call->keys, call->needs.wants, work->line->threads,
                                        CR_LOCAL_STATE_BYTES, false, error);
    if (ask.geometry == CR_GEOMETRY_OFFSETS) return make_segments(work, &spec, from, error);
    cr_status status = make_axis(work, &spec, error);
    if (status == CR_OK && in_memory) claim_all(work, &spec);
    return status;
}

/* Of input that can be read anywhere, only what lies in some segment. Returns the number of its first element. */
static uint64_t cut_to_segments(const cured_call *call, cr_local_input *input) {
    if (call->geometry != CR_GEOMETRY_OFFSETS || call->kind == KIND_STREAM) return 0;
    const cr_offsets *offsets = &call->offsets;
    const uint64_t size = cr_dtype_size((cr_dtype)call->request.reduce.dtype);
    uint64_t from = cr_offsets_at(offsets, 0), till = cr_offsets_at(offsets, offsets->count);
    if (till > input->bytes / size) till = input->bytes / size; /* they changed meanwhile */
    if (from > till) from = till;
    if (input->memory != NULL) input->memory += from * size;
    input->offset += from * size;
    input->bytes = (till - from) * size;
    return from;
}

static cr_status begin(cr_work *work, cr_local_input *input, cr_error *error) {
    const uint64_t from = cut_to_segments(work->call, input);
    const bool pooled = cr_local_is_pooled(work->call, input);
    const uint32_t wide = pooled ? 1 : cr_wide_threads(work->call, input);
    work->line = line_for(work->local, input->bytes, error);
    if (work->line != NULL && wide > 1) work->line->threads = wide;
    cr_status status = work->line != NULL ? make_job(work, input->memory != NULL, pooled, from, error) : error->code;
    if (status != CR_OK) return status;
    work->wide = wide > 1 && !work->job->in_order;
    work->wide_bytes = input->bytes;
    work->index = work->fed = 0;
    const bool strips = cr_job_axis_in_strips(work->job);
    if (input->memory == NULL && cr_work_check_block(work, error) != CR_OK) return error->code;
    if (input->memory == NULL && input->fd >= 0 && input->bytes != 0 && cr_work_reads_apart(work))
        return cr_work_offer_file(work, input->fd, input->offset, input->bytes, error);
    if (input->memory != NULL && !strips) return cr_work_offer(work, input->memory, input->bytes, error);
    if (input->bytes != UINT64_MAX) cr_queue_set_total(work->line->queue, work->job, input->bytes);
    work->memory = input->memory;
    work->fd = input->fd;
    work->offset = input->offset;
    work->left = input->bytes;
    if (input->fd >= 0 && input->bytes == 0) cr_work_end_feed(work);
    return CR_OK;
}

void cr_work_begin(cured_call *call, const cr_local_input *input) {
    cr_error error;
    cr_local_input taken = *input;
    cr_local *local = call->calls->local;
    cr_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for a call");
        return;
    }
    work->local = local;
    work->call = call;
    work->progress_ns = call->start_ns;
    call->work = work;
    cr_list_init(&work->link);
    cr_list_append(&local->works, &work->link);
    local->idle = false;
    if (cr_rereads_begin(work, &taken, &error) != CR_OK || begin(work, &taken, &error) != CR_OK)
        cr_cl_call_finish(call, error.code, 0, error.text); /* drops it */
}

/* A claim for all threads would keep one alone too long from looking at deadlines. */
static void size_claims(const cr_local *local) {
    for (const cr_list *node = local->works.next; node != &local->works; node = node->next) {
        const cr_work *work = cr_container(node, cr_work, link);
        const uint64_t bytes = work->split && work->job != NULL ? cr_split_bytes() : 0;
        if (bytes != 0) work->job->claim_bytes = bytes;
    }
}

/* One claim of a line; false: there is none now. What is carried is let go before anybody waits for it. */
static bool fold_one(cr_line *line) {
    if (line->queue == NULL) return false;
    bool carried = line->worker.hand.state != NULL;
    if (!cr_worker_next(&line->worker, line->queue, line->threads, false)) return carried;
    cr_worker_fold(&line->worker, line->queue);
    cr_worker_rest(&line->worker, line->queue);
    return true;
}

static bool feed_one(cr_local *local) {
    for (cr_list *node = local->works.next; node != &local->works; node = node->next) {
        if (!cr_work_feed(cr_container(node, cr_work, link))) continue;
        cr_list_remove(node); /* to the end: works take turns */
        cr_list_append(&local->works, node);
        return true;
    }
    return false;
}

/* A turn for the work, if it is there, that the thread pool takes part in. */
static bool fold_wide(const cr_local *local) {
    for (const cr_list *node = local->works.next; node != &local->works; node = node->next) {
        const cr_work *work = cr_container(node, cr_work, link);
        if (work->wide) return cr_wide_step(work);
    }
    return false;
}

bool cr_work_step(cr_local *local) {
    bool fed = feed_one(local);
    if (local->pooled && fold_wide(local)) return true;
    if (local->pooled) size_claims(local);
    return fold_one(&local->own) || fold_one(&local->shared) || fed;
}

/* ---- news ---- */

static void work_free(cr_work *work) {
    cr_list_remove(&work->link);
    if (work->job != NULL) cr_job_free(work->job);
    cr_work_free_whole(work);
    cr_rereads_free(work->rereads);
    free(work);
}

/* Takes the jobs that are done from a line. */
static void take_done(cr_local *local, const cr_line *line) {
    cr_list jobs;
    if (line->queue == NULL) return;
    cr_queue_completed(line->queue, &jobs);
    for (cr_list *node; (node = cr_list_pop(&jobs)) != NULL;) {
        cr_work *work = cr_container(node, cr_job, done)->owner;
        work->done = true;
        cr_list_remove(&work->link);
        cr_list_append(&local->done, &work->link);
    }
}

/* The answers of one output, op after op. A callback may end the call. */
static void hand_over(const cr_work *work, const cr_output *output) {
    const cr_job_axis *axis = work->job->axis;
    const uint8_t *values = output->data;
    for (uint32_t op = 0; op < axis->spec.op_count && work->call != NULL; op++) {
        size_t bytes = output->count * axis->width[op];
        const uint8_t *statuses = cr_output_statuses(output, axis, op);
        const cr_wire_part part = {op, output->first, values, bytes, statuses, statuses != NULL ? output->count : 0};
        cr_cl_array_take(work->call, &part);
        values += bytes;
    }
}

/* Hands over the outputs that are there; false: the call, and with it the work, is gone. */
static bool deliver(cr_work *work) {
    cr_local *local = work->local;
    cr_queue *queue = work->line->queue;
    local->delivering = work;
    for (cr_output *output; work->call != NULL && (output = cr_queue_output(queue, work->job)) != NULL;) {
        hand_over(work, output);
        if (!work->done) cr_queue_sent(queue, work->job, output->bytes);
        free(output);
    }
    local->delivering = NULL;
    if (work->call != NULL) return true;
    work_free(work);
    return false;
}

/* Along an axis without elements: what nobody needs to compute. False as above. */
static bool deliver_empty(cr_work *work, cr_error *error) {
    cr_job_axis *axis = work->job->axis;
    error->code = CR_OK;
    if (axis->spec.shape.n != 0) return true;
    work->local->delivering = work;
    for (cr_output *output; work->call != NULL && (output = cr_job_axis_empty_next(axis, error)) != NULL;) {
        hand_over(work, output);
        free(output);
    }
    work->local->delivering = NULL;
    if (work->call != NULL) return true;
    work_free(work);
    return false;
}

/* Another read of the same input, if there is one. */
static bool read_again(cr_work *work) {
    cr_error error;
    if (work->rereads == NULL || !cr_rereads_next(work, &error)) return false;
    cr_job_free(work->job);
    work->job = NULL;
    work->done = false;
    cr_list_append(&work->local->works, &work->link);
    work->local->idle = false;
    if (error.code != CR_OK || begin(work, &work->rereads->input, &error) != CR_OK)
        cr_cl_call_finish(work->call, error.code, 0, error.text);
    return true;
}

static void answer_whole(cr_work *work, cured_timing timing) {
    const cr_rereads *r = work->rereads;
    if (read_again(work)) return;
    if (r != NULL)
        timing = (cured_timing){r->first_claim_ns - r->opened_ns, r->done_ns - r->first_claim_ns,
                                r->done_ns - work->call->start_ns};
    cr_local_answer(work->call, r != NULL ? &r->partial : &work->job->partial, &timing);
}

/* The partial by key goes to the call. Of no elements there is one, too. */
static void answer_by_key(cr_work *work, cured_timing timing) {
    cr_job_axis *axis = work->job->axis;
    cured_call *call = work->call;
    cr_error error = {CR_OK, ""};
    cr_job_axis_pack(axis, &error);
    call->timing = timing;
    call->count = call->elements;
    call->partial = axis->packed;
    call->partial_bytes = axis->packed_bytes;
    axis->packed = NULL;
    cr_cl_call_finish(call, error.code, 0, error.text);
}

static void answer(cr_work *work) {
    cr_job *job = work->job;
    cured_call *call = work->call;
    cr_error error = {CR_OK, ""};
    uint64_t first = job->first_claim_ns != 0 ? job->first_claim_ns : job->done_ns;
    const cured_timing timing = {first - job->opened_ns, job->done_ns - first, job->done_ns - call->start_ns};
    if (job->error.code != CR_OK) {
        cr_cl_call_finish(call, job->error.code, 0, job->error.text);
    } else if (job->axis == NULL) {
        answer_whole(work, timing);
    } else if (call->request.reduce.want_partial) {
        answer_by_key(work, timing);
    } else if (deliver(work) && deliver_empty(work, &error)) {
        call->timing = timing;
        const cr_axis_spec *spec = &job->axis->spec;
        call->count = cr_axis_by_offsets(spec) ? spec->shape.n : call->elements;
        if (job->axis->placed) cr_cl_array_filled(call);
        if (error.code == CR_OK) cr_local_write_outputs(call, &error);
        cr_cl_call_finish(call, error.code, 0, error.text);
    }
}

void cr_work_collect(cr_local *local) {
    cr_line *lines[] = {&local->own, &local->shared};
    for (int i = 0; i < 2; i++) {
        if (lines[i]->queue == NULL) continue;
        for (cr_job *job; (job = cr_queue_news(lines[i]->queue)) != NULL;)
            if (job->axis != NULL) deliver(job->owner);
        take_done(local, lines[i]);
    }
    for (cr_list *node; (node = cr_list_pop(&local->done)) != NULL;) answer(cr_container(node, cr_work, link));
}

void cr_work_progress(cr_local *local) {
    for (cr_list *node = local->works.next; node != &local->works; node = node->next) {
        cr_work *work = cr_container(node, cr_work, link);
        cured_call *call = work->call;
        if (call->on_progress == NULL || call->request.progress_ms == 0) continue;
        uint64_t now = cr_now_ns();
        if (now < work->progress_ns) continue;
        uint32_t ms = call->request.progress_ms > PROGRESS_MIN_MS ? call->request.progress_ms : PROGRESS_MIN_MS;
        bool begun = work->progress_ns != call->start_ns;
        work->progress_ns = now + ms * UINT64_C(1000000);
        if (!begun) continue; /* the first is due after the time that was asked for */
        cr_progress done = cr_queue_progress(work->line->queue, work->job);
        if (work->rereads != NULL && !work->rereads->once) {
            done.folded_bytes += work->rereads->state.read * work->rereads->bytes;
            done.total_bytes *= cr_quantile_reads(work->job->dtype);
        }
        call->on_progress(call, done.folded_bytes, done.total_bytes, call->user); /* may free it: one a turn */
        return;
    }
}

/* ---- the end ---- */

/* Other threads fold claims of a few milliseconds at most; their end is what is waited for. The news taken meanwhile may be of other
 * works, which the next turn looks at. */
static void wait_done(cr_work *work) {
    cr_local *local = work->local;
    take_done(local, work->line);
    if (work->done) return;
    while (!work->done) {
        struct pollfd p = {.fd = local->event, .events = POLLIN};
        uint64_t count;
        poll(&p, 1, -1);
        if (read(local->event, &count, sizeof count) < 0) continue;
        atomic_store(&local->woken, false);
        take_done(local, work->line);
    }
    cr_local_wake(local);
}

void cr_work_drop(cr_work *work) {
    cr_local *local = work->local;
    cured_call *call = work->call;
    work->call = NULL;
    call->work = NULL;
    if (work->job != NULL && !work->done) {
        cr_worker *worker = &work->line->worker;
        cr_queue_stop(work->line->queue, work->job, NULL);
        if (worker->hand.job == work->job) cr_job_axis_let_go(work->line->queue, &worker->hand);
        cr_work_end_feed(work);
        wait_done(work);
    }
    local->idle = false;
    if (local->delivering != work) work_free(work);
}
