/* progress: how far a long call is, in one line on standard error that goes before anything else is printed. Only a terminal
 * gets it, and no colours.
 *
 * Thread: one. Owner: the line is the program's; there is one at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/cli/cli.h"

enum { FIRST_MS = 500, EVERY_MS = 200, BAR = 20, NAME = 24, WIDEST = 160 };

static struct {
    const char *name;
    uint64_t start_ns;
    bool shown;
} line;

/* "1.2 GB" */
static const char *amount(double bytes, char out[16]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    for (; bytes >= 999.5 && unit < 6; unit++) bytes /= 1000;
    snprintf(out, 16, unit != 0 && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}

static const char *duration(double seconds, char out[32]) {
    unsigned long s = seconds < 1e9 ? (unsigned long)(seconds + 0.5) : 1000000000;
    if (s >= 3600)
        snprintf(out, 32, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%lu:%02lu", s / 60, s % 60);
    return out;
}

void cli_progress_text(const char *name, uint64_t done, uint64_t total, double seconds, char *out, size_t bytes) {
    char so_far[16], all[16], rate[16], left[32], bar[BAR + 1] = "";
    double speed = seconds > 0 ? (double)done / seconds : 0;
    if (total == 0) {
        snprintf(out, bytes, "%.*s %s, %s/s", NAME, name, amount((double)done, so_far), amount(speed, rate));
        return;
    }
    if (done > total) done = total;
    double share = (double)done / (double)total;
    for (int i = 0; i < BAR; i++) bar[i] = i < (int)(share * BAR) ? '#' : '.';
    int n = snprintf(out, bytes, "%.*s [%s] %3.0f %% of %s, %s/s", NAME, name, bar, share * 100,
                     amount((double)total, all), amount(speed, rate));
    if (speed > 0 && n > 0 && (size_t)n < bytes)
        snprintf(out + n, bytes - (size_t)n, ", %s left", duration((double)(total - done) / speed, left));
}

static void show(cured_call *call, uint64_t done, uint64_t total, void *user) {
    (void)call;
    (void)user;
    uint64_t ns = cr_now_ns() - line.start_ns;
    if (ns < FIRST_MS * UINT64_C(1000000)) return;
    char text[WIDEST];
    struct winsize size = {0};
    cli_progress_text(line.name, done, total, (double)ns / 1e9, text, sizeof text);
    int most = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    fprintf(stderr, "\r\033[K%.*s", most, text);
    fflush(stderr);
    line.shown = true;
}

void cli_progress_begin(const cli_options *o, const char *name, cured_options *call) {
    const char *terminal = getenv("TERM");
    if (o->quiet || o->no_progress || !isatty(STDERR_FILENO)) return;
    if (terminal == NULL || *terminal == '\0' || strcmp(terminal, "dumb") == 0) return;
    const char *slash = strrchr(name, '/');
    line.name = slash != NULL && slash[1] != '\0' ? slash + 1 : name;
    line.start_ns = cr_now_ns();
    call->on_progress = show;
    call->progress_ms = EVERY_MS;
}

void cli_progress_clear(void) {
    if (!line.shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    line.shown = false;
}
