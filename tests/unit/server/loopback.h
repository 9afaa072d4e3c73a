/* loopback: a server with a loop of its own, and clients of it in the same thread, at the other end of socket pairs.
 *
 * Nothing happens but in turn(), so a test can count what one turn of the loop does. Thread: the test's. Owner: the test. */
#ifndef CURED_TESTS_UNIT_SERVER_LOOPBACK_H
#define CURED_TESTS_UNIT_SERVER_LOOPBACK_H

#include <sys/resource.h>

#include "server/grpc/grpc.h"
#include "server/loop/loop.h"
#include "server/native/conn.h"
#include "server/transport/arrival.h"
#include "tests/unit/support.h"

enum { SLABS = 4, MIB = 1024 * 1024 };

extern uv_loop_t uv;
extern cr_calls calls;
extern cr_loop loop;
extern cr_native native;
extern cr_grpc grpc;
extern cr_arrivals arrivals;
extern cr_config config;
extern cr_error error;
extern size_t slab_count; /* of the next setup */

/* The client's side of one connection. */
typedef struct client {
    int fd, served; /* its own end, and the server's */
    uint8_t *out;   /* not yet written */
    size_t out_len, out_off, out_cap;
    uint8_t in[256 * 1024];
    size_t held;
    bool gone;
    unsigned answers, failures, welcomes, pongs;
    uint64_t sum[64];    /* by stream */
    uint32_t status[64]; /* by stream; 0 while there is none */
    uint64_t credit[64];
    char message[CR_ERROR_TEXT]; /* of the last STATUS */
} client;

/* A checked fixture: the daemon's rooms without its listeners. teardown fails unless everything was given back. */
void setup(void);
void teardown(void);
/* One turn of the loop, without sleeping. */
void turn(void);

/* A connection, its HELLO queued. free_client closes the client's end. */
client *new_client(void);
/* The same over TCP. */
client *new_tcp_client(void);
void free_client(client *c);
/* What step writes next. */
void queue_bytes(client *c, const void *bytes, size_t n);
void queue_frame(client *c, uint8_t type, uint16_t flags, uint32_t stream, const void *payload, size_t n);
/* Sum of u32; bytes UINT64_MAX: length unknown. */
void queue_call(client *c, uint32_t stream, uint64_t bytes);
/* Writes at most most_out and reads at most most_in bytes of what is there, and lets the loop turn. */
void step(client *c, size_t most_out, size_t most_in);
/* Steps until so many calls ended, or the connection did. */
void finish(client *c, unsigned answers);
/* n numbers and their sum. */
uint32_t *numbers(size_t n, uint64_t *sum);

/* From now on the server's sends to c succeed and go nowhere, as if c read faster than anybody, until most bytes of them; NULL: no more. */
void swallow(const client *c, size_t most);
size_t swallowed_bytes(void);
/* In how many sends. */
unsigned swallowed_sends(void);
/* While stopped, the server's clock shows the time at which it was stopped: no part of a turn ends by time. */
void stop_clock(bool stopped);
/* How often the server has asked for a new connection. */
unsigned accept_calls(void);
/* Descriptors from most on cannot be opened any more. Returns the limit before. */
rlim_t limit_descriptors(rlim_t most);

#endif
