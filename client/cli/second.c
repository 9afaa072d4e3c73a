/* second: --second: the second array of ops of two: a .npy file, or raw elements of the input's type.
 *
 * Thread: one. Owner: cli_run has the array until its call is freed. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/npy.h"
#include "kernels/core/op.h"

bool cli_goes_by_pairs(const cli_options *o) {
    for (size_t i = 0; i < o->op_count; i++)
        if (cr_op_inputs((cr_op)o->ops[i]) == 2) return true;
    return false;
}

int cli_second_read(const char *path, cli_second *second) {
    npy_header h = {.dims = 0};
    int code;
    *second = (cli_second){.path = path};
    second->file = cli_read_all(path, &second->bytes, &code);
    if (code != EXIT_OK || !npy_is(second->file, second->bytes)) return code;
    code = cli_npy_take("second", "", path, second->file, second->bytes, &h);
    if (code != EXIT_OK) return code;
    second->of = (cured_second){second->file + h.data_offset, h.count, h.dtype};
    second->untyped = h.dtype == CURED_DTYPE_DEFAULT ? h.size : 0;
    second->dims = h.dims;
    second->fortran = h.fortran_order && h.dims > 1;
    memcpy(second->shape, h.shape, h.dims * sizeof h.shape[0]);
    return EXIT_OK;
}

/* Elements that NumPy has no type for are of the first array's type, where they can be. */
static int take_type(cli_second *second, const char *name, cured_dtype dtype) {
    if (second->untyped == 0) return EXIT_OK;
    second->of.dtype = second->untyped == 2 ? CURED_BF16 : CURED_F8_E4M3;
    if (second->of.dtype == dtype) return EXIT_OK;
    return cli_fail(EXIT_DATA, "--second: %s holds raw elements (dtype 'V%u', as %s is written), and %s holds %s",
                    second->path, second->untyped, cured_dtype_name(second->of.dtype), name, cured_dtype_name(dtype));
}

/* Weights along one axis, or by key of the rows, in the place of one for each element. */
static int spread(const cli_options *o, cli_second *second, uint32_t dims, const uint64_t *shape, size_t size,
                  uint64_t count) {
    uint64_t inner = 1;
    for (size_t i = 0; i < o->op_count; i++)
        if (cr_op_term((cr_op)o->ops[i]) != CR_TERM_WEIGHTED) return EXIT_OK;
    const bool along = o->axis_given && o->axis_count == 1;
    if (second->dims > 1 || dims == 0 || (!along && o->keys == NULL)) return EXIT_OK;
    const int64_t axis = along ? o->axes[0] + (o->axes[0] < 0 ? dims : 0) : 0;
    if (axis < 0 || axis >= dims || shape[axis] != second->of.count || count > SIZE_MAX / size) return EXIT_OK;
    for (uint32_t i = (uint32_t)axis + 1; i < dims; i++) inner *= shape[i];
    uint8_t *all = malloc((size_t)count * size + 1);
    if (all == NULL) return cli_fail(EXIT_IO, "out of memory");
    for (uint64_t i = 0; i < count; i++)
        memcpy(all + i * size, (const uint8_t *)second->of.data + i / inner % shape[axis] * size, size);
    free(second->file);
    second->file = all;
    second->of.data = all;
    second->of.count = count;
    second->dims = 0;
    return EXIT_OK;
}

static int check_second(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                        cured_dtype dtype, uint64_t count) {
    cli_second *second = o->second_array;
    const size_t size = cured_dtype_size(dtype);
    if (second == NULL) return EXIT_OK;
    if (shape == NULL) dims = 0;
    if (second->fortran || fortran)
        return cli_fail(EXIT_DATA,
                        "--second wants C order, and %s is in Fortran order: numpy.ascontiguousarray turns it",
                        second->fortran ? second->path : name);
    if (second->of.data == NULL) { /* raw */
        if (second->bytes % size != 0)
            return cli_fail(EXIT_DATA, "--second: %s has %zu bytes, which are no whole elements of %s", second->path,
                            second->bytes, cured_dtype_name(dtype));
        second->of = (cured_second){second->file, second->bytes / size, dtype};
    }
    int code = take_type(second, name, dtype);
    if (code == EXIT_OK && second->of.count != count && second->of.dtype == dtype)
        code = spread(o, second, dims, shape, size, count);
    if (code != EXIT_OK || second->dims == 0 || dims == 0)
        return code;                               /* raw bytes have no shape: the counts are compared later */
    if (second->of.count != count) return EXIT_OK; /* which the call says, with both counts */
    if (second->dims != dims || memcmp(second->shape, shape, dims * sizeof second->shape[0]) != 0)
        return cli_fail(EXIT_DATA, "--second: the shape of %s is not that of %s", second->path, name);
    return EXIT_OK;
}

int cli_beside_check(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                     cured_dtype dtype, uint64_t count) {
    const int code = cli_where_check(o, name, dims, shape, fortran, count);
    return code == EXIT_OK ? check_second(o, name, dims, shape, fortran, dtype, count) : code;
}

uint64_t cli_beside_count(const cli_options *o) {
    if (o->second_array != NULL) return o->second_array->of.count;
    return o->mask != NULL ? o->mask->mask.count : CURED_TO_END;
}
