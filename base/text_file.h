/* text_file: reads a small file whole: the configuration, the principals. A FIFO, a device or a directory is refused at once, and a
 * file without end is not read to its end, because a reload or the start would wait for it.
 *
 * Thread: any. Owner: the caller owns the text. */
#ifndef CURED_BASE_TEXT_FILE_H
#define CURED_BASE_TEXT_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "proto/status.h"

/* The bytes of the regular file, at most so many, with a NUL behind them. st: NULL, or what fstat says of it. Sentences begin with
 * shown. NOT_FOUND: there is no such file. */
cr_status cr_text_file_read(const char *path, const char *shown, size_t most, struct stat *st, char **text,
                            size_t *length, cr_error *error);

#endif
