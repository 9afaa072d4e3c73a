"""cured.xarray: exact reductions by names of dimensions, as an accessor of xarray's arrays.

    >>> import cured.xarray
    >>> da.cured.sum("time", skipna=True)

The answers are cured's: exact, rounded once. Dimensions that stay keep their coordinates, and arrays keep their names. A DataArray on dask
gives one on dask, which is computed when it is asked for; one that lies in a file is read in blocks. See docs/ARRAYS.md.
"""
import numpy
import xarray

from . import _cured
from ._lists import names_of
from ._result import Result
from ._stores import dask_array


def _axes(array, dim):
    if dim is None or dim is Ellipsis:
        return tuple(range(array.ndim))
    names = [dim] if isinstance(dim, str) or dim in array.dims else list(dim)
    for name in names:
        if name not in array.dims:
            raise ValueError("dim: %r is none of the dimensions %r" % (name, array.dims))
    return array.get_axis_num(tuple(names))


def _aligned(array, where):
    """A mask in the order of the array's labels, and of its dimensions."""
    for name in where.dims:
        if name not in array.dims:
            raise ValueError("where: %r is none of the dimensions %r" % (name, array.dims))
        if name not in array.indexes or name not in where.indexes or where.indexes[name].equals(array.indexes[name]):
            continue
        own, wanted = where.indexes[name], array.indexes[name]
        if not own.is_unique or not wanted.isin(own).all():
            raise ValueError("where: along %r it has not one element for each label of the array: where.reindex_like(array, fill_value=False) "
                             "leaves others out" % name)
        where = where.isel({name: own.get_indexer(wanted)}).assign_coords({name: array[name]})
    return where.broadcast_like(array).transpose(*array.dims)


def _options(array, ops, skipna, where, options):
    for name in ("axis", "offsets", "keys", "groups", "drop", "out", "second"):
        if name in options:
            raise TypeError("%s: not by names of dimensions: pass the array to cured.%s" % (name, "reduce"))
    if skipna is None:
        skipna = not set(ops) <= {"count_nan", "count_inf"}  # as in xarray
    if skipna and array.dtype.kind in "fc":
        options["nan"] = "skip"
    if where is not None:
        if isinstance(where, xarray.DataArray):
            where = _aligned(array, where)
        options["where"] = getattr(where, "data", where)
    return options


def _wrapped(array, answer, axes, keepdims, keep_attrs, lead=(), more=None):
    """The answers as an array with the coordinates that stay."""
    gone = {array.dims[k] for k in axes}
    dims = [name for name in array.dims if keepdims or name not in gone]
    coordinates = {name: value for name, value in array.coords.items() if not gone & set(value.dims)}
    return xarray.DataArray(answer, {**coordinates, **(more or {})}, [*lead, *dims], array.name, array.attrs if keep_attrs else None)


@xarray.register_dataarray_accessor("cured")
class Reductions:
    """The ops of cured along dimensions that are named: da.cured.sum("time"), da.cured.reduce(["mean", "std"], ["lat", "lon"])."""

    def __init__(self, array):
        self._array = array

    def reduce(self, ops, dim=None, *, skipna=None, keepdims=False, keep_attrs=None, where=None, **options):
        """A Result of DataArrays. dim: a name, several, or None for all. skipna: NaNs are left out; by default of floats. where: a bool array that
        broadcasts by its dimensions. options: dtype, ddof, overflow and client of cured.reduce."""
        array, axes = self._array, _axes(self._array, dim)
        names = names_of(ops)
        options = _options(array, names, skipna, where, options)
        x, shape = dask_array(array), [1 if k in axes else n for k, n in enumerate(array.shape)]
        if not keepdims:
            shape = [n for k, n in enumerate(shape) if k not in axes]
        if x is None:
            found = _cured.reduce(array, names, axes, keepdims=True, **options)
        else:
            from . import dask
            found = dask.reduce(x, names, axes, keepdims=True, **options)
        return Result({op: answer if isinstance(answer, Exception) else _wrapped(array, answer.reshape(shape), axes, keepdims, keep_attrs)
                       for op, answer in found._answers.items()})

    def quantile(self, q, dim=None, *, method="linear", skipna=None, keepdims=False, keep_attrs=None, where=None, **options):
        """The quantiles of shares q, which are a coordinate named quantile."""
        array, axes, q = self._array, _axes(self._array, dim), numpy.asarray(q, numpy.float64)
        if q.ndim > 1:
            raise ValueError("q: a number or a list of numbers is wanted")
        options = _options(array, ["quantile"], skipna, where, options)
        x = dask_array(array)
        if x is None:
            found = _cured.quantile(array, q, axes, method=method, keepdims=True, **options)
        else:
            from . import dask
            found = dask.quantile(x, q, axes, method=method, keepdims=True, **options)
        shape = [1 if k in axes else n for k, n in enumerate(array.shape) if keepdims or k not in axes]
        lead, more = ("quantile",) * q.ndim, {"quantile": ("quantile", q) if q.ndim else q}
        return _wrapped(array, found.reshape(q.shape + tuple(shape)), axes, keepdims, keep_attrs, lead, more)


def _method(op):
    def method(self, dim=None, **options):
        return self.reduce([op], dim, **options)[op]

    method.__name__, method.__qualname__ = op, "Reductions." + op
    method.__doc__ = "%s\n\nOf one op what reduce() gives." % (getattr(_cured, op).__doc__ or op)
    return method


for _op in _cured._ops.split():
    if _op not in ("quantile", "digest", "dot", "sqdist", "average"):
        setattr(Reductions, _op, _method(_op))
