/* hash: the place of a key in a table, where clients may choose the keys.
 *
 * Multiply-shift with a random odd factor. Of any two keys the chance that they share one of 2^bits places is 2 / 2^bits at most,
 * whatever the keys are (Dietzfelbinger and others, 1997). So a client that does not know the factor cannot choose keys that
 * collide: n of them make n² / 2^bits colliding pairs on average, as keys drawn at random do.
 *
 * Thread: any. Owner: whoever keeps the factor. */
#ifndef CURED_BASE_HASH_H
#define CURED_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

#include "base/clock.h"

/* The odd factor of one table's hashes. Where Linux has no random bytes yet, the time and an address stand in. */
static inline uint64_t cr_hash_factor(void) {
    uint64_t factor;
    if (getrandom(&factor, sizeof factor, GRND_NONBLOCK) != (ssize_t)sizeof factor)
        factor = cr_now_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&factor;
    return factor | 1;
}

/* bits: 1 to 63. */
static inline size_t cr_hash(uint64_t factor, uint64_t key, unsigned bits) {
    return (size_t)(factor * key >> (64 - bits));
}

#endif
