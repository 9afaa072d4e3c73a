/* conn: one connection of an operator: reads a request, writes its answer, waits for the next.
 *
 *   READING ──a request is whole──► WRITING ──all is written──► READING        (it may keep the connection)
 *      │                                └──it ends the connection──► LINGERING ──the client has read it──► closed
 *      └──hello_timeout_ms for a whole head, 75 s between two requests──► closed
 *
 * Times are of the whole: who sends a byte now and then gains nothing by it, nor who reads one (stall_timeout_ms for an answer).
 * In one turn of the loop a connection makes one read and answers one request.
 * Thread: the loop's. Owner: the door's list; cr_admin_conn_close ends it from any state. */
#ifndef CURED_SERVER_ADMIN_CONN_H
#define CURED_SERVER_ADMIN_CONN_H

#include "server/admin/admin.h"
#include "server/admin/http.h"

typedef enum cr_admin_state { CR_ADMIN_READING, CR_ADMIN_WRITING, CR_ADMIN_LINGERING } cr_admin_state;

typedef struct cr_admin_conn {
    uv_poll_t poll;
    cr_admin *admin;
    cr_list link, waiting;
    cr_socket socket;
    cr_peer peer;
    cr_timer timer;
    cr_http http;
    cr_bytes in, out;
    uint8_t state;  /* cr_admin_state */
    uint8_t events; /* asked of poll */
    bool is_unix, refused, wants_token;
    bool trusted; /* root, or the daemon's user, as Linux says */
    bool
        near; /* a Unix socket, which ssh may forward, or TCP of this machine: names that point here may be a web page's */
    bool readable, gone, ends;
    cr_error why; /* its code is not CR_OK: each request is refused because of it */
} cr_admin_conn;

/* See cr_door. */
cr_status cr_admin_conn_open(cr_admin *admin, const cr_arrived *arrived, cr_error *error);
void cr_admin_conn_close(cr_admin_conn *conn);
/* Its turn. The connection may be gone afterwards. */
void cr_admin_conn_go(cr_admin_conn *conn);

#endif
