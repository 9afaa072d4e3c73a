/* tensor: regions of CUDA tensors; how a tensor becomes an input is declared in extension.h.
 *
 * Thread: with the GIL. */
#ifndef CURED_CLIENT_PYTHON_TENSOR_H
#define CURED_CLIENT_PYTHON_TENSOR_H

#include "client/python/extension.h"

/* The region of these bytes on a link, made if need be and kept with the input's owner; NULL with an exception. */
cured_region *cr_py_tensor_region(const cr_py_input *in, const void *data, uint64_t bytes, cr_py_link *link);
/* Tensors whose regions are kept. */
Py_ssize_t cr_py_tensor_count(void);

#endif
