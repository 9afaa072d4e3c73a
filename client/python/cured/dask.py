"""cured.dask: exact reductions of dask arrays. Workers fold their chunks where they lie, and Dask's tree merges partials.

    >>> import cured.dask
    >>> cured.dask.reduce(x, ["sum", "argmax"]).compute().sum

The answers have the same bits under any chunking, for chunks of any shape. Over the whole array they come as one delayed Result;
with an axis or keys there is a dask array for each op. cured.dask.sum(x, ...) and its like are reduce of one op. See docs/CLUSTER.md.
"""
import copy
import functools
import itertools
import math
import operator

import dask
import dask.array
import numpy

import cured
from cured._cured import _is_index, _is_ordered, _is_paired, _is_ranked
from cured._beside import without_lists
from cured._dask_names import function, least_of, paired, refuse, with_least
from cured._places import extrema, finish as finish_state, merge as merge_states, options_of_finish
from cured._result import Result
from cured._slices import axes_of, with_axes
from cured._search import AT_ONCE, Search, count_part, shares

_BLOCK = 4096  # products of floats are cut at multiples of so many elements
MOST_INDICES = 1 << 27  # answers of indices by key in a block, 1 GiB: they are found one by one
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


def _misses(x):
    """Whether elements of a dask array may be missing."""
    return isinstance(x._meta, numpy.ma.MaskedArray)


def _fold(chunk, ops, first, address, block, second=None):
    options = {} if address is None else {"client": _client(address)}
    if second is not None:
        options["second"] = numpy.asarray(second)
    chunk = _array(chunk)
    if first is not None and isinstance(chunk, numpy.ma.MaskedArray) and not numpy.ma.getmaskarray(chunk).any():
        chunk = chunk.data  # of a masked array without axes Dask does not know that it is one
    if block:
        options["shape"], options["start"] = block
    elif not isinstance(chunk, numpy.ma.MaskedArray):
        options["first"] = first
    elif first is not None:
        raise TypeError(_NO_PRODUCT)
    return cured.partial(chunk, ops, **options) if ops else None


def _start(chunk, ops, indices, first, start, shape, nan, address, second=None):
    """(partial or None, the extrema's places) of a chunk."""
    block = (shape, start) if "digest" in ops and first is None else None
    return _fold(chunk, ops, first, address, block, second), extrema(_array(chunk), indices, start, shape, nan)


def _tree(states, merge, split_every):
    """Neighbours are merged first, because their ranges join."""
    while len(states) > 1:
        states = [merge(states[i:i + split_every]) for i in range(0, len(states), split_every)]
    return states[0]


# ---- Medians and quantiles: each read maps the chunks to counts, which a tree adds up (docs/PARTIALS.md, "Searches"). ----

def _asked(search):
    return search.asked


def _counts(chunk, asked, address):
    """Nothing where the search is over before its last read, because there are NaNs or no elements."""
    return count_part(asked, _array(chunk), **({} if address is None else {"client": _client(address)})) if asked else 0


def _next(search, counts):
    """Another search: this one stays as it is, because a worker may need it again."""
    search = copy.copy(search)
    if search.asked:
        search.next(counts)
    return search


def _search(x, search, split_every, address):
    """The search when it is over, delayed."""
    chunks = x.to_delayed().ravel()
    asked, counts, after = (dask.delayed(function, pure=True) for function in (_asked, _counts, _next))
    add = dask.delayed(sum, pure=True)
    search = dask.delayed(search)
    for _ in range(_READS[x.dtype.itemsize]):
        what = asked(search)
        search = after(search, _tree([counts(chunk, what, address) for chunk in chunks], add, split_every))
    return search


_READS = {1: 1, 2: 2, 4: 3, 8: 5}


def _element_type(x):
    return x.dtype.newbyteorder("=")


def _beside(result, ops, ranked, search):
    answers = dict(zip(ranked, search.answers), **({} if result is None else result._answers))
    return Result({op: answers[op] for op in ops})


def _whole(x, ops, nan, options, split_every, address, second=None):
    ranked = [op for op in ops if _is_ranked(op)]
    if not ranked:
        return _folded(x, ops, nan, options, split_every, address, second)
    rest = [op for op in ops if op not in ranked]
    search = Search(_element_type(x), nan=nan, dtype=options.get("dtype"), _ops=ranked)
    if options.get("dtype") is not None and rest and not _takes_dtype(x, rest, options["dtype"]):
        options = {name: options[name] for name in options if name != "dtype"}
    result = _folded(x, rest, nan, options, split_every, address) if rest else None
    return dask.delayed(_beside, pure=True)(result, ops, ranked, _search(x, search, split_every, address))


def _takes_dtype(x, ops, dtype):
    try:
        cured.reduce(numpy.ones(1, x.dtype), ops, dtype=dtype)
    except ValueError:
        return False
    return True


def _folded(x, ops, nan, options, split_every, address, second=None):
    indices = [op for op in ops if _is_index(op)]
    rest = [op for op in ops if op not in indices]
    ordered = [op for op in rest if _is_ordered(op, x.dtype.name)]
    product = bool(ordered) and ordered != ["digest"]  # which blocks have, too
    if product and _misses(x):
        raise TypeError(_NO_PRODUCT)
    if product:  # its tree is fixed by the place of every element
        x = x.reshape(-1) if x.size else dask.array.zeros(0, x.dtype)  # Dask reshapes not everything that is empty
        x = x.rechunk(-(-max(1, *x.chunks[0]) // _BLOCK) * _BLOCK)
    starts = [[0, *itertools.accumulate(sizes[:-1])] for sizes in x.chunks]
    start, merge = dask.delayed(_start, pure=True), dask.delayed(merge_states, pure=True)
    options = options_of_finish(ops, indices, options)
    others = itertools.repeat(None) if second is None else second.to_delayed().ravel()
    states = [start(chunk, rest, indices, place[0] if product else None, place, x.shape, nan, address, other)
              for chunk, place, other in zip(x.to_delayed().ravel(), itertools.product(*starts), others)]
    state = _tree(states, lambda group: merge(group, indices, nan), split_every)
    return dask.delayed(finish_state, pure=True)(state, ops, indices, options)


def _rows(chunk, *second, ops, axes, options, address):
    """The answers of a chunk that is whole along the axes, by op, in one pass; an exception for an op that lacks some."""
    more = {} if address is None else {"client": _client(address)}
    if second:
        more["second"] = numpy.asarray(second[0])
    return dict(cured.reduce(_array(chunk), ops, axis=axes, keepdims=True, **options, **more)._answers)


def _answers(row, op):
    if isinstance(row[op], Exception):
        raise row[op]
    return numpy.asarray(row[op])


def _types(x, ops, options, second=None):
    """The types of answers along axes, by op. It raises what is wrong with ops and options, so that a graph that is made can be
    computed."""
    one = numpy.ones((1,) * x.ndim, x.dtype)
    more = () if second is None else (one,)
    return {op: row.dtype for op, row in _rows(one, *more, ops=ops, axes=tuple(range(x.ndim)), options=options, address=None).items()}


def _quantile_rows(chunk, ops, axes, options, address):
    """The same of quantiles, whose answers are numbered as their shares."""
    client = {} if address is None else {"client": _client(address)}
    return dict(enumerate(cured.quantile(_array(chunk), options["q"], axis=axes, keepdims=True,
                                         **{name: options[name] for name in options if name != "q"}, **client)))


def _along(x, ops, axis, keepdims, types, options, address, rows=_rows, second=None):
    axes = axes_of(axis, x.ndim)
    x = x.rechunk({k: -1 for k in axes})  # answers along an axis are of whole rows
    whole = functools.partial(rows, ops=ops, axes=axes, options=options, address=address)
    chunks = tuple((1,) if k in axes else sizes for k, sizes in enumerate(x.chunks))
    others = () if second is None else (second.rechunk(x.chunks),)
    rows = x.map_blocks(whole, *others, dtype=object, chunks=chunks, meta=numpy.empty((0,) * x.ndim, object))
    arrays = {}
    for op in ops:
        y = rows.map_blocks(_answers, op, dtype=types[op], meta=numpy.empty((0,) * x.ndim, types[op]))
        arrays[op] = y if keepdims else y.squeeze(axis=axes)
    return Result(arrays)


def _kept(result, op, dtype, ndim):
    """One answer of a whole array, with its axes."""
    answer = with_axes(result[op], op, dtype, (1,) * ndim)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _keep(result, x, types):
    arrays, kept = {}, dask.delayed(_kept, pure=True)
    for op, dtype in types.items():
        arrays[op] = dask.array.from_delayed(kept(result, op, dtype, x.ndim), (1,) * x.ndim, dtype)
    return Result(arrays)


# ---- By key: a partial by key, and the places of extrema for each cell, a column of a group, that a chunk has something of; a tree
# merges both. ----

def _outside(keys, first, groups, drop):
    wrong = (keys < 0) | (keys >= groups)
    if drop or not wrong.any():
        return wrong
    at = int(numpy.flatnonzero(wrong)[0])
    what = "not one of 0 to %d" % (groups - 1) if groups else "and there are no groups"
    raise ValueError("keys: number %d is %d, %s; drop leaves such elements out" % (first + at, keys[at], what))


def _cells(chunk, keys, ops, indices, first, groups, drop, nan, second=None):
    """(partial by key or None, {(group, column): places}) of rows, the first of which is row `first` of the whole."""
    chunk, keys = _array(chunk), numpy.asarray(keys)
    wrong, cells = _outside(keys, first, groups, drop), {}
    columns = chunk.reshape(len(chunk), -1) if chunk.size else chunk.reshape(len(chunk), 0)
    partial = None
    if ops and columns.size:
        native = numpy.ascontiguousarray(keys, keys.dtype.newbyteorder("="))
        more = {} if second is None else {"second": numpy.asarray(second).reshape(columns.shape)}
        partial = cured.partial(columns, ops, keys=native, groups=groups, drop=True, **more)
    if not indices:
        return partial, cells
    rows = numpy.argsort(keys, kind="stable")
    rows = rows[~wrong[rows]]
    sorted_keys = keys[rows]
    cuts = [0, *(numpy.flatnonzero(sorted_keys[1:] != sorted_keys[:-1]) + 1).tolist(), len(rows)] if len(rows) else [0]
    for column in range(columns.shape[1]):
        elements = columns[:, column][rows]
        for begin, end in zip(cuts, cuts[1:]):
            part = elements[begin:end]
            cells[int(sorted_keys[begin]), column] = {op: (int(rows[begin + index]) + first, element) for op, (index, element) in
                                                      extrema(part, indices, (0,), part.shape, nan).items()}
    return partial, cells


def _merge_cells(states, indices, nan):
    together, partials = {}, [partial for partial, _ in states if partial is not None]
    for _, some in states:
        for cell, places in some.items():
            together.setdefault(cell, []).append((None, places))
    return (cured.merge(partials) if partials else None,
            {cell: merge_states(some, indices, nan)[1] for cell, some in together.items()})


def _finish_cells(state, ops, indices, options, empty, shape, types):
    """By op an array, or an exception where a cell lacks an answer."""
    (partial, cells), count = state, math.prod(shape[1:])
    rest, answers = [op for op in ops if op not in indices], {}
    if rest and count:
        if partial is None:
            nothing = numpy.empty((0, count), empty.dtype)
            more = {"second": nothing} if any(map(_is_paired, rest)) else {}
            partial = cured.partial(nothing, rest, keys=numpy.zeros(0, numpy.int64), groups=shape[0], **more)
        answers = partial.finish(rest, **options)
    made = {}
    for op in ops:
        try:
            if not count:
                found = []
            elif op in indices:
                found = [finish_state((None, cells.get((group, column), {})), [op], [op], {})[op] for group in range(shape[0]) for column in range(count)]
            else:
                found = answers[op]
            made[op] = numpy.asarray(found, types[op]).reshape(shape)
        except (ValueError, OverflowError) as error:
            said = str(error)  # which names a number among the answers of these columns
            made[op] = type(error)("%s by key: %s" % (op, said.partition(": ")[2] if said.startswith("output ") else said))
    return made


def groups_of(keys):
    """How many groups keys of NumPy or Dask want: up to the greatest key. Dask's are computed."""
    keys = dask.array.asanyarray(keys)
    return max(0, 1 + int(cured.max(keys, initial=-1))) if keys.dtype.kind in "iu" else 0  # others are refused with the call


def _checked_groups(groups, columns, indices):
    if not hasattr(groups, "__index__"):
        raise TypeError("groups: an integer is wanted, not %r" % type(groups))
    groups = operator.index(groups)
    if not 0 <= groups < 1 << 63:
        raise ValueError("groups: must be 0 to 2^63 - 1")
    if indices and groups * columns > MOST_INDICES:
        raise ValueError("groups: %d of %d columns are more than %d answers of %s in a block, the limit: reduce some groups at a time (drop=True)"
                         % (groups, columns, MOST_INDICES, " and ".join(indices)))
    return groups


def _by_key(x, ops, keys, groups, drop, nan, options, split_every, second=None):
    if groups is None and dask.is_dask_collection(keys):
        raise TypeError("groups: how many there are must be said where keys are not computed yet: they are 0 to groups - 1")
    groups = groups_of(keys) if groups is None else groups
    keys = dask.array.asanyarray(keys)
    if keys.ndim != 1 or keys.dtype.kind not in "iu" or x.ndim == 0 or keys.shape[0] != x.shape[0]:
        raise ValueError("keys: an integer for each row is wanted: x has the shape %r, keys %r of %s" % (x.shape, keys.shape, keys.dtype))
    if _misses(keys):
        raise ValueError("keys: without a mask: where= says which elements count")
    ranked = [op for op in ops if _is_ranked(op)]
    if ranked:
        raise NotImplementedError("ops: op %s has no partial by key, so no chunk has a part of it: cured.%s(x, keys=...) reads whole columns"
                                  % (ranked[0], ranked[0]))
    one = numpy.ones((1,) * x.ndim, x.dtype)  # which raises what is wrong with ops and options
    found = cured.reduce(one, ops, keys=numpy.zeros(1, numpy.int64), groups=1, **options, **({} if second is None else {"second": one}))
    types = {op: found[op].dtype for op in ops}
    indices = [op for op in ops if _is_index(op)]
    rest = [op for op in ops if op not in indices]
    groups = _checked_groups(groups, math.prod(max(sizes, default=0) for sizes in x.chunks[1:]), indices)
    options = options_of_finish(ops, indices, options)
    firsts = [0, *itertools.accumulate(x.chunks[0])]
    keys = keys.rechunk((x.chunks[0],)).to_delayed()
    fold, merge, finish = (dask.delayed(function, pure=True) for function in (_cells, _merge_cells, _finish_cells))
    blocks, others, grid = x.to_delayed(), None if second is None else second.to_delayed(), [range(len(sizes)) for sizes in x.chunks[1:]]
    finished = numpy.empty([len(sizes) for sizes in grid] or (1,), object)
    for at in itertools.product(*grid):
        states = [fold(blocks[(row, *at)], keys[row], rest, indices, first, groups, drop, nan, None if others is None else others[(row, *at)])
                  for row, first in zip(range(len(x.chunks[0])), firsts)]
        shape = (groups, *(sizes[k] for sizes, k in zip(x.chunks[1:], at)))
        state = _tree(states, lambda some: merge(some, indices, nan), split_every)
        finished[at or 0] = (finish(state, ops, indices, options, one[:0].ravel(), shape, types), shape)
    return Result({op: _assembled(finished, op, types[op]) for op in ops})


def _assembled(finished, op, dtype):
    pick = dask.delayed(_answers, pure=True)
    arrays = numpy.empty(finished.shape, object)
    for at, (answers, shape) in numpy.ndenumerate(finished):
        arrays[at] = dask.array.from_delayed(pick(answers, op), shape, dtype)
    for axis in range(arrays.ndim, 0, -1):  # blocks of the columns, the last axis first
        few = numpy.empty(arrays.shape[:-1], object)
        for at in numpy.ndindex(few.shape):
            few[at] = dask.array.concatenate(list(arrays[at]), axis=axis) if len(arrays[at]) > 1 else arrays[at][0]
        arrays = few
    return arrays[()]


# ---- What is called ----

def _masked(x, where):
    """The array without what where leaves out."""
    if where is None or where is True:
        return x
    where = dask.array.asanyarray(where)
    if _misses(where):  # broadcast_to forgets a mask
        where = dask.array.ma.filled(where, False)
    if where.dtype != bool:
        raise TypeError("where: a bool array is wanted, not one of %s" % where.dtype)
    missing = ~dask.array.broadcast_to(where, x.shape)
    if _misses(x):  # an element counts where neither leaves it out
        x, missing = dask.array.ma.getdata(x), missing | dask.array.ma.getmaskarray(x)
    return dask.array.ma.masked_array(x, missing)


def _checked(x, where, split_every):
    x = dask.array.asanyarray(x)
    if any(math.isnan(size) for sizes in x.chunks for size in sizes):
        raise ValueError("x has chunks of unknown size: call x.compute_chunk_sizes() first")
    if split_every < 2:
        raise ValueError("split_every is %r, must be 2 or more" % split_every)
    if x.dtype.kind == "c":
        raise TypeError("x: complex numbers are reduced as x.real and x.imag here; cured.reduce(x, ops) takes them as they are, and reads them in blocks")
    return _masked(x, where)


def reduce(x, ops, axis=None, *, keepdims=False, dtype=None, ddof=0, nan="propagate", overflow="error", where=None, keys=None,
           groups=None, drop=False, min_count=0, second=None, split_every=16, address=None, **others):
    """Answers of `ops` over a dask array: exact, rounded once, the same bits under any chunking.

    axis None gives one delayed Result. An axis, or a tuple of them, gives a Result of dask arrays; chunks are joined along it
    first. With keepdims axis None gives such arrays, too. where is a bool array that broadcasts: only these elements count. keys gives each
    row, an index of the first axis, its group, and there is an array of (groups, ...) for each op. Fewer elements than min_count have no
    answer: NaN, and of integers a ValueError when it is computed. second is the other array of dot, sqdist and average. What is wrong with the
    arguments is said here, not when it is computed. Chunks are folded in the worker's own process or, with `address` ("unix:/run/cured/cured.sock", "auto:"), by the daemon
    that a worker finds there. Partials are merged in groups of `split_every`.
    """
    refuse(others)
    least = least_of(0 if min_count is None else min_count)
    if second is not None:
        where, second = without_lists({"where": where, "second": second}).values()
        x, second, where = paired(_checked(x, None, split_every), second, where)
    if least and any(map(_is_ranked, _names(ops))):
        raise TypeError("min_count: a quantile takes none")
    if least:
        return with_least(x, _names(ops), axis, least, {
            "keepdims": keepdims, "dtype": dtype, "ddof": ddof, "nan": nan, "overflow": overflow, "where": where, "keys": keys, "groups": groups,
            "drop": drop, "second": second, "split_every": split_every, "address": address})
    where, keys = without_lists({"where": where, "keys": keys}).values()
    ops, x = _names(ops), _checked(x, where, split_every)
    second = second if second is None else second.rechunk(x.chunks)
    options = {}
    if dtype is not None:
        options["dtype"] = dtype
    if ddof:
        options["ddof"] = ddof
    if nan != "propagate":
        options["nan"] = nan
    if overflow != "error":
        options["overflow"] = overflow
    if keys is not None:
        if axis not in (None, 0) or keepdims or address is not None:
            raise TypeError("keys: not with axis, keepdims and address: rows are reduced, by the workers themselves")
        return _by_key(x, ops, keys, groups, drop, nan, options, split_every, second)
    if groups is not None or drop:
        raise TypeError("%s: only with keys" % ("drop" if groups is None else "groups"))
    types = _types(x, ops, options, second)
    if "digest" in ops and _misses(x):  # its refusal is that of other arrays
        cured.digest(numpy.ma.masked_array(numpy.ones(1, x.dtype), [False]))
    if axis is not None:
        return _along(x, ops, axis, keepdims, types, options, address, second=second)
    result = _whole(x, ops, nan, options, split_every, address, second)
    return _keep(result, x, types) if keepdims else result


def quantile(x, q, axis=None, *, method="linear", keepdims=False, dtype=None, nan="propagate", where=None, split_every=16, address=None, **others):
    """The quantiles of shares q, exact and rounded once. axis None gives a delayed number, or array of q's shape; an axis, or a tuple of
    them, a dask array whose first axes are q's."""
    refuse(others, of_quantile=True)
    x, q = _checked(x, without_lists({"where": where})["where"], split_every), shares(q)
    options = {"method": method, "nan": nan, **({} if dtype is None else {"dtype": dtype})}
    one = cured.quantile(numpy.ones((1,) * x.ndim, x.dtype), q.ravel(), axis=tuple(range(x.ndim)), keepdims=True, **options)
    if axis is None and not keepdims:
        found = [_search(x, Search(_element_type(x), q.ravel()[at:at + AT_ONCE], **options), split_every, address)
                 for at in range(0, q.size, AT_ONCE)]
        return dask.delayed(_shaped, pure=True)(found, q.shape, one.dtype)
    axes = tuple(range(x.ndim)) if axis is None else axis
    flat = q.ravel() if q.size else numpy.array([0.5])  # of no share one, whose answers say the shape
    names = range(flat.size)
    rows = _along(x, names, axes, keepdims, dict.fromkeys(names, one.dtype), {"q": flat, **options}, address, _quantile_rows)
    if q.ndim == 0:
        return rows[0]
    return dask.array.stack([rows[k] for k in names])[:q.size].reshape(q.shape + rows[0].shape)


def _shaped(searches, shape, dtype):
    answers = numpy.array([answer for search in searches for answer in search.answers], dtype).reshape(shape)
    return answers if shape else answers.item()


def __getattr__(name):
    found = None if name.startswith("_") else function(name)
    if found is None:
        raise AttributeError("module 'cured.dask' has no attribute '%s'" % name)
    return found
