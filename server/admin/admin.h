/* admin: the door of operators: metrics, health, figures and a page, by HTTP/1.1. It only tells and changes nothing.
 *
 * Its listeners are its own (option admin), so no first byte tells its connections from others. Operators must be able to look in when
 * everything is full, so a connection beyond max_connections is answered here too. The door has a limit of its own instead:
 * beyond CR_ADMIN_CONNECTIONS the oldest connection of whoever has most of them ends.
 *
 * Thread: the loop's. Owner: main. */
#ifndef CURED_SERVER_ADMIN_ADMIN_H
#define CURED_SERVER_ADMIN_ADMIN_H

#include "server/admin/pages.h"
#include "server/loop/loop.h"

enum {
    CR_ADMIN_CONNECTIONS = 64,
    CR_ADMIN_TURN_NS = 100000,  /* for all its connections in one turn of the loop */
    CR_ADMIN_IDLE_MS = 75000,   /* between two requests: a scrape a minute keeps its connection */
    CR_ADMIN_LINGER_MS = 1000,  /* for a client to read why its connection ended */
    CR_ADMIN_READ_BYTES = 4096, /* in one turn */
};

typedef struct cr_admin {
    cr_door door;
    cr_loop *loop;
    cr_calls *calls;
    cr_list connections; /* the oldest first */
    cr_list waiting;     /* of them, those with something to do, in the order in which they go */
    uint32_t count;
    cr_pages pages;
} cr_admin;

/* Becomes a door of loop. */
void cr_admin_init(cr_admin *admin, cr_loop *loop);
/* Its connections are gone. */
void cr_admin_free(cr_admin *admin);

#endif
