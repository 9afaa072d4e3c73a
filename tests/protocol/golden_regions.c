/* golden_regions: the payloads of the golden files about regions. Thread: any. Owner: the caller's buffer. */
#include "tests/protocol/golden_regions.h"

#include "proto/wire.h"

static size_t reduce(uint8_t *out, cr_wire_reduce r) {
    cr_wire_call m = {.kind = CR_CALL_REDUCE, .reduce = r};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_call_region(uint8_t *out) {
    return reduce(out, (cr_wire_reduce){.dtype = 12,
                                        .op_count = 1,
                                        .ops = {1},
                                        .source = CR_SOURCE_REGION,
                                        .region = 7,
                                        .offset = 4096,
                                        .length_known = true,
                                        .length = 1024});
}

size_t golden_call_region_to_end(uint8_t *out) {
    return reduce(out,
                  (cr_wire_reduce){.dtype = 2, .op_count = 1, .ops = {4}, .source = CR_SOURCE_REGION, .region = 8});
}

static size_t register_region(uint8_t *out, uint32_t timeout_ms, cr_wire_region region) {
    const bool cuda = region.kind == CR_SHARED_CUDA_IPC || region.kind == CR_SHARED_CUDA_DESCRIPTOR;
    for (uint8_t i = 0; cuda && i < CR_DEVICE_UUID_BYTES; i++) region.device[i] = (uint8_t)(0x10 + i);
    for (uint8_t i = 0; cuda && i < CR_DEVICE_HANDLE_BYTES; i++) region.handle[i] = i;
    for (uint8_t i = 0; cuda && i < CR_DEVICE_HANDLE_BYTES; i++) region.event[i] = (uint8_t)(64 + i);
    cr_wire_call m = {.timeout_ms = timeout_ms, .kind = CR_CALL_REGISTER, .region = region};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_call_register(uint8_t *out) {
    return register_region(out, 0, (cr_wire_region){.id = 7, .kind = CR_SHARED_DESCRIPTOR});
}

size_t golden_call_register_writable(uint8_t *out) {
    return register_region(out, 0, (cr_wire_region){.id = 8, .kind = CR_SHARED_DESCRIPTOR, .writable = true});
}

size_t golden_call_register_shm(uint8_t *out) {
    return register_region(out, 1000, (cr_wire_region){.id = 8, .kind = CR_SHARED_NAME, .name = "/frames.0"});
}

size_t golden_call_register_cuda(uint8_t *out) {
    return register_region(out, 0,
                           (cr_wire_region){.id = UINT64_C(1) << 32,
                                            .kind = CR_SHARED_CUDA_IPC,
                                            .has_handle = true,
                                            .has_event = true,
                                            .offset = 512,
                                            .bytes = UINT64_C(1) << 32});
}

size_t golden_call_register_cuda_descriptor(uint8_t *out) {
    return register_region(out, 0, (cr_wire_region){.id = 1, .kind = CR_SHARED_CUDA_DESCRIPTOR, .bytes = 2 << 20});
}

size_t golden_call_register_cuda_pool(uint8_t *out) {
    return register_region(
        out, 0, (cr_wire_region){.id = 2, .kind = CR_SHARED_CUDA_DESCRIPTOR, .has_handle = true, .bytes = 4096});
}

size_t golden_call_unregister(uint8_t *out) {
    cr_wire_call m = {.kind = CR_CALL_UNREGISTER, .region = {.id = 7}};
    return cr_wire_pack_call(&m, out, GOLDEN_CAP);
}

size_t golden_registered(uint8_t *out) {
    cr_wire_registered m = {.bytes = 8192};
    return cr_wire_pack_registered(&m, out, GOLDEN_CAP);
}

size_t golden_registered_read_only(uint8_t *out) {
    cr_wire_registered m = {.bytes = 8192, .read_only = true};
    return cr_wire_pack_registered(&m, out, GOLDEN_CAP);
}
