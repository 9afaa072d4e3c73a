/* grpc: the door. Thread: the loop's. Owner: main. */
#include "server/grpc/grpc.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/grpc/conn.h"
#include "server/grpc/health.h"
#include "server/grpc/session.h"

static cr_grpc *of(const cr_door *door) { return cr_container(door, cr_grpc, door); }

static cr_status open_connection(cr_door *door, const cr_arrived *arrived, cr_error *error) {
    return cr_grpc_conn_open(of(door), arrived, error);
}

static void woken(cr_door *door) { (void)door; }

static bool serve(cr_door *door) {
    cr_rounds *rounds = &of(door)->rounds;
    return rounds->waiting && cr_rounds_turn(rounds, cr_loop_now(of(door)->loop), cr_grpc_conn_go);
}

static bool flush(cr_door *door) {
    cr_grpc *grpc = of(door);
    cr_health_look(grpc);
    const uint64_t until = cr_list_empty(&grpc->dirty) ? 0 : cr_now_ns() + CR_TURN_NS;
    while (!cr_list_empty(&grpc->dirty)) {
        cr_grpc_conn_flush(cr_container(cr_list_pop(&grpc->dirty), cr_grpc_conn, dirty));
        if (cr_now_ns() >= until) break;
    }
    return grpc->rounds.waiting > 0 || !cr_list_empty(&grpc->dirty);
}

/* The first time the clients hear that no new calls are taken. A second later those who have not said that they heard it are not
 * waited for. */
static void hurry(cr_door *door, uint64_t stalled_ms) {
    cr_grpc *grpc = of(door);
    const uint64_t now = cr_now_ms();
    const bool first = !grpc->draining;
    grpc->draining = true;
    if (first) cr_health_forget(grpc); /* this change waits for nothing */
    if (first) cr_health_look(grpc);
    for (cr_list *node = grpc->connections.next, *next; node != &grpc->connections; node = next) {
        next = node->next;
        cr_grpc_conn *conn = cr_container(node, cr_grpc_conn, link);
        if (first) {
            cr_grpc_conn_part(conn);
            continue;
        }
        conn->parting = false;
        if ((conn->backlog || cr_bytes_left(&conn->out)) && now >= conn->last_progress_ms + stalled_ms)
            cr_grpc_conn_close(conn); /* calls that stand still are not the door's */
    }
}

static bool quiet(const cr_door *door) {
    const cr_grpc *grpc = of(door);
    for (cr_list *node = grpc->connections.next; node != &grpc->connections; node = node->next)
        if (cr_grpc_conn_busy(cr_container(node, cr_grpc_conn, link))) return false;
    return true;
}

static void close_all(cr_door *door) {
    cr_grpc *grpc = of(door);
    cr_health_forget(grpc);
    while (!cr_list_empty(&grpc->connections)) {
        cr_grpc_conn *conn = cr_container(grpc->connections.next, cr_grpc_conn, link);
        cr_grpc_conn_goaway(conn, NGHTTP2_NO_ERROR, "the server is shutting down");
        cr_grpc_conn_flush(conn); /* closes it when the peer is gone */
        if (!cr_list_empty(&grpc->connections) && grpc->connections.next == &conn->link) cr_grpc_conn_close(conn);
    }
}

cr_status cr_grpc_init(cr_grpc *grpc, cr_loop *loop, cr_error *error) {
    grpc->door = (cr_door){"PRI", open_connection, woken, serve, flush, hurry, quiet, close_all};
    grpc->loop = loop;
    grpc->calls = loop->calls;
    cr_list_init(&grpc->connections);
    cr_list_init(&grpc->dirty);
    cr_list_init(&grpc->gathering);
    cr_list_init(&grpc->watchers);
    cr_rounds_init(&grpc->rounds);
    grpc->buffer = malloc(CR_GRPC_READ_BYTES);
    if (!grpc->buffer || !cr_session_setup(grpc))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the door of gRPC");
    cr_loop_add(loop, &grpc->door);
    return CR_OK;
}

void cr_grpc_free(cr_grpc *grpc) {
    free(grpc->buffer);
    nghttp2_session_callbacks_del(grpc->callbacks);
    nghttp2_option_del(grpc->options);
    cr_rounds_free(&grpc->rounds);
}
