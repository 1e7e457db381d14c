"""Checks for notebook 12: gradients by hand, and rules for tensors that remember."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from minigpt.backward.tensor import Tensor, backward, total
from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import randint, randn, same


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return randn(*shape, seed=seed).double().numpy()


AFFINE_BACKWARD = Solution(
    """
def affine_backward(g, x, gain):
    dx = g * gain
    dgain = (g * x).reshape(-1, len(gain)).sum(axis=0)
    dshift = g.reshape(-1, len(gain)).sum(axis=0)
    return dx, dgain, dshift
""",
    Mistake(
        "That is the backward pass of all of LayerNorm; here x has been normed "
        "already, and only gain and shift are asked for.",
        [
            (
                "dx = g * gain",
                "m, d = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) "
                "+ 1e-5); h = (x - m) / d; a = g * gain; dx = (a - a.mean(-1, "
                "keepdims=True) - h * (a * h).mean(-1, keepdims=True)) / d",
            ),
            ("(g * x)", "(g * h)"),
        ],
    ),
    Mistake(
        "dx is that of all of LayerNorm; here x has been normed already, and each "
        "number of it is only multiplied by its gain.",
        [
            (
                "dx = g * gain",
                "m, d = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) "
                "+ 1e-5); h = (x - m) / d; a = g * gain; dx = (a - a.mean(-1, "
                "keepdims=True) - h * (a * h).mean(-1, keepdims=True)) / d",
            )
        ],
    ),
    Mistake(
        "Only the first dimension is added up; gain and shift have served all "
        "dimensions but the last.",
        [
            ("(g * x).reshape(-1, len(gain)).sum(axis=0)", "(g * x).sum(axis=0)"),
            ("g.reshape(-1, len(gain)).sum(axis=0)", "g.sum(axis=0)"),
        ],
    ),
    Mistake(
        "gain and shift served every row, so what the rows say is added up: "
        "these gradients still have the shape of x.",
        [
            ("(g * x).reshape(-1, len(gain)).sum(axis=0)", "g * x"),
            ("g.reshape(-1, len(gain)).sum(axis=0)", "g"),
        ],
    ),
    Mistake(
        "The gradients of gain and shift are means over the rows: a value that "
        "was used many times gets the sum.",
        [("sum", "mean")],
    ),
    Mistake(
        "You multiply two sums; multiply in each row first, then add up.",
        [
            (
                "(g * x).reshape(-1, len(gain)).sum(axis=0)",
                "g.reshape(-1, len(gain)).sum(axis=0) * x.reshape(-1, "
                "len(gain)).sum(axis=0)",
            )
        ],
    ),
    Mistake(
        "The shift served every row: add up what the rows say, as for gain.",
        [("g.reshape(-1, len(gain)).sum(axis=0)", "g")],
    ),
    Mistake(
        "The slope of the sum is 1, but what comes back is g times that.",
        [
            (
                "g.reshape(-1, len(gain)).sum(axis=0)",
                "np.ones_like(g).reshape(-1, len(gain)).sum(axis=0)",
            )
        ],
    ),
    Mistake(
        "The slope of the sum is 1, but what comes back is g times "
        "that, summed over all rows.",
        [
            (
                "dshift = g.reshape(-1, len(gain)).sum(axis=0)",
                "dshift = np.ones(len(gain))",
            ),
        ],
    ),
    Mistake(
        "dx is the slope alone here; what comes back is g times that.",
        [
            ("dx = g * gain", "dx = gain * np.ones_like(x)"),
        ],
    ),
    Mistake(
        "That is the backward pass of all of LayerNorm; here x has "
        "been normed already, and only gain and shift are asked.",
        [
            (
                "dx = g * gain",
                "s = x.std(axis=-1, keepdims=True) + 1e-5; n = (x - "
                "x.mean(axis=-1, keepdims=True)) / s; d = g * gain; dx = (d - "
                "d.mean(axis=-1, keepdims=True) - n * (d * n).mean(axis=-1, "
                "keepdims=True)) / s",
            ),
            ("(g * x)", "(g * n)"),
        ],
    ),
    Mistake(
        "The slope of y = x * gain by gain is x alone; there is a gain "
        "too many in dgain.",
        [
            ("(g * x).", "(g * x * gain)."),
        ],
    ),
    Mistake(
        "reshape(C, -1) mixes rows and channels: the channels are the "
        "last dimension, so reshape(-1, C), and add up the rows.",
        [
            (
                "reshape(-1, len(gain)).sum(axis=0)",
                "reshape(len(gain), -1).sum(axis=1)",
            ),
        ],
    ),
    Mistake(
        "You add up the channels of each row. gain[c] was used in "
        "every row, so the rows are added up and the channels stay.",
        [
            ("reshape(-1, len(gain)).sum(axis=0)", "sum(axis=-1)"),
        ],
    ),
    Mistake(
        "You add up the dimensions 0 and 1, which is right for three "
        "dimensions only: x is (..., C).",
        [
            ("reshape(-1, len(gain)).sum(axis=0)", "sum(axis=(0, 1))"),
        ],
    ),
    Mistake(
        "The factors have changed places: y = x * gain moves by gain "
        "where x moves, and by x where gain moves.",
        [
            ("dx = g * gain", "dx = g * x"),
            ("(g * x).", "(g * gain)."),
        ],
    ),
)


@exercise("12.1 One gain for all rows", AFFINE_BACKWARD)
def check_affine_backward(affine_backward: Any) -> str:
    """affine_backward(g, x (..., C), gain (C,)) -> dx, dgain, dshift."""
    cases = [(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2), np.array([5.0, 6.0]))]
    for seed, shape in enumerate([(3, 2), (2, 3, 4), (4,)], 1):
        g, x = _array(*shape, seed=seed), _array(*shape, seed=10 + seed)
        cases.append((g, x, _array(shape[-1], seed=20 + seed)))
    hint = "g * x has a number for every row; gain and shift have one for all rows."
    value_names = ("dx", "dgain", "dshift")
    compare(affine_backward, AFFINE_BACKWARD, cases, value_names=value_names, hint=hint)
    return "4 shapes, from a single row to (B, T, C)."


SHARE_BACKWARD = Solution(
    """
def share_backward(g, x):
    s = x.sum(axis=-1, keepdims=True)
    return g / s - (g * x).sum(axis=-1, keepdims=True) / s**2
""",
    Mistake(
        "The sum runs over all rows; each row is divided by its own sum and hears "
        "its own g alone.",
        [("(g * x).sum(axis=-1, keepdims=True)", "(g * x).sum()")],
    ),
    Mistake(
        "This is the gradient of the numerator alone. Each number of x is in "
        "the sum, too.",
        [(" - (g * x).sum(axis=-1, keepdims=True) / s**2", "")],
    ),
    Mistake(
        "In the second use each share hears the g of all shares of its row: add"
        " them up.",
        [("(g * x).sum(axis=-1, keepdims=True)", "(g * x)")],
    ),
    Mistake(
        "That is the rule of softmax, with y in front of everything; here only "
        "a division is asked.",
        [
            ("return g / s", "y = x / s\n    return y * g"),
            (
                "(g * x).sum(axis=-1, keepdims=True) / s**2",
                "y * (g * y).sum(axis=-1, keepdims=True)",
            ),
        ],
    ),
    Mistake(
        "In the second use g belongs to the share, and x, too: the sum of g * "
        "x, not x times the sum of g (the Jacobian from the wrong side).",
        [("(g * x).sum(axis=-1, keepdims=True)", "x * g.sum(axis=-1, keepdims=True)")],
    ),
    Mistake(
        "Both sums run over all rows; each row is divided by its own "
        "sum, and hears its own g alone.",
        [
            ("sum(axis=-1, keepdims=True)", "sum()"),
        ],
    ),
    Mistake(
        "This is the gradient by way of the sum alone; the "
        "numerator's, g / s, is missing.",
        [
            ("g / s - ", "-"),
        ],
    ),
    Mistake(
        "This is the gradient by way of the sum alone; the "
        "numerator's, g / s, is missing.",
        [
            ("g / s - ", "0 * g - "),
        ],
    ),
    Mistake(
        "The slope of 1/s is -1/s²; the logarithm is the other way "
        "round, what has 1/s for its slope.",
        [
            ("/ s**2", "* np.log(s)"),
        ],
    ),
    Mistake(
        "That is g times y. Backwards goes g times the slopes of y, of "
        "which there are two: x stands in the numerator and in the sum.",
        [
            (
                "return g / s - (g * x).sum(axis=-1, keepdims=True) / s**2",
                "return g * x / s",
            ),
        ],
    ),
    Mistake(
        "The slope of 1/s is -1/s²: its minus and its square are both missing.",
        [
            (" - (g * x)", " + (g * x)"),
            ("/ s**2", "/ s"),
        ],
    ),
    Mistake(
        "The slope of 1/s is -1/s²: the square is missing.",
        [
            ("/ s**2", "/ s"),
        ],
    ),
    Mistake(
        "The two uses are multiplied; each sends its own gradient back, "
        "and they add up.",
        [
            ("g / s - (g", "g / s * -(g"),
        ],
    ),
)


@exercise("12.2 Used twice", SHARE_BACKWARD)
def check_share_backward(share_backward: Any) -> str:
    """share_backward(g, x): two arrays (..., C), x positive -> dx (..., C)."""
    cases = [(np.array([[1.0, 0.0]]), np.array([[1.0, 3.0]]))]
    for seed, shape in enumerate([(3,), (2, 4), (2, 3, 2)], 1):
        cases.append((_array(*shape, seed=seed), np.exp(_array(*shape, seed=9 + seed))))
    hint = "One gradient through the numerator, one through the sum; they add up."
    compare(share_backward, SHARE_BACKWARD, cases, hint=hint)
    return "4 shapes; both uses are heard."


TABLE_GRADIENT = Solution(
    """
def table_gradient(g, ids, V):
    table = np.zeros((V, g.shape[-1]))
    np.add.at(table, ids, g)
    return table
""",
    Mistake(
        "A token that occurs twice keeps only one of its gradients: with a list"
        " of rows, `=` and `+=` write each row once, and the last one stays.",
        [("np.add.at(table, ids, g)", "table[ids] += g")],
    ),
    Mistake(
        "You make rows for the ids that occur alone; the table has V of them, and a "
        "row that nobody fetched gets zeros.",
        [("return table", "return table[np.unique(ids)]")],
    ),
    Mistake(
        "A row that was fetched several times gets the sum, and this is the mean.",
        [
            (
                "return table",
                "return table / np.maximum(np.bincount(ids.ravel(), minlength=V), 1)[:,"
                " None]",
            )
        ],
    ),
    Mistake(
        "Only the first text of the batch is read: ids has B of them.",
        [("(table, ids, g)", "(table, ids[0], g[0])")],
    ),
    Mistake(
        "A character that occurs twice in a text keeps the last of its "
        "gradients only: `+=` with a list of rows writes each of them once.",
        [
            (
                "np.add.at(table, ids, g)",
                "for b in range(len(ids)): table[ids[b]] += g[b]",
            )
        ],
    ),
    Mistake(
        "Your reshape mixes positions and channels: (B, T, C) becomes (-1, C).",
        [
            (
                "(table, ids, g)",
                "(table, ids, g.reshape(g.shape[-1], -1).T.reshape(g.shape))",
            )
        ],
    ),
    Mistake(
        "You count how often each id stands in the text; the gradient "
        "of a row is the sum of the g of its places.",
        [
            ("(table, ids, g)", "(table, ids, 1)"),
        ],
    ),
    Mistake(
        "You have a table for each text of the batch; there is only "
        "one, and all texts fetch from it: add them up.",
        [
            (
                ("np.add.at(table, ids, g)\n    return table"),
                "return np.swapaxes(np.eye(V)[ids], 1, 2) @ g",
            ),
        ],
    ),
    Mistake(
        "Only the last text of the batch is in it. Is the table made anew for each?",
        [
            ("(table, ids, g)", "(table, ids[-1], g[-1])"),
        ],
    ),
    Mistake(
        "What is behind the point is cut off: gradients are no whole numbers.",
        [
            ("(table, ids, g)", "(table, ids, g.astype(int))"),
        ],
        hint="np.zeros(...) without dtype makes floats.",
    ),
    Mistake(
        "All channels of a row have the same number: a sum without an "
        "axis adds up the channels, too.",
        [
            (
                "return table",
                (
                    "return table.sum(axis=-1, "
                    "keepdims=True).repeat(table.shape[-1], axis=-1)"
                ),
            ),
        ],
    ),
)


@exercise("12.3 The same character again", TABLE_GRADIENT)
def check_table_gradient(table_gradient: Any) -> str:
    """table_gradient(g (B, T, C), ids (B, T), V) -> (V, C)."""
    cases = [(np.array([[[1.0], [10.0], [100.0]]]), np.array([[0, 2, 0]]), 3)]
    for seed, (B, T, C, V) in enumerate([(2, 3, 2, 9), (3, 4, 2, 5), (1, 8, 3, 2)], 1):
        ids = randint(V, B, T, seed=seed).numpy()
        cases.append((_array(B, T, C, seed=seed), ids, V))
    hint = "np.add.at(table, ids, g) adds one after the other."
    compare(table_gradient, TABLE_GRADIENT, cases, hint=hint)
    return "4 batches: tokens that occur never, once and several times."


def _there_and_back(
    rule: Callable, x: np.ndarray, g: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor] | None:
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


def _besides(rule: Callable, x: np.ndarray, g: np.ndarray) -> np.ndarray | None:
    """What another parent of a sum is given, besides what the rule makes of x."""
    other = Tensor(np.zeros_like(x))
    backward(rule(Tensor(x) * 1.0) + other * 1.0, g)  # the rule's way back comes first
    return other.grad


RELU = Solution(
    """
def relu(x):
    y = np.maximum(x.data, 0)
    return Tensor(y, (x,), lambda g: (g * (y > 0),))
""",
    Mistake(
        "Where x is exactly 0 nothing comes through, and the slope is 0, too.",
        [("y > 0", "x.data >= 0")],
    ),
    Mistake(
        "Negative numbers let a little of the gradient through, as in a leaky ReLU; "
        "here it is none.",
        [("g * (y > 0)", "np.where(y > 0, g, 0.01 * g)")],
    ),
    Mistake(
        "The bug is still there: the gradient passes where nothing came through.",
        [("g * (y > 0)", "g")],
        hint="Which numbers of x could move by a hair, and y would not notice?",
        untouched=True,
    ),
    Mistake(
        "The gradient itself is cut at 0. It may have any sign; what counts is y.",
        [("y > 0", "g > 0")],
    ),
    Mistake(
        "Where g is negative your gradient is 0: g may have any sign, and x alone "
        "decides who gets through.",
        [("g * (y > 0)", "np.maximum(g, 0) * (y > 0)")],
    ),
    Mistake(
        "The gradient is multiplied by y; the slope of y is 1, wherever y is positive.",
        [("(y > 0)", "y")],
    ),
    Mistake(
        "np.sign is -1 for negative numbers; the slope there is 0.",
        [("(y > 0)", "np.sign(x.data)")],
    ),
    Mistake(
        "`back` should return a tuple, a gradient for each parent: (…,) "
        "with its comma. Yours is taken apart, and its first entry is "
        "used.",
        [
            ("(g * (y > 0),)", "g * (y > 0)"),
        ],
        hint="A sum has two parents, and sends back (g, g); relu has one.",
    ),
    Tensor=Tensor,
)


@exercise("12.4 A relu that forgets", RELU)
def check_relu(relu: Any) -> str:
    """relu(x): a Tensor -> a Tensor, with its way back."""
    cases = [(np.array([-1.0, 2.0]), np.array([3.0, 5.0]))]
    cases.append(
        (np.array([[0.0, -2.0], [1.0, 0.0]]), np.array([[2.0, 3.0], [4.0, 5.0]]))
    )
    for seed, shape in [(1, (3, 4)), (3, (2, 3, 2))]:
        cases.append((_array(*shape, seed=seed), _array(*shape, seed=seed + 1)))
    hint = "The slope is 1 where y is positive, and 0 elsewhere."
    how: dict[str, Any] = {
        "value_names": ("its value", "its gradient"),
        "work": _there_and_back,
    }
    compare(relu, RELU, cases, **how, hint=hint)
    x, g = cases[0]
    if not same(call(_besides, relu, x, g), g):
        raise Explained(
            "Your way back changes g in place, and g need not be yours alone: a sum "
            "sends one and the same g to all its parents.",
            "Make another array of it: g * (...), or np.where(...).",
            share=0.9,
        )
    return "4 inputs, zeros among them, forward and back, with gradients of both signs."


def _taught(
    distance: Callable, student: np.ndarray, teacher: np.ndarray
) -> tuple[torch.Tensor, ...] | None:
    """The loss, the student's gradient and the teacher's; zeros where there is none."""
    pair = Tensor(student), Tensor(teacher)
    loss = distance(*pair)
    if loss is None or loss is ...:
        return None
    value = loss.data.copy()
    backward(loss)
    grads = [np.zeros_like(x.data) if x.grad is None else x.grad for x in pair]
    return tuple(map(torch.as_tensor, (value, *grads)))


DISTANCE = Solution(
    """
def distance(student, teacher):
    fixed = Tensor(teacher.data)
    off = student + fixed * -1.0
    return total(off * off)
""",
    Mistake(
        "The bug is still there: the student is cut off, and learns nothing.",
        [
            ("Tensor(teacher.data)", "Tensor(student.data)"),
            ("student + fixed", "fixed + teacher"),
        ],
        hint="Tensor(x.data) has the numbers of x and no parents. Who should be it?",
        untouched=True,
    ),
    Mistake(
        "Nobody is cut off now: the teacher gets a gradient, too, and would "
        "learn from the student.",
        [("Tensor(teacher.data)", "teacher")],
    ),
    Mistake(
        "The difference is cut off as a whole, so nobody learns.",
        [("off * off", "Tensor(off.data) * Tensor(off.data)")],
    ),
    Mistake(
        "One of the two factors is cut off: the gradient is half of what it should be.",
        [("off * off", "off * Tensor(off.data)")],
    ),
    Mistake(
        "One of the two factors is cut off, and the teacher is not.",
        [("Tensor(teacher.data)", "teacher"), ("off * off", "off * Tensor(off.data)")],
    ),
    Tensor=Tensor,
    total=total,
)


@exercise("12.5 The wrong one is held fast", DISTANCE)
def check_distance(distance: Any) -> str:
    """distance(student, teacher): two Tensors -> a Tensor, a single number."""
    cases = [(np.array([1.0, 2.0]), np.array([0.0, 4.0]))]
    cases += [(_array(3, 2, seed=s), _array(3, 2, seed=s + 5)) for s in (1, 2)]
    hint = "Tensor(x.data) has the numbers of x and no parents: nothing flows through."
    value_names = ("the loss", "the student's gradient", "the teacher's gradient")
    compare(distance, DISTANCE, cases, work=_taught, value_names=value_names, hint=hint)
    return "3 pairs: the student learns, and the teacher stays as it is."
