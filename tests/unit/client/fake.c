/* fake: the daemon for tests of libcured.
 *
 * Thread: the test's. */
#include "tests/unit/client/fake.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void fake_start(fake *f) {
    memset(f, 0, sizeof *f);
    f->peer = -1;
    strcpy(f->dir, "/tmp/cured-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
    snprintf(f->address, sizeof f->address, "unix:%s/s", f->dir);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "%s/s", f->dir);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(f->listener, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(listen(f->listener, 8), 0);
    f->cap = 32u << 20;
    f->in = malloc(f->cap);
}

void fake_drop(fake *f) {
    if (f->peer >= 0) close(f->peer);
    f->peer = -1;
    for (int i = 0; i < f->fd_count; i++) close(f->fds[i]);
    f->fd_count = 0;
    f->len = f->at = f->received = 0;
}

void fake_stop(fake *f) {
    fake_drop(f);
    if (f->listener >= 0) close(f->listener);
    unlink(f->address + 5);
    rmdir(f->dir);
    free(f->in);
}

void fake_accept(fake *f) {
    ck_assert_int_lt(f->peer, 0);
    f->peer = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(f->peer, 0);
}

static void take_fds(fake *f, struct msghdr *msg, size_t bytes) {
    ck_assert((msg->msg_flags & MSG_CTRUNC) == 0);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_lt(f->fd_count, FAKE_MAX_FDS);
            memcpy(&f->fds[f->fd_count], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            f->fd_begin[f->fd_count] = f->received;
            f->fd_end[f->fd_count++] = f->received + bytes;
        }
    }
}

bool fake_read(fake *f) {
    if (f->at == f->len) f->at = f->len = 0;
    for (;;) {
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(FAKE_MAX_FDS * sizeof(int))];
        } control;
        ck_assert_uint_lt(f->len, f->cap);
        struct iovec iov = {f->in + f->len, f->cap - f->len};
        struct msghdr msg = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        ssize_t n = recvmsg(f->peer, &msg, MSG_CMSG_CLOEXEC);
        if (n < 0) return errno == EAGAIN;
        if (n == 0) return false;
        take_fds(f, &msg, (size_t)n);
        f->len += (size_t)n;
        f->received += (size_t)n;
    }
}

bool fake_take(fake *f, cr_frame *frame, const uint8_t **payload) {
    cr_error e;
    bool skip;
    size_t have = f->len - f->at;
    if (have < CR_FRAME_HEADER_BYTES) return false;
    cr_status s = cr_frame_get(f->in + f->at, true, frame, &skip, &e);
    ck_assert_msg(s == CR_OK, "the client sent a bad header: %s", e.text);
    if (have < CR_FRAME_HEADER_BYTES + frame->length) return false;
    *payload = f->in + f->at + CR_FRAME_HEADER_BYTES;
    f->at += CR_FRAME_HEADER_BYTES + frame->length;
    return true;
}

void fake_expect(fake *f, cured_conn *conn, cr_frame_type type, cr_frame *frame, const uint8_t **payload) {
    for (int turn = 0; turn < 10000; turn++) {
        if (turn > 100) poll(NULL, 0, 1); /* a try that comes later */
        if (fake_take(f, frame, payload)) {
            ck_assert_str_eq(cr_frame_name(frame->type), cr_frame_name(type));
            return;
        }
        if (conn != NULL) cured_process(conn, NULL);
        ck_assert_msg(fake_read(f), "the client left instead of sending %s", cr_frame_name(type));
    }
    ck_abort_msg("no %s came", cr_frame_name(type));
}

void fake_settle(fake *f, cured_conn *conn) {
    size_t before;
    do {
        before = f->received;
        cured_process(conn, NULL);
        fake_read(f);
    } while (f->received != before);
}

void fake_send_raw(fake *f, const void *bytes, size_t len) {
    ck_assert_int_eq(send(f->peer, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

void fake_send(fake *f, cr_frame_type type, uint16_t flags, uint32_t stream, const void *payload, size_t len) {
    uint8_t frame[CR_FRAME_HEADER_BYTES + CR_HEAD_MAX_BYTES];
    cr_frame h = {.type = (uint8_t)type, .flags = flags, .stream = stream, .length = (uint32_t)len};
    ck_assert_uint_le(len, CR_HEAD_MAX_BYTES);
    cr_frame_put(frame, &h);
    if (len != 0) memcpy(frame + CR_FRAME_HEADER_BYTES, payload, len);
    fake_send_raw(f, frame, CR_FRAME_HEADER_BYTES + len);
}

void fake_part(fake *f, uint32_t stream, const cr_wire_part *m) {
    const size_t room = CR_WIRE_PART_HEAD_BYTES + m->statuses_len;
    uint8_t *p = malloc(room + m->values_len);
    size_t n = cr_wire_pack_part_head(m, p, room);
    if (m->values_len != 0) memcpy(p + n, m->values, m->values_len);
    fake_send(f, CR_FRAME_RESULT, 0, stream, p, n + m->values_len);
    free(p);
}

void fake_welcome(fake *f) {
    uint8_t p[256];
    cr_wire_welcome w = {.version = 1, .server = "fake/1"};
    fake_send(f, CR_FRAME_WELCOME, 0, 0, p, cr_wire_pack_welcome(&w, p, sizeof p));
}

void fake_status(fake *f, uint32_t stream, cr_status code, uint32_t retry_after_ms, const char *text) {
    uint8_t p[512];
    cr_wire_status s = {.code = code, .retry_after_ms = retry_after_ms};
    snprintf(s.message, sizeof s.message, "%s", text);
    fake_send(f, CR_FRAME_STATUS, stream != 0 ? CR_FLAG_END : 0, stream, p, cr_wire_pack_status(&s, p, sizeof p));
}

void fake_credit(fake *f, uint32_t stream, uint64_t bytes) {
    uint8_t p[16];
    fake_send(f, CR_FRAME_CREDIT, 0, stream, p, cr_wire_pack_credit(bytes, p, sizeof p));
}

void fake_sum_of(fake *f, uint32_t stream, double value, uint64_t count) {
    uint8_t p[256];
    cr_wire_result *r = calloc(1, sizeof *r);
    r->count = count;
    r->timing = (cr_wire_timing){1, 2, 3};
    r->result_count = 1;
    r->results[0].op = CURED_OP_SUM;
    r->results[0].dtype = CURED_F64;
    r->results[0].value_len = 8;
    memcpy(r->results[0].value, &value, 8);
    fake_send(f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_result(r, p, sizeof p));
    free(r);
}

void fake_sum(fake *f, uint32_t stream, double value) { fake_sum_of(f, stream, value, 3); }

cured_conn *fake_connect(fake *f) {
    cured_conn *conn;
    cured_error e;
    cr_frame frame;
    const uint8_t *payload;
    ck_assert_msg(cured_connect(f->address, NULL, &conn, &e) == CURED_OK, "%s", e.text);
    fake_accept(f);
    fake_expect(f, conn, CR_FRAME_HELLO, &frame, &payload);
    fake_welcome(f);
    return conn;
}
