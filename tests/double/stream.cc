/* stream (double): streams, events, functions of the host and launches of kernels. A handle is used again as soon as it may be, as CUDA
 * does: a number, cudaStreamGetId(), never is.
 *
 * Thread: any. Owner: whoever made a stream or event; its queue outlives it. */
#include <algorithm>

#include "tests/double/internal.hh"
#include "tests/gpu/emulate/launch.hh"

queue *find_queue(cudaStream_t stream, cudaError_t *failure) {
    *failure = cudaSuccess;
    context *c = current_context();
    if (stream == nullptr || stream == cudaStreamLegacy) return c->legacy;
    if (stream == cudaStreamPerThread) {
        queue *&q = the.of_threads[{mine.number, c}];
        if (q == nullptr || !q->lives()) q = make_queue(c, true);
        return q;
    }
    *failure = cudaErrorInvalidResourceHandle;
    if (!the.live.count(stream)) return the.counts.stale++, nullptr;
    if (!stream->line->lives()) return the.counts.stale++, *failure = cudaErrorContextIsDestroyed, nullptr;
    *failure = stream->line->home->broken;
    return *failure == cudaSuccess ? stream->line : nullptr;
}

bool is_here(const queue *q) { return q->home == current_context(); }

/* A call that neither a captured stream nor one that would wait for a capture may have. */
static cudaError_t uncaptured(const queue *q) {
    if (!q->captured) return implicit_capture(q, true);
    invalidate(*q->captured);
    return cudaErrorStreamCaptureUnsupported;
}

/* Queues whose stream is gone, and whose work is over, are looked at no more. */
static void forget(queue *q) {
    if (is_idle(q)) the.queues.erase(std::remove(the.queues.begin(), the.queues.end(), q), the.queues.end());
}

static CUevent_st *find_event(cudaEvent_t event, cudaError_t *failure) {
    const bool known = the.live.count(event) && event->home->active && event->home->number == event->home_number;
    *failure = known ? cudaSuccess : cudaErrorInvalidResourceHandle;
    if (!known) the.counts.stale++;
    return known ? event : nullptr;
}

#define FIND_EVENT(e, event)                   \
    cudaError_t no_event;                      \
    CUevent_st *e = find_event(event, &no_event); \
    if (e == nullptr) return here.give(no_event)

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    ENTER(cudaStreamCreateWithFlags, CONTEXT);
    if (flags & ~(unsigned)cudaStreamNonBlocking) return here.give(cudaErrorInvalidValue);
    CUstream_st *made = the.spare_streams.empty() ? new CUstream_st() : the.spare_streams.back();
    if (!the.spare_streams.empty()) the.spare_streams.pop_back();
    made->line = make_queue(current_context(), !(flags & cudaStreamNonBlocking));
    the.live.insert(made);
    the.counts.streams++;
    *stream = made;
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
    return cudaStreamCreateWithFlags(stream, flags);
}

/* Its work goes on. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    ENTER(cudaStreamDestroy, CONTEXT);
    if (!the.live.erase(stream)) return the.counts.stale++, here.give(cudaErrorInvalidResourceHandle);
    if (stream->line->captured) invalidate(*stream->line->captured);
    forget(stream->line);
    the.spare_streams.push_back(stream);
    the.counts.streams--;
    return cudaSuccess;
}

/* CUDA 13.0 refuses it in a capture, which is invalid afterwards: so an H100 showed. */
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    ENTER(cudaStreamGetId, CONTEXT);
    FIND(q, stream);
    if (q->captured) return invalidate(*q->captured), here.give(cudaErrorStreamCaptureUnsupported);
    *id = q->id;
    return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    ENTER(cudaStreamGetFlags, CONTEXT);
    FIND(q, stream);
    *flags = q->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
    ENTER(cudaStreamGetDevice, CONTEXT);
    FIND(q, stream);
    *device = q->home->device;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    ENTER(cudaStreamQuery, UNSAFE);
    the.counts.queries++;
    FIND(q, stream);
    const cudaError_t captured = uncaptured(q);
    if (captured != cudaSuccess) return here.give(captured);
    look(undone_of(q));
    return here.give(undone_of(q) ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    ENTER(cudaStreamSynchronize, UNSAFE);
    the.counts.stream_syncs++;
    FIND(q, stream);
    const cudaError_t captured = uncaptured(q);
    return here.give(captured != cudaSuccess ? captured : wait_for_queue(here, q));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user) {
    ENTER(cudaLaunchHostFunc, CONTEXT);
    FIND(q, stream);
    the.counts.host_functions++;
    op what;
    what.host = [function, user] { function(user); };
    return here.give(enqueue(q, std::move(what)));
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    ENTER(cudaEventCreateWithFlags, CONTEXT);
    if (flags & ~7u) return here.give(cudaErrorInvalidValue);
    CUevent_st *made = new CUevent_st();
    made->home = current_context();
    made->home_number = made->home->number;
    the.live.insert(made);
    the.counts.events++;
    *event = made;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    ENTER(cudaEventDestroy, CONTEXT);
    if (!the.live.erase(event)) return the.counts.stale++, here.give(cudaErrorInvalidResourceHandle);
    the.counts.events--;
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    ENTER(cudaEventRecord, CONTEXT);
    FIND(q, stream);
    FIND_EVENT(e, event);
    if (e->home != q->home) return here.give(cudaErrorInvalidResourceHandle);
    if (q->captured) {
        if (!q->captured->valid) return here.give(cudaErrorStreamCaptureInvalidated);
        e->captured = q->captured;
        e->tails = q->tails;
        e->last = nullptr;
        return cudaSuccess;
    }
    const cudaError_t failure = enqueue(q, op());
    if (failure != cudaSuccess) return here.give(failure);
    e->captured = nullptr;
    e->last = q->last;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    ENTER(cudaStreamWaitEvent, CONTEXT);
    FIND(q, stream);
    FIND_EVENT(e, event);
    if (e->captured || q->captured) return here.give(join_capture(q, e));
    if (e->last == nullptr || e->last->done) return cudaSuccess;
    op what;
    what.after.push_back(e->last);
    return here.give(enqueue(q, std::move(what)));
}

/* An event that is part of a capture says nothing about what ran. */
static cudaError_t look_at_event(const CUevent_st *e) {
    if (!e->captured) return e->home->broken;
    if (!e->captured->over) invalidate(*e->captured);
    return cudaErrorCapturedEvent;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    ENTER(cudaEventQuery, UNSAFE);
    the.counts.queries++;
    FIND_EVENT(e, event);
    const cudaError_t failure = look_at_event(e);
    if (failure != cudaSuccess) return here.give(failure);
    const mark_ptr end = e->last;
    look(end);
    return here.give(end && !end->done ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    ENTER(cudaEventSynchronize, UNSAFE);
    the.counts.event_syncs++;
    FIND_EVENT(e, event);
    const cudaError_t failure = look_at_event(e);
    if (failure != cudaSuccess) return here.give(failure);
    const mark_ptr end = e->last;
    return here.give(wait_for(here, end));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t) {
    ENTER(cudaEventElapsedTime, CONTEXT);
    *milliseconds = 0;
    return cudaSuccess;
}

} /* extern "C" */

/* ---- kernels ---- */

static int take_kernel(void *stream, unsigned blocks, unsigned threads, std::function<void()> kernel) {
    ENTER(launch, CONTEXT);
    FIND(q, (cudaStream_t)stream);
    if (!is_here(q)) return here.give(cudaErrorInvalidResourceHandle);
    if (blocks == 0 || threads == 0) return here.give(cudaErrorInvalidValue);
    the.counts.launches++;
    q->launches++;
    op what;
    what.step = [blocks, threads, kernel](unsigned) {
        cr_emulated_launch(blocks, threads, kernel);
        return true;
    };
    return here.give(enqueue(q, std::move(what)));
}

static const bool takes_kernels = (cr_emulated_take = take_kernel, true);
