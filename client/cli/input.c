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
#include "client/cli/input.h"
#include "client/cli/npy.h"
#include "cured/strided.h"

enum { TURN_BYTES = 256 * 1024 * 1024 /* of a Fortran-order array that is read in C order */ };
_Static_assert((int)CLI_CHUNK_BYTES >= (int)NPY_MAX_HEADER, "a .npy header fits the buffer");

/* Takes the member of the archive that is open. */
static int take_member(const cli_options *o, cli_input *in) {
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

/* Whether a file has as many bytes as its size says. Those of /sys have a page for any. */
static bool has_its_size(int fd, off_t size) {
    char byte;
    return size != sysconf(_SC_PAGESIZE) || pread(fd, &byte, 1, size - 1) != 0;
}

static int open_input(const cli_options *o, cli_input *in) {
    struct stat st;
    bool archive;
    int code = cli_open(o->file, &in->name, &in->fd, &archive, &st);
    if (code != EXIT_OK) return code;
    /* A size of 0 may be untrue (/proc, some FUSE), as that of /sys is: such a file is read until it ends, as a stream. */
    in->plain = S_ISREG(st.st_mode) && strcmp(o->file, "-") != 0;
    const bool sized = st.st_size > 0 && has_its_size(in->fd, st.st_size);
    in->regular = in->plain && (sized || o->via == VIA_DESCRIPTOR);
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

/* Reads the header if there is one; *found says so. A name in .npy promises one; otherwise the bytes tell, unless --dtype
 * says that they are raw. */
static int read_npy(const cli_options *o, cli_input *in, npy_header *h, bool *found) {
    cured_error error;
    bool promised = in->member || format_ends_with(o->file, ".npy");
    size_t need = NPY_MAGIC_BYTES;
    *found = false;
    if (o->raw) return EXIT_OK;
    if (!promised && o->dtype != CURED_DTYPE_DEFAULT) return EXIT_OK;
    do {
        int code = cli_input_fill(in, need, 0);
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
static int take_npy(const cli_options *o, cli_input *in, const npy_header *h) {
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
    in->part = o->offset_given || o->count_given;
    in->shape = in->part && in->dims == 1 ? &in->count : h->shape;
    if (o->axis_given && in->part)
        return cli_fail(EXIT_USAGE, "--axis takes the whole array of %s: leave out --offset and --count", in->name);
    if (o->keys != NULL && in->part && in->dims > 1)
        return cli_fail(EXIT_USAGE, "--keys takes all rows of %s: leave out --offset and --count", in->name);
    if (o->dims != 0) return cli_fail(EXIT_USAGE, "--shape is for raw files, %s has a shape of its own", in->name);
    return EXIT_OK;
}

/* Whether the input is numbers written out, which --dtype does not make elements of: `seq 8 | cured-client sum -`. A name in
 * .bin says that a file's bytes are meant. */
static int check_numbers(cli_input *in, bool *numbers) {
    *numbers = format_numbers(in->buffer, in->have, false) && !(in->plain && format_ends_with(in->name, ".bin"));
    const int code = *numbers ? cli_input_fill(in, NUMBERS_BYTES, 0) : EXIT_OK;
    if (code == EXIT_OK) *numbers = *numbers && format_numbers(in->buffer, in->have, true);
    return code;
}

/* Refuses files that are no arrays. A user who gives --offset knows where the elements lie. One who gives --dtype says that
 * there are elements: the file's name can speak against it, and numbers written out do. */
static int check_format(const cli_options *o, cli_input *in) {
    cured_error error;
    npz_member member;
    if (o->raw || o->offset_given) return EXIT_OK;
    int code = cli_input_fill(in, FORMAT_BYTES, 0);
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
static int take_shaped(const cli_options *o, cli_input *in) {
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

static int take_raw(const cli_options *o, cli_input *in) {
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

static int run_stream(const cli_options *o, const cured_options *options, cli_input *in, cured_conn *conn,
                      const cured_op *ops, size_t op_count, cured_call **call) {
    cured_error error;
    int code = cli_input_start(in);
    if (code != EXIT_OK) return code;
    uint64_t bytes = in->count != CURED_TO_END ? in->count * cured_dtype_size(in->dtype) : CURED_UNKNOWN_LENGTH;
    if (cured_reduce_stream_begin(conn, in->dtype, ops, op_count, bytes, options, call, &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, in->name);
    return cli_input_pump(in, *call, bytes);
}

static int run_descriptor(const cli_options *o, const cured_options *options, cli_input *in, cured_conn *conn,
                          const cured_op *ops, size_t op_count, cured_call **call) {
    cured_error error;
    if (cured_reduce_fd(conn, in->dtype, ops, op_count, in->fd, in->base + in->offset, in->count, options, call,
                        &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, in->name);
    return EXIT_OK;
}

/* Axes that do not lie side by side: the array is read to memory, where its elements are taken in the order of the answers. */
static int run_strided(const cli_options *o, const cured_options *options, cli_input *in, cured_conn *conn,
                       const cured_op *ops, size_t op_count, const cli_layout *layout, cured_call **call) {
    cured_error error;
    uint64_t shape[CLI_MAX_DIMS + 1];
    int64_t strides[CLI_MAX_DIMS + 1], places[CLI_MAX_DIMS], stride = (int64_t)cured_dtype_size(in->dtype);
    cured_strided array = {.shape = shape, .strides = strides, .big_endian = in->swap};
    const int code = cli_input_all(in);
    if (code != EXIT_OK) return code;
    for (uint32_t k = 0; k < in->dims; k++) {
        const uint32_t d = in->fortran ? k : in->dims - 1 - k;
        places[d] = stride;
        stride *= (int64_t)in->shape[d];
    }
    for (uint32_t d = 0; d < in->dims; d++) {
        if (in->shape[d] == 1) continue;
        array.axes |= (layout->axes >> d & 1) << array.dims;
        shape[array.dims] = in->shape[d];
        strides[array.dims++] = places[d];
    }
    shape[array.dims] = 1; /* a dimension that is kept, because all axes would be no array of answers */
    strides[array.dims++] = 0;
    array.data = in->array;
    if (cured_reduce_strided(conn, in->dtype, ops, op_count, &array, options, call, &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, in->name);
    return EXIT_OK;
}

/* What --axis means for this input, and whether its answers can be put where they are wanted. */
static int settle_axis(const cli_options *o, cli_input *in, const cured_op *ops, size_t op_count, cli_layout *layout) {
    if (o->offsets != NULL) return cli_segments_check(o, in->name, in->dims, in->dtype, ops, op_count);
    if (o->keys != NULL)
        return cli_keys_check(o, in->name, in->dims, in->shape, in->count, in->dtype, ops, op_count, layout);
    if (!o->axis_given) return EXIT_OK;
    bool flat = in->shape == NULL;
    if (flat && in->count == CURED_TO_END)
        return cli_fail(EXIT_USAGE, "--axis wants --shape (or --count) for raw bytes from %s", in->name);
    int code = cli_layout_make(o, in->name, flat ? 1 : in->dims, flat ? &in->count : in->shape, in->fortran,
                               cli_ordered(in->dtype, ops, op_count), layout);
    if (code == EXIT_OK && layout->apart && (cli_program_here.whole || o->via == VIA_DESCRIPTOR))
        return cli_fail(EXIT_USAGE,
                        "--axis: dimensions that do not lie side by side are read to memory, which goes with %s",
                        cli_program_here.whole ? "cured-client alone" : "no --via descriptor");
    return code == EXIT_OK ? cli_arrays_check(o, in->dtype, ops, op_count) : code;
}

/* Reads the array in C order where its ops count so. */
static int settle_order(const cli_options *o, cli_input *in, const cured_op *ops, size_t op_count) {
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
static int settle_empty(cli_input *in) {
    if (!in->plain || in->count != CURED_TO_END) return EXIT_OK;
    const int code = cli_input_fill(in, 1, 0);
    if (code == EXIT_OK && in->have == 0) in->count = 0;
    return code;
}

/* Takes o->slice of what the file holds; it was cut from what the file held before. Where the outermost dimension is reduced, the
 * slice is one of columns. */
static int take_slice(const cli_options *o, cli_input *in, cli_layout *layout) {
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

/* What lies beside a part of a .npy file has the part's elements, in one dimension. */
static int check_beside(const cli_options *o, cli_input *in) {
    const uint64_t *shape = in->part ? &in->count : in->shape;
    const int code = cli_beside_check(o, in->name, in->part ? 1 : in->dims, shape, in->fortran && in->dims > 1,
                                      in->dtype, in->count);
    if (code != EXIT_OK || in->count != CURED_TO_END) return code;
    in->count = cli_beside_count(o); /* a stream of no known length is as long */
    in->exact_end = in->count != CURED_TO_END;
    return EXIT_OK;
}

/* Opens the file and settles what it holds. */
static int settle(const cli_options *o, cli_input *in, npy_header *h, const cured_op *ops, size_t op_count,
                  cli_layout *layout) {
    bool npy = false;
    int code = open_input(o, in);
    if (code == EXIT_OK && (in->buffer = malloc(CLI_BUFFER_BYTES)) == NULL) code = cli_fail(EXIT_IO, "out of memory");
    if (code == EXIT_OK) code = read_npy(o, in, h, &npy);
    if (code == EXIT_OK && !npy) code = check_format(o, in);
    if (code == EXIT_OK) code = npy ? take_npy(o, in, h) : take_raw(o, in);
    if (code == EXIT_OK) code = settle_order(o, in, ops, op_count);
    if (code == EXIT_OK) code = check_beside(o, in);
    return code == EXIT_OK ? settle_axis(o, in, ops, op_count, layout) : code;
}

static void end_input(cli_input *in) {
    free(in->buffer);
    unpack_end(in->unpacker);
    turned_free(in->turned);
    free(in->array);
    if (in->fd > STDIN_FILENO) close(in->fd);
}

int cli_look_at(const cli_options *o, const cured_op *ops, size_t op_count, cli_look *look, cli_layout *layout) {
    cli_input in = {.fd = -1};
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
    cli_input in = {.fd = -1};
    cured_options options = o->call;
    cured_keys keys;
    cli_block block;
    npy_header h;
    cured_error error;
    *call = NULL;
    int code = settle(o, &in, &h, ops, op_count, layout);
    if (code == EXIT_OK) code = take_slice(o, &in, layout);
    if (code == EXIT_OK) cli_place(o, layout, &keys, &options);
    if (code == EXIT_OK) code = cli_block_place(o, &in, &block, &options);
    if (code == EXIT_OK && o->via == VIA_DESCRIPTOR && !cured_passes_fd(conn))
        code = cli_fail(EXIT_USAGE, "--via descriptor wants a Unix socket");
    if (code == EXIT_OK && o->via == VIA_DESCRIPTOR && in.swap)
        code = cli_fail(EXIT_USAGE, "--via descriptor wants little-endian elements, %s has big-endian ones", in.name);
    const bool apart = code == EXIT_OK && o->axis_given && layout->apart;
    if (code == EXIT_OK) cli_progress_begin(o, in.name, &options);
    if (apart) {
        code = run_strided(o, &options, &in, conn, ops, op_count, layout, call);
    } else if (code == EXIT_OK) {
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
