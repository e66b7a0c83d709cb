"""Exercises of chapter 3, designing an encoding."""

import numpy as np
import torch
from torch import Tensor

from posenc.encodings import sinusoidal_encoding
from posenc.exercises.engine import Choice, Function, Mistake, NotAttempted, Open, Value, as_array

_random = torch.Generator().manual_seed(3)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random)


# 3.1 binary counting, and Gray's way


def _bits(places: Tensor, bits: int) -> Tensor:
    return places[:, None] // 2 ** torch.arange(bits) % 2


def _gray(places: Tensor, bits: int) -> Tensor:
    return _bits(places ^ (places >> 1), bits)


def binary_table(length: int, bits: int) -> Tensor:
    return _bits(torch.arange(length), bits)


def gray_table(length: int, bits: int) -> Tensor:
    return _gray(torch.arange(length), bits)


def _gray_of_the_highest(length: int, bits: int) -> Tensor:
    places = torch.arange(length)
    dropped = torch.tensor([max(int(p).bit_length() - bits, 0) for p in places])
    return _bits((places ^ (places >> 1)) >> dropped, bits)


# 3.3 unevenness of a gap


def _distances(codes: Tensor, k: int) -> Tensor:
    return (codes[k:] - codes[:-k]).norm(dim=-1)


def _range(values: Tensor) -> Tensor:
    return values.max() - values.min()


def unevenness(codes: Tensor, k: int) -> Tensor:
    return _range(_distances(codes, k))


# 3.4 loudness


def set_loudness(table: Tensor, target: float) -> Tensor:
    return table * (target / table.square().mean().sqrt())


# 3.5 a projected concatenation as a sum


def project_pair(x: Tensor, p: Tensor, weight: Tensor) -> Tensor:
    return torch.cat([x, p], dim=-1) @ weight


# 3.7 a code of one's own

_SIZES = ((8, 16), (64, 16), (512, 16), (20, 24), (33, 24), (100, 64), (300, 64))


def _examine_code(encoding: object) -> str | None:
    if not callable(encoding):
        return f"should be a function of a length and a width, not of type {type(encoding).__name__}"
    tables = {}
    for length, width in _SIZES:
        result = encoding(length, width)
        if result is ...:
            raise NotAttempted
        if result is None:
            return "your function returns None: is a return missing?"
        table = as_array(result)
        if table is None or table.shape != (length, width):
            got = "something else" if table is None else f"shape {table.shape}"
            return f"for length {length} and width {width} the table should be ({length}, {width}), not {got}"
        if not np.isfinite(table.astype(float)).all():
            return f"the table for length {length} contains NaN or infinity"
        tables[length, width] = table.astype(float)
    again = as_array(encoding(*_SIZES[0]))
    if not np.allclose(again, tables[_SIZES[0]], atol=1e-6):
        return "two calls give two different tables: a code must be fixed, so seed what is random inside the function"
    for (length, width), table in tables.items():
        longest = max((other for (_, w), other in tables.items() if w == width), key=len)
        if not np.allclose(table, longest[:length], atol=1e-4):
            return f"wish 3 fails at width {width}: the code of a place changes with the length of the text"
    return next((fault for table in tables.values() if (fault := _wish_failed(table))), None)


def _wish_failed(table: np.ndarray) -> str | None:
    length, width = table.shape
    at = f"at length {length}, width {width}"
    loudness = np.sqrt((table**2).mean(axis=1))
    if loudness.max() > 1 + 1e-6:
        return f"wish 2 fails {at}: the code of place {loudness.argmax()} has RMS {loudness.max():.3g}, louder than a word"
    apart = np.linalg.norm(table[:, None] - table[None], axis=-1)
    gap = np.abs(np.arange(length)[:, None] - np.arange(length))
    p, q = np.unravel_index(np.where(gap == 0, np.inf, apart).argmin(), apart.shape)
    if apart[p, q] < 0.1:
        return f"wish 1 fails {at}: the codes of places {p} and {q} are only {apart[p, q]:.2g} apart"
    if loudness.min() < 0.1:
        return f"wish 2 fails {at}: the code of place {loudness.argmin()} has RMS {loudness.min():.2g}, too quiet to hear"
    for k in range(1, length):
        same = np.diagonal(apart, k)
        if same.max() - same.min() > 1e-3:
            return (
                f"wish 4 fails {at}: codes {k} apart are between {same.min():.5g} and {same.max():.5g} from each other, "
                "depending on where they stand"
            )
    by_gap = [np.diagonal(apart, k).mean() for k in range(1, length)]
    if min(by_gap[1:]) <= by_gap[0] + 1e-6:
        return f"wish 5 fails {at}: codes {np.argmin(by_gap[1:]) + 2} places apart are as near as neighbours, or nearer"
    paper = sinusoidal_encoding(length, width, dtype=torch.float64).numpy()
    if np.allclose(_sorted_columns(table), _sorted_columns(paper), atol=1e-4):
        return "grants all five wishes, but it is the paper's sinusoid: change something about it, such as its frequencies"
    return None


def _sorted_columns(table: np.ndarray) -> np.ndarray:
    """The same columns in one agreed order, so that two orders of them can be compared."""
    return table[:, np.lexsort(np.round(table, 3))]


def _index(length: int, width: int) -> Tensor:
    return torch.arange(length, dtype=torch.float64)[:, None].expand(length, width)


EXERCISES = [
    Function(
        "3.1",
        "Every step flips one bit, and yet places far apart can be one flip apart too: Gray code evens out the single step, not every gap.",
        reference=gray_table,
        cases=[(11, 4), (6, 5), (1, 3), (40, 6), (20, 3)],
        mistakes=[
            Mistake(
                "this is plain binary: a Gray bit is 1 when two bits next to each other differ",
                binary_table,
            ),
            Mistake(
                "the bits are right, but the highest comes first: column 0 should hold the lowest",
                lambda length, bits: gray_table(length, bits).flip(-1),
            ),
            Mistake(
                "each bit is compared with the one below it: compare bit b with bit b + 1",
                lambda length, bits: _bits(torch.arange(length) ^ (torch.arange(length) << 1), bits),
            ),
            Mistake(
                "a difference of two bits can be -1: a Gray bit is 1 whenever they differ",
                lambda length, bits: torch.diff(_bits(torch.arange(length), bits + 1)),
            ),
            Mistake(
                "this is 1 when either bit is 1: a Gray bit is 1 when one of the two is and the other is not",
                lambda length, bits: _bits(torch.arange(length) | (torch.arange(length) >> 1), bits),
            ),
            Mistake(
                "this is 1 when both bits are 1: a Gray bit is 1 when one of the two is and the other is not",
                lambda length, bits: _bits(torch.arange(length) & (torch.arange(length) >> 1), bits),
            ),
            Mistake(
                "these are the Gray codes as numbers: write out the bits of each, one bit to a column",
                lambda length, bits: torch.arange(length) ^ (torch.arange(length) >> 1),
            ),
            Mistake(
                "where p has more bits than there are columns, the highest are kept: the lowest are asked for",
                _gray_of_the_highest,
            ),
            Mistake(
                "0 and 1 are exchanged: the Gray bit is 1 where the two bits differ",
                lambda length, bits: 1 - gray_table(length, bits),
            ),
            Mistake(
                "counts from 1: the first row should be position 0, all zeros",
                lambda length, bits: _gray(torch.arange(1, length + 1), bits),
            ),
            Mistake(
                "the last column is compared with nothing: it needs the bit above it, although that is not in the table",
                lambda length, bits: _gray(torch.arange(length) % 2**bits, bits),
            ),
            Mistake(
                "bits and positions have changed places: one row for each position",
                lambda length, bits: gray_table(length, bits).T,
            ),
        ],
    ),
    Value(
        "3.2",
        "From 4095 to 4096 all thirteen bits turn over.",
        value=13,
        tolerance=0.01,
        mistakes=[
            Mistake("12 is the number of ones at the low end of 4095; the zero above them flips too", 12),
            Mistake("that would be the step from 8191 to 8192, which is past the end of the text", 14),
            Mistake("that is where the step begins; how many bits flip there?", 4095),
            Mistake("that is where the step leads; how many bits flip on the way?", 4096),
            Mistake("one bit is the smallest step; the question is for the largest", 1),
            Mistake("that is the bits of a thousand places; this text has 5000", 10),
            Mistake("that is the number of places; how many bits flip in one step?", 5000),
            Mistake("that is the base-2 logarithm of 5000, and bits are whole: which step flips them all?", np.log2(5000)),
        ],
    ),
    Function(
        "3.3",
        "Zero for every gap would mean: the same gap is the same distance wherever you stand.",
        reference=unevenness,
        cases=[(_draw(9, 4), 1), (_draw(12, 5), 3), (_draw(7, 3), 5), (_draw(20, 7), 2)],
        mistakes=[
            Mistake(
                "these are squared distances: take the square root before comparing",
                lambda codes, k: _range(_distances(codes, k).square()),
            ),
            Mistake(
                "this wraps around: the last places have nothing k further on",
                lambda codes, k: _range((codes.roll(-k, 0) - codes).norm(dim=-1)),
            ),
            Mistake(
                "this is the standard deviation of the distances: take the largest minus the smallest",
                lambda codes, k: _distances(codes, k).std(),
            ),
            Mistake(
                "this is the standard deviation (as NumPy takes it) of the distances: take the largest minus the smallest",
                lambda codes, k: _distances(codes, k).std(correction=0),
            ),
            Mistake(
                "this is the largest distance: subtract the smallest",
                lambda codes, k: _distances(codes, k).max(),
            ),
            Mistake(
                "this is the smallest distance: subtract it from the largest",
                lambda codes, k: _distances(codes, k).min(),
            ),
            Mistake(
                "this is the variance of the distances: take the largest minus the smallest",
                lambda codes, k: _distances(codes, k).var(),
            ),
            Mistake(
                "this divides the largest distance by the smallest: subtract",
                lambda codes, k: _distances(codes, k).max() / _distances(codes, k).min(),
            ),
            Mistake(
                "the root was taken of the difference of the squares: take the root of each distance first, then subtract",
                lambda codes, k: _range(_distances(codes, k).square()).sqrt(),
            ),
            Mistake(
                "this is the range of the single entries: make one distance of each pair of codes first",
                lambda codes, k: _range(codes[k:] - codes[:-k]),
            ),
            Mistake(
                "these are dot products of codes, not distances between them",
                lambda codes, k: _range((codes[k:] * codes[:-k]).sum(-1)),
            ),
            Mistake(
                "this takes in every pair k or more places apart: take those exactly k apart",
                lambda codes, k: _range(torch.cat([_distances(codes, gap) for gap in range(k, len(codes))])),
            ),
            Mistake(
                "one pair is missing at the end: there are n - k pairs",
                lambda codes, k: _range(_distances(codes[:-1], k)),
            ),
            Mistake(
                "these are codes k + 1 places apart: the partner of place p is p + k",
                lambda codes, k: _range(_distances(codes, k + 1)),
            ),
            Mistake(
                "this adds absolute differences; the Euclidean distance adds squares and takes the root",
                lambda codes, k: _range((codes[k:] - codes[:-k]).abs().sum(-1)),
            ),
            Mistake(
                "this compares codes one place apart: use the gap k",
                lambda codes, k: _range(_distances(codes, 1)),
            ),
            Mistake(
                "this compares lengths of codes, not distances between them",
                lambda codes, k: _range((codes[k:].norm(dim=-1) - codes[:-k].norm(dim=-1)).abs()),
            ),
            Mistake(
                "the norm runs down the positions: take it along the last axis, one distance for each pair of codes",
                lambda codes, k: _range((codes[k:] - codes[:-k]).norm(dim=0)),
            ),
            Mistake(
                "this is the RMS of the differences: the Euclidean distance adds the squares, without dividing by d",
                lambda codes, k: _range(_distances(codes, k) / codes.shape[-1] ** 0.5),
            ),
            Mistake(
                "the sign is turned around: largest minus smallest is never negative",
                lambda codes, k: -unevenness(codes, k),
            ),
        ],
    ),
    Function(
        "3.4",
        "The factor √d_model does this once, for a table whose RMS is 1/√d_model.",
        reference=set_loudness,
        cases=[(_draw(5, 8) + 0.7, 1.3), (_draw(7, 3) * 0.1 - 0.2, 0.707), (_draw(4, 6), 2.0)],
        mistakes=[
            Mistake(
                "each row was given the same loudness: one factor for the whole table, so that words keep their sizes",
                lambda table, target: target * table / table.square().mean(-1, keepdim=True).sqrt(),
            ),
            Mistake(
                "each column was given the same loudness: one factor for the whole table",
                lambda table, target: target * table / table.square().mean(0, keepdim=True).sqrt(),
            ),
            Mistake(
                "divides by the standard deviation, which leaves the mean out: RMS is taken about zero",
                lambda table, target: table * (target / table.std()),
            ),
            Mistake(
                "divides by the standard deviation, as NumPy takes it, which leaves the mean out: RMS is taken about zero",
                lambda table, target: table * (target / table.std(correction=0)),
            ),
            Mistake(
                "subtracts the mean: only multiply",
                lambda table, target: set_loudness(table - table.mean(), target),
            ),
            Mistake(
                "divides by the norm of the table: RMS is the norm divided by the root of the number of entries",
                lambda table, target: table * (target / table.norm()),
            ),
            Mistake(
                "divides by the norm of each row: take one RMS over all entries",
                lambda table, target: target * table / table.norm(dim=-1, keepdim=True),
            ),
            Mistake(
                "divides by the mean square: take its root",
                lambda table, target: table * (target / table.square().mean()),
            ),
            Mistake(
                "divides by the mean of the absolute values: RMS is the root of the mean of the squares",
                lambda table, target: table * (target / table.abs().mean()),
            ),
            Mistake(
                "the factor is upside down: the target over the present RMS",
                lambda table, target: table * (table.square().mean().sqrt() / target),
            ),
            Mistake(
                "multiplies by the target without dividing by the present RMS",
                lambda table, target: table * target,
            ),
            Mistake(
                "divides by the norm over √d only: RMS is taken over all n times d entries",
                lambda table, target: table * (target / (table.norm() / table.shape[-1] ** 0.5)),
            ),
            Mistake(
                "divides by the norm over √n only: RMS is taken over all n times d entries",
                lambda table, target: table * (target / (table.norm() / len(table) ** 0.5)),
            ),
            Mistake(
                "scales the largest entry to the target: RMS is the root of the mean of the squares",
                lambda table, target: table * (target / table.abs().max()),
            ),
            Mistake(
                "the root is taken of the target too: only the mean square needs it",
                lambda table, target: table * (target / table.square().mean()).sqrt(),
            ),
            Mistake(
                "adds what is missing: multiply, so that zero stays zero",
                lambda table, target: table + (target - table.square().mean().sqrt()),
            ),
            Mistake(
                "this is the factor alone: multiply the table by it",
                lambda table, target: target / table.square().mean().sqrt(),
            ),
            Mistake(
                "the RMS is right and every sign is turned round: the factor is positive",
                lambda table, target: -set_loudness(table, target),
            ),
            Mistake(
                "multiplies by √d: that is right only for a table whose RMS is 1/√d",
                lambda table, target: table * table.shape[-1] ** 0.5,
            ),
        ],
    ),
    Function(
        "3.5",
        "Concatenating and projecting is adding two projections.",
        reference=project_pair,
        cases=[
            (_draw(5, 4), _draw(5, 3), _draw(7, 6)),
            (_draw(2, 3), _draw(2, 3), _draw(6, 5)),
            (_draw(1, 2), _draw(1, 6), _draw(8, 3)),
        ],
        mistakes=[
            Mistake(
                "the code's rows of the weight come after the words' rows: the words take the first D",
                lambda x, p, weight: torch.cat([p, x], dim=-1) @ weight,
            ),
            Mistake(
                "both parts go through the words' rows of the weight: the codes take the rows after them",
                lambda x, p, weight: x @ weight[: x.shape[-1]] + p @ weight[: p.shape[-1]],
            ),
            Mistake(
                "the codes are left out",
                lambda x, p, weight: x @ weight[: x.shape[-1]],
            ),
            Mistake(
                "the words are left out",
                lambda x, p, weight: p @ weight[x.shape[-1] :],
            ),
            Mistake(
                "the two projections are subtracted: add them",
                lambda x, p, weight: x @ weight[: x.shape[-1]] - p @ weight[x.shape[-1] :],
            ),
            Mistake(
                "the two projections are multiplied: add them",
                lambda x, p, weight: (x @ weight[: x.shape[-1]]) * (p @ weight[x.shape[-1] :]),
            ),
            Mistake(
                "the two projections are returned as two results: add them",
                lambda x, p, weight: (x @ weight[: x.shape[-1]], p @ weight[x.shape[-1] :]),
            ),
            Mistake(
                "the two projections stand side by side: add them",
                lambda x, p, weight: torch.cat([x @ weight[: x.shape[-1]], p @ weight[x.shape[-1] :]], dim=-1),
            ),
        ],
    ),
    Choice(
        "3.6",
        "A matrix with more rows than columns loses something; it is the words and codes in use that may not.",
        right="4",
        options={
            "1": "this is Proposition 3.5, the rule for multiplying block matrices.",
            "2": "x times I plus p times I is x + p. This is how adding is a special case of concatenating.",
            "3": "laying x and p side by side does keep both. The loss, if any, comes later.",
            "4": "it sends [x | -x] to zero, and no matrix takes zero back to that.",
            "5": "it is false, but it follows from the line before it. Look for the first false line.",
        },
    ),
    Open(
        "3.7",
        "Bounded, fixed, even and near to its neighbours: this code grants five wishes at every length that was tried.",
        examine=_examine_code,
        mistakes=[
            Mistake(
                "wish 2 fails at length 8, width 16: the code of place 7 has RMS 7, louder than a word",
                _index,
            ),
            Mistake(
                "wish 3 fails at width 16: the code of a place changes with the length of the text",
                lambda length, width: _index(length, width) / max(length - 1, 1),
            ),
            Mistake(
                "wish 3 fails at width 64: the code of a place changes with the length of the text",
                lambda length, width: sinusoidal_encoding(length, width, base=100.0 if width < 64 else 100.0 + length),
            ),
            Mistake(
                "wish 2 fails at length 8, width 16: the code of place 0 has RMS 0, too quiet to hear",
                binary_table,
            ),
            Mistake(
                "wish 4 fails at length 8, width 16: codes 1 apart are between 2 and 3.4641 from each other, "
                "depending on where they stand",
                lambda length, width: 2 * binary_table(length, width) - 1,
            ),
            Mistake(
                "wish 1 fails at length 8, width 16: the codes of places 0 and 1 are only 0 apart",
                lambda length, width: torch.ones(length, width),
            ),
            Mistake(
                "wish 5 fails at length 8, width 16: codes 6 places apart are as near as neighbours, or nearer",
                lambda length, width: sinusoidal_encoding(length, width, base=1.0),
            ),
            Mistake(
                "wish 5 fails at length 8, width 16: codes 7 places apart are as near as neighbours, or nearer",
                lambda length, width: sinusoidal_encoding(length, width, base=1.3),
            ),
            Mistake(
                "two calls give two different tables: a code must be fixed, so seed what is random inside the function",
                lambda length, width: torch.randn(length, width) / 2,
            ),
            Mistake(
                "grants all five wishes, but it is the paper's sinusoid: change something about it, such as its frequencies",
                lambda length, width: sinusoidal_encoding(length, width, layout="concat"),
            ),
            Mistake(
                "for length 8 and width 16 the table should be (8, 16), not shape (16, 8)",
                lambda length, width: sinusoidal_encoding(length, width, base=100.0).T,
            ),
            Mistake(
                "the table for length 8 contains NaN or infinity",
                lambda length, width: torch.full((length, width), torch.nan),
            ),
        ],
    ),
]
