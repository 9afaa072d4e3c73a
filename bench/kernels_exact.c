/* kernels_exact: the true answers, from cured's own partial on the host, and how far another's answer is from them.
 *
 * Thread: main. Owner: see kernels.h. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "bench/kernels.h"
#include "bench/kernels_peer.h"
#include "kernels/core/round.h"
#include "kernels/cpu/fold.h"

enum { PIECE = 32 << 20 };

uint32_t bench_families(const bench_ops *ops, cr_dtype dtype) {
    uint32_t families = 0;
    for (int i = 0; i < BENCH_MAX_OPS && ops->ops[i] != CR_OP_NONE; i++) families |= cr_op_needs(ops->ops[i], dtype);
    return families;
}

uint32_t bench_wants(const bench_ops *ops) {
    uint32_t wants = 0;
    for (int i = 0; i < BENCH_MAX_OPS && ops->ops[i] != CR_OP_NONE; i++) wants |= cr_op_wants(ops->ops[i]);
    return wants;
}

int bench_exact(bench_gpu *gpu, cr_dtype dtype, uint64_t from, uint64_t to, cr_partial *exact) {
    uint64_t size = cr_dtype_size(dtype), step = PIECE / size;
    int turn = 0;
    if (from >= to) return 0;
    /* One piece is on its way while the one before is folded. */
    uint64_t next = to - from < step ? to - from : step;
    int failure = (int)cudaMemcpyAsync(gpu->piece[0], gpu->arena + from * size, next * size, cudaMemcpyDeviceToHost,
                                       (cudaStream_t)gpu->stream);
    for (uint64_t at = from; at < to && failure == 0; turn ^= 1) {
        uint64_t n = next, after = at + n;
        failure = (int)cudaStreamSynchronize((cudaStream_t)gpu->stream);
        next = to - after < step ? to - after : step;
        if (failure == 0 && next != 0)
            failure = (int)cudaMemcpyAsync(gpu->piece[!turn], gpu->arena + after * size, next * size,
                                           cudaMemcpyDeviceToHost, (cudaStream_t)gpu->stream);
        cr_cpu_fold(exact, gpu->piece[turn], n, at);
        at = after;
    }
    return failure;
}

static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return bits >> 15 ? -x : x;
}

/* An element's value; integers of 64 bits lose digits, and are compared by their bytes where it matters. */
static double value_of(const void *bytes, cr_dtype dtype) {
    uint64_t bits = 0;
    memcpy(&bits, bytes, cr_dtype_size(dtype));
    union {
        double d;
        float f;
        uint64_t u;
        uint32_t w;
    } x = {.u = bits};
    unsigned unused = 64 - 8 * (unsigned)cr_dtype_size(dtype);
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F64:
            return x.d;
        case CR_FORMAT_F32:
            return x.f;
        case CR_FORMAT_BF16:
            x.w = (uint32_t)bits << 16;
            return x.f;
        case CR_FORMAT_F16:
            return half_value((uint16_t)bits);
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2:
            return cr_float_value(dtype, bits);
        case CR_FORMAT_INT:
            break;
    }
    return cr_dtype_kind(dtype) == CR_KIND_SINT ? (double)((int64_t)(bits << unused) >> unused) : (double)bits;
}

static __int128 integer_of(const uint8_t *bytes, size_t len, bool is_signed) {
    unsigned __int128 x = is_signed && len && bytes[len - 1] >> 7 ? ~(unsigned __int128)0 : 0;
    memcpy(&x, bytes, len < sizeof x ? len : sizeof x);
    return (__int128)x;
}

/* What CUB's reproducible sums keep: three bins of 13 bits (f64: of 40), by Ahrens, Demmel and Nguyen (TOMS 46, 2020):
 * n·2^(-2·bits - 1)·max|x| + 7·u·|Σx|. */
static double binned_bound(const cr_partial *exact, double sum, double u) {
    static const cr_finish_opts defaults;
    cr_value largest;
    cr_partial_finish(exact, CR_OP_NORMINF, &defaults, &largest);
    const int bits = exact->dtype == CR_F64 ? 40 : 13;
    return ldexp((double)exact->n, -2 * bits - 1) * value_of(largest.bytes, largest.dtype) + 7 * u * fabs(sum);
}

/* Sums of floats: exact to the type, or within n·u·Σ|x| (of a reproducible one: of its own bound), or wrong. */
static void compare_float_sum(const cr_partial *exact, const void *bytes, cr_dtype dtype, bench_candidate *c) {
    const cr_finish_opts own = {.result_dtype = dtype}, defaults = {.ddof = 0};
    cr_value rounded, wide, absolute;
    cr_partial_finish(exact, CR_OP_SUM, &own, &rounded);
    cr_partial_finish(exact, CR_OP_SUM, &defaults, &wide);
    cr_partial_finish(exact, CR_OP_NORM1, &defaults, &absolute);
    double want = value_of(wide.bytes, CR_F64), got = value_of(bytes, dtype);
    double units = value_of(absolute.bytes, CR_F64) * (double)exact->n;
    cr_dtype added = c->group == GROUP_LADDER && exact->dtype != CR_F64 ? CR_F32 : dtype; /* its sums come as f64 */
    double u = added == CR_F64 ? 0x1p-53 : added == CR_F32 ? 0x1p-24 : added == CR_F16 ? 0x1p-11 : 0x1p-8;
    const bool binned = c->group == GROUP_CUB && c->variant == BENCH_GPU_TO_GPU;
    const double bound = binned ? binned_bound(exact, want, u) : u * units;
    c->error = fabs(got - want) / fabs(want);
    bool same = memcmp(rounded.bytes, bytes, cr_dtype_size(dtype)) == 0;
    c->answer = same ? ANSWER_EXACT : fabs(got - want) <= bound && isfinite(got) ? ANSWER_BOUND : ANSWER_WRONG;
}

/* Products of floats in the kernel's own precision: within n·u, or beyond what that precision holds. */
static void compare_float_prod(const cr_partial *exact, double want, double got, bench_candidate *c) {
    double u = exact->dtype == CR_F64 ? 0x1p-53 : 0x1p-24;
    c->error = got == want ? 0 : fabs(got - want) / fabs(want);
    c->answer = c->error <= 1.1 * u * (double)exact->n ? ANSWER_BOUND : ANSWER_WRONG;
}

void bench_compare(const cr_partial *exact, cr_op op, const void *bytes, cr_dtype dtype, bench_candidate *c) {
    static const cr_finish_opts defaults;
    if (op == CR_OP_SUM && cr_dtype_kind((cr_dtype)exact->dtype) == CR_KIND_FLOAT) {
        compare_float_sum(exact, bytes, dtype, c);
        return;
    }
    cr_value want;
    cr_partial_finish(exact, op, &defaults, &want);
    bool same = want.error.code == CR_OK;
    if (op == CR_OP_PROD && cr_dtype_kind((cr_dtype)exact->dtype) == CR_KIND_FLOAT) {
        compare_float_prod(exact, value_of(want.bytes, CR_F64), value_of(bytes, dtype), c);
        return;
    }
    bool wraps = false; /* a peer's integer has the elements' type, as it was asked */
    if (op == CR_OP_SUM) {
        const bool is_signed = cr_dtype_kind((cr_dtype)exact->dtype) == CR_KIND_SINT;
        const size_t size = cr_dtype_size(dtype);
        wraps = same && c->group != GROUP_FOLD && size <= want.len && memcmp(bytes, want.bytes, size) == 0;
        same = same && integer_of(bytes, size, is_signed) == integer_of(want.bytes, want.len, is_signed);
    } else {
        same = same && memcmp(want.bytes, bytes, want.len) == 0;
    }
    c->answer = same ? ANSWER_EXACT : wraps ? ANSWER_WRAPS : ANSWER_WRONG;
    c->error = same ? 0 : INFINITY;
}

void bench_compare_value(const cr_partial *exact, const cr_value *got, bench_candidate *c) {
    static const cr_finish_opts defaults;
    cr_value want;
    cr_partial_finish(exact, got->op, &defaults, &want);
    bool same = got->error.code == want.error.code;
    if (same && want.error.code == CR_OK)
        same = got->dtype == want.dtype && got->len == want.len && memcmp(got->bytes, want.bytes, want.len) == 0;
    c->answer = same ? ANSWER_EXACT : ANSWER_WRONG;
    c->error = same ? 0 : INFINITY;
}
