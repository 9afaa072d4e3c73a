/* set: a checkpoint's files together: an index of safetensors, a folder, the parts of a split GGUF file. What says where a tensor is
 * and what the files hold must agree.
 *
 * Thread: one. Owner: the index's text and list live inside weights_read_index(). */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/format.h"
#include "client/cli/npy.h"
#include "client/weights/json.h"
#include "client/weights/table.h"

typedef unsigned long long ull;

static cured_status no_memory(cured_error *error) {
    return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for the table of tensors");
}

/* A file beside another one, or in a folder. */
static cured_status beside(const char *path, bool folder, const char *name, char out[PATH_MAX], cured_error *error) {
    const int length = folder ? (int)strlen(path) : (int)(weights_base(path) - path);
    const char *slash = folder && length != 0 && path[length - 1] != '/' ? "/" : "";
    if (snprintf(out, PATH_MAX, "%.*s%s%s", length, path, slash, name) >= PATH_MAX)
        return npy_fail(error, CURED_INVALID_ARGUMENT, "the path of %.80s is too long", name);
    return CURED_OK;
}

/* ---- An index: {"weight_map": {tensor: file}} ---- */

struct place {
    char *name, *file;
    uint32_t number; /* of the file in the table */
};
struct map {
    struct place *places;
    size_t count, room;
    const char *index; /* its name, for sentences */
    uint64_t total;    /* metadata.total_size */
    bool has_total;
};

static cured_status add_place(struct map *m, const char *name, const char *file, cured_error *error) {
    if (m->count == WEIGHTS_MAX_TENSORS)
        return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: it has more than %d tensors", m->index,
                        WEIGHTS_MAX_TENSORS);
    if (m->count == m->room) {
        const size_t room = m->room == 0 ? 64 : 2 * m->room;
        struct place *places = realloc(m->places, room * sizeof *places);
        if (places == NULL) return no_memory(error);
        m->places = places;
        m->room = room;
    }
    struct place *p = &m->places[m->count];
    *p = (struct place){strdup(name), strdup(file), 0};
    m->count++;
    return p->name != NULL && p->file != NULL ? CURED_OK : no_memory(error);
}

static void free_map(struct map *m) {
    for (size_t i = 0; i < m->count; i++) {
        free(m->places[i].name);
        free(m->places[i].file);
    }
    free(m->places);
}

static cured_status check_name(const struct map *m, const char *name, const char *file, cured_error *error) {
    char shown[WEIGHTS_SHOWN_BYTES], where[WEIGHTS_SHOWN_BYTES];
    const bool plain = *file != '\0' && strchr(file, '/') == NULL && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
    if (plain) return CURED_OK;
    return npy_fail(error, CURED_INVALID_ARGUMENT,
                    "%s: tensor '%s': its weight_map is '%s', must be a file beside the index, without / and ..",
                    m->index, weights_shown(name, shown), weights_shown(file, where));
}

static cured_status malformed(const struct map *m, const weights_json *j, const char *what, cured_error *error) {
    return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: %s: %s, at byte %zu", m->index, what,
                    j->why != NULL ? j->why : "it is not what belongs there", weights_json_at(j));
}

static cured_status read_places(struct map *m, weights_json *j, cured_error *error) {
    bool more = true;
    char shown[WEIGHTS_SHOWN_BYTES], what[2 * WEIGHTS_SHOWN_BYTES];
    if (!weights_json_take(j, '{')) return malformed(m, j, "weight_map", error);
    for (bool first = true;; first = false) {
        if (!weights_json_key(j, first, &more)) return malformed(m, j, "weight_map", error);
        if (!more) return CURED_OK;
        char *name = strdup(j->text);
        if (name == NULL) return no_memory(error);
        snprintf(what, sizeof what, "tensor '%s': its weight_map", weights_shown(name, shown));
        cured_status status =
            weights_json_string(j) ? check_name(m, name, j->text, error) : malformed(m, j, what, error);
        if (status == CURED_OK) status = add_place(m, name, j->text, error);
        free(name);
        if (status != CURED_OK) return status;
    }
}

/* Of what somebody wrote about the files the total alone counts here, if it is a whole number. */
static bool read_metadata(struct map *m, weights_json *j) {
    bool more = true;
    weights_json probe = *j;
    if (!weights_json_take(&probe, '{')) return weights_json_skip(j);
    weights_json_take(j, '{');
    for (bool first = true;; first = false) {
        if (!weights_json_key(j, first, &more)) return false;
        if (!more) return true;
        probe = *j;
        if (strcmp(j->text, "total_size") == 0) m->has_total = weights_json_number(&probe, &m->total);
        if (!weights_json_skip(j)) return false;
    }
}

static cured_status read_map(struct map *m, weights_json *j, cured_error *error) {
    bool more = true, found = false;
    if (!weights_json_take(j, '{')) return malformed(m, j, "the index", error);
    for (bool first = true;; first = false) {
        if (!weights_json_key(j, first, &more)) return malformed(m, j, "the index", error);
        if (!more) break;
        if (strcmp(j->text, "weight_map") != 0) {
            if (!(strcmp(j->text, "metadata") == 0 ? read_metadata(m, j) : weights_json_skip(j)))
                return malformed(m, j, "the index", error);
            continue;
        }
        if (found) return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: its weight_map is there twice", m->index);
        found = true;
        const cured_status status = read_places(m, j, error);
        if (status != CURED_OK) return status;
    }
    if (!weights_json_ended(j)) return malformed(m, j, "the index", error);
    return found ? CURED_OK : npy_fail(error, CURED_INVALID_ARGUMENT, "%s: its weight_map is missing", m->index);
}

static int by_file(const void *a, const void *b) {
    return strcmp(((const struct place *)a)->file, ((const struct place *)b)->file);
}
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct place *)a)->name, ((const struct place *)b)->name);
}

/* Reads each file once. The index itself is the table's last file, and gives way. */
static cured_status read_shards(weights *w, struct map *m, const char *path, cured_error *error) {
    char shard[PATH_MAX];
    qsort(m->places, m->count, sizeof *m->places, by_file);
    for (size_t i = 0; i < m->count; i++) {
        struct place *p = &m->places[i];
        if (i != 0 && strcmp(p->file, p[-1].file) == 0) {
            p->number = p[-1].number;
            continue;
        }
        cured_status status = beside(path, false, p->file, shard, error);
        if (status == CURED_OK) status = weights_add_file(w, shard, &p->number, error);
        if (status == CURED_OK) status = weights_refuse_kind(w, true, error);
        if (status == CURED_OK) status = weights_read_safetensors(w, error);
        if (status != CURED_OK) return status;
    }
    return CURED_OK;
}

/* Both are sorted by names. */
static cured_status compare(const weights *w, const struct map *m, cured_error *error) {
    char name[WEIGHTS_SHOWN_BYTES], file[WEIGHTS_SHOWN_BYTES], other[WEIGHTS_SHOWN_BYTES];
    size_t i = 0, k = 0;
    while (i < w->count || k < m->count) {
        const weights_tensor *t = i < w->count ? &w->tensors[i] : NULL;
        const struct place *p = k < m->count ? &m->places[k] : NULL;
        const int order = t == NULL ? 1 : p == NULL ? -1 : strcmp(t->name, p->name);
        weights_shown(order <= 0 ? t->name : p->name, name);
        if (t != NULL) weights_shown(weights_base(w->files[t->file].path), file);
        if (p != NULL && k + 1 < m->count && strcmp(p->name, p[1].name) == 0)
            return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: tensor '%s': its name is there twice", m->index,
                            p->name);
        if (order < 0)
            return npy_fail(error, CURED_INVALID_ARGUMENT, "tensor '%s' is in %s, but not in the weight_map of %s",
                            name, file, m->index);
        if (order > 0)
            return npy_fail(error, CURED_INVALID_ARGUMENT,
                            "tensor '%s' is in %s by the weight_map of %s, but not there", name,
                            weights_shown(p->file, other), m->index);
        if (t->file != p->number)
            return npy_fail(error, CURED_INVALID_ARGUMENT, "tensor '%s' is in %s, by the weight_map of %s in %s", name,
                            file, m->index, weights_shown(p->file, other));
        i++;
        k++;
    }
    return CURED_OK;
}

static void note_total(weights *w, const struct map *m) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < w->count; i++) bytes += w->tensors[i].bytes;
    if (m->has_total && m->total != bytes)
        weights_note(w, "%s: its metadata.total_size is %llu, but its tensors have %llu bytes", m->index, (ull)m->total,
                     (ull)bytes);
}

cured_status weights_read_index(weights *w, const char *path, cured_error *error) {
    const uint64_t size = w->files[w->file_count - 1].size;
    char name[WEIGHTS_SHOWN_BYTES];
    struct map m = {.index = weights_shown(weights_base(path), name)};
    weights_json j;
    if (size > WEIGHTS_MAX_HEADER)
        return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: it has %llu bytes, the limit is %d", m.index, (ull)size,
                        WEIGHTS_MAX_HEADER);
    char *text = malloc((size_t)size + 1);
    if (text == NULL) return no_memory(error);
    cured_status status = weights_read(w, 0, text, (size_t)size, error);
    weights_json_begin(&j, text, (size_t)size);
    if (status == CURED_OK) status = read_map(&m, &j, error);
    weights_json_free(&j);
    free(text);
    if (status == CURED_OK) status = read_shards(w, &m, path, error);
    if (status == CURED_OK && m.count != 0) qsort(m.places, m.count, sizeof *m.places, by_name);
    if (status == CURED_OK) status = weights_sort(w, error);
    if (status == CURED_OK) status = compare(w, &m, error);
    if (status == CURED_OK) note_total(w, &m);
    free_map(&m);
    return status;
}

/* ---- The parts of a split GGUF file: NAME-00001-of-00003.gguf ---- */

enum { PART_BYTES = 20 }; /* "-00001-of-00003.gguf" */

/* What parts say of the count of tensors: the first that says one, and the first that says another. */
struct counts {
    uint64_t said[2];
    size_t file[2];
    unsigned have;
};

static void note_count(struct counts *c, const weights *w, uint64_t said) {
    if (said == UINT64_MAX || c->have == 2 || (c->have == 1 && said == c->said[0])) return;
    c->said[c->have] = said;
    c->file[c->have++] = w->file_count - 1;
}

static cured_status check_counts(const struct counts *c, const weights *w, uint64_t tensors, cured_error *error) {
    char shown[WEIGHTS_SHOWN_BYTES];
    for (unsigned i = 0; i < c->have; i++)
        if (c->said[i] != tensors)
            return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: split.tensors.count is %llu, the parts hold %llu",
                            weights_shown(weights_base(w->files[c->file[i]].path), shown), (ull)c->said[i],
                            (ull)tensors);
    return CURED_OK;
}

/* The other parts of the last file, whose tensors begin at `first`. */
static cured_status read_parts(weights *w, const char *path, size_t first, const weights_split *split,
                               cured_error *error) {
    const size_t length = strlen(path);
    char part[PATH_MAX], tail[64], shown[WEIGHTS_SHOWN_BYTES];
    weights_split other;
    struct counts counts = {.have = 0};
    note_count(&counts, w, split->tensors);
    snprintf(tail, sizeof tail, "-%05llu-of-%05llu.gguf", (ull)split->number + 1, (ull)split->count);
    if (length < PART_BYTES || length >= PATH_MAX || strcmp(path + length - PART_BYTES, tail) != 0)
        return weights_refuse_file(w, error,
                                   "it is part %llu of %llu (split.no, split.count), so its name must end in %s",
                                   (ull)split->number + 1, (ull)split->count, tail);
    for (uint64_t i = 0; i < split->count; i++) {
        if (i == split->number) continue;
        snprintf(part, sizeof part, "%.*s-%05llu-of-%05llu.gguf", (int)(length - PART_BYTES), path, (ull)i + 1,
                 (ull)split->count);
        cured_status status = weights_add_file(w, part, NULL, error);
        if (status == CURED_OK) status = weights_read_gguf(w, &other, error);
        if (status != CURED_OK) return status;
        if (other.number != i || other.count != split->count)
            return weights_refuse_file(w, error, "it says that it is part %llu of %llu, %s says %llu",
                                       (ull)other.number + 1, (ull)other.count,
                                       weights_shown(weights_base(path), shown), (ull)split->count);
        note_count(&counts, w, other.tensors);
    }
    return check_counts(&counts, w, w->count - first, error);
}

/* ---- One file, by what it begins with ---- */

cured_status weights_add_path(weights *w, const char *path, const char *named, cured_error *error) {
    uint8_t head[8] = {0};
    uint32_t index;
    weights_split split = {0, 0, 0};
    cured_status status = weights_add_file(w, path, &index, error);
    if (status != CURED_OK) return status;
    const uint64_t size = w->files[index].size;
    const size_t first = w->count;
    const size_t have = size < sizeof head ? (size_t)size : sizeof head;
    status = weights_read(w, 0, head, have, error);
    if (status == CURED_OK) status = weights_refuse_kind(w, false, error);
    if (status != CURED_OK) return status;
    if (have >= 4 && memcmp(head, "GGUF", 4) == 0) {
        status = weights_read_gguf(w, &split, error);
        return status == CURED_OK && split.count > 1 ? read_parts(w, path, first, &split, error) : status;
    }
    if (npy_is(head, have)) return weights_read_npy(w, named, error);
    if (have >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0))
        return weights_read_npz(w, error);
    /* A header of safetensors has a length of less than 2^32; text has none of these zeros. */
    const bool text =
        have != 0 && memcmp(head + 4, "\0\0\0\0", 4) != 0 && strchr("{ \t\r\n", head[0]) != NULL && head[0] != 0;
    if (text) return weights_read_index(w, path, error);
    if (format_ends_with(path, ".safetensors") || (size > 8 && memcmp(head + 4, "\0\0\0\0", 4) == 0))
        return weights_read_safetensors(w, error);
    return weights_refuse_file(w, error, "it is none of what is read: safetensors, an index of them, GGUF, .npz, .npy");
}

/* ---- A folder ---- */

struct names {
    char **names;
    size_t count, room;
};

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static cured_status list(const char *path, struct names *all, cured_error *error) {
    DIR *folder = opendir(path);
    const struct dirent *entry;
    cured_status status = CURED_OK;
    if (folder == NULL)
        return npy_fail(error, errno == EACCES ? CURED_PERMISSION_DENIED : CURED_DATA_LOSS, "cannot open %s: %s", path,
                        strerror(errno));
    while (status == CURED_OK && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        if (all->count == all->room) {
            all->room = all->room == 0 ? 64 : 2 * all->room;
            char **names = realloc(all->names, all->room * sizeof *names);
            if (names == NULL) status = no_memory(error);
            if (names != NULL) all->names = names;
        }
        if (status == CURED_OK && (all->names[all->count++] = strdup(entry->d_name)) == NULL) status = no_memory(error);
    }
    closedir(folder);
    if (status == CURED_OK && all->count != 0) qsort(all->names, all->count, sizeof *all->names, by_text);
    return status;
}

/* How many names end so; the first of them, and the first two, in `at`. */
static size_t find(const struct names *all, const char *tail, size_t at[2]) {
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (format_ends_with(all->names[i], tail) && count++ < 2) at[count - 1] = i;
    return count;
}

/* split: a name that stands for several parts, and how many; NULL: none does. */
static cured_status add_all(weights *w, const char *path, const struct names *all, const char *tail, const char **split,
                            size_t *part_count, cured_error *error) {
    char file[PATH_MAX];
    cured_status status = CURED_OK;
    bool parts = false; /* the first one has brought the others, of a split GGUF file */
    for (size_t i = 0; i < all->count && status == CURED_OK && !parts; i++) {
        if (!format_ends_with(all->names[i], tail)) continue;
        const size_t before = w->file_count;
        status = beside(path, true, all->names[i], file, error);
        const size_t length = strlen(all->names[i]), rest = strlen(tail);
        char *stem = strndup(all->names[i], length - rest);
        if (stem == NULL) return no_memory(error);
        if (status == CURED_OK && strcmp(tail, ".npy") == 0 && !weights_is_utf8(stem, strlen(stem)))
            status = npy_fail(error, CURED_INVALID_ARGUMENT, "%s: a .npy file's name is not UTF-8", path);
        if (status == CURED_OK) status = weights_add_path(w, file, stem, error);
        free(stem);
        parts = w->file_count > before + 1;
        if (parts) *split = all->names[i];
        if (parts) *part_count = w->file_count - before;
    }
    return status;
}

/* Shards beside an index, which is the first file, that it does not list. The others are sorted, as the folder's names are. */
static void note_unlisted(weights *w, const struct names *all, const char *folder) {
    const char *unlisted = NULL;
    char shown[WEIGHTS_SHOWN_BYTES], index[WEIGHTS_SHOWN_BYTES], more[48] = "";
    size_t count = 0, k = 1;
    for (size_t i = 0; i < all->count; i++) {
        if (!format_ends_with(all->names[i], ".safetensors")) continue;
        while (k < w->file_count && strcmp(weights_base(w->files[k].path), all->names[i]) < 0) k++;
        if (k < w->file_count && strcmp(weights_base(w->files[k].path), all->names[i]) == 0) continue;
        if (count++ == 0) unlisted = all->names[i];
    }
    if (count == 0) return;
    if (count > 1) snprintf(more, sizeof more, " and %zu more", count - 1);
    weights_note(w, "%s: %s%s %s not in the weight_map of %s, and %s not read", folder, weights_shown(unlisted, shown),
                 more, count > 1 ? "are" : "is", weights_shown(weights_base(w->files[0].path), index),
                 count > 1 ? "are" : "is");
}

static cured_status read_index_of(weights *w, const char *path, const struct names *all, size_t at, const char *shown,
                                  cured_error *error) {
    char file[PATH_MAX];
    cured_status status = beside(path, true, all->names[at], file, error);
    if (status == CURED_OK) status = weights_add_path(w, file, "array", error);
    if (status == CURED_OK) note_unlisted(w, all, shown);
    return status;
}

static cured_status read_listed(weights *w, const char *path, const struct names *all, cured_error *error) {
    static const char *const kinds[] = {".safetensors", ".gguf", ".npz", ".npy"};
    static const char *const pickles[] = {".bin", ".pt", ".pth", ".ckpt", ".pkl"};
    char file[PATH_MAX], shown[WEIGHTS_SHOWN_BYTES], other[WEIGHTS_SHOWN_BYTES];
    size_t at[2];
    const size_t indices = find(all, ".safetensors.index.json", at);
    weights_shown_folder(path, shown);
    if (indices > 1)
        return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: it holds %zu indices, %s and others: name one", shown,
                        indices, weights_shown(all->names[at[0]], other));
    if (indices == 1) return read_index_of(w, path, all, at[0], shown, error);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t count = find(all, kinds[i], at);
        if (count == 0) continue;
        const char *split = NULL;
        size_t parts = 0;
        const cured_status status = add_all(w, path, all, kinds[i], &split, &parts, error);
        if (status != CURED_OK || split == NULL || parts == count) return status;
        return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: %s has %zu parts, but there are %zu .gguf files: name one",
                        shown, weights_shown(split, other), parts, count);
    }
    for (size_t i = 0; i < sizeof pickles / sizeof pickles[0]; i++) {
        if (find(all, pickles[i], at) == 0) continue;
        const cured_status status = beside(path, true, all->names[at[0]], file, error);
        return status == CURED_OK ? weights_add_path(w, file, "array", error) : status;
    }
    return npy_fail(error, CURED_INVALID_ARGUMENT,
                    "%s: it holds no .safetensors, no .safetensors.index.json, no .gguf, no .npz and no .npy file",
                    shown);
}

cured_status weights_read_folder(weights *w, const char *path, cured_error *error) {
    struct names all = {NULL, 0, 0};
    cured_status status = list(path, &all, error);
    if (status == CURED_OK) status = read_listed(w, path, &all, error);
    for (size_t i = 0; i < all.count; i++) free(all.names[i]);
    free(all.names);
    return status;
}
