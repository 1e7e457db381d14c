"""Checks for notebook 06: the recipe of a training, sampling, and honest judging."""

import math
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
    mistakes,
    same,
)
from minigpt.generation import keep_likeliest
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import check_length
from minigpt.optimizer import learning_rate_at
from minigpt.training import TrainConfig


def _start(numbers):
    """The first ten of many ids, to be read in a sentence."""
    return " ".join(map(str, numbers[:10])) + " …" * (len(numbers) > 10)


# 06.1

_WEIGHTS = {  # name -> shape
    "lm_head.bias": (65,),
    "body.0.norm1.weight": (24,),
    "body.2.weight": (24,),  # the last LayerNorm: its name does not say so
    "attention.scale": (),
    "body.0.attention.proj.weight": (24, 24),
    "token_embedding.weight": (65, 24),
    "convolution.weight": (24, 8, 3),
}
DECAYS = {
    "You let weights with exactly two dimensions decay. A convolution's has three, "
    "and it multiplies inputs just the same.": (
        lambda name, p: p.dim() == 2,
        "Two *or more*.",
    ),
    "Your rule spares the embeddings. They are matrices, and decay too.": (
        lambda name, p: p.dim() >= 2 and "embedding" not in name,
        "A number of dimensions is a fact, a name only a habit: ask p.dim().",
    ),
    "You go by the names, and the last LayerNorm slips through: in the GPT it is "
    "called body.2.weight.": (
        lambda name, p: "norm" not in name and "bias" not in name
    ),
    "Biases are spared, but LayerNorm's scales decay: they are called `weight`, "
    "and should stay near 1.": (lambda name, p: "bias" not in name),
    "One dimension is enough for your rule, so biases and LayerNorm's scales "
    "shrink too.": (
        lambda name, p: p.dim() >= 1,
        "The border lies between one dimension and two.",
    ),
    "Everything decays, biases and LayerNorm's scales too.": (
        lambda name, p: True,
        "Biases and scales are vectors, with p.dim() == 1.",
    ),
}


@exercise("06.1 What may decay?")
def check_decays(decays):
    """decays(name, p) -> True for weights with two dimensions or more."""

    def answer(name, p):
        out = decays(name, p)
        return bool(out) if attempted(out) else out

    def right(name, p):
        return p.dim() >= 2

    cases = [(name, torch.ones(shape)) for name, shape in _WEIGHTS.items()]
    if all(call(answer, *case) != right(*case) for case in cases):
        raise Explained(
            "It is the wrong way round: you spare the matrices, and vectors decay.",
            "True means: this one decays.",
        )
    compare(answer, right, cases, mistakes("Ask p.dim(), not the name.", DECAYS))
    return "7 weights of 0 to 3 dimensions, whatever they are called"


# 06.2


def _half_cosine(done, low=0.1, angle=math.pi):
    return low + (1 - low) * 0.5 * (1 + math.cos(angle * done))


def _rate(step, steps, warmup, peak, up=None, done=None, down=_half_cosine):
    """The schedule, with a mistake in the warm-up, in what is done, or the shape."""
    if step < warmup:
        return peak * (up(step, warmup) if up else (step + 1) / warmup)
    if done:
        return peak * down(done(step, steps, warmup))
    return peak * down((step - warmup) / (steps - warmup))


RATES = {
    "Your warm-up is one step late: it begins at 0, so the first step learns "
    "nothing.": (
        partial(_rate, up=lambda step, warmup: step / warmup),
        "Step 0 is the first of `warmup` steps: it gets peak / warmup.",
    ),
    "Your warm-up divides by warmup + 1, so its last step stays below the peak.": (
        partial(_rate, up=lambda step, warmup: (step + 1) / (warmup + 1)),
        "(step + 1) / warmup is 1 at the last step of the warm-up.",
    ),
    "Your cosine counts the warm-up as done, so the rate jumps down when the "
    "warm-up ends.": (
        partial(_rate, done=lambda step, steps, warmup: step / steps),
        "`done` is 0 where step equals warmup.",
    ),
    "There is no warm-up: your cosine begins at step 0.": (
        lambda step, steps, warmup, peak: peak * _half_cosine(step / steps)
    ),
    "The warm-up is missing: your first steps take the full rate.": partial(
        _rate, up=lambda step, warmup: 1.0
    ),
    "Your cosine rises: after the warm-up the rate begins low and ends at the peak.": (
        partial(_rate, down=lambda done: 1.1 - _half_cosine(done)),
        "0.5 * (1 + cosine), with a plus: from 1 down to 0.",
    ),
    "Yours is a whole wave: the rate falls and comes back up to the peak.": (
        partial(_rate, down=partial(_half_cosine, angle=2 * math.pi)),
        "Half a cosine: math.pi, not 2 * math.pi.",
    ),
    "Your rate falls to 0. It shall end at a tenth of the peak.": (
        partial(_rate, down=partial(_half_cosine, low=0.0)),
        "Only nine tenths of the peak may fall: 0.1 + 0.9 * cosine.",
    ),
    "You add the tenth to the whole cosine: after the warm-up the rate jumps to "
    "1.1 times the peak.": (
        partial(_rate, down=lambda done: 0.1 + _half_cosine(done, low=0.0)),
        "Only nine tenths may fall: 0.1 + 0.9 * cosine.",
    ),
    "Your rate falls along a straight line, not along a cosine.": (
        partial(_rate, down=lambda done: 1 - 0.9 * done),
        "`done` goes from 0 to 1, the angle from 0 to math.pi, the cosine from 1 to "
        "-1.",
    ),
    "Your cosine never gets to its end: `done` stops short of 1.": (
        partial(_rate, done=lambda step, steps, warmup: (step - warmup) / steps),
        "After the warm-up, only steps - warmup steps are left.",
    ),
}


@exercise("06.2 A gentle start, a soft landing")
def check_rate(rate):
    """rate(step, steps, warmup, peak) -> warm-up, then half a cosine to peak / 10."""

    def right(step, steps, warmup, peak):
        plan = TrainConfig(steps, 1, 1, peak, warmup, final_fraction=0.1)
        return learning_rate_at(step, plan)

    plans = [(10, 4, 1.0), (7, 1, 2.0), (6, 0, 1.0), (50, 20, 3e-3)]
    cases = [(step, *plan) for plan in plans for step in range(plan[0])]
    known = mistakes(
        "While step is less than warmup, a part of the peak: (step + 1) / warmup.",
        RATES,
    )
    compare(rate, right, cases, known, atol=1e-7)
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


def _weights_after(train_step, losses):
    """run(x, y, max_norm): the weights after one SGD step for each row of x, y."""

    def run(x, y, max_norm):
        model = _Line()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        for xb, yb in zip(x, y):
            losses.append(train_step(model, optimizer, xb, yb, max_norm))
        weights = torch.cat([model.w, model.b]).detach()
        untouched = not attempted(losses[-1]) and not weights.any()
        return None if untouched else weights

    return run


def _length(grads):
    return sum((g**2).sum() for g in grads) ** 0.5


def _clip_all(parameters, max_norm, measure=_length, always=False):
    """One factor for all gradients, from a length that may be a mistaken one."""
    length = measure([p.grad for p in parameters])
    for p in parameters:
        p.grad *= max_norm / length if always or length > max_norm else 1.0


def _clip_each(parameters, max_norm):
    for p in parameters:
        nn.utils.clip_grad_norm_([p], max_norm)


def _step(model, optimizer, x, y, max_norm, clip=_clip_all, zero=True, move=True):
    """A training step, with mistakes to choose."""
    loss = model(x, y)[1]
    if zero:
        optimizer.zero_grad()
    loss.backward()
    clip(list(model.parameters()), max_norm)
    if move:
        optimizer.step()
    return loss.item()


def _stepped(clip=_clip_all, **wrong):
    return _weights_after(partial(_step, clip=clip, **wrong), [])


STEPS = {
    "The weights do not move at all: the gradient is wiped out before it is used, "
    "or the optimizer never steps.": (
        _stepped(move=False),
        "zero_grad, backward, clip, step.",
    ),
    "A first step is right, a second is not: old gradients are still there, and "
    "backward() adds to what it finds.": (
        _stepped(zero=False),
        "Begin with optimizer.zero_grad().",
    ),
    "The gradient is not clipped when the optimizer steps: clipping is missing, or "
    "comes too late.": (
        _stepped(lambda parameters, max_norm: None),
        "Clip between backward() and step().",
    ),
    "You clip each number on its own. That bends the gradient into another "
    "direction.": (
        _stepped(lambda ps, max_norm: nn.utils.clip_grad_value_(ps, max_norm)),
        "Multiply all gradients by the same factor.",
    ),
    "You clip each parameter on its own: w and b shrink by different factors, and "
    "the direction changes.": (
        _stepped(_clip_each),
        "One length: add up the squares of all parameters, then take the root.",
    ),
    "You scale short gradients, too: each becomes max_norm long.": (
        _stepped(partial(_clip_all, always=True)),
        "Scale only if the length is greater than max_norm.",
    ),
    "You take the squared length: the root is missing.": _stepped(
        partial(_clip_all, measure=lambda gs: _length(gs) ** 2)
    ),
    "You add up the parameters' lengths. Lengths do not add, their squares do "
    "(Pythagoras).": (
        _stepped(partial(_clip_all, measure=lambda gs: sum(map(torch.norm, gs)))),
        "Sum all squares first, take the root at the end.",
    ),
    "You add up absolute values; the length is the root of the sum of "
    "squares.": _stepped(
        partial(_clip_all, measure=lambda gs: sum(g.abs().sum() for g in gs))
    ),
}


@exercise("06.3 One step, clipped by hand")
def check_train_step(train_step):
    """train_step(model, optimizer, x, y, max_norm) -> the loss before the step."""
    rng = torch.Generator().manual_seed(3)
    one, two = torch.tensor([[[2.0, 2.0]]]), torch.tensor([[[2.0, 2.0]], [[1.0, -3.0]]])
    many = torch.randn(4, 3, 2, generator=rng), torch.randn(4, 3, generator=rng)
    cases = [
        (one, torch.tensor([[15.0]]), 1.0),
        (one, torch.tensor([[0.1]]), 1.0),  # too short to be clipped
        (two, torch.tensor([[15.0], [4.0]]), 2.0),
        (*many, 0.5),
    ]
    losses = []
    known = mistakes("length = (sum of all squares) ** 0.5", STEPS)
    try:
        compare(_weights_after(train_step, losses), _stepped(), cases, known)
    except Explained as problem:
        if "NoneType" not in problem.args[0]:
            raise
        raise Explained(
            "You look at gradients that are not there yet: p.grad is None before "
            "loss.backward().",
            "zero_grad, backward, clip, step.",
        ) from None
    first = as_tensor(losses[0]) if attempted(losses[0]) else None
    if first is None or first.numel() != 1:
        raise Explained("The step is right, but the loss is not returned as a number.")
    if abs(first.item() - 225.0) > 1e-3:
        raise Explained(
            f"The step is right, but the loss returned is {first.item():.4g}, and the "
            "model's loss was 225 before the step.",
            "Return the loss that you called backward() on.",
        )
    return "4 runs of 1 to 4 steps: fresh gradients, one length for all, direction kept"


# 06.4


class _Counts(nn.Module):
    """Logits that can be checked on paper: how often each id occurred so far."""

    def __init__(self, block_size, vocab_size=4):
        super().__init__()
        self.block_size, self.vocab_size, self.longest = block_size, vocab_size, 0

    def forward(self, idx, targets=None):
        self.longest = max(self.longest, idx.shape[1])
        check_length(idx.shape[1], self.block_size)
        so_far = F.one_hot(idx, self.vocab_size).cumsum(1)  # (B, T, vocab_size)
        return so_far + 0.3 * torch.arange(self.vocab_size), None


def _next_probs(idx, size, temperature, top_k, crop=None, place=None, end=None):
    """A step of generation, with a mistake in the window, the position or the end."""
    logits = _Counts(size)(crop(idx, size) if crop else idx[:, -size:])[0]
    logits = place(logits) if place else logits[:, -1]
    if end:
        return end(logits, temperature if top_k is None else top_k)
    return F.softmax(keep_likeliest(logits / temperature, top_k), dim=-1)


def _kept(logits, kept, fill=float("-inf")):
    return F.softmax(logits.masked_fill(~kept, fill), dim=-1)


def _kth(logits, k):
    """The k-th largest of each row, (B, 1)."""
    return logits.topk(k, dim=-1).values[:, -1:]


def _end(end):
    return partial(_next_probs, end=end)


WINDOWS = {
    "You keep the first block_size tokens: the model never sees how the text goes "
    "on.": (
        partial(_next_probs, crop=lambda idx, size: idx[:, :size]),
        "Count from the end: idx[:, -block_size:].",
    ),
    "The model sees block_size - 1 tokens only.": (
        partial(_next_probs, crop=lambda idx, size: idx[:, 1 - size :]),
        "idx[:, -block_size:] keeps exactly block_size.",
    ),
    "You read the first position. It has seen one token, and predicts what follows "
    "that one.": (
        partial(_next_probs, place=lambda logits: logits[:, 0]),
        "The last position has seen all: logits[:, -1].",
    ),
    "You take the last row of the batch, not the last position.": (
        partial(_next_probs, place=lambda logits: logits[-1]),
        "Dimension 0 is the batch: logits[:, -1] leaves it alone.",
    ),
    "You give probabilities for every position; asked is the last one.": (
        partial(_next_probs, place=lambda logits: logits),
        "logits[:, -1]: (B, T, vocab_size) -> (B, vocab_size).",
    ),
    "Your rows are logits: they do not sum to one.": (
        _end(lambda logits, _: logits),
        "Softmax at the end.",
    ),
    "Your softmax runs down the batch: columns sum to one, rows do not.": (
        _end(lambda logits, _: F.softmax(logits, dim=0)),
        "dim=-1 is the vocabulary.",
    ),
}
TEMPERATURES = {
    "The temperature changes nothing in your program.": (
        _end(lambda logits, t: F.softmax(logits, -1)),
        "Divide the logits by it, before the softmax.",
    ),
    "You multiply by the temperature: 0.5 makes yours bolder, where it should make "
    "it more careful.": (
        _end(lambda logits, t: F.softmax(logits * t, -1)),
        "Divide the logits by it.",
    ),
    "You divide the probabilities, so they no longer sum to one.": (
        _end(lambda logits, t: F.softmax(logits, -1) / t),
        "Temperature comes before the softmax: it divides the logits.",
    ),
    "You raise the probabilities to the power 1 / temperature. That is right only "
    "if they are scaled to sum to one again.": (
        _end(lambda logits, t: F.softmax(logits, -1) ** (1 / t)),
        "Dividing the logits before the softmax does both at once.",
    ),
}
TOP_K = {
    "top_k changes nothing in your program.": (
        _end(lambda lo, k: F.softmax(lo, -1)),
        "logits.topk(top_k).values[:, -1:] is the smallest logit to keep.",
    ),
    "You keep the k unlikeliest: the wrong side.": (
        _end(lambda lo, k: _kept(lo, lo <= -_kth(-lo, k))),
        "Mask what is *smaller* than the k-th largest.",
    ),
    "You keep one too few: the k-th largest itself is thrown away.": (
        _end(lambda lo, k: _kept(lo, lo > _kth(lo, k))),
        "Mask what is < the k-th largest, not what is <= it.",
    ),
    "You keep one too many: k + 1 stay.": (
        _end(lambda lo, k: _kept(lo, lo >= _kth(lo, k + 1))),
        "Sorted downwards, the k-th largest is at index k - 1.",
    ),
    "What you throw away gets the logit 0, and e⁰ is 1: it may still be drawn.": (
        _end(lambda lo, k: _kept(lo, lo >= _kth(lo, k), fill=0.0)),
        'Fill with float("-inf"); its softmax is 0.',
    ),
    "You cut after the softmax and leave it so: the rows sum to less than one.": (
        _end(lambda lo, k: F.softmax(lo, -1) * (lo >= _kth(lo, k))),
        "Mask the logits before the softmax (or divide by the new sum).",
    ),
    "You give only k numbers a row. Whose are they? Keep vocab_size places.": (
        _end(lambda lo, k: F.softmax(lo.topk(k, -1).values, -1)),
        'Fill the logits of the others with float("-inf").',
    ),
    "All rows are cut at the first row's threshold.": (
        _end(lambda lo, k: _kept(lo, lo >= _kth(lo, k)[0])),
        "Keep a column for the threshold, (B, 1): values[:, -1:].",
    ),
}


@exercise("06.4 What comes next?")
def check_next_probs(next_probs):
    """next_probs(model, idx, block_size, temperature, top_k) -> (B, vocab_size)."""
    short, longer = torch.tensor([[0, 1, 1]]), torch.tensor([[3, 3, 0, 1, 0]])
    batch = torch.tensor([[0, 1, 1, 2, 1], [3, 3, 3, 1, 0], [2, 0, 2, 2, 2]])
    shapes = [(short, 3), (longer, 3), (batch, 4), (batch, 8)]
    models = []

    def run(idx, block_size, temperature, top_k):
        models.append(_Counts(block_size))
        return next_probs(models[-1], idx, block_size, temperature, top_k)

    parts = [  # one after the other, so that two mistakes are told one at a time
        (mistakes("", WINDOWS), [(1.0, None)]),
        (mistakes("", TEMPERATURES), [(0.5, None), (2.0, None)]),
        (mistakes("", TOP_K), [(1.0, 2), (1.0, 3)]),
        ((), [(0.5, 2), (1.0, 1), (2.0, 4)]),
    ]
    for known, knobs in parts:
        cases = [(*shape, *knob) for knob in knobs for shape in shapes]
        try:
            compare(run, _next_probs, cases, known)
        except Explained:
            if all(model.longest <= model.block_size for model in models):
                raise
            raise Explained(
                f"You feed the model {models[-1].longest} tokens, but its block_size "
                f"is {models[-1].block_size}: it has no embeddings for further "
                "positions.",
                "Keep the last block_size tokens: idx[:, -block_size:].",
            ) from None
    return "short and long texts, 8 settings; rows sum to one"


# 06.5


def _sums(probs, dim=-1, descending=True):
    return probs.sort(dim=-1, descending=descending).values.cumsum(dim)


def _nucleus(probs, p, sums=_sums, extra=1):
    return (sums(probs) < p).sum(dim=-1) + extra


def _drops(got, expected, probs, p):
    """Is the character that crosses p left out, also where p is reached exactly?"""
    return same(got, expected - 1) or same(got, (_sums(probs) <= p).sum(dim=-1))


NUCLEI = {
    "You drop the character that crosses p: what stays sums to less than p.": (
        Sign(_drops),
        "Count it too: one more than those whose sum stays below p.",
    ),
    "You keep one too many where the sum is exactly p.": (
        lambda probs, p: (_sums(probs) <= p).sum(dim=-1) + 1,
        "p is reached there: count the sums < p, not <= p, and add one.",
    ),
    "You add up in the order of the ids, not beginning with the likeliest.": (
        partial(_nucleus, sums=lambda probs: probs.cumsum(-1)),
        "Sort each row first: probs.sort(dim=-1, descending=True).values.",
    ),
    "You begin with the unlikeliest: sort goes upwards unless you say so.": (
        partial(_nucleus, sums=partial(_sums, descending=False)),
        "probs.sort(dim=-1, descending=True)",
    ),
    "You add up down the columns: one position's sum goes on in the next.": (
        partial(_nucleus, sums=partial(_sums, dim=0)),
        "Each position has its own sum: cumsum(dim=-1).",
    ),
    "You compare single probabilities with p. It is their sum that must reach p.": (
        lambda probs, p: (probs >= p).sum(dim=-1),
        "cumsum gives the sums of the first, the first two, and so on.",
    ),
    "You count over all positions together: one number for the whole text.": (
        lambda probs, p: _nucleus(probs, p).sum(),
        "Sum over the last dimension only: .sum(dim=-1).",
    ),
    "You give the sum that is reached, not how many it takes.": (
        lambda probs, p: (
            _sums(probs).gather(-1, _nucleus(probs, p, extra=0)[:, None]).squeeze(-1)
        ),
        "Compare the sums with p first, then count the True with .sum(dim=-1).",
    ),
    "You say which characters stay; asked is how many.": (
        Sign(lambda got, _, probs, p: as_tensor(got).shape == probs.shape),
        "Count the True: .sum(dim=-1).",
    ),
}


@exercise("06.5 Where does your GPT hesitate?")
def check_nucleus_size(nucleus_size, probs):
    """nucleus_size(probs (T, vocab_size), p) -> (T,), also of the learner's model."""
    four = torch.tensor([0.5, 0.25, 0.1875, 0.0625])
    mixed = torch.stack([four[[1, 0, 3, 2]], four[[3, 2, 1, 0]]])
    rng = torch.Generator().manual_seed(5)
    rows = F.softmax(2 * torch.randn(6, 11, generator=rng), dim=-1)
    cases = [(four[None], p) for p in (0.4, 0.7, 0.75, 0.9)]
    cases += [(mixed, 0.6), (mixed, 0.95), (rows, 0.5), (rows, 0.9), (rows, 0.99)]
    compare(nucleus_size, _nucleus, [*cases, (probs, 0.9)], mistakes("", NUCLEI))
    fewest, most = _nucleus(probs, 0.9).aminmax()
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


@torch.no_grad()
def _judged(model, data, spots, n, first=None, ahead=0, place=-1, finish=torch.mean):
    """Loss at `spots` from the n ids before each, with mistakes to choose."""
    steps = torch.arange(n) + (-n if first is None else first)
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    losses = []
    for some in spots.split(128):
        logits = model(data[some[:, None] + steps].to(device))[0]  # (S, n, vocab_size)
        y = data[some + ahead].to(device)
        losses.append(F.cross_entropy(logits[:, place], y, reduction="none").cpu())
    model.train(was_training)
    return finish(torch.cat(losses))


def _known_losses(toy):
    judged = partial(_judged, toy)

    @torch.no_grad()
    def everywhere(data, spots, n):
        x = data[spots[:, None] + torch.arange(-n, 1)].to(toy.lm_head.weight.device)
        toy.eval()
        return toy(x[:, :-1], x[:, 1:])[1]

    def unweighted(got, _, *inputs):
        """Is `got` the mean of the means of batches, whatever their size?"""
        losses, got = judged(*inputs, finish=torch.clone), as_tensor(got)
        for size in range(2, len(losses)):
            means = torch.stack([part.mean() for part in losses.split(size)])
            if abs(means.mean() - got) < 2e-6:
                return True
        return False

    return mistakes(
        "The n ids before spot s are s - n, …, s - 1: arange(-n, 0).",
        {
            "Your window includes the very character that it shall predict.": (
                lambda data, spots, n: judged(data, spots, n, first=1 - n)
            ),
            "Your window ends one too early: the character just before the spot is "
            "missing.": (lambda data, spots, n: judged(data, spots, n, first=-n - 1)),
            "The target is one too far: you predict what follows the spot.": (
                partial(_judged, toy, ahead=1),
                "The target is data[spots].",
            ),
            "You take the mean over all positions of the window. The earlier ones have "
            "seen less than n characters.": (
                everywhere,
                "The last has seen all n: logits[:, -1].",
            ),
            "You read the first position, which has seen one character.": (
                partial(_judged, toy, place=0),
                "The last position has seen all n: logits[:, -1].",
            ),
            "Your model always sees block_size characters, whatever n is.": (
                lambda data, spots, n: judged(data, spots, toy.block_size),
                "The window is n long: arange(-n, 0).",
            ),
            "Your model sees n + 1 characters.": (
                lambda data, spots, n: judged(data, spots, n + 1),
                "arange(-n, 0) has n members.",
            ),
            "You add the losses up: twice the spots would give twice the loss.": (
                partial(_judged, toy, finish=torch.sum),
                "The mean over the spots.",
            ),
            "Yours is in bits: you took the logarithm to base 2.": (
                lambda *inputs: judged(*inputs) / math.log(2),
                "Nats: the natural logarithm, which F.cross_entropy takes.",
            ),
            "You return the perplexity, e to the loss.": (
                lambda *inputs: judged(*inputs).exp(),
                "Leave out the exp.",
            ),
            "You return one loss for each spot; asked is one number.": (
                partial(_judged, toy, finish=torch.clone),
                "Take their mean.",
            ),
            "You average the batches' means, but the last batch is shorter: its "
            "characters "
            "weigh more than the others.": (
                Sign(unweighted),
                "Add up loss * len(batch), then divide by len(spots).",
            ),
        },
    )


@exercise("06.6 How much of the past does it use?")
def check_past(loss_with_past, losses, enough, model, spots, train_data, val_data):
    """The learner's measure, its results on `val_data`, and the conclusion."""
    toy = _toy_gpt(next(model.parameters()).device)
    rng = torch.Generator().manual_seed(6)
    data = torch.randint(11, (420,), generator=rng)
    cases = [
        (data[:14], torch.tensor([9, 12]), 2),
        (data, torch.randint(10, 400, (23,), generator=rng), 7),
        (data, torch.arange(10, 399), 3),  # 389 spots, a prime: no batch size fits
    ]

    def run(data, spots, n):
        toy.train()
        toy.modes.clear()
        return loss_with_past(toy, data, spots, n)

    try:
        compare(run, partial(_judged, toy), cases, _known_losses(toy), atol=1e-4)
    except Explained:
        if True not in toy.modes:
            raise
        raise Explained(
            "You judge a model in training mode: dropout blanks out half of what "
            "this one knows, and each call gives another loss.",
            "model.eval() before you judge: the check hands you a model in "
            "training mode.",
        ) from None
    _check_evidence(losses, model, spots, train_data, val_data)
    _check_enough(enough, {n: float(loss) for n, loss in losses.items()})
    return (
        "the n ids before each spot, eval mode, all spots weigh the same; your losses "
        f"are the validation split's, and {enough} follows from them"
    )


def _check_evidence(losses, model, spots, train_data, val_data):
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
            loss = _judged(model, data, spots, n).item()
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
    if same and write(torch.arange(V).expand(V, V) * 0.1, n, 1) == [V - 1] * n:
        raise Explained(
            "You always take the likeliest character now: nothing is left to chance, "
            "and all seeds write the same text.",
            "Drawing was right. What is wrong with the random numbers?",
        )
    if all(len(set(text)) == 1 for text in texts):
        raise Explained(
            f"The bug is still there: a model to which all {V} characters are equally "
            f"likely writes {_start(texts[0])}"
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
