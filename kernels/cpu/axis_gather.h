/* axis_gather: turns rows of short axes into columns, so that each vector holds one element of many rows. Also what the
 * kernels of columns share. Included once per instruction set.
 *
 * Thread: any. Owner: the caller owns the data. */

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
    memset(pad, fill, CR_LINES * VB);
    for (unsigned t = 0; t < part->lines; t++) {
        memcpy(pad + t * VB, part->p + t * part->stride + from * size, bytes);
    }
    return (struct part){pad, VB, part->lines, part->first + from, part->columns - from, 0};
}

/* One element of each row to one line, for the rows and lines that the squares leave. */
#define GATHER(name, type)                                                                                         \
    ALWAYS void name(uint8_t *to, size_t to_stride, const uint8_t *from, size_t stride, size_t row, size_t rows,   \
                     size_t line, size_t count) {                                                                  \
        for (size_t r = row; r < rows; r++) {                                                                      \
            for (size_t k = line; k < count; k++) {                                                                \
                memcpy(to + k * to_stride + r * sizeof(type), from + r * stride + k * sizeof(type), sizeof(type)); \
            }                                                                                                      \
        }                                                                                                          \
    }
GATHER(gather_1, uint8_t)
GATHER(gather_2, uint16_t)
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)
#undef GATHER

/* Squares of elements, turned in registers: 16 bytes of each of as many rows. */
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));

ALWAYS void square_4(uint8_t *to, size_t to_stride, const uint8_t *from, size_t stride) {
    four a = LOAD(four, from), b = LOAD(four, from + stride), c = LOAD(four, from + 2 * stride),
         d = LOAD(four, from + 3 * stride);
    four ab = __builtin_shuffle(a, b, (four){0, 4, 1, 5}), cd = __builtin_shuffle(c, d, (four){0, 4, 1, 5});
    four ef = __builtin_shuffle(a, b, (four){2, 6, 3, 7}), gh = __builtin_shuffle(c, d, (four){2, 6, 3, 7});
    a = (four)__builtin_shuffle((two)ab, (two)cd, (two){0, 2});
    b = (four)__builtin_shuffle((two)ab, (two)cd, (two){1, 3});
    c = (four)__builtin_shuffle((two)ef, (two)gh, (two){0, 2});
    d = (four)__builtin_shuffle((two)ef, (two)gh, (two){1, 3});
    memcpy(to, &a, sizeof a);
    memcpy(to + to_stride, &b, sizeof b);
    memcpy(to + 2 * to_stride, &c, sizeof c);
    memcpy(to + 3 * to_stride, &d, sizeof d);
}

ALWAYS void square_8(uint8_t *to, size_t to_stride, const uint8_t *from, size_t stride) {
    two a = LOAD(two, from), b = LOAD(two, from + stride);
    two c = __builtin_shuffle(a, b, (two){0, 2}), d = __builtin_shuffle(a, b, (two){1, 3});
    memcpy(to, &c, sizeof c);
    memcpy(to + to_stride, &d, sizeof d);
}

/* Rows of single elements; side: of a square. What is read next is asked for a tile ahead of time. */
#define GATHER_SQUARES(name, square, rest, side, size)                                                      \
    NEVER void name(uint8_t *to, size_t to_stride, const uint8_t *from, size_t rows, size_t count) {        \
        size_t stride = count * (size), whole_rows = rows - rows % (side), whole = count - count % (side);  \
        for (size_t r = 0; r < whole_rows; r += (side)) {                                                   \
            for (size_t at = 0; at < (side)*stride; at += 64)                                               \
                __builtin_prefetch((const void *)((uintptr_t)from + r * stride + at + 8192));               \
            for (size_t k = 0; k < whole; k += (side)) {                                                    \
                square(to + k * to_stride + r * (size), to_stride, from + r * stride + k * (size), stride); \
            }                                                                                               \
        }                                                                                                   \
        rest(to, to_stride, from, stride, 0, whole_rows, whole, count);                                     \
        rest(to, to_stride, from, stride, whole_rows, rows, 0, count);                                      \
    }
GATHER_SQUARES(gather_rows_4, square_4, gather_4, 4, 4)
GATHER_SQUARES(gather_rows_8, square_8, gather_8, 2, 8)
#undef GATHER_SQUARES

static void gather(uint8_t *to, size_t to_stride, const uint8_t *from, size_t rows, size_t count, size_t chunk,
                   size_t size) {
    size_t bytes = chunk * size;
    if (chunk != 1) {
        for (size_t r = 0; r < rows; r++) {
            for (size_t k = 0; k < count; k++)
                memcpy(to + k * to_stride + r * bytes, from + (r * count + k) * bytes, bytes);
        }
    } else if (size == 1) {
        gather_1(to, to_stride, from, count, 0, rows, 0, count);
    } else if (size == 2) {
        gather_2(to, to_stride, from, count * 2, 0, rows, 0, count);
    } else {
        (size == 4 ? gather_rows_4 : gather_rows_8)(to, to_stride, from, rows, count);
    }
}
