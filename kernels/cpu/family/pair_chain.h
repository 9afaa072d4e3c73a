/* pair_chain: sums of products, and of squared differences, of floats whose products are exact in float64 (f32 and narrower), by two
 * running anchors as in whole/fused.h: a product is added to the first, and what was rounded off to the second, which takes all there
 * is. Products are never stored.
 *
 * A block is folded on trial, while its smallest and largest products are taken: they certify the window. Of float32 products, rounded,
 * that costs least; where one of them is a zero or no number, or does not fit, the block is folded again with a look at the exact
 * ones, which passes over zeros, and so are those that follow. What fits no window, NaNs and infinities are left to others
 * (products.h).
 * Thread: any. Owner: the caller owns chain and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PAIR_CHAIN_H
#define CURED_KERNELS_CPU_FAMILY_PAIR_CHAIN_H

#include "kernels/cpu/family/anchor.h"

enum {
    PAIR_BLOCK = 1024, /* elements; their products stay in the nearest cache, where they are stored */
#ifdef CURED_SUM_ALONE
    PAIR_TERMS = 1, /* products of an element, where they are stored */
#else
    PAIR_TERMS = 3, /* a squared difference is a sum of three */
#endif
    CHAIN_STRETCH = 4096, /* elements that go through at once, if there are so many; a multiple of PAIR_BLOCK */
    CHAIN_LOG_ADDS = 4,   /* of the additions after which running anchors begin anew */
    CHAIN_ABOVE = 51 - CHAIN_LOG_ADDS,
    CHAIN_BELOW = 52 - CHAIN_LOG_ADDS, /* from the first anchor's unit down to the second's */
    CHAIN_BITS = 47,                   /* a product's last bit lies so far below its first, at most */
    CHAIN_HIGHEST = 256,               /* exponents of products of float32s that are numbers: less than this, and */
    CHAIN_LOWEST = -298,               /* no less than this */
    CHAIN_NORMAL = -126,               /* that of float32's smallest number with all bits */
    CHAIN_ADDS = 4095,                 /* as ANCHOR_ADDS, */
    CHAIN_BLOCK_ADDS = 1024,           /* and what a stretch has of them, or more */
    CHAIN_BLOCKS = 64                  /* that are looked at more closely once one had to be */
};

/* What a pass adds of each two elements. */
enum chain_terms { CHAIN_PRODUCT = 1, CHAIN_DISTANCE = 3 };

struct pair_chain {
    vu64 acc[2];          /* of the two anchors */
    uint32_t adds;        /* per lane of each, since the last flush */
    int a;                /* of the first anchor */
    uint64_t least, most; /* magnitudes that the window takes, as bits; before a is chosen nothing but zeros fits */
    uint32_t about_least, about_most; /* the same of products that were rounded to float32, a binade further inside */
    unsigned close;                   /* blocks to come that are looked at closely */
    unsigned fails, skip;             /* blocks: failed in a row; to pass over */
};

/* What of two blocks is fetched while they are read. */
struct pair_ahead {
    struct ahead x, y;
};

/* A block folded but not yet believed. */
struct chain_try {
    vu64 acc[2];
    uint32_t adds;
    bool quiet;         /* all of it fits: then low and high are not filled in, nor are they without a close look */
    uint64_t low, high; /* its smallest magnitude that is not zero, or less; its largest, or more */
};

/* What a pass holds; which: one of two products that are added side by side. */
struct chain_state {
    vf64 high[2], rest[2], m[2];
    vf32 about_least, about_most; /* magnitudes, rounded */
    vf64 most[2];                 /* of a close look: the largest magnitude, and the smallest less one, */
    vu32 less[2];                 /* which makes a zero the largest: in odd lanes its upper half */
    vu64 acc[2], moved;
    uint32_t adds;
};

ALWAYS void chain_add(struct chain_state *s, int which, vf64 a, vf64 b, bool close) {
    if (close) {
        const vu64 magnitude = (vu64)(a * b) & ALL(vu64, INT64_MAX);
        s->less[which] = min_vu32(s->less[which], (vu32)(magnitude - 1));
        s->most[which] = most_vf64((vf64)magnitude, s->most[which]);
    }
    const vf64 q = product_plus(a, b, s->high[which]);
    s->rest[which] = fused_plus(product_minus(a, b, q - s->high[which]), s->rest[which]);
    s->high[which] = q;
}

ALWAYS void chain_pair(struct chain_state *s, int which, vf64 a, vf64 b, enum chain_terms terms, bool close) {
    if (terms == CHAIN_DISTANCE) {
        chain_add(s, which, a, a, close);
        chain_add(s, which, b, b, close);
        chain_add(s, which, a, -2.0 * b, close);
    } else {
        chain_add(s, which, a, b, close);
    }
}

/* Products as float32. Of a distance |a·b| is no less than the smaller square, and |2·a·b| no more than both together. */
ALWAYS void chain_about(struct chain_state *s, vf32 a, vf32 b, enum chain_terms terms) {
    if (terms == CHAIN_DISTANCE) {
        const vf32 aa = a * a, bb = b * b;
        s->about_least = least_vf32(aa, least_vf32(bb, s->about_least));
        s->about_most = most_vf32(aa + bb, s->about_most);
    } else {
        const vf32 ab = a * b;
        s->about_least = least_vf32(ab, s->about_least);
        s->about_most = most_vf32(ab, s->about_most);
    }
}

/* Of two float16s or bfloat16s the float32 product is exact, but for what a block that was not looked at closely does not hold. */
ALWAYS void chain_pairs(struct chain_state *s, vf32 a, vf32 b, enum chain_terms terms, bool close) {
    if (!close) chain_about(s, a, b, terms);
    if (terms == CHAIN_PRODUCT && !close) {
        const vf32 x = a * b;
        chain_add(s, 0, widen_low(x), ALL(vf64, 1.0), close);
        chain_add(s, 1, widen_high(x), ALL(vf64, 1.0), close);
    } else {
        chain_pair(s, 0, widen_low(a), widen_low(b), terms, close);
        chain_pair(s, 1, widen_high(a), widen_high(b), terms, close);
    }
}

/* One vector of each input. */
ALWAYS void chain_step(struct chain_state *s, cr_format coded, const uint8_t *x, const uint8_t *y,
                       enum chain_terms terms, bool close) {
    if (coded == CR_FORMAT_F32) {
        if (!close) chain_about(s, LOAD(vf32, x), LOAD(vf32, y), terms);
        /* From memory: from halves of the vectors it costs more. */
        chain_pair(s, 0, widen_at(x), widen_at(y), terms, close);
        chain_pair(s, 1, widen_at(x + VB / 2), widen_at(y + VB / 2), terms, close);
#ifndef CURED_SUM_ALONE
    } else if (coded == CR_FORMAT_BF16) {
        const vu32 a = LOAD(vu32, x), b = LOAD(vu32, y);
        chain_pairs(s, (vf32)(a << 16), (vf32)(b << 16), terms, close);
        chain_pairs(s, (vf32)(a & 0xffff0000u), (vf32)(b & 0xffff0000u), terms, close);
    } else {
        const vu16 a = LOAD(vu16, x), b = LOAD(vu16, y);
        chain_pairs(s, halves_a(a), halves_a(b), terms, close);
        chain_pairs(s, halves_b(a), halves_b(b), terms, close);
#endif
    }
}

ALWAYS void chain_gather(struct chain_state *s) {
#pragma GCC unroll 2
    for (int which = 0; which < 2; which++) {
        s->acc[0] += (vu64)s->high[which];
        s->acc[1] += (vu64)s->rest[which];
        s->moved |= (vu64)s->high[which] ^ (vu64)s->m[0];
        s->high[which] = s->m[0];
        s->rest[which] = s->m[1];
    }
    s->adds += 2;
}

ALWAYS void chain_begin(struct chain_state *s, const struct pair_chain *chain) {
    s->m[0] = ALL(vf64, anchor_of(chain->a));
    s->m[1] = ALL(vf64, anchor_of(chain->a - CHAIN_BELOW));
    s->about_least = ALL(vf32, __builtin_inff());
    s->about_most = (vf32){0};
    s->moved = (vu64){0};
    s->adds = 0;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        s->acc[i] = (vu64){0};
        s->high[i] = s->m[0];
        s->rest[i] = s->m[1];
        s->most[i] = (vf64){0};
        s->less[i] = ~(vu32){0};
    }
}

/* The smallest and largest magnitude of all lanes. */
static void chain_span(const struct chain_state *s, const struct pair_chain *chain, struct chain_try *t) {
    uint64_t low = UINT64_MAX, high = 0;
    for (unsigned i = 0; i < VB / 4; i++) {
        const uint32_t less = s->less[i % 2][2 * (i / 2) + 1];
        const uint64_t most = ((vu64)s->most[i % 2])[i / 2];
        if (less != UINT32_MAX && (uint64_t)less << 32 < low) low = (uint64_t)less << 32;
        if (most > high) high = most;
    }
    const bool nan = high <= chain->most && any_bit(s->moved); /* nothing else moves an anchor so far */
    t->low = low;
    t->high = nan ? UINT64_MAX : high;
}

/* Ends a pass. What most blocks end with is asked first. */
ALWAYS void chain_end(struct chain_state *s, const struct pair_chain *chain, struct chain_try *t, bool close) {
    vu64 out;
    s->moved &= (uint64_t)2047 << 52;
    if (close) {
        const vu32 low = ALL(vu32, (uint32_t)(chain->least >> 32));
        out = (vu64)((vs64)max_vf64(s->most[0], s->most[1]) > ALL(vs64, (int64_t)chain->most));
        out |= (vu64)(vu32)(min_vu32(s->less[0], s->less[1]) < low) & 0xffffffff00000000u;
    } else {
        out = (vu64)(vu32)((vu32)s->about_most > ALL(vu32, chain->about_most));
        out |= (vu64)(vu32)((vu32)s->about_least < ALL(vu32, chain->about_least));
    }
    t->acc[0] = s->acc[0];
    t->acc[1] = s->acc[1];
    t->adds = s->adds;
    t->quiet = !any_bit(out | s->moved);
    if (close && !t->quiet) chain_span(s, chain, t);
}

/* n: a multiple of PAIR_BLOCK, up to CHAIN_STRETCH. */
ALWAYS void chain_block(const struct pair_chain *chain, struct chain_try *t, const uint8_t *x, const uint8_t *y,
                        size_t n, struct pair_ahead ahead, cr_format coded, enum chain_terms terms, bool close) {
    const size_t size = coded == CR_FORMAT_F32 ? 4 : 2, bytes = n * size;
    const size_t round = ((size_t)1 << CHAIN_LOG_ADDS) / ((size_t)terms * (4 / size)) * VB;
    struct chain_state s;
    chain_begin(&s, chain);
    for (size_t at = 0; at < bytes;) {
        const size_t till = bytes - at < round ? bytes : at + round;
        for (; at < till; at += VB) {
            fetch(ahead.x, at, VB);
            fetch(ahead.y, at, VB);
            chain_step(&s, coded, x + at, y + at, terms, close);
        }
        chain_gather(&s);
    }
    chain_end(&s, chain, t, close);
}

NEVER void chain_dot_f32(const struct pair_chain *chain, struct chain_try *t, const uint8_t *x, const uint8_t *y,
                         size_t n, struct pair_ahead ahead) {
    chain_block(chain, t, x, y, n, ahead, CR_FORMAT_F32, CHAIN_PRODUCT, false);
}
NEVER void chain_dot_f32_close(const struct pair_chain *chain, struct chain_try *t, const uint8_t *x, const uint8_t *y,
                               size_t n, struct pair_ahead ahead) {
    chain_block(chain, t, x, y, n, ahead, CR_FORMAT_F32, CHAIN_PRODUCT, true);
}

#ifndef CURED_SUM_ALONE
#define PASS(name, coded, terms)                                                                                     \
    NEVER void chain_##name(const struct pair_chain *chain, struct chain_try *t, const uint8_t *x, const uint8_t *y, \
                            size_t n, struct pair_ahead ahead, bool close) {                                         \
        if (close) {                                                                                                 \
            chain_block(chain, t, x, y, n, ahead, coded, terms, true);                                               \
        } else {                                                                                                     \
            chain_block(chain, t, x, y, n, ahead, coded, terms, false);                                              \
        }                                                                                                            \
    }
PASS(distance_f32, CR_FORMAT_F32, CHAIN_DISTANCE)
PASS(dot_bf16, CR_FORMAT_BF16, CHAIN_PRODUCT)
PASS(distance_bf16, CR_FORMAT_BF16, CHAIN_DISTANCE)
PASS(dot_f16, CR_FORMAT_F16, CHAIN_PRODUCT)
PASS(distance_f16, CR_FORMAT_F16, CHAIN_DISTANCE)
#undef PASS
#endif

/* A pass over a block as the chain expects it. */
static void chain_try_block(const struct pair_chain *chain, struct chain_try *t, const uint8_t *x, const uint8_t *y,
                            size_t n, struct pair_ahead ahead, cr_format coded, enum chain_terms terms) {
    const bool close = chain->close > 0, distance = terms == CHAIN_DISTANCE;
#ifndef CURED_SUM_ALONE
    if (coded == CR_FORMAT_BF16) {
        (distance ? chain_distance_bf16 : chain_dot_bf16)(chain, t, x, y, n, ahead, close);
        return;
    }
    if (coded == CR_FORMAT_F16) {
        (distance ? chain_distance_f16 : chain_dot_f16)(chain, t, x, y, n, ahead, close);
        return;
    }
    if (distance) {
        chain_distance_f32(chain, t, x, y, n, ahead, close);
        return;
    }
#else
    (void)coded, (void)distance;
#endif
    (close ? chain_dot_f32_close : chain_dot_f32)(chain, t, x, y, n, ahead);
}

static void chain_unplace(struct pair_chain *chain) {
    chain->a = 0;
    chain->least = INT64_MAX;
    chain->most = 0;
    chain->close = 1;
}

static void chain_reset(struct pair_chain *chain) {
    chain->acc[0] = chain->acc[1] = (vu64){0};
    chain->adds = 0;
    chain->fails = chain->skip = 0;
    chain_unplace(chain);
}

/* Where the chain's sum goes: limbs on a grid. */
struct chain_to {
    int64_t *limb;
    unsigned limbs;
    uint32_t *pending;
    int grid;
};

NEVER void chain_flush(struct pair_chain *chain, const struct chain_to *to) {
    for (int level = 0; level < 2 && chain->adds != 0; level++) {
        int a = chain->a - CHAIN_BELOW * level;
        __int128 sum = anchor_lanes(chain->acc[level], a, chain->adds);
        if (a < to->grid) { /* multiples of the grid's unit all the same */
            sum >>= to->grid - a;
            a = to->grid;
        }
        cr_limbs_put_signed(to->limb, to->limbs, to->pending, sum, (unsigned)(a - to->grid));
        chain->acc[level] = (vu64){0};
    }
    chain->adds = 0;
}

/* The bits of the float32 2^e, or of one next to it that is a number. */
static uint32_t chain_about_bits(int e) {
    if (e < -149) return 1;
    return e < -126 ? (uint32_t)1 << (e + 149) : e > 127 ? 0x7f7fffff : (uint32_t)(e + 127) << 23;
}

/* Chooses anchors for magnitudes whose exponents are low to high, with some room above: data runs out downwards more often. False:
 * they lie too far apart. */
static bool chain_place(struct pair_chain *chain, int low, int high) {
    const int least = high + 1 - CHAIN_ABOVE, most = low - CHAIN_BITS + CHAIN_BELOW;
    if (least > most) return false;
    const int a = chain->a = least + ((most - least) / 3 < 8 ? (most - least) / 3 : 8);
    const int top = a + CHAIN_ABOVE < CHAIN_HIGHEST ? a + CHAIN_ABOVE : (int)CHAIN_HIGHEST;
    const int bottom = a - CHAIN_BELOW + CHAIN_BITS;
    chain->most = ((uint64_t)(top + CR_F64_BIAS) << CR_F64_MANTISSA) - 1;
    chain->least = (uint64_t)(bottom + CR_F64_BIAS) << CR_F64_MANTISSA;
    chain->about_most = chain_about_bits(top - 1);
    chain->about_least = chain_about_bits(bottom + 1 < CHAIN_NORMAL ? (int)CHAIN_NORMAL : bottom + 1);
    return true;
}

/* Whether anchors for what a pass saw could be chosen. Nothing may be added up by the last ones then. */
static bool chain_place_for(struct pair_chain *chain, const struct chain_try *t) {
    if (t->high == 0 || t->high >> CR_F64_MANTISSA >= (uint64_t)CR_F64_BIAS + CHAIN_HIGHEST) return false;
    const int high = (int)(t->high >> CR_F64_MANTISSA) - CR_F64_BIAS;
    const int low = t->low == UINT64_MAX ? high : (int)(t->low >> CR_F64_MANTISSA) - CR_F64_BIAS;
    return low >= CHAIN_LOWEST && chain_place(chain, low, high);
}

/* Adds what n elements at x and at y give (a multiple of PAIR_BLOCK, up to CHAIN_STRETCH). False: nothing was added. */
static bool chain_take(struct pair_chain *chain, const struct chain_to *to, cr_format coded, enum chain_terms terms,
                       const uint8_t *x, const uint8_t *y, size_t n, struct pair_ahead ahead) {
    struct chain_try t;
    if (chain->skip > 0) {
        chain->skip--;
        return false;
    }
    if (chain->adds + CHAIN_BLOCK_ADDS > CHAIN_ADDS) chain_flush(chain, to);
    for (int turn = 0; turn < 3; turn++) {
        chain_try_block(chain, &t, x, y, n, ahead, coded, terms);
        if (t.quiet) {
            chain->acc[0] += t.acc[0];
            chain->acc[1] += t.acc[1];
            chain->adds += t.adds;
            chain->close -= chain->close > 0;
            chain->fails = 0;
            return true;
        }
        if (chain->close == 0) {
            chain->close = CHAIN_BLOCKS;
            continue;
        }
        chain_flush(chain, to);
        if (!chain_place_for(chain, &t)) break;
    }
    chain_unplace(chain);
    chain->fails += chain->fails < 6; /* the more in a row, the more go by before the next trial */
    chain->skip = (1u << chain->fails) - 2;
    return false;
}

#endif
