/* accounts: answers that are no numbers: what a daemon says of itself, of its options and of its calls.
 *
 * Thread: the one that uses the connection. Owner: the call keeps what was told. */
#include <stdlib.h>

#include "client/lib/call/call.h"
#include "proto/wire_stats.h"

/* The public form points into a copy of the wire's, in one piece of memory. */
struct info_block {
    cured_server_info info;
    cured_lane lanes[CR_WIRE_MAX_LANES];
    cured_counter counters[CR_WIRE_MAX_COUNTERS];
    cured_user users[CR_WIRE_MAX_USERS];
    cr_wire_info wire;
};

static cured_held held_of(const cr_wire_held *m) {
    return (cured_held){
#define CR_USE(name) .name = m->name,
#include "proto/use.def"
#undef CR_USE
    };
}

bool cr_cl_call_put_info(cured_call *call, const cr_wire_info *info) {
    struct info_block *b = malloc(sizeof *b);
    if (b == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the answer");
        return false;
    }
    b->wire = *info;
    const cr_wire_info *w = &b->wire;
    for (uint32_t i = 0; i < w->lane_count; i++)
        b->lanes[i] =
            (cured_lane){w->lanes[i].name, w->lanes[i].device, w->lanes[i].workers, w->lanes[i].bytes_per_second};
    for (uint32_t i = 0; i < w->counter_count; i++)
        b->counters[i] = (cured_counter){w->counters[i].name, w->counters[i].value};
    for (uint32_t i = 0; i < w->user_count; i++)
        b->users[i] =
            (cured_user){w->users[i].name, w->users[i].own, held_of(&w->users[i].used), held_of(&w->users[i].limit)};
    b->info = (cured_server_info){
        .version = w->version,
        .backend = w->backend,
        .backend_reason = w->backend_reason,
        .uptime_ms = w->uptime_ms,
        .lane_count = w->lane_count,
        .counter_count = w->counter_count,
        .lanes = b->lanes,
        .counters = b->counters,
        .max_ops = w->limits.ops,
        .max_jobs_per_connection = w->limits.jobs_per_connection,
        .max_input_bytes = w->limits.input_bytes,
        .credit_bytes = w->limits.credit_bytes,
        .max_regions_per_connection = w->limits.regions_per_connection,
        .max_region_bytes = w->limits.region_bytes,
        .user_count = w->user_count,
        .users = b->users,
    };
    call->info = &b->info; /* first member: freed by this pointer */
    return true;
}
_Static_assert(offsetof(struct info_block, info) == 0, "call->info is the block that is freed");

/* What cured_reloaded points at; its first member is what is freed. */
struct reloaded_block {
    cured_reloaded reloaded;
    const char *changed[CR_WIRE_MAX_OPTIONS], *restart[CR_WIRE_MAX_OPTIONS];
    cr_wire_reloaded wire;
};

static cr_status take_info(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    cr_wire_info info;
    if (cr_wire_unpack_info(in, len, &info, error) != CR_OK) return error->code;
    if (cr_cl_call_put_info(call, &info)) cr_cl_call_finish(call, CR_OK, 0, "");
    return CR_OK;
}

static cr_status take_reloaded(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    struct reloaded_block *b = malloc(sizeof *b);
    if (b == NULL) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the answer");
        return CR_OK;
    }
    if (cr_wire_unpack_reloaded(in, len, &b->wire, error) != CR_OK) {
        free(b);
        return error->code;
    }
    for (uint32_t i = 0; i < b->wire.changed_count; i++) b->changed[i] = b->wire.changed[i];
    for (uint32_t i = 0; i < b->wire.restart_count; i++) b->restart[i] = b->wire.restart[i];
    b->reloaded = (cured_reloaded){.changed_count = b->wire.changed_count,
                                   .restart_count = b->wire.restart_count,
                                   .changed = b->changed,
                                   .restart = b->restart};
    call->reloaded = &b->reloaded;
    cr_cl_call_finish(call, CR_OK, 0, "");
    return CR_OK;
}
_Static_assert(offsetof(struct reloaded_block, reloaded) == 0, "call->reloaded is the block that is freed");

/* ---- as JSON ---- */

typedef union told {
    cr_wire_stats stats;
    cr_wire_slow_log log;
    cr_wire_settings settings;
} told;

/* The answer as JSON in text, which has CR_WIRE_JSON_BYTES. */
static cr_status to_json(uint32_t kind, const uint8_t *in, uint32_t len, told *m, char *text, size_t *bytes,
                         cr_error *error) {
    const cr_status status = kind == KIND_SLOW_LOG ? cr_wire_unpack_slow_log(in, len, &m->log, error)
                             : kind == KIND_CONFIG ? cr_wire_unpack_settings(in, len, &m->settings, error)
                                                   : cr_wire_unpack_stats(in, len, &m->stats, error);
    if (status == CR_OK)
        *bytes = kind == KIND_SLOW_LOG ? cr_wire_slow_json(&m->log, text, CR_WIRE_JSON_BYTES)
                 : kind == KIND_CONFIG ? cr_wire_settings_json(&m->settings, text, CR_WIRE_JSON_BYTES)
                                       : cr_wire_stats_json(&m->stats, NULL, text, CR_WIRE_JSON_BYTES);
    if (status == CR_OK && *bytes == 0)
        return cr_fail(error, CR_INTERNAL, "the answer takes more than %d bytes of JSON", CR_WIRE_JSON_BYTES);
    return status;
}

static cr_status take_json(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    told *m = malloc(sizeof *m);
    char *text = malloc(CR_WIRE_JSON_BYTES), *fitting;
    const bool memory = m && text;
    size_t n = 0;
    cr_status status = memory ? to_json(call->kind, in, len, m, text, &n, error) : CR_OK;
    if (memory && status == CR_OK) {
        if ((fitting = realloc(text, n + 1)) != NULL) text = fitting;
        call->json = text;
        text = NULL;
        cr_cl_call_finish(call, CR_OK, 0, "");
    } else if (!memory) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the answer");
    }
    free(text);
    free(m);
    return status;
}

cr_status cr_cl_call_take_account(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    if (call->kind == KIND_INFO) return take_info(call, in, len, error);
    if (call->kind == KIND_RELOAD) return take_reloaded(call, in, len, error);
    return take_json(call, in, len, error);
}
