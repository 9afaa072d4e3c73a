/* each: answers or a partial for each of many arrays of device memory, by one wait.
 *
 * Thread: any. Owner: a call owns what it packs partials in; its caller copies them from there. Values are the program's. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/cuda/ask.h"
#include "client/lib/error.h"
#include "client/lib/value.h"
#include "kernels/core/serial.h"

/* Folds each array, and tells of it. whole: of all that the ops' families find, but for places where nothing has one. */
static cr_status fold_each(const cr_cl_cuda_ask *ask, bool whole, const cr_caller_told *told, cr_error *error) {
    const cured_cuda_ask *of = ask->of;
    cr_needs needs[CR_DTYPE_INPUTS + 1] = {{0, 0}};
    const uint32_t all = ask->unplaced ? CR_WANTS_MIN | CR_WANTS_MAX : 0;
    cr_status status = CR_OK;
    cr_gpu_fold *folds = of->array_count <= SIZE_MAX / sizeof *folds ? malloc(of->array_count * sizeof *folds) : NULL;
    if (folds == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "arrays: no memory for so many");
    for (size_t i = 0; i < of->array_count && status == CR_OK; i++) {
        const cr_dtype dtype = (cr_dtype)of->arrays[i].dtype;
        if (needs[dtype].families == 0) status = cr_cl_cuda_needs(ask, dtype, &needs[dtype], error);
        folds[i] = (cr_gpu_fold){dtype,      needs[dtype].families,           of->arrays[i].data, of->arrays[i].count,
                                 ask->first, whole ? all : needs[dtype].wants};
    }
    if (status == CR_OK) status = ask->api->each(folds, of->array_count, of->stream, told, error);
    free(folds);
    return status;
}

/* ---- Answers ---- */

enum { SHELF = 64 }; /* values that are made together */

struct answers {
    const cr_cl_cuda_ask *ask;
    cured_values **values;
    /* Of the last type that was asked about: whether all ops have rules. */
    cr_dtype dtype;
    bool by_number;
    cr_number_rule rules[CURED_MAX_OPS];
};

/* The values of an array, which are made with its neighbours'; NULL without memory. */
static cured_values *values_of(const struct answers *a, size_t number) {
    const size_t first = number - number % SHELF, all = a->ask->of->array_count;
    if (a->values[number] == NULL)
        cr_cl_values_shelf(a->ask->of->op_count, all - first < SHELF ? all - first : SHELF, a->values + first);
    return a->values[number];
}

static void answer(void *user, size_t number, const cr_partial *partial) {
    struct answers *a = user;
    cured_values *values = values_of(a, number);
    if (values != NULL) cr_cl_cuda_set_values(a->ask, a->ask->of->op_count, partial, NULL, values);
}

static void look_at_type(struct answers *a, cr_dtype dtype) {
    a->dtype = dtype;
    a->by_number = true;
    for (size_t k = 0; k < a->ask->of->op_count && a->by_number; k++)
        a->by_number = cr_number_rule_make(&a->rules[k], a->ask->ops[k], dtype, &a->ask->finish);
}

static bool answer_numbers(void *user, size_t number, const cr_number *sums) {
    struct answers *a = user;
    const cured_cuda_array *array = &a->ask->of->arrays[number];
    if (a->dtype != (cr_dtype)array->dtype) look_at_type(a, (cr_dtype)array->dtype);
    cured_values *values = a->by_number ? values_of(a, number) : NULL;
    for (size_t k = 0; k < a->ask->of->op_count && values != NULL; k++) {
        const cr_number_rule *rule = &a->rules[k];
        const uint64_t bits = cr_number_answer(rule, &sums[rule->at], array->count);
        cr_cl_value_set_bits(cr_cl_values_at(values, k), (uint8_t)a->ask->ops[k], (uint8_t)rule->result, bits,
                             (uint8_t)array->dtype);
    }
    return values != NULL;
}

cured_status cured_cuda_reduce_each(const cured_cuda_ask *of, cured_values **values, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    struct answers answers = {.ask = &ask, .values = values, .dtype = CR_DTYPE_NONE};
    if (of->struct_bytes == sizeof *of) memset(values, 0, of->array_count * sizeof *values);
    cr_status status = cr_cl_cuda_take(&ask, of, CR_CUDA_EACH, &e);
    if (status != CR_OK) return cr_cl_give(error, &e, 0);
    status = fold_each(&ask, false, &(cr_caller_told){answer, answer_numbers, &answers}, &e);
    for (size_t i = 0; i < of->array_count && status == CR_OK; i++)
        if (values[i] == NULL) status = cr_fail(&e, CR_RESOURCE_EXHAUSTED, "no memory for the values");
    for (size_t i = 0; i < of->array_count && status != CR_OK; i++) {
        cured_values_free(values[i]);
        values[i] = NULL;
    }
    return cr_cl_give(error, &e, 0);
}

/* ---- Partials ---- */

typedef struct partials {
    cured_cuda_found *found;
    void *user;
    uint64_t first;   /* or CR_UNPLACED */
    cr_error packing; /* why the first that could not be told was not */
    cr_share share;   /* of the array that is looked at */
    uint8_t packed[CR_SERIAL_MAX_BYTES];
} partials;

static void pack(void *user, size_t number, const cr_partial *partial) {
    partials *p = user;
    if (p->packing.code != CR_OK || cr_share_make(&p->share, partial, p->first, &p->packing) != CR_OK) return;
    p->found(p->user, number, p->packed, cr_share_pack(&p->share, p->packed, sizeof p->packed));
}

cured_status cured_cuda_partial_each(const cured_cuda_ask *of, cured_cuda_found *found, void *user,
                                     cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    if (cr_cl_cuda_take(&ask, of, CR_CUDA_PARTIAL_EACH, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    partials *p = malloc(sizeof *p);
    if (p == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    p->found = found;
    p->user = user;
    p->first = ask.unplaced ? CR_UNPLACED : ask.first;
    p->packing.code = CR_OK;
    if (fold_each(&ask, true, &(cr_caller_told){pack, NULL, p}, &e) == CR_OK && p->packing.code != CR_OK)
        e = p->packing;
    free(p);
    return cr_cl_give(error, &e, 0);
}
