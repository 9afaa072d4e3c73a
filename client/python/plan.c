/* plan: in which order an array's memory is walked. The axes are sorted by their strides, so that memory is read as it lies
 * whatever the array's order is, and axes that follow each other without a gap become one. Where the answer depends on the
 * order of the elements (first indices, products of floats), reduced axes keep their order.
 *
 * Thread: with the GIL, because it raises. Owner: the caller; a plan points into the input's memory. */
#include "client/python/extension.h"

static Py_ssize_t size_of(Py_ssize_t stride) { return stride < 0 ? -stride : stride; }

/* Outermost first, by falling strides; stable. */
static void sort(cr_py_dim *dims, int ndim) {
    for (int i = 1; i < ndim; i++) {
        cr_py_dim d = dims[i];
        int k = i;
        for (; k > 0 && size_of(dims[k - 1].stride) < size_of(d.stride); k--) dims[k] = dims[k - 1];
        dims[k] = d;
    }
}

/* Gives the reduced dims their places in the order of their axes. */
static void restore_reduced(cr_py_plan *plan) {
    cr_py_dim reduced[CR_PY_MAX_DIMS];
    int count = 0;
    for (int i = 0; i < plan->ndim; i++) {
        if (!plan->dims[i].reduced) continue;
        int k = count++;
        for (; k > 0 && reduced[k - 1].axis > plan->dims[i].axis; k--) reduced[k] = reduced[k - 1];
        reduced[k] = plan->dims[i];
    }
    for (int i = 0, k = 0; i < plan->ndim; i++)
        if (plan->dims[i].reduced) plan->dims[i] = reduced[k++];
}

/* Dims that are walked backwards begin at their other end, where the order does not matter. */
static void turn_round(cr_py_plan *plan) {
    for (int i = 0; i < plan->ndim; i++) {
        cr_py_dim *d = &plan->dims[i];
        if (!d->reduced || d->stride >= 0) continue;
        plan->data += (d->n - 1) * d->stride;
        if (plan->mask != NULL) plan->mask += (d->n - 1) * d->mask_stride;
        d->stride = -d->stride;
        d->mask_stride = -d->mask_stride;
    }
}

/* The answers are (outer, inner) around the reduced dims, which must stand together: else they go to the end. */
static void group(cr_py_plan *plan) {
    cr_py_dim moved[CR_PY_MAX_DIMS];
    int changes = 0, count = 0;
    for (int i = 1; i < plan->ndim; i++) changes += plan->dims[i].reduced != plan->dims[i - 1].reduced;
    bool first_reduced = plan->ndim > 0 && plan->dims[0].reduced;
    if (changes > 2 || (changes == 2 && first_reduced)) {
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < plan->ndim; i++)
                if (plan->dims[i].reduced == (pass == 1)) moved[count++] = plan->dims[i];
        for (int i = 0; i < plan->ndim; i++) plan->dims[i] = moved[i];
    }
    plan->axis = (cured_axis){1, 1, 1};
    bool behind = false;
    for (int i = 0; i < plan->ndim; i++) {
        const cr_py_dim *d = &plan->dims[i];
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

static bool joins(const cr_py_dim *outer, const cr_py_dim *inner, bool masked) {
    return outer->reduced == inner->reduced && outer->stride == inner->n * inner->stride &&
           (!masked || outer->mask_stride == inner->n * inner->mask_stride);
}

static void join(cr_py_plan *plan) {
    int last = 0;
    for (int i = 1; i < plan->ndim; i++) {
        cr_py_dim *d = &plan->dims[last];
        if (joins(d, &plan->dims[i], plan->mask != NULL)) {
            Py_ssize_t n = d->n * plan->dims[i].n;
            *d = plan->dims[i];
            d->n = n;
        } else {
            plan->dims[++last] = plan->dims[i];
        }
    }
    if (plan->ndim > 0) plan->ndim = last + 1;
}

static bool is_contiguous(const cr_py_plan *plan, Py_ssize_t size) {
    for (int i = plan->ndim - 1; i >= 0; i--) {
        if (plan->dims[i].stride != size) return false;
        size *= plan->dims[i].n;
    }
    return true;
}

/* No elements: only the numbers of answers matter. */
static void plan_nothing(cr_py_plan *plan, const cr_py_input *in, uint64_t axes) {
    plan->axis = (cured_axis){1, 1, 1};
    for (int i = 0; i < in->ndim; i++) *(axes >> i & 1 ? &plan->axis.n : &plan->axis.outer) *= (uint64_t)in->shape[i];
    plan->ndim = 0;
    plan->contiguous = true;
}

bool cr_py_plan_make(cr_py_plan *plan, const cr_py_input *in, uint64_t axes, bool whole, bool ordered) {
    bool empty = false;
    Py_ssize_t count = 1;
    plan->ndim = plan->kept_count = 0;
    plan->whole = whole;
    plan->permuted = false;
    plan->data = in->data;
    plan->mask = in->mask.data;
    for (int i = 0; i < in->ndim; i++) {
        Py_ssize_t n = in->shape[i];
        if (n < 0) {
            PyErr_Format(PyExc_ValueError, "shape: axis %d has %zd elements", i, n);
            return false;
        }
        if (n == 0) empty = true;
        if (!empty && (count > PY_SSIZE_T_MAX / 8 / n)) {
            PyErr_SetString(PyExc_OverflowError, "the array has more than 2^60 elements");
            return false;
        }
        count *= n;
        if (n == 1) continue;
        plan->dims[plan->ndim++] = (cr_py_dim){n, in->strides[i], in->mask.data != NULL ? in->mask.strides[i] : 0, i,
                                               whole || (axes >> i & 1) != 0};
    }
    plan->count = (uint64_t)count;
    if (empty) {
        plan_nothing(plan, in, axes);
        return true;
    }
    if (!(whole && ordered)) {
        sort(plan->dims, plan->ndim);
        if (ordered)
            restore_reduced(plan);
        else
            turn_round(plan);
    }
    if (!whole) group(plan);
    join(plan);
    plan->contiguous = plan->mask == NULL && !in->swap && is_contiguous(plan, in->size);
    return true;
}

bool cr_py_plan_part(cr_py_plan *plan, const cr_py_input *in, uint64_t most, cr_py_marks *marks) {
    const cr_py_input of_mask = {.size = 1};
    cr_py_plan order = *plan;
    order.data = plan->mask;
    order.mask = NULL;
    for (int i = 0; i < order.ndim; i++) order.dims[i].stride = order.dims[i].mask_stride;
    marks->own = NULL;
    marks->parted = true;
    if (plan->count != 0 && !is_contiguous(&order, 1)) {
        cr_py_walk walk;
        marks->parted = plan->count <= most;
        if (!marks->parted) return true;
        marks->own = PyMem_Malloc((size_t)plan->count);
        if (marks->own == NULL) {
            PyErr_NoMemory();
            return false;
        }
        cr_py_walk_begin(&walk, &order, &of_mask);
        for (char *to = marks->own; walk.left != 0;) to += cr_py_walk_next(&walk, to, (size_t)walk.left);
    }
    marks->mask =
        (cured_mask){marks->own != NULL ? marks->own : plan->mask, plan->count, 0, CURED_MASK_BYTES, !in->mask.keeps};
    plan->mask = NULL;
    if (plan->count == 0) return true;
    join(plan);
    plan->contiguous = !in->swap && is_contiguous(plan, in->size);
    return true;
}
