/* extrema: the kernels of minimum, maximum and their indices: of each alone, with its index or without, and of all together.
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/burst.cuh"

template <cr_dtype D, unsigned WANTED>
static cr_fold_launcher one_of() {
    return cr_burst_launch<cr_burst_extrema<D, WANTED, 256>, cr_burst_extrema<D, WANTED, 512>>;
}
template <cr_dtype D>
static cr_fold_launcher extrema_of(uint32_t wants) {
    switch (wants) {
        case CR_WANTS_MIN:
            return one_of<D, CR_WANTS_MIN>();
        case CR_WANTS_MAX:
            return one_of<D, CR_WANTS_MAX>();
        case CR_WANTS_MIN | CR_WANTS_ARGMIN:
            return one_of<D, CR_WANTS_MIN | CR_WANTS_ARGMIN>();
        case CR_WANTS_MAX | CR_WANTS_ARGMAX:
            return one_of<D, CR_WANTS_MAX | CR_WANTS_ARGMAX>();
        default:
            return cr_walk_launch<cr_self<cr_fold_extrema<D>>>;
    }
}

extern "C" cr_fold_launcher cr_launch_extrema(cr_dtype dtype, uint32_t wants) {
    switch ((int)dtype) {
#define CASE(d) \
    case d:     \
        return extrema_of<d>(wants);
        CR_INTEGER_TYPES(CASE)
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
    return NULL;
}
