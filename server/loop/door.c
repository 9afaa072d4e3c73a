/* door: what all doors do with a connection that is over. Thread: the loop's. Owner: the door. */
#include "server/loop/door.h"

void cr_arrived_leave(cr_calls *calls, cr_peer *peer, bool refused) {
    if (refused)
        cr_admit_refused_over(&calls->admission);
    else
        cr_admit_connection_over(&calls->admission, peer);
    cr_admit_leave(&calls->admission, peer);
}
