"""Experiments of notebook 13: the same GPT on characters and on tokens, at the same
seconds of a processor, on Shakespeare and on the playwright's text, which has a floor.

Rates are chosen with one seed on the last tenth of the training text; what is then
trained on all of it is judged on the validation text, per character.
"""

import math
import re
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from statistics import mean

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.experiments.fit import grid, step_cost
from minigpt.data import load_text, tiny_shakespeare, train_val_split
from minigpt.gpt import GPT, GPTConfig
from minigpt.interfaces import Model
from minigpt.playwright.play import write_play
from minigpt.tokens.byte_pairs import BytePairTokenizer, learn
from minigpt.tokens.judging import judge, next_bytes
from minigpt.training import TrainConfig, train

STEPS, T, B, WIDTH = 1000, 64, 16, 64  # the model of characters, whose seconds all have
SOURCES = ["Shakespeare", "playwright"]
RATES = [2e-3, 4e-3, 8e-3, 16e-3]
PROMPTS, PAST = 200, 150  # prompts that end in a space, and their characters
VARIANTS = {"characters": {}}
VARIANTS |= {f"{size} tokens": {"size": size} for size in (128, 256, 512, 1024)}
VARIANTS |= {
    "characters, longer window": {"window": "of 512"},  # as 64 tokens of 512 have
    "characters, table of pairs": {"pairs": True},
    "512 tokens, 64 characters": {"size": 512, "window": "64 characters"},
    "512 tokens, equal characters": {"size": 512, "budget": "characters"},
    "512 tokens, equal text and steps": {"size": 512, "batch": "characters"},
}


class PairEmbedding(nn.Module):
    """An embedding, and one of the last two characters, hashed: 512 rows together, as
    a vocabulary of 512 tokens has. idx (B, T) -> (B, T, C)."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.one, self.V = embedding, embedding.num_embeddings
        self.two = nn.Embedding(512 - self.V, embedding.embedding_dim)
        nn.init.zeros_(self.two.weight)

    def forward(self, idx: torch.Tensor) -> torch.Tensor:
        before = F.pad(idx[:, :-1], (1, 0))
        return self.one(idx) + self.two((before * self.V + idx) % (512 - self.V))


@cache
def texts(source: str, choosing: bool = False) -> tuple[str, str]:
    """(what is learned from, what is judged on); choosing: of the training text."""
    path = tiny_shakespeare() if source == "Shakespeare" else "playwright"
    learned, judged = train_val_split(load_text(path))
    return train_val_split(learned) if choosing else (learned, judged)


@cache
def encoded(source: str, size: int | None, choosing: bool = False) -> tuple:
    """(tokenizer, ids (N,)) of what is learned from; the tokenizer learns there, too,
    but knows the characters of the whole text, as 01's does."""
    alphabet = sorted(set("".join(texts(source)).encode()))
    text = texts(source, choosing)[0]
    tokenizer = learn(text, size or len(alphabet), alphabet=alphabet)
    return tokenizer, torch.tensor(tokenizer.encode(text))


def begun(
    source: str,
    name: str,
    seed: int,
    steps: int = STEPS,
    rate: float = RATES[0],
    choosing: bool = False,
) -> tuple:
    """(tokenizer, a new model, ids, its plan); in a step as many tokens for all, but
    for the one whose steps read as many characters as the first one's."""
    variant = VARIANTS[name]
    tokenizer, ids = encoded(source, variant.get("size"), choosing)
    characters = len(texts(source)[0]) / len(encoded(source, 512)[1])  # of a token
    tokens = T * B / characters if "batch" in variant else T * B  # of a step
    windows = {"of 512": T * characters, "64 characters": T / characters}
    window = round(windows.get(variant.get("window"), T))
    torch.manual_seed(seed)
    model: Model = GPT(GPTConfig(tokenizer.vocab_size, window, 2, 4, WIDTH))
    if "pairs" in variant:
        model.token_embedding = PairEmbedding(model.token_embedding)
    plan = TrainConfig(steps, round(tokens / window), window, rate, seed=seed)
    return tokenizer, model, ids, replace(plan, eval_every=steps, eval_batches=1)


@cache
def cost(source: str, name: str) -> float:
    """Seconds of a step, as a share of those of characters."""
    both = [begun(source, each, seed=1337)[1:] for each in ("characters", name)]
    return step_cost(*both, rounds=60)


def trained(
    source: str,
    name: str,
    seed: int,
    rate: float,
    budget: int = STEPS,
    choosing: bool = False,
) -> tuple:
    """(tokenizer, the trained model, processor seconds, steps).

    budget: the steps of the model of characters, whose seconds this one has, too.
    """
    variant = VARIANTS[name]
    share = cost(source, name)
    if "budget" in variant:  # as many characters are read as the first one reads
        share = len(texts(source)[0]) / len(encoded(source, 512)[1])
    if "batch" in variant:  # and in as many steps; whole windows read a little more
        tokens = len(texts(source)[0]) / len(encoded(source, 512)[1])
        share = round(B / tokens) * tokens / B
    steps = round(budget / share)
    tokenizer, model, ids, plan = begun(source, name, seed, steps, rate, choosing)
    start = time.process_time()
    train(model, ids, ids, plan)
    return tokenizer, model, time.process_time() - start, steps


@cache
def best_rate(source: str, name: str, budget: int = STEPS) -> float:
    """The learning rate with the lowest loss on the last tenth of the training text, by
    one seed."""

    def loss(rate):
        tokenizer, model, *_ = trained(source, name, 1337, rate, budget, choosing=True)
        return judge(model, tokenizer, texts(source, True)[1]).per_character

    return min(RATES, key=loss)


@cache
def exact(source: str) -> torch.Tensor:
    """The playwright's own nats at each character that is judged (N,); zeros for
    Shakespeare, whose nats nobody knows."""
    judged = texts(source)[1]
    if source == "Shakespeare":
        return torch.zeros(len(judged))
    return torch.tensor(write_play(1_100_000).surprise[-len(judged) :])


def compared(
    seed: int, source: str, variant: str, budget: int = STEPS
) -> dict[str, float]:
    """A variant at its best rate, on the validation text: the loss per character, what
    of it is above the playwright, and the first letter after a space."""
    rate = best_rate(source, variant, budget)
    tokenizer, model, seconds, steps = trained(source, variant, seed, rate, budget)
    judged = texts(source)[1]
    loss = judge(model, tokenizer, judged).per_character
    floor = exact(source)[len(tokenizer.decode(tokenizer.encode(judged)[:1])) :]
    return {
        "loss": loss,
        "above": loss - floor.mean().item(),
        **after_space(tokenizer, model, judged),
        "rate": rate,
        "cost": cost(source, variant),
        "steps": steps,
        "processor seconds": round(seconds, 1),
    }


def after_space(
    tokenizer: BytePairTokenizer, model: Model, text: str
) -> dict[str, float]:
    """Nats at the first letter of a word where the prompt ends with the space before
    it, as it is and with token healing."""
    places = [found.end() for found in re.finditer(r" (?=[a-zA-Z])", text[PAST:-1])]
    nats = {"after a space": [], "healed": []}
    for i in places[:: len(places) // PROMPTS][:PROMPTS]:
        letter, prompt = ord(text[PAST + i]), text[i : PAST + i]
        for heal, found in enumerate(nats.values()):
            p = next_bytes(model, tokenizer, prompt, heal=bool(heal))
            found.append(-p[letter].log().item())
    return {name: mean(values) for name, values in nats.items()}


def lone_spaces(seed: int, size: int) -> dict[str, float]:
    """How often a space of Shakespeare's training text is a token of its own, which
    share of the words begins with what never comes after one, and what a table of
    counts loses on the first letters of words. No seed changes it."""
    judged = texts("Shakespeare")[1]
    tokenizer, ids = encoded("Shakespeare", size)
    begin = [tokenizer.vocabulary[i][:1].decode() for i in ids.tolist()]
    lone = (ids[:-1] == tokenizer.vocabulary.index(b" ")).tolist()
    after = Counter(c for alone, c in zip(lone, begin[1:]) if alone)
    starts = Counter(b for a, b in zip(judged, judged[1:]) if a == " ")
    anywhere, words = Counter(begin), starts.total()
    never = sum(k for c, k in starts.items() if after[c] == 0)
    found = {"lone spaces": after.total(), "never": never / words}
    for s in (1, 10, 100):  # pretend observations, as first letters of all tokens
        nats = 0.0
        for c, k in starts.items():
            p = (after[c] + s * anywhere[c] / len(ids)) / (after.total() + s)
            nats -= k * math.log(p)
        found[f"{s} pretended"] = nats / words
    return found


NAME = "{variant}, {source}"
LONG = {
    v: {"variant": v, "budget": 4 * STEPS}
    for v in ("characters", "512 tokens", "1024 tokens")
}
EXPERIMENTS = {
    "13-tokens": grid(NAME, compared, source=SOURCES, variant=list(VARIANTS)),
    "13-longer": grid(NAME, compared, source=SOURCES[:1], variant=LONG),
    "13-lone-spaces": grid("{size} tokens", lone_spaces, size=[128, 256, 512, 1024]),
}
