/* may: what a client may do, as bits. Thread: any. Owner: nobody. */
#ifndef CURED_BASE_MAY_H
#define CURED_BASE_MAY_H

enum {
#define CR_MAY(name, what) CR_MAY_AT_##name,
#include "proto/may.def"
#undef CR_MAY
    CR_MAYS
};
typedef enum cr_may {
#define CR_MAY(name, what) CR_MAY_##name = 1 << CR_MAY_AT_##name,
#include "proto/may.def"
#undef CR_MAY
    CR_MAY_nothing = 0,
    CR_MAY_ALL = (1 << CR_MAYS) - 1,
    CR_MAY_PLAIN = CR_MAY_ALL & ~CR_MAY_admin, /* of whoever is let in, where nothing else is said */
} cr_may;

#endif
