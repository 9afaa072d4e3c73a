/* annex: a further loop, on a thread of its own, for connections that ask for one small array after another (option loops).
 *
 * An annex folds what the loop folds where it lies: arrays of up to CR_INLINE_BYTES that came whole (annex_takes.c). It has no jobs, no
 * slabs, no regions and no listener. Everything else is done at home, by the first loop, with the connection as it is:
 *
 *                 its first small array is answered, and an annex has fewer connections
 *   HOME ────────────────────────────────────────────────────────────────────────────────► ANNEX
 *        ◄──────────────────────────────────────────────────────────────────────────────── (it leaves again after AGAIN in a row)
 *          a request of any other kind, before it is taken; a descriptor; half a frame for AWAY_MS; no room for its user's calls;
 *          the daemon drains
 *
 * While a connection is in an annex its guest stands for it at home: there it counts, and its place is among its user's. Where home
 * has to look into an annex, or to change what an annex reads, it has the annex stand still between two of its turns.
 *
 * Thread: an annex's connections, calls and counts are its own thread's; home's while it stands still. What both put down for each
 * other is guarded by mutexes. Guests are home's. Owner: the native door of the first loop. */
#ifndef CURED_SERVER_NATIVE_ANNEX_H
#define CURED_SERVER_NATIVE_ANNEX_H

#include "server/native/conn.h"

typedef struct cr_annex cr_annex;
typedef struct cr_annexes cr_annexes;

/* Starts loops - 1 annexes. After the lanes were opened. */
cr_status cr_annexes_start(cr_native *home, uint64_t loops, cr_error *error);
/* All connections come home, and the annexes end. No more leave. */
void cr_annexes_end(cr_native *home);
/* They have ended, and no files thread is left. */
void cr_annexes_free(cr_native *home);
/* Home's: what the annexes have put down. */
void cr_annexes_news(cr_native *home);
/* Home's, before it sleeps: of which users annexes may take calls. */
void cr_annexes_gate(cr_native *home);

/* The annex's: what home has put down. */
void cr_annex_woken(cr_annex *annex);
/* The connection had its go: it moves, if it should. It must not be used afterwards. */
void cr_annex_went(cr_conn *conn);
/* A connection of an annex is over. */
void cr_annex_left(cr_conn *conn);

/* How much of the n bytes at p an annex needs in one piece: frames that belong together, of which this is the first. 0: what is there is
 * enough; CR_ANNEX_HOME: they are home's. */
#define CR_ANNEX_HOME SIZE_MAX
size_t cr_annex_needs(const cr_conn *conn, const cr_frame *frame, const uint8_t *p, size_t n);
/* Whether home alone may take calls of its user's now. */
bool cr_annex_full(const cr_conn *conn);

#endif
