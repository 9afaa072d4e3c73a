/* axis_extrema_lane: the columns of axis_extrema for lanes of LANE bits. A template (instance.h).
 *
 * A vector of columns takes the extrema of a few lines at once. Where they beat what the strip holds (a column of random
 * values improves about ln n times), the line is looked up lane by lane. NaNs beyond the infinities send the vector the
 * slow way.
 * Thread: any. Owner: the caller owns strip and data. */

/* What the columns of one vector hold. */
struct NAMED(column) {
    SCALAR *min, *max;
    uint64_t *min_index, *max_index, *first_nan;
};

/* Notes the lanes whose best key of these lines is better than what their column holds, or as good and earlier. */
NEVER void NAMED(note)(SCALAR *key, uint64_t *index, const VS *keys, unsigned lines, unsigned columns, uint64_t line,
                       VS best, bool max) {
    for (unsigned i = 0; i < columns; i++) {
        SCALAR now = best[i];
        if (key[i] == now ? index[i] <= line : max ? now < key[i] : now > key[i]) continue;
        unsigned t = 0;
        while (t + 1 < lines && keys[t][i] != now) t++;
        key[i] = now;
        index[i] = line + t;
    }
}

/* Takes the extrema of a few lines into the columns: low and high of keys (of NaNs: those that lose). */
ALWAYS void NAMED(take)(const cr_strip *strip, struct NAMED(column) to, const VS *low_keys, const VS *high_keys, VS low,
                        VS high, unsigned lines, unsigned columns, uint64_t line, bool indices) {
    VS min = LOAD(VS, to.min), max = LOAD(VS, to.max);
    if (!indices) {
        min = VMIN(min, low);
        max = VMAX(max, high);
        memcpy(to.min, &min, VB);
        memcpy(to.max, &max, VB);
        return;
    }
    /* Equality matters where the lines do not come in order, and in empty columns, which hold the worst key. */
    const VS worst = ALL(VS, (SCALAR)(((uint64_t)1 << (LANE - 1)) - 1));
    VS lower = (VS)(low < min) | (VS)(min == worst), higher = (VS)(high > max) | (VS)(max == ~worst);
    if (line < strip->next_line) {
        lower |= (VS)(low == min);
        higher |= (VS)(high == max);
    }
    if (any_bit((vu64)lower)) {
        NAMED(note)(to.min, to.min_index, low_keys, lines, columns, line, low, false);
    }
    if (any_bit((vu64)higher)) {
        NAMED(note)(to.max, to.max_index, high_keys, lines, columns, line, high, true);
    }
}

/* Vectors with NaNs. */
NEVER void NAMED(with_nans)(cr_strip *strip, struct NAMED(column) to, const struct part *part, unsigned columns,
                            uint64_t line, SCALAR infinity, bool indices) {
    const VS most = ALL(VS, (SCALAR)(((uint64_t)1 << (LANE - 1)) - 1));
    VS low_keys[CR_LINES], high_keys[CR_LINES], low = most, high = ~most;
    bool first = false; /* some column may see its first NaN */
    for (unsigned i = 0; i < columns; i++) first |= to.first_nan[i] > line;
    strip->nans = 1;
    for (unsigned t = 0; t < part->lines; t++) {
        VS x = LOAD(VS, part->p + t * part->stride), nan = (VS)((x & most) > infinity);
        VS key = NAMED(keys)((vu8)x, KEY_FLOAT) & ~nan;
        low = VMIN(low, low_keys[t] = key | (nan & most));
        high = VMAX(high, high_keys[t] = key | (nan & ~most));
        if (!first || !any_bit((vu64)nan)) continue;
        for (unsigned i = 0; i < columns; i++) {
            if (nan[i] && to.first_nan[i] > line + t) to.first_nan[i] = line + t;
        }
    }
    NAMED(take)(strip, to, low_keys, high_keys, low, high, part->lines, columns, line, indices);
}

ALWAYS void NAMED(extrema_vector)(cr_strip *strip, struct NAMED(column) to, const struct part *part, unsigned columns,
                                  uint64_t line, int kind, SCALAR infinity, bool indices) {
    VS keys[CR_LINES];
    VS low = keys[0] = NAMED(keys)(LOAD(vu8, part->p), kind), high = low;
    part_fetch(part, part->p);
    for (unsigned t = 1; t < part->lines; t++) {
        part_fetch(part, part->p + t * part->stride);
        VS key = NAMED(keys)(LOAD(vu8, part->p + t * part->stride), kind);
        if (indices) keys[t] = key;
        low = VMIN(low, key);
        high = VMAX(high, key);
    }
    if (kind == KEY_FLOAT && any_bit((vu64)((high > infinity) | (low < (SCALAR)~infinity)))) {
        NAMED(with_nans)(strip, to, part, columns, line, infinity, indices);
        return;
    }
    NAMED(take)(strip, to, keys, keys, low, high, part->lines, columns, line, indices);
}

ALWAYS void NAMED(extrema_lines)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, uint64_t line,
                                 int kind, SCALAR infinity, bool indices) {
    enum { LANES = VB * 8 / LANE };
    struct NAMED(column) to = {(SCALAR *)cr_strip_array(strip, plan->min_key) + part->first,
                               (SCALAR *)cr_strip_array(strip, plan->max_key) + part->first,
                               (uint64_t *)cr_strip_array(strip, plan->min_index) + part->first,
                               (uint64_t *)cr_strip_array(strip, plan->max_index) + part->first,
                               (uint64_t *)cr_strip_array(strip, plan->first_nan) + part->first};
    for (unsigned c = 0; c < part->columns; c += LANES) {
        struct part now = *part;
        if (c + LANES <= part->columns) {
            now.p += c * (LANE / 8);
            NAMED(extrema_vector)(strip, to, &now, LANES, line, kind, infinity, indices);
        } else {
            /* Whole vectors only: the last columns get a strip's end of their own. */
            uint8_t pad[CR_LINES * VB];
            SCALAR min[LANES], max[LANES];
            unsigned rest = part->columns - c;
            now = part_rest(part, c, LANE / 8, pad, 0);
            memset(min, 0, sizeof min);
            memset(max, 0, sizeof max);
            memcpy(min, to.min, rest * sizeof min[0]);
            memcpy(max, to.max, rest * sizeof max[0]);
            struct NAMED(column) end = {min, max, to.min_index, to.max_index, to.first_nan};
            NAMED(extrema_vector)(strip, end, &now, rest, line, kind, infinity, indices);
            memcpy(to.min, min, rest * sizeof min[0]);
            memcpy(to.max, max, rest * sizeof max[0]);
        }
        to.min += LANES;
        to.max += LANES;
        to.min_index += LANES;
        to.max_index += LANES;
        to.first_nan += LANES;
    }
    if (strip->next_line < line + part->lines) strip->next_line = line + part->lines;
}
