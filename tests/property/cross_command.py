"""cured-client, a door of cross_property.py: files and standard input of every form, options, and partials."""
import json
import math
import os
import subprocess
from fractions import Fraction

import numpy as np
import oracle
from cross_draw import PAIRS, NotHere
from cross_request import sent_as
from cross_truth import Answer, slices
from cured_daemon import CLIENT
from support import ERRORS, NUMPY, python_value

ENDS = USAGE, DATA = 64, 65  # exit statuses of a refusal; of an answer that is not there, DATA
LACKS = ("initial", "min_count", "nulls")  # options that it has none for


def number(value, dtype):
    """Of JSON: large integers, and floats that are no numbers, are strings there; whole floats have no point."""
    if dtype not in oracle.FLOATS:
        return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value
    if dtype in NUMPY:
        return np.dtype(NUMPY[dtype]).type(value).item()
    value = float(value)
    if not math.isfinite(value):
        return value
    if dtype == "f8_e4m3":  # which has no infinities, as the oracle's other types have
        size = min((python_value(dtype, bytes([bits])) for bits in range(127)), key=lambda size: abs(size - abs(value)))
    else:
        size = python_value(dtype, oracle.pack(dtype, oracle.rounded(dtype, Fraction(abs(value)))))
    return math.copysign(size, value)


# ---- Files ----

def swapped(a):
    return a.astype(a.dtype.newbyteorder(">"))


class Files:
    """Where a call's arrays lie, each in its own way. is_big, is_deflated, is_piped: what is said of the first one."""
    is_big = is_deflated = is_piped = False

    def __init__(self, r, ask):
        self.r, self.bag, self.stdin = r, ask.bag, None
        ask.files = self

    def raw(self, data, ending="bin"):
        path = self.bag.path(ending)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def npy(self, a):
        path = self.bag.path("npy")
        np.save(path, self.r.choice([a, np.array(a, order="F"), swapped(a)]))
        return path

    def first(self, a, kind):
        """The first array, in a file of NumPy's."""
        r, path = self.r, self.bag.path(kind)
        self.is_big, self.is_deflated = r.random() < 0.3 and a.itemsize > 1, kind == "npz" and r.random() < 0.5
        made = np.array(swapped(a) if self.is_big else a, order=r.choice("CF"))
        if kind == "npy":
            np.save(path, made)
            return self.piped(path) if r.random() < 0.3 else path
        (np.savez_compressed if self.is_deflated else np.savez)(path, x=made, y=np.ones(3))
        return path + ":x"

    def piped(self, path):
        self.is_piped = True
        with open(path, "rb") as file:
            self.stdin = file.read()
        return "-"

    def array(self, dtype, raw, shape, parts=True):
        """The words for the first array. parts: of a file, too."""
        r, kind = self.r, self.r.choice(["npy", "npy", "npz"] * (dtype in NUMPY) + ["raw"] + ["part"] * parts)
        if kind in ("npy", "npz"):
            path = self.first(np.frombuffer(raw, NUMPY[dtype]).reshape(shape), kind)
            return [path] + ["--dtype", dtype] * (not self.is_piped and r.random() < 0.2)
        before = r.randbytes(r.choice([0, 3, 8])) if kind == "part" else b""
        counted = kind == "part" and len(shape) == 1 and r.random() < 0.5
        path = self.raw(before + raw + (r.randbytes(5) if counted else b""))
        words = [path, "--raw", "--dtype", dtype] + (["--count", str(shape[0])] if counted else ["--shape", ",".join(map(str, shape))])
        if kind == "part":
            return words + ["--offset", str(len(before))]
        return [self.piped(path), *words[1:]] if r.random() < 0.3 else words

    def second(self, dtype, raw, shape):
        if dtype in NUMPY and self.r.random() < 0.7:
            return self.npy(np.frombuffer(raw, NUMPY[dtype]).reshape(shape))
        return self.raw(raw)

    def where(self, keep):
        kind = self.r.choice(["npy", "npy", "bytes", "bits"])
        if kind == "npy":
            return self.npy(keep)
        return kind + ":" + self.raw(keep.tobytes() if kind == "bytes" else np.packbits(keep, bitorder="little").tobytes())

    def run(self, words):
        """The process that ended; a call that it refused raises."""
        done = subprocess.run([CLIENT, *words], input=self.stdin, stdin=subprocess.DEVNULL if self.stdin is None else None, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300)
        self.stdin = None
        return done


def refused(done):
    """The exception of a refusal, or of a fault."""
    kind = {USAGE: ValueError, DATA: ValueError}.get(done.returncode, AssertionError)
    return kind("cured-client: ended with %d: %s" % (done.returncode, done.stderr.decode().strip()))


def ended(done, names):
    """The results of an answer in JSON."""
    said = json.loads(done.stdout) if done.returncode in (0, *ENDS) and done.stdout else {}
    if "results" not in said:
        raise refused(done)
    results = [said["results"][name] for name in names or said["results"]]
    wrong = next((result for result in results if "status" in result), None)
    if done.returncode or wrong:
        kind = ERRORS.get(wrong.get("status")) if done.returncode == DATA and wrong else None
        raise (kind or AssertionError)("cured-client: ended with %d: %s" % (done.returncode, wrong and wrong.get("error")))
    return results


def answer(results, shape, wanted):
    """shape: of all results together; None: one value."""
    values, dtype = [], None
    for result in results:
        dtype = result["dtype"]
        values += [number(value, dtype) for value in (result["values"] if "values" in result else [result["value"]])]
    if shape is None and len(results) == 1 and tuple(results[0].get("shape", ())):
        shape = tuple(results[0]["shape"])
    return Answer(shape, dtype if isinstance(wanted, Answer) and values else None, values)


# ---- A whole array ----

def finishing(o):
    words = []
    for name, flag in (("nan", "--nan"), ("overflow", "--overflow"), ("ddof", "--ddof"), ("dtype", "--result-dtype")):
        if name in o:
            words += [flag, str(o[name])]
    return words


def beside(c, files):
    o, words = c.options, []
    if "keys" in c.beside:
        words += ["--keys", files.npy(c.beside["keys"])] + (["--groups", str(o["groups"])] if "groups" in o else []) + ["--drop"] * ("drop" in o)
    elif "offsets" in c.beside:
        words += ["--offsets", files.npy(c.beside["offsets"])]
    elif slices(c)[0] is not None:
        axis = o.get("axis", tuple(range(c.ndim)))
        words += ["--axis", ",".join(map(str, axis if isinstance(axis, tuple) else (axis,)))] + ["--keepdims"] * ("keepdims" in o)
    if c.op in PAIRS:
        words += ["--second", files.second(c.dtype, c.other, c.shape)]
    keep = sent_as(c)
    return words + (["--where", files.where(keep)] if keep is not None else [])


def command_line(r, ask):
    c = ask.case
    if not c.ndim or c.options.get("axis") == ():
        raise NotHere
    files = Files(r, ask)
    words = [c.op] if r.random() < 0.5 else ["reduce"]
    words += files.array(c.dtype, c.raw, c.shape) + (["--ops", c.op] if words == ["reduce"] else [])
    words += finishing(c.options) + beside(c, files) + ["--connect", r.choice(["embedded:", *ask.doors.addresses])]
    ask.via = r.choice(["auto", "auto", "auto", "descriptor", "stream"])
    words += ["--via", ask.via]
    lead, shape = (np.shape(c.q), slices(c)[0]) if c.op == "quantile" else ((), slices(c)[0])
    if c.op == "quantile":
        words += ["--q", ",".join(map(repr, np.ravel(c.q).tolist())), "--method", c.options["method"]]
    results = ended(files.run(words + ["--json"]), None)
    for result in results:
        if tuple(result.get("shape", ())) != (shape or ()):
            raise AssertionError("its shape is %r" % (result.get("shape"),))
    return answer(results, None if shape is None and not lead else lead + (shape or ()), ask.wanted)


def lacking(r, ask):
    """An option of Python's that cured-client has not."""
    if not ask.case.ndim or r.random() < 0.7:
        raise NotHere
    name = r.choice(LACKS)
    files, value = Files(r, ask), ask.case.options.get(name, 1)
    raise refused(files.run([ask.case.op, *files.array(ask.case.dtype, ask.case.raw, ask.case.shape), "--" + name.replace("_", "-"), str(value)]))


# ---- Partials ----

def partial(r, ask, part):
    """The bytes of a part's partial (cross_parts.py)."""
    files, out = Files(r, ask), ask.bag.path("crp")
    words = ["reduce", *files.array(part.dtype, part.raw, part.shape, part.layout is None), "--ops", part.op, "--partial", "--output", out]
    words += ["--connect", r.choice(["embedded:", *ask.doors.addresses])]
    if part.keep is not None:
        words += ["--where", files.where(part.keep.reshape(part.shape))]
    if part.keys is not None:
        words += ["--keys", files.npy(part.keys), "--groups", str(part.groups)] + ["--drop"] * part.drop
    if part.second is not None:
        words += ["--second", files.second(part.dtype, part.second, part.shape)]
    if part.layout:
        words += ["--within", ",".join(map(str, part.layout[0])), "--start", ",".join(map(str, part.layout[1]))]
    elif part.first is not None:
        words += ["--first", str(part.first)]
    done = files.run(words)
    if done.returncode:
        raise refused(done)
    with open(out, "rb") as file:
        return file.read()


def merge(r, ask, op, partials, options, whole=False):
    """Partial bytes where whole, or the results."""
    files = Files(r, ask)
    words = ["merge", *(files.raw(one, "crp") for one in partials), "--ops", op, *finishing(options)]
    words += r.choice([["--local"], ["--connect", r.choice(["embedded:", *ask.doors.addresses])]])
    if not whole:
        return ended(files.run(words + ["--json"]), [op])
    out = ask.bag.path("crp")
    done = files.run(words + ["--partial", "--output", out])
    if done.returncode:
        raise refused(done)
    with open(out, "rb") as file:
        return file.read()


def here():
    return os.path.exists(CLIENT)
