/* lookout: how long a thread that has nothing to do looks for work before it sleeps. Waking a thread that sleeps costs more than
 * a small reduction, but a thread that looks keeps a core from others.
 *
 * A lookout learns from the waits before: its window is 0 at first. A wait that was longer than the window, but no longer than
 * most_ns, doubles the window. A wait beyond most_ns makes it 0, so a long wait costs one window, and only after several short
 * ones. A thread that looks yields its core between two looks. Where the next look comes late somebody else wanted the core. Then
 * the window is 0, and stays so for a tenth of a second: twice as long each time, up to a second, and half as long after each
 * look that nobody disturbed. No more threads look than there are seats, which leaves one core to others.
 *
 *   window 0 ──short wait──► 10 µs ──short wait longer than that──► 20 ──► 40 ──► most_ns
 *      ▲                       └───────────────── long wait, or the core was lost ──┘│
 *      └─────────────────────────────────────────────────────────────────────────────┘
 *
 * Thread: any; the lock, or the one thread, of its owner guards a lookout. A cr_look is its thread's, seats are atomic. */
#ifndef CURED_BASE_LOOKOUT_H
#define CURED_BASE_LOOKOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CR_LOOKOUT_FIRST_NS = 10 * 1000, /* the first window */
    CR_LOOKOUT_GAP_NS = 60 * 1000,   /* a look that comes so long after the look before it found the core taken */
    CR_LOOKOUT_CALM_NS = 100 * 1000 * 1000, /* the window then stays 0 for so long, at least */
    CR_LOOKOUT_CALM_MOST_NS = 1000 * 1000 * 1000,
};

/* How many more threads may look for work at once. Zero-initialised: no thread may. */
typedef struct cr_seats {
    _Atomic int32_t free;
} cr_seats;
/* All cores but one; below four cores a single seat, and on one core none. */
void cr_seats_init(cr_seats *seats, uint32_t cores);

/* Zero-initialised: never looks. */
typedef struct cr_lookout {
    cr_seats *seats;
    uint64_t most_ns;
    uint64_t window_ns;
    uint64_t calm_ns, calm_until_ns; /* how long it was calm the last time, and until when */
} cr_lookout;

/* One wait, while its thread looks. */
typedef struct cr_look {
    uint64_t until_ns, last_ns;
    bool disturbed; /* somebody else had the core */
} cr_look;

/* A wait begins at now_ns. False: sleep. True: look while cr_look_on says so, and then call cr_lookout_end. */
bool cr_lookout_begin(cr_lookout *lookout, cr_look *look, uint64_t now_ns);
/* At each look that found nothing; the thread then yields its core. False: sleep. */
bool cr_look_on(cr_look *look, uint64_t now_ns);
/* Gives the seat back. */
void cr_lookout_end(cr_lookout *lookout, const cr_look *look);
/* Whether cr_lookout_expect would make the next wait one that is looked through. */
bool cr_lookout_may(const cr_lookout *lookout, uint64_t now_ns);
/* Something is known to come soon: the next wait may be looked through, whatever the waits before were. */
void cr_lookout_expect(cr_lookout *lookout, uint64_t now_ns);
/* Something came, after waited_ns: a wait that was looked or slept through. */
void cr_lookout_waited(cr_lookout *lookout, uint64_t waited_ns, uint64_t now_ns);

/* Waits of the same kind may be known to take the same time, and longer than a thread may look. Then it sleeps for most of it, and
 * looks shortly before its end. Zero-initialised: nothing is known. */
enum { CR_FORESIGHT_KINDS = 8, CR_FORESIGHT_SPREAD_NS = 100 * 1000 };
typedef struct cr_foresight {
    struct {
        uint64_t kind, last_ns, before_ns;
    } waits[CR_FORESIGHT_KINDS];
} cr_foresight;
/* How long a wait of the kind takes. 0: nobody knows, because the last two were not of about the same length. */
uint64_t cr_foresight_of(const cr_foresight *foresight, uint64_t kind);
void cr_foresight_took(cr_foresight *foresight, uint64_t kind, uint64_t took_ns);
/* A wait was foreseen as too long: its thread slept through its end, and woke after it, by an unknown time. It took most_ns at most, and
 * the next is taken to take as long. */
void cr_foresight_overslept(cr_foresight *foresight, uint64_t kind, uint64_t most_ns);

#endif
