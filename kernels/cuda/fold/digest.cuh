/* digest: the residues of an array's bytes (kernels/core/digest.h) by exact products of bytes on tensor cores.
 *
 * A warp multiplies its 32 vectors of 16 bytes (A, 16 x 32 bytes: rows g and g + 8 have words 0 and 2, 1 and 3 of lanes 4g … 4g + 3) by
 * the bytes of powers (B, 32 x 8: column n has byte n of r^word · 2^(8·byte) mod p), so that a row's eight sums are the bytes of a number
 * of at most 88 bits, and no product is rounded. U vectors a thread share the sums. A residue then takes one step of Horner's rule a
 * tile, from the block's last tile to its first. At the end each thread puts its own at their places, for which it has made ready while
 * its first bytes came. (PTX ISA, "Matrix Fragments for mma.m16n8k32".)
 *
 * Between blocks: each residue in two words, of 31 and of 30 bits, which also count the blocks; then the two in one.
 *
 * Elements have no say here: any type is bytes. The body begins where a word of the array does.
 * Thread: device code, and the launcher. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_DIGEST_CUH
#define CURED_KERNELS_CUDA_FOLD_DIGEST_CUH

#include "kernels/cuda/fold/residues.cuh"

enum {
    CR_DIGEST_UNROLL = 8, /* vectors in flight in each thread */
    CR_DIGEST_BLOCKS = 2, /* on a multiprocessor */
    CR_DIGEST_TILE = CR_DIGEST_UNROLL * CR_GPU_THREADS,
    CR_DIGEST_EDGE = 8, /* words that the bytes before or behind the body may touch */
    CR_DIGEST_LOW = 31, /* bits of the first word that blocks tell of a residue */
    CR_DIGEST_MET_AT = 62 /* where the word in which both meet counts them */
};

/* All that is the same for every array: powers of both roots. */
struct cr_digest_powers {
    uint32_t b[CR_DIGEST_PARTS][CR_DIGEST_UNROLL][2][CR_WARP];   /* B, as fragments of lanes */
    uint64_t row[CR_DIGEST_PARTS][CR_WARPS][8][2];               /* of a row's first word in the tile */
    uint64_t block[CR_DIGEST_PARTS][CR_GPU_THREADS];             /* of the first word of a block's tile */
    uint64_t edge[CR_DIGEST_PARTS][CR_DIGEST_EDGE];
};

constexpr cr_digest_powers cr_digest_powers_make() {
    cr_digest_powers p = {};
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        const uint64_t r = j == 0 ? CR_DIGEST_R1 : CR_DIGEST_R2, round = cr_digest_raised(r, 4 * CR_GPU_THREADS);
        uint64_t first = 1; /* of the round's first word */
        for (unsigned u = 0; u < CR_DIGEST_UNROLL; u++, first = cr_digest_mul(first, round)) {
            uint64_t key = first;
            for (unsigned t = 0; t < 4; t++) {
                for (unsigned high = 0; high < 2; high++, key = cr_digest_mul(key, cr_digest_mul(r, r))) {
                    for (unsigned n = 0; n < 8; n++) p.b[j][u][high][4 * n + t] = cr_digest_column(key, n);
                }
            }
        }
        uint64_t row = 1, block = 1;
        const uint64_t group = cr_digest_raised(r, 16), tile = cr_digest_raised(r, 4 * CR_DIGEST_TILE);
        for (unsigned i = 0; i < 8 * CR_WARPS; i++, row = cr_digest_mul(row, group)) {
            p.row[j][i / 8][i % 8][0] = row;
            p.row[j][i / 8][i % 8][1] = cr_digest_mul(row, r);
        }
        for (unsigned i = 0; i < CR_GPU_THREADS; i++, block = cr_digest_mul(block, tile)) p.block[j][i] = block;
        p.edge[j][0] = 1;
        for (unsigned i = 1; i < CR_DIGEST_EDGE; i++) p.edge[j][i] = cr_digest_mul(p.edge[j][i - 1], r);
    }
    return p;
}
static __device__ const cr_digest_powers cr_digest_constants = cr_digest_powers_make();

/* What the kernel is told: the plan's head and tail are bytes, its body is told in vectors. */
struct cr_digest_args {
    cr_fold_args fold;
    uint32_t head_byte;                        /* the first byte's number in its word; the tail begins with a word */
    uint64_t round[CR_DIGEST_PARTS];           /* from a block's first tile to that of the block CR_GPU_THREADS after it */
    uint64_t stride[CR_DIGEST_PARTS];          /* from a block's tile to its next */
    uint64_t head[CR_DIGEST_PARTS], body[CR_DIGEST_PARTS], tail[CR_DIGEST_PARTS]; /* of their first words */
};

/* What a block shares: powers for each thread's rows, and warps' sums of pieces of 21, 20 and 20 bits. */
struct cr_digest_shared {
    uint64_t row[CR_DIGEST_PARTS][2][CR_GPU_THREADS];
    uint32_t piece[CR_DIGEST_PARTS][3][CR_WARPS];
};

/* What a thread adds of the bytes before and behind the body: it has one at most. */
CR_DEVICE uint64_t cr_digest_edge(const cr_digest_args &args, unsigned j) {
    const cr_fold_plan &plan = args.fold.plan;
    unsigned at = threadIdx.x;
    if (at >= plan.head + plan.tail) return 0;
    const bool is_head = at < plan.head;
    const uint8_t *p = args.fold.data + at;
    if (is_head) {
        at += args.head_byte;
    } else {
        p += plan.vectors * CR_GPU_VECTOR;
        at -= plan.head;
    }
    const uint64_t value = (uint64_t)*p << (8 * (at % CR_DIGEST_WORD));
    const uint64_t place = cr_digest_product((is_head ? args.head : args.tail)[j], cr_digest_constants.edge[j][at / CR_DIGEST_WORD]);
    return cr_digest_product(value, place);
}

/* The powers for a thread's rows, as they lie in the array. */
CR_DEVICE void cr_digest_make_ready(const cr_digest_args &args, cr_digest_shared &shared) {
    const unsigned lane = threadIdx.x % CR_WARP, warp = threadIdx.x / CR_WARP;
#pragma unroll
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        uint64_t place = cr_digest_product(args.body[j], cr_digest_constants.block[j][blockIdx.x % CR_GPU_THREADS]);
        for (unsigned i = blockIdx.x / CR_GPU_THREADS; i != 0; i--) place = cr_digest_product(place, args.round[j]);
#pragma unroll
        for (unsigned row = 0; row < 2; row++) /* each thread its own: no barrier */
            shared.row[j][row][threadIdx.x] = cr_digest_product(cr_digest_constants.row[j][warp][lane / 4][row], place);
    }
}

/* A block's residues, of threads' sums below 2^61 + 8: the first four threads know them, each its half of one. */
CR_DEVICE uint64_t cr_digest_block_sum(const uint64_t (&sum)[CR_DIGEST_PARTS], cr_digest_shared &shared) {
    const unsigned lane = threadIdx.x % CR_WARP, part = threadIdx.x / 2 % CR_DIGEST_PARTS;
#pragma unroll
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        const uint64_t x = cr_digest_fold(sum[j]);
        const uint32_t pieces[3] = {(uint32_t)x & 0x1fffff, (uint32_t)(x >> 21) & 0xfffff, (uint32_t)(x >> 41)};
#pragma unroll
        for (unsigned i = 0; i < 3; i++) {
            const uint32_t found = __reduce_add_sync(CR_EVERYONE, pieces[i]);
            if (lane == 0) shared.piece[j][i][threadIdx.x / CR_WARP] = found;
        }
    }
    __syncthreads();
    if (threadIdx.x >= 2 * CR_DIGEST_PARTS) return 0;
    uint64_t piece[3] = {0, 0, 0};
#pragma unroll
    for (unsigned i = 0; i < 3; i++)
#pragma unroll
        for (unsigned warp = 0; warp < CR_WARPS; warp++) piece[i] += shared.piece[part][i][warp];
    const uint64_t low = piece[0] + (piece[1] << 21), all = cr_digest_least(low + cr_digest_turn(piece[2], 41));
    return threadIdx.x % 2 == 0 ? all & ((1u << CR_DIGEST_LOW) - 1) : all >> CR_DIGEST_LOW;
}

/* By the first four threads of each block. Words are zero whenever no fold runs: whoever is the last on one leaves that behind. */
CR_DEVICE void cr_digest_tell(const cr_digest_args &args, uint64_t value) {
    unsigned long long *words = args.fold.state->sums[0].words;
    const unsigned part = threadIdx.x / 2;
    if (!cr_leave_word(&words[threadIdx.x], value, args.fold.plan.blocks)) return;
    const uint64_t half = cr_digest_least(threadIdx.x % 2 == 0 ? value : cr_digest_turn(value, CR_DIGEST_LOW));
    unsigned long long *both = &words[2 * CR_DIGEST_PARTS + part];
    const unsigned long long before = atomicAdd(both, half + (1ull << CR_DIGEST_MET_AT));
    if (before == 0) return;
    *both = 0;
    args.fold.slot->partial.digest[part] = cr_digest_least(half + (before & ((1ull << CR_DIGEST_MET_AT) - 1)));
}

/* A block's tile: for each thread its vectors. */
CR_DEVICE void cr_digest_load(uint4 (&v)[CR_DIGEST_UNROLL], const cr_fold_plan &plan, const uint4 *body, uint64_t tile) {
    const uint64_t vector = tile * CR_DIGEST_TILE + threadIdx.x;
    const int some = (int)min((int64_t)(plan.vectors - vector), (int64_t)CR_DIGEST_TILE);
    if (plan.shift == 0) cr_load<CR_DIGEST_UNROLL, false>(v, body + vector, 0, some);
    else cr_load<CR_DIGEST_UNROLL, true>(v, body + vector, plan.shift, some);
}

static __global__ void __launch_bounds__(CR_GPU_THREADS, CR_DIGEST_BLOCKS)
    cr_digest_kernel(const __grid_constant__ cr_digest_args args) {
    __shared__ cr_digest_shared shared;
    const cr_fold_plan &plan = args.fold.plan;
    const unsigned lane = threadIdx.x % CR_WARP, pair = lane % 4;
    const uint4 *body = reinterpret_cast<const uint4 *>(args.fold.data + plan.head - plan.shift);
    uint32_t b[CR_DIGEST_PARTS][CR_DIGEST_UNROLL][2];
    uint64_t a[CR_DIGEST_PARTS][2] = {{0, 0}, {0, 0}}, sum[CR_DIGEST_PARTS];
    uint4 v[CR_DIGEST_UNROLL];
    cr_let_the_next_begin();
    const uint64_t tiles = (plan.vectors + CR_DIGEST_TILE - 1) / CR_DIGEST_TILE;
    uint64_t left = blockIdx.x < tiles ? (tiles - 1 - blockIdx.x) / plan.blocks + 1 : 0; /* tiles of this block */
    if (left != 0) cr_digest_load(v, plan, body, blockIdx.x + (left - 1) * plan.blocks);
#pragma unroll
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++)
#pragma unroll
        for (unsigned u = 0; u < CR_DIGEST_UNROLL; u++) {
            b[j][u][0] = cr_digest_constants.b[j][u][0][lane];
            b[j][u][1] = cr_digest_constants.b[j][u][1][lane];
        }
    cr_digest_make_ready(args, shared);
    while (left != 0) {
        uint32_t d[CR_DIGEST_PARTS][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
        for (unsigned u = 0; u < CR_DIGEST_UNROLL; u++)
#pragma unroll
            for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) cr_digest_mma(d[j], v[u], b[j][u][0], b[j][u][1]);
        if (--left != 0) cr_digest_load(v, plan, body, blockIdx.x + (left - 1) * plan.blocks);
#pragma unroll
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++)
#pragma unroll
            for (unsigned row = 0; row < 2; row++) {
                const uint64_t x = d[j][2 * row] + ((uint64_t)d[j][2 * row + 1] << 8); /* columns 2·pair and the next */
                a[j][row] = cr_digest_fold(cr_digest_product(a[j][row], args.stride[j]) + x);
            }
    }
#pragma unroll
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        sum[j] = 0;
#pragma unroll
        for (unsigned row = 0; row < 2; row++)
            sum[j] += cr_digest_product(cr_digest_turn(a[j][row], 16 * pair), shared.row[j][row][threadIdx.x]);
        if (blockIdx.x == 0) sum[j] = cr_digest_fold(sum[j]) + cr_digest_edge(args, j);
    }
    const uint64_t mine = cr_digest_block_sum(sum, shared);
    cr_after_the_last();
    if (threadIdx.x < 2 * CR_DIGEST_PARTS) cr_digest_tell(args, mine);
}

/* D: any type, whose bytes are folded as they lie. */
template <cr_dtype D> int cr_digest_launch(const cr_fold_args *args, void *stream) {
    const uint64_t size = cr_width(D), bytes = args->n * size, at = args->index * size;
    const uintptr_t address = (uintptr_t)args->data;
    cr_digest_args mine = {};
    mine.fold = *args;
    cr_fold_plan &plan = mine.fold.plan;
    plan = {};
    plan.head = (uint32_t)(-address % CR_GPU_VECTOR);
    if ((at + plan.head) % CR_DIGEST_WORD != 0) plan.head = (uint32_t)(-at % CR_DIGEST_WORD);
    if (plan.head > bytes) plan.head = (uint32_t)bytes;
    plan.shift = (uint32_t)((address + plan.head) % CR_GPU_VECTOR);
    plan.vectors = (bytes - plan.head) / CR_GPU_VECTOR;
    if (plan.shift != 0 && plan.vectors != 0) plan.vectors--; /* whose neighbour, of which it has bytes, may end behind the array */
    plan.tail = (uint32_t)(bytes - plan.head - plan.vectors * CR_GPU_VECTOR);
    const uint64_t tiles = (plan.vectors + CR_DIGEST_TILE - 1) / CR_DIGEST_TILE, most = CR_DIGEST_BLOCKS * (uint64_t)args->multiprocessors;
    plan.blocks = (uint32_t)max((uint64_t)1, min(tiles, min(most, (uint64_t)CR_GPU_MAX_BLOCKS)));
    mine.head_byte = (uint32_t)(at % CR_DIGEST_WORD);
    constexpr uint64_t words = (uint64_t)CR_GPU_THREADS * CR_DIGEST_TILE * 4;
    constexpr uint64_t rounds[] = {cr_digest_raised(CR_DIGEST_R1, words), cr_digest_raised(CR_DIGEST_R2, words)};
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        const uint64_t behind = (at + plan.head + plan.vectors * CR_GPU_VECTOR) / CR_DIGEST_WORD;
        mine.round[j] = rounds[j];
        mine.stride[j] = cr_digest_power(j, (uint64_t)plan.blocks * CR_DIGEST_TILE * 4);
        mine.head[j] = cr_digest_power(j, at / CR_DIGEST_WORD);
        mine.body[j] = cr_digest_power(j, (at + plan.head) / CR_DIGEST_WORD);
        mine.tail[j] = cr_digest_power(j, behind);
    }
    return cr_launch(cr_digest_kernel, plan.blocks, CR_GPU_THREADS, stream, args->follows, mine);
}

#endif
