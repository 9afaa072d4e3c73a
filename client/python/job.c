/* job: one call of libcured, from its start to its end. Memory is libcured's to read. What a mask leaves out, or a first value
 * follows, is walked here, and handed over in blocks; CUDA and shared memory go by region, files by descriptor or, where that does
 * not do, in blocks (source.c).
 *
 * Thread: start and end with the GIL, feed without. Owner: the caller; a job owns its call and its block. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "client/lib/call/planned.h"
#include "client/python/extension.h"
#include "client/python/tensor.h"
#include "kernels/core/axis.h"

enum {
    BLOCK_BYTES = 256 * 1024,
    SIGNALS_MS = 20, /* how often Ctrl-C is looked for; it promises 50 ms */
};

/* A file of which the daemon cannot be given the descriptor, or that is no plain elements, is read here. */
static bool is_read_here(const cr_py_input *in, const cured_conn *conn) {
    return in->kind == CR_PY_FILE && (cr_py_source_wanted(in) || !cured_passes_fd(conn));
}

static cured_status start_stream(cr_py_job *job, cr_py_request *r, const cr_py_plan *plan, cured_conn *conn,
                                 const cured_options *options, cured_error *error) {
    uint64_t bytes = plan->mask != NULL ? CURED_UNKNOWN_LENGTH : plan->count * r->input.size;
    if (job->has_extra && plan->mask == NULL) bytes += r->input.size;
    job->block = PyMem_Malloc(BLOCK_BYTES);
    if (job->block == NULL) {
        error->code = CURED_RESOURCE_EXHAUSTED;
        strcpy(error->text, "no memory for a block");
        return error->code;
    }
    const cr_strided array = cr_py_plan_array(&r->input);
    cr_walk_begin(&job->walk, plan, &array);
    if (is_read_here(&r->input, conn)) {
        job->source = cr_py_source_begin(&r->input, plan->count, error);
        if (job->source == NULL) return error->code;
    }
    return cured_reduce_stream_begin(conn, r->input.dtype, r->ops, r->op_count, bytes, options, &job->call, error);
}

/* The region that holds what the plan walks, if it is one, with the offset of its first element. False with an exception. */
static bool find_region(const cr_py_request *r, const cr_py_plan *plan, cr_py_link *link, cured_region **region,
                        uint64_t *offset) {
    uint64_t bytes = plan->count * r->input.size;
    *region = NULL;
    *offset = 0;
    if (r->input.kind == CR_PY_CUDA) {
        if (plan->contiguous && bytes != 0) {
            if (!cr_py_tensor_wait(&r->input)) return false;
            *region = cr_py_tensor_region(&r->input, plan->data, bytes, false, link);
            return *region != NULL;
        }
        if (bytes == 0) return true; /* nothing to read */
        PyErr_SetString(PyExc_ValueError, "the CUDA tensor has gaps, or its order matters: pass a contiguous one");
        return false;
    }
    cr_py_memory *memory = NULL;
    if (r->input.kind == CR_PY_HOST && plan->contiguous && !link->local && cured_passes_fd(link->conn))
        memory = cr_py_memory_find(plan->data, bytes, offset);
    if (memory == NULL) return true;
    *region = cr_py_memory_region(memory, link);
    return *region != NULL;
}

static cured_status start(cr_py_job *job, cr_py_request *r, const cr_py_plan *plan, cured_region *region,
                          uint64_t offset, cured_conn *conn, const cured_options *options, cured_error *error) {
    if (region != NULL)
        return cured_region_reduce(region, r->input.dtype, r->ops, r->op_count, offset, plan->count, options,
                                   &job->call, error);
    if (r->input.kind == CR_PY_FILE && !is_read_here(&r->input, conn))
        return cured_reduce_fd(conn, r->input.dtype, r->ops, r->op_count, r->input.file.fd, r->input.file.offset,
                               plan->count, options, &job->call, error);
    if (plan->mask == NULL && !job->has_extra && r->input.kind == CR_PY_HOST) {
        const cr_strided array = cr_py_plan_array(&r->input);
        if (plan->contiguous)
            return cured_reduce_buffer(conn, r->input.dtype, r->ops, r->op_count, plan->data, plan->count, options,
                                       &job->call, error);
        return cr_cl_reduce_plan(conn, r->input.dtype, r->ops, r->op_count, &array, plan, options, &job->call, error);
    }
    return start_stream(job, r, plan, conn, options, error);
}

/* Whether an answer may be an extremum of nothing but NaNs, which are skipped. A GPU that writes its answers writes no statuses, so
 * that these are asked for only where they are needed. */
static bool may_be_none(const cr_py_request *r) {
    const cr_finish_opts opts = {.nan = (cr_nan_policy)r->options.nan};
    bool may = false;
    for (size_t i = 0; i < r->op_count; i++)
        may |= cr_axis_may_be_none((cr_op)r->ops[i], (cr_dtype)r->input.dtype, &opts);
    return may;
}

/* hasty: a call that reads or writes regions is tried once only, because another try may want more room first. */
static bool begin(cr_py_job *job, cr_py_request *r, const cr_py_plan *plan, cr_py_client *client, cr_py_link *link,
                  bool hasty) {
    cured_error error;
    cured_region *region = NULL;
    uint64_t offset = 0;
    cured_options options = r->options;
    cured_output outputs[CURED_MAX_OPS];
    job->call = NULL;
    job->block = NULL;
    job->source = NULL;
    job->ended = false;
    if (!job->has_extra && !find_region(r, plan, link, &region, &offset))
        return false; /* a region has no room for it */
    options.timeout_ms = cr_py_client_timeout_ms(client);
    options.partial = r->partial;
    if ((!plan->whole && !r->partial) || options.offsets != NULL) {
        options.axis = plan->whole || r->keys != NULL ? NULL : &r->along;
        options.results = r->pointers;
        const bool written = cr_py_out_regions(r, link, outputs);
        if (!written && PyErr_Occurred()) return false;
        if (written) options.outputs = outputs;
        options.statuses = !written || may_be_none(r);
        if (r->out_tensors != NULL) options.results = NULL;
    }
    job->hasty = hasty && (region != NULL || options.outputs != NULL);
    if (job->hasty) options.retries = 0;
    if (start(job, r, plan, region, offset, link->conn, &options, &error) == CURED_OK) return true;
    cr_py_job_end(job);
    cr_py_raise(&error);
    return false;
}

bool cr_py_job_start(cr_py_job *job, cr_py_request *r, const cr_py_plan *plan, cr_py_client *client, cr_py_link *link) {
    return begin(job, r, plan, client, link, false);
}

/* The next elements of a file. What comes behind the last is looked at before the call has all that it waits for. */
static cured_status read_block(cr_py_job *job, size_t most, size_t *n, cured_error *error) {
    if (job->walk.left < most) most = (size_t)job->walk.left;
    const cured_status status = cr_py_source_next(job->source, job->block, most, n, error);
    job->walk.left -= *n;
    return status == CURED_OK && job->walk.left == 0 ? cr_py_source_check(job->source, error) : status;
}

cured_status cr_py_job_feed(cr_py_job *job, cured_error *error) {
    if (job->block == NULL || job->ended || cured_call_done(job->call) || cured_stream_pending(job->call) != 0)
        return CURED_OK;
    size_t size = job->walk.size;
    if (job->walk.left != 0) {
        size_t n = 0;
        cured_status status = CURED_OK;
        if (job->source != NULL)
            status = read_block(job, BLOCK_BYTES / size, &n, error);
        else
            n = cr_walk_next(&job->walk, job->block, BLOCK_BYTES / size);
        if (status != CURED_OK) return status;
        return n != 0 ? cured_stream_write(job->call, job->block, n * size, error) : CURED_OK;
    }
    if (job->has_extra) {
        job->has_extra = false;
        return cured_stream_write(job->call, job->extra, size, error);
    }
    job->ended = true;
    return cured_stream_end(job->call, error);
}

/* Sleeps until libcured has taken the block, but never longer than until Ctrl-C is looked for. */
static void await_room(const cr_py_job *job, const cr_py_link *link) {
    const int timeout = cured_timeout_ms(link->conn);
    struct pollfd p = {cured_fd(link->conn), cured_events(link->conn), 0};
    if (cured_call_done(job->call) || cured_stream_pending(job->call) == 0 || timeout == 0) return;
    poll(&p, p.fd >= 0 ? 1 : 0, timeout < 0 || timeout > SIGNALS_MS ? SIGNALS_MS : timeout);
}

/* A share of the work. CURED_OK: there is more, or the call is done. */
static cured_status work(cr_py_job *job, cr_py_link *link, cured_error *error) {
    const uint64_t until = cr_now_ns() + SIGNALS_MS * UINT64_C(1000000);
    while (!cured_call_done(job->call)) {
        const cured_status status = cr_py_job_feed(job, error);
        if (status != CURED_OK && !cured_call_done(job->call)) return status;
        if (job->block == NULL || job->ended) {
            cured_wait_for(job->call, SIGNALS_MS, NULL);
            break;
        }
        cured_process(link->conn, NULL);
        if (cr_now_ns() >= until) break;
        await_room(job, link);
    }
    return CURED_OK;
}

bool cr_py_job_run(cr_py_job *job, cr_py_link *link, uint64_t bytes) {
    cured_error error;
    cured_status status = CURED_OK;
    if (link->local && bytes <= CR_PY_SMALL_BYTES && job->block == NULL) cured_process(link->conn, NULL);
    while (status == CURED_OK && !cured_call_done(job->call)) {
        PyThreadState *thread = PyEval_SaveThread();
        status = work(job, link, &error);
        PyEval_RestoreThread(thread);
        if (!cured_call_done(job->call) && PyErr_CheckSignals() != 0) return false;
    }
    if (status == CURED_OK) {
        if (cured_call_status(job->call, NULL) == CURED_OK) return true;
        cured_call_status(job->call, &error);
    }
    cr_py_raise(&error);
    return false;
}

bool cr_py_job_do(cr_py_job *job, cr_py_request *r, const cr_py_plan *plan, cr_py_client *client, cr_py_link *link) {
    const uint64_t bytes = plan->count * r->input.size;
    const bool has_extra = job->has_extra;
    cured_error error;
    if (!begin(job, r, plan, client, link, true)) return false;
    bool good = cr_py_job_run(job, link, bytes);
    const cured_status status = cured_call_status(job->call, &error);
    if (!good && job->hasty && (status == CURED_RESOURCE_EXHAUSTED || status == CURED_UNAVAILABLE)) {
        PyErr_Clear();
        cr_py_job_end(job);
        if (strncmp(error.text, "region", 6) == 0) cr_py_client_forget(client, link);
        job->has_extra = has_extra;
        good = begin(job, r, plan, client, link, false) && cr_py_job_run(job, link, bytes);
    }
    if (!good) cr_py_job_end(job);
    return good;
}

void cr_py_job_end(cr_py_job *job) {
    cured_call_free(job->call); /* it may still read the block */
    PyMem_Free(job->block);
    cr_py_source_end(job->source);
    job->source = NULL;
    job->call = NULL;
    job->block = NULL;
}
