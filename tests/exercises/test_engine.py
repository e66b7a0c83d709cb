"""How answers are judged: right ones pass in every honest form, wrong ones fail, nothing raises."""

import contextlib
import io
import math
import os
import random
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import exercises
from posenc.exercises.engine import (
    Choice,
    Exercise,
    Function,
    Mistake,
    NotAttempted,
    Open,
    Value,
    as_array,
    difference,
    judge,
)


def tensor(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def softmax(scores):
    return torch.softmax(scores, dim=-1)


SOFTMAX = Function(
    "1.1",
    "Each row sums to one.",
    softmax,
    cases=[(tensor(3, 5),), (tensor(4, 4, seed=1) * 3,)],
    mistakes=[
        Mistake("the sum runs over the queries", lambda s: torch.softmax(s, dim=0)),
        Mistake("the exponentials are not divided", lambda s: s.exp()),
        Mistake("never seen: it fails on every case", lambda s: s @ torch.zeros(99, 99)),
    ],
)

ATTEND = Function(
    "1.2",
    "Weights and outputs.",
    lambda q, k, v: (softmax(q @ k.T / q.shape[-1] ** 0.5), softmax(q @ k.T / q.shape[-1] ** 0.5) @ v),
    cases=[(tensor(3, 4), tensor(5, 4, seed=1), tensor(5, 2, seed=2))],
)

FUTURE = Function(
    "1.3",
    "True is the past.",
    lambda n: torch.ones(n, n).tril().bool(),
    cases=[(3,), (5,)],
    mistakes=[
        Mistake("this is the future", lambda n: torch.ones(n, n).triu().bool()),
        Mistake("a token may attend to itself", lambda n: torch.ones(n, n).tril(-1).bool()),
    ],
)

THIRD = Value("1.4", "A third.", 1 / 3, tolerance=0.005, mistakes=[Mistake("not the number of keys", 3)])
TABLE = Value("1.5", "Rows sum to one.", [[0.5, 0.5], [0.25, 0.75]], tolerance=0.005)
COUNT = Value("1.6", "Factorial of eight.", 40320, tolerance=0)
TRUTH = Value("1.7", "It is.", True, tolerance=0)
ONE = Choice("1.8", "Yes.", "b", {"a": "the first is wrong", "b": "yes", "c": "so is the third"})
SEVERAL = Choice("1.9", "Both.", "a, c", {"a": "yes", "b": "b is wrong", "c": "yes", "d": "d is wrong"})
NUMBERED = Choice("1.10", "Line 2.", "2", {str(i): f"line {i} holds" for i in range(1, 13)})
EVEN = Open("1.11", "Any even number.", lambda answer: None if answer % 2 == 0 else "is odd")

ALL = [SOFTMAX, ATTEND, FUTURE, THIRD, TABLE, COUNT, TRUTH, ONE, SEVERAL, NUMBERED, EVEN]


def right(exercise, answer):
    line = judge(exercise, answer)
    assert line == f"✓ {exercise.label} {exercise.praise}"


def wrong(exercise, answer, *said):
    line = judge(exercise, answer)
    assert line.startswith(f"✗ {exercise.label} ") and len(line.splitlines()) == 1, line
    assert all(word in line for word in said), line


def untouched(exercise, answer):
    assert judge(exercise, answer) == f"○ {exercise.label} not attempted yet"


# Functions: every honest form of a right answer


def loops(scores):
    rows = []
    for row in scores:
        shares = [math.exp(s) for s in row]
        rows.append([share / sum(shares) for share in shares])
    return rows


def in_numpy(scores):
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def numpy_only(scores):
    assert isinstance(scores, np.ndarray)
    return in_numpy(scores.astype(np.float64))


def torch_only(scores):
    assert isinstance(scores, torch.Tensor)
    return softmax(scores.double())


def from_numpy(scores):
    return softmax(torch.from_numpy(scores))


def by_einsum(scores):
    shares = torch.exp(scores)
    return torch.einsum("ts,t->ts", shares, 1 / shares.sum(-1))


def filled_in(scores):
    result = np.zeros(scores.shape)
    for t in range(len(scores)):
        result[t] = in_numpy(np.asarray(scores[t]))
    return result


def on_a_copy(scores):
    scores = scores.copy()
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def gapped(scores):
    """Raises as torch does where it lacks something; the NumPy form is right."""
    if isinstance(scores, torch.Tensor):
        raise NotImplementedError("'exp' not implemented for this")
    return in_numpy(scores)


def shifted_by_accident(scores):
    """Right for arrays only: for tensors std means something else."""
    return softmax(torch.as_tensor(scores)) * float(scores.std() / np.std(np.asarray(scores)))


class Softmax(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, scores):
        return softmax(self.scale * scores)


class Callable:
    def __call__(self, scores, dim=-1):
        return torch.softmax(torch.as_tensor(scores), dim)

    def method(self, scores):
        return self(scores)


@pytest.mark.parametrize(
    "answer",
    [
        softmax,
        loops,
        in_numpy,
        numpy_only,
        torch_only,
        from_numpy,
        by_einsum,
        filled_in,
        on_a_copy,
        gapped,
        shifted_by_accident,
        Softmax(),
        Callable(),
        Callable().method,
        partial(torch.softmax, dim=-1),
        torch.nn.Softmax(dim=-1),
        lambda s: tuple(softmax(s)),
        lambda s: list(softmax(s)),
        lambda s: softmax(s).tolist(),
        lambda s: softmax(s).clone().requires_grad_(),
        lambda s: softmax(s).to_sparse().to_dense(),
        lambda *args: softmax(*args),
        lambda s, temperature=1.0: softmax(s / temperature),
    ],
)
def test_right_functions_in_every_form(answer):
    right(SOFTMAX, answer)


@pytest.mark.parametrize(
    "answer",
    [
        lambda q, k, v: list(ATTEND.reference(q, k, v)),
        lambda q, k, v: [part.numpy() for part in ATTEND.reference(q, k, v)],
        lambda q, k, v: (in_numpy(q @ k.T / np.sqrt(4)), in_numpy(q @ k.T / np.sqrt(4)) @ v),
        lambda q, k, v: tuple(part.double().tolist() for part in ATTEND.reference(q, k, v)),
    ],
)
def test_two_results_may_come_as_a_tuple_or_a_list(answer):
    right(ATTEND, answer)


@pytest.mark.parametrize("stacked", [torch.stack, lambda parts: np.stack([part.numpy() for part in parts])])
def test_results_of_one_shape_may_come_stacked(stacked):
    """``low, high = answer(x)`` works for such an array as for a pair."""
    both = Function("9.3", "Two.", lambda x: (x.amin(dim=1), x.amax(dim=1)), cases=[(tensor(4, 3),), (tensor(2, 5),)])
    right(both, lambda x: stacked([x.amin(dim=1), x.amax(dim=1)]))
    wrong(both, lambda x: stacked([x.amax(dim=1), x.amin(dim=1)]), "result 1: differs at")
    wrong(both, lambda x: stacked([x.amin(dim=1)] * 3), "should be 2 results, not an array of float32")


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: np.tril(np.ones((n, n), dtype=bool)),
        lambda n: [[s <= t for s in range(n)] for t in range(n)],
        lambda n: torch.arange(n)[:, None] >= torch.arange(n),
        lambda n: np.tri(n) > 0,
    ],
)
def test_right_masks(answer):
    right(FUTURE, answer)


def test_a_number_may_have_stray_axes_of_one():
    mean = Function("9.1", "Mean.", lambda x: x.mean(), cases=[(tensor(3, 4),)])
    for answer in (
        lambda x: x.mean(),
        lambda x: float(x.mean()),
        lambda x: [float(x.mean())],
        lambda x: x.mean(keepdims=True),
        lambda x: x.reshape(1, -1).mean(-1),
        lambda x: np.float32(np.mean(np.asarray(x))),
    ):
        right(mean, answer)


def test_counts_in_any_dtype():
    count = Function("9.2", "n!", math.factorial, cases=[(3,), (8,)])
    for answer in (math.factorial, lambda n: float(math.factorial(n)), lambda n: np.prod(range(1, n + 1)), lambda n: torch.arange(1, n + 1).prod()):
        right(count, answer)
    wrong(count, lambda n: math.factorial(n) + 1, "differs: 7, expected 6")
    wrong(count, lambda n: math.factorial(n) + (n > 3), "expected")  # 40321 is not nearly 40320


def test_an_untouched_stub_is_not_an_attempt():
    def raises(scores):
        raise NotImplementedError

    def raises_kindly(scores):
        raise NotImplementedError("your code here")

    def leaves_dots(scores):
        return ...

    for stub in (raises, raises_kindly, leaves_dots, None, ...):
        untouched(SOFTMAX, stub)


def test_what_torch_does_not_implement_is_still_an_attempt():
    def attempted(scores):
        if isinstance(scores, np.ndarray):
            return scores.nonsense()
        raise NotImplementedError("'exp' not implemented for 'Half'")

    wrong(SOFTMAX, attempted, "your function raised NotImplementedError: 'exp' not implemented for 'Half'")


def test_results_that_are_functions_of_the_case_are_not_shared():
    """Each call gets its own copy; a list among the arguments cannot be spoilt for the next reader."""
    exercise = Function("9.3", "Moved.", lambda x, order: x[list(order)], cases=[(tensor(3, 2), [2, 0, 1])])
    wrong(exercise, lambda x, order: x[sorted(order)] if order.sort() else x, "changes its input in place")
    assert exercise.cases[0][1] == [2, 0, 1]
    right(exercise, lambda x, order: x[order])
    array = Function("9.4", "Doubled.", lambda x: 2 * x, cases=[(np.arange(3.0),)])
    wrong(array, lambda x: x.__imul__(2), "in place")
    assert array.cases[0][0].tolist() == [0, 1, 2]


# Functions: wrong answers


@pytest.mark.parametrize(
    "answer, said",
    [
        (lambda s: torch.softmax(torch.as_tensor(s), 0), "the sum runs over the queries"),
        (lambda s: (np.exp(s) / np.exp(s).sum(0)), "the sum runs over the queries"),
        (lambda s: np.exp(s), "the exponentials are not divided"),
        (lambda s: s, "differs at"),
        (lambda s: s * 0, "differs at"),
        (lambda s: s * 0 + 1, "differs at"),
        (lambda s: s * math.nan, "contains NaN or infinity"),
        (lambda s: s / 0, "contains NaN or infinity"),
        (lambda s: softmax(torch.as_tensor(s)).T, "has shape (5, 3), expected (3, 5) (for input of shape (3, 5))"),
        (lambda s: softmax(torch.as_tensor(s))[None], "has shape (1, 3, 5), expected (3, 5)"),
        (lambda s: (softmax(torch.as_tensor(s)),), "has shape (1, 3, 5), expected (3, 5)"),
        (lambda s: softmax(torch.as_tensor(s))[0], "has shape (5,), expected (3, 5)"),
        (lambda s: (softmax(torch.as_tensor(s)), s[0]), "should be an array of shape (3, 5), not a tuple of 2"),
        (lambda s: 0.5, "has shape (), expected (3, 5)"),
        (lambda s: [], "has shape (0,), expected (3, 5)"),
        (lambda s: softmax(torch.as_tensor(s)) > 0.5, "should be numbers, not booleans"),
        (lambda s: softmax(torch.as_tensor(s)) + 0j, "not an array of complex64"),
        (lambda s: torch.softmax(torch.as_tensor(s), -1) + 1e-3, "differs at"),
        (lambda s: print, "should be an array of shape (3, 5), not a builtin_function_or_method"),
        (lambda s: {"weights": s}, "not a dict"),
        (lambda s: {1.0}, "not a set"),
        (lambda s: "softmax", "not the text 'softmax'"),
        (lambda s: iter([1.0]), "not a list_iterator"),
        (lambda s: (row for row in s), "not a generator"),
        (lambda s: np.array([None, s], dtype=object), "not an array of object"),
        (lambda s: [[1.0], [1.0, 2.0]], "not a list of 2"),
        (lambda s: softmax, "not a function"),
        (lambda s: softmax(torch.as_tensor(s)).to_sparse(), "not an array of float32"),
        (lambda s: softmax(torch.as_tensor(s)).to("meta"), "not an array of float32"),
        (lambda s: None, "returns None: is a return missing?"),
        (lambda s: [None], "not a list of 1"),
        (lambda: 1, "your function raised TypeError"),
        (lambda s, t: s, "your function raised TypeError"),
        (lambda s: 1 / 0, "your function raised ZeroDivisionError: division by zero"),
        (lambda s: s.nonsense, "your function raised AttributeError"),
        (lambda s: undefined_name, "your function raised NameError"),  # noqa: F821
    ],
)
def test_wrong_functions(answer, said):
    wrong(SOFTMAX, answer, said)


def test_the_form_that_got_further_is_told_about_and_tensors_come_first():
    wrong(SOFTMAX, lambda s: s * 0 if isinstance(s, torch.Tensor) else s[0], "differs at")
    wrong(SOFTMAX, lambda s: s[0] if isinstance(s, torch.Tensor) else s * 0, "has shape (5,)")
    wrong(SOFTMAX, lambda s: s.nonsense if isinstance(s, torch.Tensor) else s[0], "has shape (5,)")
    wrong(SOFTMAX, lambda s: s.first if isinstance(s, torch.Tensor) else s.second, "no attribute 'first'")


def test_only_what_is_square_can_be_called_transposed():
    square = Function("9.5", "Scores.", lambda q, k: q @ k.T, cases=[(tensor(3, 2), tensor(3, 2, seed=1))])
    wrong(square, lambda q, k: k @ q.T, "is the transpose of the right result")
    wrong(TABLE, [[0.5, 0.25], [0.5, 0.75]], "is the transpose of the right result")


def test_a_slip_must_show_in_every_case_that_it_survives():
    exercise = Function(
        "9.6",
        "Sum.",
        lambda x: x.sum(),
        cases=[(torch.tensor([1.0, 2.0]),), (torch.tensor([1.0, 2.0, 4.0]),)],
        mistakes=[
            Mistake("only the first two", lambda x: x[0] + x[1]),
            Mistake("only the third", lambda x: x[2]),
            Mistake("one too many", lambda x: x[99]),
        ],
    )
    wrong(exercise, lambda x: x[0] + x[1], "only the first two")
    wrong(exercise, lambda x: x[:2].sum() if len(x) == 2 else x[2] * 1.0, "only the third")
    wrong(exercise, lambda x: x.sum() if len(x) == 2 else x[2] + 1.0, "differs: 5, expected 7 (for input of shape (3,))")


def test_a_case_of_numbers_is_told_by_its_numbers():
    exercise = Function("9.7", "Sum.", lambda x, y: x + y, cases=[(0, 0), (2, 1.5)])
    wrong(exercise, lambda x, y: x, "differs: 2, expected 3.5 (for arguments 2, 1.5)")


def test_a_slip_that_cannot_run_on_every_case_is_known_by_the_others():
    exercise = Function(
        "9.8",
        "Sum.",
        lambda x, y: x + y[: len(x)],
        cases=[(tensor(2), tensor(3)), (tensor(3), tensor(3, seed=1)), (tensor(1), tensor(3, seed=2))],
        mistakes=[Mistake("not so many", lambda x, y: x + y), Mistake("none at all", lambda x, y: x + y[:99] @ y[:, None])],
    )
    wrong(exercise, lambda x, y: x + y, "not so many")
    wrong(exercise, lambda x, y: x + y[:, None] @ y, "your function raised RuntimeError")
    wrong(exercise, lambda x, y: x + y if len(x) == 3 else 1 / 0, "your function raised")


def test_the_message_points_at_an_entry_that_is_wrong():
    minus = Function("9.7", "p", lambda x: torch.where(x > 0, x, -math.inf), cases=[(torch.tensor([-1.0, 2.0, 3.0]),)])
    wrong(minus, lambda x: torch.where(torch.as_tensor(x) > 0, torch.as_tensor(x) + 1.0 * (torch.as_tensor(x) > 2), -math.inf), "differs at [2]: 4, expected 3")
    wrong(minus, lambda x: x, "differs at [0]: -1, expected -inf")
    wrong(FUTURE, lambda n: np.ones((n, n), bool), "differs at [0, 1]: True, expected False")
    wrong(FUTURE, lambda n: np.triu(np.ones((n, n), bool)), "this is the future")
    wrong(FUTURE, lambda n: np.tri(n), "should be boolean, not float64")
    assert difference([[0.0, 5.0], [9.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]) == "differs at [1, 0]: 9, expected 0"
    assert difference([1.0, 2.0], [1.0, 2.0 + 1e-3]) == "differs at [1]: 2, expected 2.001"


def test_writing_into_the_input_is_told():
    def in_place(s):
        s -= s.max()
        return softmax(torch.as_tensor(s))

    def sorted_in_place(x):
        x[:] = np.sort(np.asarray(x)) if isinstance(x, np.ndarray) else torch.sort(x)[0]
        return x

    wrong(SOFTMAX, in_place, "your function changes its input in place; build a new result instead")
    wrong(SOFTMAX, lambda s: s.fill_(0) if isinstance(s, torch.Tensor) else s.fill(0) or s, "in place")
    wrong(Function("9.8", "p", lambda x: x.sort()[0], cases=[(torch.tensor([3, 1, 2]),)]), sorted_in_place, "in place")
    assert torch.equal(SOFTMAX.cases[0][0], tensor(3, 5))


def test_nan_in_the_input_is_no_change_of_it():
    exercise = Function("9.9", "p", torch.nan_to_num, cases=[(torch.tensor([1.0, math.nan]),)])
    right(exercise, lambda x: np.nan_to_num(np.asarray(x)))
    wrong(exercise, lambda x: x.nan_to_num_() if isinstance(x, torch.Tensor) else np.nan_to_num(x, copy=False), "in place")


def test_results_number_as_asked():
    weights, outputs = ATTEND.reference(*ATTEND.cases[0])
    wrong(ATTEND, lambda q, k, v: outputs, "should be 2 results, not an array of float32")
    wrong(ATTEND, lambda q, k, v: (outputs,), "should be 2 results, not a tuple of 1")
    wrong(ATTEND, lambda q, k, v: (outputs, weights), "result 1: has shape (3, 2), expected (3, 5)")
    wrong(ATTEND, lambda q, k, v: (weights, outputs + 1), "result 2: differs at")


@pytest.mark.parametrize("answer", [0.5, "softmax", [1.0], torch.zeros(3, 5), np.zeros(3), {}, object(), b"", 1j, True])
def test_a_function_is_a_function(answer):
    wrong(SOFTMAX, answer, "should be a function, not ")


def test_an_exercise_without_a_case_cannot_be_made():
    with pytest.raises(ValueError, match="9.9 has no case"):
        Function("9.9", "p", softmax, cases=[])


def test_tolerance_passes_float32_and_stops_slips():
    for answer in (lambda s: softmax(s.double()), lambda s: softmax(s) * (1 + 5e-5)):
        right(SOFTMAX, answer)
    wrong(SOFTMAX, lambda s: softmax(torch.as_tensor(s)) * (1 + 5e-4), "differs")
    identity = Function("9.1", "p", lambda x: x, cases=[(torch.tensor([0.0, 100.0]),)])
    right(identity, lambda x: x + 5e-6)
    wrong(identity, lambda x: x + torch.tensor([2e-5, 0.0]), "differs at [0]")
    wrong(identity, lambda x: x + torch.tensor([0.0, 0.02]), "differs at [1]")


# Values


@pytest.mark.parametrize(
    "answer",
    [
        1 / 3,
        0.33,
        0.3366,
        "1/3",
        " 1 / 3 ",
        "0.333",
        ".333",
        "3.33e-1",
        Fraction(1, 3),
        Decimal("0.333"),
        np.float32(1 / 3),
        np.float16(1 / 3),
        np.array(1 / 3),
        "33.3%",
        "33.3 %",
        np.array([[1 / 3]]),
        np.array(Fraction(1, 3), dtype=object),
        torch.tensor(1 / 3),
        torch.tensor(1 / 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([1 / 3], dtype=torch.bfloat16),
        [1 / 3],
        ["1/3"],
        (Fraction(1, 3),),
        torch.nn.Parameter(torch.tensor(1 / 3)),
    ],
)
def test_right_numbers_in_every_form(answer):
    right(THIRD, answer)


@pytest.mark.parametrize(
    "answer, said",
    [
        (0.34, "is not the right value"),
        (0.328, "is not the right value"),
        (-1 / 3, "is not the right value"),
        ("-1/3", "is not the right value"),
        ("−1/3", "is not the right value"),
        (0, "is not the right value"),
        (3, "not the number of keys"),
        ("3", "not the number of keys"),
        (3.004, "not the number of keys"),
        (torch.tensor(3), "not the number of keys"),
        (10**30, "is not the right value"),
        (math.nan, "contains NaN"),
        ("nan", "contains NaN"),
        (math.inf, "contains NaN or infinity"),
        ("1e999999999", "contains NaN or infinity"),
        (True, "should be numbers, not booleans"),
        (np.True_, "should be numbers, not booleans"),
        (torch.tensor(False), "should be numbers, not booleans"),
        ("one third", "should be a number, not the text 'one third'"),
        ("1/0", "not the text '1/0'"),
        ("", "not the text ''"),
        pytest.param("0.3" * 1000, "not the text", id="long"),
        (1 / 3 + 0j, "not a complex"),
        ([[0.9]], "is not the right value"),
        (torch.tensor([3.0]), "not the number of keys"),
        ([1 / 3, 1 / 3], "has shape (2,), expected ()"),
        ([], "has shape (0,), expected ()"),
        (["1/3", "a third"], "should be a number, not a list of 2"),
        ({}, "should be a number, not a dict"),
        ({1 / 3}, "should be a number, not a set"),
        (lambda: 1 / 3, "should be a number, not a function"),
        pytest.param(10**400, "should be a number, not an int", id="huge"),
        (object(), "should be a number, not an object"),
        (float, "should be a number, not a type"),
    ],
)
def test_wrong_numbers(answer, said):
    wrong(THIRD, answer, said)


def test_a_wrong_value_does_not_give_the_right_one_away():
    for answer in (0.9, [[0.9]], "7"):
        assert "0.33" not in judge(THIRD, answer)
    wrong(TABLE, [[0.5, 0.5], [0.25, 0.9]], "is not right in every entry")


@pytest.mark.parametrize(
    "answer",
    [
        [[0.5, 0.5], [0.25, 0.75]],
        ((0.5, 0.5), (0.25, 0.75)),
        [np.array([0.5, 0.5]), torch.tensor([0.25, 0.75])],
        np.array([[0.5, 0.5], [0.25, 0.75]], dtype=np.float32),
        torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=torch.float16),
        [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]],
        np.array([[Fraction(1, 2)] * 2, [Fraction(1, 4), Decimal("0.75")]], dtype=object),
        [[torch.tensor(0.5), 0.5], [np.float64(0.25), Fraction(3, 4)]],
    ],
)
def test_right_arrays_in_every_form(answer):
    right(TABLE, answer)


@pytest.mark.parametrize("answer", [[[0.5, 0.5], [0.25, None]], [[0.5, 0.5], [0.25]], "0.5 0.5 0.25 0.75", [0.5, 0.5, 0.25, 0.75], [["0.5"] * 2] * 2])
def test_wrong_arrays(answer):
    wrong(TABLE, answer)


def test_the_tolerance_of_a_value_is_absolute():
    far = Value("9.9", "p", 1000.0, tolerance=0.005, mistakes=[Mistake("a tenth", 100.0)])
    right(far, 1000.004)
    wrong(far, 1000.006, "is not the right value")
    wrong(far, 100.004, "a tenth")
    wrong(far, 100.006, "is not the right value")


def test_exact_counts_and_truths():
    for answer in (40320, 40320.0, "40320", Fraction(40320), np.int32(40320), torch.tensor(40320), Decimal(40320)):
        right(COUNT, answer)
    for answer in (40321, 40319.9, "40321", 40320j, True, -40320, "8!"):
        wrong(COUNT, answer)
    for answer in (True, np.True_, np.array([True]), torch.tensor(True)):
        right(TRUTH, answer)
    wrong(TRUTH, False, "is not the right value")
    for answer in (1, 1.0, "True", torch.tensor(1)):
        wrong(TRUTH, answer, "should be")


# Choices


@pytest.mark.parametrize(
    "answer",
    ["b", "B", "(b)", "b.", " b ", "b)", "[b]", "option b", "Option (B)", ["b"], ("b",), {"b"}, {"B"}, frozenset("b"), ["b", "B"], np.array("b"), np.array(["b"]), np.str_("b"), "'b'"],
)
def test_one_choice_in_every_form(answer):
    right(ONE, answer)


@pytest.mark.parametrize(
    "answer",
    ["a, c", "c a", "a and c", "A,C", "(a), (c)", "a & c", "a/c", "options a, c", ["a", "c"], ("C", "A"), {"a", "c"}, ["a, c"], np.array(["a", "c"]), "a,c,a", "a;c", "a\nc", "ac", "AC", "the statements a and c"],
)
def test_several_choices_in_every_form(answer):
    right(SEVERAL, answer)


@pytest.mark.parametrize("answer", [2, "2", 2.0, "(2)", np.int64(2), np.float32(2), torch.tensor(2), torch.tensor([2.0]), [2], {2}, "2.", "line 2", "Line 2.", "answer: 2", "line 2 is false"])
def test_numbered_choices_in_every_form(answer):
    right(NUMBERED, answer)


@pytest.mark.parametrize(
    "exercise, answer, said",
    [
        (ONE, "a", "not a: the first is wrong"),
        (ONE, "c", "not c: so is the third"),
        (ONE, "a, b", "not a: the first is wrong"),
        (ONE, ["b", "c"], "not c: so is the third"),
        (ONE, "abc", "not a: the first is wrong"),
        (ONE, "bac", "choose from a, b, c; 'bac' is not among them"),
        (ONE, "z", "'z' is not among them"),
        (ONE, "b z", "'z' is not among them"),
        (ONE, "", "choose from a, b, c"),
        (ONE, [], "choose from a, b, c"),
        (ONE, set(), "choose from a, b, c"),
        (ONE, "?", "choose from a, b, c"),
        (ONE, "a cat has b tails", "choose from a, b, c"),
        (ONE, 2, "'2' is not among them"),
        (ONE, True, "'bool' is not among them"),
        (ONE, ["b", None], "'NoneType' is not among them"),
        (ONE, b"b", "'bytes' is not among them"),
        (ONE, {"b": True}, "'dict' is not among them"),
        (ONE, lambda b: b, "'function' is not among them"),
        (ONE, object(), "'object' is not among them"),
        (ONE, ["b", ...], "'ellipsis' is not among them"),
        pytest.param(ONE, "x" * 10**6, "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is not among them", id="long"),
        (SEVERAL, "a", "a is right, but not all that is right"),
        (SEVERAL, "c", "c is right, but not all that is right"),
        (SEVERAL, "a b c", "not b: b is wrong"),
        (SEVERAL, "a b c d", "not b: b is wrong"),
        (SEVERAL, "d", "not d: d is wrong"),
        (NUMBERED, 1, "not 1: line 1 holds"),
        (NUMBERED, 12, "not 12: line 12 holds"),
        (NUMBERED, 13, "'13' is not among them"),
        (NUMBERED, -2, "'-2' is not among them"),
        (NUMBERED, 2.5, "'float' is not among them"),
        (NUMBERED, math.nan, "'float' is not among them"),
        (NUMBERED, math.inf, "'float' is not among them"),
        (NUMBERED, 2 + 0j, "'complex' is not among them"),
        (NUMBERED, True, "'bool' is not among them"),
        (NUMBERED, [2, 3], "not 3: line 3 holds"),
        (NUMBERED, Fraction(1, 2), "'Fraction' is not among them"),
    ],
)
def test_wrong_choices(exercise, answer, said):
    wrong(exercise, answer, said)


@pytest.mark.parametrize("right", ["", "z", "b z", "B, q"])
def test_a_choice_without_a_right_option_cannot_be_made(right):
    with pytest.raises(ValueError, match="is not among a, b"):
        Choice(label="9.9", praise="p", right=right, options={"a": "x", "b": "y"})


# Open exercises


def test_open_exercises_ask_their_own_question():
    for answer in (2, 0, 4.0, np.int64(8), torch.tensor(2)):
        right(EVEN, answer)
    wrong(EVEN, 3, "is odd")
    wrong(EVEN, "two%s%s", "your answer could not be judged: TypeError")
    untouched(EVEN, None)

    def unfinished(answer):
        raise NotAttempted

    untouched(Open("9.9", "p", unfinished), 3)


def test_an_exercise_of_no_kind_is_not_attempted():
    untouched(Exercise("9.9", "p"), 3)


# Nothing raises, one stable line


class Hostile:
    """Every question put to it raises."""

    def __getattribute__(self, name):
        raise RuntimeError("no")

    def refuse(self, *args, **kwargs):
        raise RuntimeError("no")

    __eq__ = __ne__ = __lt__ = __hash__ = __repr__ = __str__ = __call__ = __len__ = __iter__ = __getitem__ = refuse
    __float__ = __int__ = __index__ = __bool__ = __array__ = __mod__ = __format__ = __contains__ = refuse


class Liar:
    """Equal to everything, and any length you like."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __len__(self):
        return 10**9

    def __call__(self, *args):
        return self


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")


def endless_recursion(*args):
    return endless_recursion(*args)


def raising(error):
    def answer(*args):
        raise error

    return answer


def looped():
    found = []
    found.append(found)
    return found


WEIRD = [
    Hostile(),
    Hostile,
    Liar(),
    Liar,
    object(),
    looped(),
    endless_recursion,
    *map(raising, [SystemExit(1), GeneratorExit(), Unspeakable(), BaseException("base"), MemoryError(), StopIteration(), RecursionError()]),
    raising(ValueError("two\nlines\tand \x1b[31m colour " + "long " * 1000)),
    raising(ValueError("\ud800 alone")),
    raising(Warning("a warning raised")),
    lambda *args: Hostile(),
    lambda *args: Liar(),
    lambda *args: looped(),
    lambda *args: np.array([Hostile()], dtype=object),
    lambda *args: np.zeros((0, 3)),
    lambda *args: np.zeros(200_000),
    lambda *args: "x" * 10**6,
    lambda *args: (yield),
    lambda *args: torch.zeros(3, 5, device="meta"),
    lambda *args: np.datetime64("2026-01-01"),
    lambda *args: np.ma.masked_array([1.0, 2.0], [True, False]),
    lambda *args: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
    lambda *args: torch.tensor([1.0]).to(torch.float8_e4m3fn),
    lambda *args: range(3),
    lambda *args: memoryview(b"abc"),
    lambda *args: b"abc",
    lambda *args: Exercise,
    int,
    type,
    dict,
    np.ndarray,
    torch.Tensor,
    print,
    input.__class__,
    len,
    eval,
    np,
    [Hostile()],
    {"b": Hostile()},
    (..., ...),
    [None, None],
    np.array(None),
    np.array([1, "b"], dtype=object),
    np.array(["b", "a"]),
    np.zeros((2, 0)),
    torch.zeros(0),
    torch.zeros((), device="meta"),
    1e400,
    -0.0,
    10**5000,
    "x" * 10**6,
    "\ud800",
    "9" * 5000,
    "1/" + "0" * 5000,
    "q\x00",
    b"\xff",
    Decimal("sNaN"),
    Decimal("Infinity"),
    float("-inf"),
    NotImplemented,
    NotImplementedError,
    NotImplementedError(),
    (n for n in range(3)),
    iter(()),
    warnings,
    True,
]


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: f"{type(e).__name__} {e.label}")
@pytest.mark.parametrize("number", range(len(WEIRD)))
def test_whatever_is_handed_in_gets_one_stable_line(exercise, number, capfd):
    answer = WEIRD[number]  # not a parameter: pytest looks at those
    line = judge(exercise, answer)
    assert len(line.splitlines()) == 1 and line == " ".join(line.split())
    assert line[:2] in ("✗ ", "○ ") or (exercise, line[:2]) in ((TRUTH, "✓ "), (EVEN, "✓ "))
    assert line[2:].startswith(f"{exercise.label} ")
    assert len(line) <= 600
    line.encode("utf-8")
    assert "0x" not in line
    if type(answer) is not type(iter(())):
        assert judge(exercise, answer) == line
    if answer is not print:
        assert capfd.readouterr() == ("", "")


ATOMS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(max_size=8) | st.binary(max_size=4) | st.fractions() | st.decimals() | st.just(...)
)
THINGS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner, max_size=2), max_leaves=8)


@given(THINGS)
@settings(max_examples=60)
def test_nothing_raises(thing):
    for exercise in ALL:
        for answer in (thing, lambda *args: thing):
            line = judge(exercise, answer)
            assert line[0] in "✓✗○" and len(line.splitlines()) == 1
            line.encode("utf-8")
            assert judge(exercise, answer) == line


def test_an_interrupt_is_the_readers_own():
    with pytest.raises(KeyboardInterrupt):
        judge(SOFTMAX, raising(KeyboardInterrupt()))


def test_addresses_do_not_reach_the_line():
    wrong(SOFTMAX, raising(ValueError(f"bad {object()}")), "ValueError: bad <object object>")
    wrong(SOFTMAX, raising(Unspeakable()), "your function raised Unspeakable")
    wrong(Open("9.9", "p", lambda answer: f"not {answer!r}"), object(), "not <object object>")


def test_long_messages_are_cut():
    line = judge(Open("9.9", "p", lambda answer: "long " * 1000), 1)
    assert len(line) == 600 and line.endswith("…")
    wrong(THIRD, "x" * 100, f"not the text '{'x' * 30}'")
    line = judge(SOFTMAX, raising(ValueError("y" * 1000)))
    assert line.endswith("y" * 160) and not line.endswith("y" * 161)


@pytest.mark.filterwarnings("error")
def test_warnings_stay_inside(capfd):
    def noisy(scores):
        warnings.warn("careless", stacklevel=1)
        np.log(np.zeros(2))
        torch.tensor(torch.zeros(2))
        return softmax(torch.as_tensor(scores))

    right(SOFTMAX, noisy)
    wrong(SOFTMAX, lambda s: np.log(-np.abs(np.asarray(s))), "contains NaN")
    wrong(SOFTMAX, lambda s: np.asarray(s) / 0, "contains NaN or infinity")
    infinite = Function("9.9", "p", lambda x: x * math.inf, cases=[(torch.tensor([1.0, -1.0]),)])
    wrong(infinite, lambda x: torch.tensor([math.inf, 1.0]), "differs at [1]: 1, expected -inf")
    assert capfd.readouterr() == ("", "")
    with pytest.warns(UserWarning, match="outside"):
        warnings.warn("outside", stacklevel=1)


def test_the_world_is_left_as_it_was():
    def world():
        return torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate(), torch.is_grad_enabled(), np.geterr(), os.getcwd()

    before = world()
    for exercise in ALL:
        for answer in (softmax, in_numpy, loops, 1 / 3, "b", None, Hostile(), raising(SystemExit())):
            judge(exercise, answer)
    assert world() == before


# What the reader calls


def printed(label, answer):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert exercises.check(label, answer) is None
    return out.getvalue()


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setattr(exercises, "registry", lambda: {e.label: e for e in ALL})


def test_check_prints_the_verdict_and_a_newline(book):
    assert printed("1.1", softmax) == "✓ 1.1 Each row sums to one.\n"
    assert printed("1.1", None) == "○ 1.1 not attempted yet\n"
    assert printed("1.8", "a") == "✗ 1.8 not a: the first is wrong\n"
    assert printed(1.4, "1/3") == "✓ 1.4 A third.\n"
    assert printed(" 1.4 ", "1/3") == "✓ 1.4 A third.\n"


@pytest.mark.parametrize("label", ["9.9", "", "1", 1, 1.25, None, ..., "1.1\n1.2", pytest.param("x" * 10**6, id="long"), [], {}, object(), True, pytest.param("\ud800", id="surrogate"), pytest.param(10**5000, id="huge")])
def test_unknown_labels(book, label):
    line = printed(label, softmax)
    assert line.startswith("✗ ") and line.count("\n") == 1 and len(line) < 600
    assert " is not an exercise of this book; there are 1.1, 1.2, " in line and "0x" not in line


def test_the_registry_holds_every_exercise_once():
    listed = exercises.registry()
    assert all(isinstance(e, Exercise) and e.label == label for label, e in listed.items())
    assert exercises.registry() is listed
    in_order = [tuple(map(int, label.split("."))) for label in listed]
    assert in_order == sorted(set(in_order))


# The comparison itself


def test_as_array():
    assert as_array([]).shape == (0,)
    assert as_array(((1, 2), (3, 4))).tolist() == [[1, 2], [3, 4]]
    assert as_array(torch.tensor([1.5], dtype=torch.bfloat16)).tolist() == [1.5]
    assert as_array(torch.tensor([1.5], dtype=torch.float8_e4m3fn)).tolist() == [1.5]
    assert as_array(torch.tensor([True])).dtype == bool
    assert as_array(range(3)).tolist() == [0, 1, 2]
    assert as_array(Fraction(1, 4)) == 0.25
    assert as_array(2**64).dtype.kind in "uf"
    for nothing in (None, ..., "1", b"1", 1j, {}, set(), object(), [None], [[1], [1, 2]], ["1"], np.array(["1"]), np.array([None]), np.array([True, 0.5], dtype=object)):
        assert as_array(nothing) is None


def test_difference_of_empty_results():
    assert difference([], np.zeros(0)) is None
    assert difference(torch.zeros(0, 3), np.zeros((0, 3))) is None
    assert difference([], np.zeros((0, 3))) == "has shape (0,), expected (0, 3)"
    assert difference((), ()) is None


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=5), st.integers(0, 4), st.floats(0.01, 10))
@settings(max_examples=50)
def test_any_entry_that_is_off_is_found(values, place, gap):
    answer = list(values)
    answer[place % len(values)] += gap + 0.02
    assert difference(values, values) is None
    assert difference(np.array(values), torch.tensor(values, dtype=torch.float64)) is None
    assert f"differs at [{place % len(values)}]" in difference(answer, values)


@pytest.mark.filterwarnings("error")
def test_nan_agrees_with_nan_alone():
    assert difference([-math.inf, 1.0], [-math.inf, 2.0]) == "differs at [1]: 1, expected 2"
    assert difference([math.nan, 0.5], [-math.inf, 0.0]) == "differs at [0]: nan, expected -inf"
    assert difference([math.nan, 1.0], [math.nan, 1.0]) is None
    assert difference([0.0, 1.0], [math.nan, 1.0]) == "differs at [0]: 0, expected nan"
    assert difference([math.nan, 1.0], [0.0, 1.0]) == "contains NaN or infinity"
    assert difference([math.inf], [-math.inf]) == "differs at [0]: inf, expected -inf"
