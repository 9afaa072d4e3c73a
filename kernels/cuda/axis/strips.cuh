/* strips: sums of floats, and of their magnitudes, along rows of whole vectors that lie side by side in memory. A warp takes a piece at a
 * time: some neighbouring rows, or a part of one, 4 KiB at most. Its lanes load it as it lies and put it into shared memory, from where each
 * reads elements of one row. The next piece is under way meanwhile, also that of the block's next tile.
 *
 * A lane adds its elements as float64, which is exact while their exponents are not far apart. What it gets goes to a 64-bit integer in a
 * unit of the row's, and the integers of a row's lanes meet by shuffles. Elements of 64 bits, and where exponents are far apart, go over
 * two anchors as in float_sums.cuh; then NaNs and infinities are counted and made zeros. What does not do goes to the list of the second
 * launch.
 *
 * SQUARED: of float32 also the sum of squares, which float64 holds, over anchors.
 * Thread: GPU. Owner: the kernel; `Shared` the block. */
#ifndef CURED_KERNELS_CUDA_AXIS_STRIPS_CUH
#define CURED_KERNELS_CUDA_AXIS_STRIPS_CUH

#include "kernels/cuda/axis/moments.cuh"
#include "kernels/cuda/axis/strip_sum.cuh"

enum {
    CR_STRIP_ENOUGH = 2,                     /* tiles in turn without a row that does, until those after them are not tried */
    CR_STRIP_COUNT = 20,                     /* bits for each kind of special among a row's elements */
};
/* Tiles of a block, until those that did not do are listed. Tests have fewer. */
#if !defined(CR_STRIP_TILES)
#define CR_STRIP_TILES 1024
#endif
enum { CR_STRIP_FAILED = (CR_STRIP_TILES + 31) / 32 }; /* words that hold a bit for each */
static_assert((int)CR_STRIP_FAILED <= (int)CR_GPU_THREADS, "one turn clears them");
static_assert(CR_AXIS_STRIP_LINES < 1 << CR_STRIP_COUNT, "no count overflows");
static constexpr uint64_t CR_STRIP_HARD = ~0ull; /* no such counts */

struct cr_strip_shared {
    uint4 piece[CR_WARPS][CR_AXIS_STRIP + 1]; /* the last: zeros */
    uint32_t failed[CR_STRIP_FAILED];         /* tiles, as bits */
};

/* A warp's way over its pieces of a block's tiles. */
template <cr_dtype D, bool SQUARED, class OF = cr_float_of<D>> struct cr_strip {
    typedef OF E;
    typedef cr_strip_sum<E> Sum;
    static_assert(!SQUARED || D == CR_F32, "of these float64 holds a square, and so many anchors take it");
    using Window = cr_window<E, CR_SUM_PLAIN>;
    const cr_axis_args &args;
    cr_strip_shared &shared;
    const uint32_t lane, warp, row_log; /* log2 of the lanes that share a row */
    uint32_t vectors, many, each, side; /* of a row; rows of a tile; vectors of a piece; rows of one */
    uint32_t own_each, from[CR_STRIP_EACH]; /* this lane's vectors of a piece; where they lie in `shared`, in bytes */
    uint4 coming[CR_STRIP_EACH];            /* the next piece, as it lies in memory */
    const uint8_t *next;                    /* where it does, for this lane */
    uint64_t step;                          /* bytes from a tile of this block to the next */
    uint32_t tiles;                         /* of this block */
    uint32_t next_tile, next_row, rest;     /* rows of the tile next_tile; vectors left of the row, where rows are in pieces */
    bool cut;                               /* rows are in pieces */
    double *simple;                         /* where sums go, if that is all that is asked for */

    CR_DEVICE cr_strip(const cr_axis_args &all, cr_strip_shared &room)
        : args(all), shared(room), lane(threadIdx.x % CR_WARP), warp(threadIdx.x / CR_WARP), row_log(all.at.strip_log) {
        const cr_axis_launch &at = args.at;
        vectors = (uint32_t)(at.n * E::SIZE / CR_GPU_VECTOR);
        many = (CR_GPU_THREADS >> at.m_log) * at.rounds;
        cut = at.strips > 1;
        side = cut ? 1 : CR_WARP >> row_log;
        each = cut ? (vectors + at.strips - 1) / at.strips : vectors * side;
        tiles = blockIdx.x < at.tiles ? (uint32_t)((at.tiles - blockIdx.x - 1) / gridDim.x) + 1 : 0;
        step = (uint64_t)gridDim.x * many * vectors * CR_GPU_VECTOR;
        simple = !SQUARED && args.out_count == 1 && args.out[0].divisor == CR_DIVISOR_ONE && !args.out[0].root && args.out[0].term != CR_TERM_SPREAD && args.out[0].result == CR_F64 ? (double *)args.out[0].to : nullptr;
        const uint32_t of_row = cut ? each : vectors, row = lane >> row_log, place = lane & ((1u << row_log) - 1);
        own_each = min((uint32_t)CR_STRIP_EACH, (of_row + (1u << row_log) - 1) >> row_log);
        /* Eight neighbouring lanes read at once: those at the same place of rows that begin in the same bank take turns. */
        uint32_t turn = 0;
        if (row_log < 3 && (of_row & (of_row - 1)) == 0) {
            const uint32_t apart = of_row >= 8 ? 1 : 8 / of_row;
            turn = row / apart & ((8u >> row_log) / apart - 1) & ((of_row >> row_log) - 1);
        }
        const uint32_t begin = (uint32_t)((const uint8_t *)shared.piece[warp] - (const uint8_t *)&shared);
#pragma unroll
        for (uint32_t j = 0; j < CR_STRIP_EACH; j++) {
            const uint32_t own = place + ((j ^ turn) << row_log);
            from[j] = begin + (own < of_row ? row * of_row + own : (uint32_t)CR_AXIS_STRIP) * CR_GPU_VECTOR;
        }
        if (lane == 0) shared.piece[warp][CR_AXIS_STRIP] = make_uint4(0, 0, 0, 0);
        go_to(0);
    }
    CR_DEVICE uint4 vector(int j) const { return *reinterpret_cast<const uint4 *>(reinterpret_cast<const uint8_t *>(&shared) + from[j]); }
    CR_DEVICE uint64_t tile_of(uint32_t i) const { return blockIdx.x + (uint64_t)i * gridDim.x; }
    CR_DEVICE uint32_t rows_of(uint32_t i) const {
        if (i + 1 < tiles) return many;
        return i < tiles ? (uint32_t)min((uint64_t)many, args.at.outer - tile_of(i) * many) : 0;
    }

    /* Loads from the beginning of the block's tile i on. */
    CR_DEVICE void go_to(uint32_t i) {
        next_tile = i;
        next_row = warp * side;
        rest = vectors;
        next = args.data + ((tile_of(i) * many + next_row) * vectors + lane) * CR_GPU_VECTOR;
        load();
    }
    CR_DEVICE void load() {
        const uint32_t rows = rows_of(next_tile);
        uint32_t count = next_row < rows ? cut ? min(each, rest) : min(side, rows - next_row) * vectors : 0;
        if (count == CR_AXIS_STRIP) {
#pragma unroll
            for (uint32_t j = 0; j < CR_STRIP_EACH; j++) coming[j] = *reinterpret_cast<const uint4 *>(next + j * CR_WARP * CR_GPU_VECTOR);
        } else {
#pragma unroll
            for (uint32_t j = 0; j < CR_STRIP_EACH; j++) {
                coming[j] = make_uint4(0, 0, 0, 0);
                if (j * CR_WARP + lane < count) coming[j] = *reinterpret_cast<const uint4 *>(next + j * CR_WARP * CR_GPU_VECTOR);
            }
        }
        if (cut && rest > each) { /* more of this row */
            rest -= each;
            next += each * CR_GPU_VECTOR;
            return;
        }
        const uint32_t done = vectors - rest; /* of the row, before this piece */
        rest = vectors;
        next_row += side * CR_WARPS;
        next += ((uint64_t)(side * CR_WARPS) * vectors - done) * CR_GPU_VECTOR;
        if (next_row < many) return;
        next += step - (uint64_t)(next_row - warp * side) * vectors * CR_GPU_VECTOR;
        next_row = warp * side;
        next_tile++;
    }
    static CR_DEVICE uint4 magnitudes(const uint4 &v) {
        constexpr uint32_t upper = E::SIZE == 1 ? 0x7f7f7f7f : E::SIZE == 2 ? 0x7fff7fff : 0x7fffffff, lower = Sum::WIDE ? ~0u : upper;
        return make_uint4(v.x & lower, v.y & upper, v.z & lower, v.w & upper);
    }
    /* Puts what has come where the lanes that want it find it, and loads the next. */
    CR_DEVICE void turn_over() {
        if (!SQUARED && args.family == CR_FAM_SUMABS) {
#pragma unroll
            for (uint32_t j = 0; j < CR_STRIP_EACH; j++) coming[j] = magnitudes(coming[j]);
        }
        __syncwarp();
#pragma unroll
        for (uint32_t j = 0; j < CR_STRIP_EACH; j++) shared.piece[warp][j * CR_WARP + lane] = coming[j];
        __syncwarp();
        load();
    }

    /* Adds the piece's elements of this lane to part: of a row's first piece where `first`. False: they do not fit. */
    CR_DEVICE bool fold(Sum &sum, bool first, int64_t (&part)[2]) {
        cr_span seen = {0, ~0u};
        if (Sum::HALF) sum.place(0, 0);
        sum.clear();
#pragma unroll
        for (int j = 0; j < CR_STRIP_EACH; j++) {
            if (j % 4 == 0 && (uint32_t)j >= own_each) break;
            const uint4 v = vector(j);
            E::look(seen, v);
            if (!Sum::ANCHORED && !SQUARED) sum.add(v);
        }
        if (!settle(sum, seen, first, Sum::ANCHORED)) return again(sum, first, part);
        if (Sum::ANCHORED) fold_anchors(sum);
        if constexpr (SQUARED) fold_squares<2>(sum, [&](int j) { return vector(j); });
        sum.end(part, Sum::ANCHORED);
        return true;
    }
    CR_DEVICE bool settle(Sum &sum, const cr_span &seen, bool first, bool anchors) {
        const uint32_t most = Window::largest(seen.most);
        if (Sum::HALF) sum.place(0, 0);
        else if (first) sum.place(__reduce_max_sync(CR_EVERYONE, most) >> E::FIELD, cut ? 2 : 0);
        return __all_sync(CR_EVERYONE, sum.fits((int)(most >> E::FIELD), (int)(Window::smallest(seen.least) >> E::FIELD), anchors));
    }
    CR_DEVICE void fold_anchors(Sum &sum) {
        sum.begin(true);
#pragma unroll
        for (int j = 0; j < CR_STRIP_EACH; j++) {
            if (j % 4 == 0 && (uint32_t)j >= own_each) break;
            sum.add_to_anchors(vector(j));
        }
    }
    int64_t squares[Sum::SQUARES]; /* of this lane's part of a row */
    /* The fast one takes the sum too, since a conversion costs as much as an addition. */
    template <int LEVELS, class VECTOR> CR_DEVICE void fold_squares(Sum &sum, VECTOR vector) {
        const int unit = sum.square_unit();
        double s[LEVELS];
#pragma unroll
        for (int level = 0; level < LEVELS; level++) s[level] = cr_anchor(unit - Sum::STEP * level);
#pragma unroll(LEVELS == 2 ? CR_STRIP_EACH : 1)
        for (int j = 0; j < CR_STRIP_EACH; j++) {
            if (j % 4 == 0 && (uint32_t)j >= own_each) break;
            const uint4 v = vector(j);
#pragma unroll
            for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e++) {
                const double x = E::lane(v, e);
                if (LEVELS == 2) sum.s[e % 2] = __dadd_rn(sum.s[e % 2], x);
                cr_chain<0, LEVELS>(s, __dmul_rn(x, x));
            }
        }
#pragma unroll
        for (int level = 0; level < LEVELS; level++) squares[level] += __double_as_longlong(s[level]) - __double_as_longlong(cr_anchor(unit - Sum::STEP * level));
    }
    uint64_t specials; /* of this lane's part of a row: NaNs, +inf and -inf, CR_STRIP_COUNT bits each */
    /* The same, with a careful eye: without NaNs and infinities, by anchors. */
    CR_DEVICE bool again(Sum &sum, bool first, int64_t (&part)[2]) {
        cr_span seen = {0, ~0u};
        uint32_t found = 0;
#pragma unroll 1
        for (uint32_t j = 0; j < CR_STRIP_EACH; j++) {
            uint4 v = *mine(j);
            const uint32_t before = found;
            E::strip(found, v);
            if (found != before) *mine(j) = v;
            E::look(seen, v);
        }
        specials += (found & 1023) | (uint64_t)(found >> 10 & 1023) << CR_STRIP_COUNT | (uint64_t)(found >> 20) << 2 * CR_STRIP_COUNT;
        if (!settle(sum, seen, first, !Sum::HALF)) return false;
        if constexpr (SQUARED) {
            if (__any_sync(CR_EVERYONE, (int)(Window::smallest(seen.least) >> E::FIELD) < sum.most - Sum::BELOW)) return false;
            fold_squares<Sum::SQUARES>(sum, [&](int j) { return *mine((uint32_t)j); });
        }
        sum.begin(!Sum::HALF);
#pragma unroll 1
        for (uint32_t j = 0; j < CR_STRIP_EACH; j++) {
            if (!Sum::HALF) sum.add_to_anchors(*mine(j));
            else sum.add(*mine(j));
        }
        sum.end(part, !Sum::HALF);
        return true;
    }
    /* Vector j of this lane's, any j: what `from` would say must lie in registers. */
    CR_DEVICE uint4 *mine(uint32_t j) {
        const uint32_t of_row = cut ? each : vectors, row = lane >> row_log, own = (lane & ((1u << row_log) - 1)) + (j << row_log);
        return &shared.piece[warp][own < of_row ? row * of_row + own : (uint32_t)CR_AXIS_STRIP];
    }

    /* Of a tile, the row that this lane answers. */
    CR_DEVICE uint32_t answered() const {
        const uint32_t place = lane & ((1u << row_log) - 1);
        return (place * CR_WARPS + warp) * side + (cut ? 0 : lane >> row_log);
    }
    /* The tile's rows that are this warp's. False: the tile does not do, or of 64-bit elements, which list rows one by one, none of it. */
    CR_DEVICE bool take(uint32_t i) {
        const uint32_t rows = rows_of(i), pieces = cut ? args.at.strips : 1, place = lane & ((1u << row_log) - 1);
        uint32_t turns = 0, hard = 0; /* turns with rows that do not do */
        Sum sum = {};
        int64_t kept[2] = {0, 0}, kept_squares[Sum::SQUARES] = {};
        uint64_t kept_specials = 0;
        int unit = 0;
        for (uint32_t turn = 0, row = warp * side; row < rows; turn++, row += side * CR_WARPS) {
            int64_t part[2] = {0, 0};
            specials = 0;
#pragma unroll
            for (int level = 0; level < Sum::SQUARES; level++) squares[level] = 0;
            bool fits = true;
            for (uint32_t k = 0; k < pieces; k++) {
                turn_over();
                fits = fits && fold(sum, k == 0, part);
                if (!Sum::WIDE && !fits) return false;
            }
            turns++;
            hard += !fits;
#pragma unroll
            for (uint32_t log = 0; log < 5; log++) {
                if (log >= row_log) break;
                part[0] += __shfl_xor_sync(CR_EVERYONE, part[0], 1u << log);
                if (Sum::WIDE) part[1] += __shfl_xor_sync(CR_EVERYONE, part[1], 1u << log);
#pragma unroll
                for (int level = 0; SQUARED && level < 2; level++) squares[level] += __shfl_xor_sync(CR_EVERYONE, squares[level], 1u << log);
            }
            if (__any_sync(CR_EVERYONE, specials != 0 || (!Sum::WIDE && part[1] != 0) || (SQUARED && squares[2] != 0))) {
#pragma unroll 1
                for (uint32_t log = 0; log < row_log; log++) {
                    if (!Sum::WIDE) part[1] += __shfl_xor_sync(CR_EVERYONE, part[1], 1u << log);
                    if (SQUARED) squares[2] += __shfl_xor_sync(CR_EVERYONE, squares[2], 1u << log);
                    specials += __shfl_xor_sync(CR_EVERYONE, specials, 1u << log);
                }
            }
            if (place == turn) {
                kept[0] = part[0];
                kept[1] = part[1];
                kept_specials = fits ? specials : CR_STRIP_HARD;
#pragma unroll
                for (int level = 0; SQUARED && level < Sum::SQUARES; level++) kept_squares[level] = squares[level];
                unit = sum.unit;
            }
        }
        const uint32_t row = answered();
        if constexpr (SQUARED) {
            const bool done = row >= rows || answer_moments(tile_of(i) * many + row, kept, kept_squares, unit, kept_specials);
            if (!__all_sync(CR_EVERYONE, done)) return false;
        } else if (row < rows) {
            if (Sum::WIDE && kept_specials == CR_STRIP_HARD) cr_axis_float<D, CR_SUM_PLAIN>::later(args, tile_of(i) * many + row);
            else answer(tile_of(i) * many + row, kept, unit, kept_specials);
        }
        return !Sum::WIDE || hard < turns || turns == 0;
    }
    /* Lists this warp's rows of the block's tiles from i on. */
    CR_DEVICE void leave(uint32_t i) {
        for (; i < tiles; i++) {
            if (answered() < rows_of(i)) cr_axis_float<D, CR_SUM_PLAIN>::later(args, tile_of(i) * many + answered());
        }
    }
    CR_DEVICE cr_axis_sum_record<2> record(const int64_t (&part)[2], int unit, uint64_t found) const {
        constexpr uint64_t all = (1u << CR_STRIP_COUNT) - 1;
        cr_axis_sum_record<2> r;
        const bool fine = Sum::WIDE || part[1] != 0;
        if (fine) r.value.set(((cr_i128)part[0] << Sum::STEP) + part[1]);
        else r.value.set(part[0]);
        r.marks = (found & all) | ((found >> CR_STRIP_COUNT & all) != 0 ? (uint64_t)CR_MARK_PLUS : 0) | (found >> 2 * CR_STRIP_COUNT != 0 ? (uint64_t)CR_MARK_MINUS : 0);
        r.unit = fine ? unit - Sum::STEP : unit;
        return r;
    }
    /* part[0]·2^STEP + part[1], rounded once. Where the upper part has 54 bits and more, one more that is set stands for all that lie below. */
    static CR_DEVICE double rounded(const int64_t (&part)[2]) {
        const int64_t high = part[0] + (part[1] >> Sum::STEP), low = part[1] & ((1ll << Sum::STEP) - 1);
        if ((uint64_t)high + (1ull << 53) <= 1ull << 54) return __dadd_rn(__dmul_rn(__ll2double_rn(high), cr_power(Sum::STEP)), __ll2double_rn(low));
        return __dmul_rn(__ll2double_rn(high * 2 + (low != 0)), cr_power(Sum::STEP - 1));
    }
    /* False: it cannot. */
    CR_DEVICE bool answer_moments(uint64_t output, const int64_t (&part)[2], const int64_t (&square)[Sum::SQUARES], int unit, uint64_t found) {
        typename cr_axis_moment<D>::record r;
        r.sum = record(part, unit, found);
        r.squares.value.set(square[0]);
#pragma unroll
        for (int level = 1; level < Sum::SQUARES; level++) {
            cr_words<3> finer;
            finer.set(square[level]);
            r.squares.value.up(Sum::STEP);
            r.squares.value.add(finer);
        }
        Sum sum;
        sum.most = unit + E::BIAS + 49 - Sum::LOG;
        r.squares.unit = sum.square_unit() - Sum::STEP * (Sum::SQUARES - 1);
        r.squares.marks = (r.sum.marks & CR_MARK_NANS) | ((r.sum.marks & ~CR_MARK_NANS) != 0 ? (uint64_t)CR_MARK_PLUS : 0);
        return cr_axis_moment<D>::finish(args, r, output);
    }
    CR_DEVICE void answer(uint64_t output, const int64_t (&part)[2], int unit, uint64_t found) {
        if (!Sum::WIDE && simple && (found | (uint64_t)part[1]) == 0) { /* as cr_axis_quick_answer has it */
            simple[output] = __dmul_rn(__ll2double_rn(part[0]), cr_power(unit));
            return;
        }
        if (Sum::WIDE && simple && found == 0 && unit >= -800 && unit <= 800) {
            simple[output] = __dmul_rn(rounded(part), cr_power(unit - Sum::STEP));
            return;
        }
        const cr_axis_sum_record<2> r = record(part, unit, found);
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (cr_is_variance(args.out[k])) *cr_axis_slot_of(args, output) = cr_axis_slot{r.value.word[0], r.value.word[1], r.unit, 0, {0, 0, 0, 0}};
            else cr_axis_put_sum(args, args.out[k], output, r);
        }
    }
};

/* Outputs are listed one by one, each by the warp that has it. After some tiles in turn without any that does, the others are listed unread. */
template <cr_dtype D> CR_DEVICE void cr_strip_outputs(cr_strip<D, false> &strip) {
    for (uint32_t i = 0, failed = 0; i < strip.tiles; i++) {
        failed = strip.take(i) ? 0 : failed + 1;
        if (failed < CR_STRIP_ENOUGH) continue;
        strip.leave(i + 1);
        return;
    }
}

/* Tiles are listed. A warp whose tile does not do, after one that did not for any warp, lists those after them unread. */
template <class STRIP> CR_DEVICE void cr_strip_tiles(const cr_axis_args &args, STRIP &strip, uint32_t (&bits)[CR_STRIP_FAILED]) {
    for (uint32_t first = 0; first < strip.tiles; first += CR_STRIP_TILES) {
        if (threadIdx.x < CR_STRIP_FAILED) bits[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t k = 0; k < CR_STRIP_TILES && first + k < strip.tiles; k++) {
            if (strip.take(first + k)) continue;
            uint32_t others = 0; /* of the same word: whether the tile before this one did, for any warp */
            if (strip.lane == 0) others = atomicOr(&bits[k / 32], 1u << k % 32);
            if (__shfl_sync(CR_EVERYONE, others, 0) & 1u << k % 32 >> 1) {
                for (k += strip.lane; k < CR_STRIP_TILES; k += CR_WARP) atomicOr(&bits[k / 32], 1u << k % 32);
                k = CR_STRIP_TILES - 1;
            }
            strip.go_to(first + k + 1);
        }
        __syncthreads();
        for (uint32_t k = threadIdx.x; k < CR_STRIP_TILES && first + k < strip.tiles; k += CR_GPU_THREADS) {
            if (bits[k / 32] >> k % 32 & 1) cr_axis_list(args)[atomicAdd(&cr_axis_head_of(args)->hard, 1u)] = (uint32_t)strip.tile_of(first + k);
        }
        __syncthreads();
    }
}

template <cr_dtype D, bool SQUARED, class E> __global__ void __launch_bounds__(CR_GPU_THREADS, 2) cr_axis_strips(const __grid_constant__ cr_axis_args args) {
    __shared__ cr_strip_shared shared;
    cr_let_the_next_begin();
    cr_strip<D, SQUARED, E> strip(args, shared);
    if constexpr (E::ONE_WINDOW) {
        for (uint32_t i = 0; i < strip.tiles; i++) strip.take(i); /* there is nothing that does not do */
    } else if constexpr (D == CR_F64) cr_strip_outputs<D>(strip);
    else cr_strip_tiles(args, strip, shared.failed);
}

template <cr_dtype D, bool SQUARED = false, class E = cr_float_of<D>> int cr_axis_launch_strips(const cr_axis_args *args, void *stream) {
    return CR_LAUNCH((cr_axis_strips<D, SQUARED, E>), args->at.blocks, CR_GPU_THREADS, stream, *args);
}

#endif
