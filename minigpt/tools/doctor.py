"""The doctor: does a device compute what it should? One table tells.

Each check computes the same twice: on the device, in the numbers in which it trains,
and on the CPU in float64, whose own rounding is too small to matter. Some kernels have
gone wrong without a word, so the checks use such tensors: on Apple's GPUs, in-place
operations that write into a transposed tensor (PyTorch issue 118115), attention to
transposed tensors with heads of 64 and more (163597, 181133), a causal mask in 16 bits
that let the future through (195910).
"""

import math
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from minigpt.attention import attention
from minigpt.device import autocast
from minigpt.fast.cache import KVCache
from minigpt.fast.reader import forward_with_cache
from minigpt.generation import probabilities
from minigpt.gpt import GPTConfig
from minigpt.hints import Model
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig
from minigpt.tools.options import device_named
from minigpt.training import TrainConfig

V = 65  # Tiny Shakespeare's vocabulary


class Place(NamedTuple):
    """Where to compute, and in which numbers; narrow: the 16-bit ones of autocast."""

    device: torch.device
    dtype: torch.dtype = torch.float32
    narrow: torch.dtype | None = None

    def put(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor of the CPU, here: floating-point numbers in this place's dtype."""
        return x.to(self.device, self.dtype if x.is_floating_point() else None)

    def autocast(self) -> AbstractContextManager:
        """The context of a forward pass."""
        return torch.autocast(self.device.type, self.narrow, self.narrow is not None)

    def model(self, shape: Any) -> Model:
        """A model whose weights are the same in every place."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)  # the CPU's alone
            return shape.build().to(self.device, self.dtype)


TRUTH = Place(torch.device("cpu"), torch.float64)


def _numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _ids(*shape: int) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(0))


def in_place(place: "Place") -> dict[str, torch.Tensor]:
    """What optimizers and caches write into a tensor that lies transposed or apart."""
    a, b, c = (place.put(_numbers(24, 24, seed=i)) for i in range(3))
    found = {"x": a, "x.t()": a.clone().t(), "x[:, ::2]": a.repeat(1, 2)[:, ::2]}
    for x in found.values():
        x.addcmul_(b, c, value=0.5).addcdiv_(c, b.square() + 1, value=0.5)
        x.lerp_(b.t(), 0.3).mul_(0.9).sub_(c, alpha=0.3)
        x[:12].copy_(c.t()[12:])
    return found


def heads(place: "Place") -> dict[str, torch.Tensor]:
    """Causal attention to views of one tensor, as in lesson 04, and to whole tensors,
    with its gradients: torch's kernel; in the truth the formula of lesson 03."""
    kernel = partial(F.scaled_dot_product_attention, is_causal=True)
    found = {}
    for B, T, H, D in [(2, 64, 4, 32), (3, 70, 2, 64), (5, 3, 3, 64)]:
        x = place.put(_numbers(B, T, 3, H, D, seed=T)).requires_grad_()
        views = x.permute(2, 0, 3, 1, 4)  # (3, B, H, T, D)
        for lie, (q, k, v) in [("views", views), ("whole", views.contiguous())]:
            with place.autocast():
                out = attention(q, k, v)[0] if place is TRUTH else kernel(q, k, v)
            name = f"T = {T}, head_size = {D}, {lie}"
            (grad,) = torch.autograd.grad(out.square().sum(), x, retain_graph=True)
            found |= {name: out, f"gradient, {name}": grad}
    return found


def learning(place: "Place", shape: Any, config: Any) -> dict[str, torch.Tensor]:
    """Logits and gradient of a model, and its losses in ten steps of training.

    `train` of lesson 06 takes each device in the numbers that suit it; here the place
    says in which, and nothing but the steps is computed.
    """
    model, batches = place.model(shape), place.put(_ids(10, 4, shape.block_size + 1))
    optimizer, found = config.make_optimizer(model), {}
    for step, x in enumerate(batches):
        with place.autocast():
            logits, loss = model(x[:, :-1], x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
            found |= {"logits": logits, "gradient": gradient}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found[f"loss of step {step}"] = loss
    return found


def knobs(place: "Place") -> dict[str, torch.Tensor]:
    """Probabilities under temperature, top_k and top_p."""
    x = place.put(_numbers(16, V))
    settings = [(0.8, None, None), (1.0, 7, None), (0.5, None, 0.9), (1.3, 40, 0.7)]
    return {str(each): probabilities(x, *each) for each in settings}


def cached(place: "Place", shape: Any) -> dict[str, torch.Tensor]:
    """Logits through the cache of lesson 09, which reads a text in pieces."""
    model, x = place.model(shape).eval(), place.put(_ids(3, shape.block_size))
    cache = KVCache(model, len(x))
    with place.autocast():
        ends = [*range(5, x.shape[1], 5), x.shape[1]]  # five more at a time
        logits = [forward_with_cache(model, x[:, :end], cache) for end in ends]
    return {"logits": torch.cat(logits, dim=1)}


def checks() -> list[tuple]:
    """[name, function, how much may differ in float32, and in 16 bits], each.

    On x86 processors float32 stays below a thirtieth of that, and bf16 below a ninth.
    The GPT's may differ most: where rounding carries the input of a ReLU across 0, a
    gradient appears or vanishes.
    """
    small = V, 32, 2, 2, 128  # vocab_size, block_size, n_layer, n_head, n_embd
    gpt, modern = GPTConfig(*small), ModernConfig(*small, zero_init=False)
    adamw, muon = TrainConfig(10, 4, 32, 3e-3), MuonConfig(10, 4, 32, 3e-3)
    return [
        ("in place, transposed", in_place, 1e-5, None),
        ("attention", heads, 2e-5, 0.05),
        ("GPT, AdamW", partial(learning, shape=gpt, config=adamw), 0.02, 0.4),
        ("ModernGPT, Muon", partial(learning, shape=modern, config=muon), 2e-3, 0.1),
        ("probabilities", knobs, 1e-5, None),
        ("cache of the GPT", partial(cached, shape=gpt), 1e-4, 0.1),
        ("cache of ModernGPT", partial(cached, shape=modern), 1e-4, 0.1),
    ]


def compare(compute: Callable, here: "Place") -> tuple[float, str]:
    """By how much a place differs from the truth, and in which tensor: the length of
    the difference over the truth's, infinite for what is no number or raises."""
    try:
        found, truth, apart = compute(here), compute(TRUTH), []
        for name, right in truth.items():
            x = found[name].detach().cpu().double()
            share = ((x - right).norm() / right.norm()).item()
            apart.append((share if math.isfinite(share) else math.inf, name))
        return max(apart)
    except Exception as error:  # a device may raise anything
        return math.inf, f"{type(error).__name__}: {error}".splitlines()[0]


def examine(device: torch.device) -> Iterator[tuple]:
    """Yield the rows of the table: name, how much it differs, where, how much may."""
    with autocast(device):
        on = torch.is_autocast_enabled(device.type)
        narrow = torch.get_autocast_dtype(device.type) if on else None
    for name, compute, most, narrow_most in checks():
        yield name, *compare(compute, Place(device)), most
        if narrow and narrow_most:
            place = Place(device, narrow=narrow)
            yield f"{name}, 16 bits", *compare(compute, place), narrow_most


def add_options(parser: ArgumentParser) -> None:
    """The options of the command, for argparse."""
    parser.add_argument("--device", help="cuda, mps or cpu (default: the best)")


def main(options: Namespace) -> int:
    """The command: print the table; 0 if all agree, else 1."""
    device, bad = device_named(options.device), 0
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device
    print(f"torch {torch.__version__} on {platform.platform(terse=True)}: {name}\n")
    print(f"{'share of the result that':24}{'differs':>9}{'may':>9}")
    for name, differs, where, most in examine(device):
        verdict = "agrees" if differs <= most else f"DIFFERS: {where}"
        print(f"{name:24}{differs:9.0e}{most:9.0e}  {verdict}", flush=True)
        bad += differs > most
    if bad:
        print(
            f"\n{bad} do not agree: give --device cpu for now (or OMP_NUM_THREADS=1 for"
            " a CPU), and update torch and the drivers. If that does not help, report "
            "this table to https://github.com/pytorch/pytorch/issues."
        )
    else:
        print(f"\nAll agree: use {device} as it is.")
    return min(bad, 1)
