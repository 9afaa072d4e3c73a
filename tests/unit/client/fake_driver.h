/* fake_driver: the kinds of memory of the stand-in driver, and what it counts. Thread, owner: the test. */
#ifndef CURED_TESTS_CLIENT_FAKE_DRIVER_H
#define CURED_TESTS_CLIENT_FAKE_DRIVER_H

/* Bits 36 and up of an address. */
enum {
    FAKE_IPC = 1,
    FAKE_POOL,
    FAKE_PRIVATE_POOL,
    FAKE_MEMORY,
    FAKE_PRIVATE_MEMORY,
    FAKE_MANAGED,
    FAKE_HOST,
    FAKE_TWO, /* two allocations side by side, each half */
};

#endif
