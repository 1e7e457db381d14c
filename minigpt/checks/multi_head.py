"""Checks of notebook 04: heads side by side, packed, shared and switched off."""

import statistics
from itertools import combinations

import torch
import torch.nn as nn

from minigpt.attention import Head, attention
from minigpt.checks.core import (
    Explained,
    NotAttempted,
    Sign,
    call,
    compare,
    exercise,
    same,
)
from minigpt.checks.opened import Opened
from minigpt.checks.running import is_skeleton
from minigpt.checks.solutions import Solution
from minigpt.evaluation import evaluate
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention
from minigpt.training import TrainConfig, train


@exercise("04.1 x +, and measure again")
def check_saved(saved, train_data, val_data):
    """saved(model, train_data, val_data, recipe) -> nats that `x +` saves."""

    def recipe(steps, block_size, seed=1, batch_size=8):
        rate = {"learning_rate": 2e-2, "warmup_steps": 0, "eval_batches": 1}
        sizes = {"steps": steps, "block_size": block_size, "batch_size": batch_size}
        return TrainConfig(**sizes, **rate, seed=seed, eval_every=steps)

    def model(vocab_size, block_size, n_embd, n_head, seed):
        torch.default_generator.manual_seed(seed)
        body = CausalSelfAttention(n_embd, n_head)
        return LanguageModel(vocab_size, block_size, n_embd, body)

    def work(program, *inputs):
        if is_skeleton(program):
            raise NotAttempted
        torch.default_generator.manual_seed(9)
        nats = program(*inputs)
        return nats if isinstance(nats, (tuple, list)) else round(float(nats), 4)

    def from_trained(model, train_data, val_data, recipe):
        losses = []
        for _ in range(2):
            train(model, train_data, val_data, recipe)
            losses.append(evaluate(model, val_data, recipe.block_size))
            model.body = Solution("04.1", name="Beside").program(model.body)
        return round(losses[0] - losses[1], 4)

    texts = [torch.arange(n) * n % 11 % 5 for n in (90, 40)]
    cases = [
        (model(5, 4, 6, 2, 1), *texts, recipe(3, 4)),
        (model(5, 6, 8, 4, 2), *texts, recipe(4, 6, seed=2)),
    ]
    hint = "Two copies of one start; in one of them the body is Beside(body)."
    wrong = {
        "Your model with Beside begins where the plain one has ended: it has been "
        "trained already.": from_trained,
        "Nothing is saved, to the last digit: both models have learned the same. Does "
        "Beside add x, and is it the body of one of them?": (
            Sign(lambda got, *_: got == 0)
        ),
    }
    compare(saved, Solution("04.1"), cases, wrong, 2e-4, work=work, hint=hint)
    vocab_size = int(max(train_data.max(), val_data.max())) + 1
    some, found = val_data[:1000], {1: [], 4: []}
    for n_head, nats in found.items():
        for seed in (1, 2, 3):
            start = model(vocab_size, 8, 16, n_head, seed)
            nats.append(float(saved(start, train_data, some, recipe(30, 8, seed))))
    said = " and ".join(
        f"{statistics.mean(nats):.2f} ± {(max(nats) - min(nats)) / 2:.2f} nats with "
        f"{n_head} head{'s' * (n_head > 1)}"
        for n_head, nats in found.items()
    )
    return f"2 trainings. On your text, 30 steps, three seeds, `x +` saves {said}."


@exercise("04.2 Count before you build")
def check_parameters(parameters):
    """parameters(n_embd, n_head) -> number of parameters of multi-head attention."""
    cases = [(6, 2), (6, 3), (20, 5), (64, 4), (768, 12), (768, 24)]
    wrong = {
        "You give queries, keys and values a bias; here they have none.": (
            "n_embd * head_size → (n_embd + 1) * head_size"
        ),
        "You give every head its own projection; one mixes what all found.": (
            "proj = n_embd * n_embd + n_embd → proj = n_head * n_embd * (n_embd + 1)"
        ),
        "You count one head only, or heads that read head_size channels. There are "
        "n_head of them, and each reads all C.": "n_head * 3 → 3",
    }
    hint = "Three matrices from C to head_size a head; then one nn.Linear(C, C)."
    compare(parameters, Solution("04.2"), cases, wrong, hint=hint)
    return (
        "6 sizes. For n_embd = 768 it is 2,360,064 with 12 heads and with 24: "
        "the number of heads changes nothing."
    )


@exercise("04.3 Take your model apart")
def check_take_apart(take_apart, model):
    """take_apart(layer, h) -> query, key and value weights of h: (head_size, C)."""
    own = _own_layer(model)
    cases = [(_numbered(4, 2), 1)]
    cases += [(_numbered(6, 3), h) for h in (0, 1, 2)] + [(_numbered(8, 2), 1)]
    cases += [(own, h) for h in range(own.n_head)]

    def work(program, layer, h):
        got = program(layer, h)
        if isinstance(got, torch.Tensor) and got.dim() == 3:
            got = tuple(got)
        if isinstance(got, (tuple, list)):
            if len(got) != 3:
                raise Explained(
                    f"It returns {len(got)} values, where 3 should be: query, key, "
                    "value."
                )
            return tuple(getattr(part, "weight", part) for part in got)
        return got

    def rows(edit):
        """An edit that takes weight.<edit> in place of the rows of head h."""
        n = "n = layer.n_head"
        return f"query, key, value = weight.chunk(3) → {n}; return weight.{edit}"

    wrong = {
        "You read the rows as if a head's query, key and value were neighbours.": (
            rows("unflatten(0, (n, 3, head_size))[h]")
        ),
        "Your query is right, but your key and value come from the next heads' rows.": (
            rows("unflatten(0, (-1, head_size))[h : h + 3]")
        ),
        "You take every n_head-th row. Heads do not take turns: the rows of one head "
        "lie next to each other.": rows("unflatten(0, (3, head_size, n))[:, :, h]"),
        "You use the number of heads as the width of a head.": (
            rows("unflatten(0, (3, -1))[:, h * n : (h + 1) * n]")
        ),
        "You always hand over head 0.": "slice( → slice(0, head_size) or (",
        "You cut columns: these are the inputs, and all heads read all of them.": (
            rows("unflatten(0, (3, -1)).chunk(n, dim=-1)[h]")
        ),
    }
    hint = (
        "The rows hold the queries of all heads, then the keys, then the values. (In "
        "the small layers here, row r begins with 10 r.)"
    )
    how = {"work": work, "parts": ("query", "key", "value"), "hint": hint}
    compare(take_apart, Solution("04.3"), cases, wrong, **how)
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

    turns = "Heads do not take turns: the channels of one head lie next to each other."
    split = "view(B, T, n_head, C // n_head).transpose(1, 2)"
    joined = "out.transpose(1, 2).reshape(B, T, C)"
    wrong = {
        "A reshape keeps the numbers in memory order; it exchanges no dimensions. Both "
        "on the way to the heads and back, you mix time and heads.": (
            f"{split} → view(B, n_head, T, C // n_head)",
            f"{joined} → out.reshape(B, T, C)",
        ),
        f"Your queries are interleaved. {turns}": (
            f"{split} → view(B, T, C // n_head, n_head).permute(0, 3, 1, 2)"
        ),
        f"Your outputs are interleaved. {turns}": (
            f"{joined} → out.permute(0, 2, 3, 1).reshape(B, T, C)"
        ),
        "Head h reads the keys and values of text h: they lack a dimension for the "
        "heads, so torch takes the batch for it.": (
            "key(x)[:, None], value(x)[:, None] → key(x), value(x)"
        ),
        **ATTENTION,
    }
    hint = "`attention` wants q as (B, n_head, T, head_size), k and v as (B, 1, T, …)."
    try:
        compare(multi_query, Opened("04.4"), cases, wrong, hint=hint)
    except Explained as problem:
        if "(6x2 and 6x6)" not in problem.args[0]:
            raise
        raise Explained(
            "The projection was handed rows of head_size = 2 numbers instead of C = 6: "
            "your heads are not side by side, but stacked or one after the other.",
            "Concatenate along the last dimension, or transpose and reshape.",
        ) from None
    return "4 sizes; time and heads stay apart, and the future is hidden."


ATTENTION = {
    "The scores are too small: you divide by √C instead of √head_size.": (
        "attention(q, k, v) → attention(q / q.shape[1] ** 0.5, k, v)"
    ),
    "The mask is missing: every position sees the future.": (
        "attention(q, k, v) → attention(q, k, v, causal=False)"
    ),
}


@exercise("04.5 Switch a head off")
def check_without_head(without_head, model, val_data):
    """without_head(model, h) -> a model like it in which head h adds nothing."""
    own = _own_layer(model)
    torch.default_generator.manual_seed(4)
    small = LanguageModel(3, 4, 6, CausalSelfAttention(6, 3))
    large = LanguageModel(5, 6, 8, CausalSelfAttention(8, 2))
    cases = [(small, h) for h in (1, 0, 2)] + [(large, h) for h in (1, 0)]
    cases += [(model, h) for h in range(own.n_head)]

    def logits(model):
        T, vocab_size = model.block_size, model.lm_head.out_features
        return torch.arange(2 * T).view(2, T) % vocab_size

    def work(program, model, h):
        smaller, idx = program(model, h), logits(model)
        got = smaller(idx) if callable(smaller) else smaller
        return got[0] if isinstance(got, tuple) else got

    channels = "start : start + layer.head_size"
    there = f"layer.proj.weight[:, {channels}] = 0"

    def zeroed(*parts):
        """An edit that sets these parts of the layer to zero, own: the head's place."""
        zeros = "; ".join(f"layer.{part} = 0" for part in parts)
        return f"{there} → own = slice({channels.replace(' :', ',')}); {zeros}"

    def shifted(got, right, *_):
        """All positions are off by the same numbers."""
        return (got - right).flatten(0, 1).std(dim=0).max() < 1e-6

    wrong = {
        "You silence channels behind the projection; there all heads are mixed.": (
            zeroed("proj.weight[own]", "proj.bias[own]")
        ),
        "The head is not off: with all scores at zero, it still hands over the mean "
        "of its values.": zeroed("qkv.weight[own]"),
        "You take channels away from the input of all heads.": (
            zeroed("qkv.weight[:, own]")
        ),
        "You read qkv as if a head's query, key and value were neighbours.": (
            zeroed("qkv.weight[3 * own.start : 3 * own.stop]")
        ),
        "You switch off every n_head-th channel. Heads do not take turns.": (
            zeroed("proj.weight[:, h :: layer.n_head]")
        ),
        "You switch off one channel, number h; a head has head_size of them.": (
            zeroed("proj.weight[:, h]")
        ),
        "You use the number of heads as the width of a head.": (
            zeroed("proj.weight[:, h * layer.n_head : (h + 1) * layer.n_head]")
        ),
        "You take the head before: your heads are counted from one.": (
            zeroed("proj.weight[:, own.start - layer.head_size : own.start]")
        ),
        "You keep head h and switch off all the others.": (
            zeroed("proj.weight[:, : own.start]", "proj.weight[:, own.stop :]")
        ),
        "Head h is off, but the projection's bias is too, or a part of it: that is no "
        "head's.": Sign(shifted),
    }
    hint = "Which columns of proj.weight (C, C) are multiplied by what head h wrote?"
    compare(without_head, Solution("04.5"), cases, wrong, work=work, hint=hint)
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
    cases.append((_losses(model, val_data, _subsets(own.n_head)), own.n_head))

    def work(program, losses, n_head):
        def loss_of(heads):
            on = tuple(sorted({int(h) for h in heads}))
            if on not in losses:
                raise ValueError(f"there are no heads {on} among {n_head}")
            return losses[on]

        got = program(loss_of, n_head)
        try:
            (a, b), extra = got
            return tuple(sorted((int(a), int(b)))), round(float(extra), 4)
        except (TypeError, ValueError):
            return got

    rises = "rise(a, b) - rise(a) - rise(b)"
    wrong = {
        "You drop the sign: an extra cost far below zero is not a large one.": (
            "key=extra.get → key=lambda pair: abs(extra[pair])"
        ),
        "You drop the sign: an extra cost below zero is not a positive one.": (
            f"{rises} → abs({rises})"
        ),
        "This pair costs most together; two heads that matter much by themselves do "
        "that too. Subtract what they cost separately.": f"{rises} → rise(a, b)",
        "You compare with the larger of the two rises instead of their sum.": (
            f"{rises} → rise(a, b) - max(rise(a), rise(b))"
        ),
        "Your sign is the wrong way round: joint rise minus single rises.": (
            f"{rises} → rise(a) + rise(b) - rise(a, b)"
        ),
        "Where every extra cost is negative, you find no pair.": (
            Sign(lambda got, expected, *_: expected[1] < 0 and not got[1])
        ),
    }
    hint = "extra = rise without both - (rise without a + rise without b)."
    solution = Solution("04.6")
    how = {"work": work, "parts": ("pair", "extra"), "hint": hint}
    compare(stand_ins, solution, cases, wrong, **how)
    (a, b), extra = work(solution, *cases[-1])
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
        agree = same(second(x), out)
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
    heads = [m for m in first.modules() if isinstance(m, Head)]
    if not agree:
        some = f" Of {n_head} heads torch knows only {len(heads)}." if heads else ""
        raise Explained(
            "The bug is still there: a fresh copy that loads the saved weights gives "
            f"other outputs than the original.{some}",
            "An attribute keeps one module; torch.nn has containers." * bool(some),
        )
    widths = {tuple(head.query.weight.shape) for head in heads}
    wanted = (n_embd // n_head, n_embd)
    in_turn = any(isinstance(m, nn.Sequential) for m in first.modules())
    if len(heads) != n_head or widths != {wanted}:
        shapes = ", ".join(map(str, sorted(widths))) or "none"
        raise Explained(
            f"The copies agree, but Heads({n_embd}, {n_head}) has {len(heads)} "
            f"different head{'s' * (len(heads) != 1)} with queries of {shapes}; there "
            f"should be {n_head} of {wanted}.",
            "nn.Sequential runs modules one after the other; heads stand side by side."
            if in_turn
            else "Change only what keeps the heads; each place needs a new Head.",
        )
    proj = getattr(first, "proj", None)
    if not isinstance(proj, nn.Linear):
        raise Explained("The copies agree, but the projection is gone.")
    if not same(out, proj(torch.cat([head(x) for head in heads], dim=-1))):
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

    def work(program, x, qkv, proj, n_head):
        layer = program(x.shape[-1], n_head)
        layer.qkv.load_state_dict(qkv.state_dict())
        layer.proj.load_state_dict(proj.state_dict())
        return layer(x)

    joined, split = "out.transpose(1, 2).reshape", "self.qkv(x).view(shape)"

    def among_heads(x, qkv, proj, n):
        q, k, v = qkv(x).unflatten(-1, (3, n, -1)).unbind(2)  # (B, T, n, head_size)
        return proj(attention(q, k, v)[0].flatten(2))

    memory = "A reshape keeps the numbers in memory order."
    wrong = {
        "The bug is still there: nobody can foresee dice, yet the model is better "
        "than chance. It knows throws that are still to come.": (
            f"{joined} → out.reshape",
            "Which shape has `out`, and what does the last line make of it?",
        ),
        "No more leak, but the channels of the heads are interleaved: a saved model "
        "would give other results.": f"{joined} → out.permute(0, 2, 3, 1).reshape",
        "You exchange time and head_size; a row still holds several positions.": (
            f"{joined} → out.transpose(2, 3).reshape"
        ),
        "You exchange batch and heads: the texts of a batch are mixed.": (
            f"{joined} → out.transpose(0, 1).reshape"
        ),
        "Each head gets the mean of all heads; they belong side by side.": (
            f"{joined} → out.mean(1, True).expand_as(out).transpose(1, 2).reshape"
        ),
        "No more leak, but no attention either: at each position heads look at heads, "
        "and no position sees another one.": among_heads,
        f"{memory} Now queries, keys and values are mixed up.": (
            f"{split} → self.qkv(x).view(3, B, self.n_head, T, -1)",
            "qkv.permute(2, 0, 3, 1, 4) → qkv",
        ),
        f"{memory} Now time and heads are mixed up in q, k and v; they were right "
        "before.": (
            f"{split} → self.qkv(x).chunk(3, dim=-1)",
            "qkv.permute(2, 0, 3, 1, 4) → "
            "[z.reshape(B, self.n_head, T, -1) for z in qkv]",
        ),
        **ATTENTION,
    }
    hint = "Which shape has `out`, and what does the last line make of it?"
    compare(DiceHeads, Opened("04.8"), cases, wrong, work=work, hint=hint)
    return (
        "3 sizes; the heads stand side by side, no position sees the future, no text "
        "another one."
    )
