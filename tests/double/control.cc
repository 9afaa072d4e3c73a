/* control (double): what tests ask of the double, and its own kernels: see double.h.
 *
 * Thread: any. Owner: none. */
#include <cstring>

#include "tests/double/internal.hh"

enum { STEPS = 8 }; /* of a slow write */

typedef std::lock_guard<std::mutex> guard;

void cr_double_seed(uint64_t seed) {
    guard lock(the.mutex);
    the.seed = the.drawn = seed;
}

size_t cr_double_run(size_t operations) {
    std::unique_lock<std::mutex> lock(the.mutex);
    size_t ran = 0;
    while (ran < operations) {
        queue *q = draw_ready();
        const bool found = q != nullptr && run_one(q);
        if (found) ran++;
        while (the.under_way > 0) the.changed.wait(lock);
        if (!found && draw_ready() == nullptr) break;
    }
    while (the.under_way > 0) the.changed.wait(lock);
    return ran;
}

static size_t pending_in(const queue *q) { return q->ops.size() + (q->busy ? 1 : 0); }

size_t cr_double_pending(void) {
    guard lock(the.mutex);
    size_t all = 0;
    for (const queue *q : the.queues) all += pending_in(q);
    return all;
}

/* NULL: there is no such stream. */
static const queue *queue_of(void *stream) {
    cudaError_t failure;
    thread_number();
    return find_queue((cudaStream_t)stream, &failure);
}
size_t cr_double_pending_in(void *stream) {
    guard lock(the.mutex);
    const queue *q = queue_of(stream);
    return q ? pending_in(q) : 0;
}
uint64_t cr_double_enqueued_in(void *stream) {
    guard lock(the.mutex);
    const queue *q = queue_of(stream);
    return q ? q->enqueued : 0;
}
uint64_t cr_double_launches_in(void *stream) {
    guard lock(the.mutex);
    const queue *q = queue_of(stream);
    return q ? q->launches : 0;
}

/* A kernel of a test; it is not counted as a launch. */
static int enqueue_kernel(const char *name, void *stream, std::function<bool(unsigned)> step) {
    entry here(name, CONTEXT);
    if (here.failure != cudaSuccess) return here.failure;
    cudaError_t failure;
    queue *q = find_queue((cudaStream_t)stream, &failure);
    if (q == nullptr) return here.give(failure);
    if (!is_here(q)) return here.give(cudaErrorInvalidResourceHandle);
    op what;
    what.step = std::move(step);
    return here.give(enqueue(q, std::move(what)));
}

int cr_double_slow_write(void *stream, void *to, const void *from, size_t bytes) {
    auto given = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
    return enqueue_kernel("cr_double_slow_write", stream, [to, given](unsigned turn) {
        const size_t all = given->size(), part = all / STEPS, at = turn * part, last = turn + 1 == STEPS;
        if (all) memcpy((char *)to + at, given->data() + at, last ? all - at : part);
        return last != 0;
    });
}

int cr_double_copy_kernel(void *stream, void *to, const void *from, size_t bytes) {
    return enqueue_kernel("cr_double_copy_kernel", stream, [to, from, bytes](unsigned) { return memmove(to, from, bytes), true; });
}

void cr_double_fail(const char *name, unsigned nth, int error) {
    guard lock(the.mutex);
    if (name == nullptr) the.faults.clear();
    else if (nth > 0) the.faults.push_back({name, nth, (cudaError_t)error});
}
unsigned cr_double_faults(void) {
    guard lock(the.mutex);
    return (unsigned)the.faults.size();
}
uint64_t cr_double_calls(const char *name) {
    guard lock(the.mutex);
    return the.calls[name];
}

void cr_double_break(int error) {
    guard lock(the.mutex);
    context *c = current_context();
    c->broken = (cudaError_t)error;
    drop_work(c);
}

int cr_double_reset(void) { return cudaDeviceReset(); }

void cr_double_foreign_context(bool foreign) {
    guard lock(the.mutex);
    const int device = mine.current ? mine.current->device : 0;
    mine.current = the.contexts[(size_t)device * 2 + (foreign ? 1 : 0)];
    activate(mine.current);
}

void cr_double_driver(int version) {
    guard lock(the.mutex);
    the.driver = version;
}
void cr_double_devices(int count) {
    guard lock(the.mutex);
    the.devices = count < 0 ? 0 : count > 2 ? 2 : count;
}
void cr_double_capability(int major, int minor) {
    guard lock(the.mutex);
    the.major = major;
    the.minor = minor;
}
void cr_double_ratio(int ratio) {
    guard lock(the.mutex);
    the.ratio = ratio;
}
void cr_double_free_at_once(bool at_once) {
    guard lock(the.mutex);
    the.free_at_once = at_once;
}
void cr_double_memory(uint64_t bytes) {
    guard lock(the.mutex);
    the.memory_limit = bytes;
}

void cr_double_count(cr_double_counts *counts) {
    guard lock(the.mutex);
    count_late_writes();
    *counts = the.counts;
}

uint64_t cr_double_device_bytes(void) {
    guard lock(the.mutex);
    uint64_t bytes = 0;
    for (const auto &[start, b] : the.blocks)
        if (b.type == cudaMemoryTypeDevice) bytes += b.bytes;
    return bytes;
}
