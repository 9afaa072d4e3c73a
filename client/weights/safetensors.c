/* safetensors: eight bytes of length, a JSON object that names each tensor's dtype, shape and data_offsets, and the tensors' bytes.
 *
 * Thread: one. Owner: the header's text lives inside weights_read_safetensors(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/npy.h"
#include "client/weights/json.h"
#include "client/weights/table.h"
#include "kernels/core/dtype.h"

typedef unsigned long long ull;

/* What an element takes of the types that cured does not reduce; dtype.def has the others. */
static const struct {
    const char *name;
    unsigned bits;
} others[] = {{"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6},
              {"F6_E3M2", 6},     {"F4", 4},          {"C64", 64},    {"C128", 128}};

/* Bits of an element; 0: no type is called so. */
static unsigned bits_of(const char *name, cr_dtype own) {
    for (size_t i = 0; own == CR_DTYPE_NONE && i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, name) == 0) return others[i].bits;
    return 8 * (unsigned)cr_dtype_size(own);
}

struct entry {
    char type[WEIGHTS_TYPE_BYTES];
    uint64_t shape[WEIGHTS_MAX_DIMS], offsets[2];
    uint32_t dims;
    unsigned seen;
};
enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, EVERYTHING = 7 };

/* What the cursor says of the header, or of a tensor's field. */
static cured_status malformed(const weights *w, const weights_tensor *t, const weights_json *j, const char *field,
                              cured_error *error) {
    const char *why = j->why != NULL ? j->why : "it is not what belongs there";
    if (t == NULL) return weights_refuse_file(w, error, "its header: %s, at byte %zu", why, weights_json_at(j));
    return weights_refuse(w, t, error, "%s: %s, at byte %zu of the header", field, why, weights_json_at(j));
}

static bool read_list(weights_json *j, uint64_t *out, uint32_t most, uint32_t *count) {
    bool more = true;
    *count = 0;
    if (!weights_json_take(j, '[')) return false;
    for (bool first = true;; first = false) {
        if (!weights_json_element(j, first, &more)) return false;
        if (!more) return true;
        if (*count == most) {
            j->why = "it has too many numbers";
            return false;
        }
        if (!weights_json_number(j, &out[(*count)++])) return false;
    }
}

static bool read_field(weights_json *j, struct entry *e, unsigned field) {
    uint32_t count;
    if (field == SHAPE) return read_list(j, e->shape, WEIGHTS_MAX_DIMS, &e->dims);
    if (field == OFFSETS) {
        if (!read_list(j, e->offsets, 2, &count)) return false;
        if (count != 2) j->why = "it is not two numbers";
        return count == 2;
    }
    if (!weights_json_string(j)) return false;
    bool plain = j->length != 0 && j->length < sizeof e->type;
    for (size_t i = 0; i < j->length && plain; i++)
        plain =
            (j->text[i] >= 'A' && j->text[i] <= 'Z') || (j->text[i] >= '0' && j->text[i] <= '9') || j->text[i] == '_';
    if (!plain) {
        j->why = "it is no name of a type";
        return false;
    }
    strcpy(e->type, j->text);
    return true;
}

static cured_status read_entry(weights *w, const weights_tensor *t, weights_json *j, struct entry *e,
                               cured_error *error) {
    static const char *const names[] = {"dtype", "shape", "data_offsets"};
    bool more = true;
    memset(e, 0, sizeof *e);
    if (!weights_json_take(j, '{')) return malformed(w, t, j, "its entry", error);
    for (bool first = true;; first = false) {
        if (!weights_json_key(j, first, &more)) return malformed(w, t, j, "its entry", error);
        if (!more) break;
        unsigned field = 0;
        for (unsigned i = 0; i < 3; i++)
            if (strcmp(j->text, names[i]) == 0) field = 1u << i;
        if ((e->seen & field) != 0) return weights_refuse(w, t, error, "its %s is there twice", names[field >> 1]);
        e->seen |= field;
        if (field == 0 ? !weights_json_skip(j) : !read_field(j, e, field))
            return malformed(w, t, j, field == 0 ? "its entry" : names[field >> 1], error);
    }
    for (unsigned i = 0; i < 3; i++)
        if ((e->seen & 1u << i) == 0) return weights_refuse(w, t, error, "its %s is missing", names[i]);
    return CURED_OK;
}

/* Holds the entry against itself and the file. */
static cured_status take_entry(weights *w, weights_tensor *t, const struct entry *e, uint64_t begin,
                               cured_error *error) {
    const uint64_t data = w->files[t->file].size - begin;
    const cr_dtype own = cr_dtype_of_safetensors(e->type);
    const unsigned bits = bits_of(e->type, own);
    uint64_t count;
    if (e->offsets[0] > e->offsets[1])
        return weights_refuse(w, t, error, "data_offsets: it ends at %llu, before it begins at %llu",
                              (ull)e->offsets[1], (ull)e->offsets[0]);
    if (e->offsets[1] > data)
        return weights_refuse(w, t, error, "data_offsets: it ends at %llu, the file has %llu bytes of data",
                              (ull)e->offsets[1], (ull)data);
    t->offset = begin + e->offsets[0];
    t->bytes = e->offsets[1] - e->offsets[0];
    weights_set_type(t, own != CR_DTYPE_NONE ? cr_dtype_name(own) : NULL, e->type);
    if (!weights_product(e->dims, e->shape, &count))
        return weights_refuse(w, t, error, "shape: it has more than 2^63 - 1 elements");
    if (bits != 0) {
        if (count > UINT64_MAX / bits)
            return weights_refuse(w, t, error, "shape: its %llu elements take more than 2^64 bits", (ull)count);
        if (count * bits % 8 != 0)
            return weights_refuse(w, t, error, "shape: %llu elements of %s are no whole bytes", (ull)count, e->type);
        if (count * bits / 8 != t->bytes)
            return weights_refuse(w, t, error, "data_offsets: they hold %llu bytes, dtype and shape want %llu",
                                  (ull)t->bytes, (ull)(count * bits / 8));
    }
    return weights_set_shape(t, e->dims, e->shape, error);
}

/* What somebody wrote about the file: strings by names. */
static bool skip_metadata(weights_json *j) {
    bool more = true;
    if (!weights_json_take(j, '{')) return false;
    for (bool first = true; more; first = false)
        if (!weights_json_key(j, first, &more) || (more && !weights_json_string(j))) return false;
    return true;
}

static cured_status read_header(weights *w, weights_json *j, uint64_t begin, cured_error *error) {
    struct entry e;
    bool more = true, metadata = false;
    cured_status status;
    if (!weights_json_take(j, '{')) return weights_refuse_file(w, error, "its header is no JSON object");
    for (bool first = true;; first = false) {
        if (!weights_json_key(j, first, &more)) return malformed(w, NULL, j, NULL, error);
        if (!more) break;
        if (strcmp(j->text, "__metadata__") == 0) {
            if (metadata) return weights_refuse_file(w, error, "its __metadata__ is there twice");
            metadata = true;
            if (!skip_metadata(j)) return malformed(w, NULL, j, NULL, error);
            continue;
        }
        weights_tensor *t = weights_add(w, j->text, error);
        if (t == NULL) return error->code;
        status = read_entry(w, t, j, &e, error);
        if (status == CURED_OK) status = take_entry(w, t, &e, begin, error);
        if (status != CURED_OK) return status;
    }
    return weights_json_ended(j) ? CURED_OK : malformed(w, NULL, j, NULL, error);
}

cured_status weights_read_safetensors(weights *w, cured_error *error) {
    const uint64_t size = w->files[w->file_count - 1].size;
    const size_t first = w->count;
    uint8_t head[8];
    weights_json j;
    uint64_t bytes = 0;
    if (size < sizeof head) return weights_refuse_file(w, error, "it has %llu bytes, too few for a header", (ull)size);
    cured_status status = weights_read(w, 0, head, sizeof head, error);
    if (status != CURED_OK) return status;
    for (unsigned i = sizeof head; i-- > 0;) bytes = bytes << 8 | head[i];
    if (bytes > WEIGHTS_MAX_HEADER)
        return weights_refuse_file(w, error, "its header's length is %llu bytes, the limit is %d", (ull)bytes,
                                   WEIGHTS_MAX_HEADER);
    if (bytes > size - sizeof head)
        return weights_refuse_file(w, error, "its header's length is %llu bytes, the file has %llu", (ull)bytes,
                                   (ull)size);
    char *text = malloc((size_t)bytes + 1);
    if (text == NULL) return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for the header");
    status = weights_read(w, sizeof head, text, (size_t)bytes, error);
    weights_json_begin(&j, text, (size_t)bytes);
    if (status == CURED_OK) status = read_header(w, &j, sizeof head + bytes, error);
    weights_json_free(&j);
    free(text);
    return status == CURED_OK ? weights_check_extents(w, first, sizeof head + bytes, 1, error) : status;
}
