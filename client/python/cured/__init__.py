"""cured: exact reductions of arrays: sums, means, extrema, norms. See docs/PYTHON.md.

    >>> import cured
    >>> cured.sum(a)                    # the true sum, rounded once
    >>> cured.reduce(a, ["mean", "std"], axis=0)
"""
import builtins as _builtins
import importlib as _importlib

from ._cured import *  # noqa: F403: one function for each op of the extension
from ._cured import __version__  # noqa: F401
from ._bins import bincount, histogram  # noqa: F401
from ._nan import (minmax, nanargmax, nanargmin, nanmax, nanmean, nanmedian, nanmin, nanpercentile, nanprod,  # noqa: F401
                   nanquantile, nanstd, nansum, nanvar, percentile)
from ._pairs import average, vecdot  # noqa: F401
from . import _methods  # noqa: F401
from ._linear import from_linear, linear  # noqa: F401
from ._lists import reduce_each  # noqa: F401
from ._parts import reduce_parts  # noqa: F401
from ._result import Result, Results  # noqa: F401
from ._weights import weights  # noqa: F401

# What is loaded when it is asked for, because asyncio or NumPy comes with it: the file, and the name there; None: the file itself.
_LATER = {"AsyncClient": ("._async", "AsyncClient"), "Search": ("._search", "Search"), "count_part": ("._search", "count_part"),
          "column": ("._arrow", "Column"), "array_api": (".array_api", None)}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError("module 'cured' has no attribute '%s'" % name)
    file, own = _LATER[name]
    module = _importlib.import_module(file, __name__)
    return module if own is None else getattr(module, own)


def __dir__():
    return sorted({*globals(), *_LATER})


# `from cured import *` leaves Python's own names alone: sum, min, max, any, all stay what they are.
__all__ = sorted(name for name in {*globals(), *_LATER} if not name.startswith("_") and not hasattr(_builtins, name))
