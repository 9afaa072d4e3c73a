/* stats: what the commands stats, slowlog, top and health share: asking the daemon, and words for figures.
 *
 * Thread: one. */
#ifndef CURED_CLIENT_CLI_STATS_H
#define CURED_CLIENT_CLI_STATS_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "client/cli/cli.h"

enum { CLI_WORD = 32, CLI_GPU = 128, CLI_ASK_MS = 5000 };

/* Asks for the stats, or the slow log. The call holds the text, *read what it says; both are the caller's to free, whatever the
 * exit code is. */
int cli_ask(const cli_options *o, cured_conn *conn, bool slow, cured_call **call, cJSON **read);

/* A member of an object; 0 and "" where there is none. */
double cli_number(const cJSON *object, const char *name);
const char *cli_text(const cJSON *object, const char *name);
/* "4.2 us", "17 GB": out. */
const char *cli_time_text(double ns, char out[CLI_WORD]);
const char *cli_bytes_text(double bytes, char out[CLI_WORD]);
/* ", 61 C, 37% in use by all, 3.2 of 8.6 GB, 1 error" of a GPU's row of lanes, as far as it is known; "" of others: out. */
const char *cli_gpu_text(const cJSON *lane, char out[CLI_GPU]);

/* top_frame.c: one picture of top as lines of text, at most cap bytes. before: what was so many seconds ago; NULL: the window of
 * the stats counts. slow may be NULL. */
void cli_top_frame(const cJSON *now, const cJSON *before, const cJSON *slow, double seconds, char *out, size_t cap);

#endif
