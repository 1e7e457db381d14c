"""Experiments of notebook 07: who learns what of the pocket play, how far counting gets
on Tiny Shakespeare, and what becomes of a GPT that sees its own text in the counts."""

from dataclasses import replace
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import next_token_loss
from minigpt.course import pocket
from minigpt.course.experiments import fit
from minigpt.data import get_batch, train_val_split
from minigpt.evaluation import evaluate
from minigpt.gpt import GPTConfig
from minigpt.interfaces import Model
from minigpt.tools.recipes import with_counts
from minigpt.training import TrainConfig, train

WIDTH = 64


def reader() -> tuple[GPTConfig, TrainConfig]:
    """The config and the recipe of the notebook's GPT."""
    config = GPTConfig(pocket.load().tokenizer.vocab_size, pocket.CONTEXT, 2, 4, WIDTH)
    return config, TrainConfig(4000, 5, pocket.CONTEXT, 8e-3, 300, eval_batches=1)


def read(seed: int, **changes: Any) -> dict[str, float]:
    """The GPT, changed and trained: its loss, its excess at each kind, and how much the
    head looks at the word which looks most."""
    p, (model, recipe) = pocket.load(), fit.made(seed, reader, **changes)
    history = train(model, *train_val_split(p.ids), recipe)
    nats = pocket.surprises(model, len(p.ids) - p.n)
    found = {
        "loss": nats.mean().item(),
        **pocket.excess(nats),
        "seconds": history[-1].seconds,
    }
    for kind in ("answer", "repeat"):
        found[f"attention, {kind}"] = pocket.copying(model, kind).max().item()
    return {name: round(value, 5) for name, value in found.items()}


def tally(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The different numbers of ids (M,), in order, and how often each occurs."""
    values, counts = np.unique(ids, return_counts=True)  # torch takes much longer
    return torch.from_numpy(values), torch.from_numpy(counts)


def looked_up(
    values: torch.Tensor, counts: torch.Tensor, keys: torch.Tensor
) -> torch.Tensor:
    """What belongs to each of keys (N,) in such a list, or 0 if it isn't there."""
    place = torch.searchsorted(values, keys).clamp(max=len(values) - 1)
    return torch.where(values[place] == keys, counts[place], 0)


def times_seen(table: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """How often each of keys (N,) occurs in table (M,)."""
    return looked_up(*tally(table), keys)


def count_nats(ids: torch.Tensor, n: int, longest: int) -> torch.Tensor:
    """Count in ids[:n] as lesson 07 does, with 20 pretend observations -> nats at
    ids[n:], a row for each length of the context, from 0 to `longest`."""
    V = int(ids.max()) + 1
    p = torch.full((len(ids) - n,), 1 / V, dtype=torch.float64)
    context, rows = torch.zeros_like(ids), []
    for _ in range(longest + 1):
        longer = context * V + ids  # with the character itself
        seen = times_seen(context[:n], context[n:])
        both = times_seen(longer[:n], longer[n:])
        p = (both + 20 * p) / (seen + 20)
        rows.append(-p.log())
        context = F.pad(longer[:-1], (1, 0))  # one place further on
    return torch.stack(rows)


def counted(seed: int, longest: int) -> dict[str, float]:
    """Counting up to `longest` characters of Tiny Shakespeare, the same for every
    seed: "loss" has all the past it wants, "windows of 64" what a window shows."""
    text = fit.corpus()
    ids, n = torch.cat([text.train, text.val]), len(text.train)
    rows = count_nats(ids, n, longest)[:, 1:]  # (longest + 1, M): the first has no past
    found = {"loss": rows[-1].mean().item()}
    for T in (64, 128, 256):
        past = torch.arange(rows.shape[1]) % T + 1  # characters in sight
        shown = rows.gather(0, past.clamp(max=longest)[None])
        found[f"windows of {T}"] = shown.mean().item()
    return found


class CountsAlone(nn.Module):
    """What the longest counts of a CountingGPT say: model(idx) -> logits, loss."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.counts, self.smoothing = model.counts, model.smoothing

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        logits = self.smoothing(self.counts(idx))[..., -1, :]
        return logits, next_token_loss(logits, targets)


def fitted(seed: int, learn: torch.Tensor) -> Model:
    """A new CountingGPT beside the counts of learn (N,), their discounts fitted."""
    torch.manual_seed(seed)
    model = with_counts.build(learn, fit.corpus().vocab_size)
    with_counts.fit_smoothing(model, learn, with_counts.plan_of(seed))
    return model


def kneser_ney(seed: int) -> dict[str, float]:
    """The counts of the speed run alone, judged in windows of 64, 128 and 256."""
    text = fit.corpus()
    counts = CountsAlone(fitted(seed, text.train))
    return {f"windows of {T}": evaluate(counts, text.val, T) for T in (64, 128, 256)}


def beside_counts(
    seed: int,
    train_gpt: bool = True,
    own_seen: bool = False,
    factor: float = 1.0,
    steps: int = 300,
) -> dict[str, float]:
    """A GPT beside counts after some steps, judged on the last tenth of the training
    text. own_seen: while it trains, the counts have its own text in them; factor: of
    its rates. Without train_gpt the counts alone are judged."""
    learn, judge = fit.development()
    model = fitted(seed, learn)
    if not train_gpt:
        return {"loss": evaluate(CountsAlone(model), judge, model.block_size)}
    plan = replace(with_counts.plan_of(seed), steps=steps, eval_every=steps)
    rates = {n: factor * v for n, v in vars(plan).items() if n.endswith("_rate")}
    draw = get_batch if own_seen else partial(with_counts.own_piece, model)
    train(model, learn, judge, replace(plan, **rates), draw=draw)
    model.train()
    sizes = plan.batch_size, plan.block_size
    fresh = torch.Generator().manual_seed(seed + 1000)
    with torch.no_grad():
        batches = (draw(learn, *sizes, generator=fresh) for _ in range(50))
        seen = [model(x, y)[1].item() for x, y in batches]
    return {"loss": evaluate(model, judge, model.block_size), "in training": mean(seen)}


WIDE = {"n_layer": 1, "n_embd": 88}
LONGER = {"n_head": 8, "steps": 8000, "learning_rate": 4e-3}
LARGER = {"batch_size": 8, "steps": 3600, "learning_rate": 1e-2}
READERS = {"one block": {"n_layer": 1}, "one wide block": WIDE, "GPT": {}}
COUNTS = {"two characters": 2, "six characters": 6}
OWN_SEEN = fit.grid(
    "own counts seen, rate {factor:g}",
    partial(beside_counts, own_seen=True),
    factor=[0.5, 1],
)
EXPERIMENTS = {
    "07-counts": {name: partial(counted, longest=n) for name, n in COUNTS.items()},
    "07-kneser-ney": {"Kneser-Ney": kneser_ney},
    "07-own-counts": {
        "counts alone": partial(beside_counts, train_gpt=False),
        **fit.grid("own left out, rate {factor:g}", beside_counts, factor=[0.5, 1, 2]),
        **OWN_SEEN,
    },
    "07-readers": fit.grid("{reader}", read, reader=READERS),
    "07-wide": {"8 heads, 8000 steps, rate 0.004": partial(read, **WIDE, **LONGER)},
    "07-floor": {"eight windows": partial(read, **LARGER)},
}
