/* no_ladder: libcured-cuda has none of the teaching kernels, which are the daemon's. Thread: any; nothing here holds state. */
#include "kernels/ladder/ladder.h"

cr_status cr_ladder_open(cr_ladder_space **space, cr_error *error) {
    *space = NULL;
    return cr_fail(error, CR_UNIMPLEMENTED, "kernel: the ladder's kernels are a daemon's, not this library's");
}
void cr_ladder_close(cr_ladder_space *space) { (void)space; }
cr_status cr_ladder_run(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_value *value, bool *exact,
                        cr_error *error) {
    (void)job, (void)stream, (void)value, (void)exact;
    return cr_ladder_open(&space, error);
}
