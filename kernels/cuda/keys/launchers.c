/* launchers: how a reduction by key is laid over a GPU, and which planes its ops, or its partial, need.
 *
 * Thread: any; nothing here holds state. */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/core/round.h"
#include "kernels/cuda/keys/keys.h"

enum {
    PASSES = 8,
    HEADS = 2,        /* of a state: of sums, and of squares beside them */
    ELEMENTS = 4096,  /* of a block, at least */
    PLACES = 2,       /* planes behind those of extrema: the first element that is the greatest, and the least */
    FEW = 4,          /* of a group, on average, where it has a place in shared memory */
    TOP_OF_FOUR = 31, /* bits, so that a window of four digits has 127 */
    EVERY_DIGIT = 7,  /* of bits */
};

enum { MOMENTS = CR_FAM_SUM | CR_FAM_SUMSQ };

/* One launch of the fold, or two, and what is answered from it. */
typedef struct pass {
    uint32_t family; /* of the sum; 0: counts alone; MOMENTS: both sums */
    bool counts;     /* ops that only count are answered, too */
} pass;

static const cr_keys_planes NO_PLANES = {.count = CR_KEYS_NONE,
                                         .nonzero = CR_KEYS_NONE,
                                         .special = CR_KEYS_NONE,
                                         .window = CR_KEYS_NONE,
                                         .limbs = CR_KEYS_NONE};

static uint32_t needs_of(const cr_gpu_axis *axis, uint32_t k) { return cr_op_needs(axis->ops[k], axis->dtype); }
static bool is_count(const cr_gpu_axis *axis, uint32_t k) { return cr_op_closing(axis->ops[k]) == CR_CLOSING_COUNTS; }
static bool is_digest(const cr_gpu_axis *axis, uint32_t k) { return cr_op_closing(axis->ops[k]) == CR_CLOSING_DIGEST; }
static bool is_float(cr_dtype dtype) { return cr_dtype_kind(dtype) == CR_KIND_FLOAT; }
static bool is_summed(cr_dtype dtype) {
    return dtype == CR_F16 || dtype == CR_BF16 || dtype == CR_F32 || dtype == CR_F64;
}

/* Digits of a window. */
static int32_t digits_of(cr_dtype dtype, uint32_t family) {
    const size_t size = cr_dtype_size(dtype);
    if (family == 0) return 0;
    if (family == CR_FAM_EXTREMA || family == CR_FAM_PROD) return 2;
    if (family == CR_FAM_BITS) return 3;
    if (family == CR_FAM_SUMSQ) return size == 8 ? 4 : size == 4 ? 2 : 1;
    return size == 8 ? 2 : 1;
}

static bool answers(const cr_gpu_axis *axis, uint32_t k, pass p) {
    return is_count(axis, k) ? p.counts : needs_of(axis, k) != 0 && (needs_of(axis, k) & ~p.family) == 0;
}

static void add_sum(cr_keys_planes *at, cr_dtype dtype, uint32_t family) {
    at->window = at->all;
    at->limbs = at->window + digits_of(dtype, family);
    if (is_float(dtype) && family != CR_FAM_EXTREMA) at->limb_count = (int32_t)cr_sum_limbs(cr_sum_of(family), dtype);
    at->all = at->limbs + at->limb_count;
}

/* The planes of squares, behind those of sums, which have the counts. */
static cr_keys_planes squares_behind(const cr_keys_planes *sums, cr_dtype dtype) {
    cr_keys_planes at = NO_PLANES;
    at.all = sums->all;
    add_sum(&at, dtype, CR_FAM_SUMSQ);
    return at;
}

/* Which elements are sought: bit 0: the greatest of each group, bit 1: the least. */
static uint32_t places_of(const cr_gpu_axis *axis) {
    uint32_t wants = 0;
    for (uint32_t k = 0; k < axis->op_count; k++) {
        wants |= cr_op_term(axis->ops[k]) == CR_TERM_GREATEST_INDEX ? 1 : 0;
        wants |= cr_op_term(axis->ops[k]) == CR_TERM_LEAST_INDEX ? 2 : 0;
    }
    return wants;
}

/* The digits of bits that answers need. */
static uint32_t bits_of(const cr_gpu_axis *axis) {
    uint32_t wants = 0;
    for (uint32_t k = 0; k < axis->op_count; k++) {
        const cr_term term = cr_op_term(axis->ops[k]);
        wants |= term == CR_TERM_BITS_OR ? 1 : term == CR_TERM_BITS_AND ? 2 : term == CR_TERM_BITS_XOR ? 4 : 0;
    }
    return wants;
}

/* Elements of a type that are no number have planes wherever an op may ask for them. */
static cr_keys_planes planes_with(cr_dtype dtype, uint32_t family, bool count, bool nonzero) {
    cr_keys_planes at = NO_PLANES;
    if (count) at.count = at.all++;
    if (nonzero) at.nonzero = at.all++;
    at.counts = at.all;
    if (is_float(dtype)) {
        at.special = at.all;
        at.all += CR_KEYS_SPECIAL_PLANES;
    }
    if (family != 0) add_sum(&at, dtype, family);
    return at;
}

static cr_keys_planes planes_of(const cr_gpu_axis *axis, pass p) {
    bool count = false, nonzero = false;
    for (uint32_t k = 0; k < axis->op_count; k++) {
        const cr_term term = cr_op_term(axis->ops[k]);
        if (!answers(axis, k, p)) continue;
        count |= is_count(axis, k) ? term == CR_TERM_ELEMENTS || term == CR_TERM_EVERY
                                   : cr_op_divisor(axis->ops[k]) != CR_DIVISOR_ONE || p.family == CR_FAM_EXTREMA;
        nonzero |= term == CR_TERM_NONZERO || term == CR_TERM_SOME || term == CR_TERM_EVERY;
    }
    cr_keys_planes at = planes_with(axis->dtype, p.family == MOMENTS ? CR_FAM_SUM : p.family, count, nonzero);
    if (p.family == CR_FAM_EXTREMA && places_of(axis) != 0) at.all += PLACES;
    return at;
}

/* The passes that the ops need; digests have kernels of their own. */
static uint32_t passes_of(const cr_gpu_axis *axis, pass passes[PASSES]) {
    uint32_t families = 0, count = 0;
    bool counts = false, spread = false;
    for (uint32_t k = 0; k < axis->op_count; k++) {
        counts |= is_count(axis, k);
        spread |= cr_op_term(axis->ops[k]) == CR_TERM_SPREAD;
        if (!is_count(axis, k) && !is_digest(axis, k)) families |= needs_of(axis, k);
    }
    if (spread) passes[count++] = (pass){MOMENTS, false};
    if (spread) families &= ~(uint32_t)MOMENTS;
    for (uint32_t family = 1; family <= families; family *= 2)
        if (families & family) passes[count++] = (pass){family, false};
    if (counts && count == 0) passes[count++] = (pass){0, false};
    if (counts) passes[0].counts = true;
    return count;
}

/* Planes of the pass that has the most. */
static uint64_t most_planes(const cr_gpu_axis *axis) {
    pass passes[PASSES];
    int32_t most = 0;
    const uint32_t count = passes_of(axis, passes);
    for (uint32_t i = 0; i < count; i++) {
        cr_keys_planes at = planes_of(axis, passes[i]);
        if (passes[i].family == MOMENTS) at = squares_behind(&at, axis->dtype);
        if (at.all > most) most = at.all;
    }
    return (uint64_t)most;
}

static uint64_t state_of(uint64_t planes, uint64_t cells) {
    return HEADS * sizeof(cr_keys_head) + planes * cells * sizeof(unsigned long long);
}

uint64_t cr_keys_gpu_state(const cr_gpu_keys *keys) {
    return state_of(most_planes(&keys->axis), cr_keys_answers(&keys->keys));
}

/* ---- What is taken ---- */

static bool is_word(const cr_gpu_axis *axis, uint32_t k) {
    const cr_finish_opts own = cr_finish_share(axis->ops[k], axis->dtype, &axis->finish, NULL);
    const cr_dtype result = cr_axis_dtype(axis->ops[k], axis->dtype, &own);
    return result == CR_I64 || result == CR_U64;
}

static bool takes_op(const cr_gpu_axis *axis, uint32_t k) {
    const cr_finish_opts own = cr_finish_share(axis->ops[k], axis->dtype, &axis->finish, NULL);
    const uint32_t needs = needs_of(axis, k);
    if (is_count(axis, k)) return !is_float(axis->dtype) || is_summed(axis->dtype);
    if (cr_op_closing(axis->ops[k]) == CR_CLOSING_EXTREMA) return !is_float(axis->dtype) || is_summed(axis->dtype);
    if (cr_op_closing(axis->ops[k]) == CR_CLOSING_BITS) return !is_float(axis->dtype);
    if (cr_op_closing(axis->ops[k]) == CR_CLOSING_PRODUCT) return !is_float(axis->dtype) && is_word(axis, k);
    if (cr_op_closing(axis->ops[k]) != CR_CLOSING_SUMS) return false;
    if (!is_float(axis->dtype)) return needs == CR_FAM_SUM || needs == CR_FAM_SUMABS;
    return is_summed(axis->dtype) && is_float(cr_axis_dtype(axis->ops[k], axis->dtype, &own)) &&
           (needs == CR_FAM_SUM || needs == CR_FAM_SUMABS || needs == CR_FAM_SUMSQ ||
            cr_op_term(axis->ops[k]) == CR_TERM_SPREAD);
}

/* How the elements come to their groups, for a sentence. */
static const char *way_of(const cr_gpu_keys *keys) {
    return keys->offsets.dtype != CR_DTYPE_NONE ? "by offsets"
           : keys->keys.dtype != CR_DTYPE_NONE  ? "by key"
                                                : "under a mask or along an axis";
}

/* The states of all cells, so many bytes each beside the heads. */
static cr_status check_state(const cr_gpu_keys *keys, uint64_t each, uint64_t heads, cr_error *error) {
    const uint64_t most = (uint64_t)1 << CR_KEYS_STATE_LOG2, cells = cr_keys_answers(&keys->keys);
    if (each == 0 || cells <= (most - heads) / each) return CR_OK;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "groups: the states of %" PRIu64 " groups of %" PRIu64 " columns, %" PRIu64
                   " bytes each, take more than %" PRIu64
                   " bytes, the limit; reduce some groups at a time (drop leaves the others out)",
                   keys->keys.groups, keys->keys.columns, each, most);
}

static cr_status takes(const cr_gpu_keys *keys, cr_error *error) {
    const cr_gpu_axis *axis = &keys->axis;
    bool cells = axis->op_count == 0; /* an op goes by them */
    for (uint32_t k = 0; k < axis->op_count; k++) {
        if (is_digest(axis, k)) continue; /* there is none by key or under a mask */
        cells = true;
        if (!takes_op(axis, k))
            return cr_fail(error, CR_UNIMPLEMENTED,
                           "ops: the GPU has no kernel for %s of %s %s; it has sums, norm1, extrema, indices and "
                           "counts of f16, bf16, f32, f64 and integers, squares of these floats, bits and prod of "
                           "integers: reduce a copy in host memory",
                           cr_op_name(axis->ops[k]), cr_dtype_name(axis->dtype), way_of(keys));
    }
    if (!cells || axis->shape.n >> CR_KEYS_MOST_LOG2 == 0) return CR_OK;
    return cr_fail(error, CR_UNIMPLEMENTED,
                   "array: in device memory fewer than 2^%d elements are reduced %s at once, these are %" PRIu64
                   ": reduce parts, or a copy in host memory",
                   CR_KEYS_MOST_LOG2, way_of(keys), axis->shape.n);
}

cr_status cr_keys_gpu_takes(const cr_gpu_keys *keys, cr_error *error) {
    const uint64_t heads = HEADS * sizeof(cr_keys_head);
    const cr_status status = takes(keys, error);
    return status == CR_OK ? check_state(keys, sizeof(unsigned long long) * most_planes(&keys->axis), heads, error)
                           : status;
}

/* ---- The launches ---- */

/* The least power of two that n is not above. */
static uint32_t log2_of(uint64_t n) {
    uint32_t bits = 0;
    while ((uint64_t)1 << bits < n) bits++;
    return bits;
}

/* As many copies of so many words as `bytes` hold, and as a block's elements are worth; 0: not one. */
static uint32_t copies_in(uint64_t words, uint64_t bytes, uint64_t elements) {
    uint32_t copies = CR_KEYS_COPIES;
    while (copies != 0 && (words * copies * sizeof(uint32_t) > bytes || words * copies > elements)) copies /= 2;
    return copies;
}

/* The window's width, and what a block has in shared memory: limbs of few groups have a half of it at most. */
static void share(cr_keys_args *args) {
    const uint32_t room = 63 - log2_of(args->n); /* so that no sum of digits overflows */
    const uint64_t digits = args->kind != CR_KEYS_COUNTS ? (uint64_t)(args->at.limbs - args->at.window) : 0;
    const uint64_t words = (2 * digits + (uint64_t)args->at.counts) * args->groups;
    const uint64_t limbs = digits != 0 ? 2 * (uint64_t)args->at.limb_count * args->groups : 0;
    args->top = room < CR_KEYS_TOP ? room : CR_KEYS_TOP;
    if (digits == 4 && args->top > TOP_OF_FOUR) args->top = TOP_OF_FOUR;
    args->copies = args->limb_copies = 0;
    if (words == 0 || args->n < (uint64_t)args->groups * FEW) return;
    args->limb_copies = limbs != 0 ? copies_in(limbs, CR_KEYS_SHARED / 2, args->per_block) : 0;
    const uint64_t taken = limbs * args->limb_copies * sizeof(uint32_t);
    args->copies = copies_in(words, CR_KEYS_SHARED - taken, UINT64_MAX);
    while (args->copies > 1 && words * args->copies > args->per_block) args->copies /= 2;
    if (args->copies == 0) args->limb_copies = 0;
}

/* What says of which group an element is. */
static void find_source(cr_keys_args *args, const cr_gpu_keys *k) {
    const bool by_offsets = k->offsets.dtype != CR_DTYPE_NONE;
    const cr_dtype dtype = by_offsets ? k->offsets.dtype : k->keys.dtype;
    args->keys = by_offsets ? k->offsets.data : k->keys.data;
    args->mask = k->mask;
    args->source = CR_KEYS_AXIS;
    args->inner = (uint32_t)k->by.inner;
    args->span = (uint32_t)(k->by.n * k->by.inner);
    if (dtype == CR_DTYPE_NONE) return;
    args->key_size = (uint32_t)cr_dtype_size(dtype);
    args->key_sign = cr_dtype_kind(dtype) == CR_KIND_SINT;
    const bool quick = args->key_size >= 4 && args->columns == 1 && args->mask.kind == CR_MASK_NONE;
    args->source = by_offsets ? CR_KEYS_OFFSETS : quick ? CR_KEYS_GIVEN : CR_KEYS_ANY;
}

static uint32_t kind_of(uint32_t family) {
    return family == 0                ? CR_KEYS_COUNTS
           : family == CR_FAM_EXTREMA ? CR_KEYS_EXTREME
           : family == CR_FAM_SUMSQ   ? CR_KEYS_SQUARE
           : family == CR_FAM_BITS    ? CR_KEYS_BITS
           : family == CR_FAM_PROD    ? CR_KEYS_PRODUCT
                                      : CR_KEYS_SUM;
}

static bool is_joined(const cr_keys_args *args) { return args->kind > CR_KEYS_EXTREME; }

static void lay_out(cr_keys_args *args, const cr_gpu_keys *k, uint32_t multiprocessors, uint32_t family,
                    const cr_keys_planes *at, uint8_t *state) {
    const uint64_t n = k->axis.shape.n, most = (uint64_t)(multiprocessors ? multiprocessors : 1) * CR_KEYS_BLOCKS;
    memset(args, 0, sizeof *args);
    args->data = k->axis.data;
    args->head = (cr_keys_head *)(void *)state;
    args->planes = (unsigned long long *)(void *)(args->head + HEADS);
    args->n = n;
    args->groups = (uint32_t)cr_keys_answers(&k->keys);
    args->keys_below = (uint32_t)k->keys.groups;
    args->columns = (uint32_t)k->keys.columns;
    args->is_float = is_float(k->axis.dtype);
    args->is_signed = cr_dtype_kind(k->axis.dtype) == CR_KIND_SINT;
    find_source(args, k);
    args->odd = (uintptr_t)k->axis.data % cr_dtype_size(k->axis.dtype) != 0;
    args->drop = k->keys.drop;
    args->absolute = family == CR_FAM_SUMABS;
    args->dtype = (uint32_t)k->axis.dtype;
    args->size = (uint32_t)cr_dtype_size(k->axis.dtype);
    args->kind = kind_of(family);
    args->wraps = k->axis.finish.overflow == CR_OVERFLOW_WRAP;
    args->wants = bits_of(&k->axis);
    args->at = *at;
    const uint64_t pieces = n / ELEMENTS + (n % ELEMENTS != 0), blocks = pieces < most ? pieces : most;
    args->per_block = blocks != 0 ? (pieces + blocks - 1) / blocks * ELEMENTS : 0;
    args->blocks = args->per_block != 0 ? (uint32_t)((n + args->per_block - 1) / args->per_block) : 0;
    share(args);
}

/* The answers of a pass, some at a time. */
static int answer(const cr_keys_args *fold, const cr_keys_planes *squares, const cr_gpu_keys *keys, pass p,
                  void *const *out, unsigned long long *wrong, void *stream) {
    int (*const close)(const cr_keys_close_args *, void *) = fold->kind == CR_KEYS_EXTREME
                                                                 ? cr_keys_launch_close_extrema
                                                             : is_joined(fold) ? cr_keys_launch_close_joined
                                                                               : cr_keys_launch_close;
    const cr_gpu_axis *axis = &keys->axis;
    cr_keys_close_args args = {.fold = *fold, .squares = *squares, .wrong = wrong};
    cr_axis_args *to = &args.axis;
    int failure = 0;
    to->failure = (cr_axis_failure *)(void *)wrong;
    to->ddof = axis->finish.ddof;
    to->skip = axis->finish.nan == CR_NAN_SKIP;
    to->wrap = fold->wraps;
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++) {
        if (answers(axis, k, p)) to->out[to->out_count++] = cr_axis_out_of(axis, k, out[k]);
        if (to->out_count < CR_AXIS_OUTS && k + 1 < axis->op_count) continue;
        failure = close(&args, stream);
        to->out_count = 0;
    }
    return failure;
}

static int fold(const cr_keys_args *args, void *stream) {
    int failure = 0;
    if (args->n == 0 || (args->groups == 0 && args->source == CR_KEYS_OFFSETS)) return 0;
    if (args->kind == CR_KEYS_SUM || args->kind == CR_KEYS_SQUARE) failure = cr_keys_launch_begin(args, stream);
    if (failure != 0) return failure;
    return is_joined(args) ? cr_keys_launch_joined(args, stream) : cr_keys_launch_fold(args, stream);
}

/* Which elements the extrema are, when those are known. */
static int fold_places(const cr_keys_args *extrema, const cr_gpu_axis *axis, void *stream) {
    cr_keys_args args = *extrema;
    args.wants = places_of(axis);
    if (args.wants == 0) return 0;
    args.kind = CR_KEYS_FIRSTS;
    args.at = NO_PLANES;
    args.at.window = extrema->at.limbs;
    args.at.limbs = args.at.window + PLACES;
    if (args.is_float) args.infinite = cr_float_greatest(axis->dtype);
    if (args.is_float && axis->finish.nan == CR_NAN_PROPAGATE) args.at.special = extrema->at.special;
    return fold(&args, stream);
}

/* Of the same elements, to planes behind those of their sums. */
static int fold_squares(const cr_keys_args *sums, const cr_keys_planes *squares, void *stream) {
    cr_keys_args args = *sums;
    args.head++;
    args.at = *squares;
    args.kind = CR_KEYS_SQUARE;
    share(&args);
    return fold(&args, stream);
}

int cr_keys_gpu_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                        unsigned long long *wrong, void *stream) {
    pass passes[PASSES];
    const uint32_t count = passes_of(&keys->axis, passes);
    int failure = (int)cudaMemsetAsync(wrong, 0, sizeof *wrong, stream);
    if (failure == 0) failure = cr_keys_digests(keys, multiprocessors, out, state, wrong, stream);
    for (uint32_t i = 0; i < count && failure == 0; i++) {
        cr_keys_args args;
        const cr_keys_planes at = planes_of(&keys->axis, passes[i]);
        const cr_keys_planes squares = passes[i].family == MOMENTS ? squares_behind(&at, keys->axis.dtype) : NO_PLANES;
        const int32_t all = squares.window >= 0 ? squares.all : at.all;
        lay_out(&args, keys, multiprocessors, passes[i].family, &at, state);
        failure = (int)cudaMemsetAsync(state, 0, state_of((uint64_t)all, args.groups), stream);
        if (failure == 0 && args.source == CR_KEYS_OFFSETS) failure = cr_keys_launch_check(&args, args.n, stream);
        if (failure == 0) failure = fold(&args, stream);
        if (failure == 0 && squares.window >= 0) failure = fold_squares(&args, &squares, stream);
        if (failure == 0 && args.kind == CR_KEYS_EXTREME) failure = fold_places(&args, &keys->axis, stream);
        if (failure == 0) failure = answer(&args, &squares, keys, passes[i], out, wrong, stream);
    }
    return failure;
}

/* ---- For a partial ---- */

cr_status cr_keys_gpu_parts(const cr_gpu_keys *keys, cr_keys_part parts[CR_KEYS_PARTS], uint32_t *count,
                            cr_error *error) {
    const cr_gpu_axis *axis = &keys->axis;
    uint32_t families = 0;
    uint64_t planes = 0, place = 0;
    *count = 0;
    cr_status status = takes(keys, error);
    for (uint32_t k = 0; k < axis->op_count && status == CR_OK; k++) {
        families |= needs_of(axis, k);
        if (cr_op_closing(axis->ops[k]) == CR_CLOSING_PRODUCT)
            status = cr_fail(error, CR_UNIMPLEMENTED,
                             "ops: partials of %s %s are the CPU's, because a GPU keeps 64 bits of each product: "
                             "pass a copy in host memory (in Python a.cpu() or a.get())",
                             cr_op_name(axis->ops[k]), way_of(keys));
    }
    if (status != CR_OK) return status;
    const uint32_t folded = families & ~(uint32_t)CR_FAM_COUNTS; /* counts go with the first */
    for (uint32_t family = 1; family <= folded || *count == 0; family *= 2) {
        if ((folded & family) == 0 && folded != 0) continue;
        cr_keys_part *part = &parts[(*count)++];
        part->family = folded & family;
        part->at = planes_with(axis->dtype, part->family, part == parts, part == parts && families & CR_FAM_COUNTS);
        planes += (uint64_t)part->at.all;
    }
    status = check_state(keys, sizeof(unsigned long long) * planes, *count * HEADS * sizeof(cr_keys_head), error);
    for (uint32_t i = 0; i < *count; i++) {
        parts[i].place = place;
        parts[i].bytes = state_of((uint64_t)parts[i].at.all, cr_keys_answers(&keys->keys));
        place += parts[i].bytes;
    }
    return status;
}

int cr_keys_gpu_enqueue_part(const cr_gpu_keys *keys, const cr_keys_part *part, uint32_t multiprocessors,
                             uint8_t *state, void *stream) {
    cr_keys_args args;
    lay_out(&args, keys, multiprocessors, part->family, &part->at, state);
    args.wants = EVERY_DIGIT;
    const int failure = (int)cudaMemsetAsync(state, 0, part->bytes, stream);
    return failure == 0 ? fold(&args, stream) : failure;
}

const unsigned long long *cr_keys_part_planes(const uint8_t *state, cr_keys_head *head) {
    memcpy(head, state, sizeof *head);
    return (const unsigned long long *)(const void *)(state + HEADS * sizeof *head);
}
