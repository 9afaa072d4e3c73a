/* weights: the tensors that a checkpoint holds, from its headers alone: safetensors (also sharded), GGUF (also split), .npz, .npy.
 *
 * Thread: one at a time. Owner: a table owns its names, shapes and descriptors until weights_close(). The files are not trusted:
 * each size is held against the file's before it is used, and each refusal names tensor and field. */
#ifndef CURED_CLIENT_WEIGHTS_WEIGHTS_H
#define CURED_CLIENT_WEIGHTS_WEIGHTS_H

#include "client/cli/npz.h"
#include "cured/cured.h"

enum {
    WEIGHTS_MAX_DIMS = 64,
    WEIGHTS_MAX_HEADER = 100 * 1000 * 1000, /* bytes, of safetensors, GGUF and an index: safetensors' own limit */
    WEIGHTS_MAX_TENSORS = 1 << 20,
    WEIGHTS_MAX_FILES = 1 << 14,
    WEIGHTS_TYPE_BYTES = 24,
    WEIGHTS_MOST_NOTES = 2,
};

typedef struct weights_file {
    char *path;
    int fd;
    uint64_t size;
} weights_file;

typedef struct weights_tensor {
    char *name;                    /* UTF-8 */
    char type[WEIGHTS_TYPE_BYTES]; /* cured's name, "bf16", or as the file says what cured does not reduce: "Q4_K" */
    cured_dtype dtype;             /* CURED_DTYPE_DEFAULT: not reduced; bytes and digest only */
    bool sized;                    /* false: of a type that nobody here knows, so where it ends is not known */
    bool fortran;                  /* the first index is the fastest */
    bool packed;                   /* deflated: `offset` counts in the member, unpacked */
    uint8_t swap;                  /* bytes of what stands in big-endian order, 2, 4 or 8; 0: little-endian */
    uint32_t file, dims;
    uint64_t *shape; /* in C order */
    uint64_t offset, bytes;
    npz_member member; /* if packed */
} weights_tensor;

typedef struct weights {
    weights_tensor *tensors; /* by their names' bytes, each name once */
    size_t count, room;
    weights_file *files;
    size_t file_count, file_room;
    char *notes[WEIGHTS_MOST_NOTES]; /* sentences on what is strange and no error; NULL: no more of them */
} weights;

/* Opens a file, a folder or an index. NOT_FOUND, PERMISSION_DENIED, DATA_LOSS: what the system says; INVALID_ARGUMENT and
 * UNIMPLEMENTED: what is wrong with the file. */
cured_status weights_open(const char *path, weights *out, cured_error *error);
void weights_close(weights *w);
/* Keeps the tensors whose names match the pattern of fnmatch(3). */
void weights_filter(weights *w, const char *pattern);
/* The elements of a tensor: the product of its shape. */
uint64_t weights_elements(const weights_tensor *t);
/* Whether a tensor's bytes are not simply in the file as they are in C order and little-endian. */
bool weights_is_turned(const weights_tensor *t);
/* A shape as text, "[2,3]"; its length. */
enum { WEIGHTS_SHAPE_BYTES = 3 + 21 * WEIGHTS_MAX_DIMS };
size_t weights_shape_text(const weights_tensor *t, char out[WEIGHTS_SHAPE_BYTES]);

#endif
