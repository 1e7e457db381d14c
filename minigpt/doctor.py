"""The doctor: does a device compute what it should? One table tells.

    python -m minigpt doctor                 the best device there is
    python -m minigpt doctor --device mps    this one
    python -m minigpt doctor --compile       torch.compile too (minutes on a CPU)

Each check computes the same twice: on the device, in the numbers it trains in, and on
the CPU in float64, whose own rounding is too small to matter. A GPU is timed beside
the CPU; where there is none, float32 on the CPU is what is judged. Some kernels have
gone wrong without a word: on Apple's GPUs, in-place operations that write into a
transposed tensor (PyTorch issue 118115), attention to transposed or sliced tensors of
head_size 64 and more (163597, 181133), a causal mask in 16 bits that let the future
through (195910). So the checks use such tensors.
"""

import contextlib
import math
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.data import load_text
from minigpt.device import autocast, devices, first_line, named
from minigpt.generation import generate, probabilities
from minigpt.gpt import GPTConfig
from minigpt.modern import ModernConfig
from minigpt.optimizer import make_optimizer
from minigpt.recipe import TrainConfig, preset
from minigpt.record import machine
from minigpt.speedrun import at_threads

V = 65  # Tiny Shakespeare's vocabulary; no text is needed here
SMALL = {"vocab_size": V, "block_size": 32, "n_layer": 1, "n_head": 2, "n_embd": 128}
SUSPECTS = [  # environment variables that let a device round more, or differently
    "PYTORCH_MPS_FAST_MATH",
    "PYTORCH_MPS_PREFER_METAL",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "ATEN_CPU_CAPABILITY",
]


class Place(NamedTuple):
    """Where to compute, and in which numbers.

    narrow: the 16-bit numbers of autocast, if any. inside(): a context for all that is
    computed. change(model): the model that computes in its place, as torch.compile.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    narrow: torch.dtype | None = None
    inside: Callable = contextlib.nullcontext
    change: Callable | None = None

    def put(self, x):
        """A tensor of the CPU, here: floating-point numbers in this place's dtype."""
        return x.to(self.device, self.dtype if x.is_floating_point() else None)

    def autocast(self):
        """The context of a forward pass."""
        if self.narrow is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.narrow)

    def wait(self):
        """Until all that was asked of the device has been computed."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).synchronize()


CPU = Place(torch.device("cpu"))
ONE_THREAD = CPU._replace(inside=partial(at_threads, 1))
TRUTH = CPU._replace(dtype=torch.float64)


def numbers(*shape, seed=0):
    """Normally distributed float32 numbers on the CPU, always the same ones."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator)


def ids(*shape, seed=0, top=V):
    """Token ids from 0 to top - 1 on the CPU, always the same ones."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(top, shape, generator=generator)


def model_at(place, shape, seed=0):
    """A model of this shape whose weights are the same in every place."""
    if isinstance(shape, ModernConfig):
        shape = replace(shape, zero_init=False)  # logits that are not all 0
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone
        model = shape.build()
    model = model.to(place.device, place.dtype)
    return model if place.change is None else place.change(model)


# --- What is computed: each prepares a place and returns what to call there, which
# --- gives {name: tensor}. ---


def copies(place):
    """Numbers that go there and come back: as they are, transposed, every second."""
    x, i = numbers(30, 40), ids(30, 40)

    def go():
        y, j = x.to(place.device), i.to(place.device)
        views = {"as they are": y, "x.t()": y.t(), "x[:, ::2]": y[:, ::2]}
        views |= {"ids": j, "x > 0": y > 0, "from x.t()": x.t().to(place.device).t()}
        return {name: view.cpu() for name, view in views.items()}

    return go


def in_place(place):
    """Operations of optimizers and caches that write into a tensor where it lies:
    transposed, a slice, every second column."""
    a, b, c = (place.put(numbers(24, 24, seed=i)) for i in range(3))
    d = c.square() + 1  # a divisor
    wide = place.put(numbers(24, 72, seed=3))
    layouts = {
        "x": torch.clone,
        "x.t()": lambda x: x.clone().t(),
        "x[:, 24:48]": lambda x: torch.cat([x, x, x], dim=1)[:, 24:48],
        "x[:, ::2]": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
    }
    operations = {
        "addcmul_": lambda x: x.addcmul_(b, d, value=0.5),
        "addcdiv_": lambda x: x.addcdiv_(b, d, value=0.5),
        "lerp_": lambda x: x.lerp_(b.t(), 0.3),
        "mul_, sub_": lambda x: x.mul_(0.9).sub_(b, alpha=0.3),
        "sqrt_": lambda x: x.abs_().sqrt_(),
        "masked_fill_": lambda x: x.masked_fill_(b > 0, 2.0),
        "copy_": lambda x: x.copy_(b.t()),
        "x[...] = y": lambda x: x.__setitem__((slice(None), slice(3, 9)), b[:, 3:9]),
        "addmm_": lambda x: x.addmm_(b.t(), wide[:, 1::3]),
    }
    drawn = torch.Generator(place.device).manual_seed(0)

    def go():
        out = {}
        for layout, lay in layouts.items():
            for name, operation in operations.items():
                x = lay(a)
                operation(x)
                out[f"{name} on {layout}"] = x
            x = lay(torch.zeros_like(a)).normal_(generator=drawn)
            out[f"normal_ on {layout}"] = (x != 0).to(place.dtype).mean()  # all drawn?
        return out

    return go


def attend(place, q, k, v, mask=None):
    """Attention by torch's kernel; in the truth by lesson 03's formula. No mask: the
    causal one."""
    if place.dtype == torch.float64:
        past = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~(past if mask is None else mask), -torch.inf)
        return F.softmax(scores, dim=-1) @ v
    causal = mask is None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)


def attention(place, transposed=False):
    """Its output and its gradients, for short and long texts, narrow and wide heads.

    transposed: queries, keys and values are views of one tensor, as in lesson 04, and
    one new query reads the part of a cache that is filled, as in lesson 09.
    """
    inputs = {}
    for B, T, H, D in [(2, 64, 4, 32), (3, 70, 2, 64), (5, 3, 3, 64)]:
        inputs[f"T = {T}, head_size = {D}"] = place.put(numbers(B, T, 3, H, D, seed=T))
    new, slots = place.put(numbers(3, 1, 2, 64)), place.put(numbers(2, 3, 2, 64, 64))
    reads = place.put(torch.arange(38)[None, :] >= torch.arange(0, 9, 3)[:, None])
    masks = {
        "one query, 38 keys": torch.ones_like(reads)[:, None, None],
        "one query, a mask for each row": reads[:, None, None],
    }

    def go():
        out = {}
        for name, x in inputs.items():
            x = x.detach().requires_grad_()
            q, k, v = x.permute(2, 0, 3, 1, 4)
            if not transposed:
                q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
            with place.autocast():
                out[name] = attend(place, q, k, v)
            out[name].square().sum().backward()
            out[f"gradient, {name}"] = x.grad
        for name, mask in masks.items():
            q, (k, v) = new.transpose(1, 2), slots[..., :38, :]
            if not transposed:
                k, v = k.contiguous(), v.contiguous()
            with place.autocast():
                out[name] = attend(place, q, k, v, mask)
        return out

    return go


def logits(place, shape, rows):
    """What a model says of `rows` windows of text."""
    model, x = model_at(place, shape), place.put(ids(rows, shape.block_size))

    def go():
        with torch.no_grad(), place.autocast():
            return {"logits": model(x)[0]}

    return go


def gradients(place, shape, rows):
    """The loss on `rows` windows, and the gradient of every weight."""
    model, x = model_at(place, shape), place.put(ids(rows, shape.block_size + 1))

    def go():
        with place.autocast():
            loss = model(x[:, :-1], x[:, 1:])[1]
        model.zero_grad()
        loss.backward()
        found = {"loss": loss.detach()}
        for name, p in model.named_parameters():
            found[name.removeprefix("_orig_mod.")] = p.grad  # torch.compile's prefix
        return found

    return go


def plan(kind):
    """A short training, with "adamw" or "muon"."""
    return TrainConfig(10, 4, 32, learning_rate=3e-3, optimizer=kind)


def updates(place, kind, seed=0):
    """How five steps of an optimizer move the weights, given the gradients, where
    matrices lie transposed in memory; AdamW once fused and once in single steps."""
    shape = GPTConfig(**SMALL)

    def go():
        out = {}
        for way in ("fused", "single") if kind == "adamw" else ("muon",):
            model = model_at(place, shape, seed)
            for p in model.parameters():
                if p.dim() == 2:
                    p.data = p.data.t().contiguous().t()
            before = {name: p.detach().clone() for name, p in model.named_parameters()}
            optimizer = make_optimizer(model, plan(kind))
            if way == "single":
                optimizer = torch.optim.AdamW(model.parameters(), 3e-3, foreach=False)
            for step in range(5):
                for i, p in enumerate(model.parameters()):
                    grad = numbers(*p.shape, seed=1000 * seed + 100 * step + i)
                    p.grad = torch.empty_like(p).copy_(place.put(grad))
                optimizer.step()
            for name, p in model.named_parameters():
                out[f"{name}, {way}"] = p.detach() - before[name]
        return out

    return go


def training(place, kind, shape):
    """The losses of ten steps, each of which starts where the last one led."""
    batches = place.put(ids(10, 4, shape.block_size + 1))

    def go():
        model, losses = model_at(place, shape), []
        optimizer = make_optimizer(model, plan(kind))
        for x in batches:
            with place.autocast():
                loss = model(x[:, :-1], x[:, 1:])[1]
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        return {"losses": torch.stack(losses)}

    return go


def large_vocabulary(place, size=50_257):
    """Embedding, logits and loss over GPT-2's vocabulary, and their gradient."""
    table, i = place.put(0.1 * numbers(size, 32)), ids(64, top=size)
    i[:2] = torch.tensor([0, size - 1])
    i = place.put(i)

    def go():
        rows = table.detach().requires_grad_()
        loss = F.cross_entropy(F.embedding(i[:-1], rows) @ rows.t(), i[1:])
        loss.backward()
        return {"loss": loss.detach(), "gradient": rows.grad}

    return go


def knobs(place):
    """Probabilities under temperature, top_k and top_p; draws that are certain."""
    x = place.put(numbers(16, V))
    certain = ids(16)
    one_hot = place.put(F.one_hot(certain, V).float())
    settings = [(0.8, None, None), (1.0, 7, None), (0.5, None, 0.9), (1.3, 40, 0.7)]

    def go():
        out = {str(each): probabilities(x, *each) for each in settings}
        out["draws"] = torch.multinomial(one_hot, 1)
        return out

    return go


PROMPT = 5


def text(place, shape, cache):
    """What a model writes after three prompts, the likeliest token each time."""
    model, prompt = model_at(place, shape), place.put(ids(3, PROMPT))
    new = shape.block_size - PROMPT

    def go():
        with place.autocast():
            return {"text": generate(model, prompt, new, temperature=0, cache=cache)}

    return go


# --- How far two results are apart. ---


def apart(found, truth, whole=False):
    """The largest difference, as a share of the largest number of its tensor in the
    truth, and that tensor's name; with whole=True, of all differences and all numbers
    the root of the sum of squares. What is no number is infinitely far away."""
    worst, where = 0.0, ""
    measure = torch.linalg.vector_norm if whole else torch.amax
    for name, right in truth.items():
        x, right = found[name].detach().cpu().double(), right.detach().cpu().double()
        if x.shape != right.shape or not x.isfinite().all():
            return math.inf, name
        share = measure((x - right).abs()) / (measure(right.abs()) or 1.0)
        if share > worst:
            worst, where = share.item(), name
    return worst, where


def given_away(shape, found, truth):
    """By how much the true logits of the tokens written stay below the likeliest
    ones', as a share of the largest logit: 0 where the texts are equal, and the size
    of the rounding where two tokens are as good as tied."""
    model, written = model_at(TRUTH, shape), found["text"].cpu()
    if written.shape != truth["text"].shape or not 0 <= written.min() <= written.max():
        return math.inf, "shape"
    if written.max() >= V:
        return math.inf, "a token that does not exist"
    with torch.no_grad():
        right = model(written[:, :-1])[0][:, PROMPT - 1 :]
    chosen = right.gather(2, written[:, PROMPT:, None])[..., 0]
    lost = (right.amax(dim=2) - chosen).max() / right.abs().max()
    return lost.item(), "text"


# --- The checks, and how much rounding each may show. ---


class Check(NamedTuple):
    """What is compared; the largest share that may differ in float32, and in bf16
    (None: not computed in it)."""

    name: str
    prepare: Callable
    most: float
    narrow: float | None = None
    judge: Callable = apart


def checks(small=False):
    """All Checks: of the presets' sizes, or of small ones.

    What may differ is ten times or more what float32 on a CPU lost over 30 seeds, and
    four times or more what bf16 lost there; a wrong operation is off by 0.1 to 1.
    Gradients are compared as a whole: where rounding moves the input of a ReLU across
    0, single ones pass or do not (in float32 once in the 30 seeds, by 0.01 of the
    largest; in bf16 always, by up to 0.3). So the GPT's may differ more than those of
    today's decoder, which squares its ReLU.
    """
    gpt, modern = GPTConfig(**SMALL), ModernConfig(**SMALL)
    sizes = [("GPT", gpt, 4, 0.02, 0.4), ("ModernGPT", modern, 4, 1e-4, 0.1)]
    if not small:
        sizes = [
            ("preset cpu", preset("cpu", V)[0], 16, 0.02, 0.4),
            ("preset modern", preset("modern", V)[0], 8, 1e-4, 0.1),
        ]
    strided = partial(attention, transposed=True)
    found = [
        Check("copied there and back", copies, 0.0),
        Check("in place, transposed", in_place, 1e-5),
        Check("attention", attention, 2e-5, 0.05),
        Check("attention, transposed", strided, 2e-5, 0.05),
        Check("50,257 tokens: loss, gradient", large_vocabulary, 2e-5),
    ]
    for name, shape, rows, most, narrow in sizes:
        size, whole = {"shape": shape, "rows": rows}, partial(apart, whole=True)
        step = partial(gradients, **size)
        found += [
            Check(f"{name}: logits", partial(logits, **size), 1e-4, 0.1),
            Check(f"{name}: gradients", step, most, narrow, whole),
        ]
    for name, kind, shape in [("AdamW", "adamw", gpt), ("Muon", "muon", modern)]:
        losses = partial(training, kind=kind, shape=shape)
        found += [
            Check(f"{name}: five updates", partial(updates, kind=kind), 5e-4),
            Check(f"{name}: ten losses", losses, 2e-3, 0.02),
        ]
    found.append(Check("probabilities, draws", knobs, 1e-5))
    for name, shape in [("GPT", gpt), ("ModernGPT", modern)]:
        judge = partial(given_away, shape)
        for way, cache in [("cached", True), ("uncached", False)]:
            write = partial(text, shape=shape, cache=cache)
            found.append(Check(f"text of {name}, {way}", write, 1e-4, 0.1, judge))
    return found


# --- The examination. ---


class Row(NamedTuple):
    """What a Check found: by how much it differs and where, how much may; seconds here
    and in the place beside it; what it raised, if it did."""

    name: str
    differs: float
    most: float
    where: str = ""
    seconds: float = math.nan
    beside: float = math.nan
    error: str = ""
    asked: bool = True  # False: it may also fail to run

    @property
    def agrees(self):
        """True if it ran and differs by no more than it may."""
        return not self.error and self.differs <= self.most

    @property
    def fails(self):
        """True if that is a fault of the device."""
        return not self.agrees and (self.asked or not self.error)

    @property
    def reason(self):
        """Why it does not agree, in a few words."""
        at = f" at {self.where}" if self.where else ""
        return self.error or f"differs by {self.differs:.0e}{at}"


def compute(check, place, seconds=None):
    """What a check gives in a place, and the median time of doing it again and again
    for so many seconds (None: of doing it once)."""
    with place.inside():
        go, times = check.prepare(place), []
        while not times or (seconds is not None and sum(times[1:]) <= seconds):
            start = time.perf_counter()
            found = go()
            place.wait()
            times.append(time.perf_counter() - start)
    return found, statistics.median(times[1:] or times)


def compare(check, here, truth=TRUTH, beside=None, seconds=None):
    """A Row: a check here against the truth, timed here and in another place."""
    most = check.most if here.narrow is None else check.narrow
    row = Row(check.name + ", bf16" * (here.narrow is not None), math.inf, most)
    try:
        found, taken = compute(check, here, seconds)
        right, _ = compute(check, truth)
        there = compute(check, beside, seconds)[1] if beside else math.nan
        differs, where = check.judge(found=found, truth=right)
    except Exception as error:  # a device may raise anything
        return row._replace(error=said(error))
    return row._replace(differs=differs, where=where, seconds=taken, beside=there)


def examine(here, compile=False, small=False, seconds=None, beside=None):
    """Yield the Rows of a Place, one after the other.

    compile: torch.compile too; None: but it need not run. small: shorter, on small
    models. seconds: how long each is timed for, here and in the Place `beside`.
    """
    found = checks(small)
    for check in found:
        yield compare(check, here, beside=beside, seconds=seconds)
    if narrow := numbers_of_training(here.device):
        place = here._replace(narrow=narrow)
        for check in found:
            if check.narrow is not None:
                yield compare(check, place, beside=beside, seconds=seconds)
    steps = [check for check in found if check.name.endswith(": gradients")]
    if beside == ONE_THREAD:
        threads = torch.get_num_threads()
        for check in steps:
            check = check._replace(name=f"{check.name}, {threads} threads")
            yield compare(check, here, truth=ONE_THREAD)
    if compile or compile is None:
        for check in steps:
            check = check._replace(name=f"{check.name}, compiled")
            place = here._replace(change=torch.compile)
            with warnings.catch_warnings():  # rotary positions stay as they are
                warnings.filterwarnings("ignore", "Torchinductor .* complex operators")
                row = compare(check, place, beside=beside, seconds=seconds)
            yield row._replace(asked=bool(compile))


def numbers_of_training(device):
    """The 16-bit numbers in which this device trains; None for float32."""
    with autocast(device):
        on = torch.is_autocast_enabled(device.type)
        return torch.get_autocast_dtype(device.type) if on else None


QUICK = [  # what has gone wrong before, and what a training and a text rest on
    "copied there and back",
    "in place, transposed",
    "attention, transposed",
    "GPT: gradients",
    "AdamW: five updates",
    "text of ModernGPT, cached",
]


def fault(device, **place):
    """What is wrong with a device, in a few words, or "": the QUICK checks, on small
    models, also in the 16-bit numbers it trains in. place: other fields of Place."""
    try:
        here, narrow = Place(device, **place), numbers_of_training(device)
    except Exception as error:  # it says that it is there, and is not
        return said(error)
    for check in checks(small=True):
        if check.name in QUICK:
            rows = [compare(check, here)]
            if narrow is not None and check.narrow is not None:
                rows.append(compare(check, here._replace(narrow=narrow)))
            for row in rows:
                if row.fails:
                    return f"{row.name}: {row.reason}"
    return ""


def said(error):
    """An error in one line."""
    return f"{type(error).__name__}: {first_line(error)}"


# --- What is said. ---


def about(device):
    """This machine and the device in it, as lines of text."""
    name, size = "the CPU", memory()
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        name, size = f"{device}, {properties.name}", properties.total_memory
    elif device.type == "mps":
        name, size = "mps, Apple's GPU", torch.mps.recommended_max_memory()
    elif device.type != "cpu":
        name = str(device)
    has = f"{name}, {size / 1e9:.1f} GB of memory" if size else name
    narrow = numbers_of_training(device)
    trains = "float32" if narrow is None else f"{narrow}".removeprefix("torch.")
    lines = [
        f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{platform.platform(terse=True)}",
        f"{machine()}; {os.cpu_count()} cores",
        f"Examined: {has}; it trains in {trains}.",
    ]
    if narrow is None and device.type == "cuda":
        lines[-1] += " This GPU has no bf16 of its own."
    if device.type == "cpu":
        gpus = [str(d) for d in devices() if d.type != "cpu"]
        others = f"There is also {gpus[0]}." if gpus else "torch finds no GPU here."
        lines.append(others)
    try:
        lines.append(
            f"Tiny Shakespeare: found, {len(load_text(substitute=False)):,} characters."
        )
    except (OSError, ValueError) as error:
        lines.append(str(error))
    return lines


def memory():
    """Bytes of memory of this machine; None where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None


def head(here, beside=""):
    """The first lines of the table: what was timed here, and beside it."""
    said = "Differences as a share of the largest number; times in milliseconds."
    text = f"{said}\n\n{'':36}{'differs':>7}{'allowed':>8}{'':10}{here:>10}"
    return text + (f"{beside:>10}" if beside else "")


def line(row):
    """A Row as a line of the table; times in milliseconds."""
    if row.error:
        return f"{row.name:36}{'':17}{'FAILS' if row.fails else 'does not run'}"
    text = f"{row.name:36}{row.differs:7.0e}{row.most:8.0e}  "
    text += f"{'agrees' if row.agrees else 'DIFFERS':8}"
    for seconds in (row.seconds, row.beside):
        text += "" if math.isnan(seconds) else f"{1000 * seconds:10.1f}"
    return text


PARTS = {  # of the table in brief: what stands in the names of its checks
    "copies": ["copied"],
    "writing in place": ["in place"],
    "attention": ["attention"],
    "forward pass": ["logits", "probabilities"],
    "loss and gradients": ["gradient"],
    "training steps": ["updates", "losses"],
    "text": ["text of"],
}


def brief(rows):
    """The table in a few lines without numbers: each part agrees, or what does not."""
    lines = []
    for part, words in PARTS.items():
        own = [row for row in rows if any(word in row.name for word in words)]
        bad = [f"{row.name}: {row.reason}" for row in own if row.fails]
        verdict = "NO, " + "; ".join(bad) if bad else "agrees"
        lines.append(f"{part:20}{verdict if own else 'not checked'}")
    return "\n".join(lines)


def remedy(device, rows):
    """One sentence: what to do about these Rows."""
    bad = [row for row in rows if row.fails]
    if not bad:
        return f"All {len(rows)} agree: use {device} as it is."
    way = "OMP_NUM_THREADS=1" if device.type == "cpu" else "--device cpu"
    names = [name for name in SUSPECTS if name in os.environ]
    unset = f", unset {' and '.join(names)}" if names else ""
    driver = "" if device.type == "cpu" else " and the system with its drivers"
    return (
        f"{len(bad)} of {len(rows)} do not agree: compute with {way} for now, update "
        f"torch{driver}{unset}, and if that does not help, report this table to "
        "https://github.com/pytorch/pytorch/issues."
    )


def add_options(parser):
    """The options of the command, for argparse."""
    parser.add_argument(
        "--device", help="cuda, mps or cpu (default: the best there is)"
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="torch.compile too, as always on a GPU (on a CPU it takes minutes)",
    )


def main(options):
    """The command: print the table; 0 if all agree, else 1. Raises ValueError if the
    device is not there."""
    device = named(options.device) if options.device else devices()[0]
    threads, beside, names = torch.get_num_threads(), CPU, (str(device), "cpu")
    if device.type == "cpu":
        beside = ONE_THREAD if threads > 1 else None
        names = (f"{threads} threads", "1 thread") if beside else ("1 thread",)
    compile = options.compile or (None if device.type != "cpu" else False)
    print("\n".join(about(device)) + "\n\n" + head(*names), flush=True)
    rows = []
    for row in examine(Place(device), compile, seconds=0.1, beside=beside):
        rows.append(row)
        print(line(row), flush=True)
    for row in rows:
        if not row.agrees:
            print(f"\n{row.name}: {row.reason}")
    print("\n" + remedy(device, rows))
    return int(any(row.fails for row in rows))
