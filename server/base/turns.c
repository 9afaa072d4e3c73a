/* turns: the ring of clients. Thread: any, under the owner's lock. Owner: the line that embeds it. */
#include "server/base/turns.h"

#include <stdlib.h>

#include "server/base/hash.h"

enum {
    SET_BITS = 8,
    SETS = 1 << SET_BITS,
    WAYS = 8,
    SHORT_IN_A_ROW = 8, /* while something large waits */
    A_WHILE = 64,       /* served, until a client counts as alone */
};

/* A debt beyond this is forgiven, because every turn of it is a step of the ring. One made alone is forgiven, too. */
static const int64_t most_debt = 256ll * CR_TURN_WORTH_BYTES;

struct cr_turns_client {
    cr_list link;       /* in fresh or in ring, while it is placed */
    cr_list waiting[2]; /* short, large */
    uint64_t key;
    int64_t left; /* bytes of its turn; none or fewer: its turn is over */
    bool placed, fresh;
    uint8_t in_a_row; /* short ones that were served since a large one, while there was one */
};

struct cr_turns {
    cr_list fresh, ring;
    uint64_t factor, placed; /* of hash.h; clients that have a place */
    cr_turns_client *recent; /* who came last: most often the next to come, too */
    bool served;
    uint64_t last, run; /* the client that was served last; how often in a row */
    cr_turns_client table[SETS][WAYS];
};

cr_turns *cr_turns_new(void) {
    cr_turns *turns = calloc(1, sizeof *turns); /* pages that no client comes to are never touched */
    if (!turns) return NULL;
    cr_list_init(&turns->fresh);
    cr_list_init(&turns->ring);
    turns->run = A_WHILE;
    turns->recent = &turns->table[0][0];
    turns->factor = cr_hash_factor(); /* or processes could be chosen that share a set */
    return turns;
}

void cr_turns_free(cr_turns *turns) { free(turns); }

/* The place of a client; of one that has none: a free one, or, in a full set, another client's. */
static cr_turns_client *place_of(cr_turns *turns, uint64_t key) {
    cr_turns_client *set = turns->table[cr_hash(turns->factor, key, SET_BITS)], *free_one = NULL;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].placed && set[i].key == key) return &set[i];
        if (!set[i].placed && !free_one) free_one = &set[i];
    }
    if (!free_one) return &set[key % WAYS];
    free_one->key = key;
    free_one->left = CR_TURN_WORTH_BYTES;
    free_one->placed = free_one->fresh = true;
    free_one->in_a_row = 0;
    for (int large = 0; large < 2; large++) cr_list_init(&free_one->waiting[large]);
    cr_list_append(&turns->fresh, &free_one->link);
    turns->placed++;
    return free_one;
}

static bool has_nothing(const cr_turns_client *c) {
    return cr_list_empty(&c->waiting[false]) && cr_list_empty(&c->waiting[true]);
}

static bool large_first(const cr_turns_client *c) {
    return cr_list_empty(&c->waiting[false]) || (c->in_a_row >= SHORT_IN_A_ROW && !cr_list_empty(&c->waiting[true]));
}

static void to_the_end(cr_turns *turns, cr_turns_client *c) {
    cr_list_remove(&c->link);
    cr_list_append(&turns->ring, &c->link);
    c->fresh = false;
}

static void drop(cr_turns *turns, cr_turns_client *c) {
    cr_list_remove(&c->link);
    c->placed = false;
    turns->placed--;
}

void cr_turns_put(cr_turns *turns, uint64_t client, cr_waiting *w, bool large) {
    cr_turns_client *c = turns->recent;
    if (!c->placed || c->key != client) turns->recent = c = place_of(turns, client);
    w->client = c;
    w->large = large;
    cr_list_append(&c->waiting[large], &w->link);
}

cr_waiting *cr_turns_next(cr_turns *turns) {
    for (;;) {
        cr_list *from = cr_list_empty(&turns->fresh) ? &turns->ring : &turns->fresh;
        if (cr_list_empty(from)) return NULL;
        cr_turns_client *c = cr_container(from->next, cr_turns_client, link);
        if (has_nothing(c)) {
            if (c->fresh)
                to_the_end(turns, c);
            else if (turns->placed == 1)
                return NULL; /* it most likely comes back, and costs nobody a turn */
            else
                drop(turns, c);
            continue;
        }
        if (c->left > 0) return cr_container(c->waiting[large_first(c)].next, cr_waiting, link);
        c->left += CR_TURN_WORTH_BYTES;
        to_the_end(turns, c);
    }
}

void cr_turns_charge(cr_turns *turns, cr_waiting *w, uint64_t bytes) {
    cr_turns_client *c = w->client;
    const int64_t least = turns->placed == 1 ? 0 : -most_debt;
    const int64_t cost = bytes < CR_TURN_LEAST_BYTES   ? CR_TURN_LEAST_BYTES
                         : bytes > (uint64_t)most_debt ? most_debt
                                                       : (int64_t)bytes;
    c->left = c->left - cost < least ? least : c->left - cost;
    if (w->large)
        c->in_a_row = 0;
    else if (!cr_list_empty(&c->waiting[true]))
        c->in_a_row++;
    if (cr_waiting_in_line(w)) {
        cr_list_remove(&w->link);
        cr_list_append(&c->waiting[w->large], &w->link);
    }
    turns->run = turns->served && turns->last != c->key ? 0 : turns->run + 1;
    turns->served = true;
    turns->last = c->key;
}

bool cr_turns_alone(const cr_turns *turns, const cr_waiting *w) {
    return turns->placed == 1 && turns->run >= A_WHILE && (!turns->served || turns->last == w->client->key);
}

/* Fresh clients whose turn is over go into the ring. */
static void tidy(cr_turns *turns) {
    for (cr_list *node = turns->fresh.next, *next; node != &turns->fresh; node = next) {
        cr_turns_client *c = cr_container(node, cr_turns_client, link);
        next = node->next;
        if (has_nothing(c) || c->left <= 0) to_the_end(turns, c);
    }
}

/* The first that ask takes of what waits of c. */
static cr_waiting *wanted_of(const cr_turns_client *c, cr_turns_ask ask, void *argument) {
    bool large = large_first(c);
    for (int i = 0; i < 2; i++, large = !large)
        for (const cr_list *node = c->waiting[large].next; node != &c->waiting[large]; node = node->next) {
            cr_waiting *w = cr_container(node, cr_waiting, link);
            const cr_choice choice = ask(argument, w);
            if (choice == CR_CHOICE_TAKE) return w;
            if (choice == CR_CHOICE_PASS_CLIENT) return NULL;
        }
    return NULL;
}

/* So many turns more for everybody, but nobody saves up more than one. Who has one, and nothing in line, loses its place: to come
 * back as a client that is fresh gains nothing. */
static void grant(cr_turns *turns, int64_t count) {
    cr_list *lists[] = {&turns->fresh, &turns->ring};
    for (int i = 0; i < 2; i++)
        for (cr_list *node = lists[i]->next, *next; node != lists[i]; node = next) {
            cr_turns_client *c = cr_container(node, cr_turns_client, link);
            next = node->next;
            c->left += count * CR_TURN_WORTH_BYTES;
            if (c->left < CR_TURN_WORTH_BYTES) continue;
            c->left = CR_TURN_WORTH_BYTES;
            if (has_nothing(c)) drop(turns, c);
        }
}

/* Without one whose turn it is, the one that has the least debt goes first: the others' turns pass. */
cr_waiting *cr_turns_pick(cr_turns *turns, cr_turns_ask ask, void *argument) {
    cr_list *lists[] = {&turns->fresh, &turns->ring};
    cr_turns_client *best = NULL;
    cr_waiting *chosen = NULL;
    tidy(turns);
    for (int i = 0; i < 2; i++)
        for (cr_list *node = lists[i]->next; node != lists[i]; node = node->next) {
            cr_turns_client *c = cr_container(node, cr_turns_client, link);
            if (best && c->left <= best->left) continue;
            cr_waiting *w = wanted_of(c, ask, argument);
            if (!w) continue;
            best = c;
            chosen = w;
            if (c->left > 0) return w;
        }
    if (!best) return NULL;
    grant(turns, -best->left / CR_TURN_WORTH_BYTES + 1);
    ask(argument, chosen);
    return chosen;
}

/* False: take has ended it. */
static bool follow_list(cr_turns_client *c, bool large, bool turn_only, bool (*take)(void *, cr_waiting *),
                        void *argument) {
    cr_list *list = &c->waiting[large], *last = list->prev;
    for (cr_list *node = list->next, *next; node != list; node = next) {
        next = node == last ? list : node->next; /* what stays in line goes to its end */
        if (turn_only && c->left <= 0) return true;
        if (!take(argument, cr_container(node, cr_waiting, link))) return false;
    }
    return true;
}

void cr_turns_follow(cr_turns *turns, bool (*take)(void *argument, cr_waiting *w), void *argument) {
    cr_list *lists[] = {&turns->fresh, &turns->ring};
    for (int turn_only = 1; turn_only >= 0; turn_only--)
        for (int i = 0; i < 2; i++)
            for (cr_list *node = lists[i]->next; node != lists[i]; node = node->next) {
                cr_turns_client *c = cr_container(node, cr_turns_client, link);
                if (!follow_list(c, false, turn_only, take, argument)) return;
                if (!follow_list(c, true, turn_only, take, argument)) return;
            }
}
