/* cuda_stream: an array in device memory, reduced in this process and in the order of its own stream: no daemon, and no copy to the host.
 *
 *     cc cuda_stream.c $(pkg-config --cflags --libs cured) -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart -o cuda_stream
 *     ./cuda_stream
 *
 * The stream fills the array, and the reductions stand behind that work, so this program waits nowhere before it asks. The first answers
 * go to device memory, where the stream's next kernel may use them, and nobody waits for them. The second ones come to the host, which
 * waits when it needs them. libcured-cuda is loaded by the first call (cured/cuda.h). Exit status 77: there is no CUDA device. */
#include <cuda_runtime_api.h>
#include <cured/cuda.h>
#include <stdio.h>

enum { COUNT = 1 << 20 };

static int failed(const char *what, const cured_error *error) {
    fprintf(stderr, "%s: %s (%s)\n", what, error->text, cured_status_name(error->code));
    return 1;
}

static int no_cuda(const char *what, cudaError_t failure) {
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(failure));
    return 1;
}

/* Asks twice for a sum and a Euclidean norm; prints what came to device memory and what came to the host, which have the same bits. */
static int reduce(const float *device, double *answers, cudaStream_t stream) {
    const cured_cuda_array array = {device, COUNT, CURED_F32};
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_NORM2};
    const cured_cuda_ask ask = {
        .struct_bytes = sizeof ask, .arrays = &array, .array_count = 1, .ops = ops, .op_count = 2, .stream = stream};
    void *to[] = {answers, answers + 1};
    char text[2][CURED_TEXT_BYTES];
    double there[2];
    cured_cuda_call *call;
    cured_values *values;
    cured_error error;
    if (cured_cuda_enqueue(&ask, to, NULL, &error) != CURED_OK) return failed("enqueue", &error);
    if (cured_cuda_start(&ask, &call, &error) != CURED_OK) return failed("start", &error);
    printf("asked: nothing was waited for\n"); /* other work of the host, and kernels of yours, would stand here */
    if (cured_cuda_finish(call, &values, &error) != CURED_OK) return failed("finish", &error);
    for (size_t i = 0; i < 2; i++) cured_value_text(cured_values_get(values, i), text[i], sizeof text[i]);
    cured_values_free(values);
    printf("on the host: sum %s, norm2 %s\n", text[0], text[1]);
    cudaError_t bad = cudaMemcpyAsync(there, answers, sizeof there, cudaMemcpyDeviceToHost, stream);
    if (bad == cudaSuccess) bad = cudaStreamSynchronize(stream);
    if (bad != cudaSuccess) return no_cuda("answers", bad);
    printf("on the device: sum %.17g, norm2 %.17g\n", there[0], there[1]);
    return 0;
}

int main(void) {
    cudaStream_t stream;
    float *device, *host;
    double *answers;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "no CUDA device\n");
        return 77;
    }
    cudaError_t bad = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (bad == cudaSuccess) bad = cudaMalloc((void **)&device, COUNT * sizeof *device);
    if (bad == cudaSuccess) bad = cudaMalloc((void **)&answers, 2 * sizeof *answers);
    if (bad == cudaSuccess) bad = cudaMallocHost((void **)&host, COUNT * sizeof *host);
    if (bad != cudaSuccess) return no_cuda("device memory", bad);
    for (int i = 0; i < COUNT; i++) host[i] = (float)(i % 1024);
    bad = cudaMemcpyAsync(device, host, COUNT * sizeof *device, cudaMemcpyHostToDevice, stream);
    if (bad != cudaSuccess) return no_cuda("copy", bad);

    const int status = reduce(device, answers, stream);

    cured_cuda_trim(); /* the stream's workspace */
    cudaFreeHost(host);
    cudaFree(answers);
    cudaFree(device);
    cudaStreamDestroy(stream);
    return status;
}
