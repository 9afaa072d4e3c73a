/* layout: see layout.h. Thread: any; nothing here holds state. */
#include "kernels/cpu/layout.h"

#include "kernels/cpu/fold.h"

/* The digest alone. */
static void fold_runs(cr_partial *p, const cr_layout *block, const uint8_t *data, uint64_t n, uint64_t from) {
    const size_t size = cr_dtype_size((cr_dtype)p->dtype);
    while (n != 0) {
        const uint64_t left = block->run - from % block->run, now = n < left ? n : left;
        cr_cpu_fold(p, data, now, cr_layout_place(block, from));
        data += now * size;
        from += now;
        n -= now;
    }
}

void cr_cpu_fold_layout(cr_partial *p, const cr_layout *block, const void *data, uint64_t n, uint64_t from) {
    const uint32_t families = p->families;
    const uint64_t folded = p->n;
    p->families = families & ~(uint32_t)CR_FAM_DIGEST;
    if (p->families != 0 || families == 0) cr_cpu_fold(p, data, n, from);
    if (families & CR_FAM_DIGEST) {
        p->families = CR_FAM_DIGEST;
        fold_runs(p, block, data, n, from);
    }
    p->families = families;
    p->n = folded + n;
}
