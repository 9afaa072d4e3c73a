/* Any bytes as a file of tokens, and as a token: refused with a sentence that names the line, or principals with rights of the table
 * and a time. The first byte says how many of the others are a token; the rest is the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/socket/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16 * 1024 };

static void need(bool good) {
    if (!good) abort();
}

static void look_up(const cr_tokens *tokens, const char *token, size_t length) {
    cr_principal who;
    cr_error error;
    const cr_status status = cr_tokens_know(tokens, token, length, 1000000000, &who, &error);
    if (status != CR_OK) {
        need(status == CR_UNAUTHENTICATED && error.text[0] != '\0');
        return;
    }
    need(memchr(who.name, '\0', sizeof who.name) && strlen(who.name) >= 1);
    need(who.may && !(who.may & ~CR_MAY_ALL) && (who.until_s == 0 || who.until_s > 1000000000));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* The hash of the zeros as a secret, with zeros as salt: so a file of the corpus has a line that this opens. */
    static const char opens[] = "a.0000000000000000000000000000000000000000000000000000000000000000";
    char path[32];
    cr_error error = {CR_OK, ""};
    cr_tokens *tokens = NULL;
    if (size == 0 || size > MOST) return 0;
    const size_t length = data[0] < size ? data[0] : size - 1;
    const int file = memfd_create("tokens", MFD_CLOEXEC);
    const size_t rest = size - 1 - length;
    need(file >= 0 && write(file, data + 1 + length, rest) == (ssize_t)rest && fchmod(file, 0600) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const cr_status status = cr_tokens_open(path, &tokens, &error);
    if (status == CR_OK) {
        look_up(tokens, (const char *)data + 1, length);
        look_up(tokens, opens, sizeof opens - 1);
    } else {
        need(status == CR_INVALID_ARGUMENT && strstr(error.text, ", line ") != NULL && tokens == NULL);
    }
    cr_tokens_free(tokens);
    close(file);
    return 0;
}
