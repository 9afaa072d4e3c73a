/* patience: of the calls that wait for their clients' bytes, which bring least.
 *
 * Time goes by in windows of stall_timeout_ms. A call stands in the list of what it has brought in the last window and in this one,
 * by powers of two. At the end of a window those that have not moved in it are silent; so each step is O(1).
 *
 * Thread: the loop's. Owner: the calls of a loop; waits lie in their calls. */
#ifndef CURED_SERVER_CALL_PATIENCE_H
#define CURED_SERVER_CALL_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

enum {
    CR_PATIENCE_STEPS = 17, /* lists of less than 1, 2, 4, ... 65,536 bytes; one more has the others */
    CR_PATIENCE_LOOK = 16,  /* calls looked at in one list: the first may be new, or of no use */
};

typedef struct cr_patience {
    cr_list silent;
    cr_list brought[2][CR_PATIENCE_STEPS + 1]; /* by parity of the window in which they last brought something */
    uint32_t window;
} cr_patience;

typedef struct cr_wait {
    cr_list link;
    uint64_t total;
    uint64_t bytes, before; /* in the window in which it last brought some, and in the one before */
    uint32_t window, since; /* that window, and its first */
} cr_wait;

void cr_patience_init(cr_patience *patience);
/* The call waits for bytes from now on, until cr_patience_end. */
static inline void cr_patience_begin(cr_patience *patience, cr_wait *wait) {
    *wait = (cr_wait){.window = patience->window, .since = patience->window};
    cr_list_append(&patience->brought[patience->window % 2][0], &wait->link);
}
static inline void cr_patience_end(cr_wait *wait) { cr_list_remove(&wait->link); }
void cr_patience_brought(cr_patience *patience, cr_wait *wait, uint64_t bytes);
/* A window is over. */
void cr_patience_turn(cr_patience *patience);
/* Whether the end of what waits would be of use. */
typedef bool (*cr_patience_ask)(const void *argument, const cr_wait *wait);
/* One that has waited for a whole window at least, and brought less than 64 KiB in it; of those that ask takes one that brought
 * least. NULL: none. Only a few of each list are looked at. They go to its end, so that who asks again sees others. */
cr_wait *cr_patience_least(cr_patience *patience, cr_patience_ask ask, const void *argument);

#endif
