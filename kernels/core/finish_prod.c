/* finish_prod: products, of integers from their exact magnitude, of floats from the root of their tree.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/finish.h"
#include "kernels/core/prod.h"
#include "kernels/core/round.h"

/* An OUT_OF_RANGE names the exact value as long as it has no more digits than a sum could have. */
enum { NAMED_BITS = 256 };

static void finish_integers(const cr_partial *p, const cr_finish_opts *opts, cr_value *v) {
    const cr_int_prod *prod = &p->prod;
    bool is_signed = cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_SINT;
    cr_dtype result = opts->result_dtype;
    if (opts->overflow == CR_OVERFLOW_WRAP) {
        cr_value_bits(v, result != CR_DTYPE_NONE ? result : is_signed ? CR_I64 : CR_U64, prod->wrap);
        return;
    }
    bool is_float = cr_dtype_kind(result) == CR_KIND_FLOAT, over = prod->over && prod->zeros == 0;
    if (over && is_float) {
        cr_value_bits(v, result, cr_float_infinity(result, prod->negative));
        return;
    }
    cr_big magnitude = {.n = 0};
    if (prod->zeros == 0 && !over) {
        for (; magnitude.n < 2 * prod->words; magnitude.n++) {
            magnitude.d[magnitude.n] = (uint32_t)(prod->magnitude[magnitude.n / 2] >> 32 * (magnitude.n % 2));
        }
        if (magnitude.d[magnitude.n - 1] == 0) magnitude.n--;
    }
    if (is_float) {
        cr_value_bits(v, result, cr_round(result, prod->negative, &magnitude, 0, false));
        return;
    }
    if (over || cr_big_bits(&magnitude) > NAMED_BITS) {
        unsigned bits = over ? 64 * CR_INT_PROD_WORDS : cr_big_bits(&magnitude) - 1;
        cr_fail(&v->error, CR_OUT_OF_RANGE,
                "prod is %s2^%u or beyond, more than an integer type holds (overflow: wrap gives it modulo 2^64)",
                prod->negative ? "-" : "", bits);
        return;
    }
    if (result == CR_DTYPE_NONE) result = is_signed ? CR_I64 : CR_U64;
    cr_value_integer(v, result, is_signed, prod->negative, &magnitude);
}

/* ±(h + l)·2^exponent, rounded once. */
static uint64_t rounded(cr_dtype result, bool negative, const cr_prod_node *root) {
    enum { UNIT = -127, BEYOND = 4000 }; /* h takes 128 bits of 2^-127 each, l at most 75 of them */
    union {
        double value;
        uint64_t bits;
    } h = {.value = root->h}, l = {.value = root->l};
    const uint64_t hidden = (uint64_t)1 << 52;
    unsigned __int128 sum = (unsigned __int128)((h.bits & (hidden - 1)) | hidden) << 75;
    int field = (int)(l.bits >> 52 & 2047);
    uint64_t m = (l.bits & (hidden - 1)) | (field ? hidden : 0);
    int shift = (field ? field : 1) - 1075 - UNIT;
    unsigned __int128 part = shift >= 0 ? (unsigned __int128)m << shift : shift > -64 ? m >> -shift : 0;
    bool sticky = shift < 0 && (shift > -64 ? (m & (((uint64_t)1 << -shift) - 1)) != 0 : m != 0);
    if (l.bits >> 63) {
        sum -= part + sticky; /* what is then too much lies above the sum again */
    } else {
        sum += part;
    }
    cr_big magnitude;
    cr_big_set(&magnitude, sum);
    int exponent = root->exponent > BEYOND ? BEYOND : root->exponent < -BEYOND ? -BEYOND : (int)root->exponent;
    return cr_round(result, negative, &magnitude, exponent + UNIT, sticky);
}

static void finish_floats(const cr_partial *p, const cr_finish_opts *opts, cr_value *v) {
    const cr_float_prod *prod = &p->float_prod;
    cr_dtype result = opts->result_dtype == CR_DTYPE_NONE ? CR_F64 : opts->result_dtype;
    if (prod->lost) {
        cr_fail(&v->error, CR_RESOURCE_EXHAUSTED, "prod was folded from too many ranges that lie apart");
    } else if ((prod->nans && opts->nan == CR_NAN_PROPAGATE) || (prod->zeros && prod->infs)) {
        cr_value_bits(v, result, cr_float_nan(result));
    } else if (prod->infs) {
        cr_value_bits(v, result, cr_float_infinity(result, prod->negative));
    } else if (prod->zeros) {
        cr_value_bits(v, result, 0);
    } else {
        cr_prod_node root = cr_float_prod_root(prod);
        cr_value_bits(v, result, rounded(result, prod->negative, &root));
    }
}

void cr_finish_prod(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    (void)op;
    if (cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_FLOAT) {
        finish_floats(p, opts, v);
    } else {
        finish_integers(p, opts, v);
    }
}
