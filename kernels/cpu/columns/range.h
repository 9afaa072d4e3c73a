/* range: folding and finishing ranges of columns held in strips. Private to kernels/cpu.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#ifndef CURED_KERNELS_CPU_COLUMNS_RANGE_H
#define CURED_KERNELS_CPU_COLUMNS_RANGE_H

#include "kernels/cpu/axis/plan.h"

/* Columns [begin, end) of plan->width, in strips; begin is a multiple of CR_STRIP. */
typedef struct cr_columns_range {
    uint64_t begin, end;
} cr_columns_range;

/* Folds those of count elements at data (element `at` of the block and on) that lie in range into its strips. mask begins with the block. */
void cr_columns_fold_range(const cr_axis_plan *plan, const cr_axis_isa *isa, void *strips, cr_columns_range range,
                           const uint8_t *data, const cr_mask *mask, uint64_t count, uint64_t at);
/* Answers of the array's columns [first, first + count) to out[k][to …]; output numbers the first. */
cr_status cr_columns_finish_range(const cr_axis_plan *plan, const cr_axis_isa *isa, const void *strips,
                                  cr_columns_range range, uint64_t first, uint64_t count, uint64_t output,
                                  void *const out[], uint64_t to, cr_error *error);

/* Columns [first, first + count) of a narrow array, at most CR_STRIP_PAD, each added up from all columns of the strips that belong to it, in a
 * strip of the room's plan. */
enum {
    CR_DIGITS_MOST = 43 + 43 + 83, /* of all sums of f64 */
    CR_ROOM_WORDS = CR_DIGITS_MOST + 3 * CR_KNOWN_SUMS + 13
};
typedef struct cr_columns_room {
    _Alignas(64) uint8_t bytes[sizeof(cr_strip) + CR_ROOM_WORDS * CR_STRIP_PAD * sizeof(uint64_t)];
    cr_axis_plan plan;
} cr_columns_room;
cr_strip *cr_columns_narrow(cr_columns_room *room, const cr_axis_plan *plan, const void *strips, uint64_t first,
                            unsigned count);

/* Of a state of sums of columns (cr_columns_init): one column as a partial; and Σ of columns [first, first + count), at most CR_STRIP_PAD
 * that do not cross a multiple of it, as of rows. False: that is not known, because there are NaNs or infinities, or it is a row. */
void cr_columns_partial(const cr_axis_spec *spec, const void *state, uint64_t column, cr_partial *p);
bool cr_columns_sums(const cr_axis_spec *spec, const void *state, uint64_t first, unsigned count,
                     struct cr_row_sums *sums);

#endif
