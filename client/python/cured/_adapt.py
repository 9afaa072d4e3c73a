"""What stands for an array that has no plain buffer of a type that cured reduces, or a TypeError that says what to do.

Called by the extension, for types that it does not know; nothing here is in the way of an ordinary array.
"""
import sys

from ._advice import PLAIN, advice
from ._cured import _arrow_types

PACKAGES = ("h5py", "zarr", "netCDF4", "xarray", "dask")
CAPSULES = ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__", "__arrow_c_device_stream__")
ARRAYS = "an array is wanted: of NumPy, array.array, a memoryview, bytes, or a tensor that speaks DLPack"


def package_of(kind):
    """Of containers (_stores.py) the package of PACKAGES that a type, or one that it stands on, is from, "arrow" or "complex"; None: it is of another."""
    if kind.__module__ == "cured._complex":
        return "complex"
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        if package in PACKAGES:
            return package
    return "arrow" if is_arrow(kind) else None


def is_arrow(kind):
    """Whether objects of the type are read by their capsules, or are _arrow.py's own: pandas' are columns of NumPy's."""
    if kind.__module__ == "cured._arrow":
        return True
    return kind.__module__.partition(".")[0] != "pandas" and any(hasattr(kind, method) for method in CAPSULES)


def is_stored(kind):
    """For the extension: whether objects of the type are read by _stores.py, or told by it what to do. ImportError: there is no NumPy for that."""
    if package_of(kind) is None:
        return False
    from . import _stores  # noqa: F401
    return True


def adapt(a):
    """(array, mask): an object of the buffer protocol or DLPack, and where its elements are left out: an array, None where it cannot have
    a mask, False where it has none."""
    kind = type(a)
    package = kind.__module__.partition(".")[0]
    if hasattr(kind, "mask") and hasattr(kind, "compressed"):  # numpy.ma: its buffer knows nothing of the mask
        mask = a.mask
        return a.data, mask if getattr(mask, "ndim", 0) or mask else False
    if package == "pandas" and hasattr(kind, "to_numpy"):
        return column(a)
    if package == "pyarrow" and hasattr(kind, "null_count"):
        return arrow(a), None
    if is_no_array(kind):
        raise TypeError("%s: %s; numpy.asarray(a) makes one" % (kind.__name__, ARRAYS))
    return a, None


def adapt_mask(a):
    """adapt() of a mask. None stands where it may miss elements, and misses none."""
    values, missing = adapt(a)
    return values, None if missing is None or missing is False or not missing.any() else missing


def both_masks(arguments):
    """Where elements of an array count: where they are not missing, and `where` does not leave them out. Without that `where` itself, if it is
    none for this array: who takes it says why."""
    import numpy
    array, where = arguments
    values, missing = adapt(array)
    try:
        from ._bins import as_numpy
        keep, unknown = (where, None) if where is False else adapt_mask(where)
        keep = as_numpy(keep, "where")
        if keep.dtype != bool:
            return where
        keep = numpy.broadcast_to(keep if unknown is None else keep & ~unknown, numpy.shape(values))
    except (TypeError, ValueError):
        return where
    return numpy.asarray(keep & ~numpy.broadcast_to(missing, keep.shape))


def is_no_array(kind):
    """Whether a type is one of Python's own, whose objects hold no memory of elements of one type."""
    return kind.__module__.partition(".")[0] != "numpy" and issubclass(
        kind, (list, tuple, set, frozenset, dict, range, str, int, float, complex, type(None)))


def fits(number):
    """Whether a float has the integer's value."""
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def numbers(given):
    """The array that a list, a tuple or a range of Python's numbers stands for: NumPy's, of one axis for each depth of lists."""
    try:
        from ._beside import listed
    except ImportError:  # there is no NumPy
        return _plain(given)
    return listed(("a", given))


def _plain(given):
    import array
    kinds = {type(one) for one in given}
    if kinds == {bool}:
        return memoryview(bytes(given)).cast("?")
    if not kinds <= {bool, int, float}:
        raise TypeError("a: a list of Python's numbers is wanted; one of other things is an array where NumPy is installed")
    if not kinds or float in kinds:
        if all(type(one) is float or fits(one) for one in given):
            return array.array("d", given)
        raise TypeError("a: an integer stands among floats, and no float has its value")
    try:
        return array.array("Q" if max(given) >= 1 << 63 else "q", given)
    except OverflowError:
        raise TypeError("a: the list's integers have no type of 64 bits") from None


def samples(kind):
    """Arrays of every type, order and layout, by which numpy.c tries whether it knows the fields of `kind`; none if that is not
    numpy.ndarray."""
    numpy = sys.modules.get("numpy")
    if numpy is None or kind is not getattr(numpy, "ndarray", None) or kind.__basicsize__ < 80:
        return []
    arrays = []
    for code in "?bBhHiIlLqQefd":
        for order in "<>":
            whole = numpy.zeros((2, 3, 5), order + code)
            arrays += [whole, whole.T, whole[::-1, 1:, ::2], whole[0, 1], numpy.zeros((), order + code)]
    return arrays


def column(a):
    """(values, mask) of a pandas Series, Index or extension array; of a nullable one the mask says what is missing."""
    if getattr(a, "ndim", 1) != 1:
        raise TypeError("%s: reduce its columns one by one, or a.to_numpy()" % type(a).__name__)
    dtype = a.dtype
    plain = None if is_numpys(dtype) else getattr(dtype, "numpy_dtype", None)  # of Int64, boolean, and pyarrow's
    if plain is None or getattr(plain, "kind", "O") in PLAIN:
        return checked(a.to_numpy() if not is_odd(dtype) else a, dtype, a), None
    missing = a.isna()
    missing = getattr(missing, "to_numpy", lambda: missing)()
    if not missing.any():
        return a.to_numpy(dtype=plain), None
    return a.to_numpy(dtype=plain, na_value=plain.type(0)), missing


def is_numpys(dtype):
    """Whether it is pandas' name for a type of NumPy's, as of Series.array: there NaN is a number as others."""
    return type(dtype).__name__ in ("PandasDtype", "NumpyEADtype")


def is_odd(dtype):
    """Whether a type of pandas has no NumPy array of elements: to_numpy() would make objects of them."""
    return str(dtype) == "category" or hasattr(dtype, "tz") or is_spans(dtype)


def is_spans(dtype):
    """Whether it is one of pandas' periods or intervals."""
    return type(dtype).__name__ in ("PeriodDtype", "IntervalDtype")


def missing_at(place):
    """What nulls="error" raises."""
    return ValueError("nulls: the array has missing elements, the first at %r; nulls='skip' leaves them out" % (place,))


def no_nulls(a):
    """ValueError where elements of a masked array, or of a nullable column, are missing."""
    import numpy
    missing = adapt(a)[1]
    missing = missing if missing is None else numpy.asarray(missing)
    if missing is not None and missing.any():
        raise missing_at([int(at) for at in numpy.argwhere(missing)[0]])


def arrow(a):
    """A pyarrow Array or ChunkedArray without nulls; of one chunk without a copy."""
    if a.null_count:
        raise TypeError("the pyarrow array has %d nulls: a.drop_null() leaves them out, a.fill_null(x) gives them a value"
                        % a.null_count)
    if hasattr(a, "num_chunks"):
        if a.num_chunks != 1:
            raise TypeError("the pyarrow array has %d chunks: reduce each with cured.partial(chunk, ops, first=…) and "
                            "cured.merge them, or a.combine_chunks()" % a.num_chunks)
        a = a.chunk(0)
    text = str(a.type)
    if text == "bool":
        raise TypeError("pyarrow packs bool in bits: a.cast('uint8') makes elements of them")
    if text not in _arrow_types.split():
        raise TypeError("pyarrow type %s is not reduced: %s" % (text, PLAIN["M" if "time" in text or "date" in text else "O"]))
    return a.to_numpy(zero_copy_only=True)


UNKNOWN = {"bfloat16": "bf16", "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2"}  # to NumPy: types of ml_dtypes


def eight_bits(tensor):
    """(its bytes, its type's name) of a tensor whose library does not hand such a type to DLPack: float8 and bools in older versions of torch,
    and bools in those of NumPy, whose numpy.array_api has no buffer either. None: it is another."""
    type_name = str(getattr(tensor, "dtype", "")).rpartition(".")[2]
    name = UNKNOWN.get(type_name, type_name)
    torch, numpy = (sys.modules.get(module) for module in ("torch", "numpy"))
    if not name.startswith("f8") and name != "bool":
        return None
    if torch is not None and (name != "bool" or isinstance(tensor, torch.Tensor)):
        return tensor.view(torch.uint8), name
    return (numpy.asarray(tensor).view("u1"), name) if numpy is not None and name == "bool" and hasattr(tensor, "__array__") else None


def checked(values, dtype, a=None):
    """The values, of a column a. TypeError where their type is none that is reduced, with advice that works for what the caller has."""
    kind = getattr(values.dtype, "kind", "O")
    if str(dtype) == "category":
        of = "a.cat" if hasattr(a, "cat") else "a"  # a Series; an Index or an array
        plain = getattr(dtype.categories.dtype, "kind", "O") in "biuf"
        values = "; a.astype(%s.categories.dtype) has its values" % of if plain else ""
        raise TypeError("dtype category is not reduced: %s.codes are its numbers (-1: missing)%s" % (of, values))
    if is_spans(dtype) and "interval" in str(dtype):
        raise TypeError("dtype %s is not reduced: reduce its ends, %s.left and %s.right" % (dtype, *["a" if hasattr(a, "left") else "a.array"] * 2))
    if is_spans(dtype):
        raise TypeError("dtype %s is not reduced: a.astype('int64') is its count of periods since 1970; a.dropna() first, where NaT is among them"
                        % (dtype,))
    if hasattr(dtype, "tz"):
        raise TypeError("dtype %s is not reduced: a.astype('int64') is its count of nanoseconds since 1970 in UTC; a.dropna() first, where NaT "
                        "is among them" % (dtype,))
    if kind in PLAIN:
        raise TypeError("dtype %s is not reduced: %s" % (dtype, advice("G" if kind == "c" and values.dtype.itemsize > 16 else kind, a)))
    return values


def refused(a):
    """(another view of it, its dtype's name), for an array whose buffer is not of a type that cured reduces."""
    dtype = getattr(a, "dtype", None)
    if dtype is None:
        try:
            text = memoryview(a).format
        except TypeError:
            raise TypeError("%s: %s" % (type(a).__name__, ARRAYS)) from None
        except (ValueError, BufferError) as error:
            raise TypeError("%s: %s" % (type(a).__name__, error)) from None
        raise TypeError("format '%s' is not reduced: cast the memory to one of ? b B h H i I l L q Q e f d" % text)
    if str(dtype) in UNKNOWN and hasattr(a, "view"):
        name = UNKNOWN[str(dtype)]
        return a.view("uint16" if name == "bf16" else "uint8"), name
    kind = getattr(dtype, "kind", "")
    if kind == "f" and getattr(dtype, "itemsize", 0) > 8:
        kind = "g"
    if kind == "c" and getattr(dtype, "itemsize", 0) > 16:
        kind = "G"
    if kind == "V" and getattr(dtype, "fields", None) is None:
        kind = ""
    if kind and kind in "biuf":  # a type that is reduced, of an object that has no memory to read
        raise TypeError("%s: %s; numpy.asarray(a) makes one" % (type(a).__name__, ARRAYS))
    raise TypeError("dtype %s is not reduced: %s" % (dtype, advice(kind, a) if kind in PLAIN else "cast it to float64, float32 or an integer type"))


def dtype_name(given):
    """The name of what may stand for a type: numpy.dtype, numpy.float32, float, int, bool, torch.float32."""
    if given is float:
        return "f64"
    if given is int:
        return "i64"
    if given is bool:
        return "bool"
    if getattr(given, "byteorder", "=") == ">":  # its name says nothing of that
        return given.str
    name = given.__name__ if isinstance(given, type) else getattr(given, "name", None) or str(given)
    return name.rpartition(".")[2]


def is_complex(a):
    """Whether the elements are complex numbers that _complex.py answers for."""
    dtype = getattr(a, "dtype", None)
    if dtype is not None:
        name = getattr(dtype, "name", None) or str(dtype)
        return isinstance(name, str) and name.rpartition(".")[2] in ("complex64", "complex128")
    try:
        return memoryview(a).format.lstrip("@=<>!") in ("Zf", "Zd")
    except (TypeError, ValueError, BufferError):
        return False


def has_complex(a):
    """For the extension: the same, of an array or one in a list."""
    return any(map(is_complex, a)) if isinstance(a, (list, tuple)) else is_complex(a)


class _AxisError(ValueError, IndexError):
    """As NumPy's, where there is no NumPy."""

    def __init__(self, axis, ndim):
        super().__init__("axis %d is out of bounds for array of dimension %d" % (axis, ndim))
        self.axis, self.ndim = axis, ndim


def axis_error(arguments):
    """NumPy's exception for an axis that is not there."""
    numpy = sys.modules.get("numpy")
    return getattr(getattr(numpy, "exceptions", numpy), "AxisError", _AxisError)(*arguments)


def unknown_op(arguments):
    import difflib
    word, names = arguments
    near = difflib.get_close_matches(word.strip(), names, 1)
    raise ValueError("ops: unknown op '%s'%s; there are %s"
                     % (word, " (did you mean %s?)" % near[0] if near else "", " ".join(names)))
