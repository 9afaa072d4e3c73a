/* files: two queues and their threads. Thread: any; one mutex. Owner: the daemon. */
#include "engine/memory/files.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/metrics.h"
#include "base/table.h"
#include "engine/memory/origin.h"

/* Somebody with calls or tasks in FOREIGN, queued or running. */
typedef struct user {
    cr_list link, clients; /* clients: of client, who waited longest first */
    uint64_t key;
    size_t queued, running; /* of its clients */
    size_t calls;
    cr_table by_key; /* its clients */
} user;

/* One of its processes. */
typedef struct client {
    cr_list link, tasks;
    cr_node node;
    user *user;
    size_t running;
} client;

typedef struct pool {
    cr_turns *turns; /* LOCAL */
    cr_list tasks;   /* FOREIGN: those for which there was no memory to know whose they are */
    cr_list users;   /* FOREIGN: of user, who waited longest first */
    pthread_cond_t more;
    size_t queued, threads, idle, most; /* idle: asleep, or woken for a task that is still queued */
    size_t running;                     /* of users */
    uint64_t looked;                    /* how many users and clients were looked at for a next task */
} pool;

enum { CLOSING_BITS = 8 };

struct cr_files {
    pthread_mutex_t mutex;
    pthread_cond_t gone;
    pool pools[2];
    bool stopping;
    uint64_t factor;                           /* of hash.h */
    _Atomic size_t closing[1 << CLOSING_BITS]; /* closes in LOCAL that may prove to be FOREIGN's; users may share one */
};

typedef struct thread_start {
    cr_files *files;
    pool *pool;
} thread_start;

/* The functions below are called with the mutex held. */

static user *find_user(const pool *own, uint64_t key) {
    for (cr_list *node = own->users.next; node != &own->users; node = node->next)
        if (cr_container(node, user, link)->key == key) return cr_container(node, user, link);
    return NULL;
}

static client *find_client(const user *u, uint64_t key) {
    cr_node *found = u ? cr_table_find(&u->by_key, key) : NULL;
    return found ? cr_container(found, client, node) : NULL;
}

static void drop_user(user *u) {
    if (u->queued || u->running || u->calls || u->by_key.count) return;
    cr_list_remove(&u->link);
    cr_table_free(&u->by_key);
    free(u);
}

static void drop_client(client *c) {
    if (c->running || !cr_list_empty(&c->tasks)) return;
    cr_list_remove(&c->link);
    cr_table_remove(&c->user->by_key, &c->node);
    drop_user(c->user);
    free(c);
}

/* NULL: there is no memory. */
static user *make_user(pool *own, uint64_t key) {
    user *u = calloc(1, sizeof *u);
    if (!u) return NULL;
    u->key = key;
    cr_list_init(&u->clients);
    cr_list_append(&own->users, &u->link);
    return u;
}

static client *make_client(pool *own, uint64_t of_user, uint64_t key) {
    user *u = find_user(own, of_user);
    client *c = calloc(1, sizeof *c);
    if (c) c->node.key = key;
    if (c && !u) u = make_user(own, of_user);
    if (!c || !u || !cr_table_add(&u->by_key, &c->node)) {
        if (u) drop_user(u);
        free(c);
        return NULL;
    }
    c->user = u;
    cr_list_init(&c->tasks);
    cr_list_append(&u->clients, &c->link);
    return c;
}

static void put_task(pool *own, cr_file_task *task) {
    if (own->turns) {
        cr_turns_put(own->turns, task->user, task->client, &task->waiting, task->large);
        return;
    }
    client *c = find_client(find_user(own, task->user), task->client);
    if (!c) c = make_client(own, task->user, task->client);
    if (c) c->user->queued++;
    task->counted = c != NULL;
    cr_list_append(c ? &c->tasks : &own->tasks, &task->waiting.link);
}

/* A task of FOREIGN went without having run. */
static void leave(pool *own, const cr_file_task *task) {
    if (own->turns || !task->counted) return;
    client *c = find_client(find_user(own, task->user), task->client);
    c->user->queued--;
    drop_client(c);
}

/* LOCAL: the task whose client's turn it is. */
static cr_list *next_in_turn(pool *own) {
    cr_waiting *first = cr_turns_next(own->turns);
    if (!first) return NULL;
    cr_waiting_leave(first);
    cr_turns_charge(own->turns, first, cr_container(first, cr_file_task, waiting)->bytes);
    return &first->link;
}

/* FOREIGN: the task of u that runs next. No client has more threads than are left to all others together, and the last quarter is for
 * users who have none. */
static client *next_client(pool *own, user *u) {
    const size_t left = own->most - own->running;
    own->looked++;
    if (!u->queued || (u->running && left <= own->most / 4)) return NULL;
    for (cr_list *node = u->clients.next; node != &u->clients; node = node->next) {
        client *c = cr_container(node, client, link);
        own->looked++; /* those that are passed over have a thread, so they are few */
        if (!cr_list_empty(&c->tasks) && (!c->running || c->running < left)) return c;
    }
    return NULL;
}

/* The next task that may run now. *whose: whom it is counted for, in FOREIGN. */
static cr_list *next_task(pool *own, client **whose) {
    client *c = NULL;
    *whose = NULL;
    if (own->turns) return next_in_turn(own);
    for (cr_list *node = own->users.next; !c && node != &own->users; node = node->next)
        c = next_client(own, cr_container(node, user, link));
    if (!c) return cr_list_pop(&own->tasks);
    user *u = c->user;
    cr_list_remove(&c->link);
    cr_list_append(&u->clients, &c->link);
    cr_list_remove(&u->link);
    cr_list_append(&own->users, &u->link);
    c->running++;
    u->running++;
    own->running++;
    u->queued--;
    *whose = c;
    return cr_list_pop(&c->tasks);
}

static void *thread_main(void *argument) {
    thread_start start = *(thread_start *)argument;
    free(argument);
    cr_files *files = start.files;
    pool *own = start.pool;
    pthread_mutex_lock(&files->mutex);
    for (;;) {
        client *whose;
        cr_list *node = next_task(own, &whose);
        if (!node) {
            if (files->stopping) break;
            own->idle++;
            pthread_cond_wait(&own->more, &files->mutex);
            own->idle--;
            continue;
        }
        cr_file_task *task = cr_container(node, cr_file_task, waiting.link);
        task->queued = false;
        own->queued--;
        pthread_mutex_unlock(&files->mutex);
        task->run(task);
        cr_metric_sub(file_tasks, 1);
        pthread_mutex_lock(&files->mutex);
        if (!whose) continue;
        whose->running--;
        whose->user->running--;
        own->running--;
        drop_client(whose);
    }
    own->threads--;
    pthread_cond_broadcast(&files->gone);
    pthread_mutex_unlock(&files->mutex);
    return NULL;
}

/* Called with the mutex held. Threads are detached: one that hangs must not keep the daemon from ending. */
static bool start_thread(cr_files *files, pool *own) {
    thread_start *start = malloc(sizeof *start);
    if (!start) return false;
    *start = (thread_start){files, own};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, thread_main, start);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free(start);
        return false;
    }
    own->threads++;
    return true;
}

cr_status cr_files_new(size_t local_threads, size_t foreign_threads, cr_files **out, cr_error *error) {
    cr_files *files = calloc(1, sizeof *files);
    if (!files) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the files threads");
    pthread_mutex_init(&files->mutex, NULL);
    files->factor = cr_hash_factor();
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&files->gone, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int i = 0; i < 2; i++) {
        cr_list_init(&files->pools[i].tasks);
        cr_list_init(&files->pools[i].users);
        pthread_cond_init(&files->pools[i].more, NULL);
    }
    files->pools[CR_FILES_LOCAL].most = local_threads;
    files->pools[CR_FILES_FOREIGN].most = foreign_threads;
    files->pools[CR_FILES_LOCAL].turns = cr_turns_new();
    pthread_mutex_lock(&files->mutex);
    bool started = files->pools[CR_FILES_LOCAL].turns != NULL;
    for (size_t i = 0; i < local_threads && started; i++) started = start_thread(files, &files->pools[CR_FILES_LOCAL]);
    pthread_mutex_unlock(&files->mutex);
    if (!started) {
        cr_files_stop(files, 1000);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot start %zu files threads", local_threads);
    }
    *out = files;
    return CR_OK;
}

bool cr_files_stop(cr_files *files, unsigned wait_ms) {
    if (!files) return true;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&files->mutex);
    files->stopping = true;
    for (int i = 0; i < 2; i++) pthread_cond_broadcast(&files->pools[i].more);
    int timed_out = 0;
    while (!timed_out && files->pools[0].threads + files->pools[1].threads > 0)
        timed_out = pthread_cond_timedwait(&files->gone, &files->mutex, &until);
    bool all_gone = files->pools[0].threads + files->pools[1].threads == 0;
    pthread_mutex_unlock(&files->mutex);
    if (!all_gone) return false;
    for (int i = 0; i < 2; i++) pthread_cond_destroy(&files->pools[i].more);
    cr_turns_free(files->pools[CR_FILES_LOCAL].turns);
    pthread_cond_destroy(&files->gone);
    pthread_mutex_destroy(&files->mutex);
    free(files);
    return true;
}

void cr_files_submit(cr_files *files, cr_file_task *task, cr_files_pool where) {
    cr_metric_add(file_tasks, 1);
    pthread_mutex_lock(&files->mutex);
    pool *own = &files->pools[where];
    task->pool = where;
    task->queued = true;
    put_task(own, task);
    own->queued++;
    /* Every task its own thread, for the one before may hang. Should none start for lack of memory, those that run take
     * the task later; LOCAL always has some. */
    if (own->queued > own->idle && own->threads < own->most) start_thread(files, own);
    pthread_cond_signal(&own->more);
    pthread_mutex_unlock(&files->mutex);
}

bool cr_files_waited_for(cr_files *files, cr_files_pool where) {
    pthread_mutex_lock(&files->mutex);
    bool waited_for = files->pools[where].queued > 0;
    pthread_mutex_unlock(&files->mutex);
    return waited_for;
}

void cr_files_charge(cr_files *files, const cr_file_task *task, uint64_t bytes) {
    cr_turns *turns = files->pools[task->pool].turns;
    if (!turns) return;
    pthread_mutex_lock(&files->mutex);
    cr_turns_charge_more(turns, task->user, task->client, bytes);
    pthread_mutex_unlock(&files->mutex);
}

bool cr_files_forget(cr_files *files, cr_file_task *task) {
    pthread_mutex_lock(&files->mutex);
    bool was_queued = task->queued;
    if (was_queued) {
        cr_waiting_leave(&task->waiting);
        task->queued = false;
        files->pools[task->pool].queued--;
        leave(&files->pools[task->pool], task);
        cr_metric_sub(file_tasks, 1);
    }
    pthread_mutex_unlock(&files->mutex);
    return was_queued;
}

static _Atomic size_t *closing_of(cr_files *files, uint64_t owner) {
    return &files->closing[cr_hash(files->factor, owner, CLOSING_BITS)];
}

size_t cr_files_foreign_tasks(cr_files *files, uint64_t owner) {
    pthread_mutex_lock(&files->mutex);
    const user *u = find_user(&files->pools[CR_FILES_FOREIGN], owner);
    const size_t tasks = u ? u->queued + u->running : 0;
    pthread_mutex_unlock(&files->mutex);
    return tasks;
}

bool cr_files_call(cr_files *files, uint64_t owner, size_t most) {
    pool *own = &files->pools[CR_FILES_FOREIGN];
    pthread_mutex_lock(&files->mutex);
    user *u = find_user(own, owner);
    if (!u) u = make_user(own, owner);
    const bool taken = u && (!most || u->calls < most);
    if (taken) u->calls++;
    pthread_mutex_unlock(&files->mutex);
    return taken;
}

void cr_files_call_over(cr_files *files, uint64_t owner) {
    pthread_mutex_lock(&files->mutex);
    user *u = find_user(&files->pools[CR_FILES_FOREIGN], owner);
    u->calls--;
    drop_user(u);
    pthread_mutex_unlock(&files->mutex);
}

size_t cr_files_closing(cr_files *files, uint64_t owner) { return atomic_load(closing_of(files, owner)); }

uint64_t cr_files_looked(cr_files *files) {
    pthread_mutex_lock(&files->mutex);
    const uint64_t looked = files->pools[CR_FILES_FOREIGN].looked;
    pthread_mutex_unlock(&files->mutex);
    return looked;
}

typedef struct closing {
    cr_file_task task;
    cr_files *files;
    int descriptor;
} closing;

static void close_run(cr_file_task *task) {
    closing *c = cr_container(task, closing, task);
    _Atomic size_t *known = task->pool == CR_FILES_LOCAL ? closing_of(c->files, task->user) : NULL;
    if (known && !cr_origin_is_local(c->descriptor)) {
        cr_files_submit(c->files, task, CR_FILES_FOREIGN);
    } else {
        close(c->descriptor);
        free(c);
    }
    if (known) atomic_fetch_sub(known, 1);
}

void cr_files_close(cr_files *files, uint64_t owner, int descriptor) {
    closing *c = malloc(sizeof *c);
    if (!c) {
        close(descriptor); /* rather a wait than a leak */
        return;
    }
    *c =
        (closing){.task = {.run = close_run, .user = owner, .client = owner}, .files = files, .descriptor = descriptor};
    cr_waiting_init(&c->task.waiting);
    atomic_fetch_add(closing_of(files, owner), 1);
    cr_files_submit(files, &c->task, CR_FILES_LOCAL);
}
