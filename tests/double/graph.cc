/* graph (double): captures, the graphs that they make, and what graphs own. A graph that is launched becomes operations of its stream, in
 * one of the orders that its nodes allow.
 *
 * Thread: any. Owner: whoever made a graph; its nodes live until their last launch is over. */
#include <algorithm>

#include "tests/double/internal.hh"

body::~body() {
    for (auto &[object, count] : objects) release_object(object, count);
    for (uintptr_t start : memory) {
        const auto at = the.blocks.find(start);
        if (at != the.blocks.end()) remove_block(at);
    }
}

void release_object(CUuserObject_st *object, unsigned count) {
    object->count -= std::min(count, object->count);
    if (object->count > 0) return;
    the.live.erase(object);
    the.counts.user_objects--;
    help([object] {
        object->destroy(object->user);
        delete object;
    });
}

/* ---- captures ---- */

void invalidate(capture &c) { c.valid = false; }

/* Under the rules of cudaThreadExchangeStreamCaptureMode(). */
bool forbidden() {
    bool found = false;
    for (const std::shared_ptr<capture> &c : the.captures) {
        const bool own = c->thread == mine.number && c->mode != cudaStreamCaptureModeRelaxed,
                   others = mine.mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
        if (mine.mode == cudaStreamCaptureModeRelaxed || (!own && !others)) continue;
        invalidate(*c);
        found = true;
    }
    return found;
}

cudaError_t implicit_capture(const queue *q, bool invalidates) {
    bool found = false;
    for (queue *other : the.queues) {
        if (!q->legacy || !other->captured || !other->blocking || other->home != q->home) continue;
        if (invalidates) invalidate(*other->captured);
        found = true;
    }
    return found ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t add_node(queue *q, op what) {
    capture &c = *q->captured;
    if (!c.valid) return cudaErrorStreamCaptureInvalidated;
    std::vector<node> &nodes = c.graph->what->nodes;
    nodes.push_back({std::move(what), q->tails});
    q->tails = {nodes.size() - 1};
    return cudaSuccess;
}

/* A wait for an event of a capture brings its stream in. */
cudaError_t join_capture(queue *q, CUevent_st *event) {
    const std::shared_ptr<capture> c = event->captured;
    if (!c) {
        invalidate(*q->captured);
        return cudaErrorStreamCaptureIsolation;
    }
    if (c->over) return cudaErrorCapturedEvent;
    if (!c->valid) return cudaErrorStreamCaptureInvalidated;
    if (q->captured && q->captured != c) {
        invalidate(*q->captured);
        invalidate(*c);
        return cudaErrorStreamCaptureMerge;
    }
    if (q->legacy) {
        invalidate(*c);
        return cudaErrorStreamCaptureImplicit;
    }
    if (!q->captured) {
        q->captured = c;
        q->tails.clear();
        c->queues.push_back(q);
    }
    for (size_t tail : event->tails)
        if (std::find(q->tails.begin(), q->tails.end(), tail) == q->tails.end()) q->tails.push_back(tail);
    return cudaSuccess;
}

/* Whether everything comes before the end of the stream that the capture began in. */
static bool joined(const capture &c) {
    const std::vector<node> &nodes = c.graph->what->nodes;
    std::vector<bool> seen(nodes.size());
    std::vector<size_t> left = c.origin->tails;
    while (!left.empty()) {
        const size_t at = left.back();
        left.pop_back();
        if (seen[at]) continue;
        seen[at] = true;
        left.insert(left.end(), nodes[at].before.begin(), nodes[at].before.end());
    }
    for (const queue *q : c.queues)
        for (size_t tail : q->tails)
            if (!seen[tail]) return false;
    return true;
}

static cudaError_t end_capture(const std::shared_ptr<capture> &c, cudaGraph_t *graph) {
    cudaError_t failure = c->valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
    if (failure == cudaSuccess && !joined(*c)) failure = cudaErrorStreamCaptureUnjoined;
    c->over = true;
    for (queue *q : c->queues) {
        q->captured = nullptr;
        q->tails.clear();
    }
    the.captures.erase(std::find(the.captures.begin(), the.captures.end(), c));
    if (failure == cudaSuccess) {
        *graph = c->graph;
        return cudaSuccess;
    }
    the.live.erase(c->graph);
    the.counts.graphs--;
    delete c->graph;
    return failure;
}

/* Nodes in an order that is drawn; without a seed, that in which they were captured. */
static std::vector<size_t> order_of(const std::vector<node> &nodes) {
    std::vector<size_t> order;
    std::vector<bool> placed(nodes.size());
    while (order.size() < nodes.size()) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < nodes.size(); i++) {
            const std::vector<size_t> &before = nodes[i].before;
            if (!placed[i] && std::all_of(before.begin(), before.end(), [&](size_t k) { return placed[k]; })) ready.push_back(i);
        }
        const size_t next = the.seed == 0 ? ready[0] : ready[draw(ready.size())];
        placed[next] = true;
        order.push_back(next);
    }
    return order;
}

#define CHECK(object)                                             \
    if (!the.live.count(object)) {                                \
        the.counts.stale++;                                       \
        return here.give(cudaErrorInvalidResourceHandle);         \
    }

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    ENTER(cudaStreamBeginCapture, CONTEXT);
    FIND(q, stream);
    if (q->legacy) return here.give(cudaErrorStreamCaptureUnsupported);
    if (q->captured) return invalidate(*q->captured), here.give(cudaErrorIllegalState);
    auto c = std::make_shared<capture>();
    c->id = ++the.numbers;
    c->thread = mine.number;
    c->mode = mode;
    c->origin = q;
    c->queues = {q};
    c->graph = new CUgraph_st{std::make_shared<body>()};
    c->graph->what->home = q->home;
    c->graph->what->home_number = q->home_number;
    the.live.insert(c->graph);
    the.counts.graphs++;
    the.captures.push_back(c);
    q->captured = c;
    q->tails.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    ENTER(cudaStreamEndCapture, CONTEXT);
    *graph = nullptr;
    FIND(q, stream);
    const std::shared_ptr<capture> c = q->captured;
    if (!c) return here.give(cudaErrorIllegalState);
    if (c->origin != q) return invalidate(*c), here.give(cudaErrorStreamCaptureUnmatched);
    if (c->thread != mine.number && c->mode != cudaStreamCaptureModeRelaxed)
        return here.give(cudaErrorStreamCaptureWrongThread);
    return here.give(end_capture(c, graph));
}

static enum cudaStreamCaptureStatus status_of(const queue *q) {
    if (!q->captured) return cudaStreamCaptureStatusNone;
    return q->captured->valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    ENTER(cudaStreamIsCapturing, CONTEXT);
    FIND(q, stream);
    *status = status_of(q);
    return here.give(implicit_capture(q, false));
}

/* The nodes themselves are not shown. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    ENTER(cudaStreamGetCaptureInfo, CONTEXT);
    FIND(q, stream);
    const cudaError_t failure = implicit_capture(q, false);
    if (failure != cudaSuccess) return here.give(failure);
    *status = status_of(q);
    const bool active = *status == cudaStreamCaptureStatusActive;
    if (id) *id = active ? q->captured->id : 0;
    if (graph) *graph = active ? q->captured->graph : nullptr;
    if (dependencies) *dependencies = nullptr;
    if (edges) *edges = nullptr;
    if (count) *count = 0;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    ENTER(cudaThreadExchangeStreamCaptureMode, PLAIN);
    std::swap(mine.mode, *mode);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
    ENTER(cudaGraphInstantiate, CONTEXT);
    CHECK(graph);
    auto what = std::make_shared<body>();
    what->nodes = graph->what->nodes;
    what->objects = graph->what->objects;
    for (auto &[object, count] : what->objects) object->count += count;
    what->of = graph->what;
    what->home = graph->what->home;
    what->home_number = graph->what->home_number;
    *made = new CUgraphExec_st{what};
    the.live.insert(*made);
    the.counts.execs++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    ENTER(cudaGraphLaunch, CONTEXT);
    FIND(q, stream);
    CHECK(graph);
    const std::shared_ptr<body> what = graph->what;
    if (!what->home->active || what->home->number != what->home_number)
        return the.counts.stale++, here.give(cudaErrorInvalidResourceHandle);
    the.counts.graph_launches++;
    bool first = true;
    for (size_t i : order_of(what->nodes)) {
        op copy = what->nodes[i].what;
        copy.keeps = what;
        if (first && !q->captured && what->last && !what->last->done) copy.after.push_back(what->last);
        first = false;
        const cudaError_t failure = enqueue(q, std::move(copy));
        if (failure != cudaSuccess) return here.give(failure);
    }
    if (!first && !q->captured) what->last = q->last;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    ENTER(cudaGraphDestroy, CONTEXT);
    CHECK(graph);
    the.live.erase(graph);
    the.counts.graphs--;
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    ENTER(cudaGraphExecDestroy, CONTEXT);
    CHECK(graph);
    the.live.erase(graph);
    the.counts.execs--;
    delete graph;
    return cudaSuccess;
}

/* ---- what a graph owns ---- */

cudaError_t cudaUserObjectCreate(cudaUserObject_t *made, void *user, cudaHostFn_t destroy, unsigned count,
                                 unsigned flags) {
    ENTER(cudaUserObjectCreate, PLAIN);
    if (destroy == nullptr || count == 0 || flags != cudaUserObjectNoDestructorSync)
        return here.give(cudaErrorInvalidValue);
    *made = new CUuserObject_st{user, destroy, count};
    the.live.insert(*made);
    the.counts.user_objects++;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
    ENTER(cudaUserObjectRetain, PLAIN);
    CHECK(object);
    object->count += count;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    ENTER(cudaUserObjectRelease, PLAIN);
    CHECK(object);
    release_object(object, count);
    return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
    ENTER(cudaGraphRetainUserObject, PLAIN);
    CHECK(graph);
    CHECK(object);
    if (count == 0 || flags & ~(unsigned)cudaGraphUserObjectMove) return here.give(cudaErrorInvalidValue);
    if (!(flags & cudaGraphUserObjectMove)) object->count += count;
    graph->what->objects[object] += count;
    return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
    ENTER(cudaGraphReleaseUserObject, PLAIN);
    CHECK(graph);
    CHECK(object);
    const auto found = graph->what->objects.find(object);
    if (found == graph->what->objects.end() || found->second < count) return here.give(cudaErrorInvalidValue);
    found->second -= count;
    if (found->second == 0) graph->what->objects.erase(found);
    release_object(object, count);
    return cudaSuccess;
}

} /* extern "C" */
