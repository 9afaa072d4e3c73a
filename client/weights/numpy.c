/* numpy: a .npy file is one tensor; a .npz archive has one in each member. Members of other endings are refused, and with them
 * what PyTorch saves, which is such an archive around a pickle.
 *
 * Thread: one. Owner: the unpacker of a deflated member lives inside read_head(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/npy.h"
#include "client/cli/unpack.h"
#include "client/weights/json.h"
#include "client/weights/table.h"

typedef unsigned long long ull;

/* The header of the `bytes` from `at` on, or of what the member unpacks to. */
static cured_status read_head(const weights *w, uint64_t at, uint64_t bytes, const npz_member *packed, npy_header *h,
                              cured_error *error) {
    uint8_t *text = malloc(NPY_MAX_HEADER);
    unpacker *u = packed != NULL ? unpack_begin(w->files[w->file_count - 1].fd, packed) : NULL;
    size_t need = NPY_MAGIC_BYTES, have = 0, n;
    cured_status status = CURED_OK;
    if (text == NULL || (u == NULL && packed != NULL))
        status = npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory for a header");
    while (status == CURED_OK && have < need) {
        if (need > bytes) {
            status = npy_fail(error, CURED_INVALID_ARGUMENT, "it ends in the middle of its .npy header (%llu bytes)",
                              (ull)bytes);
            break;
        }
        n = need - have;
        status =
            u != NULL ? unpack_next(u, text + have, n, &n, error) : weights_read(w, at + have, text + have, n, error);
        have += n;
        if (status == CURED_OK && n == 0)
            status = npy_fail(error, CURED_INVALID_ARGUMENT, "it ends in the middle of its .npy header");
        if (status == CURED_OK && have == need) status = npy_parse_any(text, have, h, &need, error);
    }
    unpack_end(u);
    free(text);
    return status;
}

/* The array of `bytes` bytes from `at` on, with its header. */
static cured_status take(weights *w, weights_tensor *t, uint64_t at, uint64_t bytes, const npz_member *packed,
                         cured_error *error) {
    npy_header h;
    cured_error why;
    memset(&h, 0, sizeof h);
    cured_status status = read_head(w, at, bytes, packed, &h, &why);
    if (status != CURED_OK) {
        weights_refuse(w, t, error, "%s", why.text);
        if (error != NULL) error->code = status;
        return status;
    }
    if (h.data_offset > bytes || h.count * h.size != bytes - h.data_offset)
        return weights_refuse(w, t, error, "it has %llu bytes, its header and shape want %llu", (ull)bytes,
                              (ull)(h.data_offset + h.count * h.size));
    if (strcmp(h.code, "V2") == 0) h.dtype = CURED_BF16; /* as NumPy writes it */
    weights_set_type(t, h.dtype != CURED_DTYPE_DEFAULT ? cured_dtype_name(h.dtype) : NULL, h.code);
    t->offset = (packed != NULL ? 0 : at) + h.data_offset;
    t->bytes = bytes - h.data_offset;
    t->packed = packed != NULL;
    if (packed != NULL) t->member = *packed;
    uint32_t wide = 0; /* dimensions: with one alone both orders are the same */
    for (uint32_t i = 0; i < h.dims; i++) wide += h.shape[i] > 1;
    t->fortran = h.fortran_order && wide > 1 && h.count != 0;
    if (h.big_endian && h.turn > 8)
        return weights_refuse(w, t, error, "its '%s' are in big-endian order, which is not turned", h.code);
    if (h.big_endian) t->swap = (uint8_t)h.turn;
    return weights_set_shape(t, h.dims, h.shape, error);
}

cured_status weights_read_npy(weights *w, const char *name, cured_error *error) {
    weights_tensor *t = weights_add(w, name, error);
    return t == NULL ? error->code : take(w, t, 0, w->files[w->file_count - 1].size, NULL, error);
}

/* What walks through an archive. */
struct taking {
    weights *w;
    bool named; /* the error names the file already */
};

static cured_status note_pickle(void *user, const char *name, size_t len, const npz_member *m, cured_error *error) {
    bool *found = user;
    (void)m;
    (void)error;
    *found = *found || (len >= 4 && memcmp(name + len - 4, ".pkl", 4) == 0);
    return CURED_OK;
}

/* A member that is no array: PyTorch's archives have a pickle beside it. */
static cured_status refuse_member(const weights *w, const char *shown, cured_error *error) {
    const weights_file *f = &w->files[w->file_count - 1];
    bool pickle = false;
    npz_each(f->fd, f->size, note_pickle, &pickle, NULL);
    if (pickle) return weights_refuse_pickle(w, "what torch.save() and torch.jit.save() write, a pickle", error);
    return weights_refuse_file(w, error, "its member '%s' is no .npy file", shown);
}

static cured_status take_member(void *user, const char *name, size_t len, const npz_member *m, cured_error *error) {
    struct taking *taking = user;
    weights *w = taking->w;
    char text[256], shown[WEIGHTS_SHOWN_BYTES];
    taking->named = true;
    if (len == 0) return weights_refuse_file(w, error, "a member's name is empty, or longer than 255 bytes");
    memcpy(text, name, len);
    text[len] = '\0';
    if (!weights_is_utf8(text, len)) return weights_refuse_file(w, error, "a member's name is not UTF-8 without a NUL");
    weights_shown(text, shown);
    if (len < 5 || strcmp(text + len - 4, ".npy") != 0) return refuse_member(w, shown, error);
    text[len - 4] = '\0';
    weights_tensor *t = weights_add(w, text, error);
    cured_status status = t == NULL ? error->code : take(w, t, m->offset, m->bytes, m->deflated ? m : NULL, error);
    taking->named = status != CURED_OK;
    return status;
}

cured_status weights_read_npz(weights *w, cured_error *error) {
    const weights_file *f = &w->files[w->file_count - 1];
    cured_error why = {.code = CURED_OK};
    struct taking taking = {w, false};
    const cured_status status = npz_each(f->fd, f->size, take_member, &taking, &why);
    if (status == CURED_OK || error == NULL) return status;
    *error = why;
    if (!taking.named) {
        weights_refuse_file(w, error, "%s", why.text);
        error->code = status;
    }
    return status;
}
