/* units: sizes and times as people write them: 64MiB, 50us, 30s. A number alone is in the option's own unit.
 *
 * Thread: any. Owner: the caller. */
#ifndef CURED_BASE_UNITS_H
#define CURED_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cr_unit { CR_UNIT_COUNT, CR_UNIT_BYTES, CR_UNIT_MS, CR_UNIT_US } cr_unit;

enum { CR_UNITS_TEXT = 32 };

/* Digits of the base only: no sign, no space, no prefix. False when there is another character, or it passes 2^64 - 1. */
bool cr_digits(const char *text, size_t length, unsigned base, uint64_t *value);
/* NULL, or what text should have been ("is not …"). Units change nothing of the value: 1s of a CR_UNIT_MS is 1000. */
const char *cr_units_parse(cr_unit unit, const char *text, uint64_t *value);
/* With the largest unit that gives a whole number: "64MiB". */
const char *cr_units_text(cr_unit unit, uint64_t value, char out[CR_UNITS_TEXT]);
/* The n-th unit that may follow a number, the largest first; NULL: there are fewer. */
const char *cr_units_name(cr_unit unit, size_t n);

#endif
