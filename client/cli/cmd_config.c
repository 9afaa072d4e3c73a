/* cured-client config reload: the daemon reads its options again, and says which of them changed.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"

static void add_names(cJSON *root, const char *name, const char *const *names, size_t count) {
    cJSON *list = cJSON_AddArrayToObject(root, name);
    for (size_t i = 0; i < count; i++) cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
}

static int print_json(const cured_reloaded *r) {
    cJSON *root = cJSON_CreateObject();
    add_names(root, "changed", r->changed, r->changed_count);
    add_names(root, "restart", r->restart, r->restart_count);
    char *line = cJSON_PrintUnformatted(root);
    const bool good = line != NULL;
    if (good) puts(line);
    cJSON_free(line);
    cJSON_Delete(root);
    return good ? EXIT_OK : cli_fail(EXIT_IO, "cannot print the answer");
}

static void print_text(const cured_reloaded *r) {
    for (size_t i = 0; i < r->changed_count; i++) printf("%s: reloaded\n", r->changed[i]);
    for (size_t i = 0; i < r->restart_count; i++) printf("%s: it was changed, which takes a restart\n", r->restart[i]);
    if (r->changed_count + r->restart_count == 0) puts("nothing has changed");
}

int cmd_config(const cli_options *o) {
    cured_conn *conn;
    cured_call *call;
    cured_error error;
    if (strcmp(o->file, "reload") != 0)
        return cli_fail(EXIT_USAGE, "config: '%.40s' is nothing to do with it: there is reload", o->file);
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    if (cured_reload(conn, &o->call, &call, &error) != CURED_OK || cured_wait(call, &error) != CURED_OK) {
        code = cli_call_failed(o, conn, &error, NULL);
    } else {
        const cured_reloaded *reloaded = cured_call_reloaded(call);
        if (o->json)
            code = print_json(reloaded);
        else
            print_text(reloaded);
        if (code == EXIT_OK) code = cli_flush();
    }
    cured_call_free(call);
    cured_close(conn);
    return code;
}
