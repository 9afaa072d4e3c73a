"""What cured.dask has beside reduce and quantile: ops of two arrays, whose blocks meet in pairs, min_count, and NumPy's names."""
import functools
import operator

import dask
import dask.array
import numpy

from . import _cured, _nan
from ._alike import cast, refused
from ._counted import PAIRS_SKIPPED, checked as counted
from ._nan import _method, _of_hundred
from ._result import Result

ELSEWHERE = {
    "offsets": "offsets: not of chunks: cured.reduce(x, ops, offsets=…) reads the array in blocks, in this process",
    "initial": "initial: not of chunks: dask.array.concatenate puts one more element at an end",
    "out": "out: the answers are dask's: compute them, and write these",
    "nulls": "nulls: not of chunks: cured.count(x) beside x.size says whether elements are missing",
    "client": "client: a worker finds its daemon by address=",
    "first": "first: only a partial has one", "shape": "shape: only a partial has one", "start": "start: only a partial has one",
}


def refuse(options, of_quantile=False):
    """TypeError of what cured.reduce takes, or nobody."""
    for name in options:
        if of_quantile and name in ("keys", "groups", "drop", "offsets"):
            raise TypeError("%s: quantiles have no partials, so no chunk has a part of them: cured.quantile(x, q, %s=…) reads the array in blocks, in this "
                            "process" % (name, "offsets" if name == "offsets" else "keys"))
        if of_quantile and name == "min_count":
            raise TypeError("min_count: a quantile takes none")
        raise TypeError(ELSEWHERE.get(name, "there is no argument '%s'" % name))


# ---- Two arrays ----

def _cast(chunk, dtype, own, other):
    values, mask = numpy.ma.getdata(chunk), numpy.ma.getmask(chunk)
    if mask is not numpy.ma.nomask:
        values = numpy.where(mask, values.dtype.type(0), values)
    made = cast(values, dtype)
    if made is None:
        raise refused(own, other)
    return made if mask is numpy.ma.nomask else numpy.ma.masked_array(made, mask)


def _as(x, dtype, own, other):
    """A dask array in another type, which must hold all its elements."""
    return x if x.dtype == dtype else x.map_blocks(_cast, dtype, own, other, dtype=dtype, meta=x._meta.astype(dtype))


def _misses(x):
    return isinstance(x._meta, numpy.ma.MaskedArray)


def paired(x, second, where):
    """(x, the second array, where=), both of one type; where= leaves out pairs whose second element is missing."""
    if second is x:
        second = x.copy()
    second = dask.array.asanyarray(second)
    if second.shape != x.shape:
        raise ValueError("second: its shape is %r, the array's is %r" % (second.shape, x.shape))
    if _misses(second):
        keep = ~dask.array.ma.getmaskarray(second)
        where = keep if where is None or where is True else keep & dask.array.asanyarray(where)
        second = dask.array.ma.filled(second, 0)
    own, other = x.dtype, second.dtype
    if {own.kind, other.kind} <= set("biuf"):
        wide = numpy.promote_types(own, other)
        x, second = _as(x, wide, own, other), _as(second, wide, own, other)
    return x, second, where


def pair(name, x, b=None, axis=None, **options):
    if b is None:
        b = options.pop("second", None)
    if b is None:
        raise TypeError("%s: it is of two arrays, and the second is missing: cured.dask.%s(x, b)" % (name, name))
    from . import dask as exact
    return exact.reduce(x, name, axis, second=b, **options)[name]


def vecdot(x, b, axis=-1, **options):
    """dot along an axis. Shapes are broadcast."""
    x, b = dask.array.broadcast_arrays(dask.array.asanyarray(x), dask.array.asanyarray(b))
    return pair("dot", x, b, axis, **options)


def _spread(weights, shape, axis):
    """Weights of an axis, or of several, as an array of the shape."""
    weights = dask.array.asanyarray(weights)
    if weights.shape == shape:
        return weights
    if axis is None:
        raise TypeError("weights: their shape is not the array's, and no axis is given along which they are")
    axes = [k + len(shape) if k < 0 else k for k in (axis if isinstance(axis, tuple) else (axis,))]
    if any(not 0 <= k < len(shape) for k in axes) or weights.shape != tuple(shape[k] for k in axes):
        raise ValueError("weights: their shape is %s, and the array has %s along the axis" % (weights.shape, tuple(shape[k] for k in axes if 0 <= k < len(shape))))
    turned = dask.array.transpose(weights, sorted(range(len(axes)), key=axes.__getitem__))
    return dask.array.broadcast_to(turned.reshape([n if k in axes else 1 for k, n in enumerate(shape)]), shape)


def average(x, axis=None, weights=None, returned=False, **options):
    """As cured.average: weights of x's shape or along the axis; by key of rows, too."""
    from . import dask as exact
    if returned:
        raise TypeError("returned: not of chunks: cured.dask.sum(weights) is the sum of the weights")
    if weights is None:
        return exact.reduce(x, "mean", axis, **options)["mean"]
    x = dask.array.asanyarray(x)
    weights = _spread(weights, x.shape, 0 if axis is None and options.get("keys") is not None else axis)
    return pair("average", x, weights, axis, **options)


# ---- min_count: the count is one more answer, beside which the others are looked at. ----

def _enough(result, ops, least):
    """The Result of a whole array; an exception in the place of an answer of too few elements."""
    return Result({op: counted(op, result._answers[op], result["count"], least) for op in ops})


def _together(pairs, count):
    return Result({**pairs._answers, **count._answers})


def _enough_of(answers, counts, op, least):
    answers = counted(op, answers.copy(), counts, least)
    if isinstance(answers, Exception):
        raise answers
    return answers


def least_of(given):
    least = operator.index(given) if hasattr(given, "__index__") else None
    if least is None:
        raise TypeError("min_count: an integer is wanted, not %r" % type(given))
    if not 0 <= least < 2**64:
        raise ValueError("min_count: must be 0 to 2^64 - 1")
    return least


def with_least(x, ops, axis, least, options):
    from .dask import reduce
    if options.get("second") is None:
        found = reduce(x, ops if "count" in ops else [*ops, "count"], axis, **options)
    elif options["nan"] == "skip":  # a pair counts where neither is NaN
        raise TypeError(PAIRS_SKIPPED)
    else:
        count = {name: options[name] for name in ("keepdims", "where", "keys", "groups", "drop", "split_every", "address")}
        pairs, count = reduce(x, ops, axis, **options), reduce(x, "count", axis, **count)
        found = Result({**pairs._answers, **count._answers}) if isinstance(pairs, Result) else dask.delayed(_together, pure=True)(pairs, count)
    if not isinstance(found, Result):
        return dask.delayed(_enough, pure=True)(found, ops, least)
    return Result({op: dask.array.map_blocks(_enough_of, found[op], found["count"], op, least, dtype=found[op].dtype, meta=found[op]._meta)
                   for op in ops})


# ---- NumPy's names ----

def minmax(x, axis=None, **options):
    """(min, max), from one read of the chunks."""
    from . import dask as exact
    r = exact.reduce(x, ["min", "max"], axis, **options)
    return r["min"], r["max"]


def percentile(x, q, axis=None, *, method="linear", interpolation=None, **options):
    from . import dask as exact
    return exact.quantile(x, _of_hundred(q), axis, method=_method(method, interpolation), **options)


def one(name, x, axis=None, **options):
    from . import dask as exact
    return exact.reduce(x, name, axis, **options)[name]


FUNCTIONS = {"average": average, "vecdot": vecdot, "minmax": minmax, "percentile": percentile}


def function(name):
    """The function of a name; None: there is none."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in _cured._ops.split():
        return functools.partial(pair if _cured._is_paired(name) else one, name)
    if name.startswith("nan") and name[3:] in ("quantile", "percentile"):
        from . import dask as exact
        return functools.partial(exact.quantile if name[3:] == "quantile" else percentile, nan="skip")
    if name.startswith("nan") and name in _nan.ASYNC:
        return functools.partial(one, name[3:], nan="skip")
    return None

