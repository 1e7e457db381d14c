"""Lesson 08: today's recipe: Muon for the matrices, and a learning rate that stays
level."""

import math
from dataclasses import dataclass, replace

import torch

from minigpt.interfaces import Model
from minigpt.modern.model import ModernConfig
from minigpt.modern.muon import Muon, Together
from minigpt.require import require
from minigpt.training import TrainConfig


@dataclass
class MuonConfig(TrainConfig):
    """A TrainConfig with Muon for the blocks' matrices, and a trapezoid as its
    schedule."""

    muon_rate: float = 0.02  # Muon's own learning rate, at its peak
    cooldown_fraction: float = 0.6  # of the steps, at the end: there the rate falls

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 < self.muon_rate < math.inf,
            f"muon_rate is {self.muon_rate!r}; give a finite number above 0.",
        )
        require(
            0 < self.cooldown_fraction <= 1,
            f"cooldown_fraction is {self.cooldown_fraction!r}; give more "
            "than 0 and at most 1.",
        )

    def make_optimizer(self, model: Model) -> Together:
        """Muon for the matrices of model.body; AdamW, without decay, for the rest:
        embeddings, head and vectors. We take only three steps of `orthogonalize`, to
        save time."""
        inner = [p for p in model.body.parameters() if p.dim() == 2]
        outer = [p for p in model.parameters() if all(p is not q for q in inner)]
        rate = self.learning_rate
        scale, betas = self.muon_rate / rate, (0.9, self.beta2)
        muon = Muon(inner, rate, self.weight_decay, ns_steps=3, scale=scale)
        adamw = torch.optim.AdamW(outer, rate, betas, weight_decay=0.0, fused=True)
        return Together([muon, adamw])

    def learning_rate_at(self, step: int) -> float:
        """Up in a straight line, then level, then down in a straight line to almost
        nothing.

        Source: Zhai et al., Scaling Vision Transformers (2022), section 3.5.
        """
        warmup = min(self.warmup_steps, self.steps // 5)
        if step < warmup:
            return self.learning_rate * (step + 1) / warmup
        left = (self.steps - step) / max(1, self.cooldown_fraction * self.steps)
        return self.learning_rate * min(1.0, left)


class MuonCosine(MuonConfig):
    """Muon with the schedule of lesson 06: one change at a time."""

    learning_rate_at = TrainConfig.learning_rate_at


def modern_preset(vocab_size: int) -> tuple[ModernConfig, MuonConfig]:
    """The lesson's sizes, for two cores: (ModernConfig, MuonConfig)."""
    model = ModernConfig(vocab_size, 128, n_layer=3, n_head=4, n_embd=128)
    plan = MuonConfig(1500, 8, 128, 8e-3, weight_decay=0.0, grad_clip=math.inf)
    return model, plan


def minute_preset(vocab_size: int) -> tuple[ModernConfig, MuonConfig]:
    """Sizes for one minute of training: two blocks, with the parts that paid off."""
    model, plan = modern_preset(vocab_size)
    parts = dict(activation="swiglu", value_residual=True, embedding_mix=True)
    return replace(model, n_layer=2, **parts), plan
