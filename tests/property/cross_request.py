"""What cross_property.py asks of a daemon by its protocol, whichever carries it: gRPC (cross_wire.py) or frames (cross_native.py). A request has
the bytes of its array and of what is beside it; an answer that came is read the same way for both."""
import math

import numpy as np
import oracle
from cross_draw import PAIRS, RANKED, NotHere
from cross_truth import Answer, axes_of, by_key, kept, slices
from support import NUMPY, python_value

OFFSETS = ("i4", "i8", "u4", "u8")
WHOLE = {name: size for name, size in oracle.SIZES.items()} | {"digest": 24, "i128": 16}
CODES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION "
         "ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED").split()
KINDS = {"INVALID_ARGUMENT": ValueError, "OUT_OF_RANGE": OverflowError, "UNIMPLEMENTED": NotImplementedError}
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def name_of(a):
    return next(name for name, code in NUMPY.items() if a.dtype == code)


def exception(code, sentence):
    """What a status is in Python: that of a refusal or of no answer, or a fault."""
    return KINDS.get(code if isinstance(code, str) else CODES[code], AssertionError)(sentence)


def sent_as(c):
    """The mask of both protocols and of the command line, which have no more of these options."""
    if set(c.options) & {"initial", "min_count", "nulls"}:
        raise NotHere
    ddof = c.options.get("ddof", 0)
    if int(ddof) != ddof or ddof < 0:
        raise NotHere
    masked = c.missing is not None or "where" in c.beside
    return np.array(kept(c), bool).reshape(c.shape) if masked else None


class Request:
    """keep, offsets, keys: arrays or None; second: bytes or None; layout: (shape, start, extent); axis: (outer, n, inner). answers: how many
    each op has, None: one. options: nan, overflow, ddof and dtype of a case."""
    keep = offsets = keys = second = layout = axis = answers = first = None
    partial = unplaced = drop = False
    groups = columns = 0

    def __init__(self, dtype, ops, data, options):
        self.dtype, self.ops, self.data, self.options, self.parameters = dtype, ops, data, options, []

    @property
    def count(self):
        return len(self.data) // oracle.SIZES[self.dtype]


def order_of(c):
    """(the axis of a request, the order of the array's axes in it): those that are reduced go together."""
    axes, order = axes_of(c), list(range(c.ndim))
    if slices(c)[0] is None:
        return None, order
    stay = [k for k in order if k not in axes]
    n = math.prod(c.shape[k] for k in axes)
    if axes and axes == tuple(range(axes[0], axes[-1] + 1)):
        return (math.prod(c.shape[:axes[0]]), n, math.prod(c.shape[axes[-1] + 1:])), order
    return (math.prod(c.shape[k] for k in stay), n, 1), stay + list(axes)


def of_case(r, c):
    keep, ops, lead = sent_as(c), [c.op], ()
    if c.op == "quantile":
        lead, shares = np.shape(c.q), np.ravel(c.q).tolist()
        ops = ["quantile"] * len(shares)
    axis, order = (None, list(range(c.ndim))) if "keys" in c.beside or "offsets" in c.beside else order_of(c)
    asked = Request(c.dtype, ops, bytes_of(c, c.raw, order), c.options)
    if c.op == "quantile":
        asked.parameters = [(k, share, c.options.get("method", "linear")) for k, share in enumerate(shares)]
    asked.axis, asked.keep = axis, None if keep is None else keep.transpose(order).reshape(-1)
    if "offsets" in c.beside:
        asked.offsets = c.beside["offsets"].astype(r.choice(OFFSETS))
    if "keys" in c.beside:
        if math.prod(c.shape[1:]) == 0:  # which columns=0 does not say
            raise NotHere
        (groups, *_), _ = by_key(c)
        by_keys(asked, c, c.beside["keys"], groups)
    if c.op in PAIRS:
        asked.second = bytes_of(c, c.other, order)
    shape, found = slices(c)
    asked.answers = None if shape is None else len(found)
    asked.shape = None if shape is None and not lead else lead + (shape or ())
    return asked


def by_keys(asked, c, keys, groups):
    asked.keys, asked.groups, asked.drop, asked.columns = keys, groups, c.options.get("drop", False), math.prod(c.shape[1:])


def bytes_of(c, raw, order):
    return np.frombuffer(raw, "u%d" % oracle.SIZES[c.dtype]).reshape(c.shape).transpose(order).tobytes()


class Found:
    """An op's answers as they came. statuses: a byte for each, or none."""

    def __init__(self, dtype, value, statuses, status, message):
        self.dtype, self.value, self.statuses, self.status, self.message = dtype, value, statuses, status, message


def answer(ask, asked, results):
    """cross_truth's Answer of what came, or the exception of what came instead."""
    values, dtype = [], None
    for found in results:
        wrong = found.status or max(found.statuses, default=0)
        if wrong:
            raise exception(wrong, found.message)
        dtype, size = found.dtype, None if asked.answers is None else WHOLE[found.dtype]
        if size and len(found.value) != size * asked.answers:
            raise AssertionError("%d bytes came of %d answers of %s" % (len(found.value), asked.answers, dtype))
        pieces = [found.value] if size is None else [found.value[at:at + size] for at in range(0, len(found.value), size)]
        values += [python_value(dtype, piece) for piece in pieces]
    return Answer(asked.shape, dtype, values)


def ranked(asked):
    return any(op in RANKED for op in asked.ops)
