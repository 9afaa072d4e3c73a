/* address: parses "unix:PATH" and "tcp:HOST:PORT".
 *
 * Thread: any. Owner: the caller owns every struct. */
#include "base/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == CR_ADDRESS_PATH, "CR_ADDRESS_PATH is sun_path's size");

static cr_status parse_port(const char *text, uint16_t *port, cr_error *error) {
    unsigned value = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits] != '\0')
        return cr_fail(error, CR_INVALID_ARGUMENT, "the port must be a number from 0 to 65535");
    for (size_t i = 0; i < digits; i++) value = value * 10 + (unsigned)(text[i] - '0');
    if (value > 65535) return cr_fail(error, CR_INVALID_ARGUMENT, "the port must be a number from 0 to 65535");
    *port = (uint16_t)value;
    return CR_OK;
}

/* A name, a dotted IPv4 number, or (in brackets) an IPv6 number; whether it exists is found out when it is bound. */
static cr_status check_host(const char *host, bool bracketed, cr_error *error) {
    for (const char *p = host; *p; p++) {
        bool plain = isalnum((unsigned char)*p) || *p == '.' || *p == '-' || *p == '_';
        if (!plain && !(bracketed && (*p == ':' || *p == '%')))
            return cr_fail(error, CR_INVALID_ARGUMENT, "the host may hold letters, digits, '.', '-' and '_' only%s",
                           *p == ':' ? "; an IPv6 number goes in brackets: tcp:[::1]:PORT" : "");
    }
    if (bracketed && !strchr(host, ':'))
        return cr_fail(error, CR_INVALID_ARGUMENT, "brackets are for IPv6 numbers: tcp:[::1]:PORT");
    return CR_OK;
}

static cr_status parse_tcp(const char *text, cr_address *address, cr_error *error) {
    bool bracketed = text[0] == '[';
    const char *start = text + bracketed;
    const char *end = bracketed ? strchr(start, ']') : strrchr(start, ':');
    if (!end) return cr_fail(error, CR_INVALID_ARGUMENT, "the form is tcp:HOST:PORT or tcp:[IPV6]:PORT");
    const char *colon = end + bracketed;
    if (*colon != ':') return cr_fail(error, CR_INVALID_ARGUMENT, "the form is tcp:HOST:PORT or tcp:[IPV6]:PORT");
    size_t length = (size_t)(end - start);
    if (length == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "the host is missing; tcp:127.0.0.1:PORT is this machine only");
    if (length >= sizeof address->host)
        return cr_fail(error, CR_INVALID_ARGUMENT, "the host has %zu characters, the limit is %zu", length,
                       sizeof address->host - 1);
    memcpy(address->host, start, length);
    address->host[length] = '\0';
    cr_status status = check_host(address->host, bracketed, error);
    return status ? status : parse_port(colon + 1, &address->port, error);
}

cr_status cr_address_parse(const char *text, cr_address *address, cr_error *error) {
    memset(address, 0, sizeof *address);
    if (strncmp(text, "unix:", 5) == 0) {
        size_t length = strlen(text + 5);
        address->kind = CR_ADDRESS_UNIX;
        if (length == 0) return cr_fail(error, CR_INVALID_ARGUMENT, "the path is missing: unix:PATH");
        if (strstr(text, ",unix:") || strstr(text, ",tcp:")) /* a path would swallow them */
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "these are several addresses: give the flag once for each, or a list in the file");
        if (length >= sizeof address->path)
            return cr_fail(error, CR_INVALID_ARGUMENT, "the path has %zu bytes, the limit is %zu", length,
                           sizeof address->path - 1);
        memcpy(address->path, text + 5, length + 1);
        return CR_OK;
    }
    if (strncmp(text, "tcp:", 4) == 0) {
        address->kind = CR_ADDRESS_TCP;
        return parse_tcp(text + 4, address, error);
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "an address is unix:PATH or tcp:HOST:PORT");
}

bool cr_address_is_local(const cr_address *address) {
    struct in_addr v4;
    struct in6_addr v6;
    if (address->kind == CR_ADDRESS_UNIX) return true;
    if (inet_pton(AF_INET, address->host, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, address->host, &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(address->host, "localhost") == 0;
}
