"""Encodings that are added to the tokens: a row of numbers for every position.

An encoding of this kind maps tokens `(B, T, D)` to tokens `(B, T, D)`. Those that act inside attention
instead are `posenc.attention.Position`: they map queries and keys to queries, keys and a bias.
Positions are numbered from 0. Layers follow the dtype and device of the tokens that they are given.
"""

import math
from numbers import Integral

import torch
from torch import Tensor, nn

from posenc._checks import checked_count, described

LAYOUTS = ("interleaved", "concat")
"""Where a pair keeps its two columns: side by side at 2i and 2i + 1, or at i and i + d/2."""


def frequencies(d_model: int, base: float = 10000.0) -> Tensor:
    """The angle, in radians, by which each pair of columns turns from one position to the next.

    Parameters
    ----------
    d_model : int, positive and even
        Number of columns. Pair ``i`` of the ``d_model / 2`` pairs has frequency ``base ** (-2i / d_model)``.
    base : float, positive

    Returns
    -------
    Tensor of float64, shape (d_model / 2,)
        From 1 down to ``base ** (-(d_model - 2) / d_model)``; the wavelengths are 2π over these.

    Raises
    ------
    ValueError
        If `d_model` is odd or not positive, or `base` is not positive.

    Notes
    -----
    Source: Vaswani et al. (2017), section 3.5.
    """
    d_model = checked_count("d_model", d_model, 1)
    if d_model % 2:
        raise ValueError(f"d_model must be even, because columns come in sine-cosine pairs, not {d_model}")
    if not 0 < base < math.inf:
        raise ValueError(f"base must be positive and finite, not {base!r}")
    pair = torch.arange(d_model // 2, dtype=torch.float64, device="cpu")
    return base ** (-2 * pair / d_model)


def sinusoidal_encoding(
    length: int,
    d_model: int,
    base: float = 10000.0,
    layout: str = "interleaved",
    start: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The table of sines and cosines: one row a position, one pair of columns a frequency.

    With w_i the frequencies, row p holds ``sin(p w_i)`` in column 2i and ``cos(p w_i)`` in column 2i + 1.

    Parameters
    ----------
    length : int, at least 0
        Number of rows.
    d_model : int, positive and even
        Number of columns. An odd width would leave a sine without its cosine; it is refused.
    base : float, positive
        See `frequencies`.
    layout : "interleaved" or "concat"
        Sine and cosine of a pair side by side, as in the paper, or all sines before all cosines. The two
        tables differ by one order of the columns, so every dot product between rows is the same.
    start : int
        Position of the first row. It may be negative: the formula holds for every integer.
    dtype : floating torch.dtype
        Of the result.

    Returns
    -------
    Tensor of `dtype`, shape (length, d_model), on the CPU

    Raises
    ------
    ValueError
        If a number is out of range, `layout` is unknown, or `dtype` is not a floating type.

    Notes
    -----
    Source: Vaswani et al. (2017), section 3.5.
    """
    length = checked_count("length", length, 0)
    if isinstance(start, bool) or not isinstance(start, Integral):
        raise ValueError(f"start must be an integer, not {start!r}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating type, not {dtype!r}")
    # The phases p·w_i are formed in float64 and only the finished table is rounded: bfloat16 has no 257,
    # and a phase near 4000 rounded to float32 is already wrong by 2e-4.
    position = torch.arange(start, start + length, dtype=torch.float64, device="cpu")
    phase = position[:, None] * frequencies(d_model, base)
    pairs = torch.stack([phase.sin(), phase.cos()], dim=-1 if layout == "interleaved" else -2)
    table = pairs.flatten(1)
    return table if dtype == torch.float64 else table.float().to(dtype)


class SinusoidalEncoding(nn.Module):
    """Add row t of the sinusoidal table to token t of every sequence, for sequences of any length.

    Parameters
    ----------
    d_model : int, positive and even
    base : float, positive
    layout : "interleaved" or "concat"
        As for `sinusoidal_encoding`.
    scale_tokens : bool
        Multiply the tokens by ``sqrt(d_model)`` first, as the paper does (section 3.4). Its embeddings
        start out small, near ``1 / sqrt(d_model)``, while every row of the table has the root mean square
        ``1 / sqrt(2)``. torch's own embedding starts at 1 and needs no factor.

    Raises
    ------
    ValueError
        If a number is out of range or `layout` is unknown.

    Notes
    -----
    The layer holds no tensor: no parameter that could be trained by accident, no buffer that could be
    rounded with the model or tie a checkpoint to one length. Each call computes the T rows it adds.
    Source: Vaswani et al. (2017), sections 3.4 and 3.5.
    """

    def __init__(
        self, d_model: int, base: float = 10000.0, layout: str = "interleaved", scale_tokens: bool = False
    ) -> None:
        super().__init__()
        sinusoidal_encoding(0, d_model, base, layout)  # refuses now what it would refuse at the first call
        self.d_model = d_model
        self.base = base
        self.layout = layout
        self.scale_tokens = scale_tokens

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D), same dtype and device. ValueError if `x` is not that wide."""
        _check_tokens(x, self.d_model)
        codes = sinusoidal_encoding(x.shape[1], self.d_model, self.base, self.layout, dtype=x.dtype)
        tokens = x * math.sqrt(self.d_model) if self.scale_tokens else x
        return tokens + codes.to(x.device)

    def extra_repr(self) -> str:
        return f"{self.d_model}, base={self.base}, layout={self.layout!r}, scale_tokens={self.scale_tokens}"


class LearnedEncoding(nn.Module):
    """Add row t of a trained table to token t of every sequence.

    Parameters
    ----------
    max_length : int, at least 1
        Number of rows; they serve positions 0 to ``max_length - 1``.
    d_model : int, at least 1
    std : float, at least 0
        The rows start as independent normal numbers with mean 0 and this standard deviation. The default
        is the root mean square of a sinusoidal table, so that the two start out equally loud.

    Attributes
    ----------
    table : Parameter, shape (max_length, d_model)

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    A batch of length T gives gradient to rows 0 to T - 1 alone; the others keep what they started with.
    Source: Gehring et al. (2017), section 3.1; Vaswani et al. (2017), Table 3, row E.
    """

    def __init__(self, max_length: int, d_model: int, std: float = math.sqrt(0.5)) -> None:
        super().__init__()
        if not 0 <= std < math.inf:
            raise ValueError(f"std must be finite and not negative, not {std!r}")
        self.max_length = checked_count("max_length", max_length, 1)
        self.d_model = checked_count("d_model", d_model, 1)
        self.table = nn.Parameter(torch.randn(max_length, d_model) * std)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D), same dtype. ValueError if `x` is not that wide or T is over `max_length`."""
        _check_tokens(x, self.d_model)
        _check_long_enough(x.shape[1], self.max_length)
        return x + self.table[: x.shape[1]].to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.d_model}"


class FixedCodes(nn.Module):
    """Add row t of a given table to token t of every sequence. The table is never trained.

    Parameters
    ----------
    codes : floating Tensor, shape (max_length, d_model)
        Copied, so that changing it later changes nothing here.

    Raises
    ------
    ValueError
        If `codes` is not a floating tensor with two axes, at least one row and one column.

    Notes
    -----
    The table is a buffer: it moves with the model, no optimiser sees it, and it is not part of a
    checkpoint, which holds what was learned.
    """

    def __init__(self, codes: Tensor) -> None:
        super().__init__()
        if not isinstance(codes, Tensor) or codes.dim() != 2 or not codes.is_floating_point() or not codes.numel():
            raise ValueError(f"codes must be a floating tensor (max_length, d_model), not {described(codes)}")
        self.max_length, self.d_model = codes.shape
        self.register_buffer("codes", codes.detach().clone(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D), same dtype. ValueError if `x` is not that wide or has more tokens than codes."""
        _check_tokens(x, self.d_model)
        _check_long_enough(x.shape[1], self.max_length)
        return x + self.codes[: x.shape[1]].to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.d_model}"


def _check_tokens(x: Tensor, d_model: int) -> None:
    if not isinstance(x, Tensor) or x.dim() != 3 or not x.is_floating_point() or x.shape[-1] != d_model:
        raise ValueError(f"x must be a floating tensor (B, T, {d_model}), not {described(x)}")


def _check_long_enough(length: int, max_length: int) -> None:
    if length > max_length:
        raise ValueError(
            f"the sequence has {length} tokens, but the table has max_length = {max_length} rows "
            f"(positions 0 to {max_length - 1})"
        )
