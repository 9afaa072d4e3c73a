/* notify: tells the service manager how the daemon is (sd_notify(3)): a datagram to the socket that NOTIFY_SOCKET names. Without
 * one nothing is told.
 *
 * Thread: main's and the loop's. Owner: nobody; it lives as long as the process. */
#ifndef CURED_BASE_NOTIFY_H
#define CURED_BASE_NOTIFY_H

#include <stdint.h>

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment: programs that this process starts have no
 * part in it. Before there are other threads. */
void cr_notify_open(void);
/* Lines such as "READY=1". It never waits: what the manager has no room for is lost. */
void cr_notify(const char *text);
/* How often the manager wants to hear "WATCHDOG=1", in ms: half of its limit. 0: it does not. */
uint64_t cr_notify_watchdog_ms(void);

#endif
