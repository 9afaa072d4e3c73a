/* dtype: names, sizes and kinds of the element types, all from dtype.def.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/dtype.h"

#include <stdint.h>
#include <string.h>

#include "kernels/core/digest.h"
#include "kernels/core/float.h"

static const struct {
    const char *name, *numpy, *code, *safetensors;
    uint8_t size, kind, dlpack;
} rows[] = {
#define CR_DTYPE(symbol, id, name, size, kind, numpy, code, dlpack, arrow, safetensors) \
    [id] = {name, numpy, code, safetensors, size, CR_KIND_##kind, dlpack},
#include "kernels/core/dtype.def"
#undef CR_DTYPE
    [CR_DTYPE_NONE] = {"none", NULL, "", "", 0, CR_KIND_NONE, UINT8_MAX},
    [CR_I128] = {"i128", "int128", "", "", 16, CR_KIND_SINT, UINT8_MAX},
    [CR_BIGINT] = {"int", NULL, "", "", 0, CR_KIND_SINT, UINT8_MAX},
    [CR_DIGEST] = {"digest", NULL, "", "", CR_DIGEST_BYTES, CR_KIND_NONE, UINT8_MAX},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Inputs are those up to CR_DTYPE_INPUTS, less the results among them; the others may have gaps. */
static unsigned row_of(cr_dtype dtype) {
    return (unsigned)dtype < ROWS && rows[dtype].name != NULL ? (unsigned)dtype : CR_DTYPE_NONE;
}

size_t cr_dtype_size(cr_dtype dtype) { return rows[row_of(dtype)].size; }

const char *cr_dtype_name(cr_dtype dtype) { return rows[row_of(dtype)].name; }

cr_kind cr_dtype_kind(cr_dtype dtype) { return (cr_kind)rows[row_of(dtype)].kind; }

cr_format cr_dtype_format(cr_dtype dtype) {
    static const uint8_t formats[ROWS] = {
#define CR_FLOAT(symbol, ...) [CR_##symbol] = CR_FORMAT_##symbol,
#include "kernels/core/float.def"
#undef CR_FLOAT
    };
    return (cr_format)formats[row_of(dtype)];
}

uint64_t cr_dtype_one(cr_dtype dtype) {
    static const uint64_t ones[ROWS] = {
#define CR_FLOAT(symbol, ...) [CR_##symbol] = (uint64_t)CR_##symbol##_BIAS << CR_##symbol##_MANTISSA,
#include "kernels/core/float.def"
#undef CR_FLOAT
    };
    const uint64_t one = ones[row_of(dtype)];
    return one != 0 ? one : 1;
}

cr_dtype cr_dtype_of_dlpack(unsigned code, unsigned bits) {
    for (unsigned i = 1; i <= CR_DTYPE_INPUTS; i++)
        if (rows[i].dlpack == code && 8u * rows[i].size == bits) return (cr_dtype)i;
    return CR_DTYPE_NONE;
}

cr_dtype cr_dtype_of_code(const char *code) {
    for (unsigned i = 1; i <= CR_DTYPE_INPUTS && code[0] != '\0'; i++)
        if (strcmp(code, rows[i].code) == 0) return (cr_dtype)i;
    return CR_DTYPE_NONE;
}

cr_dtype cr_dtype_of_safetensors(const char *name) {
    for (unsigned i = 1; i <= CR_DTYPE_INPUTS; i++)
        if (cr_dtype_is_input((cr_dtype)i) && strcmp(name, rows[i].safetensors) == 0) return (cr_dtype)i;
    return CR_DTYPE_NONE;
}

const char *cr_dtype_code(cr_dtype dtype) {
    return cr_dtype_is_input(dtype) && rows[dtype].code[0] != '\0' ? rows[dtype].code : NULL;
}

const char *cr_dtype_numpy(cr_dtype dtype) { return cr_dtype_code(dtype) != NULL ? rows[dtype].numpy : NULL; }

/* Unsigned types come before the signed ones of their size. */
_Static_assert(CR_U8 + 1 == CR_I8 && CR_U16 + 1 == CR_I16 && CR_U32 + 1 == CR_I32 && CR_U64 + 1 == CR_I64,
               "magnitudes of iN are a uN");
cr_dtype cr_dtype_magnitude(cr_dtype dtype) {
    return cr_dtype_is_input(dtype) && cr_dtype_kind(dtype) == CR_KIND_SINT ? (cr_dtype)(dtype - 1) : dtype;
}

bool cr_dtype_is_input(cr_dtype dtype) {
    return (int)dtype >= 1 && (int)dtype <= CR_DTYPE_INPUTS && dtype != CR_I128 && dtype != CR_BIGINT;
}

/* NumPy's codes: "f4" is float32. Its i8 and u8 have 8 bytes, ours 8 bits: those two want their "<". */
static cr_status parse_code(const char *name, cr_dtype *dtype, cr_error *error) {
    bool ordered = name[0] != '\0' && strchr("<>=|", name[0]) != NULL;
    const char *code = name + ordered;
    const cr_dtype found = cr_dtype_of_code(code);
    if (found == CR_DTYPE_NONE)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "unknown dtype \"%.40s\" (there are"
#define CR_DTYPE(symbol, id, name, ...) " " name
#include "kernels/core/dtype.def"
#undef CR_DTYPE
                       ")",
                       name);
    if (name[0] == '>' && code[1] != '1')
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "dtype %s is big-endian, which is not read: convert the array (NumPy: a.astype('<%s'))", name,
                       code);
    *dtype = found;
    return CR_OK;
}

cr_status cr_dtype_parse(const char *name, cr_dtype *dtype, cr_error *error) {
    static const struct {
        const char *name;
        cr_dtype dtype;
    } more[] = {{"bool_", CR_BOOL}, {"half", CR_F16}, {"single", CR_F32}, {"double", CR_F64}};
    static const char *const later[] = {
        "complex64",
        "complex128",
        "complex256",
        "c64",
        "c128",
        "float8_e4m3fnuz",
        "float8_e3m4",
        "float8_e4m3b11fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float128",
        "float96",
        "longdouble",
        "uint128",
        "u128",
        "int4",
        "uint4",
        "float4_e2m1fn",
        "datetime64",
        "timedelta64",
        "object",
        "str",
        "fp8",
    };
    for (unsigned i = 1; i < ROWS; i++) {
        if (rows[i].name == NULL) continue;
        if (strcmp(name, rows[i].name) == 0 || (rows[i].numpy && strcmp(name, rows[i].numpy) == 0)) {
            *dtype = (cr_dtype)i;
            return CR_OK;
        }
    }
    if (cr_dtype_of_safetensors(name) != CR_DTYPE_NONE) {
        *dtype = cr_dtype_of_safetensors(name);
        return CR_OK;
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (strcmp(name, more[i].name) == 0) {
            *dtype = more[i].dtype;
            return CR_OK;
        }
    }
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strcmp(name, later[i]) == 0)
            return cr_fail(error, CR_UNIMPLEMENTED, "dtype %s is not offered yet", later[i]);
    }
    if (strcmp(name, "float8_e4m3") == 0)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "dtype float8_e4m3 is not offered yet: it has infinities, and float8_e4m3fn (f8_e4m3) has none");
    if (strcmp(name, "float") == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "dtype float is 4 bytes in C and 8 in NumPy: say f32 or f64");
    if (strcmp(name, "uint") == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "dtype uint is 4 bytes in C and 8 in NumPy: say u32 or u64");
    return parse_code(name, dtype, error);
}
