/* sum_isa_1: cured_sum.c up to AVX2. Thread: any. */
#define CURED_SUM_MOST_ISA 1
#define SUM_NAME(name) sum_##name##_1
#include "tests/property/sum_isa.inc"
