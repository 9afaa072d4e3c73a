/* counts: extrema, counts and bits of one warp's elements.
 *
 * Thread: GPU; the warp is together. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_PACK_COUNTS_CUH
#define CURED_KERNELS_CUDA_PACK_COUNTS_CUH

#include "kernels/cuda/fold/counts.cuh"
#include "kernels/cuda/thread/keys.cuh"
#include "kernels/cuda/pack/warp.cuh"

/* The number of the unit's first element with these bits, or of its first NaN, in every lane; all ones when there is none. */
template <cr_dtype D, bool NAN_WANTED>
CR_DEVICE uint32_t cr_pack_find(const uint4 (&v)[CR_PACK_VECTORS], uint64_t bits) {
    uint32_t number;
    const bool found = cr_first<D, NAN_WANTED, CR_WARP>(v, bits, number);
    return __reduce_min_sync(CR_EVERYONE, found ? cr_lane() * (CR_GPU_VECTOR / cr_width(D)) + number : UINT32_MAX);
}

CR_DEVICE uint32_t cr_pack_least(uint32_t key) { return __reduce_min_sync(CR_EVERYONE, key); }
CR_DEVICE uint64_t cr_pack_least(uint64_t key) { return cr_warp_min(key); }

template <cr_dtype D, bool MOST, bool NUMBERS>
CR_DEVICE typename cr_best_types<D, MOST, NUMBERS, cr_width(D) == 8>::best cr_pack_best(const uint4 (&v)[CR_PACK_VECTORS]) {
    typedef typename cr_best_types<D, MOST, NUMBERS, cr_width(D) == 8>::best best;
    best found(v[0]);
#pragma unroll
    for (int j = 1; j < CR_PACK_VECTORS; j++) found.also(best(v[j]));
    return found;
}

/* The best of one side among the warp's elements, as a rank. */
template <cr_dtype D, bool MOST, class RANK>
CR_DEVICE RANK cr_pack_best_rank(const uint4 (&v)[CR_PACK_VECTORS], bool &nans) {
    const auto best = cr_pack_best<D, MOST, false>(v);
    nans = cr_is_float(D) && __any_sync(CR_EVERYONE, best.nan());
    return cr_pack_least((RANK)(nans ? cr_pack_best<D, MOST, true>(v).rank() : best.rank()));
}

/* Where the best of one side is: nowhere when all are NaNs, and anywhere when nobody asks. */
template <cr_dtype D, class RANK>
CR_DEVICE uint32_t cr_pack_place(const uint4 (&v)[CR_PACK_VECTORS], RANK best, uint64_t bits, bool wanted) {
    if (cr_is_float(D) && best == CR_NO_RANK(RANK)) return CR_PACK_NOWHERE;
    return wanted ? cr_pack_find<D, false>(v, bits) : 0;
}

/* Integers as unsigned ones with the same order: bools become 0 or 1, and signed ones have their signs turned. */
template <cr_dtype D>
CR_DEVICE void cr_pack_unsign(uint4 (&v)[CR_PACK_VECTORS]) {
    constexpr unsigned WIDTH = cr_width(D);
    const cr_dtype dtype = (cr_dtype)cr_pack_mine().dtype;
    if (WIDTH == 1 && dtype == CR_BOOL) {
#pragma unroll
        for (int j = 0; j < CR_PACK_VECTORS; j++)
            v[j] = make_uint4(cr_nonzero_bytes(v[j].x) >> 7, cr_nonzero_bytes(v[j].y) >> 7, cr_nonzero_bytes(v[j].z) >> 7,
                              cr_nonzero_bytes(v[j].w) >> 7);
    }
    if (dtype == D || dtype == CR_BOOL) return;
    const uint32_t odd = WIDTH == 1 ? 0x80808080u : WIDTH == 2 ? 0x80008000u : 0x80000000u, even = WIDTH == 8 ? 0 : odd;
#pragma unroll
    for (int j = 0; j < CR_PACK_VECTORS; j++) v[j] = make_uint4(v[j].x ^ even, v[j].y ^ odd, v[j].z ^ even, v[j].w ^ odd);
}

/* Floats of one byte as f8_e4m3, which has one NaN and the same order of numbers. */
CR_DEVICE void cr_pack_one_nan(uint4 (&v)[CR_PACK_VECTORS]) {
    if (cr_pack_mine().dtype != CR_F8_E5M2) return;
    const uint32_t nan = 0x7f7f7f7fu;
#pragma unroll
    for (int j = 0; j < CR_PACK_VECTORS; j++) {
        v[j].x |= cr_sign_bytes(cr_nan_bytes<CR_F8_E5M2>(v[j].x)) & nan;
        v[j].y |= cr_sign_bytes(cr_nan_bytes<CR_F8_E5M2>(v[j].y)) & nan;
        v[j].z |= cr_sign_bytes(cr_nan_bytes<CR_F8_E5M2>(v[j].z)) & nan;
        v[j].w |= cr_sign_bytes(cr_nan_bytes<CR_F8_E5M2>(v[j].w)) & nan;
    }
}

/* D: a float, f8_e4m3 for both of one byte, or the unsigned integer that stands for all of its width. */
template <cr_dtype D>
CR_DEVICE void cr_pack_extrema() {
    constexpr unsigned WIDTH = cr_width(D);
    constexpr bool FLOAT = cr_is_float(D);
    typedef typename cr_best_types<D, false, false, WIDTH == 8>::rank rank;
    uint4 v[CR_PACK_VECTORS];
    cr_pack_load<WIDTH>(v, 0, true); /* the same element twice changes nothing, and the first of them counts */
    if (!FLOAT) cr_pack_unsign<D>(v);
    if (FLOAT && WIDTH == 1) cr_pack_one_nan(v);
    const uint32_t wants = cr_pack_mine().wants, nowhere = CR_PACK_NOWHERE;
    rank least = 0, most = 0; /* most: the key's complement */
    uint32_t least_at = nowhere, most_at = nowhere, nan_at = nowhere;
    bool nans = false;
    if (wants & (CR_WANTS_MIN | CR_WANTS_ARGMIN)) least = cr_pack_best_rank<D, false, rank>(v, nans);
    if (wants & (CR_WANTS_MAX | CR_WANTS_ARGMAX)) most = cr_pack_best_rank<D, true, rank>(v, nans);
    cr_pack_forget(v);
    if (FLOAT && nans) nan_at = wants & (CR_WANTS_ARGMIN | CR_WANTS_ARGMAX) ? cr_pack_find<D, true>(v, 0) : 0;
    if (wants & (CR_WANTS_MIN | CR_WANTS_ARGMIN))
        least_at = cr_pack_place<D, rank>(v, least, cr_bits_of<D>(least), wants & CR_WANTS_ARGMIN);
    if (wants & (CR_WANTS_MAX | CR_WANTS_ARGMAX))
        most_at = cr_pack_place<D, rank>(v, most, cr_bits_of<D>((rank)~most), wants & CR_WANTS_ARGMAX);
    const uint64_t places = (uint64_t)(least_at & nowhere) | (uint64_t)(most_at & nowhere) << 13 |
                            (uint64_t)(nan_at & nowhere) << 26;
    cr_pack_leave(least, (rank)~most, 0, places);
}

/* D stands for all types of its width that count alike. */
template <cr_dtype D>
CR_DEVICE void cr_pack_counts(const uint4 (&v)[CR_PACK_VECTORS]) {
    cr_fold_counts<D> counts;
    counts.some_nonzero = counts.some_nans = 0;
    counts.nonzero = counts.nans = 0;
#pragma unroll
    for (int j = 0; j < CR_PACK_VECTORS; j++) counts.vec(v[j]);
    counts.flush();
    cr_pack_leave(__reduce_add_sync(CR_EVERYONE, (uint32_t)counts.nonzero),
                   __reduce_add_sync(CR_EVERYONE, (uint32_t)counts.nans), 0, 0);
}

/* Of whole words; the elements within a word meet at the end. D: bool, or u8 … u64 by width. What the unit lacks is its first element:
 * the same again changes nothing but, by an odd number, what is odd. */
template <cr_dtype D>
CR_DEVICE void cr_pack_bits(const uint4 (&v)[CR_PACK_VECTORS]) {
    constexpr unsigned WIDTH = cr_width(D);
    const uint32_t first[2] = {cr_fold_bits<D>::word(v[0], 0), cr_fold_bits<D>::word(v[0], 1)};
    uint32_t all[2] = {UINT32_MAX, UINT32_MAX}, any[2] = {0, 0}, odd[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < CR_PACK_VECTORS; j++) {
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
    if (cr_pack_mine().n % 2 != 0)
        x ^= cr_pair(__shfl_sync(CR_EVERYONE, first[0], 0), WIDTH == 8 ? __shfl_sync(CR_EVERYONE, first[1], 0) : 0);
    cr_pack_leave(a | ~mask, o & mask, x & mask, 0);
}

#endif
