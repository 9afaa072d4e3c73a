/* test_caller_library: where libcured-cuda, the driver or a device is missing or of another version, a call says so and names both. Check
 * gives each test a process of its own, in which nothing was loaded yet. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/caller/caller.h"
#include "tests/double/caller_asks.h"

static cured_error error;

static bool says(const char *word) { return strstr(error.text, word) != NULL; }

static cured_status ask_of(const float *element) {
    cured_values *values;
    const cured_op op = CURED_OP_SUM;
    const cured_cuda_array one = {element, 1, CURED_F32};
    const cured_cuda_ask of = {sizeof of, &one, 1, &op, 1, NULL, NULL};
    return cured_cuda_reduce(&of, &values, &error);
}

/* Of an array that no one looks at before the library is there. */
static cured_status ask(void) {
    static float element;
    return ask_of(&element);
}

START_TEST(it_may_be_missing) {
    const char *library = "none", *runtime = "none";
    setenv("CURED_CUDA_LIBRARY", "/nowhere/libcured-cuda.so.0", 1);
    ck_assert_int_eq(cured_cuda_version(&library, &runtime, &error), CURED_UNAVAILABLE);
    ck_assert_str_eq(library, "none");
    ck_assert_msg(says("libcured-cuda " CURED_VERSION) && says("/nowhere/libcured-cuda.so.0"), "%s", error.text);
    memset(&error, 0, sizeof error);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("libcured-cuda " CURED_VERSION), "%s", error.text);
    cured_cuda_trim();
}
END_TEST

START_TEST(it_may_be_of_another_version) {
    setenv("CURED_CUDA_LIBRARY", getenv("CURED_OTHER_VERSION"), 1);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("0.0.7") && says(CURED_VERSION), "%s", error.text);
    cured_cuda_trim();
}
END_TEST

START_TEST(it_may_be_of_another_build) {
    setenv("CURED_CUDA_LIBRARY", getenv("CURED_OTHER_BUILD"), 1);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("is of another build of cured " CURED_VERSION), "%s", error.text);
}
END_TEST

START_TEST(it_may_be_something_else) {
    setenv("CURED_CUDA_LIBRARY", "libm.so.6", 1);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("libm.so.6 is no libcured-cuda"), "%s", error.text);
}
END_TEST

/* This program again, which only asks, and says what it was told. */
__attribute__((constructor)) static void ask_alone(void) {
    if (getenv("CURED_ASK_ALONE") == NULL) return;
    ask();
    printf("%s\n", error.text);
    fflush(stdout);
    _exit(0);
}

/* Whoever starts a program chooses its name, and where it is: a name that is not a whole path is no place to load code from. */
START_TEST(a_made_up_name_is_not_believed) {
    char folder[] = "/tmp/cured-beside-XXXXXX", path[200], told[sizeof error.text + 2] = "";
    int pipes[2], status = 1;
    ck_assert(mkdtemp(folder) != NULL && pipe(pipes) == 0);
    snprintf(path, sizeof path, "%s/libcured-cuda.so.0", folder);
    ck_assert_int_eq(symlink(getenv("CURED_OTHER_VERSION"), path), 0);
    const pid_t child = fork();
    if (child == 0) {
        char *const words[] = {(char *)"./made-up", NULL};
        unsetenv("CURED_CUDA_LIBRARY");
        setenv("CURED_ASK_ALONE", "1", 1);
        dup2(pipes[1], 1);
        const int self = open("/proc/self/exe", O_RDONLY);
        if (self < 0 || chdir(folder) != 0) _exit(2);
        fexecve(self, words, environ);
        _exit(3);
    }
    close(pipes[1]);
    const ssize_t n = read(pipes[0], told, sizeof told - 1);
    waitpid(child, &status, 0);
    close(pipes[0]);
    unlink(path);
    rmdir(folder);
    ck_assert_int_eq(status, 0);
    ck_assert(n > 0);
    ck_assert_msg(strstr(told, "0.0.7") == NULL, "%s", told);
}
END_TEST

START_TEST(its_version_is_told) {
    const char *library = NULL, *runtime = NULL;
    cr_double_driver(0);
    ck_assert_int_eq(cured_cuda_version(&library, &runtime, &error), CURED_OK);
    ck_assert_str_eq(library, CURED_VERSION);
    ck_assert_str_eq(runtime, "13.0");
    ck_assert_int_eq(cured_cuda_version(NULL, NULL, &error), CURED_OK);
}
END_TEST

/* What was missing may come: the next call looks again. */
static void check_later(void) {
    asks_open(0);
    for (int kind = 0; kind < ASK_GRAPH; kind++) asks_do((asks_kind)kind, 0, 0, NULL);
}

START_TEST(the_driver_may_be_older) {
    cr_double_driver(12040);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("12.4") && says("13.0"), "%s", error.text);
    cr_double_driver(13000);
    check_later();
}
END_TEST

START_TEST(the_driver_may_be_missing) {
    cr_double_driver(0);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("no CUDA driver"), "%s", error.text);
    cr_double_driver(13000);
    check_later();
}
END_TEST

START_TEST(devices_may_be_missing) {
    cr_double_devices(0);
    ck_assert_int_eq(ask(), CURED_UNAVAILABLE);
    ck_assert_msg(says("no CUDA device"), "%s", error.text);
    cr_double_devices(2);
    check_later();
}
END_TEST

static bool says_what_is_needed(const char *text, const char *has) {
    return strstr(text, has) != NULL && strstr(text, "8.0") != NULL;
}

/* Older chips lack the instructions that add up a warp: both doors say so, name what the device has, and take those that have them. */
START_TEST(devices_may_be_too_old) {
    static const struct {
        int major, minor;
        const char *has;
        bool taken;
    } chips[] = {{7, 0, "capability 7.0", false},
                 {7, 5, "capability 7.5", false},
                 {8, 0, "", true},
                 {8, 6, "", true},
                 {8, 9, "", true},
                 {10, 3, "", true},
                 {12, 1, "", true},
                 {99, 0, "", true}};
    cr_error why = {CR_OK, ""};
    cr_gpu *gpu = NULL;
    float *element;
    const cr_caller_api *library = cr_caller_load(CURED_VERSION, &why);
    ck_assert_msg(library != NULL, "%s", why.text);
    cr_double_capability(chips[_i].major, chips[_i].minor);
    const cr_status status = library->gpu->open(0, &gpu, &why);
    if (chips[_i].taken) {
        ck_assert_msg(status == CR_OK, "%s", why.text);
        ck_assert_uint_eq(library->gpu->info(gpu)->minor, (unsigned)chips[_i].minor);
        library->gpu->close(gpu);
        check_later();
        return;
    }
    ck_assert_int_eq(status, CR_UNAVAILABLE);
    ck_assert_msg(says_what_is_needed(why.text, chips[_i].has), "%s", why.text);
    ck_assert_int_eq(cudaMalloc((void **)&element, sizeof *element), 0);
    ck_assert_int_eq(ask_of(element), CURED_UNAVAILABLE);
    ck_assert_msg(says_what_is_needed(error.text, chips[_i].has), "%s", error.text);
    cr_double_capability(9, 0);
    check_later();
}
END_TEST

START_TEST(the_first_questions_may_fail) {
    static const char *const names[] = {
        "cudaDriverGetVersion",   "cudaGetDeviceCount",       "cudaGetDriverEntryPointByVersion",
        "cudaDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxGetId"};
    asks_open(0);
    cr_double_fail(names[_i], 1, cudaErrorUnknown);
    ck_assert_int_ne(asks_call(ASK_REDUCE, 0, 0, NULL, &error), CURED_OK);
    ck_assert_uint_eq(cr_double_faults(), 0);
    ck_assert_uint_gt(strlen(error.text), 0);
    asks_do(ASK_REDUCE, 0, 0, NULL);
}
END_TEST

/* A child may do nothing of a parent that has asked; of one that has not, it begins as any process. */
START_TEST(a_child_may_not) {
    cured_cuda_call *call = NULL;
    cured_values *values = NULL;
    const pid_t early = fork();
    if (early == 0) {
        asks_open(0);
        asks_do(ASK_REDUCE, 0, 0, NULL);
        _exit(0);
    }
    int status = 1;
    waitpid(early, &status, 0);
    ck_assert_int_eq(status, 0);
    asks_open(0);
    asks_do(ASK_EACH, 0, 0, NULL);
    float *element;
    cudaMalloc((void **)&element, sizeof *element);
    cudaMemset(element, 0, sizeof *element);
    const cured_op op = CURED_OP_SUM;
    const cured_cuda_array one = {element, 1, CURED_F32};
    const cured_cuda_ask of = {sizeof of, &one, 1, &op, 1, NULL, NULL};
    ck_assert_int_eq(cured_cuda_start(&of, &call, &error), CURED_OK);
    const pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (int kind = 0; kind < ASK_GRAPH; kind++) {
            error.text[0] = 0;
            good = good && asks_call((asks_kind)kind, 0, 0, NULL, &error) == CURED_FAILED_PRECONDITION && says("fork");
        }
        good = good && cured_cuda_done(call) && cured_cuda_finish(call, &values, &error) == CURED_FAILED_PRECONDITION;
        cured_cuda_trim();
        _exit(good && values == NULL ? 0 : 1);
    }
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(cured_cuda_finish(call, &values, &error), CURED_OK);
    cured_values_free(values);
    asks_do(ASK_REDUCE, 0, 1, NULL);
}
END_TEST

CR_CHECK_MAIN("double/caller_library") {
    tcase_add_test(tc, it_may_be_missing);
    tcase_add_test(tc, it_may_be_of_another_version);
    tcase_add_test(tc, it_may_be_of_another_build);
    tcase_add_test(tc, it_may_be_something_else);
    tcase_add_test(tc, a_made_up_name_is_not_believed);
    tcase_add_test(tc, its_version_is_told);
    tcase_add_test(tc, the_driver_may_be_older);
    tcase_add_test(tc, the_driver_may_be_missing);
    tcase_add_test(tc, devices_may_be_missing);
    tcase_add_loop_test(tc, devices_may_be_too_old, 0, 8);
    tcase_add_loop_test(tc, the_first_questions_may_fail, 0, 6);
    tcase_add_test(tc, a_child_may_not);
}
