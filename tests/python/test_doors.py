"""Pairs of options that were refused once, through every door: this process, libcured's own process by one thread and by several, a daemon by
Client, AsyncClient and gRPC, files, and the command line of both kinds. One table of cases; each answer is the oracle's, bit for bit. What a GPU
does not answer is refused by a sentence that says what to do."""
import asyncio
import io
import itertools
import os
import subprocess
import tempfile

import numpy as np
import oracle
import pairs
from support import NUMPY, Case, cured, unittest
from cured_daemon import BIN, DaemonTest  # noqa: I100: support finds it

try:
    import grpc
    import grpc_client
except ImportError as missing:
    print("skipped: the door of gRPC: %s (scripts/bootstrap --tests installs it)" % missing)
    grpc = None

RANDOM = np.random.default_rng(33)
ROWS, COLUMNS, GROUPS = 40, 6, 5
SHARES = (0.0, 0.25, 0.5, 1 / 3, 1.0)
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
PAIRS = ("dot", "sqdist", "average")


def array_of(dtype, shape=(ROWS, COLUMNS)):
    a = RANDOM.standard_normal(shape) * 100
    a = (np.abs(a) if dtype[0] == "u" else a).astype(NUMPY[dtype])
    if a.dtype.kind == "f":
        a.flat[[3, 50, 51]] = np.nan, np.inf, -0.0
    return a


class Doors(DaemonTest, Case):
    OPTIONS = {"cpu_workers": 2}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.scratch = tempfile.mkdtemp(dir=cls.folder)
        cls.clients = [cured.Client("embedded:"), cured.Client("embedded:", threads=3), cured.Client(cls.daemon.address)]
        cls.stubs = grpc_client.stubs() if grpc else None
        cls.channel = grpc_client.channel(cls.daemon.address) if grpc else None

    @classmethod
    def tearDownClass(cls):
        for client in cls.clients:
            client.close()
        if cls.channel:
            cls.channel.close()

    def save(self, name, a):
        path = os.path.join(self.scratch, name + ".npy")
        np.save(path, a)
        return path

    def by_cli(self, address, op, a, b, options):
        words = [os.path.join(BIN, "cured-client"), op, self.save("a", a), "--connect", address, "--output", os.path.join(self.scratch, "out.npy")]
        words += [] if b is None else ["--second", self.save("b", b)]
        words += ["--where", self.save("where", options["where"])] if "where" in options else []
        words += ["--keys", self.save("keys", options["keys"]), "--groups", str(options["groups"])] if "keys" in options else []
        words += ["--offsets", self.save("offsets", options["offsets"])] if "offsets" in options else []
        words += ["--q", repr(options["q"]), "--method", options["method"]] if "q" in options else []
        words += ["--nan", options["nan"]]
        if set(options) & {"axis", "keys", "offsets"}:
            done = subprocess.run(words + (["--axis", str(options["axis"])] if "axis" in options else []), capture_output=True, timeout=300)
            self.assertEqual((0, b""), (done.returncode, done.stderr))
            return np.load(os.path.join(self.scratch, "out.npy"))
        del words[5:7]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return np.array([float(word) for word in done.stdout.split()])

    def by_grpc(self, op, a, b, options):
        pb, services = self.stubs
        dtype = {v.lstrip("<"): k for k, v in NUMPY.items()}[a.dtype.str.lstrip("<|")]
        fields, before = {}, b""
        if "where" in options:
            fields["mask"], before = pb.Mask(stream=True, count=a.size), options["where"].tobytes()
        if "offsets" in options:
            offsets = options["offsets"]
            fields["segments"] = pb.Segments(stream=True, count=len(offsets), dtype=pb.Dtype.Value("DTYPE_" + offsets.dtype.str[1:].upper().replace("4", "32").replace("8", "64")))
            before += offsets.tobytes()
        if "keys" in options:
            fields["keys"] = pb.Keys(stream=True, count=len(a), dtype=pb.DTYPE_I64, groups=GROUPS, columns=a[0].size)
            before += options["keys"].tobytes()
        if b is not None:
            fields["second"] = pb.Second(stream=True, count=b.size)
        if "q" in options:
            fields["parameters"] = [pb.Parameter(op=0, share=options["q"], method=METHODS.index(options["method"]))]
        if "axis" in options:
            fields["axis"] = pb.Axis(outer=1, n=ROWS, inner=COLUMNS) if options["axis"] == 0 else pb.Axis(outer=ROWS, n=COLUMNS, inner=1)
        head = pb.ReduceRequest(dtype=pb.Dtype.Value("DTYPE_" + dtype.upper()), ops=[pb.Op.Value("OP_" + op.upper())], nan=options["nan"] == "skip",
                                input=pb.Input(stream=pb.StreamInput(bytes=a.nbytes)), **fields)
        body = [pb.ReduceChunk(head=head), pb.ReduceChunk(data=before + a.tobytes() + (b.tobytes() if b is not None else b""))]  # each is one block
        got = io.BytesIO()
        for answer in services.CuredStub(self.channel).ReduceStream(iter(body), timeout=300):
            if answer.WhichOneof("answer") == "part":
                self.assertEqual(got.tell(), 8 * answer.part.first)
                got.write(answer.part.values)
            elif answer.end.results and answer.end.results[0].value:
                got.write(answer.end.results[0].value)
        return np.frombuffer(got.getvalue(), "f8")

    def doors(self, op, a, b, options):
        """(name, the answers)."""
        second = () if b is None else (None, b) if op == "average" else (b,)
        words = {name: value for name, value in options.items() if name != "q"}
        share = (options["q"],) if "q" in options else ()
        for name, client in [("here", cured)] + [("client %d" % i, client) for i, client in enumerate(self.clients)]:
            yield name, getattr(client, op)(a, *second, *share, **words)
        for address in ("embedded:", self.daemon.address):
            async def ask(address=address):
                async with cured.AsyncClient(address) as client:
                    return await getattr(client, op)(a, *second, *share, **words)
            yield "async " + address[:9], asyncio.run(ask())
            yield "cured-client " + address[:9], self.by_cli(address, op, a, b, options)
        if "keys" not in options or "where" not in options:
            yield "file", getattr(cured.file(self.save("file", a)), op)(*second, *share, **words)
        if grpc:
            yield "gRPC", self.by_grpc(op, a, b, options)

    def check(self, op, a, b, options, wanted):
        count = 0
        for name, got in self.doors(op, a, b, options):
            self.assertEqual(wanted.tobytes(), np.asarray(got, "f8").tobytes(), (name, op, a.dtype, sorted(options)))
            count += 1
        self.assertEqual(8 + bool(grpc) + ("keys" not in options or "where" not in options), count)

    def test_quantiles_under_masks(self):
        """Also where a mask leaves nothing of a row, or of the array: NaN, as numpy.nanmedian of nothing."""
        for number, (dtype, axis) in enumerate(itertools.product(("f32", "i16", "f64", "u8", "f16", "i64"), (None, 0, 1))):
            a, nan = array_of(dtype), ("propagate", "skip")[number % 2]
            method, share = METHODS[number % len(METHODS)], SHARES[number % 4]
            for where in (RANDOM.random(a.shape) < 0.6, np.zeros(a.shape, "?"), np.arange(a.size).reshape(a.shape) % 13 > 5):
                where[:, 2] = where[7] = False
                rows = [(a[where],)] if axis is None else [(x[k],) for x, k in zip(np.moveaxis(a, axis, -1), np.moveaxis(where, axis, -1))]
                options = {"where": where, "nan": nan, **({} if axis is None else {"axis": axis})}
                for op, more, asked in (("median", {}, (0.5, "linear")), ("quantile", {"q": share, "method": method}, (share, method))):
                    wanted = np.array([oracle.quantiles(dtype, row.tobytes(), [asked], nan)[0] for row, in rows], "u8").view("f8")
                    self.check(op, a, None, {**options, **more}, wanted)

    def test_quantiles_by_offsets(self):
        """Of segments that a claim answers, of longer ones, and of none."""
        for number, (dtype, masked) in enumerate(itertools.product(("f32", "i16", "f64", "u8", "f16", "i64"), (False, True))):
            a, nan = array_of(dtype, (5000,)), ("propagate", "skip")[number % 2]
            offsets = np.sort(RANDOM.integers(0, 60, 40)).tolist() + [60, 60, 85, 110, 2000, 4900]
            offsets = np.array(offsets, ("<i4", "<i8", "<u4", "<u8")[number % 4])
            where = RANDOM.random(a.shape) < 0.6 if masked else np.ones(a.shape, "?")
            where[60:110] &= not masked
            rows = [a[i:j][where[i:j]].tobytes() for i, j in itertools.pairwise(offsets.tolist())]
            options = {"offsets": offsets, "nan": nan, **({"where": where} if masked else {})}
            method, share = METHODS[number % len(METHODS)], SHARES[number % 4]
            for op, more, asked in (("median", {}, (0.5, "linear")), ("quantile", {"q": share, "method": method}, (share, method))):
                wanted = np.array([oracle.quantiles(dtype, row, [asked], nan)[0] for row in rows], "u8").view("f8")
                self.check(op, a, None, {**options, **more}, wanted)

    def test_several_by_offsets(self):
        """Shares in an array, beside other ops, of NaNs alone, with a type; the answers into an array of the caller's."""
        a, offsets = array_of("f32", (300,)), np.array([0, 0, 7, 40, 300])
        a[7:40] = np.nan
        cut = [a[i:j] for i, j in itertools.pairwise(offsets)]
        for client in [cured] + self.clients:
            wanted = [[oracle.quantiles("f32", row.tobytes(), [(q, "nearest")], "skip", "f32")[0] for row in cut] for q in SHARES]
            got = client.quantile(a, SHARES, offsets=offsets, method="nearest", nan="skip", dtype="f32")
            self.assertEqual(np.array(wanted, "u4").tobytes(), got.tobytes())
            r = client.reduce(a, "sum,median,argmax,count", offsets=offsets[2:], nan="propagate")
            self.assertEqual(client.median(a, offsets=offsets[2:]).tobytes(), r.median.tobytes())
            self.assertEqual(client.sum(a, offsets=offsets[2:]).tobytes(), r.sum.tobytes())
            self.assertEqual([33, 260], r.count.tolist())
            out = np.full(4, 7.0)
            self.assertIs(out, client.median(a, offsets=offsets, out=out))
            self.assertEqual(client.median(a, offsets=offsets).tobytes(), out.tobytes())
            self.assertTrue(np.isnan(client.median(a, offsets=[5, 5, 5])).all())

    def test_quantiles_by_key(self):
        """Of values and of rows, under masks; a group without rows is NaN."""
        for number, (dtype, masked, columns) in enumerate(itertools.product(("f32", "i16", "f64", "u8", "f16", "i64"), (False, True), (1, COLUMNS))):
            a, nan = array_of(dtype, (400, columns) if columns > 1 else (400,)), ("propagate", "skip")[number % 2]
            keys = RANDOM.integers(0, GROUPS - 1, 400)
            where = RANDOM.random(a.shape) < 0.6 if masked else np.ones(a.shape, "?")
            where[keys == 1] &= not masked
            method, share = METHODS[number % len(METHODS)], SHARES[number % 4]
            options = {"keys": keys, "groups": GROUPS, "nan": nan, **({"where": where} if masked else {})}
            for op, more, asked in (("median", {}, (0.5, "linear")), ("quantile", {"q": share, "method": method}, (share, method))):
                wanted = []
                for group, column in itertools.product(range(GROUPS), range(columns)):
                    at = (keys == group) & where.reshape(400, columns)[:, column]
                    wanted += oracle.quantiles(dtype, a.reshape(400, columns)[at, column].tobytes(), [asked], nan)
                self.check(op, a, None, {**options, **more}, np.array(wanted, "u8").view("f8"))

    def test_several_by_key(self):
        a, keys = array_of("f32", (300, 2)), RANDOM.integers(-1, GROUPS + 1, 300)
        for client in [cured] + self.clients:
            got = client.quantile(a, np.reshape(SHARES, (5, 1)), keys=keys, groups=GROUPS, drop=True, method="nearest", nan="skip", dtype="f32")
            self.assertEqual((5, 1, GROUPS, 2), got.shape)
            for i, group, column in itertools.product(range(5), range(GROUPS), range(2)):
                wanted = oracle.quantiles("f32", a[keys == group, column].tobytes(), [(SHARES[i], "nearest")], "skip", "f32")
                self.assertEqual(np.array(wanted, "u4").tobytes(), got[i, 0, group, column].tobytes())
            r = client.reduce(a, "sum,median,var,argmax,count_nan", keys=keys % GROUPS)
            for op in ("sum", "median", "var", "argmax", "count_nan"):
                self.assertEqual(getattr(client, op)(a, keys=keys % GROUPS).tobytes(), r[op].tobytes(), op)
            out = np.empty((GROUPS, 2), "f4")
            self.assertIs(out, client.median(a, keys=keys % GROUPS, out=out))
            self.assertEqual(client.median(a, keys=keys % GROUPS, dtype="f4").tobytes(), out.tobytes())
            with self.assertRaisesRegex(ValueError, "^keys: number [0-9]+ is -1, not one of 0 to 4"):
                client.median(a, keys=np.where(keys == GROUPS, 0, keys), groups=GROUPS)
            with self.assertRaisesRegex(ValueError, "^partial: op median has none"):
                client.partial(a, "median", keys=keys, groups=GROUPS)
            self.assertTrue(np.isnan(client.median(a[:0], keys=keys[:0], groups=3)).all())

    def test_masked_medians_are_numpys(self):
        """Where NumPy's own answer is exact."""
        a = RANDOM.integers(-1000, 1000, (30, 17)).astype("f8")
        where = RANDOM.random(a.shape) < 0.5
        where[3] = False
        self.assertEqual(np.median(a[where]), cured.median(a, where=where))
        a[5, 2] = a[9, 1] = np.nan
        where[5, 2] = True
        self.assertTrue(np.isnan(cured.median(a, where=where)) and np.isnan(np.median(a[where])))
        self.assertEqual(np.nanmedian(a[where]), cured.median(a, where=where, nan="skip"))
        with np.errstate(all="ignore"):
            import warnings
            warnings.simplefilter("ignore")
            wanted = np.nanmedian(np.where(where, a, np.nan), axis=1)
        self.assertEqual(wanted.tobytes(), (cured.median(a, 1, where=where, nan="skip") + 0.0).tobytes())

    def test_pairs_by_key(self):
        keys = RANDOM.integers(0, GROUPS - 1, ROWS)  # the last group has no rows
        for (dtype, op), masked in itertools.product(itertools.product(("f32", "f64", "f16"), PAIRS), (False, True)):
            a, b = array_of(dtype), array_of(dtype)[::-1].copy()
            nan = ("propagate", "skip")[masked]
            where = RANDOM.random(a.shape) < 0.7 if masked else np.ones(a.shape, "?")
            wanted = []
            for group, column in itertools.product(range(GROUPS), range(COLUMNS)):
                at = (keys == group) & where[:, column]
                wanted.append(pairs.answer(op, dtype, a[at, column].tobytes(), b[at, column].tobytes(), nan)[2])
            options = {"keys": keys, "groups": GROUPS, "nan": nan, **({"where": where} if masked else {})}
            self.check(op, a, b, options, np.frombuffer(b"".join(wanted), "f8"))

    def test_pairs_by_key_as_parts(self):
        """Partials of each door have the same bytes, and merge to the answers of all."""
        a, b, keys = array_of("f32"), array_of("f32"), RANDOM.integers(0, GROUPS, ROWS)
        wanted = cured.reduce(a, "dot,sqdist,average", second=b, keys=keys, groups=GROUPS)
        for client in [cured] + self.clients:
            parts = [client.partial(a[i:j], PAIRS, second=b[i:j], keys=keys[i:j], groups=GROUPS) for i, j in ((20, 40), (0, 1), (1, 20))]
            self.assertEqual(bytes(cured.partial(a, PAIRS, second=b, keys=keys, groups=GROUPS)), bytes(cured.merge(parts)))
            answers = cured.merge(parts).finish(PAIRS)
            for op in PAIRS:
                self.assertEqual(wanted[op].tobytes(), answers[op].reshape(GROUPS, COLUMNS).tobytes(), op)

    def test_average_by_key(self):
        a, weights, keys = np.arange(12.0).reshape(6, 2), np.array([1.0, 2, 3, 4, 5, 6]), np.array([0, 1, 0, 2, 1, 0])
        got, total = cured.average(a, weights=weights, keys=keys, groups=4, returned=True)
        for group in range(3):
            self.assertEqual(np.average(a[keys == group], 0, weights[keys == group]).tolist(), got[group].tolist())
            self.assertEqual([weights[keys == group].sum()] * 2, total[group].tolist())
        self.assertTrue(np.isnan(got[3]).all())
        self.assertEqual(cured.mean(a, keys=keys).tolist(), cured.average(a, keys=keys).tolist())
        self.assertEqual([0.0 + 4 + 25, 1 + 16, 9], cured.dot(weights - 1, weights - 1, keys=keys).tolist())


if __name__ == "__main__":
    unittest.main()
