/* partials: a partial of each of many arrays of device memory, by one wait.
 *
 * Thread: any. Owner: a call owns what it packs partials in; its caller copies them from there. */
#include <stdlib.h>

#include "client/lib/cuda/ask.h"
#include "client/lib/error.h"
#include "kernels/core/serial.h"

typedef struct partials {
    cured_cuda_found *found;
    void *user;
    uint64_t first; /* or CR_UNPLACED */
    cr_error *error;
    cr_share share; /* of the array that is looked at */
    uint8_t packed[CR_SERIAL_MAX_BYTES];
} partials;

static void pack(void *user, size_t number, const cr_partial *partial) {
    partials *p = user;
    if (p->error->code != CR_OK || cr_share_make(&p->share, partial, p->first, p->error) != CR_OK) return;
    p->found(p->user, number, p->packed, cr_share_pack(&p->share, p->packed, sizeof p->packed));
}

static cr_status fold_each(const cr_cl_cuda_ask *ask, cr_gpu_fold *folds, partials *p, cr_error *error) {
    const cured_cuda_ask *of = ask->of;
    for (size_t i = 0; i < of->array_count; i++) {
        const cr_dtype dtype = (cr_dtype)of->arrays[i].dtype;
        cr_needs needs;
        const cr_status status = cr_cl_cuda_needs(ask, dtype, &needs, error);
        if (status != CR_OK) return status;
        folds[i] = (cr_gpu_fold){dtype, needs.families, of->arrays[i].data, of->arrays[i].count, ask->first, 0};
    }
    return ask->api->each(folds, of->array_count, of->stream, pack, p, error);
}

cured_status cured_cuda_partial_each(const cured_cuda_ask *of, cured_cuda_found *found, void *user,
                                     cured_error *error) {
    cr_error e = {CR_OK, ""}, packing = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    if (cr_cl_cuda_take(&ask, of, CR_CUDA_PARTIAL_EACH, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    partials *p = malloc(sizeof *p);
    cr_gpu_fold *folds = of->array_count <= SIZE_MAX / sizeof *folds ? malloc(of->array_count * sizeof *folds) : NULL;
    if (p != NULL && folds != NULL) {
        p->found = found;
        p->user = user;
        p->first = ask.unplaced ? CR_UNPLACED : ask.first;
        p->error = &packing;
        if (fold_each(&ask, folds, p, &e) == CR_OK) e = packing;
    } else {
        cr_fail(&e, CR_RESOURCE_EXHAUSTED, "arrays: no memory for so many");
    }
    free(folds);
    free(p);
    return cr_cl_give(error, &e, 0);
}
