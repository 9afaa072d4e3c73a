"""States of parts that know their place: a partial of what needs none, and where the first extrema are. They merge in any order.

cured.dask keeps them for its chunks, _chunks.py for the blocks of a container. Arrays are NumPy's, masked ones too.
"""
import numpy

from . import _cured
from ._result import Result


def extrema(chunk, ops, start, shape, nan):
    """Of a chunk that begins at `start` in an array of `shape`, the first extremum of each op: {op: (its index in the whole, in C order,
    its element)}. NaN is an extremum, as cured has it."""
    found = {}
    for op in ops:
        try:
            at = getattr(_cured, op)(chunk, nan=nan) if chunk.dtype.kind == "f" else getattr(_cured, op)(chunk)
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
    return candidates[getattr(_cured, op)(elements, **options)]


def merge(states, indices, nan):
    """States are pairs: a partial or None, and what extrema() found."""
    partials = [state[0] for state in states if state[0] is not None]
    best = {op: _best([state[1] for state in states], op, nan) for op in indices}
    return (_cured.merge(partials) if partials else None), {op: place for op, place in best.items() if place is not None}


def options_of_finish(ops, indices, options):
    """The options that the partial's ops take: NaNs of indices are skipped where extrema() looks for them."""
    if indices and not set(ops) - set(indices) - {"count_nan"}:
        return {name: value for name, value in options.items() if name != "nan"}
    return options


def finish(state, ops, indices, options):
    partial, places = state
    answers = dict.fromkeys(ops)
    if partial is not None:
        answers.update(partial.finish([op for op in ops if op not in indices], **options)._answers)
    for op in indices:
        answers[op] = places[op][0] if op in places else ValueError("%s: there is no element to find" % op)
    return Result(answers)
