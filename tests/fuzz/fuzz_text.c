/* Any bytes as a column of text: values, or a sentence that names a line. By the quick way, and byte by byte in small pieces: the same. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_VALUES = 1 << 16 };

typedef struct result {
    size_t count;
    bool whole;
    cured_status status;
    cured_error error;
    uint64_t values[MOST_VALUES];
} result;

static void run(const text_format *format, const uint8_t *data, size_t size, size_t piece, result *r) {
    text *t = text_begin(format);
    if (t == NULL) abort();
    r->count = 0;
    r->whole = false;
    r->status = CURED_OK;
    for (size_t n = 1; n != 0 && r->status == CURED_OK; data += n, size -= n) {
        text_values v;
        size_t most;
        uint8_t *to = text_room(t, &most);
        if (most == 0) abort();
        n = size < most ? size : most;
        if (n > piece) n = piece;
        memcpy(to, data, n);
        r->status = text_take(t, n, &v, &r->error);
        if (v.count > MOST_VALUES - r->count) abort();
        if (v.count != 0) memcpy(r->values + r->count, v.reals, v.count * sizeof *v.reals);
        if (v.whole)
            for (size_t i = 0; i < v.count; i++)
                if ((double)v.integers[i] != v.reals[i]) abort();
        r->count += v.count;
        r->whole = v.whole;
    }
    text_end(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static result quick, slow;
    if (size < 2 || size > MOST_VALUES) return 0;
    text_format f = {.kind = (text_kind)(data[0] % 3), .header = (data[0] & 16) != 0, .column = data[0] >> 2 & 3};
    f.delimiter = (data[0] & 32) != 0 ? (uint8_t) ",\t; "[data[1] & 3] : 0;
    if (f.header && (data[0] & 64) != 0) f.name = "c";
    run(&f, data + 2, size - 2, size, &quick);
    f.slowly = true;
    run(&f, data + 2, size - 2, (size_t)1 + data[1] % 37, &slow);
    if (quick.status != slow.status || quick.count < slow.count) abort();
    if (quick.status == CURED_OK && (quick.count != slow.count || quick.whole != slow.whole)) abort();
    if (quick.status != CURED_OK && strcmp(quick.error.text, slow.error.text) != 0) abort();
    if (quick.status != CURED_OK && strncmp(quick.error.text, "line ", 5) != 0) abort();
    return memcmp(quick.values, slow.values, slow.count * sizeof *slow.values) != 0 ? (abort(), 0) : 0;
}
