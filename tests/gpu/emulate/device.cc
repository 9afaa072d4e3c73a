/* device (emulated): the table of gpu.h over host memory, so that the GPU's tests run their cases without one. It is a very
 * small GPU, so that short arrays already take many blocks. The seed draws how small, because each of fewer blocks has more tiles.
 * Every fold is over when it returns.
 *
 * Thread: one. Owner: whoever opened; there is one device. */
#include <cstdlib>
#include <cstring>

extern "C" {
#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/pack/pack.h"
#include "kernels/cuda/pack/linger.h"
#include "kernels/cuda/plan/burst_float.h"
#include "kernels/cuda/gpu.h"
}

struct cr_gpu {
    cr_gpu_info info;
};

struct cr_gpu_stream {
    cr_gpu_state *state;
    cr_fold_slot *slots;
    cr_axis_room axis;
    cr_pack pack;
    uint64_t *words;
    cr_gpu_fold *folds;
    uint32_t *units;
};

enum { PACK_UNITS = 4096, PACK_MORE = 1 << 16 };

static cr_gpu the_gpu;

static uint32_t count(cr_error *) { return 1; }
static cr_status open(uint32_t, cr_gpu **gpu, cr_error *) {
    const char *seed = getenv("CURED_TEST_SEED");
    the_gpu.info.multiprocessors = 1 + (uint32_t)((seed ? strtoull(seed, nullptr, 0) : 2) % 3);
    *gpu = &the_gpu;
    return CR_OK;
}
static void close(cr_gpu *) {}
static const cr_gpu_info *info(const cr_gpu *gpu) { return &gpu->info; }
static bool lost(const cr_gpu *) { return false; }

static cr_status allocate(cr_gpu *, size_t bytes, void **memory, cr_error *) {
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *memory ? CR_OK : CR_RESOURCE_EXHAUSTED;
}
static void release(cr_gpu *, void *memory) { free(memory); }
static cr_status pin(cr_gpu *, void *, size_t, bool, cr_error *) { return CR_OK; }
static void unpin(cr_gpu *, void *) {}

static cr_status stream_open(cr_gpu *, uint32_t results, cr_gpu_stream **stream, cr_error *) {
    cr_gpu_stream *s = (cr_gpu_stream *)calloc(1, sizeof *s);
    s->state = (cr_gpu_state *)calloc(1, sizeof *s->state);
    s->slots = (cr_fold_slot *)calloc(results, sizeof *s->slots);
    s->words = (uint64_t *)calloc(cr_pack_words(PACK_UNITS, PACK_MORE), sizeof *s->words);
    s->folds = (cr_gpu_fold *)calloc(CR_GPU_PACK_FOLDS, sizeof *s->folds);
    s->units = (uint32_t *)calloc(CR_GPU_PACK_FOLDS, sizeof *s->units);
    cr_pack_init(&s->pack, s->words, PACK_UNITS, PACK_MORE);
    *stream = s;
    return CR_OK;
}
static void stream_close(cr_gpu_stream *s) {
    free(s->words);
    free(s->folds);
    free(s->units);
    free(s->state);
    free(s->slots);
    cr_axis_room_free(&s->axis);
    free(s);
}

static cr_status copy(cr_gpu_stream *, void *device, const void *host, size_t bytes, cr_error *) {
    memcpy(device, host, bytes);
    return CR_OK;
}

static cr_status fold(cr_gpu_stream *s, const cr_gpu_fold *folds, uint32_t number, uint32_t first, cr_error *error) {
    for (uint32_t i = 0; i < number; i++) {
        const cr_gpu_fold *f = &folds[i];
        cr_fold_slot *slot = &s->slots[first + i];
        cr_fold_args args = {};
        cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
        uint32_t launches = 0;
        cr_status status = cr_fold_launchers(f->dtype, f->families, f->wants, launchers, &launches, error);
        if (status != CR_OK) return status;
        cr_fold_prepare(&args, f->dtype, f->data, f->n, f->index, the_gpu.info.multiprocessors, s->state, slot);
        args.wary = f->n % 3 == 0; /* both answer the same */
        cr_partial_init(&slot->partial, f->dtype, f->families);
        if (f->wants) cr_partial_want(&slot->partial, f->wants);
        slot->partial.n = f->n;
        const bool awaited = cr_fold_await(&args, f->dtype, f->families);
        if (awaited && cr_fold_there(slot)) std::abort();
        for (uint32_t j = 0; f->n != 0 && j < launches; j++) launchers[j](&args, nullptr);
        if (awaited && !cr_fold_there(slot) && !cr_sum_in_limbs(&slot->sums[slot->awaited])) std::abort();
        cr_fold_result(slot, f->dtype, f->families, f->n);
    }
    return CR_OK;
}

static cr_status axis(cr_gpu_stream *s, const cr_gpu_axis *asked, cr_error *error) {
    cr_error wrong = {};
    cr_axis_ask(&s->axis, asked, the_gpu.info.multiprocessors, nullptr, &wrong);
    if (wrong.code != CR_OK) *error = wrong;
    return wrong.code;
}
static cr_status axis_result(cr_gpu_stream *s, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed, cr_error *error) {
    return cr_axis_answers(&s->axis, out, failed, error);
}

static cr_status fetch(cr_gpu_stream *, void *host, const void *device, size_t width, size_t pitch, size_t pieces, cr_error *) {
    for (size_t i = 0; i < pieces; i++) memcpy((char *)host + i * width, (const char *)device + i * pitch, width);
    return CR_OK;
}

/* A post is there before the block that is to stay begins; nobody comes after it. */
static cr_linger host;
static cr_linger_box box;

static void linger(cr_gpu *, uint64_t ns) { cr_linger_init(&host, &box, nullptr, ns); }

/* False: there is no room for it in a post. */
static bool posted(cr_pack *what) {
    if (host.box == nullptr) return false;
    const cr_linger_args args = {&box, host.linger_ns, host.number};
    box.gone = box.word[CR_LINGER_QUIT] = 0;
    host.running = true;
    const bool posts = cr_linger_post(&host, what);
    if (posts) cr_linger_launch(&args, nullptr);
    if (posts && !cr_linger_gone(&host)) std::abort();
    host.running = false;
    cr_linger_forget(&host, what);
    return posts;
}

static cr_status pack(cr_gpu_stream *s, const cr_gpu_fold *folds, uint32_t number, uint32_t first, uint32_t *taken, cr_error *) {
    if (first == 0) cr_pack_clear(&s->pack);
    for (*taken = 0; *taken < number && first < CR_GPU_PACK_FOLDS; ++*taken, first++) {
        s->folds[first] = folds[*taken];
        if (!cr_pack_add(&s->pack, &s->folds[first], &s->units[first])) break;
    }
    if (!posted(&s->pack)) cr_pack_start(&s->pack, nullptr);
    return cr_pack_done(&s->pack) ? CR_OK : CR_INTERNAL;
}
static void pack_result(const cr_gpu_stream *s, uint32_t number, cr_partial *p) {
    cr_pack_result(&s->pack, &s->folds[number], s->units[number], p);
}

static cr_status poll(cr_gpu_stream *, bool *idle, cr_error *) {
    *idle = true;
    return CR_OK;
}
static const cr_partial *result(const cr_gpu_stream *s, uint32_t number) { return &s->slots[number].partial; }

static cr_gpu_api table() {
    cr_gpu_api api = {};
    api.name = "emulated";
    api.count = count;
    api.open = open;
    api.close = close;
    api.info = info;
    api.lost = lost;
    api.host_alloc = api.device_alloc = allocate;
    api.host_free = api.device_free = release;
    api.pin = pin;
    api.unpin = unpin;
    api.stream_open = stream_open;
    api.stream_close = stream_close;
    api.copy = copy;
    api.fold = fold;
    api.axis_takes = cr_axis_takes;
    api.axis = axis;
    api.axis_result = axis_result;
    api.fetch = fetch;
    api.poll = poll;
    api.result = result;
    api.pack = pack;
    api.pack_result = pack_result;
    api.linger = linger;
    return api;
}

extern "C" const cr_gpu_api cr_cuda = table();
