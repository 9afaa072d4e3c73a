/* fast: the fast ways of the folds (fast.def), each of which can be switched off: for tests, which find the same bits, and for
 * benches, which find what it gains.
 *
 * Thread: any; a fold sees what stood when it began. */
#ifndef CURED_KERNELS_CORE_FAST_H
#define CURED_KERNELS_CORE_FAST_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Whether the processor notes that an addition was rounded, by trying. */
static inline bool cr_fast_try_inexact(void) {
    const unsigned state = _mm_getcsr();
    volatile double one = 1, small = 1e-18, sum;
    _mm_setcsr(state & ~(unsigned)_MM_EXCEPT_INEXACT);
    sum = one + small;
    (void)sum;
    const bool noted = (_mm_getcsr() & _MM_EXCEPT_INEXACT) != 0;
    _mm_setcsr(state);
    return noted;
}
#elif defined(__aarch64__)
/* The exception flags of the thread: bits of FPSR. */
enum { CR_FLAG_INVALID = 1, CR_FLAG_OVERFLOW = 4, CR_FLAG_UNDERFLOW = 8, CR_FLAG_INEXACT = 16 };
static inline uint64_t cr_flags(void) {
    uint64_t flags;
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags) : : "memory");
    return flags;
}
static inline void cr_flags_set(uint64_t flags) { __asm__ volatile("msr fpsr, %0" : : "r"(flags) : "memory"); }

static inline bool cr_fast_try_inexact(void) {
    const uint64_t flags = cr_flags();
    volatile double one = 1, small = 1e-18, sum;
    cr_flags_set(flags & ~(uint64_t)CR_FLAG_INEXACT);
    sum = one + small;
    (void)sum;
    const bool noted = (cr_flags() & CR_FLAG_INEXACT) != 0;
    cr_flags_set(flags);
    return noted;
}
#endif

#ifdef CURED_SUM_ALONE
#define cr_fast_on(way) true
static inline bool cr_fast_tells_inexact(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    return cr_fast_try_inexact();
#else
    return false;
#endif
}
#else
#include <stdatomic.h>

typedef enum cr_fast {
#define CR_FAST(symbol, name, takes, gain) CR_FAST_##symbol,
#include "kernels/core/fast.def"
#undef CR_FAST
    CR_FAST_WAYS,
    CR_FAST_CPU_WAYS = CR_FAST_GPU_BURSTS /* those before it are the CPU's */
} cr_fast;

extern _Atomic uint64_t cr_fast_off; /* a bit a way that is off; none is */

static inline bool cr_fast_on(cr_fast way) {
    return !(atomic_load_explicit(&cr_fast_off, memory_order_relaxed) >> way & 1);
}
/* For tests and benches: the ways of the mask are off from the next fold on. */
void cr_fast_switch_off(uint64_t ways);
/* NULL: there is none of that number. */
const char *cr_fast_name(unsigned way);
/* Whether the processor notes that an addition was rounded. Emulators of processors, such as valgrind's, do not. */
bool cr_fast_tells_inexact(void);
#endif

#endif
