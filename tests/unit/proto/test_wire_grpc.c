/* wire: the requests of gRPC, and where in a message its array lies: whole, cut at every byte, and with every byte wrong. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "tests/unit/check_main.h"

enum { CAP = 512, DATA = 100 };

/* A copy of exact size, so that AddressSanitizer sees a read beyond it. */
static uint8_t *exact(const uint8_t *in, size_t len) {
    uint8_t *copy = malloc(len ? len : 1);
    ck_assert_ptr_nonnull(copy);
    if (len) memcpy(copy, in, len);
    return copy;
}

static cr_wire_scan find(const uint8_t *in, size_t len, uint64_t whole, cr_wire_bulk *found) {
    uint8_t *copy = exact(in, len);
    memset(found, 0xa5, sizeof *found);
    cr_wire_scan scan = cr_wire_find_bulk(copy, len, whole, DATA, found);
    free(copy);
    return scan;
}

/* A ReduceRequest of u8: sum and max, along an axis; and its array of three bytes, field 100. */
static const uint8_t request[] = {0x08, 2, 0x12, 2, 1, 4, 0x42, 6, 0x08, 1, 0x10, 3, 0x18, 1, 0xa2, 0x06, 3, 7, 8, 9};
enum { HEAD = 14, AT = 17, WHOLE = sizeof request };

START_TEST(test_bulk_at_every_cut) {
    cr_wire_bulk found;
    for (size_t len = 0; len <= WHOLE; len++) {
        cr_wire_scan scan = find(request, len, WHOLE, &found);
        ck_assert_int_eq(scan, len < AT ? CR_SCAN_MORE : CR_SCAN_BULK);
        if (scan == CR_SCAN_MORE) { /* what need not be looked at again tells nothing new */
            const size_t known = found.head;
            ck_assert_uint_le(known, len);
            ck_assert_int_eq(find(request + known, WHOLE - known, WHOLE - known, &found), CR_SCAN_BULK);
            ck_assert_uint_eq(known + found.head, HEAD);
            ck_assert_uint_eq(known + found.at, AT);
        } else {
            ck_assert_uint_eq(found.head, HEAD);
            ck_assert_uint_eq(found.at, AT);
            ck_assert_uint_eq(found.bytes, 3);
        }
    }
}
END_TEST

START_TEST(test_no_bulk_at_every_cut) {
    cr_wire_bulk found;
    for (size_t len = 0; len <= HEAD; len++)
        ck_assert_int_eq(find(request, len, HEAD, &found), len < HEAD ? CR_SCAN_MORE : CR_SCAN_NONE);
    ck_assert_int_eq(cr_wire_find_bulk(request, WHOLE, WHOLE, 0, &found), CR_SCAN_NONE); /* wanted is none */
    ck_assert_int_eq(find(request, 0, 0, &found), CR_SCAN_NONE);
}
END_TEST

/* A message that ends within a field is bad, at each of its ends but those between two. */
START_TEST(test_messages_that_end_early) {
    cr_wire_bulk found;
    for (size_t whole = 0; whole < WHOLE; whole++) {
        const bool between = whole == 0 || whole == 2 || whole == 6 || whole == HEAD;
        ck_assert_int_eq(find(request, whole, whole, &found), between ? CR_SCAN_NONE : CR_SCAN_BAD);
    }
}
END_TEST

START_TEST(test_bulk_with_every_byte_wrong) {
    cr_wire_bulk found;
    uint8_t changed[WHOLE];
    for (size_t at = 0; at < WHOLE; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(changed, request, WHOLE);
            changed[at] = (uint8_t)byte;
            cr_wire_scan whole = CR_SCAN_MORE;
            for (size_t len = 0; len <= WHOLE; len++) {
                cr_wire_scan scan = find(changed, len, WHOLE, &found);
                ck_assert(whole == CR_SCAN_MORE || scan == whole); /* what has been told stays so */
                whole = scan;
                if (scan != CR_SCAN_BULK) continue;
                ck_assert_uint_le(found.head, found.at);
                ck_assert_uint_le(found.at, len);
                ck_assert(found.bytes <= WHOLE - found.at);
            }
            ck_assert_int_ne(whole, CR_SCAN_MORE);
        }
}
END_TEST

START_TEST(test_lengths_beyond_the_message) {
    cr_wire_bulk found;
    const uint8_t most[] = {0xa2, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    const uint8_t longer[] = {0xa2, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0};
    ck_assert_int_eq(find(most, sizeof most, UINT32_MAX, &found), CR_SCAN_BAD);
    ck_assert_int_eq(find(longer, sizeof longer, UINT32_MAX, &found), CR_SCAN_BAD);
    ck_assert_int_eq(find(request, AT, AT + 2, &found), CR_SCAN_BAD);
    ck_assert_int_eq(find(request, AT, UINT64_MAX, &found), CR_SCAN_BULK);
}
END_TEST

/* ---- requests ---- */

typedef cr_status (*unpack)(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error);

static cr_status unpack_info(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    (void)m;
    return cr_wire_unpack_info_request(in, len, error);
}

static cr_status unpack_stats(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    (void)m;
    return cr_wire_unpack_stats_request(in, len, error);
}

static cr_status unpack_slow_log(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error) {
    (void)m;
    return cr_wire_unpack_slow_log_request(in, len, error);
}

static cr_wire_call call;

/* Whatever comes is understood, or refused with a sentence. */
static cr_status try(unpack take, const uint8_t *in, size_t len) {
    cr_error error = {CR_OK, ""};
    uint8_t *copy = exact(in, len);
    memset(&call, 0xa5, sizeof call);
    cr_status status = take(copy, len, &call, &error);
    free(copy);
    if (status == CR_OK) return status;
    ck_assert(status == CR_INVALID_ARGUMENT || status == CR_UNIMPLEMENTED);
    ck_assert_int_eq(status, error.code);
    ck_assert_uint_gt(strlen(error.text), 8);
    return status;
}

static const uint8_t merge[] = {0x0a, 2, 1, 4, 0x28, 1, 0x38, 1};
static const uint8_t chunk[] = {0x0a, 6, 0x08, 12, 0x12, 2, 1, 4, 0x18, 50};

START_TEST(test_requests_cut_and_changed) {
    const struct {
        unpack take;
        const uint8_t *in;
        size_t len;
    } all[] = {{cr_wire_unpack_reduce, request, HEAD},     {cr_wire_unpack_merge, merge, sizeof merge},
               {cr_wire_unpack_head, chunk, sizeof chunk}, {unpack_info, (const uint8_t *)"", 0},
               {unpack_stats, (const uint8_t *)"", 0},     {unpack_slow_log, (const uint8_t *)"", 0}};
    uint8_t changed[CAP];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (size_t len = 0; len <= all[i].len; len++) try(all[i].take, all[i].in, len);
        for (size_t at = 0; at < all[i].len; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                memcpy(changed, all[i].in, all[i].len);
                changed[at] = (uint8_t)byte;
                try(all[i].take, changed, all[i].len);
            }
    }
}
END_TEST

START_TEST(test_what_requests_say) {
    ck_assert_int_eq(try(cr_wire_unpack_reduce, request, HEAD), CR_OK);
    ck_assert_int_eq(call.kind, CR_CALL_REDUCE);
    ck_assert_uint_eq(call.reduce.op_count, 2);
    ck_assert(call.reduce.has_axis);
    ck_assert_uint_eq(call.reduce.n, 3);
    ck_assert_uint_eq(call.progress_ms, 0);
    ck_assert_int_eq(try(cr_wire_unpack_merge, merge, sizeof merge), CR_OK);
    ck_assert_int_eq(call.kind, CR_CALL_MERGE);
    ck_assert_uint_eq(call.reduce.op_count, 2);
    ck_assert_uint_eq(call.reduce.ddof, 1);
    ck_assert(call.reduce.want_partial);
    ck_assert_int_eq(try(cr_wire_unpack_head, chunk, sizeof chunk), CR_OK);
    ck_assert_uint_eq(call.progress_ms, 50);
    ck_assert(call.reduce.source == CR_SOURCE_INLINE && !call.reduce.length_known); /* absent: as long as it lasts */
    const uint8_t data[] = {0x12, 1, 7}, array_within[] = {0x0a, 9, 0x08, 2, 0x12, 1, 1, 0xa2, 0x06, 1, 7};
    ck_assert_int_eq(try(cr_wire_unpack_head, data, sizeof data), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(try(cr_wire_unpack_head, array_within, sizeof array_within), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(try(cr_wire_unpack_head, NULL, 0), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(try(unpack_info, NULL, 0), CR_OK);
}
END_TEST

CR_CHECK_MAIN("proto/wire_grpc") {
    tcase_add_test(tc, test_bulk_at_every_cut);
    tcase_add_test(tc, test_no_bulk_at_every_cut);
    tcase_add_test(tc, test_messages_that_end_early);
    tcase_add_test(tc, test_bulk_with_every_byte_wrong);
    tcase_add_test(tc, test_lengths_beyond_the_message);
    tcase_add_test(tc, test_requests_cut_and_changed);
    tcase_add_test(tc, test_what_requests_say);
}
