/* shapes: the shape of a fold's launch.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/cuda/plan/shapes.h"

#include "kernels/core/fast.h"
#include "kernels/cuda/plan/burst_float.h"

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* Head, body and tail. An address that is no multiple of the element's size has no aligned vectors: each is put together
 * from two aligned loads, of which the first may not begin before the array and the last may not end beyond it. */
static void lay_out(cr_fold_plan *plan, uintptr_t address, uint64_t n, uint32_t size) {
    uint32_t lanes = CR_GPU_VECTOR / size, off = (uint32_t)(address % CR_GPU_VECTOR);
    uint32_t head = off == 0 ? 0 : (CR_GPU_VECTOR - off) / size;
    uint32_t kept_back = 0; /* elements after the body that its last load may touch */
    if (off % size != 0) {
        head++; /* the body's first aligned load begins at most 15 bytes before the body */
        kept_back = lanes;
    }
    if (n < (uint64_t)head + kept_back + lanes) {
        /* Too short for one vector. */
        plan->head = (uint32_t)n;
        return;
    }
    plan->head = head;
    plan->shift = (uint32_t)((address + (uint64_t)head * size) % CR_GPU_VECTOR);
    plan->vectors = (n - head - kept_back) / lanes;
    plan->tail = (uint32_t)(n - head - plan->vectors * lanes);
}

/* Measured on an H200 (tests/gpu/tune_folds.cu, tune_extrema.cu). Up to 32 KiB one block alone: others would have to tell it what they found,
 * a round trip to the L2 cache. Then small blocks, two on each multiprocessor, as the tail grows with their number; blocks of
 * twice that size up to one wave; from there on one contiguous run per block, all blocks resident at once. Beyond 1 GiB several
 * waves, so that blocks that finish early are replaced. Interleaved tiles are 5 % slower than runs, chunks in the order of who comes
 * first a little faster: then the whole GPU reads one stretch at a time. */
static void cut(cr_fold_plan *plan, uint32_t multiprocessors) {
    uint64_t wave = (uint64_t)multiprocessors * CR_GPU_BLOCKS_PER_SM, vectors = plan->vectors, per;
    if (vectors <= CR_GPU_ALONE) {
        per = vectors;
    } else if (vectors <= wave / 2 * CR_GPU_LEAST) {
        per = CR_GPU_LEAST;
    } else if (vectors <= wave * CR_GPU_LEAST * 2) {
        per = CR_GPU_LEAST * 2;
    } else {
        uint64_t waves = divide_up(vectors, wave * CR_GPU_RUN);
        if (waves > CR_GPU_MAX_BLOCKS / wave) waves = CR_GPU_MAX_BLOCKS / wave;
        per = divide_up(divide_up(vectors, wave * waves), CR_GPU_THREADS) * CR_GPU_THREADS;
    }
    plan->per_block = per;
    plan->blocks = (uint32_t)divide_up(vectors, per);
}

cr_fold_plan cr_fold_plan_make(uintptr_t address, uint64_t n, uint32_t size, uint32_t multiprocessors) {
    cr_fold_plan plan = {0};
    if (n == 0) return plan;
    lay_out(&plan, address, n, size);
    if (multiprocessors == 0) multiprocessors = 1;
    if (multiprocessors > CR_GPU_MAX_BLOCKS / CR_GPU_BLOCKS_PER_SM) {
        multiprocessors = CR_GPU_MAX_BLOCKS / CR_GPU_BLOCKS_PER_SM;
    }
    if (plan.vectors != 0) cut(&plan, multiprocessors);
    if (plan.blocks == 0) {
        plan.blocks = 1;
        plan.per_block = CR_GPU_LEAST;
    }
    return plan;
}

void cr_fold_plan_fit(cr_fold_plan *plan, uint32_t resident) {
    uint64_t fewer = (uint64_t)plan->blocks * resident / CR_GPU_BLOCKS_PER_SM;
    if (fewer >= plan->blocks || fewer == 0 || plan->per_block <= CR_GPU_LEAST * 2) return;
    plan->per_block = divide_up(divide_up(plan->vectors, fewer), CR_GPU_THREADS) * CR_GPU_THREADS;
    plan->blocks = (uint32_t)divide_up(plan->vectors, plan->per_block);
}

void cr_fold_plan_chunks(cr_fold_plan *plan, uint32_t multiprocessors, uint32_t resident) {
    const uint64_t vectors = plan->vectors, wave = (uint64_t)(multiprocessors ? multiprocessors : 1) * resident;
    uint64_t per = plan->per_block;
    if (vectors > CR_GPU_ALONE && vectors <= wave * CR_GPU_CHUNK) {
        per = CR_GPU_CHUNK;
    } else if (vectors > wave * CR_GPU_CHUNK * CR_GPU_CHUNKS) {
        per = divide_up(vectors, wave * CR_GPU_CHUNK * CR_GPU_CHUNKS) * CR_GPU_CHUNK;
        if (per > CR_GPU_CHUNK_MOST) per = CR_GPU_CHUNK_MOST;
        if (vectors / per > UINT32_MAX / 2)
            per = divide_up(vectors, (uint64_t)UINT32_MAX / 2 * CR_GPU_THREADS) * CR_GPU_THREADS;
    } else if (vectors > CR_GPU_ALONE) {
        per = divide_up(divide_up(vectors, wave), CR_GPU_THREADS) * CR_GPU_THREADS;
    }
    plan->per_block = per;
    plan->chunks = (uint32_t)divide_up(vectors, per);
    if (plan->chunks == 0) plan->chunks = 1;
    plan->blocks = plan->chunks <= wave ? plan->chunks : (uint32_t)wave;
}

/* One block up to 16 KiB: it need tell nobody. Then a vector a thread, for the chain of instructions is what takes the time; four where
 * that would be more blocks than are resident at once; then as many as it takes for these to be enough. Two and eight at once were
 * never better than one and four by more than 2 %. */
uint32_t cr_fold_plan_burst_float(cr_fold_plan *plan, uint32_t multiprocessors) {
    const uint64_t vectors = plan->vectors;
    uint64_t most = (uint64_t)(multiprocessors ? multiprocessors : 1) * CR_GPU_BLOCKS_PER_SM;
    if (most > CR_BURST_FLOAT_BLOCKS) most = CR_BURST_FLOAT_BLOCKS;
    if (vectors <= CR_BURST_FLOAT_ALONE) most = 1;
    uint64_t each = divide_up(vectors, most * CR_GPU_THREADS);
    if (each == 0 || each > CR_BURST_FLOAT_MOST || plan->shift != 0 || !cr_fast_on(CR_FAST_GPU_FLOAT_BURSTS)) return 0;
    if (each > 1 && each < 4) each = 4;
    plan->per_block = CR_GPU_THREADS * each;
    plan->blocks = plan->chunks = (uint32_t)divide_up(vectors, plan->per_block);
    return (uint32_t)each;
}

uint32_t cr_fold_plan_answered(cr_fold_plan *plan, uint32_t multiprocessors) {
    return cr_fast_on(CR_FAST_GPU_ANSWERED_BURSTS) ? cr_fold_plan_burst_float(plan, multiprocessors) : 0;
}

cr_burst_float_kernel cr_burst_float_kernel_of(uint32_t each) {
    if (each > CR_BURST_FLOAT_AGAIN || !cr_fast_on(CR_FAST_GPU_AGAIN)) return CR_BURST_FLOAT_ONCE;
    if (!cr_fast_on(CR_FAST_GPU_UNLOOPED)) return CR_BURST_FLOAT_LOOP;
    return each == 1 ? CR_BURST_FLOAT_ONE : each == 4 ? CR_BURST_FLOAT_FOUR : CR_BURST_FLOAT_LOOP;
}

bool cr_fold_takes_few_threads(const cr_fold_plan *plan, uint32_t threads) {
    return plan->vectors <= (uint64_t)threads * CR_GPU_UNROLL && cr_fast_on(CR_FAST_GPU_FEW_THREADS);
}

bool cr_fold_plan_burst(cr_fold_plan *plan, uint32_t multiprocessors, uint32_t threads) {
    const uint64_t vectors = plan->vectors,
                   resident = (uint64_t)(multiprocessors ? multiprocessors : 1) * (1024 / threads);
    uint64_t loads = 1;
    if (plan->shift != 0 || vectors == 0 || !cr_fast_on(CR_FAST_GPU_BURSTS)) return false;
    const bool alone = vectors <= CR_GPU_ALONE && vectors <= (uint64_t)threads * CR_GPU_UNROLL;
    const uint64_t most = alone ? 1 : resident;
    while (loads <= CR_GPU_UNROLL && vectors > loads * threads * most) loads *= 2;
    if (loads > CR_GPU_UNROLL) return false;
    plan->per_block = loads * threads;
    plan->blocks = (uint32_t)divide_up(vectors, plan->per_block);
    return true;
}

void cr_fold_plan_runs(cr_fold_plan *plan, uint32_t multiprocessors, uint32_t resident, uint32_t run) {
    const uint64_t vectors = plan->vectors, wave = (uint64_t)(multiprocessors ? multiprocessors : 1) * resident;
    if (vectors <= wave * CR_GPU_CHUNK) return;
    uint64_t per = divide_up(divide_up(vectors, wave), CR_GPU_CHUNK) * CR_GPU_CHUNK;
    if (per > run) per = run;
    if (divide_up(vectors, per) > CR_GPU_MAX_RUNS)
        per = divide_up(divide_up(vectors, CR_GPU_MAX_RUNS), CR_GPU_CHUNK) * CR_GPU_CHUNK;
    plan->per_block = per;
    plan->blocks = (uint32_t)divide_up(vectors, per);
}
