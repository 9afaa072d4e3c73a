/* by_key: partials by key of device memory: the states of the kernels by key come to the host, and are packed as those of the CPU's folds
 * (kernels/core/keyed.h). And what a partial under a mask has by the same kernels.
 *
 * Thread: any. Owner: the program, of the bytes. */
#include <stdlib.h>

#include "client/lib/cuda/ask.h"
#include "client/lib/error.h"
#include "kernels/core/keyed.h"

typedef struct packing {
    cr_keyed_writer writer;
    cr_share share;
} packing;

static cr_status put(void *user, uint64_t cell, const cr_partial *partial, cr_error *error) {
    packing *p = user;
    const cr_status status = cr_share_make(&p->share, partial, CR_UNPLACED, error);
    return status == CR_OK ? cr_keyed_put(&p->writer, cell, &p->share, error) : status;
}

static cr_status keep(void *user, uint64_t cell, const cr_partial *partial, cr_error *error) {
    (void)cell;
    (void)error;
    *(cr_partial *)user = *partial;
    return CR_OK;
}

cr_status cr_cl_cuda_partial_cells(const cr_cl_cuda_ask *ask, cr_partial *partial, cr_error *error) {
    cr_gpu_keys keys = cr_cl_cuda_keys(ask, NULL); /* the whole array is one cell, */
    cr_op ops[CURED_MAX_OPS];
    uint32_t families = 0;
    keys.axis.ops = ops;
    keys.axis.op_count = 0;
    for (size_t k = 0; k < ask->of->op_count; k++) {
        if (!cr_cl_cuda_by_cells(ask, k)) continue;
        families |= cr_op_needs(ask->ops[k], ask->dtype);
        ops[keys.axis.op_count++] = ask->ops[k];
    }
    cr_partial_init(partial, ask->dtype, families); /* which may have no elements */
    return ask->api->keys_partial(&keys, ask->of->stream, &(cr_caller_cells){keep, partial}, error);
}

cured_status cured_cuda_partial_by_key(const cured_cuda_ask *of, void **partial, size_t *bytes, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    uint64_t length = 0;
    *partial = NULL;
    *bytes = 0;
    if (cr_cl_cuda_take(&ask, of, CR_CUDA_PARTIAL_KEYS, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    const cr_keyed what = {ask.dtype, ask.needs.families, ask.keys.groups, ask.keys.columns, 0};
    const cr_gpu_keys keys = cr_cl_cuda_keys(&ask, NULL);
    packing *p = malloc(sizeof *p);
    if (p == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    cr_status status = cr_keyed_begin(&p->writer, &what, cr_keys_elements(&ask.keys), &e);
    if (status == CR_OK) status = ask.api->keys_partial(&keys, of->stream, &(cr_caller_cells){put, p}, &e);
    if (status == CR_OK) {
        *partial = cr_keyed_end(&p->writer, &length);
        *bytes = (size_t)length;
    } else {
        cr_keyed_drop(&p->writer);
    }
    free(p);
    return cr_cl_give(error, &e, 0);
}
