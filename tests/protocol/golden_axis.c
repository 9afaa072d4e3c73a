/* golden_axis: the messages. Thread: the test's. */
#include "tests/protocol/golden_axis.h"

#include <check.h>
#include <string.h>

#include "proto/wire.h"

size_t golden_call_axis_statuses(uint8_t *out) {
    cr_wire_call m = {.kind = CR_CALL_REDUCE};
    m.reduce = (cr_wire_reduce){.dtype = 12,
                                .op_count = 1,
                                .ops = {3},
                                .source = CR_SOURCE_STREAM,
                                .length_known = true,
                                .has_axis = true,
                                .outer = 2,
                                .inner = 1,
                                .statuses = true};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_call_axis_outputs(uint8_t *out) {
    static const cr_wire_output outputs[] = {{.region = 7}, {.region = 8, .offset = 4096}};
    cr_wire_call m = {.kind = CR_CALL_REDUCE};
    m.reduce = (cr_wire_reduce){.dtype = 12,
                                .op_count = 2,
                                .ops = {1, 4},
                                .source = CR_SOURCE_REGION,
                                .region = 9,
                                .has_axis = true,
                                .outer = 2,
                                .n = 1024,
                                .inner = 1};
    return cr_wire_pack_more(&m, &(cr_wire_more){.outputs = outputs}, out, GOLDEN_CAP);
}

size_t golden_call_outputs_again(const uint8_t *in, size_t len, uint8_t *out) {
    cr_wire_call m;
    cr_wire_output outputs[CR_CALL_MAX_OPS];
    cr_error e;
    ck_assert_msg(cr_wire_unpack_call(in, len, &m, &e) == CR_OK, "%s", e.text);
    ck_assert_uint_eq(m.reduce.outputs, 2);
    ck_assert_int_eq(cr_wire_unpack_outputs(in, len, outputs, &e), CR_OK);
    return cr_wire_pack_more(&m, &(cr_wire_more){.outputs = outputs}, out, GOLDEN_CAP);
}

/* The sum of three floats, with something beside them. */
static size_t pack_beside(const cr_wire_beside *beside, uint8_t *out) {
    cr_wire_call m = {.kind = CR_CALL_REDUCE};
    m.reduce = (cr_wire_reduce){
        .dtype = 12, .op_count = 1, .ops = {1}, .source = CR_SOURCE_STREAM, .length_known = true, .length = 12};
    return cr_wire_pack_more(&m, &(cr_wire_more){.beside = beside}, out, GOLDEN_CAP);
}

size_t golden_call_mask(uint8_t *out) {
    static const cr_wire_beside beside[CR_BESIDES] = {
        [CR_BESIDE_MASK] = {.source = CR_SOURCE_STREAM, .count = 3, .bits = true, .first = 3}};
    return pack_beside(beside, out);
}

size_t golden_call_segments(uint8_t *out) {
    static const cr_wire_beside beside[CR_BESIDES] = {
        [CR_BESIDE_SEGMENTS] = {.source = CR_SOURCE_STREAM, .count = 3, .dtype = 7}};
    return pack_beside(beside, out);
}

size_t golden_call_merge_keyed(uint8_t *out) {
    cr_wire_call m = {
        .kind = CR_CALL_MERGE,
        .reduce = {
            .op_count = 1, .ops = {1}, .source = CR_SOURCE_STREAM, .length_known = true, .length = 80, .keyed = true}};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_call_keys(uint8_t *out) {
    static const cr_wire_beside beside[CR_BESIDES] = {
        [CR_BESIDE_KEYS] = {.source = CR_SOURCE_STREAM, .count = 3, .dtype = 2, .groups = 2}};
    return pack_beside(beside, out);
}

size_t golden_call_second(uint8_t *out) {
    static const cr_wire_beside beside[CR_BESIDES] = {[CR_BESIDE_SECOND] = {.source = CR_SOURCE_STREAM, .count = 3}};
    cr_wire_call m = {.kind = CR_CALL_REDUCE};
    m.reduce = (cr_wire_reduce){
        .dtype = 12, .op_count = 1, .ops = {23}, .source = CR_SOURCE_STREAM, .length_known = true, .length = 12};
    return cr_wire_pack_more(&m, &(cr_wire_more){.beside = beside}, out, GOLDEN_CAP);
}

size_t golden_call_beside_again(const uint8_t *in, size_t len, uint8_t *out) {
    cr_wire_call m;
    cr_wire_beside beside[CR_BESIDES];
    cr_error e;
    ck_assert_msg(cr_wire_unpack_call(in, len, &m, &e) == CR_OK, "%s", e.text);
    ck_assert_int_eq(cr_wire_unpack_besides(CR_FORM_CALL, in, len, beside, &e), CR_OK);
    if (m.reduce.has_mask) ck_assert_uint_eq(cr_wire_beside_bytes(&beside[CR_BESIDE_MASK]), 1);
    return cr_wire_pack_more(&m, &(cr_wire_more){.beside = beside}, out, GOLDEN_CAP);
}

size_t golden_call_parameters(uint8_t *out) {
    static const cr_wire_parameter parameters[2] = {{true, 0.25, 0}, {true, 1, 1}};
    cr_wire_call m = {.kind = CR_CALL_REDUCE};
    m.reduce = (cr_wire_reduce){
        .dtype = 12, .op_count = 2, .ops = {22, 22}, .source = CR_SOURCE_STREAM, .length_known = true, .length = 12};
    return cr_wire_pack_more(&m, &(cr_wire_more){.parameters = parameters}, out, GOLDEN_CAP);
}

size_t golden_call_parameters_again(const uint8_t *in, size_t len, uint8_t *out) {
    cr_wire_call m;
    cr_wire_parameter parameters[CR_CALL_MAX_OPS];
    cr_error e;
    ck_assert_msg(cr_wire_unpack_call(in, len, &m, &e) == CR_OK, "%s", e.text);
    ck_assert_uint_eq(m.reduce.parameters, 2);
    ck_assert_int_eq(cr_wire_unpack_parameters(CR_FORM_CALL, in, len, parameters, &e), CR_OK);
    return cr_wire_pack_more(&m, &(cr_wire_more){.parameters = parameters}, out, GOLDEN_CAP);
}

size_t golden_call_layout(uint8_t *out) {
    static const cr_wire_layout layout = {2, {3, 4}, {0, 1}, {3, 1}};
    cr_wire_call m = {.kind = CR_CALL_REDUCE};
    m.reduce = (cr_wire_reduce){.dtype = 12,
                                .op_count = 2,
                                .ops = {25, 6},
                                .source = CR_SOURCE_STREAM,
                                .length_known = true,
                                .length = 12,
                                .want_partial = true};
    return cr_wire_pack_more(&m, &(cr_wire_more){.layout = &layout}, out, GOLDEN_CAP);
}

size_t golden_call_layout_again(const uint8_t *in, size_t len, uint8_t *out) {
    cr_wire_call m;
    cr_wire_layout layout;
    cr_error e;
    ck_assert_msg(cr_wire_unpack_call(in, len, &m, &e) == CR_OK, "%s", e.text);
    ck_assert(m.reduce.has_layout);
    ck_assert_int_eq(cr_wire_unpack_layout(CR_FORM_CALL, in, len, &layout, &e), CR_OK);
    ck_assert_uint_eq(layout.axes, 2);
    return cr_wire_pack_more(&m, &(cr_wire_more){.layout = &layout}, out, GOLDEN_CAP);
}

size_t golden_floats(uint8_t *out) {
    static const uint8_t bytes[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40};
    memcpy(out, bytes, sizeof bytes);
    return sizeof bytes;
}

size_t golden_masked_floats(uint8_t *out) {
    out[0] = 0x28;
    return 1 + golden_floats(out + 1);
}

size_t golden_cut_floats(uint8_t *out) {
    static const uint8_t borders[12] = {[4] = 1, [8] = 3};
    memcpy(out, borders, sizeof borders);
    return sizeof borders + golden_floats(out + sizeof borders);
}

size_t golden_grouped_floats(uint8_t *out) {
    static const uint8_t keys[3] = {1, 0, 1};
    memcpy(out, keys, sizeof keys);
    return sizeof keys + golden_floats(out + sizeof keys);
}

size_t golden_paired_floats(uint8_t *out) {
    static const uint8_t second[12] = {[2] = 0x80, [3] = 0x3f, [6] = 0x80, [7] = 0xbf};
    const size_t n = golden_floats(out);
    memcpy(out + n, second, sizeof second);
    return n + sizeof second;
}

size_t golden_result_written(uint8_t *out) {
    static const cr_wire_result m = {
        .count = 2048, .written = 24, .result_count = 2, .results = {{.op = 1, .dtype = 13}, {.op = 4, .dtype = 12}}};
    return cr_wire_pack_result(&m, out, GOLDEN_CAP);
}

static size_t pack_part(const cr_wire_part *m, uint8_t *out) {
    size_t n = cr_wire_pack_part_head(m, out, GOLDEN_CAP);
    memcpy(out + n, m->values, m->values_len);
    return n + m->values_len;
}

size_t golden_part(uint8_t *out) {
    static const uint8_t values[16] = {2};
    return pack_part(&(cr_wire_part){.op = 1, .first = 5, .values = values, .values_len = sizeof values}, out);
}

size_t golden_part_statuses(uint8_t *out) {
    static const uint8_t values[8] = {[6] = 0x80, 0x3f}, statuses[2] = {CR_INVALID_ARGUMENT, CR_OK};
    const cr_wire_part m = {.first = 5,
                            .values = values,
                            .values_len = sizeof values,
                            .statuses = statuses,
                            .statuses_len = sizeof statuses};
    return pack_part(&m, out);
}

size_t golden_part_again(const uint8_t *in, size_t len, uint8_t *out) {
    cr_wire_part m;
    cr_error e;
    ck_assert_msg(cr_wire_unpack_part(in, len, &m, &e) == CR_OK, "%s", e.text);
    ck_assert_ptr_eq(m.values + m.values_len, in + len); /* where they were, not a copy */
    return pack_part(&m, out);
}
