/* gather: see gather.h; and the function that starts such a call. Thread, owner: see there. */
#include "client/lib/call/gather.h"

#include <stdlib.h>
#include <string.h>

#include "client/lib/call/planned.h"
#include "client/lib/error.h"
#include "client/lib/options.h"
#include "cured/strided.h"

void cr_cl_gather_restart(cured_call *call) {
    if (call->gather == NULL || call->kind != KIND_STREAM) return;
    cr_walk_begin(&call->gather->walk, &call->gather->plan, &call->gather->array);
    call->handed = 0;
}

bool cr_cl_gather_left(const cured_call *call) { return call->gather != NULL && call->gather->walk.left != 0; }

size_t cr_cl_gather_into(cured_call *call, void *to, uint64_t room) {
    cr_walk *walk = &call->gather->walk;
    const size_t bytes = cr_walk_next(walk, to, (size_t)(room / walk->size)) * walk->size;
    call->handed += bytes;
    return bytes;
}

void cr_cl_gather_next(cured_call *call) {
    if (call->source_len != 0 || !cr_cl_gather_left(call)) return;
    call->source = call->gather->block;
    call->source_len = cr_cl_gather_into(call, call->gather->block, CR_CL_GATHER_BYTES);
}

void cr_cl_gather_free(cr_cl_gather *gather) {
    if (gather == NULL) return;
    free(gather->marks);
    free(gather->second);
    free(gather->block);
    free(gather);
}

/* What the caller says of its array, as the plan takes it, and its mask as bytes in C order. */
typedef struct taken {
    ptrdiff_t shape[CR_STRIDED_MAX_DIMS], strides[CR_STRIDED_MAX_DIMS], marks[CR_STRIDED_MAX_DIMS];
    char *bytes; /* of a mask of bits; owned */
    uint64_t count;
} taken;

static cr_status take_shape(const cured_strided *given, size_t size, taken *t, cr_error *error) {
    typedef unsigned long long ull;
    uint64_t span = 0;
    bool empty = false;
    t->count = 1;
    if (given->dims > CR_STRIDED_MAX_DIMS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "dims is %zu, limit is %d", given->dims, CR_STRIDED_MAX_DIMS);
    if (given->dims < 64 && given->axes >> given->dims != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axes: bit %d names an axis, the array has %zu",
                       63 - __builtin_clzll(given->axes), given->dims);
    if (given->dims != 0 && given->shape == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "shape is NULL with %zu axes", given->dims);
    for (size_t i = given->dims; i-- > 0;) {
        const uint64_t n = given->shape[i];
        if (n > PTRDIFF_MAX / 8)
            return cr_fail(error, CR_INVALID_ARGUMENT, "shape[%zu] is %llu, limit is 2^60 elements", i, (ull)n);
        const int64_t stride = given->strides != NULL ? given->strides[i] : (int64_t)(t->count * size);
        const uint64_t step = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
        if (n > 1 && step > (PTRDIFF_MAX - span) / (n - 1))
            return cr_fail(error, CR_INVALID_ARGUMENT, "strides[%zu] is %lld: %llu elements span more than 2^63 bytes",
                           i, (long long)stride, (ull)n);
        span += n > 1 ? step * (n - 1) : 0;
        t->shape[i] = (ptrdiff_t)n;
        t->strides[i] = (ptrdiff_t)stride;
        t->marks[i] = (ptrdiff_t)t->count;
        empty |= n == 0;
        if (n > 1 && t->count > (uint64_t)PTRDIFF_MAX / 8 / n)
            return cr_fail(error, CR_INVALID_ARGUMENT, "shape: more than 2^60 elements");
        if (n > 1) t->count *= n;
    }
    if (empty) t->count = 0;
    return CR_OK;
}

/* A byte an element, of a mask of bits. */
static cr_status widen_bits(const cr_mask *mask, taken *t, cr_error *error) {
    t->bytes = malloc(t->count + 64);
    if (t->bytes == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a mask");
    for (uint64_t i = 0; i < t->count; i += 64) {
        const unsigned n = t->count - i < 64 ? (unsigned)(t->count - i) : 64;
        const cr_mask keeps = {mask->data, mask->first, mask->kind, false};
        uint64_t word = cr_mask_word(&keeps, i, n);
        for (unsigned k = 0; k < n; k++, word >>= 1) t->bytes[i + k] = word & 1;
    }
    return CR_OK;
}

/* Whether the elements have to come in C order. */
static bool is_ordered(cured_dtype dtype, const cured_op *ops, size_t op_count, const cured_options *o) {
    bool ordered =
        (o->partial && !o->unplaced) || o->layout != NULL || o->kernel != NULL || o->offsets != NULL || o->keys != NULL;
    for (size_t i = 0; i < op_count; i++) ordered |= cr_op_is_ordered((cr_op)ops[i], (cr_dtype)dtype);
    return ordered;
}

/* The plan, and o->axis and o->mask as it has them. */
static cr_status make_plan(cr_cl_gather *g, const cured_strided *given, taken *t, bool ordered, cured_options *o,
                           cured_mask *mask, cr_error *error) {
    const uint64_t all = given->dims < 64 ? ((uint64_t)1 << given->dims) - 1 : UINT64_MAX;
    const bool whole = given->axes == 0 || given->axes == all;
    cr_mask taken_mask;
    cr_status status = cr_cl_take_mask(o->mask, t->count, &taken_mask, error);
    if (status == CR_OK && taken_mask.kind == CR_MASK_BITS) status = widen_bits(&taken_mask, t, error);
    if (status != CR_OK) return status;
    if (t->bytes != NULL)
        g->array.mask = t->bytes;
    else if (taken_mask.kind == CR_MASK_BYTES)
        g->array.mask = (const char *)taken_mask.data + taken_mask.first;
    g->array.keeps = !taken_mask.leaves_out;
    const cr_strided_order order = g->order =
        whole ? (ordered ? CR_STRIDED_REDUCED : CR_STRIDED_FREE) : (ordered ? CR_STRIDED_BOTH : CR_STRIDED_ANSWERS);
    status = cr_strided_plan_make(&g->plan, &g->array, given->axes, whole, order, error);
    if (status != CR_OK || g->plan.mask == NULL) return status;
    bool parted;
    status = cr_strided_plan_part(&g->plan, &g->array, UINT64_MAX, &taken_mask, &g->marks, &parted, error);
    if (status == CR_OK && t->bytes != NULL && g->marks == NULL) {
        g->marks = t->bytes;
        t->bytes = NULL;
    }
    *mask = (cured_mask){taken_mask.data, g->plan.count, 0, CURED_MASK_BYTES, taken_mask.leaves_out};
    o->mask = mask;
    return status;
}

/* Where the plan's memory has gaps: what of it is at hand from the start, or how it comes. */
static cr_status gather(cr_cl_gather *g, const void **data, cr_error *error) {
    const uint64_t bytes = g->plan.count * g->array.size;
    const bool small = bytes <= CR_CL_GATHER_BYTES;
    *data = g->plan.count == 0 ? "" : g->plan.contiguous ? g->plan.data : NULL;
    if (*data != NULL) return CR_OK;
    g->block = malloc(small ? (size_t)bytes : CR_CL_GATHER_BYTES);
    if (g->block == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a block");
    cr_walk_begin(&g->walk, &g->plan, &g->array);
    if (!small) return CR_OK;
    cr_walk_next(&g->walk, g->block, (size_t)g->plan.count);
    *data = g->block;
    return CR_OK;
}

/* Starts the call of a plan. The call takes the gather over; NULL: it is still the caller's. */
static cured_call *start(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count, cr_cl_gather *g,
                         const cured_options *o, cr_error *error) {
    const cured_axis axis = {g->plan.axis.outer, g->plan.axis.n, g->plan.axis.inner};
    const void *data;
    cured_options options = *o;
    g->array.shape = g->array.strides = g->array.mask_strides = NULL; /* the caller's: a walk asks for none of them */
    if (!g->plan.whole && options.keys == NULL) options.axis = &axis;
    if (gather(g, &data, error) != CR_OK) return NULL;
    const call_kind kind = data != NULL ? KIND_BUFFER : KIND_STREAM;
    cured_call *call =
        cr_cl_new_reduce(cr_cl_calls_of(conn), kind, dtype, ops, op_count, g->plan.count, &options, error);
    if (call == NULL) return NULL;
    call->gather = g;
    call->declared = g->plan.count * g->array.size;
    call->request.reduce.length_known = true;
    call->request.reduce.length = call->declared;
    if (data != NULL) {
        call->data = data;
        call->data_bytes = call->handed = call->declared;
    }
    cr_cl_call_submit(call);
    return call;
}

static cr_cl_gather *new_gather(cr_error *error) {
    cr_cl_gather *g = calloc(1, sizeof *g);
    if (g == NULL) cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    return g;
}

cured_status cr_cl_reduce_plan(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                               const cr_strided *array, const cr_strided_plan *plan, const cured_options *options,
                               cured_call **call, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *call = NULL;
    cr_cl_gather *g = cr_cl_take_options(options, &o, &e) == CR_OK ? new_gather(&e) : NULL;
    if (g != NULL) {
        g->array = *array;
        g->plan = *plan;
        *call = start(conn, dtype, ops, op_count, g, &o, &e);
    }
    if (*call == NULL) cr_cl_gather_free(g);
    return cr_cl_give(error, &e, 0);
}

static cr_status check(cured_dtype dtype, const cured_op *ops, size_t op_count, const cured_strided *array,
                       const cured_options *o, taken *t, cr_error *error) {
    if (array == NULL) return cr_fail(error, CR_INVALID_ARGUMENT, "array is NULL");
    if (!cr_dtype_is_input((cr_dtype)dtype))
        return cr_fail(error, CR_INVALID_ARGUMENT, "dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)dtype);
    if (o->axis != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: an array with strides says in axes what is reduced");
    if (array->axes != 0 && (o->keys != NULL || o->offsets != NULL))
        return cr_fail(error, CR_INVALID_ARGUMENT, "axes: they go with no keys and no offsets; leave out one of them");
    cr_status status = cr_cl_check_ops(ops, op_count, error);
    if (status == CR_OK) status = take_shape(array, cured_dtype_size(dtype), t, error);
    if (status == CR_OK && array->data == NULL && t->count != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "data is NULL with a count above 0");
    return status;
}

/* The second array, which lies in C order, in the order of the plan. */
static cr_status take_second(cr_cl_gather *g, const cured_strided *given, const taken *t, cured_options *o,
                             cured_second *second, cr_error *error) {
    ptrdiff_t strides[CR_STRIDED_MAX_DIMS];
    if (o->second == NULL) return CR_OK;
    *second = *o->second;
    for (int i = 0; i < g->array.ndim; i++) strides[i] = t->marks[i] * g->array.size;
    const cr_strided of = {.data = second->data, .size = g->array.size, .strides = strides};
    o->second = second;
    if (cr_cl_check_second(second, second->dtype, t->count, error) != CR_OK) return error->code;
    return cr_strided_second(&g->array, &of, given->axes, g->plan.whole, g->order, &second->data, &g->second, error);
}

static cured_call *reduce(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                          const cured_strided *array, taken *t, cured_options *o, cr_error *error) {
    const size_t size = cured_dtype_size(dtype);
    cured_mask mask;
    cured_second second;
    cr_cl_gather *g = new_gather(error);
    if (g == NULL) return NULL;
    g->array = (cr_strided){.data = array->data,
                            .size = (uint8_t)size,
                            .swap = array->big_endian && size > 1,
                            .ndim = (int)array->dims,
                            .shape = t->shape,
                            .strides = t->strides,
                            .mask_strides = t->marks};
    cr_status status = make_plan(g, array, t, is_ordered(dtype, ops, op_count, o), o, &mask, error);
    if (status == CR_OK) status = take_second(g, array, t, o, &second, error);
    cured_call *call = status == CR_OK ? start(conn, dtype, ops, op_count, g, o, error) : NULL;
    if (call == NULL) cr_cl_gather_free(g);
    return call;
}

cured_status cured_reduce_strided(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                  const cured_strided *array, const cured_options *options, cured_call **call,
                                  cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    taken t = {.bytes = NULL};
    *call = NULL;
    if (cr_cl_take_options(options, &o, &e) == CR_OK && check(dtype, ops, op_count, array, &o, &t, &e) == CR_OK)
        *call = reduce(conn, dtype, ops, op_count, array, &t, &o, &e);
    free(t.bytes);
    return cr_cl_give(error, &e, 0);
}
