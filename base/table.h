/* table: an intrusive hash table of 64-bit keys, which clients may choose (hash.h). Nodes lie in what they stand for.
 *
 * Thread: as its owner's. Owner: whoever embeds the nodes; a table frees its buckets only. */
#ifndef CURED_BASE_TABLE_H
#define CURED_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cr_node {
    struct cr_node *next;
    uint64_t key;
} cr_node;

/* Zero-initialise. */
typedef struct cr_table {
    cr_node **buckets;
    size_t count, room; /* nodes; buckets: 0, or 2^bits */
    unsigned bits;
    uint64_t factor; /* of hash.h, drawn with the first buckets */
} cr_table;

/* NULL: there is none of that key. */
cr_node *cr_table_find(const cr_table *table, uint64_t key);
/* node->key is set, and not in the table. False: there is no memory. */
bool cr_table_add(cr_table *table, cr_node *node);
/* node is in the table. */
void cr_table_remove(cr_table *table, cr_node *node);
/* All nodes have been removed. */
void cr_table_free(cr_table *table);

#endif
