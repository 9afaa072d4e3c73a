/* floors_gpu: see floors_gpu.h. Thread: main. Owner: the row. */
#include "bench/floors_gpu.h"

#include <stdlib.h>

extern const cr_gpu_api CURED_GPU_API;

enum { PIECE = 16 << 20 };

uint32_t floors_gpu_count(void) {
    cr_error why;
    return (uint32_t)CURED_GPU_API.count(&why);
}

bool floors_gpu_fail(const char *what, const char *why) {
    fprintf(stderr, "cured-bench: %s: %s\n", what, why);
    return false;
}

cr_status floors_gpu_await(floors_gpu *g, cr_error *error) {
    cr_status status = CR_OK;
    for (bool idle = false; status == CR_OK && !idle;) status = g->api->poll(g->stream, &idle, error);
    return status;
}

static cr_status fill(floors_gpu *g, cr_error *error) {
    void *host;
    cr_status status = g->api->host_alloc(g->gpu, PIECE, &host, error);
    if (status != CR_OK) return status;
    float *floats = host;
    for (uint64_t at = 0; at < g->bytes && status == CR_OK; at += PIECE) {
        uint64_t step = g->bytes - at < PIECE ? g->bytes - at : PIECE;
        for (uint64_t i = 0; i < step / sizeof *floats; i++)
            floats[i] = (float)(((at / 4 + i) * 2654435761u) >> 8 & 0xffffff) / 65536.0f - 128.0f;
        status = g->api->copy(g->stream, (char *)g->memory + at, host, step, error);
        if (status == CR_OK) status = floors_gpu_await(g, error);
    }
    g->api->host_free(g->gpu, host);
    return status;
}

bool floors_gpu_register(floors_gpu *g, uint32_t ordinal) {
    cr_error e;
    cured_error error;
    cr_status status = g->api->open(ordinal, &g->gpu, &e);
    if (status == CR_OK) status = g->api->stream_open(g->gpu, 1, &g->stream, &e);
    if (status == CR_OK) status = g->api->device_alloc(g->gpu, g->bytes, &g->memory, &e);
    if (status == CR_OK) status = fill(g, &e);
    if (status != CR_OK) return floors_gpu_fail("the GPU", e.text);
    if (cured_region_cuda_pointer(g->conn, g->memory, g->bytes, NULL, &g->region, &error) == CURED_OK &&
        cured_region_wait(g->region, &error) == CURED_OK)
        return true;
    return floors_gpu_fail("the region", error.text);
}

void floors_gpu_release(floors_gpu *g) {
    cured_region_free(g->region);
    cured_region_free(g->written);
    if (g->stream) g->api->stream_close(g->stream);
    for (int i = 0; i < 2; i++)
        if (g->to[i]) g->api->device_free(g->gpu, g->to[i]);
    if (g->memory) g->api->device_free(g->gpu, g->memory);
    if (g->gpu) g->api->close(g->gpu);
}

static bool gpu_open(void *context) {
    floors_gpu *g = context;
    cured_error error;
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    char address[128];
    snprintf(address, sizeof address, "unix:%s", g->options->socket);
    if (g->asleep) options.spin_us = CURED_NEVER_LOOK;
    if (cured_connect(address, &options, &g->conn, &error) != CURED_OK)
        return floors_gpu_fail("the connection", error.text);
    return floors_gpu_register(g, 0) && g->warm(context);
}

static void gpu_close(void *context) {
    floors_gpu *g = context;
    cured_close(g->conn);
    floors_gpu_release(g);
}

bool floors_gpu_row(const floors_options *options, const floors_row *row, const char *spin_us, bool *ran) {
    floors_options with = *options;
    floors_gpu *g = row->context;
    cr_error why;
    with.spin_us = spin_us;
    g->api = &CURED_GPU_API;
    g->options = &with;
    *ran = false;
    if (!bench_wanted(with.only, row->name)) return true;
    if (!g->api->count(&why)) {
        printf("%-36s not here: %s\n", row->name, why.text);
        return true;
    }
    *ran = floors_run_alone(&with, row, -1, gpu_open, gpu_close); /* a daemon before this process has a context */
    return *ran;
}
