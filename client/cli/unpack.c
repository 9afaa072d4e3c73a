/* unpack: a member's deflated bytes through zlib. What comes out is bounded by what the archive's directory says, so that a few
 * bytes cannot become endless ones.
 *
 * Thread: one at a time. Owner: the unpacker owns zlib's state. */
#include "client/cli/unpack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "client/cli/npy.h"

enum { INPUT_BYTES = 64 * 1024, RAW_DEFLATE = -15 /* window bits: neither zlib's head nor gzip's */ };

struct unpacker {
    z_stream z;
    int fd;
    uint64_t at, stored, bytes; /* in the file; what is still to be read, and to come out */
    uint32_t crc, wanted_crc;
    bool ended;
    uint8_t input[INPUT_BYTES];
};

unpacker *unpack_begin(int fd, const npz_member *member) {
    unpacker *u = calloc(1, sizeof *u);
    if (u == NULL) return NULL;
    u->fd = fd;
    u->at = member->offset;
    u->stored = member->stored;
    u->bytes = member->bytes;
    u->wanted_crc = member->crc;
    if (inflateInit2(&u->z, RAW_DEFLATE) == Z_OK) return u;
    free(u);
    return NULL;
}

void unpack_end(unpacker *u) {
    if (u == NULL) return;
    inflateEnd(&u->z);
    free(u);
}

static cured_status damaged(cured_error *error, const char *what) {
    return npy_fail(error, CURED_INVALID_ARGUMENT, "the archive is damaged: %s", what);
}

/* Reads more of the file if zlib has used up what it had. */
static cured_status refill(unpacker *u, cured_error *error) {
    ssize_t n;
    if (u->z.avail_in != 0 || u->stored == 0) return CURED_OK;
    do n = pread(u->fd, u->input, u->stored < INPUT_BYTES ? (size_t)u->stored : INPUT_BYTES, (off_t)u->at);
    while (n < 0 && errno == EINTR);
    if (n < 0) return npy_fail(error, CURED_DATA_LOSS, "cannot read the archive: %s", strerror(errno));
    if (n == 0) return npy_fail(error, CURED_DATA_LOSS, "the archive was cut while it was read");
    u->at += (uint64_t)n;
    u->stored -= (uint64_t)n;
    u->z.next_in = u->input;
    u->z.avail_in = (uInt)n;
    return CURED_OK;
}

cured_status unpack_next(unpacker *u, void *out, size_t most, size_t *n, cured_error *error) {
    assert(most != 0); /* nothing would come, for ever */
    *n = 0;
    while (*n == 0 && !u->ended) {
        cured_status status = refill(u, error);
        if (status != CURED_OK) return status;
        const bool last = u->z.avail_in == 0;
        u->z.next_out = out;
        u->z.avail_out = (uInt)(most < INT32_MAX ? most : INT32_MAX);
        const uInt room = u->z.avail_out;
        const int result = inflate(&u->z, Z_NO_FLUSH);
        *n = room - u->z.avail_out;
        if (*n > u->bytes) return damaged(error, "an array unpacks to more bytes than the directory says");
        u->bytes -= *n;
        u->crc = (uint32_t)crc32(u->crc, out, (uInt)*n);
        u->ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR) return npy_fail(error, CURED_RESOURCE_EXHAUSTED, "no memory to unpack the array");
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return damaged(error, "an array cannot be unpacked");
        if (last && *n == 0 && !u->ended) return damaged(error, "a deflated array ends in the middle");
    }
    if (*n != 0) return CURED_OK;
    if (u->bytes != 0) return damaged(error, "an array unpacks to fewer bytes than the directory says");
    return u->crc == u->wanted_crc ? CURED_OK : damaged(error, "the checksum of an array is wrong");
}
