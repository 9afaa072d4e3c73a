/* loop: its turns. Thread: the loop's. Owner: main. */
#include "server/loop/loop.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/loop/rounds.h"

enum {
    TIMERS_A_TURN = 128,
    AWAY_MS = 1000,   /* a clock that comes so late says that the daemon was away: stopped, or without a core */
    AWAY_MOST = 16,   /* in a row, or timers would never fire on a machine where it always is */
    CATCH_UP_MS = 50, /* after that, for what clients have sent in time */
};

static void on_clock(uv_timer_t *timer) {
    cr_loop *loop = timer->data;
    const uint64_t now = cr_now_ms();
    const bool away = now >= loop->clock_due + AWAY_MS;
    loop->catches_up = away && loop->catches_up < AWAY_MOST ? loop->catches_up + 1 : 0;
    if (loop->catches_up) {
        loop->clock_due = now + CATCH_UP_MS;
        uv_timer_start(timer, on_clock, CATCH_UP_MS, 0);
        return;
    }
    loop->clock_set = UINT64_MAX;
    cr_timers_run(&loop->calls->timers, now, TIMERS_A_TURN);
}

static void on_wake(uv_async_t *wake) {
    cr_loop *loop = wake->data;
    cr_loop_came(loop);
    loop->just_came = false; /* answers may take long */
    loop->job_ends = cr_queue_take_announced(loop->calls->queue);
    if (cr_calls_turn(loop->calls, CR_TURN_NS)) cr_loop_wake(loop);
    for (uint32_t i = 0; i < loop->door_count; i++) loop->doors[i]->woken(loop->doors[i]);
    if (!loop->calls->warming && cr_lanes_check(&loop->calls->lanes) && loop->lane_lost) loop->lane_lost(loop);
}

void cr_loop_wake(void *argument) {
    cr_loop *loop = argument;
    uv_async_send(&loop->wake);
}

static bool quiet(const cr_loop *loop) {
    for (uint32_t i = 0; i < loop->door_count; i++)
        if (!loop->doors[i]->quiet(loop->doors[i])) return false;
    return true;
}

static void on_looking(uv_idle_t *looking) {
    const cr_loop *loop = looking->data;
    if (loop->looks) sched_yield();
}

static void stop_looking(cr_loop *loop) {
    if (loop->looks) cr_lookout_end(loop->waits, &loop->look);
    loop->looks = false;
}

void cr_loop_came(cr_loop *loop) {
    if (loop->came_ns) return;
    loop->came_ns = cr_now_ns();
    loop->just_came = true;
    if (!loop->waits) return;
    stop_looking(loop);
    cr_lookout_waited(loop->waits, loop->came_ns - loop->waits_ns, loop->came_ns);
    loop->waits = NULL;
}

uint64_t cr_loop_now(cr_loop *loop) {
    const bool known = loop->just_came;
    loop->just_came = false;
    return known ? loop->came_ns : cr_now_ns();
}

/* A wait goes on, or begins once a turn has brought nothing more. */
static void look_out(cr_loop *loop) {
    const bool looks = loop->idle.most_ns && !loop->calls->warming;
    if (!looks && !loop->came_ns) return;
    const uint64_t now = cr_now_ns();
    if (loop->came_ns) cr_histogram_add(&loop->calls->stats.turns, now - loop->came_ns);
    loop->came_ns = 0;
    loop->just_came = false;
    if (!looks) return;
    if (loop->waits) {
        if (loop->looks && !cr_look_on(&loop->look, now)) stop_looking(loop);
    } else {
        if (loop->job_ends) cr_lookout_expect(&loop->sure, now);
        loop->waits = loop->job_ends ? &loop->sure : cr_list_empty(&loop->calls->open) ? &loop->idle : &loop->busy;
        loop->job_ends = false;
        loop->waits_ns = now;
        loop->looks = cr_lookout_begin(loop->waits, &loop->look, now);
    }
}

/* An idle handle keeps the loop from sleeping: it only looks what there is. */
static void look_or_sleep(cr_loop *loop) {
    look_out(loop);
    const bool stays = loop->looks || loop->left, looks = uv_is_active((uv_handle_t *)&loop->looking);
    if (looks && !stays) uv_idle_stop(&loop->looking);
    if (!looks && stays) uv_idle_start(&loop->looking, on_looking);
}

static void on_check(uv_check_t *check) {
    cr_loop *loop = check->data;
    loop->left = false;
    for (uint32_t i = 0; i < loop->door_count; i++) loop->left |= loop->doors[i]->serve(loop->doors[i]);
}

static void set_clock(cr_loop *loop) {
    uint64_t next = cr_timers_next(&loop->calls->timers);
    if (next == loop->clock_set || loop->catches_up) return;
    uint64_t now = cr_now_ms();
    loop->clock_set = next;
    loop->clock_due = next > now ? next : now;
    if (next == UINT64_MAX)
        uv_timer_stop(&loop->clock);
    else
        uv_timer_start(&loop->clock, on_clock, next > now ? next - now : 0, 0);
}

/* A client that reads its answers at once could keep a door writing. What is left is for the next turn, because others come
 * first. */
static void on_prepare(uv_prepare_t *prepare) {
    cr_loop *loop = prepare->data;
    for (uint32_t i = 0; i < loop->door_count; i++) loop->left |= loop->doors[i]->flush(loop->doors[i]);
    cr_trim_look(&loop->trim);
    set_clock(loop);
    look_or_sleep(loop);
    if (loop->calls->draining && loop->drained && quiet(loop)) {
        void (*drained)(cr_loop *) = loop->drained;
        loop->drained = NULL;
        drained(loop);
    }
}

static void on_reserve(uv_poll_t *reserve, int status, int events) {
    (void)reserve;
    (void)status;
    (void)events;
}

cr_status cr_loop_init(cr_loop *loop, uv_loop_t *uv, cr_calls *calls, cr_error *error) {
    loop->uv = uv;
    loop->calls = calls;
    loop->clock_set = UINT64_MAX;
    loop->busy = loop->idle = loop->sure =
        (cr_lookout){.seats = &calls->lanes.seats, .most_ns = calls->config->spin_us * 1000};
    loop->sure.most_ns *= 2; /* a GPU's pace is only about what it was */
    cr_trim_init(&loop->trim, calls);
    int failed = uv_async_init(uv, &loop->wake, on_wake);
    if (failed) return cr_fail(error, CR_INTERNAL, "cannot set up the loop: %s", uv_strerror(failed));
    uv_timer_init(uv, &loop->clock);
    uv_prepare_init(uv, &loop->prepare);
    uv_check_init(uv, &loop->check);
    uv_idle_init(uv, &loop->looking);
    loop->looking.data = loop->wake.data = loop->clock.data = loop->prepare.data = loop->check.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_start(&loop->check, on_check);
    return CR_OK;
}

void cr_loop_reserve(cr_loop *loop, uint64_t descriptors) {
    enum { LIBUV_OWN = 2 }; /* entries behind the descriptors' */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < descriptors) descriptors = limit.rlim_cur;
    int low = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int high = low >= 0 && descriptors > LIBUV_OWN ? fcntl(low, F_DUPFD_CLOEXEC, (int)descriptors - LIBUV_OWN - 1) : -1;
    if (high >= 0 && uv_poll_init(loop->uv, &loop->reserve, high) == 0) {
        uv_poll_start(&loop->reserve, UV_READABLE, on_reserve);
        uv_close((uv_handle_t *)&loop->reserve, NULL);
    }
    if (high >= 0) close(high);
    if (low >= 0) close(low);
}

void cr_loop_add(cr_loop *loop, cr_door *door) {
    assert(loop->door_count < CR_LOOP_MAX_DOORS);
    loop->doors[loop->door_count++] = door;
}

/* Who does nothing more does not keep the daemon from its end. */
static void on_hurry(cr_timer *hurry) {
    cr_loop *loop = cr_container(hurry, cr_loop, hurry);
    /* Doors first: what calls answer now has not been written yet. */
    for (uint32_t i = 0; i < loop->door_count; i++) loop->doors[i]->hurry(loop->doors[i], CR_HURRY_MS);
    cr_calls_hurry(loop->calls);
    cr_timer_set(&loop->calls->timers, hurry, cr_now_ms() + CR_HURRY_MS);
}

void cr_loop_drain(cr_loop *loop, void (*drained)(cr_loop *loop)) {
    loop->calls->draining = true;
    loop->hurry.fire = on_hurry;
    on_hurry(&loop->hurry);
    loop->drained = drained;
    cr_loop_wake(loop); /* so that prepare looks at once */
}

void cr_loop_close_doors(cr_loop *loop) {
    for (uint32_t i = 0; i < loop->door_count; i++) loop->doors[i]->close_all(loop->doors[i]);
}

void cr_loop_close_handles(cr_loop *loop) {
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->clock, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
    uv_close((uv_handle_t *)&loop->looking, NULL);
}
