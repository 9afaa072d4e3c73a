/* walk: gathers the elements of an array with any strides, in the order of its plan, into blocks: big-endian elements are
 * turned, and elements that a mask leaves out are skipped.
 *
 * Thread: any, without the GIL. Owner: the caller; a walk reads the input's memory and the plan. */
#include <string.h>

#include "client/python/extension.h"

/* Cache lines are read whole: tiles of this many columns use all of one where memory runs along the other axis. */
enum { TILE = 16, LOOKED_AT_MORE = 16 };

void cr_py_walk_begin(cr_py_walk *walk, const cr_py_plan *plan, const cr_py_input *in) {
    walk->plan = plan;
    walk->size = in->size;
    walk->swap = in->swap;
    walk->keeps = in->mask.keeps;
    walk->left = plan->count;
    memset(walk->at, 0, sizeof walk->at[0] * (size_t)(plan->ndim > 0 ? plan->ndim : 1));
}

#define COPY(name, type, turned)                                                                    \
    static void name(char *out, Py_ssize_t step, const char *in, Py_ssize_t stride, Py_ssize_t n) { \
        for (Py_ssize_t i = 0; i < n; i++) {                                                        \
            type x;                                                                                 \
            memcpy(&x, in + i * stride, sizeof x);                                                  \
            x = turned;                                                                             \
            memcpy(out + i * step, &x, sizeof x);                                                   \
        }                                                                                           \
    }
COPY(copy1, uint8_t, x)
COPY(copy2, uint16_t, x)
COPY(copy4, uint32_t, x)
COPY(copy8, uint64_t, x)
COPY(swap2, uint16_t, __builtin_bswap16(x))
COPY(swap4, uint32_t, __builtin_bswap32(x))
COPY(swap8, uint64_t, __builtin_bswap64(x))

static void copy(const cr_py_walk *w, void *out, Py_ssize_t step, const char *in, Py_ssize_t stride, Py_ssize_t n) {
    if (!w->swap && stride == w->size && step == w->size) {
        memcpy(out, in, (size_t)n * w->size);
        return;
    }
    switch (w->size) {
        case 1:
            copy1(out, step, in, stride, n);
            break;
        case 2:
            (w->swap ? swap2 : copy2)(out, step, in, stride, n);
            break;
        case 4:
            (w->swap ? swap4 : copy4)(out, step, in, stride, n);
            break;
        default:
            (w->swap ? swap8 : copy8)(out, step, in, stride, n);
    }
}

void cr_py_walk_turn(void *data, uint8_t size, size_t count) {
    const cr_py_walk turning = {.size = size, .swap = true};
    copy(&turning, data, size, data, size, (Py_ssize_t)count);
}

/* Those that the mask keeps; how many. */
static size_t copy_kept(const cr_py_walk *w, char *out, const char *in, const char *mask, const cr_py_dim *d,
                        Py_ssize_t n) {
    size_t kept = 0;
    for (Py_ssize_t i = 0; i < n;) {
        Py_ssize_t from = i;
        while (i < n && (mask[i * d->mask_stride] != 0) == w->keeps) i++;
        copy(w, out + kept * w->size, w->size, in + from * d->stride, d->stride, i - from);
        kept += (size_t)(i - from);
        while (i < n && (mask[i * d->mask_stride] != 0) != w->keeps) i++;
    }
    return kept;
}

/* Whole rows of the two innermost dims, where memory runs along the outer of them. */
static void copy_rows(const cr_py_walk *w, char *out, const char *in, Py_ssize_t rows) {
    const cr_py_dim *row = &w->plan->dims[w->plan->ndim - 2], *column = row + 1;
    for (Py_ssize_t c = 0; c < column->n; c += TILE) {
        Py_ssize_t n = column->n - c < TILE ? column->n - c : TILE;
        for (Py_ssize_t r = 0; r < rows; r++)
            copy(w, out + (r * column->n + c) * w->size, w->size, in + r * row->stride + c * column->stride,
                 column->stride, n);
    }
}

/* Moves on by n elements along dim k, which stay within it. */
static void move_on(cr_py_walk *w, int k, Py_ssize_t n) {
    w->at[k] += n;
    for (; k > 0 && w->at[k] == w->plan->dims[k].n; k--) {
        w->at[k] = 0;
        w->at[k - 1]++;
    }
}

size_t cr_py_walk_next(cr_py_walk *walk, void *out, size_t most) {
    const cr_py_plan *plan = walk->plan;
    const int last = plan->ndim - 1;
    size_t done = 0;
    const uint64_t enough = walk->left > (uint64_t)most * LOOKED_AT_MORE ? walk->left - most * LOOKED_AT_MORE : 0;
    if (plan->ndim == 0 && walk->left != 0) { /* one element */
        static const cr_py_dim one = {1, 0, 0, 0, true};
        walk->left = 0;
        if (plan->mask != NULL) return copy_kept(walk, out, plan->data, plan->mask, &one, 1);
        copy(walk, out, walk->size, plan->data, 0, 1);
        return 1;
    }
    while (walk->left > enough && done < most) {
        const char *in = plan->data, *mask = plan->mask;
        char *to = (char *)out + done * walk->size;
        for (int k = 0; k <= last; k++) {
            in += walk->at[k] * plan->dims[k].stride;
            if (mask != NULL) mask += walk->at[k] * plan->dims[k].mask_stride;
        }
        const cr_py_dim *d = &plan->dims[last];
        size_t room = most - done, n = (size_t)(d->n - walk->at[last]);
        bool across = last > 0 && mask == NULL && walk->at[last] == 0 && (size_t)d->n <= room &&
                      (d->stride > d[-1].stride ? d[-1].stride > 0 : false);
        if (across) {
            size_t rows = room / (size_t)d->n, left = (size_t)(d[-1].n - walk->at[last - 1]);
            if (rows > left) rows = left;
            copy_rows(walk, to, in, (Py_ssize_t)rows);
            done += rows * (size_t)d->n;
            walk->left -= rows * (uint64_t)d->n;
            move_on(walk, last - 1, (Py_ssize_t)rows);
            continue;
        }
        if (n > room) n = room;
        if (mask != NULL) {
            done += copy_kept(walk, to, in, mask, d, (Py_ssize_t)n);
        } else {
            copy(walk, to, walk->size, in, d->stride, (Py_ssize_t)n);
            done += n;
        }
        walk->left -= n;
        move_on(walk, last, (Py_ssize_t)n);
    }
    return done;
}
