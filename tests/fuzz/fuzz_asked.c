/* Any bytes as what a read of quantiles counts: refused with a sentence, or a read that packs to the same bytes, and counts elements within
 * its counts. The elements are the bytes themselves, so that some of them are sought. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cr_error e = {CR_OK, ""};
    cr_quantile s;
    uint8_t again[CR_QUANTILE_ASKED_BYTES];
    memset(&s, 0xa5, sizeof s);
    if (cr_quantile_unpack(&s, data, size, &e) != CR_OK) {
        if ((e.code != CR_INVALID_ARGUMENT && e.code != CR_UNIMPLEMENTED) || e.text[0] == '\0') abort();
        return 0;
    }
    if (cr_quantile_pack(&s, again) != size || memcmp(again, data, size) != 0) abort();
    const size_t words = cr_quantile_words(&s);
    const uint64_t n = size / cr_dtype_size(s.dtype);
    const cr_view view = {.data = data, .mask = {.kind = CR_MASK_NONE}};
    uint64_t *counts = calloc(words, sizeof *counts), total = 0;
    if (counts == NULL) return 0;
    cr_cpu_quantile_fold(&s, counts, &view, n);
    for (size_t i = CR_QUANTILE_BINS; i < words; i++) total += counts[i];
    const bool all = s.read == 0; /* a later read counts what is sought */
    if (total > n || (all && (total != n || counts[CR_QUANTILE_SEEN] != n))) abort();
    free(counts);
    return 0;
}
