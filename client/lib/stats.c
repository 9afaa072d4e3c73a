/* stats: what a daemon knows about its calls, as JSON.
 *
 * Thread: the connection's. Owner: the call keeps the text. */
#include <stdlib.h>

#include "client/lib/internal.h"
#include "proto/wire_stats.h"

cr_status cr_cl_call_tell(cured_call *call, const uint8_t *in, uint32_t len, cr_error *error) {
    cr_wire_stats *stats = malloc(sizeof *stats);
    cr_wire_slow_log *log = malloc(sizeof *log);
    char *text = malloc(CR_WIRE_JSON_BYTES), *fitting;
    const bool slow = call->kind == KIND_SLOW_LOG, memory = stats && log && text;
    cr_status status = !memory ? CR_OK
                       : slow  ? cr_wire_unpack_slow_log(in, len, log, error)
                               : cr_wire_unpack_stats(in, len, stats, error);
    if (memory && status == CR_OK) {
        const size_t n = slow ? cr_wire_slow_json(log, text, CR_WIRE_JSON_BYTES)
                              : cr_wire_stats_json(stats, NULL, text, CR_WIRE_JSON_BYTES);
        if ((fitting = realloc(text, n + 1)) != NULL) text = fitting;
        call->json = text;
        text = NULL;
        cr_cl_call_finish(call, CR_OK, 0, "");
    } else if (!memory) {
        cr_cl_call_finish(call, CR_RESOURCE_EXHAUSTED, 0, "no memory for the answer");
    }
    free(text);
    free(log);
    free(stats);
    return status;
}
