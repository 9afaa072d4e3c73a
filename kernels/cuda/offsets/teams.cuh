/* teams: folds of segments whose elements may meet in any order (terms.cuh). A warp takes a chunk's segments 32 at a time, one for each lane.
 * Long ones have all lanes, one after the other. Of the others, teams of as many lanes as their average length is worth have several at
 * once. A team loads vectors of 16 bytes as they lie; what of a vector is another segment's is hidden. Then each lane has what its segment
 * came to, and answers it, so that the long way to an answer is gone once for 32 segments.
 *
 * What the chunk has of a segment that is parted by a cut goes to the chunk's parts, which teams.cu joins.
 * Thread: GPU; a chunk is a warp's. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_TEAMS_CUH
#define CURED_KERNELS_CUDA_OFFSETS_TEAMS_CUH

#include "kernels/cuda/offsets/answer.cuh"
#include "kernels/cuda/offsets/terms.cuh"

enum {
    CR_TEAM_LONG = 1024,   /* bytes; longer segments have the warp */
    CR_TEAM_LANE = 64,     /* bytes that a lane of a team has, about; of segments of more than: */
    CR_TEAM_MIDDLE = 512,  /* bytes, twice that */
    CR_TEAM_TOGETHER = 4,  /* loads of a lane that are under way at once */
    CR_WARP_LOG2 = 5,
};

template <class T> struct cr_teams {
    static constexpr int SIZE = T::SIZE, VEC = CR_GPU_VECTOR / SIZE;
    typedef typename T::words words;

    const cr_segments_args &args;
    const uint32_t lane;
    /* Of the chunk. Elements are numbered from the vector on in which it begins, which may begin before the array. */
    cr_segments_chunk at;
    const uint8_t *origin;
    uint32_t skip;       /* elements before the chunk */
    uint32_t from, upto; /* vectors of which all is the array's, and at a multiple of 16 bytes */
    int hint;            /* of its elements: see quarters.cuh */

    CR_DEVICE explicit cr_teams(const cr_segments_args &of) : args(of), lane(threadIdx.x % CR_WARP) {}

    CR_DEVICE void open(uint32_t chunk) {
        at = cr_segments_cut<SIZE>(args, chunk);
        const uint64_t shift = (uintptr_t)args.data % CR_GPU_VECTOR / SIZE, left = args.n - at.low;
        skip = args.odd ? 0 : (uint32_t)((at.low + shift) % VEC);
        origin = args.data + at.low * SIZE - skip * SIZE;
        from = at.low >= skip ? 0 : 1;
        upto = args.odd ? 0 : (uint32_t)min((left + skip) / VEC, (uint64_t)UINT32_MAX);
        hint = 0;
        if constexpr (T::KIND == CR_SEGMENTS_QUARTERS) hint = T::hint(at.low + lane < at.high ? cr_load_one<SIZE>(args.data + (at.low + lane) * SIZE) : 0);
    }

    /* ---- Vectors ---- */

    CR_DEVICE const uint4 *vector(uint32_t v) const { return reinterpret_cast<const uint4 *>(origin) + v; }
    /* Vector v, of which elements [low, high) are looked at; other bits are any. */
    CR_DEVICE uint4 load(uint32_t v, uint32_t low, uint32_t high) const {
        if (v >= from && v < upto) return *vector(v);
        uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
        for (uint32_t e = 0; e < (uint32_t)VEC; e++) {
            if (v * VEC + e < low || v * VEC + e >= high) continue;
            const uint64_t bits = cr_load_one<SIZE>(origin + (uint64_t)v * CR_GPU_VECTOR + e * SIZE);
            word[e * SIZE / 4] |= (uint32_t)bits << 8 * (e * SIZE % 4);
            if (SIZE == 8) word[e * SIZE / 4 + 1] = (uint32_t)(bits >> 32);
        }
        return make_uint4(word[0], word[1], word[2], word[3]);
    }
    /* All ones in the lowest bytes of a word, so many of them. */
    CR_DEVICE static uint32_t ones(int bytes) { return bytes <= 0 ? 0 : bytes >= 4 ? ~0u : (1u << 8 * bytes) - 1; }
    /* A vector, of which maybe not all is the segment's. */
    CR_DEVICE void some(T &own, uint4 x, uint32_t v, uint32_t low, uint32_t high) const {
        const uint32_t first = v * VEC;
        uint32_t keep[4] = {~0u, ~0u, ~0u, ~0u};
        if (first < low || first + VEC > high) {
            const uint32_t begins = max(low, first) - first, ends = min(high, first + VEC) - first;
#pragma unroll
            for (int k = 0; k < 4; k++) keep[k] = ones((int)(ends * SIZE) - 4 * k) & ~ones((int)(begins * SIZE) - 4 * k);
            T::hide(args, x, keep, begins);
        }
        own.add(args, x, keep, v);
    }
    /* Elements [low, high) by 2^log2 lanes, of which this is number `one`. A lane takes its vectors in their order. */
    CR_DEVICE words fold(uint32_t low, uint32_t high, uint32_t one, uint32_t log2) const {
        const uint32_t all[4] = {~0u, ~0u, ~0u, ~0u}, end = high > low ? (high + VEC - 1) / VEC : 0;
        uint32_t v = low / VEC + one;
        T own;
        own.begin(hint, v < end ? v : UINT32_MAX);
        if (low / VEC >= from && end <= upto) {
            for (; v < end; v += CR_TEAM_TOGETHER << log2) {
                uint4 x[CR_TEAM_TOGETHER];
                if (v * VEC >= low && (v + ((CR_TEAM_TOGETHER - 1) << log2) + 1) * VEC <= high) {
#pragma unroll
                    for (uint32_t i = 0; i < CR_TEAM_TOGETHER; i++) x[i] = *vector(v + (i << log2));
#pragma unroll
                    for (uint32_t i = 0; i < CR_TEAM_TOGETHER; i++) own.add(args, x[i], all, v + (i << log2));
                    continue;
                }
#pragma unroll
                for (uint32_t i = 0; i < CR_TEAM_TOGETHER; i++) {
                    if (v + (i << log2) < end) x[i] = *vector(v + (i << log2));
                }
#pragma unroll
                for (uint32_t i = 0; i < CR_TEAM_TOGETHER; i++) {
                    if (v + (i << log2) < end) some(own, x[i], v + (i << log2), low, high);
                }
            }
        }
#pragma unroll 1
        for (; v < end; v += 1u << log2) some(own, load(v, low, high), v, low, high);
        return own.take(args);
    }

    /* ---- Teams ---- */

    CR_DEVICE void meet(words &w, uint32_t lanes) const {
#pragma unroll 1
        for (uint32_t step = lanes / 2; step > 0; step /= 2) T::merge(args, w, T::from(args, w, lane ^ step));
    }
    /* What each lane's elements [low, high) come to. */
    CR_DEVICE words fold_all(uint32_t low, uint32_t high) const {
        words mine = T::empty();
        const uint32_t bytes = (high - low) * SIZE;
        uint32_t longs = __ballot_sync(CR_EVERYONE, bytes > CR_TEAM_LONG);
        const uint32_t shorts = __ballot_sync(CR_EVERYONE, bytes != 0) & ~longs;
        while (longs != 0) {
            const uint32_t whose = (uint32_t)__ffs((int)longs) - 1;
            longs &= longs - 1;
            words w = fold(__shfl_sync(CR_EVERYONE, low, whose), __shfl_sync(CR_EVERYONE, high, whose), lane, CR_WARP_LOG2);
            meet(w, CR_WARP);
            if (lane == whose) mine = w;
        }
        if (shorts == 0) return mine;
        const uint32_t own = (shorts >> lane & 1) != 0 ? bytes : 0, all = __reduce_add_sync(CR_EVERYONE, own);
        const uint32_t count = (uint32_t)__popc(shorts), each = all > count * CR_TEAM_MIDDLE ? 2 * CR_TEAM_LANE : CR_TEAM_LANE;
        uint32_t log2 = 0; /* of a team's lanes */
        while (log2 + 1 < CR_WARP_LOG2 && (count * each << log2) < all) log2++;
        const uint32_t teams_log2 = CR_WARP_LOG2 - log2, teams = 1u << teams_log2;
#pragma unroll 1
        for (uint32_t turn = 0; turn < 1u << log2; turn++) {
            const uint32_t whose = (turn << teams_log2) + (lane >> log2);
            const bool is_short = (shorts >> whose & 1) != 0;
            if (!__any_sync(CR_EVERYONE, is_short)) continue;
            const uint32_t begins = __shfl_sync(CR_EVERYONE, low, whose), ends = __shfl_sync(CR_EVERYONE, high, whose);
            words w = fold(begins, is_short ? ends : begins, lane & ((1u << log2) - 1), log2);
            if (log2 > 0) {
                meet(w, 1u << log2);
                w = T::from(args, w, (lane & (teams - 1)) << log2);
            }
            if (own != 0 && lane >> teams_log2 == turn) mine = w;
        }
        return mine;
    }

    /* ---- Answers ---- */

    /* The first element of vector v, in [low, high), that is as sought. */
    template <class IS> CR_DEVICE uint64_t place_of(uint32_t v, uint32_t low, uint32_t high, IS is) const {
        if (v == UINT32_MAX) return UINT64_MAX;
        const uint4 x = load(v, low, high);
        uint32_t found = 0;
#pragma unroll
        for (int e = VEC - 1; e >= 0; e--) {
            const uint32_t number = v * VEC + (uint32_t)e;
            if (number >= low && number < high && is(T::element(x, e))) found = number;
        }
        return at.low + found - skip;
    }
    CR_DEVICE void part_of(const words &w, uint32_t low, uint32_t high, cr_segments_part &part) const {
        if constexpr (T::KIND == CR_SEGMENTS_EXTREMA) {
            uint64_t place[3];
#pragma unroll
            for (int i = 0; i < 3; i++) place[i] = T::lacks(args, w, i) ? UINT64_MAX : 0;
            if (args.wants & CR_WANTS_PLACES) {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const typename T::key best = T::get_key(w, i);
                    place[i] = place_of(T::lacks(args, w, i) ? UINT32_MAX : w.word[T::AT + i], low, high, [&](typename T::key bits) {
                        const typename T::key k = T::key_alone(args, bits);
                        return (i == 0 ? k : T::ALL - k) == best;
                    });
                }
                if (args.elements & CR_ELEMENTS_FLOAT)
                    place[2] = place_of(w.word[T::AT + 2], low, high, [&](typename T::key bits) { return (bits & (T::TOP - 1)) > (typename T::key)args.infinite; });
            }
            T::wide(args, w, place, part);
        } else {
            T::wide(args, w, part);
        }
    }
    CR_DEVICE void wrong() const { cr_segments_head(args)->wrong = 1; }

    /* The chunk's ends, and behind them, where elements are left, the segment that is open at its end. */
    CR_DEVICE void chunk(uint32_t number) {
        open(number);
        if (number == 0 && lane == 0 && cr_offset_at(args, 0) > args.n) wrong();
        const uint32_t count = at.last > at.first ? (uint32_t)(at.last - at.first) : 0; /* where offsets are wrong, cuts may be, too */
        const uint32_t length = (uint32_t)(at.high - at.low) + skip;
        const bool opens = at.from < at.low;
        cr_segments_part *parts = cr_segments_parts(args) + 2 * (uint64_t)number;
        if (lane < 2) parts[lane].state = parts[lane].hard = parts[lane].listed = 0;
        __syncwarp();
        uint32_t begin = skip;
        for (uint32_t first = 0; first <= count; first += CR_WARP) {
            const uint32_t own = first + lane;
            uint32_t end = length;
            if (own < count) {
                const uint64_t place = cr_offset_at(args, at.first + own + 1) - at.low;
                if (place > (uint64_t)(length - skip)) wrong();
                else end = (uint32_t)place + skip;
            }
            const uint32_t below = __shfl_up_sync(CR_EVERYONE, end, 1), low = lane == 0 ? begin : below;
            if (end < low) wrong();
            const uint32_t high = own > count ? low : max(low, end);
            begin = __shfl_sync(CR_EVERYONE, end, CR_WARP - 1);
            const words w = fold_all(low, high);
            const bool is_open = opens && own == 0, is_rest = own == count;
            if (own <= count && !(is_rest && high == low)) {
                const uint64_t segment = at.first + own, starts = at.low + low - skip;
                if (!is_open && !is_rest && high != low && T::quick(args, w, segment)) continue;
                cr_segments_part part;
                part_of(w, low, high, part);
                if (!is_open && !is_rest) {
                    if (!cr_segments_answer(args, T::KIND, segment, high - low, starts, part)) cr_segments_put_on_list(args, number);
                } else if (segment < args.count) {
                    cr_segments_part &to = parts[is_open ? 0 : 1];
                    for (int i = 0; i < CR_PART_WORDS; i++) to.word[i] = part.word[i];
                    to.segment = (uint32_t)segment;
                    to.state = is_rest ? CR_PART_GOES_ON : CR_PART_ENDS;
                }
            }
        }
    }
};

template <class T>
static __global__ void __launch_bounds__(CR_SEGMENTS_WARPS *CR_WARP, T::BLOCKS) cr_segments_by_teams(const __grid_constant__ cr_segments_args args) {
    cr_let_the_next_begin();
    cr_teams<T> teams(args);
    for (uint32_t chunk = cr_segments_first(); chunk < args.chunks; chunk = cr_segments_next(args, cr_segments_take(args))) teams.chunk(chunk);
}

#endif
