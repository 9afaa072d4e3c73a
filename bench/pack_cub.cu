// pack_cub: CUB's segmented sum, for cured-bench pack. Thread: main. Owner: the caller.
#include <cub/device/device_segmented_reduce.cuh>

#include "bench/kernels_peer.h"

extern "C" int bench_cub_segments(void *temp, size_t *bytes, const void *in, void *out, uint32_t segments, const int *offsets,
                                  void *stream) {
    return (int)cub::DeviceSegmentedReduce::Sum(temp, *bytes, (const float *)in, (float *)out, (int)segments, offsets, offsets + 1,
                                                (cudaStream_t)stream);
}
