/* source: the elements of a file, block by block, where a descriptor alone does not do: big-endian elements, deflated members of
 * archives, and arrays in Fortran order whose ops count in C order.
 *
 * Thread: begin and end with the GIL, the others without, one at a time. Owner: the caller; a source borrows what its input says of the file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/npy.h"
#include "client/cli/turned.h"
#include "client/cli/unpack.h"
#include "client/python/extension.h"

enum { TURN_BYTES = 16 << 20, MOST_ROW_BYTES = 1 << 30 };

struct cr_py_source {
    int fd;
    size_t size;
    bool big;
    uint64_t at;   /* in the file; of turned elements, in the turned array */
    uint64_t skip; /* deflated: bytes to pass over */
    unpacker *unpacker;
    turned *turned;
};

bool cr_py_source_wanted(const cr_py_input *in) {
    return in->kind == CR_PY_FILE && (in->file.big || in->file.in_c_order || in->file.packed != NULL);
}

/* Rows are what has one first index. */
static cured_status begin_turned(cr_py_source *s, const cr_py_input *in, cured_error *error) {
    uint64_t row = s->size;
    for (int i = 1; i < in->ndim; i++) row *= in->file.shape[i];
    if (row > MOST_ROW_BYTES)
        return npy_fail(error, CURED_RESOURCE_EXHAUSTED,
                        "file: in C order a row of it has %llu bytes, the limit is %d: reduce numpy.load(name, "
                        "mmap_mode='r')",
                        (unsigned long long)row, MOST_ROW_BYTES);
    s->at = 0;
    s->turned = turned_begin(s->fd, in->file.offset, s->size, (uint32_t)in->ndim, in->file.shape, TURN_BYTES);
    return s->turned != NULL ? CURED_OK : npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to turn the file");
}

cr_py_source *cr_py_source_begin(const cr_py_input *in, uint64_t count, cured_error *error) {
    cr_py_source *s = PyMem_Calloc(1, sizeof *s);
    cured_status status = CURED_OK;
    if (s == NULL) {
        npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to read the file");
        return NULL;
    }
    s->fd = in->file.fd;
    s->size = in->size;
    s->big = in->file.big;
    s->at = in->file.offset;
    if (in->file.packed != NULL) {
        s->skip = in->file.offset - in->file.packed->offset;
        s->unpacker = unpack_begin(s->fd, in->file.packed);
        if (s->unpacker == NULL) status = npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to unpack the array");
    } else if (in->file.in_c_order && count != 0) {
        status = begin_turned(s, in, error);
    }
    if (status == CURED_OK) return s;
    cr_py_source_end(s);
    return NULL;
}

void cr_py_source_end(cr_py_source *s) {
    if (s == NULL) return;
    unpack_end(s->unpacker);
    turned_free(s->turned);
    PyMem_Free(s);
}

/* Some bytes, at least one unless the file ends. */
static cured_status read_some(cr_py_source *s, uint8_t *out, size_t most, size_t *n, cured_error *error) {
    if (s->unpacker != NULL) return unpack_next(s->unpacker, out, most, n, error);
    bool good = true;
    *n = 0;
    if (s->turned != NULL) {
        good = turned_read(s->turned, s->at, out, most, n);
    } else {
        ssize_t got;
        do got = pread(s->fd, out, most, (off_t)s->at);
        while (got < 0 && errno == EINTR);
        good = got >= 0;
        if (good) *n = (size_t)got;
    }
    s->at += *n;
    return good ? CURED_OK : npy_fail(error, CURED_DATA_LOSS, "file: it cannot be read: %s", strerror(errno));
}

cured_status cr_py_source_next(cr_py_source *s, void *out, size_t most, size_t *n, cured_error *error) {
    const uint64_t bytes = s->skip != 0 && s->skip < most * s->size ? s->skip : most * s->size;
    for (size_t have = 0, got; have < bytes; have += got) {
        const cured_status status = read_some(s, (uint8_t *)out + have, (size_t)bytes - have, &got, error);
        if (status != CURED_OK) return status;
        if (got == 0) return npy_fail(error, CURED_DATA_LOSS, "file: it was cut while it was read");
    }
    *n = s->skip != 0 ? 0 : most;
    if (s->skip != 0) s->skip -= bytes;
    if (s->big) cr_walk_turn(out, (uint8_t)s->size, *n);
    return CURED_OK;
}

cured_status cr_py_source_check(cr_py_source *s, cured_error *error) {
    uint8_t byte;
    size_t n = 0;
    if (s->unpacker == NULL) return CURED_OK;
    const cured_status status = unpack_next(s->unpacker, &byte, 1, &n, error);
    if (status != CURED_OK || n == 0) return status;
    return npy_fail(error, CURED_INVALID_ARGUMENT, "file: the array unpacks to more bytes than its shape wants");
}
