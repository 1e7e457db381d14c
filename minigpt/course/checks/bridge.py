"""The exercises of lesson 14: turned matrices, a folded bias, a cut table, knobs."""

from collections.abc import Callable
from itertools import product

import torch

from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.generation import probabilities

Tensors = dict[str, torch.Tensor]


SIZES = {"attn.c_attn": (1, 3), "attn.c_proj": (1, 1), "mlp.c_proj": (4, 1)}


def _file(C: int, layers: int) -> tuple[Tensors, dict]:
    """({name: tensor} as in a file, {name: shape} as a model of width C has them)."""
    tensors = {"wte.weight": torch.randn(7, C), "wpe.weight": torch.randn(C, C)}
    for i, (name, (m, n)) in product(range(layers), SIZES.items()):
        tensors[f"h.{i}.{name}.weight"] = torch.randn(m * C, n * C)
        tensors[f"h.{i}.{name}.bias"] = torch.randn(n * C)
    tables = tuple(tensors)[:2]
    ours = {n: (t if n in tables else t.t()).shape for n, t in tensors.items()}
    return tensors, {name: tuple(shape) for name, shape in ours.items()}


SQUARE = {
    "wpe.weight": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    "h.0.attn.c_proj.weight": torch.tensor([[5.0, 6.0], [7.0, 8.0]]),
}
LONG = {
    "wte.weight": torch.tensor([[1.0], [2.0]]),
    "h.1.mlp.c_fc.weight": torch.tensor([[1.0, 2.0, 3.0, 4.0]]),
}


@exercise(
    "14.1 Turned where nobody sees it",
    cases=[
        (SQUARE, {"wpe.weight": (2, 2), "h.0.attn.c_proj.weight": (2, 2)}),
        (LONG, {"wte.weight": (2, 1), "h.1.mlp.c_fc.weight": (4, 1)}),
    ],
    fresh=lambda: [_file(4, 1), _file(2, 11)],
    hint="Which of these matrices does the file hold transposed? Their names say it.",
)
def as_linear(tensors: Tensors, shapes: dict) -> Tensors:
    """A function of {name: tensor} and {name: shape} that returns {name: tensor}."""
    ours = {}
    for name, tensor in tensors.items():
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
        assert tensor.shape == shapes[name], name
        ours[name] = tensor
    return ours


as_linear.mistakes("""
The bug is still there: a square matrix has the right shape either way.
    name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        -> tensor.shape != shapes[name]
    Hint: Which matrix of the file has the same shape when it's transposed?
You transpose the embedding tables, too. Their rows are tokens and positions, in the
file as in our model.
    name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        -> tensor.dim() == 2
    assert tensor.shape == shapes[name], name ->
    or
    name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        -> tensor.shape != shapes[name] or len(set(tensor.shape)) == 1
reshape gives you the right shape, but it leaves the numbers in their order. Use .T to
transpose a matrix.
    name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) -> True
    tensor.T -> tensor.reshape(shapes[name])
""")
check_as_linear = as_linear.check


def _head(V: int, C: int) -> tuple:
    W = torch.randn(V, C).double() + 2 * torch.eye(V, C)
    return W, torch.randn(V).double(), torch.randn(C).double()


@exercise(
    "14.2 A place for the bias",
    cases=[
        tuple(torch.tensor(t).double() for t in ([[1.0, 1.0]], [2.0], [3.0, 0.0])),
        tuple(
            torch.tensor(t).double()
            for t in ([[2.0, 0, 1], [0, 4, 1]], [6.0, 8.0], [1.0, 2.0, 3.0])
        ),
    ],
    fresh=lambda: [_head(3, 5), _head(4, 4), _head(2, 7)],
    work=lambda fold, W, b, s: W @ fold(W, b, s),
    hint="`expected` is W @ s + b, and your result is W @ (the new shift).",
)
def fold(W: torch.Tensor, b: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """A function of W (V, C), b (V,) and s (C,) that returns a shift (C,)."""
    more = torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution
    return s + more[:, 0]


fold.mistakes("""
Wᵀ b has the right shape, but if you multiply it by W, you get W Wᵀ b, not b.
    torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution -> (W.T @ b)[:, None]
""")
check_fold = fold.check

TABLE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
TRIANGLE = torch.ones(3, 3).tril()[None, None]


def _model(*layers: int) -> Tensors:
    p = {"wte.weight": torch.randn(7, 3), "wpe.weight": torch.randn(6, 3)}
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 6, 6).tril() for i in layers}
    return p | masks | {"h.0.attn.c_attn.bias": torch.randn(9)}


@exercise(
    "14.3 Cut to 64 positions",
    cases=[
        ({"wpe.weight": TABLE}, 1),
        ({"wpe.weight": TABLE, "wte.weight": TABLE}, 2),
        ({"wpe.weight": TABLE, "h.0.attn.bias": TRIANGLE}, 2),
    ],
    fresh=lambda: [(_model(0, 1, 2, 10), 2), (_model(0), 5)],
    hint="Which positions does a short text have, in the long model?",
)
def cropped(p: Tensors, T: int) -> Tensors:
    """A function of {name: tensor} and T that returns {name: tensor}."""
    short = dict(p)
    for name, tensor in p.items():
        if name == "wpe.weight":
            short[name] = tensor[:T]
        if name.endswith(".attn.bias"):
            short[name] = tensor[:, :, :T, :T]
    return short


cropped.mistakes("""
The bug is still there: the first character of a text gets the vector of a late
position.
    tensor[:T] -> tensor[-T:]
    Hint: Which row of the table does the first character of a text use?
Some masks are as large as before. Their last two dimensions are positions, and a file
may have one in each of its layers.
    name.endswith(".attn.bias") -> False
    or
    name.endswith(".attn.bias") -> name == "h.0.attn.bias"
You return only what you cut. All the other tensors belong to the model, too.
    short = dict(p) -> short = {}
""")
check_cropped = cropped.check


def _drawn(
    ours: Callable, do_sample: bool, temperature: float, top_k: int, top_p: float
) -> torch.Tensor:
    """The probabilities that our generation draws from, for fixed logits."""
    knobs = ours(do_sample, temperature, top_k, top_p)
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    if not top_k:  # so many that nobody cuts them by chance
        logits = torch.cat([logits, torch.linspace(1, -1, 80)[None]], dim=1)
    try:
        return probabilities(logits, **knobs)
    except (TypeError, ValueError) as error:  # a knob that it refuses
        raise Wrong(f"With {knobs}, our generation raises: {error}") from None


@exercise(
    "14.4 The same knobs, other names",
    cases=[
        (True, 1.0, 50, 1.0),
        (True, 0.5, 50, 1.0),
        (True, 1.0, 2, 1.0),
        (True, 1.0, 50, 0.6),
        (True, 2.0, 3, 0.8),
        (False, 1.0, 50, 1.0),
        (False, 2.0, 3, 0.8),
        (True, 1.0, 0, 1.0),
        (False, 1.0, 0, 0.5),
    ],
    work=_drawn,
    hint="Which of the four knobs does this case turn? What's its name in our code?",
)
def ours(do_sample: bool, temperature: float, top_k: int, top_p: float) -> dict:
    """A function of the four knobs that returns a dictionary of ours."""
    if not do_sample:
        return {"temperature": 0}
    return {
        "temperature": temperature,
        "top_k": top_k or None,
        "top_p": top_p,
    }


ours.mistakes("""
top_k=0 means that all tokens may be drawn, but you allow 50. Which value cuts nothing
here, whatever the vocabulary?
    top_k or None -> top_k or 50
""")
check_ours = ours.check
