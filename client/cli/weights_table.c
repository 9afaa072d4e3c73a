/* weights_table: a checkpoint as rows of text, in columns, or as one line of JSON. Text has six digits of a float that was rounded to
 * double; JSON has all of them.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/checkpoint.h"
#include "kernels/core/dtype.h"

typedef unsigned long long ull;

enum { NAMED = 5 /* tensors that the lines below the table name */ };

uint64_t cli_checkpoint_count(const cli_checkpoint *c, size_t tensor, cured_op op) {
    uint64_t n = 0;
    const cured_value *v = op != 0 ? weights_answer(&c->answers, tensor, op) : NULL;
    return v != NULL && cured_value_uint64(v, &n) == CURED_OK ? n : 0;
}

static bool is_reduced(const cli_checkpoint *c, size_t tensor) {
    return c->table.tensors[tensor].dtype != CURED_DTYPE_DEFAULT;
}

static uint64_t zeros(const cli_checkpoint *c, size_t tensor, const cli_columns *columns) {
    if (!is_reduced(c, tensor)) return 0;
    return weights_elements(&c->table.tensors[tensor]) - cli_checkpoint_count(c, tensor, columns->nonzeros);
}

cli_totals cli_checkpoint_totals(const cli_checkpoint *c, const cli_columns *columns) {
    cli_totals t = {.tensors = c->table.count};
    for (size_t i = 0; i < c->table.count; i++) {
        const weights_tensor *tensor = &c->table.tensors[i];
        const uint64_t nans = cli_checkpoint_count(c, i, columns->nans),
                       infs = cli_checkpoint_count(c, i, columns->infs);
        t.elements += weights_elements(tensor);
        t.bytes += tensor->bytes;
        t.nans += nans;
        t.infs += infs;
        t.zeros += columns->own ? zeros(c, i, columns) : 0;
        t.strange += nans != 0 || infs != 0;
        t.bytes_alone += !is_reduced(c, i);
        t.unknown += !tensor->sized;
    }
    return t;
}

/* ---- Text ---- */

static void value_text(const cured_value *v, char out[CURED_TEXT_BYTES]) {
    double number;
    if (v == NULL || cured_value_text(v, out, CURED_TEXT_BYTES) != CURED_OK) {
        strcpy(out, "-");
    } else if (cr_dtype_kind((cr_dtype)cured_value_dtype(v)) == CR_KIND_FLOAT && strlen(out) > 12) {
        cured_value_double(v, &number);
        snprintf(out, CURED_TEXT_BYTES, "%.6g", number);
    }
}

static const char *heading(const cli_columns *columns, size_t i) {
    return columns->own && columns->ops[i] == columns->nonzeros ? "zeros" : cured_op_name(columns->ops[i]);
}

/* The text of column i of a tensor: name, type, shape, and the ops. */
static const char *cell(const cli_checkpoint *c, const cli_columns *columns, size_t tensor, size_t i, char *out,
                        size_t room) {
    const weights_tensor *t = &c->table.tensors[tensor];
    if (i == 0) return cli_printable(t->name, out);
    if (i == 1) return t->type;
    if (i == 2) {
        weights_shape_text(t, out);
        return out;
    }
    const cured_op op = columns->ops[i - 3];
    if (columns->own && op == columns->nonzeros && is_reduced(c, tensor))
        snprintf(out, room, "%llu", (ull)zeros(c, tensor, columns));
    else
        value_text(weights_answer(&c->answers, tensor, op), out);
    return out;
}

struct rows {
    const cli_checkpoint *c;
    const cli_columns *columns;
};

/* After the ops a word on what is strange about the tensor. */
static const char *row_cell(void *user, uint64_t row, size_t i) {
    static char text[WEIGHTS_SHAPE_BYTES + CLI_NAME_BYTES]; /* a shape, or a name */
    static const char *const first[] = {"# name", "type", "shape"};
    const struct rows *r = user;
    const size_t ops = r->columns->count, tensor = (size_t)row - 1;
    if (row == 0) return i < 3 ? first[i] : i < 3 + ops ? heading(r->columns, i - 3) : "";
    if (i < 3 + ops) return cell(r->c, r->columns, tensor, i, text, sizeof text);
    const bool nan = cli_checkpoint_count(r->c, tensor, r->columns->nans) != 0,
               inf = cli_checkpoint_count(r->c, tensor, r->columns->infs) != 0;
    return nan && inf ? "! NaN infinity" : nan ? "! NaN" : inf ? "! infinity" : "";
}

static void print_rows(const cli_checkpoint *c, const cli_columns *columns, size_t most) {
    struct rows rows = {c, columns};
    bool words[CLI_TABLE_COLUMNS] = {true, true, true};
    for (size_t i = 0; i < columns->count; i++) words[3 + i] = columns->ops[i] == columns->digest;
    words[3 + columns->count] = true;
    const cli_table table = {3 + columns->count + 1, c->table.count + 1, words, row_cell, &rows};
    cli_table_print(&table, most);
}

/* What a line below the table names tensors for. */
enum kind { STRANGE, BYTES_ALONE, UNKNOWN };

static bool is_of(const cli_checkpoint *c, const cli_columns *columns, size_t i, enum kind kind) {
    if (kind == STRANGE)
        return cli_checkpoint_count(c, i, columns->nans) != 0 || cli_checkpoint_count(c, i, columns->infs) != 0;
    return !is_reduced(c, i) && c->table.tensors[i].sized == (kind == BYTES_ALONE);
}

/* ": a, b, c and 4 more" of the tensors that are so. */
static void print_names(const cli_checkpoint *c, const cli_columns *columns, enum kind kind, size_t count) {
    char name[CLI_NAME_BYTES];
    size_t named = 0;
    for (size_t i = 0; i < c->table.count && named < NAMED; i++) {
        if (!is_of(c, columns, i, kind)) continue;
        printf("%s%s", named++ == 0 ? ": " : ", ", cli_printable(c->table.tensors[i].name, name));
    }
    if (count > named) printf(" and %zu more", count - named);
    putchar('\n');
}

static void print_text(const cli_checkpoint *c, const cli_columns *columns, size_t most) {
    const cli_totals t = cli_checkpoint_totals(c, columns);
    print_rows(c, columns, most);
    printf("total: tensors %llu, elements %llu, bytes %llu", (ull)t.tensors, (ull)t.elements, (ull)t.bytes);
    if (cli_columns_have(columns, columns->nans)) printf(", count_nan %llu", (ull)t.nans);
    if (cli_columns_have(columns, columns->infs)) printf(", count_inf %llu", (ull)t.infs);
    if (columns->own) printf(", zeros %llu", (ull)t.zeros);
    putchar('\n');
    if (c->digest[0] != '\0') printf("digest of all: %s\n", c->digest);
    if (t.strange != 0) {
        printf("! NaN or infinity in %zu of %llu tensors", t.strange, (ull)t.tensors);
        print_names(c, columns, STRANGE, t.strange);
    }
    const size_t bytes_alone = t.bytes_alone - t.unknown;
    if (bytes_alone != 0) {
        printf("bytes and digest only, of types that cured does not reduce: %zu of %llu tensors", bytes_alone,
               (ull)t.tensors);
        print_names(c, columns, BYTES_ALONE, bytes_alone);
    }
    if (t.unknown != 0) {
        printf("no digest, of types that are not known here: %zu of %llu tensors", t.unknown, (ull)t.tensors);
        print_names(c, columns, UNKNOWN, t.unknown);
    }
}

/* ---- JSON ---- */

static void add_number(cJSON *object, const char *name, uint64_t n) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (ull)n);
    cJSON_AddRawToObject(object, name, text);
}

static cJSON *json_row(const cli_checkpoint *c, const cli_columns *columns, size_t tensor) {
    static char shape[WEIGHTS_SHAPE_BYTES];
    const weights_tensor *t = &c->table.tensors[tensor];
    cJSON *row = cJSON_CreateObject();
    weights_shape_text(t, shape);
    cJSON_AddStringToObject(row, "name", t->name);
    cJSON_AddStringToObject(row, "type", t->type);
    cJSON_AddRawToObject(row, "shape", shape);
    if (t->sized) add_number(row, "bytes", t->bytes);
    cJSON *results = cJSON_AddObjectToObject(row, "results");
    for (size_t i = 0; i < columns->count; i++) {
        const cured_value *v = weights_answer(&c->answers, tensor, columns->ops[i]);
        cJSON *item = v != NULL ? cli_value_json(v) : NULL;
        if (columns->own && columns->ops[i] == columns->nonzeros && item != NULL) {
            cJSON_DeleteItemFromObject(item, "value");
            add_number(item, "value", zeros(c, tensor, columns));
        }
        if (item != NULL) cJSON_AddItemToObject(results, heading(columns, i), item);
    }
    if (!is_reduced(c, tensor)) cJSON_AddTrueToObject(row, "bytes_only");
    return row;
}

static bool put_json(cJSON *item) {
    char *text = cJSON_PrintUnformatted(item);
    const bool good = text != NULL && fputs(text, stdout) >= 0;
    cJSON_free(text);
    cJSON_Delete(item);
    return good;
}

static int print_json(const cli_checkpoint *c, const cli_columns *columns) {
    const cli_totals t = cli_checkpoint_totals(c, columns);
    bool good = true;
    fputs("{\"tensors\":[", stdout);
    for (size_t i = 0; i < c->table.count && good; i++) {
        if (i != 0) putchar(',');
        good = put_json(json_row(c, columns, i));
    }
    fputs("],\"totals\":", stdout);
    cJSON *totals = cJSON_CreateObject();
    add_number(totals, "tensors", t.tensors);
    add_number(totals, "elements", t.elements);
    add_number(totals, "bytes", t.bytes);
    if (cli_columns_have(columns, columns->nans)) add_number(totals, "count_nan", t.nans);
    if (cli_columns_have(columns, columns->infs)) add_number(totals, "count_inf", t.infs);
    if (columns->own) add_number(totals, "zeros", t.zeros);
    add_number(totals, "bytes_only", t.bytes_alone);
    good = put_json(totals) && good;
    if (c->digest[0] != '\0') printf(",\"digest\":\"%s\"", c->digest);
    puts("}");
    return good ? EXIT_OK : cli_fail(EXIT_IO, "cannot print the answer");
}

int cli_checkpoint_print(const cli_options *o, const cli_checkpoint *c, const cli_columns *columns) {
    int code = EXIT_OK;
    if (o->json)
        code = print_json(c, columns);
    else
        print_text(c, columns, o->table ? cli_terminal_columns() : 0);
    return code == EXIT_OK ? cli_flush() : code;
}
