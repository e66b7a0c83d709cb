"""Exercises that check themselves: ``check("2.1", answer)`` prints one line and never raises.

Each chapter's exercises live in the module ``chapter_NN`` beside this file, in its list ``EXERCISES``.
The reference answers are there in plain sight: they are for tests and checkers, and the chapters give
the same solutions, folded, with their reasons.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from posenc.exercises.engine import Exercise, judge, one_line

__all__ = ["check", "registry", "verdict"]


def check(label: str, answer: object) -> None:
    """Print whether `answer` solves exercise `label`: ``✓`` right, ``✗`` wrong and why, ``○`` not attempted.

    Parameters
    ----------
    label : str
        The number on the exercise's card, such as ``"2.1"``.
    answer : object
        What the card asks for: a function, a number, an array, a choice.
    """
    print(verdict(label, answer))


def verdict(label: str, answer: object) -> str:
    """The line that `check` prints."""
    exercises = registry()
    name = str(label).strip() if isinstance(label, (str, float)) else type(label).__name__
    if name not in exercises:
        return one_line(f"✗ {name[:30]} is not an exercise of this book; there are {', '.join(exercises)}")
    return judge(exercises[name], answer)


@cache
def registry() -> dict[str, Exercise]:
    """Every exercise of the book by its label, in the order of the chapters."""
    modules = sorted(m.name for m in iter_modules(__path__) if m.name.startswith("chapter_"))
    listed = [exercise for name in modules for exercise in import_module(f"{__name__}.{name}").EXERCISES]
    return {exercise.label: exercise for exercise in listed}
