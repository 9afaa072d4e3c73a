/* reload: the options and the files they name, read again while the daemon runs: on SIGHUP, or when a client asks for it.
 *
 * A thread of its own reads and checks, because a file may lie on a file system that hangs. The loop takes over all of it at
 * once, or nothing.
 *
 *   IDLE ──SIGHUP, a client──► READING ──the thread is done──► IDLE   (or READING again, if somebody asked meanwhile)
 *                                 └──not within LIMIT_MS──► IDLE, and the thread is left behind
 *
 * Thread: the loop's, but for the reading. Owner: main; it lives as long as the process. */
#ifndef CURED_SERVER_RELOAD_H
#define CURED_SERVER_RELOAD_H

#include "server/call/reload.h"
#include "server/transport/arrival.h"

struct cr_reading;

typedef struct cr_reload {
    cr_loop *loop;
    cr_arrivals *arrivals;
    cr_config *config;
    int argc;
    char **argv;
    void (*adjust)(cr_config *fresh);        /* before it is compared with what was */
    void (*taken)(struct cr_reload *reload); /* after config has changed */
    void *data;

    uv_async_t done;
    cr_timer limit;             /* set while reading */
    struct cr_reading *reading; /* NULL: IDLE */
    bool again;                 /* somebody asked since the reading began */
    cr_list waiting, later;     /* cr_reload_wait: for this reading, for the next */
    pthread_mutex_t mutex;
    struct cr_reading *finished; /* guarded by mutex */
    unsigned left_behind;        /* guarded by mutex: threads whose files do not answer */
    bool over;                   /* guarded by mutex: the loop ends */
} cr_reload;

/* The members up to data are set. */
cr_status cr_reload_init(cr_reload *reload, cr_error *error);
/* Reads the options again. wait is told how that went; NULL: only the log is. */
void cr_reload_ask(void *reload, cr_reload_wait *wait);
/* Nothing is taken over any more. Who waits is not told. False: a thread still reads, and may be within OpenSSL, so the process must
 * end without what libraries do at exit. */
bool cr_reload_end(cr_reload *reload);

#endif
