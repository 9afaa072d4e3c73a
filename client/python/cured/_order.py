"""Quantiles of several shares at once, in the shape that NumPy gives them: that of q, then that of each answer."""
import numpy

from . import _chunks, _cured
from ._adapt import is_stored
from ._arrow import kept as _kept
from ._beside import kept
from ._lists import OPTIONS, check_nulls, check_options, checked
from ._out import default_type, put
from ._search import AT_ONCE, answers_of_list, shares


def pieces(q):
    """What calls are asked, one after the other, as the extension takes it. Of no share one, whose answer says shape and type."""
    flat = q.ravel() if q.size else numpy.array([0.5])
    return [flat[at:at + AT_ONCE].tobytes() for at in range(0, flat.size, AT_ONCE)]


def stacked(answers, q, dtype):
    """Of as many answers as q has numbers, an array of the answers' type; of a q without axes the one answer."""
    if q.ndim == 0:
        return answers[0]
    whole = numpy.stack(answers)[:q.size]
    if dtype is not None:  # of numbers of Python, which have been rounded to it
        whole = whole.astype(_cured.sum(numpy.ones(1), keepdims=True, dtype=dtype).dtype, copy=False)
    return whole.reshape(q.shape + whole.shape[1:])


def of_list(owner, arrays, q, options):
    """Over the elements of a list of arrays as one."""
    client = owner if isinstance(owner, _cured.Client) else options.pop("client", None)
    arrays = [_kept(array) for array in checked(arrays)]
    check_options(options, OPTIONS + ("method", "nulls"))
    check_nulls(arrays, options.get("nulls", "skip"))
    options = {name: options[name] for name in OPTIONS + ("method",) if name in options}
    answers = answers_of_list(arrays, None, q.ravel() if q.size else numpy.array([0.5]), options, client)
    return stacked(answers, q, options.get("dtype"))


def spread(arguments):
    """As a function of the module was called, or a method of a Client or a File (owner)."""
    owner, array, given, options = arguments
    is_file = isinstance(owner, _cured.File)
    function = owner.quantile if is_file or isinstance(owner, _cured.Client) else _cured.quantile
    given, options = list(given), kept(options, array)
    out = options.pop("out", None)
    if not given and "q" not in options:
        raise TypeError("q is missing: a share from 0 to 1, or several")
    if options.get("min_count"):
        raise TypeError("min_count: a quantile takes none")
    q = shares(given.pop(0) if given else options.pop("q"))
    if not is_file and is_stored(type(array)):
        options.update(zip(("axis",), given))
        client = options.pop("client", None)
        return _chunks.quantile(array, q, owner if isinstance(owner, _cured.Client) else client, dict(options, out=out))
    if isinstance(array, (list, tuple)) and not is_file:
        return of_list(owner, array, q, dict(options, **dict(zip(("axis",), given)), **({} if out is None else {"out": out})))
    if out is not None and options.get("dtype") is None:
        options["dtype"] = default_type((out,))
    first = () if is_file else (array,)
    answers = [answer for piece in pieces(q) for answer in function(*first, piece, *given, **options)]
    whole = stacked(answers, q, options.get("dtype"))
    return whole if out is None else put("quantile", whole, out)
