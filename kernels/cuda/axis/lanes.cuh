/* lanes: along an axis, the sums of float64 that no window takes. A warp folds four listed rows or eight columns at once, so that they
 * are read by whole sectors. Each lane has a table of 26-bit digits of its own in shared memory, a bank for each lane: an element is
 * three additions there, which nothing waits for and which never collide.
 *
 * A digit takes 32 elements. Then the warp adds up the tables of an output's lanes, each of which has some of the digits in registers,
 * and carries. Few outputs are cut among more warps, and meet in a state.
 * Thread: GPU; a block has CR_LANES_WARPS warps. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_LANES_CUH
#define CURED_KERNELS_CUDA_AXIS_LANES_CUH

#include "kernels/cuda/axis/square_bins.cuh"

/* Warps of a block, blocks on a multiprocessor; lines of an output, one team's at most while there are few outputs: few lanes take long. */
enum { CR_LANES_WARPS = 4, CR_LANES_BLOCKS = 4, CR_LANES_LINES = 64 };

/* OUTPUTS: of a warp at once. */
template <int OUTPUTS> struct cr_axis_lanes {
    static constexpr int EACH = CR_WARP / OUTPUTS; /* lanes of an output */
    static constexpr int BITS = 26, DIGITS = 2045 / BITS + 3, OWN = (DIGITS + EACH - 1) / EACH, ADDS = 32, TOGETHER = 8;
    static constexpr uint32_t DIGIT = (1u << BITS) - 1;
    static_assert(53 + BITS - 1 <= 3 * BITS, "an element has three digits");
    union Table {
        uint32_t digit[DIGITS][CR_WARP];
        uint4 vector[DIGITS][CR_WARP / 4];
        uint32_t number[OUTPUTS][OWN * EACH]; /* an output's digits */
    };

    Table &table; /* of the warp */
    const cr_axis_args &args;
    uint32_t *const mine;
    const uint8_t *next; /* what this lane loads next; `left` such, `step` bytes apart */
    uint64_t step;
    uint32_t left, mask; /* mask: of an element's upper half */
    uint32_t own[OWN];             /* digits of the output, from first() on */
    long long pending, sign;       /* what the lane below carries to them; of the last lane, what it carries out */
    uint32_t found[3];             /* NaNs, +inf, −inf of this lane */
    unsigned long long special[3]; /* of the output */

    CR_DEVICE static uint32_t lane() { return threadIdx.x % CR_WARP; }
    /* Where the digits of this lane lie: those of an output are neighbours. */
    CR_DEVICE static uint32_t place() { return lane() % OUTPUTS * EACH + lane() / OUTPUTS; }
    CR_DEVICE static int first() { return (int)(lane() / OUTPUTS) * OWN; }
    CR_DEVICE cr_axis_lanes(Table &of, const cr_axis_args &asked) : table(of), args(asked), mine(&of.digit[0][place()]) {}

    /* Of an element its three digits, in [0, 2^26) but for the highest, which has the sign. Sums with anchors round down to multiples of
     * their units, so an anchor's last bits are a digit; what is left below them is denormal, and its own bits are one. */
    CR_DEVICE void put(uint64_t bits) {
        const uint32_t upper = (uint32_t)(bits >> 32), group = (uint32_t)max((int)(upper >> 20 & 0x7ff) - 1, 0) * 2521 >> 16; /* by BITS */
        const double x = __hiloint2double((int)(upper - group * (BITS << 20)), (int)(uint32_t)bits);
        const double high = cr_anchor(cr_f64::GRID + 2 * BITS), middle = cr_anchor(cr_f64::GRID + BITS);
        const double a = __dadd_rd(x, high), rest = __dsub_rn(x, __dsub_rn(a, high));
        const double b = __dadd_rd(rest, middle), last = __dsub_rn(rest, __dsub_rn(b, middle));
        uint32_t *to = mine + group * CR_WARP;
        atomicAdd(to, (uint32_t)__double_as_longlong(last));
        atomicAdd(to + CR_WARP, (uint32_t)__double_as_longlong(b));
        atomicAdd(to + 2 * CR_WARP, (uint32_t)__double_as_longlong(a));
    }
    CR_DEVICE void put_all(uint64_t (&bits)[TOGETHER]) {
        uint32_t most = 0;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) most = max(most, (uint32_t)(bits[i] >> 32) & 0x7fffffffu);
        if (most >= 0x7ff00000u) {
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                const cr_parts<cr_f64> parts(bits[i]);
                if (((bits[i] >> 52) & 0x7ff) != 0x7ff) continue;
                const int which = parts.special();
                found[0] += which == 0;
                found[1] += which == 1;
                found[2] += which == 2;
                bits[i] = 0;
            }
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) put(bits[i]);
    }
    /* No branch stands between the loads, and nothing waits for one of them. ODD: elements lie anywhere, or under a mask. */
    template <bool ODD> CR_DEVICE void load(uint64_t (&bits)[TOGETHER]) {
        if (!ODD && left >= (uint32_t)TOGETHER) {
#pragma unroll
            for (int i = 0; i < TOGETHER; i++, next += step) bits[i] = *reinterpret_cast<const uint64_t *>(next);
            left -= TOGETHER;
            return;
        }
#pragma unroll
        for (uint32_t i = 0; i < (uint32_t)TOGETHER; i++, next += step) {
            bits[i] = 0;
            if (i < left && (!ODD || cr_axis_counts<8>(args, next))) bits[i] = ODD ? cr_load_one<8>(next) : *reinterpret_cast<const uint64_t *>(next);
        }
        left -= min(left, (uint32_t)TOGETHER);
    }
    CR_DEVICE static bool is_last() { return lane() / OUTPUTS == EACH - 1; }
    /* The digits are now value(i), and carry. The warp is together. */
    template <class VALUE> CR_DEVICE void set(VALUE value) {
        long long over = pending;
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            over += value(i);
            own[i] = (uint32_t)over & DIGIT;
            over >>= BITS;
        }
        if (is_last()) sign += over;
        over = __shfl_sync(CR_EVERYONE, over, (lane() + CR_WARP - OUTPUTS) % CR_WARP);
        pending = first() == 0 ? 0 : over;
    }
    /* Adds up the tables, which it leaves zero. Of two lanes one begins with the other half, so that banks do not collide. */
    CR_DEVICE void gather() {
        const uint32_t half = lane() / OUTPUTS % (EACH / 4);
        uint4 *from = &table.vector[first()][lane() % OUTPUTS * (EACH / 4)];
        __syncwarp();
        set([&](int i) {
            long long sum = own[i];
            if (first() + i >= DIGITS) return sum;
#pragma unroll
            for (uint32_t k = 0; k < (uint32_t)EACH / 4; k++) {
                uint4 *at = from + i * (CR_WARP / 4) + (k ^ half);
                const uint4 x = *at;
                *at = make_uint4(0, 0, 0, 0);
                sum += (long long)(int)x.x + (int)x.y + ((long long)(int)x.z + (int)x.w);
            }
            return sum;
        });
        __syncwarp();
    }
    /* What this lane has to load; no lane has more than `most`. */
    template <bool ODD> CR_DEVICE void fold(uint32_t most) {
        const uint32_t turns = (most + TOGETHER - 1) / TOGETHER;
        uint64_t ahead[TOGETHER];
#pragma unroll
        for (int i = 0; i < OWN; i++) own[i] = 0;
        pending = sign = 0;
        found[0] = found[1] = found[2] = 0;
        for (uint32_t i = lane(); i < sizeof table / sizeof(uint4); i += CR_WARP) (&table.vector[0][0])[i] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        load<ODD>(ahead);
        for (uint32_t turn = 0; turn < turns;) {
            const uint32_t end = min(turn + ADDS / TOGETHER, turns);
#pragma unroll 1
            for (; turn < end; turn++) {
                uint64_t bits[TOGETHER];
#pragma unroll
                for (int i = 0; i < TOGETHER; i++) bits[i] = ahead[i] & ((uint64_t)mask << 32 | 0xffffffffu);
                load<ODD>(ahead); /* while those are put */
                put_all(bits);
            }
            gather();
        }
#pragma unroll
        for (int i = 0; i < 3; i++) special[i] = meet(found[i]);
    }

    /* Of what each of the output's lanes has, all of it. */
    CR_DEVICE static unsigned long long meet(unsigned long long x) {
        if (!__any_sync(CR_EVERYONE, x != 0)) return 0;
        for (uint32_t step = OUTPUTS; step < CR_WARP; step *= 2) x += __shfl_xor_sync(CR_EVERYONE, x, step);
        return x;
    }
    CR_DEVICE static uint32_t team() { /* lanes of the output */
        uint32_t lanes = 0;
        for (int i = 0; i < EACH; i++) lanes |= 1u << i * OUTPUTS;
        return lanes << lane() % OUTPUTS;
    }
    /* A split of an output to its state; whether it was the last, which then has what all left there, and leaves it zero. */
    CR_DEVICE bool meet_others(cr_sum_state *state, uint32_t splits, bool valid) {
        const bool leads = valid && first() == 0;
        unsigned long long *limbs = &state->limbs[first()];
        if (valid) {
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const long long digit = (long long)own[i] + (i == 0 ? pending : 0);
                if (digit != 0) atomicAdd(&limbs[i], (unsigned long long)digit);
            }
            if (sign != 0) atomicAdd(&limbs[OWN], (unsigned long long)sign);
        }
        for (int i = 0; leads && i < 3; i++) {
            if (special[i] != 0) atomicAdd(&state->special[i], special[i]);
        }
        __threadfence();
        __syncwarp();
        uint32_t before = 0;
        if (leads) before = (uint32_t)atomicAdd(&state->control, 1ull);
        before = __shfl_sync(CR_EVERYONE, before, lane() % OUTPUTS);
        __threadfence();
        const bool all = valid && before + 1 == splits;
        if (all) {
            pending = 0;
            sign = is_last() ? (long long)__ldcg(&limbs[OWN]) : 0;
            if (is_last()) limbs[OWN] = 0;
        }
        set([&](int i) {
            if (!all) return (long long)own[i];
            const long long digit = (long long)__ldcg(&limbs[i]);
            limbs[i] = 0;
            return digit;
        });
        for (int i = 0; all && leads && i < 3; i++) {
            special[i] = __ldcg(&state->special[i]);
            state->special[i] = 0;
        }
        if (all && leads) state->control = 0;
        return all;
    }
    /* Makes the digits those of the magnitude; whether it was negative. What lanes carry goes up a lane a round: few rounds, but where
     * many digits are alike. */
    CR_DEVICE bool carry() {
        while (__any_sync(CR_EVERYONE, pending != 0)) set([&](int i) { return (long long)own[i]; });
        const bool negative = __shfl_sync(CR_EVERYONE, (int)(sign < 0), lane() % OUTPUTS + CR_WARP - OUTPUTS) != 0;
        bool some = false;
#pragma unroll
        for (int i = 0; i < OWN; i++) some |= own[i] != 0;
        const uint32_t lower = __ballot_sync(CR_EVERYONE, some) & team() & ((1u << lane()) - 1);
        if (negative) { /* below the lowest digit that is not zero nothing changes */
            bool ones = lower != 0;
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                if (ones) own[i] = DIGIT - own[i];
                else if (own[i] != 0) own[i] = DIGIT + 1 - own[i], ones = true;
            }
        }
        return negative;
    }
    /* The answers of the output. All lanes; valid: of the output's. */
    CR_DEVICE void answer(const cr_axis_args &args, uint64_t output, bool valid) {
        uint32_t *number = &table.number[lane() % OUTPUTS][0];
        const bool negative = carry();
        int top = -1;
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            number[first() + i] = own[i];
            if (own[i] != 0) top = first() + i;
        }
        const uint32_t lit = __ballot_sync(CR_EVERYONE, top >= 0) & team();
        top = __shfl_sync(CR_EVERYONE, top, lit == 0 ? lane() : 31 - __clz((int)lit));
        bool below = false;
#pragma unroll
        for (int i = 0; i < OWN; i++) below |= own[i] != 0 && first() + i < top - 5;
        bool sticky = (__ballot_sync(CR_EVERYONE, below) & team()) != 0;
        __syncwarp();
        if (!valid || first() != 0) return;
        uint64_t marks = special[0] & CR_MARK_NANS;
        if (special[1] != 0) marks |= CR_MARK_PLUS;
        if (special[2] != 0) marks |= CR_MARK_MINUS;
        int exponent = 0;
        cr_u128 magnitude = 0;
        if (top >= 0) { /* 128 bits of six digits, the first of them a one */
            for (int i = top; i > top - 4; i--) magnitude = magnitude << BITS | (i >= 0 ? number[i] : 0);
            const uint64_t rest = (uint64_t)(top >= 4 ? number[top - 4] : 0) << BITS | (top >= 5 ? number[top - 5] : 0);
            const int room = 128 - cr_bits_in(magnitude);
            magnitude = magnitude << room | rest >> (2 * BITS - room);
            sticky |= (rest & ((1ull << (2 * BITS - room)) - 1)) != 0;
            exponent = cr_f64::GRID + BITS * (top - 3) - room;
        }
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (!cr_is_variance(args.out[k]))
                cr_float_answer(args, args.out[k], output, negative, magnitude, exponent, sticky, marks);
        }
    }
};

/* The list's outputs, so many at once. */
template <int OUTPUTS> CR_DEVICE void cr_axis_lanes_run(const cr_axis_args &args, void *room) {
    typedef cr_axis_lanes<OUTPUTS> lanes;
    constexpr uint32_t EACH = lanes::EACH;
    cr_axis_head *head = cr_axis_head_of(args);
    const uint32_t inner = (uint32_t)args.at.inner; /* as many outputs have numbers of 32 bits */
    const uint32_t lane = threadIdx.x % CR_WARP, hard = __ldcg(&head->hard), warps = gridDim.x * CR_LANES_WARPS;
    /* Few are cut among more warps. */
    const uint64_t pieces = (args.at.n + CR_LANES_LINES - 1) / CR_LANES_LINES;
    const uint32_t splits = hard == 0 ? 1 : (uint32_t)max((uint64_t)1, min(pieces, (uint64_t)(warps / hard)));
    const uint64_t lines = (args.at.n + splits - 1) / splits, items = (uint64_t)hard * splits;
    lanes sums(reinterpret_cast<typename lanes::Table *>(room)[threadIdx.x / CR_WARP], args);
    sums.step = args.at.inner * 8 * EACH;
    sums.mask = args.family == CR_FAM_SUMABS ? INT32_MAX : UINT32_MAX;
    for (;;) { /* as warps come */
        uint32_t taken = 0;
        if (items != 0 && lane == 0) taken = atomicAdd(&head->taken, 1u);
        const uint64_t begin = (uint64_t)__shfl_sync(CR_EVERYONE, taken, 0) * OUTPUTS, item = begin + lane % OUTPUTS;
        if (begin >= items) break;
        bool valid = item < items;
        /* Neighbours of the list, which are neighbours in memory, together. */
        const uint32_t position = (uint32_t)(splits == 1 && valid ? item : item % hard), output = cr_axis_list(args)[position];
        const uint64_t from = splits == 1 ? 0 : item / hard * lines, to = valid ? min(from + lines, args.at.n) : 0, low = from + lane / OUTPUTS;
        sums.next = args.data + (output / inner * args.at.n * inner + output % inner + low * inner) * 8;
        sums.left = low < to ? (uint32_t)((to - low - 1) / EACH + 1) : 0;
        const uint32_t most = (uint32_t)((lines + EACH - 1) / EACH);
        if (args.at.odd || args.mask.kind != CR_MASK_NONE) sums.template fold<true>(most);
        else sums.template fold<false>(most);
        if (splits > 1) valid = sums.meet_others(&head->states[position], splits, valid);
        sums.answer(args, output, valid);
    }
}

static __global__ void __launch_bounds__(CR_LANES_WARPS *CR_WARP, CR_LANES_BLOCKS) cr_axis_by_lanes(const __grid_constant__ cr_axis_args args) {
    __shared__ uint4 room[CR_LANES_WARPS * sizeof(cr_axis_lanes<4>::Table) / sizeof(uint4)];
    static_assert(sizeof(cr_axis_lanes<4>::Table) == sizeof(cr_axis_lanes<8>::Table), "tables differ");
    cr_after_the_last();
    if (args.at.rows) cr_axis_lanes_run<4>(args, room);
    else cr_axis_lanes_run<8>(args, room); /* 64 bytes of a line */
    cr_axis_leave_list(args);
}

static int cr_axis_launch_lanes(const cr_axis_args *args, void *stream) {
    return cr_launch(cr_axis_by_lanes, args->at.hard_blocks, CR_LANES_WARPS * CR_WARP, stream, true, *args);
}

#endif
