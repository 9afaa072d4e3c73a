/* column: --text: from a file's name to a call that is done with the numbers of a column, which are streamed as i64 or f64.
 *
 * Whether a column has integers alone is known at its end. Until a decimal comes, its numbers go to a call as i64. A file is then read
 * again from its start, for a call of f64. A pipe comes once, so until then its numbers go to both calls, and the one that they turn out
 * not to be is given up: in bounded memory, too.
 *
 * Thread: one. Owner: the descriptor, the reader and the calls live inside cli_reduce_text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/format.h"
#include "client/cli/text.h"

enum { INTEGERS, REALS, SIDES };

typedef struct column {
    const cli_options *o;
    cured_conn *conn;
    const cured_op *ops;
    size_t op_count;
    const char *name; /* of the file, for sentences */
    int fd;
    text *reader;
    off_t start; /* where a file is read from, again if need be; -1: what is read comes once */
    bool begun, again;
    cured_call *calls[SIDES];  /* NULL: not begun, or given up */
    cured_error errors[SIDES]; /* why one could not begin */
} column;

/* ---- Options ---- */

/* ',' of "," and '\t' of "\t", "tab" and a tab; 0: it parts no numbers. */
static uint8_t delimiter_of(const char *given) {
    if (strcmp(given, "\\t") == 0 || strcmp(given, "tab") == 0) given = "\t";
    const bool printed = *given >= ' ' && *given <= '~', letter = (*given | 0x20) >= 'a' && (*given | 0x20) <= 'z';
    if (*given == '\0' || given[1] != '\0' || letter || (!printed && *given != '\t')) return 0;
    return strchr("0123456789+-.\"", *given) == NULL ? (uint8_t)*given : 0;
}

/* A number from 1, or a name. */
static int take_column(const cli_options *o, text_format *f) {
    const bool number = o->column[strspn(o->column, "0123456789")] == '\0';
    errno = 0;
    if (number) f->column = strtoull(o->column, NULL, 10);
    if (*o->column == '\0' || (number && (errno != 0 || f->column == 0)))
        return cli_fail(EXIT_USAGE, "--column is '%s', must be a name, or a number from 1", o->column);
    if (!number) f->name = o->column;
    if (!number && !o->header)
        return cli_fail(EXIT_USAGE, "--column '%s' is a name: --header says that the first line has names", o->column);
    return EXIT_OK;
}

static int take_format(const cli_options *o, text_format *f) {
    *f = (text_format){.header = o->header};
    f->kind = o->dtype == CURED_I64 ? TEXT_INTEGERS : o->dtype == CURED_F64 ? TEXT_REALS : TEXT_EITHER;
    if (o->delimiter != NULL && (f->delimiter = delimiter_of(o->delimiter)) == 0)
        return cli_fail(EXIT_USAGE,
                        "--delimiter is '%s', must be one character of ASCII that no number has: , ; | tab ...",
                        o->delimiter);
    return o->column != NULL ? take_column(o, f) : EXIT_OK;
}

int cli_text_check(const cli_options *o) {
    text_format f;
    if (!o->text && (o->header || o->column != NULL || o->delimiter != NULL))
        return cli_fail(EXIT_USAGE, "--%s belongs to --text",
                        o->header           ? "header"
                        : o->column != NULL ? "column"
                                            : "delimiter");
    if (!o->text) return EXIT_OK;
    if (o->axis_given || o->dims != 0 || o->offsets != NULL || o->keys != NULL || o->where != NULL || o->second != NULL)
        return cli_fail(EXIT_USAGE,
                        "--text gives one column: it goes without --shape, --axis, --offsets, --keys, --where, "
                        "--second");
    if (o->raw || o->offset_given || o->count_given || o->via == VIA_DESCRIPTOR || o->call.kernel != NULL)
        return cli_fail(EXIT_USAGE,
                        "--text goes without --raw, --offset, --count, --kernel and --via descriptor, which are for "
                        "elements in binary");
    if (o->big_endian || (o->dtype != CURED_DTYPE_DEFAULT && o->dtype != CURED_F64 && o->dtype != CURED_I64))
        return cli_fail(EXIT_USAGE, "--text gives f64, or i64 of integers: --dtype may be f64 or i64");
    return take_format(o, &f);
}

/* ---- The calls ---- */

static void give_up(column *c, int side) {
    cured_call_free(c->calls[side]);
    c->calls[side] = NULL;
}

/* Lets the call end whose type the column has not. A daemon would log one that is cancelled as failed; medians are dear. */
static void let_end(column *c, int side) {
    if (c->calls[side] != NULL && !cli_goes_by_rank(c->o)) {
        cured_stream_end(c->calls[side], NULL);
        cured_wait(c->calls[side], NULL);
    }
    give_up(c, side);
}

static void begin_call(column *c, int side, const cured_options *options) {
    static const cured_dtype dtypes[SIDES] = {CURED_I64, CURED_F64};
    if (cured_reduce_stream_begin(c->conn, dtypes[side], c->ops, c->op_count, CURED_UNKNOWN_LENGTH, options,
                                  &c->calls[side], &c->errors[side]) != CURED_OK)
        c->calls[side] = NULL;
}

/* Begins what the first values may go to. One that cannot begin may yet be the one that is given up: bits are of integers alone. */
static void begin_calls(column *c, bool whole) {
    cured_options options = c->o->call;
    const bool once = c->start >= 0;
    if (once) cli_progress_begin(c->o, c->name, &options);
    if (whole && !c->again) begin_call(c, INTEGERS, &options);
    if (!once) cli_progress_begin(c->o, c->name, &options);
    if (c->o->dtype != CURED_I64 && (!once || c->calls[INTEGERS] == NULL)) begin_call(c, REALS, &options);
    c->begun = true;
}

static bool is_open(const column *c, int side) { return c->calls[side] != NULL && !cured_call_done(c->calls[side]); }

static void give(column *c, const text_values *v) {
    const void *values[SIDES] = {v->integers, v->reals};
    if (!c->begun) begin_calls(c, v->whole);
    if (!v->whole) let_end(c, INTEGERS);
    for (int side = 0; side < SIDES && v->count != 0; side++)
        if (is_open(c, side)) cured_stream_write(c->calls[side], values[side], v->count * sizeof *v->reals, NULL);
    for (int side = 0; side < SIDES; side++)
        if (is_open(c, side)) cured_stream_drain(c->calls[side], NULL);
}

/* A file that turns out to have decimals, whose integers went to no call of f64: it is read again. */
static bool turns(const column *c, const text_values *v) {
    return c->start >= 0 && c->begun && !c->again && !v->whole && c->calls[INTEGERS] != NULL;
}

static int rewind_to_reals(column *c, const text_format *f) {
    let_end(c, INTEGERS);
    text_end(c->reader);
    c->reader = text_begin(f);
    c->begun = false;
    c->again = true;
    if (c->reader == NULL) return cli_fail(EXIT_IO, "out of memory");
    if (lseek(c->fd, c->start, SEEK_SET) != c->start)
        return cli_fail(EXIT_IO, "cannot read %s again: %s", c->name, strerror(errno));
    return EXIT_OK;
}

/* Reads to the end, or until every call is done, because it failed. *whole: what the column is. */
static int pump(column *c, const text_format *f, bool *whole) {
    const format *other = NULL; /* that the file is of */
    text_values values = {.whole = true};
    bool first = true;
    int code = EXIT_OK;
    for (size_t most, n = 1; n != 0 && code == EXIT_OK; first = false) {
        cured_error error;
        uint8_t *to = text_room(c->reader, &most);
        ssize_t got;
        do got = read(c->fd, to, most);
        while (got < 0 && errno == EINTR);
        if (got < 0) return cli_fail(EXIT_IO, "cannot read %s: %s", c->name, strerror(errno));
        n = (size_t)got;
        if (first) other = format_find(to, n, NULL, false);
        const cured_status status = text_take(c->reader, n, &values, &error);
        if (status != CURED_OK && other != NULL && other != format_text())
            return cli_fail(EXIT_DATA, "%s is %s, not text: %s", c->name, other->what, other->advice);
        if (status != CURED_OK) return cli_fail(EXIT_DATA, "%s: %s", c->name, error.text);
        if (turns(c, &values)) {
            code = rewind_to_reals(c, f);
            n = 1; /* it goes on from the start */
            continue;
        }
        if (values.count == 0 && n != 0) continue;
        give(c, &values);
        if (!is_open(c, INTEGERS) && !is_open(c, REALS)) break;
    }
    *whole = values.whole && !c->again;
    return code;
}

/* Waits for the call that the column is for; it is the caller's then. */
static int finish(column *c, bool whole, cured_call **call) {
    const int side = whole ? INTEGERS : REALS;
    cured_error error = c->errors[side];
    let_end(c, whole ? REALS : INTEGERS);
    if (c->calls[side] == NULL) return cli_call_failed(c->o, c->conn, &error, c->name);
    cured_stream_end(c->calls[side], NULL);
    if (cured_wait(c->calls[side], &error) != CURED_OK) return cli_call_failed(c->o, c->conn, &error, c->name);
    *call = c->calls[side];
    c->calls[side] = NULL;
    return EXIT_OK;
}

int cli_reduce_text(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, cured_call **call,
                    cured_dtype *dtype) {
    column c = {.o = o, .conn = conn, .ops = ops, .op_count = op_count, .fd = -1, .start = -1};
    text_format f;
    struct stat st;
    bool archive, whole = false;
    *call = NULL;
    int code = take_format(o, &f);
    if (code == EXIT_OK) code = cli_open(o->file, &c.name, &c.fd, &archive, &st);
    if (code == EXIT_OK && archive)
        code = cli_fail(EXIT_USAGE, "%s is an array of an archive: --text reads files of text", c.name);
    if (code == EXIT_OK && (c.reader = text_begin(&f)) == NULL) code = cli_fail(EXIT_IO, "out of memory");
    if (code == EXIT_OK && S_ISREG(st.st_mode)) c.start = lseek(c.fd, 0, SEEK_CUR);
    if (code == EXIT_OK) code = pump(&c, &f, &whole);
    if (code == EXIT_OK) code = finish(&c, whole, call);
    cli_progress_clear();
    *dtype = whole ? CURED_I64 : CURED_F64;
    for (int side = 0; side < SIDES; side++) give_up(&c, side);
    text_end(c.reader);
    if (c.fd > STDIN_FILENO) close(c.fd);
    return code;
}
