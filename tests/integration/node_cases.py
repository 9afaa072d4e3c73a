"""node_cases: what node_table.js asks, and what the oracle says to it. Every type by every way to answers (whole, along an axis, along several,
by key, by offsets), with and without a mask, in each group of ops (all of one array, lists of quantiles, pairs, partials)."""
import base64
import itertools
import random
import struct

import expected  # noqa: F401: it finds the oracle
import ops as ops_table  # noqa: I100
import oracle
import pairs

SHAPE = (3, 4, 5)
COUNT = 60
SHARES = (0.5, 0.0, 1 / 3, 1.0)
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
BITS, WHOLE = ops_table.BITS, ops_table.WHOLE
FIXED = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q"}
OUT_OF_RANGE, INVALID_ARGUMENT = 11, 3


def text(dtype, raw, packed):
    """A value as node_table.js writes it: of floats the bits as f64, of long integers with an n. packed: it is one of an array."""
    if dtype == "digest":
        one, two, count = struct.unpack("<3Q", raw)
        return "cd1-%016x%016x-%d" % (one, two, count)
    if dtype == "bool" and not packed:
        return "true" if raw[0] else "false"
    if dtype in oracle.FLOATS:
        f = oracle.Floats(dtype, raw)
        if f.kind[0] != "num":
            return f.kind[0]
        sign = f.bits[0] >> (f.width - 1)
        return "%016x" % (oracle.rounded("f64", f.unit[0] * oracle.power(f.grid)) or sign << 63)
    value = int.from_bytes(raw, "little", signed=dtype == "int" or dtype.startswith("i"))
    return "%d" % value if dtype in ("bool", "u8", "i8", "u16", "i16", "u32", "i32") else "%dn" % value


def elements(r, dtype):
    """Random words, so most sums do not fit; of floats some are no numbers, and of all types some are equal."""
    size = oracle.SIZES[dtype]
    words = [bytes([r.getrandbits(1)]) if dtype == "bool" else r.randbytes(size) for _ in range(20)]
    if dtype in oracle.FLOATS:
        words += [oracle.pack(dtype, 0), oracle.pack(dtype, 1 << (8 * size - 1)), oracle.pack(dtype, oracle.nan_bits(dtype))]
    small = [oracle.pack(dtype, oracle.rounded(dtype, v) if dtype in oracle.FLOATS else v) for v in range(1 if dtype == "bool" else 4)]
    return b"".join(r.choice(words if r.random() < 0.2 else small) for _ in range(COUNT))


class Way:
    """cells: of each answer its elements, as (number in the array, index that argmin gives)."""

    def __init__(self, options, shape, cells):
        self.options, self.shape, self.cells = options, shape, cells


def axes_way(axes):
    kept = [d for d in range(3) if d not in axes]
    cells = []
    for place in itertools.product(*(range(SHAPE[d]) for d in kept)):
        at = dict(zip(kept, place))
        inside = itertools.product(*(range(SHAPE[d]) for d in axes))
        cells.append([(number({**at, **dict(zip(axes, one))}), i) for i, one in enumerate(inside)])
    return Way({"shape": SHAPE, "axis": axes if len(axes) > 1 else axes[0]}, [SHAPE[d] for d in kept], cells)


def number(at):
    return (at[0] * SHAPE[1] + at[1]) * SHAPE[2] + at[2]


def ways(r):
    yield "whole", Way({}, None, [[(i, i) for i in range(COUNT)]])
    for axes in ([0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]):
        yield "axis", axes_way(axes)
    kind = r.choice(list(FIXED))
    keys = [r.randrange(4) for _ in range(12)]
    cells = [[(row * 5 + column, row) for row in range(12) if keys[row] == group] for group in range(4) for column in range(5)]
    yield "keys", Way({"shape": (12, 5), "keys": [kind, keys], "groups": 4}, [4, 5], cells)
    kind = r.choice(("i32", "u32", "i64", "u64"))
    offsets = [0, 7, 7, 31, 60]
    yield "offsets", Way({"offsets": [kind, offsets]}, [4], [[(i, i - a) for i in range(a, b)] for a, b in zip(offsets, offsets[1:])])


def ops_of(dtype, way, masked):
    """Those that the oracle knows to one array, and the way takes."""
    found = [op for op in ops_table.IDS if dtype in oracle.INTS or op not in BITS]
    found = [op for op in found if op not in WHOLE or (way != "keys" and not masked)]
    return [op for op in found if op != "prod" or dtype in oracle.INTS]  # of floats it is known to within a bound


def width(op, dtype):
    return oracle.SIZES[dtype] if op in ("min", "max", "norminf", "bit_and", "bit_or", "bit_xor") else 1 if op in ("any", "all") else 24 if op in WHOLE else 8


def cell_text(answer, labels, op, dtype, packed):
    """An answer of the oracle's as a text, or the status of one that has no value."""
    if answer[0] == "error":
        return {"INVALID_ARGUMENT": INVALID_ARGUMENT, "OUT_OF_RANGE": OUT_OF_RANGE}[answer[1]]
    _, kind, raw = answer[:3]
    if packed and kind == "int":
        return OUT_OF_RANGE
    if op in ("argmin", "argmax"):
        raw = struct.pack("<Q", labels[int.from_bytes(raw, "little")])
    return text(kind, raw, packed)


class Cases:
    """All cases of a type."""

    def __init__(self, seed, dtype):
        self.r = random.Random("%s %s" % (seed, dtype))
        self.dtype = dtype
        self.data, self.other = elements(self.r, dtype), elements(self.r, dtype)
        self.mask = [self.r.random() < 0.6 for _ in range(COUNT)]
        self.mask[7:12] = [False] * 5

    def of(self, data, numbers):
        size = oracle.SIZES[self.dtype]
        return b"".join(data[i * size:(i + 1) * size] for i in numbers)

    def case(self, way, masked, ops, answer_of, **more):
        """answer_of(op, numbers): the oracle's, to the elements of these numbers."""
        packed, wanted = way.shape is not None, {}
        for op in ops:
            wanted[op] = []
            for cell in way.cells:
                kept = [(i, label) for i, label in cell if not masked or self.mask[i]]
                numbers = [i for i, _ in kept]
                answer = answer_of(op, numbers)
                wanted[op].append(cell_text(answer, [label for _, label in kept], op, self.dtype, packed))
        where = [int(m) for m in self.mask] if masked else None
        return {"dtype": self.dtype, "options": way.options, "where": where, "ops": list(ops), "shape": way.shape, "wanted": wanted, **more}

    def all(self):
        for (name, way), masked in itertools.product(ways(self.r), (False, True)):
            ops, nan = ops_of(self.dtype, name, masked), self.r.choice(("propagate", "skip"))
            if nan == "skip":
                ops = [op for op in ops if op not in WHOLE]
            yield self.case(way, masked, ops, lambda op, at: oracle.answer(op, self.dtype, self.of(self.data, at), nan), nan=nan)
            if name != "keys":
                yield self.case(way, masked, list(ops_table.PAIRS), lambda op, at: pairs.answer(
                    op, self.dtype, self.of(self.data, at), self.of(self.other, at), nan), nan=nan, pair=True)
            yield self.quantiles(way, masked, nan)
        for masked in (False, True):
            yield self.partials(masked)
        yield self.blocks()

    def quantiles(self, way, masked, nan):
        """A list of shares: another dimension, before the others."""
        method, answers = self.r.choice(METHODS), []
        for cell in way.cells:
            raw = self.of(self.data, [i for i, _ in cell if not masked or self.mask[i]])
            answers.append([text("f64", bits.to_bytes(8, "little"), False) for bits in
                            oracle.quantiles(self.dtype, raw, [(share, method) for share in SHARES], nan)])
        by_share = [one for share in zip(*answers) for one in share]
        where = [int(m) for m in self.mask] if masked else None
        shape = None if way.shape is None else [len(SHARES)] + list(way.shape)
        return {"dtype": self.dtype, "options": way.options, "where": where, "ops": ["quantile"], "shape": shape, "nan": nan,
                "q": SHARES, "method": method, "wanted": {"quantile": by_share}}

    def partials(self, masked):
        """In three parts, merged to the whole; under a mask without places."""
        way = Way({}, None, [[(i, i) for i in range(COUNT)]])
        ops = [op for op in ops_of(self.dtype, "whole", masked) if not masked or op not in ("argmin", "argmax")]
        return self.case(way, masked, ops, lambda op, at: oracle.answer(op, self.dtype, self.of(self.data, at)), parts=[0, 7, 41, 60])

    def blocks(self):
        """Two blocks, which lie in the array like columns."""
        way = Way({}, None, [[(i, i) for i in range(COUNT)]])
        ops = ops_of(self.dtype, "whole", False)
        numbers = [[number(dict(enumerate(at))) for at in itertools.product(range(3), range(4), columns)] for columns in ((0, 1), (2, 3, 4))]
        blocks = [{"numbers": some, "shape": [3, 4, n], "start": [0, 0, start]} for some, n, start in zip(numbers, (2, 3), (0, 2))]
        return self.case(way, False, ops, lambda op, at: oracle.answer(op, self.dtype, self.of(self.data, at)), blocks=blocks, within=SHAPE)

    def json(self):
        return {"dtype": self.dtype, "data": base64.b64encode(self.data).decode(), "other": base64.b64encode(self.other).decode(),
                "cases": list(self.all())}
