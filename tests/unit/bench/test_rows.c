/* Rows of cured-bench: turns, what is made of figures, and the JSON of a table. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/rows.h"
#include "tests/unit/check_main.h"

static struct {
    char turns[64];
    int count, fails_at;
} seen;

/* Contestant 0 takes 1, 2, 3, … by its turns, and contestant 1 twice as much. */
static double measure(void *context, int which) {
    int *calls = context;
    if (seen.count == seen.fails_at) return -1;
    seen.turns[seen.count++] = (char)('0' + which);
    return (which + 1) * ++calls[which];
}

static bench_race race_of(int *calls, int rounds, bool swap) {
    memset(&seen, 0, sizeof seen);
    seen.fails_at = -1;
    return (bench_race){.count = 2, .rounds = rounds, .warm = 1, .swap = swap, .measure = measure, .context = calls};
}

START_TEST(turns) {
    int calls[2] = {0, 0};
    bench_race race = race_of(calls, 3, false);
    ck_assert(bench_race_run(&race));
    ck_assert_str_eq(seen.turns, "01010101");
    bench_race_end(&race);
    calls[0] = calls[1] = 0;
    race = race_of(calls, 3, true);
    ck_assert(bench_race_run(&race));
    ck_assert_str_eq(seen.turns, "01100110");
    /* The round that warms up does not count: 2, 3, 4 and 4, 6, 8. */
    const bench_spread first = bench_race_of(&race, 0), second = bench_race_of(&race, 1);
    ck_assert(first.least == 2 && first.median == 3 && first.most == 4);
    ck_assert(second.least == 4 && second.median == 6 && second.most == 8);
    const bench_spread ratio = bench_race_ratio(&race, 1, 0);
    ck_assert(ratio.least == 2 && ratio.median == 2 && ratio.most == 2);
    ck_assert_int_eq(bench_race_best(&race, 2), 0);
    bench_race_end(&race);
}
END_TEST

START_TEST(a_failure_ends_it) {
    int calls[2] = {0, 0};
    bench_race race = race_of(calls, 3, false);
    seen.fails_at = 3;
    ck_assert(!bench_race_run(&race));
    ck_assert_str_eq(seen.turns, "010");
    bench_race_end(&race);
}
END_TEST

START_TEST(repeated) {
    int calls[2] = {0, 0};
    memset(&seen, 0, sizeof seen);
    seen.fails_at = -1;
    ck_assert(bench_repeat(3, measure, calls, 1) == 6); /* of 4, 6, 8 */
    seen.fails_at = seen.count;
    ck_assert(bench_repeat(3, measure, calls, 1) < 0);
}
END_TEST

START_TEST(spreads) {
    double x[20];
    for (int i = 0; i < 20; i++) x[i] = (i * 7) % 20;
    const bench_spread s = bench_spread_of(x, 20);
    ck_assert(s.least == 0 && s.most == 19 && s.median == 9.5 && s.tenth == 2 && s.ninetieth == 17);
    ck_assert(x[1] == 7); /* as they were */
    ck_assert(bench_wanted(NULL, "sum f32") && bench_wanted("f32", "sum f32") && !bench_wanted("f64", "sum f32"));
}
END_TEST

START_TEST(json) {
    char path[] = "/tmp/cured-rows-XXXXXX", text[1024] = "";
    const int file = mkstemp(path);
    bench_table table = {.path = path};
    ck_assert_int_eq(bench_table_open(&table, 1, (char *[]){(char[]){"row"}}, NULL,
                                      BENCH_CELLS(CELL_NOTE("bytes", (double)((uint64_t)1 << 40)))),
                     0);
    const bench_spread share = {.median = 0.5, .least = 0.25, .most = 1};
    bench_table_row(&table, BENCH_CELLS(CELL_TEXT("row", "row", -8, "a \"b\""), CELL_FIGURE(NULL, "GB/s", 6, 1, 2),
                                        CELL_SPREAD("share", "share", 6, 2, share)));
    bench_table_row(&table, BENCH_CELLS(CELL_NOTE("none", NAN), CELL_TRUTH("right", true)));
    ck_assert(bench_table_close(&table, BENCH_CELLS(CELL_NOTE("wrong", 0))));
    FILE *f = fdopen(file, "r");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    fclose(f);
    remove(path);
    ck_assert_msg(strstr(text,
                         "\"command\": \"cured-bench row\", \"bytes\": 1099511627776, \"rows\": [\n"
                         "  {\"row\": \"a \\\"b\\\"\", \"share\": 0.5, \"share_low\": 0.25, \"share_high\": 1},\n"
                         "  {\"none\": null, \"right\": true}\n], \"wrong\": 0}\n") != NULL,
                  "%s", text);
    table = (bench_table){.path = "/nowhere/at/all"};
    ck_assert_int_eq(bench_table_open(&table, 1, (char *[]){(char[]){"row"}}, NULL, NULL, 0), 73);
}
END_TEST

CR_CHECK_MAIN("rows") {
    tcase_add_test(tc, turns);
    tcase_add_test(tc, a_failure_ends_it);
    tcase_add_test(tc, repeated);
    tcase_add_test(tc, spreads);
    tcase_add_test(tc, json);
}
