/* Who is at the other end: which connections are one client, and which have one owner. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/admit/peer.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static cr_peer of_process(pid_t pid, uid_t uid) {
    cr_peer peer = {0};
    cr_peer_of_process(&peer, &(struct ucred){.pid = pid, .uid = uid});
    return peer;
}

static cr_peer of_address(const char *text, uint16_t port) {
    cr_peer peer = {.has_uid = true, .uid = 7};
    struct sockaddr_storage name = {0};
    if (strchr(text, ':')) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&name;
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        ck_assert_int_eq(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        struct sockaddr_in *four = (struct sockaddr_in *)&name;
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        ck_assert_int_eq(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
    cr_peer_of_address(&peer, &name);
    ck_assert(!peer.has_uid);
    return peer;
}

START_TEST(turns_by_process_and_limits_by_user) {
    cr_peer one = of_process(5, 1000), other = of_process(6, 1000), stranger = of_process(7, 1001);
    ck_assert_uint_ne(one.client, other.client);
    ck_assert_uint_eq(one.owner, other.owner);
    ck_assert_uint_ne(one.owner, stranger.owner);
    ck_assert(one.has_uid && one.uid == 1000);
    /* Of another namespace: its user has one turn, whatever the number of a process is. */
    cr_peer unseen = of_process(0, 5), again = of_process(0, 5);
    ck_assert_uint_eq(unseen.client, again.client);
    ck_assert_uint_ne(unseen.client, one.client);
    ck_assert_uint_ne(unseen.client, of_process(0, 6).client);
}
END_TEST

START_TEST(tcp_by_address) {
    static const char *const different[] = {"127.0.0.1",   "126.0.0.1", "::1",     "::2", "2001:db8::1",
                                            "2001:db9::1", "fe80::1",   "fe80::2", "::"};
    enum { COUNT = sizeof different / sizeof different[0] };
    for (int i = 0; i < COUNT; i++) {
        cr_peer peer = of_address(different[i], 1);
        ck_assert_uint_eq(peer.client, of_address(different[i], 2).client);
        ck_assert_uint_eq(peer.client, peer.owner);
        for (int k = 0; k < i; k++) ck_assert_uint_ne(peer.client, of_address(different[k], 1).client);
        ck_assert_uint_ne(peer.client, of_process(1, 1).client);
        ck_assert_uint_ne(peer.owner, of_process(1, 1).owner);
    }
    ck_assert_uint_eq(of_address("::ffff:127.0.0.1", 1).client, of_address("127.0.0.1", 1).client);
    /* A process of this host picks any of them. */
    ck_assert_uint_eq(of_address("127.0.0.2", 1).client, of_address("127.0.0.1", 1).client);
    ck_assert_uint_eq(of_address("::ffff:127.255.255.254", 1).client, of_address("127.0.0.1", 1).client);
    ck_assert_uint_eq(of_address("2001:db8::1", 1).client, of_address("2001:db8::9:1", 1).client);
}
END_TEST

START_TEST(the_kernel_says_who) {
    int ends[2];
    cr_peer peer = {.calls = 3};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    cr_peer_see(&peer, ends[0]);
    ck_assert_uint_eq(peer.client, (uint64_t)getpid());
    ck_assert(peer.has_uid && peer.uid == getuid() && peer.calls == 3);
    close(ends[0]);
    close(ends[1]);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&name, sizeof name), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&name, &length), 0);
    ck_assert_int_eq(connect(near, (struct sockaddr *)&name, sizeof name), 0);
    cr_peer_see(&peer, near);
    ck_assert(!peer.has_uid);
    ck_assert_uint_eq(peer.client, of_address("127.0.0.1", 9).client);
    close(near);
    close(listener);
}
END_TEST

CR_CHECK_MAIN("server/peer") {
    tcase_add_test(tc, turns_by_process_and_limits_by_user);
    tcase_add_test(tc, tcp_by_address);
    tcase_add_test(tc, the_kernel_says_who);
}
