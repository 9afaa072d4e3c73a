/* test_gpu_ladder: every kernel of the ladder against the host's exact answer: types, ops, kinds of data, lengths, misaligned
 * starts; and that the input is as it was afterwards. Exact answers must agree bit for bit, statuses too; sums of floats lie within
 * n·u·Σ|x|, products within n·u of themselves, where the kernel's own precision can hold them.
 *
 * usage: test_gpu_ladder [--lengths few|all|large] [--kernel NAME] [--dtype NAME] [--seed S]
 * few: for compute-sanitizer, and for the emulated GPU. large: 2^31 + 5 elements, which no kernel takes at once (16 GiB of device memory).
 * Exits 77 without a GPU. Thread: one. Owner: this file. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fold.h"
#include "kernels/cuda/gpu.h"
#include "kernels/ladder/ladder.h"
#include "tests/gpu/gpu_cases.h"

enum { MAX_BYTES = 9 << 20, GUARD = 64 };
typedef unsigned long long ull;

static const cr_op ops[] = {CR_OP_SUM, CR_OP_MIN, CR_OP_MAX, CR_OP_PROD, CR_OP_ANY, CR_OP_ALL, CR_OP_COUNT_NONZERO};
static const cr_dtype dtypes[] = {CR_I32, CR_I64, CR_F16, CR_F32, CR_F64};
enum { OPS = sizeof ops / sizeof ops[0], DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Data beside the kinds of gpu_cases: factors near 1, alone or with a zero, an infinity, a NaN among them. */
enum { FACTORS = DATA_KINDS, FACTORS_ZERO, FACTORS_INF, FACTORS_BOTH, FACTORS_NAN };
static const int kinds[] = {DATA_NORMAL, DATA_BITS,    DATA_SPECIALS, DATA_ZEROS,   DATA_LARGEST, DATA_DECADES_10,
                            FACTORS,     FACTORS_ZERO, FACTORS_INF,   FACTORS_BOTH, FACTORS_NAN};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct {
    uint64_t seed;
    const char *lengths, *kernel, *dtype;
} options = {.lengths = "all"};

static struct {
    cr_ladder_space *space;
    cudaStream_t stream;
    uint8_t *host, *device, *back;
    uint64_t cases, wrong, beyond; /* beyond: what the kernel's precision cannot hold, where anything may come out */
} run;

/* What the host knows of one array. */
typedef struct known {
    cr_value value[OPS];
    double sum_abs; /* of floats */
} known;

static void must(int failure, const char *what) {
    if (failure == cudaSuccess) return;
    printf("failed: %s: %s\n", what, cudaGetErrorString((cudaError_t)failure));
    exit(1);
}

static double real_of(const cr_value *v) {
    double x;
    memcpy(&x, v->bytes, sizeof x);
    return x;
}

/* The type's bits of a factor, ±2^(up to 8/√n): products of any of them stay in range. */
static uint64_t factor(uint64_t *state, uint64_t n, cr_dtype dtype) {
    uint64_t r = case_random(state);
    double x = exp2(((double)(r >> 11) * 0x1p-53 * 2 - 1) * 8 / sqrt((double)n));
    x = r & 1 ? -x : x;
    uint64_t bits = 0;
    if (dtype == CR_F64) {
        memcpy(&bits, &x, 8);
    } else if (dtype == CR_F32) {
        float f = (float)x;
        memcpy(&bits, &f, 4);
    } else if (dtype == CR_F16) { /* cut, not rounded: its own value is what counts */
        memcpy(&bits, &x, 8);
        bits = (bits >> 63) << 15 | ((bits >> 52 & 2047) - 1023 + 15) << 10 | (bits >> 42 & 1023);
    } else { /* integers: mostly ±1 */
        bits = r % 97 == 0 ? 2 + r % 2 : r & 1 ? UINT64_MAX : 1;
    }
    return bits;
}

static uint64_t infinity(cr_dtype dtype) {
    return dtype == CR_F16 ? 0x7c00 : dtype == CR_F32 ? 0x7f800000 : 0x7ff0000000000000;
}

static void fill(uint8_t *data, uint64_t n, cr_dtype dtype, int kind) {
    size_t size = cr_dtype_size(dtype);
    uint64_t state = options.seed + (uint64_t)kind * 1009 + n;
    if (kind < FACTORS) {
        case_fill(data, n, dtype, (enum cr_data_kind)kind, state);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = factor(&state, n, dtype);
        memcpy(data + i * size, &bits, size);
    }
    uint64_t zero = 0, inf = infinity(dtype), nan = inf | 5;
    if (n != 0 && (kind == FACTORS_ZERO || kind == FACTORS_BOTH)) memcpy(data + n / 3 * size, &zero, size);
    if (n != 0 && (kind == FACTORS_INF || kind == FACTORS_BOTH)) memcpy(data + n / 2 * size, &inf, size);
    if (n != 0 && kind == FACTORS_NAN) memcpy(data + (n - 1) * size, &nan, size);
}

static void know(known *k, const uint8_t *data, uint64_t n, cr_dtype dtype) {
    static cr_partial p; /* large */
    static const cr_finish_opts defaults;
    cr_partial_init(&p, dtype, CR_FAM_SINGLE & ~(uint32_t)(CR_FAM_SUMSQ | CR_FAM_BITS));
    cr_cpu_fold(&p, data, n, 0);
    for (int i = 0; i < OPS; i++) cr_partial_finish(&p, ops[i], &defaults, &k->value[i]);
    cr_value v;
    cr_partial_finish(&p, CR_OP_NORM1, &defaults, &v);
    k->sum_abs = cr_dtype_kind(dtype) == CR_KIND_FLOAT ? real_of(&v) : 0;
}

static bool same(const cr_value *a, const cr_value *b) {
    if (a->error.code != b->error.code) return false;
    return a->error.code != CR_OK || (a->dtype == b->dtype && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len));
}

/* Sums and products of floats. Beyond: sums whose parts may overflow in the precision the kernel adds in, and products whose
 * parts may leave it either way. */
static bool near(const cr_value *got, const known *k, int op, uint64_t n, cr_dtype dtype, int kind) {
    double u = dtype == CR_F64 ? 0x1p-53 : 0x1p-24, largest = dtype == CR_F64 ? 0x1p1023 : 0x1p127;
    double want = real_of(&k->value[op]), x = real_of(got);
    bool sum = ops[op] == CR_OP_SUM;
    bool moderate = kind == DATA_SPECIALS || kind >= FACTORS || k->sum_abs < largest;
    bool safe = sum ? moderate : kind >= FACTORS || n <= 1;
    if (got->error.code != CR_OK || got->dtype != CR_F64) return false;
    if (isnan(want) && (sum || safe)) return isnan(x);
    if (!safe) {
        run.beyond++;
        return true;
    }
    if (isinf(want)) return x == want;
    if (want == 0 && !sum) return x == 0 && !signbit(x);
    double scale = sum ? k->sum_abs : fabs(want);
    return fabs(x - want) <= 1.1 * (double)n * u * scale + 0x1p-52 * fabs(want);
}

static void tell(const char *name, int op, cr_dtype dtype, int kind, uint64_t n, uint64_t offset, const cr_value *got,
                 const cr_value *want) {
    if (run.wrong++ >= 20) return;
    char a[40] = "", b[40] = "";
    for (int i = 0; i < got->len && i < 16; i++) sprintf(a + 2 * i, "%02x", got->bytes[i]);
    for (int i = 0; i < want->len && i < 16; i++) sprintf(b + 2 * i, "%02x", want->bytes[i]);
    printf("wrong: %s %s of %s, data kind %d, n %llu, offset %llu: %s %s, not %s %s\n", name, cr_op_name(ops[op]),
           cr_dtype_name(dtype), kind, (ull)n, (ull)offset, cr_status_name(got->error.code), a,
           cr_status_name(want->error.code), b);
}

static void one(const char *name, int op, cr_dtype dtype, int kind, uint64_t n, uint64_t offset, const known *k) {
    const cr_ladder_job job = {name, ops[op], dtype, run.device + GUARD + offset, n};
    cr_value got;
    bool exact;
    cr_error error = {CR_OK, ""};
    memset(&got, 0xa5, sizeof got);
    if (cr_ladder_run(run.space, &job, run.stream, &got, &exact, &error) != CR_OK) {
        printf("failed: %s %s of %s: %s\n", name, cr_op_name(ops[op]), cr_dtype_name(dtype), error.text);
        exit(1);
    }
    run.cases++;
    bool good = exact == cr_ladder_exact(ops[op], dtype) && got.op == ops[op];
    good = good && (exact ? same(&got, &k->value[op]) : near(&got, k, op, n, dtype, kind));
    if (!good) tell(name, op, dtype, kind, n, offset, &got, &k->value[op]);
}

static bool chosen(const char *name) { return !options.kernel || strcmp(options.kernel, name) == 0; }

/* All kernels over one array. */
static void array(cr_dtype dtype, int kind, uint64_t n, uint64_t offset) {
    size_t bytes = offset + n * cr_dtype_size(dtype), all = bytes + 2 * GUARD;
    memset(run.host, 0x5a, all);
    fill(run.host + GUARD + offset, n, dtype, kind);
    known k;
    know(&k, run.host + GUARD + offset, n, dtype);
    must(cudaMemcpyAsync(run.device, run.host, all, cudaMemcpyHostToDevice, run.stream), "copy");
    for (uint32_t row = 0; row < cr_ladder_count(); row++) {
        const char *name = cr_ladder_at(row)->name;
        if (!chosen(name)) continue;
        for (int op = 0; op < OPS; op++) one(name, op, dtype, kind, n, offset, &k);
        must(cudaMemcpyAsync(run.back, run.device, all, cudaMemcpyDeviceToHost, run.stream), "copy");
        must(cudaStreamSynchronize(run.stream), "copy");
        if (memcmp(run.back, run.host, all) == 0) continue;
        printf("wrong: %s wrote to its input (%s, n %llu)\n", name, cr_dtype_name(dtype), (ull)n);
        run.wrong++;
        must(cudaMemcpyAsync(run.device, run.host, all, cudaMemcpyHostToDevice, run.stream), "copy");
    }
}

static void type(cr_dtype dtype) {
    static const uint64_t most[] = {0,   1,   2,    31,   32,   33,   255,  256,    257,
                                    511, 513, 1023, 1024, 1025, 4099, 8191, 100003, 1048579};
    static const uint64_t few[] = {0, 1, 33, 1025, 70001};
    bool is_few = strcmp(options.lengths, "few") == 0;
    const uint64_t *lengths = is_few ? few : most;
    size_t count = is_few ? sizeof few / sizeof few[0] : sizeof most / sizeof most[0];
    uint64_t size = cr_dtype_size(dtype);
    for (int i = 0; i < KINDS; i++) {
        if (kinds[i] > FACTORS_ZERO && cr_dtype_kind(dtype) != CR_KIND_FLOAT) continue;
        if (is_few && kinds[i] != DATA_SPECIALS) continue;
        for (size_t l = 0; l < count; l++) {
            if (lengths[l] < 5000 || l % 2 == (unsigned)i % 2) array(dtype, kinds[i], lengths[l], 0);
            /* A start of no alignment, one of half of it, and one aligned to the element alone. */
            uint64_t odd = (uint64_t)i % 3 == 0 ? 1 : (uint64_t)i % 3 == 1 ? size / 2 : size;
            if (lengths[l] < 5000 || i == 1) array(dtype, kinds[i], lengths[l], odd);
        }
    }
}

/* More elements than one launch takes: all of them 0x0101…, so that every answer is known. Longer than 2^31 and, for the copy
 * of a misaligned start, than its pieces. */
static void large(void) {
    const uint64_t n = (UINT64_C(1) << 31) + 5;
    uint8_t *data = NULL;
    must(cudaMalloc((void **)&data, n * 8 + 8), "16 GiB of device memory");
    must(cudaMemset(data, 1, n * 8 + 8), "memset");
    const struct {
        cr_dtype dtype;
        unsigned __int128 element;
    } cases[] = {{CR_I32, 0x01010101}, {CR_I64, 0x0101010101010101}};
    for (uint32_t row = 0; row < cr_ladder_count(); row++) {
        const char *name = cr_ladder_at(row)->name;
        for (int c = 0; c < 2 && chosen(name); c++) {
            for (int odd = 0; odd < 2; odd++) {
                const cr_ladder_job job = {name, CR_OP_SUM, cases[c].dtype, data + odd, n};
                cr_value v;
                bool exact;
                cr_error error = {CR_OK, ""};
                unsigned __int128 want = cases[c].element * n, got = 0;
                cr_status status = cr_ladder_run(run.space, &job, run.stream, &v, &exact, &error);
                if (status == CR_OK && v.len <= sizeof got) memcpy(&got, v.bytes, v.len);
                run.cases++;
                if (status == CR_OK && v.error.code == CR_OK && got == want) continue;
                printf("wrong: %s sum of %llu %s: %s\n", name, (ull)n, cr_dtype_name(cases[c].dtype), error.text);
                run.wrong++;
            }
        }
    }
    cudaFree(data);
}

/* What is refused, and the same kernels through the device's table. */
static void refusals(void) {
    cr_error error;
    cr_value v;
    bool exact;
    const cr_ladder_job unknown = {"v9_magic", CR_OP_SUM, CR_F32, run.device, 4};
    const cr_ladder_job mean = {"v7_shuffle", CR_OP_MEAN, CR_F32, run.device, 4};
    const cr_ladder_job bytes = {"v7_shuffle", CR_OP_SUM, CR_U8, run.device, 4};
    run.wrong += cr_ladder_run(run.space, &unknown, run.stream, &v, &exact, &error) != CR_NOT_FOUND;
    run.wrong += cr_ladder_run(run.space, &mean, run.stream, &v, &exact, &error) != CR_UNIMPLEMENTED;
    run.wrong += cr_ladder_run(run.space, &bytes, run.stream, &v, &exact, &error) != CR_UNIMPLEMENTED;
    run.wrong += strcmp(cr_ladder_at(cr_ladder_find("v7_shuffle"))->name, "v7_shuffle") != 0;
    run.wrong += cr_ladder_at(cr_ladder_count()) != NULL;
    cr_gpu *gpu = NULL;
    cr_gpu_stream *stream = NULL;
    run.cases += 5;
    if (!cr_cuda.kernel) return; /* emulated */
    static const float three[] = {1, 2, 4};
    must(cudaMemcpy(run.device, three, sizeof three, cudaMemcpyHostToDevice), "copy");
    if (cr_cuda.open(0, &gpu, &error) != CR_OK || cr_cuda.stream_open(gpu, 1, &stream, &error) != CR_OK) {
        printf("failed: %s\n", error.text);
        exit(1);
    }
    const cr_gpu_fold input = {.dtype = CR_F32, .data = run.device, .n = 3};
    bool good = cr_cuda.kernel(stream, "v7_shuffle", CR_OP_SUM, &input, &v, &exact, &error) == CR_OK;
    good = good && !exact && real_of(&v) == 7 && !cr_cuda.lost(gpu);
    good = good && cr_cuda.kernel(stream, "v9_magic", CR_OP_SUM, &input, &v, &exact, &error) == CR_NOT_FOUND;
    cr_cuda.stream_close(stream);
    cr_cuda.close(gpu);
    run.cases += 2;
    run.wrong += !good;
    if (run.wrong) printf("wrong: what must be refused is not, or the device's table does not reach the ladder\n");
}

static bool parse(int argc, char **argv) {
    options.seed = case_seed();
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--seed") == 0)
            options.seed = strtoull(value, NULL, 0);
        else if (value && strcmp(argv[i], "--lengths") == 0)
            options.lengths = value;
        else if (value && strcmp(argv[i], "--kernel") == 0)
            options.kernel = value;
        else if (value && strcmp(argv[i], "--dtype") == 0)
            options.dtype = value;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    int devices = 0;
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: test_gpu_ladder [--lengths few|all|large] [--kernel NAME] [--dtype NAME] [--seed S]\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device\n");
        return 77;
    }
    cr_error error = {CR_OK, ""};
    if (cr_ladder_open(&run.space, &error) != CR_OK) {
        printf("failed: %s\n", error.text);
        return 1;
    }
    must(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking), "stream");
    must(cudaMallocHost((void **)&run.host, MAX_BYTES), "pinned memory");
    must(cudaMallocHost((void **)&run.back, MAX_BYTES), "pinned memory");
    must(cudaMalloc((void **)&run.device, MAX_BYTES), "device memory");
    refusals();
    if (strcmp(options.lengths, "large") == 0) large();
    for (int t = 0; t < DTYPES && strcmp(options.lengths, "large") != 0; t++) {
        if (options.dtype && strcmp(options.dtype, cr_dtype_name(dtypes[t])) != 0) continue;
        uint64_t before = run.cases, wrong = run.wrong, beyond = run.beyond;
        type(dtypes[t]);
        printf("%-4s %6llu runs, %llu wrong, %llu beyond what the kernel's precision holds\n", cr_dtype_name(dtypes[t]),
               (ull)(run.cases - before), (ull)(run.wrong - wrong), (ull)(run.beyond - beyond));
    }
    cudaFree(run.device);
    cudaFreeHost(run.back);
    cudaFreeHost(run.host);
    cudaStreamDestroy(run.stream);
    cr_ladder_close(run.space);
    printf("%llu runs, %llu wrong\n", (ull)run.cases, (ull)run.wrong);
    return run.wrong != 0 || run.cases < 8;
}
