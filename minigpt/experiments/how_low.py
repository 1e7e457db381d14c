"""Experiments of notebook 07: who learns what of the pocket play, and when; and how
far counting gets on Tiny Shakespeare."""

import functools
from bisect import bisect_left
from functools import partial
from statistics import mean
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.attention import Head, attention_weights
from minigpt.data import CharTokenizer, train_val_split
from minigpt.evaluation import evaluate, judging
from minigpt.experiments.fit import corpus
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.playwright import POCKET, write_play
from minigpt.training import TrainConfig, train

CONTEXT, WIDTH, FRESH = 192, 64, 50
KINDS = ["agreement", "answer", "on stage", "rhyme", "repeat"]
WATCHED = 10_000  # characters that are judged again and again during a training


class PocketPlay(NamedTuple):
    """The play, its ids (N,), where the last tenth begins, and the author's nats."""

    play: object
    ids: torch.Tensor
    n: int
    exact: torch.Tensor
    vocab_size: int


@functools.cache
def pocket():
    """The PocketPlay of the notebook."""
    play = write_play(1_000_000, lexicon=POCKET)
    tokenizer = CharTokenizer(play.text)
    ids = torch.tensor(tokenizer.encode(play.text))
    n = len(train_val_split(ids)[0])
    return PocketPlay(play, ids, n, torch.tensor(play.surprise), tokenizer.vocab_size)


def surprises(model, stop):
    """Nats at ids[n : n + stop], each with a past of 142 characters or more."""
    p = pocket()
    before = CONTEXT - FRESH + 1
    data = p.ids[p.n - before : p.n + stop]
    windows = data.unfold(0, CONTEXT + 1, FRESH)  # (number, T + 1)
    rows = []
    with judging(model):
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


def attention_maps(model, idx):
    """The weights of every head: idx (B, T) -> a list of (B, n_head, T, T)."""
    B, T = idx.shape
    maps = []
    with judging(model):
        x = model.token_embedding(idx) + model.position_embedding(torch.arange(T))
        for block in model.body[:-1]:
            a = block.attention
            qkv = a.qkv(block.norm1(x)).view(B, T, 3, a.n_head, a.head_size)
            q, k, _ = qkv.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_size)
            maps.append(attention_weights(q, k))
            x = block(x)
    return maps


@functools.cache
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
    """{(layer, head): attention to the earlier word, where its first letter is due}."""
    windows, before = copies(kind)
    scores = {}
    for layer, weights in enumerate(attention_maps(model, windows)):
        for head in range(weights.shape[1]):
            last = weights[:, head, -1]  # (B, T)
            scores[layer, head] = (last * before).sum(dim=1).mean().item()
    return scores


def prefix_matching(model):
    """The largest score of a head on 96 random letters, said twice: attention to the
    letter after the earlier occurrence (Olsson et al., 2022). Evenly spread: 0.007."""
    generator = torch.Generator().manual_seed(0)
    once = torch.randint(pocket().vocab_size, (32, CONTEXT // 2), generator=generator)
    here = torch.arange(CONTEXT // 2, CONTEXT - 1)
    scores = []
    for weights in attention_maps(model, torch.cat([once, once], dim=1)):
        after = weights[:, :, here, here - CONTEXT // 2 + 1]  # (B, n_head, T / 2)
        scores.append(after.mean(dim=(0, 2)).max().item())
    return max(scores)


def without_head(model, layer, head):
    """The excess at each kind with that head cut out of the trained model."""
    a = model.body[layer].attention
    columns = slice(head * a.head_size, (head + 1) * a.head_size)
    kept = a.proj.weight[:, columns].detach().clone()
    with torch.no_grad():
        a.proj.weight[:, columns] = 0
        cut = excess(surprises(model, WATCHED))
        a.proj.weight[:, columns] = kept
    return cut


def examined(model, found):
    """Add what the heads look at to what was found, and what is lost without them.

    Of the scores by step only those of the head stay that copies best in the end.
    """
    found = dict(found)
    found["random letters"] = prefix_matching(model)
    for kind in "answer", "repeat":
        scores = copying(model, kind)
        best = max(scores, key=scores.get)
        found[f"attention, {kind}"] = scores[best]
        found[f"layer, {kind}"] = best[0] + 1
        for name in [name for name in found if name.startswith(f"{kind}, head ")]:
            head, step = name.removeprefix(f"{kind}, head ").split(" at ")
            score = found.pop(name)
            if head == str(best):
                found[f"attention, {kind} at {step}"] = score
        cut = {head: without_head(model, *head)[kind] for head in scores}
        found[f"{kind} without it"] = cut.pop(best)
        for layer in {layer for layer, _ in cut}:
            others = [nats for head, nats in cut.items() if head[0] == layer]
            found[f"{kind} without another of layer {layer + 1}"] = mean(others)
    return {name: round(value, 5) for name, value in found.items()}


def judged(model):
    """Loss, exact loss in cold windows, and the excess at each kind."""
    p = pocket()
    nats = surprises(model, len(p.ids) - p.n)
    return {
        "loss": nats.mean().item(),
        "cold": evaluate(model, p.ids[p.n :], CONTEXT),
        **excess(nats),
    }


def fitted(model, seed, watch=None):
    """Train as the notebook does; {"loss", "cold", kinds, ...}."""
    torch.set_num_threads(1)
    p = pocket()
    recipe = TrainConfig(4000, 5, CONTEXT, 8e-3, 300, eval_batches=1, seed=seed)
    found = {}

    def look(history):
        watch(model, history[-1].step, found)

    history = train(
        model, p.ids[: p.n], p.ids[p.n :], recipe, on_eval=look if watch else None
    )
    found["seconds"] = round(history[-1].seconds, 1)
    found["parameters"] = sum(q.numel() for q in model.parameters())
    return judged(model) | found


def one_head(seed):
    """The head of notebook 03."""
    torch.manual_seed(seed)
    head = Head(WIDTH, WIDTH)
    return fitted(LanguageModel(pocket().vocab_size, CONTEXT, WIDTH, head), seed)


def gpt(seed, n_layer=2, width=WIDTH, look=None):
    """A GPT of n_layer blocks; the heads of the trained one are examined."""
    torch.manual_seed(seed)
    model = GPT(GPTConfig(pocket().vocab_size, CONTEXT, n_layer, 4, width))
    return examined(model, fitted(model, seed, look))


def by_step(model, step, found):
    """Note the excess of each kind, and what the heads look at, after `step` steps."""
    for kind, nats in excess(surprises(model, WATCHED)).items():
        found[f"{kind} at {step}"] = nats
    for kind in "answer", "repeat":
        for head, score in copying(model, kind).items():
            found[f"{kind}, head {head} at {step}"] = score


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
        "GPT": partial(gpt, look=by_step),
    },
}
