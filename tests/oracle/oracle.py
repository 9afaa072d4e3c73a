"""An independent oracle for cured's answers: integers and fractions only, nothing shared with the product.

    answer(op, dtype, raw, nan="propagate", result=None, ddof=0, overflow="error")

takes the array's bytes and returns ("value", dtype name, bytes, bytes at the index or b"") or ("error", status, text that
the sentence must hold) or, for products of floats, ("between", dtype name, lowest order(), highest order()). The rules are
those of docs/NUMERICS.md; each is written here from the document, by the slowest method that is plainly right.
"""

import functools
import math
import struct
from fractions import Fraction

INTS = {"bool": (1, False), "u8": (1, False), "i8": (1, True), "u16": (2, False), "i16": (2, True),
        "u32": (4, False), "i32": (4, True), "u64": (8, False), "i64": (8, True)}
# name: (bytes, mantissa bits, exponent bits)
FLOATS = {"f16": (2, 10, 5), "bf16": (2, 7, 8), "f32": (4, 23, 8), "f64": (8, 52, 11), "f8_e4m3": (1, 3, 4), "f8_e5m2": (1, 2, 5)}
FINITE = {"f8_e4m3"}  # without infinities: the one NaN of each sign has all bits set, and the other magnitudes are numbers
RESULTS = ["f16", "bf16", "f32", "f64"]  # what answers are rounded to
DTYPES = list(INTS) + list(FLOATS)
SIZES = {name: v[0] for name, v in list(INTS.items()) + list(FLOATS.items())}
# Exact sums: of what power of the elements, and whether of their magnitudes. name: (power, magnitude)
SUMS = {"sum": (1, False), "norm1": (1, True), "sumsq": (2, True)}
# What is made of one, rounded once to a float. name: (the sum, whether it is divided by the number of elements, whether its root is taken)
CLOSED = {"mean": ("sum", True, False), "norm2": ("sumsq", False, True)}
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def words(dtype, raw):
    size = SIZES[dtype]
    return struct.unpack("<%d%s" % (len(raw) // size, CODES[size]), raw)


def integers(dtype, raw):
    if dtype == "bool":
        return [1 if b else 0 for b in raw]
    size, signed = INTS[dtype]
    code = CODES[size]
    return struct.unpack("<%d%s" % (len(raw) // size, code.lower() if signed else code), raw)


class Floats:
    """The elements of a float array: .kind[i] is "nan", "+inf", "-inf" or "num", .unit[i] the value in units of 2^.grid."""

    def __init__(self, dtype, raw):
        _, mantissa, exponent = FLOATS[dtype]
        top = (1 << exponent) - 1
        bias = top >> 1
        self.grid = 1 - bias - mantissa
        self.bits = words(dtype, raw)
        self.width = 1 + exponent + mantissa
        self.kind, self.unit = [], []
        sign_bit, low = 1 << (self.width - 1), (1 << mantissa) - 1
        for b in self.bits:
            e, m = (b >> mantissa) & top, b & low
            if e == top and (dtype not in FINITE or m == low):
                self.kind.append("nan" if m else "-inf" if b & sign_bit else "+inf")
                self.unit.append(0)
                continue
            v = m if e == 0 else (m | (1 << mantissa)) << (e - 1)
            self.kind.append("num")
            self.unit.append(-v if b & sign_bit else v)


@functools.lru_cache(maxsize=1)
def floats(dtype, raw):
    """Many questions are asked of one array."""
    return Floats(dtype, raw)


def pack(dtype, bits):
    return bits.to_bytes(SIZES[dtype], "little")


def nan_bits(dtype):
    return {"f16": 0x7e00, "bf16": 0x7fc0, "f32": 0x7fc00000, "f64": 0x7ff8000000000000, "f8_e4m3": 0x7f, "f8_e5m2": 0x7e}[dtype]


def inf_bits(dtype, negative):
    _, mantissa, exponent = FLOATS[dtype]
    return ((1 << exponent) - 1) << mantissa | int(negative) << (mantissa + exponent)


def floor_log2(x):
    """The e with 2^e <= x < 2^(e+1), for a positive fraction."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= power(e) else e - 1


def power(e):
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


def encode(dtype, negative, q, unit):
    """Bits of ±q·2^unit, which is representable or beyond the largest value."""
    _, mantissa, exponent = FLOATS[dtype]
    bias = (1 << (exponent - 1)) - 1
    sign = int(negative) << (mantissa + exponent)
    if q == 0:
        return sign
    while q.bit_length() > mantissa + 1:
        assert q % 2 == 0
        q, unit = q // 2, unit + 1
    lead = q.bit_length() - 1 + unit
    if lead > bias:
        return inf_bits(dtype, negative)
    if lead < 1 - bias:
        return sign | q << (unit - (1 - bias - mantissa))
    q <<= mantissa - (q.bit_length() - 1)
    return sign | (lead + bias) << mantissa | (q & ((1 << mantissa) - 1))


def units_of(dtype, lead):
    _, mantissa, exponent = FLOATS[dtype]
    bias = (1 << (exponent - 1)) - 1
    return max(lead - mantissa, 1 - bias - mantissa)


def rounded(dtype, x):
    """Bits of the fraction x in the float type: nearest, ties to even."""
    if x == 0:
        return 0
    size = abs(x)
    if size.denominator == 1 and size.numerator.bit_length() > 1024:  # beyond every type; long numbers divide slowly
        return inf_bits(dtype, x < 0)
    unit = units_of(dtype, floor_log2(size))
    scaled = size / power(unit)
    q = scaled.numerator // scaled.denominator
    rest = scaled - q
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and q % 2 == 1):
        q += 1
    return encode(dtype, x < 0, q, unit)


def rounded_root(dtype, x):
    """Bits of the square root of the fraction x >= 0."""
    if x == 0:
        return 0
    unit = units_of(dtype, floor_log2(x) // 2)
    scaled = x / power(2 * unit)
    q = math.isqrt(scaled.numerator // scaled.denominator)
    middle = (q + Fraction(1, 2)) ** 2
    if scaled > middle or (scaled == middle and q % 2 == 1):
        q += 1
    return encode(dtype, False, q, unit)


def integer_result(op, dtype, value, result):
    signed = INTS[dtype][1]
    if result is None:
        result = "i64" if signed else "u64"
        low, high = (-(1 << 63), (1 << 63) - 1) if signed else (0, (1 << 64) - 1)
        if low <= value <= high:
            return ("value", result, value.to_bytes(8, "little", signed=signed), b"")
        size = 9
        while not -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
            size += 1
        return ("value", "int", value.to_bytes(size, "little", signed=True), b"")
    if result in FLOATS:
        return ("value", result, pack(result, rounded(result, Fraction(value))), b"")
    size, signed = (16, True) if result == "i128" else INTS[result]
    bits = 1 if result == "bool" else 8 * size
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        return ("error", "OUT_OF_RANGE", str(value))
    return ("value", result, value.to_bytes(size, "little", signed=signed), b"")


def float_result(result, bits):
    result = result or "f64"
    return ("value", result, pack(result, bits), b"")


def variance(n, total, squares, ddof):
    """Of n values whose exact sum and sum of squares are given; None when there are too few."""
    if n <= ddof:
        return None
    return (squares - Fraction(total * total, n)) / (n - ddof)


def power_sum(op, x):
    """One of SUMS, of integers."""
    exponent, magnitude = SUMS[op]
    return sum((abs(v) if magnitude else v) ** exponent for v in x)


def closed(op, total, n, result):
    """One of CLOSED, of n elements whose sum is `total`, a fraction."""
    _, divided, root = CLOSED[op]
    if divided and n == 0:
        return nan_bits(result)
    return (rounded_root if root else rounded)(result, total / n if divided else total)


def in_order(dtype, raw):
    """(numbers, NaNs): of each number, by rank, its value (a Fraction, or an infinity) and whether it has a sign."""
    if dtype in INTS:
        return [(Fraction(v), v < 0) for v in sorted(integers(dtype, raw))], 0
    f = floats(dtype, raw)
    keep = [i for i in range(len(f.bits)) if f.kind[i] != "nan"]
    unit = power(f.grid)
    infinite = {"+inf": math.inf, "-inf": -math.inf}
    return [(infinite.get(f.kind[i]) or f.unit[i] * unit, bool(f.bits[i] >> (f.width - 1)))
            for i in sorted(keep, key=lambda i: float_order(f, i))], len(f.bits) - len(keep)


def between(method, place):
    """The ranks that a place lies between, and the share of the upper one."""
    low = place.numerator // place.denominator
    rest = place - low
    if method == "lower" or rest == 0:
        return low, low, Fraction(0)
    if method == "higher":
        return low + 1, low + 1, Fraction(0)
    if method == "nearest":
        half = Fraction(1, 2)
        near = low + 1 if rest > half or (rest == half and low % 2 == 1) else low
        return near, near, Fraction(0)
    return low, low + 1, Fraction(1, 2) if method == "midpoint" else rest


def quantiles(dtype, raw, asked, nan="propagate", result=None):
    """The bits, in type result, of the answer to each (share, method)."""
    result = result or "f64"
    numbers, nans = in_order(dtype, raw)
    found = []
    for share, method in asked:
        if not numbers or (nans and nan == "propagate"):
            found.append(nan_bits(result))
            continue
        low, high, weight = between(method, Fraction(share) * (len(numbers) - 1))
        (a, a_signed), (b, b_signed) = numbers[low], numbers[high]
        ends = [x for x in (a, b) if x in (math.inf, -math.inf)]
        if len(set(ends)) == 2:
            found.append(nan_bits(result))
        elif ends:
            found.append(inf_bits(result, ends[0] < 0))
        else:
            value = a * (1 - weight) + b * weight
            zero = int(a_signed and b_signed) << (8 * SIZES[result] - 1)
            found.append(rounded(result, value) if value else zero)
    return found


def answer_int(op, dtype, raw, result, ddof, overflow):
    x = integers(dtype, raw)
    n, size = len(x), SIZES[dtype]
    u64 = lambda v: ("value", "u64", v.to_bytes(8, "little"), b"")
    boolean = lambda v: ("value", "bool", bytes([int(v)]), b"")
    own = lambda v: v.to_bytes(size, "little", signed=INTS[dtype][1])
    if op == "count":
        return u64(n)
    if op in ("count_nan", "count_inf"):
        return u64(0)
    if op == "count_nonzero":
        return u64(sum(1 for v in x if v))
    if op == "any":
        return boolean(any(x))
    if op == "all":
        return boolean(all(x))
    if op in ("min", "max", "argmin", "argmax"):
        if n == 0:
            return ("error", "INVALID_ARGUMENT", op)
        best = min(x) if op.endswith("min") else max(x)
        if op.startswith("arg"):
            return ("value", "u64", x.index(best).to_bytes(8, "little"), own(best))
        return ("value", dtype, own(best), b"")
    if op == "norminf":
        if n == 0:
            best = 0
        else:
            best = max(abs(v) for v in x)
        unsigned = "u" + dtype[1:] if INTS[dtype][1] else dtype
        return ("value", unsigned, best.to_bytes(size, "little"), b"")
    if op in SUMS:
        return integer_result(op, dtype, power_sum(op, x), result)
    if op in CLOSED:
        return float_result(result, closed(op, Fraction(power_sum(CLOSED[op][0], x)), n, result or "f64"))
    if op == "ptp":
        return integer_result(op, dtype, max(x) - min(x), result) if n else ("error", "INVALID_ARGUMENT", op)
    if op in ("var", "std"):
        result = result or "f64"
        v = variance(n, sum(x), Fraction(sum(v * v for v in x)), ddof)
        if v is None:
            return float_result(result, nan_bits(result))
        return float_result(result, rounded(result, v) if op == "var" else rounded_root(result, v))
    if op == "prod":
        value = 0 if 0 in x else product(x)
        if overflow == "wrap":
            low = value % (1 << 64)
            kind = result or ("i64" if INTS[dtype][1] else "u64")
            return ("value", kind, low.to_bytes(8, "little"), b"")
        signed = INTS[dtype][1]
        if result is None and not (-(1 << 63) <= value < 1 << 63 if signed else value < 1 << 64):
            return ("error", "OUT_OF_RANGE", "prod")
        if result not in FLOATS and abs(value) >= 1 << 256:
            return ("error", "OUT_OF_RANGE", "prod")
        return integer_result(op, dtype, value, result)
    if op in ("bit_and", "bit_or", "bit_xor"):
        w = x if dtype == "bool" else words(dtype, raw)
        acc = (1 if dtype == "bool" else (1 << (8 * size)) - 1) if op == "bit_and" else 0
        for v in w:
            acc = acc & v if op == "bit_and" else acc | v if op == "bit_or" else acc ^ v
        return ("value", dtype, acc.to_bytes(size, "little"), b"")
    raise ValueError(op)


def float_order(f, i):
    """A key in which -0 is below +0."""
    return (f.unit[i], 0 if f.bits[i] >> (f.width - 1) else 1) if f.kind[i] == "num" else \
        (math.inf if f.kind[i] == "+inf" else -math.inf, 0)


def float_extremum(op, f, dtype, n, nan, keep):
    nans = [i for i in range(n) if f.kind[i] == "nan"]
    if nans and nan == "propagate":
        at, bits = nans[0], nan_bits(dtype)
    elif not keep:
        return ("error", "INVALID_ARGUMENT", op)
    else:
        keys = [float_order(f, i) for i in keep]
        best = min(keys) if op.endswith("min") else max(keys)
        at = keep[keys.index(best)]
        bits = f.bits[at]
    if op.startswith("arg"):
        return ("value", "u64", at.to_bytes(8, "little"), pack(dtype, bits))
    return ("value", dtype, pack(dtype, bits), b"")


# The error of a product of floats is at most half a unit in the last place and this much of one.
PROD_SLACK = Fraction(5, 10000)


def order(dtype, bits):
    """Rises with the value that bits have in a float type; infinities are next to the largest values."""
    _, mantissa, exponent = FLOATS[dtype]
    sign = 1 << (mantissa + exponent)
    return -(bits & (sign - 1)) if bits & sign else bits


def product(numbers):
    """By halves: Python multiplies long numbers of one length fast."""
    if len(numbers) <= 8:
        return math.prod(numbers)
    half = len(numbers) // 2
    return product(numbers[:half]) * product(numbers[half:])


def prod_float(f, keep, result):
    infinite = any(f.kind[i] != "num" for i in keep)
    zero = any(f.kind[i] == "num" and f.unit[i] == 0 for i in keep)
    negative = sum(f.bits[i] >> (f.width - 1) for i in keep) % 2 == 1
    if infinite and zero:
        return float_result(result, nan_bits(result))
    if infinite:
        return float_result(result, inf_bits(result, negative))
    if zero:
        return float_result(result, 0)
    # The value is size·2^scale; its leading 400 bits are enough to tell which side of a bound it lies on.
    twos = [(f.unit[i] & -f.unit[i]).bit_length() - 1 for i in keep]
    size, scale = product([abs(f.unit[i]) >> two for i, two in zip(keep, twos)]), f.grid * len(keep) + sum(twos)
    cut = max(size.bit_length() - 400, 0)
    size, scale = (size >> cut) | (1 if size & ((1 << cut) - 1) else 0), scale + cut
    scale = min(max(scale, -3000), 3000)  # far beyond every type, on either side
    exact = size * power(scale)
    slack = PROD_SLACK * power(units_of(result, floor_log2(exact)))
    sign = -1 if negative else 1
    ends = [order(result, rounded(result, sign * (exact + side * slack)) or int(negative) << (SIZES[result] * 8 - 1))
            for side in (-1, 1)]
    return ("between", result, min(ends), max(ends))


def fast_two_sum(a, b):
    s = a + b
    return s, b - (s - a)


def prod_join(x, y):
    """(h, l, exponent) of two, with h in [1, 2) again. The error of h·h' is found in fractions."""
    (h, l, e), (g, k, d) = x, y
    p = h * g
    u = float(Fraction(h) * Fraction(g) - Fraction(p)) + (h * k + l * g)
    s, r = fast_two_sum(p, u)
    rise = math.frexp(s)[1] - 1
    return math.ldexp(s, -rise), math.ldexp(r, -rise), e + d + rise


def prod_tree(dtype, raw):
    """The state of a product of floats as docs/NUMERICS.md builds it: NaNs, zeros, infinities, sign, h, l, exponent."""
    f = floats(dtype, raw)
    counts, negative, leaves = {"nan": 0, "zero": 0, "inf": 0}, 0, []
    for i, kind in enumerate(f.kind):
        kind = kind.lstrip("+-") if kind != "num" else "num" if f.unit[i] else "zero"
        if kind != "num":
            counts[kind] += 1
            leaves.append((1.0, 0.0, 0))
        else:
            lead = abs(f.unit[i]).bit_length() - 1
            leaves.append((abs(f.unit[i]) / (1 << lead), 0.0, lead + f.grid))
        if kind in ("num", "inf"):
            negative ^= f.bits[i] >> (f.width - 1)
    blocks = []
    for start in range(0, len(leaves), 4096):
        block = leaves[start:start + 4096]
        columns = block[:256]
        for at in range(256, len(block)):
            columns[at % 256] = prod_join(columns[at % 256], block[at])
        columns += [(1.0, 0.0, 0)] * (256 - len(columns))
        while len(columns) > 1:
            half = len(columns) // 2
            columns = [prod_join(columns[c], columns[c + half]) for c in range(half)]
        blocks.append(columns[0])
    while len(blocks) > 1:
        blocks = [prod_join(*blocks[b:b + 2]) if b + 1 < len(blocks) else blocks[b] for b in range(0, len(blocks), 2)]
    h, l, e = blocks[0] if blocks else (1.0, 0.0, 0)
    return "%d %d %d %d %s %s %d" % (counts["nan"], counts["zero"], counts["inf"], negative,
                                     struct.pack(">d", h).hex(), struct.pack(">d", l).hex(), e)


def answer_float(op, dtype, raw, nan, result, ddof):
    f = floats(dtype, raw)
    n = len(f.bits)
    keep = [i for i in range(n) if f.kind[i] != "nan"]
    count_nan = n - len(keep)
    seen = n if nan == "propagate" else len(keep)
    u64 = lambda v: ("value", "u64", v.to_bytes(8, "little"), b"")
    boolean = lambda v: ("value", "bool", bytes([int(v)]), b"")
    nonzero = sum(1 for i in keep if f.kind[i] != "num" or f.unit[i] != 0) + (count_nan if nan == "propagate" else 0)
    if op == "count":
        return u64(seen)
    if op == "count_nan":
        return u64(count_nan)
    if op == "count_inf":
        return u64(sum(1 for kind in f.kind if kind in ("+inf", "-inf")))
    if op == "count_nonzero":
        return u64(nonzero)
    if op == "any":
        return boolean(nonzero > 0)
    if op == "all":
        return boolean(nonzero == seen)
    if op in ("min", "max", "argmin", "argmax"):
        return float_extremum(op, f, dtype, n, nan, keep)
    poisoned = nan == "propagate" and count_nan > 0
    if op == "ptp":
        result = result or "f64"
        if poisoned:
            return float_result(result, nan_bits(result))
        if not keep:
            return ("error", "INVALID_ARGUMENT", op)
        if any(f.kind[i] != "num" for i in keep):
            same = len({f.kind[i] for i in keep}) == 1
            return float_result(result, nan_bits(result) if same else inf_bits(result, False))
        units = [f.unit[i] for i in keep]
        return float_result(result, rounded(result, (max(units) - min(units)) * power(f.grid)))
    pinf, ninf = "+inf" in f.kind, "-inf" in f.kind
    if op == "norminf":
        if poisoned:
            return ("value", dtype, pack(dtype, nan_bits(dtype)), b"")
        mask = (1 << (f.width - 1)) - 1
        return ("value", dtype, pack(dtype, max((f.bits[i] & mask for i in keep), default=0)), b"")
    result = result or "f64"
    if poisoned:
        return float_result(result, nan_bits(result))
    numbers = [f.unit[i] for i in keep]
    unit = power(f.grid)
    if op in SUMS or op in CLOSED:
        which = CLOSED[op][0] if op in CLOSED else op
        exponent, magnitude = SUMS[which]
        signed = exponent % 2 == 1 and not magnitude
        if signed and pinf and ninf:
            return float_result(result, nan_bits(result))
        if pinf or ninf:
            return float_result(result, inf_bits(result, signed and ninf))
        total = power_sum(which, numbers) * unit ** exponent
        return float_result(result, closed(op, total, seen, result) if op in CLOSED else rounded(result, total))
    if op == "prod":
        return prod_float(f, keep, result)
    if op in ("var", "std"):
        if pinf or ninf or seen <= ddof:
            return float_result(result, nan_bits(result))
        v = variance(seen, sum(numbers) * unit, sum(v * v for v in numbers) * unit * unit, ddof)
        return float_result(result, rounded(result, v) if op == "var" else rounded_root(result, v))
    raise ValueError(op)


def exact(op, dtype, raw):
    """One of SUMS, of the finite elements, as a fraction."""
    if dtype in INTS:
        x, unit = integers(dtype, raw), Fraction(1)
    else:
        f = floats(dtype, raw)
        x, unit = f.unit, power(f.grid)
    return power_sum(op, x) * unit ** SUMS[op][0]


P = 2 ** 61 - 1
ROOTS = (0x0487ed5110b4612c, 0x16fc2a2c515da557)


@functools.lru_cache(maxsize=4)
def powers(root, count):
    found = [1] * count
    for k in range(1, count):
        found[k] = found[k - 1] * root % P
    return found


def digest(raw, at=0):
    """The residues of bytes that begin at byte `at` of an array, ."""
    raw = bytes(at % 4) + raw
    raw += bytes(-len(raw) % 4)
    words_of = struct.unpack("<%dI" % (len(raw) // 4), raw)
    count = 1 << max(4, len(words_of).bit_length())
    return [sum(map(int.__mul__, words_of, powers(root, count))) * pow(root, at // 4, P) % P for root in ROOTS]


def answer(op, dtype, raw, nan="propagate", result=None, ddof=0, overflow="error"):
    if op == "digest":
        if nan == "skip":
            return ("error", "INVALID_ARGUMENT", "op digest is of all bytes")
        return ("value", "digest", struct.pack("<3Q", *digest(raw), len(raw)), b"")
    if dtype in INTS:
        return answer_int(op, dtype, raw, result, ddof, overflow)
    return answer_float(op, dtype, raw, nan, result, ddof)
