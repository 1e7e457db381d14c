"""The loss ladder of notebooks 01 to 06 over all seeds, and 01's table, longer."""

import math
import time
from functools import partial

import torch
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.course.experiments import fit
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.stored.rungs import BODIES

THREADS = torch.get_num_threads()  # as many as there are cores


def uniform(seed: int) -> dict[str, float]:
    """01: every character as likely as any other."""
    return {"loss": math.log(fit.corpus().vocab_size), "parameters": 0, "seconds": 0}


def unigram(seed: int) -> dict[str, float]:
    """01: the frequencies of the characters in the training text."""
    text = fit.corpus()
    counts = torch.bincount(text.train, minlength=text.vocab_size)
    log_frequency = (counts / counts.sum()).log()
    loss = -log_frequency[text.val[1:]].mean().item()
    return {"loss": loss, "parameters": text.vocab_size, "seconds": 0}


def train_table(
    learned: torch.Tensor,
    vocab_size: int,
    steps: int,
    rate: float,
    seed: int,
    block_size: int,
) -> BigramLanguageModel:
    """01's table, trained on learned (N,) by the loop that 01 shows: `train` comes in
    06, and its schedule and its clipping would give another table."""
    torch.manual_seed(seed)
    model = BigramLanguageModel(vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        _, loss = model(*get_batch(learned, 32, block_size))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def trained(seed: int, steps: int) -> dict[str, float]:
    """01's table as the notebook trains it, in 10,000 steps; and how much probability
    is in a different place than in `counted_table`: "apart" over all rows as they're
    used, "rarest" over those of a character in 10,000 and fewer."""
    text, start = fit.corpus(), time.perf_counter()
    model = train_table(text.train, text.vocab_size, steps, 1e-3, seed, block_size=8)
    seconds = round(time.perf_counter() - start, 1)
    losses = {"train loss": text.train, "loss": text.val}
    found = {name: evaluate(model, data, 8) for name, data in losses.items()}
    learned = F.softmax(model.token_embedding.weight.detach(), dim=1)
    apart = (learned - counted_table()).abs().sum(dim=1) / 2  # (V,)
    used = torch.bincount(text.train, minlength=text.vocab_size) / len(text.train)
    found |= {"apart": (used * apart).sum().item()}
    found |= {"rarest": apart[used < 1e-4].mean().item()}
    return found | {"parameters": text.vocab_size**2, "seconds": seconds}


def gpt(seed: int) -> dict[str, float]:
    """06: the CPU preset, on all the cores there are."""
    torch.set_num_threads(THREADS)
    return fit.run(seed, fit.cpu)


def counted_table() -> torch.Tensor:
    """01's other table (V, V): the shares counted, with one added to each count."""
    text, V = fit.corpus(), fit.corpus().vocab_size
    pairs = text.train[:-1] * V + text.train[1:]  # (N - 1,)
    counts = torch.bincount(pairs, minlength=V * V).view(V, V) + 1
    return counts / counts.sum(dim=1, keepdim=True)


def counted(seed: int) -> dict[str, float]:
    """The exact losses of `counted_table`, the same for every seed."""
    text, p = fit.corpus(), counted_table()
    losses = {"train loss": text.train, "loss": text.val}
    return {n: -p[d[:-1], d[1:]].log().mean().item() for n, d in losses.items()}


RUNGS = {name: {"body": body} for name, body in BODIES.items()}
EXPERIMENTS = {
    "ladder": {
        "uniform guess": uniform,
        "unigram counts": unigram,
        "bigram": partial(trained, steps=10_000),
        **fit.grid("{body}", partial(fit.run, base=fit.small), body=RUNGS),
        "GPT": gpt,
    },
    "01-longer": {
        "counted": counted,
        **{f"{n:,} steps": partial(trained, steps=n) for n in (10_000, 40_000)},
    },
}
