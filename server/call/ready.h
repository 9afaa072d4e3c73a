/* ready: whether the daemon can take calls now, and if not, why: one rule for the operators' /healthz/ready and gRPC's
 * health.
 *
 * Thread: the loop's. */
#ifndef CURED_SERVER_CALL_READY_H
#define CURED_SERVER_CALL_READY_H

#include "server/call/calls.h"

/* NULL: it can. Else one word (warming, draining, gpu_lost, full), and a sentence for people in *why. */
const char *cr_calls_unready(const cr_calls *calls, cr_error *why);

#endif
