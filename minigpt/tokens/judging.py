"""Lesson 13: losses you can compare, no matter what a model's tokens are."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.evaluation import evaluating
from minigpt.interfaces import Model, Tokenizer
from minigpt.tokens.byte_pairs import BytePairTokenizer


class Loss(NamedTuple):
    """A model's loss on a text: nats per token and per character, bits per byte."""

    per_token: float
    per_character: float
    bits_per_byte: float


@torch.no_grad()
def token_nats(
    model: Model, ids: torch.Tensor, window: int | None = None
) -> torch.Tensor:
    """The nats of each of ids (N,) except the first: (N - 1,). `evaluate` averages
    these.

    The model reads them in windows of this many tokens, one after the other (default:
    block_size).
    """
    window, n = window or model.block_size, len(ids) - 1
    x, y = (F.pad(part, (0, -n % window)) for part in (ids[:-1], ids[1:]))
    x, y = x.view(-1, window), y.view(-1, window)  # pad the end, then cut it off
    rows = []
    with evaluating(model):
        for inputs, targets in zip(x.split(64), y.split(64)):
            logits = model(inputs)[0].transpose(1, 2)  # (B, vocab_size, T)
            rows.append(F.cross_entropy(logits, targets, reduction="none"))
    return torch.cat(rows).flatten()[:n]


def judge(
    model: Model, tokenizer: Tokenizer, text: str, window: int | None = None
) -> Loss:
    """The exact Loss on a text, except its first token, in windows of this many tokens.

    With windows of block_size, each model sees as many past tokens as it can read. To
    give models the same past in characters, divide the number of characters by the
    characters per token.
    """
    ids = tokenizer.encode(text)
    nats = token_nats(model, torch.tensor(ids), window).double()
    said = text[len(tokenizer.decode(ids[:1])) :]
    per_byte = nats.sum().item() / len(said.encode("utf-8"))
    per_character = nats.sum().item() / len(said)
    return Loss(nats.mean().item(), per_character, per_byte / math.log(2))


@torch.no_grad()
def next_bytes(
    model: Model, tokenizer: BytePairTokenizer, text: str, heal: bool = True
) -> torch.Tensor:
    """The probability that each byte (256,) comes next, after a text of at least two
    tokens.

    heal: the last token may be the beginning of a longer one, like a space before a
    word. So we take it back, and whatever the model says instead has to begin with it.
    """
    ids, begun = tokenizer.encode(text), b""
    if heal:
        *ids, last = ids
        begun = tokenizer.vocabulary[last]
    logits = model(torch.tensor([ids[-model.block_size :]]))[0][0, -1]  # (vocab_size,)
    found = torch.zeros(256)
    for token, p in zip(tokenizer.vocabulary, logits.softmax(dim=-1)):
        if token.startswith(begun):
            if token == begun:  # it was right, so the byte is the next token's
                found += p * next_bytes(model, tokenizer, text, heal=False)
            else:
                found[token[len(begun)]] += p
    return found / found.sum()
