/* loads: the loads of pieces (pieces.cuh): 4 KiB of a chunk at a time, as it lies, by a warp, into shared memory, where each lane finds
 * neighbouring vectors. The next piece is under way meanwhile, by copies that take no registers. What is not the chunk's is zeros.
 *
 * Thread: GPU; a warp together. Owner: the warp, of `vector`. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_LOADS_CUH
#define CURED_KERNELS_CUDA_OFFSETS_LOADS_CUH

#include "kernels/cuda/axis/ahead.cuh"
#include "kernels/cuda/axis/strips.cuh"
#include "kernels/cuda/offsets/cut.cuh"

enum {
    CR_PIECE_EACH = 8, /* vectors of a lane */
    CR_PIECE_VECTORS = CR_PIECE_EACH * CR_WARP,
    CR_PIECE_STAGES = 2, /* pieces in shared memory: the one that is worked at, and the next */
};

template <cr_dtype D> struct cr_piece_loads {
    typedef cr_float_of<D> E;
    static constexpr int SIZE = E::SIZE, VEC = CR_GPU_VECTOR / SIZE, EACH = CR_PIECE_EACH * VEC, PIECE = EACH * CR_WARP;
    static constexpr uint32_t STAGE = sizeof(uint4[CR_PIECE_VECTORS]);

    const cr_segments_args &args;
    uint4 (*const stage)[CR_PIECE_VECTORS]; /* at a multiple of 128 bytes */
    const cr_near target, own_first;                /* where this lane puts the first vector that it loads, and finds the first of its own, in stage 0 */
    const uint32_t lane;
    const uint8_t *origin; /* the vector in which the chunk begins, which may begin before the array */
    uint32_t skip, length; /* elements of it before the chunk; up to the chunk's end */
    uint32_t turn;         /* the stage that is worked at */

    CR_DEVICE cr_piece_loads(const cr_segments_args &of, uint4 (*room)[CR_PIECE_VECTORS])
        : args(of), stage(room), target(cr_near_of(&room[0][slot(threadIdx.x % CR_WARP)])), own_first(cr_near_of(&room[0][slot(threadIdx.x % CR_WARP * CR_PIECE_EACH)])),
          lane(threadIdx.x % CR_WARP), turn(0) {}
    /* For elements [low, high); gives the number of pieces. */
    CR_DEVICE uint32_t open(uint64_t low, uint64_t high) {
        const uint64_t shift = args.odd ? 0 : (uintptr_t)args.data % CR_GPU_VECTOR / SIZE;
        skip = args.odd ? 0 : (uint32_t)((low + shift) % VEC);
        origin = args.data + (low - skip) * SIZE;
        length = (uint32_t)(high - low) + skip;
        cr_copies_wait<0>(); /* a chunk that was given up may have left some under way */
        __syncwarp();
        load(0);
        return max(1u, (length + PIECE - 1) / PIECE);
    }

    CR_DEVICE static uint32_t slot(uint32_t vector) { return (vector & ~7u) | ((vector ^ vector >> 3) & 7u); } /* so that banks do not collide */
    CR_DEVICE uint4 &at_slot(uint32_t vector) const { return stage[turn][slot(vector)]; }
    /* This lane's vector v: as slot() has it. */
    CR_DEVICE uint4 mine(uint32_t v) const {
        uint4 x;
        cr_near_load(x, (own_first ^ v * CR_GPU_VECTOR) + turn * STAGE);
        return x;
    }
    CR_DEVICE bool is_plain(uint32_t piece) const { /* all of it is the chunk's */
        return !args.odd && (piece != 0 || skip == 0) && (uint64_t)(piece + 1) * PIECE <= length;
    }
    /* Whether vector number i from the origin on may be loaded as such; some: whether it has elements. */
    CR_DEVICE bool is_whole(uint64_t i, bool &some) const {
        const uint64_t first = i * VEC;
        some = first < length && first + VEC > skip;
        return !args.odd && first >= skip && first + VEC <= length;
    }
    /* Into the stage that nobody works at. */
    CR_DEVICE void load(uint32_t piece) {
        const uint64_t first = (uint64_t)piece * CR_PIECE_VECTORS + lane;
        const uint8_t *data = origin + first * CR_GPU_VECTOR;
        if (is_plain(piece)) {
            const cr_near even = target + (turn ^ 1) * STAGE, odd = (target ^ 4 * CR_GPU_VECTOR) + (turn ^ 1) * STAGE; /* as slot() has it */
#pragma unroll
            for (uint32_t j = 0; j < CR_PIECE_EACH; j++) cr_copy_begin((j % 2 == 0 ? even : odd) + j * CR_WARP * CR_GPU_VECTOR, data + j * CR_WARP * CR_GPU_VECTOR);
        } else {
#pragma unroll 1
            for (uint32_t j = 0; j < CR_PIECE_EACH; j++) {
                bool some;
                uint4 *const place = &stage[turn ^ 1][slot(j * CR_WARP + lane)];
                if (is_whole(first + j * CR_WARP, some)) cr_copy_begin(cr_near_of(place), data + j * CR_WARP * CR_GPU_VECTOR);
                else *place = make_uint4(0, 0, 0, 0);
            }
        }
        cr_copies_end_group();
    }
    /* A vector of which some elements are the chunk's. */
    CR_DEVICE uint4 pick(uint64_t i) const {
        uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            const uint64_t place = i * VEC + e;
            if (place < skip || place >= length) continue;
            const uint64_t bits = cr_load_one<SIZE>(origin + place * SIZE);
            word[e * SIZE / 4] |= (uint32_t)bits << 8 * (e * SIZE % 4);
            if (SIZE == 8) word[e * SIZE / 4 + 1] = (uint32_t)(bits >> 32);
        }
        return make_uint4(word[0], word[1], word[2], word[3]);
    }
    /* The lanes find what has come, and the next is loaded. */
    CR_DEVICE void turn_over(uint32_t piece, uint32_t pieces) {
        cr_copies_wait<0>();
        turn ^= 1;
        if (!is_plain(piece)) {
#pragma unroll 1
            for (uint32_t j = 0; j < CR_PIECE_EACH; j++) {
                const uint64_t i = (uint64_t)piece * CR_PIECE_VECTORS + j * CR_WARP + lane;
                bool some;
                if (is_whole(i, some) || !some) continue;
                at_slot(j * CR_WARP + lane) = pick(i);
            }
        }
        __syncwarp();
        if (args.absolute) {
#pragma unroll
            for (uint32_t j = 0; j < CR_PIECE_EACH; j++) at_slot(j * CR_WARP + lane) = cr_strip<D, false>::magnitudes(at_slot(j * CR_WARP + lane));
            __syncwarp();
        }
        if (piece + 1 < pieces) load(piece + 1);
    }
};

#endif
