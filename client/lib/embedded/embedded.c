/* embedded: the table of a connection whose calls are answered in this process.
 *
 * Thread: the one that uses the connection. Owner: embedded.h. */
#include "client/lib/embedded/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cores.h"
#include "client/lib/embedded/open.h"
#include "client/lib/embedded/thread_pool.h"
#include "client/lib/options.h"
#include "kernels/cpu/fold.h"

void cr_local_wake(cr_local *local) {
    const uint64_t one = 1;
    if (atomic_exchange(&local->woken, true) || local->event < 0) return;
    if (write(local->event, &one, sizeof one) < 0) return; /* full: it is readable, which is all that counts */
}

cr_ask cr_local_ask(const cured_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    return (cr_ask){.dtype = (cr_dtype)r->dtype,
                    .ops = r->ops,
                    .op_count = r->op_count,
                    .geometry = call->geometry,
                    .shape = {r->outer, r->n, r->inner},
                    .statuses = cr_cl_array_wants_statuses(call->array),
                    .partial = r->want_partial,
                    .unplaced = r->unplaced,
                    .masked = call->mask.kind != CR_MASK_NONE,
                    .block = call->block != NULL,
                    .second = call->has_second,
                    .rereads = true,
                    .first = r->first,
                    .finish = {.nan = (cr_nan_policy)r->nan,
                               .overflow = (cr_overflow)r->overflow,
                               .result_dtype = (cr_dtype)r->result_dtype,
                               .ddof = r->ddof}};
}

cr_axis_spec cr_local_spec(const cured_call *call) {
    const cr_ask ask = cr_local_ask(call);
    cr_axis_spec spec = {.dtype = ask.dtype,
                         .shape = ask.shape,
                         .offsets = call->offsets,
                         .families = call->needs.families,
                         .op_count = ask.op_count,
                         .items = call->ranked != NULL ? call->ranked->items : NULL,
                         .finish = ask.finish,
                         .statuses = ask.statuses};
    if (ask.geometry == CR_GEOMETRY_OFFSETS) spec.shape = (cr_shape){call->answers, 0, 1};
    if (ask.geometry == CR_GEOMETRY_KEYS)
        spec.shape = (cr_shape){call->keys.groups, call->keys.count, call->keys.columns};
    if (ask.masked) spec.mask_line = spec.shape.inner;
    if (ask.second) spec.second_line = spec.shape.inner;
    for (uint32_t i = 0; i < ask.op_count; i++) spec.ops[i] = (cr_op)ask.ops[i];
    if (ask.geometry == CR_GEOMETRY_KEYS && ask.partial) spec.op_count = 0; /* those of whoever finishes it */
    return spec;
}

static cr_status check(cured_call *call, cr_error *error) {
    const cr_ask ask = cr_local_ask(call);
    cr_status status = cr_ask_ops(&ask, &call->needs, error);
    if (status == CR_OK) status = cr_ask_place(&ask, &call->needs, error);
    if (status != CR_OK || call->request.reduce.kernel[0] == '\0') return status;
    return cr_fail(
        error, CR_FAILED_PRECONDITION,
        "kernel: %s runs on a CUDA device, which calls in this process (embedded:) do not use; start a daemon",
        call->request.reduce.kernel);
}

/* A mask and a second array have an element for each of the input; so many must be known, because nothing may be read beyond. */
static cr_status check_beside(const cured_call *call, const cr_local_input *input, cr_error *error) {
    const bool masked = call->mask.kind != CR_MASK_NONE;
    if (!masked && !call->has_second) return CR_OK;
    if (input->bytes == UINT64_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: a stream beside one says its length when it begins",
                       masked ? "mask" : "second");
    const uint64_t elements = input->bytes / cr_dtype_size((cr_dtype)call->request.reduce.dtype);
    if (masked && call->mask_count != elements)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: it has %llu elements, the input %llu",
                       (unsigned long long)call->mask_count, (unsigned long long)elements);
    return call->has_second ? cr_cl_check_second(&call->second, call->second.dtype, elements, error) : CR_OK;
}

/* Of a stream whose length nobody knows yet the end is checked when it is there. */
static cr_status check_offsets(const cured_call *call, const cr_local_input *input, cr_error *error) {
    if (call->geometry != CR_GEOMETRY_OFFSETS) return CR_OK;
    const size_t size = cr_dtype_size((cr_dtype)call->request.reduce.dtype);
    return cr_offsets_check(&call->offsets, input->bytes != UINT64_MAX ? input->bytes / size : UINT64_MAX, error);
}

static void begin_reduce(cured_call *call) {
    cr_error error;
    cr_local_input input;
    cr_status status = check(call, &error);
    if (status == CR_OK && call->pieces != NULL)
        status = cr_fail(&error, CR_UNIMPLEMENTED,
                         "pieces: several regions together need a daemon; in this process (embedded:) merge partials");
    if (status == CR_OK && call->outputs != NULL) status = cr_local_outputs(call, &error);
    if (status == CR_OK) status = cr_local_input_of(call, &input, &error);
    if (status == CR_OK) status = check_beside(call, &input, &error);
    if (status == CR_OK) status = check_offsets(call, &input, &error);
    if (status != CR_OK) {
        cr_cl_call_finish(call, status, 0, error.text);
    } else if (cr_small_takes(call, &input)) {
        call->data = input.memory; /* of a region too */
        call->data_bytes = input.bytes;
        cr_cl_call_enqueue(call);
    } else {
        cr_work_begin(call, &input);
    }
}

static void begin_info(cured_call *call) {
    const cr_local *local = call->calls->local;
    cr_wire_info info = {.version = CURED_VERSION,
                         .backend = "cpu",
                         .backend_reason = "this process answers by itself (embedded:), and asks no daemon",
                         .uptime_ms = (cr_now_ns() - local->opened_ns) / 1000000,
                         .lane_count = 1,
                         .limits = {.ops = CR_CALL_MAX_OPS,
                                    .jobs_per_connection = UINT32_MAX,
                                    .credit_bytes = UINT64_MAX,
                                    .input_bytes = UINT64_MAX,
                                    .regions_per_connection = UINT32_MAX,
                                    .region_bytes = UINT64_MAX}};
    info.lanes[0] = (cr_wire_lane){.name = "cpu", .workers = local->threads};
    snprintf(info.lanes[0].device, sizeof info.lanes[0].device, "%s", cr_cpu_isa());
    if (cr_cl_call_put_info(call, &info)) cr_cl_call_finish(call, CR_OK, 0, "");
}

/* Whether a call reads the region of this number. */
static bool region_is_read(const cr_cl_calls *calls, uint64_t id) {
    for (const cr_list *l = calls->all.next; l != &calls->all; l = l->next) {
        const cured_call *call = cr_container(l, cured_call, all);
        if (call->kind == KIND_REGION && call->state != CALL_DONE && call->request.reduce.region == id) return true;
    }
    return false;
}

/* At once, or when the calls that read the region are over. */
static void end_unregister(cured_call *call) {
    if (region_is_read(call->calls, call->request.region.id))
        call->calls->local->leaving = true;
    else
        cr_cl_call_finish(call, CR_OK, 0, "");
}

static void begin(cured_call *call) {
    cr_error error = {CR_OK, ""};
    switch (call->kind) {
        case KIND_PING:
            cr_cl_call_finish(call, CR_OK, 0, "");
            break;
        case KIND_INFO:
            begin_info(call);
            break;
        case KIND_RELOAD:
        case KIND_CONFIG:
            cr_cl_call_finish(call, CR_FAILED_PRECONDITION, 0, "embedded: there is no daemon, and it has no options");
            break;
        case KIND_STATS:
        case KIND_SLOW_LOG:
            cr_cl_call_finish(call, CR_UNIMPLEMENTED, 0, "embedded: no daemon is asked, and nothing is counted here");
            break;
        case KIND_REGISTER:
            cr_local_register(call, &error);
            cr_cl_call_finish(call, error.code, 0, error.text);
            break;
        case KIND_UNREGISTER:
            end_unregister(call);
            break;
        case KIND_BUFFER:
        case KIND_FD:
        case KIND_STREAM:
        case KIND_REGION:
            if (call->request.kind == CR_CALL_MERGE)
                cr_cl_call_enqueue(call);
            else
                begin_reduce(call);
            break;
    }
}

static void over(cured_call *call) {
    cr_local *local = call->calls->local;
    if (call->work != NULL) cr_work_drop(call->work);
    cr_local_merge_drop(call);
    if (local->leaving) cr_local_wake(local); /* it may have been what they waited for */
}

static void more(cured_call *call) { call->calls->local->idle = false; }

static void end_unregisters(cr_cl_calls *calls) {
    calls->local->leaving = false;
    for (cr_list *l = calls->all.next, *next; l != &calls->all; l = next) {
        cured_call *call = cr_container(l, cured_call, all);
        next = l->next;
        if (call->kind == KIND_UNREGISTER) end_unregister(call);
    }
}

static void turn(cr_cl_calls *calls, bool readable) {
    cr_local *local = calls->local;
    bool others = true;
    if (!cr_list_empty(&calls->queue)) {
        cured_call *call = cr_container(calls->queue.next, cured_call, queue);
        cr_list_remove(&call->queue);
        others = call->request.kind == CR_CALL_MERGE; /* of many turns: calls with jobs go on beside it */
        if (others)
            cr_local_merge_step(call);
        else
            cr_small_run(call);
    }
    if (others && !cr_list_empty(&local->works)) local->idle = !cr_work_step(local);
    /* Read before `woken` is taken, and without it too: whoever set it may write later, when the news are taken already. */
    uint64_t count;
    if (local->event >= 0 && readable && read(local->event, &count, sizeof count) < 0)
        count = 0; /* nothing was written */
    if (atomic_exchange(&local->woken, false)) {
        local->idle = false;
        cr_work_collect(local);
    }
    if (!cr_list_empty(&local->works)) cr_work_progress(local);
    if (local->leaving) end_unregisters(calls);
}

static bool pressing(const cr_cl_calls *calls) {
    const cr_local *local = calls->local;
    if (!cr_list_empty(&calls->queue) || !cr_list_empty(&local->done) || atomic_load(&local->woken)) return true;
    return !local->idle && !cr_list_empty(&local->works);
}

static void local_init(cr_local *local, cr_cl_calls *calls, uint32_t threads, bool pooled) {
    memset(local, 0, sizeof *local);
    local->calls = calls;
    local->threads = threads;
    local->pooled = pooled;
    local->opened_ns = cr_now_ns();
    local->event = -1;
    cr_list_init(&local->works);
    cr_list_init(&local->done);
    cr_list_init(&local->spare);
    pthread_mutex_init(&local->mutex, NULL);
}

static void line_close(cr_line *line) {
    if (line->queue == NULL) return;
    cr_worker_end(&line->worker, line->queue);
    cr_queue_free(line->queue);
}

static void local_close(cr_cl_calls *calls) {
    cr_local *local = calls->local;
    if (local->shared.queue != NULL) cr_queue_close(local->shared.queue);
    cr_local_pool_free(local->pool);
    line_close(&local->own);
    line_close(&local->shared);
    cr_local_free_pieces(local);
    pthread_mutex_destroy(&local->mutex);
    free(local);
    calls->local = NULL;
}

/* The parent's threads are not here, and may have held any lock: what they used is left where it is. */
static void inherited(cr_cl_calls *calls) {
    if (calls->local->pool == NULL) return;
    for (cr_list *l = calls->all.next; l != &calls->all; l = l->next) cr_container(l, cured_call, all)->work = NULL;
    if (calls->fd >= 0) close(calls->fd); /* the parent's own is another */
    calls->fd = -1;
    local_init(calls->local, calls, calls->local->threads, calls->local->pooled);
}

static const cr_way way = {.begin = begin,
                           .over = over,
                           .more = more,
                           .turn = turn,
                           .pressing = pressing,
                           .inherited = inherited,
                           .close = local_close};

cr_status cr_local_select(cr_error *error) {
    static _Atomic bool selected;
    if (atomic_load_explicit(&selected, memory_order_acquire)) return CR_OK;
    const char *isa = getenv("CURED_CPU_ISA");
    uint32_t threads;
    cr_status status = isa != NULL && isa[0] != '\0' ? cr_cpu_select(isa, error) : CR_OK;
    if (status == CR_OK) status = cr_thread_pool_wanted(&threads, error);
    if (status == CR_OK) atomic_store(&selected, true);
    return status;
}

cr_status cr_cl_embedded_open(cr_cl_calls *calls, uint32_t threads, cr_error *error) {
    const bool pooled = threads == CURED_THREAD_POOL;
    if (pooled) threads = 1;
    if (threads > CR_LOCAL_MAX_THREADS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "threads is %u, limit is %d", threads, CR_LOCAL_MAX_THREADS);
    cr_status status = cr_local_select(error);
    if (status != CR_OK) return status;
    calls->local = malloc(sizeof *calls->local);
    if (calls->local == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a connection");
    local_init(calls->local, calls, threads != 0 ? threads : cr_cores(), pooled);
    calls->way = &way;
    return CR_OK;
}
