"""Recurrent layers, written to be read: one state, carried from token to token by the same step.

Shapes: `B` sequences of `T` tokens, each `D` wide; a state `H` wide. Batch first, one layer, left to right.
Parameters have the names, the stacking and the initial distribution of torch's ``RNN``, ``LSTM`` and ``GRU``
(theirs end in ``_l0``), so weights copied either way give the same numbers.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from posenc._checks import check_tokens, checked_count, described

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "identity": lambda x: x,
}
"""What an Elman step may put its sum through. "identity" makes the recurrence linear."""


class _Recurrent(nn.Module):
    """What the three cells share: parameters, the walk over the tokens, padding.

    A cell says how many blocks of H rows its weights stack (`_BLOCKS`), how many vectors a state has
    (`_STATES`), and how one step goes.
    """

    _BLOCKS = 1
    _STATES = 1

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = checked_count("input_size", input_size, 1)
        self.hidden_size = checked_count("hidden_size", hidden_size, 1)
        rows = self._BLOCKS * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(rows))
        self.bias_hh = nn.Parameter(torch.empty(rows))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))

    def forward(
        self,
        x: Tensor,
        h0: Tensor | tuple[Tensor, ...] | None = None,
        lengths: Tensor | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        """Walk over the tokens from the first to the last.

        Parameters
        ----------
        x : Tensor, shape (B, T, D)
        h0 : Tensor, shape (B, H), optional
            The state before the first token; zero if not given. For the LSTM a pair ``(h, c)``.
        lengths : integer Tensor or sequence, shape (B,), optional
            How many tokens of each sequence are real, from 0 to T; the rest is padding at its end.

        Returns
        -------
        outputs : Tensor, shape (B, T, H)
            The state h after each token; zero at padding.
        final : Tensor, shape (B, H)
            The state after the last *real* token, ``h0`` if there is none. For the LSTM ``(h, c)``.

        Raises
        ------
        ValueError
            If a width, a batch size, a dtype or a device disagrees with the others, or a length is not
            an integer from 0 to T. The message names both.
        """
        check_tokens(x, self.weight_ih)
        state = self._first_state(x, h0)
        real = None if lengths is None else _real_tokens(x, lengths)
        if real is not None:
            x = x.masked_fill(~real[..., None], 0.0)  # so that NaN in padding cannot reach a gradient
        states = []
        # What the tokens contribute needs no state: one product for all of them. The rest is a loop.
        for t, token in enumerate(self._project(x).unbind(dim=1)):
            new = self._step(token, state)
            state = new if real is None else tuple(torch.where(real[:, t, None], n, s) for n, s in zip(new, state))
            states.append(state[0])
        outputs = torch.stack(states, dim=1) if states else x.new_zeros(*x.shape[:2], self.hidden_size)
        if real is not None:
            outputs = outputs.masked_fill(~real[..., None], 0.0)
        return outputs, state[0] if self._STATES == 1 else state

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"

    def _project(self, x: Tensor) -> Tensor:
        """What each token adds, (B, T, D) to (B, T, rows): both biases ride along."""
        return F.linear(x, self.weight_ih, self.bias_ih + self.bias_hh)

    def _step(self, token: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The next state, from one projected token (B, rows) and the state before it."""
        raise NotImplementedError

    def _first_state(self, x: Tensor, h0: object) -> tuple[Tensor, ...]:
        expected = (x.shape[0], self.hidden_size)
        if h0 is None:
            return (x.new_zeros(expected),) * self._STATES
        state = (h0,) if self._STATES == 1 else h0
        if not isinstance(state, (tuple, list)) or len(state) != self._STATES:
            raise ValueError(f"h0 must be a pair (h, c), not {described(h0)}")
        for part in state:
            if not isinstance(part, Tensor) or part.shape != expected:
                raise ValueError(f"h0 must be (B, H) = {expected}, not {described(part)}")
            if part.dtype != x.dtype or part.device != x.device:
                raise ValueError(f"h0 is {part.dtype} on {part.device}, x is {x.dtype} on {x.device}")
        return tuple(state)


class ElmanRNN(_Recurrent):
    r"""The plain recurrent layer: ``h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)``.

    Parameters
    ----------
    input_size, hidden_size : int, at least 1
        Widths D of a token and H of the state.
    activation : "tanh", "relu" or "identity"
        What the sum goes through.

    Attributes
    ----------
    weight_ih : Parameter, shape (H, D)
    weight_hh : Parameter, shape (H, H)
    bias_ih, bias_hh : Parameter, shape (H,)
        Only their sum matters; there are two because torch has two.

    Raises
    ------
    ValueError
        If a width is not a positive integer, or the activation is unknown.

    Notes
    -----
    Source: Elman (1990). All numbers start uniform between ``-1/sqrt(H)`` and ``1/sqrt(H)``, as torch's do.
    """

    def __init__(self, input_size: int, hidden_size: int, activation: str = "tanh") -> None:
        super().__init__(input_size, hidden_size)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(map(repr, ACTIVATIONS))}, not {activation!r}")
        self.activation = activation

    def _step(self, token: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (ACTIVATIONS[self.activation](torch.addmm(token, state[0], self.weight_hh.t())),)


class LSTM(_Recurrent):
    r"""A layer with a second state c that is only scaled and added to: long short-term memory.

    With ``i, f, g, o`` the four blocks of ``W_ih x_t + b_ih + W_hh h_{t-1} + b_hh``, in this order,

    ``c_t = σ(f) c_{t-1} + σ(i) tanh(g)`` and ``h_t = σ(o) tanh(c_t)``.

    Parameters
    ----------
    input_size, hidden_size : int, at least 1
        Widths D of a token and H of each of the two states.
    forget_bias : float, optional
        Start with the two biases of the forget gate adding up to this number (`bias_ih` holds it,
        `bias_hh` is zero there). Without it they start as every other number does.

    Attributes
    ----------
    weight_ih : Parameter, shape (4 H, D)
        Rows 0 to H - 1 make the input gate i, then come the forget gate f, the candidate g, the output gate o.
    weight_hh : Parameter, shape (4 H, H)
    bias_ih, bias_hh : Parameter, shape (4 H,)
        Only their sum matters; there are two because torch has two.

    Raises
    ------
    ValueError
        If a width is not a positive integer, or `forget_bias` is not finite.

    Notes
    -----
    Source: Hochreiter and Schmidhuber (1997); the forget gate is from Gers et al. (2000), its bias from
    there and from Jozefowicz et al. (2015).
    """

    _BLOCKS = 4
    _STATES = 2

    def __init__(self, input_size: int, hidden_size: int, forget_bias: float | None = None) -> None:
        super().__init__(input_size, hidden_size)
        if forget_bias is not None:
            if not math.isfinite(forget_bias):
                raise ValueError(f"forget_bias must be finite, not {forget_bias!r}")
            with torch.no_grad():
                self.bias_ih[hidden_size : 2 * hidden_size] = forget_bias
                self.bias_hh[hidden_size : 2 * hidden_size] = 0.0

    def _step(self, token: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, c = state
        i, f, g, o = torch.addmm(token, h, self.weight_hh.t()).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class GRU(_Recurrent):
    r"""A layer whose state moves part of the way to a candidate: the gated recurrent unit.

    With ``r, z, n`` the three blocks, in this order, of ``W_ih x_t + b_ih`` and of ``W_hh h_{t-1} + b_hh``,

    ``r = σ(r_ih + r_hh)``, ``z = σ(z_ih + z_hh)``, ``n = tanh(n_ih + r n_hh)``, ``h_t = (1 - z) n + z h_{t-1}``.

    Parameters
    ----------
    input_size, hidden_size : int, at least 1
        Widths D of a token and H of the state.

    Attributes
    ----------
    weight_ih : Parameter, shape (3 H, D)
        Rows 0 to H - 1 make the reset gate r, then come the update gate z and the candidate n.
    weight_hh : Parameter, shape (3 H, H)
    bias_ih, bias_hh : Parameter, shape (3 H,)
        In the candidate the two do different work: `bias_hh` is inside the reset gate's product.

    Raises
    ------
    ValueError
        If a width is not a positive integer.

    Notes
    -----
    Source: Cho et al. (2014). As there, z near 1 *keeps* the state. As in torch, the reset gate multiplies
    ``W_hh h + b_hh``; in the paper's last version it multiplies h itself, before ``W_hh`` does.
    """

    _BLOCKS = 3

    def _project(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_ih, self.bias_ih)

    def _step(self, token: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = state
        r, z, n = token.chunk(3, dim=1)
        r_hh, z_hh, n_hh = torch.addmm(self.bias_hh, h, self.weight_hh.t()).chunk(3, dim=1)
        r, z = (r + r_hh).sigmoid(), (z + z_hh).sigmoid()
        n = (n + r * n_hh).tanh()
        return (n + z * (h - n),)


def _real_tokens(x: Tensor, lengths: object) -> Tensor:
    """True where a token is real: boolean (B, T)."""
    batch, length, _ = x.shape
    if not isinstance(lengths, Tensor):
        try:
            lengths = torch.as_tensor(lengths)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"lengths must be {batch} integers, not {described(lengths)}") from None
    whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    if not lengths.numel() and not batch:
        lengths = lengths.long()
    elif not whole or lengths.shape != (batch,):
        raise ValueError(f"lengths must be {batch} integers, one a sequence, not {described(lengths)}")
    elif not 0 <= int(lengths.min()) <= int(lengths.max()) <= length:
        raise ValueError(
            f"lengths must lie in 0..{length}, the number of tokens, not in {int(lengths.min())}..{int(lengths.max())}"
        )
    return torch.arange(length, device=x.device) < lengths.to(x.device)[:, None]
