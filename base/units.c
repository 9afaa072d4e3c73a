/* units: see units.h. Thread: any. Owner: the caller. */
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct named {
    const char *name;
    uint64_t worth; /* in the option's unit */
} named;

/* The largest first. A time that is no whole number of the option's unit has no name here. */
enum { MOST_NAMES = 8 };
static const struct {
    const char *wanted;
    named names[MOST_NAMES];
} units[] = {
    [CR_UNIT_COUNT] = {"a whole number of decimal digits below 2^64", {{0}}},
    [CR_UNIT_BYTES] = {"a size: a whole number of bytes, or of KiB, MiB, GiB, TiB, PiB or EiB, as in 64MiB",
                       {{"EiB", 1ull << 60},
                        {"PiB", 1ull << 50},
                        {"TiB", 1ull << 40},
                        {"GiB", 1ull << 30},
                        {"MiB", 1ull << 20},
                        {"KiB", 1ull << 10},
                        {"B", 1}}},
    [CR_UNIT_MS] = {"a time: a whole number of ms, or of s, min or h, as in 30s",
                    {{"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}}},
    [CR_UNIT_US] = {"a time: a whole number of us, or of ms or s, as in 50us",
                    {{"s", 1000000}, {"ms", 1000}, {"us", 1}}},
};

bool cr_digits(const char *text, size_t length, unsigned base, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit >= base || *value > (UINT64_MAX - digit) / base) return false;
        *value = *value * base + digit;
    }
    return length > 0;
}

const char *cr_units_parse(cr_unit unit, const char *text, uint64_t *value) {
    const size_t length = strspn(text, "0123456789");
    const char *name = text + length;
    uint64_t worth = *name ? 0 : 1;
    for (const named *n = units[unit].names; n->name; n++)
        if (strcmp(n->name, name) == 0) worth = n->worth;
    if (!worth || !cr_digits(text, length, 10, value) || *value > UINT64_MAX / worth) return units[unit].wanted;
    *value *= worth;
    return NULL;
}

const char *cr_units_text(cr_unit unit, uint64_t value, char out[CR_UNITS_TEXT]) {
    const named *n = units[unit].names;
    while (n->name && (!value || value % n->worth)) n++;
    if (n->name)
        snprintf(out, CR_UNITS_TEXT, "%" PRIu64 "%s", value / n->worth, n->name);
    else
        snprintf(out, CR_UNITS_TEXT, "%" PRIu64, value);
    return out;
}

const char *cr_units_name(cr_unit unit, size_t n) { return n < MOST_NAMES ? units[unit].names[n].name : NULL; }
