/* serial_prod: the canonical bytes of products, and what they must satisfy. A part of serial.c, which includes it once.
 *
 * Thread: any. Owner: the caller; nothing here allocates. */
#include "kernels/core/float_state.h"
#include "kernels/core/prod.h"

/* Digits of the magnitude: lowest first, the highest not zero; none once it is over. */
static void put_int_prod(cursor *c, const cr_int_prod *p) {
    uint32_t digits = 2 * p->words;
    if (digits && p->magnitude[p->words - 1] >> 32 == 0) digits--;
    put(c, p->zeros, 8);
    put(c, p->wrap, 8);
    put(c, p->negative, 1);
    put(c, p->over, 1);
    put(c, digits, 2);
    for (uint32_t i = 0; i < digits; i++) put(c, p->magnitude[i / 2] >> 32 * (i % 2), 4);
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Which nodes they are follows from the ranges. */
static void put_float_prod(cursor *c, const cr_float_prod *p) {
    put(c, p->nans, 8);
    put(c, p->zeros, 8);
    put(c, p->infs, 8);
    put(c, p->negative, 1);
    put(c, 0, 1);
    put(c, p->count, 2);
    for (uint32_t i = 0; i < p->count; i++) {
        put(c, bits_of(p->nodes[i].h), 8);
        put(c, bits_of(p->nodes[i].l), 8);
        put(c, (uint64_t)p->nodes[i].exponent, 8);
    }
}

/* What n elements other than zero can give: at most their width in bits each, ±1 when there are none. */
static bool plausible_int_prod(const cr_partial *p) {
    const cr_int_prod *x = &p->prod;
    cr_dtype dtype = (cr_dtype)p->dtype;
    if (x->zeros > p->n) return false;
    uint64_t finite = p->n - x->zeros, width = dtype == CR_BOOL ? 0 : 8 * cr_dtype_size(dtype);
    uint64_t bits = x->over ? 64 * CR_INT_PROD_WORDS + 1 : 0;
    if (!x->over) bits = 64 * x->words - (uint64_t)__builtin_clzll(x->magnitude[x->words - 1]);
    uint64_t most = finite > 64 * CR_INT_PROD_WORDS ? UINT64_MAX : finite * width;
    if (width == 0 || most == 0) most = 1;
    if (bits > most) return false;
    if (x->negative && (cr_dtype_kind(dtype) != CR_KIND_SINT || finite == 0)) return false;
    if (x->zeros) return x->wrap == 0;
    return x->over || x->wrap == (x->negative ? -x->magnitude[0] : x->magnitude[0]);
}

static cr_status get_int_prod(cursor *c, cr_partial *p, cr_error *error) {
    cr_int_prod *x = &p->prod;
    x->zeros = get(c, 8);
    x->wrap = get(c, 8);
    uint64_t negative = get(c, 1), over = get(c, 1), digits = get(c, 2), digit = 1;
    if (negative > 1 || over > 1 || digits > 2 * CR_INT_PROD_WORDS || (digits == 0) != over)
        return refuse(error, "a product is not in its canonical form");
    x->negative = negative;
    x->over = over;
    x->words = (uint32_t)(digits + 1) / 2;
    for (uint32_t i = 0; i < digits; i++) {
        digit = get(c, 4);
        x->magnitude[i / 2] = (i % 2 ? x->magnitude[i / 2] : 0) | digit << 32 * (i % 2);
    }
    if (!c->ok) return refuse(error, "it is cut short");
    if (digit == 0) return refuse(error, "a product is not in its canonical form");
    if (!plausible_int_prod(p)) return refuse(error, "a product is not what its elements can give");
    return CR_OK;
}

/* The places of the nodes that cover the ranges, which must consist of whole blocks; the very last may be cut short. */
static cr_status cover(const cr_share_range *ranges, uint32_t range_count, uint64_t places[CR_PROD_NODES],
                       uint32_t *count, cr_error *error) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < range_count; i++) {
        const cr_share_range *r = &ranges[i];
        if (r->base % CR_PROD_BLOCK || (i + 1 < range_count && r->count % CR_PROD_BLOCK))
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "partial: prod of floats is cut at multiples of %d elements, not in the range from %llu",
                           CR_PROD_BLOCK, (ull)r->base);
        uint64_t at = r->base / CR_PROD_BLOCK, end = (r->base + r->count + CR_PROD_BLOCK - 1) / CR_PROD_BLOCK, blocks;
        for (; at < end; at += blocks) {
            uint64_t place = cr_prod_place(at, end - at, &blocks);
            if (n == CR_PROD_NODES)
                return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                               "partial: prod of floats from ranges this scattered has more than %d nodes; merge "
                               "neighbours first",
                               CR_PROD_NODES);
            places[n++] = place;
        }
    }
    *count = n;
    return CR_OK;
}

/* h + l in normal form; ones: 1. */
static __attribute__((noinline)) bool is_normal(const cr_prod_node *node, bool ones) {
    if (ones && (node->h != 1 || node->l != 0)) return false;
    if (!(node->h >= 1 && node->h < 2) || !(node->l >= -0x1p-53 && node->l <= 0x1p-53)) return false;
    return node->h + node->l == node->h && bits_of(node->l) != bits_of(-0.0);
}

/* A node of normal form whose exponent its elements can give. */
static bool plausible_node(const cr_prod_node *node, cr_dtype dtype, bool ones) {
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED) \
    [CR_##SYMBOL] = {CR_##SYMBOL##_LEAST, CR_##SYMBOL##_BIAS + 1},
    static const struct {
        int16_t least, most;
    } exponents[] = {
#include "kernels/core/float.def"
    };
#undef CR_FLOAT
    __int128 elements = (__int128)CR_PROD_BLOCK * (__int128)(node->place & -node->place);
    if (ones && node->exponent) return false;
    const uint64_t state = cr_float_enter();
    const bool normal = is_normal(node, ones);
    cr_float_leave(state);
    return normal && node->exponent >= elements * exponents[dtype].least &&
           node->exponent <= elements * exponents[dtype].most && node->exponent >= -((int64_t)1 << 62) &&
           node->exponent <= (int64_t)1 << 62;
}

static cr_status get_float_prod(cursor *c, cr_share *s, cr_error *error) {
    cr_partial *p = &s->partial;
    cr_float_prod *x = &p->float_prod;
    uint64_t places[CR_PROD_NODES];
    uint32_t count = 0;
    cr_status status = cover(s->ranges, s->range_count, places, &count, error);
    if (status != CR_OK) return status;
    x->nans = get(c, 8);
    x->zeros = get(c, 8);
    x->infs = get(c, 8);
    uint64_t negative = get(c, 1), zero = get(c, 1), nodes = get(c, 2);
    if (!c->ok) return refuse(error, "it is cut short");
    if (x->nans > p->n || x->zeros > p->n - x->nans || x->infs > p->n - x->nans - x->zeros)
        return refuse(error, "it counts more NaNs, zeros and infinities than elements");
    bool ones = x->nans + x->zeros + x->infs == p->n;
    if (negative > 1 || zero || nodes != count || (negative && x->nans + x->zeros == p->n))
        return refuse(error, "a product is not in its canonical form");
    x->negative = negative;
    x->count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t h = get(c, 8), l = get(c, 8);
        cr_prod_node *node = &x->nodes[i];
        memcpy(&node->h, &h, sizeof h);
        memcpy(&node->l, &l, sizeof l);
        node->exponent = (int64_t)get(c, 8);
        node->place = places[i];
        if (!c->ok) return refuse(error, "it is cut short");
        if (!plausible_node(node, (cr_dtype)p->dtype, ones))
            return refuse(error, "a product is not what its elements can give");
    }
    return CR_OK;
}

static bool has_float_prod(uint8_t dtype, uint32_t families) {
    return (families & CR_FAM_PROD) && cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT;
}

/* Whether a product over these ranges can be held. */
static cr_status check_cover(uint8_t dtype, uint32_t families, const cr_share_range *ranges, uint32_t range_count,
                             cr_error *error) {
    uint64_t places[CR_PROD_NODES];
    uint32_t count = 0;
    return has_float_prod(dtype, families) ? cover(ranges, range_count, places, &count, error) : CR_OK;
}

/* Whether the nodes of a partial are those of the range that it is said to be of. */
static cr_status check_nodes(const cr_share *s, cr_error *error) {
    const cr_partial *p = &s->partial;
    uint64_t places[CR_PROD_NODES];
    uint32_t count = 0;
    if (!has_float_prod(p->dtype, p->families)) return CR_OK;
    cr_status status = cover(s->ranges, s->range_count, places, &count, error);
    bool same = count == p->float_prod.count && !p->float_prod.lost;
    for (uint32_t i = 0; status == CR_OK && same && i < count; i++) same = places[i] == p->float_prod.nodes[i].place;
    if (status != CR_OK || same) return status;
    return cr_fail(error, CR_INTERNAL, "partial: prod was not folded over the range from %llu", (ull)s->ranges[0].base);
}

static void put_prod(cursor *c, const cr_partial *p) {
    if (has_float_prod(p->dtype, p->families)) {
        put_float_prod(c, &p->float_prod);
    } else {
        put_int_prod(c, &p->prod);
    }
}

static cr_status get_prod(cursor *c, cr_share *s, cr_error *error) {
    cr_partial *p = &s->partial;
    return has_float_prod(p->dtype, p->families) ? get_float_prod(c, s, error) : get_int_prod(c, p, error);
}
