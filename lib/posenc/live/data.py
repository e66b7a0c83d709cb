"""What the live figures start from, and the pseudo-random numbers that Python and JavaScript both draw."""

from collections.abc import Iterator
from itertools import islice

SENTENCES = ["robot detects anomaly", "the dog chased the cat", "the cat sat on the mat"]

DIALS = {"width": 16, "most": 255, "start": 45}
OFFSET = {
    "most": 200,
    # Every offset up to 20, then steps of about a tenth.
    "offsets": [*range(1, 21), *range(22, 40, 2), *range(40, 100, 5), *range(100, 200, 10), *range(200, 400, 20),
                *range(400, 1001, 50)],
    "position": 20,
    "offset": 7,
}  # fmt: skip


def draws(seed: int) -> Iterator[float]:
    """Endless pseudo-random numbers in [-1, 1), the same as in the figures (the generator mulberry32)."""
    low = 0xFFFFFFFF
    while True:
        seed = (seed + 0x6D2B79F5) & low
        t = (seed ^ seed >> 15) * (seed | 1) & low
        t ^= t + ((t ^ t >> 7) * (t | 61) & low) & low
        yield (t ^ t >> 14) / 2**31 - 1


def matrix(numbers: Iterator[float], rows: int, columns: int, scale: float) -> list[list[float]]:
    """The next numbers as rows, rounded to three decimals so that they are short to write down."""
    return [[round(scale * x, 3) for x in islice(numbers, columns)] for _ in range(rows)]


def shuffle_options() -> dict:
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    numbers = draws(3)
    vectors = dict(zip(words, matrix(numbers, len(words), 4, 2.0)))
    return {"sentences": SENTENCES, "vectors": vectors, **_weights(numbers)}


def symmetry_options() -> dict:
    numbers = draws(11)
    return {"tokens": matrix(numbers, 5, 4, 2.0), **_weights(numbers)}


def _weights(numbers: Iterator[float]) -> dict:
    return {name: matrix(numbers, 4, 4, 1.2) for name in ("W_Q", "W_K", "W_V")}
