/* token: see token.h. Thread, owner: see there. */
#include "client/lib/conn/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/conn/address.h"
#include "client/lib/conn/conn.h"

/* The first word of a file that is the user's own. */
static cr_status read_file(const char *path, char token[CR_TOKEN_MAX_BYTES + 2], cr_error *error) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return cr_fail(error, CR_INVALID_ARGUMENT, "token_file: cannot open %.200s: %s", path, strerror(errno));
    bool own = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) == 0;
    ssize_t n = own ? read(fd, token, CR_TOKEN_MAX_BYTES + 1) : 0;
    close(fd);
    if (!own)
        return cr_fail(error, CR_INVALID_ARGUMENT, "token_file: %.200s may be read by others; chmod 600 it", path);
    token[n > 0 ? n : 0] = '\0';
    token[strcspn(token, " \t\r\n")] = '\0';
    return token[0] != '\0' ? CR_OK : cr_fail(error, CR_INVALID_ARGUMENT, "token_file: %.200s has no token", path);
}

/* NULL: there is none. room is the file's. */
static cr_status find(const cured_connect_options *o, const char **token, char room[CR_TOKEN_MAX_BYTES + 2],
                      cr_error *error) {
    const char *file = o->token_file;
    *token = o->token;
    if (*token == NULL && file == NULL) *token = getenv("CURED_CLIENT_TOKEN");
    if (*token == NULL && file == NULL) file = getenv("CURED_CLIENT_TOKEN_FILE");
    if (*token != NULL || file == NULL || file[0] == '\0') return CR_OK;
    *token = room;
    return read_file(file, room, error);
}

/* A secret does not go where others can read it. */
cr_status cr_cl_token_take(cured_conn *conn, const cured_connect_options *o, bool tls, cr_error *error) {
    char host[256], room[CR_TOKEN_MAX_BYTES + 2];
    const char *token;
    cr_status status = find(o, &token, room, error);
    if (status != CR_OK || token == NULL || token[0] == '\0') return status;
    if (strlen(token) > CR_TOKEN_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "token has %zu bytes or more, limit is %d", strlen(token),
                       CR_TOKEN_MAX_BYTES);
    status = conn->calls.tcp && !tls ? cr_cl_address_host(conn->address, host, error) : CR_OK;
    if (status != CR_OK) return status;
    if (conn->calls.tcp && !tls && strcmp(host, "localhost") != 0 && strncmp(host, "127.", 4) != 0 &&
        strcmp(host, "::1") != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "token: it is not sent to another host without TLS; use tls:HOST:PORT");
    memcpy(conn->token, token, strlen(token) + 1);
    return CR_OK;
}
