/* checkpoint: what the drivers of checkpoints share: any bytes become a file, a reader reads it, and what it says is held against the
 * file: a sentence, or tensors that lie within it. */
#ifndef CURED_TESTS_FUZZ_CHECKPOINT_H
#define CURED_TESTS_FUZZ_CHECKPOINT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/weights/json.h"
#include "client/weights/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check_tensors(const weights *w, size_t size) {
    for (size_t i = 0; i < w->count; i++) {
        const weights_tensor *t = &w->tensors[i];
        if (t->name == NULL || !weights_is_utf8(t->name, strlen(t->name)) || t->type[0] == '\0') abort();
        if (t->dims > WEIGHTS_MAX_DIMS || (t->dims != 0 && t->shape == NULL)) abort();
        if (t->offset > size || t->bytes > size - t->offset) abort();
        const uint64_t count = weights_elements(t);
        if (t->dtype != CURED_DTYPE_DEFAULT && count * cured_dtype_size(t->dtype) != t->bytes) abort();
        if (i != 0 && strcmp(w->tensors[i - 1].name, t->name) >= 0) abort();
    }
}

/* A file of these bytes, open in the table. */
static inline void open_bytes(weights *w, const uint8_t *data, size_t size) {
    static int fd = -1;
    char path[64];
    cured_error e;
    memset(w, 0, sizeof *w);
    if (fd < 0) fd = memfd_create("checkpoint", 0);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (weights_add_file(w, path, NULL, &e) != CURED_OK) abort();
}

static inline void settle(weights *w, cured_status status, cured_error *e, size_t size) {
    if (status == CURED_OK) status = weights_sort(w, e);
    if (status == CURED_OK) check_tensors(w, size);
    if (status != CURED_OK && (e->code != status || e->text[0] == '\0')) abort();
    weights_close(w);
}

#endif
