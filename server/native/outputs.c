/* outputs: see outputs.h. Thread: the loop's. Owner: the call. */
#include "server/native/outputs.h"

#include "base/range.h"
#include "engine/sink_region.h"
#include "server/native/regions.h"

typedef unsigned long long ull;

/* The same bytes by their address, if they are a GPU's: regions of several numbers may share some. No two GPUs share an address. */
static cr_range_place by_address(const cr_range_place *range) {
    static const char gpus;
    const cr_kept *kept = range->of;
    const bool inside = range->offset <= range->size && range->bytes <= range->size - range->offset;
    if (!kept || !kept->on_device || !inside) return (cr_range_place){.of = NULL};
    return (cr_range_place){&gpus, kept->device.address + range->offset, range->bytes, UINT64_MAX};
}

/* Of ranges that lie in their regions: whether those of a GPU lie as it writes, and meet nothing else there. */
static cr_status check_on_device(const cr_range_place *ranges, const uint64_t *widths, uint32_t count,
                                 const cr_range_place *input, cr_error *error) {
    cr_range_place places[CR_CALL_MAX_OPS];
    for (uint32_t i = 0; i < count; i++) {
        places[i] = by_address(&ranges[i]);
        const uint64_t word = widths[i] & -widths[i]; /* of a digest's three words one */
        if (places[i].offset % word)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "outputs[%u]: in a GPU's memory answers of %llu bytes begin at a multiple of %llu", i,
                           (ull)widths[i], (ull)word);
    }
    const cr_range_place read = by_address(input);
    return cr_range_outputs(places, count, &read, error);
}

cr_status cr_outputs_open(cr_stream *stream, const uint8_t *payload, size_t bytes, cr_error *error) {
    const cr_wire_reduce *r = &cr_call_request(stream->call)->reduce;
    const uint64_t answers = cr_call_answers(stream->call), element = cr_dtype_size((cr_dtype)r->dtype);
    const cr_finish_opts finish = {.result_dtype = (cr_dtype)r->result_dtype};
    cr_wire_output outputs[CR_CALL_MAX_OPS];
    cr_range_place ranges[CR_CALL_MAX_OPS], input = {.offset = r->offset};
    cr_sink_place places[CR_CALL_MAX_OPS];
    uint64_t widths[CR_CALL_MAX_OPS];
    if (cr_wire_unpack_outputs(payload, bytes, outputs, error) != CR_OK) return error->code;
    for (uint32_t i = 0; i < r->op_count; i++) {
        widths[i] = cr_dtype_size(cr_axis_dtype((cr_op)r->ops[i], (cr_dtype)r->dtype, &finish));
        cr_kept *kept = cr_regions_find(stream->conn, outputs[i].region);
        if (!kept)
            return cr_fail(error, CR_NOT_FOUND,
                           "outputs[%u]: region %llu is not registered on this connection, or its registration was not "
                           "answered yet",
                           i, (ull)outputs[i].region);
        places[i] = (cr_sink_place){kept, outputs[i].offset, answers * widths[i]}; /* max_answer_bytes */
        ranges[i] = (cr_range_place){kept, places[i].offset, places[i].bytes, kept->region.size};
    }
    cr_kept *read = r->source == CR_SOURCE_REGION ? cr_regions_find(stream->conn, r->region) : NULL;
    input.of = read;
    if (read) input.size = read->region.size;
    input.bytes = input.size - (input.offset < input.size ? input.offset : input.size);
    if (r->length_known && r->length < input.bytes / element) input.bytes = r->length * element;
    if (cr_range_outputs(ranges, r->op_count, &input, error) != CR_OK) return error->code;
    if (check_on_device(ranges, widths, r->op_count, &input, error) != CR_OK) return error->code;
    cr_sink *sink = cr_sink_region_new(places, r->op_count, error);
    if (!sink) return error->code;
    cr_call_sink(stream->call, sink);
    return CR_OK;
}
