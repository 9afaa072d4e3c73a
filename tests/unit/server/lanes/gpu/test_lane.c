/* The lane of a GPU against a stand-in device (tests/fake): right sums, runs of claims, pinned and unpinned memory, faults at
 * every call, and the pinner. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/named.h"
#include "kernels/core/fast.h"
#include "kernels/cpu/fold.h"
#include "server/lanes/gpu/internal.h"
#include "tests/fake/fake_gpu.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MIB = 1024 * 1024, PAGES = 2 * MIB, HANG_MS = 60000 };

typedef struct piece {
    cr_segment segment;
    atomic_int released;
} piece;

static cr_queue *queue;
static cr_lane *lane, *cpu;
static gate done = GATE_INIT, lost = GATE_INIT, releases = GATE_INIT;
static uint8_t *memory;
static cr_error error;
static size_t used = PAGES;   /* of the memory */
static uint64_t gpu_from = 1; /* of the jobs */
static bool untraced;         /* no tool looks on */

static void post(void *argument) { gate_add(argument); }

static void release(cr_segment *segment) {
    atomic_fetch_add(&cr_container(segment, piece, segment)->released, 1);
    gate_add(&releases);
}

static void open_lanes(uint32_t streams, bool with_cpu, uint64_t timeout_ms) {
    cr_log_set_level(CR_LOG_ERROR);
    done.count = lost.count = 0;
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .untraced = untraced});
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    cr_lane_options options = {.queue = queue,
                               .gpu = &cr_fake_gpu,
                               .streams = streams,
                               .chunk_bytes = MIB / 2,
                               .min_bytes = 1,
                               .timeout_ms = timeout_ms,
                               .lost = post,
                               .lost_argument = &lost};
    assert_ok(cr_lane_gpu.open(&options, &lane, &error), error);
    cpu = NULL;
    cr_lane_options beside = {.queue = queue, .workers = 2};
    if (with_cpu) assert_ok(cr_lane_cpu.open(&beside, &cpu, &error), error);
    memory = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    for (size_t i = 0; i < PAGES; i++) memory[i] = (uint8_t)(i % 251);
}

static uint32_t ranges_begun(void) {
    uint32_t open, begun = fake_gpu_traces(&open);
    ck_assert_uint_eq(open, 0);
    return begun;
}

static void close_lanes(void) {
    ranges_begun();
    cr_queue_close(queue);
    cr_lane_gpu.close(lane);
    if (cpu) cr_lane_cpu.close(cpu);
    cr_queue_free(queue);
    munmap(memory, PAGES);
    ck_assert_uint_eq(metric_now(CR_M_jobs), 0);
    ck_assert_uint_eq(metric_now(CR_M_gpus), 0);
}

static cr_job *await_job(unsigned count) {
    gate_wait(&done, count);
    cr_list list;
    cr_queue_completed(queue, &list);
    cr_list *node = cr_list_pop(&list);
    return node ? cr_container(node, cr_job, done) : NULL;
}

/* Sums the memory as a job of `pieces` segments, whose partial the lane or the CPU makes. */
static void sum_right(uint32_t kinds, unsigned pieces, bool pinned) {
    static piece list[64];
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM | CR_FAM_EXTREMA);
    unsigned before = gate_count(&done), released = gate_count(&releases);
    size_t size = used / pieces;
    uint64_t sum = 0;
    job->kinds = kinds;
    job->gpu_from = gpu_from;
    job->ops = cr_ops_of(CR_OP_SUM) | cr_ops_of(CR_OP_ARGMAX);
    for (unsigned i = 0; i < pieces; i++) {
        unsigned n = i ^ 1; /* not in the array's order */
        if (pieces == 1) n = 0;
        cr_segment_init(&list[n].segment, job, memory + n * size, n * size);
        atomic_store(&list[n].released, 0);
        list[n].segment.release = release;
        list[n].segment.pinned = pinned;
        cr_queue_add(queue, &list[n].segment);
        cr_queue_ready(queue, &list[n].segment, size, true);
    }
    for (size_t i = 0; i < size * pieces; i++) sum += memory[i];
    cr_queue_unhold(queue, job);
    ck_assert_ptr_eq(await_job(before + 1), job);
    ck_assert_int_eq(job->error.code, CR_OK);
    ck_assert_uint_eq(job->partial.n, size * pieces);
    ck_assert_uint_eq(job->partial.max.index, 250);
    cr_value value;
    uint64_t got = 0;
    cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    memcpy(&got, value.bytes, sizeof got);
    ck_assert_uint_eq(got, sum);
    cr_job_free(job);
    gate_wait(&releases, released + pieces); /* they may come a moment after the job is done */
    for (unsigned i = 0; i < pieces; i++) ck_assert_int_eq(atomic_load(&list[i].released), 1);
}

START_TEST(sums_of_every_kind_of_memory) {
    open_lanes(3, false, HANG_MS);
    cr_pinner pinner = cr_lane_gpu_pinner(lane);
    uint64_t folded = metric_now(CR_M_gpu_bytes_total);
    sum_right(CR_BY_GPU, 1, false);
    sum_right(CR_BY_GPU, 64, false);
    ck_assert_uint_eq(fake_gpu_seen().pinned_copies, 0);
    assert_ok(pinner.pin(pinner.argument, memory, PAGES, false, &error), error);
    sum_right(CR_BY_GPU, 1, true);
    sum_right(CR_BY_GPU, 4, true);
    sum_right(CR_BY_GPU, 64, true);
    ck_assert_uint_gt(fake_gpu_seen().pinned_copies, 0);
    ck_assert_uint_eq(metric_now(CR_M_gpu_bytes_total) - folded, 5 * PAGES);
    pinner.unpin(pinner.argument, memory);
    close_lanes();
    ck_assert_uint_eq(fake_gpu_seen().alive, 0);
}
END_TEST

/* Of a work of 16 segments: those that lie side by side are one copy, and all copies are enqueued together. */
START_TEST(copies_of_a_work_go_together) {
    open_lanes(1, false, HANG_MS);
    cr_pinner pinner = cr_lane_gpu_pinner(lane);
    assert_ok(pinner.pin(pinner.argument, memory, PAGES, false, &error), error);
    used = gpu_from = MIB / 2; /* as much as goes at a time, and nothing before all of it is there */
    fake_gpu_counts before = fake_gpu_seen();
    sum_right(CR_BY_GPU, 16, true); /* in the order 1 0 3 2 … */
    fake_gpu_counts after = fake_gpu_seen();
    ck_assert_uint_eq(after.copy_calls - before.copy_calls, 1);
    ck_assert_uint_eq(after.copies - before.copies, 16);
    ck_assert_uint_eq(after.copied_bytes - before.copied_bytes, used);
    used = PAGES;
    gpu_from = 1;
    pinner.unpin(pinner.argument, memory);
    close_lanes();
}
END_TEST

/* Whatever becomes of its claims; what the stand-in sees is checked when the lanes close, too. */
START_TEST(each_job_is_one_range) {
    const fake_gpu_faults faults[] = {
        {.devices = 1}, {.fail_fold = 1}, {.fail_fault = 1}, {.lose_at = 1}, {.lose_at = 5}};
    open_lanes(2, true, HANG_MS);
    for (int pieces = 1; pieces <= 64; pieces *= 64) {
        const uint32_t begun = ranges_begun();
        sum_right(CR_BY_GPU, (unsigned)pieces, false);
        ck_assert_uint_eq(ranges_begun(), begun + 1);
        ck_assert_ptr_ne(strstr(fake_gpu_trace_name(begun + 1), ": sum,argmax u8["), NULL);
    }
    sum_right(CR_BY_CPU, 4, false);
    const uint32_t begun = ranges_begun();
    close_lanes();
    for (unsigned f = 0; f < sizeof faults / sizeof *faults; f++) {
        open_lanes(2, true, HANG_MS);
        fake_gpu_plan(&faults[f]);
        sum_right(CR_BY_GPU, 4, false);
        ck_assert_uint_eq(ranges_begun(), begun + f + 1);
        close_lanes();
    }
    untraced = true; /* then the stand-in has no range begun */
    open_lanes(2, false, HANG_MS);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .untraced = 1});
    sum_right(CR_BY_GPU, 4, false);
    close_lanes();
    untraced = false;
}
END_TEST

static const char *range_name(cr_job *job) {
    static char name[CR_GPU_TRACE_TEXT];
    cr_gpu_trace_name(job, name);
    return strchr(name, ':');
}

START_TEST(names_of_ranges) {
    cr_error why;
    cr_job *job = cr_job_new(CR_F32, CR_FAM_SUM);
    const uint64_t number = job->number;
    char wanted[64], name[CR_GPU_TRACE_TEXT];
    ck_assert_str_eq(range_name(job), ":  f32[?]");
    job->ops = cr_ops_of(CR_OP_SUM) | cr_ops_of(CR_OP_BIT_XOR) | cr_ops_of(CR_OP_MEAN);
    for (uint32_t op = 32; op < 64; op++)
        job->ops |= cr_ops_of(op); /* of a later version: they take no other's place */
    job->total_bytes = 4000000;
    ck_assert_str_eq(range_name(job), ": sum,mean,bit_xor f32[1000000]");
    snprintf(wanted, sizeof wanted, "job %llu: ", (unsigned long long)number);
    cr_gpu_trace_name(job, name);
    ck_assert_int_eq(strncmp(name, wanted, strlen(wanted)), 0);
    job->ops = UINT64_MAX; /* as long as it can be */
    assert_ok(
        cr_named_attach(job, "a_name_as_long_as_a_name_of_a_kernel_may_ever_be", (uint32_t[]){CR_OP_SUM}, 1, &why),
        why);
    ck_assert_ptr_ne(strstr(range_name(job), "a_name_as_long"), NULL);
    ck_assert_uint_lt(strlen(range_name(job)), CR_GPU_TRACE_TEXT);
    cr_job *next = cr_job_new(CR_I64, CR_FAM_SUM);
    ck_assert_uint_eq(next->number, number + 1);
    job->state = next->state = CR_JOB_DONE;
    cr_job_free(job);
    cr_job_free(next);
}
END_TEST

START_TEST(beside_the_cpu) {
    open_lanes(2, true, HANG_MS);
    for (int i = 0; i < 8; i++) sum_right(CR_BY_CPU | CR_BY_GPU, i % 2 ? 64 : 1, false);
    close_lanes();
}
END_TEST

/* Whatever fails, and whenever, the sum is right, and each byte is given back once. */
START_TEST(a_fault_at_any_call) {
    fake_gpu_faults faults[] = {{.fail_copy = 1 + (uint32_t)_i},  {.fail_fold = 1 + (uint32_t)_i},
                                {.fail_fault = 1 + (uint32_t)_i}, {.lose_at = 1 + (uint32_t)_i},
                                {.lies_at = 1 + (uint32_t)_i},    {.hang_at = 1 + (uint32_t)_i}};
    for (unsigned f = 0; f < sizeof faults / sizeof *faults; f++) {
        open_lanes(2, true, faults[f].hang_at ? 100 : HANG_MS);
        faults[f].devices = 1;
        fake_gpu_plan(&faults[f]);
        sum_right(CR_BY_GPU, 4, false);
        sum_right(CR_BY_GPU, 64, false);
        bool gone = cr_lane_gpu.info(lane).lost != NULL;
        if (faults[f].lose_at || (faults[f].hang_at && gone)) gate_wait(&lost, 1);
        ck_assert(!gone || faults[f].lose_at || faults[f].hang_at);
        cr_pinner pinner = cr_lane_gpu_pinner(lane);
        if (gone)
            assert_fails(pinner.pin(pinner.argument, memory, PAGES, false, &error), CR_UNAVAILABLE, error, "lost");
        close_lanes();
    }
}
END_TEST

static cr_status still_after_a_while(cr_segment *segment, uint64_t end, cr_error *why) {
    (void)segment, (void)end, (void)why;
    usleep(300 * 1000);
    return CR_OK;
}

/* The lane's thread was away for longer than the limit, in a client's memory: what the device did meanwhile is done. */
START_TEST(a_thread_that_is_late_itself) {
    static piece list[2];
    cr_log_set_level(CR_LOG_ERROR);
    done.count = lost.count = 0;
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1});
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    memory = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_queue_gpu_comes(queue, 0); /* so that both wait for it, and it begins one after the other */
    for (unsigned i = 0; i < 2; i++) {
        cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
        job->kinds = CR_BY_GPU;
        job->gpu_from = 1;
        cr_segment_init(&list[i].segment, job, memory, 0);
        list[i].segment.release = release;
        list[i].segment.mapped = i == 1;
        list[i].segment.still = still_after_a_while;
        cr_queue_add(queue, &list[i].segment);
        cr_queue_ready(queue, &list[i].segment, i ? MIB / 4 : 1024, true);
        cr_queue_unhold(queue, job);
    }
    cr_lane_options options = {.queue = queue,
                               .gpu = &cr_fake_gpu,
                               .streams = 2,
                               .chunk_bytes = MIB / 2,
                               .min_bytes = 1,
                               .timeout_ms = 100,
                               .lost = post,
                               .lost_argument = &lost};
    assert_ok(cr_lane_gpu.open(&options, &lane, &error), error);
    cpu = NULL;
    for (unsigned got = 0; got < 2;) {
        cr_list finished;
        cr_queue_completed(queue, &finished);
        for (cr_list *node; (node = cr_list_pop(&finished)); got++) {
            cr_job *job = cr_container(node, cr_job, done);
            ck_assert_int_eq(job->error.code, CR_OK);
            cr_job_free(job);
        }
        if (got < 2) usleep(1000);
    }
    ck_assert_ptr_eq((void *)(uintptr_t)cr_lane_gpu.info(lane).lost, NULL);
    close_lanes();
}
END_TEST

/* So was it between two looks at its only work: it is done by the second, and the rest of the job is begun. */
START_TEST(what_is_late_makes_room) {
    open_lanes(1, false, FAKE_LATE_MS / 3);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .late_at = 2 * (uint32_t)_i});
    sum_right(CR_BY_GPU, 1, false);
    ck_assert_ptr_eq((void *)(uintptr_t)cr_lane_gpu.info(lane).lost, NULL);
    close_lanes();
}
END_TEST

enum { SMALL_JOBS = 300 };

/* Small jobs of several types that are in line before the lane begins to look; every tenth asks for BITS too. */
static void make_small(cr_job *jobs[SMALL_JOBS], piece list[SMALL_JOBS]) {
    static const cr_dtype dtypes[] = {CR_U8, CR_I32, CR_F32, CR_I64};
    for (unsigned i = 0; i < SMALL_JOBS; i++) {
        cr_dtype dtype = dtypes[i % 4];
        size_t bytes = (i * 53 + 1) % 900 * 8;
        jobs[i] = cr_job_new(dtype, CR_FAM_SUM | CR_FAM_EXTREMA | (i % 10 == 1 ? CR_FAM_BITS : 0));
        jobs[i]->kinds = CR_BY_GPU;
        jobs[i]->owner = &list[i];
        cr_segment_init(&list[i].segment, jobs[i], memory + i * 7168, 0);
        atomic_store(&list[i].released, 0);
        list[i].segment.release = release;
        cr_queue_add(queue, &list[i].segment);
        cr_queue_ready(queue, &list[i].segment, bytes, true);
        cr_queue_unhold(queue, jobs[i]);
    }
}

static void check_small(const cr_job *job) {
    static cr_partial own;
    const piece *p = job->owner;
    cr_value got, wanted;
    ck_assert_int_eq(job->error.code, CR_OK);
    cr_partial_init(&own, job->dtype, job->families);
    cr_cpu_fold(&own, p->segment.data, p->segment.ready / job->element, 0);
    ck_assert_uint_eq(job->partial.n, own.n);
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        if (!cr_op_needs(op, job->dtype) || (cr_op_needs(op, job->dtype) & ~job->families)) continue;
        cr_partial_finish(&job->partial, op, &(cr_finish_opts){0}, &got);
        cr_partial_finish(&own, op, &(cr_finish_opts){0}, &wanted);
        ck_assert_int_eq(got.error.code, wanted.error.code);
        ck_assert_mem_eq(got.bytes, wanted.bytes, wanted.error.code == CR_OK ? wanted.len : 0);
    }
}

/* One launch for all that waits; what goes wrong is one job's own business, which the CPU then folds. Without packs each job has its own. */
START_TEST(small_jobs_are_one_pack) {
    static cr_job *jobs[SMALL_JOBS];
    static piece list[SMALL_JOBS];
    const struct {
        fake_gpu_faults faults;
        unsigned packs, returned; /* 0: any number */
    } plans[] = {{{.devices = 1}, 1, 0},
                 {{.devices = 1, .room = 7}, SMALL_JOBS / 7 + 1, 0},
                 {{.devices = 1, .lacks = CR_FAM_BITS}, 0, SMALL_JOBS / 10},
                 {{.devices = 1, .fail_fold = 100}, 2, 1},
                 {{.devices = 1, .lies_at = 200}, 1, 1},
                 {{.devices = 1}, 0, 0}};
    const bool without = _i == 5;
    cr_log_set_level(CR_LOG_ERROR);
    unsigned released = gate_count(&releases);
    fake_gpu_plan(&plans[_i].faults);
    cr_fast_switch_off(without ? UINT64_C(1) << CR_FAST_GPU_PACKS : 0);
    done.count = lost.count = 0;
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    memory = mmap(NULL, PAGES + MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < PAGES + MIB; i++) memory[i] = (uint8_t)(i * 7 % 125);
    cr_queue_gpu_comes(queue, 0); /* so that they wait for it */
    make_small(jobs, list);
    const uint32_t packs = fake_gpu_seen().packs;
    const uint32_t ranges = ranges_begun();
    const uint64_t returned = metric_now(CR_M_gpu_returned_total);
    cr_lane_options options = {.queue = queue,
                               .gpu = &cr_fake_gpu,
                               .streams = 1,
                               .spin_ns = 1000 * (unsigned)(_i % 2),
                               .chunk_bytes = 4 * MIB,
                               .min_bytes = 1,
                               .timeout_ms = HANG_MS,
                               .lost = post,
                               .lost_argument = &lost};
    cr_lane_options beside = {.queue = queue, .workers = 1};
    assert_ok(cr_lane_gpu.open(&options, &lane, &error), error);
    assert_ok(cr_lane_cpu.open(&beside, &cpu, &error), error);
    ck_assert_uint_eq(fake_gpu_seen().linger_ns, options.spin_ns);
    for (unsigned got = 0; got < SMALL_JOBS;) {
        cr_list finished;
        cr_queue_completed(queue, &finished);
        for (cr_list *node; (node = cr_list_pop(&finished)); got++) {
            cr_job *job = cr_container(node, cr_job, done);
            check_small(job);
            cr_job_free(job);
        }
        if (got < SMALL_JOBS) usleep(1000);
    }
    gate_wait(&releases, released + SMALL_JOBS);
    ck_assert_uint_eq(ranges_begun() - ranges, SMALL_JOBS);
    if (plans[_i].packs || without) ck_assert_uint_eq(fake_gpu_seen().packs - packs, plans[_i].packs);
    ck_assert_uint_eq(metric_now(CR_M_gpu_returned_total) - returned, plans[_i].returned);
    cr_queue_close(queue);
    cr_lane_gpu.close(lane);
    cr_lane_cpu.close(cpu);
    cr_queue_free(queue);
    munmap(memory, PAGES + MIB);
    cr_fast_switch_off(0);
}
END_TEST

START_TEST(pins_are_given_back_at_the_end) {
    open_lanes(1, false, HANG_MS);
    cr_pinner pinner = cr_lane_gpu_pinner(lane);
    assert_ok(pinner.pin(pinner.argument, memory, PAGES / 2, true, &error), error);
    pinner.unpin(pinner.argument, memory);
    pinner.unpin(pinner.argument, memory + 1); /* of nobody */
    for (int i = 0; i < 2; i++)
        assert_ok(pinner.pin(pinner.argument, memory + i * PAGES / 2, PAGES / 2, true, &error), error);
    for (int i = 1; i >= 0; i--) pinner.unpin(pinner.argument, memory + i * PAGES / 2); /* side by side */
    assert_ok(pinner.pin(pinner.argument, memory, PAGES, true, &error), error);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .fail_pin = 1});
    assert_fails(pinner.pin(pinner.argument, memory, PAGES, false, &error), CR_RESOURCE_EXHAUSTED, error, "pinned");
    close_lanes(); /* the device says so when something is left */
}
END_TEST

START_TEST(what_does_not_open) {
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .fail_open = 1});
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    cr_lane_options options = {
        .queue = queue, .gpu = &cr_fake_gpu, .streams = 1, .chunk_bytes = MIB / 2, .timeout_ms = 100};
    assert_fails(cr_lane_gpu.open(&options, &lane, &error), CR_UNAVAILABLE, error, "open");
    fail_allocation(1);
    assert_fails(cr_lane_gpu.open(&options, &lane, &error), CR_RESOURCE_EXHAUSTED, error, "memory");
    cr_queue_free(queue);
}
END_TEST

/* A driver that hangs at start costs the limit, and is left behind; should it return later, nobody is there any more. */
START_TEST(a_start_that_hangs) {
    bool hung = false;
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .hang_count = 1});
    ck_assert_uint_eq(cr_gpu_count(&cr_fake_gpu, 20, &hung, &error), 0);
    ck_assert(hung);
    ck_assert_int_eq(error.code, CR_DEADLINE_EXCEEDED);
    ck_assert_ptr_ne(strstr(error.text, "gpu_start_timeout_ms, 20 ms"), NULL);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 3});
    ck_assert_uint_eq(cr_gpu_count(&cr_fake_gpu, HANG_MS, &hung, &error), 3);
    ck_assert(!hung);

    fake_gpu_plan(&(fake_gpu_faults){.devices = 1, .hang_open = 1});
    done.count = 0;
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    cr_lane_options options = {.queue = queue,
                               .gpu = &cr_fake_gpu,
                               .streams = 1,
                               .chunk_bytes = MIB / 2,
                               .timeout_ms = HANG_MS,
                               .start_timeout_ms = 20};
    assert_fails(cr_lane_gpu.open(&options, &lane, &error), CR_DEADLINE_EXCEEDED, error, "gpu_start_timeout_ms, 20 ms");
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1});
    while (fake_gpu_seen().alive == 0) usleep(1000); /* it has opened after all */
    usleep(20000);
    cr_lane_options beside = {.queue = queue, .workers = 1};
    assert_ok(cr_lane_cpu.open(&beside, &cpu, &error), error);
    memory = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < PAGES; i++) memory[i] = (uint8_t)(i % 251);
    sum_right(CR_BY_GPU, 4, false); /* by the CPU: the queue knows of no GPU */
    cr_queue_close(queue);
    cr_lane_cpu.close(cpu);
    cr_queue_free(queue);
    munmap(memory, PAGES);
}
END_TEST

CR_CHECK_MAIN("server/lane_gpu") {
    tcase_add_test(tc, sums_of_every_kind_of_memory);
    tcase_add_test(tc, copies_of_a_work_go_together);
    tcase_add_test(tc, each_job_is_one_range);
    tcase_add_test(tc, names_of_ranges);
    tcase_add_test(tc, beside_the_cpu);
    tcase_add_loop_test(tc, a_fault_at_any_call, 0, 5);
    tcase_add_test(tc, a_thread_that_is_late_itself);
    tcase_add_loop_test(tc, what_is_late_makes_room, 1, 4);
    tcase_add_loop_test(tc, small_jobs_are_one_pack, 0, 6);
    tcase_add_test(tc, pins_are_given_back_at_the_end);
    tcase_add_test(tc, what_does_not_open);
    tcase_add_test(tc, a_start_that_hangs);
}
