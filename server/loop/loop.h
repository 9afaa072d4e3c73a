/* loop: what the connections of one loop share, and the loop's own turns: timers, wakes, draining.
 *
 * Thread: everything here is the loop's, but for cr_server_wake (any thread) and the grants list (its own mutex).
 * Owner: main makes it, starts it and frees it. No globals: several loops, each with its server, stay possible. */
#ifndef CURED_SERVER_LOOP_LOOP_H
#define CURED_SERVER_LOOP_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "proto/wire.h"
#include "server/admit/admission.h"
#include "server/base/config.h"
#include "server/base/timers.h"
#include "server/lanes/lanes.h"
#include "server/memory/device.h"
#include "server/memory/files.h"
#include "server/memory/slab.h"

enum {
    CR_TURN_BYTES = 256 * 1024,     /* read from one connection in one turn */
    CR_INLINE_BYTES = 16 * 1024,    /* arrays up to here are folded on the loop: waking a worker costs more */
    CR_SLAB_IDLE_MS = 10,           /* an upload that brings nothing for so long hands over its slab */
    CR_BACKLOG_BYTES = 1024 * 1024, /* replies a client may leave unread before it is no longer read from */
    CR_LINGER_MS = 1000,            /* for a client to read why its connection ended */
};

typedef struct cr_server {
    uv_loop_t *loop;
    const cr_config *config;
    const char *version;
    bool runs_kernels; /* a lane of a CUDA device is open, and takes calls that name a kernel */
    cr_queue *queue;
    cr_slabs *slabs;
    cr_files *files;
    const cr_device_hook *device_hook; /* NULL: no GPU opens what clients share */
    cr_lanes lanes;
    uint64_t started_ms;

    cr_admission admission;
    cr_list connections, dirty; /* all; those with replies to write at the end of the turn */
    cr_list filling;            /* uploads with an open slab, the longest idle first */
    cr_timers timers;
    uv_timer_t clock;   /* set to the next of timers */
    uv_timer_t sealing; /* runs while filling is not empty */
    uv_async_t wake;
    uv_prepare_t prepare; /* before each sleep: write replies, set the clock */
    uv_idle_t
        looking; /* with spin_us: runs for so long after the last turn in which something came, and the loop does not sleep */
    uint64_t look_until;
    bool came; /* something did in this turn */
    uint64_t clock_set;
    uint64_t read_ns; /* when the bytes being taken were read: the arrival of every CALL among them */
    uint64_t last_ns; /* the latest time anybody looked; saves a call that folds on the loop one look of two */

    pthread_mutex_t grants_mutex;
    cr_list grants;      /* connections that were given a slab */
    cr_list region_news; /* regions that were opened or closed */

    uint8_t *buffer;    /* room for a frame's head in front, then CR_TURN_BYTES */
    uint8_t *spare_out; /* one connection's empty reply buffer, for the next */
    bool draining;
    void (*drained)(struct cr_server *server);   /* called once when draining and the last call is over */
    void (*lane_lost)(struct cr_server *server); /* called after a GPU was lost */
} cr_server;

_Static_assert((int)CR_MAX_LANES <= (int)CR_WIRE_MAX_LANES, "Info has room for every lane");

/* The limits of the options, at start and when they were reloaded. */
void cr_server_limit(cr_server *server);
cr_status cr_server_init(cr_server *server, uv_loop_t *loop, const cr_config *config, cr_error *error);
/* For cr_queue_new. */
void cr_server_wake(void *server);
/* New calls are refused; drained is called when the running ones are over. */
void cr_server_drain(cr_server *server);
/* Ends every connection, saying so (UNAVAILABLE) where the client can still read it. */
void cr_server_close_all(cr_server *server);
/* Closes the loop's handles; the loop then has to run until they are gone. cr_server_free after that. */
void cr_server_close_handles(cr_server *server);
void cr_server_free(cr_server *server);
void cr_server_limits(const cr_server *server, cr_wire_limits *limits);

#endif
