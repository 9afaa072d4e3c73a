// run: from a name, an op and an array to a value: room, launches, waiting, and the array in pieces where it has to be.
//
// A kernel gets at most 2^31 aligned elements at a time. Longer arrays are folded piece by piece; an array that begins at an address
// that is no multiple of its elements' size is copied first, so that no kernel has to deal with it. The copy is ours: the caller's
// array is only ever read.
//
// Thread: the one that uses the space. Owner: the caller owns the space, which owns everything in it.
#include <stdlib.h>
#include <string.h>

#include "kernels/ladder/row.cuh"

#define CR_LADDER(name, what) extern "C" void cr_ladder_row_##name(cr_ladder::Request *request);
#include "kernels/ladder/ladder.def"
#undef CR_LADDER

using namespace cr_ladder;

namespace {

typedef void (*row_function)(Request *);
const row_function functions[] = {
#define CR_LADDER(name, what) cr_ladder_row_##name,
#include "kernels/ladder/ladder.def"
#undef CR_LADDER
};

const uint64_t COPY_BYTES = 256u << 20; // of a misaligned array at a time

struct Room {
    void *memory;
    uint64_t bytes;
};

} // namespace

struct cr_ladder_space {
    Extras extras;
    Room scratch, host, aligned;
    unsigned processors;
};

namespace {

cr_status failed(cudaError_t e, const char *what, cr_error *error) {
    cudaGetLastError(); // taken note of
    if (e == cudaSuccess) return CR_OK;
    return cr_fail(error, e == cudaErrorMemoryAllocation ? CR_RESOURCE_EXHAUSTED : CR_UNAVAILABLE, "ladder: %s: %s", what,
                   cudaGetErrorString(e));
}

// Grows room to bytes. What it held is lost.
cr_status make_room(Room *room, uint64_t bytes, bool on_host, cr_error *error) {
    if (room->bytes >= bytes) return CR_OK;
    on_host ? cudaFreeHost(room->memory) : cudaFree(room->memory);
    *room = {nullptr, 0};
    cudaError_t e = on_host ? cudaMallocHost(&room->memory, bytes) : cudaMalloc(&room->memory, bytes);
    if (e == cudaSuccess) room->bytes = bytes;
    return failed(e, on_host ? "pinned memory for what comes back" : "device memory for what is between", error);
}

Request request_of(cr_ladder_space *space, const cr_ladder_job *job, const void *data, uint64_t n, void *stream) {
    Request r = {};
    r.op = job->op;
    r.dtype = job->dtype;
    r.in = data;
    r.n = n;
    r.processors = space->processors;
    r.stream = (cudaStream_t)stream;
    r.extras = &space->extras;
    return r;
}

void call(const cr_ladder_job *job, Request *r, Want want) {
    r->want = want;
    functions[cr_ladder_find(job->name)](r);
}

cr_status reserve(cr_ladder_space *space, const cr_ladder_job *job, Request *r, cr_error *error) {
    call(job, r, SIZE);
    cr_status status = make_room(&space->scratch, r->scratch_bytes, false, error);
    if (status == CR_OK) status = make_room(&space->host, r->host_bytes, true, error);
    r->scratch = space->scratch.memory;
    r->host = space->host.memory;
    return status;
}

// One piece, whose elements are aligned, into total.
cr_status fold_piece(cr_ladder_space *space, const cr_ladder_job *job, const void *data, uint64_t n, void *stream,
                     cr_ladder_total *total, cr_error *error) {
    Request r = request_of(space, job, data, n, stream);
    cr_status status = reserve(space, job, &r, error);
    if (status != CR_OK) return status;
    r.total = total;
    call(job, &r, LAUNCH);
    if (r.on_host) call(job, &r, COLLECT);
    cudaError_t e = cudaPeekAtLastError();
    if (e == cudaSuccess && !r.on_host) // as many bytes as any accumulator has
        e = cudaMemcpyAsync(r.host, r.scratch, r.host_bytes, cudaMemcpyDeviceToHost, r.stream);
    if (e == cudaSuccess) e = cudaStreamSynchronize(r.stream);
    if (e != cudaSuccess) return failed(e, job->name, error);
    if (!r.on_host) call(job, &r, COLLECT);
    return CR_OK;
}

} // namespace

extern "C" cr_status cr_ladder_open(cr_ladder_space **space, cr_error *error) {
    cr_ladder_space *s = (cr_ladder_space *)calloc(1, sizeof *s);
    if (!s) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "ladder: no memory");
    int device = 0, processors = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess) e = cudaStreamCreateWithFlags(&s->extras.copies, cudaStreamNonBlocking);
    for (unsigned i = 0; i < PIECES && e == cudaSuccess; i++) {
        e = cudaEventCreateWithFlags(&s->extras.folded[i], cudaEventDisableTiming);
        if (e == cudaSuccess) e = cudaEventCreateWithFlags(&s->extras.copied[i], cudaEventDisableTiming);
    }
    s->processors = (unsigned)processors;
    if (e != cudaSuccess) {
        cr_ladder_close(s);
        return failed(e, "cannot begin", error);
    }
    *space = s;
    return CR_OK;
}

extern "C" void cr_ladder_close(cr_ladder_space *space) {
    if (!space) return;
    for (unsigned i = 0; i < PIECES; i++) {
        if (space->extras.folded[i]) cudaEventDestroy(space->extras.folded[i]);
        if (space->extras.copied[i]) cudaEventDestroy(space->extras.copied[i]);
    }
    if (space->extras.copies) cudaStreamDestroy(space->extras.copies);
    cudaFree(space->scratch.memory);
    cudaFree(space->aligned.memory);
    cudaFreeHost(space->host.memory);
    free(space);
}

extern "C" cr_status cr_ladder_run(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_value *value,
                                   bool *exact, cr_error *error) {
    cr_status status = cr_ladder_check(job->name, job->op, job->dtype, error);
    if (status != CR_OK) return status;
    const uint64_t size = cr_dtype_size(job->dtype);
    const bool aligned = (uintptr_t)job->data % size == 0;
    const uint64_t most = aligned ? MAX_RUN : COPY_BYTES / size;
    cr_ladder_total total = {};
    total.magnitude = 1;
    total.real = job->op == CR_OP_PROD ? 1 : 0;
    for (uint64_t at = 0, n; at < job->n; at += n) {
        n = job->n - at < most ? job->n - at : most;
        const void *data = (const char *)job->data + at * size;
        if (!aligned) {
            status = make_room(&space->aligned, n * size, false, error);
            if (status != CR_OK) return status;
            cudaError_t e = cudaMemcpyAsync(space->aligned.memory, data, n * size, cudaMemcpyDefault, (cudaStream_t)stream);
            if (e != cudaSuccess) return failed(e, "the copy of a misaligned array", error);
            data = space->aligned.memory;
        }
        status = fold_piece(space, job, data, n, stream, &total, error);
        if (status != CR_OK) return status;
    }
    cr_ladder_value(job, &total, value);
    *exact = cr_ladder_exact(job->op, job->dtype);
    return CR_OK;
}

extern "C" bool cr_ladder_on_host(const char *name) {
    Request r = {};
    r.n = 1;
    r.op = CR_OP_SUM;
    r.dtype = CR_I32;
    r.processors = 1;
    r.want = SIZE;
    if (cr_ladder_find(name) == cr_ladder_count()) return false;
    functions[cr_ladder_find(name)](&r);
    return r.on_host;
}

extern "C" cr_status cr_ladder_prepare(cr_ladder_space *space, const cr_ladder_job *job, cr_error *error) {
    cr_status status = cr_ladder_check(job->name, job->op, job->dtype, error);
    if (status != CR_OK) return status;
    if (job->n < 1 || job->n > MAX_RUN || (uintptr_t)job->data % cr_dtype_size(job->dtype) || cr_ladder_on_host(job->name))
        return cr_fail(error, CR_FAILED_PRECONDITION,
                       "ladder: only aligned arrays of 1 to 2^31 elements are measured alone, and no kernel with the host in it");
    Request r = request_of(space, job, job->data, job->n, nullptr);
    return reserve(space, job, &r, error);
}

extern "C" cr_status cr_ladder_enqueue(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_error *error) {
    Request r = request_of(space, job, job->data, job->n, stream);
    call(job, &r, SIZE);
    if (r.scratch_bytes > space->scratch.bytes)
        return cr_fail(error, CR_FAILED_PRECONDITION, "ladder: there is no room: cr_ladder_prepare comes first");
    r.scratch = space->scratch.memory;
    call(job, &r, LAUNCH);
    return failed(cudaPeekAtLastError(), job->name, error);
}
