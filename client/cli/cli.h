/* cli: what the files of cured-client, and of cured-mpi, share: options, exit codes, ways of printing.
 *
 * Thread: one. Owner: main owns the options. */
#ifndef CURED_CLIENT_CLI_CLI_H
#define CURED_CLIENT_CLI_CLI_H

#include "cured/cured.h"

/* sysexits(3), by hand: musl has no such header. */
enum {
    EXIT_OK = 0,
    EXIT_DIFFERENT = 1,
    EXIT_USAGE = 64,
    EXIT_DATA = 65,
    EXIT_NOINPUT = 66,
    EXIT_CONNECT = 69,
    EXIT_IO = 74,
    EXIT_AGAIN = 75,
    EXIT_PROTOCOL = 76,
    EXIT_DENIED = 77,
};

typedef enum cli_via { VIA_AUTO, VIA_DESCRIPTOR, VIA_STREAM } cli_via;

enum { CLI_MAX_DIMS = 64 };

/* A part of a file's array: elements, or with an axis blocks of the outer dimensions. */
typedef struct cli_slice {
    uint64_t first, count;
} cli_slice;

typedef struct cli_options {
    const char *command, *file; /* file: NULL when none was given */
    char *const *files;         /* all that were given, the first too */
    size_t file_count;
    const char *connect; /* NULL: the default address */
    const char *tls_ca, *tls_certificate, *tls_key, *token_file;
    const char *timeout; /* as it was given; NULL: none */
    cured_dtype dtype;   /* CURED_DTYPE_DEFAULT: not given */
    bool big_endian;     /* dtype was given so, as in '>f4' */
    bool offset_given, count_given, raw, json, once, timing, quiet, no_progress, total;
    uint64_t offset, count;
    cli_via via;
    cured_op ops[CURED_MAX_OPS]; /* from the command or --ops */
    size_t op_count;
    uint64_t given; /* a bit for each option that only some commands take, by its place among the program's */
    bool axis_given, keepdims, local;
    int64_t axes[CLI_MAX_DIMS]; /* negative: from the end */
    size_t axis_count;
    const char *offsets;    /* the file that holds them; NULL: not given */
    const char *keys;       /* the same */
    const char *where;      /* the file that says which elements count, with its form; NULL: not given */
    struct cli_where *mask; /* what it holds; NULL: not read */
    uint64_t where_first;   /* the mask's element that is the input's first */
    bool where_first_given;
    const char *second;              /* the file of the second array; NULL: not given */
    struct cli_second *second_array; /* what it holds; NULL: not read */
    uint64_t groups;
    bool groups_given, drop;
    uint32_t dims; /* of --shape; 0: not given */
    uint64_t shape[CLI_MAX_DIMS];
    bool within_given;
    uint32_t within_dims; /* of --within: the array that each file is a block of */
    uint64_t within[CURED_BLOCK_MAX_DIMS];
    const char *start;                     /* where the blocks begin, as it was given; NULL: not given */
    size_t block;                          /* the number of the file among them */
    bool table;                            /* --output table: aligned columns */
    struct cli_rows *rows;                 /* of several files with table, gathered; NULL: none */
    const char *output;                    /* NULL: standard output */
    const cli_slice *slice;                /* what cli_reduce takes of the file; NULL: all */
    uint64_t group;                        /* of cured-mpi: ranks that gather first; 0: those of a node */
    uint32_t threads;                      /* that fold in this process; 0: one for each core */
    uint32_t days;                         /* of a token; 0: for ever, or until */
    const char *until, *may, *limits;      /* of a token; NULL: not given */
    const char *manifest, *check, *filter; /* of weights; NULL: not given */
    const char *column, *delimiter;        /* of text; NULL: not given */
    bool text, header;
    bool finite, method_given;
    double shares[CURED_MAX_OPS]; /* of --q; once the ops are known, of each op that takes one, by its place */
    size_t share_count;           /* given; 0: none */
    cured_options call;           /* with partial and first */
} cli_options;

/* What a file is of the array of --within. */
typedef struct cli_block {
    uint64_t start[CURED_BLOCK_MAX_DIMS], extent[CURED_BLOCK_MAX_DIMS];
    cured_block of;
} cli_block;

/* What a reduction along axes gives: the shape of the answers, in the input's order. */
typedef struct cli_layout {
    cured_axis axis;
    uint64_t axes; /* a bit for each dimension of the input that is reduced */
    bool apart;    /* those do not lie side by side, so that axis does not say it: the answers are in C order */
    bool fortran;  /* the first index is the fastest */
    uint32_t dims;
    uint64_t shape[CLI_MAX_DIMS];
    const char *first; /* what a table calls the first index; NULL: as the others */
} cli_layout;

/* Offsets, and the file that they are of. */
typedef struct cli_segments {
    uint8_t *file; /* owned; NULL: none */
    cured_offsets offsets;
} cli_segments;

/* Keys, and the file that they are of; the rows' columns are cli_place's to know. */
typedef struct cli_keys {
    uint8_t *file; /* owned; NULL: none */
    cured_keys keys;
} cli_keys;

/* Which elements count, and the file that says so. */
typedef struct cli_where {
    uint8_t *file;    /* owned; NULL: none */
    const char *path; /* without its form */
    bool bits, fortran;
    uint32_t dims; /* of a .npy file; 0: raw */
    uint64_t shape[CLI_MAX_DIMS];
    cured_mask mask;
} cli_where;

/* The second array, and the file that it is of. */
typedef struct cli_second {
    uint8_t *file; /* owned; NULL: none */
    size_t bytes;  /* of it */
    const char *path;
    bool fortran;
    uint32_t dims; /* of a .npy file; 0: raw, or of one element */
    uint64_t shape[CLI_MAX_DIMS];
    uint32_t untyped; /* bytes of an element of a .npy file that names no type; 0: it names one, or is none */
    cured_second of;  /* data NULL: raw, of the input's type */
} cli_second;

/* A figure of a run, "ranks" or "timing.fold_ns". */
typedef struct cli_figure {
    const char *name;
    uint64_t value;
} cli_figure;

/* Values of a call, or of a partial that was finished here. */
typedef struct cli_answer {
    const cured_call *call;     /* NULL: values */
    const cured_values *values; /* NULL: call */
    cured_dtype dtype;          /* of the input; CURED_DTYPE_DEFAULT: not known */
    uint64_t count;
    const char *file;          /* one of several: its answer is one line; NULL: see cli_print */
    const cli_figure *figures; /* of values: what JSON says beside them, up to one without a name; NULL: nothing */
    const cured_call *digest;  /* NULL, or a call of its own that answers op digest_at, which `values` leave out */
    size_t digest_at;
} cli_answer;

/* What a command takes (commands.def), and which options are its own (options.def). */
enum {
    CLI_FILES = 1,   /* an argument, at least one */
    CLI_MANY = 2,    /* and any number of them */
    CLI_PERHAPS = 4, /* one argument or none */
    CLI_OPS = 8,     /* --ops */
    CLI_OF_FILES = 16,
    CLI_OF_ARRAYS = 32, /* along an axis, or a part of a whole */
    CLI_OF_PARTIALS = 64,
    CLI_OF_TOKENS = 512,
    CLI_OF_TOP = 1024,
    CLI_OF_MERGE = 2048,
    CLI_OF_WEIGHTS = 4096,
    CLI_OF_ALL = -1,
};

/* A subcommand: arguments are checked, the rest is its own; returns the exit code. */
typedef struct cli_command {
    const char *name, *arguments, *help, *examples;
    int takes;
    int (*run)(const cli_options *o);
} cli_command;

#define CLI_COMMAND(name, function, arguments, takes, help, examples) int function(const cli_options *o);
#include "client/cli/commands.def"
#undef CLI_COMMAND

/* An option that one program alone has. */
typedef struct cli_option {
    const char *name, *argument, *help; /* argument: NULL for a flag */
    int (*set)(cli_options *o, const char *value);
} cli_option;

/* A program that is made of these files. Each main.c has its own. */
typedef struct cli_program {
    const char *name, *notes; /* notes: the end of its help, a paragraph a line */
    const cli_command *commands;
    size_t command_count;
    const cli_command *op;      /* every op is a command, too */
    const char *const *without; /* names of options.def that it has not, and NULL at the end; NULL: it has all */
    const cli_option *own;      /* up to one without a name; NULL: none */
    bool whole;                 /* its files are one array */
} cli_program;
extern const cli_program cli_program_here;

/* options.c: parses argv; EXIT_OK, or an exit code after its sentence. *show_help, *show_version: asked for; o->command is what
 * help is asked of, NULL: the program. */
int cli_parse(int argc, char **argv, cli_options *o, bool *show_help, bool *show_version);
/* Whether an option of this name was given that only some commands take. */
bool cli_given(const cli_options *o, const char *name);
/* cmd_help.c: the help of a command, or of the program when it is NULL. EXIT_OK, or EXIT_USAGE: there is no such command. */
int cli_help(const char *command);
/* Whether this program has an option of options.def. */
bool cli_has_option(const char *name);
/* NULL when there is no such command. Every op is one, too. */
const cli_command *cli_find_command(const char *name);
const cli_command *cli_command_list(size_t index);

/* progress.c: asks for the progress of a call that is about to be made, if somebody looks on. The line goes before anything
 * else is printed. */
void cli_progress_begin(const cli_options *o, const char *name, cured_options *call);
void cli_progress_clear(void);
/* What the line says; total 0: not known. */
void cli_progress_text(const char *name, uint64_t done, uint64_t total, double seconds, char *out, size_t bytes);

/* block.c: --within and --start. Numbers with commas between them from *text on, which moves behind them; false: there are none, or too
 * many. */
bool cli_numbers(const char **text, uint64_t *numbers, uint32_t most, uint32_t *count);
int cli_take_within(cli_options *o, const char *value);
/* Whether they go with what else is asked. */
int cli_block_check(const cli_options *o, bool reduces, bool merge);

/* shares.c: --q and --method. Once the ops are known: those that take a share come once for each. */
int cli_take_shares(cli_options *o, const char *value);
int cli_take_method(cli_options *o, const char *value);
int cli_spread_shares(cli_options *o);
/* Whether the ops take the options of answers, of some type at least. reduces: of arrays, not partials. */
int cli_check_taken(const cli_options *o, const cured_op *ops, size_t op_count, bool reduces);
/* What the answer to op number index is called: "sum", "quantile_0.1". */
enum { CLI_LABEL = 96 };
const char *cli_label(const cli_options *o, cured_op op, size_t index, char out[CLI_LABEL]);
/* Whether an op goes by rank: this process answers it, unless an address is given. */
bool cli_goes_by_rank(const cli_options *o);

/* search.c: medians and quantiles of several files as one array. Adds the counts that a read of a search asks of one file, o->file, or
 * of its slice; op is one of those that go by rank. */
int cli_search_count(const cli_options *o, cured_conn *conn, cured_op op, const cured_bytes *asked, uint64_t *counts,
                     size_t count, uint64_t *elements, cured_dtype *dtype);
/* Adds the counts of all. An exit code, after its sentence. */
typedef int cli_counter(void *user, const cured_bytes *asked, uint64_t *counts, size_t count);
/* Reads until the answers are known. */
int cli_search_run(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count, cli_counter *counter,
                   void *user, cured_values **values);
/* Whether ops and files are such that a search can be made. */
int cli_search_check(const cli_options *o, const cured_op *ops, size_t op_count);
/* The line of --total. */
int cli_search_total(const cli_options *o, cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count);

/* nearest.c: the name that is most like word; NULL when none is. */
const char *cli_nearest(const char *word, const char *(*name)(size_t index));
/* Refuses a word that is no op, or no command, with those that there are. */
int cli_unknown(const char *what, const char *word, bool command);

/* report.c */
/* Prints "cured-client: sentence" on stderr, with --json also as a line of JSON on stdout, and returns code. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same sentence where nothing failed; not with --quiet. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same sentence of one answer that is lacking beside others; with --quiet too, because the exit code says EXIT_DATA. */
void cli_lacking(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How cli_fail and cli_warn report. */
void cli_report_as(bool json, bool only_errors);
/* From now on the first error is kept here instead of being printed; NULL: printed again. */
typedef struct cli_failure {
    int code; /* EXIT_OK: none */
    cured_status status;
    char text[CURED_ERROR_BYTES + 272];
} cli_failure;
void cli_report_into(cli_failure *failure);
/* Prints what was kept, with words before it, and returns its code. */
int cli_report_failure(const cli_failure *failure, const char *before);
/* Connects, or says why not. Without an address: to a daemon, or in this process where nobody listens, unless it must be a daemon. */
int cli_connect(const cli_options *o, bool daemon, cured_conn **conn);
/* The same in this thread alone, where it is in this process: the first says what is wrong, the others say nothing. */
cured_status cli_connect_again(const cli_options *o, cured_conn **conn, cured_error *error);
/* The exit code of what went wrong. */
int cli_exit_code(cured_status status);
/* The exit code of a call that failed, after its sentence. what: NULL or the file's name. */
int cli_call_failed(const cli_options *o, const cured_conn *conn, const cured_error *error, const char *what);
/* Writes what is on its way to stdout out; EXIT_IO when it cannot. */
int cli_flush(void);

/* cmd_describe.c: the ops of describe; their number. */
size_t cli_describe_ops(const cured_op **ops);

/* cmd_reduce.c: reduces the file of o and puts the answer where it belongs. named: see cli_print. */
int cli_run(const cli_options *o, const cured_op *ops, size_t op_count, bool named);

/* many.c: the same for several files, and for --total. named: the names of the ops stand above the answers. */
int cli_run_many(const cli_options *o, const cured_op *ops, size_t op_count, bool named);

/* second.c: reads the file; the caller frees second->file, after an error too. */
int cli_second_read(const char *path, cli_second *second);
/* The input is known: whether the mask and the second array belong to it. fortran: in that order, which is not C order. */
int cli_beside_check(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                     cured_dtype dtype, uint64_t count);
/* The elements of what lies beside an input that was checked; CURED_TO_END: nothing does. */
uint64_t cli_beside_count(const cli_options *o);
/* Whether an op is of two arrays: this process answers it, unless an address is given. */
bool cli_goes_by_pairs(const cli_options *o);
/* where.c: reads FILE, bytes:FILE or bits:FILE; the caller frees where->file, after an error too. */
int cli_where_read(const char *given, cli_where *where);
/* Whether the mask of o, if there is one, is of the array of that name. shape: NULL, not known; count: CURED_TO_END, not known. */
int cli_where_check(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                    uint64_t count);

/* segments.c: all of a file; *bytes: how many. NULL after a sentence; *code is then set. */
uint8_t *cli_read_all(const char *path, size_t *bytes, int *code);
/* segments.c: the exit code of a file that was opened and cannot be read, after its sentence. A folder is one. */
int cli_read_failed(const char *path, int why);
/* segments.c: the header of an option's .npy file of so many bytes, all of whose elements are there; they are little-endian afterwards.
 * hint: what else the file may be. */
struct npy_header;
int cli_npy_take(const char *option, const char *hint, const char *path, uint8_t *file, size_t bytes,
                 struct npy_header *h);
/* segments.c: an option's .npy file of one dimension; the caller frees *file, after an error too. */
int cli_npy_read(const char *option, const char *path, uint8_t **file, cured_dtype *dtype, const uint8_t **data,
                 uint64_t *count);
/* keys.c: the same for --keys, with as many groups as --groups says or the keys need. */
int cli_keys_read(const cli_options *o, cli_keys *keys);
/* Whether the array of the file has a row for each of o->call.keys; what the answers are then. dims 0: so many elements. */
int cli_keys_check(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, uint64_t count,
                   cured_dtype dtype, const cured_op *ops, size_t op_count, cli_layout *layout);
/* Where the answers' elements lie, to the options of the call: the axis of the layout, or the keys with its columns. */
void cli_place(const cli_options *o, const cli_layout *layout, cured_keys *keys, cured_options *options);
/* segments.c: reads the .npy file; the caller frees segments->file, after an error too. */
int cli_segments_read(const char *path, cli_segments *segments);
/* Whether the array of the file, of so many dimensions, may be cut into segments, and the answers be put where they are wanted. */
int cli_segments_check(const cli_options *o, const char *name, uint32_t dims, cured_dtype dtype, const cured_op *ops,
                       size_t op_count);
void cli_segments_layout(const cli_segments *segments, cli_layout *layout);

/* input.c: starts and finishes a call on the file of o. On EXIT_OK *call is done with CURED_OK, *dtype is the input's, and *layout
 * is filled if there is an axis. */
int cli_reduce(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, cured_call **call,
               cured_dtype *dtype, cli_layout *layout);

/* column.c: the same of a column of text: *dtype is CURED_I64 where it has integers alone, or CURED_F64. */
int cli_reduce_text(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, cured_call **call,
                    cured_dtype *dtype);
/* Whether the options of --text go together, and with the others. */
int cli_text_check(const cli_options *o);

/* expand.c: puts the files in place of arguments that stand for several: folders, patterns, a.npz:*. every: of a folder
 * each file counts, not those alone that are arrays by their names. */
int cli_expand(cli_options *o, bool every);

struct stat;
/* open.c: opens a file, or of "-" standard input; *archive: it is the .npz of "a.npz:x". *name: for sentences. */
int cli_open(const char *file, const char **name, int *fd, bool *archive, struct stat *st);

/* What the file of o holds, told from its first bytes. */
typedef struct cli_look {
    cured_dtype dtype;
    uint64_t count; /* elements; CURED_TO_END: not known */
    bool regular;   /* a slice of it can be read alone */
    uint64_t form;  /* of its shape and order: files with other ones hardly ever have the same */
} cli_look;
int cli_look_at(const cli_options *o, const cured_op *ops, size_t op_count, cli_look *look, cli_layout *layout);

/* shape.c: what --axis makes of an array of this shape. ordered: an answer depends on the order of the elements. */
int cli_layout_make(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                    bool ordered, cli_layout *layout);
/* Whether the answer of an op depends on the order in which the elements are counted. */
bool cli_ordered(cured_dtype dtype, const cured_op *ops, size_t op_count);
/* A number for the shape and the order of an array, which hardly ever is another one's. */
uint64_t cli_shape_form(uint32_t dims, const uint64_t *shape, bool fortran, bool swap);
/* Whether an answer depends on the order in which the elements of an array are counted: indices count as NumPy counts, and the
 * tree of a product of floats goes by the same order. --offset and --count count in the file. */
bool cli_counts_order(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count, uint32_t dims,
                      const uint64_t *shape);
/* The elements of --shape; EXIT_USAGE when they are too many for elements of that size. */
int cli_shape_count(const cli_options *o, size_t size, uint64_t *count);

/* arrays.c: a call's arrays of answers as .npy files, text or JSON. Whether that can be done is asked before the call. */
int cli_arrays_check(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count);
/* arrays: of the ops, in their order. figures: as those of an answer. */
typedef struct cli_array {
    cured_dtype dtype;
    uint64_t count;
    const void *values;
    const uint8_t *statuses; /* NULL: every answer has a value */
    cured_error why;         /* with statuses */
} cli_array;
int cli_arrays_put(const cli_options *o, const cli_answer *answer, const cli_array *arrays, const cured_op *ops,
                   size_t op_count, const cli_layout *layout, bool named);
/* by_key.c: merges partials by key, and finishes them here. */
int cli_merge_by_key(const cli_options *o, const cured_bytes *partials, size_t count);
/* together.c: refuses --output. */
int cli_no_output(void);
/* together.c: whether the options go with each other and with the command. */
int cli_check_together(const cli_options *o, bool reduces, bool merge);
/* cmd_merge.c: puts the file's name into error where why, which may be the same, names a partial by its place, "partials[1]: ...". */
void cli_name_partial(const cli_options *o, const cured_error *why, cured_error *error);
/* cmd_merge.c: a partial to where --output says. */
int cli_put_partial(const cli_options *o, const void *bytes, size_t n);

/* output.c: writes pieces one after the other to a file, or to standard output when path is NULL or "-". */
typedef struct cli_piece {
    const void *data;
    uint64_t bytes;
} cli_piece;
int cli_write(const char *path, const cli_piece *pieces, size_t count);
/* The same by a new file beside it that takes its name at the end: what fails leaves the old file. Devices and pipes are written to. */
int cli_replace(const char *path, const cli_piece *pieces, size_t count);
/* Refuses to send bytes that are not text to a terminal. */
int cli_check_binary(const char *path);

struct cJSON;
/* report.c: a text that need not be UTF-8, as names of files are, to an object: U+FFFD stands for each byte that is none. */
void cli_json_add_text(struct cJSON *object, const char *name, const char *text);
/* print.c: a value as JSON, the caller's. */
struct cJSON *cli_value_json(const cured_value *v);
/* print.c: the answer as lines or JSON; with several files or --total one line, which ends with the file's name or "total".
 * named: names stand before values. EXIT_DATA when an op has no value. */
int cli_print_names(const cli_options *o, const cured_op *ops, size_t op_count);
int cli_print(const cli_options *o, const cli_answer *answer, bool named);
void cli_print_timing(const cured_call *call);
/* The timing of the call and the figures as a JSON object, to be freed; NULL: no memory. */
char *cli_figures_json(const cli_answer *answer);
/* One element as JSON writes it: a number, or a string where JSON has no number for it (or not exactly). */
void cli_json_text(cured_dtype dtype, const void *element, size_t bytes, char out[CURED_TEXT_BYTES + 2]);

#endif
