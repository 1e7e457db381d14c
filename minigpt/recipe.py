"""Lesson 06: how to train: the numbers of a run, and the presets of the course."""

import math
from dataclasses import dataclass

from minigpt.arguments import at_least_one, check_seed, must, number, shown
from minigpt.gpt import GPTConfig

OPTIMIZERS, SCHEDULES = ["adamw", "muon"], ["cosine", "trapezoid"]


@dataclass
class TrainConfig:
    """How to train. Decay applies to matrices only; see `make_optimizer`.

    Raises ValueError for a value with which no training makes sense.
    """

    steps: int
    batch_size: int
    block_size: int
    learning_rate: float
    warmup_steps: int | None = None  # None: 100, or a fifth of a run below 500
    final_fraction: float = 0.0  # of learning_rate, at the last step
    weight_decay: float = 0.1
    beta2: float = 0.99
    grad_clip: float = 1.0  # math.inf for none
    optimizer: str = "adamw"  # or "muon", for the matrices of the blocks
    muon_rate: float = 0.02  # its own learning rate, at the peak
    schedule: str = "cosine"  # or "trapezoid"
    cooldown_fraction: float = 0.6  # of the steps, where the trapezoid falls
    accumulate: int = 1  # pieces into which a batch is cut, one after the other
    eval_every: int = 100
    eval_batches: int = 8
    seed: int = 1337

    def __post_init__(self):
        sizes = "steps batch_size block_size accumulate eval_every eval_batches"
        at_least_one(**{name: getattr(self, name) for name in sizes.split()})
        check_seed(self.seed)
        warmup = 0 if self.warmup_steps is None else number(self.warmup_steps)
        rate, decay = number(self.learning_rate), number(self.weight_decay)
        rules = {  # written so that nan, which is in no range, breaks them all
            "accumulate": (
                self.accumulate <= self.batch_size,
                f"at most the batch_size, {self.batch_size}",
            ),
            "learning_rate": (0 < rate < math.inf, "above 0 and finite"),
            "warmup_steps": (0 <= warmup <= self.steps, f"in 0 to {self.steps} steps"),
            "final_fraction": (0 <= number(self.final_fraction) <= 1, "from 0 to 1"),
            "weight_decay": (0 <= decay < math.inf, "0 or more and finite"),
            "beta2": (0 <= number(self.beta2) < 1, "at least 0 and below 1"),
            "grad_clip": (
                number(self.grad_clip) > 0,
                "above 0; math.inf clips nothing",
            ),
            "optimizer": (self.optimizer in OPTIMIZERS, "'adamw' or 'muon'"),
            "muon_rate": (0 < number(self.muon_rate) < math.inf, "above 0 and finite"),
            "schedule": (self.schedule in SCHEDULES, "'cosine' or 'trapezoid'"),
            "cooldown_fraction": (
                0 < number(self.cooldown_fraction) <= 1,
                "above 0, at most 1",
            ),
        }
        for name, (fine, need) in rules.items():
            must(name, getattr(self, name), fine, need)


def preset(name, vocab_size):
    """The sizes of the course: (GPTConfig, TrainConfig) for "cpu", "modern" or "gpu".

    "modern" is lesson 08's: a ModernConfig, for two cores as "cpu" is.

    Raises ValueError for any other name.
    """
    if name == "cpu":
        model = GPTConfig(vocab_size, block_size=64, n_layer=2, n_head=4, n_embd=128)
        plan = TrainConfig(steps=2400, batch_size=16, block_size=64, learning_rate=3e-3)
        return model, plan
    if name == "gpu":
        model = GPTConfig(
            vocab_size, block_size=256, n_layer=6, n_head=6, n_embd=384, dropout=0.2
        )
        plan = TrainConfig(
            steps=2000,  # trained for longer, it overfits
            batch_size=64,
            block_size=256,
            learning_rate=1e-3,
            eval_every=250,
        )
        return model, plan
    if name == "modern":
        from minigpt.modern import ModernConfig  # lesson 08: only if it is asked for

        model = ModernConfig(
            vocab_size, block_size=128, n_layer=3, n_head=4, n_embd=128
        )
        plan = TrainConfig(
            steps=1500,
            batch_size=8,
            block_size=128,
            learning_rate=8e-3,
            weight_decay=0.0,
            grad_clip=math.inf,
            optimizer="muon",
            schedule="trapezoid",
        )
        return model, plan
    raise ValueError(
        f"There is no preset {shown(name)}; choose 'cpu', 'modern' or 'gpu'."
    )
