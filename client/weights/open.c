/* open: a path to a table of tensors: a folder's, or a file's.
 *
 * Thread: one. Owner: the table is the caller's, also the empty one of an error. */
#include <string.h>
#include <sys/stat.h>

#include "client/weights/table.h"

cured_status weights_open(const char *path, weights *out, cured_error *error) {
    struct stat st;
    cured_error own;
    if (error == NULL) error = &own;
    memset(out, 0, sizeof *out);
    const bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    cured_status status = folder ? weights_read_folder(out, path, error) : weights_add_path(out, path, "array", error);
    if (status == CURED_OK) status = weights_sort(out, error);
    if (status != CURED_OK) weights_close(out);
    return status;
}
