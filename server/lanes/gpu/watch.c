/* watch: notices a call of the driver that does not return. The lane's thread makes its calls through a table that
 * notes when each began. The loop looks at the note, and takes the lane from a thread that has been in one call for
 * too long. Should that call return after all, the thread finds the lane taken and stops there for good. It touches
 * nothing of the lane again.
 *
 *   0: between calls ──► when the call began ──► 0
 *                                             └► TAKEN, by the loop
 *
 * Thread: the wrappers on the lane's; cr_gpu_watch_take on the loop's. Owner: the lane, which is never freed once it
 * is taken. */
#include <assert.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/lanes/gpu/internal.h"

#define TAKEN UINT64_MAX

enum { KERNEL_NS_A_BYTE = 100 }; /* a kernel asked for by name may teach how slow one can be */

static _Thread_local cr_gpu_lane *here;

static const cr_gpu_api *enter(uint64_t more_ns) {
    uint64_t between = 0;
    assert(here && !here->silent);
    if (!atomic_compare_exchange_strong(&here->call_ns, &between, cr_now_ns() + more_ns))
        for (;;) pause();
    return here->options.gpu;
}

static void leave(void) {
    uint64_t began = atomic_load(&here->call_ns);
    if (began == TAKEN || !atomic_compare_exchange_strong(&here->call_ns, &began, 0))
        for (;;) pause();
}

#define WATCHED(call)                 \
    const cr_gpu_api *api = enter(0); \
    cr_status status = api->call;     \
    leave();                          \
    return status

#define WATCHED_VOID(call)            \
    const cr_gpu_api *api = enter(0); \
    api->call;                        \
    leave()

static cr_status host_alloc(cr_gpu *g, size_t n, void **m, cr_error *e) { WATCHED(host_alloc(g, n, m, e)); }
static void host_free(cr_gpu *g, void *m) { WATCHED_VOID(host_free(g, m)); }
static cr_status pin(cr_gpu *g, void *m, size_t n, bool read, cr_error *e) { WATCHED(pin(g, m, n, read, e)); }
static void unpin(cr_gpu *g, void *m) { WATCHED_VOID(unpin(g, m)); }
static cr_status device_alloc(cr_gpu *g, size_t n, void **d, cr_error *e) { WATCHED(device_alloc(g, n, d, e)); }
static void device_free(cr_gpu *g, void *d) { WATCHED_VOID(device_free(g, d)); }
static cr_status stream_open(cr_gpu *g, uint32_t n, cr_gpu_stream **s, cr_error *e) {
    WATCHED(stream_open(g, n, s, e));
}
static void stream_close(cr_gpu_stream *s) { WATCHED_VOID(stream_close(s)); }
static cr_status copy(cr_gpu_stream *s, void *d, const void *h, size_t n, cr_error *e) { WATCHED(copy(s, d, h, n, e)); }
static cr_status copies(cr_gpu_stream *s, const cr_gpu_copy *c, uint32_t n, cr_error *e) {
    WATCHED(copies(s, c, n, e));
}
static cr_status fold(cr_gpu_stream *s, const cr_gpu_fold *f, uint32_t n, uint32_t first, cr_error *e) {
    WATCHED(fold(s, f, n, first, e));
}
static cr_status pack(cr_gpu_stream *s, const cr_gpu_fold *f, uint32_t n, uint32_t first, uint32_t *taken,
                      cr_error *e) {
    WATCHED(pack(s, f, n, first, taken, e));
}
static cr_status poll_stream(cr_gpu_stream *s, bool *idle, cr_error *e) { WATCHED(poll(s, idle, e)); }
static cr_status import(cr_gpu *g, const void *h, int fd, size_t n, bool writable, void **d, cr_error *e) {
    WATCHED(import(g, h, fd, n, writable, d, e));
}
static cr_status axis(cr_gpu_stream *s, const cr_gpu_axis *a, cr_error *e) { WATCHED(axis(s, a, e)); }
static void axis_trim(cr_gpu_stream *s, size_t most) { WATCHED_VOID(axis_trim(s, most)); }
static cr_status fetch(cr_gpu_stream *s, void *h, const void *d, size_t width, size_t pitch, size_t count,
                       cr_error *e) {
    WATCHED(fetch(s, h, d, width, pitch, count, e));
}
static cr_status put(cr_gpu_stream *s, void *d, const void *h, size_t n, cr_error *e) { WATCHED(put(s, d, h, n, e)); }
static void release(cr_gpu *g, void *d) { WATCHED_VOID(release(g, d)); }
static cr_status event_open(cr_gpu *g, const void *h, void **v, cr_error *e) { WATCHED(event_open(g, h, v, e)); }
static cr_status event_look(cr_gpu *g, void *v, bool *fired, cr_error *e) { WATCHED(event_look(g, v, fired, e)); }
static void event_close(cr_gpu *g, void *v) { WATCHED_VOID(event_close(g, v)); }

static cr_status kernel(cr_gpu_stream *s, const char *name, cr_op op, const cr_gpu_fold *in, cr_value *value,
                        bool *exact, cr_error *e) {
    const cr_gpu_api *api = enter(in->n * cr_dtype_size(in->dtype) * KERNEL_NS_A_BYTE);
    cr_status status = api->kernel(s, name, op, in, value, exact, e);
    leave();
    return status;
}

bool cr_gpu_between_calls(const cr_gpu_lane *lane) {
    const uint64_t began = atomic_load(&lane->call_ns);
    return began == 0 || began == TAKEN;
}

void cr_gpu_watch_begin(cr_gpu_lane *lane) { here = lane; }

void cr_gpu_watch_table(const cr_gpu_api *api, cr_gpu_api *watched) {
    *watched = *api; /* open is not watched: nobody is served yet; nor are those that only look */
    watched->host_alloc = host_alloc;
    watched->host_free = host_free;
    watched->pin = pin;
    watched->unpin = unpin;
    watched->device_alloc = device_alloc;
    watched->device_free = device_free;
    watched->stream_open = stream_open;
    watched->stream_close = stream_close;
    watched->copy = copy;
    watched->copies = copies;
    watched->fold = fold;
    watched->pack = pack;
    watched->axis = axis;
    watched->axis_trim = axis_trim;
    watched->fetch = fetch;
    watched->put = put;
    watched->poll = poll_stream;
    watched->kernel = kernel;
    watched->import = import;
    watched->release = release;
    watched->event_open = event_open;
    watched->event_look = event_look;
    watched->event_close = event_close;
}

bool cr_gpu_watch_take(cr_gpu_lane *lane) {
    uint64_t began = atomic_load(&lane->call_ns), now = cr_now_ns(), limit = lane->options.timeout_ms * 1000000;
    if (began == 0 || began == TAKEN || now < began || now - began <= limit) return false;
    return atomic_compare_exchange_strong(&lane->call_ns, &began, TAKEN);
}
