#!/usr/bin/env python3
"""cured-client weights and the formats' own rules: files written by checkpoints.py, good ones in every legal form, and ones that are
damaged or made to deceive. Each refusal is a sentence that names tensor and field.
"""
import json
import os
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

from checkpoints import (Tensor, elements, entry, gguf, index, npy, npz, safetensors, string)
from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, Result
import reasons

MOST = 2**64 - 1


def pack(form, *values):
    return struct.pack("<%d%s" % (len(values), form), *values)


W = Tensor("F32", (2, 3), pack("f", 1, -2, 3, 0, 0.5, 4))
B = Tensor("BF16", (4,), pack("H", 0x3F80, 0, 0xC000, 0x4040))
S = Tensor("F64", (), pack("d", 2.5))
E = Tensor("I16", (0, 5), b"")
I = Tensor("I64", (1, 2), pack("q", -5, 7))
SOME = {"w": W, "b": B, "s": S, "e": E, "i": I}


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cured-weights-")
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, name, data):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def run_client(self, *arguments, memory=None):
        if os.environ.get("CURED_TEST_SANITIZE"):
            memory = None  # a sanitizer reserves terabytes
        limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None
        process = subprocess.Popen([CLIENT, "weights", *arguments, "--connect", "embedded:"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, preexec_fn=limit)
        return Result(process, *process.communicate(timeout=HANG_S))

    def rows(self, path, *more):
        result = self.run_client(path, "--json", *more)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.out.count("\n"), 1)
        rows = json.loads(result.out)["tensors"]
        self.assertEqual([r["name"].encode() for r in rows], sorted(r["name"].encode() for r in rows))
        return {r["name"]: r for r in rows}

    def refused(self, data, *says, name="x.safetensors", code=65, memory=None):
        path = self.write(name, data) if isinstance(data, bytes) else data
        result = self.run_client(path, memory=memory)
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "")
        self.assertRegex(result.err, r"\Acured-client: [^\n]+\n\Z")
        for text in says:
            self.assertIn(text, result.err)
        return result

    def check(self, path, tensors, own=None):
        rows = self.rows(path)
        self.assertEqual(set(rows), set(tensors))
        for name, t in tensors.items():
            row = rows[name]
            self.assertEqual(row["shape"], list(t.shape), name)
            self.assertEqual(row["bytes"], len(t.data), name)
            self.assertEqual(row["type"], (own or {}).get(name, t.type.lower()), name)
        return rows


class SafetensorsTest(FilesTest):
    def test_good(self):
        for form in ({}, {"order": ["i", "e", "s", "w", "b"]}, {"metadata": {"format": "pt", "x": "\u00e9"}}, {"space": 13}):
            with self.subTest(form):
                rows = self.check(self.write("a.safetensors", safetensors(SOME, **form)), SOME)
                self.assertEqual(rows["w"]["results"]["min"]["value"], -2)
                self.assertEqual(rows["w"]["results"]["zeros"]["value"], 1)
                self.assertEqual(rows["i"]["results"]["max"]["value"], 7)
                self.assertEqual(rows["s"]["results"]["mean"]["value"], 2.5)
                self.assertEqual(rows["b"]["results"]["zeros"]["value"], 1)
                self.assertIn("error", rows["e"]["results"]["min"])  # and the exit status is 0
        self.check(self.write("none.safetensors", safetensors({})), {})
        self.check(self.write("named-otherwise", safetensors(SOME)), SOME)

    def test_empty_at_any_place(self):
        empty = {"a": E, "w": W, "b": E, "s": S, "c": E}
        for order in (list(empty), list(reversed(empty)), ["w", "a", "b", "c", "s"]):
            self.check(self.write("a.safetensors", safetensors(empty, order=order)), empty)

    def test_types_not_reduced(self):
        odd = {"f4": Tensor("F4", (2, 4), b"abcd"), "f6": Tensor("F6_E2M3", (4,), b"abc"), "e8": Tensor("F8_E8M0", (3,), b"abc"),
               "z": Tensor("F8_E4M3FNUZ", (2,), b"ab"), "c": Tensor("C64", (1,), bytes(8)), "new": Tensor("F3_X", (9,), b"abcd")}
        rows = self.check(self.write("a.safetensors", safetensors(odd)), odd, own={n: t.type for n, t in odd.items()})
        for name in odd:
            self.assertEqual(set(rows[name]["results"]) - {"digest"}, set())
            self.assertTrue(rows[name]["bytes_only"])
        text = self.run_client(os.path.join(self.dir, "a.safetensors"))
        self.assertIn("bytes and digest only, of types that cured does not reduce: 6 of 6 tensors: c, e8, f4, f6, new and 1 more", text.out)

    def test_names(self):
        names = {"\u00e9\u4e2d\U0001f600": W, "a\nb": W, "a b": W, "": W, "\x1b[31m": W, "\u009b2J": W, 'q"\\': W, "x" * 5000: W}
        self.check(self.write("a.safetensors", safetensors(names)), names)
        text = self.run_client(os.path.join(self.dir, "a.safetensors")).out
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u009b", text)
        self.assertIn("\\x1b[31m", text)
        self.assertIn("a\\x0ab", text)

    def test_header(self):
        good = safetensors(SOME)
        self.refused(b"", "x.safetensors: it has 0 bytes")
        self.refused(good[:7], "x.safetensors")
        self.refused(safetensors(SOME, length=MOST), "header's length is 18446744073709551615 bytes, the limit is 100000000")
        self.refused(safetensors(SOME, length=100_000_001), "the limit is 100000000")
        self.refused(safetensors(SOME, length=90_000_000), "header's length is 90000000 bytes, the file has")
        self.refused(safetensors({}, header="[]"), "no JSON object")
        self.refused(safetensors({}, header=""), "no JSON object")
        self.refused(safetensors({}, header="{"), "header: a string is missing, at byte 1")
        self.refused(safetensors({}, header="{}x"), "something follows it")
        self.refused(safetensors({}, header="{}\0"), "something follows it")
        self.refused(safetensors({}, header='{"__metadata__":{"a":1}}'), "a string is missing")
        self.refused(safetensors({}, header='{"__metadata__":{},"__metadata__":{}}'), "__metadata__ is there twice")
        self.refused(safetensors({}, header=b'{"\xff":{}}'), "not UTF-8")
        self.refused(safetensors({}, header='{"a\\u0000b":{}}'), "holds a NUL")
        self.refused(safetensors({}, header='{"\\ud800":{}}'), "half of a pair")
        self.refused(safetensors({}, header='{"a\nb":{}}'), "control character")
        self.refused(safetensors({"\u00e9\x1b\u009b\u4e2d": W}, tail=b"").replace(b'"F32"', b'"f32"'), "tensor '\u00e9???\u4e2d': dtype")
        self.refused(safetensors({"\u4e2d" * 50: W}).replace(b'"F32"', b'"f32"'), "\u4e2d...': dtype")

    def header(self, text):
        return safetensors({}, header=text) + bytes(8)

    def one(self, **fields):
        return self.header(json.dumps({"t": fields}))

    def test_fields(self):
        e = entry()
        for field in e:
            without = {k: v for k, v in e.items() if k != field}
            self.refused(self.one(**without), "tensor 't': its %s is missing" % field)
            twice = json.dumps({"t": e}).replace('"t": {', '"t": {%s: %s, ' % (json.dumps(field), json.dumps(e[field])))
            self.refused(self.header(twice), "tensor 't': its %s is there twice" % field)
            for bad in (None, {}, True, -1, 1.5):
                self.refused(self.one(**{**e, field: bad}), "tensor 't': %s: " % field)
        self.refused(self.header('{"t":[]}'), "tensor 't': its entry: ")
        self.refused(self.one(**{**e, "dtype": "\x1b[2J"}), "tensor 't': dtype: it is no name of a type")
        self.refused(self.one(**{**e, "dtype": "F" * 30}), "tensor 't': dtype: it is no name of a type")
        self.refused(self.one(**{**e, "shape": [-1]}), "tensor 't': shape: a number is not a whole number")
        self.refused(self.one(**{**e, "shape": [1.0]}), "tensor 't': shape: a number is not a whole number")
        self.refused(self.one(**{**e, "shape": [2**64]}), "tensor 't': shape: a number is above 2^64 - 1")
        self.refused(self.one(**{**e, "shape": [1] * 65}), "tensor 't': shape: it has too many numbers")
        self.refused(self.one(**{**e, "data_offsets": [0]}), "tensor 't': data_offsets: it is not two numbers")
        self.refused(self.one(**{**e, "data_offsets": [0, 4, 8]}), "tensor 't': data_offsets: it has too many numbers")
        self.rows(self.write("more.safetensors", self.one(**e, more=[[["deep"]]])))  # what a later version adds

    def test_numbers(self):
        e = entry()
        self.refused(self.one(**{**e, "shape": [2**63, 2]}), "tensor 't': shape: it has more than 2^63 - 1 elements")
        self.refused(self.one(**{**e, "shape": [2**32, 2**32]}), "tensor 't': shape: it has more than 2^63 - 1 elements")
        self.refused(self.one(**{**e, "shape": [2**60]}), "tensor 't': shape: its 1152921504606846976 elements take more than 2^64 bits")
        self.refused(self.one(**{**e, "shape": [3]}), "tensor 't': data_offsets: they hold 8 bytes, dtype and shape want 12")
        self.refused(self.one(**{**e, "dtype": "F4", "shape": [3]}), "tensor 't': shape: 3 elements of F4 are no whole bytes")
        self.refused(self.one(**{**e, "data_offsets": [8, 0]}), "tensor 't': data_offsets: it ends at 0, before it begins at 8")
        self.refused(self.one(**{**e, "data_offsets": [0, 9]}), "tensor 't': data_offsets: it ends at 9, the file has 8 bytes")
        self.refused(self.one(**{**e, "data_offsets": [MOST - 8, MOST]}), "tensor 't': data_offsets: it ends at 18446744073709551615")

    def test_places(self):
        def two(first, second, data):
            return safetensors({}, header=json.dumps({"a": entry(offsets=first), "b": entry(offsets=second)})) + bytes(data)
        self.rows(self.write("a.safetensors", two((8, 16), (0, 8), 16)))
        self.refused(two((0, 8), (4, 12), 12), "tensor 'b': its offset 4 lies within tensor 'a', which ends at 8")
        self.refused(two((0, 8), (0, 8), 8), "tensor 'b': its offset 0 lies within tensor 'a'")
        self.refused(two((0, 8), (9, 17), 17), "tensor 'b': its offset is 9, but the tensors before it end at 8: a hole")
        self.refused(two((1, 9), (9, 17), 17), "tensor 'a': its offset is 1, but the tensors before it end at 0: a hole")
        self.refused(two((0, 8), (8, 16), 17), "1 bytes follow the last tensor")
        self.refused(safetensors(SOME, tail=b"x"), "1 bytes follow the last tensor")

    def test_twice(self):
        e, f = json.dumps(entry()), json.dumps(entry(offsets=(8, 16)))
        self.refused(safetensors({}, header='{"a":%s,"a":%s}' % (e, f)) + bytes(16), "tensor 'a': its name is there twice")
        self.refused(safetensors({}, header='{"a":%s,"a":%s}' % (e, e)) + bytes(8), "tensor 'a': its name is there twice")  # at one place
        self.refused(safetensors({}, header='{"a":%s,"\\u0061":%s}' % (e, f)) + bytes(16), "tensor 'a': its name is there twice")

    def test_deep_and_long(self):
        """Bounded memory: 512 MiB of address space, threads and all."""
        memory = 512 << 20
        self.refused(self.header('{"t":{"x":' + "[" * 99 + "]" * 99 + "}}"), "tensor 't': its entry: it is more than 32 deep")
        self.refused(self.header('{"t":{"x":' + "[" * 10_000_000), "more than 32 deep", memory=memory)
        self.refused(self.header('{"t":{"x":[' + "0," * 20_000_000 + "0]}}"), "its dtype is missing", memory=memory)
        self.refused(self.header('{"' + "n" * 30_000_000 + '":1}'), "tensor 'nnnn", "its entry", memory=memory)

    def test_many(self):
        many = {"t%06d" % i: E for i in range(20000)}
        self.assertEqual(len(self.rows(self.write("a.safetensors", safetensors(many)), "--ops", "count")), 20000)


class SetsTest(FilesTest):
    def shards(self, **changes):
        self.write("m/a.safetensors", safetensors({"w": W, "b": B}))
        self.write("m/b.safetensors", safetensors({"s": S, "e": E, "i": I}))
        weight_map = {"w": "a.safetensors", "b": "a.safetensors", "s": "b.safetensors", "e": "b.safetensors", "i": "b.safetensors"}
        weight_map.update(changes)
        weight_map = {k: v for k, v in weight_map.items() if v is not None}
        return self.write("m/model.safetensors.index.json", index(weight_map))

    def test_good(self):
        path = self.shards()
        self.check(path, SOME)
        self.check(os.path.dirname(path), SOME)
        self.check(os.path.dirname(path) + "/", SOME)
        os.remove(path)
        self.check(os.path.join(self.dir, "m"), SOME)  # a folder without an index

    def test_links(self):
        """As a cache of downloads lies: names in a folder of links, bytes elsewhere."""
        path = self.shards()
        links = os.path.join(self.dir, "links")
        os.mkdir(links)
        for i, name in enumerate(sorted(os.listdir(os.path.dirname(path)))):
            os.rename(os.path.join(self.dir, "m", name), os.path.join(self.dir, "blob%d" % i))
            os.symlink("../blob%d" % i, os.path.join(links, name))
        self.check(links, SOME)
        self.check(os.path.join(links, "model.safetensors.index.json"), SOME)

    def test_paths(self):
        for bad in ("../a.safetensors", "/etc/passwd", "m/a.safetensors", "..", ".", ""):
            self.refused(self.shards(w=bad), "tensor 'w': its weight_map is '%s', must be a file beside the index" % bad)
        self.refused(self.shards(w=5), "tensor 'w': its weight_map: a string is missing")
        self.refused(self.shards(w="\x1b[2J\u009b.safetensors"), "m/?[2J??.safetensors", code=66)
        self.refused(self.shards(w="gone.safetensors"), "gone.safetensors", "No such file", code=66)

    def test_disagree(self):
        self.refused(self.shards(w="b.safetensors"),
                     "tensor 'w' is in a.safetensors, by the weight_map of model.safetensors.index.json in b.safetensors")
        self.refused(self.shards(more="b.safetensors"),
                     "tensor 'more' is in b.safetensors by the weight_map of model.safetensors.index.json, but not there")
        self.refused(self.shards(w=None), "tensor 'w' is in a.safetensors, but not in the weight_map of model.safetensors.index.json")
        path = self.shards()
        self.write("m/b.safetensors", safetensors({"s": S, "e": E, "i": I, "w": W}))
        self.refused(path, "tensor 'w' is in two files: a.safetensors and b.safetensors")
        os.remove(path)
        self.refused(os.path.dirname(path), "tensor 'w' is in two files: a.safetensors and b.safetensors")

    def test_index(self):
        name = "model.safetensors.index.json"
        self.refused(b'{"metadata":{}}', "its weight_map is missing", name=name)
        self.refused(b'{"weight_map":[]}', "weight_map: it is not what belongs there", name=name)
        self.refused(b'{"weight_map":{},"weight_map":{}}', "its weight_map is there twice", name=name)
        self.refused(b'{"weight_map":{"a":"x.safetensors","a":"x.safetensors"}}', "x.safetensors", name=name, code=66)
        self.refused(b'{"weight_map":{', "at byte 15", name=name)
        self.refused(b'{"x":' + b"[" * 100000, "more than 32 deep", name=name)
        path = self.shards()
        with open(path, "rb") as f:
            text = f.read()
        with open(path, "wb") as f:
            f.write(text.replace(b'"w": "a.safetensors"', b'"w": "a.safetensors", "w": "a.safetensors"'))
        self.refused(path, "tensor 'w': its name is there twice")

    def test_folders(self):
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        self.refused(empty, "empty: it holds no .safetensors")
        self.write("p/pytorch_model.bin", b"\x80\x02}q\0.")
        self.refused(os.path.join(self.dir, "p"), "pytorch_model.bin: it is a pickle")
        self.write("n/w.npy", npy(W))
        self.write("n/b.npy", npy(B))
        self.check(os.path.join(self.dir, "n"), {"w": W, "b": B})
        self.write("two/a.safetensors.index.json", index({}))
        self.write("two/b.safetensors.index.json", index({}))
        self.refused(os.path.join(self.dir, "two"), "it holds 2 indices")
        self.refused(os.path.join(self.dir, "nothing"), "No such file", code=66)

    def test_pickles(self):
        self.refused(b"\x80\x04\x95" + bytes(20), "it is a pickle, as PyTorch saves them", name="x.pt")
        self.refused(npz({}, more=[("archive/data.pkl", b"\x80\x02."), ("archive/data/0", bytes(8))]), "torch.save()", name="x.pt")
        self.refused(b"\x89HDF\r\n\x1a\n" + bytes(20), "HDF5", name="x.h5")
        self.refused(b"hello world, hello", "none of what is read", name="x.txt")
        os.mkfifo(os.path.join(self.dir, "fifo"))
        self.refused(os.path.join(self.dir, "fifo"), "no regular file")


QUANT = {"q": Tensor("Q8_0", (2, 64), bytes(i % 251 for i in range(4 * 34))), "w": W, "b": B, "i": I, "s": S, "e": E}


class GgufTest(FilesTest):
    own = {"q": "Q8_0"}

    def test_good(self):
        keys = [("tokens", "strings", ["a", "bcd", ""]), ("x", "f64", 1.5), ("y", "bool", 1), ("z", "i8", -1),
                ("nested", "raw", struct.pack("<IIQ", 9, 9, 2) + struct.pack("<IQ", 4, 2) + bytes(8) + struct.pack("<IQ", 8, 1) + string("x"))]
        for form in ({}, {"version": 2}, {"keys": keys}, {"alignment": 8}, {"alignment": 4096}, {"order": list(reversed(QUANT))}):
            with self.subTest(form):
                rows = self.check(self.write("a.gguf", gguf(QUANT, **form)), QUANT, self.own)
                self.assertEqual(set(rows["q"]["results"]) - {"digest"}, set())
                self.assertEqual(rows["w"]["results"]["min"]["value"], -2)
        self.check(self.write("none.gguf", gguf({})), {})
        self.check(self.write("cut.gguf", gguf({"w": W}, tail=-8)), {"w": W})  # a writer that does not pad the last one

    def test_unknown_type(self):
        path = self.write("a.gguf", gguf({"w": W, "u": Tensor("?", (32,), bytes(32)), "b": B}, types={"u": 77}))
        rows = self.rows(path)
        self.assertEqual((rows["u"]["type"], rows["u"]["shape"], rows["u"]["results"]), ("type-77", [32], {}))
        self.assertNotIn("bytes", rows["u"])
        text = self.run_client(path)
        self.assertIn("no digest, of types that are not known here: 1 of 3 tensors", text.out)
        self.assertNotIn("digest of all", text.out)
        for arguments in ((path, "--manifest", os.path.join(self.dir, "m.json")), (path, path)):
            result = self.run_client(*arguments)
            self.assertEqual(result.code, 65, result)
            self.assertIn("tensor 'u' is of type-77, which is not known here", result.err)

    def gone(self, data, *says, **more):
        self.refused(data, *says, name="x.gguf", **more)

    def test_head(self):
        self.gone(gguf(QUANT, version=1), "GGUF version 1; read are 2 and 3")
        self.gone(gguf(QUANT, version=4), "GGUF version 4")
        self.gone(gguf(QUANT, version=0x03000000), "big-endian")
        for bytes_left in (4, 7, 12, 20, 40, 60, 100, 300):
            self.gone(gguf(QUANT)[:bytes_left], "beyond the end of the file" if bytes_left < 24 else "x.gguf: ")
        self.gone(gguf(QUANT, count=MOST), "count of tensors is 18446744073709551615")
        self.gone(gguf(QUANT, key_count=MOST), "count of keys is 18446744073709551615")
        self.gone(gguf(QUANT, key_count=3), "x.gguf")

    def test_keys(self):
        def key(kind, what, name="k"):
            return gguf(QUANT, keys=[(name, kind, what)])
        self.gone(key("raw", struct.pack("<I", 99)), "key 'k' has the unknown type 99")
        self.gone(key("raw", struct.pack("<IQ", 8, MOST)), "key 'k' goes beyond the end of the file")
        self.gone(key("raw", struct.pack("<IIQ", 9, 4, MOST)), "key 'k' has 18446744073709551615 elements")
        self.gone(key("raw", struct.pack("<IIQ", 9, 8, 2**61)), "key 'k' has 2305843009213693952 elements")
        self.gone(key("raw", struct.pack("<IIQ", 9, 99, 1)), "key 'k' has elements of the unknown type 99")
        self.gone(key("raw", struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 20 + bytes(40)), "key 'k' is more than 8 arrays deep")
        self.gone(gguf({}, keys=[(b"\xff\xfe", "u8", 1)]), "not UTF-8")
        self.gone(gguf({}, keys=[("k" * 5000, "u8", 1)]), "the name of a key has 5000 bytes")
        for bad in (0, 24, 2**21):
            self.gone(gguf(QUANT, keys=[("general.alignment", "u32", bad)]), "general.alignment is %d, must be a power of two" % bad)
        self.gone(gguf(QUANT, keys=[("general.alignment", "string", "32")]), "key 'general.alignment' is no whole number")
        self.gone(gguf(QUANT, keys=[("general.alignment", "i32", -32)]), "key 'general.alignment' is negative")
        self.gone(gguf(QUANT, keys=[("general.alignment", "u32", 32)] * 2), "key 'general.alignment' is there twice")

    def test_tensors(self):
        self.gone(gguf({"w" * 2000: W}), "the name of a tensor has 2000 bytes")
        self.gone(gguf(QUANT, dims={"w": [1] * 5}), "tensor 'w': it has 5 dimensions, the limit is 4")
        self.gone(gguf(QUANT, dims={"w": [2**63, 2**63]}), "tensor 'w': shape: it has more than 2^63 - 1 elements")
        self.gone(gguf(QUANT, dims={"w": [2**62]}), "tensor 'w': shape: its 4611686018427387904 elements take more than 2^64 bytes")
        self.gone(gguf(QUANT, dims={"w": [2**40]}), "tensor 'w': offset")
        self.gone(gguf(QUANT, dims={"q": [63, 2]}), "tensor 'q': shape: its last dimension is 63, Q8_0 packs 32")
        self.gone(gguf(QUANT, dims={"q": [2**58, 2**4]}), "tensor 'q': ")
        self.gone(gguf(QUANT, offsets={"w": 33}), "tensor 'w': its offset is 33, no multiple of the alignment 32")
        self.gone(gguf(QUANT, offsets={"w": 2**63}), "tensor 'w': offset 9223372036854775808: its 24 bytes go beyond")
        self.gone(gguf(QUANT, offsets={"w": 0}), "lies within tensor")
        self.gone(gguf({"w": W, "b": B}, offsets={"b": 64}, end=bytes(32)), "tensor 'b': its offset is 64", "a hole")
        self.gone(gguf(QUANT, end=bytes(33)), "bytes follow the last tensor")
        self.gone(gguf({"w": W}, tail=-9), "tensor 'w': offset 0: its 24 bytes go beyond")
        twice = gguf({"w": W, "v": W})
        self.gone(twice.replace(string("v"), string("w")), "tensor 'w': its name is there twice")

    def parts(self, count=3, **changes):
        names = list(QUANT)
        for i in range(count):
            some = {n: QUANT[n] for n in names[i::count]}
            keys = {"split.no": ("u16", i), "split.count": ("u16", count), "split.tensors.count": ("i32", len(QUANT))}
            keys.update(changes.get("part%d" % i, {}))
            self.write("g/m-%05d-of-%05d.gguf" % (i + 1, count), gguf(some, keys=[(k, *v) for k, v in keys.items()]))
        return os.path.join(self.dir, "g", "m-00001-of-%05d.gguf" % count)

    def test_split(self):
        path = self.parts()
        self.check(path, QUANT, self.own)
        self.check(path.replace("00001", "00002"), QUANT, self.own)
        self.check(os.path.dirname(path), QUANT, self.own)
        self.gone(self.parts(part1={"split.count": ("u16", 2)}), "m-00002-of-00003.gguf: it says that it is part 2 of 2",
                  "m-00001-of-00003.gguf says 3")
        self.gone(self.parts(part1={"split.no": ("u16", 2)}), "m-00002-of-00003.gguf: it says that it is part 3 of 3")
        self.gone(self.parts(part0={"split.tensors.count": ("i32", 7)}), "split.tensors.count is 7, the parts hold 6")
        self.gone(self.parts(part0={"split.no": ("u16", 3)}), "split.no is 3, split.count 3")
        path = self.parts()
        os.rename(path, os.path.join(self.dir, "g", "other.gguf"))
        self.gone(os.path.join(self.dir, "g", "other.gguf"), "must end in -00001-of-00003.gguf")
        path = self.parts()
        os.remove(path.replace("00001", "00003"))
        self.gone(path, "m-00003-of-00003.gguf", "No such file", code=66)

    def test_folder_of_several(self):
        self.write("h/a.gguf", gguf({"w": W}))
        self.write("h/b.gguf", gguf({"w": W}))
        self.gone(os.path.join(self.dir, "h"), "tensor 'w' is in two files: a.gguf and b.gguf")
        path = self.parts()
        self.write("g/z.gguf", gguf({"other": W}))
        self.gone(os.path.dirname(path), "has 3 parts, but there are 4 .gguf files")


class NumpyTest(FilesTest):
    some = {**SOME, "c": Tensor("C64", (1,), bytes(8)), "flag": Tensor("BOOL", (3,), b"\1\0\1"), "dir/x": I}

    def test_good(self):
        for deflated in (False, True):
            path = self.write("a.npz", npz(self.some, deflated))
            rows = self.check(path, self.some, {"c": "C64"})
            self.assertEqual(rows["i"]["results"]["min"]["value"], -5)
        self.check(self.write("a.npy", npy(W)), {"array": W})

    def test_orders(self):
        """Big-endian elements and Fortran order have the answers of the array itself."""
        big = Tensor("F32", (2, 3), pack("f", 1, -2, 3, 0, 0.5, 4))
        swapped = Tensor("F32", (2, 3), struct.pack(">6f", 1, -2, 3, 0, 0.5, 4))
        turned = Tensor("F32", (2, 3), pack("f", 1, 0, -2, 0.5, 3, 4))
        files = {"plain": npy(big), "big": npy(swapped, ">f4"), "fortran": npy(turned, fortran=True)}
        for deflated in (False, True):
            arrays = files if not deflated else {k: v for k, v in files.items() if k != "fortran"}
            rows = self.rows(self.write("a.npz", npz(arrays, deflated)))
            for name in arrays:
                self.assertEqual(rows[name]["results"], rows["plain"]["results"], name)
        self.refused(npz({"f": files["fortran"]}, True), "tensor 'f': it is in Fortran order and deflated", name="x.npz")

    def test_bad(self):
        self.refused(npz({"a": npy(W)[:-1]}), "tensor 'a': it has 151 bytes, its header and shape want 152", name="x.npz")
        self.refused(npz({"a": npy(W)[:20]}), "tensor 'a': it ends in the middle of its .npy header", name="x.npz")
        self.refused(npz({"a": b"not an array at all"}), "tensor 'a': ", name="x.npz")
        self.refused(npz({"a": W}, more=[("b.txt", b"x")]), "its member 'b.txt' is no .npy file", name="x.npz")
        self.refused(npz({"a": npy(W, "|O")}), "tensor 'a': ", "Python objects", name="x.npz")
        self.refused(npy(W) + b"x", "tensor 'array': it has 153 bytes", name="x.npy")
        self.refused(npz({"a": W})[:-30], "x.npz: the archive is damaged", name="x.npz")
        data = bytearray(npz({"a": Tensor("F32", (1000,), bytes(4000))}, True))
        data[60] ^= 0x55
        self.assertEqual(self.run_client(self.write("y.npz", bytes(data))).code, 65)


if __name__ == "__main__":
    reasons.main()
