/* notify: see notify.h. libsystemd does the same; 60 lines here save the daemon a library that brings four more, and that a
 * container or a static build lacks. Thread: main's and the loop's. Owner: nobody. */
#include "base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"

static struct {
    int fd; /* 0: nobody is told */
    struct sockaddr_un to;
    socklen_t length;
    uint64_t watchdog_ms;
} notify;

static uint64_t number_of(const char *variable) {
    uint64_t value;
    const char *text = getenv(variable);
    return text && cr_digits(text, strlen(text), 10, &value) ? value : 0;
}

/* A path, or "@" and a name of the abstract kind, which begins with NUL and does not end with it. */
static void read_address(const char *text) {
    const size_t length = strlen(text);
    char shown[128];
    if ((text[0] != '/' && text[0] != '@') || length < 2 || length >= sizeof notify.to.sun_path) {
        cr_warn(
            "NOTIFY_SOCKET: \"%s\" is neither a path nor @NAME of at most %zu bytes: the service manager is told "
            "nothing",
            cr_log_quote(shown, sizeof shown, text), sizeof notify.to.sun_path - 1);
        return;
    }
    notify.to.sun_family = AF_UNIX;
    memcpy(notify.to.sun_path, text, length);
    if (text[0] == '@') notify.to.sun_path[0] = '\0';
    notify.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (text[0] == '/'));
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd > 0) notify.fd = fd;
}

void cr_notify_open(void) {
    const char *socket_name = getenv("NOTIFY_SOCKET");
    const uint64_t pid = number_of("WATCHDOG_PID");
    if (socket_name) read_address(socket_name);
    if (!getenv("WATCHDOG_PID") || pid == (uint64_t)getpid()) notify.watchdog_ms = number_of("WATCHDOG_USEC") / 2000;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void cr_notify(const char *text) {
    static cr_log_limit seldom;
    if (!notify.fd) return;
    ssize_t sent;
    do {
        sent = sendto(notify.fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&notify.to, notify.length);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) cr_warn_seldom(&seldom, "NOTIFY_SOCKET: the service manager cannot be told: %s", strerror(errno));
}

uint64_t cr_notify_watchdog_ms(void) { return notify.fd ? notify.watchdog_ms : 0; }
