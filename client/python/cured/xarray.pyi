"""The types of cured.xarray. docs/ARRAYS.md is the manual."""
from collections.abc import Hashable, Iterable
from typing import Any

from . import Dtype, Method, Ops, Result

class Reductions:
    """The accessor da.cured. Each op is a method, too: of dim and the options of reduce."""
    def __init__(self, array: Any) -> None: ...
    def reduce(self, ops: Ops, dim: Hashable | Iterable[Hashable] | None = None, *, skipna: bool | None = None, keepdims: bool = False,
               keep_attrs: bool | None = None, where: Any = None, **options: Any) -> Result: ...
    def quantile(self, q: Any, dim: Hashable | Iterable[Hashable] | None = None, *, method: Method = "linear", skipna: bool | None = None,
                 keepdims: bool = False, keep_attrs: bool | None = None, where: Any = None, dtype: Dtype = None) -> Any: ...
    def __getattr__(self, op: str) -> Any: ...
