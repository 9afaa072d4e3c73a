/* internal: what the files of libcured-cuda share. enter.c: whose stream, device and context a call is of. room.c: what each stream
 * has. call.c, each.c, list.c: folds. answers.c: answers along
 * an axis. enqueue.c: answers in device memory. segments.c: by offsets.
 * keys.c: by key. quantile.c: by rank. block.c: of a block. bits.c: bools of a bit each. word.c: whether answers in device memory have values.
 *
 * A room is one stream's. Its mutex is held while work is put in the stream, so that the parts of two threads' calls do not mix; a
 * wait holds it only where the room's memory for answers is read.
 *
 *   room ──┬─ state: what the blocks of folds share; zero whenever no fold runs
 *          ├─ slots: pinned, one for each fold whose result is not read yet, each with an event
 *          ├─ pack: pinned, for folds of small arrays; made when the first is asked for
 *          ├─ lists: descriptors of lists, in device memory, and pinned on the way there
 *          ├─ axis: scratch and answers, in device memory; made when the first is asked for
 *          ├─ offsets: likewise
 *          └─ groups: the states of reductions by key, likewise
 *
 * Thread: any. Owner: room.c owns the rooms. */
#ifndef CURED_KERNELS_CUDA_CALLER_INTERNAL_H
#define CURED_KERNELS_CUDA_CALLER_INTERNAL_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/caller/caller.h"
#include "kernels/cuda/pack/pack.h"
#include "kernels/cuda/plan/list.h"

/* What a CUDA call gave, as ours; CR_OK for success. what: "fold", "stream", … */
cr_status cr_caller_error(int failure, const char *what, cr_error *error);

/* ---- enter.c ---- */

/* From enter to leave the array's device is current. */
typedef struct cr_visit {
    int device;
    uint32_t multiprocessors;
    void *before; /* the context that was current */
    bool switched;
    cudaStream_t stream;
    unsigned long long stream_id; /* a handle may come again, its number does not; 0 of the legacy stream */
    bool captured, legacy;        /* legacy: the default stream, whose handle never goes */
} cr_visit;

/* data: of the array, NULL where it has no elements. Nothing is to be left where this fails. */
cr_status cr_caller_enter(cr_visit *visit, const void *data, void *stream, cr_error *error);
void cr_caller_leave(cr_visit *visit);
/* FAILED_PRECONDITION of what waits for its answers, in a stream that is captured. */
cr_status cr_caller_check_wait(const cr_visit *visit, cr_error *error);
/* Where no context is current, makes the device's current; else the runtime would make one, of device 0. Whether it did is for
 * cr_caller_unlend(). */
bool cr_caller_lend(int device);
void cr_caller_unlend(bool lent);
/* Whether this is a child of the process that asked first. */
bool cr_caller_is_child(void);
/* Whether this process may go on with what it began: the context is the one, and the process no child. */
cr_status cr_caller_alive(int device, unsigned long long context_id, cr_error *error);
/* The number of a device's primary context: after a reset it is another. */
unsigned long long cr_caller_context(int device);
/* Whether there is one GPU, so that no memory is another's. */
bool cr_caller_is_only(void);
/* Whether all is done that was put in the device's legacy stream. False also while that cannot be asked, as during some captures. */
bool cr_caller_legacy_idle(int device);

/* ---- room.c ---- */

enum { CR_ROOM_SLOTS = 32, CR_ROOM_SMALL = 64 * 1024 };

/* The host's half of the descriptors is in two parts, so that a list is written while the one before is copied. */
enum { CR_LIST_PARTS = 2 };
typedef struct cr_list_memory {
    uint8_t *device, *host; /* host: CR_LIST_PARTS times these bytes */
    size_t bytes;
    uint32_t part;                  /* the next list's */
    cudaEvent_t own[CR_LIST_PARTS]; /* recorded by lists for which no call waits, instead of the room's `last` */
    cudaEvent_t
        after[CR_LIST_PARTS]; /* behind the part's last copy: one of own, or a slot's; NULL: it was never used */
    void *
        outgrown; /* hosts of before, each with the next one's address in it: to free pinned memory waits for the device */
} cr_list_memory;

typedef struct cr_room {
    struct cr_room *next;
    int device;
    unsigned long long stream_id, context_id, used; /* used: when it was last, by the calls of this process */
    bool legacy;                                    /* the stream is: then `last` is not recorded for that */
    uint32_t calls;                                 /* under way; guarded by the rooms' mutex */
    bool doubtful;                                  /* likewise: see cr_room_doubt() */
    pthread_mutex_t mutex;                          /* all below */
    cr_gpu_state *state;
    cr_fold_slot *answer; /* behind the state, in device memory: of folds that are finished there */
    cr_fold_slot *slots;
    cudaEvent_t events[CR_ROOM_SLOTS];
    uint32_t taken;        /* slots, a bit each */
    cudaEvent_t last;      /* behind the last work for which no call waits */
    uint64_t *pack_memory; /* NULL: no pack was asked for */
    cr_pack pack;
    cr_list_memory list;
    uint8_t *scratch, *answers; /* along an axis: as cr_axis_room has them */
    uint8_t *small;             /* pinned: a failure, and answers of up to CR_ROOM_SMALL bytes */
    uint64_t scratch_bytes, answer_bytes;
    uint8_t *offsets; /* copies of those in host memory */
    uint64_t offset_bytes;
    uint8_t *groups; /* by key: the state of all groups */
    uint64_t group_bytes;
} cr_room;

/* The stream's room, not locked, for one call more. */
cr_status cr_room_take(const cr_visit *visit, cr_room **room, cr_error *error);
void cr_room_give(cr_room *room);
/* Locked: behind work for which no call waits. */
cr_status cr_room_mark(cr_room *room, const cr_visit *visit, cr_error *error);
/* Locked: a slot that is free, of which the caller is the owner until it frees it. RESOURCE_EXHAUSTED: too many calls wait. */
cr_status cr_room_slot(cr_room *room, uint32_t *slot, cr_error *error);
void cr_room_free_slot(cr_room *room, uint32_t slot);
/* Locked: device memory for the stream's next kernels, at least so much. What was there before goes when the stream has come past it. */
cr_status cr_room_grow(uint8_t **memory, uint64_t *bytes, uint64_t wanted, cudaStream_t stream, cr_error *error);
/* Waits for the event: looks, and after a while lets others have the core. Captures of other threads go on. */
cr_status cr_room_wait(const cr_room *room, cudaEvent_t event, cr_error *error);
/* After a failure: waits by what means there are for all that was put in the stream, because its memory is used again. Where none works,
 * the room is never used or freed again. False: that is so, or its memory is gone with the context. */
bool cr_room_settle(cr_room *room, cudaStream_t stream);
/* Nobody knows whether the room's work is over: a stream's next call makes another room, until this one's events have all come. */
void cr_room_doubt(cr_room *room);
/* Frees the room's scratch: a launch that failed may have left its head other than zero. */
void cr_room_drop_scratch(cr_room *room, cudaStream_t stream);
/* From relax to restore this thread's calls end no capture that is under way in another. Where relax fails, restore does nothing. */
cudaError_t cr_caller_relax(enum cudaStreamCaptureMode *before);
void cr_caller_restore(enum cudaStreamCaptureMode before);
/* cudaEventQuery() and cudaMallocHost(), without ending captures that are under way in other threads. */
cudaError_t cr_caller_query(cudaEvent_t event);
cudaError_t cr_caller_pinned(void **memory, size_t bytes);
void cr_caller_trim(void);

/* ---- call.c, list.c, each.c ---- */

cr_status cr_caller_start(const cr_caller_fold *fold, cr_caller_call **call, cr_error *error);
bool cr_caller_done(cr_caller_call *call);
cr_status cr_caller_finish(cr_caller_call *call, cr_partial *partial, cr_error *error);
/* The first array's data that has elements; NULL: none has. */
const void *cr_caller_data(const cr_caller_array *arrays, size_t count);
/* What lies beside the elements of an array: its mask, or none, and its second array, or NULL. */
typedef struct cr_caller_beside {
    cr_mask mask;
    const void *second;
} cr_caller_beside;
/* Locked: puts one array's fold in the stream, its result in the slot. follows: behind a fold or a pack of the same call. */
cr_status cr_caller_fold_put(cr_room *room, const cr_visit *visit, const cr_gpu_fold *fold, cr_caller_beside beside,
                             uint32_t slot, bool follows, bool *telling, cr_error *error);
/* The type of the memory at `data`, of which the call says `what`; an error where it is another GPU's than the visit's array. */
cr_status cr_caller_find(const void *data, const char *what, const cr_visit *visit, enum cudaMemoryType *type,
                         cr_error *error);
/* Whether `data` is memory that the device of the visit's array reads. */
cr_status cr_caller_check_beside(const void *data, const char *what, const cr_visit *visit, cr_error *error);
/* Whether none of the axis' answers goes to another GPU, whose streams would not wait for it. */
cr_status cr_caller_check_to(const cr_gpu_axis *axis, const cr_visit *visit, cr_error *error);
/* Puts a fold's launches in the stream: args, of cr_fold_prepare, say of what, under which mask, and where to. */
cr_status cr_caller_launch(cr_fold_args *args, const cr_gpu_fold *fold, cudaStream_t stream, cr_error *error);
/* Whether the fold's arrays go by one launch, and does it: likewise. *n: the elements of all. *telling: as in cr_caller_fold_put. */
bool cr_caller_lists(const cr_caller_fold *fold);
cr_status cr_caller_fold_list(cr_room *room, const cr_visit *visit, const cr_caller_fold *fold, uint32_t slot,
                              uint64_t *n, bool *telling, cr_error *error);
/* Whether the descriptors of so many arrays go with the launch, in args->told: then they need no memory, and no mark of a list. */
bool cr_caller_list_is_told(size_t count);
/* The same in parts: descriptors to `host`, with room for one more than there are arrays; and the launches, of descriptors at
 * args->arrays. False: there are too many elements. */
bool cr_caller_list_write(const cr_caller_fold *fold, void *host, const cr_visit *visit, cr_gpu_state *state,
                          cr_fold_slot *to, cr_list_args *args, uint64_t *n);
cr_status cr_caller_list_launch(cr_list_args *args, const cr_caller_fold *fold, cudaStream_t stream, cr_error *error);
/* Locked: behind a list's call, by one event for all: a slot's, or NULL where no call waits. */
cr_status cr_caller_list_mark(cr_room *room, cudaEvent_t event, const cr_visit *visit, cr_error *error);
/* Locked: what comes before the event is over, or waited for by whoever takes the room next: nobody need ask. */
void cr_caller_list_over(cr_room *room, cudaEvent_t event);
/* Through the room's own memory; a mark comes behind. */
cr_status cr_caller_list_put(cr_room *room, const cr_visit *visit, const cr_caller_fold *fold, cr_fold_slot *to,
                             uint64_t *n, cr_error *error);
cr_status cr_caller_each(const cr_gpu_fold *folds, size_t count, void *stream, const cr_caller_told *told,
                         cr_error *error);

/* ---- answers.c, enqueue.c ---- */

/* Frees the memory of graphs that are gone. */
void cr_caller_free_given_back(void);

/* ---- quantile.c ---- */

cr_status cr_caller_search(cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream, cr_error *error);
cr_status cr_caller_quantile(const cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream,
                             uint64_t *counts, cr_error *error);

/* What kernels along an axis take of it, and of a room. */
cr_status cr_caller_check_axis(const cr_gpu_axis *axis, cr_error *error);
uint64_t cr_caller_scratch(const cr_gpu_axis *axis, const cr_visit *visit);
cr_status cr_caller_need_scratch(cr_room *room, const cr_gpu_axis *axis, const cr_visit *visit, cr_error *error);

/* The same, of so many bytes. */
cr_status cr_caller_need_bytes(cr_room *room, uint64_t bytes, const cr_visit *visit, cr_error *error);
/* Memory that the graph under way owns, whose first bytes are zeros. */
cr_status cr_caller_own(const cr_visit *visit, uint64_t bytes, uint64_t zeros, void **memory, cr_error *error);

cr_status cr_caller_axis(const cr_gpu_axis *axis, void *stream, void *const *results, cr_error *error);
cr_status cr_caller_enqueue(const cr_gpu_axis *axis, const cr_caller_array *arrays, size_t count, void *stream,
                            void *status, cr_error *error);
cr_status cr_caller_linear(const cr_caller_fold *fold, const cr_linear_to *to, cr_error *error);
cr_status cr_caller_from_linear(const cr_gpu_axis *axis, uint32_t families, const int64_t *sums, void *stream,
                                void *wrong, cr_error *error);

/* ---- segments.c, keys.c ---- */

/* The axis that answers by offsets or by key have, as rows of one element. */
cr_gpu_axis cr_caller_answers_of(const cr_gpu_axis *axis, uint64_t count);
/* Room for answers of so many bytes. New memory is zeros, because the gaps between answers are copied, too. */
cr_status cr_caller_need_answers(cr_room *room, uint64_t bytes, const cr_visit *visit, cr_error *error);
/* Behind the kernels: waits for room->answers, laid out as cr_axis_lay_out says, whose first word says what is wrong. Where it is 0, the
 * answers are at results. */
cr_status cr_caller_bring(cr_room *room, const cr_visit *visit, const cr_gpu_axis *answers, const uint64_t *at,
                          void *const *results, unsigned long long *wrong, cr_error *error);
/* Whether the kernels read the offsets where they lie; and brings those there that they do not. */
cr_status cr_caller_find_offsets(const cr_offsets *offsets, const cr_visit *visit, bool *here, cr_error *error);
cr_status cr_caller_bring_offsets(cr_room *room, const cr_visit *visit, cr_offsets *offsets, cr_error *error);
/* Says which offset is wrong: of those in device memory by a copy. Waits. */
cr_status cr_caller_say_wrong(const cr_offsets *offsets, uint64_t elements, const cr_visit *visit, cr_error *error);
cr_status cr_caller_keys(const cr_gpu_keys *keys, void *stream, void *const *results, void *state, cr_error *error);
cr_status cr_caller_keys_partial(const cr_gpu_keys *keys, void *stream, const cr_caller_cells *told, cr_error *error);

cr_status cr_caller_segments(const cr_gpu_segments *segments, void *stream, void *const *results, void *state,
                             cr_error *error);

/* ---- block.c ---- */

cr_status cr_caller_block(const void *data, cr_dtype dtype, const cr_layout *block, void *stream, uint64_t *digest,
                          cr_error *error);

/* ---- bits.c ---- */

cr_status cr_caller_bits(const void *bits, uint64_t first, uint64_t count, void *stream, void **bytes, cr_error *error);
void cr_caller_bits_free(void *bytes, void *stream);

/* ---- word.c ---- */

cr_status cr_caller_word(const void *data, void *stream, void **word, cr_error *error);
cr_status cr_caller_take_word(void *word, void *stream, uint64_t *value, cr_error *error);
bool cr_caller_lacks(uint64_t value, cr_error *error);
/* Whether what has failed may have left work in the stream: not what the answers themselves say. */
bool cr_caller_is_broken(cr_status status);

/* ---- order.c ---- */

cr_status cr_caller_order(const void *data, void *before, void *after, cr_error *error);
cr_status cr_caller_wait(const void *data, void *event, void *stream, bool here, cr_error *error);

/* ladder.c */
void cr_caller_ladder(const cr_ladder_functions *functions);

#endif
