"""Experiments of notebook 07: who learns what of the pocket play, and how far counting
gets on Tiny Shakespeare."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course import pocket
from minigpt.course.experiments import fit
from minigpt.data import train_val_split
from minigpt.gpt import GPTConfig
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


def times_seen(table: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """How often each of keys (N,) occurs in table (M,)."""
    values, counts = table.unique(return_counts=True)  # sorted
    place = torch.searchsorted(values, keys).clamp(max=len(values) - 1)
    return torch.where(values[place] == keys, counts[place], 0)


def count_nats(ids: torch.Tensor, n: int, longest: int) -> torch.Tensor:
    """Count in ids[:n] as lesson 07 does, with 20 pretended observations -> nats at
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


WIDE = {"n_layer": 1, "n_embd": 88}
LONGER = {"n_head": 8, "steps": 8000, "learning_rate": 4e-3}
LARGER = {"batch_size": 8, "steps": 3600, "learning_rate": 1e-2}
READERS = {"one block": {"n_layer": 1}, "one wide block": WIDE, "GPT": {}}
COUNTS = {"two characters": 2, "six characters": 6}
EXPERIMENTS = {
    "07-counts": {name: partial(counted, longest=n) for name, n in COUNTS.items()},
    "07-readers": fit.grid("{reader}", read, reader=READERS),
    "07-wide": {"8 heads, 8000 steps, rate 0.004": partial(read, **WIDE, **LONGER)},
    "07-floor": {"eight windows": partial(read, **LARGER)},
}
