"""Lesson 14: how to go on training a model that has learned another text."""

from minigpt.interfaces import Model
from minigpt.training import TrainConfig


def finetuning(model: Model) -> TrainConfig:
    """The TrainConfig that `train --from` begins with: GPT-2's recipe, scaled down.

    As in lesson 06 the rate falls with the width; at 128 channels it is a third of the
    rate there, because the model has learned already.
    """
    rate = 1e-3 * 128 / model.config.n_embd
    window = min(model.block_size, 256)
    return TrainConfig(400, 16, window, learning_rate=rate, eval_every=100)
