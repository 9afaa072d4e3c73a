/* axis_floats: along an axis, of floats: Σx, Σ|x| and Σx², exactly, by anchors as in sums.cuh (kernels/cpu/fold_anchor.h explains
 * them). Each column, or row, has a window of its own, placed by its first units, and a float32 a level of anchors more
 * where that does not do. NaNs and infinities are counted. What no level takes makes the output hard: axis_hard.cuh folds it.
 *
 * What a thread knows is a number of 128 bits in units of its last anchor's; records with other units are shifted to meet.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_FLOATS_CUH
#define CURED_KERNELS_CUDA_AXIS_FLOATS_CUH

#include "kernels/cuda/axis_walk.cuh"
#include "kernels/cuda/sum_type.cuh"

struct cr_axis_sum_record {
    uint64_t low, high; /* of a number of 128 bits, two's complement */
    uint64_t marks;     /* CR_MARK_… */
    int64_t unit;       /* the exponent of that number's last bit */

    CR_IN cr_i128 value() const { return (cr_i128)((cr_u128)high << 64 | low); }
    CR_IN void set(cr_i128 x) {
        low = (uint64_t)x;
        high = (uint64_t)((cr_u128)x >> 64);
    }
};

CR_DEVICE void cr_axis_sum_merge(cr_axis_sum_record &r, const cr_axis_sum_record &other) {
    cr_i128 a = r.value(), b = other.value();
    r.marks = (((r.marks & CR_MARK_NANS) + (other.marks & CR_MARK_NANS)) | ((r.marks | other.marks) & ~CR_MARK_NANS));
    if (r.unit != other.unit) {
        int64_t down = other.unit - r.unit;
        if (a == 0) {
            r.unit = other.unit;
        } else if (b != 0) {
            if (down < 0) { /* b is to be the coarser one */
                const cr_i128 fine = b;
                b = a;
                a = fine;
                r.unit = other.unit;
                down = -down;
            }
            const cr_u128 magnitude = b < 0 ? -(cr_u128)b : (cr_u128)b;
            if (cr_bits_in(magnitude) + down > 125) r.marks |= CR_MARK_HARD;
            else b = (cr_i128)((cr_u128)b << down);
        }
    }
    const cr_i128 sum = (cr_i128)((cr_u128)a + (cr_u128)b);
    const int64_t top = (int64_t)((cr_u128)sum >> 64) >> 61; /* so that the next sum has room */
    if (top != 0 && top != -1) r.marks |= CR_MARK_HARD;
    r.set(sum);
}

/* How elements come: E knows windows; four units of a column (two of 64 bits) are a quad that E's functions take. */
template <cr_dtype D> struct cr_axis_floats {
    typedef cr_f32 E;
    static constexpr int STEP = 1; /* places of a quad from one element to the next */
    static CR_IN uint32_t word(uint32_t unit, int) { return unit; }
};
template <> struct cr_axis_floats<CR_BF16> {
    typedef cr_f32 E;
    static constexpr int STEP = 1;
    static CR_IN uint32_t word(uint32_t unit, int e) { return e ? unit & 0xffff0000u : unit << 16; }
};
template <> struct cr_axis_floats<CR_F16> {
    typedef cr_f16 E;
    static constexpr int STEP = 2; /* lower halves */
    static CR_IN uint32_t word(uint32_t unit, int e) { return e ? unit >> 16 : unit & 0xffffu; }
};
template <> struct cr_axis_floats<CR_F64> {
    typedef cr_f64 E;
    static constexpr int STEP = 1;
};

template <cr_dtype D, int KIND> struct cr_axis_float {
    typedef cr_axis_floats<D> form;
    typedef typename form::E E;
    using Window = cr_window<E, KIND>;
    static constexpr int SIZE = (int)cr_width(D), C = SIZE < 4 ? 4 / SIZE : 1, U = SIZE == 8 ? 8 : C == 1 ? 16 : 8;
    static constexpr int BLOCKS = C == 1 ? 3 : 2; /* more bytes in flight are worth more than more threads */
    static constexpr int QUAD = SIZE == 8 ? 2 : 4, LEVELS = Window::LEVELS, GROUP = Window::GROUP;
    static constexpr bool FIRST = false, MORE = LEVELS == 1 && E::TOP != 31;
    static_assert(GROUP == QUAD, "a quad is what an anchor takes before its bits go on");
    typedef typename cr_axis_unit<SIZE>::type unit;
    typedef cr_axis_sum_record record;

    struct column {
        unsigned long long acc[LEVELS];
        long long low; /* of the level more */
        cr_i128 total;
        cr_span bounds;
        uint64_t marks;
        int a;
    };
    column col[C];
    uint32_t adds;

    static CR_IN double anchor(const column &c, int level) { return cr_anchor(c.a + Window::SCALE - Window::STEP * level); }
    static CR_IN unsigned long long bits(double x) { return (unsigned long long)__double_as_longlong(x); }

    /* Of a unit: without its signs, where magnitudes are asked for. */
    static CR_IN unit plain(const cr_axis_args &args, unit v) {
        constexpr unit mask = SIZE == 8 ? (unit)INT64_MAX : SIZE == 4 ? (unit)INT32_MAX : (unit)0x7fff7fff;
        return KIND == CR_SUM_PLAIN && args.family == CR_FAM_SUMABS ? v & mask : v;
    }
    /* Units first … first + QUAD - 1, of element e. */
    template <int N> static CR_IN uint4 quad(const unit (&v)[N], int first, int e) {
        if constexpr (SIZE == 8) {
            const uint64_t a = v[first], b = v[first + 1];
            return make_uint4((uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32));
        } else {
            return make_uint4(form::word(v[first], e), form::word(v[first + 1], e), form::word(v[first + 2], e),
                              form::word(v[first + 3], e));
        }
    }

    /* The window is the team's, as far as it lies in this warp: so its records meet without shifts. */
    CR_IN void begin(const cr_axis_args &args, const unit (&v)[U]) {
        const uint32_t p_tile = args.at.p_tile, team = min(p_tile * args.at.m, (uint32_t)CR_WARP);
        adds = 0;
#pragma unroll
        for (int e = 0; e < C; e++) {
            column &c = col[e];
            uint32_t field = 0;
#pragma unroll
            for (int i = 0; E::TOP != 31 && i < U / QUAD; i++) {
                const uint4 q = quad(v, i * QUAD, e);
#pragma unroll
                for (int k = 0; k < QUAD; k++) {
                    const uint32_t seen = (uint32_t)(cr_element<E::SIZE>(q, k * form::STEP) >> E::MANTISSA) & E::TOP;
                    field = max(field, seen == E::TOP ? 0 : seen);
                }
            }
            for (uint32_t step = p_tile; E::TOP != 31 && step < team; step *= 2)
                field = max(field, __shfl_xor_sync(CR_EVERYONE, field, step));
            c.a = Window::place(field != 0 ? (int)field : E::BIAS);
            c.bounds = Window::bounds(c.a, 0);
#pragma unroll
            for (int level = 0; level < LEVELS; level++) c.acc[level] = 0;
            c.low = 0;
            c.total = 0;
            c.marks = 0;
        }
    }

    /* A quad to the running anchors of LEVELS + EXTRA levels. */
    template <int EXTRA> static CR_IN void add(column &c, const uint4 &q) {
        constexpr int TO = LEVELS + EXTRA;
        double s[TO];
#pragma unroll
        for (int level = 0; level < TO; level++) s[level] = anchor(c, level);
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            double x = KIND == CR_SUM_SQUARE ? E::lane(q, i * form::STEP) : E::scaled(q, i * form::STEP);
            if (KIND == CR_SUM_SQUARE) x = __dmul_rn(x, x);
#pragma unroll
            for (int level = 0; level < TO; level++) {
                const double next = __dadd_rn(s[level], x);
                if (level + 1 < TO) x = __dsub_rn(x, __dsub_rn(next, s[level]));
                s[level] = next;
            }
        }
#pragma unroll
        for (int level = 0; level < LEVELS; level++) c.acc[level] += bits(s[level]);
        if (EXTRA) c.low += (long long)(bits(s[TO - 1]) - bits(anchor(c, LEVELS)));
    }

    static CR_IN void set_word(uint4 &q, int i, uint32_t value) { /* i: known when compiling */
        if (i == 0) q.x = value;
        if (i == 1) q.y = value;
        if (i == 2) q.z = value;
        if (i == 3) q.w = value;
    }

    /* A quad that a quick look could not vouch for. */
    static CR_IN void careful(column &c, uint4 q) {
        constexpr uint64_t infinite = (uint64_t)E::TOP << E::MANTISSA, sign = 1ull << (8 * E::SIZE - 1);
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            const uint64_t element = cr_element<E::SIZE>(q, i * form::STEP), magnitude = element & (sign - 1);
            if (magnitude < infinite) continue;
            if (magnitude > infinite) c.marks++;
            else c.marks |= KIND != CR_SUM_SQUARE && (element & sign) ? CR_MARK_MINUS : CR_MARK_PLUS;
            if (SIZE == 8) {
                set_word(q, 2 * i, 0);
                set_word(q, 2 * i + 1, 0);
            } else {
                set_word(q, i, 0);
            }
        }
        cr_span seen = {0, ~0u};
        E::look(seen, q);
        if (Window::inside(seen, c.bounds)) {
            add<0>(c, q);
        } else {
            bool fits = false;
            if constexpr (MORE) {
                fits = Window::inside(seen, Window::bounds(c.a, 1));
                if (fits) add<1>(c, q);
            }
            if (!fits) {
                c.marks |= CR_MARK_HARD;
#pragma unroll
                for (int level = 0; level < LEVELS; level++) c.acc[level] += bits(anchor(c, level));
            }
        }
    }

    CR_IN void drain() {
#pragma unroll
        for (int e = 0; e < C; e++) {
            column &c = col[e];
            cr_i128 value = 0;
#pragma unroll
            for (int level = 0; level < LEVELS; level++) {
                if (level > 0) value = (cr_i128)((cr_u128)value << Window::STEP);
                value += (long long)(c.acc[level] - bits(anchor(c, level)) * adds);
                c.acc[level] = 0;
            }
            if (MORE && c.low != 0 && (c.marks & CR_MARK_FINE) == 0) {
                c.marks |= CR_MARK_FINE;
                c.total = (cr_i128)((cr_u128)c.total << Window::STEP);
            }
            if (MORE && (c.marks & CR_MARK_FINE) != 0) value = (cr_i128)((cr_u128)value << Window::STEP) + c.low;
            c.low = 0;
            c.total += value;
        }
        adds = 0;
    }

    /* What a quick look vouches for is added; otherwise the tile is loaded once more, a quad at a time, so that its units need not be
     * kept for this. */
    CR_IN void tile(const cr_axis_args &args, unit (&v)[U], uint32_t, int left, const uint8_t *p, uint64_t stride) {
        constexpr int QUADS = U / QUAD;
        if (adds + QUADS > (uint32_t)Window::ADDS) drain();
        adds += QUADS;
        if (KIND == CR_SUM_PLAIN && args.family == CR_FAM_SUMABS) {
#pragma unroll
            for (int i = 0; i < U; i++) v[i] = plain(args, v[i]);
        }
#pragma unroll
        for (int e = 0; e < C; e++) {
            column &c = col[e];
            const uint32_t low = Window::low(c.bounds);
            uint32_t worst = 0;
#pragma unroll
            for (int i = 0; i < QUADS; i++) E::glance(worst, quad(v, i * QUAD, e), low);
            if (Window::near(worst, c.bounds)) {
#pragma unroll
                for (int i = 0; i < QUADS; i++) add<0>(c, quad(v, i * QUAD, e));
            } else {
                again(c, e, args, left, p, stride);
            }
        }
    }
    static CR_IN void again(column &c, int e, const cr_axis_args &args, int left, const uint8_t *p, uint64_t stride) {
#pragma unroll 1
        for (int i = 0; i < U; i += QUAD) {
            unit v[QUAD];
            if (i < left) {
                cr_axis_load<cr_axis_float, QUAD>(v, args.at, p, stride, left - i);
#pragma unroll
                for (int k = 0; k < QUAD; k++) v[k] = plain(args, v[k]);
                careful(c, quad(v, 0, e));
            } else {
#pragma unroll
                for (int level = 0; level < LEVELS; level++) c.acc[level] += bits(anchor(c, level)); /* nothing added */
            }
            p += args.at.vector > 1 ? stride : stride * QUAD;
        }
    }
    CR_IN void one(const cr_axis_args &args, uint32_t e, uint64_t element, uint32_t) {
        unit v[QUAD];
#pragma unroll
        for (int i = 0; i < QUAD; i++) v[i] = 0;
        v[0] = plain(args, (unit)element << (SIZE < 4 ? 8 * SIZE * e : 0));
        if (adds + 1 > (uint32_t)Window::ADDS) drain();
        adds++;
#pragma unroll
        for (int k = 0; k < C; k++) careful(col[k], quad(v, 0, k)); /* zeros fit everywhere */
    }
    CR_IN record take(const cr_axis_args &, uint32_t e, const cr_axis_spot<SIZE> &) {
        if (adds != 0) drain();
        record r;
        r.unit = col[e].a - Window::STEP * (LEVELS - 1 + ((col[e].marks & CR_MARK_FINE) != 0));
        r.marks = col[e].marks & ~CR_MARK_FINE;
        r.set(col[e].total);
        return r;
    }
    /* All in the same units, and nothing special. */
    static CR_IN bool quick(record &r, uint32_t first, uint32_t step) {
        const uint32_t lane = threadIdx.x % CR_WARP, leader = lane & ~((2 * step - 1) & ~(first - 1));
        const int unit = __shfl_sync(CR_EVERYONE, (int)r.unit, leader);
        if (!__all_sync(CR_EVERYONE, unit == (int)r.unit && r.marks == 0)) return false;
        if (__all_sync(CR_EVERYONE, cr_axis_is_narrow(r.low, r.high))) {
            const int64_t sum = cr_axis_lanes_sum((int64_t)r.low, first, step);
            r.low = (uint64_t)sum;
            r.high = (uint64_t)(sum >> 63);
            return true;
        }
        const int64_t high = (int64_t)r.high;
        if (!__all_sync(CR_EVERYONE, high >> 55 == high >> 63)) return false; /* 32 of them have room to spare */
        for (; step >= first; step /= 2) {
            const uint64_t low = __shfl_xor_sync(CR_EVERYONE, r.low, step);
            r.high += __shfl_xor_sync(CR_EVERYONE, r.high, step);
            r.low += low;
            r.high += r.low < low;
        }
        return true;
    }
    static CR_IN record empty(const cr_axis_args &) { return {0, 0, 0, 0}; }
    static CR_IN void merge(record &r, const record &other) { cr_axis_sum_merge(r, other); }
    static CR_IN void finish(const cr_axis_args &args, const record &r, uint64_t output) {
        const bool decided = (r.marks & (CR_MARK_PLUS | CR_MARK_MINUS | (args.skip ? (uint64_t)0 : (uint64_t)CR_MARK_NANS))) != 0;
        if ((r.marks & CR_MARK_HARD) != 0 && !decided) { /* later */
            cr_axis_head *head = reinterpret_cast<cr_axis_head *>(args.scratch);
            reinterpret_cast<uint32_t *>(head + 1)[atomicAdd(&head->hard, 1u)] = (uint32_t)output;
            return;
        }
        const cr_i128 value = r.value();
        const bool negative = value < 0;
        for (uint32_t k = 0; k < args.out_count; k++)
            cr_float_answer(args, args.out[k], output, negative, negative ? -(cr_u128)value : (cr_u128)value, (int)r.unit,
                            false, r.marks);
    }
};

#endif
