"""The exercises of lesson 12: gradients by hand, and rules with their way back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from minigpt.backward.tensor import Tensor, backward, total
from minigpt.course.checks.exercise import exercise


def _array(*shape: int) -> np.ndarray:
    return torch.randn(*shape).double().numpy()


@exercise(
    "12.1 One gain for all rows",
    cases=[
        (
            np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            np.array([[2.0, 5.0], [1.0, 3.0], [4.0, 7.0]]),
            np.array([10.0, 100.0]),
        ),
        (np.array([2.0, 3.0]), np.array([5.0, 7.0]), np.array([10.0, 100.0])),
    ],
    fresh=lambda: [
        (_array(*shape), _array(*shape), _array(shape[-1]))
        for shape in [(2, 3), (2, 3, 4), (4,)]
    ],
    values=("dx", "dgain", "dshift"),
    hint="In how many rows was gain[0] used?",
)
def affine_backward(
    g: np.ndarray, x: np.ndarray, gain: np.ndarray
) -> tuple[np.ndarray, ...]:
    """A function of g, x (..., C) and gain (C,) that returns dx, dgain and dshift."""
    dx = g * gain
    dgain = (g * x).reshape(-1, len(gain)).sum(axis=0)
    dshift = g.reshape(-1, len(gain)).sum(axis=0)
    return dx, dgain, dshift


affine_backward.mistakes("""
You take means over the rows. If a value is used several times, its gradients are added
up.
    sum -> mean
You add up only the first dimension. gain and shift were used in all dimensions but the
last.
    (g * x).reshape(-1, len(gain)).sum(axis=0) -> (g * x).sum(axis=0)
    g.reshape(-1, len(gain)).sum(axis=0) -> g.sum(axis=0)
""")
check_affine_backward = affine_backward.check


@exercise(
    "12.2 Used twice",
    cases=[
        (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        (
            np.array([[1.0, 2.0, 6.0], [4.0, 0.0, 5.0]]),
            np.array([[1.0, 3, 4], [2, 1, 1]]),
        ),
    ],
    fresh=lambda: [
        (_array(*shape), np.exp(_array(*shape))) for shape in [(3,), (2, 4), (2, 3, 2)]
    ],
    hint="Check on paper: for x = [1, 3] and g = [1, 0], dx is [3/16, -1/16].",
)
def share_backward(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A function of g and x (..., C) that returns dx (..., C)."""
    s = x.sum(axis=-1, keepdims=True)
    return g / s - (g * x).sum(axis=-1, keepdims=True) / s**2


share_backward.mistakes("""
This is only the gradient through the numerator. Each number of x is also in the sum.
    - (g * x).sum(axis=-1, keepdims=True) / s**2 ->
You sum over all rows. Each row should hear only from its own g.
    (g * x).sum(axis=-1, keepdims=True) -> (g * x).sum()
This is the backward rule of softmax, with y in front of everything. Here you only
divide by the sum.
    g / s - (g * x).sum(axis=-1, keepdims=True) / s**2
        -> (y := x / s) * (g - (g * y).sum(axis=-1, keepdims=True))
""")
check_share_backward = share_backward.check


@exercise(
    "12.3 The same character again",
    cases=[
        (np.array([[[1.0], [10.0], [100.0]]]), np.array([[0, 2, 0]]), 4),
        (
            np.array([[[1.5, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]),
            np.array([[1, 0], [1, 1]]),
            3,
        ),
    ],
    fresh=lambda: [
        (_array(B, T, C), torch.randint(V, (B, T)).numpy(), V)
        for B, T, C, V in [(2, 3, 2, 9), (3, 4, 2, 5), (1, 8, 3, 2)]
    ],
    hint="Try it with ids = np.array([0, 0]). How often is row 0 written?",
)
def table_gradient(g: np.ndarray, ids: np.ndarray, V: int) -> np.ndarray:
    """A function of g (B, T, C), ids (B, T) and V that returns (V, C)."""
    table = np.zeros((V, g.shape[-1]))
    np.add.at(table, ids, g)
    return table


table_gradient.mistakes("""
If a character comes twice, you keep only one of its gradients. With a list of rows, `=`
and `+=` write each row once, and the last one stays.
    np.add.at(table, ids, g) -> table[ids] += g
If a row was used several times, its gradients are added up. Yours is their mean.
    return table
        -> return table / np.maximum(np.bincount(ids.ravel(), minlength=V), 1)[:, None]
""")
check_table_gradient = table_gradient.check


def _there_and_back(rule: Callable, x: np.ndarray, g: np.ndarray) -> tuple:
    """What the rule makes of x, and which gradients arrive at the parts of a sum."""
    leaf, other = Tensor(x), Tensor(np.zeros_like(x))
    out = rule(leaf * 1.0)
    backward(out + other * 1.0, g)  # the rule's way back comes first
    return out.data, leaf.grad, other.grad


@exercise(
    "12.4 A relu that forgets",
    cases=[
        (np.array([-1.0, 2.0]), np.array([3.0, 5.0])),
        (np.array([[0.0, -2.0], [3.0, 4.0]]), np.array([[2.0, -3.0], [5.0, -6.0]])),
    ],
    fresh=lambda: [(_array(3, 4), _array(3, 4)), (_array(2, 3, 2), _array(2, 3, 2))],
    work=_there_and_back,
    values=("value", "gradient", "gradient of the other summand"),
    hint="For which x does y stay the same if x moves a little?",
)
def relu(x: Tensor) -> Tensor:
    """A function of a Tensor that returns a Tensor, with its way back."""
    y = np.maximum(x.data, 0)
    return Tensor(y, (x,), lambda g: (g * (y > 0),))


relu.mistakes("""
The bug is still there: the gradient passes even where nothing came through.
    g * (y > 0) -> g
    Hint: Which numbers of x could move a little without y noticing?
You cut the gradient at 0. It may have any sign, so what counts is y.
    y > 0 -> g > 0
No gradient arrives, because the result doesn't know that x is its parent. The second
argument of Tensor(numbers, (x,), back) names the parents.
    Tensor(y, (x,), lambda g: (g * (y > 0),)) -> Tensor(y)
A way back returns a tuple with one gradient per parent: (…,) with its comma. Yours is
taken apart, and only its first entry is used.
    (g * (y > 0),) -> g * (y > 0)
""")
check_relu = relu.check


def _taught(distance: Callable, student: np.ndarray, teacher: np.ndarray) -> Any:
    """The loss, the student's gradient and the teacher's; zeros where there is none."""
    pair = Tensor(student), Tensor(teacher)
    loss = distance(*pair)
    if loss is None or loss is ...:
        return loss
    value = loss.data.copy()
    backward(loss)
    return value, *(np.zeros_like(x.data) if x.grad is None else x.grad for x in pair)


@exercise(
    "12.5 The wrong one is held in place",
    cases=[(np.array([1.0, 2.0]), np.array([4.0, 7.0]))],
    fresh=lambda: [(_array(3, 2), _array(3, 2)), (_array(4), _array(4))],
    work=_taught,
    values=("loss", "student gradient", "teacher gradient"),
    hint="Tensor(x.data) has the numbers of x, but no parents, so nothing flows back.",
)
def distance(student: Tensor, teacher: Tensor) -> Tensor:
    """A function of two Tensors that returns a Tensor, a single number."""
    fixed = Tensor(teacher.data)
    off = student + fixed * -1.0
    return total(off * off)


distance.mistakes("""
The bug is still there: the student is cut off, so it learns nothing.
    Tensor(teacher.data) -> Tensor(student.data)
    student + fixed -> fixed + teacher
    Hint: Tensor(x.data) has the numbers of x, but no parents. Who should be fixed?
Now nobody is cut off. The teacher gets a gradient, too, and would learn from the
student.
    Tensor(teacher.data) -> teacher
You cut off one of the two factors, so the gradient is only half as large.
    off * off -> off * Tensor(off.data)
""")
check_distance = distance.check
