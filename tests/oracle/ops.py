"""The ops that there are, as their table has them (kernels/core/op.def), so that tests ask for all. What each answers, only the oracle
knows."""
import os
import re

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernels", "core", "op.def")
ROW = re.compile(r'^CR_OP\(\w+, (\d+), "(\w+)", (\w+), (\w+), (\w+), (\w+), (\w+),', re.M)

with open(TABLE, encoding="utf-8") as table:
    ALL = [(name, int(number), term, result) for number, name, term, _, _, result, _ in ROW.findall(table.read())]
# By rank: they take several reads, and have no partial. No other list has them.
RANKED = {name: number for name, number, term, _ in ALL if term in ("MIDDLE", "QUANTILE")}
# Of two arrays; likewise.
PAIRS = {name: number for name, number, term, _ in ALL if term in ("INNER", "APART", "WEIGHTED")}
ROWS = [row for row in ALL if row[0] not in RANKED and row[0] not in PAIRS]
IDS = {name: number for name, number, _, _ in ROWS}
BITS = [name for name, _, term, _ in ROWS if term.startswith("BITS_")]  # of integers and bool only
EXACT = [name for name, _, _, result in ROWS if result == "EXACT"]  # they take every type as result_dtype
EXACT_SUMS = [name for name, _, term, _ in ROWS if name in EXACT and term != "PRODUCT"]
WHOLE = [name for name, _, _, result in ROWS if result == "RESIDUES"]  # of all bytes, at their places: they skip no NaN
FLOAT = [name for name, _, _, result in ROWS if result == "FLOAT"]  # they take floats
