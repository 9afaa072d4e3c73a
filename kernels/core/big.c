/* big: natural numbers of fixed capacity on the stack.
 *
 * Thread: any. Owner: the caller. Nothing allocates. */
#include "kernels/core/big.h"

#include <assert.h>
#include <string.h>

#include "kernels/core/limbs.h"

static void trim(cr_big *x) {
    while (x->n > 0 && x->d[x->n - 1] == 0) x->n--;
}

#ifndef CURED_SUM_ALONE
void cr_big_set(cr_big *x, unsigned __int128 value) {
    x->n = 0;
    for (; value != 0; value >>= 32) x->d[x->n++] = (uint32_t)value;
}
#endif

bool cr_big_from_limbs(cr_big *x, const int64_t *limb, unsigned count) {
    /* One pass with a signed carry gives two's complement digits and a signed rest above them. */
    assert(count + 2 <= CR_BIG_DIGITS);
    int64_t carry = 0;
    while (count > 0 && limb[count - 1] == 0) count--; /* most sums end far below the largest number */
    for (unsigned i = 0; i < count; i++) {
        /* A limb may be near ±2^62 and the carry below 2^32, so the sum fits. */
        int64_t sum = limb[i] + carry;
        x->d[i] = (uint32_t)sum;
        carry = sum >> 32;
    }
    x->d[count] = (uint32_t)carry;
    x->d[count + 1] = (uint32_t)(carry >> 32);
    x->n = count + 2;
    bool negative = carry < 0;
    if (negative) {
        uint64_t one = 1;
        for (unsigned i = 0; i < x->n; i++) {
            one += (uint32_t)~x->d[i];
            x->d[i] = (uint32_t)one;
            one >>= 32;
        }
    }
    trim(x);
    return negative;
}

unsigned cr_big_bits(const cr_big *x) {
    if (x->n == 0) return 0;
    return 32 * x->n - (unsigned)__builtin_clz(x->d[x->n - 1]);
}

#ifndef CURED_SUM_ALONE
int cr_big_compare(const cr_big *a, const cr_big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;) {
        if (a->d[i] != b->d[i]) return a->d[i] < b->d[i] ? -1 : 1;
    }
    return 0;
}

void cr_big_shift_left(cr_big *x, unsigned bits) {
    unsigned digits = bits / 32, shift = bits % 32;
    if (x->n == 0 || bits == 0) return;
    assert(x->n + digits + 1 <= CR_BIG_DIGITS);
    x->d[x->n + digits] = 0;
    for (uint32_t i = x->n; i-- > 0;) {
        uint64_t wide = (uint64_t)x->d[i] << shift;
        x->d[i + digits + 1] |= (uint32_t)(wide >> 32);
        x->d[i + digits] = (uint32_t)wide;
    }
    memset(x->d, 0, digits * sizeof x->d[0]);
    x->n += digits + 1;
    trim(x);
}
#endif

bool cr_big_shift_right(cr_big *x, unsigned bits) {
    unsigned digits = bits / 32, shift = bits % 32;
    bool lost = false;
    if (digits >= x->n) {
        lost = x->n > 0;
        x->n = 0;
        return lost;
    }
    for (unsigned i = 0; i < digits; i++) lost |= x->d[i] != 0;
    lost |= (x->d[digits] & (((uint32_t)1 << shift) - 1)) != 0;
    for (uint32_t i = digits; i < x->n; i++) {
        uint64_t wide = x->d[i];
        if (i + 1 < x->n) wide |= (uint64_t)x->d[i + 1] << 32;
        x->d[i - digits] = (uint32_t)(wide >> shift);
    }
    x->n -= digits;
    trim(x);
    return lost;
}

#ifndef CURED_SUM_ALONE
void cr_big_add(cr_big *a, const cr_big *b) {
    const uint32_t n = a->n > b->n ? a->n : b->n;
    uint64_t carry = 0;
    assert(n < CR_BIG_DIGITS);
    for (uint32_t i = 0; i < n; i++) {
        carry += (uint64_t)(i < a->n ? a->d[i] : 0) + (i < b->n ? b->d[i] : 0);
        a->d[i] = (uint32_t)carry;
        carry >>= 32;
    }
    a->d[n] = (uint32_t)carry;
    a->n = n + 1;
    trim(a);
}

void cr_big_subtract(cr_big *a, const cr_big *b) {
    assert(cr_big_compare(a, b) >= 0);
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        int64_t digit = (int64_t)a->d[i] - (i < b->n ? b->d[i] : 0) + borrow;
        a->d[i] = (uint32_t)digit;
        borrow = digit >> 32;
    }
    trim(a);
}

void cr_big_multiply(cr_big *out, const cr_big *a, const cr_big *b) {
    assert(a->n + b->n <= CR_BIG_DIGITS && out != a && out != b);
    out->n = a->n + b->n;
    memset(out->d, 0, out->n * sizeof out->d[0]);
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < b->n; j++) {
            carry += (uint64_t)a->d[i] * b->d[j] + out->d[i + j];
            out->d[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        out->d[i + b->n] = (uint32_t)carry;
    }
    trim(out);
}

uint64_t cr_big_divide(cr_big *x, uint64_t divisor) {
    uint64_t rest = 0;
    if (divisor >> 32 == 0) {
        for (uint32_t i = x->n; i-- > 0;) {
            uint64_t wide = rest << 32 | x->d[i];
            x->d[i] = (uint32_t)(wide / divisor);
            rest = wide % divisor;
        }
    } else {
        for (uint32_t i = x->n; i-- > 0;) {
            unsigned __int128 wide = (unsigned __int128)rest << 32 | x->d[i];
            x->d[i] = (uint32_t)(wide / divisor);
            rest = (uint64_t)(wide % divisor);
        }
    }
    trim(x);
    return rest;
}

unsigned __int128 cr_big_divide_long(cr_big *x, const cr_big *divisor) {
    const uint32_t n = divisor->n, high = divisor->d[n - 1], second = divisor->d[n - 2];
    unsigned __int128 quotient = 0;
    assert(n >= 2 && high >> 31 == 1 && x->n < CR_BIG_DIGITS);
    if (x->n < n) return 0;
    x->d[x->n] = 0;
    for (uint32_t at = x->n - n + 1; at-- > 0;) {
        uint32_t *d = x->d + at;
        const uint64_t upper = (uint64_t)d[n] << 32 | d[n - 1];
        uint64_t digit = upper / high, rest = upper % high, carry = 0;
        while (rest >> 32 == 0 && (digit >> 32 != 0 || digit * second > (rest << 32 | d[n - 2]))) {
            digit--;
            rest += high;
        }
        int64_t borrow = 0;
        for (uint32_t i = 0; i < n; i++) {
            carry += digit * divisor->d[i];
            borrow += (int64_t)d[i] - (uint32_t)carry;
            d[i] = (uint32_t)borrow;
            borrow >>= 32;
            carry >>= 32;
        }
        borrow += (int64_t)d[n] - (int64_t)carry;
        d[n] = (uint32_t)borrow;
        if (borrow < 0) { /* one too many, which is rare */
            digit--;
            carry = 0;
            for (uint32_t i = 0; i < n; i++) {
                carry += (uint64_t)d[i] + divisor->d[i];
                d[i] = (uint32_t)carry;
                carry >>= 32;
            }
        }
        quotient = quotient << 32 | digit;
    }
    x->n = n;
    trim(x);
    return quotient;
}

/* floor(sqrt(x)) and what is left, for x >= 2^62. The processor's root is off by one at most, in any rounding mode: x rounded to a double, and
 * its root rounded again, lie within 2^-52 of the root, which is below 2^32. */
static uint64_t root_of_64(uint64_t x, uint64_t *rest) {
    uint64_t root = (uint64_t)__builtin_sqrt((double)x);
    if (root > UINT32_MAX) root = UINT32_MAX;
    root -= root * root > x;
    root += x - root * root > 2 * root;
    *rest = x - root * root;
    return root;
}

/* The same of 128 bits, for x >= 2^126, from the root of the upper half and a division (Zimmermann, "Karatsuba Square Root", INRIA
 * RR-3805, 1999). */
uint64_t cr_root_of_128(unsigned __int128 x) {
    uint64_t rest;
    const uint64_t upper = root_of_64((uint64_t)(x >> 64), &rest);
    const unsigned __int128 dividend = (unsigned __int128)rest << 32 | (uint32_t)(x >> 32);
    const unsigned __int128 quotient = dividend / (2 * upper), left = dividend - quotient * (2 * upper);
    const unsigned __int128 root = ((unsigned __int128)upper << 32) + quotient;
    const __int128 remainder = (__int128)(left << 32 | (uint32_t)x) - (__int128)(quotient * quotient);
    return (uint64_t)(remainder < 0 ? root - 1 : root);
}

bool cr_big_root(cr_big *x) {
    const unsigned bits = cr_big_bits(x), up = (128 - bits) / 2 * 2;
    assert(bits <= 128);
    if (bits == 0) return false;
    const unsigned __int128 value = cr_big_low(x), root = cr_root_of_128(value << up) >> up / 2;
    cr_big_set(x, root);
    return root * root != value;
}
#endif

unsigned __int128 cr_big_low(const cr_big *x) {
    unsigned __int128 value = 0;
    for (uint32_t i = x->n < 4 ? x->n : 4; i-- > 0;) value = value << 32 | x->d[i];
    return value;
}

#ifndef CURED_SUM_ALONE
void cr_big_decimal(const cr_big *x, bool negative, char *text, size_t cap) {
    char digits[CR_BIG_DIGITS * 10 + 2];
    size_t at = sizeof digits;
    cr_big rest = *x;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + cr_big_divide(&rest, 10));
    } while (rest.n != 0);
    if (negative) digits[--at] = '-';
    size_t len = sizeof digits - at;
    if (cap == 0) return;
    if (len > cap) len = cap;
    memcpy(text, digits + at, len);
    text[len - 1] = '\0';
}
#endif
