"""Answers to notebook 12's exercises."""

import numpy as np
from exercises import exercises_of

from minigpt.backward.tensor import Tensor, backward, total

EXERCISES = exercises_of("12")


def names():
    tensors = {"Tensor": Tensor, "backward": backward, "total": total}
    return {"np": np, **tensors}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def affine(*lines):
    return defined("affine_backward(g, x, gain)", *lines)


def share(*lines):
    return defined("share_backward(g, x)", *lines)


def table(*lines):
    return defined("table_gradient(g, ids, V)", *lines)


def relu(body):
    return defined(
        "relu(x)",
        "y = np.maximum(x.data, 0)",
        f"return Tensor(y, (x,), lambda g: ({body},))",
    )


def distance(*lines):
    return defined("distance(student, teacher)", *lines, "return total(off * off)")


WRONG = {
    "12.1": {
        "still have the shape of x": affine("return g * gain, g * x, g"),
        "You take means over the rows": affine(
            "n = len(gain)",
            "return g * gain, (g * x).reshape(-1, n).mean(0), g.reshape(-1, n).mean(0)",
        ),
    },
    "12.2": {
        "only the gradient through the numerator": share(
            "return g / x.sum(axis=-1, keepdims=True)"
        ),
        "hear from all their g": share(
            "s = x.sum(-1, keepdims=True)", "return g / s - g * x / s**2"
        ),
    },
    "12.3": {
        "only the first text": table(
            "found = np.zeros((V, g.shape[-1]))",
            "for t, i in enumerate(ids[0]):",
            "    found[i] += g[0, t]",
            "return found",
        ),
        "keep only one of its gradients": table(
            "found = np.zeros((V, g.shape[-1]))", "found[ids] = g", "return found"
        ),
        "there is too much in `ids.T`": (
            "def table_gradient(g, ids, V):\n"
            "    out = np.zeros((V, g.shape[-1]))\n"
            "    np.add.at(out, ids.T.ravel(), g.reshape(-1, g.shape[-1]))\n"
            "    return out\n"
        ),
    },
    "12.4": {
        "The bug is still there": relu("g"),
        "It may have any sign": relu("g * (g > 0)"),
        "doesn't know that x is its parent": defined(
            "relu(x)", "return Tensor(np.maximum(x.data, 0))"
        ),
    },
    "12.5": {
        "The teacher gets a gradient, too": distance("off = student + teacher * -1.0"),
        "nobody learns": distance("off = Tensor(student.data - teacher.data)"),
    },
}

RIGHT = {
    "12.1": {
        "axes": affine(
            "axes = tuple(range(x.ndim - 1))",
            "return g * gain, (g * x).sum(axes), g.sum(axes)",
        ),
    },
    "12.2": {
        "with y": share(
            "s = x.sum(-1, keepdims=True)",
            "y = x / s",
            "return (g - (g * y).sum(-1, keepdims=True)) / s",
        ),
    },
    "12.3": {
        "a product": table(
            "one_hot = np.eye(V)[ids.reshape(-1)]",
            "return one_hot.T @ g.reshape(-1, g.shape[-1])",
        ),
    },
    "12.4": {"where": relu("np.where(x.data > 0, g, 0)")},
    "12.5": {
        "an array": distance("off = student + -teacher.data"),
    },
}
