/* health: see health.h. Thread: the loop's. Owner: the stream. */
#include "server/grpc/health.h"

#include <string.h>

#include "base/clock.h"
#include "server/call/ready.h"

enum {
    BETWEEN_MS = 100
}; /* between two changes that watchers hear of: a daemon may be full a thousand times a second */
enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

/* The name in a HealthCheckRequest, its field 1. False: it is none that is served. */
static bool knows(const uint8_t *in, size_t len, bool *valid) {
    static const char name[] = "cured.v1.Cured";
    cr_wire_bulk found;
    const cr_wire_scan scan = cr_wire_find_bulk(in, len, len, 1, &found);
    *valid = scan != CR_SCAN_BAD;
    if (scan != CR_SCAN_BULK) return true; /* the whole server is meant */
    return !found.bytes || (found.bytes == sizeof name - 1 && memcmp(in + found.at, name, sizeof name - 1) == 0);
}

static void send_status(cr_grpc_stream *stream, uint8_t status) {
    uint8_t *at = cr_grpc_reply_room(stream, 2);
    if (!at) return;
    at[0] = 1 << 3; /* HealthCheckResponse.status */
    at[1] = status;
    cr_grpc_reply_message(stream, 2);
}

static uint8_t status_of(const cr_grpc *grpc) {
    cr_error why;
    return cr_calls_unready(grpc->calls, &why) ? NOT_SERVING : SERVING;
}

static bool refuse(cr_grpc_stream *stream, cr_status code, const char *text) {
    cr_error error;
    cr_fail(&error, code, "%s", text);
    return cr_grpc_stream_fail(stream, &error);
}

bool cr_health_check(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    bool valid;
    (void)whole;
    if (!knows(in, len, &valid))
        return refuse(stream, CR_NOT_FOUND, "service: the health of cured.v1.Cured, and of \"\", is known");
    if (!valid) return refuse(stream, CR_INVALID_ARGUMENT, "HealthCheckRequest is no valid protobuf message");
    send_status(stream, status_of(stream->conn->grpc));
    cr_grpc_reply_end(stream, NULL);
    return true;
}

bool cr_health_watch(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    bool valid;
    cr_grpc *grpc = stream->conn->grpc;
    (void)whole;
    const bool known = knows(in, len, &valid);
    if (!valid) return refuse(stream, CR_INVALID_ARGUMENT, "HealthCheckRequest is no valid protobuf message");
    stream->told = known ? status_of(grpc) : SERVICE_UNKNOWN;
    send_status(stream, stream->told);
    if (known) cr_list_append(&grpc->watchers, &stream->watching);
    if (known && grpc->told != stream->told) grpc->told = 0; /* not all were told the same */
    return true;
}

/* It only wakes the loop, whose doors then look again. */
static void on_later(cr_timer *timer) { (void)timer; }

void cr_health_look(cr_grpc *grpc) {
    if (cr_list_empty(&grpc->watchers)) return;
    const uint8_t status = status_of(grpc);
    if (status == grpc->told || grpc->later.slot) return;
    const uint64_t now = cr_now_ms(), next = grpc->told_ms + BETWEEN_MS;
    grpc->later.fire = on_later;
    if (now < next && !grpc->calls->draining && cr_timer_set(&grpc->calls->timers, &grpc->later, next)) return;
    grpc->told = status;
    grpc->told_ms = now;
    for (cr_list *node = grpc->watchers.next; node != &grpc->watchers; node = node->next) {
        cr_grpc_stream *stream = cr_container(node, cr_grpc_stream, watching);
        if (stream->told == status) continue;
        stream->told = status;
        send_status(stream, status);
    }
}

void cr_health_forget(cr_grpc *grpc) { cr_timer_stop(&grpc->calls->timers, &grpc->later); }
