/* principal: the table. Thread: see principal.h. Owner: see principal.h. */
#include "server/admit/principal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/admit/peer.h"

const cr_principal cr_principal_plain = {.by = CR_KNOWN_address,
                                         .line = UINT32_MAX,
                                         .may = CR_MAY_PLAIN,
                                         .most = {
#define CR_USE(name) UINT64_MAX,
#include "proto/use.def"
#undef CR_USE
                                         }};

const char *const cr_known_words[CR_KNOWNS] = {
#define CR_KNOWN(name, words) [CR_KNOWN_##name] = words,
#include "server/admit/known.def"
#undef CR_KNOWN
};

const char *const cr_use_names[CR_USES] = {
#define CR_USE(name) #name,
#include "proto/use.def"
#undef CR_USE
};

void cr_principals_init(cr_principals *p) {
    *p = (cr_principals){.given = false};
    cr_list_init(&p->all);
}

static cr_principal *line_at(cr_list *node) { return cr_container(node, cr_principal, link); }

static bool is_gone(const cr_principal *p) { return p->line == UINT32_MAX; }

void cr_principals_free(cr_principals *p) {
    for (cr_list *node; (node = cr_list_pop(&p->all));) {
        cr_principal *line = line_at(node);
        if (!is_gone(line)) cr_table_remove(&p->by_name, &line->node);
        free(line);
    }
    cr_table_free(&p->by_name);
    *p = (cr_principals){.given = false};
    cr_list_init(&p->all);
}

const cr_principal *cr_principals_find(const cr_principals *p, const char *name) {
    const cr_node *node = cr_table_find(&p->by_name, cr_peer_principal(name));
    const cr_principal *line = node ? cr_container(node, const cr_principal, node) : NULL;
    return line && strcmp(line->name, name) == 0 ? line : NULL;
}

const cr_principal *cr_principals_first(const cr_principals *p, const cr_principal *best, cr_known_by by,
                                        const char *name) {
    char whole[CR_NAME_MAX_BYTES + 1];
    if (!p->of[by] || (size_t)snprintf(whole, sizeof whole, "%s%s", cr_known_words[by], name) >= sizeof whole)
        return best;
    const cr_principal *line = cr_principals_find(p, whole);
    return line && line->line < best->line ? line : best;
}

cr_principal *cr_principals_add(cr_principals *p, cr_known_by by, const char *name) {
    const uint64_t key = cr_peer_principal(name);
    cr_principal *line = cr_table_find(&p->by_name, key) ? NULL : malloc(sizeof *line);
    if (!line) return NULL;
    *line = cr_principal_plain;
    line->node.key = key;
    line->by = by;
    line->line = 0;
    snprintf(line->name, sizeof line->name, "%s", name);
    if (!cr_table_add(&p->by_name, &line->node)) {
        free(line);
        return NULL;
    }
    cr_list_append(&p->all, &line->link);
    p->of[by] = true;
    return line;
}

/* ---- a reload ---- */

static void copy_rights(cr_principal *to, const cr_principal *from) {
    to->may = from->may;
    to->until_s = from->until_s;
    memcpy(to->most, from->most, sizeof to->most);
}

/* What fresh says under the name of line, which takes its place there. */
static void take_over(cr_principals *fresh, cr_principal *line, cr_principal *said) {
    if (memcmp(line->salt, said->salt, CR_SALT_BYTES) != 0 || memcmp(line->hash, said->hash, CR_HASH_BYTES) != 0)
        line->issue++;
    memcpy(line->salt, said->salt, CR_SALT_BYTES);
    memcpy(line->hash, said->hash, CR_HASH_BYTES);
    copy_rights(line, said);
    line->line = said->line;
    cr_table_remove(&fresh->by_name, &said->node);
    cr_list_remove(&said->link);
    free(said);
    const bool added = cr_table_add(&fresh->by_name, &line->node); /* in the place of said: it takes no memory */
    assert(added);
    (void)added;
}

/* Those of its kind go by the line for all of them. */
static void fall_back(const cr_principals *now, cr_principal *line) {
    const cr_known_by all = line->by == CR_KNOWN_group                                    ? CR_KNOWN_user
                            : line->by >= CR_KNOWN_CN && line->by <= CR_KNOWN_certificate ? CR_KNOWN_certificate
                                                                                          : line->by;
    const cr_principal *said = cr_principals_first(now, &cr_principal_plain, all, "*");
    copy_rights(line, said);
    if (line->by == CR_KNOWN_token) line->may = CR_MAY_nothing;
}

void cr_principals_renew(cr_principals *known, cr_principals *fresh, bool (*in_use)(void *argument, uint64_t key),
                         void *argument) {
    cr_list before;
    cr_list_init(&before);
    cr_list_move(&before, &known->all);
    for (cr_list *node = before.next, *next; node != &before; node = next) {
        next = node->next;
        cr_principal *line = line_at(node);
        cr_node *said = cr_table_find(&fresh->by_name, line->node.key);
        if (!is_gone(line)) cr_table_remove(&known->by_name, &line->node);
        if (!is_gone(line) && !said) line->issue++;
        line->line = UINT32_MAX;
        if (!said) continue;
        take_over(fresh, line, cr_container(said, cr_principal, node));
        cr_list_remove(&line->link);
        cr_list_append(&fresh->all, &line->link);
    }
    cr_table_free(&known->by_name);
    *known = *fresh;
    cr_list_init(&known->all);
    cr_list_move(&known->all, &fresh->all);
    cr_principals_init(fresh);
    for (cr_list *node; (node = cr_list_pop(&before));) { /* those that are gone */
        cr_principal *line = line_at(node);
        fall_back(known, line);
        if (line->by <= CR_KNOWN_URI && !in_use(argument, line->node.key))
            free(line);
        else
            cr_list_append(&known->all, &line->link);
    }
}
