/* Files that several threads of this process read, each what it folds: the bits of one thread and of memory, by descriptors and regions, and
 * what becomes of a file that is cut, of a deadline and of a pool that another call has. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/embedded/thread_pool.h"
#include "cured/cured.h"
#include "engine/worker.h"
#include "tests/unit/check_main.h"
#include "tests/unit/client/embedded_conn.h"

#define OK(call) ck_assert_int_eq(call, CURED_OK)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum {
    MIB = 1024 * 1024,
    SPARSE = CHECK_SPARSE > 1,
    BYTES = (SPARSE ? 9 : 21) * MIB + 24, /* several claims for each thread, whose last is no whole one */
    AT = 40,                              /* where the elements begin in the file */
    LARGE = 4096,                         /* MiB of a file of holes */
};

/* The first with those that find a place or go by rank, the second with one that needs the elements in order for floats. */
static const cured_op some[] = {
    CURED_OP_SUM,    CURED_OP_MIN,   CURED_OP_MAX,       CURED_OP_ARGMIN,    CURED_OP_ARGMAX, CURED_OP_VAR,
    CURED_OP_DIGEST, CURED_OP_NORM2, CURED_OP_COUNT_NAN, CURED_OP_COUNT_INF, CURED_OP_MEDIAN,
};
static const cured_op others[] = {CURED_OP_PROD, CURED_OP_SUM};
static const cured_op sums[] = {CURED_OP_SUM};
static const cured_op bits[] = {CURED_OP_BIT_XOR, CURED_OP_PTP};
static const uint32_t ways[] = {3, CURED_THREAD_POOL, 2, 1};
enum { WAYS = SPARSE ? 2 : COUNT(ways) }; /* of them that are tried */

static uint8_t *data, *mask;
static int file;

/* A file of a disk, or memory without seals, which nobody maps either; it is gone with its descriptor. */
static int make_file(bool disk) {
    char name[] = "unread-XXXXXX";
    const int fd = disk ? mkstemp(name) : memfd_create("unread", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    if (disk) unlink(name);
    return fd;
}

static void setup(void) {
    uint32_t seed = 11;
    cr_thread_pool_renew(3, MIB);
    data = malloc(BYTES);
    mask = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) data[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    for (size_t i = 0; i < BYTES; i++) mask[i] = i % 7 < 3;
}

static void teardown(void) {
    free(data);
    free(mask);
}

static void write_file(bool disk) {
    file = make_file(disk);
    ck_assert_int_eq(pwrite(file, "head", 4, 0), 4);
    ck_assert_int_eq(pwrite(file, data, BYTES, AT), BYTES);
}

static void assert_equal(const cured_call *want, const cured_call *got, size_t count, unsigned dtype, uint32_t way) {
    for (size_t i = 0; i < count; i++) {
        size_t a_bytes, b_bytes;
        const cured_value *a = cured_call_value(want, i), *b = cured_call_value(got, i);
        const void *x = cured_value_bytes(a, &a_bytes), *y = cured_value_bytes(b, &b_bytes);
        const char *name = cured_op_name(cured_value_op(a));
        ck_assert_msg(cured_value_status(a, NULL) == cured_value_status(b, NULL), "%s of %u by %u", name, dtype, way);
        ck_assert_uint_eq(a_bytes, b_bytes);
        ck_assert_msg(a_bytes == 0 || memcmp(x, y, a_bytes) == 0, "%s of %u by %u threads", name, dtype, way);
    }
}

/* Whether the ops are for the type, and give of the file what they give of the memory. */
static bool compare(cured_conn *one, cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t count,
                    const cured_options *o, uint32_t way) {
    const uint64_t n = BYTES / cured_dtype_size(dtype);
    cured_call *want, *got;
    OK(cured_reduce_buffer(one, dtype, ops, count, data, n, o, &want, NULL));
    OK(cured_reduce_fd(conn, dtype, ops, count, file, AT, n, o, &got, NULL));
    const bool good = cured_wait(want, NULL) == CURED_OK;
    ck_assert_int_eq(cured_wait(got, NULL) == CURED_OK, good);
    if (good) assert_equal(want, got, count, dtype, way);
    cured_call_free(want);
    cured_call_free(got);
    return good;
}

START_TEST(files_have_the_bits_of_memory) {
    const uint32_t way = ways[_i / 2];
    const bool sparse = SPARSE || _i / 2 > 1; /* the last ways are much as the first */
    cured_conn *one = connect_as(1), *conn = connect_as(way);
    cured_options masked = CURED_OPTIONS_INIT;
    int good = 0;
    write_file(_i % 2 != 0);
    for (unsigned t = CURED_BOOL; t <= CURED_F8_E5M2; t++) {
        if (t == CURED_I128 || t == CURED_BIGINT || (sparse && t % 3 != 0)) continue;
        const cured_dtype dtype = (cured_dtype)t;
        masked.mask = &(cured_mask){.data = mask, .count = BYTES / cured_dtype_size(dtype), .kind = CURED_MASK_BYTES};
        good += compare(one, conn, dtype, some, COUNT(some), NULL, way);
        good += compare(one, conn, dtype, others, COUNT(others), NULL, way);
        good += compare(one, conn, dtype, bits, COUNT(bits), NULL, way);
        good += compare(one, conn, dtype, some, 3, &masked, way);
    }
    ck_assert_int_ge(good, sparse ? 12 : 40);
    close(file);
    cured_close(one);
    cured_close(conn);
}
END_TEST

START_TEST(pairs_and_partials_too) {
    const uint32_t way = ways[_i];
    const uint64_t n = BYTES / sizeof(float);
    const cured_op dot = CURED_OP_DOT, sum = CURED_OP_SUM;
    cured_conn *one = connect_as(1), *conn = connect_as(way);
    cured_options o = CURED_OPTIONS_INIT;
    const cured_second second = {.data = data, .count = n, .dtype = CURED_F32};
    size_t a, b;
    cured_call *want, *got;
    write_file(false);
    o.second = &second;
    ck_assert(compare(one, conn, CURED_F32, &dot, 1, &o, way));
    o.second = NULL;
    o.partial = true;
    o.first = 4096;
    OK(cured_reduce_buffer(one, CURED_F32, &sum, 1, data, n, &o, &want, NULL));
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, file, AT, n, &o, &got, NULL));
    OK(cured_wait(want, NULL));
    OK(cured_wait(got, NULL));
    const void *x = cured_call_partial(want, &a), *y = cured_call_partial(got, &b);
    ck_assert_uint_eq(a, b);
    ck_assert_mem_eq(x, y, a);
    cured_call_free(want);
    cured_call_free(got);
    close(file);
    cured_close(one);
    cured_close(conn);
}
END_TEST

START_TEST(regions_without_seals_are_read_so) {
    const uint32_t way = ways[_i];
    const cured_op sum = CURED_OP_SUM;
    cured_conn *one = connect_as(1), *conn = connect_as(way);
    const uint64_t n = BYTES / sizeof(double);
    cured_region *region;
    cured_call *want, *got;
    write_file(false);
    OK(cured_region_fd(conn, file, &region, NULL));
    OK(cured_reduce_buffer(one, CURED_F64, &sum, 1, data, n, NULL, &want, NULL));
    OK(cured_region_reduce(region, CURED_F64, &sum, 1, AT, n, NULL, &got, NULL));
    OK(cured_wait(want, NULL));
    OK(cured_wait(got, NULL));
    assert_equal(want, got, 1, CURED_F64, way);
    cured_call_free(want);
    cured_call_free(got);
    cured_region_free(region);
    close(file);
    cured_close(one);
    cured_close(conn);
}
END_TEST

/* The connection goes on, whatever became of the call. */
static void assert_goes_on(cured_conn *conn, uint32_t way) {
    const cured_op max = CURED_OP_MAX;
    cured_conn *one = connect_as(1);
    write_file(true);
    ck_assert(compare(one, conn, CURED_U8, &max, 1, NULL, way));
    close(file);
    cured_close(one);
}

START_TEST(a_file_that_is_cut_is_an_error) {
    const cured_op sum = CURED_OP_SUM;
    cured_conn *conn = connect_as(ways[_i]);
    cured_error error;
    cured_call *call;
    const int fd = make_file(false);
    ck_assert_int_eq(ftruncate(fd, (off_t)LARGE * MIB), 0);
    OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, fd, 0, (uint64_t)LARGE * MIB / sizeof(float), NULL, &call, NULL));
    ck_assert_int_eq(ftruncate(fd, MIB), 0);
    ck_assert_int_eq(cured_wait(call, &error), CURED_DATA_LOSS);
    ck_assert_ptr_nonnull(strstr(error.text, "while it was read: it was cut, or its size says nothing"));
    cured_call_free(call);
    close(fd);
    assert_goes_on(conn, ways[_i]);
    cured_close(conn);
}
END_TEST

/* A call that is over leaves its descriptor to the program. */
START_TEST(a_call_may_end_before_its_file) {
    const cured_op sum = CURED_OP_SUM;
    cured_conn *conn = connect_as(ways[_i]);
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *call;
    const int fd = make_file(false);
    ck_assert_int_eq(ftruncate(fd, (off_t)LARGE * MIB), 0);
    OK(cured_reduce_fd(conn, CURED_F64, &sum, 1, fd, 0, (uint64_t)LARGE * MIB / sizeof(double), NULL, &call, NULL));
    cured_process(conn, NULL);
    cured_call_free(call);
    o.timeout_ms = 1;
    OK(cured_reduce_fd(conn, CURED_F64, &sum, 1, fd, 0, (uint64_t)LARGE * MIB / sizeof(double), &o, &call, NULL));
    usleep(2000);
    ck_assert_int_eq(cured_wait(call, NULL), CURED_DEADLINE_EXCEEDED);
    cured_call_free(call);
    close(fd);
    assert_goes_on(conn, ways[_i]);
    cured_close(conn);
}
END_TEST

/* The linker puts these in front of the allocator and the kernel (CMakeLists.txt). */
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
ssize_t __real_pread(int fd, void *into, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *into, size_t bytes, off_t offset);
int __real_statx(int folder, const char *path, int flags, unsigned wanted, struct statx *st);
int __wrap_statx(int folder, const char *path, int flags, unsigned wanted, struct statx *st);
static _Atomic uint32_t read_rooms, block_rooms;
static _Atomic uint32_t block = 4096; /* what a descriptor with O_DIRECT wants multiples of */

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    if (bytes == CR_WORKER_FETCH_BYTES) atomic_fetch_add(&read_rooms, 1);
    if (bytes == 128 * 1024) atomic_fetch_add(&block_rooms, 1);
    return __real_aligned_alloc(alignment, bytes);
}

ssize_t __wrap_pread(int fd, void *into, size_t bytes, off_t offset) {
    const bool direct = (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
    if (!direct || ((uintptr_t)into | bytes | (uint64_t)offset) % atomic_load(&block) == 0)
        return __real_pread(fd, into, bytes, offset);
    errno = EINVAL;
    return -1;
}

int __wrap_statx(int folder, const char *path, int flags, unsigned wanted, struct statx *st) {
    enum { DIOALIGN = 0x2000, MEMORY = 38, OFFSET = 39 };
    const int failure = __real_statx(folder, path, flags, wanted, st);
    if (failure != 0 || (wanted & DIOALIGN) == 0) return failure;
    st->stx_mask |= DIOALIGN;
    ((uint32_t *)(void *)st)[MEMORY] = 512;
    ((uint32_t *)(void *)st)[OFFSET] = atomic_load(&block);
    return 0;
}

/* A file whose reads pass by the page cache, at places and of lengths that a disk has no blocks at, too. */
START_TEST(direct_files_are_read) {
    static const uint64_t places[] = {0, 4096, AT, MIB + 7};
    const uint32_t way = ways[_i % WAYS];
    char name[] = "direct-XXXXXX";
    atomic_store(&block, _i < WAYS ? 4096 : 16384);
    cured_conn *one = connect_as(1), *conn = connect_as(way);
    const int made = mkstemp(name), direct = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
    ck_assert_int_ge(made, 0);
    unlink(name);
    if (direct < 0) {
        printf("skipped: files here cannot be opened with O_DIRECT\n");
    } else {
        ck_assert_int_eq(pwrite(made, data, BYTES, 0), BYTES);
        for (size_t i = 0; i < COUNT(places); i++) {
            if (SPARSE && (i + (size_t)_i + (size_t)_i / WAYS) % 2 != 0) continue; /* each way tries each place once */
            const uint64_t n = (BYTES - places[i]) / sizeof(float);
            cured_error error;
            cured_call *want, *got;
            OK(cured_reduce_buffer(one, CURED_F32, some, COUNT(some), data + places[i], n, NULL, &want, NULL));
            OK(cured_wait(want, NULL));
            atomic_store(&block_rooms, 0);
            OK(cured_reduce_fd(conn, CURED_F32, sums, COUNT(sums), direct, places[i], n, NULL, &got, NULL));
            ck_assert_msg(cured_wait(got, &error) == CURED_OK, "from %d: %s", (int)places[i], error.text);
            /* Of 256 KiB and more that are read at once, and not of each 128 of them. */
            ck_assert_uint_le(atomic_load(&block_rooms), BYTES / CR_WORKER_FETCH_BYTES + 8);
            cured_call_free(got);
            OK(cured_reduce_fd(conn, CURED_F32, some, COUNT(some), direct, places[i], n, NULL, &got, NULL));
            ck_assert_msg(cured_wait(got, &error) == CURED_OK, "from %d: %s", (int)places[i], error.text);
            assert_equal(want, got, COUNT(some), CURED_F32, way);
            cured_call_free(want);
            cured_call_free(got);
        }
        close(direct);
    }
    close(made);
    cured_close(one);
    cured_close(conn);
}
END_TEST

/* What a thread of the pool reads into stays the thread's, from turn to turn and from call to call. */
START_TEST(threads_keep_what_they_read_into) {
    enum { CALLS = 40, THREADS = 3 };
    const cured_op sum = CURED_OP_SUM;
    cured_conn *conn = connect_as(CURED_THREAD_POOL);
    write_file(false);
    atomic_store(&read_rooms, 0);
    for (int i = 0; i < CALLS; i++) {
        cured_call *call;
        OK(cured_reduce_fd(conn, CURED_F32, &sum, 1, file, AT, BYTES / sizeof(float), NULL, &call, NULL));
        OK(cured_wait(call, NULL));
        cured_call_free(call);
    }
    ck_assert_uint_ge(atomic_load(&read_rooms), 1);
    ck_assert_uint_le(atomic_load(&read_rooms), THREADS);
    close(file);
    cured_close(conn);
}
END_TEST

/* Another call has the pool: this one folds alone. */
START_TEST(a_busy_pool_is_not_waited_for) {
    const cured_op sum = CURED_OP_SUM;
    cured_conn *one = connect_as(1), *conn = connect_as(CURED_THREAD_POOL);
    write_file(false);
    ck_assert(compare(one, conn, CURED_F32, &sum, 1, NULL, CURED_THREAD_POOL));
    cr_thread_pool *pool = cr_thread_pool_take(NULL, BYTES);
    ck_assert_ptr_nonnull(pool);
    ck_assert_uint_eq(cr_thread_pool_threads(pool), 3); /* which a file's call has started */
    ck_assert(compare(one, conn, CURED_F32, &sum, 1, NULL, CURED_THREAD_POOL));
    cr_thread_pool_give(pool);
    close(file);
    cured_close(one);
    cured_close(conn);
}
END_TEST

CR_CHECK_MAIN("client/unread") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, files_have_the_bits_of_memory, 0, 2 * WAYS);
    tcase_add_loop_test(tc, pairs_and_partials_too, 0, WAYS);
    tcase_add_loop_test(tc, regions_without_seals_are_read_so, 0, WAYS);
    tcase_add_loop_test(tc, a_file_that_is_cut_is_an_error, 0, WAYS);
    tcase_add_loop_test(tc, a_call_may_end_before_its_file, 0, WAYS);
    tcase_add_loop_test(tc, direct_files_are_read, 0, 2 * WAYS);
    tcase_add_test(tc, threads_keep_what_they_read_into);
    tcase_add_test(tc, a_busy_pool_is_not_waited_for);
}
