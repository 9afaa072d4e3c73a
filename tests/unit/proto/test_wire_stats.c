/* test_wire_stats: the largest StatsResponse and SlowLogResponse are packed, and say the same afterwards. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire_stats.h"
#include "tests/unit/check_main.h"

START_TEST(largest_stats_fit) {
    static uint8_t buffer[CR_HEAD_MAX_BYTES];
    size_t n;
    cr_wire_stats *stats = calloc(1, sizeof *stats), *stats_back = malloc(sizeof *stats_back);
    stats->request_count = CR_WIRE_MAX_REQUESTS;
    stats->stage_count = CR_WIRE_MAX_STAGES;
    stats->lane_count = CR_WIRE_MAX_LANES;
    stats->pool_count = CR_WIRE_MAX_POOLS;
    stats->user_count = CR_WIRE_MAX_USERS;
    for (int i = 0; i < CR_WIRE_MAX_REQUESTS; i++) {
        memset(stats->requests[i].method, 'm', CR_WIRE_WORD_BYTES - 1);
        memset(stats->requests[i].source, 's', CR_WIRE_WORD_BYTES - 1);
        stats->requests[i].count = UINT64_MAX;
    }
    cr_wire_names *names[] = {&stats->ops, &stats->dtypes, &stats->rejected, &stats->connections};
    for (int k = 0; k < 4; k++) {
        names[k]->count = CR_WIRE_MAX_NAMED;
        for (int i = 0; i < CR_WIRE_MAX_NAMED; i++) memset(names[k]->items[i].name, 'n', CR_WIRE_WORD_BYTES - 1);
    }
    for (int i = 0; i < CR_WIRE_MAX_LANES; i++) memset(stats->lanes[i].name, 'l', CR_NAME_MAX_BYTES);
    for (int i = 0; i < CR_WIRE_MAX_LANES; i++) memset(stats->lanes[i].device, 'd', CR_NAME_MAX_BYTES);
    for (uint32_t i = 0; i < CR_WIRE_MAX_LANES; i++) {
        stats->lanes[i].has_temperature = i % 2;
        stats->lanes[i].has_utilization = i % 3; /* 0 % is known, too */
        stats->lanes[i].temperature_c = i % 2 ? UINT32_MAX : 0;
        stats->lanes[i].errors = UINT64_MAX;
    }
    for (int i = 0; i < CR_WIRE_MAX_USERS; i++) {
        memset(stats->users[i].name, 'u', CR_NAME_MAX_BYTES);
        memset(&stats->users[i].used, 0xff, sizeof stats->users[i].used);
        memset(&stats->users[i].limit, 0xff, sizeof stats->users[i].limit);
    }
    n = cr_wire_pack_stats(stats, buffer, CR_HEAD_MAX_BYTES);
    ck_assert_uint_gt(n, 0);
    ck_assert_int_eq(cr_wire_unpack_stats(buffer, n, stats_back, NULL), CR_OK);
    ck_assert_mem_eq(stats_back, stats, sizeof *stats);
    static char json[CR_WIRE_JSON_BYTES];
    ck_assert_uint_gt(cr_wire_stats_json(stats, NULL, json, sizeof json), 0);
    free(stats);
    free(stats_back);
}
END_TEST

START_TEST(largest_slow_log_fits) {
    static uint8_t buffer[CR_HEAD_MAX_BYTES];
    size_t n;
    cr_wire_slow_log *slow = calloc(1, sizeof *slow), *slow_back = malloc(sizeof *slow_back);
    slow->count = CR_WIRE_MAX_SLOW;
    for (int i = 0; i < CR_WIRE_MAX_SLOW; i++) {
        cr_wire_slow_call *c = &slow->calls[i];
        memset(c->client, 't', sizeof c->client - 1);
        memset(c->user, 't', sizeof c->user - 1);
        memset(c->ops, 't', sizeof c->ops - 1);
        memset(c->lanes, 't', sizeof c->lanes - 1);
        char *words[] = {c->front, c->transport, c->method, c->source, c->dtype};
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) memset(words[k], 't', CR_WIRE_WORD_BYTES - 1);
        c->bytes = c->total_ns = c->run_ns = UINT64_MAX;
    }
    n = cr_wire_pack_slow_log(slow, buffer, CR_HEAD_MAX_BYTES);
    ck_assert_uint_gt(n, 0);
    ck_assert_int_eq(cr_wire_unpack_slow_log(buffer, n, slow_back, NULL), CR_OK);
    ck_assert_mem_eq(slow_back, slow, sizeof *slow);
    free(slow);
    free(slow_back);
}
END_TEST

/* The last byte of this character is 0x9b, which alone would begin a command to terminals. */
START_TEST(a_name_keeps_its_characters) {
    static char json[CR_WIRE_JSON_BYTES];
    static cr_wire_slow_log slow = {.count = 1, .calls[0].client = "\"\\ \xe5\xae\x9b 31m \x1b \xc2\x9b \x9b"};
    ck_assert_uint_gt(cr_wire_slow_json(&slow, json, sizeof json), 0);
    ck_assert_msg(strstr(json, "\"client\":\"\\u0022\\u005c \xe5\xae\x9b 31m ? ?? ?\"") != NULL, "%s", json);
}
END_TEST

CR_CHECK_MAIN("proto/wire_stats") {
    tcase_add_test(tc, largest_stats_fit);
    tcase_add_test(tc, largest_slow_log_fits);
    tcase_add_test(tc, a_name_keeps_its_characters);
}
