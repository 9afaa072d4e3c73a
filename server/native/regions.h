/* regions: the memory that a connection has registered, by the client's numbers, and the calls about it.
 *
 *   Register ──► OPENING (on a files thread) ──► open: answered; reductions that came meanwhile start
 *   Unregister, or the connection's end ──► hidden: no new call finds it ──► the last job gone, closed ──► answered
 *
 * Thread: the loop's, but for the news of opened and closed regions, which files threads post. Owner: an entry owns itself
 * from Register until its region is closed; its connection and its calls may end before. */
#ifndef CURED_SERVER_NATIVE_REGIONS_H
#define CURED_SERVER_NATIVE_REGIONS_H

#include "server/native/front.h"

/* A Register call: begins to open the region. descriptor is taken over in every case; -1: none came. */
void cr_regions_register(cr_stream *stream, int descriptor);
/* An Unregister call. */
void cr_regions_unregister(cr_stream *stream);
/* A Reduce call whose input is a region: starts it, or leaves it waiting until the region is open. */
void cr_regions_reduce(cr_stream *stream);
/* A region that is open, by its number; NULL: there is none. */
struct cr_kept *cr_regions_find(const cr_conn *conn, uint64_t id);
/* The call is going away. why: it failed; NULL: it did not, or its connection is gone. */
void cr_regions_forget(cr_stream *stream, const cr_error *why);
/* The connection is going away, its calls are gone. */
void cr_regions_drop(cr_conn *conn);
/* For the loop's wake: what files threads have posted, for not much longer than most_ns. True: more is left. */
bool cr_regions_news(cr_native *native, uint64_t most_ns);

#endif
