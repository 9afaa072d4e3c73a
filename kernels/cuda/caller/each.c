/* each: a partial for each of many folds. Small arrays go in packs, a launch for many, whose answers come as words in pinned memory
 * and are merged here; larger ones are folds of their own, each of which begins while the one before ends.
 *
 * What is in the stream stands in two lines, of the pack and of slots. Where a line is full, the host takes what came first, and
 * the GPU goes on with the rest meanwhile.
 * Thread: any. Owner: the room. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/caller/internal.h"

enum {
    PACK_UNITS = 4096,
    PACK_BATCH = 512,    /* folds of a launch */
    PACK_MORE = 1 << 19, /* words: for rare answers that are long, of all units at once */
    SLOTS = CR_ROOM_SLOTS,
    MARKED = 8, /* folds to an event: a fold does not begin early behind one */
    LOOKS = 64, /* at the pack's words, before the driver is asked */
};

/* What a call has put in the stream and not told yet. */
typedef struct line_of {
    cr_room *room;
    const cr_visit *visit;
    const cr_gpu_fold *folds;
    const cr_caller_told *to;
    cr_partial partial;
    bool follows;   /* the stream's last work is this call's */
    bool by_number; /* where a fold has numbers, they are told */
    /* The pack: folds [told, packed), of which those before `launched` are in the stream. */
    uint32_t packed, launched, told;
    uint32_t units[PACK_UNITS + 1]; /* the first unit of each, and behind the last */
    size_t numbers[PACK_UNITS];     /* which fold each is */
    /* A ring: folds [first, first + folded), the last `unmarked` of them without an event. */
    uint32_t first, folded, unmarked;
    struct {
        size_t number;
        uint32_t slot, mark; /* mark: the slot whose event comes behind it */
    } slots[SLOTS];
} line_of;

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

static bool is_small(const cr_gpu_fold *fold) {
    return fold->n <= CR_GPU_PACK_BYTES && fold->n * cr_dtype_size(fold->dtype) <= CR_GPU_PACK_BYTES &&
           (fold->families & ~CR_GPU_PACK_FAMILIES) == 0;
}

/* ---- The pack ---- */

static cr_status launch_pack(line_of *line, cr_error *error) {
    if (line->launched == line->packed) return CR_OK;
    cudaError_t failure = (cudaError_t)cr_pack_start(&line->room->pack, line->visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(line->room->last, line->visit->stream);
    line->launched = line->packed;
    line->follows = true;
    return cr_caller_error((int)failure, "pack", error);
}

/* Waits for the words of units before `upto`. */
static cr_status await_units(line_of *line, uint32_t upto, cr_error *error) {
    cr_room *room = line->room;
    for (uint32_t looks = 1; room->pack.there < upto; looks++) {
        if (cr_pack_done(&room->pack) || room->pack.there >= upto || looks % LOOKS != 0) continue;
        if (cr_caller_query(room->last) == cudaErrorNotReady) continue;
        cr_status status = cr_room_wait(room, room->last, error);
        if (status == CR_OK && !cr_pack_done(&room->pack))
            status = cr_fail(error, CR_INTERNAL, "pack: the GPU has left words out");
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

static void report(line_of *line, size_t number, const cr_partial *partial) {
    line->to->found(line->to->user, number, partial);
}

/* Reports the pack's fold, which is there. */
static void report_small(line_of *line, size_t number, uint32_t unit) {
    const cr_pack *pack = &line->room->pack;
    const cr_gpu_fold *fold = &line->folds[number];
    cr_number sums[CR_KNOWN_SUMS];
    if (line->by_number && cr_pack_numbers(pack, fold, unit, sums) && line->to->numbers(line->to->user, number, sums))
        return;
    cr_pack_result(pack, fold, unit, &line->partial);
    report(line, number, &line->partial);
}

/* Reports all that is in the pack, which is empty then. */
static cr_status end_pack(line_of *line, cr_error *error) {
    cr_status status = launch_pack(line, error);
    for (; line->told < line->packed && status == CR_OK; line->told++) {
        const size_t number = line->numbers[line->told];
        status = await_units(line, line->units[line->told + 1], error);
        if (status != CR_OK) break;
        report_small(line, number, line->units[line->told]);
    }
    if (status != CR_OK) return status;
    if (line->packed != 0) cr_pack_clear(&line->room->pack);
    line->packed = line->launched = line->told = 0;
    return CR_OK;
}

static cr_status add_small(line_of *line, size_t number, cr_error *error) {
    cr_pack *pack = &line->room->pack;
    const cr_gpu_fold *fold = &line->folds[number];
    if (line->packed == PACK_UNITS || !cr_pack_add(pack, fold, &line->units[line->packed])) {
        cr_status status = end_pack(line, error);
        if (status != CR_OK) return status;
        if (!cr_pack_add(pack, fold, &line->units[0])) return cr_fail(error, CR_INTERNAL, "pack: it takes no fold");
    }
    line->numbers[line->packed++] = number;
    line->units[line->packed] = pack->count;
    return line->packed - line->launched == PACK_BATCH ? launch_pack(line, error) : CR_OK;
}

/* ---- Slots ---- */

static cr_status mark(line_of *line, cr_error *error) {
    if (line->unmarked == 0) return CR_OK;
    const uint32_t last = line->first + line->folded - 1, slot = line->slots[last % SLOTS].slot;
    for (uint32_t i = 0; i < line->unmarked; i++) line->slots[(last - i) % SLOTS].mark = slot;
    line->unmarked = 0;
    return cr_caller_error((int)cudaEventRecord(line->room->events[slot], line->visit->stream), "event", error);
}

/* Tells of the fold that came first, and frees its slot. */
static cr_status end_first(line_of *line, cr_error *error) {
    const uint32_t at = line->first % SLOTS, slot = line->slots[at].slot;
    const cr_gpu_fold *fold = &line->folds[line->slots[at].number];
    cr_fold_slot *to = &line->room->slots[slot];
    cr_status status = line->unmarked == line->folded ? mark(line, error) : CR_OK;
    if (status == CR_OK) status = cr_room_wait(line->room, line->room->events[line->slots[at].mark], error);
    if (status != CR_OK) return status;
    cr_fold_result(to, fold->dtype, fold->families, fold->n);
    report(line, line->slots[at].number, &to->partial);
    cr_room_free_slot(line->room, slot);
    line->first++;
    line->folded--;
    return CR_OK;
}

static cr_status add_large(line_of *line, size_t number, cr_error *error) {
    uint32_t slot;
    bool telling;
    cr_error full;
    while (line->folded == SLOTS || cr_room_slot(line->room, &slot, &full) != CR_OK) {
        if (line->folded == 0)
            return cr_fail(error, CR_RESOURCE_EXHAUSTED, "stream: other calls on it hold all of its workspace");
        cr_status status = end_first(line, error);
        if (status != CR_OK) return status;
    }
    const uint32_t at = (line->first + line->folded++) % SLOTS;
    line->slots[at].slot = slot;
    line->slots[at].number = number;
    line->unmarked++;
    cr_status status =
        cr_caller_fold_put(line->room, line->visit, &line->folds[number],
                           (cr_caller_beside){{.kind = CR_MASK_NONE}, NULL}, slot, line->follows, &telling, error);
    line->follows = true;
    return status == CR_OK && line->unmarked == MARKED ? mark(line, error) : status;
}

/* ---- A call ---- */

static cr_status run(line_of *line, size_t count, cr_error *error) {
    cr_status status = make_pack(line->room, error);
    const cr_gpu_fold *taken = NULL; /* the last that was looked at: many are alike */
    for (size_t i = 0; i < count && status == CR_OK; i++) {
        const cr_gpu_fold *fold = &line->folds[i];
        const bool alike = taken != NULL && taken->dtype == fold->dtype && taken->families == fold->families;
        taken = fold;
        if (!alike && !cr_fold_takes(fold->dtype, fold->families))
            status = cr_fail(error, CR_UNIMPLEMENTED,
                             "ops: the GPU has no kernel for one of them of %s: reduce copies in host memory",
                             cr_dtype_name(fold->dtype));
        else
            status = (is_small(fold) ? add_small : add_large)(line, i, error);
    }
    if (status == CR_OK) status = launch_pack(line, error);
    if (status == CR_OK) status = mark(line, error);
    while (line->folded != 0 && status == CR_OK) status = end_first(line, error);
    return status == CR_OK ? end_pack(line, error) : status;
}

/* Of a call that failed: its work is waited for, because its memory is used again. */
static void give_up(line_of *line) {
    if (cr_room_settle(line->room, line->visit->stream) && line->room->pack_memory != NULL)
        cr_pack_clear(&line->room->pack);
    for (; line->folded != 0; line->first++, line->folded--)
        cr_room_free_slot(line->room, line->slots[line->first % SLOTS].slot);
}

cr_status cr_caller_each(const cr_gpu_fold *folds, size_t count, void *stream, const cr_caller_told *told,
                         cr_error *error) {
    cr_visit visit;
    const void *data = NULL;
    for (size_t i = 0; i < count && data == NULL; i++)
        if (folds[i].n != 0) data = folds[i].data;
    cr_status status = cr_caller_enter(&visit, data, stream, error);
    if (status != CR_OK) return status;
    line_of *line = malloc(sizeof *line);
    if (line == NULL) status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "list: no memory for it");
    if (status == CR_OK) status = cr_caller_check_wait(&visit, error);
    cr_room *room = NULL;
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (status == CR_OK) {
        line->room = room;
        line->visit = &visit;
        line->folds = folds;
        line->to = told;
        line->by_number = told->numbers != NULL && cr_fast_on(CR_FAST_GPU_NUMBERS);
        line->follows = false;
        line->packed = line->launched = line->told = line->first = line->folded = line->unmarked = 0;
        pthread_mutex_lock(&room->mutex);
        status = run(line, count, error);
        if (status != CR_OK) give_up(line);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    free(line);
    cr_caller_leave(&visit);
    return status;
}
