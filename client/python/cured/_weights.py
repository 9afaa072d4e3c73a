"""cured.weights: the tensors of a checkpoint, by name, each with its Result."""
import math
from collections.abc import Mapping

from ._cured import _weights
from ._result import Result

OWN = ("count_nan", "count_inf", "zeros", "min", "max", "mean", "std", "norm2", "digest")


class TensorResult(Result):
    """A Result that knows why the tensor's type lacks an op which was asked for."""

    __slots__ = ("_asked", "_why")

    def __init__(self, answers, asked, why):
        super().__init__(answers)
        self._asked, self._why = asked, why

    def __getattr__(self, op):
        if op.startswith("_") or op not in self._asked or op in self._answers:
            return super().__getattr__(op)
        raise AttributeError("op '%s': %s" % (op, self._why))

    def __reduce__(self):
        return TensorResult, (self._answers, self._asked, self._why)


class Weights(Mapping):
    """Names of tensors, in the order of their bytes, and their Results. `digest` is that of all (docs/WEIGHTS.md), None where a tensor
    has none or none was asked for; `types`, `shapes` and `bytes` are dicts by name."""

    __slots__ = ("_results", "digest", "types", "shapes", "bytes")

    def __init__(self, rows, digest, asked):
        self._results, self.digest = {}, digest
        self.types, self.shapes, self.bytes = {}, {}, {}
        for name, kind, shape, size, is_reduced, answers in rows:
            if asked is None:
                answers = dict((_zeros(shape, answer) if op == "count_nonzero" else (op, answer)) for op, answer in answers.items())
            self._results[name] = TensorResult(answers, OWN if asked is None else asked, _why(kind, is_reduced, size))
            self.types[name], self.shapes[name], self.bytes[name] = kind, shape, size

    def __getitem__(self, name):
        return self._results[name]

    def __iter__(self):
        return iter(self._results)

    def __len__(self):
        return len(self._results)

    def __repr__(self):
        return "<cured.Weights of %d tensors>" % len(self)


def _why(kind, is_reduced, size):
    if is_reduced:
        return "a tensor of %s has none" % kind
    if size is None:
        return "a tensor of %s has neither answers nor a digest, because that type is not known here" % kind
    return "a tensor of %s has bytes and a digest alone, because cured does not reduce that type" % kind


def _zeros(shape, nonzeros):
    return "zeros", math.prod(shape) - nonzeros


def weights(path, ops=None, *, filter=None, address=None):
    """The tensors of a checkpoint: safetensors (also an index, or a folder), GGUF, .npz or .npy. Each has a Result of ops, by default
    count_nan, count_inf, zeros, min, max, mean, std, norm2 and digest, without those that its type lacks.

    filter: a pattern that names must match, as of fnmatch; address: of a daemon, else one that listens, else this process answers."""
    names = [op.strip() for op in ops.split(",")] if isinstance(ops, str) else None if ops is None else list(ops)
    rows, digest = _weights(path, names, filter, address)
    return Weights(rows, digest, None if names is None else tuple(names))
