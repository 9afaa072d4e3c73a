/* Any bytes as a .npz archive: refused with a sentence, or the member lies within the file and unpacks to no more than promised. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/cli/unpack.h"

enum { MOST_UNPACKED = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const cured_error *e) {
    if (e->code == CURED_OK || e->text[0] == '\0') abort();
}

static void unpack(int fd, const npz_member *m) {
    static uint8_t out[5000];
    cured_error e = {CURED_OK, 0, ""};
    uint64_t sum = 0;
    size_t n = 1;
    unpacker *u = unpack_begin(fd, m);
    if (u == NULL) abort();
    while (n != 0 && sum < MOST_UNPACKED) {
        if (unpack_next(u, out, sizeof out, &n, &e) != CURED_OK) {
            check(&e);
            break;
        }
        sum += n;
        if (sum > m->bytes) abort();
    }
    unpack_end(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    npz_member m;
    cured_error e = {CURED_OK, 0, ""};
    if (fd < 0) fd = memfd_create("npz", 0);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    if (npz_find(fd, size, "x", &m, &e) != CURED_OK) {
        check(&e);
        return 0;
    }
    if (m.offset > size || m.stored > size - m.offset) abort();
    if (m.deflated) unpack(fd, &m);
    return 0;
}
