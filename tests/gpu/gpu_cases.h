/* gpu_cases: arrays for the GPU's tests, each from a kind, a type and a seed: the same on every machine.
 *
 * Thread: one. Owner: the caller owns the memory. */
#ifndef CURED_TESTS_GPU_CASES_H
#define CURED_TESTS_GPU_CASES_H

#include "kernels/core/partial.h"
#include "kernels/cuda/gpu.h"

#include <stdint.h>

enum cr_data_kind {
    DATA_NORMAL,
    DATA_DECADES_10, /* 10^±10 */
    DATA_DECADES_30,
    DATA_BINADES, /* the whole range of exponents */
    DATA_BITS,    /* any bit pattern */
    DATA_DENORMAL,
    DATA_CANCEL,   /* large pairs that cancel, small change between them */
    DATA_SPECIALS, /* some NaNs and infinities among normal values */
    DATA_ZEROS,    /* both zeros */
    DATA_OUTLIERS, /* normal, but for one in ten thousand */
    DATA_LARGEST,
    DATA_SORTED, /* rising over the whole range of exponents */
    DATA_SPARSE, /* half of them zeros, whose sign changes near the end; by the count no other is below zero, none above, or both are */
    DATA_SPREAD, /* over 32 binades, the largest a little above one */
    DATA_KINDS
};

extern const char *const data_names[DATA_KINDS];

/* A device with one stream, and as many bytes on both sides: gpu_device.c. */
typedef struct case_device {
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    uint8_t *host, *device;
} case_device;

/* Ends the program: with 77 and the reason where there is no device. slots: results the stream holds. */
case_device case_device_open(uint32_t slots, size_t bytes);
void case_device_close(const case_device *on);
/* Ends the program with 1 when status is not OK. */
void case_check(cr_status status, const cr_error *error);

/* What the environment's CURED_TEST_SEED says, or 1. */
uint64_t case_seed(void);
/* Whether a run that takes one case in `sample` takes this one. Seeds that follow each other take all cases in turn. */
bool case_sampled(uint64_t number, uint64_t seed, uint64_t sample);
/* Says which sample it is, and how to repeat the run. */
void case_say_sample(uint64_t seed, uint64_t sample);

uint64_t case_random(uint64_t *state);
void case_fill(uint8_t *data, uint64_t n, cr_dtype dtype, enum cr_data_kind kind, uint64_t seed);
/* For each of the ways from `way` to `last`, and then for all of fast.def at once: switches it off and gives its name; NULL: all are on
 * again. *way is the next one. */
const char *case_without(unsigned *way, unsigned last);
/* Of 16-bit floats: pairs of patterns with which anchors hold the most that they may, of either sign, or the least; or what is no number. */
enum { CASE_PAIRS = 15 };
const uint16_t *case_pair(cr_dtype dtype, uint64_t i);
/* n elements: the pair's first and its second, three times each in turn. */
void case_fill_pair(uint8_t *at, uint64_t n, const uint16_t pair[2]);

/* Families of two partials that differ: gpu_compare.c. */
uint32_t case_different(const cr_partial *a, const cr_partial *b);

#endif
