/* cured-client config: reload: the daemon reads its options again, and says which of them changed; show: what they are set to.
 *
 * Thread: one. */
#include <string.h>

#include "client/cli/stats.h"

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

static int reload(const cli_options *o, cured_conn *conn, cured_call **call) {
    cured_error error;
    if (cured_reload(conn, &o->call, call, &error) != CURED_OK || cured_wait(*call, &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, NULL);
    if (o->json) return print_json(cured_call_reloaded(*call));
    print_text(cured_call_reloaded(*call));
    return EXIT_OK;
}

static int show(const cli_options *o, cured_conn *conn, cured_call **call) {
    cured_error error;
    const cJSON *row;
    if (cured_config(conn, &o->call, call, &error) != CURED_OK || cured_wait(*call, &error) != CURED_OK)
        return cli_call_failed(o, conn, &error, NULL);
    if (o->json) return puts(cured_call_json(*call)) >= 0 ? EXIT_OK : cli_flush();
    cJSON *read = cJSON_Parse(cured_call_json(*call));
    if (!read) return cli_fail(EXIT_IO, "no memory for the answer");
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(read, "config"))
        printf("%-24s %s  (%s%s)\n", cli_text(row, "key"), cli_text(row, "value"), cli_text(row, "origin"),
               cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "pending"))   ? "; another value waits for a restart"
               : cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "reloads")) ? ""
                                                                                : "; takes a restart");
    cJSON_Delete(read);
    return EXIT_OK;
}

int cmd_config(const cli_options *o) {
    cured_conn *conn;
    cured_call *call = NULL;
    const bool shows = strcmp(o->file, "show") == 0;
    if (!shows && strcmp(o->file, "reload") != 0)
        return cli_fail(EXIT_USAGE, "config: '%.40s' is nothing to do with it: there are reload and show", o->file);
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    code = shows ? show(o, conn, &call) : reload(o, conn, &call);
    if (code == EXIT_OK) code = cli_flush();
    cured_call_free(call);
    cured_close(conn);
    return code;
}
