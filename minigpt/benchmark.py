"""The benchmark: nanoGPT's CPU demo beside the presets, taking turns in one run.

    python -m minigpt bench            seven minutes; writes the record, the figure
    python -m minigpt bench --quick    a short look, which writes nothing

Whoever shares the machine slows all of them alike, because they take turns every few
steps. Measured are a step and its parts, the memory it takes, writing, and the exact
loss against the seconds of training (tables included, evaluation outside the clock).
"""

import json
import math
import time
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt import measure, record
from minigpt.cache import can_cache
from minigpt.counting import ContextCounts, CountingGPT, fit_smoothing
from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.experiments.speedrun import shapes_and_plans
from minigpt.files import replacing
from minigpt.generation import generate
from minigpt.optimizer import learning_rate_at, make_optimizer
from minigpt.speedrun import THREADS, at_threads, demo, open_text
from minigpt.training import preset

GOAL = 1.898  # what nanoGPT's CPU demo reaches, exact, in windows of its context
DEMO, RECONSTRUCTED = "demo, our GPT", "demo, nanoGPT's way"
PARTS = ["drawing", "forward", "backward", "optimizer"]
FIGURE = Path(__file__).resolve().parents[1] / ".github" / "bench.png"
WAYS = {  # of writing: lesson 09's, and lesson 06's
    "cached": generate,
    "uncached": partial(generate, cache=False, window="slide"),
}


class Contender(NamedTuple):
    """Who is measured: a config with build(), a TrainConfig (its steps are set anew),
    the longest context to count (None: none), and for how much of the demo's time it
    trains (0: only its steps are timed)."""

    shape: object
    plan: object
    order: int | None = None
    share: float = 1.0


def contenders(vocab_size):
    """{name: Contender}; the demo stands first, the others get its time or a share.

    Shares below 1 keep the whole run near seven minutes; where a shorter run has a
    name of its own, its schedule is as short as itself.
    """
    cpu, modern = preset("cpu", vocab_size), preset("modern", vocab_size)
    counted = shapes_and_plans(vocab_size)["+ counts"]
    shape, plan = demo(vocab_size)
    return {
        DEMO: Contender(shape, plan),
        RECONSTRUCTED: Contender(Reconstructed(shape), plan),
        "preset cpu": Contender(*cpu, share=1 / 2),
        "preset modern": Contender(*modern),
        "with counts": Contender(*counted, order=8),
        "modern, 1/6 of the time": Contender(*modern, share=1 / 6),
        "with counts, 1/6 of the time": Contender(*counted, order=8, share=1 / 6),
    }


# --- nanoGPT's step, reconstructed from its published description. ---


class Reconstructed(NamedTuple):
    """A GPT of this shape as nanoGPT's README and model describe it: GELU, no biases,
    the head tied to the embedding. Ours, in our words; see Karpathy, nanoGPT (2022)."""

    shape: object

    def build(self):
        """A model of this shape, with new weights."""
        return ReconstructedGPT(self.shape)


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
            block = {
                "norm1": nn.LayerNorm(C, bias=False),
                "qkv": linear(C, 3 * C),
                "proj": linear(C, C),
                "norm2": nn.LayerNorm(C, bias=False),
                "expand": linear(C, 4 * C),
                "shrink": linear(4 * C, C),
            }
            self.blocks.append(nn.ModuleDict(block))
        self.norm, self.drop = nn.LayerNorm(C, bias=False), nn.Dropout(0.0)
        self.head = linear(C, shape.vocab_size)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("proj.weight", "shrink.weight"))
                nn.init.normal_(p, std=0.02 / (2 * shape.n_layer) ** (0.5 * last))
        self.head.weight = self.tokens.weight

    def forward(self, idx, targets):
        """idx, targets: (B, T)."""
        B, T = idx.shape
        x = self.drop(self.tokens(idx) + self.positions(torch.arange(T)))
        for block in self.blocks:
            q, k, v = block["qkv"](block["norm1"](x)).split(x.shape[-1], dim=2)
            q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
            y = y.transpose(1, 2).contiguous().view(B, T, -1)
            x = x + self.drop(block["proj"](y))
            y = F.gelu(block["expand"](block["norm2"](x)))
            x = x + self.drop(block["shrink"](y))
        logits = self.head(self.norm(x))
        loss = F.cross_entropy(
            logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-1
        )
        return logits, loss


def reconstructed_optimizer(model, plan):
    """AdamW with decay on what has two dimensions; on a CPU not fused there."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": plan.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, plan.learning_rate, (0.9, plan.beta2))


def window_by_window(ids, plan):
    """draw(generator) -> x, y (B, T): each window cut from 16-bit numbers in memory."""
    data = ids.to(torch.int16).numpy()

    def cut(start):
        return torch.from_numpy(data[start : start + plan.block_size].astype("int64"))

    def draw(generator):
        last = len(data) - plan.block_size
        starts = torch.randint(last, (plan.batch_size,), generator=generator)
        x = torch.stack([cut(start) for start in starts])
        return x, torch.stack([cut(start + 1) for start in starts])

    return draw


# --- A training that is stopped and timed at every part of a step. ---


class Training:
    """A contender in the middle of its training. `seconds` runs while it counts and
    learns; `parts` holds, for each step made, the seconds of its PARTS."""

    def __init__(self, contender, text, seed=1337, tables=None):
        torch.manual_seed(seed)
        plan = self.plan = replace(contender.plan, seed=seed)
        self.seconds, self.step, self.parts, self.curve = 0.0, 0, [], []
        self.generator = torch.Generator().manual_seed(seed)
        optimizer = make_optimizer
        if contender.order is not None:
            counts, smoothing, self.seconds = tables
            self.model = CountingGPT(contender.shape, counts, smoothing)
            self.draw = self.model.draw(text.train, plan)
        else:
            self.model = contender.shape.build()
            self.draw = partial(
                get_batch, text.train, plan.batch_size, plan.block_size, "cpu"
            )
        if isinstance(contender.shape, Reconstructed):
            optimizer = reconstructed_optimizer
            self.draw = window_by_window(text.train, plan)
        self.optimizer = optimizer(self.model, plan)

    def advance(self, steps):
        """Make so many steps, each as `train` makes it."""
        self.model.train()
        for _ in range(steps):
            times = [time.perf_counter()]
            for group in self.optimizer.param_groups:
                rate = learning_rate_at(self.step, self.plan)
                group["lr"] = rate * group.get("rate", 1.0)
            x, y = self.draw(self.generator)
            times.append(time.perf_counter())
            loss = self.model(x, y)[1]
            times.append(time.perf_counter())
            self.optimizer.zero_grad()
            loss.backward()
            times.append(time.perf_counter())
            if self.plan.grad_clip < math.inf:
                torch.nn.utils.clip_grad_norm_(
                    self.model.parameters(), self.plan.grad_clip
                )
            self.optimizer.step()
            times.append(time.perf_counter())
            self.step += 1
            self.seconds += times[-1] - times[0]
            self.parts.append([b - a for a, b in zip(times, times[1:])])

    def judge(self, val):
        """Put the exact loss on val (N,) on the curve: (seconds, nats per token)."""
        loss = evaluate(self.model, val, self.model.block_size)
        self.curve.append((self.seconds, loss))


def count_tables(contender, text, fit_steps=100):
    """Counts and discounts of a contender: ContextCounts, Smoothing, seconds."""
    start = time.perf_counter()
    counts = ContextCounts(text.train, text.vocab_size, contender.order)
    smoothing = fit_smoothing(counts, text.train, contender.plan, fit_steps)
    return counts, smoothing, time.perf_counter() - start


# --- What is measured. ---


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


def peak_megabytes(training):
    """What one step allocates at most at once, beside weights and averages."""
    return round(measure.peak_bytes(partial(training.advance, 1)) / 1e6, 1)


def learn(trainings, val, turns=48):
    """Train all to the end of their plans, in `turns` turns; judge on the way.

    They are judged at the start, at the end, and in between the oftener the earlier.
    """
    stops = {round(turns * share) for share in (1 / 12, 1 / 6, 1 / 3, 2 / 3, 1)}
    for turn in range(turns + 1):
        for training in trainings.values():
            training.advance(training.plan.steps * turn // turns - training.step)
            if turn == 0 or turn in stops:
                training.judge(val)


def writing_speed(models, text, tokens, rounds, batches=(1, 16)):
    """{way: {name: {batch: tokens per second}}} at a full context, medians of turns."""
    times = {}
    for turn in range(rounds):
        for name, model in models.items():
            for batch in batches if model.block_size < 256 else (1,):  # or it lasts
                for way, write in WAYS.items():
                    idx = text.val[: model.block_size].repeat(batch, 1)
                    drawn = torch.Generator().manual_seed(turn)
                    start = time.perf_counter()
                    write(model, idx, tokens, generator=drawn)
                    taken = time.perf_counter() - start
                    times.setdefault((way, name, batch), []).append(taken)
    found = {way: {name: {} for name in models} for way in WAYS}
    for (way, name, batch), taken in times.items():
        found[way][name][str(batch)] = round(batch * tokens / median(taken), 1)
    return found


def seconds_to(curve, loss):
    """When a curve [(seconds, loss)] first falls to a loss; None if it never does."""
    for (s0, high), (s1, low) in zip(curve[:1] + curve, curve):
        if low <= loss:
            fallen = 1.0 if high <= low else min(1.0, (high - loss) / (high - low))
            return s0 + max(0.0, fallen) * (s1 - s0)
    return None


def loss_after(curve, seconds):
    """The loss of a curve after so many seconds, None before it begins; behind its
    end that of the end."""
    if seconds < curve[0][0]:
        return None
    for (s0, high), (s1, low) in zip(curve, curve[1:]):
        if seconds <= s1:
            return high + (low - high) * (seconds - s0) / (s1 - s0)
    return curve[-1][1]


def bench(text, known, demo_steps=2000, rounds=20, tokens=128, large=True, say=print):
    """Measure the contenders `known` on a Text; returns what the record holds.

    The first of them makes demo_steps steps; the others as many as fit into the same
    time, tables included, or into their share of it.
    """
    result = {
        "date": date.today().isoformat(),
        "torch": torch.__version__.split("+")[0],
        "goal": GOAL,
    }
    with at_threads(THREADS):
        result["machine"] = record.machine()
        tables = {}
        for c in known.values():
            if c.order is not None and c.order not in tables:
                tables[c.order] = count_tables(c, text)
        say("A step and its parts ...")
        timed, twin = {}, {}  # one for each model, however often it is trained
        for name, c in known.items():
            twin[name] = f"{c.shape}, {c.order}"
            if twin[name] not in [twin[other] for other in timed]:
                timed[name] = Training(c, text, tables=tables.get(c.order))
        result["milliseconds"] = step_times(timed, rounds)
        result["megabytes"] = {n: peak_megabytes(t) for n, t in timed.items()}

        say("The curves ...")
        first = next(iter(known))
        step = {n: ms["step"] / 1000 for n, ms in result["milliseconds"].items()}
        step = {twin[name]: seconds for name, seconds in step.items()}
        limit, running = demo_steps * step[twin[first]], {}
        for name, c in known.items():
            if c.share:
                t = Training(c, text, tables=tables.get(c.order))
                left = c.share * limit - t.seconds
                steps = max(5, round(left / step[twin[name]]))
                steps = demo_steps if name == first else steps
                t.plan = replace(t.plan, steps=steps, warmup_steps=_warmup(c, steps))
                running[name] = t
        learn(running, text.val)
        result["curves"] = {
            n: [[round(s, 2), round(loss, 4)] for s, loss in t.curve]
            for n, t in running.items()
        }
        result["steps"] = {n: t.plan.steps for n, t in running.items()}
        result["shares"] = {n: round(known[n].share, 3) for n in running}

        say("Writing ...")
        kept = [n for n, t in running.items() if n in timed and can_cache(t.model)]
        models = {n: running[n].model for n in kept}
        if large:
            shape = preset("gpu", text.vocab_size)[0]
            models["preset gpu, untrained"] = shape.build()
        result["tokens per second"] = writing_speed(models, text, tokens, rounds=3)
    return result


def _warmup(contender, steps):
    warmup = contender.plan.warmup_steps
    return warmup if warmup is None else min(warmup, steps // 5)


# --- Showing it. ---


def table(result):
    """What `bench` measured as lines of text, for print()."""
    curves, ms = result["curves"], result["milliseconds"]
    first = next(iter(curves))
    end = curves[first][-1][0]
    width = max(map(len, [*ms, *curves])) + 2
    lines = [
        f"milliseconds of {'':{width - 16}}{'a step':>9}"
        + "".join(f"{part:>11}" for part in PARTS)
        + f"{'peak MB':>10}"
    ]
    for name, parts in ms.items():
        cells = "".join(f"{parts[part]:11.2f}" for part in PARTS)
        megabytes = result["megabytes"][name]
        lines.append(f"{name:{width}}{parts['step']:9.2f}{cells}{megabytes:10.1f}")
    if RECONSTRUCTED in ms and DEMO in ms:
        ratio = ms[DEMO]["step"] / ms[RECONSTRUCTED]["step"]
        lines.append(f"A step of the demo takes {ratio:.2f} of nanoGPT's way's time.")
    lines += [
        "",
        f"{'trained':{width}}{'steps':>7}{'seconds':>9}{'loss':>8}"
        f"{'s to ' + str(result['goal']):>12}{f'after {end:.0f} s':>13}",
    ]
    for name, curve in curves.items():
        to, after = seconds_to(curve, result["goal"]), loss_after(curve, end)
        if result["shares"][name] < 1:  # it was not given so much time
            after = None
        lines.append(
            f"{name:{width}}{result['steps'][name]:7,}{curve[-1][0]:9.1f}"
            f"{curve[-1][1]:8.3f}{'never' if to is None else f'{to:.1f}':>12}"
            f"{'-' if after is None else f'{after:.3f}':>13}"
        )
    lines += ["", f"{'tokens per second':{width}}{'one text':>12}{'16 texts':>12}"]
    for way, speeds in result["tokens per second"].items():
        for name, by in speeds.items():
            cells = "".join(
                f"{by[b]:12.0f}" if b in by else 12 * " " for b in ("1", "16")
            )
            lines.append(f"{name:{width}}{cells:24}  {way}")
    return "\n".join(lines)


def figure(result):
    """The curves, and where the time of a step goes, as a matplotlib Figure."""
    from matplotlib.figure import Figure

    from minigpt.plots import COLORS

    fig = Figure(figsize=(12, 4.8), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=[1.15, 1])
    for i, (name, curve) in enumerate(result["curves"].items()):
        seconds, losses = zip(*curve)
        left.plot(
            seconds,
            losses,
            label=name,
            marker="os^DvPX"[i % 7],
            color=[*COLORS[:6], "0.5"][i % 7],
            linestyle=["-", "--", "-.", ":", "-", "--", ":"][i % 7],
        )
    left.axhline(result["goal"], color="0.4", linestyle=":")
    left.text(
        0, result["goal"] - 0.06, f"nanoGPT's demo, {result['goal']}", color="0.3"
    )
    lowest = min(curve[-1][1] for curve in result["curves"].values())
    left.set(ylim=(lowest - 0.1, 2.6), xlabel="seconds of training (two cores)")
    left.set_ylabel("validation loss (nats per character)")
    left.legend(fontsize=10)
    names = list(result["milliseconds"])
    offset = [0.0] * len(names)
    for part, color, hatch in zip(PARTS, COLORS, ["", "//", "..", "xx"]):
        widths = [result["milliseconds"][name][part] for name in names]
        right.barh(
            names,
            widths,
            left=offset,
            label=part,
            color=color,
            hatch=hatch,
            edgecolor="white",
        )
        offset = [a + b for a, b in zip(offset, widths)]
    right.invert_yaxis()
    right.grid(axis="y", visible=False)
    right.set_xlabel("milliseconds a step")
    right.legend(fontsize=10)
    return fig


def publish(result, path, image):
    """Write the record (JSON) and the figure (PNG), each whole or not at all."""
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    with replacing(image) as unfinished:
        figure(result).savefig(
            unfinished, format="png", dpi=100, metadata={"Software": None}
        )


def add_options(parser):
    """The options of the command, for argparse."""
    parser.add_argument(
        "--quick", action="store_true", help="a twentieth of it; writes nothing"
    )


def main(options):
    """The command: measure, print the table; unless --quick, write both files."""
    text = open_text()
    known = contenders(text.vocab_size)
    say = partial(print, flush=True)
    if options.quick:
        text = text._replace(val=text.val[:10_000])
        result = bench(
            text, known, demo_steps=100, rounds=3, tokens=16, large=False, say=say
        )
        print(f"\n{table(result)}\n\nA quick look: nothing was written.")
        return 0
    result = bench(text, known, say=say)
    path = record.FOLDER / "bench.json"
    publish(result, path, FIGURE)
    print(f"\n{table(result)}\n\nWritten to {path} and {FIGURE}.")
    return 0
