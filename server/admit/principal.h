/* principal: whom the daemon knows, what each may do, and how much each may hold: the lines of the option principals
 * (server/socket/principals.h reads them).
 *
 * A line stays where it is as long as somebody may go by it, so connections and users point to it, and a reload changes what it says
 * under them. What belongs to a credential that was taken back or made anew has another issue.
 * Thread: the loop's; any for those that nobody else knows yet. Owner: the admission. */
#ifndef CURED_SERVER_ADMIT_PRINCIPAL_H
#define CURED_SERVER_ADMIT_PRINCIPAL_H

#include "base/list.h"
#include "base/may.h"
#include "base/table.h"
#include "proto/limits.h"
#include "proto/status.h"

/* What is limited. */
typedef enum cr_use {
#define CR_USE(name) CR_USE_##name,
#include "proto/use.def"
#undef CR_USE
    CR_USES,
} cr_use;

/* What tells a principal from others. */
typedef enum cr_known_by {
#define CR_KNOWN(name, words) CR_KNOWN_##name,
#include "server/admit/known.def"
#undef CR_KNOWN
    CR_KNOWNS,
} cr_known_by;

enum { CR_SALT_BYTES = 16, CR_HASH_BYTES = 32 };

typedef struct cr_principal {
    cr_node node; /* its key: cr_peer_principal of the name */
    cr_list link;
    char name[CR_NAME_MAX_BYTES + 1]; /* "laptop", "CN=web", "user=1000", "user=*" */
    cr_known_by by;
    uint32_t line;          /* of the file: the first that fits a client counts. UINT32_MAX: there is none */
    uint32_t issue;         /* of its token */
    uint8_t may;            /* cr_may bits */
    int64_t until_s;        /* it is good so long, of the Unix clock; 0: for ever */
    uint64_t most[CR_USES]; /* that it may hold; UINT64_MAX: as the options say */
    uint8_t salt[CR_SALT_BYTES], hash[CR_HASH_BYTES]; /* of a token's secret */
} cr_principal;

/* Init it with cr_principals_init. */
typedef struct cr_principals {
    cr_table by_name;
    cr_list all;        /* those too that are gone, and that somebody may go by */
    bool given;         /* there is a file: tokens are looked at */
    bool of[CR_KNOWNS]; /* it has lines of that kind */
} cr_principals;

/* Whoever has no line. */
extern const cr_principal cr_principal_plain;
/* "CN=", "user=" and so on; of a token "". */
extern const char *const cr_known_words[CR_KNOWNS];

/* "calls" and so on: the words of a line that limit. */
extern const char *const cr_use_names[CR_USES];

void cr_principals_init(cr_principals *principals);
void cr_principals_free(cr_principals *principals);
/* The line of that name. NULL: there is none. */
const cr_principal *cr_principals_find(const cr_principals *principals, const char *name);
/* The earlier of the two lines that fit: best, and that of the client whose name of that kind is so. */
const cr_principal *cr_principals_first(const cr_principals *principals, const cr_principal *best, cr_known_by by,
                                        const char *name);
/* A line more, as cr_principal_plain. NULL: the name is there already, or there is no memory. */
cr_principal *cr_principals_add(cr_principals *principals, cr_known_by by, const char *name);
/* fresh takes the place of what known said, at once for everybody who goes by a line of it, and is empty afterwards. Whose line is no
 * longer there goes by the one for all of that kind, and whose token is no longer there by none: it has another issue. Lines that are
 * gone are freed where the function says that nobody goes by them. */
void cr_principals_renew(cr_principals *known, cr_principals *fresh, bool (*in_use)(void *argument, uint64_t key),
                         void *argument);

#endif
