"""Linear forms of CUDA tensors, over the runtime double: kinds of tensors × types × ops × grids, written and finished on the GPU, beside
what partials in host memory say; ranks that add up; and what is refused."""
import unittest

import numpy

from support import Case, cured
from test_cuda_here import Borrowed, Tensor, random
from test_cuda_ways import OnGpu, new_stream

FLOATS = ("f2", "f4", "f8")
SUMS = ("sum", "norm1", "sumsq", "norm2", "mean")
OTHERS = ("min,max", "norminf", "count_nonzero,sum", "count_nan", "var,std")
MAXIMA = 4


def of_host(a, ops, dtype=None):
    """(sums, maxima) by a partial in host memory."""
    made = cured.partial(a, ops, first=None)
    if dtype is not None:
        made = cured._cured._widened([made], dtype)
    return made.linear().tolist(), made.linear_max().tolist()


def room(count):
    return Tensor(numpy.full(count, -7, "i8"))


class Written(Case):
    def check(self, a, put, ops, dtype=None):
        wanted, maxima = of_host(a, ops, dtype)
        out, greatest = room(len(wanted)), room(MAXIMA) if maxima else None
        self.assertIs(out, cured.linear(put(a), ops, dtype=dtype, out=out, maxima=greatest))
        self.assertEqual(wanted, out.host().tolist(), (a.dtype, len(a), ops, dtype))
        if maxima:
            self.assertEqual(maxima, greatest.host().tolist(), (a.dtype, len(a), ops))

    def test_types_and_ops(self):
        for put in (Tensor, Borrowed):
            for dtype in FLOATS + ("i4", "u8", "?", "i1"):
                for n in (0, 1, 5000):
                    a = random((n,), dtype, n)
                    if n and dtype in FLOATS:
                        a[n // 2] = numpy.nan if n > 1 else -0.0
                    for ops in SUMS[:3] + OTHERS if dtype in FLOATS else ("sum", "sumsq", "min,max", "count_nonzero,sum"):
                        self.check(a, put, ops)

    def test_grids(self):
        for dtype in ("f2", "f4"):
            a = random((3000,), dtype)
            a[17] = numpy.inf
            for ops in SUMS + ("sum,sumsq", "var"):
                self.check(a, Tensor, ops, "f8")

    def test_lists(self):
        parts = [random((n,), "f4", n) for n in (0, 4096, 300, 1)]
        wanted, _ = of_host(numpy.concatenate(parts), "sum,norm2")
        out = room(len(wanted))
        cured.linear([Borrowed(a) for a in parts], "sum,norm2", out=out)
        self.assertEqual(wanted, out.host().tolist())

    def test_host(self):
        a, b = random((77,), "f4"), random((5,), "f8")
        self.assertEqual(of_host(a, "sum")[0], cured.linear(a, "sum").tolist())
        self.assertEqual(of_host(a, "sum", "f8")[0], cured.linear(a, "sum", dtype="f8").tolist())
        self.assertEqual(of_host(numpy.concatenate([a, b]), "sum")[0], cured.linear([a, b], "sum").tolist())
        self.assertEqual(of_host(a, "sum")[0], cured.linear(Tensor(a), "sum").tolist())
        out, maxima = numpy.zeros(1, "i8"), numpy.zeros(MAXIMA, "i8")
        self.assertIs(out, cured.linear(a, "max", out=out, maxima=maxima))
        self.assertEqual(of_host(a, "max"), (out.tolist(), maxima.tolist()))


class Finished(Case):
    def test_ranks(self):
        """Ranks of several types on one grid, whose streams are not the same: the bits of the whole array."""
        self.addCleanup(setattr, Borrowed, "now", None)
        Borrowed.now = new_stream().value
        whole = random((9000,), "f4")
        whole[5] = 1e30
        parts = [whole[:1], whole[1:5000], whole[5000:5000], whole[5000:]]
        for op in SUMS:
            vectors = []
            for part in parts:
                out = room(len(of_host(part, op, "f8")[0]))
                vectors.append(cured.linear(Borrowed(part), op, dtype="f8", out=out).host())
            total = Tensor(sum(vectors))
            for result in ("f4", "f8"):
                answer = Tensor(numpy.zeros((), result))
                self.assertIs(answer, cured.from_linear(total, "f8", op, out=answer))
                wanted = getattr(cured, op)(whole.astype("f8"), dtype=result)
                self.assertEqual(wanted, float(answer.host()), (op, result))

    def test_several(self):
        a = random((400,), "f4")
        a[3] = numpy.nan
        ops = "sum,var,norm2"
        out, total, norm = room(len(of_host(a, ops)[0])), Tensor(numpy.zeros((), "f8")), Tensor(numpy.zeros((1,), "f4"))
        cured.linear(Tensor(a), ops, out=out)
        cured.from_linear(out, "f4", ops, out=(total, None, norm), nan="skip")
        self.assertEqual(cured.sum(a, nan="skip"), float(total.host()))
        self.assertEqual(cured.norm2(a, nan="skip", dtype="f4"), float(norm.host()[0]))
        cured.from_linear(out, "f4", ops, out=(total, None, None))
        self.assertTrue(numpy.isnan(total.host()))


class Refused(Case):
    def test_written(self):
        a = random((8,), "f4")
        for words, call in {
            "has one axis of 15|one axis of 15": lambda: cured.linear(Tensor(a), "sum", out=room(14)),
            "int64": lambda: cured.linear(Tensor(a), "sum", out=Tensor(numpy.zeros(15, "f8"))),
            "an op is an extremum": lambda: cured.linear(Tensor(a), "max", out=room(1)),
            "lies on a GPU, where the array does not": lambda: cured.linear(a, "sum", out=room(15)),
            "extrema are written as f32": lambda: cured.linear(Tensor(a), "max", dtype="f8", out=room(1), maxima=room(4)),
            "does not hold": lambda: cured.linear(Tensor(a), "sum", dtype="f2", out=room(8)),
            "no linear form": lambda: cured.linear(Tensor(a), "prod", out=room(15)),
            "array of 15 int64": lambda: cured.linear(a, "sum", out=numpy.zeros(3, "i8")),
            "on several GPUs": lambda: cured.linear([OnGpu(a, 0), OnGpu(a, 1)], "sum", out=room(15)),
            "are of one": lambda: cured.linear([Tensor(a), Tensor(a.astype("f8"))], "sum", out=room(15)),
        }.items():
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), words, msg=words):
                call()

    def test_finished(self):
        a, vector, one = random((8,), "f4"), room(15), Tensor(numpy.zeros((), "f8"))
        cured.linear(Tensor(a), "sum", out=vector)
        for words, call in {
            "give out=": lambda: cured.from_linear(vector, "f4", "sum"),
            "from a CUDA tensor": lambda: cured.from_linear(vector.host(), "f4", "sum", out=one),
            "one element": lambda: cured.from_linear(vector, "f4", "sum", out=Tensor(numpy.zeros(2, "f8"))),
            "1 ops": lambda: cured.from_linear(vector, "f4", "sum", out=(one, one)),
            "a dtype of f16, bf16, f32 or f64, not i64": lambda: cured.from_linear(vector, "f4", "sum", out=Tensor(numpy.zeros((), "i8"))),
            "one axis of 24": lambda: cured.from_linear(vector, "f4", "norm2", out=one),
            "of Partial.finish": lambda: cured.from_linear(vector.host(), "f4", "sum", nan="skip"),
            "must be 'skip'": lambda: cured.from_linear(vector, "f4", "sum", out=one, nan="maybe"),
        }.items():
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), words, msg=words):
                call()
        both = room(len(of_host(a, "var")[0]))
        cured.linear(Tensor(a), "var", out=both)
        with self.assertRaisesRegex(NotImplementedError, "copy the vector"):
            cured.from_linear(both, "f4", "var", out=one)


if __name__ == "__main__":
    unittest.main()
