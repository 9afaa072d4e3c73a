"""Arrow's arrays, streams and columns of batches, by the capsules of any library that hands them out (pyarrow, polars, DuckDB, nanoarrow).

A producer's memory is read where it lies; bitmaps become masks block by block. An array is one container, of its chunks (_chunks.py).
What lies on a GPU is no container, but stands for CUDA tensors: opened() tells which it is.
"""
import bisect
import itertools

import numpy

from . import _blocks, _cured
from ._adapt import CAPSULES, is_arrow, missing_at

NUMPY = {"bits": "?", "u8": "u1", "i8": "i1", "f16": "f2", "f32": "f4", "f64": "f8",
         **{kind + str(8 * size): kind + str(size) for kind in "iu" for size in (2, 4, 8)}}


class Column:
    """A column of a table, a batch or a stream of batches: cured.sum(cured.column(table, "price")). Tables of any library will do that
    hands out Arrow's capsules; name may be a number."""

    __slots__ = ("table", "name")

    def __init__(self, table, name):
        if not any(hasattr(table, method) for method in CAPSULES):
            raise TypeError("column: %s hands out no Arrow capsules (__arrow_c_stream__, __arrow_c_array__)" % type(table).__name__)
        if not isinstance(name, str):
            name.__index__()
        self.table, self.name = table, name

    def __repr__(self):
        return "<cured column %r of %s>" % (self.name, type(self.table).__name__)


def _bits(memory, first, begin, end):
    """Bits as bool, of elements begin to end."""
    at = first + begin
    some = numpy.frombuffer(memory, numpy.uint8)[at // 8:(first + end + 7) // 8]
    return numpy.unpackbits(some, count=at % 8 + end - begin, bitorder="little")[at % 8:].view(bool)


class Piece:
    """One array of a stream: a column as _cured hands it out."""

    __slots__ = ("name", "dtype", "size", "_memory", "_first", "masks")

    def __init__(self, column):
        self.name, self.size, self._memory, self._first, self.masks = column
        self.dtype = numpy.dtype(NUMPY[self.name])

    def read(self, begin, end):
        """Elements begin to end, a masked array where nulls are among them."""
        if begin == end:
            elements = numpy.empty(0, self.dtype)
        elif self.dtype == bool:
            elements = _bits(self._memory, self._first, begin, end)
        else:
            elements = numpy.frombuffer(self._memory, self.dtype, end - begin, (self._first + begin) * self.dtype.itemsize)
        if not self.masks:
            return elements
        missing = ~_bits(*self.masks[0], begin, end)
        for mask in self.masks[1:]:
            missing |= ~_bits(*mask, begin, end)
        return numpy.ma.masked_array(elements, missing)


class ArrowStore:
    """A container (_stores.Store) of one axis. A stream is fetched piece by piece where a call reads it once (pieces()); otherwise all pieces are
    kept until the call ends, and shape, masked and read() know them."""

    ndim, chunks = 1, None

    def __init__(self, producer, column):
        """producer: a column as _cured hands it out, or a stream."""
        self._kept, self._stream, self._column, self._starts = None, None, column, None
        if isinstance(producer, tuple):
            self._kept = [Piece(producer)]
        else:
            self._stream = producer
        self._type = self._kept[0].name if self._kept else self._stream.type(column)
        self.dtype = numpy.dtype(NUMPY[self._type])

    def pieces(self):
        """All pieces, once: each lives as long as its caller has it."""
        if self._kept is not None:
            yield from self._kept
            return
        stream, self._stream = self._stream, None
        if stream is None:
            raise RuntimeError("the Arrow stream has been read: it comes once")
        while (column := stream.next(self._column)) is not None:
            if not isinstance(column, tuple):
                raise TypeError("the Arrow stream gave an array on a GPU behind one of host memory: ask for each by itself")
            piece = Piece(column)
            if piece.dtype != self.dtype:
                raise TypeError("the Arrow stream gave an array of %s, and says that they are of %s" % (piece.dtype, self.dtype))
            yield piece

    @property
    def is_stream(self):
        return self._stream is not None

    def _all(self):
        if self._kept is None:
            self._kept = list(self.pieces())
        return self._kept

    def fetch(self, most):
        """Keeps all pieces, if their elements have no more bytes than that. Else (how many they have, of how many pieces), of those that have come."""
        kept, size = [], 0
        for piece in self.pieces():
            kept.append(piece)
            size += piece.size * self.dtype.itemsize
            if size > most:
                return size, len(kept)
        self._kept = kept
        return None

    @property
    def shape(self):
        return (sum(piece.size for piece in self._all()),)

    @property
    def size(self):
        return self.shape[0]

    @property
    def masked(self):
        return any(piece.masks for piece in self._all())

    def _cuts(self):
        """Runs of elements that end where a piece does, and hold no more than a block: (number of the first, piece, begin, end)."""
        at, most = 0, max(1, _blocks.BLOCK_BYTES // self.dtype.itemsize)
        for piece in self.pieces():
            for begin in range(0, piece.size, most):
                yield at + begin, piece, begin, min(piece.size, begin + most)
            at += piece.size
        if at == 0:
            yield 0, Piece((self._type, 0, None, 0, ())), 0, 0

    def boxes(self, in_order=False, whole=()):
        """As of a Store."""
        self._all()
        return [(slice(at, at + end - begin),) for at, _, begin, end in self._cuts()]

    def stream(self):
        """(box, elements) of each piece, once."""
        for at, piece, begin, end in self._cuts():
            yield (slice(at, at + end - begin),), piece.read(begin, end)

    def read(self, box):
        (cut,), parts, pieces = box, [], self._all()
        if self._starts is None:
            self._starts = [0, *itertools.accumulate(piece.size for piece in pieces)]
        for i in range(max(0, bisect.bisect_right(self._starts, cut.start) - 1), len(pieces)):
            at = self._starts[i]
            if at >= cut.stop:
                break
            begin, end = max(cut.start, at), min(cut.stop, at + pieces[i].size)
            if begin < end:
                parts.append(pieces[i].read(begin - at, end - at))
        if not parts:
            return numpy.empty(0, self.dtype)
        return parts[0] if len(parts) == 1 else numpy.ma.concatenate(parts) if self.masked else numpy.concatenate(parts)


def _given(producer, column):
    """What a producer hands out: a column, of host memory or of a GPU, or a stream. Of an array on a device its own memory is asked for:
    to hand it out otherwise, some libraries would copy it."""
    if hasattr(producer, "__arrow_c_device_array__"):
        return _cured._arrow_array(*producer.__arrow_c_device_array__(), column, True)
    if hasattr(producer, "__arrow_c_array__"):
        return _cured._arrow_array(*producer.__arrow_c_array__(), column, False)
    if hasattr(producer, "__arrow_c_device_stream__"):
        return _cured._arrow_stream(producer.__arrow_c_device_stream__(), True)
    return _cured._arrow_stream(producer.__arrow_c_stream__(), False)


class OnGpu:
    """The columns of one array in the memory of GPUs, in their order. dtype: NumPy's."""

    __slots__ = ("columns", "dtype")

    def __init__(self, columns, dtype):
        self.columns, self.dtype = columns, dtype

    @property
    def array(self):
        """What the extension's functions take."""
        return self.columns[0] if len(self.columns) == 1 else self.columns or numpy.empty(0, self.dtype)

    @property
    def masked(self):
        return any(column.masked for column in self.columns)

    @property
    def size(self):
        return sum(column.size for column in self.columns)


def opened(producer):
    """Of what hands out Arrow's capsules an ArrowStore, or OnGpu; other arrays as they are. A stream begins, and what lies on GPUs is fetched."""
    if isinstance(producer, (ArrowStore, OnGpu)) or not is_arrow(type(producer)):
        return producer
    name = producer.name if isinstance(producer, Column) else None
    given = _given(producer.table if isinstance(producer, Column) else producer, name)
    if isinstance(given, _cured._ArrowDevice):
        return OnGpu([given], numpy.dtype(NUMPY[given.type]))
    if isinstance(given, tuple) or not given.on_gpu:
        return ArrowStore(given, name)
    columns = list(iter(lambda: given.next(name), None))
    if not all(isinstance(column, _cured._ArrowDevice) for column in columns):
        raise TypeError("the Arrow stream says that its arrays lie on a GPU, and gave one of host memory")
    return OnGpu(columns, numpy.dtype(NUMPY[given.type(name)]))


def store_of(producer):
    store = opened(producer)
    if isinstance(store, OnGpu):
        raise TypeError("the Arrow array lies on a GPU, where it goes alone, or beside others of that GPU: pass a copy on the host")
    return store


def kept(array):
    """What may be reduced several times: a producer's stream may come once only, so that its pieces are kept."""
    store = opened(array)
    if isinstance(store, ArrowStore):
        store._all()
    return store


BESIDE = ("second", "keys", "offsets")  # options that may be columns, too


def answer_on_gpu(function, on_gpu, client, options):
    """Of a call whose array lies on GPUs: function(array, **options)."""
    options = {name: value for name, value in options.items() if name != "client" or value is not None}
    if client is not None or "client" in options:
        raise TypeError("client: an Arrow array on a GPU is answered in this process: leave client away, or pass a copy on the host")
    nulls = options.pop("nulls", "skip")
    if nulls not in ("skip", "error"):
        raise ValueError("nulls: %r, must be 'skip' or 'error'" % (nulls,))
    if nulls == "error":
        at = 0
        for column in on_gpu.columns:
            if column.masked and _cured.count(column) != column.size:
                raise missing_at([at + _cured.argmin(column.lies)])
            at += column.size
    for name in BESIDE:
        beside = opened(options.get(name))
        if isinstance(beside, OnGpu):
            if len(beside.columns) != 1:
                raise TypeError("%s: an Arrow array of %d chunks: pass one of one chunk" % (name, len(beside.columns)))
            options[name] = beside.array
    return function(on_gpu.array, **options)
