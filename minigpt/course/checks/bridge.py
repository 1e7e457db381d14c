"""Checks for notebook 14: turned by name, a bias folded, a table cut, knobs."""

import torch

from minigpt.course.checks.core import compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import randn
from minigpt.generation import probabilities

TURNED = {"attn.c_attn": (1, 3), "attn.c_proj": (1, 1), "mlp.c_fc": (1, 4)}
TURNED |= {"mlp.c_proj": (4, 1)}  # rows and columns in a file, in widths


def _file(C, V, T, parts):
    """({name: tensor} as in a file, {name: shape} as a model of width C has them)."""
    tensors = {"wte.weight": randn(V, C, seed=1), "wpe.weight": randn(T, C, seed=2)}
    shapes = {name: tuple(t.shape) for name, t in tensors.items()}
    for i, part in enumerate(parts):
        rows, columns = (C * n for n in TURNED[part])
        for name, *size in ((f"h.0.{part}.weight", rows, columns),) + (
            (f"h.0.{part}.bias", columns),
        ):
            tensors[name] = randn(*size, seed=i)
            shapes[name] = tuple(size[::-1])
    return tensors, shapes


AS_LINEAR = Solution(
    """
def as_linear(tensors, shapes):
    ours = {}
    for name, tensor in tensors.items():
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
        assert tensor.shape == shapes[name], name
        ours[name] = tensor
    return ours
""",
    Mistake(
        "The bug is still there: a square matrix has the right shape as it is and "
        "turned.",
        [
            (
                'name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))',
                "tensor.shape != shapes[name]",
            )
        ],
        hint="Which matrix of the file has the same shape when it is turned?",
        untouched=True,
    ),
    Mistake(
        "All square matrices are turned now, but a table of embeddings can be "
        "square, too.",
        [
            (
                'name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))',
                "tensor.shape != shapes[name] or len(set(shapes[name])) == 1 < "
                "len(shapes[name])",
            )
        ],
    ),
)


@exercise("14.1 Turned where nobody sees it", AS_LINEAR)
def check_as_linear(as_linear):
    """as_linear(tensors, shapes): {name: tensor}, {name: shape} -> {name: tensor}."""
    cases = [_file(2, 3, 4, ["attn.c_proj"]), _file(3, 3, 5, ["attn.c_attn"])]
    cases.append(_file(4, 7, 4, list(TURNED)))
    hint = "Does the name say which matrices lie turned, or the shape?"
    compare(as_linear, AS_LINEAR, cases, hint=hint)
    return "3 files: square matrices that are turned, and square tables that are not."


FOLD = Solution(
    """
def fold(W, b, s):
    more = torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution
    return s + more[:, 0]
""",
    Mistake(
        "The old shift is lost: what you add does the work of b, and s has its own.",
        [("return s + more[:, 0]", "return more[:, 0]")],
    ),
    Mistake(
        "The bias is taken away in place of added.",
        [("return s + more[:, 0]", "return s - more[:, 0]")],
    ),
    Mistake(
        "Wᵀ b has the right shape, but W times it is W Wᵀ b, and not b.",
        [
            (
                'torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution',
                "(W.T @ b)[:, None]",
            )
        ],
    ),
)


@exercise("14.2 A place for the bias", FOLD)
def check_fold(fold):
    """fold(W (V, C), b (V,), s (C,)) -> (C,): W times it is W @ s + b."""
    by_hand = [[[1.0, 1.0]], [2.0], [3.0, 0.0]]
    cases = [tuple(torch.tensor(t).double() for t in by_hand)]
    for V, C in ((3, 5), (4, 4), (2, 7)):
        W = randn(V, C, seed=V).double() + 2 * torch.eye(V, C)
        b, s = (randn(n, seed=10 + n).double() for n in (V, C))
        cases.append((W, b, s))

    def logits(fold, W, b, s):
        return W @ fold(W, b, s)

    hint = "Look for what to add to s: W @ more = b. torch.linalg.lstsq solves that."
    compare(fold, FOLD, cases, work=logits, hint=hint)
    return "4 output layers, with as many tokens as channels or fewer."


CROPPED = Solution(
    """
def cropped(p, T):
    short = dict(p)
    for name, tensor in p.items():
        if name == "wpe.weight":
            short[name] = tensor[:T]
        if name.endswith(".attn.bias"):
            short[name] = tensor[:, :, :T, :T]
    return short
""",
    Mistake(
        "The bug is still there: the first character of a text finds the vector of a "
        "late position.",
        [("tensor[:T]", "tensor[-T:]")],
        hint="Which row of the table does the first character of a text take?",
        untouched=True,
    ),
    Mistake(
        "The masks are as large as before: rows and columns of the last two "
        "dimensions.",
        [("tensor[:, :, :T, :T]", "tensor")],
    ),
    Mistake(
        "Only one side of the masks is cut.",
        [("tensor[:, :, :T, :T]", "tensor[:, :, :T]")],
    ),
    Mistake(
        "You cut the channels: positions are the rows.",
        [("tensor[:T]", "tensor[:, :T]")],
    ),
)


@exercise("14.3 Cut to 64 positions", CROPPED)
def check_cropped(cropped):
    """cropped(p, T): {name: tensor}, a number -> {name: tensor}."""
    mask = torch.ones(6, 6).tril()[None, None]
    plain = {"wte.weight": randn(5, 3, seed=1), "wpe.weight": randn(6, 3, seed=2)}
    one = plain | {"h.0.attn.bias": mask, "h.0.attn.c_attn.bias": randn(9, seed=3)}
    two = one | {"h.1.attn.bias": mask, "h.0.ln_1.bias": randn(3, seed=4)}
    cases = [({"wpe.weight": randn(3, 2, seed=5)}, 1), (plain, 4), (one, 2), (two, 5)]
    hint = "A text begins at position 0, in a long table and in a short one."
    compare(cropped, CROPPED, cases, hint=hint)
    return "4 tables, with and without masks; what was given is as it was."


OURS = Solution(
    """
def ours(do_sample, temperature, top_k, top_p):
    if not do_sample:
        return {"temperature": 0}
    return {
        "temperature": temperature,
        "top_k": top_k or None,
        "top_p": top_p,
    }
""",
    Mistake(
        "With do_sample=False nothing is drawn, whatever the other three say: the "
        "likeliest token is taken.",
        [("if not do_sample", "if False")],
    ),
    Mistake(
        "With do_sample=True it is the likeliest token, and with False it is drawn: "
        "the wrong way round.",
        [("if not do_sample", "if do_sample")],
    ),
    Mistake(
        "top_k is lost: all tokens can be drawn.",
        [('"top_k": top_k or None', '"top_k": None')],
    ),
    Mistake(
        "top_p is lost: unlikely tokens can be drawn.",
        [('"top_p": top_p', '"top_p": None')],
    ),
    Mistake(
        "The temperature is lost: 1 leaves the logits as they are.",
        [('"temperature": temperature', '"temperature": 1.0')],
    ),
    Mistake(
        "The temperature divides the logits in both libraries; you multiply by it.",
        [('"temperature": temperature', '"temperature": 1 / temperature')],
    ),
)


@exercise("14.4 The same knobs, other names", OURS)
def check_ours(ours):
    """ours(do_sample, temperature, top_k, top_p) -> a dictionary of our knobs."""
    logits = randn(1, 9, seed=1) * 2
    knobs = [
        (True, 1.0, 50, 1.0),
        (True, 0.5, 50, 1.0),
        (True, 1.0, 2, 1.0),
        (True, 1.0, 50, 0.6),
        (True, 2.0, 4, 0.8),
        (False, 1.0, 50, 1.0),
        (False, 2.0, 4, 0.8),
        (True, 1.0, 0, 1.0),
    ]

    def drawn(ours, do_sample, temperature, top_k, top_p):
        knobs = ours(do_sample, temperature, top_k, top_p)
        try:
            return probabilities(logits, **knobs)
        except ValueError as error:  # a knob that our generate refuses
            return str(error)

    known = [
        Mistake(
            "With these knobs our generate refuses to draw.",
            sign=lambda got, *_: isinstance(got, str),
        )
    ]
    hint = "Which of our knobs takes the likeliest token? What is their 0 for ours?"
    compare(ours, OURS, knobs, known, work=drawn, hint=hint)
    return "8 settings: what can be drawn has the probabilities that it has there."
