/* cured-client ping: whether the daemon answers, and how fast.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "client/cli/cli.h"

static int print(const cli_options *o, const cured_conn *conn, const cured_call *call) {
    char text[32];
    if (!o->json) {
        printf("%s answers in %.3f ms\n", cured_server(conn), (double)cured_call_elapsed_ns(call) / 1e6);
        return cli_flush();
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "server", cured_server(conn));
    snprintf(text, sizeof text, "%llu", (unsigned long long)cured_call_elapsed_ns(call));
    cJSON_AddRawToObject(root, "elapsed_ns", text);
    char *line = cJSON_PrintUnformatted(root);
    if (line != NULL) puts(line);
    cJSON_free(line);
    cJSON_Delete(root);
    return line != NULL ? cli_flush() : cli_fail(EXIT_IO, "cannot print the answer");
}

int cmd_ping(const cli_options *o) {
    cured_conn *conn;
    cured_call *call;
    cured_error error;
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    /* The first one sets the connection up; the second is the one to time. */
    for (int i = 0; i < 2 && code == EXIT_OK; i++) {
        if (cured_ping(conn, &o->call, &call, &error) != CURED_OK || cured_wait(call, &error) != CURED_OK)
            code = cli_call_failed(o, conn, &error, NULL);
        else if (i == 1)
            code = print(o, conn, call);
        cured_call_free(call);
    }
    cured_close(conn);
    return code;
}
