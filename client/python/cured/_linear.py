"""Linear forms: partials as vectors of int64 that an all_reduce adds up: cured.linear and cured.from_linear.

Of arrays in host memory they come by a Partial. Of CUDA tensors they are written, and finished, on the GPU in the stream's order, and
nothing waits: what NCCL adds up between them need never come to the host.
"""
from . import _cured
from ._lists import _cuda_device, fold, names_of


def _on_gpu(array):
    return array is not None and _cuda_device(array) is not None


def _store(name, values, to):
    """The numbers to a writable array of int64."""
    view = memoryview(to)
    if view.format not in ("q", "l") or view.ndim != 1 or len(view) != len(values):
        raise TypeError("%s: a contiguous array of %d int64 is wanted" % (name, len(values)))
    view[:] = memoryview(values)


def linear(a, ops, *, dtype=None, out=None, maxima=None):
    """The linear form of the partial of an array, or of a list of arrays as one: a vector of int64 for an all_reduce with SUM.

    ops: as cured.partial's. dtype: a wider type of floats whose grid the vector has, so that ranks of several types add up. out: where the
    vector goes, which is returned; of a CUDA tensor a CUDA tensor of int64, which the GPU writes in the stream's order. maxima: likewise, for
    an all_reduce with MAX, where an op is an extremum. cured.from_linear finishes what was added up; docs/PARTIALS.md defines the numbers.
    """
    arrays = list(a) if isinstance(a, (list, tuple)) and not _cured._is_of_numbers(a) else [a]
    names = names_of(ops)
    if _on_gpu(out):
        if not arrays or not all(map(_on_gpu, arrays)):
            raise TypeError("out: it lies on a GPU, where the array does not: leave out= away, and copy the vector")
        if len({_cuda_device(array) for array in arrays}) > 1:
            raise ValueError("out: the list's tensors lie on several GPUs: call for those of each, and add the vectors up")
        if _cured._cuda_linear(arrays, names, dtype, out, maxima) is None:
            raise ValueError("the list's tensors are of several libraries, and so of several streams: call for each, and add the vectors up")
        return out
    made = fold(arrays, names)
    if dtype is not None:
        made = _cured._widened([made], dtype)
    vector = made.linear()
    if maxima is not None:
        _store("maxima", made.linear_max(), maxima)
    if out is None:
        return vector
    _store("out", vector, out)
    return out


def from_linear(array, /, dtype, ops, maxima=None, *, out=None, nan="propagate", ddof=0):
    """The Partial of linear forms that were added up (and of `maxima` that were compared).

    out: a CUDA tensor of one element for the op's answer, or a tuple with one, or None, for each op: `array` is a CUDA tensor then, and the GPU
    finishes it in the stream's order: nothing waits, and out is returned. Sums, means and norms of floats are finished so; nan and ddof
    are theirs. dtype, ops: what the vectors were written for.
    """
    if out is None:
        if nan != "propagate" or ddof != 0:
            raise TypeError("nan, ddof: they are of Partial.finish, or of out=")
        if _on_gpu(array):
            raise TypeError("array: it lies on a GPU: give out=, or a copy in host memory (array.cpu() or array.get())")
        return _cured.from_linear(array, dtype, ops, maxima)
    if not _on_gpu(array):
        raise TypeError("out: answers go to CUDA tensors from a CUDA tensor: leave out= away, and call .finish(ops)")
    if nan not in ("skip", "propagate"):
        raise ValueError("nan: %r, must be 'skip' or 'propagate'" % (nan,))
    names = names_of(ops)
    _cured._cuda_from_linear(array, dtype, names, out if isinstance(out, tuple) else (out,), nan == "skip", ddof)
    return out
