/* launchers: which kernels a fold takes, and what becomes of what they leave.
 *
 * Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cuda/instance/product.h"
#include "kernels/cuda/plan/burst_float.h"
#include "kernels/cuda/plan/float64.h"
#include "kernels/cuda/plan/list.h"

/* What rows of fold.def are named for. */
enum kind {
    counts,
    min,
    max,
    argmin,
    argmax,
    extrema,
    bits,
    digest,
    prod,
    sum,
    sumabs,
    sumsq,
    spread,         /* Σx and Σx² */
    summary,        /* Σx, extrema, counts */
    describe,       /* all of both; of integers, which have no NaNs, without the counts */
    summary_values, /* the same without the places of extrema */
    describe_values,
    list_sum, /* of a list: plan/list.h */
    list_sumabs,
    list_sumsq,
    sum_answered, /* axis/answer.h */
    sumsq_answered,
    masked_counts, /* walk/masked.cuh */
    masked_sum,
    masked_sumabs,
    masked_sumsq,
    dot, /* of pairs: walk/paired.cuh */
    sqdist,
    average, /* dot, and the sum of the weights */
    KINDS
};

#define CR_UNIT(unit, headers)
#define CR_FOLD(unit, kind, dtype, ...) int cr_launch_##kind##_##dtype(const cr_fold_args *args, void *stream);
#define CR_FOLD_SAME(kind, dtype, other)
#define CR_FOLD_AS(kind, dtype, other)
#include "kernels/cuda/instance/fold.def"
#undef CR_FOLD
#undef CR_FOLD_SAME
#undef CR_FOLD_AS

/* Second ways, without float64: walk/narrow.cu, second.cu. */
int cr_launch_narrow_sum_f16(const cr_fold_args *args, void *stream);
int cr_launch_narrow_sum_bf16(const cr_fold_args *args, void *stream);
int cr_launch_narrow_sumsq_f16(const cr_fold_args *args, void *stream);
int cr_launch_narrow_sumsq_bf16(const cr_fold_args *args, void *stream);
int cr_launch_second_sum_f32(const cr_fold_args *args, void *stream);
int cr_launch_second_sum_f64(const cr_fold_args *args, void *stream);
int cr_launch_second_sumsq_f32(const cr_fold_args *args, void *stream);
int cr_launch_second_sumsq_f64(const cr_fold_args *args, void *stream);

static cr_fold_launcher second_way_of(uint32_t family, cr_dtype dtype) {
    static const cr_fold_launcher sums[CR_DTYPE_INPUTS + 1] = {[CR_F16] = cr_launch_narrow_sum_f16,
                                                               [CR_BF16] = cr_launch_narrow_sum_bf16,
                                                               [CR_F32] = cr_launch_second_sum_f32,
                                                               [CR_F64] = cr_launch_second_sum_f64},
                                                         squares[CR_DTYPE_INPUTS + 1] = {
                                                             [CR_F16] = cr_launch_narrow_sumsq_f16,
                                                             [CR_BF16] = cr_launch_narrow_sumsq_bf16,
                                                             [CR_F32] = cr_launch_second_sumsq_f32,
                                                             [CR_F64] = cr_launch_second_sumsq_f64};
    return family == CR_FAM_SUM ? sums[dtype] : family == CR_FAM_SUMSQ ? squares[dtype] : NULL;
}

static const cr_fold_launcher kernels[KINDS][CR_DTYPE_INPUTS + 1] = {
#define CR_FOLD(unit, kind, dtype, ...) [kind][dtype] = cr_launch_##kind##_##dtype,
#define CR_FOLD_SAME(kind, dtype, other) [kind][dtype] = cr_launch_##kind##_##other,
#define CR_FOLD_AS(kind, dtype, other) [kind][dtype] = cr_launch_##other##_##dtype,
#include "kernels/cuda/instance/fold.def"
};

/* One minimum or maximum has a kernel of its own. */
static enum kind extrema_kind(uint32_t wants) {
    if (!cr_fast_on(CR_FAST_GPU_ONE_END)) return extrema;
    if (wants == CR_WANTS_MIN) return min;
    if (wants == CR_WANTS_MAX) return max;
    if (wants == (CR_WANTS_MIN | CR_WANTS_ARGMIN)) return argmin;
    if (wants == (CR_WANTS_MAX | CR_WANTS_ARGMAX)) return argmax;
    return extrema;
}

/* The kernel of a family alone; NULL: there is none. */
static cr_fold_launcher launcher_of(uint32_t family, cr_dtype dtype, uint32_t wants) {
    switch (cr_family_of(family)) {
        case CR_FAMILY_COUNTS:
            return kernels[counts][dtype];
        case CR_FAMILY_EXTREMA:
            return kernels[extrema_kind(wants)][dtype];
        case CR_FAMILY_BITS:
            return kernels[bits][dtype];
        case CR_FAMILY_DIGEST:
            return kernels[digest][dtype];
        case CR_FAMILY_PROD:
            return kernels[prod][dtype];
        case CR_FAMILY_SUM:
            return kernels[sum][dtype];
        case CR_FAMILY_SUMABS:
            return kernels[sumabs][dtype];
        case CR_FAMILY_SUMSQ:
            return kernels[sumsq][dtype];
#define CR_SUM(symbol, power, sign)
#define CR_SUM_BY_POWERS(symbol, power, sign) case CR_FAMILY_##symbol:
#include "kernels/core/sum.def"
#undef CR_SUM
            break;
    }
    return NULL;
}

/* The kernel of a family under a mask, where zeros are nothing to the family; NULL: there is none. */
static cr_fold_launcher masked_launcher_of(uint32_t family, cr_dtype dtype) {
    return family == CR_FAM_COUNTS   ? kernels[masked_counts][dtype]
           : family == CR_FAM_SUM    ? kernels[masked_sum][dtype]
           : family == CR_FAM_SUMABS ? kernels[masked_sumabs][dtype]
           : family == CR_FAM_SUMSQ  ? kernels[masked_sumsq][dtype]
                                     : NULL;
}

/* The kernels of families of pairs; false: there are none for one of them. Nobody asks for weights alone. */
static bool paired_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                             uint32_t *count) {
    const uint32_t both = CR_FAM_DOT | CR_FAM_WEIGHTS;
    *count = 0;
    if ((families & both) == both) out[(*count)++] = kernels[average][dtype];
    if ((families & both) == CR_FAM_DOT) out[(*count)++] = kernels[dot][dtype];
    if (families & CR_FAM_SQDIST) out[(*count)++] = kernels[sqdist][dtype];
    bool all = *count != 0 && (families & ~CR_FAM_PAIRS) == 0 && (families & both) != CR_FAM_WEIGHTS;
    for (uint32_t i = 0; i < *count; i++) all = all && out[i] != NULL;
    return all;
}

cr_fold_launcher cr_list_launcher(cr_dtype dtype, uint32_t family) {
    if (family == CR_FAM_SUM) return kernels[list_sum][dtype];
    if (family == CR_FAM_SUMABS) return kernels[list_sumabs][dtype];
    return family == CR_FAM_SUMSQ ? kernels[list_sumsq][dtype] : NULL;
}

cr_fold_launcher cr_answered_launcher(cr_dtype dtype, uint32_t families) {
    if (!cr_fast_on(CR_FAST_GPU_ANSWERED)) return NULL;
    return families == CR_FAM_SUM     ? kernels[sum_answered][dtype]
           : families == CR_FAM_SUMSQ ? kernels[sumsq_answered][dtype]
                                      : NULL;
}

bool cr_fold_takes(cr_dtype dtype, uint32_t families) {
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1)
        if (families & family && launcher_of(family, dtype, CR_WANTS_ALL) == NULL) return false;
    return true;
}

/* The kind of kernels for the same set without places, where nobody wants these and the type has one. */
static enum kind without_places(enum kind kind, cr_dtype dtype, uint32_t wants) {
    const enum kind other = kind == summary ? summary_values : kind == describe ? describe_values : kind;
    const bool wanted = wants == 0 || wants & (CR_WANTS_ARGMIN | CR_WANTS_ARGMAX);
    return wanted || kernels[other][dtype] == NULL || !cr_fast_on(CR_FAST_GPU_ENDS) ? kind : other;
}

/* Takes from *families those that have a kernel together, and gives the smallest that has them all. It may fold more, because another
 * pass over the array would cost as much as the slowest of them. */
static uint32_t together(cr_dtype dtype, uint32_t *families, uint32_t wants, cr_fold_launcher out[CR_FOLD_LAUNCHES]) {
    const uint32_t both = CR_FAM_SUM | CR_FAM_SUMSQ, range = CR_FAM_SUM | CR_FAM_EXTREMA;
    const struct {
        uint32_t all;
        enum kind kind;
    } floats[] = {{both, spread}, {range | CR_FAM_COUNTS, summary}, {both | range | CR_FAM_COUNTS, describe}},
      others[] = {{both, spread}, {both | range, describe}},
      *sets = cr_dtype_kind(dtype) == CR_KIND_FLOAT ? floats : others;
    const size_t count = sets == floats ? sizeof floats / sizeof floats[0] : sizeof others / sizeof others[0];
    const uint32_t asked = *families & sets[count - 1].all; /* which holds all the others do */
    if ((asked & (asked - 1)) == 0 || !cr_fast_on(CR_FAST_GPU_SETS)) return 0;
    size_t i = 0;
    while (asked & ~sets[i].all) i++;
    out[0] = kernels[without_places(sets[i].kind, dtype, wants)][dtype];
    if (out[0] == NULL) return 0;
    *families &= ~asked;
    return 1;
}

/* The first op that is made of a family. */
static const char *of_family(uint32_t family, cr_dtype dtype) {
    cr_op op = cr_op_next(CR_OP_NONE);
    while (op != CR_OP_NONE && !(cr_op_needs(op, dtype) & family)) op = cr_op_next(op);
    return cr_op_name(op);
}

cr_status cr_fold_launchers(cr_dtype dtype, uint32_t families, uint32_t wants, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                            uint32_t *count, cr_error *error) {
    *count = together(dtype, &families, wants, out);
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1) {
        if (!(families & family)) continue;
        const cr_fold_launcher second = second_way_of(family, dtype),
                               launcher =
                                   second != NULL && cr_float64_is_slow() ? second : launcher_of(family, dtype, wants);
        if (launcher == NULL) {
            return cr_fail(error, CR_UNIMPLEMENTED,
                           "ops: the GPU has no kernel for %s of %s: reduce a copy in host memory",
                           of_family(family, dtype), cr_dtype_name(dtype));
        }
        out[(*count)++] = launcher;
    }
    return CR_OK;
}

cr_status cr_fold_masked_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                                   uint32_t *count, cr_error *error) {
    *count = 0;
    if (families == 0) families = CR_FAM_COUNTS; /* how many elements count, alone */
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1) {
        if (!(families & family)) continue;
        const cr_fold_launcher launcher = masked_launcher_of(family, dtype);
        if (launcher == NULL)
            return cr_fail(error, CR_UNIMPLEMENTED,
                           "mask: a GPU takes one for sums and counts alone, not for family %u of dtype %s", family,
                           cr_dtype_name(dtype));
        out[(*count)++] = launcher;
    }
    return CR_OK;
}

bool cr_fold_takes_pairs(cr_dtype dtype, uint32_t families) {
    cr_fold_launcher out[CR_FOLD_LAUNCHES];
    uint32_t count;
    return paired_launchers(dtype, families, out, &count);
}

cr_status cr_fold_paired_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                                   uint32_t *count, cr_error *error) {
    if (paired_launchers(dtype, families, out, count)) return CR_OK;
    return cr_fail(error, CR_UNIMPLEMENTED,
                   "second: a GPU takes pairs of f16, bf16, f32 and f64, and sums of them alone, not families %u of "
                   "dtype %s",
                   families, cr_dtype_name(dtype));
}

void cr_fold_prepare(cr_fold_args *args, cr_dtype dtype, const void *data, uint64_t n, uint64_t index,
                     uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot) {
    args->data = data;
    args->n = n;
    args->index = index;
    args->plan = cr_fold_plan_make((uintptr_t)data, n, (uint32_t)cr_dtype_size(dtype), multiprocessors);
    args->multiprocessors = multiprocessors;
    args->follows = args->wary = false;
    args->apart = 0;
    args->next = state->next;
    args->mask = (cr_mask){.kind = CR_MASK_NONE};
    args->second = NULL;
    args->state = state;
    args->slot = slot;
}

/* Digits into the limbs. The highest may lie above these, where a negative sum has nothing but its sign: so each goes to the one below it
 * until that lies well inside. */
static void take_digits(const cr_sum_found *found, cr_sum_at at, cr_partial *p) {
    const unsigned width = (unsigned)cr_sum_digit_bits(found), end = 32 * cr_sum_limbs(at, (cr_dtype)p->dtype),
                   first = (unsigned)(found->unit - cr_sum_grid(at, (cr_dtype)p->dtype));
    __int128 above = 0;
    unsigned i = cr_sum_digits(found);
    for (i = i < CR_SUM_DIGITS ? i : CR_SUM_DIGITS; i-- > 0;) {
        const __int128 digit = cr_sum_digit(found, i) + above * ((__int128)1 << width);
        const bool inside = i == 0 || first + width * i + 64 <= end;
        above = inside ? 0 : digit;
        if (inside) cr_partial_put(p, at, digit, first + width * i);
    }
}

static void take_sum(const cr_sum_found *found, cr_sum_at at, cr_partial *p) {
    cr_sum *to = &p->sums[at];
    const unsigned limbs = cr_sum_limbs(at, (cr_dtype)p->dtype);
    memset(to->limbs, 0, limbs * sizeof to->limbs[0]);
    to->pending = 0;
    to->special = (cr_specials){0};
    if (cr_sum_in_limbs(found)) {
        for (unsigned i = 0; i < limbs; i++) to->limbs[i] = found->limbs[i];
        to->special = (cr_specials){found->special[0], found->special[1], found->special[2]};
        cr_limbs_carry(to->limbs, limbs, &to->pending);
    }
    take_digits(found, at, p);
    cr_limbs_carry(to->limbs, limbs, &to->pending);
}

void cr_fold_result(cr_fold_slot *slot, cr_dtype dtype, uint32_t families, uint64_t n) {
    cr_partial *p = &slot->partial;
    p->dtype = (uint8_t)dtype;
    p->families = families;
    p->n = n;
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT || n == 0) return;
    for (unsigned at = 0; at < CR_SUMS; at++)
        if (families & cr_sum_rows[at].family) take_sum(&slot->sums[cr_fold_sum_at((cr_sum_at)at)], (cr_sum_at)at, p);
}
