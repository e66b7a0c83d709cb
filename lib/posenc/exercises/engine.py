"""How answers are judged. Four kinds of exercise, one line of verdict, no exception ever.

A checker must accept every honest form of a right answer (NumPy or torch, float32 or float64, lists,
loops) and name the idea behind a usual wrong one. So each exercise carries its known mistakes *as code*:
an answer that equals one gets that mistake's message.
"""

import copy
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Real

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
    return one_line(f"✓ {exercise.label} {exercise.praise}" if fault is None else f"✗ {exercise.label} {fault}")


def one_line(text: str) -> str:
    """`text` on one line of bearable length, without what differs from run to run or cannot be printed."""
    text = re.sub(r" at 0x[0-9A-Fa-f]+", "", " ".join(text.split()))
    return (text if len(text) <= 600 else f"{text[:599]}…").encode(errors="replace").decode()


@dataclass(frozen=True)
class Function(Exercise):
    """A function is asked for; it is run on every case beside the reference.

    `cases` holds tuples of arguments. They are copied first, and the tensors among them handed over as
    tensors and, if that does not succeed, as NumPy arrays; whichever form the answer was written for counts.
    """

    reference: Callable
    cases: Sequence[tuple]
    mistakes: Sequence[Mistake] = field(default=())

    def __post_init__(self) -> None:
        if not self.cases:
            raise ValueError(f"exercise {self.label} has no case, so any function would pass")

    def fault(self, answer: object) -> str | None:
        if not callable(answer):
            return f"should be a function, not {_kind(answer)}"
        faults, errors = [], []
        for convert in (_fresh_tensors, _fresh_arrays):
            try:
                fault = self._fault_with(answer, convert)
            except NotAttempted:
                raise
            except Exception as error:
                errors.append(error)
                continue
            if fault is None:
                return None
            faults.append(fault)
        if faults:
            return faults[0]
        if all(isinstance(error, NotImplementedError) for error in errors):  # a stub, not a gap in torch
            raise NotAttempted
        results = [_outcome(answer, case) for case in self.cases]
        known = next((mistake.says for mistake in self.mistakes if self._commits(mistake, results)), None)
        return known or f"your function raised {_told(errors[0])}"

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
        return f"{faults[first]}{_told_apart(self.cases[first])}"

    def _commits(self, mistake: Mistake, results: list) -> bool:
        shown = False
        for case, result in zip(self.cases, results):
            try:
                wrong = mistake.answer(*_fresh_tensors(case))
            except Exception:  # the slip itself fails on this case; others may still show it
                continue
            if isinstance(result, Exception) or difference(result, wrong) is not None:
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


_NOT_A_NAME = {"and", "answer", "both", "false", "is", "line", "lines", "option", "options", "statement", "statements", "step", "steps", "the"}
"""Words that a reader may write around the name of a choice."""


@dataclass(frozen=True)
class Choice(Exercise):
    """One or several of `options` are asked for; each option carries why it is right or wrong.

    Options are named by letters or numbers. ``"b"``, ``"B"``, ``"(b)"``, ``["b"]`` are one answer;
    for several, ``"a, c"``, ``"ac"`` and ``{"a", "c"}`` are.
    """

    right: str
    options: Mapping[str, str]

    def __post_init__(self) -> None:
        right = self._names_in(self.right)
        if not right or not right <= set(self.options):
            raise ValueError(f"exercise {self.label}: {self.right!r} is not among {', '.join(self.options)}")

    def fault(self, answer: object) -> str | None:
        chosen, right = self._names_in(answer), self._names_in(self.right)
        if chosen == right:
            return None
        known = ", ".join(self.options)
        unknown = " ".join(sorted(chosen - set(self.options)))
        if unknown or not chosen:
            return f"choose from {known}; {unknown[:30]!r} is not among them"
        wrong = sorted(chosen - right)
        if wrong:
            return f"not {wrong[0]}: {self.options[wrong[0]]}"
        return f"{', '.join(sorted(chosen))} is right, but not all that is right"

    def _names_in(self, answer: object) -> set[str]:
        if isinstance(answer, (np.ndarray, np.generic, torch.Tensor)):
            answer = answer.tolist()
        if isinstance(answer, (set, frozenset, list, tuple)):
            return set().union(*(self._names_in(part) for part in answer))
        if isinstance(answer, str):
            words = set(re.findall(r"[a-z0-9]+", answer.lower())) - _NOT_A_NAME
            return set().union(*(set(word) if self._runs_together(word) else {word} for word in words))
        if isinstance(answer, float) and answer.is_integer():
            answer = int(answer)
        # Anything but a number becomes its type, which is no option.
        return {str(answer) if type(answer) is int else type(answer).__name__}

    def _runs_together(self, word: str) -> bool:
        """Whether it is the names of several options in their order, such as "ac", and no word, such as "bad"."""
        return word.isalpha() and set(word) <= set(self.options) and sorted(set(word)) == list(word)


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
        if isinstance(answer, (np.ndarray, torch.Tensor)) and answer.ndim and len(answer) == len(expected):
            answer = list(answer)  # results of one shape, stacked
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
    if want.dtype.kind in "iu":  # counts and indices are right or wrong
        relative = 0.0
    agrees = _agrees(got, want, absolute, relative)
    if agrees.all():
        return None
    if not np.isfinite(got.astype(float)).all() and np.isfinite(want.astype(float)).all():
        return "contains NaN or infinity"
    if want.ndim >= 2 and want.shape[-1] == want.shape[-2] and _agrees(
        got.swapaxes(-1, -2), want, absolute, relative
    ).all():
        return "is the transpose of the right result"
    if not reveal:
        return "is not the right value" if want.size == 1 else "is not right in every entry"
    with np.errstate(invalid="ignore"):
        gap = np.nan_to_num(np.abs(got.astype(float) - want.astype(float)), nan=np.inf)
    where = tuple(int(i) for i in np.unravel_index(np.argmax(np.where(agrees, -1.0, gap)), gap.shape))
    at = f" at {list(where)}" if where else ""
    return f"differs{at}: {_entry(got[where])}, expected {_entry(want[where])}"


def as_array(thing: object) -> np.ndarray | None:
    """`thing` as a NumPy array of numbers or booleans, or None if it is nothing of the kind."""
    try:
        array = _converted(thing)
    except Exception:  # whatever a foreign object does when it is asked for numbers
        return None
    return array if array is not None and array.dtype.kind in "biuf" else None


def _converted(thing: object) -> np.ndarray | None:
    if isinstance(thing, torch.Tensor):
        thing = thing.detach().cpu()
        narrow = thing.is_floating_point() and thing.itemsize <= 2  # NumPy lacks some of these
        return (thing.float() if narrow else thing).numpy()
    if isinstance(thing, (list, tuple)) and thing:
        parts = [as_array(part) for part in thing]
        return None if any(part is None for part in parts) else np.stack(parts)
    array = np.asarray(thing)
    if array.dtype == object and all(_is_number(entry) for entry in array.flat):
        array = array.astype(float)
    return array


def _is_number(thing: object) -> bool:
    """Also for what NumPy can hold as an object only: a Fraction, a Decimal, a very large int."""
    return isinstance(thing, (Real, Decimal)) and not isinstance(thing, bool)


def _agrees(got: np.ndarray, want: np.ndarray, absolute: float, relative: float) -> np.ndarray:
    """Entry by entry. NaN agrees with NaN alone."""
    if want.dtype == bool:
        return got == want
    return np.isclose(got.astype(float), want.astype(float), rtol=relative, atol=absolute, equal_nan=True)


def _entry(number: np.generic) -> str:
    return str(number) if number.dtype == bool else f"{number:.4g}"


def _outcome(function: Callable, case: tuple) -> object:
    """What the function returns, or the exception that it raises."""
    try:
        return function(*_fresh_tensors(case))
    except Exception as error:
        return error


def _fresh_tensors(case: tuple) -> tuple:
    return tuple(part.clone() if isinstance(part, torch.Tensor) else copy.deepcopy(part) for part in case)


def _fresh_arrays(case: tuple) -> tuple:
    return tuple(part.numpy() if isinstance(part, torch.Tensor) else part for part in _fresh_tensors(case))


def _same_arguments(arguments: tuple, case: tuple) -> bool:
    for after, before in zip(map(as_array, arguments), map(as_array, case)):
        if before is not None and (after is None or not np.array_equal(after, before, equal_nan=before.dtype.kind == "f")):
            return False
    return True


def _told_apart(case: tuple) -> str:
    """Which case it was: the shapes of its tensors or, if there are none, its numbers."""
    shapes = [str(tuple(part.shape)) for part in case if isinstance(part, torch.Tensor)]
    if shapes:
        return f" (for input of shape {', '.join(shapes)})"
    return f" (for arguments {', '.join(map(str, case))})" if all(isinstance(part, Real) for part in case) else ""


def _number_from_text(answer: object) -> object:
    if isinstance(answer, (list, tuple)) and any(isinstance(part, str) for part in answer):
        return [_number_from_text(part) for part in answer]
    if not isinstance(answer, str):
        return answer
    text = answer.replace(" ", "").replace("−", "-")
    number, whole = (text[:-1], 100) if text.endswith("%") else (text, 1)
    try:
        return float(Fraction(number) if "/" in number else number) / whole
    except (ValueError, ArithmeticError):
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
    if isinstance(thing, (np.ndarray, torch.Tensor)):
        return f"an array of {str(thing.dtype).removeprefix('torch.')}"
    name = type(thing).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _told(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__
