/* each: a partial for each of many folds. Small arrays go in packs, a launch for many, whose answers come as words in pinned memory
 * and are merged here; larger ones are folds of their own. What one pack and the slots take is one round.
 *
 * Thread: any. Owner: the room. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/internal.h"

enum {
    PACK_UNITS = 4096,
    PACK_MORE = 1 << 19, /* words: for rare answers that are long, of all units at once */
    SLOTS = 16,          /* of a round */
};

/* What a round has put in the stream. */
typedef struct round {
    uint32_t packed, folded;
    uint32_t *units; /* of each that is packed: its first unit */
    size_t *numbers; /* which fold each is */
    uint32_t slots[SLOTS];
    size_t slot_numbers[SLOTS];
} round_of;

static cr_status make_pack(cr_room *room, cr_error *error) {
    void *memory = NULL;
    if (room->pack_memory != NULL) return CR_OK;
    const size_t bytes = cr_pack_words(PACK_UNITS, PACK_MORE) * sizeof(uint64_t);
    cr_status status = cr_caller_error((int)cr_caller_pinned(&memory, bytes), "pack", error);
    if (status != CR_OK) return status;
    memset(memory, 0, bytes);
    room->pack_memory = memory;
    cr_pack_init(&room->pack, memory, PACK_UNITS, PACK_MORE);
    return CR_OK;
}

static bool is_small(const cr_gpu_fold *fold) { return fold->n <= CR_GPU_PACK_BYTES / cr_dtype_size(fold->dtype); }

/* A fold more for the round; false: it is full, or *status says why not. */
static bool add(cr_room *room, const cr_visit *visit, const cr_gpu_fold *fold, size_t number, round_of *round,
                cr_status *status, cr_error *error) {
    bool telling;
    cr_error full; /* of slots: the round ends, and nothing has failed */
    if (!cr_fold_takes(fold->dtype, fold->families)) {
        *status = cr_fail(error, CR_UNIMPLEMENTED, "the GPU has no kernels for these ops of dtype %s",
                          cr_dtype_name(fold->dtype));
        return false;
    }
    if (is_small(fold)) {
        if (round->packed == PACK_UNITS || !cr_pack_add(&room->pack, fold, &round->units[round->packed])) return false;
        round->numbers[round->packed++] = number;
        return true;
    }
    if (round->folded == SLOTS || cr_room_slot(room, &round->slots[round->folded], &full) != CR_OK) return false;
    const uint32_t slot = round->slots[round->folded];
    round->slot_numbers[round->folded++] = number;
    *status = cr_caller_fold_one(room, visit, fold, slot, &telling, error);
    return *status == CR_OK;
}

/* Waits for the round, and says what it found. found NULL: it failed, and is only waited for. */
static cr_status end(cr_room *room, const cr_visit *visit, const cr_gpu_fold *folds, const round_of *round,
                     void (*found)(void *user, size_t number, const cr_partial *partial), void *user,
                     cr_partial *partial, cr_error *error) {
    cr_status status = cr_caller_error((int)cudaEventRecord(room->last, visit->stream), "event", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status == CR_OK && !cr_pack_done(&room->pack))
        status = cr_fail(error, CR_INTERNAL, "pack: the GPU has left words out");
    for (uint32_t i = 0; i < round->packed && status == CR_OK && found != NULL; i++) {
        cr_pack_result(&room->pack, &folds[round->numbers[i]], round->units[i], partial);
        found(user, round->numbers[i], partial);
    }
    if (status == CR_OK || cr_room_settle(room, visit->stream)) cr_pack_clear(&room->pack);
    for (uint32_t i = 0; i < round->folded; i++) {
        cr_fold_slot *slot = &room->slots[round->slots[i]];
        const cr_gpu_fold *fold = &folds[round->slot_numbers[i]];
        if (status == CR_OK && found != NULL) {
            cr_fold_result(slot, fold->dtype, fold->families, fold->n);
            found(user, round->slot_numbers[i], &slot->partial);
        }
        cr_room_free_slot(room, round->slots[i]);
    }
    return status;
}

static cr_status run(cr_room *room, const cr_visit *visit, const cr_gpu_fold *folds, size_t count,
                     void (*found)(void *user, size_t number, const cr_partial *partial), void *user, round_of *round,
                     cr_partial *partial, cr_error *error) {
    cr_status status = make_pack(room, error);
    for (size_t next = 0; next < count && status == CR_OK;) {
        const size_t before = next;
        round->packed = round->folded = 0;
        while (next < count && add(room, visit, &folds[next], next, round, &status, error)) next++;
        if (status == CR_OK) status = cr_caller_error(cr_pack_start(&room->pack, visit->stream), "pack", error);
        if (status == CR_OK && next == before)
            status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "stream: other calls on it hold all of its workspace");
        cr_error ignored;
        const cr_status ended = end(room, visit, folds, round, status == CR_OK ? found : NULL, user, partial,
                                    status == CR_OK ? error : &ignored);
        if (status == CR_OK) status = ended;
    }
    return status;
}

static const void *first_data(const cr_gpu_fold *folds, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (folds[i].n != 0) return folds[i].data;
    return NULL;
}

cr_status cr_caller_each(const cr_gpu_fold *folds, size_t count, void *stream,
                         void (*found)(void *user, size_t number, const cr_partial *partial), void *user,
                         cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_status status = cr_caller_enter(&visit, first_data(folds, count), stream, error);
    if (status != CR_OK) return status;
    struct {
        round_of round;
        cr_partial partial;
        uint32_t units[PACK_UNITS];
        size_t numbers[PACK_UNITS];
    } *own = malloc(sizeof *own);
    if (own == NULL) status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "list: no memory for it");
    if (status == CR_OK) status = cr_caller_check_wait(&visit, error);
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        own->round = (round_of){.units = own->units, .numbers = own->numbers};
        pthread_mutex_lock(&room->mutex);
        status = run(room, &visit, folds, count, found, user, &own->round, &own->partial, error);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    free(own);
    cr_caller_leave(&visit);
    return status;
}
