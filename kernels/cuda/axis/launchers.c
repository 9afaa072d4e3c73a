/* launchers: which kernels the ops of a reduction along an axis take.
 *
 * Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/digests/digests.h"
#include "kernels/cuda/instance/product.h"
#include "kernels/cuda/plan/float64.h"

uint32_t cr_axis_families(cr_op op, cr_dtype dtype) {
    uint32_t family = cr_op_needs(op, dtype);
    if (cr_op_term(op) == CR_TERM_INFINITIES) return CR_FAM_COUNTS; /* a sum here knows only whether there is one */
    return family == 0 ? CR_FAM_COUNTS : family;                    /* count, of integers */
}

/* What rows of axis.def are named for. */
enum kind {
    counts,
    extrema,
    bits,
    prod,
    sum,
    sum_ahead,
    strips,
    strips_alone, /* of one tile a block, without a second launch */
    sumsq,
    moments,
    moment_strips,
    sum_again,
    sumsq_again,
    narrow_sum, /* by float32: thread/narrow.cuh */
    narrow_sum_ahead,
    narrow_strips,
    narrow_sumsq,
    masked_sum, /* beside a mask: masked.cuh */
    masked_sumsq,
    masked_moments,
    masked_extrema,
    none, /* no row is */
    KINDS
};

#define CR_UNIT(unit, headers)
#define CR_AXIS(unit, kind, dtype, ...) int cr_launch_axis_##kind##_##dtype(const cr_axis_args *args, void *stream);
#define CR_AXIS_SAME(kind, dtype, other)
#define CR_AXIS_AS(kind, dtype, other)
#include "kernels/cuda/instance/axis.def"
#undef CR_AXIS
#undef CR_AXIS_SAME
#undef CR_AXIS_AS

static const cr_axis_launcher kernels[KINDS][CR_DTYPE_INPUTS + 1] = {
#define CR_AXIS(unit, kind, dtype, ...) [kind][dtype] = cr_launch_axis_##kind##_##dtype,
#define CR_AXIS_SAME(kind, dtype, other) [kind][dtype] = cr_launch_axis_##kind##_##other,
#define CR_AXIS_AS(kind, dtype, other) [kind][dtype] = cr_launch_axis_##other##_##dtype,
#include "kernels/cuda/instance/axis.def"
};

/* Magnitudes and what they stand for are summed by one kernel. */
static enum kind kind_of(uint32_t family) {
    switch (cr_family_of(family)) {
        case CR_FAMILY_COUNTS:
            return counts;
        case CR_FAMILY_EXTREMA:
            return extrema;
        case CR_FAMILY_BITS:
            return bits;
        case CR_FAMILY_PROD:
            return prod;
        case CR_FAMILY_SUMSQ:
            return sumsq;
        case CR_FAMILY_SUM:
        case CR_FAMILY_SUMABS:
            return sum;
        case CR_FAMILY_DIGEST: /* kernels/cuda/digests */
#define CR_SUM(symbol, power, sign)
#define CR_SUM_BY_POWERS(symbol, power, sign) case CR_FAMILY_##symbol:
#include "kernels/core/sum.def"
#undef CR_SUM
            break;
    }
    return none;
}

/* Whether op of dtype has kernels, and its result type too. */
static bool has(cr_op op, cr_dtype dtype, const cr_finish_opts *opts) {
    cr_finish_opts own = cr_finish_share(op, dtype, opts, NULL);
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    cr_dtype result = cr_axis_dtype(op, dtype, &own);
    const uint32_t families = cr_axis_families(op, dtype);
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1)
        if (families & family & ~(uint32_t)CR_FAM_DIGEST && kernels[kind_of(family)][dtype] == NULL) return false;
    switch (cr_op_closing(op)) {
        case CR_CLOSING_PRODUCT:
            return floats || result == CR_I64 || result == CR_U64;
        case CR_CLOSING_SUMS:
            if (cr_op_term(op) == CR_TERM_SPREAD && cr_op_divisor(op) != CR_DIVISOR_COUNT_LESS_DDOF) return false;
            if (cr_dtype_kind(result) == CR_KIND_FLOAT) return true;
            return !floats && (result == CR_I64 || result == CR_U64 || result == CR_I128);
        case CR_CLOSING_EXTREMA:
            return cr_op_term(op) != CR_TERM_RANGE;
        case CR_CLOSING_COUNTS:
        case CR_CLOSING_BITS:
        case CR_CLOSING_DIGEST:
            return true;
        case CR_CLOSING_ORDER:
            break;
    }
    return false;
}

/* Where there is a mask, the kernel that reads it. */
static enum kind masked_of(enum kind kind, const cr_mask *mask) {
    if (mask->kind == CR_MASK_NONE) return kind;
    return kind == sum       ? masked_sum
           : kind == sumsq   ? masked_sumsq
           : kind == moments ? masked_moments
           : kind == extrema ? masked_extrema
                             : none;
}

bool cr_axis_takes_mask(const cr_gpu_axis *axis, cr_op op, const cr_mask *mask) {
    const uint32_t families = cr_axis_families(op, axis->dtype);
    if (mask->kind != CR_MASK_BYTES || (uintptr_t)(mask->data + mask->first) % CR_GPU_VECTOR != 0 ||
        (uintptr_t)axis->data % cr_dtype_size(axis->dtype) != 0 || cr_op_is_index(op))
        return false;
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1)
        if (families & family && kernels[masked_of(kind_of(family), mask)][axis->dtype] == NULL) return false;
    return has(op, axis->dtype, &axis->finish);
}

bool cr_axis_is_variance(const cr_gpu_axis *axis) {
    bool any = false;
    for (uint32_t k = 0; k < axis->op_count; k++) any |= cr_op_term(axis->ops[k]) == CR_TERM_SPREAD;
    return any;
}

/* The tree of a product of floats is a warp's, block after block: a few long ones are better left to others. */
static bool has_product(const cr_gpu_axis *axis) {
    return cr_dtype_kind(axis->dtype) != CR_KIND_FLOAT || axis->shape.n <= CR_AXIS_PROD_LINES ||
           axis->shape.outer * axis->shape.inner >= CR_AXIS_PRODS;
}

bool cr_axis_takes(const cr_gpu_axis *axis) {
    bool all = axis->op_count <= CR_GPU_AXIS_OPS && axis->shape.n != 0;
    if (cr_axis_is_variance(axis) && axis->shape.outer != 0 && axis->shape.inner > CR_AXIS_SLOTS / axis->shape.outer)
        return false;
    for (uint32_t k = 0; all && k < axis->op_count; k++)
        all = has(axis->ops[k], axis->dtype, &axis->finish) &&
              (cr_op_closing(axis->ops[k]) != CR_CLOSING_PRODUCT || has_product(axis));
    return all;
}

/* The kernel that does without float64, where that is asked for and there is one. */
static enum kind narrow_of(enum kind kind, cr_dtype dtype) {
    const enum kind narrow = kind == sum         ? narrow_sum
                             : kind == sum_ahead ? narrow_sum_ahead
                             : kind == strips    ? narrow_strips
                             : kind == sumsq     ? narrow_sumsq
                                                 : kind;
    return narrow == kind || kernels[narrow][dtype] == NULL || !cr_float64_is_slow() ? kind : narrow;
}

/* The kernel of rows by strips, if there is one; at is then laid out for it. NULL: there is none. */
static cr_axis_launcher by_strips(cr_axis_launch *at, enum kind kind, cr_dtype dtype, uint32_t multiprocessors) {
    const cr_axis_launcher found = at->strips != 0 ? kernels[narrow_of(kind, dtype)][dtype] : NULL;
    if (found != NULL) cr_axis_launch_by_strips(at, cr_dtype_size(dtype), multiprocessors);
    return found;
}

/* A family's first kernel; own is laid out for it. *alone: nothing follows it. */
static cr_axis_launcher first_of(cr_axis_args *own, enum kind kind, cr_dtype dtype, uint32_t multiprocessors,
                                 bool *alone) {
    cr_axis_launcher first = NULL;
    *alone = false;
    if (kind == sumsq && dtype == CR_F64) cr_axis_launch_for_quarters(&own->at, (uintptr_t)own->data, multiprocessors);
    if (own->mask.kind != CR_MASK_NONE) return kernels[masked_of(kind, &own->mask)][dtype];
    if (kind == sum) first = by_strips(&own->at, strips, dtype, multiprocessors);
    *alone = first != NULL && own->at.tiles <= own->at.blocks && kernels[strips_alone][dtype] != NULL &&
             cr_fast_on(CR_FAST_GPU_ALONE);
    if (*alone) return kernels[strips_alone][dtype];
    if (kind == sumsq) first = by_strips(&own->at, moment_strips, dtype, multiprocessors);
    if (first == NULL && kind == sum && kernels[sum_ahead][dtype] != NULL &&
        cr_axis_launch_ahead(&own->at, cr_dtype_size(dtype), multiprocessors))
        first = kernels[narrow_of(sum_ahead, dtype)][dtype];
    return first != NULL ? first : kernels[narrow_of(kind, dtype)][dtype];
}

static int enqueue_family(const cr_axis_args *args, cr_dtype dtype, uint32_t multiprocessors, void *stream) {
    const enum kind kind = kind_of(args->family);
    const cr_axis_launcher again = kind == sum     ? kernels[sum_again][dtype]
                                   : kind == sumsq ? kernels[sumsq_again][dtype]
                                                   : NULL;
    cr_axis_args own = *args;
    bool alone = false;
    const cr_axis_launcher first = first_of(&own, kind, dtype, multiprocessors, &alone);
    int failure = first(&own, stream);
    if (failure == 0 && again != NULL && !alone) failure = again(&own, stream);
    return failure;
}

static void ask(cr_axis_args *args, const cr_gpu_axis *axis, uint32_t k, void *to) {
    args->out[args->out_count++] = cr_axis_out_of(axis, k, to);
}

/* Sums and sums of squares in one pass, where a variance needs both. What that cannot take is on one list for both kinds' second
 * launches; that of squares of float64 sums again what a variance needs. *did: whether there is a kernel for it, and room for the ops. */
static int enqueue_moments(const cr_axis_args *args, const cr_gpu_axis *axis, uint32_t multiprocessors,
                           void *const *out, void *stream, bool *did) {
    cr_axis_args both = *args;
    const bool wide = cr_dtype_size(axis->dtype) == 8;
    *did = cr_fast_on(CR_FAST_GPU_MOMENTS) && kernels[masked_of(moments, &args->mask)][axis->dtype] != NULL &&
           axis->op_count <= CR_AXIS_OUTS && cr_axis_is_variance(axis);
    if (!*did) return 0;
    cr_axis_launcher first = NULL;
    if (args->mask.kind == CR_MASK_NONE) first = by_strips(&both.at, moment_strips, axis->dtype, multiprocessors);
    if (first == NULL) first = kernels[masked_of(moments, &args->mask)][axis->dtype];
    if (wide) cr_axis_launch_for_quarters(&both.at, (uintptr_t)args->data, multiprocessors);
    cr_axis_args sums = both, squares = both;
    both.family = sums.family = CR_FAM_SUM;
    squares.family = CR_FAM_SUMSQ;
    sums.keep = 1;
    for (uint32_t k = 0; k < axis->op_count; k++) {
        const uint32_t families = cr_axis_families(axis->ops[k], axis->dtype);
        if (families & (CR_FAM_SUM | CR_FAM_SUMSQ)) ask(&both, axis, k, out[k]);
        if (families & CR_FAM_SUM && !(wide && families & CR_FAM_SUMSQ)) ask(&sums, axis, k, out[k]);
        if (families & CR_FAM_SUMSQ) ask(&squares, axis, k, out[k]);
    }
    int failure = first(&both, stream);
    if (failure == 0 && sums.out_count != 0) failure = kernels[sum_again][axis->dtype](&sums, stream);
    return failure != 0 ? failure : kernels[sumsq_again][axis->dtype](&squares, stream);
}

static int enqueue_digests(const cr_gpu_axis *axis, uint32_t multiprocessors, void *const *out, void *stream) {
    int failure = 0;
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++)
        if (cr_op_closing(axis->ops[k]) == CR_CLOSING_DIGEST)
            failure = cr_digests_axis(axis->data, &axis->shape, axis->dtype, out[k], multiprocessors, stream);
    return failure;
}

int cr_axis_enqueue(const cr_gpu_axis *axis, uint32_t multiprocessors, void *const *out, uint8_t *scratch,
                    cr_axis_failure *failed, void *stream) {
    const cr_axis_counted all = {.counts = NULL};
    return cr_axis_enqueue_counted(axis, &all, multiprocessors, out, scratch, failed, stream);
}

int cr_axis_enqueue_kept(const uint8_t *kept, const cr_shape *shape, uint32_t multiprocessors, uint64_t *to,
                         uint8_t *scratch, void *stream) {
    cr_axis_args args = {.data = kept, .scratch = scratch, .family = CR_FAM_COUNTS, .out_count = 1};
    cr_axis_launch_make(&args.at, (uintptr_t)kept, shape, CR_U8, false, multiprocessors);
    args.out[0] = (cr_axis_out){.result = CR_U64, .term = CR_TERM_NONZERO, .divisor = CR_DIVISOR_ONE, .to = to};
    return enqueue_family(&args, CR_U8, multiprocessors, stream);
}

int cr_axis_enqueue_counted(const cr_gpu_axis *axis, const cr_axis_counted *counted, uint32_t multiprocessors,
                            void *const *out, uint8_t *scratch, cr_axis_failure *failed, void *stream) {
    cr_axis_args args;
    memset(&args, 0, sizeof args);
    cr_axis_launch_make(&args.at, (uintptr_t)axis->data, &axis->shape, axis->dtype, cr_axis_is_variance(axis),
                        multiprocessors);
    args.data = axis->data;
    args.scratch = scratch;
    args.failure = failed;
    args.skip = axis->finish.nan == CR_NAN_SKIP;
    args.wrap = axis->finish.overflow == CR_OVERFLOW_WRAP;
    args.ddof = axis->finish.ddof;
    args.counts = counted->counts;
    args.first = counted->first;
    args.mask = counted->mask;
    args.fill = counted->fill;
    for (uint64_t width = 8 * cr_dtype_size(axis->dtype); width < 64; width *= 2) args.fill |= args.fill << width;
    bool did = false;
    int failure = enqueue_digests(axis, multiprocessors, out, stream);
    if (failure == 0) failure = enqueue_moments(&args, axis, multiprocessors, out, stream, &did);
    for (args.family = 1; args.family < CR_FAM_ALL && failure == 0; args.family <<= 1) {
        args.out_count = 0;
        for (uint32_t k = 0; k <= axis->op_count && failure == 0; k++) {
            bool ends = k == axis->op_count;
            if (args.out_count == CR_AXIS_OUTS || (ends && args.out_count != 0)) {
                failure = enqueue_family(&args, axis->dtype, multiprocessors, stream);
                args.out_count = 0;
            }
            if (ends || (cr_axis_families(axis->ops[k], axis->dtype) & args.family) == 0) continue;
            if (did && (args.family & (CR_FAM_SUM | CR_FAM_SUMSQ)) != 0) continue;
            if (args.family == CR_FAM_DIGEST) continue;
            ask(&args, axis, k, out[k]);
        }
    }
    return failure;
}
