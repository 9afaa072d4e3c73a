/* keyed: partials by key as bytes (docs/PARTIALS.md, "By key", is the format): a head, and for each cell that has elements its number
 * and its share without a position, in the form of serial.h. A cell is one column of one group: cell group·columns + column.
 *
 * The form is canonical: the same elements give the same bytes, whatever their order and their split. Bytes are read a cell at a time,
 * and what is allocated goes by the bytes that are there, never by what a head claims.
 *
 * Thread: any; a writer or a reader is used by one at a time. Owner: the caller; a writer allocates, and its bytes are freed with free(). */
#ifndef CURED_KERNELS_CORE_KEYED_H
#define CURED_KERNELS_CORE_KEYED_H

#include "kernels/core/keys.h"
#include "kernels/core/serial.h"

enum {
    CR_KEYED_VERSION = 1,
    CR_KEYED_MAX_LOG2 = 32, /* of the bytes that a partial by key has at most */
    CR_KEYED_MAX_OPS = 32,
};

typedef struct cr_keyed {
    cr_dtype dtype;
    uint32_t families;
    uint64_t groups, columns; /* no more than cr_keys_check takes */
    uint64_t cells;           /* those that have elements */
} cr_keyed;

/* ---- Writing ---- */

typedef struct cr_keyed_writer {
    cr_keyed of;
    uint8_t *bytes;
    uint64_t length, room;
    uint64_t most; /* that it comes to have */
} cr_keyed_writer;

/* Begins bytes of that head, whose cells are counted as they come; of so many elements, or cells, at most, so that room is not made for
 * more. RESOURCE_EXHAUSTED: no memory. After an error of this or the next there is nothing to free. */
cr_status cr_keyed_begin(cr_keyed_writer *w, const cr_keyed *of, uint64_t elements, cr_error *error);
/* Adds a cell, which has elements and a higher number than the last. RESOURCE_EXHAUSTED also beyond the limit. */
cr_status cr_keyed_put(cr_keyed_writer *w, uint64_t cell, const cr_share *share, cr_error *error);
/* The bytes, which are the caller's from now on. */
uint8_t *cr_keyed_end(cr_keyed_writer *w, uint64_t *length);
/* Adds one as its bytes, which were checked. */
cr_status cr_keyed_put_bytes(cr_keyed_writer *w, uint64_t cell, const uint8_t *share, uint64_t bytes, cr_error *error);
void cr_keyed_drop(cr_keyed_writer *w);

/* The most bytes that one comes to have of so many elements, with that head: beyond 2^32 there is none. */
uint64_t cr_keyed_most(const cr_keyed *of, uint64_t elements);

/* ---- Reading ---- */

typedef struct cr_keyed_reader {
    cr_keyed of;
    const uint8_t *in;
    uint64_t at, length;
    uint64_t left, least; /* cells to come, and the lowest number of the next */
} cr_keyed_reader;

typedef struct cr_keyed_cell {
    uint64_t number, bytes;
    const uint8_t *share;
} cr_keyed_cell;

/* Whether these bytes begin as a partial by key; another kind may be a partial all the same. */
bool cr_keyed_is(const uint8_t *in, size_t length);
/* Begins to read; checks the head. INVALID_ARGUMENT, or UNIMPLEMENTED for another version. */
cr_status cr_keyed_open(cr_keyed_reader *r, const uint8_t *in, size_t length, cr_error *error);
/* The next cell, whose number was checked, but not its share. After the last *cell.share is NULL, and nothing follows. */
cr_status cr_keyed_next(cr_keyed_reader *r, cr_keyed_cell *cell, cr_error *error);
/* Takes the cell's share, and checks all that can be checked. */
cr_status cr_keyed_share(const cr_keyed *of, const cr_keyed_cell *cell, cr_share *share, cr_error *error);
/* Checks all cells. *n: elements in all, 2^63 − 1 at most. */
cr_status cr_keyed_check(const uint8_t *in, size_t length, cr_keyed *of, uint64_t *n, cr_error *error);

/* ---- What is done with them ---- */

typedef struct cr_keyed_bytes {
    const uint8_t *data;
    size_t length;
} cr_keyed_bytes;

/* Whether two merge: of the same type, families, groups and columns. */
cr_status cr_keyed_alike(const cr_keyed *a, const cr_keyed *b, cr_error *error);
/* Merges count partials, at least one. *which: the one that an error is of. *out is the caller's. */
cr_status cr_keyed_merge(const cr_keyed_bytes *parts, size_t count, uint8_t **out, uint64_t *length, size_t *which,
                         cr_error *error);
/* The same in steps (keyed_merge.c). The parts, and their list, stay the caller's, and where they are until the end. */
typedef struct cr_keyed_merger cr_keyed_merger;
cr_status cr_keyed_merger_new(const cr_keyed_bytes *parts, size_t count, cr_keyed_merger **merger, cr_error *error);
/* Bytes that a merger of so many parts takes, beside them and what it makes of them; UINT64_MAX: more than there are. */
uint64_t cr_keyed_merger_bytes(uint64_t parts);
/* So many steps more: to open a part is one, and to take a cell of a part is one, however many parts have that cell. *over: those were the
 * last. */
cr_status cr_keyed_merger_step(cr_keyed_merger *merger, uint64_t steps, bool *over, size_t *which, cr_error *error);
/* Elements in the cells that were merged, 2^63 − 1 at most. */
uint64_t cr_keyed_merger_elements(const cr_keyed_merger *merger);
/* Behind the last step: the bytes, which are the caller's from now on. */
uint8_t *cr_keyed_merger_end(cr_keyed_merger *merger, uint64_t *length);
/* Of a merger that goes no further: the bytes that it has made, *length of them, which are the caller's; NULL: there are none. */
uint8_t *cr_keyed_merger_take(cr_keyed_merger *merger, uint64_t *length);
/* merger may be NULL. Nothing but free() is left to do with one whose bytes were taken. */
void cr_keyed_merger_free(cr_keyed_merger *merger);

/* Whether all of these ops can be finished from it. */
cr_status cr_keyed_answers(const cr_keyed *of, const uint32_t *ops, uint32_t op_count, cr_error *error);
/* Finishes ops that it answers, CR_KEYED_MAX_OPS at most: out[k] has room for groups·columns answers of op k, of cr_axis_dtype; statuses[k] for as many bytes, or
 * statuses is NULL, and an answer without a value is an error. As the call by key of all the elements. */
cr_status cr_keyed_finish(const uint8_t *in, size_t length, const uint32_t *ops, uint32_t op_count,
                          const cr_finish_opts *opts, void *const out[], uint8_t *const statuses[], cr_error *error);
/* The same in steps, which the finisher's caller frees with free(). The bytes stay where they are. */
typedef struct cr_keyed_finisher cr_keyed_finisher;
cr_status cr_keyed_finisher_new(const uint8_t *in, size_t length, const uint32_t *ops, uint32_t op_count,
                                const cr_finish_opts *opts, cr_keyed_finisher **finisher, cr_error *error);
/* The next count answers of each op, no more than there are: out[k] and statuses[k] have room for those. */
cr_status cr_keyed_finish_next(cr_keyed_finisher *finisher, uint64_t count, void *const out[],
                               uint8_t *const statuses[], cr_error *error);
/* What is said of an op by the statuses of its answers, as a call says it; n: elements in all. CR_OK: each has a value. */
cr_status cr_keyed_say(const cr_keyed *of, uint64_t n, cr_op op, cr_dtype result_dtype, const uint8_t *statuses,
                       cr_error *error);

#endif
