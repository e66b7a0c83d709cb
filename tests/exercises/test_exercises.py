"""What holds for every exercise of the book: cards agree with checkers, right answers pass, wrong ones fail and say why."""

import importlib.util
import pathlib
import sys

import harness
import numpy as np
import pytest
import torch

from posenc.exercises import check, registry, verdict
from posenc.exercises.engine import Choice, Exercise, Function, Open, Value, difference

CARDS = harness.all_cards()
EXERCISES = registry()
CHAPTERS = sorted({label.split(".")[0] for label in EXERCISES}, key=int)


def of_kind(*kinds: type) -> list:
    return [pytest.param(e, id=e.label) for e in EXERCISES.values() if isinstance(e, kinds)]


def declared(chapter: str) -> object:
    """tests/exercises/chapter_NN.py: ``RIGHT`` = {label: [answer, answer, ...]}, differently written right answers."""
    path = pathlib.Path(__file__).with_name(f"chapter_{int(chapter):02d}.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def squeezed(text: str) -> str:
    return " ".join(text.split())


def passes(exercise: Exercise, answer: object) -> bool:
    line = verdict(exercise.label, answer)
    assert "\n" not in line and line[0] in "✓✗○", line
    return line.startswith("✓ ")


# Cards and checkers


def test_every_card_has_a_checker_and_every_checker_a_card():
    assert list(CARDS) == list(EXERCISES)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_five_exercises_two_of_them_code(chapter):
    own = [e for e in EXERCISES.values() if e.label.split(".")[0] == chapter]
    assert len(own) >= 5
    assert sum(isinstance(e, (Function, Open)) for e in own) >= 2


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_the_card_has_a_check_hints_and_a_solution(card):
    assert card.check_line, f'expected one line check("{card.label}", …) under the card'
    assert [summary for summary, _ in card.folds] == [f"Hint {i + 1}" for i in range(len(card.hints))] + ["Solution"]
    assert card.hints
    assert all(body.strip() for _, body in card.folds)


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_the_untouched_stub_is_not_attempted(card):
    assert "".join(card.outputs) == f"○ {card.label} not attempted yet\n"


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_the_solution_in_place_of_the_stub_is_right(card):
    assert card.solution_code, "the solution has no fenced python code to put into the stub"
    exercise = EXERCISES[card.label]
    assert harness.run_solution(card) == squeezed(f"✓ {card.label} {exercise.praise}") + "\n"


def test_a_chapters_settings_do_not_outlive_its_solution():
    before = torch.get_default_dtype(), torch.random.get_rng_state()
    with harness.settings_kept():
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(1)
    assert torch.get_default_dtype() == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])


# Right answers


@pytest.mark.parametrize("exercise", of_kind(Function, Open))
def test_right_code_written_differently_is_right(exercise):
    answers = declared(exercise.label.split(".")[0]).RIGHT[exercise.label]
    functions = [answer for answer in answers if callable(answer)]
    assert len(answers) >= 2
    assert len({getattr(f, "__code__", f) for f in functions}) == len(functions), "the same code twice"
    for answer in answers:
        assert passes(exercise, answer), verdict(exercise.label, answer)


@pytest.mark.parametrize("exercise", of_kind(Value))
def test_a_right_value_is_right_in_every_form(exercise):
    value = np.asarray(exercise.value)
    forms = [value, value.tolist(), value.astype(np.float64), torch.tensor(value.tolist())]
    forms += [value.astype(np.float32), torch.tensor(value.tolist(), dtype=torch.float64)]
    forms += [str(value.item()), float(value), np.float64(value)] if value.ndim == 0 and value.dtype != bool else []
    for answer in forms:
        assert passes(exercise, answer), (answer, verdict(exercise.label, answer))


@pytest.mark.parametrize("exercise", of_kind(Choice))
def test_a_right_choice_is_right_in_every_form(exercise):
    names = sorted(exercise._names_in(exercise.right))
    forms = [exercise.right, exercise.right.upper(), names, set(names), tuple(names), np.array(names)]
    forms += [", ".join(f"({name})" for name in names), " and ".join(names)]
    forms += [int(names[0]), float(names[0])] if len(names) == 1 and names[0].isdigit() else []
    for answer in forms:
        assert passes(exercise, answer), (answer, verdict(exercise.label, answer))


# Wrong answers


@pytest.mark.parametrize("exercise", of_kind(Function, Value, Open))
def test_a_known_mistake_gets_its_own_message(exercise):
    assert exercise.mistakes, "no known mistake"
    assert len({squeezed(mistake.says) for mistake in exercise.mistakes}) == len(exercise.mistakes)
    for mistake in exercise.mistakes:
        assert verdict(exercise.label, mistake.answer) == squeezed(f"✗ {exercise.label} {mistake.says}")


@pytest.mark.parametrize("exercise", of_kind(Choice))
def test_every_wrong_choice_is_explained(exercise):
    right = exercise._names_in(exercise.right)
    assert right < set(exercise.options)
    for name, explanation in exercise.options.items():
        assert explanation.strip()
        if name not in right:
            assert verdict(exercise.label, name) == squeezed(f"✗ {exercise.label} not {name}: {explanation}")
            assert not passes(exercise, right | {name})
        elif len(right) > 1:
            assert not passes(exercise, name)
    assert not passes(exercise, list(exercise.options))


class Awkward:
    """An object that resists being looked at."""

    def __array__(self, *_, **__):
        raise RuntimeError("no array of me")

    def __repr__(self):
        raise RuntimeError("no text of me")


def refuses(*_):
    raise NotImplementedError


@pytest.mark.parametrize("exercise", of_kind(Exercise))
def test_a_stub_is_not_attempted(exercise):
    stubs = [None, ...] + ([lambda *_: ..., refuses] if isinstance(exercise, Function) else [])
    for stub in stubs:
        assert verdict(exercise.label, stub) == f"○ {exercise.label} not attempted yet"


@pytest.mark.parametrize("exercise", of_kind(Exercise))
def test_nonsense_fails_in_one_line_and_never_raises(exercise, capsys):
    nonsense = ["banana", "", [], {}, object(), Awkward(), float("nan"), float("inf"), 1e300, 10**400, 3 + 4j, b"x"]
    nonsense += [np.zeros((0, 3)), np.full((2, 3), np.nan), torch.zeros(2, 3, 4, 5), [[1], [1, 2]], np.array(["x"])]
    nonsense += [lambda: 1, lambda *_: None, lambda *_: "banana", lambda *_: 1 / 0, lambda *_: Awkward(), print, int]
    nonsense += [lambda *_: (), lambda *_: torch.zeros(2, 3), lambda *_: float("nan"), lambda *a: a[0], lambda *a: a]
    nonsense += [lambda *_: sys.exit(), np.datetime64("2020-01-01"), range(3), type, np.ma.masked, [None]]
    for answer in nonsense:
        assert not passes(exercise, answer), verdict(exercise.label, answer)
    capsys.readouterr()
    check(exercise.label, Awkward())
    assert capsys.readouterr().out.count("\n") == 1


def transformed(result: object, change) -> object:
    """`change` applied to a result, or to each of several."""
    if isinstance(result, tuple):
        return tuple(transformed(part, change) for part in result)
    return change(torch.as_tensor(result))


SLIPS = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "NaN": lambda t: torch.full_like(t, torch.nan, dtype=t.dtype if t.is_floating_point() else torch.float32),
    "one NaN": lambda t: torch.where(torch.arange(t.numel()).reshape(t.shape) == 0, torch.nan, t.float()),
    "an axis more": lambda t: torch.stack([t, t]),
    "an entry less": lambda t: t.flatten()[:-1],
    "flattened": lambda t: t.flatten() if t.ndim > 1 else torch.stack([t, t]),
    "transposed": lambda t: t.swapaxes(-1, -2) if t.ndim > 1 else -t.float() - 1,
    "negated": lambda t: ~t if t.dtype == torch.bool else -t - 1,
    "slightly off": lambda t: t * 1.01 + 0.01 if t.is_floating_point() else ~t if t.dtype == torch.bool else t + 1,
}


@pytest.mark.parametrize("exercise", of_kind(Function))
@pytest.mark.parametrize("slip", SLIPS)
def test_code_that_slips_fails(exercise, slip):
    if slip == "transposed" and exercise.label in getattr(declared(exercise.label.split(".")[0]), "SYMMETRIC", ()):
        pytest.skip("the right result is symmetric")
    assert not passes(exercise, lambda *case: transformed(exercise.reference(*map(torch_of, case)), SLIPS[slip]))


def torch_of(part: object) -> object:
    return torch.from_numpy(part) if isinstance(part, np.ndarray) else part


@pytest.mark.parametrize("exercise", of_kind(Value))
@pytest.mark.parametrize("slip", SLIPS)
def test_a_value_that_slips_fails(exercise, slip):
    right = torch.as_tensor(np.asarray(exercise.value))
    wrong = SLIPS[slip](right)
    if difference(wrong, exercise.value, exercise.tolerance, relative=0.0) is None and slip in ("zeros", "ones"):
        pytest.skip("this is the right value")
    if slip == "slightly off":
        wrong = right + 1.5 * exercise.tolerance + (1 if exercise.tolerance < 1e-9 else 0)
    assert not passes(exercise, wrong)


@pytest.mark.parametrize("exercise", of_kind(Function))
def test_the_cases_differ_and_leave_the_reference_alone(exercise):
    assert len(exercise.cases) >= 2, "one case can be hard-coded"
    first = [exercise.reference(*case) for case in exercise.cases]
    again = [exercise.reference(*case) for case in exercise.cases]
    assert all(difference(a, b) is None for a, b in zip(first, again)), "the reference is random or changes its input"


def test_an_unknown_label_is_answered():
    assert verdict("99.1", 3).startswith("✗ 99.1 is not an exercise")
