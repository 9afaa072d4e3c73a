"""What one case of cross_property.py asks, drawn by its number: values alone, without the containers that hold them and without who answers."""
import math
import random

import numpy as np
import oracle
import ops as ops_table
from support import NUMPY

DTYPES = list(NUMPY) + ["bf16", "f8_e4m3", "f8_e5m2"]
FOLDS = [name for name in ops_table.IDS if name != "digest"]
RANKED = ["median", "quantile"]
PAIRS = list(ops_table.PAIRS)
ROUNDED = ops_table.EXACT + ops_table.FLOAT  # they take dtype=
FIRST = ("sum", "prod", "min", "max")  # they take initial=
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
LENGTHS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 9)
MOST = 400  # elements: the oracle is slow
KEY_TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
OFFSET_TYPES = ("i4", "u4", "i8", "u8", "i2", "u1")


class NotHere(Exception):
    """A case has nothing for a door."""


class Asked:
    """raw: the elements' bytes in C order. missing, where: bool arrays or None. options: those whose value is the same for every door.
    keys and offsets are among `beside`, as are where and second."""

    def __repr__(self):
        words = ["%s of %s %s" % (self.op, self.dtype, self.shape), " ".join("%s=%r" % pair for pair in self.options.items())]
        words += ["%s=%s%s" % (name, a.dtype, a.tolist() if a.size < 20 else a.shape) for name, a in self.beside.items()]
        if self.missing is not None:
            words.append("missing %d" % self.missing.sum())
        return " ".join(word for word in words if word)

    @property
    def is_float(self):
        return self.dtype in oracle.FLOATS

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def array(self):
        """As NumPy's; of a type that it has not, None."""
        return np.frombuffer(self.raw, NUMPY[self.dtype]).reshape(self.shape) if self.dtype in NUMPY else None


def elements(r, dtype, count):
    """Few values, so that ties, zeros, ends of the type and what is no number come often."""
    size = oracle.SIZES[dtype]
    if dtype == "bool":
        return bytes(r.random() < 0.6 for _ in range(count))
    if dtype in oracle.INTS:
        signed = oracle.INTS[dtype][1]
        least, most = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if signed else (0, (1 << 8 * size) - 1)
        kind = r.randrange(3)
        draw = [lambda: r.randint(max(least, -3), 3), lambda: r.choice([least, most, 0, 1, most - 1]), lambda: r.randint(least, most)][kind]
        return b"".join(draw().to_bytes(size, "little", signed=signed) for _ in range(count))
    few = [r.randbytes(size) for _ in range(3)]
    kind = r.randrange(4)
    if kind == 0 or dtype not in NUMPY:
        return b"".join(r.randbytes(size) if r.random() < 0.7 else r.choice(few) for _ in range(count))
    some = {1: lambda: float(r.randint(-3, 3)), 2: lambda: r.gauss(0, 1) * 10.0 ** r.randint(-5, 4 if dtype == "f16" else 30),
            3: lambda: r.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.5, 6e4, 6e-8])}[kind]
    with np.errstate(all="ignore"):
        return np.array([some() for _ in range(count)], NUMPY[dtype]).tobytes()


def bools(r, shape, share):
    return np.array([r.random() < share for _ in range(math.prod(shape))], bool).reshape(shape)


def shape_of(r):
    ndim = r.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4])
    shape = tuple(r.choice(LENGTHS) for _ in range(ndim))
    if ndim == 1 and r.random() < 0.2:
        shape = (r.randint(10, 300),)
    return shape if math.prod(shape) <= MOST else shape[:2]


def op_of(r, c):
    if r.random() < 0.12:
        return r.choice(PAIRS)
    if r.random() < 0.12:
        return r.choice(RANKED)
    if r.random() < 0.02:
        return "digest"
    return r.choice([op for op in FOLDS if not (c.is_float and op in ops_table.BITS)])


def draw_axes(r, ndim):
    """One axis or several, some of them counted from behind."""
    signed = [k - ndim if r.random() < 0.4 else k for k in range(ndim)]
    if r.random() < 0.6:
        return r.choice(signed)
    return tuple(r.sample(signed, r.randint(0, ndim)))


def draw_geometry(r, c):
    kind = r.choice(["whole", "whole", "axis", "axis", "axis", "keys", "offsets"])
    if kind == "axis" and c.ndim:
        c.options["axis"] = draw_axes(r, c.ndim)
    elif kind == "keys" and c.ndim and c.op != "digest":
        groups = r.randint(1, 4)
        drop = r.random() < 0.25
        keys = [r.randint(0, groups - 1 + drop) for _ in range(c.shape[0])]
        c.beside["keys"] = np.array(keys, r.choice(KEY_TYPES))
        if drop or r.random() < 0.7:
            c.options["groups"] = groups
        if drop:
            c.options["drop"] = True
        return
    elif kind == "offsets" and c.ndim == 1:
        cuts = sorted(r.randint(0, c.shape[0]) for _ in range(r.randint(1, 6)))
        c.beside["offsets"] = np.array(cuts, r.choice(OFFSET_TYPES) if max(cuts) < 128 else "i8")
        return
    if r.random() < 0.3:
        c.options["keepdims"] = True


def draw_options(r, c):
    o, grouped = c.options, "keys" in c.beside or "offsets" in c.beside
    if c.is_float and r.random() < 0.3 and c.op != "digest":
        o["nan"] = "skip"
    if c.op in ("var", "std") and r.random() < 0.6:
        o["ddof"] = r.choice([1, 2, 3, 0.5, 1.5, -1])
    if c.op == "prod" and not c.is_float and r.random() < 0.6:
        o["overflow"] = "wrap"
    elif c.op in ROUNDED + PAIRS + RANKED and r.random() < 0.2:
        o["dtype"] = r.choice(["f16", "f32", "f64"])
    if c.op in FIRST and not grouped and "dtype" not in o and r.random() < 0.25 and c.dtype in NUMPY:
        first = r.randint(0, 1) if c.dtype == "bool" else r.randint(0 if c.dtype[0] == "u" else -3, 3)
        o["initial"] = float(first) if c.is_float else first
    if c.op == "quantile":
        c.q = r.choice([0.5, 0.0, 1.0, 0.25, [0.1, 0.9], [[0.3], [0.75]]])
        o["method"] = r.choice(METHODS)
    elif r.random() < 0.2 and c.op not in ["median", "digest"]:
        o["min_count"] = r.choice([1, 2, 3, 6])
    if c.missing is not None and r.random() < 0.1:
        o["nulls"] = "error"


def draw_where(r, c):
    """Of the array's shape, or one that broadcasts to it."""
    shape = tuple(1 if r.random() < 0.25 else n for n in c.shape)
    if c.ndim and r.random() < 0.2:
        shape = shape[r.randint(1, c.ndim):]
    c.beside["where"] = bools(r, shape, r.choice([0, 0.3, 0.6, 0.9, 1]))


def draw(seed, number):
    r = random.Random("cross/%d/%d" % (seed, number))
    c = Asked()
    c.dtype, c.shape = r.choice(DTYPES), shape_of(r)
    c.raw = elements(r, c.dtype, math.prod(c.shape))
    c.options, c.beside, c.missing, c.q = {}, {}, None, None
    c.op = op_of(r, c)
    draw_geometry(r, c)
    if c.op != "digest" and c.dtype in NUMPY and r.random() < 0.3:
        c.missing = bools(r, c.shape, r.choice([0, 0.2, 0.5, 1]))
    if c.op != "digest" and r.random() < 0.3:
        draw_where(r, c)
    draw_options(r, c)
    c.other = elements(r, c.dtype, math.prod(c.shape)) if c.op in PAIRS else None
    return c
