/* axis_walk: how threads go over the elements of reductions along an axis (axis.h says how work is cut). One kernel for rows and
 * columns: a row is a line of one unit, and its team's threads take neighbouring units.
 *
 * An accumulator A is a struct made once per thread and tile:
 *   A::SIZE, A::C, A::U, A::BLOCKS  bytes of an element; elements of a wide unit, each of which it keeps apart; units in flight;
 *                                   blocks wanted on a multiprocessor
 *   A::FIRST                        what is missing of the last units: the first unit again, or else zeros
 *   A::record                       what is known of one output, plain words; at most CR_AXIS_RECORD bytes
 *   begin(args, v)                  before any element, with the first units; the warp is together. A thread may have none (zeros)
 *   tile(args, v, j, left)          U units, the j-th of this thread and on; only the first `left` are elements
 *   one(args, e, bits, j)           a single element, which is element e of the j-th unit
 *   take(args, e, index, step)      the record of element e's output; its element of unit j lies at index + j·step along the axis
 *   empty(args), merge(r, other), finish(args, r, output)     of records; finish: one thread, writes the answers
 * Thread: GPU. Owner: the launcher. */
#ifndef CURED_KERNELS_CUDA_AXIS_WALK_CUH
#define CURED_KERNELS_CUDA_AXIS_WALK_CUH

#include "kernels/cuda/axis_round.cuh"
#include "kernels/cuda/simt.cuh"

template <int SIZE> struct cr_axis_unit {
    typedef uint32_t type;
};
template <> struct cr_axis_unit<8> {
    typedef uint64_t type;
};

template <class R> CR_DEVICE R cr_axis_from_lane(const R &r, uint32_t mask) {
    union {
        R r;
        uint32_t word[sizeof(R) / 4];
    } x = {r};
#pragma unroll
    for (unsigned i = 0; i < sizeof(R) / 4; i++) x.word[i] = __shfl_xor_sync(CR_EVERYONE, x.word[i], mask);
    return x.r;
}

/* Where a thread is at work. */
template <int SIZE> struct cr_axis_spot {
    static constexpr uint32_t C = SIZE < 4 ? 4 / SIZE : 1;
    const uint8_t *from;     /* its first unit */
    uint64_t index, column;  /* the first element's place along the axis; of element 0 of its units, the output's number */
    uint64_t stride;         /* bytes to its next unit */
    uint32_t count, head, tail; /* units; elements that only the first holds after `head`, and the last before `tail` (0: all) */

    CR_IN void none() {
        from = nullptr;
        index = column = stride = 0;
        count = head = tail = 0;
    }

    CR_IN void set(const cr_axis_args &args, uint64_t block, uint64_t unit, uint32_t s, uint64_t low) {
        const cr_axis_launch &at = args.at;
        const uint8_t *begin = args.data + block * at.n * at.inner * SIZE + unit * at.unit;
        uint64_t lines = at.n;
        column = block * at.inner + unit * (at.wide ? C : 1);
        if (C > 1 && at.rows && at.wide) {
            const uint32_t shift = (uint32_t)(uintptr_t)begin % 4;
            const uint64_t bytes = shift + at.n * SIZE;
            begin -= shift;
            lines = (bytes + 3) / 4;
            index = (low + s) * C - shift / SIZE;
            cut(lines, low, s, at);
            if (low + s == 0) head = shift / SIZE;
            if (count != 0 && low + s + (uint64_t)(count - 1) * at.m == lines - 1) tail = (uint32_t)bytes % 4 / SIZE;
        } else {
            index = low + s;
            cut(lines, low, s, at);
        }
        from = begin + (low + s) * at.line;
        stride = at.line * at.m;
    }
    CR_IN void cut(uint64_t lines, uint64_t low, uint32_t s, const cr_axis_launch &at) {
        const uint64_t high = min(low + at.per_split, lines);
        count = low + s < high ? (uint32_t)((high - low - s + at.m - 1) / at.m) : 0;
    }
};

/* U units from p on. */
template <class A>
CR_DEVICE void cr_axis_load(typename cr_axis_unit<A::SIZE>::type (&v)[A::U], const cr_axis_launch &at, const uint8_t *p,
                            uint64_t stride, int left) {
    typedef typename cr_axis_unit<A::SIZE>::type unit;
    const bool whole = !at.odd && (A::SIZE >= 4 || at.wide);
    if (whole && left >= A::U) {
#pragma unroll
        for (int i = 0; i < A::U; i++, p += stride) v[i] = *reinterpret_cast<const unit *>(p);
        return;
    }
#pragma unroll
    for (int i = 0; i < A::U; i++, p += stride) {
        v[i] = A::FIRST && i > 0 ? v[0] : 0;
        if (i >= left) continue;
        if (whole) {
            v[i] = *reinterpret_cast<const unit *>(p);
        } else if (A::SIZE == 2 && !at.odd) {
            v[i] = *reinterpret_cast<const uint16_t *>(p);
        } else {
            v[i] = (unit)cr_load_one<A::SIZE>(p);
        }
    }
}

/* Single elements [from, to) of a unit at p, the thread's j-th. */
template <class A>
CR_DEVICE void cr_axis_edge(A &acc, const cr_axis_args &args, const uint8_t *p, uint32_t from, uint32_t to, uint32_t j) {
#pragma unroll
    for (uint32_t e = 0; e < (uint32_t)A::C; e++) {
        if (e >= from && e < to) acc.one(args, e, cr_load_one<A::SIZE>(p + e * A::SIZE), j);
    }
}

template <class A> CR_DEVICE void cr_axis_run(A &acc, const cr_axis_args &args, const cr_axis_spot<A::SIZE> &spot) {
    typename cr_axis_unit<A::SIZE>::type v[A::U];
    uint32_t j = 0, end = spot.count;
    const bool edges = A::C > 1 && (spot.head | spot.tail) != 0;
    if (edges && spot.tail != 0) end--;
    if (edges && spot.head != 0) j = 1;
    const uint8_t *p = spot.from + j * spot.stride;
    cr_axis_load<A>(v, args.at, p, spot.stride, (int)end - (int)j);
    acc.begin(args, v);
    if (edges && spot.head != 0)
        cr_axis_edge(acc, args, spot.from, spot.head, spot.count == 1 && spot.tail != 0 ? spot.tail : A::C, 0);
    while ((int)j < (int)end) {
        acc.tile(args, v, j, (int)end - (int)j);
        j += A::U;
        p += A::U * spot.stride;
        if ((int)j < (int)end) cr_axis_load<A>(v, args.at, p, spot.stride, (int)end - (int)j);
    }
    if (edges && spot.tail != 0 && !(spot.head != 0 && spot.count == 1))
        cr_axis_edge(acc, args, spot.from + end * spot.stride, 0, spot.tail, end);
}

/* Merges the records of a team's threads, of one unit each; everybody gets what there is. */
template <class A> CR_DEVICE void cr_axis_meet(const cr_axis_launch &at, typename A::record &r, typename A::record *room) {
    uint32_t step = at.p_tile * at.m / 2;
    for (; step >= at.p_tile && step >= CR_WARP; step /= 2) {
        room[threadIdx.x] = r;
        __syncthreads();
        A::merge(r, room[threadIdx.x ^ step]);
        __syncthreads();
    }
    for (; step >= at.p_tile && step > 0; step /= 2) A::merge(r, cr_axis_from_lane(r, step));
}

/* Where the record of element e of this thread's unit lies, of one split. */
template <class A>
CR_DEVICE typename A::record *cr_axis_left(const cr_axis_args &args, uint64_t tile, uint32_t split, uint32_t e) {
    const uint32_t team = args.at.p_tile * args.at.m, place = threadIdx.x / team * args.at.p_tile + threadIdx.x % args.at.p_tile;
    const uint32_t many = CR_GPU_THREADS / args.at.m; /* units of a tile */
    typename A::record *all = reinterpret_cast<typename A::record *>(args.scratch + args.at.records);
    return all + ((tile * args.at.splits + split) * A::C + e) * many + place;
}

CR_DEVICE bool cr_axis_last(const cr_axis_args &args, uint64_t tile) {
    __shared__ uint32_t last;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *ticket = &reinterpret_cast<cr_axis_head *>(args.scratch)->tickets[tile];
        __threadfence();
        last = atomicAdd(ticket, 1u) + 1 == args.at.splits;
        if (last) *ticket = 0;
        __threadfence();
    }
    __syncthreads();
    return last != 0;
}

template <class A> CR_DEVICE typename A::record cr_axis_fetch(const typename A::record *from) {
    union {
        typename A::record r;
        unsigned long long word[sizeof(typename A::record) / 8];
    } x;
#pragma unroll
    for (unsigned i = 0; i < sizeof(x) / 8; i++) x.word[i] = __ldcg(reinterpret_cast<const unsigned long long *>(from) + i);
    return x.r;
}

/* The last block of a tile merges what all splits left. */
template <class A>
CR_DEVICE void cr_axis_collect(const cr_axis_args &args, uint64_t tile, uint32_t s, uint64_t column, uint32_t own,
                               typename A::record *room) {
    for (uint32_t e = 0; e < A::C; e++) {
        typename A::record r = A::empty(args);
        for (uint32_t split = s; split < args.at.splits; split += args.at.m)
            A::merge(r, cr_axis_fetch<A>(cr_axis_left<A>(args, tile, split, e)));
        cr_axis_meet<A>(args.at, r, room);
        if (s == 0 && e < own) A::finish(args, r, column + e);
    }
}

template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_axis_walk(const __grid_constant__ cr_axis_args args) {
    __shared__ typename A::record room[CR_GPU_THREADS];
    static_assert(sizeof(typename A::record) <= CR_AXIS_RECORD, "a record is larger than its place");
    const cr_axis_launch &at = args.at;
    const uint32_t team = at.p_tile * at.m, groups = CR_GPU_THREADS / team;
    const uint32_t c = threadIdx.x % at.p_tile, s = threadIdx.x % team / at.p_tile;
    for (uint64_t work = blockIdx.x; work < at.tiles * at.splits; work += gridDim.x) {
        const uint64_t tile = at.splits == 1 ? work : work / at.splits;
        const uint32_t split = at.splits == 1 ? 0 : (uint32_t)(work % at.splits);
        uint64_t block = tile * groups + threadIdx.x / team, unit = c;
        if (at.units > at.p_tile) {
            const uint64_t across = (at.units + at.p_tile - 1) / at.p_tile;
            block = tile / across;
            unit = tile % across * at.p_tile + c;
        }
        cr_axis_spot<A::SIZE> spot;
        uint32_t own = 0; /* outputs of this thread's unit */
        spot.none();
        if (block < at.outer && unit < at.units) {
            spot.set(args, block, unit, s, split * at.per_split);
            own = at.rows || !at.wide ? 1 : A::C;
        }
        A acc;
        cr_axis_run(acc, args, spot);
        const uint64_t step = (uint64_t)at.m * (at.rows && at.wide ? A::C : 1);
        typename A::record together = acc.take(args, 0, spot.index, step);
#pragma unroll
        for (uint32_t e = 0; e < (uint32_t)A::C; e++) {
            typename A::record r = together;
            if (e > 0) {
                r = acc.take(args, e, spot.index + (at.rows ? e : 0), step);
                if (at.rows || !at.wide) {
                    if (at.rows && at.wide) A::merge(together, r);
                    if (e + 1 < (uint32_t)A::C) continue;
                    r = together;
                }
            } else if (A::C > 1 && (at.rows || !at.wide)) {
                continue;
            }
            const uint32_t which = at.rows || !at.wide ? 0 : e;
            cr_axis_meet<A>(at, r, room);
            if (s != 0) continue;
            if (at.splits > 1) *cr_axis_left<A>(args, tile, split, which) = r;
            else if (which < own) A::finish(args, r, spot.column + which);
        }
        if (at.splits > 1 && cr_axis_last(args, tile)) cr_axis_collect<A>(args, tile, s, spot.column, own, room);
    }
}

template <class A> int cr_axis_launch_walk(const cr_axis_args *args, void *stream) {
    return CR_LAUNCH(cr_axis_walk<A>, args->at.blocks, CR_GPU_THREADS, stream, *args);
}

#endif
