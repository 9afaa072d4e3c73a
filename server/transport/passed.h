/* passed: listening sockets that the service manager made and passes to the daemon (sd_listen_fds(3)): LISTEN_FDS of them from
 * descriptor 3 on, for the process that LISTEN_PID names.
 *
 * Thread: main's, at start. Owner: the listeners that adopt them. */
#ifndef CURED_SERVER_TRANSPORT_PASSED_H
#define CURED_SERVER_TRANSPORT_PASSED_H

#include "base/config.h"

enum { CR_PASSED_FIRST = 3, CR_PASSED_SOCKETS_MOST = CR_CONFIG_LIST_MAX };

/* How many were passed; 0: none. Takes LISTEN_PID out of the environment: programs that this process starts have no part in
 * it. Before there are other threads. INVALID_ARGUMENT: more than CR_PASSED_SOCKETS_MOST, or no number. */
cr_status cr_passed_count(uint32_t *count, cr_error *error);

#endif
