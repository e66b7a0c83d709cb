"""What several modules ask of their arguments before they use them."""

import math
from numbers import Integral, Real

import torch
from torch import Tensor


MOST = 2**31 - 1
"""The largest count: a table with more rows would fill the memory before torch refused it."""


def checked_count(name: str, value: object, least: int) -> int:
    """`value` as an int; ValueError if it is not a whole number of at least `least`, or is beyond `MOST`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")
    if value > MOST:
        raise ValueError(f"{name} must be at most {MOST}, not {value!r}")
    return int(value)


def check_positive(name: str, value: object) -> None:
    """ValueError if `value` is not a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value!r}")


def check_tokens(x: object, weight: Tensor) -> None:
    """ValueError if `x` is not (B, T, D) tokens that a layer with `weight` (..., D) can take."""
    if not isinstance(x, Tensor) or x.dim() != 3 or x.shape[-1] != weight.shape[-1]:
        raise ValueError(f"x must be (B, T, {weight.shape[-1]}), not {described(x)}")
    if x.device != weight.device:
        raise ValueError(f"x is on {x.device}, the weights are on {weight.device}")
    if x.dtype != weight.dtype and not (x.is_floating_point() and _autocast_is_on(x.device.type)):
        raise ValueError(f"x is {x.dtype}, the weights are {weight.dtype}")


def check_symbols(tokens: object, vocab_size: int) -> None:
    """ValueError unless `tokens` is (B, T) symbols of the vocabulary, 0 to ``vocab_size - 1``."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"tokens must be an integer tensor (B, T), not {described(tokens)}")
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocab_size:
        raise ValueError(f"tokens must lie in 0..{vocab_size - 1}, not in {int(tokens.min())}..{int(tokens.max())}")


def _autocast_is_on(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def described(thing: object) -> str:
    """What `thing` is, for the end of an error message."""
    if isinstance(thing, Tensor):
        return f"a {thing.dtype} tensor of shape {tuple(thing.shape)}"
    shape = getattr(thing, "shape", None)
    return type(thing).__name__ + (f" of shape {tuple(shape)}" if shape else "")
