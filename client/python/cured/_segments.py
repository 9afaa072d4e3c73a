"""What offsets become that the extension does not read where they lie (offsets=), and other forms of them.

Called by the extension; offsets of int32, int64, uint32 and uint64 without gaps are not in the way of this.
"""
import numpy

from . import _cured
from ._bins import whole


def as_offsets(given):
    """An array of one axis, of a type that cured takes as offsets."""
    if getattr(getattr(given, "device", None), "type", "cpu") == "cuda" or hasattr(given, "__cuda_array_interface__") or isinstance(given, _cured._ArrowDevice):
        raise TypeError("offsets: on a GPU they are contiguous int32, int64, uint32 or uint64 without nulls, beside a CUDA tensor: pass offsets.cpu()")
    array, missing = whole(given, "offsets")
    if missing is not None and missing.any():
        raise TypeError("offsets: without a mask: each is where a segment ends and the next begins")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError("offsets: an array of integers with one axis is wanted, not %s of %s" % (array.shape, array.dtype))
    wide = "uint64" if array.dtype.kind == "u" else "int64"
    return numpy.ascontiguousarray(array, dtype=wide)
