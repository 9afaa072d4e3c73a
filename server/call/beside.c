/* beside: what a call takes beside its array, from its request to its job. Thread: the loop's, but for told and look. Owner: the call;
 * while a files thread reads, what it reads for outlives the call. */
#include "server/call/beside.h"

#include <stdlib.h>

#include "base/range.h"
#include "engine/memory/bulk.h"
#include "server/call/call.h"
#include "server/call/ranked.h"

typedef unsigned long long ull;

static const char *name_of(const cr_beside *b) { return cr_beside_names_of[b->kind].name; }

const cr_beside *cr_beside_of(const cr_call *call, cr_beside_kind kind) {
    return call->beside && call->beside->each[kind].asked.source ? &call->beside->each[kind] : NULL;
}

bool cr_beside_there(const cr_call *call) { return !call->beside || call->beside->coming + call->beside->reading == 0; }

static bool comes_in_turn(const cr_call *call, const cr_beside *b) {
    return b && b->kind == CR_BESIDE_SECOND && b->asked.source == CR_SOURCE_STREAM &&
           call->request.reduce.source == CR_SOURCE_STREAM;
}

uint64_t cr_beside_in_turn(const cr_call *call) {
    const cr_beside *b = cr_beside_of(call, CR_BESIDE_SECOND);
    return comes_in_turn(call, b) ? cr_wire_beside_bytes(&b->asked) : UINT64_MAX;
}

/* Of bytes that came in turn those of the array, which has all of them. More than both have are the array's, too. */
static uint64_t first_of(uint64_t bytes, uint64_t all) {
    const uint64_t blocks = all / CR_PAIR_BLOCK_BYTES, both = 2 * CR_PAIR_BLOCK_BYTES;
    const uint64_t whole = bytes / both < blocks ? bytes / both : blocks, rest = bytes - whole * both;
    const uint64_t block = whole < blocks ? CR_PAIR_BLOCK_BYTES : all - whole * CR_PAIR_BLOCK_BYTES;
    const uint64_t more = rest > 2 * block ? rest - 2 * block : 0;
    return whole * CR_PAIR_BLOCK_BYTES + (rest < block ? rest : block) + more;
}

uint64_t cr_beside_complete(const cr_call *call, uint64_t received) {
    const bool pairs = cr_beside_in_turn(call) != UINT64_MAX;
    return pairs ? call->beside->in_turn - received : received;
}

uint64_t cr_call_least_bytes(const cr_call *call) {
    const char *what;
    const uint64_t elements = cr_call_expects(call, &what), second = cr_beside_in_turn(call);
    const uint64_t array = what ? elements * cr_dtype_size(call->dtype) : 0, more = second != UINT64_MAX ? second : 0;
    return array <= UINT64_MAX - more ? array + more : UINT64_MAX;
}

uint64_t cr_call_second_left(const cr_call *call) {
    const uint64_t all = cr_beside_in_turn(call);
    const uint64_t came = all != UINT64_MAX ? cr_beside_complete(call, call->received) : 0;
    return all != UINT64_MAX && came < all ? all - came : 0;
}

const uint8_t *cr_beside_second(const cr_call *call, uint64_t from) {
    const cr_beside *b = cr_beside_of(call, CR_BESIDE_SECOND);
    return b && b->extra ? b->extra->data + from * b->asked.element : NULL;
}

uint64_t cr_call_beside_bytes(const cr_call *call) {
    uint64_t sum = 0;
    for (int kind = 0; call->beside && kind < CR_BESIDES; kind++) {
        const cr_beside *b = cr_beside_of(call, (cr_beside_kind)kind);
        const uint64_t bytes = b && !comes_in_turn(call, b) ? cr_wire_beside_bytes(&b->asked) : 0;
        sum = bytes <= UINT64_MAX - sum ? sum + bytes : UINT64_MAX;
    }
    return sum;
}

uint64_t cr_beside_expects(const cr_call *call, const char **what) {
    for (int kind = 0; call->beside && kind < CR_BESIDES; kind++) {
        const cr_beside *b = cr_beside_of(call, (cr_beside_kind)kind);
        const cr_beside_row *row = &cr_beside_rows[kind];
        if (!b || !row->elements) continue;
        *what = row->expects;
        return row->elements(&b->asked);
    }
    *what = NULL;
    return UINT64_MAX;
}

cr_mask cr_beside_mask(const cr_call *call) {
    const cr_beside *b = cr_beside_of(call, CR_BESIDE_MASK);
    if (!b) return (cr_mask){.kind = CR_MASK_NONE};
    return (cr_mask){b->extra->data, b->asked.first, b->asked.bits ? CR_MASK_BITS : CR_MASK_BYTES, b->asked.leaves_out};
}

cr_offsets cr_beside_offsets(const cr_call *call) {
    const cr_beside *b = cr_beside_of(call, CR_BESIDE_SEGMENTS);
    if (!b) return (cr_offsets){.dtype = CR_DTYPE_NONE};
    return (cr_offsets){b->extra->data, b->asked.count - 1, (cr_dtype)b->asked.dtype};
}

cr_keys cr_beside_keys(const cr_call *call) {
    const cr_beside *b = cr_beside_of(call, CR_BESIDE_KEYS);
    const cr_wire_beside *a = &b->asked;
    return (cr_keys){b->extra->data, a->count, a->groups, a->columns, (cr_dtype)a->dtype, a->drop};
}

void cr_beside_hold(const cr_call *call, cr_job *job) {
    for (int kind = 0; call->beside && kind < CR_BESIDES; kind++)
        if (call->beside->each[kind].extra) cr_extra_hold(call->beside->each[kind].extra, job);
}

uint64_t cr_beside_progress(const cr_call *call) {
    uint64_t sum = 0;
    for (int kind = 0; call->beside && kind < CR_BESIDES; kind++)
        if (call->beside->each[kind].extra) sum += atomic_load(&call->beside->each[kind].extra->at);
    return sum;
}

static void let_go(cr_calls *calls, const cr_peer *peer, const cr_array *array) {
    if (array->kind == CR_DESCRIPTOR) cr_files_close(calls->files, peer->owner, array->descriptor);
}

/* ---- beginning ---- */

cr_status cr_beside_ask(cr_call *call, const cr_wire_beside *beside, cr_error *error) {
    if (!beside || call->request.kind != CR_CALL_REDUCE || !cr_wire_takes_beside(&call->request.reduce)) return CR_OK;
    cr_besides *all = call->beside = calloc(1, sizeof *all);
    if (!all) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for what is beside the array");
    all->call = call;
    all->calls = call->calls;
    for (int kind = 0; kind < CR_BESIDES; kind++)
        all->each[kind] = (cr_beside){.of = all, .kind = (cr_beside_kind)kind, .asked = beside[kind]};
    return CR_OK;
}

/* The elements of the array, where its shape or length says how many there are; UINT64_MAX: neither does. */
static uint64_t known_elements(const cr_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (r->has_axis) return r->outer * r->n * r->inner;
    if (!r->length_known) return UINT64_MAX;
    return r->source == CR_SOURCE_STREAM ? r->length / cr_dtype_size(call->dtype) : r->length;
}

static cr_status check(const cr_call *call, cr_beside *b, cr_error *error) {
    const cr_beside_row *row = &cr_beside_rows[b->kind];
    const cr_wire_reduce *r = &call->request.reduce;
    const char *what;
    if (r->source == CR_SOURCE_REGIONS)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "%s: not with several regions; reduce each of them with its part of the %s", name_of(b),
                       name_of(b));
    if (row->check && row->check(call, &b->asked, error) != CR_OK) return error->code;
    uint64_t known = known_elements(call);
    if (known == UINT64_MAX) known = cr_beside_expects(call, &what);
    b->elements = known;
    b->longest = cr_ranked_longest(call);
    if (!row->elements || known == UINT64_MAX || row->elements(&b->asked) == known) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %llu elements, the input %llu", row->expects,
                   (ull)row->elements(&b->asked), (ull)known);
}

cr_status cr_beside_check(const cr_call *call, cr_error *error) {
    cr_status status = CR_OK;
    for (int kind = 0; call->beside && status == CR_OK && kind < CR_BESIDES; kind++)
        if (call->beside->each[kind].asked.source) status = check(call, &call->beside->each[kind], error);
    return status;
}

/* Whether it can be read from there. */
static cr_status check_from(const cr_beside *b, const cr_array *from, cr_error *error) {
    cr_error why;
    if (from->kind == CR_DESCRIPTOR) return cr_region_readable(from->descriptor, error);
    if (from->kind != CR_KEPT) return CR_OK;
    if (from->kept->on_device)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "%s: what lies in a GPU's memory is not read; copy it to the host, or send it", name_of(b));
    if (cr_range_check(b->asked.offset, cr_wire_beside_bytes(&b->asked), from->kept->region.size, &why) == CR_OK)
        return CR_OK;
    return cr_fail(error, why.code, "%s: %s", name_of(b), why.text);
}

/* The memory for all of it, which counts as input and as state. */
static cr_status make_room(cr_call *call, cr_error *error) {
    cr_status status = cr_call_grow(call, call->ticket.bytes, error);
    if (status == CR_OK) status = cr_call_hold_state(call, cr_call_beside_bytes(call), error);
    for (int kind = 0; status == CR_OK && kind < CR_BESIDES; kind++) {
        cr_beside *b = &call->beside->each[kind];
        const uint64_t bytes = cr_wire_beside_bytes(&b->asked);
        if (!b->asked.source || comes_in_turn(call, b)) continue;
        b->extra = cr_extra_new(bytes, name_of(b));
        if (!b->extra)
            status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for %llu bytes of %s", (ull)bytes, name_of(b));
    }
    return status;
}

/* Runs on a files thread. */
static void told(cr_extra *extra) {
    const cr_beside *b = extra->owner;
    cr_calls *calls = b->of->calls;
    pthread_mutex_lock(&calls->mutex);
    cr_list_append(&calls->extras, &extra->told_link);
    calls->wake(calls->wake_argument);
    pthread_mutex_unlock(&calls->mutex);
}

/* Runs on a files thread. */
static cr_status look(const cr_extra *extra, uint64_t from, uint64_t till, cr_error *error) {
    const cr_beside *b = extra->owner;
    return cr_beside_rows[b->kind].look(b, from, till, error);
}

static void begin_reading(cr_call *call, cr_beside *b, const cr_array *from) {
    const cr_config *c = call->calls->config;
    const cr_extra_source source = {.files = call->calls->files,
                                    .kept = from->kind == CR_KEPT ? from->kept : NULL,
                                    .descriptor = from->descriptor,
                                    .offset = b->asked.offset,
                                    .client = call->peer->client,
                                    .owner = call->peer->owner,
                                    .most_foreign = (size_t)(c->max_jobs - c->max_jobs / 4)};
    if (source.kept) cr_kept_use(source.kept);
    b->state = CR_BESIDE_READING;
    b->of->reading++;
    b->extra->owner = b;
    b->extra->told = told;
    b->extra->look = cr_beside_rows[b->kind].look ? look : NULL;
    cr_extra_read(b->extra, &source);
}

static void begin(cr_call *call, cr_beside *b, const cr_array *from) {
    if (comes_in_turn(call, b)) {
        b->state = CR_BESIDE_IN_TURN;
    } else if (from->kind != CR_STREAM) {
        begin_reading(call, b, from);
    } else if (b->extra->bytes) { /* its bytes may come while the array's region opens */
        b->state = CR_BESIDE_COMING;
        b->of->coming++;
        cr_call_move(call, CR_RECEIVING, call->output);
    }
}

bool cr_call_beside(cr_call *call, const cr_array from[CR_BESIDES]) {
    cr_error error;
    cr_status status = CR_OK;
    cr_beside *const each = call->beside->each;
    for (int kind = 0; status == CR_OK && kind < CR_BESIDES; kind++)
        if (each[kind].asked.source) status = check_from(&each[kind], &from[kind], &error);
    if (status == CR_OK) status = make_room(call, &error);
    for (int kind = 0; kind < CR_BESIDES; kind++) {
        if (!each[kind].asked.source) continue;
        if (status == CR_OK)
            begin(call, &each[kind], &from[kind]);
        else
            let_go(call->calls, call->peer, &from[kind]);
    }
    if (status == CR_OK) return true;
    cr_call_fail(call, &error);
    return false;
}

/* ---- its bytes ---- */

/* The next whose bytes come in DATA, from that one on; NULL: none. */
static cr_beside *next_coming(const cr_besides *all, int from) {
    for (int kind = from; all && all->coming && kind < CR_BESIDES; kind++)
        if (all->each[kind].state == CR_BESIDE_COMING) return (cr_beside *)&all->each[kind];
    return NULL;
}

uint64_t cr_beside_announce(cr_call *call, uint64_t bytes) {
    for (cr_beside *b = next_coming(call->beside, 0); b && bytes; b = next_coming(call->beside, (int)b->kind + 1)) {
        const uint64_t left = b->extra->bytes - b->announced, own = bytes < left ? bytes : left;
        b->announced += own;
        bytes -= own;
    }
    const uint64_t all = cr_beside_in_turn(call);
    if (all == UINT64_MAX) return bytes;
    const uint64_t before = first_of(call->beside->in_turn, all);
    call->beside->in_turn += bytes;
    return first_of(call->beside->in_turn, all) - before;
}

bool cr_beside_room(const cr_call *call, uint8_t **at, size_t *room) {
    const cr_beside *b = next_coming(call->beside, 0);
    if (!b) return false;
    *at = b->extra->data + b->extra->came;
    *room = (size_t)(b->extra->bytes - b->extra->came);
    return true;
}

/* The array waits no more. */
static cr_array take_array(cr_call *call) {
    cr_besides *all = call->beside;
    if (all->parked) cr_admit_parked(&call->calls->admission, call->peer, -1);
    all->waits = all->parked = false;
    return all->array;
}

/* All is there: an array that waited begins. False: the call is gone. */
static bool go_on(cr_call *call) {
    if (!cr_beside_there(call) || !call->beside->waits) return true;
    const cr_array array = take_array(call);
    const bool lives = cr_call_start(call, &array);
    if (array.kind == CR_KEPT) cr_kept_release(array.kept);
    return lives;
}

bool cr_beside_filled(cr_call *call, size_t bytes) {
    cr_beside *b = next_coming(call->beside, 0);
    const cr_beside_row *row = &cr_beside_rows[b->kind];
    cr_extra *extra = b->extra;
    cr_error error;
    extra->came += bytes;
    if (row->look && row->look(b, extra->came - bytes, extra->came, &error) != CR_OK) {
        cr_call_fail(call, &error);
        return false;
    }
    if (extra->came < extra->bytes) return true;
    b->state = CR_BESIDE_THERE;
    b->of->coming--;
    return go_on(call);
}

bool cr_beside_wait(cr_call *call, const cr_array *input) {
    cr_admission *admission = &call->calls->admission;
    cr_besides *all = call->beside;
    const cr_user *ignored;
    cr_error error;
    all->array = *input;
    all->waits = true;
    if (input->kind == CR_KEPT) cr_kept_use(input->kept);
    /* A descriptor that waits for the client's DATA counts as one that waits for its frame: nobody else can end it. */
    if (input->kind != CR_DESCRIPTOR || all->coming == 0) return true;
    all->parked = true;
    cr_admit_parked(admission, call->peer, 1);
    if (cr_admit_check_parked(admission, call->peer, &ignored, &error) == CR_OK) return true;
    cr_stats_rejected(&call->calls->stats, CR_REASON_descriptors);
    cr_call_fail(call, &error);
    return false;
}

bool cr_beside_end(cr_call *call) {
    cr_besides *all = call->beside;
    const cr_beside *b = next_coming(all, 0);
    cr_error error;
    if (!all) return true;
    if (b) {
        cr_fail(&error, CR_DATA_LOSS, "%s: %llu bytes were declared, END came after %llu", name_of(b),
                (ull)b->extra->bytes, (ull)b->extra->came);
        cr_call_fail(call, &error);
        return false;
    }
    all->ended = true;
    return cr_beside_there(call) && call->request.reduce.source == CR_SOURCE_STREAM;
}

/* ---- what was read ---- */

static void free_all(cr_besides *all) {
    for (int kind = 0; kind < CR_BESIDES; kind++)
        if (all->each[kind].extra) cr_extra_release(all->each[kind].extra);
    free(all);
}

/* No job holds them, and no call: whether a files thread gives some of them back, which are large. */
static bool empty_all(cr_besides *all) {
    for (int kind = 0; all->calls->files && kind < CR_BESIDES; kind++) {
        cr_beside *b = &all->each[kind];
        if (!b->extra || b->extra->held.left < CR_BULK_BYTES) continue;
        b->extra->owner = b;
        b->extra->told = told;
        all->reading++;
        cr_extra_empty(b->extra, all->calls->files, all->ticket.user->node.key, all->client);
    }
    return all->reading;
}

static void was_read(cr_extra *extra) {
    cr_beside *b = extra->owner;
    cr_besides *all = b->of;
    cr_call *call = all->call;
    cr_error error = extra->error;
    cr_extra_release(extra); /* the reading's use */
    b->state = CR_BESIDE_THERE;
    all->reading--;
    if (!call) { /* which is over */
        if (all->reading || empty_all(all)) return;
        cr_admit_over(&all->calls->admission, &all->ticket);
        free_all(all);
    } else if (error.code != CR_OK) {
        cr_call_fail(call, &error);
    } else if (go_on(call) && cr_beside_there(call) && call->input == CR_RECEIVING) {
        if (all->ended)
            cr_call_end(call);
        else
            call->front->room(call);
    }
}

void cr_beside_turn(cr_calls *calls) {
    for (;;) {
        pthread_mutex_lock(&calls->mutex);
        cr_list *node = cr_list_pop(&calls->extras);
        pthread_mutex_unlock(&calls->mutex);
        if (!node) return;
        was_read(cr_container(node, cr_extra, told_link));
    }
}

bool cr_beside_drop(cr_call *call) {
    cr_besides *all = call->beside;
    if (!all) return false;
    if (all->waits) {
        const cr_array array = take_array(call);
        if (array.kind == CR_KEPT) cr_kept_release(array.kept);
        let_go(call->calls, call->peer, &array);
    }
    call->beside = NULL;
    all->call = NULL;
    all->client = call->peer->client;
    all->ticket = call->ticket;
    if (!all->reading && (call->job || !empty_all(all))) {
        free_all(all);
        return false;
    }
    cr_admit_answered(&all->ticket);
    for (int kind = 0; kind < CR_BESIDES; kind++)
        if (all->each[kind].state == CR_BESIDE_READING) atomic_store(&all->each[kind].extra->unwanted, true);
    return true;
}
