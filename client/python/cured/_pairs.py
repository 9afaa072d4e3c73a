"""NumPy's names for ops of two arrays: average, whose weights may be those of one axis, and vecdot, which is dot along an axis.

Arguments are NumPy's, in its order; the others are cured's. Answers are cured's: exact, then rounded once.
"""
import contextlib

from . import _cured
from ._adapt import ARRAYS, is_arrow, is_complex, is_stored, numbers
from ._bins import whole
from ._lists import _cuda_device, misses


def _kept(*given):
    """Arrow's streams may come once only, and are looked at several times."""
    if not any(is_arrow(type(a)) for a in given):
        return given
    from ._arrow import kept
    return tuple(kept(a) if is_arrow(type(a)) else a for a in given)


def _array(a):
    """An array as it is, and of a list of numbers the one that it stands for."""
    return numbers(a) if _cured._is_of_numbers(a) else a


def _once(a, **beside):
    """What stands beside an array, each container of it read once."""
    if any(is_stored(type(value)) for value in beside.values()):
        from ._beside import kept
        beside = kept(beside, a)
    return beside.values()


def _shape(a, name=""):
    shape = getattr(a, "shape", None)
    try:
        return tuple(shape) if shape is not None else memoryview(a).shape
    except TypeError:
        raise TypeError("%s%s: %s; numpy.asarray(a) makes one" % (name and name + ": ", type(a).__name__, ARRAYS)) from None


def _refuse_tensors(*arrays):
    """Shapes that differ are made alike by NumPy, which no CUDA tensor is for."""
    if any(_cuda_device(array) is not None for array in arrays):
        raise TypeError("second: of CUDA tensors both have one shape, and whole ones are answered: pass copies of both in host memory "
                        "(a.cpu(), b.cpu())")


def _as_weights(weights):
    """Weights in a list as an array."""
    if not isinstance(weights, (list, tuple, range)):
        return weights
    import numpy
    from ._beside import listed
    return numpy.asarray(listed(("weights", weights)))


def _spread(weights, shape, axis):
    """Weights along axis as an array of the shape."""
    own = _shape(weights, "weights")
    if own == shape:
        return weights
    if axis is None:
        raise TypeError("weights: their shape is not the array's, and no axis is given along which they are")
    _refuse_tensors(weights)
    import numpy
    axes = [k + len(shape) if k < 0 else k for k in (axis if isinstance(axis, tuple) else (axis,))]
    if any(not 0 <= k < len(shape) for k in axes) or own != tuple(shape[k] for k in axes):
        raise ValueError("weights: their shape is %s, and the array has %s along the axis" % (
            own, tuple(shape[k] for k in axes if 0 <= k < len(shape))))
    order = sorted(range(len(axes)), key=axes.__getitem__)
    wide = [n if k in axes else 1 for k, n in enumerate(shape)]
    weights, missing = whole(weights, "weights")
    weights, missing = (None if each is None else numpy.broadcast_to(numpy.transpose(each, order).reshape(wide), shape) for each in (weights, missing))
    return weights if missing is None else numpy.ma.masked_array(weights, missing)


def _broadcast(a, shape):
    """NumPy's array of this shape, masked where elements are missing."""
    import numpy
    values, missing = whole(a, "second")
    values = numpy.broadcast_to(values, shape)
    return values if missing is None else numpy.ma.masked_array(values, numpy.broadcast_to(missing, shape))


def _counted(a, where):
    """where, without the elements that are missing from a."""
    missing = whole(a, "a")[1] if misses(a) else None
    if missing is None:
        return where
    if where is None or where is True:
        return ~missing
    given, unknown = whole(where, "where")
    return ~missing & (given if unknown is None else given & ~unknown)


@contextlib.contextmanager
def _of_weights():
    """What the extension says of a second array is of the weights."""
    try:
        yield
    except (TypeError, ValueError) as error:
        said = str(error)
        if not said.startswith("second: "):
            raise
        raise type(error)("weights: " + said.removeprefix("second: ").replace("it is of", "they are of", 1)) from None


async def _awaited(calls, client):
    with _of_weights():
        answers = [await client._answer(getattr(client._link, op)(*given, **options)) for op, given, options in calls]
    return answers[0] if len(calls) == 1 else tuple(answers)


def _asked(calls, client):
    """The answer of a call, or a tuple of those of several; of an AsyncClient what is to be awaited."""
    if hasattr(client, "_answer"):
        return _awaited(calls, client)
    with _of_weights():
        answers = [getattr(_cured, op)(*given, client=client, **options) for op, given, options in calls]
    return answers[0] if len(calls) == 1 else tuple(answers)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False, dtype=None, where=None, offsets=None, keys=None, groups=None,
            drop=False, nan="propagate", nulls="skip", min_count=0, out=None, client=None):
    """The elements' sum, each times its weight, divided by the sum of the weights; without weights the mean.

    weights: an array of a's shape or along axis; by key of its rows, too. Weights that add up to 0 give NaN. returned: the weights' sum, too.
    """
    if getattr(axis, "shape", ()):  # NumPy's arrays pass for integers elsewhere
        raise TypeError("axis: an integer or a tuple of integers is wanted, not an array: the second one goes as average(a, weights=w)")
    where, offsets, keys = _once(a, where=where, offsets=offsets, keys=keys)
    a, weights = _kept(_array(a), weights)
    shared = {"keepdims": keepdims, "offsets": offsets, "keys": keys, "groups": groups, "drop": drop}
    options = {"dtype": dtype, "where": where, "nan": nan, "out": out, "nulls": nulls, "min_count": min_count, **shared}
    if weights is None:
        return _asked([("mean", (a, axis), options), ("count", (a, axis), {"where": where, "nan": nan, **shared})][:1 + bool(returned)], client)
    shape = _shape(a)
    weights = _spread(_as_weights(weights), shape, 0 if axis is None and keys is not None else axis)
    calls = [("average", (a, weights, axis), options)]
    if returned:
        if nan != "propagate":
            raise TypeError("returned: not with nan='skip', because weights of pairs that are skipped do not count")
        calls.append(("sum", (weights, axis), {"where": _counted(a, where), **shared}))
    return _asked(calls, client)


def vecdot(a, b, /, *, axis=-1, dtype=None, keepdims=False, where=None, offsets=None, keys=None, groups=None, drop=False, nan="propagate",
           nulls="skip", min_count=0, out=None, client=None):
    """dot along an axis, the last one unless it is given. Shapes are broadcast. Complex numbers of a are conjugated."""
    a, b = _array(a), _array(b)
    if _shape(a) != _shape(b):
        _refuse_tensors(a, b)
        import numpy
        shape = numpy.broadcast_shapes(_shape(a), _shape(b))
        a, b = a if _shape(a) == shape else _broadcast(a, shape), _broadcast(b, shape)
    if is_complex(a):
        import numpy
        a = numpy.conj(whole(a, "a")[0]) if not misses(a) else _broadcast(a, _shape(a)).conj()
    axis = None if axis == -1 and (keys is not None or offsets is not None) else axis
    options = {"dtype": dtype, "keepdims": keepdims, "where": where, "offsets": offsets, "keys": keys, "groups": groups, "drop": drop, "nan": nan,
               "nulls": nulls, "min_count": min_count, "out": out}
    if hasattr(client, "_answer"):
        return client._answer(client._link.dot(a, b, axis, **options))
    return _cured.dot(a, b, axis, client=client, **options)
