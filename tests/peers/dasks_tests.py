#!/usr/bin/python3
"""Dask's own tests of reductions (dask/array/tests/test_reductions.py) ask cured.dask by a shim. Every failure must have a reason below;
others fail this test. It prints how many pass.

The shim gives answers NumPy's types, because cured's are exact, and f64 where NumPy's are of the array's type."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
try:
    import dask.array as da
    import pytest
except ImportError as error:
    print("skipped: %s (packages python3-dask and python3-pytest)" % error)
    sys.exit(77)
from support import cured, numpy as np  # noqa: E402

import cured.dask as exact  # noqa: E402

FILE = os.path.join(os.path.dirname(da.__file__), "tests", "test_reductions.py")
OPS = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax")
SKIPPING = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanargmin", "nanargmax")
# (what the test is called, what it says): regular expressions of reasons.
REASONS = (
    ("cured has no objects", "test_nan_object|test_object_reduction", "dtype object is not reduced"),
    ("chunks of unknown size are refused, in other words than Dask's", "unknown|empty_chunk", "unknown|zero-size array"),
    ("an index along several axes is answered", "test_arg_reductions", "DID NOT RAISE .*TypeError"),
    ("the graph has other tasks, and other names", "test_tree_reduce_(depth|set_options)|test_reduction_names", "assert"),
    ("of NaNs alone an extremum raises", "test_reductions_2D_nans", "only NaNs has no value"),
    ("a product of integers that does not fit raises", "test_reductions_2D", "the prod does not fit i64"),
    ("NumPy makes integers of floats before it multiplies them, and wraps", r"test_reductions_2D\[f4\]", "differ by more than"),
    ("an answer without axes is an array, and no scalar", "test_0d_array", "numpy.ndarray"),
)


def shim(name):
    op = re.sub("^nan", "", name)
    original = getattr(np, name)

    def asked(a, axis=None, dtype=None, keepdims=False, ddof=0, split_every=None, out=None):
        x = da.asanyarray(a)
        options = {"nan": "skip"} if name in SKIPPING and x.dtype.kind == "f" else {}
        if op in ("var", "std"):
            options["ddof"] = ddof
        if isinstance(split_every, int):
            options["split_every"] = max(2, split_every)
        kind = np.asarray(original(np.ones((1,) * x.ndim, x.dtype))).dtype if dtype is None else np.dtype(dtype)
        axes = tuple(range(x.ndim)) if axis is None else axis
        found = exact.reduce(x, op, axes, keepdims=True, **options)[op].astype(kind)
        if not keepdims:
            gone = axes if isinstance(axes, tuple) else (axes,)
            found = found.squeeze(axis=tuple(k % x.ndim for k in gone))
        if out is not None:
            from dask.array.core import handle_out
            return handle_out(out, found)
        return found
    asked.__name__ = name
    return asked


class Watch:
    def __init__(self):
        self.passed, self.reasons, self.unknown = 0, collections.Counter(), []

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        if not report.failed:
            return
        test, says = report.nodeid.rpartition("::")[2], getattr(getattr(report.longrepr, "reprcrash", None), "message", str(report.longrepr))
        for reason, tests, words in REASONS:
            if re.search(tests, test) and re.search(words, says):
                self.reasons[reason] += 1
                return
        self.unknown.append("%s: %s" % (test, says.split("\n")[0]))


def main():
    for name in OPS + SKIPPING:
        function = shim(name)
        setattr(da, name, function)
        setattr(da.reductions, name, function)
    watch = Watch()
    pytest.main([FILE, "-q", "-p", "no:cacheprovider", "--tb=line", "--no-summary", "--disable-warnings", "-o", "addopts=", "--show-capture=no"],
                plugins=[watch])
    failed = sum(watch.reasons.values()) + len(watch.unknown)
    print("reductions: %d of Dask's tests pass of %d; the others: %s" % (watch.passed, watch.passed + failed, dict(watch.reasons)))
    print("\n".join("no reason is known: " + line for line in watch.unknown))
    return bool(watch.unknown) or watch.passed == 0


if __name__ == "__main__":
    sys.exit(main())
