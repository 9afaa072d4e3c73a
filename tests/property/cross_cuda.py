"""Tensors of a GPU for cross_property.py, over the runtime double of tests/double (CURED_CUDA_LIBRARY): the fakes of tests/python/test_cuda_here.py.
Each case's array, mask, keys, offsets and second array lie there."""
import collections
import os

import cross_doors as doors
import numpy as np
from cross_draw import PAIRS, NotHere
from cross_truth import kept
from support import NUMPY, cured

HERE = bool(os.environ.get("CURED_CUDA_LIBRARY"))
if HERE:
    import test_cuda_here as fakes


def there(r, a):
    """A contiguous copy in the memory of the double's device."""
    return r.choice([fakes.Tensor, fakes.Borrowed])(np.ascontiguousarray(a).reshape(a.shape))


class AskThere(doors.Ask):
    """What is missing goes with the mask, which a tensor has of its own."""

    def __init__(self, r, bag, case, wanted, owner):
        self.bag, self.case, self.wanted, self.doors, self.held = bag, case, wanted, owner, {}
        self.roles = collections.defaultdict(set, array={"cuda"})
        self.name, self.options = "cuda", {name: value for name, value in case.options.items() if name != "nulls"}
        if case.array is None or "nulls" in case.options:
            raise NotHere
        self.array = there(r, case.array)
        if case.missing is not None or "where" in case.beside:
            self.options["where"] = there(r, np.array(kept(case), bool).reshape(case.shape))
        if "keys" in case.beside:
            self.options["keys"] = there(r, case.beside["keys"])
        if "offsets" in case.beside:
            offsets = case.beside["offsets"].astype(r.choice(["i4", "i8", "u4", "u8"]))
            self.held["offsets"], self.options["offsets"] = r.choice([("plain", lambda: offsets), ("cuda", lambda: there(r, offsets))])
            self.options["offsets"] = self.options["offsets"]()
        if case.op in PAIRS:
            self.second = there(r, np.frombuffer(case.other, NUMPY[case.dtype]).reshape(case.shape))


def module(r, ask):
    return host(ask.one(cured))


def host(answer):
    return answer.host() if isinstance(answer, fakes.Tensor) else answer


def several(r, ask):
    c = ask.case
    if c.op == "quantile" or "initial" in c.options:
        raise NotHere
    names = list({c.op, *([] if c.op in PAIRS or set(c.options) & {"ddof", "overflow", "dtype"} else r.sample(["count", "sum", "max"], 2))})
    return host(cured.reduce(ask.array, names, **ask.options, **({"second": ask.second} if c.op in PAIRS else {}))[c.op])


def own_tensor(r, ask):
    """Into a tensor, or an array of the host."""
    wanted = ask.wanted
    if not isinstance(wanted, doors.Answer) or wanted.dtype not in NUMPY:
        raise NotHere
    memory = np.zeros(wanted.shape or (), NUMPY[wanted.dtype])
    out = r.choice([lambda: there(r, memory), lambda: memory])()
    if ask.one(cured, out=out) is not out:
        raise AssertionError("out= is not what is returned")
    found = host(out)
    return found if wanted.shape is not None else found.item()


def each(r, ask):
    ask.array = [ask.array] * r.randint(1, 3)
    c = ask.case
    if c.op in ("median", "quantile", *PAIRS) or set(c.options) & {"initial", "min_count"} or c.beside or c.missing is not None:
        raise NotHere
    return host(cured.reduce_each(ask.array, c.op, **ask.options)[-1][c.op])


def listed(r, ask):
    """The parts of one array in a list, some of them on the host."""
    c = ask.case
    if c.ndim != 1 or c.beside or c.missing is not None or c.op in PAIRS or doors.seldom_along(r, c):
        raise NotHere
    ask.array = [there(r, a) if r.random() < 0.8 else a for _, a, _, _ in doors.pieces(r, ask)]
    return ask.one(cured)


def parts(r, ask):
    """Partials of tensors, merged with those of the host."""
    c, o = ask.case, ask.case.options
    if c.op in ("median", "quantile", *PAIRS) or c.beside or c.missing is not None or set(o) - set(doors.FINISHED) or o.get("ddof", 0) not in (0, 1, 2, 3):
        raise NotHere
    if c.op == "prod" and c.is_float:
        raise NotHere
    made = [cured.partial(there(r, a) if r.random() < 0.8 else a, [c.op], first=cut.start) for cut, a, _, _ in doors.pieces(r, ask)]
    r.shuffle(made)
    return cured.merge(made).finish([c.op], **{name: o[name] for name in doors.FINISHED if name in o})[c.op]


KINDS = [module, module, several, own_tensor, each, listed, parts]


def ask_there(door):
    """A door as the others are, of a case whose objects are made anew."""
    def asked(r, ask):
        made = AskThere(r, ask.bag, ask.case, ask.wanted, ask.doors)
        ask.roles = made.roles
        return door(r, made)

    asked.__qualname__ = "cuda." + door.__name__
    return asked
