/* golden_axis: the golden messages of answers along an axis. Each writes at most GOLDEN_CAP bytes
 * and returns how many.
 *
 * Thread: the test's. Owner: the caller owns every buffer. */
#ifndef CURED_TESTS_PROTOCOL_GOLDEN_AXIS_H
#define CURED_TESTS_PROTOCOL_GOLDEN_AXIS_H

#include "tests/protocol/golden_regions.h"

size_t golden_call_axis_statuses(uint8_t *out);
size_t golden_call_axis_outputs(uint8_t *out);
size_t golden_call_mask(uint8_t *out);
size_t golden_call_beside_again(const uint8_t *in, size_t len, uint8_t *out);
size_t golden_call_segments(uint8_t *out);
size_t golden_call_keys(uint8_t *out);
size_t golden_call_merge_keyed(uint8_t *out);
size_t golden_call_parameters(uint8_t *out);
size_t golden_call_parameters_again(const uint8_t *in, size_t len, uint8_t *out);
size_t golden_call_second(uint8_t *out);
size_t golden_call_layout(uint8_t *out);
size_t golden_call_layout_again(const uint8_t *in, size_t len, uint8_t *out);
/* DATA of them: three floats, alone and behind what is beside them. */
size_t golden_floats(uint8_t *out);
size_t golden_masked_floats(uint8_t *out);
size_t golden_cut_floats(uint8_t *out);
size_t golden_grouped_floats(uint8_t *out);
size_t golden_paired_floats(uint8_t *out);
size_t golden_call_outputs_again(const uint8_t *in, size_t len, uint8_t *out);
size_t golden_result_written(uint8_t *out);
size_t golden_part(uint8_t *out);
size_t golden_part_statuses(uint8_t *out);
/* What is in the file, unpacked and packed. */
size_t golden_part_again(const uint8_t *in, size_t len, uint8_t *out);

#endif
