/* second: Σx of float32 and float64 by integers, for chips whose float64 is slow (plan/float64.h).
 *
 * A warp has a window of SPAN binades, from the exponent field `first` on. An element in it is ±m·2^s units of the field `first`, with
 * s < SPAN; so ±2^s is an int32, and one multiplication (IMAD.WIDE) shifts, gives the sign, and adds to 64 bits:
 *
 *   float32   m < 2^24:                     below 2^52 each, and a drain comes before 2^11 of them
 *   float64   m = h·2^32 + l, l signed:     |h| ≤ 2^21, so h·2^s ≤ 2^49, and a drain comes before 2^13 of them; |l| ≤ 2^31, so
 *                                           l·2^s ≤ 2^59, and what lies above 32 bits goes to h's sum once a tile
 *
 * The shift comes of t = 2·|bits| − 2·first, as does the look at the window: t ≤ REACH. A zero's t is so large that 2^s becomes 0,
 * because first is at most TOP − 31: a zero adds nothing, whatever its m. So a tile is added up before it is known to fit, and
 * forgotten if it does not. What does not fit goes to the bins: those of float32 are of float64.
 * Thread: GPU. Owner: the kernel. */
#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/walk/walk.cuh"

/* x·2^by; 0 from 32 on. */
CR_DEVICE int cr_shifted(int x, uint32_t by) {
#if defined(__CUDA_ARCH__)
    int found;
    asm("shl.b32 %0, %1, %2;" : "=r"(found) : "r"(x), "r"(by));
    return found;
#else
    return by > 31 ? 0 : (int)((uint32_t)x << by);
#endif
}

/* sum + x·y. Of numbers whose signs it knows nvcc makes a multiplication of 64 bits. */
CR_DEVICE void cr_add_product(long long &sum, int x, int y) {
#if defined(__CUDA_ARCH__)
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(x), "r"(y));
#else
    sum += (long long)x * y;
#endif
}

/* high·2^32 + low; of float32 low alone. */
template <bool WIDE> struct cr_second_sum {
    long long high = 0, low = 0;

    /* upper: the word with the exponent, t: see above, FIELD: where the exponent begins. */
    template <int FIELD> CR_DEVICE void add(uint32_t upper, uint32_t lower, uint32_t t) {
        const int power = cr_shifted((int)upper >> 31 | 1, t >> (FIELD + 1));
        const uint32_t m = (upper & ((1u << FIELD) - 1)) | 1u << FIELD;
        if (WIDE) {
            cr_add_product(high, (int)(m + (lower >> 31)), power);
            cr_add_product(low, (int)lower, power);
        } else {
            cr_add_product(low, (int)m, power);
        }
    }
    CR_DEVICE void take(const cr_second_sum &more) {
        if (WIDE) {
            high += more.high + (more.low >> 32);
            low += (long long)(uint32_t)more.low;
        } else {
            low += more.low;
        }
    }
};

template <class E> struct cr_second : cr_float_sum<E, CR_SUM_PLAIN> {
    typedef cr_float_sum<E, CR_SUM_PLAIN> Wide;
    typedef typename Wide::Shared Shared;
    typedef typename Wide::Sample Sample;
    typedef typename Wide::Window Window;
    static constexpr bool WIDE = E::SIZE == 8;
    static constexpr int SPAN = 29, SLACK = 3, FIELD = E::FIELD, FIRST_MOST = E::TOP - 31, LANES = Wide::LANES;
    static constexpr uint32_t REACH = ((uint32_t)SPAN << (FIELD + 1)) - 1, MOST = WIDE ? Wide::MOST : Wide::MOST / 2;

    uint32_t low, held; /* −2·first, as its bits lie; elements since the last drain */
    bool calm;          /* the window is this warp's own, and the last tiles fitted */
    cr_second_sum<WIDE> sum;

    CR_DEVICE static int place(int field) { return min(max(field + SLACK - (SPAN - 1), 1), FIRST_MOST); }
    CR_DEVICE static cr_span bounds_of(int first) {
        return {((uint32_t)(first + SPAN) << FIELD) - 1, ((uint32_t)first << FIELD) - 1};
    }
    CR_DEVICE void move(int first) {
        low = 0u - ((uint32_t)first << (FIELD + 1));
        this->a = E::GRID + first - 1;
        this->bounds = bounds_of(first);
    }
    CR_DEVICE int first_of() const { return (int)((0u - low) >> (FIELD + 1)); }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, const Sample &sample) {
        Wide::begin(of, shared, sample);
        held = 0;
        calm = false;
        sum = cr_second_sum<WIDE>();
        move(place(E::BIAS));
    }

    CR_DEVICE void add_vector(const uint4 &v, cr_second_sum<WIDE> &into, uint32_t &worst) const {
#pragma unroll
        for (int e = 0; e < LANES; e++) {
            const uint32_t upper = cr_word(v, WIDE ? 2 * e + 1 : e), t = upper + upper + low;
            worst = max(worst, t);
            into.template add<FIELD>(upper, WIDE ? cr_word(v, 2 * e) : 0, t);
        }
    }

    /* The sum to the warp's digits. The accumulators of the fast way take it there, which are zeros: one of float32, whose unit is
     * 2^a; two of float64, 2^(a + STEP) and 2^a. The warp together. */
    CR_DEVICE void settle(Shared &shared) {
        constexpr int STEP = Window::STEP;
        if constexpr (WIDE) {
            sum.high += sum.low >> 32;
            this->acc[0] = (unsigned long long)(sum.high >> (STEP - 32));
            this->acc[1] = (unsigned long long)(sum.high & ((1ll << (STEP - 32)) - 1)) << 32 | (uint32_t)sum.low;
            this->a += STEP;
        } else {
            this->acc[0] = (unsigned long long)sum.low;
        }
        this->drain(shared);
        if (WIDE) this->a -= STEP;
        sum = cr_second_sum<WIDE>();
        held = 0;
    }

    /* What its tile could not vouch for. 0: it fits, 2: it does not; with the window at `where`, and NaNs and infinities taken out. */
    template <int N> CR_DEVICE int look(uint4 (&v)[N], int &where, Shared &shared) {
        cr_span seen = this->spread(v);
        while (Window::special(seen.most)) {
            this->strip(v, shared);
            seen = this->spread(v);
        }
        if (Window::within(seen, this->bounds) && (this->placed || seen.most == 0)) return 0;
        const int own = place((int)(seen.most >> FIELD));
        if (!Window::within(seen, bounds_of(own))) return 2;
        where = own;
        this->placed = true;
        return 0;
    }

    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &shared) {
        if (calm) {
            cr_second_sum<WIDE> found;
            uint32_t worst = 0;
#pragma unroll
            for (int j = 0; j < N; j++) add_vector(v[j], found, worst);
            if (__all_sync(~0u, worst <= REACH) && held + N * LANES <= MOST) {
                held += N * LANES;
                sum.take(found);
                return;
            }
        }
        hard_tile(v, shared);
    }

    /* As of fold/float_sums.cuh; a level more there is not. */
    template <int N> CR_DEVICE void hard_tile(const uint4 (&given)[N], Shared &shared) {
        uint4 v[N];
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = given[j];
        int way = 2, first = first_of(), where = first;
        if (this->streak > 1) {
            this->streak--;
        } else {
            way = look(v, where, shared);
            this->streak = way < 2 ? 0 : this->streak == 0 ? 1 : 9;
        }
        calm = this->placed && this->streak < 2;
        if (where != first || max(held + N * LANES, Wide::Bins::IN_DIGITS ? (uint32_t)this->fill + N * LANES : 0) > MOST) {
            settle(shared);
            move(where);
        }
        if (way != 0) {
            if (Wide::Bins::IN_DIGITS) this->fill += N * LANES;
            this->slow(v, shared);
            return;
        }
        held += N * LANES;
        again(v);
    }

    /* The vectors pass through the first place, so that the code for one is enough. */
    template <int N> CR_DEVICE void again(uint4 (&v)[N]) {
        cr_second_sum<WIDE> found;
        uint32_t none = 0;
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            add_vector(v[0], found, none);
            Wide::template rotate<1>(v);
        }
        sum.take(found);
    }

    CR_DEVICE void one(uint64_t element, uint64_t index, Shared &shared) {
        uint32_t none = 0;
        if (Window::inside_one(element, this->bounds)) {
            cr_second_sum<WIDE> found;
            add_vector(make_uint4((uint32_t)element, (uint32_t)(element >> 32), 0, 0), found, none);
            sum.take(found);
        } else {
            this->bounds = {0, ~0u}; /* which has zeros alone */
            Wide::one(element, index, shared);
        }
    }
    CR_DEVICE void publish(const cr_fold_args &of, Shared &shared) {
        settle(shared);
        Wide::publish(of, shared);
    }
};

extern "C" int cr_launch_second_sum_f32(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_second<cr_f32>>(args, stream); }
extern "C" int cr_launch_second_sum_f64(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_second<cr_f64>>(args, stream); }
