/* strided: arrays whose elements lie at any strides: the order in which their memory is walked, and the walk.
 *
 * The axes are sorted by their strides, so that memory is read as it lies whatever the array's order is, and axes that follow each
 * other without a gap become one. Where the answer depends on the order of the elements (first indices, products of floats,
 * digests), reduced axes keep their order. What lies without a gap then is an array of (outer, n, inner) as any other; what does
 * not is gathered block by block.
 *
 * Thread: any; nothing here holds state. Owner: the caller; plans and walks point into the array's memory. */
#ifndef CURED_KERNELS_CORE_STRIDED_H
#define CURED_KERNELS_CORE_STRIDED_H

#include <stddef.h>

#include "kernels/core/axis.h"
#include "kernels/core/view.h"

enum { CR_STRIDED_MAX_DIMS = 64 };

/* An array. Strides are bytes from an element to the next along each axis, and may be negative or 0. */
typedef struct cr_strided {
    const char *data; /* the element at index 0 of every axis */
    const char *mask; /* the same of a mask of a byte an element; NULL: every element counts */
    uint8_t size;     /* of an element: 1, 2, 4, 8 */
    bool swap;        /* its bytes are turned */
    bool keeps;       /* elements where the mask is true count; false: those where it is false */
    int ndim;
    const ptrdiff_t *shape, *strides, *mask_strides;
} cr_strided;

typedef struct cr_dim {
    ptrdiff_t n, stride, mask_stride;
    int axis;
    bool reduced;
} cr_dim;

typedef struct cr_strided_plan {
    int ndim;        /* of dims, outermost first; those of one element are left out */
    bool whole;      /* one answer */
    bool contiguous; /* one run of memory from data on, which no mask is about */
    bool permuted;   /* answers do not come in C order: see kept */
    int kept_count;
    const char *data, *mask;
    uint64_t count;
    cr_shape axis;
    cr_dim kept[CR_STRIDED_MAX_DIMS]; /* the dims that stay, in the order of the answers */
    cr_dim dims[CR_STRIDED_MAX_DIMS];
} cr_strided_plan;

/* What the order of elements is for. */
typedef enum cr_strided_order {
    CR_STRIDED_FREE,    /* nothing */
    CR_STRIDED_REDUCED, /* the answers depend on the order of the reduced axes, */
    CR_STRIDED_ANSWERS, /* or the answers have to come in C order, */
    CR_STRIDED_BOTH,    /* or both */
} cr_strided_order;

/* axes: a bit for each axis that is reduced; whole: all of them are. INVALID_ARGUMENT for a negative length, OUT_OF_RANGE for more than
 * 2^60 elements. */
cr_status cr_strided_plan_make(cr_strided_plan *plan, const cr_strided *array, uint64_t axes, bool whole,
                               cr_strided_order order, cr_error *error);

/* Parts a plan from its mask: the plan is then one of all elements, and *mask has a byte for each of them in the order of the plan. A
 * mask that does not lie so is copied to *own, which is the caller's to free(); NULL: it is not. Where that would be more than `most`
 * bytes nothing happens, and *parted is false. RESOURCE_EXHAUSTED: no memory. */
cr_status cr_strided_plan_part(cr_strided_plan *plan, const cr_strided *array, uint64_t most, cr_mask *mask, char **own,
                               bool *parted, cr_error *error);

/* The elements of a second array of the same shape in the order of the plan that `array` has with these arguments: *data. Where they do
 * not lie so they are copied to *own, which is the caller's to free(); NULL: they are not. */
cr_status cr_strided_second(const cr_strided *array, const cr_strided *second, uint64_t axes, bool whole,
                            cr_strided_order order, const void **data, char **own, cr_error *error);

typedef struct cr_walk {
    const cr_strided_plan *plan;
    uint8_t size;
    bool swap, keeps;
    uint64_t left; /* elements, also those that the mask leaves out */
    ptrdiff_t at[CR_STRIDED_MAX_DIMS];
} cr_walk;

void cr_walk_begin(cr_walk *walk, const cr_strided_plan *plan, const cr_strided *array);
/* Writes up to `most` elements to out; how many, perhaps none of those that it looked at. walk->left is 0 after the last. */
size_t cr_walk_next(cr_walk *walk, void *out, size_t most);
/* Among all elements of a masked plan, the place of the one that has this index among those that the mask keeps. Any walk of the plan
 * counts so. */
uint64_t cr_walk_place(const cr_strided_plan *plan, bool keeps, uint64_t index);
/* Turns the bytes of `count` elements where they are. */
void cr_walk_turn(void *data, uint8_t size, size_t count);

#endif
