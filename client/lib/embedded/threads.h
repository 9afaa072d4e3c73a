/* threads: starts threads that block all signals, which stay the program's own threads' business.
 *
 * Thread: the caller's. Owner: the caller owns what the threads are given. */
#ifndef CURED_CLIENT_LIB_EMBEDDED_THREADS_H
#define CURED_CLIENT_LIB_EMBEDDED_THREADS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cr_thread {
    pthread_t id; /* which pthread_join takes, if it is not detached */
} cr_thread;
typedef enum cr_threads_kind { CR_THREADS_JOINED, CR_THREADS_DETACHED } cr_threads_kind;

/* Starts count threads by the function, each with its element of the array at first, which begins with a cr_thread and is `stride`
 * bytes long. Returns how many there are: fewer, where the system has no more. */
uint32_t cr_threads_start(void *(*thread_main)(void *), void *first, size_t stride, uint32_t count,
                          cr_threads_kind kind);

#endif
