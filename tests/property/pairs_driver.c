/* pairs_driver: reduces the cases that pairs_property.py writes to its standard input, and prints what came out.
 *
 * Each case goes by whole blocks, by states in pieces, by partials that are packed and merged, and with rows by offsets; on every
 * instruction set that this machine has, with and without the fast way. libcured answers it too, in this process: from memory, and as a
 * stream of pieces. The answers of the first way are printed; another's only where they differ. Arrays and masks end where their
 * allocation ends, so that a sanitizer sees every access beyond them.
 *
 * Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "kernels/core/fast.h"
#include "kernels/core/serial.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/offsets.h"
#include "tests/property/cases.h"

enum { MAGIC = 0x72696170, MAX_STATES = 3 };

/* As pairs_property.py packs it. */
typedef struct header {
    uint32_t magic, dtype, ops, nan, result_dtype, misalign, masked, unused;
    uint64_t outer, n, inner, order;
} header;

/* A case in memory. */
typedef struct scene {
    cr_axis_spec spec;
    uint64_t count, answers;
    size_t size;
    uint8_t *blocks[2], *marks;
    cr_view view;
    int64_t *borders;
} scene;

typedef struct answers {
    size_t width[CR_AXIS_MAX_OPS];
    void *out[CR_AXIS_PLACES];
    cr_error error;
} answers;

static void *get(size_t bytes) { return must(aligned_alloc(64, (bytes + 64) / 64 * 64)); }

static void answers_new(answers *a, const scene *s) {
    const uint32_t ops = s->spec.op_count;
    a->error = (cr_error){CR_OK, ""};
    for (uint32_t k = 0; k < ops; k++) {
        a->width[k] = cr_dtype_size(cr_axis_dtype(s->spec.ops[k], s->spec.dtype, &s->spec.finish));
        a->out[k] = must(malloc(s->answers * a->width[k] + 1));
        memset(a->out[k], 0x5a, s->answers * a->width[k]);
        a->out[ops + k] = must(calloc(s->answers + 1, 1));
    }
}

static void answers_free(answers *a, const scene *s) {
    for (uint32_t k = 0; k < 2 * s->spec.op_count; k++) free(a->out[k]);
}

static void answers_at(const answers *a, const scene *s, uint64_t first, void *out[]) {
    const uint32_t ops = s->spec.op_count;
    for (uint32_t k = 0; k < ops; k++) {
        out[k] = (uint8_t *)a->out[k] + first * a->width[k];
        out[ops + k] = (uint8_t *)a->out[ops + k] + first;
    }
}

static void by_blocks(const scene *s, answers *a) {
    const cr_shape *shape = &s->spec.shape;
    void *scratch = get(cr_axis_scratch(&s->spec));
    for (uint64_t b = 0, now; b < shape->outer && a->error.code == CR_OK; b += now) {
        void *out[CR_AXIS_PLACES];
        now = next_random(2) ? shape->outer - b : 1 + next_random(shape->outer - b);
        const cr_view view = cr_view_from(s->view, b * shape->n * shape->inner, s->size);
        answers_at(a, s, b * shape->inner, out);
        cr_cpu_axis_blocks_view(&s->spec, &view, b * shape->inner, now, scratch, out, &a->error);
    }
    free(scratch);
}

/* A block in pieces, each into any state. */
static void by_states(const scene *s, answers *a) {
    const cr_shape *shape = &s->spec.shape;
    const uint64_t block = shape->n * shape->inner;
    void *state[MAX_STATES];
    for (int i = 0; i < MAX_STATES; i++) state[i] = get(cr_columns_bytes(&s->spec));
    for (uint64_t b = 0; b < shape->outer && a->error.code == CR_OK; b++) {
        void *out[CR_AXIS_PLACES];
        const uint64_t live = 1 + next_random(MAX_STATES);
        for (uint64_t k = 0; k < live; k++) cr_columns_init(&s->spec, state[k]);
        for (uint64_t at = 0, now; at < block; at += now) {
            now = 1 + next_random(block - at);
            cr_view view = cr_view_from(s->view, b * block, s->size); /* mask and second array begin with the block */
            view.data += at * s->size;
            cr_cpu_columns_fold_view(&s->spec, state[next_random(live)], &view, now, at);
        }
        for (uint64_t k = 1; k < live; k++) cr_columns_merge(&s->spec, state[0], state[k]);
        answers_at(a, s, b * shape->inner, out);
        cr_columns_finish(&s->spec, state[0], b * shape->inner, 0, shape->inner, out, &a->error);
    }
    for (int i = 0; i < MAX_STATES; i++) free(state[i]);
}

/* The whole array in parts, packed, and merged in any order. */
static void by_partials(const scene *s, answers *a) {
    static cr_share parts[MAX_STATES];
    static uint8_t packed[CR_SERIAL_MAX_BYTES];
    uint64_t count = 0;
    for (uint64_t at = 0; count < MAX_STATES; count++) {
        const uint64_t now = count + 1 == MAX_STATES ? s->count - at : next_random(s->count - at + 1);
        const cr_view view = cr_view_from(s->view, at, s->size);
        cr_partial partial;
        cr_partial_init(&partial, s->spec.dtype, s->spec.families);
        cr_cpu_fold_view(&partial, &view, now, at);
        cr_share_make(&parts[count], &partial, CR_UNPLACED, &a->error);
        at += now;
    }
    for (; count > 1; count--) {
        const uint64_t from = next_random(count);
        cr_share taken = parts[from];
        parts[from] = parts[count - 1];
        const size_t bytes = cr_share_pack(&taken, packed, sizeof packed);
        if (a->error.code == CR_OK) cr_share_unpack(packed, bytes, &taken, &a->error);
        if (a->error.code == CR_OK) cr_share_merge(&parts[next_random(count - 1)], &taken, &a->error);
    }
    for (uint32_t k = 0; k < s->spec.op_count && a->error.code == CR_OK; k++)
        cr_axis_store_or(&parts[0].partial, s->spec.ops[k], &s->spec.finish, 0, a->out[k], a->out[s->spec.op_count + k],
                         &a->error);
}

static void by_offsets(const scene *s, answers *a) {
    cr_axis_spec spec = s->spec;
    cr_offsets_make(&spec.offsets, s->borders, s->answers + 1, CR_I64, &a->error);
    void *scratch = get(cr_offsets_scratch(&spec));
    if (a->error.code == CR_OK)
        cr_cpu_offsets_view(&spec, &s->view, 0, s->count, 0, s->answers, scratch, a->out, &a->error);
    free(scratch);
}

static cured_conn *embedded; /* NULL: libcured was built without */

typedef enum how { MEMORY, STREAMED, SEGMENTS, HOWS } how;

static void by_libcured(const scene *s, how h, answers *a) {
    const cr_axis_spec *spec = &s->spec;
    const cured_axis axis = {spec->shape.outer, spec->shape.n, spec->shape.inner};
    const cured_offsets offsets = {s->borders, s->answers + 1, CURED_I64};
    const cured_second second = {s->view.second, s->count, (cured_dtype)spec->dtype};
    const cured_mask mask = {s->marks, s->count, 0, CURED_MASK_BYTES, false};
    const uint64_t bytes = s->count * s->size;
    cured_options o = CURED_OPTIONS_INIT;
    cured_op ops[CR_AXIS_MAX_OPS];
    cured_call *call = NULL;
    cured_error error = {.code = CURED_OK};
    o.nan = (cured_nan)spec->finish.nan;
    o.result_dtype = (cured_dtype)spec->finish.result_dtype;
    o.second = &second;
    o.statuses = true;
    if (h == SEGMENTS)
        o.offsets = &offsets;
    else
        o.axis = &axis;
    if (s->view.mask.kind != CR_MASK_NONE) o.mask = &mask;
    o.results = a->out;
    for (uint32_t k = 0; k < spec->op_count; k++) ops[k] = (cured_op)spec->ops[k];
    if (h == STREAMED) {
        cured_reduce_stream_begin(embedded, (cured_dtype)spec->dtype, ops, spec->op_count, bytes, &o, &call, &error);
        for (uint64_t at = 0, now; call && at < bytes; at += now) {
            now = 1 + next_random(bytes - at);
            if (cured_stream_write(call, s->view.data + at, now, NULL) != CURED_OK) break;
            cured_stream_drain(call, NULL);
        }
        if (call) cured_stream_end(call, NULL);
    } else {
        cured_reduce_buffer(embedded, (cured_dtype)spec->dtype, ops, spec->op_count, s->view.data, s->count, &o, &call,
                            &error);
    }
    a->error.code = call ? (cr_status)cured_wait(call, NULL) : (cr_status)error.code;
    for (uint32_t k = 0; a->error.code == CR_OK && k < spec->op_count; k++)
        memcpy(a->out[spec->op_count + k], cured_call_array_statuses(call, k, NULL), s->answers);
    cured_call_free(call);
}

static void print(const scene *s, const answers *a) {
    printf("%s %s\n", cr_status_name(a->error.code), a->error.text);
    for (uint32_t k = 0; a->error.code == CR_OK && k < s->spec.op_count; k++) {
        for (size_t i = 0; i < s->answers * a->width[k]; i++) printf("%02x", ((uint8_t *)a->out[k])[i]);
        printf("\n");
        for (size_t i = 0; i < s->answers; i++) printf("%02x", ((uint8_t *)a->out[s->spec.op_count + k])[i]);
        printf("\n");
    }
}

static void check(const scene *s, const answers *first, const answers *other, const char *isa, const char *way) {
    bool same = first->error.code == other->error.code;
    for (uint32_t k = 0; same && first->error.code == CR_OK && k < s->spec.op_count; k++)
        same = memcmp(first->out[k], other->out[k], s->answers * first->width[k]) == 0 &&
               memcmp(first->out[s->spec.op_count + k], other->out[s->spec.op_count + k], s->answers) == 0;
    if (!same) printf("! %s %s: other answers: %s\n", isa, way, other->error.text);
}

/* The way of this number; NULL: the case does not go that way. */
static const char *go(const scene *s, unsigned way, answers *a) {
    const bool rows = s->spec.shape.inner == 1;
    switch (way) {
        case 0:
            by_blocks(s, a);
            return "blocks";
        case 1:
            cr_fast_switch_off(UINT64_C(1) << CR_FAST_PAIRS);
            by_blocks(s, a);
            cr_fast_switch_off(0);
            return "blocks term by term";
        case 2:
            by_states(s, a);
            return "states";
        case 3:
            if (s->answers != 1) return NULL;
            by_partials(s, a);
            return "partials";
        case 4:
            if (!rows) return NULL;
            by_offsets(s, a);
            return "offsets";
        case 5:
            cr_fast_switch_off(UINT64_C(1) << CR_FAST_SHORT_PAIRS);
            by_blocks(s, a);
            cr_fast_switch_off(0);
            return "blocks without short_pairs";
        case 6:
        case 7:
        case 8:
            if (embedded == NULL || (way == 8 && !rows)) return NULL;
            by_libcured(s, (how)(way - 6), a);
            return "libcured";
        default:
            return NULL;
    }
}

/* Every way on every instruction set. */
static void run(const scene *s) {
    answers first, a;
    bool have = false;
    for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
        if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
        for (unsigned way = 0; way < 6 + HOWS; way++) {
            answers_new(&a, s);
            const char *name = go(s, way, &a);
            if (!have) {
                first = a;
                have = true;
                continue;
            }
            if (name) check(s, &first, &a, isas[isa], name);
            answers_free(&a, s);
        }
    }
    print(s, &first);
    answers_free(&first, s);
}

static void run_case(const header *h) {
    uint32_t ops[CR_AXIS_MAX_OPS];
    const size_t size = cr_dtype_size((cr_dtype)h->dtype);
    scene s = {.count = h->outer * h->n * h->inner, .answers = h->outer * h->inner, .size = size};
    read_all(ops, h->ops * sizeof ops[0]);
    for (int i = 0; i < 2; i++) { /* the second at another alignment */
        s.blocks[i] = must(malloc((1 + i) * h->misalign + s.count * size + 1));
        read_all(s.blocks[i] + (1 + i) * h->misalign + 1, s.count * size);
    }
    s.view = (cr_view){.data = s.blocks[0] + h->misalign + 1, .second = s.blocks[1] + 2 * h->misalign + 1};
    s.marks = must(malloc(s.count + 1));
    if (h->masked) read_all(s.marks, s.count);
    if (h->masked) s.view.mask = (cr_mask){s.marks, 0, CR_MASK_BYTES, false};
    s.borders = must(calloc(s.answers + 1, sizeof s.borders[0]));
    for (uint64_t i = 0; i <= s.answers; i++) s.borders[i] = (int64_t)(i * h->n);
    s.spec = (cr_axis_spec){.dtype = (cr_dtype)h->dtype,
                            .shape = {h->outer, h->n, h->inner},
                            .op_count = h->ops,
                            .finish = {.nan = (cr_nan_policy)h->nan, .result_dtype = (cr_dtype)h->result_dtype},
                            .mask_line = h->masked ? h->inner : 0,
                            .second_line = h->inner,
                            .statuses = true};
    for (uint32_t k = 0; k < h->ops; k++) {
        s.spec.ops[k] = (cr_op)ops[k];
        s.spec.families |= cr_op_needs(s.spec.ops[k], s.spec.dtype);
    }
    random_state = h->order | 1;
    run(&s);
    printf(".\n");
    free(s.blocks[0]);
    free(s.blocks[1]);
    free(s.marks);
    free(s.borders);
}

int main(void) {
    header h;
    if (cured_connect("embedded:", NULL, &embedded, NULL) != CURED_OK) fprintf(stderr, "pairs_driver: no embedded:\n");
    while (fread(&h, sizeof h, 1, stdin) == 1) {
        if (h.magic != MAGIC || h.ops == 0 || h.ops > CR_AXIS_MAX_OPS) {
            fprintf(stderr, "pairs_driver: not a case\n");
            return 2;
        }
        run_case(&h);
    }
    cured_close(embedded);
    return 0;
}
