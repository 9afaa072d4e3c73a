"""The true answer to what cross_draw.py drew, element by element: positions by NumPy, values by tests/oracle, which knows integers and
fractions alone. No code of cured is here."""
import math
import re
from fractions import Fraction

import numpy as np
import oracle
import ops as ops_table
import pairs
from cross_draw import PAIRS, RANKED
from support import NUMPY, python_value


# Why there is no answer: the exception's type, and the words that say so.
NULLS = ValueError, r"nulls"
FEW = ValueError, r"min_count"
NOTHING = ValueError, r"no value|there is no element to find"
TOO_LARGE = OverflowError, r"does not fit|more than an integer type holds"
REASONS = NULLS, FEW, NOTHING, TOO_LARGE


class Lacking:
    """There is no answer, for these reasons, of one slice or another."""

    def __init__(self, *reasons):
        self.reasons = reasons

    def says(self, error):
        """Whether an exception is of one of the reasons."""
        return any(type(error) is kind and re.search(words, str(error)) for kind, words in self.reasons)

    def __repr__(self):
        return " or ".join("%s with %r" % (kind.__name__, words) for kind, words in self.reasons)


class Answer:
    """shape: None for one value; dtype: cured's name, or "int"; values: Python's, in C order."""

    def __init__(self, shape, dtype, values):
        self.shape, self.dtype, self.values = shape, dtype, values

    def __repr__(self):
        return "%s %s %r" % ("one" if self.shape is None else self.shape, self.dtype, self.values[:12])


def axes_of(c):
    axis = c.options.get("axis")
    if axis is None:
        return tuple(range(c.ndim))
    return tuple(sorted(k % c.ndim for k in (axis if isinstance(axis, tuple) else (axis,))))


def by_key(c):
    keys = c.beside["keys"].tolist()
    groups, columns = c.options.get("groups"), math.prod(c.shape[1:])
    if groups is None:
        groups = max(keys, default=-1) + 1
    found = [[(row * columns + column, row) for row in range(c.shape[0]) if keys[row] == group]
             for group in range(groups) for column in range(columns)]
    return (groups,) + c.shape[1:], found


def slices(c):
    """(the answers' shape or None, for each answer its elements as pairs of a position in C order and the number that argmin gives)."""
    if "keys" in c.beside:
        return by_key(c)
    if "offsets" in c.beside:
        cuts = c.beside["offsets"].tolist()
        return (len(cuts) - 1,), [[(at, at - begin) for at in range(begin, end)] for begin, end in zip(cuts, cuts[1:])]
    axes, keepdims = axes_of(c), c.options.get("keepdims", False)
    stay = [k for k in range(c.ndim) if k not in axes]
    at = np.arange(math.prod(c.shape)).reshape(c.shape).transpose(stay + list(axes))
    rows = at.reshape(math.prod(c.shape[k] for k in stay), math.prod(c.shape[k] for k in axes)).tolist()
    shape = tuple(1 if k in axes else n for k, n in enumerate(c.shape) if keepdims or k not in axes)
    return None if len(axes) == c.ndim and not keepdims else shape, [[(p, i) for i, p in enumerate(row)] for row in rows]


def kept(c):
    """Which elements count."""
    keep = np.ones(c.shape, bool)
    if c.missing is not None:
        keep &= ~c.missing
    if "where" in c.beside:
        keep &= np.broadcast_to(c.beside["where"], c.shape)
    return keep.reshape(-1).tolist()


def result_type(c, one):
    """Integers in arrays are of 64 bits."""
    asked = c.options.get("dtype")
    exact = c.op in ops_table.EXACT + ["dot", "sqdist"]
    if one or asked or c.dtype not in oracle.INTS or not exact:
        return asked
    return "i64" if oracle.INTS[c.dtype][1] else "u64"


def gathered(c, raw, some):
    size = oracle.SIZES[c.dtype]
    return b"".join(raw[at * size:(at + 1) * size] for at, _ in some)


def folded(c, some, one):
    """(type, value) of a slice's elements, or why there is none."""
    x, o, result = gathered(c, c.raw, some), c.options, result_type(c, one)
    if c.op in PAIRS:
        found = pairs.answer(c.op, c.dtype, x, gathered(c, c.other, some), o.get("nan", "propagate"), result)
    else:
        if "initial" in o:
            x += np.array([o["initial"]], NUMPY[c.dtype]).tobytes()
        if c.op in ("var", "std") and counting(c, some) == 0:
            return o.get("dtype", "f64"), math.nan  # whatever ddof is
        found = oracle.answer(c.op, c.dtype, x, o.get("nan", "propagate"), result, Fraction(o.get("ddof", 0)), o.get("overflow", "error"))
    if found[0] == "error":
        return {"INVALID_ARGUMENT": NOTHING, "OUT_OF_RANGE": TOO_LARGE}[found[1]]
    if found[0] == "between":
        return found[1], found[2:]
    value = python_value(found[1], found[2])
    return (found[1], some[value][1]) if c.op.startswith("arg") else (found[1], value)


def counting(c, some):
    """How many elements count for min_count."""
    if c.options.get("nan") != "skip":
        return len(some)
    return len(some) - oracle_nans(c, some)


def oracle_nans(c, some):
    return python_value(*oracle.answer("count_nan", c.dtype, gathered(c, c.raw, some))[1:3])


def checked(c, found, some):
    """min_count: an answer of fewer elements is NaN, and of what is no float none."""
    if found in REASONS or c.op.startswith("count") or counting(c, some) >= c.options.get("min_count", 0):
        return found
    return (found[0], math.nan) if found[0] in oracle.FLOATS else FEW


def shares(c, some):
    result = c.options.get("dtype") or "f64"
    asked = [(q, c.options.get("method", "linear")) for q in np.ravel(0.5 if c.q is None else c.q).tolist()]
    bits = oracle.quantiles(c.dtype, gathered(c, c.raw, some), asked, c.options.get("nan", "propagate"), result)
    return [python_value(result, oracle.pack(result, b)) for b in bits]


def ranked(c, shape, found):
    lead, rows = np.shape(0.5 if c.q is None else c.q), [shares(c, some) for some in found]
    values = [row[i] for i in range(math.prod(lead)) for row in rows]
    whole = None if shape is None and not lead else lead + (shape or ())
    return Answer(whole, c.options.get("dtype") or "f64", values)


def truth(c):
    """An Answer, or Lacking."""
    keep = kept(c)
    if c.options.get("nulls") == "error" and c.missing is not None and c.missing.any():
        return Lacking(NULLS)
    shape, found = slices(c)
    found = [[pair for pair in some if keep[pair[0]]] for some in found]
    if c.op in RANKED:
        return ranked(c, shape, found)
    answers = [checked(c, folded(c, some, shape is None), some) for some in found]
    wrong = {answer for answer in answers if answer in REASONS}
    if wrong:
        return Lacking(*wrong)
    if not answers:
        return Answer(shape, None, [])
    return Answer(shape, answers[0][0], [value for _, value in answers])
