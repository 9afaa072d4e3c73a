/* outputs: see outputs.h. Thread: the loop's. Owner: the call. */
#include "server/native/outputs.h"

#include "server/engine/sink_region.h"
#include "server/native/regions.h"

typedef unsigned long long ull;

/* A call may not read what it writes: which of both comes first is not told. Other calls may, and find either state. */
static cr_status check_input(const cr_wire_reduce *r, const cr_wire_output *output, uint64_t bytes, uint32_t index,
                             cr_error *error) {
    const uint64_t input = r->outer * r->n * r->inner * cr_dtype_size((cr_dtype)r->dtype); /* its shape is checked */
    if (r->source != CR_SOURCE_REGION || r->region != output->region || !input || !bytes) return CR_OK;
    const uint64_t apart = output->offset > r->offset ? output->offset - r->offset : r->offset - output->offset;
    if (apart >= (output->offset > r->offset ? input : bytes)) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u]: its bytes are those of the input, too", index);
}

cr_status cr_outputs_open(cr_stream *stream, const uint8_t *payload, size_t bytes, cr_error *error) {
    const cr_wire_reduce *r = &cr_call_asked(stream->call)->reduce;
    const cr_finish_opts finish = {.result_dtype = (cr_dtype)r->result_dtype};
    const uint64_t answers = r->outer * r->inner;
    cr_wire_output outputs[CR_CALL_MAX_OPS];
    cr_sink_place places[CR_CALL_MAX_OPS];
    cr_status status = cr_wire_unpack_outputs(payload, bytes, outputs, error);
    for (uint32_t i = 0; status == CR_OK && i < r->op_count; i++) {
        const uint64_t width = cr_dtype_size(cr_axis_dtype((cr_op)r->ops[i], (cr_dtype)r->dtype, &finish));
        places[i] = (cr_sink_place){cr_regions_find(stream->conn, outputs[i].region), outputs[i].offset,
                                    answers * width}; /* checked: max_answer_bytes */
        if (!places[i].kept)
            status = cr_fail(error, CR_NOT_FOUND,
                             "outputs[%u]: region %llu is not registered on this connection, or its registration was "
                             "not answered yet",
                             i, (ull)outputs[i].region);
        else
            status = check_input(r, &outputs[i], places[i].bytes, i, error);
    }
    cr_sink *sink = status == CR_OK ? cr_sink_region_new(places, r->op_count, error) : NULL;
    if (!sink) return error->code;
    cr_call_sink(stream->call, sink);
    return CR_OK;
}
