/* offsets_driver: reduces the cases that offsets_property.py writes to its standard input by their offsets, and prints what came out.
 *
 * Each case goes by the folds of segments in a few calls, and each segment by itself in pieces and states; on every instruction set that
 * this machine has. libcured answers it too, in this process: once from memory and once as a stream of pieces. The answers of the first
 * way are printed; another's only where they differ. Arrays, offsets and masks end where their allocation ends, so that a sanitizer sees
 * every access beyond them.
 *
 * Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/offsets.h"
#include "tests/property/cases.h"

enum { MAGIC = 0x6f666673, MAX_STATES = 3 };

/* As offsets_property.py packs it. */
typedef struct header {
    uint32_t magic, dtype, ops, nan, overflow, result_dtype, misalign, type, masked, unused;
    uint64_t count, borders, ddof, order;
} header;

/* A case in memory. */
typedef struct scene {
    cr_axis_spec spec;
    uint64_t count;
    uint8_t *block, *borders, *marks;
    const uint8_t *data;
    cr_mask mask;
} scene;

typedef struct answers {
    size_t size[CR_AXIS_MAX_OPS];
    void *out[CR_AXIS_PLACES];
    cr_error error;
} answers;

static void *get(size_t bytes) { return must(aligned_alloc(64, (bytes + 64) / 64 * 64)); }

static void answers_new(answers *a, const scene *s) {
    const uint32_t ops = s->spec.op_count;
    a->error = (cr_error){CR_OK, ""};
    for (uint32_t k = 0; k < ops; k++) {
        a->size[k] = cr_dtype_size(cr_axis_dtype(s->spec.ops[k], s->spec.dtype, &s->spec.finish));
        a->out[k] = must(malloc(s->spec.offsets.count * a->size[k] + 1));
        memset(a->out[k], 0x5a, s->spec.offsets.count * a->size[k]);
        a->out[ops + k] = must(calloc(s->spec.offsets.count + 1, 1));
    }
}

static void answers_free(answers *a, const scene *s) {
    for (uint32_t k = 0; k < 2 * s->spec.op_count; k++) free(a->out[k]);
}

static void answers_at(const answers *a, const scene *s, uint64_t first, void *out[]) {
    const uint32_t ops = s->spec.op_count;
    for (uint32_t k = 0; k < ops; k++) {
        out[k] = (uint8_t *)a->out[k] + first * a->size[k];
        out[ops + k] = (uint8_t *)a->out[ops + k] + first;
    }
}

/* Statuses as libcured completes them; what has no value is zeros. */
static void complete(answers *a, const scene *s) {
    const cr_axis_spec *spec = &s->spec;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        uint8_t *statuses = a->out[spec->op_count + k];
        cr_axis_missing missing = {0};
        cr_axis_mark(spec->ops[k], spec->dtype, &spec->finish, 0, spec->offsets.count, a->out[k], statuses, &missing);
        for (uint64_t i = 0; i < spec->offsets.count; i++)
            if (statuses[i] != CR_OK) memset((uint8_t *)a->out[k] + i * a->size[k], 0, a->size[k]);
    }
}

static cr_view view_at(const scene *s, uint64_t element) {
    return (cr_view){.data = s->data + element * cr_dtype_size(s->spec.dtype), .mask = cr_mask_from(s->mask, element)};
}

static void by_calls(const scene *s, answers *a) {
    const uint64_t count = s->spec.offsets.count;
    void *scratch = get(cr_offsets_scratch(&s->spec));
    for (uint64_t i = 0, now; i < count && a->error.code == CR_OK; i += now) {
        void *out[CR_AXIS_PLACES];
        now = next_random(2) ? count - i : 1 + next_random(count - i);
        const uint64_t low = cr_offsets_at(&s->spec.offsets, i), high = cr_offsets_at(&s->spec.offsets, i + now);
        const cr_view view = view_at(s, low);
        answers_at(a, s, i, out);
        cr_cpu_offsets_view(&s->spec, &view, low, high, i, now, scratch, out, &a->error);
    }
    free(scratch);
}

/* A segment in pieces, each into any state; where order counts there is one. */
static void by_states(const scene *s, answers *a) {
    const size_t bytes =
        cr_columns_bytes(&(cr_axis_spec){.dtype = s->spec.dtype, .families = s->spec.families, .shape = {1, 1, 1}});
    void *state[MAX_STATES];
    for (int i = 0; i < MAX_STATES; i++) state[i] = get(bytes);
    for (uint64_t i = 0; i < s->spec.offsets.count && a->error.code == CR_OK; i++) {
        void *out[CR_AXIS_PLACES];
        const uint64_t begin = cr_offsets_at(&s->spec.offsets, i), n = cr_offsets_at(&s->spec.offsets, i + 1) - begin;
        const cr_axis_spec row = cr_offsets_row(&s->spec, n);
        const uint64_t live = cr_axis_in_order(&row) ? 1 : 1 + next_random(MAX_STATES);
        for (uint64_t k = 0; k < live; k++) cr_columns_init(&row, state[k]);
        for (uint64_t at = 0, now; at < n; at += now) {
            now = 1 + next_random(n - at);
            cr_view view = view_at(s, begin + at);
            view.mask = cr_mask_from(s->mask, begin);
            cr_cpu_columns_fold_view(&row, state[next_random(live)], &view, now, at);
        }
        for (uint64_t k = 1; k < live; k++) cr_columns_merge(&row, state[0], state[k]);
        answers_at(a, s, i, out);
        cr_columns_finish(&row, state[0], i, 0, 1, out, &a->error);
    }
    for (int i = 0; i < MAX_STATES; i++) free(state[i]);
}

static cured_conn *embedded; /* NULL: libcured was built without */

static void by_libcured(const scene *s, bool stream, answers *a) {
    const cr_axis_spec *spec = &s->spec;
    const cured_offsets offsets = {s->borders, spec->offsets.count + 1, (cured_dtype)spec->offsets.dtype};
    const cured_mask mask = {s->marks, s->count, 0, CURED_MASK_BYTES, false};
    const uint64_t bytes = s->count * cr_dtype_size(spec->dtype);
    cured_options o = CURED_OPTIONS_INIT;
    cured_op ops[CR_AXIS_MAX_OPS];
    cured_call *call = NULL;
    o.nan = (cured_nan)spec->finish.nan;
    o.overflow = (cured_overflow)spec->finish.overflow;
    o.result_dtype = (cured_dtype)spec->finish.result_dtype;
    o.ddof = spec->finish.ddof;
    o.offsets = &offsets;
    o.statuses = true;
    if (s->mask.kind != CR_MASK_NONE) o.mask = &mask;
    o.results = a->out;
    for (uint32_t k = 0; k < spec->op_count; k++) ops[k] = (cured_op)spec->ops[k];
    if (stream) {
        cured_reduce_stream_begin(embedded, (cured_dtype)spec->dtype, ops, spec->op_count, bytes, &o, &call, NULL);
        for (uint64_t at = 0, now; call && at < bytes; at += now) {
            now = 1 + next_random(bytes - at);
            if (cured_stream_write(call, s->data + at, now, NULL) != CURED_OK) break;
            cured_stream_drain(call, NULL);
        }
        if (call) cured_stream_end(call, NULL);
    } else {
        cured_reduce_buffer(embedded, (cured_dtype)spec->dtype, ops, spec->op_count, s->data, s->count, &o, &call,
                            NULL);
    }
    a->error.code = call ? (cr_status)cured_wait(call, NULL) : CR_INTERNAL;
    for (uint32_t k = 0; a->error.code == CR_OK && k < spec->op_count; k++)
        memcpy(a->out[spec->op_count + k], cured_call_array_statuses(call, k, NULL), spec->offsets.count);
    cured_call_free(call);
}

static void print(const scene *s, const answers *a) {
    printf("%s %s\n", cr_status_name(a->error.code), a->error.text);
    for (uint32_t k = 0; a->error.code == CR_OK && k < s->spec.op_count; k++) {
        for (size_t i = 0; i < s->spec.offsets.count * a->size[k]; i++) printf("%02x", ((uint8_t *)a->out[k])[i]);
        printf("\n");
        for (size_t i = 0; i < s->spec.offsets.count; i++) printf("%02x", ((uint8_t *)a->out[s->spec.op_count + k])[i]);
        printf("\n");
    }
}

static void check(const scene *s, const answers *first, const answers *other, const char *isa, const char *way) {
    const uint64_t count = s->spec.offsets.count;
    bool same = first->error.code == other->error.code;
    for (uint32_t k = 0; same && first->error.code == CR_OK && k < s->spec.op_count; k++)
        same = memcmp(first->out[k], other->out[k], count * first->size[k]) == 0 &&
               memcmp(first->out[s->spec.op_count + k], other->out[s->spec.op_count + k], count) == 0;
    if (!same) printf("! %s %s: other answers\n", isa, way);
}

/* Every way on every instruction set. */
static void run(const scene *s) {
    static const char *const names[] = {"calls", "states", "libcured", "libcured, streamed"};
    answers first;
    bool have = false;
    for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
        if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
        for (int way = 0; way < (embedded ? 4 : 2); way++) {
            answers a;
            answers_new(&a, s);
            if (way == 0) by_calls(s, &a);
            if (way == 1) by_states(s, &a);
            if (way >= 2) by_libcured(s, way == 3, &a);
            if (a.error.code == CR_OK) complete(&a, s);
            if (!have) {
                first = a;
                have = true;
                continue;
            }
            check(s, &first, &a, isas[isa], names[way]);
            answers_free(&a, s);
        }
    }
    print(s, &first);
    answers_free(&first, s);
}

static void run_case(const header *h) {
    uint32_t ops[CR_AXIS_MAX_OPS];
    const size_t size = cr_dtype_size((cr_dtype)h->dtype), width = cr_dtype_size((cr_dtype)h->type);
    scene s = {.count = h->count, .mask = {.kind = CR_MASK_NONE}};
    s.block = must(malloc(h->misalign + h->count * size + 1));
    s.data = s.block + h->misalign + 1;
    s.borders = must(malloc(h->borders * width));
    s.marks = must(malloc(h->count + 1));
    read_all(ops, h->ops * sizeof ops[0]);
    read_all(s.block + h->misalign + 1, h->count * size);
    read_all(s.borders, h->borders * width);
    if (h->masked) read_all(s.marks, h->count);
    if (h->masked) s.mask = (cr_mask){s.marks, 0, CR_MASK_BYTES, false};
    s.spec = (cr_axis_spec){.dtype = (cr_dtype)h->dtype,
                            .shape = {h->borders - 1, h->count, 1},
                            .op_count = h->ops,
                            .finish = {.nan = (cr_nan_policy)h->nan,
                                       .overflow = (cr_overflow)h->overflow,
                                       .result_dtype = (cr_dtype)h->result_dtype,
                                       .ddof = h->ddof},
                            .mask_line = h->masked,
                            .statuses = true};
    cr_error error = {CR_OK, ""};
    cr_offsets_make(&s.spec.offsets, s.borders, h->borders, (cr_dtype)h->type, &error);
    for (uint32_t k = 0; k < h->ops && error.code == CR_OK; k++) {
        s.spec.ops[k] = (cr_op)ops[k];
        s.spec.families |= cr_op_needs(s.spec.ops[k], s.spec.dtype);
        const cr_finish_opts share = cr_finish_share(s.spec.ops[k], s.spec.dtype, &s.spec.finish, NULL);
        cr_finish_check(s.spec.ops[k], s.spec.dtype, &share, &error);
    }
    random_state = h->order | 1;
    if (error.code == CR_OK)
        run(&s);
    else
        printf("refused %s\n", cr_status_name(error.code));
    printf(".\n");
    free(s.block);
    free(s.borders);
    free(s.marks);
}

int main(void) {
    header h;
    if (cured_connect("embedded:", NULL, &embedded, NULL) != CURED_OK)
        fprintf(stderr, "offsets_driver: no embedded:\n");
    while (fread(&h, sizeof h, 1, stdin) == 1) {
        if (h.magic != MAGIC || h.ops == 0 || h.ops > CR_AXIS_MAX_OPS || h.borders == 0) {
            fprintf(stderr, "offsets_driver: not a case\n");
            return 2;
        }
        run_case(&h);
    }
    cured_close(embedded);
    return 0;
}
