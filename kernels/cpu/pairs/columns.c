/* columns: sums of pairs by column (sums.h): states that may come in pieces, and groups of whole blocks.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#include <string.h>

#include "kernels/core/float_state.h"
#include "kernels/cpu/columns/range.h"
#include "kernels/cpu/pairs/sums.h"
#include "kernels/cpu/rows/rows.h"

typedef struct head {
    uint64_t live; /* whether the partials of pairs are initialised */
} head;

/* A group of columns [begin, begin + width), and where its states are. */
typedef struct group {
    const cr_pair_sums *sums;
    uint64_t begin;
    unsigned width;
    uint8_t *state;
} group;

/* A group has a state for each sum, and one more for rests, which serves the sums in turn. */
static unsigned states_of(const cr_pair_sums *sums) { return sums->count + !sums->exact; }

/* The terms of a group. n is that of a tile, not of the array: what is in a tile is near. */
static cr_axis_spec spec_of(const cr_pair_sum *sum, unsigned width) {
    cr_axis_spec spec = sum->spec;
    spec.shape = (cr_shape){.outer = 1, .n = CR_PAIR_TILE / sum->size / width, .inner = width};
    return spec;
}

static cr_axis_spec state_spec(const cr_pair_sums *sums, unsigned i, unsigned width) {
    return spec_of(&sums->sum[i < sums->count ? i : 0], width);
}

/* Bytes of the first `states` states. */
static size_t bytes_of(const cr_pair_sums *sums, unsigned states, unsigned width) {
    size_t bytes = 0;
    for (unsigned i = 0; i < states; i++) {
        const cr_axis_spec spec = state_spec(sums, i, width);
        bytes += cr_lined(cr_columns_bytes(&spec));
    }
    return bytes;
}

static size_t group_bytes(const cr_pair_sums *sums, unsigned width) { return bytes_of(sums, states_of(sums), width); }

static unsigned width_of(const cr_pair_sums *sums, uint64_t begin) {
    const uint64_t left = sums->plan->spec->shape.inner - begin;
    return left < CR_PAIR_GROUP ? (unsigned)left : (unsigned)CR_PAIR_GROUP;
}

static size_t groups_bytes(const cr_pair_sums *sums) {
    const uint64_t inner = sums->plan->spec->shape.inner, whole = inner / CR_PAIR_GROUP, rest = inner % CR_PAIR_GROUP;
    return whole * group_bytes(sums, CR_PAIR_GROUP) + (rest ? group_bytes(sums, (unsigned)rest) : 0);
}

static group group_at(const cr_pair_sums *sums, const void *state, uint64_t begin) {
    uint8_t *first = (uint8_t *)(uintptr_t)state + cr_lined(sizeof(head));
    const size_t each = begin ? group_bytes(sums, CR_PAIR_GROUP) : 0;
    return (group){sums, begin, width_of(sums, begin), first + begin / CR_PAIR_GROUP * each};
}

/* The state of the i-th sum of a group; after the last one, that of rests. */
static void *sum_state(const group *g, unsigned i) { return g->state + bytes_of(g->sums, i, g->width); }

static void group_init(const group *g) {
    for (unsigned i = 0; i < states_of(g->sums); i++) {
        const cr_axis_spec spec = state_spec(g->sums, i, g->width);
        cr_columns_init(&spec, sum_state(g, i));
    }
}

static cr_partial *partials_of(const cr_pair_sums *sums, const void *state) {
    return (cr_partial *)(void *)((uint8_t *)(uintptr_t)state + cr_lined(sizeof(head)) + groups_bytes(sums));
}

size_t cr_pair_columns_bytes(const cr_pair_sums *sums) {
    const size_t partials = sums->exact ? 0 : (size_t)sums->plan->spec->shape.inner * sizeof(cr_partial);
    return cr_lined(sizeof(head)) + groups_bytes(sums) + partials;
}

void cr_pair_columns_init(const cr_pair_sums *sums, void *state) {
    ((head *)state)->live = 0;
    for (uint64_t c = 0; c < sums->plan->spec->shape.inner; c += CR_PAIR_GROUP) {
        const group g = group_at(sums, state, c);
        group_init(&g);
    }
}

/* Lines of a block. Those of x, y and the mask begin at column 0. */
typedef struct lines {
    const uint8_t *x, *y;
    size_t x_line, y_line; /* bytes from one to the next */
    const cr_mask *mask;   /* NULL: there is none */
    uint64_t first, count; /* of the block */
} lines;

/* The terms of `count` lines of the rectangle, columns [c, c + columns) of the block, into the tile. False: bits were lost. */
static bool make_terms(const cr_pair_sums *sums, const cr_pair_sum *sum, const lines *all, uint64_t line,
                       uint64_t count, uint64_t c, unsigned columns, uint8_t *tile) {
    const cr_axis_spec *spec = sums->plan->spec;
    const cr_axis_isa *isa = cr_axis_current();
    const size_t size = sums->plan->size, apart = count * columns * sum->size; /* run by run */
    const bool bytes = all->mask && all->mask->kind == CR_MASK_BYTES && !all->mask->leaves_out;
    bool exact = true, together = all->x_line == columns * size && all->y_line == all->x_line;
    uint8_t room[CR_PAIR_TILE_PAIRS];
    together = together && (!all->mask || spec->mask_line == columns);
    const unsigned now = together ? (unsigned)(count * columns) : columns;
    for (uint64_t k = line; k < line + count; k += together ? count : 1, tile += columns * sum->size) {
        const uint64_t at = (all->first + k) * spec->mask_line + c;
        const uint8_t *kept = NULL;
        if (bytes) {
            kept = all->mask->data + all->mask->first + at;
        } else if (all->mask) {
            isa->keep(room, all->mask, at, now);
            kept = room;
        }
        exact &= isa->terms(tile, apart, all->x + k * all->x_line + c * size, all->y + k * all->y_line + c * size, kept,
                            now, spec->dtype, sum->at);
    }
    return exact;
}

/* One sum of the rectangle of `count` lines and columns [from, from + columns) of the group. False: it is not in there. */
static bool add_terms(const group *g, unsigned i, const lines *all, uint64_t line, uint64_t count, unsigned from,
                      unsigned columns) {
    const cr_pair_sum *sum = &g->sums->sum[i];
    const cr_axis_spec spec = spec_of(sum, g->width);
    const uint64_t first = (all->first + line) * sum->runs, run_lines = count * sum->runs;
    const bool rests = !g->sums->exact && sum->runs > 1;
    uint8_t tile[CR_PAIR_TILE] __attribute__((aligned(64)));
    if (!make_terms(g->sums, sum, all, line, count, g->begin + from, columns, tile)) return false;
    cr_view view = cr_view_plain(tile);
    /* Rests are 53 binades smaller: each of the two sums has fewer digits in use than one of both would have. */
    for (unsigned part = 0; part <= rests; part++) {
        void *state = sum_state(g, part ? g->sums->count : i);
        const uint64_t of_part = run_lines / (1 + rests);
        if (columns == g->width) {
            cr_cpu_columns_fold_view(&spec, state, &view, of_part * columns, first * g->width);
            view.data += of_part * columns * sum->size;
            continue;
        }
        for (uint64_t k = 0; k < of_part; k++, view.data += columns * sum->size)
            cr_cpu_columns_fold_view(&spec, state, &view, columns, (first + k) * g->width + from);
    }
    return true;
}

/* What rests have come to, to the sum they belong to. */
static void add_rests(const group *g, unsigned i) {
    const cr_axis_spec spec = spec_of(&g->sums->sum[i], g->width);
    void *rests = sum_state(g, g->sums->count);
    if (g->sums->exact || g->sums->sum[i].runs == 1) return;
    cr_columns_merge(&spec, sum_state(g, i), rests);
    cr_columns_init(&spec, rests);
}

/* The same in partials of pairs, those of the block's columns. */
static void add_pairs(const group *g, cr_partial *partials, uint32_t family, const lines *all, uint64_t line,
                      uint64_t count, unsigned from, unsigned columns) {
    const cr_axis_spec *spec = g->sums->plan->spec;
    const uint64_t c = g->begin + from;
    for (unsigned i = 0; i < columns; i++) partials[c + i].families = family;
    for (uint64_t k = line; k < line + count; k++) {
        const cr_view view = {.data = all->x + k * all->x_line + c * g->sums->plan->size,
                              .mask = all->mask ? *all->mask : (cr_mask){.kind = CR_MASK_NONE},
                              .second = all->y - all->first * all->y_line};
        cr_axis_generic_fold(g->sums->plan, partials, &view, columns, (all->first + k) * spec->shape.inner + c);
    }
    for (unsigned i = 0; i < columns; i++) partials[c + i].families = g->sums->plan->generic;
}

/* Columns [from, from + columns) of the group's. partials: of the state; NULL: there are none, and false says that bits were lost. */
static bool fold_group(const group *g, head *h, cr_partial *partials, const lines *all, unsigned from,
                       unsigned columns) {
    const cr_pair_sums *sums = g->sums;
    for (unsigned i = 0; i < sums->count; i++) {
        const cr_pair_sum *sum = &sums->sum[i];
        uint64_t most = CR_PAIR_TILE / (columns * sum->size * sum->runs), now;
        if (most > CR_PAIR_TILE_PAIRS / columns) most = CR_PAIR_TILE_PAIRS / columns;
        if (most > CR_LINES) most = most / CR_LINES * CR_LINES;
        for (uint64_t k = 0; k < all->count; k += now) {
            now = all->count - k < most ? all->count - k : most;
            if (add_terms(g, i, all, k, now, from, columns)) continue;
            if (!partials) return false;
            for (uint64_t c = 0; !h->live && c < sums->plan->spec->shape.inner; c++)
                cr_partial_init(&partials[c], sums->plan->dtype, sums->plan->generic);
            h->live = 1;
            add_pairs(g, partials, cr_sum_rows[sum->at].family, all, k, now, from, columns);
        }
        add_rests(g, i);
    }
    return true;
}

/* Columns [begin, end) of some lines. */
static void fold_rectangle(const cr_pair_sums *sums, void *state, const lines *all, uint64_t begin, uint64_t end) {
    cr_partial *partials = sums->exact ? NULL : partials_of(sums, state);
    for (uint64_t c = begin; c < end && all->count != 0;) {
        const group g = group_at(sums, state, c / CR_PAIR_GROUP * CR_PAIR_GROUP);
        const unsigned from = (unsigned)(c - g.begin), left = g.width - from;
        const unsigned columns = end - c < left ? (unsigned)(end - c) : left;
        fold_group(&g, state, partials, all, from, columns);
        c += columns;
    }
}

void cr_pair_columns_fold(const cr_pair_sums *sums, void *state, const cr_view *view, uint64_t count, uint64_t at) {
    const cr_axis_spec *spec = sums->plan->spec;
    const uint64_t inner = spec->shape.inner, size = sums->plan->size;
    const uint64_t floats = cr_float_enter();
    for (uint64_t done = 0, now; done < count; done += now) {
        const uint64_t line = (at + done) / inner, column = (at + done) % inner, left = count - done;
        const bool whole = column == 0 && left >= inner;
        lines all = {.x = view->data + done * size - column * size,
                     .y = view->second + line * spec->second_line * size,
                     .x_line = inner * size,
                     .y_line = spec->second_line * size,
                     .mask = spec->mask_line != 0 ? &view->mask : NULL,
                     .first = line,
                     .count = whole ? left / inner : 1};
        now = whole ? all.count * inner : left < inner - column ? left : inner - column;
        fold_rectangle(sums, state, &all, column, whole ? inner : column + now);
    }
    cr_float_leave(floats);
}

void cr_pair_columns_merge(const cr_pair_sums *sums, void *into, const void *from) {
    const uint64_t inner = sums->plan->spec->shape.inner;
    for (uint64_t c = 0; c < inner; c += CR_PAIR_GROUP) {
        const group to = group_at(sums, into, c), of = group_at(sums, from, c);
        for (unsigned i = 0; i < sums->count; i++) {
            const cr_axis_spec spec = spec_of(&sums->sum[i], to.width);
            cr_columns_merge(&spec, sum_state(&to, i), sum_state(&of, i));
        }
    }
    if (!((const head *)from)->live) return;
    cr_partial *p = partials_of(sums, into);
    const cr_partial *q = partials_of(sums, from);
    for (uint64_t c = 0; c < inner; c++) {
        if (!((head *)into)->live) cr_partial_init(&p[c], sums->plan->dtype, sums->plan->generic);
        cr_partial_merge(&p[c], &q[c]);
    }
    ((head *)into)->live = 1;
}

/* Where some answers go, and of which columns of a group they are. */
typedef struct target {
    const group *g;
    const cr_partial *partials; /* of the group's columns; NULL: there are none */
    unsigned first, count;
    uint64_t output, at;
    void *const *out;
    cr_error *error;
} target;

/* Answer i of ops[k] from a partial of pairs. */
static cr_status answer_slowly(const target *t, uint32_t k, unsigned i) {
    const cr_axis_plan *plan = t->g->sums->plan;
    const cr_axis_spec *spec = plan->spec;
    const cr_op op = spec->ops[k];
    const size_t size = cr_dtype_size(cr_axis_dtype(op, spec->dtype, &spec->finish));
    cr_partial pairs, terms;
    cr_partial_init(&pairs, plan->dtype, plan->generic);
    for (unsigned s = 0; s < t->g->sums->count; s++) {
        const cr_axis_spec of = spec_of(&t->g->sums->sum[s], t->g->width);
        cr_columns_partial(&of, sum_state(t->g, s), t->first + i, &terms);
        cr_pair_sum_put(&t->g->sums->sum[s], &terms, &pairs);
    }
    if (t->partials) cr_partial_merge(&pairs, &t->partials[t->first + i]);
    return cr_axis_store_or(&pairs, op, &spec->finish, t->output + i, (uint8_t *)t->out[k] + (t->at + i) * size,
                            cr_axis_status_at(spec, t->out, k, t->at + i), t->error);
}

/* What sums of terms answer as they are. False: they do not. */
static bool answer_sum(const target *t, uint32_t k) {
    const cr_axis_spec *spec = t->g->sums->plan->spec;
    const cr_pair_sum *sum = cr_pair_sum_of(t->g->sums, spec->ops[k]);
    if (!sum || t->partials) return false;
    const cr_axis_spec of = spec_of(sum, t->g->width);
    const size_t size = cr_dtype_size(of.finish.result_dtype);
    void *to[CR_AXIS_PLACES] = {(uint8_t *)t->out[k] + t->at * size, cr_axis_status_at(spec, t->out, k, t->at)};
    cr_error why; /* dropped: it would name the op of the terms */
    return cr_columns_finish(&of, sum_state(t->g, (unsigned)(sum - t->g->sums->sum)), t->output, t->first, t->count, to,
                             &why) == CR_OK;
}

/* Averages of at most CR_STRIP_PAD columns of one strip: hard[i] says which are left. False: all are. */
static bool answer_averages(const target *t, uint32_t k, uint8_t *hard) {
    const cr_pair_sums *sums = t->g->sums;
    const cr_axis_spec *spec = sums->plan->spec;
    cr_row_sums of[2];
    unsigned have = 0;
    if (t->partials || !cr_pair_is_average(spec->ops[k]) ||
        cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish) != CR_F64)
        return false;
    for (unsigned s = 0; s < sums->count; s++) {
        const cr_axis_spec terms = spec_of(&sums->sum[s], t->g->width);
        if (sums->sum[s].at == CR_AT_SQDIST) continue;
        if (!cr_columns_sums(&terms, sum_state(t->g, s), t->first, t->count, &of[have++])) return false;
    }
    uint8_t *to = (uint8_t *)t->out[k] + t->at * sizeof(double);
    cr_axis_current()->round_averages(&of[0], &of[1], t->count, to, hard);
    return true;
}

static cr_status answer(const target *t, uint32_t k) {
    const cr_axis_spec *spec = t->g->sums->plan->spec;
    cr_status status = CR_OK;
    if (cr_pair_sum_of(t->g->sums, spec->ops[k]) != NULL) {
        if (answer_sum(t, k)) return CR_OK;
        for (unsigned i = 0; i < t->count && status == CR_OK; i++) status = answer_slowly(t, k, i);
        return status;
    }
    for (unsigned i = 0, now; i < t->count && status == CR_OK; i += now) {
        const unsigned first = t->first + i, rest = CR_STRIP_PAD - first % CR_STRIP_PAD;
        uint8_t hard[CR_STRIP_PAD];
        now = t->count - i < rest ? t->count - i : rest;
        const target some = {t->g, t->partials, first, now, t->output + i, t->at + i, t->out, t->error};
        if (!answer_averages(&some, k, hard)) memset(hard, 1, now);
        for (unsigned j = 0; j < now && status == CR_OK; j++)
            if (hard[j]) status = answer_slowly(&some, k, j);
    }
    return status;
}

static cr_status answer_all(const target *t) {
    cr_status status = CR_OK;
    const uint64_t floats = cr_float_enter();
    for (uint32_t k = 0; k < t->g->sums->plan->spec->op_count && status == CR_OK; k++) status = answer(t, k);
    cr_float_leave(floats);
    return status;
}

cr_status cr_pair_columns_finish(const cr_pair_sums *sums, const void *state, uint64_t output, uint64_t first,
                                 uint64_t count, void *const out[], cr_error *error) {
    const cr_partial *partials = ((const head *)state)->live ? partials_of(sums, state) : NULL;
    cr_status status = CR_OK;
    for (uint64_t done = 0; done < count && status == CR_OK;) {
        const uint64_t c = first + done;
        const group g = group_at(sums, state, c / CR_PAIR_GROUP * CR_PAIR_GROUP);
        const unsigned from = (unsigned)(c - g.begin), left = g.width - from;
        const target t = {&g,
                          partials ? partials + g.begin : NULL,
                          from,
                          count - done < left ? (unsigned)(count - done) : left,
                          output + done,
                          done,
                          out,
                          error};
        status = answer_all(&t);
        done += t.count;
    }
    return status;
}

size_t cr_pair_group_bytes(const cr_pair_sums *sums) { return group_bytes(sums, width_of(sums, 0)); }

cr_status cr_pair_group_answer(const cr_pair_sums *sums, const cr_view *block, uint64_t c, unsigned columns,
                               uint64_t output, uint64_t at, void *scratch, void *const out[], bool *lost,
                               cr_error *error) {
    const cr_axis_spec *spec = sums->plan->spec;
    const size_t size = sums->plan->size;
    const group g = {sums, c, columns, scratch};
    const lines all = {.x = block->data,
                       .y = block->second,
                       .x_line = spec->shape.inner * size,
                       .y_line = spec->second_line * size,
                       .mask = spec->mask_line != 0 ? &block->mask : NULL,
                       .first = 0,
                       .count = spec->shape.n};
    const target t = {&g, NULL, 0, columns, output, at, out, error};
    group_init(&g);
    const uint64_t floats = cr_float_enter();
    *lost = !fold_group(&g, NULL, NULL, &all, 0, columns);
    cr_float_leave(floats);
    return *lost ? CR_OK : answer_all(&t);
}
