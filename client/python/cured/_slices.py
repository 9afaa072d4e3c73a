"""Answers of containers (_chunks.py) along axes, by key and by offsets: each block holds whole slices, or, where these are too long for
memory, each answer has a partial of its own."""
import math
import operator

import numpy

from . import _blocks, _cured
from ._adapt import axis_error
from ._blocks import ahead, boxes, extents, start_of
from ._cured import _is_index, _is_ordered, _is_ranked
from ._places import extrema, finish, merge, options_of_finish


def axes_of(axis, ndim):
    """Axes as rising numbers; None: no axis is named."""
    if axis is None:
        return None
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


def with_axes(answer, op, dtype, shape):
    """Answers of a whole array as an array of the type of answers along axes; OverflowError where one does not fit."""
    if isinstance(answer, str):  # a digest
        answer = (int(answer[4:20], 16), int(answer[20:36], 16), int(answer[37:]))
    try:
        return numpy.array(answer, dtype).reshape(shape)
    except OverflowError:
        return OverflowError("the %s does not fit %s" % (op, dtype))


def kept(call, answers, types):
    """The answers of a whole array with its axes, each of one element."""
    lead, ndim = (call.q.shape if call.q is not None else ()), call.store.ndim
    return [answer if isinstance(answer, Exception) else with_axes(answer, op, dtype, lead + (1,) * ndim)
            for op, answer, dtype in zip(call.ops, answers, types)]


def _is_too_large(shape, unit, size):
    """Whether a block of these extents is too long for memory. An array without elements has one block, which has none."""
    return 0 not in shape and math.prod(unit) * size > _blocks.MOST_BYTES


def along(call, axes, types):
    """A list of arrays, or an exception in the place of one."""
    shape, size = call.store.shape, call.store.dtype.itemsize
    unit = extents(shape, call.store.chunks, size, whole=axes)
    if axes and _is_too_large(shape, unit, size):
        return _by_answer(call, axes, types)
    lead = call.q.shape if call.q is not None else ()
    wide = lead + tuple(1 if k in axes else n for k, n in enumerate(shape) if call.keepdims or k not in axes)

    def place(box):
        cuts = tuple(slice(0, 1) if k in axes else cut for k, cut in enumerate(box) if call.keepdims or k not in axes)
        return (slice(None),) * len(lead) + cuts
    return _assembled(call, boxes(shape, unit), place, lambda _: wide, axis=axes, keepdims=call.keepdims)


def _assembled(call, some, place, shape_of, **options):
    """Arrays that the answers of blocks are put into. place(box): where; shape_of(a block's answer): how large they are."""
    wholes = [None] * len(call.ops)
    with ahead(call.read, some) as blocks:
        for box, (block, other) in blocks:
            for i, answer in enumerate(call.ask(block, other, **options)):
                if isinstance(wholes[i], Exception):
                    continue
                if isinstance(answer, Exception):
                    wholes[i] = type(answer)("%s (in the block that begins at %s)" % (answer, list(start_of(box))))
                    continue
                answer = numpy.asarray(answer)
                if wholes[i] is None:
                    wholes[i] = numpy.empty(shape_of(answer), answer.dtype)
                wholes[i][place(box)] = answer
    return wholes


def _rows(block, stay, axes):
    """The elements of each answer, as rows of a matrix."""
    turned = block.transpose(*stay, *axes)
    return turned.reshape(math.prod(turned.shape[:len(stay)]), math.prod(turned.shape[len(stay):]))


def _box(stay, place, axes, cuts):
    """A box of its cuts along the axes that stay and along those that are reduced."""
    box = dict(zip(stay, place))
    box.update(zip(axes, cuts))
    return tuple(box[k] for k in range(len(box)))


def _states(call, rest, indices, axes, stay, place, unit):
    """The state of each answer of a place, which the blocks along the slices add to."""
    shape, states = call.store.shape, None
    lengths = [shape[k] for k in axes]
    along_them = boxes(lengths, [unit[k] for k in axes])
    with ahead(call.read, (_box(stay, place, axes, cuts) for cuts in along_them)) as some:
        for box, (block, other) in some:
            start = [box[k].start for k in axes]
            sides = [None] * len(_rows(block, stay, axes)) if other is None else _rows(other, stay, axes)
            found = []
            for row, side in zip(_rows(block, stay, axes), sides):
                part = call.partial(row, side, rest) if rest else None
                turned = row.reshape([box[k].stop - box[k].start for k in axes])
                found.append((part, extrema(turned, indices, start, lengths, call.nan())))
            states = found if states is None else [merge(pair, indices, call.nan()) for pair in zip(states, found)]
    return states


def _finished(state, ops, indices, options):
    """The answers of one state by op. A ddof that is no whole number comes with one op (_fraction.py)."""
    if isinstance(options.get("ddof"), float):
        from ._fraction import of_partial
        return {op: of_partial(state[0], op, options["ddof"], options) for op in ops}
    return finish(state, ops, indices, options)._answers


def _by_answer(call, axes, types):
    """Where whole slices are too long for memory: a partial for each answer."""
    shape, ops = call.store.shape, call.ops
    if call.q is not None or call.initial is not None or any(
            _is_ranked(op) or op == "digest" or (op == "prod" and _is_ordered(op, call.store.dtype.newbyteorder("=").name)) for op in ops):
        raise ValueError("axis: the blocks of whole slices along it have more than %d bytes, so quantiles, digests, products of floats and "
                         "initial are not answered: reduce parts of the array, or store it in chunks that are shorter along the other axes"
                         % _blocks.MOST_BYTES)
    indices, stay = [op for op in ops if _is_index(op)], [k for k in range(len(shape)) if k not in axes]
    rest, options = [op for op in ops if op not in indices], options_of_finish(ops, indices, call.fold)
    unit = extents(shape, call.store.chunks, call.store.dtype.itemsize)
    wholes = [numpy.empty([shape[k] for k in stay], dtype) for dtype in types]
    for place in boxes([shape[k] for k in stay], [unit[k] for k in stay]):
        states = _states(call, rest, indices, axes, stay, place, unit)
        answers = [_finished(state, ops, indices, options) for state in states]
        for i, op in enumerate(ops):
            wrong = next((answer[op] for answer in answers if isinstance(answer[op], Exception)), None)
            if isinstance(wholes[i], Exception) or wrong is not None:
                wholes[i] = wrong if wrong is not None else wholes[i]
                continue
            made = with_axes([answer[op] for answer in answers], op, types[i], [cut.stop - cut.start for cut in place])
            if isinstance(made, Exception):
                wholes[i] = made
            else:
                wholes[i][place] = made
    return [numpy.expand_dims(whole, axes) if call.keepdims and not isinstance(whole, Exception) else whole for whole in wholes]


def _has_partial_by_key(one, second, ops):
    try:
        _cured.partial(one, ops, keys=numpy.zeros(len(one), numpy.int64), groups=1, **({} if second is None else {"second": second}))
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


def by_more(call, axes):
    """By key or by offsets. None: all rows are too many for memory, and their ops have partials by key."""
    options = dict(call.more, **({} if axes is None else {"axis": call.axis}), **({"keepdims": True} if call.keepdims else {}))
    shape, size = call.store.shape, call.store.dtype.itemsize
    if "offsets" in options:
        return _segments(call, options)
    rows = (0,) if shape else ()
    unit = extents(shape, call.store.chunks, size, whole=rows)
    if _is_too_large(shape, unit, size):
        one, second = call.one()
        nobody = options
        if "keys" in options:
            nobody = dict(options, keys=numpy.zeros(1, numpy.asarray(options["keys"]).dtype), groups=1)
        call.ask(one, second, **nobody)  # raises what is wrong with the options
        if _has_partial_by_key(one, second, call.ops):
            return None
        raise ValueError("keys: the blocks of all rows have more than %d bytes, so %s by key is not answered: reduce parts of the columns%s"
                         % (_blocks.MOST_BYTES, " or ".join(call.ops), "" if any(map(_is_ranked, call.ops)) else ", or use cured.dask"))
    lead = 1 + (0 if call.q is None else call.q.ndim)
    return _assembled(call, boxes(shape, unit), lambda box: (slice(None),) * lead + box[1:], lambda answer: answer.shape[:lead] + shape[1:],
                      **options)


def _segments(call, options):
    """By offsets: segments that lie side by side are read together."""
    from ._segments import as_offsets
    size, shape, given = call.store.dtype.itemsize, call.store.shape, options["offsets"]
    if len(shape) != 1 or len(options) > 1 or call.initial is not None:
        call.ask(*call.one(), **dict(options, offsets=[0, 1]))
        raise TypeError("offsets: they name segments of an array of one axis, and go with no axis")
    offsets = as_offsets(given).astype(numpy.int64, casting="unsafe")
    steps = numpy.diff(offsets)
    if not offsets.size or (steps < 0).any() or offsets[0] < 0 or offsets[-1] > shape[0]:
        call.ask(*(None if one is None else numpy.broadcast_to(one, shape) for one in call.one()), offsets=given)
        raise ValueError("offsets: they do not fall, and are 0 to %d" % shape[0])
    if call.strict:  # the array's other elements are looked at, too
        most = max(1, _blocks.BLOCK_BYTES // size)
        for begin, end in ((0, int(offsets[0])), (int(offsets[-1]), shape[0])):
            for at in range(begin, end, most):
                call.read((slice(at, min(end, at + most)),))
    if not len(steps):
        return call.ask(*(None if one is None else one[:0] for one in call.one()), offsets=offsets - offsets)
    if int(steps.max()) * size > _blocks.MOST_BYTES:
        raise ValueError("offsets: segment %d has more than %d bytes, the limit in a container: reduce it by itself"
                         % (int(steps.argmax()), _blocks.MOST_BYTES))
    firsts, most = [0], max(1, _blocks.BLOCK_BYTES // size)
    while firsts[-1] < len(steps):
        at = firsts[-1]
        firsts.append(max(at + 1, int(numpy.searchsorted(offsets, offsets[at] + most, "right")) - 1))
    some = zip(firsts, firsts[1:])
    parts, found = [(slice(int(offsets[a]), int(offsets[b])),) for a, b in zip(firsts, firsts[1:])], []
    with ahead(call.read, parts) as blocks:
        for (a, b), (_, (block, other)) in zip(some, blocks):
            found.append(call.ask(block, other, offsets=offsets[a:b + 1] - offsets[a]))
    wrong = [next((answer for answer in answers if isinstance(answer, Exception)), None) for answers in zip(*found)]
    return [numpy.concatenate(answers, axis=-1) if error is None else error for answers, error in zip(zip(*found), wrong)]
