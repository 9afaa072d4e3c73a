/* options: the command line, from one table.
 *
 * Thread: one. Owner: strings stay argv's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"

struct option {
    const char *name, *argument, *help; /* argument: NULL for a flag */
    int (*set)(cli_options *o, const char *value);
};

static int bad(const char *option, const char *value, const char *must) {
    return cli_fail(EXIT_USAGE, "--%s is '%s', must be %s", option, value, must);
}

static bool number(const char *text, uint64_t *out) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    *out = n;
    return true;
}

static int set_connect(cli_options *o, const char *value) {
    o->connect = value;
    return EXIT_OK;
}

static int set_tls_ca(cli_options *o, const char *value) {
    o->tls_ca = value;
    return EXIT_OK;
}

static int set_tls_certificate(cli_options *o, const char *value) {
    o->tls_certificate = value;
    return EXIT_OK;
}

static int set_tls_key(cli_options *o, const char *value) {
    o->tls_key = value;
    return EXIT_OK;
}

static int set_token_file(cli_options *o, const char *value) {
    o->token_file = value;
    return EXIT_OK;
}

static int set_dtype(cli_options *o, const char *value) {
    cured_error error;
    char little[16];
    cured_status status = cured_dtype_parse(value, &o->dtype, &error);
    o->big_endian = status == CURED_UNIMPLEMENTED && *value == '>'; /* known, but for its order */
    if (o->big_endian) {
        snprintf(little, sizeof little, "<%s", value + 1);
        status = cured_dtype_parse(little, &o->dtype, &error);
    }
    if (status != CURED_OK) return cli_fail(EXIT_USAGE, "--dtype: %s", error.text);
    if (o->dtype > CURED_F64) return bad("dtype", value, "the type of an array");
    return EXIT_OK;
}

static int set_ops(cli_options *o, const char *value) {
    o->op_count = 0;
    while (true) {
        char name[32];
        value += strspn(value, " ");
        size_t len = strcspn(value, ", ");
        size_t end = len + strspn(value + len, " ");
        if (len == 0 || len >= sizeof name || (value[end] != ',' && value[end] != '\0'))
            return bad("ops", value, "names of ops with commas between them");
        memcpy(name, value, len);
        name[len] = '\0';
        if (o->op_count == CURED_MAX_OPS) return cli_fail(EXIT_USAGE, "--ops names more than %d ops", CURED_MAX_OPS);
        cured_op *op = &o->ops[o->op_count];
        if (cured_op_parse(name, op, NULL) != CURED_OK) return cli_unknown("--ops: unknown op", name, false);
        for (size_t i = 0; i < o->op_count; i++)
            if (o->ops[i] == *op) return cli_fail(EXIT_USAGE, "--ops names %s twice", name);
        o->op_count++;
        if (value[end] == '\0') return EXIT_OK;
        value += end + 1;
    }
}

static int set_offset(cli_options *o, const char *value) {
    o->offset_given = number(value, &o->offset);
    return o->offset_given ? EXIT_OK : bad("offset", value, "a number of bytes");
}

static int set_count(cli_options *o, const char *value) {
    o->count_given = number(value, &o->count);
    return o->count_given ? EXIT_OK : bad("count", value, "a number of elements");
}

static int set_timeout(cli_options *o, const char *value) {
    static const char must[] = "a time above 0 and up to 24 hours: seconds, or with unit as in 500ms, 10s, 5m";
    char *end;
    errno = 0;
    double t = strtod(value, &end);
    if (end == value || errno != 0 || !((*value >= '0' && *value <= '9') || *value == '.'))
        return bad("timeout", value, must);
    if (strcmp(end, "ms") == 0)
        t /= 1000;
    else if (strcmp(end, "m") == 0)
        t *= 60;
    else if (*end != '\0' && strcmp(end, "s") != 0)
        return bad("timeout", value, must);
    if (!(t >= 0.001 && t <= 86400)) return bad("timeout", value, must);
    o->timeout = value;
    o->call.timeout_ms = (uint32_t)(t * 1000);
    return EXIT_OK;
}

/* The index of value among words, or -1. */
static int choose(const char *value, const char *const *words, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(value, words[i]) == 0) return i;
    return -1;
}

static int set_via(cli_options *o, const char *value) {
    static const char *const words[] = {"auto", "descriptor", "stream"};
    int i = choose(value, words, 3);
    if (i < 0) return bad("via", value, "auto, descriptor or stream");
    o->via = (cli_via)i;
    return EXIT_OK;
}

static int set_nan(cli_options *o, const char *value) {
    static const char *const words[] = {"propagate", "skip"};
    int i = choose(value, words, 2);
    if (i < 0) return bad("nan", value, "propagate or skip");
    o->call.nan = (cured_nan)i;
    return EXIT_OK;
}

static int set_overflow(cli_options *o, const char *value) {
    static const char *const words[] = {"error", "wrap"};
    int i = choose(value, words, 2);
    if (i < 0) return bad("overflow", value, "error or wrap");
    o->call.overflow = (cured_overflow)i;
    return EXIT_OK;
}

static int set_ddof(cli_options *o, const char *value) {
    return number(value, &o->call.ddof) ? EXIT_OK : bad("ddof", value, "a non-negative integer");
}

static int set_result_dtype(cli_options *o, const char *value) {
    cured_error error;
    if (strcmp(value, "i128") == 0) {
        o->call.result_dtype = CURED_I128;
        return EXIT_OK;
    }
    if (cured_dtype_parse(value, &o->call.result_dtype, &error) != CURED_OK)
        return cli_fail(EXIT_USAGE, "--result-dtype: %s", error.text);
    return EXIT_OK;
}

static int set_axis(cli_options *o, const char *value) {
    uint64_t n;
    bool negative = *value == '-';
    if (!number(value + negative, &n) || n > INT32_MAX) return bad("axis", value, "a dimension: 0, 1, ... or -1, ...");
    o->axis_given = true;
    o->axis = negative ? -(int64_t)n : (int64_t)n;
    return EXIT_OK;
}

static int set_shape(cli_options *o, const char *value) {
    static const char must[] = "the lengths of up to 64 dimensions, with commas between them";
    for (o->dims = 0; o->dims < CLI_MAX_DIMS; value++) {
        char digits[24];
        value += strspn(value, " ");
        size_t len = strcspn(value, ", ");
        if (len == 0 || len >= sizeof digits) return bad("shape", value, must);
        memcpy(digits, value, len);
        digits[len] = '\0';
        if (!number(digits, &o->shape[o->dims++])) return bad("shape", digits, must);
        value += len;
        value += strspn(value, " ");
        if (*value == '\0') return EXIT_OK;
        if (*value != ',') break;
    }
    return bad("shape", value, must);
}

static int set_keepdims(cli_options *o, const char *value) {
    (void)value;
    o->keepdims = true;
    return EXIT_OK;
}

static int set_output(cli_options *o, const char *value) {
    o->output = value;
    return *value != '\0' ? EXIT_OK : bad("output", value, "the name of a file");
}

static int set_partial(cli_options *o, const char *value) {
    (void)value;
    o->call.partial = true;
    return EXIT_OK;
}

static int set_first(cli_options *o, const char *value) {
    return number(value, &o->call.first) ? EXIT_OK : bad("first", value, "an index");
}

static int set_kernel(cli_options *o, const char *value) {
    o->call.kernel = value;
    return *value != '\0' ? EXIT_OK : bad("kernel", value, "the name of a kernel");
}

static int set_local(cli_options *o, const char *value) {
    (void)value;
    o->local = true;
    return EXIT_OK;
}

static int set_raw(cli_options *o, const char *value) {
    (void)value;
    o->raw = true;
    return EXIT_OK;
}

static int set_json(cli_options *o, const char *value) {
    (void)value;
    o->json = true;
    return EXIT_OK;
}

static int set_total(cli_options *o, const char *value) {
    (void)value;
    o->total = true;
    return EXIT_OK;
}

static int set_no_progress(cli_options *o, const char *value) {
    (void)value;
    o->no_progress = true;
    return EXIT_OK;
}

static int set_quiet(cli_options *o, const char *value) {
    (void)value;
    o->quiet = true;
    return EXIT_OK;
}

static int set_timing(cli_options *o, const char *value) {
    (void)value;
    o->timing = true;
    return EXIT_OK;
}

static const struct option options[] = {
    {"connect", "ADDRESS",
     "unix:PATH, tcp:HOST:PORT, tls:HOST:PORT, embedded: or auto:; else CURED_CONNECT, else auto: (below)",
     set_connect},
    {"tls-ca", "FILE", "PEM file of the CAs that sign the daemon's certificate; else CURED_TLS_CA, else the system's",
     set_tls_ca},
    {"tls-certificate", "FILE", "PEM file of a certificate to show; else CURED_CLIENT_CERTIFICATE",
     set_tls_certificate},
    {"tls-key", "FILE", "PEM file of its key; else CURED_CLIENT_KEY", set_tls_key},
    {"token-file", "FILE", "a token, in a file that nobody else may read; else CURED_CLIENT_TOKEN", set_token_file},
    {"dtype", "TYPE", "bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 (default) f64; or NumPy's float32, '<f4', '>f4'",
     set_dtype},
    {"ops", "OP,OP,...", "the ops of reduce and merge", set_ops},
    {"offset", "BYTES", "start so many bytes into the file (.npy: into its array)", set_offset},
    {"count", "ELEMENTS", "take so many elements instead of all", set_count},
    {"raw", NULL, "take every byte of the file for elements, whatever it looks like", set_raw},
    {"total", NULL, "a last line for all files as one array, in their order; indices count through it", set_total},
    {"via", "WAY", "auto, descriptor (the daemon reads the file) or stream (its bytes are sent)", set_via},
    {"timeout", "TIME", "give up after so long: 5, 0.5s, 500ms, 2m", set_timeout},
    {"nan", "POLICY", "propagate (default) or skip", set_nan},
    {"ddof", "N", "for var and std; default 0", set_ddof},
    {"result-dtype", "TYPE", "round the exact result to this type instead of the op's own", set_result_dtype},
    {"overflow", "RULE", "for prod of integers: error (default) or wrap", set_overflow},
    {"axis", "K", "reduce along dimension K (negative: from the end): an answer for every row", set_axis},
    {"shape", "A,B,C", "the shape of a raw file, in C order", set_shape},
    {"keepdims", NULL, "the reduced dimension stays in the result's shape, as 1", set_keepdims},
    {"output", "FILE", "write arrays as .npy ({op} becomes the op's name), or the partial, to FILE", set_output},
    {"partial", NULL, "write the partial, to be merged later, instead of values", set_partial},
    {"first", "N", "the file begins with element N of a larger array", set_first},
    {"kernel", "NAME", "let one CUDA kernel of the ladder alone do it: v7_shuffle, ... (docs/KERNELS.md)", set_kernel},
    {"local", NULL, "merge here, without a daemon", set_local},
    {"json", NULL, "print one line of JSON, also of an error: {\"error\", \"status\", \"exit\"}", set_json},
    {"no-progress", NULL, "no bar on a terminal for calls that take longer than half a second", set_no_progress},
    {"quiet", NULL, "nothing on standard error but errors", set_quiet},
    {"timing", NULL, "print what took how long, on standard error", set_timing},
};
enum { OPTIONS = sizeof options / sizeof options[0] };

void cli_help(void) {
    puts("Usage: cured-client COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:");
    printf("  %-32s %s\n", "OP FILE...", "one op over a file (- is standard input), or a line for each of several:");
    printf("  %-32s", "");
    size_t column = 35;
    for (size_t i = 0; cured_op_list(i) != NULL; i++) {
        const char *name = cured_op_list(i);
        if (column + strlen(name) + 1 > 100) {
            printf("\n  %-32s", "");
            column = 35;
        }
        printf(" %s", name);
        column += strlen(name) + 1;
    }
    putchar('\n');
    for (size_t i = 0; cli_command_list(i) != NULL; i++) {
        char left[64];
        const cli_command *c = cli_command_list(i);
        snprintf(left, sizeof left, "%s %s", c->name, c->arguments);
        printf("  %-32s %s\n", left, c->help);
    }
    puts("\nOptions:");
    for (size_t i = 0; i < OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", options[i].name, options[i].argument != NULL ? " " : "",
                 options[i].argument != NULL ? options[i].argument : "");
        printf("  %-32s %s\n", left, options[i].help);
    }
    printf("  %-32s %s\n  %-32s %s\n", "--help", "this text", "--version", "the version");
    puts(
        "\nFiles are raw elements, NumPy's .npy, or an array of a .npz: a.npz:x. Parquet, HDF5, text and others are "
        "refused\n"
        "by their first bytes; with --dtype only if the name says so too, with --offset or --raw never. The answer\n"
        "alone goes to standard output; with --axis a row of the last dimension per line.\n"
        "Arrays in Fortran order stay so. bf16 is written as NumPy writes ml_dtypes.bfloat16 ('<V2'); i128 has no\n"
        ".npy form and is text only.\n"
        "auto: asks the daemon at $XDG_RUNTIME_DIR/cured.sock or /run/cured/cured.sock, for root the other way\n"
        "round. Where nobody listens this process answers by itself, as with embedded:, on all cores.\n"
        "Exit codes: 0; 64 usage; 65 bad data, or an op without a value; 66 no input; 69 cannot connect, or no GPU\n"
        "for --kernel; 74 input or output failed; 75 try again later; 76 protocol; 77 denied.");
}

static const char *option_name(size_t index) { return index < OPTIONS ? options[index].name : NULL; }

/* Handles argv[*i], an option; takes its value from "=VALUE" or the next word. */
static int parse_option(int argc, char **argv, int *i, cli_options *o) {
    const char *word = argv[*i] + 2;
    size_t len = strcspn(word, "=");
    for (size_t k = 0; k < OPTIONS; k++) {
        const struct option *option = &options[k];
        if (strlen(option->name) != len || memcmp(option->name, word, len) != 0) continue;
        const char *value = word[len] == '=' ? word + len + 1 : NULL;
        if (option->argument == NULL) {
            if (value != NULL) return cli_fail(EXIT_USAGE, "--%s takes no value", option->name);
        } else if (value == NULL) {
            if (*i + 1 >= argc) return cli_fail(EXIT_USAGE, "--%s wants %s", option->name, option->argument);
            value = argv[++*i];
        }
        return option->set(o, value);
    }
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)len, word);
    const char *meant = cli_nearest(name, option_name);
    return cli_fail(EXIT_USAGE, "unknown option '--%.*s'%s%s%s; see cured-client --help", (int)len, word,
                    meant != NULL ? " (did you mean --" : "", meant != NULL ? meant : "", meant != NULL ? "?)" : "");
}

/* Options that do not go together. */
static int check_together(const cli_options *o, bool reduces, bool merge) {
    if ((o->axis_given || o->dims != 0 || o->call.partial || o->call.first != 0 || o->output != NULL) && !reduces)
        return cli_fail(EXIT_USAGE, "%s takes none of --axis, --shape, --partial, --first, --output", o->command);
    if (merge && (o->axis_given || o->dims != 0 || o->call.first != 0 || o->offset_given || o->count_given ||
                  o->dtype != CURED_DTYPE_DEFAULT || o->raw || o->via != VIA_AUTO))
        return cli_fail(EXIT_USAGE,
                        "merge takes partials, not arrays: --dtype, --raw, --offset, --count, --shape, --axis, "
                        "--first and --via are not for it");
    if (o->call.kernel != NULL && (!reduces || merge))
        return cli_fail(EXIT_USAGE, "--kernel belongs to reductions of one array");
    if (o->total && (!reduces || merge || o->call.kernel != NULL || o->axis_given || o->call.partial))
        return cli_fail(EXIT_USAGE, "--total is for OP, reduce and describe, without --axis, --partial and --kernel");
    if (reduces && !merge && o->file_count > 1 && (o->axis_given || o->call.partial))
        return cli_fail(EXIT_USAGE, "--axis and --partial take one file at a time: '%s' and '%s'", o->file,
                        o->files[1]);
    if (o->local && !merge) return cli_fail(EXIT_USAGE, "--local belongs to merge");
    if (o->keepdims && !o->axis_given) return cli_fail(EXIT_USAGE, "--keepdims belongs to --axis");
    if (o->axis_given && (o->call.partial || o->call.first != 0))
        return cli_fail(EXIT_USAGE, "--axis goes with neither --partial nor --first");
    if (o->output != NULL && !o->axis_given && !o->call.partial)
        return cli_fail(EXIT_USAGE, "--output is for the arrays of --axis and for --partial");
    if (o->json && (o->output != NULL || o->call.partial))
        return cli_fail(EXIT_USAGE, "--json goes with neither --output nor --partial");
    if (o->axis_given && o->output != NULL && o->op_count != 1 && strstr(o->output, "{op}") == NULL)
        return cli_fail(EXIT_USAGE, "--output is '%s', must hold {op} when there are several ops", o->output);
    return o->call.partial ? cli_check_binary(o->output) : EXIT_OK;
}

static int check(cli_options *o) {
    const cli_command *command = o->command != NULL ? cli_find_command(o->command) : NULL;
    if (o->command == NULL) return cli_fail(EXIT_USAGE, "no command given; see cured-client --help");
    if (command == NULL) return cli_unknown("unknown command", o->command, true);
    if (o->file_count > 1 && !command->many_files)
        return cli_fail(EXIT_USAGE, "one file at a time: '%s' and '%s'", o->file, o->files[1]);
    if (command->wants_file && o->file == NULL)
        return cli_fail(EXIT_USAGE, "%s wants a file, or - for standard input", o->command);
    if (!command->wants_file && o->file != NULL)
        return cli_fail(EXIT_USAGE, "%s takes no argument ('%s')", o->command, o->file);
    if (command->wants_ops && o->op_count == 0) return cli_fail(EXIT_USAGE, "%s wants --ops OP,OP,...", o->command);
    if (!command->wants_ops && o->op_count != 0) return cli_fail(EXIT_USAGE, "--ops belongs to reduce and merge");
    if (command->run == cmd_reduce && !command->wants_ops) {
        cured_op_parse(o->command, &o->ops[0], NULL);
        o->op_count = 1;
    }
    return check_together(o, command->wants_file, command->run == cmd_merge);
}

int cli_parse(int argc, char **argv, cli_options *o, bool *show_help, bool *show_version) {
    memset(o, 0, sizeof *o);
    o->call = (cured_options)CURED_OPTIONS_INIT;
    *show_help = *show_version = false;
    for (int i = 1; i < argc; i++) /* a mistake before --json is to be in JSON too */
        if (strcmp(argv[i], "--json") == 0) cli_report_as(true, false);
    o->files = argv + 1; /* gathered at argv's front, whose words are behind us */
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_arguments && word[0] == '-' && word[1] != '\0') {
            if (strcmp(word, "--") == 0) {
                only_arguments = true;
            } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
                *show_help = true;
                return EXIT_OK;
            } else if (strcmp(word, "--version") == 0) {
                *show_version = true;
                return EXIT_OK;
            } else if (word[1] != '-') {
                return cli_fail(EXIT_USAGE, "unknown option '%s'; see cured-client --help (a file of that name: ./%s)",
                                word, word);
            } else {
                int code = parse_option(argc, argv, &i, o);
                if (code != EXIT_OK) return code;
            }
        } else if (o->command == NULL) {
            o->command = word;
        } else {
            argv[1 + o->file_count++] = argv[i];
        }
    }
    if (o->file_count != 0) o->file = o->files[0];
    cli_report_as(o->json, o->quiet);
    return check(o);
}
