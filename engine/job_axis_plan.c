/* job_axis_plan: how the claims of a job along an axis are cut, whether its input comes in strips of columns, and the memory it
 * may hold. Thread: see job_axis.h. Owner: the job. */
#include "engine/job_axis_internal.h"

#include <stdlib.h>

#include "engine/sink.h"
#include "kernels/core/keyed.h"
#include "kernels/cpu/keys/keys.h"

typedef unsigned long long ull;

enum { GPU_CLAIM_BLOCKS = 256 };                    /* so that a claim of many begins where vectors may be loaded */
static const uint64_t GPU_CLAIM_BYTES = 4ull << 30; /* where blocks are no longer */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
/* a·b, or UINT64_MAX. */
static uint64_t times(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }
/* a + b, or UINT64_MAX. */
static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static bool is_whole(const cr_job_axis *axis, const cr_job *job) {
    if (cr_axis_by_offsets(&axis->spec)) return job->as_one;
    return axis->block * job->element <= CR_JOB_AXIS_GRAIN_BYTES || cr_axis_is_uncut(&axis->spec);
}

/* Statuses beside a sink, which wait for the client while the job does not. */
static uint64_t statuses_beside(const cr_job_axis *axis, const cr_job *job) {
    const cr_shape *shape = &axis->spec.shape;
    return job->sink && axis->spec.statuses ? times(shape->outer * shape->inner, axis->spec.op_count) : 0;
}

/* How claims are cut, and what their answers may hold; returns that. whole: blocks are not cut. */
static uint64_t plan_claims(const cr_job_axis *axis, cr_job *job, bool whole) {
    const cr_shape *shape = &axis->spec.shape;
    uint64_t slice = shape->n * job->element, all = times(shape->outer * shape->inner, axis->answer_bytes);
    uint64_t of_block = times(axis->strip, axis->answer_bytes);
    job->grain = whole ? axis->block : 1;
    job->claim_bytes = job->claim_most = job->claim_output = 0;
    if (!whole && axis->strip > 1)
        job->claim_bytes = least(times(axis->strip * job->element, CR_JOB_AXIS_CLAIM_LINES), CR_JOB_AXIS_CLAIM_BYTES);
    job->may_pause = all > CR_JOB_AXIS_PENDING_BYTES && !job->sink;
    if (!job->may_pause) /* with a sink: what workers hold */
        return plus(least(all, CR_JOB_AXIS_PENDING_BYTES), statuses_beside(axis, job));
    uint64_t most = times(CR_JOB_AXIS_OUTPUT_BYTES / axis->answer_bytes + 1, slice), unit = cr_job_unit(job);
    if (most < CR_JOB_AXIS_CLAIM_BYTES) job->claim_most = most > unit ? most / unit * unit : unit;
    uint64_t claim = job->claim_most ? job->claim_most : CR_CLAIM_MOST_BYTES;
    if (claim < unit) claim = unit;
    if (shape->outer > 1 || axis->strips > 1) job->claim_output = times(claim / slice + 1, axis->answer_bytes);
    uint64_t more = times(of_block, 2); /* of blocks of which many claims made a part */
    return least(all, more > UINT64_MAX / 2 ? more : CR_JOB_AXIS_PENDING_BYTES + job->claim_output + more);
}

/* Incomplete blocks that there may be besides those in workers' hands. */
static uint64_t states_beside(const cr_job_axis *axis) {
    return axis->spec.shape.outer == 1 && axis->strips == 1 ? 1 : CR_JOB_AXIS_STATES_BESIDE_WORKERS;
}

static uint64_t most_states(const cr_job_axis *axis, const cr_job *job, uint32_t workers) {
    const uint64_t blocks = cr_axis_by_offsets(&axis->spec) ? 1 : axis->spec.shape.outer;
    uint64_t claims = axis->block * blocks * job->element / CR_CLAIM_LEAST_BYTES + 1;
    return cr_axis_in_order(&axis->spec) ? 1 : least(workers, claims) + states_beside(axis);
}

/* How many states there may be, within max_bytes beside other memory. */
static cr_status plan_states(cr_job_axis *axis, cr_job *job, uint32_t workers, uint64_t other, uint64_t max_bytes,
                             cr_error *error) {
    uint64_t state = cr_columns_bytes(&axis->of_strip[0]), last = cr_columns_bytes(&axis->of_strip[1]);
    uint64_t beside = states_beside(axis);
    if (state < last) state = last;
    bool in_order = cr_axis_in_order(&axis->spec);
    uint64_t states = most_states(axis, job, workers);
    job->most_claims = 0;
    if (is_whole(axis, job)) states = state = 0;
    uint64_t fit = other > max_bytes ? 0 : state ? (max_bytes - other) / state : 1;
    if (!fit)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "%s: %llu bytes of state and %llu of answers and input exceed what "
                       "max_state_bytes_per_connection or max_state_bytes leave, %llu",
                       cr_axis_by_offsets(&axis->spec) ? "offsets" : "axis", (ull)state, (ull)other, (ull)max_bytes);
    if (fit < states) {
        in_order = fit <= beside;
        states = in_order ? 1 : fit;
        job->most_claims = in_order ? 0 : (uint32_t)(fit - beside);
    }
    job->in_order = in_order && state; /* whole blocks are answered by themselves */
    axis->memory = other + states * state;
    return CR_OK;
}

/* Every strip but the last has so many columns. */
static void set_strip(cr_job_axis *axis, uint64_t columns) {
    const uint64_t inner = axis->spec.shape.inner;
    axis->strip = columns;
    axis->strips = columns ? (inner - 1) / columns + 1 : 1;
    axis->of_strip[0] = axis->of_strip[1] = axis->spec;
    axis->of_strip[0].shape.inner = columns;
    axis->of_strip[1].shape.inner = inner - (axis->strips - 1) * columns;
}

/* Makes the parts that are the same for every lane. */
static cr_job_axis *axis_new(cr_job *job, const cr_axis_spec *spec, cr_error *error) {
    cr_job_axis *axis = calloc(1, sizeof *axis);
    if (!axis) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the axis");
        return NULL;
    }
    axis->spec = *spec;
    if (spec->shape.outer) axis->block = spec->shape.n * spec->shape.inner;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        axis->width[k] = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        axis->answer_bytes += axis->width[k] + spec->statuses;
    }
    if (cr_job_axis_packs(axis)) axis->width[0] = axis->answer_bytes = 1;
    set_strip(axis, spec->shape.inner);
    pthread_mutex_init(&axis->mutex, NULL);
    cr_list_init(&axis->pieces);
    job->axis = axis;
    job->grain = 1;
    job->in_order = false;
    axis->memory = CR_JOB_AXIS_OUTPUT_BYTES;
    return axis;
}

/* kept: bytes of the input that stay until it is whole. */
static cr_status plan(cr_job_axis *axis, cr_job *job, uint32_t workers, uint64_t kept, uint64_t max_bytes,
                      cr_error *error) {
    uint64_t other = plus(plan_claims(axis, job, is_whole(axis, job)), kept);
    if (job->may_pause)
        other = plus(other, CR_JOB_AXIS_INPUT_BYTES); /* bytes of state may have wrapped, but not if this fits */
    return plan_states(axis, job, workers, other, max_bytes, error);
}

/* Gives a strip as many columns as have states for all workers, or else for some of them. */
static cr_status plan_strips(cr_job_axis *axis, cr_job *job, uint32_t workers, uint64_t kept, uint64_t max_bytes,
                             cr_error *error) {
    cr_axis_spec some = axis->spec;
    some.shape.inner = CR_JOB_AXIS_STRIP_COLUMNS;
    axis->strips = 2;
    uint64_t share = max_bytes / 4 / most_states(axis, job, workers);
    uint64_t most = least(share, CR_JOB_AXIS_STRIP_STATE_BYTES) / cr_columns_bytes(&some);
    cr_status status;
    for (most = most ? most : 1;; most /= 2) {
        set_strip(axis, most * CR_JOB_AXIS_STRIP_COLUMNS);
        status = plan(axis, job, workers, kept, max_bytes, error);
        if (status == CR_OK || most == 1) return status;
    }
}

/* What goes by rank has no state of a part of a segment: the input comes as one, and whoever has the claim where a segment begins reads on. */
static cr_status take_segments_as_one(const cr_job_axis *axis, cr_job *job, cr_error *error) {
    if (axis->till > INT64_MAX / job->element)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: the last is %llu, and no input has so many elements",
                       (ull)axis->till);
    job->as_one = true;
    job->grain = axis->till > axis->from ? axis->till - axis->from : 1; /* the offsets may have changed meanwhile */
    return CR_OK;
}

cr_status cr_job_axis_make_by_offsets(cr_job *job, const cr_axis_spec *spec, uint64_t from, uint32_t workers,
                                      uint64_t max_bytes, cr_error *error) {
    const uint64_t elements = cr_offsets_span(&spec->offsets);
    cr_axis_spec counted = *spec;
    counted.shape = (cr_shape){spec->offsets.count, elements, 1};
    cr_job_axis *axis = axis_new(job, &counted, error);
    if (!axis) return error->code;
    axis->from = from;
    axis->till = cr_offsets_at(&spec->offsets, spec->offsets.count);
    axis->block = elements;
    if (!elements) return CR_OK; /* all segments are empty: the loop makes their answers */
    if (cr_axis_is_uncut(spec) && take_segments_as_one(axis, job, error) != CR_OK) return error->code;
    const uint64_t all = times(spec->offsets.count, axis->answer_bytes);
    job->may_pause = all > CR_JOB_AXIS_PENDING_BYTES && !job->sink;
    /* So many bytes have as many answers as an output, where the segments are alike. */
    const uint64_t slice = elements / spec->offsets.count * job->element;
    const uint64_t most = times(cr_job_axis_answers_at_once(axis), slice ? slice : 1);
    if (job->may_pause && most < CR_JOB_AXIS_CLAIM_BYTES)
        job->claim_most = most > CR_CLAIM_LEAST_BYTES ? most : CR_CLAIM_LEAST_BYTES;
    const uint64_t held = job->sink ? plus(least(all, CR_JOB_AXIS_PENDING_BYTES), statuses_beside(axis, job)) : all;
    return plan_states(axis, job, workers, held, max_bytes, error);
}

cr_status cr_job_axis_make_merged(cr_job *job, const cr_axis_spec *spec, cr_error *error) {
    cr_job_axis *axis = axis_new(job, spec, error);
    if (!axis) return error->code;
    axis->block = 1; /* whoever merges makes the answers, also those of no elements */
    job->may_pause = false;
    return CR_OK;
}

/* The same by key: the input is read twice, so one claim has all of it. */
static void take_rows_as_one(const cr_job_axis *axis, cr_job *job) {
    job->as_one = true;
    job->grain = axis->block;
    job->claim_bytes = cr_job_unit(job);
}

static cr_status beyond_keys(const cr_job *job, uint64_t states, uint64_t answers, uint64_t most, cr_error *error) {
    if (job->as_one)
        return cr_fail(
            error, CR_INVALID_ARGUMENT,
            "keys: medians and quantiles copy the array: %llu bytes of that and of state, and %llu of answers, "
            "exceed what max_state_bytes_per_connection or max_state_bytes leave, %llu; a connection to "
            "\"embedded:\" answers them, in this process",
            (ull)states, (ull)answers, (ull)most);
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "groups: %llu bytes of state and %llu of answers exceed what max_state_bytes_per_connection or "
                   "max_state_bytes leave, %llu; reduce some groups at a time (drop leaves the others out)",
                   (ull)states, (ull)answers, (ull)most);
}

cr_status cr_job_axis_make_by_keys(cr_job *job, const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants,
                                   uint32_t workers, uint64_t max_bytes, bool strict, cr_error *error) {
    uint64_t first, most;
    cr_job_axis *axis = axis_new(job, spec, error);
    if (!axis) return error->code;
    axis->block = cr_keys_elements(keys);
    if (cr_job_axis_is_empty(axis)) return CR_OK; /* the loop makes the answers, each of which is of no elements */
    if (cr_axis_is_uncut(spec)) take_rows_as_one(axis, job);
    cr_status status = cr_by_key_measure(spec, keys, wants, &first, &most, error);
    if (status != CR_OK) return status;
    const cr_keyed partial = {spec->dtype, spec->families, keys->groups, keys->columns, 0};
    const uint64_t answers = cr_job_axis_packs(axis)
                                 ? 2 * cr_keyed_most(&partial, cr_keys_elements(keys)) /* it grows by a copy */
                                 : times(cr_keys_answers(keys), axis->answer_bytes);
    const uint64_t other = job->sink ? plus(CR_JOB_AXIS_OUTPUT_BYTES, statuses_beside(axis, job)) : answers;
    if (strict && (other > max_bytes || first > max_bytes - other))
        return beyond_keys(job, first, other, max_bytes, error);
    const uint64_t each = strict ? least(most, max_bytes - other) : most;
    /* Half of what one call may hold is for the states of several workers, so that it does not hold all whenever it is large. */
    const uint64_t one = strict ? each : first, all = strict ? (max_bytes - other) / 2 : max_bytes;
    const uint64_t fit = one ? all / one : CR_JOB_KEYS_STATES;
    const uint64_t states = job->as_one ? 1 : least(fit ? fit : 1, CR_JOB_KEYS_STATES);
    axis->keys = cr_job_keys_new(keys, wants, each, error);
    if (!axis->keys) return error->code;
    job->most_claims = states < workers ? (uint32_t)states : 0;
    axis->memory = plus(other, times(least(states, workers), one));
    return CR_OK;
}

cr_status cr_job_axis_make(cr_job *job, const cr_axis_spec *spec, uint32_t workers, cr_job_axis_input input,
                           uint64_t max_bytes, cr_error *error) {
    cr_job_axis *axis = axis_new(job, spec, error);
    if (!axis) return error->code;
    if (cr_job_axis_is_empty(axis)) return CR_OK; /* the loop makes its answers, if there are any */
    cr_status status = plan(axis, job, workers, 0, max_bytes, error);
    if (status == CR_OK || input == CR_JOB_AXIS_PASSES || is_whole(axis, job) ||
        axis->strip <= CR_JOB_AXIS_STRIP_COLUMNS)
        return status;
    uint64_t kept = input == CR_JOB_AXIS_STREAM ? axis->block * spec->shape.outer * job->element : 0;
    status = plan_strips(axis, job, workers, kept, max_bytes, error);
    if (status == CR_OK || !kept) return status;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "axis: the state of so many columns, or the stream of %llu bytes, exceeds "
                   "max_state_bytes_per_connection or max_state_bytes, %llu; pass a file or a region, which is read "
                   "strip by strip",
                   (ull)kept, (ull)max_bytes);
}

void cr_job_axis_place(cr_job *job, void *const places[]) {
    cr_job_axis *axis = job->axis;
    const uint32_t count = axis->spec.op_count * (axis->spec.statuses ? 2 : 1);
    for (uint32_t i = 0; i < count; i++) axis->to[i] = places[i];
    axis->placed = true;
    job->may_pause = false; /* nothing waits */
    job->claim_most = 0;
}

/* Bytes of a line, of a strip's part of it, and of a whole strip. */
typedef struct sizes {
    uint64_t line, part, strip;
} sizes;

static sizes sizes_of(const cr_job *job) {
    const cr_job_axis *axis = job->axis;
    const uint64_t part = axis->strip * job->element;
    return (sizes){axis->spec.shape.inner * job->element, part, axis->spec.shape.outer * axis->spec.shape.n * part};
}

uint64_t cr_job_axis_run(const cr_job *job, uint64_t at, uint64_t *offset) {
    *offset = at;
    if (!cr_job_axis_in_strips(job)) return UINT64_MAX - at;
    const sizes size = sizes_of(job);
    const uint64_t before = at / size.strip * size.part, part = least(size.part, size.line - before);
    const uint64_t line = at % size.strip / part, byte = at % size.strip % part;
    *offset = line * size.line + before + byte;
    return part - byte;
}

uint64_t cr_job_axis_turned(const cr_job *job, uint64_t offset, uint64_t *at) {
    *at = offset;
    if (!cr_job_axis_in_strips(job)) return UINT64_MAX - offset;
    const sizes size = sizes_of(job);
    const uint64_t line = offset / size.line, byte = offset % size.line, strip = byte / size.part;
    const uint64_t before = strip * size.part, part = least(size.part, size.line - before);
    *at = strip * size.strip + line * part + byte - before;
    return part - (byte - before);
}

void cr_job_axis_claim_whole(cr_job *job) {
    cr_job_axis *axis = job->axis;
    if (!axis || !axis->whole_kinds) return;
    plan_claims(axis, job, true);
    job->in_order = false;
    job->most_claims = 0;
    job->kinds = axis->whole_kinds;
}

/* How many answers a claim on a device may have, where its blocks have no more; *held: bytes that are kept of each meanwhile. A sink in
 * the GPU's memory has the answers from the kernels themselves, which keep less. */
static uint64_t answers_of_claim(const cr_job *job, const cr_axis_spec *spec, uint64_t *held) {
    *held = job->axis->answer_bytes;
    if (!job->sink || job->sink->device < 0) return CR_JOB_AXIS_GPU_OUTPUT_BYTES / job->axis->answer_bytes;
    *held = CR_JOB_AXIS_PLACED_VARIANCE_BYTES;
    for (uint32_t k = 0; k < spec->op_count; k++)
        if (cr_op_term(spec->ops[k]) == CR_TERM_SPREAD) return CR_JOB_AXIS_PLACED_VARIANCES;
    *held = CR_JOB_AXIS_PLACED_BYTES;
    return CR_JOB_AXIS_PLACED_ANSWERS;
}

cr_status cr_job_axis_make_on_device(cr_job *job, const cr_axis_spec *spec, uint64_t max_bytes, cr_error *error) {
    cr_job_axis *axis = axis_new(job, spec, error);
    if (!axis) return error->code;
    if (cr_job_axis_is_empty(axis)) return CR_OK;
    const cr_shape *shape = &spec->shape;
    uint64_t held, most = answers_of_claim(job, spec, &held), blocks = GPU_CLAIM_BYTES / (axis->block * job->element);
    uint64_t of_block = times(shape->inner, held), all = times(of_block, shape->outer);
    if (job->sink) most = least(most, max_bytes / held);
    blocks = least(most / shape->inner, blocks);
    if (blocks > GPU_CLAIM_BLOCKS) blocks -= blocks % GPU_CLAIM_BLOCKS;
    blocks = least(blocks ? blocks : 1, shape->outer);
    job->grain = axis->block;
    job->claim_most = blocks * cr_job_unit(job);
    uint64_t claim = times(of_block, blocks),
             waiting = least(all, CR_JOB_AXIS_PENDING_BYTES + least(claim, UINT64_MAX / 4));
    job->may_pause = all > CR_JOB_AXIS_PENDING_BYTES && !job->sink; /* to a sink answers wait for nobody */
    job->claim_output = job->sink ? 0 : claim;
    if (job->sink && job->sink->device >= 0) waiting = 0;
    waiting = plus(waiting, least(statuses_beside(axis, job), UINT64_MAX / 4));
    axis->memory = plus(waiting, least(claim, UINT64_MAX / 4)); /* and in the lane's own memory meanwhile */
    if (shape->inner > UINT32_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "axis: a GPU gives at most 2^32 - 1 answers of a block, not %llu",
                       (ull)shape->inner);
    if (axis->memory <= max_bytes) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "axis: a GPU answers whole blocks, and %llu bytes of answers exceed max_state_bytes_per_connection "
                   "or max_state_bytes, %llu",
                   (ull)axis->memory, (ull)max_bytes);
}

cr_status cr_job_axis_make_by_host(cr_job *job, uint64_t max_bytes, cr_error *error) {
    const cr_axis_spec spec = job->axis->spec;
    cr_job_axis_free(job->axis);
    job->axis = NULL;
    job->claim_bytes = job->claim_most = job->claim_output = 0;
    job->may_pause = false;
    cr_status status = cr_job_axis_make(job, &spec, 1, CR_JOB_AXIS_PASSES, max_bytes, error);
    job->by_host = true;
    return status;
}
