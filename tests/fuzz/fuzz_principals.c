/* Any bytes as a file of principals, and as a token: refused with a sentence that names the line, or principals with rights of the
 * table, a time and limits. The file takes the place of another one, and that one its. The first byte says how many of the others are a
 * token; the rest is the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/admit/peer.h"
#include "server/socket/principals.h"
#include "server/socket/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16 * 1024 };

static void need(bool good) {
    if (!good) abort();
}

static void look_up(const cr_principals *principals, const char *token, size_t length) {
    const cr_principal *who;
    cr_error error;
    const cr_status status = cr_tokens_know(principals, token, length, 1000000000, &who, &error);
    if (status != CR_OK) {
        need(status == CR_UNAUTHENTICATED && error.text[0] != '\0');
        return;
    }
    need(who->by == CR_KNOWN_token && (who->until_s == 0 || who->until_s > 1000000000));
}

static void check_lines(const cr_principals *p) {
    size_t count = 0;
    for (const cr_list *node = p->all.next; node != &p->all; node = node->next, count++) {
        const cr_principal *line = cr_container(node, const cr_principal, link);
        need(memchr(line->name, '\0', sizeof line->name) && *line->name && line->line > 0 && line->line < UINT32_MAX);
        need(cr_principals_find(p, line->name) == line && line->node.key == cr_peer_principal(line->name));
        need(strncmp(line->name, cr_known_words[line->by], strlen(cr_known_words[line->by])) == 0 && p->of[line->by]);
        need(!(line->may & ~CR_MAY_ALL));
    }
    need(count == p->by_name.count);
}

/* Every second name is somebody's. */
static bool in_use(void *argument, uint64_t key) {
    (void)argument;
    return key & 1;
}

/* A file of one token comes, then what was read, then the one token again: lines that are gone grant nothing to whoever goes by them. */
static void reload(const char *one, cr_principals *principals) {
    cr_error error;
    cr_principals known, fresh;
    cr_principals_init(&known);
    cr_principals_init(&fresh);
    need(cr_principals_read(one, &fresh, &error) == CR_OK);
    cr_principals_renew(&known, &fresh, in_use, NULL);
    const bool stays = cr_principals_find(principals, "a") != NULL;
    cr_principals_renew(&known, principals, in_use, NULL);
    need((cr_principals_find(&known, "a") != NULL) == stays);
    need(cr_principals_read(one, &fresh, &error) == CR_OK);
    cr_principals_renew(&known, &fresh, in_use, NULL);
    need(known.by_name.count == 1 && cr_principals_find(&known, "a") != NULL);
    for (const cr_list *node = known.all.next; node != &known.all; node = node->next) {
        const cr_principal *line = cr_container(node, const cr_principal, link);
        need(line->line == 1 || line->by != CR_KNOWN_token || line->may == CR_MAY_nothing);
    }
    cr_principals_free(&known);
}

static int file_of(const void *bytes, size_t size, char path[32]) {
    const int file = memfd_create("principals", MFD_CLOEXEC);
    need(file >= 0 && write(file, bytes, size) == (ssize_t)size && fchmod(file, 0600) == 0);
    snprintf(path, 32, "/proc/self/fd/%d", file);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* The hash of the zeros as a secret, with zeros as salt: so a file of the corpus has a line that this opens. */
    static const char opens[] = "a.0000000000000000000000000000000000000000000000000000000000000000";
    static const char one[] =
        "a 00000000000000000000000000000000 "
        "17b0761f87b081d5cf10757ccc89f12be355c70e2e29df288b65b30710dcbcd1 calls=3\n";
    char path[32], path_of_one[32];
    cr_error error = {CR_OK, ""};
    cr_principals principals;
    if (size == 0 || size > MOST) return 0;
    const size_t length = data[0] < size ? data[0] : size - 1;
    const int file = file_of(data + 1 + length, size - 1 - length, path);
    const int other = file_of(one, sizeof one - 1, path_of_one);
    cr_principals_init(&principals);
    const cr_status status = cr_principals_read(path, &principals, &error);
    if (status == CR_OK) {
        check_lines(&principals);
        look_up(&principals, (const char *)data + 1, length);
        look_up(&principals, opens, sizeof opens - 1);
        reload(path_of_one, &principals);
    } else {
        need(status == CR_INVALID_ARGUMENT && strstr(error.text, ", line ") != NULL);
    }
    cr_principals_free(&principals);
    close(other);
    close(file);
    return 0;
}
