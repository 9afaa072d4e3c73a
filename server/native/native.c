/* native: the door. Thread: the loop's. Owner: main. */
#include "server/native/native.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/native/annex.h"
#include "server/native/conn.h"
#include "server/native/crowd.h"
#include "server/native/frames.h"
#include "server/native/regions.h"

static cr_native *of(const cr_door *door) { return cr_container(door, cr_native, door); }

static cr_status open_connection(cr_door *door, const cr_arrived *arrived, cr_error *error) {
    return cr_conn_open(of(door), arrived, error);
}

static void woken(cr_door *door) {
    cr_native *native = of(door);
    if (native->annex) cr_annex_woken(native->annex);
    if (native->annexes) cr_annexes_news(native);
    if (cr_regions_news(native, CR_TURN_NS)) cr_loop_wake(native->loop);
}

static bool serve(cr_door *door) {
    cr_rounds *rounds = &of(door)->rounds;
    return rounds->waiting && cr_rounds_turn(rounds, cr_loop_now(of(door)->loop), cr_conn_go);
}

static bool flush(cr_door *door) {
    cr_native *native = of(door);
    const uint64_t until = cr_list_empty(&native->dirty) ? 0 : cr_now_ns() + CR_TURN_NS;
    while (!cr_list_empty(&native->dirty)) {
        cr_conn_flush(cr_container(cr_list_pop(&native->dirty), cr_conn, dirty));
        if (cr_now_ns() >= until) break;
    }
    if (native->annexes) cr_annexes_gate(native);
    return native->rounds.waiting > 0 || !cr_list_empty(&native->dirty);
}

static void hurry(cr_door *door, uint64_t stalled_ms) {
    cr_native *native = of(door);
    const uint64_t now = cr_now_ms();
    cr_annexes_end(native);
    for (cr_list *node = native->connections.next, *next; node != &native->connections; node = next) {
        next = node->next;
        cr_conn *conn = cr_container(node, cr_conn, link);
        if (cr_conn_backlog(conn) && now >= conn->last_progress_ms + stalled_ms) cr_conn_close(conn);
    }
}

static bool quiet(const cr_door *door) {
    const cr_native *native = of(door);
    for (cr_list *node = native->connections.next; node != &native->connections; node = node->next) {
        const cr_conn *conn = cr_container(node, cr_conn, link);
        if (conn->streams.open || cr_conn_backlog(conn)) return false;
    }
    return true;
}

static void close_all(cr_door *door) {
    cr_native *native = of(door);
    cr_error error;
    cr_fail(&error, CR_UNAVAILABLE, "the server is shutting down");
    cr_annexes_end(native);
    while (!cr_list_empty(&native->connections)) {
        cr_conn *conn = cr_container(native->connections.next, cr_conn, link);
        cr_conn_fail(conn, &error);
        cr_conn_flush(conn); /* closes it when the peer is gone */
        cr_conn_close(conn);
    }
    cr_crowd_close(native);
}

cr_status cr_native_init(cr_native *native, cr_loop *loop, cr_error *error) {
    native->door = (cr_door){"CR", open_connection, woken, serve, flush, hurry, quiet, close_all};
    native->loop = loop;
    native->calls = loop->calls;
    cr_list_init(&native->connections);
    cr_list_init(&native->dirty);
    cr_list_init(&native->region_news);
    cr_rounds_init(&native->rounds);
    pthread_mutex_init(&native->mutex, NULL);
    native->buffer = malloc(CR_FRAME_HEAD_MAX + CR_TURN_BYTES);
    if (!native->buffer) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the read buffer");
    cr_loop_add(loop, &native->door);
    return cr_crowd_open(native, error);
}

void cr_native_free(cr_native *native) {
    cr_annexes_free(native);
    pthread_mutex_destroy(&native->mutex);
    free(native->buffer);
    free(native->spare_out);
    cr_rounds_free(&native->rounds);
}
