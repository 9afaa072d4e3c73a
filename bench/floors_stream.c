/* floors_stream: an upload over a Unix socket beside read() of the same stream into one buffer.
 *
 * The client writes frames of FRAME_BYTES from one hot buffer; to the daemon within the credit it has. Thread: main. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/floors.h"

enum { FRAME_BYTES = 256 * 1024 };

typedef struct upload {
    const floors_options *options;
    float data[FRAME_BYTES / sizeof(float)];
    double sum; /* of one frame */
    int fd[2];  /* daemon's, floor's */
    pid_t sink;
    uint32_t stream;
    uint64_t credit;
    bool answered;
    cr_wire_result result;
    uint8_t in[64 * 1024];
    size_t held;
} upload;

/* Reads what the daemon sent: credit, or the answer. wait: until there is something. */
static bool take_frames(upload *u, bool wait) {
    ssize_t n = recv(u->fd[0], u->in + u->held, sizeof u->in - u->held, wait ? 0 : MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    u->held += (size_t)n;
    size_t at = 0;
    while (u->held - at >= CR_FRAME_HEADER_BYTES) {
        cr_frame frame;
        cr_error error;
        bool skip;
        const uint8_t *payload = u->in + at + CR_FRAME_HEADER_BYTES;
        if (cr_frame_get(u->in + at, false, &frame, &skip, &error) != CR_OK) return false;
        if (u->held - at < CR_FRAME_HEADER_BYTES + frame.length) break;
        uint64_t bytes = 0;
        if (frame.type == CR_FRAME_CREDIT) {
            if (cr_wire_unpack_credit(payload, frame.length, &bytes, &error) != CR_OK) return false;
            if (frame.stream == u->stream) u->credit += bytes;
        } else if (frame.type == CR_FRAME_RESULT) {
            if (cr_wire_unpack_result(payload, frame.length, &u->result, &error) != CR_OK) return false;
            u->answered = true;
        } else {
            fprintf(stderr, "cured-bench: the upload was answered with %s\n", cr_frame_name(frame.type));
            return false;
        }
        at += CR_FRAME_HEADER_BYTES + frame.length;
    }
    memmove(u->in, u->in + at, u->held - at);
    u->held -= at;
    return true;
}

static bool send_frame(int fd, const cr_frame *frame, const void *payload) {
    uint8_t head[CR_FRAME_HEADER_BYTES];
    cr_frame_put(head, frame);
    struct iovec parts[2] = {{head, sizeof head}, {(void *)(uintptr_t)payload, frame->length}};
    ssize_t n = writev(fd, parts, 2);
    if (n < 0) return false;
    size_t done = (size_t)n;
    if (done < sizeof head && !floors_write(fd, head + done, sizeof head - done)) return false;
    done = done < sizeof head ? 0 : done - sizeof head;
    return floors_write(fd, (const char *)payload + done, frame->length - done);
}

static bool send_call(upload *u, uint64_t bytes) {
    cr_wire_call call = {.kind = CR_CALL_REDUCE,
                         .reduce = {.source = CR_SOURCE_STREAM, .length_known = true, .length = bytes}};
    uint8_t frame[CR_FRAME_HEADER_BYTES + 64];
    u->credit = CR_CREDIT_INITIAL_BYTES;
    u->answered = false;
    return floors_write(u->fd[0], frame, floors_call(frame, sizeof frame, ++u->stream, &call));
}

static bool upload_all(upload *u, bool floor, uint64_t frames) {
    int fd = u->fd[floor];
    uint64_t total = frames * (CR_FRAME_HEADER_BYTES + FRAME_BYTES);
    if (floor ? !floors_write(fd, &total, sizeof total) : !send_call(u, frames * FRAME_BYTES)) return false;
    cr_frame frame = {.type = CR_FRAME_DATA, .stream = u->stream, .length = FRAME_BYTES};
    for (uint64_t i = 0; i < frames; i++) {
        while (!floor && u->credit < FRAME_BYTES)
            if (!take_frames(u, true)) return false;
        if (i + 1 == frames) frame.flags = CR_FLAG_END;
        if (!send_frame(fd, &frame, u->data)) return false;
        u->credit -= FRAME_BYTES;
    }
    char done;
    if (floor) return floors_read(fd, &done, 1);
    while (!u->answered)
        if (!take_frames(u, true)) return false;
    double sum;
    memcpy(&sum, u->result.results[0].value, sizeof sum);
    if (u->result.results[0].status == 0 && sum == u->sum * (double)frames) return true;
    fprintf(stderr, "cured-bench: the upload's sum is wrong: %.17g\n", sum);
    return false;
}

static double measure(void *context, int floor) {
    upload *u = context;
    const double start = bench_now();
    if (upload_all(u, floor, u->options->stream_bytes / FRAME_BYTES)) return bench_now() - start;
    fprintf(stderr, "cured-bench: the upload to the %s failed\n", floor ? "floor" : "daemon");
    return -1;
}

static bool open_upload(void *context) {
    upload *u = context;
    const floors_options *o = u->options;
    u->sink = floors_sink_start(o, o->server_core);
    floors_pin_client(o);
    if (u->sink <= 0) return false;
    for (size_t i = 0; i < FRAME_BYTES / 4; i++) {
        u->data[i] = (float)(i % 251) * 0.5f - 40;
        u->sum += (double)u->data[i];
    }
    u->fd[0] = floors_connect(o, false);
    u->fd[1] = floors_connect(o, true);
    return u->fd[0] >= 0 && u->fd[1] >= 0;
}

static void close_upload(void *context) {
    const upload *u = context;
    close(u->fd[0]);
    close(u->fd[1]);
    floors_stop(u->sink);
}

static bool one_row(const floors_options *o, const char *name, int server_core, double target) {
    static upload u;
    const uint64_t bytes = o->stream_bytes / FRAME_BYTES * FRAME_BYTES;
    const floors_row row = {name, "GB/s", "read() of the stream", false, target, 0, bytes, measure, &u};
    u = (upload){.options = o, .fd = {-1, -1}};
    return floors_run_alone(o, &row, server_core, open_upload, close_upload);
}

bool floors_stream_rows(const floors_options *o) {
    return one_row(o, "upload, daemon on one core", o->server_core, 0.85) &&
           one_row(o, "upload, daemon on any core", -1, 0);
}
