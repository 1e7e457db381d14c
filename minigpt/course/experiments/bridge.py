"""Experiments of notebook 14: what each part is worth in which GPT-2 differs from 06;
whether it pays to go on from a model of Shakespeare where the text is another; what a
character costs at GPT-2's real size; and the equality with transformers, which only
these need: python -m pip install -e ".[bridge]"."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from minigpt.bridge.folder import as_gpt2, load_gpt2, read_model, save_gpt2
from minigpt.bridge.gpt2 import GPT2, GPT2Config
from minigpt.bridge.recipe import finetuning
from minigpt.bridge.tokenizer import GPT2Tokenizer
from minigpt.course.experiments.fit import fit, grid, made
from minigpt.course.experiments.full_training import large_head
from minigpt.data import load_text, train_val_split
from minigpt.evaluation import evaluate
from minigpt.fast.cache import KVCache
from minigpt.fast.writing import generate as fast_generate
from minigpt.generation import generate
from minigpt.gpt import GPTConfig
from minigpt.interfaces import Model
from minigpt.stored import load_stored
from minigpt.tools.corpus import corpus
from minigpt.training import TrainConfig

IN_06: dict[str, Any] = {
    "activation": "relu",
    "qkv_bias": False,
    "tied": False,
    "head_bias": True,
}
DIFFERENCES: dict[str, dict[str, Any]] = {
    "our GPT": {},
    "GELU": {"activation": "gelu_new"},
    "biases of q, k, v": {"qkv_bias": True},
    "tied head": {"tied": True},
    "its start, not tied": {"change": large_head},  # as large as the embedding's
    "no bias in the head": {"head_bias": False},
    "all four, GPT-2": {"activation": "gelu_new", "qkv_bias": True}
    | {"tied": True, "head_bias": False},
}


def small(**changes: Any) -> tuple[GPT2Config, TrainConfig]:
    """A GPT of two layers and 64 channels, as 06's but for the changes."""
    V = corpus().vocab_size
    sizes: dict[str, Any] = {"n_layer": 2, "n_head": 4, "n_embd": 64}
    config = GPT2Config(V, 32, **sizes | IN_06 | changes)
    return config, TrainConfig(300, 16, 32, 8e-3, eval_every=300, eval_batches=1)


def difference(
    seed: int, rate: float, change: Callable | None = None, **changes: Any
) -> dict[str, float]:
    """Train it; if it is our GPT, how far its file of GPT-2's is off."""
    base = partial(small, **changes)
    model, recipe = made(seed, base, change, learning_rate=rate)
    found = fit(model, recipe)
    if not changes and change is None:
        found["off as GPT-2"] = as_gpt2(model)[1]
    return found


@cache
def exported() -> tuple[GPT2, GPT2Tokenizer]:
    """(GPT2, its tokenizer): the course's GPT, written as a folder and read again."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "my-gpt"
        save_gpt2(*load_stored("gpt"), folder)
        return load_gpt2(folder)


@cache
def play() -> tuple[torch.Tensor, torch.Tensor]:
    """The play that comes with the course as ids of Shakespeare's characters (N,), the
    part to learn from and 20,000 to judge by."""
    ids = torch.tensor(exported()[1].encode(load_text("playwright")))
    learned, judged = train_val_split(ids)
    return learned, judged[:20_000]


def other_text(seed: int, rate: float, steps: int, begins: str) -> dict[str, float]:
    """Train on the play with the recipe of `train --from`; begins: "from Shakespeare"
    with the exported parameters, "anew" with new ones."""
    first, _ = exported()
    torch.manual_seed(seed)
    model = first.config.build()
    if begins == "from Shakespeare":
        model.load_state_dict(first.state_dict())
    recipe = replace(finetuning(model), learning_rate=rate, steps=steps, seed=seed)
    recipe = replace(recipe, eval_every=steps, eval_batches=1)
    return {"before": before(begins), **fit(model, recipe, play)}


@cache
def before(begins: str) -> float:
    """The loss on the play before the first step; of new parameters, a blind guess."""
    model, _ = exported()
    anew = math.log(model.config.vocab_size)
    return anew if begins == "anew" else evaluate(model, play()[1], model.block_size)


SIZES = {  # vocab_size, block_size, n_layer, n_head, n_embd
    "the GPT of 06": (65, 64, 2, 4, 128),
    "GPT-2's size": (50257, 1024, 12, 12, 768),
}
KNOWN, NEW = 48, 16  # tokens that are read, and those that are written behind them


def written(seed: int, size: str, cached: bool) -> dict[str, float]:
    """Seconds of a processor for a token that a model of random numbers writes behind
    48, on one core, and the MB of its parameters and of its cache."""
    torch.manual_seed(seed)
    model = GPT2Config(*SIZES[size]).build().eval()
    idx = torch.randint(model.config.vocab_size, (1, KNOWN))
    write = fast_generate if cached else generate
    write(model, idx, 2)  # what only the first call takes
    start = time.process_time()
    write(model, idx, NEW)
    seconds = (time.process_time() - start) / NEW
    held = [p.nbytes for p in model.parameters()]
    cache = KVCache(model)
    kept = cache.keys.nbytes + cache.values.nbytes
    return {
        "seconds a token": seconds,
        "MB of parameters": sum(held) / 1e6,
        "MB of cache": kept / 1e6 if cached else 0.0,
    }


def equal(seed: int, direction: str, models: int = 20) -> dict[str, float]:
    """The largest difference of a logit from that of transformers, over models of
    random shapes and numbers, and the largest logit.

    direction: "out", ours is written here and read there, a GPT of 06 where its head's
    bias fits, else a GPT2; "in", theirs is written there and read here. Both continue a
    text alike, greedily, or this raises AssertionError.
    """
    transformers = import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    dice, off, largest = random.Random(seed), 0.0, 0.0
    torch.manual_seed(seed)
    for _ in range(models):
        n_head = dice.choice([1, 2, 3, 4])
        n_embd = n_head * dice.choice([8, 16, 32])
        V = dice.choice([n_embd, n_embd // 2 + 1, 5 * n_embd])
        sizes = V, dice.choice([16, 64]), dice.choice([1, 2, 5]), n_head, n_embd
        with TemporaryDirectory() as place:
            folder = Path(place) / "it"
            if direction == "out":
                kind = GPTConfig if V <= n_embd else GPT2Config
                ours = opinionated(kind(*sizes).build())
                save_gpt2(ours, numbered(V), folder)
                theirs = transformers.GPT2LMHeadModel.from_pretrained(folder)
            else:
                theirs = opinionated(transformers.GPT2LMHeadModel(theirs_of(*sizes)))
                theirs.save_pretrained(folder)
                ours = read_model(folder)
        idx = torch.randint(V, (4, sizes[1] - 4))
        with torch.no_grad():
            logits, others = ours(idx)[0], theirs(idx).logits
        off = max(off, (logits - others).abs().max().item())
        largest = max(largest, logits.abs().max().item())
        knobs = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        knobs["attention_mask"] = torch.ones_like(
            idx[:1]
        )  # or 0 would be read as a gap
        text = theirs.generate(idx[:1], max_new_tokens=4, **knobs)
        assert torch.equal(text, generate(ours, idx[:1], 4, temperature=0)), sizes
    return {"off": off, "largest logit": largest, "models": models}


def numbered(vocab_size: int) -> GPT2Tokenizer:
    """A tokenizer of so many tokens."""
    merges = [(i // 256, i % 256) for i in range(vocab_size - 256)]  # two bytes each
    return GPT2Tokenizer(merges, [*range(min(256, vocab_size))])


def theirs_of(
    vocab_size: int, block_size: int, n_layer: int, n_head: int, n_embd: int
) -> Any:
    """A shape as a config of transformers'."""
    kind: Any = import_module("transformers").GPT2Config
    sizes = {"vocab_size": vocab_size, "n_positions": block_size, "n_layer": n_layer}
    return kind(**sizes, n_head=n_head, n_embd=n_embd, bos_token_id=0, eos_token_id=0)


@torch.no_grad()
def opinionated(model: Model) -> Model:
    """The model with noise on all its parameters, so that none is zero or one."""
    for p in model.parameters():
        p.add_(torch.randn_like(p) * 0.2)
    return model.eval()


EXPERIMENTS = {
    "14-differences": grid(
        "{variant}, rate {rate:g}",
        difference,
        variant=DIFFERENCES,
        rate=[2e-3, 4e-3, 8e-3],
    ),
    "14-other-text": grid(
        "{begins}, {steps} steps, rate {rate:g}",
        other_text,
        steps=[100],
        begins=["from Shakespeare", "anew"],
        rate=[2e-3, 4e-3, 8e-3],
    )
    | grid(
        "{begins}, {steps} steps, rate {rate:g}",
        other_text,
        steps=[100],
        begins=["anew"],
        rate=[5e-4, 1e-3],
    ),
    "14-size": grid(
        "{size}, {cached}",
        written,
        size=list(SIZES),
        cached={"cache": {"cached": True}, "each time anew": {"cached": False}},
    ),
    "14-equal": grid("{direction}", equal, direction=["out", "in"]),
}
