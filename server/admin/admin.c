/* admin: the door. Thread: the loop's. Owner: main. */
#include "server/admin/admin.h"

#include "base/clock.h"
#include "server/admin/conn.h"

static cr_admin *of(const cr_door *door) { return cr_container(door, cr_admin, door); }

static cr_admin_conn *conn_of(cr_list *node) { return cr_container(node, cr_admin_conn, link); }

static uint32_t held_by(const cr_admin *admin, uint64_t owner) {
    uint32_t held = 0;
    for (cr_list *node = admin->connections.next; node != &admin->connections; node = node->next)
        held += conn_of(node)->peer.owner == owner;
    return held;
}

/* Makes room for one connection more: so a flood of one user's takes nobody else's. */
static void end_one(cr_admin *admin) {
    cr_admin_conn *victim = NULL;
    uint32_t most = 0;
    for (cr_list *node = admin->connections.next; node != &admin->connections; node = node->next) {
        const uint32_t held = held_by(admin, conn_of(node)->peer.owner);
        if (held <= most) continue;
        most = held;
        victim = conn_of(node);
    }
    if (victim) cr_admin_conn_close(victim);
}

static cr_status open_connection(cr_door *door, const cr_arrived *arrived, cr_error *error) {
    cr_admin *admin = of(door);
    if (admin->count >= CR_ADMIN_CONNECTIONS) end_one(admin);
    return cr_admin_conn_open(admin, arrived, error);
}

static void woken(cr_door *door) { (void)door; }

static bool serve(cr_door *door) {
    cr_admin *admin = of(door);
    if (cr_list_empty(&admin->waiting)) return false;
    const uint64_t until = cr_now_ns() + CR_ADMIN_TURN_NS;
    cr_list now; /* those that wait by now: each goes once */
    cr_list_init(&now);
    cr_list_move(&now, &admin->waiting);
    do {
        cr_admin_conn_go(cr_container(cr_list_pop(&now), cr_admin_conn, waiting));
    } while (!cr_list_empty(&now) && cr_now_ns() < until);
    /* Those that did not go come first in the next turn. */
    for (cr_list *node; (node = cr_list_pop(&admin->waiting));) cr_list_append(&now, node);
    cr_list_move(&admin->waiting, &now);
    return !cr_list_empty(&admin->waiting);
}

static bool flush(cr_door *door) { return !cr_list_empty(&of(door)->waiting); }

/* Open pages do not delay the daemon's end. */
static void hurry(cr_door *door, uint64_t stalled_ms) {
    (void)door;
    (void)stalled_ms;
}

static bool quiet(const cr_door *door) {
    (void)door;
    return true;
}

static void close_all(cr_door *door) {
    cr_admin *admin = of(door);
    while (!cr_list_empty(&admin->connections)) cr_admin_conn_close(conn_of(admin->connections.next));
}

void cr_admin_init(cr_admin *admin, cr_loop *loop) {
    admin->door = (cr_door){NULL, open_connection, woken, serve, flush, hurry, quiet, close_all};
    admin->loop = loop;
    admin->calls = loop->calls;
    cr_list_init(&admin->connections);
    cr_list_init(&admin->waiting);
    cr_loop_add(loop, &admin->door);
}

void cr_admin_free(cr_admin *admin) { cr_pages_free(&admin->pages); }
