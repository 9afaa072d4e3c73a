/* rows: sums of pairs over many short rows at a time (sums.h). Thread: any. Owner: the caller owns every buffer. */
#include <string.h>

#include "kernels/core/float_state.h"
#include "kernels/cpu/pairs/sums.h"
#include "kernels/cpu/rows/rows.h"

/* One sum of a batch of rows, and what its last batch has taught. */
typedef struct row_sum {
    cr_axis_spec spec;
    cr_axis_plan plan;
    uint32_t top, misses;
    bool strange;
} row_sum;

/* All sums have rows, strip and tile in turn. */
typedef struct scratch_of_rows {
    row_sum sum[CR_PAIR_SUMS];
    cr_rows rows;
    cr_row_sums parts[2]; /* of averages: products, weights */
    cr_strip strip;       /* its head: sums of rows lie elsewhere */
    uint8_t *tile, *kept;
} scratch_of_rows;

static uint64_t longest(const cr_pair_sums *sums) {
    uint64_t most = 0;
    for (unsigned i = 0; i < sums->count; i++)
        if (sums->sum[i].runs * sums->sum[i].size > most) most = sums->sum[i].runs * sums->sum[i].size;
    return most;
}

unsigned cr_pair_rows_at_once(const cr_pair_sums *sums) {
    const cr_axis_spec *spec = sums->plan->spec;
    /* Longer rows are as quick by the folds of arrays; those of float64s, which have more terms, from a quarter of that on. */
    const uint64_t most = (sums->exact ? CR_ROW_BYTES : CR_ROW_BYTES / 4) / longest(sums);
    if (!cr_axis_has_rows(spec) || spec->shape.n > most) return 0;
    const unsigned most_rows = cr_rows_at_once(spec->shape.n * longest(sums));
    return spec->shape.outer < most_rows ? (unsigned)spec->shape.outer : most_rows;
}

static size_t tile_bytes(const cr_pair_sums *sums) {
    return cr_lined(cr_pair_rows_at_once(sums) * (size_t)sums->plan->spec->shape.n * longest(sums));
}

size_t cr_pair_rows_bytes(const cr_pair_sums *sums) {
    const size_t kept = cr_pair_rows_at_once(sums) * (size_t)sums->plan->spec->shape.n;
    return cr_lined(sizeof(scratch_of_rows)) + tile_bytes(sums) + kept;
}

void cr_pair_rows_init(const cr_pair_sums *sums, void *scratch) {
    scratch_of_rows *own = scratch;
    own->tile = (uint8_t *)scratch + cr_lined(sizeof *own);
    own->kept = own->tile + tile_bytes(sums);
    own->rows.strip = &own->strip;
    own->rows.data = own->tile;
    own->rows.borders = NULL;
    for (unsigned i = 0; i < sums->count; i++) {
        row_sum *sum = &own->sum[i];
        sum->spec = sums->sum[i].spec;
        sum->spec.shape.n *= sums->sum[i].runs;
        cr_axis_plan_make(&sum->plan, &sum->spec);
        cr_axis_plan_strips(&sum->plan, CR_ROWS);
        sum->top = sum->misses = 0;
        sum->strange = false;
    }
}

/* The terms of count rows, row after row. hard: of rows whose terms lost bits. */
static void make_terms(const cr_pair_sums *sums, const cr_pair_sum *sum, const cr_view *view, const uint8_t *kept,
                       unsigned count, uint8_t *tile, uint8_t *hard) {
    const cr_axis_isa *isa = cr_axis_current();
    const cr_dtype dtype = sums->plan->dtype;
    const size_t n = (size_t)sums->plan->spec->shape.n, apart = n * sum->size, size = sums->plan->size;
    if (sum->runs == 1) { /* nothing is lost */
        isa->terms(tile, apart, view->data, view->second, kept, count * n, dtype, sum->at);
        return;
    }
    for (unsigned i = 0; i < count; i++, tile += sum->runs * apart)
        if (!isa->terms(tile, apart, view->data + i * n * size, view->second + i * n * size, kept ? kept + i * n : NULL,
                        n, dtype, sum->at))
            hard[i] = 1;
}

/* The tile's rows, to own->rows. */
static void fold(scratch_of_rows *own, row_sum *sum, unsigned count) {
    cr_row_sums *sums = &own->rows.sums[CR_AT_SUM];
    cr_strip_init(&sum->plan, own->rows.strip);
    sums->top = sum->top;
    sums->misses = sum->misses;
    sums->strange = sum->strange;
    cr_axis_current()->rows(&sum->plan, &own->rows, own->tile, count, sum->spec.shape.n);
    sum->top = sums->top;
    sum->misses = sums->misses;
    sum->strange = sums->strange;
}

/* An average of integers that float64s hold; false: they do not, or there is nothing to divide by. */
static bool average_ints(const cr_row_sums *products, const cr_row_sums *weights, unsigned i, double *answer) {
    const int64_t most = (int64_t)1 << 53, a = (int64_t)products->low[i], b = (int64_t)weights->low[i];
    if (products->high[i] != a >> 63 || weights->high[i] != b >> 63 || b == 0) return false;
    if (a > most || a < -most || b > most || b < -most) return false;
    *answer = a == 0 ? 0 : (double)a / (double)b; /* there is no -0 */
    return true;
}

static void answer_averages(const cr_pair_sums *sums, const scratch_of_rows *own, unsigned count, uint8_t *to,
                            uint8_t *hard) {
    const cr_row_sums *of[2] = {&own->parts[0], &own->parts[1]};
    if (cr_dtype_kind(sums->plan->dtype) != CR_KIND_FLOAT) {
        for (unsigned i = 0; i < count; i++) {
            double answer;
            if (average_ints(of[0], of[1], i, &answer))
                memcpy(to + i * sizeof answer, &answer, sizeof answer);
            else
                hard[i] = 1;
        }
        return;
    }
    uint8_t doubtful[CR_ROWS];
    cr_axis_current()->round_averages(of[0], of[1], count, to, doubtful);
    for (unsigned i = 0; i < count; i++) {
        hard[i] |= doubtful[i];
        for (unsigned k = 0; k < 2; k++)
            if (of[k]->special) hard[i] |= (of[k]->nans[i] | of[k]->pinfs[i] | of[k]->ninfs[i]) != 0;
    }
}

void cr_pair_rows_answer_all(const cr_pair_sums *sums, const cr_view *view, unsigned count, uint64_t output,
                             uint64_t at, void *scratch, void *const out[], uint8_t *hard) {
    const cr_axis_spec *spec = sums->plan->spec;
    const cr_axis_isa *isa = cr_axis_current();
    scratch_of_rows *own = scratch;
    const uint8_t *kept = NULL;
    cr_error why; /* dropped: it would name the op of the terms */
    const uint64_t floats = cr_float_enter();
    memset(hard, 0, count);
    if (spec->mask_line != 0) {
        isa->keep(own->kept, &view->mask, 0, count * (size_t)spec->shape.n);
        kept = own->kept;
    }
    for (unsigned i = 0; i < sums->count; i++) {
        row_sum *sum = &own->sum[i];
        make_terms(sums, &sums->sum[i], view, kept, count, own->tile, hard);
        fold(own, sum, count);
        if (sums->sum[i].at == CR_AT_DOT) own->parts[0] = own->rows.sums[CR_AT_SUM];
        if (sums->sum[i].at == CR_AT_WEIGHTS) own->parts[1] = own->rows.sums[CR_AT_SUM];
        for (uint32_t k = 0; k < spec->op_count; k++) {
            void *to[CR_AXIS_PLACES] = {out[k], spec->statuses ? out[spec->op_count + k] : NULL};
            if (cr_pair_sum_of(sums, spec->ops[k]) != &sums->sum[i]) continue;
            if (cr_rows_finish(&sum->plan, isa, &own->rows, count, output, to, at, &why) != CR_OK)
                memset(hard, 1, count);
        }
    }
    for (uint32_t k = 0; k < spec->op_count; k++) {
        if (cr_pair_sum_of(sums, spec->ops[k]) != NULL) continue;
        if (cr_pair_is_average(spec->ops[k]) && cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish) == CR_F64)
            answer_averages(sums, own, count, (uint8_t *)out[k] + at * sizeof(double), hard);
        else
            memset(hard, 1, count);
    }
    cr_float_leave(floats);
}
