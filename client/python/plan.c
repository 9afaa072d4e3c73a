/* plan: an input as an array with strides, and the plan of its walk. Thread: with the GIL, because it raises. Owner: the caller; a plan
 * points into the input's memory. */
#include "client/python/extension.h"

static bool raised(cr_status status, const cr_error *error) {
    if (status == CR_OK) return false;
    PyErr_SetString(status == CR_RESOURCE_EXHAUSTED ? PyExc_MemoryError
                    : status == CR_OUT_OF_RANGE     ? PyExc_OverflowError
                                                    : PyExc_ValueError,
                    error->text);
    return true;
}

cr_strided cr_py_plan_array(const cr_py_input *in) {
    return (cr_strided){.data = in->data,
                        .mask = in->mask.data,
                        .size = in->size,
                        .swap = in->swap,
                        .keeps = in->mask.keeps,
                        .ndim = in->ndim,
                        .shape = in->shape,
                        .strides = in->strides,
                        .mask_strides = in->mask.strides};
}

bool cr_py_plan_make(cr_py_plan *plan, const cr_py_input *in, uint64_t axes, bool whole, bool ordered) {
    cr_error error;
    const cr_strided array = cr_py_plan_array(in);
    const cr_strided_order order = ordered ? CR_STRIDED_REDUCED : CR_STRIDED_FREE;
    return !raised(cr_strided_plan_make(plan, &array, axes, whole, order, &error), &error);
}

bool cr_py_plan_part(cr_py_plan *plan, const cr_py_input *in, uint64_t most, cr_py_marks *marks) {
    cr_error error;
    cr_mask mask;
    const cr_strided array = cr_py_plan_array(in);
    if (raised(cr_strided_plan_part(plan, &array, most, &mask, &marks->own, &marks->parted, &error), &error))
        return false;
    if (marks->parted) marks->mask = (cured_mask){mask.data, plan->count, 0, CURED_MASK_BYTES, mask.leaves_out};
    return true;
}
