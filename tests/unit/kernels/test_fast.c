/* fast: each fast way of the CPU's folds, switched off, changes no bit: the same bytes of the canonical form, for every type, the families
 * that go together, and data of each kind that some way takes or leaves. (Ways along an axis: tests/unit/axis.)
 *
 * Thread: main. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 70000, KINDS = 6 };

static uint64_t state;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* An element of a kind of data: any bits, exponents near each other, equal ones, zeros among others, specials among others, subnormals. */
static uint64_t element(cr_dtype dtype, int kind) {
    const unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
    uint64_t bits = draw();
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT || kind == 0)
        return dtype == CR_BOOL ? bits & 1 : kind == 3 && bits % 3 == 0 ? 0 : bits;
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, ...) [CR_##SYMBOL] = exponent,
    static const uint8_t fields[] = {
#include "kernels/core/float.def"
    };
#undef CR_FLOAT
    const unsigned exponents = fields[dtype], mantissa = width - 1 - exponents;
    const uint64_t fraction = bits & (((uint64_t)1 << mantissa) - 1), sign = (bits >> 60 & 1) << (width - 1);
    const uint64_t middle = ((uint64_t)1 << (exponents - 1)) - 8 + (bits >> 40) % 8,
                   top = ((uint64_t)1 << exponents) - 1;
    if (kind == 2) return (uint64_t)0x55 << mantissa % 8;
    if (kind == 3 && bits >> 61 == 0) return sign;
    if (kind == 4 && (bits >> 50) % 997 == 0) return sign | top << mantissa | (bits >> 61 == 0);
    return sign | (kind == 5 ? 0 : middle) << mantissa | fraction;
}

/* Pairs are of the array's halves. */
static size_t packed(cr_dtype dtype, uint32_t families, uint64_t off, const uint8_t *x, size_t n, uint8_t *out) {
    static cr_share share;
    cr_partial p;
    cr_fast_switch_off(off);
    cr_partial_init(&p, dtype, families);
    cr_view view = cr_view_plain(x);
    if (families & CR_FAM_PAIRS) {
        n /= 2;
        view.second = x + n * cr_dtype_size(dtype);
    }
    cr_cpu_fold_view(&p, &view, n, 0);
    cr_fast_switch_off(0);
    ck_assert_int_eq(cr_share_make(&share, &p, 0, NULL), CR_OK);
    return cr_share_pack(&share, out, CR_SERIAL_MAX_BYTES);
}

static void same_without(cr_dtype dtype, uint32_t families, int kind, const uint8_t *x, size_t n) {
    static uint8_t want[CR_SERIAL_MAX_BYTES], got[CR_SERIAL_MAX_BYTES];
    const size_t bytes = packed(dtype, families, 0, x, n, want);
    for (unsigned way = 0; way < CR_FAST_CPU_WAYS + 2;
         way++) { /* the last: all at once, with and without sums by powers */
        const uint64_t off = way < CR_FAST_CPU_WAYS    ? UINT64_C(1) << way
                             : way == CR_FAST_CPU_WAYS ? ~(UINT64_C(1) << CR_FAST_SUMS)
                                                       : UINT64_MAX;
        const bool same = packed(dtype, families, off, x, n, got) == bytes && memcmp(want, got, bytes) == 0;
        ck_assert_msg(same, "%s, families %#x, kind %d, %zu elements: other bits without %s", cr_dtype_name(dtype),
                      families, kind, n,
                      way < CR_FAST_CPU_WAYS    ? cr_fast_name(way)
                      : way == CR_FAST_CPU_WAYS ? "all fast ways but sums"
                                                : "all fast ways");
    }
}

/* The sets of families that are folded together: some that go together in a way of their own, and what each op is finished from. */
static size_t sets_of(cr_dtype dtype, uint32_t *sets) {
    static const uint32_t together[] = {CR_FAM_EXTREMA | CR_FAM_COUNTS,
                                        CR_FAM_SUM | CR_FAM_EXTREMA,
                                        CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_COUNTS,
                                        CR_FAM_KNOWN_SUMS,
                                        CR_FAM_KNOWN_SUMS | CR_FAM_EXTREMA | CR_FAM_COUNTS,
                                        CR_FAM_DOT | CR_FAM_SQDIST | CR_FAM_WEIGHTS};
    size_t count = sizeof together / sizeof *together;
    memcpy(sets, together, sizeof together);
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
        const uint32_t needs = cr_op_supports(op, dtype, NULL) == CR_OK ? cr_op_needs(op, dtype) : 0;
        size_t at = 0;
        while (at < count && sets[at] != needs) at++;
        if (at == count && needs != 0) sets[count++] = needs;
    }
    return count;
}

START_TEST(each_way_off) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    static const size_t lengths[] = {1, 37, 5000, LONGEST};
    uint32_t sets[CR_OP_IDS];
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    state = 88172645463325252u + (uint64_t)_i + ((uint64_t)check_seed(1) << 8);
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        const size_t size = cr_dtype_size((cr_dtype)dtype), count = sets_of((cr_dtype)dtype, sets);
        uint8_t *x = malloc(LONGEST * size + 1);
        for (int kind = 0; kind < KINDS; kind++) {
            if (kind != 0 && kind != 3 && cr_dtype_kind((cr_dtype)dtype) != CR_KIND_FLOAT) continue;
            for (size_t i = 0; i < LONGEST; i++) {
                const uint64_t bits = element((cr_dtype)dtype, kind);
                memcpy(x + 1 + i * size, &bits, size);
            }
            for (size_t f = 0; f < count; f++)
                for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
                    if (lengths[l] < LONGEST ||
                        draw() % (4 * CHECK_SPARSE) == 0) /* all of them would take most of its time */
                        same_without((cr_dtype)dtype, sets[f], kind, x + 1, lengths[l]);
        }
        free(x);
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

START_TEST(ways_have_names) {
    for (unsigned way = 0; way < CR_FAST_WAYS; way++) {
        ck_assert_ptr_nonnull(cr_fast_name(way));
        ck_assert(cr_fast_on((cr_fast)way));
        cr_fast_switch_off(UINT64_C(1) << way);
        ck_assert(!cr_fast_on((cr_fast)way));
        cr_fast_switch_off(0);
    }
    ck_assert_ptr_null(cr_fast_name(CR_FAST_WAYS));
}
END_TEST

CR_CHECK_MAIN("kernels/fast") {
    tcase_add_loop_test(tc, each_way_off, 0, 3);
    tcase_add_test(tc, ways_have_names);
    tcase_set_timeout(tc, 300);
}
