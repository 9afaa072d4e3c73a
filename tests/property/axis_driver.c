/* axis_driver: reduces the cases that axis_property.py writes to its standard input along their axis, and prints what came
 * out.
 *
 * Each case goes by whole blocks and by states: cut anywhere, folded in any order into a few
 * states, which are merged (products of floats: in order into one); on every instruction set this machine has. libcured
 * answers it too, in this process: once from memory and once as a stream of pieces. The answers of the first way are printed; another's
 * only where they differ. Array and mask end where their allocations end, so that a sanitizer sees every access beyond them.
 *
 * Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "kernels/cpu/axis.h"
#include "kernels/cpu/fold.h"
#include "tests/property/cases.h"

enum { MAGIC = 0x61786973, MAX_STATES = 4, MAX_PIECES = 9 };

/* As axis_property.py packs it. */
typedef struct header {
    uint32_t magic, dtype, ops, nan, result_dtype, misalign, mask_kind, leaves_out;
    uint64_t first, outer, n, inner, ddof, order;
} header;

typedef struct answers {
    size_t bytes[CR_AXIS_MAX_OPS];
    uint8_t *out[CR_AXIS_MAX_OPS];
    cr_error error;
} answers;

static cr_mask mask; /* of the case's array */

static cr_view view_of(const cr_axis_spec *spec, const uint8_t *data, uint64_t block) {
    const cr_shape *s = &spec->shape;
    return (cr_view){.data = data + block * s->n * s->inner * cr_dtype_size(spec->dtype),
                     .mask = cr_mask_from(mask, block * s->n * s->inner)};
}

static void *get(size_t bytes) { return must(aligned_alloc(64, (bytes + 64) / 64 * 64)); }

static void answers_new(answers *a, const cr_axis_spec *spec) {
    a->error = (cr_error){CR_OK, ""};
    for (uint32_t k = 0; k < spec->op_count; k++) {
        size_t size = cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
        a->bytes[k] = (size_t)(spec->shape.outer * spec->shape.inner) * size;
        a->out[k] = must(malloc(a->bytes[k] + 1));
        memset(a->out[k], 0x5a, a->bytes[k]);
    }
}

static void answers_free(answers *a, const cr_axis_spec *spec) {
    for (uint32_t k = 0; k < spec->op_count; k++) free(a->out[k]);
}

static void answers_at(const answers *a, const cr_axis_spec *spec, uint64_t first, void *out[]) {
    for (uint32_t k = 0; k < spec->op_count; k++) {
        out[k] = a->out[k] + first * cr_dtype_size(cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish));
    }
}

static void by_blocks(const cr_axis_spec *spec, const uint8_t *data, answers *a) {
    const cr_shape *s = &spec->shape;
    void *scratch = get(cr_axis_scratch(spec));
    for (uint64_t b = 0; b < s->outer && a->error.code == CR_OK;) {
        uint64_t now = 1 + next_random(s->outer - b);
        void *out[CR_AXIS_MAX_OPS];
        answers_at(a, spec, b * s->inner, out);
        const cr_view view = view_of(spec, data, b);
        cr_cpu_axis_blocks_view(spec, &view, b * s->inner, now, scratch, out, &a->error);
        b += now;
    }
    free(scratch);
}

/* The pieces of a block in random order into random states, merged in random order; where order is wanted, into one. */
static void fold_block(const cr_axis_spec *spec, const cr_view *block, void *state[], uint64_t live) {
    uint64_t elements = spec->shape.n * spec->shape.inner, pieces = 1 + next_random(MAX_PIECES), cut[MAX_PIECES + 1];
    size_t size = cr_dtype_size(spec->dtype);
    bool ordered = cr_axis_in_order(spec);
    cut[0] = 0;
    for (uint64_t i = 1; i < pieces; i++) {
        cut[i] = next_random(elements + 1);
        for (uint64_t j = i; j > 1 && cut[j] < cut[j - 1]; j--) {
            uint64_t swap = cut[j];
            cut[j] = cut[j - 1];
            cut[j - 1] = swap;
        }
    }
    cut[pieces] = elements;
    uint64_t step = pieces > 1 ? 1 + next_random(pieces - 1) : 1, at = next_random(pieces);
    if (ordered) {
        step = 1;
        at = 0;
    }
    while (pieces % step == 0 && step > 1) step--;
    for (uint64_t a = step, b = pieces; b != 0;) { /* only a step without common factors meets every piece */
        uint64_t rest = a % b;
        a = b;
        b = rest;
        if (b == 0 && a != 1) step = 1;
    }
    for (uint64_t i = 0; i < pieces; i++, at = (at + step) % pieces) {
        const cr_view view = {.data = block->data + cut[at] * size, .mask = block->mask};
        cr_cpu_columns_fold_view(spec, state[next_random(live)], &view, cut[at + 1] - cut[at], cut[at]);
    }
    while (live > 1) {
        uint64_t from = next_random(live), into = next_random(live - 1);
        if (into >= from) into++;
        cr_columns_merge(spec, state[into], state[from]);
        void *swap = state[from];
        state[from] = state[--live];
        state[live] = swap;
    }
}

static void by_columns(const cr_axis_spec *spec, const uint8_t *data, answers *a) {
    const cr_shape *s = &spec->shape;
    size_t bytes = cr_columns_bytes(spec);
    for (uint64_t b = 0; b < s->outer && a->error.code == CR_OK; b++) {
        void *state[MAX_STATES];
        uint64_t live = cr_axis_in_order(spec) ? 1 : 1 + next_random(MAX_STATES);
        for (uint64_t i = 0; i < live; i++) {
            state[i] = get(bytes);
            cr_columns_init(spec, state[i]);
        }
        const cr_view block = view_of(spec, data, b);
        fold_block(spec, &block, state, live);
        for (uint64_t c = 0; c < s->inner && a->error.code == CR_OK;) {
            uint64_t now = 1 + next_random(s->inner - c);
            void *out[CR_AXIS_MAX_OPS];
            answers_at(a, spec, b * s->inner + c, out);
            cr_columns_finish(spec, state[0], b * s->inner + c, c, now, out, &a->error);
            c += now;
        }
        for (uint64_t i = 0; i < live; i++) free(state[i]);
    }
}

static cured_conn *embedded; /* NULL: libcured was built without */

/* The same by libcured, whole or as a stream. */
static void by_libcured(const cr_axis_spec *spec, const uint8_t *data, bool stream, answers *a) {
    const cr_shape *s = &spec->shape;
    const cured_axis axis = {s->outer, s->n, s->inner};
    uint64_t count = s->outer * s->n * s->inner, bytes = count * cr_dtype_size(spec->dtype);
    const cured_mask beside = {mask.data, count, mask.first, (cured_mask_kind)mask.kind, mask.leaves_out};
    cured_options o = CURED_OPTIONS_INIT;
    cured_op ops[CR_AXIS_MAX_OPS];
    cured_call *call;
    o.nan = (cured_nan)spec->finish.nan;
    o.result_dtype = (cured_dtype)spec->finish.result_dtype;
    o.ddof = spec->finish.ddof;
    o.axis = &axis;
    o.mask = mask.kind != CR_MASK_NONE ? &beside : NULL;
    o.results = (void *const *)a->out;
    for (uint32_t k = 0; k < spec->op_count; k++) ops[k] = (cured_op)spec->ops[k];
    if (stream) {
        cured_reduce_stream_begin(embedded, (cured_dtype)spec->dtype, ops, spec->op_count, bytes, &o, &call, NULL);
        for (uint64_t at = 0; at < bytes;) {
            uint64_t now = 1 + next_random(bytes - at);
            if (cured_stream_write(call, data + at, now, NULL) != CURED_OK) break;
            cured_stream_drain(call, NULL);
            at += now;
        }
        cured_stream_end(call, NULL);
    } else {
        cured_reduce_buffer(embedded, (cured_dtype)spec->dtype, ops, spec->op_count, data, count, &o, &call, NULL);
    }
    a->error.code = call ? (cr_status)cured_wait(call, NULL) : CR_INTERNAL;
    cured_call_free(call);
}

static void print(const cr_axis_spec *spec, const answers *a) {
    printf("%s %s\n", cr_status_name(a->error.code), a->error.text);
    if (a->error.code != CR_OK) return;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        for (size_t i = 0; i < a->bytes[k]; i++) printf("%02x", a->out[k][i]);
        printf("\n");
    }
}

static void check(const cr_axis_spec *spec, const answers *first, const answers *other, const char *isa,
                  const char *way) {
    /* Under a mask an output may have no value and another be out of range: either may be told. */
    bool same = mask.kind ? !first->error.code == !other->error.code : first->error.code == other->error.code;
    for (uint32_t k = 0; same && first->error.code == CR_OK && k < spec->op_count; k++) {
        if (memcmp(first->out[k], other->out[k], first->bytes[k]) != 0) same = false;
    }
    if (!same) printf("! %s %s: other answers\n", isa, way);
}

static void run_case(const header *h) {
    uint32_t ops[CR_AXIS_MAX_OPS];
    size_t bytes = (size_t)(h->outer * h->n * h->inner) * cr_dtype_size((cr_dtype)h->dtype);
    uint8_t *block = malloc(h->misalign + bytes + 1), *data = block + h->misalign + 1;
    if (block == NULL) exit(2);
    read_all(ops, h->ops * sizeof ops[0]);
    read_all(data, bytes);
    const size_t marks = (size_t)(h->first + h->outer * h->n * h->inner);
    const size_t mask_bytes = h->mask_kind == CR_MASK_NONE    ? 0
                              : h->mask_kind == CR_MASK_BYTES ? marks
                                                              : (marks + 7) / 8;
    uint8_t *mask_data = must(malloc(mask_bytes + 1));
    read_all(mask_data + 1, mask_bytes);
    mask = (cr_mask){mask_data + 1, h->first, (cr_mask_kind)h->mask_kind, h->leaves_out};
    cr_axis_spec spec = {
        .dtype = (cr_dtype)h->dtype,
        .shape = {h->outer, h->n, h->inner},
        .op_count = h->ops,
        .mask_line = h->mask_kind ? h->inner : 0,
        .finish = {.nan = (cr_nan_policy)h->nan, .result_dtype = (cr_dtype)h->result_dtype, .ddof = h->ddof}};
    cr_error error = {CR_OK, ""};
    for (uint32_t k = 0; k < h->ops && error.code == CR_OK; k++) {
        spec.ops[k] = (cr_op)ops[k];
        spec.families |= cr_op_needs(spec.ops[k], spec.dtype);
        cr_axis_check(spec.ops[k], spec.dtype, &spec.shape, &spec.finish, &error);
    }
    if (error.code != CR_OK) {
        printf("refused %s\n.\n", cr_status_name(error.code));
        free(mask_data);
        free(block);
        return;
    }
    answers first;
    bool have = false;
    random_state = h->order | 1;
    for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
        if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
        for (int way = 0; way < (h->inner && h->n ? 2 : 1); way++) {
            answers a;
            answers_new(&a, &spec);
            (way == 0 ? by_blocks : by_columns)(&spec, data, &a);
            if (!have) {
                first = a;
                have = true;
                continue;
            }
            check(&spec, &first, &a, isas[isa], way == 0 ? "blocks" : "columns");
            answers_free(&a, &spec);
        }
        for (int stream = 0; embedded && stream < 2; stream++) {
            answers a;
            answers_new(&a, &spec);
            by_libcured(&spec, data, stream, &a);
            check(&spec, &first, &a, isas[isa], stream ? "libcured, streamed" : "libcured");
            answers_free(&a, &spec);
        }
    }
    print(&spec, &first);
    printf(".\n");
    answers_free(&first, &spec);
    free(mask_data);
    free(block);
}

int main(void) {
    header h;
    if (cured_connect("embedded:", NULL, &embedded, NULL) != CURED_OK) fprintf(stderr, "axis_driver: no embedded:\n");
    while (fread(&h, sizeof h, 1, stdin) == 1) {
        if (h.magic != MAGIC || h.ops == 0 || h.ops > CR_AXIS_MAX_OPS) {
            fprintf(stderr, "axis_driver: not a case\n");
            return 2;
        }
        run_case(&h);
    }
    cured_close(embedded);
    return 0;
}
