/* golden_stats: the messages behind the golden files of Stats and SlowLog.
 *
 * Thread: the test's. Each packs into out, which has room for 64 KiB, and returns the length. */
#ifndef CURED_TESTS_PROTOCOL_GOLDEN_STATS_H
#define CURED_TESTS_PROTOCOL_GOLDEN_STATS_H

#include <stddef.h>
#include <stdint.h>

size_t golden_call_stats(uint8_t *out);
size_t golden_call_reload(uint8_t *out);
size_t golden_result_reload(uint8_t *out);
size_t golden_call_config(uint8_t *out);
size_t golden_result_config(uint8_t *out);
size_t golden_call_slow_log(uint8_t *out);
size_t golden_result_stats(uint8_t *out);
size_t golden_result_slow_log(uint8_t *out);

#endif
