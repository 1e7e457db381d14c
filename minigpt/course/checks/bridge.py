"""Checks for notebook 14: turned by name, a bias folded, a table cut, knobs."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from minigpt.course.checks.core import Explained, compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import describe, randn, same
from minigpt.generation import probabilities

TURNED = {"attn.c_attn": (1, 3), "attn.c_proj": (1, 1), "mlp.c_fc": (1, 4)}
TURNED |= {"mlp.c_proj": (4, 1)}  # rows and columns in a file, in widths


def _file(
    C: int, V: int, T: int, parts: Sequence[str]
) -> tuple[dict[str, torch.Tensor], dict[str, tuple[int, ...]]]:
    """({name: tensor} as in a file, {name: shape} as a model of width C has them)."""
    tensors = {"wte.weight": randn(V, C, seed=1), "wpe.weight": randn(T, C, seed=2)}
    shapes = {name: tuple(t.shape) for name, t in tensors.items()}
    for i, part in enumerate(parts):
        rows, columns = (C * n for n in TURNED[part])
        for name, *size in ((f"h.{i // 2}.{part}.weight", rows, columns),) + (
            (f"h.{i // 2}.{part}.bias", columns),
        ):
            tensors[name] = randn(*size, seed=i)
            shapes[name] = tuple(size[::-1])
    return tensors, shapes


def _wrong(got: Any, right: dict[str, torch.Tensor]) -> list[str]:
    """The names of wrong tensors; raises ValueError if none is, or `got` has others."""
    if not isinstance(got, dict) or got.keys() != right.keys():
        raise ValueError("Other names.")
    if wrong := [name for name in right if not same(got[name], right[name])]:
        return wrong
    raise ValueError("No tensor is wrong.")


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
    Mistake(
        "The tables of embeddings are turned, too. Their rows are "
        "tokens and positions, in the file as in ours: only the "
        "layers' matrices lie turned.",
        [
            (
                ('name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))'),
                "tensor.dim() == 2",
            ),
            (("        assert tensor.shape == shapes[name], name\n"), ""),
        ],
    ),
    Mistake(
        "The table of positions is turned, too; like that of the "
        "tokens it lies in the file as in ours.",
        [
            (
                ('name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))'),
                'tensor.dim() == 2 and "wte" not in name',
            ),
            (("        assert tensor.shape == shapes[name], name\n"), ""),
        ],
    ),
    Mistake(
        "Only attention's matrices are turned; those of the "
        "feed-forward layers lie turned as well.",
        [
            (
                ('name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))'),
                '"attn" in name and tensor.dim() == 2',
            ),
            (("        assert tensor.shape == shapes[name], name\n"), ""),
        ],
    ),
    Mistake(
        "Only the c_proj are turned; c_attn and c_fc lie turned as well.",
        [
            (
                ('name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))'),
                'name.endswith("c_proj.weight")',
            ),
            (("        assert tensor.shape == shapes[name], name\n"), ""),
        ],
    ),
    Mistake(
        "Only square matrices are turned; those that are not square "
        "lie turned as well.",
        [
            (
                ('name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))'),
                "tensor.dim() == 2 and len(set(tensor.shape)) == 1",
            ),
            (("        assert tensor.shape == shapes[name], name\n"), ""),
        ],
    ),
    Mistake(
        "reshape gives the right shape, but leaves the numbers in "
        "their order; a matrix is turned by .T.",
        [
            (
                ('name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))'),
                "True",
            ),
            ("tensor.T", "tensor.reshape(shapes[name])"),
        ],
    ),
    Mistake(
        "Only the matrices that were turned come back; all the other "
        "tensors are missing.",
        [
            (
                "ours[name] = tensor",
                "if tensor.dim() == 2 and '.c_' in name: ours[name] = tensor",
            ),
        ],
    ),
    Mistake(
        "reshape gives the right shape, but leaves the numbers in their "
        "order; a matrix is turned by .T.",
        [
            (
                'name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))',
                'name.endswith("attn.c_proj.weight")',
            ),
            (
                "assert tensor.shape == shapes[name], name",
                "tensor = tensor.reshape(shapes[name])",
            ),
        ],
    ),
    Mistake(
        "reshape gives the right shape, but leaves the numbers in their "
        "order; a matrix is turned by .T.",
        [
            (
                'name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))',
                "len(set(tensor.shape)) == 1 < tensor.dim() and '.c_' in name",
            ),
            (
                "assert tensor.shape == shapes[name], name",
                "tensor = tensor.reshape(shapes[name])",
            ),
        ],
    ),
    Mistake(
        "All matrices come back as they lie in the file. Is a tensor put "
        "into the dictionary before it is turned?",
        [
            (
                'name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))',
                "False",
            ),
            ("        assert tensor.shape == shapes[name], name\n", ""),
        ],
    ),
)


@exercise("14.1 Turned where nobody sees it", AS_LINEAR)
def check_as_linear(as_linear: Any) -> str:
    """as_linear(tensors, shapes): {name: tensor}, {name: shape} -> {name: tensor}."""
    cases = [_file(2, 3, 4, ["attn.c_proj"]), _file(3, 3, 5, ["attn.c_attn"])]
    cases.append(_file(4, 7, 4, list(TURNED)))
    cases.append(_file(2, 3, 4, ["attn.c_proj", "mlp.c_fc"] * 11))  # 11 layers
    known = [
        Mistake(
            "The first layers are right, and later ones are not: a file may have more "
            "layers than the example.",
            sign=lambda got, right, *_: all(
                re.match(r"h\.([2-9]|\d\d)", name) for name in _wrong(got, right)
            ),
        ),
        Mistake(
            "Some matrices come back as they lie in the file: all those of attention "
            "and of the feed-forward layers lie turned there.",
            sign=lambda got, right, tensors, _: all(
                same(got[name], tensors[name]) for name in _wrong(got, right)
            ),
            vague=True,
        ),
    ]
    hint = "Does the name say which matrices lie turned, or the shape?"
    compare(as_linear, AS_LINEAR, cases, known, hint=hint)
    return "4 files: square matrices that are turned, and square tables that are not."


FOLD = Solution(
    """
def fold(W, b, s):
    more = torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution
    return s + more[:, 0]
""",
    Mistake(
        "The logits have lost the old shift's part, W @ s: is s left out, or is W @ s "
        "taken away from b?",
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
    Mistake(
        "The old shift is counted twice: W times what you add should "
        "give b, and s is there already.",
        [
            ("b[:, None]", "(b + W @ s)[:, None]"),
        ],
    ),
    Mistake(
        "Wᵀ b has the right shape, but W times it is W Wᵀ b, and no "
        "single number turns that into b.",
        [
            (
                'torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution',
                "(W.T @ b)[:, None] / W.pow(2).sum()",
            ),
        ],
    ),
    Mistake(
        "The mean of b moves every channel alike; what is to be added "
        "is a vector that W turns into b.",
        [
            ("more[:, 0]", "b.mean()"),
        ],
    ),
    Mistake(
        "Each row of W is scaled to bring its own b, but what is added "
        "for one row is felt by the others, unless they stand at right "
        "angles.",
        [
            (
                'torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution',
                "(W.T / W.square().sum(dim=1) @ b)[:, None]",
            ),
        ],
    ),
    Mistake(
        "b is added to the first channels as it is. It has a number for "
        "each token, a shift one for each channel, and W lies between "
        "them.",
        [
            ("more[:, 0]", "F.pad(b, (0, len(s) - len(b)))"),
        ],
    ),
    Mistake(
        "A solution of W @ more = b is scaled or made to length 1; it is "
        "to be added as it is.",
        [
            ("more[:, 0]", "F.normalize(more[:, 0], dim=0)"),
        ],
    ),
)


@exercise("14.2 A place for the bias", FOLD)
def check_fold(fold: Any) -> str:
    """fold(W (V, C), b (V,), s (C,)) -> (C,): W times it is W @ s + b."""
    by_hand = [[[1.0, 1.0]], [2.0], [3.0, 0.0]]
    cases = [tuple(torch.tensor(t).double() for t in by_hand)]
    for V, C in ((3, 5), (4, 4), (2, 7)):
        W = randn(V, C, seed=V).double() + 2 * torch.eye(V, C)
        b, s = (randn(n, seed=10 + n).double() for n in (V, C))
        cases.append((W, b, s))

    def logits(
        fold: Callable, W: torch.Tensor, b: torch.Tensor, s: torch.Tensor
    ) -> Any:
        found = fold(W, b, s)
        if found is None or found is ...:
            return found
        size = getattr(found, "shape", s.shape)
        if tuple(size) != tuple(s.shape):
            hint = "It is added to s, before W: one number for each channel."
            if len(size) == 2:
                hint += " A column (C, 1) and s (C,) make a square."
            raise Explained(
                f"The new shift should have the shape of s, {tuple(s.shape)}; "
                f"yours has {tuple(size)}.",
                hint,
            )
        return W @ found

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
    Mistake(
        "You throw the first T rows away and keep the rest: a text's "
        "first character takes row 0.",
        [
            ("tensor[:T]", "tensor[T:]"),
        ],
    ),
    Mistake(
        "The first character of a text still finds the vector of a "
        "late position: turning the last rows round does not make them "
        "the first.",
        [
            ("tensor[:T]", "tensor[-T:].flip(0)"),
        ],
    ),
    Mistake(
        "You take rows from all over the table. The character at place "
        "3 takes row 3: keep the first T.",
        [
            ("tensor[:T]", "tensor[:: len(tensor) // T][:T]"),
        ],
    ),
    Mistake(
        "The rows behind T are set to zero, but the table is as long as before.",
        [
            ("tensor[:T]", "torch.cat([tensor[:T], 0 * tensor[T:]])"),
        ],
    ),
    Mistake(
        "The table of tokens is cut, too: its rows are the vocabulary, not positions.",
        [
            ('name == "wpe.weight"', 'name in ("wpe.weight", "wte.weight")'),
        ],
    ),
    Mistake(
        "Only what was cut comes back; all the other tensors belong to the model, too.",
        [
            ("short = dict(p)", "short = {}"),
        ],
    ),
    Mistake(
        "The masks are cut at the wrong end: the first T rows and "
        "columns are those of short texts.",
        [
            ("tensor[:, :, :T, :T]", "tensor[:, :, -T:, :T]"),
        ],
    ),
    Mistake(
        "You take rows from all over the table. The character at place 3 "
        "takes row 3: keep the first T.",
        [
            (
                "tensor[:T]",
                "tensor[torch.linspace(0, len(tensor) - 1, T).round().long()]",
            ),
        ],
    ),
    Mistake(
        "You take rows from all over the table. The character at place 3 "
        "takes row 3: keep the first T.",
        [
            ("tensor[:T]", "tensor[torch.linspace(0, len(tensor) - 1, T).long()]"),
        ],
    ),
    Mistake(
        "Rows of the table are averaged. The character at place 3 takes "
        "row 3 as it is: keep the first T.",
        [
            ("tensor[:T]", "F.adaptive_avg_pool1d(tensor.T[None], T)[0].T"),
        ],
    ),
    Mistake(
        "Row 0 is left out: a text's first character takes it.",
        [
            ("tensor[:T]", "tensor[1 : T + 1]"),
        ],
    ),
)


@exercise("14.3 Cut to 64 positions", CROPPED)
def check_cropped(cropped: Any) -> str:
    """cropped(p, T): {name: tensor}, a number -> {name: tensor}."""
    mask = torch.ones(6, 6).tril()[None, None]
    plain = {"wte.weight": randn(5, 3, seed=1), "wpe.weight": randn(6, 3, seed=2)}
    one = plain | {"h.0.attn.bias": mask, "h.0.attn.c_attn.bias": randn(9, seed=3)}
    two = one | {"h.1.attn.bias": mask, "h.0.ln_1.bias": randn(3, seed=4)}
    two |= {f"h.{i}.attn.bias": mask for i in (2, 10)}  # many layers
    cases = [({"wpe.weight": randn(3, 2, seed=5)}, 1), (plain, 4), (one, 2), (two, 5)]
    known = [
        Mistake(
            "The table has the right size, but not the first rows of the long one: the "
            "character at place 3 takes row 3.",
            sign=lambda got, right, *_: (
                _wrong(got, right) == ["wpe.weight"]
                and got["wpe.weight"].shape == right["wpe.weight"].shape
            ),
            vague=True,
        ),
        Mistake(
            "Masks are as large as before: a file may have one in each of its layers, "
            "whatever their number.",
            sign=lambda got, right, p, T: all(
                name.endswith(".attn.bias") and same(got[name], p[name])
                for name in _wrong(got, right)
            ),
            vague=True,
        ),
    ]
    hint = "A text begins at position 0, in a long table and in a short one."
    compare(cropped, CROPPED, cases, known, hint=hint)
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
    Mistake(
        "top_k=0 means that all tokens may be drawn, and 50 is what "
        "those get who say nothing: None cuts nothing here.",
        [
            ("top_k or None", "top_k or 50"),
        ],
    ),
    Mistake(
        "65 is the vocabulary of one model only; None cuts nothing, "
        "whatever the vocabulary.",
        [
            ("top_k or None", "top_k or 65"),
        ],
    ),
    Mistake(
        "With top_k=0 only the likeliest token is left in yours; "
        "there, 0 means that all may be drawn.",
        [
            ("top_k or None", "top_k or 1"),
        ],
    ),
    Mistake(
        "top_p is turned round: both libraries keep the likeliest "
        "tokens that sum to top_p.",
        [
            ('"top_p": top_p', '"top_p": 1 - top_p'),
        ],
    ),
)


@exercise("14.4 The same knobs, other names", OURS)
def check_ours(ours: Any) -> str:
    """ours(do_sample, temperature, top_k, top_p) -> a dictionary of our knobs."""
    few, many = randn(1, 9, seed=1) * 2, randn(1, 80, seed=2)
    knobs = [
        (True, 1.0, 50, 1.0),
        (True, 0.5, 50, 1.0),
        (True, 1.0, 2, 1.0),
        (True, 1.0, 50, 0.6),
        (True, 2.0, 4, 0.8),
        (False, 1.0, 50, 1.0),
        (False, 2.0, 4, 0.8),
        (True, 1.0, 0, 1.0),
        (False, 1.0, 0, 0.5),
    ]

    def drawn(
        ours: Callable, do_sample: bool, temperature: float, top_k: int, top_p: float
    ) -> Any:
        knobs = ours(do_sample, temperature, top_k, top_p)
        if knobs is None or knobs is ...:
            return knobs
        if isinstance(knobs, (tuple, list, set)):
            raise Explained(
                f"ours should return a dictionary, not {describe(knobs)}.",
                'return {"temperature": ..., "top_k": ..., "top_p": ...}',
            )
        try:
            return probabilities(few if top_k else many, **knobs)
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
    return "9 settings: what can be drawn has the probabilities that it has there."
