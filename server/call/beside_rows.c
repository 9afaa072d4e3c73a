/* beside_rows: what is checked of each kind of what may be beside an array. Thread: the loop's; look runs on files threads, too. Owner:
 * the call. */
#include "kernels/core/keys.h"
#include "kernels/core/offsets.h"
#include "server/call/beside.h"
#include "server/call/call.h"
#include "server/call/ranked.h"

typedef unsigned long long ull;

static cr_status check_mask(const cr_call *call, cr_wire_beside *asked, cr_error *error) {
    if (asked->count <= (uint64_t)INT64_MAX / cr_dtype_size(call->dtype)) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "mask: it has %llu elements, more than any input", (ull)asked->count);
}

static uint64_t each_element(const cr_wire_beside *asked) { return asked->count; }

static cr_status check_segments(const cr_call *call, cr_wire_beside *asked, cr_error *error) {
    cr_offsets offsets;
    if (call->request.reduce.has_axis)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: they go with no axis; leave out one of them");
    asked->element = (uint32_t)cr_dtype_size((cr_dtype)asked->dtype);
    return cr_offsets_make(&offsets, "", asked->count, (cr_dtype)asked->dtype, error);
}

/* One worker answers each segment. Borders first … last were checked. */
static cr_status check_longest(const cr_beside *b, const cr_offsets *offsets, uint64_t first, uint64_t last,
                               cr_error *error) {
    for (uint64_t i = first ? first : 1; b->longest != UINT64_MAX && i <= last; i++) {
        const uint64_t begin = cr_offsets_at(offsets, i - 1), end = cr_offsets_at(offsets, i);
        if (end > begin && end - begin > b->longest)
            return cr_fail(
                error, CR_INVALID_ARGUMENT,
                "offsets: medians and quantiles need all of a segment at once, of %llu elements of this type "
                "at most, and segment %llu has %llu: a connection to \"embedded:\" answers them of memory, "
                "in this process",
                (ull)b->longest, (ull)(i - 1), (ull)(end - begin));
    }
    return CR_OK;
}

/* They are checked as they come, because all of them at once would take the loop too long. */
static cr_status look_at_segments(const cr_beside *b, uint64_t from, uint64_t till, cr_error *error) {
    const cr_offsets offsets = {b->extra->data, b->asked.count - 1, (cr_dtype)b->asked.dtype};
    const uint64_t first = from / b->asked.element, end = till / b->asked.element;
    if (end <= first) return CR_OK;
    const cr_status status = cr_offsets_check_some(&offsets, first, end - 1, b->elements, error);
    return status == CR_OK ? check_longest(b, &offsets, first, end - 1, error) : status;
}

static cr_status check_keys(const cr_call *call, cr_wire_beside *asked, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (r->has_axis || r->has_segments)
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: they go with no axis and no offsets; leave out one of them");
    if (!asked->columns) asked->columns = 1;
    const cr_keys keys = {(const uint8_t *)"", asked->count,           asked->groups,
                          asked->columns,      (cr_dtype)asked->dtype, asked->drop};
    const cr_status status = cr_keys_check(&keys, call->dtype, error);
    if (status != CR_OK) return status;
    asked->element = (uint32_t)cr_dtype_size(keys.dtype);
    const uint64_t most = cr_ranked_longest(call), elements = cr_keys_elements(&keys);
    if (elements <= most) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "keys: medians and quantiles need all of an array at once, of %llu elements of this type at most, "
                   "and this one has %llu: a connection to \"embedded:\" answers them of memory, in this process",
                   (ull)most, (ull)elements);
}

static uint64_t of_rows(const cr_wire_beside *asked) { return asked->count * asked->columns; }

/* One in DATA and the other not could only be read as a whole each. */
static cr_status check_second(const cr_call *call, cr_wire_beside *asked, cr_error *error) {
    const uint32_t size = (uint32_t)cr_dtype_size(call->dtype);
    if (asked->count > (uint64_t)INT64_MAX / size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: it has %llu elements, more than any input",
                       (ull)asked->count);
    asked->element = size;
    if (call->request.reduce.source != CR_SOURCE_STREAM || asked->source == CR_SOURCE_STREAM) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "second: the input comes in DATA, so its second array comes there, too; set stream");
}

const cr_beside_row cr_beside_rows[CR_BESIDES] = {
    [CR_BESIDE_MASK] = {.check = check_mask, .elements = each_element, .expects = "mask: it"},
    [CR_BESIDE_SEGMENTS] = {.check = check_segments, .look = look_at_segments},
    [CR_BESIDE_SECOND] = {.check = check_second, .elements = each_element, .expects = "second: it"},
    [CR_BESIDE_KEYS] = {.check = check_keys, .elements = of_rows, .expects = "keys: the input of their rows"},
};
