/* fold_anchor_type: the blocks of fold_anchor for one element type. A template (instance.h).
 *
 * Thread: any. Owner: the caller owns state and data. */
/* FIELD: the exponent field's place in the guard's words. ADDS: additions per lane of an accumulator in one step.
 * LEVELS, LOWEST and A_MOST are those of kernels/core/anchor.def. Elements that no anchor takes go to the bins. Exponents are
 * those of the elements, in sums of squares too. */
#if defined(FOR_F64)
enum {
    NAMED(BIAS) = CR_F64_BIAS,
    NAMED(MANTISSA) = CR_F64_MANTISSA,
    NAMED(FIELD) = 20,
    NAMED(SIZE) = 8,
    NAMED(STEP) = 2 * VB
};
enum { NAMED(ADDS) = 1, NAMED(LOWEST) = SQUARE ? CR_F64_SQUARE_LOWEST : 0 };
enum { NAMED(LEVELS) = SQUARE ? CR_F64_SQUARE_LEVELS : CR_F64_LEVELS };
enum { NAMED(A_LEAST) = CR_F64_GRID, NAMED(A_MOST) = SQUARE ? CR_F64_SQUARE_MOST : CR_F64_MOST };
#else
#if defined(FOR_BF16)
enum { NAMED(MANTISSA) = CR_BF16_MANTISSA, NAMED(FIELD) = 7, NAMED(SIZE) = 2, NAMED(ADDS) = 2 };
#else
enum { NAMED(MANTISSA) = CR_F32_MANTISSA, NAMED(FIELD) = 23, NAMED(SIZE) = 4, NAMED(ADDS) = 1 };
#endif
enum { NAMED(BIAS) = CR_F32_BIAS, NAMED(STEP) = VB, NAMED(LOWEST) = SQUARE ? CR_F32_SQUARE_LOWEST : 0 };
enum { NAMED(LEVELS) = SQUARE ? CR_F32_SQUARE_LEVELS : CR_F32_LEVELS };
enum { NAMED(A_LEAST) = SQUARE ? CR_F32_SQUARE_GRID : CR_F32_GRID };
enum { NAMED(A_MOST) = SQUARE ? CR_F32_SQUARE_MOST : CR_F32_MOST };
#endif
static const int NAMED(levels)[TIERS] = {NAMED(LEVELS), NAMED(LEVELS) + 1, DEEP_LEVELS, 0};
static const int NAMED(steps)[TIERS] = {CR_ANCHOR_STEP, CR_ANCHOR_STEP, DEEP_STEP, 0}; /* from one anchor to the next */
/* What a pass adds to a running anchor before it begins anew, in steps of the data. */
enum {
    NAMED(DEEP) = DEEP_USED && !SQUARE && NAMED(FIELD) == 20,
    NAMED(ROUND) = NAMED(STEP) * ((1 << DEEP_LOG_ADDS) / (2 * NAMED(ADDS)))
};
enum { NAMED(MIXED_ROUND) = VB * ((NAMED(SIZE) == 2 ? 16 : 32)) };
_Static_assert(ANCHOR_BLOCK % NAMED(ROUND) == 0, "whole rounds");
enum { NAMED(TOP) = NAMED(BIAS) * 2 + 1 };
/* Whether a block without a look costs less than one with: bins count what they pass over. */
enum { NAMED(HARD) = NAMED(FIELD) == 20 || DEEP_USED };

/* Adds the float64 lanes x to accumulator `which` of levels from … to − 1. */
ALWAYS void NAMED(chain)(vu64 acc[][2], const vf64 *m, int from, int to, int which, vf64 x) {
#pragma GCC unroll 4
    for (int level = from; level < to; level++) {
        vf64 q = x + m[level];
        acc[level][which] += (vu64)q;
        if (level + 1 < to) x -= q - m[level];
    }
}

ALWAYS void NAMED(add)(struct anchor_sums *s, int k, int which, vf64 x) {
    vu64(*acc)[2] = s->acc;
    const vf64 *m = s->m;
    if (k == ANCHOR_DEEP) {
        deep_add(s, x);
        return;
    }
#if SQUARE && defined(FOR_F64)
    /* x² = h + l exactly; l starts one level below h and ends one level lower. */
    vf64 h = x * x;
    NAMED(chain)(acc, m, 0, k - 1, which, h);
    NAMED(chain)(acc, m, 1, k, which, square_rest(x, h));
#elif SQUARE
    NAMED(chain)(acc, m, 0, k, which, x * x); /* exact: two float32 significands fit a float64 */
#else
    NAMED(chain)(acc, m, 0, k, which, x);
#endif
}

/* One step: guard, then sums. masked: NaNs and infinities become zeros, and are counted in c. */
#if defined(FOR_F64)
ALWAYS void NAMED(step)(const uint8_t *p, struct anchor_sums *s, int k, bool absolute, bool masked, struct guard *g,
                        vu64 *nans, vu64 *pinfs, vu64 *ninfs) {
    const vu64 most = ALL(vu64, INT64_MAX), infinity = ALL(vu64, 0x7ff0000000000000);
#pragma GCC unroll 2
    for (int which = 0; which < 2; which++) {
        vu64 x = LOAD(vu64, p + which * VB);
        vu64 magnitude = x & most;
        if (masked) {
            vu64 special = (vu64)((vs64)magnitude >= (vs64)infinity);
            *nans -= (vu64)((vs64)magnitude > (vs64)infinity);
            *pinfs -= (vu64)(x == infinity);
            *ninfs -= (vu64)(x == (infinity | ~most));
            x &= ~special;
            magnitude &= ~special;
        }
        g->most = max_vu32(g->most, (vu32)magnitude);
        g->least = min_vu32(g->least, (vu32)(magnitude - 1));
        if (k != 0) NAMED(add)(s, k, which, (vf64)(absolute ? magnitude : x));
    }
}
#else
ALWAYS void NAMED(lanes)(vu32 x, struct anchor_sums *s, int k) {
    NAMED(add)(s, k, 0, widen_low((vf32)x));
    NAMED(add)(s, k, 1, widen_high((vf32)x));
}
#if defined(FOR_F32)
ALWAYS void NAMED(step)(const uint8_t *p, struct anchor_sums *s, int k, bool absolute, bool masked, struct guard *g,
                        vu32 *nans, vu32 *pinfs, vu32 *ninfs) {
    const vu32 most = ALL(vu32, INT32_MAX), infinity = ALL(vu32, 0x7f800000);
    vu32 x = LOAD(vu32, p);
    vu32 magnitude = x & most;
    if (masked) {
        vu32 special = (vu32)((vs32)magnitude >= (vs32)infinity);
        *nans -= (vu32)((vs32)magnitude > (vs32)infinity);
        *pinfs -= (vu32)(x == infinity);
        *ninfs -= (vu32)(x == (infinity | ~most));
        x &= ~special;
        magnitude &= ~special;
    }
    g->most = max_vu32(g->most, magnitude);
    g->least = min_vu32(g->least, magnitude - 1);
    if (k != 0) NAMED(lanes)(absolute ? magnitude : x, s, k);
}
#else
ALWAYS void NAMED(step)(const uint8_t *p, struct anchor_sums *s, int k, bool absolute, bool masked, struct guard *g,
                        vu16 *nans, vu16 *pinfs, vu16 *ninfs) {
    const vu16 most = ALL(vu16, INT16_MAX), infinity = ALL(vu16, 0x7f80);
    vu16 x = LOAD(vu16, p);
    vu16 magnitude = x & most;
    if (masked) {
        vu16 special = (vu16)((vs16)magnitude >= (vs16)infinity);
        *nans -= (vu16)((vs16)magnitude > (vs16)infinity);
        *pinfs -= (vu16)(x == infinity);
        *ninfs -= (vu16)(x == (infinity | ~most));
        x &= ~special;
        magnitude &= ~special;
    }
    g->most = (vu32)max_vu16((vu16)g->most, magnitude);
    g->least = (vu32)min_vu16((vu16)g->least, magnitude - 1);
    if (k != 0) {
        vu32 pairs = (vu32)(absolute ? magnitude : x);
        NAMED(lanes)(pairs << 16, s, k);
        NAMED(lanes)(pairs & 0xffff0000u, s, k);
    }
}
#endif
#endif

#if defined(FOR_F64)
#define COUNT_LANES vu64
#elif defined(FOR_F32)
#define COUNT_LANES vu32
#else
#define COUNT_LANES vu16
#endif

/* Folds one block (at most ANCHOR_BLOCK bytes) on top of the first k levels of run into t; k = 0 only looks. */
ALWAYS void NAMED(block)(const struct anchor_run *run, struct anchor_try *t, const uint8_t *p, size_t bytes, int k,
                         bool absolute, bool masked, struct ahead ahead) {
    enum { STEP = NAMED(STEP) };
    struct anchor_sums s;
    COUNT_LANES nans = {0}, pinfs = {0}, ninfs = {0};
    struct guard g = {{0}, ~(vu32){0}};
#pragma GCC unroll 4
    for (int level = 0; level < k; level++) {
        s.acc[level][0] = run->acc[level][0];
        s.acc[level][1] = run->acc[level][1];
        s.m[level] = ALL(vf64, anchor_of(run->a - CR_ANCHOR_STEP * level));
    }
    vf64 m[DEEP_LEVELS];
    vu64 deep[DEEP_LEVELS];
#pragma GCC unroll 6
    for (int level = 0; level < DEEP_LEVELS && k == ANCHOR_DEEP; level++) {
        deep[level] = run->deep.rounds != 0 ? run->deep.acc[level] : (vu64){0};
        s.running[level] = m[level] = ALL(vf64, anchor_of(run->deep.a - DEEP_STEP * level));
        if (level + 1 < DEEP_LEVELS) s.left[level] = (vf64){0};
    }
    size_t at = 0;
    for (; k == ANCHOR_DEEP && at + NAMED(ROUND) <= bytes; at += NAMED(ROUND)) {
        for (size_t i = 0; i < NAMED(ROUND); i += STEP) {
            fetch(ahead, at + i, STEP);
            NAMED(step)(p + at + i, &s, k, absolute, masked, &g, &nans, &pinfs, &ninfs);
        }
        deep_gather(&s, m, deep);
    }
    t->rounds = (uint32_t)(at / NAMED(ROUND));
    for (; at + STEP <= bytes; at += STEP) {
        fetch(ahead, at, STEP);
        NAMED(step)(p + at, &s, k, absolute, masked, &g, &nans, &pinfs, &ninfs);
    }
    if (at < bytes) {
        uint8_t last[STEP];
        memset(last, 0, sizeof last);
        memcpy(last, p + at, bytes - at);
        NAMED(step)(last, &s, k, absolute, masked, &g, &nans, &pinfs, &ninfs);
    }
    if (k == ANCHOR_DEEP) { /* what is left over goes down to the last anchor */
        deep_gather(&s, m, deep);
        for (int level = 1; level < DEEP_LEVELS; level++) deep_add(&s, (vf64){0});
        deep_gather(&s, m, deep);
        t->rounds += 2;
    }
#pragma GCC unroll 4
    for (int level = 0; level < k; level++) {
        t->acc[level][0] = s.acc[level][0];
        t->acc[level][1] = s.acc[level][1];
    }
#pragma GCC unroll 6
    for (int level = 0; level < DEEP_LEVELS && k == ANCHOR_DEEP; level++) t->deep[level] = deep[level];
    t->guard = g;
    t->special = (cr_specials){0};
    if (masked && any_bit((vu64)(nans | pinfs | ninfs))) {
        for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++) {
            t->special.nans += nans[i];
            t->special.pinfs += pinfs[i];
            t->special.ninfs += ninfs[i];
        }
    }
}
#undef COUNT_LANES

#define INSTANCE(name, k, masked)                                                                              \
    NEVER void NAMED(name)(const struct anchor_run *run, struct anchor_try *t, const uint8_t *p, size_t bytes, \
                           bool absolute, struct ahead ahead) {                                                \
        if (absolute) {                                                                                        \
            NAMED(block)(run, t, p, bytes, k, true, masked, ahead);                                            \
        } else {                                                                                               \
            NAMED(block)(run, t, p, bytes, k, false, masked, ahead);                                           \
        }                                                                                                      \
    }
INSTANCE(look, 0, true)
INSTANCE(narrow, NAMED(LEVELS), false)
INSTANCE(narrow_masked, NAMED(LEVELS), true)
INSTANCE(wide, NAMED(LEVELS) + 1, false)
INSTANCE(wide_masked, NAMED(LEVELS) + 1, true)
INSTANCE(deep, NAMED(DEEP) ? ANCHOR_DEEP : 0, false)
INSTANCE(deep_masked, NAMED(DEEP) ? ANCHOR_DEEP : 0, true)
#undef INSTANCE

static void NAMED(try)(const struct anchor_run *run, struct anchor_try *t, int tier, bool masked, const uint8_t *p,
                       size_t bytes, bool absolute, struct ahead ahead) {
    if (tier == TIER_NARROW) {
        (masked ? NAMED(narrow_masked) : NAMED(narrow))(run, t, p, bytes, absolute, ahead);
    } else if (tier == TIER_WIDE || !NAMED(DEEP)) {
        (masked ? NAMED(wide_masked) : NAMED(wide))(run, t, p, bytes, absolute, ahead);
    } else {
        (masked ? NAMED(deep_masked) : NAMED(deep))(run, t, p, bytes, absolute, ahead);
    }
}

static uint32_t NAMED(block_adds)(size_t bytes) {
    return (uint32_t)((bytes + NAMED(STEP) - 1) / NAMED(STEP)) * NAMED(ADDS);
}

/* Makes room for the additions of a block. */
static void NAMED(reserve)(struct anchor_run *run, int tier, size_t bytes) {
    if (tier == TIER_DEEP) {
        if (run->deep.rounds + ANCHOR_BLOCK / NAMED(ROUND) + 2 > DEEP_ROUNDS) deep_flush(run);
    } else if (run->adds[0] + NAMED(block_adds)(bytes) > (SQUARE ? ANCHOR_SQUARE_ADDS : ANCHOR_ADDS)) {
        anchor_flush(run);
    }
}

static void NAMED(count_specials)(struct anchor_run *run, const struct anchor_try *t) {
    run->special.nans += t->special.nans;
    run->special.pinfs += t->special.pinfs;
    run->special.ninfs += t->special.ninfs;
    run->masked = (t->special.nans | t->special.pinfs | t->special.ninfs) != 0;
}

static void NAMED(hard_specials)(struct anchor_run *run, const uint8_t *p, size_t bytes, bool absolute,
                                 struct ahead ahead) {
    struct anchor_try t;
    NAMED(look)(run, &t, p, bytes, absolute, ahead);
    NAMED(count_specials)(run, &t);
}

static void NAMED(commit)(struct anchor_run *run, const struct anchor_try *t, int tier, size_t bytes) {
    if (tier == TIER_DEEP) {
        memcpy(run->deep.acc, t->deep, sizeof t->deep);
        run->deep.rounds += t->rounds;
        NAMED(count_specials)(run, t);
        return;
    }
    for (int level = 0; level < NAMED(levels)[tier]; level++) {
        run->acc[level][0] = t->acc[level][0];
        run->acc[level][1] = t->acc[level][1];
        /* Both parts of a float64's square pass through the levels between the first and the last. */
        bool twice = SQUARE && NAMED(FIELD) == 20 && level > 0 && level + 1 < NAMED(levels)[tier];
        run->adds[level] += NAMED(block_adds)(bytes) << twice;
    }
    NAMED(count_specials)(run, t);
}

/* Exponent fields that anchors from a up take exactly: [*least, *most]; *least of 1 or less means any. */
ALWAYS void NAMED(window)(int a, int tier, int *least, int *most) {
    int last = a - NAMED(steps)[tier] * (NAMED(levels)[tier] - 1),
        top = a + 50 - (tier == TIER_DEEP ? DEEP_LOG_ADDS : 0);
    /* |x| < 2^(top+1), or its square; and x, or its square, a multiple of 2^last. Halves are rounded inwards. */
    *most = NAMED(BIAS) + (SQUARE ? (top - 1) >> 1 : top);
    *least = NAMED(BIAS) + NAMED(MANTISSA) + (SQUARE ? (last + 1) >> 1 : last);
    if (*most >= NAMED(TOP)) *most = NAMED(TOP) - 1;
    if (*least < NAMED(LOWEST)) *least = NAMED(LOWEST);
    /* The last anchor itself must be a normal number: an anchor placed for fewer levels may lie too low for more. */
    if (NAMED(FIELD) == 20 && last < CR_F64_GRID) {
        *most = 0;
        *least = NAMED(TOP);
    }
}

/* Whether every magnitude that the guard saw lies in the window. */
static bool NAMED(inside)(const struct anchor_run *run, const struct guard *g, int tier) {
    int least, most;
    NAMED(window)(tier == TIER_DEEP ? run->deep.a : run->a, tier, &least, &most);
    uint32_t high = ((uint32_t)(most + 1) << NAMED(FIELD)) - 1;
    /* least is of |bits| − 1. Where only upper halves were kept, a power of two looks smaller than it is. */
    uint32_t low = least <= 1 ? 0 : ((uint32_t)least << NAMED(FIELD)) - (NAMED(FIELD) == 20 ? 0 : 1);
#if defined(FOR_F64)
    vu32 out = (vu32)(g->most > ALL(vu32, high)) | (vu32)(g->least < ALL(vu32, low));
    return !any_bit((vu64)out & 0xffffffff00000000u);
#elif defined(FOR_F32)
    vu32 out = (vu32)(g->most > ALL(vu32, high)) | (vu32)(g->least < ALL(vu32, low));
    return !any_bit((vu64)out);
#else
    vu16 out = (vu16)((vu16)g->most > ALL(vu16, (uint16_t)high)) | (vu16)((vu16)g->least < ALL(vu16, (uint16_t)low));
    return !any_bit((vu64)out);
#endif
}

/* The lowest and highest exponent field that was seen; false when everything was zero. */
static bool NAMED(span)(const struct anchor_try *t, int *low, int *high) {
    uint32_t most = 0, least = NAMED(FIELD) == 7 ? UINT16_MAX : UINT32_MAX;
    const uint32_t none = least;
#if defined(FOR_BF16)
    vu16 g_most = (vu16)t->guard.most, g_least = (vu16)t->guard.least;
    const size_t first = 0, lanes = VB / 2, step = 1;
#else
    vu32 g_most = t->guard.most, g_least = t->guard.least;
    const size_t first = NAMED(FIELD) == 20, lanes = VB / 4, step = 1 + first;
#endif
    for (size_t i = first; i < lanes; i += step) {
        if (g_most[i] > most) most = g_most[i];
        if (g_least[i] < least) least = g_least[i];
    }
    *high = (int)(most >> NAMED(FIELD));
    *low = (int)((NAMED(FIELD) == 20 ? least : least + 1) >> NAMED(FIELD));
    return least != none;
}

/* The cheapest tier that takes exponent fields low … high, and an anchor for it. */
static int NAMED(choose)(int low, int high, int *a) {
    int bottom = (low < 1 ? 1 : low) - NAMED(BIAS) - NAMED(MANTISSA), top = (high < 1 ? 1 : high) - NAMED(BIAS);
    if (low < NAMED(LOWEST)) return TIER_BINS;
    for (int tier = TIER_NARROW; tier < (NAMED(DEEP) ? TIER_BINS : TIER_DEEP); tier++) {
        int below = NAMED(steps)[tier] * (NAMED(levels)[tier] - 1);
        int least = SQUARE ? 2 * top - 49 : top - 50, most = (SQUARE ? 2 * bottom : bottom) + below;
        if (tier == TIER_DEEP) least += DEEP_LOG_ADDS;
        if (least < NAMED(A_LEAST) + below) least = NAMED(A_LEAST) + below;
        if (most < NAMED(A_LEAST) + below) most = NAMED(A_LEAST) + below;
        if (most > NAMED(A_MOST)) most = NAMED(A_MOST);
        if (least > most) continue;
        /* Some room above for a larger maximum to come; data runs out downwards more often. */
        int room = (most - least) / 2;
        *a = least + (room < 6 ? room : 6);
        return tier;
    }
    return TIER_BINS;
}

/* Whether a few of a block's elements alone lie too far apart for any window. */
NEVER bool NAMED(apart)(const uint8_t *p, size_t n) {
    int low = NAMED(TOP), high = 0, a;
#pragma GCC unroll 1
    for (size_t i = 0; i < n; i += 1 + n / 32) {
        uint64_t bits = 0;
        memcpy(&bits, p + i * NAMED(SIZE), NAMED(SIZE));
        int field = (int)(bits >> NAMED(MANTISSA)) & NAMED(TOP);
        if (field == NAMED(TOP) || bits << (65 - 8 * NAMED(SIZE)) == 0) continue;
        low = field < low ? field : low;
        high = field > high ? field : high;
    }
    return low <= high && NAMED(choose)(low, high, &a) == TIER_BINS;
}

/* Folds a block that no window takes. What look() saw of it counts its NaNs and infinities; NULL: it was not called. */
NEVER void NAMED(hard)(struct anchor_run *run, const struct anchor_try *seen, const uint8_t *p, size_t bytes,
                       bool absolute, struct ahead ahead) {
    size_t done = 0;
#if defined(FOR_F64)
    if (seen == NULL && bytes / 8 > BINS_FEW) {
        (SQUARE ? square_wide : bins_wide)(run, p, bytes / 8, true, ahead);
        return;
    }
#elif defined(VEC_AVX512)
    uint64_t nans;
    done = bytes / NAMED(MIXED_ROUND) * NAMED(MIXED_ROUND);
    if (done != 0) {
        bool infinities = NAMED(mixed)(run, p, done / NAMED(MIXED_ROUND), ahead, &nans);
        if (seen == NULL && infinities) {
            NAMED(hard_specials)(run, p, done, absolute, ahead);
        } else if (seen == NULL) {
            run->special.nans += nans;
        }
    }
#endif
    if (seen != NULL) NAMED(count_specials)(run, seen);
    if (done == bytes) return;
    if (seen == NULL) NAMED(hard_specials)(run, p + done, bytes - done, absolute, ahead_by(ahead, done));
    NAMED(bins)(run, p + done, (bytes - done) / NAMED(SIZE), absolute);
}

/* The same where blocks are expected to be so, and tells the tier that would have done. */
NEVER int NAMED(spill)(struct anchor_run *run, const uint8_t *p, size_t bytes, bool absolute, struct ahead ahead) {
    struct anchor_try t;
    int low, high, a;
    if (NAMED(HARD) && ((run->spilled && ++run->unlooked % UNLOOKED != 0) || NAMED(apart)(p, bytes / NAMED(SIZE)))) {
        NAMED(hard)(run, NULL, p, bytes, absolute, ahead);
        return TIER_BINS;
    }
    NAMED(look)(run, &t, p, bytes, absolute, ahead);
    NAMED(hard)(run, &t, p, bytes, absolute, ahead);
    return NAMED(span)(&t, &low, &high) ? NAMED(choose)(low, high, &a) : TIER_NARROW;
}

/* Where the first anchor of a tier lies. */
ALWAYS int *NAMED(anchor_at)(struct anchor_run *run, int tier) { return tier == TIER_DEEP ? &run->deep.a : &run->a; }
ALWAYS bool *NAMED(placed_at)(struct anchor_run *run, int tier) {
    return tier == TIER_DEEP ? &run->deep.placed : &run->placed;
}

/* A block whose magnitudes are not known to fit: looks first, then folds it in the cheapest way. */
NEVER void NAMED(measured)(struct anchor_run *run, const uint8_t *p, size_t bytes, bool absolute, struct ahead ahead) {
    struct anchor_try t;
    int low, high, a = NAMED(A_MOST), tier = TIER_NARROW; /* all zeros: any anchor does */
    if (NAMED(HARD) && bytes / NAMED(SIZE) > BINS_FEW && NAMED(apart)(p, bytes / NAMED(SIZE))) {
        NAMED(hard)(run, NULL, p, bytes, absolute, ahead);
        anchor_adapt(run, TIER_BINS);
        return;
    }
    NAMED(look)(run, &t, p, bytes, absolute, ahead);
    bool special = (t.special.nans | t.special.pinfs | t.special.ninfs) != 0, some = NAMED(span)(&t, &low, &high);
    if (some) tier = NAMED(choose)(low, high, &a);
    if (tier == TIER_BINS) {
        NAMED(hard)(run, &t, p, bytes, absolute, ahead);
        anchor_adapt(run, tier);
        return;
    }
    int *at = NAMED(anchor_at)(run, tier);
    bool *placed = NAMED(placed_at)(run, tier), keep = *placed;
    if (keep && some) { /* an outlier must not drag the anchor: keep it where it serves */
        int least, most;
        NAMED(window)(*at, tier, &least, &most);
        keep = high <= most && (low >= least || least <= 1);
    }
    if (!keep) {
        (tier == TIER_DEEP ? deep_flush : anchor_flush)(run);
        *at = a;
        *placed = true;
    }
    NAMED(reserve)(run, tier, bytes);
    NAMED(try)(run, &t, tier, special, p, bytes, absolute, ahead);
    NAMED(commit)(run, &t, tier, bytes);
    anchor_adapt(run, tier);
}

static void NAMED(anchor_tile)(struct anchor_run *run, const uint8_t *p, size_t bytes, bool absolute,
                               struct ahead ahead) {
    while (bytes > 0) {
        size_t now = bytes < ANCHOR_BLOCK ? bytes : ANCHOR_BLOCK;
        int tier = run->tier;
        bool done = false;
        fetch_pages(ahead, p, now);
        if (tier == TIER_BINS) {
            anchor_adapt(run, NAMED(spill)(run, p, now, absolute, ahead));
            done = true;
        } else if (*NAMED(placed_at)(run, tier)) {
            struct anchor_try t;
            NAMED(reserve)(run, tier, now);
            NAMED(try)(run, &t, tier, run->masked, p, now, absolute, ahead);
            done = NAMED(inside)(run, &t.guard, tier);
            if (done) {
                NAMED(commit)(run, &t, tier, now);
                int low, high, a;
                if (tier != TIER_NARROW && NAMED(span)(&t, &low, &high)) {
                    anchor_adapt(run, NAMED(choose)(low, high, &a));
                } else {
                    run->calm = run->rough = 0;
                }
            }
        }
        if (!done) NAMED(measured)(run, p, now, absolute, ahead);
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
}
