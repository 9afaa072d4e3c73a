/* worker: the steps. Thread: the one that uses the worker. Owner: that thread. */
#include "engine/worker.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fold.h"
#include "kernels/cpu/layout.h"

bool cr_worker_next(cr_worker *worker, cr_queue *queue, uint32_t workers, bool wait) {
    for (;;) {
        bool carries = worker->hand.state != NULL;
        bool got = cr_queue_turn(queue, &worker->turn, workers, wait && !carries);
        if (carries && (!got || worker->turn.claim.job != worker->hand.job)) cr_job_axis_let_go(queue, &worker->hand);
        if (got || !carries || !wait) return got;
    }
}

/* A read for ops by rank. What is counted of a claim goes to the job's counts at once. */
static cr_status fold_ranks(cr_worker *worker, const cr_job *job, const cr_view *view, uint64_t elements,
                            cr_error *error) {
    const size_t words = cr_quantile_words(job->quantile);
    if (worker->counts_words < words) {
        free(worker->counts);
        worker->counts = malloc(words * sizeof worker->counts[0]);
        worker->counts_words = worker->counts ? words : 0;
        if (!worker->counts) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %zu counts", words);
    }
    memset(worker->counts, 0, words * sizeof worker->counts[0]);
    cr_cpu_quantile_fold(job->quantile, worker->counts, view, elements);
    cr_quantile_merge(job->quantile, job->counts, worker->counts);
    return CR_OK;
}

void cr_claim_fold(const cr_claim *claim, cr_partial *into, const uint8_t *data, uint64_t elements, uint64_t index) {
    const cr_job *job = claim->job;
    if (job->layout) {
        cr_cpu_fold_layout(into, job->layout, data, elements, index);
        return;
    }
    const cr_view view = cr_claim_view(claim, data, index, 0);
    cr_cpu_fold_view(into, &view, elements, job->base + index);
}

/* Elements of the claim, of a whole array, that lie at data. */
static void fold_range(cr_worker *worker, const uint8_t *data, uint64_t elements, uint64_t index) {
    cr_turn *turn = &worker->turn;
    const cr_job *job = turn->claim.job;
    const cr_view view = cr_claim_view(&turn->claim, data, index, 0);
    if (job->quantile) fold_ranks(worker, job, &view, elements, &turn->error);
    if (worker->fold && !job->layout)
        worker->fold(&turn->partial, &view, elements, job->base + index);
    else
        cr_claim_fold(&turn->claim, &turn->partial, data, elements, index);
}

/* A claim whose bytes nobody has read yet. */
static void fetch_and_fold(cr_worker *worker) {
    cr_turn *turn = &worker->turn;
    const cr_claim *claim = &turn->claim;
    const cr_job *job = claim->job;
    const uint64_t from = (uint64_t)(claim->data - claim->segment->data), unit = cr_job_unit(job);
    if (!worker->fetched) worker->fetched = aligned_alloc(CR_WORKER_FETCH_ALIGNMENT, CR_WORKER_FETCH_BYTES);
    if (!worker->fetched) cr_fail(&turn->error, CR_RESOURCE_EXHAUSTED, "no memory to read the input");
    for (uint64_t at = 0, step; at < claim->bytes && turn->error.code == CR_OK; at += step) {
        step = CR_WORKER_FETCH_BYTES / unit * unit;
        if (step > claim->bytes - at) step = claim->bytes - at;
        if (claim->segment->fetch(claim->segment, from + at, worker->fetched, (size_t)step, &turn->error) != CR_OK)
            return;
        fold_range(worker, worker->fetched, step / job->element, claim->index + at / job->element);
    }
}

void cr_worker_fold(cr_worker *worker, cr_queue *queue) {
    cr_turn *turn = &worker->turn;
    const cr_claim *claim = &turn->claim;
    if (claim->segment->fetch)
        fetch_and_fold(worker);
    else if (claim->job->axis)
        cr_job_axis_fold(queue, &worker->hand, claim, &turn->error);
    else
        fold_range(worker, claim->data, claim->bytes / claim->job->element, claim->index);
}

void cr_worker_rest(cr_worker *worker, cr_queue *queue) {
    cr_turn *turn = &worker->turn;
    const cr_partial *partial = &turn->partial;
    if (!turn->claim.job) return;
    cr_queue_folded(queue, &turn->claim, 1, &partial, turn->claim.job->axis ? 0 : 1,
                    turn->error.code != CR_OK ? &turn->error : NULL);
    turn->claim.job = NULL;
}

void cr_worker_end(cr_worker *worker, cr_queue *queue) {
    cr_job_axis_let_go(queue, &worker->hand);
    free(worker->hand.scratch);
    worker->hand.scratch = NULL;
    worker->hand.scratch_bytes = 0;
    free(worker->counts);
    worker->counts = NULL;
    worker->counts_words = 0;
    free(worker->fetched);
    worker->fetched = NULL;
}
