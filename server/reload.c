/* reload: see reload.h. Thread: the loop's, but for read_all. Owner: main. */
#include "server/reload.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"

extern char **environ;

enum { LIMIT_MS = 10000, MOST_LEFT_BEHIND = 4 };

/* One reading: the thread's until it is finished, then the loop's. */
typedef struct cr_reading {
    cr_reload *reload;
    pthread_t thread; /* joined once it is finished, or detached when nobody waits for it any more */
    bool given_up;    /* guarded by reload's mutex */
    cr_config config;
    cr_secrets secrets;
    cr_status status;
    cr_error error;
} cr_reading;

static void drop(cr_reading *r) {
    cr_secrets_free(&r->secrets);
    free(r);
}

static void *read_all(void *argument) {
    cr_reading *r = argument;
    cr_reload *reload = r->reload;
    cr_config_action action;
    r->status = cr_config_load(reload->argc, reload->argv, environ, &r->config, &action, &r->error);
    if (r->status == CR_OK) r->status = cr_secrets_open(&r->config, &r->secrets, &r->error);
    pthread_mutex_lock(&reload->mutex);
    const bool unwanted = r->given_up || reload->over;
    if (r->given_up) reload->left_behind--;
    if (!unwanted) {
        reload->finished = r;
        uv_async_send(&reload->done);
    }
    pthread_mutex_unlock(&reload->mutex);
    if (unwanted) drop(r);
    return NULL;
}

static void answer_all(cr_list *waiting, const cr_error *why, const cr_reloaded *what) {
    for (cr_list *node; (node = cr_list_pop(waiting));) {
        cr_reload_wait *wait = cr_container(node, cr_reload_wait, link);
        wait->told(wait, why, what);
    }
}

/* The reading is over. */
static void conclude(cr_reload *reload, const cr_error *why, const cr_reloaded *what) {
    if (why) cr_error_log("reload: %s; everything stays as it was", why->text);
    if (!reload->loop->calls->draining) cr_notify("READY=1");
    reload->reading = NULL;
    answer_all(&reload->waiting, why, what);
}

static void begin(cr_reload *reload) {
    cr_error error;
    char text[96];
    reload->again = false;
    while (!cr_list_empty(&reload->later)) cr_list_append(&reload->waiting, cr_list_pop(&reload->later));
    cr_info("reload: reading the options again");
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, cr_now_ns() / 1000);
    cr_notify(text);
    pthread_mutex_lock(&reload->mutex);
    const unsigned stuck = reload->left_behind;
    pthread_mutex_unlock(&reload->mutex);
    if (stuck >= MOST_LEFT_BEHIND) {
        cr_fail(&error, CR_UNAVAILABLE, "%u reloads before this one still wait for files that do not answer", stuck);
        conclude(reload, &error, NULL);
        return;
    }
    cr_reading *r = calloc(1, sizeof *r);
    if (r) r->reload = reload;
    if (!r || pthread_create(&r->thread, NULL, read_all, r) != 0) {
        free(r);
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory to read the configuration");
        conclude(reload, &error, NULL);
        return;
    }
    reload->reading = r;
    cr_timer_set(&reload->loop->calls->timers, &reload->limit, cr_now_ms() + LIMIT_MS);
}

static void take_over(cr_reload *reload, cr_reading *r) {
    cr_reloaded what;
    cr_calls *calls = reload->loop->calls;
    cr_calls_still(calls, true);
    reload->adjust(&r->config);
    cr_config_take(reload->config, &r->config, &what);
    cr_arrivals_secure(reload->arrivals, &r->secrets);
    reload->taken(reload);
    cr_calls_still(calls, false);
    cr_info("reload: %u options changed, %u more take a restart", what.changed_count, what.restart_count);
    conclude(reload, NULL, &what);
}

static void on_done(uv_async_t *done) {
    cr_reload *reload = done->data;
    pthread_mutex_lock(&reload->mutex);
    cr_reading *r = reload->finished;
    reload->finished = NULL;
    pthread_mutex_unlock(&reload->mutex);
    if (!r) return;
    pthread_join(r->thread, NULL); /* it is at its end */
    cr_timer_stop(&reload->loop->calls->timers, &reload->limit);
    if (r->status == CR_OK)
        take_over(reload, r);
    else
        conclude(reload, &r->error, NULL);
    drop(r);
    if (reload->again) begin(reload);
}

/* What a hung file holds stays with its thread. */
static void on_limit(cr_timer *limit) {
    cr_error error;
    cr_reload *reload = cr_container(limit, cr_reload, limit);
    pthread_mutex_lock(&reload->mutex);
    const bool finished = reload->finished != NULL;
    if (!finished) {
        reload->reading->given_up = true;
        pthread_detach(reload->reading->thread);
        reload->left_behind++;
    }
    pthread_mutex_unlock(&reload->mutex);
    if (finished) return; /* just now: its news is on its way */
    cr_fail(&error, CR_UNAVAILABLE, "the files of the configuration do not answer within %d s", LIMIT_MS / 1000);
    conclude(reload, &error, NULL);
    if (reload->again) begin(reload);
}

cr_status cr_reload_init(cr_reload *reload, cr_error *error) {
    cr_list_init(&reload->waiting);
    cr_list_init(&reload->later);
    reload->limit.fire = on_limit;
    if (pthread_mutex_init(&reload->mutex, NULL) != 0 || uv_async_init(reload->loop->uv, &reload->done, on_done) != 0)
        return cr_fail(error, CR_INTERNAL, "cannot prepare to reload the options");
    reload->done.data = reload;
    uv_unref((uv_handle_t *)&reload->done);
    return CR_OK;
}

void cr_reload_ask(void *argument, cr_reload_wait *wait) {
    cr_reload *reload = argument;
    if (wait) cr_list_append(&reload->later, &wait->link);
    if (reload->loop->calls->draining) {
        cr_error error;
        cr_fail(&error, CR_UNAVAILABLE, "the daemon is shutting down");
        answer_all(&reload->later, &error, NULL);
        return;
    }
    reload->again = true;
    if (!reload->reading) begin(reload);
}

bool cr_reload_end(cr_reload *reload) {
    if (!reload->done.data) return true;
    pthread_mutex_lock(&reload->mutex);
    reload->over = true;
    cr_reading *r = reload->finished;
    reload->finished = NULL;
    const bool gone = !reload->left_behind && (r || !reload->reading);
    if (!r && reload->reading) pthread_detach(reload->reading->thread); /* nobody waits for its files */
    pthread_mutex_unlock(&reload->mutex);
    if (r) pthread_join(r->thread, NULL);
    if (r) drop(r);
    cr_timer_stop(&reload->loop->calls->timers, &reload->limit);
    uv_close((uv_handle_t *)&reload->done, NULL);
    return gone;
}
