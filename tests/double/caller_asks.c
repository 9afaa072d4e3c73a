/* caller_asks: see caller_asks.h. The elements are small whole numbers, so sums are known without another implementation.
 * Thread, owner: see there. */
#include "tests/double/caller_asks.h"

#include <stdio.h>
#include <string.h>

#include "cured/by_key.h"

const char *const asks_names[ASK_KINDS] = {"reduce",
                                           "start",
                                           "list",
                                           "parts",
                                           "types",
                                           "places",
                                           "each",
                                           "axis",
                                           "segments",
                                           "partial by key",
                                           "told axis",
                                           "enqueued sum",
                                           "enqueued row",
                                           "enqueued axis",
                                           "enqueued segments",
                                           "enqueued segments of the host's",
                                           "enqueued list",
                                           "linear form",
                                           "captured",
                                           "captured row",
                                           "captured list",
                                           "captured segments",
                                           "captured linear form"};

const char *asks_fault = "none";

enum { DEVICES = 2, TURNS = 2, VECTOR = 64, ROW = ASKS_COUNT / ASKS_ROWS, PART = ASKS_COUNT / ASKS_ARRAYS };

static int32_t *arrays[DEVICES][TURNS]; /* of device memory */
static float *floats[DEVICES][TURNS];   /* the same numbers */
static double *doubles[DEVICES][TURNS]; /* and these */
static uint64_t *to[DEVICES];           /* device memory for answers, and a status behind them */
static int64_t *vectors[DEVICES];       /* of linear forms */
static double at_host[ASKS_ROWS];
static uint64_t borders[ASKS_ROWS + 1], *of_device[DEVICES]; /* of segments: rows */
static uint32_t *row_of[DEVICES];                            /* of each element */
static cured_values *found[ASKS_ARRAYS];
static size_t found_count;

static int32_t element(int device, int turn, size_t i) {
    return (int32_t)(i * 7 % 101) + (i == 777 ? 1000 : 0) + 13 * turn + 5 * device;
}
static double sum_of(int device, int turn, size_t from, size_t count) {
    double sum = 0;
    for (size_t i = from; i < from + count; i++) sum += element(device, turn, i);
    return sum;
}

bool asks_to_device(asks_kind kind) { return kind >= ASK_SUM; }

void asks_open(int device) {
    static int32_t numbers[ASKS_COUNT];
    static float same[ASKS_COUNT];
    static double wide[ASKS_COUNT];
    ck_assert_int_eq(cudaMalloc((void **)&to[device], (ASKS_ROWS + 1) * 8), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < ASKS_COUNT; i++) wide[i] = same[i] = (float)(numbers[i] = element(device, turn, i));
        ck_assert_int_eq(cudaMalloc((void **)&arrays[device][turn], sizeof numbers), 0);
        ck_assert_int_eq(cudaMalloc((void **)&floats[device][turn], sizeof same), 0);
        ck_assert_int_eq(cudaMalloc((void **)&doubles[device][turn], sizeof wide), 0);
        ck_assert_int_eq(cudaMemcpy(doubles[device][turn], wide, sizeof wide, cudaMemcpyHostToDevice), 0);
        ck_assert_int_eq(cudaMemcpy(arrays[device][turn], numbers, sizeof numbers, cudaMemcpyHostToDevice), 0);
        ck_assert_int_eq(cudaMemcpy(floats[device][turn], same, sizeof same, cudaMemcpyHostToDevice), 0);
    }
    for (size_t i = 0; i <= ASKS_ROWS; i++) borders[i] = i * ROW;
    ck_assert_int_eq(cudaMalloc((void **)&of_device[device], sizeof borders), 0);
    ck_assert_int_eq(cudaMemcpy(of_device[device], borders, sizeof borders, cudaMemcpyHostToDevice), 0);
    for (size_t i = 0; i < ASKS_COUNT; i++) numbers[i] = (int32_t)(i / ROW);
    ck_assert_int_eq(cudaMalloc((void **)&row_of[device], sizeof numbers), 0);
    ck_assert_int_eq(cudaMemcpy(row_of[device], numbers, sizeof numbers, cudaMemcpyHostToDevice), 0);
    ck_assert_int_eq(cudaMalloc((void **)&vectors[device], VECTOR * sizeof(int64_t)), 0);
    cudaMemset(to[device], 0, (ASKS_ROWS + 1) * 8);
    cudaDeviceSynchronize();
}

static void forget(void) {
    for (size_t i = 0; i < found_count; i++) cured_values_free(found[i]);
    found_count = 0;
}

static cured_status keep(cured_status status, size_t count) {
    if (status == CURED_OK) found_count = count;
    return status;
}

static cured_status start_and_finish(const cured_cuda_ask *ask, cured_error *error) {
    cured_cuda_call *call;
    cured_status status = cured_cuda_start(ask, &call, error);
    if (status != CURED_OK) return status;
    for (int i = 0; i < 3; i++) cured_cuda_done(call);
    return keep(cured_cuda_finish(call, found, error), 1);
}

static cured_status enqueue(const cured_cuda_ask *ask, int device, cured_error *error) {
    return cured_cuda_enqueue(ask, (void *const[]){to[device]}, to[device] + ASKS_ROWS, error);
}

static cured_status by_linear_form(const cured_cuda_ask *ask, int device, cured_error *error) {
    const cured_status status = cured_cuda_linear(ask, CURED_F32, vectors[device], NULL, error);
    if (status != CURED_OK) return status;
    return cured_cuda_from_linear(CURED_F32, ask->ops, 1, NULL, vectors[device], (void *const[]){to[device]},
                                  to[device] + ASKS_ROWS, ask->stream, error);
}

/* The sums of its rows are finished at once. */
static cured_status by_key(const cured_cuda_array *array, int device, void *stream, cured_error *error) {
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_MAX};
    const cured_keys keys = {row_of[device], ASKS_COUNT, CURED_U32, ASKS_ROWS, 1, false};
    cured_options options = CURED_OPTIONS_INIT;
    void *partial;
    size_t bytes;
    options.keys = &keys;
    const cured_cuda_ask ask = {sizeof ask, array, 1, ops, 2, &options, stream};
    cured_status status = cured_cuda_partial_by_key(&ask, &partial, &bytes, error);
    if (status == CURED_OK)
        status = cured_by_key_finish(partial, bytes, ops, 1, NULL, (void *const[]){at_host}, NULL, error);
    cured_by_key_free(partial);
    return status;
}

static bool is_of(asks_kind kind, asks_kind a, asks_kind b, asks_kind c) { return kind == a || kind == b || kind == c; }

cured_status asks_call(asks_kind kind, int device, int turn, void *stream, cured_error *error) {
    const cured_axis axis = {ASKS_ROWS, ROW, 1};
    cured_options along = CURED_OPTIONS_INIT;
    const cured_op op = kind == ASK_PLACES                                   ? CURED_OP_ARGMAX
                        : is_of(kind, ASK_PARTS, ASK_LARGEST, ASK_GRAPH_ROW) ? CURED_OP_MAX
                                                                             : CURED_OP_SUM;
    const bool mixed = kind == ASK_TYPES || kind == ASK_PLACES;
    const bool many =
        mixed || is_of(kind, ASK_LIST, ASK_PARTS, ASK_EACH) || is_of(kind, ASK_SUMS, ASK_GRAPH_LIST, ASK_LINEAR);
    cured_cuda_array list[ASKS_ARRAYS] = {{floats[device][turn], ASKS_COUNT, CURED_F32}};
    for (size_t i = 0; many && i < ASKS_ARRAYS; i++)
        list[i] = (cured_cuda_array){floats[device][turn] + i * PART, PART, CURED_F32};
    for (size_t i = 1; mixed && i < ASKS_ARRAYS; i += 2)
        list[i] = (cured_cuda_array){doubles[device][turn] + i * PART, PART, CURED_F64};
    if (kind == ASK_TOLD || is_of(kind, ASK_AXIS, ASK_ROWS, ASK_LARGEST))
        list[0].data = arrays[device][turn], list[0].dtype = CURED_I32;
    const bool rows = is_of(kind, ASK_AXIS, ASK_ROWS, ASK_TOLD),
               here = is_of(kind, ASK_BORDERS, ASK_GRAPH_BORDERS, ASK_BORDERS);
    const cured_offsets offsets = {here ? of_device[device] : borders, ASKS_ROWS + 1, CURED_U64};
    const bool segments = here || is_of(kind, ASK_SEGMENTS, ASK_COPIED, ASK_COPIED);
    along.axis = rows ? &axis : NULL;
    along.offsets = segments ? &offsets : NULL;
    const cured_cuda_ask ask = {sizeof ask, list, many ? ASKS_ARRAYS : 1, &op, 1, rows || segments ? &along : NULL,
                                stream};
    forget();
    switch (kind) {
        case ASK_REDUCE:
        case ASK_LIST:
        case ASK_PARTS:
        case ASK_TYPES:
        case ASK_PLACES:
            return keep(cured_cuda_reduce(&ask, found, error), 1);
        case ASK_START:
            return start_and_finish(&ask, error);
        case ASK_EACH:
            return keep(cured_cuda_reduce_each(&ask, found, error), ASKS_ARRAYS);
        case ASK_AXIS:
        case ASK_SEGMENTS:
            return cured_cuda_reduce_axis(&ask, (void *const[]){at_host}, error);
        case ASK_TOLD:
            return cured_cuda_reduce_to(&ask, (void *const[]){to[device]}, error);
        case ASK_KEYED:
            return by_key(list, device, stream, error);
        case ASK_LINEAR:
        case ASK_GRAPH_LINEAR:
            return by_linear_form(&ask, device, error);
        case ASK_SUM:
        case ASK_LARGEST:
        case ASK_ROWS:
        case ASK_BORDERS:
        case ASK_COPIED:
        case ASK_SUMS:
        case ASK_GRAPH:
        case ASK_GRAPH_ROW:
        case ASK_GRAPH_LIST:
        case ASK_GRAPH_BORDERS:
        case ASK_KINDS:
            return enqueue(&ask, device, error);
    }
    return CURED_INTERNAL;
}

static double number(const cured_values *values) {
    size_t bytes;
    double d;
    float f;
    const void *at = cured_value_bytes(cured_values_get(values, 0), &bytes);
    if (bytes == sizeof f) return memcpy(&f, at, sizeof f), f;
    memcpy(&d, at, sizeof d);
    return d;
}

static uint64_t place(const cured_values *values) {
    size_t bytes;
    uint64_t index = UINT64_MAX;
    const void *at = cured_value_bytes(cured_values_get(values, 0), &bytes);
    if (bytes == sizeof index) memcpy(&index, at, sizeof index);
    return index;
}

static bool rows_right(const void *answers, int device, int turn) {
    for (size_t i = 0; i < ASKS_ROWS; i++) {
        int64_t sum;
        memcpy(&sum, (const char *)answers + i * sizeof sum, sizeof sum);
        if ((double)sum != sum_of(device, turn, i * ROW, ROW)) return false;
    }
    return true;
}

static bool segments_right(const void *answers, int device, int turn) {
    for (size_t i = 0; i < ASKS_ROWS; i++) {
        double sum;
        memcpy(&sum, (const char *)answers + i * sizeof sum, sizeof sum);
        if (sum != sum_of(device, turn, i * ROW, ROW)) return false;
    }
    return true;
}

static bool largest_right(double largest, int device, int turn) {
    double most = 0;
    for (size_t i = 0; i < ASKS_COUNT; i++)
        if (element(device, turn, i) > most) most = element(device, turn, i);
    return largest == most;
}

bool asks_right(asks_kind kind, int device, int turn) {
    const double all = sum_of(device, turn, 0, ASKS_COUNT);
    double sum;
    int32_t whole;
    float part;
    if (asks_to_device(kind) && to[device][ASKS_ROWS] != 0) return false;
    switch (kind) {
        case ASK_REDUCE:
        case ASK_START:
        case ASK_LIST:
        case ASK_TYPES:
            return number(found[0]) == all;
        case ASK_PLACES:
            return place(found[0]) == 777;
        case ASK_PARTS:
            return largest_right(number(found[0]), device, turn);
        case ASK_EACH:
            for (size_t i = 0; i < ASKS_ARRAYS; i++)
                if (number(found[i]) != sum_of(device, turn, i * PART, PART)) return false;
            return true;
        case ASK_AXIS:
            return rows_right(at_host, device, turn);
        case ASK_SEGMENTS:
        case ASK_KEYED:
            return segments_right(at_host, device, turn);
        case ASK_ROWS:
        case ASK_TOLD:
            return rows_right(to[device], device, turn);
        case ASK_BORDERS:
        case ASK_COPIED:
        case ASK_GRAPH_BORDERS:
            return segments_right(to[device], device, turn);
        case ASK_LARGEST:
            memcpy(&whole, to[device], sizeof whole);
            return largest_right(whole, device, turn);
        case ASK_GRAPH_ROW:
            memcpy(&part, to[device], sizeof part);
            return largest_right(part, device, turn);
        case ASK_SUM:
        case ASK_SUMS:
        case ASK_LINEAR:
        case ASK_GRAPH_LINEAR:
        case ASK_GRAPH:
        case ASK_GRAPH_LIST:
        case ASK_KINDS:
            memcpy(&sum, to[device], sizeof sum);
            return sum == all;
    }
    return false;
}

void asks_do(asks_kind kind, int device, int turn, void *stream) {
    cured_error error = {.text = ""};
    cudaGraph_t graph;
    cudaGraphExec_t made;
    const bool captured = kind >= ASK_GRAPH;
    if (captured) ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
    const cured_status status = asks_call(kind, device, turn, stream, &error);
    ck_assert_msg(status == CURED_OK, "%s after %s failed: %s", asks_names[kind], asks_fault, error.text);
    if (captured) {
        ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), 0);
        ck_assert_int_eq(cudaGraphInstantiate(&made, graph, 0), 0);
        cudaGraphDestroy(graph);
        ck_assert_int_eq(cudaGraphLaunch(made, stream), 0);
    }
    if (asks_to_device(kind)) ck_assert_int_eq(cudaStreamSynchronize(stream), 0);
    ck_assert_msg(asks_right(kind, device, turn), "%s: wrong on device %d after %s failed", asks_names[kind], device,
                  asks_fault);
    if (captured) cudaGraphExecDestroy(made);
    cr_double_run(0); /* lets the graph's end come */
    forget();
}

void asks_begin(int devices, cudaStream_t *stream) {
    cr_double_seed(0);
    while (devices-- > 0) {
        cudaSetDevice(devices);
        asks_open(devices);
    }
    ck_assert_int_eq(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), 0);
}

cr_double_counts asks_counts(void) {
    cr_double_counts counts;
    cr_double_count(&counts);
    return counts;
}
