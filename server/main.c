/* main: the order of start and stop, nothing else.
 *
 *   start: options, guard, queue and loop, slabs, files threads, operators' addresses, lanes, listeners (last: a socket that
 *          accepts can serve)
 *   stop:  SIGTERM or SIGINT: listeners close, running calls finish (drain_timeout_ms, and those without progress for
 *          a second end before), connections close, lanes end; a second signal stops at once
 *
 * Thread: main's, which becomes the loop's. Owner: of everything here. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/notify.h"
#include "base/standard.h"
#include "engine/memory/guard.h"
#include "engine/memory/holes.h"
#include "engine/memory/origin.h"
#include "server/admin/admin.h"
#include "server/grpc/grpc.h"
#include "server/lanes/gpu/library.h"
#include "server/lanes/gpu/probe.h"
#include "server/native/annex.h"
#include "server/process_limits.h"
#include "server/reload.h"
#include "server/transport/listener.h"
#include "server/transport/passed.h"

extern char **environ;

enum { EXIT_USAGE_ = 64, EXIT_START = 69, EXIT_GPU_FAULT = 70, FILES_STOP_MS = 2000 };

typedef struct daemon_state {
    uv_loop_t uv;
    cr_calls calls;
    cr_loop loop;
    cr_native native;
    cr_grpc grpc;
    cr_admin admin;
    cr_arrivals arrivals;
    cr_listener *listeners[CR_PASSED_SOCKETS_MOST + CR_CONFIG_LIST_MAX]; /* first those that were passed */
    uint32_t passed, listener_count;
    cr_listener *windows[CR_CONFIG_LIST_MAX]; /* of operators: they stay open while the daemon drains */
    uint32_t window_count;
    uv_signal_t term, interrupt, hangup, show;
    uv_timer_t drain_limit, watch, watchdog;
    cr_reload reload;
    bool reads;   /* a thread of a reload is left behind */
    bool over;    /* signals mean nothing any more */
    bool stopped; /* the loop was told to end, maybe before it began */
    int exit_status;
    cr_config *config;
} daemon_state;

static void stop_now(cr_loop *loop) {
    daemon_state *d = loop->uv->data;
    d->stopped = true;
    cr_loop_close_doors(loop);
    uv_stop(loop->uv);
}

static void on_drain_limit(uv_timer_t *timer) {
    cr_loop *loop = timer->data;
    cr_warn("drain_timeout_ms is over with %llu calls running",
            (unsigned long long)loop->calls->admission.used[CR_USE_calls]);
    stop_now(loop);
}

static void close_windows(daemon_state *d) {
    while (d->window_count) cr_listener_close(d->windows[--d->window_count]);
}

static void close_listeners(daemon_state *d) {
    while (d->listener_count) cr_listener_close(d->listeners[--d->listener_count]);
}

/* Running calls finish, and no new ones come in. */
static void end_gently(daemon_state *d, const char *why) {
    cr_notify("STOPPING=1");
    cr_info("%s: draining %llu calls", why, (unsigned long long)d->calls.admission.used[CR_USE_calls]);
    close_listeners(d);
    uv_timer_start(&d->drain_limit, on_drain_limit, d->config->drain_timeout_ms, 0);
    cr_loop_drain(&d->loop, stop_now);
}

static void on_stop_signal(uv_signal_t *handle, int number) {
    daemon_state *d = handle->data;
    if (d->over) return;
    if (d->calls.draining) {
        cr_warn("second %s: stopping now", strsignal(number));
        stop_now(&d->loop);
        return;
    }
    end_gently(d, strsignal(number));
}

static void on_hangup(uv_signal_t *handle, int number) {
    daemon_state *d = handle->data;
    (void)number;
    if (!d->over) cr_reload_ask(&d->reload, NULL);
}

static void on_reloaded(cr_reload *reload) {
    cr_log_set_level((cr_log_level)reload->config->log_level);
    cr_log_set_json(reload->config->log_format == CR_LOG_FORMAT_JSON);
    cr_calls_limit(reload->loop->calls);
}

static void on_watchdog(uv_timer_t *timer) {
    (void)timer;
    cr_notify("WATCHDOG=1");
}

static void on_show(uv_signal_t *handle, int number) {
    daemon_state *d = handle->data;
    (void)number;
    if (!d->over) cr_stats_dump(&d->calls.stats);
}

static cr_status open_loop(daemon_state *d, cr_error *error) {
    const int failed = uv_loop_init(&d->uv);
    if (failed) return cr_fail(error, CR_INTERNAL, "cannot set up the loop: %s", uv_strerror(failed));
    d->uv.data = d;
    return CR_OK;
}

static cr_status watch_signals(daemon_state *d, cr_error *error) {
    const struct {
        uv_signal_t *handle;
        uv_signal_cb took;
        int number;
    } all[] = {{&d->term, on_stop_signal, SIGTERM},
               {&d->interrupt, on_stop_signal, SIGINT},
               {&d->hangup, on_hangup, SIGHUP},
               {&d->show, on_show, SIGUSR1}};
    int failed = 0;
    for (size_t i = 0; !failed && i < sizeof all / sizeof all[0]; i++) {
        failed = uv_signal_init(&d->uv, all[i].handle);
        all[i].handle->data = d;
        if (!failed) failed = uv_signal_start(all[i].handle, all[i].took, all[i].number);
    }
    if (failed) return cr_fail(error, CR_INTERNAL, "cannot watch for signals: %s", uv_strerror(failed));
    uv_timer_init(&d->uv, &d->drain_limit);
    uv_timer_init(&d->uv, &d->watch);
    uv_timer_init(&d->uv, &d->watchdog);
    uv_unref((uv_handle_t *)&d->watch);
    uv_unref((uv_handle_t *)&d->watchdog);
    d->drain_limit.data = d->watch.data = &d->loop;
    const uint64_t every_ms = cr_notify_watchdog_ms();
    if (every_ms) uv_timer_start(&d->watchdog, on_watchdog, every_ms, every_ms);
    return CR_OK;
}

/* What GPUs are asked by: a test's stand-in, or libcured-cuda. NULL: *why. */
#ifdef CURED_GPU_API
extern const cr_gpu_api CURED_GPU_API;
static const cr_gpu_api *gpu_api(cr_error *why) {
    (void)why;
    return &CURED_GPU_API;
}
#else
#ifdef CURED_LADDER
static const cr_ladder_functions ladder = {cr_ladder_open, cr_ladder_close, cr_ladder_run};
static const cr_ladder_functions *const own_ladder = &ladder;
#else
static const cr_ladder_functions *const own_ladder;
#endif
static const cr_gpu_api *gpu_api(cr_error *why) { return cr_gpu_library(own_ladder, why); }
#endif

static void on_lane_lost(cr_loop *loop) {
    daemon_state *d = loop->uv->data;
    cr_calls *calls = loop->calls;
    calls->runs_kernels = calls->lanes.gpus > calls->lanes.gpus_lost;
    if (calls->config->on_gpu_fault == CR_ON_GPU_FAULT_EXIT) {
        cr_error_log("%s; on_gpu_fault is exit: stopping", calls->lanes.reason);
        d->exit_status = EXIT_GPU_FAULT;
        if (!calls->draining) end_gently(d, "a GPU is lost");
        return;
    }
    cr_warn("%s; on_gpu_fault is cpu: going on without it", calls->lanes.reason);
}

static void on_watch(uv_timer_t *timer) { cr_lanes_watch(&((cr_loop *)timer->data)->calls->lanes); }

/* What opens the lanes: main, or a thread of its own while the loop turns. */
typedef struct opening {
    daemon_state *d;
    cr_error *error;
    cr_status status;
    _Atomic bool done;
} opening;

static void open_lanes(void *argument) {
    opening *o = argument;
    cr_calls *calls = &o->d->calls;
    cr_error missing = {CR_OK, ""};
    const bool wanted = calls->config->backend != CR_BACKEND_CPU;
    const cr_gpu_api *gpu = wanted ? gpu_api(&missing) : NULL;
    if (missing.code == CR_FAILED_PRECONDITION) cr_warn("%s", missing.text);
    const cr_lanes_options options = {.config = calls->config,
                                      .queue = calls->queue,
                                      .slabs = calls->slabs,
                                      .gpu = gpu,
                                      .no_gpu = missing.text,
                                      .probe = "/proc/self/exe",
                                      .wake = cr_loop_wake,
                                      .wake_argument = &o->d->loop};
    o->status = cr_lanes_open(&calls->lanes, &options, o->error);
    atomic_store(&o->done, true);
    cr_loop_wake(&o->d->loop);
}

/* A GPU's driver may take a minute: operators, who have an address by now, are told so meanwhile. */
static void open_lanes_aside(opening *o) {
    cr_calls *calls = &o->d->calls;
    uv_thread_t thread;
    calls->warming = true;
    calls->stats.sources.lanes = NULL;
    if (uv_thread_create(&thread, open_lanes, o) == 0) {
        while (!atomic_load(&o->done)) uv_run(&o->d->uv, UV_RUN_ONCE);
        uv_thread_join(&thread);
    } else {
        open_lanes(o);
    }
    calls->stats.sources.lanes = &calls->lanes;
    calls->warming = false;
    cr_loop_wake(&o->d->loop); /* a GPU may be lost already */
}

static cr_status start_lanes(daemon_state *d, cr_error *error) {
    cr_calls *calls = &d->calls;
    opening o = {.d = d, .error = error};
    d->loop.lane_lost = on_lane_lost;
    if (d->window_count)
        open_lanes_aside(&o);
    else
        open_lanes(&o);
    if (calls->lanes.gpus) d->native.device_hook = &calls->lanes.hook;
    calls->runs_kernels = calls->lanes.gpus > 0;
    uint64_t step = calls->config->gpu_timeout_ms / 4 + 1;
    if (calls->lanes.gpus) uv_timer_start(&d->watch, on_watch, step, step);
    return o.status;
}

/* Root's default socket lies in a folder that only systemd and packages make. */
static cr_status make_default_folder(const char *address, cr_error *error) {
    if (geteuid() != 0 || strcmp(address, "unix:/run/cured/cured.sock") != 0) return CR_OK;
    bool made = mkdir("/run/cured", 0700) == 0;
    if (made ? chmod("/run/cured", 0755) == 0 : errno == EEXIST) return CR_OK; /* 0755 whatever the umask is */
    return cr_fail(error, CR_PERMISSION_DENIED,
                   "listen: cannot make /run/cured (%s): make it, or give --listen unix:PATH", strerror(errno));
}

/* Those of the service manager stand in for the default address, and for whichever of listen they are. */
static bool is_passed(const daemon_state *d, const char *address) {
    bool same = d->passed && !cr_config_given(d->config, "listen");
    for (uint32_t i = 0; i < d->passed; i++) same |= strcmp(cr_listener_name(d->listeners[i]), address) == 0;
    return same;
}

static cr_status start_listeners(daemon_state *d, cr_error *error) {
    const cr_config_list *list = &d->config->listen;
    cr_status status = CR_OK;
    for (uint32_t i = 0; status == CR_OK && i < d->passed + list->count; i++) {
        const char *address = i < d->passed ? NULL : list->items[i - d->passed];
        cr_listener **next = &d->listeners[d->listener_count];
        if (address && is_passed(d, address)) continue;
        if (address) status = make_default_folder(address, error);
        if (status == CR_OK && address)
            status = cr_listener_open(&d->arrivals, address, NULL, next, error);
        else if (status == CR_OK)
            status = cr_listener_adopt(&d->arrivals, CR_PASSED_FIRST + (int)i, next, error);
        if (status != CR_OK) break;
        d->listener_count++;
        cr_info("listening on %s%s", cr_listener_name(*next), address ? "" : ", passed by the service manager");
    }
    if (status == CR_OK && !d->listener_count)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "listen: no address given, and LISTEN_FDS passes none either");
    return status;
}

static cr_status open_windows(daemon_state *d, cr_error *error) {
    const cr_config_list *list = &d->config->admin;
    cr_status status = CR_OK;
    for (uint32_t i = 0; status == CR_OK && i < list->count; i++) {
        status = cr_listener_open(&d->arrivals, list->items[i], &d->admin.door, &d->windows[i], error);
        if (status != CR_OK) { /* the listener names the option of the others */
            const cr_error why = *error;
            const size_t named = strncmp(why.text, "listen: ", 8) == 0 ? 8 : 0;
            return cr_fail(error, why.code, "admin: %s", why.text + named);
        }
        d->window_count++;
        cr_info("operators look in at %s", cr_listener_name(d->windows[i]));
    }
    return status;
}

static void watch_memory(void) {
    const char *why;
    if (cr_holes_open(&why))
        cr_metric_add(memory_watched, 1);
    else
        cr_info("shared memory is read by copies and not written to, because Linux refuses userfaultfd (%s)", why);
}

static cr_status start(daemon_state *d, cr_error *error) {
    cr_calls *calls = &d->calls;
    const cr_config *config = d->config;
    cr_origin_open();
    watch_memory();
    cr_calls_init(calls, cr_loop_wake, &d->loop);
    cr_status status = cr_guard_install(error);
    if (status == CR_OK) status = cr_loop_init(&d->loop, &d->uv, calls, error);
    /* As many again as connections: for what clients pass, and for the daemon's own. */
    if (status == CR_OK) cr_loop_reserve(&d->loop, 2 * config->max_connections);
    if (status == CR_OK) status = cr_native_init(&d->native, &d->loop, error);
    if (status == CR_OK) status = cr_grpc_init(&d->grpc, &d->loop, error);
    if (status == CR_OK) cr_admin_init(&d->admin, &d->loop);
    cr_arrivals_init(&d->arrivals, &d->loop);
    cr_secrets secrets;
    if (status == CR_OK) status = cr_secrets_open(config, &secrets, error);
    if (status == CR_OK) cr_arrivals_secure(&d->arrivals, &secrets);
    if (status == CR_OK) status = cr_reload_init(&d->reload, error);
    if (status == CR_OK) status = watch_signals(d, error);
    if (status == CR_OK) status = cr_queue_new(cr_loop_wake, &d->loop, &calls->queue, error);
    if (status == CR_OK) status = cr_slabs_new(config->slabs, &calls->slabs, error);
    if (status == CR_OK)
        status = cr_files_new(config->files_threads, config->foreign_files_threads, &calls->files, error);
    if (status == CR_OK) status = open_windows(d, error);
    if (status == CR_OK) status = start_lanes(d, error);
    if (status == CR_OK) status = cr_annexes_start(&d->native, config->loops, error);
    if (status == CR_OK && !calls->draining) status = start_listeners(d, error);
    return status;
}

static bool jobs_out(const daemon_state *d) {
    return atomic_load(&cr_metrics[CR_M_jobs]) || atomic_load(&cr_metrics[CR_M_regions]) ||
           d->calls.admission.used[CR_USE_regions];
}

/* Jobs that were stopped still have claims with the lanes and reads with the files threads, which give slabs and windows
 * back to each other and to the loop. Nothing of these may end before the last of them is back. False: it is not, for a file or a GPU that
 * does not answer. */
static bool await_jobs(daemon_state *d) {
    uint64_t until = cr_now_ms() + FILES_STOP_MS;
    struct timespec pause = {.tv_nsec = 1000000};
    while (jobs_out(d) && cr_now_ms() < until) {
        uv_run(&d->uv, UV_RUN_NOWAIT);
        nanosleep(&pause, NULL);
    }
    return !jobs_out(d);
}

/* Reverse order of start. What a hung file or GPU still uses is left to the end of the process. */
static void stop(daemon_state *d) {
    cr_calls *calls = &d->calls;
    close_listeners(d);
    close_windows(d);
    cr_arrivals_close(&d->arrivals);
    cr_loop_close_doors(&d->loop);
    cr_stats_log_left_out(&calls->stats.log_timer);
    uv_timer_stop(&d->drain_limit);
    uv_timer_stop(&d->watch);
    d->reads = !cr_reload_end(&d->reload);
    bool gone = await_jobs(d) && cr_files_stop(calls->files, FILES_STOP_MS);
    if (!gone) cr_warn("a client's file system, or a GPU, does not answer: leaving its threads behind");
    if (gone) calls->files = NULL; /* freed */
    if (gone && calls->queue) cr_queue_close(calls->queue);
    if (gone) gone = cr_lanes_close(&calls->lanes, calls->slabs); /* or regions may still be open on its devices */
    if (!gone) {
        fflush(NULL);
        _exit(d->exit_status);
    }
    cr_list done;
    if (calls->queue) {
        cr_queue_completed(calls->queue, &done);
        for (cr_list *node; (node = cr_list_pop(&done));) cr_job_free(cr_container(node, cr_job, done));
    }
    /* Those of signals stay, and the loop's memory with them: without, one that comes now would end the process, and not as it was to end. */
    d->over = true;
    uv_unref((uv_handle_t *)&d->term);
    uv_unref((uv_handle_t *)&d->interrupt);
    uv_unref((uv_handle_t *)&d->hangup);
    uv_unref((uv_handle_t *)&d->show);
    uv_close((uv_handle_t *)&d->drain_limit, NULL);
    uv_close((uv_handle_t *)&d->watch, NULL);
    uv_close((uv_handle_t *)&d->watchdog, NULL);
    cr_loop_close_handles(&d->loop);
    uv_run(&d->uv, UV_RUN_DEFAULT);
    cr_native_free(&d->native);
    cr_grpc_free(&d->grpc);
    cr_admin_free(&d->admin);
    cr_calls_free(calls);
    cr_slabs_free(calls->slabs);
    cr_queue_free(calls->queue);
}

static int run(cr_config *config, int argc, char **argv) {
    static daemon_state d;
    cr_error error;
    cr_log_set_level((cr_log_level)config->log_level);
    cr_log_set_json(config->log_format == CR_LOG_FORMAT_JSON);
    cr_process_ignore();
    cr_process_raise_files(config);
    d.calls.config = d.config = config;
    d.calls.version = CURED_VERSION;
    d.reload = (cr_reload){.loop = &d.loop,
                           .arrivals = &d.arrivals,
                           .config = config,
                           .argc = argc,
                           .argv = argv,
                           .adjust = cr_process_raise_files,
                           .taken = on_reloaded};
    d.calls.reload = cr_reload_ask;
    d.calls.reload_argument = &d.reload;
    cr_status status = cr_process_check_files(&error);
    if (status == CR_OK) status = open_loop(&d, &error);
    if (status == CR_OK) status = cr_passed_count(&d.passed, &error);
    if (status == CR_OK) status = start(&d, &error);
    if (status != CR_OK) {
        cr_error_log("%s", error.text);
        close_listeners(&d);
        close_windows(&d);
        if (d.calls.lanes.left_behind) { /* what the driver has for the end of the process may wait for that thread */
            fflush(NULL);
            _exit(EXIT_START);
        }
        if (error.code == CR_INVALID_ARGUMENT) return EXIT_USAGE_;
        return EXIT_START;
    }
    if (!d.calls.draining) cr_notify("READY=1");
    if (!d.stopped) uv_run(&d.uv, UV_RUN_DEFAULT);
    cr_notify("STOPPING=1");
    cr_info("stopping");
    stop(&d);
    if (d.reads) {
        fflush(NULL);
        _exit(d.exit_status);
    }
    return d.exit_status;
}

/* The end of --check-config: the files that the options name. */
static int check_files(const cr_config *config) {
    cr_error error;
    cr_secrets secrets;
    if (cr_secrets_open(config, &secrets, &error) != CR_OK) {
        fprintf(stderr, "cured: %s\n", error.text);
        return EXIT_USAGE_;
    }
    cr_secrets_free(&secrets);
    printf("the configuration is valid\n");
    return cr_standard_printed("cured");
}

int main(int argc, char **argv) {
    static cr_config config;
    cr_config_action action;
    cr_error error;
    cr_standard_hold();
    if (argc == 4 && strcmp(argv[1], "--probe-gpu") == 0) return cr_gpu_probe_main(gpu_api(&error), argv[2], argv[3]);
    if (cr_config_load(argc, argv, environ, &config, &action, &error) != CR_OK) {
        fprintf(stderr, "cured: %s\n", error.text);
        return EXIT_USAGE_;
    }
    switch (action) {
        case CR_CONFIG_HELP:
            cr_config_help(stdout);
            return cr_standard_printed("cured");
        case CR_CONFIG_VERSION:
            printf("cured %s\n", CURED_VERSION);
            return cr_standard_printed("cured");
        case CR_CONFIG_PRINT:
            cr_config_print(&config, stdout);
            return cr_standard_printed("cured");
        case CR_CONFIG_SCHEMA:
            cr_config_schema(stdout);
            return cr_standard_printed("cured");
        case CR_CONFIG_CHECK:
            return check_files(&config);
        case CR_CONFIG_RUN:
            break;
    }
    cr_notify_open();
    return run(&config, argc, argv);
}
