/* ask: what a daemon knows of its calls, as it tells it, and read.
 *
 * Thread: one. Owner: whoever asks. */
#include "client/cli/stats.h"

int cli_ask(const cli_options *o, cured_conn *conn, bool slow, cured_call **call, cJSON **read) {
    cured_error error;
    cured_options options = o->call;
    if (options.timeout_ms == 0) options.timeout_ms = CLI_ASK_MS;
    *read = NULL;
    const cured_status status =
        slow ? cured_slow_log(conn, &options, call, &error) : cured_stats(conn, &options, call, &error);
    if (status != CURED_OK || cured_wait(*call, &error) != CURED_OK) return cli_call_failed(o, conn, &error, NULL);
    *read = cJSON_Parse(cured_call_json(*call));
    return *read != NULL ? EXIT_OK : cli_fail(EXIT_IO, "no memory for the answer");
}

double cli_number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

const char *cli_text(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

const char *cli_time_text(double ns, char out[CLI_WORD]) {
    const bool us = ns < 1e6, ms = ns < 1e9;
    const double value = us ? ns / 1e3 : ms ? ns / 1e6 : ns / 1e9;
    snprintf(out, CLI_WORD, value < 10 ? "%.1f %s" : "%.0f %s", value, us ? "us" : ms ? "ms" : "s");
    return out;
}

const char *cli_bytes_text(double bytes, char out[CLI_WORD]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < sizeof units / sizeof units[0]; unit++) bytes /= 1000;
    snprintf(out, CLI_WORD, unit > 0 && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}

const char *cli_gpu_text(const cJSON *lane, char out[CLI_GPU]) {
    const double total = cli_number(lane, "memory_bytes"), errors = cli_number(lane, "errors");
    char used_text[CLI_WORD], total_text[CLI_WORD];
    size_t n = 0;
    out[0] = 0;
    if (cJSON_HasObjectItem(lane, "temperature_c"))
        n += (size_t)snprintf(out + n, CLI_GPU - n, ", %.0f C", cli_number(lane, "temperature_c"));
    if (cJSON_HasObjectItem(lane, "utilization_percent"))
        n += (size_t)snprintf(out + n, CLI_GPU - n, ", %.0f%% in use by all", cli_number(lane, "utilization_percent"));
    if (total > 0)
        n += (size_t)snprintf(out + n, CLI_GPU - n, ", %s of %s",
                              cli_bytes_text(cli_number(lane, "memory_used"), used_text),
                              cli_bytes_text(total, total_text));
    if (errors > 0) snprintf(out + n, CLI_GPU - n, ", %.0f %s", errors, errors > 1 ? "errors" : "error");
    return out;
}
