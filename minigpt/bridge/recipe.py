"""Lesson 14: how to continue training a model that learned from another text."""

from minigpt.interfaces import Model
from minigpt.training import TrainConfig


def finetuning(model: Model) -> TrainConfig:
    """The TrainConfig that `train --from` begins with: GPT-2's recipe, scaled down.

    As in lesson 06, the learning rate falls with the width. At 128 channels it's a
    third of the rate there, because the model has already learned something.
    """
    rate = 1e-3 * 128 / model.config.n_embd
    window = min(model.block_size, 256)
    return TrainConfig(400, 16, window, learning_rate=rate, eval_every=100)
