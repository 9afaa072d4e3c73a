/* Axis: every way through the folds along an axis gives, bit for bit, what one partial per output gives. The reference
 * copies each output's elements to a contiguous array, folds that, and finishes it; it knows nothing of strips, columns, tiles
 * or cuts. */
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/axis.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/axis/draw.h"
#include "tests/unit/check_main.h"

enum { GUARD = 64 };

/* Of CHECK_SPARSE cases in turn one is tried: the first. */
static unsigned first_of(unsigned turn) { return (turn + (unsigned)check_seed(0)) % CHECK_SPARSE; }

typedef struct answers {
    uint8_t *block[CR_AXIS_MAX_OPS];
    void *out[CR_AXIS_MAX_OPS]; /* at an odd address, for UBSan: a caller's arrays are aligned to nothing */
    size_t size[CR_AXIS_MAX_OPS];
} answers;

static void answers_new(answers *a, const cr_axis_spec *spec) {
    uint64_t outputs = spec->shape.outer * spec->shape.inner;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        a->size[k] = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        a->block[k] = malloc(1 + outputs * a->size[k] + GUARD);
        a->out[k] = a->block[k] + 1;
        memset(a->out[k], 0xa5, outputs * a->size[k] + GUARD);
    }
}

static void answers_free(answers *a, const cr_axis_spec *spec) {
    for (uint32_t k = 0; k < spec->op_count; k++) free(a->block[k]);
}

static void answers_at(const answers *a, const cr_axis_spec *spec, uint64_t first, void *out[]) {
    for (uint32_t k = 0; k < spec->op_count; k++) out[k] = (uint8_t *)a->out[k] + first * a->size[k];
}

static uint64_t switched_off; /* fast ways, while a case's answers are made */
static cr_mask mask;          /* of a case's array; its kind is CR_MASK_NONE but in masked_arrays */

/* The array from an element on; its mask from block number b on. */
static cr_view view_from(const cr_axis_spec *spec, const uint8_t *data, uint64_t element, uint64_t b) {
    return (cr_view){.data = data + element * cr_dtype_size(spec->dtype),
                     .mask = cr_mask_from(mask, b * spec->shape.n * spec->mask_line)};
}

static cr_status reference(const cr_axis_spec *spec, const uint8_t *data, answers *a) {
    size_t size = cr_dtype_size(spec->dtype);
    cr_shape s = spec->shape;
    uint8_t *column = malloc(s.n * size + 1), *kept = malloc(s.n + 1);
    cr_status status = CR_OK;
    for (uint64_t at = 0; at < s.outer * s.inner && status == CR_OK; at++) {
        uint64_t o = at / s.inner, i = at % s.inner;
        for (uint64_t k = 0; k < s.n; k++) {
            const uint64_t element = (o * s.n + k) * s.inner + i;
            memcpy(column + k * size, data + element * size, size);
            kept[k] = (uint8_t)cr_mask_word(&mask, (o * s.n + k) * spec->mask_line + i, 1);
        }
        const cr_view view = {.data = column, .mask = {kept, 0, mask.kind ? CR_MASK_BYTES : CR_MASK_NONE, false}};
        cr_partial p;
        cr_partial_init(&p, spec->dtype, spec->families);
        cr_cpu_fold_view(&p, &view, s.n, 0);
        for (uint32_t k = 0; k < spec->op_count && status == CR_OK; k++) {
            uint8_t *to = (uint8_t *)a->out[k] + at * a->size[k];
            status = cr_axis_store(&p, spec->ops[k], &spec->finish, at, to, NULL);
        }
    }
    free(column);
    free(kept);
    return status;
}

static void compare(const cr_axis_spec *spec, const answers *want, const answers *got, const char *way, int d) {
    uint64_t outputs = spec->shape.outer * spec->shape.inner;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        const uint8_t *w = want->out[k], *g = got->out[k];
        for (uint64_t i = 0; i < outputs; i++) {
            if (memcmp(w + i * want->size[k], g + i * want->size[k], want->size[k]) == 0) continue;
            uint64_t a = 0, b = 0;
            memcpy(&a, w + i * want->size[k], want->size[k] < 8 ? want->size[k] : 8);
            memcpy(&b, g + i * want->size[k], want->size[k] < 8 ? want->size[k] : 8);
            ck_abort_msg(
                "%s: %s of %s, distribution %d, shape (%llu, %llu, %llu), result %s, nan %d, %s: output %llu is "
                "%016llx, not %016llx",
                cr_cpu_isa(), cr_op_name(spec->ops[k]), cr_dtype_name(spec->dtype), d,
                (unsigned long long)spec->shape.outer, (unsigned long long)spec->shape.n,
                (unsigned long long)spec->shape.inner, cr_dtype_name(spec->finish.result_dtype), (int)spec->finish.nan,
                way, (unsigned long long)i, (unsigned long long)b, (unsigned long long)a);
        }
        for (size_t i = 0; i < GUARD; i++) ck_assert_uint_eq(g[outputs * want->size[k] + i], 0xa5);
    }
}

/* All blocks, in a few calls. */
static cr_status by_blocks(const cr_axis_spec *spec, const uint8_t *data, answers *a) {
    const uint64_t block = spec->shape.n * spec->shape.inner;
    uint8_t *scratch = aligned_alloc(64, (cr_axis_scratch(spec) + 127) / 64 * 64);
    memset(scratch, 0xff, cr_axis_scratch(spec)); /* what is used before it is set shows */
    cr_status status = CR_OK;
    for (uint64_t b = 0; b < spec->shape.outer && status == CR_OK;) {
        uint64_t now = below(3) ? spec->shape.outer - b : 1 + below(spec->shape.outer - b);
        void *out[CR_AXIS_MAX_OPS];
        answers_at(a, spec, b * spec->shape.inner, out);
        const cr_view view = view_from(spec, data, b * block, b);
        status = cr_cpu_axis_blocks_view(spec, &view, b * spec->shape.inner, now, scratch, out, NULL);
        b += now;
    }
    free(scratch);
    return status;
}

/* One block after the other, each cut anywhere into pieces that two states share (in order: one takes all), merged, moved and
 * finished in parts. */
static cr_status by_columns(const cr_axis_spec *spec, const uint8_t *data, answers *a) {
    const size_t bytes = cr_columns_bytes(spec);
    uint64_t block = spec->shape.n * spec->shape.inner;
    bool ordered = cr_axis_in_order(spec);
    cr_status status = CR_OK;
    for (uint64_t b = 0; b < spec->shape.outer && status == CR_OK; b++) {
        void *state[2] = {malloc(bytes), malloc(bytes)}, *moved = malloc(bytes);
        memset(state[0], 0xff, bytes); /* what is used before it is set shows */
        cr_columns_init(spec, state[0]);
        cr_columns_init(spec, state[1]);
        /* Sometimes the rest comes first. */
        uint64_t end, middle = !ordered && below(2) ? below(block + 1) : block;
        const cr_view rest = view_from(spec, data, b * block + middle, b);
        if (middle < block) cr_cpu_columns_fold_view(spec, state[0], &rest, block - middle, middle);
        end = middle;
        for (uint64_t at = 0; at < end;) {
            uint64_t now = 1 + below(below(2) ? end - at : 1 + (end - at) / 4);
            const cr_view view = view_from(spec, data, b * block + at, b);
            cr_cpu_columns_fold_view(spec, state[ordered ? 0 : below(2)], &view, now, at);
            at += now;
        }
        if (!ordered) cr_columns_merge(spec, state[0], state[1]);
        memcpy(moved, state[0], bytes);
        for (uint64_t c = 0; c < spec->shape.inner && status == CR_OK;) {
            uint64_t now = 1 + below(spec->shape.inner - c);
            void *out[CR_AXIS_MAX_OPS];
            answers_at(a, spec, b * spec->shape.inner + c, out);
            status = cr_columns_finish(spec, moved, b * spec->shape.inner + c, c, now, out, NULL);
            c += now;
        }
        free(state[0]);
        free(state[1]);
        free(moved);
    }
    return status;
}

/* Under a mask an output may be without a value and another out of range: either may be told. */
static void agree(cr_status got, cr_status want) {
    if (mask.kind == CR_MASK_NONE)
        ck_assert_int_eq(got, want);
    else
        ck_assert_int_eq(got != CR_OK, want != CR_OK);
}

static void one_case(const cr_axis_spec *spec, distribution d) {
    uint64_t elements = spec->shape.outer * spec->shape.n * spec->shape.inner;
    uint8_t *block, *data = make(spec->dtype, d, elements, (unsigned)below(9), &block);
    answers want, got;
    answers_new(&want, spec);
    cr_status status = reference(spec, data, &want);
    answers_new(&got, spec);
    cr_fast_switch_off(switched_off);
    agree(by_blocks(spec, data, &got), status);
    if (status == CR_OK) compare(spec, &want, &got, "blocks", (int)d);
    answers_free(&got, spec);
    if (spec->shape.inner > 0 && spec->shape.n > 0) {
        answers_new(&got, spec);
        agree(by_columns(spec, data, &got), status);
        if (status == CR_OK) compare(spec, &want, &got, "columns", (int)d);
        answers_free(&got, spec);
    }
    cr_fast_switch_off(0);
    answers_free(&want, spec);
    free(block);
}

static const cr_shape shapes[] = {
    {1, 1, 1},    {300, 1, 1},  {300, 2, 1},  {515, 3, 1},  {70, 7, 1},   {333, 16, 1},  {100, 32, 1},  {40, 33, 1},
    {30, 64, 1},  {9, 65, 1},   {7, 100, 1},  {5, 257, 1},  {4, 1024, 1}, {3, 5000, 1},  {2, 20011, 1}, {3, 0, 1},
    {1, 3, 2},    {1, 500, 2},  {40, 5, 3},   {3, 400, 3},  {2, 100, 7},  {1, 64, 16},   {1, 40, 31},   {2, 33, 64},
    {1, 30, 65},  {3, 9, 100},  {1, 20, 256}, {1, 9, 257},  {2, 3, 1000}, {1, 17, 1031}, {1, 2, 5000},  {2, 0, 5},
    {1, 9000, 2}, {1, 5000, 5}, {0, 3, 3},    {1000, 2, 2}, {200, 1, 7},  {2, 1, 300},   {1, 8, 512},   {1, 4, 4100},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const char *const isas[] = {"portable", "avx2", "avx512"};

START_TEST(every_way_gives_the_same_bits) {
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return;                                 /* this machine has none */
    random_state = 0x9e3779b97f4a7c15u + (uint64_t)_i + ((uint64_t)check_seed(0) << 8); /* the commit draws the cases */
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        for (int shape = 0; shape < SHAPES; shape++) {
            if (first_of((unsigned)(dtype + shape)) != 0) continue;
            cr_axis_spec spec = {.dtype = (cr_dtype)dtype, .shape = shapes[shape]};
            choose_ops(&spec);
            one_case(&spec, (distribution)below(DISTRIBUTIONS));
        }
    }
}
END_TEST

/* Every distribution through sums and squares of every type but bytes of floats: rows and columns, short and long. */
START_TEST(sums_of_every_distribution) {
    static const cr_shape few[] = {{64, 4, 1},  {40, 32, 1},  {9, 200, 1},  {3, 4500, 1}, {1, 40, 3},
                                   {1, 50, 40}, {1, 24, 300}, {1, 4500, 3}, {1, 24, 512}};
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return;
    random_state = 77 + (uint64_t)_i;
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
        const bool is_float = cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT;
        if (!cr_dtype_is_input((cr_dtype)dtype) || (is_float && cr_dtype_size((cr_dtype)dtype) == 1)) continue;
        for (int d = 0; d < (is_float ? DISTRIBUTIONS : INT_DISTRIBUTIONS); d++) {
            for (size_t shape = first_of((unsigned)d); shape < sizeof few / sizeof few[0]; shape += CHECK_SPARSE) {
                cr_axis_spec spec = {.dtype = (cr_dtype)dtype,
                                     .shape = few[shape],
                                     .families = CR_FAM_SUM,
                                     .op_count = 2,
                                     .ops = {CR_OP_SUM, CR_OP_MEAN}};
                one_case(&spec, (distribution)d);
                spec.finish.result_dtype = (cr_dtype)(CR_F16 + below(4));
                one_case(&spec, (distribution)d);
                spec.finish.result_dtype = CR_DTYPE_NONE;
                spec.families = CR_FAM_SUM | CR_FAM_SUMSQ;
                spec.op_count = 3;
                spec.ops[0] = d % 2 ? CR_OP_SUMSQ : CR_OP_NORM2;
                spec.ops[1] = CR_OP_VAR;
                spec.ops[2] = CR_OP_STD;
                spec.finish.ddof = below(3);
                one_case(&spec, (distribution)d);
            }
        }
    }
}
END_TEST

/* Each fast way switched off, and all at once: the same bits. The reference, a fold of each output, has them all. */
START_TEST(each_fast_way_off) {
    enum { ROUNDS = 140 / CHECK_SPARSE };
    const uint64_t off = _i < CR_FAST_CPU_WAYS ? UINT64_C(1) << _i : UINT64_MAX;
    random_state = 0x2545f4914f6cdd1du + (uint64_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        cr_axis_spec spec = {.dtype = any_input(), .shape = shapes[below(SHAPES)]};
        if (cr_cpu_select(isas[below(3)], NULL) != CR_OK) cr_cpu_select(NULL, NULL);
        choose_ops(&spec);
        switched_off = off;
        one_case(&spec, (distribution)below(DISTRIBUTIONS));
        switched_off = 0;
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

/* Under a mask of bytes or bits, of which little, half or nearly all counts, in runs or not. The array may be columns of a wider one,
 * whose mask it is. */
START_TEST(masked_arrays) {
    enum { ROUNDS = 300 / CHECK_SPARSE };
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return;
    random_state = 0x1b873593cc9e2d51u + (uint64_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        cr_axis_spec spec = {.dtype = any_input(), .shape = shapes[below(SHAPES)]};
        spec.mask_line = spec.shape.inner + (below(4) ? 0 : below(100));
        const uint64_t n = spec.shape.outer * spec.shape.n * spec.mask_line, first = below(70);
        const uint64_t run = below(2) ? 1 : 1 + below(300), often = (uint64_t[]){2, 2, 40, 1}[below(4)];
        uint8_t *bytes = calloc(n + first + 1, 1);
        for (uint64_t i = 0; i < n + first;) {
            const bool set = below(often) == 0;
            for (uint64_t end = i + run; i < end && i < n + first; i++) bytes[i] = set;
        }
        mask = (cr_mask){bytes, first, CR_MASK_BYTES, below(2)};
        if (below(2)) { /* the same as bits */
            for (uint64_t i = 0; i < n + first; i++)
                bytes[i / 8] = (uint8_t)((i % 8 ? bytes[i / 8] : 0) | (bytes[i] != 0) << i % 8);
            mask.kind = CR_MASK_BITS;
        }
        do {
            choose_ops(&spec);
        } while (spec.families & CR_FAM_DIGEST); /* which takes no mask */
        switched_off = below(8) ? 0 : UINT64_C(1) << CR_FAST_HIDDEN;
        one_case(&spec, (distribution)below(DISTRIBUTIONS));
        switched_off = 0;
        mask = (cr_mask){.kind = CR_MASK_NONE};
        free(bytes);
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

/* Both extrema are wanted, but only one index: the other must not be looked at. */
START_TEST(norminf_beside_an_index) {
    static const cr_op args[] = {CR_OP_ARGMIN, CR_OP_ARGMAX};
    for (int dtype = CR_BOOL; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        for (int a = 0; a < 2; a++) {
            cr_axis_spec spec = {.dtype = (cr_dtype)dtype,
                                 .shape = {70, 3, 1},
                                 .families = CR_FAM_EXTREMA,
                                 .op_count = 2,
                                 .ops = {CR_OP_NORMINF, args[a]}};
            one_case(&spec, NORMAL);
        }
    }
}
END_TEST

/* Thousands of arrays and states of some megabytes: as mappings, which malloc makes of them, the kernel would clear each. */
static void keep_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

CR_CHECK_MAIN("axis") {
    keep_memory();
    tcase_add_loop_test(tc, every_way_gives_the_same_bits, 0, 3);
    tcase_add_loop_test(tc, sums_of_every_distribution, 0, 3);
    tcase_add_loop_test(tc, each_fast_way_off, 0, CR_FAST_CPU_WAYS + 1);
    tcase_add_loop_test(tc, masked_arrays, 0, 3);
    tcase_add_test(tc, norminf_beside_an_index);
}
