/* Admission: every limit, at it and beyond it, and that what was let in comes off again. */
#include <stdlib.h>
#include <string.h>

#include "server/admit/admission.h"
#include "tests/unit/server/support.h"

static cr_admission a;
static cr_peer one, other;
static cr_error error;

static void setup(void) {
    one = other = (cr_peer){0};
    a = (cr_admission){.max_connections = 2,
                       .max_files = 100,
                       .max_calls = 4,
                       .max_calls_per_connection = 3,
                       .max_input_bytes = 1000,
                       .max_bytes = 2500};
}

START_TEST(connections) {
    assert_ok(cr_admit_connection(&a, 9, &error), error);
    assert_ok(cr_admit_connection(&a, 9, &error), error);
    assert_fails(cr_admit_connection(&a, 9, &error), CR_RESOURCE_EXHAUSTED, error, "max_connections is 2");
    cr_admit_connection_over(&a);
    assert_ok(cr_admit_connection(&a, 9, &error), error);
}
END_TEST

START_TEST(descriptors_are_shared_out) {
    for (uint64_t most = 1; most <= 1u << 20; most *= 32) {
        cr_admit_limit_descriptors(&a, most);
        a.connections = 0;
        int last = (int)(most - most / 4) - 1;
        assert_ok(cr_admit_connection(&a, last, &error), error);
        assert_fails(cr_admit_connection(&a, last + 1, &error), CR_RESOURCE_EXHAUSTED, error, "three quarters");
        ck_assert_uint_eq(a.connections, 1);
        uint64_t refused = 0;
        while (cr_admit_refused(&a)) refused++;
        ck_assert_uint_eq(refused, most < 64 ? 1 : most < 65536 ? most / 64 : 1024);
        for (; refused; refused--) cr_admit_refused_over(&a);
    }
}
END_TEST

START_TEST(calls_in_all_and_per_connection) {
    cr_ticket tickets[5];
    for (uint64_t i = 0; i < 3; i++) assert_ok(cr_admit_call(&a, &one, 0, &tickets[i], &error), error);
    assert_fails(cr_admit_call(&a, &one, 0, &tickets[3], &error), CR_RESOURCE_EXHAUSTED, error, "per_connection is 3");
    assert_ok(cr_admit_call(&a, &other, 0, &tickets[3], &error), error);
    assert_fails(cr_admit_call(&a, &other, 0, &tickets[4], &error), CR_RESOURCE_EXHAUSTED, error, "max_jobs is 4");
    cr_admit_always(&a, &other, &tickets[4]);
    ck_assert_uint_eq(a.calls, 5);
    ck_assert_uint_eq(other.calls, 2);
    cr_admit_answered(&tickets[0]); /* its job goes on: the peer may ask again, the daemon is as full as before */
    ck_assert_uint_eq(one.calls, 2);
    ck_assert_uint_eq(a.calls, 5);
    for (int i = 0; i < 5; i++) cr_admit_over(&a, &tickets[i]);
    ck_assert_uint_eq(a.calls + one.calls + other.calls, 0);
}
END_TEST

START_TEST(bytes_of_one_input_and_of_all) {
    cr_ticket x, y, z;
    assert_ok(cr_admit_call(&a, &one, 1000, &x, &error), error);
    assert_fails(cr_admit_call(&a, &one, 1001, &y, &error), CR_INVALID_ARGUMENT, error, "max_input_bytes, 1000");
    assert_fails(cr_admit_call(&a, &one, UINT64_MAX, &y, &error), CR_INVALID_ARGUMENT, error, "max_input_bytes");
    assert_ok(cr_admit_call(&a, &one, 1000, &y, &error), error);
    assert_fails(cr_admit_call(&a, &one, 501, &z, &error), CR_RESOURCE_EXHAUSTED, error, "2500");
    assert_ok(cr_admit_call(&a, &one, 500, &z, &error), error);
    ck_assert_uint_eq(a.bytes, 2500);
    ck_assert_uint_eq(a.calls, 3);
    cr_admit_over(&a, &x);
    cr_admit_over(&a, &y);
    cr_admit_over(&a, &z);
    ck_assert_uint_eq(a.bytes, 0);
    ck_assert_uint_eq(a.calls, 0);
}
END_TEST

START_TEST(a_growing_input_is_counted_once) {
    cr_ticket x, y;
    assert_ok(cr_admit_call(&a, &one, 0, &x, &error), error);
    assert_ok(cr_admit_growth(&a, &x, 400, &error), error);
    assert_ok(cr_admit_growth(&a, &x, 400, &error), error);
    assert_ok(cr_admit_growth(&a, &x, 300, &error), error);
    ck_assert_uint_eq(a.bytes, 400);
    assert_fails(cr_admit_growth(&a, &x, 1001, &error), CR_INVALID_ARGUMENT, error, "max_input_bytes");
    a.max_bytes = 1300;
    assert_ok(cr_admit_call(&a, &one, 500, &y, &error), error);
    assert_fails(cr_admit_growth(&a, &x, 801, &error), CR_RESOURCE_EXHAUSTED, error, "beside 500");
    assert_ok(cr_admit_growth(&a, &x, 800, &error), error);
    ck_assert_uint_eq(a.bytes, 1300);
    cr_admit_over(&a, &x);
    ck_assert_uint_eq(a.bytes, 500);
    cr_admit_over(&a, &y);
    ck_assert_uint_eq(a.bytes, 0);
}
END_TEST

START_TEST(memory_of_reductions_along_an_axis) {
    cr_ticket x, y;
    a.max_state_bytes = 1000;
    a.max_state_bytes_per_connection = 600;
    cr_ticket z;
    assert_ok(cr_admit_call(&a, &one, 0, &x, &error), error);
    assert_ok(cr_admit_call(&a, &one, 0, &y, &error), error);
    assert_ok(cr_admit_call(&a, &other, 0, &z, &error), error);
    assert_fails(cr_admit_state(&a, 601, &x, &error), CR_RESOURCE_EXHAUSTED, error, "_per_connection, 600");
    assert_ok(cr_admit_state(&a, 500, &x, &error), error);
    assert_fails(cr_admit_state(&a, 101, &y, &error), CR_RESOURCE_EXHAUSTED, error, "beside 500 of this connection");
    assert_fails(cr_admit_state(&a, UINT64_MAX, &y, &error), CR_RESOURCE_EXHAUSTED, error, "_per_connection, 600");
    assert_fails(cr_admit_state(&a, 501, &z, &error), CR_RESOURCE_EXHAUSTED, error, "max_state_bytes, 1000");
    assert_ok(cr_admit_state(&a, 500, &z, &error), error);
    ck_assert_uint_eq(one.state_bytes, 500);
    ck_assert_uint_eq(a.state_bytes, 1000);
    cr_admit_over(&a, &x);
    ck_assert_uint_eq(a.state_bytes, 500);
    ck_assert_uint_eq(one.state_bytes, 0);
    cr_admit_over(&a, &y);
    cr_admit_over(&a, &z);
    ck_assert_uint_eq(a.state_bytes, 0);
}
END_TEST

START_TEST(regions_and_their_bytes) {
    a.max_regions = 3;
    a.max_regions_per_connection = 2;
    a.max_region_bytes = 1000;
    assert_ok(cr_admit_region(&a, &one, &error), error);
    assert_ok(cr_admit_region(&a, &one, &error), error);
    assert_fails(cr_admit_region(&a, &one, &error), CR_RESOURCE_EXHAUSTED, error, "max_regions_per_connection is 2");
    assert_ok(cr_admit_region(&a, &other, &error), error);
    assert_fails(cr_admit_region(&a, &other, &error), CR_RESOURCE_EXHAUSTED, error, "max_regions is 3");
    cr_admit_region_over(&a, NULL, 0); /* its connection is gone */
    assert_ok(cr_admit_region(&a, &other, &error), error);
    assert_ok(cr_admit_region_bytes(&a, &one, 400, &error), error);
    assert_fails(cr_admit_region_bytes(&a, &one, 601, &error), CR_RESOURCE_EXHAUSTED, error, "max_region_bytes, 1000");
    assert_fails(cr_admit_region_bytes(&a, &one, UINT64_MAX, &error), CR_RESOURCE_EXHAUSTED, error, "beside 400");
    assert_ok(cr_admit_region_bytes(&a, &one, 600, &error), error);
    cr_admit_region_over(&a, &one, 600);
    ck_assert_uint_eq(one.region_bytes, 400);
    ck_assert_uint_eq(one.regions, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("server/admission");
    TCase *tc = tcase_create("admission");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, connections);
    tcase_add_test(tc, descriptors_are_shared_out);
    tcase_add_test(tc, calls_in_all_and_per_connection);
    tcase_add_test(tc, bytes_of_one_input_and_of_all);
    tcase_add_test(tc, a_growing_input_is_counted_once);
    tcase_add_test(tc, memory_of_reductions_along_an_axis);
    tcase_add_test(tc, regions_and_their_bytes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
