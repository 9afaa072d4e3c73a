/* cpu_floor: plain loops that read every byte and do as little else as the compiler allows: what a fold is measured
 * against. The best of them in the same run is the floor.
 *
 * Thread: any. Owner: the caller owns the data. */
#include "bench/cpu.h"

#include <string.h>

#include "kernels/cpu/fold.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LOOP(name, isa, vector, load, combine, zero, bytes, unroll, ahead)                            \
    __attribute__((target(isa))) static uint64_t name(const uint8_t *p, size_t n) {                   \
        vector acc[unroll];                                                                           \
        for (int i = 0; i < (unroll); i++) acc[i] = zero();                                           \
        for (size_t at = 0; at + (size_t)(bytes) * (unroll) <= n; at += (size_t)(bytes) * (unroll)) { \
            _Pragma("GCC unroll 8") for (int i = 0; i < (unroll); i++) {                              \
                if ((ahead) && i % (64 / (bytes)) == 0)                                               \
                    _mm_prefetch((const char *)p + at + i * (bytes) + (ahead), _MM_HINT_T0);          \
                acc[i] = combine(acc[i], load((const void *)(p + at + i * (bytes))));                 \
            }                                                                                         \
        }                                                                                             \
        for (int i = 1; i < (unroll); i++) acc[0] = combine(acc[0], acc[i]);                          \
        uint64_t out;                                                                                 \
        memcpy(&out, &acc[0], sizeof out);                                                            \
        return out;                                                                                   \
    }
LOOP(or_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256, 32, 4, 0)
LOOP(or_avx2_ahead, "avx2", __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256, 32, 4, 2048)
LOOP(add_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_add_epi64, _mm256_setzero_si256, 32, 8, 0)
LOOP(or_avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_or_si512, _mm512_setzero_si512, 64, 4, 0)
LOOP(or_avx512_ahead, "avx512f", __m512i, _mm512_loadu_si512, _mm512_or_si512, _mm512_setzero_si512, 64, 4, 2048)
LOOP(or_avx512_far, "avx512f", __m512i, _mm512_loadu_si512, _mm512_or_si512, _mm512_setzero_si512, 64, 4, 8192)

static uint64_t or_pages(const uint8_t *p, size_t n) {
    enum { BLOCK = 16384, PAGE = 4096 };
    uint64_t out = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        for (size_t k = 0; k < BLOCK; k += PAGE) _mm_prefetch((const char *)p + at + BLOCK + k, _MM_HINT_T1);
        out |= or_avx512_far(p + at, n - at < BLOCK ? n - at : BLOCK);
    }
    return out;
}
#endif

static uint64_t or_words(const uint8_t *p, size_t n) {
    uint64_t acc[4] = {0};
    for (size_t at = 0; at + 32 <= n; at += 32) {
        uint64_t x[4];
        memcpy(x, p + at, 32);
        for (int i = 0; i < 4; i++) acc[i] |= x[i];
    }
    return acc[0] | acc[1] | acc[2] | acc[3];
}

static const cpu_floor floors[] = {
#if defined(__x86_64__)
    {"or_avx512", "avx512", or_avx512},        {"or_avx512+2K", "avx512", or_avx512_ahead},
    {"or_avx512+8K", "avx512", or_avx512_far}, {"or_avx2", "avx2", or_avx2},
    {"or_avx2+2K", "avx2", or_avx2_ahead},     {"add_avx2", "avx2", add_avx2},
#endif
    {"or_words", "portable", or_words},        {NULL, NULL, NULL},
};

int cpu_floors_here(const cpu_floor *loops[CPU_FLOORS]) {
    int count = 0;
    for (const cpu_floor *c = floors; c->name; c++)
        if (cr_cpu_select(c->isa, NULL) == CR_OK) loops[count++] = c;
    return count;
}

const cpu_floor *cpu_floor_pages(void) {
#if defined(__x86_64__)
    static const cpu_floor pages = {"or_avx512+8K, pages ahead", "avx512", or_pages};
    if (cr_cpu_select(pages.isa, NULL) == CR_OK) return &pages;
#endif
    return NULL;
}

const cpu_floor *cpu_floor_best(double (*seconds)(void *context, const cpu_floor *loop), void *context) {
    const cpu_floor *loops[CPU_FLOORS], *best = NULL;
    const int tries = 3 * cpu_floors_here(loops);
    double least = 0;
    for (int i = 0; i < tries; i++) {
        const double took = seconds(context, loops[i / 3]);
        if (best && took >= least) continue;
        best = loops[i / 3];
        least = took;
    }
    return best;
}
