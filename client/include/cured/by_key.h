/* by_key.h: partials by key: group-bys cut over files, processes and hosts. Each part of the rows gives bytes, which merge in any order
 * and number, and are finished to the answers of all rows, with the bits and statuses of one call by key (docs/PARTIALS.md, "By key").
 *
 *     const cured_keys keys = {key, rows, CURED_I32, groups, 1, false};
 *     cured_options options = CURED_OPTIONS_INIT;
 *     options.keys = &keys;
 *     options.partial = true;
 *     if (cured_reduce_buffer(conn, CURED_F32, ops, op_count, data, rows, &options, &call, &error) != CURED_OK) …
 *     part[0].data = cured_call_partial(call, &part[0].bytes);       when the call is done, and until it is freed
 *     …
 *     if (cured_by_key_merge(part, parts, &merged, &bytes, &error) != CURED_OK) …
 *     if (cured_by_key_finish(merged, bytes, ops, op_count, NULL, results, NULL, &error) != CURED_OK) …
 *
 * A call makes a partial by key where options has both keys and partial; mask and drop count as for answers. The parts of one array have
 * the same groups, columns, type and ops. They are made by connections to "embedded:" and to daemons, from memory, files, regions and
 * streams, and by cured_cuda_partial_by_key() (cured/cuda.h), from device memory. A daemon that is too old refuses (UNIMPLEMENTED).
 * cured_merge() has a daemon merge them. They have no positions: argmin and argmax are
 * INVALID_ARGUMENT, and nothing tells whether a part is missing or came twice. What a call by key refuses is refused here, too. A group
 * without elements takes no bytes; another takes 36 to some 2,000 a column, by its ops. RESOURCE_EXHAUSTED beyond 4 GiB. results,
 * outputs, on_part, statuses are INVALID_ARGUMENT with partial.
 *
 * Any thread; nothing here holds state. Bytes from anywhere may be given: what no rows could have given is INVALID_ARGUMENT with a
 * sentence, and another version of the form UNIMPLEMENTED. */
#ifndef CURED_BY_KEY_H
#define CURED_BY_KEY_H

#include "cured/cured.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a partial by key is of. */
typedef struct cured_by_key {
    cured_dtype dtype; /* of the array */
    uint64_t groups, columns;
    uint64_t count; /* elements seen, without those left out */
    uint64_t cells; /* of the groups · columns, those that have elements */
} cured_by_key;

/* Checks a partial by key, all of it, and says what it is of; NULL: not asked. */
CURED_API cured_status cured_by_key_check(const void *partial, size_t bytes, cured_by_key *of, cured_error *error);
/* Merges count of them, at least 1 (INVALID_ARGUMENT). *merged, with *bytes, is the caller's until cured_by_key_free(); NULL after an
 * error. INVALID_ARGUMENT also where types, ops, groups or columns differ: the sentence begins with which, as partials[2]. */
CURED_API cured_status cured_by_key_merge(const cured_bytes *partials, size_t count, void **merged, size_t *bytes,
                                          cured_error *error);
CURED_API void cured_by_key_free(void *merged);
/* Finishes ops: results[i] has room for groups · columns answers of ops[i], in C order, of the type that cured_axis_dtype() says. Of
 * options (NULL: defaults) nan, overflow, result_dtype and ddof count. With statuses, statuses[i] has room for as many bytes, each a
 * cured_status: an answer without a value is zeros there, or a NaN, or index 2^64 - 1, as cured_call_array_statuses() says. With NULL
 * such an answer fails the function, as it fails a call. INVALID_ARGUMENT where the partial was not made for one of the ops. After an
 * error some results may be written. */
CURED_API cured_status cured_by_key_finish(const void *partial, size_t bytes, const cured_op *ops, size_t op_count,
                                           const cured_options *options, void *const results[],
                                           uint8_t *const statuses[], cured_error *error);

#ifdef __cplusplus
}
#endif
#endif
