"""cured.torch: norms of gradients that are exact and rounded once, with the same bits however tensors are cut over ranks.

    >>> import cured.torch
    >>> cured.torch.total_norm([p.grad for p in model.parameters()])
    >>> cured.torch.clip_grad_norm_(model.parameters(), 1.0, group=torch.distributed.group.WORLD)
    >>> cured.torch.stats(model)["layer.weight"].count_nan

docs/PYTHON.md is the manual. It works with torch 1.13 and later. Gradients of gradients do not go through these functions.
"""
from collections.abc import Mapping

import torch

from . import _digests, _lists, _ranks
from ._cured import _cuda_stats, _cuda_to, _cuda_whole, _is_float
from ._cured import partial as _partial
from ._result import Result

OPS = {1.0: "norm1", 2.0: "norm2", float("inf"): "norminf"}
STATS = ["count", "count_nan", "count_inf", "min", "max", "mean", "std", "norm2"]
_REDUCED = {*_ranks.TYPES, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_REDUCED |= {getattr(torch, name) for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)}
_HALVES = (torch.float16, torch.bfloat16)
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_LAYOUTS = (torch.strided, torch.sparse_coo)  # of a sparse one the values that it stores count
_EPSILON = 1e-6  # torch.nn.utils.clip_grad_norm_'s, which divides by the norm and this


def _op(order):
    op = OPS.get(float(order))
    if op is None:
        raise ValueError("ord: %r, must be 1, 2 or inf" % (order,))
    return op


def _memory(tensor):
    """The tensor as DLPack gives it away: without its history, its sparse form and its negation."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg()


def _dense(tensor):
    """The tensor, or a copy of it where its elements do not lie side by side, in whatever order."""
    step = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1 and stride != step:
            return tensor.contiguous()
        step *= size
    return tensor


def _checked(tensor, op):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError("tensors: a torch.Tensor is wanted, not %r" % type(tensor))
    if tensor.is_complex() and op != "norm2":
        raise TypeError("ord: a complex tensor has a norm of ord 2 alone here, because magnitudes are not exact")
    if tensor.layout not in _LAYOUTS:
        raise TypeError("tensors: a tensor of layout %s is not reduced: pass t.to_dense()" % tensor.layout)
    memory = _memory(tensor)
    if memory.dtype not in _ranks.TYPES:
        raise TypeError("tensors: %s is no type of floats that cured reduces: t.double() makes one" % tensor.dtype)
    return _dense(memory) if memory.is_cuda else memory


def _are_plain(tensors):
    """Whether they may be tensors of floats of one type on one GPU, which are looked at in C alone: the others are looked at here."""
    return bool(tensors) and set(map(type, tensors)) <= _PLAIN and tensors[0].is_cuda and tensors[0].dtype in _ranks.TYPES


def _whole(tensors, op):
    """The state of such tensors; None: they are not all of one type and GPU, and contiguous."""
    partial = _cuda_whole(tensors, [op]) if _are_plain(tensors) else None
    return None if partial is None else _ranks.State(op, partial, [tensors[0].dtype])


def _local(tensors, op):
    """(state, error) of this rank's tensors: one of both is None, or the state is that of nothing."""
    try:
        state = _whole(tensors, op)
        if state is not None:
            return state, None
        arrays = [_checked(tensor, op) for tensor in tensors]
        if not arrays:
            return _ranks.State(op), None
        return _ranks.State(op, _lists.fold(arrays, [op]), [array.dtype for array in arrays]), None
    except Exception as error:
        return _ranks.State(op), error


def _state(tensors, op, group):
    """The state of all tensors: those of all ranks of the group; of DTensors without one, those of their meshes."""
    plain, meshes = [], {}
    is_plain = _are_plain(tensors)
    if is_plain:
        plain = tensors
        state = _ranks.over_gpus([group], op, tensors) if group is not None else None
        if state is not None:
            return state
    for tensor in () if is_plain else tensors:
        if _ranks.is_distributed(tensor):
            part = _ranks.counted(tensor)
            of_mesh = plain if group is not None else meshes.setdefault(tensor.device_mesh, [])
            of_mesh += [] if part is None else [part]
        else:
            plain.append(tensor)
    state, error = _local(plain, op)
    if group is not None:
        return _ranks.over([group], state, error)
    for mesh, parts in meshes.items():
        groups = _ranks.groups_of(mesh)
        own = _ranks.over_gpus(groups, op, parts) if groups and _are_plain(parts) else None
        if own is not None:
            state = state.joined(own)
            continue
        own, wrong = _local(parts, op)
        if groups:
            own = _ranks.over(groups, own, wrong)
        elif wrong is not None:
            raise wrong
        state = state.joined(own)
    if error is not None:
        raise error
    return state


def _tensor(state, dtype, tensors, group):
    """The answer as a tensor without axes, on the first tensor's device."""
    dtype = dtype or state.dtype or torch.get_default_dtype()
    device = tensors[0].device if tensors else torch.device("cpu")
    if not tensors and group is not None and _ranks.is_on_gpu(group):
        device = torch.device("cuda", torch.cuda.current_device())
    return torch.full((), state.finish(dtype), dtype=dtype, device=device)  # a kernel on a GPU, where torch.tensor would wait


def _list(tensors):
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _is_compiling():
    asked = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return asked is not None and asked()


def total_norm(tensors, ord=2, dtype=None, group=None):
    """The norm of all elements of all tensors as one array: exact, rounded once to `dtype`. A tensor without axes.

    ord: 1, 2 or inf. dtype: without one, what torch promotes the types of the tensors (of all ranks) to. group: each rank of it has some
    of the tensors, or some elements of them, or none: the answer is that of all ranks, with the same bits for any cut. All ranks of the
    group must call. DTensors without a group are answered over their meshes, replicas once; tensors beside them are taken to be the
    same on all ranks, and count once.
    """
    if dtype is not None and dtype not in _ranks.TYPES:  # before other ranks wait
        raise TypeError("dtype: %s, must be one of %s" % (dtype, ", ".join(map(str, _ranks.TYPES))))
    tensors = _list(tensors)
    if group is None and tensors and _is_compiling():
        return torch.ops.cured.total_norm(tensors, float(ord), dtype)
    if group is None and _are_plain(tensors):
        norm = torch.empty((), dtype=dtype or tensors[0].dtype, device=tensors[0].device)
        if _cuda_to(tensors, [_op(ord)], norm):
            return norm  # which the GPU writes, and nobody has waited for
    return _tensor(_state(tensors, _op(ord), group), dtype, tensors, group)


def _scale(tensors, coefficient, foreach):
    """Multiplies all by a number, in place."""
    kinds = {}
    if foreach is not False and _are_plain(tensors) and len({(t.dtype, t.device) for t in tensors}) == 1:
        return torch._foreach_mul_(tensors, coefficient)
    for tensor in tensors:
        part = _ranks.local(tensor) if _ranks.is_distributed(tensor) else tensor.detach()
        kinds.setdefault((part.device, part.dtype, part.layout), []).append(part)
    for (device, dtype, layout), parts in kinds.items():
        together = foreach if foreach is not None else device.type == "cuda"
        if device.type == "cpu" and dtype in _HALVES:  # torch 1.13 rounds the coefficient to the gradients' type there
            for part in parts:
                part.copy_(part.float().mul_(coefficient))
        elif together and layout == torch.strided:
            torch._foreach_mul_(parts, coefficient)
        else:
            for part in parts:
                part.mul_(coefficient)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None, *, group=None):
    """Scales the gradients so that their total norm is max_norm at most, as torch.nn.utils.clip_grad_norm_; returns the norm before.

    The norm is that of total_norm, rounded once to what torch promotes the gradients' types to. The coefficient is not made from that:
    it is min(1, max_norm / (norm + 1e-6)) in float64, of the norm rounded once to float64, so that it has the same bits on all ranks
    and for any cut. torch multiplies by it in float32, float64 gradients in float64, unless it is 1. norm_type: 1, 2 or inf. group: as
    in total_norm, which all ranks must call, without gradients too. foreach: as torch's; None: where gradients lie on a GPU.
    """
    gradients = [p.grad for p in _list(parameters) if p.grad is not None]
    state = _state(gradients, _op(norm_type), group)
    norm, limit = state.finish(), float(max_norm)
    if error_if_nonfinite and not norm < float("inf"):
        raise RuntimeError("the total norm of the gradients is %r: none was scaled. With error_if_nonfinite=False they would be" % norm)
    coefficient = limit / (norm + _EPSILON)
    if not coefficient >= 1.0:  # NaN goes to the gradients, as torch's does
        with torch.no_grad():
            _scale(gradients, coefficient, foreach)
    return _tensor(state, None, gradients, group)


def _readable(tensor):
    """The memory that stats reads: a bool's as bytes."""
    if type(tensor) in _PLAIN and tensor.dtype in _ranks.TYPES and tensor.is_cuda and tensor.layout is torch.strided:
        if tensor.is_contiguous() and not tensor.is_neg():
            return tensor
    if _ranks.is_distributed(tensor):
        raise TypeError("stats: a DTensor has parts on other ranks: pass t.full_tensor(), or t.to_local() for this rank's part")
    if tensor.is_complex():
        raise TypeError("stats: a complex tensor has no order: pass torch.view_as_real(t)")
    if tensor.dtype not in _REDUCED or tensor.device.type not in ("cpu", "cuda"):
        raise TypeError("stats: a tensor of %s on %s is not reduced" % (tensor.dtype, tensor.device))
    if tensor.layout not in _LAYOUTS:
        raise TypeError("stats: a tensor of layout %s is not reduced: pass t.to_dense()" % tensor.layout)
    memory = _memory(tensor)
    memory = memory.view(torch.uint8) if memory.dtype == torch.bool else memory
    return _dense(memory) if memory.is_cuda else memory


def _alone(memory, ops, nan, ddof):
    """The Result, or the TypeError that says why there is none."""
    try:
        state = _partial(memory, ops, first=None)
    except TypeError as error:
        return error
    is_float = _is_float(state.dtype)
    return state.finish(ops, ddof=ddof, **({"nan": nan} if is_float else {}))


def _result(result, count, is_bool):
    if isinstance(result, TypeError):
        return Result(dict.fromkeys(STATS, result))
    result._answers["count"] = count  # of all elements, the NaNs too
    if is_bool:
        result._answers.update((op, bool(result[op])) for op in ("min", "max") if not isinstance(result._answers[op], Exception))
    return result


def stats(module_or_state_dict, *, nan="skip", ddof=0):
    """{name: Result} of every tensor of a module's state dict, or of a dict: count, count_nan, count_inf, min, max, mean, std and norm2,
    by one reading of each.

    count is of all elements, of a sparse tensor (COO) of those that it stores, and so are the others. NaNs are counted and then left out of min, max, mean, std and norm2; with nan="propagate" these are NaN
    where there is one. Infinities are never left out. ddof: of std, n - ddof divides. An answer that a tensor lacks (min of nothing, or
    of a type that cured does not reduce) raises when it is asked for.
    """
    if nan not in ("skip", "propagate"):
        raise ValueError("nan: %r, must be 'skip' or 'propagate'" % (nan,))
    given = module_or_state_dict
    items = given if isinstance(given, Mapping) else given.state_dict() if hasattr(given, "state_dict") else dict(given)
    answers, memories = {}, {}
    for name, tensor in items.items():
        if isinstance(tensor, torch.Tensor):
            answers[name] = None  # they come in the order of the items
            try:
                memories[name] = _readable(tensor)
            except TypeError as error:
                answers[name] = Result(dict.fromkeys(STATS, error))
    made = _lists.each_of(list(memories.values()), STATS, _cuda_stats, _alone, {"nan": nan, "ddof": ddof})
    for (name, memory), of_tensor in zip(memories.items(), made):
        answers[name] = _result(of_tensor, memory.numel(), items[name].dtype == torch.bool)
    return answers


def _bytes(tensor):
    """The memory that a digest is of: a bool's as bytes."""
    if tensor.device.type not in ("cpu", "cuda") or (tensor.dtype not in _REDUCED and not tensor.is_complex()):
        raise TypeError("digest: a tensor of %s on %s is not reduced" % (tensor.dtype, tensor.device))
    if tensor.layout != torch.strided:
        raise TypeError("digest: a tensor of layout %s has no bytes in C order: pass t.to_dense()" % tensor.layout)
    memory = _memory(tensor)
    memory = memory.view(torch.uint8) if memory.dtype == torch.bool else memory
    return memory.contiguous() if memory.is_cuda else memory


def digest(model, group=None):
    """{name: digest} of every tensor of a module's state dict, or of a dict; of a tensor its digest alone: what cured.digest says of the
    whole tensor, and cured.weights of the file.

    With torch.distributed all ranks of the group (None: of all) call it, and all get the answer, by two all_reduces. Their tensors have the
    same names, types and shapes, in any order: otherwise all ranks raise ValueError. Of a DTensor each rank gives its shard, and replicas
    count once. Other tensors are whole and the same everywhere: the group's first rank gives them. A part that is missing or there twice
    raises ValueError.
    """
    def look():
        items = model if isinstance(model, Mapping) else model.state_dict() if hasattr(model, "state_dict") else dict(model)
        return {name: t for name, t in items.items() if isinstance(t, torch.Tensor) or _ranks.is_distributed(t)}

    if isinstance(model, torch.Tensor) or _ranks.is_distributed(model):
        return _digests.digests(lambda: {"": model}, _bytes, group)[""]
    return _digests.digests(look, _bytes, group)


def _register():
    """The ops that torch.compile leaves whole in its graphs: torch.ops.cured. Only torch 2.4 and later can have them."""
    def norm(tensors, ord, dtype=None):
        return _tensor(_state(tensors, _op(ord), None), dtype, tensors, None)

    def fake_norm(tensors, ord, dtype=None):
        types = [torch.empty(0, dtype=t.dtype).real.dtype if t.is_complex() else t.dtype for t in tensors]
        return tensors[0].new_empty([], dtype=dtype or _promoted(types))

    def reduce(a, op, dtype=None):
        return torch.tensor(_lists.answer(("", [_memory(a)], [op], None, {})), dtype=dtype or torch.float64, device=a.device)

    def fake_reduce(a, op, dtype=None):
        return a.new_empty([], dtype=dtype or torch.float64)

    own = torch.library.custom_op
    own("cured::total_norm", norm, mutates_args=(),
        schema="(Tensor[] tensors, float ord, ScalarType? dtype=None) -> Tensor").register_fake(fake_norm)
    own("cured::reduce", reduce, mutates_args=(),
        schema="(Tensor a, str op, ScalarType? dtype=None) -> Tensor").register_fake(fake_reduce)


def _promoted(types):
    found = types[0]
    for dtype in types[1:]:
        found = torch.promote_types(found, dtype)
    return found


if hasattr(torch.library, "custom_op"):
    _register()
