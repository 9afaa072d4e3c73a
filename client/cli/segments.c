/* segments: --offsets: the .npy file that holds the borders of segments, and the shape of their answers.
 *
 * Thread: one. Owner: cli_run has the offsets until its call is freed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/npy.h"

enum { STEP_BYTES = 1 << 20 };

int cli_read_failed(const char *path, int why) {
    return why == EISDIR ? cli_fail(EXIT_NOINPUT, "%s is a directory, not a file", path)
                         : cli_fail(EXIT_IO, "cannot read %s: %s", path, strerror(why));
}

uint8_t *cli_read_all(const char *path, size_t *bytes, int *code) {
    uint8_t *data = NULL, *more;
    size_t room = 0;
    const bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rbe");
    *bytes = 0;
    *code = EXIT_OK;
    if (file == NULL)
        *code = cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_NOINPUT, "cannot open %s: %s", path,
                         strerror(errno));
    while (*code == EXIT_OK && !feof(file)) {
        if (room - *bytes < STEP_BYTES) {
            room = 2 * room + 2 * STEP_BYTES;
            more = realloc(data, room);
            if (more == NULL) {
                *code = cli_fail(EXIT_IO, "out of memory");
                break;
            }
            data = more;
        }
        *bytes += fread(data + *bytes, 1, room - *bytes, file);
        if (ferror(file)) *code = cli_read_failed(path, errno);
    }
    if (file != NULL && !standard) fclose(file);
    if (*code == EXIT_OK) return data;
    free(data);
    return NULL;
}

int cli_npy_take(const char *option, const char *hint, const char *path, uint8_t *file, size_t bytes, npy_header *h) {
    cured_error error = {CURED_OK, 0, ""};
    size_t need = 0;
    if (!npy_is(file, bytes) || npy_parse(file, bytes, h, &need, &error) != CURED_OK || need > bytes)
        return cli_fail(EXIT_DATA, "--%s: %s is no .npy file%s%s%s", option, path, hint,
                        error.code != CURED_OK ? ": " : "", error.text);
    if (h->dtype == CURED_DTYPE_DEFAULT && strcmp(option, "second") != 0) /* which is of the first array's type */
        return cli_fail(EXIT_DATA, "--%s: %s holds raw elements (dtype 'V%u')", option, path, h->size);
    const size_t size = h->size, left = h->data_offset <= bytes ? bytes - h->data_offset : 0;
    if (h->data_offset > bytes || left / size != h->count || left % size != 0)
        return cli_fail(EXIT_DATA, "--%s: %s has not the %llu elements that its header says", option, path,
                        (unsigned long long)h->count);
    if (h->big_endian) npy_little(file + h->data_offset, h->count * size, size);
    return EXIT_OK;
}

int cli_npy_read(const char *option, const char *path, uint8_t **file, cured_dtype *dtype, const uint8_t **data,
                 uint64_t *count) {
    npy_header h = {.dims = 0};
    size_t bytes;
    int code;
    *file = cli_read_all(path, &bytes, &code);
    if (code == EXIT_OK) code = cli_npy_take(option, "", path, *file, bytes, &h);
    if (code != EXIT_OK) return code;
    if (h.dims != 1) return cli_fail(EXIT_DATA, "--%s: %s must have one dimension", option, path);
    *dtype = h.dtype;
    *data = *file + h.data_offset;
    *count = h.count;
    return EXIT_OK;
}

int cli_segments_read(const char *path, cli_segments *segments) {
    cured_dtype dtype;
    uint64_t count;
    const uint8_t *data;
    const int code = cli_npy_read("offsets", path, &segments->file, &dtype, &data, &count);
    if (code != EXIT_OK) return code;
    if (dtype != CURED_I32 && dtype != CURED_I64 && dtype != CURED_U32 && dtype != CURED_U64)
        return cli_fail(EXIT_DATA, "--offsets: %s must have one dimension of i32, i64, u32 or u64", path);
    segments->offsets = (cured_offsets){data, count, dtype};
    return EXIT_OK;
}

int cli_segments_check(const cli_options *o, const char *name, uint32_t dims, cured_dtype dtype, const cured_op *ops,
                       size_t op_count) {
    if (dims > 1)
        return cli_fail(EXIT_DATA, "--offsets names segments of an array of one dimension, %s has %u", name, dims);
    return cli_arrays_check(o, dtype, ops, op_count);
}

void cli_segments_layout(const cli_segments *segments, cli_layout *layout) {
    *layout = (cli_layout){.dims = 1, .first = "segment"};
    layout->shape[0] = segments->offsets.count - 1;
}
