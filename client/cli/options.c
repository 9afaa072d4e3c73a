/* options: the command line, from the table in options.def.
 *
 * Thread: one. Owner: strings stay argv's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/words.h"
#include "client/cli/cli.h"
#include "kernels/core/dtype.h"

struct option {
    const char *name, *argument; /* argument: NULL for a flag */
    int (*set)(cli_options *o, const char *value);
    int of;
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

/* Options that are taken as they are. cmd_token reads until, may and limits, column.c column and delimiter. */
#define SET_TEXT(name)                                         \
    static int set_##name(cli_options *o, const char *value) { \
        o->name = value;                                       \
        return EXIT_OK;                                        \
    }
SET_TEXT(connect)
SET_TEXT(tls_ca)
SET_TEXT(tls_certificate)
SET_TEXT(tls_key)
SET_TEXT(token_file)
SET_TEXT(until)
SET_TEXT(may)
SET_TEXT(limits)
SET_TEXT(manifest)
SET_TEXT(check)
SET_TEXT(filter)
SET_TEXT(column)
SET_TEXT(delimiter)

#define SET_FLAG(name, member)                                 \
    static int set_##name(cli_options *o, const char *value) { \
        (void)value;                                           \
        o->member = true;                                      \
        return EXIT_OK;                                        \
    }
SET_FLAG(keepdims, keepdims)
SET_FLAG(text, text)
SET_FLAG(header, header)
SET_FLAG(local, local)
SET_FLAG(raw, raw)
SET_FLAG(finite, finite)
SET_FLAG(json, json)
SET_FLAG(once, once)
SET_FLAG(total, total)
SET_FLAG(no_progress, no_progress)
SET_FLAG(quiet, quiet)
SET_FLAG(timing, timing)
SET_FLAG(partial, call.partial)

/* Our names, and those that NumPy and ml_dtypes have. */
static const char *dtype_at(size_t index) {
    static const char *const names[] = {
#define CR_DTYPE(symbol, id, name, size, kind, numpy, ...) name, numpy,
#include "kernels/core/dtype.def"
#undef CR_DTYPE
    };
    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}

static int bad_dtype(const char *option, const char *value, const cured_error *error) {
    const bool unknown = strncmp(error->text, "unknown", strlen("unknown")) == 0; /* others have advice of their own */
    const char *meant = unknown ? cli_nearest(value, dtype_at) : NULL;
    return cli_fail(EXIT_USAGE, "--%s: %s%s%s%s", option, error->text, meant != NULL ? "; did you mean " : "",
                    meant != NULL ? meant : "", meant != NULL ? "?" : "");
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
    if (status != CURED_OK) return bad_dtype("dtype", value, &error);
    if (cr_dtype_is_input((cr_dtype)o->dtype)) return EXIT_OK;
    if (o->dtype == CURED_BIGINT)
        return cli_fail(EXIT_USAGE, "--dtype: int is 4 bytes in C and 8 in NumPy: say i32 or i64");
    return cli_fail(EXIT_USAGE, "--dtype: only answers are of %s; an array is of i64, f64 or another type of numbers",
                    value);
}

/* A second --ops adds to the first. */
static int set_ops(cli_options *o, const char *value) {
    const char *given = value;
    while (true) {
        char name[32];
        value += strspn(value, " ");
        size_t len = strcspn(value, ", ");
        size_t end = len + strspn(value + len, " ");
        if (len == 0 || len >= sizeof name || (value[end] != ',' && value[end] != '\0'))
            return bad("ops", given, "names of ops with commas between them");
        memcpy(name, value, len);
        name[len] = '\0';
        if (o->op_count == CURED_MAX_OPS) return cli_fail(EXIT_USAGE, "--ops names more than %d ops", CURED_MAX_OPS);
        cured_op *op = &o->ops[o->op_count];
        if (strcmp(name, "zeros") == 0)
            return cli_fail(EXIT_USAGE,
                            "--ops: zeros is no op: zeros are the elements less count_nonzero, so ask for that");
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
    static const char must[] = "a time above 0 and up to 24 hours: seconds, or with unit as in 500ms, 10s, 5min, 1h";
    char *end;
    errno = 0;
    double t = strtod(value, &end);
    if (end == value || errno != 0 || !((*value >= '0' && *value <= '9') || *value == '.'))
        return bad("timeout", value, must);
    if (strcmp(end, "ms") == 0)
        t /= 1000;
    else if (strcmp(end, "min") == 0)
        t *= 60;
    else if (strcmp(end, "h") == 0)
        t *= 3600;
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

static int set_q(cli_options *o, const char *value) { return cli_take_shares(o, value); }

static int set_method(cli_options *o, const char *value) { return cli_take_method(o, value); }

static int set_result_dtype(cli_options *o, const char *value) {
    cured_error error;
    if (strcmp(value, "i128") == 0) {
        o->call.result_dtype = CURED_I128;
        return EXIT_OK;
    }
    if (cured_dtype_parse(value, &o->call.result_dtype, &error) != CURED_OK)
        return bad_dtype("result-dtype", value, &error);
    return EXIT_OK;
}

/* "1", "0,2", "-1": up to CLI_MAX_DIMS. A second --axis adds to the first. */
static int set_axis(cli_options *o, const char *value) {
    const char *rest = value;
    for (; o->axis_count < CLI_MAX_DIMS; rest++) {
        char digits[12];
        uint64_t n;
        rest += strspn(rest, " ");
        const bool negative = *rest == '-';
        const size_t length = strcspn(rest += negative, ", ");
        snprintf(digits, sizeof digits, "%.*s", (int)length, rest);
        rest += length;
        rest += strspn(rest, " ");
        if (length >= sizeof digits || !number(digits, &n) || n > INT32_MAX || (*rest != ',' && *rest != '\0')) break;
        o->axes[o->axis_count++] = negative ? -(int64_t)n : (int64_t)n;
        o->axis_given = o->call.statuses = *rest == '\0';
        if (o->axis_given) return EXIT_OK;
    }
    return bad("axis", value, "a dimension: 0, 1, ... or -1, ...; or several, as in 0,2");
}

static int set_keys(cli_options *o, const char *value) {
    o->keys = value;
    o->call.statuses = true;
    return *value != '\0' ? EXIT_OK : bad("keys", value, "the name of a file");
}

static int set_groups(cli_options *o, const char *value) {
    o->groups_given = true;
    return number(value, &o->groups) ? EXIT_OK : bad("groups", value, "a non-negative integer");
}

static int set_drop(cli_options *o, const char *value) {
    (void)value;
    o->drop = true;
    return EXIT_OK;
}

static int set_offsets(cli_options *o, const char *value) {
    o->offsets = value;
    o->call.statuses = true;
    return *value != '\0' ? EXIT_OK : bad("offsets", value, "the name of a file");
}

static int set_where(cli_options *o, const char *value) {
    o->where = value;
    return *value != '\0' ? EXIT_OK : bad("where", value, "the name of a file");
}

static int set_where_first(cli_options *o, const char *value) {
    o->where_first_given = number(value, &o->where_first);
    return o->where_first_given ? EXIT_OK : bad("where-first", value, "a number of elements");
}

static int set_second(cli_options *o, const char *value) {
    o->second = value;
    return *value != '\0' ? EXIT_OK : bad("second", value, "the name of a file");
}

static int set_shape(cli_options *o, const char *value) {
    const char *at = value;
    if (cli_numbers(&at, o->shape, CLI_MAX_DIMS, &o->dims) && *at == '\0') return EXIT_OK;
    return bad("shape", value, "the lengths of up to 64 dimensions, with commas between them");
}

/* Two words are forms of what is printed; files of these names are ./table and ./json. */
static int set_output(cli_options *o, const char *value) {
    o->table = strcmp(value, "table") == 0;
    if (strcmp(value, "json") == 0) cli_report_as(o->json = true, o->quiet);
    o->output = o->table || strcmp(value, "json") == 0 ? NULL : value;
    return *value != '\0' ? EXIT_OK : bad("output", value, "the name of a file");
}

static int set_first(cli_options *o, const char *value) {
    return number(value, &o->call.first) ? EXIT_OK : bad("first", value, "an index");
}

static int set_within(cli_options *o, const char *value) { return cli_take_within(o, value); }

static int set_start(cli_options *o, const char *value) {
    o->start = value;
    return EXIT_OK;
}

static int set_kernel(cli_options *o, const char *value) {
    o->call.kernel = value;
    return *value != '\0' ? EXIT_OK : bad("kernel", value, "the name of a kernel");
}

static int set_days(cli_options *o, const char *value) {
    uint64_t days;
    if (!number(value, &days) || days == 0 || days > 36500)
        return bad("days", value, "a number of days from 1 to 36500");
    o->days = (uint32_t)days;
    return EXIT_OK;
}

static const struct option options[] = {
#define CLI_OPTION(name, setter, argument, of, words, help) {name, argument, set_##setter, of},
#include "client/cli/options.def"
#undef CLI_OPTION
};
enum { OPTIONS = sizeof options / sizeof options[0] };
_Static_assert(OPTIONS <= 64, "each option of the table has a bit in `given`");

bool cli_has_option(const char *name) {
    const char *const *without = cli_program_here.without;
    while (without != NULL && *without != NULL && strcmp(*without, name) != 0) without++;
    return without == NULL || *without == NULL;
}

static size_t own_options(void) {
    size_t count = 0;
    while (cli_program_here.own != NULL && cli_program_here.own[count].name != NULL) count++;
    return count;
}

/* An option of this program; false: there are no more. */
static bool option_at(size_t index, struct option *option) {
    for (size_t i = 0; i < OPTIONS; i++)
        if (cli_has_option(options[i].name) && index-- == 0) {
            *option = options[i];
            return true;
        }
    if (index >= own_options()) return false;
    const cli_option *own = &cli_program_here.own[index];
    *option = (struct option){own->name, own->argument, own->set, CLI_OF_ALL};
    return true;
}

static const char *option_name(size_t index) {
    struct option option;
    return option_at(index, &option) ? option.name : NULL;
}

const cli_command *cli_command_list(size_t index) {
    return index < cli_program_here.command_count ? &cli_program_here.commands[index] : NULL;
}

const cli_command *cli_find_command(const char *name) {
    for (size_t i = 0; i < cli_program_here.command_count; i++)
        if (strcmp(cli_program_here.commands[i].name, name) == 0) return &cli_program_here.commands[i];
    for (size_t i = 0; cured_op_list(i) != NULL; i++)
        if (strcmp(cured_op_list(i), name) == 0) return cli_program_here.op;
    return NULL;
}

bool cli_given(const cli_options *o, const char *name) {
    struct option option;
    for (size_t k = 0; option_at(k, &option); k++)
        if (strcmp(option.name, name) == 0) return (o->given >> k & 1) != 0;
    return false;
}

/* Handles an option, and its value where that is the next word. */
static int parse_option(cr_words *words, const cr_word *word, cli_options *o) {
    const int len = (int)word->length;
    struct option option;
    for (size_t k = 0; option_at(k, &option); k++) {
        if (!cr_word_is(word, option.name)) continue;
        if (option.of != CLI_OF_ALL) o->given |= (uint64_t)1 << k; /* none of a program's own is at a place so late */
        if (option.argument == NULL && word->value != NULL)
            return cli_fail(EXIT_USAGE, "--%s takes no value", option.name);
        const char *value = option.argument != NULL ? cr_words_value(words, word) : NULL;
        if (option.argument != NULL && value == NULL)
            return cli_fail(EXIT_USAGE, "--%s wants %s", option.name, option.argument);
        return option.set(o, value);
    }
    char name[32];
    snprintf(name, sizeof name, "%.*s", len, word->name);
    const char *meant = cli_nearest(name, option_name);
    return cli_fail(EXIT_USAGE, "unknown option '--%.*s'%s%s%s; see %s --help", len, word->name,
                    meant != NULL ? " (did you mean --" : "", meant != NULL ? meant : "", meant != NULL ? "?)" : "",
                    cli_program_here.name);
}

/* Options of other commands: whoever gives one expects something of it. */
static int check_strays(const cli_options *o, const cli_command *command) {
    struct option option;
    for (size_t k = 0; option_at(k, &option); k++)
        if (option.of != CLI_OF_ALL && (o->given >> k & 1) != 0 && (option.of & command->takes) == 0)
            return cli_fail(EXIT_USAGE, "%s takes no --%s; see %s help %s", o->command, option.name,
                            cli_program_here.name, o->command);
    return EXIT_OK;
}

/* Options that the ops do not take. */
static int check_ops(const cli_options *o, const cli_command *command) {
    const cured_op *ops = o->ops;
    const size_t own = strcmp(command->name, "describe") == 0 ? cli_describe_ops(&ops) : o->op_count;
    return cli_check_taken(o, ops, own, (command->takes & CLI_OF_ARRAYS) != 0);
}

/* Checkpoints have folders of their own, and the ranks of cured-mpi must see the same files. */
static int expand(cli_options *o, const cli_command *command) {
    const bool every = o->text || o->raw || o->dtype != CURED_DTYPE_DEFAULT || (command->takes & CLI_OF_MERGE) != 0;
    const bool expands = (command->takes & CLI_MANY) != 0 && (command->takes & CLI_OF_WEIGHTS) == 0;
    return expands && !cli_program_here.whole ? cli_expand(o, every) : EXIT_OK;
}

static int check(cli_options *o) {
    struct stat found;
    const cli_command *command = o->command != NULL ? cli_find_command(o->command) : NULL;
    if (o->command == NULL) return cli_fail(EXIT_USAGE, "no command given; see %s --help", cli_program_here.name);
    if (command == NULL && stat(o->command, &found) == 0)
        return cli_fail(EXIT_USAGE, "'%.40s' is no command but a %s: say first what is asked of it, as %s describe %s",
                        o->command, S_ISDIR(found.st_mode) ? "folder" : "file", cli_program_here.name,
                        S_ISDIR(found.st_mode) ? "FOLDER" : "FILE");
    if (command == NULL) return cli_unknown("unknown command", o->command, true);
    const bool ops = (command->takes & CLI_OPS) != 0, files = (command->takes & CLI_FILES) != 0;
    const int expanded = expand(o, command);
    if (expanded != EXIT_OK) return expanded;
    if (o->file_count > 1 && !(command->takes & CLI_MANY))
        return cli_fail(EXIT_USAGE, "one file at a time: '%s' and '%s'", o->file, o->files[1]);
    if (files && o->file == NULL)
        return cli_fail(EXIT_USAGE, "%s wants %s", o->command,
                        (command->takes & (CLI_OF_FILES | CLI_OF_PARTIALS)) == 0 ? command->arguments
                                                                                 : "a file, or - for standard input");
    if (!files && !(command->takes & CLI_PERHAPS) && o->file != NULL)
        return cli_fail(EXIT_USAGE, "%s takes no argument ('%s')", o->command, o->file);
    if (ops && o->op_count == 0) return cli_fail(EXIT_USAGE, "%s wants --ops OP,OP,...", o->command);
    if (!ops && o->op_count != 0 && (command->takes & CLI_OF_WEIGHTS) == 0)
        return cli_fail(EXIT_USAGE, "--ops belongs to reduce and merge");
    if (command == cli_program_here.op) {
        cured_op_parse(o->command, &o->ops[0], NULL);
        o->op_count = 1;
    }
    int code = cli_spread_shares(o);
    if (code != EXIT_OK) return code;
    const bool reduces = (command->takes & (CLI_OF_FILES | CLI_OF_PARTIALS)) != 0;
    if ((command->takes & CLI_OF_TOKENS) != 0 && o->table)
        return cli_fail(EXIT_USAGE, "%s has no table (a file of that name: ./table)", o->command);
    if ((command->takes & CLI_OF_TOKENS) == 0)
        code = cli_check_together(o, reduces, strcmp(command->name, "merge") == 0);
    if (code == EXIT_OK) code = check_strays(o, command);
    return code == EXIT_OK ? check_ops(o, command) : code;
}

int cli_parse(int argc, char **argv, cli_options *o, bool *show_help, bool *show_version) {
    memset(o, 0, sizeof *o);
    o->call = (cured_options)CURED_OPTIONS_INIT;
    *show_help = *show_version = false;
    for (int i = 1; i < argc; i++) /* a mistake before --json is to be in JSON too */
        if (strcmp(argv[i], "--json") == 0) cli_report_as(true, false);
    o->files = argv + 1; /* gathered at argv's front, whose words are behind us */
    cr_words words = {argc, argv, 1};
    cr_word word;
    bool only_arguments = false;
    while (cr_words_next(&words, &word)) {
        if (!only_arguments && word.text[0] == '-' && word.text[1] != '\0') {
            if (strcmp(word.text, "--") == 0) {
                only_arguments = true;
            } else if (word.value == NULL && (cr_word_is(&word, "help") || cr_word_is(&word, "version"))) {
                *(cr_word_is(&word, "help") ? show_help : show_version) = true;
                return EXIT_OK;
            } else if (word.name == NULL) {
                return cli_fail(EXIT_USAGE, "unknown option '%s'; see %s --help (a file of that name: ./%s)", word.text,
                                cli_program_here.name, word.text);
            } else {
                int code = parse_option(&words, &word, o);
                if (code != EXIT_OK) return code;
            }
        } else if (o->command == NULL) {
            o->command = word.text;
        } else {
            argv[1 + o->file_count++] = argv[words.next - 1];
        }
    }
    if (o->file_count != 0) o->file = o->files[0];
    cli_report_as(o->json, o->quiet);
    return check(o);
}
