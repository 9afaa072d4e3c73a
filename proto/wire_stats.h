/* wire_stats: StatsResponse and SlowLogResponse of cured.proto as plain structs, and both as JSON.
 *
 * The daemon fills them (server/stats), and its admin page and cured-client show them.
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#ifndef CURED_PROTO_WIRE_STATS_H
#define CURED_PROTO_WIRE_STATS_H

#include "proto/wire.h"

size_t cr_wire_pack_stats(const cr_wire_stats *m, uint8_t *out, size_t cap);
cr_status cr_wire_unpack_stats(const uint8_t *in, size_t len, cr_wire_stats *m, cr_error *error);
size_t cr_wire_pack_slow_log(const cr_wire_slow_log *m, uint8_t *out, size_t cap);
cr_status cr_wire_unpack_slow_log(const uint8_t *in, size_t len, cr_wire_slow_log *m, cr_error *error);

/* One JSON object without line breaks, NUL-terminated: what /stats.json and `cured-client stats --json` give. log NULL: without
 * "slow". 64-bit numbers are numbers. Its length; 0: it does not fit. CR_WIRE_JSON_BYTES is enough. */
enum { CR_WIRE_JSON_BYTES = 128 * 1024 };
size_t cr_wire_slow_json(const cr_wire_slow_log *log, char *out, size_t cap);   /* {"slow":[…]} */
size_t cr_wire_settings_json(const cr_wire_settings *m, char *out, size_t cap); /* {"config":[…]} */
size_t cr_wire_stats_json(const cr_wire_stats *m, const cr_wire_slow_log *log, char *out, size_t cap);

#endif
