"""The loss ladder of notebooks 01 to 06, every rung over all seeds."""

import math
import time
from functools import partial

import torch
import torch.nn as nn

from minigpt.attention import Head
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block
from minigpt.course.experiments.fit import CONTEXT, WIDTH, corpus, fit, small
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.multi_head import CausalSelfAttention
from minigpt.training import preset

THREADS = torch.get_num_threads()  # as many as there are cores


def uniform(seed):
    """01: every character as likely as any other."""
    return {"loss": math.log(corpus().vocab_size), "parameters": 0, "seconds": 0}


def unigram(seed):
    """01: the frequencies of the characters in the training text."""
    text = corpus()
    counts = torch.bincount(text.train, minlength=text.vocab_size)
    log_frequency = (counts / counts.sum()).log()
    loss = -log_frequency[text.val[1:]].mean().item()
    return {"loss": loss, "parameters": text.vocab_size, "seconds": 0}


def bigram(seed, steps=2_000):
    """01: the table, trained with windows of 32, without schedule or decay."""
    torch.set_num_threads(1)
    text = corpus()
    torch.manual_seed(seed)
    model = BigramLanguageModel(text.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    start = time.perf_counter()
    for _ in range(steps):
        _, loss = model(*get_batch(text.train, 32, CONTEXT))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "parameters": text.vocab_size**2,
        "loss": evaluate(model, text.val, CONTEXT),
    }


def blocks(n_layer):
    """05: n_layer blocks of four heads, and the last LayerNorm."""
    each = [Block(WIDTH, n_head=4) for _ in range(n_layer)]
    return nn.Sequential(*each, nn.LayerNorm(WIDTH))


BODIES = {
    "one head": partial(Head, WIDTH, WIDTH),
    "four heads": partial(CausalSelfAttention, WIDTH, 4),
    "one block": partial(blocks, 1),
    "three blocks": partial(blocks, 3),
}


def gpt(seed):
    """06: the CPU preset, on all the cores there are."""
    config, recipe = preset("cpu", corpus().vocab_size)
    torch.manual_seed(seed)
    return fit(config.build(), recipe, seed, threads=THREADS)


EXPERIMENTS = {
    "ladder": {
        "uniform guess": uniform,
        "unigram counts": unigram,
        "bigram": bigram,
        **{name: partial(small, body=body) for name, body in BODIES.items()},
        "GPT": gpt,
    }
}
