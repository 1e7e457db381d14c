"""Experiments of notebook 13: the same GPT on characters and on tokens, at the same
seconds of a processor, on Shakespeare and on the playwright's text, which has a floor.

Rates are chosen with one seed on the last tenth of the training text; what is then
trained on all of it is judged on the validation text, per character.
"""

import re
import time
from dataclasses import replace
from functools import cache
from statistics import mean, median
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course import record
from minigpt.course.experiments.fit import grid, step_times
from minigpt.data import load_text, tiny_shakespeare, train_val_split
from minigpt.gpt import GPT, GPTConfig
from minigpt.playwright.play import write_play
from minigpt.tokens.byte_pairs import learn
from minigpt.tokens.judging import judge, next_bytes, token_nats
from minigpt.training import TrainConfig, train

STEPS, T, B, WIDTH = 1000, 64, 16, 64  # the model of characters, whose seconds all have
SOURCES = ["Shakespeare", "playwright"]
RATES = [4e-3, 8e-3, 16e-3]
RARE = 100  # times or less in the training text
PROMPTS, PAST = 200, 150  # prompts that end in a space, and their characters


class Variant(NamedTuple):
    """What is trained: a vocabulary (None: characters), and what else differs."""

    size: int | None
    window: str = "64 tokens"  # or "of 512": as many characters as 64 of 512 tokens
    pairs: bool = False  # beside each character an embedding of the last two
    budget: str = "seconds"  # or "characters": as many are read as the first one reads


VARIANTS = {"characters": Variant(None)}
VARIANTS |= {f"{size} tokens": Variant(size) for size in (128, 256, 512, 1024)}
VARIANTS |= {
    "characters, longer window": Variant(None, window="of 512"),
    "characters, table of pairs": Variant(None, pairs=True),
    "512 tokens, 64 characters": Variant(512, window="64 characters"),
    "512 tokens, equal characters": Variant(512, budget="characters"),
}


class PairEmbedding(nn.Module):
    """An embedding, and one of the last two characters, hashed: 512 rows together, as
    a vocabulary of 512 tokens has. idx (B, T) -> (B, T, C)."""

    def __init__(self, embedding):
        super().__init__()
        self.one, self.V = embedding, embedding.num_embeddings
        self.two = nn.Embedding(512 - self.V, embedding.embedding_dim)
        nn.init.zeros_(self.two.weight)

    def forward(self, idx):
        before = F.pad(idx[:, :-1], (1, 0))
        return self.one(idx) + self.two((before * self.V + idx) % (512 - self.V))


@cache
def texts(source, choosing=False):
    """(what is learned from, what is judged on); choosing: of the training text."""
    path = tiny_shakespeare() if source == "Shakespeare" else "playwright"
    learned, judged = train_val_split(load_text(path))
    return train_val_split(learned) if choosing else (learned, judged)


@cache
def encoded(source, size, choosing=False):
    """(tokenizer, ids (N,)) of what is learned from; the tokenizer learns there, too,
    but knows the characters of the whole text, as 01's does."""
    alphabet = sorted(set("".join(texts(source)).encode()))
    text = texts(source, choosing)[0]
    tokenizer = learn(text, size or len(alphabet), alphabet=alphabet)
    return tokenizer, torch.tensor(tokenizer.encode(text))


def begun(source, name, seed, steps=STEPS, rate=RATES[0], choosing=False):
    """(tokenizer, ids, a new model, its plan); in a step as many tokens for all."""
    variant = VARIANTS[name]
    tokenizer, ids = encoded(source, variant.size, choosing)
    characters = len(texts(source)[0]) / len(encoded(source, 512)[1])  # of a token
    windows = {"of 512": T * characters, "64 characters": T / characters}
    window = round(windows.get(variant.window, T))
    torch.manual_seed(seed)
    model = GPT(GPTConfig(tokenizer.vocab_size, window, 2, 4, WIDTH))
    if variant.pairs:
        model.token_embedding = PairEmbedding(model.token_embedding)
    plan = TrainConfig(steps, round(T * B / window), window, rate, seed=seed)
    return tokenizer, ids, model, replace(plan, eval_every=steps, eval_batches=1)


def cost(seed, source, variant):
    """Processor seconds of a step, as a share of those of characters: both alternate,
    60 rounds; and how many characters a token has."""
    made = [begun(source, n, seed)[1:] for n in ("characters", variant)]
    trainings = [(model, ids, plan) for ids, model, plan in made]
    times = step_times(trainings, 60, time.process_time)
    found = {"cost": median(after / before for before, after in times)}
    found["milliseconds"] = 1000 * median(after for _, after in times)
    return found | {"characters": len(texts(source)[0]) / len(made[1][0])}


def trained(source, name, seed, rate, choosing=False):
    """(tokenizer, the trained model, processor seconds, steps)."""
    measured = record.load("13-cost")[f"{name}, {source}"]
    by = "characters" if VARIANTS[name].budget == "characters" else "cost"
    steps = round(STEPS / measured.mean(by))
    tokenizer, ids, model, plan = begun(source, name, seed, steps, rate, choosing)
    start = time.process_time()
    train(model, ids, ids, plan)
    return tokenizer, model, time.process_time() - start, steps


@cache
def best_rate(source, name):
    """That of the lowest loss on the last tenth of the training text, with one seed."""

    def loss(rate):
        tokenizer, model, *_ = trained(source, name, 1337, rate, choosing=True)
        return judge(model, tokenizer, texts(source, True)[1]).per_character

    return min(RATES, key=loss)


@cache
def exact(source):
    """The playwright's own nats at each character that is judged (N,); zeros for
    Shakespeare, whose nats nobody knows."""
    judged = texts(source)[1]
    if source == "Shakespeare":
        return torch.zeros(len(judged))
    return torch.tensor(write_play(1_100_000).surprise[-len(judged) :])


def compared(seed, source, variant):
    """A variant at its best rate, on the validation text: the loss per character, what
    of it is above the playwright, in rare tokens and others, and after a space."""
    rate = best_rate(source, variant)
    tokenizer, model, seconds, steps = trained(source, variant, seed, rate)
    judged, loss = texts(source)[1], judge(model, tokenizer, texts(source)[1])
    floor = exact(source)[len(tokenizer.decode(tokenizer.encode(judged)[:1])) :]
    return {
        "loss": loss.per_character,
        "bits per byte": loss.bits_per_byte,
        "per token": loss.per_token,
        "above": loss.per_character - floor.mean().item(),
        **by_rarity(source, variant, tokenizer, model),
        **after_space(tokenizer, model, judged),
        "rate": rate,
        "steps": steps,
        "processor seconds": round(seconds, 1),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def by_rarity(source, name, tokenizer, model):
    """Nats per character above the playwright's in tokens that the training text has
    RARE times at most, and in the others; and how many characters are in rare ones."""
    ids = torch.tensor(tokenizer.encode(texts(source)[1]))
    length = torch.tensor([len(token) for token in tokenizer.vocabulary])[ids]
    ends = length.cumsum(0)
    floor = F.pad(exact(source).double().cumsum(0), (1, 0))
    above = token_nats(model, ids) - (floor[ends] - floor[ends - length])[1:]
    seen = encoded(source, VARIANTS[name].size)[1].bincount(minlength=len(ids))
    rare, length = seen[ids[1:]] <= RARE, length[1:]
    parts = {"rare": rare, "others": ~rare}
    found = {
        n: (above[p].sum() / length[p].sum().clamp(min=1)) for n, p in parts.items()
    }
    found["share of rare"] = length[rare].sum() / length.sum()
    return {n: value.item() for n, value in found.items()}


def after_space(tokenizer, model, text):
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


EXPERIMENTS = {
    name: grid("{variant}, {source}", function, source=SOURCES, variant=list(VARIANTS))
    for name, function in (("13-cost", cost), ("13-tokens", compared))
}
