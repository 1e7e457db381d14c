"""Checks of notebook 04: heads side by side, packed, shared and switched off."""

import contextlib
import copy
from functools import partial
from itertools import combinations

import torch
import torch.nn as nn

from minigpt.attention import attention
from minigpt.checks.core import Explained, Sign, call, compare, exercise, mistakes
from minigpt.evaluation import evaluate
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention

MEMORY = "A reshape keeps the numbers in memory order; it exchanges no dimensions. "
TURNS = "Heads do not take turns: the channels of one head lie next to each other."
COUNT = "You use the number of heads as the width of a head."
FROM_ONE = "You take the head before: your heads are counted from one."
UNPROJECTED = "The projection is missing: the heads' findings are not mixed."
WIDE = "The scores are too small: you divide by √C instead of √head_size."
UNMASKED = "The mask is missing: every position sees the future."


@exercise("04.1 Cut out one head")
def check_part_of_head(part_of_head):
    """part_of_head(side_by_side (B, T, C), h, n_head) -> (B, T, head_size)."""
    cases = []
    for B, T, C, n in [(1, 2, 6, 2), (2, 5, 12, 3), (3, 2, 8, 2)]:
        x = torch.arange(B * T * C).float().view(B, T, C)
        cases += [(x, h, n) for h in (1, 0, n - 1)]

    def sized(program):
        return lambda x, h, n: program(x, h, n, x.shape[-1] // n)

    right = sized(lambda x, h, n, size: x[..., h * size : (h + 1) * size])
    wrong = {
        f"You take every n_head-th channel. {TURNS}": (
            lambda x, h, n, size: x[..., h::n]
        ),
        COUNT: lambda x, h, n, size: x[..., h * n : (h + 1) * n],
        FROM_ONE: lambda x, h, n, size: x[..., (h - 1) * size : h * size],
        "The width is right, but you begin at channel h: the heads overlap.": (
            lambda x, h, n, size: x[..., h : h + size]
        ),
        "One channel too many: the end of a slice is not part of it.": (
            lambda x, h, n, size: x[..., h * size : (h + 1) * size + 1]
        ),
        "You take head h and all heads after it: the slice has no end.": (
            lambda x, h, n, size: x[..., h * size :]
        ),
        "You take one channel; a head owns head_size of them.": (
            lambda x, h, n, size: x[..., h]
        ),
        "You cut in time: these are positions, with the channels of all heads.": (
            lambda x, h, n, size: x[:, h * size : (h + 1) * size]
        ),
        "You take all heads of position h, not head h of all positions.": (
            lambda x, h, n, size: x.unflatten(-1, (n, size))[:, h]
        ),
        f"{MEMORY}Your head mixes channels of several heads.": (
            lambda x, h, n, size: _split_in_memory(x, n)[:, h]
        ),
    }
    hint = "h heads come before head h, and each is head_size channels wide."
    wrong = {says: sized(program) for says, program in wrong.items()}
    compare(part_of_head, right, cases, mistakes(hint, wrong))
    return "3 shapes; the pieces of all heads are exactly the C channels."


@exercise("04.2 Count before you build")
def check_parameters(parameters):
    """parameters(n_embd, n_head) -> number of parameters of multi-head attention."""
    cases = [(6, 2), (6, 3), (20, 5), (64, 4), (768, 12), (768, 24)]
    wrong = {
        "The bias of the projection is missing.": lambda c, n: 4 * c * c,
        "The projection is missing.": lambda c, n: 3 * c * c,
        "You count wide heads, each from C to C.": (
            lambda c, n: 3 * n * c * c + c * c + c
        ),
        "You count one head only, or heads that read head_size channels. There are "
        "n_head of them, and each reads all C.": (
            lambda c, n: 3 * c * (c // n) + c * c + c
        ),
        "You give queries, keys and values a bias; here they have none.": (
            lambda c, n: 4 * c * c + 4 * c
        ),
        "Your projection reads one head; it reads all of them, side by side.": (
            lambda c, n: 3 * c * c + c * (c // n) + c
        ),
        "You give every head its own projection; one mixes what all found.": (
            lambda c, n: 3 * c * c + n * (c * c + c)
        ),
    }
    hint = "Three matrices from C to head_size a head; then one nn.Linear(C, C)."
    compare(parameters, lambda c, n: 4 * c * c + c, cases, mistakes(hint, wrong))
    return (
        "6 sizes. For n_embd = 768 it is 2,360,064 with 12 heads and with 24: "
        "the number of heads changes nothing."
    )


@exercise("04.3 Take your model apart")
def check_take_apart(take_apart, model):
    """take_apart(layer, h) -> query, key and value weights of h: (head_size, C)."""
    own = _own_layer(model)
    cases = [(_numbered(2, 2), 1)]
    cases += [(_numbered(6, 3), h) for h in (0, 1, 2)] + [(_numbered(8, 2), 1)]
    cases += [(own, h) for h in range(own.n_head)]

    def answer(layer, h):
        got = take_apart(layer, h)
        if not isinstance(got, (tuple, list)):
            return got
        parts = [torch.as_tensor(getattr(w, "weight", w)).detach() for w in got]
        return torch.stack(parts) if len({p.shape for p in parts}) == 1 else got

    def weights(program):
        return lambda m, h: program(m.qkv.weight.detach(), h, m.n_head, m.head_size)

    right = weights(lambda w, h, n, size: w.unflatten(0, (3, n, size))[:, h])
    wrong = {
        "Your order is key, query, value; the layer's is query, key, value.": (
            lambda w, h, n, size: w.unflatten(0, (3, n, size))[[1, 0, 2], h]
        ),
        "You read the rows as if a head's query, key and value were neighbours.": (
            lambda w, h, n, size: w.unflatten(0, (n, 3, size))[h]
        ),
        "Your query is right, but your key and value come from the next heads' rows.": (
            lambda w, h, n, size: w.unflatten(0, (-1, size))[h : h + 3]
        ),
        f"You take every n_head-th row. {TURNS}": (
            lambda w, h, n, size: w.unflatten(0, (3, size, n))[:, :, h]
        ),
        COUNT: lambda w, h, n, size: w.unflatten(0, (3, -1))[:, h * n : (h + 1) * n],
        "You always hand over head 0.": (
            lambda w, h, n, size: w.unflatten(0, (3, n, size))[:, 0]
        ),
        "You hand over all heads together.": (
            lambda w, h, n, size: w.unflatten(0, (3, -1))
        ),
        "The right numbers, but transposed: nn.Linear keeps one row an output.": (
            lambda w, h, n, size: w.unflatten(0, (3, n, size))[:, h].mT
        ),
        "You cut columns: these are the inputs, and all heads read all of them.": (
            lambda w, h, n, size: w.unflatten(0, (3, -1)).chunk(n, dim=-1)[h]
        ),
    }
    hint = (
        "The rows hold the queries of all heads, then the keys, then the values. (In "
        "the small layers here, row r begins with 10 r.)"
    )
    wrong = {says: weights(program) for says, program in wrong.items()}
    compare(answer, right, cases, mistakes(hint, wrong))
    return f"3 small layers and the {own.n_head} heads of your own model."


def _numbered(n_embd, n_head):
    """A layer whose qkv.weight holds 10 * row + column."""
    layer = CausalSelfAttention(n_embd, n_head)
    rows, columns = torch.arange(3 * n_embd), torch.arange(n_embd)
    layer.qkv.weight.data.copy_(10 * rows[:, None] + columns)
    return layer


def _own_layer(model):
    layer = getattr(model, "body", None)
    if not isinstance(layer, CausalSelfAttention):
        raise Explained(
            "`model` is not the language model with several heads any more.",
            "Run the cells of section 5 again.",
        )
    return layer


def _split(z, n_head):  # (B, T, C) -> (B, n_head, T, head_size)
    return z.unflatten(-1, (n_head, -1)).transpose(1, 2)


def _split_in_memory(z, n_head):
    B, T, C = z.shape
    return z.reshape(B, n_head, T, C // n_head)


def _split_in_turns(z, n_head):
    return z.unflatten(-1, (-1, n_head)).permute(0, 3, 1, 2)


def _join(out):  # (B, n_head, T, head_size) -> (B, T, C)
    return out.transpose(1, 2).flatten(2)


def _join_in_memory(out):
    return out.reshape(_join(out).shape)


def _join_in_turns(out):
    return out.permute(0, 2, 3, 1).flatten(2)


def _attend(q, k, v, proj, join=_join, wide=False, causal=True):
    """q, k, v: (B, n_head, T, head_size) -> (B, T, C)."""
    q = q / q.shape[1] ** 0.5 if wide else q
    return proj(join(attention(q, k, v, causal)[0])).detach()


@exercise("04.4 One memory for all heads")
def check_multi_query(multi_query):
    """multi_query(x, query, key, value, proj, n_head): (B, T, C) -> (B, T, C)."""
    # Forgetting the heads' dimension of k and v goes unnoticed if B is n_head or 1.
    torch.default_generator.manual_seed(4)
    cases = []
    for B, T, C, n in [(1, 2, 6, 3), (3, 5, 12, 3), (2, 4, 6, 2), (4, 3, 20, 4)]:
        wide, proj = nn.Linear(C, C, bias=False), nn.Linear(C, C)
        narrow = [nn.Linear(C, C // n, bias=False) for _ in range(2)]
        cases.append((torch.randn(B, T, C), wide, *narrow, proj, n))

    def program(x, query, key, value, proj, n, split=_split, heads_at=1, **how):
        k, v = key(x).unsqueeze(heads_at), value(x).unsqueeze(heads_at)
        return _attend(split(query(x), n), k, v, proj, **how)

    wrong = {
        f"{MEMORY}Your queries mix time and heads.": (
            partial(program, split=_split_in_memory)
        ),
        f"{MEMORY}Your way back from heads to channels mixes time and heads.": (
            partial(program, join=_join_in_memory)
        ),
        f"{MEMORY}Both on the way to the heads and back, you mix time and heads.": (
            partial(program, split=_split_in_memory, join=_join_in_memory)
        ),
        f"Your queries are interleaved. {TURNS}": (
            partial(program, split=_split_in_turns)
        ),
        f"Your outputs are interleaved. {TURNS}": partial(program, join=_join_in_turns),
        "Head h reads the keys and values of text h: they lack a dimension for the "
        "heads, so torch takes the batch for it.": partial(program, heads_at=0),
        UNPROJECTED: lambda *args: program(*args[:4], nn.Identity(), args[5]),
        WIDE: partial(program, wide=True),
        UNMASKED: partial(program, causal=False),
    }
    hint = "`attention` wants q as (B, n_head, T, head_size), k and v as (B, 1, T, …)."
    try:
        compare(multi_query, program, cases, mistakes(hint, wrong))
    except Explained as problem:
        if "(6x2 and 6x6)" not in problem.args[0]:
            raise
        raise Explained(
            "The projection was handed rows of head_size = 2 numbers instead of C = 6: "
            "your heads are not side by side, but stacked or one after the other.",
            "Concatenate along the last dimension, or transpose and reshape.",
        ) from None
    return "4 sizes; time and heads stay apart, and the future is hidden."


@exercise("04.5 Switch a head off")
def check_without_head(without_head, model, val_data):
    """without_head(model, h) -> a model like it in which head h adds nothing."""
    own = _own_layer(model)
    torch.default_generator.manual_seed(4)
    small = LanguageModel(3, 4, 6, CausalSelfAttention(6, 3))
    large = LanguageModel(5, 6, 8, CausalSelfAttention(8, 2))
    window = torch.as_tensor(val_data)[None, : model.block_size]
    cases = [(small, h, torch.tensor([[0, 2]])) for h in (1, 0, 2)]
    cases += [(large, h, torch.arange(12).view(2, 6) % 5) for h in (1, 0)]
    cases += [(model, h, window) for h in range(own.n_head)]

    def logits(model, idx):
        got = model(idx)
        return (got[0] if isinstance(got, tuple) else got).detach()

    def answer(model, h, idx):
        smaller = without_head(model, h)
        return logits(smaller, idx) if callable(smaller) else smaller

    def afterwards(model, h, idx):
        without_head(model, h)
        return logits(model, idx)

    def zeroed(views):
        """The program that sets views(layer, h, channels of h, layer.proj) to zero."""

        def program(model, h, idx):
            model = copy.deepcopy(model)
            layer, size = model.body, model.body.head_size
            channels = slice(h * size, (h + 1) * size)
            for view in views(layer, h, channels, layer.proj):
                view.data.zero_()
            return logits(model, idx)

        return program

    wrong = {
        "The model does what it did before: your change does not reach it.": (
            lambda layer, h, own, proj: []
        ),
        "You set rows of the projection to zero; a row mixes what all heads found.": (
            lambda layer, h, own, proj: [proj.weight[own]]
        ),
        "You silence channels behind the projection; there all heads are mixed.": (
            lambda layer, h, own, proj: [proj.weight[own], proj.bias[own]]
        ),
        "The head is not off: with all scores at zero, it still hands over the mean "
        "of its values.": lambda layer, h, own, proj: [layer.qkv.weight[own]],
        "You take channels away from the input of all heads.": (
            lambda layer, h, own, proj: [layer.qkv.weight[:, own]]
        ),
        "You read qkv as if a head's query, key and value were neighbours.": (
            lambda layer, h, own, proj: [layer.qkv.weight.chunk(layer.n_head)[h]]
        ),
        f"You switch off every n_head-th channel. {TURNS}": (
            lambda layer, h, own, proj: [proj.weight[:, h :: layer.n_head]]
        ),
        COUNT: lambda layer, h, own, proj: [
            proj.weight[:, h * layer.n_head : (h + 1) * layer.n_head]
        ],
        FROM_ONE: lambda layer, h, own, proj: [
            proj.weight[:, own.start - layer.head_size : own.start]
        ],
        "You keep head h and switch off all the others.": lambda layer, h, own, proj: [
            proj.weight[:, : own.start],
            proj.weight[:, own.stop :],
        ],
        "Head h is off, but the projection's bias is too, and that is no head's.": (
            lambda layer, h, own, proj: [proj.weight[:, own], proj.bias]
        ),
    }
    hint = "Which columns of proj.weight (C, C) are multiplied by what head h wrote?"
    off = zeroed(lambda layer, h, own, proj: [proj.weight[:, own]])
    wrong = {says: zeroed(views) for says, views in wrong.items()}
    try:
        compare(answer, off, cases, mistakes(hint, wrong))
    except Explained as problem:
        if "leaf Variable" not in problem.args[0]:
            raise
        raise Explained(
            "torch keeps track of what happens to a parameter, for the gradients, and "
            "does not allow this change.",
            "Put the change under `with torch.no_grad():`.",
        ) from None
    spoiled = (
        "The model that you return is right, but the one that you were given has lost "
        "its head as well: you changed it in place."
    )
    keep = mistakes("Change copy.deepcopy(model).", {spoiled: Sign(lambda *_: True)})
    compare(afterwards, zeroed(lambda *_: []), cases[:4], keep)
    full, *missing = _subsets(own.n_head)[: own.n_head + 1]
    losses = _losses(model, val_data, [full, *missing])
    rises = {(set(full) - set(on)).pop(): losses[on] - losses[full] for on in missing}
    said = ", ".join(f"{rises[h]:.2f} (head {h})" for h in full)
    return (
        "3 models, unchanged afterwards. On 2048 tokens the loss of your model rises "
        f"by this many nats without one head: {said}."
    )


@torch.no_grad()
def _losses(model, val_data, subsets):
    """Loss on 2048 tokens for sets of heads that are on: {(0, 2): 2.5, …}."""
    layer, data = model.body, torch.as_tensor(val_data)[:2049]
    weight, losses = layer.proj.weight.clone(), {}
    try:
        for on in subsets:
            kept = torch.zeros(layer.n_head)
            kept[list(on)] = 1
            layer.proj.weight.copy_(weight * kept.repeat_interleave(layer.head_size))
            losses[on] = evaluate(model, data, model.block_size)
    finally:
        layer.proj.weight.copy_(weight)
    return losses


def _subsets(n):
    sizes = range(n, -1, -1)
    return [subset for size in sizes for subset in combinations(range(n), size)]


@exercise("04.6 Who stands in for whom?")
def check_stand_ins(stand_ins, model, val_data):
    """stand_ins(loss_of, n_head) -> (a, b), extra: the pair that is hardest to lose."""
    own = _own_layer(model)
    cases = [
        _made_up((0.1, 0.2), {(0, 1): 0.4}),
        _made_up((0.5, 0.4, 0.05), {(0, 1): 0.1, (0, 2): -0.2, (1, 2): 0.3}),
        _made_up((0.3, 0.1, 0.2, 0.6), {(0, 2): 0.25, (1, 3): -0.4, (2, 3): 0.05}),
        _made_up((0.4, 0.3, 0.5), {(0, 1): -0.2, (0, 2): -0.05, (1, 2): -0.1}),
    ]

    def answer(losses, n_head):
        def loss_of(heads):
            on = tuple(sorted({int(h) for h in heads}))
            if on not in losses:
                raise ValueError(f"there are no heads {on} among {n_head}")
            return losses[on]

        got = stand_ins(loss_of, n_head)
        try:
            (a, b), extra = got
            return tuple(sorted((int(a), int(b)))), round(float(extra), 4)
        except (TypeError, ValueError):
            return got

    def best(extra, choose=max, only=False, far=99):
        """The program that chooses by extra(full, without a, without b, without both);
        only: with these heads on instead of off; far: how far apart they may be."""

        def program(losses, n_head):
            def loss(*heads):
                return losses[tuple(h for h in full if (h in heads) == only)]

            full, found = range(n_head), {}
            for a, b in combinations(full, 2):
                if b - a <= far:
                    four = losses[tuple(full)], loss(a), loss(b), loss(a, b)
                    found[a, b] = round(extra(*four), 4)
            pair = choose(found, key=found.get)
            return pair, found[pair]

        return program

    def right(full, a, b, both):
        return (both - full) - (a - full) - (b - full)

    def by_size(found, key):
        return max(found, key=lambda pair: abs(key(pair)))

    wrong = {
        "You drop the sign: an extra cost far below zero is not a large one.": (
            best(right, choose=by_size)
        ),
        "You drop the sign: an extra cost below zero is not a positive one.": (
            best(lambda *losses: abs(right(*losses)))
        ),
        "You mix losses and rises: each rise is a loss minus that of the full model.": (
            best(lambda full, a, b, both: both - a - b)
        ),
        "This pair costs most together; two heads that matter much by themselves do "
        "that too. Subtract what they cost separately.": (
            best(lambda full, a, b, both: both - full)
        ),
        "You compare with the larger of the two rises instead of their sum.": (
            best(lambda full, a, b, both: both - max(a, b))
        ),
        "You switch on the heads that you mean to switch off.": best(right, only=True),
        "You return the pair with the smallest extra cost.": best(right, choose=min),
        "Your sign is the wrong way round: joint rise minus single rises.": (
            best(lambda *losses: -right(*losses))
        ),
        "You try neighbouring heads only; heads 0 and 2 are a pair as well.": (
            best(right, far=1)
        ),
        "Where every extra cost is negative, you find no pair.": (
            Sign(lambda got, expected, *_: expected[1] < 0 and not got[1]),
            'Begin the search at -float("inf") instead of 0.',
        ),
    }
    hint = "extra = rise without both - (rise without a + rise without b)."
    compare(answer, best(right), cases, mistakes(hint, wrong))
    yours = _losses(model, val_data, _subsets(own.n_head)), own.n_head
    compare(answer, best(right), [yours])
    (a, b), extra = best(right)(*yours)
    return (
        f"4 made-up models and yours. There, losing heads {a} and {b} together costs "
        f"{abs(extra):.3f} nats {'more' if extra > 0 else 'less'} than losing each by "
        "itself adds up to, and no other pair exceeds that."
    )


def _made_up(rises, extras):
    """Losses: 2, plus a rise for each missing head, an extra for each missing pair."""
    losses = {}
    for on in _subsets(len(rises)):
        off = set(range(len(rises))) - set(on)
        loss = 2.0 + sum(rises[h] for h in off)
        loss += sum(extra for pair, extra in extras.items() if off.issuperset(pair))
        losses[on] = round(loss, 4)
    return losses, len(rises)


@exercise("04.7 The copy that differs")
def check_copy(Heads):
    """A class Heads(n_embd, n_head) whose copies survive saving."""
    torch.default_generator.manual_seed(4)
    for n_embd, n_head in [(6, 3), (20, 2)]:
        _check_copy(Heads, n_embd, n_head)
    return (
        "2 sizes; a fresh copy that loads the weights gives the same outputs, and "
        "every head can learn."
    )


def _check_copy(Heads, n_embd, n_head):
    x = torch.randn(2, 5, n_embd)

    def copies():
        first, second = (Heads(n_embd, n_head) for _ in range(2))
        second.load_state_dict(first.state_dict())
        out = first(x)
        agree = torch.allclose(out, second(x))
        out.sum().backward()
        return first, out, agree

    first, out, agree = call(copies)
    lost, kind = _unsaved(first)
    if lost and agree:
        raise Explained(
            "Both copies begin alike now, which hides the symptom; but what the heads "
            "learn is still not saved.",
            "Which names are in first.state_dict()?",
        )
    if lost and all(any(p is q for q in first.parameters()) for p in lost):
        raise Explained(
            "The optimizer finds all parameters now, but saving does not.",
            "If torch knows the heads themselves, parameters() needs no help.",
        )
    if lost and kind is not list:
        raise Explained(
            f"A {kind.__name__} hides its modules from torch just as before.",
            "torch.nn has containers of its own.",
        )
    if not agree:
        raise Explained(
            "The bug is still there: a fresh copy that loads the saved weights gives "
            "other outputs than the original."
        )
    heads, proj = 3 * n_embd**2, n_embd**2 + n_embd
    known = {
        heads // n_head + proj: "All places hold one and the same head.",
        heads: "The projection is gone.",
        n_head * (heads + n_embd**2) + n_embd: "Each head is wide now, from C to C.",
    }
    count = sum(p.numel() for p in first.parameters())
    if count != heads + proj:
        raise Explained(
            f"{known.get(count, 'The copies agree, but the layer has changed.')} "
            f"Heads({n_embd}, {n_head}) has {count} parameters; {heads + proj} "
            "would be right.",
            "Change only what keeps the heads; each place needs a new Head.",
        )
    plain = MultiHeadAttention(n_embd, n_head)
    if first.state_dict().keys() == plain.state_dict().keys():
        plain.load_state_dict(first.state_dict())
        if out.shape != x.shape or not torch.allclose(out, plain(x), atol=1e-5):
            raise Explained(
                "The copies agree, but the outputs are not the heads side by side, "
                "projected.",
                "Leave forward as it was.",
            )
    if any(p.grad is None for p in first.parameters()):
        raise Explained(
            "The copies agree, but some parameters never get a gradient.",
            "forward has to use the heads themselves, not copies of them.",
        )


def _unsaved(module):
    """Parameters of modules in a plain container that saving misses, and its type."""
    saved = {id(p) for p in module.state_dict(keep_vars=True).values()}
    for box in vars(module).values():
        items = box.values() if isinstance(box, dict) else box
        if isinstance(box, (list, tuple, set, dict)):
            held = [m for m in items if isinstance(m, nn.Module)]
            lost = [p for m in held for p in m.parameters() if id(p) not in saved]
            if lost:
                return lost, type(box)
    return [], None


@exercise("04.8 Better than possible")
def check_dice(DiceHeads):
    """A class DiceHeads(n_embd, n_head) with layers qkv and proj, (B, T, C) -> same."""
    torch.default_generator.manual_seed(4)
    cases = [
        (torch.randn(B, T, C), nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C), n)
        for B, T, C, n in [(1, 2, 6, 3), (2, 5, 8, 2), (3, 4, 12, 2)]
    ]

    def answer(x, qkv, proj, n_head):
        layer = DiceHeads(x.shape[-1], n_head)
        layer.qkv.load_state_dict(qkv.state_dict())
        layer.proj.load_state_dict(proj.state_dict())
        return layer(x).detach()

    def program(x, qkv, proj, n, split=_split, **how):
        q, k, v = (split(z, n) for z in qkv(x).chunk(3, dim=-1))
        return _attend(q, k, v, proj, **how)

    def all_in_memory(x, qkv, proj, n):
        B, T, C = x.shape
        return _attend(*qkv(x).reshape(3, B, n, T, C // n), proj)

    def among_heads(x, qkv, proj, n):
        q, k, v = qkv(x).unflatten(-1, (3, n, -1)).unbind(2)  # (B, T, n, head_size)
        return proj(attention(q, k, v)[0].flatten(2)).detach()

    def exchange(*dims):
        def join(out):
            return out.transpose(*dims).reshape(_join(out).shape)

        return partial(program, join=join)

    wrong = {
        "No more leak, but the channels of the heads are interleaved: a saved model "
        f"would give other results. {TURNS}": partial(program, join=_join_in_turns),
        "You exchange time and head_size; a row still holds several positions.": (
            exchange(2, 3)
        ),
        "You exchange batch and heads: the texts of a batch are mixed.": exchange(0, 1),
        "No more leak, but no attention either: at each position heads look at heads, "
        "and no position sees another one.": among_heads,
        f"{MEMORY}Now q, k and v are mixed up; they were right before.": (
            partial(program, split=_split_in_memory)
        ),
        f"{MEMORY}Now queries, keys and values are mixed up.": all_in_memory,
        UNPROJECTED: lambda x, qkv, proj, n: program(x, qkv, nn.Identity(), n),
        WIDE: partial(program, wide=True),
        UNMASKED: partial(program, causal=False),
    }
    hint = "Which shape has `out`, and what does the last line make of it?"
    with contextlib.suppress(Explained):
        compare(answer, partial(program, join=_join_in_memory), cases)
        hint = ""  # it is the program as it was
    if not hint:
        raise Explained(
            "The bug is still there: nobody can foresee dice, yet the model is better "
            "than chance. It knows throws that are still to come."
        )
    compare(answer, program, cases, mistakes(hint, wrong))
    return (
        "3 sizes; the heads stand side by side, no position sees the future, no text "
        "another one."
    )
