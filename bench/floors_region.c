/* floors_region: memory that was registered once and is reduced again and again, beside a loop that reads the same mapping, and beside
 * the daemon's own fold of it in this process: what is lost to the latter is lost between the socket and the fold.
 *
 * Thread: main. Owner: the row. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "bench/floors.h"
#include "cured/cured.h"
#include "kernels/core/op.h"
#include "kernels/cpu/fold.h"

typedef struct region_row {
    const floors_options *options;
    cured_conn *conn;
    cured_array *array;
    cured_region *region;
    cured_dtype dtype;
    cured_op op;
    bool beside_fold;
    char floor[96];          /* its name */
    const cpu_floor *reader; /* NULL: the fold is the floor */
    uint64_t bytes, count;
    char expected[CURED_TEXT_BYTES];
    volatile uint64_t sink;
} region_row;

static void fill(region_row *r) {
    uint32_t *words = cured_array_data(r->array), state = 1;
    float *floats = cured_array_data(r->array);
    for (uint64_t i = 0; i < r->bytes / sizeof *words; i++) {
        state = state * 1664525u + 1013904223u;
        if (r->dtype == CURED_F32)
            floats[i] = (float)(state >> 8) / 65536.0f - 128.0f;
        else
            words[i] = state;
    }
}

static void fold(region_row *r, cr_partial *partial) {
    cr_partial_init(partial, (cr_dtype)r->dtype, cr_op_needs((cr_op)r->op, (cr_dtype)r->dtype));
    cr_partial_want(partial, cr_op_wants((cr_op)r->op));
    cr_cpu_fold(partial, cured_array_data(r->array), r->count, 0);
}

static double floor_seconds(region_row *r) {
    double start = bench_now();
    cr_partial partial;
    if (r->reader)
        r->sink = r->reader->run(cured_array_data(r->array), r->bytes);
    else
        fold(r, &partial);
    return bench_now() - start;
}

static double daemon_seconds(region_row *r) {
    cured_call *call = NULL;
    cured_error error;
    char text[CURED_TEXT_BYTES] = "";
    double start = bench_now();
    bool good = cured_region_reduce(r->region, r->dtype, &r->op, 1, 0, CURED_TO_END, NULL, &call, &error) == CURED_OK &&
                cured_wait(call, &error) == CURED_OK;
    double took = bench_now() - start;
    if (good) cured_value_text(cured_call_value(call, 0), text, sizeof text);
    cured_call_free(call);
    if (!r->expected[0]) memcpy(r->expected, text, sizeof text);
    if (good && strcmp(text, r->expected) == 0) return took;
    fprintf(stderr, "cured-bench: %s: %s, expected %s\n", cured_op_name(r->op), good ? text : error.text, r->expected);
    return -1;
}

static double measure(void *context, int floor) { return floor ? floor_seconds(context) : daemon_seconds(context); }

/* The answer of the same bytes sent through the socket, which the region's must equal. */
static bool ask_otherwise(region_row *r) {
    cured_call *call = NULL;
    cured_error error;
    bool good = cured_reduce_fd(r->conn, r->dtype, &r->op, 1, cured_array_fd(r->array), 0, CURED_TO_END, NULL, &call,
                                &error) == CURED_OK &&
                cured_wait(call, &error) == CURED_OK;
    if (good) cured_value_text(cured_call_value(call, 0), r->expected, sizeof r->expected);
    if (!good) fprintf(stderr, "cured-bench: %s\n", error.text);
    cured_call_free(call);
    return good;
}

static double reader_seconds(void *context, const cpu_floor *reader) {
    region_row *r = context;
    r->reader = reader;
    return floor_seconds(r);
}

static bool open_row(void *context) {
    region_row *r = context;
    cured_error error;
    char address[128];
    snprintf(address, sizeof address, "unix:%s", r->options->socket);
    floors_pin_client(r->options);
    bool good = cured_connect(address, NULL, &r->conn, &error) == CURED_OK &&
                cured_array_alloc(r->dtype, r->count, &r->array, &error) == CURED_OK &&
                cured_region_fd(r->conn, cured_array_fd(r->array), &r->region, &error) == CURED_OK;
    if (!good) fprintf(stderr, "cured-bench: %s\n", error.text);
    if (!good) return false;
    fill(r);
    if (!ask_otherwise(r)) return false;
    if (!r->beside_fold) {
        r->reader = cpu_floor_best(reader_seconds, r);
        snprintf(r->floor, sizeof r->floor, "%s over the same memory", r->reader->name);
    }
    return cr_cpu_select(r->options->isa, NULL) == CR_OK;
}

static void close_row(void *context) {
    region_row *r = context;
    cured_region_free(r->region);
    cured_close(r->conn);
    cured_array_free(r->array);
}

static bool run_row(const floors_options *o, const char *name, cured_dtype dtype, cured_op op, bool beside_fold,
                    double target) {
    region_row r = {.options = o, .dtype = dtype, .op = op, .beside_fold = beside_fold};
    r.count = o->file_bytes / cured_dtype_size(dtype);
    r.bytes = r.count * cured_dtype_size(dtype);
    strcpy(r.floor, "the fold in this process");
    const floors_row row = {name, "GB/s", r.floor, false, target, 0, r.bytes, measure, &r};
    return floors_run_alone(o, &row, -1, open_row, close_row);
}

bool floors_region_rows(const floors_options *o) {
    return run_row(o, "kept region, sum f32", CURED_F32, CURED_OP_SUM, false, 0.95) &&
           run_row(o, "kept region, argmax i32", CURED_I32, CURED_OP_ARGMAX, false, 0.95) &&
           run_row(o, "kept region, sum f32, beside the fold", CURED_F32, CURED_OP_SUM, true, 0);
}
