/* manifest: the tensors of a checkpoint as JSON, a line each, without a path or a time, so that equal checkpoints have equal manifests
 * byte for byte. It is read as what others wrote: nothing of it is believed that a comparison does not look at.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/checkpoint.h"
#include "client/weights/json.h"

enum { VERSION = 1 };

int cli_manifest_write(const char *path, const cli_entries *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL) return cli_fail(EXIT_IO, "out of memory");
    fprintf(f, "{\"cured_weights\": %d, \"digest\": \"%s\", \"tensors\": [", VERSION, e->digest);
    for (size_t i = 0; i < e->count; i++) {
        const cli_entry *t = &e->entries[i];
        cJSON *name = cJSON_CreateString(t->name);
        char *quoted = cJSON_PrintUnformatted(name);
        fprintf(f, "%s\n{\"name\": %s, \"type\": \"%s\", \"shape\": %s, \"bytes\": %llu, \"digest\": \"%s\"}",
                i != 0 ? "," : "", quoted != NULL ? quoted : "\"\"", t->type, t->shape, (unsigned long long)t->bytes,
                t->digest);
        cJSON_free(quoted);
        cJSON_Delete(name);
    }
    fputs("\n]}\n", f);
    const bool good = !ferror(f);
    int code = fclose(f) == 0 && good ? EXIT_OK : cli_fail(EXIT_IO, "out of memory");
    if (code == EXIT_OK) code = cli_replace(path, &(cli_piece){text, bytes}, 1);
    free(text);
    return code;
}

struct reading {
    const char *path, *filter;
    weights_json j;
    cli_entries *out;
    size_t room;
    const char *what; /* is wrong, where the reader says nothing */
};

static bool fail(struct reading *r, const char *what) {
    if (r->what == NULL) r->what = what;
    return false;
}

/* plain: of letters that a terminal shows as they are. */
static bool read_text(struct reading *r, bool plain, char **out) {
    if (*out != NULL) return fail(r, "a field is there twice");
    if (!weights_json_string(&r->j)) return false;
    for (const char *p = r->j.text; plain && *p != '\0'; p++)
        if (*p <= ' ' || *p > '~') return fail(r, "a type or a digest is no plain word");
    *out = strdup(r->j.text);
    return *out != NULL || fail(r, "there is no memory for it");
}

/* "[2,3]", as weights_shape_text() writes it. */
static bool read_shape(struct reading *r, char **out) {
    char text[WEIGHTS_SHAPE_BYTES];
    bool more = true;
    uint64_t number;
    size_t n = 0, dims = 0;
    if (*out != NULL || !weights_json_take(&r->j, '[')) return fail(r, "a shape is no list");
    text[n++] = '[';
    for (bool first = true;; first = false) {
        if (!weights_json_element(&r->j, first, &more)) return false;
        if (!more) break;
        if (dims++ == WEIGHTS_MAX_DIMS) return fail(r, "a shape has more than 64 dimensions");
        if (!weights_json_number(&r->j, &number)) return false;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%llu", first ? "" : ",", (unsigned long long)number);
    }
    strcpy(text + n, "]");
    *out = strdup(text);
    return *out != NULL || fail(r, "there is no memory for it");
}

static bool read_fields(struct reading *r, cli_entry *e) {
    bool more = true, bytes = false;
    if (!weights_json_take(&r->j, '{')) return fail(r, "a tensor is no object");
    for (bool first = true;; first = false) {
        bool good = true;
        if (!weights_json_key(&r->j, first, &more)) return false;
        if (!more) break;
        if (strcmp(r->j.text, "name") == 0)
            good = read_text(r, false, &e->name);
        else if (strcmp(r->j.text, "type") == 0)
            good = read_text(r, true, &e->type);
        else if (strcmp(r->j.text, "digest") == 0)
            good = read_text(r, true, &e->digest);
        else if (strcmp(r->j.text, "shape") == 0)
            good = read_shape(r, &e->shape);
        else if (strcmp(r->j.text, "bytes") == 0)
            good = bytes = weights_json_number(&r->j, &e->bytes);
        else
            good = weights_json_skip(&r->j);
        if (!good) return false;
    }
    if (e->name == NULL || e->type == NULL || e->digest == NULL || e->shape == NULL || !bytes)
        return fail(r, "a tensor lacks its name, type, shape, bytes or digest");
    return true;
}

static bool read_tensors(struct reading *r) {
    bool more = true;
    if (r->out->entries != NULL) return fail(r, "its tensors are there twice");
    if (!weights_json_take(&r->j, '[')) return fail(r, "its tensors are no list");
    for (bool first = true;; first = false) {
        if (r->out->count == r->room) {
            r->room = r->room == 0 ? 64 : 2 * r->room;
            cli_entry *entries = realloc(r->out->entries, r->room * sizeof *entries);
            if (entries == NULL) return fail(r, "there is no memory for it");
            r->out->entries = entries;
        }
        if (!weights_json_element(&r->j, first, &more)) return false;
        if (!more) return true;
        if (r->out->count == WEIGHTS_MAX_TENSORS) return fail(r, "it has too many tensors");
        cli_entry *e = &r->out->entries[r->out->count];
        *e = (cli_entry){0};
        r->out->count++;
        if (!read_fields(r, e)) return false;
    }
}

static bool read_all(struct reading *r) {
    bool more = true, versioned = false;
    uint64_t version;
    if (!weights_json_take(&r->j, '{')) return fail(r, "it is no manifest");
    for (bool first = true;; first = false) {
        bool good = true;
        if (!weights_json_key(&r->j, first, &more)) return false;
        if (!more) break;
        if (strcmp(r->j.text, "cured_weights") == 0) {
            good = versioned = weights_json_number(&r->j, &version);
            if (good && version != VERSION) return fail(r, "its version (cured_weights) is not 1");
        } else if (strcmp(r->j.text, "tensors") == 0) {
            good = read_tensors(r);
        } else if (strcmp(r->j.text, "digest") == 0) {
            good = weights_json_string(&r->j);
            if (good)
                snprintf(r->out->digest, sizeof r->out->digest, "%.*s", (int)sizeof r->out->digest - 1, r->j.text);
        } else {
            good = weights_json_skip(&r->j);
        }
        if (!good) return false;
    }
    if (!versioned || r->out->entries == NULL) return fail(r, "it is no manifest: cured_weights or tensors is missing");
    return weights_json_ended(&r->j);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cli_entry *)a)->name, ((const cli_entry *)b)->name);
}

/* Sorted, each name once, and only those that the filter takes. */
static bool settle(struct reading *r) {
    cli_entries *e = r->out;
    qsort(e->entries, e->count, sizeof *e->entries, by_name);
    for (size_t i = 1; i < e->count; i++)
        if (strcmp(e->entries[i - 1].name, e->entries[i].name) == 0) return fail(r, "a name is there twice");
    e->all = e->count;
    if (r->filter == NULL) return true;
    size_t kept = 0;
    for (size_t i = 0; i < e->count; i++) {
        const cli_entry one = e->entries[i];
        if (fnmatch(r->filter, one.name, 0) != 0) continue; /* those gather behind `kept` */
        e->entries[i] = e->entries[kept];
        e->entries[kept++] = one;
    }
    for (size_t i = kept; i < e->count; i++) {
        free(e->entries[i].name);
        free(e->entries[i].type);
        free(e->entries[i].shape);
        free(e->entries[i].digest);
    }
    e->count = kept;
    e->digest[0] = '\0';
    return true;
}

int cli_manifest_read(const char *path, const char *filter, cli_entries *out) {
    struct reading r = {.path = path, .filter = filter, .out = out};
    *out = (cli_entries){0};
    FILE *f = fopen(path, "rbe");
    if (f == NULL)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_NOINPUT, "cannot open %s: %s", path,
                        strerror(errno));
    char *text = malloc(WEIGHTS_MAX_HEADER + 1);
    const size_t bytes = text != NULL ? fread(text, 1, WEIGHTS_MAX_HEADER + 1, f) : 0;
    int code = text == NULL ? cli_fail(EXIT_IO, "out of memory") : EXIT_OK;
    if (code == EXIT_OK && ferror(f)) code = cli_read_failed(path, errno);
    if (code == EXIT_OK && bytes > WEIGHTS_MAX_HEADER)
        code = cli_fail(EXIT_DATA, "%s is no manifest: the limit is %d bytes", path, WEIGHTS_MAX_HEADER);
    fclose(f);
    weights_json_begin(&r.j, text, bytes);
    if (code == EXIT_OK && !(read_all(&r) && settle(&r)))
        code = cli_fail(EXIT_DATA, "%s: %s, at byte %zu", path,
                        r.what != NULL    ? r.what
                        : r.j.why != NULL ? r.j.why
                                          : "it is no manifest",
                        weights_json_at(&r.j));
    weights_json_free(&r.j);
    free(text);
    return code;
}
