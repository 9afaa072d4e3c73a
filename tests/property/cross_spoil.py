"""Arguments that are wrong, one for a case of cross_property.py: each is refused by a sentence that begins with the argument's name, whatever
else is asked, and by whichever door."""
import random
import re

import cross_doors as doors
import numpy as np
from cross_draw import PAIRS, NotHere
from support import NUMPY, cured


KINDS = (TypeError, ValueError, NotImplementedError, OverflowError, cured.Error)


def spoiled_where(r, c):
    shape = r.choice([c.shape + (2,), (2,) + c.shape, tuple(n + 2 for n in c.shape) or (2,)])
    return {"where": r.choice([np.ones(shape, bool), np.ones(c.shape, "i4"), np.ones(c.shape), "all", 3])}


def spoiled_keys(r, c):
    if not c.ndim or c.op == "digest":
        raise NotHere
    if "keys" not in c.beside and (set(c.options) & {"axis", "keepdims", "initial"} or set(c.beside) or c.op == "prod" and c.is_float):
        raise NotHere  # which do not go with keys
    n = c.shape[0]
    wrong = [np.zeros(n + 1, "i8"), np.zeros(n), np.zeros((n, 1), "u1"), [0] * (n + 1), np.ma.masked_array(np.zeros(n + 1, int), True)]
    return {"keys": r.choice(wrong + [np.full(n, -1)] * bool(n)), "drop": False}


def spoiled_groups(r, c):
    return {"groups": r.choice([-1, 2**70, "2", 1.5])} if "keys" in c.beside else {"groups": 2}


def spoiled_offsets(r, c):
    if c.ndim != 1 or "keys" in c.beside or set(c.options) & {"axis", "keepdims", "initial"}:
        raise NotHere
    n = c.shape[0]
    return {"offsets": r.choice([[0, n + 1], [n, -1], np.array([0.0, n]), np.zeros((1, 2), int), np.array([], int), "0"] + [[n, 0]] * bool(n))}


def spoiled_axis(r, c):
    if "keys" in c.beside or "offsets" in c.beside:
        raise NotHere
    return {"axis": r.choice([c.ndim, -c.ndim - 1, (0, c.ndim), 1.5, "0", (0, None)] + [(0, 0), (0, -c.ndim)] * (c.ndim > 0))}


def spoiled_second(r, c):
    if c.op not in PAIRS or c.dtype not in NUMPY:
        raise NotHere
    other = np.dtype("f4" if c.dtype != "f32" else "f8")
    return {"second": r.choice([np.zeros(c.shape + (2,), NUMPY[c.dtype]), np.zeros(c.shape, other), "b", 3])}


def spoiled_initial(r, c):
    if c.op not in ("sum", "min", "max") or "dtype" in c.options:
        raise NotHere
    return {"initial": r.choice(["1", [1], 1j, np.ones(2), 10**400 if c.is_float else 1.5])}


def one_of(name, values, where=lambda c: True):
    def spoiled(r, c):
        if not where(c):
            raise NotHere
        return {name: r.choice(values)}
    return spoiled


TAKES = {"ddof": lambda c: c.op in ("var", "std"), "overflow": lambda c: c.op == "prod",
         "method": lambda c: c.op == "quantile", "min_count": lambda c: c.op != "digest"}
SPOILS = {
    "where": spoiled_where, "keys": spoiled_keys, "groups": spoiled_groups, "offsets": spoiled_offsets, "axis": spoiled_axis, "second": spoiled_second,
    "dtype": one_of("dtype", ["f31", "complex64", 3, "M8[s]"]), "min_count": one_of("min_count", [-1, 2**64, "1", 1.5], TAKES["min_count"]),
    "ddof": one_of("ddof", ["1", float("nan"), [1]], TAKES["ddof"]), "nan": one_of("nan", ["maybe", 1], lambda c: c.op != "count_nan"),
    "overflow": one_of("overflow", ["saturate", True], TAKES["overflow"]), "nulls": one_of("nulls", ["maybe", 0]),
    "method": one_of("method", ["median_unbiased", 3], TAKES["method"]), "initial": spoiled_initial,
    "client": one_of("client", ["unix:/there", 3])}
# What a sentence may begin with instead: the argument that it is refused beside, or NumPy's own words.
ALSO = {"groups": "keys|drop", "keys": "groups", "dtype": "ops?|initial", "where": "first|nulls", "axis": "keys|offsets", "second": "weights",
        "initial": "AsyncClient takes no initial"}


def spoiled_way(handler, seed, number, bag, case, wanted):
    """(what it is, the argument's name, function), or None."""
    r = random.Random("cross spoil/%d/%d" % (seed, number))
    name = r.choice(list(SPOILS))
    door = r.choice([doors.module, doors.client, doors.several, doors.awaited, doors.awaited_several, doors.file_method])
    try:
        wrong = SPOILS[name](r, case)
    except NotHere:
        return None
    if name == "client" and door is not doors.module:
        return None
    ask = doors.Ask(r, bag, case, wanted, handler)
    if name not in {*case.options, *case.beside} and ask.name == "archive":
        return None  # a deflated one in Fortran order says first that it does not go in C order
    if not answers(door, r, ask):
        return None
    if name == "second":
        ask.second = wrong["second"]
    else:
        ask.options.update(wrong)
    return "%s: %s with %s=%r" % (door.__name__, ask, name, wrong[name]), name, lambda: door(r, ask)


def answers(door, r, ask):
    """Whether the case is answered as it is: what is refused, or has no answer, may say that first. r is as it was before."""
    state = r.getstate()
    try:
        door(r, ask)
    except (NotHere, *KINDS):
        return False
    r.setstate(state)
    return True


def names(error, name):
    """Whether an exception says which argument it is of: the wrong one, or one that it is refused beside."""
    also = "|".join(word for word in (name, ALSO.get(name, "")) if word)
    return isinstance(error, KINDS) and re.match(r"(INVALID_ARGUMENT: |RESOURCE_EXHAUSTED: )?(\w+, )*(%s)\b" % also, str(error)) is not None


