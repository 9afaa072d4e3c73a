/* test_stats: what is counted of requests, how long they took, which were slowest, and how it is written. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/stats/stats.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static cr_stats stats;
static cr_admission admission;
static cr_peer one, other;

static void set_up(void) {
    memset(&admission, 0, sizeof admission);
    cr_admit_init(&admission);
    cr_stats_init(&stats, &(cr_stats_sources){.version = "1.2.3", .admission = &admission});
    one = (cr_peer){.owner = 1000, .client = 1, .has_uid = true, .uid = 1000, .pid = 5, .name = "a \"name\""};
    other = (cr_peer){.owner = 1001, .client = 2, .has_uid = true, .uid = 1001, .pid = 6};
    cr_error error;
    ck_assert_int_eq(cr_admit_join(&admission, &one, &error), CR_OK);
    ck_assert_int_eq(cr_admit_join(&admission, &other, &error), CR_OK);
}

static void tear_down(void) {
    cr_admit_leave(&admission, &one);
    cr_admit_leave(&admission, &other);
    cr_admit_free(&admission);
}

/* An answered sum of 4 KiB that took so long in all, ended so long after the start, in one loop's statistics. */
static void answered_in(cr_stats *s, const cr_peer *peer, uint64_t total_ns, uint64_t after_ms) {
    cr_record r = {.peer = peer,
                   .method = CR_METHOD_reduce,
                   .given = CR_GIVEN_inline,
                   .code = CR_OK,
                   .refused = CR_REASONS,
                   .dtype = CR_F32,
                   .ops = cr_ops_of(CR_OP_SUM) | cr_ops_of(CR_OP_MAX),
                   .bytes = 4096,
                   .on_loop = true,
                   .ended_ms = stats.started_ms + after_ms,
                   .stages = {CR_NO_STAGE, 1000, total_ns / 2, CR_NO_STAGE, total_ns}};
    cr_stats_end(s, &r);
}

static void answered(const cr_peer *peer, uint64_t total_ns, uint64_t after_ms) {
    answered_in(&stats, peer, total_ns, after_ms);
}

static const cr_stats_asker everybody = {.all = true};

START_TEST(histograms_have_bounds_that_rise) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS; i++) {
        ck_assert_uint_gt(cr_histogram_bound(i), before);
        before = cr_histogram_bound(i);
    }
    ck_assert_uint_eq(cr_histogram_bound(0), 1000);
    ck_assert_uint_eq(cr_histogram_bound(CR_HISTOGRAM_BUCKETS - 2), 80000000000ull);
}
END_TEST

START_TEST(histograms_count_up_to_and_with_a_bound) {
    for (uint32_t i = 0; i < CR_HISTOGRAM_BUCKETS - 1; i++) {
        cr_histogram h = {0};
        cr_histogram_add(&h, cr_histogram_bound(i));
        cr_histogram_add(&h, cr_histogram_bound(i) + 1);
        ck_assert_uint_eq(h.counts[i], 1);
        ck_assert_uint_eq(h.counts[i + 1], 1);
        ck_assert_uint_eq(cr_histogram_count(&h), 2);
    }
    cr_histogram h = {0};
    cr_histogram_add(&h, 0);
    cr_histogram_add(&h, UINT64_MAX / 2);
    ck_assert_uint_eq(h.counts[0], 1);
    ck_assert_uint_eq(h.counts[CR_HISTOGRAM_BUCKETS - 1], 1);
}
END_TEST

START_TEST(percentiles_are_off_by_a_step_at_most) {
    cr_histogram h = {0};
    ck_assert_uint_eq(cr_histogram_part(&h, 500), 0);
    for (uint64_t us = 1; us <= 1000; us++) cr_histogram_add(&h, us * 1000);
    static const uint32_t parts[] = {500, 900, 990};
    for (size_t i = 0; i < 3; i++) {
        const double wanted = parts[i] * 1000.0, got = (double)cr_histogram_part(&h, parts[i]);
        ck_assert_msg(got > wanted * 0.75 && got < wanted * 1.25, "%u: %g", parts[i], got);
    }
}
END_TEST

START_TEST(requests_are_counted_by_label) {
    cr_wire_stats m;
    answered(&one, 5000, 0);
    answered(&one, 5000, 0);
    cr_record refused = {.peer = &other,
                         .method = CR_METHOD_register,
                         .code = CR_RESOURCE_EXHAUSTED,
                         .refused = CR_REASON_regions,
                         .stages = {CR_NO_STAGE, CR_NO_STAGE, CR_NO_STAGE, CR_NO_STAGE, 1000}};
    cr_stats_end(&stats, &refused);
    cr_stats_snapshot(&stats, &everybody, &m);
    ck_assert_uint_eq(m.requests_total, 3);
    ck_assert_uint_eq(m.failed_total, 1);
    ck_assert_uint_eq(m.bytes_total, 8192);
    ck_assert_uint_eq(m.request_count, 2);
    ck_assert_str_eq(m.requests[0].method, "reduce");
    ck_assert_str_eq(m.requests[0].source, "inline");
    ck_assert_uint_eq(m.requests[0].count, 2);
    ck_assert_str_eq(m.requests[1].method, "register");
    ck_assert_uint_eq(m.requests[1].code, CR_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(m.ops.count, 2);
    ck_assert_str_eq(m.ops.items[0].name, "sum");
    ck_assert_uint_eq(m.ops.items[0].value, 2);
    ck_assert_str_eq(m.rejected.items[0].name, "regions");
    ck_assert_uint_eq(m.stages[CR_STAGE_total].count, 2);
    ck_assert_uint_eq(m.stages[CR_STAGE_receive].count, 0);
    ck_assert_uint_eq(m.user_count, 2);
}
END_TEST

START_TEST(windows_forget_what_is_older_than_a_minute) {
    cr_wire_stats m;
    answered(&one, 5000, 0);
    for (uint64_t ms = 5000; ms < 200000; ms += CR_STATS_STEP_MS) {
        answered(&one, 5000, ms);
        const cr_stats_sums *oldest = &stats.steps[stats.step];
        const uint64_t in_window = stats.now.requests - oldest->requests;
        ck_assert_uint_le(in_window, CR_STATS_STEPS + 1);
        ck_assert_uint_eq(in_window, ms < 60000 ? ms / CR_STATS_STEP_MS + 2 : CR_STATS_STEPS);
    }
    /* After a pause nothing is left. */
    cr_stats_turn(&stats, stats.started_ms + 10000000);
    ck_assert_uint_eq(stats.now.requests, stats.steps[stats.step].requests);
    ck_assert_uint_le(stats.started_ms + 10000000 - stats.steps[stats.step].at_ms, CR_STATS_STEPS * CR_STATS_STEP_MS);
    stats.started_ms = 0;
    cr_stats_snapshot(&stats, &everybody, &m);
    ck_assert_uint_eq(m.requests_total, 21);
}
END_TEST

START_TEST(the_slowest_are_kept) {
    cr_wire_slow_log log;
    for (uint64_t i = 1; i <= 100; i++) answered(&one, i * 1000000, 0);
    cr_stats_slow(&stats, &everybody, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW);
    for (uint32_t i = 0; i < log.count; i++) ck_assert_uint_eq(log.calls[i].total_ns, (100 - i) * 1000000);
    ck_assert_str_eq(log.calls[0].ops, "sum,max");
    ck_assert_str_eq(log.calls[0].lanes, "loop");
    ck_assert_str_eq(log.calls[0].client, "a \"name\"");
    ck_assert_uint_eq(log.calls[0].receive_ns, 0);
}
END_TEST

START_TEST(one_user_takes_no_more_than_half_of_the_places_from_others) {
    cr_wire_slow_log log;
    for (uint64_t i = 1; i <= CR_WIRE_MAX_SLOW; i++) answered(&one, i * 1000, 0);
    for (uint64_t i = 1; i <= 100; i++) answered(&other, i * 1000000, 0);
    cr_stats_slow(&stats, &(cr_stats_asker){.own = one.user}, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW / 2);
    cr_stats_slow(&stats, &(cr_stats_asker){.own = other.user}, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW / 2);
    ck_assert_uint_eq(log.calls[0].total_ns, 100000000);
    for (uint32_t i = 0; i < log.count; i++) ck_assert_uint_eq(log.calls[i].uid, other.uid);
}
END_TEST

/* Whoever keeps calls open for long is not to hide what others wait for. */
START_TEST(one_user_keeps_no_more_than_half_of_the_places_when_others_come) {
    cr_wire_slow_log log;
    for (uint64_t i = 1; i <= CR_WIRE_MAX_SLOW; i++) answered(&one, i * 1000000000, 0);
    for (uint64_t i = 1; i <= 100; i++) answered(&other, i * 1000, 0);
    cr_stats_slow(&stats, &(cr_stats_asker){.own = other.user}, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW / 2);
    ck_assert_uint_eq(log.calls[0].total_ns, 100000);
    cr_stats_slow(&stats, &(cr_stats_asker){.own = one.user}, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW / 2);
    ck_assert_uint_eq(log.calls[log.count - 1].total_ns, (CR_WIRE_MAX_SLOW / 2 + 1) * 1000000000ull);
}
END_TEST

/* What another loop counted is this one's, once. */
START_TEST(counts_of_another_loop_are_added) {
    static cr_stats another;
    cr_stats_init(&another, &(cr_stats_sources){.admission = &admission});
    answered(&one, 5000, 0);
    for (int i = 0; i < 3; i++) answered_in(&another, &other, 7000, 0);
    for (int i = 0; i < 2; i++) {
        cr_stats_add(&stats, &another);
        ck_assert_uint_eq(stats.now.requests, 4);
        ck_assert_uint_eq(stats.now.bytes, 4 * 4096);
        ck_assert_uint_eq(stats.requests[CR_METHOD_reduce][CR_GIVEN_inline][CR_OK], 4);
        ck_assert_uint_eq(stats.ops[CR_OP_MAX], 4);
        ck_assert_uint_eq(cr_histogram_count(&stats.now.stages[CR_STAGE_total]), 4);
        ck_assert_uint_eq(stats.slow_count, 4);
        ck_assert_uint_eq(another.now.requests, 0);
        ck_assert_uint_eq(another.slow_count, 0);
    }
    answered_in(&another, &other, 7000, 0);
    cr_stats_add(&stats, &another);
    ck_assert_uint_eq(stats.now.requests, 5);
}
END_TEST

/* The places are shared by the same rule, whichever loop a call was answered in. */
START_TEST(slow_calls_of_another_loop_find_their_places) {
    static cr_stats another;
    cr_wire_slow_log log;
    cr_stats_init(&another, &(cr_stats_sources){.admission = &admission});
    for (uint64_t i = 1; i <= CR_WIRE_MAX_SLOW; i++) answered(&one, i * 1000000000, 0);
    for (uint64_t i = 1; i <= 100; i++) answered_in(&another, &other, i * 1000, 0);
    cr_stats_add(&stats, &another);
    cr_stats_slow(&stats, &(cr_stats_asker){.own = other.user}, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW / 2);
    ck_assert_uint_eq(log.calls[0].total_ns, 100000);
    for (uint64_t i = 1; i <= 100; i++) answered_in(&another, &one, i * 500, 0);
    cr_stats_add(&stats, &another);
    cr_stats_slow(&stats, &(cr_stats_asker){.own = other.user}, &log);
    ck_assert_uint_eq(log.count, CR_WIRE_MAX_SLOW / 2);
}
END_TEST

START_TEST(slow_calls_are_forgotten_after_an_hour) {
    cr_wire_slow_log log;
    answered(&one, 1000000, 0);
    cr_stats_forget_slow(&stats, stats.started_ms + 3600 * 1000 - 1);
    cr_stats_slow(&stats, &everybody, &log);
    ck_assert_uint_eq(log.count, 1);
    cr_stats_forget_slow(&stats, stats.started_ms + 3600 * 1000);
    cr_stats_slow(&stats, &everybody, &log);
    ck_assert_uint_eq(log.count, 0);
}
END_TEST

START_TEST(users_see_themselves_and_admins_everybody) {
    cr_wire_stats m;
    cr_stats_snapshot(&stats, &(cr_stats_asker){.own = one.user}, &m);
    ck_assert_uint_eq(m.user_count, 1);
    ck_assert(m.users[0].own);
    cr_stats_snapshot(&stats, &(cr_stats_asker){0}, &m);
    ck_assert_uint_eq(m.user_count, 0);
}
END_TEST

START_TEST(exposition_fits_or_says_that_it_does_not) {
    static char text[CR_STATS_EXPOSE_BYTES], less[CR_STATS_EXPOSE_BYTES];
    answered(&one, 5000, 0);
    const size_t n = cr_stats_expose(&stats, text, sizeof text);
    ck_assert_uint_gt(n, 1000);
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "\ncured_requests_total{method=\"reduce\",source=\"inline\",code=\"OK\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ncured_ops_total{op=\"sum\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ncured_input_bytes_total{dtype=\"f32\"} 4096\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ncured_request_stage_seconds_bucket{stage=\"total\",le=\"1e-05\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ncured_request_stage_seconds_count{stage=\"total\"} 1\n"));
    for (size_t cap = 1; cap < n; cap += n / 50) ck_assert_uint_eq(cr_stats_expose(&stats, less, cap), 0);
}
END_TEST

START_TEST(every_family_is_there_once_and_in_one_piece) {
    static char text[CR_STATS_EXPOSE_BYTES];
    char seen[200][64];
    size_t count = 0;
    ck_assert_uint_gt(cr_stats_expose(&stats, text, sizeof text), 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char family[64];
        if (sscanf(line, "# TYPE %63s", family) == 1) {
            for (size_t i = 0; i < count; i++) ck_assert_str_ne(seen[i], family);
            memcpy(seen[count++], family, sizeof family);
        } else if (line[0] != '#') {
            ck_assert_msg(count && strncmp(line, seen[count - 1], strlen(seen[count - 1])) == 0, "%s", line);
        }
    }
    ck_assert_uint_gt(count, 40);
}
END_TEST

START_TEST(json_is_escaped_and_bounded) {
    static char text[CR_WIRE_JSON_BYTES];
    cr_wire_stats m;
    cr_wire_slow_log log;
    answered(&one, 5000, 0);
    cr_stats_snapshot(&stats, &everybody, &m);
    cr_stats_slow(&stats, &everybody, &log);
    const size_t n = cr_wire_stats_json(&m, &log, text, sizeof text);
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "\"client\":\"a \\u0022name\\u0022\""));
    ck_assert_ptr_nonnull(strstr(text, "\"ops\":{\"sum\":1,\"max\":1}"));
    ck_assert_uint_eq(cr_wire_stats_json(&m, &log, text, n), 0);
    ck_assert_uint_eq(cr_wire_stats_json(&m, &log, text, n + 1), n);
}
END_TEST

/* Small calls are counted together, and before anything is read. */
START_TEST(small_calls_count_as_others_do) {
    static cr_config config;
    cr_wire_stats m;
    for (uint64_t i = 1; i <= CR_WIRE_MAX_SLOW; i++) answered(&one, 1000000 + i, 0);
    config.log_calls = CR_LOG_CALLS_FAILED;
    stats.sources.config = &config;
    const uint64_t now_ns = stats.started_ms * 1000000;
    const cr_wire_timing quick = {2000, 3000, 5000}, slow = {0, 2000000, 2000000};
    const cr_ops ops = cr_ops_of(CR_OP_SUM) | cr_ops_of(CR_OP_MAX);
    for (uint64_t i = 1; i <= 2 * CR_STATS_SAMPLES + 3; i++) {
        ck_assert(cr_stats_small_end(&stats, one.owner, now_ns, &quick, CR_F64, ops, 800));
        if (i % 40) continue;
        cr_stats_snapshot(&stats, &everybody, &m);
        ck_assert_uint_eq(m.requests_total, CR_WIRE_MAX_SLOW + i);
    }
    const uint64_t n = 2 * CR_STATS_SAMPLES + 3;
    cr_stats_snapshot(&stats, &everybody, &m);
    ck_assert_uint_eq(m.requests[0].count, CR_WIRE_MAX_SLOW + n);
    ck_assert_uint_eq(stats.input_bytes[CR_F64], 800 * n);
    ck_assert_uint_eq(stats.ops[CR_OP_MAX], CR_WIRE_MAX_SLOW + n);
    ck_assert_uint_eq(m.stages[CR_STAGE_run].count, CR_WIRE_MAX_SLOW + n);
    /* What the log or the slow log may want goes the long way. */
    ck_assert(!cr_stats_small_end(&stats, one.owner, now_ns, &slow, CR_F64, ops, 800));
    const uint64_t later_ns = now_ns + CR_STATS_STEP_MS * 1000000ull;
    ck_assert(!cr_stats_small_end(&stats, one.owner, later_ns, &quick, CR_F64, ops, 800));
    ck_assert(cr_stats_small_end(&stats, one.owner, now_ns, &quick, CR_F64, ops, 800));
    config.log_calls = CR_LOG_CALLS_ALL;
    ck_assert(!cr_stats_small_end(&stats, one.owner, now_ns, &quick, CR_F64, ops, 800));
    stats.sources.config = NULL;
}
END_TEST

/* A client that can choose keys cannot choose whose lines it uses up. */
START_TEST(nobody_can_use_up_the_lines_of_others) {
    static cr_config config = {.log_calls = CR_LOG_CALLS_FAILED};
    enum { FIXED_BITS = 8, OTHERS = 4 };
    cr_peer peer = one;
    cr_record r = {.peer = &peer, .method = CR_METHOD_info, .code = CR_CANCELLED, .refused = CR_REASONS};
    uint32_t found = 0, own_lines = 0;
    r.ended_ms = stats.started_ms;
    for (uint32_t i = 0; i < CR_STAGES; i++) r.stages[i] = CR_NO_STAGE;
    stats.sources.config = &config;
    while (!stats.left_out) cr_stats_end(&stats, &r);
    /* Keys that fall together by a factor which everybody knows. */
    for (uint64_t key = one.owner + 1; found < OTHERS; key++) {
        const uint64_t known = 0x9e3779b97f4a7c15u, left_out = stats.left_out;
        if ((key * known ^ one.owner * known) >> (64 - FIXED_BITS)) continue;
        found++;
        peer.owner = key;
        cr_stats_end(&stats, &r);
        own_lines += stats.left_out == left_out;
    }
    ck_assert_uint_gt(own_lines, 0);
    stats.sources.config = NULL;
}
END_TEST

CR_CHECK_MAIN("server/stats") {
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, histograms_have_bounds_that_rise);
    tcase_add_test(tc, histograms_count_up_to_and_with_a_bound);
    tcase_add_test(tc, percentiles_are_off_by_a_step_at_most);
    tcase_add_test(tc, requests_are_counted_by_label);
    tcase_add_test(tc, windows_forget_what_is_older_than_a_minute);
    tcase_add_test(tc, the_slowest_are_kept);
    tcase_add_test(tc, one_user_takes_no_more_than_half_of_the_places_from_others);
    tcase_add_test(tc, one_user_keeps_no_more_than_half_of_the_places_when_others_come);
    tcase_add_test(tc, counts_of_another_loop_are_added);
    tcase_add_test(tc, slow_calls_of_another_loop_find_their_places);
    tcase_add_test(tc, slow_calls_are_forgotten_after_an_hour);
    tcase_add_test(tc, users_see_themselves_and_admins_everybody);
    tcase_add_test(tc, exposition_fits_or_says_that_it_does_not);
    tcase_add_test(tc, every_family_is_there_once_and_in_one_piece);
    tcase_add_test(tc, json_is_escaped_and_bounded);
    tcase_add_test(tc, small_calls_count_as_others_do);
    tcase_add_test(tc, nobody_can_use_up_the_lines_of_others);
}
