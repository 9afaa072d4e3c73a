/* block: header blocks with random fields, some of them too long for nghttp2. However the bytes come, they are changed in the same way; blocks
 * that are good are not changed; nghttp2 reads what comes out. */
#include <check.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "server/grpc/block.h"
#include "tests/unit/check_main.h"

enum { MOST = 400 * 1024, PREFACE = 24, FRAME = 16000 };

static uint8_t sent[MOST], whole[MOST], cut[MOST], fields[MOST];
static size_t used;

static void put(uint8_t byte) { fields[used++] = byte; }

static void put_string(uint32_t length, uint8_t letter) {
    uint32_t rest = length - 127;
    put(length < 127 ? (uint8_t)length : 127);
    for (; length >= 127 && rest > 127; rest >>= 7) put((uint8_t)(rest | 128));
    if (length >= 127) put((uint8_t)rest);
    memset(fields + used, letter, length);
    used += length;
}

static void put_field(uint32_t name, uint32_t value) {
    static const uint8_t kinds[] = {0x40, 0x00, 0x10};
    put(kinds[rand() % 3]);
    put_string(name, 'n');
    put_string(value, 'v');
}

/* The fields as HEADERS and CONTINUATIONs behind a preface. Returns the number of bytes. */
static size_t frames(void) {
    size_t n = PREFACE, at = 0;
    memset(sent, 'P', PREFACE);
    do {
        const size_t length = used - at < FRAME ? used - at : FRAME;
        const uint8_t head[] = {(uint8_t)(length >> 16),
                                (uint8_t)(length >> 8),
                                (uint8_t)length,
                                at ? 9 : 1,
                                at + length == used ? 4 : 0,
                                0,
                                0,
                                0,
                                1};
        memcpy(sent + n, head, sizeof head);
        memcpy(sent + n + sizeof head, fields + at, length);
        n += sizeof head + length;
        at += length;
    } while (at < used);
    return n;
}

/* Whether nghttp2 unpacks the fragments of n bytes of frames. */
static bool inflates(const uint8_t *bytes, size_t n) {
    nghttp2_hd_inflater *inflater;
    bool good = nghttp2_hd_inflate_new(&inflater) == 0;
    for (size_t at = PREFACE; good && at < n;) {
        size_t left = (size_t)bytes[at] << 16 | (size_t)bytes[at + 1] << 8 | bytes[at + 2];
        const bool last = at + 9 + left == n;
        const uint8_t *in = bytes + at + 9;
        at += 9 + left;
        for (int flags = 0; good && (left || (last && !(flags & NGHTTP2_HD_INFLATE_FINAL)));) {
            nghttp2_nv nv;
            flags = 0;
            const ssize_t took = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, in, left, last);
            good = took >= 0;
            if (good) in += took, left -= (size_t)took;
        }
    }
    nghttp2_hd_inflate_del(inflater);
    return good;
}

START_TEST(blocks_in_any_pieces) {
    cr_block block;
    srand((unsigned)_i);
    used = 0;
    const bool is_long = _i % 2;
    for (int i = 0; i < 1 + rand() % 4; i++) put_field(1 + (uint32_t)rand() % 300, (uint32_t)rand() % 3000);
    if (is_long)
        put_field(_i % 4 == 1 ? 5 : 65537 + (uint32_t)rand() % 9000,
                  _i % 4 == 1 ? 65537 + (uint32_t)rand() % 20000 : (uint32_t)rand() % 300);
    for (int i = 0; i < rand() % 3; i++) put_field(1 + (uint32_t)rand() % 300, (uint32_t)rand() % 3000);
    const size_t n = frames();
    ck_assert(inflates(sent, n) == !is_long);
    memcpy(whole, sent, n);
    memcpy(cut, sent, n);
    cr_block_init(&block);
    ck_assert(cr_block_look(&block, whole, n));
    ck_assert(inflates(whole, n));
    ck_assert((memcmp(whole, sent, n) == 0) == !is_long);
    cr_block_init(&block);
    for (size_t at = 0, step; at < n; at += step) {
        step = 1 + (size_t)rand() % (rand() % 3 ? 5 : 5000);
        if (step > n - at) step = n - at;
        ck_assert(cr_block_look(&block, cut + at, step));
    }
    ck_assert_mem_eq(whole, cut, n);
}
END_TEST

START_TEST(noise) {
    cr_block block;
    srand((unsigned)_i);
    for (size_t i = 0; i < MOST; i++) sent[i] = (uint8_t)(rand() % 4 ? rand() : rand() % 10);
    cr_block_init(&block);
    for (size_t at = 0; at + 1000 <= MOST && cr_block_look(&block, sent + at, 1000); at += 1000) continue;
}
END_TEST

CR_CHECK_MAIN("server/grpc/block") {
    tcase_add_loop_test(tc, blocks_in_any_pieces, 1, 81);
    tcase_add_loop_test(tc, noise, 1, 11);
}
