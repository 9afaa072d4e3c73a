/* dtype: names, sizes and kinds of the element types, all from dtype.def.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/dtype.h"

#include <string.h>

size_t cr_dtype_size(cr_dtype dtype) {
    switch ((int)dtype) {
#define CR_DTYPE(symbol, id, name, size, kind) \
    case id:                                   \
        return size;
#include "kernels/core/dtype.def"
#undef CR_DTYPE
        case CR_I128:
            return 16;
    }
    return 0;
}

const char *cr_dtype_name(cr_dtype dtype) {
    switch ((int)dtype) {
#define CR_DTYPE(symbol, id, name, size, kind) \
    case id:                                   \
        return name;
#include "kernels/core/dtype.def"
#undef CR_DTYPE
        case CR_I128:
            return "i128";
        case CR_BIGINT:
            return "int";
    }
    return "none";
}

cr_kind cr_dtype_kind(cr_dtype dtype) {
    switch ((int)dtype) {
#define CR_DTYPE(symbol, id, name, size, kind) \
    case id:                                   \
        return CR_KIND_##kind;
#include "kernels/core/dtype.def"
#undef CR_DTYPE
        case CR_I128:
        case CR_BIGINT:
            return CR_KIND_SINT;
    }
    return CR_KIND_NONE;
}

/* Unsigned types come before the signed ones of their size. */
_Static_assert(CR_U8 + 1 == CR_I8 && CR_U16 + 1 == CR_I16 && CR_U32 + 1 == CR_I32 && CR_U64 + 1 == CR_I64,
               "magnitudes of iN are a uN");
cr_dtype cr_dtype_magnitude(cr_dtype dtype) {
    return cr_dtype_is_input(dtype) && cr_dtype_kind(dtype) == CR_KIND_SINT ? (cr_dtype)(dtype - 1) : dtype;
}

bool cr_dtype_is_input(cr_dtype dtype) { return (int)dtype >= 1 && (int)dtype <= CR_DTYPE_INPUTS; }

/* NumPy's codes: "f4" is float32. Its i8 and u8 have 8 bytes, ours 8 bits: those two want their "<". */
static cr_status parse_code(const char *name, cr_dtype *dtype, cr_error *error) {
    static const struct {
        char code[3];
        cr_dtype dtype;
    } codes[] = {
        {"b1", CR_BOOL}, {"u1", CR_U8},  {"i1", CR_I8},  {"u2", CR_U16}, {"i2", CR_I16}, {"u4", CR_U32},
        {"i4", CR_I32},  {"u8", CR_U64}, {"i8", CR_I64}, {"f2", CR_F16}, {"f4", CR_F32}, {"f8", CR_F64},
    };
    bool ordered = name[0] != '\0' && strchr("<>=|", name[0]) != NULL;
    const char *code = name + ordered;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(code, codes[i].code) != 0) continue;
        if (name[0] == '>' && code[1] != '1')
            return cr_fail(error, CR_UNIMPLEMENTED,
                           "dtype %s is big-endian, which is not read: convert the array (NumPy: a.astype('<%s'))",
                           name, code);
        *dtype = codes[i].dtype;
        return CR_OK;
    }
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "unknown dtype \"%.40s\" (bool, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32 or f64)", name);
}

cr_status cr_dtype_parse(const char *name, cr_dtype *dtype, cr_error *error) {
    static const struct {
        const char *name;
        cr_dtype dtype;
    } names[] = {
#define CR_DTYPE(symbol, id, name, size, kind) {name, CR_##symbol},
#include "kernels/core/dtype.def"
#undef CR_DTYPE
        {"i128", CR_I128},   {"int", CR_BIGINT},  {"bool_", CR_BOOL},    {"uint8", CR_U8},    {"int8", CR_I8},
        {"uint16", CR_U16},  {"int16", CR_I16},   {"uint32", CR_U32},    {"int32", CR_I32},   {"uint64", CR_U64},
        {"int64", CR_I64},   {"float16", CR_F16}, {"bfloat16", CR_BF16}, {"float32", CR_F32}, {"float64", CR_F64},
        {"int128", CR_I128}, {"half", CR_F16},    {"single", CR_F32},    {"double", CR_F64},
    };
    static const char *const later[] = {
        "complex64",
        "complex128",
        "complex256",
        "c64",
        "c128",
        "float8_e4m3",
        "float8_e4m3fn",
        "float8_e5m2",
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
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i].name) == 0) {
            *dtype = names[i].dtype;
            return CR_OK;
        }
    }
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strcmp(name, later[i]) == 0)
            return cr_fail(error, CR_UNIMPLEMENTED, "dtype %s is not offered yet", later[i]);
    }
    if (strcmp(name, "float") == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "dtype float is 4 bytes in C and 8 in NumPy: say f32 or f64");
    return parse_code(name, dtype, error);
}
