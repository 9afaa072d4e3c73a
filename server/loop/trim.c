/* trim: peaks, and when they are over. Thread: the loop's; run: a files thread's. Owner: the loop. */
#include "server/loop/trim.h"

#include <malloc.h>

#include "base/clock.h"

enum { LEAST_PEAK = 128, LOOK_MS = 1000 };

static uint64_t load_of(const cr_trim *trim) {
    const uint64_t *used = trim->calls->admission.used;
    return used[CR_USE_calls] + used[CR_USE_connections];
}

static void run(cr_file_task *task) {
    cr_trim *trim = cr_container(task, cr_trim, task);
    malloc_trim(0);
    atomic_store(&trim->runs, false);
}

static void on_timer(cr_timer *timer) {
    cr_trim *trim = cr_container(timer, cr_trim, timer);
    const uint64_t load = load_of(trim);
    if (load <= trim->peak / 4 && !atomic_exchange(&trim->runs, true)) {
        trim->peak = load;
        cr_files_submit(trim->calls->files, &trim->task, CR_FILES_LOCAL);
    }
    if (trim->peak >= LEAST_PEAK) cr_timer_set(&trim->calls->timers, timer, cr_now_ms() + LOOK_MS);
}

void cr_trim_init(cr_trim *trim, cr_calls *calls) {
    *trim = (cr_trim){.calls = calls, .timer.fire = on_timer, .task.run = run};
    cr_waiting_init(&trim->task.waiting);
}

void cr_trim_look(cr_trim *trim) {
    const uint64_t load = load_of(trim);
    if (load <= trim->peak) return;
    trim->peak = load;
    if (load >= LEAST_PEAK && !trim->timer.slot)
        cr_timer_set(&trim->calls->timers, &trim->timer, cr_now_ms() + LOOK_MS);
}
