/* door: a way by which clients reach the daemon, as the loop and the listeners see it: one for each protocol.
 *
 * Thread: the loop's. Owner: the protocol's folder, whose state embeds the door. */
#ifndef CURED_SERVER_LOOP_DOOR_H
#define CURED_SERVER_LOOP_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

typedef struct cr_door cr_door;

struct cr_door {
    /* Takes over the socket of a new connection (non-blocking, close-on-exec), in every case. */
    cr_status (*open)(cr_door *door, int fd, bool is_unix, cr_error *error);
    /* After a wake: other threads may have left news. */
    void (*woken)(cr_door *door);
    /* After the loop has looked at the sockets: connections have their turns. True: somebody still waits for one. */
    bool (*serve)(cr_door *door);
    /* Before the loop sleeps: writes what is due, once. True: something is left for the next turn. */
    bool (*flush)(cr_door *door);
    /* While draining: connections end whose replies nobody has read for so long. */
    void (*hurry)(cr_door *door, uint64_t stalled_ms);
    /* No call is open and every answer is written. */
    bool (*quiet)(const cr_door *door);
    /* Ends every connection, saying so (UNAVAILABLE) where the client can still read it. */
    void (*close_all)(cr_door *door);
};

#endif
