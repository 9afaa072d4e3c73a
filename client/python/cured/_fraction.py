"""var and std with a ddof that is no whole number (NumPy's ddof=0.5, the Array API's correction=1.5): from the exact sums of a partial, by
Python's integers, rounded once. Called by the extension, for arrays of every kind and lists.

An answer along an axis, by key or by offsets takes 24 µs (f32) to 50 µs (f64) here, because each has a partial of its own.
"""
import math
from fractions import Fraction

import numpy

from . import _cured
from ._adapt import adapt, is_stored
from ._arrow import OnGpu, kept
from ._beside import kept as kept_beside, mask_of
from ._blocks import complete
from ._chunks import Call
from ._lists import _cuda_device, check_options, says_nothing
from ._slices import along
from ._stores import store_of
from ._result import Result

# Of a type of elements: whether it is a float, limbs of the sum and of the sum of squares in linear form, and its grid's exponent
# (docs/PARTIALS.md).
SUMS = {"f8_e4m3": (3, 4, -9), "f8_e5m2": (3, 4, -16), "f16": (4, 5, -24), "bf16": (11, 20, -149), "f32": (11, 20, -149),
        "f64": (68, 134, -1074)}
INTEGERS = (5, 7, 0)
# Of a type of answers: bits of the significand, the exponent of the least number, the exponent beyond the greatest.
FORMATS = {"f64": (53, -1074, 1024), "f32": (24, -149, 128), "f16": (11, -24, 16), "bf16": (8, -133, 128)}


def _whole(limbs):
    number = 0
    for limb in reversed(limbs):
        number = (number << 32) + limb
    return number


def _variance(partial, ddof, skips):
    """The exact variance; None: it is not a number."""
    is_float = partial.dtype in SUMS
    first, second, grid = SUMS.get(partial.dtype, INTEGERS)
    numbers = partial.linear().tolist()
    n, at = numbers[0], 1
    total, at = _whole(numbers[at:at + first]), at + first
    specials, at = (numbers[at:at + 3], at + 3) if is_float else ((0, 0, 0), at)
    squares = _whole(numbers[at:at + second])
    if specials[1] or specials[2] or (specials[0] and not skips):
        return None
    n -= specials[0]
    divisor = n - ddof
    if n <= 0 or divisor <= 0:
        return None
    return Fraction(n * squares - total * total, n) * Fraction(2) ** (2 * grid) / divisor


def _rounded(top, bottom, dtype, root):
    """top / bottom, or its square root, rounded once to the type: a float that has exactly that value. Neither is negative."""
    bits, least, beyond = FORMATS[dtype]
    if top == 0:
        return 0.0
    shift = 2 * (bits + 4) - (top.bit_length() - bottom.bit_length())
    shift += shift % 2
    top, bottom = (top << shift, bottom) if shift >= 0 else (top, bottom << -shift)
    quotient, rest = divmod(top, bottom)
    exact = rest == 0
    if root:
        square, shift = quotient, shift // 2
        quotient = math.isqrt(square)
        exact = exact and quotient * quotient == square
    drop = max(quotient.bit_length() - bits, least + shift)  # the bits behind the last that the type has
    if drop > 0:
        kept, rest = quotient >> drop, quotient & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        kept += rest > half or (rest == half and (not exact or kept & 1))
    else:
        kept, drop = quotient, 0
    exponent = drop - shift
    if kept.bit_length() + exponent > beyond:
        return math.inf
    return math.ldexp(kept, exponent)


def _one(array, op, where, ddof, options, client):
    more = {"nulls": options.get("nulls", "skip"), **({} if where is None else {"where": where})}
    return of_partial(_cured.partial(array, "var", first=None, client=client, **more), op, ddof, options)


def of_partial(part, op, ddof, options):
    """The op's answer from the state of all elements."""
    return of_partials([part], op, ddof, options["dtype"], options.get("nan") == "skip")


def of_partials(parts, op, ddof, dtype, skips=False):
    """The same of the sum of the variances of both parts of complex numbers."""
    exact = [_variance(part, Fraction(ddof), skips) for part in parts]
    if None in exact:
        return math.nan
    exact = sum(exact)
    return _rounded(exact.numerator, exact.denominator, dtype, op == "std")


def _of_container(array, op, axes, keepdims, where, ddof, options, client):
    """By blocks, of which each comes here as an array."""
    call = Call(array, [op], client, {**options, "ddof": float(ddof), "axis": axes, "keepdims": keepdims, "where": where})
    answer = along(call, axes, call.check(True))[0]
    if isinstance(answer, Exception):
        raise answer
    return answer


def _ndim(array):
    if isinstance(array, OnGpu):
        return 1
    return store_of(array).ndim if is_stored(type(array)) else len(array.shape) if hasattr(array, "shape") else numpy.ndim(array)


def _as_numpy(values, how):
    """A NumPy array of the same elements. NumPy makes one object of a tensor that speaks DLPack alone."""
    try:
        array = numpy.asanyarray(values)
        return array if array.dtype != object else numpy.from_dlpack(values)
    except (TypeError, RuntimeError, BufferError, AttributeError):  # of a type that NumPy has not
        raise TypeError("ddof: %s of elements that NumPy has not a whole number is wanted: cast them to f32 (t.float()), which holds "
                        "each exactly" % how) from None


def _check_memory(array, how):
    if isinstance(array, _cured.File):
        raise TypeError("ddof: %s of a file a whole number is wanted: reduce numpy.load(path, mmap_mode='r')" % how)
    if _cuda_device(array) is not None:
        raise TypeError("ddof: %s of a CUDA tensor a whole number is wanted: reduce a copy in host memory (a.cpu() or a.get())" % how)


def _elements(array, how):
    """NumPy's array of the elements, a masked one where some are missing."""
    values, mask = adapt(array)
    values = _as_numpy(values, how)
    return values if mask is None or mask is False else numpy.ma.masked_array(values, mask)


def _grouped(array, op, placed, where, ddof, options, client):
    """By key or by offsets. placed: with these and the other options libcured says what is wrong, and the answers' shape and type."""
    how = "by key" if "keys" in placed else "by offsets"
    _check_memory(array, how)
    shared = {} if where is None else {"where": where}
    sample = _cured.reduce(array, [op], client=client, **options, **placed, **shared)[op]
    from ._complex import in_memory, rows_of
    array = in_memory(array, op) if is_stored(type(array)) else _elements(array, how)
    rows = rows_of(array, {**placed, **shared}, len(sample))
    options = {**options, "nulls": "skip"}
    answers = [_one(row, op, None, ddof, options, client) if len(row) else math.nan for row in rows]
    return numpy.array(answers, sample.dtype).reshape(sample.shape)


def _along(array, op, axes, keepdims, where, ddof, options, client):
    _check_memory(array, "along an axis")
    if is_stored(type(array)):
        return _of_container(array, op, axes, keepdims, where, ddof, options, client)
    array = _elements(array, "along an axis")
    if options.get("nulls") == "error":
        complete(array, (0,) * array.ndim)
        options = {**options, "nulls": "skip"}
    if where is not None:
        _cured.count(numpy.ma.getdata(array), where=where)  # raises what is wrong with the mask
        where = mask_of(where)
        missing = numpy.ma.getmaskarray(array) | ~numpy.broadcast_to(where, array.shape)
        array = numpy.ma.masked_array(numpy.ma.getdata(array), missing)
    stay = [k for k in range(array.ndim) if k not in axes]
    turned = array.transpose(*stay, *axes)
    kept = turned.shape[:len(stay)]
    rows = turned.reshape(math.prod(kept), -1) if array.size else [turned[0:0].ravel()] * math.prod(kept)
    sample = _cured.var(numpy.zeros(1), keepdims=True, dtype=options["dtype"])
    answers = numpy.array([_one(row, op, None, ddof, options, client) for row in rows], sample.dtype).reshape(kept)
    return numpy.expand_dims(answers, axes) if keepdims else answers


def answer(arguments):
    what, array, names, client, options = arguments
    from ._slices import axes_of
    options = kept_beside({name: value for name, value in options.items() if name != "client" and not says_nothing(name, value)}, array)
    ddof = Fraction(float(options.pop("ddof")))
    out, axis, keepdims, where = (options.pop(name, None) for name in ("out", "axis", "keepdims", "where"))
    if isinstance(array, (list, tuple)):
        check_options({"axis": axis, "keepdims": keepdims, "where": where}, ())
    elif len(names) > 1 or axis is not None or keepdims or "keys" in options or "offsets" in options:
        array = kept(array)  # it is looked at more than once
    mine = [op for op in names if op in ("var", "std")]
    for name in ("initial", "second", "overflow"):
        if name in options:
            raise TypeError("%s: not with a ddof that is no whole number" % name)
    if not mine:
        raise ValueError("ddof: none of the ops takes it")
    rest, shared = [op for op in names if op not in mine], {} if where is None else {"where": where}
    answers = {}
    if rest:
        asked = [*rest, mine[0]] if "dtype" in options else rest  # the type that none of these need take is of the others
        answers.update(_cured.reduce(array, asked, axis, keepdims=bool(keepdims), client=client, **shared, **options)._answers)
    if options.get("dtype") is None:
        options["dtype"] = _type_of_out(out) if what == "" and out is not None else "f64"
    options["dtype"] = type_name(options["dtype"])
    placed = {name: options.pop(name) for name in ("offsets", "keys", "groups", "drop") if name in options}
    # What is wrong with the options is said by an array of one element.
    _cured.var(numpy.zeros(1), **options)
    if placed:
        placed = {**placed, **({} if axis is None else {"axis": axis}), **({"keepdims": True} if keepdims else {})}
        answers.update({op: _grouped(array, op, placed, where, ddof, options, client) for op in mine})
        mine = []
    for op in mine:
        if axis is None and not keepdims:
            answers[op] = _one(array, op, where, ddof, options, client)
            continue
        ndim = _ndim(array)
        axes = tuple(range(ndim)) if axis is None else axes_of(axis, ndim)
        if len(axes) < ndim:
            answers[op] = _along(array, op, axes, keepdims, where, ddof, options, client)
            continue
        answers[op] = one = _one(array, op, where, ddof, options, client)
        if keepdims:
            answers[op] = numpy.full((1,) * ndim, one, _cured.var(numpy.zeros(1), keepdims=True, dtype=options["dtype"]).dtype)
    made = Result({op: answers[op] for op in names}) if what else answers[names[0]]
    if out is None:
        return made
    from ._out import store
    return store((made, out, what == "", names))


def type_name(dtype):
    name = dtype if dtype in FORMATS else {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}.get(
        str(dtype if isinstance(dtype, str) else getattr(dtype, "name", getattr(dtype, "__name__", dtype))).rpartition(".")[2])
    name = "f64" if dtype is float else name
    if name is None:
        try:
            name = {"d": "f64", "f": "f32", "e": "f16"}[numpy.dtype(dtype).char]
        except (KeyError, TypeError):
            raise ValueError("dtype: %r, must be f64, f32, f16 or bf16" % (dtype,)) from None
    return name


def _type_of_out(out):
    from ._out import default_type
    return default_type((out,)) or "f64"
