/* digits: where the parts of an exact float sum meet, whatever unit each warp has counted in: digits of 24 bits at fixed places,
 * one in each lane. A warp's row lies in shared memory; the blocks' rows add up in words that also count the blocks, so the
 * last one on a word knows its final value without asking: one round trip to the L2 cache, no ticket, no fence.
 *
 * Thread: GPU. Owner: the block. */
#ifndef CURED_KERNELS_CUDA_FOLD_DIGITS_CUH
#define CURED_KERNELS_CUDA_FOLD_DIGITS_CUH

#include "kernels/cuda/thread/array.cuh"

enum { CR_DIGIT_COUNT_AT = 50 }; /* where a word counts its blocks */
static_assert(CR_GPU_MAX_BLOCKS <= 1 << 12, "a block's digit and its bias take 38 bits of a word");

/* value·2^(32·limb), |value| < 2^63, into the state's limbs in two digits. */
CR_DEVICE void cr_limb_add(cr_sum_state *state, int limb, long long value) {
    if (value == 0) return;
    long long high = value >> 32;
    atomicAdd(&state->limbs[limb], (unsigned long long)value & 0xffffffffu);
    if (high != 0) atomicAdd(&state->limbs[limb + 1], (unsigned long long)high);
}

/* The sum of the lanes' numbers is low + middle·2^22 + high·2^43. */
struct cr_warp_total {
    unsigned low, middle;
    int high;
    CR_DEVICE explicit cr_warp_total(long long value) {
        low = __reduce_add_sync(~0u, (unsigned)value & 0x3fffff);
        middle = __reduce_add_sync(~0u, (unsigned)(value >> 22) & 0x1fffff);
        high = __reduce_add_sync(~0u, (int)(value >> 43));
    }
    /* This lane's digit of it, times 2^bit: below 2^52. The highest bit that fits is cr_digits_room(digits). */
    CR_DEVICE long long share(unsigned bit) const {
        const unsigned lane = threadIdx.x % 32;
        long long found = 0;
        if (lane == bit / CR_DIGIT_BITS) found = (long long)low << bit % CR_DIGIT_BITS;
        if (lane == (bit + 22) / CR_DIGIT_BITS) found += (long long)middle << (bit + 22) % CR_DIGIT_BITS;
        if (lane == (bit + 43) / CR_DIGIT_BITS) found += (long long)high * (1ll << (bit + 43) % CR_DIGIT_BITS);
        return found;
    }
    /* To the state's limbs, times 2^bit; by three lanes. */
    CR_DEVICE void spill(cr_sum_state *to, int bit) const {
        const unsigned lane = threadIdx.x % 32;
        long long part = lane == 0 ? (long long)low : lane == 1 ? (long long)middle : (long long)high;
        bit += lane == 0 ? 0 : lane == 1 ? 22 : 43;
        if (lane < 3) cr_limb_add(to, bit / 32, part * (1ll << bit % 32));
    }
};
static constexpr int cr_digits_room(int digits) { return CR_DIGIT_BITS * (digits - 1) - 43 - 1; }

/* A row whose digits are below 2^62, with them below 2^39. */
template <int DIGITS> CR_DEVICE long long cr_digits_carried(long long digit) {
    const int lane = threadIdx.x % 32;
    const long long up = __shfl_sync(~0u, digit >> CR_DIGIT_BITS, (lane + 31) % 32);
    if (lane >= DIGITS) return 0;
    if (lane + 1 < DIGITS) digit &= (1 << CR_DIGIT_BITS) - 1;
    return digit + (lane == 0 ? 0 : up);
}

/* A warp, at a block's end: `digit` is the block's, in each lane. dirty: something of the block is in the limbs. */
template <int DIGITS>
CR_DEVICE void cr_digits_tell(const cr_fold_args &args, cr_sum_state *to, cr_sum_found *found, long long digit, bool dirty,
                              int unit, int limbs, uint32_t lane) {
    const uint32_t blocks = args.plan.blocks;
    if (lane > DIGITS) return;
    const bool control = lane == DIGITS;
    unsigned long long word = control ? dirty : (unsigned long long)digit + CR_DIGIT_BIAS;
    if (blocks > 1) {
        unsigned long long *mine = control ? &to->control : &to->words[lane];
        const unsigned long long before = atomicAdd(mine, word + (1ull << CR_DIGIT_COUNT_AT));
        if (before >> CR_DIGIT_COUNT_AT != blocks - 1) return;
        *mine = 0;
        word += before & ((1ull << CR_DIGIT_COUNT_AT) - 1);
    }
    if (!control) {
        found->words[lane] = word;
        return;
    }
    found->control = word;
    found->unit = unit;
    found->digits = DIGITS;
    found->blocks = blocks;
    if (word == 0) return;
    __threadfence();
    for (int i = 0; i < limbs; i++) { /* rare */
        found->limbs[i] = (int64_t)__ldcg(&to->limbs[i]);
        to->limbs[i] = 0;
    }
    for (int i = 0; i < 3; i++) {
        found->special[i] = __ldcg(&to->special[i]);
        to->special[i] = 0;
    }
}

#endif
