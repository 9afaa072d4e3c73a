/* sums: Σx, Σ|x| and Σx² of floats, exactly, by anchors (kernels/cpu/fold_anchor.h explains them).
 *
 * All blocks place their anchors by the same 32 vectors spread over the array, so that what they find adds up as integers.
 * Each warp looks at its part of a tile before it adds it: inside the window, one to three additions an element; outside, or
 * with a NaN or an infinity in it, the whole part goes to bins (sum_bins.cuh). The anchors never move: an outlier cannot drag
 * them.
 *
 * The tail is one round trip to the L2 cache: a block adds its integer to words that also count the blocks. Whoever finds that
 * it was the last on a word knows the word's final value, writes it to the slot, and leaves zero behind. Only the control word's
 * last one looks at the limbs, and only when some block has used them.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_SUMS_CUH
#define CURED_KERNELS_CUDA_SUMS_CUH

#include "kernels/cuda/sum_bins.cuh"

enum { CR_WORD_COUNT = 48 }; /* where a word counts its blocks */

/* Four vectors in flight in each thread need no register spilled; four blocks of them fill the memory's pipe. */
template <class E, int KIND, int U = 4, int RESIDENT = CR_GPU_BLOCKS_PER_SM>
struct cr_float_sum {
    using Window = cr_window<E, KIND>;
    using Bins = cr_bins<E, KIND>;
    static constexpr int SIZE = E::SIZE, UNROLL = U, BLOCKS = RESIDENT, LEVELS = Window::LEVELS, LANES = CR_GPU_VECTOR / SIZE;
    static constexpr int WARPS = CR_GPU_THREADS / 32;
    static constexpr uint64_t SHORT = 1 << 21;
    static constexpr bool SELF = true, PAIR = KIND == CR_SUM_SQUARE && SIZE == 8;
    static constexpr int GROUP = Window::GROUP, WORDS = 3 * (LEVELS + 1);
    static constexpr int LIMBS = KIND == CR_SUM_SQUARE ? (SIZE == 8 ? 134 : 20) : SIZE == 8 ? 68 : 11;

    struct Shared {
        long long total[WARPS][WORDS]; /* digits of 22, 21 and 21 bits, summed */
        long long wide[CR_GPU_THREADS];  /* each thread's level below the usual ones */
        uint32_t special[WARPS][3];
        typename Bins::Shared bins;
    };
    struct Sample {
        uint4 v, next;
    };

    const cr_fold_args *args;
    cr_sum_state *to;
    unsigned long long acc[LEVELS];
    int a;
    cr_span bounds;
    uint32_t adds; /* to each level, since the last drain; those passed twice count twice as many */
    uint32_t fill, streak; /* of the bins; of tiles that took them, see tile */
    bool used, widened, drained; /* this warp's bins, wide levels, totals hold something */
    bool loose;                  /* this thread has put something into the state's limbs */

    CR_DEVICE static constexpr uint32_t passes(int level) { return PAIR && level > 0 && level + 1 < LEVELS ? 2 : 1; }
    CR_DEVICE double anchor(int level) const { return cr_anchor(a + Window::SCALE - Window::STEP * level); }
    CR_DEVICE unsigned long long base(int level) const { return (unsigned long long)__double_as_longlong(anchor(level)); }

    /* Every warp by itself, so that none waits for another: the same eight vectors. They lie together in the middle of a short
     * array, since one line of memory comes sooner than eight, and all over a long one. */
    CR_DEVICE Sample sample(const cr_fold_args &of) {
        Sample found = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
        uint64_t vectors = of.plan.vectors;
        if (vectors == 0 || E::TOP == 31) return found;
        const uint64_t k = threadIdx.x % 8;
        const uint64_t at = vectors < 16 ? min(k, vectors - 1) : vectors < SHORT ? (vectors >> 1) + k : (vectors >> 3) * k;
        const uint4 *body = cr_body<SIZE>(of);
        found.v = body[at];
        if (of.plan.shift != 0) found.next = body[at + 1];
        return found;
    }

    CR_DEVICE void begin(const cr_fold_args &of, Shared &, const Sample &sample) {
        args = &of;
        to = &of.state->sums[KIND];
        uint32_t field = 0;
        const uint4 v = of.plan.shift == 0 ? sample.v : cr_join(sample.v, sample.next, of.plan.shift);
#pragma unroll
        for (int e = 0; e < LANES; e++) {
            uint32_t seen = (uint32_t)(cr_element<SIZE>(v, e) >> E::MANTISSA) & E::TOP;
            if (seen != E::TOP) field = max(field, seen);
        }
        field = __reduce_max_sync(~0u, field);
        a = Window::place(field != 0 ? (int)field : E::BIAS); /* nothing but zeros: somewhere in the middle */
        bounds = Window::bounds(a, 0);
        adds = fill = streak = 0;
        used = loose = drained = widened = false;
#pragma unroll
        for (int level = 0; level < LEVELS; level++) acc[level] = 0;
    }

    /* Adds x to the running anchors s of levels FROM … TO - 1; what one rounds off goes to the next. */
    template <int FROM, int TO> CR_DEVICE static void chain(double (&s)[LEVELS + 1], double x) {
#pragma unroll
        for (int level = FROM; level < TO; level++) {
            double next = __dadd_rn(s[level], x);
            if (level + 1 < TO) x = __dsub_rn(x, __dsub_rn(next, s[level]));
            s[level] = next;
        }
    }

    CR_DEVICE static unsigned long long bits(double x) { return (unsigned long long)__double_as_longlong(x); }

    /* GROUP elements or fewer. MORE: 1 for a level below the usual ones, which goes to `low`. */
    template <int MORE, int COUNT> CR_DEVICE void add(const double (&x)[COUNT], long long &low) {
        constexpr int TO = LEVELS + MORE;
        double s[LEVELS + 1];
#pragma unroll
        for (int level = 0; level < TO; level++) s[level] = anchor(level);
        if constexpr (PAIR) {
            double h = __dmul_rn(x[0], x[0]), l = __fma_rn(x[0], x[0], -h), t[LEVELS + 1];
#pragma unroll
            for (int level = 0; level < TO; level++) t[level] = s[level];
            chain<0, TO - 1>(s, h);
            chain<1, TO>(t, l);
            if (MORE) acc[LEVELS - 1] -= base(LEVELS - 1); /* passed twice, but counted once */
#pragma unroll
            for (int level = 0; level < LEVELS; level++) {
                if (level < TO - 1) acc[level] += bits(s[level]);
                if (level > 0) acc[level] += bits(t[level]);
            }
            if (MORE) low += (long long)(bits(t[LEVELS]) - base(LEVELS));
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                chain<0, TO>(s, KIND == CR_SUM_SQUARE     ? __dmul_rn(x[i], x[i])
                                : KIND == CR_SUM_ABSOLUTE ? fabs(x[i])
                                                          : x[i]);
#pragma unroll
            for (int level = 0; level < LEVELS; level++) acc[level] += bits(s[level]);
            if (MORE) low += (long long)(bits(s[LEVELS]) - base(LEVELS));
        }
    }

    template <int MORE, int N> CR_DEVICE void fits(const uint4 (&v)[N], Shared &shared) {
        if (adds + N * LANES / GROUP > Window::ADDS) drain(shared);
        adds += N * LANES / GROUP;
        long long low = 0;
#pragma unroll
        for (int j = 0; j < N; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e += GROUP) {
                double x[GROUP];
#pragma unroll
                for (int i = 0; i < GROUP; i++)
                    x[i] = KIND == CR_SUM_SQUARE ? E::lane(v[j], e + i) : E::scaled(v[j], e + i);
                add<MORE>(x, low);
            }
        }
        if (MORE) {
            shared.wide[threadIdx.x] = low + (widened ? shared.wide[threadIdx.x] : 0);
            widened = true;
        }
    }

    CR_DEVICE static void put_digits(long long *total, long long value, bool more) {
        const uint32_t lane = threadIdx.x % 32;
        unsigned low = __reduce_add_sync(~0u, (unsigned)value & 0x3fffff);
        unsigned middle = __reduce_add_sync(~0u, (unsigned)(value >> 22) & 0x1fffff);
        int high = __reduce_add_sync(~0u, (int)(value >> 43));
        if (lane >= 3) return;
        long long digit = lane == 0 ? (long long)low : lane == 1 ? (long long)middle : (long long)high;
        total[lane] = digit + (more ? total[lane] : 0);
    }

    /* The warp's accumulators into its totals. */
    CR_DEVICE void drain(Shared &shared) {
        long long *total = shared.total[threadIdx.x / 32];
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            put_digits(total + 3 * level, (long long)(acc[level] - base(level) * (adds * passes(level))), drained);
            acc[level] = 0;
        }
        if (widened) {
            put_digits(total + 3 * LEVELS, shared.wide[threadIdx.x], drained);
        } else if (!drained && threadIdx.x % 32 < 3) {
            total[3 * LEVELS + threadIdx.x % 32] = 0;
        }
        adds = 0;
        drained = true;
        widened = false;
    }

    CR_DEVICE void slow_element(Shared &shared, uint64_t bits) {
        cr_parts<E> parts;
        if (parts.split(bits)) {
            Bins::element(shared.bins, parts);
        } else {
            atomicAdd(&shared.special[threadIdx.x / 32][parts.special()], 1u);
        }
    }

    template <int N> CR_DEVICE void slow(const uint4 (&v)[N], Shared &shared) {
        if (!used) {
            Bins::clear(shared.bins);
            if (threadIdx.x % 32 < 3) shared.special[threadIdx.x / 32][threadIdx.x % 32] = 0;
            __syncwarp();
        }
        used = true;
        Bins::reserve(shared.bins, to, fill, Bins::adds(N * LANES));
#pragma unroll
        for (int j = 0; j < N; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e++) slow_element(shared, cr_element<SIZE>(v[j], e));
        }
    }

    /* What glance could not vouch for: 0: it fits all the same, 1: with a level more, 2: not at all. */
    template <int N> CR_DEVICE int measure(const uint4 (&v)[N]) {
        cr_span seen = {0, ~0u}; /* zeros are welcome */
#pragma unroll
        for (int j = 0; j < N; j++) {
            uint4 w = v[j];
            /* Nothing computed for glance is to be kept for this: registers. */
            asm volatile("" : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w));
            E::look(seen, w);
        }
        if (__all_sync(~0u, Window::inside(seen, bounds))) return 0;
        return E::TOP != 31 && __all_sync(~0u, Window::inside(seen, Window::bounds(a, 1))) ? 1 : 2;
    }

    template <int N> CR_DEVICE int classify(const uint4 (&v)[N]) {
        uint32_t worst = 0;
        const uint32_t low = Window::low(bounds);
#pragma unroll
        for (int j = 0; j < N; j++) E::glance(worst, v[j], low);
        return __all_sync(~0u, Window::near(worst, bounds)) ? 0 : measure(v);
    }

    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &shared) {
        int way = 2;
        if (streak > 1) { /* two in a row that fit nowhere: eight more are not even looked at */
            streak--;
        } else {
            way = classify(v);
            streak = way < 2 ? 0 : streak == 0 ? 1 : 9;
        }
        if (way == 0) {
            fits<0>(v, shared);
        } else if (way == 1) {
            fits<1>(v, shared);
        } else {
            slow(v, shared);
        }
    }

    /* At most one in each thread. What no anchor takes goes to the limbs at once. */
    CR_DEVICE void one(uint64_t element, uint64_t, Shared &) {
        if (Window::inside_one(element, bounds)) {
            double x[1] = {KIND == CR_SUM_SQUARE ? E::value(element) : E::scaled(make_uint4((uint32_t)element, (uint32_t)(element >> 32), 0, 0), 0)};
            long long none = 0;
            add<0>(x, none);
#pragma unroll
            for (int level = 0; level < LEVELS; level++) acc[level] -= base(level) * passes(level);
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

    CR_DEVICE void loose_limbs(cr_parts<E> p) {
        cr_widen(p);
        unsigned __int128 value = p.significand;
        int place = p.place;
        if (KIND == CR_SUM_SQUARE) {
            value *= p.significand;
            place *= 2;
        }
        bool negative = KIND == CR_SUM_PLAIN && p.negative;
        int limb = place / 32;
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

    CR_DEVICE void publish(const cr_fold_args &, Shared &shared) {
        drain(shared);
        bool dirty = __syncthreads_or(used || loose) != 0;
        if (dirty) {
            if (__syncthreads_or(used)) Bins::flush(shared.bins, to, used);
            const uint32_t lane = threadIdx.x % 32;
            if (used && lane < 3 && shared.special[threadIdx.x / 32][lane] != 0)
                atomicAdd(&to->special[lane], (unsigned long long)shared.special[threadIdx.x / 32][lane]);
            __threadfence();
            __syncthreads();
        }
        if (threadIdx.x < 32) tell(shared, dirty);
    }

    /* The first warp, at the end: a word in each lane. */
    CR_DEVICE void tell(const Shared &shared, bool dirty) {
        cr_sum_found *found = &args->slot->sums[KIND];
        const uint32_t blocks = args->plan.blocks, lane = threadIdx.x;
        const unsigned long long mask = (1ull << CR_WORD_COUNT) - 1;
        if (lane > WORDS) return;
        const bool control = lane == WORDS;
        unsigned long long word = control ? dirty : lane % 3 == 2 ? args->bias : 0, sum = 0;
        if (!control) {
#pragma unroll
            for (int w = 0; w < WARPS; w++) sum += shared.total[w][lane];
        }
        word += sum; /* never negative */
        unsigned long long *mine = control ? &to->control : &to->words[lane], before = 0;
        if (blocks > 1) {
            before = atomicAdd(mine, word + (1ull << CR_WORD_COUNT));
            if (before >> CR_WORD_COUNT != blocks - 1) return;
            *mine = 0;
        }
        word += before & mask;
        *(control ? &found->control : &found->words[lane]) = word;
        if (!control) return;
        found->anchor = a;
        found->bias = args->bias * blocks;
        if (word != 0) take_limbs(found);
    }

    /* One thread: rare. */
    CR_DEVICE void take_limbs(cr_sum_found *found) {
        __threadfence();
        for (int i = 0; i < LIMBS; i++) {
            found->limbs[i] = (int64_t)__ldcg(&to->limbs[i]);
            to->limbs[i] = 0;
        }
        for (int i = 0; i < 3; i++) {
            found->special[i] = __ldcg(&to->special[i]);
            to->special[i] = 0;
        }
    }
};

/* The kernel of one family of sums of E. */
template <class E> cr_fold_launcher cr_float_sum_launcher(uint32_t family) {
    switch (family) {
        case CR_FAM_SUM:
            return cr_walk_launch<cr_float_sum<E, CR_SUM_PLAIN>>;
        case CR_FAM_SUMABS:
            return cr_walk_launch<cr_float_sum<E, CR_SUM_ABSOLUTE>>;
        case CR_FAM_SUMSQ:
            return cr_walk_launch<cr_float_sum<E, CR_SUM_SQUARE>>;
        default:
            return NULL;
    }
}

#endif
