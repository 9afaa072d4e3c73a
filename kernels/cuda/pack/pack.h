/* pack: what the host and the pack kernel share, in plain C. One launch folds many small folds of different types, families,
 * lengths and places.
 *
 * A fold is cut into units: one family of at most 4 KiB (of a product of floats: one block of its tree), which one warp holds in
 * its registers. Units know nothing of each other: each leaves what it found in four words of its own, in host memory, and the
 * host merges them. Of every word the highest bit says that it is there, so whoever waits looks at the words themselves: no flag,
 * no fence, no question to the driver. The rare answers that are longer (sums whose magnitudes lie too far apart, factors of
 * products) go to words that were set aside for the unit, before its own.
 *
 * Thread: one at a time for a pack. Owner: the caller, of the memory too. */
#ifndef CURED_KERNELS_CUDA_PACK_PACK_H
#define CURED_KERNELS_CUDA_PACK_PACK_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/core/number.h"
#include "kernels/cuda/gpu.h"

enum {
    CR_PACK_UNIT_BYTES = 4096,
    CR_PACK_WORDS = 4,
    CR_PACK_FEW = 32,     /* so many units are told with the launch: none is looked for in memory */
    CR_PACK_FACTORS = 64, /* of a product of integers that 1,024 bits may hold: see prods.cuh */
    CR_PACK_SPECIALS = 3, /* NaNs, +inf, -inf: before the limbs of a sum whose magnitudes lie too far apart */
    CR_PACK_BIAS = 2048,  /* added to the exponent of a sum's first anchor */
    CR_PACK_WANTS = 4,
    CR_PACK_FAMILIES = 16,    /* that a fold may have */
    CR_PACK_NOWHERE = 0x1fff, /* the place of what is not in a unit */
};

/* Of word 3: the rest of what the unit found lies in the words set aside. */
#define CR_PACK_MORE ((uint64_t)1 << 59)
#define CR_PACK_THERE ((uint64_t)1 << 63)

typedef struct cr_pack_unit {
    uint64_t data; /* address */
    uint16_t n;
    uint8_t dtype, family; /* family: number of its bit; from bit CR_PACK_WANTS on what is wanted of the extrema */
    uint32_t more;         /* the first word set aside */
} cr_pack_unit;

/* The kernel's argument, by value. */
typedef struct cr_pack_args {
    const cr_pack_unit *units; /* NULL: few */
    uint64_t *found, *more;
    uint32_t count;
    uint32_t pad;
    cr_pack_unit few[CR_PACK_FEW]; /* at a multiple of 16 bytes */
} cr_pack_args;

/* Enqueues on a cudaStream_t; gives a cudaError_t. */
int cr_pack_launch(const cr_pack_args *args, void *stream);

/* Units that were asked for and not yet forgotten. units, found and more: pinned (the kernel reads the first and writes the
 * others); found is zero at first. */
typedef struct cr_pack {
    cr_pack_unit *units;
    uint64_t *found, *more;
    uint32_t room, more_room; /* units, words */
    uint32_t count, more_count, launched, there;
    struct {
        cr_dtype dtype;
        uint32_t families;
        uint64_t most;                   /* elements; 0: of no fold */
        uint32_t more[CR_PACK_FAMILIES]; /* words set aside, by families */
    } few;                               /* folds like the last one that had a unit for each family */
} cr_pack;

/* Words of memory for so many units and words set aside. */
static inline size_t cr_pack_words(uint32_t room, uint32_t more_room) {
    return (size_t)room * (CR_PACK_WORDS + sizeof(cr_pack_unit) / 8) + more_room;
}
/* memory: of cr_pack_words(room, more_room), zero. */
void cr_pack_init(cr_pack *pack, uint64_t *memory, uint32_t room, uint32_t more_room);
/* Units that a fold takes. */
uint32_t cr_pack_units(const cr_gpu_fold *fold);
/* Adds a fold, whose first unit is *first; false: there is no room. */
bool cr_pack_add(cr_pack *pack, const cr_gpu_fold *fold, uint32_t *first);
/* Launches what was added since the last launch; gives a cudaError_t. */
int cr_pack_start(cr_pack *pack, void *stream);
/* The same for count units from `from` on, for whoever keeps the books. */
int cr_pack_enqueue(const cr_pack *pack, uint32_t from, uint32_t count, void *stream);
/* Whether all that was launched is there. */
bool cr_pack_done(cr_pack *pack);
/* Forgets what it has, all of which must be there. */
void cr_pack_clear(cr_pack *pack);
/* Makes p the partial of a fold that is there. */
void cr_pack_result(const cr_pack *pack, const cr_gpu_fold *fold, uint32_t first, cr_partial *p);
/* The same as numbers, by CR_AT_... of its families: of sums of floats, each of one unit. False: it is not so, or some number is longer, or
 * none. */
bool cr_pack_numbers(const cr_pack *pack, const cr_gpu_fold *fold, uint32_t first, cr_number *sums);

#ifdef __cplusplus
}
#endif
#endif
