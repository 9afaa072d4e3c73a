/* range: the checks. Thread: any; nothing here holds state. */
#include "base/range.h"

cr_status cr_range_check(uint64_t offset, uint64_t bytes, uint64_t size, cr_error *error) {
    if (offset > size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offset: %llu is beyond the end of the input at %llu",
                       (unsigned long long)offset, (unsigned long long)size);
    if (bytes > size - offset)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "count: %llu bytes from offset %llu end beyond the input's %llu bytes",
                       (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)size);
    return CR_OK;
}

cr_status cr_range_measure(const cr_range_request *asked, uint64_t size, uint64_t *bytes, cr_error *error) {
    typedef unsigned long long ull;
    uint64_t element = asked->element;
    cr_status status = cr_range_check(asked->offset, 0, size, error);
    if (status != CR_OK) return status;
    if (asked->to_end) {
        *bytes = size - asked->offset;
        if (*bytes % element)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "%s: %llu bytes after the offset are not a multiple of %llu, the size of %s", asked->of,
                           (ull)*bytes, (ull)element, asked->dtype);
    } else {
        if (asked->count > UINT64_MAX / element)
            return cr_fail(error, CR_INVALID_ARGUMENT, "count: %llu elements of %llu bytes exceed 2^64 bytes",
                           (ull)asked->count, (ull)element);
        *bytes = asked->count * element;
        status = cr_range_check(asked->offset, *bytes, size, error);
        if (status != CR_OK) return status;
    }
    if (!asked->expects || *bytes / element == asked->expected) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %llu elements, the input %llu", asked->expects,
                   (ull)asked->expected, (ull)(*bytes / element));
}

/* Both lie within their regions. */
static bool meet(const cr_range_place *a, const cr_range_place *b) {
    return a->of && a->of == b->of && a->bytes && b->bytes && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

cr_status cr_range_outputs(const cr_range_place *outputs, uint32_t count, const cr_range_place *input,
                           cr_error *error) {
    cr_range_place read = *input;
    if (read.offset > read.size || read.bytes > read.size - read.offset) read.of = NULL; /* refused elsewhere */
    for (uint32_t i = 0; i < count; i++) {
        const cr_range_place *place = &outputs[i];
        if (place->offset > place->size || place->bytes > place->size - place->offset)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "outputs[%u]: %llu bytes of answers from byte %llu on go beyond its region of %llu bytes", i,
                           (unsigned long long)place->bytes, (unsigned long long)place->offset,
                           (unsigned long long)place->size);
        for (uint32_t k = 0; k < i; k++)
            if (meet(place, &outputs[k]))
                return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u]: its bytes are those of outputs[%u], too", i,
                               k);
        if (meet(place, &read))
            return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u]: its bytes are those of the input, too", i);
    }
    return CR_OK;
}
