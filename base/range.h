/* range: whether a request's range lies in its input, and how many bytes it means.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_BASE_RANGE_H
#define CURED_BASE_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* The one bounds check: CR_OK when [offset, offset + bytes) lies in [0, size). */
cr_status cr_range_check(uint64_t offset, uint64_t bytes, uint64_t size, cr_error *error);

/* What a request says of its input. */
typedef struct cr_range_request {
    const char *of;    /* what the input is, for the sentence: "descriptor" */
    const char *dtype; /* its elements' name */
    uint64_t element;  /* their bytes */
    uint64_t offset;   /* bytes */
    bool to_end;       /* as many elements as there are after offset; otherwise count */
    uint64_t count;
    const char *expects; /* what says how many elements there must be: "axis: its shape"; NULL: nothing does */
    uint64_t expected;
} cr_range_request;

/* How many bytes of an input of size bytes are meant. */
cr_status cr_range_measure(const cr_range_request *asked, uint64_t size, uint64_t *bytes, cr_error *error);

/* A range of a region's bytes; size: of the region. of: which region it is; NULL: none, and no other range meets this one. */
typedef struct cr_range_place {
    const void *of;
    uint64_t offset, bytes, size;
} cr_range_place;

/* Whether the answers of each op lie within their region, and in no bytes of another op's, nor of the input. */
cr_status cr_range_outputs(const cr_range_place *outputs, uint32_t count, const cr_range_place *input, cr_error *error);

#endif
