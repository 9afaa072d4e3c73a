/* gguf: GGUF files of versions 2 and 3, little-endian: keys and values, of which three count here, then the tensors' names,
 * dimensions, types and offsets, then their bytes, each tensor at a multiple of the alignment.
 *
 * Thread: one. Owner: the window onto the header lives inside weights_read_gguf(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/npy.h"
#include "client/weights/json.h"
#include "client/weights/table.h"

typedef unsigned long long ull;

enum {
    WINDOW_BYTES = 64 * 1024,
    MOST_NAME = 1024, /* ggml itself has 64 bytes */
    MOST_DIMS = 4,
    MOST_DEPTH = 8, /* of arrays in arrays */
    DEFAULT_ALIGNMENT = 32,
    MOST_ALIGNMENT = 1 << 20,
};

/* ggml's types by their numbers: how many elements are packed together, into how many bytes, and what cured calls it. */
static const struct type {
    uint32_t number;
    const char *name, *own;
    uint32_t elements, bytes;
} types[] = {
    {0, "F32", "f32", 1, 4},        {1, "F16", "f16", 1, 2},        {2, "Q4_0", NULL, 32, 18},
    {3, "Q4_1", NULL, 32, 20},      {6, "Q5_0", NULL, 32, 22},      {7, "Q5_1", NULL, 32, 24},
    {8, "Q8_0", NULL, 32, 34},      {9, "Q8_1", NULL, 32, 36},      {10, "Q2_K", NULL, 256, 84},
    {11, "Q3_K", NULL, 256, 110},   {12, "Q4_K", NULL, 256, 144},   {13, "Q5_K", NULL, 256, 176},
    {14, "Q6_K", NULL, 256, 210},   {15, "Q8_K", NULL, 256, 292},   {16, "IQ2_XXS", NULL, 256, 66},
    {17, "IQ2_XS", NULL, 256, 74},  {18, "IQ3_XXS", NULL, 256, 98}, {19, "IQ1_S", NULL, 256, 50},
    {20, "IQ4_NL", NULL, 32, 18},   {21, "IQ3_S", NULL, 256, 110},  {22, "IQ2_S", NULL, 256, 82},
    {23, "IQ4_XS", NULL, 256, 136}, {24, "I8", "i8", 1, 1},         {25, "I16", "i16", 1, 2},
    {26, "I32", "i32", 1, 4},       {27, "I64", "i64", 1, 8},       {28, "F64", "f64", 1, 8},
    {29, "IQ1_M", NULL, 256, 56},   {30, "BF16", "bf16", 1, 2},     {34, "TQ1_0", NULL, 256, 54},
    {35, "TQ2_0", NULL, 256, 66},   {39, "MXFP4", NULL, 32, 17},
};

enum { U8, I8, U16, I16, U32, I32, F32, BOOLEAN, STRING, ARRAY, U64, I64, F64, VALUES };
static const uint8_t value_bytes[VALUES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* The header as it is read, a window of the file at a time. */
struct header {
    const weights *w;
    cured_error *error;
    cured_status status;
    uint64_t at, limit; /* of the next byte; of the bytes that a header may have */
    uint64_t start;     /* of the window */
    size_t have;
    uint8_t window[WINDOW_BYTES];
};

/* Says what went wrong, once; false. */
#define FAIL(h, ...) ((h)->status = weights_refuse_file((h)->w, (h)->error, __VA_ARGS__), false)

/* Whether so many more bytes are there. */
static bool left(struct header *h, uint64_t bytes, const char *field) {
    if (bytes <= h->limit - h->at) return true;
    if (h->limit == WEIGHTS_MAX_HEADER)
        return FAIL(h, "%s goes beyond the %d bytes that a header may have", field, WEIGHTS_MAX_HEADER);
    return FAIL(h, "%s goes beyond the end of the file, byte %llu", field, (ull)h->limit);
}

/* `bytes` (up to a window) of the header; NULL: an error. */
static const uint8_t *get(struct header *h, size_t bytes, const char *field) {
    if (!left(h, bytes, field)) return NULL;
    if (h->at < h->start || h->at + bytes > h->start + h->have) {
        h->start = h->at;
        h->have = h->limit - h->at < WINDOW_BYTES ? (size_t)(h->limit - h->at) : WINDOW_BYTES;
        h->status = weights_read(h->w, h->start, h->window, h->have, h->error);
        if (h->status != CURED_OK) return NULL;
    }
    const uint8_t *in = h->window + (h->at - h->start);
    h->at += bytes;
    return in;
}

static bool number(struct header *h, unsigned bytes, uint64_t *out, const char *field) {
    const uint8_t *in = get(h, bytes, field);
    *out = 0;
    if (in == NULL) return false;
    for (unsigned i = bytes; i-- > 0;) *out = *out << 8 | in[i];
    return true;
}

/* A name of up to MOST_NAME bytes, UTF-8. */
static bool name(struct header *h, char out[MOST_NAME + 1], const char *field) {
    uint64_t length;
    if (!number(h, 8, &length, field) || !left(h, length, field)) return false;
    if (length > MOST_NAME) return FAIL(h, "%s has %llu bytes, the limit is %d", field, (ull)length, MOST_NAME);
    const uint8_t *in = get(h, (size_t)length, field);
    if (in == NULL) return false;
    memcpy(out, in, (size_t)length);
    out[length] = '\0';
    return weights_is_utf8(out, (size_t)length) || FAIL(h, "%s is not UTF-8 without a NUL", field);
}

static bool skip(struct header *h, uint64_t bytes, const char *field) {
    if (!left(h, bytes, field)) return false;
    h->at += bytes;
    return true;
}

static bool skip_string(struct header *h, const char *field) {
    uint64_t length;
    return number(h, 8, &length, field) && skip(h, length, field);
}

static bool skip_value(struct header *h, uint64_t type, unsigned depth, const char *field) {
    uint64_t of, count;
    if (type >= VALUES) return FAIL(h, "%s has the unknown type %llu", field, (ull)type);
    if (type == STRING) return skip_string(h, field);
    if (type != ARRAY) return skip(h, value_bytes[type], field);
    if (depth == MOST_DEPTH) return FAIL(h, "%s is more than %d arrays deep", field, MOST_DEPTH);
    if (!number(h, 4, &of, field) || !number(h, 8, &count, field)) return false;
    if (of >= VALUES) return FAIL(h, "%s has elements of the unknown type %llu", field, (ull)of);
    const uint64_t least = of == STRING ? 8 : of == ARRAY ? 12 : value_bytes[of]; /* bytes of an element */
    if (count > (h->limit - h->at) / least)
        return FAIL(h, "%s has %llu elements, more than there are bytes for", field, (ull)count);
    if (of != STRING && of != ARRAY) return skip(h, count * least, field);
    for (uint64_t i = 0; i < count; i++)
        if (!skip_value(h, of, depth + 1, field)) return false;
    return true;
}

struct known {
    uint64_t alignment, number, count, tensors;
    unsigned seen;
};

/* A key's name, by a hash of it and where it lies in the header. */
struct key {
    uint64_t hash, at;
};

static int by_hash(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* FNV-1a: names of equal hashes are compared after it. */
static uint64_t hash_of(const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return hash;
}

/* Whether no two of the keys have one name. */
static bool check_twice(struct header *h, struct key *keys, uint64_t count) {
    char one[MOST_NAME + 1], two[MOST_NAME + 1], shown[WEIGHTS_SHOWN_BYTES];
    const uint64_t end = h->at;
    if (count != 0) qsort(keys, (size_t)count, sizeof *keys, by_hash);
    for (uint64_t i = 1; i < count; i++) {
        if (keys[i].hash != keys[i - 1].hash) continue;
        h->at = keys[i - 1].at;
        if (!name(h, one, "the name of a key")) return false;
        h->at = keys[i].at;
        if (!name(h, two, "the name of a key")) return false;
        if (strcmp(one, two) == 0) return FAIL(h, "key '%s' is there twice", weights_shown(one, shown));
    }
    h->at = end;
    return true;
}

/* A key that counts here: a whole number that is not negative. */
static bool take_value(struct header *h, uint64_t type, uint64_t *out, const char *field) {
    const bool whole = type == U8 || type == U16 || type == U32 || type == U64;
    if (!whole && type != I8 && type != I16 && type != I32 && type != I64)
        return FAIL(h, "%s is no whole number (type %llu)", field, (ull)type);
    if (!number(h, value_bytes[type], out, field)) return false;
    return whole || *out >> (8 * value_bytes[type] - 1) == 0 || FAIL(h, "%s is negative", field);
}

static bool read_key(struct header *h, struct known *known, struct key *read) {
    static const char *const names[] = {"general.alignment", "split.no", "split.count", "split.tensors.count"};
    uint64_t *const values[] = {&known->alignment, &known->number, &known->count, &known->tensors};
    char key[MOST_NAME + 1], field[128], shown[WEIGHTS_SHOWN_BYTES];
    uint64_t type;
    read->at = h->at;
    if (!name(h, key, "the name of a key")) return false;
    read->hash = hash_of(key);
    snprintf(field, sizeof field, "key '%s'", weights_shown(key, shown));
    if (!number(h, 4, &type, field)) return false;
    unsigned which = 0;
    while (which < 4 && strcmp(names[which], key) != 0) which++;
    if (which == 4) return skip_value(h, type, 0, field);
    if ((known->seen & 1u << which) != 0) return FAIL(h, "%s is there twice", field);
    known->seen |= 1u << which;
    return take_value(h, type, values[which], field);
}

static bool read_keys(struct header *h, uint64_t count, struct known *known) {
    *known = (struct known){DEFAULT_ALIGNMENT, 0, 0, UINT64_MAX, 0};
    if (count > (h->limit - h->at) / 13)
        return FAIL(h, "its count of keys is %llu, more than there are bytes for", (ull)count);
    struct key *keys = malloc(((size_t)count + 1) * sizeof *keys);
    bool good = keys != NULL;
    if (!good) h->status = npy_fail(h->error, CURED_RESOURCE_EXHAUSTED, "no memory for the names of keys");
    for (uint64_t i = 0; good && i < count; i++) good = read_key(h, known, &keys[i]);
    good = good && check_twice(h, keys, count);
    free(keys);
    if (!good) return false;
    const uint64_t a = known->alignment;
    if (a == 0 || a > MOST_ALIGNMENT || (a & (a - 1)) != 0)
        return FAIL(h, "general.alignment is %llu, must be a power of two up to %d", (ull)a, MOST_ALIGNMENT);
    return true;
}

/* The bytes of a tensor whose dimensions are `ne`, the fastest first. */
static cured_status take_type(const weights *w, weights_tensor *t, uint32_t dims, const uint64_t *ne, uint64_t number,
                              cured_error *error) {
    char text[WEIGHTS_TYPE_BYTES];
    uint64_t count;
    const struct type *type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].number == number) type = &types[i];
    snprintf(text, sizeof text, "type-%llu", (ull)number);
    weights_set_type(t, type != NULL ? type->own : NULL, type != NULL ? type->name : text);
    if (!weights_product(dims, ne, &count))
        return weights_refuse(w, t, error, "shape: it has more than 2^63 - 1 elements");
    t->sized = type != NULL;
    if (type == NULL) return CURED_OK;
    if ((dims != 0 ? ne[0] : 1) % type->elements != 0)
        return weights_refuse(w, t, error, "shape: its last dimension is %llu, %s packs %u elements together",
                              (ull)(dims != 0 ? ne[0] : 1), type->name, type->elements);
    if (count / type->elements > UINT64_MAX / type->bytes)
        return weights_refuse(w, t, error, "shape: its %llu elements take more than 2^64 bytes", (ull)count);
    t->bytes = count / type->elements * type->bytes;
    return CURED_OK;
}

static bool read_tensor(struct header *h, weights *w) {
    char text[MOST_NAME + 1], field[128], shown[WEIGHTS_SHOWN_BYTES];
    uint64_t dims, type, ne[MOST_DIMS], shape[MOST_DIMS];
    if (!name(h, text, "the name of a tensor")) return false;
    snprintf(field, sizeof field, "the entry of tensor '%s'", weights_shown(text, shown));
    if (!number(h, 4, &dims, field)) return false;
    if (dims > MOST_DIMS)
        return FAIL(h, "tensor '%s': it has %llu dimensions, the limit is %d", shown, (ull)dims, MOST_DIMS);
    for (unsigned i = 0; i < dims; i++)
        if (!number(h, 8, &ne[i], field)) return false;
    for (unsigned i = 0; i < dims; i++) shape[i] = ne[dims - 1 - i];
    weights_tensor *t = weights_add(w, text, h->error);
    h->status = t == NULL ? h->error->code : weights_set_shape(t, (uint32_t)dims, shape, h->error);
    if (h->status != CURED_OK || !number(h, 4, &type, field) || !number(h, 8, &t->offset, field)) return false;
    h->status = take_type(w, t, (uint32_t)dims, ne, type, h->error);
    return h->status == CURED_OK;
}

/* Holds the offsets, which count from `begin`, against the file. */
static bool place(struct header *h, weights *w, size_t first, uint64_t alignment) {
    const uint64_t size = w->files[w->file_count - 1].size, begin = (h->at + alignment - 1) & ~(alignment - 1);
    if (first == w->count)
        return size - h->at < alignment || FAIL(h, "%llu bytes follow a header without tensors", (ull)(size - h->at));
    for (size_t i = first; i < w->count && h->status == CURED_OK; i++) {
        weights_tensor *t = &w->tensors[i];
        const uint64_t data = begin <= size ? size - begin : 0;
        if (t->offset % alignment != 0)
            h->status = weights_refuse(w, t, h->error, "its offset is %llu, no multiple of the alignment %llu",
                                       (ull)t->offset, (ull)alignment);
        else if (begin > size || t->offset > data || t->bytes > data - t->offset)
            h->status =
                weights_refuse(w, t, h->error, "offset %llu: its %llu bytes go beyond the file's %llu bytes of data",
                               (ull)t->offset, (ull)t->bytes, (ull)data);
        t->offset += begin;
    }
    if (h->status == CURED_OK) h->status = weights_check_extents(w, first, begin, alignment, h->error);
    return h->status == CURED_OK;
}

static bool read_all(struct header *h, weights *w, weights_split *split) {
    struct known known;
    uint64_t version, tensors, keys;
    const size_t first = w->count;
    if (!skip(h, 4, "the magic") || !number(h, 4, &version, "the version")) return false;
    if (version == 1 || version > 3)
        return FAIL(h,
                    version == 0x02000000 || version == 0x03000000 ? "it is in big-endian order (GGUF version %08llx)"
                                                                   : "GGUF version %llu; read are 2 and 3",
                    (ull)version);
    if (version == 0) return FAIL(h, "GGUF version 0; read are 2 and 3");
    if (!number(h, 8, &tensors, "the count of tensors") || !number(h, 8, &keys, "the count of keys")) return false;
    if (!read_keys(h, keys, &known)) return false;
    if (tensors > (h->limit - h->at) / 24)
        return FAIL(h, "its count of tensors is %llu, more than there are bytes for", (ull)tensors);
    for (uint64_t i = 0; i < tensors; i++)
        if (!read_tensor(h, w)) return false;
    *split = (weights_split){known.number, known.count, known.tensors};
    if (known.count > 1 && known.number >= known.count)
        return FAIL(h, "split.no is %llu, split.count %llu", (ull)known.number, (ull)known.count);
    return place(h, w, first, known.alignment);
}

cured_status weights_read_gguf(weights *w, weights_split *split, cured_error *error) {
    struct header *h = malloc(sizeof *h);
    if (h == NULL) return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for the header");
    const uint64_t size = w->files[w->file_count - 1].size;
    h->w = w;
    h->error = error;
    h->status = CURED_OK;
    h->at = h->start = 0;
    h->have = 0;
    h->limit = size < WEIGHTS_MAX_HEADER ? size : WEIGHTS_MAX_HEADER;
    read_all(h, w, split);
    const cured_status status = h->status;
    free(h);
    return status;
}
