/* patience: see patience.h. Thread: the loop's. Owner: the calls. */
#include "server/call/patience.h"

#include <stddef.h>

void cr_patience_init(cr_patience *p) {
    cr_list_init(&p->silent);
    for (int i = 0; i <= CR_PATIENCE_STEPS; i++) {
        cr_list_init(&p->brought[0][i]);
        cr_list_init(&p->brought[1][i]);
    }
    p->window = 0;
}

/* Stands where its bytes say. */
static void place(cr_patience *p, cr_wait *w) {
    uint64_t bytes = w->bytes + w->before;
    int step = 0;
    while (step < CR_PATIENCE_STEPS && bytes >> step) step++;
    cr_list_remove(&w->link);
    cr_list_append(&p->brought[w->window % 2][step], &w->link);
}

void cr_patience_brought(cr_patience *p, cr_wait *w, uint64_t bytes) {
    if (w->window != p->window) {
        w->before = p->window - w->window == 1 ? w->bytes : 0;
        w->bytes = 0;
        w->window = p->window;
    }
    w->total += bytes;
    w->bytes = bytes > UINT64_MAX / 2 - w->bytes ? UINT64_MAX / 2 : w->bytes + bytes;
    place(p, w);
}

static void append_all(cr_list *to, cr_list *from) {
    if (cr_list_empty(from)) return;
    cr_list *first = from->next, *last = from->prev;
    cr_list_init(from);
    first->prev = to->prev;
    last->next = to;
    to->prev->next = first;
    to->prev = last;
}

void cr_patience_turn(cr_patience *p) {
    cr_list *last = p->brought[(p->window + 1) % 2];
    for (int i = 0; i <= CR_PATIENCE_STEPS; i++) append_all(&p->silent, &last[i]);
    p->window++;
}

/* A call that has waited for a whole window, and that ask takes, among the first of the list. */
static cr_wait *old_one(const cr_patience *p, cr_list *list, cr_patience_ask ask, const void *argument) {
    const cr_list *first = NULL;
    for (int i = 0; i < CR_PATIENCE_LOOK; i++) {
        cr_list *node = list->next;
        if (node == list || node == first) return NULL;
        cr_wait *w = cr_container(node, cr_wait, link);
        if (p->window - w->since >= 2 && ask(argument, w)) return w;
        if (!first) first = node;
        cr_list_remove(node);
        cr_list_append(list, node);
    }
    return NULL;
}

cr_wait *cr_patience_least(cr_patience *p, cr_patience_ask ask, const void *argument) {
    cr_wait *found = old_one(p, &p->silent, ask, argument);
    for (int i = 0; i < 2 * CR_PATIENCE_STEPS && !found; i++)
        found = old_one(p, &p->brought[(p->window + 1 + (uint32_t)i) % 2][i / 2], ask, argument);
    return found;
}
