/* pack: the host's half: cuts folds into units, waits for their words, merges what they say.
 *
 * Thread: one at a time for a pack. Owner: the caller. */
#include "kernels/cuda/pack/pack.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/key.h"
#include "kernels/core/limbs.h"
#include "kernels/core/prod.h"
#include "kernels/cuda/plan/fold.h"

enum { AHEAD = 16 }; /* units */

static bool is_float(const cr_gpu_fold *fold) { return cr_dtype_kind(fold->dtype) == CR_KIND_FLOAT; }

/* Elements of a unit. */
static uint64_t unit_elements(const cr_gpu_fold *fold, uint32_t family) {
    if (family == CR_FAM_PROD && is_float(fold)) return CR_PROD_BLOCK;
    return CR_PACK_UNIT_BYTES >> __builtin_ctzll(cr_dtype_size(fold->dtype));
}

static uint32_t units_of(const cr_gpu_fold *fold, uint32_t family) {
    uint64_t step = unit_elements(fold, family);
    return fold->n - 1 < step ? 1 : (uint32_t)((fold->n + step - 1) / step);
}

/* Words set aside for a unit. */
static uint32_t more_of(const cr_gpu_fold *fold, uint32_t family) {
    if (family == CR_FAM_PROD) return is_float(fold) ? 0 : CR_PACK_FACTORS;
    if (!(family & CR_FAM_SUMS) || !is_float(fold)) return 0;
    return CR_PACK_SPECIALS + cr_sum_limbs(cr_sum_of(family), fold->dtype);
}

void cr_pack_init(cr_pack *pack, uint64_t *memory, uint32_t room, uint32_t more_room) {
    *pack = (cr_pack){.room = room, .more_room = more_room, .found = memory};
    memory += (size_t)room * CR_PACK_WORDS;
    pack->units = (cr_pack_unit *)(void *)memory;
    pack->more = memory + (size_t)room * sizeof(cr_pack_unit) / 8;
}

uint32_t cr_pack_units(const cr_gpu_fold *fold) {
    uint32_t units = 0;
    for (uint32_t left = fold->families; left != 0; left &= left - 1) units += units_of(fold, left & -left);
    return units;
}

static cr_pack_unit unit_of(const cr_pack *pack, const cr_gpu_fold *fold, uint32_t family, uint64_t offset,
                            uint64_t n) {
    const uint32_t wants = fold->wants ? fold->wants & CR_WANTS_ALL : CR_WANTS_ALL;
    return (cr_pack_unit){.data = (uint64_t)(uintptr_t)fold->data + offset,
                          .n = (uint16_t)n,
                          .dtype = (uint8_t)fold->dtype,
                          .family = (uint8_t)((uint32_t)__builtin_ctz(family) | wants << CR_PACK_WANTS),
                          .more = pack->more_count};
}

_Static_assert(CR_FAM_ALL < 1 << CR_PACK_FAMILIES, "a fold has more families than there is room for");

/* What folds like this one, of a unit for each family, have alike: lists are of many. */
static void look_at(cr_pack *pack, const cr_gpu_fold *fold) {
    size_t k = 0;
    pack->few.dtype = fold->dtype;
    pack->few.families = fold->families;
    pack->few.most = UINT64_MAX;
    for (uint32_t left = fold->families; left != 0; left &= left - 1, k++) {
        const uint64_t step = unit_elements(fold, left & -left);
        if (step < pack->few.most) pack->few.most = step;
        pack->few.more[k] = more_of(fold, left & -left);
    }
}

/* Adds one that has a unit for each family. */
static bool add_few(cr_pack *pack, const cr_gpu_fold *fold, uint32_t *first) {
    uint32_t units = 0, more = 0;
    for (uint32_t left = fold->families; left != 0; left &= left - 1) more += pack->few.more[units++];
    if (units > pack->room - pack->count || more > pack->more_room - pack->more_count) return false;
    *first = pack->count;
    units = 0;
    for (uint32_t left = fold->families; left != 0; left &= left - 1) {
        pack->units[pack->count++] = unit_of(pack, fold, left & -left, 0, fold->n);
        pack->more_count += pack->few.more[units++];
    }
    return true;
}

bool cr_pack_add(cr_pack *pack, const cr_gpu_fold *fold, uint32_t *first) {
    uint32_t units = 0, more = 0;
    if (pack->few.dtype != fold->dtype || pack->few.families != fold->families) look_at(pack, fold);
    if (fold->n - 1 < pack->few.most) return add_few(pack, fold, first);
    for (uint32_t left = fold->families; left != 0; left &= left - 1) {
        const uint32_t own = units_of(fold, left & -left);
        units += own;
        more += own * more_of(fold, left & -left);
    }
    if (units > pack->room - pack->count || more > pack->more_room - pack->more_count) return false;
    *first = pack->count;
    for (uint32_t left = fold->families; left != 0; left &= left - 1) {
        const uint32_t family = left & -left, own = more_of(fold, family);
        const uint64_t step = unit_elements(fold, family), size = cr_dtype_size(fold->dtype);
        for (uint64_t at = 0; at < fold->n; at += step) {
            const uint64_t n = fold->n - at < step ? fold->n - at : step;
            pack->units[pack->count++] = unit_of(pack, fold, family, at * size, n);
            pack->more_count += own;
        }
    }
    return true;
}

int cr_pack_enqueue(const cr_pack *pack, uint32_t from, uint32_t count, void *stream) {
    cr_pack_args args;
    args.units = pack->units + from;
    args.found = pack->found + (size_t)from * CR_PACK_WORDS;
    args.more = pack->more;
    args.count = count;
    if (count <= CR_PACK_FEW && cr_fast_on(CR_FAST_GPU_FEW_UNITS)) {
        args.units = NULL;
        memcpy(args.few, pack->units + from, count * sizeof args.few[0]);
    }
    return cr_pack_launch(&args, stream);
}

int cr_pack_start(cr_pack *pack, void *stream) {
    const uint32_t from = pack->launched;
    if (pack->count == from) return 0;
    const int failure = cr_pack_enqueue(pack, from, pack->count - from, stream);
    if (failure) { /* as if they had never been added */
        pack->count = from;
        pack->more_count = pack->units[from].more;
    } else {
        pack->launched = pack->count;
    }
    return failure;
}

static uint64_t look(const uint64_t *word) {
    return atomic_load_explicit((const _Atomic uint64_t *)word, memory_order_acquire);
}

bool cr_pack_done(cr_pack *pack) {
    for (; pack->there < pack->launched; pack->there++) {
        const uint64_t *word = pack->found + (size_t)pack->there * CR_PACK_WORDS;
        __builtin_prefetch(word + (size_t)AHEAD * CR_PACK_WORDS); /* the GPU wrote them: they are in no cache */
        for (int i = 0; i < CR_PACK_WORDS; i++)
            if (!(look(&word[i]) & CR_PACK_THERE)) return false;
    }
    return true;
}

void cr_pack_clear(cr_pack *pack) {
    memset(pack->found, 0, (size_t)pack->launched * CR_PACK_WORDS * sizeof *pack->found);
    pack->count = pack->more_count = pack->launched = pack->there = 0;
}

/* ---- what the words say ---- */

typedef struct found {
    uint64_t word[CR_PACK_WORDS]; /* the last one: 59 bits */
    const uint64_t *more;         /* NULL: nothing there */
} found;

/* The upper bits of three words stand in the fourth. */
static found read_unit(const cr_pack *pack, uint32_t unit) {
    found f;
    const uint64_t *word = pack->found + (size_t)unit * CR_PACK_WORDS;
    for (int i = 0; i < CR_PACK_WORDS; i++) f.word[i] = look(&word[i]);
    for (int i = 0; i < 3; i++) f.word[i] = (f.word[i] & ~CR_PACK_THERE) | (f.word[3] >> (60 + i) & 1) << 63;
    f.more = f.word[3] & CR_PACK_MORE ? pack->more + pack->units[unit].more : NULL;
    f.word[3] &= CR_PACK_MORE - 1;
    return f;
}

static void take_float_sum(const found *f, cr_sum_at at, cr_partial *p) {
    const cr_dtype dtype = (cr_dtype)p->dtype;
    cr_sum *sum = &p->sums[at];
    const unsigned limbs = cr_sum_limbs(at, dtype);
    if (f->more) {
        sum->special.nans += f->more[0];
        sum->special.pinfs += f->more[1];
        sum->special.ninfs += f->more[2];
        for (unsigned i = 0; i < limbs; i++) sum->limbs[i] += (int64_t)f->more[CR_PACK_SPECIALS + i];
        cr_limbs_carry(sum->limbs, limbs, &sum->pending);
        return;
    }
    int a = (int)f->word[3] - CR_PACK_BIAS, grid = cr_sum_grid(at, dtype);
    for (int level = 0; level < 3; level++, a -= cr_sum_step(dtype, at == CR_AT_SUMSQ)) {
        __int128 value = (int64_t)f->word[level];
        if (value == 0) continue;
        if (a < grid)
            cr_partial_put(p, at, value >> (grid - a), 0); /* a multiple of the grid's unit */
        else
            cr_partial_put(p, at, value, (unsigned)(a - grid));
    }
}

/* The same to a number. A level's value is in units of 2^a. */
static bool take_number(const found *f, cr_sum_at at, cr_dtype dtype, cr_number *x) {
    const int step = cr_sum_step(dtype, at == CR_AT_SUMSQ);
    __int128 value = (int64_t)f->word[0];
    int level = 1;
    if (f->more) return false;
    for (; level < 3 && (f->word[level] != 0 || level < 2); level++) {
        const __int128 beyond = value >> (126 - step);
        if (beyond != 0 && beyond != -1) return false;
        value = (__int128)((unsigned __int128)value << step) + (int64_t)f->word[level];
    }
    x->negative = value < 0;
    x->magnitude = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    x->exponent = (int)f->word[3] - CR_PACK_BIAS - step * (level - 1);
    return true;
}

bool cr_pack_numbers(const cr_pack *pack, const cr_gpu_fold *fold, uint32_t first, cr_number *sums) {
    if (!is_float(fold) || (fold->families & ~(uint32_t)CR_FAM_KNOWN_SUMS) != 0 || fold->n == 0) return false;
    if (fold->n > CR_PACK_UNIT_BYTES || fold->n * cr_dtype_size(fold->dtype) > CR_PACK_UNIT_BYTES) return false;
    for (uint32_t left = fold->families; left != 0; left &= left - 1) {
        const cr_sum_at at = cr_sum_of(left & -left);
        const found f = read_unit(pack, first++);
        if (!take_number(&f, at, fold->dtype, &sums[at])) return false;
    }
    return true;
}

static void take_int_sum(const found *f, cr_sum_at at, cr_partial *p) {
    const unsigned __int128 low = (unsigned __int128)f->word[1] << 64 | f->word[0];
    cr_sum *sum = &p->sums[at];
    if (at == CR_AT_SUMSQ) { /* 192 bits, no sign */
        const unsigned limbs = cr_sum_limbs(at, (cr_dtype)p->dtype);
        if (low) cr_limbs_put(sum->limbs, limbs, &sum->pending, low, false, 0);
        if (f->word[2]) cr_limbs_put(sum->limbs, limbs, &sum->pending, f->word[2], false, 128);
    } else {
        cr_partial_put(p, at, (__int128)low, 0);
    }
}

/* Units come by rising index: of equal keys the first one's stays. index: of the unit's first element. What is not wanted is
 * nowhere; without its index it is at 0. */
static void take_extrema(const found *f, uint64_t index, cr_partial *p) {
    const uint64_t none = CR_PACK_NOWHERE, least_at = f->word[3] & none, most_at = f->word[3] >> 13 & none,
                   nan_at = f->word[3] >> 26 & none;
    if (nan_at != none && p->first_nan == UINT64_MAX) p->first_nan = index + nan_at;
    if (least_at != none && (p->min.index == UINT64_MAX || f->word[0] < p->min.key))
        p->min = (cr_extremum){f->word[0], index + least_at};
    if (most_at != none && (p->max.index == UINT64_MAX || f->word[1] > p->max.key))
        p->max = (cr_extremum){f->word[1], index + most_at};
}

static void take_int_prod(const found *f, cr_dtype dtype, cr_int_prod *p) {
    cr_int_prod unit;
    cr_int_prod_init(&unit);
    unit.zeros = f->word[3] & 0x1fff;
    unit.wrap = dtype == CR_BOOL ? unit.zeros == 0 : f->word[0];
    unit.negative = f->word[3] >> 13 & 1;
    if (f->word[3] >> 14 & 1) {
        unit.over = true;
        unit.words = 0;
    }
    const uint32_t factors = f->more ? (uint32_t)(f->word[3] >> 15 & 0x7f) : 0;
    for (uint32_t i = 0; i < factors && i < CR_PACK_FACTORS; i++) cr_int_prod_times(&unit, f->more[i]);
    cr_int_prod_merge(p, &unit);
}

static void take_float_prod(const found *f, uint64_t block, cr_float_prod *p) {
    double h, l;
    memcpy(&h, &f->word[0], sizeof h);
    memcpy(&l, &f->word[1], sizeof l);
    cr_float_prod_add(p, block, h, l, (int64_t)f->word[2]);
    p->nans += f->word[3] & 0x1fff;
    p->zeros += f->word[3] >> 13 & 0x1fff;
    p->infs += f->word[3] >> 26 & 0x1fff;
    p->negative ^= f->word[3] >> 39 & 1;
}

static void take_unit(const found *f, const cr_gpu_fold *fold, uint32_t family, uint64_t at, cr_partial *p) {
    switch (cr_family_of(family)) {
        case CR_FAMILY_COUNTS:
            p->nonzero += f->word[0];
            p->nans += f->word[1];
            break;
        case CR_FAMILY_EXTREMA:
            take_extrema(f, fold->index + at, p);
            break;
        case CR_FAMILY_DIGEST: /* no pack has it */
            break;
        case CR_FAMILY_BITS:
            p->bit_and &= f->word[0];
            p->bit_or |= f->word[1];
            p->bit_xor ^= f->word[2];
            break;
        case CR_FAMILY_PROD:
            if (is_float(fold))
                take_float_prod(f, (fold->index + at) / CR_PROD_BLOCK, &p->float_prod);
            else
                take_int_prod(f, fold->dtype, &p->prod);
            break;
#define CR_SUM(symbol, power, sign) case CR_FAMILY_##symbol:
#include "kernels/core/sum.def"
#undef CR_SUM
            (is_float(fold) ? take_float_sum : take_int_sum)(f, cr_sum_of(family), p);
            break;
    }
}

void cr_pack_result(const cr_pack *pack, const cr_gpu_fold *fold, uint32_t first, cr_partial *p) {
    cr_partial_init(p, fold->dtype, fold->families);
    if (fold->wants) cr_partial_want(p, fold->wants);
    p->n = fold->n;
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1) {
        if (!(fold->families & family)) continue;
        const uint64_t step = unit_elements(fold, family);
        for (uint64_t at = 0; at < fold->n; at += step) {
            found f = read_unit(pack, first++);
            take_unit(&f, fold, family, at, p);
        }
    }
}
