/* cases: how the drivers of the property runs read their cases, and the random numbers by which they cut and order them.
 * Included once by each driver.
 *
 * Thread: one. Owner: the driver. */
#ifndef CURED_TESTS_PROPERTY_CASES_H
#define CURED_TESTS_PROPERTY_CASES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const isas[] = {"portable", "avx2", "avx512"};

static uint64_t random_state;

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(uint64_t below) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 2685821657736338717u >> 11) % below;
}

static void read_all(void *to, size_t bytes) {
    if (bytes != 0 && fread(to, 1, bytes, stdin) != bytes) {
        fprintf(stderr, "a case is cut short\n");
        exit(2);
    }
}

/* Memory that the caller frees, or the end of this process. */
static void *must(void *memory) {
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return memory;
}

#endif
