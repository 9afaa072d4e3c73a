/* extra: memory, and the reading of a file into it. Thread: files threads read; the rest any. Owner: its uses. */
#include "engine/extra.h"

#include <stdlib.h>

#include "base/metrics.h"
#include "base/range.h"
#include "engine/memory/bulk.h"
#include "engine/memory/origin.h"

enum { STEP_BYTES = 4 * 1024 * 1024, SLOW_BYTES = 256 * 1024 }; /* others' turns come between two */

static void use(cr_extra *extra) { atomic_fetch_add_explicit(&extra->uses, 1, memory_order_relaxed); }

void cr_extra_release(cr_extra *extra) {
    if (atomic_fetch_sub_explicit(&extra->uses, 1, memory_order_acq_rel) != 1) return;
    free(extra->data);
    free(extra);
}

static bool empty(cr_held *held) {
    cr_extra *extra = cr_container(held, cr_extra, held);
    const bool more = cr_bulk_step(extra->data, &held->left);
    if (!more) extra->data = NULL;
    return more;
}

static void empty_run(cr_file_task *task) {
    cr_extra *extra = cr_container(task, cr_extra, task);
    if (empty(&extra->held))
        cr_files_submit(extra->files, task, task->pool);
    else
        extra->told(extra);
}

void cr_extra_empty(cr_extra *extra, cr_files *files, uint64_t user, uint64_t client) {
    extra->files = files;
    extra->task =
        (cr_file_task){.run = empty_run, .user = user, .client = client, .bytes = CR_BULK_STEP_BYTES, .large = true};
    cr_waiting_init(&extra->task.waiting);
    use(extra);
    cr_files_submit(files, &extra->task, CR_FILES_LOCAL);
}

static void job_lets_go(cr_held *held) { cr_extra_release(cr_container(held, cr_extra, held)); }

cr_extra *cr_extra_new(uint64_t bytes, const char *name) {
    cr_extra *extra = calloc(1, sizeof *extra);
    if (!extra) return NULL;
    extra->data = bytes <= SIZE_MAX - 64 ? malloc((size_t)bytes + 1) : NULL; /* of none it is an address, too */
    if (!extra->data) {
        free(extra);
        return NULL;
    }
    extra->bytes = bytes;
    extra->held = (cr_held){.release = job_lets_go, .empty = empty, .left = bytes};
    extra->name = name;
    extra->error.code = CR_OK;
    extra->own.descriptor = -1;
    cr_list_init(&extra->told_link);
    atomic_init(&extra->unwanted, false);
    atomic_init(&extra->uses, 1);
    return extra;
}

void cr_extra_hold(cr_extra *extra, cr_job *job) {
    use(extra);
    extra->held.next = job->held;
    job->held = &extra->held;
}

static void over(cr_extra *extra) {
    if (extra->kept) {
        cr_kept_release(extra->kept);
    } else {
        cr_region_close(&extra->own);
        cr_metric_sub(regions, 1);
    }
    if (extra->foreign) cr_files_call_over(extra->files, extra->task.user);
    extra->told(extra);
}

/* A file that may hang is read where nobody waits for it. True: the task goes on there, or is over. */
static bool goes_on_foreign(cr_extra *extra) {
    if (extra->foreign || extra->task.pool == CR_FILES_FOREIGN) return false;
    if (extra->kept ? extra->kept->region.way != CR_REGION_SLOW : cr_origin_is_local(extra->own.descriptor))
        return false;
    extra->foreign = cr_files_call(extra->files, extra->task.user, extra->most_foreign);
    if (extra->foreign) {
        cr_files_submit(extra->files, &extra->task, CR_FILES_FOREIGN);
        return true;
    }
    cr_fail(&extra->error, CR_RESOURCE_EXHAUSTED,
            "%s: calls of this user on files that may hang (FUSE, network) take three quarters of max_jobs, %zu, "
            "which is the limit; wait for answers",
            extra->name, extra->most_foreign);
    if (!extra->kept) { /* closing may hang, too */
        cr_files_close(extra->files, extra->task.user, extra->own.descriptor);
        extra->own.descriptor = -1;
    }
    over(extra);
    return true;
}

static cr_status inspect(cr_extra *extra, cr_error *error) {
    cr_region_way way;
    if (!extra->kept) {
        const cr_status status = cr_region_inspect(&extra->own, extra->own.descriptor, error);
        return status == CR_OK ? cr_range_check(extra->offset, extra->bytes, extra->own.size, error) : status;
    }
    return cr_kept_check(extra->kept, extra->offset, extra->bytes, &way, error);
}

static void run(cr_file_task *task) {
    cr_extra *extra = cr_container(task, cr_extra, task);
    cr_error error;
    cr_status status = CR_OK;
    if (!extra->inspected && goes_on_foreign(extra)) return;
    const uint64_t most = task->pool == CR_FILES_FOREIGN ? SLOW_BYTES : STEP_BYTES, left = extra->bytes - extra->at;
    const uint64_t step = left < most ? left : most;
    if (atomic_load(&extra->unwanted)) status = cr_fail(&error, CR_CANCELLED, "nobody waits for it");
    if (status == CR_OK && !extra->inspected) status = inspect(extra, &error);
    extra->inspected = true;
    const cr_region *region = extra->kept ? &extra->kept->region : &extra->own;
    if (status == CR_OK && step)
        status = cr_region_read(region, extra->offset + extra->at, extra->data + extra->at, (size_t)step, &error);
    if (status != CR_OK) {
        cr_fail(&extra->error, status, "%s: %s", extra->name, error.text);
    } else if (extra->look) {
        status = extra->look(extra, extra->at, extra->at + step, &extra->error);
    }
    extra->at += step;
    if (status == CR_OK && extra->at < extra->bytes) {
        task->bytes = extra->bytes - extra->at < most ? extra->bytes - extra->at : most;
        cr_files_submit(extra->files, task, task->pool);
        return;
    }
    over(extra);
}

void cr_extra_read(cr_extra *extra, const cr_extra_source *source) {
    extra->files = source->files;
    extra->kept = source->kept;
    extra->own.descriptor = source->kept ? -1 : source->descriptor;
    extra->offset = source->offset;
    extra->most_foreign = source->most_foreign;
    extra->task.run = run;
    extra->task.user = source->owner;
    extra->task.client = source->client;
    extra->task.bytes = extra->bytes < STEP_BYTES ? extra->bytes : STEP_BYTES;
    extra->task.large = extra->bytes > CR_TURN_LARGE_BYTES;
    cr_waiting_init(&extra->task.waiting);
    if (!source->kept) cr_metric_add(regions, 1);
    use(extra);
    cr_files_submit(extra->files, &extra->task, CR_FILES_LOCAL);
}
