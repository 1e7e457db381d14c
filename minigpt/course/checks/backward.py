"""Checks for notebook 12: gradients by hand, and rules for tensors that remember."""

import numpy as np
import torch

from minigpt.backward.tensor import Tensor, backward
from minigpt.course.checks.core import Explained, compare, exercise
from minigpt.course.checks.solutions import Solution
from minigpt.course.checks.values import randint, randn


def _array(*shape, seed=0):
    return randn(*shape, seed=seed).double().numpy()


@exercise("12.1 One gain for all rows")
def check_affine_backward(affine_backward):
    """affine_backward(g, x (..., C), gain (C,)) -> dx, dgain, dshift."""
    cases = [(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2), np.array([5.0, 6.0]))]
    for seed, shape in enumerate([(3, 2), (2, 3, 4), (4,)], 1):
        g, x = _array(*shape, seed=seed), _array(*shape, seed=10 + seed)
        cases.append((g, x, _array(shape[-1], seed=20 + seed)))
    hint = "g * x has a number for every row; gain and shift have one for all rows."
    parts = ("dx", "dgain", "dshift")
    compare(affine_backward, Solution("12.1"), cases, parts=parts, hint=hint)
    return "4 shapes, from a single row to (B, T, C)."


@exercise("12.2 Used twice")
def check_share_backward(share_backward):
    """share_backward(g, x): two arrays (..., C), x positive -> dx (..., C)."""
    cases = [(np.array([[1.0, 0.0]]), np.array([[1.0, 3.0]]))]
    for seed, shape in enumerate([(3,), (2, 4), (2, 3, 2)], 1):
        cases.append((_array(*shape, seed=seed), np.exp(_array(*shape, seed=9 + seed))))
    hint = "One gradient through the numerator, one through the sum; they add up."
    compare(share_backward, Solution("12.2"), cases, hint=hint)
    return "4 shapes; both uses are heard."


@exercise("12.3 The same character again")
def check_table_gradient(table_gradient):
    """table_gradient(g (B, T, C), ids (B, T), V) -> (V, C)."""
    cases = [(np.array([[[1.0], [10.0], [100.0]]]), np.array([[0, 2, 0]]), 3)]
    for seed, (B, T, C, V) in enumerate([(2, 3, 2, 9), (3, 4, 2, 5), (1, 8, 3, 2)], 1):
        ids = randint(V, B, T, seed=seed).numpy()
        cases.append((_array(B, T, C, seed=seed), ids, V))
    hint = "np.add.at(table, ids, g) adds one after the other."
    compare(table_gradient, Solution("12.3"), cases, hint=hint)
    return "4 batches: tokens that occur never, once and several times."


def _there_and_back(rule, x, g):
    """What the rule makes of x, and the gradient that it sends back for g."""
    leaf = Tensor(x)
    out = rule(leaf)
    if out is None or out is ...:
        return None
    value = out.data.copy()
    backward(out * 1.0, g)
    if leaf.grad is None:
        raise Explained(
            "No gradient arrives: the result does not know x as its parent.",
            "Tensor(numbers, (x,), back): the second place names the parents.",
        )
    return torch.as_tensor(value), torch.as_tensor(leaf.grad)


@exercise("12.4 A relu that forgets")
def check_relu(relu):
    """relu(x): a Tensor -> a Tensor, with its way back."""
    cases = [(np.array([-1.0, 2.0]), np.array([3.0, 5.0]))]
    for seed, shape in [(1, (3, 4)), (3, (2, 3, 2))]:
        cases.append((_array(*shape, seed=seed), _array(*shape, seed=seed + 1)))
    hint = "The slope is 1 where y is positive, and 0 elsewhere."
    how = {"parts": ("its value", "its gradient"), "work": _there_and_back}
    compare(relu, Solution("12.4"), cases, **how, hint=hint)
    return "3 shapes, forward and back, with gradients of both signs."


def _taught(distance, student, teacher):
    """The loss, the student's gradient and the teacher's; zeros where there is none."""
    pair = Tensor(student), Tensor(teacher)
    loss = distance(*pair)
    if loss is None or loss is ...:
        return None
    value = loss.data.copy()
    backward(loss)
    grads = [np.zeros_like(x.data) if x.grad is None else x.grad for x in pair]
    return tuple(map(torch.as_tensor, (value, *grads)))


@exercise("12.5 The wrong one is held fast")
def check_distance(distance):
    """distance(student, teacher): two Tensors -> a Tensor, a single number."""
    cases = [(np.array([1.0, 2.0]), np.array([0.0, 4.0]))]
    cases += [(_array(3, 2, seed=s), _array(3, 2, seed=s + 5)) for s in (1, 2)]
    hint = "Tensor(x.data) has the numbers of x and no parents: nothing flows through."
    parts = ("the loss", "the student's gradient", "the teacher's gradient")
    compare(distance, Solution("12.5"), cases, work=_taught, parts=parts, hint=hint)
    return "3 pairs: the student learns, and the teacher stays as it is."
