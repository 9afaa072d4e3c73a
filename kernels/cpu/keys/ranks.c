/* ranks: ops by rank by key. Folding counts the elements of each cell; then a copy of all that count is laid out cell by cell, in one more
 * reading, and each cell of it is a segment.
 *
 * Thread: as the state. Owner: the state has the copy. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/keys/state.h"
#include "kernels/cpu/order.h"

enum { LINE = 64 };

bool cr_key_ranks(const cr_axis_spec *spec) { return cr_axis_is_uncut(spec); }

static size_t aligned(size_t bytes) { return (bytes / LINE + 1) * LINE; }

uint64_t cr_key_ranks_bytes(const cr_axis_spec *spec, const cr_keys *keys) {
    if (!cr_key_ranks(spec)) return 0;
    return aligned(cr_order_segments_scratch(spec)) + cr_keys_elements(keys) * cr_dtype_size(spec->dtype);
}

/* Cells behind the last have no place, so nothing is put there. */
static uint64_t lay_out(cr_by_key *s) {
    uint64_t all = 0;
    for (uint64_t c = 0; c < s->cells; c++) {
        s->begins[c] = s->ends[c] = all;
        all += s->n[c];
    }
    s->begins[s->cells] = s->begins[s->cells + 1] = s->ends[s->cells] = all;
    return all;
}

cr_status cr_by_key_rank(cr_by_key *s, cr_error *error) {
    const uint64_t bytes = lay_out(s) * cr_dtype_size(s->spec.dtype);
    const size_t scratch = aligned(cr_order_segments_scratch(&s->spec));
    if (s->bytes > s->most || bytes + scratch > s->most - s->bytes)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "keys: the states of all groups, and a copy of what is ranked, would take more than %llu bytes, "
                       "the limit",
                       (unsigned long long)s->most);
    s->copy = malloc(bytes + 1);
    s->ranking = aligned_alloc(LINE, scratch);
    if (s->copy == NULL || s->ranking == NULL)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a copy of %llu bytes, of what is ranked by key",
                       (unsigned long long)bytes);
    s->bytes += bytes + scratch;
    return CR_OK;
}

/* Elements to the ends of their cells. One that was not counted, because keys or a mask changed meanwhile, has no place. */
static inline __attribute__((always_inline)) void put(cr_by_key *s, const cr_key_block *block, size_t size) {
    const uint32_t cells = (uint32_t)s->cells;
    for (unsigned i = 0; i < block->n; i++) {
        const uint32_t cell = block->cell[i] < cells ? block->cell[i] : cells;
        const uint64_t at = s->ends[cell];
        if (at >= s->begins[cell + 1]) continue;
        memcpy(s->copy + at * size, block->p + i * size, size);
        s->ends[cell] = at + 1;
    }
}

void cr_by_key_put(cr_by_key *s, const cr_view *view, uint64_t count, uint64_t at) {
    const size_t size = cr_dtype_size(s->spec.dtype);
    cr_key_block block;
    for (uint64_t done = 0; done < count; done += block.n) {
        block.p = view->data + done * size;
        block.n = count - done < CR_KEYS_BLOCK ? (unsigned)(count - done) : CR_KEYS_BLOCK;
        block.at = at + done;
        cr_key_cells(s, view, done, &block);
        if (size == 1)
            put(s, &block, 1);
        else if (size == 2)
            put(s, &block, 2);
        else if (size == 4)
            put(s, &block, 4);
        else
            put(s, &block, 8);
    }
}
