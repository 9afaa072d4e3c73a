/* copy (double): copies and memsets. Pinned memory is read when the stream comes to the copy. Pageable memory is read at once on the way
 * to the device; on the way back the call waits, as CUDA's does.
 *
 * Thread: any. Owner: none. */
#include <cstring>

#include "tests/double/internal.hh"

enum place { PAGEABLE, PINNED, ON_DEVICE, BEYOND };

/* Where bytes lie; BEYOND: not all of them are in the block. */
static place place_of(const void *memory, size_t bytes) {
    const auto at = find_block(memory);
    if (at == the.blocks.end()) return PAGEABLE;
    if (bytes > at->second.bytes - ((uintptr_t)memory - at->first)) return BEYOND;
    return at->second.type == cudaMemoryTypeHost ? PINNED : ON_DEVICE;
}

/* Whether the kind agrees with where both are. */
static bool agrees(place to, place from, cudaMemcpyKind kind) {
    const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost,
               from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
    if (to == BEYOND || from == BEYOND) return false;
    if (kind == cudaMemcpyDefault) return true;
    return (to_host || to != PAGEABLE) && (from_host || from != PAGEABLE);
}

struct plane {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
};

static void move(const plane &p) {
    for (size_t i = 0; i < p.height; i++) memmove(p.to + i * p.to_pitch, p.from + i * p.from_pitch, p.width);
}

static size_t extent(size_t pitch, const plane &p) { return (p.height - 1) * pitch + p.width; }

/* waits: it has to wait for its end. */
static cudaError_t copy(queue *q, plane p, cudaMemcpyKind kind, bool *waits) {
    *waits = false;
    if (p.width == 0 || p.height == 0) return cudaSuccess;
    if (p.to_pitch < p.width || p.from_pitch < p.width) return cudaErrorInvalidValue;
    const place to = place_of(p.to, extent(p.to_pitch, p)), from = place_of(p.from, extent(p.from_pitch, p));
    if (!agrees(to, from, kind)) return cudaErrorInvalidValue;
    the.counts.copies++;
    if (q->captured && (to == PAGEABLE || from == PAGEABLE)) {
        invalidate(*q->captured);
        return cudaErrorStreamCaptureUnsupported;
    }
    op what;
    if (from == PAGEABLE) {
        auto bytes = std::make_shared<std::vector<char>>(p.width * p.height);
        move({bytes->data(), p.from, p.width, p.from_pitch, p.width, p.height});
        what.step = [p, bytes](unsigned) {
            return move({p.to, bytes->data(), p.to_pitch, p.width, p.width, p.height}), true;
        };
    } else {
        what.step = [p](unsigned) { return move(p), true; };
    }
    *waits = to == PAGEABLE;
    return enqueue(q, std::move(what));
}

/* In the order of a stream, and waits where it must. */
static cudaError_t copy_and_wait(entry &here, queue *q, plane p, cudaMemcpyKind kind, bool always) {
    bool waits = false;
    const cudaError_t failure = copy(q, p, kind, &waits);
    if (failure != cudaSuccess || !(waits || always)) return failure;
    the.counts.stream_syncs++;
    const mark_ptr end = q->last;
    return wait_for(here, end);
}

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    ENTER(cudaMemcpy, UNSAFE);
    FIND(q, nullptr);
    return here.give(copy_and_wait(here, q, {(char *)to, (const char *)from, bytes, bytes, bytes, 1}, kind, true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    ENTER(cudaMemcpyAsync, CONTEXT);
    FIND(q, stream);
    return here.give(copy_and_wait(here, q, {(char *)to, (const char *)from, bytes, bytes, bytes, 1}, kind, false));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    ENTER(cudaMemcpy2DAsync, CONTEXT);
    FIND(q, stream);
    const plane p = {(char *)to, (const char *)from, to_pitch, from_pitch, width, height};
    return here.give(copy_and_wait(here, q, p, kind, false));
}

/* Not in the legacy stream, and not in a capture, as with CUDA. */
cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes, size_t count,
                                 struct cudaMemcpyAttributes *, size_t *, size_t, cudaStream_t stream) {
    ENTER(cudaMemcpyBatchAsync, CONTEXT);
    FIND(q, stream);
    if (q->legacy) return here.give(cudaErrorInvalidValue);
    if (q->captured) return invalidate(*q->captured), here.give(cudaErrorStreamCaptureUnsupported);
    for (size_t i = 0; i < count; i++) {
        const plane p = {(char *)to[i], (const char *)from[i], bytes[i], bytes[i], bytes[i], 1};
        const cudaError_t failure = copy_and_wait(here, q, p, cudaMemcpyDefault, false);
        if (failure != cudaSuccess) return here.give(failure);
    }
    return cudaSuccess;
}

static cudaError_t set(queue *q, void *memory, int byte, size_t bytes) {
    if (bytes == 0) return cudaSuccess;
    const place where = place_of(memory, bytes);
    if (where == PAGEABLE || where == BEYOND) return cudaErrorInvalidValue;
    if (!is_here(q)) return cudaErrorInvalidResourceHandle;
    the.counts.sets++;
    op what;
    what.step = [memory, byte, bytes](unsigned) { return memset(memory, byte, bytes), true; };
    return enqueue(q, std::move(what));
}

/* Of device memory CUDA does not wait; here neither, but tests are told. */
cudaError_t cudaMemset(void *memory, int byte, size_t bytes) {
    ENTER(cudaMemset, UNSAFE);
    FIND(q, nullptr);
    the.counts.stream_syncs++;
    return here.give(set(q, memory, byte, bytes));
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream) {
    ENTER(cudaMemsetAsync, CONTEXT);
    FIND(q, stream);
    return here.give(set(q, memory, byte, bytes));
}

} /* extern "C" */
