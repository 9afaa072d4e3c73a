/* ladder: libcured-cuda has none of the teaching kernels. A daemon that has them gives them to it.
 *
 * Thread: given by the one that opens the lanes, before there are devices; run by a device's. Owner: who gives them. */
#include "kernels/ladder/ladder.h"

#include "kernels/cuda/caller/internal.h"

static const cr_ladder_functions *given; /* NULL: none */

void cr_caller_ladder(const cr_ladder_functions *functions) { given = functions; }

cr_status cr_ladder_open(cr_ladder_space **space, cr_error *error) {
    *space = NULL;
    if (given != NULL) return given->open(space, error);
    return cr_fail(error, CR_UNIMPLEMENTED, "kernel: the ladder's kernels are in a daemon that was built with CUDA");
}
void cr_ladder_close(cr_ladder_space *space) {
    if (given != NULL) given->close(space);
}
cr_status cr_ladder_run(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_value *value, bool *exact,
                        cr_error *error) {
    if (given != NULL) return given->run(space, job, stream, value, exact, error);
    return cr_ladder_open(&space, error);
}
