"""min_count=: an answer of fewer elements is none. Called by the extension, for arrays of every kind and lists."""
import functools
import operator

import numpy

from . import _arrow, _cured
from ._adapt import is_stored
from ._beside import kept
from ._lists import _cuda_device, misses
from ._result import Result

PAIRS_SKIPPED = "min_count: not with nan='skip' and two arrays"
WITHOUT = ("dtype", "ddof", "overflow", "initial", "second")  # what a count does not take


def _counts(array, names, client, options):
    """The answers of the ops, and how many elements count for each."""
    if "initial" not in options and "second" not in options:
        asked = names if "count" in names else [*names, "count"]
        found = _cured.reduce(array, asked, client=client, **options)._answers
        return found, found["count"]
    if "second" in options and options.get("nan") == "skip":  # a pair counts where neither is NaN
        raise TypeError(PAIRS_SKIPPED)
    array = _arrow.kept(array)  # it is read twice
    plain = {name: value for name, value in options.items() if name not in WITHOUT}
    if "initial" in options:
        found = {names[0]: getattr(_cured, names[0])(array, client=client, **options)}
    else:
        found = _cured.reduce(array, names, client=client, **options)._answers
    return found, _cured.count(array, client=client, **plain)


def checked(op, answer, count, least):
    """The answer where enough elements count. Otherwise it is NaN, and of integers a ValueError."""
    few = numpy.asarray(count) < least
    if op.startswith("count") or isinstance(answer, Exception) or not few.any():
        return answer
    if getattr(getattr(answer, "dtype", None), "kind", "") in ("f", "c"):
        answer[few] = numpy.nan if answer.dtype.kind == "f" else complex("nan+nanj")
        return answer
    if isinstance(answer, (float, complex)):
        return type(answer)("nan" if isinstance(answer, float) else "nan+nanj")
    return ValueError("%s: %d elements count, fewer than min_count, %d" % (op, numpy.asarray(count)[few].ravel()[0], least))


def _made(what, names, found, count, least):
    answers = {op: checked(op, found[op], count, least) for op in names}
    made = Result(answers) if what else answers[names[0]]
    if isinstance(made, Exception):
        raise made
    return made


def _complete(array, options):
    """The options with a second array that misses nothing: the count is that of whole pairs."""
    second = options.get("second")
    if second is None or isinstance(second, (_arrow.OnGpu, _cured._ArrowDevice)) or _cuda_device(second) is not None or is_stored(type(second)) and not misses(second):
        return options
    from ._alike import complete
    return complete(array, options)


def answer(arguments):
    what, array, names, client, options = arguments
    options = _complete(array, kept({name: value for name, value in options.items() if name != "client"}, array))
    least, out = operator.index(options.pop("min_count")), options.pop("out", None)
    if any(options.get(name) is not None for name in ("shape", "start", "first", "_asked")):
        raise TypeError("shape, start, first: only a partial has them")
    if options.get("initial", 0) is None:
        del options["initial"]
    if what == "" and out is not None and options.get("dtype") is None and "initial" not in options:
        from ._out import default_type
        options["dtype"] = default_type((out,))
        if options["dtype"] is not None and not _takes(names, options["dtype"]):
            del options["dtype"]
    found, count = _counts(array, names, client, options)
    made = _made(what, names, found, count, least)
    if out is None:
        return made
    from ._out import store
    return store((made, out, what == "", names))


def later(arguments):
    """Of an AsyncClient's call: the function that awaits its answer, of the client."""
    what, array, names, _, options = arguments
    return functools.partial(_awaited, what, array, names, options)


async def _awaited(what, array, names, options, client):
    options = _complete(array, kept(options, array))
    least = operator.index(options.pop("min_count"))
    if options.get("initial") is not None:
        raise TypeError("AsyncClient takes no initial: cured.Client does")
    if options.get("second") is None:
        found = (await client.reduce(array, names if "count" in names else [*names, "count"], **options))._answers
        count = found["count"]
    else:
        if options.get("nan") == "skip":
            raise TypeError(PAIRS_SKIPPED)
        found = (await client.reduce(array, names, **options))._answers
        count = await client.count(array, **{name: value for name, value in options.items() if name not in WITHOUT})
    return _made(what, names, found, count, least)


def _takes(names, dtype):
    try:
        _cured.reduce(numpy.ones(1), names, dtype=dtype)
    except ValueError:
        return False
    return True
