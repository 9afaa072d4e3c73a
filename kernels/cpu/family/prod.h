/* prod: products of integers.
 *
 * The product modulo 2^64 runs in four chains. The magnitude of the non-zero elements is multiplied only until it is beyond
 * every result type, which ordinary data reaches within some tens of elements; zeros and signs are counted throughout.
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PROD_H
#define CURED_KERNELS_CPU_FAMILY_PROD_H

#include "kernels/core/prod.h"
#include "kernels/cpu/family/float_prod.h"

ALWAYS int64_t prod_element(const uint8_t *p, cr_dtype dtype) {
    uint64_t bits = 0;
    switch (dtype) {
        case CR_BOOL:
            return *p != 0;
        case CR_I8:
            return (int8_t)*p;
        case CR_U8:
            return *p;
        case CR_U16:
            memcpy(&bits, p, 2);
            return (int64_t)bits;
        case CR_I16:
            memcpy(&bits, p, 2);
            return (int16_t)bits;
        case CR_U32:
            memcpy(&bits, p, 4);
            return (int64_t)bits;
        case CR_I32:
            memcpy(&bits, p, 4);
            return (int32_t)bits;
        case CR_U64:
        case CR_I64:
            memcpy(&bits, p, 8);
            break;
        case CR_NO_INT:
            break;
    }
    return (int64_t)bits;
}

ALWAYS void prod_pass(cr_partial *part, const uint8_t *p, size_t n, cr_dtype dtype, struct ahead ahead) {
    const size_t size = cr_dtype_size(dtype);
    const bool is_signed = dtype == CR_I8 || dtype == CR_I16 || dtype == CR_I32 || dtype == CR_I64;
    uint64_t wrap[4] = {part->prod.wrap, 1, 1, 1}, zeros = 0, signs = 0;
    size_t i = 0;
    /* A magnitude of 1 changes nothing, and any other takes at least a bit: 1,024 of them at most. */
    for (; i < n && !part->prod.over; i++) {
        uint64_t x = (uint64_t)prod_element(p + i * size, dtype);
        uint64_t negative = is_signed ? x >> 63 : 0, magnitude = negative ? -x : x;
        zeros += x == 0;
        signs += negative;
        wrap[0] *= x;
        if (magnitude > 1) cr_int_prod_times(&part->prod, magnitude);
    }
    for (; i + 4 <= n; i += 4) {
        if (i % 64 < 4) fetch(ahead, i * size, 64);
#pragma GCC unroll 4
        for (size_t lane = 0; lane < 4; lane++) {
            uint64_t x = (uint64_t)prod_element(p + (i + lane) * size, dtype);
            zeros += x == 0;
            if (is_signed) signs += x >> 63;
            wrap[lane] *= x;
        }
    }
    for (; i < n; i++) {
        uint64_t x = (uint64_t)prod_element(p + i * size, dtype);
        zeros += x == 0;
        if (is_signed) signs += x >> 63;
        wrap[0] *= x;
    }
    part->prod.wrap = wrap[0] * wrap[1] * wrap[2] * wrap[3];
    part->prod.zeros += zeros;
    part->prod.negative ^= (signs & 1) != 0;
}

/* index: of the first element; of floats a multiple of 4,096. */
NEVER void prod_tile(cr_partial *part, const uint8_t *p, size_t n, uint64_t index, struct ahead ahead) {
    switch ((cr_dtype)part->dtype) {
#define CASE(dtype)                          \
    case dtype:                              \
        prod_pass(part, p, n, dtype, ahead); \
        break;
        CASE(CR_BOOL)
        CASE(CR_U8)
        CASE(CR_I8)
        CASE(CR_U16)
        CASE(CR_I16)
        CASE(CR_U32)
        CASE(CR_I32)
        CASE(CR_U64)
        CASE(CR_I64)
#undef CASE
        case CR_F8_E4M3:
        case CR_F8_E5M2:
        case CR_F16:
        case CR_BF16:
        case CR_F32:
        case CR_F64:
            prod_float_tile(&part->float_prod, p, n, index, (cr_dtype)part->dtype, ahead);
            break;
        case CR_NO_INPUT:
            break;
    }
}

#endif
