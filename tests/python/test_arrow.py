"""Arrow's arrays, streams and batches: the bits of the same elements in NumPy's arrays and masked arrays; what is released, and when; and
producers that lie. By capsules that are made here (arrow_producer.py)."""
import asyncio
import ctypes
import gc
import unittest

import numpy
from arrow_producer import FORMATS, GET_NEXT, GET_SCHEMA, Node, OfArray, OfDevice, OfStream, RELEASE_STREAM, Schema
from support import OPS, WHOLE, Case, cured

from cured import _blocks

PAIRS = ("dot", "sqdist", "average")
FLOATS = [op for op in OPS if not op.startswith("bit_") and op not in PAIRS]
INTEGERS = [op for op in OPS if op not in PAIRS and op != "prod"]
BITS = ["sum", "mean", "any", "all", "count", "count_nonzero", "argmax", "argmin", "min", "max", "median"]
GETTERS = {"get_schema": GET_SCHEMA, "get_next": GET_NEXT}
N = 3000


class Arrow(Case):
    def setUp(self):
        self.random = numpy.random.default_rng(20261127)

    def elements(self, dtype, n=N):
        if dtype == "?":
            return self.random.random(n) < 0.4
        if dtype[0] == "f":
            a = (self.random.standard_normal(n) * 10.0 ** self.random.integers(-3, 3, n)).astype(dtype)
            a[self.random.integers(0, n, 3)] = [numpy.nan, -0.0, numpy.inf]
            return a
        return self.random.integers(0, 100, n).astype(dtype)

    def mask(self, n=N):
        return self.random.random(n) < 0.3

    def ops(self, dtype):
        return FLOATS if dtype[0] == "f" else BITS if dtype == "?" else INTEGERS

    def check(self, wanted, ops, x, what, **options):
        one, two = cured.reduce(wanted, ops, **options), cured.reduce(x, ops, **options)
        self.assertEqual(list(one), list(two), what)
        for op in ops:
            note = "%s of %s %s" % (op, what, options)
            try:
                value = one[op]
            except (ValueError, OverflowError) as error:
                with self.assertRaises(type(error), msg=note):
                    two[op]
                continue
            if isinstance(value, numpy.ndarray):
                self.assertEqual(value.tolist(), two[op].tolist(), note) if value.dtype.names else self.assert_arrays(value, two[op], note)
            else:
                self.assert_same(value, two[op], note)

    def cut(self, a, mask, ends, **more):
        """A stream of arrays, each at an offset of its own."""
        nodes, at = [], 0
        for n, end in enumerate(ends):
            offset = n % 3 * 5
            values = numpy.concatenate([a[:offset], a[at:end]])
            missing = None if mask is None or not mask[at:end].any() else numpy.concatenate([numpy.ones(offset, bool), mask[at:end]])
            nodes.append(Node(values, missing, offset))
            at = end
        return OfStream(nodes, **more)


class Elements(Arrow):
    def test_every_type_with_and_without_nulls(self):
        for dtype in [*FORMATS, "?"]:
            a, mask = self.elements(dtype), self.mask()
            masked = numpy.ma.masked_array(a, mask)
            some = [op for op in self.ops(dtype) if op not in WHOLE and op != "digest"]
            self.check(a, self.ops(dtype), OfArray(Node(a)), dtype)
            self.check(masked, some, OfArray(Node(a, mask)), dtype)
            ends = (1, 8, 800, 800, N)
            self.check(a, self.ops(dtype), self.cut(a, None, ends), dtype)
            self.check(masked, some, self.cut(a, mask, ends), dtype)
            for op in ("median", "argmax", "sum"):
                self.assert_same(getattr(cured, op)(masked), getattr(cured, op)(self.cut(a, mask, ends)), (dtype, op))

    def test_offsets_of_bits(self):
        """Of bool and of bitmaps: every place in a byte, and lengths that end in one."""
        a, mask = self.elements("?", 100), self.mask(100)
        v = self.elements("f4", 100)
        for offset in range(0, 18):
            for length in (0, 1, 7, 8, 9, 64, 65, 82):
                kept = numpy.ma.masked_array(a, mask)[offset:offset + length]
                self.check(kept, ["sum", "count"], OfArray(Node(a, mask, offset, length=length)), (offset, length))
                self.check(numpy.ma.masked_array(v, mask)[offset:offset + length], ["sum", "count", "argmin"],
                           OfArray(Node(v, mask, offset, length=length)), (offset, length))

    def test_null_count_may_be_unknown(self):
        a, mask = self.elements("i4"), self.mask()
        self.check(numpy.ma.masked_array(a, mask), ["sum", "count"], OfArray(Node(a, mask, nulls=-1)), "unknown")
        self.check(a, ["sum", "count"], OfArray(Node(a, numpy.zeros(N, bool), nulls=-1)), "unknown, and none")
        self.check(a, ["sum", "digest"], OfArray(Node(a, nulls=-1)), "no bitmap")

    def test_large_pieces_are_read_in_blocks(self):
        before = _blocks.BLOCK_BYTES
        self.addCleanup(lambda: setattr(_blocks, "BLOCK_BYTES", before))
        _blocks.BLOCK_BYTES = 1000
        for dtype in ("f8", "?"):
            a, mask = self.elements(dtype), self.mask()
            some = [op for op in self.ops(dtype) if op not in WHOLE and op != "digest"]
            self.check(numpy.ma.masked_array(a, mask), some, self.cut(a, mask, (1500, N)), dtype)
            self.check(a, self.ops(dtype), self.cut(a, None, (1500, N)), dtype)
            keys = self.random.integers(0, 50, N)
            self.assertEqual(cured.partial(numpy.ma.masked_array(a, mask), "max,count", keys=keys),
                             cured.partial(self.cut(a, mask, (1500, N)), "max,count", keys=keys))

    def test_options(self):
        a, mask = self.elements("f8"), self.mask()
        a[numpy.isnan(a)] = 1
        masked, keep = numpy.ma.masked_array(a, mask), self.random.random(N) < 0.5
        for make in (lambda: OfArray(Node(a, mask)), lambda: self.cut(a, mask, (500, 1100, N))):
            self.check(masked, ["sum", "std"], make(), "ddof", ddof=1)
            self.check(masked, ["sum", "argmin"], make(), "skip", nan="skip")
            self.check(masked, ["sum", "max"], make(), "axis", axis=0)
            self.check(masked, ["sum", "argmax"], make(), "keepdims", keepdims=True)
            self.check(masked, ["sum", "count"], make(), "axis and keepdims", axis=-1, keepdims=True)
            self.check(masked, ["mean"], make(), "dtype", dtype="f4")
            self.assert_same(cured.sum(a, where=keep & ~mask), cured.sum(make(), where=keep))
            self.assert_same(cured.sum(a, where=keep & ~mask), cured.sum(make(), where=OfArray(Node(keep))))
            self.assert_same(cured.sum(masked, initial=2.5), cured.sum(make(), initial=2.5))
            self.assert_same(cured.prod(masked), cured.prod(make()))
            self.assert_arrays(cured.quantile(masked, [0.1, 0.9]), cured.quantile(make(), [0.1, 0.9]))
            out = numpy.empty((), "f4")
            self.assertIs(out, cured.sum(make(), out=out))
            self.assert_arrays(numpy.float32(cured.sum(masked, dtype="f4")).reshape(()), out)
            self.check(masked, ["sum", "count"], make(), "offsets", offsets=[0, 10, 10, 2000])
            keys = self.random.integers(0, 5, N)
            self.check(masked, ["sum", "count", "mean"], make(), "keys", keys=keys)
            self.assertEqual(cured.partial(masked, "sum"), cured.partial(make(), "sum"))
            for named in (keys, OfArray(Node(keys)), self.cut(keys, None, (7, N))):
                self.assertEqual(cured.partial(masked, "sum,max", keys=keys), cured.partial(make(), "sum,max", keys=named))
            self.assertEqual(cured.partial(masked, "var", keys=keys, groups=3, drop=True), cured.partial(make(), "var", keys=keys, groups=3, drop=True))
            self.assertEqual(cured.partial(a, "sum", keys=keys, where=keep & ~mask), cured.partial(make(), "sum", keys=keys, where=keep))
            with self.assertRaisesRegex(TypeError, "no position"):
                cured.partial(make(), "sum", first=0)
            with self.assertRaisesRegex(ValueError, "digest is of all bytes"):
                cured.digest(make())
            both = numpy.ma.concatenate([masked, masked])
            self.assert_same(cured.var(both), cured.var([make(), make()]))
            self.assert_same(cured.median(both), cured.median([make(), masked]))
            with cured.Client("embedded:") as client:
                self.assert_same(cured.sum(masked), client.sum(make()))
                self.assert_same(cured.median(masked), client.median(make()))
        plain = lambda: self.cut(a, None, (500, N))  # noqa: E731
        self.assertEqual(cured.partial(a, "sum,argmax,digest", first=64), cured.partial(plain(), "sum,argmax,digest", first=64))
        self.assert_same(cured.dot(a, a), cured.dot(plain(), a))
        self.assert_same(cured.prod(a), cured.prod(plain()))

        async def ask():
            async with cured.AsyncClient("embedded:") as client:
                await client.sum(plain())
        with self.assertRaisesRegex(TypeError, "AsyncClient takes no containers"):
            asyncio.run(ask())

    def test_nulls_error(self):
        a, mask = self.elements("i8"), numpy.zeros(N, bool)
        mask[1234] = True
        for make in (lambda m: OfArray(Node(a, m)), lambda m: self.cut(a, m, (500, 1100, N)),
                     lambda m: a if m is None else numpy.ma.masked_array(a, m)):
            self.assertEqual(cured.sum(a), cured.sum(make(None), nulls="error"))
            for ask in (lambda: cured.sum(make(mask), nulls="error"), lambda: cured.reduce(make(mask), "max,count", nulls="error"),
                        lambda: cured.max(make(mask), nulls="error", where=~mask), lambda: cured.partial(make(mask), "sum", nulls="error"),
                        lambda: cured.partial(make(mask), "sum", keys=numpy.arange(N) % 7, nulls="error")):
                with self.assertRaisesRegex(ValueError, r"nulls: the array has missing elements, the first at \[1234\]"):
                    ask()
            self.assertEqual(N - 1, cured.count(make(mask), nulls="skip"))
            self.assertEqual(2 * N - 2, cured.count([make(mask), make(mask)], nulls="skip"))
            self.assertEqual(2 * N, cured.count([make(None), make(None)], nulls="error"))
            with self.assertRaisesRegex(ValueError, r"nulls: .* the first at \[1234\]"):
                cured.sum([make(None), make(mask)], nulls="error")
            for ask in (cured.median, lambda x, **o: cured.quantile(x, 0.25, **o), lambda x, **o: cured.quantile(x, [0, 1], **o),
                        lambda x, **o: cured.reduce(x, "median,max", **o)):
                self.assertEqual(repr(ask([make(None), a])), repr(ask([make(None), a], nulls="error")))
                with self.assertRaisesRegex(ValueError, r"nulls: .* the first at \[1234\]"):
                    ask([make(None), make(mask)], nulls="error")
                with self.assertRaisesRegex(ValueError, "nulls: 'maybe', must be"):
                    ask([a, a], nulls="maybe")
            with self.assertRaisesRegex(ValueError, "nulls"):
                cured.sum(make(None), nulls="maybe")

    def test_min_count(self):
        a = numpy.array([1.0, 2, 3])
        mask = numpy.array([True, False, False])
        for x in (OfArray(Node(a, mask)), numpy.ma.masked_array(a, mask), [numpy.ma.masked_array(a, mask)]):
            self.assertEqual(5.0, cured.sum(x, min_count=2))
            self.assertTrue(numpy.isnan(cured.sum(x, min_count=3)))
            r = cured.reduce(x, "max,count,argmax" if not isinstance(x, list) else "max,count", min_count=3)
            self.assertTrue(numpy.isnan(r.max))
            self.assertEqual(2, r.count)
            if not isinstance(x, list):
                with self.assertRaisesRegex(ValueError, "argmax: 2 elements count, fewer than min_count, 3"):
                    r.argmax
        whole = numpy.ma.masked_array(numpy.arange(6.0).reshape(2, 3), [[True, True, False], [False] * 3])
        self.assert_arrays(numpy.array([numpy.nan, 12]), cured.sum(whole, axis=1, min_count=2))
        out = numpy.empty(2)
        self.assertIs(out, cured.sum(whole, 1, min_count=2, out=out))
        self.assert_arrays(numpy.array([numpy.nan, 12]), out)
        self.assertEqual(15.0, cured.nansum(numpy.array([15, numpy.nan])))
        self.assertTrue(numpy.isnan(cured.sum(numpy.array([15, numpy.nan]), nan="skip", min_count=2)))
        with self.assertRaisesRegex(ValueError, "sum: 2 elements count"):
            cured.sum(numpy.arange(2), min_count=3)
        self.assertEqual(4, cured.sum(numpy.arange(3), initial=1, min_count=3))
        self.assertEqual(1.0, cured.dot(a[:1], a[:1], min_count=1))
        for ask in (lambda: cured.partial(a, "sum", min_count=1), lambda: cured.sum(a, min_count=-1), lambda: cured.sum(a, min_count=1.5),
                    lambda: cured.quantile(a, 0.5, min_count="x")):
            with self.assertRaises((TypeError, ValueError)):
                ask()


class Columns(Arrow):
    def batch(self, n=N, offset=0, mask=None, name="x"):
        self.a, self.b, self.bits, self.m = self.elements("f8"), self.elements("i4"), self.elements("?"), self.mask()
        columns = [Node(self.a, name=name), Node(self.b, self.m, name="y"), Node(self.bits, name="z")]
        return Node(None, mask, offset, columns=columns, length=n)

    def test_columns(self):
        for make in (OfArray, lambda node: OfStream([node])):
            table = make(self.batch())
            self.assert_same(cured.sum(self.a), cured.sum(cured.column(table, "x")))
            self.assert_same(cured.sum(self.b[~self.m]), cured.sum(cured.column(table, 1)))
            self.assert_same(cured.sum(self.bits), cured.sum(cured.column(table, -1)))
        node = self.batch(200, 17)
        table = OfArray(node)
        self.assert_same(cured.sum(self.a[17:217]), cured.sum(cured.column(table, "x")))
        self.assert_same(cured.median(numpy.ma.masked_array(self.b, self.m)[17:217]), cured.median(cured.column(table, "y")))
        missing = self.mask()
        node = self.batch(200, 17, missing)
        self.assert_same(cured.sum(numpy.ma.masked_array(self.b, self.m | missing)[17:217]), cured.sum(cured.column(OfArray(node), "y")))
        self.assertIn("'y' of OfArray", repr(cured.column(OfArray(node), "y")))

    def test_what_is_refused(self):
        table = OfArray(self.batch())
        for words, ask in (("nested: name a column of a batch with cured.column", lambda: cured.sum(table)),
                           ("none called 'w'", lambda: cured.sum(cured.column(table, "w"))), ("the batch has 3", lambda: cured.sum(cured.column(table, 3))),
                           ("two are called 'y'", lambda: cured.sum(cured.column(OfArray(self.batch(name="y")), "y"))),
                           ("no columns", lambda: cured.sum(cured.column(OfArray(Node(self.a)), "x"))), ("hands out no Arrow", lambda: cured.column(self.a, "x"))):
            with self.assertRaisesRegex((TypeError, LookupError, ValueError), words):
                ask()
        with self.assertRaises((TypeError, AttributeError)):
            cured.column(table, 1.5)

    def test_types_that_are_refused(self):
        a = self.elements("i8")
        for format, words in (("u", "text and bytes"), ("tsn:UTC", "units of time"), ("tdD", "units of time"), ("d:10,2", "decimal"), ("+l", "nested"), ("n", "nulls alone"),
                              ("w:16", "text and bytes"), ("vu", "text and bytes"), ("", "cast it"), ("l" * 500, "cast it"), ("gg", "cast it")):
            lies = {"schema": {"format": format.encode()}}
            for x in (OfArray(Node(a, **lies)), OfStream([Node(a, **lies)])):
                with self.assertRaisesRegex(TypeError, "Arrow type '%s.*' is not reduced: .*%s" % (format[:20].replace("+", r"\+"), words)):
                    cured.sum(x)


class Ends(Arrow):
    def test_released_once(self):
        a, mask = self.elements("f8"), self.mask()
        for ask in (cured.sum, cured.median, lambda x: cured.reduce(x, "prod,argmax"), lambda x: cured.sum(x, nulls="error"), lambda x: cured.sum(x, axis=7),
                    lambda x: cured.bit_or(x), lambda x: cured.sum(x, where=mask), lambda x: cured.partial(x, "sum"), lambda x: cured.sum(x, wat=1)):
            one = OfArray(Node(a, mask))
            many = self.cut(a, mask, (10, 500, N))
            for x in (one, many):
                try:
                    ask(x)
                except (ValueError, TypeError):
                    pass
            gc.collect()
            self.assertTrue(one.ended(), (one.node.released, one.asked))
            self.assertEqual(many.asked, many.released)
            self.assertEqual([node.released["array"] for node in many.nodes], [sum(g.length == node.length for g in many.given) for node in many.nodes])
            self.assertEqual(many.asked, many.type_of.released["schema"])

    def test_memory_lives_as_long_as_it_is_read(self):
        """Of a stream that is read once each piece is released before the next but one comes."""
        a = self.elements("i8")
        x = self.cut(a, None, (1000, 2000, 2500, N))
        seen = []
        inner = x.nodes[3].array
        x.nodes[3].array = lambda: (seen.append([node.released["array"] for node in x.nodes]), inner())[1]
        self.assertEqual(a.sum(), cured.sum(x))
        self.assertEqual([[1, 1, 0, 0]], [s[:2] + [0, 0] for s in seen])

    def test_streams_that_fail(self):
        a = self.elements("i8")
        for ask in (cured.sum, cured.median):
            x = self.cut(a, None, (10, 20, N), fails=2)
            with self.assertRaisesRegex(OSError, "the Arrow stream failed: the disk is gone"):
                ask(x)
            gc.collect()
            self.assertEqual((1, [1, 1, 0]), (x.released, [node.released["array"] for node in x.nodes]))
        x = self.cut(a, None, (N,), schema_status=7)
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            cured.sum(x)
        x = self.cut(a, None, (N,), fails=0, says=b"")
        with self.assertRaisesRegex(OSError, "failed: Input/output error"):
            cured.sum(x)
        with self.assertRaisesRegex(ValueError, "was released"):
            cured.sum(OfStream([Node(a)], stream={"release": RELEASE_STREAM()}))
        for name in ("get_schema", "get_next"):
            x = OfStream([Node(a)], stream={name: GETTERS[name]()})
            with self.assertRaisesRegex(ValueError, "get_schema or get_next is NULL"):
                cured.sum(x)
            self.assertEqual(1, x.released)

    def test_empty(self):
        for x in (OfArray(Node(numpy.zeros(0))), OfStream([Node(numpy.zeros(0))]), OfStream([], Node(numpy.zeros(0)))):
            self.assertEqual((0.0, 0), (cured.sum(x), cured.count(x)))
            with self.assertRaises(ValueError):
                cured.min(x)

    def test_devices(self):
        a, mask = self.elements("f4"), self.mask()
        for device in (1, 3):
            self.assert_same(cured.sum(a[~mask]), cured.sum(OfDevice(Node(a, mask), device)))
        node = Node(a)
        with self.assertRaisesRegex(TypeError, r"device_type is 8 \(number 0\), must be 1 \(CPU\), 2 \(CUDA\), 3 .* or 13 .*: pass a copy on the host"):
            cured.sum(OfDevice(node, 8))
        self.assertEqual({"schema": 1, "array": 1}, node.released)


class Once(OfStream):
    """A reader: it hands out what it has once, and then streams that are at their end."""

    def __arrow_c_stream__(self, requested_schema=None):
        if self.asked:
            self.nodes = []
        return super().__arrow_c_stream__()


class Readers(Arrow):
    """Whatever looks at the elements twice keeps what the first look has brought."""

    def test_answers(self):
        a = numpy.arange(1.0, 9)

        def reader():
            return Once([Node(a[:3]), Node(a[3:])])
        for name, call in {
            "sum": cured.sum, "min_count": lambda x: cured.sum(x, min_count=2), "initial": lambda x: cured.sum(x, initial=1.0, min_count=2),
            "describe": lambda x: dict(cured.describe(x)), "minmax": cured.minmax, "median": cured.median, "digest": cured.digest,
            "fraction": lambda x: dict(cured.reduce(x, "mean,var,std", ddof=0.5)), "quantiles": lambda x: list(cured.quantile(x, [0.1, 0.2])),
            "fraction along its axis": lambda x: float(cured.var(x, axis=0, ddof=0.5)),
            "fraction, axes kept": lambda x: cured.std(x, keepdims=True, ddof=0.5).tolist(), "linear": lambda x: cured.linear(x, "sum,max").tolist(),
            "several": lambda x: dict(cured.reduce(x, "median,sum,prod")), "parts": lambda x: dict(cured.reduce_parts([x], "sum,max")),
            "list": lambda x: cured.sum([x, a]), "list's median": lambda x: cured.median([x, a]),
            "list's several": lambda x: dict(cured.reduce([x, a], "median,sum")),
        }.items():
            self.assertEqual(call(a), call(reader()), name)
        self.assertEqual(10.0, cured.reduce_parts([OfArray(Node(a, a > 4))], "sum")["sum"])

    def test_many_batches(self):
        """Each element is looked up by where its batch begins, for masks and medians too."""
        a = numpy.sqrt(numpy.arange(float(N)))
        batches = [Node(a[k:k + 7]) for k in range(0, N, 7)]
        keep = numpy.arange(N) % 3 == 0
        self.assertEqual(cured.sum(a, where=keep), cured.sum(OfStream(batches), where=keep))
        self.assertEqual(cured.median(a), cured.median(OfStream([Node(a[k:k + 7]) for k in range(0, N, 7)])))


class Lies(Arrow):
    def test_structs_that_lie(self):
        a, mask = self.elements("f8"), self.mask()
        cases = [
            ({"length": -1}, "length is -1"), ({"length": 2**61}, "length is"), ({"offset": -1}, "offset is -1"), ({"offset": 2**62}, "offset is"),
            ({"null_count": -2}, "null_count is -2"), ({"null_count": N + 1}, "null_count is"), ({"null_count": 5}, "null_count is 5, but the bitmap"),
            ({"n_buffers": 1}, "n_buffers is 1, must be 2"), ({"n_buffers": 0}, "n_buffers is 0"), ({"n_buffers": 3}, "n_buffers is 3"),
            ({"n_buffers": -7}, "n_buffers is -7"), ({"buffers": None}, "buffers is NULL"), ({"n_children": 1}, "n_children is 1"),
            ({"length": 2**59, "offset": 2**59 + 2**58, "null_count": -1}, "more than memory holds")]
        for lies, words in cases:
            for x in (OfArray(Node(a, mask, array=lies)), OfStream([Node(a, mask, array=lies)])):
                with self.assertRaisesRegex(ValueError, words, msg=lies):
                    cured.sum(x)
            gc.collect()
            self.assertEqual(1, x.nodes[0].released["array"], lies)
        for lies, words in (({"format": None}, "format is NULL"), ({"n_children": 2}, "n_children")):
            with self.assertRaisesRegex(ValueError, words):
                cured.sum(OfArray(Node(a, schema=lies)))
        dictionary = Schema()
        with self.assertRaisesRegex(TypeError, "dictionary is not reduced: .*decode"):
            cured.sum(OfArray(Node(self.elements("i4"), schema={"dictionary": ctypes.pointer(dictionary)})))
        node = Node(a)
        node.buffers[1] = None
        with self.assertRaisesRegex(ValueError, r"buffers\[1\] is NULL"):
            cured.sum(OfArray(node))
        with self.assertRaisesRegex(ValueError, r"no bitmap \(buffers\[0\] is NULL\)"):
            cured.sum(OfArray(Node(a, nulls=3)))

    def test_batches_that_lie(self):
        a = self.elements("f8")
        def table(**lies):
            return OfArray(Node(None, columns=[Node(a, name="x")], length=N, **lies))
        for lies, words in (({"array": {"n_children": 2}}, "n_children is 2, not that"), ({"array": {"children": None}}, "children is 0"),
                            ({"schema": {"children": None}}, "n_children of the schema"), ({"schema": {"n_children": -1}}, "n_children of the schema"),
                            ({"array": {"n_buffers": 2}}, "n_buffers is 2, must be 1"), ({"array": {"length": N + 1}}, "less than its batch has rows"),
                            ({"array": {"offset": 1}}, "less than its batch has rows"), ({"array": {"length": -1}}, "length is -1")):
            x = table(**lies)
            with self.assertRaisesRegex(ValueError, words, msg=lies):
                cured.sum(cured.column(x, "x" if "schema" not in lies else 0))
            gc.collect()
            self.assertTrue(x.ended(), lies)

    def test_a_bitmap_of_more_rows_than_there_are(self):
        """It is read when the column is known to be as long."""
        a = self.elements("f8")
        x = OfArray(Node(None, numpy.zeros(N, bool), columns=[Node(a, name="x")], length=N, array={"length": 2**40, "null_count": -1}))
        with self.assertRaisesRegex(ValueError, "less than its batch has rows"):
            cured.sum(cured.column(x, "x"))

    def test_capsules_that_are_none(self):
        a = self.elements("f8")

        class Wrong(OfArray):
            gives = None

            def __arrow_c_array__(self, requested_schema=None):
                found = super().__arrow_c_array__()
                return type(self).gives(*found)
        for gives in (lambda s, x: (x, s), lambda s, x: (s, s), lambda s, x: (s, 7), lambda s, x: (None, x)):
            Wrong.gives = staticmethod(gives)
            with self.assertRaisesRegex(TypeError, "Arrow: a capsule called"):
                cured.sum(Wrong(Node(a)))
        Wrong.gives = staticmethod(lambda s, x: s)
        with self.assertRaises(TypeError):
            cured.sum(Wrong(Node(a)))
        taken = OfArray(Node(a))
        capsules = taken.__arrow_c_array__()
        self.assertEqual(N, cured._cured._arrow_array(*capsules, None, False)[1])
        with self.assertRaisesRegex(ValueError, "was released"):
            cured._cured._arrow_array(*capsules, None, False)


if __name__ == "__main__":
    unittest.main()
