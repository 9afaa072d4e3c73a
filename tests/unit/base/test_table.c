/* The table of keys that clients choose: what is in it is found, and nobody knows keys that collide. */
#include <check.h>
#include <stdlib.h>

#include "base/table.h"
#include "tests/unit/check_main.h"

enum { MANY = 1024, TABLES = 16, LONGEST = 64 };

static cr_table table;
static cr_node nodes[MANY];

static void teardown(void) {
    for (int i = 0; i < MANY; i++)
        if (cr_table_find(&table, nodes[i].key)) cr_table_remove(&table, &nodes[i]);
    cr_table_free(&table);
}

static void fill(uint64_t (*key)(uint64_t number)) {
    for (uint64_t i = 0; i < MANY; i++) {
        nodes[i].key = key(i);
        ck_assert(cr_table_add(&table, &nodes[i]));
    }
}

static size_t longest_chain(void) {
    size_t longest = 0;
    for (size_t i = 0; i < table.room; i++) {
        size_t length = 0;
        for (const cr_node *node = table.buckets[i]; node; node = node->next) length++;
        if (length > longest) longest = length;
    }
    return longest;
}

static uint64_t in_order(uint64_t number) { return number; }

START_TEST(what_is_in_it_is_found) {
    ck_assert_ptr_null(cr_table_find(&table, 1));
    fill(in_order);
    ck_assert_uint_eq(table.count, MANY);
    for (int i = 0; i < MANY; i++) ck_assert_ptr_eq(cr_table_find(&table, (uint64_t)i), &nodes[i]);
    ck_assert_ptr_null(cr_table_find(&table, MANY));
    for (int i = 0; i < MANY; i += 2) cr_table_remove(&table, &nodes[i]);
    for (int i = 0; i < MANY; i++) ck_assert_ptr_eq(cr_table_find(&table, (uint64_t)i), i % 2 ? &nodes[i] : NULL);
    ck_assert_uint_eq(table.count, MANY / 2);
}
END_TEST

/* The inverse of an odd number, modulo 2^64: it undoes a fixed multiplication. */
static uint64_t inverse(uint64_t odd) {
    uint64_t x = odd;
    for (int i = 0; i < 6; i++) x *= 2 - odd * x;
    return x;
}

static const uint64_t golden = 0x9e3779b97f4a7c15u;
static uint64_t unmixed(uint64_t mixed) { return mixed ^ mixed >> 32; }
static uint64_t of_low_products(uint64_t number) { return number * inverse(golden); }
static uint64_t of_low_products_mixed(uint64_t number) { return unmixed(number * inverse(golden)); }
static uint64_t of_equal_ends(uint64_t number) { return number << 32; }
static uint64_t of_high_bits(uint64_t number) { return number << 54; }

/* Each family collides under some fixed hash. Under a factor that nobody knows a table has a long chain by chance only: with
 * 1,024 keys a chain of 64 needs 2,016 colliding pairs, and 1,024 are expected at most. So most tables have none. */
START_TEST(no_keys_are_known_to_collide) {
    static uint64_t (*const families[])(uint64_t) = {of_low_products, of_low_products_mixed, of_equal_ends,
                                                     of_high_bits};
    int with_long_chains = 0;
    for (int i = 0; i < TABLES; i++) {
        fill(families[_i]);
        with_long_chains += longest_chain() >= LONGEST;
        teardown();
    }
    ck_assert_int_lt(with_long_chains, TABLES * 3 / 4);
}
END_TEST

CR_CHECK_MAIN("base/table") {
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, what_is_in_it_is_found);
    tcase_add_loop_test(tc, no_keys_are_known_to_collide, 0, 4);
}
