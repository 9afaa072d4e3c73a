/* Units: what is printed reads back, and what is no number with a unit is refused. */
#include <check.h>

#include "base/units.h"
#include "tests/unit/check_main.h"

/* What is printed reads back to the same. */
START_TEST(units_read_back) {
    static const uint64_t values[] = {0,      1,     7,       1000,       1023,       1024,    1536,
                                      60000,  90000, 3600000, 1ull << 62, UINT64_MAX, 1000000, 3 * (1ull << 50),
                                      1000001};
    char text[CR_UNITS_TEXT];
    for (cr_unit unit = CR_UNIT_COUNT; unit <= CR_UNIT_US; unit++) {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            uint64_t back = 5;
            ck_assert_ptr_null(cr_units_parse(unit, cr_units_text(unit, values[i], text), &back));
            ck_assert_uint_eq(back, values[i]);
        }
    }
    ck_assert_str_eq(cr_units_text(CR_UNIT_BYTES, 64ull << 20, text), "64MiB");
    ck_assert_str_eq(cr_units_text(CR_UNIT_MS, 90000, text), "90s");
    ck_assert_str_eq(cr_units_text(CR_UNIT_US, 50, text), "50us");
}
END_TEST

START_TEST(what_is_refused) {
    static const char *const texts[] = {"",
                                        "MiB",
                                        "1 MiB",
                                        "1mib",
                                        "1MB",
                                        "1.5MiB",
                                        "-1",
                                        "+1",
                                        "0x10",
                                        "1MiBs",
                                        "1e3",
                                        "16EiB",
                                        "18446744073709551616",
                                        "99999999999999999999999B",
                                        "1s"};
    uint64_t value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(cr_units_parse(CR_UNIT_BYTES, texts[i], &value) != NULL, "%s", texts[i]);
    ck_assert_ptr_nonnull(cr_units_parse(CR_UNIT_MS, "50us", &value));
    ck_assert_ptr_nonnull(cr_units_parse(CR_UNIT_US, "1h", &value));
    ck_assert_ptr_nonnull(cr_units_parse(CR_UNIT_COUNT, "1B", &value));
}
END_TEST

CR_CHECK_MAIN("base/units") {
    tcase_add_test(tc, units_read_back);
    tcase_add_test(tc, what_is_refused);
}
