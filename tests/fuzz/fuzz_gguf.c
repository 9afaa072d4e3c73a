/* Any bytes as a GGUF file: refused with a sentence, or its tensors lie within it, one behind the other. */
#include "tests/fuzz/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weights w;
    weights_split split;
    cured_error e = {CURED_OK, 0, ""};
    open_bytes(&w, data, size);
    settle(&w, weights_read_gguf(&w, &split, &e), &e, size);
    return 0;
}
