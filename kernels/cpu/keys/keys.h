/* keys: the CPU's folds by key. A state holds what is known of every cell, a cell being one column of one group; rows are added to it
 * in any order, states merge, and a cell's answer has the bits that its elements have when they are reduced alone.
 *
 * An exact sum of a cell is two digits (or four) of 36 bits in 64, at a place that the first data choose for all cells; what does not
 * fit there goes to limbs, an array of one for each cell, which is made when a first element needs it. So a sum of f64 takes 16
 * bytes a group, and 8 more for each 32 bits that outliers reach. More than CR_KEYS_STATE_LOG2 is refused. A sum without kernels of its own
 * has no digits, and goes to the limbs by powers of its elements (family/power.h). A pair of which a term does not fit goes there by its
 * terms (family/pair.h).
 *
 * Ops by rank have no state but the numbers of elements. By these a copy of the elements is laid out by cells, whose segments are ranked as
 * those by offsets are (kernels/cpu/order.h).
 *
 * Thread: a state is used by one thread at a time. Owner: whoever made it. The state allocates. */
#ifndef CURED_KERNELS_CPU_KEYS_KEYS_H
#define CURED_KERNELS_CPU_KEYS_KEYS_H

#include "kernels/core/keys.h"
#include "kernels/core/view.h"
#include "kernels/cpu/axis.h"

typedef struct cr_by_key cr_by_key;

/* Of the spec dtype, families, op_count, ops, finish and statuses count; without ops it is the state of a partial; wants: CR_WANTS_... of the ops. RESOURCE_EXHAUSTED, naming
 * the limit, where the states of so many groups are beyond it. */
cr_status cr_by_key_new(const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants, cr_by_key **state,
                        cr_error *error);
void cr_by_key_free(cr_by_key *state);
/* Folds count elements, the first of which is element `at` of the input. The view's mask begins with that element, too. After an error
 * the state is only good to be freed. An error of a key outside is that of the first here: *outside is its number; else UINT64_MAX. */
cr_status cr_by_key_fold(cr_by_key *state, const cr_view *view, uint64_t count, uint64_t at, uint64_t *outside,
                         cr_error *error);
/* Of a spec with ops by rank, whose state is the only one, once all is folded: the elements of each cell are brought together, in a copy. They
 * are given once more, in any parts. RESOURCE_EXHAUSTED. */
cr_status cr_by_key_rank(cr_by_key *state, cr_error *error);
void cr_by_key_put(cr_by_key *state, const cr_view *view, uint64_t count, uint64_t at);
/* Adds from, which is of the same spec and keys and of other elements; from is only good to be freed then. */
cr_status cr_by_key_merge(cr_by_key *into, cr_by_key *from, cr_error *error);
/* Answers [first, first + count) to out[k][0 … count), as cr_columns_finish. */
cr_status cr_by_key_finish(const cr_by_key *state, uint64_t first, uint64_t count, void *const out[], cr_error *error);
/* Its partial by key (kernels/core/keyed.h), of a spec without ops, which are those of whoever finishes it; wants was CR_WANTS_ALL.
 * *bytes is the caller's. RESOURCE_EXHAUSTED. */
cr_status cr_by_key_pack(const cr_by_key *state, uint8_t **bytes, uint64_t *length, cr_error *error);
/* Bytes that a state has when it is made, and the most that it may come to have; with ops by rank the copy is among both. RESOURCE_EXHAUSTED as cr_by_key_new, without memory. */
cr_status cr_by_key_measure(const cr_axis_spec *spec, const cr_keys *keys, uint32_t wants, uint64_t *first,
                            uint64_t *most, cr_error *error);
/* From now on the state comes to have no more than so many bytes, which it does not have yet. */
void cr_by_key_bound(cr_by_key *state, uint64_t bytes);

#endif
