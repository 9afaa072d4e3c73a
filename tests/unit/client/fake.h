/* fake: a daemon of a few lines for tests of libcured: it listens on a Unix socket and does what the test says, in the
 * test's own thread, so that every order of events can be made.
 *
 * Thread: the test's. Owner: fake_stop frees everything; descriptors received are closed with it. */
#ifndef CURED_TESTS_UNIT_CLIENT_FAKE_H
#define CURED_TESTS_UNIT_CLIENT_FAKE_H

#include "cured/cured.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum { FAKE_MAX_FDS = 16 };

typedef struct fake {
    char dir[64], address[128];
    int listener, peer;
    uint8_t *in; /* everything received and not taken yet */
    size_t len, at, cap;
    int fds[FAKE_MAX_FDS];
    int fd_count;
    /* the read each came with, as positions from the connection's start; reads are glued, so this is all that is known */
    size_t fd_begin[FAKE_MAX_FDS], fd_end[FAKE_MAX_FDS];
    size_t received; /* bytes, since accept */
} fake;

void fake_start(fake *f);
void fake_stop(fake *f);
/* Takes the next connection. */
void fake_accept(fake *f);
/* Ends it. */
void fake_drop(fake *f);
/* Reads what is there. False at the end of the connection. */
bool fake_read(fake *f);
/* Takes the next whole frame; false when there is none. *payload lies in f until the next fake_read. */
bool fake_take(fake *f, cr_frame *frame, const uint8_t **payload);
/* The same with turns of conn until a frame of that type is there; the test fails if none comes. */
void fake_expect(fake *f, cured_conn *conn, cr_frame_type type, cr_frame *frame, const uint8_t **payload);
/* Turns conn until it sends no more, reading along. */
void fake_settle(fake *f, cured_conn *conn);
void fake_send_raw(fake *f, const void *bytes, size_t len);
void fake_send(fake *f, cr_frame_type type, uint16_t flags, uint32_t stream, const void *payload, size_t len);
void fake_welcome(fake *f);
void fake_status(fake *f, uint32_t stream, cr_status code, uint32_t retry_after_ms, const char *text);
void fake_credit(fake *f, uint32_t stream, uint64_t bytes);
/* RESULT without END: a part of the answers along an axis. m->values are sent. */
void fake_part(fake *f, uint32_t stream, const cr_wire_part *m);
/* RESULT with END for one op: sum, f64, of so many elements; of three. */
void fake_sum_of(fake *f, uint32_t stream, double value, uint64_t count);
void fake_sum(fake *f, uint32_t stream, double value);
/* Connects a client, takes its HELLO and answers. */
cured_conn *fake_connect(fake *f);

#endif
