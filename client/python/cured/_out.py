"""Arrays that the caller wants the answers in (out=): which of them are filled where they lie, and how the others are.

Whatever NumPy takes is taken: arrays in any order and of any type that answers may be cast to. An answer that the type cannot hold
is an OverflowError here, and never wraps.
"""
import numpy

from ._result import Result


def view(out):
    """A NumPy array of the same memory."""
    if isinstance(out, numpy.ndarray):
        return out
    if getattr(getattr(out, "device", None), "type", "cpu") != "cpu":
        raise TypeError("out: answers are written into memory of the host only, not into a GPU's tensor")
    if hasattr(out, "detach") and hasattr(out, "numpy"):  # a tensor of torch
        return out.detach().numpy()
    try:
        return numpy.asarray(memoryview(out))
    except TypeError:
        raise TypeError("output must be an array") from None


def check(name, array, shape):
    """NumPy's conditions, in its words."""
    if array.ndim != len(shape):
        raise ValueError("output parameter for reduction operation %s has the wrong number of dimensions: Found %d but "
                         "expected %d" % (name, array.ndim, len(shape)))
    if array.shape != tuple(shape):
        raise ValueError("output parameter for reduction operation %s has the shape %r but %r is expected" %
                         (name, array.shape, tuple(shape)))
    if not array.flags.writeable:
        raise ValueError("output array is read-only")


def listed(out, single, names):
    """The outputs, one for each op."""
    if single and not isinstance(out, tuple):
        out = (out,)
    if not isinstance(out, (tuple, list)) or len(out) != len(names):
        raise ValueError("out: a tuple with an array for each of %d operations is wanted" % len(names))
    return out


def default_type(arguments):
    """The type of the one op's answers, where dtype= does not say it: as in NumPy, that of out, if it is a float's."""
    out, = listed(arguments, True, ("",))
    dtype = view(out).dtype
    return dtype.name if dtype.kind == "f" and dtype.isnative else None


def places(arguments):
    """The arrays if answers of these types, in this shape, may be written straight into all of them; None: by a copy."""
    out, single, names, shape, dtypes = arguments
    arrays = [view(each) for each in listed(out, single, names)]
    for name, array in zip(names, arrays):
        check(name, array, shape)
    for i, array in enumerate(arrays):
        if not array.flags.c_contiguous or not array.dtype.isnative or array.dtype.name != dtypes[i]:
            return None
        if any(numpy.may_share_memory(array, other) for other in arrays[:i]):
            return None
    return arrays


def put(name, answer, out):
    array = view(out)
    if type(answer) is int and array.dtype.kind in "iu":
        check(name, array, ())
        limits = numpy.iinfo(array.dtype)
        if not limits.min <= answer <= limits.max:
            raise OverflowError("out: %s is %d, which does not fit %s" % (name, answer, array.dtype))
        array[()] = answer
        return out
    answer = numpy.asarray(answer)
    check(name, array, answer.shape)
    numpy.copyto(array, answer, casting="same_kind")
    if answer.dtype.kind in "iu" and array.dtype.kind in "iu" and not (array == answer).all():
        raise OverflowError("out: %s of %s has answers that do not fit %s" % (name, answer.dtype, array.dtype))
    return out


def store(arguments):
    """Copies the answers, of one op or a Result, and returns what the function does."""
    answer, out, single, names = arguments
    out = listed(out, single, names)
    if single:
        return put(names[0], answer, out[0])
    return Result({name: put(name, answer[name], each) for name, each in zip(names, out)})
