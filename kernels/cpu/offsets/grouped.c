/* grouped: see grouped.h. Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/offsets/grouped.h"

#include <string.h>

#include "kernels/core/fast.h"

enum { DIGIT_BITS = 7, DIGITS = 1 << DIGIT_BITS, PASSES = 2, STEP = 32, LINE = 64 };
_Static_assert(CR_ROW_BYTES <= 1 << (PASSES * DIGIT_BITS), "each length of a row fits the digits, of bytes too");

struct cr_grouped {
    uint16_t order[2][CR_BATCH]; /* of segments, by length; from which and to which a pass sorts */
    cr_rows rows;
    uint8_t tile[CR_ROWS_BYTES + CR_GROUP_PAD];
    /* Then a strip, and a group's answers: op after op, and their statuses. */
};

static size_t strip_at(void) { return (sizeof(cr_grouped) + 63) / 64 * 64; }

static size_t width_of(const cr_axis_plan *plan, uint32_t k) {
    return cr_dtype_size(cr_axis_dtype(plan->spec->ops[k], plan->dtype, &plan->spec->finish));
}

size_t cr_grouped_bytes(const cr_axis_plan *plan) {
    size_t answers = 0;
    for (uint32_t k = 0; k < plan->spec->op_count; k++) answers += CR_ROWS * (width_of(plan, k) + 1);
    return strip_at() + plan->strip_bytes + answers;
}

void cr_grouped_init(const cr_axis_plan *plan, cr_grouped *own) {
    own->rows.borders = NULL;
    own->rows.strip = (cr_strip *)(void *)((uint8_t *)own + strip_at());
    cr_strip_init(plan, own->rows.strip);
    for (int which = 0; which < CR_ROW_SUMS; which++) {
        own->rows.sums[which].top = own->rows.sums[which].misses = 0;
        own->rows.sums[which].strange = false;
    }
}

/* Where a group's answers go before they are dealt out. */
static void places(cr_grouped *own, const cr_axis_plan *plan, void *out[]) {
    uint8_t *at = (uint8_t *)own->rows.strip + plan->strip_bytes;
    const uint32_t ops = plan->spec->op_count;
    for (uint32_t k = 0; k < ops; k++) {
        out[k] = at;
        at += CR_ROWS * width_of(plan, k);
    }
    for (uint32_t k = 0; plan->spec->statuses && k < ops; k++, at += CR_ROWS) out[ops + k] = memset(at, 0, CR_ROWS);
}

/* count rows of n elements at p; their answers to out[k][at …], the first being answer number `output`. */
static cr_status fold_rows(cr_grouped *own, const cr_batch *b, const uint8_t *p, uint64_t count, uint64_t n,
                           uint64_t output, uint64_t at, void *const out[], cr_error *error) {
    const cr_axis_isa *isa = cr_axis_current();
    const unsigned at_once = cr_rows_at_once(n * b->plan->size);
    cr_status status = CR_OK;
    b->row->shape.n = n;
    for (uint64_t done = 0; status == CR_OK && done < count; done += at_once) {
        const unsigned now = count - done < at_once ? (unsigned)(count - done) : at_once;
        own->rows.data = p + done * n * b->plan->size;
        isa->rows(b->plan, &own->rows, own->rows.data, now, n);
        status = cr_rows_finish(b->plan, isa, &own->rows, now, output + done, out, at + done, error);
    }
    return status;
}

static uint64_t length(const cr_batch *b, uint64_t i) { return b->borders[i + 1] - b->borders[i]; }
static const uint8_t *start(const cr_batch *b, uint64_t i) {
    return b->data + (b->borders[i] - b->low) * b->plan->size;
}

/* bytes to `to`, in steps: what follows them there, and at `from` before end, is written and read, too. */
static void copy_row(uint8_t *to, const uint8_t *from, size_t bytes, const uint8_t *end) {
    if ((size_t)(end - from) < bytes + STEP) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += STEP) memcpy(to + i, from + i, STEP);
}

/* The answers of a group, each to its segment's place. */
static void deal(const cr_batch *b, const uint16_t *segments, unsigned count, void *const from[]) {
    const cr_axis_spec *spec = b->plan->spec;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        const size_t width = width_of(b->plan, k);
        const uint8_t *values = from[k];
        uint8_t *to = (uint8_t *)b->out[k] + b->at * width;
        if (!cr_ops_has(b->plan->strip_ops, spec->ops[k])) continue;
        if (width == sizeof(uint64_t)) {
            for (unsigned i = 0; i < count; i++)
                memcpy(to + segments[i] * sizeof(uint64_t), values + i * sizeof(uint64_t), sizeof(uint64_t));
        } else {
            for (unsigned i = 0; i < count; i++) memcpy(to + segments[i] * width, values + i * width, width);
        }
        for (unsigned i = 0; spec->statuses && i < count; i++)
            ((uint8_t *)b->out[spec->op_count + k])[b->at + segments[i]] =
                ((const uint8_t *)from[spec->op_count + k])[i];
    }
}

/* Segments of n elements each, which lie anywhere. */
static cr_status fold_group(cr_grouped *own, const cr_batch *b, const uint16_t *segments, unsigned count, uint64_t n,
                            cr_error *error) {
    const size_t bytes = n * b->plan->size;
    const uint8_t *end = b->data + (b->high - b->low) * b->plan->size;
    const unsigned at_once = cr_rows_at_once(bytes);
    cr_status status = CR_OK;
    if (bytes > CR_GROUP_BYTES || count == 1) {
        for (unsigned i = 0; i < count && status == CR_OK; i++)
            status = fold_rows(own, b, start(b, segments[i]), 1, n, b->first + segments[i], b->at + segments[i], b->out,
                               error);
        return status;
    }
    for (unsigned done = 0; done < count && status == CR_OK; done += at_once) {
        void *out[CR_AXIS_PLACES];
        const unsigned now = count - done < at_once ? count - done : at_once;
        for (unsigned i = 0; i < now; i++) copy_row(own->tile + i * bytes, start(b, segments[done + i]), bytes, end);
        places(own, b->plan, out);
        status = fold_rows(own, b, own->tile, now, n, b->first, 0, out, error);
        if (status == CR_OK) deal(b, segments + done, now, out);
    }
    return status;
}

/* Whether all that rows answer are sums of floats, which rows of different lengths give, too. */
static bool are_sums(const cr_axis_plan *plan) {
    bool are = cr_dtype_kind(plan->dtype) == CR_KIND_FLOAT && cr_fast_on(CR_FAST_MIXED_ROWS);
    for (uint32_t k = 0; k < plan->spec->op_count && are; k++) {
        const cr_op op = plan->spec->ops[k];
        if (!cr_ops_has(plan->strip_ops, op)) continue;
        const cr_term term = cr_op_term(op);
        are = (term == CR_TERM_VALUE || term == CR_TERM_MAGNITUDE || term == CR_TERM_SQUARE) && !cr_op_is_root(op) &&
              cr_op_divisor(op) == CR_DIVISOR_ONE;
    }
    return are;
}

/* Sums of segments [first, first + count) of the batch, which lie side by side. */
static cr_status fold_apart(cr_grouped *own, const cr_batch *b, uint64_t first, uint64_t count, cr_error *error) {
    const cr_axis_isa *isa = cr_axis_current();
    cr_status status = CR_OK;
    for (uint64_t i = first, now; i < first + count && status == CR_OK; i += now) {
        now = first + count - i < CR_ROWS ? first + count - i : CR_ROWS;
        own->rows.data = start(b, i);
        own->rows.borders = b->borders + i;
        isa->rows(b->plan, &own->rows, own->rows.data, (unsigned)now, 0);
        status = cr_rows_finish(b->plan, isa, &own->rows, (unsigned)now, b->first + i, b->out, b->at + i, error);
    }
    own->rows.borders = NULL;
    return status;
}

/* The segments of order, count of them, by rising length, and of one length by rising number. Returns where they are. */
static const uint16_t *sort(cr_grouped *own, const cr_batch *b, unsigned count, uint64_t longest) {
    unsigned now = 0;
    for (unsigned shift = 0; longest >> shift; shift += DIGIT_BITS, now ^= 1) {
        uint16_t begin[DIGITS] = {0}, sum = 0;
        for (unsigned i = 0; i < count; i++) begin[length(b, own->order[now][i]) >> shift & (DIGITS - 1)]++;
        for (unsigned d = 0; d < DIGITS; d++) {
            const uint16_t here = begin[d];
            begin[d] = sum;
            sum = (uint16_t)(sum + here);
        }
        for (unsigned i = 0; i < count; i++) {
            const uint16_t segment = own->order[now][i];
            own->order[now ^ 1][begin[length(b, segment) >> shift & (DIGITS - 1)]++] = segment;
        }
    }
    return own->order[now];
}

cr_status cr_grouped_fold(cr_grouped *own, const cr_batch *b, uint16_t others[CR_BATCH], unsigned *other_count,
                          cr_error *error) {
    const uint64_t most = CR_ROW_BYTES / b->plan->size;
    const bool sums = are_sums(b->plan);
    uint64_t longest = 0, since = 0; /* from there on segments wait that differ in length */
    unsigned apart = 0, other = 0;
    cr_status status = CR_OK;
    for (uint64_t i = 0, run; i < b->count && status == CR_OK; i += run) {
        const uint64_t n = length(b, i);
        for (run = 1; i + run < b->count && length(b, i + run) == n;) run++;
        if (sums && n * b->plan->size <= CR_GROUP_BYTES && (run < CR_GROUP_RUN || n == 0)) continue;
        if (sums && since < i) status = fold_apart(own, b, since, i - since, error);
        since = i + run;
        if (status != CR_OK) break;
        if (n == 0 || n > most) {
            for (uint64_t k = 0; k < run; k++) others[other++] = (uint16_t)(i + k);
        } else if (run >= CR_GROUP_RUN || n * b->plan->size > CR_GROUP_BYTES) {
            status = fold_rows(own, b, start(b, i), run, n, b->first + i, b->at + i, b->out, error);
        } else {
            if (n > longest) longest = n;
            for (uint64_t k = 0; k < run; k++) own->order[0][apart++] = (uint16_t)(i + k);
            /* They are copied in another order, which no processor foresees. */
            for (size_t k = 0; k < run * n * b->plan->size; k += LINE) __builtin_prefetch(start(b, i) + k);
        }
    }
    *other_count = other;
    if (sums && status == CR_OK && since < b->count) status = fold_apart(own, b, since, b->count - since, error);
    const uint16_t *order = sort(own, b, apart, longest);
    for (unsigned i = 0, count; i < apart && status == CR_OK; i += count) {
        const uint64_t n = length(b, order[i]);
        for (count = 1; i + count < apart && length(b, order[i + count]) == n;) count++;
        status = fold_group(own, b, order + i, count, n, error);
    }
    return status;
}
