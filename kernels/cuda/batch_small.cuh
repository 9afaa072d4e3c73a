/* batch_small: extrema, counts and bits of one warp's elements.
 *
 * Thread: GPU; the warp is together. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_BATCH_SMALL_CUH
#define CURED_KERNELS_CUDA_BATCH_SMALL_CUH

#include "kernels/cuda/acc_counts.cuh"
#include "kernels/cuda/acc_keys.cuh"
#include "kernels/cuda/batch.cuh"

/* Whether any of a vector's elements is wanted (see cr_wanted), several of them at a time. */
template <cr_dtype D>
CR_DEVICE bool cr_batch_holds(const uint4 &v, uint64_t bits, bool nan) {
    constexpr unsigned WIDTH = cr_width(D);
    bool found = false;
    if constexpr (WIDTH >= 4) {
#pragma unroll
        for (unsigned e = 0; e < CR_GPU_VECTOR / WIDTH; e++) found |= cr_wanted<D>(cr_element<WIDTH>(v, e), bits, nan);
        return found;
    } else {
        const uint32_t low = (uint32_t)bits;
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const uint32_t w = cr_word(v, i);
            if (WIDTH == 2 && cr_is_float(D) && nan)
                found |= cr_keys<D>::nan_lanes(w) != 0;
            else if (WIDTH == 2)
                found |= cr_nonzero_halves(w ^ low * 0x00010001u) != 0x80008000u;
            else
                found |= cr_nonzero_bytes(w ^ low * 0x01010101u) != 0x80808080u;
        }
        return found;
    }
}

/* The number of the unit's first element that is wanted, in every lane; all ones when there is none. */
template <cr_dtype D>
CR_DEVICE uint32_t cr_batch_find(const uint4 (&v)[CR_BATCH_VECTORS], uint64_t bits, bool nan) {
    constexpr unsigned WIDTH = cr_width(D), LANES = CR_GPU_VECTOR / WIDTH;
    uint32_t which = CR_BATCH_VECTORS, at = UINT32_MAX;
    uint4 first = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int j = CR_BATCH_VECTORS - 1; j >= 0; j--) {
        const bool holds = cr_batch_holds<D>(v[j], bits, nan);
        which = holds ? (uint32_t)j : which;
        first = cr_choose(holds, v[j], first);
    }
    if (which < CR_BATCH_VECTORS) {
        uint32_t element = 0;
#pragma unroll
        for (int e = (int)LANES - 1; e >= 0; e--)
            element = cr_wanted<D>(cr_element<WIDTH>(first, (unsigned)e), bits, nan) ? (uint32_t)e : element;
        at = (which * CR_WARP + cr_lane()) * LANES + element;
    }
    return __reduce_min_sync(CR_EVERYONE, at);
}

CR_DEVICE uint32_t cr_batch_least(uint32_t key) { return __reduce_min_sync(CR_EVERYONE, key); }
CR_DEVICE uint64_t cr_batch_least(uint64_t key) { return cr_warp_min(key); }

/* BOOLS: elements are 0 or not, and become 0 or 1. */
template <cr_dtype D, bool BOOLS>
CR_DEVICE void cr_batch_extrema() {
    constexpr unsigned WIDTH = cr_width(D);
    constexpr bool FLOAT = cr_is_float(D);
    constexpr uint64_t TOP = 1ull << (8 * WIDTH - 1);
    typedef typename cr_key_types<D, WIDTH == 8>::keys keys;
    typedef typename cr_key_types<D, WIDTH == 8>::key key;
    uint4 v[CR_BATCH_VECTORS];
    cr_batch_load<WIDTH, true>(v, 0); /* the same element twice changes nothing, and the first of them counts */
    if (BOOLS) {
#pragma unroll
        for (int j = 0; j < CR_BATCH_VECTORS; j++)
            v[j] = make_uint4(cr_nonzero_bytes(v[j].x) >> 7, cr_nonzero_bytes(v[j].y) >> 7, cr_nonzero_bytes(v[j].z) >> 7,
                              cr_nonzero_bytes(v[j].w) >> 7);
    }
    keys best;
    best.clear();
    uint32_t nans = 0;
#pragma unroll
    for (int j = 0; j < CR_BATCH_VECTORS; j++) {
        if (FLOAT)
            best.vec_masked(v[j], nans);
        else
            best.vec(v[j]);
    }
    const key least = cr_batch_least((key)best.best_least()), most = (key)~cr_batch_least((key)~best.best_most());
    cr_batch_forget(v);
    const uint32_t nowhere = CR_BATCH_NOWHERE;
    uint32_t least_at = nowhere, most_at = nowhere, nan_at = nowhere;
    if (FLOAT && __any_sync(CR_EVERYONE, nans != 0)) nan_at = cr_batch_find<D>(v, 0, true);
    /* Beyond an infinity's key are only NaNs: there was no number. */
    if (!FLOAT || least <= (key)(cr_infinity(D) | TOP)) {
        least_at = cr_batch_find<D>(v, cr_bits_of<D>(least), false);
        most_at = cr_batch_find<D>(v, cr_bits_of<D>(most), false);
    }
    const uint64_t places = (uint64_t)(least_at & nowhere) | (uint64_t)(most_at & nowhere) << 13 |
                            (uint64_t)(nan_at & nowhere) << 26;
    cr_batch_leave(least, most, 0, places);
}

/* D stands for all types of its width that count alike. */
template <cr_dtype D>
CR_DEVICE void cr_batch_counts() {
    uint4 v[CR_BATCH_VECTORS];
    cr_batch_load<cr_width(D), false>(v, 0);
    cr_fold_counts<D> counts;
    counts.some_nonzero = counts.some_nans = 0;
    counts.nonzero = counts.nans = 0;
#pragma unroll
    for (int j = 0; j < CR_BATCH_VECTORS; j++) counts.vec(v[j]);
    counts.flush();
    cr_batch_leave(__reduce_add_sync(CR_EVERYONE, (uint32_t)counts.nonzero),
                   __reduce_add_sync(CR_EVERYONE, (uint32_t)counts.nans), 0, 0);
}

/* Of whole words; the elements within a word meet at the end. D: bool, or u8 … u64 by width. */
template <cr_dtype D>
CR_DEVICE void cr_batch_bits() {
    constexpr unsigned WIDTH = cr_width(D);
    uint4 v[CR_BATCH_VECTORS];
    cr_batch_load<WIDTH, true>(v, 0); /* the same element again changes nothing but, by an odd number, what is odd */
    const uint32_t first[2] = {cr_fold_bits<D>::word(v[0], 0), cr_fold_bits<D>::word(v[0], 1)};
    uint32_t all[2] = {UINT32_MAX, UINT32_MAX}, any[2] = {0, 0}, odd[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < CR_BATCH_VECTORS; j++) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const uint32_t w = cr_fold_bits<D>::word(v[j], i);
            all[i % 2] &= w;
            any[i % 2] |= w;
            odd[i % 2] ^= w;
        }
    }
    uint64_t a = cr_pair(__reduce_and_sync(CR_EVERYONE, all[0]), __reduce_and_sync(CR_EVERYONE, all[1]));
    uint64_t o = cr_pair(__reduce_or_sync(CR_EVERYONE, any[0]), __reduce_or_sync(CR_EVERYONE, any[1]));
    uint64_t x = cr_pair(__reduce_xor_sync(CR_EVERYONE, odd[0]), __reduce_xor_sync(CR_EVERYONE, odd[1]));
    const uint64_t mask = WIDTH == 8 ? UINT64_MAX : (1ull << 8 * (WIDTH % 8)) - 1;
    for (unsigned half = 32; half >= 8 * WIDTH; half /= 2) {
        a &= a >> half;
        o |= o >> half;
        x ^= x >> half;
    }
    if (cr_batch_mine().n % 2 != 0)
        x ^= cr_pair(__shfl_sync(CR_EVERYONE, first[0], 0), WIDTH == 8 ? __shfl_sync(CR_EVERYONE, first[1], 0) : 0);
    cr_batch_leave(a | ~mask, o & mask, x & mask, 0);
}

#endif
