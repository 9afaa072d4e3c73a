/* loads: the loads of pieces (pieces.cuh): 4 KiB of a chunk at a time, as it lies, by a warp, into shared memory, where each lane finds
 * neighbouring vectors. The next piece is under way meanwhile. What is not the chunk's is zeros.
 *
 * Thread: GPU; a warp together. Owner: the warp, of `vector`. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_LOADS_CUH
#define CURED_KERNELS_CUDA_OFFSETS_LOADS_CUH

#include "kernels/cuda/axis/strips.cuh"
#include "kernels/cuda/offsets/cut.cuh"

enum {
    CR_PIECE_EACH = 8, /* vectors of a lane */
    CR_PIECE_VECTORS = CR_PIECE_EACH * CR_WARP,
};

template <cr_dtype D> struct cr_piece_loads {
    typedef typename cr_axis_floats<D>::E E;
    static constexpr int SIZE = E::SIZE, VEC = CR_GPU_VECTOR / SIZE, EACH = CR_PIECE_EACH * VEC, PIECE = EACH * CR_WARP;

    const cr_segments_args &args;
    uint4 *const vector; /* of a piece */
    const uint32_t lane;
    const uint8_t *origin; /* the vector in which the chunk begins, which may begin before the array */
    uint32_t skip, length; /* elements of it before the chunk; up to the chunk's end */
    uint4 coming[CR_PIECE_EACH];

    CR_DEVICE cr_piece_loads(const cr_segments_args &of, uint4 *room) : args(of), vector(room), lane(threadIdx.x % CR_WARP) {}
    /* For elements [low, high); gives the number of pieces. */
    CR_DEVICE uint32_t open(uint64_t low, uint64_t high) {
        const uint64_t shift = args.odd ? 0 : (uintptr_t)args.data % CR_GPU_VECTOR / SIZE;
        skip = args.odd ? 0 : (uint32_t)((low + shift) % VEC);
        origin = args.data + (low - skip) * SIZE;
        length = (uint32_t)(high - low) + skip;
        load(0);
        return max(1u, (length + PIECE - 1) / PIECE);
    }

    CR_DEVICE static uint32_t slot(uint32_t vector) { return (vector & ~7u) | ((vector ^ vector >> 3) & 7u); } /* so that banks do not collide */
    CR_DEVICE bool is_plain(uint32_t piece) const { /* all of it is the chunk's */
        return !args.odd && (piece != 0 || skip == 0) && (uint64_t)(piece + 1) * PIECE <= length;
    }
    /* Whether vector number i from the origin on may be loaded as such; some: whether it has elements. */
    CR_DEVICE bool is_whole(uint64_t i, bool &some) const {
        const uint64_t first = i * VEC;
        some = first < length && first + VEC > skip;
        return !args.odd && first >= skip && first + VEC <= length;
    }
    CR_DEVICE void load(uint32_t piece) {
        const uint64_t first = (uint64_t)piece * CR_PIECE_VECTORS + lane;
        const uint8_t *from = origin + first * CR_GPU_VECTOR;
        if (is_plain(piece)) {
#pragma unroll
            for (uint32_t j = 0; j < CR_PIECE_EACH; j++) coming[j] = *reinterpret_cast<const uint4 *>(from + j * CR_WARP * CR_GPU_VECTOR);
            return;
        }
#pragma unroll
        for (uint32_t j = 0; j < CR_PIECE_EACH; j++) {
            bool some;
            coming[j] = make_uint4(0, 0, 0, 0);
            if (is_whole(first + j * CR_WARP, some)) coming[j] = *reinterpret_cast<const uint4 *>(from + j * CR_WARP * CR_GPU_VECTOR);
        }
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
    CR_DEVICE uint4 plain(const uint4 &v) const { return args.absolute ? cr_strip<D, false>::magnitudes(v) : v; }
    /* Puts what has come where the lanes find it, and loads the next; seen: how far apart this lane's part of it is. */
    CR_DEVICE void turn_over(uint32_t piece, uint32_t pieces, cr_span &seen) {
        seen = {0, ~0u};
        __syncwarp();
#pragma unroll
        for (uint32_t j = 0; j < CR_PIECE_EACH; j++) {
            const uint4 v = plain(coming[j]);
            E::look(seen, v);
            vector[slot(j * CR_WARP + lane)] = v;
        }
        if (!is_plain(piece)) {
#pragma unroll 1
            for (uint32_t j = 0; j < CR_PIECE_EACH; j++) {
                const uint64_t i = (uint64_t)piece * CR_PIECE_VECTORS + j * CR_WARP + lane;
                bool some;
                if (is_whole(i, some) || !some) continue;
                const uint4 v = plain(pick(i));
                E::look(seen, v);
                vector[slot(j * CR_WARP + lane)] = v;
            }
        }
        __syncwarp();
        if (piece + 1 < pieces) load(piece + 1);
    }
};

#endif
