/* caller_asks: each kind of call of cured/cuda.h, of arrays whose answers are known, for tests over the runtime double.
 *
 * Thread: one. Owner: this file, of the arrays; the double's memory goes with the process. */
#ifndef CURED_TESTS_DOUBLE_CALLER_ASKS_H
#define CURED_TESTS_DOUBLE_CALLER_ASKS_H

#include <cuda_runtime_api.h>

#include "cured/cuda.h"
#include "tests/double/double.h"
#include "tests/unit/check_main.h"

typedef enum asks_kind {
    ASK_REDUCE,
    ASK_START,     /* and finish */
    ASK_LIST,      /* one answer of ASKS_ARRAYS arrays */
    ASK_PARTS,     /* the same, of an op that has no kernel for lists */
    ASK_TYPES,     /* one answer of arrays of two types */
    ASK_PLACES,    /* the same, of an op whose answer is a place */
    ASK_EACH,      /* an answer of each */
    ASK_AXIS,      /* to host memory */
    ASK_SEGMENTS,  /* the same, by offsets in host memory */
    ASK_KEYED,     /* a partial by key */
    ASK_TOLD,      /* along an axis, to device memory, which is waited for */
    ASK_SUM,       /* to device memory: a sum */
    ASK_LARGEST,   /* the largest element */
    ASK_ROWS,      /* along an axis */
    ASK_BORDERS,   /* by offsets in device memory */
    ASK_COPIED,    /* by offsets in host memory */
    ASK_SUMS,      /* of a list */
    ASK_LINEAR,    /* a sum by its linear form, of a list */
    ASK_GRAPH,     /* a sum, captured */
    ASK_GRAPH_ROW, /* the largest element, captured */
    ASK_GRAPH_LIST,
    ASK_GRAPH_BORDERS,
    ASK_GRAPH_LINEAR,
    ASK_KINDS
} asks_kind;
extern const char *const asks_names[ASK_KINDS];

enum { ASKS_COUNT = 20480, ASKS_ARRAYS = 40, ASKS_ROWS = 64 };

/* What failed before, for asks_do() to name. */
extern const char *asks_fault;

/* Whether the answers come to device memory. */
bool asks_to_device(asks_kind kind);
/* Makes arrays on the current device; the answers of turn 0 and 1 differ. Once for a device. */
void asks_open(int device);
/* Before a test: arrays on so many devices, of which the first is current, and a stream there that waits for no other. */
void asks_begin(int devices, cudaStream_t *stream);
/* What the double has counted so far. */
cr_double_counts asks_counts(void);
/* The call alone; what it found is kept for asks_check(). For ASK_GRAPH… the stream is to be captured. */
cured_status asks_call(asks_kind kind, int device, int turn, void *stream, cured_error *error);
/* Whether the last call, which has succeeded, found the right answers. For those in device memory the stream must have come so far. */
bool asks_right(asks_kind kind, int device, int turn);
/* The call with what belongs to it: a capture and a launch of its graph, and the wait. Asserts that it goes well. */
void asks_do(asks_kind kind, int device, int turn, void *stream);

#endif
