// compare_cub: a program that starts, reads a file of float32, copies it to a GPU, asks CUB for the sum and ends, for scripts/compare, which
// compiles it where there are nvcc and a GPU. Thread: main. Owner: nothing outlives the process.
#include <cstdio>
#include <cub/cub.cuh>
#include <vector>

int main(int count, char **words) {
    FILE *file = count == 2 ? fopen(words[1], "rb") : nullptr;
    if (!file || fseek(file, 0, SEEK_END)) return 1;
    const size_t bytes = ftell(file), n = bytes / sizeof(float);
    rewind(file);
    std::vector<float> host(n);
    if (fread(host.data(), sizeof(float), n, file) != n) return 1;
    float *in, *out, answer;
    void *room = nullptr;
    size_t room_bytes = 0;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, sizeof *out);
    cudaMemcpy(in, host.data(), bytes, cudaMemcpyHostToDevice);
    cub::DeviceReduce::Sum(room, room_bytes, in, out, n);
    cudaMalloc(&room, room_bytes);
    cub::DeviceReduce::Sum(room, room_bytes, in, out, n);
    if (cudaMemcpy(&answer, out, sizeof answer, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    printf("%.9g\n", answer);
}
