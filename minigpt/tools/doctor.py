"""The doctor: is your setup complete, and does your device compute what a CPU does?

    python -m minigpt doctor

Two small models are trained for ten steps: once on the device, in the precision it
trains with, and once on the CPU in float64, where rounding errors are too small to
matter. Some kernels have failed without any error. On Apple's GPUs, for example, a
causal mask in 16 bits let the future through (PyTorch issue 195910).
"""

import math
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

import torch

from minigpt.data import tiny_shakespeare
from minigpt.device import autocast
from minigpt.fast.cache import KVCache
from minigpt.fast.reader import forward_with_cache
from minigpt.gpt import GPTConfig
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig
from minigpt.stored import load_stored
from minigpt.tools.options import device_named
from minigpt.training import TrainConfig

CPU, V = torch.device("cpu"), 65
SMALL = V, 32, 2, 2, 128  # vocab_size, block_size, n_layer, n_head, n_embd
CHECKS = [  # how much it may differ in float32, and in 16 bits
    # The GPT may differ most: if rounding pushes the input of a ReLU across 0, a
    # gradient appears or vanishes.
    ("GPT, AdamW", GPTConfig(*SMALL), TrainConfig(10, 4, 32, 3e-3), 0.02, 0.4),
    (
        "ModernGPT, Muon",
        ModernConfig(*SMALL, zero_init=False),
        MuonConfig(10, 4, 32, 3e-3),
        2e-3,
        0.1,
    ),
]


def set_up() -> Iterator[str]:
    """Yield what's missing from this setup, each in a sentence that says what to do."""
    install = "Run `make lab` again, or pip install -r requirements.txt."
    try:
        import ipykernel  # noqa: F401
        import jupyterlab  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        yield f"The package {error.name} isn't installed. {install}"
    try:
        load_stored("gpt")
    except (OSError, ValueError, RuntimeError) as error:
        yield f"The stored GPT can't be read ({error}). Get the course's files again."
    try:
        tiny_shakespeare()
    except FileNotFoundError as error:
        yield f"{error} Until then, the notebooks use the course's own play."


def trained(
    shape: Any,
    config: Any,
    device: torch.device = CPU,
    dtype: torch.dtype = torch.float64,
    narrow: torch.dtype | None = None,
) -> dict[str, torch.Tensor]:
    """The logits, gradient and losses of ten training steps, and the logits of a text
    that's read in pieces through lesson 09's cache.

    narrow: the 16-bit type that autocast uses.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # only the CPU's
        model = shape.build().to(device, dtype)
    ids = torch.Generator().manual_seed(0)
    batches = torch.randint(V, (10, 4, shape.block_size + 1), generator=ids).to(device)
    optimizer, found = config.make_optimizer(model), {}
    for step, x in enumerate(batches):
        with torch.autocast(device.type, narrow, narrow is not None):
            if step == 0:
                cache, ends = KVCache(model.eval(), len(x)), (5, 9, shape.block_size)
                read = [forward_with_cache(model, x[:, :end], cache) for end in ends]
                found["cache"] = torch.cat(read, dim=1)
                model.train()
            logits, loss = model(x[:, :-1], x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
            found |= {"logits": logits, "gradient": gradient}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found[f"loss of step {step}"] = loss
    return {name: x.detach().cpu().double() for name, x in found.items()}


def compare(truth: dict[str, torch.Tensor], *how: Any) -> tuple[float, str]:
    """How far a training run is from the truth, and where: the length of the difference
    divided by the length of the truth. It's infinite if something isn't a number or
    raises an error. how: what `trained` gets."""
    try:
        found, apart = trained(*how), []
        for name, right in truth.items():
            share = ((found[name] - right).norm() / right.norm()).item()
            apart.append((share if math.isfinite(share) else math.inf, name))
        return max(apart)
    except Exception as error:  # devices can raise anything
        return math.inf, f"{type(error).__name__}: {error}".splitlines()[0]


def examine(device: torch.device) -> Iterator[tuple]:
    """Yield the rows of the table: name, how much it differs, where, and the limit."""
    with autocast(device):
        on = torch.is_autocast_enabled(device.type)
        narrow = torch.get_autocast_dtype(device.type) if on else None
    for name, shape, config, most, narrow_most in CHECKS:
        truth, how = trained(shape, config), (shape, config, device, torch.float32)
        yield name, *compare(truth, *how), most
        if narrow:
            yield f"{name}, 16 bits", *compare(truth, *how, narrow), narrow_most


def add_options(parser: ArgumentParser) -> None:
    """The command's options, for argparse."""
    parser.add_argument(
        "--device", help="cuda, mps or cpu (default: the fastest you have)"
    )


def main(options: Namespace) -> int:
    """The command: what's missing, then the table. Returns 0 if all is well, else 1."""
    lacking = list(set_up())
    print("\n".join(lacking) if lacking else "Your setup is complete.")
    device, bad = device_named(options.device), 0
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device
    print(f"torch {torch.__version__} on {platform.platform(terse=True)}: {name}\n")
    print(f"{'relative difference':24}{'found':>9}{'limit':>9}")
    for name, differs, where, most in examine(device):
        verdict = "agrees" if differs <= most else f"DIFFERS: {where}"
        print(f"{name:24}{differs:9.0e}{most:9.0e}  {verdict}", flush=True)
        bad += differs > most
    if bad:
        print(
            f"\nRows that differ too much: {bad}. For now, use --device cpu (on a "
            "CPU, set OMP_NUM_THREADS=1), and update torch and your drivers. If that "
            "doesn't help, report this table at "
            "https://github.com/pytorch/pytorch/issues."
        )
    else:
        print(f"\nEverything agrees: you can use {device}.")
    return int(bad > 0 or bool(lacking))
