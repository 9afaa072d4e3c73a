/* list: an intrusive doubly linked list; a node that is in no list points at itself.
 *
 * Thread: as its owner's. Owner: whoever embeds the node; a list never frees. */
#ifndef CURED_BASE_LIST_H
#define CURED_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cr_list {
    struct cr_list *next, *prev;
} cr_list;

#define cr_container(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void cr_list_init(cr_list *l) { l->next = l->prev = l; }
static inline bool cr_list_empty(const cr_list *l) { return l->next == l; }
static inline void cr_list_append(cr_list *l, cr_list *node) {
    node->prev = l->prev;
    node->next = l;
    l->prev->next = node;
    l->prev = node;
}
/* Takes node out of the list it is in, if any; it may be called twice. */
static inline void cr_list_remove(cr_list *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    cr_list_init(node);
}
/* Moves all nodes of from to the empty list to. */
static inline void cr_list_move(cr_list *to, cr_list *from) {
    cr_list_append(from, to); /* stands where from's head does in the ring */
    cr_list_remove(from);
}
/* The first node, taken out; NULL when the list is empty. */
static inline cr_list *cr_list_pop(cr_list *l) {
    cr_list *node = l->next;
    if (node == l) return NULL;
    cr_list_remove(node);
    return node;
}

#endif
