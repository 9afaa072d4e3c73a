"""NumPy's names for what the ops do under options: nansum and the others skip NaNs, percentile counts to 100, minmax is two ops.

Arguments are NumPy's, in its order; client= is cured's. Answers are cured's: exact, then rounded once, of the types of the ops. With an
AsyncClient they are awaited; its methods of these names are these functions.
"""
from . import _cured

ASYNC = ("minmax", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
         "nansum", "nanvar", "percentile")  # what an AsyncClient has as methods

OF_NUMPY = "overwrite_input and interpolation are NumPy's: nothing is overwritten here, and method= says what interpolation did"


def _method(method, interpolation):
    if interpolation is not None:
        raise TypeError(OF_NUMPY)
    return method


def _ask(op, client, *args, **options):
    """The op's answer, by whoever gives it."""
    if hasattr(client, "_answer"):  # an AsyncClient, whose module is not loaded for its type alone
        return getattr(client, op)(*args, **options)
    return getattr(_cured, op)(*args, client=client, **options)


def _places(offsets, keys, groups, drop):
    return {"offsets": offsets, "keys": keys, "groups": groups, "drop": drop}


async def _both(coming):
    r = await coming
    return r.min, r.max


def minmax(a, axis=None, *, keepdims=False, where=True, nan="propagate", offsets=None, keys=None, groups=None, drop=False, client=None):
    """The least and the greatest element, from one read."""
    r = _ask("reduce", client, a, ("min", "max"), axis, keepdims=keepdims, where=where, nan=nan, **_places(offsets, keys, groups, drop))
    return _both(r) if hasattr(client, "_answer") else (r.min, r.max)


def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, *, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The sum of the elements that are no NaNs."""
    return _ask("sum", client, a, axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, *, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The product of the elements that are no NaNs."""
    return _ask("prod", client, a, axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The mean of the elements that are no NaNs."""
    return _ask("mean", client, a, axis, dtype=dtype, out=out, keepdims=keepdims, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=True, *, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The least element that is no NaN; ValueError where there is none."""
    return _ask("min", client, a, axis, out=out, keepdims=keepdims, initial=initial, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=True, *, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The greatest element that is no NaN; ValueError where there is none."""
    return _ask("max", client, a, axis, out=out, keepdims=keepdims, initial=initial, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanargmin(a, axis=None, out=None, *, keepdims=False, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The index of the least element that is no NaN; ValueError where there is none."""
    return _ask("argmin", client, a, axis, out=out, keepdims=keepdims, nan="skip", **_places(offsets, keys, groups, drop))


def nanargmax(a, axis=None, out=None, *, keepdims=False, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The index of the greatest element that is no NaN; ValueError where there is none."""
    return _ask("argmax", client, a, axis, out=out, keepdims=keepdims, nan="skip", **_places(offsets, keys, groups, drop))


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The variance of the elements that are no NaNs."""
    return _ask("var", client, a, axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The standard deviation of the elements that are no NaNs."""
    return _ask("std", client, a, axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False, *, where=True, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The median of the elements that are no NaNs."""
    return _ask("median", client, a, axis, out=out, keepdims=keepdims, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, interpolation=None, where=True, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The quantiles of the elements that are no NaNs."""
    return _ask("quantile", client, a, q, axis, out=out, method=_method(method, interpolation), keepdims=keepdims, where=where, nan="skip", **_places(offsets, keys, groups, drop))


def _of_hundred(q):
    """q/100, as NumPy divides: in float64."""
    if isinstance(q, (int, float)):
        q = float(q)
        wrong = not 0 <= q <= 100
    else:
        import numpy
        q = numpy.asarray(q, numpy.float64)
        wrong = not numpy.all((q >= 0) & (q <= 100))
    if wrong:
        raise ValueError("Percentiles must be in the range [0, 100]")
    return q / 100


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, interpolation=None, where=True, nan="propagate", offsets=None, keys=None, groups=None, drop=False, client=None):
    """cured.quantile of q/100."""
    return _ask("quantile", client, a, _of_hundred(q), axis, out=out, method=_method(method, interpolation), keepdims=keepdims, where=where, nan=nan, **_places(offsets, keys, groups, drop))


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, interpolation=None, where=True, offsets=None, keys=None, groups=None, drop=False, client=None):
    """The percentiles of the elements that are no NaNs."""
    return percentile(a, q, axis, out, overwrite_input, method, keepdims, interpolation=interpolation, where=where, nan="skip", offsets=offsets, keys=keys, groups=groups, drop=drop, client=client)
