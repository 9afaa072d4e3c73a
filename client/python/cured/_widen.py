"""Partials of one type as partials of a wider one, exactly: arrays of several types in a list, and ranks of several types, are one
array of the widest.

A sum's limbs count units of its type's grid (docs/PARTIALS.md). A wider type's grid is finer by a power of two, so that its limbs are
those of the same number, shifted. Extrema are elements, which are widened themselves.
"""
import struct
from array import array

from ._cured import from_linear

FLOATS = {"f16": (4, 5, 24), "bf16": (11, 20, 149), "f32": (11, 20, 149), "f64": (68, 134, 1074)}  # limbs of Σx, of Σx²; grid 2^-g
INTEGER = (5, 7, 0)
CODES = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}
POWERS = ((1, 1), (2, 1), (4, 2))  # families of sums: bit, power of the elements
EXTREMA, COUNTS = 8, 16
SPECIALS = 3  # NaNs, +inf, -inf behind each sum of floats
SIGN = 2**63
INTEGERS = ["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"]
NO_LINEAR_FORM = ("argmin", "argmax", "prod", "bit_and", "bit_or", "bit_xor")


def _span(dtype):
    """The least and the greatest integer of a type."""
    if dtype == "bool":
        return 0, 1
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def common(dtypes):
    """The narrowest type that holds all elements of these. TypeError: there is none."""
    names = sorted(set(dtypes))
    if len(names) == 1:
        return names[0]
    floats = [name for name in names if name in FLOATS]
    if len(floats) not in (0, len(names)):
        raise TypeError("the list has arrays of %s: floats and integers are not one array, because an integer may have no float of "
                        "its value: cast them" % ", ".join(names))
    if floats:
        return "f64" if "f64" in names else "f32"
    low, high = min(_span(name)[0] for name in names), max(_span(name)[1] for name in names)
    for name in INTEGERS:
        if _span(name)[0] <= low and high <= _span(name)[1]:
            return name
    raise TypeError("the list has arrays of %s: they are not one array, because no type holds all of their elements: cast them"
                    % ", ".join(names))


def limbs_of(dtype, power):
    return FLOATS.get(dtype, INTEGER)[power - 1]


def _shifted(limbs, by, count):
    """The number of these limbs, times 2^by, in so many limbs: the last one has the sign."""
    number = 0
    for limb in reversed(limbs):
        number = (number << 32) + limb
    digits = (number << by).to_bytes(4 * count, "little", signed=True)
    out = list(struct.unpack("<%dI" % count, digits))
    out[-1] -= 2**32 if out[-1] >= 2**31 else 0
    return out


def _element(key, dtype):
    """The value that a key stands for."""
    if dtype not in FLOATS:
        return key + _span(dtype)[0]
    bits = 16 if dtype in ("f16", "bf16") else int(dtype[1:])
    top = 1 << (bits - 1)
    raw = key ^ top if key & top else key ^ (2 * top - 1)
    if dtype == "bf16":
        raw, dtype = raw << 16, "f32"
    whole, real = CODES[dtype]
    return struct.unpack(real, struct.pack(whole, raw))[0]


def _key(value, dtype):
    if dtype not in FLOATS:
        return value - _span(dtype)[0]
    whole, real = CODES[dtype]
    raw = struct.unpack(whole, struct.pack(real, value))[0]
    top = 1 << (int(dtype[1:]) - 1)
    return raw ^ (2 * top - 1) if raw & top else raw ^ top


def _maxima(numbers, dtype, wide):
    """The greatest element's key, and the complement of the least one's."""
    numbers = list(numbers)
    if numbers and numbers[0]:
        numbers[2] = _key(_element(numbers[2] + SIGN, dtype), wide) - SIGN
        numbers[3] = (_key(_element(2**64 - 1 - (numbers[3] + SIGN), dtype), wide) ^ (2**64 - 1)) - SIGN
    return numbers


def families_of(partial):
    return int.from_bytes(bytes(partial)[4:8], "little")


def linear(partial, wide):
    """(numbers that add up, numbers of which the greatest counts): the linear form of a partial, as if its elements had the type
    `wide`, which holds them all."""
    dtype, numbers, families = partial.dtype, partial.linear().tolist(), families_of(partial)
    maxima = partial.linear_max().tolist()
    if dtype == wide:
        return numbers, maxima
    out, at, specials = numbers[:1], 1, SPECIALS if dtype in FLOATS else 0
    finer = FLOATS.get(wide, INTEGER)[2] - FLOATS.get(dtype, INTEGER)[2]
    for bit, power in POWERS:
        if families & bit:
            end = at + limbs_of(dtype, power)
            out += _shifted(numbers[at:end], power * finer, limbs_of(wide, power))
            out += numbers[end:end + specials]
            at = end + specials
    return out + numbers[at:], _maxima(maxima, dtype, wide)


def _read(numbers, maxima, dtype, ops):
    return from_linear(array("q", numbers), dtype, ops, array("q", maxima) if maxima else None)


def unplaced(partial, ops):
    """The partial without its position."""
    return _read(partial.linear().tolist(), partial.linear_max().tolist(), partial.dtype, ops)


def widened(partial, wide, ops):
    """A partial without a position of the same elements in the type `wide`."""
    return partial if partial.dtype == wide else _read(*linear(partial, wide), wide, ops)
