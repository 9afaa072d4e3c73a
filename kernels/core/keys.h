/* keys: what a reduction by key means: each row of the input has an integer, and output (g, c) reduces column c of the rows whose key
 * is g, by the same exact rules as a whole array (docs/NUMERICS.md, "By key"). An array of values has rows of one column.
 *
 * Thread: any; nothing here holds state or allocates. */
#ifndef CURED_KERNELS_CORE_KEYS_H
#define CURED_KERNELS_CORE_KEYS_H

#include "kernels/core/partial.h"

enum { CR_KEYS_STATE_LOG2 = 30 }; /* of the bytes that the states of all groups may take: 1 GiB */

typedef struct cr_keys {
    const uint8_t *data; /* packed, of any alignment; they may change meanwhile (then the answer is some answer) */
    uint64_t count;      /* of rows */
    uint64_t groups;     /* keys are 0 … groups − 1 */
    uint64_t columns;    /* of a row; not 0 */
    cr_dtype dtype;      /* an integer type */
    bool drop;           /* rows whose key is outside are for no group; otherwise the first is an error */
} cr_keys;

/* Checks the type, and that rows, groups and answers of an input of dtype fit memory (by division). */
cr_status cr_keys_check(const cr_keys *keys, cr_dtype dtype, cr_error *error);
/* Whether op has an answer for each key: a product of floats goes by places, and a digest is of all bytes. */
cr_status cr_keys_takes(cr_op op, cr_dtype dtype, cr_error *error);
/* Key number `at`, widened: what is negative is beyond every group. */
uint64_t cr_keys_at(const cr_keys *keys, uint64_t at);
/* The greatest key and one, as bincount counts groups: 0 where no key is a number of one. UINT64_MAX of the key UINT64_MAX. */
uint64_t cr_keys_groups(const cr_keys *keys);
/* The sentence for key number `at`, which is outside. */
cr_status cr_keys_outside(const cr_keys *keys, uint64_t at, uint64_t key, cr_error *error);

static inline uint64_t cr_keys_answers(const cr_keys *keys) { return keys->groups * keys->columns; }
static inline uint64_t cr_keys_elements(const cr_keys *keys) { return keys->count * keys->columns; }

#endif
