/* wide: a turn in which the thread pool of the process claims from a connection's queue, beside the caller's thread: for inputs in memory
 * that split.h does not cut, such as those along an axis, by offsets, by key, by rank; and for files (unread.c). What workers carry they
 * give back before the turn ends, but for what they read files into, so that between turns the queue is the caller's alone.
 *
 * Thread: the one that uses the connection; workers of the pool, until the turn is over. Owner: the connection's local. */
#include "client/lib/embedded/embedded.h"
#include "client/lib/embedded/thread_pool.h"

enum { TURN_NS = 10 * 1000 * 1000 }; /* of the caller; then deadlines and Ctrl-C are looked at */

typedef struct wide_turn {
    cr_line *line;
    cr_thread_pool *pool;
    uint64_t until_ns;
    _Atomic bool over, claimed;
} wide_turn;

static void claim_some(void *argument, uint32_t number) {
    wide_turn *turn = argument;
    cr_queue *queue = turn->line->queue;
    cr_thread_slot *slot = cr_thread_pool_slot(turn->pool, number);
    cr_worker other = {.fetched = slot->fetched}, *worker = number == 0 ? &turn->line->worker : &other;
    if (worker->hand.state != NULL)
        atomic_store(&turn->claimed, true); /* it is let go of where there is nothing else */
    while (!atomic_load(&turn->over) && cr_worker_next(worker, queue, turn->line->threads, false)) {
        cr_worker_fold(worker, queue);
        atomic_store_explicit(&turn->claimed, true, memory_order_relaxed);
        if (number == 0 && cr_now_ns() >= turn->until_ns) atomic_store(&turn->over, true);
    }
    cr_worker_rest(worker, queue);
    if (number == 0) return;
    slot->fetched = other.fetched;
    other.fetched = NULL;
    cr_worker_end(&other, queue);
}

/* Whether each thread may read what it folds (unread.c). */
static bool is_file(const cured_call *call, const cr_local_input *input) {
    return input->fd >= 0 && call->geometry == CR_GEOMETRY_WHOLE &&
           cr_partial_grain((cr_dtype)call->request.reduce.dtype, call->needs.families) == 1;
}

uint32_t cr_wide_threads(const cured_call *call, const cr_local_input *input) {
    if (!call->calls->local->pooled || (input->memory == NULL && !is_file(call, input))) return 1;
    cr_thread_pool *pool = cr_thread_pool_take(input->memory, input->bytes);
    if (pool == NULL) return 1;
    const uint32_t threads = cr_thread_pool_threads(pool);
    cr_thread_pool_give(pool);
    return threads;
}

bool cr_wide_step(const cr_work *work) {
    cr_thread_pool *pool = cr_thread_pool_take(NULL, work->wide_bytes);
    if (pool == NULL) return false;
    wide_turn turn = {.line = work->line, .pool = pool, .until_ns = cr_now_ns() + TURN_NS};
    cr_thread_pool_run(pool, cr_thread_pool_threads(pool) - 1, work->wide_bytes, claim_some, &turn);
    cr_thread_pool_give(pool);
    return atomic_load(&turn.claimed);
}
