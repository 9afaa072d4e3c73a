/* door: a way by which clients reach the daemon, as the loop and the listeners see it: one for each protocol.
 *
 * Thread: the loop's. Owner: the protocol's folder, whose state embeds the door. */
#ifndef CURED_SERVER_LOOP_DOOR_H
#define CURED_SERVER_LOOP_DOOR_H

#include <sys/socket.h>

#include "server/call/calls.h"
#include "server/socket/socket.h"

typedef struct cr_door cr_door;

/* Descriptors in one message: Linux's own limit (SCM_MAX_FD). Those for which a reader has no space Linux closes itself, on the
 * reader's thread. */
enum { CR_PASSED_MOST = 253 };
/* Room for the descriptors of one message. */
typedef union cr_control {
    char bytes[CMSG_SPACE(CR_PASSED_MOST * sizeof(int))];
    struct cmsghdr align;
} cr_control;

/* A connection whose first bytes have said which door it is for. What is lent is lent for the time of the door's open. */
typedef struct cr_arrived {
    cr_socket socket; /* non-blocking, close-on-exec */
    bool is_unix;
    cr_peer peer;            /* whoever it is: joined, and counted among the connections where it was let in */
    const cr_error *refused; /* it was not let in, and only stays to be told why; NULL: it was. Lent */
    bool wants_token;        /* it was let in, and its client must show one before anything else */
    bool brief;              /* refused, and so many are that it goes as soon as it has been told */
    uint64_t since_ms;
    const uint8_t *bytes; /* the first that came. Lent */
    size_t count;
    struct msghdr *control; /* descriptors beside them, to be taken or closed once it is open; NULL: none. Lent */
} cr_arrived;

/* UNAUTHENTICATED: the token is wrong or too old, or is missing and wanted. An empty one is none. *who: whom it names, NULL:
 * nobody. */
cr_status cr_arrived_check_token(const cr_calls *calls, bool wanted, const char *token, size_t length,
                                 const cr_principal **who, cr_error *error);
/* The connection is known to speak a language: it counts there. */
void cr_arrived_speaks(cr_calls *calls, cr_peer *peer, cr_spoken spoken);
/* The connection is over: it was joined, and counted as let in or as refused. */
void cr_arrived_leave(cr_calls *calls, cr_peer *peer, bool refused);
/* Lends room for descriptors to a message that is to be received from peer. None while so many of its user's wait in file systems
 * that do not answer, to be closed or read, that they could fill the daemon's table: Linux then keeps what comes and says
 * MSG_CTRUNC. */
void cr_arrived_room(cr_calls *calls, const cr_peer *peer, struct msghdr *message, cr_control *room);
/* Whether so many closes of the user's descriptors wait for a files thread that the next message has to wait, too. No file system keeps
 * them: they are over soon. */
bool cr_arrived_behind(const cr_calls *calls, const cr_peer *peer);
/* Closes the descriptors that came with a message of peer's, on a files thread, because even that may block. */
void cr_arrived_drop(cr_calls *calls, const cr_peer *peer, struct msghdr *message);
/* One read, as cr_socket_read, of a connection that may not pass descriptors: those that came are closed as above. *passed: some did. */
ssize_t cr_arrived_read(cr_calls *calls, const cr_peer *peer, cr_socket *socket, bool is_unix, uint8_t *to, size_t most,
                        bool *passed);
/* Closes the socket of a connection. What lies unread in it may hold descriptors: they are closed as above. */
void cr_arrived_close(cr_calls *calls, const cr_peer *peer, cr_socket *socket, bool is_unix);

struct cr_door {
    const char
        *first; /* the bytes that each of its connections begins with; NULL: they come to addresses of their own */
    /* Takes over the socket of a new connection, and its place among them, in every case. */
    cr_status (*open)(cr_door *door, const cr_arrived *arrived, cr_error *error);
    /* After a wake: other threads may have left news. */
    void (*woken)(cr_door *door);
    /* After the loop has looked at the sockets: connections have their turns. True: somebody still waits for one. */
    bool (*serve)(cr_door *door);
    /* Before the loop sleeps: writes what is due, once. True: something is left for the next turn. */
    bool (*flush)(cr_door *door);
    /* While draining: connections end whose replies nobody has read for so long. */
    void (*hurry)(cr_door *door, uint64_t stalled_ms);
    /* No call is open and every answer is written. */
    bool (*quiet)(const cr_door *door);
    /* Ends every connection, saying so (UNAVAILABLE) where the client can still read it. */
    void (*close_all)(cr_door *door);
};

#endif
