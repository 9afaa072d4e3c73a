/* counts: along an axis: non-zero elements, NaNs and infinities; bits of integers; and the extrema with their places.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_COUNTS_CUH
#define CURED_KERNELS_CUDA_AXIS_COUNTS_CUH

#include "kernels/cuda/thread/keys.cuh"
#include "kernels/cuda/axis/walk.cuh"

/* D stands for all types of its width that count alike: u8, u16, u32, u64, and each float. */
template <cr_dtype D> struct cr_axis_count {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 4 : 8, BLOCKS = 4;
    static constexpr bool FIRST = false, REDO = false, STOPS = false, TOGETHER = false, AHEAD = false, APART = false;
    typedef typename cr_axis_unit<SIZE>::type unit;
    struct record {
        uint64_t nonzero, nans, infinities;
    };
    uint32_t nonzero[C], nans[C], infinities[C];

    CR_DEVICE void begin(const cr_axis_args &, const unit (&)[U]) {
#pragma unroll
        for (int e = 0; e < C; e++) nonzero[e] = nans[e] = infinities[e] = 0;
    }
    static CR_DEVICE uint64_t element(unit v, int e) {
        return SIZE >= 4 ? (uint64_t)v : (uint64_t)((uint32_t)v >> 8 * SIZE * e & ((1u << 8 * (SIZE % 4)) - 1));
    }
    CR_DEVICE void add(uint64_t bits, int e) {
        constexpr uint64_t sign = 1ull << (8 * SIZE - 1);
        nonzero[e] += cr_is_float(D) ? (bits & (sign - 1)) != 0 : bits != 0;
        if (cr_is_float(D)) {
            nans[e] += (bits & (sign - 1)) > cr_infinity(D);
            if (cr_has_infinity(D)) infinities[e] += (bits & (sign - 1)) == cr_infinity(D);
        }
    }
    CR_DEVICE void tile(const cr_axis_args &, const unit (&v)[U], uint32_t, int, const uint8_t *, uint64_t) {
#pragma unroll
        for (int i = 0; i < U; i++) {
#pragma unroll
            for (int e = 0; e < C; e++) add(element(v[i], e), e);
        }
    }
    CR_DEVICE void one(const cr_axis_args &, uint32_t e, uint64_t bits, uint32_t) {
#pragma unroll
        for (int k = 0; k < C; k++) {
            if (k == (int)e) add(bits, k);
        }
    }
    CR_DEVICE record take(const cr_axis_args &, uint32_t e, const cr_axis_spot<SIZE> &) const {
        return {nonzero[e], nans[e], infinities[e]};
    }
    static CR_DEVICE record empty(const cr_axis_args &) { return {0, 0, 0}; }
    static CR_DEVICE bool quick(record &, uint32_t, uint32_t) { return false; }
    static CR_DEVICE void merge(record &r, const record &other) {
        r.nonzero += other.nonzero;
        r.nans += other.nans;
        r.infinities += other.infinities;
    }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        const uint64_t left_out = args.skip ? r.nans : 0, n = cr_count_of(args, output) - left_out, nonzero = r.nonzero - left_out;
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            const uint64_t answer = cr_close_count((cr_term)out.term, n, nonzero, r.nans, r.infinities);
            cr_put_bits(out.to, output, out.result, answer);
        }
        return true;
    }
};

/* D: bool, u8, u16, u32 or u64. */
template <cr_dtype D> struct cr_axis_bit {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 4 : 8, BLOCKS = 4;
    static constexpr bool FIRST = false, REDO = false, STOPS = false, TOGETHER = false, AHEAD = false, APART = false;
    typedef typename cr_axis_unit<SIZE>::type unit;
    struct record {
        uint64_t lacking, any, odd; /* bits that some element lacks, has, an odd number of them has */
    };
    unit lacking, any, odd;

    CR_DEVICE void begin(const cr_axis_args &, const unit (&)[U]) { lacking = any = odd = 0; }
    CR_DEVICE void add(unit v, unit beyond) {
        const unit x = D == CR_BOOL ? (unit)(cr_nonzero_bytes((uint32_t)v) >> 7) : v;
        any |= x;
        odd ^= x;
        lacking |= ~x & ~beyond;
    }
    CR_DEVICE void tile(const cr_axis_args &, const unit (&v)[U], uint32_t, int left, const uint8_t *, uint64_t) {
#pragma unroll
        for (int i = 0; i < U; i++) add(v[i], i < left ? 0 : ~(unit)0);
    }
    CR_DEVICE void one(const cr_axis_args &, uint32_t e, uint64_t bits, uint32_t) {
        const unit mask = (unit)cr_axis_count<D>::element(~(unit)0, 0);
        add((unit)bits << 8 * SIZE * e, ~(mask << 8 * SIZE * e));
    }
    CR_DEVICE record take(const cr_axis_args &, uint32_t e, const cr_axis_spot<SIZE> &) const {
        typedef cr_axis_count<D> count;
        return {count::element(lacking, (int)e), count::element(any, (int)e), count::element(odd, (int)e)};
    }
    static CR_DEVICE record empty(const cr_axis_args &) { return {0, 0, 0}; }
    static CR_DEVICE bool quick(record &, uint32_t, uint32_t) { return false; }
    static CR_DEVICE void merge(record &r, const record &other) {
        r.lacking |= other.lacking;
        r.any |= other.any;
        r.odd ^= other.odd;
    }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            const uint64_t all = D == CR_BOOL ? ~r.lacking & 1 : ~r.lacking;
            cr_put_bits(out.to, output, (int)out.result,
                        cr_close_bits((cr_term)out.term, all, r.any, r.odd));
        }
        return true;
    }
};

/* Best keys and where they came first; most as it is. A place is the number of the thread's unit. */
template <cr_dtype D> struct cr_axis_extreme {
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 4 : 8, BLOCKS = SIZE == 1 ? 3 : 4;
    static constexpr bool FIRST = true, REDO = false, STOPS = false, TOGETHER = false, AHEAD = false, APART = false, FILLS = true, FLOAT = cr_is_float(D);
    typedef typename cr_axis_unit<SIZE>::type unit;
    typedef unit key;
    static constexpr uint32_t NONE = UINT32_MAX;
    struct record {
        uint64_t least, least_at, most, most_at, nan_at; /* keys of cr_key_of; places along the axis, UINT64_MAX: none */
    };
    key least[C], most[C];
    uint32_t least_at[C], most_at[C], nan_at[C];

    CR_DEVICE void begin(const cr_axis_args &, const unit (&)[U]) {
#pragma unroll
        for (int e = 0; e < C; e++) {
            least[e] = ~(key)0;
            most[e] = 0;
            least_at[e] = most_at[e] = nan_at[e] = NONE;
        }
    }
    CR_DEVICE void add(uint64_t bits, int e, uint32_t j) {
        if (FLOAT && cr_is_nan<D>(bits)) {
            nan_at[e] = min(nan_at[e], j);
            return;
        }
        const key k = (key)cr_key_of<D>(bits);
        if (k < least[e] || least_at[e] == NONE) {
            least[e] = k;
            least_at[e] = j;
        }
        if (k > most[e] || most_at[e] == NONE) {
            most[e] = k;
            most_at[e] = j;
        }
    }
    static CR_DEVICE key key_of(unit v, int e) { return (key)cr_key_of<D>(cr_axis_count<D>::element(v, e)); }
    /* The tile's best first; only one that is better than before is looked for. */
    CR_DEVICE void tile(const cr_axis_args &, const unit (&v)[U], uint32_t j, int, const uint8_t *, uint64_t) {
        constexpr uint64_t top = 1ull << (8 * SIZE - 1);
        constexpr key plus = (key)(cr_infinity(D) | top), minus = (key)(top - 1 - cr_infinity(D));
#pragma unroll
        for (int e = 0; e < C; e++) {
            key low = key_of(v[0], e), high = low;
#pragma unroll
            for (int i = 1; i < U; i++) {
                low = min(low, key_of(v[i], e));
                high = max(high, key_of(v[i], e));
            }
            if (FLOAT && (high > plus || low < minus)) { /* beyond the infinities are only NaNs */
#pragma unroll
                for (int i = 0; i < U; i++) add(cr_axis_count<D>::element(v[i], e), e, j + (uint32_t)i);
                continue;
            }
            if (low < least[e] || least_at[e] == NONE) {
                least[e] = low;
#pragma unroll
                for (int i = U - 1; i >= 0; i--) least_at[e] = key_of(v[i], e) == low ? j + (uint32_t)i : least_at[e];
            }
            if (high > most[e] || most_at[e] == NONE) {
                most[e] = high;
#pragma unroll
                for (int i = U - 1; i >= 0; i--) most_at[e] = key_of(v[i], e) == high ? j + (uint32_t)i : most_at[e];
            }
        }
    }
    CR_DEVICE void one(const cr_axis_args &, uint32_t e, uint64_t bits, uint32_t j) {
#pragma unroll
        for (int k = 0; k < C; k++) {
            if (k == (int)e) add(bits, k, j);
        }
    }
    CR_DEVICE record take(const cr_axis_args &args, uint32_t e, const cr_axis_spot<SIZE> &spot) const {
        const uint64_t beside = args.at.rows ? e : 0;
        const uint32_t at[3] = {least_at[e], most_at[e], nan_at[e]};
        uint64_t place[3];
#pragma unroll
        for (int i = 0; i < 3; i++) place[i] = at[i] == NONE ? UINT64_MAX : spot.place(args.at, at[i]) + beside;
        return {least[e], place[0], most[e], place[1], place[2]};
    }
    static CR_DEVICE bool is_short(uint64_t place) { return place >> 32 == 0 || place == UINT64_MAX; }
    /* The lowest place of those lanes that hold the best key. */
    static CR_DEVICE uint64_t first_of(bool best, uint64_t place) {
        const uint32_t low = __reduce_min_sync(CR_EVERYONE, best ? (uint32_t)place : NONE);
        return low == NONE ? UINT64_MAX : low;
    }
    static CR_DEVICE bool quick(record &r, uint32_t first, uint32_t step) {
        if (SIZE == 8 || first != 1 || step != CR_WARP / 2) return false;
        const bool fits = is_short(r.least_at) && is_short(r.most_at) && is_short(r.nan_at);
        if (!__all_sync(CR_EVERYONE, fits)) return false;
        const uint32_t low = __reduce_min_sync(CR_EVERYONE, (uint32_t)r.least), high = __reduce_max_sync(CR_EVERYONE, (uint32_t)r.most);
        r = {low, first_of(r.least == low, r.least_at), high, first_of(r.most == high, r.most_at), first_of(true, r.nan_at)};
        return true;
    }
    static CR_DEVICE record empty(const cr_axis_args &) { return {~(key)0, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX}; }
    static CR_DEVICE void merge(record &r, const record &other) {
        if (other.least_at != UINT64_MAX && (other.least < r.least || (other.least == r.least && other.least_at < r.least_at))) {
            r.least = other.least;
            r.least_at = other.least_at;
        }
        if (other.most_at != UINT64_MAX && (other.most > r.most || (other.most == r.most && other.most_at < r.most_at))) {
            r.most = other.most;
            r.most_at = other.most_at;
        }
        r.nan_at = min(r.nan_at, other.nan_at);
    }
    /* The largest magnitude, as norminf's type holds it. */
    static CR_DEVICE uint64_t largest(const record &r) {
        constexpr uint64_t top = 1ull << (8 * SIZE - 1), all = top | (top - 1);
        if (r.least_at == UINT64_MAX) return 0;
        uint64_t low = cr_bits_of<D>(r.least), high = cr_bits_of<D>(r.most);
        if (FLOAT) {
            low &= top - 1;
            high &= top - 1;
        } else if (cr_is_signed(D)) {
            if (low & top) low = (~low + 1) & all;
            if (high & top) high = (~high + 1) & all;
        }
        return max(low, high);
    }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        const bool nan = r.nan_at != UINT64_MAX && !args.skip, none = r.least_at == UINT64_MAX;
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            uint64_t answer;
            if (out.term == CR_TERM_LEAST_INDEX || out.term == CR_TERM_GREATEST_INDEX) {
                answer = nan ? r.nan_at : out.term == CR_TERM_LEAST_INDEX ? r.least_at : r.most_at;
            } else if (nan || (none && out.term != CR_TERM_GREATEST_MAGNITUDE)) {
                answer = cr_nan_bits((int)D);
            } else {
                answer = out.term == CR_TERM_GREATEST_MAGNITUDE ? largest(r) : cr_bits_of<D>(out.term == CR_TERM_LEAST ? r.least : r.most);
            }
            cr_put_bits(out.to, output, out.result, answer);
        }
        return true;
    }
};

#endif
