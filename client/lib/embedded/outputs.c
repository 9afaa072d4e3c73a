/* outputs: answers along an axis that go to regions, in this process: computed into the program's results, or memory of the
 * library's own, and written at the end. A mapping would end the process if somebody cut the memory.
 *
 * Thread: the one that uses the connection. Owner: the call. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/range.h"
#include "base/shared.h"
#include "client/lib/embedded/embedded.h"

cr_status cr_local_writable(int fd, cr_error *error) {
    struct stat st;
    const cr_status status = cr_shared_writable(fd, error);
    if (status != CR_OK) return status;
    if (fcntl(fd, F_GETFL) & O_APPEND)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "writable: the descriptor appends (O_APPEND), so answers could not be put where they belong");
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "writable: the memory has holes; fill them first (posix_fallocate)");
    return CR_OK;
}

cr_status cr_local_outputs(cured_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    cr_range_place places[CR_CALL_MAX_OPS], input = {.offset = r->offset};
    cr_cl_output output;
    const cr_error *why;
    for (uint32_t i = 0; cr_cl_outputs_get(call, i, &output); i++) {
        if (cr_cl_region_is(output.region, &why) != CR_REGION_OPEN)
            return cr_fail(error, why->code, "outputs[%u]: %.200s", i, why->text);
        places[i] = (cr_range_place){output.region, output.offset, cr_cl_array_bytes(call->array, i),
                                     cured_region_bytes(output.region)};
    }
    if (call->kind == KIND_REGION) {
        input.of = call->region;
        input.size = cured_region_bytes(call->region);
        input.bytes =
            call->elements != UINT64_MAX ? call->elements * cr_dtype_size((cr_dtype)r->dtype) : input.size - r->offset;
    }
    cr_status status = cr_range_outputs(places, call->value_count, &input, error);
    if (status != CR_OK || cr_cl_array_own(call->array)) return status;
    return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the answers");
}

static cr_status write_all(int fd, const uint8_t *from, uint64_t bytes, uint64_t offset, cr_error *error) {
    struct stat st;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < offset + bytes)
        return cr_fail(error, CR_DATA_LOSS, "outputs: the region was cut after it was registered");
    while (bytes != 0) {
        ssize_t n = pwrite(fd, from, (size_t)bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return cr_fail(error, CR_DATA_LOSS, "outputs: cannot write into the region: %s",
                           strerror(n < 0 ? errno : EIO));
        from += n;
        offset += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return CR_OK;
}

cr_status cr_local_write_outputs(cured_call *call, cr_error *error) {
    cr_cl_output output;
    cr_status status = CR_OK;
    if (call->outputs == NULL || cr_cl_array_has_results(call->array)) return CR_OK; /* which is that memory */
    for (uint32_t i = 0; status == CR_OK && cr_cl_outputs_get(call, i, &output); i++)
        status = write_all(cr_cl_region_descriptor(output.region), cr_cl_array_values(call->array, i),
                           cr_cl_array_bytes(call->array, i), output.offset, error);
    return status;
}
