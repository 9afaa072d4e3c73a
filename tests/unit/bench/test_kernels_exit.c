/* How `cured-bench kernels` ends, on a GPU that is made up here: a wrong answer is 1, a device that fails is 69 and no wrong
 * answer.
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernels.h"
#include "bench/kernels_peer.h"
#include "tests/unit/check_main.h"

static enum { NOTHING, JUDGE, PREPARE, TIME, FILL, EXACT } fails;
static bool answers_wrong;
static uint32_t families = CR_FAM_SUM;
static unsigned exact_parts;

int cr_emulated_device;
cudaError_t cr_emulated_code(struct cudaFuncAttributes *found) {
    *found = (struct cudaFuncAttributes){0, 0};
    return cudaSuccess;
}

unsigned bench_read_variants(void) { return 1; }
const char *bench_read_name(unsigned variant) { return variant == 0 ? "read" : ""; }
int bench_gpu_open(bench_gpu *gpu, uint64_t largest) {
    *gpu = (bench_gpu){.name = "made up", .arena_bytes = 4 * largest};
    return 0;
}
void bench_gpu_close(bench_gpu *gpu) { (void)gpu; }
int bench_gpu_fill(bench_gpu *gpu, cr_dtype dtype, bool bits) {
    return (void)gpu, (void)dtype, (void)bits, fails == FILL;
}
bool bench_exists(const bench_array *array, bench_candidate *c) {
    c->none = c->group == GROUP_CUB && c->variant == BENCH_GPU_TO_GPU ? "none: of old headers" : NULL;
    return (void)array, c->group == GROUP_READ || c->group == GROUP_FOLD;
}
int bench_judge(bench_gpu *gpu, const bench_array *array, bench_candidate *c, const cr_partial *exact) {
    (void)gpu, (void)array, (void)exact;
    if (c->group != GROUP_FOLD) return 0;
    c->answer = answers_wrong ? ANSWER_WRONG : ANSWER_EXACT;
    return fails == JUDGE;
}
int bench_prepare(bench_gpu *gpu, const bench_array *array, bench_candidate *c) {
    return (void)gpu, (void)array, (void)c, fails == PREPARE;
}
void bench_release(bench_candidate *c) { (void)c; }
double bench_time(bench_gpu *gpu, const bench_array *array, bench_candidate *c) {
    return (void)gpu, (void)array, (void)c, fails == TIME ? -1 : 1e-6;
}
int bench_exact(bench_gpu *gpu, cr_dtype dtype, uint64_t from, uint64_t to, cr_partial *exact) {
    (void)gpu, (void)exact;
    ck_assert_uint_lt(from, to);
    ck_assert_uint_eq(from % cr_partial_grain(dtype, families), 0);
    exact_parts += from != 0;
    return fails == EXACT;
}
uint32_t bench_families(const bench_ops *ops, cr_dtype dtype) { return (void)ops, (void)dtype, families; }
uint32_t bench_wants(const bench_ops *ops) { return (void)ops, 0; }

/* Runs it, and looks for `expected` in what it wrote. */
static int ends(const char *expected) {
    char path[] = "/tmp/cured-bench-XXXXXX", text[8192] = "";
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    char *arguments[] = {(char *)(uintptr_t) "kernels",
                         (char *)(uintptr_t) "--sizes",
                         (char *)(uintptr_t) "4K,16K,20K",
                         (char *)(uintptr_t) "--json",
                         path,
                         NULL};
    const int code = bench_kernels(5, arguments);
    FILE *json = fdopen(file, "r");
    ck_assert_ptr_nonnull(json);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, json), 0);
    fclose(json);
    remove(path);
    ck_assert_msg(strstr(text, expected) != NULL, "no %s in %s", expected, text);
    return code;
}

START_TEST(all_is_well) { ck_assert_int_eq(ends("\"wrong\": 0, \"failed\": false"), 0); }
END_TEST

/* What this machine's CUB lacks has a row without figures, which says why. */
START_TEST(a_row_says_why_there_is_none) {
    ck_assert_int_eq(ends("\"kernel\": \"gpu_to_gpu\", \"us\": null, \"gb_per_s\": null, \"low\": null, "
                          "\"high\": null, \"of_read\": null, \"to_cub\": null, \"timed\": \"-\", "
                          "\"answer\": \"none: of old headers\""),
                     0);
}
END_TEST

/* The exact answer of a longer array goes on from a shorter one's, */
START_TEST(exact_answers_go_on) {
    ck_assert_int_eq(ends("\"wrong\": 0, \"failed\": false"), 0);
    ck_assert_uint_eq(exact_parts, 2);
}
END_TEST

/* of products where a block of 4,096 elements begins there: from 16 KiB, not from 4. */
START_TEST(exact_products_go_on_from_blocks) {
    families = CR_FAM_PROD;
    ck_assert_int_eq(ends("\"wrong\": 0, \"failed\": false"), 0);
    ck_assert_uint_eq(exact_parts, 1);
}
END_TEST

START_TEST(a_wrong_answer) {
    answers_wrong = true;
    ck_assert_int_eq(ends("\"wrong\": 3, \"failed\": false"), 1);
}
END_TEST

START_TEST(a_device_that_fails) {
    static const int steps[] = {JUDGE, PREPARE, TIME, FILL, EXACT};
    fails = steps[_i];
    ck_assert_int_eq(ends("\"wrong\": 0, \"failed\": true"), 69);
}
END_TEST

START_TEST(a_wrong_answer_before_the_device_fails) {
    answers_wrong = true;
    fails = TIME;
    ck_assert_int_eq(ends("\"wrong\": 1, \"failed\": true"), 1);
}
END_TEST

CR_CHECK_MAIN("bench/kernels") {
    tcase_add_test(tc, all_is_well);
    tcase_add_test(tc, a_row_says_why_there_is_none);
    tcase_add_test(tc, exact_answers_go_on);
    tcase_add_test(tc, exact_products_go_on_from_blocks);
    tcase_add_test(tc, a_wrong_answer);
    tcase_add_loop_test(tc, a_device_that_fails, 0, 5);
    tcase_add_test(tc, a_wrong_answer_before_the_device_fails);
}
