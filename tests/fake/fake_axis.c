/* fake_axis: reductions along an axis on the stand-in GPU, by the CPU's, and copies back to the host. Thread: a device's one.
 * Owner: see fake_gpu.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/axis.h"
#include "tests/fake/fake_internal.h"

/* Products of floats it does not take, so that there is something that no build of it does; and ranges, of which no kernel tells those of
 * only NaNs (kernels/cuda/axis/launchers.c). */
bool fake_gpu_axis_takes(const cr_gpu_axis *axis) {
    bool floats = cr_dtype_kind(axis->dtype) == CR_KIND_FLOAT;
    for (uint32_t k = 0; k < axis->op_count; k++)
        if ((floats && axis->ops[k] == CR_OP_PROD) || cr_op_term(axis->ops[k]) == CR_TERM_RANGE ||
            cr_op_needs(axis->ops[k], axis->dtype) & CR_FAM_SUMS & ~(uint32_t)CR_FAM_KNOWN_SUMS)
            return false;
    return axis->op_count <= CR_GPU_AXIS_OPS && axis->shape.n != 0;
}

static void spec_of(const cr_gpu_axis *axis, cr_axis_spec *spec) {
    *spec =
        (cr_axis_spec){.dtype = axis->dtype, .shape = axis->shape, .op_count = axis->op_count, .finish = axis->finish};
    for (uint32_t k = 0; k < axis->op_count; k++) {
        spec->ops[k] = axis->ops[k];
        spec->families |= cr_op_needs(axis->ops[k], axis->dtype);
    }
}

static void need(fake_axis *own, size_t bytes) {
    if (bytes <= own->bytes) return;
    free(own->answers);
    own->answers = malloc(bytes);
    own->bytes = bytes;
    if (!own->answers) fake_gpu_misused("there is no memory for the answers along an axis");
}

/* Blocks first … end - 1 of the reduction. */
static cr_status blocks(fake_axis *own, const cr_axis_spec *spec, const size_t width[], uint64_t first, uint64_t end,
                        void *scratch) {
    const cr_gpu_axis *axis = &own->asked;
    const uint64_t inner = axis->shape.inner;
    void *out[CR_GPU_AXIS_OPS];
    for (uint32_t k = 0; k < axis->op_count; k++) out[k] = own->answers + own->at[k] + first * inner * width[k];
    const uint8_t *data = (const uint8_t *)axis->data + first * axis->shape.n * inner * cr_dtype_size(axis->dtype);
    own->error.code = CR_OK;
    return cr_cpu_axis_blocks(spec, data, axis->first + first * inner, end - first, scratch, out, &own->error);
}

/* Where the client wants them. */
static void place(const cr_gpu_stream *stream, const size_t width[]) {
    const fake_axis *own = &stream->axis;
    const uint64_t count = own->asked.shape.outer * own->asked.shape.inner;
    for (uint32_t k = 0; own->asked.to && k < own->asked.op_count; k++)
        fake_gpu_write(stream->gpu, own->asked.to[k], own->answers + own->at[k], width[k] * count);
}

static void reduce(cr_gpu_stream *stream, const op *o) {
    fake_axis *own = &stream->axis;
    const cr_gpu_axis *axis = &own->asked;
    cr_axis_spec spec;
    spec_of(axis, &spec);
    size_t at = 0, width[CR_GPU_AXIS_OPS];
    for (uint32_t k = 0; k < axis->op_count; k++) {
        width[k] = cr_dtype_size(cr_axis_dtype(axis->ops[k], axis->dtype, &axis->finish));
        own->at[k] = at;
        at += width[k] * axis->shape.outer * axis->shape.inner;
    }
    need(own, at);
    void *scratch = aligned_alloc(64, (cr_axis_scratch(&spec) + 64) / 64 * 64);
    bool fits = blocks(own, &spec, width, 0, axis->shape.outer, scratch) == CR_OK;
    for (uint64_t b = 0; !fits && blocks(own, &spec, width, b, b + 1, scratch) == CR_OK;)
        b++; /* the first that fails */
    free(scratch);
    place(stream, width);
    unsigned long long output;
    if (own->error.code != CR_OK) {
        if (sscanf(own->error.text, "output %llu:", &output) != 1) fake_gpu_misused("the CPU names no output");
        own->failed = output - axis->first;
        cr_fail(&own->error, CR_OUT_OF_RANGE, "output %llu does not fit", output); /* as a GPU says it */
    }
    own->done = true;
    (void)o;
}

cr_status fake_gpu_axis(cr_gpu_stream *stream, const cr_gpu_axis *axis, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.axes);
    cr_gpu *gpu = stream->gpu;
    cr_status status = fake_gpu_count_call(gpu, error);
    if (status != CR_OK) return status;
    if (!fake_gpu_axis_takes(axis))
        return cr_fail(error, CR_UNIMPLEMENTED, "axis: the stand-in lacks one of these ops");
    if (stream->axis.enqueued) fake_gpu_misused("a stream has two reductions along an axis at a time");
    if (axis->shape.inner && axis->first % axis->shape.inner)
        fake_gpu_misused("a reduction does not begin with a block");
    cr_axis_spec spec;
    spec_of(axis, &spec);
    cr_gpu_fold all = {.dtype = axis->dtype,
                       .families = spec.families,
                       .data = axis->data,
                       .n = axis->shape.outer * axis->shape.n * axis->shape.inner};
    status = fake_gpu_check_fold(gpu, &all, error);
    op planned;
    if (status != CR_OK) return status;
    if (!fake_gpu_plan_fold(1, &planned))
        return cr_fail(error, CR_INVALID_ARGUMENT, "the plan says that this fold fails");
    op *o = fake_gpu_enqueue(stream);
    o->carry_out = reduce;
    o->fold = all;
    o->hangs = planned.hangs;
    stream->axis.asked = *axis;
    stream->axis.enqueued = true;
    stream->axis.done = false;
    return CR_OK;
}

cr_status fake_gpu_axis_result(cr_gpu_stream *stream, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                               cr_error *error) {
    const fake_axis *own = &stream->axis;
    fake_gpu_check(stream->gpu);
    if (!own->done) fake_gpu_misused("there are no answers along an axis");
    *failed = own->failed;
    for (uint32_t k = 0; !own->asked.to && k < own->asked.op_count; k++) out[k] = own->answers + own->at[k];
    if (own->error.code != CR_OK) *error = own->error;
    return own->error.code;
}

void fake_gpu_axis_trim(cr_gpu_stream *stream, size_t most) {
    fake_gpu_count(&fake_gpu_now.counts.trims);
    fake_gpu_check(stream->gpu);
    if (stream->begin != stream->end) fake_gpu_misused("answers are given back while something is under way");
    if (stream->axis.bytes > most) fake_gpu_axis_free(&stream->axis);
}

void fake_gpu_axis_free(fake_axis *axis) {
    free(axis->answers);
    axis->answers = NULL;
    axis->bytes = 0;
    axis->done = false;
}

static void carry(cr_gpu_stream *stream, const op *o) {
    fake_gpu_write(stream->gpu, (void *)(uintptr_t)o->fold.data, o->own, o->width);
}

cr_status fake_gpu_put(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.puts);
    cr_status status = fake_gpu_count_call(stream->gpu, error);
    if (status != CR_OK) return status;
    if (!fake_gpu_find(stream->gpu, ON_DEVICE, device, bytes)) fake_gpu_misused("what is put goes beyond its memory");
    if (fake_gpu_nth(&fake_gpu_now.puts, fake_gpu_planned().stuck_put))
        for (;;) pause();
    void *own = malloc(bytes);
    if (!own) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory");
    op *o = fake_gpu_enqueue(stream);
    o->carry_out = carry;
    o->fold.data = device;
    o->own = memcpy(own, host, bytes);
    o->width = bytes;
    return CR_OK;
}

static void bring(cr_gpu_stream *stream, const op *o) {
    uint8_t *to = (uint8_t *)(uintptr_t)o->fold.data;
    const uint8_t *from = o->from;
    for (size_t i = 0; i < o->count; i++) memcpy(to + i * o->width, from + i * o->pitch, o->width);
    (void)stream;
}

cr_status fake_gpu_fetch(cr_gpu_stream *stream, void *host, const void *device, size_t width, size_t pitch,
                         size_t count, cr_error *error) {
    fake_gpu_count(&fake_gpu_now.counts.fetches);
    cr_gpu *gpu = stream->gpu;
    cr_status status = fake_gpu_count_call(gpu, error);
    if (status != CR_OK || !count) return status;
    if (count > 1 && pitch < width) fake_gpu_misused("pieces that are fetched overlap");
    if (!fake_gpu_find(gpu, ON_DEVICE, device, (count - 1) * pitch + width))
        fake_gpu_misused("what is fetched is not the device's memory");
    if (!fake_gpu_find(gpu, ALLOCATED, host, count * width))
        fake_gpu_misused("what is fetched goes to memory that is not pinned");
    op *o = fake_gpu_enqueue(stream);
    o->carry_out = bring;
    o->fold.data = host;
    o->from = device;
    o->width = width;
    o->pitch = pitch;
    o->count = count;
    return CR_OK;
}
