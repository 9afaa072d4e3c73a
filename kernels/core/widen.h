/* widen: a partial of one type as the partial of the same elements in a wider one, so that arrays of several types are one array: of the
 * narrowest type that holds all their elements.
 *
 * A sum's limbs count units of its type's grid. A wider type's grid is finer by a power of two, so its limbs are the same number's,
 * shifted. Extrema are elements, which are widened themselves; bits are those of sign-extended elements.
 *
 * Thread: any; the caller owns the partial. */
#ifndef CURED_KERNELS_CORE_WIDEN_H
#define CURED_KERNELS_CORE_WIDEN_H

#include "kernels/core/partial.h"

/* The narrowest type that holds the elements of all types of a mask, 1 << cr_dtype each. INVALID_ARGUMENT: none does. */
cr_status cr_widen_common(uint32_t types, cr_dtype *wide, cr_error *error);
/* INVALID_ARGUMENT for products of floats, whose bits go by blocks of one type: they are not widened. */
cr_status cr_widen_check(cr_dtype wide, uint32_t families, cr_error *error);
/* wide is a common type of p's type and others. As above. */
cr_status cr_partial_widen(cr_partial *p, cr_dtype wide, cr_error *error);

#endif
