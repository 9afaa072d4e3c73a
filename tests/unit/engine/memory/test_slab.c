/* Slabs: last in first out, waiters by turns, the share of a user, forgetting, and that no slab ever has two holders. */
#include <stdlib.h>
#include <string.h>

#include "engine/memory/slab.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

typedef struct wish {
    cr_slab_waiter waiter;
    void *got;
    gate came;
} wish;

static void granted(cr_slab_waiter *waiter, void *slab) {
    wish *w = cr_container(waiter, wish, waiter);
    w->got = slab;
    gate_add(&w->came);
}

static const cr_slab_asker one = {.client = 1, .owner = 1};

static wish wish_of(uint64_t client, uint64_t owner) {
    wish w = {.waiter = {.granted = granted, .asker = {.client = client, .owner = owner}}, .came = GATE_INIT};
    return w;
}

static wish new_wish(void) { return wish_of(1, 1); }

static cr_slabs *new_slabs(size_t count) {
    cr_slabs *slabs;
    cr_error error;
    assert_ok(cr_slabs_new(count, &slabs, &error), error);
    return slabs;
}

START_TEST(the_last_one_given_is_the_next_one_taken) {
    cr_slabs *slabs = new_slabs(3);
    void *a = cr_slab_take(slabs, &one), *b = cr_slab_take(slabs, &one), *c = cr_slab_take(slabs, &one);
    ck_assert(a && b && c && a != b && b != c && a != c);
    ck_assert_ptr_null(cr_slab_take(slabs, &one));
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 3);
    memset(a, 1, CR_SLAB_BYTES);
    memset(b, 2, CR_SLAB_BYTES);
    memset(c, 3, CR_SLAB_BYTES);
    ck_assert_uint_eq(((uint8_t *)a)[CR_SLAB_BYTES - 1], 1);
    ck_assert_uint_eq(((uint8_t *)b)[0], 2);
    cr_slab_give(slabs, b);
    cr_slab_give(slabs, a);
    ck_assert_ptr_eq(cr_slab_take(slabs, &one), a);
    ck_assert_ptr_eq(cr_slab_take(slabs, &one), b);
    cr_slab_give(slabs, a);
    cr_slab_give(slabs, b);
    cr_slab_give(slabs, c);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    cr_slabs_free(slabs);
}
END_TEST

START_TEST(waiters_are_served_in_their_order_and_before_takers) {
    cr_slabs *slabs = new_slabs(2);
    wish w[3] = {new_wish(), new_wish(), new_wish()};
    uint64_t waits = metric_now(CR_M_slab_waits_total);
    void *a = cr_slab_take(slabs, &one), *b = cr_slab_take_or_wait(slabs, &w[0].waiter);
    ck_assert(a && b);
    for (int i = 0; i < 3; i++) ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &w[i].waiter));
    ck_assert_uint_eq(metric_now(CR_M_slab_waits_total) - waits, 3);
    ck_assert(cr_slab_forget(slabs, &w[1].waiter));
    ck_assert(!cr_slab_forget(slabs, &w[1].waiter));
    cr_slab_give(slabs, b);
    ck_assert_ptr_eq(w[0].got, b);
    ck_assert_ptr_null(w[2].got);
    ck_assert(!cr_slab_forget(slabs, &w[0].waiter));
    ck_assert_ptr_null(cr_slab_take(slabs, &one));
    cr_slab_give(slabs, a);
    ck_assert_ptr_eq(w[2].got, a);
    ck_assert_ptr_null(w[1].got);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 2);
    cr_slab_give(slabs, a);
    cr_slab_give(slabs, b);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    /* A waiter may wait again. */
    void *both[2] = {cr_slab_take(slabs, &one), cr_slab_take(slabs, &one)};
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &w[1].waiter));
    cr_slab_give(slabs, both[0]);
    ck_assert_ptr_eq(w[1].got, both[0]);
    cr_slab_give(slabs, both[0]);
    cr_slab_give(slabs, both[1]);
    cr_slabs_free(slabs);
}
END_TEST

/* Many wait of one client, then one of another of the same user: the next is the other's. */
START_TEST(clients_take_turns) {
    enum { MANY = 200 };
    static wish many[MANY];
    cr_slabs *slabs = new_slabs(2);
    void *a = cr_slab_take(slabs, &one), *b = cr_slab_take(slabs, &one);
    for (int i = 0; i < MANY; i++) {
        many[i] = wish_of(1, 1);
        ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &many[i].waiter));
    }
    cr_slab_give(slabs, a);
    ck_assert_ptr_eq(many[0].got, a);
    wish other = wish_of(2, 1), more = wish_of(2, 1);
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &other.waiter));
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &more.waiter));
    cr_slab_give(slabs, b);
    ck_assert_ptr_eq(other.got, b);
    cr_slab_give(slabs, a); /* of many[0] */
    ck_assert_ptr_eq(many[1].got, a);
    cr_slab_give(slabs, b);
    ck_assert_ptr_eq(more.got, b);
    for (int i = 2; i < MANY; i++) {
        cr_slab_give(slabs, a);
        ck_assert_ptr_eq(many[i].got, a);
    }
    cr_slab_give(slabs, a);
    cr_slab_give(slabs, b);
    cr_slabs_free(slabs);
}
END_TEST

/* Two users: one takes until it is refused, the other still gets some; both wait: the next is the other's. */
START_TEST(nobody_holds_more_than_a_share_of_what_is_free) {
    enum { COUNT = 64 };
    static const cr_slab_asker other = {.client = 2, .owner = 2};
    cr_slabs *slabs = new_slabs(COUNT);
    void *taken[COUNT], *first = cr_slab_take(slabs, &other);
    size_t n = 0;
    while ((taken[n] = cr_slab_take(slabs, &one))) n++;
    ck_assert_uint_eq(n, 56);                                                           /* 7 are free */
    ck_assert_ptr_null(cr_slab_take(slabs, &(cr_slab_asker){.client = 7, .owner = 1})); /* forking does not help */
    void *second = cr_slab_take(slabs, &other);
    ck_assert_ptr_nonnull(second);
    wish mine = new_wish(), others[8];
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &mine.waiter));
    size_t got = 0;
    for (; got < 8; got++) {
        others[got] = wish_of(2, 2);
        if (!(others[got].got = cr_slab_take_or_wait(slabs, &others[got].waiter))) break;
    }
    ck_assert_uint_eq(got, 6); /* to the last */
    cr_slab_give(slabs, taken[--n]);
    ck_assert_ptr_null(others[got].got); /* 8 held, 1 free */
    cr_slab_give(slabs, taken[--n]);
    ck_assert_ptr_nonnull(others[got].got);
    ck_assert_ptr_null(mine.got);
    ck_assert(cr_slab_forget(slabs, &mine.waiter));
    for (size_t i = 0; i <= got; i++) cr_slab_give(slabs, others[i].got);
    cr_slab_give(slabs, first);
    cr_slab_give(slabs, second);
    while (n) cr_slab_give(slabs, taken[--n]);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    cr_slabs_free(slabs);
}
END_TEST

/* A user that is alone has all of them. When another comes it gets nothing new before the rule holds, and after a while alone
 * it has all of them again. */
START_TEST(who_is_alone_is_not_bound) {
    enum { COUNT = 16 };
    cr_slabs *slabs = new_slabs(COUNT);
    void *taken[COUNT];
    for (int i = 0; i < COUNT; i++) ck_assert_ptr_nonnull(taken[i] = cr_slab_take(slabs, &one));
    wish mine = new_wish(), other = wish_of(2, 2);
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &mine.waiter));
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &other.waiter));
    cr_slab_give(slabs, taken[15]);
    ck_assert_ptr_nonnull(other.got);
    ck_assert_ptr_null(mine.got);
    cr_slab_give(slabs, taken[14]); /* 14 held, 1 free */
    ck_assert_ptr_null(mine.got);
    cr_slab_give(slabs, other.got); /* 14 held, 2 free */
    ck_assert_ptr_nonnull(mine.got);
    unsigned asks = 0;
    for (;; asks++) {
        void *slab = cr_slab_take(slabs, &one);
        if (slab) {
            cr_slab_give(slabs, slab);
            break;
        }
    }
    ck_assert_uint_eq(asks + 1, CR_SLAB_ALONE * COUNT);
    cr_slab_give(slabs, mine.got);
    for (int i = 0; i < 14; i++) cr_slab_give(slabs, taken[i]);
    cr_slabs_free(slabs);
}
END_TEST

START_TEST(low_below_an_eighth_or_with_waiters) {
    cr_slabs *slabs = new_slabs(16);
    void *taken[16];
    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(cr_slabs_low(slabs), 16 - i < 2);
        taken[i] = cr_slab_take(slabs, &one);
    }
    wish w = new_wish();
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &w.waiter));
    ck_assert(cr_slabs_low(slabs));
    for (int i = 0; i < 16; i++) cr_slab_give(slabs, taken[i]);
    ck_assert_ptr_eq(w.got, taken[0]);
    ck_assert(!cr_slabs_low(slabs));
    cr_slab_give(slabs, w.got);
    cr_slabs_free(slabs);
}
END_TEST

START_TEST(too_many_or_no_memory_is_said) {
    cr_slabs *slabs = NULL;
    cr_error error;
    assert_fails(cr_slabs_new(SIZE_MAX / 2, &slabs, &error), CR_INVALID_ARGUMENT, error, "too many");
    for (unsigned nth = 1; nth <= 2; nth++) {
        fail_allocation(nth);
        assert_fails(cr_slabs_new(4, &slabs, &error), CR_RESOURCE_EXHAUSTED, error, "memory");
    }
    ck_assert_ptr_null(slabs);
    cr_slabs_free(NULL);
}
END_TEST

static cr_status pin(void *argument, void *memory, size_t bytes, bool read_only, cr_error *error) {
    (void)read_only;
    if (bytes != 4 * CR_SLAB_BYTES) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "too much to pin");
    *(void **)argument = memory;
    return CR_OK;
}

static void unpin(void *argument, void *memory) {
    ck_assert_ptr_eq(*(void **)argument, memory);
    *(void **)argument = NULL;
}

START_TEST(all_of_them_are_pinned_and_unpinned) {
    cr_slabs *slabs = NULL;
    cr_error error;
    void *pinned = NULL;
    cr_pinner pinner = {&pinned, pin, unpin};
    assert_ok(cr_slabs_new(4, &slabs, &error), error);
    ck_assert(!cr_slabs_pinned(slabs));
    cr_slabs_unpin(slabs);
    assert_ok(cr_slabs_pin(slabs, &pinner, &error), error);
    ck_assert(cr_slabs_pinned(slabs));
    size_t bytes;
    ck_assert_ptr_eq(cr_slabs_memory(slabs, &bytes), pinned);
    ck_assert_uint_eq(bytes, 4 * CR_SLAB_BYTES);
    cr_slabs_unpin(slabs);
    ck_assert(!cr_slabs_pinned(slabs));
    ck_assert_ptr_null(pinned);
    cr_slabs_free(slabs);
    assert_ok(cr_slabs_new(5, &slabs, &error), error);
    assert_fails(cr_slabs_pin(slabs, &pinner, &error), CR_RESOURCE_EXHAUSTED, error, "too much");
    ck_assert(!cr_slabs_pinned(slabs));
    cr_slabs_free(slabs);
}
END_TEST

enum { THREADS = 6, ROUNDS = 3000, FEW = 3 };
static cr_slabs *shared;

/* Of a client of its own and of one of two users. Writes its number into whatever it holds: another holder would be a data race, and would be seen. */
static void *holder(void *argument) {
    uint64_t state = (uintptr_t)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        wish w = wish_of((uintptr_t)argument, (uintptr_t)argument % 2);
        void *slab = cr_slab_take_or_wait(shared, &w.waiter);
        if (!slab && random_next(&state) % 4 == 0 && cr_slab_forget(shared, &w.waiter)) continue;
        if (!slab) {
            gate_wait(&w.came, 1);
            slab = w.got;
        }
        uint32_t *words = slab, mine = (uint32_t)(uintptr_t)argument;
        for (int k = 0; k < 64; k++) words[k] = mine;
        for (int k = 0; k < 64; k++) ck_assert_uint_eq(words[k], mine);
        cr_slab_give(shared, slab);
    }
    return NULL;
}

START_TEST(many_threads_share_few_slabs) {
    shared = new_slabs(FEW);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, holder, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    void *all[FEW];
    for (int i = 0; i < FEW; i++) ck_assert_ptr_nonnull(all[i] = cr_slab_take(shared, &one));
    for (int i = 0; i < FEW; i++) cr_slab_give(shared, all[i]);
    cr_slabs_free(shared);
}
END_TEST

CR_CHECK_MAIN("engine/slab") {
    tcase_add_test(tc, the_last_one_given_is_the_next_one_taken);
    tcase_add_test(tc, waiters_are_served_in_their_order_and_before_takers);
    tcase_add_test(tc, clients_take_turns);
    tcase_add_test(tc, nobody_holds_more_than_a_share_of_what_is_free);
    tcase_add_test(tc, who_is_alone_is_not_bound);
    tcase_add_test(tc, low_below_an_eighth_or_with_waiters);
    tcase_add_test(tc, too_many_or_no_memory_is_said);
    tcase_add_test(tc, all_of_them_are_pinned_and_unpinned);
    tcase_add_test(tc, many_threads_share_few_slabs);
}
