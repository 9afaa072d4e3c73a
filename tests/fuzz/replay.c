/* replay: gives every file of a corpus folder to a fuzz driver, so that the drivers run where there is no fuzzer. With a
 * second argument N, each file is also given N times with random bytes changed (seeded: the same in every run).
 *
 * Thread: one. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST = 1 << 20 };

static uint64_t state = 88172645463325252u;

static uint32_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* A copy of exact size, so that a read beyond it is seen by AddressSanitizer. */
static void give(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size != 0 ? size : 1);
    if (exact == NULL) abort();
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void give_changed(const uint8_t *data, size_t size, uint8_t *scratch) {
    memcpy(scratch, data, size);
    size_t n = size;
    for (uint32_t changes = 1 + next() % 4; changes > 0 && n > 0; changes--) {
        size_t at = next() % n;
        switch (next() % 4) {
            case 0:
                scratch[at] = (uint8_t)next();
                break;
            case 1:
                scratch[at] ^= (uint8_t)(1u << next() % 8);
                break;
            case 2:
                n = at;
                break;
            default:
                memmove(scratch + at, scratch + n / 2, n - (at > n / 2 ? at : n / 2));
                break;
        }
    }
    give(scratch, n);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS [CHANGES]\n", argv[0]);
        return 2;
    }
    long changes = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    static uint8_t data[LONGEST], scratch[LONGEST];
    int files = 0;
    DIR *dir = opendir(argv[1]);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        char path[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        FILE *f = fopen(path, "rb");
        if (f == NULL) continue;
        size_t n = fread(data, 1, sizeof data, f);
        fclose(f);
        give(data, n);
        for (long i = 0; i < changes; i++) give_changed(data, n, scratch);
        files++;
    }
    if (dir != NULL) closedir(dir);
    printf("%d files, each also changed %ld times\n", files, changes);
    return files > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
