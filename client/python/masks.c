/* masks: the mask of a request: beside its array, or slice by slice (slices.c). Thread: with the GIL. Owner: the request owns the marks. */
#include <stdlib.h>

#include "client/python/extension.h"

enum { COPIED_MASK_BYTES = 32 << 20, SENT_MASK_BYTES = 256 << 20 };

bool cr_py_request_in_slices(const cr_py_request *r) {
    return (r->plan.mask != NULL && r->offsets == NULL && r->second == NULL) || r->initial != NULL;
}

bool cr_py_request_part_mask(cr_py_request *r) {
    if (r->plan.mask == NULL || r->initial != NULL || r->input.kind != CR_PY_HOST) return true;
    const bool must = r->offsets != NULL || r->keys != NULL || r->second != NULL || cr_py_wants_order(r) ||
                      cr_py_request_has_float_prod(r);
    const uint64_t most = must ? UINT64_MAX : COPIED_MASK_BYTES; /* copied with the GIL */
    if (!cr_py_plan_part(&r->plan, &r->input, most, &r->marks)) return false;
    if (r->marks.parted) r->options.mask = &r->marks.mask;
    return true;
}

bool cr_py_request_part_file(cr_py_request *r) {
    if (r->input.mask.data == NULL) return true;
    free(r->marks.own);
    r->options.mask = &r->marks.mask;
    return cr_py_plan_part(&r->plan, &r->input, UINT64_MAX, &r->marks);
}

bool cr_py_request_masks_beside(const cr_py_request *r, const cr_py_link *link) {
    return link->local || r->second != NULL || r->plan.count <= SENT_MASK_BYTES || cr_py_request_has_float_prod(r);
}
