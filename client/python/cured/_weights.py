"""cured.weights: the tensors of a checkpoint, by name, each with its Result."""
import math
from collections.abc import Mapping

from ._cured import _weights
from ._result import Result


class Weights(Mapping):
    """Names of tensors, in the order of their bytes, and their Results. `digest` is that of all (docs/WEIGHTS.md), None where a tensor
    has none or none was asked for; `types`, `shapes` and `bytes` are dicts by name."""

    __slots__ = ("_results", "digest", "types", "shapes", "bytes")

    def __init__(self, rows, digest, zeros):
        self._results, self.digest = {}, digest
        self.types, self.shapes, self.bytes = {}, {}, {}
        for name, kind, shape, size, answers in rows:
            if zeros:
                answers = dict((_zeros(shape, answer) if op == "count_nonzero" else (op, answer)) for op, answer in answers.items())
            self._results[name] = Result(answers)
            self.types[name], self.shapes[name], self.bytes[name] = kind, shape, size

    def __getitem__(self, name):
        return self._results[name]

    def __iter__(self):
        return iter(self._results)

    def __len__(self):
        return len(self._results)

    def __repr__(self):
        return "<cured.Weights of %d tensors>" % len(self)


def _zeros(shape, nonzeros):
    return "zeros", math.prod(shape) - nonzeros


def weights(path, ops=None, *, filter=None, address=None):
    """The tensors of a checkpoint: safetensors (also an index, or a folder), GGUF, .npz or .npy. Each has a Result of ops, by default
    count_nan, count_inf, zeros, min, max, mean, std, norm2 and digest, without those that its type lacks.

    filter: a pattern that names must match, as of fnmatch; address: of a daemon, else one that listens, else this process answers."""
    names = [op.strip() for op in ops.split(",")] if isinstance(ops, str) else None if ops is None else list(ops)
    rows, digest = _weights(path, names, filter, address)
    return Weights(rows, digest, ops is None)
