/* value: one op's answer, and several that belong to no call. As text: text.c.
 *
 * Thread: any; nothing here holds state. Owner: whoever has the value; its message goes with it. */
#ifndef CURED_CLIENT_LIB_VALUE_H
#define CURED_CLIENT_LIB_VALUE_H

#include "cured/cured.h"
#include "kernels/core/partial.h"
#include "proto/wire.h"

struct cured_value {
    uint8_t op, dtype, at_dtype, len, at_len;
    bool inexact;
    cr_status status;
    uint8_t bytes[CR_WIRE_VALUE_BYTES], at[8];
    char *message; /* NULL: none */
};

/* One op's answer, for an input of type dtype. */
void cr_cl_value_set(struct cured_value *to, const cr_value *v, uint8_t dtype);
/* The same of a float's bits, to one that is unset. */
void cr_cl_value_set_bits(struct cured_value *to, uint8_t op, uint8_t result, uint64_t bits, uint8_t dtype);
/* Values, all of them unset; NULL without memory. */
cured_values *cr_cl_values_new(size_t count);
/* Values for each of many, made together to out: each is freed by itself, and their memory goes with the last. Without memory out stays as it
 * is. */
void cr_cl_values_shelf(size_t count, size_t many, cured_values **out);
struct cured_value *cr_cl_values_at(cured_values *values, size_t index);

#endif
