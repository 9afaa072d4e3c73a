/* dtype: the element types of arrays and results. One list (dtype.def) gives ids, names, sizes and kinds.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_DTYPE_H
#define CURED_KERNELS_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

typedef enum cr_dtype {
    CR_DTYPE_NONE = 0, /* unspecified: "the op's default" as a result type, an error as an input type */
#define CR_DTYPE(symbol, id, ...) CR_##symbol = (id),
#include "kernels/core/dtype.def"
#undef CR_DTYPE
    CR_DTYPE_INPUTS = CR_F8_E5M2, /* the last id that may be an input */
    CR_I128 = 14,                 /* results only: 16 bytes */
    CR_BIGINT = 15, /* results only, "int": 9 … 32 bytes of two's complement, as few as hold the value */
    CR_DIGEST = 20, /* results only: 24 bytes (digest.h) */
} cr_dtype;

/* What ends a switch over the types of elements, "case CR_NO_INPUT:", is what no array has. A switch over integers ends with
 * "case CR_NO_INT:". No such switch has a default, so that the compiler names those that a new type is missing from. */
#define CR_NO_INPUT \
    CR_DTYPE_NONE:  \
    case CR_I128:   \
    case CR_BIGINT: \
    case CR_DIGEST
#define CR_NO_INT    \
    CR_F8_E4M3:      \
    case CR_F8_E5M2: \
    case CR_F16:     \
    case CR_BF16:    \
    case CR_F32:     \
    case CR_F64:     \
    case CR_NO_INPUT

/* How elements are coded: as integers of their size, or in a float's format (float.def). */
typedef enum cr_format {
    CR_FORMAT_INT,
#define CR_FLOAT(symbol, ...) CR_FORMAT_##symbol,
#include "kernels/core/float.def"
#undef CR_FLOAT
} cr_format;

typedef enum cr_kind { CR_KIND_BOOL, CR_KIND_UINT, CR_KIND_SINT, CR_KIND_FLOAT, CR_KIND_NONE } cr_kind;

/* Bytes of one element; 0 for CR_DTYPE_NONE, CR_BIGINT and numbers outside the list. */
size_t cr_dtype_size(cr_dtype dtype);
/* "f32"; "i128", "int" and "digest" for the result-only types; "none" otherwise. */
const char *cr_dtype_name(cr_dtype dtype);
cr_kind cr_dtype_kind(cr_dtype dtype);
/* How its elements are coded; what is no input counts as an integer. */
cr_format cr_dtype_format(cr_dtype dtype);
/* The bits of a 1. */
uint64_t cr_dtype_one(cr_dtype dtype);
/* The type that magnitudes of dtype have: of iN uN, else itself. */
cr_dtype cr_dtype_magnitude(cr_dtype dtype);
/* The type of DLPack's code and bits of an element, one lane wide; CR_DTYPE_NONE: none of ours. */
cr_dtype cr_dtype_of_dlpack(unsigned code, unsigned bits);
/* The type that files of safetensors call so; CR_DTYPE_NONE: none of ours. */
cr_dtype cr_dtype_of_safetensors(const char *name);
/* NumPy's code of an element without its order, "f4", and its name, "float32"; NULL: NumPy has none. And the type of such a code;
 * CR_DTYPE_NONE: none of ours. */
const char *cr_dtype_code(cr_dtype dtype);
const char *cr_dtype_numpy(cr_dtype dtype);
cr_dtype cr_dtype_of_code(const char *code);
/* True for the types an input array may have. */
bool cr_dtype_is_input(cr_dtype dtype);
/* Parses a name: cured's ("f32") or NumPy's ("float32", "bool", "bfloat16", …). Names of types that are known but not
 * offered (complex64, float8_e4m3, …) fail with UNIMPLEMENTED and their name; anything else with INVALID_ARGUMENT. */
cr_status cr_dtype_parse(const char *name, cr_dtype *dtype, cr_error *error);

#endif
