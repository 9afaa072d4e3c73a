/* hex: reads golden files.
 *
 * Thread: the test's. */
#include "tests/protocol/hex.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(int c) {
    const char *digits = "0123456789abcdef";
    const char *at = c != 0 ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

static void give_up(const char *path, const char *why) {
    fprintf(stderr, "%s: %s\n", path, why);
    exit(2);
}

size_t hex_read(const char *name, uint8_t *out, size_t cap) {
    char path[1024];
    size_t n = 0;
    int c, high = -1;
    snprintf(path, sizeof path, "%s/%s.hex", GOLDEN_DIR, name);
    FILE *f = fopen(path, "r");
    if (f == NULL) give_up(path, "cannot be opened");
    while ((c = fgetc(f)) != EOF) {
        if (c == '#')
            while (c != EOF && c != '\n') c = fgetc(f);
        if (c == EOF) break;
        if (isspace(c)) continue;
        if (digit(c) < 0) give_up(path, "holds something other than hex digits");
        if (high < 0) {
            high = digit(c);
            continue;
        }
        if (n == cap) give_up(path, "is too long");
        out[n++] = (uint8_t)(high << 4 | digit(c));
        high = -1;
    }
    fclose(f);
    if (high >= 0) give_up(path, "ends in half a byte");
    return n;
}
