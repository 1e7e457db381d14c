"""Experiments of notebook 01."""

import time
from functools import partial

import torch

from minigpt.bigram import BigramLanguageModel
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.experiments.fit import corpus


def trained(steps, seed):
    """The table after so many steps of the recipe in section 7."""
    torch.set_num_threads(1)
    text = corpus()
    torch.manual_seed(seed)
    model = BigramLanguageModel(text.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for _ in range(steps):
        _, loss = model(*get_batch(text.train, 32, 8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "parameters": text.vocab_size**2,
        "train loss": evaluate(model, text.train, 8),
        "loss": evaluate(model, text.val, 8),
    }


def counted(seed):
    """The counted table with one added to each count; no seed changes it."""
    text = corpus()
    V = text.vocab_size
    pairs = text.train[:-1] * V + text.train[1:]  # (N - 1,)
    counts = torch.bincount(pairs, minlength=V * V).view(V, V) + 1
    logits = (counts / counts.sum(dim=1, keepdim=True)).log()

    def loss(data):
        return -logits[data[:-1], data[1:]].mean().item()

    return {
        "seconds": 0,
        "parameters": V * V,
        "train loss": loss(text.train),
        "loss": loss(text.val),
    }


EXPERIMENTS = {
    "01-longer": {
        "counted": counted,
        "10,000 steps": partial(trained, 10_000),
        "40,000 steps": partial(trained, 40_000),
    }
}
