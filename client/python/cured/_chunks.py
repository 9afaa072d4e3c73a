"""Containers that are read in blocks (_stores.py): what cured.reduce(dataset, ops) and the others come to.

Blocks give exact partials, which merge to the bits of the whole array; _slices.py has answers along axes. The extension calls answer(),
_order.py quantile().
"""
import contextlib
import itertools
import math
import operator

import numpy

from . import _blocks, _cured, _slices
from ._alike import of_blocks
from ._arrow import OnGpu, answer_on_gpu, opened
from ._beside import in_memory, mask_of, without_lists
from ._blocks import ahead, complete, extents, reader, start_of
from ._cured import _is_index, _is_ordered, _is_ranked
from ._initial import combine
from ._lists import says_nothing
from ._places import extrema, finish, merge, options_of_finish
from ._result import Result
from ._stores import beside, dask_array, store_of

FOLD = ("dtype", "ddof", "nan", "overflow")
MERGED_AT_ONCE = 16  # partials by key, each of which may be of as many groups as their sum
PRODUCT_BLOCK = 4096  # products of floats go by blocks of so many elements
JOINING = {"sum": "add", "prod": "multiply", "min": "least", "max": "greatest"}


class Call:
    """What is asked of a container: its store, the ops, and the options. q: shares, for the one op quantile."""

    def __init__(self, container, ops, client, options, q=None):
        self.unplaced = "first" in options and options["first"] is None
        options = without_lists({name: value for name, value in options.items() if not says_nothing(name, value)})
        options.pop("client", None)
        self.container, self.store, self.ops, self.q = container, store_of(container), ops, q
        self.client = {} if client is None else {"client": client}
        self.fold = {name: options.pop(name) for name in FOLD if name in options}
        self.method = {"method": options.pop("method")} if "method" in options else {}
        self.axis, self.keepdims = options.pop("axis", None), bool(options.pop("keepdims", False))
        self.initial, self.out = options.pop("initial", None), options.pop("out", None)
        self.where, self.second = options.pop("where", None), options.pop("second", None)
        self.strict = _word(options.pop("nulls", "skip"), "nulls", ("skip", "error")) == "error"
        where, second = (None if array is None else beside(array, self.store.shape, what)
                         for array, what in ((self.where, "where"), (self.second, "second")))
        if second is not None and second.dtype != self.store.dtype and not self.store.is_stream and {second.dtype.kind, self.store.dtype.kind} <= set("biuf"):
            self.store, second = of_blocks(self.store, second, second.dtype)
        self.second_masked = second is not None and second.masked
        self.read, self.second_dtype = reader(self.store, where, second, self.strict), second and second.dtype
        keys = _for_dask(container, options.get("keys"))
        if keys is not None:
            options.pop("keys")
        self.more = in_memory(options)  # keys, groups, drop, offsets; of partials first, shape, start; of a search _asked
        if keys is not None:
            self.more["keys"] = keys
        self.once = self.store.is_stream and not self._wants_all()

    def gather(self):
        """Reads Dask's keys, too, which only Dask's own scheduler takes as they are."""
        self.more = in_memory(self.more)

    def _wants_all(self):
        """Whether a stream must be kept: it is read several times, or its length counts."""
        dtype = self.store.dtype.newbyteorder("=").name
        return self.where is not None or self.second is not None or self.q is not None or bool(self.more) or any(
            _is_ranked(op) or op == "digest" or _is_ordered(op, dtype) and not _is_index(op) for op in self.ops)

    @property
    def masked(self):
        return self.where is not None or self.once or self.store.masked or self.second_masked

    def ask(self, block, other, **options):
        """The answers of one block: a list with that of each op, or an exception in its place."""
        options.update(self.fold, **self.method, **self.client)
        if other is not None:
            options["second"] = other
        if self.q is not None:
            return [_cured.quantile(block, self.q, **options)]
        if self.initial is not None:
            if len(self.ops) > 1:
                raise TypeError("initial: only sum, prod, min and max take it")
            return [getattr(_cured, self.ops[0])(block, initial=self.initial, **options)]
        return list(_cured.reduce(block, self.ops, **options)._answers.values())

    def one(self):
        """An array of one element that stands for the container, and for the second array."""
        one = numpy.ones((1,) * self.store.ndim, self.store.dtype)
        second = None if self.second is None else numpy.ones(one.shape, self.second_dtype)
        return numpy.ma.masked_array(one, numpy.zeros(one.shape, bool)) if self.masked else one, second

    def check(self, along):
        """Raises what is wrong with ops and options, before anything is read. along: the types of the answers along axes, or kept axes."""
        initial, one = self.initial, self.one()
        if not along:
            with contextlib.suppress(OverflowError):  # of a first value: other elements may mend that
                self.ask(*one)
            return None
        along = {"axis": tuple(range(self.store.ndim)), "keepdims": True}
        if initial is not None:
            with contextlib.suppress(OverflowError):
                self.ask(*one, **along)
        self.initial = None
        answers = self.ask(*one, **along)
        self.initial = initial
        return [numpy.asarray(answer).dtype for answer in answers]

    def partial(self, block, other, ops, **place):
        if other is not None:
            place["second"] = other
        return _cured.partial(block, ops, **({} if "first" in place or "shape" in place else {"first": None}), **place, **self.client)

    def blocks(self, **how):
        """All blocks, read ahead: a context of an iterator of (box, (elements, second elements))."""
        return contextlib.nullcontext(self._pieces()) if self.once else ahead(self.read, self.store.boxes(**how))

    def _pieces(self):
        """The same of a stream that is read once."""
        for box, elements in self.store.stream():
            yield box, (complete(elements, start_of(box)) if self.strict else elements, None)

    def nan(self):
        return self.fold.get("nan", "propagate")

    def ranked_fold(self):
        """What ops by rank take of FOLD. check() has said whether the others may be there."""
        return {name: self.fold[name] for name in ("dtype", "nan") if name in self.fold}


def _for_dask(container, keys):
    """Dask's keys beside a Dask array, which _by_dask() takes in their chunks; else None."""
    found = None if dask_array(container) is None else dask_array(keys)
    if found is None or found.ndim != 1 or math.isnan(found.shape[0]) or isinstance(found._meta, numpy.ma.MaskedArray):
        return None  # NaN: Dask has not computed how many there are
    return found


# ---- Whole arrays ----

def whole(call):
    """A list of the answers, or an exception in the place of one that there is not."""
    if call.q is not None:
        return [_shares(call)]
    answers, ops, dtype = {}, call.ops, call.store.dtype.newbyteorder("=")
    ranked = [op for op in ops if _is_ranked(op)]
    products = [op for op in ops if op == "prod" and _is_ordered(op, dtype.name)]
    rest = [op for op in ops if op not in ranked and op not in products]

    def options_of(some):
        """An option that none of these ops takes is for those beside them: check() has said so."""
        return {name: value for name, value in call.fold.items() if len(some) == len(ops) or takes(dtype, some, **{name: value})}

    if ranked:
        answers.update(zip(ranked, _ranked(call, ranked)))
    if products:
        answers.update(_product(call).finish("prod", **options_of(products))._answers)
    if rest:
        state = _state(call, rest)
        if call.initial is not None and dtype.kind == "f":  # it is one more element
            state = merge([state, (_cured.partial(numpy.array([call.initial], dtype), rest, first=None), {})], (), "")
        indices = [op for op in rest if _is_index(op)]
        # With the first value a product may fit 64 bits that does not without it, as -1 and 2^63.
        wide = {"dtype": "i128"} if call.initial is not None and rest == ["prod"] and call.fold.get("overflow") != "wrap" else {}
        answers.update(finish(state, rest, indices, options_of_finish(rest, indices, {**options_of(rest), **wide}))._answers)
    if call.initial is not None and dtype.kind != "f":
        answers = {op: _with_initial(call, op, answer) for op, answer in answers.items()}
    return [answers[op] for op in ops]


def _word(value, name, words):
    if value not in words:
        raise ValueError("%s: %r, must be %s" % (name, value, " or ".join(map(repr, words))))
    return value


def takes(elements, ops, **option):
    """Whether one of the ops takes the option."""
    try:
        _cured.reduce(numpy.ones(1, elements), ops, **option)
    except ValueError:
        return False
    return True


def _state(call, ops):
    """(partial, extrema) of the whole array."""
    indices, state = [op for op in ops if _is_index(op)], None
    shape = (0,) if call.once else call.store.shape  # of one axis: its length does not matter
    rest = [op for op in ops if op not in indices]
    with call.blocks() as some:
        for box, (block, other) in some:
            place = {"shape": shape, "start": start_of(box)} if "digest" in rest else {}
            part = call.partial(block, other, rest, **place) if rest else None
            found = (part, extrema(block, indices, start_of(box), shape, call.nan()))
            state = found if state is None else merge([state, found], indices, call.nan())
    return state


def _merged(call, parts, ops):
    """The partial of the blocks' parts, pairs of elements in C order and their second ones, from number `first` on."""
    state, first = None, operator.index(call.more.get("first", 0))
    for block, other in parts:
        part = call.partial(block, other, ops, first=first)
        state = part if state is None else _cured.merge([state, part])
        first += block.size
    return state


def _flat(some):
    for _, (block, other) in some:
        yield block.reshape(-1), None if other is None else other.reshape(-1)


def _regrouped(blocks):
    """The same elements without a mask, missing ones as 1, in runs of a multiple of PRODUCT_BLOCK. The last run is what is left."""
    left = None
    for block, _ in blocks:
        block = numpy.ma.filled(block, 1)
        if left is not None and left.size:
            block = numpy.concatenate([left, block])
        cut = block.size - block.size % PRODUCT_BLOCK
        if cut:
            yield block[:cut], None
        left = block[cut:]
    yield left, None


def _product(call):
    """The partial of the product of floats, which goes by places."""
    more = [] if call.initial is None else [(numpy.array([call.initial], call.store.dtype), None)]
    with call.blocks(in_order=True) as some:
        return _merged(call, _regrouped(itertools.chain(_flat(some), more)), ["prod"])


def _with_initial(call, op, answer):
    if isinstance(answer, ValueError):  # there are no elements
        answer = None
    if isinstance(answer, OverflowError) and op == "prod" and hasattr(call.initial, "__index__") and not call.initial:
        answer = 1  # which the first value makes 0
    if isinstance(answer, Exception):
        return answer
    return combine((JOINING[op], answer, call.initial, call.store.dtype.kind, call.fold.get("overflow") == "wrap"))


def _counts(call, asked):
    """What a read of a search asks."""
    total = 0
    with call.blocks() as some:
        for _, (block, _) in some:
            total = total + _cured.median(block, _asked=asked, **call.client)
    return total


def _searched(call, search):
    while search.asked:
        search.next(_counts(call, search.asked))
    return search.answers


def _ranked(call, ops):
    from ._search import Search
    return _searched(call, Search(call.store.dtype.newbyteorder("="), _ops=ops, **call.ranked_fold()))


def _shares(call):
    """The quantiles of all shares."""
    from ._order import stacked
    from ._search import AT_ONCE, Search
    flat = call.q.ravel() if call.q.size else numpy.array([0.5])
    answers, options = [], call.ranked_fold()
    for at in range(0, flat.size, AT_ONCE):
        answers += _searched(call, Search(call.store.dtype.newbyteorder("="), flat[at:at + AT_ONCE], **call.method, **options))
    return stacked(answers, call.q, call.fold.get("dtype"))


# ---- Partials ----

def _partial(call):
    """A Partial with a position where it has one: of elements in C order, or of a block of a larger array."""
    one, second = call.one()
    more, ops = call.more, call.ops
    others = {} if second is None else {"second": second}
    others.update(call.fold, **{name: more[name] for name in ("groups", "drop", "offsets") if name in more})
    for name, value in (("axis", call.axis), ("keepdims", call.keepdims or None), ("out", call.out), ("initial", call.initial)):
        if value is not None:
            others[name] = value  # which a partial does not take: the extension says so
    if "keys" in more:
        return _by_key(call, one, others)
    if "shape" in more or "start" in more:
        _cured.partial(one[(slice(0, 0),) * one.ndim], ops, **others, **more)  # raises what is wrong with them
        return _block(call)
    given = {"first": more["first"]} if "first" in more else {"first": None} if call.unplaced else {}
    _cured.partial(one, ops, **others, **given)
    if call.masked or call.unplaced:
        return _state(call, ops)[0]
    with call.blocks(in_order=True) as some:
        by_places = any(op == "prod" and _is_ordered(op, call.store.dtype.name) for op in ops)
        return _merged(call, _regrouped(_flat(some)) if by_places else _flat(some), ops)


def _by_key(call, one, others):
    """A partial by key: of each block of whole rows one, which are merged some at a time."""
    from ._bins import whole
    more, shape, size = call.more, call.store.shape, call.store.dtype.itemsize
    keys, missing = whole(more["keys"], "keys")
    if missing is not None and missing.any():
        raise ValueError("keys: without a mask: where= says which elements count")
    keys = numpy.ascontiguousarray(keys)
    # What is wrong is said of one row, which stands for all, and then of the keys alone.
    row = one[:0] if "shape" in more or "start" in more else one
    _cured.partial(row, call.ops, **{**others, **more, "keys": numpy.zeros(row.shape[:1], keys.dtype), "drop": True})
    options = {name: more[name] for name in ("groups", "drop") if name in more}
    options["groups"] = _cured.partial(keys, "count", keys=keys, **options).groups
    if keys.shape != shape[:1]:
        raise ValueError("keys: %d of them, the array has %d rows" % (keys.size, math.prod(shape[:1])))
    rows = tuple(range(1, len(shape)))
    if math.prod(shape[1:]) * size > _blocks.MOST_BYTES:
        raise ValueError("keys: a row has more than %d bytes: reduce parts of the columns" % _blocks.MOST_BYTES)
    nothing = numpy.empty((0,) + tuple(shape[1:]), call.store.dtype)
    pair = {} if call.second is None else {"second": nothing}
    parts = [_cured.partial(nothing, call.ops, keys=keys[:0], **options, **pair, **call.client)]
    with call.blocks(whole=rows) as some:
        for box, (block, other) in some:
            parts.append(_cured.partial(block, call.ops, keys=keys[box[0]], **options, **({} if other is None else {"second": other}), **call.client))
            if len(parts) == MERGED_AT_ONCE:
                parts = [_cured.merge(parts)]
    return _cured.merge(parts)


def _merged_by_key(call):
    """A list of the answers, or an exception in the place of one, by the partials of blocks of rows."""
    one, second = call.one()
    found = _by_key(call, one, {} if second is None else {"second": second}).finish(call.ops, **call.fold)
    return [answer if isinstance(answer, Exception) else numpy.asarray(answer).reshape((-1,) + call.store.shape[1:])
            for answer in found._answers.values()]


def _block(call):
    start, state = [operator.index(at) for at in call.more["start"]], None
    with call.blocks() as some:
        for box, (block, other) in some:
            place = [a + b for a, b in zip(start, start_of(box))]
            part = call.partial(block, other, call.ops, shape=call.more["shape"], start=place)
            state = part if state is None else _cured.merge([state, part])
    return state



# ---- Dask arrays: by Dask's own scheduler, which has threads and knows what chunks share ----

def _by_dask(call):
    """A list of the answers; None: the call has what cured.dask does not take."""
    x = dask_array(call.container)
    if x is None or call.client or call.strict or call.initial is not None or call.second is not None or set(call.more) - {"keys", "groups", "drop"}:
        return None
    if call.where is not None and call.store.masked:
        return None
    if call.more and any(_is_ranked(op) for op in call.ops):  # which have no partials by key
        return None
    if call.masked and "prod" in call.ops and call.store.dtype.kind == "f":
        return None
    import dask
    from . import dask as exact
    shared = {} if call.where is None else {"where": mask_of(call.where)}
    options, axis, keepdims = dict(call.fold, **call.more, **shared), call.axis, call.keepdims
    if "keys" in options and "groups" not in options:
        options["groups"] = exact.groups_of(options["keys"])
    if axis is not None and not keepdims and not call.more and len(_slices.axes_of(axis, x.ndim)) == x.ndim:
        axis = None
    if call.q is not None:
        call.check(False)
        found = exact.quantile(x, call.q, axis, keepdims=keepdims, **call.ranked_fold(), **call.method, **shared)
        return [found.compute()]
    found = exact.reduce(x, call.ops, axis, keepdims=keepdims, **options)
    if not isinstance(found, Result):
        return list(found.compute()._answers.values())
    try:
        return list(dask.compute(*found._answers.values()))
    except (ValueError, OverflowError) as error:  # of one of the ops; the others stand
        if "keys" in options and str(error).startswith("keys: "):
            raise
        if len(call.ops) == 1:
            return [error]
        return [_computed(array) for array in found._answers.values()]


def _computed(array):
    try:
        return array.compute()
    except (ValueError, OverflowError) as error:
        return error


# ---- What is called ----

def _type_by_out(call):
    """As of other arrays: the answers of one op are rounded to the type of out, if that is a float's."""
    if call.out is None or "dtype" in call.fold or call.initial is not None:
        return
    from ._out import default_type
    name = default_type((call.out,))
    if name is not None and (call.q is not None or takes(call.store.dtype, call.ops, dtype=name)):
        call.fold["dtype"] = name


def _answers(call):
    axes = _slices.axes_of(call.axis, call.store.ndim)
    answers = _by_dask(call)
    if answers is not None:
        return answers
    call.gather()
    if call.more:
        answers = _slices.by_more(call, axes)
        return _merged_by_key(call) if answers is None else answers
    part = axes is not None and len(axes) < call.store.ndim
    types = call.check(part or call.keepdims)
    if part:
        return _slices.along(call, axes, types)
    answers = whole(call)
    return _slices.kept(call, answers, types) if call.keepdims else answers


def _returned(call, what, answers):
    """What the function returns, in out= if that is given."""
    if what == "":
        made = answers[0]
        if isinstance(made, Exception):
            raise made
    else:
        made = Result(dict(zip(call.ops, answers)))
    if call.out is None:
        return made
    from ._out import store
    return store((made, call.out, what == "", call.ops))


def answer(arguments):
    """Of a call: what, "reduce" for a Result, "partial", or "" for the one op's answer; the container; the ops; the client; its options."""
    what, container, ops, client, options = arguments
    container = opened(container)
    if isinstance(container, OnGpu):
        several = _cured.partial if what == "partial" else _cured.reduce
        function = getattr(_cured, ops[0]) if what == "" else lambda array, **more: several(array, ops, **more)
        return answer_on_gpu(function, container, client, options)
    call = Call(container, ops, client, options)
    if what == "partial":
        call.once = False
        call.gather()
    if "_asked" in call.more:
        return _counts(call, call.more["_asked"])
    if what == "partial":
        return _partial(call)
    if "shape" in call.more or "start" in call.more:
        raise TypeError("shape, start: only a partial is of a block of a larger array")
    if what == "":
        _type_by_out(call)
    return _returned(call, what, _answers(call))


def quantile(container, q, client, options):
    """The quantiles of shares q, an array of float64."""
    container = opened(container)
    if isinstance(container, OnGpu):
        return answer_on_gpu(lambda array, **more: _cured.quantile(array, q, **more), container, client, options)
    call = Call(container, ["quantile"], client, options, q)
    others = [name for name in call.more if name not in ("keys", "groups", "drop", "offsets")]
    if others or call.initial is not None or call.second is not None:
        raise TypeError("%s: a quantile takes none" % ", ".join(others or ["initial, second"]))
    _type_by_out(call)
    return _returned(call, "", _answers(call))
