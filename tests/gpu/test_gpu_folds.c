/* test_gpu_folds: the GPU's partials against the CPU's, bit for bit, over kinds of data, lengths, alignments, types and
 * families. Every case follows from its number and the seed, so any can be run again alone.
 *
 * usage: test_gpu_folds [--seed S] [--lengths few|all] [--dtype NAME] [--families MASK] [--case K] [--sample N]
 * The seed is CURED_TEST_SEED's, or 1. --sample N takes one array in N.
 * Exits 77 without a GPU. Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/plan/fold.h"
#include "tests/gpu/gpu_cases.h"

enum { MAX_BYTES = 40 << 20, SPARE = 64 };

static struct {
    uint64_t seed, only, sample;
    bool few;
    const char *dtype;
    uint32_t families;
} options = {.only = UINT64_MAX, .sample = 1, .families = CR_FAM_SINGLE};

static struct {
    case_device on;
    uint64_t cases, wrong, lacking;
    const char *without; /* a fast way that is off; NULL: none is */
} run;

/* Folds [from, from + n) of the array on both sides; says what differs. */
static void compare(cr_dtype dtype, uint32_t families, uint32_t wants, uint64_t n, uint64_t offset,
                    enum cr_data_kind kind) {
    uint64_t index = case_random(&(uint64_t){options.seed + run.cases}) % 1000000;
    if (families & CR_FAM_PROD) index -= index % cr_partial_grain(dtype, families);
    cr_gpu_fold fold = {dtype, families, run.on.device + offset, n, index, wants};
    cr_error error = {CR_OK, ""};
    cr_status status = run.on.stream ? cr_cuda.fold(run.on.stream, &fold, 1, 0, &error) : CR_OK;
    if (status == CR_UNIMPLEMENTED) {
        run.lacking++;
        return;
    }
    case_check(status, &error);
    static cr_partial cpu; /* large */
    cr_partial_init(&cpu, dtype, families);
    if (wants) cr_partial_want(&cpu, wants);
    cr_cpu_fold(&cpu, run.on.host + offset, n, index);
    bool idle = false;
    while (!idle) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
    const cr_partial *gpu = cr_cuda.result(run.on.stream, 0);
    uint32_t wrong = case_different(&cpu, gpu);
    run.cases++;
    if (wrong == 0) return;
    if (run.wrong++ < 20) {
        printf("wrong: families %#x (of %#x, wants %#x) of %s, %s data, n %llu, offset %llu, seed %llu, without %s\n",
               wrong, families, wants, cr_dtype_name(dtype), data_names[kind], (unsigned long long)n,
               (unsigned long long)offset, (unsigned long long)options.seed, run.without ? run.without : "none");
    }
}

/* Folds that follow each other on the stream, without a pause between them. */
static void several(cr_dtype dtype, uint32_t family, uint64_t n, uint64_t offset, enum cr_data_kind kind) {
    enum { FOLDS = 4 };
    static cr_partial cpu; /* large */
    const uint64_t size = cr_dtype_size(dtype);
    const uint64_t from[FOLDS] = {0, n / 2, n / 5, 0}, to[FOLDS] = {n, n, n / 2, n / 3};
    cr_gpu_fold folds[FOLDS];
    cr_error error = {CR_OK, ""};
    for (int i = 0; i < FOLDS; i++) {
        folds[i] = (cr_gpu_fold){dtype, family, run.on.device + offset + from[i] * size, to[i] - from[i], from[i], 0};
    }
    case_check(cr_cuda.fold(run.on.stream, folds, FOLDS, 0, &error), &error);
    bool idle = false;
    while (!idle) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
    for (int i = 0; i < FOLDS; i++) {
        cr_partial_init(&cpu, dtype, family);
        cr_cpu_fold(&cpu, run.on.host + offset + from[i] * size, to[i] - from[i], from[i]);
        run.cases++;
        if (case_different(&cpu, cr_cuda.result(run.on.stream, (uint32_t)i)) == 0) continue;
        if (run.wrong++ < 20)
            printf("wrong: fold %d of several, family %#x of %s, %s data, n %llu, offset %llu, seed %llu\n", i, family,
                   cr_dtype_name(dtype), data_names[kind], (unsigned long long)n, (unsigned long long)offset,
                   (unsigned long long)options.seed);
    }
}

/* Every set of families of a type takes as few launches as its kernels allow: one for sums, squares, extrema and floats' counts, and
 * one for each of the others. */
static void count_launches(cr_dtype dtype) {
    const bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    const uint32_t one = CR_FAM_SUM | CR_FAM_SUMSQ | CR_FAM_EXTREMA | (floats ? CR_FAM_COUNTS : 0);
    for (uint32_t families = 1; families < CR_FAM_ALL; families++) {
        cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
        cr_error error;
        uint32_t count, wanted = (families & one) != 0 ? 1 : 0;
        const bool none = (floats && families & CR_FAM_BITS) || families & CR_FAM_SUMS & ~(uint32_t)CR_FAM_KNOWN_SUMS;
        run.wrong += cr_fold_takes(dtype, families) == none;
        if (none) continue;
        for (uint32_t others = families & ~one; others; others &= others - 1) wanted++;
        case_check(cr_fold_launchers(dtype, families, CR_WANTS_ALL, launchers, &count, &error), &error);
        run.cases++;
        if (count == wanted) continue;
        run.wrong++;
        printf("wrong: families %#x of %s take %u launches, %u are enough\n", families, cr_dtype_name(dtype), count,
               wanted);
    }
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_SETS);
    cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
    cr_error error;
    uint32_t count;
    case_check(cr_fold_launchers(dtype, CR_FAM_SUM | CR_FAM_SUMSQ, 0, launchers, &count, &error), &error);
    run.wrong += count != 2;
    cr_fast_switch_off(0);
    run.wrong += cr_fold_launchers(dtype, CR_FAM_DOT, 0, launchers, &count, &error) != CR_UNIMPLEMENTED ||
                 strstr(error.text, "no kernel for dot of ") == NULL;
}

static void copy_over(uint64_t bytes) {
    cr_error error = {CR_OK, ""};
    case_check(cr_cuda.copy(run.on.stream, run.on.device, run.on.host, bytes, &error), &error);
}

/* The same fold of the same memory, with other elements each time: a stream makes a graph of it. */
static void again(cr_dtype dtype, uint32_t families, uint64_t n, uint64_t offset, enum cr_data_kind kind) {
    enum { TIMES = 5 };
    static cr_partial cpu; /* large */
    const cr_gpu_fold fold = {dtype, families, run.on.device + offset, n, 0, 0};
    cr_error error = {CR_OK, ""};
    for (uint64_t i = 0; i < TIMES; i++) {
        bool idle = false;
        case_fill(run.on.host + offset, n, dtype, kind, options.seed + n + i);
        copy_over(offset + n * cr_dtype_size(dtype));
        case_check(cr_cuda.fold(run.on.stream, &fold, 1, 0, &error), &error);
        cr_partial_init(&cpu, dtype, families);
        cr_cpu_fold(&cpu, run.on.host + offset, n, 0);
        while (!idle) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
        run.cases++;
        if (case_different(&cpu, cr_cuda.result(run.on.stream, 0)) == 0) continue;
        if (run.wrong++ < 20)
            printf("wrong: families %#x of %s for the %lluth time, %s data, n %llu, offset %llu, seed %llu\n", families,
                   cr_dtype_name(dtype), (unsigned long long)i + 1, data_names[kind], (unsigned long long)n,
                   (unsigned long long)offset, (unsigned long long)options.seed);
    }
}

/* One array of one kind: each family alone, then sets that are asked for together, and parts of the extrema. */
static void array(cr_dtype dtype, enum cr_data_kind kind, uint64_t n, uint64_t offset) {
    static const uint32_t sets[] = {CR_FAM_COUNTS | CR_FAM_EXTREMA | CR_FAM_SUM,
                                    CR_FAM_COUNTS | CR_FAM_EXTREMA | CR_FAM_SUM | CR_FAM_SUMSQ,
                                    CR_FAM_SUM | CR_FAM_SUMSQ,
                                    CR_FAM_EXTREMA | CR_FAM_SUM,
                                    CR_FAM_EXTREMA | CR_FAM_SUM | CR_FAM_SUMSQ,
                                    CR_FAM_EXTREMA | CR_FAM_SUMSQ,
                                    CR_FAM_COUNTS | CR_FAM_SUMSQ,
                                    CR_FAM_COUNTS | CR_FAM_EXTREMA,
                                    CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_EXTREMA};
    static const uint32_t wants[] = {CR_WANTS_MIN, CR_WANTS_MAX, CR_WANTS_MIN | CR_WANTS_ARGMIN,
                                     CR_WANTS_MAX | CR_WANTS_ARGMAX, CR_WANTS_MIN | CR_WANTS_MAX};
    case_fill(run.on.host + offset, n, dtype, kind, options.seed + n * 31 + offset);
    copy_over(offset + n * cr_dtype_size(dtype));
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1) {
        if (!(family & options.families)) continue;
        if (!cr_fold_takes(dtype, family)) continue;
        compare(dtype, family, 0, n, offset, kind);
    }
    if (CR_FAM_SUM & options.families) several(dtype, CR_FAM_SUM, n, offset, kind);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if ((sets[i] & options.families) == sets[i]) compare(dtype, sets[i], 0, n, offset, kind);
    for (size_t i = 0; i < 2 && (sets[1] & options.families) == sets[1]; i++) /* nobody asks for places */
        compare(dtype, sets[i], wants[i == 0 ? (n + kind) % 2 : 4], n, offset, kind);
    if ((kind == DATA_NORMAL || kind == DATA_BITS) && CR_FAM_SUM & options.families) {
        again(dtype, CR_FAM_SUM, n, offset, kind);
        if ((sets[8] & options.families) == sets[8]) again(dtype, sets[8], n, offset, kind);
    }
    for (size_t i = 0; (options.families & CR_FAM_EXTREMA) && i < sizeof wants / sizeof wants[0]; i++)
        compare(dtype, CR_FAM_EXTREMA, wants[i], n, offset, kind);
}

/* Each fast way off once, in the short run for one length and kind of data each. */
static void without_each(cr_dtype dtype) {
    static const uint64_t bytes[] = {4000, 16000, 120000};
    static const enum cr_data_kind kinds[] = {DATA_NORMAL, DATA_BITS, DATA_OUTLIERS};
    static const uint32_t wants[] = {CR_WANTS_MIN, CR_WANTS_MAX, CR_WANTS_MIN | CR_WANTS_ARGMIN,
                                     CR_WANTS_MAX | CR_WANTS_ARGMAX},
                          both = CR_FAM_SUM | CR_FAM_SUMSQ;
    unsigned way = CR_FAST_GPU_BURSTS;
    while ((run.without = case_without(&way, CR_FAST_GPU_REPLAY)) != NULL) {
        for (unsigned i = 0; i < 9; i++) {
            const uint64_t size = cr_dtype_size(dtype), n = bytes[i % 3] / size + 1, offset = way % 2 * size;
            const enum cr_data_kind kind = kinds[i / 3];
            if (options.few && (way + (unsigned)dtype + options.seed) % 9 != i) continue;
            again(dtype, CR_FAM_SUM, n, offset, kind);
            compare(dtype, both, 0, n, offset, kind);
            compare(dtype, both | CR_FAM_EXTREMA | CR_FAM_COUNTS, 0, n, offset, kind);
            compare(dtype, both | CR_FAM_EXTREMA | CR_FAM_COUNTS, CR_WANTS_MIN | CR_WANTS_MAX, n, offset, kind);
            for (size_t w = 0; w < sizeof wants / sizeof wants[0]; w++)
                compare(dtype, CR_FAM_EXTREMA, wants[w], n, offset, kind);
        }
    }
}

/* An array of 16-bit elements, pairs of patterns three times each in turn; and an outlier, and a zero. */
static void patterns(cr_dtype dtype, uint32_t family, const uint16_t pair[2], uint16_t outlier, uint64_t n,
                     uint64_t offset) {
    uint16_t *x = (uint16_t *)(run.on.host + offset);
    case_fill_pair(run.on.host + offset, n, pair);
    if (n > 5000) x[n / 2] = outlier, x[n / 3] = 0;
    copy_over(offset + 2 * n);
    compare(dtype, family, 0, n, offset, DATA_BITS);
}

/* Bfloat16 whose exponents lie as far apart as a window takes, or one further; in the array's second half the largest that it takes. */
static void windows(uint32_t family, uint64_t n, uint64_t offset) {
    static const int fields[] = {1, 20, 33, 34, 35, 127, 200, 247, 248, 249, 251, 254};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        for (int apart = family == CR_FAM_SUM ? 27 : 16; apart < (family == CR_FAM_SUM ? 31 : 32); apart++) {
            const int top = fields[i], later = top + 3 < 254 ? top + 3 : 254, low = top > apart ? top - apart : 0;
            uint16_t *x = (uint16_t *)(run.on.host + offset);
            for (uint64_t k = 0; k < n; k++) {
                const int field = k % 97 == 3 ? low : k < n / 2 ? top : later;
                x[k] = (uint16_t)(field << 7 | (k % 7 == 3 ? 1 : 127) | (k / 97 % 5 == 0) << 15);
            }
            copy_over(offset + 2 * n);
            compare(CR_BF16, family, 0, n, offset, DATA_BITS);
        }
    }
}

/* Squares of 16-bit floats, of which a thread's may be one float64: elements that lie as far apart as that takes, or further, next to zeros;
 * the largest of the array's second half are as large as a window takes, or one beyond. Each block has two tiles and more, of which the
 * first places its window. */
static void squares(cr_dtype dtype, uint64_t offset) {
    const uint64_t n =
        UINT64_C(5) * 4096 * CR_GPU_BLOCKS_PER_SM * cr_cuda.info(run.on.gpu)->multiprocessors + 1 + options.seed % 64;
    const int bits = dtype == CR_F16 ? 10 : 7, top_field = dtype == CR_F16 ? 30 : 254;
    static const int fields[2][6] = {{1, 3, 15, 20, 26, 30}, {1, 20, 100, 127, 200, 254}};
    for (size_t i = 0; i < 6; i++) {
        for (int apart = 10; apart < 20; apart++) {
            const int top = fields[dtype == CR_BF16][i], more = top + (apart + (int)i) % 5;
            const int later = more < top_field ? more : top_field, low = top > apart ? top - apart : 0;
            uint16_t *x = (uint16_t *)(run.on.host + offset);
            for (uint64_t k = 0; k < n; k++) {
                const int field = k % 29 == 3 ? low : k < n / 2 ? top : later;
                x[k] = (uint16_t)(field << bits | (k % 29 == 3 ? 1 : (1 << bits) - 1) | (k / 97 % 5 == 0) << 15);
                if (apart % 2 == 0 && k % 31 == 0) x[k] = (uint16_t)((k % 62 == 0) << 15);
            }
            copy_over(offset + 2 * n);
            compare(dtype, CR_FAM_SUMSQ, 0, n, offset, DATA_BITS);
        }
    }
}

/* Elements of 32 and 64 bits whose exponents lie as far apart as a window of the second ways takes, or one further; with zeros, and
 * significands of all ones and of all zeros. */
static void wide_windows(cr_dtype dtype, uint32_t family, uint64_t n) {
    static const int at[] = {0, 1, 26, 27, 28, 29, 60, 127, 200, 224, 225, 226, 252, 253, 254};
    const bool wide = dtype == CR_F64;
    const unsigned mantissa = wide ? 52 : 23, size = wide ? 8 : 4;
    const uint64_t ones = ((uint64_t)1 << mantissa) - 1, offset = size * (options.seed % 4),
                   full[] = {ones, ones >> 21, (uint64_t)1 << 31 & ones}; /* of 64 bits: words of all signs */
    for (size_t i = 0; i < 2 * sizeof at / sizeof at[0]; i++) {
        const size_t of = i / 2;
        const int top = !wide ? at[of] : i % 2 == 0 ? at[of] : 2046 - 254 + at[of]; /* both ends of the exponents */
        if (!wide && i % 2 != 0) continue;
        for (int apart = 19; apart < 31; apart++) {
            if (options.few && (i / 2 + (unsigned)apart + options.seed) % 6 != 0) continue;
            const int most = wide ? 2046 : 254, more = top + 1 + apart % 3, later = more < most ? more : most,
                      low = top > apart ? top - apart : 0;
            uint8_t *x = run.on.host + offset;
            for (uint64_t k = 0; k < n; k++) {
                const int field = k % 7 == 3 ? low : k < n / 2 ? top : later;
                const uint64_t significand = k % 97 == 3 ? 1 : full[apart % 3];
                uint64_t bits = (uint64_t)field << mantissa | significand;
                if (k / 970 % 5 == 0) bits |= (uint64_t)1 << (8 * size - 1);
                if (apart % 2 != 0 && k % 13 == 0) bits &= (uint64_t)1 << (8 * size - 1);
                memcpy(x + k * size, &bits, size); /* little-endian, as GPUs' hosts are */
            }
            copy_over(offset + size * n);
            compare(dtype, family, 0, n, offset, DATA_BITS);
        }
    }
}

/* Where a sum's digits lie as high as they may, as the middle element says, and the sum of the others, which are in them, is negative;
 * tile after tile has other exponents, so that each is added to the digits by itself. */
static void below_the_largest(uint64_t n) {
    static const cr_fast ways[] = {CR_FAST_GPU_EARLY, CR_FAST_GPU_FLOAT_BURSTS, CR_FAST_GPU_FLOAT64};
    enum { TILE = 2048 };
    for (uint64_t k = 0; k < n; k++) {
        uint64_t bits = (UINT64_C(0xffe) - (k / TILE % 2 == 0 ? 6 : 66)) << 52 | k;
        if (k / TILE == n / 2 / TILE) bits = UINT64_C(0x7fe) << 52;
        memcpy(run.on.host + 8 * k, &bits, sizeof bits);
    }
    copy_over(8 * n);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        cr_fast_switch_off(UINT64_C(1) << ways[i]);
        run.without = cr_fast_name(ways[i]);
        compare(CR_F64, CR_FAM_SUM, 0, n, 0, DATA_BITS);
    }
    cr_fast_switch_off(0);
    run.without = NULL;
}

/* Sums and squares of 32 and 64 bits by integers. */
static void second_sums(cr_dtype dtype, uint32_t family) {
    static const uint64_t lengths[] = {1, 5, 2047, 70001, 270000};
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_FLOAT64);
    run.without = cr_fast_name(CR_FAST_GPU_FLOAT64);
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        const uint64_t n = lengths[options.few ? kind % 4 : 3 + kind % 2] - (uint64_t)(kind % 4 > 1 ? kind : 0);
        again(dtype, family, n, 4 * (uint64_t)(kind % 5), (enum cr_data_kind)kind);
        several(dtype, family, n, 8 * (uint64_t)(kind % 2), (enum cr_data_kind)kind);
    }
    wide_windows(dtype, family, 50001 + options.seed % 64); /* some tiles of each block, on the smallest GPU */
    cr_fast_switch_off(0);
    run.without = NULL;
}

/* Sums, or those of squares, of 16-bit floats by float32: where each anchor holds the most that it may, of either sign, and of the least. */
static void narrow_sums(cr_dtype dtype, uint32_t family) {
    static const uint64_t lengths[] = {1, 4, 2047, 70001, 270000};
    cr_fold_launcher wide[CR_FOLD_LAUNCHES], narrow[CR_FOLD_LAUNCHES];
    cr_error error;
    uint32_t count;
    case_check(cr_fold_launchers(dtype, family, 0, wide, &count, &error), &error);
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_FLOAT64);
    run.without = cr_fast_name(CR_FAST_GPU_FLOAT64);
    case_check(cr_fold_launchers(dtype, family, 0, narrow, &count, &error), &error);
    run.wrong += wide[0] == narrow[0];
    for (uint64_t i = 0; i < CASE_PAIRS; i++) {
        const uint64_t n = lengths[(i + options.seed) % (sizeof lengths / sizeof lengths[0])];
        patterns(dtype, family, case_pair(dtype, i), dtype == CR_F16 ? 0x7bff : 0x4e7f, n, 2 * (i % 2));
    }
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        const uint64_t n = lengths[3 + kind % 2] - (uint64_t)kind;
        again(dtype, family, n, 2 * (uint64_t)(kind % 2), (enum cr_data_kind)kind);
        several(dtype, family, n, 2 * (uint64_t)(kind % 2), (enum cr_data_kind)kind);
    }
    if (dtype == CR_BF16) windows(family, 9001 + options.seed % 64, 2 * (options.seed % 8));
    cr_fast_switch_off(0);
    run.without = NULL;
}

static void type(cr_dtype dtype) {
    static const uint64_t few[] = {0, 1, 7, 100, 5000, 70001},
                          most[] = {0,    1,    2,    3,     15,    31,    64,     255,     1000,
                                    2047, 2048, 4097, 10000, 32768, 70001, 270000, 1048577, 4200000};
    const uint64_t *lengths = options.few ? few : most;
    size_t count = options.few ? sizeof few / sizeof few[0] : sizeof most / sizeof most[0];
    uint64_t size = cr_dtype_size(dtype), number = 0;
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        for (size_t i = 0; i < count; i++, number++) {
            if (options.only != UINT64_MAX && number != options.only) continue;
            if (!case_sampled(number + (uint64_t)dtype, options.seed, options.sample)) continue;
            if (lengths[i] * size + SPARE > MAX_BYTES) continue;
            if (lengths[i] > 2000000 && kind != DATA_NORMAL && kind != DATA_BITS && kind != DATA_SORTED) continue;
            /* Every alignment of the shortest arrays, one of the others: of each kind, another length is aligned. */
            uint64_t offsets = options.few || lengths[i] > 100 ? 1 : 16;
            for (uint64_t o = 0; o < offsets; o++) {
                const bool aligned = ((uint64_t)kind + i + options.seed) % 3 == 0;
                uint64_t offset = offsets > 1 ? o : aligned ? 0 : number * 7 % 16;
                array(dtype, (enum cr_data_kind)kind, lengths[i], offset);
            }
        }
    }
}

static void parse(int argc, char **argv) {
    options.seed = case_seed();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) options.seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--lengths") == 0) options.few = strcmp(argv[i + 1], "few") == 0;
        if (strcmp(argv[i], "--dtype") == 0) options.dtype = argv[i + 1];
        if (strcmp(argv[i], "--families") == 0) options.families = (uint32_t)strtoul(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--case") == 0) options.only = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--sample") == 0) options.sample = strtoull(argv[i + 1], NULL, 0);
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    run.on = case_device_open(4, MAX_BYTES);
    case_say_sample(options.seed, options.sample);
    for (int t = CR_BOOL; t <= CR_DTYPE_INPUTS; t++) {
        if (!cr_dtype_is_input((cr_dtype)t) || !cr_fold_takes((cr_dtype)t, CR_FAM_SUM)) continue;
        if (options.dtype && strcmp(options.dtype, cr_dtype_name((cr_dtype)t)) != 0) continue;
        uint64_t before = run.cases, wrong = run.wrong, lacking = run.lacking;
        count_launches((cr_dtype)t);
        type((cr_dtype)t);
        if (options.only == UINT64_MAX) without_each((cr_dtype)t);
        if (options.only == UINT64_MAX && (t == CR_F16 || t == CR_BF16) && options.families & CR_FAM_SUM)
            narrow_sums((cr_dtype)t, CR_FAM_SUM);
        if (options.only == UINT64_MAX && (t == CR_F16 || t == CR_BF16) && options.families & CR_FAM_SUMSQ) {
            squares((cr_dtype)t, 2 * (options.seed % 2));
            narrow_sums((cr_dtype)t, CR_FAM_SUMSQ);
        }
        if (options.only == UINT64_MAX && t == CR_F64 && options.families & CR_FAM_SUM) below_the_largest(400000);
        for (uint32_t family = CR_FAM_SUM; options.only == UINT64_MAX && (t == CR_F32 || t == CR_F64) && family != 0;
             family = family == CR_FAM_SUM ? CR_FAM_SUMSQ : 0)
            if (options.families & family) second_sums((cr_dtype)t, family);
        printf("%-5s %6llu cases, %llu wrong, %llu without a kernel\n", cr_dtype_name((cr_dtype)t),
               (unsigned long long)(run.cases - before), (unsigned long long)(run.wrong - wrong),
               (unsigned long long)(run.lacking - lacking));
    }
    case_device_close(&run.on);
    return run.wrong != 0;
}
