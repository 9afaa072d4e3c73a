"""checkpoints: writes checkpoints by the formats' own rules, with the standard library alone, and every field of them can be wrong.

A tensor is Tensor(type, shape, data): the type as safetensors spells it, the shape in C order, the bytes as they lie in C order.
"""
import collections
import io
import json
import struct
import zipfile

Tensor = collections.namedtuple("Tensor", "type shape data")

# ggml's numbers of types: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
GGML = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "I8": 24, "I16": 25, "I32": 26, "I64": 27, "F64": 28,
        "BF16": 30, "MXFP4": 39}
NUMPY = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
         "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<V2", "C64": "<c8", "C128": "<c16"}
# What cured-client calls a type.
OWN = {"BOOL": "bool", **{t: t.lower() for t in "U8 I8 U16 I16 U32 I32 U64 I64 F16 BF16 F32 F64 F8_E4M3 F8_E5M2".split()}}


def elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def safetensors(tensors, order=None, header=None, length=None, tail=b"", metadata=None, space=0):
    """order: of the data, by names; header: JSON text in place of its own."""
    at, entries, data = 0, {}, bytearray()
    for name in order or tensors:
        t = tensors[name]
        entries[name] = {"dtype": t.type, "shape": list(t.shape), "data_offsets": [at, at + len(t.data)]}
        at += len(t.data)
        data += t.data
    if header is None:
        whole = {"__metadata__": metadata} if metadata is not None else {}
        whole.update({name: entries[name] for name in tensors})
        header = json.dumps(whole, separators=(",", ":"))
    text = (header.encode() if isinstance(header, str) else header) + b" " * space
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(data) + tail


def entry(type="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": type, "shape": list(shape), "data_offsets": list(offsets)}


def string(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


VALUE = {"u8": (0, "<B"), "i8": (1, "<b"), "u16": (2, "<H"), "i16": (3, "<h"), "u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"),
         "bool": (7, "<B"), "u64": (10, "<Q"), "i64": (11, "<q"), "f64": (12, "<d")}


def value(kind, what):
    if kind == "string":
        return struct.pack("<I", 8) + string(what)
    if kind == "strings":
        return struct.pack("<IIQ", 9, 8, len(what)) + b"".join(string(s) for s in what)
    if kind == "raw":
        return what
    number, form = VALUE[kind]
    return struct.pack("<I", number) + struct.pack(form, what)


def gguf(tensors, version=3, keys=(), alignment=None, types={}, order=None, offsets={}, count=None, key_count=None, tail=None, dims={},
         infos=None, end=b""):
    """keys: (name, kind, value); types, offsets, dims: by a tensor's name, in place of its own."""
    align = alignment or 32
    keys = [("general.architecture", "string", "test"), *keys]
    if alignment is not None:
        keys.append(("general.alignment", "u32", alignment))
    out = bytearray(b"GGUF") + struct.pack("<IQQ", version, len(tensors) if count is None else count, len(keys) if key_count is None else key_count)
    for name, kind, what in keys:
        out += string(name) + value(kind, what)
    at, data = {}, bytearray()
    for name in order or tensors:
        at[name] = len(data)
        data += tensors[name].data
        data += b"\0" * (-len(data) % align)
    for name, t in tensors.items():
        ne = dims.get(name, list(reversed(t.shape)))
        out += string(name) + struct.pack("<I", len(ne)) + b"".join(struct.pack("<Q", n) for n in ne)
        out += struct.pack("<IQ", types.get(name, GGML.get(t.type)), offsets.get(name, at[name]))
    if tensors:
        out += b"\0" * (-len(out) % align)
    if tail is not None:
        data = data[:len(data) + tail] if tail < 0 else data + b"\0" * tail
    return bytes(out + data + end)


def npy(t, descr=None, fortran=False):
    text = "{'descr': %r, 'fortran_order': %s, 'shape': %r, }" % (NUMPY[t.type] if descr is None else descr, fortran, tuple(t.shape))
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + t.data


def npz(tensors, deflated=False, more=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as z:
        for name, t in tensors.items():
            z.writestr(name + ".npy", t if isinstance(t, bytes) else npy(t))
        for name, data in more:
            z.writestr(name, data)
    return file.getvalue()


def index(weight_map, **more):
    return json.dumps({"metadata": {}, "weight_map": weight_map, **more}).encode()


# ---- The digest, in Python's integers ----

P = 2**61 - 1
ROOTS = (0x0487ed5110b4612c, 0x16fc2a2c515da557)


def digest(data):
    h, power = [0, 0], [1, 1]
    for k in range(0, len(data), 4):
        word = int.from_bytes(data[k:k + 4], "little")
        for i in range(2):
            h[i] = (h[i] + word * power[i]) % P
            power[i] = power[i] * ROOTS[i] % P
    return "cd1-%016x%016x-%d" % (h[0], h[1], len(data))


def digest_of_all(tensors, own=OWN):
    lines = []
    for name in sorted(tensors, key=lambda n: n.encode()):
        t = tensors[name]
        lines.append("%d %s %s [%s] %s\n" % (len(name.encode()), name, own.get(t.type, t.type), ",".join(map(str, t.shape)), digest(t.data)))
    return digest("".join(lines).encode())
