/* Any 16 bytes: a header is refused with a sentence, or is one that can be written again to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (; size >= CR_FRAME_HEADER_BYTES; data += CR_FRAME_HEADER_BYTES, size -= CR_FRAME_HEADER_BYTES) {
        for (int client = 0; client <= 1; client++) {
            cr_frame f;
            cr_error e = {CR_OK, ""};
            bool skip;
            uint8_t again[CR_FRAME_HEADER_BYTES];
            if (cr_frame_get(data, client, &f, &skip, &e) != CR_OK) {
                if (e.code == CR_OK || e.text[0] == '\0') abort();
                continue;
            }
            cr_frame_put(again, &f);
            if (memcmp(again, data, sizeof again) != 0 || f.length > CR_DATA_MAX_BYTES) abort();
            if (skip != (strcmp(cr_frame_name(f.type), "unknown") == 0)) abort();
        }
    }
    return 0;
}
