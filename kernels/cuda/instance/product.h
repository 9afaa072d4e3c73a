/* product: rows of fold.def, axis.def and offsets.def for several types at once, so that what is a product is written as one. Who includes a table
 * defines CR_FOLD (or CR_AXIS, CR_OFFSETS) and its …_SAME and …_AS, includes this once, and then the table.
 *
 * Thread: none; macros only. Owner: nothing. */
#ifndef CURED_KERNELS_CUDA_INSTANCE_PRODUCT_H
#define CURED_KERNELS_CUDA_INSTANCE_PRODUCT_H

/* A list of types: row(before, type, after …) for each. */
#define CR_TYPES_UINTS(row, unit, kind, ...)                                                                      \
    row(unit, kind, CR_U8, __VA_ARGS__) row(unit, kind, CR_U16, __VA_ARGS__) row(unit, kind, CR_U32, __VA_ARGS__) \
        row(unit, kind, CR_U64, __VA_ARGS__)
#define CR_TYPES_BOOL_AND_UINTS(row, unit, kind, ...) \
    row(unit, kind, CR_BOOL, __VA_ARGS__) CR_TYPES_UINTS(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_SIGNED(row, unit, kind, ...)                                                                     \
    row(unit, kind, CR_I8, __VA_ARGS__) row(unit, kind, CR_I16, __VA_ARGS__) row(unit, kind, CR_I32, __VA_ARGS__) \
        row(unit, kind, CR_I64, __VA_ARGS__)
#define CR_TYPES_INTS(row, unit, kind, ...) \
    CR_TYPES_BOOL_AND_UINTS(row, unit, kind, __VA_ARGS__) CR_TYPES_SIGNED(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_INTS_BUT_I32(row, unit, kind, ...)                                                               \
    row(unit, kind, CR_I8, __VA_ARGS__) row(unit, kind, CR_I16, __VA_ARGS__) row(unit, kind, CR_I64, __VA_ARGS__) \
        CR_TYPES_BOOL_AND_UINTS(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_I32_AND_I64(row, unit, kind, ...) \
    row(unit, kind, CR_I32, __VA_ARGS__) row(unit, kind, CR_I64, __VA_ARGS__)
#define CR_TYPES_HALVES(row, unit, kind, ...) row(unit, kind, CR_F16, __VA_ARGS__) row(unit, kind, CR_BF16, __VA_ARGS__)
#define CR_TYPES_F32_AND_F64(row, unit, kind, ...) \
    row(unit, kind, CR_F32, __VA_ARGS__) row(unit, kind, CR_F64, __VA_ARGS__)
#define CR_TYPES_FLOATS(row, unit, kind, ...) \
    CR_TYPES_HALVES(row, unit, kind, __VA_ARGS__) CR_TYPES_F32_AND_F64(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_BYTES(row, unit, kind, ...) \
    row(unit, kind, CR_F8_E4M3, __VA_ARGS__) row(unit, kind, CR_F8_E5M2, __VA_ARGS__)
#define CR_TYPES_ALL_FLOATS(row, unit, kind, ...) \
    CR_TYPES_FLOATS(row, unit, kind, __VA_ARGS__) CR_TYPES_BYTES(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_FLOATS_BUT_F32(row, unit, kind, ...) \
    row(unit, kind, CR_F64, __VA_ARGS__) CR_TYPES_HALVES(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_F32_AND_HALVES(row, unit, kind, ...) \
    row(unit, kind, CR_F32, __VA_ARGS__) CR_TYPES_HALVES(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_ALL_FLOATS_BUT_F64(row, unit, kind, ...) \
    CR_TYPES_F32_AND_HALVES(row, unit, kind, __VA_ARGS__) CR_TYPES_BYTES(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_UINTS_AND_FLOATS(row, unit, kind, ...) \
    CR_TYPES_UINTS(row, unit, kind, __VA_ARGS__) CR_TYPES_ALL_FLOATS(row, unit, kind, __VA_ARGS__)
#define CR_TYPES_WIDE_UINTS(row, unit, kind, ...) \
    row(unit, kind, CR_U16, __VA_ARGS__) row(unit, kind, CR_U32, __VA_ARGS__) row(unit, kind, CR_U64, __VA_ARGS__)
#define CR_TYPES_ALL(row, unit, kind, ...) \
    CR_TYPES_INTS(row, unit, kind, __VA_ARGS__) CR_TYPES_ALL_FLOATS(row, unit, kind, __VA_ARGS__)

/* A row for each type of a list. */
#define CR_FOLDS(unit, kind, types, ...) CR_TYPES_##types(CR_FOLD, unit, kind, __VA_ARGS__)
#define CR_AXES(unit, kind, types, ...) CR_TYPES_##types(CR_AXIS, unit, kind, __VA_ARGS__)
#define CR_SEGMENTS(unit, kind, types, ...) CR_TYPES_##types(CR_OFFSETS, unit, kind, __VA_ARGS__)

/* Kinds of types whose kernel is another kind's: the unit is none. */
#define CR_FOLDS_AS(kind, types, other) CR_TYPES_##types(CR_FOLD_OTHER, none, kind, other)
#define CR_FOLD_OTHER(unit, kind, dtype, other) CR_FOLD_AS(kind, dtype, other)
#define CR_AXES_AS(kind, types, other) CR_TYPES_##types(CR_AXIS_OTHER, none, kind, other)
#define CR_AXIS_OTHER(unit, kind, dtype, other) CR_AXIS_AS(kind, dtype, other)

#define CR_SIGNED(same, kind) \
    same(kind, CR_I8, CR_U8) same(kind, CR_I16, CR_U16) same(kind, CR_I32, CR_U32) same(kind, CR_I64, CR_U64)
#define CR_FOLD_SIGNED(kind) CR_SIGNED(CR_FOLD_SAME, kind)
/* Everything as unsigned integers of its size. */
#define CR_FOLD_BITS(kind)                \
    CR_FOLD_SAME(kind, CR_BOOL, CR_U8)    \
    CR_FOLD_SIGNED(kind)                  \
    CR_FOLD_SAME(kind, CR_F8_E4M3, CR_U8) \
    CR_FOLD_SAME(kind, CR_F8_E5M2, CR_U8) \
    CR_FOLD_SAME(kind, CR_F16, CR_U16)    \
    CR_FOLD_SAME(kind, CR_BF16, CR_U16) CR_FOLD_SAME(kind, CR_F32, CR_U32) CR_FOLD_SAME(kind, CR_F64, CR_U64)
#define CR_AXIS_SIGNED(kind) CR_SIGNED(CR_AXIS_SAME, kind)

#endif
