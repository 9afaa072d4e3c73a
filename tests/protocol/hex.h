/* hex: reads the files of golden/: pairs of hex digits; '#' starts a comment.
 *
 * Thread: the test's. */
#ifndef CURED_TESTS_PROTOCOL_HEX_H
#define CURED_TESTS_PROTOCOL_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Reads GOLDEN_DIR/name.hex into out; the number of bytes. Ends the program with a sentence when the file is no good. */
size_t hex_read(const char *name, uint8_t *out, size_t cap);

#endif
