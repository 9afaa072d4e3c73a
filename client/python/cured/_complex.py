"""Arrays of complex numbers. To the core such an array is two real ones, the parts, which lie in its memory with gaps, or one with an axis more,
whose two elements are the parts of a number. So sums and means are asked of each part, squares of both at once, and counts of a bool array.

Called by the extension where it could not answer, so that a real array's call is as short as without complex numbers.
"""
import functools
import math
from fractions import Fraction

import numpy

from . import _blocks, _cured
from ._adapt import dtype_name, is_complex, is_stored, numbers
from ._beside import gathered, kept, mask_of, without_lists
from ._bins import whole
from ._counted import answer as counted
from ._counted import later as counted_later
from ._lists import _cuda_device, says_nothing
from ._out import default_type, store
from ._result import Result
from ._slices import axes_of

PARTS = ("sum", "mean", "average")  # each part is an answer
SQUARES = ("sumsq", "norm2", "sqdist")  # of the squares of both parts
SPREADS = ("var", "std")
TRUTHS = {"any": "any", "all": "all", "count_nonzero": "count_nonzero", "count_nan": "count_nonzero", "count_inf": "count_nonzero"}
OTHERS = ("count", "digest", "dot")
OF_ROOTS = "the magnitude of a complex number is a root, which is rounded: numpy.abs(a) makes an array of them, and cured.%s takes it"
REFUSED = {
    "prod": "products of complex numbers are not answered: numpy.prod(a) rounds each",
    "norm1": OF_ROOTS % "norm1", "norminf": OF_ROOTS % "norminf",
    "bit_and": "complex numbers have no bits: reduce a.view('u8')", "bit_or": "complex numbers have no bits: reduce a.view('u8')",
    "bit_xor": "complex numbers have no bits: reduce a.view('u8')",
}
NO_ORDER = "complex numbers have no order: reduce a.real and a.imag"
REAL_TYPES = {"complex64": "f32", "<c8": "f32", "csingle": "f32", "complex128": "f64", "<c16": "f64", "cdouble": "f64", "complex": "f64"}
FOLD = ("dtype", "ddof", "nan", "overflow")
BY_KEY = ("keys", "groups", "drop", "where", "nulls")


# ---- What is looked at ----

class Part:
    """A container of what a function makes of each block of another's. paired: with one more axis, of both parts."""

    def __init__(self, of, make, paired=False):
        from ._stores import Store, any_store_of
        store = any_store_of(of)
        chunks = store.chunks if store.chunks is None or not paired else (*store.chunks, 2)
        made = make(numpy.ma.masked_array(numpy.empty((0,) * store.ndim, store.dtype)))

        def read(box):
            return make(store.read(box[:-1]))[..., box[-1]] if paired else make(store.read(box))

        masked = store.masked or make is _without_nans
        self.store = Store(store.shape + (2,) * paired, made.dtype, chunks, masked, read)
        self.shape, self.dtype, self.ndim = self.store.shape, self.store.dtype, self.store.ndim


def _like(array, values):
    """Values with the mask of an array."""
    return numpy.ma.masked_array(values, numpy.ma.getmaskarray(array)) if isinstance(array, numpy.ma.MaskedArray) else values


def _real(array):
    return _like(array, numpy.ma.getdata(array).real)


def _imag(array):
    return _like(array, numpy.ma.getdata(array).imag)


def _pairs(array):
    """A view with one more axis, of both parts."""
    real = numpy.ma.getdata(array).real
    view = numpy.lib.stride_tricks.as_strided(real, real.shape + (2,), real.strides + (real.itemsize,), writeable=False)
    if not isinstance(array, numpy.ma.MaskedArray):
        return view
    return numpy.ma.masked_array(view, numpy.broadcast_to(numpy.ma.getmaskarray(array)[..., None], view.shape))


def _turned_pairs(array):
    """The same view of what a product's imaginary part takes: (imag, real)."""
    return _pairs(array)[..., ::-1]


def _conjugate_pairs(array):
    return _pairs(_like(array, numpy.conj(numpy.ma.getdata(array))))


def _without_nans(array):
    """The numbers of which no part is NaN."""
    values = numpy.ma.getdata(array)
    return numpy.ma.masked_array(values, numpy.ma.getmaskarray(array) | numpy.isnan(values))


def _truth(op, array):
    values = numpy.ma.getdata(array)
    return _like(array, numpy.isnan(values) if op == "count_nan" else numpy.isinf(values) if op == "count_inf" else values != 0)


def _opened(array):
    """NumPy's array, or a container, or a list of these, of complex numbers."""
    if isinstance(array, (list, tuple)):
        if not all(map(is_complex, array)):
            raise TypeError("a list with complex arrays has no others: a.astype('complex128') makes one of each")
        return [_opened(one) for one in array]
    if _cuda_device(array) is not None:
        raise TypeError("complex numbers on a GPU are not reduced as such: torch.view_as_real(t) is a tensor of both parts, along one more axis")
    if is_stored(type(array)):
        return array
    if hasattr(array, "resolve_conj"):  # torch
        array = array.detach().resolve_conj().resolve_neg().numpy()
    return array if isinstance(array, numpy.ma.MaskedArray) else numpy.asarray(array)


def _view(array, make, paired=False):
    """What a function makes of an array, of each block of a container, or of each array of a list."""
    if isinstance(array, list):
        return [_view(one, make, paired) for one in array]
    return Part(array, make, paired) if is_stored(type(array)) else make(array)


def in_memory(array, name):
    """NumPy's array of what a container holds; a list and an array are as they were."""
    if isinstance(array, list) or not is_stored(type(array)):
        return array
    from ._stores import any_store_of
    store = any_store_of(array)
    size = math.prod(store.shape) * store.dtype.itemsize
    if size > _blocks.MOST_BYTES:
        raise ValueError("%s: the container has %d bytes, and %d are read at most: pass numpy.asarray(a[…]) of a part of it"
                         % (name, size, _blocks.MOST_BYTES))
    return _blocks._checked(store, tuple(slice(0, n) for n in store.shape))


def parts(array):
    """The arrays whose numbers an array consists of: a real one is its own."""
    if not (any(map(is_complex, array)) if isinstance(array, (list, tuple)) else is_complex(array)):
        return [array]
    array = _opened(array)
    return [_view(array, _real), _view(array, _imag)]


def _ndim(array):
    if not is_stored(type(array)):
        return array.ndim
    from ._stores import any_store_of
    return any_store_of(array).ndim


# ---- What is asked: generators that give (function, array, ops, options), and are sent the answers by their names ----

def _joined(real, imag):
    """Both parts of each answer."""
    if isinstance(real, float):
        return complex(real, imag)
    if isinstance(real, Exception):
        return real
    made = numpy.empty(real.shape, "c8" if real.dtype == "f4" else "c16")
    made.real, made.imag = real, imag
    return made


def _of_parts(array, ops, options):
    initial, found = options.get("initial"), []
    if initial is not None and (isinstance(initial, str) or not hasattr(initial, "__complex__") and not isinstance(initial, (int, float, complex))):
        raise TypeError("initial: a number is wanted, not %r" % type(initial))
    for name, make in (("real", _real), ("imag", _imag)):
        more = options if initial is None else {**options, "initial": getattr(complex(initial), name)}
        found.append((yield "reduce", _view(array, make), ops, more))
    return {op: _joined(found[0][op], found[1][op]) for op in ops}


def _of_halves(halves, ops, options):
    """By key, where one more axis does not go: of pairs of an array and a second one, or None, as of one array."""
    if {"axis", "keepdims", "offsets"} & set(options):  # only the first axis has keys
        yield "reduce", halves[0][0], ["count"], _places(options)
    if 0 in halves[0][0].shape[1:]:  # there is no state of rows without elements
        return (yield "reduce", halves[0][0], ops, {**options, **({} if halves[0][1] is None else {"second": halves[0][1]})})
    placed, states = {name: options[name] for name in BY_KEY if name in options}, []
    for array, second in halves:
        states.append((yield "partial", array, ops, {**placed, **({} if second is None else {"second": second})}))
    found, rows = _cured.merge(states).finish(ops, **{name: options[name] for name in FOLD if name in options}), halves[0][0].shape[1:]
    return {op: answer.reshape(len(answer), *rows) for op, answer in found.items()}


def _places(options):
    """The options of a count of the same numbers."""
    return {name: value for name, value in options.items() if name not in FOLD and name != "second"}


def _mask(where):
    return gathered(("where", where)) if is_stored(type(where)) else mask_of(where)


def _of_segments(array, makes, ops, options):
    """By offsets, which go with one axis: both parts of a number lie side by side on it."""
    yield "reduce", _view(array, _real), ["count"], _places(options)  # raises what is wrong with the places
    array = in_memory(array, "offsets")
    offsets, more = whole(options["offsets"], "offsets")[0].astype("i8"), dict(options)
    if "where" in more:
        more["where"] = numpy.broadcast_to(_mask(more["where"])[..., None], array.shape + (2,)).reshape(-1)
    if makes[1] is not None:
        more["second"] = makes[1][0](makes[1][1]).reshape(-1)
    return (yield "reduce", makes[0](array).reshape(-1), ops, {**more, "offsets": offsets * 2})


def _of_pairs(array, makes, ops, options):
    """Of the array with one more axis. makes: the function that makes the pairs, and None, or that of the second array and the array."""
    if isinstance(array, list):
        return (yield "reduce", _view(array, makes[0], True), ops, options)
    if "offsets" in options:
        return (yield from _of_segments(array, makes, ops, options))
    more, ndim = {name: value for name, value in options.items() if name not in ("axis", "keepdims")}, _ndim(array)
    if makes[1] is not None:
        more["second"] = _view(makes[1][1], makes[1][0], True)
    if "where" in more:
        more["where"] = _mask(more["where"])[..., None]
    if "axis" in options or "keepdims" in options:
        axes = axes_of(options.get("axis"), ndim)
        more.update(axis=(*(range(ndim) if axes is None else axes), ndim), keepdims="keepdims" in options)
    found = yield "reduce", _view(array, makes[0], True), ops, more
    if "keepdims" not in options:
        return found
    return {op: answer if isinstance(answer, Exception) else numpy.squeeze(answer, -1) for op, answer in found.items()}


def _of_squares(array, second, ops, options):
    if "keys" not in options:
        return (yield from _of_pairs(array, (_pairs, None if second is None else (_pairs, second)), ops, options))
    halves = [(_view(array, make), None if second is None else _view(second, make)) for make in (_real, _imag)]
    return (yield from _of_halves(halves, ops, options))


def _of_products(array, second, options):
    """Neither array is conjugated, as by NumPy's dot."""
    if "keys" in options:
        a, b, c, d = (_view(given, make) for given in (array, second) for make in (_real, _imag))
        real = yield from _of_halves([(a, c), (b, -d)], ["dot"], options)
        imag = yield from _of_halves([(a, d), (b, c)], ["dot"], options)
    else:
        real = yield from _of_pairs(array, (_pairs, (_conjugate_pairs, second)), ["dot"], options)
        imag = yield from _of_pairs(array, (_pairs, (_turned_pairs, second)), ["dot"], options)
    return {"dot": _joined(real["dot"], imag["dot"])}


# ---- Variances ----

def rows_of(array, options, groups):
    """The numbers of each answer, in order."""
    if "where" in options:
        keep = numpy.broadcast_to(_mask(options["where"]), array.shape)
        array = numpy.ma.masked_array(numpy.ma.getdata(array), numpy.ma.getmaskarray(array) | ~keep)
    if "offsets" in options:
        at = whole(options["offsets"], "offsets")[0].astype("i8").tolist()
        return [array[a:b] for a, b in zip(at, at[1:])]
    if "keys" in options:
        keys = whole(options["keys"], "keys")[0]
        order = numpy.argsort(keys, kind="stable")
        at = numpy.searchsorted(keys[order], numpy.arange(groups + 1)).tolist()
        rows = array.reshape(len(array), math.prod(array.shape[1:]))
        return [column for a, b in zip(at, at[1:]) for column in rows[order[a:b]].T]
    axes = axes_of(options.get("axis"), array.ndim)
    axes = tuple(range(array.ndim)) if axes is None else axes
    stay = [k for k in range(array.ndim) if k not in axes]
    turned = array.transpose(*stay, *axes)
    count = math.prod(turned.shape[:len(stay)])
    return turned.reshape(count, -1) if array.size else [turned.reshape(-1)] * count


def _variance(array, op, options, more):
    """The sum of both parts' variances, or its root, rounded once."""
    from ._fraction import of_partials, type_name
    states = []
    for part in parts(array):
        states.append((yield "partial", part, ["var"], {"first": None, **more}))
    return of_partials(states, op, Fraction(float(options.get("ddof", 0))), type_name(options.get("dtype", "f64")))


def _spread(array, op, options):
    """var or std, of each answer by itself."""
    plain = {name: options[name] for name in ("where", "nulls") if name in options}
    if options.keys() <= {"dtype", "ddof", *plain}:
        return (yield from _variance(array, op, options, plain))
    sample = (yield "reduce", _view(array, _real), [op], options)[op]  # raises what is wrong, and says shape and type
    if isinstance(sample, float):
        return (yield from _variance(array, op, options, plain))
    answers = []
    for row in rows_of(in_memory(array, op), options, len(sample) if sample.shape else 1):
        answers.append((yield from _variance(row, op, options, {})))
    return numpy.array(answers, sample.dtype).reshape(sample.shape)


# ---- What is called ----

def _steps(array, second, names, options):
    """All answers by their names."""
    seen, answers = array, {}
    options = dict(options)
    if options.pop("nan", "propagate") == "skip":
        if "nulls" in options:
            yield "reduce", _view(array, _real), ["count"], _places(options)  # raises where an element is missing
            del options["nulls"]
        seen = _view(array, _without_nans)
    plain = _places(options)
    some = {kind: [op for op in names if op in kind] for kind in (PARTS, SQUARES, SPREADS)}
    folded = {name: value for name, value in options.items() if name != "ddof"}
    if some[PARTS]:
        answers.update((yield from _of_parts(seen, some[PARTS], folded)))
    if some[SQUARES]:
        answers.update((yield from _of_squares(seen, second, some[SQUARES], folded)))
    if "dot" in names:
        answers.update((yield from _of_products(seen, second, folded)))
    for op in some[SPREADS]:
        answers[op] = yield from _spread(seen, op, options)
    if "count" in names:
        answers.update((yield "reduce", _view(seen, _real), ["count"], plain))
    if "digest" in names:
        answers.update((yield from _of_pairs(array, (_pairs, None), ["digest"], plain)))
    for op in names:
        if op in TRUTHS:
            truths = _view(array if op == "count_nan" else seen, functools.partial(_truth, op))
            answers[op], = (yield "reduce", truths, [TRUTHS[op]], plain).values()
    return answers


def _real_type(dtype):
    """The type that each part is rounded to. Its name, or that of a type of complex numbers, says it."""
    if getattr(dtype, "byteorder", "=") == ">":
        dtype = dtype.newbyteorder("=")
    name = dtype if isinstance(dtype, str) else dtype_name(dtype)
    return REAL_TYPES.get(name, dtype)


def _check(names, options, has_second):
    """Raises what is wrong with the ops, and with the options that say how the answers are rounded."""
    for op in names:
        if op not in PARTS + SQUARES + SPREADS + OTHERS and op not in TRUTHS:
            raise TypeError("%s: %s" % (op, REFUSED.get(op, NO_ORDER)))
    one = numpy.zeros(1)
    _cured.reduce(one, names, **{name: options[name] for name in (*FOLD, "correction") if name in options}, **({"second": one} if has_second else {}))


def _second(array, second, names):
    """Of dot and sqdist the second array, opened."""
    if isinstance(array, list):
        raise TypeError("second: a list of arrays has no pairs: ask for each of them")
    if "average" in names:
        raise TypeError("second: weights of complex numbers are real, and what dot and sqdist take is not: ask for each by itself")
    second = numbers(second) if _cured._is_of_numbers(second) else second
    if not is_complex(second):
        raise TypeError("second: the array is of complex numbers: second.astype(a.dtype) makes these of it")
    second = in_memory(_opened(second), "second")
    if second.shape != array.shape or second.dtype.newbyteorder("=") != array.dtype.newbyteorder("="):
        raise ValueError("second: it is %s of %r, the array %s of %r" % (second.dtype, second.shape, array.dtype, array.shape))
    return second


def _prepared(arguments):
    """What is asked, (array, second, ops, options); the client; and out."""
    what, array, names, client, options = arguments
    if what == "partial":
        raise TypeError("a partial has no complex numbers: ask for those of a.real and a.imag")
    options = {name: value for name, value in options.items() if not says_nothing(name, value)}
    if what and "initial" in options:
        raise TypeError("initial: only sum takes it of complex numbers")
    client, out = options.pop("client", client), options.pop("out", None)
    if "dtype" not in options and what == "" and out is not None and names[0] in (*PARTS, *SQUARES, *SPREADS, "dot"):
        options["dtype"] = default_type((out,))
    options = without_lists({name: value for name, value in options.items() if value is not None})
    if "dtype" in options:
        options["dtype"] = _real_type(options["dtype"])
    _check(names, options, "second" in options)
    array = _opened(array)
    if "correction" in options:
        options["ddof"] = options.pop("correction")
    second = None
    if {"dot", "sqdist"} & set(names):
        array = in_memory(array, "second")
        second = _second(array, options.pop("second"), names)
    elif is_complex(options.get("second")):
        raise TypeError("second: weights are real numbers")
    options = kept(options, array)
    return (array, second, names, options), client, out


def _made(what, names, answers, out=None):
    """What the function gives."""
    made = Result({op: answers[op] for op in names}) if what else answers[names[0]]
    if isinstance(made, Exception):
        raise made
    return made if out is None else store((made, out, what == "", names))


def answer(arguments):
    """Of a call: what, "reduce" for a Result, "partial", or "" for the one op's answer; the array; the ops; the client; its options."""
    what, array, names, client, options = arguments
    if options.get("min_count"):
        return counted(arguments)
    prepared, client, out = _prepared(arguments)
    steps, found, client = _steps(*prepared), None, {} if client is None else {"client": client}
    while True:
        try:
            kind, array, ops, more = steps.send(found)
        except StopIteration as end:
            return _made(what, names, end.value, out)
        if kind == "partial":
            found = _cured.partial(array, ops, **more, **client)
        elif "initial" in more:
            found = {ops[0]: getattr(_cured, ops[0])(array, **more, **client)}
        else:
            found = _cured.reduce(array, ops, **more, **client)._answers


def later(arguments):
    """Of an AsyncClient's call: the function that awaits its answer, of the client."""
    what, _, names, _, options = arguments
    if options.get("client") is not None:
        raise TypeError("client: an AsyncClient answers by itself")
    if options.get("out") is not None or options.get("initial") is not None:
        raise TypeError("AsyncClient takes no %s: cured.Client does" % ("initial" if options.get("out") is None else "out"))
    if options.get("min_count"):
        return counted_later(arguments)
    prepared, _, _ = _prepared(arguments)
    ddof = float(prepared[-1].get("ddof", 0))
    if ddof < 0 or ddof != int(ddof):
        raise TypeError("ddof: AsyncClient takes a whole number")
    return functools.partial(_awaited, what, names, prepared)


async def _awaited(what, names, prepared, client):
    steps, found = _steps(*prepared), None
    while True:
        try:
            kind, array, ops, more = steps.send(found)
        except StopIteration as end:
            return _made(what, names, end.value)
        found = await getattr(client, kind)(array, ops, **more)
        found = found if kind == "partial" else found._answers
