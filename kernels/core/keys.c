/* keys: the checks of a reduction by key. Thread: any; nothing here holds state. */
#include "kernels/core/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_integer(cr_dtype dtype) {
    const cr_kind kind = cr_dtype_kind(dtype);
    return cr_dtype_is_input(dtype) && (kind == CR_KIND_SINT || kind == CR_KIND_UINT);
}

cr_status cr_keys_check(const cr_keys *keys, cr_dtype dtype, cr_error *error) {
    enum { BYTES_LOG2 = 62, CELL_BYTES = 8 };
    const uint64_t state = (uint64_t)1 << CR_KEYS_STATE_LOG2, input = (uint64_t)1 << BYTES_LOG2;
    if (!is_integer(keys->dtype))
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: their type is %s (%d), it must be an integer's, i8 to u64",
                       cr_dtype_name(keys->dtype), (int)keys->dtype);
    if (keys->data == NULL && keys->count != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: data is NULL with a count above 0");
    if (keys->columns == 0) return cr_fail(error, CR_INVALID_ARGUMENT, "keys: columns is 0, a row has at least one");
    if (keys->count > input / cr_dtype_size(dtype) / keys->columns || keys->count > input / cr_dtype_size(keys->dtype))
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: %" PRIu64 " rows of %" PRIu64 " columns are too many",
                       keys->count, keys->columns);
    if (keys->columns > state / CELL_BYTES)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "columns: the state of a group of %" PRIu64 " columns takes more than %" PRIu64
                       " bytes, the limit; reduce some columns at a time",
                       keys->columns, state);
    if (keys->groups > state / CELL_BYTES / keys->columns)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "groups: the states of %" PRIu64 " groups of %" PRIu64 " columns take more than %" PRIu64
                       " bytes, the limit; reduce some groups at a time (drop leaves the others out)",
                       keys->groups, keys->columns, state);
    return CR_OK;
}

cr_status cr_keys_takes(cr_op op, cr_dtype dtype, cr_error *error) {
    if (cr_op_closing(op) == CR_CLOSING_DIGEST)
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s is of all bytes, and there is none by key", cr_op_name(op));
    if (cr_op_closing(op) == CR_CLOSING_PRODUCT && cr_dtype_kind(dtype) == CR_KIND_FLOAT)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "op %s of %s goes by the places of elements, and there is none by key: of integers there is",
                       cr_op_name(op), cr_dtype_name(dtype));
    return CR_OK;
}

uint64_t cr_keys_at(const cr_keys *keys, uint64_t at) {
    const size_t size = cr_dtype_size(keys->dtype);
    const unsigned unused = 64 - 8 * (unsigned)size;
    uint64_t key = 0;
    memcpy(&key, keys->data + at * size, size);
    return cr_dtype_kind(keys->dtype) == CR_KIND_SINT ? (uint64_t)((int64_t)(key << unused) >> unused) : key;
}

/* The greatest of keys of one type, or where the search starts if that is greater. */
#define GREATEST(SYMBOL, type, start)                              \
    case CR_##SYMBOL: {                                            \
        type most = start, key;                                    \
        for (uint64_t i = 0; i < keys->count; i++) {               \
            memcpy(&key, keys->data + i * sizeof key, sizeof key); \
            most = key > most ? key : most;                        \
        }                                                          \
        return (uint64_t)most;                                     \
    }

/* UINT64_MAX, which is −1 there, where all signed keys are negative. */
static uint64_t greatest(const cr_keys *keys) {
    switch (keys->dtype) {
        GREATEST(U8, uint8_t, 0)
        GREATEST(I8, int8_t, -1)
        GREATEST(U16, uint16_t, 0)
        GREATEST(I16, int16_t, -1)
        GREATEST(U32, uint32_t, 0)
        GREATEST(I32, int32_t, -1)
        GREATEST(U64, uint64_t, 0)
        GREATEST(I64, int64_t, -1)
        case CR_BOOL:
        case CR_NO_INT:
            break;
    }
    return 0;
}

uint64_t cr_keys_groups(const cr_keys *keys) {
    const uint64_t most = keys->count != 0 ? greatest(keys) : UINT64_MAX;
    const bool beyond = keys->count != 0 && keys->dtype == CR_U64 && most == UINT64_MAX;
    return beyond ? most : most + 1;
}

cr_status cr_keys_outside(const cr_keys *keys, uint64_t at, uint64_t key, cr_error *error) {
    char text[24];
    snprintf(text, sizeof text, cr_dtype_kind(keys->dtype) == CR_KIND_SINT ? "%" PRId64 : "%" PRIu64, key);
    if (keys->groups == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "keys: number %" PRIu64 " is %s, and there are no groups; drop leaves such elements out", at,
                       text);
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "keys: number %" PRIu64 " is %s, not one of 0 to %" PRIu64 "; drop leaves such elements out", at,
                   text, keys->groups - 1);
}
