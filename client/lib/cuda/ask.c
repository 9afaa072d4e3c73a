/* ask: see ask.h. Thread, owner: see there. */
#include "client/lib/cuda/ask.h"

#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/value.h"
#include "kernels/core/widen.h"
#include "kernels/cuda/instance/product.h"

static cr_status check_array(const cured_cuda_array *array, size_t i, bool same, cured_dtype dtype, cr_error *error) {
    if (!cr_dtype_is_input((cr_dtype)array->dtype))
        return cr_fail(error, CR_INVALID_ARGUMENT, "arrays[%zu]: dtype is %u, an array's is " CR_CL_INPUTS, i,
                       (unsigned)array->dtype);
    if (same && array->dtype != dtype)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "arrays[%zu] is of %s, arrays[0] of %s: arrays of an answer in device memory are of one", i,
                       cr_dtype_name((cr_dtype)array->dtype), cr_dtype_name((cr_dtype)dtype));
    if (array->count > PTRDIFF_MAX / 8 && array->count > (uint64_t)PTRDIFF_MAX / cr_dtype_size((cr_dtype)array->dtype))
        return cr_fail(error, CR_INVALID_ARGUMENT, "arrays[%zu]: %llu elements of %s are more than memory has", i,
                       (unsigned long long)array->count, cr_dtype_name((cr_dtype)array->dtype));
    if (array->data == NULL && array->count != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "arrays[%zu]: data is NULL with a count above 0", i);
    return CR_OK;
}

/* Elements of all arrays, whose counts are `counts` together bit by bit; sum: the same, if it fits 64 bits. */
static uint64_t add_up(const cured_cuda_ask *of, uint64_t counts, uint64_t sum) {
    if (of->array_count < UINT32_MAX && counts <= UINT32_MAX / 2) return sum;
    sum = 0;
    for (size_t i = 0; i < of->array_count; i++)
        sum = of->arrays[i].count > PTRDIFF_MAX - sum ? PTRDIFF_MAX : sum + of->arrays[i].count;
    return sum;
}

/* Which types the arrays are of, a bit each; 0: one of them has to be looked at more closely. Of ten thousand arrays this is what a call
 * does longest before the GPU begins. */
static uint32_t types_of(const cured_cuda_ask *of, uint64_t *elements) {
    const cured_cuda_array *arrays = of->arrays;
    uint64_t counts = 0, lacking = 0, sum = 0;
    uint32_t differing = 0, types = 0;
    for (size_t i = 0; i < of->array_count; i++) { /* without a branch */
        counts |= arrays[i].count;
        sum += arrays[i].count;
        lacking |= arrays[i].data == NULL ? arrays[i].count : 0;
        differing |= (uint32_t)arrays[i].dtype ^ (uint32_t)arrays[0].dtype;
    }
    *elements = add_up(of, counts, sum);
    if (lacking != 0 || counts > PTRDIFF_MAX / 8) return 0;
    for (size_t i = 0; i < (differing != 0 ? of->array_count : 1); i++) {
        if (!cr_dtype_is_input((cr_dtype)arrays[i].dtype)) return 0;
        types |= UINT32_C(1) << arrays[i].dtype;
    }
    return types;
}

static cr_status check_arrays(cr_cl_cuda_ask *ask, cr_cl_cuda_what what, bool axis, cr_error *error) {
    const cured_cuda_ask *of = ask->of;
    const bool same = what == CR_CUDA_TO || what == CR_CUDA_LINEAR || what == CR_CUDA_COUNT;
    cr_status status = CR_OK;
    if (of->array_count == 0 || of->arrays == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array_count is 0, must be at least 1");
    if (of->array_count != 1 && axis)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array_count is %zu, must be 1 for an axis", of->array_count);
    ask->types = types_of(of, &ask->elements);
    if (ask->types != 0 && (!same || (ask->types & (ask->types - 1)) == 0)) return CR_OK;
    ask->types = 0;
    for (size_t i = 0; i < of->array_count && status == CR_OK; i++) {
        status = check_array(&of->arrays[i], i, same, of->arrays[0].dtype, error);
        if (status == CR_OK) ask->types |= UINT32_C(1) << of->arrays[i].dtype;
    }
    return status;
}

/* The type of arrays that are one. */
static cr_status take_type(cr_cl_cuda_ask *ask, cr_cl_cuda_what what, cr_error *error) {
    const bool together = what == CR_CUDA_VALUES || what == CR_CUDA_PARTIAL;
    ask->dtype = (cr_dtype)ask->of->arrays[0].dtype;
    ask->mixed = together && (ask->types & (ask->types - 1)) != 0;
    return ask->mixed ? cr_widen_common(ask->types, &ask->dtype, error) : CR_OK;
}

/* What arrays of several types ask more. */
static cr_status take_places(cr_cl_cuda_ask *ask, cr_cl_cuda_what what, cr_error *error) {
    ask->by_place = what == CR_CUDA_PARTIAL && !ask->unplaced && ask->needs.families & CR_FAM_EXTREMA;
    for (size_t k = 0; k < ask->of->op_count; k++) ask->by_place |= cr_op_is_index(ask->ops[k]);
    if (ask->mixed && ask->ranked)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "arrays: medians and quantiles of arrays of several types in device memory are not answered: "
                       "give arrays of one");
    return ask->mixed ? cr_widen_check(ask->dtype, ask->needs.families, error) : CR_OK;
}

static cr_status check_options(const cured_options *o, cr_cl_cuda_what what, cr_error *error) {
    const bool by_key = what == CR_CUDA_PARTIAL_KEYS,
               partial = what == CR_CUDA_PARTIAL || what == CR_CUDA_PARTIAL_EACH || by_key;
    const char *not = NULL;
    if (o->mask != NULL && (what == CR_CUDA_EACH || what == CR_CUDA_PARTIAL_EACH || what == CR_CUDA_LINEAR))
        not = "mask";
    if (o->second != NULL && (what == CR_CUDA_EACH || what == CR_CUDA_PARTIAL_EACH || what == CR_CUDA_LINEAR))
        not = "second";
    if (o->asked != NULL && what != CR_CUDA_COUNT) not = "asked";
    if (o->layout != NULL && what != CR_CUDA_PARTIAL) not = "layout";
    if (o->offsets != NULL && what != CR_CUDA_AXIS && what != CR_CUDA_TO) not = "offsets";
    if (o->keys != NULL && what != CR_CUDA_AXIS && what != CR_CUDA_TO && !by_key) not = "keys";
    if (o->kernel != NULL) not = "kernel";
    if (o->outputs != NULL) not = "outputs";
    if (o->results != NULL) not = "results";
    if (o->partial && !by_key) not = "partial";
    if (o->statuses) not = "statuses";
    if (what == CR_CUDA_LINEAR && (o->nan != CURED_NAN_PROPAGATE || o->ddof != 0)) not = "nan or ddof";
    if (what == CR_CUDA_LINEAR && o->result_dtype != CURED_DTYPE_DEFAULT) not = "result_dtype";
    if (!partial && o->unplaced) not = "unplaced";
    if (!partial && o->first != 0) not = "first";
    if (o->axis != NULL && what != CR_CUDA_AXIS && what != CR_CUDA_TO) not = "axis";
    if (not != NULL) return cr_fail(error, CR_INVALID_ARGUMENT, "options: %s has no meaning for this function", not );
    if (o->mask != NULL && what == CR_CUDA_PARTIAL && !o->unplaced && o->layout == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: a partial under one has no position: set unplaced");
    if (o->axis != NULL && o->offsets != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: they go with no axis; leave out one of them");
    if (o->keys != NULL && (o->axis != NULL || o->offsets != NULL))
        return cr_fail(error, CR_INVALID_ARGUMENT, "keys: they go with no axis and no offsets; leave out one of them");
    if (o->axis == NULL && o->offsets == NULL && o->keys == NULL && what == CR_CUDA_AXIS)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "options: axis, offsets and keys are NULL: cured_cuda_reduce answers whole arrays");
    if (o->keys == NULL && by_key)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "options: keys is NULL: cured_cuda_partial makes partials of whole arrays");
    return CR_OK;
}

static cr_status take_shape(cr_cl_cuda_ask *ask, const cured_axis *axis, cr_error *error) {
    const uint64_t count = ask->of->arrays[0].count;
    ask->has_axis = axis != NULL;
    ask->shape = (cr_shape){1, count, 1};
    if (axis == NULL) return CR_OK;
    ask->shape = (cr_shape){axis->outer, axis->n, axis->inner};
    cr_status status = cr_shape_check(&ask->shape, ask->dtype, error);
    if (status == CR_OK && cr_shape_elements(&ask->shape) != count)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "axis: %llu elements, the array has %llu",
                         (unsigned long long)cr_shape_elements(&ask->shape), (unsigned long long)count);
    return status;
}

/* An answer for each segment; the device reads the offsets. */
static cr_status take_offsets(cr_cl_cuda_ask *ask, const cured_offsets *given, cr_error *error) {
    if (given == NULL) return CR_OK;
    if (ask->of->array_count != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array_count is %zu, must be 1 for offsets", ask->of->array_count);
    return cr_offsets_make(&ask->offsets, given->data, given->count, (cr_dtype)given->dtype, error);
}

/* An answer for each group; the device reads the keys. */
static cr_status take_keys(cr_cl_cuda_ask *ask, const cured_keys *k, cr_error *error) {
    if (k == NULL) return CR_OK;
    if (ask->of->array_count != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array_count is %zu, must be 1 for keys", ask->of->array_count);
    ask->keys = (cr_keys){k->data, k->count, k->groups, k->columns, (cr_dtype)k->dtype, k->drop};
    const cr_status status = cr_keys_check(&ask->keys, ask->dtype, error);
    if (status == CR_OK && cr_keys_elements(&ask->keys) != ask->of->arrays[0].count)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "keys: %llu rows of %llu columns have %llu elements, the array has %llu",
                       (unsigned long long)k->count, (unsigned long long)k->columns,
                       (unsigned long long)cr_keys_elements(&ask->keys), (unsigned long long)ask->of->arrays[0].count);
    return status;
}

/* The array is a block, which lies together itself. */
static cr_status take_block(cr_cl_cuda_ask *ask, const cured_block *block, cr_error *error) {
    const uint64_t count = ask->of->arrays[0].count;
    ask->has_block = block != NULL;
    if (block == NULL) return CR_OK;
    if (ask->of->array_count != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "array_count is %zu, must be 1 for layout", ask->of->array_count);
    const cr_status status = cr_layout_make(&ask->block, block->dims, block->shape, block->start, block->extent, error);
    if (status == CR_OK && ask->block.count != count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: the block has %llu elements, the input %llu",
                       (unsigned long long)ask->block.count, (unsigned long long)count);
    return status;
}

cr_status cr_cl_cuda_needs(const cr_cl_cuda_ask *ask, cr_dtype dtype, cr_needs *needs, cr_error *error) {
    const cr_ask core = {.dtype = dtype,
                         .ops = ask->numbers,
                         .op_count = (uint32_t)ask->of->op_count,
                         .geometry = cr_cl_cuda_by_offsets(ask) ? CR_GEOMETRY_OFFSETS
                                     : cr_cl_cuda_by_key(ask)   ? CR_GEOMETRY_KEYS
                                     : ask->has_axis            ? CR_GEOMETRY_AXIS
                                                                : CR_GEOMETRY_WHOLE,
                         .shape = ask->shape,
                         .second = ask->paired,
                         .masked = ask->mask.kind != CR_MASK_NONE,
                         .rereads = ask->ranked,
                         .partial = ask->unplaced || ask->first != 0 || ask->has_block,
                         .unplaced = ask->unplaced,
                         .block = ask->has_block,
                         .first = ask->first,
                         .finish = ask->finish};
    cr_status status = cr_ask_ops(&core, needs, error);
    return status == CR_OK ? cr_ask_place(&core, needs, error) : status;
}

/* Folds make zeros of what a mask leaves out, so they answer ops to which zeros are nothing; others go by cells (kernels/cuda/keys). */
static cr_status take_mask(cr_cl_cuda_ask *ask, const cured_mask *mask, cr_error *error) {
    if (mask != NULL && ask->of->array_count != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: array_count is %zu, must be 1 with a mask",
                       ask->of->array_count);
    return cr_cl_take_mask(mask, ask->of->arrays[0].count, &ask->mask, error);
}

bool cr_cl_cuda_by_cells(const cr_cl_cuda_ask *ask, size_t k) {
    const uint32_t folded = CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_COUNTS;
    return ask->mask.kind != CR_MASK_NONE && (cr_op_needs(ask->ops[k], ask->dtype) & ~folded) != 0;
}

/* The folds' part of the needs of a whole array. */
static void part_cells(cr_cl_cuda_ask *ask, cr_cl_cuda_what what) {
    if (what != CR_CUDA_VALUES && what != CR_CUDA_PARTIAL && !ask->single) return;
    for (size_t k = 0; k < ask->of->op_count; k++) ask->cells |= cr_cl_cuda_by_cells(ask, k);
    if (!ask->cells) return;
    ask->needs = (cr_needs){0, 0};
    for (size_t k = 0; k < ask->of->op_count; k++)
        if (!cr_cl_cuda_by_cells(ask, k)) ask->needs.families |= cr_op_needs(ask->ops[k], ask->dtype);
}

/* Whether pairs of the type have kernels. */
static bool takes_pairs(cr_dtype dtype) {
    static const struct {
        const char *unit;
        cr_dtype dtype;
    } folds[] = {
#define CR_UNIT(unit, headers)
#define CR_FOLD(unit, kind, dtype, ...) {#unit, dtype},
#define CR_FOLD_SAME(kind, dtype, other)
#define CR_FOLD_AS(kind, dtype, other)
#include "kernels/cuda/instance/fold.def"
    };
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++)
        if (folds[i].dtype == dtype && strcmp(folds[i].unit, "pairs") == 0) return true;
    return false;
}

static cr_status take_second(cr_cl_cuda_ask *ask, const cured_options *o, cr_error *error) {
    ask->paired = o->second != NULL;
    if (o->second == NULL) return CR_OK;
    if (ask->of->array_count != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: array_count is %zu, must be 1 with a second array",
                       ask->of->array_count);
    if (o->mask != NULL)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "second: in device memory whole arrays are answered, without mask: select the elements of both "
                       "first (in Python a[mask] and b[mask])");
    if ((o->axis != NULL && !ask->single) || o->offsets != NULL || o->keys != NULL)
        return cr_fail(
            error, CR_UNIMPLEMENTED,
            "second: in device memory whole arrays are answered, without mask, axis or offsets: pass copies of "
            "both in host memory (in Python a.cpu() or a.get())");
    if (!takes_pairs(ask->dtype))
        return cr_fail(
            error, CR_UNIMPLEMENTED,
            "second: pairs of %s are not reduced in device memory, those of f16, bf16, f32 and f64 are: pass "
            "copies of both in host memory (in Python a.cpu() or a.get())",
            cr_dtype_name(ask->dtype));
    ask->second = o->second->data;
    return cr_cl_check_second(o->second, (cured_dtype)ask->dtype, ask->of->arrays[0].count, error);
}

/* Elements are found by their rank in several reads of whole arrays, between which the host chooses. */
static bool takes_ranks(const cr_cl_cuda_ask *ask, cr_cl_cuda_what what) {
    return what == CR_CUDA_VALUES || what == CR_CUDA_COUNT || ask->single;
}

static cr_status take_ranks(cr_cl_cuda_ask *ask, cr_cl_cuda_what what, const cured_options *o, cr_error *error) {
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    size_t k = 0;
    cr_status status = cr_cl_take_items(ask->numbers, ask->of->op_count, o, items, &ask->ranked, error);
    if (status != CR_OK || !ask->ranked) return status;
    while (cr_op_closing(ask->ops[k]) != CR_CLOSING_ORDER) k++;
    if (!takes_ranks(ask, what))
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "ops: op %s of device memory is answered of a whole array alone, in host memory, without axis, "
                       "offsets or partial: pass a copy in host memory (in Python a.cpu() or a.get())",
                       cr_op_name(ask->ops[k]));
    if (o->mask != NULL)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "mask: under a mask in device memory op %s is not answered yet; select the elements first (in "
                       "Python t[mask])",
                       cr_op_name(ask->ops[k]));
    return CR_OK;
}

cr_status cr_cl_cuda_take(cr_cl_cuda_ask *ask, const cured_cuda_ask *of, cr_cl_cuda_what what, cr_error *error) {
    cured_options o;
    *ask = (cr_cl_cuda_ask){.of = of};
    if (of->struct_bytes != sizeof *of)
        return cr_fail(error, CR_INVALID_ARGUMENT, "struct_bytes is %zu, must be %zu", of->struct_bytes, sizeof *of);
    cr_status status = cr_cl_take_options(of->options, &o, error);
    ask->single = status == CR_OK && what == CR_CUDA_AXIS && o.axis != NULL && o.axis->outer == 1 && o.axis->inner == 1;
    if (status == CR_OK) status = check_options(&o, what, error);
    if (status == CR_OK) status = check_arrays(ask, what, o.axis != NULL, error);
    if (status == CR_OK) status = cr_cl_check_ops(of->ops, of->op_count, error);
    if (status != CR_OK) return status;
    for (size_t k = 0; k < of->op_count; k++) ask->ops[k] = (cr_op)(ask->numbers[k] = (uint32_t)of->ops[k]);
    ask->finish = (cr_finish_opts){(cr_nan_policy)o.nan, (cr_overflow)o.overflow, (cr_dtype)o.result_dtype, o.ddof};
    ask->first = o.first;
    ask->unplaced = o.unplaced || what == CR_CUDA_PARTIAL_KEYS;
    status = take_ranks(ask, what, &o, error);
    if (status == CR_OK) status = take_type(ask, what, error);
    if (status == CR_OK) status = take_second(ask, &o, error);
    if (status == CR_OK) status = take_mask(ask, o.mask, error);
    if (status == CR_OK) status = take_shape(ask, o.axis, error);
    if (status == CR_OK) status = take_offsets(ask, o.offsets, error);
    if (status == CR_OK) status = take_keys(ask, o.keys, error);
    if (status == CR_OK) status = take_block(ask, o.layout, error);
    if (status == CR_OK) status = cr_cl_cuda_needs(ask, ask->dtype, &ask->needs, error);
    if (status == CR_OK) part_cells(ask, what);
    if (status == CR_OK) status = take_places(ask, what, error);
    if (status == CR_OK) ask->api = cr_cl_cuda(error);
    return status == CR_OK && ask->api == NULL ? error->code : status;
}

void cr_cl_cuda_set_values(const cr_cl_cuda_ask *ask, size_t op_count, const cr_partial *partial,
                           const cr_cl_cuda_beside *beside, cured_values *values) {
    for (size_t k = 0; k < op_count; k++) {
        cr_value value;
        const cr_partial *of = beside != NULL && cr_cl_cuda_by_cells(ask, k) ? &beside->cells : partial;
        const cr_finish_opts own = cr_finish_share(ask->ops[k], (cr_dtype)of->dtype, &ask->finish, NULL);
        if (beside != NULL && cr_cl_cuda_is_unfit(ask, beside, k))
            value = (cr_value){.op = ask->ops[k], .error = beside->unfit};
        else if (beside == NULL || !beside->has[k])
            cr_partial_finish(of, ask->ops[k], &own, &value);
        else
            cr_quantile_value(ask->ops[k], cr_axis_dtype(ask->ops[k], ask->dtype, &own), beside->bits[k], &value);
        cr_cl_value_set(cr_cl_values_at(values, k), &value, of->dtype);
    }
}
