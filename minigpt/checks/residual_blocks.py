"""Checks for lesson 05: what a block computes, adds, normalises, drops and learns."""

from functools import partial
from itertools import product

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.block import Block
from minigpt.checks.core import (
    Difference,
    Explained,
    Sign,
    as_tensor,
    call,
    compare,
    exercise,
    mistakes,
    same,
    show,
)
from minigpt.language_model import LanguageModel


def _randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _randomise(module):
    """Make every parameter random, gamma and beta too, so that no mistake hides."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(0.5 * _randn(*p.shape, seed=i))
    return module.eval()


def _shapes(module, dims):
    if not isinstance(module, nn.Module):
        what = f"An nn.Module should come out, but it is {type(module).__name__}."
        raise Explained(what, "Return the module itself; nn.Sequential makes one.")
    return [tuple(p.shape) for p in module.parameters() if p.dim() == dims]


# 05.1

SIZES = "First n_embd -> 4 * n_embd, then ReLU, at the end 4 * n_embd -> n_embd."
BENDS = {
    "No ReLU acts: two linear layers in a row are one linear layer.": [dict(bend=None)],
    "Nothing negative ever comes out: a ReLU stands after the projection.": [
        dict(bend=None, after=F.relu),
        dict(after=F.relu),
    ],
    "A ReLU acts on the input, before anything was expanded.": [
        dict(bend=None, before=F.relu),
        dict(before=F.relu),
    ],
    "The layers fit, but the bend is another one, not a ReLU.": [
        dict(bend=bend) for bend in (F.gelu, F.silu, F.leaky_relu, torch.tanh)
    ],
}


def _by_hand(layer, turned, x, before=None, bend=F.relu, after=None):
    """The formula with the layer's own numbers; turned: it stores W as in x @ W."""
    n = x.shape[-1]
    of = {tuple(p.shape): p for p in layer.parameters()}
    wide, narrow = of[4 * n, n], of[n, 4 * n]
    W1, W2 = (narrow, wide) if turned else (wide.T, narrow.T)
    hidden = (before(x) if before else x) @ W1 + of[(4 * n,)]
    out = (bend(hidden) if bend else hidden) @ W2 + of[(n,)]
    return after(out) if after else out


def _check_sizes(layer, n):
    matrices, biases = _shapes(layer, 2), _shapes(layer, 1)
    sizes = {size for shape in matrices for size in shape}
    inner = max(sizes - {n}, default=n)
    what = (
        f"For n_embd = {n} the inner layer is {inner} wide; 4 times would be {4 * n}."
    )
    if len(matrices) != 2:
        what = f"Two linear layers are wanted, but it has {len(matrices)}."
    elif n not in sizes:
        what = f"For n_embd = {n} your layers have sizes {sorted(sizes)}: use n_embd."
    elif inner == 4 * n and sorted(biases) != [(n,), (4 * n,)]:
        what = "The formula adds b1 and b2, but a bias is missing in your layers."
    elif inner == 4 * n:
        return
    raise Explained(what, SIZES)


@exercise("05.1 The part that thinks")
def check_feed_forward(make_feed_forward):
    """make_feed_forward(n_embd) -> a module, (..., n_embd) -> (..., n_embd)."""
    for n in (2, 3, 5):
        layer = call(make_feed_forward, n)
        _check_sizes(layer, n)
        layer.eval()
        ways = [partial(_by_hand, layer, turned) for turned in (False, True)]
        known = []
        for says, changes in BENDS.items():
            for way, change in product(ways, changes):
                known += mistakes(SIZES, {says: partial(way, **change)})
        x = _randn(2, n + 1, n, seed=n)
        turned = same(call(layer, x), ways[1](x))
        compare(layer, ways[turned], [(x[:1, :1],), (x,)], known)
    return "3 widths, the inner one four times as wide, ReLU between the layers"


# 05.2


@exercise("05.2 A V out of straight lines")
def check_v(W1, W2):
    """W1: (1, 2) and W2: (2, 1), so that relu(x @ W1) @ W2 is |x|."""
    W1, W2 = as_tensor(W1), as_tensor(W2)
    for name, W, shape in (("W1", W1, (1, 2)), ("W2", W2, (2, 1))):
        if W is None or W.shape != shape:
            has = "is not a matrix" if W is None else f"has shape {tuple(W.shape)}"
            hint = "W1 is one row, [[a, b]]; W2 is two rows, [[c], [d]]."
            raise Explained(f"{name} {has}, but should have shape {shape}.", hint)
    x = torch.tensor([[-2.0], [3.0]])
    out = F.relu(x.double() @ W1) @ W2
    left, right = [round(arm, 4) for arm in (out / x.abs()).flatten().tolist()]
    if left == right == 1:
        return "relu(x @ W1) @ W2 = |x|, to the left of 0 and to the right"
    if left == right == 0:
        what = "Nothing comes through, neither for negative nor for positive x."
    elif left == -right:
        what = "It is a straight line: one arm goes down where the other goes up."
    elif left == 0 or right == 0:
        side = "left" if left == 0 else "right"
        what = f"Only one arm is there: to the {side} of 0 everything is zero."
    elif left == right < 0:
        what = "The V stands on its head."
    elif left == right:
        what = f"A V, but its arms rise by {left:g} for each step, not by 1."
    else:
        what = f"The arms differ: the left one rises by {left:g}, the right {right:g}."
    hint = "relu(x) is the right arm. What is relu(-x), and what is their sum?"
    raise Explained(what + show(Difference((x,), x.abs(), out)), hint)


# 05.3


def _parts(block):
    return block.attention, block.feed_forward, block.norm1, block.norm2


def _stops(x, block):
    a, f, n1, n2 = _parts(block)
    first = x + a(n1(x))
    return torch.stack([first, first + f(n2(first))])


def _wrong_stops(x, y, a, f, n1, n2):
    """What to say: the wrong first stop, the wrong second stop after a first stop y."""
    u, v = n1(x), n2(y)
    return {
        "The pathway carries normed numbers: you add to norm(x), not to x.": (
            u + a(u),
            v + f(v),
        ),
        "A plus sign is missing: a part replaces the pathway.": (a(u), f(v)),
        "At the second stop you add to the block's input: what attention added "
        "is lost.": (None, x + f(v)),
        "At the second stop the block's input is added a second time.": (
            None,
            x + y + f(v),
        ),
        "The feed-forward part reads the block's input: it does not hear attention.": (
            None,
            y + f(n2(x)),
        ),
        "You use norm1 for both parts, so norm2 has nothing to do.": (
            None,
            y + f(n1(y)),
        ),
        "That is post-norm: the LayerNorm acts after the addition.": (
            n1(x + a(x)),
            n2(y + f(y)),
        ),
        "No LayerNorm is used: a part reads the pathway as it is.": (
            x + a(x),
            y + f(y),
        ),
        "The order is turned round: you compute before you communicate.": (
            x + f(u),
            None,
        ),
        "The order is turned round, the norms too: you compute before you "
        "communicate.": (x + f(n2(x)), None),
    }


def _is_wrong_stop(says, got, right, x, block):
    first, second = _wrong_stops(x, got[0], *_parts(block))[says]
    return same(got[0], first) or same(got[1], second)


@exercise("05.3 Two stops on the pathway")
def check_stops(stops):
    """stops(x, block) -> the pathway after attention and at the end."""

    def as_one(x, block):
        got = stops(x, block)
        pair = isinstance(got, (tuple, list)) and len(got) == 2
        return torch.stack(list(got)) if pair else got

    cases = [
        (2 * _randn(B, T, C, seed=B), _randomise(Block(C, n_head)))
        for B, T, C, n_head in [(1, 2, 3, 1), (2, 5, 6, 3), (3, 4, 8, 2)]
    ]
    signs = {
        "Two stops are wanted: the pathway after attention and at the end.": (
            lambda got, right, x, block: as_tensor(got).shape == x.shape
        ),
        "Your two stops are one and the same tensor: += has changed the first.": (
            lambda got, right, *_: same(got[0], got[1]) and same(got[1], right[1])
        ),
    }
    x, block = cases[0]
    for says in _wrong_stops(x, x, *_parts(block)):
        signs[says] = partial(_is_wrong_stop, says)
    hint = "Twice the same step, always with the newest x: x = x + part(norm(x))."
    signs = {says: Sign(holds) for says, holds in signs.items()}
    compare(as_one, _stops, cases, mistakes(hint, signs))
    return "3 shapes, and the second stop is what the block itself returns"


# 05.4


def _dropout_problem(x, p, out, again, quiet):
    """What is wrong, and whether it is so in training; None if nothing is."""
    gone = out == 0
    share = gone.double().mean().item()
    scale = (out / x)[~gone]
    rows_or_columns = [gone.all(d) | ~gone.any(d) for d in (0, -1) if x.dim() > 1]
    if (quiet == 0).any() and not share:
        return "The switch is the wrong way round: it drops in evaluation.", False
    if (quiet == 0).any():
        return "With training=False numbers still vanish.", False
    if same(quiet, x * (1 - p)):
        return "In evaluation you multiply by 1 - p; nothing should change.", False
    if not same(quiet, x):
        return "With training=False x should come back as it is.", False
    if not share:
        return "Nothing vanishes in training.", True
    if any(lines.all() for lines in rows_or_columns):
        return "Whole rows or columns vanish together, not single numbers.", True
    if abs(share - (1 - p)) < 0.05:
        return "You keep with probability p, but p is the probability to vanish.", True
    if abs(share - p) > 0.05:
        return f"With p = {p}, {share:.0%} of the numbers vanish.", True
    for factor, what in (
        (1, "The survivors are not rescaled: the mean shrinks."),
        (1 / p, "You divide the survivors by p, which is the share that vanishes."),
        (1 - p, "You multiply the survivors by 1 - p: the mean shrinks twice."),
    ):
        if same(scale, torch.full_like(scale, factor)):
            return what, True
    if not same(scale, torch.full_like(scale, 1 / (1 - p))):
        return "The survivors should be x / (1 - p).", True
    if torch.equal(gone, again == 0):
        return "Each call drops the same numbers: a seed is set inside.", True


@exercise("05.4 Dropout with a switch")
def check_dropout(dropout):
    """dropout(x, p, training) -> like x, thinned out in training only."""
    for shape, p in ((100, 50), 0.25), ((20, 30, 8), 0.8), ((5000,), 0.1):
        torch.default_generator.manual_seed(1)
        x = _randn(*shape)
        x = x + x.sign()  # no zeros of its own
        results = [call(dropout, x, p, training) for training in (True, True, False)]
        for result in results:
            has = tuple(getattr(result, "shape", ()))
            if has != shape:
                what = f"x of shape {shape} goes in, but {has} comes out."
                raise Explained(what, "Multiply x by a mask of its own shape.")
        problem = _dropout_problem(x.double(), p, *map(as_tensor, results))
        if problem:
            what, training = problem
            small = torch.ones(2, 4), p, training
            right = f"about {8 * p:.0f} zeros, the others {1 / (1 - p):.4g}"
            hint = (
                "In training: mask = torch.rand(x.shape) >= p, and division by 1 - p."
            )
            if not training:
                right, hint = small[0], "Begin with: if not training: return x"
            torch.default_generator.manual_seed(40)  # of the eight, two will vanish
            seen = Difference(small, right, call(dropout, *small))
            raise Explained(what + show(seen), hint)
    return "the share that vanishes, the mean, new zeros each call, quiet in evaluation"


# 05.5 and 05.6


def _body(model):
    body = list(getattr(model, "body", []))
    if not body or not all(hasattr(block, "feed_forward") for block in body[:-1]):
        what = "The model should be a LanguageModel: blocks, then one LayerNorm."
        raise Explained(what, "Pass my_model of the cell above.")
    return body


def _root_of_squares(grads):
    return sum((g.pow(2).sum() for g in grads), torch.zeros(())).sqrt()


NORMS_OF_PARTS = {
    "You add up the norms of the single tensors.": lambda g: sum(t.norm() for t in g),
    "The root is missing: this is the sum of the squares.": (
        lambda g: _root_of_squares(g) ** 2
    ),
    "You take the mean of the squares, not their sum.": (
        lambda g: torch.cat([t.flatten() for t in g]).pow(2).mean().sqrt()
    ),
    "One number for each tensor comes out, but they should become one.": (
        lambda g: torch.stack([t.norm() for t in g])
    ),
    "You take the mean of the norms.": lambda g: sum(t.norm() for t in g) / len(g),
    "You take the largest of the norms.": lambda g: max(t.norm() for t in g),
    "You add up absolute values; a length needs squares.": (
        lambda g: sum(t.abs().sum() for t in g)
    ),
    "Only the first tensor counts.": lambda g: g[0].norm(),
    "The vectors are left out: only matrices count.": (
        lambda g: _root_of_squares([t for t in g if t.dim() > 1])
    ),
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
        for name, part in zip(("attention", "the feed-forward part"), _parts(block))
    }
    cases = [([torch.tensor([3.0, -4.0]), torch.tensor([[12.0]])],)]
    cases += [([_randn(2, 3), _randn(3), _randn(2, 2, 2)],), ([_randn(7)],)]
    cases += [(part,) for part in parts.values()]
    hint = "Square all numbers, add all the squares, take one root at the very end."
    known = mistakes(hint, NORMS_OF_PARTS)
    compare(loudness, _root_of_squares, cases, known, atol=1e-7)
    loudest = max(parts, key=lambda name: _root_of_squares(parts[name]))
    return f"3, 4 and 12 give 13. In your model {loudest} has the largest gradient"


LEFT_OUT = {  # what to say, and the parts that the pathway runs through without i
    "You put zeros in place of the block: that cuts the road itself.": (
        lambda body, i: [*body[:i], torch.zeros_like, *body[i + 1 :]]
    ),
    "Blocks stay away once they are left out: each time one more is missing.": (
        lambda body, i: body[i + 1 :]
    ),
    "You keep only this block and leave out the others.": (
        lambda body, i: [body[i], body[-1]]
    ),
    "The last LayerNorm is left out as well.": (
        lambda body, i: [*body[:i], *body[i + 1 : -1]]
    ),
    "Only attention is left out; the feed-forward part still adds something.": (
        lambda body, i: [*body[:i], partial(_thinks_only, body[i]), *body[i + 1 :]]
    ),
}


def _thinks_only(block, x):
    return x + block.feed_forward(block.norm2(x))


def _all_but_one(body, i):
    return [*body[:i], *body[i + 1 :]]


@torch.no_grad()
def _leave_out(model, x, y, through=_all_but_one):
    losses = []
    for i in range(len(model.body) - 1):
        hidden = (
            model.token_embedding(x) + model.position_embedding.weight[: x.shape[1]]
        )
        for part in through(list(model.body), i):
            hidden = part(hidden)
        loss = F.cross_entropy(model.lm_head(hidden).transpose(1, 2), y)
        losses.append(loss.item())
    return [round(loss, 4) for loss in losses], losses.index(min(losses))


def _is_left_out(through, got, right, *inputs):
    return same(got[0], _leave_out(*inputs, through)[0], atol=1e-4)


def _is_pair(got):
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    return pair and getattr(as_tensor(got[0]), "ndim", 0) == 1


def _names(spare):
    """A sign: the losses are right, but the block is number spare(losses)."""
    return lambda got, right, *_: same(tuple(got), (right[0], spare(right[0])))


SPARE = {
    "Two things are wanted: the list of losses, then the number of a block.": (
        lambda got, *_: not _is_pair(got)
    ),
    "The last LayerNorm counts as a block: there is one loss too many.": (
        lambda got, right, *_: len(got[0]) == len(right[0]) + 1
    ),
    "The losses are right, but you name the block that is missed most.": _names(
        lambda losses: losses.index(max(losses))
    ),
    "The losses are right, but you count the blocks from 1.": _names(
        lambda losses: losses.index(min(losses)) + 1
    ),
    "You give how much the loss rises; the loss itself is wanted.": (
        lambda got, right, model, x, y: same(
            as_tensor(got[0]) + model(x, y)[1], right[0], atol=1e-3
        )
    ),
}


@exercise("05.6 A model with a block left out")
def check_leave_one_out(leave_one_out, model, x, y):
    """leave_one_out(model, x, y) -> (losses without block 0, 1, ...; spare block)."""

    def rounded(model, x, y):
        got = leave_one_out(model, x, y)
        if not _is_pair(got):
            return got
        return [round(loss, 4) for loss in as_tensor(got[0]).tolist()], got[1]

    def loss_afterwards(model, x, y):
        if leave_one_out(model, x, y) is not None:
            return model(x, y)[1].item()

    def toy(n_layer, n_embd, n_head, T):
        blocks = [Block(n_embd, n_head) for _ in range(n_layer)]
        body = nn.Sequential(*blocks, nn.LayerNorm(n_embd))
        idx = torch.randint(7, (3, T + 1), generator=torch.Generator().manual_seed(T))
        return _randomise(LanguageModel(7, T, n_embd, body)), idx[:, :-1], idx[:, 1:]

    _body(model)
    hint = "return losses, spare; losses[0] is the loss without body[0], and so on."
    known = mistakes(hint, {says: Sign(holds) for says, holds in SPARE.items()})
    hint = "For each i: the parts of the body but number i, the last LayerNorm too."
    for says, through in LEFT_OUT.items():
        known += mistakes(hint, {says: Sign(partial(_is_left_out, through))})
    cases = [toy(2, 4, 2, 3), toy(5, 6, 3, 5), (model, x, y)]
    compare(rounded, _leave_out, cases, known)
    says = "The numbers are right, but the model is left changed."
    hint = "Put back what you take out, or work on copy.deepcopy(model)."
    known = mistakes(hint, {says: Sign(lambda *_: True)})
    compare(loss_afterwards, lambda m, x, y: m(x, y)[1].item(), cases, known)
    losses, spare = _leave_out(model, x, y)
    dear = losses.index(max(losses))
    return f"3 models. Yours can best do without block {spare}, worst without {dear}"


# 05.7


def _norm(x, gamma=1, beta=0, mean_over=-1, over=-1, less=0, root=torch.sqrt, eps=1e-5):
    centred = x - x.mean(mean_over, keepdim=True)
    total = centred.pow(2).sum(over, keepdim=True)
    variance = total / (x.numel() // total.numel() - less)
    return gamma * centred / root(variance + eps) + beta


NORMS = {
    "The future still shows: now you average each channel over time.": dict(
        mean_over=1, over=1
    ),
    "The future still shows: the variance runs over time.": dict(over=(1, 2)),
    "The future still shows: the mean runs over time.": dict(mean_over=(1, 2)),
    "Now the sequences of a batch mix: you average over dim=0.": dict(
        mean_over=0, over=0
    ),
    "Now batch and time mix, as in BatchNorm.": dict(mean_over=(0, 1), over=(0, 1)),
    "The future is hidden, but the variance is divided by n_embd - 1.": dict(less=1),
    "The future is hidden, but epsilon stands outside the root.": dict(
        root=lambda variance: variance.sqrt() + 1e-5, eps=0
    ),
    "The future is hidden, but the root is missing.": dict(root=torch.abs),
    "The future is hidden, but gamma and beta are forgotten.": dict(gamma=1, beta=0),
    "The future is hidden, but gamma is forgotten.": dict(gamma=1),
    "The future is hidden, but beta is forgotten.": dict(beta=0),
}


@exercise("05.7 The position that knew too much")
def check_norm(make_norm):
    """make_norm(n_embd) -> a LayerNorm, (B, T, n_embd) -> (B, T, n_embd)."""
    for C in (3, 6, 8):
        norm = call(make_norm, C)
        starts = [tuple(p.tolist()) for p in norm.parameters() if p.shape == (C,)]
        if len(_shapes(norm, 1)) != 2 or set(starts) != {(1.0,) * C, (0.0,) * C}:
            what = "gamma (ones at first) and beta (zeros) should be as they were: two"
            raise Explained(
                f"{what} parameters with {C} numbers for n_embd = {C}.", "Mend forward."
            )
        first, second = _randomise(norm).parameters()
        gamma, beta = (first, second) if starts[0][0] else (second, first)
        right = partial(_norm, gamma=gamma, beta=beta)
        x = _randn(2, 4, C) + 1
        small = x[:1, :2]
        cases = [(small,), (1e-3 * small,), (x,), (1e-3 * x,)]
        leaky = partial(right, mean_over=(1, 2), over=(1, 2))
        if all(same(call(norm, *case), leaky(*case)) for case in cases):
            what = "change the last position of an input, and those before it move."
            hint = "Attention has its mask, the feed-forward layer keeps to itself."
            hint += " What else does a block compute, and from which numbers?"
            raise Explained(f"The bug is still there: {what}", hint)
        hint = "For one position: (its channels - their mean) / sqrt(variance + eps)."
        wrong = {says: partial(right, **change) for says, change in NORMS.items()}
        compare(norm, right, cases, mistakes(hint, wrong))
    return "3 shapes, large and tiny numbers, each position by itself, gamma and beta"


# 05.8


def _each_from_x(blocks, norm, x):
    return norm(blocks[-1](x))


def _no_last_norm(blocks, norm, x):
    return nn.Sequential(*blocks)(x)


def _norm_in_between(blocks, norm, x):
    for block in blocks:
        x = norm(block(x))
    return x


def _added_again(blocks, norm, x):
    for block in blocks:
        x = x + block(x)
    return norm(x)


STACKS = {
    "Every block gets the first x, so that only the last one counts.": _each_from_x,
    "The blocks are new, but the last LayerNorm is not used.": _no_last_norm,
    "The last LayerNorm acts after every block, on the pathway.": _norm_in_between,
    "x is added to what a block returns, but the block has added it.": _added_again,
}


def _stack_problem(blocks, norms, n_layer):
    if len(blocks) == 1 < n_layer:
        return (
            "The bug is still there: a deep stack has no more to learn than one block."
        )
    if not blocks:
        return "model.parameters() finds no block: the optimiser would miss them all."
    if len(blocks) != n_layer:
        return (
            f"n_layer = {n_layer} was asked for, but {len(blocks)} blocks were built."
        )
    if len(norms) != 1:
        return f"There are {len(norms)} LayerNorms after the blocks, not one."
    weights = [block.attention.qkv.weight for block in blocks]
    if any(torch.equal(weights[0], weight) for weight in weights[1:]):
        return f"There are {n_layer} blocks, but they start as twins, number by number."


@exercise("05.8 Six blocks for the price of one")
def check_stack(make_stack):
    """make_stack(n_layer, n_embd, n_head) -> blocks, then a LayerNorm."""
    for n_layer, n_embd, n_head in (3, 3, 1), (4, 6, 3), (1, 8, 2):
        stack = call(make_stack, n_layer, n_embd, n_head)
        _shapes(stack, 1)
        blocks = [m for m in stack.modules() if hasattr(m, "feed_forward")]
        inside = {part for block in blocks for part in block.modules()}
        others = [m for m in stack.modules() if m not in inside]
        norms = [m for m in others if isinstance(m, nn.LayerNorm)]
        problem = _stack_problem(blocks, norms, n_layer)
        if problem:
            hint = (
                "Block(...) runs anew for each layer; an nn.ModuleList keeps them all."
            )
            if "still there" in problem:
                hint = "On paper, six blocks have six times as much to learn. And here?"
            raise Explained(problem, hint)
        _randomise(stack)
        right = nn.Sequential(*blocks, *norms)
        wrong = {
            says: partial(program, blocks, *norms) for says, program in STACKS.items()
        }
        hint = "x = block(x) for each block, then the LayerNorm, once."
        cases = [(_randn(1, 4, n_embd),), (_randn(3, 1, n_embd),)]
        compare(stack, right, cases, mistakes(hint, wrong))
    return "1, 3 and 4 blocks, each with its own numbers, one after the other"
