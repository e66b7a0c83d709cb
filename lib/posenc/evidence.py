"""Statements that the book makes about behaviour, each checked where it is made."""

import numpy as np
import torch


def verify(statement: str, condition: object) -> None:
    """Print ``✓ statement`` if `condition` holds, and raise if it does not.

    Parameters
    ----------
    statement : str
        What the book claims, as a full sentence.
    condition : bool, or a NumPy or torch boolean of one element
        What has just been computed. Numbers, strings and arrays of several
        values are refused: a claim that is true because its evidence is
        "non-empty" has not been checked.

    Raises
    ------
    AssertionError
        If the condition is false; the message is the statement.
    ValueError
        If there is no statement, or the condition is not a single boolean.
    """
    if not isinstance(statement, str) or not statement.strip():
        raise ValueError(f"a claim needs a sentence, not {statement!r}")
    if not _is_single_boolean(condition):
        raise ValueError(f"the evidence for {statement!r} must be a single True or False, not {_describe(condition)}")
    if not bool(condition):
        raise AssertionError(f"does not hold: {statement}")
    print(f"✓ {statement}")


def _is_single_boolean(condition: object) -> bool:
    if isinstance(condition, torch.Tensor):
        return condition.dtype == torch.bool and condition.numel() == 1
    if isinstance(condition, np.ndarray):
        return condition.dtype == np.bool_ and condition.size == 1
    return isinstance(condition, (bool, np.bool_))


def _describe(condition: object) -> str:
    if isinstance(condition, (torch.Tensor, np.ndarray)):
        return f"a {condition.dtype} array of shape {tuple(condition.shape)}"
    return f"{condition!r} ({type(condition).__name__})"
