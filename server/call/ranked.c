/* ranked: see ranked.h. Thread: the loop's; empty and release: any. Owner: see there. */
#include "server/call/ranked.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/memory/bulk.h"
#include "engine/memory/kept.h"
#include "server/call/beside.h"

typedef unsigned long long ull;
typedef struct cr_ranked cr_ranked;

enum { FIRST_BYTES = 1024 * 1024, BLOCK_BYTES = 64 * 1024 * 1024 /* that one worker answers at a time */ };

struct cr_ranked {
    cr_held held; /* by its job */
    _Atomic uint32_t uses;
    cr_wire_parameter given[CR_CALL_MAX_OPS]; /* as they came */
    cr_quantile_item items[CR_CALL_MAX_OPS];  /* by op */
    uint32_t at[CR_QUANTILE_ITEMS];           /* the ops of those that are counted for */
    cr_quantile state;
    uint64_t *counts;
    uint64_t bits[CR_CALL_MAX_OPS]; /* of answers, by op */
    uint8_t *memory;                /* of an array in DATA */
    uint64_t room, came;
    cr_array passed;  /* otherwise; descriptor -1: there is none */
    cr_partial first; /* of the first read */
    uint64_t opened_ns, first_claim_ns;
};

static void release(cr_ranked *ranked) {
    if (atomic_fetch_sub(&ranked->uses, 1) != 1) return;
    free(ranked->memory);
    free(ranked->counts);
    free(ranked);
}

static void job_lets_go(cr_held *held) { release(cr_container(held, cr_ranked, held)); }

static bool empty(cr_held *held) {
    cr_ranked *ranked = cr_container(held, cr_ranked, held);
    const bool more = cr_bulk_step(ranked->memory, &held->left);
    if (!more) ranked->memory = NULL;
    return more;
}

static cr_ranked *ranked_of(cr_call *call, cr_error *error) {
    if (call->ranked) return call->ranked;
    call->ranked = calloc(1, sizeof *call->ranked);
    if (!call->ranked) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the call");
        return NULL;
    }
    call->ranked->held = (cr_held){.release = job_lets_go, .empty = empty};
    atomic_init(&call->ranked->uses, 1);
    call->ranked->passed.descriptor = -1;
    return call->ranked;
}

void cr_ranked_drop(cr_call *call) {
    cr_ranked *ranked = call->ranked;
    if (!ranked) return;
    call->ranked = NULL;
    if (ranked->passed.descriptor >= 0)
        cr_files_close(call->calls->files, call->peer->owner, ranked->passed.descriptor);
    if (ranked->passed.kept) cr_kept_release(ranked->passed.kept);
    ranked->passed = (cr_array){.descriptor = -1};
    release(ranked);
}

/* ---- what is asked ---- */

cr_status cr_call_parameters(cr_call *call, cr_wire_form form, const uint8_t *in, size_t len, cr_error *error) {
    if (call->request.kind != CR_CALL_REDUCE || !call->request.reduce.parameters) return CR_OK;
    cr_ranked *ranked = ranked_of(call, error);
    return ranked ? cr_wire_unpack_parameters(form, in, len, ranked->given, error) : error->code;
}

/* Each op comes once, but for those that a parameter tells apart. */
static cr_status check_again(const cr_wire_reduce *r, cr_error *error) {
    for (uint32_t i = 0; i < r->op_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (r->ops[j] == r->ops[i] && !cr_op_takes_share((cr_op)r->ops[i]))
                return cr_fail(error, CR_INVALID_ARGUMENT, "ops names op %u twice, limit is once", r->ops[i]);
    return CR_OK;
}

static cr_status take_parameters(cr_ranked *ranked, const cr_wire_reduce *r, cr_error *error) {
    for (uint32_t i = 0; i < r->op_count; i++) {
        const cr_wire_parameter *given = &ranked->given[i];
        ranked->items[i] = (cr_quantile_item){0.5, CR_QUANTILE_LINEAR};
        if (!given->given) continue;
        if (!cr_op_takes_share((cr_op)r->ops[i]))
            return cr_fail(error, CR_INVALID_ARGUMENT, "parameters: op %s takes none", cr_op_name((cr_op)r->ops[i]));
        if (!cr_quantile_method_name(given->method))
            return cr_fail(error, CR_INVALID_ARGUMENT, "parameters: %u is no method", given->method);
        ranked->items[i] = (cr_quantile_item){given->share, (cr_quantile_method)given->method};
        if (cr_quantile_check(given->share, i, error) != CR_OK) return error->code;
    }
    return CR_OK;
}

static bool goes_by_rank(uint32_t op) { return cr_op_closing((cr_op)op) == CR_CLOSING_ORDER; }

cr_status cr_ranked_check(cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    bool any = false;
    for (uint32_t i = 0; i < r->op_count; i++) any |= goes_by_rank(r->ops[i]);
    if (!any && !call->ranked) return CR_OK;
    cr_ranked *ranked = ranked_of(call, error);
    if (!ranked) return error->code;
    cr_status status = check_again(r, error);
    if (status == CR_OK) status = take_parameters(ranked, r, error);
    if (status == CR_OK && any && r->source == CR_SOURCE_REGIONS)
        status = cr_fail(error, CR_INVALID_ARGUMENT,
                         "ops: medians and quantiles are of one array, and not of several regions together");
    return status;
}

cr_status cr_ranked_check_block(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (!call->ranked || call->geometry != CR_GEOMETRY_AXIS || r->outer == 0) return CR_OK; /* or no block is there */
    const uint64_t bytes = r->n * r->inner * cr_dtype_size(call->dtype);
    if (bytes <= BLOCK_BYTES) return CR_OK;
    return cr_fail(
        error, CR_INVALID_ARGUMENT,
        "axis: medians and quantiles need all of a block at once, of %d bytes at most, and this one has %llu: "
        "a connection to \"embedded:\" answers them of memory, in this process",
        BLOCK_BYTES, (ull)bytes);
}

uint64_t cr_ranked_longest(const cr_call *call) {
    return call->ranked ? BLOCK_BYTES / cr_dtype_size(call->dtype) : UINT64_MAX;
}

const cr_quantile_item *cr_ranked_items(const cr_call *call) { return call->ranked ? call->ranked->items : NULL; }

static cr_dtype result_of(const cr_call *call) {
    return call->finish.result_dtype != CR_DTYPE_NONE ? call->finish.result_dtype : CR_F64;
}

/* The state of the first read, and the memory for the counts of all of them, which are the more the more ranks are sought. */
static cr_status begin(cr_call *call, cr_error *error) {
    cr_ranked *ranked = call->ranked;
    const cr_wire_reduce *r = &call->request.reduce;
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->op_count; i++) {
        if (!goes_by_rank(r->ops[i])) continue;
        items[count] = ranked->items[i];
        ranked->at[count++] = i;
    }
    cr_quantile_begin(&ranked->state, call->dtype, items, count, call->finish.nan == CR_NAN_SKIP);
    const size_t words = CR_QUANTILE_BINS + ((size_t)2 * count << CR_QUANTILE_MOST_BITS);
    cr_status status = cr_call_hold_state(call, words * sizeof ranked->counts[0], error);
    if (status != CR_OK) return status;
    ranked->counts = calloc(words, sizeof ranked->counts[0]);
    return ranked->counts ? CR_OK : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for counts");
}

cr_status cr_ranked_attach(cr_call *call, cr_job *job, cr_error *error) {
    cr_ranked *ranked = call->ranked;
    job->by_host = true;
    atomic_fetch_add(&ranked->uses, 1);
    ranked->held.next = job->held;
    job->held = &ranked->held;
    if (call->geometry != CR_GEOMETRY_WHOLE) return CR_OK;
    if (!ranked->counts && begin(call, error) != CR_OK) return error->code;
    memset(ranked->counts, 0, cr_quantile_words(&ranked->state) * sizeof ranked->counts[0]);
    job->quantile = &ranked->state;
    job->counts = ranked->counts;
    return CR_OK;
}

uint32_t cr_ranked_reads(const cr_call *call, uint32_t *over) {
    *over = 0;
    if (!call->ranked || call->geometry != CR_GEOMETRY_WHOLE) return 1;
    *over = call->ranked->state.read;
    return cr_quantile_reads(call->dtype);
}

/* ---- its array ---- */

/* Of an array in DATA; UINT64_MAX: nothing says so. */
static uint64_t known_bytes(const cr_call *call) {
    const char *what;
    const cr_wire_reduce *r = &call->request.reduce;
    const uint64_t expected = cr_call_expects(call, &what);
    return r->length_known ? r->length : what ? expected * cr_dtype_size(call->dtype) : UINT64_MAX;
}

cr_status cr_ranked_room(cr_call *call, uint8_t **at, size_t *room, cr_error *error) {
    cr_ranked *ranked = call->ranked;
    if (ranked->came == ranked->room) {
        const uint64_t known = known_bytes(call), twice = ranked->room ? 2 * ranked->room : FIRST_BYTES;
        const uint64_t wanted = known != UINT64_MAX ? known : twice;
        cr_status status = cr_call_hold_state(call, wanted - ranked->room, error);
        if (status != CR_OK) return status;
        uint8_t *more = wanted > ranked->room ? realloc(ranked->memory, wanted) : NULL;
        if (!more)
            return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to keep %llu bytes of the array", (ull)wanted);
        ranked->memory = more;
        ranked->room = ranked->held.left = wanted;
    }
    *at = ranked->memory + ranked->came;
    *room = (size_t)(ranked->room - ranked->came);
    return CR_OK;
}

void cr_ranked_filled(cr_call *call, size_t bytes) { call->ranked->came += bytes; }

static void free_segment(cr_segment *segment) { free(segment); }

cr_status cr_ranked_offer(cr_call *call, cr_error *error) {
    cr_ranked *ranked = call->ranked;
    cr_queue *queue = call->calls->queue;
    cr_segment *segment = ranked->came ? malloc(sizeof *segment) : NULL;
    if (ranked->came && !segment) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to read the array");
    if (segment) {
        cr_segment_init(segment, call->job, ranked->memory, 0);
        segment->aligned = true;
        segment->release = free_segment;
        cr_queue_set_total(queue, call->job, ranked->came);
        cr_queue_add(queue, segment);
        cr_queue_ready(queue, segment, ranked->came, true);
    }
    cr_queue_unhold(queue, call->job);
    return CR_OK;
}

cr_status cr_ranked_pass(cr_call *call, const cr_array *input, cr_error *error) {
    cr_ranked *ranked = call->ranked;
    if (call->geometry != CR_GEOMETRY_WHOLE) {
        const uint64_t bytes = cr_job_unit(call->job);
        return bytes > CR_SLAB_BYTES ? cr_call_hold_state(call, bytes, error) : CR_OK;
    }
    if (ranked->passed.descriptor >= 0 || ranked->passed.kept) return CR_OK;
    if (input->kind == CR_KEPT) {
        ranked->passed = (cr_array){.kind = CR_KEPT, .descriptor = -1, .kept = input->kept};
        cr_kept_use(input->kept);
        return CR_OK;
    }
    ranked->passed.kind = CR_DESCRIPTOR;
    ranked->passed.descriptor = fcntl(input->descriptor, F_DUPFD_CLOEXEC, 0);
    if (ranked->passed.descriptor >= 0) return CR_OK;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "no descriptor to read the input again: the server's limit is reached");
}

/* ---- its reads ---- */

static void take_job(cr_ranked *ranked, const cr_job *job) {
    if (ranked->opened_ns) return;
    ranked->first = job->partial;
    ranked->opened_ns = job->opened_ns;
    ranked->first_claim_ns = job->first_claim_ns ? job->first_claim_ns : job->done_ns;
}

/* The next read, of whatever there is. What fails still has the job's hold. */
static cr_status read_on(cr_call *call, cr_error *error) {
    cr_array input = call->ranked->passed;
    if (call->request.reduce.source == CR_SOURCE_STREAM) {
        const cr_status status = cr_call_make_job(call, NULL, error);
        return status == CR_OK ? cr_ranked_offer(call, error) : status;
    }
    if (input.kind == CR_DESCRIPTOR) {
        input.descriptor = fcntl(input.descriptor, F_DUPFD_CLOEXEC, 0);
        if (input.descriptor < 0)
            return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                           "no descriptor to read the input again: the server's limit is reached");
    }
    return cr_call_feed(call, &input, error);
}

bool cr_ranked_again(cr_call *call) {
    cr_ranked *ranked = call->ranked;
    cr_error error;
    if (!ranked || call->geometry != CR_GEOMETRY_WHOLE) return false;
    take_job(ranked, call->job);
    if (!cr_quantile_next(&ranked->state, ranked->counts)) {
        for (uint32_t i = 0; i < ranked->state.count; i++)
            ranked->bits[ranked->at[i]] = cr_quantile_finish(&ranked->state, i, result_of(call));
        return false;
    }
    cr_job_free(call->job);
    call->job = NULL;
    call->families = 0;
    if (read_on(call, &error) == CR_OK) return true;
    cr_job *const job = call->job;
    cr_queue *const queue = call->calls->queue;
    cr_call_fail(call, &error);
    if (job) cr_queue_unhold(queue, job); /* which the call left: it has no owner any more */
    return true;
}

void cr_ranked_begun(const cr_call *call, uint64_t *opened_ns, uint64_t *first_ns) {
    if (!call->ranked || !call->ranked->opened_ns) return;
    *opened_ns = call->ranked->opened_ns;
    *first_ns = call->ranked->first_claim_ns;
}

void cr_ranked_answer(const cr_call *call, cr_answer *answer) {
    static cr_value values[CR_CALL_MAX_OPS]; /* the loop's */
    static bool exact[CR_CALL_MAX_OPS];
    const cr_ranked *ranked = call->ranked;
    const cr_wire_reduce *r = &call->request.reduce;
    for (uint32_t i = 0; i < r->op_count; i++) {
        exact[i] = true;
        if (goes_by_rank(r->ops[i]))
            cr_quantile_value((cr_op)r->ops[i], result_of(call), ranked->bits[i], &values[i]);
        else
            cr_partial_finish(&ranked->first, (cr_op)r->ops[i], &call->finish, &values[i]);
    }
    answer->kind = CR_ANSWER_FINISHED;
    answer->values = values;
    answer->exact = exact;
    answer->count = ranked->first.n;
}
