/* pages: what operators can ask for, by path, and how it is made.
 *
 * What costs time to make is kept: it is made again once ten times as long has passed as making it took, so that no flood of requests
 * takes more than a tenth of the loop's time.
 * Thread: the loop's. Owner: the door. */
#ifndef CURED_SERVER_ADMIN_PAGES_H
#define CURED_SERVER_ADMIN_PAGES_H

#include "base/bytes.h"
#include "server/call/calls.h"

enum { CR_PAGES_KEPT = 3, CR_PAGES_OFTEN = 10 };

typedef struct cr_page_kept {
    cr_bytes body;
    uint64_t made_ns, cost_ns;
} cr_page_kept;

/* Zero-initialise. */
typedef struct cr_pages {
    cr_page_kept kept[CR_PAGES_KEPT];
    cr_bytes passing; /* the last page that is not kept */
    char policy[320]; /* of the last page for people */
} cr_pages;

typedef struct cr_page {
    uint16_t status;     /* of HTTP */
    const char *type;    /* of its content */
    const char *policy;  /* Content-Security-Policy */
    const uint8_t *body; /* until the next page is asked for */
    size_t bytes;
} cr_page;

/* The page at path. trusted: the client may see names of clients and recent calls. Status 500 when there is no memory. */
cr_page cr_pages_get(cr_pages *pages, cr_calls *calls, const char *path, bool trusted);
/* A page that is a sentence. */
cr_page cr_pages_say(uint16_t status, const char *text, char *room, size_t room_bytes);
void cr_pages_free(cr_pages *pages);

#endif
