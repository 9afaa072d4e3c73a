/* turned: reads an array of a file that lies there in Fortran order (the first index is the fastest) in C order (the last one is),
 * so that indices count as NumPy counts them.
 *
 * Thread: one. Owner: the caller owns the descriptor, the shape and the reader. */
#ifndef CURED_CLIENT_CLI_TURNED_H
#define CURED_CLIENT_CLI_TURNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct turned turned;

/* The array of elements of `size` bytes begins at byte `base`; its dims and its count are not 0. `room` bytes may hold rows that
 * are turned, or one row if that is longer. NULL: out of memory. */
turned *turned_begin(int fd, uint64_t base, size_t size, uint32_t dims, const uint64_t *shape, uint64_t room);
/* Bytes from byte `at` of the turned array on, at least one before its end; *n is 0 there, and where the file ends early. False:
 * errno says why. */
bool turned_read(turned *t, uint64_t at, uint8_t *out, size_t most, size_t *n);
void turned_free(turned *t);

#endif
