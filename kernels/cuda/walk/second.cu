/* second: Σx and Σx² of float32 and float64 by integers, for chips whose float64 is slow (plan/float64.h).
 *
 * A warp has a window of SPAN binades, from the exponent field `first` on. An element in it is ±m·2^s units of the field `first`, with
 * s < SPAN; so ±2^s is an int32, and one multiplication (IMAD.WIDE) shifts, gives the sign, and adds to 64 bits:
 *
 *   float32   m < 2^24:                     below 2^45 each, and a drain comes before 2^12 of them
 *   float64   m = h·2^32 + l, l signed:     |h| ≤ 2^21, so h·2^s ≤ 2^49, and a drain comes before 2^13 of them; |l| ≤ 2^31, so
 *                                           l·2^s ≤ 2^59, and what lies above 32 bits goes to h's sum once a tile
 *
 * Of a square m·2^s is cut into digits of 26 bits, two of float32 and three of float64. Each product of two has a sum of its own, below
 * 2^52 each, and a drain comes before 2^11 of them.
 *
 * Sums of float32 whose tiles all fit go by float32 instead, which costs less: over two anchors whose last bits are 2^23 apart, each
 * element from anew. The first one takes what is below 2^22 of its last bits, and keeps its exponent. What it rounds off is at most half
 * of such a bit, 2^22 of the second one's; it is a float32, and a multiple of the second one's last bit, as the element is.
 *
 * The shift comes of t = 2·|bits| − 2·first, as does the look at the window: t ≤ REACH. A zero's t is so large that 2^s becomes 0,
 * because first is at most TOP − 31: a zero adds nothing, whatever its m. So a tile may be added up before it is known to fit, and
 * be forgotten if it does not. What does not fit is added up once for each of WINDOWS windows, one below the other. What does not fit
 * these goes to the bins, of which those of float32's sums are of float64.
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

CR_DEVICE void cr_add_product(unsigned long long &sum, uint32_t x, uint32_t y) {
#if defined(__CUDA_ARCH__)
    asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(sum) : "r"(x), "r"(y));
#else
    sum += (unsigned long long)x * y;
#endif
}

/* What a thread adds up: PIECES numbers, each times a power of two: at(), in units of the window's least. LOOK: elements are looked at
 * before they are added, because there is no room for a tile's own sums. MOST: elements until a drain, of Adds that tests may lower. */
template <class E, int KIND> struct cr_second_sum;

/* The significand with its leading bit, of the word with the exponent. */
template <class E> CR_DEVICE uint32_t cr_significand(uint32_t upper) { return (upper & ((1u << E::FIELD) - 1)) | 1u << E::FIELD; }
template <class E> CR_DEVICE uint32_t cr_shift_of(uint32_t t) { return t >> (E::FIELD + 1); }

template <> struct cr_second_sum<cr_f32, CR_SUM_PLAIN> {
    static constexpr int PIECES = 1, SPAN = 22, SLACK = 2, HALVED = 0;
    static constexpr bool LOOK = false;
    long long low = 0;

    CR_DEVICE void add(uint32_t word, uint32_t, uint32_t t) {
        cr_add_product(low, (int)cr_significand<cr_f32>(word), cr_shifted((int)word >> 31 | 1, cr_shift_of<cr_f32>(t)));
    }
    CR_DEVICE void take(const cr_second_sum &more) { low += more.low; }
    CR_DEVICE long long piece(int) const { return low; }
    CR_DEVICE static constexpr int at(int) { return 0; }
};

template <> struct cr_second_sum<cr_f64, CR_SUM_PLAIN> {
    static constexpr int PIECES = 2, SPAN = 29, SLACK = 3, HALVED = 0;
    static constexpr bool LOOK = false;
    long long high = 0, low = 0;

    CR_DEVICE void add(uint32_t upper, uint32_t lower, uint32_t t) {
        const int power = cr_shifted((int)upper >> 31 | 1, cr_shift_of<cr_f64>(t));
        cr_add_product(high, (int)(cr_significand<cr_f64>(upper) + (lower >> 31)), power);
        cr_add_product(low, (int)lower, power);
    }
    CR_DEVICE void take(const cr_second_sum &more) {
        high += more.high + (more.low >> 32);
        low += (long long)(uint32_t)more.low;
    }
    CR_DEVICE long long piece(int i) const { return i == 0 ? low : high; }
    CR_DEVICE static constexpr int at(int i) { return 32 * i; }
};

/* A tile's sum, while it is not known to fit. */
template <class Sum> struct cr_second_tile {
    Sum found;
    CR_DEVICE explicit cr_second_tile(int) {}
    template <class E, int LANES> CR_DEVICE void add(const uint4 &v, uint32_t low) {
        constexpr bool TWO = E::SIZE == 8;
#pragma unroll
        for (int e = 0; e < LANES; e++) {
            const uint32_t upper = cr_word(v, TWO ? 2 * e + 1 : e);
            found.add(upper, TWO ? cr_word(v, 2 * e) : 0, upper + upper + low);
        }
    }
    CR_DEVICE void to(Sum &sum) const { sum.take(found); }
};

template <> struct cr_second_tile<cr_second_sum<cr_f32, CR_SUM_PLAIN>> {
    uint32_t first, second; /* the anchors, and the sums of what their bits became */
    uint32_t high = 0, low = 0, count = 0;
    CR_DEVICE explicit cr_second_tile(int field) {
        second = (uint32_t)field << 23 | 1u << 22;
        first = second + (23u << 23);
    }
    template <class E, int LANES> CR_DEVICE void add(const uint4 &v, uint32_t) {
        const float s = __uint_as_float(first), t = __uint_as_float(second);
#pragma unroll
        for (int e = 0; e < LANES; e++) {
            const float x = __uint_as_float(cr_word(v, e)), next = s + x;
            high += __float_as_uint(next);
            low += __float_as_uint(t + (x - (next - s)));
        }
        count += LANES;
    }
    CR_DEVICE void to(cr_second_sum<cr_f32, CR_SUM_PLAIN> &sum) const {
        sum.low += (long long)(int32_t)(high - first * count) * (1 << 23) + (int32_t)(low - second * count);
    }
};

enum { CR_SQUARE_DIGIT = 26 };

template <> struct cr_second_sum<cr_f32, CR_SUM_SQUARE> {
    static constexpr int PIECES = 3, SPAN = 26, SLACK = 3, HALVED = 1;
    static constexpr bool LOOK = true;
    unsigned long long sum[PIECES] = {0, 0, 0};

    CR_DEVICE void add(uint32_t word, uint32_t, uint32_t t) {
        constexpr int MORE = 32 - CR_SQUARE_DIGIT; /* so that the digits meet between two words */
        unsigned long long y = 0;
        cr_add_product(y, cr_significand<cr_f32>(word), (uint32_t)cr_shifted(1 << MORE, cr_shift_of<cr_f32>(t)));
        const uint32_t low = (uint32_t)y >> MORE, high = (uint32_t)(y >> 32);
        cr_add_product(sum[0], low, low);
        cr_add_product(sum[1], low, high);
        cr_add_product(sum[2], high, high);
    }
    CR_DEVICE void take(const cr_second_sum &more) {
#pragma unroll
        for (int i = 0; i < PIECES; i++) sum[i] += more.sum[i];
    }
    CR_DEVICE long long piece(int i) const { return (long long)sum[i]; }
    CR_DEVICE static constexpr int at(int i) { return CR_SQUARE_DIGIT * i + i % 2; } /* a product of two digits is there twice */
};

template <> struct cr_second_sum<cr_f64, CR_SUM_SQUARE> {
    static constexpr int PIECES = 6, SPAN = 26, SLACK = 3, HALVED = 1;
    static constexpr bool LOOK = true;
    unsigned long long sum[PIECES] = {0, 0, 0, 0, 0, 0}; /* of digits 00, 01, 11, 02, 12, 22 */

    CR_DEVICE void add(uint32_t upper, uint32_t lower, uint32_t t) {
        const uint32_t power = (uint32_t)cr_shifted(1, cr_shift_of<cr_f64>(t)), mask = (1u << CR_SQUARE_DIGIT) - 1;
        unsigned long long low = 0;
        cr_add_product(low, lower, power);
        unsigned long long high = low >> 32;
        cr_add_product(high, cr_significand<cr_f64>(upper), power);
        const uint32_t first = (uint32_t)low & mask,
                       second = __funnelshift_r((uint32_t)low, (uint32_t)high, CR_SQUARE_DIGIT) & mask,
                       third = __funnelshift_r((uint32_t)high, (uint32_t)(high >> 32), 2 * CR_SQUARE_DIGIT - 32);
        cr_add_product(sum[0], first, first);
        cr_add_product(sum[1], first, second);
        cr_add_product(sum[2], second, second);
        cr_add_product(sum[3], first, third);
        cr_add_product(sum[4], second, third);
        cr_add_product(sum[5], third, third);
    }
    CR_DEVICE void take(const cr_second_sum &more) {
#pragma unroll
        for (int i = 0; i < PIECES; i++) sum[i] += more.sum[i];
    }
    CR_DEVICE long long piece(int i) const { return (long long)sum[i]; }
    CR_DEVICE static constexpr int at(int i) {
        return i == 0 ? 0 : i == 1 ? CR_SQUARE_DIGIT + 1 : i == 2 ? 2 * CR_SQUARE_DIGIT : i == 3 ? 2 * CR_SQUARE_DIGIT + 1
               : i == 4 ? 3 * CR_SQUARE_DIGIT + 1 : 4 * CR_SQUARE_DIGIT;
    }
};

/* Squares of float64 need more registers than four blocks of a multiprocessor leave. */
template <class E, int KIND> using cr_second_base = cr_float_sum<E, KIND, 4, KIND == CR_SUM_SQUARE && E::SIZE == 8 ? 3 : CR_GPU_BLOCKS_PER_SM>;

template <class E, int KIND = CR_SUM_PLAIN> struct cr_second : cr_second_base<E, KIND> {
    typedef cr_second_base<E, KIND> Wide;
    typedef typename Wide::Shared Shared;
    typedef typename Wide::Sample Sample;
    typedef typename Wide::Window Window;
    typedef cr_second_sum<E, KIND> Sum;
    static constexpr bool TWO = E::SIZE == 8, IN_DIGITS = Wide::Bins::IN_DIGITS; /* TWO: words of an element */
    static constexpr int SPAN = Sum::SPAN, SLACK = Sum::SLACK, WINDOWS = 3, FIELD = E::FIELD, FIRST_MOST = E::TOP - 31, LANES = Wide::LANES;
    static constexpr uint32_t REACH = ((uint32_t)SPAN << (FIELD + 1)) - 1, MOST = CR_SUM_ADDS >> Sum::HALVED;

    uint32_t low, held; /* −2·first, as its bits lie; elements since the last drain */
    bool calm;          /* the window is this warp's own, and the last tiles fitted */
    Sum sum;

    CR_DEVICE static int place(int field) { return min(max(field + SLACK - (SPAN - 1), 1), FIRST_MOST); }
    CR_DEVICE static cr_span bounds_of(int first) {
        return {((uint32_t)(first + SPAN) << FIELD) - 1, ((uint32_t)first << FIELD) - 1};
    }
    CR_DEVICE int first_of() const { return (int)((0u - low) >> (FIELD + 1)); }
    CR_DEVICE void move(int first) {
        low = 0u - ((uint32_t)first << (FIELD + 1));
        this->bounds = bounds_of(first);
    }
    CR_DEVICE static int unit_of(int first) { return (E::GRID + first - 1) * (KIND == CR_SUM_SQUARE ? 2 : 1); }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, const Sample &sample) {
        Wide::begin(of, shared, sample);
        this->a = this->unit + Window::BELOW; /* the fast way's accumulators, which stay zeros, are in the digits' room */
        held = 0;
        calm = false;
        sum = Sum();
        move(place(E::BIAS));
    }

    CR_DEVICE uint32_t distance(const uint4 &v, int e) const {
        const uint32_t upper = cr_word(v, TWO ? 2 * e + 1 : e);
        return upper + upper + low;
    }
    CR_DEVICE void look_at(const uint4 &v, uint32_t &worst) const {
#pragma unroll
        for (int e = 0; e < LANES; e++) worst = max(worst, distance(v, e));
    }
    CR_DEVICE void add_vector(const uint4 &v, Sum &into) const {
#pragma unroll
        for (int e = 0; e < LANES; e++) into.add(cr_word(v, TWO ? 2 * e + 1 : e), TWO ? cr_word(v, 2 * e) : 0, distance(v, e));
    }

    /* A sum to the warp's digits; last: the exponent of its last bit. The warp together. */
    CR_DEVICE void leave(const Sum &of, int last, Shared &shared) {
        const uint32_t lane = threadIdx.x % 32;
        long long *row = shared.digit[threadIdx.x / 32];
        long long found = this->drained ? cr_digits_carried<Wide::DIGITS>(lane < Wide::DIGITS ? row[lane] : 0) : 0;
#pragma unroll
        for (int i = 0; i < Sum::PIECES; i++) found += this->share(of.piece(i), last + Sum::at(i));
        if (lane < Wide::DIGITS) row[lane] = found;
        this->drained = true;
    }
    CR_DEVICE void settle(Shared &shared) {
        if (held != 0) leave(sum, unit_of(first_of()), shared);
        sum = Sum();
        held = 0;
        if (IN_DIGITS && this->fill != 0) this->drain(shared);
    }

    /* What its tile could not vouch for. 0: it fits, 1: WINDOWS do, 2: they do not; with the first one at `where`, the exponent field of the
     * least element, and NaNs and infinities taken out. */
    template <int N> CR_DEVICE int look(uint4 (&v)[N], int &where, int &lowest, Shared &shared) {
        cr_span seen = this->spread(v);
        while (Window::special(seen.most)) {
            this->strip(v, shared);
            seen = this->spread(v);
        }
        if (Window::within(seen, this->bounds) && (this->placed || seen.most == 0)) return 0;
        const int own = place((int)(seen.most >> FIELD));
        if (Window::within(seen, bounds_of(own))) {
            where = own;
            this->placed = true;
            return 0;
        }
        const int from = this->placed && seen.most <= this->bounds.most ? where : own;
        if (seen.most > bounds_of(from).most || seen.least < bounds_of(max(from - SPAN * (WINDOWS - 1), 1)).least) return 2;
        lowest = (int)((seen.least + 1) >> FIELD);
        where = from;
        this->placed = true;
        return 1;
    }

    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &shared) {
        if (calm) {
            cr_second_tile<Sum> found(first_of());
            uint32_t worst = 0;
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (!Sum::LOOK) found.template add<E, LANES>(v[j], low);
                look_at(v[j], worst);
            }
            if (__all_sync(~0u, worst <= REACH) && held + N * LANES <= MOST) {
                held += N * LANES;
                if constexpr (Sum::LOOK) {
#pragma unroll
                    for (int j = 0; j < N; j++) add_vector(v[j], sum);
                } else {
                    found.to(sum);
                }
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
        int way = 2, where = first_of(), lowest = 0;
        const int first = where;
        if (this->streak > 1) {
            this->streak--;
        } else {
            way = look(v, where, lowest, shared);
            this->streak = way < 2 ? 0 : this->streak == 0 ? 1 : 9;
        }
        calm = this->placed && this->streak < 2;
        const uint32_t filled = IN_DIGITS ? (uint32_t)this->fill + N * LANES : 0;
        if (where != first || held + N * LANES > MOST || filled > (uint32_t)Wide::MOST) {
            settle(shared);
            move(where);
        }
        if (way == 2) {
            if (IN_DIGITS) this->fill += N * LANES;
            this->slow(v, shared);
            return;
        }
        if (way == 0) held += N * LANES;
        again(v, way == 0 ? 0 : lowest, shared);
    }

    /* To the sum; or, if there is a lowest exponent field, by windows from this one down to it. The vectors pass through the first place,
     * and come back, so that the code for one is enough. */
    template <int N> CR_DEVICE void again(uint4 (&v)[N], int lowest, Shared &shared) {
        int first = first_of(), above = first + SPAN;
#pragma unroll 1
        do {
            Sum found;
            const uint32_t reach = (uint32_t)(above - first) << (FIELD + 1), minus = 0u - ((uint32_t)first << (FIELD + 1));
#pragma unroll 1
            for (int j = 0; j < N; j++) {
#pragma unroll
                for (int e = 0; e < LANES; e++) {
                    const uint32_t upper = cr_word(v[0], TWO ? 2 * e + 1 : e), t = upper + upper + minus;
                    found.add(upper, TWO ? cr_word(v[0], 2 * e) : 0, t < reach ? t : ~0u);
                }
                const uint4 one = v[0];
                Wide::template rotate<1>(v);
                v[N - 1] = one;
            }
            if (lowest == 0) sum.take(found);
            else leave(found, unit_of(first), shared);
            above = first;
            first = max(first - SPAN, 1);
        } while (lowest != 0 && above > lowest);
    }

    CR_DEVICE void one(uint64_t element, uint64_t index, Shared &shared) {
        if (Window::inside_one(element, this->bounds)) {
            Sum found;
            add_vector(make_uint4((uint32_t)element, (uint32_t)(element >> 32), 0, 0), found);
            sum.take(found);
        } else {
            this->bounds = {0, ~0u}; /* which has zeros alone */
            Wide::one(element, index, shared);
        }
    }
    CR_DEVICE void publish(const cr_fold_args &of, Shared &shared) {
        leave(sum, unit_of(first_of()), shared); /* some threads had elements by themselves */
        Wide::publish(of, shared);
    }
};

extern "C" int cr_launch_second_sum_f32(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_second<cr_f32>>(args, stream); }
extern "C" int cr_launch_second_sum_f64(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_second<cr_f64>>(args, stream); }
extern "C" int cr_launch_second_sumsq_f32(const cr_fold_args *args, void *stream) {
    return cr_walk_launch<cr_second<cr_f32, CR_SUM_SQUARE>>(args, stream);
}
extern "C" int cr_launch_second_sumsq_f64(const cr_fold_args *args, void *stream) {
    return cr_walk_launch<cr_second<cr_f64, CR_SUM_SQUARE>>(args, stream);
}
