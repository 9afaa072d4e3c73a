"""reduce_parts: one array in several pieces of memory, on several GPUs or anywhere, reduced together."""
import contextlib
import math
from concurrent.futures import ThreadPoolExecutor

from ._adapt import is_arrow
from ._cured import Error, File, merge, partial
from ._lists import misses, placeless


def _count(part):
    size = getattr(part, "size", None)  # of arrays; a method of torch's tensors
    if hasattr(size, "__index__"):
        return int(size)
    if isinstance(part, File):
        return math.prod(part.shape)
    if hasattr(part, "numel"):
        return part.numel()
    if hasattr(part, "shape"):
        return math.prod(part.shape)
    view = memoryview(part)
    return view.nbytes // view.itemsize


def _kept(part):
    """A part that is looked at twice: of Arrow's streams, which may come once only, what they gave."""
    if not is_arrow(type(part)):  # NumPy is not needed for others
        return part
    from ._arrow import kept
    return kept(part)


def reduce_parts(parts, ops, /, *, first=0, client=None, **options):
    """Answers of ops over all parts as one array, in their order: the bits of the whole.

    Each part is folded where it lies, all at once: CUDA tensors each by their own GPU. first: as in cured.partial; None: no op needs
    the place of an element, as with masked arrays. options: dtype, ddof, nan, overflow, as in cured.reduce.
    """
    if options.get("second") is not None:
        raise TypeError("second: a partial is finished with dtype, ddof, nan and overflow alone; merge cured.partial(a, ops, second=b) of each part")
    parts = [_kept(part) for part in parts]
    if not parts:
        raise ValueError("parts is empty, must have one array at least")
    firsts, at = [], None if any(map(misses, parts)) else first
    for part in parts:
        firsts.append(at)
        if at is not None:
            at += _count(part)

    def fold(part, place):
        return partial(part, ops, first=place, client=client)

    def fold_beside_others(part, place):
        try:
            return fold(part, place)
        except Error as error:
            if not str(error).startswith("RESOURCE_EXHAUSTED"):
                raise

    with contextlib.nullcontext() if first is None or at is not None else placeless():
        with ThreadPoolExecutor(max_workers=min(len(parts), 16)) as threads:
            partials = list(threads.map(fold_beside_others, parts, firsts))
        # What a daemon had no room for beside the others comes after them.
        return merge([fold(part, place) if made is None else made
                      for made, part, place in zip(partials, parts, firsts)]).finish(ops, **options)
