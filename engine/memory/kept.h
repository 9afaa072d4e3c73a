/* kept: a region that a client registered: opened once, read by many jobs, closed when nobody uses it any more.
 *
 *   cr_kept_open ──► opened on a files thread ──► tell OPENED (error says whether it worked)
 *                                                  … jobs use it …
 *   the last cr_kept_release ──► closed on a files thread ──► tell CLOSED
 *
 * A region of host memory is mapped as a whole, read-only, where its file is local and has no holes: memory that is read
 * often is mapped once. Where a hole may be, jobs pread, for touching a hole through a map allocates memory.
 *
 * A fault in the mapping (the file was cut, its storage failed) leaves zeros there that a later job would take for the
 * file's, so the region is lost with the first: every job that read it since, and every later one, ends DATA_LOSS.
 *
 * Thread: cr_kept_open and the first use on the loop; use and release anywhere, they never block. Owner: the entry of
 * native/regions.c that embeds it, which frees it after CLOSED. */
#ifndef CURED_ENGINE_MEMORY_KEPT_H
#define CURED_ENGINE_MEMORY_KEPT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "engine/memory/device.h"
#include "engine/memory/files.h"
#include "engine/memory/region.h"

/* Pinned at a time: a files thread is not kept from others for long. A GPU's copy may not go from one such piece of the map
 * into the next. */
enum { CR_KEPT_PIN_BYTES = 256 * 1024 * 1024 };

typedef enum cr_kept_news { CR_KEPT_OPENED, CR_KEPT_CLOSED } cr_kept_news;

typedef enum cr_kept_kind { CR_KEPT_FILE, CR_KEPT_NAME, CR_KEPT_DEVICE } cr_kept_kind;

typedef struct cr_kept_source {
    cr_kept_kind kind;
    int descriptor;                       /* FILE, and DEVICE where one came: taken over in every case; otherwise -1 */
    char name[CR_SHM_NAME_MAX_BYTES + 1]; /* NAME: "/…" */
    uid_t peer;                           /* NAME: whose memory it must be */
    cr_device_memory memory;              /* DEVICE */
    bool writable;                        /* answers may be written there */
} cr_kept_source;

typedef struct cr_kept {
    /* Once open, and until closed: */
    cr_region region; /* size; way MAP: map holds all of it */
    cr_window map;
    bool on_device;
    cr_device_region device;
    cr_error error;          /* why it could not be opened */
    _Atomic bool lost;       /* set by the guard at the first fault */
    _Atomic uint64_t pinned; /* bytes from the start of the map */

    cr_kept_source source;
    cr_files *files;
    const cr_device_hook *hook;
    /* Called on a files thread; must only post. After CLOSED the memory is the owner's alone. */
    void (*publish)(struct cr_kept *kept, cr_kept_news news);
    cr_file_task task;
    _Atomic uint32_t uses; /* the owner, the opening, and every job */
} cr_kept;

/* Begins to open. files, hook (NULL: no GPU), source and tell are set, everything else is zero. The caller has the first use. */
void cr_kept_open(cr_kept *kept);
void cr_kept_use(cr_kept *kept);
void cr_kept_release(cr_kept *kept);

/* Where a writable region of host memory lies, for whoever has checked that it has some bytes. */
static inline uint8_t *cr_kept_memory(const cr_kept *kept) { return (uint8_t *)kept->map.base; }
/* Whether the bytes of a writable region before end can be written now: it has not been cut, and has no holes, because filling them
 * would take memory that counts as this process's. It asks Linux once, about memory of the host. On any thread. */
cr_status cr_kept_can_write(const cr_kept *kept, uint64_t end, cr_error *error);
/* For a job, on a files thread: whether [offset, offset + bytes) can be read now, and by which way. */
cr_status cr_kept_check(cr_kept *kept, uint64_t offset, uint64_t bytes, cr_region_way *way, cr_error *error);
/* True where it can be read by its mapping for as long as a job lasts: sealed against being cut, so it is memory, of which this asks
 * Linux alone; and without holes, which its owner may have punched since: reading them by the map would allocate them anew, at this
 * process's cost. On any thread. */
bool cr_kept_is_steady(const cr_kept *kept);
/* After a claim of the mapping was read: CR_OK while the bytes before end were really the file's. On a lane's thread. */
cr_status cr_kept_still(cr_kept *kept, uint64_t end, cr_error *error);

#endif
