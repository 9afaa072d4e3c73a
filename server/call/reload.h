/* reload: a call that has the daemon read its options again, and waits until that is done. main does it (server/reload.h).
 *
 * Thread: the loop's. Owner: the front owns what waits, and may give it up by taking it off its list. */
#ifndef CURED_SERVER_CALL_RELOAD_H
#define CURED_SERVER_CALL_RELOAD_H

#include "base/config.h"
#include "base/list.h"

typedef struct cr_reload_wait {
    cr_list link;
    /* Once, off the list. why: everything stays as it was; NULL: the options are taken over. Lent. */
    void (*told)(struct cr_reload_wait *wait, const cr_error *why, const cr_reloaded *what);
} cr_reload_wait;

#endif
