#!/usr/bin/env python3
"""cured-client weights, crossed: each kind of checkpoint with each mode, filter, --json, --nan and --ops. What must come is said by the
tensors alone, not by the kind. Every refusal is one sentence that names the file.
"""
import fnmatch
import itertools
import json
import math
import os
import struct

from checkpoints import OWN, Tensor, digest, digest_of_all, gguf, index, npy, npz, safetensors
from test_weights_files import FilesTest
import reasons

NAN, INF = float("nan"), float("inf")


def f32(*values, shape=None):
    return Tensor("F32", shape or (len(values),), struct.pack("<%df" % len(values), *values))


PLAIN = {"a.w": f32(NAN, 0, 1, -3, shape=(2, 2)), "a.e": Tensor("F32", (0, 3), b""), "b.i": Tensor("I64", (2,), struct.pack("<2q", -5, 0)),
         "b.s": Tensor("F64", (), struct.pack("<d", 2.5))}
FINITE = {"a.w": f32(0, 1, -3, 4, shape=(4, 1)), "b.i": PLAIN["b.i"]}
Q = Tensor("Q8_0", (2, 32), bytes(range(68)))
UNKNOWN = Tensor("type-77", (32,), bytes(32))
HALVES = {"a.w": PLAIN["a.w"], "b.i": PLAIN["b.i"]}, {"a.e": PLAIN["a.e"], "b.s": PLAIN["b.s"]}
LISTED = index({n: "%d.safetensors" % k for k in range(2) for n in HALVES[k]}, metadata={"total_size": 40})
SHARDS = {"%d.safetensors" % k: safetensors(h) for k, h in enumerate(HALVES)}
SPLIT = {"m-%05d-of-00002.gguf" % (k + 1): gguf(h, keys=[("split.no", "u16", k), ("split.count", "u16", 2), ("split.tensors.count", "i32", 4)])
         for k, h in enumerate(HALVES)}
TEXT = Tensor("U3", (2,), bytes(range(24)))
# kind: (files, what is named, the tensors)
KINDS = {
    "safetensors": ({"x.safetensors": safetensors(PLAIN)}, "x.safetensors", PLAIN),
    "finite": ({"x.safetensors": safetensors(FINITE)}, "x.safetensors", FINITE),
    "bytes alone": ({"x.safetensors": safetensors({"a.f4": Tensor("F4", (4,), b"ab"), "b.c": Tensor("C64", (1,), bytes(8))})}, "x.safetensors",
                    {"a.f4": Tensor("F4", (4,), b"ab"), "b.c": Tensor("C64", (1,), bytes(8))}),
    "empty": ({"x.safetensors": safetensors({})}, "x.safetensors", {}),
    "index": ({**SHARDS, "x.safetensors.index.json": LISTED}, "x.safetensors.index.json", PLAIN),
    "folder of an index": ({**SHARDS, "x.safetensors.index.json": LISTED}, "", PLAIN),
    "folder": (SHARDS, "", PLAIN),
    "gguf": ({"x.gguf": gguf(PLAIN)}, "x.gguf", PLAIN),
    "quantised": ({"x.gguf": gguf({"a.q": Q, **FINITE})}, "x.gguf", {"a.q": Q, **FINITE}),
    "unknown": ({"x.gguf": gguf({"a.u": UNKNOWN, **FINITE}, types={"a.u": 77})}, "x.gguf", {"a.u": UNKNOWN, **FINITE}),
    "split": (SPLIT, "m-00002-of-00002.gguf", PLAIN),
    "folder of a split": (SPLIT, "", PLAIN),
    "npz": ({"x.npz": npz(PLAIN)}, "x.npz", PLAIN),
    "deflated": ({"x.npz": npz(PLAIN, True)}, "x.npz", PLAIN),
    "strings": ({"x.npz": npz({**FINITE, "a.t": npy(TEXT, "<U3")})}, "x.npz", {**FINITE, "a.t": TEXT}),
    "npy": ({"x.npy": npy(FINITE["a.w"])}, "x.npy", {"array": FINITE["a.w"]}),
    "folder of npy": ({n + ".npy": npy(t) for n, t in PLAIN.items()}, "", PLAIN),
}
ROW = ["count_nan", "count_inf", "zeros", "min", "max", "mean", "std", "norm2", "digest"]
FILTERS = (None, "a*", "[!a]*", "none of them")
MODES = ("show", "table", "manifest", "manifest -", "check", "check other", "finite", "two", "two others")
COMPARING = MODES[4:6] + MODES[7:]
OPS = (None, "max,digest,count", "count_nan")


def numbers(t):
    form = {"F32": "f", "F64": "d", "I64": "q"}[t.type]
    return struct.unpack("<%d%s" % (len(t.data) // struct.calcsize("<" + form), form), t.data)


def strange(t):
    return t.type in OWN and any(math.isnan(v) or math.isinf(v) for v in numbers(t))


def answer(t, op, skip):
    """Of an op that the test knows: its value; None: there is none."""
    values = numbers(t)
    kept = [v for v in values if not math.isnan(v)] if skip else values
    if op in ("min", "max"):
        return NAN if any(map(math.isnan, kept)) else {"min": min, "max": max}[op](kept) if kept else None
    return {"count_nan": sum(map(math.isnan, values)), "count_inf": sum(map(math.isinf, values)), "zeros": sum(v == 0 for v in values), "count": len(values),
            "digest": digest(t.data)}[op]


class CrossTest(FilesTest):
    def put(self, folder, files):
        for name, data in files.items():
            self.write(os.path.join(folder, name), data)

    def others(self, tensors):
        """The same names, of which one has other bytes, one is missing and one is new."""
        made = dict(list(tensors.items())[:-1]) if len(tensors) > 1 else dict(tensors)
        made = {n: t for n, t in made.items() if t.type in ("F32", "F64", "I64")}
        first = next(iter(made), None)
        if first is not None:
            made[first] = f32(1, 2, 3)
        made["a.new"] = f32(5)
        return made

    def run_case(self, kind, mode, pattern, as_json, skip, ops):
        path, tensors = self.paths[kind], KINDS[kind][2]
        other = self.others(tensors)
        manifest = os.path.join(self.dir, "out.json")
        arguments = {"show": [path], "table": [path, "--output", "table"], "manifest": [path, "--manifest", manifest], "manifest -": [path, "--manifest", "-"],
                     "check": [path, "--check", self.manifests.get(kind, "/none")], "check other": [path, "--check", self.other_manifests[kind]],
                     "finite": [path, "--finite"], "two": [path, path], "two others": [path, self.other_paths[kind]]}[mode]
        arguments = arguments + (["--filter", pattern] if pattern else []) + (["--json"] if as_json else []) + (["--nan", "skip"] if skip else [])
        arguments += ["--ops", ops] if ops else []
        if os.path.exists(manifest):
            os.remove(manifest)
        return self.run_client(*arguments), manifest, other

    def wanted(self, kind, mode, pattern, as_json, ops, other):
        """(exit status, what the sentence says or None, the tensors that are taken, those of the other side)."""
        tensors = KINDS[kind][2]
        taken = {n: t for n, t in tensors.items() if pattern is None or fnmatch.fnmatchcase(n, pattern)}
        beside = {n: t for n, t in (other if mode in ("check other", "two others") else tensors).items() if pattern is None or fnmatch.fnmatchcase(n, pattern)}
        comparing = mode in COMPARING
        if mode == "table" and as_json:
            return 64, "--output table goes with neither --json", taken, beside
        if comparing and ops:
            return 64, "compared by their digests: leave out --ops", taken, beside
        if not comparing and tensors and not taken:
            return 65, "no name of its %d tensors matches --filter" % len(tensors), taken, beside
        if (comparing or mode.startswith("manifest")) and any(t is UNKNOWN for t in taken.values()):
            return 65, "tensor 'a.u' is of type-77, which is not known here", taken, beside
        if comparing and not taken and not beside and (tensors or (other and mode in ("check other", "two others"))):
            return 65, "has a name that matches --filter", taken, beside
        if mode == "finite" and any(map(strange, taken.values())):
            return 65, "NaN or infinity in", taken, beside
        same = {n: (t.type, t.shape, t.data) for n, t in taken.items()} == {n: (t.type, t.shape, t.data) for n, t in beside.items()}
        return 0 if not comparing or same else 1, None, taken, beside

    def check_rows(self, out, taken, skip, ops):
        whole = json.loads(out)
        self.assertEqual(sorted(taken), [row["name"] for row in whole["tensors"]])
        asked = ROW if ops is None else ops.split(",")
        for row in whole["tensors"]:
            t, results = taken[row["name"]], row["results"]
            if t.type not in OWN:
                self.assertEqual(["digest"] if "digest" in asked and t is not UNKNOWN else [], list(results))
                self.assertTrue(row["bytes_only"])
            else:
                self.assertEqual(asked, [op for op in results if op in asked])
                for op in set(asked) - {"mean", "std", "norm2"}:
                    value = answer(t, op, skip)
                    if value is None:
                        self.assertIn("error", results[op])
                    elif isinstance(value, float) and math.isnan(value):
                        self.assertNotIn(results[op]["value"], (0, 1))
                    else:
                        self.assertEqual(value, results[op]["value"], (row["name"], op))
            if "digest" in results:
                self.assertEqual(digest(t.data), results["digest"]["value"])
        if "digest" in asked and UNKNOWN not in taken.values():
            self.assertEqual(digest_of_all(taken), whole["digest"])

    def check_text(self, out, taken):
        lines = out.splitlines()
        self.assertEqual(sorted(taken), [line.split()[0] for line in lines[1:len(taken) + 1]])
        self.assertTrue(lines[len(taken) + 1].startswith("total: tensors %d, " % len(taken)))
        alone = [n for n, t in sorted(taken.items()) if t.type not in OWN and t is not UNKNOWN]
        self.assertEqual(["bytes and digest only, of types that cured does not reduce: %d of %d tensors: %s" % (len(alone), len(taken), ", ".join(alone))] if alone else [],
                         [line for line in lines if line.startswith("bytes and digest only")])

    def check_comparison(self, out, taken, beside, mode, as_json):
        """For --check the other side is before, for two it is now."""
        before, now = (beside, taken) if mode.startswith("check") else (taken, beside)
        found = {"differs": sorted(n for n in before if n in now and before[n] != now[n]), "missing": sorted(set(before) - set(now)), "new": sorted(set(now) - set(before))}
        if as_json:
            told = json.loads(out)
            self.assertEqual(found, {"differs": [d["name"] for d in told["differs"]], "missing": told["missing"], "new": told["new"]})
            self.assertEqual(not any(found.values()), told["same"])
        else:
            told = [tuple(line.split(": ")[0].split(" ", 1)) for line in out.splitlines()[:-1]]
            self.assertEqual(sorted((word, name) for word, names in found.items() for name in names), sorted(told))

    def check_case(self, kind, mode, pattern, as_json, skip, ops):
        result, manifest, other = self.run_case(kind, mode, pattern, as_json, skip, ops)
        code, says, taken, beside = self.wanted(kind, mode, pattern, as_json, ops, other)
        self.assertEqual(code, result.code, result)
        if says is not None:
            self.assertRegex(result.err, r"\A(cured-client: [^\n]+\n)+\Z")
            self.assertIn(says, result.err)
            if says != "NaN or infinity in":
                self.assertFalse(os.path.exists(manifest))
                self.assertEqual({"error", "exit"} if as_json else "", set(json.loads(result.out)) if as_json else result.out)
                return
        alone = sum(t.type not in OWN for t in taken.values())
        note = "the numbers of %d of %d tensors were not looked at" % (alone, len(taken)) if mode == "finite" and alone else ""
        self.assertEqual(bool(note) or says is not None, result.err != "", result.err)
        self.assertIn(note, result.err)
        if mode in ("manifest", "manifest -"):
            text = result.out if mode == "manifest -" else open_text(manifest)
            made = json.loads(text)
            self.assertEqual(digest_of_all(taken), made["digest"])
            self.assertEqual([[n, OWN.get(t.type, t.type), list(t.shape), len(t.data), digest(t.data)] for n, t in sorted(taken.items())],
                             [[e[k] for k in ("name", "type", "shape", "bytes", "digest")] for e in made["tensors"]])
        if mode in COMPARING:
            self.check_comparison(result.out, taken, beside, mode, as_json)
        elif mode != "manifest -" and as_json:
            self.check_rows(result.out, taken, skip, ops + ",digest" if ops == "count_nan" and mode == "manifest" else ops)
        elif mode != "manifest -":
            self.check_text(result.out, taken)

    def setUp(self):
        super().setUp()
        self.paths, self.other_paths, self.manifests, self.other_manifests = {}, {}, {}, {}
        for kind, (files, named, tensors) in KINDS.items():
            self.put(kind, files)
            self.put("other " + kind, {"o.safetensors": safetensors(self.others(tensors))})
            self.paths[kind], self.other_paths[kind] = os.path.join(self.dir, kind, named).rstrip("/"), os.path.join(self.dir, "other " + kind)
            for path, manifests in ((self.paths[kind], self.manifests), (self.other_paths[kind], self.other_manifests)):
                manifest = os.path.join(self.dir, "%s.%d.json" % (kind, manifests is self.manifests))
                if self.run_client(path, "--manifest", manifest).code == 0:
                    manifests[kind] = manifest
        self.assertEqual({"unknown"}, set(KINDS) - set(self.manifests))
        self.manifests["unknown"] = self.other_manifests["unknown"]  # refused before it counts, unless the filter leaves the tensor out

    def test_table(self):
        """--nan and --ops take turns, so that each meets each kind, mode and filter in one of the cases beside it, and all filters and modes
        each other."""
        turn = 0
        for kind, mode, pattern, as_json in itertools.product(KINDS, MODES, FILTERS, (False, True)):
            turn += 1
            if kind not in ("safetensors", "quantised", "strings") and as_json == (turn // 2 % 2 == 0):
                continue
            if kind == "unknown" and mode == "check":
                continue
            for skip, ops in ((turn // 2 % 2 == 0, None), (turn // 2 % 2 == 1, OPS[1 + turn // 4 % 2])):
                if ops and (pattern == "none of them" or (mode in COMPARING and turn % 5)):
                    continue  # all are refused
                with self.subTest(kind=kind, mode=mode, filter=pattern, json=as_json, skip=skip, ops=ops):
                    self.check_case(kind, mode, pattern, as_json, skip, ops)

    def test_kinds_with_each_other(self):
        """What has the same tensors is the same, whichever kind it is."""
        plain = [kind for kind in KINDS if KINDS[kind][2] is PLAIN]
        for one, other in itertools.product(plain, plain):
            with self.subTest(one=one, other=other):
                result = self.run_client(self.paths[one], self.paths[other])
                self.assertEqual((0, "same: tensors 4, digest of all: %s\n" % digest_of_all(PLAIN), ""), (result.code, result.out, result.err))


def open_text(path):
    with open(path) as f:
        return f.read()


if __name__ == "__main__":
    reasons.main()
