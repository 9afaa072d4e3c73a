/* address: see address.h. Thread, owner: see there. */
#include "client/lib/conn/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/lib/error.h"

/* Nothing but the socket's own calls may fail after this. */
static int new_socket(int family) { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

static const char *unix_path(const char *address) { return strncmp(address, "unix:", 5) == 0 ? address + 5 : address; }

static bool is_tls(const char *address) { return strncmp(address, "tls:", 4) == 0; }
static bool is_tcp(const char *address) { return strncmp(address, "tcp:", 4) == 0 || is_tls(address); }

/* Splits "tcp:HOST:PORT"; an IPv6 host stands in brackets. */
static cr_status split_tcp(const char *address, char *host, size_t host_cap, const char **port, cr_error *error) {
    const char *start = address + 4;
    const char *colon = strrchr(start, ':');
    if (colon == NULL || colon == start || colon[1] == '\0')
        return cr_fail(error, CR_INVALID_ARGUMENT, "address '%.200s' must be %.4sHOST:PORT", address, address);
    size_t len = (size_t)(colon - start);
    if (*start == '[') {
        if (len < 3 || colon[-1] != ']')
            return cr_fail(error, CR_INVALID_ARGUMENT, "address '%.200s' must be %.4s[IPV6]:PORT", address, address);
        start++;
        len -= 2;
    }
    if (len >= host_cap)
        return cr_fail(error, CR_INVALID_ARGUMENT, "host name in the address has %zu bytes, limit is %zu", len,
                       host_cap - 1);
    memcpy(host, start, len);
    host[len] = '\0';
    char *end;
    errno = 0;
    unsigned long number = strtoul(colon + 1, &end, 10);
    if (errno != 0 || *end != '\0' || colon[1] < '0' || colon[1] > '9' || number < 1 || number > 65535)
        return cr_fail(error, CR_INVALID_ARGUMENT, "port '%.40s' must be a number from 1 to 65535", colon + 1);
    *port = colon + 1;
    return CR_OK;
}

cr_status cr_cl_address_host(const char *address, char host[256], cr_error *error) {
    const char *port;
    return split_tcp(address, host, 256, &port, error);
}

cr_status cr_cl_address_parse(const char *address, bool *tcp, bool *tls, cr_error *error) {
    *tcp = is_tcp(address);
    *tls = is_tls(address);
    if (*tcp) {
        char host[256];
        const char *port;
        return split_tcp(address, host, sizeof host, &port, error);
    }
    struct sockaddr_un un;
    const size_t word = strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    if (word != 0 && address[word] == ':' && unix_path(address) == address) /* a slip, more likely than a path */
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "address '%.200s' begins with none of unix:, tcp:, tls:, embedded: and auto: (a path of that "
                       "name: unix:%.200s)",
                       address, address);
    size_t len = strlen(unix_path(address));
    if (len == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "address is empty: give unix:PATH, tcp:HOST:PORT or tls:HOST:PORT");
    if (len >= sizeof un.sun_path)
        return cr_fail(error, CR_INVALID_ARGUMENT, "path of the socket has %zu bytes, limit is %zu", len,
                       sizeof un.sun_path - 1);
    return CR_OK;
}

static cr_status open_unix(const char *address, int *fd, bool *again, cr_error *error) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, unix_path(address), strlen(unix_path(address)) + 1);
    *fd = new_socket(AF_UNIX);
    if (*fd < 0) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot make a socket: %s", strerror(errno));
    int r;
    do r = connect(*fd, (struct sockaddr *)&un, sizeof un);
    while (r != 0 && errno == EINTR);
    if (r == 0) return CR_OK;
    int e = errno;
    close(*fd);
    *fd = -1;
    *again = e == EAGAIN; /* the listener's backlog is full */
    return cr_fail(error, e == EACCES || e == EPERM ? CR_PERMISSION_DENIED : CR_UNAVAILABLE,
                   "cannot connect to %.150s: %s", address, strerror(e));
}

/* A host that is gone without a word is noticed by Linux, too: by probes of a quiet connection, and when bytes are not
 * acknowledged. */
static void set_tcp(int fd) {
    enum { QUIET_S = 30, PROBE_S = 10, PROBES = 3, UNACKNOWLEDGED_MS = 60000 };
    static const struct {
        int level, name, value;
    } all[] = {{IPPROTO_TCP, TCP_NODELAY, 1},        {SOL_SOCKET, SO_KEEPALIVE, 1},
               {IPPROTO_TCP, TCP_KEEPIDLE, QUIET_S}, {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S},
               {IPPROTO_TCP, TCP_KEEPCNT, PROBES},   {IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        setsockopt(fd, all[i].level, all[i].name, &all[i].value, sizeof all[i].value);
}

static cr_status open_tcp(const char *address, uint32_t *lookup, int *fd, bool *connecting, bool *again,
                          cr_error *error) {
    char host[256];
    const char *port;
    cr_status status = split_tcp(address, host, sizeof host, &port, error);
    if (status != CR_OK) return status;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list;
    int r = getaddrinfo(host, port, &hints, &list);
    if (r != 0) return cr_fail(error, CR_UNAVAILABLE, "cannot look up host '%.150s': %s", host, gai_strerror(r));
    uint32_t index = 0;
    struct addrinfo *a = list;
    for (; a->ai_next != NULL && index < *lookup; index++) a = a->ai_next;
    *again = a->ai_next != NULL;
    *lookup = *again ? index + 1 : 0;
    *fd = new_socket(a->ai_family);
    r = *fd < 0 ? -1 : connect(*fd, a->ai_addr, a->ai_addrlen);
    int e = errno;
    freeaddrinfo(list);
    if (r == 0 || (*fd >= 0 && (e == EINPROGRESS || e == EINTR))) {
        set_tcp(*fd);
        *connecting = r != 0;
        return CR_OK;
    }
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return cr_fail(error, CR_UNAVAILABLE, "cannot connect to %.150s: %s", address, strerror(e));
}

cr_status cr_cl_address_open(const char *address, uint32_t *lookup, int *fd, bool *connecting, bool *again,
                             cr_error *error) {
    *fd = -1;
    *connecting = *again = false;
    if (is_tcp(address)) return open_tcp(address, lookup, fd, connecting, again, error);
    return open_unix(address, fd, again, error);
}

/* $XDG_RUNTIME_DIR/cured.sock; false: the variable names no folder of this user's or of root's (sudo may keep another
 * user's, whose daemon must not get root's files). */
static bool own_socket(char out[CURED_ADDRESS_BYTES]) {
    const char *folder = getenv("XDG_RUNTIME_DIR");
    struct stat st;
    if (folder == NULL || folder[0] != '/' || stat(folder, &st) != 0) return false;
    if (st.st_uid != geteuid() && st.st_uid != 0) return false;
    return snprintf(out, CURED_ADDRESS_BYTES, "unix:%s/cured.sock", folder) < CURED_ADDRESS_BYTES;
}

size_t cr_cl_address_defaults(char out[CR_CL_ADDRESSES][CURED_ADDRESS_BYTES]) {
    static const char system_socket[] = "unix:/run/cured/cured.sock";
    bool root = geteuid() == 0;
    bool own = own_socket(out[root ? 1 : 0]);
    strcpy(out[root || !own ? 0 : 1], system_socket);
    return own ? 2 : 1;
}

cured_status cured_default_address(char *address, size_t bytes, cured_error *error) {
    char all[CR_CL_ADDRESSES][CURED_ADDRESS_BYTES];
    const char *given = getenv("CURED_CONNECT");
    size_t count = cr_cl_address_defaults(all), best = 0;
    bool denied = false;
    if (given != NULL && given[0] != '\0') {
        /* cut where it is longer than any address: refused all the same */
        snprintf(all[0], sizeof all[0], "%s", given);
        count = 1;
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        uint32_t lookup = 0;
        int fd;
        bool connecting, again;
        cr_status status = cr_cl_address_open(all[i], &lookup, &fd, &connecting, &again, NULL);
        if (fd >= 0) close(fd);
        if (status == CR_OK || again || (status == CR_PERMISSION_DENIED && !denied)) best = i;
        if (status == CR_OK || again) break;
        denied = denied || status == CR_PERMISSION_DENIED;
    }
    size_t len = strlen(all[best]);
    if (len >= bytes)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "address has %zu bytes, limit is %zu", len, bytes - 1);
    memcpy(address, all[best], len + 1);
    return cr_cl_fail(error, CR_OK, "%s", "");
}
