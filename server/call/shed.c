/* shed: a step of memory at a time, on a files thread. Thread: the loop's; run: a files thread's. Owner: calls. */
#include "server/call/shed.h"

#include <stdlib.h>

#include "engine/memory/bulk.h"
#include "server/call/call.h"

typedef struct cr_shed {
    cr_file_task task;
    cr_list link;
    cr_calls *calls;
    cr_job *job;      /* NULL: freed */
    bool over;        /* no call has the job: it is freed, too, and then */
    cr_ticket ticket; /* goes back */
} cr_shed;

static void run(cr_file_task *task) {
    cr_shed *shed = cr_container(task, cr_shed, task);
    cr_calls *calls = shed->calls;
    if (shed->over ? cr_job_over_step(shed->job) : cr_job_empty_step(shed->job)) {
        cr_files_submit(calls->files, task, task->pool);
        return;
    }
    if (shed->over) {
        cr_job_free(shed->job);
        shed->job = NULL;
    }
    pthread_mutex_lock(&calls->mutex);
    cr_list_append(&calls->shed, &shed->link);
    calls->wake(calls->wake_argument);
    pthread_mutex_unlock(&calls->mutex);
}

/* False: there is no memory for it. */
static bool begin(cr_calls *calls, cr_job *job, const cr_ticket *ticket) {
    cr_shed *shed = calls->files ? calloc(1, sizeof *shed) : NULL;
    if (!shed) return false;
    shed->calls = calls;
    shed->job = job;
    shed->over = ticket != NULL;
    if (ticket) shed->ticket = *ticket;
    shed->task = (cr_file_task){
        .run = run, .user = job->user, .client = job->client, .bytes = CR_BULK_STEP_BYTES, .large = true};
    cr_waiting_init(&shed->task.waiting);
    cr_list_init(&shed->link);
    cr_files_submit(calls->files, &shed->task, CR_FILES_LOCAL);
    return true;
}

bool cr_shed_job(cr_calls *calls, cr_job *job) {
    return cr_job_beside_bytes(job) >= CR_BULK_BYTES && begin(calls, job, NULL);
}

void cr_shed_over(cr_calls *calls, cr_job *job, cr_ticket *ticket) {
    cr_admit_answered(ticket);
    if (job && cr_job_beside_bytes(job) + cr_job_unwanted_bytes(job) >= CR_BULK_BYTES && begin(calls, job, ticket))
        return;
    cr_job_free(job);
    cr_admit_over(&calls->admission, ticket);
}

void cr_shed_turn(cr_calls *calls) {
    for (;;) {
        pthread_mutex_lock(&calls->mutex);
        cr_list *node = cr_list_pop(&calls->shed);
        pthread_mutex_unlock(&calls->mutex);
        if (!node) return;
        cr_shed *shed = cr_container(node, cr_shed, link);
        cr_job *job = shed->job;
        if (shed->over) {
            cr_admit_over(&calls->admission, &shed->ticket);
        } else if (job->owner) {
            cr_call_shed(job->owner);
        } else { /* the call has left it meanwhile */
            cr_ticket ticket = job->ticket;
            cr_shed_over(calls, job, &ticket);
        }
        free(shed);
    }
}
