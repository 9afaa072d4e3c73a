/* start: the job of a call, and where its input comes from. Thread: the loop's. Owner: the call. */
#include <unistd.h>

#include "engine/feed.h"
#include "engine/job_axis.h"
#include "engine/memory/kept.h"
#include "engine/memory/region.h"
#include "engine/named.h"
#include "engine/sink.h"
#include "engine/small.h"
#include "server/call/beside.h"
#include "server/call/block.h"
#include "server/call/call.h"
#include "server/call/ranked.h"

/* Of a checked request. Answers that are written bring statuses only where one of them may have no value. */
static void axis_of(const cr_call *call, cr_axis_spec *spec) {
    const cr_wire_reduce *r = &call->request.reduce;
    const bool axis = call->geometry == CR_GEOMETRY_AXIS;
    bool may_lack = !call->job->sink || r->has_mask || !axis; /* which may leave nothing of some */
    *spec = (cr_axis_spec){.dtype = call->dtype,
                           .shape = {r->outer, r->n, r->inner},
                           .offsets = cr_beside_offsets(call),
                           .families = call->families,
                           .items = cr_ranked_items(call),
                           .op_count = r->want_partial ? 0 : r->op_count, /* a partial by key has no answers */
                           .finish = call->finish};
    if (call->geometry == CR_GEOMETRY_OFFSETS) spec->shape = (cr_shape){spec->offsets.count, 0, 1};
    if (call->geometry == CR_GEOMETRY_KEYS) {
        const cr_keys keys = cr_beside_keys(call);
        spec->shape = (cr_shape){keys.groups, keys.count, keys.columns};
    }
    if (r->has_mask) spec->mask_line = spec->shape.inner;
    if (r->has_second) spec->second_line = spec->shape.inner;
    for (uint32_t i = 0; i < spec->op_count; i++) {
        spec->ops[i] = (cr_op)r->ops[i];
        may_lack |= !r->n || cr_axis_may_lack(spec->ops[i], call->dtype, &call->finish) ||
                    cr_axis_may_be_none(spec->ops[i], call->dtype, &call->finish);
    }
    spec->statuses = r->statuses && may_lack;
}

/* Only a GPU's lane writes into its memory, and only the answers to what lies there, too. kept: the input, if it is a region. */
static cr_status check_sink(const cr_job *job, const cr_kept *kept, cr_error *error) {
    const cr_sink *sink = job->sink;
    const cr_shape *shape = &job->axis->spec.shape;
    if (!sink || sink->device < 0) return CR_OK;
    if (!kept || !kept->on_device || kept->device.device != sink->device)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "outputs: into a GPU's memory go only the answers to a region in the memory of the same GPU");
    if (shape->n || !shape->outer || !shape->inner) return CR_OK;
    return cr_fail(error, CR_UNIMPLEMENTED,
                   "outputs: the answers to axes or segments without elements are not written into a GPU's memory");
}

/* Of an array that may be read anywhere, only what lies in some segment is. */
static uint64_t first_read(const cr_call *call) {
    const cr_offsets offsets = cr_beside_offsets(call);
    const bool cut = offsets.dtype && call->request.reduce.source != CR_SOURCE_STREAM;
    return cut ? cr_offsets_at(&offsets, 0) : 0;
}

/* Makes the job one along the axis of the request. */
static cr_status make_axis(cr_call *call, const cr_axis_spec *spec, bool on_device, uint64_t most, cr_error *error) {
    cr_calls *calls = call->calls;
    const cr_job_axis_input input =
        call->request.reduce.source == CR_SOURCE_STREAM ? CR_JOB_AXIS_STREAM : CR_JOB_AXIS_READ;
    cr_status status = on_device ? cr_job_axis_make_on_device(call->job, spec, most, error)
                                 : cr_job_axis_make(call->job, spec, calls->lanes.workers, input, most, error);
    if (status == CR_OK && on_device && !cr_lanes_axis(&calls->lanes, call->job))
        status = cr_job_axis_make_by_host(call->job, most, error);
    return status;
}

/* The same, of whatever the answers are of. */
static cr_status make_many(cr_call *call, const cr_axis_spec *spec, bool on_device, uint64_t most, cr_error *error) {
    const uint32_t workers = call->calls->lanes.workers;
    cr_keys keys;
    switch (call->geometry) {
        case CR_GEOMETRY_OFFSETS:
            return cr_job_axis_make_by_offsets(call->job, spec, first_read(call), workers, most, error);
        case CR_GEOMETRY_KEYS:
            keys = cr_beside_keys(call);
            return cr_job_axis_make_by_keys(call->job, spec, &keys, call->wants, workers, most, true, error);
        case CR_GEOMETRY_WHOLE:
        case CR_GEOMETRY_AXIS:
            break;
    }
    return make_axis(call, spec, on_device, most, error);
}

/* Makes the job one of many answers, and admits the memory that it may hold. */
static cr_status attach_axis(cr_call *call, bool on_device, cr_error *error) {
    cr_calls *calls = call->calls;
    const cr_config *c = calls->config;
    uint64_t most = c->max_state_bytes_per_connection;
    cr_axis_spec spec;
    axis_of(call, &spec);
    if (c->max_state_bytes < most) most = c->max_state_bytes;
    const uint64_t beside = cr_call_beside_bytes(call); /* which counts as state, too, and is admitted */
    most -= beside < most ? beside : most;
    const cr_status status = make_many(call, &spec, on_device, most, error);
    if (call->geometry != CR_GEOMETRY_AXIS) call->job->by_host = true; /* no kernel of a lane knows offsets or keys */
    if (status != CR_OK) return status;
    const uint64_t second = cr_beside_in_turn(call); /* which is kept as the first is, where that comes in strips */
    const bool keeps = second != UINT64_MAX && cr_job_axis_in_strips(call->job);
    return cr_call_hold_state(call, call->job->axis->memory + (keeps ? second : 0), error);
}

cr_status cr_call_make_job(cr_call *call, const cr_kept *kept, cr_error *error) {
    cr_calls *calls = call->calls;
    const cr_wire_reduce *r = &call->request.reduce;
    cr_job *job = call->job = call->upload.job = cr_job_new(call->dtype, call->families);
    if (!job) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call");
    job->owner = call;
    call->upload.asker =
        (cr_slab_asker){call->peer->client, call->peer->owner, !r->length_known || r->length > CR_TURN_LARGE_BYTES};
    job->user = call->peer->owner;
    job->client = call->peer->client;
    job->wants = call->wants;
    for (uint32_t i = 0; i < r->op_count; i++) job->ops |= cr_ops_of(r->ops[i]);
    job->base = r->first;
    job->brought = r->source == CR_SOURCE_STREAM || r->source == CR_SOURCE_INLINE;
    job->mask = cr_mask_from(cr_beside_mask(call), first_read(call));
    job->beside = cr_beside_second(call, first_read(call));
    cr_beside_hold(call, job);
    cr_block_hold(call, job);
    if (call->ranked && cr_ranked_attach(call, job, error) != CR_OK) return error->code;
    job->sink = call->sink;
    call->sink = NULL;
    if (call->geometry != CR_GEOMETRY_WHOLE) {
        cr_status status = attach_axis(call, kept && kept->region.way == CR_REGION_DEVICE, error);
        if (status == CR_OK) status = check_sink(job, kept, error);
        if (status != CR_OK) return status;
    }
    if (r->kernel[0]) {
        cr_status status = cr_named_attach(job, r->kernel, r->ops, r->op_count, error);
        if (status != CR_OK) return status;
    }
    cr_lanes_place(&calls->lanes, job);
    if (cr_beside_in_turn(call) != UINT64_MAX) cr_upload_pair(&call->upload, cr_beside_in_turn(call));
    if (r->source == CR_SOURCE_STREAM && r->length_known) cr_queue_set_total(calls->queue, job, r->length);
    return CR_OK;
}

uint64_t cr_call_expects(const cr_call *call, const char **what) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (call->block) {
        *what = "layout: the block";
        return call->block->at.count;
    }
    if (call->request.kind != CR_CALL_REDUCE || !r->has_axis) return cr_beside_expects(call, what);
    *what = "axis: its shape";
    return r->outer * r->n * r->inner;
}

static cr_feed_options feed_options(const cr_call *call, cr_kept *kept, int descriptor) {
    const char *what;
    const uint64_t expected = cr_call_expects(call, &what);
    const cr_offsets offsets = cr_beside_offsets(call);
    const cr_calls *calls = call->calls;
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_config *c = calls->config;
    const bool kernel_limit = r->kernel[0] && c->max_kernel_bytes < c->max_input_bytes;
    return (cr_feed_options){.files = calls->files,
                             .slabs = calls->slabs,
                             .queue = calls->queue,
                             .max_bytes = kernel_limit ? c->max_kernel_bytes : c->max_input_bytes,
                             .max_option = kernel_limit ? "max_kernel_bytes" : "max_input_bytes",
                             .input = {1, {{.kept = kept, .descriptor = descriptor, .offset = r->offset}}},
                             .client = call->peer->client,
                             .owner = call->peer->owner,
                             .most_foreign = (size_t)(c->max_jobs - c->max_jobs / 4),
                             .to_end = !r->length_known,
                             .count = r->length,
                             .expects = what,
                             .expected = expected,
                             .is_cut = offsets.dtype != CR_DTYPE_NONE,
                             .from = offsets.dtype ? cr_offsets_at(&offsets, 0) : 0,
                             .till = offsets.dtype ? cr_offsets_at(&offsets, offsets.count) : 0};
}

static bool read_before(const cr_call *call) {
    uint32_t over;
    cr_ranked_reads(call, &over);
    return over > 0;
}

/* Starts the feed. It takes over one use of kept, or the descriptor. */
static cr_status start_feed(cr_call *call, cr_kept *kept, int descriptor, cr_error *error) {
    const cr_feed_options options = feed_options(call, kept, descriptor);
    cr_status status = cr_feed_start(call->job, &options, error);
    if (status == CR_OK) cr_call_move(call, CR_CLOSED, call->output);
    return status == CR_OK && kept && !read_before(call) ? cr_call_charge(call, error) : status;
}

cr_status cr_call_feed(cr_call *call, const cr_array *input, cr_error *error) {
    cr_kept *const kept = input->kind == CR_KEPT ? input->kept : NULL;
    cr_status status = CR_OK;
    if (call->ranked && kept && kept->on_device)
        status = cr_fail(error, CR_UNIMPLEMENTED,
                         "ops: no median and no quantile of what lies in a GPU's memory; copy it to the host");
    if (status == CR_OK) status = cr_call_make_job(call, kept, error);
    if (status == CR_OK && call->ranked) status = cr_ranked_pass(call, input, error);
    if (status != CR_OK && !kept) cr_files_close(call->calls->files, call->peer->owner, input->descriptor);
    if (status != CR_OK) return status;
    if (kept) cr_kept_use(kept);
    return start_feed(call, kept, kept ? -1 : input->descriptor, error);
}

/* What is small enough to be folded on the loop, and can be read there, is answered: READ, and the call is gone. FAILED: the
 * descriptor is closed, too. */
static cr_small fold_small(cr_call *call, const cr_array *input, cr_error *error) {
    _Alignas(64) static uint8_t data[CR_INLINE_BYTES]; /* the loop's alone */
    const bool passed = input->kind == CR_DESCRIPTOR;
    const cr_wire_reduce *r = &call->request.reduce;
    const cr_feed_options options = feed_options(call, passed ? NULL : input->kept, passed ? input->descriptor : -1);
    cr_small small = CR_SMALL_NOT;
    uint64_t bytes = 0;
    if (passed && cr_region_readable(input->descriptor, error) != CR_OK) { /* whom its close waits for is unknown */
        cr_files_close(options.files, options.owner, input->descriptor);
        return CR_SMALL_FAILED;
    }
    if (call->geometry == CR_GEOMETRY_WHOLE && !r->kernel[0] && !call->whole && !call->ranked)
        small = cr_small_read(&options, call->dtype, data, sizeof data, &bytes, error);
    if (small == CR_SMALL_READ && !r->length_known && cr_call_grow(call, bytes, error) != CR_OK)
        small = CR_SMALL_FAILED;
    if (small != CR_SMALL_NOT && passed) cr_small_close(&options);
    if (small != CR_SMALL_READ) return small;
    call->received = bytes;
    cr_call_fold_here(call, data, cr_beside_second(call, 0), (size_t)bytes);
    return small;
}

bool cr_call_input(cr_call *call, const cr_array *input) {
    if (input->kind == CR_STREAM) {
        cr_call_move(call, CR_RECEIVING, call->output);
        return true;
    }
    if (cr_beside_there(call)) return cr_call_start(call, input);
    return cr_beside_wait(call, input);
}

bool cr_call_start(cr_call *call, const cr_array *input) {
    cr_error error;
    cr_status status;
    const cr_small small = fold_small(call, input, &error);
    if (small == CR_SMALL_READ) return false;
    if (small == CR_SMALL_FAILED)
        status = error.code;
    else
        status = cr_call_feed(call, input, &error);
    if (status == CR_OK) return true;
    cr_call_fail(call, &error);
    return false;
}
