/* Any bytes as what a client sends: the daemon's rooms without its listeners answer in frames, or end the connection, and have
 * nothing left of it afterwards. The first byte: bit 0, a good HELLO comes first; bit 1, a memfd comes with the first bytes; bit 2,
 * the bytes come in two pieces, with turns of the loop between them. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/rooms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 * 1024, TURNS = 4, MOST_TURNS = 1000000, FILE_BYTES = 8192 };

static int memory = -1;

static void start(void) {
    static uint8_t bytes[FILE_BYTES];
    memory = memfd_create("fuzz", MFD_CLOEXEC);
    memset(bytes, 3, sizeof bytes);
    need(memory >= 0 && write(memory, bytes, sizeof bytes) == sizeof bytes);
    start_rooms();
}

/* Everything that the daemon sent is frames that a client may get. */
static void take(client *c) {
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->held, sizeof c->in - c->held, 0);
        size_t at = 0;
        cr_frame frame;
        cr_error e;
        bool skip;
        if (n <= 0) return;
        c->held += (size_t)n;
        while (c->held - at >= CR_FRAME_HEADER_BYTES) {
            need(cr_frame_get(c->in + at, false, &frame, &skip, &e) == CR_OK && !skip);
            need(frame.length + CR_FRAME_HEADER_BYTES <= sizeof c->in);
            if (c->held - at < CR_FRAME_HEADER_BYTES + frame.length) break;
            at += CR_FRAME_HEADER_BYTES + frame.length;
        }
        memmove(c->in, c->in + at, c->held - at);
        c->held -= at;
    }
}

static void give(client *c, const uint8_t *bytes, size_t size, bool with_memory) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec iov = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (with_memory) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof memory);
        memcpy(CMSG_DATA(head), &memory, sizeof memory);
    }
    if (size != 0) sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < TURNS; i++) {
        turn();
        take(c);
    }
    tell_reloads();
}

static bool busy(void) {
    return metric_now(CR_M_connections) || metric_now(CR_M_jobs) || metric_now(CR_M_calls) ||
           metric_now(CR_M_regions) || metric_now(CR_M_slabs_used) || metric_now(CR_M_file_tasks) ||
           metric_now(CR_M_state_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > MOST) return 0;
    /* It would be HTTP/2, whose answers are no frames of ours: fuzz_grpc asks for those. */
    if (!(data[0] & 1) && size > 3 && memcmp(data + 1, "PRI", 3) == 0) return 0;
    if (memory < 0) start();
    client *c = new_client();
    if (!(data[0] & 1)) c->out_len = 0;
    step(c, SIZE_MAX, 0);
    size_t first = data[0] & 4 ? (size - 1) / 2 : size - 1;
    give(c, data + 1, first, data[0] & 2);
    give(c, data + 1 + first, size - 1 - first, false);
    free_client(c);
    for (int turns = 0; busy(); turns++) {
        need(turns < MOST_TURNS);
        turn();
    }
    return 0;
}
