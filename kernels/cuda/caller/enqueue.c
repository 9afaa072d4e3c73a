/* enqueue: answers that stay in device memory. Sums of floats are a fold whose result a kernel of one block finishes (axis/answer.h); any
 * other whole array is one row along an axis. And linear forms, which are a fold and such a kernel too (axis/linear.h).
 *
 * In a stream that is captured the kernels' memory is the graph's own. It is made beside the capture, filled by a stream of its own,
 * and kept by the graph; what is given back later is freed by the next call, because a graph's end may not call CUDA.
 * Thread: any. Owner: the room, or a graph. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/axis/answer.h"
#include "kernels/cuda/axis/linear.h"
#include "kernels/cuda/caller/internal.h"

/* A graph's. */
typedef struct owned {
    struct owned *next;
    int device;
    unsigned long long context_id; /* with which the memory goes */
    void *memory, *list;
} owned;

/* What is asked, and where it is folded. */
typedef struct asked {
    const cr_gpu_axis *axis;
    cr_caller_fold fold; /* of several arrays; else of axis->data alone */
    cr_caller_array one;
    bool by_fold; /* and not as a row */
    void *status;
    const cr_linear_to *linear; /* NULL: answers */
} asked;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static owned *given_back; /* guarded by mutex */

void cr_caller_free_given_back(void) {
    enum cudaStreamCaptureMode before;
    cr_error ignored;
    pthread_mutex_lock(&mutex);
    owned *all = given_back;
    given_back = NULL;
    pthread_mutex_unlock(&mutex);
    if (all == NULL) return;
    cr_caller_relax(&before);
    for (owned *next; all != NULL; all = next) {
        next = all->next;
        if (cr_caller_alive(all->device, all->context_id, &ignored) == CR_OK) {
            const bool lent = cr_caller_lend(all->device);
            cudaFree(all->memory);
            cudaFree(all->list);
            cr_caller_unlend(lent);
        }
        free(all);
    }
    cr_caller_restore(before);
    (void)cudaGetLastError();
}

/* By CUDA, when the graph and what was made of it are gone. */
static void CUDART_CB give_back(void *user) {
    owned *o = user;
    pthread_mutex_lock(&mutex);
    o->next = given_back;
    given_back = o;
    pthread_mutex_unlock(&mutex);
}

/* Memory beside a capture, which allocations would end otherwise: its first bytes are those at `from`, or zeros. */
static cudaError_t allocate_beside(void **memory, uint64_t bytes, const void *from, uint64_t filled) {
    enum cudaStreamCaptureMode before;
    cudaStream_t own = NULL;
    cudaError_t failure = cr_caller_relax(&before);
    if (failure != cudaSuccess) return failure;
    cr_caller_free_given_back();
    failure = cudaMalloc(memory, bytes);
    if (failure == cudaSuccess) failure = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    if (failure == cudaSuccess)
        failure = from ? cudaMemcpyAsync(*memory, from, filled, cudaMemcpyHostToDevice, own)
                       : cudaMemsetAsync(*memory, 0, filled, own);
    if (failure == cudaSuccess) failure = cudaStreamSynchronize(own);
    if (own) cudaStreamDestroy(own);
    cr_caller_restore(before);
    return failure;
}

/* Makes the graph under way the owner. */
static cudaError_t hand_over(owned *o, cudaStream_t stream) {
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    cudaUserObject_t object = NULL;
    cudaGraph_t graph = NULL;
#if CUDART_VERSION >= 13000
    cudaError_t failure = cudaStreamGetCaptureInfo(stream, &captured, NULL, &graph, NULL, NULL, NULL);
#else
    cudaError_t failure = cudaStreamGetCaptureInfo_v2(stream, &captured, NULL, &graph, NULL, NULL);
#endif
    if (failure == cudaSuccess)
        failure = cudaUserObjectCreate(&object, o, give_back, 1, cudaUserObjectNoDestructorSync);
    if (failure != cudaSuccess) {
        give_back(o);
        return failure;
    }
    failure = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (failure != cudaSuccess) cudaUserObjectRelease(object, 1); /* which gives it back */
    return failure;
}

static cr_status take_memory(const cr_visit *visit, uint64_t bytes, uint64_t zeros, owned **out, cr_error *error) {
    owned *own = calloc(1, sizeof *own);
    if (own == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "graph: no memory for its workspace");
    own->device = visit->device;
    own->context_id = cr_caller_context(visit->device);
    cudaError_t failure = allocate_beside(&own->memory, bytes, NULL, zeros);
    if (failure == cudaSuccess) {
        failure = hand_over(own, visit->stream);
    } else {
        give_back(own);
    }
    *out = own;
    return cr_caller_error((int)failure, "graph", error);
}

cr_status cr_caller_own(const cr_visit *visit, uint64_t bytes, uint64_t zeros, void **memory, cr_error *error) {
    owned *own = NULL;
    const cr_status status = take_memory(visit, bytes, zeros, &own, error);
    if (status == CR_OK) *memory = own->memory;
    return status;
}

/* ---- As a row ---- */

static cr_status put_row(const asked *a, const cr_visit *visit, uint8_t *scratch, cr_error *error) {
    cudaError_t failure = cudaSuccess;
    /* Where nobody asks, the failure goes to the head's padding, which nobody reads. */
    cr_axis_failure *failed =
        a->status ? a->status : (cr_axis_failure *)(void *)&((cr_axis_head *)(void *)scratch)->pad[1];
    if (a->status != NULL) failure = cudaMemsetAsync(a->status, 0, sizeof *failed, visit->stream);
    if (failure == cudaSuccess)
        failure =
            (cudaError_t)cr_axis_enqueue(a->axis, visit->multiprocessors, a->axis->to, scratch, failed, visit->stream);
    return cr_caller_error((int)failure, "enqueue", error);
}

/* ---- As a fold and a kernel that finishes it ---- */

static cr_status put_status(const asked *a, const cr_visit *visit, int failure, cr_error *error) {
    if (failure == 0 && a->status != NULL) failure = (int)cudaMemsetAsync(a->status, 0, 8, visit->stream);
    return cr_caller_error(failure, "enqueue", error);
}

static cr_status finish_fold(const asked *a, const cr_visit *visit, cr_fold_slot *slot, uint64_t n, cr_error *error) {
    if (a->linear != NULL)
        return cr_caller_error(cr_linear_enqueue(a->fold.dtype, a->fold.families, n, a->linear, slot, visit->stream),
                               "linear", error);
    cr_gpu_axis axis = *a->axis;
    axis.shape.n = n;
    if (n == 0) return cr_fail(error, CR_UNIMPLEMENTED, "arrays: none has an element, of which a GPU makes no answers");
    return put_status(a, visit, cr_answer_enqueue(&axis, slot, visit->stream), error);
}

static cr_status put_array(const asked *a, const cr_visit *visit, cr_gpu_state *state, cr_fold_slot *slot,
                           cr_error *error) {
    const cr_gpu_fold fold = {a->fold.dtype, a->fold.families, a->fold.arrays[0].data, a->fold.arrays[0].n, 0, 0};
    cr_fold_args args = {0};
    cr_fold_prepare(&args, fold.dtype, fold.data, fold.n, 0, visit->multiprocessors, state, slot);
    args.second = a->fold.second;
    int failure = 0;
    if (a->linear != NULL && fold.n != 0) failure = cr_linear_begin(fold.dtype, fold.families, slot, visit->stream);
    if (failure != 0) return cr_caller_error(failure, "linear", error);
    if (a->linear == NULL && fold.n <= CR_FOLD_MAX && cr_answered_enqueue(a->axis, &args, visit->stream, &failure))
        return put_status(a, visit, failure, error);
    cr_status status = cr_caller_launch(&args, &fold, visit->stream, error);
    return status == CR_OK ? finish_fold(a, visit, slot, fold.n, error) : status;
}

/* The descriptors are the graph's, too: in its node, or in memory that it owns. */
static cr_status put_owned_list(const asked *a, const cr_visit *visit, owned *own, cr_gpu_state *state,
                                cr_fold_slot *slot, cr_error *error) {
    cr_list_args args = {0};
    uint64_t n = 0;
    const size_t bytes = (a->fold.count + 1) * sizeof(cr_list_array);
    const bool told = cr_caller_list_is_told(a->fold.count);
    void *host = told ? args.told : a->fold.count < CR_LIST_ROWS / 2 ? malloc(bytes) : NULL;
    if (host == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "graph: no memory for the list");
    cr_status status = CR_OK;
    if (!cr_caller_list_write(&a->fold, host, visit, state, slot, &args, &n))
        status = cr_fail(error, CR_INVALID_ARGUMENT, "arrays: more than %llu elements in all",
                         (unsigned long long)CR_FOLD_MAX);
    if (status == CR_OK && !told)
        status = cr_caller_error((int)allocate_beside(&own->list, bytes, host, bytes), "graph", error);
    if (!told) free(host);
    args.arrays = own->list; /* NULL: the launch has them */
    if (status == CR_OK && n != 0) status = cr_caller_list_launch(&args, &a->fold, visit->stream, error);
    return status == CR_OK ? finish_fold(a, visit, slot, n, error) : status;
}

/* ---- Where the memory is ---- */

static cr_status put_in_graph(const asked *a, const cr_visit *visit, cr_error *error) {
    const size_t state_bytes = sizeof(cr_gpu_state) + sizeof(cr_fold_slot);
    owned *own = NULL;
    const cr_status made = take_memory(visit, a->by_fold ? state_bytes : cr_caller_scratch(a->axis, visit),
                                       a->by_fold ? state_bytes : sizeof(cr_axis_head), &own, error);
    if (made != CR_OK) return made;
    if (!a->by_fold) return put_row(a, visit, own->memory, error);
    cr_gpu_state *state = own->memory;
    cr_fold_slot *slot = (cr_fold_slot *)(void *)(state + 1);
    return a->fold.count > 1 ? put_owned_list(a, visit, own, state, slot, error)
                             : put_array(a, visit, state, slot, error);
}

static cr_status put_in_room(const asked *a, const cr_visit *visit, cr_error *error) {
    cr_room *room = NULL;
    uint64_t n = 0;
    cr_status status = cr_room_take(visit, &room, error);
    if (status != CR_OK) return status;
    pthread_mutex_lock(&room->mutex);
    if (!a->by_fold) {
        status = cr_caller_need_scratch(room, a->axis, visit, error);
        if (status == CR_OK) status = put_row(a, visit, room->scratch, error);
    } else if (a->fold.count == 1) {
        status = put_array(a, visit, room->state, room->answer, error);
    } else {
        status = cr_caller_list_put(room, visit, &a->fold, room->answer, &n, error);
        if (status == CR_OK) status = finish_fold(a, visit, room->answer, n, error);
    }
    if (status == CR_OK)
        status = cr_caller_list_is_told(a->fold.count) ? cr_room_mark(room, visit, error)
                                                       : cr_caller_list_mark(room, NULL, visit, error);
    if (status != CR_OK && cr_room_settle(room, visit->stream) && !a->by_fold)
        cr_room_drop_scratch(room, visit->stream);
    pthread_mutex_unlock(&room->mutex);
    cr_room_give(room);
    return status;
}

/* What is asked, by the way that is for it. */
static cr_status take(asked *a, const cr_gpu_axis *axis, const cr_caller_array *arrays, size_t count, void *stream,
                      void *status, cr_error *error) {
    *a = (asked){.axis = axis, .one = {axis->data, axis->shape.n, axis->dtype}, .status = status};
    a->by_fold = cr_answer_takes(axis);
    a->fold = (cr_caller_fold){.dtype = axis->dtype,
                               .families = a->by_fold ? cr_answer_families(axis) : 0,
                               .arrays = &a->one,
                               .count = 1,
                               .stream = stream,
                               .second = axis->second};
    if (count <= 1) return a->by_fold ? CR_OK : cr_caller_check_axis(axis, error);
    a->fold.arrays = arrays;
    a->fold.count = count;
    if (a->by_fold && cr_caller_lists(&a->fold)) return CR_OK;
    return cr_fail(
        error, CR_UNIMPLEMENTED,
        "ops: of several arrays only sums of floats (and their means and norms) are finished in device memory: ask "
        "for answers in host memory");
}

cr_status cr_caller_enqueue(const cr_gpu_axis *axis, const cr_caller_array *arrays, size_t count, void *stream,
                            void *status, cr_error *error) {
    cr_visit visit;
    asked a;
    if (axis->shape.outer * axis->shape.inner == 0) return CR_OK;
    cr_status s = take(&a, axis, arrays, count, stream, status, error);
    if (s != CR_OK) return s;
    s = cr_caller_enter(&visit, count > 1 ? cr_caller_data(arrays, count) : axis->data, stream, error);
    if (s != CR_OK) return s;
    if (axis->second != NULL) s = cr_caller_check_beside(axis->second, "second", &visit, error);
    if (s == CR_OK) s = cr_caller_check_to(axis, &visit, error);
    if (s == CR_OK) s = visit.captured ? put_in_graph(&a, &visit, error) : put_in_room(&a, &visit, error);
    cr_caller_leave(&visit);
    return s;
}

/* ---- Linear forms ---- */

cr_status cr_caller_linear(const cr_caller_fold *fold, const cr_linear_to *to, cr_error *error) {
    cr_visit visit;
    const asked a = {.fold = *fold, .by_fold = true, .linear = to};
    const void *data = cr_caller_data(fold->arrays, fold->count);
    cr_status status = cr_linear_takes(fold->dtype, fold->families, to->as, error);
    if (status == CR_OK && fold->count > 1 && !cr_caller_lists(fold))
        status = cr_fail(error, CR_UNIMPLEMENTED,
                         "arrays: of several only sums of floats have their linear form in device memory: call for "
                         "each, and add the vectors up");
    if (status != CR_OK) return status;
    status = cr_caller_enter(&visit, data != NULL ? data : to->sums, fold->stream, error);
    if (status != CR_OK) return status;
    status = visit.captured ? put_in_graph(&a, &visit, error) : put_in_room(&a, &visit, error);
    cr_caller_leave(&visit);
    return status;
}

cr_status cr_caller_from_linear(const cr_gpu_axis *axis, uint32_t families, const int64_t *sums, void *stream,
                                void *wrong, cr_error *error) {
    cr_visit visit;
    cudaError_t failure = cudaSuccess;
    if (!cr_answer_takes(axis))
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "ops: of a linear form in device memory sums of floats, their means and norms are finished "
                       "there: copy the vector to host memory for the others");
    cr_status status = cr_caller_enter(&visit, sums, stream, error);
    if (status != CR_OK) return status;
    if (wrong != NULL) failure = cudaMemsetAsync(wrong, 0, sizeof(unsigned long long), visit.stream);
    if (failure == cudaSuccess) failure = (cudaError_t)cr_linear_answer(axis, families, sums, wrong, visit.stream);
    cr_caller_leave(&visit);
    return cr_caller_error((int)failure, "linear", error);
}
