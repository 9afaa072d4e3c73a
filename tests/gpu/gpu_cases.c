/* gpu_cases: arrays of every kind and type, made from a seed.
 *
 * Thread: one. Owner: the caller owns the memory. */
#include "tests/gpu/gpu_cases.h"

#include "kernels/core/fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const data_names[DATA_KINDS] = {"normal",   "10^±10", "10^±30",   "binades", "bits",
                                            "denormal", "cancel", "specials", "zeros",   "outliers",
                                            "largest",  "sorted", "sparse",   "spread"};

uint64_t case_seed(void) {
    const char *text = getenv("CURED_TEST_SEED");
    return text && text[0] ? strtoull(text, NULL, 0) : 1;
}

bool case_sampled(uint64_t number, uint64_t seed, uint64_t sample) { return (number + seed) % sample == 0; }

void case_say_sample(uint64_t seed, uint64_t sample) {
    if (sample != 1)
        printf("one case in %llu of seed %llu; CURED_TEST_SEED=%llu repeats it\n", (unsigned long long)sample,
               (unsigned long long)seed, (unsigned long long)seed);
}

const char *case_without(unsigned *way, unsigned last) {
    const unsigned now = (*way)++;
    cr_fast_switch_off(now <= last ? UINT64_C(1) << now : now == last + 1 ? UINT64_MAX : 0);
    return now <= last ? cr_fast_name(now) : now == last + 1 ? "any" : NULL;
}

const uint16_t *case_pair(cr_dtype dtype, uint64_t i) {
    static const uint16_t halves[CASE_PAIRS]
                                [2] = {{0x7bff, 0x7bff}, {0xfbff, 0xfbff}, {0x7bff, 0xfbff}, /* 65504 */
                                       {0x0001, 0x0001}, {0x8001, 0x8001}, {0x7bff, 0x8001}, /* 2^-24 */
                                       {0x2800, 0x2800}, {0xa800, 0xa801}, {0x27ff, 0x2801}, /* near 2^-5 */
                                       {0x7bff, 0x2800}, {0xfbff, 0xa7ff}, {0x7c00, 0xfc00}, /* infinities */
                                       {0x7c00, 0x7bff}, {0x7e00, 0x3c00}, {0xfc00, 0xfbff}},
              brains[CASE_PAIRS][2] = {{0x7f7f, 0x7f7f}, {0xff7f, 0x7d7f}, {0x7d7f, 0x7d7f}, /* the largest */
                                       {0x0001, 0x0001}, {0x8001, 0x007f}, {0x0080, 0x0001}, /* the least */
                                       {0x3f80, 0x3080}, {0x3fff, 0xb101}, {0x3f80, 0x2f81}, /* 1 and 2^-30 */
                                       {0x7f80, 0xff80}, {0x7f80, 0x7f7f}, {0x7fc0, 0x3f80},
                                       {0xff80, 0xff7f}, {0x0000, 0x8000}, {0x3f80, 0xbf80}};
    return dtype == CR_F16 ? halves[i % CASE_PAIRS] : brains[i % CASE_PAIRS];
}

void case_fill_pair(uint8_t *at, uint64_t n, const uint16_t pair[2]) {
    for (uint64_t k = 0; k < n; k++) memcpy(at + 2 * k, &pair[k / 3 % 2], 2);
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
uint64_t case_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) { return (double)(case_random(state) >> 11) * 0x1p-53; }

static double normal(uint64_t *state) {
    double a = 1.0 - uniform(state), b = uniform(state);
    return sqrt(-2.0 * log(a)) * cos(6.283185307179586 * b);
}

/* What tells the float types apart. */
struct shape {
    int mantissa, bias, top;
};

static struct shape shape_of(cr_dtype dtype) {
    switch ((int)dtype) {
        case CR_F8_E4M3: /* its highest exponent has numbers, too */
            return (struct shape){3, 7, 15};
        case CR_F8_E5M2:
            return (struct shape){2, 15, 31};
        case CR_F16:
            return (struct shape){10, 15, 31};
        case CR_BF16:
            return (struct shape){7, 127, 255};
        case CR_F32:
            return (struct shape){23, 127, 255};
        default:
            return (struct shape){52, 1023, 2047};
    }
}

/* The type's bits of x, rounded towards zero and kept finite. */
static uint64_t bits_of(double x, struct shape s) {
    uint64_t bits, sign;
    memcpy(&bits, &x, sizeof bits);
    sign = bits >> 63;
    int64_t exponent = (int64_t)(bits >> 52 & 2047) - 1023 + s.bias;
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (exponent >= s.top) {
        exponent = s.top - 1;
        mantissa = ((uint64_t)1 << 52) - 1;
    }
    if (exponent < 1) { /* denormal, or nothing */
        int64_t drop = 1 - exponent;
        mantissa = drop > 52 ? 0 : (mantissa | (uint64_t)1 << 52) >> drop;
        exponent = 0;
    }
    int width = s.mantissa + (s.top == 15 ? 4 : s.top == 31 ? 5 : s.top == 255 ? 8 : 11);
    return sign << width | (uint64_t)exponent << s.mantissa | mantissa >> (52 - s.mantissa);
}

static uint64_t make(uint64_t fraction, int64_t field, bool negative, struct shape s) {
    int width = s.mantissa + (s.top == 15 ? 4 : s.top == 31 ? 5 : s.top == 255 ? 8 : 11);
    return (uint64_t)negative << width | (uint64_t)field << s.mantissa | (fraction & (((uint64_t)1 << s.mantissa) - 1));
}

static uint64_t special(uint64_t *state, struct shape s) {
    uint64_t r = case_random(state);
    switch (r % 4) {
        case 0:
            return make(r >> 8 | 1, s.top, r >> 63, s); /* a NaN */
        case 1:
            return make(0, s.top, true, s);
        default:
            return make(0, s.top, false, s);
    }
}

static uint64_t float_element(uint64_t *state, enum cr_data_kind kind, struct shape s, uint64_t i, uint64_t n) {
    uint64_t r = case_random(state);
    switch (kind) {
        case DATA_DECADES_10:
            return bits_of(normal(state) * exp2((uniform(state) * 2 - 1) * 33.2), s);
        case DATA_DECADES_30:
            return bits_of(normal(state) * exp2((uniform(state) * 2 - 1) * 99.6), s);
        case DATA_BINADES:
            return make(r, (int64_t)(r >> 52) % s.top, r >> 51 & 1, s);
        case DATA_BITS:
            return make(r, (int64_t)(r >> 52) % (s.top + 1), r >> 51 & 1, s);
        case DATA_DENORMAL:
            return make(r, (int64_t)(r >> 60) == 0, r >> 51 & 1, s);
        case DATA_CANCEL:
            if (i % 3 == 2) return make(r, 1 + (int64_t)(r >> 56) % (s.bias / 2), r >> 51 & 1, s);
            return make(i / 3 * 7919, s.top - 2, i % 3 == 1, s);
        case DATA_SPECIALS:
            return r % 7 == 0 ? special(state, s) : bits_of(normal(state), s);
        case DATA_ZEROS:
            return make(0, 0, r & 1, s);
        case DATA_OUTLIERS:
            if (r % 10007 == 0) return make(r >> 20, 1 + (int64_t)(r >> 52) % (s.top - 1), r >> 51 & 1, s);
            return bits_of(normal(state), s);
        case DATA_LARGEST:
            return make(UINT64_MAX, s.top - 1, r % 16 == 0, s);
        case DATA_SORTED:
            return make(r, (int64_t)((double)i / (double)n * (s.top - 1)), r >> 51 & 1, s);
        case DATA_SPARSE:
            if (r % 2) return make(0, 0, (n % 3 == 2) != (i > n - n / 8), s);
            return bits_of(n % 3 == 0 ? normal(state) : n % 3 == 1 ? fabs(normal(state)) : -fabs(normal(state)), s);
        case DATA_SPREAD: {
            const int64_t field = s.bias + 2 - (int64_t)(r >> 59);
            return make(r, field < 0 ? 0 : field, r >> 51 & 1, s);
        }
        default:
            return bits_of(normal(state), s);
    }
}

static uint64_t int_element(uint64_t *state, enum cr_data_kind kind, cr_dtype dtype) {
    uint64_t r = case_random(state);
    if (dtype == CR_BOOL && kind == DATA_NORMAL) return r >> 63; /* any byte but 0 is true */
    switch (kind) {
        case DATA_ZEROS:
            return 0;
        case DATA_LARGEST:
            return r % 16 == 0 ? (uint64_t)1 << (8 * cr_dtype_size(dtype) - 1) : UINT64_MAX;
        case DATA_OUTLIERS:
            return r % 10007 == 0 ? r : r >> 62;
        case DATA_DECADES_10:
            return (uint64_t)(int64_t)(normal(state) * 100);
        default:
            return r;
    }
}

void case_fill(uint8_t *data, uint64_t n, cr_dtype dtype, enum cr_data_kind kind, uint64_t seed) {
    uint64_t state = seed * 0xd1342543de82ef95u + (uint64_t)kind * 97 + (uint64_t)dtype;
    size_t size = cr_dtype_size(dtype);
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    struct shape s = shape_of(dtype);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = floats ? float_element(&state, kind, s, i, n) : int_element(&state, kind, dtype);
        memcpy(data + i * size, &bits, size);
    }
}
