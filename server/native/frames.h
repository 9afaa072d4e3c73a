/* frames: reads a connection, cuts the bytes into frames and hands them on.
 *
 * Thread: the loop's. The connection may be closed or lingering afterwards. */
#ifndef CURED_SERVER_NATIVE_FRAMES_H
#define CURED_SERVER_NATIVE_FRAMES_H

#include "server/native/conn.h"

enum { CR_FRAME_HEAD_MAX = CR_FRAME_HEADER_BYTES + CR_HEAD_MAX_BYTES };

/* What a new connection has sent by now waits for its turn. */
void cr_frames_begin(cr_conn *conn, const cr_arrived *arrived);
/* At most one recvmsg of CR_TURN_BYTES, and every frame in it, until the go is over. Bytes that came. */
size_t cr_frames_read(cr_conn *conn);
/* While too many descriptors wait for their frames, the connection that leaves most of them ends. Not just conn, which has some more:
 * its frame may be on its way. */
void cr_frames_keep_few_parked(const cr_conn *conn);
/* Goes on with what was stashed when the connection had to wait. False: it is closed or lingering. */
bool cr_frames_resume(cr_conn *conn);

#endif
