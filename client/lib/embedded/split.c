/* split: the ranges and who takes them. Thread: any; a split is its caller's until all threads are back. Owner: the caller. */
#include "client/lib/embedded/split.h"

#include "client/lib/embedded/thread_pool.h"
#include "engine/queue.h"
#include "kernels/core/dtype.h"
#include "kernels/cpu/fold.h"

enum {
    WORTH_BYTES = 128 * 1024, /* a thread more for so many */
    PIECE_LEAST_BYTES = 64 * 1024,
    PIECE_MOST_BYTES = 1024 * 1024,
    PIECES = 4,                     /* of a range, between these limits */
    FAR_BYTES = 2 * 1024 * 1024,    /* a range that is longer is in no core's own cache */
    FAR_PIECES = 16,                /* of it */
    CUT_ELEMENTS = 4096,            /* cuts fall on multiples */
    CLAIM_BYTES = 64 * 1024 * 1024, /* for each thread: some ten milliseconds, after which deadlines are looked at */
    CLAIM_MOST_BYTES = 1024 * 1024 * 1024,
};

typedef struct split {
    cr_thread_pool *pool;
    cr_partial *into;
    const cr_view *view;
    uint64_t index, piece;
    size_t size;
    uint32_t ranges, families, wants; /* the last two as `into` has them: folds change them while they work */
    cr_dtype dtype;
} split;

static uint64_t round_up(uint64_t elements) { return (elements + CUT_ELEMENTS - 1) / CUT_ELEMENTS * CUT_ELEMENTS; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Of short arrays each thread has a range of its own, which its core's cache may still hold from the call before, and then takes from the
 * others'. Of long ones all take from one: on 16 cores some get twice as much of the memory as others, and 1 GiB took a tenth longer where
 * the quick ones had to look for what is left. */
static uint32_t cut(const split *s, uint32_t threads, uint64_t elements) {
    const uint64_t range = round_up((elements + threads - 1) / threads);
    const uint32_t ranges = range * s->size > FAR_BYTES ? 1 : threads;
    for (uint32_t i = 0; i < ranges; i++) {
        cr_thread_slot *slot = cr_thread_pool_slot(s->pool, i);
        atomic_store_explicit(&slot->next, least(i * range, elements), memory_order_relaxed);
        slot->end = ranges > 1 ? least((i + 1) * range, elements) : elements;
    }
    return ranges;
}

/* Of the range, the next piece; false: there is none. */
static bool take_piece(const split *s, cr_thread_slot *range, uint64_t *at, uint64_t *count) {
    if (atomic_load_explicit(&range->next, memory_order_relaxed) >= range->end) return false;
    *at = atomic_fetch_add_explicit(&range->next, s->piece, memory_order_relaxed);
    if (*at >= range->end) return false;
    *count = least(s->piece, range->end - *at);
    return true;
}

/* What thread `number` does. The caller's folds into the partial that all others are merged into at the end. */
static void fold_pieces(void *argument, uint32_t number) {
    const split *s = argument;
    cr_thread_slot *own = cr_thread_pool_slot(s->pool, number);
    cr_partial *partial = number == 0 ? s->into : &own->partial;
    for (uint32_t i = 0; i < s->ranges; i++) {
        cr_thread_slot *range = cr_thread_pool_slot(s->pool, (number + i) % s->ranges);
        for (uint64_t at, count; take_piece(s, range, &at, &count);) {
            if (number != 0 && !own->used) {
                cr_partial_init(partial, s->dtype, s->families);
                cr_partial_want(partial, s->wants);
                own->used = true;
            }
            const cr_view view = cr_view_from(*s->view, at, s->size);
            cr_cpu_fold_view(partial, &view, count, s->index + at);
        }
    }
}

static void fold_by(cr_thread_pool *pool, cr_partial *into, const cr_view *view, uint64_t elements, uint64_t index) {
    const cr_dtype dtype = (cr_dtype)into->dtype;
    const size_t size = cr_dtype_size(dtype);
    const uint32_t threads = (uint32_t)least(cr_thread_pool_threads(pool), elements * size / WORTH_BYTES);
    split s = {pool, into, view, index, 0, size, 0, into->families, into->wants, dtype};
    s.ranges = cut(&s, threads, elements);
    uint64_t piece = elements * size / threads / (s.ranges > 1 ? PIECES : FAR_PIECES);
    if (piece < PIECE_LEAST_BYTES) piece = PIECE_LEAST_BYTES;
    if (piece > PIECE_MOST_BYTES) piece = PIECE_MOST_BYTES;
    s.piece = round_up(piece / size);
    cr_thread_pool_run(pool, threads - 1, elements * size, fold_pieces, &s);
    for (uint32_t i = 1; i < cr_thread_pool_threads(pool); i++) {
        const cr_thread_slot *slot = cr_thread_pool_slot(pool, i);
        if (slot->used) cr_partial_merge(into, &slot->partial);
    }
}

void cr_split_fold(cr_partial *into, const cr_view *view, uint64_t elements, uint64_t index) {
    const cr_dtype dtype = (cr_dtype)into->dtype;
    const bool in_order = cr_partial_grain(dtype, into->families) > 1;
    cr_thread_pool *pool = in_order ? NULL : cr_thread_pool_take(view->data, elements * cr_dtype_size(dtype));
    if (pool == NULL) {
        cr_cpu_fold_view(into, view, elements, index);
        return;
    }
    fold_by(pool, into, view, elements, index);
    cr_thread_pool_give(pool);
}

static uint64_t claim_bytes = CLAIM_BYTES;

uint64_t cr_split_bytes(void) {
    const uint32_t threads = cr_thread_pool_known();
    if (threads == 1) return 0;
    if (!cr_thread_pool_is_free()) return least(claim_bytes, CR_CLAIM_MOST_BYTES);
    return threads != 0 ? least(threads * claim_bytes, CLAIM_MOST_BYTES) : claim_bytes;
}

void cr_split_claims(uint64_t bytes) { claim_bytes = bytes != 0 ? bytes : CLAIM_BYTES; }
