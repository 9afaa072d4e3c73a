/* fold_half: Σx or Σ|x|, Σx², extrema and counts of float16 in one reading of the data. Included once per instruction set.
 *
 * A float16 is a multiple of 2^-24 below 2^16, so float64 lanes add up a block's exactly. Its square is a multiple of 2^-48 below
 * 2^32: a running anchor (fold_fused.h) of unit 2^-9 takes what it can, and plain lanes add up the rests, all of them exactly. A
 * block with NaNs or infinities shows in the sums, and is left to the separate folds.
 * Thread: any. Owner: the caller owns run and data. */

enum {
    HALF_BLOCK = 16384, /* bytes: at most 1,024 additions per lane, in the narrowest vectors */
    HALF_A =
        -9 /* 2^10 squares below 2^32 are less than 2^51 units; 2^10 rests of half a unit are 2^48 units of 2^-48 */
};

/* What a pass computes. */
enum { HALF_SUM = 1, HALF_ABSOLUTE = 2, HALF_SQUARE = 4, HALF_REST = 8 /* extrema and counts */ };

struct half_run {
    __int128 sum, square; /* in units of 2^-24 and 2^-48 */
    uint32_t families;    /* that this file folds; 0: none */
    unsigned pass;
    unsigned fails, skip; /* tiles that failed in a row; to pass over */
};

/* What a block has. */
struct half_seen {
    vf64 sums, square_rests;
    vu64 squares; /* the bits of four running anchors in each lane */
    vu64 odd;     /* not zero: NaNs or infinities */
    uint64_t zeros;
    uint8_t low[VB], high[VB]; /* keys */
};

struct half_state {
    vf64 sums[4], squares[4], square_rests[4];
    /* Of the elements' bits: the largest as signed numbers; the largest and the smallest as unsigned ones. */
    vs16 positive;
    vu16 negative, nearest, zeros;
};

static void half_begin(struct half_run *run, const cr_partial *part) {
    const uint32_t sums = CR_FAM_SUM | CR_FAM_SUMABS, rest = CR_FAM_EXTREMA | CR_FAM_COUNTS;
    uint32_t families = part->families & (sums | CR_FAM_SUMSQ | rest);
    run->families = 0;
    run->fails = run->skip = 0;
    if (part->dtype != CR_F16 || (part->families & CR_FAM_PROD)) return;
    if (families & CR_FAM_SUM) families &= ~(uint32_t)CR_FAM_SUMABS; /* one of the two goes alone */
    if ((families & (families - 1)) == 0 && families != CR_FAM_SUMSQ) return;
    run->families = families;
    run->pass = (families & sums ? HALF_SUM : 0) | (families & CR_FAM_SUMABS ? HALF_ABSOLUTE : 0) |
                (families & CR_FAM_SUMSQ ? HALF_SQUARE : 0) | (families & rest ? HALF_REST : 0);
    run->sum = run->square = 0;
}

/* One vector: `look` is what extrema are of, `x` what is added and counted. */
ALWAYS void half_step(struct half_state *s, vu16 look, vu16 x, unsigned pass) {
    if (pass & HALF_REST) {
        s->positive = max_vs16(s->positive, (vs16)look);
        s->negative = max_vu16(s->negative, look);
        s->nearest = min_vu16(s->nearest, look);
        s->zeros -= (vu16)((x & 0x7fff) == 0);
    }
    if (!(pass & (HALF_SUM | HALF_SQUARE))) return;
    if (pass & HALF_ABSOLUTE) x &= 0x7fff;
    vf32 a = halves_a(x), b = halves_b(x);
    vf64 wide[4] = {widen_low(a), widen_high(a), widen_low(b), widen_high(b)};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        if (pass & HALF_SUM) s->sums[i] += wide[i];
        if (pass & HALF_SQUARE) {
            vf64 q = square_add(wide[i], s->squares[i]);
            s->square_rests[i] += square_less(wide[i], q - s->squares[i]);
            s->squares[i] = q;
        }
    }
}

ALWAYS void half_end(const struct half_state *s, struct half_seen *seen, unsigned pass) {
    const vu64 field = ALL(vu64, (uint64_t)2047 << 52);
    vf64 m = ALL(vf64, anchor_of(HALF_A));
    seen->sums = (s->sums[0] + s->sums[1]) + (s->sums[2] + s->sums[3]);
    seen->square_rests = (s->square_rests[0] + s->square_rests[1]) + (s->square_rests[2] + s->square_rests[3]);
    seen->squares = (vu64){0};
    seen->odd = (vu64)(((vu64)seen->sums & field) == field);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        seen->squares += (vu64)s->squares[i] - (vu64)m;
        if ((pass & HALF_SQUARE) && !(pass & HALF_SUM)) seen->odd |= ((vu64)s->squares[i] ^ (vu64)m) & field;
    }
    /* Where all of a lane have one sign, the nearest to zero is the other extremum. The keys of NaNs lie beyond those of the
     * infinities. */
    vs16 nearest = (vs16)s->nearest, negative = (vs16)s->negative;
    vs16 low = keys_16((vu8)SELECT(vs16, negative < 0, negative, nearest), KEY_FLOAT);
    vs16 high = keys_16((vu8)SELECT(vs16, s->positive < 0, nearest, s->positive), KEY_FLOAT);
    if (pass == HALF_REST) seen->odd = (vu64)((vs16)(high > 0x7c00) | (vs16)(low < ~0x7c00));
    memcpy(seen->low, &low, VB);
    memcpy(seen->high, &high, VB);
}

ALWAYS void half_block(struct half_seen *seen, const uint8_t *p, size_t bytes, unsigned pass, struct ahead ahead) {
    struct half_state s = {.positive = ALL(vs16, INT16_MIN), .nearest = ~(vu16){0}};
    size_t at = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) s.squares[i] = ALL(vf64, anchor_of(HALF_A));
    for (; at + VB <= bytes; at += VB) {
        vu16 x = LOAD(vu16, p + at);
        fetch(ahead, at, VB);
        half_step(&s, x, x, pass);
    }
    seen->zeros = 0;
    if (at < bytes) {
        vu16 x = {0};
        memcpy(&x, p + at, bytes - at);
        half_step(&s, (vu16)last_16(p + at, bytes - at), x, pass);
        seen->zeros -= (at + VB - bytes) / 2;
    }
    if (pass & HALF_REST)
        seen->zeros += lanes_u64((vu64)sum_pairs((vs16)s.zeros, ALL(vs16, 1)) & 0xffffffffu) +
                       lanes_u64((vu64)sum_pairs((vs16)s.zeros, ALL(vs16, 1)) >> 32);
    half_end(&s, seen, pass);
}

#define INSTANCE(name, pass)                                                                      \
    NEVER void name(struct half_seen *seen, const uint8_t *p, size_t bytes, struct ahead ahead) { \
        half_block(seen, p, bytes, pass, ahead);                                                  \
    }
INSTANCE(half_squares, HALF_SQUARE)
INSTANCE(half_keys, HALF_REST)
INSTANCE(half_square_rest, HALF_SQUARE | HALF_REST)
INSTANCE(half_both, HALF_SUM | HALF_SQUARE)
INSTANCE(half_rest, HALF_SUM | HALF_REST)
INSTANCE(half_all, HALF_SUM | HALF_SQUARE | HALF_REST)
INSTANCE(half_absolute_both, HALF_SUM | HALF_ABSOLUTE | HALF_SQUARE)
INSTANCE(half_absolute_rest, HALF_SUM | HALF_ABSOLUTE | HALF_REST)
INSTANCE(half_absolute_all, HALF_SUM | HALF_ABSOLUTE | HALF_SQUARE | HALF_REST)
#undef INSTANCE

static void half_pass(unsigned pass, struct half_seen *seen, const uint8_t *p, size_t bytes, struct ahead ahead) {
    bool absolute = pass & HALF_ABSOLUTE;
    switch (pass & (HALF_SUM | HALF_SQUARE | HALF_REST)) {
        case HALF_SQUARE:
            half_squares(seen, p, bytes, ahead);
            break;
        case HALF_REST:
            half_keys(seen, p, bytes, ahead);
            break;
        case HALF_SQUARE | HALF_REST:
            half_square_rest(seen, p, bytes, ahead);
            break;
        case HALF_SUM | HALF_SQUARE:
            (absolute ? half_absolute_both : half_both)(seen, p, bytes, ahead);
            break;
        case HALF_SUM | HALF_REST:
            (absolute ? half_absolute_rest : half_rest)(seen, p, bytes, ahead);
            break;
        default:
            (absolute ? half_absolute_all : half_all)(seen, p, bytes, ahead);
            break;
    }
}

/* Folds one block, or leaves everything as it was and returns false. */
static bool half_tile(struct half_run *run, struct extremum_run *extrema, cr_partial *part, const uint8_t *p, size_t n,
                      uint64_t index, struct ahead ahead) {
    struct half_seen seen;
    fetch_pages(ahead, p, n * 2);
    half_pass(run->pass, &seen, p, n * 2, ahead);
    if (any_bit(seen.odd)) return false;
    for (size_t i = 0; i < VB / 8; i++) {
        run->sum += (int64_t)(seen.sums[i] * 0x1p24);
        run->square += (__int128)(int64_t)seen.squares[i] * ((int64_t)1 << (48 + HALF_A));
        run->square += (int64_t)(seen.square_rests[i] * 0x1p48);
    }
    if ((run->families & CR_FAM_EXTREMA) && part->wants != 0)
        extrema_take_16(extrema, part->wants, seen.low, seen.high, p, n, index);
    if (run->families & CR_FAM_COUNTS) part->nonzero += n - seen.zeros;
    return true;
}

static void half_flush(struct half_run *run, cr_partial *part) {
    unsigned limbs = cr_sum_limbs(CR_F16);
    if (run->families & CR_FAM_SUM) cr_limbs_put_signed(part->sum, limbs, &part->sum_pending, run->sum, 0);
    if (run->families & CR_FAM_SUMABS) cr_limbs_put_signed(part->sumabs, limbs, &part->sumabs_pending, run->sum, 0);
    if (run->families & CR_FAM_SUMSQ)
        cr_limbs_put_signed(part->sumsq, cr_sumsq_limbs(CR_F16), &part->sumsq_pending, run->square, 0);
}
