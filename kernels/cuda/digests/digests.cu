/* digests: the kernels of many digests: see digests.h. Elements have no say here: any type is bytes.
 *
 * A warp multiplies its 32 vectors of 16 bytes by the bytes of powers, as the digest of a whole array does (kernels/cuda/fold/digest.cuh),
 * a tile of CR_DIGESTS_UNROLL of them after the other, from a part's last to its first: what is behind the last byte is zeros.
 * Thread: GPU; the launchers are called by the stream's thread. Owner: the kernel. */
#include "kernels/cuda/digests/digests.h"
#include "kernels/cuda/fold/residues.cuh"

enum {
    CR_DIGESTS_UNROLL = 4, /* vectors in flight in each thread */
    CR_DIGESTS_LINE = CR_GPU_VECTOR * CR_WARP,
    CR_DIGESTS_TILE = CR_DIGESTS_UNROLL * CR_DIGESTS_LINE,
    CR_DIGESTS_BITS = 64,     /* of a place's number */
    CR_DIGESTS_CARRIED = 8    /* 2^64 modulo p */
};

/* Powers of both roots. */
struct cr_digests_powers {
    uint32_t b[CR_DIGEST_PARTS][CR_DIGESTS_UNROLL][2][CR_WARP]; /* B, as fragments of lanes */
    uint64_t row[CR_DIGEST_PARTS][CR_WARP / 4][2];              /* of a row's first word in the tile */
    uint64_t tile[CR_DIGEST_PARTS];                             /* from a tile to the next */
    uint64_t square[CR_DIGEST_PARTS][CR_DIGESTS_BITS];          /* r^(2^i) */
};

constexpr cr_digests_powers cr_digests_powers_make() {
    cr_digests_powers p = {};
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        const uint64_t r = j == 0 ? CR_DIGEST_R1 : CR_DIGEST_R2, line = cr_digest_raised(r, CR_DIGESTS_LINE / CR_DIGEST_WORD);
        uint64_t first = 1; /* of the line's first word */
        for (unsigned u = 0; u < CR_DIGESTS_UNROLL; u++, first = cr_digest_mul(first, line)) {
            uint64_t key = first;
            for (unsigned t = 0; t < 4; t++) {
                for (unsigned high = 0; high < 2; high++, key = cr_digest_mul(key, cr_digest_mul(r, r)))
                    for (unsigned n = 0; n < 8; n++) p.b[j][u][high][4 * n + t] = cr_digest_column(key, n);
            }
        }
        p.tile[j] = first;
        uint64_t row = 1, square = r;
        for (unsigned i = 0; i < CR_WARP / 4; i++, row = cr_digest_mul(row, cr_digest_raised(r, 16))) {
            p.row[j][i][0] = row;
            p.row[j][i][1] = cr_digest_mul(row, r);
        }
        for (unsigned i = 0; i < CR_DIGESTS_BITS; i++, square = cr_digest_mul(square, square)) p.square[j][i] = square;
    }
    return p;
}
static __device__ const cr_digests_powers cr_digests_constants = cr_digests_powers_make();

/* Adds to a sum of residues that others add to, too. */
CR_DEVICE void cr_digests_add(unsigned long long *to, unsigned long long x) {
    while (x != 0) {
        const unsigned long long sum = atomicAdd(to, x) + x;
        x = sum < x ? CR_DIGESTS_CARRIED : 0;
    }
}

/* Of `bytes` of an output that has `all`. */
CR_DEVICE void cr_digests_leave(unsigned long long *to, uint64_t first, uint64_t second, uint64_t bytes, uint64_t all) {
    if (bytes == all) {
        to[0] = cr_digest_least(first);
        to[1] = cr_digest_least(second);
        to[2] = bytes;
        return;
    }
    cr_digests_add(&to[0], first);
    cr_digests_add(&to[1], second);
    __threadfence();
    if (atomicAdd(&to[2], (unsigned long long)bytes) + bytes != all) return;
    __threadfence();
    to[0] = cr_digest_least(cr_digest_fold(__ldcg(&to[0])));
    to[1] = cr_digest_least(cr_digest_fold(__ldcg(&to[1])));
}

/* Sums of a warp's lanes, below 2^62: in each lane, in their least form. */
CR_DEVICE uint64_t cr_digests_sum(uint64_t of) {
    const uint64_t x = cr_digest_fold(of);
    const uint64_t low = __reduce_add_sync(CR_EVERYONE, (uint32_t)x & 0x1fffff), high = __reduce_add_sync(CR_EVERYONE, (uint32_t)(x >> 41));
    const uint64_t middle = __reduce_add_sync(CR_EVERYONE, (uint32_t)(x >> 21) & 0xfffff);
    return cr_digest_least(low + (middle << 21) + cr_digest_turn(high, 41));
}

/* ---- By warps ---- */

/* Bytes of an output: those from `low` to `high`; the first of them all would be at p[0], and word 0 begins there. */
struct cr_digests_part {
    const uint8_t *p;
    uint64_t low, high;
};

/* Bytes x … x + 15, of which those outside the part are zeros. */
CR_DEVICE uint4 cr_digests_vector(const cr_digests_part &part, uint64_t x) {
    if (x >= part.high) return make_uint4(0, 0, 0, 0);
    const uintptr_t address = (uintptr_t)(part.p + x);
    const uint32_t shift = (uint32_t)(address % CR_GPU_VECTOR), odd = shift % 4;
    const bool whole = x >= part.low && x + CR_GPU_VECTOR <= part.high;
    if (whole && shift == 0) return *reinterpret_cast<const uint4 *>(address);
    const uint32_t *words = reinterpret_cast<const uint32_t *>(address - odd);
    if (whole && odd == 0) return make_uint4(words[0], words[1], words[2], words[3]);
    if (whole && x + CR_GPU_VECTOR + 4 <= part.high)
        return cr_join(make_uint4(words[0], words[1], words[2], words[3]), make_uint4(words[4], 0, 0, 0), odd);
    uint64_t first = 0, second = 0;
#pragma unroll 1
    for (uint32_t i = CR_GPU_VECTOR; i-- != 0;) {
        second = second << 8 | first >> 56;
        first = first << 8 | (x + i >= part.low && x + i < part.high ? part.p[x + i] : 0);
    }
    return make_uint4((uint32_t)first, (uint32_t)(first >> 32), (uint32_t)second, (uint32_t)(second >> 32));
}

/* A warp's: what it needs for every part. */
struct cr_digests_warp {
    uint32_t lane, b[CR_DIGEST_PARTS][CR_DIGESTS_UNROLL][2];

    CR_DEVICE cr_digests_warp() {
        lane = threadIdx.x % CR_WARP;
#pragma unroll
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
#pragma unroll
            for (unsigned u = 0; u < CR_DIGESTS_UNROLL; u++) {
                b[j][u][0] = cr_digests_constants.b[j][u][0][lane];
                b[j][u][1] = cr_digests_constants.b[j][u][1][lane];
            }
        }
    }

    /* A tile from byte x on. */
    CR_DEVICE void load(uint4 (&v)[CR_DIGESTS_UNROLL], const cr_digests_part &part, uint64_t x) const {
#pragma unroll
        for (unsigned u = 0; u < CR_DIGESTS_UNROLL; u++) v[u] = cr_digests_vector(part, x + u * CR_DIGESTS_LINE + lane * CR_GPU_VECTOR);
    }

    /* The residues of a part whose p[0] is word 0; to each lane. */
    CR_DEVICE void fold(const cr_digests_part &part, uint64_t (&found)[CR_DIGEST_PARTS]) const {
        uint64_t a[CR_DIGEST_PARTS][2] = {{0, 0}, {0, 0}};
        uint4 v[CR_DIGESTS_UNROLL];
        uint64_t at = (part.high - 1) / CR_DIGESTS_TILE * CR_DIGESTS_TILE;
        load(v, part, at);
        while (true) {
            uint32_t d[CR_DIGEST_PARTS][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
            for (unsigned u = 0; u < CR_DIGESTS_UNROLL; u++) {
                if (at + u * CR_DIGESTS_LINE >= part.high) continue;
#pragma unroll
                for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) cr_digest_mma(d[j], v[u], b[j][u][0], b[j][u][1]);
            }
            const bool last = at == 0;
            if (!last) load(v, part, at -= CR_DIGESTS_TILE);
#pragma unroll
            for (unsigned j = 0; j < CR_DIGEST_PARTS; j++)
#pragma unroll
                for (unsigned k = 0; k < 2; k++) {
                    const uint64_t x = d[j][2 * k] + ((uint64_t)d[j][2 * k + 1] << 8); /* the thread's two columns */
                    a[j][k] = cr_digest_fold(cr_digest_product(a[j][k], cr_digests_constants.tile[j]) + x);
                }
            if (last) break;
        }
#pragma unroll
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
            uint64_t own = 0;
#pragma unroll
            for (unsigned k = 0; k < 2; k++) own += cr_digest_product(cr_digest_turn(a[j][k], 16 * (lane % 4)), cr_digests_constants.row[j][lane / 4][k]);
            found[j] = cr_digests_sum(own);
        }
    }

    /* r^word, each lane with its share of the number's bits. */
    CR_DEVICE uint64_t power(unsigned j, uint64_t word) const {
        const uint64_t *square = cr_digests_constants.square[j];
        uint64_t found = word >> lane & 1 ? square[lane] : 1;
        if (word >> (CR_WARP + lane) & 1) found = cr_digest_product(found, square[CR_WARP + lane]);
#pragma unroll
        for (unsigned by = CR_WARP / 2; by != 0; by /= 2) found = cr_digest_product(found, __shfl_xor_sync(CR_EVERYONE, found, by));
        return found;
    }
    CR_DEVICE void place(uint64_t (&found)[CR_DIGEST_PARTS], uint64_t word) const {
        if (word == 0) return;
#pragma unroll
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) found[j] = cr_digest_product(found[j], power(j, word));
    }
};

/* The borders of an output, in bytes. */
CR_DEVICE uint64_t cr_digests_border(const cr_digests_args &args, uint64_t i) {
    if (args.source != CR_DIGESTS_OFFSETS) return i * args.row;
    const uint32_t half = args.narrow ? reinterpret_cast<const uint32_t *>(args.offsets)[i] : 0;
    const uint64_t offset = args.narrow ? (args.is_signed ? (uint64_t)(int32_t)half : half) : reinterpret_cast<const uint64_t *>(args.offsets)[i];
    return offset > args.bytes / args.size ? args.bytes : offset * args.size; /* wherever it says, no access leaves the array */
}

/* The last output that begins at the byte or before, or the first of all. */
CR_DEVICE uint64_t cr_digests_find(const cr_digests_args &args, uint64_t byte) {
    if (args.source != CR_DIGESTS_OFFSETS) return byte / args.row;
    uint64_t near = 0, left = args.outputs;
    while (left > 1) {
        const uint64_t half = left / 2;
        const bool before = cr_digests_border(args, near + half) <= byte;
        near += before ? half : 0;
        left = before ? left - half : half;
    }
    return near;
}

/* Where a border of pieces cuts an output: behind a whole word of it. lead: bytes of its first word that are not its own. */
CR_DEVICE uint64_t cr_digests_cut(uint64_t border, uint64_t begin, uint64_t lead) {
    return border <= begin ? 0 : (border - begin + lead + CR_DIGEST_WORD - 1) / CR_DIGEST_WORD * CR_DIGEST_WORD;
}

/* The number in its array of the first byte of a block's run. */
CR_DEVICE uint64_t cr_digests_place_of_run(const cr_digests_args &args, uint64_t run) {
    uint64_t place = args.block.first;
    for (uint32_t i = 0; i < args.block.dims; i++) {
        place += run % args.block.extent[i] * args.block.stride[i];
        run /= args.block.extent[i];
    }
    return place * args.size;
}

/* RUNS: all outputs are one block's. */
template <bool RUNS>
static __global__ void __launch_bounds__(CR_DIGESTS_THREADS, RUNS ? 2 : CR_DIGESTS_BLOCKS) cr_digests_rows_kernel(const __grid_constant__ cr_digests_args args) {
    const uint64_t piece = (uint64_t)blockIdx.x * (CR_DIGESTS_THREADS / CR_WARP) + threadIdx.x / CR_WARP;
    if (piece >= args.pieces || (args.wrong != nullptr && *args.wrong != 0)) return;
    const cr_digests_warp warp;
    const uint64_t low = piece * args.per, high = min(args.bytes, low + args.per);
    uint64_t all[CR_DIGEST_PARTS] = {0, 0}, i = cr_digests_find(args, low), begin = cr_digests_border(args, i);
    while (i < args.outputs && begin < high) {
        const uint64_t end = max(begin, cr_digests_border(args, i + 1)), first = RUNS ? cr_digests_place_of_run(args, i) : 0;
        const uint64_t lead = first % CR_DIGEST_WORD, length = end - begin + lead;
        const uint64_t from = cr_digests_cut(low, begin, lead), to = end <= high ? length : min(length, cr_digests_cut(high, begin, lead));
        if (from < to && begin < end) {
            uint64_t found[CR_DIGEST_PARTS];
            warp.fold({args.data + begin - lead + from, from == 0 ? lead : 0, to - from}, found);
            warp.place(found, first / CR_DIGEST_WORD + from / CR_DIGEST_WORD);
            if (!RUNS && warp.lane == 0) cr_digests_leave(args.to + CR_DIGESTS_WORDS * i, found[0], found[1], to - from, length);
#pragma unroll
            for (unsigned j = 0; RUNS && j < CR_DIGEST_PARTS; j++) all[j] = cr_digest_fold(all[j] + found[j]);
        }
        begin = end;
        i++;
    }
    if (RUNS && warp.lane < CR_DIGEST_PARTS) cr_digests_add(args.to + warp.lane, warp.lane == 0 ? all[0] : all[1]);
}

extern "C" int cr_digests_launch_rows(const cr_digests_args *args, void *stream) {
    const uint64_t warps = CR_DIGESTS_THREADS / CR_WARP, blocks = (args->pieces + warps - 1) / warps;
    return args->source == CR_DIGESTS_RUNS ? CR_LAUNCH(cr_digests_rows_kernel<true>, (uint32_t)blocks, CR_DIGESTS_THREADS, stream, *args)
                                           : CR_LAUNCH(cr_digests_rows_kernel<false>, (uint32_t)blocks, CR_DIGESTS_THREADS, stream, *args);
}

/* ---- By threads ---- */

CR_DEVICE uint64_t cr_digests_raised(unsigned j, uint64_t word) {
    uint64_t found = 1;
    for (unsigned i = 0; word >> i != 0; i++)
        if (word >> i & 1) found = cr_digest_product(found, cr_digests_constants.square[j][i]);
    return found;
}

/* What a thread has of a column: from its last word to its first by Horner's rule. */
template <int SIZE> struct cr_digests_column {
    const uint8_t *p; /* its first element */
    uint64_t apart;   /* bytes from an element to the next */
    bool odd;
    uint64_t sum[CR_DIGEST_PARTS];

    CR_DEVICE uint64_t element(uint64_t k) const {
        const uint8_t *at = p + k * apart;
        if (odd) return cr_load_one<SIZE>(at);
        if (SIZE == 8) return *reinterpret_cast<const uint64_t *>(at);
        if (SIZE == 4) return *reinterpret_cast<const uint32_t *>(at);
        if (SIZE == 2) return *reinterpret_cast<const uint16_t *>(at);
        return *at;
    }
    CR_DEVICE void put(uint32_t word) {
        sum[0] = cr_digest_fold(cr_digest_product(sum[0], CR_DIGEST_R1) + word);
        sum[1] = cr_digest_fold(cr_digest_product(sum[1], CR_DIGEST_R2) + word);
    }
    CR_DEVICE void put_element(uint64_t bits) {
        if (SIZE == 8) put((uint32_t)(bits >> 32));
        put((uint32_t)bits);
    }
    CR_DEVICE void fold(uint64_t count) {
        constexpr uint64_t EACH = SIZE < CR_DIGEST_WORD ? CR_DIGEST_WORD / SIZE : 1; /* elements of a word */
        constexpr int AHEAD = 4;
        const uint64_t rest = count % (EACH * AHEAD);
        uint64_t at = count - rest;
        sum[0] = sum[1] = 0;
        for (uint64_t word = (rest + EACH - 1) / EACH; word-- != 0;) {
            uint64_t bits = 0;
            for (uint64_t i = word * EACH; i < min(rest, (word + 1) * EACH); i++) bits |= element(at + i) << (8 * SIZE * (i - word * EACH)) % 64;
            put_element(bits);
        }
        while (at != 0) {
            uint64_t bits[AHEAD];
            at -= EACH * AHEAD;
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                bits[i] = 0;
#pragma unroll
                for (unsigned k = 0; k < EACH; k++) bits[i] |= element(at + i * EACH + k) << 8 * SIZE * k;
            }
#pragma unroll
            for (int i = AHEAD - 1; i >= 0; i--) put_element(bits[i]);
        }
    }
};

template <int SIZE> static __global__ void __launch_bounds__(CR_DIGESTS_THREADS) cr_digests_columns_kernel(const __grid_constant__ cr_digests_args args) {
    const uint64_t thread = (uint64_t)blockIdx.x * CR_DIGESTS_THREADS + threadIdx.x, piece = thread / args.outputs, output = thread % args.outputs;
    if (piece >= args.pieces) return;
    const uint64_t first = piece * args.per, count = min(args.n - first, args.per);
    const uint64_t element = (output / args.inner * args.n + first) * args.inner + output % args.inner;
    cr_digests_column<SIZE> column = {args.data + element * SIZE, args.inner * SIZE, args.odd != 0, {0, 0}};
    column.fold(count);
    if (first != 0) {
#pragma unroll
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++)
            column.sum[j] = cr_digest_product(column.sum[j], cr_digests_raised(j, first * SIZE / CR_DIGEST_WORD));
    }
    cr_digests_leave(args.to + CR_DIGESTS_WORDS * output, column.sum[0], column.sum[1], count * SIZE, args.n * SIZE);
}

/* Short runs of a block: a thread's own, with their places. */
static __global__ void __launch_bounds__(CR_DIGESTS_THREADS) cr_digests_runs_kernel(const __grid_constant__ cr_digests_args args) {
    uint64_t all[CR_DIGEST_PARTS] = {0, 0};
    for (uint64_t run = (uint64_t)blockIdx.x * CR_DIGESTS_THREADS + threadIdx.x; run < args.outputs; run += (uint64_t)gridDim.x * CR_DIGESTS_THREADS) {
        const uint64_t first = cr_digests_place_of_run(args, run);
        const uint32_t lead = (uint32_t)(first % CR_DIGEST_WORD), length = (uint32_t)args.row + lead;
        const uint8_t *p = args.data + run * args.row - lead;
        const bool words = lead == 0 && (uintptr_t)p % CR_DIGEST_WORD == 0;
        cr_digests_column<4> column = {p, 0, false, {0, 0}};
        for (uint32_t x = (length - 1) / CR_DIGEST_WORD * CR_DIGEST_WORD;; x -= CR_DIGEST_WORD) {
            uint32_t word = 0;
            if (words && x + CR_DIGEST_WORD <= length) {
                word = *reinterpret_cast<const uint32_t *>(p + x);
            } else {
                for (uint32_t i = 0; i < CR_DIGEST_WORD; i++)
                    if (x + i >= lead && x + i < length) word |= (uint32_t)p[x + i] << (8 * i);
            }
            column.put(word);
            if (x == 0) break;
        }
#pragma unroll
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++)
            all[j] = cr_digest_fold(all[j] + cr_digest_product(column.sum[j], cr_digests_raised(j, first / CR_DIGEST_WORD)));
    }
    const uint64_t one = cr_digests_sum(all[0]), two = cr_digests_sum(all[1]);
    const unsigned lane = threadIdx.x % CR_WARP;
    if (lane < CR_DIGEST_PARTS) cr_digests_add(args.to + lane, lane == 0 ? one : two);
}

extern "C" int cr_digests_launch_runs(const cr_digests_args *args, uint32_t blocks, void *stream) {
    return CR_LAUNCH(cr_digests_runs_kernel, blocks, CR_DIGESTS_THREADS, stream, *args);
}

extern "C" int cr_digests_launch_columns(const cr_digests_args *args, void *stream) {
    const uint32_t blocks = (uint32_t)((args->outputs * args->pieces + CR_DIGESTS_THREADS - 1) / CR_DIGESTS_THREADS);
    if (args->size == 1) return CR_LAUNCH(cr_digests_columns_kernel<1>, blocks, CR_DIGESTS_THREADS, stream, *args);
    if (args->size == 2) return CR_LAUNCH(cr_digests_columns_kernel<2>, blocks, CR_DIGESTS_THREADS, stream, *args);
    if (args->size == 4) return CR_LAUNCH(cr_digests_columns_kernel<4>, blocks, CR_DIGESTS_THREADS, stream, *args);
    return CR_LAUNCH(cr_digests_columns_kernel<8>, blocks, CR_DIGESTS_THREADS, stream, *args);
}
