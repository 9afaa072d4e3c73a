/* stats: what a daemon knows about its calls, as JSON.
 *
 * Thread: the connection's. Owner: the call keeps the text. */
#include <stdlib.h>

#include "client/lib/internal.h"
#include "proto/wire_stats.h"

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

cr_status cr_cl_call_tell(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
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
