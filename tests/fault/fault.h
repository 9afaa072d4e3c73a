/* fault: stands before the C library in a program under test, and makes its calls fail as a test orders.
 *
 * The orders lie in a page that the program shares with its test: the file that CURED_TEST_FAULTS names, or memory of the
 * program itself (fault_orders). A site is one call of a kind. The test arms a kind with n, and the n-th call from then on
 * fails, once, or all from then on fail when `lasting` is set. `seen` counts calls, `fired` those that failed.
 *
 * tests/fault/orders.py writes the same page: its layout must agree.
 * Thread: any. Owner: the page lives as long as the program. */
#ifndef CURED_TESTS_FAULT_FAULT_H
#define CURED_TESTS_FAULT_FAULT_H

#include <stdint.h>

/* malloc and its kin; mmap; what makes a descriptor; what takes room of a file system. */
typedef enum fault_kind { FAULT_ALLOCATION, FAULT_MAPPING, FAULT_DESCRIPTOR, FAULT_SPACE, FAULT_KINDS } fault_kind;

typedef struct fault_page {
    uint64_t armed[FAULT_KINDS], seen[FAULT_KINDS], fired[FAULT_KINDS];
    uint64_t lasting;
    /* Of calls on sockets and files. 0: none. Every so many calls end with EINTR; those on sockets with EAGAIN; none moves more
     * bytes. */
    uint64_t eintr_every, eagain_every, most_bytes;
    uint64_t calls, eintrs, eagains, shorts;
    int64_t realtime_ns, monotonic_ns; /* added to the clocks */
} fault_page;

fault_page *fault_orders(void);
/* The n-th call of the kind from now on fails; 0: none. */
void fault_arm(fault_kind kind, uint64_t n);
/* How many of the kind failed since it was armed. */
uint64_t fault_fired(fault_kind kind);

#endif
