/* stream: an ordered line of copies and folds on one GPU, and the slots that its folds' partials come back in.
 *
 * Thread: one at a time for the device. Owner: whoever opened the stream. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/device/internal.h"
#include "kernels/cuda/device/replay.h"
#include "kernels/cuda/pack/pack.h"
#include "kernels/ladder/ladder.h"

enum {
    PACK_UNITS = 4096,
    PACK_MORE = 1 << 16,   /* words */
    WARY_BYTES = 16 << 20, /* below, a launcher has no choice */
    WARY_FOLDS = 64,       /* then it is tried again: a fold that is hard takes twice as long */
    LOOKS = 64,            /* at words of the device, before the driver is asked whether all is well */
};

/* One fold of a pack. */
struct packed {
    cr_gpu_fold fold;
    uint32_t unit; /* its first */
};

/* What was enqueued for a slot. */
struct asked {
    cr_dtype dtype;
    uint32_t families;
    uint64_t n;
    bool finished; /* its result has been put together */
};

struct cr_gpu_stream {
    cr_gpu *gpu;
    cudaStream_t stream;
    uint32_t results;
    cr_gpu_state *state;
    cr_fold_slot *slots; /* pinned; the device writes them */
    struct asked *asked;
    bool folding;  /* what was enqueued last is a fold */
    bool telling;  /* and the words of its slot say that it is done */
    uint32_t wary; /* large sums of floats for which it is foreseen that they are hard, as one was not long ago */
    cr_replay replay;
    cr_axis_room axis;
    cr_pack pack;
    uint64_t *pack_memory; /* pinned */
    struct packed *packed;
    uint32_t packed_count, looks;
    bool pack_last; /* nothing was enqueued after the last pack: when that is there, all is done */
    bool pack_old;  /* what the pack has may be forgotten */
    bool idle;      /* nothing was enqueued since it was seen idle */
};

/* Something other than a pack. What stays for packs would be in its way. */
static void enqueues(cr_gpu_stream *s) {
    s->pack_last = s->idle = s->telling = false;
    cr_linger_quit(&s->gpu->linger);
}

void cr_cuda_stream_close(cr_gpu_stream *s) {
    if (s == NULL) return;
    if (cr_cuda_bind(s->gpu, NULL) == CR_OK) {
        cr_linger_quit(&s->gpu->linger);
        if (s->gpu->linger.posted == &s->pack)
            cudaStreamSynchronize(s->gpu->linger.stream); /* it writes to the pack's memory */
        cr_linger_forget(&s->gpu->linger, &s->pack);
        if (s->stream) cudaStreamSynchronize(s->stream);
        if (s->stream) cudaStreamDestroy(s->stream);
        cr_cuda_device_free(s->gpu, s->state);
        cr_axis_room_free(&s->axis);
        cr_replay_free(&s->replay);
    }
    cr_cuda_host_free(s->gpu, s->slots);
    cr_cuda_host_free(s->gpu, s->pack_memory);
    free(s->asked);
    free(s->packed);
    free(s);
}

cr_status cr_cuda_stream_open(cr_gpu *gpu, uint32_t results, cr_gpu_stream **out, cr_error *error) {
    cr_status status = cr_cuda_bind(gpu, error);
    if (status != CR_OK) return status;
    if (results == 0) results = 1;
    cr_gpu_stream *s = calloc(1, sizeof *s);
    struct asked *asked = calloc(results, sizeof *asked);
    struct packed *packed = calloc(CR_GPU_PACK_FOLDS, sizeof *packed);
    if (s == NULL || asked == NULL || packed == NULL) {
        free(s);
        free(asked);
        free(packed);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "stream: no memory for %u results", results);
    }
    s->gpu = gpu;
    s->results = results;
    s->asked = asked;
    s->packed = packed;
    void *state = NULL, *slots = NULL, *words = NULL;
    const size_t word_bytes = cr_pack_words(PACK_UNITS, PACK_MORE) * sizeof(uint64_t);
    status = cr_cuda_error(gpu, (int)cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "stream", error);
    if (status == CR_OK) status = cr_cuda_device_alloc(gpu, sizeof *s->state, &state, error);
    s->state = state;
    if (status == CR_OK) status = cr_cuda_host_alloc(gpu, (size_t)results * sizeof *s->slots, &slots, error);
    s->slots = slots;
    if (status == CR_OK) status = cr_cuda_host_alloc(gpu, word_bytes, &words, error);
    s->pack_memory = words;
    if (status == CR_OK) memset(words, 0, word_bytes);
    if (status == CR_OK) cr_pack_init(&s->pack, words, PACK_UNITS, PACK_MORE);
    if (status == CR_OK)
        status = cr_cuda_error(gpu, (int)cudaMemsetAsync(s->state, 0, sizeof *s->state, s->stream), "stream", error);
    if (status != CR_OK) {
        cr_cuda_stream_close(s);
        return status;
    }
    *out = s;
    return CR_OK;
}

cr_status cr_cuda_copy(cr_gpu_stream *s, void *device, const void *host, size_t bytes, cr_error *error) {
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK) return status;
    enqueues(s);
    s->folding = false;
    cudaError_t failure = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, s->stream);
    return cr_cuda_error(s->gpu, (int)failure, "copy", error);
}

cr_status cr_cuda_copies(cr_gpu_stream *s, const cr_gpu_copy *copies, uint32_t count, cr_error *error) {
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK || count == 0) return status;
    if (count > CR_GPU_COPIES) return cr_fail(error, CR_INTERNAL, "copy: %u at once", count);
    if (count == 1) return cr_cuda_copy(s, copies->device, copies->host, copies->bytes, error);
    enqueues(s);
    s->folding = false;
#if CUDART_VERSION >= 13000
    void *to[CR_GPU_COPIES];
    const void *from[CR_GPU_COPIES];
    size_t bytes[CR_GPU_COPIES], first = 0;
    struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    for (uint32_t i = 0; i < count; i++) {
        to[i] = copies[i].device;
        from[i] = copies[i].host;
        bytes[i] = copies[i].bytes;
    }
    cudaError_t failure = cudaMemcpyBatchAsync(to, from, bytes, count, &how, &first, 1, s->stream);
    return cr_cuda_error(s->gpu, (int)failure, "copy", error);
#else
    for (uint32_t i = 0; i < count && status == CR_OK; i++)
        status = cr_cuda_copy(s, copies[i].device, copies[i].host, copies[i].bytes, error);
    return status;
#endif
}

/* The launches of a fold. */
struct launches {
    cr_gpu_stream *stream;
    cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
    uint32_t count;
    cr_fold_args args;
};

static int launch_all(void *argument) {
    struct launches *l = argument;
    int failure = cudaSuccess;
    for (uint32_t i = 0; failure == cudaSuccess && i < l->count; i++) {
        l->args.follows = l->stream->folding;
        l->stream->folding = true;
        failure = l->launchers[i](&l->args, l->stream->stream);
    }
    return failure;
}

/* A fold with which no other is asked for. */
static cr_status fold_alone(struct launches *l, const cr_gpu_fold *fold, cr_error *error) {
    cr_gpu_stream *s = l->stream;
    const bool follows = s->folding;
    s->looks = 0;
    s->telling = cr_fold_await(&l->args, fold->dtype, fold->families);
    s->folding = false; /* nothing is before it in a graph, and what follows a graph waits for it */
    const bool replayed = !l->args.wary && cr_replay_launch(&s->replay, fold, s->stream, launch_all, l);
    s->folding = !replayed && follows;
    return replayed ? CR_OK : cr_cuda_error(s->gpu, launch_all(l), "fold", error);
}

/* What is folded next mostly resembles what was folded last. Other folds have one program, and go by it from a graph. */
static bool is_wary(cr_gpu_stream *s, const cr_gpu_fold *fold, uint32_t number) {
    const struct asked *last = &s->asked[number];
    if (last->finished && last->n && cr_fold_was_hard(&s->slots[number], last->dtype, last->families))
        s->wary = WARY_FOLDS;
    if (s->wary == 0 || !cr_fast_on(CR_FAST_GPU_WARY) || !cr_fold_is_float_sum(fold->dtype, fold->families))
        return false;
    if (fold->n * cr_dtype_size(fold->dtype) < WARY_BYTES) return false;
    s->wary--;
    return true;
}

static cr_status fold_one(cr_gpu_stream *s, const cr_gpu_fold *fold, uint32_t number, bool alone, cr_error *error) {
    if (fold->n > CR_FOLD_MAX) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "fold: %llu elements at once; the GPU takes %llu",
                       (unsigned long long)fold->n, (unsigned long long)CR_FOLD_MAX);
    }
    struct launches l = {.stream = s};
    cr_status status = cr_fold_launchers(fold->dtype, fold->families, fold->wants, l.launchers, &l.count, error);
    if (status != CR_OK) return status;
    cr_fold_slot *slot = &s->slots[number];
    struct asked *asked = &s->asked[number];
    cr_fold_prepare(&l.args, fold->dtype, fold->data, fold->n, fold->index, s->gpu->info.multiprocessors, s->state,
                    slot);
    l.args.wary = is_wary(s, fold, number);
    cr_partial_init(&slot->partial, fold->dtype, fold->families);
    if (fold->wants) cr_partial_want(&slot->partial, fold->wants);
    *asked = (struct asked){fold->dtype, fold->families, fold->n, fold->n == 0};
    if (fold->n == 0) return CR_OK;
    return alone ? fold_alone(&l, fold, error) : cr_cuda_error(s->gpu, launch_all(&l), "fold", error);
}

cr_status cr_cuda_fold(cr_gpu_stream *s, const cr_gpu_fold *folds, uint32_t count, uint32_t first, cr_error *error) {
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK) return status;
    if (first > s->results || count > s->results - first) {
        return cr_fail(error, CR_INTERNAL, "fold: results %u … of a stream that has %u", first, s->results);
    }
    enqueues(s);
    for (uint32_t i = 0; status == CR_OK && i < count; i++)
        status = fold_one(s, &folds[i], first + i, count == 1 && first == 0, error);
    return status;
}

cr_status cr_cuda_axis(cr_gpu_stream *s, const cr_gpu_axis *axis, cr_error *error) {
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK) return status;
    enqueues(s);
    cr_error asked = {CR_OK, ""};
    s->folding = false;
    int failure = cr_axis_ask(&s->axis, axis, s->gpu->info.multiprocessors, s->stream, &asked);
    if (asked.code == CR_OK) return cr_cuda_error(s->gpu, failure, "axis", error);
    *error = asked;
    return asked.code;
}

cr_status cr_cuda_axis_result(cr_gpu_stream *s, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed, cr_error *error) {
    return cr_axis_answers(&s->axis, out, failed, error);
}

void cr_cuda_axis_trim(cr_gpu_stream *s, size_t most) {
    if (cr_cuda_bind(s->gpu, NULL) == CR_OK) cr_axis_room_trim(&s->axis, most);
}

cr_status cr_cuda_fetch(cr_gpu_stream *s, void *host, const void *device, size_t width, size_t pitch, size_t count,
                        cr_error *error) {
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK) return status;
    enqueues(s);
    s->folding = false;
    cudaError_t failure = cudaSuccess;
    if (count > 1 && pitch <= INT32_MAX) { /* as far as the driver goes */
        failure = cudaMemcpy2DAsync(host, width, device, pitch, width, count, cudaMemcpyDefault, s->stream);
    } else {
        for (size_t i = 0; i < count && failure == cudaSuccess; i++)
            failure = cudaMemcpyAsync((uint8_t *)host + i * width, (const uint8_t *)device + i * pitch, width,
                                      cudaMemcpyDefault, s->stream);
    }
    return cr_cuda_error(s->gpu, (int)failure, "fetch", error);
}

/* From memory that is not pinned the driver takes the bytes before it returns. */
cr_status cr_cuda_put(cr_gpu_stream *s, void *device, const void *host, size_t bytes, cr_error *error) {
    return cr_cuda_copy(s, device, host, bytes, error);
}

static cr_status check_packed(const cr_gpu_fold *fold, cr_error *error) {
    if (!cr_fold_takes(fold->dtype, fold->families) || (fold->families & ~CR_GPU_PACK_FAMILIES) != 0)
        return cr_fail(error, CR_UNIMPLEMENTED, "pack: the GPU has no kernels for families %#x of dtype %s",
                       fold->families, cr_dtype_name(fold->dtype));
    if (fold->n > CR_GPU_PACK_BYTES / cr_dtype_size(fold->dtype))
        return cr_fail(error, CR_INTERNAL, "pack: a fold of more than %d bytes", CR_GPU_PACK_BYTES);
    return CR_OK;
}

cr_status cr_cuda_pack(cr_gpu_stream *s, const cr_gpu_fold *folds, uint32_t count, uint32_t first, uint32_t *taken,
                       cr_error *error) {
    *taken = 0;
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK) return status;
    if (s->pack_old) {
        cr_pack_clear(&s->pack);
        s->packed_count = 0;
        s->pack_old = false;
    }
    if (first > s->packed_count) return cr_fail(error, CR_INTERNAL, "pack: results are left out");
    for (; *taken < count && first < CR_GPU_PACK_FOLDS; ++*taken, first++) {
        struct packed *packed = &s->packed[first];
        packed->fold = folds[*taken];
        status = check_packed(&packed->fold, error);
        if (status != CR_OK || !cr_pack_add(&s->pack, &packed->fold, &packed->unit)) break;
    }
    s->folding = s->telling = false;
    if (!s->idle || !cr_linger_post(&s->gpu->linger, &s->pack)) {
        s->idle = false;
        const int failure = cr_pack_start(&s->pack, s->stream);
        if (failure != cudaSuccess) {
            *taken = 0;
            return cr_cuda_error(s->gpu, failure, "pack", error);
        }
        cr_cuda_error(s->gpu, cr_linger_follow(&s->gpu->linger, &s->pack), "pack", NULL); /* it need not stay */
    }
    s->packed_count = first;
    s->pack_last = true;
    s->looks = 0;
    return status;
}

void cr_cuda_pack_result(const cr_gpu_stream *s, uint32_t number, cr_partial *p) {
    const struct packed *packed = &s->packed[number];
    cr_pack_result(&s->pack, &packed->fold, packed->unit, p);
}

/* A pack that was posted is not there. Whoever stayed may have left without having seen it. */
static cr_status poll_posted(cr_gpu_stream *s, cr_error *error) {
    cr_linger *linger = &s->gpu->linger;
    if (cr_linger_gone(linger)) {
        cr_linger_forget(linger, &s->pack);
        if (cr_pack_done(&s->pack)) return CR_OK; /* it came in the meantime: the next look sees the rest */
        s->idle = false;
        return cr_cuda_error(s->gpu, cr_pack_enqueue(&s->pack, linger->from, linger->count, s->stream), "pack", error);
    }
    if (s->looks % LOOKS != 0) return CR_OK;
    cudaError_t answer = cudaStreamQuery(linger->stream);
    return answer == cudaErrorNotReady ? CR_OK : cr_cuda_error(s->gpu, (int)answer, "poll", error);
}

cr_status cr_cuda_poll(cr_gpu_stream *s, bool *idle, cr_error *error) {
    const bool posted = s->gpu->linger.posted == &s->pack;
    *idle = false;
    if (s->pack_last && !s->gpu->lost) {
        *idle = s->pack_old = cr_pack_done(&s->pack);
        if (*idle) s->idle = true, cr_linger_forget(&s->gpu->linger, &s->pack);
        if (*idle || (++s->looks % LOOKS != 0 && !posted)) return CR_OK;
    }
    if (s->telling && !s->gpu->lost) {
        *idle = cr_fold_there(s->slots);
        if (*idle || ++s->looks % LOOKS != 0) return CR_OK;
    }
    cr_status status = cr_cuda_bind(s->gpu, error);
    if (status != CR_OK) return status;
    if (posted) return poll_posted(s, error);
    cudaError_t answer = cudaStreamQuery(s->stream);
    if (answer == cudaErrorNotReady) return CR_OK;
    if (answer == cudaSuccess) {
        s->pack_old = true;
        if (!cr_pack_done(&s->pack)) return cr_fail(error, CR_INTERNAL, "pack: the GPU has left words out");
        *idle = s->idle = true;
    }
    return cr_cuda_error(s->gpu, (int)answer, "poll", error);
}

const cr_partial *cr_cuda_result(const cr_gpu_stream *s, uint32_t number) {
    struct asked *asked = &s->asked[number];
    if (!asked->finished) {
        cr_fold_result(&s->slots[number], asked->dtype, asked->families, asked->n);
        asked->finished = true;
    }
    return &s->slots[number].partial;
}

cr_status cr_cuda_kernel(cr_gpu_stream *s, const char *name, cr_op op, const cr_gpu_fold *input, cr_value *value,
                         bool *exact, cr_error *error) {
    cr_gpu *gpu = s->gpu;
    cr_status status = cr_cuda_bind(gpu, error);
    if (status == CR_OK && gpu->ladder == NULL) status = cr_ladder_open(&gpu->ladder, error);
    if (status != CR_OK) return status;
    cr_linger_quit(&gpu->linger);
    const cr_ladder_job job = {name, op, input->dtype, input->data, input->n};
    s->folding = false;
    status = cr_ladder_run(gpu->ladder, &job, s->stream, value, exact, error);
    /* An error of the device stays: ask again, so that it is known to be lost. */
    if (status == CR_UNAVAILABLE) cr_cuda_error(gpu, (int)cudaStreamQuery(s->stream), "kernel", NULL);
    return status;
}

void cr_cuda_linger(cr_gpu *gpu, uint64_t ns) {
    void *box = NULL;
    cudaStream_t stream = NULL;
    if (ns == 0 || gpu->linger.box || cr_cuda_host_alloc(gpu, sizeof(cr_linger_box), &box, NULL) != CR_OK) return;
    memset(box, 0, sizeof(cr_linger_box));
    if (cr_cuda_error(gpu, (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream", NULL) == CR_OK)
        cr_linger_init(&gpu->linger, box, stream, ns);
    else
        cr_cuda_host_free(gpu, box);
}

void cr_cuda_linger_end(cr_gpu *gpu) {
    cr_linger *linger = &gpu->linger;
    if (!linger->box) return;
    cr_linger_quit(linger);
    if (cr_cuda_bind(gpu, NULL) == CR_OK) {
        cudaStreamSynchronize(linger->stream);
        cudaStreamDestroy(linger->stream);
    }
    cr_cuda_host_free(gpu, linger->box);
    linger->box = NULL;
}
