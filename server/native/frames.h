/* frames: reads a connection, cuts the bytes into frames and hands them on.
 *
 * Thread: the loop's. Both return false when the connection is closed or lingering afterwards. */
#ifndef CURED_SERVER_NATIVE_FRAMES_H
#define CURED_SERVER_NATIVE_FRAMES_H

#include "server/native/conn.h"

enum { CR_FRAME_HEAD_MAX = CR_FRAME_HEADER_BYTES + CR_HEAD_MAX_BYTES };

/* One turn: at most one recvmsg of CR_TURN_BYTES, and every frame in it. */
bool cr_frames_read(cr_conn *conn);
/* Goes on with what was stashed when the connection had to wait. */
bool cr_frames_resume(cr_conn *conn);

#endif
