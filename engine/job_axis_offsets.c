/* job_axis_offsets: a claim of a job by offsets. Segments that lie wholly in it are answered on the spot; of one that its ends cut the
 * worker carries a state, as of a block of an axis. Of ops by rank, which have no states, those that begin in it are answered, by what is
 * behind it, too. Thread: workers; see job_axis.h. Owner: the job. */
#include "engine/job_axis_internal.h"

#include <stdlib.h>

#include "kernels/cpu/offsets.h"

typedef unsigned long long ull;

/* A claim's elements, by the array's numbers: those that some segment may have. */
typedef struct range {
    const cr_claim *claim;
    uint64_t first, begin, end; /* first: of the claim's data */
    uint64_t reach;             /* behind what may be read */
} range;

/* From an element on, whose mask and second array begin `behind` elements before it. */
static cr_view view_at(const range *r, uint64_t element, uint64_t behind) {
    const cr_job *job = r->claim->job;
    const uint8_t *const data = r->claim->data + (element - r->first) * job->element;
    return cr_claim_view(r->claim, data, element - behind - job->axis->from, behind);
}

/* Segments [first, last), whole. */
static cr_status whole_segments(cr_queue *queue, cr_job_axis_hand *hand, const range *r, uint64_t first, uint64_t last,
                                cr_error *error) {
    cr_job *job = r->claim->job;
    const cr_job_axis *axis = job->axis;
    const uint64_t step = axis->placed ? UINT64_MAX : cr_job_axis_answers_at_once(axis);
    const cr_view view = view_at(r, r->begin, 0);
    cr_status status = cr_job_axis_need_scratch(hand, cr_offsets_scratch(&axis->spec), error);
    for (uint64_t at = first, now; status == CR_OK && at < last; at += now) {
        void *out[CR_AXIS_PLACES];
        now = last - at < step ? last - at : step;
        cr_output *output = cr_job_axis_output_new(axis, at, now, out, error);
        if (!output) return error->code;
        status = cr_cpu_offsets_view(&axis->spec, &view, r->begin, r->reach, at, now, hand->scratch, out, error);
        if (status == CR_OK)
            status = cr_job_axis_output_emit(queue, job, output, out, error);
        else
            free(output);
    }
    return status;
}

/* What the claim has of a segment that goes beyond it. */
static cr_status part_of(cr_queue *queue, cr_job_axis_hand *hand, const range *r, uint64_t segment, cr_error *error) {
    cr_job *job = r->claim->job;
    const cr_axis_spec *spec = &job->axis->spec;
    const uint64_t begin = cr_offsets_at(&spec->offsets, segment), end = cr_offsets_at(&spec->offsets, segment + 1);
    const uint64_t from = begin > r->begin ? begin : r->begin, till = end < r->end ? end : r->end;
    if (begin < job->axis->from) /* a product's first block would have elements that nobody brought */
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets[%llu] is %llu: the offsets changed while they were read",
                       (ull)segment, (ull)begin);
    if (from >= till) return CR_OK; /* they changed meanwhile */
    if (cr_job_axis_take_up(queue, hand, job, segment, end - begin, error) != CR_OK) return error->code;
    const cr_axis_spec row = cr_offsets_row(spec, end - begin);
    const cr_view view = view_at(r, from, from - begin);
    cr_cpu_columns_fold_view(&row, hand->state, &view, till - from, from - begin);
    hand->have += till - from;
    if (hand->have == hand->elements) cr_job_axis_let_go(queue, hand);
    return CR_OK;
}

void cr_job_axis_fold_offsets(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, cr_error *error) {
    const cr_job *job = claim->job;
    const cr_job_axis *axis = job->axis;
    const cr_offsets *offsets = &axis->spec.offsets;
    const uint64_t first = axis->from + claim->index;
    range r = {claim, first, first, first + claim->bytes / job->element, first + cr_claim_reach(claim) / job->element};
    if (r.end > axis->till) r.end = axis->till;
    if (r.reach > axis->till) r.reach = axis->till;
    if (r.begin >= r.end) return;
    uint64_t at = cr_offsets_find(offsets, r.begin);
    if (!job->as_one && at > 0 && at <= offsets->count &&
        cr_offsets_at(offsets, at) > r.begin) { /* begun before the claim */
        if (part_of(queue, hand, &r, at - 1, error) != CR_OK) return;
    }
    uint64_t last = r.end == axis->till ? offsets->count : cr_offsets_find(offsets, r.end);
    bool cut = false;
    if (last > offsets->count) last = offsets->count;
    if (last > at && r.end != axis->till && !job->as_one) cut = cr_offsets_at(offsets, last) > r.end;
    if (last > at && whole_segments(queue, hand, &r, at, last - cut, error) != CR_OK) return;
    if (cut) part_of(queue, hand, &r, last - 1, error);
}

void cr_job_axis_leave_offsets(cr_job_axis *axis) {
    cr_offsets *offsets = &axis->spec.offsets;
    if (!offsets->data) return;
    for (uint32_t k = 0; k < axis->spec.op_count; k++) {
        const uint64_t first = axis->missing[k].first;
        if (!axis->missing[k].count) continue;
        axis->missing_of[k] = cr_offsets_at(offsets, first + 1) - cr_offsets_at(offsets, first);
    }
    offsets->data = NULL;
}
