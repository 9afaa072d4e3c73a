/* axis_rows_sum: Σ of short rows of one float type (axis_rows.h). Included by axis_sum_type.h, whose names it uses.
 *
 * Narrow types are tried in plain float64 first, exact where the magnitudes of a group of rows span few enough binades; f64,
 * and what that leaves, by S + E.
 * Thread: any. Owner: the caller owns rows and data. */

enum { NAMED(READ) = NAMED(LANES) * BYTES }; /* bytes of a vector of lanes */

/* Calls each(x) with every vector of lanes of the row at p; lanes beyond the row are zeros. */
#define EACH_OF_ROW(w, p, mask, x, ...)                                               \
    do {                                                                              \
        for (size_t at_ = 0; at_ < (w)->whole; at_ += NAMED(READ)) {                  \
            __builtin_prefetch((const void *)((uintptr_t)(p) + at_ + 8192));          \
            VU x = NAMED(sum_load)((p) + at_);                                        \
            __VA_ARGS__                                                               \
        }                                                                             \
        if ((w)->tail) {                                                              \
            uint8_t pad_[VB];                                                         \
            const uint8_t *from_ = walk_tail(w, (p) + (w)->whole, NAMED(READ), pad_); \
            VU x = NAMED(sum_load)(from_) & (mask);                                   \
            __VA_ARGS__                                                               \
        }                                                                             \
    } while (0)

ALWAYS VU NAMED(tail_mask)(const struct walk *w) { return (VU)first_bytes(w->tail / BYTES * NAMED(SIZE)); }

static unsigned NAMED(log2_up)(uint64_t n) { return n < 2 ? 0 : 64 - (unsigned)__builtin_clzll(n - 1); }

/* Whether the magnitudes seen span at most `span` binades; *top is a guess of their highest exponent field, and is put right. */
ALWAYS bool NAMED(spans)(const struct look *look, int span, uint32_t *top) {
    uint32_t limit = (uint32_t)INFINITE, step = NAMED(FIELD) == 20 ? 0 : 1;
    if (NAMED(FIELD) == 20) limit = 0x7ff00000;
    if (span < 0) return false;
    int low = (int)*top - span;
    vu32 high = ALL(vu32, ((*top + 1) << NAMED(FIELD)) < limit ? (*top + 1) << NAMED(FIELD) : limit);
    vu32 out = (vu32)(look->most >= high) |
               (vu32)(look->least < ALL(vu32, low <= 1 ? 0 : ((uint32_t)low << NAMED(FIELD)) - step));
    vu64 seen = (vu64)out;
    if (NAMED(FIELD) == 20) seen &= 0xffffffff00000000u;
    return !any_bit(seen);
}

/* As spans, after looking for the right guess. */
NEVER bool NAMED(spans_anew)(const struct look *look, int span, uint32_t *top) {
    uint32_t most = 0;
    for (size_t i = NAMED(FIELD) == 20; i < VB / 4; i += NAMED(FIELD) == 20 ? 2 : 1) {
        if (look->most[i] > most) most = look->most[i];
    }
    *top = most >> NAMED(FIELD);
    if (*top > 2 * NAMED(BIAS)) *top = 2 * NAMED(BIAS); /* NaNs and infinities span more than all */
    if (!NAMED(spans)(look, span, top)) return false;
    if (span > 8) *top += 1; /* a little room, for what comes */
    return true;
}

#if !defined(FOR_F64)
/* A group in plain float64; long rows only along the lanes, which are then joined by S + E. False: not exact. */
ALWAYS bool NAMED(group_plain)(const struct walk *w, const uint8_t *p, unsigned count, VU mask, bool absolute,
                               bool is_long, int span, uint32_t *top, struct exact *out) {
    vf64 sums[2][WORDS];
    struct look look = {{0}, ~(vu32){0}};
    for (unsigned i = 0; i < count; i++, p += w->stride) {
        vf64 a = {0}, b = {0};
        EACH_OF_ROW(w, p, mask, x, {
            VU magnitude = x & SIGN_OUT;
            NAMED(look_at)(&look, magnitude);
            if (absolute) x = magnitude;
            a += widen_low((vf32)x);
            b += widen_high((vf32)x);
        });
        sums[0][i] = is_long ? a : a + b;
        sums[1][i] = b;
    }
    for (unsigned i = count; __builtin_expect(i < WORDS, 0); i++) {
        sums[0][i] = sums[0][0];
        sums[1][i] = sums[1][0];
    }
    if (is_long) {
        struct exact rows[WORDS];
        const vf64 none = {0};
        for (unsigned i = 0; i < WORDS; i++) rows[i] = exact_join(sums[0][i], sums[1][i], none, none, none, none);
        *out = tree_exact(rows);
    } else {
        out->s = tree_plain(sums[0]);
        out->e = (vf64){0};
    }
    if (NAMED(spans)(&look, span, top)) return true;
    struct look seen = look; /* an address of look would keep it out of registers */
    return NAMED(spans_anew)(&seen, span, top);
}
#endif

/* Adds a vector of lanes to s[0] and s[1]. */
ALWAYS void NAMED(exact_lanes)(struct exact *s, VU x, enum row_sum kind, bool bounded) {
    if (kind == ROW_ABSOLUTE) x &= SIGN_OUT;
#if defined(FOR_F64)
    if (kind == ROW_SQUARE) {
        exact_add_square(&s[0], (vf64)x);
    } else {
        exact_add(&s[0], (vf64)x, bounded);
    }
#else
    vf64 a = widen_low((vf32)x), b = widen_high((vf32)x);
    bool square = kind == ROW_SQUARE; /* exact: 48 bits */
    exact_add(&s[0], square ? a * a : a, bounded);
    exact_add(&s[1], square ? b * b : b, bounded);
#endif
}

ALWAYS struct exact NAMED(exact_end)(const struct exact *s) {
#if defined(FOR_F64)
    return s[0];
#else
    return exact_join(s[0].s, s[1].s, s[0].e, s[1].e, s[0].a, s[1].a);
#endif
}

/* Rows that may hold NaNs and infinities: those count, and are left out. */
NEVER struct exact NAMED(group_special)(const struct walk *w, const uint8_t *p, unsigned count, VU mask,
                                        enum row_sum kind, struct look *seen, cr_row_sums *sums, unsigned first) {
    struct exact rows[WORDS];
    struct look look = {{0}, ~(vu32){0}};
    uint64_t some = 0;
    for (unsigned i = 0; i < count; i++, p += w->stride) {
        struct exact s[2] = {{{0}, {0}, {0}}, {{0}, {0}, {0}}};
        VU nans = {0}, pinfs = {0}, ninfs = {0};
        uint64_t nan = 0, pinf = 0, ninf = 0;
        EACH_OF_ROW(w, p, mask, x, {
            VU magnitude = x & SIGN_OUT;
            nans -= (VU)((VS)magnitude > INFINITE);
            pinfs -= (VU)(x == INFINITE);
            ninfs -= (VU)(x == (~(VU){0} ^ SIGN_OUT ^ INFINITE));
            VU finite = (VU)((VS)magnitude < INFINITE);
            magnitude &= finite;
            NAMED(look_at)(&look, magnitude);
            NAMED(exact_lanes)(s, x & finite, kind, true);
        });
        for (size_t lane = 0; any_bit((vu64)(nans | pinfs | ninfs)) && lane < NAMED(LANES); lane++) {
            nan += nans[lane];
            pinf += pinfs[lane];
            ninf += ninfs[lane];
        }
        some |= nan | pinf | ninf;
        sums->nans[first + i] = nan;
        sums->pinfs[first + i] = kind == ROW_PLAIN ? pinf : pinf + ninf;
        sums->ninfs[first + i] = kind == ROW_PLAIN ? ninf : 0;
        rows[i] = NAMED(exact_end)(s);
    }
    for (unsigned i = count; __builtin_expect(i < WORDS, 0); i++) rows[i] = rows[0];
    sums->strange = some != 0;
    *seen = look;
    return tree_exact(rows);
}

ALWAYS struct exact NAMED(group_exact)(const struct walk *w, const uint8_t *p, unsigned count, VU mask,
                                       enum row_sum kind, bool bounded, struct look *seen) {
    struct exact rows[WORDS];
    struct look look = {{0}, ~(vu32){0}};
    for (unsigned i = 0; i < count; i++, p += w->stride) {
        struct exact s[2] = {{{0}, {0}, {0}}, {{0}, {0}, {0}}};
        EACH_OF_ROW(w, p, mask, x, {
            VU magnitude = x & SIGN_OUT;
            NAMED(look_at)(&look, magnitude);
            NAMED(exact_lanes)(s, x, kind, bounded);
        });
        rows[i] = NAMED(exact_end)(s);
    }
    for (unsigned i = count; __builtin_expect(i < WORDS, 0); i++) rows[i] = rows[0];
    *seen = look;
    return tree_exact(rows);
}

ALWAYS bool NAMED(any_special)(const struct look *look) {
    vu64 out = (vu64)(look->most >= (NAMED(FIELD) == 20 ? 0x7ff00000u : (uint32_t)INFINITE));
    return any_bit(NAMED(FIELD) == 20 ? out & 0xffffffff00000000u : out);
}

/* Whether squares of f64 and their errors are exact: magnitudes within 2^-484 … 2^511, or zeros. */
ALWAYS bool NAMED(squares_are_exact)(const struct look *look) {
    const uint32_t low = (uint32_t)(NAMED(BIAS) - 484) << NAMED(FIELD), high = (uint32_t)(NAMED(BIAS) + 511)
                                                                               << NAMED(FIELD);
    if (NAMED(FIELD) != 20) return true;
    return !any_bit((vu64)((look->most >= high) | (look->least < low)) & 0xffffffff00000000u);
}

#if defined(FOR_F64)
/* A group by S + E where E is exact, or false. */
ALWAYS bool NAMED(group_plain)(const struct walk *w, const uint8_t *p, unsigned count, VU mask, bool absolute, int span,
                               uint32_t *top, struct exact *out) {
    struct look look;
    *out = NAMED(group_exact)(w, p, count, mask, absolute ? ROW_ABSOLUTE : ROW_PLAIN, false, &look);
    return NAMED(spans)(&look, span, top) || NAMED(spans_anew)(&look, span, top);
}
#endif

/* A group by S + E, to columns [first, first + WORDS). */
NEVER void NAMED(group_hard)(const struct walk *w, const uint8_t *p, unsigned first, unsigned count, uint64_t n,
                             VU mask, enum row_sum kind, cr_row_sums *sums) {
    /* Elements are multiples of 2^(lowest field − BIAS − KEPT), additions and errors at most N of each: E is exact below
     * 2^53 of those multiples. Squares span twice as much; those of f64 have errors of their own, which are not exact. */
    bool square = kind == ROW_SQUARE;
    int bits = (int)NAMED(log2_up)(n), span = square ? 52 - KEPT - bits : 53 + 52 - KEPT - 2 * bits;
    struct look look;
    uint32_t top = sums->top;
    struct exact r;
    if (NAMED(FIELD) == 20 && square) span = -1;
    if (!sums->strange) {
        r = kind == ROW_PLAIN      ? NAMED(group_exact)(w, p, count, mask, ROW_PLAIN, true, &look)
            : kind == ROW_ABSOLUTE ? NAMED(group_exact)(w, p, count, mask, ROW_ABSOLUTE, true, &look)
                                   : NAMED(group_exact)(w, p, count, mask, ROW_SQUARE, true, &look);
        sums->strange = NAMED(any_special)(&look);
    }
    if (sums->strange) {
        if (!sums->special) {
            memset(sums->nans, 0, sizeof sums->nans);
            memset(sums->pinfs, 0, sizeof sums->pinfs);
            memset(sums->ninfs, 0, sizeof sums->ninfs);
        }
        sums->special = true;
        r = NAMED(group_special)(w, p, count, mask, kind, &look, sums, first);
    }
    bool exact = NAMED(spans)(&look, span, &top) || NAMED(spans_anew)(&look, span, &top);
    if (NAMED(FIELD) == 20) {
        sums->top = top;
        exact = exact && (int)top + bits < 2 * NAMED(BIAS); /* no sum overflows */
    }
    vf64 doubt = {0};
    if (!exact) {
        /* Errors below 2^-900 may make a bound that is no longer a normal number: then nothing is known. */
        vu64 tiny = (vu64)(r.a != 0) & (vu64)(r.a < 0x1p-900);
        doubt = (vf64)((vu64)(r.a * ((double)((square ? 2 * n : n) + 2) * 0x1p-52)) | tiny);
    }
    if (square && !NAMED(squares_are_exact)(&look)) doubt = ALL(vf64, __builtin_nan(""));
    memcpy(&sums->hi[first], &r.s, VB);
    memcpy(&sums->lo[first], &r.e, VB);
    memcpy(&sums->doubt[first], &doubt, VB);
}

/* From here on lo and doubt are written; those of the first rows are zeros. */
static void NAMED(not_plain)(cr_row_sums *sums, unsigned rows) {
    if (!sums->plain) return;
    sums->plain = false;
    memset(sums->lo, 0, rows * sizeof sums->lo[0]);
    memset(sums->doubt, 0, rows * sizeof sums->doubt[0]);
}

ALWAYS void NAMED(rows_in_groups)(cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count, enum row_sum kind,
                                  bool is_long) {
    struct walk w = walk_rows(p, n, count, BYTES, NAMED(READ));
    VU mask = NAMED(tail_mask)(&w);
    (void)is_long;
    for (unsigned first = 0; first < count; first += WORDS, p += WORDS * w.stride) {
        unsigned now = count - first < WORDS ? count - first : WORDS;
        /* Elements are multiples of 2^(lowest field − BIAS − KEPT), sums of N of them at most N·2^(highest field − BIAS + 1).
         * Every float16 is a multiple of 2^-24. */
        bool tried = kind != ROW_SQUARE && (sums->misses < SURE_MISSES || sums->misses % SURE_MISSES == 0);
        struct exact out;
#if defined(FOR_F64)
        int bits = (int)NAMED(log2_up)(n), span = 53 - 2 * bits;
        bool served = tried && NAMED(group_plain)(&w, p, now, mask, kind == ROW_ABSOLUTE, span, &sums->top, &out) &&
                      (int)sums->top + bits < 2 * NAMED(BIAS); /* no sum overflows */
#else
        int bits = (int)NAMED(log2_up)(is_long ? n / NAMED(LANES) + 1 : n), span = 52 - KEPT - bits;
        if (KEPT == 10 && bits <= 12) span = 2 * NAMED(BIAS);
        bool served =
            tried && NAMED(group_plain)(&w, p, now, mask, kind == ROW_ABSOLUTE, is_long, span, &sums->top, &out);
#endif
        sums->misses = served ? 0 : sums->misses + 1;
        if (served && (is_long || NAMED(FIELD) == 20)) NAMED(not_plain)(sums, first);
        if (served) {
            memcpy(&sums->hi[first], &out.s, VB);
            if (sums->plain) continue;
            const vf64 none = {0};
            memcpy(&sums->lo[first], &out.e, VB);
            memcpy(&sums->doubt[first], &none, VB);
            continue;
        }
        NAMED(not_plain)(sums, first);
        NAMED(group_hard)(&w, p, first, now, n, mask, kind, sums);
    }
}

NEVER void NAMED(sum_rows)(cr_row_sums *sums, const uint8_t *p, uint64_t n, unsigned count, enum row_sum kind) {
    bool is_long = n >= 8 * NAMED(LANES);
    if (kind != ROW_PLAIN) {
        NAMED(rows_in_groups)(sums, p, n, count, kind, is_long);
    } else if (is_long) {
        NAMED(rows_in_groups)(sums, p, n, count, ROW_PLAIN, true);
    } else {
        NAMED(rows_in_groups)(sums, p, n, count, ROW_PLAIN, false);
    }
}
#undef EACH_OF_ROW
