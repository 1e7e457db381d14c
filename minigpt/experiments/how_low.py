"""Experiments of notebook 07: who learns what of the pocket play, and when."""

import functools
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.attention import Head, attention_weights
from minigpt.data import CharTokenizer, train_val_split
from minigpt.evaluation import evaluate, judging
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.playwright import POCKET, write_play
from minigpt.training import TrainConfig, train

CONTEXT, WIDTH, FRESH = 192, 64, 50
KINDS = ["agreement", "answer", "on stage", "rhyme", "repeat"]
WATCHED = 5_000  # characters that are judged again and again during a training


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
def copies():
    """Windows (B, T) that end in a phrase said again, and for each letter that is
    copied: row, where one reads it, where it stood before."""
    p = pocket()
    windows, places = [], []
    for start, stop, kind in p.play.spans:
        if kind == "repeat" and p.n <= start and stop < p.n + WATCHED:
            phrase = p.play.text[start:stop]
            said = p.play.text.rindex(phrase, 0, start)
            begin = stop - CONTEXT
            for k in range(1, len(phrase)):
                at = start + k - 1 - begin, said + k - begin
                places.append((len(windows), *at))
            windows.append(p.ids[begin:stop])
    return torch.stack(windows), torch.tensor(places).T


def copying(model):
    """For each head {"2.1": layer 2, head 1}: attention to the letter to be copied."""
    windows, (row, here, there) = copies()
    found = {}
    for layer, weights in enumerate(attention_maps(model, windows), start=1):
        for head in range(weights.shape[1]):
            score = weights[row, head, here, there].mean().item()
            found[f"{layer}.{head + 1}"] = score
    return found


def prefix_matching(model):
    """The same on random letters, 96 of them, said twice (Olsson et al., 2022)."""
    generator = torch.Generator().manual_seed(0)
    once = torch.randint(pocket().vocab_size, (32, CONTEXT // 2), generator=generator)
    maps = attention_maps(model, torch.cat([once, once], dim=1))
    here = torch.arange(CONTEXT // 2, CONTEXT - 1)
    found = {}
    for layer, weights in enumerate(maps, start=1):
        for head in range(weights.shape[1]):
            at = weights[:, head, here, here - CONTEXT // 2 + 1]
            found[f"{layer}.{head + 1}"] = at.mean().item()
    return found


def previous_letter(model):
    """For each head: attention to the letter before the one that asks."""
    windows, _ = copies()
    here = torch.arange(1, CONTEXT)
    found = {}
    for layer, weights in enumerate(attention_maps(model, windows), start=1):
        for head in range(weights.shape[1]):
            score = weights[:, head, here, here - 1].mean().item()
            found[f"{layer}.{head + 1}"] = score
    return found


def without_head(model):
    """For each head: the excess at `repeat` with that head cut out of the model."""
    found = {}
    for layer, block in enumerate(model.body[:-1], start=1):
        a = block.attention
        for head in range(a.n_head):
            columns = slice(head * a.head_size, (head + 1) * a.head_size)
            kept = a.proj.weight[:, columns].detach().clone()
            with torch.no_grad():
                a.proj.weight[:, columns] = 0
                cut = excess(surprises(model, WATCHED))
                a.proj.weight[:, columns] = kept
            found[f"{layer}.{head + 1}"] = cut["repeat"]
    return found


def judged(model):
    """Loss, exact loss in cold windows, and the excess at each kind."""
    p = pocket()
    nats = surprises(model, len(p.ids) - p.n)
    return {
        "loss": nats.mean().item(),
        "cold": evaluate(model, p.ids[p.n :], CONTEXT),
        **excess(nats),
    }


def fitted(model, seed, rate=8e-3, steps=4000, watch=None):
    """Train as the notebook does; {"loss", "cold", kinds, ...}."""
    torch.set_num_threads(1)
    p = pocket()
    recipe = TrainConfig(
        steps,
        5,
        CONTEXT,
        rate,
        warmup_steps=300,
        eval_every=100,
        eval_batches=1,
        seed=seed,
    )
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


def gpt(seed, n_layer=2, width=WIDTH, rate=8e-3, look=None):
    """A GPT of n_layer blocks; the heads of the trained one are examined."""
    torch.manual_seed(seed)
    model = GPT(GPTConfig(pocket().vocab_size, CONTEXT, n_layer, 4, width))
    found = fitted(model, seed, rate, watch=look)
    heads = copying(model)
    found["copying"] = max(heads.values())
    for head, score in heads.items():  # by step only that of the best one
        found[f"copying, head {head}"] = score
        for step in range(100, 4001, 100):
            at = found.pop(f"{head} at {step}", None)
            if at is not None and score == found["copying"]:
                found[f"copying at {step}"] = at
    found |= {f"random, head {h}": s for h, s in prefix_matching(model).items()}
    found |= {f"previous, head {h}": s for h, s in previous_letter(model).items()}
    found |= {f"repeat without {h}": s for h, s in without_head(model).items()}
    return {name: round(value, 5) for name, value in found.items()}


def by_step(model, step, found):
    """Note the excess of each kind, and what the heads look at, after `step` steps."""
    for kind, nats in excess(surprises(model, WATCHED)).items():
        found[f"{kind} at {step}"] = nats
    for head, score in copying(model).items():
        found[f"{head} at {step}"] = score


EXPERIMENTS = {
    "07-readers": {
        "one head": one_head,
        "one block": partial(gpt, n_layer=1),
        "one wide block": partial(gpt, n_layer=1, width=88),
        "GPT": partial(gpt, look=by_step),
    },
}
