/* extent: what a thread sees of its part of a tile at one glance: the largest element, the smallest and the least magnitude. Types
 * of all widths are seen as float32 of the same order (float64: its upper half), for which there are instructions that
 * compare; none of it is arithmetic, so that it does not matter whose float32 it is.
 *
 * Thread: GPU. Owner: none; values and pure functions. */
#ifndef CURED_KERNELS_CUDA_FOLD_EXTENT_CUH
#define CURED_KERNELS_CUDA_FOLD_EXTENT_CUH

#include "kernels/cuda/thread/keys.cuh"
#include "kernels/cuda/thread/float.cuh"

/* Compared by: not a number is within no limits. */
struct cr_glimpse_limits {
    float top, bottom, least; /* at most, at least, more than that in magnitude */

    CR_DEVICE void nothing() { top = bottom = least = __uint_as_float(0x7fffffffu); }

    /* What is beside a number in the order, that is, in its keys. */
    CR_DEVICE static uint32_t key(uint32_t bits) { return (uint32_t)cr_key_of<CR_F32>(bits); }
    CR_DEVICE static float number(uint32_t of) { return __uint_as_float((uint32_t)cr_bits_of<CR_F32>(of)); }

    /* How far left a type's bits lie in its float32. */
    template <class E> CR_DEVICE static constexpr int left() { return E::SIZE != 2 ? 0 : E::MANTISSA == 7 ? 16 : 13; }

    /* A sum's window, without zero. */
    template <class E> CR_DEVICE void window(const cr_span &bounds) {
        const uint32_t most = min(bounds.most << left<E>(), 0x7f7fffffu);
        top = __uint_as_float(most);
        bottom = -top;
        least = __uint_as_float(min(bounds.least << left<E>(), 0x7f7fffffu));
    }
    /* What the lowest and the highest of a warp are among float32, as keys of which the lower one is the better. */
    template <cr_dtype D, class rank> CR_DEVICE static uint32_t bar(bool highest, rank of) {
        if (of == CR_NO_RANK(rank)) return ~0u;
        return highest ? ~key(pattern<D>((rank)~of)) : key(pattern<D>(of));
    }
    /* And not beyond a warp's own extrema (bars as above), of float64 not beside them either, for its lower half is not seen; or
     * worse than those of others, which may have a place behind. */
    template <cr_dtype D> CR_DEVICE void beyond(uint32_t low, uint32_t high, uint32_t others_low, uint32_t others_high) {
        if (low == ~0u) {
            nothing();
            return;
        }
        const uint32_t beside = D == CR_F64;
        low = others_low < low ? others_low + 1 : low + beside;
        high = others_high < high ? others_high + 1 : high + beside;
        bottom = number(max(low, key(__float_as_uint(bottom))));
        top = number(min(~high, key(__float_as_uint(top))));
    }
    /* An element's float32, from its key. */
    template <cr_dtype D, class rank> CR_DEVICE static uint32_t pattern(rank of) {
        const uint64_t bits = cr_bits_of<D>(of);
        if (D == CR_F64) return (uint32_t)(bits >> 32);
        return cr_width(D) == 2 ? half<D>((uint32_t)bits) : (uint32_t)bits;
    }
    /* Of the lower half; float16: not its value, but in the same order. */
    template <cr_dtype D> CR_DEVICE static uint32_t half(uint32_t bits) {
        return D == CR_BF16 ? bits << 16 : (bits & 0x8000u) << 16 | (bits & 0x7fffu) << 13;
    }
};

CR_DEVICE float cr_number(uint32_t bits) { return __uint_as_float(bits); }
/* The larger, or a NaN. */
CR_DEVICE float cr_larger(float a, float b) {
#if defined(__CUDA_ARCH__)
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a != a || b != b ? __uint_as_float(0x7fffffffu) : a > b ? a : b;
#endif
}

/* Of the lanes' largest and least magnitudes, as a type sees them. */
template <class E> CR_DEVICE cr_span cr_glimpse_meet(uint32_t most, uint32_t near) {
    cr_span seen;
    seen.most = __reduce_max_sync(CR_EVERYONE, most) >> cr_glimpse_limits::left<E>();
    seen.least = __reduce_min_sync(CR_EVERYONE, near) >> cr_glimpse_limits::left<E>();
    seen.least = seen.most >> E::FIELD >= (uint32_t)E::TOP ? ~0u : seen.least - 1;
    return seen;
}

/* BOTH: largest and smallest; otherwise `most` is of magnitudes. */
template <cr_dtype D, bool BOTH, bool HALVES = cr_width(D) == 2>
struct cr_glimpse {
    float most, least, near;

    CR_DEVICE cr_glimpse(float a, float b, float c) : most(a), least(b), near(c) {}
    CR_DEVICE explicit cr_glimpse(float x) : most(BOTH ? x : fabsf(x)), least(x), near(fabsf(x)) {}
    CR_DEVICE void also(const cr_glimpse &x) {
        most = cr_larger(most, x.most);
        if (BOTH) least = fminf(least, x.least);
        near = fminf(near, x.near);
    }
    CR_DEVICE explicit cr_glimpse(const uint4 &v) : cr_glimpse(cr_number(v.y)) {
        also(cr_glimpse(cr_number(v.w)));
        if (D == CR_F64) return;
        cr_glimpse other(cr_number(v.x));
        other.also(cr_glimpse(cr_number(v.z)));
        also(other);
    }
    template <int N> CR_DEVICE explicit cr_glimpse(const uint4 (&v)[N]) : cr_glimpse(v[0]) {
#pragma unroll
        for (int j = 1; j < N; j++) also(cr_glimpse(v[j]));
    }
    /* The warp's magnitudes; least ~0 if there are zeros or NaNs. */
    template <class E> CR_DEVICE cr_span meet() const {
        return cr_glimpse_meet<E>(max(__float_as_uint(most) & 0x7fffffffu, BOTH ? __float_as_uint(least) & 0x7fffffffu : 0),
                                  __float_as_uint(near));
    }
    CR_DEVICE bool within(const cr_glimpse_limits &limits) const {
        return most <= limits.top && (!BOTH || least >= limits.bottom) && near > limits.least;
    }
    /* Zeros too, which differ in their signs alone: not where a limit is one. */
    CR_DEVICE bool around_zero(const cr_glimpse_limits &limits) const {
        return most <= limits.top && least >= limits.bottom && limits.top > 0 && limits.bottom < 0;
    }
};

/* Of both halves of a word, in a way that costs nothing beside a comparison. */
template <cr_dtype D>
CR_DEVICE uint32_t cr_magnitudes(uint32_t w) {
#if defined(__CUDA_ARCH__)
    uint32_t found;
    if (D == CR_F16) asm("abs.f16x2 %0, %1;" : "=r"(found) : "r"(w));
    else asm("abs.bf16x2 %0, %1;" : "=r"(found) : "r"(w));
    return found;
#else
    return w & 0x7fff7fffu;
#endif
}

/* Two elements in a word are compared at once, and meet at the end. */
template <cr_dtype D, bool BOTH>
struct cr_glimpse<D, BOTH, true> {
    uint32_t most, least, near;

    CR_DEVICE explicit cr_glimpse(uint32_t w) : most(BOTH ? w : cr_magnitudes<D>(w)), least(w), near(cr_magnitudes<D>(w)) {}
    CR_DEVICE void also(const cr_glimpse &x) {
        most = cr_pick<D, true, false>(most, x.most);
        if (BOTH) least = cr_pick<D, false, true>(least, x.least);
        near = cr_pick<D, false, true>(near, x.near);
    }
    CR_DEVICE explicit cr_glimpse(const uint4 &v) : cr_glimpse(v.x) {
        cr_glimpse other(v.z);
        also(cr_glimpse(v.y));
        other.also(cr_glimpse(v.w));
        also(other);
    }
    template <int N> CR_DEVICE explicit cr_glimpse(const uint4 (&v)[N]) : cr_glimpse(v[0]) {
#pragma unroll
        for (int j = 1; j < N; j++) also(cr_glimpse(v[j]));
    }
    CR_DEVICE static float lower(uint32_t w) { return cr_number(cr_glimpse_limits::half<D>(w & 0xffffu)); }
    CR_DEVICE static float upper(uint32_t w) { return cr_number(cr_glimpse_limits::half<D>(w >> 16)); }
    template <class E> CR_DEVICE cr_span meet() const {
        const cr_glimpse<CR_F32, BOTH> low(lower(most), lower(least), lower(near)), high(upper(most), upper(least), upper(near));
        cr_glimpse<CR_F32, BOTH> both(low);
        both.also(high);
        return both.template meet<E>();
    }
    CR_DEVICE bool within(const cr_glimpse_limits &limits) const {
        return cr_larger(lower(most), upper(most)) <= limits.top &&
               (!BOTH || fminf(lower(least), upper(least)) >= limits.bottom) &&
               fminf(lower(near), upper(near)) > limits.least;
    }
    /* Whether the least magnitude is at most so many binades below the largest. */
    template <int BINADES> CR_DEVICE bool spans() const {
        float high = fmaxf(fabsf(lower(most)), fabsf(upper(most)));
        if (BOTH) high = fmaxf(high, fmaxf(fabsf(lower(least)), fabsf(upper(least))));
        return __fmul_rn(fminf(lower(near), upper(near)), (float)(1 << BINADES)) > high;
    }
    CR_DEVICE bool around_zero(const cr_glimpse_limits &limits) const {
        return cr_larger(lower(most), upper(most)) <= limits.top && fminf(lower(least), upper(least)) >= limits.bottom &&
               limits.top > 0 && limits.bottom < 0;
    }
};

#endif
