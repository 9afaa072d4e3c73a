/* fold_ints_lane: a tile of fold_ints for lanes of LANE bits. A template (instance.h).
 *
 * Thread: any. Owner: the caller owns the data. */

/* What a pass holds; of the sums what fold_int.h and fold_square.h would. */
struct NAMED(ints_state) {
    VS low, high;      /* keys */
    VU zeros;          /* counted */
    vu64 sums[2];      /* of bytes, or of halves of lanes */
    vu32 pairs;        /* of 16-bit lanes */
    vu64 squares[6];   /* halves: of even and odd lanes' squares together, or of each product of halves */
    vu32 square_pairs; /* of bytes */
};

/* |x| of lanes with signs. */
ALWAYS VU NAMED(ints_magnitude)(VU x, bool is_signed) { return is_signed ? GLUE(magnitude_, VS)((VS)x) : x; }

/* lift: what makes lanes suit the additions. */
ALWAYS void NAMED(ints_sum)(struct NAMED(ints_state) * s, VU x, VU lift) {
    VU lifted = x ^ lift;
#if LANE == 8
    s->sums[0] += sum_bytes(lifted);
#elif LANE == 16
    s->pairs += sum_pairs((vs16)lifted, ALL(vs16, 1));
#else
    s->sums[0] += (vu64)lifted & 0xffffffffu;
    s->sums[1] += (vu64)lifted >> 32;
#endif
}

ALWAYS void NAMED(ints_square)(struct NAMED(ints_state) * s, VU x, bool is_signed) {
#if LANE == 8
    vu16 magnitude = (vu16)NAMED(ints_magnitude)(x, is_signed);
    vs16 even = (vs16)(magnitude & 0xff), odd = (vs16)(magnitude >> 8);
    s->square_pairs += sum_pairs(even, even) + sum_pairs(odd, odd);
#elif LANE == 16
    vs16 centred = (vs16)(is_signed ? x : x ^ 0x8000); /* what that lacks of the square is added at the end */
    vu64 two = (vu64)sum_pairs(centred, centred);
    s->squares[0] += (two & 0xffffffffu) + (two >> 32);
#elif LANE == 32
    vu64 y = (vu64)x;
    if (is_signed) { /* two squares of at most 2^62 */
        vu64 two = multiply_signed(y, y) + multiply_signed(y >> 32, y >> 32);
        s->squares[0] += two & 0xffffffffu;
        s->squares[1] += two >> 32;
    } else {
        vu64 even = multiply_low(y, y), odd = multiply_low(y >> 32, y >> 32);
        s->squares[0] += (even & 0xffffffffu) + (odd & 0xffffffffu);
        s->squares[1] += (even >> 32) + (odd >> 32);
    }
#else
    vu64 y = NAMED(ints_magnitude)(x, is_signed), h = y >> 32;
    vu64 products[3] = {multiply_low(y, y), multiply_low(y, h), multiply_low(h, h)};
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        s->squares[2 * i] += products[i] & 0xffffffffu;
        s->squares[2 * i + 1] += products[i] >> 32;
    }
#endif
}

/* One vector: `look` is what extrema are of, `add` what is added and counted. */
ALWAYS void NAMED(ints_step)(struct NAMED(ints_state) * s, vu8 look, vu8 add, int kind, bool is_signed, bool absolute,
                             VU lift, unsigned pass) {
#if LANE == 8
    if (kind == KEY_BOOL) add = min_vu8(add, ALL(vu8, 1));
#endif
    VU x = (VU)add;
    if (pass & INTS_REST) {
        VS key = NAMED(keys)(look, kind);
        s->low = VMIN(s->low, key);
        s->high = VMAX(s->high, key);
        s->zeros -= (VU)(x == 0);
    }
    if (LANE == 16 || (pass & INTS_SUM)) NAMED(ints_sum)(s, absolute ? NAMED(ints_magnitude)(x, is_signed) : x, lift);
    if (pass & INTS_SQUARE) NAMED(ints_square)(s, x, is_signed);
}

ALWAYS uint64_t NAMED(ints_zeros)(VU zeros) {
#if LANE == 8
    return lanes_u64(sum_bytes(zeros));
#else
    uint64_t sum = 0;
    for (size_t i = 0; i < VB * 8 / LANE; i++) sum += zeros[i];
    return sum;
#endif
}

/* offset: what lift has added to each lane, or with 16 bits taken from it. lanes: all that were added, padding too. */
ALWAYS void NAMED(ints_end)(const struct NAMED(ints_state) * s, struct ints_seen *seen, uint64_t offset, size_t lanes,
                            bool is_signed, unsigned pass) {
    __int128 sum = 0;
    unsigned __int128 squares[3] = {0, 0, 0};
#if LANE == 16
    for (size_t i = 0; i < VB / 4; i++) sum += (int32_t)s->pairs[i];
    squares[0] = lanes_u64(s->squares[0]);
    /* An unsigned x is c + 2^15: x² = c² + 2^16·c + 2^30. */
    if (!is_signed) squares[0] += (unsigned __int128)(sum * 65536 + ((__int128)lanes << 30));
#elif LANE == 8
    sum = lanes_u64(s->sums[0]);
    for (size_t i = 0; i < VB / 4; i++) squares[0] += s->square_pairs[i];
    (void)is_signed;
#else
    for (int half = 0; half < 2; half++) sum += (__int128)lanes_u64(s->sums[half]) << (LANE == 64 ? 32 * half : 0);
    for (int i = 0; i < (LANE == 64 ? 3 : 1); i++) {
        squares[i] = lanes_u64(s->squares[2 * i]) + ((unsigned __int128)lanes_u64(s->squares[2 * i + 1]) << 32);
        if (i == 1) squares[i] *= 2;
    }
    (void)is_signed;
#endif
    __int128 lifted = (__int128)((unsigned __int128)offset * lanes);
    seen->sum = LANE == 16 ? sum + lifted : sum - lifted;
    for (int i = 0; i < 3; i++) seen->square[i] = pass & INTS_SQUARE ? squares[i] : 0;
}

ALWAYS void NAMED(ints_tile)(struct ints_seen *seen, int kind, bool is_signed, bool absolute, unsigned pass,
                             const uint8_t *p, size_t n, struct ahead ahead) {
    enum { ROUND = LANE == 8 ? 128 * VB : EXTREMA_BLOCK }; /* bytes that a lane can count */
    const uint64_t top = (uint64_t)1 << (LANE - 1);
    const VS most = ALL(VS, (SCALAR)(top - 1));
    const uint64_t offset = LANE == 16 ? (is_signed && !absolute ? 0 : top) : is_signed && !absolute ? top : 0;
    const VU lift = (VU)ALL(VS, (SCALAR)offset);
    struct NAMED(ints_state) s = {.low = most, .high = ~most};
    size_t bytes = n * (LANE / 8), at = 0;
    seen->zeros = 0;
    while (at + VB <= bytes) {
        size_t end = bytes - at < ROUND ? bytes : at + ROUND;
        for (; at + VB <= end; at += VB) {
            vu8 v = LOAD_ONCE(vu8, p + at);
            fetch(ahead, at, VB);
            NAMED(ints_step)(&s, v, v, kind, is_signed, absolute, lift, pass);
        }
        if (pass & INTS_REST) seen->zeros += NAMED(ints_zeros)(s.zeros);
        s.zeros = (VU){0};
    }
    if (at < bytes) {
        vu8 v = {0};
        memcpy(&v, p + at, bytes - at);
        NAMED(ints_step)(&s, NAMED(last)(p + at, bytes - at), v, kind, is_signed, absolute, lift, pass);
        if (pass & INTS_REST) seen->zeros += NAMED(ints_zeros)(s.zeros) - (at + VB - bytes) / (LANE / 8);
    }
    NAMED(ints_end)(&s, seen, offset, (bytes + VB - 1) / VB * (VB * 8 / LANE), is_signed, pass);
    memcpy(seen->low, &s.low, VB);
    memcpy(seen->high, &s.high, VB);
}
