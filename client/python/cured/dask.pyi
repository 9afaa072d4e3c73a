"""The types of cured.dask. docs/CLUSTER.md is the manual."""
from typing import Any

from . import Axis, Dtype, Nan, Ops, Overflow, Result

def reduce(x: Any, ops: Ops, axis: Axis = None, *, keepdims: bool = False, dtype: Dtype = None, ddof: int = 0,
           nan: Nan = "propagate", overflow: Overflow = "error", split_every: int = 16, address: str | None = None) -> Result | Any: ...
