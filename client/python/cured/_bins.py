"""Counts by key: bincount and histogram, as NumPy has them."""
import math
import operator
from fractions import Fraction

from . import _cured
from ._adapt import adapt, is_no_array, is_stored
from ._lists import _cuda_device

CHUNK = 1 << 20  # elements whose bins are found at once


def no_file(a, name):
    """TypeError of a file where only an op's own array may be one."""
    if isinstance(a, _cured.File):
        what = "a file is no array here" if name in ("x", "a") else "a file is the first array alone"
        raise TypeError("%s: %s: pass numpy.load(path, mmap_mode='r')" % (name, what))


def as_numpy(a, name):
    """NumPy's array of the same elements. It makes one object of a tensor that speaks DLPack alone."""
    import numpy
    array = numpy.asarray(a)
    if array.dtype != object or not hasattr(a, "__dlpack__"):
        return array
    try:
        return numpy.from_dlpack(a)
    except (TypeError, RuntimeError, BufferError, AttributeError) as error:  # of a type that NumPy has not
        raise TypeError("%s: %s is no array of NumPy's (%s)" % (name, type(a).__name__, error)) from None


def whole(a, name):
    """An array of every kind as NumPy's, and where elements of it are missing; None: nowhere. name: what its caller calls it."""
    import numpy
    mask = None
    if _cuda_device(a) is not None:
        raise TypeError("%s: it lies on a GPU: pass a copy in host memory (a.cpu() or a.get())" % name)
    no_file(a, name)
    if is_stored(type(a)):
        from . import _blocks, _stores
        store = _stores.store_of(a)
        a = _blocks._checked(store, tuple(slice(0, n) for n in store.shape))
    if not is_no_array(type(a)):
        a, mask = adapt(a)
    return as_numpy(a, name), None if mask is None or mask is False else numpy.broadcast_to(mask, numpy.shape(a))


def _present(a, weights, name, where=None):
    """The elements and their weights, where neither is missing, and where= does not leave them out."""
    import numpy
    a, missing = whole(a, name)
    if where is not None and where is not True:
        keep, unknown = whole(where, "where")
        if keep.dtype != bool:
            raise TypeError("where: a bool array is wanted, not one of %s" % keep.dtype)
        left = ~numpy.broadcast_to(keep if unknown is None else keep & ~unknown, a.shape)
        missing = left if missing is None else missing | left
    if weights is None:
        return a if missing is None else a[~missing], None
    weights, more = whole(weights, "weights")
    if weights.shape != a.shape:
        raise ValueError("weights: their shape is %r, it must be the same shape as that of %s, %r" % (weights.shape, name, a.shape))
    for mask in (missing, more):
        missing = mask if missing is None else missing if mask is None else missing | mask
    return (a, weights) if missing is None else (a[~missing], weights[~missing])


def _on_gpu(x, weights, minlength, client):
    """The same of a CUDA tensor, by its GPU."""
    import numpy
    if weights is not None and _cuda_device(weights) is None:
        raise TypeError("weights: those of a CUDA tensor are a tensor on the same GPU")
    if len(x.shape) != 1:
        raise ValueError("x: an array of one axis is wanted")
    if _cured._type_of(x)[0] not in "iu":
        raise TypeError("x: integers are wanted, not %s" % _cured._type_of(x))
    minlength, some = operator.index(minlength), int(x.shape[0])
    if minlength < 0:
        raise ValueError("minlength: must not be negative")
    least = _cured.min(x) if some else 0
    if least < 0:
        raise ValueError("x: %d is no number of a bin: they must not be negative" % least)
    groups = max(_cured.max(x) + 1 if some else 0, minlength)
    if weights is not None:
        return _cured.sum(weights, keys=x, groups=groups, client=client)
    return numpy.asarray(_cured.count(x, keys=x, groups=groups, client=client)).astype(numpy.int64)


def bincount(x, /, weights=None, minlength=0, *, client=None):
    """How many elements of x are 0, 1, …; with weights the exact sum of those of each, rounded once. The answers are minlength at least.

    >>> cured.bincount([0, 1, 1, 3])
    """
    import numpy
    if _cuda_device(x) is not None:
        return _on_gpu(x, weights, minlength, client)
    x, weights = _present(x, weights, "x")
    if x.ndim != 1:
        raise ValueError("x: an array of one axis is wanted")
    if x.dtype == bool or (x.size == 0 and x.dtype.kind not in "iu"):
        x = x.astype(numpy.int64)
    if x.dtype.kind not in "iu":
        raise TypeError("x: integers are wanted, not %s" % x.dtype)
    x, minlength = numpy.ascontiguousarray(x, x.dtype.newbyteorder("=")), operator.index(minlength)
    if minlength < 0:
        raise ValueError("minlength: must not be negative")
    least = int(x.min()) if x.size and x.dtype.kind == "i" else 0
    if least < 0:
        raise ValueError("x: %d is no number of a bin: they must not be negative" % least)
    groups = max(int(x.max()) + 1 if x.size else 0, minlength)
    if weights is not None:
        return _cured.sum(weights, keys=x, groups=groups, client=client)
    return numpy.asarray(_cured.count(x, keys=x, groups=groups, client=client)).astype(numpy.int64)


def _densities(counts, edges):
    """Of each bin count / (all * width), rounded once; as NumPy's where a width is 0 or infinite."""
    import numpy
    counts, edges = counts.tolist(), edges.tolist()
    total = sum(counts)

    def of(count, low, high):
        if total == 0:
            return math.nan
        if math.isinf(high) or math.isinf(low):
            return 0.0 if low < high else math.nan
        if low == high:
            return math.inf if count else math.nan
        return float(Fraction(count) / total / (Fraction(high) - Fraction(low)))
    return numpy.array([of(*row) for row in zip(counts, edges, edges[1:])])


def histogram(a, bins=10, range=None, weights=None, *, density=False, where=None, client=None):
    """(counts, edges): how many elements lie in each bin [edges[i], edges[i + 1]), the last with its right edge. bins: how many of one
    width, from the least element to the greatest or over range, or their edges. Elements and edges are compared as the numbers that they
    are, integers too. With weights the exact sum of those of each bin, rounded once, in place of counts. density: each count divided by that
    of all and by the bin's width."""
    import numpy
    a, weights = _present(a, weights, "a", where)
    if density and weights is not None and weights.dtype.kind not in "biu":
        raise TypeError("density: not with weights of %s, whose sums are rounded: divide these by their sum and by numpy.diff(edges)" % weights.dtype)
    if a.dtype.kind == "c":
        raise TypeError("a: complex numbers have no order: pass a.real, a.imag, or numpy.abs(a)")
    edges = numpy.histogram_bin_edges(a, bins, range)
    if numpy.ndim(bins) == 0 and not (edges[1:] > edges[:-1]).all():  # elements would be in none of them
        raise ValueError("bins: %d of one width are too many: from %r to %r some edges are the same" % (len(edges) - 1, edges[0], edges[-1]))
    if not (edges[1:] >= edges[:-1]).all():
        raise ValueError("bins: edges must not fall, and none is NaN: %r" % (bins,))
    a, weights = numpy.ravel(a), None if weights is None else numpy.ravel(weights)
    find, count = _finder(a.dtype, edges), len(edges) - 1
    if count < 1:
        raise ValueError("bins: at least two edges are wanted")
    if weights is not None:
        keys = numpy.concatenate([find(a[at:at + CHUNK]) for at in _steps(a.size)]) if a.size else find(a)
        sums = _cured.sum(weights, keys=keys, groups=count, drop=True, client=client)
        return _densities(sums, edges) if density else sums, edges
    counts = numpy.zeros(count, numpy.int64)
    for at in _steps(a.size):
        keys = find(a[at:at + CHUNK])
        counts += numpy.asarray(_cured.count(keys, keys=keys, groups=count, drop=True, client=client)).astype(numpy.int64)
    return _densities(counts, edges) if density else counts, edges


def _steps(size):
    at = 0
    while at < size:
        yield at
        at += CHUNK


def _finder(dtype, edges):
    """A function that gives each element its bin, or what is none."""
    import numpy
    last = len(edges) - 2
    if dtype.kind in "iu" and edges.dtype.kind == "f":  # NumPy would round large integers
        info = numpy.iinfo(dtype)
        low = [e if math.isinf(e) else math.ceil(e) for e in edges[:-1].tolist()]
        high = float(edges[-1]) if math.isinf(edges[-1]) else math.floor(float(edges[-1]))
        below = sum(e <= info.min for e in low)  # bins that every element is at or beyond
        reach = numpy.array([e for e in low if info.min < e <= info.max], dtype)

        def find(x):
            keys = numpy.searchsorted(reach, x, "right") + below - 1
            if high < info.max:
                keys[x > dtype.type(high) if high >= info.min else slice(None)] = -1
            return keys
        return find

    def find(x):
        keys = numpy.searchsorted(edges, x, "right") - 1
        keys[x == edges[-1]] = last
        return keys
    return find
