/* Words of a command line: which are options, and where their values stand. */
#include <check.h>

#include "base/words.h"
#include "tests/unit/check_main.h"

START_TEST(words) {
    char *const argv[] = {
        "program", "file", "--size=4", "--size", "5", "--empty=", "-h", "-x", "-", "--", "--a=b=c", "--last"};
    cr_words all = {sizeof argv / sizeof argv[0], argv, 1};
    cr_word word;
    ck_assert(cr_words_next(&all, &word) && word.name == NULL && !cr_word_is(&word, "file"));
    ck_assert(cr_words_next(&all, &word) && cr_word_is(&word, "size"));
    ck_assert(!cr_word_is(&word, "siz") && !cr_word_is(&word, "sizes") && !cr_word_is(&word, "size=4"));
    ck_assert_str_eq(cr_words_value(&all, &word), "4");
    ck_assert(cr_words_next(&all, &word) && cr_word_is(&word, "size") && word.value == NULL);
    ck_assert_str_eq(cr_words_value(&all, &word), "5");
    ck_assert(cr_words_next(&all, &word) && cr_word_is(&word, "empty"));
    ck_assert_str_eq(cr_words_value(&all, &word), "");
    ck_assert(cr_words_next(&all, &word) && cr_word_is(&word, "help"));
    ck_assert_str_eq(word.text, "-h");
    for (int i = 0; i < 3; i++) ck_assert(cr_words_next(&all, &word) && word.name == NULL); /* -x - -- */
    ck_assert(cr_words_next(&all, &word) && cr_word_is(&word, "a"));
    ck_assert_str_eq(cr_words_value(&all, &word), "b=c");
    ck_assert(cr_words_next(&all, &word) && cr_word_is(&word, "last"));
    ck_assert_ptr_null(cr_words_value(&all, &word));
    ck_assert(!cr_words_next(&all, &word));
}
END_TEST

CR_CHECK_MAIN("words") { tcase_add_test(tc, words); }
