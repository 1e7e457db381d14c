"""The GPT of lesson 06, trained as in lesson 06 for a few more steps."""

from dataclasses import replace

import torch

from minigpt import training
from minigpt.interfaces import Model

STEPS = 2600


def build(train_ids: torch.Tensor, vocab_size: int) -> Model:
    """An untrained model for the text train_ids (N,)."""
    return training.preset("cpu", vocab_size)[0].build()


def train(model: Model, train_ids: torch.Tensor, seed: int) -> None:
    """Train the model in place."""
    plan = training.preset("cpu", model.config.vocab_size)[1]
    plan = replace(plan, steps=STEPS, seed=seed, eval_every=STEPS, eval_batches=1)
    training.train(model, train_ids, train_ids, plan)
