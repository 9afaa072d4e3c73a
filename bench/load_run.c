/* load_run: keeps calls going for the time of a row, and looks at each answer.
 *
 *   open loop      calls begin at times that were drawn before, whatever became of those before them; a latency is counted from there,
 *                  so a daemon that stands still is seen by all who would have come (coordinated omission)
 *   closed loop    so many calls are in flight; each that ends is followed by another
 *
 * Each thread has its connections, which it asks by epoll, its calls and its figures. A row begins with its warm-up, whose calls are
 * checked and not counted, and ends with what is still in flight, which is counted.
 * Thread: each worker's. Owner: the runner owns workers, these their connections and slots. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/load.h"

enum { EVENTS = 256, LOOK_NS = 50 * 1000000, END_NS = 30 * 1000 * 1000 * 1000ll };

typedef struct worker worker;

typedef struct connection {
    worker *worker;
    cured_conn *conn;
    cured_region *regions[LOAD_MIX_MOST];
    int fd; /* in epoll; -1: none */
    short events;
    int in_flight;
    bool dirty; /* in its worker's list */
} connection;

typedef struct slot {
    connection *connection;
    size_t kind;
    uint64_t intended_ns;
    cured_call *call;
    struct slot *next; /* free */
} slot;

struct worker {
    const load_options *options;
    const load_mix *mix;
    load_row *row;
    connection *connections;
    connection **dirty; /* those with something to do without a word of epoll */
    int count, dirty_count, turn;
    slot *slots, *free;
    int in_flight, most; /* most: of this row */
    int epoll;
    bool over; /* no more calls begin */
    double rate;
    uint64_t random;
    uint64_t next_ns, from_ns, to_ns; /* the next start that was drawn; what is counted */
    uint64_t answered_ns;             /* when the answers came that are looked at; 0: not asked yet */
    load_figures *figures;            /* one for each kind */
    pthread_t thread;
    char failed[CURED_ERROR_BYTES]; /* "": nothing */
};

struct load_runner {
    const load_options *options;
    load_mix *mix;
    worker *workers;
};

/* xorshift64* (Vigna, 2016). */
static uint64_t draw(worker *w) {
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return w->random * 2685821657736338717u;
}

static size_t draw_kind(worker *w) {
    uint64_t at = draw(w) % w->mix->weights;
    size_t kind = 0;
    while (at >= w->mix->kinds[kind].weight) at -= w->mix->kinds[kind++].weight;
    return kind;
}

/* Until the next start: exponentially distributed, as of many who do not know of each other. */
static uint64_t draw_gap(worker *w) {
    const double mean = 1e9 / w->rate, u = (double)(draw(w) >> 11) * 0x1p-53;
    return (uint64_t)(w->options->even ? mean : -log(1 - u) * mean);
}

static void mark(connection *c) {
    if (c->dirty) return;
    c->dirty = true;
    c->worker->dirty[c->worker->dirty_count++] = c;
}

/* ---- one call ---- */

static bool is_right(const load_kind *kind, const cured_call *call) {
    for (size_t i = 0; i < kind->op_count; i++) {
        const load_expected *e = &kind->expected[i];
        const cured_value *value = cured_call_value(call, i);
        size_t bytes = 0;
        const void *at = value ? cured_value_bytes(value, &bytes) : NULL;
        if (!value || cured_value_status(value, NULL) != e->status || bytes != e->bytes) return false;
        if (at && memcmp(at, e->value, bytes) != 0) return false;
    }
    return true;
}

static void count_answer(worker *w, const slot *s, cured_status status, uint64_t now) {
    const load_kind *kind = &w->mix->kinds[s->kind];
    load_figures *figures = &w->figures[s->kind];
    const bool right = status != CURED_OK || is_right(kind, s->call);
    const bool counts = s->intended_ns >= w->from_ns && s->intended_ns < w->to_ns;
    if (!right) figures->wrong++; /* at any time */
    if (right && status == CURED_OK && now >= w->from_ns && now < w->to_ns) {
        figures->answered++;
        figures->bytes += kind->bytes;
    }
    if (!counts || !right) return;
    if (status != CURED_OK) {
        figures->failed[(int)status < LOAD_STATUSES ? status : CURED_UNKNOWN]++;
        return;
    }
    load_times_add(&figures->times, now - s->intended_ns);
}

static void end_slot(worker *w, slot *s) {
    cured_call_free(s->call);
    s->call = NULL;
    s->connection->in_flight--;
    w->in_flight--;
    s->next = w->free;
    w->free = s;
}

static void begin_on(connection *c, uint64_t intended_ns);

static cured_status ask(connection *c, slot *s, const cured_options *options, cured_error *error) {
    const load_kind *kind = &c->worker->mix->kinds[s->kind];
    const uint64_t count = kind->bytes / cured_dtype_size(kind->dtype);
    if (kind->input == LOAD_REGION)
        return cured_region_reduce(c->regions[s->kind], kind->dtype, kind->ops, kind->op_count, 0, count, options,
                                   &s->call, error);
    if (kind->input == LOAD_BYTES)
        return cured_reduce_buffer(c->conn, kind->dtype, kind->ops, kind->op_count, cured_array_data(kind->array),
                                   count, options, &s->call, error);
    return cured_reduce_fd(c->conn, kind->dtype, kind->ops, kind->op_count,
                           kind->input == LOAD_FILE ? kind->file : cured_array_fd(kind->array), 0, count, options,
                           &s->call, error);
}

/* The next connection, in turn, that has room for a call; there is one. */
static connection *with_room(worker *w) {
    connection *c;
    do {
        c = &w->connections[w->turn];
        w->turn = (w->turn + 1) % w->count;
    } while (c->in_flight >= LOAD_CONN_CALLS);
    return c;
}

/* Calls that were answered together: the clock is asked once, because asking for each costs as much as libcured's part of it. In a
 * closed loop another call follows at once, and leaves with those of the same answers. */
static void on_done(cured_call *call, void *user) {
    slot *s = user;
    connection *c = s->connection;
    worker *w = c->worker;
    if (!w->answered_ns) w->answered_ns = cr_now_ns();
    s->call = call;
    count_answer(w, s, cured_call_status(call, NULL), w->answered_ns);
    end_slot(w, s);
    if (!w->rate && !w->over) begin_on(c, w->answered_ns);
}

static void begin_on(connection *c, uint64_t intended_ns) {
    cured_options options = CURED_OPTIONS_INIT;
    cured_error error;
    worker *w = c->worker;
    slot *s = w->free;
    w->free = s->next;
    *s = (slot){.connection = c, .kind = draw_kind(w), .intended_ns = intended_ns};
    options.timeout_ms = (uint32_t)w->options->timeout_ms;
    options.retries = (uint32_t)w->options->retries;
    options.on_done = on_done;
    options.user = s;
    c->in_flight++;
    w->in_flight++;
    const cured_status status = ask(c, s, &options, &error);
    if (status != CURED_OK) { /* at once: it was never queued */
        count_answer(w, s, status, cr_now_ns());
        end_slot(w, s);
    }
}

static void begin_call(worker *w, uint64_t intended_ns) {
    connection *c = with_room(w);
    begin_on(c, intended_ns);
    mark(c);
}

/* ---- a worker's turns ---- */

static void watch(connection *c) {
    const int fd = cured_fd(c->conn);
    const short events = cured_events(c->conn);
    struct epoll_event event = {.events = (events & POLLIN ? EPOLLIN : 0u) | (events & POLLOUT ? EPOLLOUT : 0u),
                                .data.ptr = c};
    if (fd == c->fd && events == c->events) return;
    /* A descriptor that was closed has left epoll by itself, and its number may be back. */
    if (fd >= 0 && epoll_ctl(c->worker->epoll, EPOLL_CTL_MOD, fd, &event) != 0)
        epoll_ctl(c->worker->epoll, EPOLL_CTL_ADD, fd, &event);
    c->fd = fd;
    c->events = events;
}

/* Each connection that has something to do, once. */
static void process_dirty(worker *w) {
    const int count = w->dirty_count;
    connection *now[EVENTS];
    for (int done = 0; done < count;) {
        int n = count - done < EVENTS ? count - done : EVENTS;
        memcpy(now, w->dirty, (size_t)n * sizeof *now);
        memmove(w->dirty, w->dirty + n, (size_t)(w->dirty_count - n) * sizeof *now);
        w->dirty_count -= n;
        for (int i = 0; i < n; i++) {
            now[i]->dirty = false;
            w->answered_ns = 0;
            cured_process(now[i]->conn, NULL); /* what went wrong ends its calls */
            watch(now[i]);
            if (cured_timeout_ms(now[i]->conn) == 0) mark(now[i]);
        }
        done += n;
    }
}

static void wait_until(worker *w, uint64_t when_ns) {
    struct epoll_event events[EVENTS];
    const uint64_t now = cr_now_ns();
    const uint64_t left = w->dirty_count || when_ns <= now ? 0 : when_ns - now;
    int ms = 0;
    if (left && w->rate) { /* epoll knows no less than a millisecond */
        const struct timespec time = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        struct pollfd all = {.fd = w->epoll, .events = POLLIN};
        if (ppoll(&all, 1, &time, NULL) <= 0) return;
    } else if (left) {
        ms = (int)(left / 1000000u) + 1;
    }
    const int n = epoll_wait(w->epoll, events, EVENTS, ms);
    for (int i = 0; i < n; i++) mark(events[i].data.ptr);
}

static void begin_what_is_due(worker *w, uint64_t now) {
    if (w->over) return;
    w->over = now >= w->to_ns; /* this once for those whose time came just now */
    if (!w->rate) {
        for (int i = w->in_flight; i < w->most && !w->over; i++) begin_call(w, now);
        return;
    }
    for (; w->next_ns <= now && w->next_ns < w->to_ns && w->in_flight < w->most; w->next_ns += draw_gap(w))
        begin_call(w, w->next_ns);
}

/* Starts that were drawn, and for which there was no room. */
static void count_the_rest(worker *w) {
    for (; w->rate && w->next_ns < w->to_ns; w->next_ns += draw_gap(w))
        if (w->next_ns >= w->from_ns) w->figures[draw_kind(w)].not_begun++;
}

/* Timers of connections; and a connection that was made anew may have the number of the one before, which epoll has forgotten. */
static void look_at_all(worker *w) {
    for (int i = 0; i < w->count; i++) {
        connection *c = &w->connections[i];
        c->fd = -1;
        watch(c);
        if (cured_timeout_ms(c->conn) == 0) mark(c);
    }
}

static void *work(void *argument) {
    worker *w = argument;
    uint64_t look_ns = 0;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (uint64_t now; (now = cr_now_ns()) < w->to_ns || w->in_flight;) {
        if (now >= w->to_ns + END_NS) {
            snprintf(w->failed, sizeof w->failed, "calls had no end 30 s after the last began");
            break;
        }
        begin_what_is_due(w, now);
        if (now >= look_ns) {
            look_at_all(w);
            look_ns = now + LOOK_NS;
        }
        process_dirty(w);
        uint64_t until = look_ns;
        if (w->rate && w->in_flight < w->most && w->next_ns < until && w->next_ns < w->to_ns) until = w->next_ns;
        wait_until(w, until);
    }
    count_the_rest(w);
    return NULL;
}

/* ---- the runner ---- */

static bool open_one(load_runner *runner, worker *w, connection *c, int number) {
    const load_options *o = runner->options;
    cured_error error;
    const char *address = o->address_count ? o->addresses[(size_t)number % o->address_count] : NULL;
    *c = (connection){.worker = w, .fd = -1};
    cured_status status = cured_connect(address, NULL, &c->conn, &error);
    if (status == CURED_OK) status = cured_connected(c->conn, &error);
    for (size_t i = 0; status == CURED_OK && i < runner->mix->count; i++) {
        const load_kind *kind = &runner->mix->kinds[i];
        if (kind->input != LOAD_REGION) continue;
        status = cured_region_fd(c->conn, cured_array_fd(kind->array), &c->regions[i], &error);
        if (status == CURED_OK) status = cured_region_wait(c->regions[i], &error);
    }
    if (status == CURED_OK) return true;
    fprintf(stderr, "cured-bench load: %s: %s\n", address ? address : "the default address", error.text);
    return false;
}

static bool open_worker(load_runner *runner, worker *w, int id) {
    const load_options *o = runner->options;
    const int first = (int)((long)o->connections * id / o->threads);
    const int count = (int)((long)o->connections * (id + 1) / o->threads) - first;
    const size_t slots = (size_t)count * LOAD_CONN_CALLS;
    *w = (worker){.options = o, .mix = runner->mix, .random = (o->seed + (uint64_t)id + 1) * 0x9e3779b97f4a7c15u | 1};
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->connections = calloc((size_t)count, sizeof *w->connections);
    w->dirty = calloc((size_t)count, sizeof *w->dirty);
    w->slots = calloc(slots, sizeof *w->slots);
    w->figures = calloc(runner->mix->count, sizeof *w->figures);
    if (w->epoll < 0 || !w->connections || !w->dirty || !w->slots || !w->figures) {
        fprintf(stderr, "cured-bench load: no memory for %d connections\n", count);
        return false;
    }
    for (size_t i = 0; i < slots; i++) {
        w->slots[i].next = w->free;
        w->free = &w->slots[i];
    }
    for (; w->count < count; w->count++)
        if (!open_one(runner, w, &w->connections[w->count], first + w->count)) return false;
    return true;
}

load_runner *load_runner_new(const load_options *options, load_mix *mix) {
    load_runner *runner = calloc(1, sizeof *runner);
    if (!runner) return NULL;
    *runner = (load_runner){.options = options, .mix = mix};
    runner->workers = calloc((size_t)options->threads, sizeof *runner->workers);
    bool good = runner->workers != NULL;
    for (int i = 0; good && i < options->threads; i++) good = open_worker(runner, &runner->workers[i], i);
    if (good) return runner;
    load_runner_free(runner);
    return NULL;
}

const char *load_runner_server(const load_runner *runner) {
    cured_call *call = NULL;
    cured_conn *conn = runner->workers[0].connections[0].conn;
    if (cured_ping(conn, NULL, &call, NULL) == CURED_OK) cured_wait(call, NULL);
    cured_call_free(call);
    return cured_server(conn);
}

bool load_runner_measure(load_runner *runner, load_row *row) {
    const load_options *o = runner->options;
    const uint64_t begin = cr_now_ns() + 1000000, from = begin + (uint64_t)(o->warm_up * 1e9);
    const char *failed = NULL;
    int started = 0;
    for (int i = 0; i < o->threads; i++) {
        worker *w = &runner->workers[i];
        w->row = row;
        w->rate = row->rate * w->count / o->connections;
        w->from_ns = from;
        w->to_ns = from + (uint64_t)(o->seconds * 1e9);
        w->over = false;
        w->next_ns = begin + (w->rate ? draw_gap(w) : 0);
        w->most = w->count * LOAD_CONN_CALLS;
        if (row->concurrency) {
            const int share =
                (int)((long)row->concurrency * (i + 1) / o->threads - (long)row->concurrency * i / o->threads);
            w->most = share < w->most ? share : w->most;
        }
        memset(w->figures, 0, runner->mix->count * sizeof *w->figures);
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
        started++;
    }
    if (started < o->threads) failed = "no thread can be started";
    for (int i = 0; i < started; i++) {
        worker *w = &runner->workers[i];
        pthread_join(w->thread, NULL);
        if (w->failed[0]) failed = w->failed;
        for (size_t k = 0; k < runner->mix->count; k++) {
            load_figures_add(&row->kinds[k], &w->figures[k]);
            load_figures_add(&row->all, &w->figures[k]);
        }
    }
    row->seconds = o->seconds;
    if (failed) fprintf(stderr, "cured-bench load: %s\n", failed);
    return !failed;
}

void load_runner_free(load_runner *runner) {
    for (int i = 0; runner && runner->workers && i < runner->options->threads; i++) {
        worker *w = &runner->workers[i];
        for (int c = 0; w->connections && c < w->count; c++) {
            for (size_t k = 0; k < LOAD_MIX_MOST; k++) cured_region_free(w->connections[c].regions[k]);
            cured_close(w->connections[c].conn);
        }
        for (size_t s = 0; w->slots && s < (size_t)w->count * LOAD_CONN_CALLS; s++) cured_call_free(w->slots[s].call);
        free(w->connections);
        free(w->dirty);
        free(w->slots);
        free(w->figures);
        if (w->epoll > 0) close(w->epoll);
    }
    if (runner) free(runner->workers);
    free(runner);
}
