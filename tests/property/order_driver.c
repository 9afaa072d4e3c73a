/* order_driver: answers the cases of quantiles that order_property.py writes to its standard input, and prints what came out.
 *
 * A case goes by reads: its pieces are counted in a random order into a few counts, which are merged, read after read; by
 * cr_cpu_order or, along an axis and by offsets, by whole blocks and segments, or by key; on every instruction set this machine has. libcured answers it too, in this process:
 * from memory by one thread and by several, as a stream of pieces, and from a file. The answers of the first way are printed; another's
 * only where they differ. The array ends where its allocation ends, so that a sanitizer sees every access beyond it.
 *
 * Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "kernels/core/fast.h"
#include "kernels/cpu/axis.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/keys/keys.h"
#include "kernels/cpu/offsets.h"
#include "kernels/cpu/order.h"
#include "tests/property/cases.h"

enum { MAGIC = 0x6f726472, MAX_COUNTS = 4, ANSWERS = 1 << 16 };

/* As order_property.py packs it. mask: 0: none, 1: bytes, 2: bits; of an axis shape is not (0, 0, 0); borders: of segments, 0: there are none; columns: of rows by key, 0: there
 * are no keys. */
typedef struct header {
    uint32_t magic, dtype, items, nan, result_dtype, misalign, mask, leaves_out;
    uint64_t n, order, mask_first, mask_bytes, shape[3], borders, columns, groups, drop;
} header;

typedef struct item {
    double share;
    uint64_t method;
} item;

typedef struct one_case {
    const header *h;
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    cr_view view;
    const uint64_t *borders;
    const int32_t *keys;
    cr_dtype dtype, result;
    size_t size, answers; /* of each item */
} one_case;

typedef struct answers {
    bool good;
    uint8_t *bytes[CR_QUANTILE_ITEMS];
} answers;

static bool is_whole(const header *h) {
    return !h->borders && !h->columns && !h->shape[0] && !h->shape[1] && !h->shape[2];
}
static uint64_t keys_of(const header *h) { return h->columns ? h->n / h->columns : 0; }

static cured_conn *embedded, *threaded; /* NULL: libcured was built without */

static void *get(size_t bytes) { return must(aligned_alloc(64, (bytes + 64) / 64 * 64)); }

static answers answers_new(const one_case *c) {
    answers a = {.good = true};
    for (uint32_t i = 0; i < c->h->items; i++) a.bytes[i] = get(c->answers * cr_dtype_size(c->result));
    return a;
}

static void answers_free(const one_case *c, answers *a) {
    for (uint32_t i = 0; i < c->h->items; i++) free(a->bytes[i]);
}

static void put(const one_case *c, answers *a, uint32_t i, uint64_t bits) {
    memcpy(a->bytes[i], &bits, cr_dtype_size(c->result));
}

/* By reads, in random pieces, each of which knows what is asked by the bytes that are sent. */
static void by_reads(const one_case *c, answers *a) {
    cr_quantile s, sent;
    uint8_t asked[CR_QUANTILE_ASKED_BYTES];
    cr_error error;
    cr_quantile_begin(&s, c->dtype, c->items, c->h->items, c->h->nan != 0);
    uint64_t *counts[MAX_COUNTS];
    bool more = true;
    while (more) {
        if (cr_quantile_unpack(&sent, asked, cr_quantile_pack(&s, asked), &error) != CR_OK) a->good = false;
        const uint64_t live = 1 + next_random(MAX_COUNTS);
        for (uint64_t i = 0; i < live; i++) counts[i] = must(calloc(cr_quantile_words(&s), sizeof(uint64_t)));
        for (uint64_t at = 0, now; at < c->h->n; at += now) {
            now = 1 + next_random(next_random(3) ? c->h->n - at : 100);
            if (now > c->h->n - at) now = c->h->n - at;
            const cr_view part = cr_view_from(c->view, at, c->size);
            cr_cpu_quantile_fold(&sent, counts[next_random(live)], &part, now);
        }
        for (uint64_t i = 1; i < live; i++) cr_quantile_merge(&s, counts[0], counts[i]);
        more = cr_quantile_next(&s, counts[0]);
        for (uint64_t i = 0; i < live; i++) free(counts[i]);
    }
    for (uint32_t i = 0; i < c->h->items; i++) put(c, a, i, cr_quantile_finish(&s, i, c->result));
}

static void in_memory(const one_case *c, answers *a) {
    const cr_order order = {c->dtype, c->result, c->items, c->h->items, c->h->nan != 0};
    uint64_t bits[CR_QUANTILE_ITEMS];
    void *scratch = get(cr_order_scratch(&order, c->h->n));
    cr_cpu_order(&order, &c->view, c->h->n, scratch, bits);
    for (uint32_t i = 0; i < c->h->items; i++) put(c, a, i, bits[i]);
    free(scratch);
}

static cr_op quantile_op(void) {
    cr_op op = cr_op_next(CR_OP_NONE);
    while (!cr_op_takes_share(op)) op = cr_op_next(op);
    return op;
}

static void by_blocks(const one_case *c, answers *a) {
    const header *h = c->h;
    cr_axis_spec spec = {.dtype = c->dtype,
                         .shape = {h->shape[0], h->shape[1], h->shape[2]},
                         .op_count = h->items,
                         .items = c->items,
                         .mask_line = c->view.mask.kind != CR_MASK_NONE ? h->shape[2] : 0,
                         .finish = {.nan = (cr_nan_policy)h->nan, .result_dtype = c->result}};
    cr_error error;
    for (uint32_t i = 0; i < h->items; i++) spec.ops[i] = quantile_op();
    void *scratch = get(cr_axis_scratch(&spec));
    for (uint64_t b = 0, now; b < h->shape[0]; b += now) {
        void *out[CR_AXIS_PLACES];
        const uint64_t elements = b * h->shape[1] * h->shape[2];
        now = 1 + next_random(h->shape[0] - b);
        for (uint32_t i = 0; i < h->items; i++) out[i] = a->bytes[i] + b * h->shape[2] * cr_dtype_size(c->result);
        const cr_view view = cr_view_from(c->view, elements, c->size);
        if (cr_cpu_axis_blocks_view(&spec, &view, b * h->shape[2], now, scratch, out, &error) != CR_OK) a->good = false;
    }
    free(scratch);
}

static void by_segments(const one_case *c, answers *a) {
    const header *h = c->h;
    cr_axis_spec spec = {.dtype = c->dtype,
                         .shape = {h->borders - 1, 0, 1},
                         .offsets = {(const uint8_t *)c->borders, h->borders - 1, CR_U64},
                         .op_count = h->items,
                         .items = c->items,
                         .mask_line = c->view.mask.kind != CR_MASK_NONE,
                         .finish = {.nan = (cr_nan_policy)h->nan, .result_dtype = c->result}};
    cr_error error;
    for (uint32_t i = 0; i < h->items; i++) spec.ops[i] = quantile_op();
    void *scratch = get(cr_offsets_scratch(&spec));
    for (uint64_t s = 0, now; s < c->answers; s += now) {
        void *out[CR_AXIS_PLACES];
        now = 1 + next_random(c->answers - s);
        for (uint32_t i = 0; i < h->items; i++) out[i] = a->bytes[i] + s * cr_dtype_size(c->result);
        const cr_view view = cr_view_from(c->view, c->borders[s], c->size);
        if (cr_cpu_offsets_view(&spec, &view, c->borders[s], c->borders[s + now], s, now, scratch, out, &error) !=
            CR_OK)
            a->good = false;
    }
    free(scratch);
}

/* The elements are given twice, in random parts each time. */
static void by_keys(const one_case *c, answers *a) {
    const header *h = c->h;
    const cr_keys keys = {(const uint8_t *)c->keys, keys_of(h), h->groups, h->columns, CR_I32, h->drop != 0};
    cr_axis_spec spec = {.dtype = c->dtype,
                         .shape = {h->groups, keys.count, h->columns},
                         .op_count = h->items,
                         .items = c->items,
                         .mask_line = c->view.mask.kind != CR_MASK_NONE ? h->columns : 0,
                         .finish = {.nan = (cr_nan_policy)h->nan, .result_dtype = c->result}};
    cr_error error = {CR_OK, ""};
    cr_by_key *state;
    uint64_t outside;
    for (uint32_t i = 0; i < h->items; i++) spec.ops[i] = quantile_op();
    a->good = cr_by_key_new(&spec, &keys, 0, &state, &error) == CR_OK;
    for (uint64_t at = 0, now; a->good && at < h->n; at += now) {
        const cr_view part = cr_view_from(c->view, at, c->size);
        now = 1 + next_random(h->n - at);
        a->good = cr_by_key_fold(state, &part, now, at, &outside, &error) == CR_OK;
    }
    if (a->good) a->good = cr_by_key_rank(state, &error) == CR_OK;
    for (uint64_t at = 0, now; a->good && at < h->n; at += now) {
        const cr_view part = cr_view_from(c->view, at, c->size);
        now = 1 + next_random(h->n - at);
        cr_by_key_put(state, &part, now, at);
    }
    for (uint64_t cell = 0, now; a->good && cell < c->answers; cell += now) {
        void *out[CR_AXIS_PLACES];
        now = 1 + next_random(c->answers - cell);
        for (uint32_t i = 0; i < h->items; i++) out[i] = a->bytes[i] + cell * cr_dtype_size(c->result);
        a->good = cr_by_key_finish(state, cell, now, out, &error) == CR_OK;
    }
    if (!a->good) printf("! by key: %s\n", error.text);
    cr_by_key_free(state);
}

typedef enum way { WAY_MEMORY, WAY_THREADS, WAY_STREAM, WAY_FILE, WAYS } way;
static const char *const way_names[WAYS] = {"memory", "threads", "stream", "file"};

static cured_call *start(const one_case *c, const cured_op *ops, const cured_options *o, way w) {
    const header *h = c->h;
    cured_call *call = NULL;
    const size_t bytes = h->n * c->size;
    if (w == WAY_STREAM) {
        const bool known = next_random(2) || h->mask;
        cured_reduce_stream_begin(embedded, (cured_dtype)c->dtype, ops, h->items, known ? bytes : CURED_UNKNOWN_LENGTH,
                                  o, &call, NULL);
        for (size_t at = 0; call && at < bytes;) {
            size_t now = 1 + (size_t)next_random(bytes - at);
            if (cured_stream_write(call, c->view.data + at, now, NULL) != CURED_OK) break;
            cured_stream_drain(call, NULL);
            at += now;
        }
        if (call) cured_stream_end(call, NULL);
    } else if (w == WAY_FILE) {
        const int fd = memfd_create("case", MFD_CLOEXEC);
        const size_t before = 8 * (size_t)next_random(100);
        if (fd < 0 || pwrite(fd, c->view.data, bytes, (off_t)before) != (ssize_t)bytes ||
            ftruncate(fd, (off_t)(before + bytes)) != 0)
            exit(2);
        cured_reduce_fd(embedded, (cured_dtype)c->dtype, ops, h->items, fd, before, CURED_TO_END, o, &call, NULL);
        close(fd);
    } else {
        cured_reduce_buffer(w == WAY_THREADS ? threaded : embedded, (cured_dtype)c->dtype, ops, h->items, c->view.data,
                            h->n, o, &call, NULL);
    }
    return call;
}

static void by_libcured(const one_case *c, way w, answers *a) {
    const header *h = c->h;
    cured_options o = CURED_OPTIONS_INIT;
    cured_op ops[CR_QUANTILE_ITEMS];
    double shares[CR_QUANTILE_ITEMS];
    const cured_axis axis = {h->shape[0], h->shape[1], h->shape[2]};
    const cured_mask mask = {c->view.mask.data, h->n, h->mask_first, (cured_mask_kind)h->mask, h->leaves_out != 0};
    const cured_offsets offsets = {c->borders, h->borders, CURED_U64};
    const bool whole = is_whole(h);
    cured_error error = {CURED_OK, 0, ""};
    for (uint32_t i = 0; i < h->items; i++) {
        ops[i] = (cured_op)quantile_op();
        shares[i] = c->items[i].share;
    }
    o.nan = (cured_nan)h->nan;
    o.result_dtype = (cured_dtype)h->result_dtype;
    o.parameters = shares;
    o.method = (cured_method)c->items[0].method;
    if (h->mask) o.mask = &mask;
    const cured_keys keys = {c->keys, keys_of(h), CURED_I32, h->groups, h->columns, h->drop != 0};
    if (h->borders) o.offsets = &offsets;
    if (h->columns) o.keys = &keys;
    if (!whole && !h->borders && !h->columns) o.axis = &axis;
    if (!whole) {
        o.results = (void *const *)a->bytes;
    }
    cured_call *call = start(c, ops, &o, w);
    a->good = call && cured_wait(call, &error) == CURED_OK;
    if (!a->good) printf("! libcured, by %s: %s\n", way_names[w], error.text);
    for (uint32_t i = 0; whole && a->good && i < h->items; i++) {
        size_t len;
        const void *value = cured_value_bytes(cured_call_value(call, i), &len);
        if (len == cr_dtype_size(c->result)) memcpy(a->bytes[i], value, len);
    }
    cured_call_free(call);
}

static void check(const one_case *c, const answers *first, answers *other, const char *isa, const char *how) {
    bool same = other->good;
    for (uint32_t i = 0; i < c->h->items; i++)
        if (memcmp(first->bytes[i], other->bytes[i], c->answers * cr_dtype_size(c->result)) != 0) same = false;
    if (!same) printf("! %s %s: other answers\n", isa, how);
    answers_free(c, other);
}

static void run_ways(const one_case *c, bool whole, answers *first) {
    bool have = false, alike = true;
    for (uint32_t i = 1; i < c->h->items; i++) alike &= c->items[i].method == c->items[0].method;
    for (size_t turn = 0; turn < 2 * sizeof isas / sizeof isas[0]; turn++) {
        const size_t isa = turn / 2;
        if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
        const bool without = turn % 2 != 0;
        answers a = answers_new(c);
        cr_fast_switch_off(without ? UINT64_C(1) << CR_FAST_SHORT_RANKS : 0);
        (whole ? in_memory : c->h->borders ? by_segments : c->h->columns ? by_keys : by_blocks)(c, &a);
        cr_fast_switch_off(0);
        if (have)
            check(c, first, &a, isas[isa], without ? "without short_ranks" : "memory");
        else
            *first = a;
        have = true;
        if (without) continue;
        if (whole) {
            a = answers_new(c);
            by_reads(c, &a);
            check(c, first, &a, isas[isa], "reads");
        }
        for (int w = 0; embedded && alike && w < WAYS; w++) {
            if (isa != 0 && next_random(4) != 0) continue; /* the sets differ in the folds only */
            a = answers_new(c);
            by_libcured(c, (way)w, &a);
            check(c, first, &a, isas[isa], way_names[w]);
        }
    }
}

static void run_case(const header *h) {
    one_case c = {.h = h, .dtype = (cr_dtype)h->dtype, .size = cr_dtype_size((cr_dtype)h->dtype)};
    const size_t bytes = (size_t)h->n * c.size;
    const bool whole = is_whole(h);
    uint64_t *borders = must(malloc((h->borders + 1) * sizeof borders[0]));
    int32_t *keys = must(malloc((keys_of(h) + 1) * sizeof keys[0]));
    uint8_t *block = must(malloc(h->misalign + bytes + 1)), *data = block + h->misalign + 1;
    uint8_t *mask = must(malloc(h->mask_bytes + 1));
    for (uint32_t i = 0; i < h->items; i++) {
        item one;
        read_all(&one, sizeof one);
        c.items[i] = (cr_quantile_item){one.share, (cr_quantile_method)one.method};
    }
    read_all(borders, h->borders * sizeof borders[0]);
    read_all(keys, keys_of(h) * sizeof keys[0]);
    read_all(mask, h->mask_bytes);
    read_all(data, bytes);
    c.view = (cr_view){.data = data, .mask = {mask, h->mask_first, (cr_mask_kind)h->mask, h->leaves_out != 0}};
    c.result = h->result_dtype ? (cr_dtype)h->result_dtype : CR_F64;
    c.borders = borders;
    c.keys = keys;
    c.answers = whole        ? 1
                : h->borders ? h->borders - 1
                : h->columns ? h->groups * h->columns
                             : h->shape[0] * h->shape[2];
    random_state = h->order | 1;
    answers first;
    run_ways(&c, whole, &first);
    for (uint32_t i = 0; i < h->items; i++) {
        for (size_t k = 0; k < c.answers * cr_dtype_size(c.result); k++) printf("%02x", first.bytes[i][k]);
        printf("\n");
    }
    printf(".\n");
    answers_free(&c, &first);
    free(block);
    free(borders);
    free(keys);
    free(mask);
}

int main(void) {
    header h;
    cured_connect_options several = CURED_CONNECT_OPTIONS_INIT;
    several.threads = 3;
    if (cured_connect("embedded:", NULL, &embedded, NULL) != CURED_OK) fprintf(stderr, "order_driver: no embedded:\n");
    if (embedded && cured_connect("embedded:", &several, &threaded, NULL) != CURED_OK) return 2;
    while (fread(&h, sizeof h, 1, stdin) == 1) {
        if (h.magic != MAGIC || h.items == 0 || h.items > CR_QUANTILE_ITEMS) {
            fprintf(stderr, "order_driver: not a case\n");
            return 2;
        }
        run_case(&h);
    }
    cured_close(embedded);
    cured_close(threaded);
    return 0;
}
