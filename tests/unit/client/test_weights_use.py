#!/usr/bin/env python3
"""What a user does with cured-client weights by mistake, or where two things come together: a manifest that is the checkpoint, NaNs that
are skipped, filters on both sides. Each kind of checkpoint meets each flag in TableTest.
"""
import json
import os
import struct
import subprocess

from checkpoints import Tensor, digest, digest_of_all, gguf, index, npy, npz, safetensors
from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, Result
from test_weights_files import FilesTest
import reasons

NAN = float("nan")
A = Tensor("F32", (2, 2), struct.pack("<4f", NAN, 0, 1, -3))
B = Tensor("BF16", (3,), struct.pack("<3H", 0x3F80, 0, 0xC000))
I = Tensor("I64", (2,), struct.pack("<2q", -5, 0))
SOME = {"a": A, "b": B, "i": I}


class UseTest(FilesTest):
    def put(self, folder, files):
        return {name: self.write(os.path.join(folder, name), data) for name, data in files.items()}

    def bytes_of(self, path):
        with open(path, "rb") as f:
            return f.read()

    def fails(self, code, says, *arguments):
        result = self.run_client(*arguments)
        self.assertEqual(result.code, code, result)
        self.assertEqual({"error", "exit"} if "--json" in arguments else "", set(json.loads(result.out)) if "--json" in arguments else result.out)
        self.assertRegex(result.err, r"\Acured-client: [^\n]+\n\Z")
        self.assertIn(says, result.err)
        return result


class ManifestTest(UseTest):
    def test_not_over_the_checkpoint(self):
        """By its own path, by links of both kinds, as a shard of an index or a folder, as the index, and as a part of GGUF."""
        one = self.write("one/a.safetensors", safetensors(SOME))
        shards = self.put("m", {"0.safetensors": safetensors({"a": A}), "1.safetensors": safetensors({"b": B}),
                                "m.safetensors.index.json": index({"a": "0.safetensors", "b": "1.safetensors"})})
        parts = self.put("g", {"a-%05d-of-00002.gguf" % (k + 1): gguf({n: t}, keys=[("split.no", "u16", k), ("split.count", "u16", 2)])
                               for k, (n, t) in enumerate((("a", A), ("b", B)))})
        archive = self.write("z/a.npz", npz(SOME))
        link, hard = os.path.join(self.dir, "link"), os.path.join(self.dir, "hard")
        os.symlink(one, link)
        os.link(one, hard)
        listed, folder = shards["m.safetensors.index.json"], os.path.join(self.dir, "m")
        for given, manifest in ((one, one), (one, link), (link, one), (one, hard), (os.path.dirname(one), one), (listed, listed), (folder, listed),
                                (listed, shards["1.safetensors"]), (folder, shards["0.safetensors"]), (archive, archive),
                                (parts["a-00001-of-00002.gguf"], parts["a-00002-of-00002.gguf"]), (os.path.join(self.dir, "g"), parts["a-00001-of-00002.gguf"])):
            for more in ((), ("--filter", "a"), ("--json",)):
                before = self.bytes_of(manifest)
                self.fails(64, "--manifest '%s' is a file of the checkpoint '%s'" % (manifest, given), given, "--manifest", manifest, *more)
                self.assertEqual(before, self.bytes_of(manifest))
        self.assertEqual(self.run_client(one, "--manifest", os.path.join(self.dir, "one", "m.json")).code, 0)

    def test_whole_or_not_at_all(self):
        """A manifest that cannot be written leaves the old one, and nothing beside it."""
        one = self.write("a.safetensors", safetensors({"t%d" % k: B for k in range(2000)}))
        manifest = self.write("m/old.json", b"old")
        limited = ["sh", "-c", 'ulimit -f 1; trap "" XFSZ; exec "$@"', "sh", CLIENT, "weights", one, "--connect", "embedded:", "--manifest", manifest]
        process = subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        result = Result(process, *process.communicate(timeout=HANG_S))
        self.assertEqual(result.code, 74, result)
        self.assertIn("cannot write to %s: File too large" % manifest, result.err)
        self.assertEqual(b"old", self.bytes_of(manifest))
        self.assertEqual(["old.json"], os.listdir(os.path.dirname(manifest)))
        os.chmod(manifest, 0o640)
        link = os.path.join(self.dir, "link.json")
        os.symlink(manifest, link)
        self.assertEqual(0, self.run_client(one, "--manifest", link).code)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(2000, len(json.loads(self.bytes_of(manifest))["tensors"]))
        self.assertEqual(0o640, os.stat(manifest).st_mode & 0o777)
        self.assertEqual(["old.json"], os.listdir(os.path.dirname(manifest)))
        old = os.umask(0o027)
        try:
            new = os.path.join(self.dir, "new.json")
            self.assertEqual(0, self.run_client(one, "--manifest", new).code)
            self.assertEqual(0o640, os.stat(new).st_mode & 0o777)
        finally:
            os.umask(old)
        self.assertEqual(0, self.run_client(one, "--manifest", "/dev/null").code)
        self.assertIn('"t1999"', self.run_client(one, "--manifest", "/dev/stdout").out)
        self.fails(74, "cannot create %s" % self.dir, one, "--manifest", self.dir)
        self.fails(74, "cannot create %s/gone/m.json: No such file" % self.dir, one, "--manifest", os.path.join(self.dir, "gone", "m.json"))


class NanTest(UseTest):
    def test_skip(self):
        """NaNs are left out of extrema, means and norms. Counts, zeros and digests are of all elements."""
        path = self.write("a.safetensors", safetensors(SOME))
        whole, skipped = self.rows(path), self.rows(path, "--nan", "skip")
        for name in SOME:
            for op in ("count_nan", "count_inf", "zeros", "digest"):
                self.assertEqual(whole[name]["results"][op], skipped[name]["results"][op], (name, op))
        for name in ("b", "i"):
            self.assertEqual(whole[name], skipped[name])
        results = skipped["a"]["results"]
        self.assertEqual((-3, 1, -2 / 3), tuple(results[op]["value"] for op in ("min", "max", "mean")))
        self.assertEqual(digest(A.data), results["digest"]["value"])
        self.assertEqual(1, results["zeros"]["value"])
        text = self.run_client(path, "--nan", "skip").out
        self.assertIn("digest of all: %s\n! NaN or infinity in 1 of 3 tensors: a\n" % digest_of_all(SOME), text)
        rows = self.rows(path, "--nan", "skip", "--ops", "sum,count,digest,count_nonzero,argmin")
        self.assertEqual([-2, 4, digest(A.data), 3, 3], [rows["a"]["results"][op]["value"] for op in ("sum", "count", "digest", "count_nonzero", "argmin")])
        self.assertEqual(["sum", "count", "digest", "count_nonzero", "argmin"], list(rows["a"]["results"]))

    def test_with_the_other_flags(self):
        path = self.write("a.safetensors", safetensors(SOME))
        plain, skip = os.path.join(self.dir, "plain.json"), os.path.join(self.dir, "skip.json")
        self.assertEqual(0, self.run_client(path, "--manifest", plain).code)
        self.assertEqual(0, self.run_client(path, "--manifest", skip, "--nan", "skip").code)
        self.assertEqual(self.bytes_of(plain), self.bytes_of(skip))
        self.assertEqual(0, self.run_client(path, "--check", plain, "--nan", "skip").code)
        self.assertEqual(0, self.run_client(path, path, "--nan", "skip").code)
        self.assertEqual(65, self.run_client(path, "--finite", "--nan", "skip").code)


class FilterTest(UseTest):
    def test_one_side_alone(self):
        """Names that one side lacks are missing or new, also where the filter takes nothing else. An error: neither side has one."""
        both = self.write("both.safetensors", safetensors({"a": A, "b": B}))
        one = self.write("one.gguf", gguf({"a": A}))
        none = self.write("none.npz", npz({}))
        made = {path: path + ".json" for path in (both, one, none)}
        for path, manifest in made.items():
            self.assertEqual(0, self.run_client(path, "--manifest", manifest).code)
        for left, right, word in ((both, one, "missing"), (one, both, "new"), (both, none, "missing"), (none, both, "new")):
            for arguments in ((left, right), (right, "--check", made[left])):
                result = self.run_client(*arguments, "--filter", "b*")
                self.assertEqual(1, result.code, result)
                self.assertEqual("%s b: bf16 [3] %s" % (word, digest(B.data)), result.out.splitlines()[0])
                told = json.loads(self.run_client(*arguments, "--filter", "b*", "--json").out)
                self.assertEqual(({"missing": [], "new": [], word: ["b"]}, False), ({k: told[k] for k in ("missing", "new")}, told["same"]))
        for arguments in ((both, one), (one, "--check", made[both])):
            self.fails(65, "no tensor of '%s' and of '%s' has a name that matches --filter 'x'" % (
                made[both] if len(arguments) == 3 else both, one), *arguments, "--filter", "x")
        self.fails(65, "no name of its 1 tensors matches --filter 'b'", one, "--filter", "b")
        self.assertEqual(0, self.run_client(none, none, "--filter", "b").code)


class TypesTest(UseTest):
    def test_types_not_known(self):
        """A tensor without a digest is not said to have one."""
        odd = {"q": Tensor("Q8_0", (32,), bytes(34)), "u": Tensor("?", (32,), bytes(32)), "w": A}
        lines = self.run_client(self.write("a.gguf", gguf(odd, types={"u": 77}))).out.splitlines()
        self.assertEqual(["bytes and digest only, of types that cured does not reduce: 1 of 3 tensors: q",
                          "no digest, of types that are not known here: 1 of 3 tensors: u"], lines[-2:])
        lines = self.run_client(self.write("b.gguf", gguf({"u": odd["u"], "w": A}, types={"u": 77}))).out
        self.assertNotIn("bytes and digest only", lines)


    def test_numpy_types_not_reduced(self):
        """One array that cured does not reduce is no reason to refuse the others."""
        record = [("a", "<f4"), ("b", "<i2", (2, 3)), ("", "|V2"), (("title", "c"), [("d", "|S5"), ("e", "<U2")])]
        kinds = {"strings": ("<U3", 12, "U3"), "bytes": ("|S5", 5, "S5"), "old": ("|a4", 4, "a4"), "dates": ("<M8[ns]", 8, "M8[ns]"), "spans": ("<m8[25s]", 8, "m8[25s]"),
                 "long": ("<f16", 16, "f128"), "short": ("<f12", 12, "f96"), "wide": ("<c32", 32, "C256"), "raw": ("|V7", 7, "V7"),
                 "record": (record, 4 + 12 + 2 + 5 + 8, "struct-31"), "one": ([("x", "<i8")], 8, "struct-8")}
        arrays = {name: (descr, bytes((7 * k + size) % 256 for k in range(6 * size)), size, kind) for name, (descr, size, kind) in kinds.items()}
        for deflated in (False, True):
            path = self.write("a.npz", npz({"w": A, **{name: npy(Tensor(None, (2, 3), data), descr) for name, (descr, data, _, _) in arrays.items()}}, deflated))
            rows = self.rows(path)
            self.assertEqual(digest(A.data), rows["w"]["results"]["digest"]["value"])
            for name, (_, data, size, kind) in arrays.items():
                row = rows[name]
                self.assertEqual((kind, [2, 3], 6 * size, True), (row["type"], row["shape"], row["bytes"], row["bytes_only"]), name)
                self.assertEqual({"digest": digest(data)}, {op: answer["value"] for op, answer in row["results"].items()}, name)
            manifest = os.path.join(self.dir, "m.json")
            self.assertEqual(0, self.run_client(path, "--manifest", manifest).code)
            self.assertEqual(0, self.run_client(path, "--check", manifest).code)
            self.assertIn("numbers of 11 of 11 tensors were not looked at", self.run_client(path, "--finite", "--filter", "??*").err)
        turned = self.rows(self.write("t.npz", npz({"u": npy(Tensor(None, (2,), bytes(range(24))), ">U3"), "m": npy(Tensor(None, (1,), bytes(range(8))), ">M8[s]"),
                                                    "f": npy(Tensor(None, (2, 2), b"abcdefghijkl"), "|S3", fortran=True)})))
        self.assertEqual(digest(b"".join(bytes(range(k, k + 4))[::-1] for k in range(0, 24, 4))), turned["u"]["results"]["digest"]["value"])
        self.assertEqual(digest(bytes(range(8))[::-1]), turned["m"]["results"]["digest"]["value"])
        self.assertEqual(digest(b"abcghidefjkl"), turned["f"]["results"]["digest"]["value"])

    def test_numpy_types_refused(self):
        """Objects are pickles, in structures too; what a descr says is held against its own rules."""
        def one(descr, data=bytes(8), shape=(1,)):
            return npz({"w": A, "z": npy(Tensor(None, shape, data), descr)})
        pickled = "a pickle, which runs code where it is read: save it without them"
        for descr in ("|O", [("a", "|O")], [("a", "<f4"), ("b", [("c", "|O8")])]):
            self.refused(one(descr), "x.npz: tensor 'z': ", "it holds Python objects, " + pickled, name="x.npz")
        self.refused(one([("a", ">f4"), ("b", "<f4")]), "tensor 'z': ", "structure has big-endian fields, which are not turned", name="x.npz")
        for descr in ("|S0", "<U0", "<U1x", "<q9", "<M8[s", "<M8]s[", "<M8[s'x]", "<U99999999", [], [("a",)], [5], [("a", "<f4", (2**40, 2**40))], [("a", "<f4", (-1,))],
                      [("a", "<f4"), ("b", "<f4", 2, 3)]):
            self.refused(one(descr), "tensor 'z': ", name="x.npz")
        deep = "[('a', " * 40 + "'<f4'" + ")]" * 40
        text = "{'descr': %s, 'fortran_order': False, 'shape': (1,), }\n" % deep
        self.refused(npz({"z": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(4)}), "tensor 'z': ", "deep", name="x.npz")
        self.refused(one("<U2", bytes(9)), "tensor 'z': it has", "header and shape want", name="x.npz")
        self.refused(one([("a", "<f4")], bytes(5)), "tensor 'z': it has", "header and shape want", name="x.npz")


class SetsTest(UseTest):
    def split(self, folder, counts, name="m", tensors=({"a": A}, {"b": B})):
        return self.put(folder, {"%s-%05d-of-%05d.gguf" % (name, k + 1, len(tensors)):
                                 gguf(t, keys=[("split.no", "u16", k), ("split.count", "u16", len(tensors))] + ([("split.tensors.count", "i32", n)] if n is not None else []))
                                 for k, (t, n) in enumerate(zip(tensors, counts))})

    def test_counts_of_all_parts(self):
        """What any part says of the count of tensors is held against the parts."""
        folder = os.path.join(self.dir, "g")
        for counts, bad in (((2, 7), 2), ((7, 2), 1), ((None, 7), 2), ((7, None), 1), ((7, 7), 1), ((None, None), 0), ((2, None), 0), ((None, 2), 0)):
            paths = sorted(self.split("g", counts).values())
            for path in (*paths, folder):
                with self.subTest(counts, path=path):
                    if bad:
                        first = bad if counts != (7, 7) or path != paths[1] else 2
                        self.fails(65, "m-%05d-of-00002.gguf: split.tensors.count is 7, the parts hold 2" % first, path)
                    else:
                        self.assertEqual({"a", "b"}, set(self.rows(path)))

    def test_a_file_beside_a_set(self):
        """Whatever its name sorts before, it is no part, and the sentence names the set."""
        for extra in ("a.gguf", "z.gguf"):
            paths = self.split("f" + extra, (2, 2))
            folder = os.path.dirname(sorted(paths.values())[0])
            self.write(os.path.join("f" + extra, extra), gguf({"i": I}))
            self.fails(65, "%s: m-00001-of-00002.gguf has 2 parts, but there are 3 .gguf files: name one" % os.path.basename(folder), folder)
            self.assertEqual({"a", "b"}, set(self.rows(sorted(paths.values())[0])))
        self.write("plain/a.gguf", gguf({"a": A}))
        self.write("plain/b.gguf", gguf({"b": B}))
        self.assertEqual({"a", "b"}, set(self.rows(os.path.join(self.dir, "plain"))))

    def test_keys_twice(self):
        for first, second in ((("k", "u8", 1), ("k", "u8", 1)), (("x.y", "string", "a"), ("x.y", "u32", 5)), (("general.architecture", "u8", 1),) * 2):
            keys = [("p", "u8", 1), first, ("q", "strings", ["a", "b"]), second, ("r", "f64", 1.0)]
            self.fails(65, "x.gguf: key '%s' is there twice" % first[0], self.write("x.gguf", gguf({"a": A}, keys=keys)))
        many = [("key.%d" % k, "u8", 1) for k in range(20000)]
        self.assertEqual({"a"}, set(self.rows(self.write("many.gguf", gguf({"a": A}, keys=many)))))
        self.fails(65, "x.gguf: key 'key.77' is there twice", self.write("x.gguf", gguf({"a": A}, keys=many + [many[77]])))


class RefusalsTest(UseTest):
    save = "save it by safetensors.torch.save_file()"

    def test_pickles_by_every_way(self):
        """However a pickle comes, the sentence names the file, says that it is one, and what to do."""
        import pickle
        torch_zip = npz({}, more=[("archive/data.pkl", b"\x80\x02."), ("archive/data/0", bytes(8)), ("archive/version", b"3\n")])
        script = npz({}, more=[("jit/data/0", bytes(8)), ("jit/code/__torch__.py", b"x"), ("jit/data.pkl", b"\x80\x02."), ("jit/constants.pkl", b"\x80\x02.")])
        unordered = npz({"a": A}, more=[("x/data/0", bytes(8)), ("x/data.pkl", b"\x80\x02.")])
        numbers = {"w": [1.5, 2.5], "n": 3}
        plain = {"zip": torch_zip, "script": script, "arrays first": unordered, **{"protocol %d" % p: pickle.dumps(numbers, p) for p in range(6)},
                 **{"list %d" % p: pickle.dumps([1, 2], p) for p in (0, 1)}, **{"object %d" % p: pickle.dumps(struct.Struct, p) for p in (0, 1)}}
        for what, data in plain.items():
            for name in ("pytorch_model.bin", "model.pt", "x.safetensors" if what.startswith("protocol") else "model.ckpt"):
                with self.subTest(what, name=name):
                    path = self.write(what + "/" + name, data)
                    result = self.fails(65, "%s: it is " % name, path)
                    self.assertIn("pickle", result.err)
                    self.assertIn(self.save, result.err)
        for what in ("zip", "protocol 2", "protocol 0", "script"):
            files = {"pytorch_model-%05d-of-00002.bin" % k: plain[what] for k in (1, 2)}
            listed = self.put("index" + what, {**files, "pytorch_model.bin.index.json": index({"w": "pytorch_model-00001-of-00002.bin", "b": "pytorch_model-00002-of-00002.bin"})})
            result = self.fails(65, "pytorch_model-00001-of-00002.bin: it is ", listed["pytorch_model.bin.index.json"])
            self.assertIn("pickle", result.err)
            self.assertIn(self.save, result.err)
            self.assertIn(self.save, self.fails(65, "pytorch_model-00001-of-00002.bin: it is ", os.path.join(self.dir, "index" + what)).err)

    def test_no_pickles(self):
        """What only looks like one a little. The length of a header of 640 bytes begins as a pickle does."""
        for length in (0x280, 0x380, 0x480, 0x580, 0x10280, 0x7d28, 0x7028):
            space = length - int.from_bytes(safetensors({"a": A})[:8], "little")
            self.assertEqual({"a"}, set(self.rows(self.write("x.safetensors", safetensors({"a": A}, space=space)))))
        for text in (b"(hello).", b"comma, and so on.", b"c\n.", b"}", b"hello."):
            self.fails(65, "x.txt: it is none of what is read", self.write("x.txt", text))
        self.fails(65, "x.npz: its member 'b.txt' is no .npy file", self.write("x.npz", npz({"a": A}, more=[("b.txt", b"x")])))

    def test_archives(self):
        import io
        import zipfile
        for method, number in ((zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)):
            for before in ((), ("a",)):
                file = io.BytesIO()
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as z:
                    for name in before:
                        z.writestr(name + ".npy", npy(A))
                    z.writestr("layer/w.npy", npy(B), compress_type=method)
                self.fails(65, "x.npz: member 'layer/w.npy': the array is packed by method %d, read are 0 (stored) and 8 (deflated)" % number,
                           self.write("x.npz", file.getvalue()))
        data = bytearray(npz({"a": A, "w": B}))
        at = data.rindex(b"PK\1\2")
        data[at + 8] |= 1
        self.fails(65, "x.npz: member 'w.npy': the array is encrypted", self.write("x.npz", bytes(data)))
        self.fails(65, "x.npz: the archive is damaged", self.write("x.npz", npz({"a": A})[:-30]))

    def test_folders(self):
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        for path in (empty, empty + "/", empty + "///"):
            self.fails(65, "cured-client: empty: it holds no .safetensors", path)
        self.put("two", {"a.safetensors.index.json": index({}), "b.safetensors.index.json": index({})})
        self.fails(65, "cured-client: two: it holds 2 indices", os.path.join(self.dir, "two") + "/")


class WordsTest(UseTest):
    def test_zeros(self):
        """The row shows zeros, which no op is called: the sentence says which op to ask for."""
        path = self.write("a.safetensors", safetensors(SOME))
        self.fails(64, "--ops: zeros is no op: zeros are the elements less count_nonzero, so ask for that", path, "--ops", "min,zeros")

    def test_what_excludes_each_other(self):
        """--nan skip and --where go without a digest, and the sentence says so."""
        raw, mask = self.write("raw.bin", bytes(16)), self.write("mask.npy", npy(Tensor("BOOL", (4,), b"\1\0\1\0")))
        for arguments, flag in ((("--nan", "skip"), "nan skip"), (("--where", mask), "where")):
            process = subprocess.Popen([CLIENT, "digest", raw, *arguments, "--connect", "embedded:"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=ENVIRONMENT)
            result = Result(process, *process.communicate(timeout=HANG_S))
            self.assertEqual((64, "cured-client: --%s goes without digest, because a digest is of all elements of a whole array\n" % flag), (result.code, result.err))

    def test_names_of_types(self):
        """safetensors' names of types are cured's, too; float8_e4m3 is another type, and its sentence names the one that is here."""
        raw = self.write("raw.bin", bytes(range(8)))
        for name, own in (("F8_E4M3", "f8_e4m3"), ("F8_E5M2", "f8_e5m2"), ("BF16", "bf16"), ("I64", "i64"), ("BOOL", "bool"), ("U8", "u8")):
            outs = set()
            for dtype in (name, own):
                process = subprocess.run([CLIENT, "count", raw, "--dtype", dtype, "--connect", "embedded:"], stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT)
                outs.add((process.returncode, process.stdout, process.stderr))
            self.assertEqual([0], [code for code, _, _ in outs], outs)
        process = subprocess.run([CLIENT, "sum", raw, "--dtype", "float8_e4m3", "--connect", "embedded:"], stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT)
        self.assertEqual(64, process.returncode)
        self.assertIn(b"dtype float8_e4m3 is not offered yet: it has infinities, and float8_e4m3fn (f8_e4m3) has none", process.stderr)


class IndexTest(UseTest):
    def listed(self, folder, **metadata):
        return self.put(folder, {"0.safetensors": safetensors({"a": A}), "1.safetensors": safetensors({"b": B}),
                                 "m.safetensors.index.json": index({"a": "0.safetensors", "b": "1.safetensors"}, metadata=metadata)})

    def test_total_size(self):
        """A note, and exit status 0: many an index counts its parameters otherwise."""
        note = "cured-client: m.safetensors.index.json: its metadata.total_size is %d, but its tensors have 22 bytes\n"
        for said, wrong in ((22, False), (21, True), (0, True), (2**64 - 1, True), (22.0, False), ("22", False), (None, False), ([1], False), (-5, False), (1e300, False)):
            paths = self.listed("m", total_size=said, more={"x": [1]})
            for given in (paths["m.safetensors.index.json"], os.path.join(self.dir, "m")):
                for more in ((), ("--json",), ("--filter", "a"), ("--ops", "max")):
                    result = self.run_client(given, *more)
                    self.assertEqual((0, note % said if wrong else ""), (result.code, result.err), (said, more))
                self.assertEqual("", self.run_client(given, "--quiet").err)
        paths = self.listed("m")
        self.assertEqual("", self.run_client(paths["m.safetensors.index.json"]).err)

    def test_files_beside(self):
        """Shards in a folder that its index does not list are named in a note, and not read."""
        paths = self.listed("m", total_size=22)
        folder = os.path.join(self.dir, "m")
        self.write("m/2.safetensors", b"whatever")
        note = "cured-client: m: 2.safetensors is not in the weight_map of m.safetensors.index.json, and is not read\n"
        self.assertEqual((0, note), (lambda r: (r.code, r.err))(self.run_client(folder)))
        self.assertEqual("", self.run_client(paths["m.safetensors.index.json"]).err)
        self.write("m/3.safetensors", b"whatever")
        self.write("m/x.bin", b"whatever")
        self.assertEqual(note.replace("2.safetensors is not in", "2.safetensors and 1 more are not in").replace("is not read", "are not read"), self.run_client(folder).err)
        self.assertEqual(2, self.run_client(folder, folder).err.count("and 1 more are not in"))
        manifest = os.path.join(self.dir, "m.json")
        self.assertEqual(0, self.run_client(folder, "--manifest", manifest).code)
        self.assertEqual(0, self.run_client(folder, "--check", manifest).code)


if __name__ == "__main__":
    reasons.main()
