"""Exercises of chapter 8, recurrent networks."""

import math

import numpy as np
import torch
from torch import Tensor

from posenc.exercises.engine import Choice, Function, Mistake, NotAttempted, Open, Value, as_array

_random = torch.Generator().manual_seed(8)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random)


def _parameters(rows: int, tokens: int, units: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _draw(rows * units, tokens), _draw(rows * units, units), _draw(rows * units), _draw(rows * units)


_THROUGH = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "nothing": lambda a: a}

# 8.2 one step of a GRU


def _gru(order: str = "rzn", keep: str = "z", reset: str = "product", candidate: str = "tanh", gate: str = "sigmoid"):
    """A GRU step in the conventions that are asked for."""

    def step(x, h, W_ih, W_hh, b_ih, b_hh):
        from_x = dict(zip(order, (x @ W_ih.T + b_ih).chunk(3, dim=1)))
        from_h = dict(zip(order, (h @ W_hh.T + b_hh).chunk(3, dim=1)))
        r, z = (_THROUGH[gate](from_x[block] + from_h[block]) for block in "rz")
        W_n, d_n = (dict(zip(order, part.chunk(3)))["n"] for part in (W_hh, b_hh))
        n = {
            "product": from_x["n"] + r * from_h["n"],
            "state": from_x["n"] + (r * h) @ W_n.T + d_n,
            "weights": from_x["n"] + r * (h @ W_n.T) + d_n,
            "everything": r * (from_x["n"] + from_h["n"]),
            "nothing": from_x["n"] + from_h["n"],
        }[reset]
        n = _THROUGH[candidate](n)
        return {"z": (1 - z) * n + z * h, "1-z": z * n + (1 - z) * h, "all": (1 - z) * n + h, "none": n}[keep]

    return step


gru_step = _gru()


def _gru_without(what: str):
    """A GRU step that leaves something out."""

    def step(x, h, W_ih, W_hh, b_ih, b_hh):
        if what == "b_hh":
            return gru_step(x, h, W_ih, W_hh, b_ih, torch.zeros_like(b_hh))
        if what == "b_ih":
            return gru_step(x, h, W_ih, W_hh, torch.zeros_like(b_ih), b_hh)
        if what == "biases":
            return gru_step(x, h, W_ih, W_hh, torch.zeros_like(b_ih), torch.zeros_like(b_hh))
        if what == "the state in the gates":
            (r, z, n), n_h = (x @ W_ih.T + b_ih).chunk(3, dim=1), (h @ W_hh.T + b_hh).chunk(3, dim=1)[2]
            r, z = r.sigmoid(), z.sigmoid()
            return (1 - z) * (n + r * n_h).tanh() + z * h
        H = h.shape[1]
        from_x, from_h = x @ W_ih.T + b_ih, h @ W_hh.T + b_hh
        r, z = (from_x + from_h)[:, : 2 * H].sigmoid().chunk(2, dim=1)
        n = (from_x[:, 2 * H :] + r * from_h[:, 2 * H :]).tanh()
        return n + z * h

    return step


# 8.3 one step of an LSTM


def _lstm(
    order: str = "ifgo", shown: str = "new", candidate: str = "tanh", out: str = "tanh", gate: str = "sigmoid", returned=lambda h, c: (h, c)
):
    """An LSTM step in the conventions that are asked for."""

    def step(x, h, c, W_ih, W_hh, b_ih, b_hh):
        blocks = (x @ W_ih.T + b_ih + h @ W_hh.T + b_hh).chunk(4, dim=1)
        part = dict(zip(order, blocks))
        i, f, o = (_THROUGH[gate](part[block]) for block in "ifo")
        new = f * c + i * _THROUGH[candidate](part["g"])
        return returned(o * _THROUGH[out](new if shown == "new" else c), new)

    return step


lstm_step = _lstm()


def _lstm_without(what: str):
    """An LSTM step that leaves something out."""

    def step(x, h, c, W_ih, W_hh, b_ih, b_hh):
        if what == "b_hh":
            return lstm_step(x, h, c, W_ih, W_hh, b_ih, torch.zeros_like(b_hh))
        if what == "b_ih":
            return lstm_step(x, h, c, W_ih, W_hh, torch.zeros_like(b_ih), b_hh)
        if what == "biases":
            return lstm_step(x, h, c, W_ih, W_hh, torch.zeros_like(b_ih), torch.zeros_like(b_hh))
        if what == "h":
            return lstm_step(x, torch.zeros_like(h), c, W_ih, W_hh, b_ih, b_hh)
        i, f, g, o = (x @ W_ih.T + b_ih + h @ W_hh.T + b_hh).chunk(4, dim=1)
        one = torch.ones_like(c)
        i, f, o = (one if what == gate else part.sigmoid() for gate, part in (("input gate", i), ("forget gate", f), ("output gate", o)))
        c = f * c + i * g.tanh()
        return o * c.tanh(), c

    return step


def _coupled(x, h, c, W_ih, W_hh, b_ih, b_hh):
    """The input gate taken for one minus the forget gate."""
    _, f, g, o = (x @ W_ih.T + b_ih + h @ W_hh.T + b_hh).chunk(4, dim=1)
    c = f.sigmoid() * c + (1 - f.sigmoid()) * g.tanh()
    return o.sigmoid() * c.tanh(), c


# 8.4 the right final state


def final_states(outputs: Tensor, lengths: Tensor) -> Tensor:
    return outputs[torch.arange(len(outputs)), lengths - 1]


def _padded(batch: int, length: int, units: int, lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Outputs that hold numbers at padding, as those of a layer that does not know the lengths do."""
    return _draw(batch, length, units), torch.tensor(lengths)


# 8.5 what is left of the cell


def kept(gates: Tensor) -> Tensor:
    later = torch.cat([gates[1:], torch.ones_like(gates[:1])])
    return later.flip(0).cumprod(dim=0).flip(0)


# 8.7 a recurrent network without order


def _examine_blind(answer: object) -> str | None:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return "should be a pair, (W_ih, W_hh)"
    if answer[0] is ... or answer[1] is ...:
        raise NotAttempted
    W_ih, W_hh = map(as_array, answer)
    shapes = [None if part is None else part.shape for part in (W_ih, W_hh)]
    if shapes == [(3, 3), (3, 2)]:
        return "the two are in the other order: W_ih first, W_hh second"
    if shapes != [(3, 2), (3, 3)]:
        told = " and ".join("no array" if shape is None else str(shape) for shape in shapes)
        return f"W_ih and W_hh should have shapes (3, 2) and (3, 3), not {told}"
    W_ih, W_hh = W_ih.astype(float), W_hh.astype(float)
    if not (np.isfinite(W_ih).all() and np.isfinite(W_hh).all()):
        return "contains NaN or infinity"
    moved = np.abs((W_hh - np.eye(3)) @ W_ih)
    tolerance = 1e-5 * max(1.0, np.abs(W_ih).max() * np.abs(W_hh).max())
    if moved.max() > tolerance:
        if np.abs((W_hh.T - np.eye(3)) @ W_ih).max() <= tolerance:
            return "the transpose of your W_hh would leave the columns of W_ih as they are; W_hh itself does not"
        x, y = np.eye(2)[int(moved.max(axis=0).argmax())], np.zeros(2)
        first, second = W_hh @ W_ih @ x + W_ih @ y, W_hh @ W_ih @ y + W_ih @ x
        return (
            f"order shows: tokens {x.astype(int).tolist()} and [0, 0], read in one order and the other, "
            f"leave states that differ by {np.abs(first - second).max():.2g}"
        )
    if np.abs(W_hh - np.eye(3)).max() < 0.1:
        return "order is ignored, but W_hh is the identity or nearly so: what else could it do to what no token writes?"
    if np.linalg.svd(W_ih, compute_uv=False)[-1] < 0.1:
        return "order is ignored, but some direction of the token is not written at all: the columns of W_ih must be independent"
    return None


_PLANE = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])

# 8.8 the bound


def _norm(W: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(W.double(), ord=2)


def bound(W_ih: Tensor, W_hh: Tensor, distance: int) -> Tensor:
    return _norm(W_hh) ** distance * _norm(W_ih)


def _radius(W: Tensor) -> Tensor:
    return torch.linalg.eigvals(W.double()).abs().max()


_GATE = 0.5 ** (1 / 20)

EXERCISES = [
    Value(
        "8.1",
        "A negative sum is cut off, and the next step sees the state and not the sum.",
        value=1.25,
        tolerance=0.001,
        mistakes=[
            Mistake("that is what comes without max(0, ·): the sum at x = -1 is negative, and the state is 0", 1.375),
            Mistake("the bias 1 is added at every step", 0.5),
            Mistake("the state before it counts too, with weight -0.5", 3),
            Mistake("the recurrent weight is -0.5: a large state pushes the next one down", 6.25),
            Mistake("that is the state after the third token; there is one more", 3.5),
            Mistake("the token comes with the weight 2", 1),
            Mistake("the tokens are read from the first to the last; that is what comes from the last to the first", 0),
            Mistake("these are all the states; the final one is the last of them", [0, 3, 3.5, 1.25]),
        ],
    ),
    Function(
        "8.2",
        "Blocks r, z, n; z keeps; r on the product with its bias: torch's numbers.",
        reference=gru_step,
        cases=[
            (_draw(2, 3), _draw(2, 5), *_parameters(3, 3, 5)),
            (_draw(4, 2), _draw(4, 3), *_parameters(3, 2, 3)),
            (_draw(1, 4), _draw(1, 2), *_parameters(3, 4, 2)),
        ],
        mistakes=[
            Mistake(
                "the first block is taken for the update gate: torch stacks reset, update, candidate", _gru(order="zrn")
            ),
            Mistake(
                "z is on the side of the candidate: in torch's convention z near 1 keeps the old state", _gru(keep="1-z")
            ),
            Mistake(
                "the reset gate multiplies h before the product with the weights, as in the paper; torch has it on the product",
                _gru(reset="state"),
            ),
            Mistake(
                "the bias b_hh of the candidate belongs inside the reset gate's product", _gru(reset="weights")
            ),
            Mistake("the reset gate multiplies the token's part too; it belongs to the state's part alone", _gru(reset="everything")),
            Mistake("the reset gate does nothing: it belongs on the state's part of the candidate", _gru(reset="nothing")),
            Mistake("the candidate goes through the logistic function; it goes through tanh", _gru(candidate="sigmoid")),
            Mistake("the candidate goes through nothing; it goes through tanh", _gru(candidate="nothing")),
            Mistake("the gates are sums as they stand; the logistic function makes them numbers between 0 and 1", _gru(gate="nothing")),
            Mistake("the gates go through tanh; a gate is a number between 0 and 1, from the logistic function", _gru(gate="tanh")),
            Mistake("the gates look at the token alone; they look at the state too", _gru_without("the state in the gates")),
            Mistake("the old state is kept whole; it comes with the weight z", _gru(keep="all")),
            Mistake("this is the candidate; the state moves only part of the way to it", _gru(keep="none")),
            Mistake("the bias b_ih is missing", _gru_without("b_ih")),
            Mistake("the candidate is added whole; it comes with the weight 1 - z", _gru_without("weight")),
            Mistake("the bias b_hh is missing", _gru_without("b_hh")),
            Mistake("both biases are missing", _gru_without("biases")),
            Mistake(
                "the candidate is taken from the first block: torch stacks reset, update, candidate", _gru(order="nrz")
            ),
            Mistake(
                "the blocks are taken as candidate, update, reset: torch stacks reset, update, candidate", _gru(order="nzr")
            ),
            Mistake(
                "both conventions of another text: blocks z, r, n, and z on the side of the candidate", _gru(order="zrn", keep="1-z")
            ),
        ],
    ),
    Function(
        "8.3",
        "The cell is scaled and added to; the state shows what the output gate lets through.",
        reference=lstm_step,
        cases=[
            (_draw(2, 3), _draw(2, 5), _draw(2, 5), *_parameters(4, 3, 5)),
            (_draw(4, 2), _draw(4, 3), _draw(4, 3), *_parameters(4, 2, 3)),
            (_draw(1, 4), _draw(1, 2), _draw(1, 2), *_parameters(4, 4, 2)),
        ],
        mistakes=[
            Mistake(
                "the last two blocks are exchanged: torch stacks input gate, forget gate, candidate, output gate",
                _lstm(order="ifog"),
            ),
            Mistake(
                "the first two blocks are exchanged: torch stacks the input gate before the forget gate", _lstm(order="figo")
            ),
            Mistake(
                "the blocks are taken as forget gate, input gate, output gate, candidate; torch has i, f, g, o",
                _lstm(order="fiog"),
            ),
            Mistake(
                "the blocks are taken as i, g, f, o, as another library stacks them; torch has i, f, g, o", _lstm(order="igfo")
            ),
            Mistake("h shows the old cell; it shows the new one", _lstm(shown="old")),
            Mistake("the candidate goes through the logistic function; it goes through tanh", _lstm(candidate="sigmoid")),
            Mistake("the new cell goes through tanh before the output gate shows it", _lstm(out="nothing")),
            Mistake("the new cell goes through tanh and not through the logistic function before it is shown", _lstm(out="sigmoid")),
            Mistake("the candidate goes through nothing; it goes through tanh", _lstm(candidate="nothing")),
            Mistake("the gates are sums as they stand; the logistic function makes them numbers between 0 and 1", _lstm(gate="nothing")),
            Mistake("the gates go through tanh; a gate is a number between 0 and 1, from the logistic function", _lstm(gate="tanh")),
            Mistake("the pair is (c, h); return h first", _lstm(returned=lambda h, c: (c, h))),
            Mistake("returns h alone; the next step needs c as well", _lstm(returned=lambda h, c: h)),
            Mistake("returns c alone; the pair (h, c) is asked for", _lstm(returned=lambda h, c: c)),
            Mistake("returns h, (h, c), as torch's layers do; the pair (h, c) is asked for", _lstm(returned=lambda h, c: (h, (h, c)))),
            Mistake("h and c are side by side in one matrix; return them as a pair", _lstm(returned=lambda h, c: torch.cat([h, c], dim=1))),
            Mistake("the old cell is kept whole; it passes the forget gate", _lstm_without("forget gate")),
            Mistake("the candidate is added whole; it passes the input gate", _lstm_without("input gate")),
            Mistake("the new cell is shown whole; it passes the output gate", _lstm_without("output gate")),
            Mistake("the bias b_hh is missing", _lstm_without("b_hh")),
            Mistake("the bias b_ih is missing", _lstm_without("b_ih")),
            Mistake("both biases are missing", _lstm_without("biases")),
            Mistake("the state h does not enter: it is multiplied by W_hh", _lstm_without("h")),
            Mistake(
                "h and c have changed places: h is multiplied by W_hh, c is scaled by the forget gate",
                lambda x, h, c, *weights: lstm_step(x, c, h, *weights),
            ),
            Mistake("the input gate is a block of its own, not one minus the forget gate", _coupled),
        ],
    ),
    Function(
        "8.4",
        "Whatever stands in the padding, and however much of it there is, the result is the same.",
        reference=final_states,
        cases=[
            _padded(3, 6, 2, [6, 2, 4]),
            _padded(4, 5, 3, [1, 5, 3, 3]),
            (
                torch.tensor([[[1.0], [1.5], [0.75], [0.375]], [[2.0], [1.0], [0.5], [torch.nan]]]),
                torch.tensor([2, 3]),
            ),
        ],
        mistakes=[
            Mistake(
                "takes the last column: for the shorter sequences that is the state after the padding",
                lambda outputs, lengths: outputs[:, -1],
            ),
            Mistake(
                "one place too far: after 3 real tokens the state is at place 2",
                lambda outputs, lengths: outputs[torch.arange(len(outputs)), lengths.clamp(max=outputs.shape[1] - 1)],
            ),
            Mistake(
                "one place too early: the last real token has been left out",
                lambda outputs, lengths: outputs[torch.arange(len(outputs)), (lengths - 2).clamp(min=0)],
            ),
            Mistake(
                "takes the first column, the state after one token",
                lambda outputs, lengths: outputs[:, 0],
            ),
            Mistake(
                "a mean over the real tokens is a read-out of its own, and not the final state",
                lambda outputs, lengths: torch.stack([o[:n].mean(dim=0) for o, n in zip(outputs, lengths)]),
            ),
            Mistake(
                "takes one column for all sequences; each ends at a place of its own",
                lambda outputs, lengths: outputs[:, lengths.max() - 1],
            ),
            Mistake(
                "adds up the outputs at the real tokens; the one after the last of them is asked for",
                lambda outputs, lengths: torch.stack([o[:n].sum(dim=0) for o, n in zip(outputs, lengths)]),
            ),
            Mistake(
                "a maximum over the real tokens is a read-out of its own, and not the final state",
                lambda outputs, lengths: torch.stack([o[:n].amax(dim=0) for o, n in zip(outputs, lengths)]),
            ),
            Mistake(
                "takes every pair of a sequence and a length: index with both lists at once",
                lambda outputs, lengths: outputs[:, lengths - 1],
            ),
            Mistake(
                "counts the length from the end of the row",
                lambda outputs, lengths: outputs[torch.arange(len(outputs)), -lengths],
            ),
            Mistake(
                "multiplies by a mask: zero times NaN is NaN, so the padding shows",
                lambda outputs, lengths: (outputs * (torch.arange(outputs.shape[1]) == lengths[:, None] - 1)[..., None]).sum(dim=1),
            ),
        ],
    ),
    Function(
        "8.5",
        "A product of numbers below 1: only gates very near 1 make a long memory.",
        reference=kept,
        cases=[(_draw(6, 3).sigmoid(),), (_draw(9, 2).sigmoid(),), (torch.tensor([[0.5, 0.9], [0.5, 1.0], [0.0, 0.8]]),)],
        mistakes=[
            Mistake(
                "row t has its own gate in it: that gate made c_t, and c_t meets the later ones",
                lambda gates: gates.flip(0).cumprod(dim=0).flip(0),
            ),
            Mistake(
                "counts from the start: the cell at t meets the gates that come after t",
                lambda gates: gates.cumprod(dim=0),
            ),
            Mistake(
                "counts from the start, up to the gate before; the cell at t meets the gates that come after t",
                lambda gates: torch.cat([torch.ones_like(gates[:1]), gates[:-1]]).cumprod(dim=0),
            ),
            Mistake(
                "divides by a product of gates, and a gate may be 0; multiply from the far end instead",
                lambda gates: gates.prod(dim=0) / gates.cumprod(dim=0),
            ),
            Mistake(
                "a gate is the share that is kept; you multiply by what it lets go",
                lambda gates: kept(1 - gates),
            ),
            Mistake(
                "adds the gates; each of them multiplies the cell",
                lambda gates: torch.cat([gates[1:], torch.ones_like(gates[:1])]).flip(0).cumsum(dim=0).flip(0),
            ),
            Mistake(
                "that is one step only: the cell meets every later gate",
                lambda gates: torch.cat([gates[1:], torch.ones_like(gates[:1])]),
            ),
            Mistake(
                "the last row is all ones: no gate comes after it",
                lambda gates: torch.cat([kept(gates)[:-1], torch.zeros_like(gates[:1])]),
            ),
            Mistake(
                "drops the last gate; it is row t's own gate that does not count",
                lambda gates: torch.cat([gates[:-1], torch.ones_like(gates[:1])]).flip(0).cumprod(dim=0).flip(0),
            ),
            Mistake(
                "multiplies along the units; the steps are the rows",
                lambda gates: torch.cat([gates[1:], torch.ones_like(gates[:1])]).flip(1).cumprod(dim=1).flip(1),
            ),
            Mistake(
                "the rows come out backwards: row 0 is for the first step",
                lambda gates: kept(gates).flip(0),
            ),
            Mistake(
                "these are gates already; the logistic function has been applied",
                lambda gates: kept(gates.sigmoid()),
            ),
        ],
    ),
    Value(
        "8.6",
        "The logarithm of the half-life: ten times as far costs 2.3 more.",
        value=math.log(_GATE / (1 - _GATE)),
        tolerance=0.01,
        mistakes=[
            Mistake("that is the gate; which bias gives it?", _GATE),
            Mistake("the sign is turned around: a negative bias closes the gate", -math.log(_GATE / (1 - _GATE))),
            Mistake("a gate of 0.95 loses a twentieth at each step; after twenty steps only 36 % is left", math.log(19)),
            Mistake("that leaves 1/e after twenty steps, not a half", -math.log(math.expm1(1 / 20))),
            Mistake("that is the half-life", 20),
            Mistake("the logarithm is the natural one, since σ is made with e; this one is to base 10", math.log10(_GATE / (1 - _GATE))),
            Mistake("the logarithm is the natural one, since σ is made with e; this one is to base 2", math.log2(_GATE / (1 - _GATE))),
            Mistake("with ln 20 the gate is 20/21, and after twenty steps only 38 % is left", math.log(20)),
            Mistake("close: this takes 1 - f for -ln f; solve for f exactly", math.log(20 / math.log(2))),
            Mistake("that is the logarithm of the gate, not the bias that makes it", math.log(_GATE)),
        ],
    ),
    Open(
        "8.7",
        "What tokens write, the network keeps; everything else it may do as it likes. This is a sum, and so order-blind.",
        examine=_examine_blind,
        mistakes=[
            Mistake(
                "order is ignored, but W_hh is the identity or nearly so: what else could it do to what no token writes?",
                (_PLANE, torch.eye(3)),
            ),
            Mistake(
                "order shows: tokens [1, 0] and [0, 0], read in one order and the other, leave states that differ by 0.5",
                (_PLANE, 0.5 * torch.eye(3)),
            ),
            Mistake(
                "order is ignored, but some direction of the token is not written at all: the columns of W_ih must be independent",
                (torch.tensor([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]), torch.diag(torch.tensor([1.0, 0.5, 0.5]))),
            ),
            Mistake("the two are in the other order: W_ih first, W_hh second", (torch.eye(3), _PLANE)),
            Mistake(
                "the transpose of your W_hh would leave the columns of W_ih as they are; W_hh itself does not",
                (_PLANE, torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.7, 0.0, 0.5]])),
            ),
            Mistake(
                "W_ih and W_hh should have shapes (3, 2) and (3, 3), not (2, 3) and (3, 3)",
                (_PLANE.T, torch.diag(torch.tensor([1.0, 1.0, 0.5]))),
            ),
            Mistake("contains NaN or infinity", (_PLANE * torch.nan, torch.eye(3))),
            Mistake("should be a pair, (W_ih, W_hh)", torch.eye(3)),
        ],
    ),
    Function(
        "8.8",
        "Geometric in the distance, with the largest singular value as its ratio.",
        reference=bound,
        cases=[
            (_draw(5, 3), 0.5 * _draw(5, 5), 4),
            (_draw(4, 2), 0.3 * _draw(4, 4), 7),
            (_draw(3, 6), _draw(3, 3), 0),
            (_draw(2, 1), torch.tensor([[0.0, 2.0], [0.0, 0.0]]), 3),
        ],
        mistakes=[
            Mistake(
                "these are Frobenius norms, the root of the sum of squares; the largest singular value is smaller",
                lambda U, W, k: torch.linalg.matrix_norm(W.double()) ** k * torch.linalg.matrix_norm(U.double()),
            ),
            Mistake(
                "this is the spectral radius of W_hh; it can be 0 for a matrix that stretches",
                lambda U, W, k: _radius(W) ** k * _norm(U),
            ),
            Mistake(
                "one factor W_hh too many: at distance 0 there is none",
                lambda U, W, k: bound(U, W, k + 1),
            ),
            Mistake(
                "one factor W_hh too few: at distance k there are k of them",
                lambda U, W, k: bound(U, W, k - 1),
            ),
            Mistake(
                "the token first has to pass W_ih",
                lambda U, W, k: _norm(W) ** k,
            ),
            Mistake(
                "the norm of the power is a bound for the linear network alone; with slopes between, multiply the norms",
                lambda U, W, k: _norm(torch.linalg.matrix_power(W.double(), k)) * _norm(U),
            ),
            Mistake(
                "the norm of the whole product is a bound for the linear network alone; with slopes between, multiply the norms",
                lambda U, W, k: _norm(torch.linalg.matrix_power(W.double(), k) @ U.double()),
            ),
            Mistake(
                "the norm of W_hh is its largest singular value, that of W_ih is another norm here",
                lambda U, W, k: _norm(W) ** k * torch.linalg.matrix_norm(U.double()),
            ),
            Mistake(
                "these are the largest sums of a column; the largest singular value is another norm",
                lambda U, W, k: torch.linalg.matrix_norm(W.double(), ord=1) ** k * torch.linalg.matrix_norm(U.double(), ord=1),
            ),
            Mistake(
                "these are the largest sums of a row; the largest singular value is another norm",
                lambda U, W, k: torch.linalg.matrix_norm(W.double(), ord=math.inf) ** k * torch.linalg.matrix_norm(U.double(), ord=math.inf),
            ),
            Mistake(
                "these are the smallest singular values, the least that a matrix stretches; a bound needs the most",
                lambda U, W, k: torch.linalg.svdvals(W.double())[-1] ** k * torch.linalg.svdvals(U.double())[-1],
            ),
            Mistake(
                "adds the two; maps that follow one another multiply",
                lambda U, W, k: _norm(W) ** k + _norm(U),
            ),
            Mistake(
                "only W_hh comes once for each step; the token passes W_ih once",
                lambda U, W, k: (_norm(W) * _norm(U)) ** k,
            ),
            Mistake(
                "multiplies by the distance; each step multiplies once more, so it is a power",
                lambda U, W, k: k * _norm(W) * _norm(U),
            ),
            Mistake(
                "the roles are exchanged: the token passes W_ih once and W_hh at every later step",
                lambda U, W, k: _norm(U) ** k * _norm(W),
            ),
        ],
    ),
    Choice(
        "8.9",
        "Vanishing can be proved from a norm below 1; exploding cannot be proved from one above it.",
        right="e",
        options={
            "a": "this is the chain rule, step by step back to the first token.",
            "b": "the slope of tanh at a is 1 - tanh²(a), and a diagonal matrix stretches by its largest entry.",
            "c": "the norm of a product is at most the product of the norms, and there are T - 1 factors W_hh.",
            "d": "powers of a number above 1 do.",
            "e": "an upper bound that grows allows its subject to grow; it does not make it.",
        },
    ),
]
