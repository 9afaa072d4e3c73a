"""Doors of cross_property.py: partials of parts and of blocks, each made by another door and merged by any, and finished by a third."""
import itertools
import math

import cross_command
import cross_holders as holders
import cross_request
import numpy as np
import oracle
from cross_command import answer as answer_of_client
from cross_draw import PAIRS, RANKED, NotHere
from cross_request import Request
from cross_truth import kept
from support import DLPACK, NUMPY, cured

FINISHED = ("dtype", "ddof", "nan", "overflow")  # what a partial's end takes


class Part:
    """A part of a case's array, or a block of it. keep, keys: arrays or None; second: bytes or None; layout: (shape, start, extent); first: its
    place, None: it has none."""
    keep = keys = second = layout = first = None
    groups, drop = 0, False

    def __init__(self, op, dtype, raw, shape):
        self.op, self.dtype, self.raw, self.shape = op, dtype, raw, shape

    def array(self, raw, r, ask, role):
        """As it is held for Python."""
        if self.dtype not in NUMPY:
            return holders.Kept(raw, *DLPACK[self.dtype], self.shape, None)
        a = np.frombuffer(raw, NUMPY[self.dtype]).reshape(self.shape)
        if role == "array":
            return ask.part(r, a, None)
        return ask.beside(r, role, a)[1]


# ---- Who makes a partial ----

def python_words(r, ask, part):
    more = {}
    if part.keep is not None:
        more["where"] = ask.beside(r, "where", part.keep.reshape(part.shape))[1]
    if part.keys is not None:
        more["keys"] = ask.beside(r, "keys", part.keys)[1]
        more.update({"groups": part.groups}, **({"drop": True} if part.drop else {}))
    if part.second is not None:
        more["second"] = part.array(part.second, r, ask, "second")
    if part.layout:
        return dict(more, shape=part.layout[0], start=part.layout[1])
    return more if part.keys is not None else dict(more, first=part.first)


def by_python(r, ask, part):
    owner = r.choice([cured, *ask.doors.clients])
    return bytes(owner.partial(part.array(part.raw, r, ask, "array"), [part.op], **python_words(r, ask, part)))


def by_async(r, ask, part):
    ask.awaits = True
    made = r.choice(ask.doors.asyncs).partial(part.array(part.raw, r, ask, "array"), [part.op], **python_words(r, ask, part))
    return bytes(ask.doors.loop.run_until_complete(made))


def request_of(part):
    asked = Request(part.dtype, [part.op], part.raw, {})
    asked.partial, asked.unplaced = True, part.first is None and part.layout is None
    for name in ("keep", "keys", "groups", "drop", "second", "layout", "first"):
        setattr(asked, name, getattr(part, name))
    asked.columns = math.prod(part.shape[1:]) if part.keys is not None else 0
    return asked


def by_grpc(r, ask, part):
    return ask.doors.grpc.partial(r, request_of(part))


def by_native(r, ask, part):
    return ask.doors.native.partial(r, request_of(part))


def makers(ask, part):
    """Those who can make it."""
    some = [by_python, by_python, by_async]
    if part.keys is None or math.prod(part.shape[1:]):  # which columns=0 does not say
        some += [by_grpc] * bool(ask.doors.grpc) + [by_native] * bool(ask.doors.native)
    masked = part.keep is not None or part.keys is not None or part.layout is not None
    if cross_command.here() and part.shape and (part.first is not None or masked):
        some.append(cross_command.partial)
    return some


# ---- Who merges ----

def one_of_many(r, ask, op, made, keyed):
    """A partial that some are merged to."""
    ways = [lambda: bytes(cured.merge([cured.Partial(one) for one in made]))]
    for owner in (ask.doors.grpc, ask.doors.native):
        if owner:
            ways.append(lambda owner=owner: owner.merge(r, [op], made, {}, keyed, partial=True))
    if cross_command.here():
        ways.append(lambda: cross_command.merge(r, ask, op, made, {}, whole=True))
    return r.choice(ways)()


def finished(r, ask, op, made, keyed, shape):
    """The answer of all."""
    o = {name: ask.case.options[name] for name in FINISHED if name in ask.case.options}

    def by_merge():
        answer = cured.merge([cured.Partial(one) for one in made]).finish([op], **o)[op]
        return np.asarray(answer).reshape(shape) if keyed else answer

    def by_protocol(owner):
        asked = Request(ask.case.dtype, [op], b"", o)
        asked.shape, asked.answers = shape, math.prod(shape) if keyed else None
        return cross_request.answer(ask, asked, owner.merge(r, [op], made, o, keyed))

    ways = [by_merge] + [lambda owner=owner: by_protocol(owner) for owner in (ask.doors.grpc, ask.doors.native) if owner]
    if cross_command.here():
        ways.append(lambda: answer_of_client(cross_command.merge(r, ask, op, made, o), shape, ask.wanted))
    return r.choice(ways)()


def whole_of(r, ask, some, keyed, shape):
    op = ask.case.op
    made = [r.choice(makers(ask, part))(r, ask, part) for part in some]
    r.shuffle(made)
    while len(made) > 1 and r.random() < 0.4:
        k = r.randint(1, len(made))
        made = [one_of_many(r, ask, op, made[:k], keyed)] + made[k:]
        r.shuffle(made)
    return finished(r, ask, op, made, keyed, shape)


def fits(c):
    """Whether its op has partials, and its options go with them."""
    o = c.options
    if c.op in RANKED or "offsets" in c.beside or set(o) - {*FINISHED, "groups", "drop"} or o.get("ddof", 0) not in (0, 1, 2, 3):
        raise NotHere
    if c.op == "prod" and c.is_float:
        raise NotHere


# ---- Parts ----

def cut(r, c, rows, keyed):
    """The parts, by rows or by elements."""
    size, width = oracle.SIZES[c.dtype], math.prod(c.shape[1:]) if keyed else 1
    masked = c.missing is not None or "where" in c.beside
    keep = np.array(kept(c), bool) if masked else None
    placed = not masked and not keyed and (c.op.startswith("arg") or c.op == "digest" or r.random() < 0.5)
    cuts = [0, *sorted(r.randint(0, rows) for _ in range(r.randint(0, 3))), rows]
    for a, b in zip(cuts, cuts[1:]):
        span = slice(a * width, b * width)
        part = Part(c.op, c.dtype, c.raw[span.start * size:span.stop * size], (b - a,) + (c.shape[1:] if keyed else ()))
        part.first = a if placed else None
        part.keep = keep[span] if masked else None
        part.second = c.other[span.start * size:span.stop * size] if c.op in PAIRS else None
        if keyed:
            part.keys, part.drop = c.beside["keys"][a:b], c.options.get("drop", False)
            part.groups = c.options.get("groups", max(c.beside["keys"].tolist(), default=-1) + 1)
        yield part


def parts_anywhere(r, ask):
    c = ask.case
    fits(c)
    keyed, masked = "keys" in c.beside, c.missing is not None or "where" in c.beside
    if (keyed or masked) and (c.op.startswith("arg") or c.op == "digest"):
        raise NotHere
    some = list(cut(r, c, c.shape[0] if keyed else math.prod(c.shape), keyed))
    return whole_of(r, ask, some, keyed, (some[0].groups,) + c.shape[1:] if keyed else None)


# ---- Blocks ----

def blocks_anywhere(r, ask):
    """Boxes of the array, each with its place."""
    c = ask.case
    fits(c)
    if c.beside or c.missing is not None or c.op in PAIRS or not c.ndim or "keepdims" in c.options:
        raise NotHere
    whole, some = np.frombuffer(c.raw, "u%d" % oracle.SIZES[c.dtype]).reshape(c.shape), []
    cuts = [[0, *sorted(r.randint(0, n) for _ in range(r.randint(0, 2 if c.ndim < 3 else 1))), n] for n in c.shape]
    for box in itertools.product(*(list(zip(at, at[1:])) for at in cuts)):
        block = whole[tuple(slice(a, b) for a, b in box)]
        part = Part(c.op, c.dtype, block.tobytes(), block.shape)
        part.layout = c.shape, tuple(a for a, _ in box), block.shape
        some.append(part)
    return whole_of(r, ask, some, False, None)


KINDS = [parts_anywhere, parts_anywhere, blocks_anywhere, blocks_anywhere]
