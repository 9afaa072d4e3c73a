/* offsets: checks, and copies of some. Thread: any; nothing here holds state. */
#include "kernels/core/offsets.h"

#include <inttypes.h>

static const uint64_t MOST = (uint64_t)1 << 58; /* answers of 16 bytes each fit 2^62, as along an axis */

cr_status cr_offsets_make(cr_offsets *offsets, const void *data, uint64_t count, cr_dtype dtype, cr_error *error) {
    if (dtype != CR_I32 && dtype != CR_I64 && dtype != CR_U32 && dtype != CR_U64)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: their dtype is %s, must be i32, i64, u32 or u64",
                       cr_dtype_name(dtype));
    if (count == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "offsets: there are none; n segments have n + 1 of them, so at least 1");
    if (count > MOST) return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: %" PRIu64 " of them, limit is 2^58", count);
    if (!data) return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: data is NULL with a count above 0");
    *offsets = (cr_offsets){data, count - 1, dtype};
    return CR_OK;
}

/* What is wrong with border i, whose value was x and which comes after one of `before`. */
static cr_status wrong(const cr_offsets *offsets, uint64_t i, uint64_t x, uint64_t before, uint64_t low, uint64_t high,
                       cr_error *error) {
    const bool is_signed = offsets->dtype == CR_I32 || offsets->dtype == CR_I64;
    if (is_signed && (int64_t)x < 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets[%" PRIu64 "] is %" PRId64 ", must not be negative", i,
                       (int64_t)x);
    if (x < before)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "offsets[%" PRIu64 "] is %" PRIu64 ", below the %" PRIu64 " before it", i, x, before);
    if (x < low)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "offsets[%" PRIu64 "] is %" PRIu64 ": the offsets changed while they were read", i, x);
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "offsets[%" PRIu64 "] is %" PRIu64 ", beyond element %" PRIu64 ", where the input ends", i, x, high);
}

/* Reads borders [from, till], each once, to `to` unless that is NULL. Whether none is wrong: as long as none was, each is at most `most`,
 * which is below 2^63, so the first that is shows in the highest bit of a difference. */
static inline bool read_some(const cr_offsets *offsets, uint64_t from, uint64_t till, uint64_t most, uint64_t *to) {
    uint64_t before = cr_offsets_at(offsets, from), falls = before, beyond = most - before;
    if (to) to[0] = before;
    for (uint64_t i = from + 1; i <= till; i++) {
        const uint64_t x = cr_offsets_at(offsets, i);
        if (to) to[i - from] = x;
        falls |= x - before;
        beyond |= most - x;
        before = x;
    }
    return !((falls | beyond) >> 63);
}

cr_status cr_offsets_take(const cr_offsets *offsets, uint64_t first, uint64_t count, uint64_t low, uint64_t high,
                          uint64_t *to, cr_error *error) {
    if (read_some(offsets, first, first + count, high, to) && to[0] >= low) return CR_OK;
    for (uint64_t i = 0, before = low; i <= count; before = to[i++]) {
        if (to[i] < before || to[i] > high) return wrong(offsets, first + i, to[i], i ? before : 0, low, high, error);
    }
    return CR_OK;
}

cr_status cr_offsets_check_some(const cr_offsets *offsets, uint64_t first, uint64_t last, uint64_t elements,
                                cr_error *error) {
    enum { SOME = 512 };
    uint64_t taken[SOME + 1];
    const uint64_t most = elements < INT64_MAX ? elements : INT64_MAX, from = first ? first - 1 : 0;
    cr_status status = CR_OK;
    for (uint64_t at = from, now; status == CR_OK && (at == from || at < last); at += now) {
        now = last - at < SOME ? last - at : SOME;
        if (!read_some(offsets, at, at + now, most, NULL))
            status = cr_offsets_take(offsets, at, now, 0, most, taken, error); /* which names the first */
        if (now == 0) break;
    }
    return status;
}

cr_status cr_offsets_check(const cr_offsets *offsets, uint64_t elements, cr_error *error) {
    return cr_offsets_check_some(offsets, 0, offsets->count, elements, error);
}

uint64_t cr_offsets_find(const cr_offsets *offsets, uint64_t element) {
    uint64_t low = 0, high = offsets->count + 1;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (cr_offsets_at(offsets, middle) < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
