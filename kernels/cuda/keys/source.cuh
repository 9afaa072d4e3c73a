/* source: of which group an element is, where more than a key of its own says so: keys of any width, segments, a mask.
 *
 * Offsets may be wrong, or be changed meanwhile: whatever they are, no access leaves them, and no group is one that there is not.
 * Thread: GPU. Owner: none. */
#ifndef CURED_KERNELS_CUDA_KEYS_SOURCE_CUH
#define CURED_KERNELS_CUDA_KEYS_SOURCE_CUH

#include "kernels/cuda/keys/keys.h"
#include "kernels/cuda/thread/simt.cuh"

static constexpr uint32_t CR_KEYS_NOBODY = UINT32_MAX; /* the group of what is for none */

/* Key or offset number i. A negative one is beyond 2^63. */
CR_DEVICE uint64_t cr_keys_load(const cr_keys_args &args, uint64_t i) {
    if (args.key_size == 8) return reinterpret_cast<const uint64_t *>(args.keys)[i];
    const uint32_t key = args.key_size == 4   ? reinterpret_cast<const uint32_t *>(args.keys)[i]
                         : args.key_size == 2 ? reinterpret_cast<const uint16_t *>(args.keys)[i]
                                              : args.keys[i];
    const uint32_t up = 32 - 8 * args.key_size;
    return args.key_sign != 0 ? (uint64_t)(int64_t)((int32_t)(key << up) >> up) : key;
}

CR_DEVICE bool cr_keys_counts(const cr_mask &mask, uint64_t i) {
    const uint64_t at = mask.first + i;
    const bool set = mask.kind == CR_MASK_BYTES ? mask.data[at] != 0 : (mask.data[at / 8] >> at % 8 & 1) != 0;
    return set != mask.leaves_out;
}

/* A cell, and the segment of the element, from which the search for a later element's begins. */
struct cr_keys_found {
    uint32_t cell, near;
};

/* The segment of element i. near: one that begins at it or before, if any does, as the one of an element before does. */
CR_DEVICE cr_keys_found cr_keys_segment(const cr_keys_args &args, uint32_t near, uint64_t i) {
    uint32_t step = 1;
    while (args.keys_below - near > step && cr_keys_load(args, near + step) <= i) {
        near += step;
        step *= 2;
    }
    uint32_t high = min(args.keys_below - near, step); /* the first that begins behind i is at near + high, or before */
    while (high > 1) {
        const uint32_t half = high / 2;
        const bool before = cr_keys_load(args, near + half) <= i;
        near += before ? half : 0;
        high = before ? high - half : half;
    }
    return {cr_keys_load(args, near) <= i && i < cr_keys_load(args, near + 1) ? near : CR_KEYS_NOBODY, near};
}

/* The cell of element i by any source but offsets (ordered.cuh). A key outside is told of, whatever the mask says. Called, because it takes registers that the quick way
 * needs. */
CR_CALLED uint32_t cr_keys_cell(const cr_keys_args &args, uint32_t i) {
    uint32_t cell = CR_KEYS_NOBODY;
    if (args.source == CR_KEYS_AXIS) {
        cell = i / args.span * args.inner + i % args.inner;
    } else {
        const uint32_t row = i / args.columns, column = i - row * args.columns;
        const uint64_t key = cr_keys_load(args, row);
        if (key < args.keys_below) cell = (uint32_t)key * args.columns + column;
        else if (!args.drop) atomicMax(&args.head->inside, ~(unsigned long long)row);
    }
    return args.mask.kind != CR_MASK_NONE && !cr_keys_counts(args.mask, i) ? CR_KEYS_NOBODY : cell;
}

#endif
