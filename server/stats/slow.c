/* slow: the slowest calls of the last hour.
 *
 * There is room for CR_STATS_SLOW_MOST. A call that is slower than the fastest of them takes its place. Of one user there are at
 * most half of them beside others: then its own fastest goes. One that has more, because it was alone, gives them to whoever comes.
 * Thread: the loop's. Owner: the stats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/core/dtype.h"
#include "server/stats/stats.h"

enum { KEPT_MS = 60 * 60 * 1000 };

static uint32_t held_by(const cr_stats *s, uint64_t owner) {
    uint32_t held = 0;
    for (uint32_t i = 0; i < s->slow_count; i++) held += s->slow[i].owner == owner;
    return held;
}

/* After a change: what a call must take to be among them, and who has more than half. */
static void look_again(cr_stats *s) {
    uint64_t least = UINT64_MAX, mostly = 0;
    uint32_t lead = 0;
    s->slow_bar_ns = s->small_most_ns = s->slow_owner = 0;
    if (s->slow_count < CR_STATS_SLOW_MOST) return;
    for (uint32_t i = 0; i < s->slow_count; i++) {
        const cr_slow *slow = &s->slow[i];
        if (slow->total_ns < least) least = slow->total_ns;
        if (!lead) mostly = slow->owner; /* only who has more than half leads to the end */
        lead = slow->owner == mostly ? lead + 1 : lead - 1;
    }
    s->slow_bar_ns = least;
    s->small_most_ns = least < UINT32_MAX ? least : UINT32_MAX;
    if (held_by(s, mostly) > CR_STATS_SLOW_MOST / 2) s->slow_owner = mostly;
}

void cr_stats_forget_slow(cr_stats *s, uint64_t now_ms) {
    for (uint32_t i = 0; i < s->slow_count;) {
        if (now_ms - s->slow[i].ended_ms < KEPT_MS)
            i++;
        else
            s->slow[i] = s->slow[--s->slow_count];
    }
    look_again(s);
}

/* The place that goes for a call of owner's; NULL: it is faster than all that could. */
static cr_slow *place_for(cr_stats *s, uint64_t owner, uint64_t total_ns) {
    cr_slow *found = NULL;
    if (s->slow_count < CR_STATS_SLOW_MOST) return &s->slow[s->slow_count++];
    const uint32_t own = held_by(s, owner);
    const bool given = s->slow_owner && s->slow_owner != owner;
    for (uint32_t i = 0; i < s->slow_count; i++) {
        cr_slow *slow = &s->slow[i];
        if (own >= CR_STATS_SLOW_MOST / 2 && own < CR_STATS_SLOW_MOST && slow->owner != owner) continue;
        if (given ? slow->owner != s->slow_owner : slow->total_ns >= total_ns) continue;
        if (!found || slow->total_ns < found->total_ns) found = slow;
    }
    return found;
}

/* Appends a word to a list of them, if it fits. */
static void append(char *list, size_t cap, const char *word) {
    const size_t used = strlen(list);
    if (used + strlen(word) + 2 <= cap) snprintf(list + used, cap - used, "%s%s", used ? "," : "", word);
}

static uint64_t stage_of(const cr_record *r, cr_stage stage) {
    return r->stages[stage] == CR_NO_STAGE ? 0 : r->stages[stage];
}

void cr_stats_describe(const cr_stats *s, const cr_record *r, cr_wire_slow_call *m) {
    const cr_peer *peer = r->peer;
    *m = (cr_wire_slow_call){.connection = peer->number,
                             .has_uid = peer->has_uid,
                             .uid = peer->uid,
                             .pid = peer->pid,
                             .code = (uint32_t)r->code,
                             .bytes = r->bytes,
                             .receive_ns = stage_of(r, CR_STAGE_receive),
                             .queue_ns = stage_of(r, CR_STAGE_queue),
                             .run_ns = stage_of(r, CR_STAGE_run),
                             .send_ns = stage_of(r, CR_STAGE_send),
                             .total_ns = stage_of(r, CR_STAGE_total)};
    snprintf(m->client, sizeof m->client, "%s", peer->name);
    for (char *c = m->client; *c; c++) /* cut characters are no UTF-8 */
        if (*c < ' ' || *c > '~') *c = '?';
    if (peer->user)
        cr_user_name(peer->user, m->user, sizeof m->user);
    else
        cr_peer_name(peer->owner, m->user, sizeof m->user);
    snprintf(m->front, sizeof m->front, "%s", cr_spoken_names[peer->spoken]);
    snprintf(m->transport, sizeof m->transport, "%s", cr_path_names[peer->path]);
    snprintf(m->method, sizeof m->method, "%s", cr_method_names[r->method]);
    snprintf(m->source, sizeof m->source, "%s", cr_given_names[r->given]);
    if (r->dtype) snprintf(m->dtype, sizeof m->dtype, "%s", cr_dtype_name(r->dtype));
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op))
        if (cr_ops_has(r->ops, op)) append(m->ops, sizeof m->ops, cr_op_name(op));
    if (r->on_loop) append(m->lanes, sizeof m->lanes, "loop");
    for (uint32_t i = 0; s->sources.lanes && i < s->sources.lanes->count; i++) {
        char name[CR_NAME_MAX_BYTES];
        if (r->lanes >> (i ? 1 + s->sources.lanes->types[i]->info(s->sources.lanes->lanes[i]).ordinal : 0) & 1)
            append(m->lanes, sizeof m->lanes, cr_stats_lane_name(s->sources.lanes, i, name, sizeof name));
    }
}

void cr_stats_keep_slow(cr_stats *s, const cr_record *r) {
    const uint64_t now_ms = r->ended_ms;
    const uint64_t total = r->stages[CR_STAGE_total];
    cr_slow *to = place_for(s, r->peer->owner, total);
    if (to) *to = (cr_slow){.total_ns = total, .ended_ms = now_ms, .owner = r->peer->owner};
    if (to) cr_stats_describe(s, r, &to->call);
    look_again(s);
}

void cr_stats_add_slow(cr_stats *to, cr_stats *others) {
    for (uint32_t i = 0; i < others->slow_count; i++) {
        const cr_slow *slow = &others->slow[i];
        const bool given = to->slow_owner && to->slow_owner != slow->owner;
        if (slow->total_ns <= to->slow_bar_ns && !given) continue;
        cr_slow *place = place_for(to, slow->owner, slow->total_ns);
        if (place) *place = *slow;
        look_again(to);
    }
    others->slow_count = 0;
    /* What home would not keep they need not look at. */
    others->slow_bar_ns = to->slow_bar_ns;
    others->small_most_ns = to->small_most_ns;
    others->slow_owner = to->slow_owner;
}

static int slower(const void *one, const void *other) {
    const cr_slow *a = *(const cr_slow *const *)one, *b = *(const cr_slow *const *)other;
    return a->total_ns < b->total_ns ? 1 : a->total_ns > b->total_ns ? -1 : 0;
}

void cr_stats_slow(cr_stats *s, const cr_stats_asker *asker, cr_wire_slow_log *out) {
    const cr_slow *shown[CR_STATS_SLOW_MOST];
    const uint64_t now_ms = cr_now_ms();
    cr_stats_gather(s);
    cr_stats_forget_slow(s, now_ms);
    out->count = 0;
    for (uint32_t i = 0; i < s->slow_count; i++)
        if (asker->all || (asker->own && asker->own->node.key == s->slow[i].owner)) shown[out->count++] = &s->slow[i];
    qsort(shown, out->count, sizeof shown[0], slower);
    for (uint32_t i = 0; i < out->count; i++) {
        out->calls[i] = shown[i]->call;
        out->calls[i].age_ms = now_ms - shown[i]->ended_ms;
    }
}
