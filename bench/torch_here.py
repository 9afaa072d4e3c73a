#!/usr/bin/env python3
"""torch_here: what a call costs in a program of torch that holds GPU data: cured in the program's own process beside torch's ways.

Each call of the first part follows a kernel of the program's own, as in every real program, and takes the next of several tensors. Every
answer is checked: against a float64 sum on the GPU, or bit for bit against cured's answer by another way. Prints the machine, and of
each figure the median in microseconds with the 10th and 90th percentile.

usage: PYTHONPATH=… CURED_CUDA_LIBRARY=… torch_here.py [--gib N] [--parts calls,masks,…]      (N: of the state dict; 14)
Exit status 77: there is no torch with a GPU.
"""
import argparse
import statistics
import sys
import time

try:
    import torch
    assert torch.cuda.is_available()
except (ImportError, AssertionError):
    print("skipped: no torch with a GPU")
    sys.exit(77)

import cured
import cured.torch

SIZES = (("4 KiB", 1 << 10), ("1 MiB", 1 << 18), ("64 MiB", 1 << 24), ("1 GiB", 1 << 28))
SIX = ["sum", "mean", "min", "max", "norm2", "std"]


def timed(call, before=None, rounds=60, warm=12):
    times = []
    for i in range(rounds + warm):
        if before is not None:
            before(i)
        begun = time.perf_counter_ns()
        call(i)
        times.append((time.perf_counter_ns() - begun) / 1e3)
    times = sorted(times[warm:])
    return statistics.median(times), times[len(times) // 10], times[-1 - len(times) // 10]


def on_gpu(call, rounds=9, calls=20):
    """Of the GPU's own time for a call, by events."""
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call(0)
        begin.record()
        for i in range(calls):
            call(i)
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e3 / calls)
    found.sort()
    return statistics.median(found), found[0], found[-1]


def tell(row, **ways):
    base = next(iter(ways.values()))[0]
    print("%-42s" % row + "   ".join("%s %.1f [%.1f, %.1f]%s" % (name.replace("_", " "), *figures, "" if figures[0] == base else " %.2f" %
                                                                 (figures[0] / base)) for name, figures in ways.items()), flush=True)


def keys():
    """2^28 f32 by int32 keys. The answers are the CPU's, bit for bit; those of sorted rows are those of the same rows in any order."""
    n = 1 << 28
    values = torch.randn(n, device="cuda")
    host = values.cpu().numpy()
    for groups in (1, 16, 1024, 16384, 1 << 20):
        key = torch.randint(groups, (n,), device="cuda", dtype=torch.int32)
        mine, theirs = torch.zeros(groups, device="cuda", dtype=torch.float64), torch.zeros(groups, device="cuda")
        wanted = torch.from_numpy(cured.sum(host, keys=key.cpu().numpy(), groups=groups)).cuda()
        for order in ("random", "sorted"):
            if order == "sorted":
                key, at = key.sort(stable=True)
                sorted_values = values[at]
                del at
            of = values if order == "random" else sorted_values
            assert torch.equal(cured.sum(of, keys=key, groups=groups, out=mine), wanted)
            ways = {"cured": on_gpu(lambda i: cured.sum(of, keys=key, groups=groups, out=mine), rounds=5, calls=4),
                    "mean": on_gpu(lambda i: cured.mean(of, keys=key, groups=groups, out=mine), rounds=3, calls=2)}
            if groups > 1:
                ways["index_add_"] = on_gpu(lambda i: theirs.index_add_(0, key, of), rounds=3 if groups > 1024 else 1, calls=1)
            tell("sum of 2^28 by %d keys, %s" % (groups, order), **ways)
        del key, of, sorted_values
    for share in (0.1, 0.25, 0.5, 0.9):
        key = torch.randint(groups, (n,), device="cuda", dtype=torch.int32)
        key[torch.rand(n, device="cuda") < share] = groups // 2
        wanted = torch.from_numpy(cured.sum(host, keys=key.cpu().numpy(), groups=groups)).cuda()
        assert torch.equal(cured.sum(values, keys=key, groups=groups, out=mine), wanted)
        tell("sum of 2^28, one of %d keys has %g" % (groups, share),
             cured=on_gpu(lambda i: cured.sum(values, keys=key, groups=groups, out=mine), rounds=5, calls=4),
             index_add_=on_gpu(lambda i: theirs.index_add_(0, key, values), rounds=3, calls=1))
    torch.cuda.empty_cache()


def strictly(call):
    """What the call answers under torch's deterministic algorithms; the sentence with which torch refuses it."""
    torch.use_deterministic_algorithms(True)
    try:
        return call()
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        return str(error).split(". ")[0]
    finally:
        torch.use_deterministic_algorithms(False)


def twice(name, make):
    """How the bits of two runs differ, and how they do under deterministic algorithms."""
    told = []
    for way, run in (("as it comes", lambda call: call()), ("deterministic", strictly)):
        answers = run(make), run(make)
        told.append("%s: %s" % (way, answers[0] if isinstance(answers[0], str) else "%d of %d differ" % (
            (answers[0] != answers[1]).sum().item(), answers[0].numel())))
    print("%42s%s, two runs: %s" % ("", name, "; ".join(told)), flush=True)


def deterministic():
    """What torch's deterministic algorithms cost, of those that they change, and cured by key, which is exact. sum is the same either way."""
    n = 1 << 28
    values = torch.randn(n, device="cuda")
    host = values.cpu().numpy()

    def both(call):
        ways = {"torch": on_gpu(call, rounds=3, calls=1)}
        strict = strictly(lambda: on_gpu(call, rounds=3, calls=1))
        return ways | ({"deterministic": strict} if isinstance(strict, tuple) else {})

    for groups in (1 << 20, 1024, 16):
        key = torch.randint(groups, (n,), device="cuda", dtype=torch.int32)
        wide = key.long()
        mine, theirs = torch.zeros(groups, device="cuda", dtype=torch.float64), torch.zeros(groups, device="cuda")
        true = torch.from_numpy(cured.sum(host, keys=key.cpu().numpy(), groups=groups)).cuda()
        assert torch.equal(cured.sum(values, keys=key, groups=groups, out=mine), true)
        exact = {"cured": on_gpu(lambda i: cured.sum(values, keys=key, groups=groups, out=mine), rounds=5, calls=4)}
        for name, call in (("index_add_", lambda i: theirs.index_add_(0, key, values)),
                           ("scatter_add_", lambda i: theirs.scatter_add_(0, wide, values))):
            tell("%s of 2^28 f32, %d keys" % (name, groups), **exact, **both(call))

        def made():
            return torch.zeros(groups, device="cuda").index_add_(0, key, values)

        twice("index_add_", made)
        off = strictly(made)
        print("%42sdeterministic, off the exact sums rounded: %d of %d, by %.2g at most; cured: none" % (
            "", (off != true.float()).sum().item(), groups, ((off - true).abs() / true.abs()).max().item()), flush=True)
        del key, wide
        torch.cuda.empty_cache()
    mine, theirs = torch.zeros((), device="cuda"), torch.zeros((), device="cuda")
    tell("sum of 1 GiB of f32, out=", cured=on_gpu(lambda i: cured.sum(values, out=mine)),
         **both(lambda i: torch.sum(values, dim=0, out=theirs)))
    whole = torch.empty_like(values)
    tell("cumsum of 1 GiB of f32, out=", **both(lambda i: torch.cumsum(values, 0, out=whole)))
    twice("cumsum", lambda: torch.cumsum(values, 0))
    torch.cuda.empty_cache()


def calls():
    own = torch.zeros(1 << 20, device="cuda")

    def kernel(i):
        own.add_(1.0)

    def idle(i):
        torch.cuda.synchronize()

    for name, n in SIZES:
        tensors = [torch.randn(n, device="cuda") for _ in range(16 if n < 1 << 28 else 4)]
        some = len(tensors)
        for t in tensors[:2]:
            true = t.double().sum().item()
            assert abs(cured.sum(t) - true) <= 1e-9 * (abs(true) + n), (cured.sum(t), true)

        def torch_sum(i):
            kernel(i)
            tensors[i % some].sum().item()

        def cured_sum(i):
            kernel(i)
            cured.sum(tensors[i % some])

        tell("sum of %s after a kernel" % name, torch=timed(torch_sum), cured=timed(cured_sum))

        def torch_six(i):
            kernel(i)
            t = tensors[i % some]
            return t.sum().item(), t.mean().item(), t.min().item(), t.max().item(), t.norm().item(), t.std().item()

        def cured_six(i):
            kernel(i)
            return cured.reduce(tensors[i % some], SIX)

        tell("six ops of %s after a kernel" % name, torch=timed(torch_six), cured=timed(cured_six))
        out, mine = torch.zeros((), device="cuda"), torch.zeros((), device="cuda")
        tell("host's time of sum, out=, %s" % name,
             torch=timed(lambda i: torch.sum(tensors[i % some], dim=0, out=out), idle),
             cured=timed(lambda i: cured.sum(tensors[i % some], out=mine), idle))
        tell("GPU's time of sum, out=, %s" % name, torch=on_gpu(lambda i: torch.sum(tensors[i % some], dim=0, out=out)),
             cured=on_gpu(lambda i: cured.sum(tensors[i % some], out=mine)))
        cured.sum(tensors[0], out=mine)
        assert mine.item() == torch.tensor(cured.sum(tensors[0], dtype="f4")).item()
        del tensors
        torch.cuda.empty_cache()


def graphs():
    t, out = torch.randn(1 << 18, device="cuda"), torch.zeros((), device="cuda")
    cured.sum(t, out=out)
    torch.cuda.synchronize()
    graph, bare, least, one = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
    with torch.cuda.graph(graph):
        cured.sum(t, out=out)
    with torch.cuda.graph(bare):
        torch.sum(t, dim=0, out=out)
    with torch.cuda.graph(least):
        one.add_(1)
    t.normal_()
    graph.replay()
    assert out.item() == torch.tensor(cured.sum(t, dtype="f4")).item()
    tell("a graph of sum, out=, 1 MiB, replayed", torch=on_gpu(lambda i: bare.replay()), cured=on_gpu(lambda i: graph.replay()),
         of_one_element=on_gpu(lambda i: least.replay()))
    tell("the host's time of a replay", torch=timed(lambda i: bare.replay(), lambda i: torch.cuda.synchronize()),
         cured=timed(lambda i: graph.replay(), lambda i: torch.cuda.synchronize()),
         of_one_element=timed(lambda i: least.replay(), lambda i: torch.cuda.synchronize()))


def read(tensors):
    """A read of all bytes at the speed of memory: a maximum of one flat tensor by cured, the fastest that is here."""
    flat = torch.cat([t.reshape(-1) for t in tensors]).view(torch.int32)
    return timed(lambda i: cured.max(flat), rounds=30)


def norms():
    for dtype in (torch.bfloat16, torch.float32):
        for total in (743, 225, 1.2):  # the last: what a call costs beside its bytes
            weights = torch.rand(300, generator=torch.Generator().manual_seed(1)) ** 3 + 0.01
            sizes = (weights / weights.sum() * total * 1e6 / dtype.itemsize / 2).long() * 2
            tensors = [torch.randn(int(n), device="cuda").to(dtype) for n in sizes]
            flat = torch.cat(tensors)
            assert cured.reduce(tensors, "norm2").norm2 == cured.norm2(flat)
            del flat
            tell("norm2 of 300 %s, %g MB" % (str(dtype)[6:], total), read=read(tensors),
                 cured=timed(lambda i: cured.reduce(tensors, "norm2"), rounds=30),
                 total_norm=timed(lambda i: cured.torch.total_norm(tensors).item(), rounds=30),
                 foreach_norm=timed(lambda i: torch.linalg.vector_norm(torch.stack(torch._foreach_norm(tensors))).item(), rounds=20),
                 get_total_norm=timed(lambda i: torch.nn.utils.get_total_norm(tensors).item(), rounds=20))
            if dtype == torch.bfloat16:
                parameters = [torch.nn.Parameter(t) for t in tensors]
                for p in parameters:
                    p.grad = p.detach().clone()

                def clip(way):
                    def call(i):
                        way(parameters, 1e9)
                        torch.cuda.synchronize()
                    return timed(call, rounds=15)

                tell("clip_grad_norm_ of them", torch=clip(torch.nn.utils.clip_grad_norm_), cured=clip(cured.torch.clip_grad_norm_))
                del parameters
            del tensors
            torch.cuda.empty_cache()


def many():
    tensors = [torch.randn(1024, device="cuda") for _ in range(10_000)]
    flat = torch.cat(tensors)
    assert cured.reduce(tensors, "norm2").norm2 == cured.norm2(flat)
    assert [r.norm2 for r in cured.reduce_each(tensors, "norm2")[::999]] == [cured.norm2(t) for t in tensors[::999]]
    tell("10,000 of 4 KiB, total", foreach_norm=timed(lambda i: torch.linalg.vector_norm(torch.stack(torch._foreach_norm(tensors))).item(),
                                                      rounds=7, warm=2),
         cured=timed(lambda i: cured.reduce(tensors, "norm2"), rounds=15, warm=3))
    tell("10,000 of 4 KiB, each", foreach_norm=timed(lambda i: torch.stack(torch._foreach_norm(tensors)).cpu(), rounds=7, warm=2),
         cured=timed(lambda i: cured.reduce_each(tensors, "norm2"), rounds=15, warm=3))


def ranks():
    """Medians and quantiles of 1 GiB, whose answers a sort confirms."""
    n = 1 << 28
    makes = (("f32, normal", lambda: torch.randn(n, device="cuda")),
             ("f32, constant", lambda: torch.full((n,), 2.5, device="cuda")),
             ("f32, two values in turn", lambda: torch.arange(n, device="cuda").remainder(2).float()),
             ("f32, sorted", lambda: torch.arange(n, device="cuda").float()),
             ("f32, any bits", lambda: torch.randint(-2**31, 2**31 - 1, (n,), device="cuda", dtype=torch.int32).view(torch.float32).nan_to_num(1.0)),
             ("f64, normal", lambda: torch.randn(n // 2, device="cuda", dtype=torch.float64)),
             ("bf16, normal", lambda: torch.randn(2 * n, device="cuda", dtype=torch.bfloat16)),
             ("i32, any", lambda: torch.randint(-2**31, 2**31 - 1, (n,), device="cuda", dtype=torch.int32)),
             ("u8, any", lambda: torch.randint(0, 256, (4 * n,), device="cuda", dtype=torch.uint8)))
    for name, make in makes:
        t = make()
        part = t[:1 << 26]
        order, places = part.sort().values.double(), [0.25, 0.5, 0.999]
        low = [int(q * (part.numel() - 1)) for q in places]
        true = [order[k].item() for k in low]
        assert cured.quantile(part, places, method="lower").tolist() == true, (name, cured.quantile(part, places, method="lower"), true)
        middle = part.numel() // 2
        assert cured.median(part) == (order[middle - 1].item() + order[middle].item()) / 2, name
        del order, part
        torch.cuda.empty_cache()
        tell("median of 1 GiB, " + name, torch=timed(lambda i: torch.median(t).item(), rounds=7, warm=2),
             cured=timed(lambda i: cured.median(t), rounds=15, warm=3), cured_sum=timed(lambda i: cured.sum(t), rounds=15, warm=3))
        tell("five quantiles of 1 GiB, " + name, cured=timed(lambda i: cured.quantile(t, [0.01, 0.25, 0.5, 0.75, 0.99]), rounds=9, warm=2))
        del t
        torch.cuda.empty_cache()
    for name, n in SIZES[:3]:
        t = torch.randn(n, device="cuda")
        tell("median of %s" % name, torch=timed(lambda i: torch.median(t).item()), cured=timed(lambda i: cured.median(t)))


def masks():
    """Sums under a mask of half, beside the plain sum and torch's ways. The share counts the mask's bytes."""
    for dtype, n in ((torch.float32, 1 << 28), (torch.float32, 1 << 22), (torch.float64, 1 << 27), (torch.bfloat16, 1 << 28)):
        t = torch.randn(n, device="cuda", dtype=dtype)
        m = torch.rand(n, device="cuda") < 0.5
        assert cured.reduce(t, "sum,norm2", where=m) == cured.reduce(t[m], "sum,norm2")
        plain, masked = timed(lambda i: cured.sum(t)), timed(lambda i: cured.sum(t, where=m))
        tell("sum under a mask, %s of %s" % (n, str(dtype)[6:]), masked=masked, plain=plain,
             torch_where=timed(lambda i: torch.where(m, t, 0).sum().item()), torch_select=timed(lambda i: t[m].sum().item(), rounds=20))
        print("%42s%.2f of the plain sum's rate" % ("", plain[0] / masked[0] * (t.itemsize + 1) / t.itemsize), flush=True)
        del t, m
        torch.cuda.empty_cache()


def swaths():
    """Along an axis under a mask of half, beside the same without a mask and torch's way. Answers of 64 MiB are compared with the CPU's."""
    ways = {"sum": lambda t, m, axis: torch.where(m, t, 0).sum(axis),
            "mean": lambda t, m, axis: torch.where(m, t, 0).sum(axis) / m.sum(axis),
            "max": lambda t, m, axis: torch.where(m, t, torch.finfo(t.dtype).min if t.is_floating_point() else torch.iinfo(t.dtype).min).amax(axis)}
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int32):
        size = torch.empty(0, dtype=dtype).itemsize
        for axis in (1, 0):
            few = (1 << 26) // size // 1024
            small = torch.randn(few, 1024, device="cuda").to(torch.int32 if dtype == torch.int32 else dtype)
            some = torch.rand(few, 1024, device="cuda") < 0.5
            many, mask = small.repeat(16, 1), some.repeat(16, 1)
            for op in ("sum", "mean", "max", "count_nonzero") + (("var",) if dtype.is_floating_point else ()):
                call = getattr(cured, op)
                assert (call(small, axis=axis, where=some) == call(small.cpu(), axis=axis, where=some.cpu())).all(), (op, dtype, axis)
                if op not in ways:
                    continue
                out = torch.empty(many.shape[1 - axis], device="cuda", dtype=dtype if op == "max" else torch.int64 if op == "sum" and dtype == torch.int32 else torch.float64)
                tell("%s of 1 GiB of %s, axis %d, masked" % (op, str(dtype)[6:], axis), cured=on_gpu(lambda i: call(many, axis=axis, where=mask, out=out), rounds=7, calls=2),
                     torch=on_gpu(lambda i: ways[op](many, mask, axis), rounds=7, calls=2), plain=on_gpu(lambda i: call(many, axis=axis, out=out), rounds=7, calls=2))
            del small, some, many, mask
            torch.cuda.empty_cache()


def axes():
    """Short arrays along an axis: sums and variances of normal numbers, and of the same where half are zeros. The GPU's time, in microseconds."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        for mib in (4, 8, 16, 32, 64, 256):
            rows = (mib << 20) // torch.empty(0, dtype=dtype).itemsize // 1024
            t = torch.randn(rows, 1024, device="cuda").to(dtype)
            zeros = torch.where(torch.rand(rows, 1024, device="cuda") < 0.5, t, 0).to(dtype)
            for axis in (1, 0):
                out, own = (torch.empty(t.shape[1 - axis], device="cuda", dtype=of) for of in (torch.float64, dtype))
                found = [on_gpu(lambda i: getattr(cured, op)(x, axis=axis, out=out), rounds=5, calls=30)[0] for op in ("sum", "var") for x in (t, zeros)]
                found += [on_gpu(lambda i: torch_op(t, axis, out=own), rounds=5, calls=30)[0] for torch_op in (torch.sum, torch.var)]
                print(str(dtype)[6:], mib, "axis", axis, "sum %.1f zeros %.1f var %.1f zeros %.1f torch.sum %.1f torch.var %.1f" % tuple(found), flush=True)


def shapes():
    """The GPU's time of sums along both axes of tensors of f32 of every shape, beside torch's. Every answer is the CPU's, bit for bit."""
    for mib in (4, 16, 64, 256):
        for rows in (1, 4, 16, 64, 256, 1024, 4096, 16384):
            tensors = [torch.randn(rows, (mib << 18) // rows, device="cuda") for _ in range(2 if mib > 64 else 4)]
            for axis in (0, 1):
                out, own = (torch.empty(tensors[0].shape[1 - axis], device="cuda", dtype=dtype) for dtype in (torch.float64, torch.float32))
                assert (cured.sum(tensors[0], axis=axis, out=out).cpu().numpy() == cured.sum(tensors[0].cpu(), axis=axis)).all()
                tell("sums of %d x %d, axis %d" % (*tensors[0].shape, axis), torch=on_gpu(lambda i: torch.sum(tensors[i % len(tensors)], axis, out=own)),
                     cured=on_gpu(lambda i: cured.sum(tensors[i % len(tensors)], axis=axis, out=out)))


def pairs():
    """Sums over two arrays beside a read of both, and torch's dot, which adds in the type."""
    for dtype, n in ((torch.float32, 1 << 28), (torch.float32, 1 << 24), (torch.float64, 1 << 27), (torch.bfloat16, 1 << 28)):
        a, b = (torch.randn(n, device="cuda", dtype=dtype) for _ in range(2))
        true = sum((a[i:i + (1 << 24)].double() * b[i:i + (1 << 24)].double()).sum().item() for i in range(0, n, 1 << 24))
        assert abs(cured.dot(a, b) - true) <= 1e-9 * n, (cured.dot(a, b), true)
        both = read([a, b])
        found = {"dot": timed(lambda i: cured.dot(a, b), rounds=30), "sqdist": timed(lambda i: cured.sqdist(a, b), rounds=30),
                 "average": timed(lambda i: cured.average(a, weights=b), rounds=30)}
        tell("pairs, %s of %s" % (n, str(dtype)[6:]), read=both, torch_dot=timed(lambda i: torch.dot(a, b).item(), rounds=30), **found)
        print("%42s%s of the read" % ("", ", ".join("%s %.2f" % (name, both[0] / times[0]) for name, times in found.items())), flush=True)
        del a, b
        torch.cuda.empty_cache()


def cells():
    """Masks along axes, and segments of what kernels by offsets have not. The answers of the first rows are the CPU's."""
    n, rows = 1 << 28, 1 << 18
    t, m = torch.randn(n, device="cuda").reshape(rows, -1), torch.rand(n, device="cuda").reshape(rows, -1) < 0.5
    whole = torch.randint(-1000, 1000, (n,), device="cuda", dtype=torch.int32)
    for axis in (1, 0):
        few, mask = (t[:4000] if axis == 0 else t[:100]).contiguous(), (m[:4000] if axis == 0 else m[:100]).contiguous()
        for op in ("sum", "max"):
            call = getattr(cured, op)
            assert (call(few, axis=axis, where=mask) == call(few.cpu().numpy(), axis=axis, where=mask.cpu().numpy())).all(), (op, axis)
        tell("sum of 1 GiB, axis %d, under a mask" % axis, cured=timed(lambda i: cured.sum(t, axis=axis, where=m), rounds=9, warm=2),
             torch_where=timed(lambda i: torch.where(m, t, 0).sum(axis).cpu(), rounds=9, warm=2), plain=timed(lambda i: cured.sum(t, axis=axis), rounds=9, warm=2))
    tell("max of 1 GiB under a mask", cured=timed(lambda i: cured.max(t, where=m), rounds=9, warm=2),
         torch_where=timed(lambda i: torch.where(m, t, -torch.inf).max().item(), rounds=9, warm=2), plain=timed(lambda i: cured.max(t), rounds=9, warm=2))
    for name, call, more in (("whole", cured.argmax, {}), ("rows", cured.argmax, {"axis": 1}), ("columns", cured.argmax, {"axis": 0}), ("rows", cured.ptp, {"axis": 1})):
        tell("%s of 1 GiB under a mask, %s" % (call.__name__, name), cured=timed(lambda i: call(t, where=m, **more), rounds=5, warm=2))
    flat = t.reshape(-1)
    for length in (32, 1024, 65536):
        offsets = torch.arange(0, n + 1, length, device="cuda")
        for op, data in (("min", flat), ("sum", whole), ("argmin", flat)):
            call, few = getattr(cured, op), data[:length * 50]
            assert (call(few, offsets=offsets[:51]) == call(few.cpu().numpy(), offsets=offsets[:51].cpu().numpy())).all(), (op, length)
            ways = {"cured": timed(lambda i: call(data, offsets=offsets), rounds=7, warm=2), "plain": timed(lambda i: call(data), rounds=9, warm=2)}
            if op == "min":
                ways["segment_reduce"] = timed(lambda i: torch.segment_reduce(data, "min", offsets=offsets).cpu(), rounds=5, warm=1)
            tell("%s of 1 GiB of %s, segments of %d" % (op, str(data.dtype)[6:], length), **ways)
    for groups in (16, 1024, 1 << 20):
        keys = torch.randint(groups, (n,), device="cuda", dtype=torch.int32)
        for op, data, dtype in (("argmax", flat, torch.uint64), ("bit_or", whole, torch.int32), ("bit_xor", whole, torch.int32), ("prod", whole, torch.int64)):
            call, more = getattr(cured, op), {"overflow": "wrap"} if op == "prod" else {}
            out = torch.zeros(groups, device="cuda", dtype=dtype)
            few = call(data[:200000], keys=keys[:200000], groups=groups, **more) if op not in ("argmax",) else None
            assert few is None or (few == call(data[:200000].cpu().numpy(), keys=keys[:200000].cpu().numpy(), groups=groups, **more)).all(), op
            tell("GPU's time, %s by %d keys" % (op, groups), cured=on_gpu(lambda i: call(data, keys=keys, groups=groups, out=out, **more), rounds=3, calls=1))
    keys = torch.randint(0, 250, (n,), device="cuda", dtype=torch.uint8)
    out = torch.zeros(250, device="cuda", dtype=torch.float64)
    tell("GPU's time by 250 keys of a byte", cured=on_gpu(lambda i: cured.sum(flat, keys=keys, groups=250, out=out), rounds=5, calls=4),
         masked=on_gpu(lambda i: cured.sum(flat, keys=keys, groups=250, where=m.reshape(-1), out=out), rounds=5, calls=4))
    torch.cuda.empty_cache()


def state(gib):
    """Tensors as a model of 7 billion parameters has, at this many GiB."""
    share = [4096 * 4096] * 4 + [11008 * 4096] * 3 + [4096] * 2
    sizes = [32000 * 4096] * 2 + share * 32 + [4096]
    scale = gib * (1 << 30) / (2 * sum(sizes))
    tensors = {"t%d" % i: torch.randn(max(int(n * scale), 8) // 8 * 8, device="cuda", dtype=torch.bfloat16) for i, n in enumerate(sizes)}
    bytes_all = sum(t.numel() * 2 for t in tensors.values())
    largest = max(tensors.values(), key=lambda t: t.numel())
    rate = largest.numel() * 2 / timed(lambda i: cured.max(largest), rounds=15)[0]
    stats, digests = cured.torch.stats(tensors), cured.torch.digest(tensors)
    assert stats["t3"].norm2 == cured.norm2(tensors["t3"])
    assert all(digests[name] == cured.digest(tensors[name].cpu().view(torch.uint8)) for name in ("t3", "t8", "t%d" % (len(sizes) - 1)))
    tell("state dict of %d bf16 tensors, %.1f GB" % (len(tensors), bytes_all / 1e9), read=(bytes_all / rate,) * 3,
         stats=timed(lambda i: cured.torch.stats(tensors), rounds=7, warm=1),
         digest=timed(lambda i: cured.torch.digest(tensors), rounds=7, warm=1),
         both=timed(lambda i: (cured.torch.stats(tensors), cured.torch.digest(tensors)), rounds=7, warm=1))


def main():
    parts = {part.__name__: part for part in (calls, graphs, norms, many, masks, pairs, ranks, keys, axes, shapes, swaths, cells, deterministic, state)}
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=14)
    parser.add_argument("--parts", default=",".join(parts))
    words = parser.parse_args()
    print("%s, torch %s, cured %s" % (torch.cuda.get_device_name(), torch.__version__, cured.__version__), flush=True)
    for part in words.parts.split(","):
        arguments = [words.gib] if part == "state" else []
        parts[part](*arguments)


if __name__ == "__main__":
    main()
