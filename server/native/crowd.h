/* crowd: connections of which Linux tells once, when something came, and not in each turn until they had theirs.
 *
 * Poll tells of a socket for as long as there is something to read. With some hundred connections in line that is one report of each
 * a turn, and a turn serves a hundred: most of the loop's time goes into hearing the same again. So a connection that poll reports
 * while it already waits, among many, is watched here: by an epoll of its own, edge-triggered, which the loop watches in turn. It
 * stays until it needs what an edge cannot say: replies that wait until the client reads, a read that must wait.
 *
 * Who is watched so must read until nothing is left: conn->readable stays until a read found less than it had room for, or, once the
 * client has ended (conn->ended), the end.
 * Thread: the loop's. Owner: the native door. */
#ifndef CURED_SERVER_NATIVE_CROWD_H
#define CURED_SERVER_NATIVE_CROWD_H

#include "server/native/conn.h"

cr_status cr_crowd_open(cr_native *native, cr_error *error);
/* The connection, which is readable and has nothing to write, joins if many wait for their turn. False: it does not. */
bool cr_crowd_join(cr_conn *conn);
/* poll has to watch it again, unless it is closed. */
void cr_crowd_leave(cr_conn *conn);
/* All connections are closed. The loop has to run once more. */
void cr_crowd_close(cr_native *native);

#endif
