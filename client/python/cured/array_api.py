"""cured.array_api: the statistical and utility functions of the Python array API standard, exact and rounded once.

Arguments and the types of answers are the standard's (version 2024.12): floats stay of their type, sums of integers have 64 bits, and every
answer is an array of the library of x. A sum or a product of integers that does not fit its type raises OverflowError, where the
standard leaves open what happens. Products of complex numbers are refused. See docs/PYTHON.md.
"""
import sys

import numpy

from . import _cured

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]
NAMES = {"bool": "bool", "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "complex64", "complex128": "complex128", **{
    kind + "int" + str(bits): letter + str(bits) for kind, letter in (("", "i"), ("u", "u")) for bits in (8, 16, 32, 64)}}


def _name(dtype):
    """cured's name of a type of any library."""
    text = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return NAMES.get(text.rpartition(".")[2])


def _elements(x):
    name = _name(x.dtype)
    if name is None:
        raise TypeError("x: elements of %s are not reduced" % (x.dtype,))
    return name


def _array(x, answer, name):
    """The answer as an array of x's library and of a type."""
    array = numpy.asarray(answer)
    wanted = numpy.dtype(name if name[0] in "bc" else {"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:])
    if wanted.kind in "iu":
        limits = numpy.iinfo(wanted)
        if array.size and not (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
            raise OverflowError("the answer does not fit %s" % wanted)
    array = array.astype(wanted, copy=False)
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__().asarray(array)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return torch.from_numpy(array).to(x.device)
    return array


def _of_type(x, op, axis, dtype, keepdims):
    """Of sum and prod."""
    own = _elements(x)
    given = own if dtype is None and own[0] in "fc" else "u64" if dtype is None and own[0] == "u" else "i64" if dtype is None else _name(dtype)
    if given is None:
        raise TypeError("dtype: %s is not one of the types of answers" % (dtype,))
    if given[0] != own[0] and (own[0] in "fc" or given[0] == "c"):
        raise TypeError("dtype: elements of %s are not added up as %s" % (x.dtype, dtype))
    options = {"dtype": given} if given[0] in "fc" else {}
    return _array(x, getattr(_cured, op)(x, axis, keepdims=keepdims, **options), given)


def _of_float(x, op, axis, keepdims, **options):
    """Of mean, var and std."""
    own = _elements(x)
    if own[0] != "f" and (op, own[0]) != ("mean", "c"):
        raise TypeError("x: a floating-point type is wanted, not %s" % (x.dtype,))
    return _array(x, getattr(_cured, op)(x, axis, keepdims=keepdims, dtype=own, **options), own)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum."""
    return _of_type(x, "sum", axis, dtype, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product."""
    return _of_type(x, "prod", axis, dtype, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean of floats."""
    return _of_float(x, "mean", axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance of floats; the count less correction divides."""
    return _of_float(x, "var", axis, keepdims, correction=correction)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation of floats; the count less correction divides."""
    return _of_float(x, "std", axis, keepdims, correction=correction)


def min(x, /, *, axis=None, keepdims=False):
    """The least element; NaN where one is."""
    return _array(x, _cured.min(x, axis, keepdims=keepdims), _elements(x))


def max(x, /, *, axis=None, keepdims=False):
    """The greatest element; NaN where one is."""
    return _array(x, _cured.max(x, axis, keepdims=keepdims), _elements(x))


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the first least element."""
    return _array(x, _cured.argmin(x, axis, keepdims=keepdims), "i64")


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the first greatest element."""
    return _array(x, _cured.argmax(x, axis, keepdims=keepdims), "i64")


def all(x, /, *, axis=None, keepdims=False):
    """Whether no element is zero. NaN is not zero."""
    return _array(x, _cured.all(x, axis, keepdims=keepdims), "bool")


def any(x, /, *, axis=None, keepdims=False):
    """Whether an element is not zero."""
    return _array(x, _cured.any(x, axis, keepdims=keepdims), "bool")


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    return _array(x, _cured.count_nonzero(x, axis, keepdims=keepdims), "i64")
