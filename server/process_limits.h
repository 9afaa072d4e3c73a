/* process_limits: what the kernel lets this process have, and what the daemon makes of it.
 *
 * Thread: main's, before the loop and in it. Owner: nobody; nothing is kept. */
#ifndef CURED_SERVER_PROCESS_LIMITS_H
#define CURED_SERVER_PROCESS_LIMITS_H

#include "base/config.h"

/* Signals that would end the daemon where a call that fails is enough: a log that nobody reads, or that may grow no longer. */
void cr_process_ignore(void);
/* Raises the soft limit on open files, and fits max_regions into it. */
void cr_process_raise_files(cr_config *config);
/* Whether there are descriptors enough to start with: libuv aborts where it lacks one. RESOURCE_EXHAUSTED. */
cr_status cr_process_check_files(cr_error *error);

#endif
