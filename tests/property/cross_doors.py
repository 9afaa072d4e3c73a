"""Who answers a case of cross_property.py, and by which call: the module, clients of a daemon and of this process, AsyncClients, several ops at
once, the caller's arrays, methods of files, lists, parts that are merged; by cross_wire.py, cross_native.py, cross_command.py and cross_parts.py
those that are not Python's. Each door takes (r, ask) and gives an answer; NotHere where the case
has nothing for it."""
import asyncio
import collections
import math
import os
import pickle
import random

import cross_command
import cross_holders as holders
import cross_native
import cross_parts
import cross_wire as wire
import numpy as np
from cross_draw import PAIRS, RANKED, NotHere
from cross_parts import FINISHED
from cross_truth import Answer
from support import NUMPY, cured


class Ask:
    """A case, its objects as they are held, and the truth. roles: what each argument is held by, as refusals are known (cross_refusals.py);
    awaits: an AsyncClient is asked; files, via: what cured-client is."""
    door, awaits, files, via = None, False, None, None

    def __init__(self, r, bag, case, wanted, doors):
        self.bag, self.case, self.wanted, self.doors = bag, case, wanted, doors
        self.roles = collections.defaultdict(set)
        self.name, self.array = holders.hold_case(r, bag, case)
        self.roles["array"].add(self.name)
        self.options, self.held = dict(case.options), {}
        if "dtype" in self.options and r.random() < 0.4:
            self.options["dtype"] = np.dtype(NUMPY[self.options["dtype"]])
        for name, a in case.beside.items():
            self.held[name], self.options[name] = self.beside(r, name, a)
        if case.op in PAIRS:
            self.held["second"], self.second = self.second_of(r)

    def beside(self, r, role, a):
        kind = r.random()
        if kind < 0.1 and role != "second" and a.ndim and a.size:
            made = "a list", r.choice([list, tuple])(a.tolist())
        else:
            made = ("plain", a.copy()) if kind < 0.3 else holders.hold(r, self.bag, a, files=r.random() < 0.05)  # which are refused
        self.roles[role].add(made[0])
        return made

    def part(self, r, a, missing):
        """A part of the array, instead of the whole."""
        name, made = holders.hold(r, self.bag, a, missing)
        self.roles["array"].add(name)
        return made

    def second_of(self, r):
        c = self.case
        if c.dtype not in NUMPY:
            self.roles["second"].add("tensor")
            return "tensor", holders.Kept(c.other, *holders.DLPACK[c.dtype], c.shape, None)
        return self.beside(r, "second", np.frombuffer(c.other, NUMPY[c.dtype]).reshape(c.shape))

    def args(self):
        """What stands behind the array in a call of the op's own function."""
        return ([self.case.q] if self.case.op == "quantile" else []) + ([self.second] if self.case.op in PAIRS else [])

    def one(self, owner, **more):
        """The op's own function. average is NumPy's."""
        if self.case.op == "average":
            return owner.average(self.array, weights=self.second, **self.options, **more)
        return getattr(owner, self.case.op)(self.array, *self.args(), **self.options, **more)

    def __repr__(self):
        return "%s%s" % (self.name, "".join(", %s %s" % pair for pair in self.held.items()))


# ---- In process and by clients ----

def module(r, ask):
    return ask.one(cured)


def client(r, ask):
    owner = r.choice(ask.doors.clients)
    return ask.one(owner) if r.random() < 0.5 else ask.one(cured, client=owner)


def several(r, ask):
    """Beside other ops, in one read."""
    c = ask.case
    if c.op == "quantile" or "initial" in c.options:
        raise NotHere
    others = PAIRS if c.op in PAIRS else [op for op in ("count", "sum", "max", "mean") if not set(c.options) & {"ddof", "overflow", "dtype"}]
    names = list({c.op, *r.sample(others, min(len(others), r.randint(0, 2)))})
    more = {"second": ask.second} if c.op in PAIRS else {}
    owner = r.choice([cured, *ask.doors.clients])
    return owner.reduce(ask.array, names, **ask.options, **more)[c.op]


def each(r, ask):
    """As one of a list's arrays."""
    c = ask.case
    if c.op in RANKED + PAIRS or set(c.options) & {"initial", "min_count", "keys", "axis", "keepdims"} or set(c.beside) or c.op == "digest":
        raise NotHere
    other = np.zeros(3, NUMPY.get(c.dtype, "f4"))
    return cured.reduce_each([other, ask.array, other][:r.randint(2, 3)], c.op, **ask.options)[1][c.op]


def own_array(r, ask):
    """Into an array of the caller's."""
    wanted = ask.wanted
    if not isinstance(wanted, Answer) or wanted.dtype not in NUMPY or ask.case.dtype not in NUMPY:
        raise NotHere
    dtype = np.dtype(NUMPY[wanted.dtype])
    out = np.empty(wanted.shape or (), r.choice([dtype, dtype.newbyteorder()]), order=r.choice("CF"))
    if out.ndim and r.random() < 0.3:
        out = np.empty(out.shape + (2,), dtype)[..., 0]
    made = ask.one(r.choice([cured, *ask.doors.clients]), out=out)
    if made is not out:
        raise AssertionError("out= is not what is returned")
    return out if wanted.shape is not None else out.item()


def file_method(r, ask):
    if not isinstance(ask.array, cured._cured.File):
        raise NotHere
    if ask.case.op == "average":
        return ask.array.average(weights=ask.second, **ask.options)
    return getattr(ask.array, ask.case.op)(*ask.args(), **ask.options)


# ---- asyncio ----

def awaited(r, ask):
    ask.awaits = True
    return ask.doors.loop.run_until_complete(ask.one(r.choice(ask.doors.asyncs)))


def awaited_several(r, ask):
    c = ask.case
    if c.op == "quantile" or "initial" in c.options:
        raise NotHere
    ask.awaits, more = True, {"second": ask.second} if c.op in PAIRS else {}
    return ask.doors.loop.run_until_complete(r.choice(ask.doors.asyncs).reduce(ask.array, [c.op], **ask.options, **more))[c.op]


# ---- Parts ----

def pieces(r, ask):
    """(elements, missing, which, number of the first) of each part."""
    c = ask.case
    rows = c.shape[0] if "keys" in c.beside else math.prod(c.shape)
    a = c.array if "keys" in c.beside else c.array.reshape(-1)
    keep = np.ones(c.shape, bool) if "where" not in c.beside else np.broadcast_to(c.beside["where"], c.shape)
    missing = c.missing
    if "keys" not in c.beside:
        keep, missing = keep.reshape(-1), None if missing is None else missing.reshape(-1)
    cuts = [0, *sorted(r.randint(0, rows) for _ in range(r.randint(0, 3))), rows]
    return [(slice(x, y), a[x:y], None if missing is None else missing[x:y], keep[x:y]) for x, y in zip(cuts, cuts[1:])]


def parts(r, ask):
    """Partials of parts cut at random, merged in any order, and finished."""
    c, o = ask.case, ask.case.options
    placed = c.op.startswith("arg") or c.op == "digest"
    if c.dtype not in NUMPY or c.op in RANKED or "offsets" in c.beside or set(o) - {*FINISHED, "groups", "drop"} or o.get("ddof", 0) not in (0, 1, 2, 3):
        raise NotHere
    if c.op == "prod" and c.is_float or placed and (c.missing is not None or c.beside):
        raise NotHere
    made, by_key = [], {name: o[name] for name in ("groups", "drop") if name in o}
    if "keys" in c.beside and "groups" not in by_key:
        by_key["groups"] = max(c.beside["keys"].tolist(), default=-1) + 1
    for cut, a, missing, keep in pieces(r, ask):
        more = dict(by_key)
        if placed:
            more["first"] = cut.start
        if "where" in c.beside:
            more["where"] = ask.beside(r, "where", keep.copy())[1]
        if "keys" in c.beside:
            more["keys"] = ask.beside(r, "keys", c.beside["keys"][cut])[1]
        if c.op in PAIRS:
            other = np.frombuffer(c.other, NUMPY[c.dtype])
            more["second"] = ask.beside(r, "second", (other.reshape(c.shape) if "keys" in c.beside else other)[cut])[1]
        held = ask.part(r, a, missing)
        part = r.choice([cured, *ask.doors.clients]).partial(held, [c.op], **more, **({} if placed or by_key else {"first": None}))
        made.append(pickle.loads(pickle.dumps(part)) if r.random() < 0.3 else part)
    r.shuffle(made)
    answer = cured.merge(made).finish([c.op], **{name: o[name] for name in FINISHED if name in o})[c.op]
    return np.asarray(answer).reshape((-1,) + c.shape[1:]) if "keys" in c.beside else answer


def seldom_along(r, c):
    """Lists have no axes, which a few cases ask for nevertheless."""
    return set(c.options) & {"axis", "keepdims"} and r.random() < 0.8


def listed(r, ask):
    """A list of the parts, which is one array."""
    c = ask.case
    if c.ndim != 1 or "keys" in c.beside or c.beside or c.dtype not in NUMPY or c.op in PAIRS or seldom_along(r, c):
        raise NotHere
    ask.array = [ask.part(r, a, missing) for _, a, missing, _ in pieces(r, ask)]
    return ask.one(cured)


def parts_together(r, ask):
    """All parts by one call."""
    c, o = ask.case, ask.case.options
    if c.dtype not in NUMPY or c.op in RANKED + PAIRS or c.beside or set(o) - set(FINISHED) or o.get("ddof", 0) not in (0, 1, 2, 3):
        raise NotHere
    if c.op == "prod" and c.is_float or (c.missing is not None and c.op.startswith("arg")) or c.op == "digest":
        raise NotHere
    held = [ask.part(r, a, missing) for _, a, missing, _ in pieces(r, ask)]
    first = {} if c.op.startswith("arg") else {"first": None}
    return cured.reduce_parts(held, [c.op], client=r.choice([None, *ask.doors.clients]), **first, **o)[c.op]


NUMPYS = {"dtype": ("sum", "prod", "mean", "var", "std"), "ddof": ("var", "std"), "initial": ("sum", "prod", "min", "max"),
          "method": ("quantile",), "axis": None, "keepdims": None, "where": None}


def by_numpys_name(r, ask):
    """Without NaNs, by the name that NumPy has for that; of AsyncClients, too."""
    c, o = ask.case, ask.options
    takes = all(name in NUMPYS and (NUMPYS[name] is None or c.op in NUMPYS[name]) for name in o if name != "nan")
    if c.options.get("nan") != "skip" or not hasattr(cured, "nan" + c.op) or not takes or (c.op.startswith("arg") and "where" in o):
        raise NotHere
    options = {name: value for name, value in o.items() if name != "nan"}
    if r.random() < 0.3:
        ask.awaits = True
        return ask.doors.loop.run_until_complete(getattr(r.choice(ask.doors.asyncs), "nan" + c.op)(ask.array, *ask.args(), **options))
    return getattr(cured, "nan" + c.op)(ask.array, *ask.args(), client=r.choice([None, *ask.doors.clients]), **options)


# ---- All of them ----

class Doors:
    """Those of one process. addresses: of a daemon."""

    def __init__(self, addresses):
        self.addresses = addresses
        here = [cured.Client("embedded:"), cured.Client("embedded:", threads=3)]
        self.clients = here + [cured.Client(address) for address in addresses]
        self.loop = asyncio.new_event_loop()
        self.asyncs = self.loop.run_until_complete(self.open(["embedded:", *addresses]))
        self.grpc = wire.Grpc(addresses) if addresses and not wire.lacks_grpc() else None
        self.kinds = [module, module, client, client, several, each, own_array, file_method, awaited, awaited_several, parts, parts, parts_together, by_numpys_name, listed] * 3
        self.native = cross_native.Native(addresses) if addresses else None
        self.kinds += [self.grpc.ask] * 4 if self.grpc else []
        self.kinds += [self.native.ask] * 5 if self.native else []
        self.kinds += cross_parts.KINDS
        self.kinds += [cross_command.command_line] * 2 + [cross_command.lacking] if cross_command.here() else []

    def use_cuda(self):
        """Tensors of a GPU alone, which this process answers."""
        import cross_cuda
        self.kinds = [cross_cuda.ask_there(door) for door in cross_cuda.KINDS]

    async def open(self, addresses):
        return [cured.AsyncClient(address) for address in addresses]

    def end(self):
        for each_one in self.clients + self.asyncs:
            each_one.close()
        self.loop.close()
        for far in (self.grpc, self.native):
            if far:
                far.end()


def ways(doors, seed, number, bag, case, wanted, count):
    """(what it is, what is asked, function) of some ways to ask a case. Many are not for it (NotHere)."""
    for turn in range(count):
        r = random.Random("cross way/%d/%d/%d" % (seed, number, turn))
        door = r.choice(doors.kinds)
        ask = Ask(r, bag, case, wanted, doors)
        ask.door = door.__qualname__
        yield "%s: %s" % (ask.door, ask), ask, lambda: door(r, ask)
