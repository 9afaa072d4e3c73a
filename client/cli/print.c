/* print: answers as lines of text, or as one line of JSON.
 *
 * JSON numbers are written by cured_value_text and handed to cJSON as raw text: cJSON's own do not always read back.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/table.h"
#include "kernels/core/op.h"

static void say_no_value(const cli_options *o, const cli_answer *a, const cured_value *v) {
    cured_error error;
    const char *whose = a->file != NULL ? a->file : o->total ? "total" : NULL;
    cured_value_status(v, &error);
    cli_lacking("%s%s%s: %s", whose != NULL ? whose : "", whose != NULL ? ": " : "", cured_op_name(cured_value_op(v)),
                error.text[0] != '\0' ? error.text : cured_status_name(error.code));
}

static void print_text(const cli_options *o, const cli_answer *a, const cured_value *v, size_t index, bool named) {
    char text[CURED_TEXT_BYTES], label[CLI_LABEL];
    bool good = cured_value_text(v, text, sizeof text) == CURED_OK;
    if (named)
        printf("%s %s\n", cli_label(o, cured_value_op(v), index, label), good ? text : "-");
    else if (good)
        puts(text);
    if (!good) say_no_value(o, a, v);
}

int cli_print_names(const cli_options *o, const cured_op *ops, size_t op_count) {
    char label[CLI_LABEL];
    int code = o->rows != NULL ? cli_rows_add(o->rows, "file") : EXIT_OK;
    if (o->rows == NULL) putchar('#');
    for (size_t i = 0; code == EXIT_OK && i < op_count; i++) {
        const char *name = cli_label(o, ops[i], i, label);
        if (o->rows != NULL)
            code = cli_rows_add(o->rows, name);
        else
            printf(" %s", name);
    }
    if (o->rows == NULL) putchar('\n');
    return code;
}

/* True when a reader that takes numbers for doubles would change this one: integers beyond 2^53. */
static bool too_big(const char *digits) {
    char *end;
    unsigned long long n = strtoull(digits + (*digits == '-'), &end, 10);
    return strlen(digits) > 17 || n > 1ull << 53;
}

void cli_json_text(cured_dtype dtype, const void *element, size_t bytes, char out[CURED_TEXT_BYTES + 2]) {
    char text[CURED_TEXT_BYTES];
    if (cured_text(dtype, element, bytes, text, sizeof text) != CURED_OK) strcpy(text, "null");
    bool is_float = cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT;
    bool quoted = is_float ? strpbrk(text, "in") != NULL /* inf, nan */ : dtype != CURED_BOOL && too_big(text);
    if (is_float && strcmp(text, "-0") == 0)
        strcpy(text, "-0.0"); /* -0 is an integer to many readers, and loses its sign */
    snprintf(out, CURED_TEXT_BYTES + 2, quoted ? "\"%s\"" : "%s", text);
}

static cJSON *json_element(cured_dtype dtype, const void *bytes, size_t len) {
    char text[CURED_TEXT_BYTES + 2];
    cli_json_text(dtype, bytes, len, text);
    return cJSON_CreateRaw(text);
}

cJSON *cli_value_json(const cured_value *v) {
    char hex[CURED_TEXT_BYTES];
    cured_error error;
    cured_dtype at_dtype;
    size_t len;
    cJSON *item = cJSON_CreateObject();
    if (cured_value_status(v, &error) != CURED_OK) {
        cJSON_AddStringToObject(item, "error", error.text[0] != '\0' ? error.text : cured_status_name(error.code));
        cJSON_AddStringToObject(item, "status", cured_status_name(error.code));
        return item;
    }
    const void *bytes = cured_value_bytes(v, &len);
    cJSON_AddStringToObject(item, "dtype", cured_dtype_name(cured_value_dtype(v)));
    cJSON_AddItemToObject(item, "value", json_element(cured_value_dtype(v), bytes, len));
    if (cured_value_hex(v, hex, sizeof hex) == CURED_OK) cJSON_AddStringToObject(item, "bits", hex);
    if (!cured_value_exact(v)) cJSON_AddFalseToObject(item, "exact");
    const void *at = cured_value_at(v, &at_dtype, &len);
    if (at != NULL) cJSON_AddItemToObject(item, "at", json_element(at_dtype, at, len));
    return item;
}

static void add_number(cJSON *object, const char *name, uint64_t n) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    cJSON_AddRawToObject(object, name, text);
}

static const cured_value *value_at(const cli_answer *a, size_t index) {
    if (a->digest != NULL && index == a->digest_at) return cured_call_value(a->digest, 0);
    if (a->digest != NULL && index > a->digest_at) index--;
    if (a->call != NULL) return cured_call_value(a->call, index);
    return a->values != NULL ? cured_values_get(a->values, index) : NULL;
}

static const char *text_of(const cured_value *v, char out[CURED_TEXT_BYTES]) {
    return cured_value_text(v, out, CURED_TEXT_BYTES) == CURED_OK ? out : "-";
}

/* Sentences come after the row, which they would tear. */
static void say_missing(const cli_options *o, const cli_answer *a) {
    const cured_value *v;
    for (size_t i = 0; (v = value_at(a, i)) != NULL; i++)
        if (cured_value_status(v, NULL) != CURED_OK) say_no_value(o, a, v);
}

/* The values in the order of their ops, and whose they are. */
static void print_row(const cli_options *o, const cli_answer *a) {
    char text[CURED_TEXT_BYTES];
    const cured_value *v;
    for (size_t i = 0; (v = value_at(a, i)) != NULL; i++) printf("%s ", text_of(v, text));
    puts(a->file != NULL ? a->file : "total");
    say_missing(o, a);
}

/* The same as a row of the table, in which the name stands first. */
static int add_row(const cli_options *o, const cli_answer *a) {
    char text[CURED_TEXT_BYTES], name[CLI_NAME_BYTES];
    const cured_value *v;
    int code = cli_rows_add(o->rows, a->file != NULL ? cli_printable(a->file, name) : "total");
    for (size_t i = 0; code == EXIT_OK && (v = value_at(a, i)) != NULL; i++)
        code = cli_rows_add(o->rows, text_of(v, text));
    say_missing(o, a);
    return code;
}

/* A row for each op. */
static int print_table(const cli_options *o, const cli_answer *a) {
    char text[CURED_TEXT_BYTES], label[CLI_LABEL];
    const cured_value *v;
    cli_rows rows = {.columns = 2};
    int code = cli_rows_add(&rows, "op");
    if (code == EXIT_OK) code = cli_rows_add(&rows, "value");
    for (size_t i = 0; code == EXIT_OK && (v = value_at(a, i)) != NULL; i++) {
        code = cli_rows_add(&rows, cli_label(o, cured_value_op(v), i, label));
        if (code == EXIT_OK) code = cli_rows_add(&rows, text_of(v, text));
    }
    say_missing(o, a);
    cli_rows_end(&rows);
    return code;
}

static void add_timing(cJSON *root, const cured_call *call) {
    cured_timing t = cured_call_timing(call);
    cJSON *timing = cJSON_AddObjectToObject(root, "timing");
    add_number(timing, "queue_ns", t.queue_ns);
    add_number(timing, "run_ns", t.run_ns);
    add_number(timing, "total_ns", t.total_ns);
    add_number(timing, "elapsed_ns", cured_call_elapsed_ns(call));
}

/* "timing.fold_ns" goes into the object "timing". */
static void add_figures(cJSON *root, const cli_answer *a) {
    if (a->call != NULL) add_timing(root, a->call);
    for (const cli_figure *f = a->figures; f != NULL && f->name != NULL; f++) {
        const char *dot = strchr(f->name, '.');
        char outer[32];
        snprintf(outer, sizeof outer, "%.*s", dot != NULL ? (int)(dot - f->name) : 0, f->name);
        cJSON *place = dot != NULL ? cJSON_GetObjectItemCaseSensitive(root, outer) : root;
        if (place == NULL) place = cJSON_AddObjectToObject(root, outer);
        add_number(place, dot != NULL ? dot + 1 : f->name, f->value);
    }
}

char *cli_figures_json(const cli_answer *answer) {
    cJSON *root = cJSON_CreateObject();
    add_figures(root, answer);
    char *text = cJSON_PrintUnformatted(root); /* by malloc(): nobody sets hooks */
    cJSON_Delete(root);
    return text;
}

static int print_json(const cli_options *o, const cli_answer *a) {
    char label[CLI_LABEL];
    cJSON *root = cJSON_CreateObject();
    if (a->file != NULL)
        cli_json_add_text(root, "file", a->file);
    else if (o->total)
        add_number(root, "files", o->file_count);
    if (a->dtype != CURED_DTYPE_DEFAULT) cJSON_AddStringToObject(root, "dtype", cured_dtype_name(a->dtype));
    add_number(root, "count", a->count);
    cJSON *results = cJSON_AddObjectToObject(root, "results");
    const cured_value *v;
    for (size_t i = 0; (v = value_at(a, i)) != NULL; i++)
        cJSON_AddItemToObject(results, cli_label(o, cured_value_op(v), i, label), cli_value_json(v));
    add_figures(root, a);
    char *text = cJSON_PrintUnformatted(root);
    int code = text != NULL && puts(text) >= 0 ? EXIT_OK : cli_fail(EXIT_IO, "cannot print the answer");
    cJSON_free(text);
    cJSON_Delete(root);
    return code;
}

void cli_print_timing(const cured_call *call) {
    cured_timing t = cured_call_timing(call);
    fflush(stdout);
    fprintf(stderr, "queue %.3f ms, run %.3f ms, daemon %.3f ms, call %.3f ms\n", (double)t.queue_ns / 1e6,
            (double)t.run_ns / 1e6, (double)t.total_ns / 1e6, (double)cured_call_elapsed_ns(call) / 1e6);
}

/* NaN is the right answer then, and no help. */
static void warn_ddof(const cli_options *o, const cli_answer *answer, const cured_value *v) {
    cured_op op = cured_value_op(v);
    char text[CURED_TEXT_BYTES] = "";
    if (cr_op_divisor((cr_op)op) != CR_DIVISOR_COUNT_LESS_DDOF || o->call.ddof == 0) return;
    if (o->call.ddof >= answer->count)
        cli_warn("%s: --ddof %llu is not below the %llu elements, so there is no such number", cured_op_name(op),
                 (unsigned long long)o->call.ddof, (unsigned long long)answer->count);
    else if (o->call.nan == CURED_NAN_SKIP && cured_value_text(v, text, sizeof text) == CURED_OK &&
             strcmp(text, "nan") == 0) /* how many were skipped is not known here */
        cli_warn("%s: --ddof %llu is not below the elements that --nan skip leaves, or one of them is infinite",
                 cured_op_name(op), (unsigned long long)o->call.ddof);
}

int cli_print(const cli_options *o, const cli_answer *answer, bool named) {
    const cured_value *v;
    bool missing = false;
    bool row = answer->file != NULL || o->total;
    int code = o->json           ? print_json(o, answer)
               : !o->table       ? EXIT_OK
               : o->rows != NULL ? add_row(o, answer)
                                 : print_table(o, answer);
    if (row && !o->json && !o->table) print_row(o, answer);
    for (size_t i = 0; (v = value_at(answer, i)) != NULL; i++) {
        missing = missing || cured_value_status(v, NULL) != CURED_OK;
        if (!o->json && !o->table && !row) print_text(o, answer, v, i, named);
        warn_ddof(o, answer, v);
    }
    if (o->timing && answer->call != NULL) cli_print_timing(answer->call);
    if (code == EXIT_OK) code = cli_flush();
    return code == EXIT_OK && missing ? EXIT_DATA : code;
}
