"""Lists with CUDA tensors, crossed, over the runtime double: types × where the arrays lie × what is asked. Each answer is that of the
elements cast by NumPy and laid one after the other; what has no answer says why."""
import gc
import itertools
import sys
import threading
import unittest

import numpy

from support import Case, cured
from test_cuda_here import OPS, Borrowed, Tensor, outcome, random
from test_cuda_ways import OnGpu, View, new_stream

TYPES = {"one": "f4 f4 f4 f4 f4 f4", "floats": "f2 f4 f2 f8 f4 f8", "halves": "f2 f4 f4 f2 f2 f4", "integers": "u1 i1 ? i4 u1 i2", "unsigned": "? u1 u8 u4 u2 u8"}
NOT_ONE = {"f4 i4 f4": "floats and integers", "u8 i8 u8": "no type holds"}
LENGTHS = (4096, 300, 0, 1, 7000, 77)
PLACES = {
    "a GPU": lambda a, k: Tensor(a),
    "looked at in C": lambda a, k: Borrowed(a),
    "a GPU and the host": lambda a, k: a if k % 3 == 1 else Tensor(a),
    "two GPUs": lambda a, k: OnGpu(a, k % 2),
    "two GPUs and the host": lambda a, k: a if k % 3 == 1 else OnGpu(a, k % 2),
}
CALLS = {op: (lambda x, op=op: getattr(cured, op)(x)) for op in OPS}
CALLS.update({
    "several": lambda x: cured.reduce(x, "sum,max,std,count_nonzero,norm1"),
    "with places": lambda x: cured.reduce(x, "argmin,sum,argmax"),
    "describe": cured.describe,
    "partial": lambda x: bytes(cured.partial(x, "sum,max,argmin", first=9)),
    "unplaced": lambda x: bytes(cured.partial(x, "sum,min,count_nan", first=None)),
    "rounded": lambda x: cured.reduce(x, "mean,norm2", dtype="f4"),
    "skipped": lambda x: cured.reduce(x, "sum,max,argmax", nan="skip"),
    "ddof": lambda x: cured.std(x, ddof=3),
})


class Crossed(Case):
    def arrays(self, types, nan=False):
        arrays = [random((n,), dtype, k) for k, (dtype, n) in enumerate(zip(types.split(), LENGTHS))]
        if nan:
            arrays[1][200] = arrays[-1][3] = numpy.nan
        return arrays

    def test_answers(self):
        self.addCleanup(setattr, Borrowed, "now", None)
        Borrowed.now = new_stream().value
        for types in TYPES.values():
            for nan in (False, True) if "f" in types else (False,):
                arrays = self.arrays(types, nan)
                wide = numpy.result_type(*arrays)
                whole = numpy.concatenate([a.astype(wide) for a in arrays])
                for call, ask in CALLS.items():
                    if call in ("prod",) and wide.kind == "f" or call == "skipped" and wide.kind != "f":
                        continue
                    if call == "digest" and len(set(types.split())) > 1:  # refused below
                        continue
                    wanted = outcome(lambda: ask(whole))
                    for place, put in PLACES.items():
                        tensors = [put(a, k) for k, a in enumerate(arrays)]
                        self.assertEqual(wanted, outcome(lambda: ask(tensors)), (types, nan, call, place))

    def test_refused(self):
        for types, words in NOT_ONE.items():
            for place, put in PLACES.items():
                tensors = [put(a, k) for k, a in enumerate(self.arrays(types))]
                with self.assertRaisesRegex(TypeError, words, msg=(types, place)):
                    cured.sum(tensors)
        for place, put in PLACES.items():
            with self.assertRaisesRegex(ValueError, "prod: ", msg=place):
                cured.prod([put(a, k) for k, a in enumerate(self.arrays(TYPES["floats"]))])
            for name in ("floats", "halves", "integers", "unsigned"):
                with self.assertRaisesRegex(ValueError, "digest: of arrays of one type", msg=(name, place)):
                    cured.digest([put(a, k) for k, a in enumerate(self.arrays(TYPES[name]))])

    def test_what_a_list_does_not_take(self):
        """By its name, wherever the arrays lie: none is passed over."""
        given = {"keys": numpy.zeros(9, "i4"), "groups": 2, "drop": True, "offsets": [0, 5], "second": numpy.ones(9, "f4"), "shape": (9,), "start": (0,),
                 "axis": 0, "keepdims": True, "where": numpy.ones(9, bool), "initial": 1.0, "out": numpy.zeros(())}
        for (place, make), (option, value) in itertools.product(PLACES.items(), given.items()):
            arrays = [make(random((9,), "f4", k), k) for k in range(2)]
            for call in (cured.sum, lambda x, **o: cured.reduce(x, "sum,max", **o), lambda x, **o: cured.partial(x, "sum", **o)):
                with self.subTest((place, option)), self.assertRaisesRegex(TypeError, "^(%s: a list of arrays|initial: only)" % option):
                    call(arrays, **{option: value})

    def test_gaps(self):
        """Of one tensor in a list, wherever the others lie."""
        memory = Tensor(random((6, 8), "f4"))
        gaps = type("Gaps", (), {"__cuda_array_interface__": dict(memory.__cuda_array_interface__, strides=(32, 8), shape=(6, 4)), "dtype": memory.dtype})()
        turned = View(random((30, 50), "f4").T)
        for types in TYPES.values():
            for place, put in PLACES.items():
                tensors = [put(a, k) for k, a in enumerate(self.arrays(types))]
                for call in (cured.sum, cured.describe, lambda x: cured.partial(x, "sum"), lambda x: cured.reduce_each(x, "sum")):
                    with self.assertRaisesRegex(ValueError, "gaps.*contiguous", msg=(types, place)):
                        call([*tensors[:2], gaps, *tensors[2:]])
                with self.assertRaisesRegex(ValueError, "order matters.*contiguous", msg=(types, place)):
                    cured.argmax([*tensors, turned])

    def test_each(self):
        """A sequence as the list of the Results: places × ops, with NaNs and without, and after the tensors died."""
        self.addCleanup(setattr, Borrowed, "now", None)
        Borrowed.now = new_stream().value
        for types, nan in (("one", True), ("floats", False), ("integers", False)):
            arrays = self.arrays(TYPES[types], nan)
            for ops, options in (("norm2,min,argmax", {}), (["sum"], {}), ("count,var,mean", {"ddof": 1}), ("sum,norm1,norm2,mean,sumsq", {}),
                                 ("norm2,sum,mean", {"dtype": "f4", "nan": "skip" if "f" in TYPES[types] and "i" not in TYPES[types] else "propagate"})):
                wanted = [cured.reduce(a, ops, **options) for a in arrays]
                for place, put in PLACES.items():
                    tensors = [put(a, k) for k, a in enumerate(arrays)]
                    for given in (tensors, tuple(tensors), iter(tensors)):
                        got = cured.reduce_each(given, ops, **options)
                        del given
                    tensors.clear()
                    self.assert_sequence(got, wanted, (types, place))
                    self.assertEqual([outcome(lambda: r) for r in wanted], [outcome(lambda: r) for r in got])

    def test_each_is_made_when_it_is_asked_for(self):
        """Once, also where making it is interrupted by another that asks for it, and from many threads."""
        arrays = self.arrays(TYPES["one"])
        got = cured.reduce_each([Borrowed(a) for a in arrays], "sum,norm2")
        del gc.garbage[:]
        before = sum(isinstance(o, cured.Result) for o in gc.get_objects())
        self.assertEqual(got[2].sum, 0)
        self.assertEqual(before + 1, sum(isinstance(o, cured.Result) for o in gc.get_objects()))
        self.assertIs(got[2], got[2])
        asked = []
        gc.callbacks.append(lambda phase, info: asked.append(got[1]) if phase == "stop" else None)
        self.addCleanup(gc.callbacks.clear)
        limits = gc.get_threshold()
        gc.set_threshold(1)
        try:
            made = got[1]
        finally:
            gc.set_threshold(*limits)
        self.assertTrue(asked)
        self.assertTrue(all(r is made for r in asked))
        many = cured.reduce_each([Borrowed(a) for a in arrays * 50], "sum,max,norm2")
        found = [None] * 8
        threads = [threading.Thread(target=lambda k=k: found.__setitem__(k, list(many))) for k in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all(one is other for every in found for one, other in zip(every, found[0])))

    def test_looked_at_alone(self):
        """No tensor more is made of the memory of one that is looked at in C; the call holds the tensor itself, and then no more."""
        self.addCleanup(setattr, Borrowed, "now", None)
        Borrowed.now = new_stream().value
        array = random((30, 50), "f4")
        for options in ({}, {"axis": 1}, {"where": True}):
            t, out = Borrowed(array), Borrowed(numpy.zeros(30 if "axis" in options else ()))
            if "where" in options:
                options = {"where": Borrowed(array > 0)}
            before = [sys.getrefcount(x) for x in (t, out)]
            self.assertEqual(outcome(lambda: cured.norm2(array, **{k: v.host() if k == "where" else v for k, v in options.items()})), outcome(lambda: cured.norm2(t, **options)))
            for _ in range(3):
                if "where" not in options:
                    self.assertIs(out, cured.norm2(t, out=out, **options))
                    self.assertEqual(outcome(lambda: cured.norm2(array, dtype="f8", **options)), outcome(lambda: out))
                several = tuple(Borrowed(numpy.zeros_like(out.host())) for _ in range(3))
                got = cured.reduce(t, "sum,norm1,norm2", out=several, **{k: v for k, v in options.items() if k == "axis"})
                self.assertTrue(all(one is other for one, other in zip(got.values(), several)))
                self.assertEqual(outcome(lambda: cured.norm2(array, dtype="f8", **{k: v for k, v in options.items() if k == "axis"})), outcome(lambda: several[2]))
                del got, several
            self.assertEqual(before, [sys.getrefcount(x) for x in (t, out)])
            self.assertFalse(hasattr(t, "given") or hasattr(out, "given") or any(hasattr(x, "given") for x in options.values()))

    def test_each_of_none(self):
        """What is no array, wherever it is in the list, and lists of none."""
        t = Borrowed(random((9,), "f4"))
        for wrong in ([], (), iter(())):
            with self.assertRaises((TypeError, ValueError)):
                cured.reduce_each(wrong, "sum")
        for wrong in ([t, "x"], ["x", t], [t, 3], [t, None]):
            with self.assertRaises(TypeError):
                cured.reduce_each(wrong, "sum")
        for words, call in (("ops", lambda: cured.reduce_each([t], [])), ("no argument 'axes'", lambda: cured.reduce_each([t], "sum", axes=1)),
                            ("out: ", lambda: cured.reduce_each([t], "sum", out=(numpy.zeros(()),))), ("op", lambda: cured.reduce_each([t], "summ"))):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                call()
        mask = Tensor(numpy.arange(9) > 4)
        self.assertEqual(repr(cured.reduce_each([t.host()] * 2, "sum,mean", where=numpy.arange(9) > 4)), repr(cured.reduce_each([Tensor(t.host())] * 2, "sum,mean", where=mask)))

    def test_one_call_for_a_type(self):
        """Of tensors that are looked at in C; others make one for each type."""
        tensors, calls, before = [Borrowed(a) for a in self.arrays(TYPES["floats"])], [], cured._cured._cuda_partial
        cured._cured._cuda_partial = lambda arrays, *more: calls.append(len(arrays)) or before(arrays, *more)
        self.addCleanup(setattr, cured._cured, "_cuda_partial", before)
        cured.reduce(tensors, "norm2,max")
        self.assertEqual([], calls)
        cured.reduce([Tensor(a) for a in self.arrays(TYPES["floats"])], "norm2,max")
        self.assertEqual([2, 2, 2], calls)


if __name__ == "__main__":
    unittest.main()
