"""For numpys_tests.py: np.sum and its like, and the methods of arrays of that name, ask cured while `switch.on` is set.

Arrays find their methods in numpy.core._methods at the first call and keep them, so this is imported before others call one. Of types that cured
lacks, and of subclasses of arrays, NumPy is asked. argmax and argmin are asked of np alone, because the methods are in C."""
import functools
import inspect
import types

import numpy as np

switch = types.SimpleNamespace(on=False, cured=None, asked=0)
METHODS = ("sum", "prod", "amax", "amin", "any", "all", "mean", "var", "std", "ptp")
FLOATS = ("sum", "prod", "mean", "var", "std")
methods = np.core._methods


def typed(op, array, answer, given):
    """As NumPy's type: cured's floats are float64 where no type is asked for, and its integers are Python's."""
    if isinstance(answer, np.ndarray) and op in ("argmax", "argmin", "count_nonzero"):
        return answer.astype(np.intp)
    if isinstance(answer, np.ndarray):
        return answer
    if op in ("argmax", "argmin"):
        return np.intp(answer)
    if op == "count_nonzero":
        return int(answer)
    if op in ("max", "min", "ptp"):
        return array.dtype.newbyteorder("=").type(answer)
    dtype = given.get("dtype")
    if dtype is not None and op in ("var", "std"):
        dtype = np.empty(0, dtype).real.dtype
    if dtype is None and op in ("sum", "prod") and array.dtype.kind == "u":
        dtype = "u8"
    return np.asarray(answer, dtype)[()]


def ask(op, original, arguments):
    given = {name: value for name, value in arguments.items() if value is not np._NoValue and value is not None}
    a = given.pop("a")
    array = np.asarray(a)
    lacks = array.dtype.kind not in "?biufc" or array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8)
    if not switch.on or lacks or isinstance(a, np.ndarray) and type(a) is not np.ndarray:
        return original(**arguments)
    if given.get("where") is True:
        del given["where"]
    if op in FLOATS and array.dtype.kind in "fc" and "out" not in given:
        given.setdefault("dtype", array.dtype.newbyteorder("="))
    switch.on = False  # what cured itself asks of NumPy
    switch.asked += 1
    try:
        answer = getattr(switch.cured, op)(array, **given)
        return answer if "out" in given else typed(op, array, answer, given)
    finally:
        switch.on = True


def wrapped(op, original):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def asked(*args, **options):
        if not switch.on:
            return original(*args, **options)
        bound = signature.bind(*args, **options)  # TypeError, as of NumPy
        return ask(op, original, bound.arguments)
    return asked


for _name in METHODS:
    _op = {"amax": "max", "amin": "min"}.get(_name, _name)
    setattr(methods, "_" + _name, wrapped(_op, getattr(methods, "_" + _name)))
    for _alias in {_name, _op}:
        setattr(np, _alias, wrapped(_op, getattr(np, _alias)))
for _name in ("argmax", "argmin", "count_nonzero"):
    setattr(np, _name, wrapped(_name, getattr(np, _name)))
