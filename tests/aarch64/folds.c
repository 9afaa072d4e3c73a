/* folds: folds a random array of each of a few types for each of a few families, and calls getppid before and after each fold: count.c
 * then tells what the fold executed. Prints a line for each fold, in the order of those counts: type, family, elements.
 *
 * Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/core/partial.h"
#include "kernels/cpu/fold.h"

enum { ELEMENTS = 1 << 16 };

static const cr_dtype types[] = {CR_F64, CR_F32, CR_F16, CR_BF16, CR_I64, CR_I32, CR_U8};
static const struct kind {
    const char *name;
    uint32_t families, wants;
} kinds[] = {
    {"sum", CR_FAM_SUM, 0},
    {"sumsq", CR_FAM_SUMSQ, 0},
    {"min_max", CR_FAM_EXTREMA, CR_WANTS_MIN | CR_WANTS_MAX},
    {"counts", CR_FAM_COUNTS, 0},
    {"describe", CR_FAM_SUM | CR_FAM_SUMSQ | CR_FAM_EXTREMA | CR_FAM_COUNTS, CR_WANTS_ALL},
};

static uint64_t random_state = 1;

static uint32_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* About normal: twelve uniform numbers. */
static float about_normal(void) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += next_random() * 0x1p-32;
    return (float)sum;
}

static void fill(cr_dtype dtype, uint8_t *data) {
    const size_t size = cr_dtype_size(dtype);
    for (size_t i = 0; i < ELEMENTS; i++) {
        uint64_t word = (uint64_t)next_random() << 32 | next_random();
        const float x = about_normal();
        uint32_t bits;
        memcpy(&bits, &x, 4);
        if (dtype == CR_F64) {
            const double wide = (double)x * (1 + next_random() * 0x1p-54);
            memcpy(&word, &wide, 8);
        } else if (dtype == CR_F32) {
            word = bits;
        } else if (dtype == CR_BF16) {
            word = bits >> 16;
        } else if (dtype == CR_F16) { /* what is below its normal range becomes a zero */
            const uint32_t magnitude = bits & 0x7fffffff;
            word = (bits >> 16 & 0x8000) | (magnitude < 0x38800000 ? 0 : (magnitude - 0x38000000) >> 13);
        }
        memcpy(data + i * size, &word, size);
    }
}

int main(void) {
    uint8_t *data = malloc(ELEMENTS * 8);
    cr_partial *partial = malloc(sizeof *partial);
    if (data == NULL || partial == NULL) return 1;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        fill(types[t], data);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            cr_partial_init(partial, types[t], kinds[k].families);
            cr_partial_want(partial, kinds[k].wants);
            getppid();
            cr_cpu_fold(partial, data, ELEMENTS, 0);
            getppid();
            printf("%s %s %d\n", cr_dtype_name(types[t]), kinds[k].name, ELEMENTS);
        }
    }
    free(partial);
    free(data);
    return 0;
}
