/* fold_extrema_lane: the blocks of fold_extrema for lanes of LANE bits. A template (instance.h).
 *
 * Thread: any. Owner: the caller owns the data. */

ALWAYS VS NAMED(keys)(vu8 bytes, int kind) {
    VS x = (VS)bytes;
    const VS top = ALL(VS, (SCALAR)((uint64_t)1 << (LANE - 1)));
#if LANE == 8
    if (kind == KEY_BOOL) x = (VS)min_vu8(bytes, ALL(vu8, 1));
#endif
    if (kind == KEY_UNSIGNED || kind == KEY_BOOL) return x ^ top;
    if (kind == KEY_FLOAT) return x ^ (VS)((VU)(x >> (LANE - 1)) >> 1);
    return x;
}

/* Across lanes: not by an array, because gcc 12 has AddressSanitizer misalign the frame of a function with one beside vectors of 64 bytes. */
ALWAYS SCALAR NAMED(least)(VS v) {
    SCALAR best = v[0];
    for (size_t i = 1; i < VB * 8 / LANE; i++) best = v[i] < best ? v[i] : best;
    return best;
}

ALWAYS SCALAR NAMED(most)(VS v) {
    SCALAR best = v[0];
    for (size_t i = 1; i < VB * 8 / LANE; i++) best = v[i] > best ? v[i] : best;
    return best;
}

/* The last vector of a tile, filled up with copies of its own first element. */
ALWAYS vu8 NAMED(last)(const uint8_t *p, size_t bytes) {
    SCALAR first;
    memcpy(&first, p, sizeof first);
    VS v = ALL(VS, first);
    memcpy(&v, p, bytes);
    return (vu8)v;
}

/* What is not asked for costs nothing: wants is a constant of each instance. */
ALWAYS void NAMED(plain)(const uint8_t *p, size_t bytes, int kind, uint32_t wants, struct ahead ahead, VS *out_low,
                         VS *out_high) {
    enum { WAYS = 4, STEP = WAYS * VB };
    const bool min = wants & CR_WANTS_MIN, max = wants & CR_WANTS_MAX;
    const VS most = ALL(VS, (SCALAR)(((uint64_t)1 << (LANE - 1)) - 1));
    VS low[WAYS] = {most, most, most, most}, high[WAYS] = {~most, ~most, ~most, ~most};
    size_t at = 0;
    for (; at + STEP <= bytes; at += STEP) {
        fetch(ahead, at, STEP);
#pragma GCC unroll 4
        for (int i = 0; i < WAYS; i++) {
            VS a = NAMED(keys)(LOAD(vu8, p + at + i * VB), kind);
            if (min) low[i] = VMIN(low[i], a);
            if (max) high[i] = VMAX(high[i], a);
        }
    }
    for (; at < bytes; at += VB) {
        vu8 v = at + VB <= bytes ? LOAD(vu8, p + at) : NAMED(last)(p + at, bytes - at);
        VS a = NAMED(keys)(v, kind);
        if (min) low[0] = VMIN(low[0], a);
        if (max) high[0] = VMAX(high[0], a);
    }
    *out_low = VMIN(VMIN(low[0], low[1]), VMIN(low[2], low[3]));
    *out_high = VMAX(VMAX(high[0], high[1]), VMAX(high[2], high[3]));
}

#if LANE >= 32
/* Keys of floats compared by value: false if there were NaNs. A zero has the key that wins, whichever it was. */
ALWAYS bool NAMED(extrema_floats)(const uint8_t *p, size_t bytes, uint32_t wants, struct ahead ahead, VS *out_low,
                                  VS *out_high) {
    enum { STEP = 4 * VB };
    const bool min = wants & CR_WANTS_MIN, max = wants & CR_WANTS_MAX;
    const VF infinity = (VF){0} + (GLUE(float_, LANE))__builtin_inf();
    VF low0 = infinity, low1 = infinity, high0 = -infinity, high1 = -infinity;
    GLUE(nans_vf, LANE) nans = {0};
    size_t at = 0;
    for (; at + STEP <= bytes; at += STEP) {
        VF a = LOAD(VF, p + at), b = LOAD(VF, p + at + VB);
        VF c = LOAD(VF, p + at + 2 * VB), d = LOAD(VF, p + at + 3 * VB);
        fetch(ahead, at, STEP);
        if (min) {
            low0 = GLUE(min_vf, LANE)(GLUE(min_vf, LANE)(a, b), low0);
            low1 = GLUE(min_vf, LANE)(GLUE(min_vf, LANE)(c, d), low1);
        }
        if (max) {
            high0 = GLUE(max_vf, LANE)(GLUE(max_vf, LANE)(a, b), high0);
            high1 = GLUE(max_vf, LANE)(GLUE(max_vf, LANE)(c, d), high1);
        }
        nans = GLUE(note_vf, LANE)(GLUE(note_vf, LANE)(nans, a, b), c, d);
    }
    for (; at < bytes; at += VB) {
        VF a = (VF)(at + VB <= bytes ? LOAD(vu8, p + at) : NAMED(last)(p + at, bytes - at));
        if (min) low0 = GLUE(min_vf, LANE)(a, low0);
        if (max) high0 = GLUE(max_vf, LANE)(a, high0);
        nans = GLUE(note_vf, LANE)(nans, a, a);
    }
    VS low = NAMED(keys)((vu8)GLUE(min_vf, LANE)(low0, low1), KEY_FLOAT);
    VS high = NAMED(keys)((vu8)GLUE(max_vf, LANE)(high0, high1), KEY_FLOAT);
    *out_low = low | (VS)(low == 0); /* +0's key is 0, −0's −1 */
    *out_high = high & ~(VS)(high == -1);
    return !GLUE(noted_vf, LANE)(nans);
}
#endif

/* As plain, but a NaN takes the key that loses. Returns whether there was one. */
ALWAYS bool NAMED(masked)(const uint8_t *p, size_t bytes, SCALAR infinity, struct ahead ahead, VS *out_low,
                          VS *out_high) {
    const VS most = ALL(VS, (SCALAR)(((uint64_t)1 << (LANE - 1)) - 1));
    VS low = most, high = ~most, any = {0};
    for (size_t at = 0; at < bytes; at += VB) {
        fetch(ahead, at, VB);
        vu8 v = at + VB <= bytes ? LOAD(vu8, p + at) : NAMED(last)(p + at, bytes - at);
        VS nan = (VS)(((VS)v & most) > infinity);
        VS key = NAMED(keys)(v, KEY_FLOAT) & ~nan;
        any |= nan;
        low = VMIN(low, key | (nan & most));
        high = VMAX(high, key | (nan & ~most));
    }
    *out_low = low;
    *out_high = high;
    return any_bit((vu64)any);
}

/* The first NaN of a block that has one, or n. */
ALWAYS size_t NAMED(find_nan)(const uint8_t *p, size_t n, SCALAR infinity) {
    const VS most = ALL(VS, (SCALAR)(((uint64_t)1 << (LANE - 1)) - 1));
    for (size_t at = 0; at < n * (LANE / 8); at += VB) {
        size_t rest = n * (LANE / 8) - at;
        vu8 v = rest >= VB ? LOAD(vu8, p + at) : NAMED(last)(p + at, rest);
        VS nan = (VS)(((VS)v & most) > infinity);
        if (!any_bit((vu64)nan)) continue;
        for (size_t i = 0; i < VB * 8 / LANE; i++) {
            /* A padding lane repeats the lane of the vector's start, so the first match is an element. */
            if (nan[i]) return at / (LANE / 8) + i;
        }
    }
    return n;
}

/* The element whose key this is; a bool's could be several, so of those it is the key. */
ALWAYS SCALAR NAMED(element)(SCALAR key, int kind) {
    const SCALAR top = (SCALAR)((uint64_t)1 << (LANE - 1));
    if (kind == KEY_UNSIGNED) return (SCALAR)(key ^ top);
    if (kind == KEY_FLOAT && key < 0) return (SCALAR)(key ^ (SCALAR)~top);
    return key;
}

NEVER size_t NAMED(extrema_find)(const uint8_t *p, size_t n, int64_t key, int kind) {
    enum { WAYS = 4, STEP = WAYS * VB };
    const VS wanted = ALL(VS, NAMED(element)((SCALAR)key, kind));
    size_t at = 0, bytes = n * (LANE / 8);
    /* Most vectors do not have it: several at once. */
    for (; at + STEP <= bytes; at += STEP) {
        VS same = {0};
#pragma GCC unroll 4
        for (int i = 0; i < WAYS; i++) {
            vu8 v = LOAD(vu8, p + at + i * VB);
            same |= (VS)((kind == KEY_BOOL ? NAMED(keys)(v, kind) : (VS)v) == wanted);
        }
        if (any_bit((vu64)same)) break;
    }
    for (; at < bytes; at += VB) {
        size_t rest = bytes - at;
        vu8 v = rest >= VB ? LOAD(vu8, p + at) : NAMED(last)(p + at, rest);
        VS same = (VS)((kind == KEY_BOOL ? NAMED(keys)(v, kind) : (VS)v) == wanted);
        if (!any_bit((vu64)same)) continue;
        for (size_t i = 0; i < VB * 8 / LANE; i++) {
            if (same[i]) return at / (LANE / 8) + i;
        }
    }
    return 0; /* the memory has changed under us: any element of the block will do */
}

/* Notes a block whose lanes hold these keys, if it is better than what came before. */
ALWAYS void NAMED(extrema_note)(struct extremum_run *run, uint32_t wants, VS low, VS high, const uint8_t *block,
                                size_t n, uint64_t index) {
    if (wants & CR_WANTS_MIN) {
        SCALAR min = NAMED(least)(low);
        if (run->min.block == NULL || min < run->min.key) run->min = (struct extremum_block){block, index, n, min};
    }
    if (wants & CR_WANTS_MAX) {
        SCALAR max = NAMED(most)(high);
        if (run->max.block == NULL || max > run->max.key) run->max = (struct extremum_block){block, index, n, max};
    }
}

ALWAYS bool NAMED(extrema_better)(const struct extremum_run *run, uint32_t wants, VS low, VS high) {
    VS better = {0};
    if ((wants & CR_WANTS_MIN ? run->min : run->max).block == NULL) return true;
    if (wants & CR_WANTS_MIN) better |= low < ALL(VS, (SCALAR)run->min.key);
    if (wants & CR_WANTS_MAX) better |= high > ALL(VS, (SCALAR)run->max.key);
    return any_bit((vu64)better);
}

/* Notes a block whose keys a pass has kept in memory. Apart from the pass: vectors whose lanes are looked at one by one would live
 * in memory there, in its loop as well. */
NEVER void NAMED(extrema_take)(struct extremum_run *run, uint32_t wants, const uint8_t *lows, const uint8_t *highs,
                               const uint8_t *block, size_t n, uint64_t index) {
    VS low = LOAD(VS, lows), high = LOAD(VS, highs);
    if (NAMED(extrema_better)(run, wants, low, high)) NAMED(extrema_note)(run, wants, low, high, block, n, index);
}

#if LANE >= 32
/* One block of floats by value; false if keys have to decide. */
ALWAYS bool NAMED(extrema_block)(struct extremum_run *run, uint32_t wants, const uint8_t *block, size_t n,
                                 uint64_t index, struct ahead ahead) {
    VS low, high;
    if (run->nans) return false;
    if (run->zeros > 0) {
        run->zeros--;
        return false;
    }
    if (!NAMED(extrema_floats)(block, n * (LANE / 8), wants, ahead, &low, &high)) return false;
    if (!NAMED(extrema_better)(run, wants, low, high)) return true;
    /* a zero, of whichever sign */
    if (((wants & CR_WANTS_MIN) && NAMED(least)(low) == -1) || ((wants & CR_WANTS_MAX) && NAMED(most)(high) == 0)) {
        run->zeros = EXTREMA_PATIENCE;
        return false;
    }
    NAMED(extrema_note)(run, wants, low, high, block, n, index);
    return true;
}
#endif

ALWAYS void NAMED(extrema_tile)(struct extremum_run *run, const uint8_t *p, size_t n, uint64_t index, int kind,
                                SCALAR infinity, uint32_t wants, struct ahead ahead) {
    const size_t size = LANE / 8;
    size_t now;
    for (size_t done = 0; done < n; done += now, ahead = ahead_by(ahead, now * size)) {
        now = n - done < EXTREMA_BLOCK / size ? n - done : EXTREMA_BLOCK / size;
        const uint8_t *block = p + done * size;
        fetch_pages(ahead, block, now * size);
        VS low, high;
        bool some = true;
        if (kind != KEY_FLOAT) {
            NAMED(plain)(block, now * size, kind, wants, ahead, &low, &high);
        } else {
#if LANE >= 32
            if (NAMED(extrema_block)(run, wants, block, now, index + done, ahead)) continue;
#endif
            bool nans = run->nans;
            if (!nans) {
                /* A NaN shows on the side of its sign, so both are taken. */
                NAMED(plain)(block, now * size, kind, CR_WANTS_MIN | CR_WANTS_MAX, ahead, &low, &high);
                /* Keys of the infinities: +inf's are its bits, −inf's are ~(+inf's bits). */
                nans = any_bit((vu64)((high > infinity) | (low < (SCALAR)~infinity)));
            }
            if (nans) {
                run->nans = NAMED(masked)(block, now * size, infinity, ahead, &low, &high);
                some = NAMED(least)(low) <= infinity;
                if (run->nans && run->first_nan > index + done) {
                    size_t at = NAMED(find_nan)(block, now, infinity);
                    if (at < now && index + done + at < run->first_nan) run->first_nan = index + done + at;
                }
            }
        }
        if (some && NAMED(extrema_better)(run, wants, low, high))
            NAMED(extrema_note)(run, wants, low, high, block, now, index + done);
    }
}
