/* rooms: what the drivers of the daemon's doors share. Thread: the driver's. Owner: the process. */
#ifndef CURED_TESTS_FUZZ_ROOMS_H
#define CURED_TESTS_FUZZ_ROOMS_H

#include "tests/unit/server/loopback.h"

/* Aborts, which the fuzzer reports, unless good. */
void need(bool good);
/* setup() of loopback.h, with little memory for answers. Calls that have the options read again wait. */
void start_rooms(void);
/* What main tells the calls that wait for the options: the first, that they cannot be read; the others, that none changed. */
void tell_reloads(void);

#endif
