/* walk: how threads go over the elements of reductions along an axis (axis.h says how work is cut). One kernel for rows and
 * columns: a row is a line of one unit, and its team's threads take neighbouring units.
 *
 * An accumulator A is a struct made once per thread and tile:
 *   A::SIZE, A::C, A::U, A::BLOCKS  bytes of an element; elements of a wide unit, each of which it keeps apart; units in flight;
 *                                   blocks wanted on a multiprocessor
 *   A::FIRST                        what is missing of the last units: the first unit again, or else zeros
 *   A::record                       what is known of one output, plain words; at most CR_AXIS_RECORD bytes
 *   begin(args, v)                  before any element, with the first units; the warp is together. A thread may have none (zeros)
 *   tile(args, v, j, left, p, stride)   U units, the j-th of this thread and on; only the first `left` are elements. They came by
 *                                   cr_axis_load from p
 *   one(args, e, bits, j)           a single element, which is element e of the j-th unit
 *   A::AHEAD                        its loads run ahead (ahead.cuh); its tile() takes what is to be done once the units are no longer
 *                                   needed in shared memory, as a last argument
 *   A::TOGETHER                     of a row's, element 0's record is that of all
 *   A::APART                        several rounds, and what splits left, have copies of the code: rows are 2 to 7 % faster so
 *   take(args, e, spot)             the record of element e's output; unit j begins at spot.place(args.at, j) along the axis
 *   quick(r, first, step)           merges records of the lanes apart by `first` to `step`, if there is a way that is quicker than the
 *                                   general one; the warp is together
 *   empty(args), merge(r, other), finish(args, r, output)     of records; finish: one thread, writes the answers; false where it could
 *                                   not, and then the tile goes to the list of those that a second launch folds
 *   stop(), is_hard(r)              whether that is certain already: of a thread's output (A::STOPS), of a record (A::REDO)
 * Thread: GPU. Owner: the launcher. */
#ifndef CURED_KERNELS_CUDA_AXIS_WALK_CUH
#define CURED_KERNELS_CUDA_AXIS_WALK_CUH

#include "kernels/cuda/axis/ahead.cuh"
#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/axis/position.cuh"

template <class R> CR_DEVICE R cr_axis_from_lane(const R &r, uint32_t mask) {
    union {
        R r;
        uint32_t word[sizeof(R) / 4];
    } x = {r};
#pragma unroll
    for (unsigned i = 0; i < sizeof(R) / 4; i++) x.word[i] = __shfl_xor_sync(CR_EVERYONE, x.word[i], mask);
    return x.r;
}

/* Sums over the lanes apart by `first` to `step`, of all of them alike. */
CR_DEVICE int64_t cr_axis_lanes_sum(int64_t x, uint32_t first, uint32_t step) {
    for (; step >= first; step /= 2) x += __shfl_xor_sync(CR_EVERYONE, x, step);
    return x;
}
/* The same of numbers of several words. False: some have too many bits for it. */
template <int W> CR_DEVICE bool cr_words_quick(cr_words<W> &r, uint32_t first, uint32_t step) {
    const int64_t low = (int64_t)r.word[0], top = (int64_t)r.word[W - 1];
    uint64_t beyond = (uint64_t)(low >> 57 ^ low >> 63);
#pragma unroll
    for (int i = 1; i < W; i++) beyond |= r.word[i] ^ (uint64_t)(low >> 63);
    if (__all_sync(CR_EVERYONE, beyond == 0)) {
        r.set(cr_axis_lanes_sum(low, first, step));
        return true;
    }
    if (!__all_sync(CR_EVERYONE, top >> 55 == top >> 63)) return false; /* 32 of them have room to spare */
    for (; step >= first; step /= 2) r.add(cr_axis_from_lane(r, step));
    return true;
}

/* Single elements [from, to) of a unit at p, the thread's j-th. */
template <class A>
CR_DEVICE void cr_axis_edge(A &acc, const cr_axis_args &args, const uint8_t *p, uint32_t from, uint32_t to, uint32_t j) {
#pragma unroll 1
    for (uint32_t e = from; e < to; e++) {
        if (cr_axis_counts<A::SIZE>(args, p + e * A::SIZE)) acc.one(args, e, cr_load_one<A::SIZE>(p + e * A::SIZE), j);
    }
}

template <class A> using cr_axis_feed = cr_axis_ahead<A, typename cr_axis_unit<A::SIZE>::type, A::AHEAD>;
/* Whether the records of a block meet where its loads arrive, because both together have no room. */
template <class A>
static constexpr bool cr_axis_is_tight = sizeof(typename cr_axis_feed<A>::Shared) + sizeof(typename A::record) * CR_GPU_THREADS > 47 << 10;

template <class A> CR_DEVICE void cr_axis_run(A &acc, const cr_axis_args &args, const cr_axis_spot<A::SIZE> &spot) {
    typename cr_axis_unit<A::SIZE>::type v[A::U];
    const bool edges = A::C > 1 && (spot.head | spot.tail) != 0;
    const int end = (int)spot.count - (edges && spot.tail != 0);
    int j = edges && spot.head != 0;
    const uint8_t *p = spot.from + j * spot.stride;
    const uint64_t step = spot.stride * (uint32_t)A::U >> (args.at.vector == 1 ? 0 : sizeof v[0] == 8 ? 1 : 2);
    cr_axis_load<A, A::U>(v, args, p, spot.stride, end - j);
    acc.begin(args, v);
    if (edges && spot.head != 0)
        cr_axis_edge(acc, args, spot.from, spot.head, spot.count == 1 && spot.tail != 0 ? spot.tail : A::C, 0);
    while (j < end) {
        if constexpr (A::STOPS) {
            if (acc.stop()) break;
        }
        acc.tile(args, v, (uint32_t)j, end - j, p, spot.stride);
        j += A::U;
        p += step;
        if (j < end) cr_axis_load<A, A::U>(v, args, p, spot.stride, end - j);
    }
    if (edges && spot.tail != 0 && !(spot.head != 0 && spot.count == 1))
        cr_axis_edge(acc, args, spot.from + end * spot.stride, 0, spot.tail, (uint32_t)end);
}

/* The same with loads that run ahead. */
template <class A>
CR_DEVICE void cr_axis_run_ahead(A &acc, const cr_axis_args &args, const cr_axis_spot<A::SIZE> &spot, cr_axis_feed<A> &feed) {
    typename cr_axis_unit<A::SIZE>::type v[A::U];
    const bool edges = A::C > 1 && (spot.head | spot.tail) != 0;
    const int end = (int)spot.count - (edges && spot.tail != 0), all = feed.together ? (int)feed.total : end;
    int j = edges && spot.head != 0;
    const uint8_t *p = spot.from + j * spot.stride;
    const uint64_t step = spot.stride * (uint32_t)A::U >> (args.at.vector == 1 ? 0 : sizeof v[0] == 8 ? 1 : 2);
    if (feed.on && j < all) feed.get(v, end - j);
    else cr_axis_load<A, A::U>(v, args, p, spot.stride, end - j);
    acc.begin(args, v);
    if (edges && spot.head != 0)
        cr_axis_edge(acc, args, spot.from, spot.head, spot.count == 1 && spot.tail != 0 ? spot.tail : A::C, 0);
    while (j < all) {
        acc.tile(args, v, (uint32_t)j, end - j, p, spot.stride, [&] {
            if (feed.on) feed.got();
        });
        j += A::U;
        p += step;
        if constexpr (A::STOPS) {
            if (feed.leave(acc.stop())) break;
        }
        if (j >= all) break;
        if (feed.on) feed.get(v, end - j);
        else cr_axis_load<A, A::U>(v, args, p, spot.stride, end - j);
    }
    if (edges && spot.tail != 0 && !(spot.head != 0 && spot.count == 1))
        cr_axis_edge(acc, args, spot.from + end * spot.stride, 0, spot.tail, (uint32_t)end);
}

/* Where a block's records meet. */
template <class A> CR_DEVICE typename A::record *cr_axis_place(typename cr_axis_feed<A>::Shared &ahead) {
    if constexpr (cr_axis_is_tight<A>) {
        static_assert(sizeof ahead >= sizeof(typename A::record) * CR_GPU_THREADS, "the place is too small");
        return reinterpret_cast<typename A::record *>(&ahead);
    } else {
        __shared__ typename A::record room[CR_GPU_THREADS];
        return room;
    }
}
template <class A> CR_DEVICE void cr_axis_clear_place(const cr_axis_launch &at, cr_axis_feed<A> &feed) {
    if (at.m == 1 || at.p_log + at.m_log <= 5) return; /* the meeting is by shuffles */
    feed.close();
    __syncthreads();
}

/* Merges the records of a team's threads, of one unit each; everybody gets what there is. */
template <class A> CR_DEVICE void cr_axis_meet(const cr_axis_launch &at, typename A::record &r, typename A::record *room) {
    uint32_t step = 1u << (at.p_log + at.m_log) >> 1;
    for (; step >= at.p_tile && step >= CR_WARP; step /= 2) {
        room[threadIdx.x] = r;
        __syncthreads();
        A::merge(r, room[threadIdx.x ^ step]);
        __syncthreads();
    }
    if (step >= at.p_tile && step > 0 && A::quick(r, at.p_tile, step)) return;
    for (; step >= at.p_tile && step > 0; step /= 2) A::merge(r, cr_axis_from_lane(r, step));
}

/* Where the record of element e of this thread's unit lies, of one split. */
template <class A>
CR_DEVICE typename A::record *cr_axis_left(const cr_axis_args &args, uint64_t tile, uint32_t split, uint32_t e) {
    const cr_axis_launch &at = args.at;
    const uint32_t place = (threadIdx.x >> (at.p_log + at.m_log) << at.p_log) + (threadIdx.x & (at.p_tile - 1));
    const uint32_t many = CR_GPU_THREADS >> at.m_log; /* units of a tile */
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

/* What all splits left of a tile's output e, of which this thread takes every m-th. */
template <class A>
CR_DEVICE typename A::record cr_axis_collect(const cr_axis_args &args, uint64_t tile, uint32_t s, uint32_t e) {
    typename A::record r = A::empty(args);
    for (uint32_t split = s; split < args.at.splits; split += args.at.m)
        A::merge(r, cr_axis_fetch<A>(cr_axis_left<A>(args, tile, split, e)));
    return r;
}

/* The row of this thread's team in a round. */
CR_DEVICE uint64_t cr_axis_row(const cr_axis_launch &at, uint64_t tile, uint32_t round) {
    const uint32_t teams = CR_GPU_THREADS >> at.m_log;
    return tile * teams * at.rounds + (threadIdx.x >> at.m_log) + (uint64_t)round * teams;
}

/* Where this thread is at work on a row, one of several that its team has. */
template <class A>
CR_DEVICE void cr_axis_begin_row(const cr_axis_args &args, cr_axis_spot<A::SIZE> &spot, uint64_t row, uint32_t s) {
    spot.none();
    if (row >= args.at.outer) return;
    spot.column = row;
    spot.template set<A::AHEAD>(args, args.data + row * args.at.n * A::SIZE, s, 0);
}

/* Where this thread is at work in a tile; gives how many outputs its unit has. */
template <class A>
CR_DEVICE uint32_t cr_axis_begin(const cr_axis_args &args, cr_axis_spot<A::SIZE> &spot, uint64_t tile, uint32_t split, uint32_t s) {
    const cr_axis_launch &at = args.at;
    uint64_t block = (tile * CR_GPU_THREADS + threadIdx.x) >> (at.p_log + at.m_log), unit = threadIdx.x & (at.p_tile - 1);
    if (at.units > at.p_tile) {
        const uint64_t across = (at.units + at.p_tile - 1) >> at.p_log;
        block = tile / across;
        unit += tile % across << at.p_log;
    }
    spot.none();
    if (block >= at.outer || unit >= at.units) return 0;
    spot.column = block * at.inner + unit * (at.wide ? A::C : 1);
    spot.template set<A::AHEAD>(args, args.data + block * at.n * at.inner * A::SIZE + unit * at.unit, s, split * at.per_split);
    return at.rows || !at.wide ? 1 : A::C;
}

/* The records of a thread's outputs, together where its units hold one output only. */
template <class A>
CR_DEVICE void cr_axis_take(A &acc, const cr_axis_args &args, const cr_axis_spot<A::SIZE> &spot, typename A::record (&r)[A::C]) {
    const bool single = args.at.rows || !args.at.wide;
    r[0] = acc.take(args, 0, spot);
    if (A::TOGETHER && single) return;
#pragma unroll
    for (uint32_t e = 1; e < (uint32_t)A::C; e++) {
        r[e] = acc.take(args, e, spot);
        if (single && args.at.wide) A::merge(r[0], r[e]);
    }
}

/* Rows by teams within a warp, several in turn; thread s of a team keeps what the s-th of them gave, and answers it. */
template <class A> CR_DEVICE bool cr_axis_rounds(const cr_axis_args &args, uint64_t tile, typename A::record *room, cr_axis_feed<A> &feed) {
    const cr_axis_launch &at = args.at;
    const uint32_t s = threadIdx.x & (at.m - 1);
    typename A::record in_registers;
    typename A::record &kept = cr_axis_is_tight<A> ? room[threadIdx.x] : in_registers; /* such rows have nothing else there */
    kept = A::empty(args);
    for (uint32_t round = 0; round < at.rounds; round++) {
        cr_axis_spot<A::SIZE> spot;
        typename A::record r[A::C];
        cr_axis_begin_row<A>(args, spot, cr_axis_row(at, tile, round), s);
        A acc;
        if constexpr (A::AHEAD) cr_axis_run_ahead(acc, args, spot, feed); /* which is not open */
        else cr_axis_run(acc, args, spot);
        cr_axis_take(acc, args, spot, r);
        cr_axis_meet<A>(at, r[0], room);
        if (s == round) kept = r[0];
        if constexpr (A::REDO) {
            if (__any_sync(CR_EVERYONE, A::is_hard(r[0]))) return false;
        }
    }
    const uint64_t row = cr_axis_row(at, tile, s);
    return s >= at.rounds || row >= at.outer || A::finish(args, kept, row);
}

/* A tile: its rounds, one after the other, and then a turn more where splits left what the last block collects. What is done in a
 * turn is much code, so each step stands in one place, for all that a tile may be. With several rounds thread s of a team keeps what
 * the s-th of them gave, in its own place of the room, and answers it after the last. */
template <class A>
CR_DEVICE bool cr_axis_tile(const cr_axis_args &args, uint64_t tile, uint32_t split, typename A::record *room, cr_axis_feed<A> &feed) {
    const cr_axis_launch &at = args.at;
    const uint32_t s = threadIdx.x >> at.p_log & (at.m - 1);
    const uint32_t rounds = A::APART ? 1 : at.rounds, turns = A::APART ? 1 : rounds + (at.splits > 1);
    const uint32_t outputs = at.rows || !at.wide ? 1 : A::C; /* of a unit */
    uint32_t own = 0;                                        /* of this thread's unit */
    cr_axis_spot<A::SIZE> spot;
    bool done = true;
    spot.none();
#pragma unroll 1
    for (uint32_t turn = 0; turn < turns; turn++) {
        const bool collects = turn == rounds;
        typename A::record r[A::C];
        if (!collects) {
            if (rounds > 1) cr_axis_begin_row<A>(args, spot, cr_axis_row(at, tile, turn), s);
            else own = cr_axis_begin<A>(args, spot, tile, split, s);
            A acc;
            if constexpr (A::AHEAD) {
                feed.open(args, spot);
                cr_axis_run_ahead(acc, args, spot, feed);
                if constexpr (cr_axis_is_tight<A>) cr_axis_clear_place<A>(at, feed);
            } else {
                cr_axis_run(acc, args, spot);
            }
            cr_axis_take(acc, args, spot, r);
        } else if (!cr_axis_last(args, tile)) {
            break;
        }
#pragma unroll 1
        for (uint32_t which = 0; which < outputs; which++) {
            if (collects) r[0] = cr_axis_collect<A>(args, tile, s, which);
            cr_axis_meet<A>(at, r[0], room);
            bool answers = s == 0 && which < own;
            uint64_t output = spot.column + which;
            if (rounds > 1) {
                if constexpr (A::REDO) {
                    if (__any_sync(CR_EVERYONE, A::is_hard(r[0]))) return false;
                }
                if (s == turn) room[threadIdx.x] = r[0];
                output = cr_axis_row(at, tile, s);
                answers = turn + 1 == rounds && s < rounds && output < at.outer;
                if (answers) r[0] = room[threadIdx.x];
            } else if (!collects && at.splits > 1) {
                if (s == 0) *cr_axis_left<A>(args, tile, split, which) = r[0];
                answers = false;
            }
            if (answers) done &= A::finish(args, r[0], output);
#pragma unroll
            for (uint32_t e = 1; e < (uint32_t)A::C; e++) r[e - 1] = r[e];
        }
    }
    if constexpr (A::APART) {
        if (at.splits == 1 || !cr_axis_last(args, tile)) return done;
        for (uint32_t which = 0; which < outputs; which++) {
            typename A::record r = cr_axis_collect<A>(args, tile, s, which);
            cr_axis_meet<A>(at, r, room);
            if (s == 0 && which < own) done &= A::finish(args, r, spot.column + which);
        }
    }
    return done;
}

template <class A> CR_DEVICE bool cr_axis_work(const cr_axis_args &args, uint64_t work, typename A::record *room, cr_axis_feed<A> &feed) {
    if constexpr (A::APART) {
        if (args.at.rounds > 1) return cr_axis_rounds<A>(args, work, room, feed);
    }
    uint64_t tile = work;
    uint32_t split = 0;
    if (args.at.splits != 1) tile = work / args.at.splits, split = (uint32_t)(work % args.at.splits);
    return cr_axis_tile<A>(args, tile, split, room, feed);
}
CR_DEVICE cr_axis_head *cr_axis_head_of(const cr_axis_args &args) { return reinterpret_cast<cr_axis_head *>(args.scratch); }
CR_DEVICE uint32_t *cr_axis_list(const cr_axis_args &args) { return reinterpret_cast<uint32_t *>(cr_axis_head_of(args) + 1); }

/* A block is done with the list; the last one leaves it empty, or as it was. */
CR_DEVICE void cr_axis_leave_list(const cr_axis_args &args) {
    cr_axis_head *head = cr_axis_head_of(args);
    if (__ldcg(&head->hard) == 0) return; /* for no block was there anything */
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(&head->hard_blocks, 1u) + 1 != gridDim.x) return;
    head->hard_blocks = head->taken = 0;
    if (!args.keep) head->hard = 0;
}

template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_axis_walk(const __grid_constant__ cr_axis_args args) {
    static_assert(sizeof(typename A::record) <= CR_AXIS_RECORD, "a record is larger than its place");
    __shared__ typename cr_axis_feed<A>::Shared ahead;
    typename A::record *room = cr_axis_place<A>(ahead);
    cr_axis_feed<A> feed(ahead);
    cr_let_the_next_begin();
    const uint64_t works = args.at.tiles * args.at.splits;
    for (uint64_t work = blockIdx.x; work < works; work += gridDim.x) {
        const bool done = cr_axis_work<A>(args, work, room, feed);
        if constexpr (A::REDO) {
            if (__syncthreads_or(!done) && threadIdx.x == 0)
                cr_axis_list(args)[atomicAdd(&cr_axis_head_of(args)->hard, 1u)] = (uint32_t)(work / args.at.splits);
        }
    }
    feed.close();
}

/* The tiles of the list, by an accumulator that takes everything; the last block leaves the list empty. */
template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) cr_axis_again(const __grid_constant__ cr_axis_args args) {
    __shared__ typename A::record room[CR_GPU_THREADS];
    static_assert(sizeof(typename A::record) <= CR_AXIS_RECORD, "a record is larger than its place");
    __shared__ typename cr_axis_feed<A>::Shared ahead;
    cr_axis_feed<A> feed(ahead);
    cr_after_the_last();
    __shared__ uint64_t taken;
    cr_axis_head *head = cr_axis_head_of(args);
    const uint64_t works = (uint64_t)__ldcg(&head->hard) * args.at.splits;
    for (;;) { /* as blocks come */
        if (threadIdx.x == 0) taken = works == 0 ? 0 : atomicAdd(&head->taken, 1u);
        __syncthreads();
        const uint64_t work = taken;
        __syncthreads();
        if (work >= works) break;
        const uint64_t tile = cr_axis_list(args)[work / args.at.splits];
        cr_axis_work<A>(args, tile * args.at.splits + work % args.at.splits, room, feed);
    }
    cr_axis_leave_list(args);
}

template <class A> int cr_axis_launch_walk(const cr_axis_args *args, void *stream) {
    return CR_LAUNCH(cr_axis_walk<A>, args->at.blocks, CR_GPU_THREADS, stream, *args);
}
/* The kernel after a walk, whose blocks come as the walk's leave. */
template <class A> int cr_axis_launch_again(const cr_axis_args *args, void *stream) {
    return cr_launch(cr_axis_again<A>, args->at.hard_blocks, CR_GPU_THREADS, stream, true, *args);
}

#endif
