"""cured: exact reductions of arrays: sums, means, extrema, norms. See docs/PYTHON.md.

    >>> import cured
    >>> cured.sum(a)                    # the true sum, rounded once
    >>> cured.reduce(a, ["mean", "std"], axis=0)
"""

from ._cured import *  # noqa: F403: one function for each op of the extension
from ._cured import __version__  # noqa: F401
from ._lists import reduce_each  # noqa: F401
from ._parts import reduce_parts  # noqa: F401
from ._result import Result  # noqa: F401
from ._weights import weights  # noqa: F401


def __getattr__(name):
    if name == "AsyncClient":  # asyncio is not loaded for those who do not ask for it
        from ._async import AsyncClient
        return AsyncClient
    raise AttributeError("module 'cured' has no attribute '%s'" % name)
