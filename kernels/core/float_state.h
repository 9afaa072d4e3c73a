/* float_state: what the processor does with floats in this thread. A library built with fast-math may have made it take denormals for
 * zero, or round another way. Exactness needs round to nearest and all denormals, so whatever computes in floats in a thread of a
 * caller's stands between enter and leave, in a function of its own: compilers move arithmetic across both.
 *
 * Thread: any; the state is the thread's. Owner: nobody. */
#ifndef CURED_KERNELS_CORE_FLOAT_STATE_H
#define CURED_KERNELS_CORE_FLOAT_STATE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { CR_FLOAT_MXCSR = 0x1f80, CR_FLOAT_MXCSR_FLAGS = 0x3f };

/* Sets the state that folds and answers want. What it was goes to cr_float_leave. */
static inline uint64_t cr_float_enter(void) {
    const uint32_t state = _mm_getcsr();
    if (__builtin_expect((state & ~(uint32_t)CR_FLOAT_MXCSR_FLAGS) != CR_FLOAT_MXCSR, 0)) _mm_setcsr(CR_FLOAT_MXCSR);
    return state;
}

static inline void cr_float_leave(uint64_t state) {
    if (__builtin_expect((state & ~(uint32_t)CR_FLOAT_MXCSR_FLAGS) != CR_FLOAT_MXCSR, 0)) _mm_setcsr((uint32_t)state);
}
#elif defined(__aarch64__)
/* FPCR is zero where nobody changed it. */
static inline uint64_t cr_float_enter(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    if (state != 0) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return state;
}

static inline void cr_float_leave(uint64_t state) {
    if (state != 0) __asm__ volatile("msr fpcr, %0" : : "r"(state));
}
#else
static inline uint64_t cr_float_enter(void) { return 0; }
static inline void cr_float_leave(uint64_t state) { (void)state; }
#endif

#endif
