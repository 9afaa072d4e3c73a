/* rooms: what the drivers of the daemon's doors share. Thread: the driver's. Owner: the process. */
#include "tests/fuzz/rooms.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

void need(bool good) {
    if (!good) abort();
}

/* loopback.c asserts by Check, which has no test running here: the linker puts these in Check's place. */
void __wrap__mark_point(const char *file, int line);
void __wrap__ck_assert_failed(const char *file, int line, const char *what, const char *message, ...);

void __wrap__mark_point(const char *file, int line) {
    (void)file;
    (void)line;
}

void __wrap__ck_assert_failed(const char *file, int line, const char *what, const char *message, ...) {
    (void)message;
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

static cr_list reloads = {&reloads, &reloads};

static void on_reload(void *argument, cr_reload_wait *wait) {
    (void)argument;
    cr_list_append(&reloads, &wait->link);
}

void tell_reloads(void) {
    static const cr_reloaded none;
    cr_error why;
    cr_fail(&why, CR_INVALID_ARGUMENT, "fuzz.conf: it cannot be read");
    for (bool first = true; !cr_list_empty(&reloads); first = false) {
        cr_reload_wait *wait = cr_container(cr_list_pop(&reloads), cr_reload_wait, link);
        wait->told(wait, first ? &why : NULL, first ? NULL : &none);
    }
}

void start_rooms(void) {
    setup();
    calls.reload = on_reload;
    cr_log_set_level(CR_LOG_ERROR);
    config.max_state_bytes = config.max_state_bytes_per_connection = 1 << 20; /* or most of the time goes into zeros */
    cr_calls_limit(&calls);
}
