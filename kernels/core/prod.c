/* prod: products that merge.
 *
 * Thread: any. Owner: the caller; nothing here allocates. */
#include "kernels/core/prod.h"

#include <string.h>

#include "kernels/core/float_state.h"

void cr_int_prod_init(cr_int_prod *p) {
    p->zeros = 0;
    p->wrap = 1;
    p->negative = p->over = false;
    p->words = 1;
    p->magnitude[0] = 1;
}

static void set_over(cr_int_prod *p) {
    p->over = true;
    p->words = 0;
}

void cr_int_prod_times(cr_int_prod *p, uint64_t factor) {
    uint64_t carry = 0;
    for (uint32_t i = 0; i < p->words; i++) {
        unsigned __int128 wide = (unsigned __int128)p->magnitude[i] * factor + carry;
        p->magnitude[i] = (uint64_t)wide;
        carry = (uint64_t)(wide >> 64);
    }
    if (carry == 0) return;
    if (p->words == CR_INT_PROD_WORDS) {
        set_over(p);
    } else {
        p->magnitude[p->words++] = carry;
    }
}

void cr_int_prod_merge(cr_int_prod *into, const cr_int_prod *from) {
    into->zeros += from->zeros;
    into->wrap *= from->wrap;
    into->negative ^= from->negative;
    if (into->over || from->over) {
        set_over(into);
        return;
    }
    /* Schoolbook (Knuth, TAOCP 2, 4.3.1). */
    uint64_t product[2 * CR_INT_PROD_WORDS] = {0};
    uint32_t words = into->words + from->words;
    for (uint32_t i = 0; i < into->words; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < from->words; j++) {
            unsigned __int128 wide =
                (unsigned __int128)into->magnitude[i] * from->magnitude[j] + product[i + j] + carry;
            product[i + j] = (uint64_t)wide;
            carry = (uint64_t)(wide >> 64);
        }
        product[i + from->words] = carry;
    }
    if (product[words - 1] == 0) words--;
    if (words > CR_INT_PROD_WORDS) {
        set_over(into);
        return;
    }
    into->words = words;
    memcpy(into->magnitude, product, words * sizeof product[0]);
}

void cr_float_prod_init(cr_float_prod *p) {
    p->nans = p->zeros = p->infs = 0;
    p->negative = p->lost = false;
    p->count = 0;
}

static unsigned level_of(uint64_t place) { return (unsigned)__builtin_ctzll(place); }
static uint64_t parent_of(uint64_t place) {
    uint64_t lowest = place & -place;
    return (place ^ lowest) | lowest << 1;
}
static bool are_siblings(uint64_t a, uint64_t b) { return a != b && parent_of(a) == parent_of(b); }

uint64_t cr_prod_place(uint64_t first, uint64_t count, uint64_t *blocks) {
    unsigned level = 63 - (unsigned)__builtin_clzll(count);
    if (first && (unsigned)__builtin_ctzll(first) < level) level = (unsigned)__builtin_ctzll(first);
    *blocks = (uint64_t)1 << level;
    return 2 * first + *blocks;
}

/* No array is long enough to reach the limits (2^52 elements and more): they only keep forged partials defined. */
static int64_t add_exponents(int64_t a, int64_t b) {
    const int64_t most = (int64_t)1 << 62;
    __int128 sum = (__int128)a + b;
    return sum > most ? most : sum < -most ? -most : (int64_t)sum;
}

/* The parent of two siblings (or of what has risen to them), in either order. */
static cr_prod_node join(const cr_prod_node *a, const cr_prod_node *b, uint64_t place) {
    cr_prod_node node = {.place = place, .h = a->h, .l = a->l};
    cr_prod_join(&node.h, &node.l, b->h, b->l);
    int64_t rise = cr_prod_normalise(&node.h, &node.l);
    node.exponent = add_exponents(add_exponents(a->exponent, b->exponent), rise);
    return node;
}

static void insert(cr_float_prod *p, cr_prod_node node) {
    uint32_t at = p->count;
    while (at && p->nodes[at - 1].place >= node.place) at--;
    if (at < p->count && p->nodes[at].place == node.place) p->lost = true;
    for (;;) {
        /* A sibling, when it is there, is next to it. */
        uint32_t with;
        if (at && are_siblings(p->nodes[at - 1].place, node.place)) {
            with = at - 1;
        } else if (at < p->count && are_siblings(p->nodes[at].place, node.place)) {
            with = at;
        } else {
            break;
        }
        node = join(&p->nodes[with], &node, parent_of(node.place));
        p->count--;
        memmove(&p->nodes[with], &p->nodes[with + 1], (p->count - with) * sizeof p->nodes[0]);
        at = with;
    }
    if (p->count == CR_PROD_NODES) {
        p->lost = true;
        return;
    }
    memmove(&p->nodes[at + 1], &p->nodes[at], (p->count - at) * sizeof p->nodes[0]);
    p->nodes[at] = node;
    p->count++;
}

void cr_float_prod_add(cr_float_prod *p, uint64_t index, double h, double l, int64_t exponent) {
    insert(p, (cr_prod_node){2 * index + 1, h, l, exponent});
}

/* All nodes of both by rising place, joined where siblings meet: at most twice what a partial holds. */
static uint32_t meet(cr_prod_node out[2 * CR_PROD_NODES], const cr_float_prod *a, const cr_float_prod *b) {
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->count || j < b->count) {
        bool from_a = j == b->count || (i < a->count && a->nodes[i].place < b->nodes[j].place);
        cr_prod_node node = from_a ? a->nodes[i++] : b->nodes[j++];
        while (n && are_siblings(out[n - 1].place, node.place)) {
            n--;
            node = join(&out[n], &node, parent_of(node.place));
        }
        out[n++] = node;
    }
    return n;
}

void cr_float_prod_merge(cr_float_prod *into, const cr_float_prod *from) {
    into->nans += from->nans;
    into->zeros += from->zeros;
    into->infs += from->infs;
    into->negative ^= from->negative;
    into->lost |= from->lost;
    if (from->count == 0) return;
    const uint64_t state = cr_float_enter();
    if (into->count + from->count <= CR_PROD_NODES) {
        for (uint32_t i = 0; i < from->count; i++) insert(into, from->nodes[i]);
        cr_float_leave(state);
        return;
    }
    cr_prod_node nodes[2 * CR_PROD_NODES];
    uint32_t count = meet(nodes, into, from);
    cr_float_leave(state);
    if (count > CR_PROD_NODES) {
        into->lost = true;
        count = CR_PROD_NODES;
    }
    into->count = count;
    memcpy(into->nodes, nodes, count * sizeof nodes[0]);
}

/* A product by the missing ones leaves a node as it is, so nodes rise alone, the lowest first, until they meet. */
cr_prod_node cr_float_prod_root(const cr_float_prod *p) {
    cr_prod_node nodes[CR_PROD_NODES];
    uint32_t count = p->count;
    if (count == 0) return (cr_prod_node){.h = 1};
    memcpy(nodes, p->nodes, count * sizeof nodes[0]);
    const uint64_t state = cr_float_enter();
    while (count > 1) {
        unsigned lowest = 63;
        for (uint32_t i = 0; i < count; i++) {
            if (level_of(nodes[i].place) < lowest) lowest = level_of(nodes[i].place);
        }
        uint32_t n = 0;
        for (uint32_t i = 0; i < count; i++) {
            cr_prod_node node = nodes[i];
            if (level_of(node.place) == lowest) node.place = parent_of(node.place);
            if (n && nodes[n - 1].place == node.place) {
                nodes[n - 1] = join(&nodes[n - 1], &node, node.place);
            } else {
                nodes[n++] = node;
            }
        }
        count = n;
    }
    cr_float_leave(state);
    return nodes[0];
}
