"""The benchmark: nanoGPT's CPU demo beside the presets, taking turns in one run.

    python -m minigpt bench            six minutes
    python -m minigpt bench --quick    a short look

Whoever shares the machine slows all of them alike, because they take turns every few
steps. Measured are a step and its parts, and the exact loss against the seconds of
training (tables included, evaluation outside the clock).
"""

import math
import time
from dataclasses import replace
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.gpt import GPTConfig
from minigpt.modern.counting import CountingGPT, fit_smoothing, fold_batch
from minigpt.modern.counts import ContextCounts
from minigpt.modern.recipe import counting_preset, modern_preset
from minigpt.tools.speedrun import THREADS, DemoConfig, at_threads, demo, open_text
from minigpt.training import preset

GOAL = 1.898  # what nanoGPT's CPU demo reaches, exact, in windows of its context
DEMO, RECONSTRUCTED = "demo, our GPT", "demo, nanoGPT's way"
PARTS = ["drawing", "forward", "backward", "optimizer"]


class Contender(NamedTuple):
    """Who is measured: a config with build(), a TrainConfig (its steps are set anew),
    the longest context to count, if any, and its share of the demo's time."""

    shape: object
    plan: object
    order: int | None = None
    share: float = 1.0


def contenders(vocab_size):
    """{name: Contender}; the demo stands first, the others get its time or a share.

    Where a shorter run has a name of its own, its schedule is as short as itself.
    """
    modern, counted = modern_preset(vocab_size), counting_preset(vocab_size)
    shape, plan = demo(vocab_size)
    theirs = Reconstructed(**vars(shape)), TheirConfig(**vars(plan))
    return {
        DEMO: Contender(shape, plan),
        RECONSTRUCTED: Contender(*theirs),
        "preset cpu": Contender(*preset("cpu", vocab_size), share=1 / 2),
        "preset modern": Contender(*modern),
        "with counts": Contender(*counted, order=8),
        "modern, 1/6 of the time": Contender(*modern, share=1 / 6),
        "with counts, 1/6 of the time": Contender(*counted, order=8, share=1 / 6),
    }


class Reconstructed(GPTConfig):
    """A GPT of this shape as nanoGPT's README and model describe it: GELU, no biases,
    the head tied to the embedding. Ours, in our words; see Karpathy, nanoGPT (2022)."""

    def build(self):
        """A model of this shape, with new weights."""
        return ReconstructedGPT(self)


class TheirConfig(DemoConfig):
    """The demo's recipe; AdamW is not fused there on a CPU."""

    def make_optimizer(self, model):
        optimizer = super().make_optimizer(model)
        for group in optimizer.param_groups:
            group["fused"] = False
        return optimizer


class ReconstructedGPT(nn.Module):
    """model(idx, targets) -> logits (B, T, vocab_size), loss."""

    def __init__(self, shape):
        super().__init__()
        self.n_head, self.block_size = shape.n_head, shape.block_size
        C, linear = shape.n_embd, partial(nn.Linear, bias=False)
        self.tokens = nn.Embedding(shape.vocab_size, C)
        self.positions = nn.Embedding(shape.block_size, C)
        self.blocks = nn.ModuleList()
        for _ in range(shape.n_layer):
            norm1, norm2 = nn.LayerNorm(C, bias=False), nn.LayerNorm(C, bias=False)
            qkv, proj = linear(C, 3 * C), linear(C, C)
            expand, shrink = linear(C, 4 * C), linear(4 * C, C)
            parts = [norm1, qkv, proj, norm2, expand, shrink]
            self.blocks.append(nn.ModuleList(parts))
            for each in (proj, shrink):
                each.std = 0.02 / math.sqrt(2 * shape.n_layer)
        self.norm, self.drop = nn.LayerNorm(C, bias=False), nn.Dropout(0.0)
        self.head = linear(C, shape.vocab_size)
        self.head.weight = self.tokens.weight
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=getattr(module, "std", 0.02))

    def forward(self, idx, targets):
        """idx, targets: (B, T)."""
        B, T = idx.shape
        x = self.drop(self.tokens(idx) + self.positions(torch.arange(T)))
        for norm1, qkv, proj, norm2, expand, shrink in self.blocks:
            q, k, v = qkv(norm1(x)).split(x.shape[-1], dim=2)
            q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
            x = x + self.drop(proj(y.transpose(1, 2).contiguous().view(B, T, -1)))
            x = x + self.drop(shrink(F.gelu(expand(norm2(x)))))
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Training:
    """A contender in the middle of its training. `seconds` runs while it counts and
    learns; `parts` holds, for each step made, the seconds of its PARTS."""

    def __init__(self, contender, text, tables=None, seed=1337):
        plan = self.plan = replace(contender.plan, seed=seed)
        torch.manual_seed(seed)
        if tables is None:
            self.seconds, self.model = 0.0, contender.shape.build()
            sizes = {"batch_size": plan.batch_size, "block_size": plan.block_size}
            self.draw = partial(get_batch, text.train, **sizes)
        else:
            counts, smoothing, self.seconds = tables
            self.model = CountingGPT(contender.shape, counts, smoothing)
            self.draw = partial(fold_batch, self.model, text.train, plan)
        self.optimizer = plan.make_optimizer(self.model)
        self.generator = torch.Generator().manual_seed(seed)
        self.step, self.parts, self.curve = 0, [], []

    def advance(self, steps):
        """Make so many steps, each as `train` makes it."""
        self.model.train()
        for _ in range(steps):
            times = [time.perf_counter()]
            for group in self.optimizer.param_groups:
                group["lr"] = self.plan.learning_rate_at(self.step)
            x, y = self.draw(generator=self.generator)
            times.append(time.perf_counter())
            loss = self.model(x, y)[1]
            times.append(time.perf_counter())
            self.optimizer.zero_grad()
            loss.backward()
            times.append(time.perf_counter())
            nn.utils.clip_grad_norm_(self.model.parameters(), self.plan.grad_clip)
            self.optimizer.step()
            times.append(time.perf_counter())
            self.step += 1
            self.seconds += times[-1] - times[0]
            self.parts.append([b - a for a, b in zip(times, times[1:])])

    def judge(self, val):
        """Put the exact loss on val (N,) on the curve: (seconds, nats per token)."""
        loss = evaluate(self.model, val, self.model.block_size)
        self.curve.append((self.seconds, loss))


def count_tables(contender, text):
    """Counts and discounts of a contender: ContextCounts, Smoothing, seconds."""
    start = time.perf_counter()
    counts = ContextCounts(text.train, text.vocab_size, contender.order)
    smoothing = fit_smoothing(counts, text.train, contender.plan)
    return counts, smoothing, time.perf_counter() - start


def step_times(trainings, rounds, chunk=5):
    """{name: {part: milliseconds, "step": milliseconds}}: medians over steps made in
    turns of `chunk`; a first turn warms up."""
    for _ in range(rounds + 1):
        for training in trainings.values():
            training.advance(chunk)
    found = {}
    for name, training in trainings.items():
        steps = training.parts[chunk:]
        parts = {part: [s[i] for s in steps] for i, part in enumerate(PARTS)}
        parts["step"] = [sum(s) for s in steps]
        found[name] = {k: round(1000 * median(v), 3) for k, v in parts.items()}
    return found


def learn(trainings, val, turns=48):
    """Train all to the end of their plans, in `turns` turns; judge on the way.

    They are judged at the start, at the end, and in between the oftener the earlier.
    """
    stops = {0} | {round(turns * share) for share in (1 / 12, 1 / 6, 1 / 3, 2 / 3, 1)}
    for turn in range(turns + 1):
        for training in trainings.values():
            training.advance(training.plan.steps * turn // turns - training.step)
            if turn in stops:
                training.judge(val)


def bench(text, known, demo_steps=2000, rounds=20):
    """Measure the contenders `known` on a Text: {"milliseconds", "steps", "curves"}.

    The first of them makes demo_steps steps; the others as many as fit into the same
    time, tables included, or into their share of it.
    """
    with at_threads(THREADS):
        tables = {None: None}
        for c in known.values():
            if c.order not in tables:
                tables[c.order] = count_tables(c, text)
        timed = {n: Training(c, text, tables[c.order]) for n, c in known.items()}
        times, running = step_times(timed, rounds), {}
        limit = demo_steps * next(iter(times.values()))["step"] / 1000
        for name, c in known.items():
            t = running[name] = Training(c, text, tables[c.order])
            left = c.share * limit - t.seconds
            steps = max(5, round(1000 * left / times[name]["step"]))
            t.plan = replace(t.plan, steps=steps)
        learn(running, text.val)
    curves = {
        name: [[round(s, 2), round(loss, 4)] for s, loss in t.curve]
        for name, t in running.items()
    }
    steps = {name: t.plan.steps for name, t in running.items()}
    return {"goal": GOAL, "milliseconds": times, "steps": steps, "curves": curves}


def seconds_to(curve, loss):
    """When a curve [(seconds, loss)] first falls to a loss; None if it never does."""
    for (s0, high), (s1, low) in zip(curve[:1] + curve, curve):
        if low <= loss:
            fallen = 1.0 if high <= low else min(1.0, (high - loss) / (high - low))
            return s0 + max(0.0, fallen) * (s1 - s0)
    return None


def table(result):
    """What `bench` measured as lines of text, for print()."""
    curves, ms = result["curves"], result["milliseconds"]
    width = max(map(len, ms)) + 2
    heads = "".join(f"{part:>11}" for part in ["a step", *PARTS])
    lines = [f"{'milliseconds of':{width}}{heads}"]
    for name, parts in ms.items():
        cells = "".join(f"{parts[part]:11.2f}" for part in ["step", *PARTS])
        lines.append(f"{name:{width}}{cells}")
    ratio = ms[DEMO]["step"] / ms[RECONSTRUCTED]["step"]
    lines.append(f"A step of the demo takes {ratio:.2f} of nanoGPT's way's time.")
    to_goal = f"s to {result['goal']}"
    lines += [
        "",
        f"{'trained':{width}}{'steps':>7}{'seconds':>9}{'loss':>8}{to_goal:>12}",
    ]
    for name, curve in curves.items():
        (seconds, loss), to = curve[-1], seconds_to(curve, result["goal"])
        lines.append(
            f"{name:{width}}{result['steps'][name]:7,}{seconds:9.1f}{loss:8.3f}"
            f"{'never' if to is None else f'{to:.1f}':>12}"
        )
    return "\n".join(lines)


def add_options(parser):
    """The options of the command, for argparse."""
    parser.add_argument("--quick", action="store_true", help="a twentieth of it")


def main(options):
    """The command: measure, print the table."""
    text = open_text()
    known = contenders(text.vocab_size)
    print("Timing steps, then training in turns ...", flush=True)
    if options.quick:
        text = text._replace(val=text.val[:10_000])
        result = bench(text, known, demo_steps=100, rounds=3)
    else:
        result = bench(text, known)
    print(f"\n{table(result)}")
    return 0
