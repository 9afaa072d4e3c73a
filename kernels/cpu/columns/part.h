/* part: what the kernels of columns share.
 *
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_PART_H
#define CURED_KERNELS_CPU_COLUMNS_PART_H

#include "kernels/cpu/vec.h"

/* A rectangle of the array: lines × columns at p, meant for columns [first, …) of a strip. */
struct part {
    const uint8_t *p;
    size_t stride;
    unsigned lines, first, columns;
    size_t ahead; /* bytes from an element to what will be wanted soon */
};

ALWAYS void part_fetch(const struct part *part, const uint8_t *p) {
    __builtin_prefetch((const void *)((uintptr_t)p + part->ahead), 0, 2);
}

/* The last columns of a part, fewer than a vector's: copied to pad, where the rest of the vector is `fill`. */
ALWAYS struct part part_rest(const struct part *part, unsigned from, size_t size, uint8_t *pad, uint8_t fill) {
    size_t bytes = (part->columns - from) * size;
    memset(pad, fill, part->lines * VB);
    for (unsigned t = 0; t < part->lines; t++) {
        memcpy(pad + t * VB, part->p + t * part->stride + from * size, bytes);
    }
    return (struct part){pad, VB, part->lines, part->first + from, part->columns - from, 0};
}

/* So many columns from number `from` on, which a vector takes; the last ones from pad, as above. */
ALWAYS struct part part_vector(const struct part *part, unsigned from, unsigned lanes, size_t size, uint8_t *pad,
                               uint8_t fill) {
    if (from + lanes > part->columns) return part_rest(part, from, size, pad, fill);
    return (struct part){part->p + from * size, part->stride, part->lines, part->first + from, lanes, part->ahead};
}

/* One vector's columns, `bytes` a line, copied to pad: of many lines, which the caches do not keep until they are read again. */
ALWAYS struct part part_copy(const struct part *part, unsigned from, unsigned columns, size_t bytes, uint8_t *pad) {
    enum { SOON = 512 };
    const uint8_t *p = part->p + from * (bytes / columns);
    for (unsigned t = 0; t < part->lines; t++, p += part->stride) {
        __builtin_prefetch((const void *)((uintptr_t)p + SOON), 0, 2);
        memcpy(pad + t * VB, p, bytes);
    }
    return (struct part){pad, VB, part->lines, part->first + from, columns, 0};
}

#endif
