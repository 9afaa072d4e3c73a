/* decimal: any number of up to 4 KiB, digit by digit. Where the first 19 digits leave the rounding open, strtod settles it.
 *
 * Thread: any. Owner: the locale is the process's, made once and never freed. */
#include "client/cli/decimal.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

const uint64_t decimal_powers[DECIMAL_LAST_POWER - DECIMAL_FIRST_POWER + 1][2] = {
#include "client/cli/powers.def"
};

static locale_t plain; /* NULL: no memory for it */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", NULL); }

/* What glibc makes of it: correctly rounded, slowly. */
static double settle(const uint8_t *text, size_t length) {
    char copy[DECIMAL_MOST_BYTES + 1];
    memcpy(copy, text, length);
    copy[length] = '\0';
    pthread_once(&once, make_plain);
    return plain != NULL ? strtod_l(copy, NULL, plain) : strtod(copy, NULL);
}

/* Whether it is the word, whose letters are small, in any case. */
static bool is_word(const uint8_t *text, size_t length, const char *word) {
    if (length != strlen(word)) return false;
    for (size_t i = 0; i < length; i++)
        if ((text[i] | 0x20) != word[i]) return false;
    return true;
}

static decimal parse_word(const uint8_t *text, size_t length, bool minus) {
    decimal d = {.kind = DECIMAL_REAL};
    if (is_word(text, length, "inf") || is_word(text, length, "infinity"))
        d.real = (double)INFINITY;
    else if (is_word(text, length, "nan"))
        d.real = (double)NAN;
    else
        return (decimal){.kind = DECIMAL_NONE};
    if (minus) d.real = -d.real;
    return d;
}

/* The digits of a number, up to 19 of them from the first that is not 0. */
typedef struct figures {
    uint64_t digits;
    int64_t power; /* of ten, that the digits are times */
    int kept;
    bool any, cut; /* there is a digit; digits other than 0 are left out */
} figures;

static void take_digit(figures *f, uint8_t c, bool behind_point) {
    enum { MOST_DIGITS = 19 };
    f->any = true;
    if (f->kept == MOST_DIGITS) {
        f->cut |= c != '0';
        f->power += !behind_point;
        return;
    }
    f->digits = f->digits * 10 + (uint64_t)(c - '0');
    f->kept += f->digits != 0;
    f->power -= behind_point;
}

/* "e-12" and no more; false: it is none. Far beyond all doubles an exponent stays where it is. */
static bool take_exponent(const uint8_t *p, const uint8_t *end, int64_t *power) {
    enum { FAR = 1000000 };
    const bool minus = p + 1 < end && p[1] == '-', sign = p + 1 < end && (minus || p[1] == '+');
    int64_t value = 0;
    p += 1 + sign;
    if (p == end) return false;
    for (; p < end && decimal_is_digit(*p); p++)
        if (value < FAR) value = value * 10 + (*p - '0');
    *power += minus ? -value : value;
    return p == end;
}

static decimal parse_integer(const figures *f, bool minus) {
    const uint64_t most = (uint64_t)INT64_MAX + minus;
    if (f->power != 0 || f->digits > most) return (decimal){.kind = DECIMAL_WIDE};
    return (decimal){.kind = DECIMAL_INTEGER, .integer = minus ? (int64_t)(0 - f->digits) : (int64_t)f->digits};
}

decimal decimal_parse(const uint8_t *text, size_t length) {
    decimal d = {.kind = DECIMAL_NONE};
    if (length == 0 || length > DECIMAL_MOST_BYTES) return d;
    const uint8_t *end = text + length, *p = text;
    const bool minus = *p == '-';
    p += minus || *p == '+';
    if (p < end && ((*p | 0x20) == 'i' || (*p | 0x20) == 'n')) return parse_word(p, (size_t)(end - p), minus);
    figures f = {.digits = 0};
    bool point = false;
    for (; p < end && (decimal_is_digit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.')
            point = true;
        else
            take_digit(&f, *p, point);
    }
    const bool exponent = p < end && (*p | 0x20) == 'e';
    if (!f.any || (p < end && !exponent)) return d;
    d.kind = DECIMAL_REAL;
    if (!point && !exponent) d = parse_integer(&f, minus);
    if (exponent && !take_exponent(p, end, &f.power)) return (decimal){.kind = DECIMAL_NONE};
    double above = 0;
    if (!decimal_round(f.digits, f.power, &d.real) ||
        (f.cut && (!decimal_round(f.digits + 1, f.power, &above) || above != d.real))) {
        d.real = settle(text, length);
        return d;
    }
    if (minus) d.real = -d.real;
    return d;
}
