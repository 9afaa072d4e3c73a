/* strided: see strided.h. Thread, owner: see there. */
#include "kernels/core/strided.h"

#include <stdlib.h>

static ptrdiff_t size_of(ptrdiff_t stride) { return stride < 0 ? -stride : stride; }

/* Outermost first, by falling strides; stable. */
static void sort(cr_dim *dims, int ndim) {
    for (int i = 1; i < ndim; i++) {
        cr_dim d = dims[i];
        int k = i;
        for (; k > 0 && size_of(dims[k - 1].stride) < size_of(d.stride); k--) dims[k] = dims[k - 1];
        dims[k] = d;
    }
}

/* Gives the reduced dims, or those that stay, their places in the order of their axes. */
static void restore(cr_strided_plan *plan, bool reduced) {
    cr_dim of_axis[CR_STRIDED_MAX_DIMS];
    int count = 0;
    for (int i = 0; i < plan->ndim; i++) {
        if (plan->dims[i].reduced != reduced) continue;
        int k = count++;
        for (; k > 0 && of_axis[k - 1].axis > plan->dims[i].axis; k--) of_axis[k] = of_axis[k - 1];
        of_axis[k] = plan->dims[i];
    }
    for (int i = 0, k = 0; i < plan->ndim; i++)
        if (plan->dims[i].reduced == reduced) plan->dims[i] = of_axis[k++];
}

/* Dims that are walked backwards begin at their other end, where the order does not matter. */
static void turn_round(cr_strided_plan *plan) {
    for (int i = 0; i < plan->ndim; i++) {
        cr_dim *d = &plan->dims[i];
        if (!d->reduced || d->stride >= 0) continue;
        plan->data += (d->n - 1) * d->stride;
        if (plan->mask != NULL) plan->mask += (d->n - 1) * d->mask_stride;
        d->stride = -d->stride;
        d->mask_stride = -d->mask_stride;
    }
}

/* The answers are (outer, inner) around the reduced dims, which must stand together: else they go to the end. */
static void group(cr_strided_plan *plan) {
    cr_dim moved[CR_STRIDED_MAX_DIMS];
    int changes = 0, count = 0;
    for (int i = 1; i < plan->ndim; i++) changes += plan->dims[i].reduced != plan->dims[i - 1].reduced;
    bool first_reduced = plan->ndim > 0 && plan->dims[0].reduced;
    if (changes > 2 || (changes == 2 && first_reduced)) {
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < plan->ndim; i++)
                if (plan->dims[i].reduced == (pass == 1)) moved[count++] = plan->dims[i];
        for (int i = 0; i < plan->ndim; i++) plan->dims[i] = moved[i];
    }
    plan->axis = (cr_shape){1, 1, 1};
    bool behind = false;
    for (int i = 0; i < plan->ndim; i++) {
        const cr_dim *d = &plan->dims[i];
        if (d->reduced) {
            plan->axis.n *= (uint64_t)d->n;
            behind = true;
            continue;
        }
        *(behind ? &plan->axis.inner : &plan->axis.outer) *= (uint64_t)d->n;
        if (plan->kept_count > 0 && plan->kept[plan->kept_count - 1].axis > d->axis) plan->permuted = true;
        plan->kept[plan->kept_count++] = *d;
    }
}

static bool joins(const cr_dim *outer, const cr_dim *inner, bool masked) {
    return outer->reduced == inner->reduced && outer->stride == inner->n * inner->stride &&
           (!masked || outer->mask_stride == inner->n * inner->mask_stride);
}

static void join(cr_strided_plan *plan) {
    int last = 0;
    for (int i = 1; i < plan->ndim; i++) {
        cr_dim *d = &plan->dims[last];
        if (joins(d, &plan->dims[i], plan->mask != NULL)) {
            ptrdiff_t n = d->n * plan->dims[i].n;
            *d = plan->dims[i];
            d->n = n;
        } else {
            plan->dims[++last] = plan->dims[i];
        }
    }
    if (plan->ndim > 0) plan->ndim = last + 1;
}

static bool is_contiguous(const cr_strided_plan *plan, ptrdiff_t size) {
    for (int i = plan->ndim - 1; i >= 0; i--) {
        if (plan->dims[i].stride != size) return false;
        size *= plan->dims[i].n;
    }
    return true;
}

/* No elements: only the numbers of answers matter. */
static void plan_nothing(cr_strided_plan *plan, const cr_strided *array, uint64_t axes) {
    plan->axis = (cr_shape){1, 1, 1};
    for (int i = 0; i < array->ndim; i++)
        *(axes >> i & 1 ? &plan->axis.n : &plan->axis.outer) *= (uint64_t)array->shape[i];
    plan->ndim = 0;
    plan->contiguous = true;
}

/* The array's axes as dims, in their order. *empty: there are no elements. */
static cr_status take_dims(cr_strided_plan *plan, const cr_strided *array, uint64_t axes, bool *empty,
                           cr_error *error) {
    ptrdiff_t count = 1;
    *empty = false;
    for (int i = 0; i < array->ndim; i++) {
        const ptrdiff_t n = array->shape[i];
        if (n < 0) return cr_fail(error, CR_INVALID_ARGUMENT, "shape: axis %d has %td elements", i, n);
        if (n == 0) *empty = true;
        if (!*empty && count > PTRDIFF_MAX / 8 / n)
            return cr_fail(error, CR_OUT_OF_RANGE, "the array has more than 2^60 elements");
        count *= n;
        if (n == 1) continue;
        plan->dims[plan->ndim++] = (cr_dim){n, array->strides[i], array->mask != NULL ? array->mask_strides[i] : 0, i,
                                            plan->whole || (axes >> i & 1) != 0};
    }
    plan->count = (uint64_t)count;
    return CR_OK;
}

cr_status cr_strided_plan_make(cr_strided_plan *plan, const cr_strided *array, uint64_t axes, bool whole,
                               cr_strided_order order, cr_error *error) {
    const bool ordered = order == CR_STRIDED_REDUCED || order == CR_STRIDED_BOTH;
    const bool answers = order == CR_STRIDED_ANSWERS || order == CR_STRIDED_BOTH;
    bool empty;
    plan->ndim = plan->kept_count = 0;
    plan->whole = whole;
    plan->permuted = false;
    plan->data = array->data;
    plan->mask = array->mask;
    cr_status status = take_dims(plan, array, axes, &empty, error);
    if (status != CR_OK) return status;
    if (empty) {
        plan_nothing(plan, array, axes);
        return CR_OK;
    }
    if (!(whole && ordered)) {
        sort(plan->dims, plan->ndim);
        if (answers) restore(plan, false);
        if (ordered)
            restore(plan, true);
        else
            turn_round(plan);
    }
    if (!whole) group(plan);
    join(plan);
    plan->contiguous = plan->mask == NULL && !array->swap && is_contiguous(plan, array->size);
    return CR_OK;
}

/* What lies beside the plan's elements, in the order of the plan: at *data, or copied to *own. count > most: *own is NULL, and *data too. */
static cr_status lay_out(const cr_strided_plan *plan, const cr_strided *of, uint64_t most, const void **data,
                         char **own, const char *what, cr_error *error) {
    cr_strided_plan order = *plan;
    cr_walk walk;
    order.data = plan->mask;
    order.mask = NULL;
    for (int i = 0; i < order.ndim; i++) order.dims[i].stride = order.dims[i].mask_stride;
    *own = NULL;
    *data = plan->mask;
    if (plan->count == 0 || (!of->swap && is_contiguous(&order, of->size))) return CR_OK;
    *data = NULL;
    if (plan->count > most) return CR_OK;
    *data = *own = malloc((size_t)plan->count * of->size);
    if (*own == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %s", what);
    cr_walk_begin(&walk, &order, of);
    for (char *to = *own; walk.left != 0;) to += cr_walk_next(&walk, to, (size_t)walk.left) * of->size;
    return CR_OK;
}

cr_status cr_strided_plan_part(cr_strided_plan *plan, const cr_strided *array, uint64_t most, cr_mask *mask, char **own,
                               bool *parted, cr_error *error) {
    const cr_strided of_mask = {.size = 1};
    const void *data;
    cr_status status = lay_out(plan, &of_mask, most, &data, own, "a mask", error);
    *parted = data != NULL;
    if (status != CR_OK || !*parted) return status;
    *mask = (cr_mask){.data = data, .kind = CR_MASK_BYTES, .leaves_out = !array->keeps};
    plan->mask = NULL;
    if (plan->count == 0) return CR_OK;
    join(plan);
    plan->contiguous = !array->swap && is_contiguous(plan, array->size);
    return CR_OK;
}

cr_status cr_strided_second(const cr_strided *array, const cr_strided *second, uint64_t axes, bool whole,
                            cr_strided_order order, const void **data, char **own, cr_error *error) {
    cr_strided both = *array;
    cr_strided_plan plan;
    both.mask = second->data;
    both.mask_strides = second->strides;
    *own = NULL;
    cr_status status = cr_strided_plan_make(&plan, &both, axes, whole, order, error);
    return status == CR_OK ? lay_out(&plan, second, UINT64_MAX, data, own, "the second array", error) : status;
}
