/* gpu_caller_keys: reductions of device memory by key, by offsets and along an axis, under masks, beside what the CPU says of each group's elements
 * gathered: keys of every type, in every order, few and many groups, keys outside, answers to host memory, to device memory and in a graph; and
 * partials by key, cut anywhere and merged, beside the bytes of the CPU's.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <stdlib.h>
#include <string.h>

#include "cured/by_key.h"
#include "kernels/core/axis.h"
#include "kernels/core/keys.h"
#include "kernels/core/mask.h"
#include "kernels/core/offsets.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/keys/keys.h"
#include "tests/gpu/gpu_caller.h"

enum { OPS = 8, KEYS_AT = 2 * CALLER_ROOM, MASK_AT = 4 * CALLER_ROOM, ANSWERS_AT = 64, ANSWERS = CALLER_ROOM / 8 };

/* What is reduced, and by what. */
typedef struct by_key {
    cured_dtype dtype;
    const uint8_t *host; /* the elements */
    cr_keys keys;        /* in host memory; of no type: offsets or the axis say where elements belong */
    cr_offsets offsets;  /* likewise */
    cr_shape by;
    cr_mask mask; /* likewise; of the elements */
    uint64_t n, offset;
    cured_op ops[OPS];
    size_t op_count;
} by_key;

static bool has_digest(const by_key *b) {
    for (size_t k = 0; k < b->op_count; k++)
        if (b->ops[k] == CURED_OP_DIGEST) return true;
    return false;
}

/* Of an answer, at most. */
static uint64_t answer_bytes(const by_key *b) { return has_digest(b) ? CR_DIGEST_BYTES : sizeof(uint64_t); }

static void put_key(uint8_t *keys, size_t size, uint64_t i, uint64_t key) { memcpy(keys + i * size, &key, size); }

/* Keys in an order that is drawn; a few are outside. */
static void draw_keys(uint8_t *keys, const cr_keys *of, bool outside) {
    const uint64_t way = caller_draw(6), n = of->count, groups = of->groups, size = cr_dtype_size(of->dtype),
                   run = 1 + caller_draw(caller_draw(2) ? 9 : 700), hot = caller_draw(groups);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t any = caller_draw(groups);
        const uint64_t key = way == 0   ? (uint64_t)((unsigned __int128)i * groups / n) /* sorted */
                             : way == 1 ? i / run % groups
                             : way == 2 ? (caller_draw(10) ? hot : any)
                             : way == 3 ? hot
                                        : any;
        put_key(keys, size, i, key);
    }
    for (uint64_t i = 0; outside && i < n; i += 1 + caller_draw(n))
        put_key(keys, size, i, caller_draw(2) ? groups + caller_draw(3) : UINT64_MAX - caller_draw(9));
}

/* The first key outside; n: there is none. */
static uint64_t first_outside(const cr_keys *keys) {
    uint64_t i = 0;
    while (i < keys->count && cr_keys_at(keys, i) < keys->groups) i++;
    return i;
}

/* The cell of element i; UINT64_MAX: none. */
static uint64_t cell_of(const by_key *b, uint64_t i) {
    if (b->mask.kind != CR_MASK_NONE && cr_mask_word(&b->mask, i, 1) == 0) return UINT64_MAX;
    if (b->offsets.dtype != CR_DTYPE_NONE) { /* few enough to look at all */
        uint64_t s = 0;
        while (s < b->offsets.count && cr_offsets_at(&b->offsets, s + 1) <= i) s++;
        return s < b->offsets.count && cr_offsets_at(&b->offsets, s) <= i ? s : UINT64_MAX;
    }
    if (b->keys.dtype == CR_DTYPE_NONE) return i / (b->by.n * b->by.inner) * b->by.inner + i % b->by.inner;
    const uint64_t key = cr_keys_at(&b->keys, i / b->keys.columns);
    return key < b->keys.groups ? key * b->keys.columns + i % b->keys.columns : UINT64_MAX;
}

/* What an index says of element i, which is of a cell. */
static uint64_t index_of(const by_key *b, uint64_t i) {
    if (b->offsets.dtype != CR_DTYPE_NONE) return i - cr_offsets_at(&b->offsets, cell_of(b, i));
    return b->keys.dtype == CR_DTYPE_NONE ? i / b->by.inner % b->by.n : i / b->keys.columns;
}

/* Where each cell's elements begin, gathered in `all`, and what indices say of them. */
static void gather(const by_key *b, uint8_t *all, uint64_t *indices, uint64_t *from) {
    const size_t size = cured_dtype_size(b->dtype);
    const uint64_t cells = cr_keys_answers(&b->keys);
    memset(from, 0, (cells + 2) * sizeof from[0]);
    for (uint64_t i = 0; i < b->n; i++)
        if (cell_of(b, i) < cells) from[cell_of(b, i) + 2]++;
    for (uint64_t g = 2; g < cells + 2; g++) from[g] += from[g - 1];
    for (uint64_t i = 0; i < b->n; i++) {
        const uint64_t cell = cell_of(b, i);
        if (cell >= cells) continue;
        indices[from[cell + 1]] = index_of(b, i);
        memcpy(all + from[cell + 1]++ * size, b->host + i * size, size);
    }
}

/* Whether all answers are those of the CPU; *lacks: some do not fit their type. */
static bool compare(const by_key *b, const cured_options *options, void *const *answers, bool *lacks) {
    static cr_partial partial;
    const size_t size = cured_dtype_size(b->dtype);
    const uint64_t cells = cr_keys_answers(&b->keys);
    const cr_finish_opts finish = {.nan = (cr_nan_policy)options->nan,
                                   .overflow = (cr_overflow)options->overflow,
                                   .result_dtype = (cr_dtype)options->result_dtype};
    uint8_t *all = malloc(b->n * size + 1);
    uint64_t *indices = malloc((b->n + 1) * sizeof indices[0]);
    uint64_t *from = malloc((cells + 2) * sizeof from[0]);
    uint32_t families = 0;
    cr_error error;
    bool right = true;
    *lacks = false;
    for (size_t k = 0; k < b->op_count; k++) families |= cr_op_needs((cr_op)b->ops[k], (cr_dtype)b->dtype);
    gather(b, all, indices, from);
    for (uint64_t g = 0; g < cells; g++) {
        cr_partial_init(&partial, (cr_dtype)b->dtype, families);
        cr_cpu_fold(&partial, all + from[g] * size, from[g + 1] - from[g], 0);
        for (size_t k = 0; k < b->op_count; k++) {
            const cr_finish_opts own = cr_finish_share((cr_op)b->ops[k], (cr_dtype)b->dtype, &finish, NULL);
            const size_t each = cr_dtype_size(cr_axis_dtype((cr_op)b->ops[k], (cr_dtype)b->dtype, &own));
            uint8_t value[CR_DIGEST_BYTES] = {0};
            const bool fits = cr_axis_store(&partial, (cr_op)b->ops[k], &own, g, value, &error) == CR_OK;
            uint64_t place;
            memcpy(&place, value, sizeof place);
            if (fits && cr_op_is_index((cr_op)b->ops[k]) && place != UINT64_MAX)
                memcpy(value, &indices[from[g] + place], sizeof place);
            caller_run.checks++;
            *lacks |= !fits;
            right = right && (!fits || memcmp(value, (const uint8_t *)answers[k] + g * each, each) == 0);
        }
    }
    free(all);
    free(indices);
    free(from);
    return right;
}

/* To host memory: answers, or the first key outside. */
static void check_host(const by_key *b, const cured_cuda_ask *ask) {
    void *answers[OPS];
    cured_error error;
    cr_error wanted = {CR_OK, ""};
    const uint64_t outside = b->keys.drop ? b->keys.count : first_outside(&b->keys);
    for (size_t k = 0; k < b->op_count; k++) answers[k] = malloc(cr_keys_answers(&b->keys) * answer_bytes(b) + 1);
    const cured_status status = cured_cuda_reduce_axis(ask, answers, &error);
    if (outside < b->keys.count) {
        cr_keys_outside(&b->keys, outside, cr_keys_at(&b->keys, outside), &wanted);
        caller_run.checks++;
        if (status != CURED_INVALID_ARGUMENT || strcmp(error.text, wanted.text) != 0)
            caller_wrong("key outside", b->dtype, error.text, b->n, b->offset);
    } else {
        bool lacks;
        const bool right = compare(b, ask->options, answers, &lacks);
        if (!lacks) caller_good(status, &error, "by key");
        if (lacks != (status == CURED_OUT_OF_RANGE || status == CURED_INVALID_ARGUMENT) || (!lacks && !right))
            caller_wrong("by key", b->dtype, cured_op_name(b->ops[0]), b->n, b->offset);
    }
    for (size_t k = 0; k < b->op_count; k++) free(answers[k]);
}

/* To device memory, with a word of status. Of what is outside nobody else is told. */
static void check_device(const by_key *b, cured_cuda_ask *ask) {
    const bool host = ask->options->offsets != NULL && ask->options->offsets->data == b->offsets.data; /* of offsets */
    const bool captured = caller_draw(4) == 0 && !host, asked = caller_draw(8) != 0;
    const uint64_t bytes = cr_keys_answers(&b->keys) * answer_bytes(b);
    void *answers[OPS], *to[OPS];
    uint64_t state = 0;
    cured_error error;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    for (size_t k = 0; k < b->op_count; k++) to[k] = caller_run.beside + ANSWERS_AT + k * bytes;
    caller_cuda(cudaMemset(caller_run.beside, 0x5a, ANSWERS_AT + b->op_count * bytes), "memset");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    if (captured) {
        ask->stream = caller_run.streams[1];
        caller_cuda(cudaStreamBeginCapture(ask->stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    caller_good(cured_cuda_enqueue(ask, to, asked ? caller_run.beside : NULL, &error), &error, "enqueue by key");
    if (captured) {
        caller_cuda(cudaStreamEndCapture(ask->stream, &graph), "end");
        caller_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        caller_cuda(cudaGraphDestroy(graph), "destroy");
        for (int i = 0; i < 2; i++) caller_cuda(cudaGraphLaunch(replay, ask->stream), "launch");
    }
    caller_cuda(cudaStreamSynchronize(ask->stream), "synchronize");
    if (captured) caller_cuda(cudaGraphExecDestroy(replay), "destroy");
    caller_cuda(cudaMemcpy(&state, caller_run.beside, sizeof state, cudaMemcpyDeviceToHost), "copy");
    for (size_t k = 0; k < b->op_count; k++) {
        answers[k] = malloc(bytes + 1);
        caller_cuda(cudaMemcpy(answers[k], to[k], bytes, cudaMemcpyDeviceToHost), "copy");
    }
    bool lacks;
    const bool outside = !b->keys.drop && first_outside(&b->keys) < b->keys.count,
               right = compare(b, ask->options, answers, &lacks); /* what is outside is for no group */
    if ((asked && (state != 0) != (outside || lacks)) || !right)
        caller_wrong(captured ? "by key in a graph" : "by key to", b->dtype, cured_op_name(b->ops[0]), b->n, b->offset);
    for (size_t k = 0; k < b->op_count; k++) free(answers[k]);
}

/* ---- Partials ---- */

/* The CPU's, which is to be freed; NULL: a key is outside, as *error says. */
static uint8_t *partial_of_cpu(const by_key *b, uint64_t *length, cr_error *error) {
    cr_axis_spec spec = {.dtype = (cr_dtype)b->dtype};
    cr_by_key *state;
    uint8_t *bytes = NULL;
    uint64_t outside;
    for (size_t k = 0; k < b->op_count; k++) spec.families |= cr_op_needs((cr_op)b->ops[k], spec.dtype);
    const cr_view view = {b->host, b->mask, NULL};
    cr_status status = cr_by_key_new(&spec, &b->keys, CR_WANTS_ALL, &state, error);
    if (status == CR_OK) status = cr_by_key_fold(state, &view, b->n, 0, &outside, error);
    if (status == CR_OK) status = cr_by_key_pack(state, &bytes, length, error);
    cr_by_key_free(state);
    return bytes;
}

/* Of rows [from, to), on the device. The bytes are to be freed; NULL: it is wrong, or a key is outside. */
static void *partial_of_rows(const cured_cuda_ask *ask, uint64_t from, uint64_t to, size_t *bytes, cured_error *error) {
    cured_options options = *ask->options;
    cured_keys keys = *options.keys;
    cured_mask mask;
    cured_cuda_array array = ask->arrays[0];
    cured_cuda_ask part = *ask;
    void *partial;
    array.data = (const uint8_t *)array.data + from * keys.columns * cured_dtype_size(array.dtype);
    array.count = (to - from) * keys.columns;
    keys.data = (const uint8_t *)keys.data + from * cured_dtype_size(keys.dtype);
    keys.count = to - from;
    options.keys = &keys;
    options.nan = CURED_NAN_PROPAGATE; /* of these, whoever finishes it has what is said */
    options.overflow = CURED_OVERFLOW_ERROR;
    options.result_dtype = CURED_DTYPE_DEFAULT;
    if (options.mask != NULL) {
        mask = *options.mask;
        mask.first += from * keys.columns;
        mask.count = array.count;
        options.mask = &mask;
    }
    part.arrays = &array;
    part.options = &options;
    cured_cuda_partial_by_key(&part, &partial, bytes, error);
    return partial;
}

/* Of ops that have no partial, either. */
static void check_partial_refused(const by_key *b, cured_cuda_ask ask, cured_op op) {
    size_t bytes;
    cured_error error;
    ask.ops = &op;
    ask.op_count = 1;
    void *partial = partial_of_rows(&ask, 0, b->keys.count, &bytes, &error);
    if (partial != NULL || (error.code != CURED_UNIMPLEMENTED && error.code != CURED_INVALID_ARGUMENT) ||
        strstr(error.text, cured_op_name(op)) == NULL)
        caller_wrong("partial by key that there is not", b->dtype, error.text, b->n, b->offset);
    cured_by_key_free(partial);
}

/* The whole, or parts merged. */
static void check_partial(by_key *b, cured_cuda_ask ask) {
    const uint64_t rows = b->keys.count, cut = caller_draw(2) ? caller_draw(rows + 1) : rows;
    cured_bytes parts[2] = {{NULL, 0}, {NULL, 0}};
    cured_error error = {.text = ""};
    cr_error why = {CR_OK, ""};
    uint64_t length = 0;
    size_t count = 0, bytes = 0;
    void *merged = NULL;
    for (size_t k = 0; k < b->op_count; k++) {
        if (b->ops[k] == CURED_OP_PROD || cr_op_is_index((cr_op)b->ops[k]))
            check_partial_refused(b, ask, b->ops[k]);
        else
            b->ops[count++] = b->ops[k];
    }
    if (count == 0) b->ops[count++] = CURED_OP_COUNT;
    ask.op_count = b->op_count = count;
    uint8_t *wanted = partial_of_cpu(b, &length, &why);
    for (size_t i = 0; i < (cut < rows ? 2 : 1); i++) {
        void *part = partial_of_rows(&ask, i ? cut : 0, i ? rows : cut, &parts[i].bytes, &error);
        parts[i].data = part;
        if (part == NULL) break;
    }
    caller_run.checks++;
    if (wanted == NULL) {
        const bool says = cut == rows ? strcmp(why.text, error.text) == 0 : error.code == CURED_INVALID_ARGUMENT;
        if (!says) caller_wrong("partial of a key outside", b->dtype, error.text, b->n, b->offset);
    } else {
        caller_good(error.code, &error, "partial by key");
        if (cut == rows)
            bytes = parts[0].bytes;
        else
            caller_good(cured_by_key_merge(parts, 2, &merged, &bytes, &error), &error, "merge by key");
        if (bytes != length || memcmp(wanted, cut == rows ? parts[0].data : merged, bytes) != 0)
            caller_wrong("partial by key", b->dtype, cured_op_name(b->ops[0]), b->n, b->offset);
    }
    for (size_t i = 0; i < 2; i++) cured_by_key_free((void *)parts[i].data);
    cured_by_key_free(merged);
    free(wanted);
}

/* ---- Cases ---- */

/* How many groups there are: few, more than elements, or so many that no shared memory holds them. */
static uint64_t draw_groups(uint64_t n, uint64_t columns) {
    static const uint64_t some[] = {1, 2, 3, 16, 17, 100, 1000, 1024, 5000, 20000};
    const uint64_t groups = some[caller_draw(caller_draw(4) ? 6 : sizeof some / sizeof some[0])];
    const uint64_t most = ANSWERS / OPS / columns;
    return caller_draw(8) == 0 && n < most ? n + 1 : groups < most ? groups : most;
}

/* Of these elements, keys in an order that is drawn; their type holds them. */
static void draw_by_key(by_key *b, uint8_t *memory) {
    static const cured_dtype types[] = {CURED_I32, CURED_U32, CURED_I64, CURED_U64,
                                        CURED_I8,  CURED_U8,  CURED_I16, CURED_U16};
    const cr_dtype dtype = (cr_dtype)types[caller_draw(caller_draw(3) ? 4 : 8)];
    const uint64_t columns = caller_draw(4) ? 1 : 1 + caller_draw(40), size = cr_dtype_size(dtype);
    const uint64_t most = size == 1 ? 100 : size == 2 ? 30000 : UINT32_MAX;
    b->n -= b->n % columns;
    b->keys = (cr_keys){memory, b->n / columns, draw_groups(b->n, columns), columns, dtype, caller_draw(3) == 0};
    if (b->keys.groups > most) b->keys.groups = most;
    draw_keys(memory, &b->keys, caller_draw(4) == 0);
}

/* Segments, some of them empty, with gaps before the first and behind the last. */
static void draw_by_offsets(by_key *b, uint8_t *memory) {
    static const cured_dtype types[] = {CURED_I32, CURED_U32, CURED_I64, CURED_U64};
    const cr_dtype dtype = (cr_dtype)types[caller_draw(4)];
    const uint64_t count = 1 + caller_draw(caller_draw(3) ? 9 : 300), size = cr_dtype_size(dtype);
    uint64_t at = caller_draw(b->n / 4 + 1);
    for (uint64_t i = 0; i <= count; i++) {
        memcpy(memory + i * size, &at, size);
        if (caller_draw(4)) at += caller_draw((b->n - at) / (caller_draw(3) ? count : 1) + 1);
        if (i + 1 == count && caller_draw(2)) at = b->n;
    }
    b->offsets = (cr_offsets){memory, count, dtype};
    b->keys = (cr_keys){NULL, b->n, count, 1, CR_DTYPE_NONE, true};
}

/* A swath of the emulated GPU has so many elements of one output, at least. */
enum { OF_SWATH = 512 };

static void draw_by_axis(by_key *b, bool small) {
    const uint64_t inner = 1 + caller_draw(caller_draw(2) ? 1 : 40), outer = 1 + caller_draw(caller_draw(2) ? 1 : 40);
    b->by = (cr_shape){outer, b->n / (inner * outer), inner};
    if (small && b->by.n > OF_SWATH) b->by = (cr_shape){b->n / (inner * OF_SWATH), OF_SWATH, inner};
    if (small && cr_shape_elements(&b->by) == 0) b->by = (cr_shape){b->n, 1, 1};
    b->n = cr_shape_elements(&b->by);
    b->keys = (cr_keys){NULL, b->n, cr_shape_answers(&b->by), 1, CR_DTYPE_NONE, true};
}

static void draw_mask(by_key *b, uint8_t *memory) {
    const bool bits = caller_draw(2) != 0;
    const uint64_t first = caller_draw(2) ? caller_draw(20) : 0, often = 1 + caller_draw(20);
    for (uint64_t i = 0; i < first + b->n; i++) {
        const bool on = caller_draw(20) < often;
        if (bits)
            memory[i / 8] = (uint8_t)((memory[i / 8] & ~(1u << i % 8)) | (unsigned)on << i % 8);
        else
            memory[i] = on;
    }
    b->mask = (cr_mask){memory, first, bits ? CR_MASK_BITS : CR_MASK_BYTES, caller_draw(2) != 0};
}

/* What is beside the elements is copied to the device, where the options then name it. */
static void place_beside(const by_key *b, cured_options *options, cured_keys *keys, cured_offsets *offsets,
                         cured_mask *mask, cured_axis *axis) {
    const bool host = caller_draw(2) != 0; /* offsets may stay there */
    const cr_dtype dtype = b->offsets.dtype != CR_DTYPE_NONE ? b->offsets.dtype : b->keys.dtype;
    const uint8_t *from = b->offsets.dtype != CR_DTYPE_NONE ? b->offsets.data : b->keys.data;
    const uint64_t count = b->offsets.dtype != CR_DTYPE_NONE ? b->offsets.count + 1 : b->keys.count;
    uint8_t *to = caller_run.beside + KEYS_AT, *bits = caller_run.beside + MASK_AT;
    if (dtype != CR_DTYPE_NONE)
        caller_cuda(cudaMemcpy(to, from, count * cr_dtype_size(dtype), cudaMemcpyHostToDevice), "copy");
    if (b->mask.kind != CR_MASK_NONE)
        caller_cuda(cudaMemcpy(bits, b->mask.data, b->mask.first + b->n, cudaMemcpyHostToDevice), "copy");
    *keys = (cured_keys){to, b->keys.count, (cured_dtype)dtype, b->keys.groups, b->keys.columns, b->keys.drop};
    *offsets = (cured_offsets){host ? b->offsets.data : to, count, (cured_dtype)dtype};
    *axis = (cured_axis){b->by.outer, b->by.n, b->by.inner};
    *mask = (cured_mask){bits, b->n, b->mask.first, b->mask.kind == CR_MASK_BITS ? CURED_MASK_BITS : CURED_MASK_BYTES,
                         b->mask.leaves_out};
    if (b->offsets.dtype != CR_DTYPE_NONE)
        options->offsets = offsets;
    else if (b->keys.dtype != CR_DTYPE_NONE)
        options->keys = keys;
    else
        options->axis = axis;
    if (b->mask.kind != CR_MASK_NONE) options->mask = mask;
}

static void draw(by_key *b) {
    static const cured_dtype types[] = {CURED_F16, CURED_BF16, CURED_F32, CURED_F64};
    static const uint64_t lengths[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4096, 4099, 9000};
    static uint8_t memory[CALLER_ROOM], mask[CALLER_ROOM];
    const uint64_t most = caller_run.bytes / 8, way = caller_draw(6);
    const bool swaths = way == 0 && caller_draw(2) != 0;
    *b = (by_key){.dtype = caller_draw(6) ? types[caller_draw(4)]
                                          : (cured_dtype)(CURED_BOOL + caller_draw(CURED_I64 - CURED_BOOL + 1))};
    if (swaths && caller_draw(4) == 0) b->dtype = caller_draw(2) ? CURED_F8_E4M3 : CURED_F8_E5M2;
    b->offset = caller_draw(2) ? caller_draw(16) : 0;
    b->n = caller_draw(10) ? lengths[caller_draw(sizeof lengths / sizeof lengths[0])] : caller_draw(most);
    if (b->n > most) b->n = most;
    if (swaths && b->n == 0) b->n = 7;
    b->host = caller_run.host + b->offset;
    case_fill(caller_run.host + b->offset, b->n, (cr_dtype)b->dtype,
              caller_draw(3) ? DATA_NORMAL : (enum cr_data_kind)caller_draw(DATA_KINDS), caller_run.seed);
    if (way > 1)
        draw_by_key(b, memory);
    else if (way == 1)
        draw_by_offsets(b, memory);
    else
        draw_by_axis(b, swaths);
    if (way == 0 || caller_draw(3) == 0) draw_mask(b, mask);
    b->op_count = swaths ? caller_draw_swath_ops(b->dtype, b->ops)
                         : caller_draw_key_ops(b->dtype, way == 1 && b->mask.kind == CR_MASK_NONE, b->ops);
    if (way != 1 || b->mask.kind != CR_MASK_NONE || caller_draw(2)) return;
    b->ops[b->op_count < OPS ? b->op_count++ : OPS - 1] = CURED_OP_DIGEST;
    if (caller_draw(2)) b->ops[0] = CURED_OP_DIGEST, b->op_count = 1;
}

/* to_device: the answers go there, and otherwise anywhere. */
static void check(by_key *b, bool to_device) {
    cured_options options = CURED_OPTIONS_INIT;
    cured_keys keys;
    cured_offsets offsets;
    cured_mask mask;
    cured_axis axis;
    if (caller_draw(3) == 0 && cr_dtype_kind((cr_dtype)b->dtype) == CR_KIND_FLOAT && !has_digest(b))
        options.nan = CURED_NAN_SKIP;
    if (caller_draw(4) == 0 && b->ops[0] == CURED_OP_SUM) {
        options.result_dtype = CURED_F32;
        b->op_count = 1;
    }
    caller_cuda(
        cudaMemcpy(caller_run.device + b->offset, b->host, b->n * cured_dtype_size(b->dtype), cudaMemcpyHostToDevice),
        "copy");
    for (size_t k = 0; k < b->op_count; k++)
        if (b->ops[k] == CURED_OP_PROD && cr_dtype_kind((cr_dtype)b->dtype) != CR_KIND_FLOAT && caller_draw(2))
            options.overflow = CURED_OVERFLOW_WRAP;
    place_beside(b, &options, &keys, &offsets, &mask, &axis);
    caller_cuda(cudaDeviceSynchronize(), "synchronize"); /* streams that do not wait for the legacy one read it, too */
    const cured_cuda_array array = {caller_run.device + b->offset, b->n, b->dtype};
    cured_cuda_ask ask = caller_ask(&array, 1, b->ops, b->op_count, &options);
    if (options.keys != NULL && !to_device && caller_draw(3) == 0)
        check_partial(b, ask);
    else if (!to_device && (caller_draw(2) || (options.axis != NULL && b->n == 0)))
        check_host(b, &ask); /* of no elements no kernel answers along an axis */
    else
        check_device(b, &ask);
}

void caller_check_keys(void) {
    static by_key b;
    draw(&b);
    check(&b, false);
}

/* One key has a share of the elements, which registers keep, among groups that no shared memory holds; and where the extrema lie is read for
 * once more, behind the fold that finds them, with no host between. */
void caller_check_hot(void) {
    static const cured_dtype types[] = {CURED_F32, CURED_F16, CURED_F64, CURED_BF16, CURED_I32, CURED_U8, CURED_I64};
    static const cured_op every[] = {CURED_OP_ARGMIN, CURED_OP_ARGMAX, CURED_OP_MIN, CURED_OP_MAX, CURED_OP_PTP};
    static uint8_t memory[CALLER_ROOM];
    static by_key b;
    const uint64_t most = caller_run.bytes / 8, share = 1 + caller_draw(9), n = 5000 + caller_draw(5000);
    b = (by_key){.dtype = types[caller_draw(sizeof types / sizeof types[0])], .host = caller_run.host};
    b.n = n < most ? n : most;
    case_fill(caller_run.host, b.n, (cr_dtype)b.dtype, caller_draw(2) ? DATA_NORMAL : DATA_SPECIALS, caller_run.seed);
    b.keys = (cr_keys){memory, b.n, b.n / 2 + 1, 1, caller_draw(2) ? CR_I32 : CR_U64, false};
    const uint64_t hot = caller_draw(b.keys.groups), size = cr_dtype_size(b.keys.dtype);
    for (uint64_t i = 0; i < b.n; i++)
        put_key(memory, size, i, caller_draw(10) < share ? hot : caller_draw(b.keys.groups));
    const size_t first = caller_draw(2);
    b.op_count = 1 + caller_draw(5 - first);
    memcpy(b.ops, every + first, b.op_count * sizeof b.ops[0]);
    check(&b, true);
}
