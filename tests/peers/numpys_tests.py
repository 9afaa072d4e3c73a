#!/usr/bin/python3
"""NumPy's own tests of nan-functions, median, quantile, percentile, bincount, histogram, average and reduceat, and of plain sums, means, variances,
products, extrema and counts (numpys_plain.py), ask cured by a shim. Every failure must have a reason that docs/PYTHON.md names ("Beside NumPy's
own tests"); others fail this test. It prints how many pass.

The shim gives answers NumPy's types: floats that of the array, counts and indices int64. It asks NumPy for what cured.histogram has not
(density), and for reduceat along an axis or with indices that fall."""
import collections
import functools
import linecache
import os
import re
import sys

import numpys_plain  # before others call methods of arrays

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
try:
    import hypothesis  # noqa: F401: NumPy's tests want it
    import pytest
except ImportError as error:
    print("skipped: %s (packages python3-pytest and python3-hypothesis)" % error)
    sys.exit(77)
from support import cured, numpy as np  # noqa: E402
from cured._nan import _of_hundred  # noqa: E402

FOLDER = os.path.dirname(np.__file__)
FILES = {"nan-functions": ("lib/tests/test_nanfunctions.py", ""), "histogram": ("lib/tests/test_histograms.py", "TestHistogram and not Optim and not dd and not big_arrays"),
         "median, quantile, percentile": ("lib/tests/test_function_base.py", "Quantile or Percentile or Median"),
         "bincount": ("lib/tests/test_function_base.py", "Bincount"), "average": ("lib/tests/test_function_base.py", "TestAverage"), "reduceat": ("core/tests/test_ufunc.py", "reduceat")}
# (test, what it says): regular expressions of reasons, in the page's order.
REASONS = (
    ("types that cured lacks", "", r"dtype (complex256|float128|object|timedelta\S*) is not reduced|dtype float128 is not offered|unknown dtype \"e\"|is no array of NumPy's"),
    ("complex numbers have no order and no product", "", "complex numbers have no order|products of complex numbers are not answered"),
    ("other methods of quantiles", "", r"method: \"\w+\", must be linear"),
    ("NumPy's own answer is beside the true value", r"test_nanfunc_ddof\[nanstd-1d-[fF]\]", ""),
    ("no warnings", r"test_allnans|test_ddof_too_big|test_empty|test_ufunc_methods_floaterrors|test_nan_behavior",
     r"DID NOT WARN|, in: (assert_\(len\((w|sup\.log)\) == [123]\)|assert_\(w\[0\]\.category is RuntimeWarning\))$"),
    ("no warnings", r"TestStats::test_(ddof_too_big|empty|(mean|var|std)_where)$|TestNonarrayArgs::test_(mean|std|var)$|TestUfunc::test_sum$",
     r"DID NOT WARN|, in: (assert_\(len\(w\) > 0\)|assert_\(w\[0\]\.category is RuntimeWarning\)|assert_equal\(len\(w\), 2 \* overflow\))$"),
    ("NaNs alone have no extremum", "test_(allnans|result_values|nanmin|nanmax)|TestNanFunctions_ArgminArgmax", "only NaNs has no value|Regex pattern"),
    ("subclasses of arrays", "test_subclass", ""),
    ("quantiles of integers are float64", "test_quantile_preserve_int_type|test_percentile_out|test_linear_interpolation.linear", "float64|dtype"),
    ("one answer goes to no array with an axis", "test_api|test_scalar_q", "wrong number of dimensions"),
    ("out= of objects", "test_out_dtype_error", "TypeError not raised"),
    ("a result type of bool", "test_dtype_error", "takes a dtype of"),
    ("a number has no axis 0", "test_scalar$", "axis 0 is out of bounds for array of dimension 0"),
    ("bins narrower than floats lie apart, which NumPy 2 refuses, too", "test_object_array_of_0d", "some edges are the same"),
)
PLAIN = {"statistics": ("core/tests/test_multiarray.py", "TestStats or TestArgmax or TestArgmin or TestMinMax or (TestMethods and (prod or where)) or (TestBool and (sum or count))"),
         "functions of lists": ("core/tests/test_numeric.py", "(TestNonarrayArgs and (mean or sum or prod or ptp or std or var or count)) or (TestNonzero and count_nonzero) or all_any"),
         "sums": ("core/tests/test_ufunc.py", "test_sum"), "extrema": ("lib/tests/test_function_base.py", "TestAny or TestAll or TestAmax or TestAmin or TestPtp or TestProd")}
UFUNCS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}
SAVED = {name: getattr(np, name) for name in UFUNCS}


def typed(name, array, answer, given):
    """A number of Python as NumPy's scalar, and indices as NumPy's."""
    if name.startswith("nanarg"):
        return np.asarray(answer).astype(np.intp)[()]
    if not isinstance(answer, (complex, float, int)):
        return answer
    dtype = given.get("dtype", array.dtype.newbyteorder("=") if name in ("nanmin", "nanmax") else None)
    if dtype is None and array.dtype.kind == "u" and isinstance(answer, int):
        dtype = "u8"
    if dtype is not None and not isinstance(answer, complex):  # a variance of complex numbers is real
        dtype = np.empty(0, dtype).real.dtype
    return np.asarray(answer)[()] if dtype is None else np.dtype(dtype).type(answer)


def shim(name):
    original = getattr(np, name)
    function = getattr(cured, name)
    rounds = name not in ("nanmin", "nanmax", "nanargmin", "nanargmax")
    by_rank = re.sub("^nan", "", name) in ("median", "quantile", "percentile")
    code = original.__wrapped__.__code__

    @functools.wraps(original)
    def asked(*args, **options):
        given = dict(zip(code.co_varnames[:code.co_argcount], args), **options)
        given = {key: value for key, value in given.items() if value is not np._NoValue and key not in ("overwrite_input",)}
        given = {key: value for key, value in given.items() if value is not None or key == "axis"}
        array = np.asarray(given.pop("a"))
        if isinstance(given.get("axis"), list):
            given["axis"] = tuple(given["axis"])
        own = array.dtype.kind in "fc" and array.real.dtype.itemsize <= 8 and "out" not in given
        if rounds and own:
            given.setdefault("dtype", array.dtype.newbyteorder("="))
        if by_rank:
            axis, nan = given.pop("axis", None), "skip" if name.startswith("nan") else "propagate"
            q = given.pop("q", 0.5)
            q = _of_hundred(q) if name.endswith("percentile") else q
            answer = cured.quantile(array, q, axis, nan=nan, **given)
        else:
            answer = function(array, **given)
        return answer if "out" in given else typed(name, array, answer, given)
    return asked


def bincount(x, weights=None, minlength=0):
    answer = cured.bincount(x, weights, minlength)
    return answer if weights is None else np.asarray(answer, "f8")


def histogram(a, bins=10, range=None, density=None, weights=None):
    counts, edges = cured.histogram(a, bins, range, weights)
    return (counts / np.diff(edges) / counts.sum() if density else counts), edges


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a, weights = np.asarray(a), None if weights is None else np.asarray(weights)
    narrow = weights is not None and np.result_type(a, weights)
    dtype = narrow if narrow in ("f2", "f4") else None
    answer = cured.average(a, axis, weights, returned, keepdims=keepdims is True, dtype=dtype)
    return tuple(np.asarray(each)[()] for each in answer) if returned else np.asarray(answer, dtype)[()]


class Reducing:
    """A ufunc whose reduceat is cured's."""

    def __init__(self, ufunc, op):
        self._ufunc, self._op = ufunc, op

    def __getattr__(self, name):
        return getattr(self._ufunc, name)

    def __call__(self, *args, **options):
        return self._ufunc(*args, **options)

    def reduceat(self, a, indices, axis=0, dtype=None, out=None):
        array, starts = np.asarray(a), np.asarray(indices)
        if array.ndim != 1 or axis not in (0, -1) or (np.append(starts[1:], len(array)) <= starts).any():
            return self._ufunc.reduceat(a, indices, axis, dtype, out)
        answer = self._op(array, offsets=np.append(starts, len(array))).astype(array.dtype if dtype is None else dtype)
        if out is None:
            return answer
        out[...] = answer
        return out


class Watch:
    def __init__(self):
        self.passed, self.reasons, self.unknown = 0, collections.Counter(), []

    def pytest_runtest_setup(self, item):
        for name, op in UFUNCS.items() if "reduceat" in item.name else ():
            setattr(np, name, Reducing(SAVED[name], getattr(cured, op)))

    def pytest_runtest_teardown(self, item):
        for name, ufunc in SAVED.items():
            setattr(np, name, ufunc)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Beside what a failure says stands the line of the test that failed, because NumPy's assert_() says nothing."""
        report = (yield).get_result()
        at = [entry.lineno for entry in call.excinfo.traceback if entry.path == item.path] if call.excinfo else []
        report.line = ", in: " + linecache.getline(str(item.path), at[-1] + 1).strip() if at else ""

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        if not report.failed:
            return
        test, says = report.nodeid.rpartition("::")[2], getattr(getattr(report.longrepr, "reprcrash", None), "message", str(report.longrepr)) + report.line
        for reason, tests, words in REASONS:
            if re.search(tests, report.nodeid) and re.search(words, says):
                self.reasons[reason] += 1
                return
        self.unknown.append("%s: %s" % (test, says.split("\n")[0]))


def main():
    for name in ("nanmin", "nanmax", "nanargmin", "nanargmax", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmedian", "nanpercentile",
                 "nanquantile", "median", "quantile", "percentile"):
        setattr(np, name, shim(name))
    np.bincount, np.average = bincount, average
    np.lib.function_base.average = average
    np.histogram = np.lib.histograms.histogram = histogram
    unknown = []
    numpys_plain.switch.cured = cured
    for what, (path, only) in {**FILES, **PLAIN}.items():
        numpys_plain.switch.on = what in PLAIN
        watch = Watch()
        pytest.main([os.path.join(FOLDER, path), "-q", "-k", only, "-p", "no:cacheprovider", "--tb=line", "--no-summary", "--disable-warnings", "-o",
                     "addopts=", "--show-capture=no"], plugins=[watch])
        failed = sum(watch.reasons.values()) + len(watch.unknown)
        print("%s: %d of NumPy's tests pass of %d; the others: %s" % (what, watch.passed, watch.passed + failed, dict(watch.reasons)))
        unknown += watch.unknown
        if watch.passed == 0:
            unknown.append("%s: no test passed" % what)
    if numpys_plain.switch.asked < 2000:
        unknown.append("plain functions asked cured %d times only" % numpys_plain.switch.asked)
    print("\n".join("no reason is known: " + line for line in unknown))
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
