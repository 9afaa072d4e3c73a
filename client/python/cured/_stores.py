"""Containers whose elements lie elsewhere and come in blocks: datasets of h5py, arrays of zarr, variables of netCDF4 and xarray, dask
arrays, and what hands out Arrow's capsules (_arrow.py). Each becomes a Store, which says its shape, its type and its chunks, and reads a block.

None of these libraries is imported here: an object of one shows that its caller has imported it. A Store borrows the object.
"""
import threading

import numpy

from . import _arrow, _cured
from ._adapt import checked as check_dtype
from ._adapt import package_of
from ._bins import no_file, whole
from ._blocks import boxes, extents

_one_at_a_time = threading.Lock()  # netCDF's library is not for several threads


class Store:
    """An array that is read by blocks. chunks: the container's own, an extent for each axis, or None. masked: elements may be missing.
    dtype: of what read() gives, a NumPy array or a masked one, for a tuple of slices."""

    __slots__ = ("shape", "ndim", "dtype", "chunks", "masked", "read")
    is_stream = False  # the blocks come once, and nobody knows before how many there are

    def __init__(self, shape, dtype, chunks, masked, read):
        dtype = dtype if isinstance(dtype, numpy.dtype) else numpy.dtype(dtype)
        self.shape, self.dtype, self.chunks = tuple(map(int, shape)), dtype, chunks
        self.ndim, self.masked, self.read = len(self.shape), masked, read

    def boxes(self, **how):
        """The blocks to read, as _blocks.extents has them."""
        return boxes(self.shape, extents(self.shape, self.chunks, self.dtype.itemsize, **how))


def any_store_of(container):
    """Of a type that is reduced, or not."""
    return _READERS[package_of(type(container))](container)


def store_of(container):
    store = any_store_of(container)
    check_dtype(numpy.empty(0, store.dtype), store.dtype, container)
    return store


def type_name(container):
    """cured's name of the elements' type."""
    store = container if isinstance(container, _arrow.OnGpu) else store_of(container)
    return _cured._type_of(numpy.empty(0, store.dtype))


def _is_array(container):
    return all(hasattr(container, name) for name in ("shape", "dtype", "__getitem__"))


def _refuse_group(container, example):
    if not _is_array(container):
        raise TypeError("%s: it is no array: name one in it, such as %s" % (type(container).__name__, example))


def _h5py(dataset):
    _refuse_group(dataset, "file['name']")
    if dataset.shape is None:
        raise ValueError("the dataset has no shape and no elements (its HDF5 dataspace is null)")
    return Store(dataset.shape, dataset.dtype, dataset.chunks, False, lambda box: numpy.asarray(dataset[box], None if box else dataset.dtype))


def _zarr(array):
    _refuse_group(array, "group['name']")
    return Store(array.shape, array.dtype, array.chunks, False, lambda box: numpy.asarray(array[box], None if box else array.dtype))


def _netcdf(variable):
    """Missing elements, scale_factor and add_offset are the library's: what the variable itself would give is reduced."""
    _refuse_group(variable, "dataset['name']")

    def read(box):
        with _one_at_a_time:
            return numpy.asanyarray(variable[box if box else Ellipsis])

    if variable.dtype is str:
        check_dtype(numpy.empty(0, "U1"), "str")
    dtype = variable.dtype
    if getattr(variable, "scale", False) and 0 not in variable.shape:
        dtype = read(tuple(slice(0, 1) for _ in variable.shape)).dtype  # scaled elements have another type
    chunks = variable.chunking() if hasattr(variable, "chunking") else None
    return Store(variable.shape, dtype, chunks if isinstance(chunks, (list, tuple)) else None, getattr(variable, "mask", True), read)


def _xarray(array):
    _refuse_group(array, "dataset['name']")
    variable = getattr(array, "variable", array)
    if getattr(variable, "chunks", None) is not None:
        return _dask(variable.data)
    hint = variable.encoding.get("preferred_chunks") or variable.encoding.get("chunksizes")
    if isinstance(hint, dict):
        hint = [hint.get(name, size) for name, size in zip(variable.dims, variable.shape)]
    if not isinstance(hint, (list, tuple)) or len(hint) != variable.ndim or not all(isinstance(n, int) for n in hint):
        hint = None
    return Store(variable.shape, variable.dtype, hint, False, lambda box: numpy.asarray(variable[box].values))


def _dask(array):
    _refuse_group(array, "frame['name'].to_dask_array(lengths=True)")
    if not hasattr(array, "chunksize"):
        raise TypeError("%s: reduce %s" % (type(array).__name__, "x.to_dask_array(lengths=True)"))
    if any(size != size for size in array.shape):
        raise ValueError("x has chunks of unknown size: call x.compute_chunk_sizes() first")
    masked = isinstance(array._meta, numpy.ma.MaskedArray)
    return Store(array.shape, array.dtype, array.chunksize, masked, lambda box: numpy.asanyarray(array[box].compute()))


def dask_array(container):
    """The dask array of a container that has one; else None."""
    package = package_of(type(container))
    if package == "xarray" and _is_array(container):
        container = getattr(container, "variable", container)
        return container.data if getattr(container, "chunks", None) is not None else None
    return container if package == "dask" and hasattr(container, "chunksize") else None


_READERS = {"h5py": _h5py, "zarr": _zarr, "netCDF4": _netcdf, "xarray": _xarray, "dask": _dask, "arrow": _arrow.store_of,
            "complex": lambda part: part.store}


def beside(array, shape, what):
    """A function that reads, for a box of an array of `shape`, the part of a second array that broadcasts to it; dtype: that array's."""
    no_file(array, what)
    if what == "second" and isinstance(array, (list, tuple, range)):
        from ._beside import listed
        array = listed((what, array))
    if package_of(type(array)) is not None:
        store = store_of(array)
        own, dtype, read, masked = store.shape, store.dtype, store.read, store.masked
    else:
        array, missing = whole(array, what)
        masked = missing is not None and bool(missing.any())
        if masked:
            array = numpy.ma.masked_array(array, missing)
        own, dtype, read = array.shape, array.dtype, array.__getitem__
    behind = len(shape) - len(own)
    if what == "where" and dtype != bool:
        raise TypeError("where: a bool array is wanted, not one of %s" % dtype)
    if behind < 0 or any(n not in (1, whole) for n, whole in zip(own, shape[behind:])) or (what == "second" and own != shape):
        raise ValueError("%s: its shape is %r, the array's is %r" % (what, own, shape))

    def part(box):
        found = read(tuple(slice(0, 1) if n == 1 else cut for n, cut in zip(own, box[behind:])))
        if what == "where":  # broadcast_to forgets a mask
            found = numpy.ma.filled(found, False)
        return numpy.broadcast_to(found, [cut.stop - cut.start for cut in box], subok=True)

    part.dtype, part.masked = dtype, masked
    return part
