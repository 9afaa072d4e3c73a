/* Any bytes as what a client of gRPC sends: the daemon's rooms without its listeners answer in frames of HTTP/2, or end the
 * connection, and have nothing left of it afterwards. The first byte: bit 0, a good preface and SETTINGS come first; bit 1, those
 * give no window; bit 2, the bytes come in two pieces, with turns of the loop between them; bit 3, the client ends at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/rooms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 * 1024, TURNS = 4, MOST_TURNS = 1000000, HEAD_BYTES = 9, FRAME_BYTES = 16384 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static const uint8_t no_window[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0};

/* Everything that the daemon sent is frames of at most 16 KiB, of kinds that a server sends. */
static void take(client *c, bool http2) {
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->held, sizeof c->in - c->held, 0);
        size_t at = 0;
        if (n <= 0) return;
        c->held += (size_t)n;
        while (http2 && c->held - at >= HEAD_BYTES) {
            const uint8_t *head = c->in + at;
            const size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
            need(length <= FRAME_BYTES && head[3] <= 9 && head[3] != 2 && head[3] != 5 && !(head[5] & 0x80));
            if (c->held - at < HEAD_BYTES + length) break;
            at += HEAD_BYTES + length;
        }
        if (!http2) at = c->held; /* the native protocol's, which fuzz_server looks at */
        memmove(c->in, c->in + at, c->held - at);
        c->held -= at;
    }
}

static void give(client *c, const void *bytes, size_t size, bool http2) {
    if (size) send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < TURNS; i++) {
        turn();
        take(c, http2);
    }
}

static bool busy(void) {
    return metric_now(CR_M_connections) || metric_now(CR_M_jobs) || metric_now(CR_M_calls) ||
           metric_now(CR_M_slabs_used) || metric_now(CR_M_file_tasks) || metric_now(CR_M_state_bytes) || grpc.gathered;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > MOST) return 0;
    if (!grpc.loop) start_rooms();
    client *c = new_client();
    const bool http2 = data[0] & 1;
    const bool narrow = data[0] & 2;
    c->out_len = 0; /* no HELLO */
    if (http2) {
        queue_bytes(c, preface, sizeof preface - 1);
        queue_bytes(c, no_window, narrow ? sizeof no_window : HEAD_BYTES);
        if (!narrow) c->out[c->out_len - HEAD_BYTES + 2] = 0; /* SETTINGS of no bytes */
        give(c, c->out, c->out_len, http2);
        c->out_len = 0;
    }
    const size_t first = data[0] & 4 ? (size - 1) / 2 : size - 1;
    give(c, data + 1, first, http2);
    if (data[0] & 8) shutdown(c->fd, SHUT_RD);
    give(c, data + 1 + first, size - 1 - first, http2);
    free_client(c);
    for (int turns = 0; busy(); turns++) {
        need(turns < MOST_TURNS);
        turn();
    }
    return 0;
}
