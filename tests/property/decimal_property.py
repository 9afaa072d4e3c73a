#!/usr/bin/env python3
"""decimal_property: numbers written out that are hard to round, read by decimal_driver, against Python's float(). Each goes by the quick
way and byte by byte, alone on its line and as a field among others, in pieces of many lengths.

usage: decimal_property.py DRIVER [--numbers N]
"""
import argparse
import decimal
import os
import random
import struct
import subprocess
import sys

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))
BATCH = 20000
POWERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "decimal-powers")
EXACT = decimal.Context(prec=1200, Emin=-9999, Emax=9999)


def any_double(rnd):
    """Of any exponent; every eighth is subnormal."""
    exponent = rnd.randrange(2047) if rnd.randrange(8) else 0
    return struct.unpack("<d", struct.pack("<Q", exponent << 52 | rnd.getrandbits(52)))[0]


def near(rnd):
    """A double whose exponent is small, as most are."""
    return struct.unpack("<d", struct.pack("<Q", (1023 + rnd.randrange(-70, 70)) << 52 | rnd.getrandbits(52)))[0]


def halfway(rnd):
    """The middle of two neighbours, to the last digit, or cut, or a little beside it."""
    bits = struct.unpack("<Q", struct.pack("<d", any_double(rnd) if rnd.randrange(2) else near(rnd)))[0]
    low, high = (struct.unpack("<d", struct.pack("<Q", b))[0] for b in (bits, bits + 1))
    if high == float("inf"):
        return repr(low)
    middle = EXACT.divide(EXACT.add(decimal.Decimal(low), decimal.Decimal(high)), 2)
    way = rnd.randrange(4)
    if way == 0:
        return "%e" % middle if rnd.randrange(20) == 0 else format(middle, "f") if rnd.randrange(2) else str(middle)
    if way == 1:
        digits = str(EXACT.scaleb(middle, -middle.adjusted())).replace("E", "e").rstrip("0")
        return digits + ("0" * rnd.randrange(30) + rnd.choice("0123456789") if "." in digits else "") + "e%d" % middle.adjusted()
    return str(decimal.Context(prec=rnd.choice((16, 17, 18, 19, 20, 21, 25, 40)), Emin=-9999, Emax=9999,
                               rounding=rnd.choice((decimal.ROUND_FLOOR, decimal.ROUND_CEILING))).plus(middle))


def digits(rnd):
    """Any digits, with a point somewhere and any exponent."""
    n = rnd.choice((1, 2, 5, 9, 16, 17, 18, 19, 20, 21, 30, rnd.randrange(1, 60)))
    text = "".join(rnd.choice("0123456789") for _ in range(n))
    if rnd.randrange(4) == 0:
        text = rnd.choice(("0" * rnd.randrange(25), "9" * rnd.randrange(1, 25), "1" + "0" * rnd.randrange(25))) + text
    if rnd.randrange(3):
        at = rnd.randrange(len(text) + 1)
        text = text[:at] + "." + text[at:]
    if rnd.randrange(3) == 0:
        text += rnd.choice("eE") + rnd.choice(("", "+", "-", "-0")) + str(rnd.choice((rnd.randrange(30), rnd.randrange(420), rnd.randrange(10**6))))
    return text


def integers(rnd):
    """Integers about 2^53 and the ends of i64, and beyond."""
    n = (1 << rnd.randrange(40, 130)) + rnd.randrange(-5, 6)
    return str(rnd.choice((n, n << 1, (n << 1) + 1, rnd.getrandbits(rnd.randrange(1, 80)))))


def five(rnd):
    """Products whose half-way cases are exact: few digits times a small power of ten."""
    return "%d%se%d" % ((rnd.getrandbits(53) << 1 | 1) * 5 ** rnd.randrange(0, 5), rnd.choice(("", ".0", ".")), rnd.randrange(-30, 30))


KINDS = [halfway, halfway, digits, digits, integers, five, lambda rnd: repr(any_double(rnd)), lambda rnd: repr(near(rnd)),
         lambda rnd: "%.*f" % (rnd.randrange(1, 25), rnd.gauss(0, 10 ** rnd.randrange(-6, 7))),
         lambda rnd: "%.*e" % (rnd.randrange(25), any_double(rnd))]
FIXED = ["0", "0.0", ".0", "0.", "0e0", "0e999999", "1e999999", "1e-999999", "1e23", "8.5e22", "9007199254740993", "9007199254740992.5",
         "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308",
         "2.2250738585072014e-308", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308",
         "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547"
         "851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168"
         "444365510704342711559699508093042880", "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "9" * 800 + "." + "9" * 800,
         "inf", "Infinity", "INF", "nan", "NaN", "1" + "0" * 4000]


def bits(value):
    return "%016x" % struct.unpack("<Q", struct.pack("<d", value))[0]


def run(driver, arguments, text):
    lines = subprocess.run([driver, *arguments], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    return lines[:-1], lines[-1]


def check(driver, numbers, rnd):
    """How many of the numbers came out otherwise than float() has them."""
    wanted = [bits(float(n)) for n in numbers]
    size = str(rnd.choice((1, 7, 4096, 262144))) if len(numbers) < 2000 else str(rnd.choice((4096, 65536, 262144)))
    lines = "\n".join(numbers) + rnd.choice(("", "\n"))
    fields = "".join("x%s, %s ,\"y\"\r\n" % (rnd.choice(("", "5")), n) for n in numbers)
    ways = [(("reals", size, "0"), lines), (("reals", size, "0", "none", "slowly"), lines), (("reals", size, "2", ","), fields)]
    wrong = 0
    for arguments, text in ways:
        found, end = run(driver, arguments, text)
        if end != "reals" or len(found) != len(wanted):
            print("decimal_property: %s gave %d values of %d: %s" % (arguments, len(found), len(wanted), end))
            return len(numbers)
        for number, is_, must in zip(numbers, found, wanted):
            if is_ != must:
                wrong += 1
                print("decimal_property: %s: %s is %s, must be %s" % (" ".join(arguments), number[:60], is_, must))
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--numbers", type=int, default=1000000)
    options = parser.parse_args()
    if subprocess.run([sys.executable, POWERS, "--check"]).returncode != 0:
        return 1
    rnd = random.Random(SEED)
    signed = [sign + n for n in FIXED for sign in ("", "-", "+")]
    wrong, done = check(options.driver, [n for n in signed if len(n) <= 4096], rnd), len(signed)
    while done < options.numbers and wrong < 20:
        count = min(BATCH, options.numbers - done)
        numbers = [rnd.choice(("", "", "-", "+")) + rnd.choice(KINDS)(rnd).lstrip("+-") for _ in range(count)]
        wrong += check(options.driver, numbers, rnd)
        done += count
    print("decimal_property: seed %d, %d numbers, %d wrong" % (SEED, done, wrong))
    return wrong != 0


sys.exit(main())
