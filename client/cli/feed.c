/* feed: the bytes of an input, from wherever they lie: read by position or as a stream, unpacked, turned or of columns; and how they go
 * to a call piece by piece.
 *
 * Thread: one. Owner: the input is the caller's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/input.h"
#include "client/cli/npy.h"

/* Reads bytes of a slice of columns, row after row. `at` counts from in->offset on in the slice, not in the file. */
static int read_columns(cli_input *in, uint64_t at, uint8_t *out, size_t most, size_t *n) {
    for (*n = 0; *n < most;) {
        const uint64_t index = at - in->offset + *n, column = index % in->width, left = in->width - column;
        const uint64_t place = in->base + in->offset + index / in->width * in->stride + column;
        const ssize_t got = pread(in->fd, out + *n, most - *n < left ? most - *n : left, (off_t)place);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cli_fail(EXIT_IO, "cannot read %s: %s", in->name, strerror(errno));
        if (got == 0) break;
        *n += (size_t)got;
    }
    return EXIT_OK;
}

/* Reads at most `most` bytes, of regular files at `at`; *n is 0 at the end. */
static int read_some(cli_input *in, uint64_t at, uint8_t *out, size_t most, size_t *n) {
    cured_error error;
    ssize_t got;
    if (in->unpacker != NULL) {
        cured_status status = unpack_next(in->unpacker, out, most, n, &error);
        return status == CURED_OK
                   ? EXIT_OK
                   : cli_fail(status == CURED_INVALID_ARGUMENT ? EXIT_DATA : EXIT_IO, "%s: %s", in->name, error.text);
    }
    if (in->width != 0) return read_columns(in, at, out, most, n);
    if (in->turned != NULL)
        return turned_read(in->turned, at - in->turned_base, out, most, n)
                   ? EXIT_OK
                   : cli_fail(EXIT_IO, "cannot read %s: %s", in->name, strerror(errno));
    if (in->member && at + most > in->size) most = at < in->size ? (size_t)(in->size - at) : 0;
    do got = in->regular ? pread(in->fd, out, most, (off_t)(in->base + at)) : read(in->fd, out, most);
    while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    return got >= 0 ? EXIT_OK : cli_fail(EXIT_IO, "cannot read %s: %s", in->name, strerror(errno));
}

/* Reads until the buffer holds at least `want` bytes or the file ends. Regular files are read at `at`. */
int cli_input_fill(cli_input *in, size_t want, uint64_t at) {
    while (in->have < want) {
        size_t n;
        int code =
            read_some(in, at + in->have, in->buffer + in->have, (in->regular ? CLI_CHUNK_BYTES : want) - in->have, &n);
        if (code != EXIT_OK) return code;
        if (n == 0) break;
        in->have += n;
    }
    return EXIT_OK;
}

/* Gives the next bytes of the stream, at most `most` (0: no limit); *n is 0 at the end. */
static int next_piece(cli_input *in, uint64_t at, uint64_t most, const uint8_t **data, size_t *n) {
    size_t want = most < CLI_CHUNK_BYTES ? (size_t)most : CLI_CHUNK_BYTES;
    if (in->unread == in->have) {
        in->unread = in->have = 0;
        int code = read_some(in, at, in->buffer, want, &in->have);
        if (code != EXIT_OK) return code;
    }
    *data = in->buffer + in->unread;
    *n = in->have - in->unread < want ? in->have - in->unread : want;
    in->unread += *n;
    return EXIT_OK;
}

/* Streams: reads past the bytes before the array. */
int cli_input_start(cli_input *in) {
    uint64_t left = in->offset;
    while (!in->regular && left > 0) {
        const uint8_t *data;
        size_t n;
        int code = next_piece(in, 0, left, &data, &n);
        if (code != EXIT_OK) return code;
        if (n == 0)
            return cli_fail(EXIT_DATA, "%s ends %llu bytes before the array begins", in->name,
                            (unsigned long long)left);
        left -= n;
    }
    if (in->regular) in->have = in->unread = 0; /* read at positions from here on */
    return EXIT_OK;
}

/* After the last byte of a stream that is as long as its array, the stream must end. Of what is unpacked, the checksum too must
 * be right then. */
static int check_end(cli_input *in) {
    uint8_t byte;
    size_t n = in->have - in->unread;
    if (in->regular || !in->exact_end) return EXIT_OK;
    int code = n == 0 ? read_some(in, 0, &byte, 1, &n) : EXIT_OK;
    if (code != EXIT_OK || n == 0) return code;
    if (in->shape != NULL || in->dims != 0)
        return cli_fail(EXIT_DATA, "%s has more bytes than its shape wants", in->name);
    return cli_fail(EXIT_DATA, "%s has more bytes than the %llu elements that --where or --second has", in->name,
                    (unsigned long long)in->count);
}

/* Turns the whole elements of a piece; the bytes of a cut one, *cut, wait before the next piece. */
static void turn_piece(cli_input *in, const uint8_t **data, size_t *n, size_t *cut) {
    const size_t size = cured_dtype_size(in->dtype);
    uint8_t *little = in->buffer + CLI_CHUNK_BYTES, *waiting = little + CLI_CHUNK_BYTES + CLI_LARGEST_ELEMENT;
    memcpy(little, waiting, *cut);
    memcpy(little + *cut, *data, *n);
    *n += *cut;
    *cut = *n % size;
    *n -= *cut;
    memcpy(waiting, little + *n, *cut);
    npy_little(little, *n, size);
    *data = little;
}

/* Hands the file over piece by piece; stops early when the daemon has answered. The call is done or ended after EXIT_OK. */
int cli_input_pump(cli_input *in, cured_call *call, uint64_t bytes) {
    uint64_t total = 0;
    size_t size = cured_dtype_size(in->dtype), cut = 0;
    int code = bytes == 0 ? check_end(in) : EXIT_OK;
    while (code == EXIT_OK && !cured_call_done(call) && total < bytes) {
        const uint8_t *data;
        size_t n;
        code = next_piece(in, in->offset + total, bytes - total, &data, &n);
        if (code != EXIT_OK || n == 0) break;
        total += n;
        if (total == bytes) code = check_end(in); /* before the call has all that it waits for */
        if (in->swap) turn_piece(in, &data, &n, &cut);
        if (code == EXIT_OK && n != 0 && cured_stream_write(call, data, n, NULL) == CURED_OK)
            cured_stream_drain(call, NULL);
    }
    if (code != EXIT_OK || cured_call_done(call)) return code; /* its status says why */
    if (bytes == CURED_UNKNOWN_LENGTH && total % size != 0)
        return cli_fail(EXIT_DATA, "%s has %llu bytes, which is not a multiple of %zu, the size of %s", in->name,
                        (unsigned long long)total, size, cured_dtype_name(in->dtype));
    if (bytes != CURED_UNKNOWN_LENGTH && total < bytes)
        return cli_fail(EXIT_DATA, "%s ends after %llu of %llu bytes", in->name, (unsigned long long)total,
                        (unsigned long long)bytes);
    cured_stream_end(call, NULL);
    return EXIT_OK;
}

int cli_input_all(cli_input *in) {
    const uint64_t bytes = in->count * cured_dtype_size(in->dtype);
    int code = cli_input_start(in);
    if (code == EXIT_OK && (in->array = malloc(bytes + 1)) == NULL)
        code = cli_fail(EXIT_IO, "no memory for the %llu bytes of %s", (unsigned long long)bytes, in->name);
    for (uint64_t total = 0; code == EXIT_OK && total < bytes;) {
        const uint8_t *data;
        size_t n;
        code = next_piece(in, in->offset + total, bytes - total, &data, &n);
        if (code == EXIT_OK && n == 0)
            code = cli_fail(EXIT_DATA, "%s ends after %llu of %llu bytes", in->name, (unsigned long long)total,
                            (unsigned long long)bytes);
        if (code == EXIT_OK) memcpy(in->array + total, data, n);
        total += n;
    }
    return code == EXIT_OK ? check_end(in) : code;
}
