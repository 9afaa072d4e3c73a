/* Feeds: every kind of file to the right sum, every wrong request to its status, and nothing held afterwards. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/feed.h"
#include "engine/lane.h"
#include "engine/memory/guard.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

/* LARGE: elements of 4 bytes, which a feed takes more than one window for. */
enum { MIB = 1024 * 1024, SLABS = 4, LARGE = 17 * MIB };

static cr_queue *queue;
static cr_slabs *slabs;
static cr_files *files;
static cr_lane *lane;
static gate woken = GATE_INIT;
static cr_error error;
static const cr_slab_asker somebody = {.client = 99};

static void wake(void *argument) { gate_add(argument); }

static void setup(void) {
    assert_ok(cr_guard_install(&error), error);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    assert_ok(cr_slabs_new(SLABS, &slabs, &error), error);
    assert_ok(cr_files_new(2, 2, &files, &error), error);
    cr_lane_options options = {.queue = queue, .workers = 2};
    assert_ok(cr_lane_cpu.open(&options, &lane, &error), error);
}

static void teardown(void) {
    ck_assert(cr_files_stop(files, 60000));
    cr_queue_close(queue);
    cr_lane_cpu.close(lane);
    ck_assert_uint_eq(metric_now(CR_M_regions), 0);
    ck_assert_uint_eq(metric_now(CR_M_windows), 0);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    ck_assert_uint_eq(metric_now(CR_M_jobs), 0);
    cr_slabs_free(slabs);
    cr_queue_free(queue);
}

static cr_feed_options whole(int fd) {
    return (cr_feed_options){.files = files,
                             .slabs = slabs,
                             .queue = queue,
                             .max_bytes = 1ull << 40,
                             .max_option = "max_input_bytes",
                             .input = {1, {{.descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0)}}},
                             .to_end = true};
}

static cr_job *start(cr_dtype dtype, const cr_feed_options *options) {
    cr_job *job = cr_job_new(dtype, cr_op_needs(CR_OP_SUM, dtype));
    job->kinds = CR_BY_CPU | CR_BY_GPU; /* what is for the CPU alone needs no slab: test_feed_unread.c */
    assert_ok(cr_feed_start(job, options, &error), error);
    return job;
}

static cr_job *wait_for_one(void) {
    static cr_list list;
    static unsigned seen;
    if (!list.next) cr_list_init(&list);
    while (cr_list_empty(&list)) {
        gate_wait(&woken, seen + 1);
        seen = gate_count(&woken);
        cr_list more;
        cr_queue_completed(queue, &more);
        for (cr_list *node; (node = cr_list_pop(&more));) cr_list_append(&list, node);
    }
    return cr_container(cr_list_pop(&list), cr_job, done);
}

static uint64_t sum_of(cr_job *job) {
    cr_value value;
    uint64_t sum = 0;
    ck_assert_msg(job->error.code == CR_OK, "%s", job->error.text);
    cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    ck_assert_int_eq(value.error.code, CR_OK);
    memcpy(&sum, value.bytes, sizeof sum);
    return sum;
}

/* n u32 elements after lead bytes of something else, the same MIB of them over and over; their sum is returned. */
static uint64_t write_numbers(int fd, size_t lead, size_t n) {
    const size_t most = n < MIB ? n : MIB;
    char junk[256];
    memset(junk, 0xff, sizeof junk);
    fill_file(fd, junk, lead);
    uint32_t *numbers = malloc(most * sizeof *numbers + 1);
    uint64_t sum = 0, of_most = 0;
    for (size_t i = 0; i < most; i++) of_most += numbers[i] = (uint32_t)(i * 2654435761u);
    for (size_t left = n, some; left != 0; left -= some) {
        some = left < most ? left : most;
        fill_file(fd, numbers, some * sizeof *numbers);
        for (size_t i = 0; some < most && i < some; i++) sum += numbers[i];
        if (some == most) sum += of_most;
    }
    free(numbers);
    return sum;
}

/* Ops of several arrays may come; what was passed for them is let go, whatever the count. */
START_TEST(one_array_for_now) {
    size_t before = open_descriptors();
    int fd = disk_file();
    for (uint32_t count = 0; count <= CR_INPUT_SOURCES; count++) {
        if (count == 1) continue;
        cr_feed_options options = {.files = files, .slabs = slabs, .queue = queue, .input.count = count};
        for (uint32_t i = 0; i < count; i++) options.input.sources[i].descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
        job->kinds = CR_BY_CPU | CR_BY_GPU;
        assert_fails(cr_feed_start(job, &options, &error), CR_UNIMPLEMENTED, error, "arrays");
        cr_queue_unhold(queue, job);
        cr_job_free(wait_for_one());
    }
    close(fd);
    ck_assert(cr_files_stop(files, 60000));
    ck_assert_uint_le(open_descriptors(), before + 1); /* the mount table */
    assert_ok(cr_files_new(2, 2, &files, &error), error);
}
END_TEST

static const size_t sizes[] = {0, 1, 1000, MIB / 4, MIB / 4 + 1, 9 * MIB / 4 - 3, LARGE};
enum { SIZES = sizeof sizes / sizeof *sizes };

START_TEST(files_and_memfds_of_every_size) {
    size_t before = open_descriptors(), n = sizes[_i / 2 % SIZES], lead = _i / 2 / SIZES ? 129 : 0;
    int fd = _i % 2 ? memory_file() : disk_file();
    uint64_t sum = write_numbers(fd, lead, n);
    cr_feed_options options = whole(fd);
    options.input.sources[0].offset = lead;
    cr_job *job = start(CR_U32, &options), *done = wait_for_one();
    ck_assert_ptr_eq(done, job);
    ck_assert_uint_eq(sum_of(job), sum);
    ck_assert_uint_eq(job->partial.n, n);
    ck_assert_uint_eq(cr_queue_progress(queue, job).total_bytes, n * 4);
    cr_job_free(job);
    close(fd);
    ck_assert_uint_le(open_descriptors(), before + 1); /* the mount table */
}
END_TEST

START_TEST(a_range_of_a_file) {
    int fd = _i ? memory_file() : disk_file();
    write_numbers(fd, 0, 1000);
    cr_feed_options options = whole(fd);
    options.to_end = false;
    options.input.sources[0].offset = 7 * 4;
    options.count = 3;
    uint64_t sum = 0;
    for (uint32_t i = 7; i < 10; i++) sum += (uint32_t)(i * 2654435761u);
    start(CR_U32, &options);
    cr_job *job = wait_for_one();
    ck_assert_uint_eq(sum_of(job), sum);
    cr_job_free(job);
    close(fd);
}
END_TEST

START_TEST(holes_stay_holes) {
    int fd = _i ? memory_file() : disk_file();
    ck_assert_int_eq(ftruncate(fd, 12 * MIB), 0);
    uint32_t one = 77;
    ck_assert_int_eq(pwrite(fd, &one, 4, 5 * MIB), 4);
    cr_feed_options options = whole(fd);
    start(CR_U32, &options);
    cr_job *job = wait_for_one();
    ck_assert_uint_eq(sum_of(job), 77);
    ck_assert_uint_eq(job->partial.n, 3 * MIB);
    cr_job_free(job);
    ck_assert_int_lt(lseek(fd, 0, SEEK_HOLE), 5 * MIB + 2 * 4096);
    close(fd);
}
END_TEST

/* A file of a file system that might hang is read on the other pool, into memory of its own. */
START_TEST(foreign_files_are_read_apart) {
    int fd = foreign_file();
    if (fd < 0) return;
    static uint8_t bytes[65536];
    uint64_t sum = 0;
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    for (ssize_t i = 0; i < n; i++) sum += bytes[i];
    cr_feed_options options = whole(fd);
    start(CR_U8, &options);
    cr_job *job = wait_for_one();
    ck_assert_uint_eq(sum_of(job), sum);
    cr_job_free(job);
    close(fd);
}
END_TEST

static void assert_stopped(const cr_feed_options *options, cr_dtype dtype, cr_status status, const char *word) {
    start(dtype, options);
    cr_job *job = wait_for_one();
    assert_fails(job->error.code, status, job->error, word);
    cr_job_free(job);
}

START_TEST(wrong_requests_are_refused) {
    size_t before = open_descriptors();
    int fd = disk_file(), dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ends[2];
    int sizeless = sizeless_file();
    write_numbers(fd, 3, 10);
    ck_assert_int_eq(pipe(ends), 0);
    cr_feed_options options = whole(fd);
    assert_stopped(&options, CR_U32, CR_INVALID_ARGUMENT, "not a multiple of 4");
    options = whole(fd);
    options.input.sources[0].offset = 44;
    assert_stopped(&options, CR_U32, CR_INVALID_ARGUMENT, "offset: 44");
    options = whole(fd);
    options.to_end = false;
    options.input.sources[0].offset = 3;
    options.count = 11;
    assert_stopped(&options, CR_U32, CR_INVALID_ARGUMENT, "count");
    options = whole(fd);
    options.to_end = false;
    options.count = UINT64_MAX / 4 + 1;
    assert_stopped(&options, CR_U32, CR_INVALID_ARGUMENT, "2^64");
    options = whole(fd);
    options.max_bytes = 42;
    assert_stopped(&options, CR_U8, CR_INVALID_ARGUMENT, "max_input_bytes");
    options = whole(sizeless);
    assert_stopped(&options, CR_U8, CR_INVALID_ARGUMENT, "a size of 0");
    options = whole(dir);
    assert_stopped(&options, CR_U8, CR_INVALID_ARGUMENT, "directory");
    options = whole(ends[0]);
    assert_stopped(&options, CR_U8, CR_INVALID_ARGUMENT, "pipe");
    close(fd);
    close(dir);
    close(sizeless);
    close(ends[0]);
    close(ends[1]);
    ck_assert_uint_le(open_descriptors(), before + 1);
}
END_TEST

/* The file is cut while lanes and files threads are at it: the answer is DATA_LOSS, or the whole sum where they were
 * faster; never a wrong one, never a crash. */
START_TEST(a_file_cut_under_the_read) {
    int fd = disk_file();
    size_t n = 6 * MIB;
    uint64_t sum = write_numbers(fd, 0, n), state = (uint64_t)_i;
    cr_feed_options options = whole(fd);
    cr_job *job = start(CR_U32, &options);
    uint64_t until = random_next(&state) % (n * 2);
    for (cr_progress now = {0}; !now.total_bytes || now.folded_bytes < until;) now = cr_queue_progress(queue, job);
    ck_assert_int_eq(ftruncate(fd, (off_t)(random_next(&state) % (n * 4))), 0);
    ck_assert_ptr_eq(wait_for_one(), job);
    if (job->error.code == CR_OK)
        ck_assert_uint_eq(sum_of(job), sum);
    else
        ck_assert_int_eq(job->error.code, CR_DATA_LOSS);
    cr_job_free(job);
    close(fd);
}
END_TEST

START_TEST(a_job_stopped_on_the_way) {
    int fd = _i % 2 ? memory_file() : disk_file();
    write_numbers(fd, 0, 4 * MIB);
    cr_feed_options options = whole(fd);
    cr_job *job = start(CR_U32, &options);
    uint64_t state = (uint64_t)_i, until = random_next(&state) % (8 * MIB);
    if (_i > 3)
        while (cr_queue_progress(queue, job).folded_bytes < until) {
        }
    cr_queue_stop(queue, job, NULL);
    ck_assert_ptr_eq(wait_for_one(), job);
    ck_assert_int_eq(job->error.code, CR_OK);
    cr_job_free(job);
    close(fd);
}
END_TEST

/* Far more jobs than slabs: slots wait for slabs that other threads give back. */
START_TEST(more_jobs_than_slabs) {
    enum { JOBS = 24 };
    int fd = memory_file();
    uint64_t sum = write_numbers(fd, 0, MIB + 5);
    for (int i = 0; i < JOBS; i++) {
        cr_feed_options options = whole(fd);
        start(CR_U32, &options);
    }
    for (int i = 0; i < JOBS; i++) {
        cr_job *job = wait_for_one();
        ck_assert_uint_eq(sum_of(job), sum);
        cr_job_free(job);
    }
    close(fd);
}
END_TEST

/* The slab comes in the moment a slot has got in line for it, while that slot's thread is still on its way out. */
START_TEST(a_slab_that_comes_at_once) {
    int fd = memory_file();
    uint64_t sum = write_numbers(fd, 0, 1000);
    void *taken[SLABS];
    for (int i = 0; i < SLABS; i++) taken[i] = cr_slab_take(slabs, &somebody);
    for (int round = 0; round < 300; round++) {
        uint64_t waits = metric_now(CR_M_slab_waits_total);
        cr_feed_options options = whole(fd);
        start(CR_U32, &options);
        while (metric_now(CR_M_slab_waits_total) == waits) {
        }
        cr_slab_give(slabs, taken[0]);
        cr_job *job = wait_for_one();
        ck_assert_uint_eq(sum_of(job), sum);
        cr_job_free(job);
        while (!(taken[0] = cr_slab_take(slabs, &somebody))) {
        }
    }
    for (int i = 0; i < SLABS; i++) cr_slab_give(slabs, taken[i]);
    close(fd);
}
END_TEST

START_TEST(no_memory_closes_the_descriptor) {
    size_t before = open_descriptors();
    int fd = memory_file();
    cr_feed_options options = whole(fd);
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
    job->kinds = CR_BY_CPU | CR_BY_GPU;
    fail_allocation(1);
    assert_fails(cr_feed_start(job, &options, &error), CR_RESOURCE_EXHAUSTED, error, "memory");
    close(fd);
    cr_queue_unhold(queue, job); /* still the caller's */
    ck_assert_ptr_eq(wait_for_one(), job);
    cr_job_free(job);
    while (open_descriptors() > before) usleep(1000); /* closed on a files thread */
}
END_TEST

/* ---- regions: opened once, fed to many jobs ---- */

static cr_kept kept;
static gate kept_opened = GATE_INIT, kept_closed = GATE_INIT;

static void kept_tell(cr_kept *who, cr_kept_news news) {
    (void)who;
    gate_add(news == CR_KEPT_OPENED ? &kept_opened : &kept_closed);
}

static void keep(int fd) {
    unsigned before = gate_count(&kept_opened);
    memset(&kept, 0, sizeof kept);
    kept.files = files;
    kept.publish = kept_tell;
    kept.source = (cr_kept_source){.kind = CR_KEPT_FILE, .descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    cr_kept_open(&kept);
    gate_wait(&kept_opened, before + 1);
    ck_assert_msg(kept.error.code == CR_OK, "%s", kept.error.text);
}

static void let_go(void) {
    unsigned before = gate_count(&kept_closed);
    cr_kept_release(&kept);
    gate_wait(&kept_closed, before + 1);
}

static cr_feed_options of_kept(void) {
    cr_feed_options options = whole(-1);
    options.input.sources[0].kept = &kept;
    cr_kept_use(&kept);
    return options;
}

/* Memory that is sealed for good, a memfd, a file, and both kinds with a hole behind: a holder for each way. */
static int holder(int kind, size_t n, uint64_t *sum) {
    int fd = kind == 2 || kind == 3 ? disk_file() : memory_file();
    *sum = write_numbers(fd, 129, n);
    if (kind >= 3) ck_assert_int_eq(ftruncate(fd, (off_t)(129 + n * 4 + 40 * MIB)), 0);
    if (kind == 0)
        ck_assert_int_eq(fcntl(fd, 1033 /* F_ADD_SEALS */, 2 | 16 /* F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE */), 0);
    return fd;
}

START_TEST(a_region_of_every_way) {
    enum { JOBS = 5 };
    uint64_t sum;
    size_t n = _i % 2 ? LARGE : 1000;
    int fd = holder(_i / 2, n, &sum);
    cr_job *jobs[JOBS];
    keep(fd);
    ck_assert_int_eq(cr_kept_is_steady(&kept), _i / 2 == 0);
    for (int i = 0; i < JOBS; i++) {
        cr_feed_options options = of_kept();
        options.input.sources[0].offset = 129;
        options.to_end = false;
        options.count = i ? n : 0;
        jobs[i] = start(CR_U32, &options);
    }
    for (int i = 0; i < JOBS; i++) wait_for_one();
    for (int i = 0; i < JOBS; i++) {
        ck_assert_uint_eq(sum_of(jobs[i]), i ? sum : 0);
        cr_job_free(jobs[i]);
    }
    let_go();
    close(fd);
}
END_TEST

START_TEST(a_region_is_let_go_when_its_job_stops) {
    uint64_t sum;
    int fd = holder(_i % 3, LARGE, &sum);
    keep(fd);
    cr_feed_options options = of_kept();
    options.input.sources[0].offset = 1;
    options.to_end = false;
    options.count = LARGE;
    cr_job *job = start(CR_U32, &options);
    cr_queue_stop(queue, job, NULL);
    ck_assert_ptr_eq(wait_for_one(), job);
    cr_job_free(job);
    let_go();
    close(fd);
}
END_TEST

START_TEST(wrong_ranges_of_a_region) {
    uint64_t sum;
    int fd = holder(_i, 1000, &sum);
    keep(fd);
    static const struct {
        uint64_t offset, count;
        const char *word;
    } wrong[] = {{4130, 0, "offset"},
                 {129, 1001, "count"},
                 {UINT64_MAX, 1, "offset"},
                 {1, UINT64_MAX / 4 + 1, "count"},
                 {1, UINT64_MAX / 4, "count"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_feed_options options = of_kept();
        options.input.sources[0].offset = wrong[i].offset;
        options.to_end = false;
        options.count = wrong[i].count;
        cr_job *job = cr_job_new(CR_U32, CR_FAM_SUM);
        job->kinds = CR_BY_CPU | CR_BY_GPU;
        if (_i == 0) { /* told at once */
            assert_fails(cr_feed_start(job, &options, &error), CR_INVALID_ARGUMENT, error, wrong[i].word);
            cr_queue_unhold(queue, job);
            ck_assert_ptr_eq(wait_for_one(), job);
        } else {
            assert_ok(cr_feed_start(job, &options, &error), error);
            ck_assert_ptr_eq(wait_for_one(), job);
            ck_assert_int_eq(job->error.code, CR_INVALID_ARGUMENT);
            ck_assert_ptr_nonnull(strstr(job->error.text, wrong[i].word));
        }
        cr_job_free(job);
    }
    let_go();
    close(fd);
}
END_TEST

START_TEST(no_memory_lets_the_region_go) {
    uint64_t sum;
    int fd = holder(_i, 1000, &sum);
    keep(fd);
    cr_feed_options options = of_kept();
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
    job->kinds = CR_BY_CPU | CR_BY_GPU;
    fail_allocation(1);
    assert_fails(cr_feed_start(job, &options, &error), CR_RESOURCE_EXHAUSTED, error, "memory");
    fail_allocation(0);
    cr_queue_unhold(queue, job); /* still the caller's */
    ck_assert_ptr_eq(wait_for_one(), job);
    cr_job_free(job);
    let_go();
    close(fd);
}
END_TEST

CR_CHECK_MAIN("engine/feed") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_array_for_now);
    tcase_add_loop_test(tc, files_and_memfds_of_every_size, 0, 4 * SIZES);
    tcase_add_loop_test(tc, a_range_of_a_file, 0, 2);
    tcase_add_loop_test(tc, holes_stay_holes, 0, 2);
    tcase_add_test(tc, foreign_files_are_read_apart);
    tcase_add_test(tc, wrong_requests_are_refused);
    tcase_add_loop_test(tc, a_file_cut_under_the_read, 0, 20);
    tcase_add_loop_test(tc, a_job_stopped_on_the_way, 0, 16);
    tcase_add_loop_test(tc, more_jobs_than_slabs, 0, 5);
    tcase_add_test(tc, a_slab_that_comes_at_once);
    tcase_add_test(tc, no_memory_closes_the_descriptor);
    tcase_add_loop_test(tc, a_region_of_every_way, 0, 10);
    tcase_add_loop_test(tc, a_region_is_let_go_when_its_job_stops, 0, 6);
    tcase_add_loop_test(tc, wrong_ranges_of_a_region, 0, 3);
    tcase_add_loop_test(tc, no_memory_lets_the_region_go, 0, 2);
}
