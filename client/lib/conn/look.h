/* look: how a blocking wait looks for an answer before it sleeps, because to be woken costs more than a small reduction. What it learns from
 * the waits before is the rule of base/lookout.h. Calls of the same kind may be known to take the same time: then a wait sleeps
 * until shortly before the end, and looks from there.
 *
 * Thread: the one that uses the connection; the seats are the process's. Owner: the connection. */
#ifndef CURED_CLIENT_LIB_CONN_LOOK_H
#define CURED_CLIENT_LIB_CONN_LOOK_H

#include "cured/cured.h"

/* As cured_connect_options.spin_us says. */
void cr_cl_look_init(cured_conn *conn, uint32_t spin_us);
/* How many more threads may look; as if there were so many cores from now on, where it is not 0: for tests. */
int32_t cr_cl_look_seats(uint32_t cores);

/* The call is waited for. Until when the wait may sleep, because nothing comes before; 0: it is not known. */
uint64_t cr_cl_look_asleep_until(cured_conn *conn, cured_call *call, uint64_t now_ns);
/* Looks for what comes on the connection, from now_ns on; true: something came, and was read. call NULL: for no certain one. */
bool cr_cl_look(cured_conn *conn, cured_call *call, uint64_t now_ns);
/* The wait that cr_cl_look began is over. */
void cr_cl_look_waited(cured_conn *conn, uint64_t now_ns);
/* The call that was waited for is done. */
void cr_cl_look_done(cured_conn *conn, cured_call *call);

#endif
