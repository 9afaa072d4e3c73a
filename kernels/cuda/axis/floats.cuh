/* floats: along an axis, of floats: Σx, Σ|x| and Σx², exactly, by anchors as in float_sums.cuh (kernels/cpu/family/anchor.h explains
 * them). Each column, or row, has a window of its own, placed by its first units, and a float32 a level of anchors more
 * where that does not do. NaNs and infinities are counted. What no level takes makes the output hard: levels.cuh folds its tile
 * again, or square_bins.cuh the output, where elements have 64 bits.
 *
 * What a thread knows is a number of 128 bits (squares: 192) in units of its last anchor's; records with other
 * units are shifted to meet. Elements of 8 and 16 bits that lie in one unit share a window, and are summed apart.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_FLOATS_CUH
#define CURED_KERNELS_CUDA_AXIS_FLOATS_CUH

#include "kernels/cuda/axis/walk.cuh"
#include "kernels/cuda/thread/float.cuh"

/* What is known of an output. */
template <int W> struct cr_axis_sum_record {
    cr_words<W> value;
    uint64_t marks; /* CR_MARK_… */
    int64_t unit;   /* the exponent of value's last bit */
};

template <int W> CR_DEVICE void cr_axis_sum_merge(cr_axis_sum_record<W> &r, const cr_axis_sum_record<W> &other) {
    cr_words<W> b = other.value;
    r.marks = (((r.marks & CR_MARK_NANS) + (other.marks & CR_MARK_NANS)) | ((r.marks | other.marks) & ~CR_MARK_NANS));
    if (r.unit != other.unit) {
        int64_t down = other.unit - r.unit;
        if (r.value.zero()) {
            r.unit = other.unit;
        } else if (!b.zero()) {
            if (down < 0) { /* b is to be the coarser one */
                const cr_words<W> fine = b;
                b = r.value;
                r.value = fine;
                r.unit = other.unit;
                down = -down;
            }
            cr_words<W> magnitude = b;
            magnitude.strip_sign();
            if (magnitude.bits() + down > 64 * W - 3) r.marks |= CR_MARK_HARD;
            else b.up((unsigned)down);
        }
    }
    r.value.add(b);
    const int64_t top = (int64_t)r.value.word[W - 1] >> 61; /* so that the next sum has room */
    if (top != 0 && top != -1) r.marks |= CR_MARK_HARD;
}

/* What takes more than one conversion. */
template <int W, class ARGS>
CR_CALLED void cr_axis_sum_answer(const ARGS &args, const cr_axis_out &out, uint64_t output, const cr_axis_sum_record<W> &r) {
    cr_words<W> positive = r.value;
    const bool negative = positive.strip_sign();
    int exponent = (int)r.unit;
    bool sticky = false;
    const cr_u128 magnitude = cr_leading(positive, exponent, sticky);
    cr_float_answer(args, out, output, negative, magnitude, exponent, sticky, r.marks);
}

template <int W, class ARGS>
CR_DEVICE void cr_axis_put_sum(const ARGS &args, const cr_axis_out &out, uint64_t output, const cr_axis_sum_record<W> &r) {
    if (r.marks != 0 || !r.value.fits_64() || !cr_axis_quick_answer(args, out, output, (int64_t)r.value.word[0], (int)r.unit)) {
        const cr_axis_sum_record<W> copy = r; /* it alone has an address; r stays in registers */
        cr_axis_sum_answer(args, out, output, copy);
    }
}

template <int SIZE, int KIND> static constexpr int cr_axis_float_units() { return SIZE == 4 && KIND == CR_SUM_SQUARE ? 12 : 16; }

template <cr_dtype D, int KIND, int UNITS = cr_axis_float_units<(int)cr_width(D), KIND>(), bool RUNS_AHEAD = false, class OF = cr_float_of<D>>
struct cr_axis_float {
    typedef OF E;
    using Window = cr_window<E, KIND>;
    typedef typename E::number number;
    typedef cr_anchors<number> Anchors;
    typedef typename Anchors::word word;
    static constexpr int SIZE = E::SIZE, C = SIZE < 4 ? 4 / SIZE : 1, U = UNITS;
    static constexpr int BLOCKS = SIZE == 8 || RUNS_AHEAD || D == CR_BF16 || SIZE == 1 || (KIND == CR_SUM_SQUARE && SIZE != 4) ? 2 : 3; /* more bytes in flight are worth more than more threads */
    static constexpr bool SQUARE = KIND == CR_SUM_SQUARE;
    static_assert(!SQUARE || SIZE < 8, "quarters.cuh has those");
    /* A quad is 16 bytes of a column: four elements, in each of C places side by side (two of 64 bits). GROUPS of them go to an
     * anchor before its bits go on. */
    static constexpr int QUAD = SIZE == 8 ? 2 : 4, QUADS = U / QUAD, LEVELS = Window::LEVELS, GROUPS = QUAD / Window::GROUP;
    static constexpr bool FIRST = false, TOGETHER = true, AHEAD = RUNS_AHEAD, APART = true, HALF = E::ONE_WINDOW, REDO = SIZE != 8 && !HALF, MORE = SIZE != 8 && !HALF, STOPS = !HALF;
    static constexpr int W = SQUARE && !HALF ? 3 : 2;
    /* Binades more above the largest of the first elements, where the window has plenty below: among many zeros the first that are none may
     * be small, and one thread whose window is too low has its whole tile folded again. */
    static constexpr int SLACK = D == CR_BF16 ? 8 : SIZE == 4 ? (SQUARE ? 3 : 4) : SIZE == 8 ? 16 : 0;
    typedef typename cr_axis_unit<SIZE>::type unit;
    typedef cr_axis_sum_record<W> record;

    struct column {
        word acc[LEVELS];
        long long low; /* of the level more */
        cr_words<W> total;
        uint64_t marks;
    };
    column col[C];
    cr_span bounds;
    int a;
    uint32_t adds;
    bool fine, hard; /* totals count the level more's units; some element fits no window */

    CR_DEVICE number anchor(int level) const { return Anchors::make(a + Window::SCALE - Window::STEP * level); }
    static CR_DEVICE word bits(number x) { return Anchors::bits(x); }

    /* Of a unit: without its signs, where magnitudes are asked for. */
    static CR_DEVICE unit plain(const cr_axis_args &args, unit v) {
        constexpr unit mask = SIZE == 8 ? (unit)INT64_MAX : SIZE == 4 ? (unit)INT32_MAX : SIZE == 2 ? (unit)0x7fff7fff : (unit)0x7f7f7f7f;
        return !SQUARE && args.family == CR_FAM_SUMABS ? v & mask : v;
    }
    /* Units first … first + QUAD - 1. */
    template <int N> static CR_DEVICE uint4 quad(const unit (&v)[N], int first) {
        if constexpr (SIZE == 8) {
            const uint64_t x = v[first], y = v[first + 1];
            return make_uint4((uint32_t)x, (uint32_t)(x >> 32), (uint32_t)y, (uint32_t)(y >> 32));
        } else {
            return make_uint4(v[first], v[first + 1], v[first + 2], v[first + 3]);
        }
    }

    /* The largest exponent field but those of NaNs and infinities. */
    static CR_DEVICE uint32_t finite_field(const unit (&v)[U], int look) {
        uint32_t field = 0;
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            if (i >= look) break;
#pragma unroll
            for (int k = 0; k < QUAD * C; k++) {
                const uint32_t seen = (uint32_t)(cr_element<SIZE>(quad(v, i * QUAD), k) >> E::MANTISSA) & E::TOP;
                field = max(field, seen == E::TOP ? 0 : seen);
            }
        }
        return field;
    }
    /* The window is the team's, as far as it lies in this warp: so its records meet without shifts. */
    CR_DEVICE void begin(const cr_axis_args &args, const unit (&v)[U]) { begin_at(first_field<AHEAD>(args, v)); }
    /* The largest exponent field among the team's first units. */
    template <bool BRISK> static CR_DEVICE uint32_t first_field(const cr_axis_args &args, const unit (&v)[U]) {
        const uint32_t p_tile = args.at.p_tile, team = min(p_tile * args.at.m, (uint32_t)CR_WARP);
        uint32_t field = 0;
        if (HALF) return field;
        const int look = p_tile * 4 <= team ? 1 : QUADS; /* with many others one quad is enough */
        if constexpr (BRISK) {
            cr_span seen = {0, ~0u};
#pragma unroll
            for (int i = 0; i < QUADS; i++) {
                if (i >= look) break;
                E::look(seen, quad(v, i * QUAD));
            }
            field = Window::largest(seen.most) >> E::FIELD;
        }
        if (!BRISK || field == E::TOP) field = finite_field(v, look);
        for (uint32_t step = p_tile; step < team; step *= 2) field = max(field, __shfl_xor_sync(CR_EVERYONE, field, step));
        return field;
    }
    CR_DEVICE void begin_at(uint32_t field) {
        adds = 0;
        fine = hard = false;
        a = Window::place((field != 0 ? (int)field : E::BIAS) + SLACK);
        bounds = Window::bounds(a, 0);
#pragma unroll
        for (int e = 0; e < C; e++) {
#pragma unroll
            for (int level = 0; level < LEVELS; level++) col[e].acc[level] = 0;
            col[e].low = 0;
            col[e].total.clear();
            col[e].marks = 0;
        }
    }

    /* Of a quad, column e's elements to the running anchors of LEVELS + EXTRA levels, from level FROM on. */
    template <int EXTRA, int FROM = 0> CR_DEVICE void add(int e, const uint4 &q) {
        constexpr int TO = LEVELS + EXTRA;
        column &c = col[e];
        number s[TO];
#pragma unroll
        for (int level = 0; level < TO; level++) s[level] = anchor(level);
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            if constexpr (SQUARE) { /* a square has 48 bits at most, so that the first level's product need not be rounded */
                const number x = E::lane(q, i * C + e), next = Anchors::fused(x, x, s[FROM]);
                if constexpr (TO > FROM + 1) cr_chain<FROM + 1, TO>(s, Anchors::fused(x, x, -Anchors::minus(next, s[FROM])));
                s[FROM] = next;
            } else {
                cr_chain<0, TO>(s, E::scaled(q, i * C + e));
            }
        }
#pragma unroll
        for (int level = 0; level < LEVELS; level++) c.acc[level] += bits(s[level]);
        if (EXTRA) c.low += (typename Anchors::signed_word)(bits(s[TO - 1]) - bits(anchor(LEVELS)));
    }
    template <int EXTRA, int FROM = 0> CR_DEVICE void add_quad(const uint4 &q) {
#pragma unroll
        for (int e = 0; e < C; e++) add<EXTRA, FROM>(e, q);
    }
    CR_DEVICE void add_nothing() {
#pragma unroll
        for (int e = 0; e < C; e++) {
#pragma unroll
            for (int level = 0; level < LEVELS; level++) col[e].acc[level] += bits(anchor(level)) * GROUPS;
        }
    }

    /* Of a quad, element k without its exponent's highest value. */
    static CR_DEVICE void zero_element(uint4 &q, int k) { /* k: known when compiling */
        const int word = SIZE == 8 ? 2 * k : k / C;
        const uint32_t keep = SIZE < 4 ? ~((0xffffffffu >> (32 - 8 * SIZE % 32)) << 8 * SIZE * (k % C)) : 0;
        if (word == 0) q.x &= keep;
        if (word == 1) q.y &= keep;
        if (word == 2) q.z &= keep;
        if (word == 3) q.w &= keep;
        if (SIZE == 8 && k == 0) q.y = 0;
        if (SIZE == 8 && k == 1) q.w = 0;
    }
    /* A quad that a quick look could not vouch for. */
    CR_DEVICE void careful(uint4 q) {
        constexpr uint64_t infinite = E::INFINITE, sign = 1ull << (8 * SIZE - 1);
#pragma unroll
        for (int k = 0; k < QUAD * C; k++) {
            const uint64_t element = cr_element<SIZE>(q, k), magnitude = element & (sign - 1);
            if (magnitude < infinite) continue;
            uint64_t &marks = col[k % C].marks;
            if (!E::INFINITIES || magnitude > infinite) marks++;
            else marks |= !SQUARE && (element & sign) ? CR_MARK_MINUS : CR_MARK_PLUS;
            zero_element(q, k);
        }
        cr_span seen = {0, ~0u};
        E::look(seen, q);
        if (HALF || Window::inside(seen, bounds)) {
            add_quad<0>(q);
        } else {
            bool fits = false;
            if constexpr (MORE) {
                fits = Window::inside(seen, Window::bounds(a, 1));
                if (fits) add_quad<1>(q);
            }
            if (!fits) {
                hard = true;
                add_nothing();
            }
        }
    }

    CR_DEVICE void drain() {
        bool more = fine;
#pragma unroll
        for (int e = 0; MORE && e < C; e++) more |= col[e].low != 0;
        const bool turn = more && !fine;
        fine = more;
#pragma unroll
        for (int e = 0; e < C; e++) {
            column &c = col[e];
            cr_words<W> value;
#pragma unroll
            for (int level = 0; level < LEVELS; level++) {
                const long long part = (typename Anchors::signed_word)(c.acc[level] - bits(anchor(level)) * adds);
                c.acc[level] = 0;
                if (level == 0) {
                    value.set(part);
                    continue;
                }
                cr_words<W> next;
                next.set(part);
                value.up(Window::STEP);
                value.add(next);
            }
            if (MORE && turn) c.total.up(Window::STEP);
            if (MORE && fine) {
                cr_words<W> next;
                next.set(c.low);
                value.up(Window::STEP);
                value.add(next);
            }
            c.low = 0;
            c.total.add(value);
        }
        adds = 0;
    }

    /* What a quick look vouches for is added; otherwise the tile is loaded once more, a quad at a time, so that its units need not be
     * kept for this. */
    template <class THEN>
    CR_DEVICE void tile(const cr_axis_args &args, unit (&v)[U], uint32_t, int left, const uint8_t *p, uint64_t stride, THEN then) {
        reserve();
        if (!SQUARE && args.family == CR_FAM_SUMABS) {
#pragma unroll
            for (int i = 0; i < U; i++) v[i] = plain(args, v[i]);
        }
        const bool fits = inside(v, bounds);
        then();
        if (Window::FEW && few(v)) {
#pragma unroll
            for (int i = 0; i < QUADS; i++) add_quad<0, Window::FEW>(quad(v, i * QUAD));
        } else if (fits) {
#pragma unroll
            for (int i = 0; i < QUADS; i++) add_quad<0>(quad(v, i * QUAD));
        } else {
            again(args, left, p, stride);
        }
    }
    CR_DEVICE void tile(const cr_axis_args &args, unit (&v)[U], uint32_t j, int left, const uint8_t *p, uint64_t stride) {
        tile(args, v, j, left, p, stride, [] {});
    }
    CR_DEVICE void reserve() {
        constexpr uint32_t more = QUADS * GROUPS;
        if (adds + more > (uint32_t)Window::ADDS) drain();
        adds += more;
    }
    static CR_DEVICE bool few(const unit (&v)[U]) {
        uint32_t worst = 0;
#pragma unroll
        for (int i = 0; i < QUADS; i++) E::glance(worst, quad(v, i * QUAD), 0);
        return Window::few(worst);
    }
    /* At a quick look; and where that takes zeros for too small, at another. */
    static CR_DEVICE bool inside(const unit (&v)[U], const cr_span &bounds) {
        const uint32_t low = Window::low(bounds);
        uint32_t worst = 0;
#pragma unroll
        for (int i = 0; i < QUADS; i++) E::glance(worst, quad(v, i * QUAD), low);
        if (Window::near(worst, bounds)) return true;
        if (HALF) return false;
        cr_span seen = {0, ~0u};
#pragma unroll
        for (int i = 0; i < QUADS; i++) E::look(seen, quad(v, i * QUAD));
        return Window::inside(seen, bounds);
    }
    CR_DEVICE void again(const cr_axis_args &args, int left, const uint8_t *p, uint64_t stride) {
#pragma unroll 1
        for (int i = 0; i < U; i += QUAD) {
            unit v[QUAD];
            if (i < left) {
                cr_axis_load<cr_axis_float, QUAD, CR_MASKING_ASKED>(v, args, p, stride, left - i);
#pragma unroll
                for (int k = 0; k < QUAD; k++) v[k] = plain(args, v[k]);
                careful(quad(v, 0));
            } else {
                add_nothing();
            }
            p += args.at.vector > 1 ? stride : stride * QUAD;
        }
    }
    CR_DEVICE void one(const cr_axis_args &args, uint32_t e, uint64_t element, uint32_t) {
        unit v[QUAD];
#pragma unroll
        for (int i = 0; i < QUAD; i++) v[i] = 0;
        v[0] = plain(args, (unit)element << (SIZE < 4 ? 8 * SIZE * e : 0));
        if (adds + GROUPS > (uint32_t)Window::ADDS) drain();
        adds += GROUPS;
        careful(quad(v, 0)); /* zeros fit everywhere */
    }
    CR_DEVICE bool stop() const { return hard; }
    CR_DEVICE record take(const cr_axis_args &args, uint32_t e, const cr_axis_spot<SIZE> &) {
        if (adds != 0) drain();
        record r;
        r.unit = a - Window::STEP * (LEVELS - 1 + fine);
        r.marks = col[e].marks | (hard ? (uint64_t)CR_MARK_HARD : 0);
        r.value = col[e].total;
        for (int other = 1; other < C && args.at.rows; other++) { /* all are of one output */
            r.value.add(col[other].total);
            r.marks += col[other].marks & CR_MARK_NANS;
            r.marks |= col[other].marks & ~CR_MARK_NANS;
        }
        return r;
    }
    static CR_DEVICE bool is_hard(const record &r) { return (r.marks & CR_MARK_HARD) != 0; }
    /* All in the same units, and nothing special; or all hard, where only marks still matter. */
    static CR_DEVICE bool quick(record &r, uint32_t first, uint32_t step) {
        if (STOPS && !REDO && __all_sync(CR_EVERYONE, is_hard(r))) {
            for (; step >= first; step /= 2) r.marks |= __shfl_xor_sync(CR_EVERYONE, r.marks, step);
            return true;
        }
        const uint32_t lane = threadIdx.x % CR_WARP, leader = lane & ~((2 * step - 1) & ~(first - 1));
        const int unit = __shfl_sync(CR_EVERYONE, (int)r.unit, leader);
        if (!__all_sync(CR_EVERYONE, unit == (int)r.unit && r.marks == 0)) return false;
        return cr_words_quick(r.value, first, step);
    }
    static CR_DEVICE record empty(const cr_axis_args &) {
        record r;
        r.value.clear();
        r.marks = 0;
        r.unit = 0;
        return r;
    }
    static CR_DEVICE void merge(record &r, const record &other) { cr_axis_sum_merge(r, other); }
    /* To the list of a second launch: the output, or by the walk its tile. */
    static CR_DEVICE bool later(const cr_axis_args &args, uint64_t output) {
        if constexpr (REDO) return false;
        uint32_t others = 0;
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (SQUARE || !cr_is_variance(args.out[k])) others++;
            else cr_axis_slot_of(args, output)->wide = CR_SLOT_HARD;
        }
        if (others != 0) cr_axis_list(args)[atomicAdd(&cr_axis_head_of(args)->hard, 1u)] = (uint32_t)output;
        return true;
    }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        const uint64_t nans = r.marks & CR_MARK_NANS;
        const bool nan = nans != 0 && !args.skip, infinite = (r.marks & (CR_MARK_PLUS | CR_MARK_MINUS)) != 0;
        if (is_hard(r) && !nan) return later(args, output);
        cr_words<W> positive = r.value;
        const bool negative = positive.strip_sign();
        int exponent = (int)r.unit;
        bool sticky = false;
        const cr_u128 magnitude = cr_leading(positive, exponent, sticky);
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            if (AHEAD && !cr_is_variance(out)) {
                cr_axis_put_sum(args, out, output, r);
            } else if (!cr_is_variance(out)) {
                cr_float_answer(args, out, output, negative, magnitude, exponent, sticky, r.marks);
            } else if (!SQUARE) {
                *cr_axis_slot_of(args, output) = cr_axis_slot{r.value.word[0], r.value.word[1], r.unit, 0, {0, 0, 0, 0}};
            } else if (nan || infinite) {
                cr_put_bits(out.to, output, out.result, cr_nan_bits(out.result));
            } else if (cr_axis_slot_of(args, output)->wide == CR_SLOT_HARD ||
                       !cr_variance_answer<6, 2>(args, out, output, cr_count_of(args, output) - nans, positive, (int)r.unit)) {
                return later(args, output);
            }
        }
        return true;
    }
};

#endif
