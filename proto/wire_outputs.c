/* wire_outputs: where the answers along an axis are written, in a CALL, between protobuf and plain structs.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include "proto/wire.h"
#include "proto/wire_internal.h"

cr_status cr_wire_outputs_in(const Cured__V1__ReduceRequest *p, cr_wire_reduce *m, cr_wire_output *outputs,
                             cr_error *error) {
    uint64_t seen = 0;
    m->outputs = (uint32_t)p->n_outputs; /* a message of so many bytes has fewer than 2^32 */
    if (p->n_outputs == 0) return CR_OK;
    if (p->n_outputs != m->op_count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs has %zu entries, must have none, or one for each of %u ops",
                       p->n_outputs, m->op_count);
    for (uint32_t i = 0; i < m->outputs; i++) {
        const Cured__V1__Output *from = p->outputs[i];
        if (from->op >= m->op_count)
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].op is %u, there are %u ops", i, from->op,
                           m->op_count);
        if (seen >> from->op & 1)
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].op is %u, which came before", i, from->op);
        if (from->region == 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u].region is 0, no region's number", i);
        seen |= UINT64_C(1) << from->op;
        if (outputs != NULL) outputs[from->op] = (cr_wire_output){from->region, from->offset};
    }
    return CR_OK;
}

size_t cr_wire_pack_outputs(const cr_wire_call *m, const cr_wire_output *outputs, uint8_t *out, size_t cap) {
    Cured__V1__Output each[CR_CALL_MAX_OPS], *list[CR_CALL_MAX_OPS];
    const uint32_t count = m->reduce.op_count < CR_CALL_MAX_OPS ? m->reduce.op_count : CR_CALL_MAX_OPS;
    const size_t plain = cr_wire_write_plain_call(m, outputs, out, cap);
    if (plain != 0) return plain;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = &each[i];
        cured__v1__output__init(&each[i]);
        each[i].op = i;
        each[i].region = outputs[i].region;
        each[i].offset = outputs[i].offset;
    }
    return cr_wire_emit_reduce(m, NULL, list, out, cap);
}

static cr_status unpack_any(const uint8_t *in, size_t len, cr_wire_output outputs[CR_CALL_MAX_OPS], cr_error *error) {
    cr_wire_scratch scratch;
    cr_wire_reduce counted;
    const Cured__V1__Call *p = cr_wire_parse(&scratch, &cured__v1__call__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    if (p->request_case != CURED__V1__CALL__REQUEST_REDUCE || p->reduce->n_ops > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INTERNAL, "the call has no outputs");
    counted.op_count = (uint32_t)p->reduce->n_ops;
    return cr_wire_outputs_in(p->reduce, &counted, outputs, error);
}

cr_status cr_wire_unpack_outputs(const uint8_t *in, size_t len, cr_wire_output outputs[CR_CALL_MAX_OPS],
                                 cr_error *error) {
    return cr_wire_read_plain_outputs(in, len, outputs) ? CR_OK : unpack_any(in, len, outputs, error);
}
