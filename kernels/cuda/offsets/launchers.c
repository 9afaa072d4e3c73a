/* launchers: how segments by offsets are laid over a GPU, and which kernels their ops take.
 *
 * Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/round.h"
#include "kernels/cuda/instance/product.h"
#include "kernels/cuda/offsets/offsets.h"
#include "kernels/cuda/plan/float64.h"

/* What a chunk costs at least. Tests have less, so that a small array has several. */
#if !defined(CR_SEGMENTS_LEAST)
#define CR_SEGMENTS_LEAST 6144
#endif

/* Each parted segment has a state. A long array would need more states than there are, so its cuts part only longer segments. Tests have
 * fewer states. */
#if !defined(CR_SEGMENTS_OWNERS)
#define CR_SEGMENTS_OWNERS CR_AXIS_STATES
#endif

/* The slow kernel takes a chunk in parts that cost so much, about. Tests have smaller ones. */
#if !defined(CR_SEGMENTS_SLOW_PART)
#define CR_SEGMENTS_SLOW_PART 8192
#endif

/* A chunk costs so much at most. Warps take chunks as they come, so that the GPU reads a long array one stretch at a time. Where segments
 * have LONG_BYTES on average, longer chunks part fewer of them. WIDE chunks are for types whose kernels gain more by fewer cuts, which take
 * microseconds each, than by that order: measured for f32 and f64. */
enum {
    CHUNK_BYTES = 1 << 17,
    LONG_CHUNK_BYTES = 1 << 18,
    WIDE_CHUNK_BYTES = 1 << 20,
    LONG_BYTES = 1 << 16,
    SLOW_PARTS = 128
};

/* How chunks are laid out: for pieces.cuh, of WIDE_CHUNK_BYTES or less; or for teams, whose kernels have more blocks on a multiprocessor and
 * need no states. */
typedef enum chunk_layout { LAYOUT_PIECES, LAYOUT_WIDE, LAYOUT_TEAMS, LAYOUTS } chunk_layout;

/* What rows of offsets.def are named for; narrow: by float32 (thread/narrow.cuh). */
enum kind {
    sum = CR_SEGMENTS_SUM,
    square = CR_SEGMENTS_SQUARE,
    moments = CR_SEGMENTS_MOMENTS,
    narrow_sum,
    narrow_square,
    KINDS
};

#define CR_UNIT(unit, headers)
#define CR_OFFSETS(unit, kind, dtype, ...) \
    int cr_launch_offsets_##kind##_##dtype(const cr_segments_args *args, void *stream);
#include "kernels/cuda/instance/offsets.def"
#undef CR_OFFSETS

static const cr_segments_launcher kernels[KINDS][CR_DTYPE_INPUTS + 1] = {
#define CR_OFFSETS(unit, kind, dtype, ...) [kind][dtype] = cr_launch_offsets_##kind##_##dtype,
#include "kernels/cuda/instance/offsets.def"
};

static bool is_float(cr_dtype dtype) { return cr_dtype_kind(dtype) == CR_KIND_FLOAT; }

/* Of one array, and such that what is divided by comes from the number of elements. */
static bool takes_sum(cr_op op, cr_dtype dtype) {
    return cr_op_term(op) == CR_TERM_SPREAD
               ? cr_op_divisor(op) == CR_DIVISOR_COUNT_LESS_DDOF
               : cr_op_needs(op, dtype) == CR_FAM_SUM || cr_op_needs(op, dtype) == CR_FAM_SUMABS ||
                     cr_op_needs(op, dtype) == CR_FAM_SUMSQ;
}

bool cr_segments_takes(cr_op op, cr_dtype dtype, const cr_finish_opts *finish) {
    const cr_finish_opts own = cr_finish_share(op, dtype, finish, NULL);
    const cr_dtype result = cr_axis_dtype(op, dtype, &own);
    const bool teams = cr_fast_on(CR_FAST_GPU_TEAMS);
    switch (cr_op_closing(op)) {
        case CR_CLOSING_SUMS:
            if (!is_float(dtype)) return teams && takes_sum(op, dtype);
            return dtype != CR_F8_E4M3 && dtype != CR_F8_E5M2 && is_float(result) && takes_sum(op, dtype);
        case CR_CLOSING_EXTREMA:
        case CR_CLOSING_COUNTS:
            return teams;
        case CR_CLOSING_BITS:
            return teams && !is_float(dtype);
        case CR_CLOSING_PRODUCT:
        case CR_CLOSING_DIGEST:
        case CR_CLOSING_ORDER:
            return false;
    }
    return false;
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* What teams are told of a type. */
static void set_type(cr_segments_args *args, cr_dtype dtype) {
    args->dtype = (uint32_t)dtype;
    args->size = (uint32_t)cr_dtype_size(dtype);
    if (is_float(dtype)) {
        args->elements = CR_ELEMENTS_FLOAT;
        args->infinite = cr_float_greatest(dtype);
    }
    if (cr_dtype_kind(dtype) == CR_KIND_SINT) args->elements = CR_ELEMENTS_SIGNED;
    if (dtype == CR_BOOL) args->elements = CR_ELEMENTS_BOOL;
    args->spread = is_float(dtype) ? UINT32_MAX : 0;
    if (args->elements & (CR_ELEMENTS_FLOAT | CR_ELEMENTS_SIGNED))
        args->flip = args->size == 1 ? 0x80808080 : args->size == 2 ? 0x80008000 : 0x80000000;
}

static void lay_out(cr_segments_args *args, const cr_gpu_segments *s, uint32_t multiprocessors, chunk_layout layout) {
    const bool teams = layout == LAYOUT_TEAMS;
    const uint64_t size = cr_dtype_size(s->axis.dtype), on_each = teams ? CR_SEGMENTS_TEAM_BLOCKS : CR_SEGMENTS_BLOCKS;
    if (multiprocessors == 0) multiprocessors = 1;
    memset(args, 0, sizeof *args);
    set_type(args, s->axis.dtype);
    args->data = s->axis.data;
    args->offsets = s->offsets.data;
    args->n = s->axis.shape.n;
    args->count = s->offsets.count;
    args->odd = (uintptr_t)s->axis.data % size != 0;
    args->narrow = cr_dtype_size(s->offsets.dtype) == 4;
    args->is_signed = s->offsets.dtype == CR_I32 || s->offsets.dtype == CR_I64;
    args->skip = s->axis.finish.nan == CR_NAN_SKIP;
    args->ddof = s->axis.finish.ddof;
    args->path = args->n * size + args->count * CR_SEGMENTS_END;
    const uint64_t warps = (uint64_t)multiprocessors * on_each * CR_SEGMENTS_WARPS;
    const bool is_long = args->n * size / (args->count + 1) >= LONG_BYTES;
    const uint64_t most = layout == LAYOUT_WIDE ? WIDE_CHUNK_BYTES : is_long ? LONG_CHUNK_BYTES : CHUNK_BYTES;
    uint64_t each = divide_up(args->path, warps * divide_up(args->path, warps * most)); /* as many for each warp */
    if (each < CR_SEGMENTS_LEAST) each = CR_SEGMENTS_LEAST;
    if (each < divide_up(args->path, UINT32_MAX / 2)) each = divide_up(args->path, UINT32_MAX / 2);
    const uint64_t parts = each / CR_SEGMENTS_SLOW_PART;
    args->slow_parts = teams || parts < 1 ? 1 : parts < SLOW_PARTS ? (uint32_t)parts : SLOW_PARTS;
    each = divide_up(each, args->slow_parts) * args->slow_parts;
    args->per_chunk = each;
    args->chunks = (uint32_t)divide_up(args->path, each);
    uint64_t whole = each < CR_SEGMENTS_WHOLE ? each : CR_SEGMENTS_WHOLE;
    if (!teams && whole < divide_up(args->path, CR_SEGMENTS_OWNERS)) whole = divide_up(args->path, CR_SEGMENTS_OWNERS);
    args->whole = whole / size + 1;
    args->per_owner = args->whole * size;
    args->owners = (uint32_t)divide_up(args->path, args->per_owner);
    const uint64_t blocks = divide_up(args->chunks, CR_SEGMENTS_WARPS), resident = (uint64_t)multiprocessors * on_each,
                   slow = (uint64_t)multiprocessors * (teams ? CR_SEGMENTS_JOIN_BLOCKS : CR_SEGMENTS_SLOW_BLOCKS),
                   works = divide_up((uint64_t)args->chunks * args->slow_parts, teams ? 4 : 8);
    args->blocks = (uint32_t)(blocks < resident ? blocks : resident);
    args->slow_blocks = (uint32_t)(works < slow ? works : slow);
}

uint64_t cr_segments_scratch(const cr_gpu_segments *segments, uint32_t multiprocessors) {
    uint64_t most = 0;
    for (int k = 0; k < LAYOUTS; k++) {
        cr_segments_args args;
        lay_out(&args, segments, multiprocessors, (chunk_layout)k);
        const uint64_t list = ((uint64_t)args.chunks + 1) / 2 * 2 * sizeof(uint32_t),
                       parts = 2 * (uint64_t)args.chunks * sizeof(cr_segments_part);
        if (list + parts > most) most = list + parts;
    }
    return sizeof(cr_axis_head) + most;
}

static void ask(cr_segments_args *args, const cr_gpu_axis *axis, uint32_t k, void *to) {
    args->out[args->out_count++] = cr_axis_out_of(axis, k, to);
}

/* The kernel by windows; NULL: there is none. */
static cr_segments_launcher launcher_of(enum kind kind, cr_dtype dtype) {
    const enum kind narrow = kind == sum ? narrow_sum : kind == square ? narrow_square : kind;
    if (!cr_fast_on(CR_FAST_GPU_PIECES)) return NULL;
    return kernels[narrow][dtype] != NULL && cr_float64_is_slow() ? kernels[narrow][dtype] : kernels[kind][dtype];
}

/* Sums of float64's squares, by teams; and what is hard for them, by bins. */
static int launch_quarters(const cr_segments_args *args, void *stream) {
    cr_segments_args own = *args;
    own.kind = CR_SEGMENTS_QUARTERS;
    own.parted = true;
    own.slow_parts = 1;
    const int failure = cr_segments_launch_teams(&own, stream);
    own.kind = args->kind;
    return failure != 0 ? failure : cr_segments_launch_slow(&own, stream);
}

/* All ops of these families of sums of floats, some at a time. */
static int enqueue(cr_segments_args *args, const cr_gpu_axis *axis, enum kind kind, uint32_t families, void *const *out,
                   void *stream) {
    const cr_segments_launcher launcher = launcher_of(kind, axis->dtype);
    const bool quarters = axis->dtype == CR_F64 && kind != sum && cr_fast_on(CR_FAST_GPU_TEAMS);
    int failure = 0;
    args->kind = kind;
    args->absolute = families == CR_FAM_SUMABS;
    args->all = launcher == NULL && !quarters;
    args->out_count = 0;
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++) {
        const uint32_t needs = cr_op_needs(axis->ops[k], axis->dtype);
        if (cr_op_closing(axis->ops[k]) == CR_CLOSING_SUMS && (needs & families) != 0) ask(args, axis, k, out[k]);
        if (args->out_count == 0 || (args->out_count < CR_AXIS_OUTS && k + 1 < axis->op_count)) continue;
        if (launcher != NULL) failure = launcher(args, stream);
        if (failure == 0) failure = quarters ? launch_quarters(args, stream) : cr_segments_launch_slow(args, stream);
        args->out_count = 0;
    }
    return failure;
}

static int enqueue_floats(const cr_gpu_segments *segments, uint32_t multiprocessors, void *const *out, uint8_t *scratch,
                          unsigned long long *wrong, void *stream) {
    const cr_gpu_axis *axis = &segments->axis;
    cr_segments_args args;
    uint32_t families = 0;
    for (uint32_t k = 0; k < axis->op_count; k++)
        if (cr_op_closing(axis->ops[k]) == CR_CLOSING_SUMS) families |= cr_op_needs(axis->ops[k], axis->dtype);
    const bool wide = axis->dtype == CR_F32 || (axis->dtype == CR_F64 && (families & CR_FAM_SUMSQ) == 0);
    lay_out(&args, segments, multiprocessors, wide ? LAYOUT_WIDE : LAYOUT_PIECES);
    args.scratch = scratch;
    args.wrong = wrong;
    int failure = 0;
    if (cr_axis_is_variance(axis)) {
        failure = enqueue(&args, axis, moments, CR_FAM_SUM | CR_FAM_SUMSQ, out, stream);
    } else {
        if (families & CR_FAM_SUM) failure = enqueue(&args, axis, sum, CR_FAM_SUM, out, stream);
        if (failure == 0 && families & CR_FAM_SUMSQ) failure = enqueue(&args, axis, square, CR_FAM_SUMSQ, out, stream);
    }
    if (failure == 0 && families & CR_FAM_SUMABS) failure = enqueue(&args, axis, sum, CR_FAM_SUMABS, out, stream);
    return failure;
}

/* ---- By teams ---- */

/* Whether the fold that args tells of answers op number k. */
static bool of_fold(const cr_segments_args *args, const cr_gpu_axis *axis, uint32_t k) {
    const cr_term term = cr_op_term(axis->ops[k]);
    switch (cr_op_closing(axis->ops[k])) {
        case CR_CLOSING_SUMS:
            return args->kind == CR_SEGMENTS_INTEGERS && (term == CR_TERM_MAGNITUDE) == (args->absolute != 0);
        case CR_CLOSING_EXTREMA:
            return args->kind == CR_SEGMENTS_EXTREMA;
        case CR_CLOSING_COUNTS:
            return args->kind == CR_SEGMENTS_COUNTS;
        case CR_CLOSING_BITS:
            return args->kind == CR_SEGMENTS_BITS;
        case CR_CLOSING_PRODUCT: /* there are none */
        case CR_CLOSING_DIGEST:
        case CR_CLOSING_ORDER:
            break;
    }
    return false;
}

static uint32_t wants_of(const cr_segments_args *args, cr_op op) {
    const cr_term term = cr_op_term(op);
    if (args->kind == CR_SEGMENTS_EXTREMA) return cr_op_is_index(op) ? CR_WANTS_PLACES : 0;
    if (args->kind == CR_SEGMENTS_COUNTS)
        return args->dtype != CR_F8_E4M3 ? CR_WANTS_INFINITIES : 0; /* which has none */
    return (term != CR_TERM_SQUARE ? CR_WANTS_SUM : 0) |
           (term == CR_TERM_SQUARE || term == CR_TERM_SPREAD ? CR_WANTS_SQUARE : 0);
}

static int enqueue_team(cr_segments_args *args, const cr_gpu_axis *axis, cr_segments_kind kind, bool absolute,
                        void *const *out, void *stream) {
    int failure = 0;
    args->kind = kind;
    args->absolute = absolute;
    args->wants = args->out_count = 0;
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++) {
        if (of_fold(args, axis, k)) {
            ask(args, axis, k, out[k]);
            args->wants |= wants_of(args, axis->ops[k]);
        }
        if (args->out_count == 0 || (args->out_count < CR_AXIS_OUTS && k + 1 < axis->op_count)) continue;
        failure = cr_segments_launch_teams(args, stream);
        args->wants = args->out_count = 0;
    }
    return failure;
}

int cr_segments_enqueue(const cr_gpu_segments *segments, uint32_t multiprocessors, void *const *out, uint8_t *scratch,
                        unsigned long long *wrong, void *stream) {
    const cr_gpu_axis *axis = &segments->axis;
    const bool floats = is_float(axis->dtype);
    cr_segments_args args;
    int failure = floats ? enqueue_floats(segments, multiprocessors, out, scratch, wrong, stream) : 0;
    lay_out(&args, segments, multiprocessors, LAYOUT_TEAMS);
    args.scratch = scratch;
    args.wrong = wrong;
    for (int kind = floats ? CR_SEGMENTS_COUNTS : CR_SEGMENTS_INTEGERS; kind <= CR_SEGMENTS_EXTREMA && failure == 0;
         kind++)
        failure = enqueue_team(&args, axis, (cr_segments_kind)kind, false, out, stream);
    if (failure == 0 && !floats) failure = enqueue_team(&args, axis, CR_SEGMENTS_INTEGERS, true, out, stream);
    return failure;
}
