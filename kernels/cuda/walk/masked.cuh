/* masked: a masked view of a walk's elements: makes an accumulator for the walk of one to which zeros are nothing (sums, and counts of
 * what is not zero). What the mask leaves out becomes zeros, and how many elements count is told beside: slot->kept.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_WALK_MASKED_CUH
#define CURED_KERNELS_CUDA_WALK_MASKED_CUH

#include "kernels/cuda/thread/simt.cuh"
#include "kernels/cuda/walk/walk.cuh"

/* What a mask says of N elements that follow each other: 0x80 in the byte of each that counts. */
template <int N>
struct cr_keep {
    static constexpr int WORDS = (N + 3) / 4;
    uint32_t top[WORDS];

    /* A byte an element, from p on, which lies anywhere. Words of 4 bytes are read whole. The first one may begin before p, because
     * memory of a GPU begins at a multiple of 256 bytes; none ends behind the last byte. */
    CR_DEVICE void bytes(const uint8_t *p) {
        if constexpr (N < 4) {
            if (N == 2 && (uintptr_t)p % 2 == 0) {
                top[0] = *reinterpret_cast<const uint16_t *>(p);
            } else {
                top[0] = 0;
#pragma unroll
                for (int i = 0; i < N; i++) top[0] |= (uint32_t)p[i] << 8 * i;
            }
        } else {
            const uint32_t off = (uint32_t)((uintptr_t)p & 3);
            const uint32_t *from = reinterpret_cast<const uint32_t *>(p - off);
#pragma unroll
            for (int i = 0; i < WORDS; i++) top[i] = from[i];
            if (off != 0) {
                uint32_t last = 0; /* by bytes, because the mask may end within its word */
#pragma unroll
                for (uint32_t i = 0; i < 3; i++) {
                    if (i < off) last |= (uint32_t)p[N - off + i] << 8 * i;
                }
#pragma unroll
                for (int i = 0; i < WORDS; i++)
                    top[i] = __funnelshift_r(top[i], i + 1 < WORDS ? top[i + 1 < WORDS ? i + 1 : i] : last, 8 * off);
            }
        }
#pragma unroll
        for (int i = 0; i < WORDS; i++) top[i] = cr_nonzero_bytes(top[i]);
    }
    /* A bit an element, from bit `at` of p on. */
    CR_DEVICE void bits(const uint8_t *p, uint64_t at) {
        const uint32_t off = (uint32_t)at & 7;
        uint32_t found = 0;
        p += at >> 3;
#pragma unroll
        for (uint32_t i = 0; i < (N + 14) / 8; i++) {
            if (off + N > 8 * i) found |= (uint32_t)p[i] << 8 * i;
        }
        found >>= off;
#pragma unroll
        for (int i = 0; i < WORDS; i++) top[i] = ((found >> 4 * i & 15) * 0x00204081u & 0x01010101u) << 7;
    }
    /* Turns what is left out to what counts, where the mask says so. Gives how many count. */
    CR_DEVICE uint32_t turn(const cr_mask &mask) {
        constexpr uint32_t ALL = N < 4 ? 0x80808080u >> 8 * (4 - N) : 0x80808080u;
        const uint32_t other = mask.leaves_out ? ALL : 0;
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            top[i] = (top[i] ^ other) & ALL;
            count += (uint32_t)__popc(top[i]);
        }
        return count;
    }
    /* Of elements [at, at + N). Gives how many count. */
    CR_DEVICE uint32_t look(const cr_mask &mask, uint64_t at) {
        if (mask.kind == CR_MASK_BYTES)
            bytes(mask.data + mask.first + at);
        else
            bits(mask.data, mask.first + at);
        return turn(mask);
    }
    /* The same of bytes at p, a multiple of their number, in two steps: loads, of which several may be under way, and what they are. */
    CR_DEVICE void load(const uint8_t *p) {
        if constexpr (N == 16) {
            const uint4 v = *reinterpret_cast<const uint4 *>(p);
            top[0] = v.x, top[1 % WORDS] = v.y, top[2 % WORDS] = v.z, top[3 % WORDS] = v.w;
        } else if constexpr (N == 8) {
            const uint64_t v = *reinterpret_cast<const uint64_t *>(p);
            top[0] = (uint32_t)v, top[1 % WORDS] = (uint32_t)(v >> 32);
        } else {
            top[0] = N == 4 ? *reinterpret_cast<const uint32_t *>(p) : N == 2 ? *reinterpret_cast<const uint16_t *>(p) : *p;
        }
    }
    CR_DEVICE uint32_t settle(const cr_mask &mask) {
#pragma unroll
        for (int i = 0; i < WORDS; i++) top[i] = cr_nonzero_bytes(top[i]);
        return turn(mask);
    }
    /* All ones where word w of a vector of those elements counts. */
    CR_DEVICE uint32_t word(unsigned w) const {
        if (N == 16) return cr_sign_bytes(top[w % WORDS]);
        if (N == 8) return cr_signs(top[w / 2 % WORDS], w % 2 ? 0xbbaa : 0x9988);
        return cr_signs(top[0], 0x1111 * (8 + (N == 4 ? w : w / 2)));
    }
};

template <class A>
struct cr_masked {
    static constexpr int SIZE = A::SIZE, UNROLL = A::UNROLL, BLOCKS = A::BLOCKS, LANES = CR_GPU_VECTOR / SIZE;
    static constexpr bool SELF = A::SELF, CHUNKED = cr_chunked<A>::value;
    static_assert(SELF, "what blocks merge by a ticket does not say how many elements count");
    struct Shared {
        typename A::Shared inner;
        uint32_t kept[CR_WARPS];
    };
    typedef typename A::Sample Sample;
    A inner;
    const cr_fold_args *args;
    const uint8_t *quick; /* the byte of the body's first element, where vectors have theirs at multiples of their number; else NULL */
    uint32_t kept;        /* by this thread; a block takes less than 2^32 */

    CR_DEVICE Sample sample(const cr_fold_args &of) { return inner.sample(of); }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, Sample sample) {
        args = &of;
        kept = 0;
        quick = of.mask.data + of.mask.first + of.plan.head;
        if (of.mask.kind != CR_MASK_BYTES || (uintptr_t)quick % LANES != 0) quick = nullptr;
        inner.begin(of, shared.inner, sample);
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&given)[U], uint64_t vector, uint32_t count, Shared &shared) {
        uint4 v[U];
        cr_keep<LANES> keep[U];
        if (quick != nullptr && count == U) {
#pragma unroll
            for (int j = 0; j < U; j++) keep[j].load(quick + (vector + (uint64_t)j * CR_GPU_THREADS) * LANES);
#pragma unroll
            for (int j = 0; j < U; j++) kept += keep[j].settle(args->mask);
        } else {
            look<U>(keep, vector, count);
        }
#pragma unroll
        for (int j = 0; j < U; j++)
            v[j] = make_uint4(given[j].x & keep[j].word(0), given[j].y & keep[j].word(1), given[j].z & keep[j].word(2),
                              given[j].w & keep[j].word(3));
        inner.template tile<U>(v, vector, count, shared.inner);
    }
    /* Masks of bits, of bytes at any address, and of a tile that has fewer vectors. */
    template <int U>
    CR_DEVICE void look(cr_keep<LANES> (&keep)[U], uint64_t vector, uint32_t count) {
#pragma unroll
        for (int j = 0; j < U; j++) {
#pragma unroll
            for (int i = 0; i < cr_keep<LANES>::WORDS; i++) keep[j].top[i] = 0;
            if (j < (int)count)
                kept += keep[j].look(args->mask, args->plan.head + (vector + (uint64_t)j * CR_GPU_THREADS) * LANES);
        }
    }
    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &shared) {
        cr_keep<1> keep;
        if (keep.look(args->mask, index - args->index) == 0) return;
        kept++;
        inner.one(bits, index, shared.inner);
    }
    CR_DEVICE void publish(const cr_fold_args &of, Shared &shared) {
        const uint32_t own = __reduce_add_sync(CR_EVERYONE, kept);
        if (threadIdx.x % CR_WARP == 0) shared.kept[threadIdx.x / CR_WARP] = own;
        __syncthreads();
        if (threadIdx.x == 0) {
            uint64_t all = 0;
#pragma unroll
            for (int w = 0; w < CR_WARPS; w++) all += shared.kept[w];
            if (cr_leave_word(&of.state->kept, all, of.plan.blocks)) of.slot->kept = all;
        }
        inner.publish(of, shared.inner);
    }
    CR_DEVICE void collect(const cr_fold_args &, Shared &) {}
};

template <class A>
int cr_masked_launch(const cr_fold_args *args, void *stream) {
    return cr_walk_launch<cr_masked<A>>(args, stream);
}

#endif
