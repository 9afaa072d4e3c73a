"""By key of rows that have no elements: each group has a row of no answers. Called by the extension, which answers of elements."""
import numpy

from . import _cured
from ._lists import _cuda_device

OF_KEYS = ("keys", "groups", "drop")


def answer(arguments):
    what, array, names, client, options = arguments
    if _cuda_device(array) is not None:
        raise ValueError("keys: the array's rows have no elements")
    options = {name: value for name, value in options.items() if name != "client"}
    given, where, out = {name: options[name] for name in OF_KEYS if name in options}, options.pop("where", None), options.pop("out", None)
    second = options.pop("second", None)
    if second is None:
        _cured.count(array, where=where)  # raises what is wrong with the mask
    else:
        _cured.dot(array, second, where=where)  # and with the second array
    dtype = _cured.partial(array, "count", first=None).dtype
    dtype = "f32" if dtype in ("bf16", "f8_e4m3", "f8_e5m2") else dtype  # no Python array holds these
    one = _cured.empty((1, 1), dtype)
    asked = {**options, "keys": numpy.zeros(1, numpy.int64), "groups": 1, **({} if second is None else {"second": one})}
    q = asked.pop("q", None)  # what follows raises what is wrong with the options
    if q is not None:
        found = _cured.quantile(one, q, **asked)  # a list
    elif what == "":
        found = [getattr(_cured, names[0])(one, **asked)]
    else:
        found = _cured.reduce(one, names, **asked)
        found = [found[op] for op in names]
    column = numpy.broadcast_to(numpy.zeros((), "u1"), (array.shape[0], 1))  # for which nothing is allocated
    shape = (len(_cured.count(column, **given)),) + tuple(array.shape[1:])
    made = [numpy.empty(shape, each.dtype) for each in found]
    if what == "":
        made = made[0]
    elif q is None:
        from ._result import Result
        made = Result(dict(zip(names, made)))
    if out is None:
        return made
    from ._out import store
    return store((made, out, what == "", names))
