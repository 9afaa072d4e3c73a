/* keyed: see keyed.h. Thread, owner: see there. */
#include "client/lib/call/keyed.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/core/keyed.h"
#include "kernels/core/op.h"

bool cr_cl_keyed_asks(const cured_call *call) {
    return call->geometry == CR_GEOMETRY_KEYS && call->request.reduce.want_partial && call->calls->local == NULL;
}

bool cr_cl_keyed_merges(const cured_call *call) {
    return call->request.kind == CR_CALL_MERGE && call->request.reduce.keyed;
}

/* The head of a merge's first partial. */
static cr_status head_of(const cured_call *call, cr_keyed_reader *r, cr_error *error) {
    const uint8_t *at = call->data;
    const cr_keyed_bytes first = cr_cl_record_next(&at);
    return cr_keyed_open(r, first.data, first.length, error);
}

/* The cells of all records that are by key: the daemon says what is wrong with others. */
static uint64_t cells_of(const cured_call *call) {
    uint64_t cells = 0;
    for (const uint8_t *at = call->data; at < call->data + call->data_bytes;) {
        const cr_keyed_bytes record = cr_cl_record_next(&at);
        cr_keyed_reader r;
        cr_error ignored;
        if (cr_keyed_open(&r, record.data, record.length, &ignored) == CR_OK) cells += r.of.cells;
    }
    return cells;
}

static bool is_keyed(const cured_call *call) {
    const uint8_t *at = call->data;
    if (call->data_bytes == 0) return false;
    const cr_keyed_bytes first = cr_cl_record_next(&at);
    return cr_keyed_is(first.data, first.length);
}

cr_status cr_cl_keyed_merge(cured_call *call, const cured_options *o, cr_error *error) {
    cr_keyed_reader r;
    if (!is_keyed(call)) return CR_OK;
    cr_status status = head_of(call, &r, error);
    if (status != CR_OK) return status;
    call->request.reduce.keyed = true;
    call->geometry = CR_GEOMETRY_KEYS;
    call->keys = (cr_keys){.groups = r.of.groups, .columns = r.of.columns};
    call->elements = cells_of(call);
    call->answers = cr_keys_answers(&call->keys);
    call->input_dtype = (uint8_t)r.of.dtype;
    call->request.reduce.dtype = (uint32_t)r.of.dtype; /* of which the answers are; it is not sent */
    status = cr_cl_array_check(call, o, error);
    if (status == CR_OK && !o->partial) status = cr_cl_array_make(call, o, error);
    return status;
}

uint64_t cr_cl_keyed_most(const cured_call *call) {
    cr_keyed_reader r;
    cr_error ignored;
    if (cr_cl_keyed_merges(call))
        return head_of(call, &r, &ignored) == CR_OK ? cr_keyed_most(&r.of, call->elements) : 0;
    cr_keyed of = {(cr_dtype)call->input_dtype, 0, call->keys.groups, call->keys.columns, 0};
    for (uint32_t i = 0; i < call->value_count; i++) of.families |= cr_op_needs((cr_op)call->values[i].op, of.dtype);
    return cr_keyed_most(&of, call->elements);
}

void cr_cl_keyed_reset(cured_call *call) {
    if (!cr_cl_keyed_asks(call)) return;
    free(call->partial);
    call->partial = NULL;
    call->partial_bytes = call->partial_room = 0;
}

const char *cr_cl_keyed_take(cured_call *call, const cr_wire_part *part) {
    const uint64_t most = cr_cl_keyed_most(call);
    if (part->op != 0 || part->statuses_len != 0) return "it is of no partial";
    if (part->first != call->partial_bytes) return "it does not follow the last one";
    if (part->values_len > most - call->partial_bytes) return "the partial is longer than so many elements make it";
    if (part->values_len == 0) return NULL;
    const size_t length = call->partial_bytes + part->values_len;
    if (length > call->partial_room) { /* memory goes by what came, and not by what may come */
        const size_t twice = call->partial_room <= most / 2 ? 2 * call->partial_room : (size_t)most;
        const size_t room = twice > length ? twice : length;
        uint8_t *more = realloc(call->partial, room);
        if (more == NULL) {
            cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the partial");
            return NULL;
        }
        call->partial = more;
        call->partial_room = room;
    }
    memcpy(call->partial + call->partial_bytes, part->values, part->values_len);
    call->partial_bytes = length;
    return NULL;
}

const char *cr_cl_keyed_check_end(const cured_call *call, const cr_wire_result *result) {
    cr_keyed_reader r;
    cr_error ignored;
    if (result->result_count != 0 || result->written != 0 || result->partial != NULL)
        return "it has answers, and a partial by key was asked for";
    if (call->partial == NULL || cr_keyed_open(&r, call->partial, call->partial_bytes, &ignored) != CR_OK)
        return "the parts are no partial by key";
    const bool same = r.of.dtype == (cr_dtype)call->input_dtype && r.of.groups == call->keys.groups &&
                      r.of.columns == call->keys.columns;
    return same ? NULL : "the partial is of other elements or groups than asked for";
}
