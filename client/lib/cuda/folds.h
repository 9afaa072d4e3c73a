/* folds: what is under way for one answer of device memory: a call of the library's for each type of the arrays, whose partials meet in
 * the narrowest type that holds all elements. Where the answer goes by places, arrays of several types are folded one by one, and waited
 * for at once.
 *
 * Thread: any. Owner: whoever started them, until they are finished. */
#ifndef CURED_CLIENT_LIB_CUDA_FOLDS_H
#define CURED_CLIENT_LIB_CUDA_FOLDS_H

#include "client/lib/cuda/ask.h"

typedef struct cr_cl_cuda_folds {
    const cr_caller_api *api;
    cr_dtype dtype; /* of the answer's elements */
    uint32_t families, wants, count;
    cr_caller_call *calls[CR_DTYPE_INPUTS];
    cr_partial *whole; /* owned: of folds that were waited for; NULL: the calls have all */
} cr_cl_cuda_folds;

/* The ask and what it points to are not looked at any more when this returns. */
cr_status cr_cl_cuda_folds_start(cr_cl_cuda_folds *folds, const cr_cl_cuda_ask *ask, cr_error *error);
bool cr_cl_cuda_folds_done(const cr_cl_cuda_folds *folds);
/* Waits. partial NULL: nobody wants it. */
cr_status cr_cl_cuda_folds_finish(cr_cl_cuda_folds *folds, cr_partial *partial, cr_error *error);

#endif
