/* by_key: partials by key, merged and finished here, to arrays as those of --keys.
 *
 * Thread: one. Owner: the partials are the caller's. */
#include "cured/by_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "kernels/core/keyed.h"

static int failed(const cured_error *error) {
    return cli_fail(error->code == CURED_RESOURCE_EXHAUSTED ? EXIT_AGAIN : EXIT_DATA, "%s (%s)", error->text,
                    cured_status_name(error->code));
}

/* Room for the answers and statuses of the ops; false: no memory. */
static bool make_room(const cli_options *o, const cured_by_key *of, cli_array *arrays, void **values,
                      uint8_t **statuses) {
    const uint64_t count = of->groups * of->columns;
    for (size_t i = 0; i < o->op_count; i++) {
        arrays[i].dtype = cured_axis_dtype(o->ops[i], of->dtype, o->call.result_dtype);
        arrays[i].count = count;
        values[i] = malloc((size_t)count * cured_dtype_size(arrays[i].dtype) + 1);
        statuses[i] = malloc((size_t)count + 1);
        arrays[i].values = values[i];
        if (values[i] == NULL || statuses[i] == NULL) return false;
    }
    return true;
}

/* Which ops lack answers. */
static void look(const cli_options *o, const cured_by_key *of, cli_array *arrays, uint8_t *const *statuses) {
    const cr_keyed keyed = {(cr_dtype)of->dtype, 0, of->groups, of->columns, of->cells};
    for (size_t i = 0; i < o->op_count; i++) {
        cr_error why;
        const cr_status status =
            cr_keyed_say(&keyed, of->count, (cr_op)o->ops[i], (cr_dtype)o->call.result_dtype, statuses[i], &why);
        if (status == CR_OK) continue;
        arrays[i].statuses = statuses[i];
        arrays[i].why.code = (cured_status)status;
        memcpy(arrays[i].why.text, why.text, strlen(why.text) + 1);
    }
}

/* All files have the ops of the first, or they were not merged. */
static int not_made(const cli_options *o, cured_error *error) {
    char text[sizeof error->text];
    snprintf(text, sizeof text, "%.110s: %.100s", o->files[0], error->text);
    if (error->code == CURED_INVALID_ARGUMENT) memcpy(error->text, text, sizeof text);
    return failed(error);
}

static int put_answers(const cli_options *o, const void *partial, size_t bytes, const cured_by_key *of) {
    const cli_answer answer = {.dtype = of->dtype, .count = of->count};
    const cli_layout layout = {.dims = of->columns == 1 ? 1 : 2, .shape = {of->groups, of->columns}, .first = "group"};
    cli_array arrays[CURED_MAX_OPS] = {{.count = 0}};
    void *values[CURED_MAX_OPS] = {NULL};
    uint8_t *statuses[CURED_MAX_OPS] = {NULL};
    cured_error error;
    int code = o->output != NULL && o->op_count != 1 && strstr(o->output, "{op}") == NULL
                   ? cli_fail(EXIT_USAGE, "--output is '%s', must hold {op} when there are several ops", o->output)
                   : cli_arrays_check(o, of->dtype, o->ops, o->op_count);
    if (code == EXIT_OK && !make_room(o, of, arrays, values, statuses)) code = cli_fail(EXIT_IO, "out of memory");
    if (code == EXIT_OK &&
        cured_by_key_finish(partial, bytes, o->ops, o->op_count, &o->call, values, statuses, &error) != CURED_OK)
        code = not_made(o, &error);
    if (code == EXIT_OK) {
        look(o, of, arrays, statuses);
        code = cli_arrays_put(o, &answer, arrays, o->ops, o->op_count, &layout, true);
    }
    for (size_t i = 0; i < o->op_count; i++) {
        free(values[i]);
        free(statuses[i]);
    }
    return code;
}

int cli_merge_by_key(const cli_options *o, const cured_bytes *partials, size_t count) {
    void *merged;
    size_t bytes;
    cured_by_key of;
    cured_error error;
    if (cured_by_key_merge(partials, count, &merged, &bytes, &error) != CURED_OK) {
        cli_name_partial(o, &error, &error);
        return failed(&error);
    }
    int code = EXIT_OK;
    if (o->call.partial)
        code = cli_put_partial(o, merged, bytes);
    else if (cured_by_key_check(merged, bytes, &of, &error) != CURED_OK)
        code = failed(&error);
    else
        code = put_answers(o, merged, bytes, &of);
    cured_by_key_free(merged);
    return code;
}
