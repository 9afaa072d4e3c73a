/* text: values as text that reads back to the same value, whatever the locale.
 *
 * Floats: the fewest digits that read back to the same number of the same type. Every narrower float is exactly a double, so
 * a candidate is read as a double and rounded to the type, and compared. The caller's thread may treat floats in a way of its own:
 * what computes in them stands in a function between enter and leave.
 *
 * Thread: any; nothing here holds state. */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/value.h"
#include "kernels/core/digest.h"
#include "kernels/core/dtype.h"
#include "kernels/core/float_state.h"
#include "kernels/core/round.h"

enum { LIMBS = CR_WIRE_VALUE_BYTES / 4, BILLION = 1000000000 };

typedef struct float_state {
    uint64_t control;
    int rounds;
} float_state;

/* printf and strtod of glibc round as the x87 does on x86-64, which cr_float_enter leaves alone. */
static float_state enter(void) {
    const float_state state = {cr_float_enter(), fegetround()};
    if (state.rounds != FE_TONEAREST) fesetround(FE_TONEAREST);
    return state;
}

static void leave(float_state state) {
    if (state.rounds != FE_TONEAREST) fesetround(state.rounds);
    cr_float_leave(state.control);
}

static double load_float(cr_dtype dtype, const uint8_t *bytes) {
    uint64_t bits = 0;
    memcpy(&bits, bytes, cr_dtype_size(dtype));
    return cr_float_value(dtype, bits);
}

/* strtod rounds to f64, from where a second rounding to f32 might go the other way; narrower types have digits to spare. */
static bool reads_back(const char *text, double value, cr_dtype dtype) {
    if (dtype == CR_F64) return strtod(text, NULL) == value;
    if (dtype == CR_F32) return (double)strtof(text, NULL) == value;
    return cr_float_value(dtype, cr_float_nearest(dtype, strtod(text, NULL))) == value;
}

/* The locale's decimal point, of however many bytes, becomes '.'. */
static void plain_point(char *text) {
    char *out = text;
    bool in_point = false;
    for (const char *p = text; *p != '\0'; p++) {
        bool plain = (*p >= '0' && *p <= '9') || strchr("+-eExXpPabcdfABCDF", *p) != NULL;
        if (plain)
            *out++ = *p;
        else if (!in_point)
            *out++ = '.';
        in_point = !plain;
    }
    *out = '\0';
}

/* The next number of as many digits, away from zero. False when all digits are 9: a shorter number was tried before. */
static bool next_digits(char *text) {
    for (char *p = strchr(text, 'e') - 1; p >= text && *p != '-'; p--) {
        if (*p < '0' || *p > '9') continue; /* the point */
        if (*p != '9') {
            ++*p;
            return true;
        }
        *p = '0';
    }
    return false;
}

static void float_text(double value, cr_dtype dtype, char out[CURED_TEXT_BYTES]) {
    if (isnan(value)) {
        strcpy(out, "nan");
        return;
    }
    if (isinf(value)) {
        strcpy(out, value < 0 ? "-inf" : "inf");
        return;
    }
    int digits = 1, power;
    const double part = frexp(value, &power);
    const bool uneven = part == 0.5 || part == -0.5; /* its neighbour towards zero is nearer than the other */
    for (; digits <= 17; digits++) {                 /* 17 always read back */
        snprintf(out, CURED_TEXT_BYTES, "%.*e", digits - 1, value);
        if (digits == 17 || reads_back(out, value, dtype)) break;
        if (uneven && next_digits(out) && reads_back(out, value, dtype)) break;
    }
    int exponent = atoi(strchr(out, 'e') + 1);
    /* Without an exponent where that is short: 100, not 1e+02. Whole numbers are then written in full. */
    if (exponent >= -4 && exponent < 16) {
        const int decimals = exponent < digits ? digits - 1 - exponent : 0;
        snprintf(out, CURED_TEXT_BYTES, "%.*f", decimals, decimals > 0 ? strtod(out, NULL) : value);
    }
    plain_point(out);
}

/* Two's complement of len bytes as decimal digits, by division of 32-bit limbs. */
static void integer_text(const uint8_t *bytes, size_t len, bool is_signed, char out[CURED_TEXT_BYTES]) {
    bool negative = is_signed && (bytes[len - 1] & 0x80) != 0;
    uint8_t wide[CR_WIRE_VALUE_BYTES];
    uint32_t limbs[LIMBS], parts[10];
    memset(wide, negative ? 0xff : 0, sizeof wide);
    memcpy(wide, bytes, len);
    memcpy(limbs, wide, sizeof limbs);
    for (int i = 0, carry = 1; negative && i < LIMBS; i++) {
        limbs[i] = ~limbs[i] + (uint32_t)carry;
        carry = carry && limbs[i] == 0;
    }
    int count = 0;
    bool zero;
    do { /* 2^256 has 78 digits: 9 parts of 9 at most */
        uint64_t rest = 0;
        zero = true;
        for (int i = LIMBS - 1; i >= 0; i--) {
            uint64_t v = rest << 32 | limbs[i];
            limbs[i] = (uint32_t)(v / BILLION);
            rest = v % BILLION;
            zero = zero && limbs[i] == 0;
        }
        parts[count++] = (uint32_t)rest;
    } while (!zero);
    int n = snprintf(out, CURED_TEXT_BYTES, "%s%u", negative ? "-" : "", parts[count - 1]);
    for (int i = count - 2; i >= 0; i--) n += snprintf(out + n, CURED_TEXT_BYTES - (size_t)n, "%09u", parts[i]);
}

/* Guarded by its caller. */
static __attribute__((noinline)) void element_text(cr_dtype dtype, const uint8_t *bytes, char out[CURED_TEXT_BYTES]) {
    float_text(load_float(dtype, bytes), dtype, out);
}

cured_status cured_text(cured_dtype dtype, const void *element, size_t element_bytes, char *out, size_t bytes) {
    char text[CURED_TEXT_BYTES];
    cr_dtype d = (cr_dtype)dtype;
    size_t size = cured_dtype_size(dtype);
    bool fits = d == CR_BIGINT ? element_bytes >= 1 && element_bytes <= CR_WIRE_VALUE_BYTES
                               : size != 0 && element_bytes == size;
    if (!fits || element == NULL) return CURED_INVALID_ARGUMENT;
    const uint8_t *p = element;
    cr_kind kind = cr_dtype_kind(d);
    if (kind == CR_KIND_BOOL) {
        strcpy(text, p[0] != 0 ? "true" : "false");
    } else if (kind == CR_KIND_FLOAT) {
        const float_state state = enter();
        element_text(d, p, text);
        leave(state);
    } else if (d == CR_DIGEST) {
        cr_digest_text(p, text);
    } else {
        integer_text(p, element_bytes, kind != CR_KIND_UINT, text);
    }
    size_t len = strlen(text);
    if (len >= bytes) return CURED_INVALID_ARGUMENT;
    memcpy(out, text, len + 1);
    return CURED_OK;
}

cured_status cured_value_text(const cured_value *value, char *out, size_t bytes) {
    if (value->status != CR_OK) return (cured_status)value->status;
    return cured_text((cured_dtype)value->dtype, value->bytes, value->len, out, bytes);
}

/* Guarded by its caller. */
static __attribute__((noinline)) void hex_text(const cured_value *value, char out[CURED_TEXT_BYTES]) {
    const double d = load_float((cr_dtype)value->dtype, value->bytes);
    if (isfinite(d)) {
        snprintf(out, CURED_TEXT_BYTES, "%a", d);
        plain_point(out);
    } else {
        float_text(d, CR_F64, out);
    }
}

cured_status cured_value_hex(const cured_value *value, char *out, size_t bytes) {
    char text[CURED_TEXT_BYTES];
    if (value->status != CR_OK) return (cured_status)value->status;
    if (cr_dtype_kind((cr_dtype)value->dtype) != CR_KIND_FLOAT) return CURED_INVALID_ARGUMENT;
    const float_state state = enter();
    hex_text(value, text);
    leave(state);
    size_t len = strlen(text);
    if (len >= bytes) return CURED_INVALID_ARGUMENT;
    memcpy(out, text, len + 1);
    return CURED_OK;
}

/* Guarded by its caller. */
static __attribute__((noinline)) cured_status to_double(const cured_value *value, double *out) {
    char text[CURED_TEXT_BYTES], back[CURED_TEXT_BYTES];
    cr_dtype dtype = (cr_dtype)value->dtype;
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
        *out = load_float(dtype, value->bytes);
        return CURED_OK;
    }
    if (cr_dtype_kind(dtype) == CR_KIND_BOOL) {
        *out = value->bytes[0] != 0 ? 1.0 : 0.0;
        return CURED_OK;
    }
    if (cr_dtype_kind(dtype) == CR_KIND_NONE) return CURED_INVALID_ARGUMENT; /* a digest is no number */
    integer_text(value->bytes, value->len, cr_dtype_kind(dtype) != CR_KIND_UINT, text);
    *out = strtod(text, NULL);
    snprintf(back, sizeof back, "%.0f", *out);
    return strcmp(text, back) == 0 ? CURED_OK : CURED_OUT_OF_RANGE;
}

cured_status cured_value_double(const cured_value *value, double *out) {
    if (value->status != CR_OK) return (cured_status)value->status;
    const float_state state = enter();
    const cured_status status = to_double(value, out);
    leave(state);
    return status;
}
