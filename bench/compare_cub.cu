// compare_cub: what CUB and Thrust make of float32, for scripts/compare, which compiles it where there are nvcc and a GPU.
//
//   compare_cub FILE          a program that starts, reads a file, copies it to a GPU, asks CUB for the sum and ends
//   compare_cub cub|thrust    for each line "BYTES SECONDS" of its input it sums an array in GPU memory for that long, and answers
//                             "MICROSECONDS ANSWER", as compare_gpu.py does: the median of a call, which ends with the sum on the host
//
// Thread: main. Owner: nothing outlives the process.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <vector>

// An array in GPU memory, and what CUB needs beside it.
struct sums {
    float *in, *out;
    void *room;
    size_t n, room_bytes;

    explicit sums(size_t count) : in(nullptr), out(nullptr), room(nullptr), n(count), room_bytes(0) {
        cudaMalloc(&in, n * sizeof *in);
        cudaMalloc(&out, sizeof *out);
        cub::DeviceReduce::Sum(room, room_bytes, in, out, n);
        cudaMalloc(&room, room_bytes);
    }
    ~sums() {
        cudaFree(in);
        cudaFree(out);
        cudaFree(room);
    }
    float cub_sum() const {
        float answer = 0;
        size_t bytes = room_bytes;
        cub::DeviceReduce::Sum(room, bytes, in, out, n);
        if (cudaMemcpy(&answer, out, sizeof answer, cudaMemcpyDeviceToHost) != cudaSuccess) exit(1);
        return answer;
    }
    float thrust_sum() const {
        const thrust::device_ptr<const float> from(in);
        return thrust::reduce(thrust::device, from, from + n);
    }
};

static int of_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return 1;
    const size_t bytes = ftell(file), n = bytes / sizeof(float);
    rewind(file);
    std::vector<float> host(n);
    if (fread(host.data(), sizeof(float), n, file) != n) return 1;
    const sums all(n);
    cudaMemcpy(all.in, host.data(), bytes, cudaMemcpyHostToDevice);
    printf("%.9g\n", all.cub_sum());
    return 0;
}

static void resident(size_t bytes, double seconds, bool with_cub) {
    using clock = std::chrono::steady_clock;
    const sums all(bytes / sizeof(float));
    std::vector<float> host(all.n, 0.1f);
    host.front() = 1e8f, host.back() = -1e8f;
    cudaMemcpy(all.in, host.data(), bytes, cudaMemcpyHostToDevice);
    float answer = 0;
    std::vector<double> times;
    for (int i = 0; i < 20; i++) answer = with_cub ? all.cub_sum() : all.thrust_sum();
    const auto end = clock::now() + std::chrono::duration<double>(seconds);
    while (clock::now() < end || times.size() < 10) {
        const auto start = clock::now();
        answer = with_cub ? all.cub_sum() : all.thrust_sum();
        times.push_back(std::chrono::duration<double, std::micro>(clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    printf("%.2f %.9g\n", times[times.size() / 2], answer);
    fflush(stdout);
}

int main(int count, char **words) {
    if (count != 2) return 64;
    const bool with_cub = !strcmp(words[1], "cub");
    if (!with_cub && strcmp(words[1], "thrust")) return of_file(words[1]);
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) return 2;
    puts("ready");
    fflush(stdout);
    size_t bytes;
    double seconds;
    while (scanf("%zu %lf", &bytes, &seconds) == 2) resident(bytes, seconds, with_cub);
}
