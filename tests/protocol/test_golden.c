/* The golden files: each frame of the protocol is encoded to exactly these bytes and understood from them. The files were
 * written by hand from the Protocol Buffers encoding rules, not by the code under test.
 *
 * A file golden/NAME.hex is one frame. golden/bad-NAME.hex is a header that must be refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/wire.h"
#include "proto/wire_stats.h"
#include "tests/protocol/golden_axis.h"
#include "tests/protocol/golden_regions.h"
#include "tests/protocol/golden_stats.h"
#include "tests/protocol/hex.h"
#include "tests/unit/check_main.h"

enum { CAP = 4096 };

typedef size_t (*build_fn)(uint8_t *out);
/* Reads a payload and writes it again from what was understood. */
typedef size_t (*again_fn)(const uint8_t *in, size_t len, uint8_t *out);

static const cr_wire_limits limits = {.head_bytes = 65536,
                                      .data_bytes = 1 << 20,
                                      .ops = 32,
                                      .jobs_per_connection = 256,
                                      .credit_bytes = 4 << 20,
                                      .input_bytes = UINT64_C(1) << 50,
                                      .regions_per_connection = 256,
                                      .region_bytes = UINT64_C(1) << 42};

static size_t hello(uint8_t *out) {
    cr_wire_hello m = {.version_min = 1, .version_max = 1, .client = "demo/1"};
    return cr_wire_pack_hello(&m, out, CAP);
}

static size_t hello_features(uint8_t *out) {
    cr_wire_hello m = {.version_min = 1,
                       .version_max = 3,
                       .client = "libcured/0.2.0",
                       .feature_count = 2,
                       .features = {"axis", "zstd"}};
    return cr_wire_pack_hello(&m, out, CAP);
}

static size_t welcome(uint8_t *out) {
    cr_wire_welcome m = {.version = 1, .server = "cured/0.2.0", .limits = limits};
    return cr_wire_pack_welcome(&m, out, CAP);
}

static size_t reduce(uint8_t *out, uint32_t timeout_ms, uint32_t progress_ms, cr_wire_reduce r) {
    cr_wire_call m = {.timeout_ms = timeout_ms, .progress_ms = progress_ms, .kind = CR_CALL_REDUCE, .reduce = r};
    return cr_wire_pack_call(&m, out, CAP);
}

static size_t call_stream(uint8_t *out) {
    return reduce(
        out, 1000, 0,
        (cr_wire_reduce){
            .dtype = 12, .op_count = 2, .ops = {1, 6}, .source = CR_SOURCE_STREAM, .length_known = true, .length = 12});
}

static size_t call_stream_unknown(uint8_t *out) {
    return reduce(out, 86400000, 250,
                  (cr_wire_reduce){.dtype = 13,
                                   .op_count = 2,
                                   .ops = {17, 2},
                                   .nan = 1,
                                   .result_dtype = 12,
                                   .ddof = 1,
                                   .overflow = 1,
                                   .source = CR_SOURCE_STREAM});
}

static size_t call_empty(uint8_t *out) {
    return reduce(
        out, 0, 0,
        (cr_wire_reduce){.dtype = 2, .op_count = 1, .ops = {7}, .source = CR_SOURCE_STREAM, .length_known = true});
}

static size_t call_descriptor(uint8_t *out) {
    return reduce(
        out, 1000, 0,
        (cr_wire_reduce){.dtype = 12, .op_count = 2, .ops = {1, 6}, .source = CR_SOURCE_DESCRIPTOR, .offset = 128});
}

static size_t call_descriptor_count(uint8_t *out) {
    return reduce(out, 0, 0,
                  (cr_wire_reduce){.dtype = 10,
                                   .op_count = 1,
                                   .ops = {3},
                                   .source = CR_SOURCE_DESCRIPTOR,
                                   .length_known = true,
                                   .length = (UINT64_C(1) << 31) + 1});
}

static size_t call_axis(uint8_t *out) {
    return reduce(out, 0, 0,
                  (cr_wire_reduce){.dtype = 12,
                                   .op_count = 2,
                                   .ops = {1, 6},
                                   .source = CR_SOURCE_STREAM,
                                   .length_known = true,
                                   .length = 24,
                                   .has_axis = true,
                                   .outer = 2,
                                   .n = 3,
                                   .inner = 1});
}

static size_t call_partial(uint8_t *out) {
    return reduce(out, 0, 0,
                  (cr_wire_reduce){.dtype = 13,
                                   .op_count = 1,
                                   .ops = {1},
                                   .source = CR_SOURCE_STREAM,
                                   .length_known = true,
                                   .length = 1024,
                                   .want_partial = true,
                                   .first = 4096});
}

static size_t call_kernel(uint8_t *out) {
    return reduce(out, 0, 0,
                  (cr_wire_reduce){.dtype = 12,
                                   .op_count = 2,
                                   .ops = {1, 4},
                                   .source = CR_SOURCE_STREAM,
                                   .length_known = true,
                                   .length = 12,
                                   .kernel = "v7_shuffle"});
}

static size_t call_merge(uint8_t *out) {
    cr_wire_call m = {.timeout_ms = 100,
                      .kind = CR_CALL_MERGE,
                      .reduce = {.op_count = 2,
                                 .ops = {1, 17},
                                 .source = CR_SOURCE_STREAM,
                                 .nan = 1,
                                 .result_dtype = 12,
                                 .ddof = 1,
                                 .want_partial = true}};
    return cr_wire_pack_call(&m, out, CAP);
}

static size_t call_info(uint8_t *out) {
    cr_wire_call m = {.timeout_ms = 1000, .kind = CR_CALL_INFO};
    return cr_wire_pack_call(&m, out, CAP);
}

static size_t one_byte(uint8_t *out) {
    out[0] = 0xff;
    return 1;
}

static size_t nothing(uint8_t *out) {
    (void)out;
    return 0;
}

static size_t progress(uint8_t *out) {
    cr_wire_progress m = {.bytes_done = 1 << 20, .bytes_total = UINT64_C(1) << 40};
    return cr_wire_pack_progress(&m, out, CAP);
}

static size_t result(uint8_t *out) {
    static const cr_wire_result m = {
        .count = 3,
        .timing = {1000, 2000, 9000},
        .result_count = 2,
        .results = {{.op = 1, .dtype = 13, .value_len = 8, .value = {[6] = 0x18, 0x40}},
                    {.op = 6, .dtype = 8, .value_len = 8, .value = {2}, .at_len = 4, .at = {[2] = 0x40, 0x40}}}};
    return cr_wire_pack_result(&m, out, CAP);
}

static size_t result_mixed(uint8_t *out) {
    static const cr_wire_result m = {
        .result_count = 3,
        .results = {
            {.op = 3, .status = 3, .message = "min of no elements has no value"},
            {.op = 1, .dtype = 15, .value_len = 9, .value = {0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}},
            {.op = 10, .dtype = 1, .value_len = 1, .value = {1}}}};
    return cr_wire_pack_result(&m, out, CAP);
}

static size_t result_kernel(uint8_t *out) {
    static const cr_wire_result m = {
        .count = 3,
        .result_count = 2,
        .results = {{.op = 1, .dtype = 13, .value_len = 8, .value = {[6] = 0x18, 0x40}, .inexact = true},
                    {.op = 4, .dtype = 12, .value_len = 4, .value = {[2] = 0x40, 0x40}}}};
    return cr_wire_pack_result(&m, out, CAP);
}

static size_t result_partial(uint8_t *out) {
    static const uint8_t partial[88] = {'C',      'P',      1,        2,        9,        [8] = 2,  [16] = 1,
                                        [32] = 2, [42] = 1, [44] = 3, [48] = 1, [64] = 2, [72] = 1, [80] = 0xff,
                                        0xff,     0xff,     0xff,     0xff,     0xff,     0xff,     0xff};
    cr_wire_result m = {.count = 2, .timing = {1, 2, 3}, .partial = partial, .partial_len = sizeof partial};
    return cr_wire_pack_result(&m, out, CAP);
}

static size_t result_info_users(uint8_t *out) {
    static cr_wire_info m = {.version = "0.2.0", .user_count = 2};
    m.users[0] = (cr_wire_user){
        .name = "uid 1000", .own = true, .used = {1, 2, 3, 4, 5, 6, 7}, .limit = {.connections = 8192, .calls = 300}};
    m.users[1] = (cr_wire_user){.name = "tcp 192.0.2.1"};
    return cr_wire_pack_info(&m, out, CAP);
}

static size_t result_info(uint8_t *out) {
    static cr_wire_info m;
    strcpy(m.version, "0.2.0");
    strcpy(m.backend, "cpu");
    strcpy(m.backend_reason, "this build has no CUDA lane");
    m.uptime_ms = 12345;
    m.lane_count = 1;
    m.lanes[0] = (cr_wire_lane){.name = "cpu", .device = "avx2", .workers = 7, .bytes_per_second = 2.5e10};
    m.counter_count = 2;
    m.counters[0] = (cr_wire_counter){.name = "calls", .value = 300};
    m.counters[1] = (cr_wire_counter){.name = "calls_failed"};
    m.limits = limits;
    return cr_wire_pack_info(&m, out, CAP);
}

static size_t status(uint8_t *out) {
    cr_wire_status m = {CR_RESOURCE_EXHAUSTED, "256 calls in flight on this connection, limit is 256", 20};
    return cr_wire_pack_status(&m, out, CAP);
}

static size_t status_connection(uint8_t *out) {
    cr_wire_status m = {CR_UNAVAILABLE, "the server is shutting down", 1000};
    return cr_wire_pack_status(&m, out, CAP);
}

static size_t credit(uint8_t *out) { return cr_wire_pack_credit(1 << 20, out, CAP); }

static size_t eight(uint8_t *out) {
    for (uint8_t i = 0; i < 8; i++) out[i] = (uint8_t)(i + 1);
    return 8;
}

static size_t unknown(uint8_t *out) {
    out[0] = 0xab;
    out[1] = 0xcd;
    return 2;
}

#define AGAIN(name, type)                                                        \
    static size_t name##_again(const uint8_t *in, size_t len, uint8_t *out) {    \
        cr_error e;                                                              \
        type *m = malloc(sizeof *m);                                             \
        memset(m, 0xa5, sizeof *m); /* what is not filled in must not be used */ \
        cr_status s = cr_wire_unpack_##name(in, len, m, &e);                     \
        ck_assert_msg(s == CR_OK, "%s", e.text);                                 \
        size_t n = cr_wire_pack_##name(m, out, CAP);                             \
        free(m);                                                                 \
        return n;                                                                \
    }
AGAIN(hello, cr_wire_hello)
AGAIN(welcome, cr_wire_welcome)
AGAIN(call, cr_wire_call)
AGAIN(result, cr_wire_result)
AGAIN(registered, cr_wire_registered)
AGAIN(info, cr_wire_info)
AGAIN(stats, cr_wire_stats)
AGAIN(slow_log, cr_wire_slow_log)
AGAIN(reloaded, cr_wire_reloaded)
AGAIN(settings, cr_wire_settings)
AGAIN(status, cr_wire_status)
AGAIN(progress, cr_wire_progress)

static size_t credit_again(const uint8_t *in, size_t len, uint8_t *out) {
    uint64_t bytes = 0;
    ck_assert_int_eq(cr_wire_unpack_credit(in, len, &bytes, NULL), CR_OK);
    return cr_wire_pack_credit(bytes, out, CAP);
}

static size_t copy(const uint8_t *in, size_t len, uint8_t *out) {
    memcpy(out, in, len);
    return len;
}

enum { CLIENT = 1, SERVER = 2, BOTH = 3, SKIPPED = 4 };

/* A CALL that no DATA follows. */
#define WHOLE_RESULT(name, number, build, again) \
    { name, SERVER, {.type = CR_FRAME_RESULT, .flags = CR_FLAG_END, .stream = number}, build, again }
#define WHOLE_CALL(title, passed, number, builder)                                                             \
    {                                                                                                          \
        title, CLIENT, {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .descriptors = passed, .stream = number}, \
            builder, call_again                                                                                \
    }

static const struct golden {
    const char *name;
    int from;
    cr_frame frame; /* but for the length */
    build_fn build;
    again_fn again;
} goldens[] = {
    {"hello", CLIENT, {.type = CR_FRAME_HELLO}, hello, hello_again},
    {"hello-features", CLIENT, {.type = CR_FRAME_HELLO}, hello_features, hello_again},
    {"welcome", SERVER, {.type = CR_FRAME_WELCOME}, welcome, welcome_again},
    {"call-stream", CLIENT, {.type = CR_FRAME_CALL, .stream = 1}, call_stream, call_again},
    {"call-stream-unknown", CLIENT, {.type = CR_FRAME_CALL, .stream = 7}, call_stream_unknown, call_again},
    {"call-empty", CLIENT, {.type = CR_FRAME_CALL, .stream = 2}, call_empty, call_again},
    {"call-descriptor",
     CLIENT,
     {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .descriptors = 1, .stream = 3},
     call_descriptor,
     call_again},
    {"call-descriptor-count",
     CLIENT,
     {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .descriptors = 1, .stream = 4},
     call_descriptor_count,
     call_again},
    {"call-axis", CLIENT, {.type = CR_FRAME_CALL, .stream = 11}, call_axis, call_again},
    {"call-axis-statuses", CLIENT, {.type = CR_FRAME_CALL, .stream = 28}, golden_call_axis_statuses, call_again},
    {"call-mask", CLIENT, {.type = CR_FRAME_CALL, .stream = 33}, golden_call_mask, golden_call_beside_again},
    {"call-segments", CLIENT, {.type = CR_FRAME_CALL, .stream = 35}, golden_call_segments, golden_call_beside_again},
    {"call-keys", CLIENT, {.type = CR_FRAME_CALL, .stream = 37}, golden_call_keys, golden_call_beside_again},
    {"call-parameters",
     CLIENT,
     {.type = CR_FRAME_CALL, .stream = 41},
     golden_call_parameters,
     golden_call_parameters_again},
    {"call-second", CLIENT, {.type = CR_FRAME_CALL, .stream = 39}, golden_call_second, golden_call_beside_again},
    {"call-layout", CLIENT, {.type = CR_FRAME_CALL, .stream = 43}, golden_call_layout, golden_call_layout_again},
    {"call-axis-outputs",
     CLIENT,
     {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .stream = 29},
     golden_call_axis_outputs,
     golden_call_outputs_again},
    {"call-partial", CLIENT, {.type = CR_FRAME_CALL, .stream = 12}, call_partial, call_again},
    {"call-kernel", CLIENT, {.type = CR_FRAME_CALL, .stream = 14}, call_kernel, call_again},
    {"call-merge", CLIENT, {.type = CR_FRAME_CALL, .stream = 13}, call_merge, call_again},
    {"call-merge-keyed", CLIENT, {.type = CR_FRAME_CALL, .stream = 45}, golden_call_merge_keyed, call_again},
    WHOLE_CALL("call-region", 0, 25, golden_call_region),
    WHOLE_CALL("call-region-to-end", 0, 26, golden_call_region_to_end),
    WHOLE_CALL("call-register", 1, 20, golden_call_register),
    WHOLE_CALL("call-register-shm", 0, 21, golden_call_register_shm),
    WHOLE_CALL("call-register-cuda", 0, 22, golden_call_register_cuda),
    WHOLE_CALL("call-register-cuda-descriptor", 1, 23, golden_call_register_cuda_descriptor),
    WHOLE_CALL("call-register-cuda-pool", 1, 24, golden_call_register_cuda_pool),
    WHOLE_CALL("call-register-writable", 1, 30, golden_call_register_writable),
    WHOLE_CALL("call-unregister", 0, 27, golden_call_unregister),
    {"call-info", CLIENT, {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .stream = 2}, call_info, call_again},
    {"call-stats", CLIENT, {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .stream = 3}, golden_call_stats, call_again},
    WHOLE_CALL("call-slow-log", 0, 4, golden_call_slow_log),
    WHOLE_CALL("call-config", 0, 6, golden_call_config),
    {"call-reload", CLIENT, {.type = CR_FRAME_CALL, .flags = CR_FLAG_END, .stream = 5}, golden_call_reload, call_again},
    {"data-end", CLIENT, {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 1}, golden_floats, copy},
    {"data-mask", CLIENT, {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 33}, golden_masked_floats, copy},
    {"data-segments", CLIENT, {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 35}, golden_cut_floats, copy},
    {"data-keys", CLIENT, {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 37}, golden_grouped_floats, copy},
    {"data-second", CLIENT, {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 39}, golden_paired_floats, copy},
    {"data", CLIENT, {.type = CR_FRAME_DATA, .stream = 1}, one_byte, copy},
    {"data-empty-end", CLIENT, {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .stream = 9}, nothing, copy},
    {"cancel", CLIENT, {.type = CR_FRAME_CANCEL, .stream = 5}, nothing, copy},
    {"progress", SERVER, {.type = CR_FRAME_PROGRESS, .stream = 5}, progress, progress_again},
    WHOLE_RESULT("result", 1, result, result_again),
    WHOLE_RESULT("result-mixed", 9, result_mixed, result_again),
    WHOLE_RESULT("result-kernel", 13, result_kernel, result_again),
    {"result-part", SERVER, {.type = CR_FRAME_RESULT, .stream = 11}, golden_part, golden_part_again},
    {"result-part-statuses", SERVER, {.type = CR_FRAME_RESULT, .stream = 28}, golden_part_statuses, golden_part_again},
    WHOLE_RESULT("result-written", 29, golden_result_written, result_again),
    WHOLE_RESULT("result-partial", 12, result_partial, result_again),
    WHOLE_RESULT("result-info", 2, result_info, info_again),
    WHOLE_RESULT("result-info-users", 2, result_info_users, info_again),
    WHOLE_RESULT("result-stats", 3, golden_result_stats, stats_again),
    WHOLE_RESULT("result-slow-log", 4, golden_result_slow_log, slow_log_again),
    WHOLE_RESULT("result-reloaded", 5, golden_result_reload, reloaded_again),
    WHOLE_RESULT("result-config", 6, golden_result_config, settings_again),
    WHOLE_RESULT("result-registered", 20, golden_registered, registered_again),
    WHOLE_RESULT("result-registered-read-only", 20, golden_registered_read_only, registered_again),
    WHOLE_RESULT("result-unregistered", 27, nothing, copy),
    {"status", SERVER, {.type = CR_FRAME_STATUS, .flags = CR_FLAG_END, .stream = 4}, status, status_again},
    {"status-connection", SERVER, {.type = CR_FRAME_STATUS}, status_connection, status_again},
    {"credit", BOTH, {.type = CR_FRAME_CREDIT, .stream = 3}, credit, credit_again},
    {"ping", BOTH, {.type = CR_FRAME_PING}, eight, copy},
    {"pong", BOTH, {.type = CR_FRAME_PONG}, eight, copy},
    {"ignorable", BOTH | SKIPPED, {.type = 200, .flags = CR_FLAG_IGNORABLE}, unknown, copy},
};
enum { GOLDENS = sizeof goldens / sizeof goldens[0] };

START_TEST(encodes) {
    const struct golden *g = &goldens[_i];
    uint8_t want[CAP], got[CAP];
    size_t want_len = hex_read(g->name, want, sizeof want);
    size_t payload = g->build(got + CR_FRAME_HEADER_BYTES);
    cr_frame f = g->frame;
    f.length = (uint32_t)payload;
    cr_frame_put(got, &f);
    ck_assert_uint_eq(CR_FRAME_HEADER_BYTES + payload, want_len);
    ck_assert_mem_eq(got, want, want_len);
}
END_TEST

START_TEST(decodes) {
    const struct golden *g = &goldens[_i];
    uint8_t in[CAP], again[CAP];
    size_t len = hex_read(g->name, in, sizeof in);
    for (int side = CLIENT; side <= SERVER; side++) {
        cr_frame f;
        cr_error e;
        bool skip;
        cr_status s = cr_frame_get(in, side == CLIENT, &f, &skip, &e);
        if ((g->from & side) == 0) {
            ck_assert_int_eq(s, CR_INVALID_ARGUMENT);
            continue;
        }
        ck_assert_msg(s == CR_OK, "%s", e.text);
        ck_assert_int_eq(skip, (g->from & SKIPPED) != 0);
        ck_assert_uint_eq(f.version, 1);
        ck_assert_uint_eq(f.type, g->frame.type);
        ck_assert_uint_eq(f.flags, g->frame.flags);
        ck_assert_uint_eq(f.descriptors, g->frame.descriptors);
        ck_assert_uint_eq(f.stream, g->frame.stream);
        ck_assert_uint_eq(f.length, len - CR_FRAME_HEADER_BYTES);
        size_t n = g->again(in + CR_FRAME_HEADER_BYTES, f.length, again);
        ck_assert_uint_eq(n, f.length);
        if (n != 0) ck_assert_mem_eq(again, in + CR_FRAME_HEADER_BYTES, n);
    }
}
END_TEST

static const struct bad {
    const char *name;
    bool from_client;
    cr_status code;
    const char *says; /* the field and its limit */
} bads[] = {
    {"bad-magic", true, CR_INVALID_ARGUMENT, "magic"},
    {"bad-http", true, CR_INVALID_ARGUMENT, "magic"},
    {"bad-version-0", true, CR_UNIMPLEMENTED, "version is 0, supported are 1 to 1"},
    {"bad-version-2", true, CR_UNIMPLEMENTED, "version is 2, supported are 1 to 1"},
    {"bad-reserved", true, CR_INVALID_ARGUMENT, "byte 7"},
    {"bad-flags", true, CR_INVALID_ARGUMENT, "flags"},
    {"bad-type-0", true, CR_INVALID_ARGUMENT, "type 0"},
    {"bad-type-unknown", true, CR_INVALID_ARGUMENT, "type 200"},
    {"bad-unknown-long", true, CR_INVALID_ARGUMENT, "limit is 1048576"},
    {"bad-unknown-descriptor", true, CR_INVALID_ARGUMENT, "descriptors"},
    {"bad-call-long", true, CR_INVALID_ARGUMENT, "limit is 65536"},
    {"bad-data-long", true, CR_INVALID_ARGUMENT, "limit is 1048576"},
    {"bad-data-longest", true, CR_INVALID_ARGUMENT, "4294967295"},
    {"bad-cancel-payload", true, CR_INVALID_ARGUMENT, "limit is 0"},
    {"bad-ping-long", true, CR_INVALID_ARGUMENT, "limit is 64"},
    {"bad-call-stream-0", true, CR_INVALID_ARGUMENT, "stream 0"},
    {"bad-hello-stream", true, CR_INVALID_ARGUMENT, "stream 1"},
    {"bad-ping-stream", true, CR_INVALID_ARGUMENT, "stream 1"},
    {"bad-descriptors-5", true, CR_INVALID_ARGUMENT, "limit is 4"},
    {"bad-data-descriptor", true, CR_INVALID_ARGUMENT, "limit is 0"},
    {"bad-welcome-from-client", true, CR_INVALID_ARGUMENT, "a client sends"},
    {"bad-result-from-client", true, CR_INVALID_ARGUMENT, "a client sends"},
    {"bad-call-from-server", false, CR_INVALID_ARGUMENT, "a server sends"},
};
enum { BADS = sizeof bads / sizeof bads[0] };

START_TEST(refuses) {
    const struct bad *b = &bads[_i];
    uint8_t in[CAP];
    cr_frame f;
    cr_error e = {CR_OK, ""};
    bool skip = true;
    ck_assert_uint_eq(hex_read(b->name, in, sizeof in), CR_FRAME_HEADER_BYTES);
    ck_assert_int_eq(cr_frame_get(in, b->from_client, &f, &skip, &e), b->code);
    ck_assert_int_eq(e.code, b->code);
    ck_assert_msg(strstr(e.text, b->says) != NULL, "'%s' does not say '%s'", e.text, b->says);
    ck_assert(!skip);
}
END_TEST

START_TEST(has_every_type) {
#define CR_FRAME(symbol, number, name, max_length, where, from_client, from_server) [number] = name,
    static const char *const names[] = {
#include "proto/frame.def"
    };
#undef CR_FRAME
    for (size_t type = 0; type < sizeof names / sizeof names[0]; type++) {
        bool found = names[type] == NULL;
        for (size_t i = 0; i < GOLDENS; i++) found = found || goldens[i].frame.type == type;
        ck_assert_msg(found, "no golden file for %s", names[type]);
    }
}
END_TEST

CR_CHECK_MAIN("golden") {
    tcase_add_loop_test(tc, encodes, 0, GOLDENS);
    tcase_add_loop_test(tc, decodes, 0, GOLDENS);
    tcase_add_loop_test(tc, refuses, 0, BADS);
    tcase_add_test(tc, has_every_type);
}
