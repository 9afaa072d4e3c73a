/* look: see look.h. Thread, owner: see there. */
#include "client/lib/conn/look.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/cores.h"
#include "client/lib/conn/conn.h"

enum {
    MOST_US = 200,         /* by default: longer than 256 MiB take on a GPU */
    CORES = 4,             /* below nobody looks by default: the daemon does, and a program has work of its own */
    AHEAD_NS = 130 * 1000, /* so long before an answer is foreseen it is looked for: who sleeps until then wakes late */
    FORESEEN_MOST_NS = 10 * 1000 * 1000, /* who waits longer does not gain by it */
};

static cr_seats seats; /* of all connections of this process */
static uint32_t cores_here;
static pthread_once_t known = PTHREAD_ONCE_INIT;

/* One may always look that was asked to: the daemon may have another core than its client. */
static void free_seats(void) { cr_seats_init(&seats, cores_here < 2 ? 2 : cores_here); }

static void set_cores(uint32_t cores) {
    cores_here = cores;
    free_seats();
}

/* The threads that look when a process forks are none of the child's. */
static void know(void) {
    set_cores(cr_cores());
    pthread_atfork(NULL, NULL, free_seats);
}

int32_t cr_cl_look_seats(uint32_t cores) {
    pthread_once(&known, know);
    if (cores != 0) set_cores(cores);
    return atomic_load(&seats.free);
}

void cr_cl_look_init(cured_conn *conn, uint32_t spin_us) {
    pthread_once(&known, know);
    if (spin_us == 0) spin_us = cores_here < CORES ? 0 : MOST_US;
    if (spin_us == CURED_NEVER_LOOK) spin_us = 0;
    conn->lookout = (cr_lookout){.seats = &seats, .most_ns = spin_us * UINT64_C(1000)};
}

uint64_t cr_cl_look_asleep_until(cured_conn *conn, cured_call *call, uint64_t now_ns) {
    cr_cl_awaited *wait = cr_cl_call_awaited(call);
    if (wait->since_ns == 0) {
        const uint64_t kind = cr_cl_call_kind(call), takes = kind != 0 ? cr_foresight_of(&conn->foresight, kind) : 0;
        wait->since_ns = now_ns;
        if (takes != 0 && takes <= FORESEEN_MOST_NS && cr_lookout_may(&conn->lookout, now_ns))
            wait->foreseen_ns = now_ns + takes;
    }
    return wait->foreseen_ns > now_ns + AHEAD_NS ? wait->foreseen_ns - AHEAD_NS : 0;
}

bool cr_cl_look(cured_conn *conn, cured_call *call, uint64_t now_ns) {
    cr_look look;
    bool came = false;
    cr_cl_awaited *wait = call != NULL ? cr_cl_call_awaited(call) : NULL;
    conn->look_ns = now_ns;
    if (wait != NULL && wait->foreseen_ns != 0) {
        cr_lookout_expect(&conn->lookout, now_ns);
        conn->look_ns = wait->since_ns;
        wait->foreseen_ns = 0;
    }
    if (!cr_lookout_begin(&conn->lookout, &look, now_ns)) return false;
    conn->calls.busy = true;
    do {
        sched_yield();
        came = cr_cl_receive_once(conn);
    } while (!came && cr_look_on(&look, cr_now_ns()));
    conn->calls.busy = false;
    cr_lookout_end(&conn->lookout, &look);
    return came;
}

void cr_cl_look_waited(cured_conn *conn, uint64_t now_ns) {
    cr_lookout_waited(&conn->lookout, now_ns - conn->look_ns, now_ns);
}

/* A thread that sleeps wakes late, by up to some hundred microseconds. By such times alone it would sleep too long again and again. */
void cr_cl_look_done(cured_conn *conn, cured_call *call) {
    cr_cl_awaited *wait = cr_cl_call_awaited(call);
    const bool well = wait->since_ns != 0 && cured_call_status(call, NULL) == CURED_OK;
    const uint64_t kind = well ? cr_cl_call_kind(call) : 0;
    if (kind != 0) {
        const uint64_t took = cr_now_ns() - wait->since_ns;
        const uint64_t asleep = wait->foreseen_ns != 0 ? wait->foreseen_ns - AHEAD_NS - wait->since_ns : 0;
        if (asleep == 0)
            cr_foresight_took(&conn->foresight, kind, took);
        else
            cr_foresight_overslept(&conn->foresight, kind, took < asleep ? took : asleep);
    }
    *wait = (cr_cl_awaited){0, 0};
}
