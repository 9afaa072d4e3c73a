/* folds: see folds.h. Thread, owner: see there. */
#include "client/lib/cuda/folds.h"

#include <stddef.h>
#include <stdlib.h>

#include "kernels/core/widen.h"

_Static_assert(sizeof(cr_caller_array) == sizeof(cured_cuda_array) &&
                   offsetof(cr_caller_array, data) == offsetof(cured_cuda_array, data) &&
                   offsetof(cr_caller_array, n) == offsetof(cured_cuda_array, count) &&
                   offsetof(cr_caller_array, dtype) == offsetof(cured_cuda_array, dtype),
               "what a program lists is what the library reads");

static const cr_caller_array *arrays_of(const cr_cl_cuda_ask *ask) {
    return (const cr_caller_array *)(const void *)ask->of->arrays;
}

static cr_status start(cr_cl_cuda_folds *folds, const cr_cl_cuda_ask *ask, cr_dtype dtype,
                       const cr_caller_array *arrays, size_t count, cr_error *error) {
    const cr_caller_fold fold = {dtype,      folds->families, folds->wants, arrays,     count,
                                 ask->first, ask->of->stream, ask->mask,    ask->second};
    const cr_status status = folds->api->start(&fold, &folds->calls[folds->count], error);
    folds->count += status == CR_OK;
    return status;
}

/* A call a type, of all arrays of it. */
static cr_status start_types(cr_cl_cuda_folds *folds, const cr_cl_cuda_ask *ask, cr_error *error) {
    const cr_caller_array *arrays = arrays_of(ask);
    const size_t all = ask->of->array_count;
    cr_status status = CR_OK;
    cr_caller_array *own = calloc(all, sizeof *own);
    if (own == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "arrays: no memory for so many");
    for (unsigned dtype = 1; dtype <= CR_DTYPE_INPUTS && status == CR_OK; dtype++) {
        size_t count = 0;
        for (size_t i = 0; i < all; i++)
            if (arrays[i].dtype == dtype) own[count++] = arrays[i];
        if (count != 0) status = start(folds, ask, (cr_dtype)dtype, own, count, error);
    }
    free(own);
    return status;
}

static cr_status meet(cr_partial *whole, cr_partial *part, cr_error *error) {
    const cr_status status = cr_partial_widen(part, (cr_dtype)whole->dtype, error);
    if (status == CR_OK) cr_partial_merge(whole, part);
    return status;
}

static void found(void *user, size_t number, const cr_partial *partial) {
    cr_partial part = *partial;
    cr_error ignored; /* what is not widened was refused before */
    (void)number;
    meet(user, &part, &ignored);
}

static void begin(const cr_cl_cuda_folds *folds, cr_partial *whole) {
    cr_partial_init(whole, folds->dtype, folds->families);
    if (folds->wants) cr_partial_want(whole, folds->wants);
}

/* Each array by itself, at its place. */
static cr_status fold_in_order(cr_cl_cuda_folds *folds, const cr_cl_cuda_ask *ask, cr_error *error) {
    const cr_caller_array *arrays = arrays_of(ask);
    uint64_t index = ask->first;
    size_t count = 0;
    cr_gpu_fold *list = calloc(ask->of->array_count, sizeof *list);
    folds->whole = malloc(sizeof *folds->whole);
    if (list == NULL || folds->whole == NULL) {
        free(list);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "arrays: no memory for so many");
    }
    for (size_t i = 0; i < ask->of->array_count; i++) {
        if (arrays[i].n != 0)
            list[count++] = (cr_gpu_fold){
                (cr_dtype)arrays[i].dtype, folds->families, arrays[i].data, arrays[i].n, index, folds->wants};
        index += arrays[i].n;
    }
    begin(folds, folds->whole);
    const cr_caller_told told = {found, NULL, folds->whole};
    const cr_status status = count != 0 ? folds->api->each(list, count, ask->of->stream, &told, error) : CR_OK;
    free(list);
    return status;
}

cr_status cr_cl_cuda_folds_start(cr_cl_cuda_folds *folds, const cr_cl_cuda_ask *ask, cr_error *error) {
    cr_status status;
    *folds = (cr_cl_cuda_folds){ask->api, ask->dtype, ask->needs.families, ask->needs.wants, 0, {NULL}, NULL};
    if (!ask->mixed)
        status = start(folds, ask, ask->dtype, arrays_of(ask), ask->of->array_count, error);
    else
        status = ask->by_place ? fold_in_order(folds, ask, error) : start_types(folds, ask, error);
    cr_error ignored;
    if (status != CR_OK) cr_cl_cuda_folds_finish(folds, NULL, &ignored);
    return status;
}

bool cr_cl_cuda_folds_done(const cr_cl_cuda_folds *folds) {
    for (uint32_t i = 0; i < folds->count; i++)
        if (!folds->api->done(folds->calls[i])) return false;
    return true;
}

cr_status cr_cl_cuda_folds_finish(cr_cl_cuda_folds *folds, cr_partial *partial, cr_error *error) {
    cr_status status = CR_OK;
    const bool alone = folds->count == 1;
    cr_partial part;
    if (partial != NULL && folds->whole != NULL)
        *partial = *folds->whole;
    else if (partial != NULL && !alone)
        begin(folds, partial);
    for (uint32_t i = 0; i < folds->count; i++) {
        cr_partial *to = status != CR_OK || partial == NULL ? NULL : alone ? partial : &part;
        const cr_status own = folds->api->finish(folds->calls[i], to, status == CR_OK ? error : NULL);
        if (status == CR_OK) status = own;
        if (status == CR_OK && to == &part) status = meet(partial, &part, error);
    }
    free(folds->whole);
    return status;
}
