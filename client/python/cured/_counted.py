"""min_count=: an answer of fewer elements is none. Called by the extension, for arrays of every kind and lists."""
import operator

import numpy

from . import _arrow, _cured
from ._beside import kept
from ._lists import names_of
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
    if getattr(getattr(answer, "dtype", None), "kind", "") == "f":
        answer[few] = numpy.nan
        return answer
    if isinstance(answer, float):
        return float("nan")
    return ValueError("%s: %d elements count, fewer than min_count, %d" % (op, numpy.asarray(count)[few].ravel()[0], least))


def answer(arguments):
    what, array, names, client, options = arguments
    options = kept({name: value for name, value in options.items() if name != "client"}, array)
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
    answers = {op: checked(op, found[op], count, least) for op in names}
    made = Result(answers) if what else answers[names[0]]
    if isinstance(made, Exception):
        raise made
    if out is None:
        return made
    from ._out import store
    return store((made, out, what == "", names))


def _asked(name, args, options):
    """The ops of an AsyncClient's method. Of args what is left is the axis alone; a second array goes to the options."""
    if name == "reduce" and not args:
        raise TypeError("ops are missing, such as ['sum', 'max']")
    names = names_of(args.pop(0)) if name == "reduce" else [name]
    if _cured._is_paired(name):
        if args and "second" in options:
            raise TypeError("%s: the second array is given twice" % name)
        if not args and options.get("second") is None:
            raise TypeError("%s: it is of two arrays, and the second is missing" % name)
        if args:
            options["second"] = args.pop(0)
    if len(args) > 1:
        raise TypeError("only the array, the ops and the axis go without their names")
    if not names:
        raise ValueError("ops: 0 of them, must be 1 to 32")
    return names


async def awaited(client, name, args, options):
    """Of an AsyncClient: a method's answer, with min_count among its options."""
    (array, *args), options = args, kept(options, args[0])
    least = options.pop("min_count")
    _cured.count(numpy.empty(0), min_count=least)  # raises what is wrong with it
    names = _asked(name, args, options)
    if options.get("initial") is not None:
        raise TypeError("AsyncClient takes no initial: cured.Client does")
    axis = {"axis": args[0]} if args else {}
    if options.get("second") is None:
        found = (await client.reduce(array, names if "count" in names else [*names, "count"], **axis, **options))._answers
        count = found["count"]
    else:
        if options.get("nan") == "skip":
            raise TypeError(PAIRS_SKIPPED)
        found = (await client.reduce(array, names, **axis, **options))._answers
        count = await client.count(array, **axis, **{name: value for name, value in options.items() if name not in WITHOUT})
    answers = {op: checked(op, found[op], count, operator.index(least)) for op in names}
    made = Result(answers) if name == "reduce" else answers[name]
    if isinstance(made, Exception):
        raise made
    return made


def _takes(names, dtype):
    try:
        _cured.reduce(numpy.ones(1), names, dtype=dtype)
    except ValueError:
        return False
    return True
