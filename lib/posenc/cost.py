"""Counting what a computation does, by running it and watching every product.

Two things are counted: how many multiplications, and how many of them must wait for one another. Neither depends
on the machine. Only explicit forms can be watched: a fused kernel does its work out of sight, and is refused here
where other counters report nothing.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Cost(NamedTuple):
    """What a run did.

    Attributes
    ----------
    matrix : int
        Multiply-adds in matrix products: ``n k m`` for a product of (n, k) and (k, m).
    elementwise : int
        Products and quotients of two tensors, entry by entry. What an activation, a softmax or a norm does
        inside is not among them.
    depth : int
        The longest chain of products, of either kind, each of which needs the result of the one before: how
        many steps there would be if everything that can happen at the same time did. The additions inside
        one matrix product are not counted, nor are those of a sum or a softmax.
    """

    matrix: int
    elementwise: int
    depth: int


def count(function: Callable, *inputs: object) -> Cost:
    """Run ``function(*inputs)`` without gradients, and count its products.

    Parameters
    ----------
    function : callable
        A module or a function of tensors. Multiplying by a plain Python number does not count.
    *inputs
        Passed on to it.

    Returns
    -------
    Cost

    Raises
    ------
    ValueError
        If the run uses an operation that multiplies out of sight, such as torch's fused attention, its
        recurrent layers, or a cumulative sum: count an explicit form instead.
    """
    counter = _Counter()
    with torch.no_grad(), counter:
        function(*inputs)
    return Cost(counter.matrix, counter.elementwise, max(counter.depths.values(), default=0))


_MATRIX = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot"}
_ELEMENTWISE = {"mul", "mul_", "div", "div_", "addcmul", "addcmul_", "addcdiv", "addcdiv_"}
_OUT_OF_SIGHT = ("attention", "rnn", "lstm", "gru", "cum", "conv", "einsum", "linear")


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.matrix = self.elementwise = 0
        # By storage, so that a view has the depth of what it looks at. Storages are kept, so that none of their
        # identities is used twice.
        self.depths: dict[int, int] = {}
        self._kept: list[torch.UntypedStorage] = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        name = operation.overloadpacket.__name__
        if any(part in name for part in _OUT_OF_SIGHT):
            raise ValueError(f"torch's {name} multiplies out of sight: count an explicit form")
        operands = _tensors([*args, *(kwargs or {}).values()])
        depth = max((self.depths.get(_identity(t), 0) for t in operands), default=0)
        if name in _MATRIX:
            # The inner axis is the last of the first factor; a sum that is added to comes before the factors.
            self.matrix += result.numel() * operands[-2].shape[-1]
            depth += 1
        elif name in _ELEMENTWISE and len(operands) > 1:
            self.elementwise += result.numel()
            depth += 1
        for tensor in _tensors([result]):
            key = _identity(tensor)
            if key not in self.depths:
                self._kept.append(tensor.untyped_storage())
            self.depths[key] = max(depth, self.depths.get(key, 0))
        return result


def _tensors(things: Iterable[object]) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(list(things)) if isinstance(leaf, Tensor)]


def _identity(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
