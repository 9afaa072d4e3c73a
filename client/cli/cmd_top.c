/* cured-client top: a live view of the daemon, until q.
 *
 * On a terminal the picture has the other screen, and keys come at once; both are put back at any end: q, an error, a signal, and
 * while top is stopped (Ctrl-Z). Elsewhere, and with --once, one picture is printed.
 * Thread: one; the handlers of signals set a flag. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/stats.h"

enum { FRAME_BYTES = 32 * 1024, STEP_MS = 1000, FIRST_MS = 200 };

static volatile sig_atomic_t ended, stopped, resized;

static void on_end(int number) { ended = number; }
static void on_stop(int number) {
    (void)number;
    stopped = 1;
}
static void on_resize(int number) {
    (void)number;
    resized = 1;
}

static struct termios before_top;
static bool shown;

static void say(const char *text) {
    for (size_t left = strlen(text); left;) {
        const ssize_t n = write(STDOUT_FILENO, text, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        text += n;
        left -= (size_t)n;
    }
}

static void leave_screen(void) {
    if (!shown) return;
    shown = false;
    say("\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &before_top);
}

static void enter_screen(void) {
    struct termios raw = before_top;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    say("\033[?1049h\033[?25l");
    shown = true;
}

static void watch_signals(void) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction action = {.sa_handler = on_end};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaction(ends[i], &action, NULL);
    action.sa_handler = on_stop;
    sigaction(SIGTSTP, &action, NULL);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
}

/* Ctrl-Z: the shell gets its terminal as it was. */
static void stop_for_a_while(void) {
    stopped = 0;
    leave_screen();
    raise(SIGSTOP);
    enter_screen();
}

/* The lines of a picture, as many and as long as the terminal has room for. */
static void draw(const char *text) {
    static char out[2 * FRAME_BYTES];
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    size_t used = 0;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (!size.ws_row) size.ws_row = 24;
    if (!size.ws_col) size.ws_col = 80;
    used += (size_t)snprintf(out, sizeof out, "\033[H");
    for (unsigned row = 0; row < size.ws_row && *text; row++) {
        const size_t length = strcspn(text, "\n"), cut = length < size.ws_col ? length : size.ws_col;
        if (used + cut + 16 > sizeof out) break;
        memcpy(out + used, text, cut);
        used += cut;
        used += (size_t)snprintf(out + used, sizeof out - used, "\033[K%s", row + 1 < size.ws_row ? "\r\n" : "");
        text += length + (text[length] == '\n');
    }
    snprintf(out + used, sizeof out - used, "\033[J");
    say(out);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Waits for the next picture. False: q was pressed, or a signal came. */
static bool wait_for_key(int ms) {
    const double until = now_s() + ms / 1e3;
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!ended) {
        if (stopped) stop_for_a_while();
        if (resized) {
            resized = 0;
            return true;
        }
        const double left = until - now_s();
        if (left <= 0) return true;
        const int ready = poll(&keys, 1, (int)(left * 1e3) + 1);
        if (ready <= 0) continue;
        char pressed;
        const ssize_t n = read(STDIN_FILENO, &pressed, 1);
        if (n == 1 && (pressed == 'q' || pressed == 'Q' || pressed == 4)) return false;
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return false; /* the terminal is gone */
    }
    return false;
}

typedef struct sample {
    cured_call *stats_call, *slow_call;
    cJSON *stats, *slow;
    double at_s;
} sample;

static void drop(sample *s) {
    cJSON_Delete(s->stats);
    cJSON_Delete(s->slow);
    cured_call_free(s->stats_call);
    cured_call_free(s->slow_call);
    *s = (sample){0};
}

static int take(const cli_options *o, cured_conn *conn, sample *s) {
    *s = (sample){.at_s = now_s()};
    const int code = cli_ask(o, conn, false, &s->stats_call, &s->stats);
    return code == EXIT_OK ? cli_ask(o, conn, true, &s->slow_call, &s->slow) : code;
}

static void picture(const sample *now, const sample *before, char *text) {
    cli_top_frame(now->stats, before->stats, now->slow, before->stats ? now->at_s - before->at_s : 0, text,
                  FRAME_BYTES);
}

/* One picture: of what is counted from now on for a moment, so that it has rates. */
static int print_once(const cli_options *o, cured_conn *conn) {
    static char text[FRAME_BYTES];
    sample before, now = {0};
    int code = take(o, conn, &before);
    if (code == EXIT_OK && !o->json) {
        struct timespec pause = {.tv_sec = STEP_MS / 1000};
        nanosleep(&pause, NULL);
        code = take(o, conn, &now);
    }
    if (code == EXIT_OK && o->json) {
        puts(cured_call_json(before.stats_call));
    } else if (code == EXIT_OK) {
        picture(&now, &before, text);
        fputs(text, stdout);
    }
    drop(&now);
    drop(&before);
    return code == EXIT_OK ? cli_flush() : code;
}

static int live(const cli_options *o, cured_conn *conn) {
    static char text[FRAME_BYTES];
    sample before = {0}, now = {0};
    int code = take(o, conn, &now);
    if (code != EXIT_OK) {
        drop(&now);
        return code;
    }
    atexit(leave_screen);
    watch_signals();
    enter_screen();
    for (int wait_ms = FIRST_MS; code == EXIT_OK; wait_ms = STEP_MS) {
        picture(&now, &before, text);
        draw(text);
        if (!wait_for_key(wait_ms)) break;
        drop(&before);
        before = now;
        code = take(o, conn, &now); /* its sentence goes to the other screen, so it is said again */
        if (code != EXIT_OK) leave_screen();
    }
    leave_screen();
    drop(&before);
    drop(&now);
    return code != EXIT_OK ? cli_fail(code, "the daemon does not answer any more") : ended ? 128 + ended : EXIT_OK;
}

int cmd_top(const cli_options *o) {
    cured_conn *conn;
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    const bool terminal = isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &before_top) == 0;
    code = o->once || o->json || !terminal ? print_once(o, conn) : live(o, conn);
    cured_close(conn);
    return code;
}
