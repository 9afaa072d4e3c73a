/* weights_diff: two lists of tensors beside each other, by name.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/checkpoint.h"

void cli_entries_free(cli_entries *e) {
    for (size_t i = 0; i < e->count; i++) {
        free(e->entries[i].name);
        free(e->entries[i].type);
        free(e->entries[i].shape);
        free(e->entries[i].digest);
    }
    free(e->entries);
    *e = (cli_entries){0};
}

int cli_entries_of(const cli_checkpoint *c, const cli_columns *columns, cli_entries *out) {
    char shape[WEIGHTS_SHAPE_BYTES], digest[CURED_TEXT_BYTES];
    *out = (cli_entries){.entries = calloc(c->table.count + 1, sizeof *out->entries), .all = c->all};
    if (out->entries == NULL) return cli_fail(EXIT_IO, "out of memory");
    snprintf(out->digest, sizeof out->digest, "%s", c->digest);
    for (size_t i = 0; i < c->table.count; i++) {
        const weights_tensor *t = &c->table.tensors[i];
        const cured_value *v = weights_answer(&c->answers, i, columns->digest);
        if (v == NULL || cured_value_text(v, digest, sizeof digest) != CURED_OK)
            return cli_fail(EXIT_DATA, "%s: a tensor has no digest", c->path);
        weights_shape_text(t, shape);
        cli_entry *e = &out->entries[out->count++];
        *e = (cli_entry){strdup(t->name), strdup(t->type), strdup(shape), strdup(digest), t->bytes};
        if (e->name == NULL || e->type == NULL || e->shape == NULL || e->digest == NULL)
            return cli_fail(EXIT_IO, "out of memory");
    }
    return EXIT_OK;
}

static bool same(const cli_entry *a, const cli_entry *b) {
    return a->bytes == b->bytes && strcmp(a->type, b->type) == 0 && strcmp(a->shape, b->shape) == 0 &&
           strcmp(a->digest, b->digest) == 0;
}

static cJSON *json_side(const cli_entry *e) {
    cJSON *side = cJSON_CreateObject();
    char bytes[32];
    cJSON_AddStringToObject(side, "type", e->type);
    cJSON_AddRawToObject(side, "shape", e->shape);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)e->bytes);
    cJSON_AddRawToObject(side, "bytes", bytes);
    cJSON_AddStringToObject(side, "digest", e->digest);
    return side;
}

/* What is found, in lines, or gathered for JSON. */
struct findings {
    size_t differ, missing, more;
    cJSON *lists[3]; /* NULL: text */
};

static void differs(struct findings *f, const cli_entry *a, const cli_entry *b) {
    char name[CLI_NAME_BYTES];
    f->differ++;
    if (f->lists[0] == NULL) {
        printf("differs %s: %s %s %s, now %s %s %s\n", cli_printable(a->name, name), a->type, a->shape, a->digest,
               b->type, b->shape, b->digest);
        return;
    }
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", a->name);
    cJSON_AddItemToObject(item, "before", json_side(a));
    cJSON_AddItemToObject(item, "now", json_side(b));
    cJSON_AddItemToArray(f->lists[0], item);
}

static void alone(struct findings *f, const cli_entry *e, bool missing) {
    char name[CLI_NAME_BYTES];
    *(missing ? &f->missing : &f->more) += 1;
    if (f->lists[0] == NULL)
        printf("%s %s: %s %s %s\n", missing ? "missing" : "new", cli_printable(e->name, name), e->type, e->shape,
               e->digest);
    else
        cJSON_AddItemToArray(f->lists[missing ? 1 : 2], cJSON_CreateString(e->name));
}

static int put_json(struct findings *f, const cli_entries *before, const cli_entries *now, bool equal) {
    static const char *const names[] = {"differs", "missing", "new"};
    cJSON *root = cJSON_CreateObject();
    cJSON_AddBoolToObject(root, "same", equal);
    cJSON_AddNumberToObject(root, "tensors", (double)now->count);
    for (size_t i = 0; i < 3; i++) cJSON_AddItemToObject(root, names[i], f->lists[i]);
    if (before->digest[0] != '\0') cJSON_AddStringToObject(root, "before", before->digest);
    cJSON_AddStringToObject(root, "digest", now->digest);
    char *text = cJSON_PrintUnformatted(root);
    const bool good = text != NULL && puts(text) >= 0;
    cJSON_free(text);
    cJSON_Delete(root);
    return good ? EXIT_OK : cli_fail(EXIT_IO, "cannot print the answer");
}

int cli_entries_compare(const cli_entries *before, const cli_entries *now, bool json) {
    struct findings f = {0};
    for (size_t i = 0; json && i < 3; i++) f.lists[i] = cJSON_CreateArray();
    for (size_t i = 0, k = 0; i < before->count || k < now->count;) {
        const cli_entry *a = i < before->count ? &before->entries[i] : NULL;
        const cli_entry *b = k < now->count ? &now->entries[k] : NULL;
        const int order = a == NULL ? 1 : b == NULL ? -1 : strcmp(a->name, b->name);
        if (order != 0)
            alone(&f, order < 0 ? a : b, order < 0);
        else if (!same(a, b))
            differs(&f, a, b);
        i += order <= 0;
        k += order >= 0;
    }
    const bool equal = f.differ + f.missing + f.more == 0;
    int code = EXIT_OK;
    if (json)
        code = put_json(&f, before, now, equal);
    else if (equal)
        printf("same: tensors %zu, digest of all: %s\n", now->count, now->digest);
    else
        printf("different: tensors %zu, differ %zu, missing %zu, new %zu\n", before->count, f.differ, f.missing,
               f.more);
    if (code == EXIT_OK) code = cli_flush();
    return code != EXIT_OK ? code : equal ? EXIT_OK : EXIT_DIFFERENT;
}
