/* peer: who is at the other end of a connection, as Linux, a certificate or a token says.
 *
 * Thread: the loop's. Owner: the connection. */
#ifndef CURED_SERVER_ADMIT_PEER_H
#define CURED_SERVER_ADMIT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/names.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "server/admit/principal.h"

/* Who asks: one connection of a client. The limits of one connection count here. */
typedef struct cr_peer {
    uint64_t
        client; /* turns go by it: a process; its user where no process is seen; of TCP the address, without the port */
    uint64_t owner; /* limits go by it: a user; of TCP the principal, or the address where there is none */
    bool has_uid;   /* Linux says whose process it is */
    bool own;       /* root's, or of the user who runs the daemon, as Linux says */
    uint32_t uid, pid;
    const cr_principal *line;         /* what it goes by; NULL: as cr_principal_plain */
    uint32_t issue;                   /* that of the line when it came */
    uint8_t may;                      /* cr_may bits, beside its line's */
    int64_t until_s;                  /* its certificate is good so long, of the Unix clock; 0: it has none */
    uint64_t number;                  /* of all connections, from 1 on; the transport's */
    cr_path path;                     /* how it came; of TCP the transport says whether it is under TLS */
    cr_spoken spoken;                 /* the door's */
    char name[CR_NAME_MAX_BYTES + 1]; /* that the client gave itself; the door's */
    struct cr_user *user;             /* of that owner, see admission.h; NULL: there was no memory for it */
    struct cr_place *place;           /* of its connection, see admission.h; NULL: it has none */
    uint64_t calls, state_bytes, regions, region_bytes; /* in use */
} cr_peer;

/* Asks Linux who is at the other end of the connected socket. What is in use stays. */
void cr_peer_see(cr_peer *peer, int socket);
/* The same, once it has said so. A process of another namespace has pid 0: then the turns go by its user. */
void cr_peer_of_process(cr_peer *peer, const struct ucred *seen);
/* The owner of all connections of a principal: whoever a token or a certificate names. */
uint64_t cr_peer_principal(const char *name);
/* It goes by that line from now on. */
void cr_peer_goes_by(cr_peer *peer, const cr_principal *line);
/* cr_may bits. */
uint8_t cr_peer_may(const cr_peer *peer);
/* UNAUTHENTICATED: its credential is too old by now, or was taken back. PERMISSION_DENIED: it may not ask for that. */
cr_status cr_peer_check(const cr_peer *peer, cr_method method, cr_error *error);
/* "uid 1000", or the address; of a principal cr_user_name knows more. */
void cr_peer_name(uint64_t owner, char *name, size_t room);
/* An address of a family without addresses, or of an unknown one, is one client like any other. IPv6 counts by its first 64 bits,
 * because a host picks the others as it likes. So 127.0.0.0/8 is one. */
void cr_peer_of_address(cr_peer *peer, const struct sockaddr_storage *seen);

#endif
