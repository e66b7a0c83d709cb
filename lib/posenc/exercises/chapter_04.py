"""Exercises of chapter 4, Sinusoidal encodings. All of their code is in the layout "concat": sines, then cosines."""

import math

import numpy as np
import torch
from torch import Tensor

from posenc.exercises.engine import Choice, Function, Mistake, Open, Value, as_array


def frequencies(d_model: int, base: float = 10000.0) -> Tensor:
    return base ** (-2 * torch.arange(d_model // 2, dtype=torch.float64) / d_model)


def from_phase(phase: Tensor) -> Tensor:
    return torch.cat([phase.sin(), phase.cos()], dim=1)


def side_by_side(width: int) -> Tensor:
    """Where the columns of the interleaved layout stand in the layout "concat"."""
    return torch.arange(width).unflatten(0, (2, -1)).T.flatten()


# 4.1 the table


def table(length: int, d_model: int, base: float) -> Tensor:
    return from_phase(torch.arange(length)[:, None] * frequencies(d_model, base))


def table_by_column_number(length: int, d_model: int, base: float) -> Tensor:
    column = torch.arange(d_model, dtype=torch.float64)
    phase = torch.arange(length)[:, None] * base ** (-2 * column / d_model)
    return torch.cat([phase[:, 0::2].sin(), phase[:, 1::2].cos()], dim=1)


def table_with_cosines_going_on(length: int, d_model: int, base: float) -> Tensor:
    phase = torch.arange(length)[:, None] * base ** (-2 * torch.arange(d_model, dtype=torch.float64) / d_model)
    return torch.cat([phase[:, : d_model // 2].sin(), phase[:, d_model // 2 :].cos()], dim=1)


def table_without_the_two(length: int, d_model: int, base: float) -> Tensor:
    return from_phase(torch.arange(length)[:, None] * frequencies(d_model, base).sqrt())


def table_with_own_cosine(length: int, d_model: int, base: float) -> Tensor:
    column = torch.arange(d_model, dtype=torch.float64)
    phase = torch.arange(length)[:, None] * base ** (-column / d_model)
    return torch.cat([phase[:, 0::2].sin(), phase[:, 1::2].cos()], dim=1)


def table_to_the_last_frequency(length: int, d_model: int, base: float) -> Tensor:
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    return from_phase(torch.arange(length)[:, None] * base ** (-pair / (d_model // 2 - 1)))


def table_floor_divided(length: int, d_model: int, base: float) -> Tensor:
    step = -math.log(base) / d_model // 2
    return from_phase(torch.arange(length)[:, None] * torch.exp(2 * torch.arange(d_model // 2) * step))


def table_floor_divided_pairs(length: int, d_model: int, base: float) -> Tensor:
    step = -math.log(base) / d_model // 2
    return from_phase(torch.arange(length)[:, None] * torch.exp(torch.arange(d_model // 2) * step))


# 4.3 the shift, 4.4 the mirror


def in_blocks(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    top = torch.cat([torch.diag(a), torch.diag(b)], dim=1)
    return torch.cat([top, torch.cat([torch.diag(c), torch.diag(d)], dim=1)], dim=0)


def turned(angle: Tensor) -> Tensor:
    return in_blocks(angle.cos(), angle.sin(), -angle.sin(), angle.cos())


def without_the_minus(angle: Tensor) -> Tensor:
    return in_blocks(angle.cos(), angle.sin(), angle.sin(), angle.cos())


def shift(d_model: int, k: int) -> Tensor:
    return turned(k * frequencies(d_model))


def mirrored(angle: Tensor) -> Tensor:
    return in_blocks(-angle.cos(), angle.sin(), angle.sin(), angle.cos())


def turned_back(angle: Tensor) -> Tensor:
    return in_blocks(-angle.cos(), -angle.sin(), angle.sin(), angle.cos())


def mirror(m: int, d_model: int) -> Tensor:
    return mirrored(m * frequencies(d_model))


def mirror_at_zero(m: int, d_model: int) -> Tensor:
    one = torch.ones(d_model // 2, dtype=torch.float64)
    return torch.diag(torch.cat([-one, one]))


# 4.5 the frequencies


def seen_through(matrix: Tensor, dials: list[float], length: int, radii: list[float], start: float) -> Tensor:
    phase = torch.arange(length)[:, None] * torch.tensor(dials, dtype=torch.float64) + start
    size = torch.tensor(radii, dtype=torch.float64)
    return torch.cat([size * phase.sin(), size * phase.cos()], dim=1) @ matrix


def some_rotation(width: int, seed: int) -> Tensor:
    numbers = torch.from_numpy(np.random.default_rng(seed).normal(size=(width, width)))
    return torch.linalg.qr(numbers)[0]


def eigen_angles(codes: Tensor) -> Tensor:
    step = torch.linalg.lstsq(codes[:-1], codes[1:]).solution
    return torch.linalg.eigvals(step).angle().sort().values


def recover(codes: Tensor) -> Tensor:
    return eigen_angles(codes.double())[codes.shape[1] // 2 :]


def fourier_peaks(codes: Tensor) -> Tensor:
    heights = torch.fft.rfft(codes.double(), dim=0).abs().mean(dim=1)
    return heights.topk(codes.shape[1] // 2).indices.sort().values * (2 * math.pi / len(codes))


HIDDEN = [
    (seen_through(some_rotation(4, 1), [0.45, 1.7], 30, [1.0, 1.0], 0.0),),
    (seen_through(some_rotation(6, 2), [0.3, 0.9, 2.6], 45, [1.0, 0.6, 1.4], 0.7),),
]


# 4.7 a code of the reader's own

LENGTH, WIDTH = 64, 6


def examine_code(answer: object) -> str | None:
    codes = as_array(answer)
    if codes is None or codes.shape != (LENGTH, WIDTH):
        found = f"shape {codes.shape}" if codes is not None else f"something of type {type(answer).__name__}"
        return f"should be an array of shape ({LENGTH}, {WIDTH}), one code a row, not {found}"
    codes = codes.astype(float)
    if not np.isfinite(codes).all():
        return "contains NaN or infinity"
    if np.abs(codes).max() > 1e6:
        return "keep the numbers below a million: rounding would hide what is tested"
    gram = codes @ codes.T
    largest = np.abs(gram).max()
    if largest == 0:
        return "every code is zero"
    widest = max(np.ptp(np.diagonal(gram, k)) for k in range(1 - LENGTH, LENGTH))
    if widest > 1e-4 * largest:
        return (
            "the dot product does not depend on the offset alone: along one diagonal of codes @ codes.T"
            f" it varies by {widest / largest:.2g} of the largest entry"
        )
    squares = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram + 2 * largest * np.eye(LENGTH)
    if squares.min() < 1e-6 * largest:
        p, q = np.unravel_index(np.argmin(squares), squares.shape)
        return f"positions {min(p, q)} and {max(p, q)} get the same code"
    for number, column in enumerate(codes.T):
        middle, around = column[1:-1], column[2:] + column[:-2]
        slope = middle @ around / max(middle @ middle, 1e-300)
        if np.linalg.norm(around - slope * middle) <= 1e-4 * np.linalg.norm(column):
            return f"column {number} is still a single sinusoid (or constant); mix the clocks with one another"
    return None


def counted() -> Tensor:
    return torch.arange(LENGTH, dtype=torch.float64)[:, None].repeat(1, WIDTH)


def stretched() -> Tensor:
    stretch = torch.eye(WIDTH, dtype=torch.float64) + 0.3 * torch.ones(WIDTH, WIDTH, dtype=torch.float64).triu()
    return table(LENGTH, WIDTH, 10000.0) @ stretch


EXERCISES = [
    Function(
        "4.1",
        "The table is one outer product, positions times frequencies, and then a sine and a cosine of it.",
        table,
        cases=[(5, 8, 10000.0), (9, 6, 10000.0), (7, 12, 100.0)],
        mistakes=[
            Mistake(
                "the exponent runs over column numbers. It must run over pair numbers: the sine and the cosine of"
                " a pair share one frequency.",
                table_by_column_number,
            ),
            Mistake(
                "the cosines have exponents of their own. The sine and the cosine of a pair share one frequency, or"
                " they are not one hand.",
                table_with_own_cosine,
            ),
            Mistake(
                "the cosines go on where the sines ended; they start again with the frequency of pair 0.",
                table_with_cosines_going_on,
            ),
            Mistake(
                "the exponent is -i/d_model for pair i, half of what it should be: the 2 is missing.",
                table_without_the_two,
            ),
            Mistake(
                "the exponent has lost its minus sign: the frequencies must fall from 1, not rise.",
                lambda n, d, base: table(n, d, 1 / base),
            ),
            Mistake(
                "the exponential needs the natural logarithm of the base; this is the logarithm to base 10.",
                lambda n, d, base: table(n, d, math.exp(math.log10(base))),
            ),
            Mistake(
                "right values, other layout: this is the interleaved table. The card asks for all sines first.",
                lambda n, d, base: table(n, d, base)[:, side_by_side(d)],
            ),
            Mistake(
                "pairs are counted from 1: the first pair is number 0 and has the frequency 1.",
                lambda n, d, base: from_phase(torch.arange(n)[:, None] * frequencies(d, base) * base ** (-2 / d)),
            ),
            Mistake(
                "the 2 of the exponent is there twice: either pair numbers times 2, or every second column number.",
                lambda n, d, base: from_phase(torch.arange(n)[:, None] * frequencies(d, base) ** 2),
            ),
            Mistake(
                "the frequencies are multiplied by 2π: the formula has radians, and its first hand turns by 1, not by a"
                " whole turn.",
                lambda n, d, base: from_phase(2 * math.pi * torch.arange(n)[:, None] * frequencies(d, base)),
            ),
            Mistake(
                "the phases are taken for degrees; the formula has radians.",
                lambda n, d, base: from_phase(torch.deg2rad(torch.arange(n)[:, None] * frequencies(d, base))),
            ),
            Mistake(
                "both halves hold sines: the second is for the cosines.",
                lambda n, d, base: table(n, d, base)[:, : d // 2].repeat(1, 2),
            ),
            Mistake(
                "both halves hold cosines: the first is for the sines.",
                lambda n, d, base: table(n, d, base)[:, d // 2 :].repeat(1, 2),
            ),
            Mistake(
                "the cosines have the wrong sign: position 0 must read 0, ..., 0, 1, ..., 1.",
                lambda n, d, base: table(n, d, base) @ mirror_at_zero(0, d) * -1,
            ),
            Mistake(
                "sines and cosines are two results: put them side by side in one table.",
                lambda n, d, base: table(n, d, base).chunk(2, dim=1),
            ),
            Mistake(
                "the cosines stand below the sines: put them side by side, so that each position keeps one row.",
                lambda n, d, base: torch.cat(table(n, d, base).chunk(2, dim=1)),
            ),
            Mistake(
                "sine and cosine are on an axis of their own: flatten it, so that each position has one row of d_model.",
                lambda n, d, base: torch.stack(table(n, d, base).chunk(2, dim=1), dim=-1),
            ),
            Mistake(
                "rows and columns have changed places: one row for each position.",
                lambda n, d, base: table(n, d, base).T,
            ),
            Mistake("the base is fixed at 10000; use the argument.", lambda n, d, base: table(n, d, 10000.0)),
            Mistake(
                "the frequencies are spread so that the last is exactly 1/base: a known variant, not the formula of"
                " this chapter.",
                table_to_the_last_frequency,
            ),
            Mistake(
                "the last operator of the exponent is //, which rounds a small negative number down to -1.",
                table_floor_divided_pairs,
            ),
            Mistake(
                "the exponent ends in // 2, which rounds a small negative number down to -1: write 2 * pair / d_model.",
                table_floor_divided,
            ),
            Mistake(
                "the rows start at position 1; the first position is 0.",
                lambda n, d, base: table(n + 1, d, base)[1:],
            ),
            Mistake(
                "sines and cosines have changed places: position 0 must read 0, ..., 0, 1, ..., 1.",
                lambda n, d, base: table(n, d, base).roll(d // 2, 1),
            ),
        ],
    ),
    Value(
        "4.2",
        "The slowest hand has the exponent (d_model - 2)/d_model, so the longest wave stays below 10000·2π.",
        2 * math.pi * 10000 ** (62 / 64),
        tolerance=1.0,
        mistakes=[
            Mistake(
                "that is 10000·2π, the limit that the longest wave approaches as the width grows; the last pair is"
                " number 31, and its exponent is 62/64.",
                2 * math.pi * 10000,
            ),
            Mistake(
                "that is one over the frequency, the positions for one radian; a whole turn is 2π radians.",
                10000 ** (62 / 64),
            ),
            Mistake(
                "the exponent 63/64 belongs to the last column number; the last pair is number 31, and its exponent"
                " is 2·31/64.",
                2 * math.pi * 10000 ** (63 / 64),
            ),
            Mistake("the exponent of pair i is 2i/64; the 2 is missing.", 2 * math.pi * 10000 ** (31 / 64)),
            Mistake(
                "that is the exponent 30/32, as at D = 32; at D = 64 the last pair is number 31, and its exponent 62/64.",
                2 * math.pi * 10000 ** (30 / 32),
            ),
            Mistake("that is the shortest wave, of pair 0; the last pair is number 31.", 2 * math.pi),
        ],
    ),
    Function(
        "4.3",
        "One matrix for all positions, and the shift by -k is its transpose.",
        shift,
        cases=[(8, 5), (6, -3), (10, 1), (4, 0)],
        mistakes=[
            Mistake(
                "this turns every hand backwards: it maps PE(p) to PE(p - k). Either the sign of the sines is wrong,"
                " or the matrix is meant for rows, codes @ S; the card asks for S @ PE(p).",
                lambda d, k: shift(d, -k),
            ),
            Mistake(
                "the right rotation, for the interleaved layout. Here the sine of pair i is in column i and its cosine"
                " in column i + d_model/2.",
                lambda d, k: shift(d, k)[side_by_side(d)][:, side_by_side(d)],
            ),
            Mistake(
                "every pair is turned by the angle k; pair i turns by k times its own frequency.",
                lambda d, k: turned(torch.full((d // 2,), float(k), dtype=torch.float64)),
            ),
            Mistake(
                "a minus is missing: one of the two blocks of sines has it, the one that makes cosines.",
                lambda d, k: without_the_minus(k * frequencies(d)),
            ),
            Mistake(
                "the exponent is -i/d_model for pair i, half of what it should be: the 2 is missing.",
                lambda d, k: turned(k * frequencies(d).sqrt()),
            ),
            Mistake(
                "this is a mirror: it maps PE(p) to PE(k - p). In a turn both blocks of cosines are positive.",
                lambda d, k: mirror(k, d),
            ),
            Mistake(
                "this moves the entries of a code along its columns; a shift of the position turns each hand instead.",
                lambda d, k: torch.eye(d).roll(k, 0),
            ),
            Mistake("this shifts by one position whatever k is.", lambda d, k: shift(d, 1)),
            Mistake("this takes no account of the sign of k.", lambda d, k: shift(d, abs(k))),
            Mistake(
                "the cosines are there, the sines are missing: each coordinate must also draw on its partner.",
                lambda d, k: torch.diag((k * frequencies(d)).cos().repeat(2)),
            ),
        ],
    ),
    Function(
        "4.4",
        "A mirror is a turn after a flip. Its square is the identity, and it knows m: it serves one length only.",
        mirror,
        cases=[(15, 8), (4, 6), (-2, 10)],
        mistakes=[
            Mistake("this is the shift by m, a rotation: it maps p to p + m.", lambda m, d: shift(d, m)),
            Mistake("this maps p to -p; the turn by m is still missing.", mirror_at_zero),
            Mistake(
                "the right mirror, for the interleaved layout. Here the sine of pair i is in column i and its cosine"
                " in column i + d_model/2.",
                lambda m, d: mirror(m, d)[side_by_side(d)][:, side_by_side(d)],
            ),
            Mistake(
                "this maps p to -m - p: the turn went backwards, or it came before the flip.",
                lambda m, d: mirror(-m, d),
            ),
            Mistake("this maps p to m + 1 - p: with m = n - 1 the 1 is taken off already.", lambda m, d: mirror(m + 1, d)),
            Mistake(
                "a minus is missing: what takes sines to sines is minus the cosine of the angle.",
                lambda m, d: without_the_minus(m * frequencies(d)),
            ),
            Mistake(
                "the two blocks of sines have the same sign in a mirror: its matrix is symmetric.",
                lambda m, d: turned_back(m * frequencies(d)),
            ),
            Mistake(
                "every pair is turned by the angle m; pair i turns by m times its own frequency.",
                lambda m, d: mirrored(torch.full((d // 2,), float(m), dtype=torch.float64)),
            ),
            Mistake(
                "this turns round the order of the columns; a mirror of the positions flips and turns each hand.",
                lambda m, d: torch.eye(d).flip(0),
            ),
            Mistake("this maps p to m - 1 - p: m itself is the place where 0 must go.", lambda m, d: mirror(m - 1, d)),
            Mistake(
                "this is minus the mirror: the sign of the cosines' block is turned round as well.",
                lambda m, d: -mirror(m, d),
            ),
        ],
    ),
    Function(
        "4.5",
        "Nobody told you how the clocks were mixed, and nobody had to: the shift knows their frequencies.",
        recover,
        cases=HIDDEN,
        mistakes=[
            Mistake(
                "each frequency is there twice, with both signs: a rotation has the eigenvalues exp(iω) and exp(-iω)."
                " Keep the positive half.",
                lambda codes: eigen_angles(codes),
            ),
            Mistake(
                "each frequency is there twice, since the sign was taken off: keep one of every two.",
                lambda codes: eigen_angles(codes).abs().sort().values,
            ),
            Mistake(
                "the sign was taken off before the halving, so the slow frequencies are there twice and the fast ones"
                " are missing: keep the positive angles.",
                lambda codes: eigen_angles(codes).abs().sort().values[: codes.shape[1] // 2],
            ),
            Mistake(
                "these are the cosines of the frequencies, the real parts of the eigenvalues; take their angles.",
                lambda codes: recover(codes).cos(),
            ),
            Mistake(
                "the frequencies are right, their order is not: the card asks for ascending order.",
                lambda codes: recover(codes).flip(0),
            ),
            Mistake(
                "this is the negative half of the angles: a frequency is the positive one of each two.",
                lambda codes: -recover(codes).flip(0),
            ),
            Mistake(
                "these are turns for each position; the card asks for radians, 2π to a turn.",
                lambda codes: recover(codes) / (2 * math.pi),
            ),
            Mistake(
                "a frequency ω above π/2 came out as π - ω: take the angle of an eigenvalue of one step, from both its parts.",
                lambda codes: recover(codes).sin().arcsin().sort().values,
            ),
            Mistake(
                "these are peaks of a Fourier transform, which knows multiples of 2π/N alone: the frequencies lie between.",
                fourier_peaks,
            ),
            Mistake("these are degrees; the card asks for radians.", lambda codes: recover(codes).rad2deg()),
            Mistake(
                "these are wavelengths, 2π/ω; the card asks for the frequencies ω.",
                lambda codes: 2 * math.pi / recover(codes),
            ),
            Mistake(
                "these are the absolute values of the eigenvalues, which are all 1; take their angles.",
                lambda codes: torch.ones(codes.shape[1] // 2),
            ),
        ],
    ),
    Choice(
        "4.6",
        "Such a matrix is a rotation in some basis, but that basis may be skew: the skewed clocks of Table 4.1.",
        right="d",
        options={
            "a": "one step is S, so p steps are the p-th power, and the inverse serves negative p.",
            "b": "the codes span the space, so e(0) has a part along every eigenvector, and that part is multiplied by"
            " λ at every step: it grows one way or the other unless |λ| = 1.",
            "c": "a block of Jordan's form makes a part of the code grow like p, so bounded codes rule it out.",
            "d": "this is the false line.",
            "e": "an orthogonal matrix keeps every dot product: this line is true of orthogonal matrices. The question"
            " is whether S is one.",
        },
    ),
    Open(
        "4.7",
        "A row of clocks that no column shows. By Theorem 4.3 every answer to this exercise is one.",
        examine_code,
        mistakes=[
            Mistake(
                "column 0 is still a single sinusoid (or constant); mix the clocks with one another",
                table(LENGTH, WIDTH, 10000.0),
            ),
            Mistake("positions 0 and 6 get the same code", torch.eye(WIDTH).repeat(11, 1)[:LENGTH]),
            Mistake("every code is zero", torch.zeros(LENGTH, WIDTH)),
            Mistake(
                f"should be an array of shape ({LENGTH}, {WIDTH}), one code a row, not shape ({WIDTH}, {LENGTH})",
                torch.ones(WIDTH, LENGTH),
            ),
            Mistake(examine_code(stretched()), stretched()),
            Mistake(examine_code(counted()), counted()),
        ],
    ),
]
