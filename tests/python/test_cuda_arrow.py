"""Arrow's arrays and streams in the memory of a GPU, over the runtime double of tests/double: the bits of the same array of the host, behind
the producer's event, released once; and what is refused, by which sentence. By capsules that are made here (arrow_producer.py)."""
import ctypes
import gc
import itertools
import unittest

import numpy
from arrow_producer import ALIVE, FORMATS, Node, OfArray, OfDevice, OfDevices, OfStream
from support import Case, cured
from test_cuda_here import CUDA, TO_DEVICE, Tensor, number, outcome

N = 700
WHOLE = "sum mean min max argmin argmax count count_nonzero count_nan count_inf any all sumsq norm1 norm2 norminf var std".split()
UNDER = "sum mean norm1 min max argmin argmax norminf ptp count count_nan count_inf count_nonzero".split()  # of a mask


class There(Node):
    """A node whose buffers lie in the double's device."""

    def array(self):
        if self.buffers and not hasattr(self, "host"):
            self.host, self.memory = self.buffers, [None if b is None else copied(b) for b in self.buffers]
        array = super().array()
        for i, there in enumerate(self.memory):
            array.addresses[i] = None if there is None else there.memory
        return array


def copied(array):
    return Tensor(numpy.ascontiguousarray(array))


def random(dtype, n=N, seed=7):
    r = numpy.random.default_rng(seed)
    a = (r.standard_normal(n) * 20).astype(dtype)
    if dtype[0] == "f" and n > 9:
        a[r.integers(0, n, 3)] = [numpy.nan, -0.0, numpy.inf]
    return a


def mask_of(n=N, seed=3):
    return numpy.random.default_rng(seed).random(n) < 0.3


class Arrow(Case):
    def same(self, call, a, mask=None, what=None, **more):
        """call() of a column on the GPU gives what it gives of one on the host, and each is released once."""
        there, host = OfDevice(There(a, mask, **more), 2), OfArray(Node(a, mask, **more))
        self.assertEqual(outcome(lambda: call(host)), outcome(lambda: call(there)), what)
        gc.collect()
        self.assertEqual({"schema": there.asked, "array": there.asked}, there.node.released, what)


class Columns(Arrow):
    def test_every_type(self):
        for dtype in FORMATS:
            a = random(dtype)
            floats = dtype[0] == "f"
            ops = WHOLE + ["ptp"] + ([] if floats else ["prod", "bit_and", "bit_or", "bit_xor"])
            for mask, asked in ((None, ops), (mask_of(), UNDER + (["sumsq", "norm2", "var", "std"] if floats else []))):
                for offset in (0, 13):
                    self.same(lambda x: cured.reduce(x, asked), a, mask, (dtype, offset), offset=offset)
                for op in ("sum", "argmax"):
                    self.same(getattr(cured, op), a, mask, (op, dtype))
            for op in ("digest", "median"):
                self.same(getattr(cured, op), a, None, (op, dtype), offset=13)
            self.same(lambda x: dict(cured.describe(x)), a, None, dtype)

    def test_offsets_of_bits(self):
        """Every place in a byte, and lengths that end in one."""
        for offset in range(9):
            for length in (0, 1, 7, 8, 65, 400):
                for dtype in ("f4", "i2"):
                    a, mask = random(dtype, offset + length), mask_of(offset + length)
                    self.same(lambda x: cured.reduce(x, "sum,count"), a, mask, (offset, length, dtype), offset=offset)
        a, mask = random("f8"), mask_of()
        self.same(cured.sum, a, mask, "unknown", nulls=-1)
        self.same(cured.sum, a, numpy.zeros(N, bool), "unknown, and none", nulls=-1)
        self.same(cured.digest, a, numpy.zeros(N, bool), "none")
        self.same(cured.count, a, numpy.ones(N, bool), "all")
        self.same(cured.min, a, numpy.ones(N, bool), "no elements")

    def test_a_bitmap_without_nulls_is_not_read(self):
        """Where null_count is 0 the bitmap may say what it likes: a GPU's is not looked at."""
        a, lies = random("f8"), numpy.ones(N, bool)
        for op in ("sum", "prod", "digest", "median", "std"):
            self.assertEqual(outcome(lambda: getattr(cured, op)(a)), outcome(lambda: getattr(cured, op)(OfDevice(There(a, lies, nulls=0), 2))), op)
        batch = Node(None, lies, 5, columns=[There(a, lies, name="x", nulls=0)], length=600, nulls=0)
        self.assertEqual(outcome(lambda: cured.prod(a[5:605])), outcome(lambda: cured.prod(cured.column(OfDevice(batch, 2), "x"))))

    def test_options(self):
        keys, out = numpy.random.default_rng(1).integers(0, 5, N), numpy.zeros((), "f4")
        for mask in (None, mask_of()):
            for dtype in ("f4", "f8", "i4"):
                a = random(dtype)
                for op in ("sum", "mean", "count", "max"):
                    for options in ({"axis": 0}, {"axis": -1, "keepdims": True}, {"keys": Tensor(keys)}, {"keys": Tensor(keys), "groups": 9},
                                    {"offsets": Tensor(numpy.array([0, 10, 10, 300]))}, {"offsets": [0, 10, 10, 300]}, {"min_count": 3},
                                    {"min_count": N}, {"axis": 3}, {"out": out}):
                        host = {name: value.host() if isinstance(value, Tensor) else value for name, value in options.items()}
                        call = getattr(cured, op)
                        self.assertEqual(outcome(lambda: call(OfArray(Node(a, mask)), **host)),
                                         outcome(lambda: call(OfDevice(There(a, mask), 2), **options)), (op, dtype, mask is None, host))
                there = Tensor(numpy.zeros((), "f8"))
                self.assertIs(there, cured.mean(OfDevice(There(a, mask), 2), out=there))
                self.assertEqual(numpy.asarray(cured.mean(OfArray(Node(a, mask)))).tobytes(), there.host().tobytes())
                self.same(lambda x: cured.partial(x, "sum,max" if dtype != "i4" or mask is None else "sum"), a, mask, (dtype, "partial"))
                for options in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"keepdims": True}, {"nan": "skip"}):
                    self.same(lambda x: cured.std(x, ddof=1.5, **options), a, mask, (dtype, options, "ddof"))
                self.same(lambda x: cured.reduce(x, "sum,var", 0, correction=0.5), a, mask, (dtype, "ddof"))
                self.same(lambda x: cured.var(x, ddof=2) if dtype != "i4" or mask is None else 1, a, mask, "ddof")
            self.same(lambda x: cured.sum(x, nan="skip"), random("f4"), mask, "nan")
            self.same(lambda x: cured.sum(x, dtype="f4"), random("f8"), mask, "dtype")
            self.same(lambda x: cured.sum(x, nulls="error"), random("f8"), mask, "nulls")
            self.same(lambda x: cured.sum(x, nulls="maybe"), random("f8"), mask, "nulls")
        a, b = random("f8"), random("f8", seed=9)
        self.same(lambda x: cured.partial(x, "argmax,prod", first=4096), a)
        self.same(lambda x: cured.quantile(x, [0.1, 0.9]), a)
        self.same(lambda x: cured.percentile(x, 7), random("i4"))
        self.assertEqual(outcome(lambda: cured.dot(a, b)), outcome(lambda: cured.dot(OfDevice(There(a), 2), OfDevice(There(b), 2))))
        self.assertEqual(outcome(lambda: cured.sum(a, keys=keys)), outcome(lambda: cured.sum(OfDevice(There(a), 2), keys=OfDevice(There(keys), 2))))

    def test_bools(self):
        """A bit each, at every place in a byte, and lengths about those that a thread has."""
        for offset in range(9):
            for length in (0, 1, 7, 8, 15, 16, 17, 33, 400):
                for mask in (None, mask_of(offset + length)):
                    for a in (random("i1", offset + length) > 0, numpy.ones(offset + length, bool)):
                        self.same(lambda x: cured.reduce(x, "sum,count"), a, mask, (offset, length), offset=offset)
        for offset in (0, 3):
            a = random("i2", 70001) > 0
            self.same(lambda x: cured.reduce(x, WHOLE + ["bit_and", "bit_or", "bit_xor"]), a, None, offset, offset=offset)
            self.same(lambda x: cured.reduce(x, UNDER), a, mask_of(70001), offset, offset=offset)
            for op in ("digest", "median", "min", "max", "mean", "any", "all", "std"):
                self.same(getattr(cured, op), a, None, op, offset=offset)
        a, keys = random("i2") > 0, numpy.random.default_rng(1).integers(0, 5, N)
        for mask in (None, mask_of()):
            for options in ({"axis": 0}, {"axis": -1, "keepdims": True}, {"keys": keys}, {"offsets": [0, 10, 10, 300]}, {"min_count": N}, {"nulls": "error"}):
                for op in ("sum", "mean", "count", "max"):
                    there = {name: Tensor(value) if name == "keys" else value for name, value in options.items()}
                    self.assertEqual(outcome(lambda: getattr(cured, op)(OfArray(Node(a, mask)), **options)),
                                     outcome(lambda: getattr(cured, op)(OfDevice(There(a, mask), 2), **there)), (op, mask is None, options))
            nodes = [There(a[:100], None if mask is None else mask[:100]), There(a[97:], None if mask is None else mask[97:], 3)]
            whole = a if mask is None else numpy.ma.masked_array(a, mask)
            for op in ("sum", "max", "count"):
                self.assertEqual(outcome(lambda: getattr(cured, op)(whole)), outcome(lambda: getattr(cured, op)(OfDevices(nodes))), op)
            self.same(lambda x: cured.partial(x, "sum,count"), a, mask, "partial")
            self.same(lambda x: dict(cured.describe(x)) if mask is None else 1, a, mask, "describe")
        self.assertEqual(0, cured.sum(OfDevices([], type_of=Node(a))))
        batch = OfDevice(Node(None, None, 5, columns=[There(a, name="x")], length=600), 2)
        self.assertEqual(outcome(lambda: cured.sum(a[5:605])), outcome(lambda: cured.sum(cured.column(batch, 0))))
        self.assertEqual(outcome(lambda: cured.sum(a, where=a)), outcome(lambda: cured.sum(OfDevice(There(a), 2), where=Tensor(a))))

    def test_memory_of_bools_is_given_back(self):
        CUDA.cr_double_device_bytes.restype = ctypes.c_uint64
        a = random("i1", 5000) > 0
        node = There(a)
        cured.sum(OfDevice(node, 2))
        gc.collect()
        CUDA.cudaDeviceSynchronize()
        before = CUDA.cr_double_device_bytes()
        for _ in range(3):
            cured.sum(OfDevice(node, 2))
            with self.assertRaises(numpy.AxisError):
                cured.sum(OfDevice(node, 2), axis=3)
        gc.collect()
        CUDA.cudaDeviceSynchronize()
        self.assertEqual(before, CUDA.cr_double_device_bytes())

    def test_batches(self):
        a, b, mask = random("f8"), random("i4"), mask_of()
        batch = OfDevice(Node(None, None, 5, columns=[There(a, name="x"), There(b, mask, name="y")], length=600), 13)
        self.assertEqual(outcome(lambda: cured.sum(a[5:605])), outcome(lambda: cured.sum(cured.column(batch, "x"))))
        self.assertEqual(cured.sum(numpy.ma.masked_array(b, mask)[5:605]), cured.sum(cured.column(batch, 1)))
        missing = copied(numpy.packbits(~mask, bitorder="little"))
        both = Node(None, mask, 0, columns=[There(b, mask, name="y")], length=N)
        both.buffers = [type("At", (), {"ctypes": type("C", (), {"data": missing.memory})})]
        with self.assertRaisesRegex(TypeError, "the batch and its column both have nulls, and on a GPU one bitmap is read"):
            cured.sum(cured.column(OfDevice(both, 2), "y"))

    def test_streams(self):
        for dtype in ("f4", "i8"):
            a, mask = random(dtype, 3 * N), mask_of(3 * N)
            def cut(missing):
                return [There(numpy.concatenate([a[:k], a[k * N:k * N + N]]), None if missing is None else
                              numpy.concatenate([missing[:k], missing[k * N:k * N + N]]), k) for k in range(3)]
            for missing in (None, mask):
                whole = a if missing is None else numpy.ma.masked_array(a, missing)
                for op in ("sum", "max", "count", "mean") + (("argmax", "digest", "median", "var") if missing is None else ()):
                    nodes = cut(missing)
                    stream = OfDevices(nodes)
                    self.assertEqual(outcome(lambda: getattr(cured, op)(whole)), outcome(lambda: getattr(cured, op)(stream)), (op, dtype))
                    gc.collect()
                    self.assertEqual((1, 1), (stream.released, nodes[2].released["array"]), op)
                self.assertEqual(outcome(lambda: cured.sum(whole)), outcome(lambda: cured.sum([OfDevices(cut(missing))])))
                parts = [OfDevices(cut(missing)), OfDevice(There(a, missing), 2)]
                twice = numpy.ma.concatenate([whole, whole]) if missing is not None else numpy.concatenate([whole, whole])
                self.assertEqual(outcome(lambda: cured.sum(twice)), outcome(lambda: cured.reduce_parts(parts, "sum")["sum"]))
        a = random("f4")
        self.assertEqual(0.0, cured.sum(OfDevices([], type_of=Node(a))))
        self.assertEqual(outcome(lambda: cured.sum(a)), outcome(lambda: cured.sum(OfDevices([Node(a[:9]), Node(a[9:])], device=1))))
        for words, make in (("says that its arrays lie on a GPU, and gave one of host memory", lambda: OfDevices([Node(a)], 2, of=1)),
                            ("gave an array on a GPU", lambda: OfDevices([There(a)], 1, of=2))):
            with self.assertRaisesRegex(TypeError, words):
                cured.sum(make())
        with self.assertRaisesRegex(OSError, "the Arrow stream failed: the GPU is gone"):
            cured.sum(OfDevices([There(a), "fails"]))
        with self.assertRaisesRegex(TypeError, "a list of arrays is one array without axes"):
            cured.sum(OfDevices([There(a), There(a)]), axis=0)


class Events(Arrow):
    def test_the_event_is_waited_for(self):
        """A slow writer on a stream of its own, which the legacy one does not wait for by itself."""
        waits = (ctypes.c_uint64 * 64)()
        for seed in range(6):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            stream, event = ctypes.c_void_p(), ctypes.c_void_p()
            CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
            CUDA.cudaEventCreateWithFlags(ctypes.byref(event), 2)
            true, false = random("f8", 5000, seed), numpy.zeros(5000)
            node = There(false)
            x = OfDevice(node, 2, event.value)
            node.array()
            CUDA.cr_double_slow_write(stream, number(node.memory[1].memory), number(true.ctypes.data), ctypes.c_size_t(true.nbytes))
            self.assertEqual(0, CUDA.cudaEventRecord(event, stream))
            CUDA.cr_double_count(waits)
            before = waits[0], waits[1]
            self.assertEqual(outcome(lambda: cured.sum(true)), outcome(lambda: cured.sum(x)), seed)
            CUDA.cr_double_count(waits)
            self.assertEqual(before[0], waits[0], "the device is not waited for as a whole")
            CUDA.cudaEventDestroy(event)
            CUDA.cudaStreamDestroy(stream)

    def test_pinned_memory_is_waited_for_by_the_host(self):
        for seed in range(4):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            stream, event, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
            CUDA.cudaEventCreateWithFlags(ctypes.byref(event), 2)
            true = random("f8", 5000, seed)
            self.assertEqual(0, CUDA.cudaMallocHost(ctypes.byref(memory), ctypes.c_size_t(true.nbytes)))
            pinned = numpy.frombuffer((ctypes.c_char * true.nbytes).from_address(memory.value), "f8")
            pinned[:] = 0
            ALIVE.append(pinned)
            CUDA.cr_double_slow_write(stream, memory, number(true.ctypes.data), ctypes.c_size_t(true.nbytes))
            self.assertEqual(0, CUDA.cudaEventRecord(event, stream))
            self.assertEqual(outcome(lambda: cured.sum(true)), outcome(lambda: cured.sum(OfDevice(Node(pinned), 3, event.value))), seed)
            CUDA.cudaEventDestroy(event)
            CUDA.cudaStreamDestroy(stream)


class Lent(There):
    """Notes when it is released whether the GPU has still to work on the stream: its producer may free the memory then."""

    def __init__(self, values, stream):
        super().__init__(values)
        self.stream, self.pending = stream, []

    def end(self, what, pointer):
        if what == "array":
            self.pending.append(CUDA.cr_double_pending_in(self.stream))
        super().end(what, pointer)


class Released(Case):
    def test_what_stands_beside_is_read_before(self):
        """Answers go to a tensor, and the call waits all the same where a producer may free what it reads."""
        a, keys, keep = random("f4", 3000), numpy.random.default_rng(1).integers(0, 5, 3000), mask_of(3000)
        ways = [("sum", "keys", keys, {"groups": 5}, 5), ("sum", "offsets", numpy.array([0, 10, 10, 3000]), {}, 3), ("sum", "where", keep, {}, ()),
                ("dot", "second", random("f4", 3000, 9), {}, ())]
        own = ctypes.c_void_p()
        CUDA.cudaStreamCreateWithFlags(ctypes.byref(own), 1)
        self.addCleanup(CUDA.cr_double_seed, ctypes.c_uint64(0))
        for (op, name, array, options, shape), seed in itertools.product(ways, range(4)):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            stream = number(1) if name == "where" else own  # masks are of the array's stream
            node, t, out = Lent(array, stream), Tensor(numpy.zeros(3000, "f4"), stream.value), Tensor(numpy.zeros(shape), stream.value)
            column = OfDevice(node, 2)
            node.array()
            CUDA.cr_double_slow_write(stream, number(t.memory), number(a.ctypes.data), ctypes.c_size_t(a.nbytes))
            getattr(cured, op)(t, **{name: column}, **options, out=out)
            gc.collect()
            self.assertEqual([False], [bool(n) for n in node.pending], (name, seed))
            self.assertEqual({"schema": 1, "array": 1}, node.released, name)
            self.assertEqual(numpy.asarray(getattr(cured, op)(a, **{name: array}, **options)).tobytes(), out.host().tobytes(), name)
        CUDA.cudaStreamDestroy(own)


    def test_bits_of_a_refused_call(self):
        """They become bytes before anything is asked, so they are read although nothing is answered."""
        self.addCleanup(CUDA.cr_double_seed, ctypes.c_uint64(0))
        for seed in range(4):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            node = Lent(mask_of(3000), number(1))
            column = OfDevice(node, 2)
            node.array()
            slow = Tensor(numpy.zeros(3000, "f4"), 1)
            CUDA.cr_double_slow_write(number(1), number(slow.memory), number(slow.memory), ctypes.c_size_t(0))
            launches = CUDA.cr_double_calls(b"launch")
            with self.assertRaisesRegex(Exception, "axis"):
                cured.sum(column, axis=3)
            gc.collect()
            self.assertEqual([0], node.pending, seed)
            self.assertEqual(1, CUDA.cr_double_calls(b"launch") - launches, "that of the bits: nothing is folded to wait")


class Refused(Arrow):
    def test_nulls_of_what_stands_beside(self):
        """A GPU reads none of theirs."""
        a, b, keys, keep, mask = random("f4"), random("f4", seed=9), numpy.arange(N) % 5, mask_of(seed=4), mask_of()
        ways = [("sum", "keys", keys, ValueError, "keys: without nulls on a GPU"), ("dot", "second", b, ValueError, "second: without nulls on a GPU"),
                ("sum", "where", keep, TypeError, "where: the mask has nulls"), ("sum", "offsets", numpy.arange(N), TypeError, "offsets: on a GPU .* without nulls")]
        for (op, name, array, kind, words), first in itertools.product(ways, (lambda: Tensor(a), lambda: OfDevice(There(a), 2))):
            for more in ({}, {"min_count": 1}, {"out": Tensor(numpy.zeros(5 if name == "keys" else N - 1 if name == "offsets" else ()))}):
                with self.assertRaisesRegex(kind, "^" + words):
                    getattr(cured, op)(first(), **{name: OfDevice(There(array, mask), 2)}, **more)
            if name != "offsets":
                with self.assertRaisesRegex(kind, "^" + words):
                    cured.partial(first(), op, **{name: OfDevice(There(array, mask), 2)})
            self.assertEqual(outcome(lambda: getattr(cured, op)(a, **{name: array})),
                             outcome(lambda: getattr(cured, op)(first(), **{name: OfDevice(There(array), 2)})), name)

    def test_the_first_that_is_missing(self):
        """As of the same column on the host, also behind chunks in which none is."""
        a = random("f4", 300)
        for first, offset, before in itertools.product((0, 7, 64, 299), (0, 3, 8), (0, 1, 150)):
            missing = numpy.zeros(offset + 300, bool)
            missing[[offset + first, -1]] = True
            values = numpy.concatenate([a[:offset], a])
            sentences = []
            for kind, stream, one in ((There, OfDevices, lambda node: OfDevice(node, 2)), (Node, OfStream, OfArray)):
                node = kind(values, missing, offset)
                column = stream([kind(a[:before]), node]) if before else one(node)
                with self.assertRaises(ValueError) as caught:
                    cured.sum(column, nulls="error")
                sentences.append(str(caught.exception))
            self.assertEqual(sentences[0], sentences[1], (first, offset, before))
            self.assertIn("the first at [%d];" % (before + first), sentences[0])

    def test_sentences(self):
        a, mask = random("f4"), mask_of()
        def there(missing=None, **more):
            return OfDevice(There(a, missing, **more), 2)
        cases = [("device_type is 7 .number 0., must be 1 .CPU.", lambda: cured.sum(OfDevice(Node(a), 7))),
                 ("under a mask", lambda: cured.prod(there(mask))), ("mask", lambda: cured.median(there(mask))),
                 ("mask", lambda: cured.quantile(there(mask), [0.1, 0.2])), ("digest", lambda: cured.digest(there(mask))),
                 ("where: the mask of a CUDA tensor is a bool tensor", lambda: cured.sum(there(), where=~mask)),
                 *(("where: the array has nulls, and on a GPU one mask is read: pass a copy on the host", call) for call in (
                     lambda: cured.sum(there(mask), where=Tensor(~mask)), lambda: cured.reduce(there(mask), "min,max", where=Tensor(~mask)),
                     lambda: cured.mean(there(mask), axis=0, where=Tensor(~mask)), lambda: cured.partial(there(mask), "sum", where=Tensor(~mask)))),
                 ("no position", lambda: cured.partial(there(mask), "sum", first=0)),
                 ("initial", lambda: cured.sum(there(), initial=1)), ("nulls: the array has missing elements, the first at .%d.; nulls=.skip. leaves them out" % mask.argmax(), lambda: cured.sum(there(mask), nulls="error")),
                 ("client: an Arrow array on a GPU is answered in this process", lambda: client.sum(there())),
                 ("client: an Arrow array on a GPU", lambda: cured.sum(there(), client=client)),
                 ("lies on a GPU", lambda: cured.sum(OfArray(Node(a)), where=OfDevice(There(random("u1")), 2))),
                 ("lies on a GPU", lambda: cured.dot(OfArray(Node(a)), OfDevice(There(a), 2))),
                 ("null_count is 9, but there is no bitmap", lambda: cured.sum(there(nulls=9))), ("nested", lambda: cured.sum(OfDevice(Node(None, columns=[There(a)], length=1), 2))),
                 ("units of time", lambda: cured.sum(there(format="tdD")))]
        with cured.Client("embedded:") as client:
            for words, ask in cases:
                with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), words, msg=words):
                    ask()
        self.assertEqual(outcome(lambda: cured.sum(a[~mask])), outcome(lambda: cured.sum(there(), where=Tensor(~mask))))


if __name__ == "__main__":
    unittest.main()
