"""cured.dask: exact reductions of dask arrays. Workers fold their chunks where they lie, and Dask's tree merges partials.

    >>> import cured.dask
    >>> cured.dask.reduce(x, ["sum", "argmax"]).compute().sum

The answers have the same bits under any chunking, for chunks of any shape. Over the whole array they come as one delayed Result;
with an axis there is a dask array for each op. See docs/CLUSTER.md.
"""
import functools
import itertools
import math
import operator

import dask
import dask.array
import numpy

import cured
from cured._adapt import axis_error
from cured._cured import _is_index, _is_ordered
from cured._result import Result

_BLOCK = 4096  # products of floats are cut at multiples of so many elements
_NO_PRODUCT = "prod of floats needs the place of each element, which a masked chunk has not: reduce dask.array.ma.filled(x, 1)"


def _names(ops):
    ops = ops.split(",") if isinstance(ops, str) else list(ops)
    return [op.strip() for op in ops]


@functools.lru_cache(maxsize=8)
def _client(address):
    """One client for each address and process: a client belongs to nobody else, and cannot be sent to a worker."""
    return cured.Client(address)


def _array(chunk):
    """A chunk that keeps its mask."""
    return chunk if isinstance(chunk, numpy.ma.MaskedArray) else numpy.asarray(chunk)


def _fold(chunk, ops, first, address, block):
    options = {} if address is None else {"client": _client(address)}
    chunk = _array(chunk)
    if block:
        options["shape"], options["start"] = block
    elif not isinstance(chunk, numpy.ma.MaskedArray):
        options["first"] = first
    elif first is not None:
        raise TypeError(_NO_PRODUCT)
    return cured.partial(chunk, ops, **options) if ops else None


def _places(chunk, ops, start, shape, nan):
    """Of a chunk, the first extremum of each op: its element and its index in the whole, in C order. NaN is one, as cured has it."""
    chunk, found = _array(chunk), {}
    for op in ops:
        try:
            at = getattr(cured, op)(chunk, nan=nan) if chunk.dtype.kind == "f" else getattr(cured, op)(chunk)
        except ValueError:  # nothing is there, or NaNs alone
            continue
        place = numpy.unravel_index(at, chunk.shape) if chunk.shape else ()
        index = 0
        for k, begin, length in zip(place, start, shape):
            index = index * length + int(k) + begin
        found[op] = (index, chunk[place])
    return found


def _best(found, op, nan):
    """The first extremum among those of chunks; cured itself compares them, so that NaN and -0 have their places."""
    candidates = sorted((f[op] for f in found if op in f), key=lambda c: c[0])
    if not candidates:
        return None
    elements = numpy.array([element for _, element in candidates])
    options = {"nan": nan} if elements.dtype.kind == "f" else {}
    return candidates[getattr(cured, op)(elements, **options)]


def _start(chunk, ops, indices, first, start, shape, nan, address):
    """(partial or None, the extrema's places) of a chunk."""
    block = (shape, start) if "digest" in ops and first is None else None
    return _fold(chunk, ops, first, address, block), _places(chunk, indices, start, shape, nan)


def _merge(states, indices, nan):
    partials = [state[0] for state in states if state[0] is not None]
    best = {op: _best([state[1] for state in states], op, nan) for op in indices}
    return (cured.merge(partials) if partials else None), {op: place for op, place in best.items() if place is not None}


def _finish(state, ops, indices, options):
    partial, places = state
    answers = dict.fromkeys(ops)
    if partial is not None:
        answers.update(partial.finish([op for op in ops if op not in indices], **options)._answers)
    for op in indices:
        answers[op] = places[op][0] if op in places else ValueError("%s: there is no element to find" % op)
    return Result(answers)


def _tree(states, merge, split_every):
    """Neighbours are merged first, because their ranges join."""
    while len(states) > 1:
        states = [merge(states[i:i + split_every]) for i in range(0, len(states), split_every)]
    return states[0]


def _whole(x, ops, nan, options, split_every, address):
    indices = [op for op in ops if _is_index(op)]
    rest = [op for op in ops if op not in indices]
    ordered = [op for op in rest if _is_ordered(op, x.dtype.name)]
    product = bool(ordered) and (ordered != ["digest"] or address is not None)  # a daemon takes no blocks
    if ordered and isinstance(x._meta, numpy.ma.MaskedArray):
        raise TypeError(_NO_PRODUCT)
    if product:  # its tree is fixed by the place of every element
        x = x.reshape(-1)
        x = x.rechunk(-(-max(1, *x.chunks[0]) // _BLOCK) * _BLOCK)
    starts = [[0, *itertools.accumulate(sizes[:-1])] for sizes in x.chunks]
    start, merge = dask.delayed(_start, pure=True), dask.delayed(_merge, pure=True)
    if indices and not set(rest) - {"count_nan"}:  # NaNs are skipped where they are looked at
        options = {name: value for name, value in options.items() if name != "nan"}
    states = [start(chunk, rest, indices, place[0] if product else None, place, x.shape, nan, address)
              for chunk, place in zip(x.to_delayed().ravel(), itertools.product(*starts))]
    state = _tree(states, lambda group: merge(group, indices, nan), split_every)
    return dask.delayed(_finish, pure=True)(state, ops, indices, options)


def _rows(chunk, ops, axes, options, address):
    """The answers of a chunk that is whole along the axes, by op, in one pass; an exception for an op that lacks some."""
    client = {} if address is None else {"client": _client(address)}
    return dict(cured.reduce(_array(chunk), ops, axis=axes, keepdims=True, **options, **client)._answers)


def _answers(row, op):
    if isinstance(row[op], Exception):
        raise row[op]
    return numpy.asarray(row[op])


def _types(x, ops, options):
    """The types of answers along axes, by op. It raises what is wrong with ops and options, so that a graph that is made can be
    computed."""
    one = numpy.ones((1,) * x.ndim, x.dtype)
    return {op: row.dtype for op, row in _rows(one, ops, tuple(range(x.ndim)), options, None).items()}


def _axes(axis, ndim):
    """The axes as rising numbers."""
    axes = []
    for k in axis if isinstance(axis, tuple) else (axis,):
        try:
            k = operator.index(k)
        except TypeError:
            raise TypeError("axis: an integer or a tuple of integers is wanted, not %r" % type(k)) from None
        if not -ndim <= k < ndim:
            raise axis_error((k, ndim))
        axes.append(k % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError("axis: an axis comes twice in %r" % (axis,))
    return tuple(sorted(axes))


def _along(x, ops, axis, keepdims, types, options, address):
    axes = _axes(axis, x.ndim)
    x = x.rechunk({k: -1 for k in axes})  # answers along an axis are of whole rows
    whole = functools.partial(_rows, ops=ops, axes=axes, options=options, address=address)
    chunks = tuple((1,) if k in axes else sizes for k, sizes in enumerate(x.chunks))
    rows = x.map_blocks(whole, dtype=object, chunks=chunks, meta=numpy.empty((0,) * x.ndim, object))
    arrays = {}
    for op in ops:
        y = rows.map_blocks(_answers, op, dtype=types[op], meta=numpy.empty((0,) * x.ndim, types[op]))
        arrays[op] = y if keepdims else y.squeeze(axis=axes)
    return Result(arrays)


def _kept(result, op, dtype, ndim):
    """One answer of a whole array, with its axes."""
    answer = result[op]
    try:
        return numpy.array(answer, dtype).reshape((1,) * ndim)
    except OverflowError:
        raise OverflowError("the %s does not fit %s" % (op, dtype)) from None


def _keep(result, x, types):
    arrays, kept = {}, dask.delayed(_kept, pure=True)
    for op, dtype in types.items():
        arrays[op] = dask.array.from_delayed(kept(result, op, dtype, x.ndim), (1,) * x.ndim, dtype)
    return Result(arrays)


def reduce(x, ops, axis=None, *, keepdims=False, dtype=None, ddof=0, nan="propagate", overflow="error", split_every=16,
           address=None):
    """Answers of `ops` over a dask array: exact, rounded once, the same bits under any chunking.

    axis None gives one delayed Result. An axis, or a tuple of them, gives a Result of dask arrays; chunks are joined along it
    first. With keepdims axis None gives such arrays, too. What is wrong with the arguments is said here, not when it is computed. Chunks are folded in the worker's own process or, with `address` ("unix:/run/cured/cured.sock", "auto:"), by the daemon
    that a worker finds there. Partials are merged in groups of `split_every`.
    """
    ops = _names(ops)
    x = dask.array.asanyarray(x)
    if any(math.isnan(size) for sizes in x.chunks for size in sizes):
        raise ValueError("x has chunks of unknown size: call x.compute_chunk_sizes() first")
    if split_every < 2:
        raise ValueError("split_every is %r, must be 2 or more" % split_every)
    options = {}
    if dtype is not None:
        options["dtype"] = dtype
    if ddof:
        options["ddof"] = ddof
    if nan != "propagate":
        options["nan"] = nan
    if overflow != "error":
        options["overflow"] = overflow
    types = _types(x, ops, options)
    if axis is not None:
        return _along(x, ops, axis, keepdims, types, options, address)
    result = _whole(x, ops, nan, options, split_every, address)
    return _keep(result, x, types) if keepdims else result
