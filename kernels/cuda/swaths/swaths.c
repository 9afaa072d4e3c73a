/* swaths: how an array is cut into swaths, and what is asked of each (swaths.h).
 *
 * A swath is some blocks of the axis' outer indices; of a block that is too large, outputs that lie side by side.
 * Thread: any; nothing here holds state. */
#include "kernels/cuda/swaths/swaths.h"

#include <cuda_runtime_api.h>

#include "kernels/core/fast.h"
#include "kernels/core/round.h"

/* Bytes of a swath: the L2 cache holds it beside what passes through. Tests have smaller ones. */
#if !defined(CR_SWATH_LOG2)
#define CR_SWATH_LOG2 25
#endif
/* Bytes from which swaths are quicker than cells. */
#if !defined(CR_SWATHS_LEAST)
#define CR_SWATHS_LEAST (1 << 22)
#endif
enum {
    ALIGN = 256,
    GRAIN = 32,       /* bytes of a line that are read together, at least */
    HIDE_BLOCKS = 4,  /* on a multiprocessor */
    HIDE_VECTORS = 4, /* of a thread, about */
};

/* What a swath has: of outer indices so many, and of their outputs. */
typedef struct swath {
    uint64_t blocks, width;
} swath;

static uint64_t size_of(const cr_gpu_keys *k) { return cr_dtype_size(k->axis.dtype); }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* No width: a swath holds too little. */
static swath swath_of(const cr_gpu_keys *k) {
    const uint64_t all = (uint64_t)1 << CR_SWATH_LOG2, line = k->by.n * size_of(k);
    swath cut = {1, 0};
    if (line == 0 || line > all || k->by.outer == 0) return cut;
    if (k->by.inner <= all / line) {
        cut.width = k->by.inner;
        cut.blocks = least(k->by.outer, all / (line * cut.width));
    } else {
        cut.width = all / line / (GRAIN / size_of(k)) * (GRAIN / size_of(k));
    }
    return cut;
}

/* ---- What is taken ---- */

static bool has_swaths(const cr_gpu_keys *k) {
    return k->mask.kind != CR_MASK_NONE && k->keys.dtype == CR_DTYPE_NONE && k->offsets.dtype == CR_DTYPE_NONE &&
           swath_of(k).width != 0 && cr_shape_answers(&k->by) <= UINT32_MAX;
}

/* A swath is reduced along the whole axis. */
static cr_gpu_axis axis_of(const cr_gpu_keys *k, swath cut) {
    cr_gpu_axis axis = k->axis;
    axis.shape = (cr_shape){cut.blocks, k->by.n, cut.width};
    axis.to = NULL;
    return axis;
}

/* Where extrema lie, cells know. The blocks of a product of floats go by the places of those that count. */
static bool has_fill(const cr_gpu_keys *k, cr_op op) {
    switch (cr_op_closing(op)) {
        case CR_CLOSING_SUMS:
        case CR_CLOSING_COUNTS:
        case CR_CLOSING_BITS:
            return true;
        case CR_CLOSING_PRODUCT:
            return cr_dtype_kind(k->axis.dtype) != CR_KIND_FLOAT;
        case CR_CLOSING_EXTREMA:
            return cr_op_term(op) == CR_TERM_LEAST || cr_op_term(op) == CR_TERM_GREATEST ||
                   cr_op_term(op) == CR_TERM_GREATEST_MAGNITUDE;
        case CR_CLOSING_DIGEST:
        case CR_CLOSING_ORDER:
            break;
    }
    return false;
}

bool cr_swaths_takes(const cr_gpu_keys *k, cr_op op) {
    if (!has_swaths(k) || !has_fill(k, op)) return false;
    cr_gpu_axis axis = axis_of(k, swath_of(k));
    axis.ops = &op;
    axis.op_count = 1;
    return cr_axis_takes(&axis);
}

/* Measured on an H200. To read columns by a few, and to count what counts, costs more than cells do but of short types. */
bool cr_swaths_pays(const cr_gpu_keys *k, cr_op op) {
    const uint64_t size = size_of(k);
    const bool is_float = cr_dtype_kind(k->axis.dtype) == CR_KIND_FLOAT;
    if (!cr_fast_on(CR_FAST_GPU_SWATHS) || k->axis.shape.n < CR_SWATHS_LEAST / size) return false;
    if (cr_op_closing(op) == CR_CLOSING_EXTREMA) return size < 8;
    return size < 4 || (swath_of(k).width == k->by.inner && (!cr_masked_needs_count(op) || (size == 4 && is_float)));
}

/* ---- The state ---- */

typedef struct places {
    uint64_t kept, counts, scratch, all; /* of which the swath itself is at 0 */
} places;

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* The scratch of a swath, of its elements and of its bytes. */
static uint64_t scratch_of(const cr_gpu_keys *k, swath cut, uint32_t multiprocessors) {
    const cr_gpu_axis axis = axis_of(k, cut);
    cr_axis_launch at, kept;
    cr_axis_launch_make(&at, 0, &axis.shape, axis.dtype, cr_axis_is_variance(&axis), multiprocessors);
    cr_axis_launch_make(&kept, 0, &axis.shape, CR_U8, false, multiprocessors);
    return at.scratch_bytes > kept.scratch_bytes ? at.scratch_bytes : kept.scratch_bytes;
}

static places places_of(const cr_gpu_keys *k, swath cut, uint32_t multiprocessors) {
    const swath last = {k->by.outer % cut.blocks, k->by.inner % cut.width};
    uint64_t most = 0;
    places p;
    for (uint32_t i = 0; i < 4; i++) { /* fewer outputs may be cut among more blocks of threads */
        const swath one = {i & 1 ? last.blocks : cut.blocks, i & 2 ? last.width : cut.width};
        const uint64_t bytes = one.blocks != 0 && one.width != 0 ? scratch_of(k, one, multiprocessors) : 0;
        if (bytes > most) most = bytes;
    }
    p.kept = aligned(cut.blocks * k->by.n * cut.width * size_of(k));
    p.counts = p.kept + aligned(cut.blocks * k->by.n * cut.width);
    p.scratch = p.counts + aligned(cut.blocks * cut.width * sizeof(uint64_t));
    p.all = p.scratch + most;
    return p;
}

uint64_t cr_swaths_state(const cr_gpu_keys *k, uint32_t multiprocessors) {
    return places_of(k, swath_of(k), multiprocessors).all;
}

/* ---- The launches ---- */

/* The ops that agree about the fill. */
typedef struct asked {
    const cr_gpu_keys *keys;
    cr_gpu_axis axis;
    cr_op ops[CR_GPU_AXIS_OPS];
    void *to[CR_GPU_AXIS_OPS];
    uint64_t fill;
    bool counted; /* an answer depends on how many elements count */
    bool follows; /* a swath was before this one */
    uint8_t *state;
    places at;
    uint32_t multiprocessors;
    unsigned long long *wrong;
    void *stream;
} asked;

static uint64_t result_size(const cr_gpu_axis *axis, uint32_t i) {
    return cr_dtype_size((cr_dtype)cr_axis_out_of(axis, i, NULL).result);
}

/* The swath of `blocks` outer indices from `outer` on, and of `width` outputs of each from `inner` on. */
static int hide(const asked *a, uint64_t outer, uint64_t blocks, uint64_t inner, uint64_t width) {
    const cr_gpu_keys *k = a->keys;
    const uint64_t size = size_of(k), lanes = CR_GPU_VECTOR / size;
    cr_hide_args args = {.data = k->axis.data,
                         .to = a->state,
                         .kept = a->counted ? a->state + a->at.kept : NULL,
                         .mask = k->mask,
                         .first = outer * k->by.n * k->by.inner + inner,
                         .lines = width == k->by.inner ? 1 : blocks * k->by.n,
                         .line = width == k->by.inner ? blocks * k->by.n * width : width,
                         .stride = k->by.inner,
                         .fill = a->fill,
                         .size = (uint32_t)size,
                         .follows = a->follows};
    const uint64_t elements = args.lines * args.line, most = (uint64_t)a->multiprocessors * HIDE_BLOCKS;
    args.vectors = ((uintptr_t)args.data + args.first * size) % CR_GPU_VECTOR == 0 &&
                   (args.lines == 1 || (args.line % lanes == 0 && args.stride % lanes == 0));
    const uint64_t each = (args.vectors ? lanes * HIDE_VECTORS : HIDE_VECTORS) * CR_GPU_THREADS;
    args.blocks = (uint32_t)least((elements + each - 1) / each, most);
    return cr_hide_launch(&args, a->stream);
}

static int put(asked *a, uint64_t outer, uint64_t blocks, uint64_t inner, uint64_t width) {
    const uint64_t first = outer * a->keys->by.inner + inner;
    uint64_t *counts = (uint64_t *)(void *)(a->state + a->at.counts);
    uint8_t *scratch = a->state + a->at.scratch;
    const cr_axis_counted counted = {.counts = a->counted ? counts : NULL, .first = (uint32_t)first};
    cr_gpu_axis axis = a->axis;
    void *out[CR_GPU_AXIS_OPS];
    axis.data = a->state;
    axis.shape = (cr_shape){blocks, a->keys->by.n, width};
    for (uint32_t i = 0; i < axis.op_count; i++) out[i] = (uint8_t *)a->to[i] + first * result_size(&axis, i);
    int failure = hide(a, outer, blocks, inner, width);
    if (failure == 0 && a->counted)
        failure =
            cr_axis_enqueue_kept(a->state + a->at.kept, &axis.shape, a->multiprocessors, counts, scratch, a->stream);
    if (failure == 0)
        failure = cr_axis_enqueue_counted(&axis, &counted, a->multiprocessors, out, scratch,
                                          (cr_axis_failure *)(void *)a->wrong, a->stream);
    a->follows = true;
    return failure;
}

static int put_all(asked *a, swath cut) {
    const cr_shape *by = &a->keys->by;
    int failure = 0;
    for (uint64_t outer = 0; outer < by->outer; outer += cut.blocks)
        for (uint64_t inner = 0; inner < by->inner && failure == 0; inner += cut.width)
            failure = put(a, outer, least(cut.blocks, by->outer - outer), inner, least(cut.width, by->inner - inner));
    return failure;
}

int cr_swaths_enqueue(const cr_gpu_keys *k, uint32_t multiprocessors, void *const *out, uint8_t *state,
                      unsigned long long *wrong, void *stream) {
    const swath cut = swath_of(k);
    asked a = {.keys = k,
               .axis = k->axis,
               .at = places_of(k, cut, multiprocessors),
               .state = state,
               .multiprocessors = multiprocessors,
               .wrong = wrong,
               .stream = stream};
    uint64_t done = 0;
    int failure = (int)cudaMemsetAsync(state + a.at.scratch, 0, sizeof(cr_axis_head), stream);
    for (uint32_t i = 0; i < k->axis.op_count && failure == 0; i++) {
        if (done >> i & 1) continue;
        a.fill = cr_fill_of(k, k->axis.ops[i]);
        done |= cr_fill_ask(k, i, done, out, &a.axis, a.ops, a.to);
        a.counted = cr_masked_any_needs_count(&a.axis);
        failure = put_all(&a, cut);
        if (failure == 0) failure = cr_fill_report_lacks(k, &a.axis, a.to, a.fill, multiprocessors, wrong, stream);
    }
    return failure;
}
