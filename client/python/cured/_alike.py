"""Ops of two arrays whose types differ, or of a second array of which elements are missing. Both become arrays of one type that holds all their
elements, and where= leaves out what is missing.

Called by the extension where it refused such a call, so that the call of two arrays alike is as short as before.
"""
import functools

import numpy

from . import _cured
from ._adapt import missing_at
from ._bins import whole
from ._search import NUMPY

READ = "second: a file's elements are not cast: pass numpy.load(path, mmap_mode='r')"


def _filled(array, missing):
    """The array, whose missing elements are 0, because all types hold that; and where they are; None: nowhere."""
    if missing is None or not missing.any():
        return array, None
    return numpy.where(missing, array.dtype.type(0), array), missing


def _second(given):
    """NumPy's array of the second one, and where elements of it are missing; None: nowhere."""
    if isinstance(given, (list, tuple, range)):
        from ._beside import listed
        given = listed(("second", given))
    return _filled(*whole(given, "second"))


def _dtype(array):
    """NumPy's type of an array's elements."""
    if isinstance(array, _cured.File):
        return numpy.dtype(NUMPY[array.dtype])
    return whole(array, "a")[0].dtype.newbyteorder("=")


def is_unlike(arguments):
    """For the extension: whether two arrays go together once they are cast, or the second's mask is looked at."""
    array, second = arguments
    try:
        own, (other, missing) = _dtype(array), _second(second)
    except (TypeError, ValueError, KeyError):  # of a GPU, or of a type that NumPy has not: what was refused stays refused
        return False
    return own.kind in "biufc" and other.dtype.kind in "biufc" and (missing is not None or own != other.dtype.newbyteorder("="))


# ---- Types ----

def _integers_fit(values, dtype):
    """Whether floats of the type hold all integers."""
    bits = numpy.finfo(dtype).nmant + 1
    if values.dtype.kind == "b" or 8 * values.dtype.itemsize <= bits or values.size == 0:
        return True
    low, high = int(values.min()), int(values.max())
    if max(high, -low) <= 2**bits:
        return True
    if dtype.itemsize < 4:  # larger ones may be beyond its range
        return False
    sizes = values.astype("u8")
    if values.dtype.kind == "i":
        numpy.negative(sizes, out=sizes, where=values < 0)
    return bool((sizes // numpy.maximum(sizes & (~sizes + numpy.uint64(1)), numpy.uint64(1)) <= 2**bits).all())


def _floats_fit(values, dtype):
    """Whether integers of the type hold all floats; -0 is no integer."""
    low, high = numpy.iinfo(dtype).min, numpy.iinfo(dtype).max + 1
    return bool(((values == numpy.trunc(values)) & (values >= float(low)) & (values < float(high)) & ~(numpy.signbit(values) & (values == 0))).all())


def _fits(values, dtype):
    if values.dtype.kind == "c" or dtype.kind == "c":
        return dtype.kind == "c" and _fits(values.real, numpy.empty(0, dtype).real.dtype) and _fits(values.imag, numpy.empty(0, dtype).real.dtype)
    own = values.dtype.kind
    if dtype.kind == "f":
        if own == "f":
            with numpy.errstate(all="ignore"):
                return values.dtype.itemsize <= dtype.itemsize or bool(((values.astype(dtype) == values) | numpy.isnan(values)).all())
        return _integers_fit(values, dtype)
    if dtype.kind == "b":
        return own == "b"
    if own == "f":
        return _floats_fit(values, dtype)
    if own == "b" or values.size == 0:
        return True
    return numpy.iinfo(dtype).min <= int(values.min()) and int(values.max()) <= numpy.iinfo(dtype).max


def cast(values, dtype):
    """The same values in another type; None: it does not hold them all."""
    if values.dtype == dtype:
        return values
    return values.astype(dtype) if _fits(values, dtype) else None


def refused(own, other):
    names = [_cured._type_of(numpy.empty(0, dtype)) if dtype.kind != "c" else dtype.name for dtype in (other.newbyteorder("="), own.newbyteorder("="))]
    return TypeError("second: it is of %s, the array of %s, and neither type, nor f64, holds the elements of both: cast one, which rounds" % tuple(names))


def together(a, b):
    """Both arrays in one type that holds all their elements, and the type that answers have by default. Of types that no other holds the values decide."""
    wide = numpy.promote_types(a.dtype, b.dtype)
    kinds = [wide]
    if wide.kind == "f" and any(array.dtype.kind in "iu" and array.dtype.itemsize == 8 for array in (a, b)):
        kinds = [numpy.dtype(name) for name in ("i8", "u8", "f8")] if a.dtype.kind + b.dtype.kind in ("iu", "ui") else [wide, numpy.dtype("i8"), numpy.dtype("u8")]
    for dtype in kinds:
        first = cast(a, dtype)
        second = None if first is None else cast(b, dtype)
        if second is not None:
            return first, second, "f64" if wide.kind == "f" and dtype.kind != "f" else None
    raise refused(a.dtype, b.dtype)


def of_blocks(store, second, dtype):
    """A container, and a function that reads boxes of a second array, in the type that holds the elements of both; each block's are looked at."""
    from ._stores import Store
    wide = numpy.promote_types(store.dtype, dtype)

    def made(read):
        def part(box):
            found = read(box)
            values, missing = _filled(numpy.ma.getdata(found), numpy.ma.getmask(found) if numpy.ma.getmask(found) is not numpy.ma.nomask else None)
            values = cast(values, wide)
            if values is None:
                raise refused(store.dtype, dtype)
            return values if missing is None else numpy.ma.masked_array(values, missing)
        part.dtype, part.masked = wide, getattr(read, "masked", False)
        return part

    return Store(store.shape, wide, store.chunks, store.masked, made(store.read)), made(second)


# ---- Calls ----

def without(where, missing):
    """where=, without what is missing."""
    if where is None or where is True:
        return ~missing
    keep, unknown = whole(where, "where")
    if keep.dtype != bool:
        return where  # who takes it says why
    return ~missing & (keep if unknown is None else keep & ~unknown)


def complete(array, options):
    """The options with a second array that misses nothing: pairs without one of their elements are left out by where=."""
    second, missing = _second(options["second"])
    if missing is None:
        return options
    if options.get("nulls") == "error":
        raise missing_at([int(at) for at in numpy.argwhere(missing)[0]])
    shape = array.shape if hasattr(array, "shape") else numpy.shape(array)
    if tuple(shape) != second.shape:
        raise ValueError("second: its shape is not the array's")
    return {**options, "second": second, "where": without(options.get("where"), missing)}


def _of_file(file, second):
    """The second array in the type of a file's elements, which are read where they lie."""
    made = cast(second, numpy.dtype(NUMPY[file.dtype]))
    if made is None:
        raise TypeError(READ)
    return made


def _alike(what, array, options):
    options = complete(array, {name: value for name, value in options.items() if name != "client"})
    second = _second(options["second"])[0]
    if isinstance(array, _cured.File):
        return array, {**options, "second": _of_file(array, second)}
    values, missing = _filled(*whole(array, "a"))
    values, second, dtype = together(values, second)
    if dtype is not None and what != "partial" and options.get("dtype") is None and options.get("out") is None:
        options["dtype"] = dtype
    return values if missing is None else numpy.ma.masked_array(values, missing), {**options, "second": second}


def answer(arguments):
    """Of a call: what, "reduce" for a Result, "partial", or "" for the one op's answer; the array; the ops; the client; its options."""
    what, array, names, client, options = arguments
    client = options.get("client", client)
    array, options = _alike(what, array, options)
    if what == "":
        return getattr(_cured, names[0])(array, client=client, **options)
    return getattr(_cured, what)(array, names, client=client, **options)


def later(arguments):
    """Of an AsyncClient's call: the function that awaits its answer, of the client."""
    what, array, names, _, options = arguments
    array, options = _alike(what, array, options)
    return functools.partial(_awaited, what, array, names, options)


async def _awaited(what, array, names, options, client):
    call = getattr(client._link, what or names[0])
    return await client._answer(call(array, **options) if what == "" else call(array, names, **options))
