/* health: whether the daemon can take calls now, and if not, why.
 *
 * Thread: the loop's. */
#ifndef CURED_SERVER_ADMIN_HEALTH_H
#define CURED_SERVER_ADMIN_HEALTH_H

#include "server/call/calls.h"

/* NULL: it can. Else one word (warming, draining, gpu_lost, full), and a sentence for people in *why. */
const char *cr_health_unready(const cr_calls *calls, cr_error *why);

#endif
