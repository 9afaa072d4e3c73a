/* queue (double): runs work: which operation of which queue comes next, what it has to come after, and who waits.
 *
 * Thread: whoever calls the runtime, under the state's mutex; functions of the host run on a thread of this file. Owner: the state;
 * queues live as long as the process, because marks point to them. */
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/double/internal.hh"

enum { LOOKS = 4 }; /* a query runs fewer operations than so many */

uint64_t draw(uint64_t below) {
    the.drawn = the.drawn * 6364136223846793005u + 1442695040888963407u;
    return (the.drawn >> 33) % below;
}

queue *make_queue(context *home, bool blocking) {
    queue *q = new queue();
    q->home = home;
    q->home_number = home->number;
    q->id = ++the.numbers;
    q->blocking = blocking;
    the.queues.push_back(q);
    return q;
}

bool is_idle(const queue *q) { return q->ops.empty() && !q->busy; }

static bool undone(const mark_ptr &m) { return m && !m->done; }

/* ---- the thread that functions of the host run on ---- */

static void help_for_ever() {
    mine.helps = true;
    std::unique_lock<std::mutex> lock(the.mutex);
    while (true) {
        while (the.endings.empty()) the.changed.wait(lock);
        std::function<void()> what = std::move(the.endings.front());
        the.endings.pop_front();
        lock.unlock();
        what();
        lock.lock();
        what = nullptr; /* which may be the end of a graph */
        the.under_way--;
        the.changed.notify_all();
    }
}

void help(std::function<void()> what) {
    the.endings.push_back(std::move(what));
    the.under_way++;
    if (!the.helping) std::thread(help_for_ever).detach();
    the.helping = true;
    the.changed.notify_all();
}

/* ---- running ---- */

static bool is_ready(const queue *q) {
    if (q->busy || q->ops.empty()) return false;
    return std::none_of(q->ops.front().after.begin(), q->ops.front().after.end(), undone);
}

static void finish(const mark_ptr &end) {
    end->done = true;
    end->in->busy = false;
    the.counts.ran++;
    the.changed.notify_all();
}

/* Runs a step of the queue's first operation, which is ready. Gives whether that was one. */
bool run_one(queue *q) {
    if (!is_ready(q)) return false;
    op what = std::move(q->ops.front());
    q->ops.pop_front();
    if (what.host) {
        q->busy = true;
        help([given = std::move(what)] {
            given.host();
            std::lock_guard<std::mutex> lock(the.mutex);
            finish(given.end);
        });
        return true;
    }
    if (!what.step || what.step(what.turn++)) finish(what.end);
    else q->ops.push_front(std::move(what));
    return true;
}

/* The queue whose step brings the end nearer; NULL: the helping thread has it. */
static queue *needed(const mark_ptr &end) {
    queue *q = end->in;
    while (q && !q->busy && !q->ops.empty()) {
        const std::vector<mark_ptr> &after = q->ops.front().after;
        const auto found = std::find_if(after.begin(), after.end(), undone);
        if (found == after.end()) return q;
        q = (*found)->in;
    }
    return nullptr;
}

queue *draw_ready() {
    std::vector<queue *> ready;
    for (queue *q : the.queues)
        if (is_ready(q)) ready.push_back(q);
    return ready.empty() ? nullptr : ready[draw(ready.size())];
}

void look(const mark_ptr &end) {
    if (the.seed == 0) {
        queue *q = undone(end) ? needed(end) : nullptr;
        if (q) run_one(q);
        return;
    }
    for (uint64_t i = draw(LOOKS); i > 0; i--)
        if (queue *q = draw_ready()) run_one(q);
}

/* How the work of others comes in while somebody waits. */
enum haste { AS_NEEDED, AS_DRAWN, OTHERS_FIRST, HASTES };

static queue *next(const mark_ptr &end, uint64_t haste) {
    queue *q = needed(end);
    if (haste == AS_NEEDED) return q;
    queue *other = draw_ready();
    for (int i = 0; i < LOOKS && haste == OTHERS_FIRST && other == q; i++) other = draw_ready();
    return other;
}

cudaError_t wait_for(entry &here, const mark_ptr &end) {
    const uint64_t haste = the.seed == 0 ? (uint64_t)AS_NEEDED : draw(HASTES);
    while (undone(end) && end->in->home->broken == cudaSuccess) {
        queue *q = next(end, haste);
        if (q) run_one(q);
        else the.changed.wait_for(here.lock, std::chrono::milliseconds(10));
    }
    return end ? end->in->home->broken : cudaSuccess;
}

mark_ptr undone_of(const queue *q) {
    if (!is_idle(q)) return q->last;
    if (!q->legacy) return nullptr;
    for (queue *other : the.queues)
        if (other->blocking && other->home == q->home && !is_idle(other)) return other->last;
    return nullptr;
}

cudaError_t wait_for_queue(entry &here, queue *q) {
    std::vector<mark_ptr> ends = {q->last};
    for (queue *other : the.queues)
        if (q->legacy && other->blocking && other->home == q->home) ends.push_back(other->last);
    for (const mark_ptr &end : ends) {
        const cudaError_t failure = wait_for(here, end);
        if (failure != cudaSuccess) return failure;
    }
    return q->home->broken;
}

cudaError_t wait_for_device(entry &here, context *c) {
    std::vector<mark_ptr> ends;
    for (queue *q : the.queues)
        if (q->home == c) ends.push_back(q->last);
    for (const mark_ptr &end : ends) {
        const cudaError_t failure = wait_for(here, end);
        if (failure != cudaSuccess) return failure;
    }
    return c->broken;
}

/* Whatever waits for it need wait no more. */
void drop_work(context *c) {
    for (queue *q : the.queues) {
        if (q->home != c) continue;
        for (op &what : q->ops) what.end->done = true;
        q->ops.clear();
    }
    the.changed.notify_all();
}

/* ---- enqueueing ---- */

cudaError_t enqueue(queue *q, op what) {
    q->enqueued++;
    the.counts.enqueued++;
    if (q->captured) return add_node(q, std::move(what));
    const cudaError_t failure = implicit_capture(q, true);
    if (failure != cudaSuccess) return failure;
    for (queue *other : the.queues) {
        const bool orders = other->home == q->home && (q->legacy ? other->blocking : q->blocking && other->legacy);
        if (orders && other != q && undone(other->last)) what.after.push_back(other->last);
    }
    what.end = std::make_shared<mark>(mark{q});
    q->last = what.end;
    q->ops.push_back(std::move(what));
    return cudaSuccess;
}
