/* serial: the canonical bytes of a partial, and what they must satisfy to be taken back.
 *
 * Thread: any. Owner: the caller; nothing here allocates. */
#include "kernels/core/serial.h"

#include <string.h>

#include "kernels/core/big.h"
#include "kernels/core/key.h"
#include "kernels/core/limbs.h"
#include "kernels/core/round.h"

typedef unsigned long long ull;

enum { FLAG_UNPLACED = 1, FLAG_BLOCK = 2, HEAD_BYTES = 24 };

/* A cursor over the buffer, for both directions. ok turns false at its end and stays so. */
typedef struct cursor {
    uint8_t *out;
    const uint8_t *in;
    size_t at, len;
    bool ok;
} cursor;

static void put(cursor *c, uint64_t value, unsigned bytes) {
    if (!c->ok || c->len - c->at < bytes) {
        c->ok = false;
        return;
    }
    for (unsigned i = 0; i < bytes; i++) c->out[c->at++] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(cursor *c, unsigned bytes) {
    if (!c->ok || c->len - c->at < bytes) {
        c->ok = false;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)c->in[c->at++] << (8 * i);
    return value;
}

static cr_status refuse(cr_error *error, const char *why) {
    return cr_fail(error, CR_INVALID_ARGUMENT, "partial: %s", why);
}

static bool is_float_prod(uint8_t dtype, uint32_t families) {
    return (families & CR_FAM_PROD) != 0 && cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT;
}

#include "kernels/core/serial_prod.inc"

/* The bits that an element has. */
static uint64_t element_mask(const cr_partial *p) {
    if (p->dtype == CR_BOOL) return 1;
    unsigned width = 8 * (unsigned)cr_dtype_size((cr_dtype)p->dtype);
    return width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

_Static_assert(CR_SUM_LIMBS <= 256, "a sum's lowest digit has a byte");
/* Sign, lowest digit, number of digits, digits: the first and the last are not zero, and zero has none. */
static void put_sum(cursor *c, const cr_sum *sum, unsigned limbs, bool floats) {
    cr_big big;
    bool negative = cr_big_from_limbs(&big, sum->limbs, limbs);
    uint32_t low = 0;
    while (low < big.n && big.d[low] == 0) low++;
    if (floats) {
        put(c, sum->special.nans, 8);
        put(c, sum->special.pinfs, 8);
        put(c, sum->special.ninfs, 8);
    }
    put(c, big.n ? negative : 0, 1);
    put(c, big.n ? low : 0, 1);
    put(c, big.n - low, 2);
    for (uint32_t i = low; i < big.n; i++) put(c, big.d[i], 4);
}

static void put_extremum(cursor *c, const cr_extremum *e) {
    bool none = e->index == UINT64_MAX;
    put(c, none ? 0 : e->key, 8);
    put(c, e->index, 8);
}

static unsigned version_of(const cr_share *s) {
    return s->unplaced ? CR_SERIAL_UNPLACED_VERSION : s->is_block ? CR_SERIAL_BLOCK_VERSION : CR_SERIAL_VERSION;
}

static unsigned flags_of(const cr_share *s) { return s->unplaced ? FLAG_UNPLACED : s->is_block ? FLAG_BLOCK : 0; }

size_t cr_share_pack(const cr_share *share, uint8_t *out, size_t cap) {
    const cr_partial *p = &share->partial;
    bool floats = cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_FLOAT;
    cursor c = {.out = out, .len = cap, .ok = true};
    put(&c, 'C' | 'P' << 8, 2);
    put(&c, version_of(share), 1);
    put(&c, p->dtype, 1);
    put(&c, p->families, 4);
    put(&c, p->n, 8);
    put(&c, share->range_count, 4);
    put(&c, flags_of(share), 4);
    if (share->is_block) put(&c, share->whole, 8);
    for (uint32_t i = 0; i < share->range_count; i++) {
        put(&c, share->ranges[i].base, 8);
        put(&c, share->ranges[i].count, 8);
    }
    for (unsigned at = 0; at < CR_SUMS; at++)
        if (p->families & cr_sum_rows[at].family)
            put_sum(&c, &p->sums[at], cr_sum_limbs((cr_sum_at)at, (cr_dtype)p->dtype), floats);
    if (p->families & CR_FAM_EXTREMA) {
        put_extremum(&c, &p->min);
        put_extremum(&c, &p->max);
        put(&c, p->first_nan, 8);
    }
    if (p->families & CR_FAM_COUNTS) {
        put(&c, p->nans, 8);
        put(&c, p->nonzero, 8);
    }
    if (p->families & CR_FAM_BITS) {
        put(&c, p->bit_and & element_mask(p), 8);
        put(&c, p->bit_or, 8);
        put(&c, p->bit_xor, 8);
    }
    if (p->families & CR_FAM_PROD) put_prod(&c, p);
    if (p->families & CR_FAM_DIGEST) {
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) put(&c, p->digest[j], 8);
        put(&c, p->cover, 8);
    }
    return c.ok ? c.at : 0;
}

static bool in_ranges(const cr_share *s, uint64_t index) {
    if (s->unplaced) return index == 0 && s->partial.n != 0;
    if (s->is_block) return index < s->whole && s->partial.n != 0;
    for (uint32_t i = 0; i < s->range_count; i++)
        if (index >= s->ranges[i].base && index - s->ranges[i].base < s->ranges[i].count) return true;
    return false;
}

static cr_status get_ranges(cursor *c, cr_share *s, cr_error *error) {
    uint64_t total = 0, free_from = 0;
    for (uint32_t i = 0; i < s->range_count; i++) {
        cr_share_range *r = &s->ranges[i];
        r->base = get(c, 8);
        r->count = get(c, 8);
        if (!c->ok) return refuse(error, "it is cut short");
        if (r->count == 0 || r->count > INT64_MAX || r->base > INT64_MAX - r->count)
            return refuse(error, "a range is empty or reaches beyond 2^63 elements");
        if (i && r->base <= free_from) return refuse(error, "its ranges are not rising and apart");
        free_from = r->base + r->count;
        total += r->count;
    }
    if (total != s->partial.n && version_of(s) == CR_SERIAL_VERSION)
        return refuse(error, "its ranges do not add up to its count");
    return CR_OK;
}

/* How many bits powers of n values of the type can add up to, on the grid. */
static unsigned most_bits(unsigned power, cr_dtype dtype, uint64_t n) {
#define CR_FLOAT(SYMBOL, ...) [CR_##SYMBOL] = CR_##SYMBOL##_SPAN,
    static const unsigned float_bits[] = {
#include "kernels/core/float.def"
    };
#undef CR_FLOAT
    unsigned bits = cr_dtype_kind(dtype) == CR_KIND_FLOAT ? float_bits[dtype]
                    : dtype == CR_BOOL                    ? 1
                                                          : 8 * (unsigned)cr_dtype_size(dtype);
    unsigned extra = 0;
    while (extra < 64 && n >> extra) extra++;
    return power * bits + extra;
}

static cr_status get_sum(cursor *c, cr_sum_at at, cr_share *s, cr_error *error) {
    cr_sum *sum = &s->partial.sums[at];
    const cr_dtype dtype = (cr_dtype)s->partial.dtype;
    const unsigned limbs = cr_sum_limbs(at, dtype);
    const uint64_t n = s->partial.n;
    cr_specials *x = &sum->special;
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
        x->nans = get(c, 8);
        x->pinfs = get(c, 8);
        x->ninfs = get(c, 8);
        if (x->nans > n || x->pinfs > n - x->nans || x->ninfs > n - x->nans - x->pinfs)
            return refuse(error, "it counts more NaNs and infinities than elements");
    }
    uint64_t negative = get(c, 1), low = get(c, 1), digits = get(c, 2);
    if (!c->ok) return refuse(error, "it is cut short");
    if (negative > 1 || low + digits > limbs || (digits == 0 && (negative || low)) ||
        (negative && !(cr_sum_rows[at].family & CR_FAM_SIGNED)))
        return refuse(error, "a sum is not in its canonical form");
    uint64_t digit = 1, first = 1;
    for (uint64_t i = 0; i < digits; i++) {
        digit = get(c, 4);
        if (i == 0) first = digit;
        sum->limbs[low + i] = negative ? -(int64_t)digit : (int64_t)digit;
    }
    if (!c->ok) return refuse(error, "it is cut short");
    if (digit == 0 || first == 0) return refuse(error, "a sum is not in its canonical form");
    cr_big big;
    cr_big_from_limbs(&big, sum->limbs, limbs);
    uint64_t finite = n - x->nans - x->pinfs - x->ninfs;
    const unsigned apart = at == CR_AT_SQDIST ? 2 : 0; /* a difference has a bit more than its elements */
    if (cr_big_bits(&big) > most_bits(cr_sum_rows[at].power, dtype, finite) + apart || (finite == 0 && big.n))
        return refuse(error, "a sum is larger than its elements can give");
    cr_limbs_carry(sum->limbs, limbs, &sum->pending);
    return CR_OK;
}

static bool plausible_key(cr_dtype dtype, uint64_t key) {
    unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
    if (width < 64 && key >> width) return false;
    if (dtype == CR_BOOL) return key <= 1;
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT) return true;
    return !cr_float_is_nan(dtype, cr_bits_of_key(dtype, key)); /* NaNs are never extrema */
}

static cr_status get_extremum(cursor *c, cr_extremum *e, const cr_share *s, uint64_t empty_key, cr_error *error) {
    e->key = get(c, 8);
    e->index = get(c, 8);
    if (!c->ok) return refuse(error, "it is cut short");
    if (e->index == UINT64_MAX) {
        if (e->key) return refuse(error, "an extremum is not in its canonical form");
        e->key = empty_key;
        return CR_OK;
    }
    if (!in_ranges(s, e->index)) return refuse(error, "an index lies outside its ranges");
    if (!plausible_key((cr_dtype)s->partial.dtype, e->key))
        return refuse(error, "an extremum is not a value of its type");
    return CR_OK;
}

static cr_status get_extrema(cursor *c, cr_share *s, cr_error *error) {
    cr_partial *p = &s->partial;
    cr_status status = get_extremum(c, &p->min, s, UINT64_MAX, error);
    if (status == CR_OK) status = get_extremum(c, &p->max, s, 0, error);
    if (status != CR_OK) return status;
    p->first_nan = get(c, 8);
    bool floats = cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_FLOAT;
    bool no_min = p->min.index == UINT64_MAX, no_max = p->max.index == UINT64_MAX, no_nan = p->first_nan == UINT64_MAX;
    if (!no_nan && (!floats || !in_ranges(s, p->first_nan)))
        return refuse(error, "the first NaN lies outside its ranges");
    if (no_min != no_max || (!no_min && p->min.key > p->max.key) || (p->n && no_min && no_nan))
        return refuse(error, "its extrema contradict each other");
    return CR_OK;
}

static cr_status get_counts(cursor *c, cr_partial *p, cr_error *error) {
    p->nans = get(c, 8);
    p->nonzero = get(c, 8);
    bool floats = cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_FLOAT;
    if (p->nonzero > p->n || p->nans > p->nonzero || (p->nans && !floats))
        return refuse(error, "it counts more NaNs or non-zeros than elements");
    return CR_OK;
}

static cr_status get_bits(cursor *c, cr_partial *p, cr_error *error) {
    p->bit_and = get(c, 8);
    p->bit_or = get(c, 8);
    p->bit_xor = get(c, 8);
    uint64_t mask = element_mask(p);
    bool wrong = (p->bit_and | p->bit_or | p->bit_xor) & ~mask;
    if (p->n == 0) wrong |= p->bit_and != mask || p->bit_or || p->bit_xor;
    if (p->n != 0) wrong |= (p->bit_and & ~p->bit_or) != 0 || (p->bit_xor & ~p->bit_or) != 0;
    if (wrong) return refuse(error, "its bits contradict each other");
    p->bit_and |= ~mask; /* the fold's form: ones above the element */
    return CR_OK;
}

uint64_t cr_share_begins(const uint8_t *in, size_t len) {
    cursor c = {.in = in, .at = HEAD_BYTES, .len = len, .ok = len >= HEAD_BYTES && in[2] == CR_SERIAL_VERSION};
    return get(&c, 8);
}

static cr_status get_digest(cursor *c, cr_partial *p, cr_error *error) {
    uint64_t *const residues[] = {&p->digest[0], &p->digest[1], &p->cover};
    bool wrong = false;
    for (unsigned i = 0; i < sizeof residues / sizeof residues[0]; i++) {
        *residues[i] = get(c, 8);
        wrong |= *residues[i] >= CR_DIGEST_P || (p->n == 0 && *residues[i] != 0);
    }
    return wrong ? refuse(error, "a residue of its digest is not in its canonical form") : CR_OK;
}

static cr_status get_head(cursor *c, cr_share *s, cr_error *error) {
    uint64_t magic = get(c, 2), version = get(c, 1);
    cr_partial *p = &s->partial;
    p->dtype = (uint8_t)get(c, 1);
    p->families = (uint32_t)get(c, 4);
    p->n = get(c, 8);
    uint64_t ranges = get(c, 4), flags = get(c, 4);
    if (magic == ('C' | 'K' << 8))
        return refuse(error, "it is by key, and has answers for each group: this takes those of whole arrays");
    if (!c->ok || magic != ('C' | 'P' << 8)) return refuse(error, "these bytes are not one");
    s->unplaced = version == CR_SERIAL_UNPLACED_VERSION;
    s->is_block = version == CR_SERIAL_BLOCK_VERSION;
    if (version != version_of(s))
        return cr_fail(error, CR_UNIMPLEMENTED, "partial: its version is %llu, %d to %d are understood", (ull)version,
                       CR_SERIAL_VERSION, CR_SERIAL_BLOCK_VERSION);
    if (!cr_dtype_is_input((cr_dtype)p->dtype)) return refuse(error, "its dtype is not an input type");
    if (p->families & ~(uint32_t)CR_FAM_ALL) return refuse(error, "it has families that are not known");
    if (p->families & CR_FAM_PAIRS && p->families & CR_FAM_SINGLE)
        return refuse(error, "its families are of one array and of two, which no call's are");
    if (p->n > INT64_MAX || ranges > CR_SHARE_MAX_RANGES || flags != flags_of(s) || (flags && ranges))
        return refuse(error, "its head is out of bounds");
    if (flags && is_float_prod(p->dtype, p->families))
        return refuse(error, s->unplaced ? "it has no position, and a product of floats"
                                         : "it is of a block, and has a product of floats");
    s->range_count = (uint32_t)ranges;
    s->whole = s->is_block ? get(c, 8) : 0;
    if (s->is_block && (s->whole > CR_LAYOUT_MAX_WHOLE || p->n > s->whole))
        return refuse(error, "it has more elements than its whole array");
    return CR_OK;
}

cr_status cr_share_unpack(const uint8_t *in, size_t len, cr_share *share, cr_error *error) {
    cursor c = {.in = in, .len = len, .ok = true};
    cr_partial *p = &share->partial;
    cr_status status = get_head(&c, share, error);
    if (status == CR_OK) {
        uint64_t n = p->n;
        uint32_t families = p->families;
        cr_partial_init(p, (cr_dtype)p->dtype, families);
        p->n = n;
        status = get_ranges(&c, share, error);
    }
    if (status != CR_OK) return status;
    for (unsigned at = 0; status == CR_OK && at < CR_SUMS; at++)
        if (p->families & cr_sum_rows[at].family) status = get_sum(&c, (cr_sum_at)at, share, error);
    if (status == CR_OK && p->families & CR_FAM_EXTREMA) status = get_extrema(&c, share, error);
    if (status == CR_OK && p->families & CR_FAM_COUNTS) status = get_counts(&c, p, error);
    if (status == CR_OK && p->families & CR_FAM_BITS) status = get_bits(&c, p, error);
    if (status == CR_OK && p->families & CR_FAM_PROD) status = get_prod(&c, share, error);
    if (status == CR_OK && p->families & CR_FAM_DIGEST) status = get_digest(&c, p, error);
    if (status != CR_OK) return status;
    if (!c.ok) return refuse(error, "it is cut short");
    if (c.at != len) return refuse(error, "bytes follow its end");
    return CR_OK;
}

cr_status cr_share_unplaced_takes(cr_op op, cr_dtype dtype, cr_error *error) {
    if (!cr_op_is_index(op) && !is_float_prod((uint8_t)dtype, cr_op_needs(op, dtype))) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "partial: without a position there is no %s of %s", cr_op_name(op),
                   cr_dtype_name(dtype));
}

cr_status cr_share_block_takes(cr_op op, cr_dtype dtype, cr_error *error) {
    if (!is_float_prod((uint8_t)dtype, cr_op_needs(op, dtype))) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "layout: a block has no %s of %s, which goes by runs of %d elements of the whole array",
                   cr_op_name(op), cr_dtype_name(dtype), CR_PROD_BLOCK);
}

/* A digest is of a whole array, each of whose elements is there once. */
static cr_status check_whole(const cr_share *share, cr_error *error) {
    const cr_partial *p = &share->partial;
    const cr_share_range *first = share->ranges;
    if (share->range_count != 0 && (first->base != 0 || share->range_count > 1)) {
        const uint64_t missing = first->base != 0 ? 0 : first->count;
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: a digest is of a whole array: merge the part that has element %llu first",
                       (ull)missing);
    }
    if (p->cover == cr_digest_cover(0, p->n) && (!share->is_block || p->n == share->whole)) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "partial: its %llu elements are not a whole array, each once: a part is missing, or there twice",
                   (ull)p->n);
}

cr_status cr_share_answers(const cr_share *share, const uint32_t *ops, uint32_t op_count, bool now, cr_error *error) {
    const cr_partial *p = &share->partial;
    cr_status status = CR_OK;
    for (uint32_t i = 0; i < op_count && status == CR_OK; i++) {
        cr_op op = (cr_op)ops[i];
        if ((cr_op_needs(op, (cr_dtype)p->dtype) & ~p->families) != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "partial: it was not made for %s", cr_op_name(op));
        if (share->unplaced) status = cr_share_unplaced_takes(op, (cr_dtype)p->dtype, error);
        if (status == CR_OK && now && cr_op_closing(op) == CR_CLOSING_DIGEST) status = check_whole(share, error);
    }
    return status;
}

/* Index 0 stands for any, so that a state has one form whatever its elements' order was. */
static void forget_position(cr_share *share) {
    cr_partial *p = &share->partial;
    share->range_count = 0;
    if ((p->families & CR_FAM_EXTREMA) == 0) return;
    uint64_t *const indices[] = {&p->min.index, &p->max.index, &p->first_nan};
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++)
        if (*indices[i] != UINT64_MAX) *indices[i] = 0;
}

cr_status cr_share_make(cr_share *share, const cr_partial *partial, uint64_t base, cr_error *error) {
    share->unplaced = base == CR_UNPLACED;
    share->is_block = false;
    share->whole = 0;
    if (share->unplaced && partial->n <= INT64_MAX && !is_float_prod(partial->dtype, partial->families)) {
        share->partial = *partial;
        forget_position(share);
        return CR_OK;
    }
    if (base > INT64_MAX || partial->n > INT64_MAX - base)
        return cr_fail(error, CR_INVALID_ARGUMENT, "first: %llu and %llu elements reach beyond 2^63", (ull)base,
                       (ull)partial->n);
    share->partial = *partial;
    share->range_count = partial->n != 0;
    share->ranges[0] = (cr_share_range){base, partial->n};
    if (partial->families & CR_FAM_DIGEST) share->partial.cover = cr_digest_cover(base, partial->n);
    return check_nodes(share, error);
}

cr_status cr_share_make_block(cr_share *share, const cr_partial *partial, const cr_layout *block, cr_error *error) {
    if (partial->n != block->count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: the block has %llu elements, the input %llu",
                       (ull)block->count, (ull)partial->n);
    if (is_float_prod(partial->dtype, partial->families))
        return cr_share_block_takes(CR_OP_PROD, (cr_dtype)partial->dtype, error);
    share->partial = *partial;
    share->unplaced = false;
    share->is_block = true;
    share->whole = block->whole;
    share->range_count = 0;
    cr_partial *p = &share->partial;
    if (p->families & CR_FAM_DIGEST) p->cover = cr_layout_cover(block);
    uint64_t *const indices[] = {&p->min.index, &p->max.index, &p->first_nan};
    for (size_t i = 0; i < sizeof indices / sizeof indices[0] && (p->families & CR_FAM_EXTREMA); i++)
        if (*indices[i] != UINT64_MAX) *indices[i] = cr_layout_place(block, *indices[i]);
    return CR_OK;
}

/* Both lists are rising; neighbours join. */
static cr_status merge_ranges(cr_share_range out[CR_SHARE_MAX_RANGES], uint32_t *count, const cr_share *a,
                              const cr_share *b, cr_error *error) {
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->range_count || j < b->range_count) {
        bool from_a = j == b->range_count || (i < a->range_count && a->ranges[i].base < b->ranges[j].base);
        cr_share_range r = from_a ? a->ranges[i++] : b->ranges[j++];
        uint64_t end = n ? out[n - 1].base + out[n - 1].count : 0;
        if (n && r.base < end)
            return cr_fail(error, CR_INVALID_ARGUMENT, "partial: elements from %llu on are in two of them",
                           (ull)r.base);
        if (n && r.base == end) {
            out[n - 1].count += r.count;
        } else if (n == CR_SHARE_MAX_RANGES) {
            return cr_fail(error, CR_RESOURCE_EXHAUSTED, "partial: more than %d gaps; merge neighbours first",
                           CR_SHARE_MAX_RANGES);
        } else {
            out[n++] = r;
        }
    }
    *count = n;
    return CR_OK;
}

/* Of shares of which one is of a block: they are of one array, and have no more elements than it. */
static cr_status check_whole_of(const cr_share *a, const cr_share *b, uint64_t whole, cr_error *error) {
    const cr_share *const shares[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        const cr_share *s = shares[i];
        if (s->is_block && s->whole != whole)
            return cr_fail(error, CR_INVALID_ARGUMENT, "partial: one is of an array of %llu elements, another of %llu",
                           (ull)s->whole, (ull)whole);
        const cr_share_range *last = s->range_count != 0 ? &s->ranges[s->range_count - 1] : NULL;
        if (last != NULL && last->base + last->count > whole)
            return refuse(error, "one has elements beyond the end of another's array");
    }
    if (a->partial.n <= whole && b->partial.n <= whole - a->partial.n) return CR_OK;
    return refuse(error, "together they have more elements than their array: a part is there twice");
}

cr_status cr_share_merge(cr_share *into, const cr_share *from, cr_error *error) {
    if (into->partial.dtype != from->partial.dtype)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: one is of %s, another of %s",
                       cr_dtype_name((cr_dtype)into->partial.dtype), cr_dtype_name((cr_dtype)from->partial.dtype));
    if (into->partial.families != from->partial.families)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: they were made for different ops");
    if (into->unplaced != from->unplaced)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: one has a position, another has none");
    if (from->partial.n > INT64_MAX - into->partial.n)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: together they have more than 2^63 elements");
    cr_share_range ranges[CR_SHARE_MAX_RANGES];
    uint32_t count = 0;
    const bool is_block = into->is_block || from->is_block;
    const uint64_t whole = into->is_block ? into->whole : from->whole;
    cr_status status =
        is_block ? check_whole_of(into, from, whole, error) : merge_ranges(ranges, &count, into, from, error);
    if (status == CR_OK && !is_block)
        status = check_cover(into->partial.dtype, into->partial.families, ranges, count, error);
    if (status != CR_OK) return status;
    cr_partial_merge(&into->partial, &from->partial);
    memcpy(into->ranges, ranges, count * sizeof ranges[0]);
    into->range_count = count;
    into->is_block = is_block;
    into->whole = whole;
    return CR_OK;
}
