/* internal (double): what the files of the runtime double share. queue.cc runs work, stream.cc and event.cc are streams and events,
 * graph.cc captures and graphs, memory.cc and copy.cc memory, device.cc devices and faults, driver.cc the driver's functions,
 * control.cc what tests ask for.
 *
 * All state is behind one mutex, which each call of the runtime holds (entry). Work runs under it, except functions of the host and
 * destructors of user objects: they have a thread of their own, as with CUDA, because they may take locks of the program.
 *
 * Thread: any. Owner: the one state, which lives as long as the process. */
#ifndef CURED_TESTS_DOUBLE_INTERNAL_HH
#define CURED_TESTS_DOUBLE_INTERNAL_HH

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/double/cuda.h"
#include "tests/double/cuda_runtime_api.h"
#include "tests/double/double.h"

struct queue;
struct capture;
struct body;

/* The end of one operation; the queue that it is or was in. */
struct mark {
    queue *in;
    bool done = false;
};
typedef std::shared_ptr<mark> mark_ptr;

/* One operation. step runs a part, is told how many came before, and gives whether it was the last; so a graph may run it again. */
struct op {
    std::function<bool(unsigned turn)> step; /* NULL: nothing to do but to come after others */
    std::function<void()> host;              /* instead: for the thread of functions of the host */
    std::vector<mark_ptr> after;
    mark_ptr end;
    std::shared_ptr<body> keeps; /* the graph that it is of */
    unsigned turn = 0;
};

/* CUctx_st is what a CUcontext points to. */
struct CUctx_st {
    int device = 0;
    bool primary = false, active = false;
    uint64_t number = 0; /* of its present life */
    cudaError_t broken = cudaSuccess;
    queue *legacy = nullptr;
};
typedef CUctx_st context;

struct queue {
    context *home;
    uint64_t home_number, id;
    bool blocking, legacy = false;
    bool busy = false; /* its first operation is under way elsewhere */
    std::deque<op> ops;
    mark_ptr last;
    std::shared_ptr<::capture> captured;
    std::vector<size_t> tails; /* nodes that the next one comes after */
    uint64_t enqueued = 0, launches = 0;
    bool lives() const { return home->active && home->number == home_number; }
};

struct CUstream_st {
    queue *line;
};

struct CUevent_st {
    context *home;
    uint64_t home_number;
    mark_ptr last;
    std::shared_ptr<::capture> captured; /* and then tails of it */
    std::vector<size_t> tails;
};

struct CUuserObject_st {
    void *user;
    cudaHostFn_t destroy;
    unsigned count;
};

/* What a graph and what it was made to hold: nodes in an order in which they may run. */
struct node {
    op what;
    std::vector<size_t> before;
};
struct body {
    std::vector<node> nodes;
    std::map<CUuserObject_st *, unsigned> objects;
    std::vector<uintptr_t> memory; /* blocks that belong to the graph */
    std::shared_ptr<body> of;      /* an instance keeps what it was made of */
    mark_ptr last;                 /* an instance does not run beside itself */
    context *home = nullptr;
    uint64_t home_number = 0;
    ~body();
};
struct CUgraph_st {
    std::shared_ptr<body> what;
};
struct CUgraphExec_st {
    std::shared_ptr<body> what;
};

struct capture {
    uint64_t id, thread;
    cudaStreamCaptureMode mode;
    queue *origin;
    bool valid = true, over = false;
    std::vector<queue *> queues;
    CUgraph_st *graph;
};

struct block {
    size_t bytes;
    cudaMemoryType type;
    context *home;
    bool pool = false, registered = false, freeing = false, of_graph = false;
};
struct freed {
    unsigned char *start;
    size_t bytes;
    bool written; /* late, and counted */
};

struct fault {
    std::string name;
    unsigned left;
    cudaError_t error;
};

struct state {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t seed = 0, drawn = 0, numbers = 0; /* numbers: of streams, contexts, captures; none comes twice */
    std::vector<queue *> queues;
    std::set<const void *> live; /* handles */
    std::vector<CUstream_st *> spare_streams;
    std::vector<std::shared_ptr<::capture>> captures;
    std::map<std::pair<uint64_t, context *>, queue *> of_threads;
    std::map<uintptr_t, block> blocks;
    std::deque<freed> kept;
    size_t kept_bytes = 0;
    uint64_t memory_limit = UINT64_MAX;
    std::vector<fault> faults;
    std::map<std::string, uint64_t> calls;
    cr_double_counts counts = {};
    std::vector<context *> contexts; /* two for each device: the primary one, and one of the program's */
    int devices = 2, driver = 13000, major = 9, minor = 0, ratio = 2, process = 0;
    bool free_at_once = false, helping = false;
    std::deque<std::function<void()>> endings; /* for the helping thread */
    unsigned under_way = 0;                    /* of them, those that are not over */
};
extern state &the;

struct thread_state {
    context *current;
    cudaError_t last_error;
    cudaStreamCaptureMode mode;
    bool helps;
    uint64_t number;
};
extern thread_local thread_state mine;

/* ---- device.cc ---- */

enum entry_kind {
    PLAIN = 0,
    CONTEXT = 1, /* makes the current context, and fails where that is broken */
    UNSAFE = 3,  /* as well; captures may forbid it */
};
/* A call of the runtime: holds the mutex. failure: what it gives at once, if it is not cudaSuccess. */
struct entry {
    std::unique_lock<std::mutex> lock;
    cudaError_t failure;
    entry(const char *name, entry_kind kind);
    cudaError_t give(cudaError_t error);
};
#define ENTER(name, kind)    \
    entry here(#name, kind); \
    if (here.failure != cudaSuccess) return here.failure

uint64_t thread_number();
context *primary_of(int device);
context *current_context(); /* made, if need be */
void activate(context *c);
void reset(context *c);

/* ---- queue.cc ---- */

uint64_t draw(uint64_t below);
queue *make_queue(context *home, bool blocking);
/* An operation at a queue's end, or in its capture. */
cudaError_t enqueue(queue *q, op what);
/* Runs work until the mark is done, or its context broken. */
cudaError_t wait_for(entry &here, const mark_ptr &end);
cudaError_t wait_for_queue(entry &here, queue *q);
cudaError_t wait_for_device(entry &here, context *c);
/* What a query runs, of which end is NULL or not done. */
void look(const mark_ptr &end);
bool is_idle(const queue *q);
mark_ptr undone_of(const queue *q); /* what is to end so that the queue is idle; NULL: nothing */
bool run_one(queue *q);
queue *draw_ready();
void drop_work(context *c);
/* Gives the helping thread something. */
void help(std::function<void()> what);

/* ---- stream.cc ---- */

/* The queue of a handle; NULL: *failure says why. */
queue *find_queue(cudaStream_t stream, cudaError_t *failure);
/* The queue of a stream, or the call fails. */
#define FIND(q, stream)                        \
    cudaError_t not_found;                     \
    queue *q = find_queue(stream, &not_found); \
    if (q == nullptr) return here.give(not_found)
/* Whether kernels may be put in it now: its context is the current one. */
bool is_here(const queue *q);

/* ---- graph.cc ---- */

bool forbidden(); /* an unsafe call, by a capture, which is then invalid */
void invalidate(::capture &c);
cudaError_t add_node(queue *q, op what);
/* The failure of a legacy queue that would wait for a capture. */
cudaError_t implicit_capture(const queue *q, bool invalidates);
cudaError_t join_capture(queue *q, CUevent_st *event);
void release_object(CUuserObject_st *object, unsigned count);

/* ---- memory.cc ---- */

enum { POISON = 0xA5 };
/* The block that an address is in, or the end of the blocks. */
std::map<uintptr_t, block>::iterator find_block(const void *address);
void *make_block(size_t bytes, cudaMemoryType type, context *home);
void remove_block(std::map<uintptr_t, block>::iterator at);
void remove_blocks_of(context *c);
void fill_with_garbage(void *memory, size_t bytes);
void count_late_writes();

#endif
