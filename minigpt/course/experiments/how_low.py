"""Experiments of notebook 07: who learns what of the pocket play, and how far counting
gets on Tiny Shakespeare."""

from bisect import bisect_left
from functools import cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.course.experiments import fit
from minigpt.data import CharTokenizer, train_val_split
from minigpt.gpt import GPTConfig
from minigpt.inside.looking import capture
from minigpt.playwright.play import POCKET, Play, write_play
from minigpt.training import TrainConfig, train

CONTEXT, WIDTH, FRESH = 192, 64, 50
KINDS = ["agreement", "answer", "on stage", "rhyme", "repeat"]
WATCHED = 10_000  # characters that are judged again and again during a training


class PocketPlay(NamedTuple):
    """The play, its ids (N,), where the last tenth begins, and the author's nats."""

    play: Play
    tokenizer: CharTokenizer
    ids: torch.Tensor
    n: int
    exact: torch.Tensor


@cache
def pocket():
    """The PocketPlay of the notebook."""
    play = write_play(1_000_000, lexicon=POCKET)
    tokenizer = CharTokenizer(play.text)
    ids = torch.tensor(tokenizer.encode(play.text))
    n = len(train_val_split(ids)[0])
    return PocketPlay(play, tokenizer, ids, n, torch.tensor(play.surprise))


@torch.no_grad()
def surprises(model, stop=WATCHED):
    """Nats at ids[n : n + stop], each with a past of 143 characters or more."""
    p, before = pocket(), CONTEXT - FRESH + 1
    data = p.ids[p.n - before : p.n + stop]
    windows = data.unfold(0, CONTEXT + 1, FRESH)  # (number, T + 1)
    rows = []
    for w in windows.split(128):
        logits = model(w[:, :-1])[0].transpose(1, 2)  # (B, V, T)
        rows.append(F.cross_entropy(logits, w[:, 1:], reduction="none"))
    return torch.cat(rows)[:, -FRESH:].flatten()


def excess(nats):
    """{kind: nats above the playwright for each place of that kind}."""
    p = pocket()
    extra = nats - p.exact[p.n : p.n + len(nats)]
    paid = {kind: [] for kind in KINDS}
    for start, stop, kind in p.play.spans:
        if p.n <= start and stop <= p.n + len(nats):
            paid[kind].append(extra[start - p.n : stop - p.n].sum())
    return {kind: torch.stack(found).mean().item() for kind, found in paid.items()}


@cache
def copies(kind):
    """Where a word is said again. Windows (B, T): each ends before its first letter;
    and where in the window the same word stood before (B, T): True on its letters
    and on what follows its slot (the blank, say, that ends it)."""
    p = pocket()
    starts = [start for start, _ in p.play.choices]
    text, windows, before = p.play.text, [], []
    for start, stop, what in p.play.spans:
        if what == kind and p.n <= start and stop <= p.n + WATCHED:
            said = text.rindex(text[start:stop], 0, start)
            at = bisect_left(starts, said)
            for first, last in zip(starts[at:], starts[at + 1 :]):
                if first >= said + stop - start:
                    break
                if p.exact[first] > 0:  # a word was chosen, not given
                    begin = start + first - said - CONTEXT
                    windows.append(p.ids[begin : begin + CONTEXT])
                    mask = torch.zeros(CONTEXT, dtype=torch.bool)
                    mask[first - begin : last - begin] = True
                    before.append(mask)
    return torch.stack(windows), torch.stack(before)


def copying(model, kind):
    """Attention to the earlier word, where its first letter is due: (layers, heads)."""
    windows, before = copies(kind)
    last = torch.stack([w[:, :, -1] for w in capture(model, windows).weights])
    return (last * before[:, None]).sum(dim=-1).mean(dim=1)  # (n_layer, B, n_head, T)


def reader():
    """The config and the recipe of the notebook's GPT."""
    config = GPTConfig(pocket().tokenizer.vocab_size, CONTEXT, 2, 4, WIDTH)
    return config, TrainConfig(4000, 5, CONTEXT, 8e-3, 300, eval_batches=1)


def read(seed, **changes):
    """The GPT, changed and trained: its loss, its excess at each kind, and how much the
    head looks at the word which looks most."""
    p, (model, recipe) = pocket(), fit.made(seed, reader, **changes)
    history = train(model, *train_val_split(p.ids), recipe)
    nats = surprises(model, len(p.ids) - p.n)
    found = {"loss": nats.mean().item(), **excess(nats), "seconds": history[-1].seconds}
    for kind in ("answer", "repeat"):
        found[f"attention, {kind}"] = copying(model, kind).max().item()
    return {name: round(value, 5) for name, value in found.items()}


def times_seen(table, keys):
    """How often each of keys (N,) occurs in table (M,)."""
    values, counts = table.unique(return_counts=True)  # sorted
    place = torch.searchsorted(values, keys).clamp(max=len(values) - 1)
    return torch.where(values[place] == keys, counts[place], 0)


def count_nats(ids, n, longest):
    """As the notebook's, with 20 pretended observations: count in ids[:n]; nats at
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


def counted(seed, longest):
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
