"""Experiments of notebook 07: who learns what of the pocket play, and when; and how
far counting gets on Tiny Shakespeare."""

from bisect import bisect_left
from functools import cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.attention import Head
from minigpt.course.experiments.fit import corpus
from minigpt.data import CharTokenizer, train_val_split
from minigpt.evaluation import evaluate
from minigpt.gpt import GPT, GPTConfig
from minigpt.inside.looking import capture
from minigpt.language_model import LanguageModel
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


def trained(model, seed, steps=4000, rate=8e-3, on_eval=None):
    """Train as the notebook does; the history."""
    torch.set_num_threads(1)
    p = pocket()
    recipe = TrainConfig(steps, 5, CONTEXT, rate, 300, eval_batches=1, seed=seed)
    return train(model, p.ids[: p.n], p.ids[p.n :], recipe, on_eval=on_eval)


def judged(model, history):
    """{"loss", "cold" (in windows side by side), the excess at each kind, ...}."""
    p = pocket()
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
    return judged(model, trained(model, seed))


def new_gpt(seed, n_layer=2, width=WIDTH, n_head=4):
    """A GPT for the pocket play, not trained yet; as it is, that of the notebook."""
    torch.manual_seed(seed)
    V = pocket().tokenizer.vocab_size
    return GPT(GPTConfig(V, CONTEXT, n_layer, n_head, width))


def gpt(seed, n_layer=2, width=WIDTH):
    """A GPT, and how much that head looks at the word which looks most in the end."""
    model = new_gpt(seed, n_layer, width)
    by_step, scores = {}, {"answer": {}, "repeat": {}}

    def look(run):
        for kind, nats in excess(surprises(model)).items():
            by_step[f"{kind} at {run.step}"] = nats
        for kind in scores:
            scores[kind][run.step] = copying(model, kind).flatten()

    found = judged(model, trained(model, seed, on_eval=look)) | by_step
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


def counted(seed, longest, strength=20):
    """Counting up to `longest` characters of Tiny Shakespeare, as the notebook does.

    The same for every seed: nothing is drawn. "loss" has all the past it wants,
    "windows of 64" only what a window shows.
    """
    text = corpus()
    ids, n = torch.cat([text.train, text.val]), len(text.train)
    p = torch.full((len(text.val),), 1 / text.vocab_size, dtype=torch.float64)
    context, rows = torch.zeros_like(ids), []
    for _ in range(longest + 1):
        longer = context * text.vocab_size + ids  # with the character itself
        seen = times_seen(context[:n], context[n:])
        both = times_seen(longer[:n], longer[n:])
        p = (both + strength * p) / (seen + strength)
        rows.append(-p.log())
        context = F.pad(longer[:-1], (1, 0))  # one place further on
    rows = torch.stack(rows)[:, 1:]  # (longest + 1, M): the first has no past
    past = torch.arange(rows.shape[1]) % 64 + 1  # characters in sight
    shown = rows.gather(0, past.clamp(max=longest)[None])
    return {"loss": rows[-1].mean().item(), "windows of 64": shown.mean().item()}


EXPERIMENTS = {
    "07-counts": {
        "two characters": partial(counted, longest=2),
        "six characters": partial(counted, longest=6),
    },
    "07-readers": {
        "one head": one_head,
        "one block": partial(gpt, n_layer=1),
        "one wide block": partial(gpt, n_layer=1, width=88),
        "GPT": gpt,
    },
}
