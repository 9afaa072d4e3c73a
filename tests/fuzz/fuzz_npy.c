/* Any bytes as a .npy file: refused with a sentence, wants more within its limit, or is a header within bounds. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    npy_header h;
    cured_error e = {CURED_OK, 0, ""};
    size_t need = 0;
    memset(&h, 0xa5, sizeof h);
    if (npy_parse(data, size, &h, &need, &e) != CURED_OK) {
        if (e.code == CURED_OK || e.text[0] == '\0') abort();
        return 0;
    }
    if (need > NPY_MAX_HEADER) abort();
    if (need > size) return 0;
    const bool is_void = h.dtype == CURED_DTYPE_DEFAULT, is_result = h.dtype == CURED_I128 || h.dtype == CURED_BIGINT;
    if (h.data_offset != need || h.dims > NPY_MAX_DIMS || h.dtype > CURED_F8_E5M2 || is_result) abort();
    const size_t bytes = is_void ? h.size : cured_dtype_size(h.dtype);
    if (bytes == 0 || (is_void && bytes > 2)) abort();
    if (h.count > ((uint64_t)INT64_MAX - h.data_offset) / bytes) abort();
    return 0;
}
