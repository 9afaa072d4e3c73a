/* The hand-written reader and writer of proto/wire_fast.c beside protobuf-c. A hint in front makes the reader
 * leave a Call to protobuf-c, so both ways to read the same bytes can be compared without a door of their own. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cured.pb-c.h"
#include "proto/wire_internal.h"
#include "tests/unit/check_main.h"

enum { ROUNDS = 10000 };

static uint64_t state = 3;

static uint64_t random_number(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Often 0, often small, sometimes anything. */
static uint64_t some_number(void) {
    uint64_t r = random_number();
    return r % 3 == 0 ? 0 : r % 3 == 1 ? (r >> 8) % 40 : (r >> 8) >> (r >> 2) % 56;
}

static cr_wire_call random_call(void) {
    cr_wire_call m;
    memset(&m, 0, sizeof m);
    m.kind = CR_CALL_REDUCE;
    m.timeout_ms = (uint32_t)(some_number() % (CR_TIMEOUT_MAX_MS + 1));
    m.progress_ms = (uint32_t)some_number();
    m.reduce.dtype = (uint32_t)some_number() & INT32_MAX;
    m.reduce.result_dtype = (uint32_t)some_number() & INT32_MAX;
    m.reduce.nan = (uint32_t)some_number() & INT32_MAX;
    m.reduce.overflow = (uint32_t)some_number() & INT32_MAX;
    m.reduce.ddof = some_number();
    m.reduce.op_count = 1 + (uint32_t)(random_number() % CR_CALL_MAX_OPS);
    uint32_t first = (uint32_t)(random_number() % 40);
    for (uint32_t i = 0; i < m.reduce.op_count; i++) m.reduce.ops[i] = first + i;
    m.reduce.source = (cr_wire_source)(random_number() % 3 + CR_SOURCE_STREAM);
    m.reduce.length_known = random_number() % 2;
    m.reduce.length = m.reduce.length_known ? some_number() : 0;
    m.reduce.offset = m.reduce.source != CR_SOURCE_STREAM ? some_number() : 0;
    m.reduce.region = m.reduce.source == CR_SOURCE_REGION ? some_number() : 0;
    m.reduce.has_axis = random_number() % 3 == 0;
    m.reduce.statuses = random_number() % 4 == 0;
    if (m.reduce.has_axis) m.reduce.outer = some_number(), m.reduce.n = some_number(), m.reduce.inner = some_number();
    m.reduce.want_partial = random_number() % 8 == 0;
    m.reduce.unplaced = random_number() % 8 == 0;
    m.reduce.first = random_number() % 8 ? 0 : some_number();
    if (random_number() % 8 == 0) memset(m.reduce.kernel, 'k', random_number() % CR_NAME_MAX_BYTES);
    return m;
}

/* Packs a call, perhaps with outputs. */
static size_t pack_some(cr_wire_call *m, uint8_t *out, size_t cap) {
    cr_wire_output outputs[CR_CALL_MAX_OPS];
    if (random_number() % 3) return cr_wire_pack_call(m, out, cap);
    if (random_number() % 2) m->reduce.op_count = 1;
    for (uint32_t i = 0; i < m->reduce.op_count; i++) outputs[i] = (cr_wire_output){1 + some_number(), some_number()};
    m->reduce.outputs = m->reduce.op_count;
    return cr_wire_pack_outputs(m, outputs, out, cap);
}

static void assert_same_call(const cr_wire_call *a, const cr_wire_call *b) {
    const cr_wire_reduce *x = &a->reduce, *y = &b->reduce;
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_uint_eq(a->timeout_ms, b->timeout_ms);
    ck_assert_uint_eq(a->progress_ms, b->progress_ms);
    if (a->kind != CR_CALL_REDUCE) return;
    ck_assert_uint_eq(x->dtype, y->dtype);
    ck_assert_uint_eq(x->result_dtype, y->result_dtype);
    ck_assert_uint_eq(x->nan, y->nan);
    ck_assert_uint_eq(x->overflow, y->overflow);
    ck_assert_uint_eq(x->ddof, y->ddof);
    ck_assert_uint_eq(x->op_count, y->op_count);
    for (uint32_t i = 0; i < x->op_count; i++) ck_assert_uint_eq(x->ops[i], y->ops[i]);
    ck_assert_int_eq(x->source, y->source);
    ck_assert_int_eq(x->length_known, y->length_known);
    ck_assert_uint_eq(x->length, y->length);
    ck_assert_uint_eq(x->offset, y->offset);
    if (x->source == CR_SOURCE_REGION) ck_assert_uint_eq(x->region, y->region);
    ck_assert_int_eq(x->has_axis, y->has_axis);
    ck_assert_uint_eq(x->outer, y->outer);
    ck_assert_uint_eq(x->n, y->n);
    ck_assert_uint_eq(x->inner, y->inner);
    ck_assert_int_eq(x->want_partial, y->want_partial);
    ck_assert_int_eq(x->unplaced, y->unplaced);
    ck_assert_int_eq(x->statuses, y->statuses);
    ck_assert_uint_eq(x->outputs, y->outputs);
    ck_assert_uint_eq(x->first, y->first);
    ck_assert_str_eq(x->kernel, y->kernel);
}

/* Reads in[0..len) as it is and with a hint that nobody knows in front. True when it was accepted, both times alike. */
static bool compare_readers(const uint8_t *in, size_t len) {
    static cr_wire_call plain, general;
    static cr_error plain_error, general_error;
    uint8_t longer[CR_HEAD_MAX_BYTES];
    memset(&plain, 0xa5, sizeof plain);
    memset(&general, 0x5a, sizeof general);
    memcpy(longer, "\x98\x06\x01", 3); /* a hint: field 99, varint 1 */
    memcpy(longer + 3, in, len);
    cr_status a = cr_wire_unpack_call(in, len, &plain, &plain_error);
    cr_status b = cr_wire_unpack_call(longer, len + 3, &general, &general_error);
    ck_assert_int_eq(a, b);
    if (a != CR_OK) {
        ck_assert_str_eq(plain_error.text, general_error.text);
        return false;
    }
    assert_same_call(&plain, &general);
    if (plain.kind != CR_CALL_REDUCE || plain.reduce.outputs == 0) return true;
    cr_wire_output some[CR_CALL_MAX_OPS], others[CR_CALL_MAX_OPS];
    ck_assert_int_eq(cr_wire_unpack_outputs(in, len, some, &plain_error), CR_OK);
    ck_assert_int_eq(cr_wire_unpack_outputs(longer, len + 3, others, &general_error), CR_OK);
    for (uint32_t i = 0; i < plain.reduce.outputs; i++) {
        ck_assert_uint_eq(some[i].region, others[i].region);
        ck_assert_uint_eq(some[i].offset, others[i].offset);
    }
    return true;
}

START_TEST(calls_are_read_alike) {
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t bytes[1024];
        cr_wire_call m = random_call();
        size_t n = pack_some(&m, bytes, sizeof bytes);
        ck_assert_uint_gt(n, 0);
        ck_assert(compare_readers(bytes, n));
    }
}
END_TEST

/* Cuts, inserts and changes one to three bytes of n; how many there are then, at most three more. */
static size_t damage(uint8_t *bytes, size_t n) {
    for (uint64_t k = random_number() % 3 + 1; k > 0; k--) {
        uint64_t r = random_number();
        if (r % 4 == 0 && n > 1) {
            n = (size_t)(r >> 8) % n;
        } else if (r % 4 == 1) {
            size_t at = (size_t)(r >> 8) % (n + 1);
            memmove(bytes + at + 1, bytes + at, n++ - at);
            bytes[at] = (uint8_t)(r >> 40);
        } else if (n) {
            bytes[(size_t)(r >> 8) % n] =
                r % 4 == 2 ? (uint8_t)(r >> 40) : bytes[(size_t)(r >> 8) % n] ^ (uint8_t)(1u << (r >> 40) % 8);
        }
    }
    return n;
}

START_TEST(damaged_calls_are_read_alike) {
    int accepted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t bytes[1024];
        cr_wire_call m = random_call();
        size_t n = pack_some(&m, bytes, sizeof bytes);
        accepted += compare_readers(bytes, damage(bytes, n));
    }
    ck_assert_int_gt(accepted, ROUNDS / 20); /* or there was little to compare */
}
END_TEST

/* protobuf-c reads what a Call was packed to, by hand or not, and writes the same bytes. */
START_TEST(calls_are_written_alike) {
    uint8_t bytes[1024], again[1024];
    for (int i = 0; i < ROUNDS; i++) {
        cr_wire_call m = random_call();
        size_t n = pack_some(&m, bytes, sizeof bytes);
        ck_assert_uint_gt(n, 0);
        if (!m.reduce.outputs) {
            ck_assert_uint_eq(cr_wire_pack_call(&m, again, n), n);
            ck_assert(memcmp(bytes, again, n) == 0);
            ck_assert_uint_eq(cr_wire_pack_call(&m, again, n - 1), 0);
        }
        Cured__V1__Call *p = cured__v1__call__unpack(NULL, n, bytes);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(cured__v1__call__pack(p, again), n);
        ck_assert(memcmp(bytes, again, n) == 0);
        cured__v1__call__free_unpacked(p, NULL);
    }
}
END_TEST

/* What a program asks again and again that keeps its tensors is not left to protobuf-c. */
START_TEST(a_call_with_an_output_is_plain) {
    const cr_wire_output to = {.region = 1u << 20, .offset = UINT32_MAX};
    cr_wire_output outputs[CR_CALL_MAX_OPS];
    uint8_t bytes[512];
    cr_wire_call m = {.kind = CR_CALL_REDUCE, .timeout_ms = 60000}, back;
    m.reduce = (cr_wire_reduce){.dtype = 12, .result_dtype = 12, .op_count = 1, .ops = {1}, .statuses = _i != 0};
    m.reduce.source = CR_SOURCE_REGION;
    m.reduce.region = 1u << 19;
    m.reduce.has_axis = true;
    m.reduce.outer = 1u << 25;
    m.reduce.n = 1u << 20;
    m.reduce.inner = 1u << 15;
    const size_t n = cr_wire_write_plain_call(&m, &to, bytes, sizeof bytes);
    ck_assert_uint_gt(n, 0);
    ck_assert(cr_wire_read_plain_call(bytes, n, &back));
    ck_assert(cr_wire_read_plain_outputs(bytes, n, outputs));
    ck_assert_uint_eq(outputs[0].region, to.region);
    ck_assert_uint_eq(outputs[0].offset, to.offset);
    m.reduce.outputs = 1;
    assert_same_call(&m, &back);
}
END_TEST

static cr_wire_result random_result(void) {
    cr_wire_result m;
    memset(&m, 0, sizeof m);
    m.count = some_number();
    m.timing = (cr_wire_timing){some_number(), some_number(), random_number()};
    m.written = random_number() % 4 ? 0 : some_number();
    m.result_count = (uint32_t)(random_number() % (CR_CALL_MAX_OPS + 1));
    for (uint32_t i = 0; i < m.result_count; i++) {
        cr_wire_op_result *r = &m.results[i];
        r->op = (uint32_t)some_number() & INT32_MAX;
        r->status = (uint32_t)some_number();
        r->dtype = (uint32_t)some_number() & INT32_MAX;
        r->value_len = (uint8_t)(random_number() % (CR_WIRE_VALUE_BYTES + 1));
        r->at_len = random_number() % 2 ? 8 : 0;
        r->inexact = random_number() % 4 == 0;
        for (int k = 0; k < CR_WIRE_VALUE_BYTES; k++) r->value[k] = (uint8_t)random_number();
        memset(r->message, 'x', random_number() % 3 ? 0 : random_number() % (CR_ERROR_TEXT - 1));
    }
    return m;
}

/* protobuf-c reads it, and writes the same bytes. */
START_TEST(results_are_written_alike) {
    static uint8_t bytes[65536], again[65536], partial[20000];
    for (int i = 0; i < ROUNDS / 10; i++) {
        cr_wire_result m = random_result(), back;
        cr_error error;
        if (random_number() % 4 == 0) m.partial = partial, m.partial_len = (size_t)(random_number() % sizeof partial);
        size_t n = cr_wire_pack_result(&m, bytes, sizeof bytes);
        ck_assert_uint_gt(n, 0);
        ck_assert_uint_eq(cr_wire_pack_result(&m, again, n), n);
        ck_assert_uint_eq(cr_wire_pack_result(&m, again, n - 1), 0);
        Cured__V1__ReduceResponse *p = cured__v1__reduce_response__unpack(NULL, n, bytes);
        ck_assert_ptr_nonnull(p);
        ck_assert_ptr_null(p->base.unknown_fields);
        ck_assert_uint_eq(cured__v1__reduce_response__pack(p, again), n);
        ck_assert(memcmp(bytes, again, n) == 0);
        cured__v1__reduce_response__free_unpacked(p, NULL);
        if (m.partial) continue;
        ck_assert_int_eq(cr_wire_unpack_result(bytes, n, &back, &error), CR_OK);
        ck_assert_uint_eq(back.count, m.count);
        ck_assert_uint_eq(back.written, m.written);
        ck_assert_uint_eq(back.timing.total_ns, m.timing.total_ns);
        ck_assert_uint_eq(back.result_count, m.result_count);
        for (uint32_t k = 0; k < m.result_count; k++) {
            ck_assert_uint_eq(back.results[k].status, m.results[k].status);
            ck_assert_uint_eq(back.results[k].value_len, m.results[k].value_len);
            ck_assert(memcmp(back.results[k].value, m.results[k].value, m.results[k].value_len) == 0);
            ck_assert_str_eq(back.results[k].message, m.results[k].message);
            ck_assert_int_eq(back.results[k].inexact, m.results[k].inexact);
        }
    }
}
END_TEST

static void assert_same_op_result(const cr_wire_op_result *a, const cr_wire_op_result *b) {
    ck_assert_uint_eq(a->op, b->op);
    ck_assert_uint_eq(a->status, b->status);
    ck_assert_uint_eq(a->dtype, b->dtype);
    ck_assert_uint_eq(a->value_len, b->value_len);
    ck_assert_uint_eq(a->at_len, b->at_len);
    ck_assert_int_eq(a->inexact, b->inexact);
    ck_assert(memcmp(a->value, b->value, sizeof a->value) == 0); /* zeros behind the value */
    ck_assert(memcmp(a->at, b->at, sizeof a->at) == 0);
    ck_assert_str_eq(a->message, b->message);
}

/* As compare_readers, of a ReduceResponse. */
static bool compare_result_readers(const uint8_t *in, size_t len) {
    static cr_wire_result plain, general;
    static cr_error plain_error, general_error;
    static uint8_t longer[65536];
    memset(&plain, 0xa5, sizeof plain);
    memset(&general, 0x5a, sizeof general);
    memcpy(longer, "\x98\x06\x01", 3);
    memcpy(longer + 3, in, len);
    cr_status a = cr_wire_unpack_result(in, len, &plain, &plain_error);
    cr_status b = cr_wire_unpack_result(longer, len + 3, &general, &general_error);
    ck_assert_int_eq(a, b);
    if (a != CR_OK) {
        ck_assert_str_eq(plain_error.text, general_error.text);
        return false;
    }
    ck_assert_uint_eq(plain.count, general.count);
    ck_assert_uint_eq(plain.timing.queue_ns, general.timing.queue_ns);
    ck_assert_uint_eq(plain.timing.run_ns, general.timing.run_ns);
    ck_assert_uint_eq(plain.timing.total_ns, general.timing.total_ns);
    ck_assert_uint_eq(plain.written, general.written);
    ck_assert_uint_eq(plain.partial_len, general.partial_len);
    if (plain.partial_len) ck_assert_int_eq(plain.partial - in, general.partial - longer - 3);
    ck_assert_uint_eq(plain.result_count, general.result_count);
    for (uint32_t i = 0; i < plain.result_count; i++) assert_same_op_result(&plain.results[i], &general.results[i]);
    return true;
}

/* Most have few answers, and no messages, so that damage finds what is read by hand. */
START_TEST(results_are_read_alike) {
    static uint8_t bytes[65536];
    int accepted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        cr_wire_result m = random_result();
        const bool plain = random_number() % 8 != 0;
        if (plain) m.result_count %= 3;
        for (uint32_t k = 0; plain && k < m.result_count; k++) m.results[k].message[0] = '\0';
        size_t n = cr_wire_pack_result(&m, bytes, sizeof bytes - 3);
        ck_assert_uint_gt(n, 0);
        ck_assert(compare_result_readers(bytes, n));
        accepted += compare_result_readers(bytes, damage(bytes, n));
    }
    ck_assert_int_gt(accepted, ROUNDS / 20);
}
END_TEST

CR_CHECK_MAIN("proto/wire_fast") {
    tcase_add_test(tc, calls_are_read_alike);
    tcase_add_test(tc, damaged_calls_are_read_alike);
    tcase_add_test(tc, calls_are_written_alike);
    tcase_add_loop_test(tc, a_call_with_an_output_is_plain, 0, 2);
    tcase_add_test(tc, results_are_written_alike);
    tcase_add_test(tc, results_are_read_alike);
}
