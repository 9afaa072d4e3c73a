/* cured-bench lane on the stand-in for a GPU: every row has a figure, no answer is wrong, and there is none without a device. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "tests/fake/fake_gpu.h"
#include "tests/unit/check_main.h"

static int run(uint32_t devices, char *path) {
    const fake_gpu_faults plan = {.devices = devices};
    fake_gpu_plan(&plan);
    return bench_lane(7, (char *[]){(char[]){"lane"}, (char[]){"--bytes"}, (char[]){"64M"}, (char[]){"--rounds"},
                                    (char[]){"1"}, (char[]){"--json"}, path});
}

START_TEST(rows) {
    static const char *const names[] = {"pinned copies", "pinned, cpu", "pinned, auto", "slabs, gpu", "1024 at once"};
    char path[] = "/tmp/cured-lane-XXXXXX", text[4096] = "";
    const int file = mkstemp(path);
    ck_assert_int_eq(run(1, path), 0);
    FILE *f = fdopen(file, "r");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    fclose(f);
    unlink(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(strstr(text, names[i]) != NULL, "no %s in %s", names[i], text);
    ck_assert_ptr_nonnull(strstr(text, "\"wrong\": 0}"));
}
END_TEST

START_TEST(no_device) { ck_assert_int_eq(run(0, (char[]){"/nowhere"}), 77); }
END_TEST

CR_CHECK_MAIN("lane") {
    tcase_add_test(tc, rows);
    tcase_add_test(tc, no_device);
}
