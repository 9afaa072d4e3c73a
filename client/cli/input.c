/* input: from a file's name to a call that is done. What is known of the file (regular or not, .npy or raw, how long) is
 * settled first; then it goes by descriptor, or its bytes are streamed. A stored member of an archive is a part of a regular
 * file; a deflated one is a stream, and big-endian elements are turned on the way.
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
#include "client/cli/turned.h"
#include "client/cli/unpack.h"

enum {
    CHUNK_BYTES = 256 * 1024, /* read and sent at a time: stays in the cache between the two */
    LARGEST_ELEMENT = 8,
    BUFFER_BYTES = 2 * (CHUNK_BYTES + LARGEST_ELEMENT),
    TURN_BYTES = 256 * 1024 * 1024, /* of a Fortran-order array that is read in C order */
};
_Static_assert((int)CHUNK_BYTES >= (int)NPY_MAX_HEADER, "a .npy header fits the buffer");

struct input {
    const char *name; /* for sentences */
    int fd;
    bool regular, sized; /* read by position; its size is known */
    bool plain, member;  /* a regular file, also where its size of 0 is not believed; of an archive */
    uint64_t base;       /* regular: where it begins in the descriptor's file */
    uint64_t size;       /* where it is known */
    unpacker *unpacker;  /* NULL: bytes are as they are */
    cured_dtype dtype;
    bool swap, fortran;     /* big-endian; the first index is the fastest */
    uint64_t offset;        /* bytes from where the descriptor stands (streams) or the start of the file (regular) */
    uint64_t count;         /* elements; CURED_TO_END: unknown (never for a regular file) */
    uint8_t *buffer;        /* CHUNK_BYTES, and behind them room for as many that are turned and a cut element */
    size_t have, unread;    /* streams: bytes in the buffer, and where those not looked at yet begin */
    bool exact_end;         /* stream of a known shape: nothing may follow the array */
    uint64_t width, stride; /* of a slice of columns: its bytes in a row, and a row's; 0: the bytes lie together */
    uint64_t turned_base;
    turned *turned; /* the array at turned_base in C order; NULL: in the file's order */
    uint32_t dims;  /* 0: not known, or none */
    const uint64_t *shape;
};

/* Takes the member of the archive that is open. */
static int take_member(const cli_options *o, struct input *in) {
    cured_error error;
    npz_member m;
    cured_status status = npz_find(in->fd, in->size, npz_member_name(o->file), &m, &error);
    if (status != CURED_OK)
        return cli_fail(status == CURED_NOT_FOUND   ? EXIT_NOINPUT
                        : status == CURED_DATA_LOSS ? EXIT_IO
                                                    : EXIT_DATA,
                        "%s: %s", in->name, error.text);
    in->member = true;
    in->base = m.offset;
    in->size = m.bytes;
    if (!m.deflated) return EXIT_OK;
    in->regular = false;
    in->unpacker = unpack_begin(in->fd, &m);
    return in->unpacker != NULL ? EXIT_OK : cli_fail(EXIT_IO, "out of memory");
}

static int open_input(const cli_options *o, struct input *in) {
    struct stat st;
    bool archive;
    int code = cli_open(o->file, &in->name, &in->fd, &archive, &st);
    if (code != EXIT_OK) return code;
    /* A size of 0 may be untrue (/proc, some FUSE): such a file is read until it ends, as a stream. */
    in->plain = S_ISREG(st.st_mode) && strcmp(o->file, "-") != 0;
    in->regular = in->plain && (st.st_size > 0 || o->via == VIA_DESCRIPTOR);
    in->size = in->regular ? (uint64_t)st.st_size : 0;
    in->sized = in->regular;
    if (archive && !in->regular)
        return cli_fail(EXIT_DATA, "%s: the archive is no regular file: its directory is at its end", in->name);
    code = archive ? take_member(o, in) : EXIT_OK;
    if (code == EXIT_OK && o->via == VIA_DESCRIPTOR && !in->regular)
        return cli_fail(EXIT_USAGE, "--via descriptor wants a regular file%s, which %s is not",
                        archive ? " or an array that is not deflated" : "", in->name);
    return code;
}

/* Reads bytes of a slice of columns, row after row. `at` counts from in->offset on in the slice, not in the file. */
static int read_columns(struct input *in, uint64_t at, uint8_t *out, size_t most, size_t *n) {
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
static int read_some(struct input *in, uint64_t at, uint8_t *out, size_t most, size_t *n) {
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
static int fill(struct input *in, size_t want, uint64_t at) {
    while (in->have < want) {
        size_t n;
        int code =
            read_some(in, at + in->have, in->buffer + in->have, (in->regular ? CHUNK_BYTES : want) - in->have, &n);
        if (code != EXIT_OK) return code;
        if (n == 0) break;
        in->have += n;
    }
    return EXIT_OK;
}

/* Reads the header if there is one; *found says so. A name in .npy promises one; otherwise the bytes tell, unless --dtype
 * says that they are raw. */
static int read_npy(const cli_options *o, struct input *in, npy_header *h, bool *found) {
    cured_error error;
    bool promised = in->member || format_ends_with(o->file, ".npy");
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
        dtype = h->size == 2 ? CURED_BF16 : CURED_F8_E4M3;
        if (o->dtype != dtype)
            return cli_fail(EXIT_DATA,
                            "%s holds raw elements of %u bytes (dtype 'V%u'): give --dtype %s if they are %s", in->name,
                            h->size, h->size, cured_dtype_name(dtype), h->size == 2 ? "bfloat16" : "float8_e4m3fn");
    }
    if (o->dtype != CURED_DTYPE_DEFAULT && o->dtype != dtype)
        return cli_fail(EXIT_DATA, "%s holds %s, --dtype says %s", in->name, cured_dtype_name(dtype),
                        cured_dtype_name(o->dtype));
    size_t size = cured_dtype_size(dtype);
    if (in->sized && in->size != h->data_offset + h->count * size)
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
    in->swap = h->big_endian;
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

/* Whether the input is numbers written out, which --dtype does not make elements of: `seq 8 | cured-client sum -`. A name in
 * .bin says that a file's bytes are meant. */
static int check_numbers(struct input *in, bool *numbers) {
    *numbers = format_numbers(in->buffer, in->have, false) && !(in->plain && format_ends_with(in->name, ".bin"));
    const int code = *numbers ? fill(in, NUMBERS_BYTES, 0) : EXIT_OK;
    if (code == EXIT_OK) *numbers = *numbers && format_numbers(in->buffer, in->have, true);
    return code;
}

/* Refuses files that are no arrays. A user who gives --offset knows where the elements lie. One who gives --dtype says that
 * there are elements: the file's name can speak against it, and numbers written out do. */
static int check_format(const cli_options *o, struct input *in) {
    cured_error error;
    npz_member member;
    if (o->raw || o->offset_given) return EXIT_OK;
    int code = fill(in, FORMAT_BYTES, 0);
    const char *name = o->file == in->name ? o->file : NULL; /* standard input has none */
    const format *found = format_find(in->buffer, in->have, name, o->dtype != CURED_DTYPE_DEFAULT);
    bool numbers = false;
    if (code == EXIT_OK && found == NULL) code = check_numbers(in, &numbers);
    if (numbers) found = format_text();
    if (code != EXIT_OK || found == NULL) return code;
    if (in->regular && format_ends_with(o->file, ".npz") &&
        npz_find(in->fd, in->size, NULL, &member, &error) == CURED_NOT_FOUND)
        return cli_fail(EXIT_DATA, "%s is %s: %s", in->name, found->what, error.text);
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
    if (!in->sized || (in->offset <= in->size && in->size - in->offset == in->count * size)) return EXIT_OK;
    return cli_fail(EXIT_DATA, "%s has %llu bytes, --shape wants %llu%s", in->name, (unsigned long long)in->size,
                    (unsigned long long)(in->count * size), in->offset != 0 ? " behind --offset" : "");
}

static int take_raw(const cli_options *o, struct input *in) {
    in->dtype = o->dtype != CURED_DTYPE_DEFAULT ? o->dtype : CURED_F32;
    in->swap = o->big_endian;
    in->offset = o->offset;
    in->count = o->count_given ? o->count : CURED_TO_END;
    if (o->dims != 0) return take_shaped(o, in);
    size_t size = cured_dtype_size(in->dtype);
    if (o->count_given && o->count > (uint64_t)INT64_MAX / size)
        return cli_fail(EXIT_USAGE, "--count is %llu, limit is %llu elements of %s", (unsigned long long)o->count,
                        (unsigned long long)((uint64_t)INT64_MAX / size), cured_dtype_name(in->dtype));
    if (!in->sized) return EXIT_OK;
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
    in->exact_end = !o->count_given;
    return EXIT_OK;
}

/* Gives the next bytes of the stream, at most `most` (0: no limit); *n is 0 at the end. */
static int next_piece(struct input *in, uint64_t at, uint64_t most, const uint8_t **data, size_t *n) {
    size_t want = most < CHUNK_BYTES ? (size_t)most : CHUNK_BYTES;
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

/* After the last byte of a stream that is as long as its array, the stream must end. Of what is unpacked, the checksum too must
 * be right then. */
static int check_end(struct input *in) {
    uint8_t byte;
    size_t n = in->have - in->unread;
    if (in->regular || !in->exact_end) return EXIT_OK;
    int code = n == 0 ? read_some(in, 0, &byte, 1, &n) : EXIT_OK;
    if (code == EXIT_OK && n != 0) return cli_fail(EXIT_DATA, "%s has more bytes than its shape wants", in->name);
    return code;
}

/* Turns the whole elements of a piece; the bytes of a cut one, *cut, wait before the next piece. */
static void turn_piece(struct input *in, const uint8_t **data, size_t *n, size_t *cut) {
    const size_t size = cured_dtype_size(in->dtype);
    uint8_t *little = in->buffer + CHUNK_BYTES, *waiting = little + CHUNK_BYTES + LARGEST_ELEMENT;
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
static int pump(struct input *in, cured_call *call, uint64_t bytes) {
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
    if (cured_reduce_fd(conn, in->dtype, ops, op_count, in->fd, in->base + in->offset, in->count, options, call,
                        &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, in->name);
    return EXIT_OK;
}

/* What --axis means for this input, and whether its answers can be put where they are wanted. */
static int settle_axis(const cli_options *o, struct input *in, const cured_op *ops, size_t op_count,
                       cli_layout *layout) {
    if (o->offsets != NULL) return cli_segments_check(o, in->name, in->dims, in->dtype, ops, op_count);
    if (o->keys != NULL)
        return cli_keys_check(o, in->name, in->dims, in->shape, in->count, in->dtype, ops, op_count, layout);
    if (!o->axis_given) return EXIT_OK;
    bool flat = in->shape == NULL;
    if (flat && in->count == CURED_TO_END)
        return cli_fail(EXIT_USAGE, "--axis wants --shape (or --count) for raw bytes from %s", in->name);
    int code = cli_layout_make(o, in->name, flat ? 1 : in->dims, flat ? &in->count : in->shape, in->fortran, layout);
    return code == EXIT_OK ? cli_arrays_check(o, in->dtype, ops, op_count) : code;
}

/* Reads the array in C order where its ops count so. */
static int settle_order(const cli_options *o, struct input *in, const cured_op *ops, size_t op_count) {
    if (!in->fortran || !cli_counts_order(o, in->dtype, ops, op_count, in->dims, in->shape)) return EXIT_OK;
    if (!in->regular || o->via == VIA_DESCRIPTOR)
        return cli_fail(EXIT_DATA,
                        "%s is in Fortran order, and indices, products of floats and keys count in C order: that "
                        "takes a regular file that is not deflated, without --via descriptor",
                        in->name);
    in->turned_base = in->offset;
    in->turned =
        turned_begin(in->fd, in->base + in->offset, cured_dtype_size(in->dtype), in->dims, in->shape, TURN_BYTES);
    return in->turned != NULL ? EXIT_OK : cli_fail(EXIT_IO, "out of memory");
}

/* An empty file says so when it is read, because a size of 0 alone may be untrue. */
static int settle_empty(struct input *in) {
    if (!in->plain || in->count != CURED_TO_END) return EXIT_OK;
    const int code = fill(in, 1, 0);
    if (code == EXIT_OK && in->have == 0) in->count = 0;
    return code;
}

/* Takes o->slice of what the file holds; it was cut from what the file held before. Where the outermost dimension is reduced, the
 * slice is one of columns. */
static int take_slice(const cli_options *o, struct input *in, cli_layout *layout) {
    if (o->slice == NULL) return EXIT_OK;
    const int code = settle_empty(in);
    if (code != EXIT_OK) return code;
    const uint64_t size = cured_dtype_size(in->dtype);
    const bool columns = o->axis_given && layout->axis.outer == 1;
    uint64_t units = in->count, unit = 1;
    if (o->axis_given) {
        units = columns ? layout->axis.inner : layout->axis.outer;
        unit = columns ? layout->axis.n : layout->axis.n * layout->axis.inner;
    }
    if (in->count == CURED_TO_END || o->slice->first > units || o->slice->count > units - o->slice->first)
        return cli_fail(EXIT_IO, "%s became shorter while it was read", in->name);
    if (o->slice->count == units) return EXIT_OK;
    in->offset += o->slice->first * (columns ? 1 : unit) * size;
    in->count = o->slice->count * unit;
    in->exact_end = false;
    in->width = columns ? o->slice->count * size : 0;
    in->stride = units * size;
    if (o->axis_given) *(columns ? &layout->axis.inner : &layout->axis.outer) = o->slice->count;
    return EXIT_OK;
}

/* Opens the file and settles what it holds. */
static int settle(const cli_options *o, struct input *in, npy_header *h, const cured_op *ops, size_t op_count,
                  cli_layout *layout) {
    bool npy = false;
    int code = open_input(o, in);
    if (code == EXIT_OK && (in->buffer = malloc(BUFFER_BYTES)) == NULL) code = cli_fail(EXIT_IO, "out of memory");
    if (code == EXIT_OK) code = read_npy(o, in, h, &npy);
    if (code == EXIT_OK && !npy) code = check_format(o, in);
    if (code == EXIT_OK) code = npy ? take_npy(o, in, h) : take_raw(o, in);
    if (code == EXIT_OK) code = settle_order(o, in, ops, op_count);
    if (code == EXIT_OK) code = cli_beside_check(o, in->name, in->dims, in->shape, in->fortran, in->dtype, in->count);
    return code == EXIT_OK ? settle_axis(o, in, ops, op_count, layout) : code;
}

static void end_input(struct input *in) {
    free(in->buffer);
    unpack_end(in->unpacker);
    turned_free(in->turned);
    if (in->fd > STDIN_FILENO) close(in->fd);
}

int cli_look_at(const cli_options *o, const cured_op *ops, size_t op_count, cli_look *look, cli_layout *layout) {
    struct input in = {.fd = -1};
    npy_header h;
    int code = settle(o, &in, &h, ops, op_count, layout);
    if (code == EXIT_OK) code = settle_empty(&in);
    *look = (cli_look){.dtype = in.dtype, .count = in.count, .regular = in.regular};
    look->form = cli_shape_form(in.dims, in.shape, in.fortran, in.swap);
    end_input(&in);
    return code;
}

int cli_reduce(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, cured_call **call,
               cured_dtype *dtype, cli_layout *layout) {
    if (o->text) return cli_reduce_text(o, conn, ops, op_count, call, dtype);
    struct input in = {.fd = -1};
    cured_options options = o->call;
    cured_keys keys;
    npy_header h;
    cured_error error;
    *call = NULL;
    int code = settle(o, &in, &h, ops, op_count, layout);
    if (code == EXIT_OK) code = take_slice(o, &in, layout);
    if (code == EXIT_OK) cli_place(o, layout, &keys, &options);
    if (code == EXIT_OK && o->via == VIA_DESCRIPTOR && !cured_passes_fd(conn))
        code = cli_fail(EXIT_USAGE, "--via descriptor wants a Unix socket");
    if (code == EXIT_OK && o->via == VIA_DESCRIPTOR && in.swap)
        code = cli_fail(EXIT_USAGE, "--via descriptor wants little-endian elements, %s has big-endian ones", in.name);
    if (code == EXIT_OK) {
        cli_progress_begin(o, in.name, &options);
        bool descriptor = in.regular && !in.swap && in.width == 0 && in.turned == NULL && o->via != VIA_STREAM &&
                          cured_passes_fd(conn);
        code = (descriptor ? run_descriptor : run_stream)(o, &options, &in, conn, ops, op_count, call);
    }
    if (code == EXIT_OK && cured_wait(*call, &error) != CURED_OK) code = cli_call_failed(o, conn, &error, in.name);
    cli_progress_clear();
    if (code != EXIT_OK) {
        cured_call_free(*call);
        *call = NULL;
    }
    *dtype = in.dtype;
    end_input(&in);
    return code;
}
