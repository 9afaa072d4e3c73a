#!/usr/bin/env python3
"""gpu_ranks: cured.torch over NCCL, with DTensor and FSDP2 as this torch has them: two ranks with a GPU each, random cuts, all types of
floats. The norms have the bits of the same elements on the host in one process; digests are the whole tensor's.

Needs two GPUs and torch 2.6 or later; without them it ends with status 77. CURED_CUDA_LIBRARY names libcured-cuda.so.0.
"""
import os
import sys
import tempfile
import traceback

RANKS = 2
INF = float("inf")


def cut(whole, rank, seed):
    """This rank's part of each tensor: somewhere in two, so that one may be empty."""
    import numpy
    draw, parts = numpy.random.default_rng(seed), []
    for tensor in whole:
        at = int(draw.integers(0, tensor.numel() + 1))
        flat = tensor.reshape(-1)
        parts.append((flat[:at] if rank == 0 else flat[at:]).clone())
    return parts


def wholes(torch, dtype, seed):
    """The same on every rank: of like exponents, and of all."""
    made = torch.Generator().manual_seed(seed)
    like = torch.randn(40000, generator=made, dtype=torch.float64)
    wide = torch.randn(5000, generator=made, dtype=torch.float64) * torch.exp2(torch.randint(-20, 12, (5000,), generator=made))
    return [like.to(dtype), wide.to(dtype), torch.randn(33, 7, generator=made).to(dtype)]


def truth(torch, cured, tensors, op, dtype):
    flat = torch.cat([t.double().reshape(-1) for t in tensors]).numpy()
    name = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}[dtype]
    return getattr(cured, op)(flat) if op == "norminf" else getattr(cured, op)(flat, dtype=name)


def norms(torch, cured, dist, rank):
    group, checks = dist.group.WORLD, 0
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for seed in range(6):
            whole = wholes(torch, dtype, seed)
            parts = [part.cuda() for part in cut(whole, rank, seed)]
            for order, op in ((1, "norm1"), (2, "norm2"), (INF, "norminf")):
                for result in (dtype, torch.float64):
                    found = cured.torch.total_norm(parts, order, result, group)
                    assert found.dtype == result and found.is_cuda
                    assert float(found) == truth(torch, cured, whole, op, result), (dtype, seed, op, result)
                    checks += 1
    mixed = [part.cuda() for part in cut(wholes(torch, torch.float32 if rank else torch.bfloat16, 3), rank, 3)]
    assert cured.torch.total_norm(mixed, group=group).dtype == torch.float32
    gaps = [torch.full((40, 40), 2.0, device="cuda")[:, ::4]]  # which one rank copies; the other's lie side by side
    own = gaps if rank == 0 else [torch.full((400,), 2.0, device="cuda")]
    assert torch.equal(cured.torch.total_norm(own, group=group).cpu(), torch.tensor(3200.0).sqrt())
    return checks + 2


def clipped(torch, cured, dist, rank):
    """Both ranks scale by the same bits, as one process does that has all gradients."""
    whole = wholes(torch, torch.float32, 9)
    alone = [torch.nn.Parameter(t.clone().cuda()) for t in whole]
    own = [torch.nn.Parameter(t.cuda()) for t in cut(whole, rank, 9)]
    for p in alone + own:
        p.grad = p.detach().clone()
    before = cured.torch.clip_grad_norm_(alone, 1.0)
    assert torch.equal(before, cured.torch.clip_grad_norm_(own, 1.0, group=dist.group.WORLD))
    for given, part in zip(cut([p.grad.cpu() for p in alone], rank, 9), own):
        assert torch.equal(given, part.grad.cpu())
    return 1 + len(own)


def distributed(torch, cured, dist, rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, DTensor
    mesh, checks = init_device_mesh("cuda", (RANKS,)), 0
    whole = torch.randn(31, 10, generator=torch.Generator().manual_seed(4)).cuda()
    for placement in (Shard(0), Shard(1), Replicate()):
        tensor = distribute_tensor(whole, mesh, [placement])
        assert float(cured.torch.total_norm([tensor], dtype=torch.float64)) == cured.norm2(whole.cpu().numpy()), placement
        assert cured.torch.digest({"w": tensor})["w"] == cured.digest(whole.cpu().numpy()), placement
        checks += 2
    partial = DTensor.from_local(whole if rank == 0 else torch.zeros_like(whole), mesh, [Partial()])
    assert float(cured.torch.total_norm([partial], dtype=torch.float64)) == cured.norm2(whole.cpu().numpy())
    return checks + 1


def sharded(torch, cured, dist, rank):
    """FSDP2: gradients and parameters are DTensors of shards. The norm is that of the whole gradients, on both ranks."""
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 33)).cuda()
    for part in (model[0], model[2]):
        fully_shard(part)
    fully_shard(model)
    model(torch.randn(16, 64, generator=torch.Generator().manual_seed(rank)).cuda()).square().sum().backward()
    full = [p.grad.full_tensor().cpu() for p in model.parameters()]
    gradients = [p.grad for p in model.parameters()]
    wanted = truth(torch, cured, full, "norm2", torch.float64)
    assert float(cured.torch.total_norm(gradients, dtype=torch.float64)) == wanted
    digests = cured.torch.digest(model)
    for name, p in model.named_parameters():
        assert digests[name] == cured.digest(p.full_tensor().detach().cpu().numpy()), name
    before = cured.torch.clip_grad_norm_(model.parameters(), 0.25)
    assert float(before) == truth(torch, cured, full, "norm2", torch.float32)
    scaled = [t * min(1.0, 0.25 / (wanted + 1e-6)) for t in full]
    for p, t in zip(model.parameters(), scaled):
        assert torch.equal(p.grad.full_tensor().cpu(), t)
    return 2 + 2 * len(full)


def linear(torch, cured, dist, rank):
    """What NCCL adds up is written and finished on the GPUs."""
    checks = 0
    for dtype, kind in ((torch.bfloat16, "f64"), (torch.float32, "f32"), (torch.float64, "f64")):
        for op in ("sum", "mean", "norm1", "norm2", "sumsq"):
            whole = wholes(torch, dtype, 12)[0]
            part = cut([whole], rank, 12)[0].cuda()
            count = len(cured.partial(torch.zeros(1, dtype=torch.float64 if kind == "f64" else dtype).numpy(), op, first=None).linear())
            vector = torch.empty(count, dtype=torch.int64, device="cuda")
            cured.linear(part, op, dtype=kind, out=vector)
            dist.all_reduce(vector)
            found = cured.from_linear(vector, kind, op, out=torch.empty((), dtype=torch.float64, device="cuda"))
            assert float(found) == truth(torch, cured, [whole], op, torch.float64), (dtype, op)
            checks += 1
    return checks


def time_of(torch, dist, call, rounds=30):
    """(the median, the least, the most) of so many rounds, in microseconds."""
    import statistics
    import time
    times = []
    for _ in range(rounds):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times), min(times), max(times)


def timed(torch, cured, dist, rank):
    """300 gradients of bf16, 225 MB a rank: their norm over both ranks, by cured and by torch (which rounds each norm and sums up floats)."""
    import torch.distributed as d
    tensors = [torch.randn(375000, device="cuda").bfloat16() for _ in range(300)]

    def plain():
        norm = torch.nn.utils.get_total_norm(tensors) ** 2
        d.all_reduce(norm)
        return float(norm.sqrt())
    ours = time_of(torch, dist, lambda: float(cured.torch.total_norm(tensors, group=dist.group.WORLD)))
    theirs = time_of(torch, dist, plain)
    if rank == 0:
        print("norm2 of 300 bf16 gradients a rank over NCCL, median (least … most) of 30: cured %.0f us (%.0f … %.0f), torch %.0f us (%.0f … %.0f)"
              % (ours + theirs))
    return 1


def worker(rank, store, answers):
    try:
        import torch
        import torch.distributed as dist
        import cured
        import cured.torch
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method="file://" + store, rank=rank, world_size=RANKS,
                                device_id=torch.device("cuda", rank))
        for part in (norms, clipped, linear, distributed, sharded, timed):
            count = part(torch, cured, dist, rank)
            answers.put((rank, part.__name__, count))
        dist.barrier()
        answers.put((rank, "end", 0))
    except BaseException:
        answers.put((rank, traceback.format_exc(), -1))
    sys.stdout.flush()
    answers.close()
    answers.join_thread()
    os._exit(0)  # NCCL waits for a rank that failed


def main():
    try:
        import torch
        import torch.multiprocessing as multiprocessing
        gpus = torch.cuda.device_count()
    except ImportError:
        gpus = 0
    if gpus < RANKS:
        print("skipped: %d GPUs, two are needed" % gpus)
        return 77
    print("torch %s, CUDA %s, NCCL %s" % (torch.__version__, torch.version.cuda, ".".join(map(str, torch.cuda.nccl.version()))))
    context = multiprocessing.get_context("spawn")
    answers, failed, ended = context.Queue(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=worker, args=(rank, os.path.join(folder, "store"), answers), daemon=True) for rank in range(RANKS)]
        for rank in ranks:
            rank.start()
        while ended < RANKS and not failed:
            rank, what, count = answers.get(timeout=150)
            failed += count < 0
            ended += what == "end"
            print("rank %d: %s%s" % (rank, what, "" if count <= 0 else ": %d checks passed" % count))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
