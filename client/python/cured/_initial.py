"""A first value (initial=) with an exact integer answer. Integers here have no width, so nothing wraps unless asked."""

RANGES = {"bool": (0, 1)}
for bits in (8, 16, 32, 64):
    RANGES["u%d" % bits] = (0, 2**bits - 1)
    RANGES["i%d" % bits] = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def combine(arguments):
    joining, value, initial, kind, wrap = arguments
    initial = int(initial.__index__())  # of a bool, too
    if value is None:
        return bool(initial) if kind == "b" else initial
    if joining == "add":
        return value + initial
    if joining == "multiply":
        return fitted(value * initial, kind == "i", wrap)
    return type(value)(min(value, initial) if joining == "least" else max(value, initial))


def fitted(product, signed, wrap):
    low, high = RANGES["i64" if signed else "u64"]
    if low <= product <= high:
        return product
    if not wrap:
        raise OverflowError("the product with initial is %d, which does not fit %s; overflow='wrap' wraps it" % (product, "int64" if signed else "uint64"))
    product %= 2**64
    return product - 2**64 if signed and product > high else product


def element(arguments):
    """The bytes of an answer as an element of the results' type."""
    value, dtype = arguments
    low, high = RANGES[dtype]
    if not low <= value <= high:
        raise OverflowError("the answer with initial is %d, which does not fit %s" % (value, dtype))
    size = 1 if dtype == "bool" else int(dtype[1:]) // 8
    return int(value).to_bytes(size, "little", signed=dtype[0] == "i")
