/* frame: what the golden files do not show: every type at its limits, and from which side. */
#include <check.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/unit/check_main.h"

enum place { CONNECTION, STREAM, EITHER };

static const struct rule {
    uint8_t type;
    const char *name;
    uint32_t longest;
    enum place place;
    bool client, server;
} rules[] = {
#define CR_FRAME(symbol, number, name, max_length, where, client, server) \
    {number, name, max_length, where, client, server},
#include "proto/frame.def"
#undef CR_FRAME
};
enum { RULES = sizeof rules / sizeof rules[0] };

static cr_status get(const cr_frame *f, bool from_client, bool *skip) {
    uint8_t bytes[CR_FRAME_HEADER_BYTES];
    cr_frame out;
    cr_frame_put(bytes, f);
    cr_status s = cr_frame_get(bytes, from_client, &out, skip, NULL);
    ck_assert_uint_eq(out.stream, f->stream);
    ck_assert_uint_eq(out.length, f->length);
    return s;
}

START_TEST(sides_lengths_streams) {
    const struct rule *r = &rules[_i];
    uint32_t good_stream = r->place == CONNECTION ? 0 : UINT32_MAX;
    bool skip;
    for (int client = 0; client <= 1; client++) {
        bool may = client ? r->client : r->server;
        cr_frame f = {.type = r->type, .stream = good_stream, .length = r->longest};
        ck_assert_int_eq(get(&f, client, &skip), may ? CR_OK : CR_INVALID_ARGUMENT);
        ck_assert(!skip);
        f.length = r->longest + 1;
        ck_assert_int_eq(get(&f, client, &skip), CR_INVALID_ARGUMENT);
        f.length = 0;
        f.stream = good_stream == 0 ? 1 : 0;
        bool also = may && r->place == EITHER;
        ck_assert_int_eq(get(&f, client, &skip), also ? CR_OK : CR_INVALID_ARGUMENT);
    }
    ck_assert_str_eq(cr_frame_name(r->type), r->name);
}
END_TEST

START_TEST(descriptors) {
    const struct rule *r = &rules[_i];
    cr_frame f = {.type = r->type, .stream = r->place == CONNECTION ? 0 : 1};
    bool skip;
    for (unsigned n = 0; n < 256; n++) {
        f.descriptors = (uint8_t)n;
        bool good = n == 0 || (r->type == CR_FRAME_CALL && n <= CR_FRAME_MAX_DESCRIPTORS);
        ck_assert_int_eq(get(&f, r->client, &skip), good ? CR_OK : CR_INVALID_ARGUMENT);
    }
}
END_TEST

START_TEST(unknown_types_pass_only_when_ignorable) {
    for (unsigned type = 0; type < 256; type++) {
        bool known = false;
        for (size_t i = 0; i < RULES; i++) known = known || rules[i].type == type;
        if (known) continue;
        bool skip;
        cr_frame f = {.type = (uint8_t)type, .flags = CR_FLAG_IGNORABLE, .stream = type, .length = CR_DATA_MAX_BYTES};
        ck_assert_int_eq(get(&f, true, &skip), CR_OK);
        ck_assert(skip);
        f.flags = 0;
        ck_assert_int_eq(get(&f, true, &skip), CR_INVALID_ARGUMENT);
        ck_assert(!skip);
        ck_assert_str_eq(cr_frame_name((uint8_t)type), "unknown");
    }
}
END_TEST

START_TEST(every_flag) {
    bool skip;
    for (unsigned bit = 0; bit < 16; bit++) {
        cr_frame f = {.type = CR_FRAME_DATA, .flags = (uint16_t)(1u << bit), .stream = 1};
        bool good = f.flags == CR_FLAG_END || f.flags == CR_FLAG_IGNORABLE;
        ck_assert_int_eq(get(&f, true, &skip), good ? CR_OK : CR_INVALID_ARGUMENT);
        ck_assert(!skip); /* a known type is never skipped */
    }
}
END_TEST

CR_CHECK_MAIN("frame") {
    tcase_add_loop_test(tc, sides_lengths_streams, 0, RULES);
    tcase_add_loop_test(tc, descriptors, 0, RULES);
    tcase_add_test(tc, unknown_types_pass_only_when_ignorable);
    tcase_add_test(tc, every_flag);
}
