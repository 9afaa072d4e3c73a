/* unpack: the bytes of a deflated member of an archive, one piece after the other.
 *
 * Thread: one at a time. Owner: the caller owns the descriptor, which is read by position. */
#ifndef CURED_CLIENT_CLI_UNPACK_H
#define CURED_CLIENT_CLI_UNPACK_H

#include "client/cli/npz.h"

typedef struct unpacker unpacker;

/* NULL: no memory. */
unpacker *unpack_begin(int fd, const npz_member *member);
/* The next bytes, at most `most`, which is not 0; *n is 0 at the end, where length and checksum were right. */
cured_status unpack_next(unpacker *u, void *out, size_t most, size_t *n, cured_error *error);
void unpack_end(unpacker *u);

#endif
