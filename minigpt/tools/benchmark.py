"""The benchmark: nanoGPT's CPU demo beside the presets, taking turns in one run.

    python -m minigpt bench            six minutes
    python -m minigpt bench --quick    a short look

They take turns every few steps, so whoever shares the machine slows all alike. Measured
are a step, and the exact loss against the seconds of counting and of training.
"""

import math
import time
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import torch
import torch.nn as nn

from minigpt.data import get_batch
from minigpt.evaluation import evaluate
from minigpt.gpt import GPT, GPTConfig
from minigpt.hints import Model
from minigpt.modern.counting import CountingGPT, fit_smoothing, fold_batch
from minigpt.modern.counts import ContinuationCounts
from minigpt.modern.recipe import counting_preset, minute_preset
from minigpt.tools.corpus import Corpus, corpus
from minigpt.tools.speedrun import THREADS, DemoConfig, demo
from minigpt.training import Run, preset, train

SELDOM = {"eval_every": 10**9, "eval_batches": 1}  # `judge` says how good they are
GOAL = 1.898  # what nanoGPT's CPU demo reaches, exact, in windows of its context
DEMO, RECONSTRUCTED = "demo, our GPT", "demo, nanoGPT's way"


class Contender(NamedTuple):
    """A config with build(), a TrainConfig (its steps are set anew), the longest
    context that is counted, if any, and the share of the demo's time."""

    shape: Any
    plan: Any
    order: int | None = None
    share: float = 1.0


def contenders(vocab_size: int) -> dict[str, Contender]:
    """{name: Contender}; the demo stands first, the others get its time or a share."""
    modern, counted = minute_preset(vocab_size), counting_preset(vocab_size)
    shape, plan = demo(vocab_size)
    return {
        DEMO: Contender(shape, plan),
        RECONSTRUCTED: Contender(TheirShape(**vars(shape)), TheirConfig(**vars(plan))),
        "preset cpu": Contender(*preset("cpu", vocab_size), share=1 / 2),
        "preset modern": Contender(*modern),
        "with counts": Contender(*counted, order=8),
        "modern, 1/6 of the time": Contender(*modern, share=1 / 6),
        "with counts, 1/6 of the time": Contender(*counted, order=8, share=1 / 6),
    }


class TheirShape(GPTConfig):
    """A shape whose model is as nanoGPT's README and code describe it: GELU, no biases,
    the head tied to the embedding; see Karpathy, nanoGPT (2022)."""

    def build(self) -> GPT:
        """Our GPT of this shape, changed to theirs, with new weights as theirs."""
        model: Model = GPT(self)
        model.lm_head.weight = model.token_embedding.weight
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm)):
                module.register_parameter("bias", None)
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        for block in model.body[:-1]:
            block.feed_forward.relu = nn.GELU()
            for proj in (block.attention.proj, block.feed_forward.proj):
                nn.init.normal_(proj.weight, std=0.02 / math.sqrt(2 * self.n_layer))
        return model


class TheirConfig(DemoConfig):
    """The demo's recipe; AdamW is not fused there on a CPU."""

    def make_optimizer(self, model: Model) -> Any:
        optimizer = super().make_optimizer(model)
        for group in optimizer.param_groups:
            group["fused"] = False
        return optimizer


class Training:
    """A contender in the middle of its training."""

    def __init__(self, contender: Contender, text: Corpus, seed: int = 1337) -> None:
        shape, plan, order, _ = contender
        self.text, self.marks, self.curve = text, [0.0], []
        self.plan, self.counting = replace(plan, seed=seed, **SELDOM), 0.0
        torch.manual_seed(seed)
        if order is None:
            self.model, self.draw = shape.build(), get_batch
        else:
            start = time.perf_counter()
            counts = ContinuationCounts(text.train, text.vocab_size, order)
            smoothing = fit_smoothing(counts, text.train, self.plan)
            self.counting = time.perf_counter() - start
            self.model = CountingGPT(shape, counts, smoothing)
            self.draw = partial(fold_batch, self.model)
        self.run = Run(self.model, self.plan)

    @property
    def seconds(self) -> float:
        """The seconds of counting and of training so far."""
        return self.counting + self.run.seconds

    @property
    def times(self) -> list[float]:
        """The seconds of each step."""
        return [end - start for start, end in zip(self.marks, self.marks[1:])]

    def advance(self, steps: int) -> None:
        """Make so many steps."""
        if steps < 1:
            return
        end = self.run.step + steps

        def on_step(run: Run) -> bool:
            self.marks.append(run.seconds)
            return run.step == end

        train(
            self.model,
            self.text.train,
            self.text.val,
            self.plan,
            self.run,
            on_step=on_step,
            draw=self.draw,
        )

    def judge(self, val: torch.Tensor) -> None:
        """Put the exact loss on val (N,) on the curve: (seconds, nats per token)."""
        loss = evaluate(self.model, val, self.model.block_size)
        self.curve.append([round(self.seconds, 2), round(loss, 4)])


def step_times(
    trainings: dict[str, Training], rounds: int, chunk: int = 5
) -> dict[str, float]:
    """{name: milliseconds a step}: medians, in turns of `chunk`; the first warms up."""
    for _ in range(rounds + 1):
        for training in trainings.values():
            training.advance(chunk)
    return {n: round(1000 * median(t.times[chunk:]), 3) for n, t in trainings.items()}


def learn(trainings: dict[str, Training], val: torch.Tensor, turns: int = 48) -> None:
    """Train all to the end of their plans, in `turns` turns; judge them on the way, the
    oftener the earlier."""
    stops = {0} | {round(turns * share) for share in (1 / 12, 1 / 6, 1 / 3, 2 / 3, 1)}
    for turn in range(turns + 1):
        for training in trainings.values():
            training.advance(training.plan.steps * turn // turns - training.run.step)
            if turn in stops:
                training.judge(val)


def bench(
    text: Corpus, known: dict[str, Contender], demo_steps: int, rounds: int
) -> dict[str, dict]:
    """Measure the contenders `known` on a Corpus: {"milliseconds", "steps", "curves"}.

    The first of them makes demo_steps steps; the others as many as fit into the same
    time, tables included, or into their share of it.
    """
    torch.set_num_threads(THREADS)
    times = step_times({n: Training(c, text) for n, c in known.items()}, rounds)
    limit = demo_steps * next(iter(times.values())) / 1000
    running = {name: Training(c, text) for name, c in known.items()}
    for name, t in running.items():
        left = known[name].share * limit - t.seconds
        t.plan = replace(t.plan, steps=max(5, round(1000 * left / times[name])))
    learn(running, text.val)
    return {
        "milliseconds": times,
        "steps": {name: t.plan.steps for name, t in running.items()},
        "curves": {name: t.curve for name, t in running.items()},
    }


def bench_table(result: dict) -> str:
    """What `bench` measured as lines of text, for print()."""
    ms, width = result["milliseconds"], max(map(len, result["milliseconds"])) + 2
    lines = [f"{'':{width}}{'ms a step':>9}{'steps':>7}{'seconds':>9}{'loss':>8}"]
    for name, curve in result["curves"].items():
        (seconds, loss), steps = curve[-1], result["steps"][name]
        told = f"{ms[name]:9.2f}{steps:7,}{seconds:9.1f}{loss:8.3f}"
        lines.append(f"{name:{width}}{told}")
    ratio = ms[DEMO] / ms[RECONSTRUCTED]
    lines.append(f"A step of the demo takes {ratio:.2f} of nanoGPT's way's time.")
    lines.append(f"nanoGPT's own demo reaches {GOAL} in its 2000 steps.")
    return "\n".join(lines)


def add_options(parser: ArgumentParser) -> None:
    """The options of the command, for argparse."""
    parser.add_argument("--quick", action="store_true", help="a twentieth of it")


def main(options: Namespace) -> int:
    """The command: measure, print the table."""
    print("Timing steps, then training in turns ...", flush=True)
    text, steps, rounds = corpus(), 2000, 20
    if options.quick:
        text, steps, rounds = text._replace(val=text.val[:10_000]), 100, 3
    print(f"\n{bench_table(bench(text, contenders(text.vocab_size), steps, rounds))}")
    return 0
