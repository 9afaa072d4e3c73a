"""Digests of tensors that ranks hold parts of: each part's residues and coverage are numbers that add up (docs/PARTIALS.md, "Linear
form"), so that one all_reduce makes the digests of all whole tensors.
"""
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


def _joined(rows, error, group):
    """The sums over all ranks; a rank that failed takes part, because the others would wait for it."""
    device = torch.device("cuda", torch.cuda.current_device()) if _ranks.is_on_gpu(group) else torch.device("cpu")
    vector = torch.tensor(sum(rows, []) + [int(error is not None)], dtype=torch.int64, device=device)
    dist.all_reduce(vector, group=group)
    if error is not None:
        raise error
    *numbers, failed = vector.tolist()
    if failed:
        raise RuntimeError("another rank of the group could not answer for its tensors: its own error says why")
    return [numbers[k:k + NUMBERS] for k in range(0, len(numbers), NUMBERS)]


def _each(arrays, ops):
    return _cuda_each(arrays, ops, False)


def _alone(items, memory):
    """{name: digest} of tensors that are here as they are: those of a GPU follow each other there, and are waited for once."""
    made = _lists.each_of([memory(tensor) for tensor in items.values()], ["digest"], _each, reduce, {})
    return {name: of.digest for name, of in zip(items, made)}


def digests(items, memory, group):
    """{name: digest} of whole tensors, of which this rank has what `items` says; of all ranks that torch.distributed knows, if any."""
    is_alone = group is None and not (dist.is_available() and dist.is_initialized())
    if is_alone and not any(map(_ranks.is_distributed, items.values())):
        return _alone(items, memory)
    is_first, error, rows = is_alone or dist.get_rank(group) == 0, None, []
    for tensor in items.values():
        row = [0] * NUMBERS
        try:
            part = of_part(tensor, memory, is_first) if error is None else None
            row = part.linear().tolist() if part is not None else row
        except Exception as reason:
            error = reason
        rows.append(row)
    if is_alone and error is not None:
        raise error
    answers = {}
    for (name, tensor), row in zip(items.items(), rows if is_alone else _joined(rows, error, group)):
        kind, count = _ranks.kind_of(tensor.dtype), tensor.numel() * (2 if tensor.is_complex() else 1)
        state = from_linear(array("q", row), kind, "digest")
        if state.count != count:
            raise ValueError("digest: of %s the ranks have %d elements together, not %d: a part is missing, or there twice"
                             % (name or "the tensor", state.count, count))
        answers[name] = state.finish("digest").digest
    return answers
