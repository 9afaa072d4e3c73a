/* keyed: the canonical bytes of partials by key. Thread, owner: keyed.h. */
#include "kernels/core/keyed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/axis.h"
#include "kernels/core/op.h"

enum {
    HEAD_BYTES = 32,
    CELLS_AT = 24,                           /* where the count of cells stands */
    CELL_HEAD_BYTES = 12,                    /* its number and its share's length */
    CELL_LEAST_BYTES = CELL_HEAD_BYTES + 24, /* with the head of a share */
};

static cr_status refuse(cr_error *error, const char *why) {
    return cr_fail(error, CR_INVALID_ARGUMENT, "partial: %s", why);
}

static void put(uint8_t *to, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *from, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* ---- writing ---- */

/* Room for so many bytes more. */
static cr_status need(cr_keyed_writer *w, uint64_t more, cr_error *error) {
    const uint64_t most = (uint64_t)1 << CR_KEYED_MAX_LOG2, wanted = w->length + more;
    if (more <= w->room - w->length) return CR_OK;
    uint64_t room =
        wanted < w->room * 2 ? w->room * 2 : wanted; /* a copy is made: the old room counts beside the new */
    if (room > w->most + more) room = w->most + more > wanted ? w->most + more : wanted;
    if (room > most) room = most;
    uint8_t *bytes = more <= room - w->length && room <= SIZE_MAX ? realloc(w->bytes, (size_t)room) : NULL;
    if (bytes != NULL) {
        w->bytes = bytes;
        w->room = room;
        return CR_OK;
    }
    const bool beyond = more > room - w->length;
    cr_keyed_drop(w);
    if (!beyond) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial by key");
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "partial: by key it would take more than %" PRIu64
                   " bytes, the limit; reduce some groups at a time (drop leaves the others out)",
                   most);
}

cr_status cr_keyed_begin(cr_keyed_writer *w, const cr_keyed *of, uint64_t elements, cr_error *error) {
    *w = (cr_keyed_writer){.of = *of, .most = cr_keyed_most(of, elements)};
    w->of.cells = 0;
    const cr_status status = need(w, HEAD_BYTES, error);
    if (status != CR_OK) return status;
    put(w->bytes, 'C' | 'K' << 8, 2);
    put(w->bytes + 2, CR_KEYED_VERSION, 1);
    put(w->bytes + 3, (uint64_t)of->dtype, 1);
    put(w->bytes + 4, of->families, 4);
    put(w->bytes + 8, of->groups, 8);
    put(w->bytes + 16, of->columns, 8);
    put(w->bytes + CELLS_AT, 0, 8);
    w->length = HEAD_BYTES;
    return CR_OK;
}

/* The share lies behind the room for its cell's head. */
static void close_cell(cr_keyed_writer *w, uint64_t cell, uint64_t bytes) {
    put(w->bytes + w->length, cell, 8);
    put(w->bytes + w->length + 8, bytes, 4);
    w->length += CELL_HEAD_BYTES + bytes;
    w->of.cells++;
}

cr_status cr_keyed_put(cr_keyed_writer *w, uint64_t cell, const cr_share *share, cr_error *error) {
    const cr_status status = need(w, CELL_HEAD_BYTES + CR_SERIAL_MAX_BYTES, error);
    if (status != CR_OK) return status;
    close_cell(w, cell, cr_share_pack(share, w->bytes + w->length + CELL_HEAD_BYTES, CR_SERIAL_MAX_BYTES));
    return CR_OK;
}

cr_status cr_keyed_put_bytes(cr_keyed_writer *w, uint64_t cell, const uint8_t *share, uint64_t bytes, cr_error *error) {
    const cr_status status = need(w, CELL_HEAD_BYTES + bytes, error);
    if (status != CR_OK) return status;
    memcpy(w->bytes + w->length + CELL_HEAD_BYTES, share, (size_t)bytes);
    close_cell(w, cell, bytes);
    return CR_OK;
}

uint8_t *cr_keyed_end(cr_keyed_writer *w, uint64_t *length) {
    put(w->bytes + CELLS_AT, w->of.cells, 8);
    uint8_t *fitting = realloc(w->bytes, (size_t)w->length), *bytes = fitting != NULL ? fitting : w->bytes;
    *length = w->length;
    w->bytes = NULL;
    return bytes;
}

/* The most bytes that cr_share_pack writes of a cell. */
static uint64_t share_most(cr_dtype dtype, uint32_t families) {
    const bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    uint64_t most = CELL_LEAST_BYTES - CELL_HEAD_BYTES;
    for (unsigned at = 0; at < CR_SUMS; at++) /* carries go beyond the limbs by a digit, and a sign by another */
        if (families & cr_sum_rows[at].family)
            most += (floats ? 24 : 0) + 4 + 4 * ((uint64_t)cr_sum_limbs((cr_sum_at)at, dtype) + 2);
    if (families & CR_FAM_EXTREMA) most += 40;
    if (families & CR_FAM_COUNTS) most += 16;
    if (families & CR_FAM_BITS) most += 24;
    if (families & CR_FAM_PROD) most += 20 + 8 * (uint64_t)CR_INT_PROD_WORDS;
    return most < CR_SERIAL_MAX_BYTES ? most : CR_SERIAL_MAX_BYTES;
}

uint64_t cr_keyed_most(const cr_keyed *of, uint64_t elements) {
    const uint64_t most = (uint64_t)1 << CR_KEYED_MAX_LOG2;
    const uint64_t cells = of->columns && of->groups > most / of->columns ? most : of->groups * of->columns;
    const uint64_t each = CELL_HEAD_BYTES + share_most(of->dtype, of->families);
    const uint64_t some = cells < elements ? cells : elements; /* the others have none */
    return some > (most - HEAD_BYTES) / each ? most : HEAD_BYTES + some * each;
}

void cr_keyed_drop(cr_keyed_writer *w) {
    free(w->bytes);
    w->bytes = NULL;
}

/* ---- reading ---- */

bool cr_keyed_is(const uint8_t *in, size_t length) { return length >= 2 && in[0] == 'C' && in[1] == 'K'; }

cr_status cr_keyed_open(cr_keyed_reader *r, const uint8_t *in, size_t length, cr_error *error) {
    if (!cr_keyed_is(in, length)) return refuse(error, "these bytes are not one by key");
    if (length < HEAD_BYTES) return refuse(error, "it is cut short");
    if (in[2] != CR_KEYED_VERSION)
        return cr_fail(error, CR_UNIMPLEMENTED, "partial: by key its version is %u, %d is understood", in[2],
                       CR_KEYED_VERSION);
    *r = (cr_keyed_reader){.of = {.dtype = (cr_dtype)in[3],
                                  .families = (uint32_t)get(in + 4, 4),
                                  .groups = get(in + 8, 8),
                                  .columns = get(in + 16, 8),
                                  .cells = get(in + CELLS_AT, 8)},
                           .in = in,
                           .at = HEAD_BYTES,
                           .length = length};
    const cr_keyed *of = &r->of;
    if (!cr_dtype_is_input(of->dtype)) return refuse(error, "its dtype is not an input type");
    if (of->families & ~(uint32_t)CR_FAM_ALL) return refuse(error, "it has families that are not known");
    const bool mixed = of->families & CR_FAM_PAIRS && of->families & CR_FAM_SINGLE; /* no call has both */
    if (mixed || of->families & CR_FAM_DIGEST ||
        (of->families & CR_FAM_PROD && cr_dtype_kind(of->dtype) == CR_KIND_FLOAT))
        return refuse(error, "it has families that there are not by key");
    const cr_keys keys = {.groups = of->groups, .columns = of->columns, .dtype = CR_U8};
    cr_error why;
    if (cr_keys_check(&keys, of->dtype, &why) != CR_OK)
        return refuse(error, "its groups and columns are more than a call by key has");
    if (of->cells > cr_keys_answers(&keys)) return refuse(error, "it has more cells than its groups have");
    if (of->cells > (length - HEAD_BYTES) / CELL_LEAST_BYTES) return refuse(error, "it is cut short");
    r->left = of->cells;
    return CR_OK;
}

cr_status cr_keyed_next(cr_keyed_reader *r, cr_keyed_cell *cell, cr_error *error) {
    *cell = (cr_keyed_cell){0, 0, NULL};
    if (r->left == 0) return r->at == r->length ? CR_OK : refuse(error, "bytes follow its end");
    if (r->length - r->at < CELL_HEAD_BYTES) return refuse(error, "it is cut short");
    const uint64_t number = get(r->in + r->at, 8), bytes = get(r->in + r->at + 8, 4);
    r->at += CELL_HEAD_BYTES;
    if (bytes > r->length - r->at) return refuse(error, "it is cut short");
    if (number < r->least) return refuse(error, "its cells do not rise");
    if (number >= r->of.groups * r->of.columns) return refuse(error, "a cell is beyond its groups");
    *cell = (cr_keyed_cell){number, bytes, r->in + r->at};
    r->at += bytes;
    r->least = number + 1;
    r->left--;
    return CR_OK;
}

cr_status cr_keyed_share(const cr_keyed *of, const cr_keyed_cell *cell, cr_share *share, cr_error *error) {
    cr_error why;
    const cr_status status = cr_share_unpack(cell->share, (size_t)cell->bytes, share, &why);
    const cr_partial *p = &share->partial;
    if (status != CR_OK)
        return cr_fail(error, status, "partial: cell %" PRIu64 ": %.200s", cell->number,
                       strncmp(why.text, "partial: ", 9) == 0 ? why.text + 9 : why.text);
    const char *wrong = !share->unplaced                  ? "it has a position"
                        : (cr_dtype)p->dtype != of->dtype ? "it is of another type than its head says"
                        : p->families != of->families     ? "it has other families than its head says"
                        : p->n == 0                       ? "it has no elements, and stands there all the same"
                                                          : NULL;
    if (wrong == NULL) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "partial: cell %" PRIu64 ": %s", cell->number, wrong);
}

static uint64_t plus(uint64_t a, uint64_t b) { return b <= INT64_MAX - a ? a + b : INT64_MAX; }

cr_status cr_keyed_check(const uint8_t *in, size_t length, cr_keyed *of, uint64_t *n, cr_error *error) {
    cr_keyed_reader r;
    cr_keyed_cell cell;
    *n = 0;
    cr_status status = cr_keyed_open(&r, in, length, error);
    if (status != CR_OK) return status;
    cr_share *share = malloc(sizeof *share);
    if (share == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    while ((status = cr_keyed_next(&r, &cell, error)) == CR_OK && cell.share != NULL) {
        status = cr_keyed_share(&r.of, &cell, share, error);
        if (status != CR_OK) break;
        *n = plus(*n, share->partial.n);
    }
    free(share);
    *of = r.of;
    return status;
}

/* ---- merging ---- */

cr_status cr_keyed_alike(const cr_keyed *a, const cr_keyed *b, cr_error *error) {
    if (a->dtype != b->dtype)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: one is of %s, another of %s", cr_dtype_name(a->dtype),
                       cr_dtype_name(b->dtype));
    if (a->families != b->families) return refuse(error, "they were made for different ops");
    if (a->groups != b->groups)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: one has %" PRIu64 " groups, another %" PRIu64 ": say groups when they are made",
                       a->groups, b->groups);
    if (a->columns == b->columns) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "partial: one has rows of %" PRIu64 " columns, another of %" PRIu64,
                   a->columns, b->columns);
}

/* ---- answers ---- */

cr_status cr_keyed_answers(const cr_keyed *of, const uint32_t *ops, uint32_t op_count, cr_error *error) {
    for (uint32_t i = 0; i < op_count; i++) {
        const cr_op op = (cr_op)ops[i];
        cr_status status = cr_keys_takes(op, of->dtype, error);
        if (status == CR_OK) status = cr_share_unplaced_takes(op, of->dtype, error);
        if (status != CR_OK) return status;
        if ((cr_op_needs(op, of->dtype) & ~of->families) != 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "partial: it was not made for %s", cr_op_name(op));
    }
    return CR_OK;
}

struct cr_keyed_finisher {
    cr_keyed_reader r;
    cr_keyed_cell next;
    uint64_t at; /* the next answer */
    uint32_t ops[CR_KEYED_MAX_OPS], op_count;
    cr_finish_opts finish[CR_KEYED_MAX_OPS];
    size_t size[CR_KEYED_MAX_OPS];
    cr_partial none;
    cr_share share;
};

cr_status cr_keyed_finisher_new(const uint8_t *in, size_t length, const uint32_t *ops, uint32_t op_count,
                                const cr_finish_opts *opts, cr_keyed_finisher **finisher, cr_error *error) {
    cr_keyed_finisher *f = malloc(sizeof *f);
    *finisher = NULL;
    if (f == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    cr_status status = cr_keyed_open(&f->r, in, length, error);
    if (status == CR_OK) status = cr_keyed_answers(&f->r.of, ops, op_count, error);
    if (status == CR_OK) status = cr_keyed_next(&f->r, &f->next, error);
    if (status != CR_OK) {
        free(f);
        return status;
    }
    f->at = 0;
    f->op_count = op_count;
    for (uint32_t k = 0; k < op_count; k++) {
        f->ops[k] = ops[k];
        f->finish[k] = cr_finish_share((cr_op)ops[k], f->r.of.dtype, opts, NULL);
        f->size[k] = cr_dtype_size(cr_axis_dtype((cr_op)ops[k], f->r.of.dtype, &f->finish[k]));
    }
    cr_partial_init(&f->none, f->r.of.dtype, f->r.of.families);
    *finisher = f;
    return CR_OK;
}

/* The next count answers, which are all those of p. */
static cr_status store(cr_keyed_finisher *f, const cr_partial *p, uint64_t count, uint64_t base, void *const out[],
                       uint8_t *const statuses[], cr_error *error) {
    for (uint32_t k = 0; k < f->op_count && count != 0; k++) {
        const size_t size = f->size[k];
        uint8_t *to = (uint8_t *)out[k] + (f->at - base) * size, *status = NULL;
        if (statuses != NULL) {
            status = statuses[k] + (f->at - base);
            *status = CR_OK;
        }
        if (cr_axis_store_or(p, (cr_op)f->ops[k], &f->finish[k], f->at, to, status, error) != CR_OK) return error->code;
        for (uint64_t i = 1; i < count; i++) memcpy(to + i * size, to, size);
        if (status != NULL && count > 1) memset(status, *status, (size_t)count);
    }
    f->at += count;
    return CR_OK;
}

cr_status cr_keyed_finish_next(cr_keyed_finisher *f, uint64_t count, void *const out[], uint8_t *const statuses[],
                               cr_error *error) {
    const uint64_t base = f->at, end = base + count;
    cr_status status = CR_OK;
    while (status == CR_OK && f->at < end) {
        const bool has = f->next.share != NULL && f->next.number < end;
        status = store(f, &f->none, (has ? f->next.number : end) - f->at, base, out, statuses, error);
        if (status != CR_OK || !has) continue;
        status = cr_keyed_share(&f->r.of, &f->next, &f->share, error);
        if (status == CR_OK) status = store(f, &f->share.partial, 1, base, out, statuses, error);
        if (status == CR_OK) status = cr_keyed_next(&f->r, &f->next, error);
    }
    return status;
}

cr_status cr_keyed_finish(const uint8_t *in, size_t length, const uint32_t *ops, uint32_t op_count,
                          const cr_finish_opts *opts, void *const out[], uint8_t *const statuses[], cr_error *error) {
    cr_keyed_finisher *f;
    cr_status status = cr_keyed_finisher_new(in, length, ops, op_count, opts, &f, error);
    if (status != CR_OK) return status;
    status = cr_keyed_finish_next(f, f->r.of.groups * f->r.of.columns, out, statuses, error);
    free(f);
    return status;
}

cr_status cr_keyed_say(const cr_keyed *of, uint64_t n, cr_op op, cr_dtype result_dtype, const uint8_t *statuses,
                       cr_error *error) {
    const cr_finish_opts opts = {.result_dtype = result_dtype};
    const uint64_t answers = of->groups * of->columns;
    cr_axis_missing missing = {0, 0, CR_OK};
    for (uint64_t i = 0; i < answers; i++) {
        if (statuses[i] == CR_OK || missing.count++ != 0) continue;
        missing.first = i;
        missing.status = (cr_status)statuses[i];
    }
    return cr_axis_say(&missing, op, cr_axis_dtype(op, of->dtype, &opts), n, true, answers, error);
}
