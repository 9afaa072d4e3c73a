"""cured.weights: a mapping of tensors' names to Results, for each kind of checkpoint; NumPy says what they must be."""
import os
import pickle
import struct
import sys
import tempfile
import warnings

import numpy
from support import Case, cured

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "client"))
from checkpoints import Tensor, digest, digest_of_all, gguf, index, npz, safetensors  # noqa: E402: tests/unit/client

W = Tensor("F32", (2, 3), struct.pack("<6f", 1, -2, 3, 0, 0.5, float("inf")))
SOME = {"w": W, "b": Tensor("BF16", (2,), struct.pack("<2H", 0x3F80, 0x7FC0)), "s": Tensor("F64", (), struct.pack("<d", 2.5)),
        "e": Tensor("I16", (0, 5), b""), "i": Tensor("I64", (1, 2), struct.pack("<2q", -5, 7))}


SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")




class Weights(Case):
    def test_page(self):
        """docs/WEIGHTS.md."""
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(SOURCE)
        page = ("""
w = cured.weights("examples/checkpoint/model.safetensors")
w["layers.1.mlp.weight"].count_nan, w.digest, w.shapes["embed.weight"]
""").split("\n")
        exec(page[1], {"cured": cured}, names := {})  # noqa: S102: what the page shows
        found = eval(page[2], names)  # noqa: S307
        self.assertEqual((1, (64, 8)), (found[0], found[2]))
        self.assertTrue(str(found[1]).startswith("cd1-"))

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, data):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def test_kinds(self):
        self.path("m/0.safetensors", safetensors({n: SOME[n] for n in "wb"}))
        self.path("m/1.safetensors", safetensors({n: SOME[n] for n in "sei"}))
        where = {n: "%d.safetensors" % (n in "sei") for n in SOME}
        for path in (self.path("a.safetensors", safetensors(SOME)), os.path.join(self.folder.name, "m"),
                     self.path("m/m.safetensors.index.json", index(where)), self.path("a.gguf", gguf(SOME)), self.path("a.npz", npz(SOME)),
                     self.path("b.npz", npz(SOME, True))):
            w = cured.weights(path)
            self.assertEqual(["b", "e", "i", "s", "w"], list(w))
            self.assertEqual((5, True, False), (len(w), "w" in w, "x" in w))
            self.assertEqual((-2.0, float("inf"), 0, 1, 1), (w["w"].min, w["w"].max, w["w"].count_nan, w["w"].count_inf, w["w"].zeros))
            self.assertEqual(1, w["b"].count_nan)
            self.assertEqual((1.0, 6.0, float(numpy.linalg.norm([-5, 7]))), (w["i"].mean, w["i"].std, w["i"].norm2))
            self.assertEqual({"b": "bf16", "e": "i16", "i": "i64", "s": "f64", "w": "f32"}, w.types)
            self.assertEqual({n: t.shape for n, t in SOME.items()}, w.shapes)
            self.assertEqual({n: len(t.data) for n, t in SOME.items()}, w.bytes)
            with self.assertRaisesRegex(ValueError, "min of no elements"):
                w["e"].min
            with self.assertRaises(KeyError):
                w["x"]
            for name, t in SOME.items():
                self.assertEqual(digest(t.data), str(w[name].digest))
            self.assertEqual(digest_of_all(SOME), str(w.digest))

    def test_notes(self):
        """What is strange of an index is a warning that says where."""
        files = {"m/%d.safetensors" % k: safetensors({n: SOME[n]}) for k, n in enumerate("wb")}
        for name, data in files.items():
            self.path(name, data)
        self.path("m/2.safetensors", b"whatever")
        self.path("m/m.safetensors.index.json", index({"w": "0.safetensors", "b": "1.safetensors"}, metadata={"total_size": 5}))
        with self.assertWarnsRegex(UserWarning, "m.safetensors.index.json: its metadata.total_size is 5, but its tensors have 28 bytes"):
            w = cured.weights(os.path.join(self.folder.name, "m"))
        self.assertEqual(["b", "w"], list(w))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            cured.weights(os.path.join(self.folder.name, "m"))
        self.assertEqual([True, True], [words in str(each.message) for words, each in zip(("total_size", "2.safetensors is not in the weight_map"), found)])
        self.assertTrue(all(each.filename.endswith("test_weights.py") for each in found))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(UserWarning, "total_size"):
                cured.weights(os.path.join(self.folder.name, "m"))

    def test_ops_and_filter(self):
        path = self.path("a.safetensors", safetensors(SOME))
        w = cured.weights(path, "sum, count", filter="[is]")
        self.assertEqual({"i": {"sum": 2, "count": 2}, "s": {"sum": 2.5, "count": 1}}, {n: dict(r) for n, r in w.items()})
        self.assertIsNone(w.digest)
        self.assertEqual({}, dict(cured.weights(path, ["sum"], filter="nothing")))
        for op, words in (("median", "ops: median is found in several reads"), ("dot", "ops: dot is of two arrays")):
            with self.assertRaisesRegex(ValueError, words):
                cured.weights(path, op)
        with self.assertRaisesRegex(ValueError, "frob"):
            cured.weights(path, ["frob"])
        self.assertEqual(6, cured.weights(os.fsencode(path), ["count"])["w"].count)
        self.assertEqual(dict(w["i"]), dict(pickle.loads(pickle.dumps(w["i"]))))
        self.assertIn("5 tensors", repr(cured.weights(path)))

    def test_types_not_reduced(self):
        w = cured.weights(self.path("a.safetensors", safetensors({"f": Tensor("F4", (4,), b"ab"), "c": Tensor("C64", (1,), bytes(8))})))
        self.assertEqual({"f": "F4", "c": "C64"}, w.types)
        self.assertEqual(["digest"], list(w["f"]))
        w = cured.weights(self.path("a.gguf", gguf({"u": Tensor("?", (32,), bytes(32))}, types={"u": 77})))
        self.assertEqual(({}, None, None), (dict(w["u"]), w.bytes["u"], w.digest))

    def test_why_there_is_no_answer(self):
        """An op that was asked for and that a tensor's type lacks says so, and not that nobody asked."""
        tensors = {"q": Tensor("Q8_0", (32,), bytes(34)), "u": Tensor("?", (32,), bytes(32)), "w": W}
        path = self.path("a.gguf", gguf(tensors, types={"u": 77}))
        w = cured.weights(path)
        lacking = (("q", "min", "op 'min': a tensor of Q8_0 has bytes and a digest alone, because cured does not reduce that type"),
                   ("q", "zeros", "op 'zeros': a tensor of Q8_0 has bytes and a digest alone"),
                   ("u", "min", "op 'min': a tensor of type-77 has neither answers nor a digest, because that type is not known here"),
                   ("u", "digest", "op 'digest': a tensor of type-77 has neither"),
                   ("w", "sum", "op 'sum' was not asked for"), ("q", "sum", "op 'sum' was not asked for"), ("w", "frob", "op 'frob' was not asked for"))
        for made in (w, pickle.loads(pickle.dumps({n: w[n] for n in w}))):
            for name, op, words in lacking:
                with self.assertRaises(AttributeError) as raised:
                    getattr(made[name], op)
                self.assertTrue(str(raised.exception).startswith(words), raised.exception)
                self.assertEqual((None, False), (getattr(made[name], op, None), op in made[name]))
                with self.assertRaises(KeyError):
                    made[name][op]
        self.assertEqual((["digest"], []), (list(w["q"]), list(w["u"])))
        some = cured.weights(path, ["bit_xor", "sum"])
        with self.assertRaisesRegex(AttributeError, "op 'bit_xor': a tensor of f32 has none"):
            some["w"].bit_xor
        with self.assertRaisesRegex(AttributeError, "op 'sum': a tensor of Q8_0 has bytes and a digest alone"):
            some["q"].sum
        with self.assertRaisesRegex(AttributeError, "op 'digest' was not asked for"):
            some["q"].digest

    def test_what_numpy_writes(self):
        r = numpy.random.default_rng(1)
        a = r.standard_normal((7, 5)).astype("f4")
        arrays = {"a": a, "fortran": numpy.asfortranarray(a), "big": a.astype(">f4"), "both": numpy.asfortranarray(a.astype(">f4")),
                  "half": a.astype("f2"), "ints": numpy.arange(9, dtype=">i2"), "flags": a > 0, "one": numpy.float64(2.5), "none": a[:0],
                  "complex": a.astype("c8"), "big complex": a.astype(">c16")}
        path = os.path.join(self.folder.name, "a.npz")
        numpy.savez(path, **arrays)
        packed = os.path.join(self.folder.name, "b.npz")
        numpy.savez_compressed(packed, **{n: x for n, x in arrays.items() if n not in ("fortran", "both")})
        for w in (cured.weights(path), cured.weights(packed)):
            for name in w:
                x = numpy.asarray(arrays[name])
                self.assertEqual(digest(x.astype(x.dtype.newbyteorder("<")).tobytes()), str(w[name].digest), name)
                self.assertEqual(x.shape, w.shapes[name])
                if name not in ("none", "complex", "big complex"):
                    self.assertEqual((x.min(), x.max()), (w[name].min, w[name].max), name)
        self.assertEqual(("C64", "C128"), (w.types["complex"], w.types["big complex"]))
        numpy.save(os.path.join(self.folder.name, "c.npy"), a.T)
        self.assertEqual(digest(a.T.tobytes()), str(cured.weights(os.path.join(self.folder.name, "c.npy"))["array"].digest))

    def test_errors(self):
        for error, says, path in ((FileNotFoundError, "No such file", os.path.join(self.folder.name, "gone")),
                                  (ValueError, "none of what is read", self.path("x", b"hello, hello")),
                                  (ValueError, "it is a pickle", self.path("x.pt", b"\x80\x02}q\0.")),
                                  (ValueError, "tensor 'w': data_offsets", self.path("y", safetensors({"w": W})[:-1]))):
            with self.assertRaisesRegex(error, says):
                cured.weights(path)
        with self.assertRaises(TypeError):
            cured.weights(5)
        with self.assertRaises(ConnectionError):
            cured.weights(self.path("a.safetensors", safetensors(SOME)), address="unix:" + os.path.join(self.folder.name, "nobody"))
