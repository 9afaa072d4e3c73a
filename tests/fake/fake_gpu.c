/* fake_gpu: see fake_gpu.h. Thread: a device's one; the plan and the counts have a mutex. Owner: the test. */
#include "tests/fake/fake_gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/memory/guard.h"
#include "kernels/cpu/fold.h"
#include "tests/fake/fake_internal.h"

static cr_list devices = {&devices, &devices}; /* so that one that was never closed is not taken for a leak */

static uint32_t fake_count(cr_error *why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fake_gpu_plan_from_environment);
    while (fake_gpu_planned().hang_count) usleep(1000);
    uint32_t count = fake_gpu_planned().devices;
    if (!count) cr_fail(why, CR_FAILED_PRECONDITION, "the plan has no GPU");
    return count;
}

void fake_gpu_check(const cr_gpu *gpu) {
    if (!pthread_equal(gpu->thread, pthread_self())) fake_gpu_misused("a device is used by two threads");
    if (gpu->lost) fake_gpu_misused("a lost device is used");
}

static area *find_locked(const cr_gpu *gpu, kind k, const void *memory, size_t bytes) {
    const uint8_t *at = memory;
    for (cr_list *node = gpu->areas.next; node != &gpu->areas; node = node->next) {
        area *a = cr_container(node, area, link);
        if (a->kind == k && at >= a->memory && bytes <= a->bytes && (size_t)(at - a->memory) <= a->bytes - bytes)
            return a;
    }
    return NULL;
}

area *fake_gpu_find(const cr_gpu *gpu, kind k, const void *memory, size_t bytes) {
    pthread_mutex_lock(&fake_gpu_mutex);
    area *found = k == ON_DEVICE ? find_locked(gpu, k, memory, bytes) : NULL;
    for (cr_list *node = devices.next; k != ON_DEVICE && node != &devices && !found; node = node->next)
        found = find_locked(cr_container(node, cr_gpu, link), k, memory, bytes);
    pthread_mutex_unlock(&fake_gpu_mutex);
    return found;
}

cr_status fake_gpu_count_call(cr_gpu *gpu, cr_error *error) {
    fake_gpu_check(gpu);
    pthread_mutex_lock(&fake_gpu_mutex);
    if (fake_gpu_now.armed && ++fake_gpu_now.calls == fake_gpu_now.plan.lose_at) gpu->lost = true;
    pthread_mutex_unlock(&fake_gpu_mutex);
    return gpu->lost ? cr_fail(error, CR_UNAVAILABLE, "the device has fallen off the bus") : CR_OK;
}

static cr_status fake_open(uint32_t ordinal, cr_gpu **out, cr_error *error) {
    while (fake_gpu_planned().hang_open) usleep(1000);
    if (fake_gpu_planned().fail_open) return cr_fail(error, CR_UNAVAILABLE, "the plan says that it does not open");
    cr_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory");
    gpu->info = (cr_gpu_info){.name = "Fake GPU", .ordinal = ordinal, .multiprocessors = 1, .memory_bytes = 1ull << 30};
    snprintf(gpu->info.uuid, sizeof gpu->info.uuid, "GPU-00000000-0000-0000-0000-%012u", ordinal);
    gpu->thread = pthread_self();
    cr_list_init(&gpu->areas);
    cr_list_init(&gpu->streams);
    pthread_mutex_lock(&fake_gpu_mutex);
    cr_list_append(&devices, &gpu->link);
    fake_gpu_now.counts.alive++;
    pthread_mutex_unlock(&fake_gpu_mutex);
    *out = gpu;
    return CR_OK;
}

static void free_area(area *a) {
    pthread_mutex_lock(&fake_gpu_mutex);
    cr_list_remove(&a->link);
    fake_gpu_now.counts.pinned -= a->kind == PINNED;
    pthread_mutex_unlock(&fake_gpu_mutex);
    if (a->kind != PINNED) free(a->memory);
    if (a->fd >= 0) close(a->fd);
    free(a);
}

/* What is enqueued is not carried out. */
static void forget_all(cr_gpu_stream *stream) {
    for (; stream->begin != stream->end; stream->begin++) free(stream->ops[stream->begin % MOST_OPS].own);
}

static void free_stream(cr_gpu_stream *stream) {
    forget_all(stream);
    cr_list_remove(&stream->link);
    free(stream->partials);
    fake_gpu_axis_free(&stream->axis);
    free(stream);
}

static void fake_close(cr_gpu *gpu) {
    if (!pthread_equal(gpu->thread, pthread_self())) fake_gpu_misused("a device is closed by another thread");
    if (!gpu->lost && (!cr_list_empty(&gpu->areas) || !cr_list_empty(&gpu->streams) || gpu->events))
        fake_gpu_misused("a device is closed with memory, pins, streams or events left");
    while (!cr_list_empty(&gpu->areas)) free_area(cr_container(gpu->areas.next, area, link));
    while (!cr_list_empty(&gpu->streams)) free_stream(cr_container(gpu->streams.next, cr_gpu_stream, link));
    pthread_mutex_lock(&fake_gpu_mutex);
    cr_list_remove(&gpu->link);
    fake_gpu_now.counts.alive--;
    pthread_mutex_unlock(&fake_gpu_mutex);
    free(gpu);
}

static const cr_gpu_info *fake_info(const cr_gpu *gpu) { return &gpu->info; }

static bool fake_lost(const cr_gpu *gpu) { return gpu->lost; }

cr_status fake_gpu_add(cr_gpu *gpu, kind k, void *memory, size_t bytes, void **out, cr_error *error) {
    fake_gpu_check(gpu);
    area *a = malloc(sizeof *a);
    if (a && k != PINNED) memory = malloc(bytes);
    if (!a || !memory) {
        free(a);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory");
    }
    *a = (area){.kind = k, .memory = memory, .bytes = bytes, .fd = -1};
    pthread_mutex_lock(&fake_gpu_mutex);
    cr_list_append(&gpu->areas, &a->link);
    fake_gpu_now.counts.pinned += k == PINNED;
    pthread_mutex_unlock(&fake_gpu_mutex);
    if (out) *out = memory;
    return CR_OK;
}

void fake_gpu_drop(cr_gpu *gpu, kind k, void *memory) {
    fake_gpu_check(gpu);
    area *found = NULL; /* the one that begins there: another may end there */
    pthread_mutex_lock(&fake_gpu_mutex);
    for (cr_list *node = gpu->areas.next; node != &gpu->areas && !found; node = node->next) {
        area *a = cr_container(node, area, link);
        if (a->kind == k && a->memory == memory) found = a;
    }
    pthread_mutex_unlock(&fake_gpu_mutex);
    if (!found) fake_gpu_misused("memory is given back that was not taken");
    free_area(found);
}

static cr_status fake_host_alloc(cr_gpu *gpu, size_t bytes, void **memory, cr_error *error) {
    return fake_gpu_add(gpu, ALLOCATED, NULL, bytes, memory, error);
}

static void fake_host_free(cr_gpu *gpu, void *memory) { fake_gpu_drop(gpu, ALLOCATED, memory); }

static cr_status fake_device_alloc(cr_gpu *gpu, size_t bytes, void **device, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.allocations);
    return fake_gpu_add(gpu, ON_DEVICE, NULL, bytes, device, error);
}

static void fake_device_free(cr_gpu *gpu, void *device) {
    fake_gpu_count(&fake_gpu_now.counts.frees);
    fake_gpu_drop(gpu, ON_DEVICE, device);
}

static cr_status fake_pin(cr_gpu *gpu, void *memory, size_t bytes, bool read_only, cr_error *error) {
    (void)read_only;
    pthread_mutex_lock(&fake_gpu_mutex);
    if (!fake_gpu_now.armed) fake_gpu_arm();
    pthread_mutex_unlock(&fake_gpu_mutex);
    if ((uintptr_t)memory % 4096 || bytes % 4096) fake_gpu_misused("what is pinned is not whole pages");
    if (fake_gpu_nth(&fake_gpu_now.pins, fake_gpu_planned().stuck_pin))
        for (;;) pause();
    if (fake_gpu_planned().fail_pin)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "the plan says that nothing is pinned");
    return fake_gpu_add(gpu, PINNED, memory, bytes, NULL, error);
}

static void fake_unpin(cr_gpu *gpu, void *memory) {
    while (fake_gpu_planned().stuck_unpin) pause();
    fake_gpu_drop(gpu, PINNED, memory);
}

static cr_status fake_stream_open(cr_gpu *gpu, uint32_t results, cr_gpu_stream **out, cr_error *error) {
    fake_gpu_check(gpu);
    cr_gpu_stream *stream = calloc(1, sizeof *stream);
    cr_partial *partials = calloc(results + CR_GPU_PACK_FOLDS, sizeof *partials);
    if (!stream || !partials) {
        free(stream);
        free(partials);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory");
    }
    stream->gpu = gpu;
    stream->results = results;
    stream->partials = partials;
    stream->pack_partials = partials + results;
    cr_list_append(&gpu->streams, &stream->link);
    *out = stream;
    return CR_OK;
}

static void fake_stream_close(cr_gpu_stream *stream) {
    fake_gpu_check(stream->gpu);
    free_stream(stream);
}

op *fake_gpu_enqueue(cr_gpu_stream *stream) {
    if (stream->end - stream->begin == MOST_OPS) fake_gpu_misused("a stream has more enqueued than it can hold");
    op *o = &stream->ops[stream->end++ % MOST_OPS];
    uint32_t looks = fake_gpu_planned().polls;
    *o = (op){.polls = looks ? looks : 1};
    return o;
}

static cr_status copy_one(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error) {
    cr_gpu *gpu = stream->gpu;
    cr_status status = fake_gpu_count_call(gpu, error);
    if (status != CR_OK) return status;
    bool pinned = fake_gpu_find(gpu, PINNED, host, bytes) != NULL;
    if (!fake_gpu_find(gpu, ON_DEVICE, device, bytes)) fake_gpu_misused("a copy goes beyond its device memory");
    if (!pinned && !fake_gpu_find(gpu, ALLOCATED, host, bytes))
        fake_gpu_misused("a copy comes from memory that is not pinned");
    if (fake_gpu_nth(&fake_gpu_now.copies, fake_gpu_planned().fail_copy))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "the plan says that this copy fails");
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_now.counts.copies++;
    fake_gpu_now.counts.pinned_copies += pinned;
    fake_gpu_now.counts.copied_bytes += bytes;
    pthread_mutex_unlock(&fake_gpu_mutex);
    op *o = fake_gpu_enqueue(stream);
    o->fold.data = device;
    o->from = host;
    o->bytes = bytes;
    return CR_OK;
}

static cr_status fake_copy(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.copy_calls);
    return copy_one(stream, device, host, bytes, error);
}

static cr_status fake_copies(cr_gpu_stream *stream, const cr_gpu_copy *list, uint32_t count, cr_error *error) {
    cr_status status = CR_OK;
    if (!count || count > CR_GPU_COPIES) fake_gpu_misused("none or too many copies at once");
    fake_gpu_count(&fake_gpu_now.counts.copy_calls);
    for (uint32_t i = 0; i < count && status == CR_OK; i++)
        status = copy_one(stream, list[i].device, list[i].host, list[i].bytes, error);
    return status;
}

cr_status fake_gpu_check_fold(cr_gpu *gpu, const cr_gpu_fold *fold, cr_error *error) {
    size_t bytes = fold->n * cr_dtype_size(fold->dtype);
    area *device = fake_gpu_find(gpu, ON_DEVICE, fold->data, bytes);
    pthread_mutex_lock(&fake_gpu_mutex);
    uint32_t lacks = fake_gpu_now.armed ? fake_gpu_now.plan.lacks : 0;
    pthread_mutex_unlock(&fake_gpu_mutex);
    if (device && device->bytes >= 8 && memcmp(device->memory, "poisoned", 8) == 0) gpu->lost = true;
    if (gpu->lost) return cr_fail(error, CR_UNAVAILABLE, "an illegal address");
    if (!device && !fake_gpu_find(gpu, ALLOCATED, fold->data, bytes) && !fake_gpu_find(gpu, PINNED, fold->data, bytes))
        fake_gpu_misused("a fold reads what the device cannot reach");
    if (fold->families & lacks) return cr_fail(error, CR_UNIMPLEMENTED, "the plan lacks this family");
    return CR_OK;
}

bool fake_gpu_plan_fold(uint32_t count, op *o) {
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_state *now = &fake_gpu_now;
    bool counted = now->armed;
    if (counted) now->folds++;
    bool fails = counted && now->folds == now->plan.fail_fold, stuck = counted && now->folds == now->plan.stuck_at;
    o->hangs = counted && now->folds == now->plan.hang_at;
    o->lies = counted && now->folds == now->plan.lies_at;
    fake_gpu_now.counts.folds += count;
    pthread_mutex_unlock(&fake_gpu_mutex);
    while (stuck) pause();
    return !fails;
}

static cr_status fake_fold(cr_gpu_stream *stream, const cr_gpu_fold *list, uint32_t count, uint32_t first,
                           cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.fold_calls);
    cr_gpu *gpu = stream->gpu;
    cr_status status = fake_gpu_count_call(gpu, error);
    if (status != CR_OK) return status;
    if (first + count > stream->results) fake_gpu_misused("there are more folds than results");
    for (uint32_t i = 0; i < count && status == CR_OK; i++) status = fake_gpu_check_fold(gpu, &list[i], error);
    if (status != CR_OK) return status;
    op planned_op;
    if (!fake_gpu_plan_fold(count, &planned_op))
        return cr_fail(error, CR_INVALID_ARGUMENT, "the plan says that this fold fails");
    for (uint32_t i = 0; i < count; i++) {
        op *o = fake_gpu_enqueue(stream);
        o->fold = list[i];
        o->number = first + i;
        o->hangs = planned_op.hangs;
        o->lies = planned_op.lies;
    }
    return CR_OK;
}

static cr_status fake_pack(cr_gpu_stream *stream, const cr_gpu_fold *list, uint32_t count, uint32_t first,
                           uint32_t *taken, cr_error *error) {
    *taken = 0;
    cr_gpu *gpu = stream->gpu;
    cr_status status = fake_gpu_count_call(gpu, error);
    if (status != CR_OK) return status;
    if (stream->begin == stream->end) stream->packed = 0;
    if (first > stream->packed) fake_gpu_misused("a pack leaves results out");
    uint32_t room = fake_gpu_planned().room ? fake_gpu_planned().room : CR_GPU_PACK_FOLDS;
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_now.counts.packs++;
    if (count > fake_gpu_now.counts.largest_pack) fake_gpu_now.counts.largest_pack = count;
    pthread_mutex_unlock(&fake_gpu_mutex);
    for (; *taken < count && first < room; ++*taken, first++) {
        const cr_gpu_fold *fold = &list[*taken];
        op planned_op;
        status = fake_gpu_check_fold(gpu, fold, error);
        if (status != CR_OK) return status;
        if (fold->n * cr_dtype_size(fold->dtype) > CR_GPU_PACK_BYTES) fake_gpu_misused("a fold of a pack is too long");
        if (!fake_gpu_plan_fold(1, &planned_op))
            return cr_fail(error, CR_INVALID_ARGUMENT, "the plan says that this fold fails");
        op *o = fake_gpu_enqueue(stream);
        o->fold = *fold;
        o->number = first;
        o->hangs = planned_op.hangs;
        o->lies = planned_op.lies;
        o->packed = true;
        stream->packed = first + 1;
    }
    return CR_OK;
}

static void fake_pack_result(const cr_gpu_stream *stream, uint32_t number, cr_partial *p) {
    fake_gpu_check(stream->gpu);
    if (number >= stream->packed) fake_gpu_misused("there is no result of that number in the pack");
    *p = stream->pack_partials[number];
}

static void fake_linger(cr_gpu *gpu, uint64_t ns) {
    fake_gpu_check(gpu);
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_now.counts.linger_ns = ns;
    pthread_mutex_unlock(&fake_gpu_mutex);
}

static void carry_out(cr_gpu_stream *stream, const op *o) {
    if (o->carry_out) {
        o->carry_out(stream, o);
        return;
    }
    if (o->from) {
        memcpy((void *)(uintptr_t)o->fold.data, o->from, o->bytes);
        return;
    }
    cr_partial *p = o->packed ? &stream->pack_partials[o->number] : &stream->partials[o->number];
    cr_partial_init(p, o->fold.dtype, o->fold.families);
    cr_cpu_fold(p, o->fold.data, o->fold.n - (o->lies && o->fold.n), o->fold.index);
}

/* A GPU has pinned the pages, and reads them also when their file was cut meanwhile; the stand-in reads by the mapping. */
static void read_pinned(cr_gpu_stream *stream, const op *o) {
    const void *from = o->from ? o->from : o->fold.data;
    cr_guard_enter(from, o->from ? o->bytes : o->fold.n * cr_dtype_size(o->fold.dtype));
    carry_out(stream, o);
    cr_guard_leave();
}

static cr_status fake_poll(cr_gpu_stream *stream, bool *idle, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.polls);
    cr_status status = fake_gpu_count_call(stream->gpu, error);
    *idle = false;
    if (status != CR_OK) return status;
    if (fake_gpu_nth(&fake_gpu_now.looks, fake_gpu_planned().late_at)) {
        usleep(FAKE_LATE_MS * 1000);
        return CR_OK;
    }
    if (fake_gpu_nth(&fake_gpu_now.polls, fake_gpu_planned().fail_fault)) {
        forget_all(stream);
        stream->axis.enqueued = false;
        return cr_fail(error, CR_INTERNAL, "the plan says that the work of this stream fails");
    }
    if (stream->begin != stream->end) {
        op *o = &stream->ops[stream->begin % MOST_OPS];
        if (!o->hangs && --o->polls == 0) {
            read_pinned(stream, o);
            free(o->own);
            stream->begin++;
        }
    }
    *idle = stream->begin == stream->end;
    if (*idle) stream->axis.enqueued = false;
    return CR_OK;
}

/* As the kernels do, of sums. */
static bool fake_fold_takes(cr_dtype dtype, uint32_t families) {
    (void)dtype;
    return (families & CR_FAM_SUMS & ~(uint32_t)CR_FAM_KNOWN_SUMS) == 0;
}

static const cr_partial *fake_result(const cr_gpu_stream *stream, uint32_t number) {
    fake_gpu_check(stream->gpu);
    if (number >= stream->results) fake_gpu_misused("there is no result of that number");
    return &stream->partials[number];
}

static cr_status fake_kernel(cr_gpu_stream *stream, const char *name, cr_op operation, const cr_gpu_fold *input,
                             cr_value *value, bool *exact, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.kernels);
    cr_status status = fake_gpu_count_call(stream->gpu, error);
    if (status != CR_OK) return status;
    if (name[0] != 'v') return cr_fail(error, CR_UNIMPLEMENTED, "kernel: %s lacks this op", name);
    cr_partial p;
    cr_partial_init(&p, input->dtype, input->families);
    cr_cpu_fold(&p, input->data, input->n, input->index);
    cr_partial_finish(&p, operation, &(cr_finish_opts){0}, value);
    *exact = false;
    return CR_OK;
}

static bool fake_traced(void) { return !fake_gpu_planned().untraced; }

static uint64_t fake_trace_begin(const char *name) {
    if (fake_gpu_planned().untraced) fake_gpu_misused("a range begins, and nobody looks on");
    return fake_gpu_trace_begin(name);
}

const cr_gpu_api cr_fake_gpu = {
    .name = "fake",
    .traced = fake_traced,
    .trace_begin = fake_trace_begin,
    .trace_end = fake_gpu_trace_end,
    .count = fake_count,
    .open = fake_open,
    .close = fake_close,
    .info = fake_info,
    .lost = fake_lost,
    .host_alloc = fake_host_alloc,
    .host_free = fake_host_free,
    .pin = fake_pin,
    .unpin = fake_unpin,
    .device_alloc = fake_device_alloc,
    .device_free = fake_device_free,
    .stream_open = fake_stream_open,
    .stream_close = fake_stream_close,
    .copy = fake_copy,
    .copies = fake_copies,
    .fold = fake_fold,
    .fold_takes = fake_fold_takes,
    .axis_takes = fake_gpu_axis_takes,
    .axis = fake_gpu_axis,
    .axis_result = fake_gpu_axis_result,
    .axis_trim = fake_gpu_axis_trim,
    .fetch = fake_gpu_fetch,
    .put = fake_gpu_put,
    .poll = fake_poll,
    .result = fake_result,
    .pack = fake_pack,
    .pack_result = fake_pack_result,
    .linger = fake_linger,
    .kernel = fake_kernel,
    .inspect = fake_gpu_inspect,
    .import = fake_gpu_import,
    .release = fake_gpu_release,
    .event_open = fake_gpu_event_open,
    .event_look = fake_gpu_event_look,
    .event_close = fake_gpu_event_close,
};
