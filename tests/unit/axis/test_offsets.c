/* Offsets: every way through the folds by offsets gives, bit for bit, what a partial of each segment alone gives, in one call, in several,
 * and in pieces; bad offsets are named, and nothing outside the input is read. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/offsets.h"
#include "tests/unit/axis/draw.h"
#include "tests/unit/check_main.h"

enum { GUARD = 64, MOST_SEGMENTS = 3000 };

static const char *const isas[] = {"portable", "avx2", "avx512"};

/* A case: an array, segments of it, and what counts. */
typedef struct scene {
    cr_axis_spec spec;
    uint64_t elements, borders[MOST_SEGMENTS + 1];
    uint8_t *block, *data, *raw, *kept;
    cr_mask mask;
} scene;

/* How lengths come: all alike, about alike, of each power of two, half in one, any mixture of some. */
static uint64_t draw_length(int mixture, uint64_t most) {
    switch (mixture) {
        case 0:
            return most;
        case 1:
            return below(2 * most + 1);
        case 2:
            return (uint64_t)1 << below(13);
        case 3:
            return below(600) == 0 ? 9000 : 3;
        case 4:
            return below(3) ? 0 : below(40);
        default:
            return below(40) == 0 ? below(6000) : below(4) ? 5 + below(3) : below(300);
    }
}

static void put_offset(scene *s, uint64_t i, uint64_t value) {
    const size_t size = cr_dtype_size(s->spec.offsets.dtype);
    memcpy(s->raw + 1 + i * size, &value, size);
}

static void set_up(scene *s, cr_dtype dtype, uint64_t budget) {
    static const cr_dtype types[] = {CR_I32, CR_I64, CR_U32, CR_U64};
    const int mixture = (int)below(6);
    const uint64_t most = (uint64_t[]){1, 3, 8, 17, 32, 100, 1024, 5000}[below(8)], segments = below(MOST_SEGMENTS);
    memset(s, 0, sizeof *s);
    uint64_t end = s->borders[0] = below(2) ? 0 : below(50), count = 0;
    while (count < segments && end < budget) s->borders[++count] = end += draw_length(mixture, most);
    s->elements = end + (below(2) ? 0 : below(50));
    s->spec = (cr_axis_spec){.dtype = dtype, .shape = {count, s->elements, 1}, .statuses = below(2)};
    s->spec.offsets.dtype = types[below(4)];
    const size_t size = cr_dtype_size(s->spec.offsets.dtype);
    s->raw = malloc(1 + (count + 1) * size); /* at an odd address; it ends where the allocation ends */
    s->spec.offsets = (cr_offsets){s->raw + 1, count, s->spec.offsets.dtype};
    for (uint64_t i = 0; i <= count; i++) put_offset(s, i, s->borders[i]);
    s->data = make(dtype, (distribution)below(DISTRIBUTIONS), s->elements, (unsigned)below(4), &s->block);
    choose_ops(&s->spec);
    s->spec.shape.n = s->elements;
    if (below(4) || s->spec.families & CR_FAM_DIGEST) return;
    s->kept = malloc(s->elements + 1);
    for (uint64_t i = 0; i < s->elements; i++) s->kept[i] = below(3) != 0;
    s->mask = (cr_mask){s->kept, 0, CR_MASK_BYTES, below(2)};
    s->spec.mask_line = 1;
}

static void tear_down(scene *s) {
    free(s->block);
    free(s->raw);
    free(s->kept);
}

typedef struct answers {
    uint8_t *block[CR_AXIS_PLACES];
    void *out[CR_AXIS_PLACES];
    size_t size[CR_AXIS_PLACES];
    unsigned places;
} answers;

static void answers_new(answers *a, const scene *s) {
    const cr_axis_spec *spec = &s->spec;
    a->places = spec->op_count * (spec->statuses ? 2 : 1);
    for (unsigned k = 0; k < a->places; k++) {
        const bool value = k < spec->op_count;
        a->size[k] = value ? cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish)) : 1;
        const size_t bytes = spec->offsets.count * a->size[k];
        a->block[k] = malloc(1 + bytes + GUARD);
        a->out[k] = a->block[k] + 1;
        memset(a->out[k], value ? 0xa5 : 0, bytes);
        memset((uint8_t *)a->out[k] + bytes, 0xa5, GUARD);
    }
}

static void answers_free(answers *a) {
    for (unsigned k = 0; k < a->places; k++) free(a->block[k]);
}

static cr_status reference(const scene *s, answers *a, cr_error *error) {
    const cr_axis_spec *spec = &s->spec;
    cr_status status = CR_OK;
    for (uint64_t i = 0; i < spec->offsets.count && status == CR_OK; i++) {
        const uint64_t begin = s->borders[i], n = s->borders[i + 1] - begin;
        const cr_view view = {.data = s->data + begin * cr_dtype_size(spec->dtype),
                              .mask = cr_mask_from(s->mask, begin)};
        cr_partial p;
        cr_partial_init(&p, spec->dtype, spec->families);
        cr_cpu_fold_view(&p, &view, n, 0);
        for (uint32_t k = 0; k < spec->op_count && status == CR_OK; k++) {
            uint8_t *to = (uint8_t *)a->out[k] + i * a->size[k];
            uint8_t *said = spec->statuses ? (uint8_t *)a->out[spec->op_count + k] + i : NULL;
            status = cr_axis_store_or(&p, spec->ops[k], &spec->finish, i, to, said, error);
        }
    }
    return status;
}

/* Extrema of only NaNs get their status from the fold, or here. */
static void complete(const scene *s, answers *a) {
    const cr_axis_spec *spec = &s->spec;
    for (uint32_t k = 0; spec->statuses && k < spec->op_count; k++) {
        cr_axis_missing missing = {0};
        cr_axis_mark(spec->ops[k], spec->dtype, &spec->finish, 0, spec->offsets.count, a->out[k],
                     a->out[spec->op_count + k], &missing);
    }
}

static void compare(const scene *s, const answers *want, const answers *got, const char *way) {
    const cr_axis_spec *spec = &s->spec;
    for (unsigned k = 0; k < got->places; k++) {
        const uint8_t *w = want->out[k], *g = got->out[k];
        const size_t size = want->size[k];
        for (uint64_t i = 0; i < spec->offsets.count; i++) {
            if (memcmp(w + i * size, g + i * size, size) == 0) continue;
            ck_abort_msg("%s: %s%s of %s, result %s, nan %d, %s: segment %llu of %llu elements differs", cr_cpu_isa(),
                         k < spec->op_count ? "" : "status of ", cr_op_name(spec->ops[k % spec->op_count]),
                         cr_dtype_name(spec->dtype), cr_dtype_name(spec->finish.result_dtype), (int)spec->finish.nan,
                         way, (unsigned long long)i, (unsigned long long)(s->borders[i + 1] - s->borders[i]));
        }
        for (size_t i = 0; i < GUARD; i++) ck_assert_uint_eq(g[spec->offsets.count * size + i], 0xa5);
    }
}

/* In one call, or in a few, each of which sees only the elements of its own segments. */
static cr_status in_calls(const scene *s, answers *a, uint64_t at_once, cr_error *error) {
    const cr_axis_spec *spec = &s->spec;
    uint8_t *scratch = aligned_alloc(64, cr_offsets_scratch(spec) / 64 * 64 + 64);
    memset(scratch, 0xff, cr_offsets_scratch(spec)); /* what is used before it is set shows */
    cr_status status = CR_OK;
    for (uint64_t i = 0, now; i < spec->offsets.count && status == CR_OK; i += now) {
        void *out[CR_AXIS_PLACES];
        now = spec->offsets.count - i < at_once ? spec->offsets.count - i : at_once;
        for (unsigned k = 0; k < a->places; k++) out[k] = (uint8_t *)a->out[k] + i * a->size[k];
        const uint64_t low = s->borders[i], high = s->borders[i + now];
        uint8_t *own = malloc((high - low) * cr_dtype_size(spec->dtype) + 1); /* ends where the allocation ends */
        memcpy(own + 1, s->data + low * cr_dtype_size(spec->dtype), (high - low) * cr_dtype_size(spec->dtype));
        const cr_view view = {.data = own + 1, .mask = cr_mask_from(s->mask, low)};
        status = cr_cpu_offsets_view(spec, &view, low, high, i, now, scratch, out, error);
        free(own);
    }
    free(scratch);
    return status;
}

static void one_case(const scene *s, uint64_t off) {
    answers want, got;
    cr_error why = {CR_OK, ""}, other = {CR_OK, ""};
    answers_new(&want, s);
    const cr_status status = reference(s, &want, &why);
    cr_fast_switch_off(off);
    for (int few = 0; few < 2; few++) {
        answers_new(&got, s);
        ck_assert_int_eq(in_calls(s, &got, few ? 1 + below(700) : UINT64_MAX, &other), status);
        if (status == CR_OK) {
            complete(s, &want);
            complete(s, &got);
            compare(s, &want, &got, few ? "in calls" : "at once");
        } else {
            ck_assert_str_eq(other.text, why.text);
        }
        answers_free(&got);
    }
    cr_fast_switch_off(0);
    answers_free(&want);
}

START_TEST(every_way_gives_the_same_bits) {
    enum { ROUNDS = 40 / CHECK_SPARSE };
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    random_state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        for (int round = 0; round < ROUNDS; round++) {
            scene s;
            set_up(&s, (cr_dtype)dtype, 20000);
            one_case(&s, 0);
            tear_down(&s);
        }
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

START_TEST(each_fast_way_off) {
    enum { ROUNDS = 20 / CHECK_SPARSE };
    const uint64_t off = _i < CR_FAST_CPU_WAYS ? UINT64_C(1) << _i : UINT64_MAX;
    random_state = 0x2545f4914f6cdd1du + (uint64_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        scene s;
        if (cr_cpu_select(isas[below(3)], NULL) != CR_OK) cr_cpu_select(NULL, NULL);
        set_up(&s, any_input(), 6000);
        one_case(&s, off);
        tear_down(&s);
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

/* One offset at a time is wrong, in each way that there is. */
START_TEST(bad_offsets_are_named) {
    random_state = 7;
    for (int round = 0; round < 400; round++) {
        scene s;
        cr_error error;
        char want[64];
        set_up(&s, CR_U8, 20000);
        ck_assert_int_eq(cr_offsets_check(&s.spec.offsets, s.elements, NULL), CR_OK);
        const uint64_t i = below(s.spec.offsets.count + 1), kind = below(3);
        uint64_t value = s.elements + 1 + below(9);
        if (kind == 1) value = UINT64_MAX - below(9);
        if (kind == 2 && i > 0 && s.borders[i - 1] > 0) value = s.borders[i - 1] - 1;
        put_offset(&s, i, value);
        snprintf(want, sizeof want, "offsets[%llu] is ", (unsigned long long)i);
        ck_assert_int_eq(cr_offsets_check(&s.spec.offsets, s.elements, &error), CR_INVALID_ARGUMENT);
        ck_assert_msg(strncmp(error.text, want, strlen(want)) == 0, "%s, not %s", error.text, want);
        /* They changed after they were checked: the folds find it, or what is left is right, and read nothing outside. */
        answers a;
        answers_new(&a, &s);
        in_calls(&s, &a, UINT64_MAX, &error);
        answers_free(&a);
        tear_down(&s);
    }
}
END_TEST

START_TEST(offsets_are_checked_when_made) {
    cr_offsets offsets;
    cr_error error;
    const int32_t some[2] = {0, 1};
    ck_assert_int_eq(cr_offsets_make(&offsets, some, 2, CR_I32, &error), CR_OK);
    ck_assert_uint_eq(offsets.count, 1);
    ck_assert_uint_eq(cr_offsets_find(&offsets, 0), 0);
    ck_assert_uint_eq(cr_offsets_find(&offsets, 1), 1);
    ck_assert_uint_eq(cr_offsets_find(&offsets, 2), 2);
    ck_assert_int_eq(cr_offsets_make(&offsets, some, 2, CR_F64, &error), CR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "offsets: their dtype is f64, must be i32, i64, u32 or u64");
    ck_assert_int_eq(cr_offsets_make(&offsets, some, 0, CR_I32, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_offsets_make(&offsets, some, UINT64_MAX, CR_I64, &error), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_offsets_make(&offsets, NULL, 1, CR_I64, &error), CR_INVALID_ARGUMENT);
}
END_TEST

CR_CHECK_MAIN("offsets") {
    tcase_add_loop_test(tc, every_way_gives_the_same_bits, 0, 3);
    tcase_add_loop_test(tc, each_fast_way_off, 0, CR_FAST_CPU_WAYS + 1);
    tcase_add_test(tc, bad_offsets_are_named);
    tcase_add_test(tc, offsets_are_checked_when_made);
}
