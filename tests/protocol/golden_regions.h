/* golden_regions: payloads of CALL and RESULT about regions, as the golden files have them. Each writes at most GOLDEN_CAP
 * bytes and returns how many. Thread: any. */
#ifndef CURED_TESTS_PROTOCOL_GOLDEN_REGIONS_H
#define CURED_TESTS_PROTOCOL_GOLDEN_REGIONS_H

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_CAP = 4096 };

size_t golden_call_region(uint8_t *out);
size_t golden_call_region_to_end(uint8_t *out);
size_t golden_call_register(uint8_t *out);
size_t golden_call_register_writable(uint8_t *out);
size_t golden_call_register_shm(uint8_t *out);
size_t golden_call_register_cuda(uint8_t *out);
size_t golden_call_register_cuda_descriptor(uint8_t *out);
size_t golden_call_register_cuda_pool(uint8_t *out);
size_t golden_call_unregister(uint8_t *out);
size_t golden_registered(uint8_t *out);
size_t golden_registered_read_only(uint8_t *out);

#endif
