/* cuda_pointer: an array that lies in device memory, reduced there by the daemon: no byte leaves the GPU.
 *
 *     cc cuda_pointer.c $(pkg-config --cflags --libs cured) -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart -o cuda_pointer
 *     ./cuda_pointer [ADDRESS]
 *
 * The array is filled by a stream while this program goes on, with an event behind the work: the daemon begins a reduction when the event has
 * fired, so nobody waits here before asking. Any pointer into the allocation will do. At the end the sums of the array's rows go to device
 * memory, too: the GPU writes them there. Exit status 77: there is no CUDA device. */
#include <cuda_runtime_api.h>
#include <cured/cured.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20, PART = 1000, ROWS = 1024 };

static int failed(const char *what, const cured_error *error) {
    fprintf(stderr, "%s: %s (%s)\n", what, error->text, cured_status_name(error->code));
    return 1;
}

static int no_cuda(const char *what, cudaError_t failure) {
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(failure));
    return 1;
}

static int print(cured_region *region, uint64_t count) {
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMAX};
    char text[2][CURED_TEXT_BYTES];
    cured_call *call;
    cured_error error;
    if (cured_region_reduce(region, CURED_F32, ops, 2, 0, count, NULL, &call, &error) != CURED_OK ||
        cured_wait(call, &error) != CURED_OK)
        return failed("reduce", &error);
    for (int i = 0; i < 2; i++) cured_value_text(cured_call_value(call, i), text[i], sizeof text[i]);
    printf("sum %s, largest at %s\n", text[0], text[1]);
    cured_call_free(call);
    return 0;
}

/* The sums of the rows, as doubles; prints the last. */
static int sum_rows(cured_conn *conn, cured_region *region) {
    const cured_op op = CURED_OP_SUM;
    const cured_axis axis = {ROWS, COUNT / ROWS, 1};
    cured_options options = CURED_OPTIONS_INIT;
    cured_output output = {NULL, 0};
    cured_call *call = NULL;
    cured_error error;
    double *sums, last;
    cudaError_t bad = cudaMalloc((void **)&sums, ROWS * sizeof *sums);
    if (bad != cudaSuccess) return no_cuda("device memory", bad);
    options.axis = &axis;
    options.outputs = &output;
    if (cured_region_cuda_pointer_writable(conn, sums, ROWS * sizeof *sums, NULL, &output.region, &error) != CURED_OK ||
        cured_region_reduce(region, CURED_F32, &op, 1, 0, COUNT, &options, &call, &error) != CURED_OK ||
        cured_wait(call, &error) != CURED_OK)
        return failed("rows", &error);
    cured_call_free(call);
    bad = cudaMemcpy(&last, sums + ROWS - 1, sizeof last, cudaMemcpyDeviceToHost); /* any kernel may read them now */
    if (bad != cudaSuccess) return no_cuda("rows", bad);
    printf("the last row's sum %.0f\n", last);
    if (cured_region_unregister(output.region, NULL, &call, &error) != CURED_OK || cured_wait(call, &error) != CURED_OK)
        return failed("unregister", &error);
    cured_call_free(call);
    cured_region_free(output.region);
    cudaFree(sums); /* nobody writes there any more */
    return 0;
}

int main(int argc, char **argv) {
    cured_conn *conn;
    cured_region *whole, *part;
    cured_error error;
    cudaStream_t stream;
    cudaEvent_t filled;
    float *device, *host;
    int devices = 0, status = 1;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "no CUDA device\n");
        return 77;
    }
    cudaError_t bad = cudaMalloc((void **)&device, COUNT * sizeof *device);
    if (bad == cudaSuccess) bad = cudaMallocHost((void **)&host, COUNT * sizeof *host);
    if (bad == cudaSuccess) bad = cudaStreamCreate(&stream);
    if (bad == cudaSuccess) bad = cudaEventCreateWithFlags(&filled, cudaEventInterprocess | cudaEventDisableTiming);
    if (bad != cudaSuccess) return no_cuda("device memory", bad);
    for (int i = 0; i < COUNT; i++) host[i] = (float)(i % 1024);

    if (cured_connect(argc > 1 ? argv[1] : NULL, NULL, &conn, &error) != CURED_OK) return failed("connect", &error);
    if (cured_region_cuda_pointer(conn, device, COUNT * sizeof *device, filled, &whole, &error) != CURED_OK ||
        cured_region_cuda_pointer(conn, device + 12345, PART * sizeof *device, filled, &part, &error) != CURED_OK)
        return failed("register", &error);
    for (int turn = 1; turn <= 3; turn++) { /* a kernel of yours would stand here */
        host[777] = 5000.0f * (float)turn;
        cudaMemcpyAsync(device, host, COUNT * sizeof *device, cudaMemcpyHostToDevice, stream);
        cudaEventRecord(filled, stream);
        status = print(whole, CURED_TO_END);
        if (status != 0) break;
        cudaStreamSynchronize(stream); /* before host changes again */
    }
    if (status == 0) status = print(part, PART);
    if (status == 0) status = sum_rows(conn, whole);

    cured_region_free(part);
    cured_region_free(whole);
    cured_close(conn); /* the daemon lets go of the memory before it is freed */
    cudaEventDestroy(filled);
    cudaStreamDestroy(stream);
    cudaFreeHost(host);
    cudaFree(device);
    return status;
}
