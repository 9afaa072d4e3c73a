/* unit: a Check program of one suite. Each test file defines TESTS, a list, and includes this last.
 *
 * Thread: main. */
#include <check.h>
#include <stdlib.h>

int main(void) {
    const TTest *const tests[] = {TESTS};
    Suite *suite = suite_create("kernels");
    TCase *tcase = tcase_create("all");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
