"""Checks for lesson 05: what a block computes, adds, normalises, drops and learns."""

import re
from functools import partial
from itertools import product
from statistics import NormalDist

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import record
from minigpt.block import Block
from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    call,
    compare,
    exercise,
    same,
)
from minigpt.checks.running import source
from minigpt.checks.solutions import Solution
from minigpt.language_model import LanguageModel


def _randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _randomise(module, seed=0):
    """Make every parameter random, gamma and beta too, so that no mistake hides."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(0.5 * _randn(*p.shape, seed=seed + i))
    return module.eval()


def _blocks(n_layer, n_embd, n_head):
    return _randomise(nn.Sequential(*[Block(n_embd, n_head) for _ in range(n_layer)]))


def _is_module(module):
    if not isinstance(module, nn.Module):
        what = f"An nn.Module should come out, but it is {type(module).__name__}."
        raise Explained(what, "Return the module itself; nn.Sequential makes one.")
    return module


def _recorded(experiment):
    """What is lost without one part, as the record says, in a few words."""
    runs = record.load(experiment)
    words = ["heads", "plus", "think", "norm"]
    whole, said = runs[" + ".join(words)], []
    for off in words[1:]:
        without = runs[" + ".join(word for word in words if word != off)]
        d = record.difference(without, whole)
        said.append(f"no {off} {d.mean:+.2f}" + " (a tie)" * d.is_tie)
    return ", ".join(said)


@exercise("05.1 Which part earns what?")
def check_parts(through):
    """through(x, block, plus, think, norm) -> what comes out of the block."""
    switches = list(product((True, False), repeat=3))
    sizes = [(1, 2, 3, 1), (2, 5, 6, 3)]
    cases = []
    for B, T, C, n_head in sizes:
        (block,), x = _blocks(1, C, n_head), 2 * _randn(B, T, C, seed=B)
        cases += [(x, block, *some) for some in switches]
    hint = "Without plus: x = part(x). Without norm: the part reads x as it is."
    known = {
        "The result is that of the whole block, whatever the switches say.": (
            lambda x, block, *_: block(x)
        ),
        "You use norm1 for both parts, so norm2 has nothing to do.": "norm2 → norm1",
        "The pathway carries normed numbers: you add to norm(x), not to x.": (
            partial(_step_by_step, pre=True)
        ),
        "That is post-norm: the LayerNorm acts after the addition.": _step_by_step,
    }
    compare(through, Solution("05.1"), cases, known, hint=hint)
    return (
        "all 8 combinations. In the record (600 steps, three seeds) the loss changes "
        f"so: one block, {_recorded('05-parts')}; three blocks, "
        f"{_recorded('05-parts-3')}"
    )


def _step_by_step(x, block, plus, think, norm, pre=False):
    """A block with the LayerNorms on the pathway, after each part or before it."""
    parts = [(block.norm1, block.attention), (block.norm2, block.feed_forward)]
    for n, part in parts[: 1 + think]:
        x = n(x) if norm and pre else x
        x = x + part(x) if plus else part(x)
        x = n(x) if norm and not pre else x
    return x


@exercise("05.2 A V out of straight lines")
def check_v(W1, W2):
    """W1: (1, 2) and W2: (2, 1), so that relu(x @ W1) @ W2 is |x|."""
    W1, W2 = as_tensor(W1), as_tensor(W2)
    for name, W, shape in (("W1", W1, (1, 2)), ("W2", W2, (2, 1))):
        if W is None or W.shape != shape:
            has = "is not a matrix" if W is None else f"has shape {tuple(W.shape)}"
            hint = "W1 is one row, [[a, b]]; W2 is two rows, [[c], [d]]."
            raise Explained(f"{name} {has}, but should have shape {shape}.", hint)
    left, right = [round((F.relu(x * W1) @ W2).item() / abs(x), 4) for x in (-2.0, 3.0)]
    if left == right == 1:
        return "relu(x @ W1) @ W2 = |x|, to the left of 0 and to the right"
    what = (
        f"With your weights x = -2 gives {2 * left:g} and x = 3 gives {3 * right:g}; "
        "|x| is 2 and 3. "
    )
    if left == right == 0:
        what += "Nothing comes through on either side."
    elif left == -right:
        what += "It is a straight line: one arm goes down where the other goes up."
    elif left == 0 or right == 0:
        what += f"To the {'left' if left == 0 else 'right'} of 0 everything is zero: "
        what += f"W1 = {W1.tolist()} has no number that is positive there."
    elif left == right < 0:
        what += "The V stands on its head."
    elif left == right:
        what += f"A V, but its arms rise by {left:g} for each step, not by 1: on each "
        what += f"arm W1 times W2 is {left:g}. The two arms are added, not averaged."
    else:
        what += f"The arms differ: the left rises by {left:g}, the right by {right:g}."
    hint = "relu(x) is the right arm. What is relu(-x), and what is their sum?"
    raise Explained(what, hint, share=0.5 * (left == 1 or right == 1))


@exercise("05.3 The pathway is a sum")
def check_terms(terms, model, x):
    """terms(x, blocks) -> list: x, then what each part adds to the pathway."""

    def work(terms, x, blocks):
        found = terms(x, blocks)
        many = isinstance(found, (tuple, list)) or getattr(found, "dim", int)() == 4
        return tuple(found) if many else found

    with torch.no_grad():
        own = model.token_embedding(x) + model.position_embedding.weight[: x.shape[1]]
    cases = [(2 * _randn(1, 2, 3), _blocks(1, 3, 1))]
    cases += [(_randn(2, 5, 6), _blocks(2, 6, 3)), (own, _body(model)[:-1])]
    names = ["the start"] + [
        f"what {part} of block {i} adds"
        for i in range(len(cases[-1][1]))
        for part in ("attention", "the feed-forward part")
    ]
    solution = Solution("05.3")
    hint = "Note down what a part says, then add it: x = x + said."
    known = {
        "The last entry is the pathway itself, not what the last part adds.": Sign(
            lambda got, right, *_: same(got[-1], sum(right))
        ),
        "The first entry should be x, as it came in. Yours is what stands on the "
        "pathway at the end: += has changed it.": Sign(
            lambda got, right, *_: same(got[0], sum(right))
        ),
        "x itself, the first entry, is missing.": "[x] → []",
        "You use norm1 for both parts, so norm2 has nothing to do.": "norm2 → norm1",
        "No LayerNorm is used: the parts read the pathway as it is.": (
            "block.norm1 → ",
            "block.norm2 → ",
        ),
        "The order is turned round: you compute before you communicate.": (
            "attention(block.norm1 → z(block.norm2",
            "feed_forward(block.norm2 → attention(block.norm1",
            "z( → feed_forward(",
        ),
    }
    compare(terms, solution, cases, known, work=work, parts=names, hint=hint)
    with torch.no_grad():
        lengths = [term.norm(dim=-1).mean() for term in solution(*cases[-1])]
    longest = max(range(1, len(lengths)), key=lengths.__getitem__)
    return (
        f"3 stacks. In your model the longest addition is {names[longest]}: on "
        f"average {lengths[longest] / lengths[0]:.1f} times as long as the embedding"
    )


def _alike(gone, dim):
    return bool((gone == gone.narrow(dim, 0, 1)).all())


def _dropout_problem(x, p, outs, quiet):
    """What is wrong in training, or in evaluation; None if nothing is."""
    if same(quiet, x * (1 - p)):
        return "With training=False you multiply by 1 - p; nothing should change."
    if (quiet == 0).any():
        return "With training=False numbers still vanish."
    if not same(quiet, x):
        return "With training=False x should come back as it is."
    gone = outs == 0
    share, factors = gone.double().mean().item(), (outs / x)[~gone]
    if not share:
        return "Nothing vanishes in training."
    if any(_alike(gone, d) for d in range(1, gone.dim())):
        return "Whole rows, columns or texts vanish together, not single numbers."
    if abs(share - p) > 0.03:
        more = ", as should survive" if abs(share - (1 - p)) < 0.03 else ""
        if abs(share - NormalDist().cdf(p)) < 0.02:
            more = ", as with normal random numbers (randn) in place of uniform ones"
        return f"With p = {p}, {share:.0%} of the numbers vanish{more}."
    if not same(factors, torch.full_like(factors, 1 / (1 - p))):
        if same(factors, torch.full_like(factors, factors[0].item())):
            has = f"the survivors are x times {factors[0].item():.4g}"
        else:
            has = "the survivors are multiplied by different numbers"
        return f"With p = {p}, {has}; x / (1 - p) is x times {1 / (1 - p):.4g}."
    if _alike(gone, 0):
        return "Each call drops the same numbers: a seed is set inside."
    if gone.flatten(1).sum(1).unique().numel() == 1:
        return (
            "Each call drops exactly as many numbers as the one before. If each "
            "vanishes independently, how many is left to chance."
        )


@exercise("05.4 Dropout with a switch")
def check_dropout(dropout):
    """dropout(x, p, training) -> like x, thinned out in training only."""
    for done, (shape, p) in enumerate([((100, 50), 0.25), ((20, 30, 8), 0.8)]):
        torch.default_generator.manual_seed(1)
        x = _randn(*shape)
        x = x + x.sign()  # no zeros of its own
        outs = [call(dropout, x, p, mode) for mode in [True] * 5 + [False]]
        for out in map(as_tensor, outs):
            if out is None or out.shape != shape:
                has = "no tensor" if out is None else tuple(out.shape)
                what = f"x of shape {shape} goes in, but {has} comes out."
                raise Explained(what, "Multiply x by a mask of its own shape.")
        *outs, quiet = map(as_tensor, outs)
        if what := _dropout_problem(x.double(), p, torch.stack(outs), quiet):
            hint = "In training: mask = torch.rand(x.shape) >= p, division by 1 - p."
            if "training=False" in what:
                hint = "Begin with: if not training: return x"
            raise Explained(what, hint, share=done / 2)
    cases = [(torch.ones(2, 3), 0.5, mode) for mode in (True, False)]
    compare(dropout, Solution("05.4"), cases, work=_shape_of)  # is x changed?
    return "the share that vanishes, the mean, new zeros each call, quiet in evaluation"


def _shape_of(dropout, x, p, training):
    return list(dropout(x, p, training).shape)


def _body(model):
    body = getattr(model, "body", None)
    blocks = list(body)[:-1] if isinstance(body, nn.Sequential) else []
    if not blocks or not all(isinstance(block, Block) for block in blocks):
        what = "The model should be a LanguageModel: blocks, then one LayerNorm."
        raise Explained(what, "Pass my_model of the cell above.")
    return body


EACH = {  # what may be taken of each tensor
    "the sum of its squares": "g.pow(2).sum()",
    "its norm": "g.norm()",
    "the mean of its squares": "g.pow(2).mean()",
    "the sum of its absolute values": "g.abs().sum()",
}
WHOLE = {  # and what of these numbers
    "their sum": "sum({})",
    "their mean": "sum({}) / len(grads)",
    "the largest": "max({})",
    "the root of their sum": "sum({}).sqrt()",
    "the root of their mean": "(sum({}) / len(grads)).sqrt()",
    "all of them, where one number is wanted": "torch.stack([*({})])",
}
LENGTHS = {
    f"Of each tensor you take {each}, and then {whole}.": over.format(
        f"{of} for g in grads"
    )
    for each, of in EACH.items()
    for whole, over in WHOLE.items()
    if (each, whole) != ("the sum of its squares", "the root of their sum")
} | {
    "You take the mean of the squares, not their sum.": (
        "torch.cat([g.flatten() for g in grads]).pow(2).mean().sqrt()"
    ),
    "Only the first tensor counts.": "grads[0].norm()",
}


@exercise("05.5 Who hears the loss?")
def check_loudness(loudness, model, x, y):
    """loudness(grads) -> the length of all numbers of all tensors as one vector."""
    body = _body(model)[:-1]
    wanted = [p for p in model.parameters() if p.requires_grad]
    grads = dict(zip(wanted, torch.autograd.grad(call(model, x, y)[1], wanted)))
    parts = {
        f"{name} of block {i}": [grads[p] for p in part.parameters()]
        for i, block in enumerate(body)
        for name, part in (
            ("attention", block.attention),
            ("the feed-forward part", block.feed_forward),
        )
    }
    cases = [([torch.tensor([3.0, -4.0]), torch.tensor([[12.0]])],)]
    cases += [([_randn(2, 3), _randn(3), _randn(2, 2, 2)],), ([_randn(7)],)]
    cases += [(part,) for part in parts.values()]
    hint = "Square all numbers, add all the squares, take one root at the very end."
    solution, right = Solution("05.5"), "sum(g.pow(2).sum() for g in grads).sqrt()"
    known = {says: f"{right} → {wrong}" for says, wrong in LENGTHS.items()}
    compare(loudness, solution, cases, known, atol=1e-7, hint=hint)
    loudest = max(parts, key=lambda name: solution(parts[name]))
    return f"3, 4 and 12 give 13. In your model {loudest} has the largest gradient"


@exercise("05.6 A model with a block left out")
def check_leave_one_out(leave_one_out, model, x, y):
    """leave_one_out(model, x, y) -> (losses without block 0, 1, ...; spare block)."""

    def rounded(program, model, x, y):
        got = program(model, x, y)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            return got
        losses = as_tensor(got[0])
        if losses is None or losses.dim() != 1:
            return tuple(got)
        return [round(loss, 4) for loss in losses.tolist()], got[1]

    def loss_afterwards(program, model, x, y):
        if program(model, x, y) is not None:
            return model(x, y)[1].item()

    def toy(n_layer, n_embd, n_head, T):
        blocks = [Block(n_embd, n_head) for _ in range(n_layer)]
        body = nn.Sequential(*blocks, nn.LayerNorm(n_embd))
        idx = torch.randint(7, (3, T + 1), generator=torch.Generator().manual_seed(T))
        return _randomise(LanguageModel(7, T, n_embd, body)), idx[:, :-1], idx[:, 1:]

    _body(model)
    cases = [toy(2, 4, 2, 3), toy(5, 6, 3, 5), (model, x, y)]
    hint = "For each i: the parts of the body but number i, the last LayerNorm too."
    solution, parts = Solution("05.6"), ("the losses", "the number of the spare block")
    known = {
        "You put zeros in place of the block: that cuts the road itself.": (
            "part for j → part if j != i else nn.Threshold(1e9, 0.0) for j",
            " if j != i] → ]",
        ),
        "Blocks stay away once they are left out: each time one more is missing.": (
            "j != i → j > i"
        ),
        "You keep only this block and leave out the others.": (
            "j != i → j in (i, len(whole) - 1)"
        ),
        "The last LayerNorm is left out as well.": "(whole) if → (whole[:-1]) if",
        "The losses are right, but you count the blocks from 1.": (
            "(min(losses)) → (min(losses)) + 1"
        ),
        "You give how much the loss rises; the loss itself is wanted.": (
            "return losses, → return [n - model(x, y)[1].item() for n in losses],"
        ),
    }
    how = {"work": rounded, "parts": parts, "changes": True, "hint": hint}
    compare(leave_one_out, solution, cases, known, 1e-4, **how)
    says = "The numbers are right, but the model is left changed."
    hint = "Put back what you take out, or work on copy.deepcopy(model)."
    known = {says: (Sign(lambda *_: True), hint)}
    compare(leave_one_out, solution, cases, known, work=loss_afterwards, changes=True)
    losses, spare = solution(model, x, y)
    dear = losses.index(max(losses))
    return f"3 models. Yours can best do without block {spare}, worst without {dear}"


@exercise("05.7 The position that knew too much")
def check_norm(make_norm):
    """make_norm(n_embd) -> a LayerNorm, (B, T, n_embd) -> (B, T, n_embd)."""

    def work(make_norm, x):
        norm, C = make_norm(x.shape[-1]), x.shape[-1]
        starts = [
            tuple(p.tolist()) for p in _is_module(norm).parameters() if p.shape == (C,)
        ]
        if len(list(norm.parameters())) != 2 or set(starts) != {(1.0,) * C, (0.0,) * C}:
            what = "gamma (ones at first) and beta (zeros) should be as they were: two"
            raise Explained(
                f"{what} parameters with {C} numbers for n_embd = {C}.", "Mend forward."
            )
        for p, start in zip(norm.parameters(), starts):
            p.data = _randn(C, seed=1 if start[0] else 2)
        return norm.eval()(x)

    cases = []
    for C in (3, 6, 8):
        x = _randn(2, 4, C) + 1
        cases += [(some,) for some in (x[:1, :2], 1e-3 * x[:1, :2], x)]
    hint = "For one position: (its channels - their mean) / sqrt(variance + eps)."
    known = {
        "The bug is still there: change the last position of an input, and those "
        "before it move.": (
            "dim=-1 → dim=(1, 2)",
            "Attention has its mask, the feed-forward layer keeps to itself. What else "
            "does a block compute, and from which numbers?",
        ),
        "Now batch and time mix, as in BatchNorm.": "dim=-1 → dim=(0, 1)",
        "The future is hidden, but the variance is divided by n_embd - 1.": (
            "centred.pow(2).mean( → x.var("
        ),
        "The future is hidden, but epsilon stands outside the root.": (
            "(variance + self.eps).sqrt() → (variance.sqrt() + self.eps)"
        ),
    }
    compare(make_norm, Solution("05.7"), cases, known, work=work, hint=hint)
    return "3 shapes, large and tiny numbers, each position by itself, gamma and beta"


def _filled(make_stack, x, n_layer, n_embd, n_head):
    """What a stack gives whose blocks and norm were filled with known numbers."""
    stack = _is_module(make_stack(n_layer, n_embd, n_head))
    blocks = [m for m in stack.modules() if isinstance(m, Block)]
    inside = {part for block in blocks for part in block.modules()}
    others = [m for m in stack.modules() if m not in inside]
    norms = [m for m in others if isinstance(m, nn.LayerNorm)]
    what, hint = "", "Block(...) runs anew for each layer; an nn.ModuleList keeps them."
    weights = [block.attention.qkv.weight for block in blocks]
    if len(blocks) == 1 < n_layer:
        what = "The bug is still there: a deep stack has no more to learn than one "
        hint = "On paper, six blocks have six times as much to learn. And here?"
        if re.search(r"block\s*\]\s*\*", source(make_stack)):
            what += "block."
        else:
            what += f"block, for all {n_layer} of your blocks are one and the same."
            hint = "A name makes no new block: Block(...) itself must run each time."
    elif not blocks:
        what = "model.parameters() finds no block: the optimiser would miss them all."
    elif len(blocks) != n_layer:
        what = f"n_layer = {n_layer} was asked for, but it has {len(blocks)} blocks."
    elif len(norms) != 1:
        what = f"There are {len(norms)} LayerNorms after the blocks, not one."
    elif any(torch.equal(weights[0], weight) for weight in weights[1:]):
        what = f"There are {n_layer} blocks, but they start as twins, number by number."
    if what:
        raise Explained(what, hint)
    for i, part in enumerate([*norms, *blocks]):
        _randomise(part, seed=20 * i)
    return stack.eval()(x)


@exercise("05.8 Six blocks for the price of one")
def check_stack(make_stack):
    """make_stack(n_layer, n_embd, n_head) -> blocks, then a LayerNorm."""
    sizes = [(3, 3, 1), (4, 6, 3), (1, 8, 2)]
    cases = [(_randn(2, 4, size[1]), *size) for size in sizes]
    hint = "x = block(x) for each block, then the LayerNorm, once."
    known = {
        "Every block gets the first x, so that only the last one counts.": (
            "x = block(x) → out = block(x)",
            "self.norm(x) → self.norm(out)",
        ),
        "The last LayerNorm acts after every block, on the pathway.": (
            "x = block(x) → x = self.norm(block(x))",
            "return self.norm(x) → return x",
        ),
        "x is added to what a block returns, but the block has added it.": (
            "x = block(x) → x = x + block(x)"
        ),
    }
    compare(make_stack, Solution("05.8"), cases, known, work=_filled, hint=hint)
    return "1, 3 and 4 blocks, each with its own numbers, one after the other"
