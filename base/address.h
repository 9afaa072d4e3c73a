/* address: the text form of a listening address, "unix:PATH" or "tcp:HOST:PORT" (IPv6 as "tcp:[HOST]:PORT").
 *
 * Thread: any; nothing here holds state or does I/O (names are not resolved). Owner: the caller owns every struct. */
#ifndef CURED_BASE_ADDRESS_H
#define CURED_BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

enum {
    CR_ADDRESS_PATH = 108, /* sizeof sun_path, its NUL included */
    CR_ADDRESS_HOST = 254,
};

typedef enum cr_address_kind { CR_ADDRESS_UNIX, CR_ADDRESS_TCP } cr_address_kind;

typedef struct cr_address {
    cr_address_kind kind;
    char path[CR_ADDRESS_PATH]; /* CR_ADDRESS_UNIX: absolute or relative */
    char host[CR_ADDRESS_HOST]; /* CR_ADDRESS_TCP: a name or a number, without brackets */
    uint16_t port;              /* 0: any free one */
} cr_address;

/* INVALID_ARGUMENT says what is wrong with the form. */
cr_status cr_address_parse(const char *text, cr_address *address, cr_error *error);
/* True for Unix sockets, 127.0.0.0/8, ::1 and the name localhost; a name that would have to be looked up is not. */
bool cr_address_is_local(const cr_address *address);

#endif
