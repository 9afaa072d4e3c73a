/* arrays: the answers of --axis as .npy files, as text, or as JSON.
 *
 * Text and JSON go in C order of the indices, whatever the order in memory is; .npy keeps the memory's order.
 *
 * Thread: one. Owner: the arrays are the caller's. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/npy.h"
#include "client/cli/table.h"

typedef unsigned long long ull;
_Static_assert((int)CLI_MAX_DIMS == (int)NPY_MAX_DIMS, "any .npy array has a layout");

/* The elements of an array in C order of their indices. */
struct walk {
    const cli_layout *layout;
    uint64_t index[CLI_MAX_DIMS], stride[CLI_MAX_DIMS]; /* strides in elements */
    uint64_t offset;                                    /* of the current element */
};

static void walk_start(struct walk *w, const cli_layout *layout) {
    uint64_t stride = 1;
    memset(w, 0, sizeof *w);
    w->layout = layout;
    for (uint32_t i = 0; i < layout->dims; i++) {
        uint32_t d = layout->fortran ? i : layout->dims - 1 - i;
        w->stride[d] = stride;
        stride *= layout->shape[d];
    }
}

/* To the next element; true when a row of the last dimension ended with the one before. */
static bool walk_next(struct walk *w) {
    for (uint32_t d = w->layout->dims; d-- > 0;) {
        w->offset += w->stride[d];
        if (++w->index[d] < w->layout->shape[d]) return d + 1 != w->layout->dims;
        w->offset -= w->index[d] * w->stride[d];
        w->index[d] = 0;
    }
    return true;
}

static void print_text(const cli_layout *layout, const cli_array *a) {
    char text[CURED_TEXT_BYTES];
    size_t size = cured_dtype_size(a->dtype);
    struct walk w;
    walk_start(&w, layout);
    for (uint64_t i = 0; i < a->count && !ferror(stdout); i++) {
        cured_text(a->dtype, (const uint8_t *)a->values + w.offset * size, size, text, sizeof text);
        fputs(a->statuses != NULL && a->statuses[w.offset] != CURED_OK ? "-" : text, stdout);
        putchar(walk_next(&w) ? '\n' : ' ');
    }
}

/* --output table: a row for each answer, in C order of the indices, which stand before it. */
struct grid {
    const cli_options *o;
    const cured_op *ops;
    const cli_array *arrays;
    const cli_layout *layout;
    uint64_t inner[CLI_MAX_DIMS],
        stride[CLI_MAX_DIMS]; /* rows, and elements, from an index of a dimension to the next */
    char text[CURED_TEXT_BYTES], label[CLI_LABEL];
};

static const char *grid_cell(void *user, uint64_t row, size_t column) {
    struct grid *g = user;
    const cli_layout *layout = g->layout;
    const size_t op = column - layout->dims;
    uint64_t offset = 0;
    if (row == 0 && column >= layout->dims) return cli_label(g->o, g->ops[op], op, g->label);
    if (row == 0 && column == 0 && layout->first != NULL) return layout->first;
    if (row == 0) snprintf(g->label, sizeof g->label, "i%zu", column);
    if (row == 0) return g->label;
    for (uint32_t d = 0; d < layout->dims; d++) {
        const uint64_t index = (row - 1) / g->inner[d] % layout->shape[d];
        if (d == column) snprintf(g->text, sizeof g->text, "%llu", (ull)index);
        offset += index * g->stride[d];
    }
    if (column < layout->dims) return g->text;
    const cli_array *a = &g->arrays[op];
    const size_t size = cured_dtype_size(a->dtype);
    if (a->statuses != NULL && a->statuses[offset] != CURED_OK) return "-";
    cured_text(a->dtype, (const uint8_t *)a->values + offset * size, size, g->text, sizeof g->text);
    return g->text;
}

static void print_table(const cli_options *o, const cli_array *arrays, const cured_op *ops, size_t op_count,
                        const cli_layout *layout) {
    static const bool words[CLI_TABLE_COLUMNS]; /* none */
    struct walk w;
    struct grid g = {o, ops, arrays, layout, {0}, {0}, "", ""};
    uint64_t inner = 1;
    walk_start(&w, layout);
    memcpy(g.stride, w.stride, sizeof g.stride);
    for (uint32_t d = layout->dims; d-- > 0; inner *= layout->shape[d]) g.inner[d] = inner;
    const cli_table table = {layout->dims + op_count, arrays[0].count + 1, words, grid_cell, &g};
    cli_table_print(&table, cli_terminal_columns());
}

/* Without cJSON: an array may have millions of elements. */
static void print_json_array(const cli_layout *layout, const cli_array *a) {
    char text[CURED_TEXT_BYTES + 2];
    size_t size = cured_dtype_size(a->dtype);
    struct walk w;
    printf("{\"dtype\":\"%s\",\"shape\":[", cured_dtype_name(a->dtype));
    for (uint32_t i = 0; i < layout->dims; i++) printf("%s%llu", i != 0 ? "," : "", (ull)layout->shape[i]);
    fputs("],\"values\":[", stdout);
    walk_start(&w, layout);
    for (uint64_t i = 0; i < a->count && !ferror(stdout); i++) {
        cli_json_text(a->dtype, (const uint8_t *)a->values + w.offset * size, size, text);
        if (i != 0) putchar(',');
        fputs(a->statuses != NULL && a->statuses[w.offset] != CURED_OK ? "null" : text, stdout);
        walk_next(&w);
    }
    putchar(']');
    if (a->statuses != NULL)
        printf(",\"error\":\"%s\",\"status\":\"%s\"", a->why.text,
               cured_status_name(a->why.code)); /* of words and numbers */
    putchar('}');
}

static int print_json(const cli_options *o, const cli_answer *answer, const cli_array *arrays, const cured_op *ops,
                      size_t op_count, const cli_layout *layout) {
    char label[CLI_LABEL];
    char *figures = cli_figures_json(answer);
    if (figures == NULL) return cli_fail(EXIT_IO, "out of memory");
    printf("{\"dtype\":\"%s\",\"count\":%llu,\"results\":{", cured_dtype_name(answer->dtype), (ull)answer->count);
    for (size_t i = 0; i < op_count; i++) {
        printf("%s\"%s\":", i != 0 ? "," : "", cli_label(o, ops[i], i, label));
        print_json_array(layout, &arrays[i]);
    }
    printf("}%s%s\n", figures[1] != '}' ? "," : "", figures + 1); /* of a merge there are none */
    free(figures);
    return cli_flush();
}

/* The path with each {op} replaced; false when it is too long. */
static bool path_of(const char *pattern, const char *label, char out[PATH_MAX]) {
    size_t n = 0;
    for (const char *p = pattern; *p != '\0';) {
        bool name = strncmp(p, "{op}", 4) == 0;
        const char *piece = name ? label : p;
        size_t len = name ? strlen(piece) : 1;
        if (n + len >= PATH_MAX) return false;
        memcpy(out + n, piece, len);
        n += len;
        p += name ? 4 : 1;
    }
    out[n] = '\0';
    return true;
}

static int write_npy(const cli_options *o, const char *label, const cli_layout *layout, cured_dtype dtype,
                     const void *values, uint64_t count) {
    char path[PATH_MAX];
    uint8_t header[NPY_MAX_WRITTEN];
    size_t n = npy_write(header, dtype, layout->fortran && layout->dims > 1, layout->dims, layout->shape);
    if (!path_of(o->output, label, path)) return cli_fail(EXIT_USAGE, "--output is too long");
    const cli_piece pieces[] = {{header, n}, {values, count * cured_dtype_size(dtype)}};
    return cli_write(path, pieces, 2);
}

int cli_arrays_check(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count) {
    if (o->output == NULL) return EXIT_OK;
    for (size_t i = 0; i < op_count; i++)
        if (cured_axis_dtype(ops[i], dtype, o->call.result_dtype) == CURED_I128)
            return cli_fail(EXIT_USAGE, "NumPy has no 128-bit integers: leave out --output, and %s is printed as text",
                            cured_op_name(ops[i]));
    return cli_check_binary(o->output);
}

int cli_arrays_put(const cli_options *o, const cli_answer *answer, const cli_array *arrays, const cured_op *ops,
                   size_t op_count, const cli_layout *layout, bool named) {
    char label[CLI_LABEL];
    int code = o->json ? print_json(o, answer, arrays, ops, op_count, layout) : EXIT_OK;
    if (o->table) print_table(o, arrays, ops, op_count, layout);
    for (size_t i = 0; !o->json && !o->table && code == EXIT_OK && i < op_count; i++) {
        const cli_array *a = &arrays[i];
        if (o->output != NULL && a->statuses != NULL) {
            continue; /* an array that lacks answers is no array */
        } else if (o->output != NULL) {
            code = write_npy(o, cli_label(o, ops[i], i, label), layout, a->dtype, a->values, a->count);
        } else {
            if (named) printf("# %s\n", cli_label(o, ops[i], i, label));
            print_text(layout, a);
        }
    }
    for (size_t i = 0; i < op_count; i++)
        if (arrays[i].statuses != NULL) cli_lacking("%s: %s", cured_op_name(ops[i]), arrays[i].why.text);
    if (o->timing && answer->call != NULL) cli_print_timing(answer->call);
    if (code == EXIT_OK) code = cli_flush();
    for (size_t i = 0; i < op_count && code == EXIT_OK; i++)
        if (arrays[i].statuses != NULL) code = EXIT_DATA;
    return code;
}
