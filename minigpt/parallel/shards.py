"""Lesson 10: a model of which each worker holds a share, by torch's `fully_shard`.

Before a block computes, its weights are gathered; after it, they are let go. Whoever
computes or saves needs all workers: all call these functions, equally often.
Sources: Zhao et al., PyTorch FSDP (2023); Rajbhandari et al., ZeRO (2020).
"""

import copy
import warnings
from dataclasses import replace

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from minigpt.parallel.workers import standing


def share_out(checkpoint):
    """Leave this worker its share of a GPT and of its run's averages, in place."""
    c = checkpoint
    # Of what is passed on from block to block, nothing is changed in place.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module")
    device = next(c.model.parameters()).device
    mesh = init_device_mesh(device.type, (standing()[1],))
    for block in list(c.model.body)[:-1]:
        fully_shard(block, mesh=mesh)
    fully_shard(c.model, mesh=mesh)
    averages = c.run.optimizer.state_dict()
    c.run.optimizer = c.config.make_optimizer(c.model)
    c.run.optimizer.load_state_dict(averages)
    for p, values in c.run.optimizer.state.items():
        for name, whole in values.items():
            if whole.shape == p.shape:  # Adam's count of steps has another
                values[name] = distribute_tensor(whole, p.device_mesh, p.placements)


def gathered(checkpoint):
    """The Checkpoint as one process would hold it, on the CPU; None but on worker 0."""
    c = checkpoint
    weights = _whole(c.model.state_dict())
    averages = _whole(c.run.optimizer.state_dict())
    if standing()[0] > 0:
        return None
    with torch.device("meta"):  # it takes no memory and draws no random numbers
        model = c.model.config.build()
    model.load_state_dict(weights, assign=True)
    run = copy.copy(c.run)
    run.optimizer = c.config.make_optimizer(model)
    run.optimizer.load_state_dict(averages)
    return replace(c, model=model, run=run)


def _whole(value):
    """A state dict with each tensor gathered: on worker 0's CPU, elsewhere let go."""
    if isinstance(value, DTensor):
        gathered = value.full_tensor()
        return gathered.cpu() if standing()[0] == 0 else None
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return value
