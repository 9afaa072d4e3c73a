/* idle: whose connection ends when another user needs its place. Thread: the loop's. Owner: the admission.
 *
 * Users stand in lists by the powers of two of how many connections they have, so that one with most is found without a look at all.
 * Each look at a connection or a user that was in vain puts it at its list's end, because who asks again then sees others. */
#include "server/admit/admission.h"

enum {
    USERS_LOOK = 8,   /* users looked at in one list */
    QUIET_LOOK = 64,  /* connections of one user, for one on which nothing is under way */
    PLACES_LOOK = 16, /* and for any without a call */
    ALL_LOOK = 256,   /* of all users, because the loop waits */
};

void cr_admit_place(cr_peer *peer, cr_place *place) {
    if (peer->place) cr_list_remove(&peer->place->link);
    peer->place = place;
    if (place) cr_list_append(&peer->user->places, &place->link);
}

/* Of 0, 1, 2 to 3, 4 to 7 connections and so on. */
static int rank_of(uint64_t connections) { return connections ? 64 - __builtin_clzll(connections) : 0; }

void cr_admit_ranks(cr_admission *a, cr_user *user) {
    cr_list_remove(&user->rank);
    if (user->used[CR_USE_connections]) cr_list_append(&a->ranks[rank_of(user->used[CR_USE_connections])], &user->rank);
}

static cr_user *user_at(cr_list *node) { return cr_container(node, cr_user, rank); }

static bool end_one_of(cr_user *user, bool quiet, int *left) {
    const cr_list *first = NULL;
    for (int i = 0; i < (quiet ? QUIET_LOOK : PLACES_LOOK) && *left > 0; i++, --*left) {
        cr_list *node = user->places.next;
        if (node == &user->places || node == first) return false;
        cr_place *place = cr_container(node, cr_place, link);
        if (place->end(place, quiet)) return true; /* the user may be gone */
        if (!first) first = node;
        cr_list_remove(node);
        cr_list_append(&user->places, node);
    }
    return false;
}

/* The first of a list's first that have most connections comes to its front. */
static void most_first(cr_list *list) {
    cr_user *most = NULL;
    cr_list *node = list->next;
    for (int i = 0; i < USERS_LOOK && node != list; i++, node = node->next)
        if (!most || user_at(node)->used[CR_USE_connections] > most->used[CR_USE_connections]) most = user_at(node);
    if (!most) return;
    cr_list_remove(&most->rank);
    cr_list_append(list->next, &most->rank); /* before the first */
}

static bool end_one_in(cr_list *list, uint64_t above, int *left) {
    const cr_list *first = NULL;
    most_first(list);
    for (int i = 0; i<USERS_LOOK && * left> 0; i++) {
        cr_list *node = list->next;
        if (node == list || node == first) return false;
        cr_user *user = user_at(node);
        if (!first) first = node;
        cr_list_remove(node);
        cr_list_append(list, node);
        if (user->used[CR_USE_connections] <= above) continue;
        if (end_one_of(user, true, left) || end_one_of(user, false, left)) return true;
    }
    return false;
}

bool cr_admit_might_end_idle(const cr_admission *a, const cr_user *user) {
    const uint64_t above = user->used[CR_USE_connections] + 1;
    for (int rank = CR_RANKS - 1; rank > rank_of(above); rank--)
        if (!cr_list_empty(&a->ranks[rank])) return true;
    const cr_list *list = &a->ranks[rank_of(above)];
    cr_list *node = list->next;
    for (int i = 0; i < USERS_LOOK && node != list; i++, node = node->next)
        if (user_at(node)->used[CR_USE_connections] > above) return true;
    return node != list;
}

bool cr_admit_end_idle(cr_admission *a, const cr_user *user) {
    const uint64_t above = user->used[CR_USE_connections] + 1;
    int left = ALL_LOOK;
    for (int rank = CR_RANKS - 1; rank >= rank_of(above); rank--)
        if (end_one_in(&a->ranks[rank], above, &left)) return true;
    return false;
}
