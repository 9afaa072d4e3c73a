/* support: what the unit tests of base, engine and server share: files, gates between threads, and allocations that fail.
 *
 * Thread: any. Owner: the test. */
#ifndef CURED_TESTS_UNIT_SUPPORT_H
#define CURED_TESTS_UNIT_SUPPORT_H

#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "proto/status.h"

/* An unlinked file on a disk file system (where there is one), open for reading and writing, and a memfd. */
int disk_file(void);
int memory_file(void);
/* One with a true size, of a file system that is not known as local; -1, after saying so, where there is none. */
int foreign_file(void);
/* One whose size is 0 though it has bytes. */
int sizeless_file(void);
/* Writes bytes at the end of fd. */
void fill_file(int fd, const void *bytes, size_t n);
/* Open descriptors of this process. */
size_t open_descriptors(void);

/* A counter that a thread can wait for. */
typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned count;
} gate;
#define GATE_INIT \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }
void gate_add(gate *g);
void gate_wait(gate *g, unsigned count);
unsigned gate_count(gate *g);

/* The nth allocation of this thread from now on fails (1: the next); 0: none. Returns to none after the failure. */
void fail_allocation(unsigned nth);
/* While held, allocations do not fail and are not counted: for what a test allocates itself, Check's messages included. */
/* The most bytes that realloc was asked for since the last call of this. */
size_t most_reallocated(void);
void hold_failures(bool held);

/* A small generator of random numbers, the same on every run. */
uint64_t random_next(uint64_t *state);

static inline uint64_t metric_now(cr_metric metric) {
    return atomic_load_explicit(&cr_metrics[metric], memory_order_relaxed);
}

#define assert_ok(status, error) ck_assert_msg((status) == CR_OK, "%s", (error).text)
/* The status, and that the sentence speaks of what it should. */
#define assert_fails(status, expected, error, word)                                                     \
    do {                                                                                                \
        ck_assert_int_eq(status, expected);                                                             \
        ck_assert_int_eq((error).code, expected);                                                       \
        ck_assert_msg(strstr((error).text, word) != NULL, "\"%s\" without \"%s\"", (error).text, word); \
    } while (0)

#endif
