"""Exercises of chapter 5, learned encodings."""

import numpy as np
import torch
from torch import Tensor

from posenc.encodings import sinusoidal_encoding
from posenc.exercises.engine import Choice, Function, Mistake, NotAttempted, Open, Value, as_array

_random = torch.Generator().manual_seed(5)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random)


# 5.1 which rows are trained


def row_counts(lengths: Tensor, max_length: int) -> Tensor:
    return (lengths[:, None] > torch.arange(max_length)).sum(dim=0)


# 5.2 a table that refuses politely


def look_up(table: Tensor, length: int) -> Tensor:
    if length > len(table):
        raise ValueError(f"{length} tokens, but only {len(table)} rows")
    return table[:length]


_LOOKED_UP = (_draw(7, 3), _draw(100, 2))


def _terse(table: Tensor, length: int) -> Tensor:
    if length > len(table):
        raise ValueError("too long")
    return table[:length]


def _examine_look_up(answer: object) -> str | None:
    if not callable(answer):
        return f"should be a function of a table and a length, not of type {type(answer).__name__}"
    for table in _LOOKED_UP:
        rows = len(table)
        for length in (4, 1, rows):
            if fault := _wrong_rows(answer, table, length):
                return fault
        if fault := _impolite(answer, table, rows + 1) or _impolite(answer, table, 3 * rows):
            return fault
        if fault := _wrong_rows(answer, table, 0):
            return fault
    return None


def _wrong_rows(answer: object, table: Tensor, length: int) -> str | None:
    rows, given = len(table), table.clone()
    try:
        result = answer(given, length)
    except NotImplementedError:
        raise
    except Exception as error:
        if length == rows:
            return f"{rows} rows serve the {rows} positions 0 to {rows - 1}: length {rows} must not be refused"
        return f"length {length} of {rows} rows raised {type(error).__name__}: {error}"
    if result is ...:
        raise NotAttempted
    if result is None:
        return "your function returns None: is a return missing?"
    if not torch.equal(given, table):
        return "your function changes the table"
    got, want = as_array(result), table[:length].numpy()
    if length == 0 and isinstance(result, (list, tuple)) and not len(result):
        return None  # a list of no rows has no width to be wrong
    if got is None or got.shape != want.shape:
        shape = "something else" if got is None else f"shape {got.shape}"
        return f"for length {length} and {rows} rows the result should have shape {want.shape}, not {shape}"
    if not np.allclose(got, want):
        return f"for length {length} the result should be rows 0 to {length - 1} of the table, in order"
    return None


def _impolite(answer: object, table: Tensor, length: int) -> str | None:
    rows = len(table)
    try:
        result = answer(table.clone(), length)
    except ValueError as error:
        numbers = {token.strip(".,:;()[]=") for token in str(error).split()}
        missing = [str(number) for number in (length, rows) if not any(str(number) in token for token in numbers)]
        if missing:
            return f"the message should name both numbers, {length} tokens and {rows} rows; {missing[0]} is missing"
        return None
    except Exception as error:
        return f"length {length} of {rows} rows should raise a ValueError, not {type(error).__name__}"
    if isinstance(result, BaseException):
        return "returns the error for a sequence that is too long; raise it"
    if result is None:
        return f"returns None for length {length} of {rows} rows: raise a ValueError instead"
    size = np.shape(as_array(result))
    if size[:1] == (length,):
        return f"invented codes for positions {rows} to {length - 1}: there is no such row, so refuse"
    return f"returned too few rows for length {length} in silence: refuse instead"


# 5.4 effective rank


def _shares(table: Tensor, power: int = 1) -> Tensor:
    sizes = torch.linalg.svdvals(table.double()) ** power
    return sizes / sizes.sum()


def _entropy(shares: Tensor) -> Tensor:
    return -torch.xlogy(shares, shares).sum()


def effective_rank(table: Tensor) -> Tensor:
    return _entropy(_shares(table)).exp()


# 5.5 the same spectrum, other codes


_SPECTRA = (_draw(6, 10).double(), _draw(12, 5).double(), sinusoidal_encoding(16, 32, dtype=torch.float64))


def _examine_twin(answer: object) -> str | None:
    if not callable(answer):
        return f"should be a function of a table, not of type {type(answer).__name__}"
    for table in _SPECTRA:
        rows, width = table.shape
        given = table.clone()
        try:
            result = answer(given)
        except NotImplementedError:
            raise
        except Exception as error:
            return f"for a table of shape ({rows}, {width}) your function raised {type(error).__name__}: {error}"
        if result is ...:
            raise NotAttempted
        if result is None:
            return "your function returns None: is a return missing?"
        if not torch.equal(given, table):
            return "your function changes its input in place; build a new table instead"
        twin = as_array(result)
        if twin is None or twin.shape != (rows, width):
            got = "something else" if twin is None else f"shape {twin.shape}"
            return f"for a table of shape ({rows}, {width}) the twin should have the same shape, not {got}"
        if fault := _no_twin(torch.from_numpy(twin.astype(float)), table):
            return fault
    return None


def _no_twin(twin: Tensor, table: Tensor) -> str | None:
    if not torch.isfinite(twin).all():
        return "the twin contains NaN or infinity"
    wanted, got = torch.linalg.svdvals(table), torch.linalg.svdvals(twin)
    if not torch.allclose(got, wanted, rtol=1e-3, atol=1e-3 * float(wanted[0])):
        worst = int((got - wanted).abs().argmax())
        return f"the singular values differ: number {worst + 1} is {got[worst]:.3g}, and should be {wanted[worst]:.3g}"
    products, before = twin @ twin.T, table @ table.T
    close = 1e-2 * float(before.abs().max())
    if torch.allclose(twin, table, atol=1e-3 * float(wanted[0])):
        return "this is the old table: no code has moved"
    if torch.allclose(products, before, atol=close):
        return "the singular values agree, but so does every product of two codes: only the space was turned"
    if torch.allclose(products.flatten().sort().values, before.flatten().sort().values, atol=close):
        return "these are the old codes in another order: every distance that was there is there still"
    return None


def _raising(table: Tensor) -> Tensor:
    raise RuntimeError("size mismatch")


def _orthogonal(size: int, seed: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).Q


# 5.8 sixteen places, four columns


def _examine_narrow(answer: object) -> str | None:
    table = as_array(answer)
    if table is None or table.ndim != 2:
        return "should be a table of numbers of shape (16, 4)"
    if table.shape != (16, 4):
        return f"should have shape (16, 4), not {table.shape}"
    table = table.astype(float)
    if not np.isfinite(table).all():
        return "contains NaN or infinity"
    loud = np.sqrt((table**2).mean(axis=1))
    if loud.max() > 1 + 1e-6 or loud.min() < 0.5:
        place = int(loud.argmax() if loud.max() > 1 + 1e-6 else loud.argmin())
        return f"the code of place {place} has RMS {loud[place]:.3g}, outside 0.5 to 1"
    apart = np.linalg.norm(table[:, None] - table[None], axis=-1) + np.diag(np.full(16, np.inf))
    p, q = np.unravel_index(apart.argmin(), apart.shape)
    if apart[p, q] < 0.5:
        return f"the codes of places {p} and {q} are only {apart[p, q]:.2g} apart"
    sizes = np.linalg.svd(table, compute_uv=False)
    if sizes[0] > 1.5 * sizes[-1]:
        ratio = f"{sizes[0] / sizes[-1]:.3g}" if sizes[-1] > 1e-6 * sizes[0] else "beyond a million"
        return f"the condition number is {ratio}, more than 1.5: some direction is hardly used"
    for p in range(16):
        beside = [q for q in (p - 1, p + 1) if 0 <= q < 16]
        others = apart[p].copy()
        others[beside] = np.inf
        far, near = max(beside, key=lambda q: apart[p, q]), int(others.argmin())
        if apart[p, far] > apart[p, near] + 5e-3:  # half precision ties no better
            return f"place {near} is nearer to place {p} than its neighbour {far} is"
    return None


def _places(*turns: float) -> Tensor:
    angle = 2 * torch.pi * torch.arange(16, dtype=torch.float64)[:, None] * torch.tensor(turns) / 16
    return torch.cat([angle.sin(), angle.cos()], dim=1)


EXERCISES = [
    Function(
        "5.1",
        "The later a row, the fewer sequences train it: the tail of a table is its least trained part.",
        reference=row_counts,
        cases=[
            (torch.tensor([3, 1, 5, 5]), 7),
            (torch.tensor([2, 9, 4, 1, 9, 6]), 9),
            (torch.tensor([4]), 4),
            (torch.tensor([1, 1, 2]), 5),
        ],
        mistakes=[
            Mistake(
                "counts one row too many: a sequence of 3 tokens uses rows 0, 1 and 2",
                lambda lengths, n: (lengths[:, None] >= torch.arange(n)).sum(dim=0),
            ),
            Mistake(
                "counts only the last row of each sequence; the rows before it are trained too",
                lambda lengths, n: torch.bincount(lengths - 1, minlength=n),
            ),
            Mistake(
                "counts the sequences of exactly that length; longer ones use the row too",
                lambda lengths, n: torch.bincount(lengths, minlength=n)[:n],
            ),
            Mistake(
                "counts the sequences that do not reach the row: turn the comparison around",
                lambda lengths, n: (lengths[:, None] <= torch.arange(n)).sum(dim=0),
            ),
            Mistake(
                "says whether a row is used, not how often",
                lambda lengths, n: (torch.arange(n) < lengths.max()).long(),
            ),
            Mistake(
                "says True where a row is used; the number of sequences that use it is asked for",
                lambda lengths, n: torch.arange(n) < lengths.max(),
            ),
            Mistake(
                "counts padding: a sequence sends nothing to the rows that only its padding reaches",
                lambda lengths, n: (torch.arange(n) < lengths.max()) * len(lengths),
            ),
            Mistake(
                "gives the share of the sequences; their number is asked for",
                lambda lengths, n: row_counts(lengths, n) / len(lengths),
            ),
            Mistake(
                "ends with the longest sequence; the rows after it have a count too, zero",
                lambda lengths, n: row_counts(lengths, int(lengths.max())),
            ),
            Mistake(
                "numbers the rows from 1: row 0 is the one that a sequence of one token uses",
                lambda lengths, n: row_counts(lengths, n + 1)[1:],
            ),
            Mistake(
                "counts along the wrong axis: the rows that each sequence uses, one number a sequence",
                lambda lengths, n: lengths,
            ),
            Mistake(
                "is still the table of who uses what; count its True along the sequences",
                lambda lengths, n: lengths[:, None] > torch.arange(n),
            ),
            Mistake(
                "counts from the far end: row 0 is the one that every sequence uses",
                lambda lengths, n: row_counts(lengths, n).flip(0),
            ),
        ],
    ),
    Open(
        "5.2",
        "Every length up to the number of rows is served, and the first one past it is refused by name.",
        examine=_examine_look_up,
        mistakes=[
            Mistake(
                "returned too few rows for length 8 in silence: refuse instead",
                lambda table, length: table[:length],
            ),
            Mistake(
                "length 8 of 7 rows should raise a ValueError, not IndexError",
                lambda table, length: table[torch.arange(length)],
            ),
            Mistake(
                "invented codes for positions 7 to 7: there is no such row, so refuse",
                lambda table, length: table[torch.arange(length).clamp(max=len(table) - 1)],
            ),
            Mistake(
                "7 rows serve the 7 positions 0 to 6: length 7 must not be refused",
                lambda table, length: look_up(table[: len(table) - 1], length),
            ),
            Mistake(
                "the message should name both numbers, 8 tokens and 7 rows; 8 is missing",
                _terse,
            ),
            Mistake(
                "returns the error for a sequence that is too long; raise it",
                lambda table, length: table[:length] if length <= len(table) else ValueError(length, len(table)),
            ),
            Mistake(
                "returns None for length 8 of 7 rows: raise a ValueError instead",
                lambda table, length: table[:length] if length <= len(table) else None,
            ),
            Mistake(
                "for length 4 and 7 rows the result should have shape (4, 3), not shape (3,)",
                lambda table, length: table[length],
            ),
            Mistake(
                "for length 4 the result should be rows 0 to 3 of the table, in order",
                lambda table, length: table[1 : length + 1],
            ),
        ],
    ),
    Value(
        "5.3",
        "With two tokens the other one is the mirror image: knowing the bag and oneself is knowing everything.",
        value=1,
        tolerance=0.001,
        mistakes=[
            Mistake("one half would be right if the model did not know which of the two tokens it answers for", 0.5),
            Mistake("0.1 is blind guessing; an order-blind model knows which symbols there are", 0.1),
            Mistake("0.55 is the share of the commonest symbol of two; but the token knows its own symbol", 0.55),
            Mistake("that is the ceiling for length 16; the shorter the sequence, the higher it is", 0.241),
            Mistake("a token never has to answer with itself at even length", 0),
            Mistake("give it as a share, between 0 and 1", 100),
        ],
    ),
    Function(
        "5.4",
        "Between 1 and the number of rows or columns: how many directions the codes use, weighed by how much.",
        reference=effective_rank,
        cases=[
            # In double precision: roots of the eigenvalues of a Gram matrix are accurate enough then.
            (sinusoidal_encoding(9, 6, dtype=torch.float64),),
            (_draw(5, 8).double(),),
            ((_draw(12, 4) * torch.tensor([9.0, 3.0, 1.0, 0.2])).double(),),
            (torch.eye(6, dtype=torch.float64)[:, :4],),
            (torch.eye(5, dtype=torch.float64)[:, :3] * torch.tensor([3.0, 1.0, 0.0]),),
        ],
        mistakes=[
            Mistake(
                "a direction with singular value 0 gives 0 · ln 0, which is NaN on a computer: leave it out",
                lambda table: (-(_shares(table) * _shares(table).log()).sum()).exp(),
            ),
            Mistake(
                "this is the entropy: the effective rank is its exponential",
                lambda table: _entropy(_shares(table)),
            ),
            Mistake(
                "these are shares of the squared singular values (or of eigenvalues of the Gram matrix): take the values themselves",
                lambda table: _entropy(_shares(table, 2)).exp(),
            ),
            Mistake(
                "the singular values have to be divided by their sum first",
                lambda table: _entropy(torch.linalg.svdvals(table.double())).exp(),
            ),
            Mistake(
                "the singular values are divided by the largest; divide by their sum",
                lambda table: _entropy(torch.linalg.svdvals(table.double()) / torch.linalg.svdvals(table.double())[0]).exp(),
            ),
            Mistake(
                "the entropy is in bits, and then e is raised to it: use one base for both",
                lambda table: (_entropy(_shares(table)) / np.log(2)).exp(),
            ),
            Mistake(
                "the sign of the entropy is turned around",
                lambda table: (-_entropy(_shares(table))).exp(),
            ),
            Mistake(
                "this is the rank, which counts a faint direction as much as a strong one",
                lambda table: torch.linalg.matrix_rank(table.double()),
            ),
            Mistake(
                "this is the condition number",
                lambda table: torch.linalg.cond(table.double()),
            ),
            Mistake(
                "this is the share of the directions: do not divide by their number",
                lambda table: effective_rank(table) / min(table.shape),
            ),
            Mistake(
                "the shares come from a softmax; divide the singular values by their sum",
                lambda table: _entropy(torch.linalg.svdvals(table.double()).softmax(dim=0)).exp(),
            ),
            Mistake(
                "this is the participation ratio, another count of directions; the effective rank takes the entropy",
                lambda table: 1 / _shares(table).square().sum(),
            ),
            Mistake(
                "this is the participation ratio of the squares, another count of directions; the effective rank takes the entropy",
                lambda table: 1 / _shares(table, 2).square().sum(),
            ),
            Mistake(
                "this is the stable rank, another count of directions; the effective rank takes the entropy",
                lambda table: 1 / _shares(table, 2).max(),
            ),
            Mistake(
                "the mean code was taken off first; the table is used as it is",
                lambda table: effective_rank(table - table.mean(dim=0)),
            ),
        ],
    ),
    Open(
        "5.5",
        "Same singular values, other distances: conditioning held still while geometry moves.",
        examine=_examine_twin,
        mistakes=[
            Mistake(
                "these are the old codes in another order: every distance that was there is there still",
                lambda table: table.flip(0),
            ),
            Mistake(
                "the singular values agree, but so does every product of two codes: only the space was turned",
                lambda table: table @ _orthogonal(table.shape[1], 1),
            ),
            Mistake(
                "for a table of shape (6, 10) the twin should have the same shape, not shape (10, 6)",
                lambda table: table.T,
            ),
            Mistake(
                "the singular values differ: number 1 is 1, and should be 4.92",
                lambda table: torch.linalg.qr(table).Q if table.shape[0] >= table.shape[1] else torch.linalg.qr(table.T).Q.T,
            ),
            Mistake(
                "the twin contains NaN or infinity",
                lambda table: table / 0 * 0,
            ),
            Mistake(
                "this is the old table: no code has moved",
                lambda table: table.clone(),
            ),
            Mistake(
                "for a table of shape (12, 5) your function raised RuntimeError: size mismatch",
                lambda table: _raising(table) if len(table) > table.shape[1] else _orthogonal(len(table), 1) @ table,
            ),
        ],
    ),
    Value(
        "5.6",
        "Nothing was learned in that row, and yet it moved.",
        value=0.9999**1000,
        tolerance=0.001,
        mistakes=[
            Mistake("no gradient is not no change: 1 would be no step of AdamW, and 0.9999 one; there are a thousand", 1),
            Mistake("each step takes off learning rate times decay, 0.0001 of what is there; what is left is a power", 0.9),
            Mistake("the learning rate multiplies the decay: each step takes off a ten-thousandth, not a tenth", 0),
            Mistake("that is what has gone; what is left?", 1 - 0.9999**1000),
            Mistake("each step takes off 0.001 · 0.1, not 0.001 alone", 0.999**1000),
            Mistake("decay shrinks: each step multiplies by 1 - 0.0001, not by 1 + 0.0001", 1.0001**1000),
            Mistake("that is nearly what has gone, a thousand times 0.0001; what is left, and as a power?", 0.1),
        ],
    ),
    Choice(
        "5.7",
        "What a model can express and what a training run finds in its steps are two things.",
        right="4",
        options={
            "1": "it is: up to n places the formula is a table of n rows, and nothing else.",
            "2": "a parameter may take any value, the sinusoid's among them.",
            "3": "a minimum over a larger set is not larger. True, of the minimum.",
            "4": "line 3 is about the best that exists; a run of given steps need not get there, from one start or the other.",
            "5": "it is not proved, but it rests on the line before it. Look for the first false line.",
        },
    ),
    Open(
        "5.8",
        "Distinct, evenly spread over its four directions and near to its neighbours: width 4 is enough for 16 places.",
        examine=_examine_narrow,
        mistakes=[
            Mistake(
                "the codes of places 1 and 7 are only 0.29 apart",
                sinusoidal_encoding(16, 4, dtype=torch.float64),
            ),
            Mistake(
                "the condition number is 2.12, more than 1.5: some direction is hardly used",
                sinusoidal_encoding(16, 4, base=100.0, dtype=torch.float64),
            ),
            Mistake(
                "the codes of places 0 and 1 are only 0 apart",
                torch.ones(16, 4),
            ),
            Mistake(
                "the code of place 0 has RMS 0, outside 0.5 to 1",
                torch.arange(16)[:, None] // 2 ** torch.arange(4) % 2,
            ),
            Mistake(
                "place 3 is nearer to place 1 than its neighbour 2 is",
                2 * (torch.arange(16)[:, None] // 2 ** torch.arange(4) % 2) - 1,
            ),
            Mistake(
                "should have shape (16, 4), not (4, 16)",
                _places(1, 2).T,
            ),
            Mistake(
                "contains NaN or infinity",
                torch.full((16, 4), torch.nan),
            ),
        ],
    ),
]
