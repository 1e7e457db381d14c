"""Lesson 12: arrays that know what they were made from, and send gradients back.

Sources: A. Karpathy, micrograd (2020), for single numbers; Baydin et al., Automatic
Differentiation in Machine Learning: a Survey (2018), section 3.2.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


class Arithmetic:
    """The operators that follow from + and *. On either side, you can have a number or
    an array."""

    __array_ufunc__ = None  # an array on the left leaves them to us

    def __neg__(self: Any) -> Any:
        return self * -1.0

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __rsub__(self, other: Any) -> Any:
        return -self + other


class Tensor(Arithmetic):
    """Floats of any shape, the tensors they were made from, and the way back.

    back(g): turns the gradient of `data` into one for each parent, in order. depth: one
    more than the deepest parent's; 0 for a leaf.
    """

    def __init__(self, data: Any, parents: Any = (), back: Any = None) -> None:
        self.data, self.grad = np.asarray(data), None
        self.parents, self.back = parents, back
        self.depth = max([p.depth + 1 for p in parents], default=0)

    def __add__(self, other: Any) -> "Tensor":
        return add(self, other)

    def __mul__(self, other: Any) -> "Tensor":
        return multiply(self, other)

    def __matmul__(self, other: Any) -> "Tensor":
        return matmul(self, other)

    def __getitem__(self, index: Any) -> "Tensor":
        return pick(self, index)

    def backward(self, grad: np.ndarray | None = None) -> None:
        backward(self, grad)

    def __repr__(self) -> str:
        return f"Tensor({self.data})"


def order(root: Tensor) -> list[Tensor]:
    """All tensors that root was made from, deepest first: each comes before its
    parents."""
    found, seen = [root], {root}
    for node in found:  # the list grows while we walk along it
        for parent in node.parents:
            if parent not in seen:
                seen.add(parent)
                found.append(parent)
    return sorted(found, key=lambda node: node.depth, reverse=True)


def backward(root: Tensor, grad: np.ndarray | None = None) -> None:
    """Add to `grad` of each leaf that root was made from, and free the graph.

    grad: the gradient of root. Without it, all its numbers have the gradient 1.
    """
    nodes = order(root)[::-1]
    receive(root, np.ones_like(root.data) if grad is None else grad)
    while nodes:
        node = nodes.pop()
        if node.parents:  # a leaf has none, and keeps its gradient
            for parent, g in zip(node.parents, node.back(node.grad)):
                receive(parent, unbroadcast(g, parent.data.shape))
            node.parents = node.back = node.grad = None


def receive(tensor: Tensor, g: np.ndarray) -> None:
    """Add g to the gradient of a tensor."""
    if tensor.grad is not None:
        tensor.grad = tensor.grad + g
    elif tensor.parents:
        tensor.grad = g  # shared, perhaps, but only passed on
    else:
        tensor.grad = np.array(g)  # a leaf gets its own copy


def unbroadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient g in this shape: whatever was repeated is added up."""
    if g.shape == shape:
        return g
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    ones = tuple(i for i, n in enumerate(shape) if n == 1)
    return g.sum(axis=ones, keepdims=True)


def pair(a: Tensor, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors. A number becomes one with the other's kind of float."""
    if not isinstance(b, Tensor):
        b = Tensor(np.asarray(b, a.data.dtype))
    return a, b


def add(a: Tensor, b: Any) -> Tensor:
    """a + b."""
    a, b = pair(a, b)
    return Tensor(a.data + b.data, (a, b), lambda g: (g, g))


def multiply(a: Tensor, b: Any) -> Tensor:
    """a * b."""
    a, b = pair(a, b)
    return Tensor(a.data * b.data, (a, b), lambda g: (g * b.data, g * a.data))


def matmul(a: Tensor, b: Any) -> Tensor:
    """(..., n, k) @ (..., k, m) -> (..., n, m)."""
    a, b = pair(a, b)
    x, y = a.data, b.data

    def back(g):
        return g @ y.swapaxes(-1, -2), x.swapaxes(-1, -2) @ g

    return Tensor(x @ y, (a, b), back)


def exp(x: Tensor) -> Tensor:
    """e to the x."""
    y = np.exp(x.data)
    return Tensor(y, (x,), lambda g: (g * y,))


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return Tensor(np.log(x.data), (x,), lambda g: (g / x.data,))


def relu(x: Tensor) -> Tensor:
    """x where it's positive, else 0."""
    y = np.maximum(x.data, 0)
    return Tensor(y, (x,), lambda g: (g * (y > 0),))


def total(x: Tensor, axis: int | None = None) -> Tensor:
    """The sum over an axis, which stays with length 1. None sums everything, shape
    ()."""
    y = x.data.sum(axis=axis, keepdims=axis is not None)
    return Tensor(y, (x,), lambda g: (np.broadcast_to(g, x.data.shape),))


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same numbers in another shape."""
    return Tensor(x.data.reshape(shape), (x,), lambda g: (g.reshape(x.data.shape),))


def transpose(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The same numbers, with the dimensions in another order."""
    return Tensor(
        x.data.transpose(axes), (x,), lambda g: (g.transpose(np.argsort(axes)),)
    )


def pick(x: Tensor, index: Any) -> Tensor:
    """x[index]. Whatever is picked twice gets both gradients."""
    y = x.data[index]

    def back(g):
        whole = np.zeros_like(x.data)
        if np.may_share_memory(y, x.data):  # slices: nothing is picked twice
            whole[index] = g
        else:
            np.add.at(whole, index, g)
        return (whole,)

    return Tensor(y, (x,), back)


def slopes(f: Callable, x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """df/dx for each number in the array x, found by moving it by h. f(x) -> a
    number."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = np.array(x), np.array(x)
        up[place] += h
        down[place] -= h
        found[place] = (f(up) - f(down)) / (2 * h)
    return found
