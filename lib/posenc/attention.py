"""Scaled dot-product attention and its multi-head form, written to be read.

Shapes: `B` sequences, `T` queries, `S` keys, `H` heads of width `d`, model
width `D`. A boolean mask says which keys a query *may attend to* (True = may
attend), as in torch's ``scaled_dot_product_attention`` and unlike
``torch.nn.MultiheadAttention``, where True means "ignore".
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from posenc._checks import check_tokens, checked_count, described

Position = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor | None]]
"""What an encoding inside attention does: from per-head queries `(B, H, T, d)`
and keys `(B, H, S, d)` to the queries and keys that are scored and the bias
that is added to their scores (or None)."""


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Average the values; each query weighs them by how well their keys fit.

    ``weights = softmax(query keyᵀ / sqrt(d) + bias)`` over the keys, and
    ``output = weights value``.

    Parameters
    ----------
    query : Tensor, shape (..., T, d)
    key : Tensor, shape (..., S, d)
    value : Tensor, shape (..., S, d_v)
        The three share dtype, device and leading axes; nothing is broadcast
        among them.
    mask : boolean Tensor, shape (T, S) or (..., T, S), optional
        True where the query may attend. A mask with two axes holds for every
        leading index; one with as many axes as the scores matches them axis by
        axis, or has size 1 there.
    bias : Tensor of the queries' dtype, same shapes as `mask`, optional
        Added to the scaled scores. Minus infinity forbids a key as a mask
        would.

    Returns
    -------
    output : Tensor, shape (..., T, d_v)
    weights : Tensor, shape (..., T, S)
        Each row sums to 1; a row with nothing to attend to is all zeros, and
        so are its output and the gradient that flows through it.

    Raises
    ------
    ValueError
        If ranks, widths, lengths, dtypes or devices disagree, or the mask is
        not boolean.

    Notes
    -----
    Source: Vaswani et al. (2017), section 3.2.1.
    """
    _check_attention_inputs(query, key, value, mask, bias)
    # The queries are divided and not the scores: they are fewer numbers, and
    # the result is the same.
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)
    allowed = mask
    if bias is not None:
        scores = scores + bias
        finite = bias != -math.inf
        allowed = finite if mask is None else mask & finite
    if allowed is None:
        weights = scores.softmax(dim=-1)
    else:
        weights = _masked_softmax(scores, allowed)
    return weights @ value, weights


def _masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    # A row of -inf only would be 0/0, and cleaning the NaN afterwards would
    # still leave NaN in the gradients; such a row is given finite scores first
    # and zero weights after.
    empty = ~allowed.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~allowed, -math.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


def causal_mask(
    length: int, device: torch.device | str | None = None
) -> Tensor:
    """The mask under which token t attends to tokens 0..t, itself included.

    Parameters
    ----------
    length : int, at least 0
    device : torch.device or str, optional

    Returns
    -------
    Tensor of bool, shape (length, length)
        True on and below the diagonal.

    Raises
    ------
    ValueError
        If `length` is not a non-negative integer.
    """
    length = checked_count("length", length, 0)
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """Self-attention with several heads, each on its slice of the features.

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    num_heads : int
        Must divide `d_model`; each head is ``d_model // num_heads`` wide.
    position : callable, optional
        An encoding that acts inside attention, see `Position`. Without one,
        and without a mask, the layer is permutation equivariant.

    Raises
    ------
    ValueError
        If one of the two is not a positive integer, or `num_heads` does not
        divide `d_model`.

    Notes
    -----
    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self, d_model: int, num_heads: int, position: Position | None = None
    ) -> None:
        super().__init__()
        d_model = checked_count("d_model", d_model, 1)
        num_heads = checked_count("num_heads", num_heads, 1)
        if d_model % num_heads:
            raise ValueError(
                f"num_heads {num_heads} does not divide d_model {d_model}"
            )
        self.d_model = d_model
        self.num_heads = num_heads
        self.position = position
        self.to_query = nn.Linear(d_model, d_model)
        self.to_key = nn.Linear(d_model, d_model)
        self.to_value = nn.Linear(d_model, d_model)
        self.to_output = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token gather from the tokens it may attend to.

        Parameters
        ----------
        x : Tensor, shape (B, T, D)
        mask : boolean Tensor, optional
            Of shape (T, T), (B, T, T), (B, 1, T, T) or (B, H, T, T). True
            where the query (second-last axis) may attend to the key (last
            axis). Three axes always mean one mask a sequence, also when B = H.
        key_mask : boolean Tensor, shape (B, T), optional
            True for a real token, False for padding.
        need_weights : bool
            Whether the weights are wanted too. Without them torch's fused
            kernel does the work.

        Returns
        -------
        output : Tensor, shape (B, T, D)
        weights : Tensor, shape (B, H, T, T)
            Only if `need_weights`; one map per head, not their mean.

        Raises
        ------
        ValueError
            If the width is not `d_model`, the dtype or device not that of the
            weights, or a mask is not boolean or of another shape; or if what
            `position` returns does not fit.
        """
        check_tokens(x, self.to_query.weight)
        query = self._split(self.to_query(x))
        key = self._split(self.to_key(x))
        value = self._split(self.to_value(x))
        mask = self._combined_mask(mask, key_mask, x)
        bias = None
        if self.position is not None:
            query, key, bias = self.position(query, key)
            if isinstance(bias, Tensor) and bias.dim() == 3:
                bias = bias[None]
        if need_weights:
            heads, weights = scaled_dot_product_attention(
                query, key, value, mask, bias
            )
            return self.to_output(self._merge(heads)), weights
        heads = _fused_attention(query, key, value, mask, bias)
        return self.to_output(self._merge(heads))

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, H, T, d)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _merge(self, heads: Tensor) -> Tensor:
        """(B, H, T, d) to (B, T, D)."""
        return heads.transpose(1, 2).flatten(-2)

    def _combined_mask(
        self, mask: Tensor | None, key_mask: Tensor | None, x: Tensor
    ) -> Tensor | None:
        """Both masks as one that broadcasts over heads.

        The head axis goes in by rank, never by luck.
        """
        batch, length, _ = x.shape
        if mask is not None:
            _check_boolean("mask", mask, x.device)
            square = (length, length)
            known = [
                square,
                (batch, *square),
                (batch, 1, *square),
                (batch, self.num_heads, *square),
            ]
            if tuple(mask.shape) not in known:
                raise ValueError(
                    f"mask must be one of {', '.join(map(str, known))}, "
                    f"not {tuple(mask.shape)}"
                )
            if mask.dim() == 3:
                mask = mask[:, None]
        if key_mask is not None:
            _check_boolean("key_mask", key_mask, x.device)
            if key_mask.shape != (batch, length):
                raise ValueError(
                    f"key_mask must be (B, T) = {(batch, length)}, "
                    f"not {tuple(key_mask.shape)}"
                )
            by_key = key_mask[:, None, None, :]
            mask = by_key if mask is None else mask & by_key
        return mask


def _fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
) -> Tensor:
    """The outputs of `scaled_dot_product_attention` from torch's fused kernel,
    which keeps no weights."""
    _check_attention_inputs(query, key, value, mask, bias)
    if bias is not None:
        mask = bias if mask is None else torch.where(mask, bias, -math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def _check_attention_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
) -> None:
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        if (
            not isinstance(tensor, Tensor)
            or tensor.dim() < 2
            or not tensor.is_floating_point()
        ):
            raise ValueError(
                f"{name} must be a floating tensor with at least two axes, "
                f"not {described(tensor)}"
            )
        _check_same_kind(name, tensor, query)
    *leading, queries, width = query.shape
    *of_key, keys, key_width = key.shape
    *of_value, values, _ = value.shape
    if not leading == of_key == of_value:
        raise ValueError(
            f"leading axes disagree: query {tuple(query.shape)}, "
            f"key {tuple(key.shape)}, value {tuple(value.shape)}"
        )
    if width != key_width:
        raise ValueError(f"query is {width} wide, key is {key_width} wide")
    if width == 0:
        raise ValueError("query and key must be at least 1 wide, not 0")
    if keys != values:
        raise ValueError(f"there are {keys} keys, but {values} values")
    scores_shape = (*leading, queries, keys)
    if mask is not None:
        _check_boolean("mask", mask, query.device)
        _check_fits("mask", mask, scores_shape)
    if bias is not None:
        if not isinstance(bias, Tensor):
            raise ValueError(f"bias must be a tensor, not {described(bias)}")
        _check_same_kind("bias", bias, query)
        _check_fits("bias", bias, scores_shape)


def _check_same_kind(name: str, tensor: Tensor, query: Tensor) -> None:
    if tensor.dtype != query.dtype or tensor.device != query.device:
        raise ValueError(
            f"{name} is {tensor.dtype} on {tensor.device}, "
            f"query is {query.dtype} on {query.device}"
        )


def _check_boolean(name: str, mask: Tensor, device: torch.device) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise ValueError(
            f"{name} must be a boolean tensor (True = may attend), "
            f"not {described(mask)}"
        )
    if mask.device != device:
        raise ValueError(
            f"{name} is on {mask.device}, the tokens are on {device}"
        )


def _check_fits(
    name: str, tensor: Tensor, scores_shape: tuple[int, ...]
) -> None:
    rows_and_keys = scores_shape[-2:]
    fits = tensor.shape == rows_and_keys or (
        tensor.dim() == len(scores_shape)
        and all(a in (1, b) for a, b in zip(tensor.shape, scores_shape))
    )
    if not fits:
        raise ValueError(
            f"{name} must be {rows_and_keys} or fit {scores_shape} "
            f"axis by axis, not {tuple(tensor.shape)}"
        )
