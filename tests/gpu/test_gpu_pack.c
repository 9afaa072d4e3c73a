/* test_gpu_pack: many small folds in one launch against the CPU's, bit for bit: all types and families mixed, lengths from
 * nothing to the longest, every alignment, in device memory and in pinned host memory. All follows from the seed.
 *
 * usage: test_gpu_pack [--seed S] [--lengths few|all] [--dtype NAME] [--families MASK]
 * The seed is CURED_TEST_SEED's, or 1.
 * Exits 77 without a GPU. Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/fold.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/plan/fold.h"
#include "tests/gpu/gpu_cases.h"

enum { ARENA = 4 << 20, MOST = CR_GPU_PACK_FOLDS + 100 };

static struct {
    uint64_t seed;
    bool few;
    cr_dtype dtype; /* CR_DTYPE_NONE: all */
    uint32_t families;
} options = {.families = CR_FAM_SINGLE};

static struct {
    case_device on;
    cr_gpu_fold folds[MOST];
    enum cr_data_kind kinds[MOST];
    uint64_t cases, wrong, launches;
} run;

static uint64_t below(uint64_t *state, uint64_t end) { return case_random(state) % end; }

static cr_dtype any_type(uint64_t *state) {
    const uint64_t t = below(state, 15);
    return t < 13 ? (cr_dtype)(CR_BOOL + t) : t == 13 ? CR_F8_E4M3 : CR_F8_E5M2;
}

/* Around what the kernel does differently: vectors, units, the longest. */
static uint64_t length(uint64_t *state, uint64_t size) {
    static const uint64_t bytes[] = {16, 512, 4096, 4096, 8192, 16384, 32768, CR_GPU_PACK_BYTES};
    uint64_t kind = below(state, 10), most = CR_GPU_PACK_BYTES / size;
    if (kind < 2) return below(state, 40);
    if (kind < 6) return below(state, 4096 / size + 1);
    uint64_t near = bytes[below(state, options.few ? 5 : 8)] / size, off = below(state, 5);
    if (kind < 7) return below(state, near + 1);
    return near + off < 2 || near + off - 2 > most ? near : near + off - 2;
}

static uint32_t some_families(uint64_t *state, cr_dtype dtype) {
    uint32_t all = options.families, families = 1u << below(state, 7); /* one of a pack's */
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1)
        if (!cr_fold_takes(dtype, family) || !(family & CR_GPU_PACK_FAMILIES)) all &= ~family;
    if (below(state, 4) == 0) families = (uint32_t)case_random(state);
    return families & all;
}

/* Fills the arena with arrays, side by side, and makes folds of them. Gives their number. */
static uint32_t make(uint64_t seed, const uint8_t *place) {
    uint64_t state = seed, at = 0;
    uint32_t count = 0;
    while (count < MOST) {
        cr_dtype dtype = options.dtype != CR_DTYPE_NONE ? options.dtype : any_type(&state);
        uint64_t size = cr_dtype_size(dtype), n = length(&state, size);
        uint32_t families = some_families(&state, dtype);
        /* Most arrays begin as arrays do. */
        uint64_t offset = below(&state, 3) == 0 ? below(&state, 16) : 0;
        at = (at + 15) / 16 * 16 + offset;
        if (at + n * size > ARENA) break;
        enum cr_data_kind kind = (enum cr_data_kind)below(&state, DATA_KINDS);
        case_fill(run.on.host + at, n, dtype, kind, case_random(&state));
        uint64_t index = below(&state, 1000000);
        index -= index % cr_partial_grain(dtype, families);
        run.kinds[count] = kind;
        const uint32_t wants = below(&state, 2) ? (uint32_t)below(&state, CR_WANTS_ALL + 1) : 0;
        run.folds[count++] = (cr_gpu_fold){dtype, families, place + at, n, index, wants | (wants >> 2 & 3)};
        at += n * size;
    }
    return count;
}

static void compare(uint32_t number, const cr_gpu_fold *fold, const uint8_t *place, enum cr_data_kind kind) {
    static cr_partial cpu, gpu; /* large */
    const uint8_t *data = (const uint8_t *)fold->data;
    cr_partial_init(&cpu, fold->dtype, fold->families);
    if (fold->wants) cr_partial_want(&cpu, fold->wants);
    cr_cpu_fold(&cpu, run.on.host + (data - place), fold->n, fold->index);
    cr_cuda.pack_result(run.on.stream, number, &gpu);
    uint32_t wrong = case_different(&cpu, &gpu);
    run.cases++;
    if (wrong == 0) return;
    if (run.wrong++ < 20)
        printf("wrong: families %#x (of %#x) of %s, %s data, n %llu, address %% 16 %u, seed %llu\n", wrong,
               fold->families, cr_dtype_name(fold->dtype), data_names[kind], (unsigned long long)fold->n,
               (unsigned)((uintptr_t)fold->data % 16), (unsigned long long)options.seed);
}

/* in_place: read over the bus, from where the host has it. */
static void round_of(uint64_t number, bool in_place) {
    cr_error error = {CR_OK, ""};
    const uint8_t *place = in_place ? run.on.host : run.on.device;
    memset(run.on.host, 0xa5, ARENA);
    uint32_t count = make(options.seed * 1000 + number, place), taken = 0;
    if (!in_place) case_check(cr_cuda.copy(run.on.stream, run.on.device, run.on.host, ARENA, &error), &error);
    for (uint32_t done = 0; done < count; done += taken) {
        case_check(cr_cuda.pack(run.on.stream, run.folds + done, count - done, 0, &taken, &error), &error);
        if (taken == 0) case_check(cr_fail(&error, CR_INTERNAL, "no room in an idle stream"), &error);
        run.launches++;
        for (bool idle = false; !idle;) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
        for (uint32_t i = 0; i < taken; i++) compare(i, &run.folds[done + i], place, run.kinds[done + i]);
    }
}

/* Several batches one behind the other, told apart by their first number. */
static void one_behind_the_other(void) {
    cr_error error = {CR_OK, ""};
    uint32_t count = make(options.seed, run.on.host), taken = 0, done = 0;
    if (count > 40) count = 40;
    while (done < count) {
        uint32_t some = count - done < 7 ? count - done : 7;
        case_check(cr_cuda.pack(run.on.stream, run.folds + done, some, done, &taken, &error), &error);
        if (taken == 0) break;
        done += taken;
        run.launches++;
    }
    for (bool idle = false; !idle;) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
    for (uint32_t i = 0; i < done; i++) compare(i, &run.folds[i], run.on.host, run.kinds[i]);
}

/* Small batches that follow each other find a block that stays: one fold or a few at a time; now and then it is told to leave, or left
 * alone until it goes. */
static void while_one_stays(uint64_t rounds) {
    cr_error error = {CR_OK, ""};
    const uint8_t *place = run.on.host;
    uint64_t state = options.seed;
    memset(run.on.host, 0xa5, ARENA);
    cr_cuda.linger(run.on.gpu, 1000000);
    for (uint64_t number = 0; number < rounds; number++) {
        const uint32_t count = make(options.seed * 1000 + number, place);
        for (uint32_t done = 0, taken = 0; done < count; done += taken) {
            const uint32_t some = 1 + (uint32_t)below(&state, 3);
            if (below(&state, 50) == 0)
                case_check(cr_cuda.copy(run.on.stream, run.on.device, run.on.host, 4096, &error), &error);
            if (below(&state, 100) == 0) /* so that it is about to leave, or has left */
                nanosleep(&(struct timespec){.tv_nsec = 800000 + (long)below(&state, 1200000)}, NULL);
            case_check(cr_cuda.pack(run.on.stream, run.folds + done, some < count - done ? some : count - done, 0,
                                    &taken, &error),
                       &error);
            if (taken == 0) case_check(cr_fail(&error, CR_INTERNAL, "no room in an idle stream"), &error);
            run.launches++;
            for (bool idle = false; !idle;) case_check(cr_cuda.poll(run.on.stream, &idle, &error), &error);
            for (uint32_t i = 0; i < taken; i++) compare(i, &run.folds[done + i], place, run.kinds[done + i]);
        }
    }
}

static void parse(int argc, char **argv) {
    options.seed = case_seed();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) options.seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--lengths") == 0) options.few = strcmp(argv[i + 1], "few") == 0;
        if (strcmp(argv[i], "--families") == 0) options.families = (uint32_t)strtoul(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--dtype") == 0) cr_dtype_parse(argv[i + 1], &options.dtype, NULL);
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    run.on = case_device_open(1, ARENA);
    one_behind_the_other();
    for (uint64_t i = 0; i < (options.few ? 6 : 60); i++) round_of(i, i % 2 != 0);
    while_one_stays(options.few ? 2 : 20);
    for (unsigned way = CR_FAST_GPU_FEW_UNITS; case_without(&way, CR_FAST_GPU_LINGER);) {
        one_behind_the_other();
        while_one_stays(1);
    }
    printf("%llu folds in %llu launches, %llu wrong\n", (unsigned long long)run.cases, (unsigned long long)run.launches,
           (unsigned long long)run.wrong);
    case_device_close(&run.on);
    return run.wrong != 0;
}
