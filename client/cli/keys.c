/* keys: --keys, --groups and --drop: the .npy file with a key for each row, and the shape of the groups' answers.
 *
 * Thread: one. Owner: cli_run has the keys until its call is freed. */
#include "kernels/core/keys.h"
#include "client/cli/cli.h"
#include "client/cli/npy.h"

int cli_keys_read(const cli_options *o, cli_keys *keys) {
    cured_dtype dtype;
    uint64_t count;
    const uint8_t *data;
    const int code = cli_npy_read("keys", o->keys, &keys->file, &dtype, &data, &count);
    if (code != EXIT_OK) return code;
    const cr_kind kind = cr_dtype_kind((cr_dtype)dtype);
    if (kind != CR_KIND_SINT && kind != CR_KIND_UINT)
        return cli_fail(EXIT_DATA, "--keys: %s must have integers, i8 to u64, not %s", o->keys,
                        cured_dtype_name(dtype));
    const cr_keys counted = {.data = data, .count = count, .dtype = (cr_dtype)dtype};
    const uint64_t groups = o->groups_given ? o->groups : cr_keys_groups(&counted);
    keys->keys = (cured_keys){data, count, dtype, groups, 1, o->drop};
    return EXIT_OK;
}

int cli_keys_check(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, uint64_t count,
                   cured_dtype dtype, const cured_op *ops, size_t op_count, cli_layout *layout) {
    const cured_keys *keys = o->call.keys;
    uint64_t columns = 1;
    *layout = (cli_layout){.dims = dims != 0 ? dims : 1, .first = "group"};
    if (dims == 0 && count == CURED_TO_END)
        return cli_fail(EXIT_USAGE, "--keys wants --shape (or --count) for raw bytes from %s", name);
    for (uint32_t i = 1; i < dims; i++) columns *= layout->shape[i] = shape[i]; /* the elements fit 63 bits */
    const uint64_t rows = dims != 0 ? shape[0] : count;
    if (rows != keys->count)
        return cli_fail(EXIT_DATA, "--keys: %s has %llu keys, %s has %llu rows", o->keys,
                        (unsigned long long)keys->count, name, (unsigned long long)rows);
    if (columns == 0) return cli_fail(EXIT_DATA, "--keys: the rows of %s have no elements", name);
    layout->shape[0] = keys->groups;
    layout->axis = (cured_axis){keys->groups, rows, columns};
    return cli_arrays_check(o, dtype, ops, op_count);
}

void cli_place(const cli_options *o, const cli_layout *layout, cured_keys *keys, cured_options *options) {
    options->axis = o->axis_given && !layout->apart ? &layout->axis : NULL;
    options->max_result_bytes = UINT64_MAX; /* asked for by name: what memory there is decides */
    if (o->call.keys == NULL) return;
    *keys = *o->call.keys;
    keys->columns = layout->axis.inner;
    if (options->partial) options->statuses = false; /* those of answers */
    options->keys = keys;
}
