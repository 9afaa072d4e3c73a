"""Arrays that the caller wants the answers in (out=): which of them are filled where they lie, and how the others are.

Whatever NumPy takes is taken: arrays in any order and of any type that answers may be cast to. An answer that the type cannot hold
is an OverflowError here, and never wraps. Arrays of a GPU (of torch, CuPy, Numba) are taken by the same rules.
"""
import sys

import numpy

from ._cured import _is_float
from ._result import Result


def on_gpu(out):
    if isinstance(out, numpy.ndarray):
        return False
    kind = getattr(getattr(out, "device", None), "type", None)  # of a tensor of torch
    return kind == "cuda" if isinstance(kind, str) else hasattr(out, "__cuda_array_interface__")


UNKNOWN = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # types that NumPy has not


def is_unknown(out):
    """Whether it is a tensor of torch of such a type."""
    return hasattr(out, "copy_") and type_name(out) in UNKNOWN


def view(out):
    """A NumPy array of the same memory."""
    if isinstance(out, numpy.ndarray):
        if getattr(out, "mask", numpy.False_) is not numpy.False_:  # numpy.ma's nomask
            raise TypeError("out: a masked array with a mask would hide answers: pass out.data")
        return out
    if getattr(getattr(out, "device", None), "type", "cpu") != "cpu":
        raise TypeError("out: answers go into memory of the host or of a CUDA device, not into that of %s" % out.device)
    if hasattr(out, "detach") and hasattr(out, "numpy"):  # a tensor of torch
        return out.detach().numpy()
    try:
        return numpy.asarray(memoryview(out))
    except TypeError:
        raise TypeError("output must be an array") from None


def type_name(out):
    return str(out.dtype).rpartition(".")[2]


def check(name, array, shape):
    """NumPy's conditions, in its words."""
    if array.ndim != len(shape):
        raise ValueError("output parameter for reduction operation %s has the wrong number of dimensions: Found %d but "
                         "expected %d" % (name, array.ndim, len(shape)))
    if tuple(array.shape) != tuple(shape):
        raise ValueError("output parameter for reduction operation %s has the shape %r but %r is expected" %
                         (name, tuple(array.shape), tuple(shape)))
    if not getattr(getattr(array, "flags", None), "writeable", True):
        raise ValueError("output array is read-only")


def listed(out, single, names):
    """The outputs, one for each op."""
    if single and not isinstance(out, tuple):
        out = (out,)
    if not isinstance(out, (tuple, list)) or len(out) != len(names):
        raise ValueError("out: a tuple with an array for each of %d operations is wanted" % len(names))
    return out


def default_type(arguments):
    """The type of the one op's answers, where dtype= does not say it: as in NumPy, that of out, if it is a float's, or of its parts."""
    out, = listed(arguments, True, ("",))
    if on_gpu(out) or is_unknown(out):
        return type_name(out) if _is_float(type_name(out)) else None
    dtype = view(out).dtype
    return numpy.empty(0, dtype).real.dtype.name if dtype.kind in "fc" and dtype.isnative else None


def places(arguments):
    """A list of arrays if answers of these types, in this shape, may be written straight into all of them; a tuple of arrays of a GPU, of
    which the caller finds that out; None: by a copy."""
    out, single, names, shape, dtypes = arguments
    given = tuple(listed(out, single, names))
    gpus = [on_gpu(each) for each in given]
    copied = [is_unknown(each) and not gpu for each, gpu in zip(given, gpus)]
    arrays = [each if gpu or copy else view(each) for each, gpu, copy in zip(given, gpus, copied)]
    for name, array in zip(names, arrays):
        check(name, array, shape)
    if any(copied):
        return None
    if any(gpus):
        return given if all(gpus) else None
    for i, array in enumerate(arrays):
        if not array.flags.c_contiguous or not array.dtype.isnative or array.dtype.name != dtypes[i]:
            return None
        if any(numpy.may_share_memory(array, other) for other in arrays[:i]):
            return None
    return arrays


def to_tensor(name, answer, out):
    """By an array of the host that has the type of out, or the values of one that NumPy has not."""
    check(name, out, numpy.shape(answer))
    host = numpy.empty(tuple(out.shape), "float32" if type_name(out) in UNKNOWN else type_name(out))
    put(name, answer, host)
    if hasattr(out, "copy_"):  # torch
        out.copy_(sys.modules["torch"].from_numpy(host))
    elif hasattr(out, "copy_to_device"):  # Numba
        out.copy_to_device(host)
    else:
        out[...] = sys.modules[type(out).__module__.partition(".")[0]].asarray(host)
    return out


def put(name, answer, out):
    if on_gpu(out) or is_unknown(out):
        return to_tensor(name, answer, out)
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
    answers = answer._answers  # an exception stays where an op lacks answers: it raises when it is asked for
    return Result({name: answers[name] if isinstance(answers[name], Exception) else put(name, answers[name], each)
                   for name, each in zip(names, out)})
