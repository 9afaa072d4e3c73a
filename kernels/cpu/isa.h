/* isa: the instruction set that a file is compiled for. A unit (whole/<isa>.c, axis/<isa>.c) names it by VEC_AVX2 or VEC_AVX512
 * before it includes anything. Where nobody names one it is the portable set: GCC's generic vectors of 16 bytes, on any
 * machine. So a header of kernels/cpu compiles alone, too. On aarch64 the portable set is the only one, and VEC_NEON says that its
 * vectors are NEON's.
 *
 *   VB             bytes of a vector
 *   OF_ISA(name)   name_avx512 …: what a unit offers to others
 *   ISA_TEXT       "avx512" …
 *
 * Thread: any; constants only. */
#ifndef CURED_KERNELS_CPU_ISA_H
#define CURED_KERNELS_CPU_ISA_H

#if defined(VEC_AVX512)
#define VB 64
#define OF_ISA(name) name##_avx512
#define ISA_TEXT "avx512"
#elif defined(VEC_AVX2)
#define VB 32
#define OF_ISA(name) name##_avx2
#define ISA_TEXT "avx2"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define VEC_NEON 1
#define VB 16
#define OF_ISA(name) name##_portable
#define ISA_TEXT "portable"
#else
#define VB 16
#define OF_ISA(name) name##_portable
#define ISA_TEXT "portable"
#endif

#endif
