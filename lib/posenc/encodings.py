"""Encodings: those that are added to the tokens, and those that act inside attention.

The first map tokens `(B, T, D)` to tokens `(B, T, D)`. The second are `posenc.attention.Position`: they map
queries `(B, H, T, d)` and keys `(B, H, S, d)` to queries, keys and a bias (or None) for the scores.
Positions are numbered from 0. Layers follow the dtype and device of what they are given.
"""

import math
from numbers import Integral

import torch
from torch import Tensor, nn

from posenc._checks import check_positive, checked_count, described

LAYOUTS = ("interleaved", "concat")
"""Where a pair keeps its two columns: side by side at 2i and 2i + 1, or at i and i + d/2."""

# The columns as a grid: (pairs, 2) when neighbours are paired, (2, pairs) when halves are.
_GRID = {"interleaved": (-1, 2), "concat": (2, -1)}
_PAIR_AXIS = {"interleaved": -1, "concat": -2}


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
        raise ValueError(f"d_model must be even, because columns come in pairs, not {d_model}")
    check_positive("base", base)
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
    _check_layout(layout)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating type, not {dtype!r}")
    phase = _phases(length, d_model, base, start)
    table = torch.empty(length, d_model, dtype=_wide(dtype), device="cpu")
    sines, cosines = table.unflatten(1, _GRID[layout]).unbind(_PAIR_AXIS[layout])
    sines[:], cosines[:] = phase.sin(), phase.cos()
    return table.to(dtype)


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
    A batch of length T gives gradient to rows 0 to T - 1 alone. The others are not trained; an optimiser's
    weight decay, if there is any, still shrinks them.
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
        return _add_rows(x, self.table)

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
        return _add_rows(x, self.codes)

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.d_model}"


class RandomPositions(nn.Module):
    """Add the codes of random positions, in ascending order, so that training reaches every row.

    Parameters
    ----------
    encoding : Module
        One that adds a code to each token, such as `SinusoidalEncoding` or `LearnedEncoding`.
    max_length : int, at least 1
        Positions are drawn from 0 to ``max_length - 1``, without repetition.

    Raises
    ------
    ValueError
        If `max_length` is not positive; at a call, if there are more tokens than positions.

    Notes
    -----
    Each call draws once, from torch's global generator, for all its sequences, in training and in
    evaluation alike. Neighbours no longer differ by one: the order is kept and the distances are given up.
    Source: Ruoss et al. (2023), section 3.
    """

    def __init__(self, encoding: nn.Module, max_length: int) -> None:
        super().__init__()
        self.encoding = encoding
        self.max_length = checked_count("max_length", max_length, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D). ValueError if T is over `max_length`."""
        if x.shape[1] > self.max_length:
            raise ValueError(f"the sequence has {x.shape[1]} tokens, but max_length is {self.max_length}")
        positions = torch.randperm(self.max_length)[: x.shape[1]].sort().values.to(x.device)
        codes = self.encoding(x.new_zeros(1, self.max_length, x.shape[2]))
        return x + codes[:, positions]

    def extra_repr(self) -> str:
        return f"max_length={self.max_length}"


def apply_rotary(x: Tensor, start: int = 0, base: float = 10000.0, layout: str = "interleaved") -> Tensor:
    """Turn each pair of columns of each row by the angle of its position: the rotary encoding (RoPE).

    With w_i the frequencies, pair i of the row at position p is turned by ``p w_i``. Applied to queries and
    keys alike, their dot products depend on positions through the offset alone. Values are not turned.

    Parameters
    ----------
    x : floating Tensor, shape (..., T, d)
        Queries or keys; d is even.
    start : int
        Position of the first row; a cache asks for the rows that are new. It may be negative.
    base : float, positive
        See `frequencies`.
    layout : "interleaved" or "concat"
        Which columns are paired: neighbours 2i and 2i + 1, or i and i + d/2 as in many published models.
        Either is sound if queries and keys agree; weights made for one do not fit the other.

    Returns
    -------
    Tensor, same shape, dtype and device

    Raises
    ------
    ValueError
        If `x` is not a floating tensor of at least two axes, d is odd, or an argument is out of range.

    Notes
    -----
    Source: Su et al. (2021), section 3.4.2.
    """
    if not isinstance(x, Tensor) or x.dim() < 2 or not x.is_floating_point():
        raise ValueError(f"x must be a floating tensor (..., T, d), not {described(x)}")
    length, width = x.shape[-2:]
    if width % 2 or not width:
        raise ValueError(f"the head width must be even and positive, because columns turn in pairs, not {width}")
    _check_layout(layout)
    phase = _phases(length, width, base, start)
    cosine, sine = (t.to(_wide(x.dtype)).to(x) for t in (phase.cos(), phase.sin()))
    first, second = x.unflatten(-1, _GRID[layout]).unbind(_PAIR_AXIS[layout])
    turned = (first * cosine - second * sine, first * sine + second * cosine)
    return torch.stack(turned, dim=_PAIR_AXIS[layout]).flatten(-2)


class Rotary(nn.Module):
    """The rotary encoding as a `posenc.attention.Position`: queries and keys turned, no bias.

    Parameters
    ----------
    base : float, positive
    layout : "interleaved" or "concat"
        As for `apply_rotary`.

    Raises
    ------
    ValueError
        If `base` is not positive or `layout` is unknown.

    Notes
    -----
    The last query stands at the position of the last key. Source: Su et al. (2021), section 3.4.2.
    """

    def __init__(self, base: float = 10000.0, layout: str = "interleaved") -> None:
        super().__init__()
        frequencies(2, base)
        _check_layout(layout)
        self.base = base
        self.layout = layout

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, None]:
        """(B, H, T, d) and (B, H, S, d) to the same shapes. ValueError if d is odd or T is over S."""
        _check_heads(query, key)
        start = _first_query(query.shape[-2], key.shape[-2])
        return (
            apply_rotary(query, start, self.base, self.layout),
            apply_rotary(key, 0, self.base, self.layout),
            None,
        )

    def extra_repr(self) -> str:
        return f"base={self.base}, layout={self.layout!r}"


def alibi_slopes(num_heads: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """How much each head's scores lose for each step of distance.

    For a power of two they are ``2 ** (-8 h / num_heads)`` for h = 1..num_heads. Otherwise the slopes of
    the next smaller power come first, then every second one of the next larger power, from its first: so the
    list is not sorted, and every head has a slope of a power-of-two list.

    Parameters
    ----------
    num_heads : int, at least 1
    dtype : floating torch.dtype

    Returns
    -------
    Tensor of `dtype`, shape (num_heads,), on the CPU

    Raises
    ------
    ValueError
        If `num_heads` is not positive.

    Notes
    -----
    Source: Press et al. (2021), section 3, and the code published with it.
    """
    num_heads = checked_count("num_heads", num_heads, 1)
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2 ** (-8 * h / (2 * power)) for h in range(1, 2 * power, 2)][: num_heads - power]
    return torch.tensor(slopes, dtype=dtype, device="cpu")


def alibi_bias(
    num_heads: int, query_length: int, key_length: int | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Minus slope times distance, for every head, query and key: the bias that ALiBi adds to the scores.

    Parameters
    ----------
    num_heads : int, at least 1
    query_length : int, at least 0
    key_length : int, optional
        At least `query_length`, which it is if not given. The last query stands at the last key.
    dtype : floating torch.dtype

    Returns
    -------
    Tensor of `dtype`, shape (num_heads, query_length, key_length), on the CPU
        ``-slope * |query - key|``: zero where a token meets itself, negative elsewhere. It looks both ways;
        a causal mask leaves the past. (Under one, and only under one, a row that depends on the key alone
        gives the same weights, since softmax takes no notice of what is added to a whole row.)

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    Source: Press et al. (2021), section 3.
    """
    query_length = checked_count("query_length", query_length, 0)
    key_length = query_length if key_length is None else checked_count("key_length", key_length, 0)
    _first_query(query_length, key_length)
    # One number an offset, from -key_length up; then each query's window of them, the first query's being the last.
    offsets = torch.arange(-key_length, query_length, device="cpu")
    by_offset = (-alibi_slopes(num_heads, torch.float64)[:, None] * offsets.abs()).to(dtype)
    return by_offset.unfold(1, key_length, 1)[:, 1:].flip(1).contiguous()


class Alibi(nn.Module):
    """ALiBi as a `posenc.attention.Position`: queries and keys as they are, distance as a bias.

    Raises
    ------
    ValueError
        At a call with more queries than keys.

    Notes
    -----
    It holds no tensor and has no longest sequence. Source: Press et al. (2021), section 3.
    """

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, H, T, d) and (B, H, S, d) to those and a bias (H, T, S). ValueError if T is over S."""
        _check_heads(query, key)
        bias = alibi_bias(query.shape[1], query.shape[-2], key.shape[-2], query.dtype)
        return query, key, bias.to(query.device)


class RelativeBias(nn.Module):
    """A trained number for every head and offset, added to the scores; far offsets share the last one.

    Parameters
    ----------
    num_heads : int, at least 1
    max_distance : int, at least 0
        Offsets beyond it, to either side, count as this far.
    std : float, at least 0
        The numbers start as independent normal ones with mean 0 and this standard deviation. (All equal,
        they would have every symmetry there is.)

    Attributes
    ----------
    table : Parameter, shape (num_heads, 2 max_distance + 1)
        Column ``max_distance + key position - query position``.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    Source: Shaw et al. (2018), section 3.2, for the clipped offsets; Raffel et al. (2020), section 2.1,
    for one number instead of a vector.
    """

    def __init__(self, num_heads: int, max_distance: int, std: float = 0.02) -> None:
        super().__init__()
        self.num_heads = checked_count("num_heads", num_heads, 1)
        self.max_distance = checked_count("max_distance", max_distance, 0)
        if not 0 <= std < math.inf:
            raise ValueError(f"std must be finite and not negative, not {std!r}")
        self.table = nn.Parameter(torch.randn(num_heads, 2 * max_distance + 1) * std)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, H, T, d) and (B, H, S, d) to those and a bias (H, T, S). ValueError if H differs or T is over S."""
        _check_heads(query, key)
        if query.shape[1] != self.num_heads:
            raise ValueError(f"there are {query.shape[1]} heads of queries, but the table has {self.num_heads}")
        offsets = _offsets(query.shape[-2], key.shape[-2]).clamp(-self.max_distance, self.max_distance)
        return query, key, self.table[:, offsets + self.max_distance].to(query.dtype)

    def extra_repr(self) -> str:
        return f"{self.num_heads}, {self.max_distance}"


def _check_heads(query: object, key: object) -> None:
    """ValueError if these are not queries (B, H, T, d) and keys (B, H, S, d)."""
    for name, heads in {"query": query, "key": key}.items():
        if not isinstance(heads, Tensor) or heads.dim() != 4 or not heads.is_floating_point():
            raise ValueError(f"{name} must be a floating tensor with four axes, not {described(heads)}")
    if query.shape[:2] != key.shape[:2] or query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query {tuple(query.shape)} and key {tuple(key.shape)} differ in more than their length")


def _phases(length: int, width: int, base: float, start: int) -> Tensor:
    """Position times frequency, in radians: float64 (length, width / 2)."""
    # In float64, and only what is made of them is rounded: bfloat16 has no 257, and a phase near 4000 that
    # is rounded to float32 is already wrong by 2e-4.
    if isinstance(start, bool) or not isinstance(start, Integral):
        raise ValueError(f"start must be an integer, not {start!r}")
    position = torch.arange(start, start + length, dtype=torch.float64, device="cpu")
    return position[:, None] * frequencies(width, base)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """What a float64 table is rounded to first: the narrow types get the float32 table, as published tables do."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _offsets(query_length: int, key_length: int) -> Tensor:
    """Key position minus query position, int64 (T, S)."""
    start = _first_query(query_length, key_length)
    return torch.arange(key_length) - torch.arange(start, key_length)[:, None]


def _first_query(query_length: int, key_length: int) -> int:
    """The position of the first query when the last query stands at the last key."""
    if query_length > key_length:
        raise ValueError(f"there are {query_length} queries, but only {key_length} keys")
    return key_length - query_length


def _check_layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")


def _check_tokens(x: Tensor, d_model: int) -> None:
    if not isinstance(x, Tensor) or x.dim() != 3 or not x.is_floating_point() or x.shape[-1] != d_model:
        raise ValueError(f"x must be a floating tensor (B, T, {d_model}), not {described(x)}")


def _add_rows(x: Tensor, table: Tensor) -> Tensor:
    """Row t of a table (max_length, D) added to token t of every sequence of `x` (B, T, D)."""
    max_length, d_model = table.shape
    _check_tokens(x, d_model)
    length = x.shape[1]
    if length > max_length:
        raise ValueError(
            f"the sequence has {length} tokens, but the table has max_length = {max_length} rows "
            f"(positions 0 to {max_length - 1})"
        )
    return x + table[:length].to(x.dtype)
