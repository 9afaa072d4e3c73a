/* keys: what the host and the kernels of reductions by key share, in plain C: an answer for each group of an array of values, whose keys
 * lie in memory of the same device, in any order.
 *
 * A state has planes: words of 64 bits, one for each group. Everything that is added to them is an integer, by atomics, so the order does
 * not matter. A sum has a window: the elements that lie in it whole, which are nearly all, are added as one number (or a few digits of 32
 * bits) to planes of the window; of the others each digit goes to the plane of its limb (kernels/core/limbs.h). Where the window lies, a
 * sample of the elements says; it changes what is fast, and no bit of an answer.
 *
 *   begin: a sample ──▶ the window ──▶ fold: planes, by way of shared memory where groups are few ──▶ close: an answer for each group
 *                                                                                                  └▶ the host: a partial of each
 *
 * Memory: two of cr_keys_head, then the planes. All of it is made zero by the launch.
 * Thread: one at a time for a state. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_KEYS_KEYS_H
#define CURED_KERNELS_CUDA_KEYS_KEYS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/keys/groups.h"

enum {
    CR_KEYS_THREADS = 512,      /* of a block of the fold */
    CR_KEYS_BLOCKS = 2,         /* on a multiprocessor */
    CR_KEYS_SHARED = 96 << 10,  /* bytes of its shared memory, at most */
    CR_KEYS_COPIES = 32,        /* of a group's words in shared memory, at most: for lanes that lie side by side */
    CR_KEYS_SAMPLE = 4096,      /* elements */
    CR_KEYS_PLACES = 2048,      /* of a float64's exponents */
    CR_KEYS_TOP = 35,           /* bits of a window's highest digit, at most */
    CR_KEYS_MOST_LOG2 = 30,     /* of elements, so that no plane overflows */
    CR_KEYS_NONE = -1,          /* no such plane */
    CR_KEYS_SPECIAL_PLANES = 3, /* NaNs, +inf, −inf */
};

typedef struct cr_keys_head {
    unsigned long long inside; /* ~ the number of the first key outside, or of the first wrong offset; 0: none is */
    int32_t window, pad[13];   /* window: its lowest bit on the grid */
} cr_keys_head;

/* What says of which group an element is. */
typedef enum cr_keys_source {
    CR_KEYS_GIVEN,   /* keys of 4 or 8 bytes, of an array of values without a mask: the quick way */
    CR_KEYS_ANY,     /* keys of any width, of rows, under a mask */
    CR_KEYS_OFFSETS, /* segments; elements in none of them are for no group */
    CR_KEYS_AXIS,    /* outputs along an axis */
} cr_keys_source;

/* What the fold of one launch adds up. */
typedef enum cr_keys_kind {
    CR_KEYS_COUNTS, /* no sum */
    CR_KEYS_SUM,
    CR_KEYS_SQUARE,  /* of floats */
    CR_KEYS_EXTREME, /* the window's digits are the greatest key and the greatest complement of one */
    CR_KEYS_FIRSTS, /* behind a fold of CR_KEYS_EXTREME: the first element that is the greatest, and the first that is the least */
    CR_KEYS_BITS,    /* of integers: which bits some have, which some have not, which an odd number of elements has */
    CR_KEYS_PRODUCT, /* of integers */
    CR_KEYS_KINDS
} cr_keys_kind;

/* The numbers of planes; CR_KEYS_NONE: there are none. Those of counts, so many, come first. */
typedef struct cr_keys_planes {
    int32_t counts;
    int32_t count, nonzero, special, window, limbs, limb_count, all; /* all: how many there are */
} cr_keys_planes;

typedef struct cr_keys_args {
    const uint8_t *data, *keys;
    cr_keys_head *head;
    unsigned long long *planes;
    uint64_t n, per_block;
    uint32_t groups, blocks; /* groups: of cells, one for each group and column */
    uint32_t keys_below, columns;
    uint32_t source;             /* a cr_keys_source */
    uint32_t key_size, key_sign; /* bytes of a key or an offset; whether it may be negative, which is outside */
    uint32_t span, inner;        /* along an axis: elements of an outer index, and outputs */
    cr_mask mask;
    uint32_t is_float, is_signed; /* elements are */
    uint32_t odd;                 /* elements lie at any address */
    uint32_t drop, absolute;      /* absolute: of magnitudes */
    uint32_t top;                 /* bits of the window's highest digit */
    uint32_t copies;              /* of a group's words in shared memory; 0: it does not hold those of all groups */
    uint32_t limb_copies;         /* likewise, of its limbs */
    uint32_t dtype, size, kind;
    uint32_t wraps;    /* CR_KEYS_PRODUCT: modulo 2^64 */
    uint32_t wants;    /* CR_KEYS_FIRSTS, CR_KEYS_BITS: digits that an answer needs, a bit each */
    uint64_t infinite; /* CR_KEYS_FIRSTS, of floats: the bits above which a magnitude is a NaN */
    cr_keys_planes at;
} cr_keys_args;

typedef struct cr_keys_close_args {
    cr_keys_args fold;
    cr_keys_planes squares; /* of a variance, whose head follows the fold's; of others without a window */
    /* 0 before; becomes one more than the number of the first key outside or wrong offset, or, where none is, the key of an integer that does not fit or of an
     * extremum of no elements, as cr_axis_failure has it, with CR_AXIS_NO_VALUE: it is above 2^63 here. */
    unsigned long long *wrong;
    cr_axis_args axis; /* skip, ddof, wrap, the answers and where failures go */
} cr_keys_close_args;
enum { CR_KEYS_OUTSIDE_LOG2 = 32 }; /* from 2^32 on `wrong` is a failure's */

/* Whether there are kernels for op, and for these keys and elements; otherwise the sentence. */
cr_status cr_keys_gpu_takes(const cr_gpu_keys *keys, cr_error *error);
/* Bytes of the state of all groups. */
uint64_t cr_keys_gpu_state(const cr_gpu_keys *keys);
/* Enqueues all. out[k]: device memory for an answer of ops[k] for each group. wrong: 8 bytes of device memory, as above, which this
 * makes 0. Gives a cudaError_t. */
int cr_keys_gpu_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                        unsigned long long *wrong, void *stream);

/* ---- For a partial: the states come to the host, which makes a partial of each cell (parts.c) ---- */

/* One launch of the fold, and where its state lies among those of all in host memory. */
typedef struct cr_keys_part {
    uint32_t family; /* a sum's, extrema's or bits'; 0: counts alone, which otherwise the first has, too */
    cr_keys_planes at;
    uint64_t place, bytes;
} cr_keys_part;
enum { CR_KEYS_PARTS = 8 };

/* The launches for a partial of the ops' families; otherwise the sentence. */
cr_status cr_keys_gpu_parts(const cr_gpu_keys *keys, cr_keys_part parts[CR_KEYS_PARTS], uint32_t *count,
                            cr_error *error);
/* Enqueues one, whose state has part->bytes of device memory. Gives a cudaError_t. */
int cr_keys_gpu_enqueue_part(const cr_gpu_keys *keys, const cr_keys_part *part, uint32_t multiprocessors,
                             uint8_t *state, void *stream);
/* Of a state that was copied: its head, and its planes. */
const unsigned long long *cr_keys_part_planes(const uint8_t *state, cr_keys_head *head);
/* The partial of a cell, from the states of all launches: of p->n elements, and if there are none, of that alone. */
void cr_keys_part_fill(const cr_gpu_keys *keys, const cr_keys_part *parts, uint32_t count, const uint8_t *states,
                       uint64_t cell, cr_partial *p);

/* Of digests.c: enqueues those of the ops that are digests, of segments or along the axis; likewise. */
int cr_keys_digests(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                    unsigned long long *wrong, void *stream);

/* Of fold.cu, close.cu and joined.cu. */
int cr_keys_launch_check(const cr_keys_args *args, uint64_t elements, void *stream); /* of offsets */
int cr_keys_launch_begin(const cr_keys_args *args, void *stream);
int cr_keys_launch_fold(const cr_keys_args *args, void *stream);
int cr_keys_launch_close(const cr_keys_close_args *args, void *stream);
int cr_keys_launch_joined(const cr_keys_args *args, void *stream); /* the fold of the last three kinds */
int cr_keys_launch_close_extrema(const cr_keys_close_args *args, void *stream);
int cr_keys_launch_close_joined(const cr_keys_close_args *args, void *stream); /* closes bits and products */

#ifdef __cplusplus
}
#endif
#endif
