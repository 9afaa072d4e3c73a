/* fold_extrema_lane: the blocks of fold_extrema for lanes of LANE bits. Included once per lane width.
 *
 * Thread: any. Owner: the caller owns the data. */
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define NAMED(name) GLUE(name##_, LANE)
#define VS GLUE(vs, LANE)
#define VU GLUE(vu, LANE)
#define VMIN GLUE(min_vs, LANE)
#define VMAX GLUE(max_vs, LANE)
#define SCALAR GLUE(GLUE(int, LANE), _t)

#ifndef CURED_KEY_KINDS
#define CURED_KEY_KINDS
enum { KEY_SIGNED, KEY_UNSIGNED, KEY_BOOL, KEY_FLOAT };
#endif

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

struct NAMED(best) {
    SCALAR min, max;
};

ALWAYS struct NAMED(best) NAMED(reduce)(VS low, VS high) {
    struct NAMED(best) best = {low[0], high[0]};
    for (size_t i = 1; i < VB * 8 / LANE; i++) {
        if (low[i] < best.min) best.min = low[i];
        if (high[i] > best.max) best.max = high[i];
    }
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

ALWAYS void NAMED(plain)(const uint8_t *p, size_t bytes, int kind, struct ahead ahead, VS *out_low, VS *out_high) {
    VS low0 = ALL(VS, (SCALAR)(((uint64_t)1 << (LANE - 1)) - 1)), high0 = ~low0;
    VS low1 = low0, high1 = high0;
    size_t at = 0;
    for (; at + 2 * VB <= bytes; at += 2 * VB) {
        fetch(ahead, at, 2 * VB);
        VS a = NAMED(keys)(LOAD(vu8, p + at), kind), b = NAMED(keys)(LOAD(vu8, p + at + VB), kind);
        low0 = VMIN(low0, a);
        high0 = VMAX(high0, a);
        low1 = VMIN(low1, b);
        high1 = VMAX(high1, b);
    }
    for (; at < bytes; at += VB) {
        vu8 v = at + VB <= bytes ? LOAD(vu8, p + at) : NAMED(last)(p + at, bytes - at);
        VS a = NAMED(keys)(v, kind);
        low0 = VMIN(low0, a);
        high0 = VMAX(high0, a);
    }
    *out_low = VMIN(low0, low1);
    *out_high = VMAX(high0, high1);
}

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

NEVER size_t NAMED(extrema_find)(const uint8_t *p, size_t n, int64_t key, int kind) {
    for (size_t at = 0; at < n * (LANE / 8); at += VB) {
        size_t rest = n * (LANE / 8) - at;
        vu8 v = rest >= VB ? LOAD(vu8, p + at) : NAMED(last)(p + at, rest);
        VS same = (VS)(NAMED(keys)(v, kind) == ALL(VS, (SCALAR)key));
        if (!any_bit((vu64)same)) continue;
        for (size_t i = 0; i < VB * 8 / LANE; i++) {
            if (same[i]) return at / (LANE / 8) + i;
        }
    }
    return 0; /* the memory has changed under us: any element of the block will do */
}

ALWAYS void NAMED(extrema_tile)(struct extremum_run *run, const uint8_t *p, size_t n, uint64_t index, int kind,
                                SCALAR infinity, struct ahead ahead) {
    const size_t size = LANE / 8;
    for (size_t done = 0; done < n;) {
        size_t now = n - done < EXTREMA_BLOCK / size ? n - done : EXTREMA_BLOCK / size;
        const uint8_t *block = p + done * size;
        VS low, high;
        bool some = true;
        if (kind != KEY_FLOAT) {
            NAMED(plain)(block, now * size, kind, ahead, &low, &high);
        } else {
            bool nans = run->nans;
            if (!nans) {
                NAMED(plain)(block, now * size, kind, ahead, &low, &high);
                /* Keys of the infinities: +inf's are its bits, −inf's are ~(+inf's bits). */
                nans = any_bit((vu64)((high > infinity) | (low < (SCALAR)~infinity)));
            }
            if (nans) {
                run->nans = NAMED(masked)(block, now * size, infinity, ahead, &low, &high);
                some = NAMED(reduce)(low, high).min <= infinity;
                if (run->nans && run->first_nan > index + done) {
                    size_t at = NAMED(find_nan)(block, now, infinity);
                    if (at < now && index + done + at < run->first_nan) run->first_nan = index + done + at;
                }
            }
        }
        bool first = run->min_block == NULL;
        bool better =
            first || any_bit((vu64)((low < ALL(VS, (SCALAR)run->min_key)) | (high > ALL(VS, (SCALAR)run->max_key))));
        if (some && better) {
            struct NAMED(best) best = NAMED(reduce)(low, high);
            if (first || best.min < run->min_key) {
                run->min_key = best.min;
                run->min_block = block;
                run->min_index = index + done;
                run->min_n = now;
            }
            if (first || best.max > run->max_key) {
                run->max_key = best.max;
                run->max_block = block;
                run->max_index = index + done;
                run->max_n = now;
            }
        }
        done += now;
        ahead = ahead_by(ahead, now * size);
    }
}

#undef GLUE_
#undef GLUE
#undef NAMED
#undef VS
#undef VU
#undef VMIN
#undef VMAX
#undef SCALAR
