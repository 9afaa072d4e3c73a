/* launch (emulated): how a kernel begins. Apart from the device's language, because a runtime with queues (tests/double) has types of its
 * own for CUDA's.
 *
 * Thread: one at a time. Owner: emulate.cc. */
#ifndef CURED_TESTS_GPU_EMULATE_LAUNCH_HH
#define CURED_TESTS_GPU_EMULATE_LAUNCH_HH

#include <functional>

/* Runs a kernel to its end. */
void cr_emulated_launch(unsigned blocks, unsigned threads, const std::function<void()> &kernel);

/* What a launch does: by itself the kernel runs at once; a runtime with queues (tests/double) takes it instead. Gives a cudaError_t. */
typedef int cr_emulated_taker(void *stream, unsigned blocks, unsigned threads, std::function<void()> kernel);
extern cr_emulated_taker *cr_emulated_take;

#endif
