/* array: see array.h. Thread, owner: see there. */
#include "client/lib/call/array.h"

#include <stdlib.h>
#include <string.h>

#include "client/lib/call/call.h"
#include "client/lib/call/outputs.h"
#include "client/lib/error.h"
#include "kernels/core/axis.h"

enum { DEFAULT_MAX_BYTES = 1 << 30 };

struct op_answers {
    uint8_t *values;   /* NULL: only on_part has them */
    uint64_t *seen;    /* a bit an answer */
    uint8_t *statuses; /* a byte an answer; NULL: nobody asked for them */
    cr_axis_missing missing;
    uint64_t missing_of; /* elements of the first without a value: offsets are not read after the call */
    uint64_t covered;
    cr_dtype dtype;
    uint8_t size;
    bool owned;
};

struct cr_cl_array {
    uint64_t count;       /* answers of each op */
    uint64_t total_bytes; /* of all ops; saturated */
    bool handed_over, wants_statuses, has_results;
    void (*on_part)(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user);
    uint32_t op_count;
    struct op_answers ops[];
};

cured_dtype cured_axis_dtype(cured_op op, cured_dtype dtype, cured_dtype result_dtype) {
    cr_error ignored;
    cr_finish_opts opts = {.result_dtype = (cr_dtype)result_dtype};
    if (!cr_dtype_is_input((cr_dtype)dtype) || cr_op_supports((cr_op)op, (cr_dtype)dtype, &ignored) != CR_OK)
        return CURED_DTYPE_DEFAULT;
    cr_dtype type = cr_axis_dtype((cr_op)op, (cr_dtype)dtype, &opts);
    return cr_dtype_size(type) != 0 ? (cured_dtype)type : CURED_DTYPE_DEFAULT;
}

/* sum + a·b, or UINT64_MAX. */
static uint64_t add_product(uint64_t sum, uint64_t a, uint64_t b) {
    if (b != 0 && a > (UINT64_MAX - sum) / b) return UINT64_MAX;
    return sum + a * b;
}

static uint64_t words_of(uint64_t count) { return count / 64 + (count % 64 != 0); }

cr_status cr_cl_array_check(const cured_call *call, const cured_options *o, cr_error *error) {
    const char *way = cr_geometry_way(call->geometry);
    if (o->partial && call->geometry != CR_GEOMETRY_KEYS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there are none %s", way);
    if (o->first != 0) return cr_fail(error, CR_INVALID_ARGUMENT, "first: it has no meaning %s", way);
    return CR_OK;
}

/* The types and sizes, and whether the memory for them is granted. */
static cr_status plan(cr_cl_array *array, const cr_wire_reduce *r, const cured_options *o, cr_error *error) {
    const cr_finish_opts opts = {.result_dtype = (cr_dtype)r->result_dtype};
    uint64_t most = o->max_result_bytes != 0 ? o->max_result_bytes : DEFAULT_MAX_BYTES, need = 0;
    for (uint32_t i = 0; i < array->op_count; i++) {
        struct op_answers *a = &array->ops[i];
        a->dtype = cr_axis_dtype((cr_op)r->ops[i], (cr_dtype)r->dtype, &opts);
        a->size = (uint8_t)cr_dtype_size(a->dtype);
        if (a->size == 0)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "result_dtype: %s has no fixed size, as answers along an axis need",
                           cr_dtype_name(a->dtype));
        if (o->results != NULL && o->results[i] == NULL && array->count != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "results[%u] is NULL", i);
        a->owned = o->results == NULL && o->on_part == NULL && o->outputs == NULL;
        if (o->results != NULL) a->values = o->results[i];
        array->total_bytes = add_product(array->total_bytes, array->count, a->size);
        need = add_product(need, words_of(array->count), sizeof(uint64_t));
        if (a->owned) need = add_product(need, array->count, a->size);
        if (array->wants_statuses) need = add_product(need, array->count, 1);
    }
    if (need > most || need > SIZE_MAX / 2)
        return cr_fail(error, CR_INVALID_ARGUMENT, "the answers take %llu bytes, max_result_bytes is %llu",
                       (unsigned long long)need, (unsigned long long)most);
    return CR_OK;
}

cr_status cr_cl_array_make(cured_call *call, const cured_options *o, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    cr_cl_array *array = calloc(1, sizeof *array + r->op_count * sizeof array->ops[0]);
    if (array == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    call->array = array; /* freed with the call from here on */
    array->count = call->answers;
    array->on_part = o->on_part;
    array->has_results = o->results != NULL;
    array->wants_statuses = o->statuses;
    array->op_count = r->op_count;
    cr_status status = plan(array, r, o, error);
    for (uint32_t i = 0; status == CR_OK && i < array->op_count; i++) {
        struct op_answers *a = &array->ops[i];
        if (o->outputs == NULL) a->seen = calloc((size_t)words_of(array->count) + 1, sizeof a->seen[0]);
        if (a->owned)
            a->values = malloc((size_t)array->count * a->size + 1); /* never of 0 bytes: NULL says something */
        if (array->wants_statuses) a->statuses = calloc((size_t)array->count + 1, 1);
        if ((a->seen == NULL && o->outputs == NULL) || (a->owned && a->values == NULL) ||
            (array->wants_statuses && a->statuses == NULL))
            status =
                cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %llu answers", (unsigned long long)array->count);
    }
    return status;
}

bool cr_cl_array_expect_parts(cr_cl_array *array) {
    for (uint32_t i = 0; i < array->op_count; i++) {
        struct op_answers *a = &array->ops[i];
        if (a->seen == NULL) a->seen = calloc((size_t)words_of(array->count) + 1, sizeof a->seen[0]);
        if (a->seen == NULL) return false;
    }
    return true;
}

void cr_cl_array_free(cr_cl_array *array) {
    if (array == NULL) return;
    for (uint32_t i = 0; i < array->op_count; i++) {
        free(array->ops[i].seen);
        free(array->ops[i].statuses);
        if (array->ops[i].owned) free(array->ops[i].values);
    }
    free(array);
}

void cr_cl_array_reset(cr_cl_array *array) {
    for (uint32_t i = 0; i < array->op_count; i++) {
        if (array->ops[i].covered == 0 && array->ops[i].missing.count == 0) continue;
        if (array->ops[i].seen != NULL)
            memset(array->ops[i].seen, 0, (size_t)words_of(array->count) * sizeof array->ops[i].seen[0]);
        array->ops[i].covered = 0;
        array->ops[i].missing.count = 0;
        if (array->wants_statuses) memset(array->ops[i].statuses, 0, (size_t)array->count);
    }
}

bool cr_cl_array_places(cr_cl_array *array, void *out[]) {
    for (uint32_t i = 0; i < array->op_count; i++) {
        if (array->ops[i].values == NULL || array->on_part != NULL) return false;
        out[i] = array->ops[i].values;
        if (array->wants_statuses) out[array->op_count + i] = array->ops[i].statuses;
    }
    return true;
}

size_t cr_cl_array_size(const cr_cl_array *array, uint32_t op) { return array->ops[op].size; }

uint64_t cr_cl_array_bytes(const cr_cl_array *array, uint32_t op) { return array->count * array->ops[op].size; }

bool cr_cl_array_has_results(const cr_cl_array *array) { return array->has_results; }

const void *cr_cl_array_values(const cr_cl_array *array, uint32_t op) { return array->ops[op].values; }

bool cr_cl_array_own(cr_cl_array *array) {
    for (uint32_t i = 0; i < array->op_count; i++) {
        struct op_answers *a = &array->ops[i];
        if (a->values != NULL || array->has_results) continue;
        a->values = malloc((size_t)array->count * a->size + 1);
        a->owned = true;
        if (a->values == NULL) return false;
    }
    return cr_cl_array_expect_parts(array);
}

bool cr_cl_array_wants_statuses(const cr_cl_array *array) { return array != NULL && array->wants_statuses; }

/* Elements that an answer is of, at most. */
static uint64_t elements_of(const cured_call *call, uint64_t answer) {
    switch (call->geometry) {
        case CR_GEOMETRY_AXIS:
            return call->request.reduce.n;
        case CR_GEOMETRY_OFFSETS:
            return cr_offsets_at(&call->offsets, answer + 1) - cr_offsets_at(&call->offsets, answer);
        case CR_GEOMETRY_WHOLE:
        case CR_GEOMETRY_KEYS:
            break;
    }
    return call->elements;
}

void cr_cl_array_filled(cured_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_finish_opts finish = {.nan = (cr_nan_policy)r->nan, .result_dtype = (cr_dtype)r->result_dtype};
    cr_cl_array *array = call->array;
    for (uint32_t i = 0; array->wants_statuses && i < array->op_count; i++) {
        struct op_answers *a = &array->ops[i];
        cr_axis_mark((cr_op)r->ops[i], (cr_dtype)r->dtype, &finish, 0, array->count, a->values, a->statuses,
                     &a->missing);
        if (a->missing.count != 0) a->missing_of = elements_of(call, a->missing.first);
    }
}

uint64_t cr_cl_array_credit(const cr_cl_array *array) {
    return array->total_bytes > CR_CREDIT_INITIAL_BYTES ? array->total_bytes - CR_CREDIT_INITIAL_BYTES : 0;
}

bool cr_cl_array_handed_over(const cr_cl_array *array) { return array->handed_over; }

/* Sets bits [first, first + count); false when one was set. */
static bool mark(uint64_t *seen, uint64_t first, uint64_t count) {
    while (count != 0) {
        uint64_t bit = first % 64, n = 64 - bit < count ? 64 - bit : count;
        uint64_t mask = (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << bit;
        if ((seen[first / 64] & mask) != 0) return false;
        seen[first / 64] |= mask;
        first += n;
        count -= n;
    }
    return true;
}

/* Whether the program finds all those elements among the answer's; without a value there is no index (nan: skip). */
static bool indices_fit(const cured_call *call, const cr_wire_part *part, uint64_t count) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (!cr_op_is_index((cr_op)r->ops[part->op])) return true;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t index;
        if (part->statuses != NULL && part->statuses[i] != CR_OK) continue;
        memcpy(&index, part->values + i * sizeof index, sizeof index);
        if (index >= elements_of(call, part->first + i) && (index != UINT64_MAX || r->nan != CR_NAN_SKIP)) return false;
    }
    return true;
}

/* Which answers of the part have no value. What is wrong with that, or NULL. */
static const char *take_statuses(const cured_call *call, struct op_answers *a, const cr_wire_part *part,
                                 uint64_t count) {
    if (part->statuses_len == 0) return NULL;
    if (a->statuses == NULL) return "it has statuses, and nobody asked for them";
    if (part->statuses_len != count) return "it has not as many statuses as answers";
    for (uint64_t i = 0; i < count; i++) {
        if (part->statuses[i] == CR_OK) continue;
        if (part->statuses[i] > CR_STATUS_MAX) return "a status is none";
        if (a->missing.count++ != 0 && part->first + i > a->missing.first) continue;
        a->missing.first = part->first + i;
        a->missing_of = elements_of(call, a->missing.first);
        a->missing.status = (cr_status)part->statuses[i];
    }
    memcpy(a->statuses + part->first, part->statuses, part->statuses_len);
    return NULL;
}

/* Of answers that are written into a region only those statuses come where some have no value. */
static const char *take_written(const cured_call *call, struct op_answers *a, const cr_wire_part *part) {
    const cr_cl_array *array = call->array;
    const uint64_t count = part->statuses_len;
    if (part->values_len != 0) return "its answers were to be written into a region";
    if (part->first > array->count || count > array->count - part->first) return "it goes beyond the answers asked for";
    for (uint64_t i = 0; a->statuses != NULL && i < count; i++)
        if (a->statuses[part->first + i] != CR_OK) return "it has a status that came before";
    return take_statuses(call, a, part, count);
}

const char *cr_cl_array_take(cured_call *call, const cr_wire_part *part) {
    cr_cl_array *array = call->array;
    if (part->op >= array->op_count) return "it is of an op that was not asked for";
    struct op_answers *a = &array->ops[part->op];
    if (cr_cl_outputs_written(call)) return take_written(call, a, part);
    if (part->values_len % a->size != 0) return "its length does not belong to its type";
    uint64_t count = part->values_len / a->size;
    if (part->first > array->count || count > array->count - part->first) return "it goes beyond the answers asked for";
    if (count == 0) return NULL;
    if (!mark(a->seen, part->first, count)) return "it has an answer that came before";
    const char *wrong = take_statuses(call, a, part, count);
    if (wrong != NULL) return wrong;
    if (!indices_fit(call, part, count)) return "an index is of no element of its answer";
    a->covered += count;
    if (a->values != NULL) memcpy(a->values + part->first * a->size, part->values, part->values_len);
    if (array->on_part == NULL) return NULL;
    array->handed_over = true;
    array->on_part(call, part->op, part->first, part->values, count, call->user);
    return NULL;
}

const char *cr_cl_array_check_end(const cured_call *call, const cr_wire_result *result) {
    const cr_cl_array *array = call->array;
    const bool written = cr_cl_outputs_written(call);
    if (result->result_count != array->op_count) return "it has another number of answers than ops were asked for";
    if (result->written != (written ? array->total_bytes : 0)) return "not all answers were written, or too many";
    for (uint32_t i = 0; i < array->op_count; i++) {
        const cr_wire_op_result *r = &result->results[i];
        if (r->op != call->values[i].op) return "the answer is to another op than asked for";
        if ((r->status != CR_OK) != (array->ops[i].missing.count != 0)) return "an op's status is not its answers'";
        if (r->dtype != (uint32_t)array->ops[i].dtype || r->value_len != 0)
            return "an op's type is not that of its answers";
        if (!written && array->ops[i].covered != array->count) return "answers are missing";
    }
    return NULL;
}

static const struct op_answers *answers_of(const cured_call *call, size_t index) {
    const cr_cl_array *array = call->error.code == CR_OK ? call->array : NULL;
    return array != NULL && index < array->op_count ? &array->ops[index] : NULL;
}

const uint8_t *cured_call_array_statuses(const cured_call *call, size_t index, uint64_t *missing) {
    const struct op_answers *a = answers_of(call, index);
    if (missing != NULL) *missing = a != NULL ? a->missing.count : 0;
    return a != NULL ? a->statuses : NULL;
}

cured_status cured_call_array_status(const cured_call *call, size_t index, cured_error *error) {
    const struct op_answers *a = answers_of(call, index);
    cr_error why = {CR_OK, ""};
    if (a == NULL || call->state != CALL_DONE)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the call has no array of answers to this op");
    cr_axis_say(&a->missing, (cr_op)call->values[index].op, a->dtype, a->missing_of,
                call->mask.kind != CR_MASK_NONE || call->geometry == CR_GEOMETRY_KEYS, call->array->count, &why);
    return cr_cl_give(error, &why, 0);
}

const void *cured_call_array(const cured_call *call, size_t index, cured_dtype *dtype, uint64_t *count) {
    const cr_cl_array *array = call->state == CALL_DONE && call->error.code == CR_OK ? call->array : NULL;
    bool has = array != NULL && index < array->op_count && array->ops[index].values != NULL &&
               (call->outputs == NULL || array->has_results);
    if (dtype != NULL) *dtype = has ? (cured_dtype)array->ops[index].dtype : CURED_DTYPE_DEFAULT;
    if (count != NULL) *count = has ? array->count : 0;
    return has ? array->ops[index].values : NULL;
}
