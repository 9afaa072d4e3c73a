/* thread_pool: the gate that workers go through, how they look and sleep, and what the first call measures.
 *
 *   gate    OPEN and the number of workers inside: who opens it waits until it is 0
 *   epoch   rises with each opening: a worker that has seen it looks, and sleeps, until it is another
 *
 * Sleeping threads wait on these two words by futex(2), because a condition variable would have all that wake take one lock in turn. The
 * caller wakes a few workers, and each of them as many more.
 *
 * Thread: any. Owner: the process. */
#include "client/lib/embedded/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/cores.h"
#include "client/lib/embedded/threads.h"
#include "kernels/cpu/fold.h"

enum {
    PAUSES = 8,            /* between two looks at the clock: some 0.3 µs */
    WAKES = 16,            /* how many each thread wakes: to wake one takes it 1 to 2 µs */
    SLICE_NS = 100 * 1000, /* of a worker's turn on a core that others want, too */
    ROUNDS = 3,            /* of what is measured; of waking the middle one counts, of folding the fastest */
    ROUND_NS = 200 * 1000, /* a round waits for as long */
    NAP_NS = 500 * 1000,   /* before it, in which workers and cores fall asleep */
    SAMPLE_BYTES = 256 * 1024,
    FROM_MOST_BYTES = 4 * 1024 * 1024, /* to wake them in vain costs a few per cent of this */
};
#define OPEN (UINT32_C(1) << 31)

typedef struct pool_worker {
    cr_thread thread;
    cr_thread_pool *pool;
    uint32_t number; /* from 1 on */
} pool_worker;

struct cr_thread_pool {
    _Alignas(64) _Atomic uint32_t epoch;
    _Alignas(64) _Atomic uint32_t gate;
    _Alignas(64) _Atomic uint32_t sleepers;
    _Atomic uint32_t unwoken; /* how many are still to be woken for this call */
    _Atomic uint32_t most;    /* workers inside at a time */
    _Atomic bool caller_sleeps;
    _Alignas(64) _Atomic bool busy; /* a call has the pool */
    void (*run)(void *argument, uint32_t number);
    void *argument;
    uint32_t count;            /* of workers; 0: this process has one core */
    uint64_t from;             /* bytes from which it pays to wake workers */
    cr_thread_pool *forgotten; /* those before it: of a parent, whose threads are not here, and of tests */
    pool_worker *workers;
    cr_thread_slot slots[];
};

static _Atomic(cr_thread_pool *) current; /* NULL: not started */
static _Atomic bool starting;             /* some call starts it, or has */
static cr_thread_pool *forgotten;
static uint32_t as_if_threads;
static uint64_t as_if_from;

static inline void rest(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t most) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

/* ---- Workers ---- */

/* Wakes a few of those that the call still wants. */
static void wake_some(cr_thread_pool *pool) {
    uint32_t left = atomic_load(&pool->unwoken), some;
    do {
        if (left == 0 || atomic_load(&pool->sleepers) == 0) return;
        some = left < WAKES ? left : WAKES;
    } while (!atomic_compare_exchange_weak(&pool->unwoken, &left, left - some));
    futex_wake(&pool->epoch, some);
}

static bool enter(cr_thread_pool *pool) {
    uint32_t gate = atomic_load(&pool->gate);
    while ((gate & OPEN) != 0 && (gate & ~OPEN) < atomic_load(&pool->most))
        if (atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) return true;
    return false;
}

static void leave(cr_thread_pool *pool) {
    if (atomic_fetch_sub(&pool->gate, 1) == 1 && atomic_load(&pool->caller_sleeps)) futex_wake(&pool->gate, 1);
}

/* Until the epoch is another than it was. */
static void await_call(cr_thread_pool *pool, uint32_t seen) {
    const uint64_t until = cr_now_ns() + CR_THREAD_POOL_LOOK_NS;
    do {
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(&pool->epoch, memory_order_relaxed) != seen) return;
            rest();
        }
    } while (cr_now_ns() < until);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->epoch) == seen) futex_wait(&pool->epoch, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

/* sched_setattr(2), for which this C library has no header. */
typedef struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} attributes;

/* From Linux 6.12 on a thread with short turns gets a core at once from one whose turn is longer, such as one of another pool that looks for
 * work; its share of the core is the same. Before that nothing changes, and where it is forbidden neither. */
static void take_short_turns(void) {
    attributes a = {.size = sizeof a};
    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER) return;
    a.size = sizeof a;
    a.runtime = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &a, 0);
}

static void *worker_main(void *argument) {
    const pool_worker *own = argument;
    cr_thread_pool *pool = own->pool;
    take_short_turns();
    for (uint32_t seen = 0;;) {
        await_call(pool, seen);
        seen = atomic_load(&pool->epoch);
        if (!enter(pool)) continue;
        seen = atomic_load(&pool->epoch);
        wake_some(pool);
        pool->run(pool->argument, own->number);
        leave(pool);
    }
    return NULL;
}

/* ---- Calls ---- */

/* The gate is closed: until nobody is inside. */
static void await_workers(cr_thread_pool *pool) {
    const uint64_t until = cr_now_ns() + CR_THREAD_POOL_LOOK_NS;
    uint32_t gate;
    do {
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load(&pool->gate) == 0) return;
            rest();
        }
    } while (cr_now_ns() < until);
    atomic_store(&pool->caller_sleeps, true);
    while ((gate = atomic_load(&pool->gate)) != 0) futex_wait(&pool->gate, gate);
    atomic_store(&pool->caller_sleeps, false);
}

void cr_thread_pool_run(cr_thread_pool *pool, uint32_t workers, uint64_t bytes,
                        void (*run)(void *argument, uint32_t number), void *argument) {
    const uint32_t awake = pool->count - atomic_load(&pool->sleepers);
    for (uint32_t i = 0; i <= pool->count; i++) pool->slots[i].used = false;
    pool->run = run;
    pool->argument = argument;
    atomic_store(&pool->most, workers);
    atomic_store(&pool->unwoken, bytes >= pool->from && workers > awake ? workers - awake : 0);
    atomic_store(&pool->gate, OPEN);
    atomic_fetch_add(&pool->epoch, 1);
    wake_some(pool);
    run(argument, 0);
    atomic_store(&pool->unwoken, 0);
    atomic_fetch_and(&pool->gate, ~OPEN);
    await_workers(pool);
}

uint32_t cr_thread_pool_threads(const cr_thread_pool *pool) { return pool->count + 1; }

cr_thread_slot *cr_thread_pool_slot(cr_thread_pool *pool, uint32_t number) { return &pool->slots[number]; }

void cr_thread_pool_give(cr_thread_pool *pool) { atomic_store(&pool->busy, false); }

/* ---- The start ---- */

/* A number from 1 on at the beginning of the text, and what follows it; 0: there is none. */
static uint32_t number_of(const char *text, const char **end) {
    uint32_t n = 0;
    for (*end = text; **end >= '0' && **end <= '9'; (*end)++)
        if (n <= CR_THREAD_POOL_MOST_THREADS) n = 10 * n + (uint32_t)(**end - '0');
    return n;
}

cr_status cr_thread_pool_wanted(uint32_t *threads, cr_error *error) {
    const char *own = getenv("CURED_NUM_THREADS"), *omp = getenv("OMP_NUM_THREADS"), *end;
    *threads = UINT32_MAX;
    if (own != NULL && own[0] != '\0') {
        const uint32_t n = number_of(own, &end);
        if (n == 0 || n > CR_THREAD_POOL_MOST_THREADS || *end != '\0')
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "CURED_NUM_THREADS is \"%.40s\", must be a number from 1 to 1,024", own);
        *threads = n;
    } else if (omp !=
               NULL) { /* another's variable, which may be a list: what is no number there is none of ours to refuse */
        const uint32_t n = number_of(omp, &end);
        if (n != 0 && (*end == '\0' || *end == ',')) *threads = n;
    }
    return CR_OK;
}

static uint32_t allowed(void) {
    cr_error error;
    uint32_t asked;
    if (as_if_threads != 0) return as_if_threads;
    if (cr_thread_pool_wanted(&asked, &error) != CR_OK || asked == 1) return 1; /* it was another when it was checked */
    const uint32_t cores = cr_cores(), threads = asked < cores ? asked : cores;
    return threads < CR_THREAD_POOL_MOST_THREADS ? threads : CR_THREAD_POOL_MOST_THREADS;
}

/* How many workers have come, and when half of them had. */
typedef struct arrivals {
    _Atomic uint32_t came;
    uint32_t half;
    uint64_t begin_ns, took_ns;
} arrivals;

static void arrive(void *argument, uint32_t number) {
    arrivals *a = argument;
    if (number != 0) {
        atomic_fetch_add(&a->came, 1);
        return;
    }
    do {
        rest();
        a->took_ns = cr_now_ns() - a->begin_ns;
    } while (atomic_load(&a->came) < a->half && a->took_ns < ROUND_NS);
}

/* How long it takes until half of the workers have come from their sleep. */
static uint64_t measure_wake(cr_thread_pool *pool) {
    uint64_t took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        arrivals a = {.half = (pool->count + 1) / 2};
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        a.begin_ns = cr_now_ns();
        cr_thread_pool_run(pool, pool->count, pool->from, arrive, &a);
        int at = i;
        for (; at > 0 && took[at - 1] > a.took_ns; at--) took[at] = took[at - 1];
        took[at] = a.took_ns;
    }
    return took[ROUNDS / 2];
}

/* How long one thread takes for the sample, at its fastest. data NULL: for zeros. */
static uint64_t measure_fold(const void *data) {
    static const uint64_t zeros[SAMPLE_BYTES / sizeof(uint64_t)];
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        cr_partial partial;
        cr_partial_init(&partial, CR_U64, CR_FAM_SUM);
        const uint64_t begin = cr_now_ns();
        cr_cpu_fold(&partial, data != NULL ? data : zeros, SAMPLE_BYTES / sizeof(uint64_t), 0);
        const uint64_t took = cr_now_ns() - begin;
        if (took < least) least = took;
    }
    return least != 0 ? least : 1;
}

/* It pays where one thread takes twice as long as half of the workers take to come: with less than that, 1 MiB was seen to take 10 µs more
 * than by one thread. */
static uint64_t measure(cr_thread_pool *pool, const void *data) {
    const uint64_t wake_ns = measure_wake(pool);
    const uint64_t from = 2 * wake_ns * SAMPLE_BYTES / measure_fold(data);
    if (from < CR_THREAD_POOL_LEAST_BYTES) return CR_THREAD_POOL_LEAST_BYTES;
    return from < FROM_MOST_BYTES ? from : FROM_MOST_BYTES;
}

/* A child has none of its parent's threads. What was in use stays where it is. */
static void forget(void) {
    cr_thread_pool *pool = atomic_load(&current);
    if (pool != NULL && pool->count != 0) {
        pool->forgotten = forgotten;
        forgotten = pool;
    }
    atomic_store(&current, NULL);
    atomic_store(&starting, false);
}

static cr_thread_pool *make(uint32_t threads) {
    cr_thread_pool *pool = aligned_alloc(64, sizeof *pool + threads * sizeof pool->slots[0]);
    if (pool == NULL) return NULL;
    memset(pool, 0, sizeof *pool + threads * sizeof pool->slots[0]);
    pool->workers = calloc(threads, sizeof pool->workers[0]);
    if (pool->workers == NULL) {
        free(pool);
        return NULL;
    }
    for (uint32_t i = 0; i + 1 < threads; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].number = i + 1;
    }
    pool->count =
        cr_threads_start(worker_main, pool->workers, sizeof pool->workers[0], threads - 1, CR_THREADS_DETACHED);
    return pool;
}

static cr_thread_pool *start(const void *data) {
    static cr_thread_pool none;
    static bool watches; /* guarded by `starting`; a child has it, too */
    if (atomic_exchange(&starting, true)) return NULL;
    if (!watches && pthread_atfork(NULL, NULL, forget) == 0) watches = true;
    const uint32_t threads = watches ? allowed() : 1;
    cr_thread_pool *pool = threads > 1 ? make(threads) : NULL;
    if (pool != NULL && pool->count != 0) pool->from = as_if_from != 0 ? as_if_from : measure(pool, data);
    atomic_store(&current, pool != NULL ? pool : &none);
    return pool;
}

cr_thread_pool *cr_thread_pool_take(const void *data, uint64_t bytes) {
    if (bytes < CR_THREAD_POOL_LEAST_BYTES) return NULL;
    cr_thread_pool *pool = atomic_load_explicit(&current, memory_order_acquire);
    if (pool == NULL) pool = start(data);
    if (pool == NULL || pool->count == 0) return NULL;
    if (bytes < pool->from && atomic_load_explicit(&pool->sleepers, memory_order_relaxed) == pool->count) return NULL;
    if (atomic_load_explicit(&pool->busy, memory_order_relaxed) || atomic_exchange(&pool->busy, true)) return NULL;
    return pool;
}

uint32_t cr_thread_pool_known(void) {
    const cr_thread_pool *pool = atomic_load_explicit(&current, memory_order_acquire);
    return pool != NULL ? pool->count + 1 : 0;
}

bool cr_thread_pool_is_free(void) {
    const cr_thread_pool *pool = atomic_load_explicit(&current, memory_order_acquire);
    return pool == NULL || !atomic_load_explicit(&pool->busy, memory_order_relaxed);
}

void cr_thread_pool_renew(uint32_t threads, uint64_t from) {
    forget();
    as_if_threads = threads;
    as_if_from = from;
}
