/* principals: reads the file of the option principals. A line says by what a client is known, what it may do, and how much it may
 * hold:
 *
 *   NAME SALT HASH [WORD...]   a token; `cured-client token NAME` makes such lines. NAME: letters, digits, '-' and '_';
 *                              SALT: 32 hex digits; HASH: SHA-256 of SALT's 16 bytes and the secret's 32, 64 hex digits
 *   CN=NAME, DNS=NAME, URI=NAME [WORD...]   a certificate with that common name, or that name beside its subject
 *   certificate=* [WORD...]    a certificate
 *   user=NAME, group=NAME, user=* [WORD...]   over Unix sockets; names or numbers
 *   address=* [WORD...]        over TCP, with no credential
 *
 *   WORD: until=TIME           2026-12-31T12:00:00Z, or 2026-12-31, the last day on which it is good (UTC)
 *         may=RIGHT,RIGHT      of proto/may.def, or nothing; without may= all but admin
 *         calls=8, bytes=1GiB  of proto/use.def: what it may hold at once
 *
 * The first line that fits counts. What has a space stands in quotes with its kind: "CN=Jane Doe". '#' begins a comment.
 * Thread: any. Owner: the caller. */
#ifndef CURED_SERVER_SOCKET_PRINCIPALS_H
#define CURED_SERVER_SOCKET_PRINCIPALS_H

#include "server/admit/principal.h"

/* Fills principals, which have no lines. INVALID_ARGUMENT names the option, the file, the line and what is wrong. A file that others
 * may write is refused. */
cr_status cr_principals_read(const char *path, cr_principals *principals, cr_error *error);

#endif
