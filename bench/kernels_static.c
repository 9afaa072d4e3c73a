/* kernels_static: for bundles alone. The static libstdc++ that Thrust and CUB bring holds std::random_device, which nobody here uses
 * and which wants arc4random, of glibc 2.36: with one of our own the program starts where that is not.
 *
 * Thread: none. */
#include <stdint.h>
#include <stdlib.h>

uint32_t arc4random(void);

uint32_t arc4random(void) { abort(); }
