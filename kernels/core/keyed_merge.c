/* keyed_merge: partials by key that become one. Each part's cells rise, so the parts are read side by side, and a heap says whose cell is next.
 *
 * Thread: one at a time for a merger. Owner: keyed.h. */
#include <stdlib.h>

#include "kernels/core/keyed.h"

typedef struct part {
    cr_keyed_reader r;
    cr_keyed_cell next;
    size_t number;
} part;

struct cr_keyed_merger {
    cr_keyed_writer w;
    const cr_keyed_bytes *from; /* count parts, of which opened are read */
    size_t count, opened;
    cr_keyed of;    /* as the first */
    uint64_t cells; /* of all, which the parts' bytes bound, so that no sum of them wraps */
    uint64_t elements;
    size_t left;         /* parts that have a cell: a heap, the next of all first */
    cr_keyed_cell first; /* of the cell that is being merged, into sum; no share: there is none */
    bool alone;          /* it is of one part so far */
    cr_share sum, more;
    part parts[];
};

static bool before(const part *a, const part *b) {
    return a->next.number != b->next.number ? a->next.number < b->next.number : a->number < b->number;
}

/* The part at place i may be too far up. */
static void sink(cr_keyed_merger *m, size_t i) {
    for (size_t child; (child = 2 * i + 1) < m->left; i = child) {
        if (child + 1 < m->left && before(&m->parts[child + 1], &m->parts[child])) child++;
        if (!before(&m->parts[child], &m->parts[i])) return;
        const part moved = m->parts[i];
        m->parts[i] = m->parts[child];
        m->parts[child] = moved;
    }
}

/* The part at place i may be too far down. */
static void lift(cr_keyed_merger *m, size_t i) {
    for (size_t parent; i != 0 && before(&m->parts[i], &m->parts[parent = (i - 1) / 2]); i = parent) {
        const part moved = m->parts[i];
        m->parts[i] = m->parts[parent];
        m->parts[parent] = moved;
    }
}

/* The first part goes to its next cell. */
static cr_status advance(cr_keyed_merger *m, cr_error *error) {
    const cr_status status = cr_keyed_next(&m->parts[0].r, &m->parts[0].next, error);
    if (status != CR_OK) return status;
    if (m->parts[0].next.share == NULL) m->parts[0] = m->parts[--m->left];
    sink(m, 0);
    return CR_OK;
}

uint64_t cr_keyed_merger_bytes(uint64_t parts) {
    const uint64_t own = sizeof(cr_keyed_merger);
    return parts > (UINT64_MAX - own) / sizeof(part) ? UINT64_MAX : own + parts * sizeof(part);
}

/* The next part. */
static cr_status open_part(cr_keyed_merger *m, size_t *which, cr_error *error) {
    part *p = &m->parts[m->left];
    p->number = *which = m->opened;
    cr_status status = cr_keyed_open(&p->r, m->from[m->opened].data, m->from[m->opened].length, error);
    if (status == CR_OK && m->opened == 0) m->of = p->r.of;
    if (status == CR_OK) status = cr_keyed_alike(&m->of, &p->r.of, error);
    if (status == CR_OK) status = cr_keyed_next(&p->r, &p->next, error);
    if (status != CR_OK) return status;
    m->cells += p->r.of.cells;
    if (p->next.share != NULL) lift(m, m->left++);
    m->opened++;
    if (m->opened < m->count) return CR_OK;
    return cr_keyed_begin(&m->w, &m->of, m->cells, error);
}

cr_status cr_keyed_merger_new(const cr_keyed_bytes *parts, size_t count, cr_keyed_merger **merger, cr_error *error) {
    const uint64_t bytes = cr_keyed_merger_bytes(count);
    cr_keyed_merger *m = *merger = bytes <= SIZE_MAX - 1 ? malloc((size_t)bytes) : NULL;
    if (m == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    m->w.bytes = NULL;
    m->from = parts;
    m->count = count;
    m->opened = m->left = 0;
    m->cells = m->elements = 0;
    m->first = (cr_keyed_cell){0, 0, NULL};
    return CR_OK;
}

/* The first part's cell, which is the next of all, or one more of that cell. */
static cr_status take_cell(cr_keyed_merger *m, size_t *which, cr_error *error) {
    const cr_keyed_cell cell = m->parts[0].next;
    *which = m->parts[0].number;
    m->alone = m->first.share == NULL;
    cr_status status = cr_keyed_share(&m->of, &cell, m->alone ? &m->sum : &m->more, error);
    if (status == CR_OK && !m->alone) status = cr_share_merge(&m->sum, &m->more, error);
    if (m->alone) m->first = cell;
    return status == CR_OK ? advance(m, error) : status;
}

/* All parts that have the cell were taken. */
static cr_status end_cell(cr_keyed_merger *m, cr_error *error) {
    const cr_keyed_cell cell = m->first;
    const uint64_t n = m->sum.partial.n;
    m->elements = n <= INT64_MAX - m->elements ? m->elements + n : INT64_MAX;
    m->first.share = NULL;
    return m->alone ? cr_keyed_put_bytes(&m->w, cell.number, cell.share, cell.bytes, error)
                    : cr_keyed_put(&m->w, cell.number, &m->sum, error);
}

cr_status cr_keyed_merger_step(cr_keyed_merger *m, uint64_t steps, bool *over, size_t *which, cr_error *error) {
    cr_status status = CR_OK;
    for (; steps != 0 && m->opened < m->count && status == CR_OK; steps--) status = open_part(m, which, error);
    for (; steps != 0 && m->left != 0 && status == CR_OK; steps--) {
        status = take_cell(m, which, error);
        if (status == CR_OK && (m->left == 0 || m->parts[0].next.number != m->first.number))
            status = end_cell(m, error);
    }
    *over = m->opened == m->count && m->left == 0;
    return status;
}

uint64_t cr_keyed_merger_elements(const cr_keyed_merger *m) { return m->elements; }

uint8_t *cr_keyed_merger_end(cr_keyed_merger *m, uint64_t *length) { return cr_keyed_end(&m->w, length); }

uint8_t *cr_keyed_merger_take(cr_keyed_merger *m, uint64_t *length) {
    uint8_t *made = m->w.bytes;
    *length = made != NULL ? m->w.length : 0;
    m->w.bytes = NULL;
    return made;
}

void cr_keyed_merger_free(cr_keyed_merger *m) {
    if (m != NULL) cr_keyed_drop(&m->w);
    free(m);
}

cr_status cr_keyed_merge(const cr_keyed_bytes *parts, size_t count, uint8_t **out, uint64_t *length, size_t *which,
                         cr_error *error) {
    cr_keyed_merger *m;
    bool over;
    *out = NULL;
    *which = 0;
    cr_status status = cr_keyed_merger_new(parts, count, &m, error);
    if (status == CR_OK) status = cr_keyed_merger_step(m, UINT64_MAX, &over, which, error);
    if (status == CR_OK) *out = cr_keyed_merger_end(m, length);
    cr_keyed_merger_free(m);
    return status;
}
