/* reduce: most functions of cured/cuda.h: what a program asks becomes folds on its stream, and partials become answers.
 *
 * Thread: any. Owner: a call is the program's until it is finished. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/cuda/folds.h"
#include "client/lib/error.h"
#include "client/lib/partial.h"
#include "client/lib/value.h"

struct cured_cuda_call {
    cr_cl_cuda_ask ask; /* what it points to is the program's, and not looked at any more */
    size_t op_count;
    cr_cl_cuda_folds folds;
};

static cr_status finish(const cr_cl_cuda_ask *ask, size_t op_count, cr_cl_cuda_folds *folds, cured_values **out,
                        cr_error *error) {
    cr_partial partial;
    cured_values *values = cr_cl_values_new(op_count);
    cr_status status = cr_cl_cuda_folds_finish(folds, &partial, error);
    if (status == CR_OK && values == NULL) status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the values");
    if (status == CR_OK) {
        cr_cl_cuda_set_values(ask, op_count, &partial, NULL, values);
        *out = values;
    } else {
        cured_values_free(values);
    }
    return status;
}

/* Whether an op has no answer in `beside`: counts need a fold, too, of no family. */
static bool needs_fold(const cr_cl_cuda_ask *ask, const cr_cl_cuda_beside *beside) {
    for (size_t k = 0; k < ask->of->op_count; k++)
        if (!beside->has[k] && !cr_cl_cuda_by_cells(ask, k)) return true;
    return false;
}

/* Of a whole array: ops by rank are read for first, then those by cells, and others are folded. */
static cr_status answer_whole(const cr_cl_cuda_ask *ask, cr_cl_cuda_beside *beside, cr_partial *partial,
                              cr_error *error) {
    cr_cl_cuda_folds folds;
    memset(beside->has, 0, sizeof beside->has);
    beside->unfit.code = CR_OK;
    cr_status status = ask->ranked ? cr_cl_cuda_ranks(ask, beside, error) : CR_OK;
    if (status == CR_OK && ask->cells) status = cr_cl_cuda_cells(ask, beside, error);
    cr_partial_init(partial, ask->dtype, 0);
    if (status != CR_OK || !needs_fold(ask, beside)) return status;
    status = cr_cl_cuda_folds_start(&folds, ask, error);
    return status == CR_OK ? cr_cl_cuda_folds_finish(&folds, partial, error) : status;
}

static cr_status reduce_in_parts(const cr_cl_cuda_ask *ask, cured_values **out, cr_error *error) {
    cr_cl_cuda_beside beside;
    cr_partial partial;
    const cr_status status = answer_whole(ask, &beside, &partial, error);
    if (status != CR_OK) return status;
    *out = cr_cl_values_new(ask->of->op_count);
    if (*out == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the values");
    cr_cl_cuda_set_values(ask, ask->of->op_count, &partial, &beside, *out);
    return CR_OK;
}

cured_status cured_cuda_reduce(const cured_cuda_ask *of, cured_values **values, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    cr_cl_cuda_folds folds;
    *values = NULL;
    cr_status status = cr_cl_cuda_take(&ask, of, CR_CUDA_VALUES, &e);
    if (status == CR_OK && (ask.ranked || ask.cells)) {
        reduce_in_parts(&ask, values, &e);
        return cr_cl_give(error, &e, 0);
    }
    if (status == CR_OK) status = cr_cl_cuda_folds_start(&folds, &ask, &e);
    if (status == CR_OK) finish(&ask, of->op_count, &folds, values, &e);
    return cr_cl_give(error, &e, 0);
}

cured_status cured_cuda_start(const cured_cuda_ask *of, cured_cuda_call **call, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_cuda_call *c = malloc(sizeof *c);
    *call = NULL;
    if (c == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call");
    cr_status status = cr_cl_cuda_take(&c->ask, of, CR_CUDA_VALUES, &e);
    if (status == CR_OK && (c->ask.ranked || c->ask.cells))
        status = cr_fail(&e, CR_UNIMPLEMENTED,
                         "ops: medians and quantiles, and extrema, bits and products under a mask, are found in steps, "
                         "each of which "
                         "waits: ask cured_cuda_reduce for them");
    if (status == CR_OK) status = cr_cl_cuda_folds_start(&c->folds, &c->ask, &e);
    if (status == CR_OK) {
        c->op_count = of->op_count;
        c->ask.of = NULL;
        *call = c;
    } else {
        free(c);
    }
    return cr_cl_give(error, &e, 0);
}

bool cured_cuda_done(cured_cuda_call *call) { return cr_cl_cuda_folds_done(&call->folds); }

cured_status cured_cuda_finish(cured_cuda_call *call, cured_values **values, cured_error *error) {
    cr_error e = {CR_OK, ""};
    if (values != NULL) {
        *values = NULL;
        finish(&call->ask, call->op_count, &call->folds, values, &e);
    } else {
        cr_cl_cuda_folds_finish(&call->folds, NULL, &e);
    }
    free(call);
    return cr_cl_give(error, &e, 0);
}

/* Of all ops: families that no fold takes come by cells. */
static cr_status take_partial(const cr_cl_cuda_ask *ask, cr_partial *partial, cr_error *error) {
    cr_cl_cuda_folds folds;
    cr_partial cells;
    cr_status status = ask->cells ? cr_cl_cuda_partial_cells(ask, &cells, error) : CR_OK;
    if (status == CR_OK) status = cr_cl_cuda_folds_start(&folds, ask, error);
    if (status == CR_OK) status = cr_cl_cuda_folds_finish(&folds, partial, error);
    if (status != CR_OK || !ask->cells) return status;
    partial->families |= cells.families; /* none of which a fold has, too */
    if (cells.families & CR_FAM_EXTREMA) {
        partial->min = cells.min;
        partial->max = cells.max;
        partial->first_nan = cells.first_nan;
    }
    if (cells.families & CR_FAM_BITS) {
        partial->bit_and = cells.bit_and;
        partial->bit_or = cells.bit_or;
        partial->bit_xor = cells.bit_xor;
    }
    return CR_OK;
}

/* Of a block indices are its own as yet; its digest goes by places. */
static cr_status take_block(const cr_cl_cuda_ask *ask, cr_partial *partial, cr_error *error) {
    const cured_cuda_array *array = &ask->of->arrays[0];
    cr_cl_cuda_ask own = *ask;
    own.needs.families &= ~(uint32_t)CR_FAM_DIGEST;
    cr_partial_init(partial, ask->dtype, ask->needs.families);
    partial->n = array->count;
    const bool folds = own.needs.families != 0 && array->count != 0;
    cr_status status = folds ? take_partial(&own, partial, error) : CR_OK;
    if (status != CR_OK || (ask->needs.families & CR_FAM_DIGEST) == 0) return status;
    partial->families |= CR_FAM_DIGEST;
    partial->digest[0] = partial->digest[1] = partial->cover = 0;
    if (array->count == 0) return CR_OK;
    return ask->api->block(array->data, ask->dtype, &ask->block, ask->of->stream, partial->digest, error);
}

cured_status cured_cuda_partial(const cured_cuda_ask *of, void *out, size_t *out_bytes, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    struct {
        cr_partial partial;
        cr_share share;
    } *own = malloc(sizeof *own);
    if (own == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    cr_status status = cr_cl_cuda_take(&ask, of, CR_CUDA_PARTIAL, &e);
    ask.needs.wants = 0; /* a partial is for any op of its families */
    if (status == CR_OK) status = (ask.has_block ? take_block : take_partial)(&ask, &own->partial, &e);
    if (status == CR_OK && ask.has_block)
        status = cr_share_make_block(&own->share, &own->partial, &ask.block, &e);
    else if (status == CR_OK)
        status = cr_share_make(&own->share, &own->partial, ask.unplaced ? CR_UNPLACED : ask.first, &e);
    if (status == CR_OK) cr_cl_give_share(&own->share, out, out_bytes, &e);
    free(own);
    return cr_cl_give(error, &e, 0);
}

/* ---- Along an axis, and in device memory ---- */

/* Of no elements each answer is the same, and no GPU is asked. */
static cr_status fill_empty(const cr_cl_cuda_ask *ask, void *const *results, cr_error *error) {
    cr_partial none;
    cr_status status = CR_OK;
    cr_partial_init(&none, ask->dtype, ask->needs.families);
    for (size_t k = 0; k < ask->of->op_count; k++) {
        const cr_finish_opts own = cr_finish_share(ask->ops[k], ask->dtype, &ask->finish, NULL);
        const size_t bytes = cr_dtype_size(cr_axis_dtype(ask->ops[k], ask->dtype, &own));
        for (uint64_t i = 0; i < cr_shape_answers(&ask->shape) && status == CR_OK; i++)
            status = cr_axis_store(&none, ask->ops[k], &own, i, (uint8_t *)results[k] + i * bytes, error);
    }
    return status;
}

static uint64_t answers_of(const cr_cl_cuda_ask *ask) {
    return cr_cl_cuda_by_offsets(ask) ? ask->offsets.count
           : cr_cl_cuda_by_key(ask)   ? cr_keys_answers(&ask->keys)
                                      : cr_shape_answers(&ask->shape);
}

static cr_status check_places(const cr_cl_cuda_ask *ask, void *const *to, bool device, cr_error *error) {
    for (size_t k = 0; k < ask->of->op_count; k++) {
        const cr_finish_opts own = cr_finish_share(ask->ops[k], ask->dtype, &ask->finish, NULL);
        const size_t bytes = cr_dtype_size(cr_axis_dtype(ask->ops[k], ask->dtype, &own));
        if (to[k] == NULL && answers_of(ask) != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s[%zu] is NULL", device ? "to" : "results", k);
        const size_t grain = bytes & (0 - bytes); /* a digest is three words */
        if (device && (uintptr_t)to[k] % grain != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "to[%zu]: %p is no multiple of %zu", k, to[k], grain);
    }
    return CR_OK;
}

/* Of the one output that there is, as of a whole array. */
static cr_status store_single(const cr_cl_cuda_ask *ask, void *const *results, cr_error *error) {
    cr_cl_cuda_beside beside;
    cr_partial partial;
    cr_status status = answer_whole(ask, &beside, &partial, error);
    for (size_t k = 0; k < ask->of->op_count && status == CR_OK; k++) {
        const cr_finish_opts own = cr_finish_share(ask->ops[k], ask->dtype, &ask->finish, NULL);
        if (cr_cl_cuda_is_unfit(ask, &beside, k))
            status = cr_fail(error, beside.unfit.code, "output 0: %s", beside.unfit.text);
        else if (beside.has[k])
            memcpy(results[k], &beside.bits[k], cr_dtype_size(cr_axis_dtype(ask->ops[k], ask->dtype, &own)));
        else
            status = cr_axis_store(cr_cl_cuda_by_cells(ask, k) ? &beside.cells : &partial, ask->ops[k], &own, 0,
                                   results[k], error);
    }
    return status;
}

/* Kernels along an axis know no masks, no pairs and no ranks. */
static bool goes_single(const cr_cl_cuda_ask *ask) {
    return ask->single && (ask->ranked || ask->paired || ask->mask.kind != CR_MASK_NONE);
}

/* Answers of segments, groups or outputs, to host memory (results) or to device memory. */
static void answer_many(const cr_cl_cuda_ask *ask, void *const *results, void *const *to, void *state,
                        cr_error *error) {
    const cr_gpu_axis axis = cr_cl_cuda_axis(ask, to);
    if (cr_cl_cuda_by_offsets(ask)) {
        const cr_gpu_segments segments = {axis, ask->offsets, ask->mask};
        ask->api->segments(&segments, ask->of->stream, results, state, error);
    } else if (cr_cl_cuda_by_key(ask) || cr_cl_cuda_needs_cells(ask)) {
        const cr_gpu_keys keys = cr_cl_cuda_keys(ask, to);
        ask->api->keys(&keys, ask->of->stream, results, state, error);
    } else if (results != NULL) {
        ask->api->axis(&axis, ask->of->stream, results, error);
    } else {
        ask->api->enqueue(&axis, (const cr_caller_array *)(const void *)ask->of->arrays, ask->of->array_count,
                          ask->of->stream, state, error);
    }
}

cured_status cured_cuda_reduce_axis(const cured_cuda_ask *of, void *const *results, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    cr_status status = cr_cl_cuda_take(&ask, of, CR_CUDA_AXIS, &e);
    if (status == CR_OK) status = check_places(&ask, results, false, &e);
    if (status == CR_OK && goes_single(&ask))
        store_single(&ask, results, &e);
    else if (status == CR_OK && ask.has_axis && ask.shape.n == 0)
        fill_empty(&ask, results, &e);
    else if (status == CR_OK)
        answer_many(&ask, results, NULL, NULL, &e);
    return cr_cl_give(error, &e, 0);
}

/* A whole array, or a list, is one row, whose answers have a fixed size. */
static cr_status take_to(cr_cl_cuda_ask *ask, const cured_cuda_ask *of, void *const *to, cr_error *error) {
    cr_status status = cr_cl_cuda_take(ask, of, CR_CUDA_TO, error);
    if (status != CR_OK) return status;
    if (of->array_count > 1) ask->shape.n = ask->elements;
    const bool many = cr_cl_cuda_by_key(ask) || cr_cl_cuda_by_offsets(ask); /* who answers looks at the ops */
    for (size_t k = 0; k < of->op_count && status == CR_OK && !many; k++) {
        const cr_finish_opts own = cr_finish_share(ask->ops[k], ask->dtype, &ask->finish, NULL);
        status = cr_axis_check(ask->ops[k], ask->dtype, &ask->shape, &own, error);
    }
    return status == CR_OK ? check_places(ask, to, true, error) : status;
}

cured_status cured_cuda_enqueue(const cured_cuda_ask *of, void *const *to, void *state, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    cr_status status = take_to(&ask, of, to, &e);
    if (status == CR_OK && (uintptr_t)state % sizeof(uint64_t) != 0)
        status = cr_fail(&e, CR_INVALID_ARGUMENT, "status: %p is no multiple of 8", state);
    if (status == CR_OK) answer_many(&ask, NULL, to, state, &e);
    return cr_cl_give(error, &e, 0);
}

/* A key or an offset is wrong: answers in host memory say which, and why. */
static void say_wrong(const cr_cl_cuda_ask *ask, cr_error *error) {
    void *results[CURED_MAX_OPS] = {NULL};
    const uint64_t count = answers_of(ask);
    cr_status status = CR_OK;
    for (size_t k = 0; k < ask->of->op_count && status == CR_OK; k++) {
        const cr_finish_opts own = cr_finish_share(ask->ops[k], ask->dtype, &ask->finish, NULL);
        const size_t bytes = cr_dtype_size(cr_axis_dtype(ask->ops[k], ask->dtype, &own));
        if (count <= SIZE_MAX / bytes) results[k] = malloc((size_t)count * bytes);
        if (results[k] == NULL)
            status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "to: a key or an offset is wrong, and no memory says which");
    }
    if (status == CR_OK) {
        answer_many(ask, results, NULL, NULL, error);
        if (error->code == CR_OK)
            cr_fail(error, CR_INVALID_ARGUMENT,
                    "arrays: they changed while they were read, and a key or an offset was wrong");
    }
    for (size_t k = 0; k < ask->of->op_count; k++) free(results[k]);
}

cured_status cured_cuda_reduce_to(const cured_cuda_ask *of, void *const *to, cured_error *error) {
    cr_error e = {CR_OK, ""}, late = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    void *word = NULL;
    uint64_t value = 0;
    cr_status status = take_to(&ask, of, to, &e);
    const void *data = NULL;
    for (size_t i = 0; status == CR_OK && data == NULL && i < of->array_count; i++)
        data = of->arrays[i].count != 0 ? of->arrays[i].data : NULL;
    if (status == CR_OK) status = ask.api->word(data, of->stream, &word, &e);
    if (status == CR_OK) {
        answer_many(&ask, NULL, to, word, &e);
        ask.api->take_word(word, of->stream, &value, &late);
        if (e.code == CR_OK) e = late;
        if (e.code == CR_OK && value != 0 && !ask.api->lacks(value, &e)) say_wrong(&ask, &e);
    }
    return cr_cl_give(error, &e, 0);
}
