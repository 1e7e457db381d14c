"""Checks for notebook 06: the recipe of a training, sampling, and honest judging."""

from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.checks.core import (
    Explained,
    Sign,
    as_tensor,
    attempted,
    call,
    compare,
    describe,
    exercise,
    same,
)
from minigpt.checks.solutions import Solution
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import check_length
from minigpt.recipe import preset


def _start(numbers):
    """The first ten of many ids, to be read in a sentence."""
    return " ".join(map(str, numbers[:10])) + " …" * (len(numbers) > 10)


def _generator(seed):
    return torch.Generator().manual_seed(seed)


# 06.1


@exercise("06.1 AdamW by hand")
def check_walk(walk):
    """walk(p, grads, lr, betas, decay, eps) -> list: p after each of AdamW's steps."""
    betas, gentle = (0.9, 0.99), (0.5, 0.75)
    cases = [
        (1.0, [2.0], 0.1, gentle, 0.0, 1e-8),
        (3.0, [0.5, -2.0, 4.0], 0.1, gentle, 0.0, 1e-8),
        (3.0, [1.0, -2.0, 1.5], 0.1, gentle, 0.5, 0.25),
        (-1.5, torch.randn(8, generator=_generator(1)).tolist(), 0.02, betas, 0.1, 0.1),
    ]
    solution = Solution("06.1")
    hint = "m and v are updated first; then m / (1 - b1**t), with t = 1 at first."
    known = {
        "The decay is added to the gradient, and goes through the averages: that is "
        "Adam. In AdamW it is decoupled: it acts on p alone.": (
            "m = b1 * m → g = g + decay * p; m = b1 * m",
            "decay * p + mean → mean",
        ),
        "The decay is not multiplied by the learning rate.": (
            "lr * (decay * p + mean → (decay * p + lr * mean"
        ),
        "That is plain gradient descent: p moves by g itself, not by m over the root "
        "of v, both corrected.": "mean / (root + eps) → g",
        "The corrected averages go on into the next step; only m and v should.": (
            "mean = m / → mean = m = m /",
            "root = (v / (1 - b2**t)) → v = v / (1 - b2**t); root = v",
        ),
    }
    compare(walk, solution, cases, known, atol=1e-7, hint=hint)
    how = (0.01, (0.9, 0.95), 0.0)
    far = [
        solution(0.0, grads, *how)[-1] / -0.01
        for grads in ([1.0] * 10, [1e-6] * 10, [1.0, -1.0] * 5, [0.0] * 9 + [1.0])
    ]
    return (
        "4 walks, as torch goes them. In ten steps of at most about lr each: "
        f"all gradients 1, {far[0]:.1f} lr; all 0.000001, {far[1]:.1f} lr; 1 and -1 in "
        f"turn, {far[2]:.1f} lr; nine times 0, then 1, {far[3]:.1f} lr in one step"
    )


# 06.2


@exercise("06.2 A gentle start, a soft landing")
def check_rate(rate):
    """rate(step, steps, warmup, peak) -> warm-up, then half a cosine to peak / 10."""
    plans = [(10, 4, 1.0), (7, 1, 2.0), (6, 0, 1.0), (50, 20, 3e-3)]
    cases = [(step, *plan) for plan in plans for step in range(plan[0])]
    solution = Solution("06.2")
    hint = "Up: peak * (step + 1) / warmup. Down: only nine tenths of the peak fall."
    done = "(step - warmup) / (steps - warmup) → step / steps"
    known = {
        "Your cosine counts the warm-up as done, so the rate jumps down when the "
        "warm-up ends.": done,
        "The warm-up is missing: your first steps take the full rate.": (
            "peak * (step + 1) / warmup → peak"
        ),
    }
    compare(rate, solution, cases, known, atol=1e-7, hint=hint)
    return f"{len(plans)} plans, each step: up to the peak, down to a tenth"


# 06.3


class _Line(nn.Module):
    """loss = mean of (x · w + b - y)²: small enough for paper."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))

    def forward(self, x, targets=None):
        out = x @ self.w + self.b  # (B, 2) -> (B,)
        return out, None if targets is None else ((out - targets) ** 2).mean()


def _trained(train_step, x, y, max_norm):
    """The weights after one SGD step for each row of x, y; what each step returned."""
    model, losses = _Line(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for xb, yb in zip(x, y):
        losses.append(train_step(model, optimizer, xb, yb, max_norm))
    weights = torch.cat([model.w, model.b]).detach()
    return weights if weights.any() or attempted(losses[-1]) else None, losses


@exercise("06.3 One step, clipped by hand")
def check_train_step(train_step):
    """train_step(model, optimizer, x, y, max_norm) -> the loss before the step."""
    one, two = torch.tensor([[[2.0, 2.0]]]), torch.tensor([[[2.0, 2.0]], [[1.0, -3.0]]])
    many = [torch.randn(4, 3, *size, generator=_generator(3)) for size in ((2,), ())]
    cases = [
        (one, torch.tensor([[15.0]]), 1.0),
        (one, torch.tensor([[0.1]]), 1.0),  # too short to be clipped
        (two, torch.tensor([[15.0], [4.0]]), 2.0),
        (*many, 0.5),
    ]

    def weights(train_step, *inputs):
        return _trained(train_step, *inputs)[0]

    solution = Solution("06.3")
    hint = "zero_grad, backward, clip, step; length = (sum of all squares) ** 0.5"
    length = "sum((g**2).sum() for g in grads) ** 0.5 → "
    known = {
        "The weights do not move at all: the gradient is wiped out before it is used, "
        "or the optimizer never steps.": "optimizer.step() → pass",
        "A first step is right, a second is not: old gradients are still there, and "
        "backward() adds to what it finds.": "optimizer.zero_grad() → pass",
        "The weights move as if nothing were clipped: it is missing, comes after "
        "step(), or makes new tensors, which the optimizer does not know. `p.grad *= "
        "…` and `p.grad = …` change the gradient; `g = g * …` gives another tensor the "
        "name g.": "g *= max_norm / length → pass",
        "You clip each number on its own. That bends the gradient into another "
        "direction.": (
            "length > max_norm → True",
            "g *= max_norm / length → g.clamp_(-max_norm, max_norm)",
        ),
        "You clip each parameter on its own: w and b shrink by different factors, and "
        "the direction changes.": (
            "length > max_norm → True",
            "g *= max_norm / length → g *= min(1.0, max_norm / g.norm())",
        ),
        "You scale the weights, not their gradients.": (
            "for g in grads: → for g in model.parameters():",
            "g *= → g.data *=",
        ),
        "You scale short gradients, too: each becomes max_norm long.": (
            "length > max_norm → True"
        ),
        "You add up the parameters' lengths. Lengths do not add, their squares do "
        "(Pythagoras).": length + "sum(g.norm() for g in grads)",
        "You add up absolute values; the length is the root of the sum of squares.": (
            length + "sum(g.abs().sum() for g in grads)"
        ),
    }
    try:
        compare(train_step, solution, cases, known, work=weights, hint=hint)
    except Explained as problem:
        if "NoneType" not in problem.args[0]:
            raise
        raise Explained(
            "You look at gradients that are not there yet: p.grad is None before "
            "loss.backward().",
            "zero_grad, backward, clip, step.",
        ) from None
    _check_loss(_trained(train_step, *cases[0])[1][0])
    return "4 runs of 1 to 4 steps: fresh gradients, one length for all, direction kept"


def _check_loss(loss):
    hint = "Return the number of the loss that you called backward() on: loss.item()."
    number = as_tensor(loss) if attempted(loss) else None
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        what = (
            "is returned as a tensor that still knows how it was computed: a thousand "
            "of them keep a thousand steps' intermediate results in memory."
        )
    elif number is None or number.numel() != 1:
        what = "is not returned as a number."
    elif abs(number.item() - 225.0) > 1e-3:
        what = f"returned is {number.item():.4g}; before the step it was 225."
    else:
        return
    raise Explained(f"The step is right, but the loss {what}", hint, share=0.75)


# 06.4


class _Counts(nn.Module):
    """Logits that can be checked on paper: how often each id occurred so far."""

    def __init__(self, block_size, vocab_size=4):
        super().__init__()
        self.block_size, self.vocab_size = block_size, vocab_size

    def forward(self, idx, targets=None):
        check_length(idx.shape[1], self.block_size)
        so_far = F.one_hot(idx, self.vocab_size).cumsum(1)  # (B, T, vocab_size)
        return so_far + 0.3 * torch.arange(self.vocab_size), None


@exercise("06.4 What comes next?")
def check_next_probs(next_probs):
    """next_probs(model, idx, block_size, temperature, top_k) -> (B, vocab_size)."""
    short, longer = torch.tensor([[0, 1, 1]]), torch.tensor([[3, 3, 0, 1, 0]])
    batch = torch.tensor([[0, 1, 1, 2, 1], [3, 3, 3, 1, 0], [2, 0, 2, 2, 2]])
    shapes = [(short, 3), (longer, 3), (batch, 4), (batch, 8)]
    solution = Solution("06.4")
    soft, cooled = "F.softmax(logits, dim=-1)", "[:, -1] / temperature → [:, -1]"
    cut = 'logits = logits.masked_fill(logits < smallest, float("-inf")) → '
    parts = [  # one after the other, so that two mistakes are told one at a time
        (
            "The last block_size tokens, idx[:, -block_size:]; then [:, -1].",
            {
                "You keep the first block_size tokens: the model never sees how the "
                "text goes on.": "-block_size: → :block_size",
                "You read the first position. It has seen one token, and predicts what "
                "follows that one.": "[0][:, -1] → [0][:, 0]",
            },
            [(1.0, None)],
        ),
        (
            "Divide the logits by the temperature, before the softmax.",
            {
                "You divide the probabilities, so they no longer sum to one.": (
                    cooled,
                    f"{soft} → {soft} / temperature",
                ),
                "You raise the probabilities to the power 1 / temperature. That is "
                "right only if they are scaled to sum to one again.": (
                    cooled,
                    f"{soft} → {soft} ** (1 / temperature)",
                ),
            },
            [(0.5, None), (2.0, None)],
        ),
        (
            "values[:, -1:] of topk is the smallest to keep; the others become -inf.",
            {
                "You keep the k unlikeliest: the wrong side.": (
                    "logits.topk(top_k, → (-logits).topk(top_k,",
                    "logits < → -logits <",
                ),
                "What you throw away gets the logit 0, and e⁰ is 1: it may still be "
                "drawn.": 'float("-inf") → 0.0',
                "You cut after the softmax and leave it so: the rows sum to less than "
                "one.": f"{cut}return {soft}.masked_fill(logits < smallest, 0.0)",
                "You give only k numbers a row. Whose are they? Keep vocab_size "
                "places.": f"{cut}logits = logits.topk(top_k).values",
            },
            [(1.0, 2), (1.0, 3)],
        ),
        ("", {}, [(0.5, 2), (1.0, 1), (2.0, 4)]),
    ]
    for done, (hint, table, knobs) in enumerate(parts):
        cases = [(_Counts(s), idx, s, *knob) for knob in knobs for idx, s in shapes]
        try:
            compare(next_probs, solution, cases, table, hint=hint)
        except Explained as problem:
            what, hint = problem.args
            if "but block_size is" in what:
                what = (
                    "You feed the model more tokens than its block_size, and it has no "
                    f"embeddings for further positions. {what}"
                )
                hint = "Keep the last block_size tokens: idx[:, -block_size:]."
            raise Explained(what, hint, share=(done + problem.share) / 4) from None
    return "short and long texts, 8 settings; rows sum to one"


# 06.5


@exercise("06.5 Where does your GPT hesitate?")
def check_nucleus_size(nucleus_size, probs):
    """nucleus_size(probs (T, vocab_size), p) -> (T,), also of the learner's model."""
    four = torch.tensor([0.5, 0.25, 0.1875, 0.0625])
    mixed = torch.stack([four[[1, 0, 3, 2]], four[[3, 2, 1, 0]]])
    rows = F.softmax(2 * torch.randn(6, 11, generator=_generator(5)), dim=-1)
    cases = [(four[None], p) for p in (0.4, 0.7, 0.75, 0.9)]
    cases += [(mixed, 0.6), (mixed, 0.95), (rows, 0.5), (rows, 0.9), (rows, 0.99)]
    solution = Solution("06.5")
    known = {
        "You drop the character that crosses p: what stays sums to less than p.": Sign(
            lambda got, right, probs, p: any(
                same(got, (right - 1).clamp(min=least)) for least in (0, 1)
            )
        ),
        "You add up in the order of the ids, not beginning with the likeliest.": Sign(
            lambda got, _, probs, p: any(
                same(got, ((probs.cumsum(-1) < p).sum(-1) + one).clamp(min=1))
                for one in (0, 1)
            )
        ),
        "You compare single probabilities with p. It is their sum that must reach p.": (
            Sign(
                lambda got, _, probs, p: any(
                    same(got, (probs >= p).sum(-1).clamp(min=least)) for least in (0, 1)
                )
            )
        ),
        "You give the sum that is reached, not how many it takes.": Sign(
            lambda got, right, probs, p: same(
                got, [row.topk(k).values.sum() for row, k in zip(probs, right)]
            )
        ),
        "You count over all rows together: one number for the whole table.": Sign(
            lambda got, *_: as_tensor(got).dim() == 0
        ),
        "You say which characters stay; asked is how many.": Sign(
            lambda got, _, probs, p: as_tensor(got).shape == probs.shape
        ),
    }
    hint = "Sort each row downwards, cumsum, count the sums below p, and add one."
    cases.append((probs, 0.9))
    compare(nucleus_size, solution, cases, known, hint=hint)
    fewest, most = solution(probs, 0.9).aminmax()
    return (
        "3 tables and your GPT's, 8 values of p; at 0.9 it leaves open between "
        f"{fewest} and {most} of {probs.shape[-1]} characters"
    )


# 06.6


def _toy_gpt(device):
    """A small GPT with strong opinions and heavy dropout, which notes its modes."""
    torch.default_generator.manual_seed(6)
    model = GPT(GPTConfig(11, 8, n_layer=1, n_head=2, n_embd=8, dropout=0.5))
    model.lm_head.weight.data.mul_(100)
    model.modes = set()
    model.register_forward_hook(lambda m, inputs, out: m.modes.add(m.training))
    return model.to(device)


@exercise("06.6 How much of the past does it use?")
def check_past(loss_with_past, losses, enough, model, spots, train_data, val_data):
    """The learner's measure, its results on `val_data`, and the conclusion."""
    device = next(model.parameters()).device
    toy, rng = _toy_gpt(device), _generator(6)
    data = torch.randint(11, (420,), generator=rng)
    cases = [
        (data[:14], torch.tensor([9, 12]), 2),
        (data, torch.randint(10, 400, (23,), generator=rng), 7),
        (data, torch.arange(10, 399), 3),  # 389 spots, a prime: no batch size fits
    ]

    def run(program, data, spots, n):
        toy.train()
        toy.modes.clear()
        loss = program(toy, data, spots, n)
        if True in toy.modes:
            raise Explained(
                "You judge a model in training mode: dropout blanks out half of what "
                "this one knows, and each call gives another loss.",
                "model.eval() before you judge: the check hands you a model in "
                "training mode.",
            )
        return loss

    given = {"device": device, "model": toy, "config": GPTConfig(11, 1, 1, 1, 2)}
    given |= {"val_data": data, "spots": torch.tensor([9])}  # for its last lines
    solution = Solution("06.6", "loss_with_past", **given)

    @torch.no_grad()
    def everywhere(data, spots, n):
        x = data[spots[:, None] + torch.arange(-n, 1)].to(device)
        return toy.eval()(x[:, :-1], x[:, 1:])[1]

    def unweighted(got, _, data, spots, n):
        """Is `got` the mean of the means of batches, whatever their size?"""
        each = torch.tensor(
            [run(solution, data, spots[[i]], n) for i in range(len(spots))]
        )
        for size in range(2, len(each)):
            means = torch.stack([part.mean() for part in each.split(size)])
            if abs(means.mean() - as_tensor(got)) < 2e-6:
                return True
        return False

    window = "torch.arange(-n, 0) → torch.arange"
    known = {
        "Your window includes the very character that it shall predict.": (
            window + "(1 - n, 1)"
        ),
        "Your model always sees block_size characters, whatever n is.": (
            window + "(-model.block_size, 0)"
        ),
        "You read the first position, which has seen one character.": (
            "[0][:, -1] → [0][:, 0]"
        ),
        "You take the mean over all positions of the window. The earlier ones have "
        "seen less than n characters.": everywhere,
        "You average the batches' means, but the last batch is shorter: its characters "
        "weigh more than the others.": Sign(unweighted),
    }
    hint = "The n ids before spot s: arange(-n, 0). The last has seen all: [:, -1]."
    compare(loss_with_past, solution, cases, known, 1e-4, work=run, hint=hint)
    _check_evidence(solution, losses, model, spots, train_data, val_data)
    _check_enough(enough, {n: float(loss) for n, loss in losses.items()})
    return (
        "the n ids before each spot, eval mode, all spots weigh the same; your losses "
        f"are the validation split's, and {enough} follows from them"
    )


def _check_evidence(judge, losses, model, spots, train_data, val_data):
    lengths = sorted(losses) if isinstance(losses, dict) else []
    if len(lengths) < 5 or lengths[0] != 1 or lengths[-1] != model.block_size:
        raise Explained(
            "Your function is right. Now the evidence: a dict {n: loss} with at least "
            f"five lengths, from 1 to {model.block_size}; yours has {lengths}.",
            "losses = {n: loss_with_past(model, …, spots, n) for n in [1, 2, 4, …]}",
        )

    def differing(data):
        """The first of two short lengths whose loss is not what `data` give."""
        for n in (lengths[0], lengths[len(lengths) // 2]):  # long ones take long
            loss = judge(model, data, spots, n)
            if abs(loss - float(losses[n])) > 3e-3:
                return n, loss
        return None

    found = differing(val_data)
    if found and not differing(train_data):
        raise Explained(
            "Your function is right, but you judged on the training split, which the "
            "model has learned from.",
            "Hand val_data to your function.",
        )
    if found:
        raise Explained(
            f"Your function is right, but with n = {found[0]} the loss at your spots "
            f"of the validation split is {found[1]:.3f}, and your evidence says "
            f"{float(losses[found[0]]):.3f}.",
            "The same model, val_data and the same spots for every n.",
        )


def _check_enough(enough, losses):
    limit = min(losses.values()) + 0.05
    within = [n for n in sorted(losses) if losses[n] < limit]
    if enough not in losses:
        raise Explained(
            f"The evidence is right. `enough` is {describe(enough)}, but it should be "
            f"one of the lengths that you tried: {sorted(losses)}.",
            "A number of characters, not a loss.",
        )
    if enough not in within:
        raise Explained(
            f"The evidence is right. But with {enough} characters the loss is still "
            f"{losses[enough] - limit + 0.05:.2f} nats above the best one: too short.",
            "Go on to longer ones until it is less than 0.05 above.",
        )
    if enough != within[0]:
        raise Explained(
            f"The evidence is right. But {enough} is more than it takes: {within[0]} "
            "is within 0.05 nats of the best, too.",
            "The smallest n with losses[n] < min(losses.values()) + 0.05.",
        )


# 06.7


class _Table(nn.Module):
    """A bigram model with a given table of logits (V, V): idx -> (B, T, V), None."""

    def __init__(self, logits, block_size=4):
        super().__init__()
        self.logits, self.block_size = logits, block_size

    def forward(self, idx, targets=None):
        check_length(idx.shape[1], self.block_size)
        return self.logits[idx], None


@exercise("06.7 The poet who goes in circles")
def check_sample(sample):
    """sample(model, idx (1, T), n, seed) -> (1, T + n), drawn from the model."""
    _check_draws(partial(_written, sample))
    return (
        "each character is drawn anew, as often as its probability says, and the seed "
        "makes it repeatable"
    )


def _written(sample, logits, n, seed, other=0):
    """The n ids that `sample` adds to the prompt [[1, 0]]."""
    torch.default_generator.manual_seed(other)  # what went before must not matter
    prompt = torch.tensor([[1, 0]])
    out = call(partial(sample, _Table(logits)), prompt, n, seed)
    if not isinstance(out, torch.Tensor) or out.shape != (1, 2 + n):
        raise Explained(
            f"A prompt of 2 and n = {n} make (1, {2 + n}), but yours is "
            f"{tuple(getattr(out, 'shape', ()))}.",
            "Return all of it, the prompt first.",
        )
    if not torch.equal(out[:, :2], prompt):
        raise Explained("The prompt is no longer at the beginning of the text.")
    return out[0, 2:].tolist()


def _check_draws(write):
    n, V, seeds = 40, 7, range(1, 7)
    texts = [write(torch.zeros(V, V), n, seed) for seed in seeds]
    same = all(text == texts[0] for text in texts)
    rising = 0.1 * torch.arange(V).expand(V, V)
    if same and [write(rising, n, 1), write(-rising, n, 1)] == [[V - 1] * n, [0] * n]:
        raise Explained(
            "You always take the likeliest character now: nothing is left to chance, "
            "and all seeds write the same text.",
            "Drawing was right. What is wrong with the random numbers?",
        )
    if all(len(set(text)) == 1 for text in texts):
        raise Explained(
            "The bug is still there"
            + ", and now all seeds write the same text" * same
            + f": a model to which all {V} characters are equally likely writes "
            f"{_start(texts[0])}"
        )
    if texts != [write(torch.zeros(V, V), n, seed, other=1) for seed in seeds]:
        raise Explained(
            "No circles any more, but the same seed writes another text at each call.",
            "The seed must start the random numbers anew, once for each text.",
        )
    if same:
        raise Explained(
            "No circles any more, but every seed writes the same text.",
            "Use the argument `seed`.",
        )
    if texts[0][1:] == texts[1][:-1]:
        raise Explained(
            "No circles any more, but seed 2 writes the text of seed 1, shifted by "
            f"one: {_start(texts[0])} and {_start(texts[1])}",
            "Here seed + step is the same number for both. One generator can give all "
            "the numbers of a text.",
        )
    counted = write(50.0 * torch.eye(5).roll(1, dims=1), 12, 3)  # 0 -> 1 -> 2 …
    if counted != [(i + 1) % 5 for i in range(12)]:
        raise Explained(
            "No circles any more, but the model is not listened to: one that is "
            f"certain of 1 2 3 4 0 1 … writes {_start(counted)}",
            "Each new character is drawn from the probabilities after the one before.",
        )
    probs = torch.tensor([0.6, 0.3, 0.1])
    drawn = torch.tensor(write(probs.log().expand(3, 3), 600, 4))
    shares = torch.bincount(drawn, minlength=3) / 600
    if (shares - probs).abs().max() > 0.1:
        raise Explained(
            "No circles any more, but the probabilities 0.6, 0.3, 0.1 lead to shares "
            f"of {', '.join(f'{share:.2f}' for share in shares)}.",
            "Leave the softmax and the drawing as they were.",
        )


# 06.8


@exercise("06.8 Too good to be true")
def check_split_windows(split_windows):
    """split_windows(ids, block_size, train_fraction) -> windows to learn and judge."""
    for N, size, fraction in [(60, 3, 0.8), (200, 8, 0.9), (331, 5, 0.7)]:
        ids = torch.arange(N)  # each id says where in the text it stands
        out = call(split_windows, ids, size, fraction)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise Explained(
                "Return two tensors: windows to learn from, and to judge on."
            )
        parts = [as_tensor(part) for part in out]
        for part in parts:
            if part is None or part.dim() != 2 or part.shape[1] != size + 1:
                got = "no tensor" if part is None else tuple(part.shape)
                raise Explained(
                    f"With block_size {size}, windows should be (n, {size + 1}), but "
                    f"one part is {got}.",
                    "block_size inputs, and one more for the last target.",
                )
        _check_windows(*parts, N, size, fraction)
    return "3 texts: no validation target was learned from, and little text is lost"


def _check_windows(learned, judged, N, size, fraction):
    if not len(learned) or not len(judged):
        raise Explained("One of the two parts is empty.", "Both need whole windows.")
    for part in (learned, judged):
        if not (part[:, 1:] - part[:, :-1] == 1).all():
            raise Explained(
                "Your windows are no longer pieces of running text: the characters "
                "themselves are shuffled.",
                "Shuffle windows, if anything, never characters.",
            )
    windows = {tuple(row) for row in learned.tolist()}
    if all(tuple(row) in windows for row in judged.tolist()):
        raise Explained(
            "You judge on windows that were learned from: that is the training loss.",
            "The second part must be text that the first does not contain.",
        )
    targets, asked = (set(part[:, 1:].flatten().tolist()) for part in (learned, judged))
    both = targets & asked
    if both and max(both) - min(both) < size and len(both) < len(asked):
        raise Explained(
            "Nearly. Around the cut, windows of both parts still overlap: of "
            f"{len(asked)} validation targets, {len(both)} were learned from.",
            "What if you cut before there are any windows?",
        )
    if both:
        raise Explained(
            "The bug is still there: a model that only learns its windows by heart, "
            "and understands nothing, still gets a splendid validation loss."
        )
    if len(asked) > len(targets) and len(targets) <= (1 - fraction) * N + size:
        raise Explained(
            "No leak any more, but the parts are exchanged: the small one comes first.",
            "Return the windows to learn from first.",
        )
    if len(targets) < 0.7 * fraction * N or len(asked) < 0.4 * (1 - fraction) * N:
        raise Explained(
            f"No leak any more, but text is lost: of {N} characters, {len(targets)} "
            f"are learned and {len(asked)} judged, with train_fraction {fraction}.",
            "Use train_fraction for the cut, and all windows of each side.",
        )


# 06.9


@exercise("06.9 One table for both ends")
def check_tie(tie):
    """tie(model) -> parameters before and after; lm_head has the embedding's weight."""
    cases = [(GPT(GPTConfig(V, 4, 1, 2, C)),) for V, C in ((5, 4), (11, 6))]
    solution = Solution("06.9")

    def work(tie, model):
        biases = [id(p) for name, p in model.named_parameters() if "bias" in name]
        found = tie(model)
        head, table = model.lm_head, model.token_embedding.weight
        before, after = found if isinstance(found, (tuple, list)) else (found, None)
        one = head.weight is table and isinstance(head, nn.Linear)
        kept = id(getattr(head, "bias", None)) in biases
        if found is not None:
            return before, after, same(head.weight, table), one, kept

    parts = ("the count before", "the count after", "both hold the same numbers")
    known = {
        "lm_head is no longer a linear layer: an embedding looks up a row, and the "
        "head must multiply with all of them. Share the weight, not the layer.": Sign(
            lambda got, *_: not got[3] and not got[4]
        ),
        "Both hold the same numbers, but as two parameters: each has a gradient of its "
        "own, and both are counted.": Sign(lambda got, *_: got[2] and not got[3]),
        "The two numbers are exchanged: first the count before.": (
            "return before, after → return after, before"
        ),
        "The table is shared, but counted twice in the sum after: state_dict() and a "
        "sum over layers name it under both names. parameters() gives each once.": Sign(
            lambda got, right, *_: got[3] and right[0] == got[0] == got[1]
        ),
        "The table is shared, but the bias of lm_head is gone, or a new one.": Sign(
            lambda got, *_: got[3] and not got[4]
        ),
        "You count tensors; asked are the numbers in them: p.numel().": "p.numel() → 1",
        "Two numbers are wanted: the count before and the count after.": Sign(
            lambda got, *_: got[1] is None
        ),
    }
    hint = "model.lm_head.weight = model.token_embedding.weight, between two counts."
    how = {"work": work, "parts": parts, "changes": True, "hint": hint}
    compare(tie, solution, cases, known, **how)
    shares = []
    for name, config in (
        ("ours", preset("cpu", 65)[0]),
        ("the gpu preset", preset("gpu", 65)[0]),
        ("one of GPT-2's size", GPTConfig(50_257, 1024, 12, 12, 768)),
    ):
        with torch.device("meta"):  # shapes without numbers
            before, after = solution(GPT(config))
        shares.append(f"{(before - after) / before:.1%} of {name}")
    return (
        "2 GPTs: one tensor with two names, the bias kept, each weight counted once. "
        f"Tying saves {', '.join(shares)}"
    )


# 06.10


def _said(verdict, before, after):
    word = verdict(before, after)
    return word.strip().lower() if isinstance(word, str) else word


@exercise("06.10 Below 1.69: one change, three seeds, a verdict")
def check_verdict(verdict, before, after):
    """verdict(before, after) -> "better", "worse" or "tie", by the rule of the text."""
    cases = [
        ([2.0, 2.0, 2.0], [1.75, 1.5, 1.625]),  # lower at each seed, by more than...
        ([2.0, 2.0, 2.0], [2.25, 2.5, 2.375]),  # ... the differences are apart
        ([2.0, 2.5, 3.0], [1.875, 2.375, 2.875]),  # paired: better; as heaps: a tie
        ([2.0, 2.5, 3.0], [2.125, 2.625, 3.125]),
        ([2.0, 2.0, 2.0], [1.875, 1.625, 1.375]),  # all lower, but far apart: a tie
        ([2.0, 2.0, 2.0, 2.0], [2.125, 1.5, 1.5, 1.5]),
        ([2.0, 2.0, 2.0], [1.75, 1.5, 1.25]),  # mean and spread equal: a tie
        ([2.0, 2.0, 2.0], [2.25, 2.5, 2.75]),
        ([2.0, 2.0, 2.0], [1.5, 2.25, 1.75]),
        ([2.0, 2.0, 2.0], [2.5, 1.75, 2.25]),
        ([2.0, 2.25, 1.75], [1.75, 1.75, 2.0]),  # as heaps: lower; paired: a tie
        ([1.0, 2.0, 3.0], [2.5, 1.5, 0.5]),  # sorted: better; paired: a tie
        ([1.5, 1.75], [1.5, 1.75]),
        ([3.0, 2.0, 1.0, 4.0], [2.5, 1.5, 0.5, 3.375]),
    ]
    solution = Solution("06.10")
    hint = "changes = [a - b for a, b in zip(after, before)]: their mean, their spread."
    spread = "max(changes) - min(changes) → "
    known = {
        "Exactly on the border, where mean and spread are equal, it is a tie.": (
            "<= max → < max"
        ),
        "You compare two heaps. Pair them: the difference of each seed, then the mean "
        "and the spread of the differences.": (
            spread + "max(max(x) - min(x) for x in (before, after))"
        ),
        "You ask whether all seeds agree; the rule compares mean and spread.": (
            f"abs(mean) <= {spread}min(changes) <= 0 <= max(changes)"
        ),
        "Half the spread is too strict a rule here: the text takes all of it.": (
            spread + "(max(changes) - min(changes)) / 2"
        ),
        "You look at the mean only: any difference decides.": spread + "0.0",
    }
    compare(verdict, solution, cases, known, work=_said, hint=hint)
    told = f"{len(cases)} pairs of runs, ties included"
    runs = [as_tensor(losses) for losses in (before, after)]
    if any(losses is None for losses in runs) or not len(runs[1]):
        return (
            f"{told}. Now the real thing: one change, three seeds, and run this again"
        )
    if runs[0].shape != runs[1].shape or len(runs[1]) < 3:
        raise Explained(
            f"Your rule is right. But `before` has {len(runs[0])} losses and `after` "
            f"{len(runs[1])}: at least three seeds, the same for both.",
            "after = three_seeds(name=value), with one change.",
            share=0.9,
        )
    changes = runs[1] - runs[0]
    below = int((runs[1] < 1.69).sum())
    return (
        f"{told}. Your change: {changes.mean():+.3f} ± "
        f"{(changes.max() - changes.min()) / 2:.3f}, {solution(*map(list, runs))}; "
        f"{below} of {len(runs[1])} seeds below 1.69"
    )
