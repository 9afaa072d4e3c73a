/* memory (double): device memory, pools' and pinned memory, all of it the host's, in a table by address. New memory holds garbage. What is
 * freed holds 0xA5 and is kept for a while, so that who reads it late finds out, and who writes it late is found out.
 *
 * Thread: any. Owner: whoever allocated. */
#include <cstdlib>
#include <cstring>

#include "tests/double/internal.hh"

enum { ALIGN = 256, KEPT_BYTES = 64 << 20 };

void fill_with_garbage(void *memory, size_t bytes) {
    unsigned char *to = (unsigned char *)memory;
    const uint64_t word = (draw(UINT32_MAX) << 32 | draw(UINT32_MAX)) | 0x0101010101010101u;
    for (size_t at = 0; at < bytes; at += sizeof word) {
        const uint64_t garbage = word * (at + 1);
        memcpy(to + at, &garbage, bytes - at < sizeof garbage ? bytes - at : sizeof garbage);
    }
}

std::map<uintptr_t, block>::iterator find_block(const void *address) {
    const uintptr_t at = (uintptr_t)address;
    auto found = the.blocks.upper_bound(at);
    if (found == the.blocks.begin()) return the.blocks.end();
    --found;
    return at - found->first < found->second.bytes ? found : the.blocks.end();
}

void *make_block(size_t bytes, cudaMemoryType type, context *home) {
    if (bytes > the.memory_limit || the.counts.live_bytes > the.memory_limit - bytes) return nullptr;
    void *start = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    if (start == nullptr) return nullptr;
    fill_with_garbage(start, bytes);
    block made = {};
    made.bytes = bytes;
    made.type = type;
    made.home = home;
    the.blocks[(uintptr_t)start] = made;
    the.counts.live_bytes += bytes;
    the.counts.live_blocks++;
    return start;
}

static void look_for_late_write(freed &f) {
    if (f.written) return;
    f.written = f.bytes > 0 && (f.start[0] != POISON || memcmp(f.start, f.start + 1, f.bytes - 1) != 0); /* all alike */
    if (f.written) the.counts.late_writes++;
}

void count_late_writes() {
    for (freed &f : the.kept) look_for_late_write(f);
}

void remove_block(std::map<uintptr_t, block>::iterator at) {
    const size_t bytes = at->second.bytes;
    unsigned char *start = (unsigned char *)at->first;
    if (!at->second.registered) {
        memset(start, POISON, bytes);
        the.kept.push_back({start, bytes, false});
        the.kept_bytes += bytes;
        the.counts.live_bytes -= bytes;
        the.counts.live_blocks--;
    }
    the.blocks.erase(at);
    while (the.kept_bytes > KEPT_BYTES && the.kept.size() > 1) {
        look_for_late_write(the.kept.front());
        free(the.kept.front().start);
        the.kept_bytes -= the.kept.front().bytes;
        the.kept.pop_front();
    }
}

void remove_blocks_of(context *c) {
    for (auto at = the.blocks.begin(); at != the.blocks.end();) {
        const auto next = std::next(at);
        if (at->second.home == c) remove_block(at);
        at = next;
    }
}

/* One that begins there, of the right kind. */
static std::map<uintptr_t, block>::iterator find_start(const void *memory, bool pinned) {
    const auto at = the.blocks.find((uintptr_t)memory);
    if (at == the.blocks.end() || at->second.freeing || at->second.registered) return the.blocks.end();
    return (at->second.type == cudaMemoryTypeHost) == pinned ? at : the.blocks.end();
}

static cudaError_t wait_to_free(entry &here, context *c) {
    if (the.free_at_once) return cudaSuccess;
    the.counts.device_syncs++;
    return wait_for_device(here, c);
}

/* cudaMalloc and its like. */
static cudaError_t allocate(void **memory, size_t bytes, cudaMemoryType type) {
    if (memory == nullptr) return cudaErrorInvalidValue;
    *memory = nullptr;
    if (bytes == 0) return cudaSuccess;
    *memory = make_block(bytes, type, current_context());
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

extern "C" {

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    ENTER(cudaMalloc, UNSAFE);
    the.counts.allocations++;
    return here.give(allocate(memory, bytes, cudaMemoryTypeDevice));
}

cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned) {
    ENTER(cudaMallocManaged, UNSAFE);
    the.counts.allocations++;
    return here.give(allocate(memory, bytes, cudaMemoryTypeManaged));
}

static cudaError_t free_block(entry &here, void *memory, bool pinned) {
    auto at = find_start(memory, pinned);
    if (at == the.blocks.end()) return the.counts.stale++, cudaErrorInvalidValue;
    const cudaError_t failure = at->second.pool ? cudaSuccess : wait_to_free(here, at->second.home);
    at = find_start(memory, pinned); /* others may have freed meanwhile */
    if (at != the.blocks.end()) remove_block(at);
    return failure;
}

cudaError_t cudaFree(void *memory) {
    entry here("cudaFree", memory ? UNSAFE : CONTEXT);
    if (here.failure != cudaSuccess || memory == nullptr) return here.failure;
    the.counts.frees++;
    return here.give(free_block(here, memory, false));
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
    ENTER(cudaHostAlloc, UNSAFE);
    the.counts.host_allocations++;
    return here.give(allocate(memory, bytes, cudaMemoryTypeHost));
}
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
    ENTER(cudaMallocHost, UNSAFE);
    the.counts.host_allocations++;
    return here.give(allocate(memory, bytes, cudaMemoryTypeHost));
}

cudaError_t cudaFreeHost(void *memory) {
    entry here("cudaFreeHost", memory ? UNSAFE : CONTEXT);
    if (here.failure != cudaSuccess || memory == nullptr) return here.failure;
    the.counts.host_frees++;
    return here.give(free_block(here, memory, true));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
    ENTER(cudaHostGetDevicePointer, CONTEXT);
    const auto at = find_block(host);
    if (at == the.blocks.end() || at->second.type != cudaMemoryTypeHost) return here.give(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned) {
    ENTER(cudaHostRegister, UNSAFE);
    if (memory == nullptr || bytes == 0) return here.give(cudaErrorInvalidValue);
    const auto next = the.blocks.lower_bound((uintptr_t)memory);
    const bool overlaps = next != the.blocks.end() && next->first - (uintptr_t)memory < bytes;
    if (overlaps || find_block(memory) != the.blocks.end()) return here.give(cudaErrorHostMemoryAlreadyRegistered);
    block made = {};
    made.bytes = bytes;
    made.type = cudaMemoryTypeHost;
    made.home = current_context();
    made.registered = true;
    the.blocks[(uintptr_t)memory] = made;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory) {
    ENTER(cudaHostUnregister, UNSAFE);
    const auto at = the.blocks.find((uintptr_t)memory);
    if (at == the.blocks.end() || !at->second.registered) return here.give(cudaErrorHostMemoryNotRegistered);
    const cudaError_t failure = wait_to_free(here, at->second.home);
    the.blocks.erase((uintptr_t)memory);
    return here.give(failure);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *found, const void *pointer) {
    ENTER(cudaPointerGetAttributes, CONTEXT);
    const auto at = find_block(pointer);
    *found = {};
    found->device = -2; /* none, as CUDA says it */
    if (at == the.blocks.end()) {
        found->hostPointer = const_cast<void *>(pointer);
        return cudaSuccess;
    }
    found->type = at->second.type;
    found->device = at->second.home->device;
    found->devicePointer = const_cast<void *>(pointer);
    found->hostPointer = found->type == cudaMemoryTypeDevice ? nullptr : const_cast<void *>(pointer);
    return cudaSuccess;
}

/* ---- in the order of a stream ---- */

/* In a capture the memory is the graph's, and holds garbage anew in each run. */
cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream) {
    ENTER(cudaMallocAsync, CONTEXT);
    FIND(q, stream);
    the.counts.pool_allocations++;
    if (q->captured && !q->captured->valid) return here.give(cudaErrorStreamCaptureInvalidated);
    const cudaError_t failure = allocate(memory, bytes, cudaMemoryTypeDevice);
    if (failure != cudaSuccess || *memory == nullptr) return here.give(failure);
    block &made = the.blocks[(uintptr_t)*memory];
    made.home = q->home;
    made.pool = true;
    made.of_graph = q->captured != nullptr;
    op what;
    if (made.of_graph) {
        q->captured->graph->what->memory.push_back((uintptr_t)*memory);
        what.step = [start = *memory, bytes](unsigned) { return fill_with_garbage(start, bytes), true; };
    }
    return here.give(enqueue(q, std::move(what)));
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
    ENTER(cudaFreeAsync, CONTEXT);
    FIND(q, stream);
    if (memory == nullptr) return cudaSuccess;
    the.counts.pool_frees++;
    const auto at = find_start(memory, false);
    if (at == the.blocks.end()) return the.counts.stale++, here.give(cudaErrorInvalidValue);
    if (at->second.of_graph != (q->captured != nullptr)) return here.give(cudaErrorInvalidValue);
    op what;
    if (q->captured) {
        what.step = [memory, bytes = at->second.bytes](unsigned) { return memset(memory, POISON, bytes), true; };
    } else {
        at->second.freeing = true;
        what.step = [start = at->first](unsigned) {
            const auto found = the.blocks.find(start);
            if (found != the.blocks.end()) remove_block(found);
            return true;
        };
    }
    return here.give(enqueue(q, std::move(what)));
}

} /* extern "C" */
