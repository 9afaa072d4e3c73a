/* npy: the header of NumPy's .npy files, versions 1 to 3.
 *
 * Thread: any; nothing here holds state or does I/O. The bytes are not trusted. */
#ifndef CURED_CLIENT_CLI_NPY_H
#define CURED_CLIENT_CLI_NPY_H

#include "cured/cured.h"

enum {
    NPY_MAGIC_BYTES = 6,
    NPY_MAX_HEADER = 64 * 1024, /* the whole header; NumPy itself refuses more than 10,000 by default */
    NPY_MAX_DIMS = 64,
};

typedef struct npy_header {
    cured_dtype dtype; /* CURED_DTYPE_DEFAULT: void of so many bytes, which is how NumPy writes types that it has not */
    uint64_t count;    /* elements: the product of the shape; count times the element's size fits 63 bits */
    uint64_t data_offset; /* bytes from the start of the file */
    bool fortran_order, big_endian;
    uint32_t dims;
    uint64_t shape[NPY_MAX_DIMS];
    bool any;      /* npy_parse_any: `dtype` may be CURED_DTYPE_DEFAULT for `code`, too */
    char code[24]; /* such an element's type: "C64", "f128", "U3", "M8[ns]", "struct-12" */
    uint32_t size; /* bytes of an element; of void 2, perhaps bfloat16, or 1, perhaps float8_e4m3fn */
    uint32_t turn; /* bytes of what its order turns: of a complex number half */
} npy_header;

/* Fills *error, unless it is NULL, and returns code. */
cured_status npy_fail(cured_error *error, cured_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True when the bytes begin as a .npy file does; len may be shorter than the magic (then false). */
bool npy_is(const uint8_t *in, size_t len);
/* Writes the header that NumPy would write (version 1.0, padded to 64 bytes): its length; 0 when dtype has no form in .npy (i128,
 * int) or dims is too large. */
enum { NPY_MAX_WRITTEN = 2048 };
size_t npy_write(uint8_t out[NPY_MAX_WRITTEN], cured_dtype dtype, bool fortran_order, uint32_t dims,
                 const uint64_t *shape);
/* Parses a header from the file's first len bytes. When more are needed, returns CURED_OK with *need > len (never above
 * NPY_MAX_HEADER) and *out untouched; otherwise *need is the header's length. */
cured_status npy_parse(const uint8_t *in, size_t len, npy_header *out, size_t *need, cured_error *error);
/* The same where elements that are not reduced have a place too: complex numbers, floats of another width, strings, dates, structures,
 * raw bytes. */
cured_status npy_parse_any(const uint8_t *in, size_t len, npy_header *out, size_t *need, cured_error *error);
/* Turns big-endian elements of 2, 4 or 8 bytes. */
void npy_little(uint8_t *data, size_t bytes, size_t size);

#endif
