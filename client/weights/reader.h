/* reader: a tensor's bytes in C order and little-endian, one piece after the other, however they lie in the file.
 *
 * Thread: one at a time. Owner: the caller owns the reader; the descriptor is the table's and is read by position. */
#ifndef CURED_CLIENT_WEIGHTS_READER_H
#define CURED_CLIENT_WEIGHTS_READER_H

#include "client/weights/weights.h"

typedef struct weights_reader weights_reader;

/* Of `bytes` bytes from `at` on; of a turned tensor all. UNIMPLEMENTED: a deflated array in Fortran order. */
cured_status weights_reader_begin(const weights *w, const weights_tensor *t, uint64_t at, uint64_t bytes,
                                  weights_reader **out, cured_error *error);
/* The next bytes, at most `most`, a multiple of 16; *n is 0 at the end. */
cured_status weights_reader_next(weights_reader *r, uint8_t *out, size_t most, size_t *n, cured_error *error);
void weights_reader_end(weights_reader *r);

#endif
