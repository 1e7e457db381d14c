"""The doctor: does a device compute what it should? One table tells.

    python -m minigpt doctor                 the best device there is
    python -m minigpt doctor --device mps    this one
    python -m minigpt doctor --compile       torch.compile too (minutes on a CPU)

Each check computes the same twice: on the device, in the numbers in which it trains,
and on the CPU in float64, whose own rounding is too small to matter. Some kernels have
gone wrong without a word: on Apple's GPUs, in-place operations that write into a
transposed tensor (PyTorch issue 118115), attention to transposed tensors with heads of
64 and more (163597, 181133), a causal mask in 16 bits that let the future through
(195910). So the checks use such tensors.
"""

import math
import platform
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.device import autocast
from minigpt.fast import writing
from minigpt.generation import generate, probabilities
from minigpt.gpt import GPTConfig
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig, modern_preset
from minigpt.tools.options import device_named
from minigpt.training import TrainConfig, preset

V = 65  # Tiny Shakespeare's vocabulary; no text is needed here
PROMPT = 5  # characters


class Place(NamedTuple):
    """Where to compute, and in which numbers; narrow: the 16-bit ones of autocast."""

    device: torch.device
    dtype: torch.dtype = torch.float32
    narrow: torch.dtype | None = None
    compiled: bool = False

    def put(self, x):
        """A tensor of the CPU, here: floating-point numbers in this place's dtype."""
        return x.to(self.device, self.dtype if x.is_floating_point() else None)

    def autocast(self):
        """The context of a forward pass."""
        return torch.autocast(self.device.type, self.narrow, self.narrow is not None)

    def model(self, shape):
        """A model whose weights are the same in every place."""
        if isinstance(shape, ModernConfig):
            shape = replace(shape, zero_init=False)  # logits that are not all 0
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)  # the CPU's alone
            model = shape.build().to(self.device, self.dtype)
        return torch.compile(model) if self.compiled else model


TRUTH = Place(torch.device("cpu"), torch.float64)


def numbers(*shape, seed=0):
    """Normal random numbers of a shape, the same on every machine."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(*shape):
    """Random token ids of a shape, the same on every machine."""
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(0))


# --- What is computed in a place: {name: tensor}. ---


def in_place(place):
    """What optimizers and caches write into a tensor that lies transposed or apart."""
    a, b, c = (place.put(numbers(24, 24, seed=i)) for i in range(3))
    found = {}
    for layout, lay in {
        "x": torch.clone,
        "x.t()": lambda x: x.clone().t(),
        "x[:, ::2]": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
    }.items():
        found |= {
            f"addcmul_ on {layout}": lay(a).addcmul_(b, c, value=0.5),
            f"addcdiv_ on {layout}": lay(a).addcdiv_(b, c.square() + 1, value=0.5),
            f"lerp_ on {layout}": lay(a).lerp_(b.t(), 0.3),
            f"mul_, sub_ on {layout}": lay(a).mul_(0.9).sub_(b, alpha=0.3),
            f"copy_ on {layout}": lay(a).copy_(b.t()),
        }
    return found


def attend(place, q, k, v):
    """Causal attention by torch's kernel; in the truth by lesson 03's formula."""
    if place.dtype != torch.float64:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    past = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return F.softmax(scores.masked_fill(~past, -torch.inf), dim=-1) @ v


def attention(place):
    """To views of one tensor, as in lesson 04, and to whole tensors; the gradients."""
    found = {}
    for B, T, H, D in [(2, 64, 4, 32), (3, 70, 2, 64), (5, 3, 3, 64)]:
        x = place.put(numbers(B, T, 3, H, D, seed=T)).requires_grad_()
        views = x.permute(2, 0, 3, 1, 4)  # (3, B, H, T, D)
        for lie, (q, k, v) in [("views", views), ("whole", views.contiguous())]:
            with place.autocast():
                out = attend(place, q, k, v)
            grads = torch.autograd.grad(out.square().sum(), x, retain_graph=True)
            name = f"T = {T}, head_size = {D}, {lie}"
            found |= {name: out, f"gradient, {name}": grads[0]}
    return found


def gradients(place, shape):
    """Logits and loss on eight windows of text, and the gradient of all weights."""
    model, x = place.model(shape), place.put(ids(8, shape.block_size + 1))
    with place.autocast():
        logits, loss = model(x[:, :-1], x[:, 1:])
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
    return {"logits": logits, "loss": loss, "gradient": gradient}


def training(place, shape, config):
    """The losses of ten steps, each of which starts where the last one led."""
    model, batches = place.model(shape), place.put(ids(10, 4, shape.block_size + 1))
    optimizer, found = config.make_optimizer(model), {}
    for step, x in enumerate(batches):
        with place.autocast():
            loss = model(x[:, :-1], x[:, 1:])[1]
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found[f"step {step}"] = loss
    return found


def knobs(place):
    """Probabilities under temperature, top_k and top_p."""
    x = place.put(numbers(16, V))
    settings = [(0.8, None, None), (1.0, 7, None), (0.5, None, 0.9), (1.3, 40, 0.7)]
    return {str(each): probabilities(x, *each) for each in settings}


def text(place, shape, write):
    """What the truth's likeliest tokens have before those that are written, plus 1: 1
    in any honest place, but for tokens as good as tied."""
    prompt = place.put(ids(3, PROMPT))
    with place.autocast():
        new = shape.block_size - PROMPT
        written = write(place.model(shape), prompt, new, temperature=0).cpu()
    with torch.no_grad():
        logits = TRUTH.model(shape)(written[:, :-1])[0][:, PROMPT - 1 :]
    chosen = logits.gather(2, written[:, PROMPT:, None])[..., 0]
    return {"tokens": 1 + (logits.amax(dim=2) - chosen) / logits.abs().max()}


# --- The table. ---


def checks():
    """[name, function, how much may differ in float32, and in 16 bits], each.

    That is ten times what float32 on a CPU loses, and four times what bf16 does; a
    wrong operation is off by 0.1 to 1. Where rounding carries the input of a ReLU
    across 0, a gradient appears or vanishes: the GPT's may differ more.
    """
    small = dict(vocab_size=V, block_size=32, n_layer=1, n_head=2, n_embd=128)
    gpt, modern = GPTConfig(**small), ModernConfig(**small)
    adamw, muon = TrainConfig(10, 4, 32, 3e-3), MuonConfig(10, 4, 32, 3e-3)
    cached = writing.generate
    return [
        ("in place, transposed", in_place, 1e-5, None),
        ("attention", attention, 2e-5, 0.05),
        ("GPT", partial(gradients, shape=preset("cpu", V)[0]), 0.02, 0.4),
        ("ModernGPT", partial(gradients, shape=modern_preset(V)[0]), 1e-4, 0.1),
        ("AdamW", partial(training, shape=gpt, config=adamw), 2e-3, 0.02),
        ("Muon", partial(training, shape=modern, config=muon), 2e-3, 0.02),
        ("probabilities", knobs, 1e-5, None),
        ("text", partial(text, shape=gpt, write=generate), 1e-4, 0.1),
        ("text, cached", partial(text, shape=modern, write=cached), 1e-4, 0.1),
    ]


class Row(NamedTuple):
    """By how much a check differs, how much may, and where, or what it raised."""

    name: str
    differs: float
    most: float
    where: str

    @property
    def agrees(self):
        return self.differs <= self.most

    def __str__(self):
        verdict = "agrees" if self.agrees else f"DIFFERS: {self.where}"
        return f"{self.name:24}{self.differs:9.0e}{self.most:9.0e}  {verdict}"


def compare(name, compute, most, here):
    """The Row of the tensor that is farthest from the truth."""
    try:
        found, truth = compute(here), compute(TRUTH)
        apart = {key: share(found[key], truth[key]) for key in truth}
    except Exception as error:  # a device may raise anything
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        return Row(name, math.inf, most, said)
    where = max(apart, key=apart.get)
    return Row(name, apart[where], most, where)


def share(found, truth):
    """The length of the difference over that of the truth; infinite for no number."""
    found, truth = found.detach().cpu().double(), truth.detach().double()
    if found.shape != truth.shape or not found.isfinite().all():
        return math.inf
    return ((found - truth).norm() / truth.norm()).item()


def examine(device, compiled=False):
    """Yield the Rows of a device, one after the other."""
    with autocast(device):
        on = torch.is_autocast_enabled(device.type)
        narrow = torch.get_autocast_dtype(device.type) if on else None
    for name, compute, most, narrow_most in checks():
        yield compare(name, compute, most, Place(device))
        if narrow and narrow_most:
            place = Place(device, narrow=narrow)
            yield compare(f"{name}, 16 bits", compute, narrow_most, place)
        if compiled and name in ("GPT", "ModernGPT"):
            place = Place(device, compiled=True)
            yield compare(f"{name}, compiled", compute, most, place)


def add_options(parser):
    """The options of the command, for argparse."""
    add = parser.add_argument
    add("--device", help="cuda, mps or cpu (default: the best there is)")
    add("--compile", action="store_true", help="torch.compile, too: it takes minutes")


def main(options):
    """The command: print the table; 0 if all agree, else 1."""
    device, bad = device_named(options.device), 0
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device
    print(f"torch {torch.__version__} on {platform.platform(terse=True)}: {name}\n")
    print(f"{'share of the result that':24}{'differs':>9}{'may':>9}")
    for row in examine(device, options.compile):
        print(row, flush=True)
        bad += not row.agrees
    if not bad:
        print(f"\nAll agree: use {device} as it is.")
        return 0
    print(
        f"\n{bad} do not agree: give --device cpu for now (or OMP_NUM_THREADS=1 for a "
        "CPU), and update torch and the drivers. If that does not help, report this "
        "table to https://github.com/pytorch/pytorch/issues."
    )
    return 1
