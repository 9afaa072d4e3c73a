/* sum_isa_0: cured_sum.c in portable vectors. Thread: any. */
#define CURED_SUM_MOST_ISA 0
#define SUM_NAME(name) sum_##name##_0
#include "tests/property/sum_isa.inc"
