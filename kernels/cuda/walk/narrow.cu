/* narrow: Σx of float16 and bfloat16 by float32, for chips whose float64 is slow. Folds take it where the fast way gpu_float64 is off,
 * which it is for tests and benches alone: no GPU has measured it.
 *
 * Four elements go over two anchors, whose last bits are 2^20 apart. They are below 2^22 of the first one's last bits, so it keeps its
 * exponent. What it rounds off is at most half of such a bit, and a multiple of the second one's; so the second takes it exactly. The
 * anchors' bits, less those they began with, are integers of these units.
 *
 * All float16 fit two anchors. There NaNs and infinities leave the first with another exponent, and nothing else is looked at. Bfloat16 have
 * a window as in fold/float_sums.cuh, but of 32 binades, below 2^124. What does not fit goes to the bins, which are of float64.
 * Thread: GPU. Owner: the kernel. */
#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/thread/narrow.cuh"
#include "kernels/cuda/walk/walk.cuh"

enum { CR_NARROW_GROUP = 4, CR_NARROW_APART = 20 };

/* The sum of a tile: high·2^APART + low of the second anchor's last bits. */
struct cr_narrow_anchors {
    uint32_t first, second; /* as they begin */
    uint32_t high, low, odd;

    /* fine: the exponent of the second anchor's last bit */
    CR_DEVICE explicit cr_narrow_anchors(int fine) {
        second = (uint32_t)(fine + 23 + 127) << 23 | 1u << 22;
        first = second + ((uint32_t)CR_NARROW_APART << 23);
        high = low = odd = 0;
    }
    /* Four elements. `odd` gets a bit above the 23rd if one is no number. */
    CR_DEVICE void add(const float (&x)[CR_NARROW_GROUP]) {
        float s = __uint_as_float(first), t = __uint_as_float(second);
#pragma unroll
        for (int i = 0; i < CR_NARROW_GROUP; i++) {
            const float next = s + x[i];
            t += x[i] - (next - s);
            s = next;
        }
        high += __float_as_uint(s) - first;
        low += __float_as_uint(t) - second;
        odd |= __float_as_uint(s) ^ first;
    }
    CR_DEVICE unsigned long long total() const {
        return (unsigned long long)((long long)(int32_t)high * (1 << CR_NARROW_APART) + (int32_t)low);
    }
};

template <class E> struct cr_narrow_sum : cr_float_sum<E, CR_SUM_PLAIN> {
    typedef cr_float_sum<E, CR_SUM_PLAIN> Wide;
    typedef typename Wide::Shared Shared;
    static_assert(Wide::GROUP == CR_NARROW_GROUP && Wide::LEVELS == 1, "the accumulator counts groups");

    CR_DEVICE static void add_vector(const uint4 &v, cr_narrow_anchors &to) {
#pragma unroll
        for (int e = 0; e < Wide::LANES; e += CR_NARROW_GROUP) {
            float x[CR_NARROW_GROUP];
#pragma unroll
            for (int i = 0; i < CR_NARROW_GROUP; i++) x[i] = cr_narrow<E>::lane(v, e + i);
            to.add(x);
        }
    }
    template <int N> CR_DEVICE static constexpr uint32_t groups() {
        static_assert(N * Wide::LANES / CR_NARROW_GROUP < 1 << 9, "32 bits hold a tile's sums");
        return N * Wide::LANES / CR_NARROW_GROUP;
    }
    template <int N> CR_DEVICE void take(const cr_narrow_anchors &sum) { this->acc[0] += this->base(0) * groups<N>() + sum.total(); }
};

struct cr_narrow_f16 : cr_narrow_sum<cr_f16> {
    static constexpr int FINE = -24;
    static_assert(FINE == cr_f16::GRID, "sums are in the unit of the accumulator");

    /* NaNs and infinities are counted, and made zeros. The warp together. */
    template <int N> CR_DEVICE void odd_tile(const uint4 (&given)[N], Shared &shared, cr_narrow_anchors &sum) {
        uint4 v[N];
        sum = cr_narrow_anchors(FINE);
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = given[j];
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            uint4 one[1] = {v[0]};
            strip(one, shared);
            add_vector(one[0], sum);
            rotate<1>(v);
        }
    }
    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &shared) {
        cr_narrow_anchors sum(FINE);
#pragma unroll
        for (int j = 0; j < N; j++) add_vector(v[j], sum);
        if (__any_sync(~0u, sum.odd >> 23)) odd_tile(v, shared, sum);
        if (adds + groups<N>() > (uint32_t)MOST) drain(shared);
        adds += groups<N>();
        take<N>(sum);
    }
};

struct cr_narrow_bf16 : cr_narrow_sum<cr_bf16> {
    static constexpr int SLACK = 3, REACH = 19 + CR_NARROW_APART; /* exponents of elements, above the second anchor's last bit */
    static constexpr int A_LEAST = cr_bf16::GRID, A_MOST = 254 - 127 - 23 - CR_NARROW_APART;

    /* The exponent of the second anchor's last bit, for a largest exponent field. */
    CR_DEVICE static int place(int field) { return min(max(max(field, 1) - cr_bf16::BIAS + SLACK - REACH, A_LEAST), A_MOST); }
    CR_DEVICE static cr_span bounds_of(int a) {
        const int most = min(a + REACH + cr_bf16::BIAS, cr_bf16::TOP - 1), least = a + cr_bf16::MANTISSA + cr_bf16::BIAS;
        cr_span found;
        found.most = ((uint32_t)(most + 1) << cr_bf16::FIELD) - 1;
        found.least = least <= 1 ? 0 : ((uint32_t)least << cr_bf16::FIELD) - 1;
        return found;
    }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, const Sample &sample) {
        Wide::begin(of, shared, sample);
        a = place(cr_bf16::BIAS);
        bounds = bounds_of(a);
    }
    /* As of fold/float_sums.cuh; a level more there is not. */
    template <int N> CR_DEVICE int look(uint4 (&v)[N], int &where, Shared &shared) {
        cr_span seen = spread(v);
        while (Window::special(seen.most)) {
            strip(v, shared);
            seen = spread(v);
        }
        if (Window::within(seen, bounds) && (placed || seen.most == 0)) return 0;
        const int own = place((int)(seen.most >> cr_bf16::FIELD));
        if (!Window::within(seen, bounds_of(own))) return 2;
        where = own;
        placed = true;
        return 0;
    }
    template <int N> CR_DEVICE void tile(const uint4 (&given)[N], uint64_t, uint32_t, Shared &shared) {
        uint4 v[N];
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = given[j];
        int way = 2, where = a;
        if (streak > 1) {
            streak--;
        } else if (!placed || !glance(v)) {
            way = look(v, where, shared);
            streak = way < 2 ? 0 : streak == 0 ? 1 : 9;
        } else {
            way = 0;
            streak = 0;
        }
        if (where != a || max(adds + groups<N>(), (uint32_t)fill + N * LANES) > (uint32_t)MOST) {
            if (adds != 0 || fill != 0) drain(shared);
            a = where;
            bounds = bounds_of(a);
        }
        if (way != 0) {
            fill += N * LANES;
            slow(v, shared);
            return;
        }
        adds += groups<N>();
        cr_narrow_anchors sum(a);
#pragma unroll
        for (int j = 0; j < N; j++) add_vector(v[j], sum);
        take<N>(sum);
    }
};

/* Squares: as float_sums.cuh has it. What no window takes goes to the same bins. */
template <class T, int KIND> struct cr_bins<cr_narrow<T>, KIND> : cr_bins<T, KIND> {};
template <class T> using cr_narrow_squares = cr_float_sum<cr_narrow<T>, CR_SUM_SQUARE>;

extern "C" int cr_launch_narrow_sumsq_f16(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_narrow_squares<cr_f16>>(args, stream); }
extern "C" int cr_launch_narrow_sumsq_bf16(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_narrow_squares<cr_bf16>>(args, stream); }
extern "C" int cr_launch_narrow_sum_f16(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_narrow_f16>(args, stream); }
extern "C" int cr_launch_narrow_sum_bf16(const cr_fold_args *args, void *stream) { return cr_walk_launch<cr_narrow_bf16>(args, stream); }
