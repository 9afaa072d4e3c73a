/* feed: inspection and slots of one descriptor's, or one region's, way to its job. Thread: files threads; the feed's mutex guards its cursor
 * and its slots' number. Owner: itself. */
#include "engine/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/range.h"
#include "engine/job_axis.h"
#include "engine/memory/origin.h"
#include "engine/memory/region.h"

enum {
    SLOW_SLOTS = 2,
    WINDOW_BYTES = 64 * 1024 * 1024,
    SLOW_BYTES = 256 * 1024,
    FETCH_BYTES = 4 * 1024 * 1024, /* brought into the page cache, then offered, at a time */
};

typedef struct cr_feed cr_feed;

typedef struct slot {
    cr_file_task task;
    cr_slab_waiter waiter;
    cr_segment segment;
    cr_feed *feed;
    bool holding; /* the segment's memory is this slot's to empty */
    cr_window window;
    void *slab;
    void *own;             /* instead of a slab, where the reading or the folding may have to wait for a client */
    uint64_t begin, bytes; /* of the range in hand, in bytes after the feed's offset */
    uint64_t fetched;      /* of it, while a window is offered piece by piece */
} slot;

struct cr_feed {
    cr_file_task inspect;
    cr_feed_options options;
    const cr_source *source; /* of options */
    cr_job *job;
    cr_region own;           /* a passed descriptor */
    const cr_region *region; /* own, or the registered one */
    uint64_t offset;         /* where what it reads begins */
    cr_region_way way;       /* of this feed: what is mapped may have got holes since */
    bool foreign;            /* counted: its file may hang */
    pthread_mutex_t mutex;
    uint64_t next, total; /* bytes after offset; guarded by mutex */
    uint32_t alive;       /* slots that have not ended; guarded by mutex */
    slot slots[CR_FEED_SLOTS];
};

static void slot_run(cr_file_task *task);

/* On a thread where closing may block. The job's hold goes last: only then may the loop forget the job. */
static void feed_end(cr_feed *feed) {
    cr_queue *queue = feed->options.queue;
    cr_job *job = feed->job;
    if (feed->source->kept) {
        cr_kept_release(feed->source->kept);
    } else {
        cr_region_close(&feed->own);
        cr_metric_sub(regions, 1);
    }
    if (feed->foreign) cr_files_call_over(feed->options.files, feed->options.owner);
    pthread_mutex_destroy(&feed->mutex);
    free(feed);
    cr_queue_unhold(queue, job);
}

static void feed_fail(cr_feed *feed, const cr_error *error) { cr_queue_stop(feed->options.queue, feed->job, error); }

static cr_files_pool pool_of(const cr_feed *feed) {
    return feed->way == CR_REGION_SLOW ? CR_FILES_FOREIGN : CR_FILES_LOCAL;
}

static uint64_t step_of(const cr_feed *feed) {
    if (feed->way == CR_REGION_FETCH) return feed->total;
    static const uint64_t steps[] = {
        [CR_REGION_MAP] = WINDOW_BYTES, [CR_REGION_READ] = CR_SLAB_BYTES, [CR_REGION_SLOW] = SLOW_BYTES};
    const uint64_t unit = cr_job_unit(feed->job), step = steps[feed->way] / unit * unit;
    return step ? step : unit; /* of blocks that are longer each is brought by itself */
}

/* Nobody can end a call before its file answers, so its user may not take all places by such files. */
static cr_status count_foreign(cr_feed *feed, cr_error *error) {
    const cr_feed_options *o = &feed->options;
    feed->foreign = cr_files_call(o->files, o->owner, o->most_foreign);
    if (feed->foreign) return CR_OK;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "input: calls of this user on files that may hang (FUSE, network) take three quarters of max_jobs, "
                   "%zu, which is the limit; wait for answers",
                   o->most_foreign);
}

/* What the feed will read, and how: on a thread where looking may block. */
static cr_status inspect(cr_feed *feed, cr_error *error) {
    const cr_feed_options *o = &feed->options;
    const cr_source *source = feed->source;
    cr_status status = CR_OK;
    if (!source->kept) {
        status = cr_region_inspect(&feed->own, source->descriptor, error);
        feed->way = feed->own.way;
    }
    if (status == CR_OK)
        status = cr_feed_measure(o, feed->job->dtype, feed->region->size, &feed->offset, &feed->total, error);
    if (status == CR_OK && source->kept)
        status = cr_kept_check(source->kept, feed->offset, feed->total, &feed->way, error);
    if (cr_job_axis_in_strips(feed->job) && feed->way == CR_REGION_MAP) feed->way = CR_REGION_READ;
    if (feed->way == CR_REGION_READ && feed->region->shared && cr_queue_reads(o->queue, feed->job, feed->total))
        feed->way = CR_REGION_FETCH;
    if (status == CR_OK && feed->way == CR_REGION_MAP) cr_queue_whole(o->queue, feed->job);
    if (status == CR_OK && o->to_end)
        cr_queue_measured(o->queue, feed->job, feed->total);
    else if (status == CR_OK)
        cr_queue_set_total(o->queue, feed->job, feed->total);
    return status;
}

/* What the task will read: without a slab it may only get in line for one. */
static void slot_submit(slot *s) {
    const cr_feed *feed = s->feed;
    const uint64_t step = feed->way == CR_REGION_MAP                                                  ? FETCH_BYTES
                          : feed->way == CR_REGION_FETCH || (feed->way == CR_REGION_READ && !s->slab) ? 0
                                                                                                      : step_of(feed);
    s->task.bytes = step < feed->total ? step : feed->total;
    cr_files_submit(feed->options.files, &s->task, pool_of(feed));
}

static void inspect_run(cr_file_task *task) {
    cr_feed *feed = cr_container(task, cr_feed, inspect);
    const cr_feed_options *o = &feed->options;
    const cr_source *source = feed->source;
    cr_error error;
    if (!source->kept && task->pool == CR_FILES_LOCAL && !cr_origin_is_local(source->descriptor)) {
        if (count_foreign(feed, &error) == CR_OK) {
            cr_files_submit(o->files, task, CR_FILES_FOREIGN);
            return;
        }
        feed->own.descriptor = -1;
        cr_files_close(o->files, o->owner, source->descriptor); /* which may hang, too */
        feed_fail(feed, &error);
        feed_end(feed);
        return;
    }
    cr_status status = cr_queue_stopped(o->queue, feed->job) ? CR_CANCELLED : CR_OK;
    if (status == CR_OK && (status = inspect(feed, &error)) != CR_OK) feed_fail(feed, &error);
    if (status != CR_OK || feed->total == 0) {
        feed_end(feed);
        return;
    }
    uint64_t steps = (feed->total - 1) / step_of(feed) + 1;
    uint32_t most = feed->way == CR_REGION_SLOW ? SLOW_SLOTS : CR_FEED_SLOTS;
    if (feed->job->in_order) most = 1; /* a slab with a later range must not keep an earlier one from its slab */
    if (feed->way != CR_REGION_MAP && feed->way != CR_REGION_FETCH && step_of(feed) > CR_SLAB_BYTES) most = 1;
    uint32_t count = steps < most ? (uint32_t)steps : most;
    feed->alive = count; /* before the first slot can end */
    for (uint32_t i = 0; i < count; i++) {
        slot *s = &feed->slots[i];
        s->task.large = s->waiter.asker.large = feed->total > CR_TURN_LARGE_BYTES;
        /* So little that looking at it counted as much, or nothing to read here: it need not wait once more. */
        if ((feed->total <= CR_TURN_LEAST_BYTES || feed->way == CR_REGION_FETCH) && task->pool == pool_of(feed)) {
            s->task.pool = task->pool;
            slot_run(&s->task);
            return;
        }
        slot_submit(s);
    }
}

static void slot_resume(cr_slab_waiter *waiter, void *slab) {
    slot *s = cr_container(waiter, slot, waiter);
    s->slab = slab;
    slot_submit(s);
}

/* A slot keeps its slab from range to range, hot in the cache, but not while others wait for one: it gets in line. It does so
 * here, because its task may wait in line for long. */
static void slot_release(cr_segment *segment) {
    slot *s = cr_container(segment, slot, segment);
    cr_slabs *slabs = s->feed->options.slabs;
    if (s->slab && cr_slabs_low(slabs)) {
        cr_slab_give(slabs, s->slab);
        s->slab = NULL;
    }
    slot_submit(s);
}

static cr_status slot_still(cr_segment *segment, uint64_t end, cr_error *error) {
    slot *s = cr_container(segment, slot, segment);
    const cr_feed *feed = s->feed;
    end += feed->offset + s->begin;
    return feed->source->kept ? cr_kept_still(feed->source->kept, end, error)
                              : cr_region_still(feed->region, end, error);
}

/* Takes the next range; false when there is none or nobody wants it any more. */
static bool take_range(slot *s) {
    cr_feed *feed = s->feed;
    if (cr_queue_stopped(feed->options.queue, feed->job)) return false;
    uint64_t step = step_of(feed);
    pthread_mutex_lock(&feed->mutex);
    s->begin = feed->next;
    s->bytes = feed->total - feed->next < step ? feed->total - feed->next : step;
    feed->next += s->bytes;
    pthread_mutex_unlock(&feed->mutex);
    if (!s->bytes) return false;
    cr_segment_init(&s->segment, feed->job, NULL, s->begin / feed->job->element);
    s->segment.aligned = true;
    s->segment.release = slot_release;
    return true;
}

/* Offers a mapped window piece by piece, each brought into the page cache just before; or all of it once that is there, where folds read
 * on. Others get their turn between two. */
static void fill_on(slot *s) {
    cr_feed *feed = s->feed;
    cr_queue *queue = feed->options.queue;
    const bool fetches = !feed->region->shared;
    const bool as_one = feed->job->as_one;
    const uint64_t bytes = s->bytes, unit = cr_job_claim_unit(feed->job),
                   step = fetches ? (FETCH_BYTES - 1) / unit * unit + unit : bytes;
    for (bool sealed = false; !sealed;) {
        const uint64_t at = s->fetched, piece = bytes - at < step ? bytes - at : step;
        if (fetches) cr_region_fetch(feed->region, feed->offset + s->begin + at, s->window.data + at, (size_t)piece);
        s->fetched = cr_queue_stopped(queue, feed->job) ? bytes : at + piece;
        sealed = s->fetched == bytes;
        s->holding = sealed;
        if (sealed || !as_one)
            cr_queue_ready(queue, &s->segment, s->fetched,
                           sealed); /* sealed, the slot may already be somebody else's */
        if (sealed || !cr_files_waited_for(feed->options.files, pool_of(feed))) continue;
        slot_submit(s);
        return;
    }
}

static cr_status fill_window(slot *s, cr_error *error) {
    cr_feed *feed = s->feed;
    cr_kept *kept = feed->source->kept;
    uint64_t offset = feed->offset + s->begin;
    if (kept)
        s->window = (cr_window){.data = kept->map.data + offset}; /* nothing to unmap afterwards */
    else if (cr_region_map(feed->region, offset, (size_t)s->bytes, &s->window, error) != CR_OK)
        return error->code;
    s->segment.data = s->window.data;
    s->segment.kept = kept;
    s->segment.mapped = true;
    s->segment.still = slot_still;
    cr_queue_add(feed->options.queue, &s->segment);
    s->fetched = 0;
    fill_on(s);
    return CR_OK;
}

static cr_status slot_fetch(cr_segment *segment, uint64_t offset, void *into, size_t bytes, cr_error *error) {
    const slot *s = cr_container(segment, slot, segment);
    return cr_region_read(s->feed->region, s->feed->offset + s->begin + offset, into, bytes, error);
}

static cr_status offer_unread(slot *s) {
    static const uint8_t nowhere;
    s->segment.data = &nowhere;
    s->segment.fetch = slot_fetch;
    s->segment.aligned = false;
    s->holding = true;
    cr_queue_add(s->feed->options.queue, &s->segment);
    cr_queue_ready(s->feed->options.queue, &s->segment, s->bytes, true);
    return CR_OK;
}

/* Has memory to read into: true. False: slot_resume will come with a slab. NULL in *into: there is no memory. */
static bool take_memory(slot *s, void **into) {
    if (s->feed->way == CR_REGION_SLOW || s->feed->job->may_pause || step_of(s->feed) > CR_SLAB_BYTES) {
        if (!s->own) s->own = malloc(step_of(s->feed));
        *into = s->own;
        return true;
    }
    *into = s->slab;
    if (*into) return true;
    *into = cr_slab_take_or_wait(s->feed->options.slabs, &s->waiter);
    if (!*into) return false; /* from here on the slot may run elsewhere */
    s->slab = *into;
    cr_files_charge(s->feed->options.files, &s->task, s->bytes); /* it counted as one that would not read */
    return true;
}

/* The range in hand, from the pieces of the source that it consists of. */
static cr_status read_range(const slot *s, uint8_t *into, cr_error *error) {
    const cr_feed *feed = s->feed;
    cr_status status = CR_OK;
    for (uint64_t done = 0; status == CR_OK && done < s->bytes;) {
        uint64_t offset, now = cr_job_axis_run(feed->job, s->begin + done, &offset);
        if (now > s->bytes - done) now = s->bytes - done;
        status = cr_region_read(feed->region, feed->offset + offset, into + done, (size_t)now, error);
        done += now;
    }
    return status;
}

static cr_status fill_memory(slot *s, void *into, cr_error *error) {
    cr_feed *feed = s->feed;
    cr_queue *queue = feed->options.queue;
    if (!into)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %llu bytes of the file",
                       (unsigned long long)s->bytes);
    cr_status status = read_range(s, into, error);
    if (status != CR_OK) return status;
    if (s->slab) cr_metric_add(slab_read_bytes_total, s->bytes);
    s->segment.data = into;
    s->segment.pinned = s->slab && cr_slabs_pinned(feed->options.slabs);
    s->holding = true;
    cr_queue_add(queue, &s->segment);
    cr_queue_ready(queue, &s->segment, s->bytes, true);
    return CR_OK;
}

static void slot_end(slot *s) {
    cr_feed *feed = s->feed;
    if (s->slab) cr_slab_give(feed->options.slabs, s->slab);
    s->slab = NULL;
    free(s->own);
    pthread_mutex_lock(&feed->mutex);
    bool last = --feed->alive == 0;
    pthread_mutex_unlock(&feed->mutex);
    if (last) feed_end(feed);
}

/* One step of a slot: empty what was folded, fill the next range. */
static void slot_run(cr_file_task *task) {
    slot *s = cr_container(task, slot, task);
    cr_feed *feed = s->feed;
    cr_error error;
    if (s->holding) {
        cr_region_unmap(&s->window);
        s->window.data = NULL;
        s->holding = false;
        s->bytes = 0;
    }
    if (s->window.data && s->bytes) {
        fill_on(s);
        return;
    }
    if (!s->bytes && !take_range(s)) {
        slot_end(s);
        return;
    }
    void *into = NULL;
    const bool map = feed->way == CR_REGION_MAP, fetch = feed->way == CR_REGION_FETCH;
    if (!map && !fetch && !take_memory(s, &into)) return; /* slot_resume goes on from here */
    cr_status status = map ? fill_window(s, &error) : fetch ? offer_unread(s) : fill_memory(s, into, &error);
    if (status == CR_OK) return; /* the slot may already run elsewhere */
    feed_fail(feed, &error);
    slot_end(s);
}

/* A piece of a region that the lanes can read as it is. */
typedef struct direct {
    cr_segment segment;
    cr_kept *kept;
    uint64_t offset;
} direct;

static void direct_release(cr_segment *segment) {
    direct *d = cr_container(segment, direct, segment);
    cr_kept_release(d->kept);
    free(d);
}

static cr_status direct_still(cr_segment *segment, uint64_t end, cr_error *error) {
    direct *d = cr_container(segment, direct, segment);
    return cr_kept_still(d->kept, d->offset + end, error);
}

/* All of the input is there, and the feed is over. */
static void offer_whole(const cr_feed_options *o, direct *d, uint64_t total) {
    cr_job *job = d->segment.job;
    cr_queue_set_total(o->queue, job, total);
    cr_queue_add(o->queue, &d->segment);
    cr_queue_ready(o->queue, &d->segment, total, true);
    cr_queue_unhold(o->queue, job);
}

/* The whole range at once, without a files thread. */
static cr_status start_direct(cr_job *job, const cr_feed_options *o, cr_error *error) {
    const cr_source *source = &o->input.sources[0];
    uint64_t offset, total;
    cr_region_way way;
    cr_status status = cr_feed_measure(o, job->dtype, source->kept->region.size, &offset, &total, error);
    if (status == CR_OK) status = cr_kept_check(source->kept, offset, total, &way, error);
    direct *d = status == CR_OK ? malloc(sizeof *d) : NULL;
    if (!d) return status != CR_OK ? status : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to read the region");
    cr_segment_init(&d->segment, job, source->kept->map.data + offset, 0);
    d->kept = d->segment.kept = source->kept;
    d->offset = offset;
    d->segment.aligned = d->segment.mapped = true;
    d->segment.still = direct_still;
    d->segment.release = direct_release;
    cr_queue_whole(o->queue, job);
    offer_whole(o, d, total);
    return CR_OK;
}

/* In a GPU's memory: no byte moves, and only that GPU's lane claims. */
static cr_status start_on_device(cr_job *job, const cr_feed_options *o, cr_error *error) {
    const cr_source *source = &o->input.sources[0];
    uint64_t offset, total;
    cr_status status = cr_feed_measure(o, job->dtype, source->kept->region.size, &offset, &total, error);
    if (status != CR_OK) return status;
    direct *d = malloc(sizeof *d);
    if (!d) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to read the region");
    cr_segment_init(&d->segment, job, (const uint8_t *)(uintptr_t)source->kept->device.address + offset,
                    0); /* NOLINT */
    d->kept = d->segment.kept = source->kept;
    d->segment.aligned = true;
    d->segment.release = direct_release;
    job->kinds = CR_BY_GPU;
    job->gpu_from = 1;
    job->device = source->kept->device.device;
    offer_whole(o, d, total);
    return CR_OK;
}

/* The caller's input is given back, and it keeps its hold. */
static cr_status refuse(const cr_feed_options *options, cr_status status) {
    const cr_input *input = &options->input;
    for (const cr_source *source = input->sources; source < input->sources + input->count; source++) {
        if (source->kept)
            cr_kept_release(source->kept);
        else
            cr_files_close(options->files, options->owner, source->descriptor);
    }
    return status;
}

static cr_feed *feed_new(cr_job *job, const cr_feed_options *options) {
    cr_feed *feed = calloc(1, sizeof *feed);
    if (!feed) return NULL;
    feed->inspect.run = inspect_run;
    feed->inspect.user = options->owner;
    feed->inspect.client = options->client;
    cr_waiting_init(&feed->inspect.waiting);
    feed->options = *options;
    feed->job = job;
    feed->source = &feed->options.input.sources[0];
    feed->own.descriptor = feed->source->kept ? -1 : feed->source->descriptor;
    feed->region = feed->source->kept ? &feed->source->kept->region : &feed->own;
    feed->way = feed->region->way;
    pthread_mutex_init(&feed->mutex, NULL);
    for (int i = 0; i < CR_FEED_SLOTS; i++) {
        slot *s = &feed->slots[i];
        s->feed = feed;
        s->task.run = slot_run;
        s->task.client = s->waiter.asker.client = options->client;
        s->task.user = s->waiter.asker.owner = options->owner;
        s->waiter.granted = slot_resume;
        cr_waiting_init(&s->task.waiting);
        cr_waiting_init(&s->waiter.waiting);
    }
    return feed;
}

cr_status cr_feed_start(cr_job *job, const cr_feed_options *options, cr_error *error) {
    cr_kept *kept = options->input.sources[0].kept;
    if (options->input.count != 1)
        return refuse(options, cr_fail(error, CR_UNIMPLEMENTED,
                                       "input: %u arrays, and no op of this version takes them", options->input.count));
    if (kept && kept->region.way == CR_REGION_DEVICE)
        return start_on_device(job, options, error) == CR_OK ? CR_OK : refuse(options, error->code);
    if (kept && cr_kept_is_steady(kept) && !cr_job_axis_in_strips(job)) {
        cr_status status = start_direct(job, options, error);
        return status == CR_OK ? CR_OK : refuse(options, status);
    }
    cr_feed *feed = feed_new(job, options);
    if (!feed) return refuse(options, cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to read the input"));
    const bool foreign = kept && kept->region.way == CR_REGION_SLOW;
    if (foreign && count_foreign(feed, error) != CR_OK) {
        pthread_mutex_destroy(&feed->mutex);
        free(feed);
        return refuse(options, error->code);
    }
    if (!kept) cr_metric_add(regions, 1);
    cr_files_submit(options->files, &feed->inspect, foreign ? CR_FILES_FOREIGN : CR_FILES_LOCAL);
    return CR_OK;
}
