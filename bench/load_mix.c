/* load_mix: the kinds of calls that a load is mixed of: their text, their arrays, and the answers that are right.
 *
 * Thread: main. Owner: the mix owns arrays and files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/load.h"
#include "bench/options.h"
#include "kernels/core/dtype.h"

static const char *const input_names[LOAD_INPUTS] = {"bytes", "memfd", "file", "region"};
static const char *const describe_ops[] = {"count", "sum", "mean", "std", "min", "max", "argmin", "argmax"};

const char *load_input_name(load_input input) { return input_names[input]; }

static bool refuse(const char *text, const char *what) {
    fprintf(stderr, "cured-bench load: --mix %s: %s\n", text, what);
    return false;
}

static bool add_op(load_kind *kind, const char *name) {
    cured_error error;
    if (kind->op_count == CURED_MAX_OPS) return refuse(kind->text, "more than 32 ops");
    if (cured_op_parse(name, &kind->ops[kind->op_count], &error) != CURED_OK) return refuse(kind->text, error.text);
    kind->op_count++;
    return true;
}

static bool add_ops(load_kind *kind, char *names) {
    char *rest = NULL;
    for (char *name = strtok_r(names, "+", &rest); name; name = strtok_r(NULL, "+", &rest)) {
        if (strcmp(name, "describe") != 0) {
            if (!add_op(kind, name)) return false;
            continue;
        }
        for (size_t i = 0; i < sizeof describe_ops / sizeof *describe_ops; i++)
            if (!add_op(kind, describe_ops[i])) return false;
    }
    return kind->op_count ? true : refuse(kind->text, "no ops: sum, or sum+max, or describe");
}

static bool set_input(load_kind *kind, const char *name) {
    for (int i = 0; name && i < LOAD_INPUTS; i++)
        if (strcmp(name, input_names[i]) == 0) {
            kind->input = (load_input)i;
            return true;
        }
    return name ? refuse(kind->text, "an input is bytes, memfd, file or region") : true;
}

bool load_mix_add(load_mix *mix, const char *text) {
    char words[sizeof mix->kinds[0].text], *fields[6] = {0}, *rest = words, *end;
    cured_error error;
    if (mix->count == LOAD_MIX_MOST) return refuse(text, "more than 16 kinds of calls");
    if (strlen(text) >= sizeof words) return refuse(text, "it is longer than 127 bytes");
    load_kind *kind = &mix->kinds[mix->count];
    *kind = (load_kind){.weight = 1, .file = -1};
    strcpy(words, text);
    strcpy(kind->text, text);
    size_t n = 0;
    while (n < 6 && (fields[n] = strsep(&rest, ":"))) n++;
    if (n < 3 || n > 5) return refuse(text, "a kind of call is OPS:DTYPE:BYTES[:INPUT[:WEIGHT]], as sum:f32:4K");
    if (!add_ops(kind, fields[0]) || !set_input(kind, fields[3])) return false;
    if (cured_dtype_parse(fields[1], &kind->dtype, &error) != CURED_OK) return refuse(text, error.text);
    const size_t element = cured_dtype_size(kind->dtype);
    kind->bytes = bench_bytes(fields[2]) / element * element;
    if (!kind->bytes || kind->bytes > 1ull << 40) return refuse(text, "BYTES is at least one element, at most 1024G");
    if (fields[4]) kind->weight = strtoull(fields[4], &end, 10);
    if (fields[4] && (*end || !kind->weight || kind->weight > 1000000))
        return refuse(text, "WEIGHT is a number from 1 to 1000000");
    mix->weights += kind->weight;
    mix->count++;
    return true;
}

/* Any bits, but floats are finite: their exponents are -7 to 0. The last bytes of a length that is no multiple of 8 are 0. */
static void fill(load_kind *kind, uint64_t seed) {
    uint64_t *words = cured_array_data(kind->array), x = seed * 2654435761u + kind->bytes + 1;
    const uint64_t lanes16 = 0x0001000100010001u, lanes32 = 0x0000000100000001u;
    for (size_t i = 0; i < kind->bytes / 8; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        switch (cr_dtype_format((cr_dtype)kind->dtype)) {
            case CR_FORMAT_F8_E4M3:
            case CR_FORMAT_F8_E5M2:
                words[i] = x & 0xb7b7b7b7b7b7b7b7u;
                break;
            case CR_FORMAT_F16:
                words[i] = (x & lanes16 * 0x9fff) | lanes16 * 0x2000;
                break;
            case CR_FORMAT_BF16:
                words[i] = (x & lanes16 * 0x83ff) | lanes16 * 0x3c00;
                break;
            case CR_FORMAT_F32:
                words[i] = (x & lanes32 * 0x83ffffff) | lanes32 * 0x3c000000;
                break;
            case CR_FORMAT_F64:
                words[i] = (x & 0x807fffffffffffffu) | 0x3f80000000000000u;
                break;
            case CR_FORMAT_INT:
                words[i] = kind->dtype == CURED_BOOL ? x & 0x0101010101010101u : x;
        }
    }
}

/* A regular file of the array, without a name. */
static bool write_file(load_kind *kind, const char *dir) {
    char path[4096];
    const char *data = cured_array_data(kind->array);
    snprintf(path, sizeof path, "%s/cured-bench-XXXXXX", dir);
    kind->file = mkostemp(path, O_CLOEXEC);
    if (kind->file < 0) return refuse(kind->text, "--dir: no file can be made there");
    unlink(path);
    for (uint64_t done = 0; done < kind->bytes;) {
        const ssize_t n = write(kind->file, data + done, kind->bytes - done);
        if (n <= 0) return refuse(kind->text, "--dir: the file system has no room for the array");
        done += (uint64_t)n;
    }
    return true;
}

/* What this process answers, whose bits a daemon's must be. */
static bool expect(load_kind *kind, cured_conn *conn) {
    cured_call *call = NULL;
    cured_error error;
    bool good = cured_reduce_buffer(conn, kind->dtype, kind->ops, kind->op_count, cured_array_data(kind->array),
                                    kind->bytes / cured_dtype_size(kind->dtype), NULL, &call, &error) == CURED_OK &&
                cured_wait(call, &error) == CURED_OK;
    for (size_t i = 0; good && i < kind->op_count; i++) {
        load_expected *e = &kind->expected[i];
        const cured_value *value = cured_call_value(call, i);
        const void *bytes = cured_value_bytes(value, &e->bytes);
        e->status = cured_value_status(value, NULL);
        good = e->bytes <= sizeof e->value;
        if (good && bytes) memcpy(e->value, bytes, e->bytes);
    }
    cured_call_free(call);
    return good ? true : refuse(kind->text, error.text);
}

bool load_mix_fill(load_mix *mix, const char *dir, uint64_t seed) {
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    cured_conn *conn;
    cured_error error;
    options.threads = 0;
    if (cured_connect("embedded:", &options, &conn, &error) != CURED_OK) {
        fprintf(stderr, "cured-bench load: answers are checked against this process's own: %s\n", error.text);
        return false;
    }
    bool good = true;
    for (size_t i = 0; good && i < mix->count; i++) {
        load_kind *kind = &mix->kinds[i];
        const uint64_t count = kind->bytes / cured_dtype_size(kind->dtype);
        if (cured_array_alloc(kind->dtype, count, &kind->array, &error) != CURED_OK)
            good = refuse(kind->text, error.text);
        if (good) fill(kind, seed);
        good = good && (kind->input != LOAD_FILE || write_file(kind, dir)) && expect(kind, conn);
    }
    cured_close(conn);
    return good;
}

void load_mix_free(load_mix *mix) {
    for (size_t i = 0; i < mix->count; i++) {
        cured_array_free(mix->kinds[i].array);
        if (mix->kinds[i].file >= 0) close(mix->kinds[i].file);
    }
}
