/* annex: see annex.h. Thread: see annex.h. Owner: see annex.h. */
#include "server/native/annex.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/native/crowd.h"
#include "server/native/frames.h"

enum {
    AGAIN =
        256, /* small arrays in a row at home let a connection leave once more: a move costs as much as a few of them */
    GATE_PART = 10,                  /* of home's time that looking at all users may take */
    GATE_MOST_NS = 10 * 1000 * 1000, /* and how long it waits for that at most: it may have been without a core */
};

/* What stands at home for a connection that is in an annex. */
typedef struct cr_guest {
    cr_list link; /* in annex->coming or annexes->back */
    cr_annex *annex;
    cr_peer peer; /* home's */
    cr_place place;
    char principal[CR_NAME_MAX_BYTES + 1]; /* its user's, which home may write again */
    cr_conn *conn;                         /* the annex's, until it is back; NULL: it is over */
    bool back;                             /* the annex has put it down */
} cr_guest;

struct cr_annex {
    cr_annexes *all;
    pthread_t thread;
    uv_loop_t uv;
    cr_loop loop;
    cr_calls calls;
    cr_native native;
    _Atomic uint64_t counts[CR_METRIC_COUNT];
    bool runs;       /* there is a thread */
    uint64_t guests; /* home's */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    cr_list coming; /* guarded by mutex, as are those below */
    bool wanted, stands, over;
};

struct cr_annexes {
    cr_native *home;
    uint32_t count;
    bool ended;
    unsigned standing;            /* how often home has asked for it */
    uint64_t calls, bytes, users; /* that the gates were set by */
    uint64_t gates_ns;            /* when they may be set again */
    cr_timer gates, gather;
    pthread_mutex_t mutex;
    cr_list back; /* guarded by mutex */
    cr_annex *items[];
};

/* ---- standing still ---- */

static void ask_to_stand(cr_annex *annex, bool stand) {
    pthread_mutex_lock(&annex->mutex);
    annex->wanted = stand;
    pthread_cond_broadcast(&annex->changed);
    pthread_mutex_unlock(&annex->mutex);
    if (stand) cr_loop_wake(&annex->loop);
}

static void await_standing(cr_annex *annex) {
    pthread_mutex_lock(&annex->mutex);
    while (!annex->stands) pthread_cond_wait(&annex->changed, &annex->mutex);
    pthread_mutex_unlock(&annex->mutex);
}

static void still(void *argument, bool stand) {
    cr_annexes *all = argument;
    if (stand ? all->standing++ : --all->standing) return;
    for (uint32_t i = 0; i < all->count && !stand; i++)
        cr_calls_limit(&all->items[i]->calls); /* options may have changed */
    for (uint32_t i = 0; i < all->count; i++) ask_to_stand(all->items[i], stand);
    for (uint32_t i = 0; i < all->count && stand; i++) await_standing(all->items[i]);
    all->calls = UINT64_MAX; /* and so may what users have left */
}

/* ---- the annex's ---- */

static void put_down(cr_guest *guest, cr_conn *conn) {
    cr_annexes *all = guest->annex->all;
    guest->conn = conn;
    guest->back = true;
    pthread_mutex_lock(&all->mutex);
    const bool first = cr_list_empty(&all->back);
    cr_list_append(&all->back, &guest->link);
    pthread_mutex_unlock(&all->mutex);
    if (first) cr_loop_wake(all->home->loop);
}

void cr_annex_left(cr_conn *conn) {
    cr_guest *guest = conn->guest;
    conn->guest = NULL;
    put_down(guest, NULL);
}

/* A connection that comes. What does not let it settle is home's to tell. */
static void receive(cr_annex *annex, cr_guest *guest) {
    cr_conn *conn = guest->conn;
    cr_admission *admission = &annex->calls.admission;
    cr_error error;
    conn->guest = guest;
    if (cr_admit_join(admission, &conn->peer, &error) == CR_OK) {
        memcpy(conn->peer.user->principal, guest->principal, sizeof guest->principal);
        if (cr_admit_connection(admission, &conn->peer, conn->socket.fd, &error) == CR_OK) {
            annex->calls.stats.connections[conn->peer.spoken]++;
            if (cr_conn_settle(conn, &annex->native)) return;
            cr_arrived_leave(&annex->calls, &conn->peer, false);
        } else {
            cr_admit_leave(admission, &conn->peer);
        }
    }
    conn->guest = NULL;
    put_down(guest, conn);
}

static void finish_if_over(cr_annex *annex) {
    if (!annex->calls.draining || !cr_list_empty(&annex->native.connections)) return;
    cr_crowd_close(&annex->native);
    cr_loop_close_handles(&annex->loop);
}

static void go_home(cr_conn *conn) {
    cr_guest *guest = conn->guest;
    cr_calls *calls = conn->native->calls;
    cr_conn *fresh = cr_conn_lift(conn);
    if (!fresh) {
        cr_conn_close(conn);
        return;
    }
    cr_admit_parked(&calls->admission, &fresh->peer, -(int)fresh->descriptor_count);
    cr_arrived_leave(calls, &fresh->peer, false);
    fresh->guest = NULL;
    put_down(guest, fresh);
}

static void send_all_home(cr_annex *annex) {
    annex->calls.draining = true;
    while (!cr_list_empty(&annex->native.connections)) {
        cr_conn *conn = cr_container(annex->native.connections.next, cr_conn, link);
        if (conn->state == CR_CONN_OPEN)
            go_home(conn);
        else
            cr_conn_close(conn); /* it was told why */
    }
    finish_if_over(annex);
}

void cr_annex_woken(cr_annex *annex) {
    cr_list coming;
    cr_list_init(&coming);
    pthread_mutex_lock(&annex->mutex);
    while (annex->wanted) {
        if (!annex->stands) pthread_cond_broadcast(&annex->changed);
        annex->stands = true;
        pthread_cond_wait(&annex->changed, &annex->mutex);
    }
    annex->stands = false;
    cr_list_move(&coming, &annex->coming);
    const bool over = annex->over;
    pthread_mutex_unlock(&annex->mutex);
    for (cr_list *node; (node = cr_list_pop(&coming));) receive(annex, cr_container(node, cr_guest, link));
    if (over && !annex->calls.draining) send_all_home(annex);
}

bool cr_annex_full(const cr_conn *conn) {
    return atomic_load_explicit(&conn->guest->peer.user->full, memory_order_relaxed);
}

/* ---- home's ---- */

/* An idle connection of an annex ends for another user's. Who looks for one has the annexes stand still meanwhile, or it would wait
 * for them at each place. */
static bool end_idle(cr_place *place, bool quiet) {
    cr_guest *guest = cr_container(place, cr_guest, place);
    cr_annexes *all = guest->annex->all;
    still(all, true);
    cr_conn *conn = guest->back ? NULL : guest->conn;
    const bool settled = conn && conn->native == &guest->annex->native;
    const bool ended = settled && conn->place.end(&conn->place, quiet);
    still(all, false);
    if (ended) cr_annexes_news(all->home);
    return ended;
}

/* The annex with the fewest connections, if home has more. */
static cr_annex *roomiest(const cr_annexes *all) {
    const cr_native *home = all->home;
    cr_annex *best = all->items[0];
    uint64_t guests = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        guests += all->items[i]->guests;
        if (all->items[i]->guests < best->guests) best = all->items[i];
    }
    return best->guests < home->calls->stats.connections[CR_SPOKEN_native] - guests ? best : NULL;
}

static bool may_leave(const cr_conn *conn) {
    return conn->small >= conn->wanted && !conn->other && !conn->streams.open && !conn->regions &&
           !conn->descriptor_count && !conn->payload_left && !conn->socket.tls && !conn->waits_for_closes &&
           !conn->broken && !conn->gone && conn->peer.user && !conn->peer.calls &&
           !atomic_load_explicit(&conn->peer.user->full, memory_order_relaxed);
}

/* To an annex, if one has fewer connections. */
static void leave_home(cr_conn *conn) {
    cr_annexes *all = conn->native->annexes;
    cr_annex *annex = all->ended || !may_leave(conn) ? NULL : roomiest(all);
    cr_guest *guest = annex ? malloc(sizeof *guest) : NULL;
    if (!guest) return;
    *guest = (cr_guest){.annex = annex, .peer = conn->peer, .place.end = end_idle};
    memcpy(guest->principal, conn->peer.user->principal, sizeof guest->principal);
    cr_admit_place(&conn->peer, NULL);
    guest->peer.place = NULL;
    guest->conn = cr_conn_lift(conn);
    if (!guest->conn) {
        cr_admit_place(&conn->peer, &conn->place);
        free(guest);
        return;
    }
    guest->conn->peer.user = NULL;
    guest->conn->peer.place = NULL;
    cr_admit_place(&guest->peer, &guest->place);
    annex->guests++;
    pthread_mutex_lock(&annex->mutex);
    cr_list_append(&annex->coming, &guest->link);
    pthread_mutex_unlock(&annex->mutex);
    cr_loop_wake(&annex->loop);
}

void cr_annex_went(cr_conn *conn) {
    if (conn->state != CR_CONN_OPEN) return;
    if (!conn->guest)
        leave_home(conn);
    else if (conn->goes_home || conn->descriptor_count)
        go_home(conn);
}

/* A connection is back, or over. */
static void take_back(cr_native *home, cr_guest *guest) {
    cr_calls *calls = home->calls;
    cr_conn *conn = guest->conn;
    cr_peer peer = guest->peer;
    guest->annex->guests--;
    cr_admit_place(&guest->peer, NULL);
    peer.place = NULL;
    free(guest);
    if (!conn) {
        cr_arrived_leave(calls, &peer, false);
        return;
    }
    conn->peer = peer;
    conn->small = 0;
    conn->wanted = AGAIN;
    conn->native = home;
    cr_admit_parked(&calls->admission, &conn->peer, conn->descriptor_count);
    if (conn->descriptor_count) conn->parked = ++home->parked;
    if (cr_conn_settle(conn, home)) {
        cr_admit_place(&conn->peer, &conn->place);
        if (conn->descriptor_count) cr_frames_keep_few_parked(conn);
        return;
    }
    cr_conn_discard(conn);
    cr_arrived_leave(calls, &peer, false);
}

void cr_annexes_news(cr_native *home) {
    cr_annexes *all = home->annexes;
    cr_list back;
    cr_list_init(&back);
    pthread_mutex_lock(&all->mutex);
    cr_list_move(&back, &all->back);
    pthread_mutex_unlock(&all->mutex);
    for (cr_list *node; (node = cr_list_pop(&back));) take_back(home, cr_container(node, cr_guest, link));
}

static bool is_full(const cr_admission *a, const cr_user *user, cr_use use, uint64_t n) {
    const uint64_t most = cr_admit_share(a, user, use);
    return user->used[use] > most || n > most - user->used[use];
}

void cr_annexes_gate(cr_native *home) {
    cr_annexes *all = home->annexes;
    const cr_admission *a = &home->calls->admission;
    const uint64_t calls = a->spread[CR_USE_calls], bytes = a->spread[CR_USE_bytes];
    if (all->ended || (calls == all->calls && bytes == all->bytes && a->users.count == all->users)) return;
    const uint64_t now = cr_now_ns();
    if (now < all->gates_ns) {
        if (!all->gates.slot) cr_timer_set(&home->calls->timers, &all->gates, cr_now_ms() + 1);
        return;
    }
    all->calls = calls;
    all->bytes = bytes;
    all->users = a->users.count;
    for (cr_list *node = a->by_age.next; node != &a->by_age; node = node->next) {
        cr_user *user = cr_container(node, cr_user, link);
        const bool full = is_full(a, user, CR_USE_calls, 1) || is_full(a, user, CR_USE_bytes, CR_INLINE_BYTES);
        atomic_store_explicit(&user->full, full, memory_order_relaxed);
    }
    const uint64_t wait = (GATE_PART - 1) * (cr_now_ns() - now);
    all->gates_ns = now + (wait < GATE_MOST_NS ? wait : GATE_MOST_NS);
}

/* The end of this turn looks again. */
static void on_gates(cr_timer *timer) { (void)timer; }

/* ---- counts ---- */

static void add_counts(cr_annexes *all) {
    for (uint32_t i = 0; i < all->count; i++) {
        cr_annex *annex = all->items[i];
        cr_stats_add(&all->home->calls->stats, &annex->calls.stats);
        for (uint32_t k = 0; k < CR_METRIC_COUNT; k++)
            atomic_fetch_add_explicit(&cr_metrics[k], atomic_exchange(&annex->counts[k], 0), memory_order_relaxed);
    }
}

static void gather(void *argument) {
    cr_annexes *all = argument;
    still(all, true);
    add_counts(all);
    still(all, false);
    all->home->calls->last_ns = cr_now_ns(); /* the go that asked for it may be over by that */
}

static uint64_t guests_of(void *argument, uint32_t annex) {
    const cr_annexes *all = argument;
    return all->items[annex]->guests;
}

/* What an annex counted in a step of the window is to be home's in that step. */
static void on_gather(cr_timer *timer) {
    cr_annexes *all = cr_container(timer, cr_annexes, gather);
    cr_calls *calls = all->home->calls;
    const uint64_t now = cr_now_ms();
    cr_stats_gather(&calls->stats);
    cr_stats_turn(&calls->stats, now);
    cr_timer_set(&calls->timers, timer, now + CR_STATS_STEP_MS);
}

/* ---- start and end ---- */

static void *run(void *argument) {
    cr_annex *annex = argument;
    uv_run(&annex->uv, UV_RUN_DEFAULT);
    return NULL;
}

static cr_status start(cr_annexes *all, cr_annex *annex, cr_error *error) {
    cr_calls *calls = &annex->calls;
    const cr_calls *home = all->home->calls;
    annex->all = all;
    cr_list_init(&annex->coming);
    pthread_mutex_init(&annex->mutex, NULL);
    pthread_cond_init(&annex->changed, NULL);
    const int failed = uv_loop_init(&annex->uv);
    if (failed) return cr_fail(error, CR_INTERNAL, "loops: cannot set up a further one: %s", uv_strerror(failed));
    calls->config = home->config;
    calls->version = home->version;
    calls->counts = annex->counts;
    calls->slabs = home->slabs;
    calls->files = home->files;
    cr_calls_init(calls, cr_loop_wake, &annex->loop);
    calls->stats.sources.lanes = NULL;
    cr_status status = cr_loop_init(&annex->loop, &annex->uv, calls, error);
    if (status != CR_OK) return status;
    annex->loop.busy.seats = annex->loop.idle.seats = annex->loop.sure.seats = all->home->loop->idle.seats;
    cr_loop_reserve(&annex->loop, 2 * calls->config->max_connections);
    status = cr_queue_new(cr_loop_wake, &annex->loop, &calls->queue, error);
    if (status == CR_OK) status = cr_native_init(&annex->native, &annex->loop, error);
    if (status != CR_OK) return status;
    annex->native.annex = annex;
    annex->runs = pthread_create(&annex->thread, NULL, run, annex) == 0;
    return annex->runs ? CR_OK : cr_fail(error, CR_RESOURCE_EXHAUSTED, "loops: cannot start a thread");
}

cr_status cr_annexes_start(cr_native *home, uint64_t loops, cr_error *error) {
    if (loops < 2) return CR_OK;
    cr_calls *calls = home->calls;
    cr_annexes *all = calloc(1, sizeof *all + (loops - 1) * sizeof all->items[0]);
    if (!all) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "loops: no memory");
    all->home = home;
    cr_list_init(&all->back);
    pthread_mutex_init(&all->mutex, NULL);
    home->annexes = all;
    for (uint64_t i = 1; i < loops; i++) {
        cr_annex *annex = calloc(1, sizeof *annex);
        if (!annex) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "loops: no memory");
        all->items[all->count++] = annex;
        const cr_status status = start(all, annex, error);
        if (status != CR_OK) return status; /* the daemon does not start */
    }
    calls->still = still;
    calls->stats.sources.gather = gather;
    calls->stats.sources.guests = guests_of;
    calls->stats.sources.annexes = all->count;
    calls->still_argument = calls->stats.sources.gather_argument = all;
    all->gates.fire = on_gates;
    all->gather.fire = on_gather;
    on_gather(&all->gather);
    return CR_OK;
}

void cr_annexes_end(cr_native *home) {
    cr_annexes *all = home->annexes;
    if (!all || all->ended) return;
    all->ended = true;
    for (uint32_t i = 0; i < all->count; i++) {
        cr_annex *annex = all->items[i];
        pthread_mutex_lock(&annex->mutex);
        annex->over = true;
        if (annex->runs) cr_loop_wake(&annex->loop); /* before it can see that, and close what wakes it */
        pthread_mutex_unlock(&annex->mutex);
    }
    for (uint32_t i = 0; i < all->count; i++)
        if (all->items[i]->runs) pthread_join(all->items[i]->thread, NULL);
    cr_timer_stop(&home->calls->timers, &all->gates);
    cr_timer_stop(&home->calls->timers, &all->gather);
    home->calls->still = NULL;
    home->calls->stats.sources.gather = NULL;
    home->calls->stats.sources.annexes = 0;
    add_counts(all);
    for (uint32_t i = 0; i < all->count; i++) cr_stats_log_left_out(&all->items[i]->calls.stats.log_timer);
    cr_annexes_news(home);
}

void cr_annexes_free(cr_native *home) {
    cr_annexes *all = home->annexes;
    if (!all) return;
    for (uint32_t i = 0; i < all->count; i++) {
        cr_annex *annex = all->items[i];
        cr_native_free(&annex->native);
        cr_calls_free(&annex->calls);
        cr_queue_free(annex->calls.queue);
        uv_loop_close(&annex->uv);
        pthread_mutex_destroy(&annex->mutex);
        pthread_cond_destroy(&annex->changed);
        free(annex);
    }
    pthread_mutex_destroy(&all->mutex);
    free(all);
    home->annexes = NULL;
}
