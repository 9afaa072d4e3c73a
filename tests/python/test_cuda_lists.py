"""Lists with CUDA tensors, crossed, over the runtime double: types × where the arrays lie × what is asked. Each answer is that of the
elements cast by NumPy and laid one after the other; what has no answer says why."""
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
