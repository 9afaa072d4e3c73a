/* Any bytes as a safetensors file: refused with a sentence, or its tensors lie within it, side by side. */
#include "tests/fuzz/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weights w;
    cured_error e = {CURED_OK, 0, ""};
    open_bytes(&w, data, size);
    settle(&w, weights_read_safetensors(&w, &e), &e, size);
    return 0;
}
