/* state: the state of a block that comes in pieces: strips, then one partial per column for what strips do not hold, then
 * products of floats; or of pairs, sums of their terms (pairs/sums.h). A block of one column, a row, has one partial for everything.
 *
 * Thread: any; the caller owns every buffer. */
#include <string.h>

#include "kernels/core/float_state.h"
#include "kernels/cpu/columns/prod.h"
#include "kernels/cpu/columns/range.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/pairs/sums.h"

/* What a state consists of, and where it begins. */
typedef struct layout {
    cr_axis_plan plan;
    cr_ops prod_ops; /* those that are products of floats, of columns */
    cr_prods prods;
    size_t partials_at, prods_at, bytes;
} layout;

/* A row in pieces. A product of floats is folded in whole blocks of its tree: what is left over waits here. */
typedef struct row {
    cr_partial partial;
    uint8_t rest[];
} row;

static uint64_t grain_of(const cr_axis_spec *spec) { return cr_partial_grain(spec->dtype, spec->families); }

bool cr_axis_in_order(const cr_axis_spec *spec) { return grain_of(spec) > 1; }

static layout layout_of(const cr_axis_spec *spec) {
    layout a = {.prod_ops = 0};
    cr_axis_plan *plan = &a.plan;
    cr_axis_plan_make(plan, spec);
    if (cr_axis_in_order(spec)) {
        plan->generic = 0;
        for (uint32_t k = 0; k < spec->op_count; k++) {
            if (!cr_ops_has(plan->generic_ops, spec->ops[k])) continue;
            uint32_t needs = cr_op_needs(spec->ops[k], spec->dtype);
            if (needs & CR_FAM_PROD)
                a.prod_ops |= cr_ops_of(spec->ops[k]);
            else
                plan->generic |= needs;
        }
        plan->generic_ops &= ~a.prod_ops;
        a.prods = cr_prods_layout(spec);
    }
    if (plan->strip_ops) a.partials_at = (size_t)plan->strips * plan->strip_bytes;
    a.prods_at = a.partials_at + (plan->generic_ops ? (size_t)spec->shape.inner * sizeof(cr_partial) : 0);
    a.bytes = a.prods_at + (a.prod_ops ? cr_prods_bytes(&a.prods) : 0);
    return a;
}

static cr_partial *partials_of(const layout *a, const void *state) {
    return (cr_partial *)(void *)((uint8_t *)(uintptr_t)state + a->partials_at);
}
static void *prods_of(const layout *a, const void *state) { return (uint8_t *)(uintptr_t)state + a->prods_at; }

size_t cr_columns_bytes(const cr_axis_spec *spec) {
    if (cr_axis_has_rows(spec))
        return sizeof(row) + (cr_axis_in_order(spec) ? grain_of(spec) * cr_dtype_size(spec->dtype) : 0);
    const layout a = layout_of(spec);
    cr_pair_sums sums;
    return cr_pair_sums_make(&sums, &a.plan) ? cr_pair_columns_bytes(&sums) : a.bytes;
}

void cr_columns_init(const cr_axis_spec *spec, void *state) {
    if (cr_axis_has_rows(spec)) {
        cr_partial_init(&((row *)state)->partial, spec->dtype, spec->families);
        return;
    }
    layout a = layout_of(spec);
    cr_pair_sums sums;
    if (cr_pair_sums_make(&sums, &a.plan)) {
        cr_pair_columns_init(&sums, state);
        return;
    }
    for (uint64_t i = 0; a.plan.strip_ops && i < a.plan.strips; i++)
        cr_strip_init(&a.plan, cr_strip_at(&a.plan, state, i));
    cr_partial *p = partials_of(&a, state);
    for (uint64_t i = 0; a.plan.generic_ops && i < spec->shape.inner; i++)
        cr_partial_init(&p[i], spec->dtype, a.plan.generic);
    if (a.prod_ops) cr_prods_init(&a.prods, prods_of(&a, state));
}

/* Of a product: whole blocks of its tree from where they lie, cut ones by way of r->rest. The view's mask begins where the row does. */
static void row_fold(const cr_axis_spec *spec, row *r, const cr_view *view, uint64_t count, uint64_t at) {
    const uint64_t grain = grain_of(spec), size = cr_dtype_size(spec->dtype);
    const uint8_t *data = view->data;
    while (count) {
        const uint64_t held = at % grain;
        uint64_t now = grain - held < count ? grain - held : count;
        const bool ends = at + now == spec->shape.n;
        if (!held && (ends || now == grain)) {
            now = at + count == spec->shape.n ? count : count / grain * grain;
            const cr_view here = {data, cr_mask_from(view->mask, at), cr_second_from(view->second, at * size)};
            cr_cpu_fold_view(&r->partial, &here, now, at);
        } else {
            memcpy(r->rest + held * size, data, now * size);
            const cr_view here = {.data = r->rest, .mask = cr_mask_from(view->mask, at - held)}; /* of one array */
            if (ends || held + now == grain) cr_cpu_fold_view(&r->partial, &here, held + now, at - held);
        }
        data += now * size;
        at += now;
        count -= now;
    }
}

/* Products of floats of columns; what a mask leaves out is a one. */
static void prods_fold(const layout *a, void *state, const cr_view *view, uint64_t count, uint64_t at) {
    enum { SOME = 2048 };
    const cr_axis_spec *spec = a->plan.spec;
    const size_t size = a->plan.size;
    const cr_axis_isa *isa = cr_axis_current();
    if (spec->mask_line == 0) {
        cr_prods_fold(&a->prods, isa, prods_of(a, state), view->data, count, at);
        return;
    }
    uint8_t kept[SOME], filled[SOME * sizeof(double)];
    const uint64_t inner = spec->shape.inner, one = cr_dtype_one(spec->dtype);
    for (uint64_t done = 0, now; done < count; done += now) {
        const uint64_t line = (at + done) / inner, column = (at + done) % inner;
        now = count - done < SOME ? count - done : SOME;
        if (spec->mask_line != inner && inner - column < now) now = inner - column;
        isa->keep(kept, &view->mask, line * spec->mask_line + column, now);
        isa->hide(filled, view->data + done * size, kept, now, size, one, 0);
        cr_prods_fold(&a->prods, isa, prods_of(a, state), filled, now, at + done);
    }
}

void cr_cpu_columns_fold_view(const cr_axis_spec *spec, void *state, const cr_view *view, uint64_t count, uint64_t at) {
    if (count == 0) return;
    if (cr_axis_has_rows(spec)) {
        row_fold(spec, state, view, count, at);
        return;
    }
    layout a = layout_of(spec);
    cr_pair_sums sums;
    if (cr_pair_sums_make(&sums, &a.plan)) {
        cr_pair_columns_fold(&sums, state, view, count, at);
        return;
    }
    if (a.plan.generic_ops) cr_axis_generic_fold(&a.plan, partials_of(&a, state), view, count, at);
    const uint64_t state_of_floats = cr_float_enter();
    if (a.plan.strip_ops)
        cr_columns_fold_range(&a.plan, cr_axis_current(), state, (cr_columns_range){0, a.plan.width}, view->data,
                              &view->mask, count, at);
    if (a.prod_ops) prods_fold(&a, state, view, count, at);
    cr_float_leave(state_of_floats);
}

void cr_columns_merge(const cr_axis_spec *spec, void *into, const void *from) {
    if (cr_axis_has_rows(spec)) {
        cr_partial_merge(&((row *)into)->partial, &((const row *)from)->partial);
        return;
    }
    layout a = layout_of(spec);
    cr_pair_sums sums;
    if (cr_pair_sums_make(&sums, &a.plan)) {
        cr_pair_columns_merge(&sums, into, from);
        return;
    }
    for (uint64_t i = 0; a.plan.strip_ops && i < a.plan.strips; i++)
        cr_strip_merge(&a.plan, cr_strip_at(&a.plan, into, i), cr_strip_at(&a.plan, (void *)(uintptr_t)from, i));
    cr_partial *p = partials_of(&a, into);
    const cr_partial *q = partials_of(&a, from);
    for (uint64_t i = 0; a.plan.generic_ops && i < spec->shape.inner; i++) cr_partial_merge(&p[i], &q[i]);
}

static cr_status row_finish(const cr_axis_spec *spec, const row *r, uint64_t output, void *const out[],
                            cr_error *error) {
    for (uint32_t k = 0; k < spec->op_count; k++) {
        cr_status status = cr_axis_store_or(&r->partial, spec->ops[k], &spec->finish, output, out[k],
                                            cr_axis_status_at(spec, out, k, 0), error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

cr_status cr_columns_finish(const cr_axis_spec *spec, const void *state, uint64_t output, uint64_t first,
                            uint64_t count, void *const out[], cr_error *error) {
    if (cr_axis_has_rows(spec)) return row_finish(spec, state, output, out, error);
    layout a = layout_of(spec);
    cr_pair_sums sums;
    if (cr_pair_sums_make(&sums, &a.plan))
        return cr_pair_columns_finish(&sums, state, output, first, count, out, error);
    const cr_partial *p = partials_of(&a, state);
    for (uint64_t i = 0; i < count && (a.plan.generic_ops || a.prod_ops); i++) {
        cr_status status = CR_OK;
        if (a.plan.generic_ops)
            status = cr_axis_store_ops(&a.plan, a.plan.generic_ops, &p[first + i], output + i, i, out, error);
        if (status == CR_OK && a.prod_ops) {
            cr_partial prod;
            cr_prods_column(&a.prods, prods_of(&a, state), first + i, &prod);
            status = cr_axis_store_ops(&a.plan, a.prod_ops, &prod, output + i, i, out, error);
        }
        if (status != CR_OK) return status;
    }
    if (!a.plan.strip_ops) return CR_OK;
    const uint64_t state_of_floats = cr_float_enter();
    cr_status status = cr_columns_finish_range(&a.plan, cr_axis_current(), state, (cr_columns_range){0, a.plan.width},
                                               first, count, output, out, 0, error);
    cr_float_leave(state_of_floats);
    return status;
}

void cr_columns_partial(const cr_axis_spec *spec, const void *state, uint64_t column, cr_partial *p) {
    if (cr_axis_has_rows(spec)) {
        *p = ((const row *)state)->partial;
        return;
    }
    const layout a = layout_of(spec);
    cr_partial_init(p, spec->dtype, spec->families);
    for (uint64_t c = column; c < a.plan.width;
         c += spec->shape.inner) { /* of a narrow array several columns of strips */
        cr_partial one;
        const cr_strip *strip = cr_strip_at(&a.plan, (void *)(uintptr_t)state, c / CR_STRIP);
        cr_strip_partial(&a.plan, strip, (unsigned)(c % CR_STRIP), spec->families, &one);
        cr_partial_merge(p, &one);
    }
}

bool cr_columns_sums(const cr_axis_spec *spec, const void *state, uint64_t first, unsigned count,
                     struct cr_row_sums *sums) {
    if (cr_axis_has_rows(spec)) return false;
    const layout a = layout_of(spec);
    const bool narrow = a.plan.width != spec->shape.inner;
    cr_columns_room room;
    const cr_strip *strip = narrow ? cr_columns_narrow(&room, &a.plan, state, first, count)
                                   : cr_strip_at(&a.plan, (void *)(uintptr_t)state, first / CR_STRIP);
    if (strip->sums[CR_AT_SUM].special) return false;
    cr_axis_current()->column_sums(narrow ? &room.plan : &a.plan, strip, CR_AT_SUM,
                                   narrow ? 0 : (unsigned)(first % CR_STRIP), count, sums);
    return true;
}
