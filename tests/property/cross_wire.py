"""Doors of cross_property.py that are no Python of cured's: gRPC by grpcio and protoc's stubs, and cured-client with files. Each gives what the
others are held against: cross_truth's Answer, or an exception."""
import json
import math
import shutil
import subprocess

import grpc_client
import numpy as np
import oracle
from cross_draw import PAIRS, NotHere
from cross_truth import Answer, axes_of, by_key, kept, slices
from cured_daemon import CLIENT
from support import ERRORS, NUMPY, python_value

BLOCK = 256 << 10  # in which two arrays alternate
WHOLE = {name: size for name, size in oracle.SIZES.items()} | {"digest": 24}
ENDS = USAGE, DATA = 64, 65  # exit statuses of a refusal; of an answer that is not there, DATA


def sent_as(c):
    """What both take: masks of the whole array; the others' options are not theirs."""
    if set(c.options) & {"initial", "min_count", "nulls"} or c.op == "quantile" or int(c.options.get("ddof", 0)) != c.options.get("ddof", 0):
        raise NotHere
    if c.options.get("ddof", 0) < 0:
        raise NotHere
    masked = c.missing is not None or "where" in c.beside
    return np.array(kept(c), bool).reshape(c.shape) if masked else None


def lacks_grpc():
    """What is not there for it, or None."""
    try:
        import grpc  # noqa: F401
    except ImportError as error:
        return "%s (scripts/bootstrap --tests installs it)" % error
    return next(("there is no " + name for name in ("protoc", "grpc_python_plugin") if shutil.which(name) is None), None)


# ---- gRPC ----

class Grpc:
    """A channel to each address of a daemon."""

    def __init__(self, addresses):
        import grpc
        self.grpc, (self.pb, services) = grpc, grpc_client.stubs()
        self.channels = [grpc.insecure_channel(address.replace("tcp:", ""), options=[("grpc.use_local_subchannel_pool", 1)])
                         for address in addresses]
        self.stubs = [services.CuredStub(channel) for channel in self.channels]
        self.names = {number: name[6:].lower() for name, number in self.pb.Dtype.items()}

    def dtype(self, name):
        return self.pb.Dtype.Value("DTYPE_" + name.upper())

    def of(self, a):
        return self.dtype(next(name for name, code in NUMPY.items() if a.dtype == code))

    def fields(self, r, c):
        """(the request's fields, the bytes before the array, how the array's axes are ordered)."""
        keep, fields, before, order = sent_as(c), {}, b"", list(range(c.ndim))
        o, pb = c.options, self.pb
        for name, field, value in (("nan", "nan", pb.NAN_SKIP), ("overflow", "overflow", pb.OVERFLOW_WRAP), ("ddof", "ddof", o.get("ddof")),
                                   ("dtype", "result_dtype", o.get("dtype") and self.dtype(o["dtype"]))):
            if name in o:
                fields[field] = value
        if "keys" not in c.beside and "offsets" not in c.beside and slices(c)[0] is not None:
            fields["axis"], order = self.axis(c)
        if keep is not None:
            keep = keep.transpose(order)
            bits = r.random() < 0.5
            fields["mask"] = pb.Mask(stream=True, count=keep.size, bits=bits)
            before += np.packbits(keep, bitorder="little").tobytes() if bits else keep.tobytes()
        if "offsets" in c.beside:
            offsets = c.beside["offsets"].astype(r.choice(["i4", "i8", "u4", "u8"]))
            fields["segments"] = pb.Segments(stream=True, count=offsets.size, dtype=self.of(offsets))
            before += offsets.tobytes()
        if "keys" in c.beside:
            if math.prod(c.shape[1:]) == 0:  # which columns=0 does not say
                raise NotHere
            keys = c.beside["keys"]
            (groups, *_), _ = by_key(c)
            fields["keys"] = pb.Keys(stream=True, count=keys.size, dtype=self.of(keys), groups=groups, drop=o.get("drop", False),
                                     columns=math.prod(c.shape[1:]))
            before += keys.tobytes()
        return fields, before, order

    def axis(self, c):
        """The axes that are reduced go together: by the order of the array where they are neighbours, or by another."""
        axes = axes_of(c)
        stay = [k for k in range(c.ndim) if k not in axes]
        n = math.prod(c.shape[k] for k in axes)
        if axes and axes == tuple(range(axes[0], axes[-1] + 1)):
            return self.pb.Axis(outer=math.prod(c.shape[:axes[0]]), n=n, inner=math.prod(c.shape[axes[-1] + 1:])), list(range(c.ndim))
        return self.pb.Axis(outer=math.prod(c.shape[k] for k in stay), n=n, inner=1), stay + list(axes)

    def bytes_of(self, c, raw, order):
        size = oracle.SIZES[c.dtype]
        return np.frombuffer(raw, "u%d" % size).reshape(c.shape).transpose(order).tobytes()

    def ask(self, r, ask):
        c = ask.case
        fields, before, order = self.fields(r, c)
        fields["statuses"] = slices(c)[0] is not None
        data = self.bytes_of(c, c.raw, order)
        if c.op in PAIRS:
            fields["second"] = self.pb.Second(stream=True, count=math.prod(c.shape))
            data += self.bytes_of(c, c.other, order)  # less than a block of each
        request = self.pb.ReduceRequest(dtype=self.dtype(c.dtype), ops=[self.pb.Op.Value("OP_" + c.op.upper())], **fields)
        stub = r.choice(self.stubs)
        try:
            if r.random() < 0.5:
                request.data = data
                request.beside = before
                end = stub.Reduce(request, timeout=300)
                result = end.results[0]
                value, statuses = result.value, result.statuses
            else:
                result, value, statuses = self.streamed(r, stub, request, before + data)
        except self.grpc.RpcError as error:
            raise self.exception(error.code().name, error.details()) from None
        wrong = result.status or max(statuses, default=0)
        if wrong:
            raise self.exception(next(code.name for code in self.grpc.StatusCode if code.value[0] == wrong), result.message)
        return self.answer(ask, self.names[result.dtype], value)

    def streamed(self, r, stub, request, whole):
        def pieces():
            yield self.pb.ReduceChunk(head=request)
            at = 0
            while at < len(whole):
                size = r.choice([1, 7, 100, 4096])
                yield self.pb.ReduceChunk(data=whole[at:at + size])
                at += size

        values, statuses, end = {}, b"", None
        for chunk in stub.ReduceStream(pieces(), timeout=300):
            if chunk.HasField("part"):
                values[chunk.part.first] = chunk.part.values
                statuses += chunk.part.statuses
            elif chunk.HasField("end"):
                end = chunk.end
        result = end.results[0]
        return result, b"".join(values[k] for k in sorted(values)) or result.value, statuses + result.statuses

    def exception(self, code, details):
        kind = {"INVALID_ARGUMENT": ValueError, "OUT_OF_RANGE": OverflowError, "UNIMPLEMENTED": NotImplementedError}.get(code, AssertionError)
        return kind(details)

    def answer(self, ask, dtype, value):
        shape = ask.wanted.shape if isinstance(ask.wanted, Answer) else None
        size = WHOLE.get(dtype) if shape is not None else None
        values = [python_value(dtype, value)] if shape is None else [python_value(dtype, value[at:at + size]) for at in range(0, len(value), size)]
        return Answer(shape, dtype, values)

    def end(self):
        for channel in self.channels:
            channel.close()


# ---- The command line ----

def number(value, dtype):
    """Of JSON: large integers, and floats that are no numbers, are strings there; whole floats have no point."""
    if dtype in oracle.FLOATS:
        return math.nan if value is None else np.dtype(NUMPY[dtype]).type(value).item()
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def arguments(r, ask, save):
    c, o, keep = ask.case, ask.case.options, sent_as(ask.case)
    words = []
    for name, flag in (("nan", "--nan"), ("overflow", "--overflow"), ("ddof", "--ddof"), ("dtype", "--result-dtype")):
        if name in o:
            words += [flag, str(o[name])]
    if "keys" in c.beside:
        words += ["--keys", save(c.beside["keys"])] + (["--groups", str(o["groups"])] if "groups" in o else []) + (["--drop"] if "drop" in o else [])
    elif "offsets" in c.beside:
        words += ["--offsets", save(c.beside["offsets"])]
    elif slices(c)[0] is not None:
        axis = o.get("axis", tuple(range(c.ndim)))
        words += ["--axis", ",".join(map(str, axis if isinstance(axis, tuple) else (axis,)))] + (["--keepdims"] if "keepdims" in o else [])
    if c.op in PAIRS:
        words += ["--second", save(np.frombuffer(c.other, NUMPY[c.dtype]).reshape(c.shape))]
    return words + (["--where", save(keep)] if keep is not None else [])


def command_line(r, ask):
    c, bag = ask.case, ask.bag
    if c.dtype not in NUMPY or not c.ndim or c.options.get("axis") == ():
        raise NotHere

    def save(a):
        path = bag.path("npy")
        np.save(path, r.choice([a, np.array(a, order="F"), a.astype(a.dtype.newbyteorder(">"))]))
        return path
    words = [CLIENT, "reduce", save(c.array), "--ops", c.op, "--json", *arguments(r, ask, save), "--connect", r.choice(["embedded:", *ask.doors.addresses])]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    said = json.loads(done.stdout) if done.returncode in (0, *ENDS) else {}
    if "results" not in said:
        kind = {USAGE: ValueError, DATA: ValueError}.get(done.returncode, AssertionError)  # of a refusal, or of a fault
        raise kind("cured-client: ended with %d: %s" % (done.returncode, done.stderr.strip()))
    result = said["results"][c.op]
    if done.returncode or "status" in result:
        kind = ERRORS.get(result.get("status")) if done.returncode == DATA else None
        raise (kind or AssertionError)("cured-client: ended with %d: %s" % (done.returncode, result.get("error")))
    wanted = ask.wanted if isinstance(ask.wanted, Answer) else None
    shape = tuple(result["shape"]) if "values" in result else None
    if shape == () and wanted and wanted.shape is None:  # all axes are reduced
        shape = None
    values = [number(value, wanted and wanted.dtype) for value in (result["values"] if "values" in result else [result["value"]])]
    return Answer(shape, None, values)
