#!/usr/bin/env python3
"""cured.torch with the torch that is here (Debian 12: 1.13): one to seven ranks over gloo, random cuts, all types of floats: one set of
bits, which are those of exact arithmetic in fractions; clip_grad_norm_, stats, hand-made DTensors. And docs/PYTHON.md's example."""
import math
import multiprocessing
import os
import sys
import tempfile
import traceback
import unittest
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import torch
except ImportError as error:
    print("skipped: %s (package python3-torch: scripts/bootstrap --torch)" % error)
    sys.exit(77)
from support import Case, numpy, oracle, same  # noqa: E402
import reasons  # noqa: E402: tests/integration
import torch.distributed as dist  # noqa: E402

import cured.torch  # noqa: E402
from cured import _ranks  # noqa: E402

SEED = int(os.environ.get("CURED_TEST_SEED", "20260131"))
RANKS = 7
HANG_S = 120
INF = float("inf")
BITS = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 24, torch.float64: 53}
LEAST = {torch.bfloat16: -133, torch.float16: -24, torch.float32: -149, torch.float64: -1074}
MOST = {torch.bfloat16: 2**128, torch.float16: 2**16, torch.float32: 2**128, torch.float64: 2**1024}


# ---- The oracle: fractions, rounded once ----

def rounded(value, dtype, is_root=False):
    """The value, or its square root, as a float of the type: to nearest, ties to even."""
    if value == 0:
        return 0.0
    if is_root:  # to 200 bits more than any type has, and a last bit that says whether that is all
        shift = 2 * (1400 if value < 1 else 200)
        whole = (value.numerator << shift) // value.denominator
        root = math.isqrt(whole)
        exact = root * root == whole and (value.numerator << shift) % value.denominator == 0
        value = Fraction(2 * root + (not exact), 2 << (shift // 2))
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= value < Fraction(2)**exponent
    unit = Fraction(2)**max(exponent - BITS[dtype] + 1, LEAST[dtype])
    value = round(value / unit) * unit
    return INF if value >= MOST[dtype] else float(value)


def norm_of(tensors, ord, dtype):
    values = [x for t in tensors for x in t.double().reshape(-1).tolist()]
    if any(map(math.isnan, values)):
        return math.nan
    if any(map(math.isinf, values)):
        return INF
    if ord == INF:
        return rounded(max([Fraction(abs(x)) for x in values], default=Fraction(0)), dtype)
    total = sum((Fraction(abs(x))**ord for x in values), Fraction(0))
    answer = rounded(total, dtype, ord == 2)
    if ord == 1 and dtype == torch.float64:
        assert same(answer, math.fsum(map(abs, values)))
    return answer


# ---- Ranks ----

def cases():
    """(name, tensors, ord, dtype): each tensor is cut over ranks, or goes to one whole."""
    made = torch.Generator().manual_seed(SEED)

    def some(dtype, n, size=1.0):
        return (torch.randn(n, generator=made, dtype=torch.float64) * torch.exp2(torch.randint(-8, 9, (n,), generator=made)) * size).to(dtype)
    listed = []
    for dtype in BITS:
        for ord in (1, 2, INF):
            listed.append((str(dtype), [some(dtype, 400), some(dtype, 3), some(dtype, 0), some(dtype, 57, 2.0**-6)], ord, None))
    mixed = [some(torch.float16, 50), some(torch.bfloat16, 70, 2.0**60), some(torch.float32, 90, 2.0**-60)]
    for ord in (1, 2, INF):
        listed.append(("mixed", mixed, ord, None))
        listed.append(("with f64", mixed + [some(torch.float64, 9, 2.0**-300)], ord, None))
        for dtype in BITS:
            listed.append(("to %s" % dtype, mixed[::2], ord, dtype))
        for special in ([math.nan], [INF], [-INF, INF], [INF, math.nan]):
            listed.append((str(special), [some(torch.float32, 20), torch.tensor(special, dtype=torch.bfloat16)], ord, None))
        listed.append(("nothing", [], ord, None))
        listed.append(("tiny", [torch.full((5,), 5e-324, dtype=torch.float64), torch.tensor([2.0**-149])], ord, None))
    return listed


def cut(tensors, ranks, seed):
    """For each rank its list: pieces of each tensor between random cuts, which may be empty, dealt at random."""
    made = numpy.random.default_rng(seed)
    lists = [[] for _ in range(ranks)]
    for tensor in tensors:
        cuts = sorted(made.integers(0, len(tensor) + 1, ranks - 1)) if made.integers(0, 3) else [len(tensor)] * (ranks - 1)
        ends = [0, *cuts, len(tensor)]
        for rank, piece in enumerate(made.permutation(ranks)):
            if made.integers(0, 4) or ends[piece] < ends[piece + 1]:
                lists[rank].append(tensor[ends[piece]:ends[piece + 1]])
    return lists


def value_of(tensor):
    return str(tensor.dtype), float(tensor)


def clipped(parts, group):
    """The norm and the gradients of one rank after clip_grad_norm_."""
    parameters = [torch.nn.Parameter(torch.zeros_like(part)) for part in parts] + [torch.nn.Parameter(torch.ones(2))]
    for parameter, part in zip(parameters, parts):
        parameter.grad = part.clone()
    norm = cured.torch.clip_grad_norm_(parameters, 1.0, group=group)
    return value_of(norm), [p.grad.double().tolist() for p in parameters[:-1]]


class Placement:
    def __init__(self, kind):
        self.kind, _, axis = kind.partition(" ")
        self.dim = int(axis or 0)

    def is_shard(self):
        return self.kind == "shard"

    def is_replicate(self):
        return self.kind == "replicate"

    def is_partial(self):
        return self.kind == "partial"


class Mesh:
    """2 x 3 ranks, of the first six."""
    ndim = 2

    def __init__(self, rank):
        self.at = divmod(rank, 3) if rank < 6 else None
        groups = [[dist.new_group([k, k + 3]) for k in range(3)], [dist.new_group([0, 1, 2]), dist.new_group([3, 4, 5])]]
        self.groups = None if self.at is None else (groups[0][self.at[1]], groups[1][self.at[0]])

    def get_coordinate(self):
        return self.at

    def get_group(self, axis):
        return self.groups[axis]

    def size(self, axis):
        return (2, 3)[axis]


class Sharded:
    """What cured.torch knows a DTensor by, over a hand-made mesh."""

    def __init__(self, mesh, kinds, own):
        self.device_mesh, self.placements, self.own, self.device = mesh, [Placement(kind) for kind in kinds], own, own.device

    def to_local(self):
        return self.own

    def redistribute(self, mesh, placements):
        own = self.own.clone()
        for axis, (before, after) in enumerate(zip(self.placements, placements)):
            if before.is_partial():
                assert after.is_replicate()
                dist.all_reduce(own, group=mesh.get_group(axis))
        return Sharded(mesh, [p.kind for p in placements], own)


def on_mesh(rank):
    """Replicas, shards and partial sums together, and a plain tensor that all ranks have."""
    mesh = Mesh(rank)
    if rank >= 6:
        return None
    _ranks._replicate = lambda: Placement("replicate")
    row, column = mesh.at
    whole = torch.arange(12.0) + 0.1
    tensors = [Sharded(mesh, ("shard", "shard"), whole.reshape(2, 3, 2)[row, column]), Sharded(mesh, ("replicate", "shard"), whole.reshape(3, 4)[column]),
               Sharded(mesh, ("replicate", "replicate"), whole), Sharded(mesh, ("partial", "replicate"), torch.full((4,), 1.0 + row)),
               torch.full((3,), 2.0)]
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    group = [value_of(cured.torch.total_norm(tensors, ord)) for ord in (1, 2, INF)]
    return group


class Placed(Sharded):
    """A DTensor's shape and type, too."""

    def __init__(self, mesh, kinds, whole):
        own = whole
        for k, kind in enumerate(kinds):
            placement = Placement(kind)
            if mesh.at is not None and placement.is_shard():
                pieces = own.chunk((2, 3)[k], placement.dim)
                own = pieces[mesh.at[k]] if mesh.at[k] < len(pieces) else own.narrow(placement.dim, 0, 0)
        super().__init__(mesh, kinds, own)
        self.shape, self.dtype = whole.shape, whole.dtype

    def numel(self):
        return self.shape.numel()

    def is_complex(self):
        return False


def weights():
    """A transformer's tensors, and their placements over 2 x 3 ranks."""
    made = torch.Generator().manual_seed(SEED)
    return {"up": (torch.randn(30, 14, generator=made).to(torch.bfloat16), ("shard 1", "shard 0")),
            "down": (torch.randn(14, 30, generator=made), ("replicate", "shard 1")),
            "both": (torch.randn(25, 3, generator=made), ("shard 0", "shard 0")),
            "experts": (torch.randn(4, 5, 6, generator=made).double(), ("shard 0", "shard 2")),
            "norm": (torch.randn(17, generator=made), ("replicate", "replicate")), "mask": (torch.arange(9) % 3 == 0, None)}


def digested(rank):
    mesh = Mesh(rank)
    model = {name: whole if kinds is None else Placed(mesh, kinds, whole) for name, (whole, kinds) in weights().items()}
    found = cured.torch.digest(model)
    model["down"].placements[0] = Placement("shard 1")  # the ranks of one row say that they have what they have not
    try:
        cured.torch.digest(model)
    except (ValueError, RuntimeError) as error:
        return found, type(error).__name__
    return found, None


def failing(rank, group):
    """One rank has a tensor that it cannot answer for: no rank may hang."""
    try:
        cured.torch.total_norm([torch.arange(3) if rank == 1 else torch.ones(3)], group=group)
    except (TypeError, RuntimeError) as error:
        return type(error).__name__, str(error)
    return None


def work(rank, store, pipe):
    """One rank: everything that the tests ask, in one world."""
    try:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=RANKS)
        groups = [dist.new_group(list(range(ranks))) for ranks in range(1, RANKS + 1)]
        answers = {}
        for ranks, group in enumerate(groups, 1):
            if rank >= ranks:
                continue
            for index, (_, tensors, ord, dtype) in enumerate(cases()):
                own = cut(tensors, ranks, SEED + 100 * index + ranks)[rank]
                answers[ranks, index] = value_of(cured.torch.total_norm(own, ord, dtype, group))
            answers[ranks, "clip"] = clipped(cut(cases()[6][1], ranks, SEED + ranks)[rank], group)
        answers["mesh"] = on_mesh(rank)
        answers["digests"] = digested(rank)
        answers["failed"] = failing(rank, dist.group.WORLD)
        answers["world"] = value_of(cured.torch.total_norm([torch.ones(4)], group=dist.group.WORLD))
        pipe.send(answers)
    except BaseException:
        pipe.send(traceback.format_exc())
    finally:
        pipe.close()
        os._exit(0)  # gloo's threads are of no interest any more


class Ranks(Case):
    @classmethod
    def setUpClass(cls):
        """Ranks are forked, because torch takes seconds to load."""
        context = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory() as folder:
            ends = []
            for rank in range(RANKS):
                mine, theirs = context.Pipe(duplex=False)
                process = context.Process(target=work, args=(rank, os.path.join(folder, "store"), theirs), daemon=True)
                process.start()
                theirs.close()
                ends.append((process, mine))
            cls.answers = [mine.recv() if mine.poll(HANG_S) else "rank %d hangs" % rank for rank, (_, mine) in enumerate(ends)]
            for process, _ in ends:
                process.kill()
        for answer in cls.answers:
            if isinstance(answer, str):
                raise AssertionError(answer)

    def test_one_set_of_bits(self):
        for index, (name, tensors, ord, dtype) in enumerate(cases()):
            kind = torch.float32 if not tensors else tensors[0].dtype
            for tensor in tensors:
                kind = torch.promote_types(kind, tensor.dtype)
            kind = dtype or kind
            wanted = (str(kind), norm_of(tensors, ord, kind))
            own = value_of(cured.torch.total_norm(tensors, ord, dtype))
            for ranks in range(1, RANKS + 1):
                for rank in range(ranks):
                    got = self.answers[rank][ranks, index]
                    what = "%s, ord %s, rank %d of %d, seed %d" % (name, ord, rank, ranks, SEED)
                    self.assertEqual((wanted[0], own[0]), (got[0], got[0]), what)
                    self.assert_same(wanted[1], got[1], what)
                    self.assert_same(own[1], got[1], what)

    def test_clip(self):
        """The same norm and the same gradients for any cut."""
        tensors = cases()[6][1]
        norm, whole = clipped(tensors, None)
        exact = norm_of(tensors, 2, torch.float64)
        coefficient = 1.0 / (exact + 1e-6)
        self.assertEqual([(t * coefficient).tolist() for t in tensors], whole)
        self.assertLess(abs(norm_of([torch.tensor(x) for x in whole], 2, torch.float64) - 1), 1e-5)
        for ranks in range(1, RANKS + 1):
            got = [self.answers[rank][ranks, "clip"] for rank in range(ranks)]
            self.assertEqual([norm] * ranks, [each[0] for each in got])
            self.assertEqual(sorted(x for t in whole for x in t), sorted(x for each in got for t in each[1] for x in t))

    def test_meshes(self):
        """Shards once, replicas once, partial sums reduced first (1 + 2), plain tensors once."""
        whole = torch.arange(12.0) + 0.1
        tensors = [whole, whole, whole, torch.full((4,), 3.0), torch.full((3,), 2.0)]
        wanted = [("torch.float32", norm_of(tensors, ord, torch.float32)) for ord in (1, 2, INF)]
        self.assertEqual([wanted] * 6 + [None], [answer["mesh"] for answer in self.answers])

    def test_digests(self):
        """Every rank has the digests of the whole tensors; a wrong placement is found."""
        raws = {name: whole.view(torch.uint8).numpy().tobytes() for name, (whole, _) in weights().items()}
        wanted = {name: "cd1-%016x%016x-%d" % (*oracle.digest(raw), len(raw)) for name, raw in raws.items()}
        for answer in self.answers:
            self.assertEqual(wanted, answer["digests"][0])
            self.assertIsNotNone(answer["digests"][1])
        self.assertEqual(wanted, cured.torch.digest({name: whole for name, (whole, _) in weights().items()}))
        self.assertEqual(wanted["down"], cured.torch.digest(weights()["down"][0]))

    def test_failures(self):
        """A rank that cannot answer raises why; the others say that one could not, and the group goes on."""
        for rank, answer in enumerate(self.answers):
            name, words = answer["failed"]
            self.assertEqual(("TypeError", True) if rank == 1 else ("RuntimeError", True),
                             (name, ("torch.int64 is no type of floats" if rank == 1 else "another rank of the group") in words))
            self.assertEqual(("torch.float32", norm_of([torch.ones(28)], 2, torch.float32)), answer["world"])


class Norms(Case):
    def test_kinds_of_tensors(self):
        a = torch.arange(24.0).reshape(4, 6) - 7
        wanted = cured.torch.total_norm(a)
        self.assertEqual((torch.float32, ()), (wanted.dtype, tuple(wanted.shape)))
        for same_one in (a.t(), [a[:2], a[2:]], (a,), iter([a]), torch.nn.Parameter(a), a.to_sparse(), [torch.zeros(0), a]):
            self.assertEqual(wanted, cured.torch.total_norm(same_one))
        z = torch.view_as_complex(a.reshape(-1, 2).contiguous())
        self.assertEqual(wanted, cured.torch.total_norm(z))
        self.assertEqual(wanted, cured.torch.total_norm(z.conj()))
        self.assertEqual(wanted, cured.torch.total_norm([z.real, z.conj().imag]))
        self.assertEqual((0.0, torch.float32), (float(cured.torch.total_norm([])), cured.torch.total_norm([]).dtype))
        self.assertEqual(torch.float64, cured.torch.total_norm([], dtype=torch.float64).dtype)

    def test_negated_views(self):
        """On what client/python/tensor.c relies: torch negates imaginary parts alone, lets nobody see one as of another type, and hands
        them on as they are."""
        for kind, real in ((torch.complex64, torch.float32), (torch.complex128, torch.float64)):
            view = torch.view_as_complex(torch.arange(12, dtype=real).reshape(6, 2)).conj().imag
            closed = view.as_strided((6,), (1,))
            self.assertEqual((True, True, True, real), (view.is_neg(), closed.is_neg(), closed.is_contiguous(), view.dtype))
            self.assertEqual((view * -1).tolist(), torch.from_dlpack(view).tolist())
            for other in (torch.int32, torch.int64, torch.bfloat16, torch.uint8, torch.float16):
                self.assertFalse(view.to(other).is_neg())
                for negated in (view, closed):
                    with self.assertRaisesRegex(RuntimeError, "negative bit"):
                        negated.view(other)
            for negated in (view, closed, closed[:1]):
                for call in (lambda t: cured.sum(t), lambda t: cured.sum([t, t]), lambda t: cured.max(t, axis=0)):
                    with self.assertRaisesRegex(TypeError, "is_neg.*resolve_neg"):
                        call(negated)
                    call(negated.resolve_neg())
            self.assertEqual(float(view.sum()), cured.sum(view.resolve_neg()))

    def test_complex_numbers(self):
        """Of every layout that of the same numbers in NumPy's array."""
        ops = ("sum", "mean", "sumsq", "norm2", "var", "std", "count", "count_nonzero", "count_nan", "any", "all", "digest")
        for dtype in (torch.complex64, torch.complex128):
            t = torch.randn(6, 5, dtype=dtype)
            a = t.numpy()
            for x, y in ((t, a), (t.mT, a.T), (t.conj(), a.conj()), (t.conj().mT[::2], a.conj().T[::2]), (t.clone().requires_grad_(), a), (t[:, 1], a[:, 1]),
                         (t[0, 0], a[0, 0]), (t[:0], a[:0])):
                self.assertEqual(repr(cured.reduce(y, ops)), repr(cured.reduce(x, ops)))
                self.assertEqual(numpy.asarray(cured.sum(y, axis=-1 if x.ndim else None)).tobytes(), numpy.asarray(cured.sum(x, axis=-1 if x.ndim else None)).tobytes())
            self.assertEqual(cured.sum(a, where=a.real > 0), cured.sum(t, where=t.real > 0))
            self.assertEqual(cured.norm2([a, a]), cured.norm2([t, t.conj()]))
            self.assertEqual(cured.vecdot(a, a[0]).tobytes(), cured.vecdot(t, t[0]).tobytes())
            self.assertEqual(cured.torch.digest(t), cured.digest(t))
            out = torch.zeros(5, dtype=torch.complex64)
            self.assertIs(out, cured.sum(t, axis=0, out=out))
            self.assertEqual(cured.sum(a, axis=0, dtype="complex64").tobytes(), out.numpy().tobytes())
            self.assertEqual(cured.sum(a, dtype="complex64"), cured.sum(t, dtype=torch.complex64))
        for words, call in (("no order", lambda: cured.max(t)), ("a partial has no", lambda: cured.partial(t, "sum")), ("not reduced", lambda: cured.sum(torch.zeros(2, dtype=torch.complex32)))):
            with self.assertRaisesRegex(TypeError, words):
                call()

    def test_gaps(self):
        """What is copied before a GPU is asked: a tensor with gaps or repeats, and no tensor that is in another order alone."""
        a = torch.arange(120.0).reshape(2, 3, 4, 5)
        for same_one in (a, a.permute(3, 1, 0, 2), a[:, :1].contiguous(), a.to(memory_format=torch.channels_last), torch.zeros(()),
                         torch.zeros(0, 3), torch.zeros(1, 5)[:, :5], a[:1]):
            self.assertIs(same_one, cured.torch._dense(same_one))
        for other in (a[:, ::2], a[..., :4], torch.ones(1).expand(6), torch.ones(3, 1).expand(3, 4), a[:, 1]):
            copy = cured.torch._dense(other)
            self.assertTrue(copy.is_contiguous() and torch.equal(copy, other))
        self.assertEqual(norm_of([a[..., ::2]], 2, torch.float32), float(cured.torch.total_norm(a[..., ::2])))

    def test_exact(self):
        """Where a float's own sum is lost: 4,096 ones beside 2^13."""
        t = [torch.full((1,), 2.0**13), torch.ones(4096)]
        self.assert_same(norm_of(t, 2, torch.float32), float(cured.torch.total_norm(t)))
        big = [torch.full((3,), 3e38)]
        self.assertEqual(INF, float(cured.torch.total_norm(big)))
        self.assert_same(norm_of(big, 2, torch.float64), float(cured.torch.total_norm(big, dtype=torch.float64)))

    def test_refused(self):
        for call, error, words in ((lambda: cured.torch.total_norm([torch.ones(2)], 3), ValueError, "ord: 3, must be 1, 2 or inf"),
                                   (lambda: cured.torch.total_norm([torch.arange(3)]), TypeError, "torch.int64 is no type of floats"),
                                   (lambda: cured.torch.total_norm([numpy.ones(3)]), TypeError, "a torch.Tensor is wanted"),
                                   (lambda: cured.torch.total_norm([torch.ones(2)], dtype=torch.int64), TypeError, "dtype: torch.int64"),
                                   (lambda: cured.torch.total_norm(torch.ones(2, dtype=torch.complex64), 1), TypeError, "complex"),
                                   (lambda: cured.torch.clip_grad_norm_([], 1.0, 0.5), ValueError, "ord: 0.5")):
            with self.assertRaisesRegex(error, words):
                call()


class Clip(Case):
    def parameters(self, *gradients):
        made = []
        for gradient in gradients:
            made.append(torch.nn.Parameter(torch.zeros(2, dtype=torch.float32 if gradient is None else gradient.dtype)))
            made[-1].grad = gradient
        return made

    def test_as_torch(self):
        """Beside torch's own, with its arguments by position: the same within its own rounding."""
        for norm_type in (1, 2.0, INF, "inf"):
            for limit in (0.5, 100.0):
                ours, theirs = (self.parameters(torch.tensor([3.0, -4.0]), None, torch.tensor([12.0, 0.0])) for _ in range(2))
                got = cured.torch.clip_grad_norm_(ours, limit, norm_type, False)
                wanted = torch.nn.utils.clip_grad_norm_(theirs, limit, float(norm_type))
                torch.testing.assert_close(wanted, got)
                for a, b in zip(ours, theirs):
                    self.assertEqual(a.grad is None, b.grad is None)
                    if a.grad is not None:
                        torch.testing.assert_close(b.grad, a.grad)

    def test_untouched(self):
        """A coefficient of 1 multiplies nothing."""
        p, = self.parameters(torch.tensor([3.0, 4.0]))
        version = p.grad._version
        self.assertEqual(5.0, float(cured.torch.clip_grad_norm_(p, 6)))
        self.assertEqual((version, [3.0, 4.0]), (p.grad._version, p.grad.tolist()))
        self.assertEqual(0.0, float(cured.torch.clip_grad_norm_([], 1.0)))

    def test_not_finite(self):
        for bad in (math.nan, INF):
            p, = self.parameters(torch.tensor([bad, 1.0]))
            with self.assertRaisesRegex(RuntimeError, "total norm of the gradients is"):
                cured.torch.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
            self.assertEqual(1.0, float(p.grad[1]))
            self.assertEqual(str(torch.tensor(bad)), str(cured.torch.clip_grad_norm_([p], 1.0)))
            self.assertTrue(math.isnan(float(p.grad[0])))

    def test_foreach_and_types(self):
        for foreach in (None, False, True):
            p = self.parameters(torch.tensor([3.0, 4.0], dtype=torch.bfloat16), torch.tensor([12.0, 0.0], dtype=torch.float64))
            norm = cured.torch.clip_grad_norm_(p, 1.0, foreach=foreach)
            self.assertEqual((torch.float64, 13.0), (norm.dtype, float(norm)))
            coefficient = 1.0 / (13.0 + 1e-6)
            self.assertEqual(12.0 * coefficient, float(p[1].grad[0]))
            self.assertEqual(torch.tensor(3 * coefficient).bfloat16(), p[0].grad[0])


class Stats(Case):
    def test_every_type(self):
        for dtype in (*BITS, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool):
            t = torch.tensor([[3, 0, 5], [1, 0, 100]]).to(dtype)
            got = cured.torch.stats({"t": t})["t"]
            values = t.double().flatten().tolist()
            mean = Fraction(sum(map(Fraction, values)), 6)
            variance = sum((Fraction(x) - mean)**2 for x in values) / 6
            kind = bool if dtype == torch.bool else float if dtype in BITS else int
            self.assertEqual(cured.torch.STATS, list(got))
            self.assert_same(kind(max(values)), got.max)
            self.assert_same(kind(min(values)), got.min)
            self.assertEqual((6, 0, 0), (got.count, got.count_nan, got.count_inf))
            self.assertEqual((float(mean), rounded(variance, torch.float64, True)), (got.mean, got.std))
            self.assert_same(norm_of([t], 2, torch.float64), got.norm2)

    def test_not_finite(self):
        for dtype in BITS:
            t = torch.tensor([1.0, math.nan, INF, -INF, 2.0, INF]).to(dtype)
            r = cured.torch.stats({"t": t})["t"]
            self.assertEqual((6, 1, 3, -INF, INF, INF), (r.count, r.count_nan, r.count_inf, r.min, r.max, r.norm2))
            self.assertTrue(math.isnan(r.mean) and math.isnan(r.std))
        t = torch.tensor([1.0, math.nan, 3.0])
        self.assertEqual((2.0, 1.0, 1.0, 3.0, 3), tuple(cured.torch.stats({"t": t})["t"][k] for k in ("mean", "std", "min", "max", "count")))
        kept = cured.torch.stats({"t": t}, nan="propagate", ddof=1)["t"]
        self.assertTrue(all(math.isnan(kept[k]) for k in ("mean", "std", "min", "max", "norm2")) and kept.count_nan == 1)
        self.assertEqual(1.0, cured.torch.stats({"t": torch.tensor([1.0, 2.0, 3.0])}, ddof=1)["t"].std)

    def test_modules(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        got = cured.torch.stats(model)
        self.assertEqual(list(model.state_dict()), list(got))
        self.assertEqual(0, got["1.num_batches_tracked"].max)
        self.assertEqual(["0.weight", "0.bias", "1.weight", "1.bias"], list(cured.torch.stats(model.named_parameters())))
        self.assertEqual({}, cured.torch.stats({"name": "x", "none": None}))

    def test_no_answer(self):
        got = cured.torch.stats({"empty": torch.ones(0), "complex": torch.ones(2, dtype=torch.complex64),
                                 "meta": torch.empty(2, device="meta"), "nan": torch.tensor([math.nan])})
        self.assertEqual((0, 0.0, 1), (got["empty"].count, got["empty"].norm2, got["nan"].count_nan))
        for name, error in (("empty", ValueError), ("nan", ValueError), ("complex", TypeError), ("meta", TypeError)):
            with self.assertRaises(error):
                got[name].max
        with self.assertRaisesRegex(ValueError, "nan: 'x', must be"):
            cured.torch.stats({}, nan="x")


@unittest.skipUnless(hasattr(torch.library, "custom_op"), "torch %s has no custom ops: 2.4 has" % torch.__version__)
class Compiled(Case):
    def test_fake_kernels(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            t = [torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.float16)]
            self.assertEqual(torch.float32, torch.ops.cured.total_norm(t, 2.0).dtype)
            self.assertEqual(torch.float64, torch.ops.cured.reduce(t[0], "sum").dtype)
        torch.library.opcheck(torch.ops.cured.total_norm, ([torch.ones(3), torch.ones(2)], 2.0))
        torch.library.opcheck(torch.ops.cured.reduce, (torch.ones(3), "sum"))

    def test_whole_graph(self):
        """With no break in the graph, and the same bits."""
        def scaled(a, b):
            return a / cured.torch.total_norm([a, b])
        a, b = torch.randn(100), torch.randn(9)
        self.assertTrue(torch.equal(scaled(a, b), torch.compile(scaled, fullgraph=True, backend="aot_eager")(a, b)))


def example():
    """
>>> import torch, cured.torch
>>> gradients = [torch.full((1,), 2.0**13), torch.ones(4096)]
>>> cured.torch.total_norm(gradients)
tensor(8192.2500)
>>> p = torch.nn.Parameter(torch.zeros(2))
>>> p.grad = torch.tensor([3.0, 4.0])
>>> cured.torch.clip_grad_norm_([p], 1.0), p.grad
(tensor(5.), tensor([0.6000, 0.8000]))
>>> r = cured.torch.stats({"weight": torch.tensor([1.0, float("nan"), 3.0, float("inf")])})["weight"]
>>> r.count, r.count_nan, r.count_inf, r.min
(4, 1, 1, 1.0)
    """


class Page(Case):
    def test_example(self):
        self.assert_example(example, 8)


if __name__ == "__main__":
    reasons.main()
