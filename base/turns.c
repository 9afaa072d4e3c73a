/* turns: the rings of users and of their clients. Thread: any, under the owner's lock. Owner: the line that embeds it. */
#include "base/turns.h"

#include <stdlib.h>

#include "base/hash.h"

enum {
    SET_BITS = 8,
    SETS = 1 << SET_BITS,
    WAYS = 8,
    SHORT_IN_A_ROW = 8, /* while something large waits */
    A_WHILE = 64,       /* served, until a client counts as alone */
};

/* A debt beyond this is forgiven, because every turn of it is a step of the ring. One made alone is forgiven, too. */
static const int64_t most_debt = 256ll * CR_TURN_WORTH_BYTES;

/* One that takes turns: a user among users, or a client among those of its user. */
typedef struct taker {
    cr_list link; /* in fresh or in ring, while it is placed */
    uint64_t key;
    int64_t left; /* bytes of its turn; none or fewer: its turn is over */
    bool placed, fresh;
} taker;

typedef struct circle {
    cr_list fresh, ring;
    uint64_t placed;
} circle;

typedef struct user {
    taker turn;
    circle clients;
} user;

struct cr_turns_client {
    taker turn;
    user *user;
    cr_list waiting[2]; /* short, large */
    uint8_t in_a_row;   /* short ones that were served since a large one, while there was one */
};

struct cr_turns {
    circle users;
    uint64_t factor;         /* of hash.h */
    cr_turns_client *recent; /* who came last: most often the next to come, too */
    bool served;
    uint64_t last, run; /* the client that was served last; how often in a row */
    user user_table[SETS][WAYS];
    cr_turns_client table[SETS][WAYS];
};

#define USER_OF(node) cr_container(node, user, turn.link)
#define CLIENT_OF(node) cr_container(node, cr_turns_client, turn.link)

/* ---- one circle, of users or of clients ---- */

static void circle_init(circle *of) {
    cr_list_init(&of->fresh);
    cr_list_init(&of->ring);
    of->placed = 0;
}

static void enter(circle *of, taker *t, uint64_t key) {
    *t = (taker){.key = key, .left = CR_TURN_WORTH_BYTES, .placed = true, .fresh = true};
    cr_list_init(&t->link);
    cr_list_append(&of->fresh, &t->link);
    of->placed++;
}

static void drop(circle *of, taker *t) {
    cr_list_remove(&t->link);
    t->placed = false;
    of->placed--;
}

static void to_the_end(circle *of, taker *t) {
    cr_list_remove(&t->link);
    cr_list_append(&of->ring, &t->link);
    t->fresh = false;
}

static cr_list *first_of(circle *of) {
    cr_list *from = cr_list_empty(&of->fresh) ? &of->ring : &of->fresh;
    return cr_list_empty(from) ? NULL : from->next;
}

/* The one behind node, in the order of turns; node NULL: the first. NULL: there is none. */
static cr_list *after(circle *of, cr_list *node) {
    cr_list *next = node ? node->next : of->fresh.next;
    if (next == &of->fresh) next = of->ring.next;
    return next == &of->ring ? NULL : next;
}

/* Its turn is over: another one, when the ring has come round. */
static void renew(circle *of, taker *t) {
    t->left += CR_TURN_WORTH_BYTES;
    to_the_end(of, t);
}

static void pay(const circle *of, taker *t, int64_t cost) {
    const int64_t least = of->placed == 1 ? 0 : -most_debt;
    t->left = t->left - cost < least ? least : t->left - cost;
}

/* ---- places ---- */

cr_turns *cr_turns_new(void) {
    cr_turns *turns = calloc(1, sizeof *turns); /* pages that no client comes to are never touched */
    if (!turns) return NULL;
    circle_init(&turns->users);
    turns->run = A_WHILE;
    turns->recent = &turns->table[0][0];
    turns->factor = cr_hash_factor(); /* or processes could be chosen that share a set */
    return turns;
}

void cr_turns_free(cr_turns *turns) { free(turns); }

/* The place of a user; of one that has none: a free one, or, in a full set, another user's. */
static user *place_of_user(cr_turns *turns, uint64_t key) {
    user *set = turns->user_table[cr_hash(turns->factor, key, SET_BITS)], *free_one = NULL;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].turn.placed && set[i].turn.key == key) return &set[i];
        if (!set[i].turn.placed && !free_one) free_one = &set[i];
    }
    if (!free_one) return &set[key % WAYS];
    enter(&turns->users, &free_one->turn, key);
    circle_init(&free_one->clients);
    return free_one;
}

/* The same of a client. */
static cr_turns_client *place_of(cr_turns *turns, uint64_t user_key, uint64_t key) {
    user *u = place_of_user(turns, user_key);
    cr_turns_client *set = turns->table[cr_hash(turns->factor, key, SET_BITS)], *free_one = NULL;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].turn.placed && set[i].turn.key == key && set[i].user == u) return &set[i];
        if (!set[i].turn.placed && !free_one) free_one = &set[i];
    }
    if (!free_one) return &set[key % WAYS];
    enter(&u->clients, &free_one->turn, key);
    free_one->user = u;
    free_one->in_a_row = 0;
    for (int large = 0; large < 2; large++) cr_list_init(&free_one->waiting[large]);
    return free_one;
}

static bool has_nothing(const cr_turns_client *c) {
    return cr_list_empty(&c->waiting[false]) && cr_list_empty(&c->waiting[true]);
}

static bool user_has_nothing(user *u) {
    for (cr_list *node = NULL; (node = after(&u->clients, node));)
        if (!has_nothing(CLIENT_OF(node))) return false;
    return true;
}

static void drop_user(cr_turns *turns, user *u) {
    for (cr_list *node; (node = first_of(&u->clients));) drop(&u->clients, &CLIENT_OF(node)->turn);
    drop(&turns->users, &u->turn);
}

/* ---- whose turn it is ---- */

static bool large_first(const cr_turns_client *c) {
    return cr_list_empty(&c->waiting[false]) || (c->in_a_row >= SHORT_IN_A_ROW && !cr_list_empty(&c->waiting[true]));
}

void cr_turns_put(cr_turns *turns, uint64_t user_key, uint64_t client, cr_waiting *w, bool large) {
    cr_turns_client *c = turns->recent;
    if (!c->turn.placed || c->turn.key != client || c->user->turn.key != user_key)
        turns->recent = c = place_of(turns, user_key, client);
    w->client = c;
    w->large = large;
    cr_list_append(&c->waiting[large], &w->link);
}

/* The client of u whose turn it is. NULL: u has nothing in line, and one client at most. */
static cr_turns_client *next_client(user *u) {
    for (cr_list *node; (node = first_of(&u->clients));) {
        cr_turns_client *c = CLIENT_OF(node);
        if (!has_nothing(c)) {
            if (c->turn.left > 0) return c;
            renew(&u->clients, &c->turn);
        } else if (c->turn.fresh) {
            to_the_end(&u->clients, &c->turn);
        } else if (u->clients.placed == 1) {
            return NULL; /* it most likely comes back, and costs nobody a turn */
        } else {
            drop(&u->clients, &c->turn);
        }
    }
    return NULL;
}

cr_waiting *cr_turns_next(cr_turns *turns) {
    for (cr_list *node; (node = first_of(&turns->users));) {
        user *u = USER_OF(node);
        cr_turns_client *c = next_client(u);
        if (c && u->turn.left > 0) return cr_container(c->waiting[large_first(c)].next, cr_waiting, link);
        if (c)
            renew(&turns->users, &u->turn);
        else if (u->turn.fresh)
            to_the_end(&turns->users, &u->turn);
        else if (turns->users.placed == 1)
            return NULL;
        else
            drop_user(turns, u);
    }
    return NULL;
}

static void charge(cr_turns *turns, cr_turns_client *c, uint64_t bytes) {
    const int64_t cost = bytes > (uint64_t)most_debt ? most_debt : (int64_t)bytes;
    pay(&c->user->clients, &c->turn, cost);
    pay(&turns->users, &c->user->turn, cost);
}

void cr_turns_charge_more(cr_turns *turns, uint64_t user_key, uint64_t client, uint64_t bytes) {
    cr_turns_client *set = turns->table[cr_hash(turns->factor, client, SET_BITS)];
    for (int i = 0; i < WAYS; i++)
        if (set[i].turn.placed && set[i].turn.key == client && set[i].user->turn.key == user_key)
            charge(turns, &set[i], bytes);
}

void cr_turns_charge(cr_turns *turns, cr_waiting *w, uint64_t bytes) {
    cr_turns_client *c = w->client;
    charge(turns, c, bytes < CR_TURN_LEAST_BYTES ? CR_TURN_LEAST_BYTES : bytes);
    if (w->large)
        c->in_a_row = 0;
    else if (!cr_list_empty(&c->waiting[true]))
        c->in_a_row++;
    if (cr_waiting_in_line(w)) {
        cr_list_remove(&w->link);
        cr_list_append(&c->waiting[w->large], &w->link);
    }
    turns->run = turns->served && turns->last != c->turn.key ? 0 : turns->run + 1;
    turns->served = true;
    turns->last = c->turn.key;
}

bool cr_turns_alone(const cr_turns *turns, const cr_waiting *w) {
    return turns->users.placed == 1 && w->client->user->clients.placed == 1 && turns->run >= A_WHILE &&
           (!turns->served || turns->last == w->client->turn.key);
}

/* ---- lines whose owner may want only some ---- */

/* Fresh ones whose turn is over go into the ring. */
static void tidy(cr_turns *turns) {
    for (cr_list *node = turns->users.fresh.next, *next; node != &turns->users.fresh; node = next) {
        next = node->next;
        user *u = USER_OF(node);
        if (u->turn.left <= 0 || user_has_nothing(u)) to_the_end(&turns->users, &u->turn);
    }
    for (cr_list *of = NULL; (of = after(&turns->users, of));) {
        user *u = USER_OF(of);
        for (cr_list *node = u->clients.fresh.next, *next; node != &u->clients.fresh; node = next) {
            next = node->next;
            cr_turns_client *c = CLIENT_OF(node);
            if (c->turn.left <= 0 || has_nothing(c)) to_the_end(&u->clients, &c->turn);
        }
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

/* So much of turns more for t, but nobody saves up more than one. True: it has one. */
static bool grant(taker *t, int64_t bytes) {
    t->left += bytes;
    if (t->left < CR_TURN_WORTH_BYTES) return false;
    t->left = CR_TURN_WORTH_BYTES;
    return true;
}

/* The bytes that others take until it is t's turn. */
static int64_t until(const taker *t) {
    return t->left > 0 ? 0 : (-t->left / CR_TURN_WORTH_BYTES + 1) * CR_TURN_WORTH_BYTES;
}

/* A client that then has a whole turn and nothing in line loses its place. It gains nothing by coming back as a fresh one. */
static void grant_clients(user *u, int64_t bytes) {
    for (cr_list *node = after(&u->clients, NULL), *next; bytes && node; node = next) {
        next = after(&u->clients, node);
        cr_turns_client *c = CLIENT_OF(node);
        if (grant(&c->turn, bytes) && has_nothing(c)) drop(&u->clients, &c->turn);
    }
}

static void grant_users(cr_turns *turns, int64_t bytes) {
    for (cr_list *node = after(&turns->users, NULL), *next; bytes && node; node = next) {
        next = after(&turns->users, node);
        user *u = USER_OF(node);
        if (grant(&u->turn, bytes) && user_has_nothing(u)) drop_user(turns, u);
    }
}

/* What was picked so far: a user, a client of that user, and what waits of that client. */
typedef struct picked {
    user *user;
    cr_turns_client *client;
    cr_waiting *waiting;
} picked;

/* The first client of u whose turn it is among those that ask takes something of, or else that of least debt. */
static picked pick_client(user *u, cr_turns_ask ask, void *argument) {
    picked best = {.user = u};
    for (cr_list *node = NULL; (node = after(&u->clients, node));) {
        cr_turns_client *c = CLIENT_OF(node);
        if (best.client && c->turn.left <= best.client->turn.left) continue;
        cr_waiting *w = wanted_of(c, ask, argument);
        if (!w) continue;
        best.client = c;
        best.waiting = w;
        if (c->turn.left > 0) break;
    }
    return best;
}

/* Without one whose turn it is, the one that has the least debt goes first: the others' turns pass. */
cr_waiting *cr_turns_pick(cr_turns *turns, cr_turns_ask ask, void *argument) {
    picked best = {0};
    tidy(turns);
    for (cr_list *node = NULL; (node = after(&turns->users, node));) {
        user *u = USER_OF(node);
        if (best.user && u->turn.left <= best.user->turn.left) continue;
        const picked of_user = pick_client(u, ask, argument);
        if (!of_user.client) continue;
        best = of_user;
        if (u->turn.left > 0) break;
    }
    if (!best.user) return NULL;
    const int64_t of_user = until(&best.user->turn), of_client = until(&best.client->turn);
    grant_users(turns, of_user);
    grant_clients(best.user, of_client);
    if (of_user || of_client) ask(argument, best.waiting); /* others were asked since */
    return best.waiting;
}

/* False: take has ended it. */
static bool follow_list(const cr_turns *turns, cr_turns_client *c, bool large, bool turn_only,
                        bool (*take)(void *, cr_waiting *), void *argument) {
    cr_list *list = &c->waiting[large], *last = list->prev;
    for (cr_list *node = list->next, *next; node != list; node = next) {
        next = node == last ? list : node->next; /* what stays in line goes to its end */
        if (turn_only && (c->turn.left <= 0 || (turns->users.placed > 1 && c->user->turn.left <= 0))) return true;
        if (!take(argument, cr_container(node, cr_waiting, link))) return false;
    }
    return true;
}

void cr_turns_follow(cr_turns *turns, bool (*take)(void *argument, cr_waiting *w), void *argument) {
    for (int turn_only = 1; turn_only >= 0; turn_only--)
        for (cr_list *of = NULL; (of = after(&turns->users, of));)
            for (cr_list *node = NULL; (node = after(&USER_OF(of)->clients, node));) {
                if (!follow_list(turns, CLIENT_OF(node), false, turn_only, take, argument)) return;
                if (!follow_list(turns, CLIENT_OF(node), true, turn_only, take, argument)) return;
            }
}
