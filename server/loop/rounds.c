/* rounds: the rings of clients. Thread: the loop's. Owner: see rounds.h. */
#include "server/loop/rounds.h"

#include <stdlib.h>

#include "base/clock.h"

/* A client, as long as it has a connection. */
typedef struct cr_sitter {
    cr_node node;  /* by the client's key */
    cr_list link;  /* in a ring */
    cr_list seats; /* that wait */
    size_t members;
    bool heavy; /* its last go was full */
} cr_sitter;

void cr_rounds_init(cr_rounds *r) {
    *r = (cr_rounds){0};
    cr_list_init(&r->light);
    cr_list_init(&r->heavy);
}

void cr_rounds_free(cr_rounds *r) { cr_table_free(&r->clients); }

static void let_go(cr_rounds *r, cr_sitter *client) {
    if (--client->members) return;
    cr_list_remove(&client->link);
    cr_table_remove(&r->clients, &client->node);
    free(client);
}

bool cr_rounds_join(cr_rounds *r, cr_seat *seat, uint64_t key) {
    cr_node *node = cr_table_find(&r->clients, key);
    cr_sitter *client = node ? cr_container(node, cr_sitter, node) : calloc(1, sizeof *client);
    if (!client) return false;
    if (!node) {
        client->node.key = key;
        cr_list_init(&client->link);
        cr_list_init(&client->seats);
        if (!cr_table_add(&r->clients, &client->node)) {
            free(client);
            return false;
        }
    }
    client->members++;
    *seat = (cr_seat){.client = client, .turn = r->turn - 1};
    cr_list_init(&seat->link);
    return true;
}

/* Nobody waits in a ring without a seat that waits. */
static void stop_waiting(cr_rounds *r, cr_seat *seat) {
    if (!seat->waits) return;
    seat->waits = false;
    r->waiting--;
    cr_list_remove(&seat->link);
    if (cr_list_empty(&seat->client->seats)) cr_list_remove(&seat->client->link);
}

void cr_rounds_leave(cr_rounds *r, cr_seat *seat) {
    if (!seat->client) return;
    stop_waiting(r, seat);
    let_go(r, seat->client);
    seat->client = NULL;
}

void cr_rounds_wait(cr_rounds *r, cr_seat *seat) {
    cr_sitter *client = seat->client;
    if (seat->waits || !client) return;
    seat->waits = true;
    r->waiting++;
    cr_list_append(&client->seats, &seat->link);
    if (cr_list_empty(&client->link)) cr_list_append(client->heavy ? &r->heavy : &r->light, &client->link);
}

/* The client's connections, one after the other, until one had a full go or the time is over. False: those that wait went in
 * this turn already. */
static bool let_client_go(cr_rounds *r, cr_sitter *client, bool (*go)(cr_seat *, uint64_t), uint64_t until) {
    bool went = false, full = false;
    client->members++; /* its last connection may leave */
    while (!full && !cr_list_empty(&client->seats)) {
        cr_seat *seat = cr_container(client->seats.next, cr_seat, link);
        if (seat->turn == r->turn) break; /* so did all behind it */
        if (went && cr_now_ns() >= until) break;
        stop_waiting(r, seat);
        seat->turn = r->turn;
        full = go(seat, until);
        went = true;
    }
    if (went) client->heavy = full;
    cr_list_remove(&client->link);
    if (!cr_list_empty(&client->seats)) cr_list_append(&r->heavy, &client->link);
    let_go(r, client);
    return went;
}

bool cr_rounds_turn(cr_rounds *r, uint64_t now_ns, bool (*go)(cr_seat *seat, uint64_t until_ns)) {
    const uint64_t until = now_ns + CR_TURN_NS;
    const uint64_t of_light = cr_list_empty(&r->heavy) ? until : until - CR_TURN_NS / 4;
    r->turn++;
    while (!cr_list_empty(&r->light)) {
        let_client_go(r, cr_container(r->light.next, cr_sitter, link), go, of_light);
        if (!cr_list_empty(&r->light) && cr_now_ns() >= of_light) break;
    }
    /* A client that went stands behind all others. Once the first in the ring has nobody left to go, all have gone. */
    for (bool went = true; went && !cr_list_empty(&r->heavy);) {
        went = let_client_go(r, cr_container(r->heavy.next, cr_sitter, link), go, until);
        if (!cr_list_empty(&r->heavy) && cr_now_ns() >= until) break;
    }
    return r->waiting > 0;
}
