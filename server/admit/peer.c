/* peer: keys of clients and of their owners. Thread: the loop's. Owner: the connection. */
#include "server/admit/peer.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The top bits say what the others are, so that a process, a user and an address are never the same key. */
#define KEY_OF_USER (1ull << 60)
#define KEY_OF_IPV4 (2ull << 60)
#define KEY_OF_PRINCIPAL (4ull << 60)
#define KEY_OF_IPV6 (8ull << 60) /* bit 63: the bits below hold an address */

void cr_peer_of_process(cr_peer *peer, const struct ucred *seen) {
    peer->has_uid = true;
    peer->uid = seen->uid;
    peer->pid = seen->pid > 0 ? (uint32_t)seen->pid : 0;
    peer->path = CR_PATH_unix;
    peer->owner = KEY_OF_USER | seen->uid;
    peer->own = seen->uid == 0 || seen->uid == geteuid();
    peer->may = peer->own ? CR_MAY_ALL : CR_MAY_nothing;
    peer->client = seen->pid > 0 ? (uint64_t)seen->pid : peer->owner;
}

/* All hosts of a link share fe80::/64, and all of this one ::/64: there the last 64 bits tell. */
static uint64_t ipv6_key(const uint8_t address[16]) {
    uint64_t words[2];
    memcpy(words, address, sizeof words);
    const bool own_link = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
    const uint64_t tells = be64toh(words[own_link || !words[0]]);
    return KEY_OF_IPV6 | (own_link ? ~tells : tells);
}

void cr_peer_of_address(cr_peer *peer, const struct sockaddr_storage *seen) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)seen;
    uint32_t four = 0;
    if (seen->ss_family == AF_INET)
        four = ((const struct sockaddr_in *)seen)->sin_addr.s_addr;
    else if (seen->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        memcpy(&four, six->sin6_addr.s6_addr + 12, sizeof four);
    /* A process of this host picks any address of 127.0.0.0/8. */
    if (be32toh(four) >> 24 == IN_LOOPBACKNET) four = htobe32(INADDR_LOOPBACK);
    const bool is_six = seen->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
    peer->has_uid = peer->own = false;
    peer->uid = peer->pid = 0;
    peer->path = seen->ss_family == AF_UNIX ? CR_PATH_unix : CR_PATH_tcp;
    peer->may = CR_MAY_nothing;
    peer->client = peer->owner = is_six ? ipv6_key(six->sin6_addr.s6_addr) : KEY_OF_IPV4 | be32toh(four);
}

void cr_peer_see(cr_peer *peer, int socket) {
    struct ucred process;
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof address;
    if (getpeername(socket, (struct sockaddr *)&address, &length) != 0) address.ss_family = AF_UNSPEC;
    length = sizeof process;
    if (address.ss_family == AF_UNIX && getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &process, &length) == 0)
        cr_peer_of_process(peer, &process);
    else
        cr_peer_of_address(peer, &address);
}

/* FNV-1a: operators choose the names, not clients. */
uint64_t cr_peer_principal(const char *name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    return KEY_OF_PRINCIPAL | (hash & (KEY_OF_USER - 1));
}

static const cr_principal *line_of(const cr_peer *peer) { return peer->line ? peer->line : &cr_principal_plain; }

void cr_peer_goes_by(cr_peer *peer, const cr_principal *line) {
    peer->line = line;
    peer->issue = line->issue;
}

uint8_t cr_peer_may(const cr_peer *peer) { return (uint8_t)(peer->may | line_of(peer)->may); }

/* Whether who it is still counts. */
static cr_status check_time(const cr_peer *peer, cr_error *error) {
    const cr_principal *line = line_of(peer);
    const bool is_token = line->by == CR_KNOWN_token;
    if (is_token && peer->issue != line->issue)
        return cr_fail(error, CR_UNAUTHENTICATED, "token: it was taken back: ask for a new one");
    if (!peer->until_s && !line->until_s) return CR_OK;
    const int64_t now = (int64_t)time(NULL);
    if (peer->until_s && now >= peer->until_s)
        return cr_fail(error, CR_UNAUTHENTICATED, "TLS: this certificate's time is over: connect with a new one");
    if (line->until_s && now >= line->until_s)
        return cr_fail(error, CR_UNAUTHENTICATED, "%s: its time is over: ask for a new one",
                       is_token ? "token" : "this client");
    return CR_OK;
}

cr_status cr_peer_check(const cr_peer *peer, cr_method method, cr_error *error) {
    static const struct {
        const char *name, *what;
    } words[] = {
#define CR_MAY(name, what) {#name, what},
#include "proto/may.def"
#undef CR_MAY
    };
    unsigned i = 0;
    const uint8_t what = cr_method_rights[method];
    if (!what) return CR_OK;
    const cr_status status = check_time(peer, error);
    if (status != CR_OK) return status;
    if (cr_peer_may(peer) & what) return CR_OK;
    while (i < CR_MAYS - 1 && !(what >> i & 1)) i++;
    return cr_fail(error, CR_PERMISSION_DENIED,
                   "this client may not %s: whoever runs the daemon can allow it (\"%s\", see SECURITY.md)",
                   words[i].what, words[i].name);
}

void cr_peer_name(uint64_t owner, char *name, size_t room) {
    char text[INET_ADDRSTRLEN] = "?";
    const uint32_t four = htobe32((uint32_t)owner);
    if (owner & KEY_OF_IPV6)
        snprintf(name, room, "tcp6 %016llx", (unsigned long long)(owner & ~KEY_OF_IPV6));
    else if (owner & KEY_OF_PRINCIPAL)
        snprintf(name, room, "principal");
    else if (owner & KEY_OF_IPV4)
        snprintf(name, room, "tcp %s", inet_ntop(AF_INET, &four, text, sizeof text));
    else
        snprintf(name, room, "uid %u", (unsigned)owner);
}
