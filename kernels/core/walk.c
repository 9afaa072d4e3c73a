/* walk: gathers the elements of an array with any strides, in the order of its plan, into blocks: big-endian elements are
 * turned, and elements that a mask leaves out are skipped.
 *
 * Thread: any. Owner: the caller; a walk reads the array's memory and the plan. */
#include <string.h>

#include "kernels/core/strided.h"

enum { TILE = 32, LOOKED_AT_MORE = 16, LOOKED_AT_ONCE = 4096 };

void cr_walk_begin(cr_walk *walk, const cr_strided_plan *plan, const cr_strided *array) {
    walk->plan = plan;
    walk->size = array->size;
    walk->swap = array->swap;
    walk->keeps = array->keeps;
    walk->left = plan->count;
    memset(walk->at, 0, sizeof walk->at[0] * (size_t)(plan->ndim > 0 ? plan->ndim : 1));
}

#define COPY(name, type, turned)                                                 \
    static void name(char *out, const char *in, ptrdiff_t stride, ptrdiff_t n) { \
        _Pragma("GCC unroll 8") for (ptrdiff_t i = 0; i < n; i++) {              \
            type x;                                                              \
            memcpy(&x, in, sizeof x);                                            \
            x = turned;                                                          \
            memcpy(out, &x, sizeof x);                                           \
            in += stride;                                                        \
            out += sizeof x;                                                     \
        }                                                                        \
    }
COPY(copy1, uint8_t, x)
COPY(copy2, uint16_t, x)
COPY(copy4, uint32_t, x)
COPY(copy8, uint64_t, x)
COPY(swap2, uint16_t, __builtin_bswap16(x))
COPY(swap4, uint32_t, __builtin_bswap32(x))
COPY(swap8, uint64_t, __builtin_bswap64(x))

/* Every second element, 16 bytes of them at a time. What is left is less than that, with an element behind its last, which need
 * not be the array's. */
#define HALVE(name, type, ...)                                      \
    typedef type name##_vector __attribute__((vector_size(16)));    \
    static ptrdiff_t name(char *out, const char *in, ptrdiff_t n) { \
        enum { MANY = 16 / sizeof(type) };                          \
        ptrdiff_t i = 0;                                            \
        for (; i + MANY < n; i += MANY, in += 32, out += 16) {      \
            name##_vector low, high;                                \
            memcpy(&low, in, sizeof low);                           \
            memcpy(&high, in + sizeof low, sizeof high);            \
            low = __builtin_shufflevector(low, high, __VA_ARGS__);  \
            memcpy(out, &low, sizeof low);                          \
        }                                                           \
        return i;                                                   \
    }
HALVE(halve1, uint8_t, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
HALVE(halve2, uint16_t, 0, 2, 4, 6, 8, 10, 12, 14)
HALVE(halve4, uint32_t, 0, 2, 4, 6)
HALVE(halve8, uint64_t, 0, 2)

/* The bytes of elements that lie side by side, 16 bytes of them at a time: in each pair, then the pairs. What is left is less. */
#define TURN(name, size, ...)                                       \
    static ptrdiff_t name(char *out, const char *in, ptrdiff_t n) { \
        enum { MANY = 16 / (size) };                                \
        ptrdiff_t i = 0;                                            \
        for (; i + MANY <= n; i += MANY, in += 16, out += 16) {     \
            halve2_vector x;                                        \
            memcpy(&x, in, sizeof x);                               \
            x = x << 8 | x >> 8;                                    \
            x = __builtin_shufflevector(x, x, __VA_ARGS__);         \
            memcpy(out, &x, sizeof x);                              \
        }                                                           \
        return i;                                                   \
    }
TURN(turn2, 2, 0, 1, 2, 3, 4, 5, 6, 7)
TURN(turn4, 4, 1, 0, 3, 2, 5, 4, 7, 6)
TURN(turn8, 8, 3, 2, 1, 0, 7, 6, 5, 4)

/* As many as there is a fast way for. */
static ptrdiff_t copy_fast(const cr_walk *w, char *out, const char *in, ptrdiff_t stride, ptrdiff_t n) {
    const ptrdiff_t size = w->size;
    if (w->swap && stride == size) return (size == 2 ? turn2 : size == 4 ? turn4 : turn8)(out, in, n);
    if (w->swap || stride != 2 * size) return 0;
    return (size == 1 ? halve1 : size == 2 ? halve2 : size == 4 ? halve4 : halve8)(out, in, n);
}

static void copy(const cr_walk *w, char *out, const char *in, ptrdiff_t stride, ptrdiff_t n) {
    const ptrdiff_t size = w->size;
    if (!w->swap && stride == size) {
        memcpy(out, in, (size_t)(n * size));
        return;
    }
    const ptrdiff_t done = copy_fast(w, out, in, stride, n);
    out += done * size;
    in += done * stride;
    n -= done;
    switch (size) {
        case 1:
            copy1(out, in, stride, n);
            break;
        case 2:
            (w->swap ? swap2 : copy2)(out, in, stride, n);
            break;
        case 4:
            (w->swap ? swap4 : copy4)(out, in, stride, n);
            break;
        default:
            (w->swap ? swap8 : copy8)(out, in, stride, n);
    }
}

void cr_walk_turn(void *data, uint8_t size, size_t count) {
    const cr_walk turning = {.size = size, .swap = true};
    copy(&turning, data, data, size, (ptrdiff_t)count);
}

/* Those that the mask keeps; how many. */
static size_t copy_kept(const cr_walk *w, char *out, const char *in, const char *mask, const cr_dim *d, ptrdiff_t n) {
    size_t kept = 0;
    for (ptrdiff_t i = 0; i < n;) {
        ptrdiff_t from = i;
        while (i < n && (mask[i * d->mask_stride] != 0) == w->keeps) i++;
        copy(w, out + kept * w->size, in + from * d->stride, d->stride, i - from);
        kept += (size_t)(i - from);
        while (i < n && (mask[i * d->mask_stride] != 0) != w->keeps) i++;
    }
    return kept;
}

/* A tile of two dims, where memory runs along the rows' dim. Each cache line of it is read once, because lines at strides of a power
 * of two would push each other out of the cache before they are used up. */
#define TILES(name, type, turned)                                                                                \
    static inline void name##_part(char *out, ptrdiff_t line, const char *in, ptrdiff_t row, ptrdiff_t column,   \
                                   ptrdiff_t rows, ptrdiff_t columns) {                                          \
        type tile[TILE][TILE];                                                                                   \
        for (ptrdiff_t c = 0; c < columns; c++) {                                                                \
            for (ptrdiff_t r = 0; r < rows; r++) {                                                               \
                type x;                                                                                          \
                memcpy(&x, in + c * column + r * row, sizeof x);                                                 \
                tile[r][c] = turned;                                                                             \
            }                                                                                                    \
        }                                                                                                        \
        for (ptrdiff_t r = 0; r < rows; r++) memcpy(out + r * line, tile[r], (size_t)columns * sizeof(type));    \
    }                                                                                                            \
    static void name(char *out, ptrdiff_t line, const char *in, ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, \
                     ptrdiff_t columns) {                                                                        \
        if (rows == TILE && columns == TILE)                                                                     \
            name##_part(out, line, in, row, column, TILE, TILE);                                                 \
        else                                                                                                     \
            name##_part(out, line, in, row, column, rows, columns);                                              \
    }
TILES(tile1, uint8_t, x)
TILES(tile2, uint16_t, x)
TILES(tile4, uint32_t, x)
TILES(tile8, uint64_t, x)
TILES(turned2, uint16_t, __builtin_bswap16(x))
TILES(turned4, uint32_t, __builtin_bswap32(x))
TILES(turned8, uint64_t, __builtin_bswap64(x))

/* Whole rows of the two innermost dims, where memory runs along the outer of them. */
static void copy_rows(const cr_walk *w, char *out, const char *in, ptrdiff_t rows) {
    static void (*const tiles[2][9])(char *, ptrdiff_t, const char *, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t) = {
        {[1] = tile1, [2] = tile2, [4] = tile4, [8] = tile8},
        {[1] = tile1, [2] = turned2, [4] = turned4, [8] = turned8}};
    const cr_dim *column = &w->plan->dims[w->plan->ndim - 1], *row = column - 1;
    const ptrdiff_t line = column->n * w->size;
    for (ptrdiff_t r = 0; r < rows; r += TILE) {
        for (ptrdiff_t c = 0; c < column->n; c += TILE) {
            tiles[w->swap][w->size](out + r * line + c * w->size, line, in + r * row->stride + c * column->stride,
                                    row->stride, column->stride, rows - r < TILE ? rows - r : TILE,
                                    column->n - c < TILE ? column->n - c : TILE);
        }
    }
}

/* How many of n elements the mask keeps. */
static uint64_t count_kept(const char *mask, ptrdiff_t stride, ptrdiff_t n, bool keeps) {
    uint64_t set = 0;
    if (stride == 1)
        for (ptrdiff_t i = 0; i < n; i++) set += mask[i] != 0;
    else
        for (ptrdiff_t i = 0; i < n; i++) set += mask[i * stride] != 0;
    return keeps ? set : (uint64_t)n - set;
}

uint64_t cr_walk_place(const cr_strided_plan *plan, bool keeps, uint64_t index) {
    ptrdiff_t at[CR_STRIDED_MAX_DIMS] = {0};
    const int last = plan->ndim - 1;
    if (last < 0) return index;
    const cr_dim *d = &plan->dims[last];
    for (uint64_t place = 0; place < plan->count; place += (uint64_t)d->n) {
        const char *mask = plan->mask;
        for (int k = 0; k < last; k++) mask += at[k] * plan->dims[k].mask_stride;
        for (ptrdiff_t from = 0; from < d->n; from += LOOKED_AT_ONCE) {
            const ptrdiff_t n = d->n - from < LOOKED_AT_ONCE ? d->n - from : LOOKED_AT_ONCE;
            const uint64_t kept = count_kept(mask + from * d->mask_stride, d->mask_stride, n, keeps);
            if (kept <= index) {
                index -= kept;
                continue;
            }
            for (ptrdiff_t i = from;; i++)
                if ((mask[i * d->mask_stride] != 0) == keeps && index-- == 0) return place + (uint64_t)i;
        }
        for (int k = last - 1; k >= 0 && ++at[k] == plan->dims[k].n; k--) at[k] = 0;
    }
    return UINT64_MAX;
}

/* Moves on by n elements along dim k, which stay within it. */
static void move_on(cr_walk *w, int k, ptrdiff_t n) {
    w->at[k] += n;
    for (; k > 0 && w->at[k] == w->plan->dims[k].n; k--) {
        w->at[k] = 0;
        w->at[k - 1]++;
    }
}

size_t cr_walk_next(cr_walk *walk, void *out, size_t most) {
    const cr_strided_plan *plan = walk->plan;
    const int last = plan->ndim - 1;
    size_t done = 0;
    const uint64_t enough = walk->left > (uint64_t)most * LOOKED_AT_MORE ? walk->left - most * LOOKED_AT_MORE : 0;
    if (plan->ndim == 0 && walk->left != 0) { /* one element */
        static const cr_dim one = {1, 0, 0, 0, true};
        walk->left = 0;
        if (plan->mask != NULL) return copy_kept(walk, out, plan->data, plan->mask, &one, 1);
        copy(walk, out, plan->data, 0, 1);
        return 1;
    }
    while (walk->left > enough && done < most) {
        const char *in = plan->data, *mask = plan->mask;
        char *to = (char *)out + done * walk->size;
        for (int k = 0; k <= last; k++) {
            in += walk->at[k] * plan->dims[k].stride;
            if (mask != NULL) mask += walk->at[k] * plan->dims[k].mask_stride;
        }
        const cr_dim *d = &plan->dims[last];
        size_t room = most - done, n = (size_t)(d->n - walk->at[last]);
        bool across = last > 0 && mask == NULL && walk->at[last] == 0 && (size_t)d->n <= room &&
                      (d->stride > d[-1].stride ? d[-1].stride > 0 : false);
        if (across) {
            size_t rows = room / (size_t)d->n, left = (size_t)(d[-1].n - walk->at[last - 1]);
            if (rows > left) rows = left;
            copy_rows(walk, to, in, (ptrdiff_t)rows);
            done += rows * (size_t)d->n;
            walk->left -= rows * (uint64_t)d->n;
            move_on(walk, last - 1, (ptrdiff_t)rows);
            continue;
        }
        if (n > room) n = room;
        if (mask != NULL) {
            done += copy_kept(walk, to, in, mask, d, (ptrdiff_t)n);
        } else {
            copy(walk, to, in, d->stride, (ptrdiff_t)n);
            done += n;
        }
        walk->left -= n;
        move_on(walk, last, (ptrdiff_t)n);
    }
    return done;
}
