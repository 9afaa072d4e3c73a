/* table: chains of nodes by a hash. Thread: as its owner's. Owner: see table.h. */
#include "base/table.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"

enum { FIRST_BITS = 4 };

static cr_node **chain(const cr_table *table, uint64_t key) {
    return &table->buckets[cr_hash(table->factor, key, table->bits)];
}

cr_node *cr_table_find(const cr_table *table, uint64_t key) {
    if (!table->room) return NULL;
    cr_node *node = *chain(table, key);
    while (node && node->key != key) node = node->next;
    return node;
}

static void put(cr_table *table, cr_node *node) {
    cr_node **first = chain(table, node->key);
    node->next = *first;
    *first = node;
}

/* Without memory for more buckets the chains become longer. */
static bool grow(cr_table *table) {
    cr_table old = *table;
    const unsigned bits = old.room ? old.bits + 1 : FIRST_BITS;
    cr_node **buckets = calloc((size_t)1 << bits, sizeof *buckets);
    if (!buckets) return old.room > 0;
    table->buckets = buckets;
    table->bits = bits;
    table->room = (size_t)1 << bits;
    if (!old.room) table->factor = cr_hash_factor();
    for (size_t i = 0; i < old.room; i++) {
        for (cr_node *node = old.buckets[i], *next; node; node = next) {
            next = node->next;
            put(table, node);
        }
    }
    free(old.buckets);
    return true;
}

bool cr_table_add(cr_table *table, cr_node *node) {
    if (table->count >= table->room && !grow(table)) return false;
    put(table, node);
    table->count++;
    return true;
}

void cr_table_remove(cr_table *table, cr_node *node) {
    cr_node **at = chain(table, node->key);
    while (*at != node) at = &(*at)->next;
    *at = node->next;
    table->count--;
}

void cr_table_free(cr_table *table) {
    assert(!table->count);
    free(table->buckets);
    *table = (cr_table){0};
}
