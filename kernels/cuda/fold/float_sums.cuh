/* float_sums: Σx, Σ|x| and Σx² of floats, and sums of terms of pairs (walk/paired.cuh makes them), exactly, by anchors
 * (kernels/cpu/family/anchor.h explains them).
 *
 * Each warp places its anchors by what it has loaded itself: nothing else is read, and no other warp waited for. It looks at its
 * part of a tile first: inside the window, one to three additions an element; elsewhere the anchors move if the part fits around
 * its own largest element, or take a level more; what spreads over more goes to bins (bins.cuh). So an outlier moves
 * them twice. NaNs and infinities are counted and taken out.
 *
 * What a warp has found is integers times a unit of its own; fold/digits.cuh says how they meet.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_FLOAT_SUMS_CUH
#define CURED_KERNELS_CUDA_FOLD_FLOAT_SUMS_CUH

#include "kernels/cuda/fold/bins.cuh"

/* Which of the state's sums a sum is, and how its digits lie: all that there are, and no more than the sum's limbs hold; or (AROUND) those
 * around a sample. LIMBS: of the state; narrower types have as many as float32. */
template <class E, int KIND> struct cr_sum_layout {
    static constexpr bool TERM = false, AROUND = E::SIZE == 8, SQUARE = KIND == CR_SUM_SQUARE;
    static constexpr int AT = KIND, GRID = SQUARE ? E::SQUARE_GRID : E::GRID;
    static constexpr int LIMBS = SQUARE ? (AROUND ? CR_F64_SQUARE_LIMBS : CR_F32_SQUARE_LIMBS) : AROUND ? CR_F64_LIMBS : CR_F32_LIMBS;
    static constexpr int SPAN = 32 * (SQUARE ? E::SQUARE_LIMBS : E::SUM_LIMBS) / CR_DIGIT_BITS;
    static constexpr int DIGITS = E::ONE_WINDOW ? (SPAN < 5 ? SPAN : 5) : SQUARE ? 25 : AROUND ? 15 : 13;
};
template <class T, int OF, int KIND> struct cr_sum_layout<cr_term_of<T, OF>, KIND> {
    using E = cr_term_of<T, OF>;
    static constexpr bool TERM = true, AROUND = E::WIDE;
    static constexpr int AT = OF, GRID = E::SUM_GRID, LIMBS = E::SUM_LIMBS, SPAN = 32 * LIMBS / CR_DIGIT_BITS;
    static constexpr int DIGITS = AROUND ? (E::SPLIT ? 25 : 15) : SPAN < 25 ? SPAN : 25;
};

/* What a warp knows of its sum beside the accumulators. One word, because each is little and a register is dear: as words of their own they
 * made squares of bfloat16 and of float64 spill. */
struct cr_sum_marks {
    uint32_t fill : 16;                          /* additions to the bins since the last drain, or since the bins were cleared */
    uint32_t streak : 4;                         /* tiles that took them, see tile */
    uint32_t placed : 1;                         /* this warp's anchors are its own */
    uint32_t used : 1, widened : 1, drained : 1; /* its bins, wide levels, digits hold something */
    uint32_t loose : 1;                          /* this thread has put something into the state's limbs or counters */
};

/* Four vectors in flight in each thread need no register spilled; four blocks of them fill the memory's pipe. */
template <class E, int KIND, int U = 4, int RESIDENT = CR_GPU_BLOCKS_PER_SM>
struct cr_float_sum : cr_sum_marks {
    using Window = cr_window<E, KIND>;
    typedef typename E::number number;
    typedef cr_anchors<number> Anchors;
    typedef typename Anchors::word word;
    using Bins = cr_bins<E, KIND>;
    using Layout = cr_sum_layout<E, KIND>;
    static constexpr int SIZE = E::SIZE, UNROLL = U, BLOCKS = RESIDENT, LEVELS = Window::LEVELS, LANES = CR_GPU_VECTOR / SIZE;
    static constexpr int WARPS = CR_GPU_THREADS / 32;
    static constexpr bool SELF = true, CHUNKED = true, SQUARE = KIND == CR_SUM_SQUARE, TERM = Layout::TERM, WIDE = Layout::AROUND;
    static constexpr bool PAIR = Window::SPLIT, HALF = E::ONE_WINDOW;
    static constexpr int GROUP = Window::GROUP, MOST = Window::ADDS - (TERM ? 3 : 0); /* before a drain; rows take more */
    static constexpr int AT = Layout::AT, LIMBS = Layout::LIMBS, GRID = Layout::GRID;
    static constexpr int DIGITS = Layout::DIGITS, ROOM = cr_digits_room(DIGITS);
    static_assert(DIGITS <= CR_SUM_DIGITS, "the state has no words for them");

    struct Shared {
        long long digit[WARPS][DIGITS];
        long long wide[HALF ? 1 : CR_GPU_THREADS]; /* each thread's level below the usual ones */
        uint32_t special[WARPS][3];
        typename Bins::Shared bins;
    };
    struct Sample {
        uint64_t element;
    };

    const cr_fold_args *args;
    cr_sum_state *to;
    word acc[LEVELS];
    int a, unit; /* the anchors; exponent of digit 0's unit */
    cr_span bounds;
    uint32_t adds; /* to each level, since the last drain; those passed twice count twice as many */

    CR_DEVICE static constexpr uint32_t passes(int level) { return PAIR && level > 0 && level + 1 < LEVELS ? 2 : 1; }
    CR_DEVICE number anchor(int level) const { return Anchors::make(a + Window::SCALE - Window::STEP * level); }
    CR_DEVICE word base(int level) const { return bits(anchor(level)); }

    /* Where float64's digits lie: the same element for all blocks. It is not waited for before the block's own. Who makes terms has one. */
    CR_DEVICE Sample sample(const cr_fold_args &of) {
        Sample found = {0};
        if (WIDE && !TERM && of.plan.vectors != 0 && of.plan.shift == 0) found.element = *(const uint64_t *)(cr_body<SIZE>(of) + of.plan.vectors / 2);
        return found;
    }

    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, const Sample &sample) {
        args = &of;
        to = &of.state->sums[AT];
        unit = GRID;
        if (WIDE) {
            const int field = (int)(sample.element >> E::MANTISSA) & E::TOP;
            const int down = Window::BELOW + Window::STEP, middle = Window::place(field != 0 && field != E::TOP ? field : E::BIAS);
            unit = max(middle - down - (ROOM - down) / 2, GRID);
        }
        a = Window::place(E::BIAS); /* somewhere in the middle */
        bounds = Window::bounds(a, 0);
        placed = HALF;
        adds = fill = streak = 0;
        used = loose = drained = widened = false;
        if (threadIdx.x % 32 < 3) shared.special[threadIdx.x / 32][threadIdx.x % 32] = 0;
#pragma unroll
        for (int level = 0; level < LEVELS; level++) acc[level] = 0;
    }

    CR_DEVICE static word bits(number x) { return Anchors::bits(x); }

    /* GROUP elements or fewer. MORE: 1 for a level below the usual ones, which goes to `low`. FROM: the first level that they reach. */
    template <int MORE, int FROM = 0, int COUNT> CR_DEVICE void add(const number (&x)[COUNT], long long &low) {
        constexpr int TO = LEVELS + MORE;
        number s[LEVELS + 1];
#pragma unroll
        for (int level = 0; level < TO; level++) s[level] = anchor(level);
        if constexpr (PAIR) {
            double t[LEVELS + 1];
            if constexpr (TERM)
                cr_chain_two<TO>(s, t, x[0], x[1]);
            else
                cr_chain_square<TO>(s, t, x[0]);
            if (MORE) acc[LEVELS - 1] -= base(LEVELS - 1); /* passed twice, but counted once */
#pragma unroll
            for (int level = 0; level < LEVELS; level++) {
                if (level < TO - 1) acc[level] += bits(s[level]);
                if (level > 0) acc[level] += bits(t[level]);
            }
            if (MORE) low += (long long)(bits(t[LEVELS]) - base(LEVELS));
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                if constexpr (SQUARE) { /* the square is exact, and so is what the first level leaves of it */
                    const number next = Anchors::fused(x[i], x[i], s[FROM]), rest = Anchors::fused(x[i], x[i], Anchors::minus(s[FROM], next));
                    s[FROM] = next;
                    cr_chain<FROM + 1, TO>(s, rest);
                } else {
                    cr_chain<0, TO>(s, KIND == CR_SUM_ABSOLUTE ? fabs(x[i]) : x[i]);
                }
            }
#pragma unroll
            for (int level = 0; level < LEVELS; level++) acc[level] += bits(s[level]);
            if (MORE) low += (typename Anchors::signed_word)(bits(s[LEVELS]) - base(LEVELS));
        }
    }

    template <int MORE, int FROM = 0> CR_DEVICE void add_vector(const uint4 &v, long long &low) {
#pragma unroll
        for (int e = 0; e < LANES; e += GROUP) {
            constexpr int COUNT = E::SPLIT ? 2 : GROUP; /* one term is two */
            number x[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; i++) x[i] = SQUARE ? E::lane(v, e + i) : E::scaled(v, e + i);
            add<MORE, FROM>(x, low);
        }
    }

    /* For those who know that what comes lies in the window: room for N vectors, and one of them. */
    template <int N> CR_DEVICE void reserve(Shared &shared) {
        if (adds + N * LANES / GROUP > (uint32_t)MOST) drain(shared);
        adds += N * LANES / GROUP;
        streak = 0;
    }
    CR_DEVICE void add_one(const uint4 &v) {
        long long none = 0;
        add_vector<0>(v, none);
    }

    template <int N> CR_DEVICE void fits(uint4 (&v)[N]) {
        long long none = 0;
        if constexpr (Window::FEW) {
            uint32_t worst = 0;
#pragma unroll
            for (int j = 0; j < N; j++) E::glance(worst, v[j], 0);
            if (!__all_sync(~0u, Window::few(worst))) {
#pragma unroll 1
                for (int j = 0; j < N; j++) {
                    add_vector<0>(v[0], none);
                    rotate<1>(v);
                }
                return;
            }
        }
#pragma unroll
        for (int j = 0; j < N; j++) add_vector<0, Window::FEW>(v[j], none);
    }

    /* The vectors pass through the first place, so that the code for one is enough. */
    template <int STEP, int N> CR_DEVICE static void rotate(uint4 (&v)[N]) {
#pragma unroll
        for (int j = 0; j + STEP < N; j++) v[j] = v[j + STEP];
    }

    template <int N> CR_DEVICE void fits_more(uint4 (&v)[N], Shared &shared) {
        long long low = 0;
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            add_vector<1>(v[0], low);
            rotate<1>(v);
        }
        shared.wide[threadIdx.x] = low + (widened ? shared.wide[threadIdx.x] : 0);
        widened = true;
    }

    /* Of the lanes' sum of value·2^exponent. */
    CR_DEVICE long long share(long long value, int exponent) {
        int bit = exponent - unit;
        if (!WIDE && bit < 0) { /* a multiple of the unit */
            value >>= -bit;
            bit = 0;
        }
        const cr_warp_total total(value);
        if (!WIDE || (unsigned)bit <= (unsigned)ROOM) return total.share((unsigned)bit);
        total.spill(to, exponent - GRID);
        loose = true;
        return 0;
    }

    /* The warp's accumulators into its digits. */
    CR_DEVICE void drain(Shared &shared) {
        const uint32_t lane = threadIdx.x % 32;
        long long *row = shared.digit[threadIdx.x / 32], found = 0;
        if (drained) found = cr_digits_carried<DIGITS>(lane < DIGITS ? row[lane] : 0);
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            found += share((typename Anchors::signed_word)(acc[level] - base(level) * (adds * passes(level))), a - Window::STEP * level);
            acc[level] = 0;
        }
        if (widened) found += share(shared.wide[threadIdx.x], a - Window::STEP * LEVELS);
        if constexpr (Bins::IN_DIGITS) {
            if (fill != 0) found += Bins::digits(shared.bins);
            fill = 0;
        }
        if (lane < DIGITS) row[lane] = found;
        adds = 0;
        drained = true;
        widened = false;
    }

    /* Counts NaNs and infinities, and makes zeros of them. The warp together. */
    template <int N> CR_DEVICE void strip(uint4 (&v)[N], Shared &shared) {
        uint32_t found = 0; /* NaNs, +inf, -inf: ten bits each */
#pragma unroll
        for (int j = 0; j < N; j++) E::strip(found, v[j]);
        const uint32_t infinite = __reduce_add_sync(~0u, (found >> 10 & 0x3ff) | found >> 20 << 16), lane = threadIdx.x % 32;
        found = __reduce_add_sync(~0u, found & 0x3ff);
        if (lane < 3) shared.special[threadIdx.x / 32][lane] += lane == 0 ? found : infinite >> 16 * (lane - 1) & 0xffff;
        loose = true;
    }

    /* Room in the bins for so many elements of each lane. The warp together. */
    CR_DEVICE void make_room(uint32_t elements, Shared &shared) {
        if (!used) {
            Bins::clear(shared.bins);
            __syncwarp();
        }
        used = true;
        if constexpr (!Bins::IN_DIGITS) fill = Bins::reserve(shared.bins, to, fill, Bins::adds(elements));
    }

    template <int N> CR_DEVICE void slow(uint4 (&v)[N], Shared &shared) {
        if constexpr (TERM)
            make_room(N * LANES * Bins::PUTS, shared);
        else
            make_room(N * LANES, shared);
#pragma unroll 1
        for (int j = 0; j < N; j += 2) {
            uint4 two[2] = {v[0], v[1]};
            cr_span seen = {0, ~0u};
            E::look(seen, two[0]);
            E::look(seen, two[1]);
            if (__any_sync(~0u, Window::special(seen.most))) strip(two, shared);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if constexpr (TERM) {
                    Bins::vector(shared.bins, two[i]);
                } else {
#pragma unroll
                    for (int e = 0; e < LANES; e++) Bins::element(shared.bins, cr_element<SIZE>(two[i], e));
                }
            }
            rotate<2>(v);
        }
    }

    /* How far apart the warp's magnitudes are. */
    template <int N> CR_DEVICE static cr_span spread(const uint4 (&v)[N]) {
        cr_span seen = {0, ~0u}; /* zeros are welcome */
#pragma unroll
        for (int j = 0; j < N; j++) E::look(seen, v[j]);
        seen.most = __reduce_max_sync(~0u, Window::largest(seen.most));
        seen.least = __reduce_min_sync(~0u, Window::smallest(seen.least));
        return seen;
    }

    /* What glance could not vouch for. 0: it fits, 1: with a level more, 2: not at all; with the anchors at `where`. */
    template <int N> CR_DEVICE int measure(uint4 (&v)[N], int &where, Shared &shared) {
        cr_span seen = spread(v);
        while (Window::special(seen.most)) {
            strip(v, shared);
            seen = spread(v);
        }
        if (HALF || (Window::within(seen, bounds) && (placed || seen.most == 0))) return 0;
        const int own = Window::place((int)(seen.most >> E::FIELD));
        if (!Window::within(seen, Window::bounds(own, 0))) {
            if (Window::within(seen, Window::bounds(a, 1))) return 1;
            if (!Window::within(seen, Window::bounds(own, 1))) return 2;
        }
        where = own;
        placed = true;
        return !Window::within(seen, Window::bounds(own, 0));
    }

    template <int N> CR_DEVICE bool glance(const uint4 (&v)[N]) {
        uint32_t worst = 0;
        const uint32_t low = Window::low(bounds);
#pragma unroll
        for (int j = 0; j < N; j++) E::glance(worst, v[j], low);
        return __all_sync(~0u, Window::near(worst, bounds));
    }

    template <int N> CR_DEVICE void tile(const uint4 (&given)[N], uint64_t, uint32_t, Shared &shared) {
        uint4 v[N];
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = given[j];
        int way = 2, where = a;
        if (streak > 1) { /* two in a row that fit nowhere: eight more are not even looked at */
            streak--;
        } else if (!placed || !glance(v)) {
            way = measure(v, where, shared);
            streak = way < 2 ? 0 : streak == 0 ? 1 : 9;
        } else {
            way = 0;
            streak = 0;
        }
        if (where != a || (Bins::IN_DIGITS ? max(adds + N * LANES / GROUP, (uint32_t)fill + N * LANES) : adds + N * LANES / GROUP) > MOST) {
            if (adds != 0 || (Bins::IN_DIGITS && fill != 0)) drain(shared);
            a = where;
            bounds = Window::bounds(a, 0);
        }
        if (way < 2) adds += N * LANES / GROUP;
        else if (Bins::IN_DIGITS) fill += N * LANES;
        if (way == 0) {
            fits(v);
        } else if constexpr (!HALF) {
            if (way == 1) fits_more(v, shared);
            else slow(v, shared);
        }
    }

    /* At most one in each thread, after the tiles. What no anchor takes goes to the limbs at once. */
    CR_DEVICE void one(uint64_t element, uint64_t, Shared &) {
        if (Window::inside_one(element, bounds)) {
            number x[1] = {SQUARE ? E::value(element) : E::scaled(make_uint4((uint32_t)element, (uint32_t)(element >> 32), 0, 0), 0)};
            add_alone(x);
            return;
        }
        cr_parts<E> p;
        loose = true;
        if (!p.split(element)) {
            atomicAdd(&to->special[p.special()], 1ull);
        } else {
            loose_limbs(p);
        }
    }
    template <int COUNT> CR_DEVICE void add_alone(const number (&x)[COUNT]) {
        long long none = 0;
        add<0>(x, none);
#pragma unroll
        for (int level = 0; level < LEVELS; level++) acc[level] -= base(level) * passes(level);
    }

    /* Likewise, of terms: the first of a vector; some in each thread. */
    CR_DEVICE void one_term(const uint4 &v) {
        const uint64_t element = cr_word64(v, 0);
        if (Window::inside_one(element, bounds)) {
            double x[PAIR ? 2 : 1];
            x[0] = E::lane(v, 0);
            if (PAIR) x[PAIR ? 1 : 0] = E::lane(v, 1);
            add_alone(x);
            return;
        }
        cr_parts<cr_f64> p, rest(cr_word64(v, 1));
        loose = true;
        if (!p.split(element)) {
            atomicAdd(&to->special[p.special()], 1ull);
            return;
        }
        loose_term(p);
        if (PAIR) loose_term(rest);
    }
    CR_DEVICE void loose_term(cr_parts<cr_f64> p) {
        cr_place_term<E>(p);
        loose_value(p.significand, p.place, p.negative);
    }

    CR_DEVICE void loose_limbs(cr_parts<E> p) {
        cr_widen(p);
        unsigned __int128 value = p.significand;
        int place = p.place;
        if (KIND == CR_SUM_SQUARE) {
            value *= p.significand;
            place *= 2;
        }
        loose_value(value, place, KIND == CR_SUM_PLAIN && p.negative);
    }

    CR_DEVICE void loose_value(unsigned __int128 value, int place, bool negative) {
        int limb = place / 32;
        loose = true;
        /* 106 + 31 bits at most do not fit 128: the lowest digit first. */
        unsigned long long digit = ((unsigned long long)value & 0xffffffffu) << (place % 32);
        value >>= 32;
        for (;;) {
            long long part = (long long)(digit & 0xffffffffu);
            if (part != 0) atomicAdd(&to->limbs[limb], (unsigned long long)(negative ? -part : part));
            limb++;
            digit = (digit >> 32) + (((unsigned long long)value & 0xffffffffu) << (place % 32));
            value >>= 32;
            if (digit == 0 && value == 0) break;
        }
    }

    /* Whether this thread has put something into the limbs, or will. */
    CR_DEVICE bool is_dirty() const { return (used && !Bins::IN_DIGITS) || loose; }
    /* The block together, where some thread of it is dirty. */
    CR_DEVICE void settle(Shared &shared) {
        const uint32_t lane = threadIdx.x % 32;
        if constexpr (!Bins::IN_DIGITS) {
            if (__syncthreads_or(used)) Bins::flush(shared.bins, to, used);
        }
        if (lane < 3 && shared.special[threadIdx.x / 32][lane] != 0)
            atomicAdd(&to->special[lane], (unsigned long long)shared.special[threadIdx.x / 32][lane]);
        __threadfence();
        __syncthreads();
    }
    /* One warp adds the block's digits to the state, behind a barrier: all warps have drained their accumulators into them. */
    CR_DEVICE void tell(Shared &shared, bool dirty, uint32_t lane) {
        long long digit = 0;
        if (lane < DIGITS) {
#pragma unroll
            for (int w = 0; w < WARPS; w++) digit += shared.digit[w][lane];
        }
        cr_digits_tell<DIGITS>(*args, to, &args->slot->sums[AT], cr_digits_carried<DIGITS>(digit), dirty, unit, LIMBS, lane);
    }

    CR_DEVICE void publish(const cr_fold_args &, Shared &shared) {
        drain(shared);
        const bool dirty = __syncthreads_or(is_dirty()) != 0;
        if (dirty) settle(shared);
        if (threadIdx.x < 32) tell(shared, dirty, threadIdx.x);
    }
};

#endif
