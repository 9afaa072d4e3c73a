"""What ranks of torch.distributed have together: exact states as int64 tensors that one all_reduce joins, and the part of a DTensor
that a rank answers for.

Each rank writes the linear form of its partial (docs/PARTIALS.md) on f64's grid, whatever its tensors' types are. So ranks of several
types, and ranks without tensors, need no round to agree on a grid: the vector is 1.1 KB at most, and for so little an all_reduce takes as
long as for 8 bytes. Behind it, in the same all_reduce, are how many tensors of each type there are, and how many ranks failed.
"""
import importlib
from array import array

import torch
import torch.distributed as dist

from ._cured import _widened, from_linear, partial
from ._linear import linear
from ._cured import sum as rounded

WIDE = "f64"
TYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}
IS_MAXIMUM = ("norminf",)


class State:
    """The exact state of one op over some tensors: a partial, or None of none, and the types of these tensors."""

    __slots__ = ("op", "partial", "counts")

    def __init__(self, op, made=None, dtypes=()):
        self.op, self.partial = op, made
        self.counts = [sum(dtype == known for dtype in dtypes) for known in TYPES]

    def finish(self, dtype=None):
        """The answer as a float, rounded once, to a type of torch if one is given."""
        if self.partial is None:
            return 0.0
        if dtype is not None and self.op in IS_MAXIMUM:  # it is an element, which has no rounding but this one
            return rounded(array("d", [self.finish()]), dtype=TYPES[dtype])
        options = {} if dtype is None else {"dtype": TYPES[dtype]}
        return self.partial.finish([self.op], **options)[self.op]

    @property
    def dtype(self):
        """What torch promotes the tensors' types to; None: there are no tensors."""
        found = None
        for dtype, count in zip(TYPES, self.counts):
            if count:
                found = dtype if found is None else torch.promote_types(found, dtype)
        return found

    def joined(self, other):
        """Both as one. Their tensors are not the same."""
        both = State(self.op)
        both.counts = [a + b for a, b in zip(self.counts, other.counts)]
        parts = [state.partial for state in (self, other) if state.partial is not None]
        if len(parts) == 2:
            both.partial = _widened(parts)
        elif parts:
            both.partial, = parts
        return both

    def _numbers(self):
        """(numbers that go through the all_reduce, how many of them are the partial's sums)."""
        made = self.partial if self.partial is not None else partial(array("d"), [self.op], first=None)
        wide = _widened([made], WIDE)
        sums = wide.linear().tolist()
        return sums + wide.linear_max().tolist(), len(sums)


def kind_of(dtype):
    """A type of as many bytes, of which cured makes the same digest."""
    size = torch.empty(0, dtype=dtype).element_size()
    return {1: "u8", 2: "u16", 4: "u32", 8: "f32" if dtype.is_complex else "f64", 16: "f64"}[size]


def is_on_gpu(group):
    """Whether the group's tensors lie on a GPU: NCCL takes no others."""
    backend = str(dist.get_backend(group)).lower()
    return "nccl" in backend and "gloo" not in backend and "mpi" not in backend


def over(groups, state, error):
    """The state of all ranks: each rank's own goes through one all_reduce for each group. error: why this rank has none, or None.

    A rank that failed takes part, because the others would wait for it; then it raises its error, and the others say so.
    """
    numbers, sums = state._numbers()
    device = torch.device("cuda", torch.cuda.current_device()) if is_on_gpu(groups[0]) else torch.device("cpu")
    vector = torch.tensor(numbers + state.counts + [int(error is not None)], dtype=torch.int64, device=device)
    return _joined(groups, state.op, vector, sums, error)


def over_gpus(groups, op, tensors):
    """The same, of CUDA tensors of one type whose group meets on GPUs: each rank's numbers are written where NCCL reads them, so that the
    host waits once. None: this rank's tensors cannot be so, and go by over(), with which other ranks' calls agree."""
    if op in IS_MAXIMUM or not is_on_gpu(groups[0]) or len({tensor.dtype for tensor in tensors}) != 1:
        return None
    sums = len(State(op)._numbers()[0])
    vector = torch.zeros(sums + len(TYPES) + 1, dtype=torch.int64, device=tensors[0].device)
    try:
        linear(tensors, [op], dtype=WIDE, out=vector[:sums])
    except (TypeError, ValueError, NotImplementedError):
        return None
    vector[sums + list(TYPES).index(tensors[0].dtype)] = len(tensors)  # a kernel, for which nothing waits
    return _joined(groups, op, vector, sums, None)


def _joined(groups, op, vector, sums, error):
    """What the ranks' vectors come to together."""
    for group in groups:
        dist.all_reduce(vector, op=dist.ReduceOp.MAX if op in IS_MAXIMUM else dist.ReduceOp.SUM, group=group)
    if error is not None:
        raise error
    *numbers, failed = vector.tolist()
    if failed:
        raise RuntimeError("another rank of the group could not answer for its tensors: its own error says why")
    end = len(numbers) - len(TYPES)
    maxima = numbers[sums:end]
    both = State(op)
    both.counts = numbers[end:]
    both.partial = from_linear(array("q", numbers[:sums]), WIDE, [op], array("q", maxima) if maxima else None)
    return both


# ---- DTensor: by what it has, so that a torch without it is no matter ----

def is_distributed(tensor):
    return hasattr(tensor, "placements") and hasattr(tensor, "device_mesh") and hasattr(tensor, "to_local")


def _replicate():
    for name in ("torch.distributed.tensor", "torch.distributed._tensor"):
        try:
            return importlib.import_module(name).Replicate()
        except (ImportError, AttributeError):
            pass
    raise TypeError("a DTensor with partial sums: this torch has no torch.distributed.tensor.Replicate to reduce them to")


def local(tensor):
    """The memory of this rank's part, which is the tensor's own."""
    part = tensor.to_local()
    return part.wait() if hasattr(part, "wait") else part  # a collective may still be under way


def counted(tensor):
    """This rank's part of a DTensor, if it is the one that counts it; None: another rank does, or this one is not in the mesh.

    Partial sums are reduced by torch first. Of replicas the one at coordinate 0 counts.
    """
    mesh = tensor.device_mesh
    if any(p.is_partial() for p in tensor.placements):
        tensor = tensor.redistribute(mesh, [_replicate() if p.is_partial() else p for p in tensor.placements])
    at = mesh.get_coordinate()
    if at is None or any(k != 0 for k, p in zip(at, tensor.placements) if p.is_replicate()):
        return None
    return local(tensor)


def groups_of(mesh):
    """The groups that together join all ranks of a mesh: one of each of its axes that has more than one rank."""
    return [mesh.get_group(axis) for axis in range(mesh.ndim) if mesh.size(axis) > 1]
