"""What stands beside an array (where=, keys=, offsets=, second=) and lies in a container or a column: read whole, where an array in memory is
beside it. A container beside a container is read in its blocks (_stores.beside)."""
import math

import numpy

from . import _arrow, _blocks, _cured
from ._adapt import fits, is_arrow, is_stored
from ._bins import no_file, whole
from ._lists import misses

NAMES = ("where", "keys", "offsets", "second")
LISTED = ("where", "keys", "offsets")
MISSES = {
    "keys": "keys: without a mask: where= says which elements count",
    "offsets": "offsets: without a mask: each is where a segment ends and the next begins",
    "second": "second: elements of it are missing: where= says which pairs count",
}


def _too_large(store):
    """The bytes of a container that has more than are read, and which of them are counted: of a stream no piece is fetched behind. Else (None, "")."""
    if isinstance(store, _arrow.ArrowStore):
        found = store.fetch(_blocks.MOST_BYTES)
        return (None, "") if found is None else (found[0], " (of its first %d pieces)" % found[1])
    size = math.prod(store.shape) * store.dtype.itemsize
    return (size, "") if size > _blocks.MOST_BYTES else (None, "")


def _has_masked(given):
    """Whether an array in a list, or in the lists in it, may have a mask."""
    kinds = set(map(type, given))
    nested = {kind for kind in kinds if issubclass(kind, (list, tuple))}
    masked = {kind for kind in kinds if hasattr(kind, "mask") and hasattr(kind, "compressed") or is_stored(kind) and not is_arrow(kind)}
    return bool(nested or masked) and any(type(one) in nested and _has_masked(one) or type(one) in masked and misses(one) for one in given)


def _leaves(given):
    for one in given:
        if isinstance(one, (list, tuple)):
            yield from _leaves(one)
        else:
            yield one


def _as_they_are(array, given, name):
    """The array of a list, of whose integers NumPy rounded none. TypeError where there is no such array."""
    if array.dtype.kind not in "fcO":
        return array
    if array.size and all(isinstance(leaf, int) for leaf in _leaves(given)):
        if min(_leaves(given)) < 0 or max(_leaves(given)) >= 1 << 64:
            raise TypeError("%s: the list's integers have no type of 64 bits" % name)
        return numpy.asarray(given, numpy.uint64)
    if array.dtype.kind != "O":
        for leaf in _leaves(given):
            if isinstance(leaf, (int, numpy.integer)) and not fits(leaf):
                raise TypeError("%s: the integer %d stands among floats, and no float has its value; numpy.asarray(a) rounds it" % (name, leaf))
    for leaf in _leaves(given) if array.dtype.kind == "O" else ():
        if not isinstance(leaf, (int, float, complex, numpy.number)):
            raise TypeError("%s: dtype object is not reduced: the list has a %s, which is no bool, int, float or complex number" % (name, type(leaf).__name__))
    return array


def listed(arguments):
    """NumPy's array of a list, a tuple or a range of Python's numbers, as NumPy's own functions make one. What stands beside an array and is of
    nothing has the type that is wanted."""
    name, given = arguments
    try:
        masked = not isinstance(given, range) and _has_masked(given)  # NumPy forgets the masks
        array = None if masked else numpy.asarray(given)
    except MemoryError:
        raise
    except Exception as error:  # of an array in the list, too, which NumPy asks for its elements
        raise (TypeError if isinstance(error, TypeError) else ValueError)("%s: the list is no array (%s)" % (name, error)) from None
    if masked:
        raise TypeError("%s: a list has no masked arrays: numpy.ma.stack makes one array of them" % name)
    if name in LISTED:
        return array.astype(bool if name == "where" else numpy.int64) if array.size == 0 and array.dtype == float else array
    return array if isinstance(given, range) else _as_they_are(array, given, name)


def without_lists(options):
    """The options, with arrays in the place of lists that stand beside an array."""
    return {name: listed((name, value)) if name in LISTED and isinstance(value, (list, tuple, range)) else value for name, value in options.items()}


def gathered(arguments):
    """A NumPy array of what a container holds. A mask that misses elements leaves these out. What lies on a GPU stays there."""
    name, given = arguments
    no_file(given, name)
    given = _arrow.opened(given)
    if isinstance(given, _arrow.OnGpu):
        if len(given.columns) != 1:
            raise TypeError("%s: an Arrow array of %d chunks: pass one of one chunk" % (name, len(given.columns)))
        return given.array
    try:
        from ._stores import store_of
        store = store_of(given)
    except (TypeError, ValueError) as error:
        raise type(error)("%s: %s" % (name, error)) from None
    size, of = _too_large(store)
    if size is not None:
        of += ", as of keys and offsets beside a container" if name in ("keys", "offsets") else ""
        raise ValueError("%s: the container has %d bytes, and beside an array in memory %d are read at most%s: reduce parts of both, or pass an "
                         "array that is mapped" % (name, size, _blocks.MOST_BYTES, of))
    array, missing = whole(store if isinstance(store, _arrow.ArrowStore) else given, name)
    if missing is None or not missing.any():
        return array
    if name in MISSES:
        raise ValueError(MISSES[name])
    if array.dtype != bool:  # the extension refuses such a mask
        return array
    return array & ~missing


def mask_of(where):
    """A mask as Dask takes it: of what is no container NumPy's array, which leaves out what it misses."""
    if is_arrow(type(where)):
        return gathered(("where", where))
    if is_stored(type(where)):
        return where
    keep, missing = whole(where, "where")
    return keep if missing is None or keep.dtype != bool else keep & ~missing


def plain(arguments):
    """Of an array that has a mask, or keys that lie with gaps or in another byte order, what is read: in one piece, and nothing is missing."""
    name, given = arguments
    array, missing = whole(given, name)
    if missing is not None and missing.any():
        raise ValueError(MISSES[name])
    return numpy.ascontiguousarray(array, array.dtype.newbyteorder("=")) if name == "keys" else array


def in_memory(options):
    """The options, with those that are looked at as NumPy's arrays."""
    return {name: _looked_at(name, value) if name in NAMES else value for name, value in options.items()}


def _looked_at(name, value):
    if isinstance(value, _cured.File) or is_stored(type(value)):
        return gathered((name, value))
    return value if name == "where" or value is None or type(value) is numpy.ndarray else plain((name, value))


def kept(options, array):
    """The options of a call on an array, or a list of arrays, that is made several times: each container is read once. Beside a container, which
    is read in blocks, Arrow's are kept alone: their streams may come once only."""
    arrays = array if isinstance(array, (list, tuple)) else [array]
    blocks = any(is_stored(type(one)) for one in arrays)
    wanted = is_arrow if blocks else is_stored
    return {name: (_arrow.kept(value) if blocks else gathered((name, value))) if name in NAMES and wanted(type(value)) else value
            for name, value in options.items()}
