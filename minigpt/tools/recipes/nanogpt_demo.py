"""nanoGPT's demo for a CPU, rebuilt from its README and code: Karpathy (2022).

It has GELU, no biases, a head tied to the embedding, and a learning rate that falls to
a tenth of its peak.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn

from minigpt import training
from minigpt.gpt import GPT, GPTConfig
from minigpt.interfaces import Model
from minigpt.training import TrainConfig

STEPS = 2000


@dataclass
class DemoConfig(TrainConfig):
    """nanoGPT's schedule. Its AdamW is not fused on a CPU."""

    def learning_rate_at(self, step: int) -> float:
        rate = super().learning_rate_at(step)
        if step < min(self.warmup_steps, self.steps // 5):
            return rate
        return 0.1 * self.learning_rate + 0.9 * rate

    def make_optimizer(self, model: Model) -> torch.optim.Optimizer:
        optimizer = super().make_optimizer(model)
        for group in optimizer.param_groups:
            group["fused"] = False
        return optimizer


def build(train_ids: torch.Tensor, vocab_size: int) -> Model:
    """Our GPT, turned into theirs."""
    shape = GPTConfig(vocab_size, block_size=64, n_layer=4, n_head=4, n_embd=128)
    model: Model = GPT(shape)
    model.lm_head.weight = model.token_embedding.weight
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.LayerNorm)):
            module.register_parameter("bias", None)
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
    for block in model.body[:-1]:
        block.feed_forward.relu = nn.GELU()
        for proj in (block.attention.proj, block.feed_forward.proj):
            nn.init.normal_(proj.weight, std=0.02 / math.sqrt(2 * shape.n_layer))
    return model


def train(model: Model, train_ids: torch.Tensor, seed: int) -> None:
    """Train the model in place."""
    plan = DemoConfig(STEPS, 12, 64, 1e-3, eval_every=STEPS, eval_batches=1, seed=seed)
    training.train(model, train_ids, train_ids, plan)
