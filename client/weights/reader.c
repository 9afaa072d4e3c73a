/* reader: plain bytes by pread; deflated ones by zlib, of Fortran order turned many rows at a time, big-endian ones turned last.
 *
 * Thread: one at a time. */
#include "client/weights/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/npy.h"
#include "client/cli/turned.h"
#include "client/cli/unpack.h"

enum { TURN_BYTES = 64 * 1024 * 1024 }; /* of a Fortran-order array that is held at once */

struct weights_reader {
    const weights_file *file;
    const weights_tensor *tensor;
    uint64_t at, left;
    unpacker *unpacker;
    turned *turned;
};

/* Past the header of a deflated member. */
static cured_status skip_header(weights_reader *r, cured_error *error) {
    uint8_t drop[1024];
    for (uint64_t left = r->tensor->offset; left != 0;) {
        size_t n;
        const cured_status status =
            unpack_next(r->unpacker, drop, left < sizeof drop ? (size_t)left : sizeof drop, &n, error);
        if (status != CURED_OK) return status;
        if (n == 0) return npy_fail(error, CURED_DATA_LOSS, "the archive was changed while it was read");
        left -= n;
    }
    return CURED_OK;
}

cured_status weights_reader_begin(const weights *w, const weights_tensor *t, uint64_t at, uint64_t bytes,
                                  weights_reader **out, cured_error *error) {
    weights_reader *r = calloc(1, sizeof *r);
    cured_status status = CURED_OK;
    *out = r;
    if (r == NULL) return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to read it");
    r->file = &w->files[t->file];
    r->tensor = t;
    r->at = at;
    r->left = bytes;
    const uint64_t count = weights_elements(t);
    if (t->packed && t->fortran)
        return npy_fail(error, CURED_UNIMPLEMENTED,
                        "it is in Fortran order and deflated, which is not turned: save it by "
                        "numpy.savez(), or in C order");
    if (t->packed) {
        r->unpacker = unpack_begin(r->file->fd, &t->member);
        status = r->unpacker != NULL ? skip_header(r, error)
                                     : npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to unpack it");
    }
    if (t->fortran) {
        r->turned = turned_begin(r->file->fd, t->offset, (size_t)(t->bytes / count), t->dims, t->shape, TURN_BYTES);
        if (r->turned == NULL) status = npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to turn it");
    }
    return status;
}

static cured_status read_some(weights_reader *r, uint8_t *out, size_t most, size_t *n, cured_error *error) {
    ssize_t got;
    if (r->unpacker != NULL) return unpack_next(r->unpacker, out, most, n, error);
    if (r->turned != NULL) {
        if (turned_read(r->turned, r->at, out, most, n)) return CURED_OK;
        return npy_fail(error, CURED_DATA_LOSS, "cannot read it: %s", strerror(errno));
    }
    do got = pread(r->file->fd, out, most, (off_t)(r->tensor->offset + r->at));
    while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    if (got >= 0) return CURED_OK;
    return npy_fail(error, CURED_DATA_LOSS, "cannot read it: %s", strerror(errno));
}

cured_status weights_reader_next(weights_reader *r, uint8_t *out, size_t most, size_t *n, cured_error *error) {
    const size_t want = r->left < most ? (size_t)r->left : most;
    uint8_t byte;
    for (*n = 0; *n < want;) {
        size_t got;
        const cured_status status = read_some(r, out + *n, want - *n, &got, error);
        if (status != CURED_OK) return status;
        if (got == 0) return npy_fail(error, CURED_DATA_LOSS, "the file was cut while it was read");
        *n += got;
        r->at += got;
        r->left -= got;
    }
    if (r->tensor->swap != 0) npy_little(out, *n, r->tensor->swap);
    if (r->left != 0 || r->unpacker == NULL) return CURED_OK;
    /* Of what is unpacked the end tells whether its checksum is right. */
    size_t more = 0;
    const cured_status status = unpack_next(r->unpacker, &byte, 1, &more, error);
    return status == CURED_OK && more != 0
               ? npy_fail(error, CURED_DATA_LOSS, "the archive was changed while it was read")
               : status;
}

void weights_reader_end(weights_reader *r) {
    if (r == NULL) return;
    unpack_end(r->unpacker);
    turned_free(r->turned);
    free(r);
}
