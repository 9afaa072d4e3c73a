/* npz: where an array lies in NumPy's .npz files, which are ZIP archives, also with ZIP64. Nothing is unpacked here.
 *
 * Thread: any; nothing here holds state. The file's bytes are not trusted; a member's name is compared and never a path. */
#ifndef CURED_CLIENT_CLI_NPZ_H
#define CURED_CLIENT_CLI_NPZ_H

#include "cured/cured.h"

typedef struct npz_member {
    uint64_t offset;        /* in the file, of the first byte of its data; the data lies within the file */
    uint64_t stored, bytes; /* in the file, and as an array's file; equal unless deflated */
    uint32_t crc;           /* of the array's file */
    bool deflated;
} npz_member;

/* Whether errno tells that no file has such a path, so that it may be an archive's with a member's name. */
bool npz_may_be(int why);
/* Of "a.npz:x" the member's name, "x", which begins behind the first ".npz:"; NULL when the path names none. */
const char *npz_member_name(const char *path);
/* Opens the file for reading, or the archive of "a.npz:x" where no file has that name; -1, and errno. */
int npz_open(const char *path, bool *archive);
/* Finds the member `name` or `name`.npy in the `size` bytes of a file. name NULL, and a name that is not there: the error lists
 * what is there. */
cured_status npz_find(int fd, uint64_t size, const char *name, npz_member *out, cured_error *error);
/* Hands every member to `each`, until one is not taken: the archive's status then. Its name is not ended by a NUL; len 0: it is too
 * long. */
typedef cured_status (*npz_each_member)(void *user, const char *name, size_t len, const npz_member *m,
                                        cured_error *error);
cured_status npz_each(int fd, uint64_t size, npz_each_member each, void *user, cured_error *error);

#endif
