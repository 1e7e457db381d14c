"""Checks of notebook 04: heads side by side, packed, shared and switched off."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn

from minigpt.attention import Head, attention, attention_weights
from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.old_errors import Problem
from minigpt.course.checks.reading import lost, source
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import same
from minigpt.evaluation import evaluate
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention

PARAMETERS = Solution(
    """
def parameters(n_embd, n_head):
    head_size = n_embd // n_head
    heads = n_head * 3 * n_embd * head_size
    proj = n_embd * n_embd + n_embd
    return heads + proj
""",
    Mistake(
        "You give queries, keys and values a bias; here they have none.",
        [("n_embd * head_size", "(n_embd + 1) * head_size")],
    ),
    Mistake(
        "Each head has a projection of its own here; there is one for all of them.",
        [("return heads + proj", "return heads + n_head * proj")],
    ),
    Mistake(
        "The bias of the projection is counted for each head; there is one "
        "projection for all.",
        [("n_embd * n_embd + n_embd", "n_embd * n_embd + n_head * n_embd")],
    ),
    Mistake(
        "Queries, keys and values have too few numbers: each of n_head heads has three "
        "matrices of its own, from all n_embd channels to head_size.",
        [("n_head * 3", "3")],
    ),
    Mistake(
        "As many numbers are missing as one matrix a head has: queries, keys and "
        "values take three.",
        [("n_head * 3", "n_head * 2")],
    ),
    Mistake(
        "As many numbers are missing as two matrices a head have: queries, keys and "
        "values take three.",
        [("n_head * 3", "n_head")],
    ),
    Mistake(
        "A matrix from n_embd to head_size holds n_embd times "
        "head_size numbers, not their sum.",
        [
            ("n_embd * head_size", "(n_embd + head_size)"),
        ],
    ),
    Mistake(
        "Queries, keys and values have too few numbers: each of n_head heads has three "
        "matrices of its own, from all n_embd channels to head_size. And the "
        "projection reads all heads side by side, which are n_embd channels.",
        [
            ("n_embd * head_size", "head_size * head_size"),
            ("n_embd * n_embd + n_embd", "head_size * n_embd + n_embd"),
        ],
    ),
    Mistake(
        "The projection reads all heads side by side, which are n_embd channels.",
        [
            ("n_embd * n_embd + n_embd", "head_size * n_embd + n_embd"),
        ],
    ),
    Mistake(
        "Three matrices of full width for every head: a head's have "
        "head_size columns each.",
        [
            ("n_embd * head_size", "n_embd * n_embd"),
        ],
    ),
    Mistake(
        "As many numbers are missing as the projection has: it stands behind the "
        "heads, with a bias.",
        [
            ("return heads + proj", "return heads"),
        ],
    ),
)


@exercise("04.1 Count before you build", PARAMETERS)
def check_parameters(parameters: Any) -> str:
    """parameters(n_embd, n_head) -> number of parameters of multi-head attention."""
    cases = [(6, 2), (6, 3), (20, 5), (64, 4), (768, 12), (768, 24)]
    hint = "Three matrices from C to head_size a head; then one nn.Linear(C, C)."
    compare(parameters, PARAMETERS, cases, hint=hint)
    return "6 sizes. For n_embd = 768 it is 2,360,064, with 12 heads and with 24."


WITHOUT_HEAD = Solution(
    """
def without_head(model, h):
    smaller = copy.deepcopy(model)
    layer = smaller.body
    start = h * layer.head_size
    with torch.no_grad():
        layer.proj.weight[:, start : start + layer.head_size] = 0
    return smaller
""",
    Mistake(
        "That is the head behind h: heads are counted from 0, so head h begins at "
        "channel h * head_size.",
        [("start = h *", "start = (h + 1) *")],
    ),
    Mistake(
        "The rows of proj.weight make the output channels; what a head wrote comes "
        "in through its columns.",
        [("[:, start : start + layer.head_size]", "[start : start + layer.head_size]")],
    ),
    Mistake(
        "The head is not off: with all scores at zero, it hands over the mean "
        "of its values.",
        [("proj.weight[:, start", "qkv.weight[start")],
    ),
    Mistake(
        "You switch off every n_head-th channel. Heads do not take turns.",
        [("[:, start : start + layer.head_size]", "[:, h :: layer.n_head]")],
    ),
    Mistake(
        "qkv's rows are not sorted by head: all queries come first, then keys, "
        "then values.",
        [
            (
                "layer.proj.weight[:, start : start + layer.head_size] = 0",
                "layer.qkv.weight[3 * start : 3 * (start + layer.head_size)] = 0",
            )
        ],
    ),
    Mistake(
        "A head has head_size channels; n_head says how many heads there are.",
        [("layer.head_size", "layer.n_head")],
    ),
    Mistake(
        "You switch off one channel; a head has head_size of them.",
        [
            ("[:, start : start + layer.head_size]", "[:, h]"),
        ],
    ),
    Mistake(
        "Head h is the only one left: all the others are off.",
        [
            (
                "layer.proj.weight[:, start : start + layer.head_size] = 0",
                "layer.proj.weight[:, :start] = 0\n"
                "        layer.proj.weight[:, start + layer.head_size :] = 0",
            ),
        ],
    ),
    Mistake(
        "The columns of head h hold their mean now, so the head still "
        "adds something; with zeros it adds nothing.",
        [
            (
                "+ layer.head_size] = 0",
                "+ layer.head_size] = layer.proj.weight[:, start : start + "
                "layer.head_size].mean()",
            ),
        ],
    ),
    Mistake(
        "The columns of qkv are what it reads from the stream, for all "
        "heads alike; head h is not off.",
        [
            ("layer.proj.weight[:, start", "layer.qkv.weight[:, start"),
        ],
    ),
    Mistake(
        "Head h is only made quieter; 0 switches it off.",
        [
            ("+ layer.head_size] = 0", "+ layer.head_size] *= 0.5"),
        ],
    ),
    Mistake(
        "Nothing has changed in what you return: its own weight must be written "
        "into. Is it the given model that you have changed, or a clone of a weight?",
        [
            ("layer.proj.weight[:, start : start + layer.head_size] = 0", "pass"),
        ],
    ),
)


@exercise("04.2 Switch a head off", WITHOUT_HEAD)
def check_without_head(
    without_head: Any, model: LanguageModel, val_data: torch.Tensor
) -> str:
    """without_head(model, h) -> a model like it in which head h adds nothing."""
    own = model.body
    torch.default_generator.manual_seed(4)
    small = LanguageModel(3, 4, 6, CausalSelfAttention(6, 3))
    large = LanguageModel(5, 6, 8, CausalSelfAttention(8, 2))
    cases = [(small, h) for h in (1, 0, 2)] + [(large, h) for h in (1, 0)]
    cases += [(model, h) for h in range(own.n_head)]

    def work(program: Callable, model: LanguageModel, h: int) -> Any:
        T, vocab_size = model.block_size, model.lm_head.out_features
        smaller, idx = program(model, h), torch.arange(2 * T).view(2, T) % vocab_size
        if isinstance(smaller, CausalSelfAttention):
            raise Explained(
                "You return the layer alone; the layers before and behind it belong to "
                "the model, too.",
                "return smaller",
            )
        got = smaller(idx) if callable(smaller) else smaller
        return got[0] if isinstance(got, tuple) else got

    def shifted(got: torch.Tensor, right: torch.Tensor, *_: Any) -> torch.Tensor:
        """All positions are off by the same numbers."""
        return (got - right).flatten(0, 1).std(dim=0).max() < 1e-6

    known = [
        Mistake(
            "Head h is off, but the projection's bias is too, or a part of it: that "
            "is no "
            "head's.",
            sign=shifted,
        ),
    ]
    hint = "Which columns of proj.weight (C, C) are multiplied by what head h wrote?"
    solution, data = WITHOUT_HEAD, torch.as_tensor(val_data)[:2049]
    compare(without_head, solution, cases, known, work=work, hint=hint)
    alone = [solution(model, h) for h in range(own.n_head)]
    loss = [evaluate(m, data, model.block_size) for m in (model, *alone)]
    said = ", ".join(f"{other - loss[0]:.2f}" for other in loss[1:])
    return f"3 models. Without head 0, 1, …, your loss rises by {said} nats."


HEADS = Solution(
    """
class Heads(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.heads = nn.ModuleList(
            Head(n_embd, n_embd // n_head)
            for _ in range(n_head)
        )
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        side_by_side = [head(x) for head in self.heads]
        return self.proj(torch.cat(side_by_side, dim=-1))
""",
    Head=Head,
)


@exercise("04.3 The copy that differs", HEADS)
def check_copy(Heads: Any) -> str:
    """A class Heads(n_embd, n_head) whose copies survive saving."""
    torch.default_generator.manual_seed(4)
    for n_embd, n_head in [(6, 3), (20, 2)]:
        _check_copy(Heads, n_embd, n_head)
    return "2 sizes; a copy that loads the weights agrees, and every head can learn."


def _check_copy(Heads: Any, n_embd: int, n_head: int) -> None:
    x, what, hint = torch.randn(2, 5, n_embd), "", ""

    def copies() -> tuple[Any, Any, bool]:
        first, second = (Heads(n_embd, n_head) for _ in range(2))
        second.load_state_dict(first.state_dict())
        if (out := _asked(first, x)) is None:
            raise Explained("forward returns nothing (None).", "Is `return` missing?")
        return first, out, same(second(x), out)

    first, out, agree = call(copies)
    box = _unsaved(first)
    heads = [m for m in first.modules() if isinstance(m, Head)]
    widths = {tuple(head.query.weight.shape) for head in heads}
    wanted = (n_embd // n_head, n_embd)
    if box and agree:
        what = "Both copies begin alike now, which hides the symptom; but what the "
        what += "heads learn is still not saved."
    elif box not in ("", "list"):
        what = f"A {box} hides its modules from torch just as before."
        hint = "torch.nn has containers of its own."
    elif not agree and 0 < len(heads) < n_head:
        named = [name for name, m in first.named_modules() if isinstance(m, Head)]
        what = f"Of {n_head} heads only {', '.join(named)} is in state_dict(): the "
        what += "others have no name, or lost it when the next one was given the same."
    elif not agree and box and "ModuleList" in source(Heads):
        what = "What self keeps is a plain list again, so torch does not look into it."
        hint = "The nn.ModuleList itself must be what self keeps; no list(...) of it."
    elif not agree:
        if line := lost(Heads):
            raise Problem(line)
        what = "The bug is still there: a fresh copy that loads the saved weights "
        what += "gives other outputs than the original."
        hint = "Which names are in first.state_dict()?"
        raise Explained(what, hint, untouched=True)
    elif len(heads) != n_head or widths != {wanted}:
        what = f"The copies agree, but Heads({n_embd}, {n_head}) has {len(heads)} "
        what += f"different heads; there should be {n_head} of {wanted}."
        hint = "Change only what keeps the heads; each place needs a new Head."
    elif same(out, torch.cat([head(x) for head in heads], dim=-1)):
        what = "The copies agree, but self.proj is never called any more."
    elif same(out, first.proj(torch.cat([heads[0](x)] * n_head, dim=-1))):
        what = "The copies agree, but forward asks the first head every time."
    elif not same(out, first.proj(torch.cat([head(x) for head in heads], dim=-1))):
        what = "The copies agree, but forward is not what it was: the heads side by "
        what += "side, projected."
        hint = "Each head is asked once, in its order: [head(x) for head in self.heads]"
    if what:
        raise Explained(what, hint)


def _asked(heads: Any, x: torch.Tensor) -> Any:
    """What a layer of heads gives; Explained where they may stand in a row."""
    try:
        return heads(x)
    except RuntimeError:
        if not any(isinstance(part, nn.Sequential) for part in heads.children()):
            raise
        raise Explained(
            "An nn.Sequential that is called gives what one head says to the next; "
            "here all heads read x, and stand side by side.",
            "nn.ModuleList keeps modules without an order in which they are called.",
        ) from None


def _unsaved(module: nn.Module) -> str:
    """The type of a plain container whose modules' parameters are not saved, or ""."""
    saved = {id(p) for p in module.state_dict(keep_vars=True).values()}
    for box in vars(module).values():
        if isinstance(box, (list, tuple, set, dict)):
            for m in box.values() if isinstance(box, dict) else box:
                some = m.parameters() if isinstance(m, nn.Module) else ()
                if any(id(p) not in saved for p in some):
                    return type(box).__name__
    return ""


DICE_HEADS = Solution(
    """
class DiceHeads(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        shape = B, T, 3, self.n_head, C // self.n_head
        qkv = self.qkv(x).view(shape)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        out, _ = attention(q, k, v)  # (B, n_head, T, head_size)
        out = out.transpose(1, 2).reshape(B, T, C)
        return self.proj(out)
""",
    Mistake(
        "The bug is still there: nobody can foresee dice, yet the model is "
        "better than chance. It knows throws that are still to come.",
        [
            ("out = out.transpose(1, 2).reshape(B, T, C)", "pass"),
            ("self.proj(out)", "self.proj(out.reshape(B, T, C))"),
        ],
        untouched=True,
    ),
    Mistake(
        "Each head gets the mean of all heads; they belong side by side.",
        [("out.transpose(1, 2)", "out.mean(1, True).expand_as(out).transpose(1, 2)")],
    ),
    Mistake(
        "At each position heads look at heads, and no position sees another one.",
        [
            ("permute(2, 0, 3, 1, 4)", "unbind(2)"),
            ("out.transpose(1, 2).reshape", "out.reshape"),
        ],
        hint="attention compares along the last dimension but one: positions belong "
        "there, (B, n_head, T, head_size).",
    ),
    Mistake(
        "The view mixes positions and heads: (B, T, 3, n_head, head_size) comes first.",
        [
            ("self.qkv(x).view(shape)", "self.qkv(x).view(B, 3, self.n_head, T, -1)"),
            ("qkv.permute(2, 0, 3, 1, 4)", "qkv.unbind(1)"),
        ],
        hint="A view keeps the order in memory; permute exchanges dimensions.",
    ),
    Mistake(
        "The causal mask is off: each position sees the throws that are still to come.",
        [("attention(q, k, v)", "attention(q, k, v, False)")],
        hint="attention(q, k, v) hides the future by itself.",
    ),
    Mistake(
        "The result is that of a single head of full width; wanted are "
        "n_head narrow ones, side by side.",
        [
            ("        shape = B, T, 3, self.n_head, C // self.n_head\n", ""),
            (
                "qkv = self.qkv(x).view(shape)\n        "
                "q, k, v = qkv.permute(2, 0, 3, 1, 4)",
                "q, k, v = self.qkv(x).chunk(3, dim=-1)",
            ),
            ("out.transpose(1, 2).reshape(B, T, C)", "out.reshape(B, T, C)"),
        ],
        hint="Before attention, q, k and v have a dimension for the heads.",
    ),
    Mistake(
        "The view takes head_size before n_head, so each head gets "
        "every n_head-th channel. That part was right: (B, T, 3, "
        "n_head, head_size).",
        [
            ("self.n_head, C // self.n_head", "C // self.n_head, self.n_head"),
            ("permute(2, 0, 3, 1, 4)", "permute(2, 0, 4, 1, 3)"),
        ],
    ),
    attention=attention,
    helpers=(attention_weights, attention),
)


@exercise("04.4 Better than possible", DICE_HEADS)
def check_dice(DiceHeads: Any) -> str:
    """A class DiceHeads(n_embd, n_head) with layers qkv and proj, (B, T, C) -> same."""
    torch.default_generator.manual_seed(4)
    cases = [
        (torch.randn(B, T, C), nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C), n)
        for B, T, C, n in [(1, 2, 6, 3), (2, 5, 8, 2), (3, 4, 12, 2)]
    ]

    def work(
        program: Callable, x: torch.Tensor, qkv: nn.Linear, proj: nn.Linear, n_head: int
    ) -> Any:
        layer = program(x.shape[-1], n_head)
        layer.qkv.load_state_dict(qkv.state_dict())
        layer.proj.load_state_dict(proj.state_dict())
        return layer(x)

    hint = "Which shape has `out`, and what does the last line make of it?"
    solution = DICE_HEADS
    compare(DiceHeads, solution, cases, work=work, hint=hint)
    return "3 sizes; the heads stand side by side, no position sees the future."
