/* native: the door of the native protocol (proto/PROTOCOL.md): what its connections share.
 *
 * Thread: the loop's, but for the news of regions, which files threads post. Owner: main, or an annex. */
#ifndef CURED_SERVER_NATIVE_NATIVE_H
#define CURED_SERVER_NATIVE_NATIVE_H

#include "engine/memory/device.h"
#include "server/loop/loop.h"
#include "server/loop/rounds.h"

enum {
    CR_TURN_BYTES = 256 * 1024,     /* read from one connection in one turn */
    CR_ARMED_MOST = 768,            /* connections that wait for their turn, and of which Linux tells in each */
    CR_BACKLOG_BYTES = 1024 * 1024, /* replies a client may leave unread before it is no longer read from */
    CR_LINGER_MS = 1000,            /* for a client to read why its connection ended */
};

/* See crowd.h. */
typedef struct cr_crowd {
    int fd; /* an epoll */
    bool open;
    uv_poll_t poll;
} cr_crowd;

typedef struct cr_native {
    cr_door door;
    cr_loop *loop;
    cr_calls *calls;
    const cr_device_hook *device_hook; /* NULL: no GPU opens what clients share */
    struct cr_annexes *annexes;        /* of the first loop, see annex.h; NULL: it is the only one */
    struct cr_annex *annex;            /* whose native this is; NULL: the first loop's */
    cr_list connections, dirty;        /* all; those with replies to write at the end of the turn */
    cr_rounds rounds;                  /* whose turn it is to be read */
    cr_crowd crowd;
    uint64_t until_ns;  /* the end of the turn */
    uint64_t parked;    /* how often descriptors of a connection began to wait: a clock would show ties */
    uint64_t looked_ns; /* the latest time that was known some frames ago */
    uint8_t *buffer;    /* room for a frame's head in front, then CR_TURN_BYTES */
    uint8_t *spare_out; /* one connection's empty reply buffer, for the next */
    pthread_mutex_t mutex;
    cr_list region_news; /* guarded by mutex: regions that were opened or closed */
} cr_native;

/* Becomes a door of loop. */
cr_status cr_native_init(cr_native *native, cr_loop *loop, cr_error *error);
/* Its connections are gone. */
void cr_native_free(cr_native *native);

#endif
