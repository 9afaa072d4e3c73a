/* check_main: the main of a Check program of one suite. The file that has the tests includes this and adds them:
 *
 *     CR_CHECK_MAIN("server/timers") {
 *         tcase_add_checked_fixture(tc, setup, teardown);
 *         tcase_add_test(tc, fire_in_order_when_due);
 *     }
 *
 * Thread: main. */
#ifndef CURED_TESTS_UNIT_CHECK_MAIN_H
#define CURED_TESTS_UNIT_CHECK_MAIN_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

/* Under sanitizers and emulators, which make a case many times slower, one random case in so many. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(CHECK_EMULATED)
enum { CHECK_SPARSE = 9 };
#else
enum { CHECK_SPARSE = 1 };
#endif

/* What draws random cases: CURED_TEST_SEED, or without it a number of the test's own. */
static inline unsigned long check_seed(unsigned long without) {
    const char *seed = getenv("CURED_TEST_SEED");
    return seed ? strtoul(seed, NULL, 10) : without;
}

/* A program that ran nothing has failed. */
static inline int check_main(const char *name, void (*add)(TCase *tc)) {
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create(name);
    add(tc);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    bool good = srunner_ntests_run(runner) > 0 && srunner_ntests_failed(runner) == 0;
    srunner_free(runner);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define CR_CHECK_MAIN(name)                                      \
    static void check_add_tests(TCase *tc);                      \
    int main(void) { return check_main(name, check_add_tests); } \
    static void check_add_tests(TCase *tc)

#endif
