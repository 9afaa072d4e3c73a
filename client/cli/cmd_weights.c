/* cured-client weights FILE|FOLDER|INDEX: a row for each tensor of a checkpoint, or what two checkpoints, or a checkpoint and a
 * manifest, differ in.
 *
 * Thread: one, beside those of weights_run(). Owner: checkpoints live inside cmd_weights. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "client/cli/checkpoint.h"

bool cli_columns_have(const cli_columns *c, cured_op op) {
    for (size_t i = 0; i < c->count; i++)
        if (c->ops[i] == op) return true;
    return false;
}

static void add(cli_columns *c, cured_op op) {
    if (c->count < CURED_MAX_OPS && !cli_columns_have(c, op)) c->ops[c->count++] = op;
}

static cured_op named(const char *name) {
    cured_op op;
    return cured_op_parse(name, &op, NULL) == CURED_OK ? op : (cured_op)0;
}

/* compare: the digest alone counts. */
static void settle_columns(const cli_options *o, bool compare, cli_columns *c) {
    *c = (cli_columns){.own = o->op_count == 0 && !compare,
                       .digest = named("digest"),
                       .nans = named("count_nan"),
                       .infs = named("count_inf"),
                       .nonzeros = named("count_nonzero")};
    for (size_t i = 0; i < o->op_count; i++) add(c, o->ops[i]);
    if (c->own) c->count = weights_own_ops(c->ops);
    if (o->finite) {
        add(c, c->nans);
        add(c, c->infs);
    }
    if (compare || o->manifest != NULL) add(c, c->digest);
}

/* What the callbacks of weights_run() know. */
struct asking {
    const cli_options *o;
    bool connected;
    int code; /* of a connection that was refused, after its sentence */
    cured_options call;
    uint64_t bytes; /* of all tensors */
};

static cured_status connect_one(void *user, cured_conn **conn, cured_error *error) {
    struct asking *a = user;
    cli_options one = *a->o;
    if (a->connected) return cli_connect_again(a->o, conn, error);
    one.threads = 1;
    a->code = cli_connect(&one, false, conn);
    a->connected = a->code == EXIT_OK;
    if (a->connected) return CURED_OK;
    *error = (cured_error){.code = CURED_UNAVAILABLE};
    return error->code;
}

static bool look(void *user, uint64_t done, uint64_t total) {
    struct asking *a = user;
    a->call.on_progress(NULL, done, total, NULL);
    return true;
}

static int open_one(const cli_options *o, bool comparing, const char *path, cli_checkpoint *c) {
    cured_error error;
    c->path = path;
    if (weights_open(path, &c->table, &error) != CURED_OK) return cli_fail(cli_exit_code(error.code), "%s", error.text);
    for (size_t i = 0; i < WEIGHTS_MOST_NOTES && c->table.notes[i] != NULL; i++) cli_warn("%s", c->table.notes[i]);
    const size_t all = c->all = c->table.count;
    if (o->filter != NULL) weights_filter(&c->table, o->filter);
    if (all != 0 && c->table.count == 0 && !comparing)
        return cli_fail(EXIT_DATA, "%s: no name of its %zu tensors matches --filter '%s'", path, all, o->filter);
    return EXIT_OK;
}

/* A tensor whose size is not known can be shown, and not be compared. */
static int check_sized(const cli_checkpoint *c) {
    char name[CLI_NAME_BYTES];
    for (size_t i = 0; i < c->table.count; i++)
        if (!c->table.tensors[i].sized)
            return cli_fail(EXIT_DATA, "%s: tensor '%s' is of %s, which is not known here: it has no digest", c->path,
                            cli_printable(c->table.tensors[i].name, name), c->table.tensors[i].type);
    return EXIT_OK;
}

/* A manifest in the place of a file that was read would be the end of that file. */
static int check_manifest(const cli_options *o, const cli_checkpoint *c) {
    struct stat manifest, file;
    if (o->manifest == NULL || strcmp(o->manifest, "-") == 0 || stat(o->manifest, &manifest) != 0) return EXIT_OK;
    for (size_t i = 0; i < c->table.file_count; i++)
        if (fstat(c->table.files[i].fd, &file) == 0 && file.st_dev == manifest.st_dev && file.st_ino == manifest.st_ino)
            return cli_fail(EXIT_USAGE,
                            "--manifest '%s' is a file of the checkpoint '%s', which would be lost: name another file",
                            o->manifest, c->path);
    return EXIT_OK;
}

static int ask_one(const cli_options *o, const cli_columns *columns, cli_checkpoint *c) {
    struct asking a = {.o = o, .call = o->call};
    cured_error error = {.code = CURED_OK};
    cli_progress_begin(o, c->path, &a.call);
    const weights_ask ask = {.ops = columns->ops,
                             .op_count = columns->count,
                             .digest = cli_columns_have(columns, columns->digest) ? columns->digest : (cured_op)0,
                             .call = &o->call,
                             .threads = o->threads,
                             .connect = connect_one,
                             .look = a.call.on_progress != NULL ? look : NULL,
                             .user = &a};
    cured_values *whole = NULL;
    for (size_t i = 0; i < c->table.count; i++) a.bytes += c->table.tensors[i].bytes;
    const uint64_t start_ns = cr_now_ns();
    cured_status status = weights_run(&c->table, &ask, &c->answers, &error);
    cli_progress_clear();
    if (o->timing) {
        const double seconds = (double)(cr_now_ns() - start_ns) / 1e9;
        fprintf(stderr, "%s: %.3f ms, %.2f GB/s\n", c->path, seconds * 1e3, (double)a.bytes / 1e9 / seconds);
    }
    if (status != CURED_OK && a.code != EXIT_OK) return a.code;
    if (status == CURED_OK && ask.digest != 0) status = weights_digest(&c->table, &c->answers, &ask, &whole, &error);
    if (status != CURED_OK) return cli_fail(cli_exit_code(status), "%s (%s)", error.text, cured_status_name(status));
    if (whole != NULL) cured_value_text(cured_values_get(whole, 0), c->digest, sizeof c->digest);
    cured_values_free(whole);
    return EXIT_OK;
}

/* Numbers that are not finite end so where --finite was given, whatever else is found. */
static int check_finite(const cli_checkpoint *c, const cli_columns *columns) {
    const cli_totals t = cli_checkpoint_totals(c, columns);
    if (t.bytes_alone != 0)
        cli_warn("%s: types that cured does not reduce: the numbers of %zu of %llu tensors were not looked at", c->path,
                 t.bytes_alone, (unsigned long long)t.tensors);
    if (t.strange == 0) return EXIT_OK;
    cli_lacking("%s: NaN or infinity in %zu of %llu tensors (count_nan %llu, count_inf %llu)", c->path, t.strange,
                (unsigned long long)t.tensors, (unsigned long long)t.nans, (unsigned long long)t.infs);
    return EXIT_DATA;
}

/* With a manifest, or with each other. */
static int compare(const cli_options *o, const cli_columns *columns, const cli_checkpoint *c) {
    cli_entries sides[2] = {{0}, {0}};
    int code = o->check != NULL ? cli_manifest_read(o->check, o->filter, &sides[0])
                                : cli_entries_of(&c[0], columns, &sides[0]);
    if (code == EXIT_OK) code = cli_entries_of(&c[o->check != NULL ? 0 : 1], columns, &sides[1]);
    if (code == EXIT_OK && o->filter != NULL && sides[0].count + sides[1].count == 0 &&
        sides[0].all + sides[1].all != 0)
        code = cli_fail(EXIT_DATA, "no tensor of '%s' and of '%s' has a name that matches --filter '%s'",
                        o->check != NULL ? o->check : c[0].path, c[o->check != NULL ? 0 : 1].path, o->filter);
    if (code == EXIT_OK) code = cli_entries_compare(&sides[0], &sides[1], o->json);
    cli_entries_free(&sides[0]);
    cli_entries_free(&sides[1]);
    return code;
}

static int show(const cli_options *o, const cli_columns *columns, const cli_checkpoint *c) {
    const bool table = o->manifest == NULL || strcmp(o->manifest, "-") != 0;
    cli_entries entries = {0};
    int code = o->manifest != NULL ? cli_entries_of(c, columns, &entries) : EXIT_OK;
    if (code == EXIT_OK && o->manifest != NULL) code = cli_manifest_write(o->manifest, &entries);
    if (code == EXIT_OK && table) code = cli_checkpoint_print(o, c, columns);
    cli_entries_free(&entries);
    return code;
}

static int check_together(const cli_options *o) {
    cured_error error;
    if (o->file_count > 2) return cli_fail(EXIT_USAGE, "weights takes one checkpoint, or two to compare");
    if (o->file_count == 2 && (o->manifest != NULL || o->check != NULL))
        return cli_fail(EXIT_USAGE, "--manifest and --check take one checkpoint: '%s' and '%s'", o->file, o->files[1]);
    if (o->table && (o->file_count == 2 || o->check != NULL))
        return cli_fail(EXIT_USAGE, "--output table is of one checkpoint: what two of them differ in has no columns");
    if (o->manifest != NULL && o->check != NULL) return cli_fail(EXIT_USAGE, "--manifest goes without --check");
    if ((o->file_count == 2 || o->check != NULL) && o->op_count != 0)
        return cli_fail(EXIT_USAGE, "checkpoints are compared by their digests: leave out --ops");
    if (o->manifest != NULL && *o->manifest == '\0') return cli_fail(EXIT_USAGE, "--manifest wants the name of a file");
    if (weights_check_ops(o->ops, o->op_count, &error) != CURED_OK) return cli_fail(EXIT_USAGE, "--%s", error.text);
    return EXIT_OK;
}

int cmd_weights(const cli_options *o) {
    static cli_checkpoint c[2];
    cli_columns columns;
    const bool comparing = o->check != NULL || o->file_count == 2;
    int code = check_together(o);
    settle_columns(o, comparing, &columns);
    for (size_t i = 0; i < o->file_count && code == EXIT_OK; i++) {
        code = open_one(o, comparing, o->files[i], &c[i]);
        if (code == EXIT_OK) code = check_manifest(o, &c[i]);
        if (code == EXIT_OK && (comparing || o->manifest != NULL)) code = check_sized(&c[i]);
    }
    for (size_t i = 0; i < o->file_count && code == EXIT_OK; i++) code = ask_one(o, &columns, &c[i]);
    if (code == EXIT_OK) code = comparing ? compare(o, &columns, c) : show(o, &columns, &c[0]);
    for (size_t i = 0; i < o->file_count && o->finite && (code == EXIT_OK || code == EXIT_DIFFERENT); i++) {
        const int finite = check_finite(&c[i], &columns);
        if (finite != EXIT_OK) code = finite;
    }
    for (size_t i = 0; i < 2; i++) {
        weights_answers_free(&c[i].answers);
        weights_close(&c[i].table);
    }
    return code;
}
