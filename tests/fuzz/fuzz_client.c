/* Any bytes as what a daemon sends: libcured with calls of every kind in flight takes them for answers, or ends the
 * connection with a sentence. The first byte: bit 0, a good WELCOME comes first; bit 1, the daemon leaves afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cured/cured.h"
#include "proto/frame.h"
#include "proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 9, TURNS = 64, MOST = 64 * 1024 };

static int listener = -1, memory;
static char path[64];

static void leave(void) { unlink(path); }

static void need(bool good) {
    if (!good) abort();
}

static void start_listener(void) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "/tmp/cured-fuzz-%ld", (long)getpid());
    memcpy(un.sun_path, path, strlen(path) + 1);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memory = memfd_create("fuzz", MFD_CLOEXEC);
    need(listener >= 0 && bind(listener, (struct sockaddr *)&un, sizeof un) == 0 && listen(listener, 8) == 0);
    need(ftruncate(memory, 12) == 0 && atexit(leave) == 0);
}

static void on_part(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user) {
    (void)values;
    (void)user;
    need(index == 0 && first < 4 && count >= 1 && count <= 4 - first);
    cured_cancel(call);
}

static void on_progress(cured_call *call, uint64_t done, uint64_t total, void *user) {
    (void)done;
    (void)total;
    (void)user;
    cured_cancel(call);
}

/* Streams 1 to 9, one of them the region's, a PING, and stream 10 once a WELCOME grants partials by key. */
static cured_region *start(cured_conn *conn, cured_call *calls[CALLS + 1]) {
    static const float three[] = {1, 2, 3}, four[] = {1, 2, 3, 4};
    static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MIN, CURED_OP_ARGMAX};
    static const cured_axis axis = {2, 1, 2};
    static const uint8_t of_three[] = {0, 1, 0};
    static const cured_keys keys = {of_three, 3, CURED_U8, 2, 1, false};
    cured_options o = CURED_OPTIONS_INIT, along, parts, partial, keyed, progress;
    cured_region *region;
    o.retries = 0;
    along = parts = partial = keyed = progress = o;
    along.axis = parts.axis = &axis;
    parts.on_part = on_part;
    partial.partial = keyed.partial = true;
    keyed.keys = &keys;
    progress.on_progress = on_progress;
    progress.progress_ms = 1;
    need(cured_reduce_buffer(conn, CURED_F32, ops, 3, three, 3, &o, &calls[0], NULL) == CURED_OK);
    need(cured_reduce_buffer(conn, CURED_F32, ops, 1, four, 4, &along, &calls[1], NULL) == CURED_OK);
    need(cured_reduce_buffer(conn, CURED_F32, ops, 1, four, 4, &parts, &calls[2], NULL) == CURED_OK);
    need(cured_reduce_buffer(conn, CURED_F32, ops, 1, three, 3, &partial, &calls[3], NULL) == CURED_OK);
    need(cured_info(conn, &o, &calls[4], NULL) == CURED_OK);
    need(cured_region_fd(conn, memory, &region, NULL) == CURED_OK);
    need(cured_region_reduce(region, CURED_F32, ops, 2, 0, 3, &o, &calls[5], NULL) == CURED_OK);
    need(cured_reduce_stream_begin(conn, CURED_F32, ops, 1, CURED_UNKNOWN_LENGTH, &progress, &calls[6], NULL) ==
         CURED_OK);
    need(cured_reduce_fd(conn, CURED_F32, ops, 1, memory, 0, 3, &o, &calls[7], NULL) == CURED_OK);
    need(cured_ping(conn, &o, &calls[8], NULL) == CURED_OK);
    need(cured_reduce_buffer(conn, CURED_F32, ops, 1, three, 3, &keyed, &calls[9], NULL) == CURED_OK);
    return region;
}

/* Whatever was taken for an answer can be read. */
static void read_answers(const cured_call *call) {
    char text[CURED_TEXT_BYTES];
    cured_dtype dtype;
    cured_error error;
    uint64_t count;
    size_t bytes;
    if (!cured_call_done(call)) return;
    cured_status status = cured_call_status(call, &error);
    need(status == CURED_OK || memchr(error.text, '\0', sizeof error.text) != NULL);
    for (size_t i = 0; cured_call_value(call, i) != NULL; i++) {
        const cured_value *v = cured_call_value(call, i);
        const void *element = cured_value_bytes(v, &bytes);
        if (cured_value_status(v, NULL) != CURED_OK) continue;
        need(element != NULL && cured_value_text(v, text, sizeof text) == CURED_OK);
        const void *at = cured_value_at(v, &dtype, &bytes);
        need(at == NULL || cured_text(dtype, at, bytes, text, sizeof text) == CURED_OK);
        double number;
        int64_t integer;
        cured_value_double(v, &number);
        cured_value_int64(v, &integer);
    }
    const double *answers = cured_call_array(call, 0, &dtype, &count);
    if (answers != NULL) need(dtype == CURED_F64 && count == 4 && answers[3] + 1 != 0.125);
    const void *partial = cured_call_partial(call, &bytes);
    need((partial == NULL) == (bytes == 0) && bytes <= CURED_PARTIAL_BYTES);
    const cured_server_info *info = cured_call_info(call);
    for (size_t i = 0; info != NULL && i < info->counter_count; i++) need(strlen(info->counters[i].name) < 256);
}

static void drain(int peer) {
    static uint8_t sink[MOST];
    while (recv(peer, sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cured_conn *conn;
    cured_call *calls[CALLS + 1];
    uint8_t welcome[256];
    if (size == 0 || size > MOST) return 0;
    if (listener < 0) start_listener();
    need(cured_connect(path, NULL, &conn, NULL) == CURED_OK);
    int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    need(peer >= 0);
    cured_region *region = start(conn, calls);
    if (data[0] & 1) {
        cr_wire_welcome w = {.version = 1, .server = "fuzz/1", .feature_count = 2, .features = {"keys", "keyed"}};
        size_t n = cr_wire_pack_welcome(&w, welcome + CR_FRAME_HEADER_BYTES, sizeof welcome - CR_FRAME_HEADER_BYTES);
        cr_frame f = {.type = CR_FRAME_WELCOME, .length = (uint32_t)n};
        cr_frame_put(welcome, &f);
        need(send(peer, welcome, CR_FRAME_HEADER_BYTES + n, MSG_NOSIGNAL) > 0);
    }
    cured_process(conn, NULL); /* the calls go out */
    drain(peer);
    need(size == 1 || send(peer, data + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size - 1);
    for (int i = 0; i < TURNS && cured_fd(conn) >= 0; i++) {
        if (i == TURNS / 2 && data[0] & 2) shutdown(peer, SHUT_RDWR);
        cured_process(conn, NULL);
        drain(peer);
    }
    for (int i = 0; i <= CALLS; i++) {
        read_answers(calls[i]);
        cured_call_free(calls[i]);
    }
    cured_region_free(region);
    cured_close(conn);
    close(peer);
    return 0;
}
