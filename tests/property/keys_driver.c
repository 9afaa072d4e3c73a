/* keys_driver: reduces by key the cases that keys_property.py writes to its standard input, and prints what came out.
 *
 * Each case goes by the kernels whole; cut anywhere, folded in any order into a few states, which are merged; with its rows shuffled, which changes
 * nothing but indices; without digits, by limbs alone; and cut anywhere into partials, which are merged in some order and have the bytes of
 * the whole's. libcured answers it, too, in this process: from memory, and as a stream of pieces. All that on every instruction set that
 * this machine has. The answers of the first way are
 * printed; another's only where they differ. Every input ends where its allocation ends, so that a sanitizer sees every access
 * beyond it.
 *
 * Thread: one. Owner: this file. */
#include <stdbool.h>
#include <string.h>

#include "cured/cured.h"
#include "kernels/core/fast.h"
#include "kernels/core/keyed.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/keys/keys.h"
#include "tests/property/cases.h"

enum { MAGIC = 0x6b657973, MAX_STATES = 4, MAX_PIECES = 9 };

/* As keys_property.py packs it. */
typedef struct header {
    uint32_t magic, dtype, ops, nan, result_dtype, misalign, key_dtype, mask, drop, overflow, pairs, unused;
    uint64_t rows, columns, groups, ddof, order;
} header;

typedef struct input {
    cr_axis_spec spec;
    cr_keys keys;
    cr_view view;
    uint32_t wants;
} input;

typedef struct answers {
    size_t bytes[CR_AXIS_PLACES];
    void *out[CR_AXIS_PLACES];
    cr_error error;
} answers;

static void answers_new(answers *a, const input *in) {
    const uint64_t count = cr_keys_answers(&in->keys);
    a->error = (cr_error){CR_OK, ""};
    for (uint32_t k = 0; k < 2 * in->spec.op_count; k++) {
        const bool values = k < in->spec.op_count;
        const cr_finish_opts share =
            cr_finish_share(in->spec.ops[k % in->spec.op_count], in->spec.dtype, &in->spec.finish, NULL);
        a->bytes[k] =
            (size_t)count * (values ? cr_dtype_size(cr_axis_dtype(in->spec.ops[k], in->spec.dtype, &share)) : 1);
        a->out[k] = must(malloc(a->bytes[k] + 1));
        memset(a->out[k], values ? 0x5a : 0, a->bytes[k]);
    }
}

static void answers_free(answers *a, const input *in) {
    for (uint32_t k = 0; k < 2 * in->spec.op_count; k++) free(a->out[k]);
}

static void finish(const cr_by_key *state, const input *in, answers *a) {
    const uint64_t count = cr_keys_answers(&in->keys);
    for (uint64_t first = 0, now; first < count && a->error.code == CR_OK; first += now) {
        void *out[CR_AXIS_PLACES];
        now = 1 + next_random(count - first);
        for (uint32_t k = 0; k < 2 * in->spec.op_count; k++)
            out[k] = (uint8_t *)a->out[k] + a->bytes[k] / count * first;
        cr_by_key_finish(state, first, now, out, &a->error);
    }
}

/* The view of an input from an element on. */
static cr_view from(const input *in, uint64_t at) { return cr_view_from(in->view, at, cr_dtype_size(in->spec.dtype)); }

static void whole(const input *in, answers *a) {
    cr_by_key *state;
    uint64_t outside;
    if (cr_by_key_new(&in->spec, &in->keys, in->wants, &state, &a->error) != CR_OK) return;
    if (cr_by_key_fold(state, &in->view, cr_keys_elements(&in->keys), 0, &outside, &a->error) == CR_OK)
        finish(state, in, a);
    cr_by_key_free(state);
}

static void in_pieces(const input *in, answers *a) {
    cr_by_key *state[MAX_STATES];
    const uint64_t elements = cr_keys_elements(&in->keys);
    uint64_t live = 1 + next_random(MAX_STATES), cut[MAX_PIECES + 1] = {0}, outside, lowest = UINT64_MAX;
    unsigned pieces = 1 + (unsigned)next_random(MAX_PIECES);
    for (unsigned i = 1; i < pieces; i++) {
        cut[i] = next_random(elements + 1);
        for (unsigned j = i; j > 1 && cut[j] < cut[j - 1]; j--) {
            const uint64_t swap = cut[j];
            cut[j] = cut[j - 1];
            cut[j - 1] = swap;
        }
    }
    cut[pieces] = elements;
    for (uint64_t i = 0; i < live; i++) {
        cr_error error;
        if (cr_by_key_new(&in->spec, &in->keys, in->wants, &state[i], &error) != CR_OK) exit(2);
    }
    for (unsigned i = 0, last = (unsigned)next_random(pieces); i < pieces; i++) { /* from the end, around */
        const unsigned k = (last + pieces - i) % pieces;
        const cr_view view = from(in, cut[k]);
        cr_error error;
        cr_by_key *to = state[next_random(live)];
        if (cr_by_key_fold(to, &view, cut[k + 1] - cut[k], cut[k], &outside, &error) == CR_OK) continue;
        if (outside < lowest) {
            lowest = outside;
            a->error = error;
        }
    }
    for (uint64_t i = live - 1; i > 0 && a->error.code == CR_OK; i--)
        cr_by_key_merge(state[next_random(i)], state[i], &a->error);
    if (a->error.code == CR_OK) finish(state[0], in, a);
    for (uint64_t i = 0; i < live; i++) cr_by_key_free(state[i]);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

/* The rows, their keys and what the mask says of them in another order. */
static void shuffled(const input *in, answers *a) {
    input other = *in;
    const size_t row = (size_t)in->keys.columns * cr_dtype_size(in->spec.dtype), key = cr_dtype_size(in->keys.dtype);
    const size_t columns = (size_t)in->keys.columns;
    const bool masked = in->view.mask.kind != CR_MASK_NONE;
    uint8_t *data = must(malloc(in->keys.count * row + 1)), *keys = must(malloc(in->keys.count * key + 1));
    uint8_t *mask = must(calloc(in->keys.count * columns + 1, 1)), *second = must(malloc(in->keys.count * row + 1));
    const uint8_t *pairs = in->view.second;
    if (in->keys.count != 0) {
        memcpy(data, in->view.data, in->keys.count * row);
        if (pairs != NULL) memcpy(second, pairs, in->keys.count * row);
        memcpy(keys, in->keys.data, in->keys.count * key);
    }
    for (uint64_t i = 0; masked && i < in->keys.count * columns; i++)
        mask[i] = (uint8_t)(cr_mask_word(&in->view.mask, i, 1) & 1);
    for (uint64_t i = in->keys.count; i > 1; i--) {
        const uint64_t j = next_random(i);
        swap_bytes(data + (i - 1) * row, data + j * row, row);
        if (pairs != NULL) swap_bytes(second + (i - 1) * row, second + j * row, row);
        swap_bytes(keys + (i - 1) * key, keys + j * key, key);
        swap_bytes(mask + (i - 1) * columns, mask + j * columns, columns);
    }
    other.keys.data = keys;
    other.view = (cr_view){.data = data,
                           .mask = {mask, 0, masked ? CR_MASK_BYTES : CR_MASK_NONE, false},
                           .second = pairs != NULL ? second : NULL};
    whole(&other, a);
    free(data);
    free(second);
    free(keys);
    free(mask);
}

/* Rows [first, first + count) as a partial. */
static cr_status part_of(const input *in, uint64_t first, uint64_t count, cr_keyed_bytes *part, cr_error *error) {
    cr_axis_spec spec = in->spec;
    cr_keys keys = in->keys;
    cr_by_key *state;
    uint64_t outside, length = 0;
    uint8_t *bytes = NULL;
    const cr_view view = from(in, first * keys.columns);
    spec.op_count = 0;
    keys.data += first * cr_dtype_size(keys.dtype);
    keys.count = count;
    if (cr_by_key_new(&spec, &keys, CR_WANTS_ALL, &state, error) != CR_OK) return error->code;
    cr_status status = cr_by_key_fold(state, &view, count * keys.columns, 0, &outside, error);
    if (status == CR_OK) status = cr_by_key_pack(state, &bytes, &length, error);
    cr_by_key_free(state);
    *part = (cr_keyed_bytes){bytes, (size_t)length};
    return status;
}

static void free_part(const cr_keyed_bytes *part) { free((void *)(uintptr_t)part->data); }

/* Some of the parts become one. */
static unsigned merge_some(cr_keyed_bytes *part, unsigned n) {
    const unsigned first = (unsigned)next_random(n - 1), count = 2 + (unsigned)next_random(n - first - 1);
    uint8_t *merged;
    uint64_t length;
    size_t which;
    cr_error error;
    if (cr_keyed_merge(part + first, count, &merged, &length, &which, &error) != CR_OK) {
        printf("! parts do not merge: %s\n", error.text);
        exit(1);
    }
    for (unsigned i = first; i < first + count; i++) free_part(&part[i]);
    part[first] = (cr_keyed_bytes){merged, (size_t)length};
    memmove(part + first + 1, part + first + count, (n - first - count) * sizeof *part);
    return n - count + 1;
}

/* All but indices, which partials have not. */
static void finish_parts(const input *in, const cr_keyed_bytes *part, answers *a) {
    uint32_t ops[CR_AXIS_MAX_OPS], count = 0;
    void *out[CR_AXIS_MAX_OPS];
    uint8_t *statuses[CR_AXIS_MAX_OPS];
    for (uint32_t k = 0; k < in->spec.op_count; k++) {
        if (cr_op_is_index(in->spec.ops[k])) continue;
        out[count] = a->out[k];
        statuses[count] = a->out[in->spec.op_count + k];
        ops[count++] = in->spec.ops[k];
    }
    cr_keyed_finish(part->data, part->length, ops, count, &in->spec.finish, out, statuses, &a->error);
}

static void by_partials(const input *in, answers *a) {
    cr_keyed_bytes part[MAX_PIECES], of_all = {NULL, 0};
    unsigned n = 0;
    for (uint64_t at = 0, now; n == 0 || at < in->keys.count; at += now) {
        const uint64_t left = in->keys.count - at;
        now = n + 1 == MAX_PIECES ? left : next_random(left + 1);
        if (part_of(in, at, now, &part[n++], &a->error) != CR_OK) break;
    }
    for (unsigned i = n; i > 1 && a->error.code == CR_OK; i--) {
        const unsigned j = (unsigned)next_random(i);
        const cr_keyed_bytes swap = part[j];
        part[j] = part[i - 1];
        part[i - 1] = swap;
    }
    while (n > 1 && a->error.code == CR_OK) n = merge_some(part, n);
    if (a->error.code == CR_OK && part_of(in, 0, in->keys.count, &of_all, &a->error) == CR_OK) {
        if (of_all.length != part[0].length || memcmp(of_all.data, part[0].data, of_all.length) != 0)
            printf("! the parts' partial is not the whole's\n");
        finish_parts(in, &part[0], a);
    }
    free_part(&of_all);
    for (unsigned i = 0; i < n; i++) free_part(&part[i]);
}

static cured_conn *embedded; /* NULL: libcured was built without */

/* The same by libcured. */
static void by_libcured(const input *in, bool stream, answers *a) {
    const cured_keys keys = {in->keys.data,   in->keys.count,   (cured_dtype)in->keys.dtype,
                             in->keys.groups, in->keys.columns, in->keys.drop};
    const uint64_t count = cr_keys_elements(&in->keys), bytes = count * cr_dtype_size(in->spec.dtype);
    const cured_mask mask = {in->view.mask.data, count, 0, (cured_mask_kind)in->view.mask.kind, false};
    const cured_second second = {in->view.second, count, (cured_dtype)in->spec.dtype};
    cured_options o = CURED_OPTIONS_INIT;
    cured_op ops[CR_AXIS_MAX_OPS];
    cured_call *call = NULL;
    cured_error error = {.code = CURED_OK};
    o.nan = (cured_nan)in->spec.finish.nan;
    o.overflow = (cured_overflow)in->spec.finish.overflow;
    o.result_dtype = (cured_dtype)in->spec.finish.result_dtype;
    o.ddof = in->spec.finish.ddof;
    o.keys = &keys;
    o.mask = in->view.mask.kind != CR_MASK_NONE ? &mask : NULL;
    o.second = second.data != NULL ? &second : NULL;
    o.results = a->out;
    o.statuses = true;
    for (uint32_t k = 0; k < in->spec.op_count; k++) ops[k] = (cured_op)in->spec.ops[k];
    if (stream) {
        cured_reduce_stream_begin(embedded, (cured_dtype)in->spec.dtype, ops, in->spec.op_count, bytes, &o, &call,
                                  &error);
        for (uint64_t at = 0, now; call != NULL && at < bytes; at += now) {
            now = 1 + next_random(bytes - at);
            if (cured_stream_write(call, in->view.data + at, now, NULL) != CURED_OK) break;
            cured_stream_drain(call, NULL);
        }
        if (call != NULL) cured_stream_end(call, NULL);
    } else {
        cured_reduce_buffer(embedded, (cured_dtype)in->spec.dtype, ops, in->spec.op_count, in->view.data, count, &o,
                            &call, &error);
    }
    if (call != NULL) cured_wait(call, &error);
    cr_fail(&a->error, (cr_status)error.code, "%s", error.code != CURED_OK ? error.text : "");
    for (uint32_t k = 0; error.code == CURED_OK && k < in->spec.op_count; k++) {
        uint8_t *statuses = a->out[in->spec.op_count + k];
        memcpy(statuses, cured_call_array_statuses(call, k, NULL), a->bytes[in->spec.op_count + k]);
    }
    cured_call_free(call);
}

static void print(const input *in, const answers *a) {
    printf("%s %s\n", cr_status_name(a->error.code), a->error.text);
    if (a->error.code != CR_OK) return;
    for (uint32_t k = 0; k < 2 * in->spec.op_count; k++) {
        for (size_t i = 0; i < a->bytes[k]; i++) printf("%02x", ((const uint8_t *)a->out[k])[i]);
        printf("\n");
    }
}

/* sentence: that of an error must be the same, too. */
static void check(const input *in, const answers *first, const answers *other, const char *isa, const char *way,
                  bool shuffles) {
    bool same = first->error.code == other->error.code;
    if (same && !shuffles && first->error.code != CR_OK) same = strcmp(first->error.text, other->error.text) == 0;
    for (uint32_t k = 0; same && first->error.code == CR_OK && k < 2 * in->spec.op_count; k++) {
        if (shuffles && cr_op_is_index(in->spec.ops[k % in->spec.op_count])) continue;
        if (memcmp(first->out[k], other->out[k], first->bytes[k]) != 0) same = false;
    }
    if (!same) printf("! %s %s: other answers\n", isa, way);
}

static void run_ways(const input *in, uint64_t order) {
    static const char *const names[] = {"whole",     "in pieces",   "shuffled", "by limbs",
                                        "by powers", "by partials", "libcured", "libcured, streamed"};
    answers first, other;
    answers_new(&first, in);
    for (unsigned i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        if (cr_cpu_select(isas[i], NULL) != CR_OK) continue;
        random_state = order | 1;
        for (int way = 0; way < (embedded != NULL ? 8 : 6); way++) {
            answers *a = i == 0 && way == 0 ? &first : &other;
            if (a == &other) answers_new(a, in);
            if (way == 1) cr_fast_switch_off((uint64_t)1 << CR_FAST_KEY_SQUARES);
            if (way == 3) cr_fast_switch_off((uint64_t)1 << CR_FAST_KEY_DIGITS);
            if (way == 4) cr_fast_switch_off((uint64_t)1 << CR_FAST_SUMS | (uint64_t)1 << CR_FAST_PAIRS);
            if (way > 5)
                by_libcured(in, way == 7, a);
            else
                (way == 1 ? in_pieces : way == 2 ? shuffled : way == 5 ? by_partials : whole)(in, a);
            cr_fast_switch_off(0);
            if (a == &first) {
                print(in, a);
            } else {
                check(in, &first, a, isas[i], names[way], way == 2 || way == 5);
                answers_free(a, in);
            }
        }
    }
    answers_free(&first, in);
}

static void run_case(const header *h) {
    uint32_t ops[CR_AXIS_MAX_OPS];
    const uint64_t elements = h->rows * h->columns;
    const size_t bytes = (size_t)elements * cr_dtype_size((cr_dtype)h->dtype);
    const size_t key_bytes = (size_t)h->rows * cr_dtype_size((cr_dtype)h->key_dtype);
    uint8_t *data = must(malloc(h->misalign + bytes + 1)), *keys = must(malloc(h->misalign + key_bytes + 1));
    uint8_t *mask = must(malloc(elements + 1)), *second = must(malloc(2 * h->misalign + bytes + 1));
    read_all(ops, h->ops * sizeof ops[0]);
    read_all(data + h->misalign + 1, bytes);
    if (h->pairs) read_all(second + 2 * h->misalign + 1, bytes); /* at another alignment */
    read_all(keys + h->misalign + 1, key_bytes);
    if (h->mask != 0) read_all(mask + 1, h->mask == 1 ? elements : (elements + 7) / 8);
    input in = {.spec = {.dtype = (cr_dtype)h->dtype,
                         .op_count = h->ops,
                         .finish = {.nan = (cr_nan_policy)h->nan,
                                    .overflow = (cr_overflow)h->overflow,
                                    .result_dtype = (cr_dtype)h->result_dtype,
                                    .ddof = h->ddof},
                         .statuses = true},
                .keys = {.data = keys + h->misalign + 1,
                         .count = h->rows,
                         .groups = h->groups,
                         .columns = h->columns,
                         .dtype = (cr_dtype)h->key_dtype,
                         .drop = h->drop},
                .view = {.data = data + h->misalign + 1,
                         .mask = {mask + 1, 0, (cr_mask_kind)h->mask, false},
                         .second = h->pairs ? second + 2 * h->misalign + 1 : NULL}};
    cr_error error = {CR_OK, ""};
    for (uint32_t k = 0; k < h->ops && error.code == CR_OK; k++) {
        const cr_op op = in.spec.ops[k] = (cr_op)ops[k];
        const cr_finish_opts share = cr_finish_share(op, in.spec.dtype, &in.spec.finish, NULL);
        in.spec.families |= cr_op_needs(op, in.spec.dtype);
        in.wants |= cr_op_wants(op);
        if (cr_keys_takes(op, in.spec.dtype, &error) == CR_OK) cr_finish_check(op, in.spec.dtype, &share, &error);
    }
    if (error.code != CR_OK)
        printf("refused %s\n", cr_status_name(error.code));
    else
        run_ways(&in, h->order);
    printf(".\n");
    free(data);
    free(second);
    free(keys);
    free(mask);
}

int main(void) {
    header h;
    if (cured_connect("embedded:", NULL, &embedded, NULL) != CURED_OK) fprintf(stderr, "keys_driver: no embedded:\n");
    while (fread(&h, 1, sizeof h, stdin) == sizeof h) {
        if (h.magic != MAGIC) {
            fprintf(stderr, "not a case\n");
            return 2;
        }
        run_case(&h);
        fflush(stdout);
    }
    cured_close(embedded);
    return 0;
}
