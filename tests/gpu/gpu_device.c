/* gpu_device: what the GPU's tests begin and end with. See gpu_cases.h. Thread: one. Owner: the test. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/gpu_cases.h"

void case_check(cr_status status, const cr_error *error) {
    if (status == CR_OK) return;
    printf("failed: %s\n", error->text);
    exit(1);
}

case_device case_device_open(uint32_t slots, size_t bytes) {
    case_device on = {.gpu = NULL};
    cr_error error = {CR_OK, ""};
    void *host = NULL, *device = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cr_cuda.count(&error) == 0) {
        printf("skipped: no CUDA device (%s)\n", error.text);
        exit(77);
    }
    case_check(cr_cuda.open(0, &on.gpu, &error), &error);
    case_check(cr_cuda.stream_open(on.gpu, slots, &on.stream, &error), &error);
    case_check(cr_cuda.host_alloc(on.gpu, bytes, &host, &error), &error);
    case_check(cr_cuda.device_alloc(on.gpu, bytes, &device, &error), &error);
    on.host = host;
    on.device = device;
    return on;
}

void case_device_close(const case_device *on) {
    cr_cuda.stream_close(on->stream);
    cr_cuda.device_free(on->gpu, on->device);
    cr_cuda.host_free(on->gpu, on->host);
    cr_cuda.close(on->gpu);
}
