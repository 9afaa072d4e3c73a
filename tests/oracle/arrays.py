"""Arrays to test with: one of many distributions, drawn from a random.Random. make(r, dtype) gives (name, bytes)."""

import struct

import oracle


def length(r):
    k = r.random()
    if k < 0.06:
        return r.choice([0, 1, 2])
    if k < 0.60:
        return r.randint(1, 70)
    if k < 0.95:
        return r.randint(70, 700)
    if k < 0.99:
        return r.randint(700, 6000)
    return r.randint(6000, 40000)


def pack(dtype, bits):
    return struct.pack("<%d%s" % (len(bits), oracle.CODES[oracle.SIZES[dtype]]), *bits)


class Kit:
    """Bit patterns of one float type."""

    def __init__(self, r, dtype):
        self.r = r
        _, self.mantissa, exponent = oracle.FLOATS[dtype]
        self.top = (1 << exponent) - 1
        self.bias = self.top >> 1
        self.sign = 1 << (self.mantissa + exponent)

    def number(self, low, high, negative=None):
        """A finite value with an exponent field in [low, high], cut to what the type has."""
        low, high = max(low, 0), min(high, self.top - 1)
        field = self.r.randint(min(low, high), high)
        sign = self.r.getrandbits(1) if negative is None else negative
        return sign * self.sign | field << self.mantissa | self.r.getrandbits(self.mantissa)

    def around(self, spread):
        return self.number(self.bias - spread, self.bias + spread)

    def normal(self):
        lead = 0
        while lead < self.bias - 1 and self.r.getrandbits(1):
            lead += 1
        return self.number(self.bias + 1 - lead, self.bias + 1 - lead)

    def power(self, exponent, negative=0):
        """±2^exponent, or a neighbour the type has."""
        field = exponent + self.bias
        if field >= 1:
            return negative * self.sign | min(field, self.top - 1) << self.mantissa
        return negative * self.sign | 1 << max(0, self.mantissa - 1 + field)

    def special(self):
        k = self.r.random()
        if k < 0.5:
            payload = self.r.randint(1, (1 << self.mantissa) - 1)
            return self.r.getrandbits(1) * self.sign | self.top << self.mantissa | payload
        return self.r.getrandbits(1) * self.sign | self.top << self.mantissa


def ties(kit, r):
    """A few values whose sum lies on, or one smallest step beside, the middle between two results of some type."""
    out = []
    for _ in range(r.randint(1, 3)):
        e = r.randint(-kit.bias + 60, kit.bias - 1) if kit.bias > 100 else r.randint(-13, 14)
        out.append(kit.power(e) | r.getrandbits(kit.mantissa))
        for mantissa in (52, 23, 10, 7):
            if r.random() < 0.5:
                out.append(kit.power(e - mantissa - 1, r.getrandbits(1)))
        if r.random() < 0.5:
            out.append(r.getrandbits(1) * kit.sign | 1)
        if r.random() < 0.3:
            out.append(r.getrandbits(1) * kit.sign)
    return out


# Binades that the anchors of a type span, for sums and for squares: arrays are built to end just inside or outside.
WINDOWS = {"f16": [28], "bf16": [44, 70, 96], "f32": [23, 24, 26, 27, 28, 54, 80],
           "f8_e4m3": [6], "f8_e5m2": [12], "f64": [20, 21, 25, 41, 42, 43, 51, 103]}


def window_array(r, dtype):
    """Long runs of the largest significands, with a few of the smallest exponents a window takes, or one fewer or more;
    then another run whose exponents have moved. What a fold has settled on for one run is just wrong for the next."""
    kit, out = Kit(r, dtype), b""
    block = 16384 // oracle.SIZES[dtype]
    high = r.randint(1, kit.top - 1)
    full = (1 << kit.mantissa) - 1
    alike = r.random() < 0.4
    random_digits = r.random() < 0.3  # then some of the smallest in every step of a fold
    window = r.choice(WINDOWS[dtype])
    for turn in range(r.choice([1, 2, 2, 4])):
        # The first run fills a window exactly, most often, so that the next cannot hide in its slack.
        low = max(high - window + (1 if turn == 0 and r.random() < 0.7 else r.choice([0, 1, 2, 3])), 0)
        # Signs in turn cancel, so that what is lost at the low end cannot hide below the result's last bit.
        run = [(i & 1) * (not alike) * kit.sign | high << kit.mantissa | full
               for i in range(r.choice([block, block // 2, 100]))]
        if random_digits:
            run = [(low << kit.mantissa if r.random() < 0.1 else x & ~full) | r.getrandbits(kit.mantissa) for x in run]
        at = r.randrange(len(run))
        small = r.getrandbits(1) * kit.sign | low << kit.mantissa | 1
        if alike or at == 0:
            run[at] = small
        else:
            run[at] = run[at - 1] = small
        out += pack(dtype, run) * r.choice([1, 2, 5 if r.random() < 0.5 else 20])
        k = r.random()
        move = 0 if k < 0.35 else r.choice([1, 2]) if k < 0.8 else r.choice([ 3, 5, 6, 7, 8, 12, 13, 14, 20, 24, 25, 26, 27, 50, 51, 52, 53, 79, 80])
        high = min(max(high + r.choice([-move, move]), 1), kit.top - 1)
    return "window", out[:160000]


def float_array(r, dtype):
    if r.random() < 0.1:
        return window_array(r, dtype)
    kit, n = Kit(r, dtype), length(r)
    width = 8 * oracle.SIZES[dtype]
    names = ["normal", "spread10", "spread30", "hundreds", "bits", "denormal", "cancel", "ties", "overflow", "mix",
             "zeros", "constant", "outliers", "blocks", "nans", "edge"]
    name = r.choice(names)
    several = lambda draw: [draw() for _ in range(n)]
    if name == "normal":
        x = several(kit.normal)
    elif name == "spread10":
        x = several(lambda: kit.around(33))
    elif name == "spread30":
        x = several(lambda: kit.around(100))
    elif name == "hundreds":
        x = several(lambda: kit.around(r.choice([200, 350, 500])))
    elif name == "bits":
        return name, r.randbytes(n * width // 8)
    elif name == "denormal":
        x = several(lambda: kit.number(0, r.choice([0, 1, 2])))
    elif name == "cancel":
        half = [kit.around(r.choice([5, 60, 500])) for _ in range(n // 2)]
        x = half + [b ^ kit.sign for b in half]
        x += [kit.number(0, kit.bias) for _ in range(r.randint(0, 2))]
        r.shuffle(x)
    elif name == "ties":
        x = ties(kit, r)
        r.shuffle(x)
    elif name == "overflow":
        top = kit.top - 1
        x = several(lambda: kit.number(top - r.choice([0, 0, 1, 30]), top, negative=r.random() < 0.3))
        if r.random() < 0.5:  # the largest value and about half a unit
            most = (kit.top << kit.mantissa) - 1
            x = [most, kit.power(kit.bias - kit.mantissa - 1), r.getrandbits(1) * kit.sign | r.getrandbits(2)]
    elif name == "mix":
        rate = r.choice([0.01, 0.2, 0.9])
        x = several(lambda: kit.special() if r.random() < rate else kit.around(20))
    elif name == "zeros":
        x = several(lambda: r.getrandbits(1) * kit.sign if r.random() < 0.95 else kit.around(3))
    elif name == "constant":
        value = r.choice([kit.normal(), kit.special(), 0, kit.sign, kit.power(kit.bias), 1])
        x = [value] * n
    elif name == "outliers":
        x = several(kit.normal)
        for _ in range(r.randint(1, 4)):
            if n:
                x[r.randrange(n)] = kit.number(0, kit.top - 1)
    elif name == "blocks":  # the spread changes every few thousand elements
        x = []
        while len(x) < n:
            draw = r.choice([kit.normal, lambda: kit.around(33), lambda: kit.around(600), lambda: kit.number(0, 1),
                             lambda: kit.sign, kit.special])
            middle = [draw() for _ in range(64)]
            x += r.choices(middle, k=r.choice([64, 1000, 4096, 9000]))
        x = x[:n]
    elif name == "nans":
        x = several(lambda: kit.sign - 1 if r.random() < 0.5 else kit.normal())
    else:  # edge: exact powers of two at a window's ends
        at = r.randint(1, kit.top - 1)
        x = several(lambda: r.getrandbits(1) * kit.sign |
                    min(max(at + r.choice([0, 27, 28, 50, 51, 52, 79, 80, 102, 103]), 0), kit.top - 1) << kit.mantissa)
    return name, pack(dtype, x)


def int_array(r, dtype):
    size, signed = oracle.INTS[dtype]
    n, bits = length(r), 8 * size
    name = r.choice(["bits", "small", "extremes", "most", "least", "sparse", "constant", "few"])
    top = 1 << (bits - 1)
    if name == "bits":
        return name, r.randbytes(n * size)
    if name == "small":
        x = [r.randint(-3, 3) % (2 * top) for _ in range(n)]
    elif name == "extremes":
        x = [r.choice([0, 1, top - 1, top, 2 * top - 1]) for _ in range(n)]
    elif name == "most":
        x = [top - 1 if signed else 2 * top - 1] * n
    elif name == "least":
        x = [top if signed else 0] * n
    elif name == "sparse":
        x = [r.getrandbits(bits) if r.random() < 0.02 else 0 for _ in range(n)]
    elif name == "constant":
        x = [r.getrandbits(bits)] * n
    else:
        x = [r.choice([1, 2, 3, 2 * top - 1]) for _ in range(r.randint(0, 66))]
    return name, pack(dtype, x)


def make(r, dtype):
    name, raw = int_array(r, dtype) if dtype in oracle.INTS else float_array(r, dtype)
    # Half of the arrays of 20,000 elements and more are made by repeating a short one: cheap to draw, as dear to fold.
    if raw and r.random() < 0.01:
        raw = raw * max(1, 300000 // len(raw))
    return name, raw
