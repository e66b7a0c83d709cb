"""How answers are judged. Four kinds of exercise, one line of verdict, no exception ever.

A checker must accept every honest form of a right answer (NumPy or torch, float32 or float64, lists,
loops) and name the idea behind a usual wrong one. So each exercise carries its known mistakes *as code*:
an answer that equals one gets that mistake's message.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import torch

RELATIVE, ABSOLUTE = 1e-4, 1e-5
"""Tolerance between a function's result and the reference: float32 passes, a wrong formula does not."""


@dataclass(frozen=True)
class Mistake:
    """A usual wrong answer and what to say about it, in terms of the idea.

    `answer` is of the same form as a right one: a function, a number, an array.
    """

    says: str
    answer: object


@dataclass(frozen=True)
class Exercise:
    """What all kinds share. `praise` follows the ✓: one sentence that the reader takes along."""

    label: str
    praise: str

    def fault(self, answer: object) -> str | None:
        """What is wrong with the answer, or None if it is right. May raise; `judge` catches."""
        raise NotImplementedError


class NotAttempted(Exception):
    """The answer is still the stub."""


def judge(exercise: Exercise, answer: object) -> str:
    """One line: ``✓ label praise``, ``✗ label fault`` or ``○ label not attempted yet``."""
    try:
        if answer is None or answer is ...:
            raise NotAttempted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fault = exercise.fault(answer)
    except (NotAttempted, NotImplementedError):
        return f"○ {exercise.label} not attempted yet"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a reader's mistake must never stop Run all
        fault = f"your answer could not be judged: {_told(error)}"
    line = f"✓ {exercise.label} {exercise.praise}" if fault is None else f"✗ {exercise.label} {fault}"
    return " ".join(line.split())


@dataclass(frozen=True)
class Function(Exercise):
    """A function is asked for; it is run on every case beside the reference.

    `cases` holds tuples of arguments. Tensors among them are copied first, and handed over as tensors
    and, if that does not succeed, as NumPy arrays; whichever form the answer was written for counts.
    """

    reference: Callable
    cases: Sequence[tuple]
    mistakes: Sequence[Mistake] = field(default=())

    def fault(self, answer: object) -> str | None:
        if not callable(answer):
            return f"should be a function, not {_kind(answer)}"
        faults = []
        for convert in (_fresh_tensors, _fresh_arrays):
            try:
                fault = self._fault_with(answer, convert)
            except (NotAttempted, NotImplementedError):
                raise
            except Exception as error:
                faults.append((1, f"your function raised {_told(error)}"))
                continue
            if fault is None:
                return None
            faults.append((0, fault))
        return min(faults, key=lambda ranked: ranked[0])[1]

    def _fault_with(self, answer: Callable, convert: Callable) -> str | None:
        results = []
        for case in self.cases:
            arguments = convert(case)
            result = answer(*arguments)
            if result is ...:
                raise NotAttempted
            if result is None:
                return "your function returns None: is a return missing?"
            if not _same_arguments(arguments, case):
                return "your function changes its input in place; build a new result instead"
            results.append(result)
        expected = [self.reference(*_fresh_tensors(case)) for case in self.cases]
        faults = [difference(result, right) for result, right in zip(results, expected)]
        if not any(faults):
            return None
        for mistake in self.mistakes:
            if self._commits(mistake, results):
                return mistake.says
        first = next(i for i, fault in enumerate(faults) if fault)
        return f"{faults[first]}{_shapes_of(self.cases[first])}"

    def _commits(self, mistake: Mistake, results: list) -> bool:
        shown = False
        for case, result in zip(self.cases, results):
            try:
                wrong = mistake.answer(*_fresh_tensors(case))
            except Exception:  # the slip itself fails on this case; others may still show it
                continue
            if difference(result, wrong) is not None:
                return False
            shown = True
        return shown


@dataclass(frozen=True)
class Value(Exercise):
    """A number or an array is asked for. `tolerance` is absolute and is stated on the card."""

    value: object
    tolerance: float
    mistakes: Sequence[Mistake] = field(default=())

    def fault(self, answer: object) -> str | None:
        answer = _number_from_text(answer)
        fault = difference(answer, self.value, self.tolerance, relative=0.0, reveal=False)
        if fault is None:
            return None
        for mistake in self.mistakes:
            if difference(answer, mistake.answer, self.tolerance, relative=0.0) is None:
                return mistake.says
        return fault


@dataclass(frozen=True)
class Choice(Exercise):
    """One or several of `options` are asked for; each option carries why it is right or wrong.

    Options are named by letters or numbers. ``"b"``, ``"B"``, ``"(b)"``, ``["b"]`` are one answer;
    for several, ``"a, c"`` and ``{"a", "c"}`` are.
    """

    right: str
    options: Mapping[str, str]

    def fault(self, answer: object) -> str | None:
        chosen, right = self._names_in(answer), self._names_in(self.right)
        if chosen == right:
            return None
        known = ", ".join(self.options)
        if not chosen or not chosen <= set(self.options):
            return f"choose from {known}; {answer!r} is not among them"
        wrong = sorted(chosen - right)
        if wrong:
            return f"not {wrong[0]}: {self.options[wrong[0]]}"
        return f"{', '.join(sorted(chosen))} is right, but not all that is right"

    def _names_in(self, answer: object) -> set[str]:
        if isinstance(answer, (set, frozenset, list, tuple)):
            return set().union(*(self._names_in(part) for part in answer)) if answer else set()
        if isinstance(answer, (np.ndarray, np.generic, torch.Tensor)):
            return self._names_in(answer.tolist())
        text = str(int(answer)) if isinstance(answer, float) and answer.is_integer() else str(answer)
        return {word.lower() for word in re.findall(r"\d+|\b[A-Za-z]\b", text)}


@dataclass(frozen=True)
class Open(Exercise):
    """Many answers are right: `examine` returns what is wrong with one, or None.

    `mistakes` are wrong answers with what `examine` must say about each; only tests use them.
    """

    examine: Callable[[object], str | None]
    mistakes: Sequence[Mistake] = field(default=())

    def fault(self, answer: object) -> str | None:
        return self.examine(answer)


def difference(
    answer: object,
    expected: object,
    absolute: float = ABSOLUTE,
    relative: float = RELATIVE,
    reveal: bool = True,
) -> str | None:
    """How `answer` differs from `expected`, in words, or None if they agree within the tolerances.

    Both may be tensors, arrays, numbers, nested lists, or tuples of these. `reveal` says whether the
    words may give the expected value away.
    """
    if isinstance(expected, tuple):
        if not isinstance(answer, (tuple, list)) or len(answer) != len(expected):
            return f"should be {len(expected)} results, not {_kind(answer)}"
        parts = [difference(a, e, absolute, relative, reveal) for a, e in zip(answer, expected)]
        return next((f"result {i}: {part}" for i, part in enumerate(parts, 1) if part), None)
    got, want = as_array(answer), as_array(expected)
    if got is None:
        return f"should be {_array_kind(want)}, not {_kind(answer)}"
    if got.shape != want.shape:
        if got.size == want.size == 1:
            got = got.reshape(want.shape)
        else:
            return f"has shape {got.shape}, expected {want.shape}"
    if want.dtype == bool and got.dtype != bool:
        return f"should be boolean, not {got.dtype}"
    if got.dtype == bool and want.dtype != bool:
        return "should be numbers, not booleans"
    if _close(got, want, absolute, relative):
        return None
    if not np.isfinite(got.astype(float)).all() and np.isfinite(want.astype(float)).all():
        return "contains NaN or infinity"
    if want.ndim >= 2 and want.shape[-1] == want.shape[-2] and _close(got.swapaxes(-1, -2), want, absolute, relative):
        return "is the transpose of the right result"
    if not reveal:
        return "is not the right value" if want.size == 1 else "is not right in every entry"
    gap = np.abs(got.astype(float) - want.astype(float))
    where = tuple(int(i) for i in np.unravel_index(np.argmax(np.nan_to_num(gap, nan=np.inf)), gap.shape))
    at = f" at {list(where)}" if where else ""
    return f"differs{at}: {got[where]:.4g}, expected {want[where]:.4g}"


def as_array(thing: object) -> np.ndarray | None:
    """`thing` as a NumPy array of numbers or booleans, or None if it is nothing of the kind."""
    if isinstance(thing, torch.Tensor):
        thing = thing.detach().cpu()
        thing = (thing.float() if thing.dtype == torch.bfloat16 else thing).numpy()
    elif isinstance(thing, Fraction):
        thing = float(thing)
    elif isinstance(thing, (list, tuple)):
        parts = [as_array(part) for part in thing]
        if any(part is None or part.shape != parts[0].shape for part in parts):
            return None
        thing = np.stack(parts) if parts else np.zeros(0)
    try:
        array = np.asarray(thing)
    except Exception:
        return None
    return array if array.dtype.kind in "biuf" else None


def _close(got: np.ndarray, want: np.ndarray, absolute: float, relative: float) -> bool:
    if want.dtype == bool:
        return bool((got == want).all())
    got, want = got.astype(float), want.astype(float)
    return bool(np.isclose(got, want, rtol=relative, atol=absolute, equal_nan=True).all())


def _fresh_tensors(case: tuple) -> tuple:
    return tuple(part.clone() if isinstance(part, torch.Tensor) else part for part in case)


def _fresh_arrays(case: tuple) -> tuple:
    return tuple(part.numpy().copy() if isinstance(part, torch.Tensor) else part for part in case)


def _same_arguments(arguments: tuple, case: tuple) -> bool:
    pairs = [(a, c) for a, c in zip(arguments, case) if isinstance(c, torch.Tensor)]
    return all(np.array_equal(as_array(a), as_array(c), equal_nan=c.is_floating_point()) for a, c in pairs)


def _shapes_of(case: tuple) -> str:
    shapes = [str(tuple(part.shape)) for part in case if isinstance(part, torch.Tensor)]
    return f" (for input of shape {', '.join(shapes)})" if shapes else ""


def _number_from_text(answer: object) -> object:
    if isinstance(answer, str):
        try:
            return float(Fraction(answer.strip().replace(" ", "")))
        except (ValueError, ZeroDivisionError):
            return answer
    return answer


def _array_kind(want: np.ndarray) -> str:
    return "a number" if want.ndim == 0 else f"an array of shape {want.shape}"


def _kind(thing: object) -> str:
    if isinstance(thing, str):
        return f"the text {thing[:30]!r}"
    if isinstance(thing, (tuple, list)):
        return f"a {type(thing).__name__} of {len(thing)}"
    if thing is None or thing is ...:
        return "nothing"
    name = type(thing).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__
