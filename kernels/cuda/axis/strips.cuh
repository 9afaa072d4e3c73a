/* strips: sums of floats along rows of whole vectors that lie side by side in memory. A warp takes a piece at a time: some
 * neighbouring rows, or a part of one, 4 KiB at most. Its lanes load it as it lies and put it into shared memory, from where each reads elements
 * of one row. The next piece is under way meanwhile, also that of the block's next tile.
 *
 * A lane adds its elements as float64, which is exact while their exponents are not far apart. What it gets goes to a 64-bit integer in a
 * unit of the row's, and the integers of a row's lanes meet by shuffles. Elements of 64 bits, and where exponents are far apart, go over
 * two anchors as in float_sums.cuh; then NaNs and infinities are counted and made zeros. What does not do goes to the list of the second
 * launch.
 * Thread: GPU. Owner: the kernel; `Shared` the block. */
#ifndef CURED_KERNELS_CUDA_AXIS_STRIPS_CUH
#define CURED_KERNELS_CUDA_AXIS_STRIPS_CUH

#include "kernels/cuda/axis/floats.cuh"

enum {
    CR_STRIP_EACH = CR_AXIS_STRIP / CR_WARP, /* vectors that a lane has of a piece */
    CR_STRIP_TILES = 1024,                   /* of a block, until those that did not do are listed */
    CR_STRIP_COUNT = 20,                     /* bits for each kind of special among a row's elements */
};
static_assert(CR_AXIS_STRIP_LINES < 1 << CR_STRIP_COUNT, "no count overflows");

struct cr_strip_shared {
    uint4 piece[CR_WARPS][CR_AXIS_STRIP + 1]; /* the last: zeros */
    uint32_t failed[CR_STRIP_TILES / 32];     /* tiles, as bits */
};

/* What a lane makes of its part of a row: part[0]·2^unit + part[1]·2^(unit + STEP). Fields: of exponents. */
template <class E> struct cr_strip_sum {
    static constexpr bool WIDE = E::SIZE == 8, HALF = E::TOP == 31;
    static constexpr int LOG = WIDE ? 4 : E::SIZE == 4 ? 5 : 6; /* log2 of a lane's elements in a piece */
    static constexpr int STEP = 51 - LOG;                       /* between two anchors: what the first rounds off fits the second */
    static constexpr int REACH = 52 - E::MANTISSA - LOG;        /* fields apart, of elements that are added as they are */
    static_assert(CR_STRIP_EACH * CR_GPU_VECTOR / E::SIZE == 1 << LOG, "");
    int unit, most, least; /* of fields that it takes */
    bool anchors;
    double s[2];

    /* For a largest field; log: of a row's elements. */
    CR_DEVICE void place(uint32_t field, int log, int slack, bool wide) {
        anchors = WIDE || wide;
        most = HALF ? E::TOP - 1 : min((int)field + slack, E::TOP - 1);
        if (anchors) {
            if (WIDE) most = max(most, STEP); /* no anchor is denormal */
            unit = most + 1 + LOG - 50 - E::BIAS - STEP;
        } else {
            unit = HALF ? 1 - E::BIAS - E::MANTISSA : most + 1 - E::BIAS + log - 62;
        }
        least = HALF ? 0 : unit + E::BIAS + E::MANTISSA;
        if (WIDE && most > E::TOP - STEP) least = E::TOP; /* nor too large */
    }
    CR_DEVICE bool fits(int high, int low) const { return high <= most && low >= least && (HALF || anchors || high - low <= REACH); }
    CR_DEVICE void begin() {
        s[0] = anchors ? cr_anchor(unit + STEP) : 0;
        s[1] = anchors ? cr_anchor(unit) : 0;
    }
    CR_DEVICE void add(const uint4 &v) {
#pragma unroll
        for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e++) s[e % 2] = __dadd_rn(s[e % 2], E::scaled(v, e));
    }
    CR_DEVICE void add_to_anchors(const uint4 &v) {
#pragma unroll
        for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e++) cr_chain<0, 2>(s, E::lane(v, e));
    }
    CR_DEVICE void end(int64_t (&part)[2]) const {
        if (anchors) {
            part[0] += __double_as_longlong(s[1]) - __double_as_longlong(cr_anchor(unit));
            part[1] += __double_as_longlong(s[0]) - __double_as_longlong(cr_anchor(unit + STEP));
        } else {
            double sum = __dadd_rn(s[0], s[1]);
            if (E::SCALE != 0) sum = __dmul_rn(sum, __hiloint2double((1023 - E::SCALE) << 20, 0));
            part[0] += __double2ll_rn(__dmul_rn(sum, __hiloint2double((1023 - unit) << 20, 0)));
        }
    }
};

/* A warp's way over its pieces of a block's tiles. */
template <cr_dtype D> struct cr_strip {
    typedef typename cr_axis_floats<D>::E E;
    typedef cr_strip_sum<E> Sum;
    using Window = cr_window<E, CR_SUM_PLAIN>;
    const cr_axis_args &args;
    cr_strip_shared &shared;
    const uint32_t lane, warp, row_log; /* log2 of the lanes that share a row */
    uint32_t vectors, many, each, side; /* of a row; rows of a tile; vectors of a piece; rows of one */
    uint32_t own_each, from[CR_STRIP_EACH]; /* this lane's vectors of a piece; where they lie in `shared`, in bytes */
    int bits;                               /* log2 of a row's elements, rounded up */
    uint4 coming[CR_STRIP_EACH];            /* the next piece, as it lies in memory */
    const uint8_t *next;                    /* where it does, for this lane */
    uint64_t step;                          /* bytes from a tile of this block to the next */
    uint32_t tiles, last_rows;              /* of this block; rows of the last of them */
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
        const uint64_t last = tile_of(tiles - 1);
        last_rows = last + 1 == at.tiles ? (uint32_t)(at.outer - last * many) : many;
        step = (uint64_t)gridDim.x * many * vectors * CR_GPU_VECTOR;
        simple = args.out_count == 1 && args.out[0].op == CR_OP_SUM && args.out[0].result == CR_F64 ? (double *)args.out[0].to : nullptr;
        bits = 64 - __clzll((long long)(at.n - 1));
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
    CR_DEVICE uint32_t rows_of(uint32_t i) const { return i + 1 < tiles ? many : i < tiles ? last_rows : 0; }

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
    /* Puts what has come where the lanes that want it find it, and loads the next. */
    CR_DEVICE void turn_over() {
        __syncwarp();
#pragma unroll
        for (uint32_t j = 0; j < CR_STRIP_EACH; j++) shared.piece[warp][j * CR_WARP + lane] = coming[j];
        __syncwarp();
        load();
    }

    /* Adds the piece's elements of this lane to part: of a row's first piece where `first`. False: they do not fit. */
    CR_DEVICE bool fold(Sum &sum, bool first, int64_t (&part)[2]) {
        cr_span seen = {0, ~0u};
        sum.s[0] = sum.s[1] = 0;
#pragma unroll
        for (int j = 0; j < CR_STRIP_EACH; j++) {
            if (j % 4 == 0 && (uint32_t)j >= own_each) break;
            const uint4 v = vector(j);
            E::look(seen, v);
            if (!Sum::WIDE) sum.add(v);
        }
        if (!settle(sum, seen, first, false)) return again(sum, first, part);
        if (Sum::WIDE) fold_anchors(sum);
        sum.end(part);
        return true;
    }
    CR_DEVICE bool settle(Sum &sum, const cr_span &seen, bool first, bool wide) {
        const uint32_t most = Window::largest(seen.most);
        if (Sum::HALF) sum.place(0, bits, 0, false);
        else if (first) sum.place(__reduce_max_sync(CR_EVERYONE, most) >> E::FIELD, bits, cut ? 2 : 0, wide);
        return __all_sync(CR_EVERYONE, sum.fits((int)(most >> E::FIELD), (int)(Window::smallest(seen.least) >> E::FIELD)));
    }
    CR_DEVICE void fold_anchors(Sum &sum) {
        sum.begin();
#pragma unroll
        for (int j = 0; j < CR_STRIP_EACH; j++) {
            if (j % 4 == 0 && (uint32_t)j >= own_each) break;
            sum.add_to_anchors(vector(j));
        }
    }
    uint64_t specials; /* of this lane's part of a row: NaNs, +inf and -inf, CR_STRIP_COUNT bits each */
    /* The same, with a careful eye: without NaNs and infinities, by anchors where all of a row is here. */
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
        if (!settle(sum, seen, first, !cut && !Sum::HALF)) return false;
        sum.begin();
#pragma unroll 1
        for (uint32_t j = 0; j < CR_STRIP_EACH; j++) {
            if (sum.anchors) sum.add_to_anchors(*mine(j));
            else sum.add(*mine(j));
        }
        sum.end(part);
        return true;
    }
    /* Vector j of this lane's, any j: what `from` would say must lie in registers. */
    CR_DEVICE uint4 *mine(uint32_t j) {
        const uint32_t of_row = cut ? each : vectors, row = lane >> row_log, own = (lane & ((1u << row_log) - 1)) + (j << row_log);
        return &shared.piece[warp][own < of_row ? row * of_row + own : (uint32_t)CR_AXIS_STRIP];
    }

    /* The tile's rows that are this warp's. False: the tile does not do. */
    CR_DEVICE bool take(uint32_t i) {
        const uint32_t rows = rows_of(i), pieces = cut ? args.at.strips : 1, place = lane & ((1u << row_log) - 1);
        Sum sum = {};
        int64_t kept[2] = {0, 0};
        uint64_t kept_specials = 0;
        int unit = 0;
        for (uint32_t turn = 0, row = warp * side; row < rows; turn++, row += side * CR_WARPS) {
            int64_t part[2] = {0, 0};
            specials = 0;
            for (uint32_t k = 0; k < pieces; k++) {
                turn_over();
                if (!fold(sum, k == 0, part)) return false;
            }
#pragma unroll
            for (uint32_t log = 0; log < 5; log++) {
                if (log >= row_log) break;
                part[0] += __shfl_xor_sync(CR_EVERYONE, part[0], 1u << log);
                if (Sum::WIDE) part[1] += __shfl_xor_sync(CR_EVERYONE, part[1], 1u << log);
            }
            if ((!Sum::WIDE && sum.anchors) || __any_sync(CR_EVERYONE, specials != 0)) {
#pragma unroll 1
                for (uint32_t log = 0; log < row_log; log++) {
                    if (!Sum::WIDE) part[1] += __shfl_xor_sync(CR_EVERYONE, part[1], 1u << log);
                    specials += __shfl_xor_sync(CR_EVERYONE, specials, 1u << log);
                }
            }
            if (place == turn) {
                kept[0] = part[0];
                kept[1] = part[1];
                kept_specials = specials;
                unit = sum.unit;
            }
        }
        const uint32_t row = (place * CR_WARPS + warp) * side + (cut ? 0 : lane >> row_log);
        if (row < rows) answer(tile_of(i) * many + row, kept, unit, kept_specials);
        return true;
    }
    CR_DEVICE void answer(uint64_t output, const int64_t (&part)[2], int unit, uint64_t found) {
        if (!Sum::WIDE && simple && (found | (uint64_t)part[1]) == 0) { /* as cr_axis_quick_answer has it */
            simple[output] = __dmul_rn(__ll2double_rn(part[0]), __hiloint2double((unit + 1023) << 20, 0));
            return;
        }
        constexpr uint64_t all = (1u << CR_STRIP_COUNT) - 1;
        cr_axis_sum_record<2> r;
        if (Sum::WIDE || part[1] != 0) r.value.set(((cr_i128)part[1] << Sum::STEP) + part[0]);
        else r.value.set(part[0]);
        r.marks = (found & all) | ((found >> CR_STRIP_COUNT & all) != 0 ? CR_MARK_PLUS : 0) | (found >> 2 * CR_STRIP_COUNT != 0 ? CR_MARK_MINUS : 0);
        r.unit = unit;
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (cr_is_variance(args.out[k])) *cr_axis_slot_of(args, output) = cr_axis_slot{r.value.word[0], r.value.word[1], r.unit, 0, {0, 0, 0, 0}};
            else cr_axis_put_sum(args, args.out[k], output, r);
        }
    }
};

/* What a tile that did not do leaves to the second launch: itself, or its outputs. The block is together. */
template <cr_dtype D> CR_DEVICE void cr_strip_later(const cr_axis_args &args, uint64_t tile, uint32_t many) {
    if constexpr (D == CR_F64) {
        const uint64_t output = tile * many + threadIdx.x;
        if (threadIdx.x < many && output < args.at.outer) cr_axis_float<D, CR_SUM_PLAIN>::later(args, output);
    } else {
        if (threadIdx.x == 0) cr_axis_list(args)[atomicAdd(&cr_axis_head_of(args)->hard, 1u)] = (uint32_t)tile;
    }
}

template <cr_dtype D> __global__ void __launch_bounds__(CR_GPU_THREADS, 2) cr_axis_strips(const __grid_constant__ cr_axis_args args) {
    __shared__ cr_strip_shared shared;
    cr_let_the_next_begin();
    cr_strip<D> strip(args, shared);
    for (uint32_t first = 0; first < strip.tiles; first += CR_STRIP_TILES) {
        if (threadIdx.x < CR_STRIP_TILES / 32) shared.failed[threadIdx.x] = 0;
        __syncthreads();
        const uint32_t count = min(strip.tiles - first, (uint32_t)CR_STRIP_TILES);
        for (uint32_t i = 0; i < count; i++) {
            if (strip.take(first + i)) continue;
            /* Nor would those after it, most likely. */
            for (uint32_t k = i + strip.lane; k < count; k += CR_WARP) atomicOr(&shared.failed[k / 32], 1u << k % 32);
            strip.go_to(first + count);
            break;
        }
        __syncthreads();
        for (uint32_t i = 0; i < count; i += 32) {
            for (uint32_t left = shared.failed[i / 32]; left != 0; left &= left - 1)
                cr_strip_later<D>(args, strip.tile_of(first + i + (uint32_t)__ffs((int)left) - 1), strip.many);
        }
        __syncthreads();
    }
}

template <cr_dtype D> int cr_axis_launch_strips(const cr_axis_args *args, void *stream) {
    return CR_LAUNCH(cr_axis_strips<D>, args->at.blocks, CR_GPU_THREADS, stream, *args);
}

#endif
