/* terms: sums of pairs along an axis as sums of their terms (kernels/cpu/pairs) have the bits that a partial each has: of every type, under
 * every kind of mask, of rows, of few and of many columns, of whole blocks, and of states that were cut anywhere and merged. The property
 * run has an oracle; here are shapes that it seldom draws.
 *
 * Thread: main. */
#include <check.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/axis/draw.h"
#include "tests/unit/check_main.h"

enum { CASES = 150 };

static const uint64_t by_partials = UINT64_C(1) << CR_FAST_PAIR_TERMS | UINT64_C(1) << CR_FAST_SHORT_PAIRS;

/* Answers, op after op, and their statuses. */
typedef struct answers {
    uint8_t *bytes;
    void *out[CR_AXIS_PLACES];
    size_t values, all;
} answers;

static answers answers_new(const cr_axis_spec *spec) {
    const uint64_t count = cr_shape_answers(&spec->shape);
    answers a = {.all = 0};
    for (uint32_t k = 0; k < spec->op_count; k++)
        a.all += count * cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
    a.values = a.all;
    a.all += spec->op_count * count;
    uint8_t *at = a.bytes = calloc(1, a.all + 1);
    for (uint32_t k = 0; k < spec->op_count; k++) {
        a.out[k] = at;
        at += count * cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
    }
    for (uint32_t k = 0; k < spec->op_count; k++, at += count) a.out[spec->op_count + k] = at;
    return a;
}

static answers of_blocks(const cr_axis_spec *spec, const cr_view *view, uint64_t off, uint8_t *code) {
    answers a = answers_new(spec);
    cr_error error;
    cr_fast_switch_off(off);
    void *scratch = aligned_alloc(64, cr_axis_scratch(spec) / 64 * 64 + 64);
    *code = (uint8_t)cr_cpu_axis_blocks_view(spec, view, 0, spec->shape.outer, scratch, a.out, &error);
    cr_fast_switch_off(0);
    free(scratch);
    return a;
}

/* One block, by two states that have its pieces in turn; finished in two parts. */
static answers of_states(const cr_axis_spec *spec, const cr_view *view, uint8_t *code) {
    answers a = answers_new(spec);
    const uint64_t all = spec->shape.n * spec->shape.inner, inner = spec->shape.inner,
                   size = cr_dtype_size(spec->dtype);
    const size_t bytes = cr_columns_bytes(spec) / 64 * 64 + 64;
    void *state[2] = {aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    cr_error error;
    for (unsigned i = 0; i < 2; i++) cr_columns_init(spec, state[i]);
    for (uint64_t at = 0, now; at < all; at += now) {
        now = 1 + below(below(2) ? all : inner * 3);
        if (now > all - at) now = all - at;
        cr_view piece = *view;
        piece.data += at * size;
        cr_cpu_columns_fold_view(spec, state[below(2)], &piece, now, at);
    }
    cr_columns_merge(spec, state[0], state[1]);
    const uint64_t first = below(inner);
    *code = CR_OK;
    for (unsigned part = 0; part < 2 && *code == CR_OK; part++) {
        const uint64_t from = part ? first : 0, count = part ? inner - first : first;
        void *to[CR_AXIS_PLACES];
        for (uint32_t k = 0; k < spec->op_count; k++) {
            to[k] = (uint8_t *)a.out[k] + from * cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
            to[spec->op_count + k] = (uint8_t *)a.out[spec->op_count + k] + from;
        }
        *code = (uint8_t)cr_columns_finish(spec, state[0], from, from, count, to, &error);
    }
    free(state[0]);
    free(state[1]);
    return a;
}

static void same(const cr_axis_spec *spec, const cr_view *view, const answers *got, uint8_t code, const answers *want,
                 uint8_t wanted, const char *how) {
    ck_assert_msg(code == wanted, "%s: %s shape %llu %llu %llu: status %u, not %u", how, cr_dtype_name(spec->dtype),
                  (unsigned long long)spec->shape.outer, (unsigned long long)spec->shape.n,
                  (unsigned long long)spec->shape.inner, code, wanted);
    const size_t bytes = spec->statuses ? want->all : want->values;
    for (size_t i = 0; i < bytes && code == CR_OK; i++)
        ck_assert_msg(
            got->bytes[i] == want->bytes[i],
            "%s: %s shape %llu %llu %llu, mask %d, %u ops, %s first, result %s: byte %zu of %zu is %x, not %x", how,
            cr_dtype_name(spec->dtype), (unsigned long long)spec->shape.outer, (unsigned long long)spec->shape.n,
            (unsigned long long)spec->shape.inner, view->mask.kind, spec->op_count, cr_op_name(spec->ops[0]),
            cr_dtype_name(spec->finish.result_dtype), i, bytes, got->bytes[i], want->bytes[i]);
}

static cr_shape any_shape(void) {
    switch (below(5)) {
        case 0:
            return (cr_shape){1 + below(300), 1 + below(40), 1}; /* rows */
        case 1:
            return (cr_shape){1 + below(3), 1 + below(below(2) ? 4 : 1000), 1};
        case 2:
            return (cr_shape){1 + below(5), 1 + below(60), 2 + below(40)}; /* narrow */
        case 3:
            return (cr_shape){1, 1 + below(30), 100 + below(400)};
        default:
            return (cr_shape){1 + below(2), 1 + below(12), 500 + below(700)}; /* several groups, some of one column */
    }
}

/* Some of the ops of two arrays. */
static void any_ops(cr_axis_spec *spec) {
    static const cr_dtype results[] = {0, 0, 0, CR_F16, CR_F32, CR_F64, CR_I32, CR_I128, CR_U64};
    do {
        spec->op_count = 0;
        spec->families = 0;
        spec->finish = (cr_finish_opts){.nan = (cr_nan_policy)below(2), .result_dtype = results[below(9)]};
        for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
            if (cr_op_inputs(op) != 2 || below(2)) continue;
            if (cr_axis_check(op, spec->dtype, &spec->shape, &spec->finish, NULL) != CR_OK) continue;
            spec->ops[spec->op_count++] = op;
            spec->families |= cr_op_needs(op, spec->dtype);
        }
    } while (spec->op_count == 0);
}

static void one_case(void) {
    cr_axis_spec spec = {.dtype = any_input(), .shape = any_shape(), .statuses = below(4) != 0};
    const uint64_t lines = spec.shape.outer * spec.shape.n, inner = spec.shape.inner, count = lines * inner;
    /* The second array and the mask may be parts of wider ones. */
    const uint64_t second_line = inner + (below(3) ? 0 : below(9)), mask_line = inner + (below(3) ? 0 : below(9));
    const distribution d = (distribution)below(DISTRIBUTIONS);
    uint8_t *blocks[3], code, wanted;
    cr_view view = {
        .data = make(spec.dtype, d, count, (unsigned)below(9), &blocks[0]),
        .second = make(spec.dtype, below(2) ? d : NORMAL, lines * second_line, (unsigned)below(9), &blocks[1])};
    const unsigned often = below(2) ? 2 : 30;
    view.mask = (cr_mask){.first = below(8), .kind = (cr_mask_kind)below(3), .leaves_out = below(2) == 1};
    if (view.mask.kind == CR_MASK_NONE) view.mask = (cr_mask){.kind = CR_MASK_NONE};
    const uint64_t kept = view.mask.first + lines * mask_line; /* it ends where its memory does */
    const uint64_t mask_bytes = view.mask.kind == CR_MASK_BITS ? (kept + 7) / 8 : kept;
    view.mask.data = blocks[2] = malloc(mask_bytes);
    for (uint64_t i = 0; i < mask_bytes; i++) blocks[2][i] = (uint8_t)(below(often) == 0 ? 0 : below(2) ? 1 : 255);
    any_ops(&spec);
    spec.second_line = second_line;
    spec.mask_line = view.mask.kind != CR_MASK_NONE ? mask_line : 0;
    answers want = of_blocks(&spec, &view, by_partials, &wanted);
    const uint64_t off[] = {0, UINT64_C(1) << CR_FAST_SHORT_PAIRS};
    for (unsigned i = 0; i < 2; i++) {
        answers got = of_blocks(&spec, &view, off[i], &code);
        same(&spec, &view, &got, code, &want, wanted, i ? "blocks by terms" : "blocks");
        free(got.bytes);
    }
    if (spec.shape.outer == 1) {
        answers got = of_states(&spec, &view, &code);
        same(&spec, &view, &got, code, &want, wanted, "states");
        free(got.bytes);
    }
    free(want.bytes);
    for (unsigned i = 0; i < 3; i++) free(blocks[i]);
}

START_TEST(have_the_bits_of_partials) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    random_state = 2463534242 + (uint64_t)_i + ((uint64_t)check_seed(1) << 8);
    for (unsigned i = 0; i < CASES / CHECK_SPARSE; i++) one_case();
    cr_cpu_select(NULL, NULL);
}
END_TEST

/* Dekker's split of two factors overflows before their product does. */
START_TEST(products_near_the_end_of_the_range) {
    enum { COLUMNS = 100, LINES = 3, SOME = 3 };
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    static const double factors[SOME][2] = {{0x1.fffffffffffffp+511, 0x1.fffffffffffffp+511},
                                            {0x1.ffffffff920c8p+511, 0x1p512},
                                            {-0x1.fffffff8p+511, 0x1.fffffff8p+511}};
    static double x[LINES][COLUMNS], y[LINES][COLUMNS], got[COLUMNS];
    const cr_view view = {.data = (const uint8_t *)x, .second = (const uint8_t *)y};
    const cr_axis_spec spec = {.dtype = CR_F64,
                               .shape = {1, LINES, COLUMNS},
                               .families = CR_FAM_DOT,
                               .op_count = 1,
                               .ops = {cr_op_of_term(CR_TERM_INNER)},
                               .second_line = COLUMNS};
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    for (unsigned i = 0; i < SOME; i++) {
        x[1][30 * i] = factors[i][0];
        y[1][30 * i] = factors[i][1];
    }
    void *scratch = aligned_alloc(64, cr_axis_scratch(&spec) / 64 * 64 + 64), *out[] = {got};
    ck_assert_int_eq(cr_cpu_axis_blocks_view(&spec, &view, 0, 1, scratch, out, NULL), CR_OK);
    for (unsigned i = 0; i < SOME; i++) ck_assert_double_eq(got[30 * i], factors[i][0] * factors[i][1]);
    free(scratch);
    cr_cpu_select(NULL, NULL);
}
END_TEST

CR_CHECK_MAIN("axis/terms") {
    tcase_add_loop_test(tc, have_the_bits_of_partials, 0, 3);
    tcase_add_loop_test(tc, products_near_the_end_of_the_range, 0, 3);
    tcase_set_timeout(tc, 300);
}
