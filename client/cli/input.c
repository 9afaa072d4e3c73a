/* input: from a file's name to a call that is done. What is known of the file (regular or not, .npy or raw, how long) is
 * settled first; then it goes by descriptor, or its bytes are streamed.
 *
 * Thread: one. Owner: the descriptor and the buffer live inside cli_reduce. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/format.h"
#include "client/cli/npy.h"

enum { CHUNK_BYTES = 256 * 1024 }; /* read and sent at a time: stays in the cache between the two */
_Static_assert((int)CHUNK_BYTES >= (int)NPY_MAX_HEADER, "a .npy header fits the buffer");

struct input {
    const char *name; /* for sentences */
    int fd;
    bool regular;
    uint64_t size; /* of a regular file */
    cured_dtype dtype;
    uint64_t offset;     /* bytes from where the descriptor stands (streams) or the start of the file (regular) */
    uint64_t count;      /* elements; CURED_TO_END: unknown (never for a regular file) */
    uint8_t *buffer;     /* CHUNK_BYTES */
    size_t have, unread; /* streams: bytes in the buffer, and where those not looked at yet begin */
    bool exact_end;      /* stream of a known shape: nothing may follow the array */
    bool fortran;
    uint32_t dims; /* 0: not known, or none */
    const uint64_t *shape;
};

static int open_input(const cli_options *o, struct input *in) {
    bool standard = strcmp(o->file, "-") == 0;
    in->name = standard ? "standard input" : o->file;
    in->fd = standard ? STDIN_FILENO : open(o->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (in->fd < 0)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_NOINPUT, "cannot open %s: %s", in->name,
                        strerror(errno));
    struct stat st;
    if (fstat(in->fd, &st) != 0) return cli_fail(EXIT_IO, "cannot examine %s: %s", in->name, strerror(errno));
    if (S_ISDIR(st.st_mode)) return cli_fail(EXIT_NOINPUT, "%s is a directory, not a file", in->name);
    /* A size of 0 may be untrue (/proc, some FUSE): such a file is read until it ends, as a stream. */
    in->regular = S_ISREG(st.st_mode) && !standard && (st.st_size > 0 || o->via == VIA_DESCRIPTOR);
    in->size = in->regular ? (uint64_t)st.st_size : 0;
    if (o->via == VIA_DESCRIPTOR && !in->regular)
        return cli_fail(EXIT_USAGE, "--via descriptor wants a regular file, which %s is not", in->name);
    return EXIT_OK;
}

/* Reads until the buffer holds at least `want` bytes or the file ends. Regular files are read at `at`. */
static int fill(struct input *in, size_t want, uint64_t at) {
    while (in->have < want) {
        ssize_t n = in->regular ? pread(in->fd, in->buffer + in->have, CHUNK_BYTES - in->have, (off_t)(at + in->have))
                                : read(in->fd, in->buffer + in->have, want - in->have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cli_fail(EXIT_IO, "cannot read %s: %s", in->name, strerror(errno));
        if (n == 0) break;
        in->have += (size_t)n;
    }
    return EXIT_OK;
}

static bool ends_with(const char *text, const char *tail) {
    size_t len = strlen(text), n = strlen(tail);
    return len >= n && strcmp(text + len - n, tail) == 0;
}

/* Reads the header if there is one; *found says so. A name in .npy promises one; otherwise the bytes tell, unless --dtype
 * says that they are raw. */
static int read_npy(const cli_options *o, struct input *in, npy_header *h, bool *found) {
    cured_error error;
    bool promised = ends_with(o->file, ".npy");
    size_t need = NPY_MAGIC_BYTES;
    *found = false;
    if (o->raw) return EXIT_OK;
    if (!promised && o->dtype != CURED_DTYPE_DEFAULT) return EXIT_OK;
    do {
        int code = fill(in, need, 0);
        if (code != EXIT_OK) return code;
        if (!promised && !npy_is(in->buffer, in->have)) return EXIT_OK;
        if (in->have < need)
            return cli_fail(EXIT_DATA, "%s ends in the middle of its .npy header (%zu bytes)", in->name, in->have);
        size_t had = need;
        if (npy_parse(in->buffer, in->have, h, &need, &error) != CURED_OK)
            return cli_fail(EXIT_DATA, "%s: %s", in->name, error.text);
        *found = need == had || need <= in->have;
    } while (!*found);
    return EXIT_OK;
}

/* Takes the array of a .npy file, checked against the file's size and the options. */
static int take_npy(const cli_options *o, struct input *in, const npy_header *h) {
    cured_dtype dtype = h->dtype;
    if (dtype == CURED_DTYPE_DEFAULT) {
        if (o->dtype != CURED_BF16)
            return cli_fail(EXIT_DATA,
                            "%s holds raw two-byte elements (dtype 'V2'): give --dtype bf16 if they are "
                            "bfloat16",
                            in->name);
        dtype = CURED_BF16;
    }
    if (o->dtype != CURED_DTYPE_DEFAULT && o->dtype != dtype)
        return cli_fail(EXIT_DATA, "%s holds %s, --dtype says %s", in->name, cured_dtype_name(dtype),
                        cured_dtype_name(o->dtype));
    size_t size = cured_dtype_size(dtype);
    if (in->regular && in->size != h->data_offset + h->count * size)
        return cli_fail(EXIT_DATA, "%s has %llu bytes, its .npy header and shape want %llu", in->name,
                        (unsigned long long)in->size, (unsigned long long)(h->data_offset + h->count * size));
    if (o->offset % size != 0)
        return cli_fail(EXIT_DATA, "--offset is %llu, must be a multiple of %zu, the size of %s in %s",
                        (unsigned long long)o->offset, size, cured_dtype_name(dtype), in->name);
    uint64_t first = o->offset / size;
    if (first > h->count || (o->count_given && o->count > h->count - first))
        return cli_fail(EXIT_DATA, "--offset and --count go beyond the %llu elements of %s",
                        (unsigned long long)h->count, in->name);
    in->dtype = dtype;
    in->offset = h->data_offset + o->offset;
    in->count = o->count_given ? o->count : h->count - first;
    in->exact_end = !o->count_given;
    in->fortran = h->fortran_order;
    in->dims = h->dims;
    in->shape = h->shape;
    if (o->axis_given && (o->offset_given || o->count_given))
        return cli_fail(EXIT_USAGE, "--axis takes the whole array of %s: leave out --offset and --count", in->name);
    if (o->dims != 0) return cli_fail(EXIT_USAGE, "--shape is for raw files, %s has a shape of its own", in->name);
    return EXIT_OK;
}

/* Refuses files that are no arrays. A user who gives --offset knows where the elements lie. One who gives --dtype says that
 * there are elements, and only the file's name can speak against it. */
static int check_format(const cli_options *o, struct input *in) {
    if (o->raw || o->offset_given) return EXIT_OK;
    int code = fill(in, FORMAT_BYTES, 0);
    const char *name = o->file == in->name ? o->file : NULL; /* standard input has none */
    const format *found = format_find(in->buffer, in->have, name, o->dtype != CURED_DTYPE_DEFAULT);
    if (code != EXIT_OK || found == NULL) return code;
    return cli_fail(EXIT_DATA, "%s is %s, not raw elements: %s (--raw takes its bytes for elements)", in->name,
                    found->what, found->advice);
}

/* --shape says how many elements a raw file has, exactly. */
static int take_shaped(const cli_options *o, struct input *in) {
    size_t size = cured_dtype_size(in->dtype);
    int code = cli_shape_count(o, size, &in->count);
    if (code != EXIT_OK) return code;
    if (o->count_given) return cli_fail(EXIT_USAGE, "--shape says how many elements there are: leave out --count");
    in->dims = o->dims;
    in->shape = o->shape;
    in->exact_end = true;
    if (!in->regular || (in->offset <= in->size && in->size - in->offset == in->count * size)) return EXIT_OK;
    return cli_fail(EXIT_DATA, "%s has %llu bytes, --shape wants %llu%s", in->name, (unsigned long long)in->size,
                    (unsigned long long)(in->count * size), in->offset != 0 ? " behind --offset" : "");
}

static int take_raw(const cli_options *o, struct input *in) {
    in->dtype = o->dtype != CURED_DTYPE_DEFAULT ? o->dtype : CURED_F32;
    in->offset = o->offset;
    in->count = o->count_given ? o->count : CURED_TO_END;
    if (o->dims != 0) return take_shaped(o, in);
    size_t size = cured_dtype_size(in->dtype);
    if (o->count_given && o->count > (uint64_t)INT64_MAX / size)
        return cli_fail(EXIT_USAGE, "--count is %llu, limit is %llu elements of %s", (unsigned long long)o->count,
                        (unsigned long long)((uint64_t)INT64_MAX / size), cured_dtype_name(in->dtype));
    if (!in->regular) return EXIT_OK;
    if (in->offset > in->size)
        return cli_fail(EXIT_DATA, "--offset is %llu, %s has %llu bytes", (unsigned long long)in->offset, in->name,
                        (unsigned long long)in->size);
    uint64_t left = in->size - in->offset;
    if (o->count_given && o->count > left / size)
        return cli_fail(EXIT_DATA, "--count is %llu, %s holds %llu elements of %s from there",
                        (unsigned long long)o->count, in->name, (unsigned long long)(left / size),
                        cured_dtype_name(in->dtype));
    if (!o->count_given && left % size != 0)
        return cli_fail(EXIT_DATA, "%s has %llu bytes%s, which is not a multiple of %zu, the size of %s", in->name,
                        (unsigned long long)left, in->offset != 0 ? " from there" : "", size,
                        cured_dtype_name(in->dtype));
    in->count = o->count_given ? o->count : left / size;
    return EXIT_OK;
}

/* Gives the next bytes of the stream, at most `most` (0: no limit); *n is 0 at the end. */
static int next_piece(struct input *in, uint64_t at, uint64_t most, const uint8_t **data, size_t *n) {
    size_t want = most < CHUNK_BYTES ? (size_t)most : CHUNK_BYTES;
    if (in->unread == in->have) {
        in->unread = in->have = 0;
        ssize_t r;
        do r = in->regular ? pread(in->fd, in->buffer, want, (off_t)at) : read(in->fd, in->buffer, want);
        while (r < 0 && errno == EINTR);
        if (r < 0) return cli_fail(EXIT_IO, "cannot read %s: %s", in->name, strerror(errno));
        in->have = (size_t)r;
    }
    *data = in->buffer + in->unread;
    *n = in->have - in->unread < want ? in->have - in->unread : want;
    in->unread += *n;
    return EXIT_OK;
}

/* Streams: reads past the bytes before the array. */
static int skip_to_start(struct input *in) {
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

/* After the last byte of a .npy stream the stream must end. */
static int check_end(struct input *in) {
    const uint8_t *data;
    size_t n;
    if (in->regular || !in->exact_end) return EXIT_OK;
    int code = next_piece(in, 0, 1, &data, &n);
    if (code == EXIT_OK && n != 0) return cli_fail(EXIT_DATA, "%s has more bytes than its shape wants", in->name);
    return code;
}

/* Hands the file over piece by piece; stops early when the daemon has answered. The call is done or ended after EXIT_OK. */
static int pump(struct input *in, cured_call *call, uint64_t bytes) {
    uint64_t total = 0;
    size_t size = cured_dtype_size(in->dtype);
    while (!cured_call_done(call) && total < bytes) {
        const uint8_t *data;
        size_t n;
        int code = next_piece(in, in->offset + total, bytes - total, &data, &n);
        if (code != EXIT_OK) return code;
        if (n == 0) break;
        if (cured_stream_write(call, data, n, NULL) == CURED_OK) cured_stream_drain(call, NULL);
        total += n;
    }
    if (cured_call_done(call)) return EXIT_OK; /* its status says why */
    if (bytes == CURED_UNKNOWN_LENGTH && total % size != 0)
        return cli_fail(EXIT_DATA, "%s has %llu bytes, which is not a multiple of %zu, the size of %s", in->name,
                        (unsigned long long)total, size, cured_dtype_name(in->dtype));
    if (bytes != CURED_UNKNOWN_LENGTH && total < bytes)
        return cli_fail(EXIT_DATA, "%s ends after %llu of %llu bytes", in->name, (unsigned long long)total,
                        (unsigned long long)bytes);
    int code = bytes != CURED_UNKNOWN_LENGTH ? check_end(in) : EXIT_OK;
    if (code == EXIT_OK) cured_stream_end(call, NULL);
    return code;
}

static int run_stream(const cli_options *o, const cured_options *options, struct input *in, cured_conn *conn,
                      const cured_op *ops, size_t op_count, cured_call **call) {
    cured_error error;
    int code = skip_to_start(in);
    if (code != EXIT_OK) return code;
    uint64_t bytes = in->count != CURED_TO_END ? in->count * cured_dtype_size(in->dtype) : CURED_UNKNOWN_LENGTH;
    if (cured_reduce_stream_begin(conn, in->dtype, ops, op_count, bytes, options, call, &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, in->name);
    return pump(in, *call, bytes);
}

static int run_descriptor(const cli_options *o, const cured_options *options, struct input *in, cured_conn *conn,
                          const cured_op *ops, size_t op_count, cured_call **call) {
    cured_error error;
    if (cured_reduce_fd(conn, in->dtype, ops, op_count, in->fd, in->offset, in->count, options, call, &error) !=
        CURED_OK)
        return cli_call_failed(o, conn, &error, in->name);
    return EXIT_OK;
}

/* What --axis means for this input, and whether its answers can be put where they are wanted. */
static int settle_axis(const cli_options *o, struct input *in, const cured_op *ops, size_t op_count,
                       cli_layout *layout) {
    if (!o->axis_given) return EXIT_OK;
    bool flat = in->shape == NULL;
    if (flat && in->count == CURED_TO_END)
        return cli_fail(EXIT_USAGE, "--axis wants --shape (or --count) for raw bytes from %s", in->name);
    int code = cli_layout_make(o, in->name, flat ? 1 : in->dims, flat ? &in->count : in->shape, in->fortran, layout);
    return code == EXIT_OK ? cli_arrays_check(o, in->dtype, ops, op_count) : code;
}

int cli_reduce(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, cured_call **call,
               cured_dtype *dtype, cli_layout *layout) {
    struct input in = {.fd = -1};
    cured_options options = o->call;
    npy_header h;
    cured_error error;
    bool npy;
    *call = NULL;
    int code = open_input(o, &in);
    if (code == EXIT_OK && (in.buffer = malloc(CHUNK_BYTES)) == NULL) code = cli_fail(EXIT_IO, "out of memory");
    if (code == EXIT_OK) code = read_npy(o, &in, &h, &npy);
    if (code == EXIT_OK && !npy) code = check_format(o, &in);
    if (code == EXIT_OK) code = npy ? take_npy(o, &in, &h) : take_raw(o, &in);
    if (code == EXIT_OK) code = settle_axis(o, &in, ops, op_count, layout);
    options.axis = o->axis_given ? &layout->axis : NULL;
    options.max_result_bytes = UINT64_MAX; /* asked for by name: what memory there is decides */
    if (code == EXIT_OK && o->via == VIA_DESCRIPTOR && !cured_passes_fd(conn))
        code = cli_fail(EXIT_USAGE, "--via descriptor wants a Unix socket");
    if (code == EXIT_OK) cli_progress_begin(o, in.name, &options);
    if (code == EXIT_OK) {
        bool descriptor = in.regular && o->via != VIA_STREAM && cured_passes_fd(conn);
        code = (descriptor ? run_descriptor : run_stream)(o, &options, &in, conn, ops, op_count, call);
    }
    if (code == EXIT_OK && cured_wait(*call, &error) != CURED_OK) code = cli_call_failed(o, conn, &error, in.name);
    cli_progress_clear();
    if (code != EXIT_OK) {
        cured_call_free(*call);
        *call = NULL;
    }
    *dtype = in.dtype;
    free(in.buffer);
    if (in.fd > STDIN_FILENO) close(in.fd);
    return code;
}
