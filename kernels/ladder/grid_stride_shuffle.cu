// grid_stride_shuffle: the whole grid walks the array together, a grid's width at a step: any n does with any number of blocks. Then
// shared memory down to one warp, and that warp by shuffles (grid_stride.cuh, with what the source document gets wrong).
//
// What it improves on: multi_pass's one element a thread. What v6 and v7 do better: a block's loads here lie a grid apart, one at a
// time; a run of neighbours for each block, eight loads at a time, keeps more bytes on their way.
#include "kernels/ladder/grid_stride.cuh"

namespace {
using namespace cr_ladder;

struct Row {
    static constexpr bool on_host = false;
    static uint64_t slots(uint64_t n, unsigned processors) { return blocks_held(n, processors); }
    template <class F>
    static void launch(const Run<F> &r) {
        unsigned blocks = blocks_held(r.n, r.processors);
        CR_START(grid_stride_kernel, blocks, BLOCK, r.stream, r.fold, r.in, r.n, r.scratch);
        fold_partials<typename F::Op>(r.scratch, blocks, r.stream);
    }
};
} // namespace

CR_LADDER_ROW(grid_stride_shuffle, Row)
