/* Any bytes as a partial: refused with a sentence, or a share that packs to the same bytes, merges and finishes. Those by key as well. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/axis.h"
#include "kernels/core/keyed.h"
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

static void refused(const cr_error *e) {
    if ((e->code != CR_INVALID_ARGUMENT && e->code != CR_UNIMPLEMENTED) || e->text[0] == '\0') abort();
}

/* Each op that they answer, with statuses and without. */
static void finish_by_key(const uint8_t *data, size_t size, const cr_keyed *of) {
    const uint64_t answers = of->groups * of->columns;
    const cr_finish_opts opts = {.nan = CR_NAN_SKIP};
    if (answers > 4096) return; /* the room for them is the caller's */
    uint8_t *values = malloc(answers * 8 + 1), *statuses = malloc(answers + 1);
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        cr_error e = {CR_OK, ""};
        const uint32_t one = (uint32_t)op;
        if (cr_op_supports(op, of->dtype, &e) != CR_OK || cr_keyed_answers(of, &one, 1, &e) != CR_OK) continue;
        if (cr_op_closing(op) == CR_CLOSING_ORDER || cr_dtype_size(cr_axis_dtype(op, of->dtype, &opts)) > 8) continue;
        if (cr_keyed_finish(data, size, &one, 1, &opts, (void *const[]){values}, (uint8_t *const[]){statuses}, &e) !=
            CR_OK)
            abort();
        cr_keyed_finish(data, size, &one, 1, &opts, (void *const[]){values}, NULL, &e);
    }
    free(values);
    free(statuses);
}

static void by_key(const uint8_t *data, size_t size) {
    cr_keyed of;
    cr_error e = {CR_OK, ""};
    const cr_keyed_bytes twice[] = {{data, size}, {data, size}};
    uint8_t *merged = NULL;
    uint64_t n, length = 0;
    size_t which;
    if (cr_keyed_check(data, size, &of, &n, &e) != CR_OK) {
        refused(&e);
        if (cr_keyed_merge(twice, 2, &merged, &length, &which, &e) == CR_OK) abort();
        return;
    }
    if (cr_keyed_merge(twice, 1, &merged, &length, &which, &e) != CR_OK) abort();
    if (length != size || memcmp(merged, data, size) != 0) abort();
    free(merged);
    if (cr_keyed_merge(twice, 2, &merged, &length, &which, &e) != CR_OK)
        refused(&e); /* more than 2^63 elements */
    else if (cr_keyed_check(merged, (size_t)length, &of, &n, &e) != CR_OK)
        abort();
    free(merged);
    finish_by_key(data, size, &of);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cr_error e = {CR_OK, ""};
    if (cr_keyed_is(data, size)) by_key(data, size);
    memset(&share, 0xa5, sizeof share);
    if (cr_share_unpack(data, size, &share, &e) != CR_OK) {
        refused(&e);
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
