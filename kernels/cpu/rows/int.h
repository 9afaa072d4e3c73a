/* int: Σ of short rows of integers (rows.h).
 *
 * A row of elements of 1 or 2 bytes is at most CR_ROW_BYTES long, so 32-bit lanes never overflow on the way.
 * Thread: any. Owner: the caller owns rows and data. */
#ifndef CURED_KERNELS_CPU_ROWS_INT_H
#define CURED_KERNELS_CPU_ROWS_INT_H

#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/rows/tree.h"

/* A row's sum as two vectors of words, high·2^32 + low; the bias that was added to every lane is the caller's to take off. */
struct int_row {
    vu64 low, high;
};

ALWAYS void int_row_add_1(struct int_row *r, vu8 v, bool is_bool, bool is_signed, bool absolute) {
    if (is_bool) v = min_vu8(v, ALL(vu8, 1));
    if (is_signed) v = absolute ? magnitude_vs8((vs8)v) : v ^ 0x80;
    r->low += sum_bytes(v);
}
ALWAYS void int_row_add_2(struct int_row *r, vu8 v, bool is_bool, bool is_signed, bool absolute) {
    (void)is_bool;
    vu16 x = is_signed && absolute ? magnitude_vs16((vs16)v) : (vu16)v;
    if (is_signed && !absolute) x ^= 0x8000;
    /* 32-bit lanes, taken apart at the end */
    r->low = (vu64)((vu32)r->low + ((vu32)x & 0xffff));
    r->high = (vu64)((vu32)r->high + ((vu32)x >> 16));
}
ALWAYS void int_row_add_4(struct int_row *r, vu8 v, bool is_bool, bool is_signed, bool absolute) {
    (void)is_bool;
    vu32 x = is_signed && absolute ? magnitude_vs32((vs32)v) : (vu32)v;
    if (is_signed && !absolute) x ^= 0x80000000u;
    r->low += ((vu64)x & 0xffffffffu) + ((vu64)x >> 32);
}
ALWAYS void int_row_add_8(struct int_row *r, vu8 v, bool is_bool, bool is_signed, bool absolute) {
    (void)is_bool;
    vu64 x = is_signed && absolute ? magnitude_vs64((vs64)v) : (vu64)v;
    if (is_signed && !absolute) x ^= (uint64_t)1 << 63;
    r->low += x & 0xffffffffu;
    r->high += x >> 32;
}

/* Pairs of 32-bit lanes of u16 sums. */
ALWAYS void int_row_end(struct int_row *r, size_t size) {
    if (size != 2) return;
    vu64 x = (vu64)((vu32)r->low + (vu32)r->high);
    r->low = (x & 0xffffffffu) + (x >> 32);
    r->high = (vu64){0};
}

ALWAYS void int_rows(cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count, size_t size, bool is_bool,
                     bool is_signed, bool absolute) {
    struct walk w = walk_rows(p, n, count, size, VB);
    vu8 mask = first_bytes(w.tail);
    uint64_t lanes = (w.whole + (w.tail ? VB : 0)) / size;
    __int128 bias = is_signed && !absolute ? (__int128)lanes << (8 * size - 1) : 0;
    for (unsigned first = 0; first < count; first += WORDS) {
        vu64 low[WORDS], high[WORDS];
        unsigned now = count - first < WORDS ? count - first : WORDS;
        low[0] = high[0] = (vu64){0}; /* now is 1 or more, which not every compiler sees */
        for (unsigned i = 0; i < now; i++, p += w.stride) {
            struct int_row r = {{0}, {0}};
#define ADD(v)                                                        \
    (size == 1   ? int_row_add_1(&r, v, is_bool, is_signed, absolute) \
     : size == 2 ? int_row_add_2(&r, v, is_bool, is_signed, absolute) \
     : size == 4 ? int_row_add_4(&r, v, is_bool, is_signed, absolute) \
                 : int_row_add_8(&r, v, is_bool, is_signed, absolute))
            for (size_t at = 0; at < w.whole; at += VB) {
                __builtin_prefetch((const void *)((uintptr_t)p + at + 8192));
                ADD(LOAD(vu8, p + at));
            }
            if (w.tail) {
                uint8_t pad[VB];
                ADD(LOAD(vu8, walk_tail(&w, p + w.whole, VB, pad)) & mask);
            }
#undef ADD
            int_row_end(&r, size);
            low[i] = r.low;
            high[i] = r.high;
        }
        for (unsigned i = now; __builtin_expect(i < WORDS, 0); i++) {
            low[i] = low[0];
            high[i] = high[0];
        }
        vu64 lows = tree_words(low), highs = size == 8 ? tree_words(high) : (vu64){0};
        if (size != 8) { /* the sum of a row fits a word: its high word is its sign */
            lows -= (uint64_t)bias;
            highs = is_signed ? (vu64)((vs64)lows < 0) : (vu64){0};
            memcpy(&sums->low[first], &lows, VB);
            memcpy(&sums->high[first], &highs, VB);
            continue;
        }
        for (unsigned i = 0; i < now; i++) {
            __int128 total = (__int128)(((unsigned __int128)highs[i] << 32) + lows[i]) - bias;
            sums->low[first + i] = (uint64_t)total;
            sums->high[first + i] = (int64_t)(total >> 64);
        }
    }
}

#define INT_ROWS(name, size, is_bool, is_signed)                                       \
    NEVER void name(cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count) { \
        int_rows(sums, p, n, count, size, is_bool, is_signed, false);                  \
    }
INT_ROWS(int_rows_bool, 1, true, false)
INT_ROWS(int_rows_u8, 1, false, false)
INT_ROWS(int_rows_i8, 1, false, true)
INT_ROWS(int_rows_u16, 2, false, false)
INT_ROWS(int_rows_i16, 2, false, true)
INT_ROWS(int_rows_u32, 4, false, false)
INT_ROWS(int_rows_i32, 4, false, true)
INT_ROWS(int_rows_u64, 8, false, false)
INT_ROWS(int_rows_i64, 8, false, true)
#undef INT_ROWS
#define INT_ROWS(name, size)                                                           \
    NEVER void name(cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count) { \
        int_rows(sums, p, n, count, size, false, true, true);                          \
    }
INT_ROWS(int_rows_abs8, 1)
INT_ROWS(int_rows_abs16, 2)
INT_ROWS(int_rows_abs32, 4)
INT_ROWS(int_rows_abs64, 8)
#undef INT_ROWS

static void sum_rows_int(cr_dtype dtype, cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count, int which) {
    typedef void rows_of(cr_row_sums *, const uint8_t *, uint64_t, unsigned);
    static rows_of *const plain[] = {[CR_BOOL] = int_rows_bool, [CR_U8] = int_rows_u8,   [CR_I8] = int_rows_i8,
                                     [CR_U16] = int_rows_u16,   [CR_I16] = int_rows_i16, [CR_U32] = int_rows_u32,
                                     [CR_I32] = int_rows_i32,   [CR_U64] = int_rows_u64, [CR_I64] = int_rows_i64};
    static rows_of *const absolute[] = {
        [CR_I8] = int_rows_abs8, [CR_I16] = int_rows_abs16, [CR_I32] = int_rows_abs32, [CR_I64] = int_rows_abs64};
    bool is_signed = cr_dtype_kind(dtype) == CR_KIND_SINT;
    (which == 1 && is_signed ? absolute : plain)[dtype](sums, p, n, count);
}

#endif
