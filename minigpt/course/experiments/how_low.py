"""Experiments of notebook 07: who learns what of the pocket play, and when; how far
counting gets on Tiny Shakespeare; and how much of what a GPT writes is copied."""

import re
from bisect import bisect_left
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.attention import Head
from minigpt.course.experiments.fit import corpus, grid
from minigpt.data import CharTokenizer, train_val_split
from minigpt.evaluation import evaluate
from minigpt.generation import generate
from minigpt.gpt import GPT, GPTConfig
from minigpt.inside.looking import capture
from minigpt.language_model import LanguageModel
from minigpt.playwright.play import POCKET, Play, write_play
from minigpt.tools.stored import load_stored
from minigpt.training import TrainConfig, train

CONTEXT, WIDTH, FRESH = 192, 64, 50
KINDS = ["agreement", "answer", "on stage", "rhyme", "repeat"]
WATCHED = 10_000  # characters that are judged again and again during a training
PIECES, LETTERS = 40, 250  # of a text, to be looked up in the training text


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
    """Nats at ids[n : n + stop], each with a past of 142 characters or more."""
    p = pocket()
    before = CONTEXT - FRESH + 1
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


def trained(model, seed, on_eval=None, **changes):
    """Train as the notebook does, or with changes of its recipe; the history."""
    p = pocket()
    recipe = TrainConfig(4000, 5, CONTEXT, 8e-3, 300, eval_batches=1, seed=seed)
    recipe = replace(recipe, **changes)
    return train(model, p.ids[: p.n], p.ids[p.n :], recipe, on_eval=on_eval)


def judged(model, seed, **options):
    """Train, then {"loss", "cold" (windows side by side), excess at each kind, ...}."""
    p, history = pocket(), trained(model, seed, **options)
    nats = surprises(model, len(p.ids) - p.n)
    return {
        "loss": nats.mean().item(),
        "cold": evaluate(model, p.ids[p.n :], CONTEXT),
        **excess(nats),
        "seconds": round(history[-1].seconds, 1),
        "parameters": sum(q.numel() for q in model.parameters()),
    }


def one_head(seed):
    """The head of notebook 03."""
    torch.manual_seed(seed)
    V = pocket().tokenizer.vocab_size
    model = LanguageModel(V, CONTEXT, WIDTH, Head(WIDTH, WIDTH))
    return judged(model, seed)


def new_gpt(seed, n_layer=2, width=WIDTH, n_head=4):
    """A GPT for the pocket play, not trained yet; as it is, that of the notebook."""
    torch.manual_seed(seed)
    V = pocket().tokenizer.vocab_size
    return GPT(GPTConfig(V, CONTEXT, n_layer, n_head, width))


def further(seed, **recipe):
    """The GPT of the notebook, trained otherwise."""
    found = judged(new_gpt(seed), seed, **recipe)
    return {name: round(value, 5) for name, value in found.items()}


def block(seed, width=WIDTH, n_head=4, **recipe):
    """A GPT of one block, and how much the head looks at the word which looks most."""
    model = new_gpt(seed, 1, width, n_head)
    found = judged(model, seed, **recipe)
    for kind in ("answer", "repeat"):
        found[f"attention, {kind}"] = copying(model, kind).max().item()
    return {name: round(value, 5) for name, value in found.items()}


def gpt(seed):
    """The GPT of the notebook, at every hundredth step; of its heads the one that looks
    most at the word in the end."""
    model = new_gpt(seed)
    by_step, scores = {}, {"answer": {}, "repeat": {}}

    def look(run):
        for kind, nats in excess(surprises(model)).items():
            by_step[f"{kind} at {run.step}"] = nats
        for kind in scores:
            scores[kind][run.step] = copying(model, kind).flatten()

    found = judged(model, seed, on_eval=look) | by_step
    for kind, each in scores.items():
        best = each[max(each)].argmax()
        found[f"attention, {kind}"] = each[max(each)][best].item()
        found |= {f"attention, {kind} at {s}": v[best].item() for s, v in each.items()}
    return {name: round(value, 5) for name, value in found.items()}


def times_seen(table, keys):
    """How often each of keys (N,) occurs in table (M,)."""
    values, counts = table.unique(return_counts=True)  # sorted
    place = torch.searchsorted(values, keys).clamp(max=len(values) - 1)
    return torch.where(values[place] == keys, counts[place], 0)


def count_nats(ids, n, longest, strength=20):
    """As the notebook's: count in ids[:n]; nats at ids[n:], a row for each length of
    the context, from 0 to `longest`."""
    V = int(ids.max()) + 1
    p = torch.full((len(ids) - n,), 1 / V, dtype=torch.float64)
    context, rows = torch.zeros_like(ids), []
    for _ in range(longest + 1):
        longer = context * V + ids  # with the character itself
        seen = times_seen(context[:n], context[n:])
        both = times_seen(longer[:n], longer[n:])
        p = (both + strength * p) / (seen + strength)
        rows.append(-p.log())
        context = F.pad(longer[:-1], (1, 0))  # one place further on
    return torch.stack(rows)


def counted(seed, longest):
    """Counting up to `longest` characters of Tiny Shakespeare, the same for every
    seed: "loss" has all the past it wants, "windows of 64" what a window shows."""
    text = corpus()
    ids, n = torch.cat([text.train, text.val]), len(text.train)
    rows = count_nats(ids, n, longest)[:, 1:]  # (longest + 1, M): the first has no past
    past = torch.arange(rows.shape[1]) % 64 + 1  # characters in sight
    shown = rows.gather(0, past.clamp(max=longest)[None])
    return {"loss": rows[-1].mean().item(), "windows of 64": shown.mean().item()}


def written(seed):
    """What the stored GPT of 06 writes at temperature 1, each piece after a line
    break: how much of it is copied."""
    model, tokenizer = load_stored("gpt")
    start = torch.tensor([tokenizer.encode("\n")] * PIECES)
    generator = torch.Generator().manual_seed(seed)
    idx = generate(model, start, LETTERS, generator=generator)[:, 1:]
    return looked_up([tokenizer.decode(ids) for ids in idx])


def shakespeare(seed):
    """The same for the validation text itself: what is usual."""
    val, decode = corpus().val, corpus().tokenizer.decode
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(val) - LETTERS, (PIECES,), generator=generator)
    return looked_up([decode(val[s : s + LETTERS]) for s in starts])


def looked_up(pieces):
    """The share of words that the training text has, and the longest stretch."""
    source = corpus().tokenizer.decode(corpus().train.tolist())
    known, words = (re.findall(r"[A-Za-z']+", t) for t in (source, "\n".join(pieces)))
    known = set(known)
    return {
        "words": sum(word in known for word in words) / len(words),
        "longest": max(len(longest_copy(piece, source)) for piece in pieces),
    }


def longest_copy(text, source):
    """The longest stretch of `text` that stands in `source`: the first, if several."""
    best = ""
    for end in range(1, len(text) + 1):
        longer = text[end - len(best) - 1 : end]
        if longer in source:
            best = longer
    return best


EXPERIMENTS = {
    "07-counts": grid("{longest} characters", counted, longest={"two": 2, "six": 6}),
    "07-readers": {
        "one head": one_head,
        "one block": block,
        "one wide block": partial(block, width=88),
        "GPT": gpt,
    },
    "07-wide": grid(
        "{n_head} heads, {steps} steps, rate {learning_rate:g}",
        partial(block, width=88),
        n_head=[8],
        steps=[8000],
        learning_rate=[4e-3],
    ),
    "07-floor": {
        "eight windows": partial(further, batch_size=8, steps=3600, learning_rate=1e-2),
    },
    "07-copied": {"GPT": written, "Shakespeare": shakespeare},
}
