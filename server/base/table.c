/* table: chains of nodes by the upper bits of a product. Thread: as its owner's. Owner: see table.h. */
#include "server/base/table.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_ROOM = 16 };

/* Multiplying by an odd number spreads keys that differ in a few bits only; the upper bits depend on all of them. */
static cr_node **chain(cr_node **buckets, size_t room, uint64_t key) {
    return &buckets[(size_t)((key ^ key >> 32) * 0x9e3779b97f4a7c15u >> 32) & (room - 1)];
}

cr_node *cr_table_find(const cr_table *table, uint64_t key) {
    if (!table->room) return NULL;
    cr_node *node = *chain(table->buckets, table->room, key);
    while (node && node->key != key) node = node->next;
    return node;
}

static void put(cr_node **buckets, size_t room, cr_node *node) {
    cr_node **first = chain(buckets, room, node->key);
    node->next = *first;
    *first = node;
}

/* Without memory for more buckets the chains become longer. */
static bool grow(cr_table *table) {
    size_t room = table->room ? 2 * table->room : FIRST_ROOM;
    cr_node **buckets = calloc(room, sizeof *buckets);
    if (!buckets) return table->room > 0;
    for (size_t i = 0; i < table->room; i++) {
        for (cr_node *node = table->buckets[i], *next; node; node = next) {
            next = node->next;
            put(buckets, room, node);
        }
    }
    free(table->buckets);
    table->buckets = buckets;
    table->room = room;
    return true;
}

bool cr_table_add(cr_table *table, cr_node *node) {
    if (table->count >= table->room && !grow(table)) return false;
    put(table->buckets, table->room, node);
    table->count++;
    return true;
}

void cr_table_remove(cr_table *table, cr_node *node) {
    cr_node **at = chain(table->buckets, table->room, node->key);
    while (*at != node) at = &(*at)->next;
    *at = node->next;
    table->count--;
}

void cr_table_free(cr_table *table) {
    assert(!table->count);
    free(table->buckets);
    *table = (cr_table){0};
}
