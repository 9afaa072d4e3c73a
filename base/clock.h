/* clock: monotonic time.
 *
 * Thread: any. */
#ifndef CURED_BASE_CLOCK_H
#define CURED_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cr_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t cr_now_ms(void) { return cr_now_ns() / 1000000u; }

#endif
