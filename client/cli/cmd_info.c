/* cured-client info: what the daemon says about itself.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

#include "client/cli/cli.h"

/* What a user holds, by name. */
static const struct {
    const char *name;
    size_t at;
} held[] = {
#define CR_USE(name) {#name, offsetof(cured_held, name)},
#include "proto/use.def"
#undef CR_USE
};
enum { HELD = sizeof held / sizeof held[0] };

static uint64_t held_at(const cured_held *h, size_t i) { return *(const uint64_t *)((const char *)h + held[i].at); }

static void print_user(const cured_user *user) {
    for (size_t i = 0; i < HELD; i++)
        printf("%s%s %s %llu of %llu\n", user->own ? "own, " : "", user->name, held[i].name,
               (unsigned long long)held_at(&user->used, i), (unsigned long long)held_at(&user->limit, i));
}

static void print_text(const cured_server_info *info) {
    printf("version %s\nbackend %s\nbackend_reason %s\n", info->version, info->backend, info->backend_reason);
    printf("uptime_s %.3f\n", (double)info->uptime_ms / 1000);
    for (size_t i = 0; i < info->lane_count; i++) {
        const cured_lane *lane = &info->lanes[i];
        printf("lane %s: %s, %u workers", lane->name, lane->device, lane->workers);
        if (lane->bytes_per_second > 0) printf(", %.1f GB/s", lane->bytes_per_second / 1e9);
        putchar('\n');
    }
    printf("max_ops %u\nmax_jobs_per_connection %u\nmax_input_bytes %llu\ncredit_bytes %llu\n", info->max_ops,
           info->max_jobs_per_connection, (unsigned long long)info->max_input_bytes,
           (unsigned long long)info->credit_bytes);
    printf("max_regions_per_connection %u\nmax_region_bytes %llu\n", info->max_regions_per_connection,
           (unsigned long long)info->max_region_bytes);
    for (size_t i = 0; i < info->user_count; i++) print_user(&info->users[i]);
    for (size_t i = 0; i < info->counter_count; i++)
        printf("counter %s %llu\n", info->counters[i].name, (unsigned long long)info->counters[i].value);
}

static void add_number(cJSON *object, const char *name, uint64_t n) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    cJSON_AddRawToObject(object, name, text);
}

static void add_held(cJSON *object, const char *name, const cured_held *h) {
    cJSON *to = cJSON_AddObjectToObject(object, name);
    for (size_t i = 0; i < HELD; i++) add_number(to, held[i].name, held_at(h, i));
}

static void add_users(cJSON *root, const cured_server_info *info) {
    cJSON *users = cJSON_AddArrayToObject(root, "users");
    for (size_t i = 0; i < info->user_count; i++) {
        cJSON *user = cJSON_CreateObject();
        cJSON_AddStringToObject(user, "name", info->users[i].name);
        cJSON_AddBoolToObject(user, "own", info->users[i].own);
        add_held(user, "used", &info->users[i].used);
        add_held(user, "limit", &info->users[i].limit);
        cJSON_AddItemToArray(users, user);
    }
}

static int print_json(const cured_server_info *info) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", info->version);
    cJSON_AddStringToObject(root, "backend", info->backend);
    cJSON_AddStringToObject(root, "backend_reason", info->backend_reason);
    add_number(root, "uptime_ms", info->uptime_ms);
    cJSON *lanes = cJSON_AddArrayToObject(root, "lanes");
    for (size_t i = 0; i < info->lane_count; i++) {
        cJSON *lane = cJSON_CreateObject();
        cJSON_AddStringToObject(lane, "name", info->lanes[i].name);
        cJSON_AddStringToObject(lane, "device", info->lanes[i].device);
        add_number(lane, "workers", info->lanes[i].workers);
        /* A rate beyond 64 bits is nonsense from the daemon; it is finite and shown as 0 then. */
        double rate = info->lanes[i].bytes_per_second;
        add_number(lane, "bytes_per_second", rate > 0 && rate < 1e18 ? (uint64_t)rate : 0);
        cJSON_AddItemToArray(lanes, lane);
    }
    cJSON *limits = cJSON_AddObjectToObject(root, "limits");
    add_number(limits, "ops", info->max_ops);
    add_number(limits, "jobs_per_connection", info->max_jobs_per_connection);
    add_number(limits, "input_bytes", info->max_input_bytes);
    add_number(limits, "credit_bytes", info->credit_bytes);
    add_number(limits, "regions_per_connection", info->max_regions_per_connection);
    add_number(limits, "region_bytes", info->max_region_bytes);
    add_users(root, info);
    cJSON *counters = cJSON_AddObjectToObject(root, "counters");
    for (size_t i = 0; i < info->counter_count; i++)
        add_number(counters, info->counters[i].name, info->counters[i].value);
    char *line = cJSON_PrintUnformatted(root);
    bool good = line != NULL;
    if (good) puts(line);
    cJSON_free(line);
    cJSON_Delete(root);
    return good ? EXIT_OK : cli_fail(EXIT_IO, "cannot print the answer");
}

int cmd_info(const cli_options *o) {
    cured_conn *conn;
    cured_call *call;
    cured_error error;
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    if (cured_info(conn, &o->call, &call, &error) != CURED_OK || cured_wait(call, &error) != CURED_OK) {
        code = cli_call_failed(o, conn, &error, NULL);
    } else {
        const cured_server_info *info = cured_call_info(call);
        if (o->json)
            code = print_json(info);
        else
            print_text(info);
        if (code == EXIT_OK) code = cli_flush();
    }
    cured_call_free(call);
    cured_close(conn);
    return code;
}
