/* ordered: the fold of elements whose cells rise: segments, and rows along an axis, under a mask too. A tile that one cell has goes to
 * registers, and nobody looks for the cell of each element. In other tiles neighbouring lanes of one cell meet by shuffles, so that each
 * cell takes one atomic of 32 elements, and not one of each.
 *
 * Thread: GPU. Owner: none; it has no shared memory. */
#ifndef CURED_KERNELS_CUDA_KEYS_ORDERED_CUH
#define CURED_KERNELS_CUDA_KEYS_ORDERED_CUH

#include "kernels/cuda/keys/fold.cuh"

/* The elements of a warp, a row of a tile: a lane's cell, CR_KEYS_NOBODY: none; and which lanes are the first of their cell, lane 0 among them. */
struct cr_keys_row {
    uint32_t cell, leads;
};

template <class T> struct cr_keys_ordered : cr_keys_fold<T, false> {
    typedef cr_keys_fold<T, false> Fold;
    typedef typename T::Bits Bits;
    static constexpr int U = T::U, WORDS = Fold::WORDS;
    static constexpr bool NARROW = T::GREATEST && (T::PLACED || T::SIZE <= 4); /* a digit has 32 bits */
    using Fold::args, Fold::lane;
    uint32_t near; /* of all lanes: the segment of the last element that was looked at */

    CR_DEVICE cr_keys_ordered(const cr_keys_args &of) : Fold(of, nullptr), near(0) {}

    CR_DEVICE bool counts(uint64_t i) const { return args.mask.kind == CR_MASK_NONE || cr_keys_counts(args.mask, i); }

    /* The one cell of the elements from `at` to `last`; CR_KEYS_NOBODY: there are several, or none. */
    CR_DEVICE uint32_t only(uint64_t at, uint64_t last) {
        if (args.source == CR_KEYS_AXIS) {
            const uint32_t cell = (uint32_t)at / args.span;
            return (uint32_t)last / args.span == cell ? cell : CR_KEYS_NOBODY;
        }
        const cr_keys_found found = cr_keys_segment(args, min(near, args.keys_below - 1), at);
        const bool one = found.cell != CR_KEYS_NOBODY && last < cr_keys_load(args, found.near + 1);
        near = __shfl_sync(CR_EVERYONE, found.near, 0); /* offsets that change meanwhile may differ from lane to lane */
        return __shfl_sync(CR_EVERYONE, one ? found.cell : CR_KEYS_NOBODY, 0);
    }

    /* Element i of each lane's, one by one. */
    CR_DEVICE cr_keys_row search(uint64_t i, uint64_t end) {
        cr_keys_found found = {CR_KEYS_NOBODY, 0};
        if (i < end) found = cr_keys_segment(args, min(near, args.keys_below - 1), i);
        near = __reduce_max_sync(CR_EVERYONE, found.near);
        const bool same = __shfl_sync(CR_EVERYONE, found.cell, (lane - 1) % CR_WARP) == found.cell;
        return {found.cell, __ballot_sync(CR_EVERYONE, !same) | 1};
    }
    /* The row that begins at element `at`, by the borders behind `near`, a lane each. */
    CR_DEVICE cr_keys_row row(uint64_t at, uint64_t end) {
        const uint64_t i = at + lane;
        if (args.source == CR_KEYS_AXIS) {
            const uint32_t cell = (uint32_t)i / args.span, leads = __ballot_sync(CR_EVERYONE, cell * args.span == (uint32_t)i) | 1;
            return {i < end ? cell : CR_KEYS_NOBODY, leads};
        }
        const uint64_t number = (uint64_t)near + 1 + lane, border = number <= args.keys_below ? cr_keys_load(args, number) : ~0ull;
        const bool within = border < at + CR_WARP;
        const uint32_t place = border > at ? (uint32_t)(border - at) % CR_WARP : 0; /* not before, unless they are wrong */
        const uint32_t leads = __reduce_or_sync(CR_EVERYONE, within ? 1u << place : 0), count = (uint32_t)__popc(__ballot_sync(CR_EVERYONE, within));
        if (count == CR_WARP || count != (uint32_t)__popc(leads)) return search(i, end); /* there are more, or empty segments */
        const uint32_t cell = near + (uint32_t)__popc(leads & ((2u << lane) - 1));
        near += count;
        const bool has = i < end && cell < args.keys_below && (cell != 0 || i >= cr_keys_load(args, 0));
        return {has ? cell : CR_KEYS_NOBODY, leads | 1};
    }

    /* What the next lanes of this lane's cell have, which are so many with it, so that the first has all of it. */
    CR_DEVICE void gather(uint32_t lanes, long long (&digit)[WORDS]) const {
#pragma unroll
        for (uint32_t far = 1; far < CR_WARP; far *= 2) {
            long long other[WORDS];
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                other[i] = NARROW ? (long long)__shfl_down_sync(CR_EVERYONE, (uint32_t)digit[i], far) : __shfl_down_sync(CR_EVERYONE, digit[i], far);
            if (far < lanes) this->join(digit, other);
        }
    }
    /* A row's elements; `here`: the lane's counts. */
    CR_DEVICE void put(const cr_keys_row &row, bool here, Bits bits, uint64_t i) {
        long long digit[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) digit[k] = 0;
        const uint32_t counted = __ballot_sync(CR_EVERYONE, here), nonzero = __ballot_sync(CR_EVERYONE, here && T::is_nonzero(bits));
        if (counted == 0) return;
        if (here) this->digits_of(row.cell, bits, i, digit);
        if (row.leads == 1) { /* one cell, which goes on in registers */
            this->turn_to(__shfl_sync(CR_EVERYONE, row.cell, __ffs((int)counted) - 1));
            this->join(this->run, digit);
            this->run_count += here;
            this->run_nonzero += here && T::is_nonzero(bits);
            return;
        }
        const uint32_t above = row.leads >> lane >> 1, lanes = above == 0 ? CR_WARP - lane : (uint32_t)__ffs((int)above);
        const uint32_t own = (lanes == CR_WARP ? ~0u : (1u << lanes) - 1) << lane;
        if constexpr (T::DIGITS > 0) gather(lanes, digit);
        const bool leads = (row.leads >> lane & 1) != 0 && (counted & own) != 0;
        const uint32_t cell = __shfl_sync(CR_EVERYONE, row.cell, leads ? __ffs((int)(counted & own)) - 1 : lane);
        if (leads) this->add(cell, digit, (uint32_t)__popc(counted & own), (uint32_t)__popc(nonzero & own));
    }
    CR_DEVICE void whole(uint32_t cell, uint64_t at, uint64_t end) {
        Bits bits[U];
        uint32_t keys[U];
        this->load(at, end, bits);
        this->cut(bits);
#pragma unroll
        for (int j = 0; j < U; j++) {
            const uint64_t i = at + lane + j * CR_WARP;
            keys[j] = i < end && counts(i) ? cell : CR_KEYS_NOBODY;
        }
        this->go_on(cell, cell, at, bits, keys);
    }
    /* Rows are put one by one, by one piece of code: eight of them take twice as long to compile. */
    CR_DEVICE void tile(uint64_t at, uint64_t end) {
        const uint32_t cell = only(at, min(end, at + Fold::TILE) - 1);
        if (cell != CR_KEYS_NOBODY) {
            whole(cell, at, end);
            return;
        }
#pragma unroll
        for (int j = 0; j < U; j++) {
            const uint64_t i = at + lane + j * CR_WARP;
            if (i < end) cr_prefetch(args.data + i * T::SIZE);
        }
#pragma unroll 1
        for (int j = 0; j < U; j++) {
            const uint64_t i = at + lane + j * CR_WARP;
            const Bits bits = i < end ? this->load(i) & this->wanted() : 0;
            const cr_keys_row of = row(at + j * CR_WARP, end);
            put(of, of.cell != CR_KEYS_NOBODY && counts(i), bits, i);
        }
    }
};

template <class T> __global__ void __launch_bounds__(CR_KEYS_THREADS, CR_KEYS_BLOCKS) cr_keys_ordered_kernel(const __grid_constant__ cr_keys_args args) {
    cr_keys_ordered<T> fold(args);
    const uint64_t low = blockIdx.x * args.per_block, high = min(args.n, low + args.per_block);
    for (uint64_t at = low + threadIdx.x / CR_WARP * fold.TILE; at < high; at += CR_KEYS_THREADS / CR_WARP * fold.TILE) fold.tile(at, high);
    fold.flush();
}

/* Whether the cells of neighbouring elements rise, and it pays: sums of rows of up to 32 elements lost 8 % by this fold. */
static inline bool cr_keys_rise(const cr_keys_args *args) {
    const bool sums = args->kind == CR_KEYS_SUM || args->kind == CR_KEYS_SQUARE;
    return args->source == CR_KEYS_OFFSETS || (args->source == CR_KEYS_AXIS && args->inner == 1 && (!sums || args->span > CR_WARP));
}

#endif
