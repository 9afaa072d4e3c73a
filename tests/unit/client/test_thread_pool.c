/* The thread pool of the process: the same bits by any number of threads; one call at a time has it; it is as large as cores and environment
 * allow; a child has its own; signals are not its workers'. */
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/lib/embedded/split.h"
#include "client/lib/embedded/thread_pool.h"
#include "cured/cured.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/embedded_conn.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)

enum {
    MIB = 1024 * 1024,
    SPARSE = CHECK_SPARSE > 1,
    SOME_BYTES = (SPARSE ? 1 : 2) * MIB + 4 * 4096 + 40, /* no thread's range is whole */
    MANY_BYTES = (SPARSE ? 9 : 21) * MIB + 24,           /* by a job, without sanitizers in several claims */
    LIMIT_S = 60,
};

/* In two parts, because a call has at most CURED_MAX_OPS, and with those that go by rank or in order. */
static const cured_op ops[] = {
    CURED_OP_SUM,   CURED_OP_MEAN,    CURED_OP_MIN, CURED_OP_MAX,       CURED_OP_ARGMIN, CURED_OP_ARGMAX,
    CURED_OP_COUNT, CURED_OP_ANY,     CURED_OP_ALL, CURED_OP_SUMSQ,     CURED_OP_NORM1,  CURED_OP_COUNT_NONZERO,
    CURED_OP_NORM2, CURED_OP_NORMINF, CURED_OP_VAR, CURED_OP_COUNT_NAN,
};
static const cured_op others[] = {CURED_OP_DIGEST, CURED_OP_PROD, CURED_OP_SUM};
static const cured_op bits[] = {CURED_OP_BIT_AND, CURED_OP_BIT_OR, CURED_OP_BIT_XOR, CURED_OP_PTP};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static uint8_t *make(size_t bytes, uint32_t seed) {
    uint8_t *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    return data;
}

static int tasks(void) {
    DIR *dir = opendir("/proc/self/task");
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* Whether there are so many threads more than before; those that were joined may be on their way out. */
static bool tasks_are(int more, int before) {
    const uint64_t until = cr_now_ns() + LIMIT_S * UINT64_C(1000000000);
    while (tasks() != before + more && cr_now_ns() < until) usleep(1000);
    return tasks() == before + more;
}

static void *say_number(void *argument) {
    *(long *)argument = syscall(SYS_gettid);
    return NULL;
}

/* The threads there are before a pool starts. ThreadSanitizer has one of its own from the first thread on. The one that starts it here
 * was joined, and may be on its way out. */
static int tasks_before(void) {
    pthread_t thread;
    char path[64];
    long number = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, say_number, &number), 0);
    pthread_join(thread, NULL);
    snprintf(path, sizeof path, "/proc/self/task/%ld", number);
    while (access(path, F_OK) == 0) usleep(1000);
    return tasks();
}

static void assert_equal(const cured_value *a, const cured_value *b, unsigned dtype, uint32_t threads) {
    size_t a_bytes, b_bytes;
    const void *x = cured_value_bytes(a, &a_bytes), *y = cured_value_bytes(b, &b_bytes);
    const char *name = cured_op_name(cured_value_op(a));
    ck_assert_int_eq(cured_value_op(a), cured_value_op(b));
    ck_assert_msg(cured_value_status(a, NULL) == cured_value_status(b, NULL), "%s of %u by %u", name, dtype, threads);
    ck_assert_uint_eq(a_bytes, b_bytes);
    ck_assert_msg(a_bytes == 0 || memcmp(x, y, a_bytes) == 0, "%s of %u by %u threads", name, dtype, threads);
}

/* The answers of two connections; false: one of the ops is not for the type. */
static bool compare(cured_conn *one, cured_conn *pooled, cured_dtype dtype, const cured_op *asked, size_t count,
                    const void *data, uint64_t elements, const cured_options *o, uint32_t threads) {
    cured_call *want, *got;
    OK(cured_reduce_buffer(one, dtype, asked, count, data, elements, o, &want, NULL));
    OK(cured_reduce_buffer(pooled, dtype, asked, count, data, elements, o, &got, NULL));
    const bool good = cured_wait(want, NULL) == CURED_OK;
    ck_assert_int_eq(cured_wait(got, NULL) == CURED_OK, good);
    for (size_t i = 0; good && i < count; i++)
        assert_equal(cured_call_value(want, i), cured_call_value(got, i), dtype, threads);
    cured_call_free(want);
    cured_call_free(got);
    return good;
}

static const uint32_t thread_counts[] = {3, 1, 2, 7};
enum { COUNTS = SPARSE ? 1 : COUNT(thread_counts) };

START_TEST(bits_are_the_same_by_any_number_of_threads) {
    const uint32_t threads = thread_counts[_i];
    uint8_t *data = make(SOME_BYTES, 7);
    uint8_t *mask = make(SOME_BYTES, 9);
    cured_options masked = CURED_OPTIONS_INIT;
    cured_conn *one = connect_as(1), *pooled = connect_as(CURED_THREAD_POOL);
    int good = 0;
    cr_thread_pool_renew(threads, MIB);
    for (unsigned t = CURED_BOOL; t <= CURED_F8_E5M2; t++) {
        if (t == CURED_I128 || t == CURED_BIGINT || (SPARSE && t % 3 != 0)) continue;
        const uint64_t n = SOME_BYTES / cured_dtype_size((cured_dtype)t);
        masked.mask = &(cured_mask){.data = mask, .count = n, .kind = CURED_MASK_BYTES};
        good += compare(one, pooled, (cured_dtype)t, ops, COUNT(ops), data, n, NULL, threads);
        good += compare(one, pooled, (cured_dtype)t, others, COUNT(others), data, n, NULL, threads);
        good += compare(one, pooled, (cured_dtype)t, bits, COUNT(bits), data, n, NULL, threads);
        if (t % 6 == 0) good += compare(one, pooled, (cured_dtype)t, ops, COUNT(ops), data, n, &masked, threads);
    }
    ck_assert_int_gt(good, SPARSE ? 10 : 40);
    ck_assert_uint_eq(cr_thread_pool_known(), threads);
    cured_close(one);
    cured_close(pooled);
    free(data);
    free(mask);
}
END_TEST

/* More than one turn, and with partials, places, ops by rank, and pairs. */
START_TEST(long_arrays_are_several_claims) {
    const cured_op ranked[] = {CURED_OP_MEDIAN, CURED_OP_SUM, CURED_OP_ARGMAX},
                   pairs[] = {CURED_OP_DOT, CURED_OP_SQDIST};
    const uint32_t threads = thread_counts[_i];
    const uint64_t n = MANY_BYTES / sizeof(float);
    float *data = malloc(MANY_BYTES);
    for (uint64_t i = 0; i < n; i++) data[i] = (float)((double)(i * 2654435761u % 1000003) / 7 - 1000);
    cured_options paired = CURED_OPTIONS_INIT;
    paired.second = &(cured_second){.data = data + 1, .count = n - 1, .dtype = CURED_F32};
    cured_conn *one = connect_as(1), *pooled = connect_as(CURED_THREAD_POOL);
    cr_thread_pool_renew(threads, MIB);
    cr_split_claims(2 * MIB);
    ck_assert(compare(one, pooled, CURED_F32, ops, COUNT(ops), data, n, NULL, threads));
    ck_assert(compare(one, pooled, CURED_F32, others, COUNT(others), data, n, NULL, threads));
    ck_assert(compare(one, pooled, CURED_F32, ranked, COUNT(ranked), data, n, NULL, threads));
    ck_assert(compare(one, pooled, CURED_F32, pairs, COUNT(pairs), data, n - 1, &paired, threads));
    ck_assert(compare(one, pooled, CURED_U8, ops, COUNT(ops), data, MANY_BYTES - 3, NULL, threads));
    cr_split_claims(0);
    cured_close(one);
    cured_close(pooled);
    free(data);
}
END_TEST

/* Along axes, the answers of all ops as bytes. */
static void along(cured_conn *conn, const float *data, uint64_t count, const cured_axis *axis, uint8_t *answers) {
    const cured_op asked[] = {CURED_OP_SUM, CURED_OP_ARGMIN, CURED_OP_VAR, CURED_OP_PROD, CURED_OP_MEDIAN};
    const size_t ops_now = axis->n > 1000 ? 5 : 4; /* medians of rows so long */
    const uint64_t outputs = axis->outer * axis->inner;
    void *results[COUNT(asked)];
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    for (size_t i = 0; i < COUNT(asked); i++) results[i] = answers + i * outputs * sizeof(double);
    o.axis = axis;
    o.results = results;
    OK(cured_reduce_buffer(conn, CURED_F32, asked, ops_now, data, count, &o, &call, NULL));
    OK(cured_wait(call, NULL));
    cured_call_free(call);
}

START_TEST(axes_are_claimed_by_the_pool) {
    const uint64_t n = 9 * MIB / sizeof(float) / 5000 * 5000;
    const cured_axis shapes[] = {
        {n / 5000, 5000, 1}, {1, n / 500, 500}, {50, n / 5000, 100}, {n / 100, 100, 1}, {1, 50, n / 50}};
    const uint32_t threads = thread_counts[_i];
    float *data = malloc(n * sizeof(float));
    for (uint64_t i = 0; i < n; i++) data[i] = (float)((double)(i * 2654435761u % 1000003) / 7e4 - 7);
    cured_conn *one = connect_as(1), *pooled = connect_as(CURED_THREAD_POOL);
    cr_thread_pool_renew(threads, MIB);
    for (size_t i = 0; i < (SPARSE ? 3 : COUNT(shapes)); i++) {
        const size_t bytes = 5 * sizeof(double) * shapes[i].outer * shapes[i].inner;
        uint8_t *want = calloc(1, bytes), *got = calloc(1, bytes);
        along(one, data, n, &shapes[i], want);
        along(pooled, data, n, &shapes[i], got);
        ck_assert_msg(memcmp(want, got, bytes) == 0, "shape %zu by %u threads", i, threads);
        free(want);
        free(got);
    }
    ck_assert_uint_eq(cr_thread_pool_known(), threads);
    cured_close(one);
    cured_close(pooled);
    free(data);
}
END_TEST

static void nothing(void *argument, uint32_t number) {
    (void)argument;
    (void)number;
}

START_TEST(one_call_at_a_time_has_it) {
    static uint64_t data[MIB / sizeof(uint64_t)];
    const int before = tasks_before();
    cr_thread_pool_renew(3, MIB);
    ck_assert_ptr_null(cr_thread_pool_take(data, MIB - 1));
    ck_assert_int_eq(tasks(), before);
    cr_thread_pool *pool = cr_thread_pool_take(data, MIB);
    ck_assert_ptr_nonnull(pool);
    ck_assert_uint_eq(cr_thread_pool_threads(pool), 3);
    ck_assert_int_eq(tasks(), before + 2);
    ck_assert_ptr_null(cr_thread_pool_take(data, MIB)); /* by whomever: the fold is the caller's own then */
    cr_partial partial;
    cr_partial_init(&partial, CR_U64, cr_op_needs(CR_OP_COUNT, CR_U64));
    const cr_view view = cr_view_plain(data);
    cr_split_fold(&partial, &view, MIB / sizeof(uint64_t), 0);
    ck_assert_uint_eq(partial.n, MIB / sizeof(uint64_t));
    for (int i = 0; i < 1000; i++) cr_thread_pool_run(pool, 2, MIB, nothing, NULL);
    cr_thread_pool_give(pool);
    pool = cr_thread_pool_take(data, MIB);
    ck_assert_ptr_nonnull(pool);
    cr_thread_pool_give(pool);
}
END_TEST

static const float *shared_data;

/* Without Check, whose lock another thread may hold when a process forks. NULL: all answers are right. */
static void *ask_often(void *argument) {
    const int calls = *(const int *)argument;
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    cured_conn *conn = NULL;
    const cured_op sum = CURED_OP_SUM;
    const uint64_t n = SOME_BYTES / sizeof(float);
    options.threads = CURED_THREAD_POOL;
    uintptr_t wrong = cured_connect("embedded:", &options, &conn, NULL) != CURED_OK;
    for (int i = 0; i < calls && !wrong; i++) {
        cured_call *call;
        double got = 0;
        wrong = cured_reduce_buffer(conn, CURED_F32, &sum, 1, shared_data, n, NULL, &call, NULL) != CURED_OK ||
                cured_wait(call, NULL) != CURED_OK || cured_value_double(cured_call_value(call, 0), &got) != CURED_OK ||
                got != (double)n;
        cured_call_free(call);
    }
    cured_close(conn);
    return (void *)wrong;
}

static void make_ones(void) {
    float *ones = malloc(SOME_BYTES);
    for (size_t i = 0; i < SOME_BYTES / sizeof(float); i++) ones[i] = 1;
    shared_data = ones;
}

START_TEST(callers_at_once_are_all_right) {
    pthread_t threads[5];
    const int calls = SPARSE ? 20 : 200, before = tasks_before();
    make_ones();
    cr_thread_pool_renew(4, MIB);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, (void *)(uintptr_t)&calls), 0);
    for (int i = 0; i < 5; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert(tasks_are(3, before));
    free((void *)(uintptr_t)shared_data);
}
END_TEST

START_TEST(a_child_starts_its_own) {
    const char *sanitizer = getenv("CURED_TEST_SANITIZE");
    if (sanitizer != NULL && *sanitizer) {
        puts("skipped: the sanitizers' own locks may be held when a process that has threads forks");
        return;
    }
    pthread_t thread;
    int many = 300, few = 3;
    make_ones();
    cr_thread_pool_renew(3, MIB);
    ck_assert_ptr_null(ask_often(&few));
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_often, &many), 0);
    for (int i = 0; i < 8; i++) { /* while another thread has the pool */
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(LIMIT_S);
            const bool alone = tasks() == 1;
            const bool good = ask_often(&few) == NULL;
            _exit(alone && good && tasks() == 3 ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    void *wrong;
    pthread_join(thread, &wrong);
    ck_assert_ptr_null(wrong);
    free((void *)(uintptr_t)shared_data);
}
END_TEST

static uint32_t asked(const char *own, const char *omp) {
    cr_error error;
    uint32_t threads = 0;
    own != NULL ? setenv("CURED_NUM_THREADS", own, 1) : unsetenv("CURED_NUM_THREADS");
    omp != NULL ? setenv("OMP_NUM_THREADS", omp, 1) : unsetenv("OMP_NUM_THREADS");
    return cr_thread_pool_wanted(&threads, &error) == CR_OK ? threads : 0;
}

START_TEST(the_environment_makes_it_smaller) {
    static const char *const junk[] = {"0",   "-1", "+2", " 4", "4 ", "4x", "two", "1025", "99999999999999999999",
                                       "1e2", "0x4"};
    cured_conn *conn;
    cured_error error;
    for (size_t i = 0; i < COUNT(junk); i++) {
        ck_assert_uint_eq(asked(junk[i], "2"), 0);
        ck_assert_int_eq(cured_connect("embedded:", NULL, &conn, &error), CURED_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.text, "CURED_NUM_THREADS"));
        ck_assert_ptr_nonnull(strstr(error.text, "1 to 1,024"));
        if (strspn(junk[i], "0123456789") == strlen(junk[i]) && junk[i][0] != '0') continue;
        ck_assert_uint_eq(asked(NULL, junk[i]), UINT32_MAX); /* another's variable is not ours to refuse */
    }
    ck_assert_uint_eq(asked("3", "2"), 3);
    ck_assert_uint_eq(asked("1024", NULL), 1024);
    ck_assert_uint_eq(asked("", "2"), 2);
    ck_assert_uint_eq(asked(NULL, "4,2,1"), 4);
    ck_assert_uint_eq(asked(NULL, ""), UINT32_MAX);
    ck_assert_uint_eq(asked(NULL, NULL), UINT32_MAX);
    static uint64_t data[MIB / sizeof(uint64_t)];
    const int before = tasks_before();
    asked("1", "2");
    ck_assert_ptr_null(cr_thread_pool_take(data, MIB));
    ck_assert_int_eq(tasks(), before);
    ck_assert_uint_eq(cr_thread_pool_known(), 1);
    cr_thread_pool_renew(0, 0);
    asked("1024", NULL); /* no more than there are cores */
    cr_thread_pool *pool = cr_thread_pool_take(data, 16 * MIB);
    ck_assert_int_lt(tasks() - before, (int)sysconf(_SC_NPROCESSORS_ONLN));
    if (pool != NULL) cr_thread_pool_give(pool);
}
END_TEST

START_TEST(one_core_has_none) {
    static uint64_t data[MIB / sizeof(uint64_t)];
    cpu_set_t allowed, one;
    const int before = tasks_before();
    ck_assert_int_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    unsetenv("CURED_NUM_THREADS");
    ck_assert_ptr_null(cr_thread_pool_take(data, MIB));
    ck_assert_ptr_null(cr_thread_pool_take(data, MIB));
    ck_assert_int_eq(tasks(), before);
    ck_assert_uint_eq(cr_split_bytes(), 0);
}
END_TEST

/* While another call has the pool, one thread looks at deadlines as often as it does by itself. */
START_TEST(claims_are_short_without_it) {
    enum { LARGE = 64 * MIB, TURNS = 8 };
    const cured_op sum = CURED_OP_SUM;
    cured_conn *conn = connect_as(CURED_THREAD_POOL);
    cured_call *call;
    int turns[2] = {0, 0};
    uint8_t *data = calloc(1, LARGE);
    cr_thread_pool_renew(3, 0);
    for (int busy = 0; busy < 2; busy++) {
        cr_thread_pool *pool = cr_thread_pool_take(data, LARGE);
        ck_assert_ptr_nonnull(pool);
        if (!busy) cr_thread_pool_give(pool);
        OK(cured_reduce_buffer(conn, CURED_F64, &sum, 1, data, LARGE / sizeof(double), NULL, &call, NULL));
        for (; !cured_call_done(call); turns[busy]++) OK(cured_process(conn, NULL));
        cured_call_free(call);
        if (busy) cr_thread_pool_give(pool);
    }
    ck_assert_int_lt(turns[0], TURNS);
    ck_assert_int_ge(turns[1], TURNS);
    free(data);
    cured_close(conn);
}
END_TEST

/* Of each thread but this one, a line of its status. */
static void each_worker(const char *line, void (*look)(const char *value)) {
    DIR *dir = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[300], text[256];
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *f = fopen(path, "r");
        while (f != NULL && fgets(text, sizeof text, f) != NULL)
            if (strncmp(text, line, strlen(line)) == 0) look(text + strlen(line));
        if (f != NULL) fclose(f);
    }
    closedir(dir);
}

static int awake, workers;

static void look_blocked(const char *value) {
    const unsigned long long mask = strtoull(value, NULL, 16);
    workers++;
    for (int s = 1; s < SIGSYS; s++) ck_assert(s == SIGKILL || s == SIGSTOP || (mask >> (s - 1) & 1) != 0);
}

static void look_awake(const char *value) { awake += strchr(value, 'S') == NULL; }

START_TEST(workers_sleep_and_take_no_signal) {
    if (getenv("CURED_TEST_SANITIZE") != NULL && *getenv("CURED_TEST_SANITIZE")) return; /* which have threads */
    const int few = 5;
    make_ones();
    cr_thread_pool_renew(4, MIB);
    ck_assert_ptr_null(ask_often((void *)(uintptr_t)&few));
    each_worker("SigBlk:", look_blocked);
    ck_assert_int_eq(workers, 3);
    const uint64_t until = cr_now_ns() + LIMIT_S * UINT64_C(1000000000);
    do {
        awake = 0;
        usleep(1000);
        each_worker("State:", look_awake);
    } while (awake != 0 && cr_now_ns() < until);
    ck_assert_int_eq(awake, 0);
    free((void *)(uintptr_t)shared_data);
}
END_TEST

CR_CHECK_MAIN("client/thread_pool") {
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, bits_are_the_same_by_any_number_of_threads, 0, COUNTS);
    tcase_add_loop_test(tc, long_arrays_are_several_claims, 0, COUNTS);
    tcase_add_loop_test(tc, axes_are_claimed_by_the_pool, 0, COUNTS);
    tcase_add_test(tc, one_call_at_a_time_has_it);
    tcase_add_test(tc, callers_at_once_are_all_right);
    tcase_add_test(tc, a_child_starts_its_own);
    tcase_add_test(tc, the_environment_makes_it_smaller);
    tcase_add_test(tc, one_core_has_none);
    tcase_add_test(tc, claims_are_short_without_it);
    tcase_add_test(tc, workers_sleep_and_take_no_signal);
}
