/* look: see look.h. Thread, owner: see there. */
#include "client/lib/conn/look.h"

#include <pthread.h>
#include <sched.h>

#include "base/cores.h"
#include "client/lib/internal.h"

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

/* What two calls have in common that take the same time; 0: a call of which nothing is foreseen. */
static uint64_t kind_of(const cured_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (call->kind == KIND_STREAM || call->request.kind != CR_CALL_REDUCE) return 0;
    const uint64_t words[] = {(uint64_t)call->kind << 32 | r->dtype, r->length_known ? r->length : r->region,
                              r->has_axis ? r->n : 0, r->has_axis ? r->inner : 0, r->outputs};
    const size_t count = sizeof words / sizeof words[0];
    uint64_t kind = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count + r->op_count; i++) {
        kind ^= i < count ? words[i] : (uint64_t)r->ops[i - count] + 1;
        kind *= UINT64_C(0x100000001b3);
        kind ^= kind >> 32;
    }
    return kind;
}

uint64_t cr_cl_look_asleep_until(cured_call *call, uint64_t now_ns) {
    if (call->waits_ns == 0) {
        const uint64_t kind = kind_of(call), takes = kind != 0 ? cr_foresight_of(&call->conn->foresight, kind) : 0;
        call->waits_ns = now_ns;
        if (takes != 0 && takes <= FORESEEN_MOST_NS && cr_lookout_may(&call->conn->lookout, now_ns))
            call->foreseen_ns = now_ns + takes;
    }
    return call->foreseen_ns > now_ns + AHEAD_NS ? call->foreseen_ns - AHEAD_NS : 0;
}

bool cr_cl_look(cured_conn *conn, cured_call *call, uint64_t now_ns) {
    cr_look look;
    bool came = false;
    conn->look_ns = now_ns;
    if (call != NULL && call->foreseen_ns != 0) {
        cr_lookout_expect(&conn->lookout, now_ns);
        conn->look_ns = call->waits_ns;
        call->foreseen_ns = 0;
    }
    if (!cr_lookout_begin(&conn->lookout, &look, now_ns)) return false;
    conn->busy = true;
    do {
        sched_yield();
        came = cr_cl_receive_once(conn);
    } while (!came && cr_look_on(&look, cr_now_ns()));
    conn->busy = false;
    cr_lookout_end(&conn->lookout, &look);
    return came;
}

void cr_cl_look_waited(cured_conn *conn, uint64_t now_ns) {
    cr_lookout_waited(&conn->lookout, now_ns - conn->look_ns, now_ns);
}

/* A thread that sleeps wakes late, by up to some hundred microseconds. By such times alone it would sleep too long again and again. */
void cr_cl_look_done(cured_call *call) {
    const uint64_t kind = call->waits_ns != 0 && call->error.code == CR_OK ? kind_of(call) : 0;
    if (kind != 0) {
        const uint64_t took = cr_now_ns() - call->waits_ns;
        const uint64_t asleep = call->foreseen_ns != 0 ? call->foreseen_ns - AHEAD_NS - call->waits_ns : 0;
        if (asleep == 0)
            cr_foresight_took(&call->conn->foresight, kind, took);
        else
            cr_foresight_overslept(&call->conn->foresight, kind, took < asleep ? took : asleep);
    }
    call->waits_ns = call->foreseen_ns = 0;
}
