"""The types of cured.torch. docs/PYTHON.md is the manual."""
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from . import Nan, Result

def total_norm(tensors: torch.Tensor | Iterable[torch.Tensor], ord: float = 2, dtype: torch.dtype | None = None,
               group: Any = None) -> torch.Tensor: ...
def clip_grad_norm_(parameters: torch.Tensor | Iterable[torch.Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None, *, group: Any = None) -> torch.Tensor: ...
def stats(module_or_state_dict: torch.nn.Module | Mapping[str, Any] | Iterable[tuple[str, torch.Tensor]], *, nan: Nan = "skip",
          ddof: int = 0) -> dict[str, Result]: ...
def digest(model: torch.nn.Module | torch.Tensor | Mapping[str, Any] | Iterable[tuple[str, torch.Tensor]], group: Any = None) -> Any: ...
