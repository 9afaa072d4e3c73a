/* strided.h: reductions of arrays whose elements lie at strides: views, transposes, columns, Fortran order, big-endian arrays; over all
 * axes, one, or several.
 *
 *     const uint64_t shape[] = {rows, columns};
 *     const int64_t strides[] = {8, 8 * rows};          a matrix of doubles in Fortran order
 *     const cured_strided array = {matrix, 2, shape, strides, 1 << 0, false};
 *     if (cured_reduce_strided(conn, CURED_F64, &op, 1, &array, NULL, &call, &error) != CURED_OK) …
 *
 * Memory is read in the order in which it lies, where the ops allow it. An array without gaps is reduced where it is, as by
 * cured_reduce_buffer(). What has gaps is gathered, 256 KiB at a time, by the thread that processes or waits; no copy of the array is
 * made. The bits are those of a copy in C order. */
#ifndef CURED_STRIDED_H
#define CURED_STRIDED_H

#include "cured/cured.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CURED_STRIDED_MOST_DIMS = 64 };

typedef struct cured_strided {
    const void *data;      /* the element at index 0 of every axis */
    size_t dims;           /* CURED_STRIDED_MOST_DIMS at most; 0: one element */
    const uint64_t *shape; /* elements along each axis; 2^60 in all at most */
    const int64_t *
        strides; /* bytes from an element to the next along each axis, also negative or 0; NULL: C order without gaps */
    uint64_t axes; /* bit i: axis i is reduced. 0, or all of them: the whole array is one answer */
    bool big_endian;
} cured_strided;

/* Reduces the array, which must stay valid and unchanged until the call is done; what the struct points at is copied. Of options (NULL:
 * defaults) all count but axis, which is INVALID_ARGUMENT, as axes are with keys or offsets. Indices, first, layout, mask, keys and offsets
 * take the array in C order; along one axis an index is that along it, along several the index in C order of their elements. With axes
 * there is an answer for each index of the others, in C order (cured_call_array): as many as the product of their lengths. A mask that
 * does not lie in the order of the walk is copied, a byte an element (RESOURCE_EXHAUSTED). The call is tried again as one of a buffer.
 * Errors are otherwise those of cured_reduce_buffer(); INVALID_ARGUMENT also for strides that span more memory than there can be.
 * Thread: the connection's. */
CURED_API cured_status cured_reduce_strided(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                            const cured_strided *array, const cured_options *options, cured_call **call,
                                            cured_error *error);

#ifdef __cplusplus
}
#endif
#endif
