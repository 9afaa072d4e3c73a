/* golden_stats: see golden_stats.h. Thread: the test's. */
#include "tests/protocol/golden_stats.h"

#include "proto/wire_stats.h"

enum { GOLDEN_CAP = 4096 };

size_t golden_call_stats(uint8_t *out) {
    cr_wire_call m = {.kind = CR_CALL_STATS};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_call_reload(uint8_t *out) {
    cr_wire_call m = {.kind = CR_CALL_RELOAD};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_call_config(uint8_t *out) {
    cr_wire_call m = {.kind = CR_CALL_CONFIG};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_result_config(uint8_t *out) {
    static cr_wire_settings m = {
        .count = 2,
        .items = {{.key = "slabs", .value = "64", .origin = "file", .pending = true},
                  {.key = "log_level", .value = "info", .origin = "default", .reloads = true}}};
    return cr_wire_pack_settings(&m, out, GOLDEN_CAP);
}

size_t golden_result_reload(uint8_t *out) {
    static cr_wire_reloaded m = {
        .changed_count = 2, .restart_count = 1, .changed = {"max_jobs", "log_level"}, .restart = {"slabs"}};
    return cr_wire_pack_reloaded(&m, out, GOLDEN_CAP);
}

size_t golden_call_slow_log(uint8_t *out) {
    cr_wire_call m = {.timeout_ms = 1000, .kind = CR_CALL_SLOW_LOG};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_result_stats(uint8_t *out) {
    static cr_wire_stats m = {.version = "0.2.0",
                              .backend = "cpu",
                              .backend_reason = "this build has no CUDA lane",
                              .uptime_ms = 12345,
                              .in_flight = 1,
                              .queue_depth = 2,
                              .requests_total = 300,
                              .failed_total = 4,
                              .bytes_total = 4096,
                              .window_ms = 60000,
                              .window_requests = 30,
                              .window_failed = 1,
                              .window_bytes = 1024,
                              .request_count = 2,
                              .stage_count = 1,
                              .lane_count = 1,
                              .pool_count = 1,
                              .user_count = 1};
    m.requests[0] = (cr_wire_requests){"reduce", "inline", CR_OK, 296};
    m.requests[1] = (cr_wire_requests){"register", "none", CR_RESOURCE_EXHAUSTED, 4};
    m.stages[0] = (cr_wire_stage){"total", 30, 150000, 5000, 8000, 9000};
    m.ops = (cr_wire_names){1, {{"sum", 296}}};
    m.dtypes = (cr_wire_names){1, {{"f32", 4096}}};
    m.rejected = (cr_wire_names){1, {{"regions", 4}}};
    m.connections = (cr_wire_names){1, {{"native", 3}}};
    m.lanes[0] = (cr_wire_lane_stats){
        .name = "cpu", .device = "avx2", .workers = 7, .bytes = 1048576, .launches = 5, .busy_ns = 99000};
    m.pools[0] = (cr_wire_pool){"slabs", 1048576, 67108864};
    m.users[0] = (cr_wire_user){.name = "uid 1000", .own = true, .used = {.connections = 3}};
    return cr_wire_pack_stats(&m, out, GOLDEN_CAP);
}

size_t golden_result_slow_log(uint8_t *out) {
    static cr_wire_slow_log m = {.count = 1};
    m.calls[0] = (cr_wire_slow_call){.age_ms = 5000,
                                     .connection = 7,
                                     .has_uid = true,
                                     .uid = 1000,
                                     .pid = 4321,
                                     .client = "libcured/0.2.0",
                                     .user = "uid 1000",
                                     .front = "native",
                                     .transport = "unix",
                                     .method = "reduce",
                                     .source = "stream",
                                     .dtype = "f32",
                                     .ops = "sum,mean",
                                     .lanes = "cpu",
                                     .code = CR_DEADLINE_EXCEEDED,
                                     .bytes = 4096,
                                     .receive_ns = 1000,
                                     .queue_ns = 2000,
                                     .run_ns = 3000,
                                     .send_ns = 4000,
                                     .total_ns = 9000};
    return cr_wire_pack_slow_log(&m, out, GOLDEN_CAP);
}
