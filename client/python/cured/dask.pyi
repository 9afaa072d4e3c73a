"""The types of cured.dask. docs/CLUSTER.md is the manual."""
from typing import Any

from . import Axis, Dtype, Method, Nan, Ops, Overflow, Result

def reduce(x: Any, ops: Ops, axis: Axis = None, *, keepdims: bool = False, dtype: Dtype = None, ddof: int = 0,
           nan: Nan = "propagate", overflow: Overflow = "error", where: Any = None, keys: Any = None, groups: int | None = None,
           drop: bool = False, min_count: int = 0, second: Any = None, split_every: int = 16, address: str | None = None) -> Result | Any: ...
def quantile(x: Any, q: Any, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False, dtype: Dtype = None,
             nan: Nan = "propagate", where: Any = None, split_every: int = 16, address: str | None = None) -> Any: ...
def __getattr__(op: str) -> Any: ...  # each op: of x, an axis, and the options of reduce; dot(x, b), average(x, axis, weights); nansum and the like
