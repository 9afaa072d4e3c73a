/* feed_measure: which bytes of an input a request means, and which of those are read. Thread: any; nothing here holds state. */
#include "base/range.h"
#include "engine/feed.h"

typedef unsigned long long ull;

/* Of an input of bytes from *offset on, what lies in some segment. */
static cr_status cut(const cr_feed_options *o, uint64_t element, uint64_t *offset, uint64_t *bytes, cr_error *error) {
    if (o->till > *bytes / element)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: the last is %llu, and the input has %llu elements",
                       (ull)o->till, (ull)(*bytes / element));
    *offset += o->from * element;
    *bytes = (o->till - o->from) * element;
    return CR_OK;
}

cr_status cr_feed_measure(const cr_feed_options *o, cr_dtype dtype, uint64_t size, uint64_t *offset, uint64_t *total,
                          cr_error *error) {
    const cr_source *source = &o->input.sources[0];
    const cr_range_request asked = {.of = source->kept ? "region" : "descriptor",
                                    .dtype = cr_dtype_name(dtype),
                                    .element = cr_dtype_size(dtype),
                                    .offset = source->offset,
                                    .to_end = o->to_end,
                                    .count = o->count,
                                    .expects = o->expects,
                                    .expected = o->expected};
    uint64_t bytes;
    cr_status status = cr_range_measure(&asked, size, &bytes, error);
    if (status != CR_OK) return status;
    if (bytes > o->max_bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT, "input: %llu bytes exceed %s, %llu", (ull)bytes, o->max_option,
                       (ull)o->max_bytes);
    *offset = source->offset;
    *total = bytes;
    return o->is_cut ? cut(o, asked.element, offset, total, error) : CR_OK;
}
