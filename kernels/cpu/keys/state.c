/* state: the states of folds by key: made, fed a block at a time, merged, freed.
 *
 * Thread: as keys.h says. Owner: keys.h. */
#include "kernels/cpu/keys/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/core/close.h"
#include "kernels/core/float_state.h"
#include "kernels/core/prod.h"
#include "kernels/cpu/fold.h"

enum { LINE = 64, HUGE_PAGE = 1 << 21, SPECIALS = 3 /* NaNs and infinities */ };

void *cr_key_array(cr_by_key *state, size_t bytes) {
    const uint64_t rows = state->cells + CR_KEYS_SPARE, most = state->most;
    const bool within = rows <= most / bytes && rows * bytes <= most - state->bytes;
    const size_t all = within ? (size_t)rows * bytes : 0, page = all >= 2 * HUGE_PAGE ? HUGE_PAGE : LINE;
    if (within && state->measures) {
        state->bytes += all;
        return NULL;
    }
    void *array = within && !state->lacking ? aligned_alloc(page, (all + page - 1) / page * page) : NULL;
    if (array == NULL) {
        state->beyond = !within;
        state->lacking = true;
        return NULL;
    }
    if (page == HUGE_PAGE) madvise(array, all, MADV_HUGEPAGE); /* a hint */
    memset(array, 0, all);
    state->bytes += all;
    return array;
}

static cr_status lacking(const cr_by_key *state, cr_error *error) {
    if (!state->beyond) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the states of all groups");
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "groups: the states of %" PRIu64 " groups of %" PRIu64 " columns would take more than %" PRIu64
                   " bytes, the limit; reduce some groups at a time (drop leaves the others out)",
                   state->keys.groups, state->keys.columns, state->most);
}

/* Whether an answer, or a partial, needs to know how many elements a cell has. */
static bool needs_count(const cr_axis_spec *spec) {
    for (uint32_t i = 0; i < spec->op_count; i++) {
        const cr_op op = spec->ops[i];
        if (cr_op_closing(op) != CR_CLOSING_SUMS && cr_op_closing(op) != CR_CLOSING_BITS) return true;
        if (cr_op_divisor(op) != CR_DIVISOR_ONE || cr_op_term(op) == CR_TERM_SPREAD) return true;
    }
    return spec->op_count == 0;
}

static void begin_extrema(cr_by_key *s) {
    const uint64_t rows = s->cells + CR_KEYS_SPARE;
    if (s->wants & CR_WANTS_MIN) s->min = cr_key_array(s, sizeof *s->min);
    if (s->wants & CR_WANTS_MAX) s->max = cr_key_array(s, sizeof *s->max);
    if (cr_dtype_kind(s->spec.dtype) == CR_KIND_FLOAT) s->first_nan = cr_key_array(s, sizeof *s->first_nan);
    for (uint64_t c = 0; s->min != NULL && c < rows; c++) s->min[c] = (cr_key_end){UINT64_MAX, UINT64_MAX};
    for (uint64_t c = 0; s->max != NULL && c < rows; c++) s->max[c] = (cr_key_end){0, UINT64_MAX};
    for (uint64_t c = 0; s->first_nan != NULL && c < rows; c++) s->first_nan[c] = UINT64_MAX;
}

static void begin(cr_by_key *s) {
    const uint64_t rows = s->cells + CR_KEYS_SPARE;
    const uint32_t families = s->spec.families;
    if (needs_count(&s->spec)) s->n = cr_key_array(s, sizeof *s->n);
    for (int at = 0; at < CR_SUMS; at++)
        if (families & cr_sum_rows[at].family) cr_key_sum_begin(s, &s->sums[at], (cr_sum_at)at);
    if (families & CR_FAM_EXTREMA) begin_extrema(s);
    if (families & CR_FAM_COUNTS) s->counts = cr_key_array(s, sizeof *s->counts);
    if (families & CR_FAM_BITS) s->bits = cr_key_array(s, sizeof *s->bits);
    if (families & CR_FAM_PROD) s->prods = cr_key_array(s, sizeof *s->prods);
    if (cr_key_ranks(&s->spec)) s->begins = cr_key_array(s, sizeof *s->begins);
    if (cr_key_ranks(&s->spec)) s->ends = cr_key_array(s, sizeof *s->ends);
    for (uint64_t c = 0; s->bits != NULL && c < rows; c++) s->bits[c].all = UINT64_MAX;
    for (uint64_t c = 0; s->prods != NULL && c < rows; c++) cr_int_prod_init(&s->prods[c]);
}

static void name(cr_by_key *s, const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants) {
    s->spec = *spec;
    s->keys = *keys;
    s->wants = wants;
    s->cells = cr_keys_answers(keys);
    s->most = (uint64_t)1 << CR_KEYS_STATE_LOG2;
}

cr_status cr_by_key_measure(const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants, uint64_t *first,
                            uint64_t *most, cr_error *error) {
    const cr_status status = cr_keys_check(keys, spec->dtype, error);
    if (status != CR_OK) return status;
    cr_by_key s = {.measures = true};
    name(&s, spec, keys, wants);
    begin(&s);
    if (s.lacking) return lacking(&s, error);
    /* Beyond that: all limbs and special values of a sum, and its digits twice over while there are more of them. */
    uint64_t more = 0;
    for (int at = 0; at < CR_SUMS; at++)
        if (s.spec.families & cr_sum_rows[at].family)
            more += sizeof(int64_t) * (s.sums[at].limbs + SPECIALS + CR_KEYS_LEVELS + CR_KEYS_LEVELS / 2);
    const uint64_t ranks = cr_key_ranks_bytes(spec, keys);
    *first = s.bytes + ranks;
    more = s.bytes + (s.cells + CR_KEYS_SPARE) * more;
    *most = (more < s.most ? more : s.most) + ranks;
    return CR_OK;
}

cr_status cr_by_key_new(const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants, cr_by_key **state,
                        cr_error *error) {
    *state = NULL;
    cr_status status = cr_keys_check(keys, spec->dtype, error);
    if (status != CR_OK) return status;
    cr_by_key *s = calloc(1, sizeof *s);
    if (s == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    name(s, spec, keys, wants);
    begin(s);
    if (s->lacking) {
        status = lacking(s, error);
        cr_by_key_free(s);
        return status;
    }
    *state = s;
    return CR_OK;
}

void cr_by_key_free(cr_by_key *s) {
    if (s == NULL) return;
    for (int at = 0; at < CR_SUMS; at++) cr_key_sum_free(&s->sums[at]);
    free(s->n);
    free(s->min);
    free(s->max);
    free(s->first_nan);
    free(s->counts);
    free(s->bits);
    free(s->prods);
    free(s->begins);
    free(s->ends);
    free(s->copy);
    free(s->ranking);
    free(s);
}

void cr_by_key_bound(cr_by_key *state, uint64_t bytes) { state->most = bytes; }

static const cr_keys_isa *current(void) {
#if defined(__x86_64__)
    const char *name = cr_cpu_isa();
    if (strcmp(name, cr_keys_avx512.name) == 0) return &cr_keys_avx512;
#if !defined(CR_NO_AVX2)
    if (strcmp(name, cr_keys_avx2.name) == 0) return &cr_keys_avx2;
#endif
#endif
    return &cr_keys_portable;
}

/* What a mask leaves out counts in no cell. */
static void leave_out(const cr_by_key *state, const cr_mask *mask, uint64_t at, cr_key_block *block) {
    const uint32_t spare = (uint32_t)state->cells;
    for (unsigned i = 0; i < block->n; i += 64) {
        const unsigned now = block->n - i < 64 ? block->n - i : 64;
        const uint64_t word = cr_mask_word(mask, at + i, now);
        for (unsigned k = 0; k < now; k++)
            block->cell[i + k] = word >> k & 1 ? block->cell[i + k] : spare + k % CR_KEYS_SPARE;
    }
}

bool cr_key_cells(const cr_by_key *state, const cr_view *view, uint64_t done, cr_key_block *block) {
    const bool within = current()->cells(state, block->at, block->n, block->cell);
    if (view->mask.kind != CR_MASK_NONE) leave_out(state, &view->mask, done, block);
    return within;
}

/* The first key outside of those of elements [at, at + n). */
static uint64_t first_outside(const cr_by_key *state, uint64_t at, unsigned n) {
    const uint64_t columns = state->keys.columns;
    uint64_t row = at / columns;
    for (const uint64_t last = (at + n - 1) / columns; row < last; row++)
        if (cr_keys_at(&state->keys, row) >= state->keys.groups) break;
    return row;
}

static cr_status fold(cr_by_key *s, const cr_view *view, uint64_t count, uint64_t at, uint64_t *outside,
                      cr_error *error) {
    const cr_keys_isa *isa = current();
    const size_t size = cr_dtype_size(s->spec.dtype);
    const size_t key_size = cr_dtype_size(s->keys.dtype);
    cr_key_block block;
    memset(&block, 0, sizeof block);
    block.size = size;
    block.key_size = s->keys.columns == 1 ? key_size : 0;
    for (uint64_t done = 0; done < count; done += block.n) {
        block.p = view->data + done * size;
        block.second = cr_second_from(view->second, done * size);
        block.n = count - done < CR_KEYS_BLOCK ? (unsigned)(count - done) : CR_KEYS_BLOCK;
        block.at = at + done;
        block.soon = (uintptr_t)block.p + CR_KEYS_AHEAD * size;
        block.soon_keys = (uintptr_t)s->keys.data + (block.at + CR_KEYS_AHEAD) / s->keys.columns * key_size;
        if (!cr_key_cells(s, view, done, &block) && !s->keys.drop) {
            *outside = first_outside(s, at + done, block.n);
            return cr_keys_outside(&s->keys, *outside, cr_keys_at(&s->keys, *outside), error);
        }
        if (s->n != NULL) isa->count(s->n, &block);
        for (int i = 0; i < CR_SUMS; i++)
            if (s->spec.families & cr_sum_rows[i].family && !s->sums[i].by_powers) isa->sum(s, &s->sums[i], &block);
        cr_key_others(s, &block);
        if (s->lacking) return lacking(s, error);
    }
    return CR_OK;
}

cr_status cr_by_key_fold(cr_by_key *state, const cr_view *view, uint64_t count, uint64_t at, uint64_t *outside,
                         cr_error *error) {
    *outside = UINT64_MAX;
    const uint64_t before = cr_float_enter();
    const cr_status status = fold(state, view, count, at, outside, error);
    cr_float_leave(before);
    return status;
}

static void merge_extrema(cr_by_key *into, const cr_by_key *from) {
    for (uint64_t c = 0; into->min != NULL && c < into->cells; c++) {
        const cr_key_end *a = &into->min[c], *b = &from->min[c];
        if (b->key < a->key || (b->key == a->key && b->index < a->index)) into->min[c] = *b;
    }
    for (uint64_t c = 0; into->max != NULL && c < into->cells; c++) {
        const cr_key_end *a = &into->max[c], *b = &from->max[c];
        if (b->key > a->key || (b->key == a->key && b->index < a->index)) into->max[c] = *b;
    }
    for (uint64_t c = 0; into->first_nan != NULL && c < into->cells; c++)
        if (from->first_nan[c] < into->first_nan[c]) into->first_nan[c] = from->first_nan[c];
}

cr_status cr_by_key_merge(cr_by_key *into, cr_by_key *from, cr_error *error) {
    for (uint64_t c = 0; into->n != NULL && c < into->cells; c++) into->n[c] += from->n[c];
    for (int i = 0; i < CR_SUMS; i++)
        if (into->spec.families & cr_sum_rows[i].family) cr_key_sum_merge(into, &into->sums[i], from, &from->sums[i]);
    merge_extrema(into, from);
    for (uint64_t c = 0; c < into->cells; c++) {
        if (into->counts != NULL) {
            into->counts[c].nans += from->counts[c].nans;
            into->counts[c].nonzero += from->counts[c].nonzero;
        }
        if (into->bits != NULL) {
            into->bits[c].all &= from->bits[c].all;
            into->bits[c].any |= from->bits[c].any;
            into->bits[c].odd ^= from->bits[c].odd;
        }
        if (into->prods != NULL) cr_int_prod_merge(&into->prods[c], &from->prods[c]);
    }
    if (from->lacking) return lacking(from, error);
    return into->lacking ? lacking(into, error) : CR_OK;
}
