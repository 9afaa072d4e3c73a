"""Medians and quantiles of elements that lie in several places: lists of arrays, chunks, files, ranks. Each read of a search counts, in every
place, how many elements have which bits; the counts add up, and after the last read the answers are those of the whole."""
import numpy

from . import _cured

AT_ONCE = 32  # shares that are searched for in the same reads
STEP = 1 << 18  # elements that are cast at once
NUMPY = {"bool": "?", "u8": "u1", "i8": "i1", "f16": "f2", "f32": "f4", "f64": "f8",
         **{kind + str(8 * size): kind + str(size) for kind in "iu" for size in (2, 4, 8)}}


def shares(q):
    q = numpy.asarray(q, numpy.float64)
    if not numpy.all((q >= 0) & (q <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return q


class Search:
    """A search for the quantiles of elements of a type, in reads of all parts of an array:

        search = cured.Search("f4", [0.5, 0.99])
        while search.asked:
            search.next(sum(search.count(part) for part in parts))
        search.answer                         # of q's shape

    Parts count by themselves, anywhere, by the bytes `asked`, and counts are added in any order: by an Allreduce of uint64, say. method,
    nan and dtype as in cured.quantile. A search can be pickled.
    """

    def __init__(self, elements, q=0.5, *, method="linear", nan="propagate", dtype=None, _ops=None):
        self._q = shares(q)
        if self._q.size > AT_ONCE:
            raise ValueError("q: %d shares, the limit of a search is %d" % (self._q.size, AT_ONCE))
        if nan not in ("propagate", "skip"):
            raise ValueError("nan: %r, must be 'propagate' or 'skip'" % (nan,))
        self._made, self._counts = (elements, self._q, method, nan, dtype, _ops), []
        ops = _ops or ["quantile"] * self._q.size
        self._search = _cured._search(elements, ops, self._q.tobytes() if _ops is None else None, method, nan == "skip", dtype)

    def __reduce__(self):
        return _again, (self._made, self._counts)

    @property
    def asked(self):
        """What the next read counts: bytes for count_parts. None: the search is over."""
        return _cured._search_asked(self._search)

    def count(self, part, *, where=True, client=None):
        """The counts of one part, an array of uint64. part and where: as of cured.quantile."""
        return count_part(self.asked, part, where=where, client=client)

    def next(self, counts):
        """The read is over: counts is the sum of those of all parts."""
        counts = numpy.require(counts, numpy.uint64, ["C", "A"])  # what was sent may lie anywhere
        _cured._search_next(self._search, counts)
        self._counts.append(counts)

    @property
    def answers(self):
        return _cured._search_values(self._search)

    @property
    def answer(self):
        """A number, or an array of q's shape."""
        answers = numpy.array(self.answers).reshape(self._q.shape)
        return answers if answers.ndim else answers.item()


def _again(made, counts):
    elements, q, method, nan, dtype, ops = made
    search = Search(elements, q, method=method, nan=nan, dtype=dtype, _ops=ops)
    for each in counts:
        search.next(each)
    return search


def count_part(asked, part, *, where=True, client=None):
    """The counts that a search asks (Search.asked) of one part, which has no need of the search itself."""
    if not asked:
        raise ValueError("asked: the search is over")
    return _cured.median(part, _asked=asked, where=where, client=client)


def cast(array, name):
    """An array's elements, which are all in a wider type, in pieces of that type."""
    if not isinstance(array, numpy.ndarray) or name not in NUMPY:
        raise TypeError("a search of arrays of several types takes NumPy's: cast the elements of %s to %s first" % (type(array).__name__, name))
    array = array[None] if array.ndim == 0 else array
    step = max(1, STEP * len(array) // max(1, array.size))
    for at in range(0, max(1, len(array)), step):
        yield array[at:at + step].astype(NUMPY[name])


def of_list(arrays, search, name, client):
    """The answers of a search among the elements of all arrays, in order; name: of the type that holds them all."""
    types = [_cured._type_of(array) for array in arrays]
    while search.asked:
        counts = 0
        for array, own in zip(arrays, types):
            for piece in (array,) if own == name else cast(array, name):
                counts = counts + search.count(piece, client=client)
        search.next(counts)
    return search.answers


def answers_of_list(arrays, ops, q, options, client):
    """A list of the answers of ops by rank, over a list of arrays as one. q: a flat array of shares; None: each op's own."""
    for option in set(options) - {"dtype", "nan", "method"}:
        if options[option] not in (0, "error"):  # these say nothing
            raise ValueError("%s: none of the ops takes it" % option)
    options = {name: options[name] for name in ("dtype", "nan", "method") if name in options}
    from ._arrow import kept
    arrays = [kept(array) for array in arrays]
    name = _cured._common_type([_cured._type_of(array) for array in arrays])
    if q is None:
        return of_list(arrays, Search(name, _ops=ops, **options), name, client)
    return [answer for at in range(0, q.size, AT_ONCE)
            for answer in of_list(arrays, Search(name, q[at:at + AT_ONCE], **options), name, client)]
