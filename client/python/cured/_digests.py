"""Digests of tensors that ranks hold parts of: each part's residues and coverage are numbers that add up (docs/PARTIALS.md, "Linear
form"), so that one all_reduce makes the digests of all whole tensors. Before it another one, of a fixed size, says whether all ranks
have the same names, types and shapes: rows are joined by their place in the order of the names.
"""
import hashlib
from array import array

import torch
import torch.distributed as dist

from . import _lists, _ranks
from ._cured import _cuda_each, from_linear, partial, reduce

NUMBERS = 7  # of a digest's linear form


def _block(tensor):
    """Where this rank's part of a DTensor begins, and how much it has along each axis."""
    shape = list(tensor.shape)
    start, extent = [0] * len(shape), list(shape)
    for k, place in enumerate(tensor.placements):
        if not place.is_shard():
            continue
        if hasattr(place, "split_factor"):
            raise TypeError("digest: a DTensor with strided shards: pass t.full_tensor()")
        axis, size = place.dim % len(shape), tensor.device_mesh.size(k)
        chunk = -(-extent[axis] // size)  # as torch.chunk
        skipped = min(tensor.device_mesh.get_coordinate()[k] * chunk, extent[axis])
        start[axis] += skipped
        extent[axis] = min(chunk, extent[axis] - skipped)
    return start, extent


def of_part(tensor, memory, is_first):
    """This rank's partial of a tensor; None: another rank counts it. memory: what reads a tensor's memory."""
    if not _ranks.is_distributed(tensor):
        return partial(memory(tensor), "digest") if is_first else None
    if any(place.is_partial() for place in tensor.placements):
        raise TypeError("digest: a DTensor with partial sums has no bytes yet: redistribute it first")
    own = _ranks.counted(tensor)
    if own is None:
        return None
    start, extent = _block(tensor)
    if list(own.shape) != extent:
        raise ValueError("digest: this rank has a part of shape %s of a DTensor, whose placements say %s" % (list(own.shape), extent))
    own, shape = memory(own), list(tensor.shape)
    more = len(own.shape) - len(shape)  # a complex number's two parts
    return partial(own, "digest", shape=shape + [2] * more, start=start + [0] * more)


def _reduced(numbers, error, group, op=dist.ReduceOp.SUM):
    """The ranks' numbers together; a rank that failed takes part, because the others would wait for it."""
    device = torch.device("cuda", torch.cuda.current_device()) if _ranks.is_on_gpu(group) else torch.device("cpu")
    vector = torch.tensor(numbers + [int(error is not None)], dtype=torch.int64, device=device)
    dist.all_reduce(vector, op=op, group=group)
    if error is not None:
        raise error
    *numbers, failed = vector.tolist()
    if failed:
        raise RuntimeError("another rank of the group could not answer for its tensors: its own error says why")
    return numbers


def _kind(tensor):
    return "%s %s" % (tensor.dtype, list(tensor.shape))


def _difference(own, first, rank, first_rank):
    """What this rank's tensors and those of the first rank differ in, as a sentence; "": nothing."""
    for has, lacks, who, other in ((first, own, rank, first_rank), (own, first, first_rank, rank)):
        for name in has:
            if name not in lacks:
                return "rank %d lacks tensor %s, which rank %d has: all ranks must pass the same names" % (who, name, other)
    for name, kind in first.items():
        if own[name] != kind:
            return "tensor %s is %s on rank %d, and %s on rank %d" % (name, kind, first_rank, own[name], rank)
    return ""


def _agree(kinds, error, group):
    """Raises on all ranks unless all have the same tensors. kinds: {a name as it is shown: its type and shape}, sorted."""
    code = hashlib.sha256(repr(kinds).encode("utf-8", "surrogatepass")).digest()
    words = [int.from_bytes(code[k:k + 8], "little") >> 2 for k in range(0, len(code), 8)]
    least_and_most = _reduced([-word for word in words] + words, error, group, dist.ReduceOp.MAX)
    if all(least + most == 0 for least, most in zip(least_and_most, least_and_most[len(words):])):
        return
    group = dist.group.WORLD if group is None else group
    first_rank, first = dist.get_global_rank(group, 0), [kinds]
    dist.broadcast_object_list(first, src=first_rank, group=group)
    found = [""] * dist.get_world_size(group)
    dist.all_gather_object(found, _difference(kinds, first[0], dist.get_rank(), first_rank), group=group)
    raise ValueError("digest: " + next(filter(None, found), "the ranks have other tensors"))


def _each(arrays, ops):
    return _cuda_each(arrays, ops, False)


def _alone(items, memory):
    """{name: digest} of tensors that are here as they are: those of a GPU follow each other there, and are waited for once."""
    made = _lists.each_of([memory(tensor) for tensor in items.values()], ["digest"], _each, reduce, {})
    return {name: of.digest for name, of in zip(items, made)}


def _rows(tensors, memory, is_first):
    """The linear forms of this rank's partials, one behind the other, and why there is none of a tensor, or None."""
    error, numbers = None, []
    for tensor in tensors:
        row = [0] * NUMBERS
        try:
            part = of_part(tensor, memory, is_first) if error is None else None
            row = part.linear().tolist() if part is not None else row
        except Exception as reason:
            error = reason
        numbers += row
    return numbers, error


def _finished(name, tensor, row):
    kind, count = _ranks.kind_of(tensor.dtype), tensor.numel() * (2 if tensor.is_complex() else 1)
    state = from_linear(array("q", row), kind, "digest")
    if state.count != count:
        raise ValueError("digest: of %s the ranks have %d elements together, not %d: a part is missing, or there twice"
                         % (name or "the tensor", state.count, count))
    return state.finish("digest").digest


def digests(look, memory, group):
    """{name: digest} of whole tensors, of which this rank has what look() says; of all ranks that torch.distributed knows, if any."""
    is_alone = group is None and not (dist.is_available() and dist.is_initialized())
    if not is_alone and dist.get_rank(group) < 0:
        raise ValueError("digest: this rank is not in the group")
    items, error, order = {}, None, []
    try:
        items = look()
        order = sorted(items, key=repr)
        kinds = {repr(name): _kind(items[name]) for name in order} if not is_alone else {}
    except Exception as reason:
        if is_alone:
            raise
        kinds, error = {}, reason
    if is_alone and not any(map(_ranks.is_distributed, items.values())):
        return _alone(items, memory)
    if not is_alone:
        _agree(kinds, error, group)
    numbers, error = _rows([items[name] for name in order], memory, is_alone or dist.get_rank(group) == 0)
    if is_alone and error is not None:
        raise error
    numbers = numbers if is_alone else _reduced(numbers, error, group)
    made = {name: _finished(name, items[name], numbers[k * NUMBERS:(k + 1) * NUMBERS]) for k, name in enumerate(order)}
    return {name: made[name] for name in items}
