/* table: tensors and files as they are gathered, and the checks that all formats share.
 *
 * Thread: one. Owner: see table.h. */
#include "client/weights/table.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/npy.h"

typedef unsigned long long ull;

static cured_status no_memory(cured_error *error) {
    return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for the table of tensors");
}

const char *weights_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Bytes of the character at p, which a terminal may see; 0: it may not. */
static size_t visible(const unsigned char *p) {
    size_t n = 1;
    if (*p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0) || (*p & 0xc0) == 0x80) return 0;
    while (*p >= 0xc0 && n < 4 && (p[n] & 0xc0) == 0x80) n++;
    return *p < 0x80 || n > 1 ? n : 0;
}

const char *weights_shown(const char *name, char out[WEIGHTS_SHOWN_BYTES]) {
    size_t n = 0;
    const unsigned char *p = (const unsigned char *)name;
    while (*p != '\0' && n + 8 < WEIGHTS_SHOWN_BYTES) {
        const size_t bytes = visible(p);
        if (bytes == 0) out[n] = '?';
        memcpy(out + n, p, bytes);
        n += bytes != 0 ? bytes : 1;
        p += bytes != 0 ? bytes : 1;
    }
    strcpy(out + n, *p != '\0' ? "..." : "");
    return out;
}

const char *weights_shown_folder(const char *path, char out[WEIGHTS_SHOWN_BYTES]) {
    char copy[4096];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    snprintf(copy, sizeof copy, "%.*s", (int)length, path);
    return weights_shown(length > 1 ? weights_base(copy) : copy, out);
}

/* The end of a long path tells more than its beginning. */
static const char *shown_path(const char *path, char out[WEIGHTS_SHOWN_BYTES]) {
    const size_t length = strlen(path), most = WEIGHTS_SHOWN_BYTES - 12;
    weights_shown(length > most ? path + length - most : path, out);
    if (length > most) memcpy(out, "...", 3);
    return out;
}

cured_status weights_refuse(const weights *w, const weights_tensor *t, cured_error *error, const char *format, ...) {
    char what[CURED_ERROR_BYTES], name[WEIGHTS_SHOWN_BYTES], file[WEIGHTS_SHOWN_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: tensor '%s': %s",
                    weights_shown(weights_base(w->files[t->file].path), file), weights_shown(t->name, name), what);
}

cured_status weights_refuse_file(const weights *w, cured_error *error, const char *format, ...) {
    char what[CURED_ERROR_BYTES], file[WEIGHTS_SHOWN_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: %s",
                    weights_shown(weights_base(w->files[w->file_count - 1].path), file), what);
}

void weights_note(weights *w, const char *format, ...) {
    char text[CURED_ERROR_BYTES];
    size_t i = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    while (i < WEIGHTS_MOST_NOTES && w->notes[i] != NULL) i++;
    if (i < WEIGHTS_MOST_NOTES) w->notes[i] = strdup(text);
}

cured_status weights_add_file(weights *w, const char *path, uint32_t *index, cured_error *error) {
    struct stat st;
    char shown[WEIGHTS_SHOWN_BYTES];
    if (w->file_count == WEIGHTS_MAX_FILES)
        return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: more than %d files",
                        weights_shown(weights_base(path), shown), WEIGHTS_MAX_FILES);
    if (w->file_count == w->file_room) {
        const size_t room = w->file_room == 0 ? 16 : 2 * w->file_room;
        weights_file *files = realloc(w->files, room * sizeof *files);
        if (files == NULL) return no_memory(error);
        w->files = files;
        w->file_room = room;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int why = errno;
        if (fd >= 0) close(fd);
        return npy_fail(error,
                        why == EACCES || why == EPERM                     ? CURED_PERMISSION_DENIED
                        : why == ENOENT || why == ENOTDIR || why == ELOOP ? CURED_NOT_FOUND
                                                                          : CURED_DATA_LOSS,
                        "cannot open %s: %s", shown_path(path, shown), strerror(why));
    }
    char *copy = strdup(path);
    if (copy == NULL || !S_ISREG(st.st_mode)) {
        close(fd);
        free(copy);
        if (copy == NULL) return no_memory(error);
        return npy_fail(error, CURED_INVALID_ARGUMENT, "%s is no regular file",
                        weights_shown(weights_base(path), shown));
    }
    if (index != NULL) *index = (uint32_t)w->file_count;
    w->files[w->file_count++] = (weights_file){copy, fd, (uint64_t)st.st_size};
    return CURED_OK;
}

weights_tensor *weights_add(weights *w, const char *name, cured_error *error) {
    if (w->count == WEIGHTS_MAX_TENSORS) {
        weights_refuse_file(w, error, "it has more than %d tensors", WEIGHTS_MAX_TENSORS);
        return NULL;
    }
    if (w->count == w->room) {
        const size_t room = w->room == 0 ? 64 : 2 * w->room;
        weights_tensor *tensors = realloc(w->tensors, room * sizeof *tensors);
        if (tensors == NULL) {
            no_memory(error);
            return NULL;
        }
        w->tensors = tensors;
        w->room = room;
    }
    weights_tensor *t = &w->tensors[w->count];
    memset(t, 0, sizeof *t);
    t->file = (uint32_t)(w->file_count - 1);
    t->name = strdup(name);
    if (t->name == NULL) {
        no_memory(error);
        return NULL;
    }
    w->count++;
    return t;
}

cured_status weights_set_shape(weights_tensor *t, uint32_t dims, const uint64_t *shape, cured_error *error) {
    t->shape = malloc((dims != 0 ? dims : 1) * sizeof *t->shape);
    if (t->shape == NULL) return no_memory(error);
    if (dims != 0) memcpy(t->shape, shape, dims * sizeof *shape);
    t->dims = dims;
    return CURED_OK;
}

void weights_set_type(weights_tensor *t, const char *own, const char *files) {
    t->sized = true;
    if (own != NULL && cured_dtype_parse(own, &t->dtype, NULL) != CURED_OK) t->dtype = CURED_DTYPE_DEFAULT;
    snprintf(t->type, sizeof t->type, "%s", t->dtype != CURED_DTYPE_DEFAULT ? own : files);
}

bool weights_product(uint32_t dims, const uint64_t *shape, uint64_t *out) {
    *out = 1;
    for (uint32_t i = 0; i < dims; i++)
        if (shape[i] == 0) *out = 0;
    for (uint32_t i = 0; i < dims && *out != 0; i++) {
        if (*out > (uint64_t)INT64_MAX / shape[i]) return false;
        *out *= shape[i];
    }
    return true;
}

uint64_t weights_elements(const weights_tensor *t) {
    uint64_t count;
    return weights_product(t->dims, t->shape, &count) ? count : UINT64_MAX;
}

bool weights_is_turned(const weights_tensor *t) { return t->swap != 0 || t->fortran || t->packed; }

size_t weights_shape_text(const weights_tensor *t, char out[WEIGHTS_SHAPE_BYTES]) {
    size_t n = 0;
    out[n++] = '[';
    for (uint32_t i = 0; i < t->dims; i++)
        n += (size_t)snprintf(out + n, WEIGHTS_SHAPE_BYTES - n, "%s%llu", i != 0 ? "," : "", (ull)t->shape[i]);
    out[n++] = ']';
    out[n] = '\0';
    return n;
}

cured_status weights_read(const weights *w, uint64_t at, void *out, size_t bytes, cured_error *error) {
    const weights_file *f = &w->files[w->file_count - 1];
    char shown[WEIGHTS_SHOWN_BYTES];
    for (size_t have = 0; have < bytes;) {
        const ssize_t n = pread(f->fd, (char *)out + have, bytes - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return npy_fail(error, CURED_DATA_LOSS, "cannot read %s: %s", shown_path(f->path, shown), strerror(errno));
        if (n == 0) return npy_fail(error, CURED_DATA_LOSS, "%s was cut while it was read", shown_path(f->path, shown));
        have += (size_t)n;
    }
    return CURED_OK;
}

static int by_place(const void *a, const void *b) {
    const weights_tensor *x = *(const weights_tensor *const *)a, *y = *(const weights_tensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The tensors behind one another; `end` is where the one before ends. Offsets are within the file. */
static cured_status check_row(const weights *w, const weights_tensor *const *row, size_t count, uint64_t begin,
                              uint64_t alignment, cured_error *error) {
    const uint64_t size = w->files[w->file_count - 1].size;
    uint64_t end = begin;
    bool known = true; /* where the one before ends */
    char name[WEIGHTS_SHOWN_BYTES];
    for (size_t i = 0; i < count; i++) {
        const weights_tensor *t = row[i];
        const uint64_t padding = (alignment - (end - begin) % alignment) % alignment;
        if (t->offset < end && strcmp(t->name, row[i - 1]->name) == 0)
            return weights_refuse(w, t, error, "its name is there twice");
        if (t->offset < end)
            return weights_refuse(w, t, error, "its offset %llu lies within tensor '%.60s', which ends at %llu",
                                  (ull)(t->offset - begin), weights_shown(row[i - 1]->name, name), (ull)(end - begin));
        if (known && t->offset - end != padding)
            return weights_refuse(w, t, error, "its offset is %llu, but the tensors before it end at %llu: a hole",
                                  (ull)(t->offset - begin), (ull)(end - begin));
        end = t->offset + t->bytes;
        known = t->sized;
    }
    if (known && size - end >= alignment)
        return weights_refuse_file(w, error, "%llu bytes follow the last tensor", (ull)(size - end));
    return CURED_OK;
}

cured_status weights_check_extents(const weights *w, size_t first, uint64_t begin, uint64_t alignment,
                                   cured_error *error) {
    const size_t count = w->count - first;
    const weights_tensor **row = malloc((count + 1) * sizeof *row);
    if (row == NULL) return no_memory(error);
    for (size_t i = 0; i < count; i++) row[i] = &w->tensors[first + i];
    qsort(row, count, sizeof *row, by_place);
    const cured_status status = check_row(w, row, count, begin, alignment, error);
    free(row);
    return status;
}

static int by_name(const void *a, const void *b) {
    const weights_tensor *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->file < y->file ? -1 : x->file > y->file;
}

cured_status weights_sort(weights *w, cured_error *error) {
    char name[WEIGHTS_SHOWN_BYTES], file[WEIGHTS_SHOWN_BYTES], other[WEIGHTS_SHOWN_BYTES];
    if (w->count != 0) qsort(w->tensors, w->count, sizeof *w->tensors, by_name);
    for (size_t i = 1; i < w->count; i++) {
        const weights_tensor *a = &w->tensors[i - 1], *b = &w->tensors[i];
        if (strcmp(a->name, b->name) != 0) continue;
        weights_shown(a->name, name);
        weights_shown(weights_base(w->files[a->file].path), file);
        if (a->file == b->file)
            return npy_fail(error, CURED_INVALID_ARGUMENT, "%s: tensor '%s': its name is there twice", file, name);
        return npy_fail(error, CURED_INVALID_ARGUMENT, "tensor '%s' is in two files: %s and %s", name, file,
                        weights_shown(weights_base(w->files[b->file].path), other));
    }
    return CURED_OK;
}

static void free_tensor(weights_tensor *t) {
    free(t->name);
    free(t->shape);
}

void weights_filter(weights *w, const char *pattern) {
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (fnmatch(pattern, w->tensors[i].name, 0) == 0)
            w->tensors[kept++] = w->tensors[i];
        else
            free_tensor(&w->tensors[i]);
    }
    w->count = kept;
}

void weights_close(weights *w) {
    for (size_t i = 0; i < w->count; i++) free_tensor(&w->tensors[i]);
    for (size_t i = 0; i < w->file_count; i++) {
        close(w->files[i].fd);
        free(w->files[i].path);
    }
    for (size_t i = 0; i < WEIGHTS_MOST_NOTES; i++) free(w->notes[i]);
    free(w->tensors);
    free(w->files);
    memset(w, 0, sizeof *w);
}
