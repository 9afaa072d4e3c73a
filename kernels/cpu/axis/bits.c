/* bits: bit_and, bit_or and bit_xor of whole blocks along an axis: of columns a stretch of each line at a time, of short rows a word at a
 * time. A partial for each output has 7.7 KB, which takes far longer to fill and to read than few elements do.
 *
 * Plain C: three operations a word are less than memory takes.
 * Thread: any. Owner: the caller owns every buffer. */
#include <string.h>

#include "kernels/core/close.h"
#include "kernels/core/fast.h"
#include "kernels/cpu/axis/plan.h"

enum { STRETCH = 2048, GROUP = 64, ROW_BYTES = 4096 }; /* bytes; longer rows go by partials as quickly */

/* The bits that all elements have, that some has, that an odd number has. */
typedef enum kind { ALL, ANY, ODD, KINDS } kind;

static kind kind_of(cr_op op) { return (kind)cr_close_bits(cr_op_term(op), ALL, ANY, ODD); }

/* Bools may be any byte; each that is not 0 is a 1. */
static uint64_t truth(uint64_t w) {
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    return (((w & low) + low) | w) >> 7 & UINT64_C(0x0101010101010101);
}

bool cr_axis_bits_take(const cr_axis_plan *plan, const cr_view *view) {
    return cr_fast_on(CR_FAST_AXIS_BITS) && plan->generic == CR_FAM_BITS && view->mask.kind == CR_MASK_NONE &&
           (!cr_axis_has_rows(plan->spec) || plan->spec->shape.n <= ROW_BYTES / plan->size);
}

/* ---- Columns ---- */

typedef struct stretch {
    uint64_t word[KINDS][STRETCH / 8];
} stretch;

/* At most a group of bytes. What lies behind them in the stretch becomes anything. */
static void fold_group(stretch *s, size_t at, const uint8_t *p, size_t bytes, bool bools) {
    uint64_t w[GROUP / 8] = {0};
    if (bytes == GROUP)
        memcpy(w, p, GROUP);
    else
        memcpy(w, p, bytes);
    for (size_t i = 0; bools && i < GROUP / 8; i++) w[i] = truth(w[i]);
    for (size_t i = 0; i < GROUP / 8; i++) s->word[ALL][at / 8 + i] &= w[i];
    for (size_t i = 0; i < GROUP / 8; i++) s->word[ANY][at / 8 + i] |= w[i];
    for (size_t i = 0; i < GROUP / 8; i++) s->word[ODD][at / 8 + i] ^= w[i];
}

/* The stretch of `bytes` bytes at p and in each line below. */
static void fold_columns(stretch *s, const cr_axis_plan *plan, const uint8_t *p, size_t bytes) {
    const bool bools = plan->dtype == CR_BOOL;
    const size_t line = plan->spec->shape.inner * plan->size;
    memset(s->word[ALL], bools ? 1 : 0xff, sizeof s->word[ALL]);
    memset(s->word[ANY], 0, sizeof s->word[ANY] + sizeof s->word[ODD]);
    for (uint64_t k = 0; k < plan->spec->shape.n; k++, p += line)
        for (size_t at = 0; at < bytes; at += GROUP)
            fold_group(s, at, p + at, bytes - at < GROUP ? bytes - at : GROUP, bools);
}

/* ---- Rows ---- */

static void fold_row(uint64_t found[KINDS], const cr_axis_plan *plan, const uint8_t *p) {
    const size_t bytes = plan->spec->shape.n * plan->size;
    const bool bools = plan->dtype == CR_BOOL;
    found[ALL] = ~UINT64_C(0);
    found[ANY] = found[ODD] = 0;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t own = 0, all = ~UINT64_C(0);
        if (bytes - at >= 8) {
            memcpy(&own, p + at, 8);
            all = own = bools ? truth(own) : own;
        } else {
            memcpy(&own, p + at, bytes - at);
            own = bools ? truth(own) : own;
            memcpy(&all, &own, bytes - at);
        }
        found[ALL] &= all;
        found[ANY] |= own;
        found[ODD] ^= own;
    }
    for (unsigned shift = 32; shift >= 8 * plan->size; shift /= 2) {
        found[ALL] &= found[ALL] >> shift;
        found[ANY] |= found[ANY] >> shift;
        found[ODD] ^= found[ODD] >> shift;
    }
    if (bools) found[ALL] &= 1;
}

/* ---- Answers ---- */

/* To outputs `at` and on, so many bytes of each kind. */
static void store(const cr_axis_plan *plan, const void *const from[KINDS], uint64_t at, size_t bytes,
                  void *const out[]) {
    for (uint32_t k = 0; k < plan->spec->op_count; k++) {
        if (!cr_ops_has(plan->generic_ops, plan->spec->ops[k])) continue;
        memcpy((uint8_t *)out[k] + at * plan->size, from[kind_of(plan->spec->ops[k])], bytes);
    }
}

void cr_axis_bits_blocks(const cr_axis_plan *plan, const uint8_t *data, uint64_t blocks, void *const out[]) {
    const uint64_t inner = plan->spec->shape.inner, n = plan->spec->shape.n;
    const size_t line = inner * plan->size;
    for (uint64_t b = 0; b < blocks; b++, data += n * line) {
        if (cr_axis_has_rows(plan->spec)) {
            uint64_t found[KINDS];
            fold_row(found, plan, data);
            store(plan, (const void *const[KINDS]){&found[ALL], &found[ANY], &found[ODD]}, b, plan->size, out);
            continue;
        }
        for (size_t at = 0; at < line; at += STRETCH) {
            const size_t now = line - at < STRETCH ? line - at : STRETCH;
            stretch s;
            fold_columns(&s, plan, data + at, now);
            store(plan, (const void *const[KINDS]){s.word[ALL], s.word[ANY], s.word[ODD]}, b * inner + at / plan->size,
                  now, out);
        }
    }
}
