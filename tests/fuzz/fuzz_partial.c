/* Any bytes as a partial: refused with a sentence, or a share that packs to the same bytes, merges and finishes. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/serial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cr_share share, empty;
static uint8_t again[CR_SERIAL_MAX_BYTES];

static void finish_all(const cr_partial *p) {
    cr_error e;
    cr_value value;
    cr_dtype dtype = (cr_dtype)p->dtype;
    const cr_finish_opts skip = {.nan = CR_NAN_SKIP}, plain = {0};
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        if (cr_op_supports((cr_op)op, dtype, &e) != CR_OK || cr_op_needs((cr_op)op, dtype) & ~p->families) continue;
        cr_partial_finish(p, (cr_op)op, &plain, &value);
        if (value.error.code != CR_OK && value.error.text[0] == '\0') abort();
        cr_partial_finish(p, (cr_op)op, &skip, &value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cr_error e = {CR_OK, ""};
    memset(&share, 0xa5, sizeof share);
    if (cr_share_unpack(data, size, &share, &e) != CR_OK) {
        if ((e.code != CR_INVALID_ARGUMENT && e.code != CR_UNIMPLEMENTED) || e.text[0] == '\0') abort();
        return 0;
    }
    if (cr_share_pack(&share, again, sizeof again) != size || memcmp(again, data, size) != 0) abort();
    finish_all(&share.partial);
    /* nothing added changes nothing, and what has a place cannot be there twice */
    cr_partial none;
    cr_partial_init(&none, (cr_dtype)share.partial.dtype, share.partial.families);
    if (cr_share_make(&empty, &none, share.unplaced ? CR_UNPLACED : 0, &e) != CR_OK ||
        cr_share_merge(&empty, &share, &e) != CR_OK)
        abort();
    if (cr_share_pack(&empty, again, sizeof again) != size || memcmp(again, data, size) != 0) abort();
    const bool fits_twice = share.unplaced || (share.is_block && share.partial.n <= share.whole / 2);
    if (share.partial.n != 0 && !fits_twice && cr_share_merge(&empty, &share, &e) == CR_OK) abort();
    return 0;
}
