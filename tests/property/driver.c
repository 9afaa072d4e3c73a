/* driver: folds the cases that property.py writes to its standard input, and prints what came out.
 *
 * A case is cut into pieces; the pieces are folded in a random order into a few partials, which are merged in a random
 * order, on every instruction set this machine has. libcured answers the case too, in this process: once from memory and
 * once as a stream of the pieces. The answers of the first way are printed; another's only where they differ. The array ends where its allocation ends, so that a sanitizer sees every access beyond it.
 *
 * Thread: one. Owner: this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "kernels/core/big.h"
#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/core/prod.h"
#include "kernels/cpu/fold.h"
#include "tests/property/cases.h"

enum { MAGIC = 0x63757265, MAX_OPS = 32, MAX_LINES = MAX_OPS + 4, MAX_PARTIALS = 5, LINE = 2048 };

/* As property.py packs it. */
typedef struct header {
    uint32_t magic, dtype, ops, nan, overflow, result_dtype, misalign, pieces;
    uint64_t n, ddof, order;
} header;

static void *get(size_t bytes) { return must(malloc(bytes ? bytes : 1)); }

/* Folds and merges one case in the order that h->order chooses; some partials take only what is wanted of the extrema. */
static void fold_case(const header *h, const uint8_t *data, const uint64_t *ends, uint32_t families, uint32_t wants,
                      cr_partial *out) {
    cr_dtype dtype = (cr_dtype)h->dtype;
    size_t size = cr_dtype_size(dtype);
    cr_partial partials[MAX_PARTIALS];
    uint32_t *order = get(h->pieces * sizeof *order);
    random_state = h->order | 1;
    uint32_t live = 1 + (uint32_t)next_random(MAX_PARTIALS);
    for (uint32_t i = 0; i < live; i++) {
        cr_partial_init(&partials[i], dtype, families);
        if (h->order >> (i + 1) & 1) cr_partial_want(&partials[i], wants);
    }
    for (uint32_t i = 0; i < h->pieces; i++) {
        uint32_t at = (uint32_t)next_random(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < h->pieces; i++) {
        uint64_t begin = order[i] ? ends[order[i] - 1] : 0, end = ends[order[i]];
        cr_cpu_fold(&partials[next_random(live)], data + begin * size, end - begin, begin);
    }
    while (live > 1) {
        uint32_t from = (uint32_t)next_random(live), into = (uint32_t)next_random(live - 1);
        if (into >= from) into++;
        cr_partial_merge(&partials[into], &partials[from]);
        partials[from] = partials[--live];
    }
    *out = partials[0];
    free(order);
}

static void print_hex(char **to, const uint8_t *bytes, unsigned len) {
    if (len == 0) *to += sprintf(*to, "-");
    for (unsigned i = 0; i < len; i++) *to += sprintf(*to, "%02x", bytes[i]);
}

static void describe(const cr_value *v, char *line) {
    line += sprintf(line, "%s %s %s ", cr_op_name(v->op), cr_status_name(v->error.code), cr_dtype_name(v->dtype));
    print_hex(&line, v->bytes, v->len);
    *line++ = ' ';
    print_hex(&line, v->at, v->at_len);
    sprintf(line, " %s", v->error.text);
}

/* An exact sum as it stands, "= sum GRID HEX": what rounding would hide shows here. */
static void describe_sum(const char *name, const int64_t *limb, unsigned count, int grid, char *line) {
    cr_big big;
    bool negative = cr_big_from_limbs(&big, limb, count);
    line += sprintf(line, "= %s %d %s0", name, grid, negative ? "-" : "");
    for (uint32_t i = big.n; i-- > 0;) line += sprintf(line, "%08x", big.d[i]);
}

/* The state of a product of floats, "= prod NANS ZEROS INFS SIGN H L EXPONENT" with h and l as bits. */
static void describe_prod(const cr_float_prod *p, char *line) {
    cr_prod_node root = cr_float_prod_root(p);
    uint64_t h, l;
    memcpy(&h, &root.h, sizeof h);
    memcpy(&l, &root.l, sizeof l);
    sprintf(line, "= prod %llu %llu %llu %d %016llx %016llx %lld", (unsigned long long)p->nans,
            (unsigned long long)p->zeros, (unsigned long long)p->infs, p->negative, (unsigned long long)h,
            (unsigned long long)l, (long long)root.exponent);
}

/* The op whose answer is the sum itself. */
static const char *name_of_sum(uint32_t family) {
    cr_op op = cr_op_next(CR_OP_NONE);
    while (cr_op_needs(op, CR_F64) != family || cr_op_result(op) != CR_RESULT_EXACT) op = cr_op_next(op);
    return cr_op_name(op);
}

static uint32_t describe_all(const header *h, const uint32_t *ops, const cr_partial *p, char lines[MAX_LINES][LINE]) {
    cr_finish_opts opts = {.nan = (cr_nan_policy)h->nan,
                           .overflow = (cr_overflow)h->overflow,
                           .result_dtype = (cr_dtype)h->result_dtype,
                           .ddof = h->ddof};
    cr_dtype dtype = (cr_dtype)h->dtype;
    uint32_t count = 0;
    for (; count < h->ops; count++) {
        cr_value v;
        cr_partial_finish(p, (cr_op)ops[count], &opts, &v);
        describe(&v, lines[count]);
    }
    for (unsigned at = 0; at < CR_SUMS; at++)
        if (p->families & cr_sum_rows[at].family)
            describe_sum(name_of_sum(cr_sum_rows[at].family), p->sums[at].limbs, cr_sum_limbs((cr_sum_at)at, dtype),
                         cr_sum_grid((cr_sum_at)at, dtype), lines[count++]);
    if (p->families & CR_FAM_PROD && cr_dtype_kind(dtype) == CR_KIND_FLOAT)
        describe_prod(&p->float_prod, lines[count++]);
    return count;
}

static cured_conn *embedded; /* NULL: libcured was built without */

/* As describe, of what libcured says. */
static void describe_value(const cured_value *v, char *line) {
    size_t len, at_len;
    cured_dtype at_dtype;
    cured_error error;
    cured_status status = cured_value_status(v, &error);
    const uint8_t *bytes = cured_value_bytes(v, &len), *at = cured_value_at(v, &at_dtype, &at_len);
    const char *dtype = cured_dtype_name(cured_value_dtype(v));
    line +=
        sprintf(line, "%s %s %s ", cured_op_name(cured_value_op(v)), cured_status_name(status), dtype ? dtype : "none");
    print_hex(&line, bytes, (unsigned)len);
    *line++ = ' ';
    print_hex(&line, at, (unsigned)at_len);
    sprintf(line, " %s", error.text);
}

/* Asks for the case by memory, or by its pieces. NULL: it was refused. */
static cured_call *ask(const header *h, const uint32_t *ops, const uint8_t *data, const uint64_t *ends, bool stream) {
    size_t size = cr_dtype_size((cr_dtype)h->dtype);
    cured_options o = CURED_OPTIONS_INIT;
    cured_op asked[MAX_OPS];
    cured_call *call;
    o.nan = (cured_nan)h->nan;
    o.overflow = (cured_overflow)h->overflow;
    o.result_dtype = (cured_dtype)h->result_dtype;
    o.ddof = h->ddof;
    for (uint32_t i = 0; i < h->ops; i++) asked[i] = (cured_op)ops[i];
    if (!stream) {
        cured_reduce_buffer(embedded, (cured_dtype)h->dtype, asked, h->ops, data, h->n, &o, &call, NULL);
    } else {
        cured_reduce_stream_begin(embedded, (cured_dtype)h->dtype, asked, h->ops, h->n * size, &o, &call, NULL);
        for (uint32_t i = 0; i < h->pieces; i++) {
            uint64_t begin = i ? ends[i - 1] : 0;
            cured_stream_write(call, data + begin * size, (ends[i] - begin) * size, NULL);
            cured_stream_drain(call, NULL);
        }
        cured_stream_end(call, NULL);
    }
    if (call && cured_wait(call, NULL) == CURED_OK) return call;
    cured_call_free(call);
    return NULL;
}

static void compare_embedded(const header *h, const uint32_t *ops, const uint8_t *data, const uint64_t *ends,
                             const char *isa, char lines[MAX_LINES][LINE]) {
    for (int stream = 0; embedded && stream < 2; stream++) {
        cured_call *call = ask(h, ops, data, ends, stream);
        if (!call) printf("! %s libcured refuses the case\n", isa);
        for (uint32_t i = 0; call && i < h->ops; i++) {
            char line[LINE];
            describe_value(cured_call_value(call, i), line);
            if (strcmp(lines[i], line) != 0) printf("! %s libcured%s %s\n", isa, stream ? ", by pieces:" : "", line);
        }
        cured_call_free(call);
    }
}

static void run_case(const header *h) {
    static char lines[MAX_LINES][LINE], again[MAX_LINES][LINE], generic[MAX_LINES][LINE];
    uint32_t ops[MAX_OPS], families = 0, wants = 0;
    size_t bytes = h->n * cr_dtype_size((cr_dtype)h->dtype);
    uint64_t *ends = get(h->pieces * sizeof *ends);
    uint8_t *block = get(h->misalign + bytes), *data = block + h->misalign;
    read_all(ops, h->ops * sizeof ops[0]);
    read_all(ends, h->pieces * sizeof *ends);
    read_all(data, bytes);
    for (uint32_t i = 0; i < h->ops; i++) {
        families |= cr_op_needs((cr_op)ops[i], (cr_dtype)h->dtype);
        wants |= cr_op_wants((cr_op)ops[i]);
    }
    bool first = true;
    for (size_t isa = 0; isa < sizeof isas / sizeof isas[0]; isa++) {
        if (cr_cpu_select(isas[isa], NULL) != CR_OK) continue;
        cr_partial p;
        if (first) { /* the generic ways, too */
            cr_fast_switch_off(UINT64_MAX);
            fold_case(h, data, ends, families, wants, &p);
            cr_fast_switch_off(0);
            describe_all(h, ops, &p, generic);
        }
        fold_case(h, data, ends, families, wants, &p);
        uint32_t count = describe_all(h, ops, &p, first ? lines : again);
        for (uint32_t i = 0; i < count; i++) {
            if (first) {
                printf("%s\n", lines[i]);
                if (strcmp(lines[i], generic[i]) != 0) printf("! without fast ways %s\n", generic[i]);
            } else if (strcmp(lines[i], again[i]) != 0) {
                printf("! %s %s\n", isas[isa], again[i]);
            }
        }
        first = false;
        compare_embedded(h, ops, data, ends, isas[isa], lines);
    }
    printf(".\n");
    free(block);
    free(ends);
}

int main(void) {
    header h;
    if (cured_connect("embedded:", NULL, &embedded, NULL) != CURED_OK) fprintf(stderr, "driver: no embedded:\n");
    while (fread(&h, sizeof h, 1, stdin) == 1) {
        if (h.magic != MAGIC || h.ops > MAX_OPS || h.pieces == 0) {
            fprintf(stderr, "driver: not a case\n");
            return 2;
        }
        run_case(&h);
    }
    cured_close(embedded);
    return 0;
}
