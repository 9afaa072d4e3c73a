/* range: ranges of columns in strips.
 *
 * A narrow array is seen as a wider one: `width` is a multiple of inner, element e of the block belongs to column e % width
 * of the strips, and finishing adds those that are one column of the array.
 * Thread: any; the caller owns every buffer. */
#include "kernels/cpu/columns/range.h"

#include <string.h>

#include "kernels/cpu/axis/hidden.h"

/* How a range of columns is walked. */
typedef struct walk {
    bool sums;               /* of values or magnitudes: nothing else is asked */
    uint64_t stripe;         /* columns */
    const cr_hidden *hidden; /* NULL: there is no mask */
    size_t near; /* bytes that a line fetches ahead of itself; 0: it fetches its columns a group of lines further on */
} walk;

/* Sums, of squares too, have little state, so they go along whole lines, which memory serves best. Everything else goes by stripes whose
 * state stays in the nearest cache while all the lines pass, and so do sums whose digits are many. */
static walk walk_of(const cr_axis_plan *plan, const cr_hidden *hidden, const cr_strip *first) {
    enum { STRIPE_BYTES = 2048, LONG_STRIPE_BYTES = 65536, NEAR_BYTES = 2048 };
    enum { FEW_DIGITS = 16, SHORT_LINE_BYTES = 8192 /* measured: not worth cutting up to here */ };
    walk w = {.sums = (plan->fast & ~(uint32_t)(CR_FAM_SUM | CR_FAM_SUMABS)) == 0, .hidden = hidden};
    const cr_strip_sum *squares = &first->sums[CR_AT_SUMSQ];
    bool along =
        (plan->fast & ~(uint32_t)CR_FAM_SUMS) == 0 && !first->hard && squares->high - squares->low <= FEW_DIGITS;
    w.stripe = ((along ? LONG_STRIPE_BYTES : STRIPE_BYTES) / plan->size + CR_STRIP - 1) / CR_STRIP * CR_STRIP;
    if (plan->width <= SHORT_LINE_BYTES / plan->size)
        w.stripe = plan->strips * CR_STRIP;
    else if (along)
        w.near = NEAR_BYTES;
    return w;
}

/* Lines [from, to) of a stripe's columns [begin, end), line `from` at p. The hardware sees many streams and fetches too late, so
 * each line of a large array asks for what comes soon: further on in the line, at its end in the next group of lines, and in the
 * last group in the next stripe. */
static void fold_stripe(const cr_axis_plan *plan, const cr_axis_isa *isa, walk w, void *strips, uint64_t origin,
                        cr_columns_range columns, const uint8_t *p, uint64_t from, uint64_t to) {
    size_t stride = plan->width * plan->size, wide = (columns.end - columns.begin) * plan->size;
    const cr_strip *strip = cr_strip_at(plan, strips, (columns.begin - origin) / CR_STRIP);
    unsigned now;
    for (uint64_t line = from; line < to; line += now, p += now * stride) {
        unsigned most = w.sums && strip->hard ? CR_LINES_HARD : CR_LINES;
        now = to - line < most ? (unsigned)(to - line) : most;
        size_t next = to - line > now ? now * stride : wide - (line - from) * stride;
        for (uint64_t c = columns.begin; c < columns.end;) {
            uint64_t number = c / CR_STRIP, last = (number + 1) * CR_STRIP;
            if (last > columns.end) last = columns.end;
            size_t ahead = w.near;
            if (w.near == 0)
                ahead = next;
            else if ((columns.end - c) * plan->size <= w.near)
                ahead = next + w.near - wide;
            cr_strip *here = cr_strip_at(plan, strips, number - origin / CR_STRIP);
            const uint8_t *at = p + (c - columns.begin) * plan->size;
            const unsigned first = (unsigned)(c % CR_STRIP), count = (unsigned)(last - c);
            if (plan->cached) ahead = 0;
            if (w.hidden)
                cr_hidden_lines(w.hidden, here, at, stride, now, first, count, line, c, ahead);
            else
                isa->lines(plan, here, at, stride, now, first, count, line, ahead);
            c = last;
        }
    }
}

/* Lines [from, to) of columns [begin, end), line `from` at p. */
static void fold_lines(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_hidden *hidden, void *strips,
                       uint64_t origin, cr_columns_range columns, const uint8_t *p, uint64_t from, uint64_t to) {
    walk w = walk_of(plan, hidden, cr_strip_at(plan, strips, (columns.begin - origin) / CR_STRIP));
    for (uint64_t c = columns.begin; c < columns.end;) {
        uint64_t last = (c / w.stripe + 1) * w.stripe;
        if (last > columns.end) last = columns.end;
        fold_stripe(plan, isa, w, strips, origin, (cr_columns_range){c, last}, p + (c - columns.begin) * plan->size,
                    from, to);
        c = last;
    }
}

void cr_columns_fold_range(const cr_axis_plan *plan, const cr_axis_isa *isa, void *strips, cr_columns_range range,
                           const uint8_t *data, const cr_mask *mask, uint64_t count, uint64_t at) {
    cr_hidden hidden;
    if (plan->hidden) cr_hidden_make(&hidden, plan, isa, mask);
    /* The elements are lines whose first begins at column `head` and whose last ends before column `tail`: at most three
     * ranges of columns, each with whole lines of its own. */
    uint64_t width = plan->width, first = at / width, head = at % width;
    uint64_t last = (at + count) / width, tail = (at + count) % width;
    uint64_t cut[4] = {0, head < tail ? head : tail, head < tail ? tail : head, width};
    for (int i = 0; i < 3; i++) {
        uint64_t begin = cut[i] > range.begin ? cut[i] : range.begin,
                 end = cut[i + 1] < range.end ? cut[i + 1] : range.end;
        if (begin >= end) continue;
        uint64_t from = begin >= head ? first : first + 1, to = begin < tail ? last + 1 : last;
        if (from >= to) continue;
        const uint8_t *p = data + (from * width + begin - at) * plan->size;
        fold_lines(plan, isa, plan->hidden ? &hidden : NULL, strips, range.begin, (cr_columns_range){begin, end}, p,
                   from, to);
    }
}

cr_strip *cr_columns_narrow(cr_columns_room *room, const cr_axis_plan *plan, const void *strips, uint64_t first,
                            unsigned count) {
    cr_strip *strip = (cr_strip *)(void *)room->bytes;
    cr_axis_plan *own = &room->plan;
    *own = *plan;
    cr_axis_plan_strips(own, CR_STRIP_PAD);
    cr_strip_init(own, strip);
    uint64_t inner = plan->spec->shape.inner, lines = plan->width / inner;
    for (uint64_t line = 0; line < lines; line++) {
        for (unsigned i = 0; i < count; i++) {
            uint64_t c = line * inner + first + i;
            const cr_strip *from = cr_strip_at(plan, (void *)(uintptr_t)strips, c / CR_STRIP);
            cr_strip_add_column(own, strip, i, plan, from, (unsigned)(c % CR_STRIP), lines, line);
        }
    }
    return strip;
}

cr_status cr_columns_finish_range(const cr_axis_plan *plan, const cr_axis_isa *isa, const void *strips,
                                  cr_columns_range range, uint64_t first, uint64_t count, uint64_t output,
                                  void *const out[], uint64_t to, cr_error *error) {
    bool narrow = plan->width != plan->spec->shape.inner;
    for (uint64_t done = 0; done < count;) {
        uint64_t c = first + done, most = narrow ? CR_STRIP_PAD : CR_STRIP - c % CR_STRIP;
        unsigned now = count - done < most ? (unsigned)(count - done) : (unsigned)most;
        cr_status status;
        if (narrow) {
            cr_columns_room room;
            const cr_strip *strip = cr_columns_narrow(&room, plan, strips, c, now);
            status = cr_strip_finish(&room.plan, isa, strip, 0, now, output + done, out, to + done, error);
        } else {
            const cr_strip *strip = cr_strip_at(plan, (void *)(uintptr_t)strips, (c - range.begin) / CR_STRIP);
            status =
                cr_strip_finish(plan, isa, strip, (unsigned)(c % CR_STRIP), now, output + done, out, to + done, error);
        }
        if (status != CR_OK) return status;
        done += now;
    }
    return CR_OK;
}
