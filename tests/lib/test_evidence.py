"""verify: a claim is printed if it holds, and nothing passes by being non-empty."""

import numpy as np
import pytest
import torch

from posenc.evidence import verify


@pytest.mark.parametrize(
    "condition",
    [True, np.True_, np.array(True), np.array([[True]]), torch.tensor(True), torch.tensor([True]), np.float64(1) < 2],
)
def test_a_true_claim_is_printed_exactly(condition, capsys):
    assert verify("Attention is equivariant.", condition) is None
    assert capsys.readouterr() == ("✓ Attention is equivariant.\n", "")


@pytest.mark.parametrize("condition", [False, np.False_, np.array([False]), torch.tensor(False), torch.tensor([[False]])])
def test_a_false_claim_raises_and_prints_nothing(condition, capsys):
    with pytest.raises(AssertionError, match="^does not hold: It is invariant.$"):
        verify("It is invariant.", condition)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "condition, named",
    [
        (1, "1 (int)"),
        (0, "0 (int)"),
        (1.0, "1.0 (float)"),
        ("yes", "'yes' (str)"),
        ("", "'' (str)"),
        (None, "None (NoneType)"),
        ([True], "[True] (list)"),
        ((), "() (tuple)"),
        (np.float64(1), "float64"),
        (np.array([True, True]), "a bool array of shape (2,)"),
        (np.array([], dtype=bool), "a bool array of shape (0,)"),
        (np.array(1), "a int64 array of shape ()"),
        (torch.tensor([True, True]), "a torch.bool array of shape (2,)"),
        (torch.tensor([], dtype=torch.bool), "a torch.bool array of shape (0,)"),
        (torch.tensor(1), "a torch.int64 array of shape ()"),
        (lambda: True, "(function)"),
    ],
)
def test_evidence_that_is_not_one_boolean_is_refused(condition, named, capsys):
    with pytest.raises(ValueError) as error:
        verify("It holds.", condition)
    assert "the evidence for 'It holds.' must be a single True or False, not " in str(error.value)
    assert named in str(error.value)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("statement", ["", "  ", "\n", None, True, 3, ["It holds."]])
def test_a_claim_needs_a_sentence(statement, capsys):
    with pytest.raises(ValueError, match="a claim needs a sentence"):
        verify(statement, True)
    assert capsys.readouterr().out == ""
