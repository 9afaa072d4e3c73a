"""The blocks in which a container is read: which there are, and how the next is read while one is folded.

A block is a tuple of slices. Its extents are multiples of the container's chunks, so that no chunk is read twice, and it has BLOCK_BYTES
where chunks allow that. Two blocks are in memory at a time.
"""
import contextlib
import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy

from ._adapt import missing_at

BLOCK_BYTES = 32 << 20
MOST_BYTES = 1 << 30  # of a block that chunks, or slices along an axis, make larger


def extents(shape, chunks, size, whole=(), in_order=False):
    """The extents of blocks of elements of `size` bytes. Along the axes `whole` a block is as long as the array. in_order: the blocks, one
    after the other, are the elements in C order, and the chunks count along the axis alone that is cut."""
    chunks = [max(1, min(c, n)) for c, n in zip(chunks or [1] * len(shape), shape)]
    unit = [max(1, n) if k in whole else 1 if in_order else c for k, (c, n) in enumerate(zip(chunks, shape))]
    to_cut = [k for k in range(len(unit)) if k not in whole]
    while math.prod(unit) * size > MOST_BYTES:  # a chunk that is larger than memory should be: it is read in pieces
        k = max(to_cut, key=unit.__getitem__, default=None)
        if k is None or unit[k] == 1:
            break
        unit[k] = -(-unit[k] // 2)
    for k in reversed(range(len(shape))):
        others = math.prod(unit) // unit[k] * size
        fit = max(1, BLOCK_BYTES // others)
        step = chunks[k] if in_order else unit[k]
        if fit >= step or (in_order and step * others <= MOST_BYTES):
            fit = max(step, fit // step * step)
        if k not in whole:
            unit[k] = max(unit[k], min(shape[k], fit))
        if unit[k] < shape[k]:
            break
    return unit


def boxes(shape, unit):
    """The blocks of these extents, the last axis first. An array without elements has one."""
    if 0 in shape:
        return iter([tuple(slice(0, n) for n in shape)])
    return itertools.product(*(cuts(n, extent) for n, extent in zip(shape, unit)))


class cuts:
    """The slices of one axis, made as they are asked for."""

    def __init__(self, n, extent):
        self._starts, self._n, self._extent = range(0, n, extent), n, extent

    def __iter__(self):
        return (slice(at, min(self._n, at + self._extent)) for at in self._starts)


def extent_of(box):
    return tuple(cut.stop - cut.start for cut in box)


def start_of(box):
    return tuple(cut.start for cut in box)


def _checked(store, box):
    """The elements of a box. What a container gives must be what it has promised."""
    if 0 in extent_of(box):
        empty = numpy.empty(extent_of(box), store.dtype)
        return numpy.ma.masked_array(empty) if store.masked else empty
    block = store.read(box)
    if block.shape != extent_of(box):
        raise ValueError("the container gave a block of the shape %r where %r was asked for" % (block.shape, extent_of(box)))
    if block.dtype != store.dtype:
        raise TypeError("the container gave elements of %s, and says that they are %s" % (block.dtype, store.dtype))
    return block


def complete(block, start):
    """The block. ValueError where elements are missing from it."""
    missing = numpy.ma.getmask(block)
    if missing is not numpy.ma.nomask and missing.any():
        place = numpy.unravel_index(int(missing.argmax()), missing.shape) if missing.shape else ()
        raise missing_at([int(at) + begin for at, begin in zip(place, start)])
    return block


def reader(store, where, second, strict):
    """A function that gives (elements, those of the second array or None) of a box. Elements are a masked array where some may be missing,
    of the container itself or by `where`. strict: of the container itself none may be."""
    def read(box):
        block = _checked(store, box)
        if strict:
            complete(block, start_of(box))
        if where is not None:
            block = numpy.ma.masked_array(numpy.ma.getdata(block), numpy.ma.getmaskarray(block) | ~numpy.ma.filled(where(box), False))
        other = None if second is None else second(box)
        missing = numpy.ma.getmask(other)
        if missing is not numpy.ma.nomask and missing.any():  # a pair counts where neither of its elements is missing
            if strict:
                complete(other, start_of(box))
            block = numpy.ma.masked_array(numpy.ma.getdata(block), numpy.ma.getmaskarray(block) | missing)
        return block, None if other is None else numpy.asarray(numpy.ma.getdata(other), order="C")
    return read


@contextlib.contextmanager
def ahead(read, some):
    """A generator of (box, what it holds): the next is read by a thread while the caller folds one. However the caller ends (Ctrl-C too), the
    thread is done with the container then."""
    some = iter(some)
    first = next(some, None)
    second = next(some, None)
    if second is None:  # a thread would have nothing to do beside the caller
        yield iter(()) if first is None else iter([(first, read(first))])
        return

    def steps():
        waiting, box = pool.submit(read, first), first
        for following in itertools.chain([second], some):
            found = waiting.result()
            waiting = pool.submit(read, following)
            yield box, found
            del found
            box = following
        yield box, waiting.result()

    with ThreadPoolExecutor(1, "cured-read") as pool:
        yield steps()
