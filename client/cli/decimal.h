/* decimal: numbers written out, each rounded correctly to a double (to nearest, ties to even), whatever the locale.
 *
 * Up to 19 digits go by Lemire's way ("Number parsing at a gigabyte per second", 2021): the digits as an integer, times the first 128
 * bits of a power of ten, which decide nearly always. strtod decides the rest (decimal_parse).
 *
 * Thread: any; nothing here holds state but one locale, made once. */
#ifndef CURED_CLIENT_CLI_DECIMAL_H
#define CURED_CLIENT_CLI_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum decimal_kind {
    DECIMAL_NONE,    /* no number */
    DECIMAL_INTEGER, /* digits alone, within an int64_t */
    DECIMAL_WIDE,    /* digits alone, beyond it */
    DECIMAL_REAL,    /* with a point or an exponent; or inf, infinity, nan */
} decimal_kind;

typedef struct decimal {
    decimal_kind kind;
    double real;     /* of every kind but DECIMAL_NONE */
    int64_t integer; /* of DECIMAL_INTEGER */
} decimal;

enum { DECIMAL_MOST_BYTES = 4096, DECIMAL_FIRST_POWER = -342, DECIMAL_LAST_POWER = 308 };

/* Takes text[0 … length), all of it: [+-] digits [.digits] [e[+-]digits], digits on one side of the point at least; or inf, infinity,
 * nan in any case. length: up to DECIMAL_MOST_BYTES, more is no number. */
decimal decimal_parse(const uint8_t *text, size_t length);

/* The first 128 bits of powers of five from DECIMAL_FIRST_POWER on: the upper 64, the lower. */
extern const uint64_t decimal_powers[DECIMAL_LAST_POWER - DECIMAL_FIRST_POWER + 1][2];

static inline double decimal_of_bits(uint64_t bits) {
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

/* -real if `minus`, without a branch: signs come at random. */
static inline double decimal_sign(double real, bool minus) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return decimal_of_bits(bits ^ (uint64_t)minus << 63);
}

/* digits·10^power, rounded; false: undecided. */
static inline bool decimal_round(uint64_t digits, int64_t power, double *real) {
    enum { MANTISSA = 52, SPARE = 3, BIAS = 1023, INFINITE = 0x7ff };
    const uint64_t low_bits = UINT64_MAX >> (MANTISSA + SPARE);
    *real = 0;
    if (digits == 0 || power < DECIMAL_FIRST_POWER) return true;
    *real = decimal_of_bits((uint64_t)INFINITE << MANTISSA);
    if (power > DECIMAL_LAST_POWER) return true;
    const int zeros = __builtin_clzll(digits);
    const uint64_t *five = decimal_powers[power - DECIMAL_FIRST_POWER];
    unsigned __int128 product = (unsigned __int128)(digits << zeros) * five[0];
    if ((uint64_t)(product >> 64 & low_bits) == low_bits)
        product += (uint64_t)((unsigned __int128)(digits << zeros) * five[1] >> 64);
    const uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    if (low == UINT64_MAX && (power < -27 || power > 55)) return false;
    const int upper = (int)(high >> 63), shift = upper + 64 - MANTISSA - SPARE;
    uint64_t mantissa = high >> shift;
    int64_t exponent = (power * (152170 + 65536) >> 16) + 63 + upper - zeros + BIAS;
    if (exponent <= 0) { /* subnormal */
        *real = 0;
        if (exponent <= -63) return true;
        mantissa >>= 1 - exponent;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        *real = decimal_of_bits(mantissa); /* 2^52: the least normal number, whose exponent the bit itself is */
        return true;
    }
    /* Half-way between two doubles: only for these powers can the product be exact. To even then. */
    if (low <= 1 && power >= -4 && power <= 23 && (mantissa & 3) == 1 && mantissa << shift == high)
        mantissa &= ~UINT64_C(1);
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >= UINT64_C(2) << MANTISSA) {
        mantissa = UINT64_C(1) << MANTISSA;
        exponent++;
    }
    if (exponent < INFINITE)
        *real = decimal_of_bits((mantissa & ~(UINT64_C(1) << MANTISSA)) | (uint64_t)exponent << MANTISSA);
    return true;
}

static inline bool decimal_is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }

static inline uint64_t decimal_eight(const uint8_t *p) {
    uint64_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return bytes;
}

/* A bit at least in each byte that is no digit, the lowest of them first; those above it may be anything. */
static inline uint64_t decimal_others(uint64_t bytes) {
    const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0), six = UINT64_C(0x0606060606060606);
    return ((bytes & high) | ((bytes + six) & high) >> 4) ^ UINT64_C(0x3333333333333333);
}

/* The number that eight digits are; the first of them is the lowest byte. */
static inline uint64_t decimal_of_eight(uint64_t bytes) {
    const uint64_t mask = UINT64_C(0x000000ff000000ff);
    bytes -= UINT64_C(0x3030303030303030);
    bytes = bytes * 10 + (bytes >> 8);
    return ((bytes & mask) * (100 + (UINT64_C(1000000) << 32)) +
            (bytes >> 16 & mask) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* Adds the digits at p to *digits, which may overflow; where they end. Fewer than eight are taken together, too, because a branch for
 * each is guessed wrong. */
static inline const uint8_t *decimal_run(const uint8_t *p, uint64_t *digits) {
    static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t bytes = decimal_eight(p), others;
    for (; (others = decimal_others(bytes)) == 0; bytes = decimal_eight(p += 8))
        *digits = *digits * 100000000 + decimal_of_eight(bytes);
    const unsigned count = (unsigned)__builtin_ctzll(others) / 8; /* zeros before them make eight */
    bytes = bytes << (56 - 8 * count) << 8 | UINT64_C(0x3030303030303030) >> 8 * count;
    *digits = *digits * tens[count] + decimal_of_eight(bytes);
    return p + count;
}

/* "e-12" at p to *power; where it ends, NULL: not so simple. */
static inline const uint8_t *decimal_exponent(const uint8_t *p, int64_t *power) {
    enum { MOST_DIGITS = 4 };
    const bool minus = p[1] == '-';
    const uint8_t *first = p + 1 + (minus || p[1] == '+');
    int64_t value = 0;
    for (p = first; decimal_is_digit(*p) && p - first <= MOST_DIGITS; p++) value = value * 10 + (*p - '0');
    if (p == first || p - first > MOST_DIGITS) return NULL;
    *power += minus ? -value : value;
    return p;
}

/* The same as decimal_parse of a number that begins at p and ends with the first byte that can be none of a number's; where it ends.
 * NULL: none, or one that is not so simple. Eight bytes beyond that byte can be read. */
static inline const uint8_t *decimal_quick(const uint8_t *p, decimal *out) {
    enum { MOST_DIGITS = 19, INTEGER_DIGITS = 18 };
    const bool minus = *p == '-';
    p += minus || *p == '+';
    const uint8_t *first = p;
    uint64_t digits = 0;
    int64_t power = 0;
    for (; decimal_is_digit(*p); p++) digits = digits * 10 + (uint64_t)(*p - '0');
    ptrdiff_t count = p - first;
    if (*p == '.') {
        const uint8_t *point = p;
        p = decimal_run(p + 1, &digits);
        power = point + 1 - p;
        count += p - point - 1;
    } else if (count - 1 < INTEGER_DIGITS && (*p | 0x20) != 'e') {
        if (count == 0) return NULL;
        const int64_t integer = (int64_t)digits, sign = -(int64_t)minus;
        *out = (decimal){DECIMAL_INTEGER, decimal_sign((double)integer, minus), (integer ^ sign) - sign};
        return p;
    } else if ((*p | 0x20) != 'e') {
        return NULL;
    }
    if (count == 0) return NULL;
    if (count > MOST_DIGITS) { /* zeros before the first digit that counts do no harm */
        for (; *first == '0' || *first == '.'; first++) count -= *first == '0';
        if (count > MOST_DIGITS) return NULL;
    }
    if ((*p | 0x20) == 'e') {
        p = decimal_exponent(p, &power);
        if (p == NULL) return NULL;
    }
    double real;
    if (!decimal_round(digits, power, &real)) return NULL;
    *out = (decimal){DECIMAL_REAL, decimal_sign(real, minus), 0};
    return p;
}

#endif
