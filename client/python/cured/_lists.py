"""Lists of arrays, which are answered as one array in the list's order: what cured.reduce([a, b], ops) and the others come to, and
cured.reduce_each.

The extension calls answer() for a list or a tuple, so that an array's call is as short as without lists. Each array is folded where it
lies, and partials are merged. Arrays of several types are one array of the narrowest type that holds them all.
"""
import contextlib
import re

from . import _cured
from ._adapt import adapt, is_arrow, is_no_array, is_stored
from ._cured import _is_float, _is_index, _is_ordered, _is_ranked, _widened, partial
from ._result import Result

OPTIONS = ("dtype", "ddof", "nan", "overflow")
_TOGETHER = frozenset(OPTIONS)
REFUSED = {
    "axis": "axis: a list of arrays is one array without axes: cured.reduce_each(list, ops, axis=…) answers each",
    "keepdims": "keepdims: a list of arrays is one array without axes",
    "where": "where: a list of arrays takes no mask: put numpy.ma.masked_array(a, ~mask) in the list",
    "initial": "initial: a list of arrays takes none: put an array of one element in the list",
    "out": "out: a list of arrays has one answer, which is returned",
    "shape": "shape: a list of arrays is no block: cured.merge the partials of several",
    "start": "start: a list of arrays is no block: cured.merge the partials of several",
}


FLAGS = ("keepdims", "drop", "min_count")  # of which False and 0 say nothing
WORDS = {"where": True, "nulls": "skip", "overflow": "error"}  # which say nothing
BLOCK = 4096  # products of floats are cut at multiples of so many elements
PRODUCT = ("prod: of floats in a list, each array but the last must have a multiple of 4096 elements, because the bits go by the place of "
           "each element: numpy.concatenate them")
NO_PLACES = ("ops: %s goes by the places of elements, which a list with masked arrays has not, because elements are left out of it: ask for it of "
             "one array, such as cured.%s(numpy.ma.concatenate(list))")
UNPLACED = 2  # a partial's version: it has no position


def says_nothing(name, value):
    """Whether an option is as if it were not given. Of a flag that is any false value: 0, or NumPy's False."""
    if name in FLAGS:
        return not value
    return value is None or (isinstance(value, (bool, str)) and value == WORDS.get(name))


def names_of(ops):
    return [op.strip() for op in (ops.split(",") if isinstance(ops, str) else ops)]


def checked(arrays):
    """The arrays. TypeError where something else is in the list, of numbers as ever."""
    found = list(arrays)
    if not found or any(map(is_no_array, _kinds(found))):
        adapt(arrays if isinstance(arrays, (list, tuple)) else found)
    return found


def _kinds(arrays):
    """The types of all, each once: lists are long, and have few."""
    return {type(array) for array in arrays}


def _cuda_device(array):
    """The device of an array on a GPU; None: the array lies elsewhere."""
    if hasattr(array, "is_cuda"):  # torch: __cuda_array_interface__ raises for some tensors
        return array.device.index if array.is_cuda else None
    return getattr(getattr(array, "device", None), "id", 0) if hasattr(array, "__cuda_array_interface__") else None


def _runs(arrays, in_order):
    """Lists of arrays that are folded at once: those of one GPU and type, of neighbours alone where the order counts; others each."""
    runs, open_runs = [], {}
    for array in arrays:
        device = _cuda_device(array)
        kind = None if device is None else (device, array.dtype)
        if in_order and kind not in open_runs:
            open_runs.clear()
        if kind is None:
            runs.append((False, [array]))
        elif kind in open_runs:
            open_runs[kind].append(array)
        else:
            open_runs[kind] = [array]
            runs.append((True, open_runs[kind]))
    return runs


def _partials(arrays, ops, first, client, nulls):
    """The partials of all arrays, in order. first None: without a position."""
    partials, by_blocks = [], False
    for on_gpu, run in _runs(arrays, first is not None):
        cut = by_blocks and first % BLOCK
        whole = _cured._cuda_partial(run, ops, first) if on_gpu and client is None and not cut else None
        for array in run if whole is None else [whole]:
            if by_blocks and first % BLOCK:
                raise ValueError(PRODUCT)
            made = partial(array, ops, first=first, client=client, nulls=nulls) if whole is None else whole
            by_blocks = first is not None and "prod" in ops and _is_float(made.dtype)
            first = None if first is None else first + made.count
            partials.append(made)
    return partials


def misses(array):
    """Whether elements may be missing from an array, which has no position as a part then. Of Arrow's streams what they gave (kept())."""
    kind = type(array)
    if hasattr(kind, "mask") and hasattr(kind, "compressed"):
        return True
    if is_arrow(kind):
        return array.masked
    if is_stored(kind):
        from ._stores import store_of
        return bool(store_of(array).masked)
    return kind.__module__.partition(".")[0] == "pandas" and adapt(array)[1] is not None


def check_nulls(arrays, nulls):
    """nulls="error": raises where an element is missing, as a fold of the arrays would."""
    if nulls != "skip":
        partial(_cured.empty(0, "u8"), "count", nulls=nulls)  # raises where it is another word
        _partials([array for array in arrays if misses(array)], ["count"], None, None, nulls)


@contextlib.contextmanager
def placeless():
    """Of arrays that have no places, because some of them have masks: says so of an op that goes by places."""
    try:
        yield
    except ValueError as error:
        said = re.match(r"partial: without a position there is no (\w+) of|first: a part of a (digest)", str(error))
        if said is None:
            raise
        import numpy
        op = said[1] or said[2]
        getattr(_cured, op)(numpy.ma.masked_array([1.0], [False]))  # an op that goes with no mask at all says so
        raise ValueError(NO_PLACES % (op, op)) from None


def _has_masked(arrays):
    found = [kind for kind in _kinds(arrays) if hasattr(kind, "mask") or is_stored(kind) or kind.__module__.partition(".")[0] == "pandas"]
    return bool(found) and any(misses(array) for array in arrays if type(array) in found)


def fold(arrays, ops, first=None, client=None, nulls="skip"):
    """The Partial of all arrays as one. first None: without a position."""
    if first is not None and any(map(is_arrow, _kinds(arrays))):
        from ._arrow import kept
        arrays = [kept(array) for array in arrays]
    names = names_of(ops)
    if first is None or not _has_masked(arrays):
        return _widened(_partials(arrays, names, first, client, nulls))
    with placeless():
        return _widened(_partials(arrays, names, None, client, nulls))


def _partial(arrays, names, options, client):
    """As cured.partial's defaults: a position from 0 on, where the arrays can have one."""
    state = fold(arrays, names, options.get("first", 0), client, options.get("nulls", "skip"))
    _check(names, state.dtype, {name: options[name] for name in OPTIONS if not says_nothing(name, options.get(name))})
    if options.get("first") is not None and bytes(state)[2] == UNPLACED:
        raise TypeError("first: a list with masked arrays has no position: leave first away")
    return state


def _check(names, dtype, options):
    """Raises what is wrong with a partial's options, as of an array of the list's type, which says nothing else of the state."""
    if options:
        kind = "f32" if dtype in ("bf16", "f8_e4m3", "f8_e5m2") else dtype  # no Python array holds these
        partial(_cured.empty(0, kind), names, **options)


def check_options(options, taken):
    """Raises for an option that is set, and that a list does not take."""
    for name in set(options) - set(taken):
        if not says_nothing(name, options[name]):
            raise TypeError(REFUSED.get(name, "%s: a list of arrays takes none: numpy.concatenate the arrays" % name))


def _needs_places(names):
    """Whether an op may need the places of elements: an index, and a product, of floats perhaps."""
    return any(_is_index(name) or _is_ordered(name, "f64") for name in names)


def answer(arguments):
    """Of a call: what, "reduce" for a Result, "partial", or "" for the one op's answer; the list; the ops; the client; its options."""
    what, arrays, names, client, options = arguments
    arrays = checked(arrays)
    check_options(options, OPTIONS + ("first", "client", "nulls"))  # first is a partial's: the extension refuses others
    if what == "partial":
        return _partial(arrays, names, options, client)
    nulls = options.get("nulls", "skip")
    options = {name: options[name] for name in OPTIONS if name in options}
    ranked, answers = [name for name in names if _is_ranked(name)], {}
    if ranked:
        from ._arrow import kept
        arrays = [kept(array) for array in arrays]
        from ._search import answers_of_list
        check_nulls(arrays, nulls)
        taken = {name: options[name] for name in options if name in ("dtype", "nan") or len(ranked) == len(names)}
        answers.update(zip(ranked, answers_of_list(arrays, ranked, None, taken, client)))
    rest = [name for name in names if name not in answers]
    if rest:
        state = fold(arrays, rest, 0 if _needs_places(rest) else None, client, nulls)
        answers.update(_finished(state, rest, options, bool(ranked))._answers)
    return Result({name: answers[name] for name in names}) if what else _answer(answers[names[0]])


def _finished(state, names, options, dtype_is_taken):
    """dtype_is_taken: by an op beside these, so that it need not be by one of them."""
    try:
        return state.finish(names, **options)
    except ValueError:
        if not dtype_is_taken or "dtype" not in options:
            raise
        return state.finish(names, **{name: options[name] for name in options if name != "dtype"})


def _answer(value):
    if isinstance(value, Exception):
        raise value
    return value


def reduce_each(arrays, ops, /, **options):
    """A sequence with the Result of each array. options: as of cured.reduce, but for out, of which each array would want its own."""
    if options.get("out") is not None:
        raise TypeError("out: reduce_each has a Result for each array: call cured.reduce(a, ops, out=…) for each")
    if not isinstance(arrays, (list, tuple)):
        arrays = list(arrays)
    if any(is_stored(type(value)) for value in options.values()):
        from ._beside import kept
        options = kept(options, arrays)
    ddof = options.get("ddof") or 0
    together = options.keys() <= _TOGETHER and hasattr(ddof, "__index__") and ddof >= 0  # others are divided by Python's integers
    if together and arrays and hasattr(type(arrays[0]), "__dlpack_c_exchange_api__"):  # C functions look at them, and at their types
        results = _cured._cuda_each(arrays, ops, True, **options)
        if results is not None:
            return results
    arrays = checked(arrays)
    results = each_of(arrays, ops, _each if together else None, _cured.reduce, options)
    return _cured._results(results) if isinstance(results, list) else results


def _each(arrays, ops, **options):
    return _cured._cuda_each(arrays, ops, False, **options)


def each_of(arrays, ops, together, alone, options):
    """A sequence with the answer for each array: of the CUDA tensors of one device by one call together(list, ops, …), where its answer is not
    None; of others by alone(array, ops, …). together None: of all."""
    answers, devices = [None] * len(arrays), {}
    for i, array in enumerate(arrays):
        device = _cuda_device(array) if together is not None else None
        if device is not None:
            devices.setdefault(device, []).append(i)
    for places in devices.values():
        made = together([arrays[i] for i in places], ops, **options)
        if made is not None and len(made) == len(arrays):
            return made
        for i, answer in zip(places, made or ()):
            answers[i] = answer
    return [alone(array, ops, **options) if answer is None else answer for array, answer in zip(arrays, answers)]
