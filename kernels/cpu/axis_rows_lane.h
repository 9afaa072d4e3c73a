/* axis_rows_lane: extrema of short rows whose elements have LANE bits (axis_rows.h). A template (instance.h).
 *
 * Least keys only: the largest are the least of their complements. Keys are those of fold_extrema.h. A tree turns the rows'
 * vectors into one with a lane for each row; where indices are asked, each row is searched for what was found.
 * Thread: any. Owner: the caller owns strip and data. */

enum { NAMED(ROWS) = VB * 8 / LANE, NAMED(BYTES_OF) = LANE / 8 };

/* The key whose least is looked for. worst: of no element, and of NaNs. */
ALWAYS VS NAMED(row_key)(VS x, const struct row_kind *kind, bool is_float) {
#if LANE == 8
    x = (VS)min_vu8((vu8)x, ALL(vu8, kind->limit));
#endif
    if (is_float) x ^= (VS)((VU)(x >> (LANE - 1)) >> 1);
    return x ^ (SCALAR)kind->flip;
}

/* The bits of the element whose key is a signed key of fold_extrema.h. */
ALWAYS VS NAMED(row_bits)(VS key, const struct row_kind *kind, bool is_float) {
    if (is_float) return key ^ (VS)((VU)(key >> (LANE - 1)) >> 1);
    return key ^ (SCALAR)kind->top;
}

ALWAYS VS NAMED(row_nans)(VS x, const struct row_kind *kind) {
    return (VS)((x & (VS)ALL(VU, ((uint64_t)1 << (LANE - 1)) - 1)) > (SCALAR)kind->infinity);
}

/* The least keys of a row by lane. nans: NaNs lose; otherwise *most takes the magnitudes. */
ALWAYS VS NAMED(row_least)(const struct walk *w, const uint8_t *p, vu8 mask, const struct row_kind *kind, bool is_float,
                           bool nans, VS *most) {
    const VS worst = (VS)ALL(VU, ((uint64_t)1 << (LANE - 1)) - 1);
    VS low = worst;
    for (size_t at = 0; at < w->whole; at += VB) {
        VS x = LOAD(VS, p + at);
        __builtin_prefetch((const void *)((uintptr_t)p + at + 8192));
        VS key = NAMED(row_key)(x, kind, is_float);
        if (is_float && nans) key = SELECT(VS, NAMED(row_nans)(x, kind), worst, key);
        if (is_float && !nans) *most = VMAX(*most, x & worst);
        low = VMIN(low, key);
    }
    if (!w->tail) return low;
    uint8_t pad[VB];
    VS x = LOAD(VS, walk_tail(w, p + w->whole, VB, pad)), beyond = ~(VS)mask;
    VS key = NAMED(row_key)(x, kind, is_float);
    if (is_float && nans) beyond |= NAMED(row_nans)(x, kind);
    if (is_float && !nans) *most = VMAX(*most, x & worst & (VS)mask);
    return VMIN(low, SELECT(VS, beyond, worst, key));
}

/* Least of ROWS vectors, a lane for each. */
ALWAYS VS NAMED(row_tree)(VS *r) {
    int rows = NAMED(ROWS);
#if LANE == 8
    rows /= 2;
    for (int i = 0; i < rows; i++) {
        vu16 a = (vu16)r[2 * i], b = (vu16)r[2 * i + 1];
        r[i] = VMIN((VS)((a & 0xff) | b << 8), (VS)(a >> 8 | (b & 0xff00)));
    }
#endif
#if LANE <= 16
    rows /= 2;
    for (int i = 0; i < rows; i++) {
        vu32 a = (vu32)r[2 * i], b = (vu32)r[2 * i + 1];
        r[i] = VMIN((VS)((a & 0xffff) | b << 16), (VS)(a >> 16 | (b & 0xffff0000)));
    }
#endif
#if LANE <= 32
    rows /= 2;
    for (int i = 0; i < rows; i++) {
        vu64 a = (vu64)r[2 * i], b = (vu64)r[2 * i + 1];
        r[i] = VMIN((VS)((a & 0xffffffffu) | b << 32), (VS)(a >> 32 | (b & 0xffffffff00000000u)));
    }
#endif
#define STEP(s)                                                     \
    for (int i = 0; i < WORDS >> (s + 1); i++) {                    \
        vu64 a = (vu64)r[2 * i], b = (vu64)r[2 * i + 1];            \
        r[i] = VMIN((VS)tree_even(s, a, b), (VS)tree_odd(s, a, b)); \
    }
    TREE(STEP);
#undef STEP
    (void)rows;
    return r[0];
}

/* The first element of a row of n with these bits; 0 where there is none (the array has changed, or all are NaNs). */
ALWAYS uint64_t NAMED(row_find)(const struct walk *w, const uint8_t *p, vu8 mask, VS bits, uint8_t limit) {
    (void)limit;
    for (size_t at = 0; at < w->stride; at += VB) {
        uint8_t pad[VB];
        bool whole = at < w->whole;
        VS x = LOAD(VS, whole ? p + at : walk_tail(w, p + at, VB, pad));
#if LANE == 8
        x = (VS)min_vu8((vu8)x, ALL(vu8, limit));
#endif
        VS same = (VS)(x == bits);
        if (!whole) same &= (VS)mask;
        uint64_t found = byte_bits((vu8)same);
        if (found) return (at + (size_t)__builtin_ctzll(found)) / NAMED(BYTES_OF);
    }
    return 0;
}

/* Least keys of all rows, and their indices if asked; false: there are NaNs, which were not minded. */
ALWAYS bool NAMED(rows_least)(const uint8_t *p, uint64_t n, unsigned count, const struct row_kind *kind, bool is_float,
                              bool nans, uint8_t *keys, uint64_t *indices) {
    struct walk w = walk_rows(p, n, count, NAMED(BYTES_OF), VB);
    vu8 mask = first_bytes(w.tail);
    const VS worst = (VS)ALL(VU, ((uint64_t)1 << (LANE - 1)) - 1);
    for (unsigned first = 0; first < count; first += NAMED(ROWS)) {
        unsigned now = count - first < NAMED(ROWS) ? count - first : NAMED(ROWS);
        VS r[NAMED(ROWS)], most = {0};
        for (unsigned i = 0; i < now; i++) {
            r[i] = NAMED(row_least)(&w, p + i * w.stride, mask, kind, is_float, nans, &most);
        }
        for (unsigned i = now; i < NAMED(ROWS); i++) r[i] = worst;
        if (is_float && !nans && any_bit((vu64)(most > (SCALAR)kind->infinity))) return false;
        VS key = NAMED(row_tree)(r) ^ (SCALAR)(kind->flip ^ kind->top), bits = NAMED(row_bits)(key, kind, is_float);
        memcpy(keys + first * NAMED(BYTES_OF), &key, VB);
        SCALAR wanted[NAMED(ROWS)];
        memcpy(wanted, &bits, VB);
        for (unsigned i = 0; indices && i < now; i++) {
            indices[first + i] = NAMED(row_find)(&w, p + i * w.stride, mask, ALL(VS, wanted[i]), kind->limit);
        }
        p += now * w.stride;
    }
    return true;
}

#if LANE > 8
/* The first NaN of each row. */
NEVER void NAMED(rows_first_nan)(const uint8_t *p, uint64_t n, unsigned count, const struct row_kind *kind,
                                 uint64_t *first_nan) {
    struct walk w = walk_rows(p, n, count, NAMED(BYTES_OF), VB);
    vu8 mask = first_bytes(w.tail);
    for (unsigned i = 0; i < count; i++, p += w.stride) {
        first_nan[i] = UINT64_MAX;
        for (size_t at = 0; at < w.stride && first_nan[i] == UINT64_MAX; at += VB) {
            uint8_t pad[VB];
            VS x = LOAD(VS, at < w.whole ? p + at : walk_tail(&w, p + at, VB, pad));
            VS nan = NAMED(row_nans)(x, kind);
            if (at >= w.whole) nan &= (VS)mask;
            uint64_t found = byte_bits((vu8)nan);
            if (found) first_nan[i] = (at + (size_t)__builtin_ctzll(found)) / NAMED(BYTES_OF);
        }
    }
}

#endif

NEVER bool NAMED(rows_extremum)(const uint8_t *p, uint64_t n, unsigned count, const struct row_kind *kind, bool nans,
                                uint8_t *keys, uint64_t *indices) {
#if LANE > 8
    if (kind->infinity != 0) {
        return nans ? NAMED(rows_least)(p, n, count, kind, true, true, keys, indices)
                    : NAMED(rows_least)(p, n, count, kind, true, false, keys, indices);
    }
#endif
    (void)nans;
    return NAMED(rows_least)(p, n, count, kind, false, false, keys, indices);
}

/* Zeros and NaNs of each row. */
NEVER void NAMED(rows_counts)(const uint8_t *p, uint64_t n, unsigned count, const struct row_kind *kind,
                              uint64_t *zeros, uint64_t *nans) {
    struct walk w = walk_rows(p, n, count, NAMED(BYTES_OF), VB);
    const VS magnitude = kind->infinity ? (VS)ALL(VU, ((uint64_t)1 << (LANE - 1)) - 1) : ~(VS){0};
    vu8 mask = first_bytes(w.tail);
    uint64_t beyond = w.tail ? (VB - w.tail) / NAMED(BYTES_OF) : 0;
    for (unsigned i = 0; i < count; i++, p += w.stride) {
        uint64_t zero = 0, nan = 0;
        for (size_t at = 0; at < w.stride; at += VB) {
            uint8_t pad[VB];
            VS x = LOAD(VS, at < w.whole ? p + at : walk_tail(&w, p + at, VB, pad)) & magnitude;
            if (at >= w.whole) x &= (VS)mask;
            zero += (unsigned)__builtin_popcountll(byte_bits((vu8)(VS)(x == 0)));
            if (kind->infinity) {
                nan += (unsigned)__builtin_popcountll(byte_bits((vu8)(VS)(x > (SCALAR)kind->infinity)));
            }
        }
        zeros[i] = zero / NAMED(BYTES_OF) - beyond;
        nans[i] = nan / NAMED(BYTES_OF);
    }
}
