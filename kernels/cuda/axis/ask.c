/* ask: memory for a stream's reductions along an axis, and the way of their answers to the host.
 *
 * Thread: one at a time for a room. Owner: whoever has the stream. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/cuda/axis/axis.h"

enum {
    ALIGN = 256,
    LEAST_BYTES = 1024 * 1024,
    SCRATCH_BYTES = 64 * 1024 * 1024, /* that cutting long rows and columns among all blocks may take */
};

bool cr_axis_may_fail(const cr_gpu_axis *axis) {
    bool any = false;
    for (uint32_t k = 0; k < axis->op_count; k++) {
        const cr_op op = axis->ops[k];
        cr_finish_opts own = cr_finish_share(op, axis->dtype, &axis->finish, NULL);
        any |=
            cr_op_result(op) == CR_RESULT_EXACT && cr_dtype_kind(cr_axis_dtype(op, axis->dtype, &own)) != CR_KIND_FLOAT;
    }
    return any;
}

uint64_t cr_axis_bytes(const cr_gpu_axis *axis, uint32_t k) {
    const cr_finish_opts own = cr_finish_share(axis->ops[k], axis->dtype, &axis->finish, NULL);
    return axis->shape.outer * axis->shape.inner * cr_dtype_size(cr_axis_dtype(axis->ops[k], axis->dtype, &own));
}

cr_axis_out cr_axis_out_of(const cr_gpu_axis *axis, uint32_t k, void *to) {
    const cr_op op = axis->ops[k];
    const cr_finish_opts own = cr_finish_share(op, axis->dtype, &axis->finish, NULL);
    const cr_op_row *row = cr_op_row_of(op);
    return (cr_axis_out){.op = (int32_t)op,
                         .result = (int32_t)cr_axis_dtype(op, axis->dtype, &own),
                         .term = row->term,
                         .divisor = row->divisor,
                         .root = row->root == CR_ROOT_ROOT,
                         .to = to};
}

uint64_t cr_axis_lay_out(const cr_gpu_axis *axis, uint64_t at[CR_GPU_AXIS_OPS]) {
    uint64_t bytes = ALIGN;
    for (uint32_t k = 0; k < axis->op_count && axis->to == NULL; k++) {
        at[k] = bytes;
        bytes = (bytes + cr_axis_bytes(axis, k) + ALIGN - 1) / ALIGN * ALIGN;
    }
    return bytes;
}

static int need_answers(cr_axis_room *room, uint64_t bytes) {
    if (bytes <= room->bytes) return 0;
    if (bytes < LEAST_BYTES) bytes = LEAST_BYTES;
    cudaFree(room->device);
    cudaFreeHost(room->host);
    room->device = room->host = NULL;
    room->bytes = 0;
    void *device = NULL, *host = NULL;
    cudaError_t failure = cudaMalloc(&device, bytes);
    if (failure == cudaSuccess) failure = cudaMallocHost(&host, bytes);
    if (failure != cudaSuccess) {
        cudaFree(device);
        return (int)failure;
    }
    room->device = device;
    room->host = host;
    room->bytes = bytes;
    return 0;
}

/* Its head is zero before its first use, and what folded there last left it so. */
static int need_scratch(cr_axis_room *room, uint64_t bytes, cudaStream_t stream) {
    if (bytes <= room->scratch_bytes) return 0;
    cudaFree(room->scratch);
    room->scratch = NULL;
    room->scratch_bytes = 0;
    void *scratch = NULL;
    cudaError_t failure = cudaMalloc(&scratch, bytes);
    if (failure != cudaSuccess) return (int)failure;
    room->scratch = scratch;
    room->scratch_bytes = bytes;
    return (int)cudaMemsetAsync(scratch, 0, sizeof(cr_axis_head), stream);
}

int cr_axis_ask(cr_axis_room *room, const cr_gpu_axis *axis, uint32_t multiprocessors, void *stream, cr_error *error) {
    if (!cr_axis_takes(axis)) {
        cr_fail(error, CR_UNIMPLEMENTED, "axis: the GPU has no kernel for one of these ops");
        return 0;
    }
    if (axis->shape.outer != 0 && axis->shape.inner > UINT32_MAX / axis->shape.outer) {
        cr_fail(error, CR_INVALID_ARGUMENT, "axis: more than 2^32 answers at once");
        return 0;
    }
    cr_axis_launch at;
    cr_axis_launch_make(&at, (uintptr_t)axis->data, &axis->shape, axis->dtype, cr_axis_is_variance(axis),
                        multiprocessors);
    uint64_t bytes = cr_axis_lay_out(axis, room->at);
    int failure = need_answers(room, bytes);
    if (failure == 0) failure = need_scratch(room, at.scratch_bytes, (cudaStream_t)stream);
    room->may_fail = cr_axis_may_fail(axis);
    if (failure == 0 && room->may_fail)
        failure = (int)cudaMemsetAsync(room->device, 0, sizeof(cr_axis_failure), (cudaStream_t)stream);
    void *out[CR_GPU_AXIS_OPS];
    for (uint32_t k = 0; k < axis->op_count; k++) out[k] = axis->to != NULL ? axis->to[k] : room->device + room->at[k];
    room->asked = *axis;
    if (failure == 0 && axis->shape.outer * axis->shape.inner != 0)
        failure =
            cr_axis_enqueue(axis, multiprocessors, out, room->scratch, (cr_axis_failure *)(void *)room->device, stream);
    if (failure != 0 || (axis->to != NULL && !room->may_fail)) return failure;
    return (int)cudaMemcpyAsync(room->host, room->device, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)stream);
}

cr_status cr_axis_answers(const cr_axis_room *room, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                          cr_error *error) {
    const unsigned long long key = room->may_fail ? ((const cr_axis_failure *)(const void *)room->host)->key : 0;
    if (key != 0) {
        *failed = UINT32_MAX - (key >> 32);
        return cr_fail(error, CR_OUT_OF_RANGE, "output %llu: %s does not fit %s",
                       (unsigned long long)(room->asked.first + *failed), cr_op_name((cr_op)(key >> 8 & 255)),
                       cr_dtype_name((cr_dtype)(key & 255)));
    }
    for (uint32_t k = 0; room->asked.to == NULL && k < room->asked.op_count; k++) out[k] = room->host + room->at[k];
    return CR_OK;
}

void cr_axis_room_trim(cr_axis_room *room, uint64_t most) {
    if (room->bytes > most) {
        cudaFree(room->device);
        cudaFreeHost(room->host);
        room->device = room->host = NULL;
        room->bytes = 0;
    }
    if (room->scratch_bytes > SCRATCH_BYTES && room->scratch_bytes > most) {
        cudaFree(room->scratch);
        room->scratch = NULL;
        room->scratch_bytes = 0;
    }
}

void cr_axis_room_free(cr_axis_room *room) {
    cudaFree(room->scratch);
    cudaFree(room->device);
    cudaFreeHost(room->host);
    *room = (cr_axis_room){0};
}
