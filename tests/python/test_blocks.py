"""Partials of blocks of a larger array: rows, columns, boxes, merged in any order to the answers of the whole, by Python's integers."""
import asyncio
import itertools
import random
import tempfile

import numpy as np
from support import NUMPY, Case, cured, oracle, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

OPS = ["digest", "argmin", "argmax", "min", "max", "sum", "count"]
TYPES = list(NUMPY)


def cut(r, shape):
    """Blocks, as starts and extents, that tile the shape: every axis is cut by itself at random places."""
    axes = []
    for n in shape:
        cuts = sorted({0, n, *(r.randrange(n + 1) for _ in range(r.randrange(3)))})
        axes.append(list(zip(cuts, cuts[1:])) or [(0, 0)])
    return [(tuple(a for a, _ in box), tuple(b - a for a, b in box)) for box in itertools.product(*axes)]


def view(a, start, extent):
    return a[tuple(slice(s, s + e) for s, e in zip(start, extent))]


def random_array(r, shape, dtype):
    raw = r.randbytes(int(np.prod(shape, dtype="i8")) * np.dtype(dtype).itemsize)
    a = np.frombuffer(raw, "u1").copy()
    return ((a & 1).view("?") if dtype == "?" else a.view(dtype)).reshape(shape)


class Blocks(Case):
    def check(self, a, parts, ops):
        merged = cured.merge(parts).finish(ops)
        self.assertEqual("cd1-%016x%016x-%d" % (*oracle.digest(a.tobytes()), a.nbytes), merged.digest)
        whole = cured.reduce(a, ops)
        for op in ops:
            self.assertEqual(repr(whole[op]), repr(merged[op]), (op, a.dtype, a.shape))

    def test_boxes(self):
        r = random.Random(32)
        for case in range(300):
            shape = tuple(r.randrange(1, 8) for _ in range(r.randrange(6)))
            a = random_array(r, shape, NUMPY[r.choice(TYPES)])
            boxes = cut(r, shape)
            r.shuffle(boxes)
            parts = [cured.partial(view(a, s, e), OPS, shape=shape, start=s) for s, e in boxes]
            while len(parts) > 2:  # in groups of any size, as a tree has them
                k = r.randrange(2, len(parts) + 1)
                parts = [cured.merge(parts[:k])] + parts[k:]
                r.shuffle(parts)
            self.check(a, parts, OPS)

    def test_large(self):
        """Longer runs than a turn folds, and as columns shorter ones; views in any order of memory."""
        r = random.Random(33)
        a = random_array(r, (450, 600), "<u2").astype("<f4")
        for boxes in ([((0, 0), (200, 600)), ((200, 0), (250, 600))], [((0, k), (450, 150)) for k in range(0, 600, 150)],
                      [((0, 0), (450, 3)), ((0, 3), (450, 597))]):
            for x in (a, np.asfortranarray(a), a.astype(">f4")):
                parts = [cured.partial(view(x, s, e), OPS, shape=a.shape, start=s) for s, e in boxes]
                self.check(a, parts[::-1], OPS)

    def test_missing_and_doubled(self):
        r = random.Random(34)
        for case in range(60):
            shape = tuple(r.randrange(2, 7) for _ in range(r.randrange(1, 5)))
            a = random_array(r, shape, "<i4")
            boxes = cut(r, shape)
            parts = [cured.partial(view(a, s, e), "digest", shape=shape, start=s) for s, e in boxes if min(e) > 0]
            missing = r.randrange(len(parts))
            rest = parts[:missing] + parts[missing + 1:]
            if rest:
                with self.assertRaisesRegex(ValueError, "a part is missing, or there twice"):
                    cured.merge(rest).finish("digest")
                if rest[0].count <= parts[missing].count:
                    with self.assertRaisesRegex(ValueError, "there twice"):
                        cured.merge(rest + rest[:1]).finish("digest")
            with self.assertRaisesRegex(ValueError, "there twice"):
                cured.merge(parts + parts[:1]).finish("digest")

    def test_with_ranges(self):
        """Parts that say first, and linear forms, go together with blocks."""
        a = np.arange(60, dtype="i8").reshape(5, 12)
        head = cured.partial(a[:2], "digest,argmax", first=0)
        rest = [cured.partial(a[2:, :7], "digest,argmax", shape=a.shape, start=(2, 0)),
                cured.partial(a[2:, 7:], "digest,argmax", shape=a.shape, start=(2, 7))]
        for order in itertools.permutations([head] + rest):
            self.check(a, order, ["digest", "argmax"])
        sums = sum(cured.partial(x, "digest", shape=a.shape, start=s).linear() for x, s in ((a[:, :5], (0, 0)), (a[:, 5:], (0, 5))))
        self.assertEqual(cured.digest(a), cured.from_linear(sums, a.dtype, "digest").finish("digest").digest)
        far = cured.partial(a, "digest,argmax", first=1)
        for parts in ([far, rest[0]], [rest[0], far]):
            with self.assertRaisesRegex(ValueError, "beyond the end"):
                cured.merge(parts)
        other = cured.partial(a[2:, :7], "digest,argmax", shape=(6, 12), start=(2, 0))
        with self.assertRaisesRegex(ValueError, "60 elements|72 elements"):
            cured.merge([other, rest[0]])
        with self.assertRaisesRegex(ValueError, "position"):
            cured.merge([cured.partial(a, "max", first=None), cured.partial(a, "max", shape=a.shape, start=(0, 0))])

    def test_sharded(self):
        """What tensor and expert parallel ranks hold of a transformer's tensors, and FSDP's ranges, come to the file's digest."""
        r = random.Random(35)
        up, experts = random_array(r, (96, 40), "<u2"), random_array(r, (8, 24, 40), "<u2")
        for ranks in (2, 4):
            rows = [cured.partial(x, "digest", shape=up.shape, start=(i * 96 // ranks, 0)) for i, x in enumerate(np.split(up, ranks))]
            columns = [cured.partial(x, "digest", shape=up.shape, start=(0, i * 40 // ranks))
                       for i, x in enumerate(np.split(up, ranks, 1))]
            flat = [cured.partial(x, "digest", first=i * up.size // ranks) for i, x in enumerate(np.split(up.ravel(), ranks))]
            for parts in (rows, columns, flat):
                self.check(up, parts, ["digest"])
            both = [cured.partial(experts[e:e + 2, :, k:k + 10], "digest", shape=experts.shape, start=(e, 0, k))
                    for e in range(0, 8, 2) for k in range(0, 40, 10)]
            self.check(experts, both, ["digest"])
            swapped = [cured.partial(x, "digest", shape=up.shape, start=(0, (ranks - 1 - i) * 40 // ranks))
                       for i, x in enumerate(np.split(up, ranks, 1))]
            self.assertNotEqual(cured.digest(up), cured.merge(swapped).finish("digest").digest)

    def test_files_and_kept_bytes(self):
        a = np.arange(60, dtype="<f8").reshape(5, 12)
        with tempfile.NamedTemporaryFile() as f:
            a[3:].tofile(f.name)
            tail = cured.partial(np.fromfile(f.name).reshape(2, 12), OPS, shape=a.shape, start=(3, 0))
        head = cured.Partial(bytes(cured.partial(a[:3], OPS, shape=a.shape, start=(0, 0))))
        self.check(a, [tail, head], OPS)
        self.assertEqual(3, bytes(head)[2])

    def test_empty(self):
        for shape, extent in (((0, 4), (0, 4)), ((3, 4), (0, 4)), ((0,), (0,))):
            nothing = cured.partial(np.zeros(extent), "digest,count", shape=shape, start=(0,) * len(shape))
            self.assertEqual(0, nothing.count)
        whole = cured.partial(np.ones((3, 4)), "digest,count", shape=(3, 4), start=(0, 0))
        nothing = cured.partial(np.zeros((0, 4)), "digest,count", shape=(3, 4), start=(3, 0))
        self.assertEqual(whole, cured.merge([nothing, whole]))
        with self.assertRaisesRegex(ValueError, "missing"):
            nothing.finish("digest")

    def test_refused(self):
        a = np.ones((2, 3))
        for error, why, call in (
                (ValueError, "axis 1", lambda: cured.partial(a, "sum", shape=(2, 4), start=(0, 2))),
                (ValueError, "axis 0", lambda: cured.partial(a, "sum", shape=(2, 4), start=(2 ** 64 - 1, 0))),
                (ValueError, r"2\^60", lambda: cured.partial(a, "sum", shape=(2 ** 32, 2 ** 32), start=(0, 0))),
                (ValueError, r"2\^64", lambda: cured.partial(a, "sum", shape=(2, 2 ** 64), start=(0, 0))),
                (ValueError, r"2\^64", lambda: cured.partial(a, "sum", shape=(2, -3), start=(0, 0))),
                (ValueError, "2 numbers", lambda: cured.partial(a, "sum", shape=(6,), start=(0,))),
                (ValueError, "2 numbers", lambda: cured.partial(a, "sum", shape=(2, 3))),
                (ValueError, "2 numbers", lambda: cured.partial(a, "sum", start=(0, 0))),
                (TypeError, "integer", lambda: cured.partial(a, "sum", shape=(2.0, 3), start=(0, 0))),
                (ValueError, "prod of f64", lambda: cured.partial(a, "prod", shape=(2, 3), start=(0, 0))),
                (TypeError, "first", lambda: cured.partial(a, "sum", shape=(2, 3), start=(0, 0), first=0)),
                (TypeError, "first", lambda: cured.partial(a, "sum", shape=(2, 3), start=(0, 0), first=None)),
                (TypeError, "mask", lambda: cured.partial(a, "sum", shape=(2, 3), start=(0, 0), where=a > 0)),
                (TypeError, "only a partial", lambda: cured.reduce(a, "sum", shape=(2, 3), start=(0, 0))),
                (TypeError, "only a partial", lambda: cured.sum(a, start=(0, 0))),
                (TypeError, "list", lambda: cured.partial([a, a], "sum", shape=(2, 3), start=(0, 0)))):
            with self.subTest(why), self.assertRaisesRegex(error, why):
                call()
        self.assertEqual(720, cured.partial(np.arange(1, 7).reshape(2, 3), "prod", shape=(2, 3), start=(0, 0)).finish("prod").prod)


class ByDaemon(DaemonTest, Case):
    """The same bytes as this process makes, whatever holds the block: columns of any order of memory, shared memory, lists, files."""
    OPTIONS = {"cpu_workers": 2}

    def test_partials(self):
        r = random.Random(36)
        client = self.enterContext(cured.Client(self.daemon.address))
        for dtype in NUMPY:
            ops = OPS + (["prod", "bit_xor"] if dtype not in ("f16", "f32", "f64") else ["count_inf", "norm2"])
            for case in range(6):
                shape = tuple(r.randrange(1, 8) for _ in range(r.randrange(1, 5))) if case else (700, 300)
                a, parts = random_array(r, shape, NUMPY[dtype]), []
                for start, extent in cut(r, shape)[:12]:
                    block = view(a, start, extent)
                    shared = cured.empty(block.shape, block.dtype)
                    shared[...] = block
                    here = cured.partial(block, ops, shape=shape, start=start)
                    for x in (block, np.asfortranarray(block), block.astype(block.dtype.newbyteorder()), shared):
                        self.assertEqual(bytes(here), bytes(client.partial(x, ops, shape=shape, start=start)), (dtype, shape, start))
                    parts.append(here)

    def test_files(self):
        client = self.enterContext(cured.Client(self.daemon.address))
        a = np.random.default_rng(1).standard_normal((300, 400))
        with tempfile.NamedTemporaryFile(suffix=".npy") as f:
            np.save(f, a[100:])
            f.flush()
            tail = client.partial(cured.file(f.name), OPS, shape=a.shape, start=(100, 0))
        merged = cured.merge([tail, client.partial(a[:100], OPS, shape=a.shape, start=(0, 0))])
        self.assertEqual(repr(cured.reduce(a, OPS)), repr(merged.finish(OPS)))

    def test_async(self):
        async def main():
            a = np.arange(600.0).reshape(20, 30)
            async with cured.AsyncClient(self.daemon.address) as client:
                parts = await asyncio.gather(*(client.partial(a[:, k:k + 3], OPS, shape=a.shape, start=(0, k)) for k in range(0, 30, 3)))
                self.assertEqual(repr(cured.reduce(a, OPS)), repr(cured.merge(parts).finish(OPS)))
        asyncio.run(main())

    def test_refused(self):
        client, a = self.enterContext(cured.Client(self.daemon.address)), np.ones((2, 3))
        for words, ops, shape, start in (("axis 1", "sum", (2, 4), (0, 2)), ("axis 0", "sum", (2, 4), (2**64 - 1, 0)), (r"2\^60", "sum", (2**32, 2**32), (0, 0)),
                                         ("prod of f64", "prod", (2, 3), (0, 0)), ("partial", "median", (2, 3), (0, 0))):
            with self.assertRaisesRegex(ValueError, words):
                client.partial(a, ops, shape=shape, start=start)


def example():
    """
>>> import numpy as np, cured
>>> x = np.arange(12.0).reshape(3, 4)
>>> left = cured.partial(x[:, :1], "digest,argmax", shape=(3, 4), start=(0, 0))
>>> right = cured.partial(x[:, 1:], "digest,argmax", shape=(3, 4), start=(0, 1))
>>> both = cured.merge([right, left]).finish("digest,argmax")
>>> both.argmax, both.digest == cured.digest(x)
(11, True)
    """


class Page(Case):
    def test_example(self):
        """That of docs/PARTIALS.md."""
        self.assert_example(example, 6)


if __name__ == "__main__":
    unittest.main()
